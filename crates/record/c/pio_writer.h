/* Writes the spool of this process: who records, where the next record goes, when it becomes visible.
 *
 * The rules that everything here follows:
 * - recording a call takes no lock, no memory, and no system call but the thread's CPU clock;
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
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "pio_calls.h"
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

/* Threads whose gap between two calls is shorter than this had no time to sleep: the gap is their CPU time. */
#define SHORT_GAP_NS 1000u

/* The CPU clock costs as much as a small write. So it is read at the end of a call only if it was last read longer than
 * this ago; what lies between counts as used. This bounds the error of a think time. */
#define SAMPLE_NS 20000u

/* The process ------------------------------------------------------------------------------------------------------ */

static char spool_folder[PATH_MAX];
static uint32_t not_yet; /* 0 for ever */

/* The pid of the process that records, in a page that the kernel zeroes in every forked child (but leaves alone in a
 * vfork child, which shares it): 0 says that this process has not begun. */
static uint32_t *alive = &not_yet;

static bool switched_off;    /* no spool folder was named */
static bool started_once;    /* by this process or the one it was forked from */
static uint32_t starting;    /* pid of the process that is inside start() */
static uint64_t first_seen_ns;

static struct {
    uint32_t state; /* SPOOL_... */
    bool full;      /* no more room: what has a chunk goes on, nothing new is taken */
    char path[PATH_MAX];
    struct pio_header *header;
    char *segments[SEGMENTS];
    uint32_t threads;    /* that recorded so far */
    uint64_t operations; /* ids given so far */
} spool;

enum { SPOOL_NONE, SPOOL_BUSY, SPOOL_OPEN, SPOOL_FAILED };

static struct writer_thread {
    uint32_t pid;    /* the process for which the rest holds */
    uint32_t number; /* in order of first record */
    uint32_t chunks;
    uint32_t depth; /* of operations within operations */
    bool busy;      /* inside a reservation: a signal handler must not make another */
    char *cursor;
    char *end;
    uint64_t end_ns;    /* CLOCK_MONOTONIC after its last recorded call */
    uint64_t cpu_ns;    /* thread's CPU clock when last read */
    uint64_t sample_ns; /* CLOCK_MONOTONIC at the same moment */
    uint64_t operation;
} __attribute__((aligned(64)));

static __thread struct writer_thread self __attribute__((tls_model("initial-exec")));

static void forget_descriptors(void);   /* pio_posix.c */
static void descriptors_are_shared(void);

static inline uint64_t clock_ns(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void after_fork_in_child(void) {
    STORE(alive, 0);
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
                uint32_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                if (page == MAP_FAILED)
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
            memset(spool.segments, 0, sizeof spool.segments);
            spool.threads = 0;
            spool.operations = 0;
            forget_descriptors();
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

/* The spool -------------------------------------------------------------------------------------------------------- */

static size_t read_small_file(const char *path, char *buffer, size_t size) {
    size_t length = 0;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    while (length < size) {
        long got = syscall(SYS_read, fd, buffer + length, size - length);
        if (got <= 0)
            break;
        length += (size_t)got;
    }
    syscall(SYS_close, fd);
    return length;
}

static size_t segment_of(uint64_t offset) {
    return offset < FIRST_SEGMENT_BYTES ? 0 : 1 + (size_t)((offset - FIRST_SEGMENT_BYTES) / SEGMENT_BYTES);
}

static uint64_t segment_start(size_t segment) {
    return segment == 0 ? 0 : FIRST_SEGMENT_BYTES + (uint64_t)(segment - 1) * SEGMENT_BYTES;
}

static size_t segment_bytes(size_t segment) {
    return segment == 0 ? FIRST_SEGMENT_BYTES : SEGMENT_BYTES;
}

/* Makes the device promise the room. */
static bool reserve_room(int fd, uint64_t start_of, size_t bytes) {
    if (syscall(SYS_fallocate, fd, 0, (off_t)start_of, (off_t)bytes) == 0)
        return true;
    if (errno != EOPNOTSUPP && errno != ENOSYS)
        return false;
    static const char zeros[4096]; /* a file system without fallocate: writing is a promise too */
    for (size_t done = 0; done < bytes; done += sizeof zeros)
        if (syscall(SYS_pwrite64, fd, zeros, sizeof zeros, (off_t)(start_of + done)) != (long)sizeof zeros)
            return false;
    return true;
}

static char *map_segment(size_t segment, int flags) {
    int fd = (int)syscall(SYS_openat, AT_FDCWD, spool.path, O_RDWR | O_CLOEXEC | flags, 0600);
    if (fd < 0)
        return NULL;
    char *mapped = NULL;
    if (reserve_room(fd, segment_start(segment), segment_bytes(segment))) {
        mapped = mmap(NULL, segment_bytes(segment), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                      (off_t)segment_start(segment));
        if (mapped == MAP_FAILED)
            mapped = NULL;
        else
            madvise(mapped, segment_bytes(segment), MADV_DONTFORK); /* a child has its own */
    }
    syscall(SYS_close, fd);
    return mapped;
}

static bool create_spool(void) {
    struct utsname names;
    if (uname(&names) != 0)
        return false;
    names.nodename[63] = 0;
    for (char *c = names.nodename; *c; c++)
        if (*c == '/')
            *c = '_';
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    snprintf(spool.path, sizeof spool.path, "%s/%s-%u-%llx.spool", spool_folder, names.nodename, LOAD(alive),
             (unsigned long long)now);
    char *mapped = map_segment(0, O_CREAT | O_EXCL);
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
            RELEASE(&spool.state, create_spool() ? SPOOL_OPEN : SPOOL_FAILED);
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
            address = map_segment(segment, 0);
            RELEASE(&spool.segments[segment], address);
            return address;
        }
    }
}

/* Threads -------------------------------------------------------------------------------------------------------- */

/* Gives the thread a new chunk, with room for a record of any length. */
static __attribute__((noinline)) bool take_chunk(size_t bytes) {
    if (!spool_is_open() || LOAD(&spool.full))
        return false;
    uint32_t size = self.chunks == 0 && bytes <= PIO_UNIT_BYTES * 4 ? PIO_FIRST_CHUNK_BYTES : PIO_CHUNK_BYTES;
    uint64_t offset;
    size_t segment;
    do { /* a chunk lies in one segment; what is left over at the end of a segment stays zero */
        offset = __atomic_fetch_add(&spool.header->next, size, __ATOMIC_RELAXED);
        segment = segment_of(offset);
    } while (segment != segment_of(offset + size - 1));
    char *address = segment_address(segment);
    if (address == NULL) {
        STORE(&spool.full, true);
        return false;
    }
    if (self.chunks == 0)
        self.number = __atomic_fetch_add(&spool.threads, 1, __ATOMIC_RELAXED);
    struct pio_chunk *chunk = (struct pio_chunk *)(address + (offset - segment_start(segment)));
    chunk->bytes = size;
    chunk->thread = self.number;
    chunk->sequence = self.chunks++;
    RELEASE(&chunk->magic, PIO_CHUNK_MAGIC);
    self.cursor = (char *)chunk + PIO_UNIT_BYTES;
    self.end = (char *)chunk + size;
    return true;
}

static void drop(void) {
    if (ACQUIRE(&spool.state) == SPOOL_OPEN)
        __atomic_fetch_add(&spool.header->dropped, 1, __ATOMIC_RELAXED);
}

static inline void meet_thread(void) {
    uint32_t pid = LOAD(alive);
    if (UNLIKELY(self.pid != pid)) {
        memset(&self, 0, sizeof self);
        self.pid = pid;
    }
}

/* The next `units` × 64 zero bytes of the thread's chunk; NULL if there is no room or if a signal handler asks. */
static inline struct pio_record *reserve(unsigned units) {
    size_t bytes = (size_t)units * PIO_UNIT_BYTES;
    meet_thread();
    if (UNLIKELY(self.busy)) {
        drop();
        return NULL;
    }
    self.busy = true;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    struct pio_record *record = NULL;
    if (LIKELY((size_t)(self.end - self.cursor) >= bytes) || take_chunk(bytes)) {
        record = (struct pio_record *)self.cursor;
        self.cursor += bytes;
    } else {
        drop();
    }
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    self.busy = false;
    return record;
}

static inline void publish(struct pio_record *record, uint32_t call, unsigned units, uint32_t flags) {
    RELEASE(&record->word, call | (uint32_t)units << 16 | flags << 24);
}

/* Calls ---------------------------------------------------------------------------------------------------------- */

static inline void span_begin(struct pioscope_span *span) {
    meet_thread();
    span->think_ns = 0;
    span->cpu_ns = 0;
    span->start_ns = clock_ns(CLOCK_MONOTONIC);
    if (self.operation != 0)
        return;
    uint64_t gap = span->start_ns - self.end_ns;
    if (gap < SHORT_GAP_NS) {
        span->think_ns = gap;
        return;
    }
    uint64_t accounted_ns = self.cpu_ns + (self.end_ns - self.sample_ns);
    span->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    uint64_t used_ns = span->cpu_ns > accounted_ns ? span->cpu_ns - accounted_ns : 0;
    span->start_ns = clock_ns(CLOCK_MONOTONIC);
    /* What the processor did between the reading of the two clocks (an interrupt, another guest of the machine) counts
     * twice; but no thread uses more than the time that passed. */
    gap = span->start_ns - self.end_ns;
    span->think_ns = used_ns < gap ? used_ns : gap;
}

/* After the record of an outermost call: think time begins. A call that is not recorded has no such end, and counts as
 * thinking. */
static inline void span_over(const struct pioscope_span *span, uint64_t end_ns) {
    if (self.operation != 0)
        return;
    if (span->cpu_ns != 0) {
        self.cpu_ns = span->cpu_ns;
        self.sample_ns = span->start_ns;
    }
    if (end_ns - self.sample_ns >= SAMPLE_NS) {
        self.cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        end_ns = self.sample_ns = clock_ns(CLOCK_MONOTONIC);
    }
    self.end_ns = end_ns;
}

struct outcome {
    uint32_t call;
    uint32_t flags;
    int32_t fd;
    uint64_t offset;
    uint64_t size;
    int64_t result;
};

/* Writes the record of a call that has returned, with its payload. The caller restores errno. */
static inline void record_call(const struct pioscope_span *span, uint64_t end_ns, struct outcome outcome,
                               const void *payload, size_t payload_bytes) {
    unsigned units = 1 + (unsigned)((payload_bytes + PIO_UNIT_BYTES - 1) / PIO_UNIT_BYTES);
    struct pio_record *record = reserve(units);
    if (record != NULL) {
        record->fd = outcome.fd;
        record->start_ns = span->start_ns;
        record->elapsed_ns = end_ns - span->start_ns;
        record->think_ns = span->think_ns;
        record->offset = outcome.offset;
        record->size = outcome.size;
        record->result = outcome.result;
        record->operation = self.operation;
        if (payload_bytes > 0)
            memcpy(record + 1, payload, payload_bytes);
        publish(record, outcome.call, units, outcome.flags | (self.operation != 0 ? PIO_PHYSICAL : 0));
    }
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
