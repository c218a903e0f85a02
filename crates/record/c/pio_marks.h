/* The names of marks, which each process writes once. */
#ifndef PIO_MARKS_H
#define PIO_MARKS_H

#include "pio_common.h"

#pragma GCC visibility push(hidden)

/* In a forked child, whose spool has no names yet. */
void pio_forget_marks(void);

#pragma GCC visibility pop

#endif
