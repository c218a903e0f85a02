/* Asynchronous I/O of POSIX. */
#ifndef PIO_AIO_H
#define PIO_AIO_H

#include "pio_common.h"

#pragma GCC visibility push(hidden)

/* In a forked child: what is in flight is its parent's. */
void pio_forget_controls(void);

#pragma GCC visibility pop

#endif
