/* liburing: its functions, through which most programs make rings (pio_uring.h). */
#include "pio_copies.h"
#include "pio_uring.h"

#include <errno.h>

/* The front of liburing's struct io_uring: the same in all its versions. */
struct io_uring {
    struct {
        uint32_t *head, *tail, *mask, *entries, *flags, *dropped, *array;
        struct ring_sqe *sqes;
        uint32_t sqe_head, sqe_tail;
        size_t bytes;
        void *memory;
        uint32_t reserved[4];
    } sq;
    struct {
        uint32_t *head, *tail, *mask, *entries, *flags, *overflow;
        struct ring_cqe *cqes;
        size_t bytes;
        void *memory;
        uint32_t reserved[4];
    } cq;
    uint32_t flags;
    int32_t fd;
};

_Static_assert(offsetof(struct io_uring, fd) == 196, "liburing's ring");

static struct library liburing = {.probe = "io_uring_submit"};

/* `theirs`, the library's own function. */
#define LIBURING_THEIRS(name, failure)                                                                                 \
    static void *place;                                                                                                \
    struct copy *copy = pio_copy_of(&liburing, __builtin_return_address(0));                                           \
    __typeof__(&name) theirs = copy == NULL ? NULL : (__typeof__(&name))pio_function_of(copy, &place, #name);          \
    if (theirs == NULL)                                                                                                \
        return failure;

static uint32_t offset_in(const void *memory, const void *place) {
    return (uint32_t)((const char *)place - (const char *)memory);
}

/* Follows a ring, from what liburing keeps of it. */
static void follow_library_ring(const struct io_uring *ring) {
    struct ring_params made = {.flags = ring->flags};
    made.sq_entries = *ring->sq.entries;
    made.cq_entries = *ring->cq.entries;
    made.features = ring->cq.memory == ring->sq.memory ? RING_FEATURE_SINGLE_MMAP : 0;
    made.sq.tail = offset_in(ring->sq.memory, ring->sq.tail);
    made.cq.tail = offset_in(ring->cq.memory, ring->cq.tail);
    made.cq.cqes = offset_in(ring->cq.memory, ring->cq.cqes);
    if (ring->sq.array == NULL)
        made.flags |= RING_SETUP_NO_SQARRAY;
    else
        made.sq.array = offset_in(ring->sq.memory, ring->sq.array);
    pio_follow_ring(ring->fd, &made);
}

/* A function that makes a ring. */
#define HOOK_RING_INIT(name, parameters, arguments)                                                                    \
    EXPORT int name parameters {                                                                                       \
        LIBURING_THEIRS(name, -ENOSYS)                                                                                 \
        pio_begin_change();                                                                                            \
        int result = theirs arguments;                                                                                 \
        if (result >= 0 && !pio_follows_ring(ring->fd))                                                                \
            follow_library_ring(ring);                                                                                 \
        pio_end_change();                                                                                              \
        return result;                                                                                                 \
    }

/* One that submits all that was asked for so far, or waits, or both. */
#define HOOK_RING_CALL(type, failure, name, parameters, arguments, submits)                                            \
    EXPORT type name parameters {                                                                                      \
        LIBURING_THEIRS(name, failure)                                                                                 \
        struct ring *followed = pio_take_ring(ring->fd);                                                               \
        struct pioscope_span span;                                                                                     \
        bool begun = pio_begin_ring_call(followed, &span, followed == NULL ? 0                                         \
                                                      : (submits)      ? ring->sq.sqe_tail                             \
                                                                       : pio_ring_tail(followed));                     \
        type result = theirs arguments;                                                                                \
        pio_end_ring_call(followed, &span, begun);                                                                     \
        return result;                                                                                                 \
    }

/* One that registers files: `seen` says which. */
#define HOOK_RING_FILES(name, parameters, arguments, seen)                                                             \
    EXPORT int name parameters {                                                                                       \
        LIBURING_THEIRS(name, -ENOSYS)                                                                                 \
        int result = theirs arguments;                                                                                 \
        struct ring *followed = result < 0 ? NULL : pio_take_ring(ring->fd);                                           \
        if (followed != NULL)                                                                                          \
            seen;                                                                                                      \
        pio_give_ring(followed);                                                                                       \
        return result;                                                                                                 \
    }

int io_uring_queue_init(unsigned entries, struct io_uring *ring, unsigned flags);
int io_uring_queue_init_params(unsigned entries, struct io_uring *ring, void *params);
int io_uring_queue_init_mem(unsigned entries, struct io_uring *ring, void *params, void *memory, size_t bytes);
int io_uring_queue_mmap(int fd, void *params, struct io_uring *ring);
HOOK_RING_INIT(io_uring_queue_init, (unsigned entries, struct io_uring *ring, unsigned flags), (entries, ring, flags))
HOOK_RING_INIT(io_uring_queue_init_params, (unsigned entries, struct io_uring *ring, void *params),
               (entries, ring, params))
HOOK_RING_INIT(io_uring_queue_init_mem,
               (unsigned entries, struct io_uring *ring, void *params, void *memory, size_t bytes),
               (entries, ring, params, memory, bytes))
HOOK_RING_INIT(io_uring_queue_mmap, (int fd, void *params, struct io_uring *ring), (fd, params, ring))

void io_uring_queue_exit(struct io_uring *ring);
EXPORT void io_uring_queue_exit(struct io_uring *ring) {
    static void *place;
    struct copy *copy = pio_copy_of(&liburing, __builtin_return_address(0));
    if (copy == NULL)
        return;
    uint32_t left = pio_leave_rings((uint32_t)ring->fd, (uint32_t)ring->fd);
    ((void (*)(struct io_uring *))pio_function_of(copy, &place, "io_uring_queue_exit"))(ring);
    pio_rings_are_closed(left);
}

int io_uring_resize_rings(struct io_uring *ring, void *params);
EXPORT int io_uring_resize_rings(struct io_uring *ring, void *params) {
    LIBURING_THEIRS(io_uring_resize_rings, -ENOSYS)
    pio_begin_change();
    uint32_t left = pio_leave_rings((uint32_t)ring->fd, (uint32_t)ring->fd);
    int result = theirs(ring, params);
    if (left > 0)
        follow_library_ring(ring);
    pio_rings_are_closed(left);
    pio_end_change();
    return result;
}

int io_uring_submit(struct io_uring *ring);
int io_uring_submit_and_wait(struct io_uring *ring, unsigned least);
int io_uring_submit_and_wait_timeout(struct io_uring *ring, void **cqe, unsigned least, void *limit, void *signals);
int io_uring_submit_and_get_events(struct io_uring *ring);
int io_uring_get_events(struct io_uring *ring);
int __io_uring_get_cqe(struct io_uring *ring, void **cqe, unsigned submit, unsigned least, void *signals);
int io_uring_wait_cqes(struct io_uring *ring, void **cqe, unsigned least, void *limit, void *signals);
int io_uring_wait_cqe_timeout(struct io_uring *ring, void **cqe, void *limit);
unsigned io_uring_peek_batch_cqe(struct io_uring *ring, void **cqes, unsigned most);
HOOK_RING_CALL(int, -ENOSYS, io_uring_submit, (struct io_uring * ring), (ring), true)
HOOK_RING_CALL(int, -ENOSYS, io_uring_submit_and_wait, (struct io_uring * ring, unsigned least), (ring, least), true)
HOOK_RING_CALL(int, -ENOSYS, io_uring_submit_and_wait_timeout,
               (struct io_uring * ring, void **cqe, unsigned least, void *limit, void *signals),
               (ring, cqe, least, limit, signals), true)
HOOK_RING_CALL(int, -ENOSYS, io_uring_submit_and_get_events, (struct io_uring * ring), (ring), true)
HOOK_RING_CALL(int, -ENOSYS, io_uring_get_events, (struct io_uring * ring), (ring), false)
HOOK_RING_CALL(int, -ENOSYS, __io_uring_get_cqe,
               (struct io_uring * ring, void **cqe, unsigned submit, unsigned least, void *signals),
               (ring, cqe, submit, least, signals), submit > 0)
HOOK_RING_CALL(int, -ENOSYS, io_uring_wait_cqes,
               (struct io_uring * ring, void **cqe, unsigned least, void *limit, void *signals),
               (ring, cqe, least, limit, signals), false)
HOOK_RING_CALL(int, -ENOSYS, io_uring_wait_cqe_timeout, (struct io_uring * ring, void **cqe, void *limit), (ring, cqe, limit),
               false)
HOOK_RING_CALL(unsigned, 0, io_uring_peek_batch_cqe, (struct io_uring * ring, void **cqes, unsigned most),
               (ring, cqes, most), false)

int io_uring_register_files(struct io_uring *ring, const int *files, unsigned count);
int io_uring_register_files_tags(struct io_uring *ring, const int *files, const uint64_t *tags, unsigned count);
int io_uring_register_files_sparse(struct io_uring *ring, unsigned count);
int io_uring_register_files_update(struct io_uring *ring, unsigned first, const int *files, unsigned count);
int io_uring_register_files_update_tag(struct io_uring *ring, unsigned first, const int *files, const uint64_t *tags,
                                       unsigned count);
int io_uring_unregister_files(struct io_uring *ring);
HOOK_RING_FILES(io_uring_register_files, (struct io_uring * ring, const int *files, unsigned count),
                (ring, files, count), pio_see_files(followed, files, count))
HOOK_RING_FILES(io_uring_register_files_tags,
                (struct io_uring * ring, const int *files, const uint64_t *tags, unsigned count),
                (ring, files, tags, count), pio_see_files(followed, files, count))
HOOK_RING_FILES(io_uring_register_files_sparse, (struct io_uring * ring, unsigned count), (ring, count),
                pio_see_files(followed, NULL, count))
HOOK_RING_FILES(io_uring_register_files_update,
                (struct io_uring * ring, unsigned first, const int *files, unsigned count),
                (ring, first, files, count), pio_see_files_set(followed, first, files, count))
HOOK_RING_FILES(io_uring_register_files_update_tag,
                (struct io_uring * ring, unsigned first, const int *files, const uint64_t *tags, unsigned count),
                (ring, first, files, tags, count), pio_see_files_set(followed, first, files, count))
HOOK_RING_FILES(io_uring_unregister_files, (struct io_uring * ring), (ring), pio_see_files_gone(followed))

/* liburing's names of the system calls, which return minus the error number. */
int io_uring_setup(unsigned entries, void *params);
int io_uring_enter(unsigned fd, unsigned count, unsigned least, unsigned flags, void *signals);
int io_uring_enter2(unsigned fd, unsigned count, unsigned least, unsigned flags, void *signals, size_t bytes);
int io_uring_register(unsigned fd, unsigned what, const void *argument, unsigned count);

EXPORT int io_uring_setup(unsigned entries, void *params) {
    LIBURING_THEIRS(io_uring_setup, -ENOSYS)
    pio_begin_change();
    int fd = theirs(entries, params);
    if (fd >= 0)
        pio_follow_ring(fd, params);
    pio_end_change();
    return fd;
}

#define LIBURING_ENTER(next_call)                                                                                      \
    struct ring *ring = flags & RING_ENTER_REGISTERED_RING ? NULL : pio_take_ring((int)fd);                            \
    struct pioscope_span span;                                                                                         \
    bool submits = pio_begin_ring_call(ring, &span, ring == NULL ? 0 : pio_ring_tail(ring));                           \
    int result = next_call;                                                                                            \
    pio_end_ring_call(ring, &span, submits);                                                                           \
    return result;

EXPORT int io_uring_enter(unsigned fd, unsigned count, unsigned least, unsigned flags, void *signals) {
    LIBURING_THEIRS(io_uring_enter, -ENOSYS)
    LIBURING_ENTER(theirs(fd, count, least, flags, signals))
}

EXPORT int io_uring_enter2(unsigned fd, unsigned count, unsigned least, unsigned flags, void *signals, size_t bytes) {
    LIBURING_THEIRS(io_uring_enter2, -ENOSYS)
    LIBURING_ENTER(theirs(fd, count, least, flags, signals, bytes))
}

EXPORT int io_uring_register(unsigned fd, unsigned what, const void *argument, unsigned count) {
    LIBURING_THEIRS(io_uring_register, -ENOSYS)
    int result = theirs(fd, what, argument, count);
    if (result >= 0)
        pio_see_registration((int)fd, what, argument, count);
    return result;
}
