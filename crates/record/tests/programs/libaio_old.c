/* I/O by libaio as it was in its first version: io_getevents without a least number, io_cancel without an event. argv: a
 * folder. Prints the bytes that it read and wrote, and how many such operations it made. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <libaio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MUST(condition)                                                                                                \
    if (!(condition)) {                                                                                                \
        dprintf(2, "line %d: %s: %s\n", __LINE__, #condition, strerror(errno));                                        \
        exit(1);                                                                                                       \
    }

int old_getevents(io_context_t context, long most, struct io_event *events, const struct timespec *limit);
int old_cancel(io_context_t context, struct iocb *control);
__asm__(".symver old_getevents, io_getevents@LIBAIO_0.1");
__asm__(".symver old_cancel, io_cancel@LIBAIO_0.1");

enum { BLOCK = 4096, COUNT = 50 };

int main(int argc, char **argv) {
    static char data[BLOCK];
    struct io_event events[COUNT];
    const struct timespec limit = {60, 0};
    io_context_t context = 0;
    MUST(argc == 2 && chdir(argv[1]) == 0 && io_setup(COUNT, &context) == 0);
    int fd = open("file", O_CREAT | O_RDWR, 0600);
    long long moved[2] = {0, 0}, operations = 0;
    for (int pass = 0; pass < 2; pass++) {
        struct iocb controls[COUNT], *list[COUNT];
        for (int i = 0; i < COUNT; i++) {
            list[i] = &controls[i];
            if (pass == 0)
                io_prep_pwrite(list[i], fd, data, BLOCK, (long long)i * BLOCK);
            else
                io_prep_pread(list[i], fd, data, BLOCK, (long long)i * BLOCK);
        }
        MUST(io_submit(context, COUNT, list) == COUNT);
        for (int done = 0; done < COUNT;) {
            int got = old_getevents(context, COUNT - done, events, &limit);
            MUST(got > 0);
            for (int i = 0; i < got; i++)
                moved[pass] += (long long)events[i].res;
            done += got;
            operations += got;
        }
        MUST(old_cancel(context, list[0]) < 0);
    }
    MUST(close(fd) == 0 && io_destroy(context) == 0);
    printf("%lld %lld %lld\n", moved[1], moved[0], operations);
    return 0;
}
