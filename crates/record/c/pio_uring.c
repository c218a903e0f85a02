/* pio_uring.h: what the rings of a process hold, and what became of it. */
#include "pio_uring.h"
#include "pio_file_system.h"
#include "pio_hook.h"
#include "pio_kernel.h"
#include "pio_names.h"
#include "pio_paths.h"
#include "pio_trap.h"
#include "pio_vector.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MOST_RINGS 64

/* Of <linux/io_uring.h>, which machines with an old one lack parts of. */
enum {
    RING_SETUP_SQPOLL = 1u << 1,
    RING_SETUP_SQE128 = 1u << 10,
    RING_SETUP_CQE32 = 1u << 11,
    RING_SETUP_FOLLOWED = 0x33ffdu, /* all up to here, but for SQPOLL, NO_MMAP and REGISTERED_FD_ONLY */
    RING_SQE_FIXED_FILE = 1u << 0,
    RING_SQE_CQE_SKIP_SUCCESS = 1u << 6,
    RING_CQE_MORE = 1u << 1,
    RING_REGISTER_FILES = 2,
    RING_UNREGISTER_FILES = 3,
    RING_REGISTER_FILES_UPDATE = 6,
    RING_REGISTER_FILES2 = 13,
    RING_REGISTER_FILES_UPDATE2 = 14,
    RING_FSYNC_DATASYNC = 1,
};
#define RING_ANY_PLACE UINT32_MAX
#define RING_OFFSET_SQ 0ll
#define RING_OFFSET_CQ 0x8000000ll
#define RING_OFFSET_SQES 0x10000000ll

enum {
    RING_OP_READV = 1,
    RING_OP_WRITEV = 2,
    RING_OP_FSYNC = 3,
    RING_OP_READ_FIXED = 4,
    RING_OP_WRITE_FIXED = 5,
    RING_OP_SYNC_FILE_RANGE = 8,
    RING_OP_FALLOCATE = 17,
    RING_OP_OPENAT = 18,
    RING_OP_CLOSE = 19,
    RING_OP_FILES_UPDATE = 20,
    RING_OP_STATX = 21,
    RING_OP_READ = 22,
    RING_OP_WRITE = 23,
    RING_OP_FADVISE = 24,
    RING_OP_OPENAT2 = 28,
    RING_OP_SPLICE = 30,
    RING_OP_RENAMEAT = 35,
    RING_OP_UNLINKAT = 36,
    RING_OP_MKDIRAT = 37,
    RING_OP_SYMLINKAT = 38,
    RING_OP_LINKAT = 39,
    RING_OP_FTRUNCATE = 55,
    RING_OP_READV_FIXED = 60,
    RING_OP_WRITEV_FIXED = 61,
};

_Static_assert(sizeof(struct ring_sqe) == 64, "SQE");
_Static_assert(sizeof(struct ring_params) == 120, "parameters");

/* Instead of a descriptor: what becomes of a ring. One that was closed is there until nobody uses it any more. */
#define RING_IS_MADE UINT32_MAX
#define RING_IS_CLOSED (UINT32_MAX - 1)
#define RING_IS_TAKEN_DOWN (UINT32_MAX - 2)

/* A ring that is followed. */
struct ring {
    uint32_t fd;    /* + 1; 0: this place is free */
    uint32_t users; /* threads that have taken it up: one may wait for it while another closes its descriptor */
    uint32_t flags;
    struct in_flight *in_flight; /* its lock is the ring's */
    char *sq, *cq, *sqes;        /* our mappings; cq may be sq */
    size_t sq_bytes, cq_bytes, sqes_bytes;
    uint32_t *sq_tail, *cq_tail, *array;
    char *cqes;
    uint32_t sq_entries, cq_entries;
    uint32_t sq_seen, cq_seen; /* as far as we read */
    int32_t *fixed;            /* registered files: our numbers, 0 for unknown, -1 for none of the job's files */
    uint32_t fixed_count;
};

static struct ring rings[MOST_RINGS];
static uint32_t rings_open;
static uint32_t unseen_rings;
static bool rings_are_inherited;

/* Our numbers of registered files are no descriptors: those may be closed, and given again, while the files are used. */
static int32_t registered_files;

static void ring_is_unseen(void) {
    __atomic_fetch_add(&unseen_rings, 1, __ATOMIC_RELAXED);
    if (pio_spool_is_open())
        STORE(&pio_spool.header->unseen_rings, LOAD(&unseen_rings));
}

/* The place of the ring that has this descriptor, as long as it has; NULL if it is none that this process follows. */
static struct ring *place_of(int fd) {
    if (LIKELY(LOAD(&rings_open) == 0) || fd < 0)
        return NULL;
    for (size_t i = 0; i < MOST_RINGS; i++)
        if (ACQUIRE(&rings[i].fd) == (uint32_t)fd + 1)
            return is_owner() ? &rings[i] : NULL; /* a forked child that has not begun has no mappings of its parent's */
    return NULL;
}

bool pio_follows_ring(int fd) {
    return place_of(fd) != NULL;
}

/* Takes up the ring in a place, if it still is that of this descriptor. */
static bool take_ring(struct ring *ring, uint32_t given) {
    __atomic_fetch_add(&ring->users, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&ring->fd, __ATOMIC_SEQ_CST) == given)
        return true;
    pio_give_ring(ring);
    return false;
}

struct ring *pio_take_ring(int fd) {
    struct ring *ring = place_of(fd);
    return ring != NULL && take_ring(ring, (uint32_t)fd + 1) ? ring : NULL;
}

uint32_t pio_ring_tail(const struct ring *ring) {
    return ACQUIRE(ring->sq_tail);
}

/* Open and close --------------------------------------------------------------------------------------------------- */

static char *map_ring(int fd, size_t bytes, long long offset) {
    void *memory = (void *)KERNEL(SYS_mmap, NULL, bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, offset);
    if (memory == MAP_FAILED)
        return NULL;
    madvise(memory, bytes, MADV_DONTFORK);
    return memory;
}

static void unmap_ring(struct ring *ring) {
    if (ring->sqes != NULL)
        KERNEL(SYS_munmap, ring->sqes, ring->sqes_bytes);
    if (ring->cq != NULL && ring->cq != ring->sq)
        KERNEL(SYS_munmap, ring->cq, ring->cq_bytes);
    if (ring->sq != NULL)
        KERNEL(SYS_munmap, ring->sq, ring->sq_bytes);
    if (ring->fixed != NULL)
        KERNEL(SYS_munmap, ring->fixed, ring->fixed_count * sizeof *ring->fixed);
    pio_free_in_flight(ring->in_flight);
}

/* The last who had taken up a ring that was closed takes it down. */
void pio_give_ring(struct ring *ring) {
    uint32_t expected = RING_IS_CLOSED;
    if (ring == NULL || __atomic_sub_fetch(&ring->users, 1, __ATOMIC_SEQ_CST) > 0 ||
        !__atomic_compare_exchange_n(&ring->fd, &expected, RING_IS_TAKEN_DOWN, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        return;
    int saved = errno;
    unmap_ring(ring);
    errno = saved;
    RELEASE(&ring->fd, 0);
}

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

static uint32_t changes_begun, changes_ended;

void pio_begin_change(void) {
    __atomic_fetch_add(&changes_begun, 1, __ATOMIC_SEQ_CST);
}

void pio_end_change(void) {
    __atomic_fetch_add(&changes_ended, 1, __ATOMIC_SEQ_CST);
}

void pio_follow_ring(int fd, const struct ring_params *made) {
    if (fd < 0 || !recording() || !is_owner())
        return;
    int saved = errno;
    struct ring *place = NULL;
    uint32_t expected = 0;
    if ((made->flags & ~RING_SETUP_FOLLOWED) == 0)
        for (size_t i = 0; i < MOST_RINGS && place == NULL; i++, expected = 0)
            if (__atomic_compare_exchange_n(&rings[i].fd, &expected, RING_IS_MADE, false, __ATOMIC_ACQUIRE,
                                            __ATOMIC_RELAXED))
                place = &rings[i];
    if (place == NULL) {
        ring_is_unseen();
        errno = saved;
        return;
    }
    struct ring ring = {.flags = made->flags};
    bool has_array = (made->flags & RING_SETUP_NO_SQARRAY) == 0;
    ring.sq_entries = made->sq_entries;
    ring.cq_entries = made->cq_entries;
    size_t sq_bytes = has_array ? made->sq.array + (size_t)made->sq_entries * sizeof *ring.array : 4096;
    ring.cq_bytes = made->cq.cqes + ((size_t)made->cq_entries * sizeof(struct ring_cqe) << !!(made->flags & RING_SETUP_CQE32));
    ring.sqes_bytes = (size_t)made->sq_entries * sizeof(struct ring_sqe) << !!(made->flags & RING_SETUP_SQE128);
    bool is_single = made->features & RING_FEATURE_SINGLE_MMAP;
    ring.sq_bytes = is_single ? larger(sq_bytes, ring.cq_bytes) : sq_bytes;
    ring.sq = map_ring(fd, ring.sq_bytes, RING_OFFSET_SQ);
    ring.cq = is_single ? ring.sq : map_ring(fd, ring.cq_bytes, RING_OFFSET_CQ);
    ring.sqes = map_ring(fd, ring.sqes_bytes, RING_OFFSET_SQES);
    ring.in_flight = pio_new_in_flight(2 * larger(made->cq_entries, made->sq_entries));
    if (ring.sq == NULL || ring.cq == NULL || ring.sqes == NULL || ring.in_flight == NULL) {
        unmap_ring(&ring);
        RELEASE(&place->fd, 0);
        ring_is_unseen();
    } else {
        ring.sq_tail = (uint32_t *)(ring.sq + made->sq.tail);
        ring.array = has_array ? (uint32_t *)(ring.sq + made->sq.array) : NULL;
        ring.cq_tail = (uint32_t *)(ring.cq + made->cq.tail);
        ring.cqes = ring.cq + made->cq.cqes;
        ring.sq_seen = ACQUIRE(ring.sq_tail);
        ring.cq_seen = ACQUIRE(ring.cq_tail);
        /* Somebody may look whether it still is another one, and count as its user. */
        const size_t rest = offsetof(struct ring, flags);
        memcpy((char *)place + rest, (const char *)&ring + rest, sizeof ring - rest);
        __atomic_fetch_add(&rings_open, 1, __ATOMIC_RELAXED);
        RELEASE(&place->fd, (uint32_t)fd + 1);
    }
    errno = saved;
}

void pio_forget_rings(void) {
    memset(rings, 0, sizeof rings);
    rings_open = 0;
    unseen_rings = 0;
    rings_are_inherited = true;
}

static bool is_ring(int folder, const char *name) {
    static const char what[] = "anon_inode:[io_uring]";
    char target[sizeof what];
    long length = KERNEL(SYS_readlinkat, folder, name, target, sizeof target);
    return length == (long)sizeof what - 1 && memcmp(target, what, sizeof what - 1) == 0;
}

/* The entries of a folder as the kernel gives them. */
struct folder_entry {
    uint64_t inode, next;
    uint16_t bytes;
    uint8_t type;
    char name[];
};

/* Whether there is a ring among the process's descriptors that it made by instructions of its own: then nothing of it was
 * seen. Not in a forked child, which may have its parent's and not use them. */
static __attribute__((noinline)) void look_for_rings(void) {
    uint32_t ended = __atomic_load_n(&changes_ended, __ATOMIC_SEQ_CST);
    uint32_t begun = __atomic_load_n(&changes_begun, __ATOMIC_SEQ_CST);
    if (LOAD(&unseen_rings) > 0 || rings_are_inherited || begun != ended)
        return;
    int saved = errno;
    char *entries = pio_take_path_buffer();
    int folder = entries == NULL ? -1 : (int)KERNEL(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_found = false;
    long filled;
    while (folder >= 0 && !is_found && (filled = KERNEL(SYS_getdents64, folder, entries, PATH_MAX)) > 0)
        for (long at = 0; at < filled && !is_found;) {
            const struct folder_entry *entry = (const struct folder_entry *)(entries + at);
            at += entry->bytes;
            is_found = is_ring(folder, entry->name) && !pio_follows_ring(atoi(entry->name));
        }
    if (folder >= 0)
        KERNEL(SYS_close, folder);
    pio_give_path_buffer(entries);
    if (is_found && __atomic_load_n(&changes_begun, __ATOMIC_SEQ_CST) == begun)
        ring_is_unseen();
    errno = saved;
}

/* A file is closed: now and then, less and less often, is a time to look. */
static uint32_t files_closed;

void pio_look_at_close(void) {
    uint32_t count = __atomic_add_fetch(&files_closed, 1, __ATOMIC_RELAXED);
    if (UNLIKELY((count & (count - 1)) == 0))
        look_for_rings();
}

/* Registered files ------------------------------------------------------------------------------------------------- */

/* Gives a file that is about to be used by its place in a ring's table a number of its own, from a time on that is not
 * after its use: records are read in the order of their times. */
static int32_t register_file(int fd, uint64_t from_ns) {
    if (fd < 0 || !tracked(fd))
        return -1;
    int32_t number = -1;
    char *path = pio_take_path_buffer();
    uint64_t device;
    size_t length = pio_path_of_descriptor(fd, path, &device);
    if (length > 0) {
        number = DESCRIPTORS + __atomic_add_fetch(&registered_files, 1, __ATOMIC_RELAXED);
        struct pioscope_span span = {from_ns, 0, 0};
        record_call(&span, from_ns,
                    (struct outcome){.call = PIO_RECORD_ADOPT,
                                     .fd = number,
                                     .size = length,
                                     .result = (int64_t)pio_tell_device(device, fd)},
                    path, length);
    }
    pio_give_path_buffer(path);
    return number;
}

/* The same for a file that is to be opened into a place: by its name, as it never has a descriptor. */
static int32_t register_name(int folder, const char *name, uint64_t from_ns) {
    int32_t number = -1;
    char *path = may_be_mapped(name) ? pio_take_path_buffer() : NULL;
    if (path != NULL && pio_absolute_name(folder, name, path) && path[0] == '/' && !pio_is_foreign_path(path) && pio_is_kept(path)) {
        number = DESCRIPTORS + __atomic_add_fetch(&registered_files, 1, __ATOMIC_RELAXED);
        size_t length = strlen(path);
        struct pioscope_span span = {from_ns, 0, 0};
        record_call(&span, from_ns,
                    (struct outcome){.call = PIO_RECORD_ADOPT, .fd = number, .offset = 0, .size = length}, path, length);
    }
    pio_give_path_buffer(path);
    return number;
}

static void unregister_files(struct ring *ring) {
    if (ring->fixed != NULL)
        KERNEL(SYS_munmap, ring->fixed, ring->fixed_count * sizeof *ring->fixed);
    ring->fixed = NULL;
    ring->fixed_count = 0;
}

/* `files` is NULL for a table of empty places; -2 leaves a place alone. */
static void set_files(struct ring *ring, uint32_t first, const int *files, uint32_t count, uint64_t from_ns) {
    for (uint32_t i = 0; i < count && first + i < ring->fixed_count; i++)
        if (files == NULL || files[i] != -2)
            ring->fixed[first + i] = files == NULL ? -1 : register_file(files[i], from_ns);
}

static void register_files(struct ring *ring, const int *files, uint32_t count) {
    unregister_files(ring);
    if (count == 0)
        return;
    void *memory = (void *)KERNEL(SYS_mmap, NULL, count * sizeof *ring->fixed, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return;
    madvise(memory, count * sizeof *ring->fixed, MADV_DONTFORK);
    ring->fixed = memory;
    ring->fixed_count = count;
    set_files(ring, 0, files, count, now_ns());
}

static void see_registration(struct ring *ring, uint32_t what, const void *argument, uint32_t count) {
    if (!pio_hold_in_flight(ring->in_flight))
        return;
    int saved = errno;
    const struct {
        uint32_t count, flags;
        uint64_t reserved, files, tags;
    } *table = argument;
    const struct {
        uint32_t first, reserved;
        uint64_t files, tags;
        uint32_t count, reserved2;
    } *update = argument;
    switch (what) {
    case RING_REGISTER_FILES:
        register_files(ring, argument, count);
        break;
    case RING_REGISTER_FILES2:
        register_files(ring, table->flags & 1 ? NULL : (const int *)(uintptr_t)table->files, table->count);
        break;
    case RING_REGISTER_FILES_UPDATE:
        set_files(ring, update->first, (const int *)(uintptr_t)update->files, count, now_ns());
        break;
    case RING_REGISTER_FILES_UPDATE2:
        set_files(ring, update->first, (const int *)(uintptr_t)update->files, update->count, now_ns());
        break;
    case RING_UNREGISTER_FILES:
        unregister_files(ring);
        break;
    }
    pio_release_in_flight(ring->in_flight);
    errno = saved;
}

void pio_see_registration(int fd, uint32_t what, const void *argument, uint32_t count) {
    struct ring *ring = pio_take_ring(fd);
    if (ring == NULL)
        return;
    see_registration(ring, what, argument, count);
    pio_give_ring(ring);
}

void pio_see_files(struct ring *ring, const int *files, uint32_t count) {
    if (!pio_hold_in_flight(ring->in_flight))
        return;
    int saved = errno;
    register_files(ring, files, count);
    pio_release_in_flight(ring->in_flight);
    errno = saved;
}

void pio_see_files_set(struct ring *ring, uint32_t first, const int *files, uint32_t count) {
    if (!pio_hold_in_flight(ring->in_flight))
        return;
    int saved = errno;
    set_files(ring, first, files, count, now_ns());
    pio_release_in_flight(ring->in_flight);
    errno = saved;
}

void pio_see_files_gone(struct ring *ring) {
    if (!pio_hold_in_flight(ring->in_flight))
        return;
    unregister_files(ring);
    pio_release_in_flight(ring->in_flight);
}

/* What is asked for ------------------------------------------------------------------------------------------------ */

/* The number by which a file is known that an SQE names; -1 for none of the job's. */
static int file_of(struct ring *ring, int fd, bool is_fixed) {
    if (!is_fixed)
        return fd >= 0 && tracked(fd) ? fd : -1;
    int32_t number = (uint32_t)fd < ring->fixed_count ? ring->fixed[fd] : 0;
    if (number == 0)
        ring_is_unseen(); /* registered behind our back, or opened into its place */
    return number > 0 ? number : -1;
}

static struct pio_record *begin_on_file(struct pioscope_span *span, uint32_t call, int fd, uint64_t offset,
                                        uint64_t size) {
    return fd < 0 ? NULL : pio_begin_async(span, call, fd, offset, size);
}

static struct pio_record *begin_on_name(struct pioscope_span *span, uint32_t call, int folder, uint64_t address) {
    const char *name = (const char *)(uintptr_t)address;
    uint64_t id;
    return may_be_mapped(name) && pio_is_name_kept(folder, name, &id) ? pio_begin_async(span, call, -1, id, 0) : NULL;
}

/* A descriptor is closed by its number, or a registered file by its place. */
static struct pio_record *begin_close(struct ring *ring, struct pioscope_span *span, const struct ring_sqe *sqe) {
    if (sqe->file_index == 0)
        return pio_forget_descriptor(sqe->fd) ? pio_begin_async(span, PIO_CALL_CLOSE, sqe->fd, PIO_NO_OFFSET, 0) : NULL;
    if (sqe->file_index - 1 < ring->fixed_count)
        ring->fixed[sqe->file_index - 1] = -1;
    return NULL;
}

/* The program opens a file, which gets a descriptor, or a place among the registered ones: that which it names, from now
 * on, as what it submits next may use it; or one that the kernel chooses, and the completion tells. */
static struct pio_record *begin_open(struct ring *ring, struct pioscope_span *span, const struct ring_sqe *sqe,
                                     struct operation *operation) {
    operation->opens = sqe->file_index == 0;
    if (sqe->file_index != 0) {
        int32_t number = register_name(sqe->fd, (const char *)(uintptr_t)sqe->address, span->start_ns);
        if (sqe->file_index == RING_ANY_PLACE)
            operation->directly = number;
        else if (sqe->file_index - 1 < ring->fixed_count)
            ring->fixed[sqe->file_index - 1] = number;
    }
    return begin_on_name(span, PIO_CALL_OPEN, sqe->fd, sqe->address);
}

static void begin_operation(struct ring *ring, struct pioscope_span *span, const struct ring_sqe *sqe,
                            struct operation *operation) {
    const struct iovec *vector = (const struct iovec *)(uintptr_t)sqe->address;
    bool is_fixed = sqe->flags & RING_SQE_FIXED_FILE;
    int fd;
    switch (sqe->opcode) {
    case RING_OP_READV:
    case RING_OP_READV_FIXED:
        fd = file_of(ring, sqe->fd, is_fixed);
        operation->record = begin_on_file(span, PIO_CALL_IO_URING_READ, fd, sqe->offset,
                                          given_vector_bytes(vector, sqe->length));
        break;
    case RING_OP_WRITEV:
    case RING_OP_WRITEV_FIXED:
        fd = file_of(ring, sqe->fd, is_fixed);
        operation->record = begin_on_file(span, PIO_CALL_IO_URING_WRITE, fd, sqe->offset,
                                          given_vector_bytes(vector, sqe->length));
        break;
    case RING_OP_READ:
    case RING_OP_READ_FIXED:
        fd = file_of(ring, sqe->fd, is_fixed);
        operation->record = begin_on_file(span, PIO_CALL_IO_URING_READ, fd, sqe->offset, sqe->length);
        break;
    case RING_OP_WRITE:
    case RING_OP_WRITE_FIXED:
        fd = file_of(ring, sqe->fd, is_fixed);
        operation->record = begin_on_file(span, PIO_CALL_IO_URING_WRITE, fd, sqe->offset, sqe->length);
        break;
    case RING_OP_SPLICE:
        fd = file_of(ring, (int)sqe->file_index, sqe->op_flags & 1u << 31);
        operation->record = begin_on_file(span, PIO_CALL_IO_URING_READ, fd, sqe->address, sqe->length);
        fd = file_of(ring, sqe->fd, is_fixed);
        operation->second = begin_on_file(span, PIO_CALL_IO_URING_WRITE, fd, sqe->offset, sqe->length);
        break;
    case RING_OP_FSYNC:
        fd = file_of(ring, sqe->fd, is_fixed);
        operation->record = begin_on_file(
            span, sqe->op_flags & RING_FSYNC_DATASYNC ? PIO_CALL_FDATASYNC : PIO_CALL_FSYNC, fd, PIO_NO_OFFSET, 0);
        break;
    case RING_OP_SYNC_FILE_RANGE:
        fd = file_of(ring, sqe->fd, is_fixed);
        operation->record = begin_on_file(span, PIO_CALL_SYNC_FILE_RANGE, fd, sqe->offset, sqe->length);
        break;
    case RING_OP_FALLOCATE:
        fd = file_of(ring, sqe->fd, is_fixed);
        operation->record = begin_on_file(span, PIO_CALL_FALLOCATE, fd, sqe->offset, sqe->address);
        break;
    case RING_OP_FADVISE:
        fd = file_of(ring, sqe->fd, is_fixed);
        operation->record = begin_on_file(span, PIO_CALL_POSIX_FADVISE, fd, sqe->offset, sqe->length);
        break;
    case RING_OP_FTRUNCATE:
        fd = file_of(ring, sqe->fd, is_fixed);
        operation->record = begin_on_file(span, PIO_CALL_FTRUNCATE, fd, PIO_NO_OFFSET, sqe->offset);
        break;
    case RING_OP_CLOSE:
        operation->record = begin_close(ring, span, sqe);
        break;
    case RING_OP_OPENAT:
    case RING_OP_OPENAT2:
        operation->record = begin_open(ring, span, sqe, operation);
        break;
    case RING_OP_FILES_UPDATE:
        if (!may_be_mapped((const void *)(uintptr_t)sqe->address))
            break;
        if (sqe->offset > UINT32_MAX)
            ring_is_unseen(); /* the kernel chooses the places, and tells the program alone */
        else
            set_files(ring, (uint32_t)sqe->offset, (const int *)(uintptr_t)sqe->address, sqe->length, span->start_ns);
        break;
    case RING_OP_STATX:
        operation->record = begin_on_name(span, PIO_CALL_STAT, sqe->fd, sqe->address);
        break;
    case RING_OP_RENAMEAT:
        operation->record = begin_on_name(span, PIO_CALL_RENAME, sqe->fd, sqe->address);
        break;
    case RING_OP_UNLINKAT:
        operation->record = begin_on_name(span, sqe->op_flags & AT_REMOVEDIR ? PIO_CALL_RMDIR : PIO_CALL_UNLINK,
                                          sqe->fd, sqe->address);
        break;
    case RING_OP_MKDIRAT:
        operation->record = begin_on_name(span, PIO_CALL_MKDIR, sqe->fd, sqe->address);
        break;
    case RING_OP_SYMLINKAT:
        operation->record = begin_on_name(span, PIO_CALL_SYMLINK, sqe->fd, sqe->offset);
        break;
    case RING_OP_LINKAT:
        operation->record = begin_on_name(span, PIO_CALL_LINK, sqe->fd, sqe->address);
        break;
    }
}

/* Reads what was put into the ring up to `end`. What has no completion if it succeeds is taken at its word. All others
 * are kept, though most be no file's: they may share the user data of those that are. */
static void see_submissions(struct ring *ring, uint32_t end, struct pioscope_span *span) {
    if (end - ring->sq_seen > ring->sq_entries)
        ring->sq_seen = end; /* no sense in it */
    for (; ring->sq_seen != end; ring->sq_seen++) {
        uint32_t index = ring->sq_seen & (ring->sq_entries - 1);
        uint32_t given = ring->array == NULL ? index : LOAD(&ring->array[index]);
        /* What is not flushed yet will be, to its own place. */
        if ((int32_t)(ring->sq_seen - ACQUIRE(ring->sq_tail)) < 0)
            index = given;
        if (index >= ring->sq_entries)
            continue;
        size_t bytes = ring->flags & RING_SETUP_SQE128 ? 128 : 64;
        const struct ring_sqe *sqe = (const struct ring_sqe *)(ring->sqes + index * bytes);
        struct operation *operation = pio_add_operation(ring->in_flight, sqe->user_data);
        if (operation == NULL) {
            pio_drop();
            continue;
        }
        begin_operation(ring, span, sqe, operation);
        if (sqe->flags & RING_SQE_CQE_SKIP_SUCCESS) {
            struct operation done;
            (void)pio_take_operation(ring->in_flight, sqe->user_data, false, &done);
            pio_end_io_record(done.record, done.record == NULL ? 0 : (int64_t)done.record->size);
            pio_end_io_record(done.second, done.second == NULL ? 0 : (int64_t)done.second->size);
        }
    }
}

/* What became of it ------------------------------------------------------------------------------------------------ */

static bool moves_data(const struct pio_record *record) {
    uint32_t call = LOAD(&record->word) & 0xffff;
    return call == PIO_CALL_IO_URING_READ || call == PIO_CALL_IO_URING_WRITE;
}

static void end_record(struct pio_record *record, int64_t result) {
    if (record != NULL)
        pio_end_io_record(record, result > 0 && !moves_data(record) ? 0 : result);
}

/* A file was opened: its record has the path that the descriptor has. */
static void end_open(struct pio_record *record, int fd) {
    struct pioscope_span span = {record->start_ns, record->think_ns, 0};
    pio_forget_async(record);
    char *path = pio_take_path_buffer();
    uint64_t device = 0;
    /* What is ignored may be what had this number before. One that is tracked was used already, and seen then. */
    bool is_new = in_table(fd) && LOAD(&pio_descriptors[fd]) < TRACKED;
    size_t length = is_new ? pio_path_of_descriptor(fd, path, &device) : 0;
    if (length > 0) {
        pio_set_descriptor(fd, EXACT);
        uint64_t end_ns = end_of(&span), place = pio_tell_device(device, fd) << PIO_DEVICE_SHIFT;
        record_call(&span, end_ns, (struct outcome){PIO_CALL_OPEN, PIO_ASYNC, fd, place, length, 0}, path, length);
    }
    pio_give_path_buffer(path);
}

static void see_completions(struct ring *ring) {
    uint32_t end = ACQUIRE(ring->cq_tail);
    if (end - ring->cq_seen > ring->cq_entries) {
        ring_is_unseen(); /* overwritten while the program made no call */
        ring->cq_seen = end - ring->cq_entries;
    }
    for (; ring->cq_seen != end; ring->cq_seen++) {
        size_t place = (size_t)(ring->cq_seen & (ring->cq_entries - 1)) << !!(ring->flags & RING_SETUP_CQE32);
        const struct ring_cqe *cqe = (const struct ring_cqe *)ring->cqes + place;
        struct operation operation;
        if (!pio_take_operation(ring->in_flight, cqe->user_data, cqe->flags & RING_CQE_MORE, &operation))
            continue;
        if (operation.directly != 0 && cqe->result >= 0 && (uint32_t)cqe->result < ring->fixed_count)
            ring->fixed[cqe->result] = operation.directly;
        if (operation.opens && cqe->result >= 0 && operation.record != NULL)
            end_open(operation.record, cqe->result);
        else
            end_record(operation.record, cqe->result);
        end_record(operation.second, cqe->result);
    }
}

/* Calls ------------------------------------------------------------------------------------------------------------ */

bool pio_begin_ring_call(struct ring *ring, struct pioscope_span *span, uint32_t end) {
    if (ring == NULL || !pio_hold_in_flight(ring->in_flight))
        return false;
    int saved = errno;
    /* `end` was read before: another thread may have submitted more since, and what it submitted was seen. */
    bool submits = (int32_t)(end - ring->sq_seen) > 0;
    if (submits)
        pio_span_begin(span);
    see_completions(ring); /* of what was submitted before */
    if (submits)
        see_submissions(ring, end, span);
    pio_release_in_flight(ring->in_flight);
    errno = saved;
    return submits;
}

void pio_end_ring_call(struct ring *ring, const struct pioscope_span *span, bool submitted) {
    if (ring == NULL || !is_owner())
        return;
    if (pio_hold_in_flight(ring->in_flight)) {
        int saved = errno;
        see_completions(ring);
        pio_release_in_flight(ring->in_flight);
        if (submitted)
            span_over(span, end_of(span));
        errno = saved;
    }
    pio_give_ring(ring);
}

/* Whether all that was put into a ring was seen: the program may have submitted it by instructions of its own. */
static void check_ring(struct ring *ring) {
    if (ACQUIRE(ring->sq_tail) != ring->sq_seen)
        ring_is_unseen();
}

static bool leave_ring(struct ring *ring, uint32_t given) {
    if (!pio_hold_in_flight(ring->in_flight))
        return false;
    bool is_left = __atomic_compare_exchange_n(&ring->fd, &given, RING_IS_CLOSED, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    if (is_left) {
        pio_begin_change();
        see_completions(ring);
        check_ring(ring);
        __atomic_fetch_sub(&rings_open, 1, __ATOMIC_RELAXED);
    }
    pio_release_in_flight(ring->in_flight);
    return is_left;
}

static bool is_descriptor(uint32_t given) {
    return given != 0 && given < RING_IS_TAKEN_DOWN;
}

__attribute__((noinline)) uint32_t pio_leave_rings(uint32_t first, uint32_t last) {
    uint32_t left = 0;
    if (LIKELY(LOAD(&rings_open) == 0))
        return 0;
    int saved = errno;
    for (size_t i = 0; i < MOST_RINGS; i++) {
        uint32_t given = ACQUIRE(&rings[i].fd);
        if (!is_descriptor(given) || given - 1 < first || given - 1 > last)
            continue;
        if (!is_owner())
            break;
        if (take_ring(&rings[i], given)) {
            left += leave_ring(&rings[i], given);
            pio_give_ring(&rings[i]);
        }
    }
    errno = saved;
    return left;
}

void pio_rings_are_closed(uint32_t left) {
    __atomic_fetch_add(&changes_ended, left, __ATOMIC_SEQ_CST);
}

/* Bytes that the process moved to and from devices, as the kernel counts them: it does not count those of rings among the
 * bytes of system calls. */
static void count_device_bytes(void) {
    char *text = pio_take_path_buffer();
    if (text == NULL)
        return;
    size_t length = pio_read_small_file("/proc/self/io", text, PATH_MAX - 1);
    text[length] = 0;
    const char *read = strstr(text, "\nread_bytes: "), *written = strstr(text, "\nwrite_bytes: ");
    if (read != NULL && written != NULL) {
        pio_spool.header->device_read_bytes = strtoull(read + 13, NULL, 10);
        pio_spool.header->device_written_bytes = strtoull(written + 14, NULL, 10);
        RELEASE(&pio_spool.header->device_bytes_known, 1);
    }
    pio_give_path_buffer(text);
}

void pio_finish_rings(void) {
    if (LOAD(pio_alive) == 0 || !is_owner())
        return;
    for (size_t i = 0; i < MOST_RINGS && LOAD(&rings_open) > 0; i++) {
        uint32_t given = ACQUIRE(&rings[i].fd);
        if (is_descriptor(given) && take_ring(&rings[i], given))
            check_ring(&rings[i]), pio_end_ring_call(&rings[i], NULL, false);
    }
    if (ACQUIRE(&pio_spool.state) != SPOOL_OPEN)
        return;
    look_for_rings();
    if (LOAD(&unseen_rings) > 0)
        count_device_bytes();
}

/* System calls by number ------------------------------------------------------------------------------------------- */

long pio_ring_setup(const struct numbered *asked) {
    pio_begin_change();
    long fd = pass_on(asked);
    if (fd >= 0)
        pio_follow_ring((int)fd, (const struct ring_params *)asked->b);
    pio_end_change();
    if (fd >= 0 && pio_follows_ring((int)fd)) {
        int saved = errno;
        pio_trap_ring_calls();
        errno = saved;
    }
    return fd;
}

long pio_ring_enter(const struct numbered *asked) {
    struct ring *ring = asked->d & RING_ENTER_REGISTERED_RING ? NULL : pio_take_ring((int)asked->a);
    struct pioscope_span span;
    bool submits = pio_begin_ring_call(ring, &span, ring == NULL ? 0 : ACQUIRE(ring->sq_tail));
    long result = pass_on(asked);
    pio_end_ring_call(ring, &span, submits);
    return result;
}

long pio_ring_register(const struct numbered *asked) {
    long result = pass_on(asked);
    if (result >= 0)
        pio_see_registration((int)asked->a, (uint32_t)asked->b, (const void *)asked->c, (uint32_t)asked->d);
    return result;
}
