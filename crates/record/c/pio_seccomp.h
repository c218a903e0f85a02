/* Programs that restrict their system calls by seccomp(2). */
#ifndef PIO_SECCOMP_H
#define PIO_SECCOMP_H

#include "pio_numbered.h"

#pragma GCC visibility push(hidden)

/* prctl(2) or seccomp(2). */
long pio_restrict(const struct numbered *asked);

#pragma GCC visibility pop

#endif
