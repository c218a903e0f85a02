/* Makes a ring by the C library, and enters it from another thread by an instruction of its own. argv: a file. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int ring;
static long result;

static void *enter(void *nothing) {
#if defined(__x86_64__)
    register long r10 __asm__("r10") = 0;
    register long r8 __asm__("r8") = 0;
    register long r9 __asm__("r9") = 0;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(426), "D"(ring), "S"(1), "d"(0), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
#endif
    return nothing;
}

int main(int argc, char **argv) {
    struct io_uring_params params;
    memset(&params, 0, sizeof params);
    ring = (int)syscall(425, 4, &params);
    int fd = argc == 2 ? open(argv[1], O_CREAT | O_WRONLY, 0600) : -1;
    if (ring < 0 || fd < 0)
        return 1;
    char *rings = mmap(NULL, params.sq_off.array + 4 * sizeof(unsigned), PROT_READ | PROT_WRITE, MAP_SHARED, ring, 0);
    struct io_uring_sqe *sqes = mmap(NULL, 4 * sizeof *sqes, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
    if (rings == MAP_FAILED || sqes == MAP_FAILED)
        return 2;
    sqes[0] = (struct io_uring_sqe){.opcode = IORING_OP_WRITE, .fd = fd, .addr = (unsigned long)"hello", .len = 5};
    ((unsigned *)(rings + params.sq_off.array))[0] = 0;
    __atomic_store_n((unsigned *)(rings + params.sq_off.tail), 1, __ATOMIC_RELEASE);
    pthread_t thread;
    if (pthread_create(&thread, NULL, enter, NULL) != 0 || pthread_join(thread, NULL) != 0 || result != 1)
        return 3;
    return close(ring) + close(fd);
}
