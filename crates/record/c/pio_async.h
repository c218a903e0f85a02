/* Operations in flight: submitted, and not yet known to be complete; for POSIX asynchronous I/O, libaio and io_uring.
 *
 * The record of an operation is written when it is submitted, as unfinished, and gets its time and result when its
 * completion is seen: a process that is killed in between leaves it so. */
#ifndef PIO_ASYNC_H
#define PIO_ASYNC_H

#include "pio_writer.h"

#pragma GCC visibility push(hidden)

/* Read and write that an operation stands for: `second` only for a copy. */
struct operation {
    uint64_t key; /* what the completion names: several operations may share it, and end in their order */
    struct pio_record *record, *second;
    uint32_t next; /* in its chain, + 1 */
    bool opens;
    int32_t directly; /* of an open into a place that the kernel chooses: our number of the file */
};

/* A table of them, by key, in memory of its own. */
struct in_flight;

/* NULL if there is no memory. A forked child does not have it. */
struct in_flight *pio_new_in_flight(uint32_t least);
void pio_free_in_flight(struct in_flight *table);

/* The table at a place, made when it is first asked for. */
struct in_flight *pio_in_flight_at(struct in_flight **place, uint32_t least);

/* False in a signal handler that interrupted who holds a table. */
bool pio_hold_in_flight(struct in_flight *table);
void pio_release_in_flight(struct in_flight *table);

/* In a forked child: its only thread holds none. */
void pio_forget_holds(void);

/* A place for one more, empty but for its key; NULL if all are taken. */
struct operation *pio_add_operation(struct in_flight *table, uint64_t key);

/* The oldest of this key; it leaves the table unless more completions of it will come. False if there is none. */
bool pio_take_operation(struct in_flight *table, uint64_t key, bool stays, struct operation *taken);

/* The record of an operation that is about to be submitted; NULL if the budget or the room does not allow one. */
struct pio_record *pio_begin_async(struct pioscope_span *span, uint32_t call, int fd, uint64_t offset, uint64_t size);

/* It was not submitted after all. */
void pio_forget_async(struct pio_record *record);

#pragma GCC visibility pop

#endif
