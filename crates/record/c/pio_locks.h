/* Locks on ranges of a file, by fcntl and lockf. */
#ifndef PIO_LOCKS_H
#define PIO_LOCKS_H

#include "pio_span.h"

#include <fcntl.h>

#pragma GCC visibility push(hidden)

/* Commands that take a lock or give one back. On machines of 64 bits, the forms for large files have the same numbers. */
static inline bool is_lock(int command) {
    return command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK || command == F_OFD_SETLKW;
}

/* After a lock was taken or given back, or was not. `lock` is looked at only if the kernel did. */
void pio_finish_lock(const struct pioscope_span *span, int fd, const struct flock *lock, int result);

#define LOCK_BODY(fd, next_call, lock)                                                                                 \
    {                                                                                                                  \
        struct pioscope_span span;                                                                                     \
        pio_span_begin(&span);                                                                                         \
        int result = next_call;                                                                                        \
        pio_finish_lock(&span, fd, lock, result);                                                                      \
        return result;                                                                                                 \
    }

#pragma GCC visibility pop

#endif
