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
 * process sleeps once, and leaves no marks where that is not noticed. */
#ifndef PIO_CLOCK_H
#define PIO_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#if defined(__x86_64__) && defined(__GLIBC__)
#define PIO_MARKS

/* What the C library says of its rseq area: of glibc 2.35. Declared here, for the recorder may be compiled with the headers
 * of an older one; weak, for it may be loaded into processes of an older one. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned __rseq_size __attribute__((weak));

#endif

#pragma GCC visibility push(hidden)

static inline uint64_t clock_ns(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* The counter ------------------------------------------------------------------------------------------------------ */

/* The thread's part. */
struct clock_anchor {
    uint64_t ticks;
    uint64_t ns;
    uint64_t trusted_ticks; /* from `ticks` on, so many */
    uint64_t ns_per_tick;   /* times 2^32 */
};

/* Called once, before any thread asks. `source` is the kernel's name of its clock source. */
void pio_counter_begin(const char *source);

#if defined(__x86_64__)

static inline uint64_t counter_ticks(void) {
    return __builtin_ia32_rdtsc();
}

/* The time by a reading of the clock, after which the counter is trusted anew. */
uint64_t pio_clock_again(struct clock_anchor *anchor);

static inline uint64_t clock_now(struct clock_anchor *anchor) {
    uint64_t since = counter_ticks() - anchor->ticks;
    if (__builtin_expect(since < anchor->trusted_ticks, 1))
        return anchor->ns + (since * anchor->ns_per_tick >> 32);
    return pio_clock_again(anchor);
}

#else

static inline uint64_t clock_now(struct clock_anchor *anchor) {
    (void)anchor;
    return clock_ns(CLOCK_MONOTONIC);
}

#endif

/* Marks ------------------------------------------------------------------------------------------------------------ */

#if defined(PIO_MARKS)

/* The beginning of the area (struct rseq in linux/rseq.h, where it is aligned as a whole). */
struct rseq_area {
    uint32_t cpu_id_start;
    uint32_t cpu_id;
    uint64_t rseq_cs;
};

/* The critical section that no thread is ever in. */
extern const char pio_rseq_mark[];

static inline struct rseq_area *rseq_area(void) {
    return (struct rseq_area *)((char *)__builtin_thread_pointer() + __rseq_offset);
}

static inline uint64_t *mark_place(void) {
    if (&__rseq_size == NULL || __rseq_size == 0)
        return NULL;
    return &rseq_area()->rseq_cs;
}

/* Whether the thread has been on its processor since it last left a mark there. */
static inline bool mark_is_there(const uint64_t *place) {
    return __atomic_load_n(place, __ATOMIC_RELAXED) == (uint64_t)(uintptr_t)pio_rseq_mark;
}

static inline void leave_mark(uint64_t *place) {
    __atomic_store_n(place, (uint64_t)(uintptr_t)pio_rseq_mark, __ATOMIC_RELAXED);
}

/* Where the thread was when the kernel last noted it, which it does where it wipes marks. */
static inline unsigned mark_processor(void) {
    return __atomic_load_n(&rseq_area()->cpu_id, __ATOMIC_RELAXED);
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

/* Whether a thread that sleeps loses its mark. */
bool pio_sleep_wipes_marks(uint64_t *place, void (*sleep_ns)(long ns));

#pragma GCC visibility pop

#endif
