/* The process: whether it records. */
#ifndef PIO_PROCESS_H
#define PIO_PROCESS_H

#include "pio_told.h"

#include <unistd.h>

#pragma GCC visibility push(hidden)

/* The pid of the process that records, in a page that the kernel zeroes in every forked child (but leaves alone in a
 * vfork child, which shares it): 0 says that this process has not begun. */
extern uint32_t *pio_alive;

extern bool pio_switched_off; /* no spool folder was named, or recording has stopped */
extern uint64_t pio_first_seen_ns;

/* Before the first record of a process. False if it does not record (yet). */
bool pio_start(void);

/* Whether calls are to be recorded: one or two loads, but for the first time. */
static inline bool recording(void) {
    return LIKELY(LOAD(ACQUIRE(&pio_alive)) != 0) || (!pio_switched_off && pio_start());
}

/* Before it ends, in whatever way. */
void pio_finish_process(void);

/* Nothing is recorded of this process any more, nor of the children that it forks: for its trace it ends here. No system call is
 * made of ours from then on, but where it starts a program (pio_exec.c). */
void pio_stop_recording(void);
void pio_go_on_recording(void);

/* The process is a rank of MPI, which has started: from here on it counts for what the rank waits. */
extern bool pio_is_rank;
void pio_rank_starts(void);

/* Whether this is the process that the state in memory belongs to, and not a vfork child that borrows the memory. */
static inline bool is_owner(void) {
    return (uint32_t)getpid() == LOAD(pio_alive);
}

#pragma GCC visibility pop

#endif
