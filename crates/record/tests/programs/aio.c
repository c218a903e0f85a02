/* POSIX asynchronous I/O. After each submission the program sleeps for 20 ms, and then asks, each time by another call.
 * argv: a folder, which becomes the working one. */
#define _GNU_SOURCE
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char data[10][4096];

#define MUST(condition)                                                                                                \
    if (!(condition)) {                                                                                                \
        dprintf(2, "line %d: %s: %s\n", __LINE__, #condition, strerror(errno));                                        \
        return 1;                                                                                                      \
    }

static void rest(void) {
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

static void until_done(const struct aiocb *control) {
    rest();
    while (aio_error(control) == EINPROGRESS)
        rest();
}

int main(int argc, char **argv) {
    MUST(argc == 2 && chdir(argv[1]) == 0);
    int fd = open("file", O_CREAT | O_RDWR, 0600);
    struct aiocb all[10];
    const struct aiocb *one[2] = {NULL, NULL};
    for (int i = 0; i < 10; i++)
        all[i] = (struct aiocb){.aio_fildes = fd, .aio_buf = data[i], .aio_nbytes = 4096, .aio_offset = i * 4096};

    /* 0: aio_error, and more of it later */
    MUST(aio_write(&all[0]) == 0);
    until_done(&all[0]);
    rest();
    MUST(aio_error(&all[0]) == 0 && aio_return(&all[0]) == 4096);
    /* 1: aio_suspend; 2: aio_return alone */
    MUST(aio_write(&all[1]) == 0);
    rest();
    one[1] = &all[1];
    MUST(aio_suspend(one, 2, NULL) == 0);
    rest();
    MUST(aio_return(&all[1]) == 4096 && aio_write64((struct aiocb64 *)&all[2]) == 0);
    for (int i = 0; i < 5; i++)
        rest();
    MUST(aio_return(&all[2]) == 4096);
    /* 3, 4: a list that is waited for; 5: one that is not */
    all[3].aio_lio_opcode = all[4].aio_lio_opcode = all[5].aio_lio_opcode = LIO_WRITE;
    struct aiocb *list[4] = {&all[3], NULL, &all[4]}, *other[1] = {&all[5]};
    MUST(lio_listio(LIO_WAIT, list, 3, NULL) == 0);
    rest();
    MUST(lio_listio(LIO_NOWAIT, other, 1, NULL) == 0);
    until_done(&all[5]);
    for (int i = 3; i < 6; i++)
        MUST(aio_return(&all[i]) == 4096);
    /* 6: less than was asked for; 7: an error; 8: refused at once; 9: never asked for */
    all[6].aio_offset = 5 * 4096 + 1000;
    MUST(aio_read(&all[6]) == 0);
    until_done(&all[6]);
    MUST(aio_return(&all[6]) == 3096);
    all[7].aio_buf = (void *)8;
    all[7].aio_offset = 0;
    MUST(aio_read(&all[7]) == 0);
    until_done(&all[7]);
    MUST(aio_error(&all[7]) == EFAULT && aio_return(&all[7]) == -1);
    all[8].aio_reqprio = 1000;
    MUST(aio_read(&all[8]) == -1 && errno == EINVAL);
    MUST(aio_fsync(O_SYNC, &all[0]) == 0);
    until_done(&all[0]);
    MUST(aio_return(&all[0]) == 0 && aio_read(&all[9]) == 0);
    rest();
    return 0;
}
