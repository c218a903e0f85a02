/* Makes one kind of call over and over, 1 KiB at a time, and prints the nanoseconds that one takes, of CPU time and by the wall clock.
 *
 * argv: operation (pread, pwrite, write, fwrite, fread, lseek), threads, calls of each thread, a folder. Every thread works
 * on a file of its own, over one MiB of it, so that everything stays in the page cache and no more. The times
 * are those of each thread's fastest of ten rounds: what other programs on the machine take from us is not in them.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BYTES 1024
#define SPAN (1024 * 1024)
#define ROUNDS 10
#define MOST_THREADS 256

enum { PREAD, PWRITE, WRITE, FWRITE, FREAD, LSEEK, OPERATIONS };
static const char *const names[OPERATIONS] = {"pread", "pwrite", "write", "fwrite", "fread", "lseek"};

static int operation, threads;
static long calls;
static const char *folder;
static uint64_t least_ns[MOST_THREADS][2];

static uint64_t now_ns(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void must(int condition, const char *what) {
    if (!condition) {
        perror(what);
        exit(1);
    }
}

static void call_often(int fd, FILE *stream, char *data, long count) {
    for (long i = 0; i < count; i++) {
        off_t offset = (off_t)i * BYTES % SPAN;
        switch (operation) {
        case PREAD:
            must(pread(fd, data, BYTES, offset) == BYTES, "pread");
            break;
        case PWRITE:
            must(pwrite(fd, data, BYTES, offset) == BYTES, "pwrite");
            break;
        case WRITE:
            if (offset == 0)
                lseek(fd, 0, SEEK_SET);
            must(write(fd, data, BYTES) == BYTES, "write");
            break;
        case FWRITE:
            if (offset == 0)
                fseek(stream, 0, SEEK_SET);
            must(fwrite(data, 1, BYTES, stream) == BYTES, "fwrite");
            break;
        case FREAD:
            if (offset == 0)
                fseek(stream, 0, SEEK_SET);
            must(fread(data, 1, BYTES, stream) == BYTES, "fread");
            break;
        default:
            must(lseek(fd, offset, SEEK_SET) == offset, "lseek");
        }
    }
}

static void *work(void *argument) {
    int me = (int)(intptr_t)argument;
    char path[4096], data[BYTES];
    memset(data, 'x', sizeof data);
    snprintf(path, sizeof path, "%s/calls-%d", folder, me);
    FILE *stream = fopen(path, "w+");
    must(stream != NULL, path);
    int fd = fileno(stream);
    for (long at = 0; at < SPAN; at += BYTES)
        must(pwrite(fd, data, BYTES, at) == BYTES, "pwrite");
    static const clockid_t clocks[2] = {CLOCK_THREAD_CPUTIME_ID, CLOCK_MONOTONIC};
    least_ns[me][0] = least_ns[me][1] = UINT64_MAX;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t start_ns[2] = {now_ns(clocks[0]), now_ns(clocks[1])};
        call_often(fd, stream, data, calls / ROUNDS);
        for (int clock = 0; clock < 2; clock++) {
            uint64_t used_ns = now_ns(clocks[clock]) - start_ns[clock];
            if (used_ns < least_ns[me][clock])
                least_ns[me][clock] = used_ns;
        }
    }
    fclose(stream);
    unlink(path);
    return NULL;
}

int main(int argc, char **argv) {
    must(argc == 5, "usage: calls OPERATION THREADS CALLS FOLDER");
    while (operation < OPERATIONS && strcmp(argv[1], names[operation]) != 0)
        operation++;
    threads = atoi(argv[2]);
    calls = atol(argv[3]);
    folder = argv[4];
    must(operation < OPERATIONS && threads > 0 && threads <= MOST_THREADS && calls >= ROUNDS, "arguments");
    pthread_t others[MOST_THREADS];
    for (int i = 1; i < threads; i++)
        must(pthread_create(&others[i], NULL, work, (void *)(intptr_t)i) == 0, "pthread_create");
    work((void *)0);
    for (int i = 1; i < threads; i++)
        pthread_join(others[i], NULL);
    double sums[2] = {0, 0};
    for (int i = 0; i < threads; i++)
        for (int clock = 0; clock < 2; clock++)
            sums[clock] += (double)least_ns[i][clock] / threads / (double)(calls / ROUNDS);
    printf("%.1f %.1f\n", sums[0], sums[1]);
    return 0;
}
