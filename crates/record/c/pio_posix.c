/* The POSIX recorder: preloaded into every process of a job, it records the calls that programs make on regular files.
 *
 * Thin on purpose: each hook calls the next definition of its function and writes down what happened (pio_writer.h). What
 * calls mean, which file a descriptor stands for and where its position is, the collector works out afterwards.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "pio_path.h"
#include "pio_writer.h"

#include <aio.h>
#include <dirent.h>
#include <dlfcn.h>
#include <link.h>
#include <spawn.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/resource.h>
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
#define DESCRIPTORS 65535

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

#include "pio_paths.c"

/* Looks at a descriptor that was opened before our time, or behind our back. */
static __attribute__((noinline)) bool adopt(int fd) {
    int saved = errno;
    char *path = take_path_buffer();
    size_t length = path_of_descriptor(fd, path);
    if (length > 0) {
        meet_thread();
        struct pioscope_span now = {now_ns(), 0, 0};
        off_t position = (off_t)KERNEL(SYS_lseek, fd, 0, SEEK_CUR);
        long mode = KERNEL(SYS_fcntl, fd, F_GETFL);
        record_call(&now, now.start_ns,
                    (struct outcome){.call = PIO_RECORD_ADOPT,
                                     .flags = mode >= 0 && (mode & O_APPEND) ? PIO_APPEND : 0,
                                     .fd = fd,
                                     .offset = position < 0 ? 0 : (uint64_t)position,
                                     .size = length},
                    path, length);
    }
    give_path_buffer(path);
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

/* Calls that the budget never drops: without them, what the others work on would not be known. */
#define ALWAYS_KEPT 3u

static unsigned kind_of(uint32_t call) {
    switch (call) {
    case PIO_CALL_OPEN:
    case PIO_CALL_CREAT:
    case PIO_CALL_CLOSE:
    case PIO_CALL_DUP:
    case PIO_CALL_FOPEN:
    case PIO_CALL_FCLOSE:
        return ALWAYS_KEPT;
    case PIO_CALL_READ:
    case PIO_CALL_PREAD:
    case PIO_CALL_READV:
    case PIO_CALL_PREADV:
    case PIO_CALL_FREAD:
    case PIO_CALL_LIBAIO_READ:
    case PIO_CALL_IO_URING_READ:
        return 0;
    case PIO_CALL_WRITE:
    case PIO_CALL_PWRITE:
    case PIO_CALL_WRITEV:
    case PIO_CALL_PWRITEV:
    case PIO_CALL_FWRITE:
    case PIO_CALL_LIBAIO_WRITE:
    case PIO_CALL_IO_URING_WRITE:
        return 1;
    default:
        return 2;
    }
}

static bool spared(uint32_t call, int64_t result) {
    unsigned kind = kind_of(call);
    return kind == ALWAYS_KEPT || !is_thinned_out(kind, result);
}

/* Where a descriptor stood before a call that moved it on by `moved` bytes. */
static __attribute__((noinline)) uint64_t position_before(int fd, int64_t moved) {
    int saved = errno;
    off_t position = (off_t)KERNEL(SYS_lseek, fd, 0, SEEK_CUR);
    errno = saved;
    return position >= moved ? (uint64_t)(position - moved) : PIO_NO_OFFSET;
}

/* After a call that returned: writes its record and leaves errno alone. A negative result stands for errno. A call that
 * is `at_position` moved the descriptor on from where it stood: if others move that, too, it is asked where that is. */
static inline void finish(const struct pioscope_span *span, uint32_t call, int fd, uint64_t offset, uint64_t size,
                          int64_t result, bool at_position) {
    uint64_t end_ns = end_of(span);
    bool spares = LIKELY(LOAD(&spool.thinning) == 0) || spared(call, result);
    if (UNLIKELY(result < 0))
        result = -(int64_t)errno;
    else if (at_position && offset == PIO_NO_OFFSET && LOAD(&descriptors[fd]) == EXACT && spares)
        offset = position_before(fd, result);
    if (LIKELY(spares)) {
        record_call(span, end_ns, (struct outcome){call, 0, fd, offset, size, result}, NULL, 0);
        span_over(span, end_ns);
    } else {
        span_is_dropped();
    }
}

static __attribute__((noinline)) void finish_simple(const struct pioscope_span *span, uint32_t call, int fd,
                                                    uint64_t offset, uint64_t size, int64_t result) {
    finish(span, call, fd, offset, size, result, false);
}

/* Of a tracked descriptor. */
static __attribute__((noinline)) void finish_data(const struct pioscope_span *span, uint32_t call, int fd,
                                                  uint64_t offset, uint64_t size, int64_t result) {
    finish(span, call, fd, offset, size, result, true);
}

/* After a call on a name that opened nothing. The C library refuses some paths, and does not say whether it could read
 * them: then we do not, either. A result of -1 stands for errno. */
static __attribute__((noinline)) void finish_name(const struct pioscope_span *span, uint32_t call, uint32_t flags,
                                                  int folder, const char *name, uint64_t size, int64_t result) {
    int saved = errno;
    uint64_t end_ns = end_of(span), id;
    bool is_readable = name != NULL && (result >= 0 || (saved != EFAULT && saved != ENAMETOOLONG));
    if (is_readable && (LOAD(&spool.thinning) == 0 || spared(call, result)) && is_name_kept(folder, name, &id)) {
        result = result < 0 ? -(int64_t)saved : 0;
        record_call(span, end_ns, (struct outcome){call, flags, -1, id, size, result}, NULL, 0);
        span_over(span, now_ns()); /* our own work is not thinking */
    } else {
        span_is_dropped();
    }
    errno = saved;
}

/* The same after a call on two names. The second's id stands where others have a size; 0 if it is not known. */
static __attribute__((noinline)) void finish_names(const struct pioscope_span *span, uint32_t call, int folder,
                                                   const char *name, uint64_t (*other_id)(int, const char *, const char *),
                                                   int other_folder, const char *other, int64_t result) {
    int saved = errno;
    bool is_readable = other != NULL && name != NULL && (result >= 0 || (saved != EFAULT && saved != ENAMETOOLONG));
    bool is_recorded = is_readable && (LOAD(&spool.thinning) == 0 || spared(call, result));
    uint64_t size = is_recorded ? other_id(other_folder, other, name) : 0;
    errno = saved;
    finish_name(span, call, 0, folder, name, size, result);
}

/* Open ----------------------------------------------------------------------------------------------------------- */

/* After an open that returned `fd` (or failed). */
static __attribute__((noinline)) void finish_open(const struct pioscope_span *span, uint32_t call, int folder,
                                                  const char *name, int fd, int flags) {
    int saved = errno;
    uint64_t end_ns = end_of(span);
    /* O_SYNC has the bit of O_DSYNC too. */
    uint32_t opened = (flags & O_APPEND ? PIO_APPEND : 0) | (flags & O_DSYNC ? PIO_SYNC : 0) |
                      (flags & O_DIRECT ? PIO_DIRECT : 0);
    if (fd < 0) {
        finish_name(span, call, opened, folder, name, 0, -1);
    } else {
        char *path = take_path_buffer();
        size_t length = path_of_descriptor(fd, path);
        set_descriptor(fd, length == 0 ? IGNORED : TRACKED);
        if (length > 0) {
            if ((flags & O_APPEND) || LOAD(&spool.thinning) != 0)
                set_descriptor(fd, EXACT);
            record_call(span, end_ns, (struct outcome){call, opened, fd, 0, length, 0}, path, length);
            span_over(span, now_ns()); /* our own work is not thinking */
        } else {
            span_is_dropped();
        }
        give_path_buffer(path);
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

#define OPEN_BODY(call, folder, path, flags, next_call)                                                                \
    if (!recording() || !is_owner())                                                                                   \
        return next_call;                                                                                              \
    struct pioscope_span span;                                                                                         \
    span_begin(&span);                                                                                                 \
    int fd = next_call;                                                                                                \
    finish_open(&span, call, folder, path, fd, flags);                                                                 \
    return fd;

#define HOOK_OPEN(name)                                                                                                \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT int name(const char *path, int flags, ...) {                                                                \
        MODE_ARGUMENT(flags, mode)                                                                                     \
        OPEN_BODY(PIO_CALL_OPEN, AT_FDCWD, path, flags, NEXT(name)(path, flags, mode))                                 \
    }
#define HOOK_OPENAT(name)                                                                                              \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT int name(int folder, const char *path, int flags, ...) {                                                    \
        MODE_ARGUMENT(flags, mode)                                                                                     \
        OPEN_BODY(PIO_CALL_OPEN, folder, path, flags, NEXT(name)(folder, path, flags, mode))                           \
    }
#define HOOK_OPEN_2(name)                                                                                              \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT int name(const char *path, int flags) {                                                                     \
        OPEN_BODY(PIO_CALL_OPEN, AT_FDCWD, path, flags, NEXT(name)(path, flags))                                       \
    }
#define HOOK_OPENAT_2(name)                                                                                            \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT int name(int folder, const char *path, int flags) {                                                         \
        OPEN_BODY(PIO_CALL_OPEN, folder, path, flags, NEXT(name)(folder, path, flags))                                 \
    }
#define HOOK_CREAT(name)                                                                                               \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT int name(const char *path, mode_t mode) {                                                                   \
        OPEN_BODY(PIO_CALL_CREAT, AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, NEXT(name)(path, mode))                \
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

static bool leave_ring(int fd); /* pio_uring.c */
static void end_change(void);
static void leave_rings(void);
static void look_at_close(void);

DECLARE_NEXT(close)
EXPORT int close(int fd) {
    if (leave_ring(fd)) {
        int result = NEXT(close)(fd);
        end_change();
        return result;
    }
    if (!recording() || !is_owner() || !forget(fd))
        return NEXT(close)(fd);
    look_at_close();
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
    uint64_t end_ns = end_of(span);
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

#include "pio_locks.c"

/* Every command takes at most one argument, an int, a long or a pointer: a long carries each. */
#define HOOK_FCNTL(name)                                                                                               \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT int name(int fd, int command, ...) {                                                                        \
        va_list arguments;                                                                                             \
        va_start(arguments, command);                                                                                  \
        long argument = va_arg(arguments, long);                                                                       \
        va_end(arguments);                                                                                             \
        /* From now on, writes go wherever the end is. */                                                              \
        if (command == F_SETFL && (argument & O_APPEND) && recording() && is_owner() && tracked(fd))                   \
            set_descriptor(fd, EXACT);                                                                                 \
        if (is_lock(command) && tracked(fd))                                                                           \
            LOCK_BODY(fd, NEXT(name)(fd, command, argument), (const struct flock *)argument)                           \
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
    finish_data(&span, call, fd, (uint64_t)(offset), size, result);                                                    \
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
            if (side[i].offset == PIO_NO_OFFSET && result >= 0 && LOAD(&descriptors[side[i].fd]) == EXACT)
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

#include "pio_names.c"
#include "pio_memory.c"
#include "pio_streams.c"

/* Processes ------------------------------------------------------------------------------------------------------ */

#include "pio_exec.c"

#define HOOK_EXIT(name)                                                                                                \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT __attribute__((noreturn)) void name(int status) {                                                           \
        leave_rings();                                                                                                 \
        count_faults();                                                                                                \
        count_processor_waits();                                                                                       \
        mark_ended(PIO_ENDED_NORMALLY);                                                                                \
        NEXT(name)(status);                                                                                            \
        __builtin_unreachable();                                                                                       \
    }

HOOK_EXIT(_exit)
HOOK_EXIT(_Exit)

__attribute__((constructor)) static void process_starts(void) {
    (void)recording();
    forget_sanitizer();
}

__attribute__((destructor)) static void process_ends(void) {
    leave_rings();
    count_faults();
    count_processor_waits();
    mark_ended(PIO_ENDED_NORMALLY);
}

#include "pio_recorder.c"
#include "pio_library.c"
#include "pio_async.c"
#include "pio_libaio.c"
#include "pio_trap.c"
#include "pio_uring.c"
#include "pio_hdf5.c"
#include "pio_netcdf.c"
