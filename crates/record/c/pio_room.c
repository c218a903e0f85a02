#include "pio_room.h"
#include "pio_descriptors.h"
#include "pio_kernel.h"
#include "pio_thread.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* What the spools of all processes of a host may take, in a page that they share: none if the page is not there. */
struct budget {
    uint64_t limit_bytes;
    uint64_t used_bytes;
};

static size_t segment_bytes(size_t segment) {
    return segment == 0 ? FIRST_SEGMENT_BYTES : SEGMENT_BYTES;
}

struct spool pio_spool;

enum { PROMISE_NONE, PROMISE_BUSY, PROMISE_GIVEN, PROMISE_REFUSED };

void pio_forget_spool(void) {
    pio_spool.state = SPOOL_NONE;
    pio_spool.full = false;
    pio_spool.header = NULL;
    uint64_t last = pio_spool.used == 0 ? 0 : pio_spool.used - 1;
    memset(pio_spool.segments, 0, (segment_of(last) + 1) * sizeof pio_spool.segments[0]);
    memset(pio_spool.promised, 0, last / PROMISE_BYTES + 1);
    pio_spool.used = 0;
    pio_spool.early_drops = 0;
    pio_spool.threads = 0;
    pio_spool.operations = 0;
    pio_spool.thinning = 0;
    pio_spool.budget = NULL;
}

/* Beyond the program's own limit the kernel would not only refuse: it would kill it (SIGXFSZ). */
bool pio_may_grow_to(uint64_t end) {
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || end <= limit.rlim_cur;
}

/* Makes the device promise the room. */
static bool reserve_room(int fd, uint64_t start_of, size_t bytes) {
    if (!pio_may_grow_to(start_of + bytes)) {
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
    if (pio_spool.budget != NULL)
        __atomic_fetch_sub(&pio_spool.budget->used_bytes, bytes, __ATOMIC_RELAXED);
}

/* Takes room from what all processes may use together. The more of it is gone, the fewer calls are kept: all of them in
 * the first half, one in 4 in the next quarter, one in 16 in the eighth after it, and so on. */
static bool take_from_budget(size_t bytes) {
    struct budget *budget = pio_spool.budget;
    if (budget == NULL)
        return true;
    uint64_t limit = LOAD(&budget->limit_bytes);
    if (__atomic_add_fetch(&budget->used_bytes, bytes, __ATOMIC_RELAXED) <= limit)
        return true;
    give_back_to_budget(bytes);
    return false;
}

void pio_look_at_budget(void) {
    struct budget *budget = pio_spool.budget;
    if (budget == NULL)
        return;
    uint64_t limit = LOAD(&budget->limit_bytes), used = LOAD(&budget->used_bytes);
    unsigned halvings = 0;
    for (uint64_t left = limit / 2; halvings < 20 && used > limit - left; left /= 2)
        halvings++;
    uint64_t thinning = (1ull << 2 * halvings) - 1;
    if (thinning <= LOAD(&pio_spool.thinning))
        return;
    /* From now on positions are asked for: they move by calls that nobody writes down. */
    pio_descriptors_are_shared();
    STORE(&pio_spool.thinning, thinning);
    STORE(&pio_spool.header->keeps_one_in, thinning + 1);
}

static struct budget *map_budget(void) {
    char *path = pio_take_path_buffer();
    if (path == NULL)
        return NULL;
    strcpy(stpcpy(path, pio_spool_folder), "/budget");
    int fd = (int)KERNEL(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
    pio_give_path_buffer(path);
    if (fd < 0)
        return NULL;
    void *page = (void *)KERNEL(SYS_mmap, NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    KERNEL(SYS_close, fd);
    return page == MAP_FAILED ? NULL : page;
}

/* Makes the device promise a piece of the file; errno says why it did not. */
static bool promise_piece(uint64_t start_of, size_t bytes) {
    unsigned char *promised = &pio_spool.promised[start_of / PROMISE_BYTES];
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
            int fd = (int)KERNEL(SYS_openat, AT_FDCWD, pio_spool.path, O_RDWR | O_CLOEXEC | O_CREAT, 0600);
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
bool pio_promise(uint64_t start_of, size_t bytes) {
    size_t segment = segment_of(start_of);
    uint64_t end = start_of + bytes;
    if (segment >= SEGMENTS) {
        errno = EFBIG;
        return false;
    }
    for (uint64_t used = LOAD(&pio_spool.used); used < end;)
        if (__atomic_compare_exchange_n(&pio_spool.used, &used, end, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            break;
    if (pio_spool.budget == NULL)
        return promise_piece(segment_start(segment), segment_bytes(segment));
    for (uint64_t at = start_of / PROMISE_BYTES * PROMISE_BYTES; at < end; at += PROMISE_BYTES)
        if (!promise_piece(at, PROMISE_BYTES))
            return false;
    return true;
}

static char *map_segment(size_t segment) {
    int fd = (int)KERNEL(SYS_openat, AT_FDCWD, pio_spool.path, O_RDWR | O_CLOEXEC);
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

static bool create_spool(void) {
    struct utsname names;
    if (uname(&names) != 0)
        return false;
    pio_host_name(&names);
    char source[16] = "";
    pio_read_small_file("/sys/devices/system/clocksource/clocksource0/current_clocksource", source, sizeof source - 1);
    pio_counter_begin(source);
    pio_try_marks();
    pio_spool.budget = map_budget();
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    snprintf(pio_spool.path, sizeof pio_spool.path, "%s/%s-%u-%llx.spool", pio_spool_folder, names.nodename, LOAD(pio_alive),
             (unsigned long long)now);
    char *mapped = pio_promise(0, FIRST_SEGMENT_BYTES) ? map_segment(0) : NULL;
    if (mapped == NULL)
        return false; /* the file, if it came to be, is empty: that tells the collector */
    struct pio_header *header = (struct pio_header *)mapped;
    header->version = PIO_SPOOL_VERSION;
    header->pid = LOAD(pio_alive);
    header->parent_pid = (uint32_t)getppid();
    header->rank = -1;
    header->next = PIO_HEADER_BYTES;
    header->realtime_ns = clock_ns(CLOCK_REALTIME);
    header->monotonic_ns = clock_ns(CLOCK_MONOTONIC);
    header->start_ns = pio_first_seen_ns;
    pio_read_small_file("/proc/sys/kernel/random/boot_id", header->boot_id, sizeof header->boot_id - 1);
    memcpy(header->host, names.nodename, strlen(names.nodename));
    header->command_length = (uint32_t)pio_read_small_file("/proc/self/cmdline", header->command, PIO_COMMAND_BYTES);
    pio_spool.segments[0] = mapped;
    pio_spool.header = header;
    __atomic_thread_fence(__ATOMIC_RELEASE);
    memcpy(header->magic, PIO_SPOOL_MAGIC, sizeof header->magic);
    return true;
}

bool pio_spool_is_open(void) {
    for (;;) {
        uint32_t state = ACQUIRE(&pio_spool.state);
        if (LIKELY(state == SPOOL_OPEN))
            return true;
        if (state == SPOOL_FAILED)
            return false;
        if (state == SPOOL_NONE && __atomic_compare_exchange_n(&pio_spool.state, &state, SPOOL_BUSY, false,
                                                               __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            if (create_spool()) {
                RELEASE(&pio_spool.state, SPOOL_OPEN);
                __atomic_fetch_add(&pio_spool.header->dropped, LOAD(&pio_spool.early_drops), __ATOMIC_RELAXED);
            } else if (is_passing(errno)) {
                pio_self.retry_ns = now_ns() + RETRY_NS;
                RELEASE(&pio_spool.state, SPOOL_NONE);
                return false;
            } else {
                RELEASE(&pio_spool.state, SPOOL_FAILED);
            }
        } else if (state == SPOOL_BUSY) {
            sched_yield();
        }
    }
}

char *pio_segment_address(size_t segment) {
    if (segment >= SEGMENTS)
        return NULL;
    for (;;) {
        char *address = ACQUIRE(&pio_spool.segments[segment]);
        if (address == SEGMENT_BUSY) {
            sched_yield();
        } else if (address != NULL) {
            return address;
        } else if (__atomic_compare_exchange_n(&pio_spool.segments[segment], &address, SEGMENT_BUSY, false,
                                               __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            address = map_segment(segment);
            RELEASE(&pio_spool.segments[segment], address);
            return address;
        }
    }
}

/* How the process ended. */
void pio_mark_ended(uint32_t how) {
    if (LOAD(pio_alive) != 0 && is_owner() && ACQUIRE(&pio_spool.state) == SPOOL_OPEN) {
        if (how & PIO_ENDED_NORMALLY)
            pio_spool.header->end_ns = clock_ns(CLOCK_MONOTONIC);
        __atomic_fetch_or(&pio_spool.header->ended, how, __ATOMIC_RELEASE);
    }
}
