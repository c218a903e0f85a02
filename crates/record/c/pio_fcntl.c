/* Calls that duplicate a descriptor, and fcntl, of which some commands do. */
#include "pio_hook.h"
#include "pio_locks.h"
#include "pio_uring.h"

#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

/* After `copy` became another name of `fd`. One of a descriptor that is too high to be recorded is looked at when it is used. */
static void finish_dup(const struct pioscope_span *span, int fd, int copy) {
    if (copy < 0 || copy == fd || !in_table(copy))
        return;
    unsigned char state = in_table(fd) ? LOAD(&pio_descriptors[fd]) : UNKNOWN;
    pio_set_descriptor(copy, state);
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
    pio_span_begin(&span);                                                                                             \
    int copy = next_call;                                                                                              \
    finish_dup(&span, fd, copy);                                                                                       \
    return copy;

DECLARE_NEXT(dup)
EXPORT int dup(int fd) {
    DUP_BODY(fd, NEXT(dup)(fd))
}

/* What the descriptor `copy_to` was of is closed by the call: it may have been a ring. */
#define DUP_OVER_BODY(fd, copy_to, next_call)                                                                          \
    uint32_t rings = copy_to == fd ? 0 : pio_leave_rings((uint32_t)copy_to, (uint32_t)copy_to);                        \
    DUP_BODY(fd, ({                                                                                                    \
                 int made = next_call;                                                                                 \
                 pio_rings_are_closed(rings);                                                                          \
                 made;                                                                                                 \
             }))

DECLARE_NEXT(dup2)
EXPORT int dup2(int fd, int copy_to) {
    DUP_OVER_BODY(fd, copy_to, NEXT(dup2)(fd, copy_to))
}

DECLARE_NEXT(dup3)
EXPORT int dup3(int fd, int copy_to, int flags) {
    DUP_OVER_BODY(fd, copy_to, NEXT(dup3)(fd, copy_to, flags))
}

/* Every command takes at most one argument, an int, a long or a pointer: a long carries each. */
#define HOOK_FCNTL(name)                                                                                               \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT int name(int fd, int command, ...) {                                                                        \
        va_list arguments;                                                                                             \
        va_start(arguments, command);                                                                                  \
        long argument = va_arg(arguments, long);                                                                       \
        va_end(arguments);                                                                                             \
        /* From now on, writes go wherever the end is, or no longer do. */                                             \
        if (command == F_SETFL && recording() && is_owner() && tracked(fd)) {                                          \
            if (argument & O_APPEND)                                                                                   \
                pio_set_descriptor(fd, APPENDS);                                                                       \
            else if (LOAD(&pio_descriptors[fd]) == APPENDS)                                                            \
                pio_set_descriptor(fd, EXACT);                                                                         \
        }                                                                                                              \
        if (is_lock(command) && tracked(fd))                                                                           \
            LOCK_BODY(fd, NEXT(name)(fd, command, argument), (const struct flock *)argument)                           \
        if (command != F_DUPFD && command != F_DUPFD_CLOEXEC)                                                          \
            return NEXT(name)(fd, command, argument);                                                                  \
        DUP_BODY(fd, NEXT(name)(fd, command, argument))                                                                \
    }

HOOK_FCNTL(fcntl)
HOOK_FCNTL(fcntl64)
