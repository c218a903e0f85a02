/* Calls that read and write. */
#include "pio_bodies.h"
#include "pio_kernel.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <unistd.h>

/* Declared by no header. */
ssize_t __read_chk(int fd, void *buffer, size_t count, size_t room);
ssize_t __pread_chk(int fd, void *buffer, size_t count, off_t offset, size_t room);
ssize_t __pread64_chk(int fd, void *buffer, size_t count, off64_t offset, size_t room);
int __dprintf_chk(int fd, int flag, const char *format, ...);
int __vdprintf_chk(int fd, int flag, const char *format, va_list arguments);

DECLARE_NEXT(read)
EXPORT ssize_t read(int fd, void *buffer, size_t count) {
    DATA_BODY(PIO_CALL_READ, fd, PIO_NO_OFFSET, count, NEXT(read)(fd, buffer, count))
}

DECLARE_NEXT(__read_chk)
EXPORT ssize_t __read_chk(int fd, void *buffer, size_t count, size_t room) {
    DATA_BODY(PIO_CALL_READ, fd, PIO_NO_OFFSET, count, NEXT(__read_chk)(fd, buffer, count, room))
}

DECLARE_NEXT(write)
EXPORT ssize_t write(int fd, const void *buffer, size_t count) {
    DATA_BODY(PIO_CALL_WRITE, fd, PIO_NO_OFFSET, count, NEXT(write)(fd, buffer, count))
}

/* One write of all that it printed, as the program made it: beyond its buffer, the C library makes several. */
DECLARE_NEXT(vdprintf)
static int print(int fd, const char *format, va_list arguments) {
    DATA_BODY(PIO_CALL_WRITE, fd, PIO_NO_OFFSET, result < 0 ? 0 : (uint64_t)result,
              NEXT(vdprintf)(fd, format, arguments))
}

EXPORT int vdprintf(int fd, const char *format, va_list arguments) {
    return print(fd, format, arguments);
}

EXPORT int dprintf(int fd, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int printed = print(fd, format, arguments);
    va_end(arguments);
    return printed;
}

DECLARE_NEXT(__vdprintf_chk)
static int print_checked(int fd, int flag, const char *format, va_list arguments) {
    DATA_BODY(PIO_CALL_WRITE, fd, PIO_NO_OFFSET, result < 0 ? 0 : (uint64_t)result,
              NEXT(__vdprintf_chk)(fd, flag, format, arguments))
}

EXPORT int __vdprintf_chk(int fd, int flag, const char *format, va_list arguments) {
    return print_checked(fd, flag, format, arguments);
}

EXPORT int __dprintf_chk(int fd, int flag, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int printed = print_checked(fd, flag, format, arguments);
    va_end(arguments);
    return printed;
}

#define HOOK_PREAD(name, offset_type)                                                                                  \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT ssize_t name(int fd, void *buffer, size_t count, offset_type offset) {                                      \
        DATA_BODY(PIO_CALL_PREAD, fd, offset, count, NEXT(name)(fd, buffer, count, offset))                                \
    }
#define HOOK_PREAD_CHK(name, offset_type)                                                                              \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT ssize_t name(int fd, void *buffer, size_t count, offset_type offset, size_t room) {                         \
        DATA_BODY(PIO_CALL_PREAD, fd, offset, count, NEXT(name)(fd, buffer, count, offset, room))                          \
    }
#define HOOK_PWRITE(name, offset_type)                                                                                 \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT ssize_t name(int fd, const void *buffer, size_t count, offset_type offset) {                                \
        WRITE_AT_BODY(PIO_CALL_PWRITE, fd, offset, pio_appends(fd), count, NEXT(name)(fd, buffer, count, offset))              \
    }
#define HOOK_VECTOR(name, number)                                                                                      \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT ssize_t name(int fd, const struct iovec *vector, int count) {                                               \
        DATA_BODY(number, fd, PIO_NO_OFFSET, vector_bytes(vector, count, result), NEXT(name)(fd, vector, count))           \
    }
#define HOOK_PREADV(name, offset_type)                                                                                 \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT ssize_t name(int fd, const struct iovec *vector, int count, offset_type offset) {                           \
        DATA_BODY(PIO_CALL_PREADV, fd, offset, vector_bytes(vector, count, result),                                        \
                  NEXT(name)(fd, vector, count, offset))                                                               \
    }
#define HOOK_PWRITEV(name, offset_type)                                                                                \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT ssize_t name(int fd, const struct iovec *vector, int count, offset_type offset) {                           \
        WRITE_AT_BODY(PIO_CALL_PWRITEV, fd, offset, pio_appends(fd), vector_bytes(vector, count, result),                      \
                      NEXT(name)(fd, vector, count, offset))                                                           \
    }
/* Offset -1 means the descriptor's own position, which is what PIO_NO_OFFSET says. */
#define HOOK_PREADV_2(name, offset_type)                                                                               \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT ssize_t name(int fd, const struct iovec *vector, int count, offset_type offset, int flags) {                \
        DATA_BODY(PIO_CALL_PREADV, fd, offset, vector_bytes(vector, count, result),                                        \
                  NEXT(name)(fd, vector, count, offset, flags))                                                        \
    }
#define HOOK_PWRITEV_2(name, offset_type)                                                                              \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT ssize_t name(int fd, const struct iovec *vector, int count, offset_type offset, int flags) {                \
        WRITE_AT_BODY(PIO_CALL_PWRITEV, fd, offset, pio_appends_by(fd, flags, offset), vector_bytes(vector, count, result),    \
                      NEXT(name)(fd, vector, count, offset, flags))                                                    \
    }

HOOK_PREAD(pread, off_t)
HOOK_PREAD(pread64, off64_t)
HOOK_PREAD_CHK(__pread_chk, off_t)
HOOK_PREAD_CHK(__pread64_chk, off64_t)
HOOK_PWRITE(pwrite, off_t)
HOOK_PWRITE(pwrite64, off64_t)
HOOK_VECTOR(readv, PIO_CALL_READV)
HOOK_VECTOR(writev, PIO_CALL_WRITEV)
HOOK_PREADV(preadv, off_t)
HOOK_PREADV(preadv64, off64_t)
HOOK_PWRITEV(pwritev, off_t)
HOOK_PWRITEV(pwritev64, off64_t)
HOOK_PREADV_2(preadv2, off_t)
HOOK_PREADV_2(preadv64v2, off64_t)
HOOK_PWRITEV_2(pwritev2, off_t)
HOOK_PWRITEV_2(pwritev64v2, off64_t)

/* A copy inside the kernel is a read of one file and a write of the other, either of which may be no file. Each gets
 * half of the time: the kernel does not say more. */
void pio_finish_copy(const struct pioscope_span *span, int from, uint64_t from_offset, int to, uint64_t to_offset,
                     size_t count, ssize_t result) {
    uint64_t half_ns = (end_of(span) - span->start_ns) / 2;
    struct {
        uint32_t call;
        int fd;
        uint64_t offset;
    } side[2] = {{from_offset == PIO_NO_OFFSET ? PIO_CALL_READ : PIO_CALL_PREAD, from, from_offset},
                 {to_offset == PIO_NO_OFFSET ? PIO_CALL_WRITE : PIO_CALL_PWRITE, to, to_offset}};
    int saved = errno;
    struct pioscope_span part = *span;
    if (result >= 0)
        count = (size_t)result; /* programs ask for "all there is" by absurd counts */
    for (int i = 0; i < 2; i++) {
        if (tracked(side[i].fd)) {
            if (side[i].offset == PIO_NO_OFFSET && result >= 0 && LOAD(&pio_descriptors[side[i].fd]) >= EXACT)
                side[i].offset = (uint64_t)(KERNEL(SYS_lseek, side[i].fd, 0, SEEK_CUR) - result);
            record_call(&part, part.start_ns + half_ns,
                        (struct outcome){side[i].call, 0, side[i].fd, side[i].offset, count,
                                         result < 0 ? -(int64_t)saved : result},
                        NULL, 0);
            part.think_ns = 0;
        }
        part.start_ns += half_ns;
    }
    span_over(span, now_ns());
    errno = saved;
}

DECLARE_NEXT(copy_file_range)
EXPORT ssize_t copy_file_range(int from, off64_t *from_offset, int to, off64_t *to_offset, size_t count,
                               unsigned flags) {
    COPY_BODY(from, from_offset, to, to_offset, count,
              NEXT(copy_file_range)(from, from_offset, to, to_offset, count, flags))
}

DECLARE_NEXT(splice)
EXPORT ssize_t splice(int from, off64_t *from_offset, int to, off64_t *to_offset, size_t count, unsigned flags) {
    COPY_BODY(from, from_offset, to, to_offset, count, NEXT(splice)(from, from_offset, to, to_offset, count, flags))
}

DECLARE_NEXT(sendfile)
EXPORT ssize_t sendfile(int to, int from, off_t *offset, size_t count) {
    off_t *none = NULL;
    COPY_BODY(from, offset, to, none, count, NEXT(sendfile)(to, from, offset, count))
}

DECLARE_NEXT(sendfile64)
EXPORT ssize_t sendfile64(int to, int from, off64_t *offset, size_t count) {
    off64_t *none = NULL;
    COPY_BODY(from, offset, to, none, count, NEXT(sendfile64)(to, from, offset, count))
}
