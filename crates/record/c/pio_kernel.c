#include "pio_kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOST_ERRORS 4095 /* the kernel returns their numbers, negative */

#if defined(__x86_64__)
static long call(long number, long a, long b, long c, long d, long e, long f) {
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__)
static long call(long number, long a, long b, long c, long d, long e, long f) {
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
}
#elif defined(__riscv)
static long call(long number, long a, long b, long c, long d, long e, long f) {
    register long a7 __asm__("a7") = number;
    register long a0 __asm__("a0") = a;
    register long a1 __asm__("a1") = b;
    register long a2 __asm__("a2") = c;
    register long a3 __asm__("a3") = d;
    register long a4 __asm__("a4") = e;
    register long a5 __asm__("a5") = f;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a7), "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(a5) : "memory");
    return a0;
}
#else
/* Who stands for syscall() behind us sees these. */
static long call(long number, long a, long b, long c, long d, long e, long f) {
    static void *next;
    long result = ((long (*)(long, ...))next_function(&next, "syscall"))(number, a, b, c, d, e, f);
    return result == -1 ? -errno : result;
}
#endif

long pio_kernel(long number, ...) {
    va_list words;
    va_start(words, number);
    long a = va_arg(words, long), b = va_arg(words, long), c = va_arg(words, long), d = va_arg(words, long),
         e = va_arg(words, long), f = va_arg(words, long);
    va_end(words);
    long result = call(number, a, b, c, d, e, f);
    if (result < 0 && result >= -MOST_ERRORS) {
        errno = (int)-result;
        return -1;
    }
    return result;
}

bool pio_can_read(const char *name) {
    int saved = errno;
    bool can = KERNEL(SYS_faccessat, AT_FDCWD, name, F_OK) == 0 || errno != EFAULT;
    errno = saved;
    return can;
}

size_t pio_read_small_file(const char *path, char *buffer, size_t size) {
    size_t length = 0;
    int fd = (int)KERNEL(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    while (length < size) {
        long got = KERNEL(SYS_read, fd, buffer + length, size - length);
        if (got <= 0)
            break;
        length += (size_t)got;
    }
    KERNEL(SYS_close, fd);
    return length;
}

int64_t pio_waited_ns(const char *schedstat) {
    char text[96];
    text[pio_read_small_file(schedstat, text, sizeof text - 1)] = 0;
    const char *second = strchr(text, ' ');
    return second == NULL ? -1 : strtoll(second, NULL, 10);
}

void pio_host_name(struct utsname *names) {
    names->nodename[63] = 0;
    for (char *c = names->nodename; *c; c++)
        if (*c == '/')
            *c = '_';
}

/* Room for a path that is not on the stack, as programs may open and read files in handlers that have a small one. A
 * handler that interrupts us while we use the thread's own gets a page of its own. */
static __thread char path_buffer[PATH_MAX] __attribute__((tls_model("initial-exec")));
static __thread bool path_buffer_is_taken __attribute__((tls_model("initial-exec")));

char *pio_take_path_buffer(void) {
    if (LIKELY(!path_buffer_is_taken)) {
        path_buffer_is_taken = true;
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        return path_buffer;
    }
    char *page = (char *)KERNEL(SYS_mmap, NULL, PATH_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return page == (char *)MAP_FAILED ? NULL : page;
}

void pio_give_path_buffer(char *buffer) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (buffer == path_buffer)
        path_buffer_is_taken = false;
    else if (buffer != NULL)
        KERNEL(SYS_munmap, buffer, PATH_MAX);
}
