#include "pio_span.h"
#include "pio_kernel.h"

#include <sys/resource.h>

/* Threads whose gap between two calls is shorter than this had no time to sleep: the gap is their CPU time. */
#define SHORT_GAP_NS 1000u

/* What the kernel counts of a thread besides its CPU clock. False if it does not say. */
static bool read_counts(struct cpu_reading *reading) {
    struct rusage usage;
    int64_t waited_ns = pio_waited_ns("/proc/thread-self/schedstat");
    if (waited_ns < 0 || KERNEL(SYS_getrusage, RUSAGE_THREAD, &usage) != 0)
        return false;
    reading->waited_ns = (uint64_t)waited_ns;
    reading->sleeps = (uint64_t)usage.ru_nvcsw;
    return true;
}

/* CPU time of the thread. Linux ends a turn that is over when a thread reads its CPU clock (update_curr), and otherwise at
 * the next tick. So with more ranks than processors, reading it would take a rank's processor away before its first call
 * after computing, and hardly ever within calls. Of a rank that has not slept since the last reading, the CPU time is what
 * passed without what it waited for a processor. */
static uint64_t thread_cpu_ns(void) {
    struct cpu_reading now = {0}, *last = &pio_self.read;
    now.has_counts = LOAD(&pio_is_rank) && read_counts(&now);
    now.at_ns = now_ns();
    uint64_t passed = now.at_ns - last->at_ns, waited = now.waited_ns - last->waited_ns;
    bool stayed = pio_self.mark != NULL && mark_is_there(pio_self.mark);
    if (now.has_counts && last->has_counts && stayed && now.sleeps == last->sleeps && waited <= passed)
        now.cpu_ns = last->cpu_ns + passed - waited;
    else
        now.cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    *last = now;
    return now.cpu_ns;
}

/* The thread was taken off the processor, or may have been: its CPU clock knows what it used. */
static __attribute__((noinline)) void ask_for_think_time(struct pioscope_span *span) {
    uint64_t accounted_ns = pio_self.cpu_ns + (pio_self.end_ns - pio_self.sample_ns);
    if (pio_self.mark != NULL)
        leave_mark(pio_self.mark); /* first: what happens from here on is noticed at the end of the call */
    span->cpu_ns = thread_cpu_ns();
    uint64_t used_ns = span->cpu_ns > accounted_ns ? span->cpu_ns - accounted_ns : 0;
    span->start_ns = now_ns();
    /* What the processor did between the reading of the two clocks (an interrupt, another guest of the machine) counts
     * twice; but no thread uses more than the time that passed. */
    uint64_t gap = span->start_ns - pio_self.end_ns;
    span->think_ns = used_ns < gap ? used_ns : gap;
}

__attribute__((noinline, hot)) void pio_span_begin(struct pioscope_span *span) {
    meet_thread();
    uint64_t start_ns = now_ns();
    span->cpu_ns = 0;
    span->think_ns = 0;
    if (UNLIKELY(start_ns < pio_self.end_ns))
        start_ns = pio_self.end_ns;
    span->start_ns = start_ns;
    if (UNLIKELY(pio_self.operation != 0))
        return;
    uint64_t gap = start_ns - pio_self.end_ns;
    if (LIKELY(pio_self.mark != NULL && mark_is_there(pio_self.mark)) || gap < SHORT_GAP_NS)
        span->think_ns = gap;
    else
        ask_for_think_time(span);
}

__attribute__((noinline, hot)) void pio_used_span_begin(struct pioscope_span *span) {
    pio_span_begin(span);
    if (UNLIKELY(span->cpu_ns != 0))
        take_sample(span);
    else if (UNLIKELY(pio_self.operation != 0 && !cpu_time_is_known(span->start_ns)))
        span->start_ns = pio_sample_cpu_time(); /* a call within another, which has lost its processor before */
    span->cpu_ns = cpu_time_at(span->start_ns);
}

__attribute__((noinline)) uint64_t pio_sample_cpu_time(void) {
    if (pio_self.mark != NULL)
        leave_mark(pio_self.mark);
    pio_self.cpu_ns = thread_cpu_ns();
    return pio_self.sample_ns = now_ns();
}
