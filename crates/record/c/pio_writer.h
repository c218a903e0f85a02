/* Writes the spool of this process: who records, where the next record goes, when it becomes visible.
 *
 * The rules that everything here follows:
 * - recording a call takes no lock, no memory, and no system call (but the thread's CPU clock, once it was taken off the
 *   processor);
 * - a record becomes visible by one release store of its first word, into a shared mapping: a process may be killed at
 *   any instruction, and what was visible stays;
 * - room is reserved on the device (fallocate) before it is mapped: a full disk costs records, never a SIGBUS;
 * - errno is the program's;
 * - no descriptor is held: programs close those they do not know.
 */
#ifndef PIO_WRITER_H
#define PIO_WRITER_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "pio_calls.h"
#include "pio_clock.h"
#include "pio_recorder.h"
#include "pio_spool.h"

#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define LOAD(place) __atomic_load_n(place, __ATOMIC_RELAXED)
#define ACQUIRE(place) __atomic_load_n(place, __ATOMIC_ACQUIRE)
#define STORE(place, value) __atomic_store_n(place, value, __ATOMIC_RELAXED)
#define RELEASE(place, value) __atomic_store_n(place, value, __ATOMIC_RELEASE)

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

/* Threads whose gap between two calls is shorter than this had no time to sleep: the gap is their CPU time. */
#define SHORT_GAP_NS 1000u

/* Where no mark can be left (pio_clock.h): the CPU clock costs as much as a small write. So it is read at the end of a call
 * only if it was last read longer than this ago; what lies between counts as used. This bounds the error of a think
 * time. */
#define SAMPLE_NS 20000u

/* The C library's syscall(), which we hook, too. */
static inline void *next_function(void **place, const char *name);
static void *next_of_syscall;
#define KERNEL(...) (((long (*)(long, ...))next_function(&next_of_syscall, "syscall"))(__VA_ARGS__))

/* The process ------------------------------------------------------------------------------------------------------ */

static char spool_folder[PATH_MAX];
static char path_rules[16384]; /* of PIOSCOPE_PATHS */
static char own_libraries[4096]; /* of PIOSCOPE_PRELOAD: what is to be in LD_PRELOAD */
static char own_sanitizer[512];  /* of PIOSCOPE_FIRST: what was put before them for this program alone */
/* The same for processes of other users, who may not reach those: a folder to which all may write, and libraries there. */
static char others_folder[PATH_MAX], others_libraries[4096];
static uint32_t not_yet; /* 0 for ever */

/* The pid of the process that records, in a page that the kernel zeroes in every forked child (but leaves alone in a
 * vfork child, which shares it): 0 says that this process has not begun. */
static uint32_t *alive = &not_yet;

static bool switched_off;    /* no spool folder was named */
static bool started_once;    /* by this process or the one it was forked from */
static uint32_t starting;    /* pid of the process that is inside start() */
static uint64_t first_seen_ns;

/* Whether marks tell of sleep (pio_clock.h): MARKS_UNKNOWN until the first process of this image has tried. */
static uint32_t marks;
enum { MARKS_UNKNOWN, MARKS_TELL, MARKS_DO_NOT_TELL };

static struct {
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
} spool;

/* What the spools of all processes of a host may take, in a page that they share: none if the page is not there. */
struct budget {
    uint64_t limit_bytes;
    uint64_t used_bytes;
};

enum { PROMISE_NONE, PROMISE_BUSY, PROMISE_GIVEN, PROMISE_REFUSED };
enum { SPOOL_NONE, SPOOL_BUSY, SPOOL_OPEN, SPOOL_FAILED };

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
    uint64_t operation;
    uint64_t library; /* the operation of the call of HDF5 or PnetCDF that the thread is in, or 0 */
    uint32_t library_ranks; /* most ranks with which MPI-IO opened a file in it */
} __attribute__((aligned(64)));

static __thread struct writer_thread self __attribute__((tls_model("initial-exec")));

static void forget_descriptors(void);   /* pio_posix.c */
static void forget_waiting(void);       /* pio_memory.c */
static void forget_faults(void);        /* pio_memory.c */
static void forget_names(void);         /* pio_paths.c */
static void forget_iocbs(void);         /* pio_libaio.c */
static void forget_rings(void);         /* pio_uring.c */
static void descriptors_are_shared(void);

static inline uint64_t now_ns(void) {
    return clock_now(&self.anchor);
}

static void after_fork_in_child(void) {
    STORE(alive, 0);
}

static size_t segment_of(uint64_t offset) {
    return offset < FIRST_SEGMENT_BYTES ? 0 : 1 + (size_t)((offset - FIRST_SEGMENT_BYTES) / SEGMENT_BYTES);
}

static void keep_variable(const char *name, char *place, size_t room) {
    const char *value = getenv(name);
    if (value != NULL && strlen(value) < room)
        strcpy(place, value);
}

/* Before the first record of a process: from the constructor, from a hook that runs before it, or in a forked child.
 * False if this process does not record (yet). */
static __attribute__((noinline)) bool start(void) {
    uint32_t me = (uint32_t)getpid();
    uint32_t seen = LOAD(&starting);
    if (seen == me || !__atomic_compare_exchange_n(&starting, &seen, me, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return false;
    if (LOAD(alive) == 0 && !switched_off) {
        int saved = errno;
        if (!started_once) {
            const char *folder = getenv("PIOSCOPE_SPOOL");
            if (folder == NULL || folder[0] != '/' || strlen(folder) + 300 > sizeof spool_folder) {
                switched_off = true;
            } else {
                strcpy(spool_folder, folder);
                keep_variable("PIOSCOPE_PATHS", path_rules, sizeof path_rules);
                keep_variable("PIOSCOPE_PRELOAD", own_libraries, sizeof own_libraries);
                keep_variable("PIOSCOPE_FIRST", own_sanitizer, sizeof own_sanitizer);
                keep_variable("PIOSCOPE_OTHERS", others_folder, sizeof others_folder - 300);
                keep_variable("PIOSCOPE_OTHERS_PRELOAD", others_libraries, sizeof others_libraries);
                uint32_t *page = (uint32_t *)KERNEL(SYS_mmap, NULL, 4096, PROT_READ | PROT_WRITE,
                                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                if (page == (uint32_t *)MAP_FAILED)
                    switched_off = true;
                else {
#ifdef MADV_WIPEONFORK
                    madvise(page, 4096, MADV_WIPEONFORK); /* kernels before 4.14: pthread_atfork does for most */
#endif
                    RELEASE(&alive, page);
                    pthread_atfork(NULL, descriptors_are_shared, after_fork_in_child);
                }
            }
        } else {
            /* A forked child: the spool, the descriptors' states and this thread's chunk are the parent's. */
            spool.state = SPOOL_NONE;
            spool.full = false;
            spool.header = NULL;
            uint64_t last = spool.used == 0 ? 0 : spool.used - 1;
            memset(spool.segments, 0, (segment_of(last) + 1) * sizeof spool.segments[0]);
            memset(spool.promised, 0, last / PROMISE_BYTES + 1);
            spool.used = 0;
            spool.early_drops = 0;
            spool.threads = 0;
            spool.operations = 0;
            spool.thinning = 0;
            spool.budget = NULL;
            forget_descriptors();
            forget_waiting();
            forget_faults();
            forget_names();
            forget_iocbs();
            forget_rings();
        }
        started_once = true;
        if (!switched_off) {
            first_seen_ns = clock_ns(CLOCK_MONOTONIC);
            RELEASE(alive, me);
        }
        errno = saved;
    }
    RELEASE(&starting, 0);
    return LOAD(alive) != 0;
}

/* Whether calls are to be recorded: one or two loads, but for the first time. */
static inline bool recording(void) {
    return LIKELY(LOAD(ACQUIRE(&alive)) != 0) || (!switched_off && start());
}

/* Whether this is the process that the state in memory belongs to, and not a vfork child that borrows the memory. */
static inline bool is_owner(void) {
    return (uint32_t)getpid() == LOAD(alive);
}

/* Paths ------------------------------------------------------------------------------------------------------------ */

/* Room for a path that is not on the stack, as programs may open and read files in handlers that have a small one. A
 * handler that interrupts us while we use the thread's own gets a page of its own. */
static __thread char path_buffer[PATH_MAX] __attribute__((tls_model("initial-exec")));
static __thread bool path_buffer_is_taken __attribute__((tls_model("initial-exec")));

/* NULL if there is no memory; errno may change. */
static char *take_path_buffer(void) {
    if (LIKELY(!path_buffer_is_taken)) {
        path_buffer_is_taken = true;
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        return path_buffer;
    }
    char *page = (char *)KERNEL(SYS_mmap, NULL, PATH_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return page == (char *)MAP_FAILED ? NULL : page;
}

static void give_path_buffer(char *buffer) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (buffer == path_buffer)
        path_buffer_is_taken = false;
    else if (buffer != NULL)
        KERNEL(SYS_munmap, buffer, PATH_MAX);
}

/* The spool -------------------------------------------------------------------------------------------------------- */

static size_t read_small_file(const char *path, char *buffer, size_t size) {
    size_t length = 0;
    int fd = (int)KERNEL(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    while (length < size) {
        long got = KERNEL(SYS_read, fd, buffer + length, size - length);
        if (got <= 0)
            break;
        length += (size_t)got;
    }
    KERNEL(SYS_close, fd);
    return length;
}

static uint64_t segment_start(size_t segment) {
    return segment == 0 ? 0 : FIRST_SEGMENT_BYTES + (uint64_t)(segment - 1) * SEGMENT_BYTES;
}

static size_t segment_bytes(size_t segment) {
    return segment == 0 ? FIRST_SEGMENT_BYTES : SEGMENT_BYTES;
}

/* Beyond the program's own limit the kernel would not only refuse: it would kill it (SIGXFSZ). */
static bool may_grow_to(uint64_t end) {
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || end <= limit.rlim_cur;
}

/* Makes the device promise the room. */
static bool reserve_room(int fd, uint64_t start_of, size_t bytes) {
    if (!may_grow_to(start_of + bytes)) {
        errno = EFBIG;
        return false;
    }
    if (KERNEL(SYS_fallocate, fd, 0, (off_t)start_of, (off_t)bytes) == 0)
        return true;
    if (errno != EOPNOTSUPP && errno != ENOSYS)
        return false;
    static const char zeros[4096]; /* a file system without fallocate: writing is a promise too */
    for (size_t done = 0; done < bytes; done += sizeof zeros)
        if (KERNEL(SYS_pwrite64, fd, zeros, sizeof zeros, (off_t)(start_of + done)) != (long)sizeof zeros)
            return false;
    return true;
}

static void give_back_to_budget(size_t bytes) {
    if (spool.budget != NULL)
        __atomic_fetch_sub(&spool.budget->used_bytes, bytes, __ATOMIC_RELAXED);
}

/* Takes room from what all processes may use together. The more of it is gone, the fewer calls are kept: all of them in
 * the first half, one in 4 in the next quarter, one in 16 in the eighth after it, and so on. */
static bool take_from_budget(size_t bytes) {
    struct budget *budget = spool.budget;
    if (budget == NULL)
        return true;
    uint64_t limit = LOAD(&budget->limit_bytes);
    if (__atomic_add_fetch(&budget->used_bytes, bytes, __ATOMIC_RELAXED) <= limit)
        return true;
    give_back_to_budget(bytes);
    return false;
}

static void look_at_budget(void) {
    struct budget *budget = spool.budget;
    if (budget == NULL)
        return;
    uint64_t limit = LOAD(&budget->limit_bytes), used = LOAD(&budget->used_bytes);
    unsigned halvings = 0;
    for (uint64_t left = limit / 2; halvings < 20 && used > limit - left; left /= 2)
        halvings++;
    uint64_t thinning = (1ull << 2 * halvings) - 1;
    if (thinning <= LOAD(&spool.thinning))
        return;
    /* From now on positions are asked for: they move by calls that nobody writes down. */
    descriptors_are_shared();
    STORE(&spool.thinning, thinning);
    STORE(&spool.header->keeps_one_in, thinning + 1);
}

static struct budget *map_budget(void) {
    char *path = take_path_buffer();
    if (path == NULL)
        return NULL;
    strcpy(stpcpy(path, spool_folder), "/budget");
    int fd = (int)KERNEL(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
    give_path_buffer(path);
    if (fd < 0)
        return NULL;
    void *page = (void *)KERNEL(SYS_mmap, NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    KERNEL(SYS_close, fd);
    return page == MAP_FAILED ? NULL : page;
}

/* Out of descriptors: the only trouble that passes. */
static bool is_passing(int error) {
    return error == EMFILE || error == ENFILE;
}

/* Makes the device promise a piece of the file; errno says why it did not. */
static bool promise_piece(uint64_t start_of, size_t bytes) {
    unsigned char *promised = &spool.promised[start_of / PROMISE_BYTES];
    for (;;) {
        unsigned char state = ACQUIRE(promised);
        if (state == PROMISE_GIVEN)
            return true;
        if (state == PROMISE_REFUSED) {
            errno = ENOSPC;
            return false;
        }
        if (state == PROMISE_BUSY) {
            sched_yield();
        } else if (__atomic_compare_exchange_n(promised, &state, PROMISE_BUSY, false, __ATOMIC_ACQ_REL,
                                               __ATOMIC_RELAXED)) {
            bool given = false;
            int fd = (int)KERNEL(SYS_openat, AT_FDCWD, spool.path, O_RDWR | O_CLOEXEC | O_CREAT, 0600);
            int error = errno;
            if (fd >= 0) {
                error = ENOSPC;
                if (take_from_budget(bytes) && !(given = reserve_room(fd, start_of, bytes)))
                    give_back_to_budget(bytes);
                KERNEL(SYS_close, fd);
            }
            RELEASE(promised, given ? PROMISE_GIVEN : is_passing(error) ? PROMISE_NONE : PROMISE_REFUSED);
            errno = error;
            return given;
        }
    }
}

/* The same for what lies in one segment. */
static bool promise(uint64_t start_of, size_t bytes) {
    size_t segment = segment_of(start_of);
    uint64_t end = start_of + bytes;
    if (segment >= SEGMENTS) {
        errno = EFBIG;
        return false;
    }
    for (uint64_t used = LOAD(&spool.used); used < end;)
        if (__atomic_compare_exchange_n(&spool.used, &used, end, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            break;
    if (spool.budget == NULL)
        return promise_piece(segment_start(segment), segment_bytes(segment));
    for (uint64_t at = start_of / PROMISE_BYTES * PROMISE_BYTES; at < end; at += PROMISE_BYTES)
        if (!promise_piece(at, PROMISE_BYTES))
            return false;
    return true;
}

static char *map_segment(size_t segment) {
    int fd = (int)KERNEL(SYS_openat, AT_FDCWD, spool.path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    char *mapped = (char *)KERNEL(SYS_mmap, NULL, segment_bytes(segment), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                                  (off_t)segment_start(segment));
    KERNEL(SYS_close, fd);
    if (mapped == (char *)MAP_FAILED)
        return NULL;
    madvise(mapped, segment_bytes(segment), MADV_DONTFORK); /* a child has its own */
    return mapped;
}

static void sleep_ns(long ns) {
    struct timespec time = {0, ns};
    KERNEL(SYS_nanosleep, &time, NULL);
}

static void try_marks(void) {
    uint64_t *place = mark_place();
    if (marks == MARKS_UNKNOWN)
        STORE(&marks, place != NULL && sleep_wipes_marks(place, sleep_ns) ? MARKS_TELL : MARKS_DO_NOT_TELL);
    self.mark = marks == MARKS_TELL ? place : NULL;
}

/* The host's name as part of a file's. */
static void host_name(struct utsname *names) {
    names->nodename[63] = 0;
    for (char *c = names->nodename; *c; c++)
        if (*c == '/')
            *c = '_';
}

static bool create_spool(void) {
    struct utsname names;
    if (uname(&names) != 0)
        return false;
    host_name(&names);
    char source[16] = "";
    read_small_file("/sys/devices/system/clocksource/clocksource0/current_clocksource", source, sizeof source - 1);
    counter_begin(source);
    try_marks();
    spool.budget = map_budget();
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    snprintf(spool.path, sizeof spool.path, "%s/%s-%u-%llx.spool", spool_folder, names.nodename, LOAD(alive),
             (unsigned long long)now);
    char *mapped = promise(0, FIRST_SEGMENT_BYTES) ? map_segment(0) : NULL;
    if (mapped == NULL)
        return false; /* the file, if it came to be, is empty: that tells the collector */
    struct pio_header *header = (struct pio_header *)mapped;
    header->version = PIO_SPOOL_VERSION;
    header->pid = LOAD(alive);
    header->parent_pid = (uint32_t)getppid();
    header->rank = -1;
    header->next = PIO_HEADER_BYTES;
    header->realtime_ns = clock_ns(CLOCK_REALTIME);
    header->monotonic_ns = clock_ns(CLOCK_MONOTONIC);
    header->start_ns = first_seen_ns;
    read_small_file("/proc/sys/kernel/random/boot_id", header->boot_id, sizeof header->boot_id - 1);
    memcpy(header->host, names.nodename, strlen(names.nodename));
    header->command_length = (uint32_t)read_small_file("/proc/self/cmdline", header->command, PIO_COMMAND_BYTES);
    spool.segments[0] = mapped;
    spool.header = header;
    __atomic_thread_fence(__ATOMIC_RELEASE);
    memcpy(header->magic, PIO_SPOOL_MAGIC, sizeof header->magic);
    return true;
}

static bool spool_is_open(void) {
    for (;;) {
        uint32_t state = ACQUIRE(&spool.state);
        if (LIKELY(state == SPOOL_OPEN))
            return true;
        if (state == SPOOL_FAILED)
            return false;
        if (state == SPOOL_NONE && __atomic_compare_exchange_n(&spool.state, &state, SPOOL_BUSY, false,
                                                               __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            if (create_spool()) {
                RELEASE(&spool.state, SPOOL_OPEN);
                __atomic_fetch_add(&spool.header->dropped, LOAD(&spool.early_drops), __ATOMIC_RELAXED);
            } else if (is_passing(errno)) {
                self.retry_ns = now_ns() + RETRY_NS;
                RELEASE(&spool.state, SPOOL_NONE);
                return false;
            } else {
                RELEASE(&spool.state, SPOOL_FAILED);
            }
        } else if (state == SPOOL_BUSY) {
            sched_yield();
        }
    }
}

static char *segment_address(size_t segment) {
    if (segment >= SEGMENTS)
        return NULL;
    for (;;) {
        char *address = ACQUIRE(&spool.segments[segment]);
        if (address == SEGMENT_BUSY) {
            sched_yield();
        } else if (address != NULL) {
            return address;
        } else if (__atomic_compare_exchange_n(&spool.segments[segment], &address, SEGMENT_BUSY, false,
                                               __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            address = map_segment(segment);
            RELEASE(&spool.segments[segment], address);
            return address;
        }
    }
}

/* Threads -------------------------------------------------------------------------------------------------------- */

/* Room for a chunk: its place in the file, which lies in one segment. */
static uint64_t chunk_place(uint32_t bytes) {
    for (;;) { /* what is left over at the end of a segment stays zero */
        uint64_t offset = __atomic_fetch_add(&spool.header->next, bytes, __ATOMIC_RELAXED);
        if (segment_of(offset) == segment_of(offset + bytes - 1))
            return offset;
    }
}

/* The same, or the room that could not be used the last time. */
static uint64_t take_place(uint32_t bytes) {
    if (self.kept_bytes != bytes)
        return chunk_place(bytes);
    self.kept_bytes = 0;
    return self.kept_place;
}

/* After room at `place` could not be used, for the reason that errno says. */
static void no_room(uint64_t place, uint32_t bytes) {
    if (is_passing(errno)) {
        self.retry_ns = now_ns() + RETRY_NS;
        self.kept_place = place;
        self.kept_bytes = bytes;
    } else {
        STORE(&spool.full, true);
    }
}

static bool may_ask_for_room(void) {
    return !LOAD(&spool.full) && (LIKELY(self.retry_ns == 0) || now_ns() >= self.retry_ns);
}

static struct pio_chunk *new_chunk(uint32_t bytes, uint32_t sequence, bool is_short) {
    if (!may_ask_for_room() || !spool_is_open())
        return NULL;
    look_at_budget();
    uint64_t offset = take_place(bytes);
    size_t segment = segment_of(offset);
    char *address = promise(offset, bytes) ? segment_address(segment) : NULL;
    if (address == NULL) {
        no_room(offset, bytes);
        return NULL;
    }
    if (!self.has_number) {
        self.has_number = true;
        self.number = __atomic_fetch_add(&spool.threads, 1, __ATOMIC_RELAXED);
    }
    struct pio_chunk *chunk = (struct pio_chunk *)(address + (offset - segment_start(segment)));
    chunk->bytes = bytes;
    chunk->thread = self.number;
    chunk->sequence = sequence;
    chunk->is_short = is_short;
    RELEASE(&chunk->magic, PIO_CHUNK_MAGIC);
    return chunk;
}

/* Gives the thread a new chunk for whole records, with room for one of any length. */
static __attribute__((noinline)) bool take_whole_chunk(size_t bytes) {
    int saved = errno;
    uint32_t size = self.whole_chunks == 0 && bytes <= PIO_UNIT_BYTES * 4 ? PIO_FIRST_CHUNK_BYTES : PIO_CHUNK_BYTES;
    struct pio_chunk *chunk = new_chunk(size, self.whole_chunks, false);
    errno = saved;
    if (chunk == NULL)
        return false;
    self.whole_chunks++;
    self.whole_cursor = (char *)(chunk + 1);
    self.whole_end = (char *)chunk + size;
    return true;
}

/* Copies the thread's full chunk to a place in the file; errno says why it could not. */
static bool copy_chunk_to(uint64_t offset) {
    if (!promise(offset, PIO_SHORT_CHUNK_BYTES))
        return false;
    if (!may_grow_to(offset + PIO_SHORT_CHUNK_BYTES)) {
        errno = EFBIG;
        return false;
    }
    int fd = (int)KERNEL(SYS_openat, AT_FDCWD, spool.path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    long written = KERNEL(SYS_pwrite64, fd, self.chunk, PIO_SHORT_CHUNK_BYTES, (off_t)offset);
    KERNEL(SYS_close, fd);
    errno = EIO;
    return written == (long)PIO_SHORT_CHUNK_BYTES;
}

/* Copies it to the end. */
static bool copy_chunk(void) {
    if (!may_ask_for_room())
        return false;
    uint64_t offset = take_place(PIO_SHORT_CHUNK_BYTES);
    if (copy_chunk_to(offset))
        return true;
    no_room(offset, PIO_SHORT_CHUNK_BYTES);
    return false;
}

/* An empty chunk for short records; NULL if there is no room. */
static struct pio_chunk *next_short_chunk(void) {
    struct pio_chunk *chunk = self.chunk;
    if (chunk != NULL && chunk->bytes == PIO_SHORT_CHUNK_BYTES) {
        if (!copy_chunk())
            return NULL;
        look_at_budget();
        uint32_t sequence = chunk->sequence + 1;
        RELEASE(&chunk->magic, 0);
        __atomic_thread_fence(__ATOMIC_RELEASE);
        memset(chunk + 1, 0, PIO_SHORT_CHUNK_BYTES - sizeof *chunk);
        chunk->sequence = sequence;
        RELEASE(&chunk->magic, PIO_CHUNK_MAGIC);
        return chunk;
    }
    return chunk == NULL ? new_chunk(PIO_FIRST_CHUNK_BYTES, 0, true)
                         : new_chunk(PIO_SHORT_CHUNK_BYTES, chunk->sequence + 1, true);
}

/* Gives it to the thread. */
static __attribute__((noinline)) bool take_short_chunk(void) {
    int saved = errno;
    struct pio_chunk *chunk = next_short_chunk();
    errno = saved;
    if (chunk == NULL)
        return false;
    self.chunk = chunk;
    self.base_ns = 0;
    self.last_size = 0;
    self.last_end = 0;
    self.cursor = (char *)(chunk + 1);
    self.end = (char *)chunk + chunk->bytes;
    return true;
}

static __attribute__((noinline)) void drop(void) {
    bool is_open = ACQUIRE(&spool.state) == SPOOL_OPEN;
    __atomic_fetch_add(is_open ? &spool.header->dropped : &spool.early_drops, 1, __ATOMIC_RELAXED);
}

static unsigned kind_of(uint32_t call); /* pio_posix.c: 0 reads, 1 writes, more: others */

/* Beside drop(): what was lost with the record. */
static __attribute__((noinline)) void count_lost(uint32_t call, int64_t result) {
    unsigned kind = kind_of(call);
    if (kind > 1 || ACQUIRE(&spool.state) != SPOOL_OPEN)
        return;
    __atomic_fetch_add(&spool.header->lost_calls[kind], 1, __ATOMIC_RELAXED);
    if (result > 0)
        __atomic_fetch_add(&spool.header->lost_bytes[kind], (uint64_t)result, __ATOMIC_RELAXED);
}

static inline void meet_thread(void) {
    uint32_t pid = LOAD(alive);
    if (UNLIKELY(self.pid != pid)) {
        memset(&self, 0, sizeof self);
        self.pid = pid;
        self.mark = LOAD(&marks) == MARKS_TELL ? mark_place() : NULL;
    }
}

/* From here to end_writing() a signal handler must not record: false in such a handler. */
static inline bool begin_writing(void) {
    if (UNLIKELY(self.busy)) {
        drop();
        return false;
    }
    self.busy = true;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return true;
}

static inline void end_writing(void) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    self.busy = false;
}

/* A whole record of this many units, zero, to be filled and published; NULL if there is no room. */
static inline struct pio_record *take_whole(unsigned units) {
    size_t bytes = (size_t)units * PIO_UNIT_BYTES;
    if ((size_t)(self.whole_end - self.whole_cursor) >= bytes || take_whole_chunk(bytes)) {
        struct pio_record *taken = (struct pio_record *)self.whole_cursor;
        self.whole_cursor += bytes;
        return taken;
    }
    drop();
    return NULL;
}

static inline struct pio_record *reserve(unsigned units) {
    meet_thread();
    if (!begin_writing())
        return NULL;
    struct pio_record *record = take_whole(units);
    end_writing();
    return record;
}

static inline void publish(struct pio_record *record, uint32_t call, unsigned units, uint32_t flags) {
    RELEASE(&record->word, call | (uint32_t)units << 16 | flags << 24);
}

/* Calls ---------------------------------------------------------------------------------------------------------- */

/* The thread was taken off the processor, or may have been: its CPU clock knows what it used. */
static __attribute__((noinline)) void ask_for_think_time(struct pioscope_span *span) {
    uint64_t accounted_ns = self.cpu_ns + (self.end_ns - self.sample_ns);
    if (self.mark != NULL)
        leave_mark(self.mark); /* first: what happens from here on is noticed at the end of the call */
    span->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    uint64_t used_ns = span->cpu_ns > accounted_ns ? span->cpu_ns - accounted_ns : 0;
    span->start_ns = now_ns();
    /* What the processor did between the reading of the two clocks (an interrupt, another guest of the machine) counts
     * twice; but no thread uses more than the time that passed. */
    uint64_t gap = span->start_ns - self.end_ns;
    span->think_ns = used_ns < gap ? used_ns : gap;
}

static __attribute__((noinline)) void span_begin(struct pioscope_span *span) {
    meet_thread();
    uint64_t start_ns = now_ns();
    span->cpu_ns = 0;
    span->think_ns = 0;
    if (UNLIKELY(start_ns < self.end_ns))
        start_ns = self.end_ns;
    span->start_ns = start_ns;
    if (UNLIKELY(self.operation != 0))
        return;
    uint64_t gap = start_ns - self.end_ns;
    if (LIKELY(self.mark != NULL && mark_is_there(self.mark)) || gap < SHORT_GAP_NS)
        span->think_ns = gap;
    else
        ask_for_think_time(span);
}

static __attribute__((noinline)) uint64_t sample_cpu_time(void) {
    if (self.mark != NULL)
        leave_mark(self.mark);
    self.cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    return self.sample_ns = now_ns();
}

/* After the record of an outermost call: think time begins. */
static inline void span_over(const struct pioscope_span *span, uint64_t end_ns) {
    if (UNLIKELY(self.operation != 0))
        return;
    if (UNLIKELY(span->cpu_ns != 0)) {
        self.cpu_ns = span->cpu_ns;
        self.sample_ns = span->start_ns;
    }
    bool is_known = self.mark != NULL ? mark_is_there(self.mark) : end_ns - self.sample_ns < SAMPLE_NS;
    self.end_ns = LIKELY(is_known) ? end_ns : sample_cpu_time();
}

/* Instead, after a call that is not recorded: it counts as thinking, by its CPU time. */
static inline void span_is_dropped(void) {
    if (self.mark != NULL && mark_is_there(self.mark))
        *(volatile uint64_t *)self.mark = 0;
}

struct outcome {
    uint32_t call;
    uint32_t flags;
    int32_t fd;
    uint64_t offset;
    uint64_t size;
    int64_t result;
};

/* When a call ended by the clock, which may step back a little where a thread reads it anew. */
static inline uint64_t end_of(const struct pioscope_span *span) {
    uint64_t end_ns = now_ns();
    return UNLIKELY(end_ns < span->start_ns) ? span->start_ns : end_ns;
}

static __attribute__((noinline)) void record_whole(const struct pioscope_span *span, uint64_t end_ns,
                                                   const struct outcome *outcome, const void *payload,
                                                   size_t payload_bytes) {
    unsigned units = 1 + (unsigned)((payload_bytes + PIO_UNIT_BYTES - 1) / PIO_UNIT_BYTES);
    if (!begin_writing()) {
        count_lost(outcome->call, outcome->result);
        return;
    }
    struct pio_record *record = take_whole(units);
    if (record == NULL) {
        count_lost(outcome->call, outcome->result);
    } else {
        record->fd = outcome->fd;
        record->start_ns = span->start_ns;
        record->elapsed_ns = end_ns - span->start_ns;
        record->think_ns = span->think_ns;
        record->offset = outcome->offset;
        record->size = outcome->size;
        record->result = outcome->result;
        record->operation = self.operation;
        if (payload_bytes > 0)
            memcpy(record + 1, payload, payload_bytes);
        publish(record, outcome->call, units, outcome->flags | (self.operation != 0 ? PIO_PHYSICAL : 0));
    }
    end_writing();
}

/* False if the numbers do not fit. */
static inline bool record_short(const struct pioscope_span *span, uint64_t end_ns, const struct outcome *outcome) {
    uint64_t elapsed_ns = end_ns - span->start_ns;
    if (UNLIKELY(elapsed_ns >> 32 != 0 || (uint32_t)outcome->fd + 1 > UINT16_MAX))
        return false;
    if (!begin_writing()) {
        count_lost(outcome->call, outcome->result);
        return true;
    }
    if (UNLIKELY((size_t)(self.end - self.cursor) < PIO_MOST_SHORT_BYTES) && !take_short_chunk()) {
        drop();
        count_lost(outcome->call, outcome->result);
        end_writing();
        return true;
    }
    struct pio_short_record *record = (struct pio_short_record *)self.cursor;
    uint64_t *more = (uint64_t *)(record + 1);
    uint32_t form = 0;
    uint64_t gap_ns = span->start_ns - self.base_ns;
    if (UNLIKELY(gap_ns >> 32 != 0)) {
        form |= PIO_HAS_START;
        *more++ = span->start_ns;
    }
    if (UNLIKELY(gap_ns != span->think_ns || gap_ns >> 32 != 0)) {
        form |= PIO_HAS_THINK;
        *more++ = span->think_ns;
    }
    if (outcome->size != self.last_size) {
        form |= PIO_HAS_SIZE;
        *more++ = self.last_size = outcome->size;
    }
    if (outcome->offset != PIO_NO_OFFSET) {
        if (outcome->offset == self.last_end) {
            form |= PIO_GOES_ON;
        } else {
            form |= PIO_HAS_OFFSET;
            *more++ = outcome->offset;
        }
        self.last_end = outcome->offset + (outcome->result < 0 ? 0 : (uint64_t)outcome->result);
    }
    if (UNLIKELY(outcome->result != (int64_t)outcome->size)) {
        form |= PIO_HAS_RESULT;
        *more++ = (uint64_t)outcome->result;
    }
    size_t bytes = (size_t)((char *)more - (char *)record);
    record->fd = (uint16_t)outcome->fd;
    record->form = (uint16_t)form;
    record->gap_ns = (uint32_t)gap_ns;
    record->elapsed_ns = (uint32_t)elapsed_ns;
    RELEASE(&record->word, outcome->call | (uint32_t)bytes / 8 << 16 | (outcome->flags | PIO_SHORT) << 24);
    self.cursor += bytes;
    self.base_ns = end_ns;
    end_writing();
    return true;
}

/* Writes the record of a call that has returned, with its payload. The caller restores errno. */
static inline void record_call(const struct pioscope_span *span, uint64_t end_ns, struct outcome outcome,
                               const void *payload, size_t payload_bytes) {
    if (payload_bytes > 0 || UNLIKELY(self.operation != 0) || !record_short(span, end_ns, &outcome))
        record_whole(span, end_ns, &outcome, payload, payload_bytes);
}

/* Whether the budget spares this call; if it does not, it is counted: 0 reads, 1 writes, 2 others. */
static __attribute__((noinline)) bool is_thinned_out(unsigned kind, int64_t result) {
    if ((self.thinned++ & LOAD(&spool.thinning)) == 0)
        return false;
    __atomic_fetch_add(&spool.header->thinned_calls[kind], 1, __ATOMIC_RELAXED);
    if (result > 0)
        __atomic_fetch_add(&spool.header->thinned_bytes[kind], (uint64_t)result, __ATOMIC_RELAXED);
    return true;
}

/* How the process ended. */
static void mark_ended(uint32_t how) {
    if (LOAD(alive) != 0 && is_owner() && ACQUIRE(&spool.state) == SPOOL_OPEN) {
        if (how & PIO_ENDED_NORMALLY)
            spool.header->end_ns = clock_ns(CLOCK_MONOTONIC);
        __atomic_fetch_or(&spool.header->ended, how, __ATOMIC_RELEASE);
    }
}

#endif
