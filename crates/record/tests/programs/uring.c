/* I/O by liburing. argv: a folder, and what the ring is to be: "plain", "sqpoll", or "fixed" (files are registered, and
 * their descriptors closed). Prints the bytes that it read and wrote, and how many such operations it made. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MUST(condition)                                                                                                \
    if (!(condition)) {                                                                                                \
        dprintf(2, "line %d: %s: %s\n", __LINE__, #condition, strerror(errno));                                        \
        exit(1);                                                                                                       \
    }

enum { BLOCK = 4096, DEPTH = 8, COUNT = 300 };
enum { OTHER, READ, WRITE };

static long long moved[3], operations[3];

/* The kernel's thread, where there is one, may not have taken those before. */
static struct io_uring_sqe *next(struct io_uring *ring) {
    struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
    while (sqe == NULL && (ring->flags & IORING_SETUP_SQPOLL) != 0) {
        MUST(io_uring_sqring_wait(ring) >= 0);
        sqe = io_uring_get_sqe(ring);
    }
    MUST(sqe != NULL);
    return sqe;
}

/* The kind is the user data: most operations share it with others in flight. */
static void kind(struct io_uring_sqe *sqe, uintptr_t what, int is_fixed) {
    io_uring_sqe_set_data(sqe, (void *)what);
    if (is_fixed)
        io_uring_sqe_set_flags(sqe, IOSQE_FIXED_FILE);
}

static int take(struct io_uring *ring) {
    struct io_uring_cqe *cqe;
    MUST(io_uring_wait_cqe(ring, &cqe) == 0);
    uintptr_t what = (uintptr_t)io_uring_cqe_get_data(cqe);
    int result = cqe->res;
    if (what != OTHER) {
        __atomic_fetch_add(&operations[what], 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&moved[what], result > 0 ? result : 0, __ATOMIC_RELAXED);
    }
    io_uring_cqe_seen(ring, cqe);
    return result;
}

/* Writes and reads of one file, several in flight, completions taken one by one. */
static void stream(struct io_uring *ring, int fd, int is_fixed) {
    static char data[BLOCK];
    for (int pass = 0; pass < 2; pass++) {
        int begun = 0, done = 0;
        while (done < COUNT) {
            while (begun < COUNT && begun - done < DEPTH) {
                struct io_uring_sqe *sqe = next(ring);
                uint64_t offset = (uint64_t)begun * BLOCK;
                if (pass == 0)
                    io_uring_prep_write(sqe, fd, data, BLOCK, offset);
                else
                    io_uring_prep_read(sqe, fd, data, BLOCK, offset + 1000); /* the last one is short */
                kind(sqe, pass == 0 ? WRITE : READ, is_fixed);
                begun++;
            }
            MUST(io_uring_submit(ring) >= 0);
            take(ring);
            done++;
        }
    }
}

static void *stream_of_its_own(void *path) {
    struct io_uring ring;
    MUST(io_uring_queue_init(DEPTH, &ring, 0) == 0);
    int fd = open(path, O_CREAT | O_RDWR, 0600);
    stream(&ring, fd, 0);
    close(fd);
    io_uring_queue_exit(&ring);
    return NULL;
}

/* Of a ring that the kernel's thread empties, the number is that of what it has not taken so far. */
static int is_one(struct io_uring *ring, int submitted) {
    return submitted == 1 || (submitted >= 0 && (ring->flags & IORING_SETUP_SQPOLL) != 0);
}

static void one(struct io_uring *ring, struct io_uring_sqe *sqe, uintptr_t what, int is_fixed, int expected) {
    kind(sqe, what, is_fixed);
    MUST(is_one(ring, io_uring_submit_and_wait(ring, 1)));
    int result = take(ring);
    if (result != expected && expected != -1) {
        dprintf(2, "%d instead of %d\n", result, expected);
        exit(1);
    }
}

int main(int argc, char **argv) {
    MUST(argc == 3 && chdir(argv[1]) == 0);
    struct io_uring ring;
    struct io_uring_params params = {0};
    int is_fixed = strcmp(argv[2], "fixed") == 0;
    params.flags = strcmp(argv[2], "sqpoll") == 0 ? IORING_SETUP_SQPOLL : 0;
    MUST(io_uring_queue_init_params(DEPTH, &ring, &params) == 0);

    int fd = open("file", O_CREAT | O_RDWR, 0600), number = fd;
    if (is_fixed) {
        int files[2] = {-1, fd};
        MUST(io_uring_register_files(&ring, files, 2) == 0);
        number = 1;
        MUST(close(fd) == 0 && open("another", O_CREAT | O_RDWR, 0600) == fd);
    }
    stream(&ring, number, is_fixed);

    static char data[BLOCK];
    struct iovec parts[2] = {{data, 100}, {data, 200}};
    struct io_uring_sqe *sqe = next(&ring);
    io_uring_prep_writev(sqe, number, parts, 2, 50);
    one(&ring, sqe, WRITE, is_fixed, 300);
    sqe = next(&ring);
    io_uring_prep_readv(sqe, number, parts, 2, 60);
    one(&ring, sqe, READ, is_fixed, 300);
    sqe = next(&ring);
    io_uring_prep_read(sqe, number, data, BLOCK, 1ull << 40);
    one(&ring, sqe, READ, is_fixed, 0);
    struct iovec buffer = {data, BLOCK};
    MUST(io_uring_register_buffers(&ring, &buffer, 1) == 0);
    sqe = next(&ring);
    io_uring_prep_write_fixed(sqe, number, data, 77, 10, 0);
    one(&ring, sqe, WRITE, is_fixed, 77);
    sqe = next(&ring);
    io_uring_prep_read_fixed(sqe, number, data, 55, 10, 0);
    one(&ring, sqe, READ, is_fixed, 55);
    sqe = next(&ring);
    io_uring_prep_fsync(sqe, number, IORING_FSYNC_DATASYNC);
    one(&ring, sqe, OTHER, is_fixed, 0);
    sqe = next(&ring);
    io_uring_prep_fallocate(sqe, number, 0, 0, 4 << 20);
    one(&ring, sqe, OTHER, is_fixed, 0);
    sqe = next(&ring);
    io_uring_prep_nop(sqe);
    one(&ring, sqe, OTHER, 0, 0);

    /* Names, and a file that is opened and closed by the ring. */
    struct statx status;
    sqe = next(&ring);
    io_uring_prep_statx(sqe, AT_FDCWD, "none", 0, STATX_SIZE, &status);
    one(&ring, sqe, OTHER, 0, -ENOENT);
    sqe = next(&ring);
    io_uring_prep_openat(sqe, AT_FDCWD, "none", O_RDONLY, 0);
    one(&ring, sqe, OTHER, 0, -ENOENT);
    sqe = next(&ring);
    io_uring_prep_openat(sqe, AT_FDCWD, "opened", O_CREAT | O_RDWR, 0600);
    kind(sqe, OTHER, 0);
    MUST(is_one(&ring, io_uring_submit(&ring)));
    int opened = take(&ring);
    MUST(opened >= 0);
    sqe = next(&ring);
    io_uring_prep_write(sqe, opened, data, 1234, 0);
    one(&ring, sqe, WRITE, 0, 1234);
    sqe = next(&ring);
    io_uring_prep_close(sqe, opened);
    one(&ring, sqe, OTHER, 0, 0);

    pthread_t threads[2];
    MUST(pthread_create(&threads[0], NULL, stream_of_its_own, "first") == 0);
    MUST(pthread_create(&threads[1], NULL, stream_of_its_own, "second") == 0);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    io_uring_queue_exit(&ring);
    printf("%lld %lld %lld\n", moved[READ], moved[WRITE], operations[READ] + operations[WRITE]);
    return 0;
}
