/* Reads and writes parts of items by streams, and lines with zero bytes in them. argv: a file of 1,500 bytes, which is replaced. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

static char data[10000];

int main(int count, char **words) {
    FILE *stream = count == 2 ? fopen(words[1], "r") : NULL;
    if (stream == NULL || fread(data, 1000, 10, stream) != 1 || fread(data, 1000, 10, stream) != 0 || fclose(stream) != 0)
        return 1;

    stream = fopen(words[1], "w+");
    if (stream == NULL || fwrite("ab\0cd\nxy\n\0", 1, 10, stream) != 10 || fseek(stream, 0, SEEK_SET) != 0)
        return 2;
    if (fgets(data, 100, stream) == NULL || strcmp(data, "ab") != 0 || fgets(data, 3, stream) == NULL ||
        fgets(data, 100, stream) == NULL || fgets(data, 100, stream) == NULL || fgets(data, 100, stream) != NULL)
        return 3;
    fclose(stream);

    /* No more than 1,500 bytes fit. */
    struct rlimit limit, small;
    stream = fopen(words[1], "w");
    getrlimit(RLIMIT_FSIZE, &limit);
    small = limit;
    small.rlim_cur = 1500;
    signal(SIGXFSZ, SIG_IGN);
    if (stream == NULL || setrlimit(RLIMIT_FSIZE, &small) != 0 || fwrite(data, 1000, 10, stream) != 1)
        return 4;
    setrlimit(RLIMIT_FSIZE, &limit);
    fclose(stream);
    return 0;
}
