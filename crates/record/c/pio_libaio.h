/* libaio, and the system calls under it. */
#ifndef PIO_LIBAIO_H
#define PIO_LIBAIO_H

#include "pio_common.h"

#pragma GCC visibility push(hidden)

/* The system calls by their numbers, which set errno. */
long pio_libaio_syscall(long number, long a, long b, long c, long d, long e, long f);

/* In a forked child, which has none of its parent's in flight. */
void pio_forget_iocbs(void);

#pragma GCC visibility pop

#endif
