/* I/O by libaio: reads and writes of both kinds, syncs, several in flight, a read beyond the end, a submission that is
 * refused. argv: a folder. Prints the bytes that it read and wrote, and how many operations it made. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <libaio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define MUST(condition)                                                                                                \
    if (!(condition)) {                                                                                                \
        dprintf(2, "line %d: %s: %s\n", __LINE__, #condition, strerror(errno));                                        \
        exit(1);                                                                                                       \
    }

enum { BLOCK = 4096, DEPTH = 16, COUNT = 200 };

static io_context_t context;
static long long moved[2], operations;
static char *data;

static void wait_for(int count) {
    struct io_event events[DEPTH];
    for (int done = 0; done < count;) {
        int got = io_getevents(context, 1, count - done, events, NULL);
        MUST(got > 0);
        for (int i = 0; i < got; i++) {
            struct iocb *control = events[i].obj;
            int writes = control->aio_lio_opcode == IO_CMD_PWRITE || control->aio_lio_opcode == IO_CMD_PWRITEV;
            int syncs = control->aio_lio_opcode == IO_CMD_FSYNC || control->aio_lio_opcode == IO_CMD_FDSYNC;
            if ((long)events[i].res >= 0 && !syncs)
                moved[writes] += (long)events[i].res;
            operations += !syncs;
        }
        done += got;
    }
}

int main(int argc, char **argv) {
    MUST(argc == 2 && chdir(argv[1]) == 0 && io_setup(DEPTH, &context) == 0);
    MUST(posix_memalign((void **)&data, BLOCK, DEPTH * BLOCK) == 0);
    int fd = open("file", O_CREAT | O_RDWR, 0600);
    struct iocb controls[DEPTH], *list[DEPTH];
    for (int pass = 0; pass < 2; pass++) {
        for (int from = 0; from < COUNT; from += DEPTH) {
            int count = COUNT - from < DEPTH ? COUNT - from : DEPTH;
            for (int i = 0; i < count; i++) {
                list[i] = &controls[i];
                long long offset = (long long)(from + i) * BLOCK;
                if (pass == 0)
                    io_prep_pwrite(list[i], fd, data, BLOCK, offset);
                else
                    io_prep_pread(list[i], fd, data, BLOCK, offset + 1000); /* the last one is short */
            }
            MUST(io_submit(context, count, list) == count);
            wait_for(count);
        }
    }
    struct iovec parts[2] = {{data, 100}, {data + BLOCK, 200}};
    io_prep_pwritev(&controls[0], fd, parts, 2, 50);
    io_prep_preadv(&controls[1], fd, parts, 2, 60);
    io_prep_pread(&controls[2], fd, data, BLOCK, 1ll << 40); /* moves nothing */
    io_prep_fsync(&controls[3], fd);
    list[0] = &controls[0], list[1] = &controls[1], list[2] = &controls[2], list[3] = &controls[3];
    MUST(io_submit(context, 4, list) == 4);
    wait_for(4);
    /* The second is refused: only the first is submitted. */
    io_prep_pread(&controls[0], fd, data, 10, 0);
    io_prep_pread(&controls[1], 9999, data, 10, 0);
    io_prep_pread(&controls[2], fd, data, 10, 0);
    MUST(io_submit(context, 3, list) == 1);
    wait_for(1);
    MUST(io_submit(context, 1, &list[1]) == -EBADF);
    MUST(close(fd) == 0 && io_destroy(context) == 0);
    printf("%lld %lld %lld\n", moved[0], moved[1], operations);
    return 0;
}
