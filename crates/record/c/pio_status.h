/* What a descriptor is of, as far as the kernel says it without asking a server: one that shares a file with thousands of
 * processes would be asked for its size by each of them. */
#ifndef PIO_STATUS_H
#define PIO_STATUS_H

#include "pio_common.h"

#pragma GCC visibility push(hidden)

struct pio_status {
    bool is_regular_file;
    /* 0 if they are not known: before Linux 4.11. */
    uint64_t device;
    uint64_t size; /* as the kernel has it, which may be behind the server's */
};

/* errno may change. */
struct pio_status pio_status_of(int fd);

#pragma GCC visibility pop

#endif
