/* One thread submits writes to a ring in batches while another waits for them. argv: a file. */
#include <fcntl.h>
#include <liburing.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

enum { WRITES = 2000, BATCH = 50, BYTES = 512 };

static struct io_uring ring;
static int done;

static void *wait_for_all(void *failed) {
    while (done < WRITES) {
        struct io_uring_cqe *entry;
        if (io_uring_wait_cqe(&ring, &entry) != 0 || entry->res != BYTES)
            *(int *)failed = 1;
        io_uring_cqe_seen(&ring, entry);
        __atomic_fetch_add(&done, 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

int main(int argc, char **argv) {
    static char data[BYTES];
    int fd = argc == 2 ? open(argv[1], O_CREAT | O_WRONLY, 0600) : -1;
    int failed = 0;
    pthread_t thread;
    if (fd < 0 || io_uring_queue_init(256, &ring, 0) != 0 || pthread_create(&thread, NULL, wait_for_all, &failed) != 0)
        return 1;
    for (int made = 1; made <= WRITES; made++) {
        struct io_uring_sqe *entry;
        while (made - __atomic_load_n(&done, __ATOMIC_ACQUIRE) > 2 * BATCH)
            sched_yield();
        if ((entry = io_uring_get_sqe(&ring)) == NULL)
            return 3;
        io_uring_prep_write(entry, fd, data, BYTES, (made - 1) * BYTES);
        io_uring_sqe_set_data64(entry, (unsigned)made);
        if (made % BATCH == 0 && io_uring_submit(&ring) < 0)
            return 2;
    }
    pthread_join(thread, NULL);
    io_uring_queue_exit(&ring);
    return close(fd) + failed;
}
