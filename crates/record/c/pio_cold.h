/* Whether the kernel's memory has a file that is opened. */
#ifndef PIO_COLD_H
#define PIO_COLD_H

#include <stdbool.h>

#pragma GCC visibility push(hidden)

/* Whether a file that was just opened with `flags` is there to be read, and memory has less than half of it. False where the
 * kernel does not say (before Linux 6.5, or of files that others own, or if it does not know the size). errno may change. */
bool pio_is_cold(int fd, int flags);

#pragma GCC visibility pop

#endif
