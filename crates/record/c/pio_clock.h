/* Time for the recorder, without a system call and, where the processor's counter is the kernel's clock, without a call.
 *
 * clock_now() is CLOCK_MONOTONIC in nanoseconds. Each thread holds an anchor, a moment at which it read both the clock and
 * the counter, and how long a tick is, measured over the life of the process. What is read from the counter is trusted
 * for an eighth of the time that the tick was measured over, at most 100 ms; then the thread reads the clock again. So
 * the error stays about that of one reading of the clock (some 20 ns), and under 50 us even while the system clock is
 * being slewed as fast as it may (500 ppm).
 *
 * Was the thread on a processor all the time? It leaves a mark in its restartable-sequences area (rseq, which the C
 * library registers): the address of a critical section that it is never in. The kernel wipes such an address whenever it
 * takes the thread off the processor. A mark that is still there says that the wall clock counted CPU time. That it is
 * wiped is what kernels do, not what they promise: some may leave it to a thread that sleeps in a system call. So a
 * process sleeps once, and leaves no marks where that is not noticed.
 */
#ifndef PIO_CLOCK_H
#define PIO_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* The counter ------------------------------------------------------------------------------------------------------ */

#define MOST_TRUSTED_NS 100000000u /* ticks of a counter below 40 GHz are then fewer than 2^32 */
#define LEAST_MEASURED_NS 1000000u

/* The thread's part. */
struct clock_anchor {
    uint64_t ticks;
    uint64_t ns;
    uint64_t trusted_ticks; /* from `ticks` on, so many */
    uint64_t ns_per_tick;   /* times 2^32 */
};

#if defined(__x86_64__)

/* When the process began to measure; 0 ticks as long as the counter is not known to be the kernel's clock. */
static struct {
    uint64_t ticks;
    uint64_t ns;
} counter_start;

static inline uint64_t counter_ticks(void) {
    return __builtin_ia32_rdtsc();
}

/* Reads the clock and the counter together: the best of a few tries, as the thread may be interrupted in between. */
static uint64_t read_both(uint64_t *ticks) {
    uint64_t least = UINT64_MAX, best_ns = 0;
    for (int try = 0; try < 4 && least > 400; try++) {
        uint64_t before = counter_ticks();
        uint64_t ns = clock_ns(CLOCK_MONOTONIC);
        uint64_t took = counter_ticks() - before;
        if (took < least) {
            least = took;
            best_ns = ns;
            *ticks = before + took / 2;
        }
    }
    return best_ns;
}

/* Called once, before any thread asks. `source` is the kernel's name of its clock source. */
static void counter_begin(const char *source) {
    if (source[0] != 't' || source[1] != 's' || source[2] != 'c')
        return;
    uint64_t ticks;
    uint64_t ns = read_both(&ticks);
    counter_start.ns = ns;
    __atomic_store_n(&counter_start.ticks, ticks, __ATOMIC_RELEASE);
}

static __attribute__((noinline)) uint64_t clock_again(struct clock_anchor *anchor) {
    anchor->trusted_ticks = 0;
    uint64_t start_ticks = __atomic_load_n(&counter_start.ticks, __ATOMIC_ACQUIRE);
    if (start_ticks == 0)
        return clock_ns(CLOCK_MONOTONIC);
    uint64_t ticks;
    uint64_t ns = read_both(&ticks);
    if (ticks <= start_ticks || ns <= counter_start.ns)
        return ns;
    uint64_t measured_ns = ns - counter_start.ns;
    if (measured_ns >= LEAST_MEASURED_NS) {
        uint64_t measured_ticks = ticks - start_ticks;
        uint64_t trusted_ns = measured_ns / 8 < MOST_TRUSTED_NS ? measured_ns / 8 : MOST_TRUSTED_NS;
        anchor->ns_per_tick = (uint64_t)(((unsigned __int128)measured_ns << 32) / measured_ticks);
        anchor->trusted_ticks = (uint64_t)((unsigned __int128)trusted_ns * measured_ticks / measured_ns);
        anchor->ticks = ticks;
        anchor->ns = ns;
    }
    return ns;
}

static inline uint64_t clock_now(struct clock_anchor *anchor) {
    uint64_t since = counter_ticks() - anchor->ticks;
    if (__builtin_expect(since < anchor->trusted_ticks, 1))
        return anchor->ns + (since * anchor->ns_per_tick >> 32);
    return clock_again(anchor);
}

#else

static void counter_begin(const char *source) {
    (void)source;
}

static inline uint64_t clock_now(struct clock_anchor *anchor) {
    (void)anchor;
    return clock_ns(CLOCK_MONOTONIC);
}

#endif

/* Marks ------------------------------------------------------------------------------------------------------------ */

#if defined(__x86_64__) && defined(__GLIBC__) && __GLIBC_PREREQ(2, 35)
#include <sys/rseq.h>

/* Weak: the recorder may be loaded into processes of an older C library. */
#pragma weak __rseq_offset
#pragma weak __rseq_size

/* The critical section that no thread is ever in, and what the kernel wants to find before the address where it would go
 * on. */
__asm__(".pushsection .text\n"
        "pio_never: nop\n"
        "pio_never_end: .long 0x53053053\n" /* RSEQ_SIG */
        "pio_never_abort: ud2\n"
        ".popsection\n"
        ".pushsection .data.rel.ro, \"aw\"\n"
        ".balign 32\n"
        "pio_mark: .long 0, 0\n"
        ".quad pio_never, 1, pio_never_abort\n"
        ".popsection\n");
extern const char pio_mark[] __attribute__((visibility("hidden")));

static inline uint64_t *mark_place(void) {
    if (&__rseq_size == NULL || __rseq_size == 0)
        return NULL;
    return (uint64_t *)((char *)__builtin_thread_pointer() + __rseq_offset + offsetof(struct rseq, rseq_cs));
}

/* Whether the thread has been on its processor since it last left a mark there. */
static inline bool mark_is_there(const uint64_t *place) {
    return __atomic_load_n(place, __ATOMIC_RELAXED) == (uint64_t)(uintptr_t)pio_mark;
}

static inline void leave_mark(uint64_t *place) {
    __atomic_store_n(place, (uint64_t)(uintptr_t)pio_mark, __ATOMIC_RELAXED);
}

/* Where the thread was when the kernel last noted it, which it does where it wipes marks. */
static inline unsigned mark_processor(void) {
    const struct rseq *area = (const struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
    return __atomic_load_n(&area->cpu_id, __ATOMIC_RELAXED);
}

#else

static inline uint64_t *mark_place(void) {
    return NULL;
}

static inline bool mark_is_there(const uint64_t *place) {
    (void)place;
    return false;
}

static inline unsigned mark_processor(void) {
    return 0;
}

static inline void leave_mark(uint64_t *place) {
    (void)place;
}

#endif

/* Whether a thread that sleeps loses its mark. One that wakes up on another processor does in any case: that says
 * nothing. */
static bool sleep_wipes_marks(uint64_t *place, void (*sleep_ns)(long ns)) {
    for (int try = 0; try < 3; try++) {
        unsigned processor = mark_processor();
        leave_mark(place);
        sleep_ns(20000);
        if (mark_is_there(place))
            return false;
        if (mark_processor() == processor)
            return true;
    }
    return false;
}

#endif
