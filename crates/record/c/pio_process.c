/* The beginning of a process, of a forked child, and the end. */
#include "pio_aio.h"
#include "pio_call_sites.h"
#include "pio_clock.h"
#include "pio_descriptors.h"
#include "pio_environment.h"
#include "pio_file_system.h"
#include "pio_kernel.h"
#include "pio_libaio.h"
#include "pio_mapped.h"
#include "pio_marks.h"
#include "pio_names.h"
#include "pio_process.h"
#include "pio_room.h"
#include "pio_uring.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

bool pio_switched_off;
uint64_t pio_first_seen_ns;

static uint32_t not_yet; /* 0 for ever */
uint32_t *pio_alive = &not_yet;

static bool started_once; /* by this process or the one it was forked from */
static uint32_t starting; /* pid of the process that is inside pio_start() */

static void after_fork_in_child(void) {
    STORE(pio_alive, 0);
}

/* From the constructor, from a hook that runs before it, or in a forked child. */
__attribute__((noinline)) bool pio_start(void) {
    uint32_t me = (uint32_t)getpid();
    uint32_t seen = LOAD(&starting);
    if (seen == me || !__atomic_compare_exchange_n(&starting, &seen, me, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return false;
    if (LOAD(pio_alive) == 0 && !pio_switched_off) {
        int saved = errno;
        if (!started_once) {
            if (!pio_keep_told()) {
                pio_switched_off = true;
            } else {
                uint32_t *page = (uint32_t *)KERNEL(SYS_mmap, NULL, 4096, PROT_READ | PROT_WRITE,
                                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                if (page == (uint32_t *)MAP_FAILED)
                    pio_switched_off = true;
                else {
#ifdef MADV_WIPEONFORK
                    madvise(page, 4096, MADV_WIPEONFORK); /* kernels before 4.14: pthread_atfork does for most */
#endif
                    RELEASE(&pio_alive, page);
                    pthread_atfork(NULL, pio_descriptors_are_shared, after_fork_in_child);
                }
            }
        } else {
            /* A forked child: the spool, the descriptors' states and this thread's chunk are the parent's. */
            pio_forget_spool();
            pio_forget_descriptors();
            pio_forget_controls();
            pio_forget_faults();
            pio_forget_names();
            pio_forget_devices();
            pio_forget_marks();
            pio_forget_call_sites();
            pio_forget_iocbs();
            pio_forget_rings();
        }
        started_once = true;
        if (!pio_switched_off) {
            pio_first_seen_ns = clock_ns(CLOCK_MONOTONIC);
            RELEASE(pio_alive, me);
        }
        errno = saved;
    }
    RELEASE(&starting, 0);
    return LOAD(pio_alive) != 0;
}

__attribute__((constructor)) static void process_starts(void) {
    if (recording())
        pio_watch_python();
    pio_forget_sanitizer();
}

/* How long a process's first thread has waited for a processor, and how often it has given its own away to wait for
 * something, by the kernel's counts; -1: it does not say. */
struct waits {
    int64_t waited_ns, sleeps;
};
static struct waits waits_before_start = {-1, -1};

/* A process may end in a handler with little stack: the text is not there. */
static struct waits waits_so_far(void) {
    struct waits so_far = {pio_waited_ns("/proc/self/schedstat"), -1};
    char *text = pio_take_path_buffer();
    if (text == NULL)
        return so_far;
    text[pio_read_small_file("/proc/self/status", text, PATH_MAX - 1)] = 0;
    const char *label = "\nvoluntary_ctxt_switches:", *sleeps = strstr(text, label);
    if (sleeps != NULL)
        so_far.sleeps = strtoll(sleeps + strlen(label), NULL, 10);
    pio_give_path_buffer(text);
    return so_far;
}

bool pio_is_rank;

void pio_rank_starts(void) {
    STORE(&pio_is_rank, true);
    waits_before_start = waits_so_far();
}

static void count_processor_waits(void) {
    if (LOAD(pio_alive) == 0 || !is_owner() || ACQUIRE(&pio_spool.state) != SPOOL_OPEN || pio_spool.header->rank < 0)
        return;
    struct waits so_far = waits_so_far();
    if (waits_before_start.sleeps >= 0 && so_far.sleeps >= 0)
        STORE(&pio_spool.header->sleeps, (uint64_t)(so_far.sleeps - waits_before_start.sleeps + 1));
    if (waits_before_start.waited_ns >= 0 && so_far.waited_ns >= 0)
        STORE(&pio_spool.header->processor_waits_ns, (uint64_t)(so_far.waited_ns - waits_before_start.waited_ns + 1));
}

void pio_finish_process(void) {
    pio_finish_rings();
    pio_count_faults();
    count_processor_waits();
    pio_mark_ended(PIO_ENDED_NORMALLY);
}

void pio_stop_recording(void) {
    pio_finish_process();
    pio_switched_off = true;
    RELEASE(pio_alive, 0);
}

void pio_go_on_recording(void) {
    if (ACQUIRE(&pio_spool.state) == SPOOL_OPEN)
        __atomic_fetch_and(&pio_spool.header->ended, ~PIO_ENDED_NORMALLY, __ATOMIC_RELEASE);
    pio_switched_off = false;
    RELEASE(pio_alive, (uint32_t)getpid());
}

__attribute__((destructor)) static void process_ends(void) {
    pio_finish_process();
}

#define HOOK_EXIT(name)                                                                                                \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT __attribute__((noreturn)) void name(int status) {                                                           \
        pio_finish_process();                                                                                              \
        NEXT(name)(status);                                                                                            \
        __builtin_unreachable();                                                                                       \
    }

HOOK_EXIT(_exit)
HOOK_EXIT(_Exit)
