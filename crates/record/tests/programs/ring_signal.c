/* Enters a ring by an instruction of its own, after it asked for SIGSYS in older ways than by sigaction. argv: a file. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/io_uring.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile int signals;

static void handler(int number) {
    signals += number == SIGSYS;
}

static long enter(int ring) {
    register long r10 __asm__("r10") = 1; /* IORING_ENTER_GETEVENTS */
    register long r8 __asm__("r8") = 0;
    register long r9 __asm__("r9") = 0;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(426), "D"(ring), "S"(1), "d"(1), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

int main(int argc, char **argv) {
    struct io_uring_params params;
    memset(&params, 0, sizeof params);
    int ring = (int)syscall(425, 4, &params);
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
    if (signal(SIGSYS, SIG_IGN) != SIG_DFL || sysv_signal(SIGSYS, SIG_DFL) != SIG_IGN || signal(SIGSYS, handler) != SIG_DFL)
        return 3;
    if (enter(ring) != 1 || signals != 0)
        return 4;
    raise(SIGSYS);
    return signals == 1 && close(ring) + close(fd) == 0 ? 0 : 5;
}
