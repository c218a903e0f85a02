/* The file of this process's spool: room in it, promised by the device, and mapped piece by piece. */
#ifndef PIO_ROOM_H
#define PIO_ROOM_H

#include "pio_process.h"
#include "pio_spool.h"

#include <errno.h>

#pragma GCC visibility push(hidden)

/* The first segment is small, for the many processes that hardly do anything. Later ones are few system calls a record. */
#define FIRST_SEGMENT_BYTES (64u * 1024u)
#define SEGMENT_BYTES (1024u * 1024u)
#define SEGMENTS 32768u /* 32 GiB: half of what the kernel lets one process map piecewise */
#define SEGMENT_BUSY ((char *)1)

/* The device promises room for a segment at once, as that takes fewest system calls; but where processes share a budget,
 * only for what is about to be used. Segments begin and end where such pieces do. */
#define PROMISE_BYTES FIRST_SEGMENT_BYTES
#define PROMISES (SEGMENTS * (SEGMENT_BYTES / PROMISE_BYTES))

/* A process may be out of descriptors for a while. What would need one is tried again, but not at every call. */
#define RETRY_NS 10000000u

/* The spool of this process. */
struct spool {
    uint32_t state; /* SPOOL_... */
    bool full;      /* no more room: what has a chunk goes on, nothing new is taken */
    char path[PATH_MAX];
    struct pio_header *header;
    char *segments[SEGMENTS];
    unsigned char promised[PROMISES]; /* PROMISE_... */
    uint64_t used;                    /* beyond, both have no entry */
    uint64_t early_drops;             /* records that were lost before there was a header to count them in */
    uint32_t threads;    /* that recorded so far */
    uint64_t operations; /* ids given so far */
    uint64_t thinning;   /* 2^k - 1: one call in 2^k is kept */
    struct budget *budget;
};
extern struct spool pio_spool;

/* The operation of what MPI does by itself, in calls of the program that are no operations. No record begins it. */
#define PIO_OPERATION_OF_MPI 1u

/* The id of another operation. */
static inline uint64_t pio_new_operation(void) {
    return PIO_OPERATION_OF_MPI + __atomic_add_fetch(&pio_spool.operations, 1, __ATOMIC_RELAXED);
}

enum { SPOOL_NONE, SPOOL_BUSY, SPOOL_OPEN, SPOOL_FAILED };

/* Creates the spool if there is none yet; false if it cannot be. */
bool pio_spool_is_open(void);

/* Makes the device promise `bytes` of the file, which lie in one segment; errno says why it did not. */
bool pio_promise(uint64_t start_of, size_t bytes);

/* Where a segment is mapped; NULL if it cannot be. */
char *pio_segment_address(size_t segment);

/* Keeps fewer calls from now on if much of the budget is gone. */
void pio_look_at_budget(void);

/* Beyond the program's own limit the kernel would not only refuse: it would kill it (SIGXFSZ). */
bool pio_may_grow_to(uint64_t end);

/* In a forked child: the spool is its parent's. */
void pio_forget_spool(void);

/* How the process ended: PIO_ENDED_... */
void pio_mark_ended(uint32_t how);

static inline size_t segment_of(uint64_t offset) {
    return offset < FIRST_SEGMENT_BYTES ? 0 : 1 + (size_t)((offset - FIRST_SEGMENT_BYTES) / SEGMENT_BYTES);
}

static inline uint64_t segment_start(size_t segment) {
    return segment == 0 ? 0 : FIRST_SEGMENT_BYTES + (uint64_t)(segment - 1) * SEGMENT_BYTES;
}

/* Out of descriptors: the only trouble that passes. */
static inline bool is_passing(int error) {
    return error == EMFILE || error == ENFILE;
}

#pragma GCC visibility pop

#endif
