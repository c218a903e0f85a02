/* Writes 1 MiB to the file argv[1] and reads it again, after argv[2] seconds; its exit code is 7. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
    static char data[4096];
    if (argc > 2)
        sleep((unsigned)atoi(argv[2]));
    int fd = open(argv[1], O_CREAT | O_RDWR | O_TRUNC, 0644);
    for (int i = 0; i < 256; i++)
        if (write(fd, data, sizeof data) != sizeof data)
            return 1;
    for (int i = 0; i < 256; i++)
        if (pread(fd, data, sizeof data, i * 4096L) != sizeof data)
            return 2;
    char *leaves_no_leak = malloc(100);
    free(leaves_no_leak);
    return close(fd) == 0 ? 7 : 3;
}
