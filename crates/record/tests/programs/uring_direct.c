/* I/O by liburing on files that have a place in the ring and never a descriptor. argv: a folder. Prints the bytes that it
 * read and wrote, and how many such operations it made; nothing where the kernel has no such opens. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MUST(condition)                                                                                                \
    if (!(condition)) {                                                                                                \
        dprintf(2, "line %d: %s: %s\n", __LINE__, #condition, strerror(errno));                                        \
        exit(1);                                                                                                       \
    }

static struct io_uring ring;
static char data[8192];
static long long written, operations;

static int done(void) {
    struct io_uring_cqe *cqe;
    MUST(io_uring_wait_cqe(&ring, &cqe) == 0);
    int result = cqe->res;
    io_uring_cqe_seen(&ring, cqe);
    return result;
}

static int run(void) {
    MUST(io_uring_submit(&ring) == 1);
    return done();
}

static struct io_uring_sqe *write_to(int place, unsigned bytes) {
    struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
    io_uring_prep_write(sqe, place, data, bytes, 0);
    io_uring_sqe_set_flags(sqe, IOSQE_FIXED_FILE);
    written += bytes;
    operations++;
    return sqe;
}

int main(int argc, char **argv) {
    MUST(argc == 2 && chdir(argv[1]) == 0);
    MUST(io_uring_queue_init(8, &ring, 0) == 0);
    if (io_uring_register_files_sparse(&ring, 4) != 0)
        return 0;

    /* Into a place that is named; the write is submitted with the open. */
    struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
    io_uring_prep_openat_direct(sqe, AT_FDCWD, "named", O_CREAT | O_RDWR, 0600, 2);
    io_uring_sqe_set_flags(sqe, IOSQE_IO_LINK);
    write_to(2, 1111);
    MUST(io_uring_submit(&ring) == 2);
    MUST(done() == 0 && done() == 1111);

    /* Into one that the kernel chooses. */
    sqe = io_uring_get_sqe(&ring);
    io_uring_prep_openat_direct(sqe, AT_FDCWD, "chosen", O_CREAT | O_RDWR, 0600, IORING_FILE_INDEX_ALLOC - 1);
    int place = run();
    if (place < 0)
        return 0;
    write_to(place, 2222);
    MUST(run() == 2222);

    /* A place that gets another file by an operation. */
    int fd = open("updated", O_CREAT | O_RDWR, 0600);
    sqe = io_uring_get_sqe(&ring);
    io_uring_prep_files_update(sqe, &fd, 1, 2);
    MUST(run() == 1);
    write_to(2, 3333);
    MUST(run() == 3333);
    MUST(close(fd) == 0);

    /* A failed open leaves nothing. */
    sqe = io_uring_get_sqe(&ring);
    io_uring_prep_openat_direct(sqe, AT_FDCWD, "none", O_RDWR, 0, 3);
    MUST(run() == -ENOENT);
    sqe = io_uring_get_sqe(&ring);
    io_uring_prep_close_direct(sqe, 2);
    MUST(run() == 0);
    io_uring_queue_exit(&ring);
    printf("0 %lld %lld\n", written, operations);
    return 0;
}
