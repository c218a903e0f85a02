/* What the recorder keeps of a thread. */
#ifndef PIO_THREAD_H
#define PIO_THREAD_H

#include "pio_clock.h"
#include "pio_process.h"
#include "pio_spool.h"

#include <string.h>

#pragma GCC visibility push(hidden)

/* Whether marks tell of sleep (pio_clock.h): MARKS_UNKNOWN until the first process of this image has tried. */
extern uint32_t pio_marks;
enum { MARKS_UNKNOWN, MARKS_TELL, MARKS_DO_NOT_TELL };

/* A reading of a thread's CPU time, and of a rank's what else the kernel had counted. Not each becomes the thread's sample: what
 * began with it may not be recorded. */
struct cpu_reading {
    bool has_counts;
    uint64_t cpu_ns;
    uint64_t at_ns;     /* CLOCK_MONOTONIC at the same moment */
    uint64_t waited_ns; /* how long it had waited for a processor */
    uint64_t sleeps;    /* how often it had given its processor away */
};

/* Each thread's own, of the process `pid`. */
struct writer_thread {
    uint32_t pid;    /* the process for which the rest holds */
    uint32_t number; /* in order of first record */
    uint32_t whole_chunks;
    uint32_t depth; /* of operations within operations */
    bool busy;      /* inside a reservation: a signal handler must not make another */
    char *cursor; /* of short records */
    char *end;
    struct pio_chunk *chunk;
    uint64_t base_ns;   /* when the chunk's last short record ended, 0 if there is none */
    uint64_t last_size; /* its size */
    uint64_t last_end;  /* where in the file it ended */
    char *whole_cursor; /* of whole records */
    char *whole_end;
    bool has_number;
    uint64_t *mark;     /* where a mark can be left, or NULL */
    struct clock_anchor anchor;
    uint64_t thinned;   /* calls that the budget was asked about */
    uint64_t retry_ns;  /* no room is asked for before */
    uint64_t kept_place; /* room in the file that could not be used yet, */
    uint32_t kept_bytes; /* so much of it */
    uint64_t end_ns;    /* CLOCK_MONOTONIC after its last recorded call */
    uint64_t cpu_ns;    /* thread's CPU clock when last read */
    uint64_t sample_ns; /* CLOCK_MONOTONIC at the same moment */
    struct cpu_reading read;
    uint64_t operation;
    uint64_t library; /* the operation of the call of HDF5 or PnetCDF that the thread is in, or 0 */
    uint32_t library_ranks; /* most ranks with which MPI-IO opened a file in it */
} __attribute__((aligned(64)));

extern __thread struct writer_thread pio_self __attribute__((tls_model("initial-exec")));

/* Finds out whether marks tell, and lets this thread leave its own. */
void pio_try_marks(void);

static inline void meet_thread(void) {
    uint32_t pid = LOAD(pio_alive);
    if (UNLIKELY(pio_self.pid != pid)) {
        memset(&pio_self, 0, sizeof pio_self);
        pio_self.pid = pid;
        pio_self.mark = LOAD(&pio_marks) == MARKS_TELL ? mark_place() : NULL;
    }
}

static inline uint64_t now_ns(void) {
    return clock_now(&pio_self.anchor);
}

#pragma GCC visibility pop

#endif
