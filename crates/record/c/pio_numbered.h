/* A system call that the program makes by its number, through the C library's syscall(). */
#ifndef PIO_NUMBERED_H
#define PIO_NUMBERED_H

#include "pio_common.h"

struct numbered {
    long number, a, b, c, d, e, f;
};

/* On to the next syscall(), mostly the C library's: a library that stands for the function of that name alone does not see it
 * without us, either. */
static inline long pass_on(const struct numbered *call) {
    static void *next;
    return ((long (*)(long, ...))next_function(&next, "syscall"))(call->number, call->a, call->b, call->c, call->d,
                                                                  call->e, call->f);
}

#pragma GCC visibility push(hidden)

/* execve and execveat; wait4 and waitid. */
long pio_numbered_exec(const struct numbered *asked);
long pio_numbered_wait(const struct numbered *asked);

#pragma GCC visibility pop

#endif
