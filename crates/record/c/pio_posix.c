/* The POSIX recorder: preloaded into every process of a job, it records the calls that programs make on regular files.
 *
 * Thin on purpose: each hook calls the next definition of its function and writes down what happened (pio_writer.h). What
 * calls mean, which file a descriptor stands for and where its position is, the collector works out afterwards.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "pio_writer.h"

#include <dlfcn.h>
#include <spawn.h>
#include <stdarg.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

#define EXPORT __attribute__((visibility("default")))

/* The next definition of a function: the C library's, or that of a library preloaded after this one. Found when first
 * needed, since other libraries call before our constructor runs. */
#define NEXT(name) ((__typeof__(&name))next_function((void **)&next_of_##name, #name))
#define DECLARE_NEXT(name) static void *next_of_##name;

static inline void *next_function(void **place, const char *name) {
    void *found = LOAD(place);
    if (UNLIKELY(found == NULL)) {
        found = dlsym(RTLD_NEXT, name);
        STORE(place, found);
    }
    return found;
}

/* The C library's headers make macros of some that are functions too. */
#undef fread_unlocked
#undef fwrite_unlocked

/* Declared by no header, or only in some modes. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int folder, const char *path, int flags);
int __openat64_2(int folder, const char *path, int flags);
ssize_t __read_chk(int fd, void *buffer, size_t count, size_t room);
ssize_t __pread_chk(int fd, void *buffer, size_t count, off_t offset, size_t room);
ssize_t __pread64_chk(int fd, void *buffer, size_t count, off64_t offset, size_t room);
size_t __fread_chk(void *buffer, size_t room, size_t size, size_t count, FILE *stream);
size_t __fread_unlocked_chk(void *buffer, size_t room, size_t size, size_t count, FILE *stream);
char *__fgets_chk(char *buffer, size_t room, int count, FILE *stream);
int __fprintf_chk(FILE *stream, int flag, const char *format, ...);
int __vfprintf_chk(FILE *stream, int flag, const char *format, va_list arguments);
int __printf_chk(int flag, const char *format, ...);
int __vprintf_chk(int flag, const char *format, va_list arguments);

/* Descriptors ---------------------------------------------------------------------------------------------------- */

/* Higher descriptors are not recorded. */
#define DESCRIPTORS 65536

enum {
    UNKNOWN, /* never seen, or closed: looked at when first used */
    IGNORED, /* no regular file, or none of the job's */
    TRACKED,
    EXACT /* tracked, and its position may move without our seeing it (shared with a process, or appending): asked for */
};

static unsigned char descriptors[DESCRIPTORS];
static int highest_descriptor;

static void forget_descriptors(void) {
    memset(descriptors, UNKNOWN, sizeof descriptors);
    highest_descriptor = 0;
}

static void descriptors_are_shared(void) {
    for (int fd = 0; fd <= LOAD(&highest_descriptor); fd++)
        if (descriptors[fd] == TRACKED)
            descriptors[fd] = EXACT;
}

static inline bool in_table(int fd) {
    return (unsigned)fd < DESCRIPTORS;
}

static void set_descriptor(int fd, unsigned char state) {
    if (!in_table(fd))
        return;
    STORE(&descriptors[fd], state);
    if (state == TRACKED && fd > LOAD(&highest_descriptor))
        STORE(&highest_descriptor, fd);
}

static bool starts_with(const char *text, const char *prefix) {
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Not the job's files: the kernel's, devices, shared memory, and our own spools. */
static bool is_foreign_path(const char *path) {
    if (starts_with(path, "/proc/") || starts_with(path, "/sys/") || starts_with(path, "/dev/"))
        return true;
    size_t length = strlen(spool_folder);
    return strncmp(path, spool_folder, length) == 0 && (path[length] == '/' || path[length] == 0);
}

/* The path of an open regular file: its length, or 0 if it is none of the job's files. */
static size_t path_of_descriptor(int fd, char *path) {
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
        return 0;
    char link[40];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length <= 0)
        return 0;
    path[length] = 0;
    return is_foreign_path(path) ? 0 : (size_t)length;
}

/* Looks at a descriptor that was opened before our time, or behind our back. */
static __attribute__((noinline)) bool adopt(int fd) {
    char path[PATH_MAX];
    int saved = errno;
    size_t length = path_of_descriptor(fd, path);
    if (length > 0) {
        struct pioscope_span now = {clock_ns(CLOCK_MONOTONIC), 0, 0};
        off_t position = (off_t)syscall(SYS_lseek, fd, 0, SEEK_CUR);
        long mode = syscall(SYS_fcntl, fd, F_GETFL);
        record_call(&now, now.start_ns,
                    (struct outcome){.call = PIO_RECORD_ADOPT,
                                     .flags = mode >= 0 && (mode & O_APPEND) ? PIO_APPEND : 0,
                                     .fd = fd,
                                     .offset = position < 0 ? 0 : (uint64_t)position,
                                     .size = length},
                    path, length);
    }
    set_descriptor(fd, length > 0 ? EXACT : IGNORED);
    errno = saved;
    return length > 0;
}

/* Whether calls on this descriptor are recorded. */
static inline bool tracked(int fd) {
    if (UNLIKELY(!recording()) || UNLIKELY(!in_table(fd)))
        return false;
    unsigned char state = LOAD(&descriptors[fd]);
    return LIKELY(state >= TRACKED) || (state == UNKNOWN && is_owner() && adopt(fd));
}

/* After a call that returned: writes its record. A negative result stands for errno. */
static void finish(const struct pioscope_span *span, struct outcome outcome) {
    int saved = errno;
    uint64_t end_ns = clock_ns(CLOCK_MONOTONIC);
    if (outcome.result < 0) {
        outcome.result = -(int64_t)saved;
    } else if (outcome.offset == PIO_NO_OFFSET && in_table(outcome.fd) && LOAD(&descriptors[outcome.fd]) == EXACT) {
        off_t position = (off_t)syscall(SYS_lseek, outcome.fd, 0, SEEK_CUR);
        if (position >= outcome.result)
            outcome.offset = (uint64_t)(position - outcome.result);
    }
    record_call(span, end_ns, outcome, NULL, 0);
    span_over(span, end_ns);
    errno = saved;
}

static void finish_simple(const struct pioscope_span *span, uint32_t call, int fd, uint64_t offset, uint64_t size,
                          int64_t result) {
    finish(span, (struct outcome){call, 0, fd, offset, size, result});
}

/* Open ----------------------------------------------------------------------------------------------------------- */

/* After an open that returned `fd` (or failed). */
static __attribute__((noinline)) void finish_open(const struct pioscope_span *span, uint32_t call, const char *name,
                                                  int fd, int flags) {
    char path[PATH_MAX];
    int saved = errno;
    uint64_t end_ns = clock_ns(CLOCK_MONOTONIC);
    uint32_t append = flags & O_APPEND ? PIO_APPEND : 0;
    if (fd < 0) {
        if (saved != EFAULT && saved != ENAMETOOLONG && !is_foreign_path(name)) {
            record_call(span, end_ns, (struct outcome){call, append, -1, PIO_NO_OFFSET, 0, -(int64_t)saved}, NULL, 0);
            span_over(span, clock_ns(CLOCK_MONOTONIC)); /* our own work is not thinking */
        }
    } else {
        size_t length = path_of_descriptor(fd, path);
        set_descriptor(fd, length == 0 ? IGNORED : TRACKED);
        if (length > 0) {
            if (append)
                set_descriptor(fd, EXACT);
            record_call(span, end_ns, (struct outcome){call, append, fd, 0, length, 0}, path, length);
            span_over(span, clock_ns(CLOCK_MONOTONIC)); /* our own work is not thinking */
        }
    }
    errno = saved;
}

/* The mode argument is there only if a file may be created. */
#define MODE_ARGUMENT(flags, mode)                                                                                     \
    mode_t mode = 0;                                                                                                   \
    if ((flags) & (O_CREAT | O_TMPFILE)) {                                                                             \
        va_list arguments;                                                                                             \
        va_start(arguments, flags);                                                                                    \
        mode = va_arg(arguments, mode_t);                                                                              \
        va_end(arguments);                                                                                             \
    }

#define OPEN_BODY(call, path, flags, next_call)                                                                        \
    if (!recording() || !is_owner())                                                                                   \
        return next_call;                                                                                              \
    struct pioscope_span span;                                                                                         \
    span_begin(&span);                                                                                                 \
    int fd = next_call;                                                                                                \
    finish_open(&span, call, path, fd, flags);                                                                         \
    return fd;

#define HOOK_OPEN(name)                                                                                                \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT int name(const char *path, int flags, ...) {                                                                \
        MODE_ARGUMENT(flags, mode)                                                                                     \
        OPEN_BODY(PIO_CALL_OPEN, path, flags, NEXT(name)(path, flags, mode))                                           \
    }
#define HOOK_OPENAT(name)                                                                                              \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT int name(int folder, const char *path, int flags, ...) {                                                    \
        MODE_ARGUMENT(flags, mode)                                                                                     \
        OPEN_BODY(PIO_CALL_OPEN, path, flags, NEXT(name)(folder, path, flags, mode))                                   \
    }
#define HOOK_OPEN_2(name)                                                                                              \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT int name(const char *path, int flags) {                                                                     \
        OPEN_BODY(PIO_CALL_OPEN, path, flags, NEXT(name)(path, flags))                                                 \
    }
#define HOOK_OPENAT_2(name)                                                                                            \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT int name(int folder, const char *path, int flags) {                                                         \
        OPEN_BODY(PIO_CALL_OPEN, path, flags, NEXT(name)(folder, path, flags))                                         \
    }
#define HOOK_CREAT(name)                                                                                               \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT int name(const char *path, mode_t mode) {                                                                   \
        OPEN_BODY(PIO_CALL_CREAT, path, O_CREAT | O_WRONLY | O_TRUNC, NEXT(name)(path, mode))                          \
    }

HOOK_OPEN(open)
HOOK_OPEN(open64)
HOOK_OPENAT(openat)
HOOK_OPENAT(openat64)
HOOK_OPEN_2(__open_2)
HOOK_OPEN_2(__open64_2)
HOOK_OPENAT_2(__openat_2)
HOOK_OPENAT_2(__openat64_2)
HOOK_CREAT(creat)
HOOK_CREAT(creat64)

/* Close and duplicate -------------------------------------------------------------------------------------------- */

/* Forgets a descriptor that is about to be closed, before another thread can get its number. True if it was tracked. */
static bool forget(int fd) {
    if (!in_table(fd))
        return false;
    return __atomic_exchange_n(&descriptors[fd], UNKNOWN, __ATOMIC_RELAXED) >= TRACKED;
}

DECLARE_NEXT(close)
EXPORT int close(int fd) {
    if (!recording() || !is_owner() || !forget(fd))
        return NEXT(close)(fd);
    struct pioscope_span span;
    span_begin(&span);
    int result = NEXT(close)(fd);
    finish_simple(&span, PIO_CALL_CLOSE, fd, PIO_NO_OFFSET, 0, result);
    return result;
}

DECLARE_NEXT(close_range)
EXPORT int close_range(unsigned first, unsigned last, int flags) {
    /* The collector closes by itself what is opened again; what stays open unclosed is no error. */
    if (recording() && is_owner() && (flags & CLOSE_RANGE_CLOEXEC) == 0)
        for (unsigned fd = first; fd <= last && fd < DESCRIPTORS; fd++)
            STORE(&descriptors[fd], UNKNOWN);
    return NEXT(close_range)(first, last, flags);
}

DECLARE_NEXT(closefrom)
EXPORT void closefrom(int first) {
    if (recording() && is_owner())
        for (int fd = first < 0 ? 0 : first; fd < DESCRIPTORS; fd++)
            STORE(&descriptors[fd], UNKNOWN);
    NEXT(closefrom)(first);
}

/* After `copy` became another name of `fd`. */
static void finish_dup(const struct pioscope_span *span, int fd, int copy) {
    if (copy < 0 || copy == fd || !in_table(fd) || !in_table(copy))
        return;
    unsigned char state = LOAD(&descriptors[fd]);
    set_descriptor(copy, state);
    if (state < TRACKED)
        return;
    int saved = errno;
    uint64_t end_ns = clock_ns(CLOCK_MONOTONIC);
    record_call(span, end_ns, (struct outcome){PIO_CALL_DUP, 0, fd, PIO_NO_OFFSET, 0, copy}, NULL, 0);
    span_over(span, end_ns);
    errno = saved;
}

#define DUP_BODY(fd, next_call)                                                                                        \
    if (!recording() || !is_owner())                                                                                   \
        return next_call;                                                                                              \
    struct pioscope_span span;                                                                                         \
    span_begin(&span);                                                                                                 \
    int copy = next_call;                                                                                              \
    finish_dup(&span, fd, copy);                                                                                       \
    return copy;

DECLARE_NEXT(dup)
EXPORT int dup(int fd) {
    DUP_BODY(fd, NEXT(dup)(fd))
}

DECLARE_NEXT(dup2)
EXPORT int dup2(int fd, int copy_to) {
    DUP_BODY(fd, NEXT(dup2)(fd, copy_to))
}

DECLARE_NEXT(dup3)
EXPORT int dup3(int fd, int copy_to, int flags) {
    DUP_BODY(fd, NEXT(dup3)(fd, copy_to, flags))
}

/* Every command takes at most one argument, an int, a long or a pointer: a long carries each. */
#define HOOK_FCNTL(name)                                                                                               \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT int name(int fd, int command, ...) {                                                                        \
        va_list arguments;                                                                                             \
        va_start(arguments, command);                                                                                  \
        long argument = va_arg(arguments, long);                                                                       \
        va_end(arguments);                                                                                             \
        if (command != F_DUPFD && command != F_DUPFD_CLOEXEC)                                                          \
            return NEXT(name)(fd, command, argument);                                                                  \
        DUP_BODY(fd, NEXT(name)(fd, command, argument))                                                                \
    }

HOOK_FCNTL(fcntl)
HOOK_FCNTL(fcntl64)

/* Read and write ------------------------------------------------------------------------------------------------- */

/* `fd` is named so in each; `size` may look at `result`. */
#define DATA_BODY(call, offset, size, next_call)                                                                       \
    if (!tracked(fd))                                                                                                  \
        return next_call;                                                                                              \
    struct pioscope_span span;                                                                                         \
    span_begin(&span);                                                                                                 \
    ssize_t result = next_call;                                                                                        \
    finish_simple(&span, call, fd, (uint64_t)(offset), size, result);                                                  \
    return result;

/* Bytes that an array of buffers holds; not looked at if the kernel refused it. */
static uint64_t vector_bytes(const struct iovec *vector, int count, ssize_t result) {
    uint64_t sum = 0;
    if (result >= 0)
        for (int i = 0; i < count; i++)
            sum += vector[i].iov_len;
    return sum;
}

DECLARE_NEXT(read)
EXPORT ssize_t read(int fd, void *buffer, size_t count) {
    DATA_BODY(PIO_CALL_READ, PIO_NO_OFFSET, count, NEXT(read)(fd, buffer, count))
}

DECLARE_NEXT(__read_chk)
EXPORT ssize_t __read_chk(int fd, void *buffer, size_t count, size_t room) {
    DATA_BODY(PIO_CALL_READ, PIO_NO_OFFSET, count, NEXT(__read_chk)(fd, buffer, count, room))
}

DECLARE_NEXT(write)
EXPORT ssize_t write(int fd, const void *buffer, size_t count) {
    DATA_BODY(PIO_CALL_WRITE, PIO_NO_OFFSET, count, NEXT(write)(fd, buffer, count))
}

#define HOOK_PREAD(name, offset_type)                                                                                  \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT ssize_t name(int fd, void *buffer, size_t count, offset_type offset) {                                      \
        DATA_BODY(PIO_CALL_PREAD, offset, count, NEXT(name)(fd, buffer, count, offset))                                \
    }
#define HOOK_PREAD_CHK(name, offset_type)                                                                              \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT ssize_t name(int fd, void *buffer, size_t count, offset_type offset, size_t room) {                         \
        DATA_BODY(PIO_CALL_PREAD, offset, count, NEXT(name)(fd, buffer, count, offset, room))                          \
    }
#define HOOK_PWRITE(name, offset_type)                                                                                 \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT ssize_t name(int fd, const void *buffer, size_t count, offset_type offset) {                                \
        DATA_BODY(PIO_CALL_PWRITE, offset, count, NEXT(name)(fd, buffer, count, offset))                               \
    }
#define HOOK_VECTOR(name, number)                                                                                      \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT ssize_t name(int fd, const struct iovec *vector, int count) {                                               \
        DATA_BODY(number, PIO_NO_OFFSET, vector_bytes(vector, count, result), NEXT(name)(fd, vector, count))           \
    }
#define HOOK_VECTOR_AT(name, number, offset_type)                                                                      \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT ssize_t name(int fd, const struct iovec *vector, int count, offset_type offset) {                           \
        DATA_BODY(number, offset, vector_bytes(vector, count, result), NEXT(name)(fd, vector, count, offset))          \
    }
/* Offset -1 means the descriptor's own position, which is what PIO_NO_OFFSET says. */
#define HOOK_VECTOR_AT_2(name, number, offset_type)                                                                    \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT ssize_t name(int fd, const struct iovec *vector, int count, offset_type offset, int flags) {                \
        DATA_BODY(number, offset, vector_bytes(vector, count, result), NEXT(name)(fd, vector, count, offset, flags))   \
    }

HOOK_PREAD(pread, off_t)
HOOK_PREAD(pread64, off64_t)
HOOK_PREAD_CHK(__pread_chk, off_t)
HOOK_PREAD_CHK(__pread64_chk, off64_t)
HOOK_PWRITE(pwrite, off_t)
HOOK_PWRITE(pwrite64, off64_t)
HOOK_VECTOR(readv, PIO_CALL_READV)
HOOK_VECTOR(writev, PIO_CALL_WRITEV)
HOOK_VECTOR_AT(preadv, PIO_CALL_PREADV, off_t)
HOOK_VECTOR_AT(preadv64, PIO_CALL_PREADV, off64_t)
HOOK_VECTOR_AT(pwritev, PIO_CALL_PWRITEV, off_t)
HOOK_VECTOR_AT(pwritev64, PIO_CALL_PWRITEV, off64_t)
HOOK_VECTOR_AT_2(preadv2, PIO_CALL_PREADV, off_t)
HOOK_VECTOR_AT_2(preadv64v2, PIO_CALL_PREADV, off64_t)
HOOK_VECTOR_AT_2(pwritev2, PIO_CALL_PWRITEV, off_t)
HOOK_VECTOR_AT_2(pwritev64v2, PIO_CALL_PWRITEV, off64_t)

/* A copy inside the kernel is a read of one file and a write of the other, either of which may be no file. Each gets
 * half of the time: the kernel does not say more. */
static void finish_copy(const struct pioscope_span *span, int from, uint64_t from_offset, int to, uint64_t to_offset,
                        size_t count, ssize_t result) {
    uint64_t half_ns = (clock_ns(CLOCK_MONOTONIC) - span->start_ns) / 2;
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
            if (side[i].offset == PIO_NO_OFFSET && result >= 0 && LOAD(&descriptors[side[i].fd]) == EXACT)
                side[i].offset = (uint64_t)(syscall(SYS_lseek, side[i].fd, 0, SEEK_CUR) - result);
            record_call(&part, part.start_ns + half_ns,
                        (struct outcome){side[i].call, 0, side[i].fd, side[i].offset, count,
                                         result < 0 ? -(int64_t)saved : result},
                        NULL, 0);
            part.think_ns = 0;
        }
        part.start_ns += half_ns;
    }
    span_over(span, clock_ns(CLOCK_MONOTONIC));
    errno = saved;
}

#define COPY_BODY(from, from_offset, to, to_offset, count, next_call)                                                  \
    bool from_tracked = tracked(from), to_tracked = tracked(to);                                                       \
    if (!from_tracked && !to_tracked)                                                                                  \
        return next_call;                                                                                              \
    uint64_t from_at = from_offset ? (uint64_t)*from_offset : PIO_NO_OFFSET;                                           \
    uint64_t to_at = to_offset ? (uint64_t)*to_offset : PIO_NO_OFFSET;                                                 \
    struct pioscope_span span;                                                                                         \
    span_begin(&span);                                                                                                 \
    ssize_t result = next_call;                                                                                        \
    finish_copy(&span, from, from_at, to, to_at, count, result);                                                       \
    return result;

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

/* Position, size, sync ------------------------------------------------------------------------------------------- */

#define HOOK_LSEEK(name, offset_type)                                                                                  \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT offset_type name(int fd, offset_type offset, int whence) {                                                  \
        if (!tracked(fd))                                                                                              \
            return NEXT(name)(fd, offset, whence);                                                                     \
        struct pioscope_span span;                                                                                     \
        span_begin(&span);                                                                                             \
        offset_type position = NEXT(name)(fd, offset, whence);                                                         \
        finish_simple(&span, PIO_CALL_LSEEK, fd, position < 0 ? 0 : (uint64_t)position, 0, position < 0 ? -1 : 0);     \
        return position;                                                                                               \
    }
#define HOOK_ON_DESCRIPTOR(name, parameters, call, offset, size, next_call)                                            \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT int name parameters {                                                                                       \
        if (!tracked(fd))                                                                                              \
            return next_call;                                                                                          \
        struct pioscope_span span;                                                                                     \
        span_begin(&span);                                                                                             \
        int result = next_call;                                                                                        \
        finish_simple(&span, call, fd, (uint64_t)(offset), (uint64_t)(size), result);                                  \
        return result;                                                                                                 \
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

/* posix_fallocate returns the error number instead of setting errno. */
#define HOOK_POSIX_FALLOCATE(name, offset_type)                                                                        \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT int name(int fd, offset_type offset, offset_type size) {                                                    \
        if (!tracked(fd))                                                                                              \
            return NEXT(name)(fd, offset, size);                                                                       \
        struct pioscope_span span;                                                                                     \
        span_begin(&span);                                                                                             \
        int error = NEXT(name)(fd, offset, size);                                                                      \
        int saved = errno;                                                                                             \
        errno = error;                                                                                                 \
        finish_simple(&span, PIO_CALL_FALLOCATE, fd, (uint64_t)offset, (uint64_t)size, error == 0 ? 0 : -1);           \
        errno = saved;                                                                                                 \
        return error;                                                                                                  \
    }

HOOK_POSIX_FALLOCATE(posix_fallocate, off_t)
HOOK_POSIX_FALLOCATE(posix_fallocate64, off64_t)

/* Names ---------------------------------------------------------------------------------------------------------- */

#define HOOK_ON_PATH(name, parameters, path, call, size, next_call)                                                    \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT int name parameters {                                                                                       \
        if (!recording() || !is_owner())                                                                               \
            return next_call;                                                                                          \
        struct pioscope_span span;                                                                                     \
        span_begin(&span);                                                                                             \
        int result = next_call;                                                                                        \
        if ((result == 0 || (errno != EFAULT && errno != ENAMETOOLONG)) && !is_foreign_path(path))                     \
            finish_simple(&span, call, -1, PIO_NO_OFFSET, (uint64_t)(size), result);                                   \
        return result;                                                                                                 \
    }

HOOK_ON_PATH(truncate, (const char *path, off_t size), path, PIO_CALL_TRUNCATE, size, NEXT(truncate)(path, size))
HOOK_ON_PATH(truncate64, (const char *path, off64_t size), path, PIO_CALL_TRUNCATE, size,
             NEXT(truncate64)(path, size))
HOOK_ON_PATH(unlink, (const char *path), path, PIO_CALL_UNLINK, 0, NEXT(unlink)(path))
HOOK_ON_PATH(unlinkat, (int folder, const char *path, int flags), path, PIO_CALL_UNLINK, 0,
             NEXT(unlinkat)(folder, path, flags))
HOOK_ON_PATH(rename, (const char *from, const char *to), from, PIO_CALL_RENAME, 0, NEXT(rename)(from, to))

/* Streams -------------------------------------------------------------------------------------------------------- */
/* The reads and writes inside the C library do not pass through symbols: streams are recorded at their own level, with
 * what the program asked of them. */

static int open_flags_of(const char *mode) {
    return mode[0] == 'a' ? O_APPEND : 0;
}

#define HOOK_FOPEN(name)                                                                                               \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT FILE *name(const char *path, const char *mode) {                                                            \
        if (!recording() || !is_owner())                                                                               \
            return NEXT(name)(path, mode);                                                                             \
        struct pioscope_span span;                                                                                     \
        span_begin(&span);                                                                                             \
        FILE *stream = NEXT(name)(path, mode);                                                                         \
        finish_open(&span, PIO_CALL_FOPEN, path, stream == NULL ? -1 : fileno(stream), open_flags_of(mode));           \
        return stream;                                                                                                 \
    }

HOOK_FOPEN(fopen)
HOOK_FOPEN(fopen64)

/* The old descriptor is closed inside; the new one is adopted when it is used. */
#define HOOK_FREOPEN(name)                                                                                             \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT FILE *name(const char *path, const char *mode, FILE *stream) {                                              \
        bool ours = recording() && is_owner();                                                                         \
        if (ours)                                                                                                      \
            forget(fileno(stream));                                                                                    \
        FILE *reopened = NEXT(name)(path, mode, stream);                                                               \
        if (ours && reopened != NULL)                                                                                  \
            forget(fileno(reopened));                                                                                  \
        return reopened;                                                                                               \
    }

HOOK_FREOPEN(freopen)
HOOK_FREOPEN(freopen64)

DECLARE_NEXT(fclose)
EXPORT int fclose(FILE *stream) {
    int fd;
    if (!recording() || !is_owner() || !forget(fd = fileno(stream)))
        return NEXT(fclose)(stream);
    struct pioscope_span span;
    span_begin(&span);
    int result = NEXT(fclose)(stream);
    finish_simple(&span, PIO_CALL_FCLOSE, fd, PIO_NO_OFFSET, 0, result);
    return result;
}

/* The position of a stream, as the program sees it. */
static uint64_t stream_position(FILE *stream) {
    int saved = errno;
    off_t position = ftello(stream);
    errno = saved;
    return position < 0 ? PIO_NO_OFFSET : (uint64_t)position;
}

/* `type result = next_call`, of which `moved` bytes of `size` count as transferred (-1: it failed). */
#define STREAM_BODY(call, type, size, moved, next_call)                                                                \
    if (!recording() || !tracked(fileno(stream)))                                                                      \
        return next_call;                                                                                              \
    uint64_t position = stream_position(stream);                                                                       \
    struct pioscope_span span;                                                                                         \
    span_begin(&span);                                                                                                 \
    type result = next_call;                                                                                           \
    finish_simple(&span, call, fileno(stream), position, (uint64_t)(size), (int64_t)(moved));                          \
    return result;

/* A short count is an error only if the stream says so. */
static int64_t items_moved(FILE *stream, size_t size, size_t asked, size_t moved) {
    return moved == 0 && asked > 0 && size > 0 && ferror_unlocked(stream) ? -1 : (int64_t)(size * moved);
}

#define HOOK_FREAD(name)                                                                                               \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT size_t name(void *buffer, size_t size, size_t count, FILE *stream) {                                        \
        STREAM_BODY(PIO_CALL_FREAD, size_t, size *count, items_moved(stream, size, count, result),                     \
                    NEXT(name)(buffer, size, count, stream))                                                           \
    }
#define HOOK_FREAD_CHK(name)                                                                                           \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT size_t name(void *buffer, size_t room, size_t size, size_t count, FILE *stream) {                           \
        STREAM_BODY(PIO_CALL_FREAD, size_t, size *count, items_moved(stream, size, count, result),                     \
                    NEXT(name)(buffer, room, size, count, stream))                                                     \
    }
#define HOOK_FWRITE(name)                                                                                              \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT size_t name(const void *buffer, size_t size, size_t count, FILE *stream) {                                  \
        STREAM_BODY(PIO_CALL_FWRITE, size_t, size *count, items_moved(stream, size, count, result),                    \
                    NEXT(name)(buffer, size, count, stream))                                                           \
    }

HOOK_FREAD(fread)
HOOK_FREAD(fread_unlocked)
HOOK_FREAD_CHK(__fread_chk)
HOOK_FREAD_CHK(__fread_unlocked_chk)
HOOK_FWRITE(fwrite)
HOOK_FWRITE(fwrite_unlocked)

#define HOOK_FPUTS(name)                                                                                               \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT int name(const char *text, FILE *stream) {                                                                  \
        STREAM_BODY(PIO_CALL_FWRITE, int, strlen(text), result < 0 ? -1 : (int64_t)strlen(text),                       \
                    NEXT(name)(text, stream))                                                                          \
    }
#define HOOK_FGETS(name)                                                                                               \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT char *name(char *buffer, int count, FILE *stream) {                                                         \
        STREAM_BODY(PIO_CALL_FREAD, char *, count > 0 ? count - 1 : 0, result == NULL ? 0 : strlen(result),            \
                    NEXT(name)(buffer, count, stream))                                                                 \
    }

HOOK_FPUTS(fputs)
HOOK_FPUTS(fputs_unlocked)
HOOK_FGETS(fgets)
HOOK_FGETS(fgets_unlocked)

DECLARE_NEXT(__fgets_chk)
EXPORT char *__fgets_chk(char *buffer, size_t room, int count, FILE *stream) {
    STREAM_BODY(PIO_CALL_FREAD, char *, count > 0 ? count - 1 : 0, result == NULL ? 0 : strlen(result),
                NEXT(__fgets_chk)(buffer, room, count, stream))
}

/* Size and result are what was found: nobody asked for a number of bytes. */
#define HOOK_GETDELIM(name)                                                                                            \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT ssize_t name(char **line, size_t *room, int delimiter, FILE *stream) {                                      \
        STREAM_BODY(PIO_CALL_FREAD, ssize_t, result < 0 ? 0 : result, result < 0 ? 0 : result,                         \
                    NEXT(name)(line, room, delimiter, stream))                                                         \
    }

HOOK_GETDELIM(getdelim)
HOOK_GETDELIM(__getdelim)

DECLARE_NEXT(getline)
EXPORT ssize_t getline(char **line, size_t *room, FILE *stream) {
    STREAM_BODY(PIO_CALL_FREAD, ssize_t, result < 0 ? 0 : result, result < 0 ? 0 : result,
                NEXT(getline)(line, room, stream))
}

DECLARE_NEXT(vfprintf)
EXPORT int vfprintf(FILE *stream, const char *format, va_list arguments) {
    STREAM_BODY(PIO_CALL_FWRITE, int, result < 0 ? 0 : result, result, NEXT(vfprintf)(stream, format, arguments))
}

DECLARE_NEXT(__vfprintf_chk)
EXPORT int __vfprintf_chk(FILE *stream, int flag, const char *format, va_list arguments) {
    STREAM_BODY(PIO_CALL_FWRITE, int, result < 0 ? 0 : result, result,
                NEXT(__vfprintf_chk)(stream, flag, format, arguments))
}

EXPORT int fprintf(FILE *stream, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int result = vfprintf(stream, format, arguments);
    va_end(arguments);
    return result;
}

EXPORT int __fprintf_chk(FILE *stream, int flag, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int result = __vfprintf_chk(stream, flag, format, arguments);
    va_end(arguments);
    return result;
}

/* The same on standard output. */
EXPORT int vprintf(const char *format, va_list arguments) {
    return vfprintf(stdout, format, arguments);
}

EXPORT int printf(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int result = vfprintf(stdout, format, arguments);
    va_end(arguments);
    return result;
}

EXPORT int __vprintf_chk(int flag, const char *format, va_list arguments) {
    return __vfprintf_chk(stdout, flag, format, arguments);
}

EXPORT int __printf_chk(int flag, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int result = __vfprintf_chk(stdout, flag, format, arguments);
    va_end(arguments);
    return result;
}

DECLARE_NEXT(puts)
EXPORT int puts(const char *text) {
    FILE *stream = stdout;
    STREAM_BODY(PIO_CALL_FWRITE, int, strlen(text) + 1, result < 0 ? -1 : (int64_t)strlen(text) + 1, NEXT(puts)(text))
}

#define HOOK_FSEEK(name, offset_type)                                                                                  \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT int name(FILE *stream, offset_type offset, int whence) {                                                    \
        if (!recording() || !tracked(fileno(stream)))                                                                  \
            return NEXT(name)(stream, offset, whence);                                                                 \
        struct pioscope_span span;                                                                                     \
        span_begin(&span);                                                                                             \
        int result = NEXT(name)(stream, offset, whence);                                                               \
        finish_simple(&span, PIO_CALL_FSEEK, fileno(stream), stream_position(stream), 0, result);                      \
        return result;                                                                                                 \
    }

HOOK_FSEEK(fseek, long)
HOOK_FSEEK(fseeko, off_t)
HOOK_FSEEK(fseeko64, off64_t)

#define HOOK_FFLUSH(name)                                                                                              \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT int name(FILE *stream) {                                                                                    \
        if (stream == NULL || !recording() || !tracked(fileno(stream)))                                                \
            return NEXT(name)(stream);                                                                                 \
        struct pioscope_span span;                                                                                     \
        span_begin(&span);                                                                                             \
        int result = NEXT(name)(stream);                                                                               \
        finish_simple(&span, PIO_CALL_FFLUSH, fileno(stream), 0, 0, result);                                           \
        return result;                                                                                                 \
    }

HOOK_FFLUSH(fflush)
HOOK_FFLUSH(fflush_unlocked)

/* Processes ------------------------------------------------------------------------------------------------------ */

/* A spawned child shares our open files: their positions move without us. */
#define HOOK_SPAWN(name)                                                                                               \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT int name(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,                           \
                    const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]) {         \
        if (recording())                                                                                               \
            descriptors_are_shared();                                                                                  \
        return NEXT(name)(pid, path, actions, attributes, arguments, environment);                                     \
    }

HOOK_SPAWN(posix_spawn)
HOOK_SPAWN(posix_spawnp)

/* A program that a child of vfork becomes shares them, too; and the child still works in our memory. */
#define HOOK_EXEC(name, parameters, arguments)                                                                         \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT int name parameters {                                                                                       \
        if (recording() && !is_owner())                                                                                \
            descriptors_are_shared();                                                                                  \
        return NEXT(name) arguments;                                                                                   \
    }

HOOK_EXEC(execve, (const char *path, char *const words[], char *const environment[]), (path, words, environment))
HOOK_EXEC(execv, (const char *path, char *const words[]), (path, words))
HOOK_EXEC(execvp, (const char *name, char *const words[]), (name, words))
HOOK_EXEC(execvpe, (const char *name, char *const words[], char *const environment[]), (name, words, environment))

DECLARE_NEXT(system)
EXPORT int system(const char *line) {
    if (recording())
        descriptors_are_shared();
    return NEXT(system)(line);
}

DECLARE_NEXT(popen)
EXPORT FILE *popen(const char *line, const char *mode) {
    if (recording())
        descriptors_are_shared();
    return NEXT(popen)(line, mode);
}

#define HOOK_EXIT(name)                                                                                                \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT __attribute__((noreturn)) void name(int status) {                                                           \
        mark_ended(PIO_ENDED_NORMALLY);                                                                                \
        NEXT(name)(status);                                                                                            \
        __builtin_unreachable();                                                                                       \
    }

HOOK_EXIT(_exit)
HOOK_EXIT(_Exit)

__attribute__((constructor)) static void process_starts(void) {
    (void)recording();
}

__attribute__((destructor)) static void process_ends(void) {
    mark_ended(PIO_ENDED_NORMALLY);
}

#include "pio_recorder.c"
