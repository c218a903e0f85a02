/* io_uring, by system calls of the C library and by liburing's functions (pio_liburing.c).
 *
 * A ring is two arrays in memory that kernel and program share: the program writes what it asks for (SQEs) and moves the
 * tail of the one, the kernel writes what became of it (CQEs) and moves the tail of the other. We map both once more, and
 * read them whenever the program makes a call: what was put between our place and the tail is new. What the program takes
 * out between two calls stays in the memory until the kernel needs the room, which it does not before more is asked for.
 *
 * A ring is named as not seen (ring_is_unseen) where the kernel takes from it without a call of the program's (SQPOLL),
 * where its memory is the program's own, or where it was made by instructions of the program's own and is there when we
 * look (look_for_rings). */
#ifndef PIO_URING_H
#define PIO_URING_H

#include "pio_async.h"
#include "pio_numbered.h"

#include <sys/syscall.h>

#pragma GCC visibility push(hidden)

/* Older headers do not know these. */
#ifndef SYS_io_uring_setup
#define SYS_io_uring_setup 425
#define SYS_io_uring_enter 426
#define SYS_io_uring_register 427
#endif

struct ring; /* one that is followed */

struct ring_sqe {
    uint8_t opcode, flags;
    uint16_t priority;
    int32_t fd;
    uint64_t offset; /* or a second address */
    uint64_t address;
    uint32_t length;
    uint32_t op_flags;
    uint64_t user_data;
    uint16_t buffer;
    uint16_t personality;
    uint32_t file_index; /* or the other descriptor of a copy */
    uint64_t reserved[2];
};

struct ring_cqe {
    uint64_t user_data;
    int32_t result;
    uint32_t flags;
};

struct ring_params {
    uint32_t sq_entries, cq_entries, flags, sq_cpu, sq_idle, features, wq_fd, reserved[3];
    struct {
        uint32_t head, tail, mask, entries, flags, dropped, array, reserved;
        uint64_t address;
    } sq;
    struct {
        uint32_t head, tail, mask, entries, overflow, cqes, flags, reserved;
        uint64_t address;
    } cq;
};

enum {
    RING_SETUP_NO_SQARRAY = 1u << 16,
    RING_FEATURE_SINGLE_MMAP = 1u << 0,
    RING_ENTER_REGISTERED_RING = 1u << 4,
};

bool pio_follows_ring(int fd);

/* The ring of a descriptor, which is there until it is given back, though another thread may close it; NULL for none that this process
 * follows. */
struct ring *pio_take_ring(int fd);
void pio_give_ring(struct ring *ring);

/* While a thread makes or closes a ring, there is one that is not followed: no other thread may take that for one which the
 * program made by itself. So changes are counted as they begin and as they end. */
void pio_begin_change(void);
void pio_end_change(void);

/* After a ring was made. */
void pio_follow_ring(int fd, const struct ring_params *made);

/* After `files` were registered (NULL: a table of empty places), some were set (-2 leaves a place alone), or all went. */
void pio_see_files(struct ring *ring, const int *files, uint32_t count);
void pio_see_files_set(struct ring *ring, uint32_t first, const int *files, uint32_t count);
void pio_see_files_gone(struct ring *ring);

/* After a registration that succeeded. */
void pio_see_registration(int fd, uint32_t what, const void *argument, uint32_t count);

/* How far the program has put what it asks for. */
uint32_t pio_ring_tail(const struct ring *ring);

/* Before a call that may submit what lies in the ring up to `end`: from then on, another thread may see completions. After it, the
 * ring is given back. */
bool pio_begin_ring_call(struct ring *ring, struct pioscope_span *span, uint32_t end);
void pio_end_ring_call(struct ring *ring, const struct pioscope_span *span, bool submitted);

/* Before the descriptors from `first` to `last` are closed, by whatever call: how many of them are rings that were followed, to be
 * told when they are closed. */
uint32_t pio_leave_rings(uint32_t first, uint32_t last);
void pio_rings_are_closed(uint32_t left);

/* When the process ends. */
void pio_finish_rings(void);

/* A file is closed: now and then, less and less often, is a time to look for rings that were not seen. */
void pio_look_at_close(void);

/* In a forked child: it has the rings' descriptors, but what is in flight is its parent's. */
void pio_forget_rings(void);

/* System calls by number. */
long pio_ring_setup(const struct numbered *asked);
long pio_ring_enter(const struct numbered *asked);
long pio_ring_register(const struct numbered *asked);

#pragma GCC visibility pop

#endif
