/* Writes that go to the end of a file, whatever the call says. argv: a folder, which becomes the working one. Optimised, so that
 * the macros of <stdio.h> are macros. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static char data[20000];

#define MUST(condition)                                                                                                \
    if (!(condition)) {                                                                                                \
        dprintf(2, "line %d: %s: %s\n", __LINE__, #condition, strerror(errno));                                        \
        return 1;                                                                                                      \
    }

int main(int argc, char **argv) {
    MUST(argc == 2 && chdir(argv[1]) == 0);
    struct iovec two[2] = {{data, 100}, {data, 200}};

    /* opened to append: 0, 1000, 2000, 2300; and no longer: 5 */
    int fd = open("opened", O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    MUST(pwrite(fd, data, 1000, 0) == 1000 && pwrite64(fd, data, 1000, 0) == 1000);
    MUST(pwritev(fd, two, 2, 7) == 300 && pwrite(fd, data, 10, 1 << 20) == 10);
    MUST(fcntl(fd, F_SETFL, 0) == 0 && pwrite(fd, data, 20, 5) == 20);
    MUST(fcntl(fd, F_SETFL, O_APPEND) == 0 && pwrite(fd, data, 30, 5) == 30); /* 2310 */
    MUST(close(fd) == 0);

    /* told to append by the call: 0, 300, 600; then at 10; at the position, which goes to the end: 900, 1200 */
    fd = open("told", O_RDWR | O_CREAT, 0600);
    for (int i = 0; i < 3; i++)
        MUST(pwritev2(fd, two, 2, 0, RWF_APPEND) == 300);
    MUST(pwritev2(fd, two, 2, 10, 0) == 300);
    MUST(pwritev2(fd, two, 2, -1, RWF_APPEND) == 300 && write(fd, data, 50) == 50);
    MUST(close(fd) == 0);

    /* a stream that was read and moved: 5000 + 3 x 20000, in pieces of which the buffer keeps some */
    FILE *stream = fopen("stream", "w");
    MUST(fwrite(data, 1, 5000, stream) == 5000 && fclose(stream) == 0);
    stream = fopen("stream", "a+");
    for (int i = 0; i < 3; i++) {
        rewind(stream);
        MUST(fread(data, 1, 16, stream) == 16 && fseek(stream, 0, SEEK_SET) == 0);
        MUST(fwrite(data, 1, 19990, stream) == 19990 && fputs("0123456789", stream) >= 0);
    }
    MUST(fclose(stream) == 0);

    /* characters: 10 + 6000 + 2, after 20 */
    stream = fopen("characters", "w");
    MUST(fwrite(data, 1, 20, stream) == 20 && fclose(stream) == 0);
    stream = fopen("characters", "a");
    MUST(fprintf(stream, "0123456789") == 10);
    for (int i = 0; i < 6000; i++)
        putc_unlocked('b', stream);
    MUST(fputs("cd", stream) >= 0 && fclose(stream) == 0);
    return 0;
}
