/* Wrappers to compare the recorder with: they only pass on or, with -DSTAMPS, take the time before and after, too, which is
 * the least that any recorder of calls must do. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#ifdef STAMPS
#include <time.h>
static __thread volatile uint64_t stamps[2] __attribute__((tls_model("initial-exec")));
#if defined(__x86_64__)
static inline uint64_t now(void) {
    return __builtin_ia32_rdtsc();
}
#else
static inline uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}
#endif
#define STAMP(which) stamps[which] = now()
#else
#define STAMP(which) (void)0
#endif

#define WRAP(type, name, parameters, arguments)                                                                        \
    type name parameters {                                                                                             \
        static type(*next) parameters;                                                                                 \
        if (__builtin_expect(next == NULL, 0))                                                                         \
            next = (type(*) parameters)dlsym(RTLD_NEXT, #name);                                                        \
        STAMP(0);                                                                                                      \
        type result = next arguments;                                                                                  \
        STAMP(1);                                                                                                      \
        return result;                                                                                                 \
    }

WRAP(ssize_t, pread, (int fd, void *data, size_t count, off_t offset), (fd, data, count, offset))
WRAP(ssize_t, pwrite, (int fd, const void *data, size_t count, off_t offset), (fd, data, count, offset))
WRAP(ssize_t, write, (int fd, const void *data, size_t count), (fd, data, count))
WRAP(size_t, fwrite, (const void *data, size_t size, size_t count, FILE *stream), (data, size, count, stream))
WRAP(size_t, fread, (void *data, size_t size, size_t count, FILE *stream), (data, size, count, stream))
WRAP(off_t, lseek, (int fd, off_t offset, int whence), (fd, offset, whence))
