/* Mapped files, and the faults that they cause. */
#ifndef PIO_MAPPED_H
#define PIO_MAPPED_H

#include "pio_common.h"

#pragma GCC visibility push(hidden)

/* How many times a file was mapped so far (in /dev/shm alone: 0): while it is 0, memory is no business of ours. */
extern uint64_t pio_files_mapped;

/* Faults that waited for a device since the first mapping: when the process ends. */
void pio_count_faults(void);

/* In a forked child, whose faults the kernel counts from 0. */
void pio_forget_faults(void);

#pragma GCC visibility pop

#endif
