/* The file systems that opened files are on. */
#ifndef PIO_FILE_SYSTEM_H
#define PIO_FILE_SYSTEM_H

#include "pio_common.h"

#pragma GCC visibility push(hidden)

/* The device of an open file, as pio_path_of_descriptor found it; 0 if it is not known. The first file of each device says what
 * is there, by a record of its own. errno may change. */
uint64_t pio_tell_device(uint64_t device, int fd);

/* In a forked child, whose spool has no devices yet. */
void pio_forget_devices(void);

#pragma GCC visibility pop

#endif
