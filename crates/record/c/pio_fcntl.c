/* Calls that duplicate a descriptor, and fcntl, of which some commands do. */
#include "pio_bodies.h"

#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

/* After `copy` became another name of `fd`. One of a descriptor that is too high to be recorded is looked at when it is used. */
void pio_finish_dup(const struct pioscope_span *span, int fd, int copy) {
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

DECLARE_NEXT(dup)
EXPORT int dup(int fd) {
    DUP_BODY(fd, NEXT(dup)(fd))
}

DECLARE_NEXT(dup2)
EXPORT int dup2(int fd, int copy_to) {
    DUP_OVER_BODY(fd, copy_to, NEXT(dup2)(fd, copy_to))
}

DECLARE_NEXT(dup3)
EXPORT int dup3(int fd, int copy_to, int flags) {
    DUP_OVER_BODY(fd, copy_to, NEXT(dup3)(fd, copy_to, flags))
}

void pio_flags_are_set(int fd, long flags) {
    if (flags & O_APPEND)
        pio_set_descriptor(fd, APPENDS);
    else if (LOAD(&pio_descriptors[fd]) == APPENDS)
        pio_set_descriptor(fd, EXACT);
}

#define HOOK_FCNTL(name)                                                                                               \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT int name(int fd, int command, ...) {                                                                        \
        va_list arguments;                                                                                             \
        va_start(arguments, command);                                                                                  \
        long argument = va_arg(arguments, long);                                                                       \
        va_end(arguments);                                                                                             \
        FCNTL_BODY(fd, command, argument, NEXT(name)(fd, command, argument))                                           \
    }

HOOK_FCNTL(fcntl)
HOOK_FCNTL(fcntl64)
