/* What is done around calls, which come by the next definition of a function or by number (pio_syscall.c): `next_call`. */
#ifndef PIO_BODIES_H
#define PIO_BODIES_H

#include "pio_hook.h"
#include "pio_locks.h"
#include "pio_mapped.h"
#include "pio_open.h"
#include "pio_uring.h"
#include "pio_vector.h"

#include <errno.h>
#include <fcntl.h>

#pragma GCC visibility push(hidden)

#define SPAN_BODY(type, next_call, finish)                                                                             \
    struct pioscope_span span;                                                                                         \
    pio_span_begin(&span);                                                                                             \
    type result = next_call;                                                                                           \
    finish;                                                                                                            \
    return result;

/* A call that reads or writes; `size` may look at `result`. */
#define DATA_BODY(call, fd, offset, size, next_call)                                                                   \
    if (!tracked(fd))                                                                                                  \
        return next_call;                                                                                              \
    SPAN_BODY(ssize_t, next_call, pio_finish_data(&span, call, fd, (uint64_t)(offset), size, result))

/* A write at an offset: Linux writes at the end of a file that was opened to append, whatever the offset is (pwrite(2), BUGS). So does
 * a call that `appends`. */
#define WRITE_AT_BODY(call, fd, offset, appends, size, next_call)                                                      \
    if (!tracked(fd))                                                                                                  \
        return next_call;                                                                                              \
    SPAN_BODY(ssize_t, next_call, if (UNLIKELY(appends)) pio_finish_appended(&span, call, fd, 0, size, result);        \
              else pio_finish_data(&span, call, fd, (uint64_t)(offset), size, result))

static inline bool pio_appends(int fd) {
    return LOAD(&pio_descriptors[fd]) == APPENDS;
}

#ifndef RWF_NOAPPEND
#define RWF_NOAPPEND 0x20 /* since Linux 6.9 */
#endif

/* With its flags. A call at the position (offset -1) moves that to the end, where it must be asked for from then on. */
static inline bool pio_appends_by(int fd, int flags, off64_t offset) {
    if ((flags & RWF_APPEND) && offset == -1 && LOAD(&pio_descriptors[fd]) == TRACKED)
        pio_set_descriptor(fd, EXACT);
    return flags & RWF_APPEND || (!(flags & RWF_NOAPPEND) && pio_appends(fd));
}

/* A copy inside the kernel, which moves a given offset on. Before the call, nobody knows whether it can be read. */
void pio_finish_copy(const struct pioscope_span *span, int from, uint64_t from_offset, int to, uint64_t to_offset,
                     size_t count, ssize_t result);
#define OFFSET_BEFORE(offset, moved) (moved >= 0 && offset != NULL ? (uint64_t)(*offset - moved) : PIO_NO_OFFSET)
#define COPY_BODY(from, from_offset, to, to_offset, count, next_call)                                                  \
    bool from_tracked = tracked(from), to_tracked = tracked(to);                                                       \
    if (!from_tracked && !to_tracked)                                                                                  \
        return next_call;                                                                                              \
    SPAN_BODY(ssize_t, next_call,                                                                                      \
              pio_finish_copy(&span, from, OFFSET_BEFORE((from_offset), result), to,                                   \
                              OFFSET_BEFORE((to_offset), result), count, result))

/* A call that takes the descriptor `fd`, and leaves it where it stands. */
#define ON_DESCRIPTOR_BODY(fd, call, offset, size, next_call)                                                          \
    if (!tracked(fd))                                                                                                  \
        return next_call;                                                                                              \
    SPAN_BODY(int, next_call, pio_finish_simple(&span, call, fd, (uint64_t)(offset), (uint64_t)(size), result))

#define HOOK_ON_DESCRIPTOR(name, parameters, call, offset, size, next_call)                                            \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT int name parameters {                                                                                       \
        ON_DESCRIPTOR_BODY(fd, call, offset, size, next_call)                                                          \
    }

#define LSEEK_BODY(type, fd, next_call)                                                                                \
    if (!tracked(fd))                                                                                                  \
        return next_call;                                                                                              \
    SPAN_BODY(type, next_call,                                                                                         \
              pio_finish_simple(&span, PIO_CALL_LSEEK, fd, result < 0 ? 0 : (uint64_t)result, 0, result < 0 ? -1 : 0))

/* A call on no descriptor and no name. */
#define ON_ALL_BODY(call, size, next_call)                                                                             \
    if (!recording() || !is_owner())                                                                                   \
        return next_call;                                                                                              \
    SPAN_BODY(int, next_call, pio_finish_simple(&span, call, -1, PIO_NO_OFFSET, (uint64_t)(size), result))

#define MSYNC_BODY(length, next_call)                                                                                  \
    if (LOAD(&pio_files_mapped) == 0)                                                                                  \
        return next_call;                                                                                              \
    ON_ALL_BODY(PIO_CALL_MSYNC, length, next_call)

/* `flags` may look at `result`, the descriptor. */
#define OPEN_BODY(call, folder, path, flags, next_call)                                                                \
    if (!recording() || !is_owner())                                                                                   \
        return next_call;                                                                                              \
    SPAN_BODY(int, next_call, pio_finish_open(&span, call, folder, path, result, flags))

#define CLOSE_BODY(fd, next_call)                                                                                      \
    uint32_t rings = pio_leave_rings((uint32_t)(fd), (uint32_t)(fd));                                                  \
    if (rings > 0) {                                                                                                   \
        int closed = next_call;                                                                                        \
        pio_rings_are_closed(rings);                                                                                   \
        return closed;                                                                                                 \
    }                                                                                                                  \
    if (!recording() || !is_owner() || !pio_forget_descriptor(fd))                                                     \
        return next_call;                                                                                              \
    pio_look_at_close();                                                                                               \
    SPAN_BODY(int, next_call, pio_finish_simple(&span, PIO_CALL_CLOSE, fd, PIO_NO_OFFSET, 0, result))

/* Before all descriptors from `first` to `last` are closed: how many of them are rings. */
uint32_t pio_forget_range(unsigned first, unsigned last);
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC 4u /* since glibc 2.34 */
#endif
#define CLOSE_RANGE_BODY(first, last, flags, next_call)                                                                \
    uint32_t rings = (flags) & CLOSE_RANGE_CLOEXEC ? 0 : pio_forget_range(first, last);                                \
    int result = next_call;                                                                                            \
    pio_rings_are_closed(rings);                                                                                       \
    return result;

/* A descriptor gets another number. */
void pio_finish_dup(const struct pioscope_span *span, int fd, int copy);
#define DUP_BODY(fd, next_call)                                                                                        \
    if (!recording() || !is_owner())                                                                                   \
        return next_call;                                                                                              \
    SPAN_BODY(int, next_call, pio_finish_dup(&span, fd, result))

/* What the descriptor `copy_to` was of is closed by the call: it may have been a ring. */
#define DUP_OVER_BODY(fd, copy_to, next_call)                                                                          \
    uint32_t rings = copy_to == fd ? 0 : pio_leave_rings((uint32_t)copy_to, (uint32_t)copy_to);                        \
    DUP_BODY(fd, ({                                                                                                    \
                 int made = (int)next_call;                                                                            \
                 pio_rings_are_closed(rings);                                                                          \
                 made;                                                                                                 \
             }))

/* Every command takes at most one argument, an int, a long or a pointer: a long carries each. F_SETFL: from now on, writes go
 * wherever the end is, or no longer do. */
void pio_flags_are_set(int fd, long flags);
#define FCNTL_BODY(fd, command, argument, next_call)                                                                   \
    if (command == F_SETFL && recording() && is_owner() && tracked(fd))                                                \
        pio_flags_are_set(fd, argument);                                                                               \
    if (is_lock(command) && tracked(fd))                                                                               \
        LOCK_BODY(fd, next_call, (const struct flock *)argument)                                                       \
    if (command != F_DUPFD && command != F_DUPFD_CLOEXEC)                                                              \
        return next_call;                                                                                              \
    DUP_BODY(fd, next_call)

/* `type result = next_call`, of which -1 says that it failed. `path` is meant from `folder` on. */
#define PATH_BODY(type, folder, path, call, size, next_call)                                                           \
    if (!recording() || !is_owner())                                                                                   \
        return next_call;                                                                                              \
    SPAN_BODY(type, next_call,                                                                                         \
              pio_finish_name(&span, call, 0, folder, path, (uint64_t)(size), result == (type)-1 ? -1 : 0))

/* A call on two names. */
void pio_finish_names(const struct pioscope_span *span, uint32_t call, int folder, const char *name, int other_folder,
                      const char *other, int64_t result);
#define TWO_BODY(call, folder, path, other_folder, other, next_call)                                                   \
    if (!recording() || !is_owner())                                                                                   \
        return next_call;                                                                                              \
    SPAN_BODY(int, next_call, pio_finish_names(&span, call, folder, path, other_folder, other, result))

/* With AT_EMPTY_PATH, an empty path means the descriptor itself, and so does none. Rust's library asks so, and probes without a
 * path. */
void pio_finish_status(const struct pioscope_span *span, int fd, const char *path, int result);
#define STATUS_AT_BODY(fd, path, flags, next_call)                                                                     \
    if (((flags) & AT_EMPTY_PATH) && tracked(fd) && is_owner()) {                                                      \
        SPAN_BODY(int, next_call, pio_finish_status(&span, fd, path, result))                                          \
    }                                                                                                                  \
    PATH_BODY(int, fd, path, PIO_CALL_STAT, 0, next_call)

#pragma GCC visibility pop

#endif
