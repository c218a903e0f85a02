/* Calls that open a file. */
#ifndef PIO_OPEN_H
#define PIO_OPEN_H

#include "pio_span.h"

#pragma GCC visibility push(hidden)

/* After an open that returned `fd` (or failed). */
void pio_finish_open(const struct pioscope_span *span, uint32_t call, int folder, const char *name, int fd, int flags);

#pragma GCC visibility pop

#endif
