/* Calls on a descriptor that move it, change the file's size, sync it, or advise on its use. */
#include "pio_bodies.h"

#include <fcntl.h>
#include <unistd.h>

#define HOOK_LSEEK(name, offset_type)                                                                                  \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT offset_type name(int fd, offset_type offset, int whence) {                                                  \
        LSEEK_BODY(offset_type, fd, NEXT(name)(fd, offset, whence))                                                    \
    }

HOOK_LSEEK(lseek, off_t)
HOOK_LSEEK(lseek64, off64_t)
HOOK_ON_DESCRIPTOR(fsync, (int fd), PIO_CALL_FSYNC, PIO_NO_OFFSET, 0, NEXT(fsync)(fd))
HOOK_ON_DESCRIPTOR(fdatasync, (int fd), PIO_CALL_FDATASYNC, PIO_NO_OFFSET, 0, NEXT(fdatasync)(fd))
HOOK_ON_DESCRIPTOR(ftruncate, (int fd, off_t size), PIO_CALL_FTRUNCATE, PIO_NO_OFFSET, size, NEXT(ftruncate)(fd, size))
HOOK_ON_DESCRIPTOR(ftruncate64, (int fd, off64_t size), PIO_CALL_FTRUNCATE, PIO_NO_OFFSET, size,
                   NEXT(ftruncate64)(fd, size))
HOOK_ON_DESCRIPTOR(fallocate, (int fd, int mode, off_t offset, off_t size), PIO_CALL_FALLOCATE, offset, size,
                   NEXT(fallocate)(fd, mode, offset, size))
HOOK_ON_DESCRIPTOR(fallocate64, (int fd, int mode, off64_t offset, off64_t size), PIO_CALL_FALLOCATE, offset, size,
                   NEXT(fallocate64)(fd, mode, offset, size))

/* A call that takes the descriptor `fd`, and returns the error number instead of setting errno. */
#define HOOK_RETURNING_ERROR(name, parameters, call, next_call)                                                        \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT int name parameters {                                                                                       \
        if (!tracked(fd))                                                                                              \
            return next_call;                                                                                          \
        struct pioscope_span span;                                                                                     \
        pio_span_begin(&span);                                                                                         \
        int error = next_call;                                                                                         \
        int saved = errno;                                                                                             \
        errno = error;                                                                                                 \
        pio_finish_simple(&span, call, fd, (uint64_t)offset, (uint64_t)size, error == 0 ? 0 : -1);                     \
        errno = saved;                                                                                                 \
        return error;                                                                                                  \
    }

HOOK_RETURNING_ERROR(posix_fallocate, (int fd, off_t offset, off_t size), PIO_CALL_FALLOCATE,
                     NEXT(posix_fallocate)(fd, offset, size))
HOOK_RETURNING_ERROR(posix_fallocate64, (int fd, off64_t offset, off64_t size), PIO_CALL_FALLOCATE,
                     NEXT(posix_fallocate64)(fd, offset, size))
HOOK_RETURNING_ERROR(posix_fadvise, (int fd, off_t offset, off_t size, int advice), PIO_CALL_POSIX_FADVISE,
                     NEXT(posix_fadvise)(fd, offset, size, advice))
HOOK_RETURNING_ERROR(posix_fadvise64, (int fd, off64_t offset, off64_t size, int advice), PIO_CALL_POSIX_FADVISE,
                     NEXT(posix_fadvise64)(fd, offset, size, advice))

HOOK_ON_DESCRIPTOR(sync_file_range, (int fd, off64_t offset, off64_t size, unsigned flags), PIO_CALL_SYNC_FILE_RANGE,
                   offset, size, NEXT(sync_file_range)(fd, offset, size, flags))
HOOK_ON_DESCRIPTOR(syncfs, (int fd), PIO_CALL_SYNC, PIO_NO_OFFSET, 0, NEXT(syncfs)(fd))

DECLARE_NEXT(sync)
EXPORT void sync(void) {
    if (!recording() || !is_owner()) {
        NEXT(sync)();
        return;
    }
    struct pioscope_span span;
    pio_span_begin(&span);
    NEXT(sync)();
    pio_finish_simple(&span, PIO_CALL_SYNC, -1, PIO_NO_OFFSET, 0, 0);
}
