/* Makes calls as the MPI recorder reports them, in which it computes, sleeps, or both. argv: a file.
 *
 * Whatever else the machine does, 20 ms of computing are 20 ms of CPU time, and 60 ms of sleep are none. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "pio_recorder.h"

enum { SEND = 256, RECV = 257, WAIT = 260, BARRIER = 263, BCAST = 264, OPEN = 128, SYNC = 141, GET_SIZE = 143 };

static uint64_t cpu_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void compute(void) {
    for (uint64_t start_ns = cpu_ns(); cpu_ns() < start_ns + 20000000;)
        ;
}

static void rest(void) {
    nanosleep(&(struct timespec){.tv_nsec = 60000000}, NULL);
}

static void both(void) {
    rest();
    compute();
}

static void nothing(void) {
}

#define SERVICE(name) __typeof__(&pioscope_##name) name = (__typeof__(name))dlsym(RTLD_DEFAULT, "pioscope_" #name)

static void message(uint32_t call, void (*inside)(void)) {
    SERVICE(message_begin);
    SERVICE(message_end);
    struct pioscope_span span;
    uint64_t before = message_begin(&span, 0);
    inside();
    message_end(&span, before, call, -1, 0, 0);
}

static void *begin(uint32_t call) {
    SERVICE(io_begin);
    struct pioscope_io io = {.call = call, .file = 1, .ranks = 1, .path = call == OPEN ? "/nowhere" : NULL};
    uint64_t operation;
    return io_begin(&io, &operation);
}

int main(int argc, char **argv) {
    SERVICE(io_end);
    char byte = 0;
    int fd = open(argc == 2 ? argv[1] : "", O_CREAT | O_RDWR, 0600);
    if (io_end == NULL || fd < 0 || write(fd, &byte, 1) != 1)
        return 1;
    io_end(begin(OPEN), 0);
    message(SEND, compute);
    message(RECV, rest);
    message(WAIT, both);
    /* What lies below a call of MPI-IO has its own times; its own writes are none of the thread's computing. */
    void *sync = begin(SYNC);
    rest();
    message(BARRIER, both);
    if (pwrite(fd, &byte, 1, 0) != 1)
        return 1;
    compute();
    io_end(sync, 0);
    /* A sleep before a call of MPI-IO was taken for computing. */
    rest();
    io_end(begin(GET_SIZE), 0);
    both();
    message(BCAST, nothing);
    return 0;
}
