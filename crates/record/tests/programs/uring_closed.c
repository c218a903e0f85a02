/* Closes rings by all calls that can, makes one after each, which gets the descriptor of the one before, and writes by it. argv: a
 * folder. Prints how many bytes it read and wrote, and in how many operations. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MUST(condition)                                                                                                \
    if (!(condition)) {                                                                                                \
        dprintf(2, "line %d: %s: %s\n", __LINE__, #condition, strerror(errno));                                        \
        exit(1);                                                                                                       \
    }

enum { WAYS = 7 };

static char data[4096];
static long long written, operations;

static void write_by(struct io_uring *ring, int fd) {
    struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
    struct io_uring_cqe *cqe;
    unsigned bytes = 1000 + (unsigned)operations;
    io_uring_prep_write(sqe, fd, data, bytes, 0);
    MUST(io_uring_submit(ring) == 1 && io_uring_wait_cqe(ring, &cqe) == 0 && cqe->res == (int)bytes);
    io_uring_cqe_seen(ring, cqe);
    written += bytes;
    operations++;
}

int main(int argc, char **argv) {
    MUST(argc == 2 && chdir(argv[1]) == 0);
    int file = open("file", O_CREAT | O_WRONLY, 0600), number = -1;
    MUST(file >= 0);
    for (int way = 0; way < WAYS; way++) {
        struct io_uring ring;
        MUST(io_uring_queue_init(8, &ring, 0) == 0);
        int fd = ring.ring_fd;
        MUST(number == -1 || fd == number);
        number = fd;
        write_by(&ring, file);
        switch (way) {
        case 0:
            MUST(close(fd) == 0);
            break;
        case 1:
            MUST(close_range((unsigned)fd, ~0u, 0) == 0);
            break;
        case 2:
            MUST(syscall(SYS_close_range, fd, fd, 0) == 0);
            break;
        case 3:
            closefrom(fd);
            break;
        case 4:
            MUST(dup2(0, fd) == fd && close(fd) == 0);
            break;
        case 5:
            MUST(dup3(0, fd, O_CLOEXEC) == fd && close(fd) == 0);
            break;
        default:
            io_uring_queue_exit(&ring);
        }
    }
    printf("0 %lld %lld\n", written, operations);
    return 0;
}
