/* System calls by number. Those that return as the functions do are the functions. */
#include "pio_kernel.h"
#include "pio_libaio.h"
#include "pio_seccomp.h"
#include "pio_uring.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* Ours, which is there where the headers are those of a C library before 2.34, too. */
int close_range(unsigned first, unsigned last, int flags);

EXPORT long syscall(long number, ...) {
    va_list arguments;
    va_start(arguments, number);
    long a = va_arg(arguments, long), b = va_arg(arguments, long), c = va_arg(arguments, long),
         d = va_arg(arguments, long), e = va_arg(arguments, long), f = va_arg(arguments, long);
    va_end(arguments);
    switch (number) {
    case SYS_read:
        return read((int)a, (void *)b, (size_t)c);
    case SYS_write:
        return write((int)a, (const void *)b, (size_t)c);
    case SYS_pread64:
        return pread64((int)a, (void *)b, (size_t)c, d);
    case SYS_pwrite64:
        return pwrite64((int)a, (const void *)b, (size_t)c, d);
    case SYS_readv:
        return readv((int)a, (const struct iovec *)b, (int)c);
    case SYS_writev:
        return writev((int)a, (const struct iovec *)b, (int)c);
    case SYS_openat:
        return openat64((int)a, (const char *)b, (int)c, (mode_t)d);
    case SYS_close:
        return close((int)a);
    case SYS_close_range:
        return close_range((unsigned)a, (unsigned)b, (int)c);
    case SYS_lseek:
        return lseek64((int)a, b, (int)c);
    case SYS_fsync:
        return fsync((int)a);
    case SYS_fdatasync:
        return fdatasync((int)a);
    case SYS_statx:
        return statx((int)a, (const char *)b, (int)c, (unsigned)d, (struct statx *)e);
    case SYS_copy_file_range:
        return copy_file_range((int)a, (off64_t *)b, (int)c, (off64_t *)d, (size_t)e, (unsigned)f);
    case SYS_sendfile:
        return sendfile64((int)a, (int)b, (off64_t *)c, (size_t)d);
    case SYS_io_submit:
    case SYS_io_getevents:
    case SYS_io_cancel:
#ifdef SYS_io_pgetevents
    case SYS_io_pgetevents:
#endif
        return pio_libaio_syscall(number, a, b, c, d, e, f);
    case SYS_prctl:
    case SYS_seccomp:
        return pio_restrict(number, a, b, c, d, e);
    case SYS_io_uring_setup:
        return pio_ring_setup(a, (struct ring_params *)b);
    case SYS_io_uring_enter:
        return pio_ring_enter((int)a, b, c, d, e, f);
    case SYS_io_uring_register:
        return pio_ring_register((int)a, b, (const void *)c, d);
    default:
        return KERNEL(number, a, b, c, d, e, f);
    }
}
