/* Opens a file by a ring, with the number of a folder that was closed by an instruction of the program's own. argv: the file. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv) {
    struct io_uring_params params;
    char data[10];
    memset(&params, 0, sizeof params);
    int ring = (int)syscall(425, 4, &params);
    if (argc != 2 || ring < 0)
        return 1;
    char *sq = mmap(NULL, params.sq_off.array + 4 * sizeof(unsigned), PROT_READ | PROT_WRITE, MAP_SHARED, ring, 0);
    char *cq = mmap(NULL, params.cq_off.cqes + 8 * sizeof(struct io_uring_cqe), PROT_READ | PROT_WRITE, MAP_SHARED, ring,
                    IORING_OFF_CQ_RING);
    struct io_uring_sqe *sqes = mmap(NULL, 4 * sizeof *sqes, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
    if (sq == MAP_FAILED || cq == MAP_FAILED || sqes == MAP_FAILED)
        return 2;
    int number = open("/", O_RDONLY | O_DIRECTORY);
    long closed;
    __asm__ volatile("syscall" : "=a"(closed) : "a"(SYS_close), "D"(number) : "rcx", "r11", "memory");
    sqes[0] = (struct io_uring_sqe){.opcode = IORING_OP_OPENAT, .fd = AT_FDCWD, .addr = (unsigned long)argv[1]};
    ((unsigned *)(sq + params.sq_off.array))[0] = 0;
    __atomic_store_n((unsigned *)(sq + params.sq_off.tail), 1, __ATOMIC_RELEASE);
    if (closed != 0 || syscall(426, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1)
        return 3;
    const struct io_uring_cqe *done = (const struct io_uring_cqe *)(cq + params.cq_off.cqes);
    return done->res == number && read(number, data, sizeof data) == 10 && close(number) == 0 ? 0 : 4;
}
