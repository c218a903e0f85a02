/* Locks on ranges of a file, by fcntl and lockf. Part of pio_posix.c. */

/* Commands that take a lock or give one back. On machines of 64 bits, the forms for large files have the same numbers. */
static inline bool is_lock(int command) {
    return command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK || command == F_OFD_SETLKW;
}

/* After a lock was taken or given back, or was not. `lock` is looked at only if the kernel did. */
static __attribute__((noinline)) void finish_lock(const struct pioscope_span *span, int fd, const struct flock *lock,
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
    finish_simple(span, PIO_CALL_FCNTL_LOCK, fd, offset, size, result);
}

#define LOCK_BODY(fd, next_call, lock)                                                                                 \
    {                                                                                                                  \
        struct pioscope_span span;                                                                                     \
        span_begin(&span);                                                                                             \
        int result = next_call;                                                                                        \
        finish_lock(&span, fd, lock, result);                                                                          \
        return result;                                                                                                 \
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
