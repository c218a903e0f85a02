/* The file systems that opened files are on. */
#ifndef PIO_FILE_SYSTEM_H
#define PIO_FILE_SYSTEM_H

#include "pio_common.h"

#pragma GCC visibility push(hidden)

/* The device of an open file, 0 if it is not known. The first file of each device says what is there, by a record of its
 * own. errno may change. */
uint64_t pio_device_of(int fd);

/* In a forked child, whose spool has no devices yet. */
void pio_forget_devices(void);

#pragma GCC visibility pop

#endif
