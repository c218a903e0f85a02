#include "pio_kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void *pio_next_of_syscall;

#if defined(__x86_64__)
long pio_kernel_mmap(void *address, size_t length, int protection, int flags, int fd, off64_t offset) {
    register long r10 __asm__("r10") = flags;
    register long r8 __asm__("r8") = fd;
    register long r9 __asm__("r9") = offset;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(SYS_mmap), "D"(address), "S"(length), "d"((long)protection), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    if (result < 0 && result > -4096) {
        errno = (int)-result;
        return -1;
    }
    return result;
}
#else
long pio_kernel_mmap(void *address, size_t length, int protection, int flags, int fd, off64_t offset) {
    return KERNEL(SYS_mmap, address, length, protection, flags, fd, offset);
}
#endif

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
