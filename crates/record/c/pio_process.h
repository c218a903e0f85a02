/* The process: whether it records, and what it was told when it started. */
#ifndef PIO_PROCESS_H
#define PIO_PROCESS_H

#include "pio_common.h"

#include <limits.h>
#include <unistd.h>

#pragma GCC visibility push(hidden)

extern char pio_spool_folder[PATH_MAX];
extern char pio_path_rules[16384];   /* of PIOSCOPE_PATHS */
extern char pio_call_sites_wanted[4]; /* of PIOSCOPE_CALL_SITES: yes or no */
extern char pio_own_libraries[4096]; /* of PIOSCOPE_PRELOAD: what is to be in LD_PRELOAD */
extern char pio_own_sanitizer[512];  /* of PIOSCOPE_FIRST: what was put before them for this program alone */
/* The same for processes of other users, who may not reach those: a folder to which all may write, and libraries there. */
extern char pio_others_folder[PATH_MAX], pio_others_libraries[4096];

/* The pid of the process that records, in a page that the kernel zeroes in every forked child (but leaves alone in a
 * vfork child, which shares it): 0 says that this process has not begun. */
extern uint32_t *pio_alive;

extern bool pio_switched_off; /* no spool folder was named */
extern uint64_t pio_first_seen_ns;

/* Before the first record of a process. False if it does not record (yet). */
bool pio_start(void);

/* Whether calls are to be recorded: one or two loads, but for the first time. */
static inline bool recording(void) {
    return LIKELY(LOAD(ACQUIRE(&pio_alive)) != 0) || (!pio_switched_off && pio_start());
}

/* The process is a rank of MPI, which has started: from here on it counts for what the rank waits. */
extern bool pio_is_rank;
void pio_rank_starts(void);

/* Whether this is the process that the state in memory belongs to, and not a vfork child that borrows the memory. */
static inline bool is_owner(void) {
    return (uint32_t)getpid() == LOAD(pio_alive);
}

#pragma GCC visibility pop

#endif
