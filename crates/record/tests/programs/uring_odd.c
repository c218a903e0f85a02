/* What programs may do with rings, and with other asynchronous calls. argv: a folder, and what.
 *
 * closes     waits for a ring in one thread while another closes its descriptor
 * addresses  gives wrong addresses, which the kernel refuses; prints how often */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/aio_abi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MUST(condition)                                                                                                \
    if (!(condition)) {                                                                                                \
        dprintf(2, "line %d: %s: %s\n", __LINE__, #condition, strerror(errno));                                        \
        exit(1);                                                                                                       \
    }

static struct io_uring ring;
static char data[100];

static void *waits(void *unused) {
    (void)unused;
    struct io_uring_cqe *cqe;
    MUST(io_uring_wait_cqe(&ring, &cqe) == 0 && cqe->res == 1);
    return NULL;
}

static void closes(void) {
    for (int i = 0; i < 20; i++) {
        int ends[2];
        char byte;
        pthread_t waiter;
        MUST(pipe(ends) == 0 && io_uring_queue_init(4, &ring, 0) == 0);
        io_uring_prep_read(io_uring_get_sqe(&ring), ends[0], &byte, 1, 0);
        MUST(io_uring_submit(&ring) == 1 && pthread_create(&waiter, NULL, waits, NULL) == 0);
        usleep(20000);
        MUST(close(ring.ring_fd) == 0);
        /* Every other time the next one has its number while the first is waited for. */
        if (i % 2 == 1) {
            struct io_uring next;
            struct io_uring_cqe *cqe;
            int file = open("file", O_CREAT | O_WRONLY, 0600);
            MUST(io_uring_queue_init(4, &next, 0) == 0);
            io_uring_prep_write(io_uring_get_sqe(&next), file, data, sizeof data, 0);
            MUST(io_uring_submit(&next) == 1 && io_uring_wait_cqe(&next, &cqe) == 0 && cqe->res == (int)sizeof data);
            io_uring_queue_exit(&next);
            close(file);
        }
        MUST(write(ends[1], "x", 1) == 1 && pthread_join(waiter, NULL) == 0);
        close(ends[0]);
        close(ends[1]);
    }
}

static void refused(void) {
    struct io_uring_cqe *cqe;
    MUST(io_uring_submit(&ring) == 1 && io_uring_wait_cqe(&ring, &cqe) == 0 && cqe->res == -EFAULT);
    io_uring_cqe_seen(&ring, cqe);
}

static void addresses(void) {
    void *const wrong[] = {NULL, (void *)0x1234};
    struct stat file;
    MUST(io_uring_queue_init(4, &ring, 0) == 0);
    int fd = open("file", O_CREAT | O_RDWR, 0600);
    for (int i = 0; i < 2; i++) {
        io_uring_prep_statx(io_uring_get_sqe(&ring), AT_FDCWD, wrong[i], 0, STATX_ALL, (struct statx *)&file), refused();
        io_uring_prep_openat(io_uring_get_sqe(&ring), AT_FDCWD, wrong[i], O_RDONLY, 0), refused();
        io_uring_prep_mkdirat(io_uring_get_sqe(&ring), AT_FDCWD, wrong[i], 0700), refused();
        io_uring_prep_renameat(io_uring_get_sqe(&ring), AT_FDCWD, wrong[i], AT_FDCWD, "other", 0), refused();
        io_uring_prep_unlinkat(io_uring_get_sqe(&ring), AT_FDCWD, wrong[i], 0), refused();
        io_uring_prep_writev(io_uring_get_sqe(&ring), fd, wrong[i], 1, 0), refused();
        io_uring_prep_readv(io_uring_get_sqe(&ring), fd, wrong[i], 1, 0), refused();

        aio_context_t context = 0;
        struct iocb asked = {.aio_fildes = (unsigned)fd, .aio_lio_opcode = IOCB_CMD_PWRITEV,
                             .aio_buf = (uintptr_t)wrong[i], .aio_nbytes = 1};
        struct iocb *list[] = {&asked};
        MUST(syscall(SYS_io_setup, 4, &context) == 0);
        MUST(syscall(SYS_io_submit, context, 1, list) == -1 && errno == EFAULT);
        list[0] = wrong[i];
        MUST(syscall(SYS_io_submit, context, 1, list) == -1 && errno == EFAULT);
        MUST(syscall(SYS_io_submit, context, 1, wrong[i]) == -1 && errno == EFAULT);

        char *words[] = {"true", NULL}, *variables[] = {wrong[1], NULL};
        MUST(execve("/bin/true", words, wrong[1]) == -1 && errno == EFAULT);
        MUST(execve("/bin/true", words, variables) == -1 && errno == EFAULT);
    }
    MUST(write(fd, data, sizeof data) == (ssize_t)sizeof data);
}

int main(int argc, char **argv) {
    MUST(argc == 3 && chdir(argv[1]) == 0);
    strcmp(argv[2], "closes") == 0 ? closes() : addresses();
}
