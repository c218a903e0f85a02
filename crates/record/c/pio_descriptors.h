/* What is known of each descriptor. */
#ifndef PIO_DESCRIPTORS_H
#define PIO_DESCRIPTORS_H

#include "pio_common.h"

#pragma GCC visibility push(hidden)

/* Higher descriptors are not recorded. */
#define DESCRIPTORS 65535

enum {
    UNKNOWN, /* never seen, or closed: looked at when first used */
    IGNORED, /* no regular file, or none of the job's */
    TRACKED,
    EXACT, /* tracked, and its position may move without our seeing it (shared with a process): asked for */
    APPENDS /* the same, and what is written goes to the end of the file, whatever the position or the call says */
};

extern unsigned char pio_descriptors[DESCRIPTORS];

static inline bool in_table(int fd) {
    return (unsigned)fd < DESCRIPTORS;
}

void pio_set_descriptor(int fd, unsigned char state);

/* Forgets a descriptor that is about to be closed, before another thread can get its number. True if it was tracked. */
bool pio_forget_descriptor(int fd);

/* In a forked child, whose descriptors are shared with its parent. */
void pio_forget_descriptors(void);

/* Others may move the positions of all from now on. */
void pio_descriptors_are_shared(void);

#pragma GCC visibility pop

#endif
