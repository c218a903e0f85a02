/* System calls by number. They are recorded as the functions of that name are, and passed on as what they are. The numbers of old calls
 * are those of some processors alone. */
#include "pio_bodies.h"
#include "pio_libaio.h"
#include "pio_numbered.h"
#include "pio_process.h"
#include "pio_seccomp.h"

#include <stdarg.h>

#define DATA(call, offset, size)                                                                                       \
    {                                                                                                                  \
        DATA_BODY(call, fd, offset, size, pass_on(asked))                                                              \
    }
#define WRITE_AT(call, appends, size)                                                                                  \
    {                                                                                                                  \
        WRITE_AT_BODY(call, fd, asked->d, appends, size, pass_on(asked))                                               \
    }
#define COPY(from, from_offset, to, to_offset, count)                                                                  \
    {                                                                                                                  \
        const off64_t *from_at = (const off64_t *)from_offset, *to_at = (const off64_t *)to_offset;                    \
        COPY_BODY(from, from_at, to, to_at, count, pass_on(asked))                                                     \
    }
#define ON_DESCRIPTOR(call, offset, size)                                                                              \
    {                                                                                                                  \
        ON_DESCRIPTOR_BODY(fd, call, offset, size, (int)pass_on(asked))                                                \
    }
#define OPEN(call, folder, path, flags)                                                                                \
    {                                                                                                                  \
        OPEN_BODY(call, folder, (const char *)path, flags, (int)pass_on(asked))                                        \
    }
#define PATH(folder, path, call, size)                                                                                 \
    {                                                                                                                  \
        PATH_BODY(long, folder, (const char *)path, call, size, pass_on(asked))                                        \
    }
#define TWO(call, folder, path, other_folder, other)                                                                   \
    {                                                                                                                  \
        TWO_BODY(call, folder, (const char *)path, other_folder, (const char *)other, (int)pass_on(asked))             \
    }
#define STATUS_AT(path, flags)                                                                                         \
    {                                                                                                                  \
        STATUS_AT_BODY(fd, (const char *)path, flags, (int)pass_on(asked))                                             \
    }
#define BODY(body)                                                                                                     \
    {                                                                                                                  \
        body                                                                                                           \
    }

static long make(const struct numbered *asked) {
    const long a = asked->a, b = asked->b, c = asked->c, d = asked->d, e = asked->e;
    const int fd = (int)a;
    const struct iovec *vector = (const struct iovec *)b;
    switch (asked->number) {
    case SYS_read:
        DATA(PIO_CALL_READ, PIO_NO_OFFSET, (uint64_t)c)
    case SYS_write:
        DATA(PIO_CALL_WRITE, PIO_NO_OFFSET, (uint64_t)c)
    case SYS_pread64:
        DATA(PIO_CALL_PREAD, d, (uint64_t)c)
    case SYS_pwrite64:
        WRITE_AT(PIO_CALL_PWRITE, pio_appends(fd), (uint64_t)c)
    case SYS_readv:
        DATA(PIO_CALL_READV, PIO_NO_OFFSET, vector_bytes(vector, (int)c, result))
    case SYS_writev:
        DATA(PIO_CALL_WRITEV, PIO_NO_OFFSET, vector_bytes(vector, (int)c, result))
    case SYS_preadv:
    case SYS_preadv2: /* `e` is the high half of an offset where one word does not hold it; offset -1 is PIO_NO_OFFSET */
        DATA(PIO_CALL_PREADV, d, vector_bytes(vector, (int)c, result))
    case SYS_pwritev:
        WRITE_AT(PIO_CALL_PWRITEV, pio_appends(fd), vector_bytes(vector, (int)c, result))
    case SYS_pwritev2:
        WRITE_AT(PIO_CALL_PWRITEV, pio_appends_by(fd, (int)asked->f, d), vector_bytes(vector, (int)c, result))
    case SYS_copy_file_range:
    case SYS_splice:
        COPY(fd, b, (int)c, d, (size_t)e)
    case SYS_sendfile:
        COPY((int)b, c, fd, 0, (size_t)d)
#ifdef SYS_open
    case SYS_open:
        OPEN(PIO_CALL_OPEN, AT_FDCWD, a, (int)b)
    case SYS_creat:
        OPEN(PIO_CALL_CREAT, AT_FDCWD, a, O_CREAT | O_WRONLY | O_TRUNC)
#endif
    case SYS_openat:
        OPEN(PIO_CALL_OPEN, fd, b, (int)c)
    case SYS_openat2: /* the flags come first; where it failed, the kernel may not have been able to read them */
        OPEN(PIO_CALL_OPEN, fd, b, result < 0 ? 0 : (int)*(const uint64_t *)c)
    case SYS_close:
        BODY(CLOSE_BODY(fd, (int)pass_on(asked)))
    case SYS_close_range:
        BODY(CLOSE_RANGE_BODY((unsigned)a, (unsigned)b, c, (int)pass_on(asked)))
    case SYS_dup:
        BODY(DUP_BODY(fd, (int)pass_on(asked)))
#ifdef SYS_dup2
    case SYS_dup2:
#endif
    case SYS_dup3:
        BODY(DUP_OVER_BODY(fd, (int)b, pass_on(asked)))
    case SYS_fcntl:
        BODY(FCNTL_BODY(fd, (int)b, c, (int)pass_on(asked)))
    case SYS_lseek:
        BODY(LSEEK_BODY(long, fd, pass_on(asked)))
    case SYS_fsync:
        ON_DESCRIPTOR(PIO_CALL_FSYNC, PIO_NO_OFFSET, 0)
    case SYS_fdatasync:
        ON_DESCRIPTOR(PIO_CALL_FDATASYNC, PIO_NO_OFFSET, 0)
    case SYS_sync_file_range:
        ON_DESCRIPTOR(PIO_CALL_SYNC_FILE_RANGE, b, c)
    case SYS_syncfs:
        ON_DESCRIPTOR(PIO_CALL_SYNC, PIO_NO_OFFSET, 0)
    case SYS_sync:
        BODY(ON_ALL_BODY(PIO_CALL_SYNC, 0, (int)pass_on(asked)))
    case SYS_ftruncate:
        ON_DESCRIPTOR(PIO_CALL_FTRUNCATE, PIO_NO_OFFSET, b)
    case SYS_fallocate:
        ON_DESCRIPTOR(PIO_CALL_FALLOCATE, c, d)
    case SYS_fadvise64:
        ON_DESCRIPTOR(PIO_CALL_POSIX_FADVISE, b, c)
    case SYS_flock:
        ON_DESCRIPTOR(PIO_CALL_FLOCK, PIO_NO_OFFSET, 0)
    case SYS_fchmod:
        ON_DESCRIPTOR(PIO_CALL_CHMOD, PIO_NO_OFFSET, 0)
    case SYS_fstat:
        ON_DESCRIPTOR(PIO_CALL_STAT, PIO_NO_OFFSET, 0)
    case SYS_msync:
        BODY(MSYNC_BODY(b, (int)pass_on(asked)))
    case SYS_statx:
        STATUS_AT(b, (int)c)
    case SYS_newfstatat:
        STATUS_AT(b, (int)d)
#ifdef SYS_stat
    case SYS_stat:
    case SYS_lstat:
        PATH(AT_FDCWD, a, PIO_CALL_STAT, 0)
#endif
    case SYS_truncate:
        PATH(AT_FDCWD, a, PIO_CALL_TRUNCATE, b)
#ifdef SYS_unlink
    case SYS_unlink:
        PATH(AT_FDCWD, a, PIO_CALL_UNLINK, 0)
    case SYS_rmdir:
        PATH(AT_FDCWD, a, PIO_CALL_RMDIR, 0)
    case SYS_mkdir:
        PATH(AT_FDCWD, a, PIO_CALL_MKDIR, 0)
    case SYS_rename:
        TWO(PIO_CALL_RENAME, AT_FDCWD, a, AT_FDCWD, b)
    case SYS_link:
        TWO(PIO_CALL_LINK, AT_FDCWD, a, AT_FDCWD, b)
    case SYS_symlink:
        TWO(PIO_CALL_SYMLINK, AT_FDCWD, b, AT_FDCWD, a)
    case SYS_chmod:
        PATH(AT_FDCWD, a, PIO_CALL_CHMOD, 0)
    case SYS_access:
        PATH(AT_FDCWD, a, PIO_CALL_ACCESS, 0)
    case SYS_readlink:
        PATH(AT_FDCWD, a, PIO_CALL_READLINK, 0)
#endif
    case SYS_unlinkat:
        PATH(fd, b, (int)c & AT_REMOVEDIR ? PIO_CALL_RMDIR : PIO_CALL_UNLINK, 0)
    case SYS_mkdirat:
        PATH(fd, b, PIO_CALL_MKDIR, 0)
#ifdef SYS_renameat
    case SYS_renameat:
#endif
    case SYS_renameat2:
        TWO(PIO_CALL_RENAME, fd, b, (int)c, d)
    case SYS_linkat:
        TWO(PIO_CALL_LINK, fd, b, (int)c, d)
    case SYS_symlinkat:
        TWO(PIO_CALL_SYMLINK, (int)b, c, (int)b, a)
    case SYS_fchmodat:
        PATH(fd, b, PIO_CALL_CHMOD, 0)
    case SYS_faccessat:
        PATH(fd, b, PIO_CALL_ACCESS, 0)
    case SYS_readlinkat:
        PATH(fd, b, PIO_CALL_READLINK, 0)
    case SYS_execve:
    case SYS_execveat:
        return pio_numbered_exec(asked);
    case SYS_wait4:
    case SYS_waitid:
        return pio_numbered_wait(asked);
    case SYS_exit_group:
        pio_finish_process();
        return pass_on(asked);
    case SYS_io_submit:
    case SYS_io_getevents:
    case SYS_io_cancel:
#ifdef SYS_io_pgetevents
    case SYS_io_pgetevents:
#endif
        return pio_numbered_libaio(asked);
    case SYS_prctl:
    case SYS_seccomp:
        return pio_restrict(asked);
    case SYS_io_uring_setup:
        return pio_ring_setup(asked);
    case SYS_io_uring_enter:
        return pio_ring_enter(asked);
    case SYS_io_uring_register:
        return pio_ring_register(asked);
    default: /* also mmap: libraries that stand for it make the call so */
        return pass_on(asked);
    }
}

EXPORT long syscall(long number, ...) {
    va_list words;
    va_start(words, number);
    struct numbered asked = {.number = number};
    asked.a = va_arg(words, long), asked.b = va_arg(words, long), asked.c = va_arg(words, long);
    asked.d = va_arg(words, long), asked.e = va_arg(words, long), asked.f = va_arg(words, long);
    va_end(words);
    return make(&asked);
}
