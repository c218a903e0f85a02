/* libaio, and the system calls under it. */
#ifndef PIO_LIBAIO_H
#define PIO_LIBAIO_H

#include "pio_numbered.h"

#pragma GCC visibility push(hidden)

/* The system calls by their numbers, which set errno. */
long pio_numbered_libaio(const struct numbered *asked);

/* In a forked child, which has none of its parent's in flight. */
void pio_forget_iocbs(void);

#pragma GCC visibility pop

#endif
