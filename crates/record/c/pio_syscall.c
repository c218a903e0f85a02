/* System calls by number. Those that return as the functions do are the functions. The numbers of old calls are those of some processors
 * alone. */
#include "pio_by_number.h"
#include "pio_kernel.h"
#include "pio_libaio.h"
#include "pio_seccomp.h"
#include "pio_uring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Ours, which is there where the headers are those of a C library before 2.34, too. */
int close_range(unsigned first, unsigned last, int flags);
int execveat(int folder, const char *path, char *const words[], char *const environment[], int flags);

/* As the kernel says it. */
static long error_of(int error) {
    if (error == 0)
        return 0;
    errno = error;
    return -1;
}

/* A program or a library may have such a function of its own, which makes the call by its number: it is what is meant then. */
static __thread bool is_within __attribute__((tls_model("initial-exec")));

static long by_function(long number, long a, long b, long c, long d, long e, long f) {
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
    case SYS_preadv:
        return preadv64((int)a, (const struct iovec *)b, (int)c, d);
    case SYS_pwritev:
        return pwritev64((int)a, (const struct iovec *)b, (int)c, d);
    case SYS_preadv2: /* `e` is the high half of an offset where one word does not hold it */
        return preadv64v2((int)a, (const struct iovec *)b, (int)c, d, (int)f);
    case SYS_pwritev2:
        return pwritev64v2((int)a, (const struct iovec *)b, (int)c, d, (int)f);
#ifdef SYS_open
    case SYS_open:
        return open64((const char *)a, (int)b, (mode_t)c);
    case SYS_creat:
        return creat64((const char *)a, (mode_t)b);
#endif
    case SYS_openat:
        return openat64((int)a, (const char *)b, (int)c, (mode_t)d);
    case SYS_openat2:
        return pio_openat2((int)a, (const char *)b, (const uint64_t *)c, (size_t)d);
    case SYS_close:
        return close((int)a);
    case SYS_close_range:
        return close_range((unsigned)a, (unsigned)b, (int)c);
    case SYS_dup:
        return dup((int)a);
#ifdef SYS_dup2
    case SYS_dup2:
        return dup2((int)a, (int)b);
#endif
    case SYS_dup3:
        return dup3((int)a, (int)b, (int)c);
    case SYS_fcntl: /* the C library asks the kernel for an owner in another way */
        return b == F_GETOWN ? KERNEL(number, a, b, c) : fcntl((int)a, (int)b, c);
    case SYS_lseek:
        return lseek64((int)a, b, (int)c);
    case SYS_fsync:
        return fsync((int)a);
    case SYS_fdatasync:
        return fdatasync((int)a);
    case SYS_sync_file_range:
        return sync_file_range((int)a, b, c, (unsigned)d);
    case SYS_syncfs:
        return syncfs((int)a);
    case SYS_sync:
        sync();
        return 0;
    case SYS_ftruncate:
        return ftruncate64((int)a, b);
    case SYS_fallocate:
        return fallocate64((int)a, (int)b, c, d);
    case SYS_fadvise64:
        return error_of(posix_fadvise64((int)a, b, c, (int)d));
    case SYS_flock:
        return flock((int)a, (int)b);
    case SYS_msync:
        return msync((void *)a, (size_t)b, (int)c);
    case SYS_copy_file_range:
        return copy_file_range((int)a, (off64_t *)b, (int)c, (off64_t *)d, (size_t)e, (unsigned)f);
    case SYS_sendfile:
        return sendfile64((int)a, (int)b, (off64_t *)c, (size_t)d);
    case SYS_splice:
        return splice((int)a, (off64_t *)b, (int)c, (off64_t *)d, (size_t)e, (unsigned)f);
    case SYS_statx:
        return statx((int)a, (const char *)b, (int)c, (unsigned)d, (struct statx *)e);
#ifdef SYS_stat
    case SYS_stat:
    case SYS_lstat:
        return pio_stat_by_number(number, (const char *)a, (void *)b);
#endif
    case SYS_fstat:
        return pio_fstat_by_number((int)a, (void *)b);
    case SYS_newfstatat:
        return pio_fstatat_by_number((int)a, (const char *)b, (void *)c, (int)d);
    case SYS_truncate:
        return truncate64((const char *)a, b);
#ifdef SYS_unlink
    case SYS_unlink:
        return unlink((const char *)a);
    case SYS_rmdir:
        return rmdir((const char *)a);
    case SYS_mkdir:
        return mkdir((const char *)a, (mode_t)b);
    case SYS_rename:
        return rename((const char *)a, (const char *)b);
    case SYS_link:
        return link((const char *)a, (const char *)b);
    case SYS_symlink:
        return symlink((const char *)a, (const char *)b);
    case SYS_chmod:
        return chmod((const char *)a, (mode_t)b);
    case SYS_access:
        return access((const char *)a, (int)b);
    case SYS_readlink:
        return readlink((const char *)a, (char *)b, (size_t)c);
#endif
    case SYS_unlinkat:
        return unlinkat((int)a, (const char *)b, (int)c);
    case SYS_mkdirat:
        return mkdirat((int)a, (const char *)b, (mode_t)c);
#ifdef SYS_renameat
    case SYS_renameat:
        return renameat((int)a, (const char *)b, (int)c, (const char *)d);
#endif
    case SYS_renameat2:
        return renameat2((int)a, (const char *)b, (int)c, (const char *)d, (unsigned)e);
    case SYS_linkat:
        return linkat((int)a, (const char *)b, (int)c, (const char *)d, (int)e);
    case SYS_symlinkat:
        return symlinkat((const char *)a, (int)b, (const char *)c);
    case SYS_fchmod:
        return fchmod((int)a, (mode_t)b);
    case SYS_fchmodat:
        return fchmodat((int)a, (const char *)b, (mode_t)c, 0);
    case SYS_faccessat:
        return faccessat((int)a, (const char *)b, (int)c, 0);
    case SYS_readlinkat:
        return readlinkat((int)a, (const char *)b, (char *)c, (size_t)d);
    case SYS_execve:
        return execve((const char *)a, (char *const *)b, (char *const *)c);
    case SYS_execveat:
        return execveat((int)a, (const char *)b, (char *const *)c, (char *const *)d, (int)e);
    case SYS_wait4:
        return wait4((pid_t)a, (int *)b, (int)c, (struct rusage *)d);
    case SYS_waitid: /* the function does not ask for what the child used */
        return e != 0 ? KERNEL(number, a, b, c, d, e) : waitid((idtype_t)a, (id_t)b, (siginfo_t *)c, (int)d);
    case SYS_exit_group:
        _exit((int)a);
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
    default: /* also mmap: libraries that stand for it make the call so */
        is_within = false;
        return KERNEL(number, a, b, c, d, e, f);
    }
}

EXPORT long syscall(long number, ...) {
    va_list arguments;
    va_start(arguments, number);
    long a = va_arg(arguments, long), b = va_arg(arguments, long), c = va_arg(arguments, long),
         d = va_arg(arguments, long), e = va_arg(arguments, long), f = va_arg(arguments, long);
    va_end(arguments);
    if (UNLIKELY(is_within))
        return KERNEL(number, a, b, c, d, e, f);
    is_within = true;
    long result = by_function(number, a, b, c, d, e, f);
    is_within = false;
    return result;
}
