#include "pio_locks.h"
#include "pio_hook.h"
#include "pio_kernel.h"

#include <unistd.h>

__attribute__((noinline)) void pio_finish_lock(const struct pioscope_span *span, int fd, const struct flock *lock,
                                               int result) {
    uint64_t offset = PIO_NO_OFFSET, size = 0;
    int saved = errno;
    if (result == 0 || (saved != EFAULT && saved != EINVAL && saved != EBADF)) {
        off_t start = lock->l_start, length = lock->l_len;
        if (length < 0) { /* the bytes before */
            start += length;
            length = -length;
        }
        if (lock->l_whence == SEEK_CUR)
            start += (off_t)KERNEL(SYS_lseek, fd, 0, SEEK_CUR);
        if (lock->l_whence != SEEK_END && start >= 0)
            offset = (uint64_t)start;
        size = (uint64_t)length;
    }
    errno = saved;
    pio_finish_simple(span, PIO_CALL_FCNTL_LOCK, fd, offset, size, result);
}

/* A lock of fcntl from the descriptor's position on; the C library does not call its own fcntl by name. */
#define HOOK_LOCKF(name, offset_type)                                                                                  \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT int name(int fd, int command, offset_type length) {                                                         \
        if (command == F_TEST || !tracked(fd))                                                                         \
            return NEXT(name)(fd, command, length);                                                                    \
        const struct flock lock = {.l_whence = SEEK_CUR, .l_len = length};                                             \
        LOCK_BODY(fd, NEXT(name)(fd, command, length), &lock)                                                          \
    }

HOOK_LOCKF(lockf, off_t)
HOOK_LOCKF(lockf64, off64_t)
