/* A child of fork uses the ring of its parent before it makes any other call, and then one of its own. argv: a folder, and what the
 * child does with the ring: "library" (submits a write by liburing) or "number" (enters it by syscall()). */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MUST(condition)                                                                                                \
    if (!(condition)) {                                                                                                \
        dprintf(2, "line %d: %s: %s\n", __LINE__, #condition, strerror(errno));                                        \
        exit(1);                                                                                                       \
    }

static char data[4096];

static void put(struct io_uring *ring, int fd, unsigned bytes) {
    struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
    MUST(sqe != NULL);
    io_uring_prep_write(sqe, fd, data, bytes, 0);
}

static void take(struct io_uring *ring, unsigned bytes) {
    struct io_uring_cqe *cqe;
    MUST(io_uring_wait_cqe(ring, &cqe) == 0 && cqe->res == (int)bytes);
    io_uring_cqe_seen(ring, cqe);
}

int main(int argc, char **argv) {
    MUST(argc == 3 && chdir(argv[1]) == 0);
    struct io_uring ring, own;
    MUST(io_uring_queue_init(8, &ring, 0) == 0);
    int fd = open("parent", O_CREAT | O_WRONLY, 0600);
    put(&ring, fd, 100);
    MUST(fd >= 0 && io_uring_submit(&ring) == 1);
    take(&ring, 100);
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        if (strcmp(argv[2], "library") == 0) {
            put(&ring, fd, 200);
            MUST(io_uring_submit(&ring) == 1);
            take(&ring, 200);
        } else {
            MUST(syscall(SYS_io_uring_enter, ring.ring_fd, 0, 0, 0, NULL, 0) == 0);
        }
        MUST(io_uring_queue_init(8, &own, 0) == 0);
        int another = open("child", O_CREAT | O_WRONLY, 0600);
        put(&own, another, 300);
        MUST(another >= 0 && io_uring_submit(&own) == 1);
        take(&own, 300);
        io_uring_queue_exit(&own);
        exit(close(another));
    }
    int status;
    MUST(waitpid(child, &status, 0) == child);
    MUST(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    io_uring_queue_exit(&ring);
    return close(fd);
}
