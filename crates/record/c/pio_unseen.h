/* Notes on programs that cannot be seen, in a file of their own, one a process: which program and why, and what it had
 * moved in the end, by /proc, which the waiting parent reads before it lets the process go. The collector (src/unseen.rs)
 * reads the notes.
 *
 * All of it may run in a child of vfork or fork: no allocation, no lock. */
#ifndef PIO_UNSEEN_H
#define PIO_UNSEEN_H

#include "pio_common.h"

#include <sys/types.h>

#pragma GCC visibility push(hidden)

/* Notes that a process runs (or, by this process itself, is about to run) a program that cannot be seen. */
void pio_note_unseen(uint32_t pid, const char *reason, const char *program);

/* The program did not start after all. */
void pio_take_back_unseen(void);

/* Children that a thread waits for, and their accounts: newer kernels let only root open that of a process that has
 * ended. */
enum { ACCOUNTS = 16 };

struct accounts {
    int count;
    uint32_t pids[ACCOUNTS];
    int fds[ACCOUNTS];
};

/* Opens the account of the child `pid`, or if that is 0 those of all children that this thread has started: as many as
 * there is room for. */
void pio_keep_accounts(struct accounts *kept, pid_t pid);
void pio_drop_accounts(struct accounts *kept);

/* A child has ended, and is still there: notes what it moved, if it was noted as not seen. */
void pio_note_end(uint32_t pid, struct accounts *kept);

#pragma GCC visibility pop

#endif
