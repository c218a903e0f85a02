/* When a call began and ended, how long its thread was thinking before it, and of some calls how long it used a processor
 * within. */
#ifndef PIO_SPAN_H
#define PIO_SPAN_H

#include "pio_recorder.h"
#include "pio_thread.h"

#pragma GCC visibility push(hidden)

/* Where no mark can be left (pio_clock.h): the CPU clock costs as much as a small write. So it is read at the end of a call
 * only if it was last read longer than this ago; what lies between counts as used. This bounds the error of a think
 * time. */
#define SAMPLE_NS 20000u

/* Before a call: the thread stops thinking. */
void pio_span_begin(struct pioscope_span *span);

/* The same before a call that no budget leaves out, and whose CPU time is asked for when it ends: span->cpu_ns is the
 * thread's CPU time when it began, by what is known of it or by its clock. */
void pio_used_span_begin(struct pioscope_span *span);

/* Reads the thread's CPU clock; the time by the other clock. */
uint64_t pio_sample_cpu_time(void);

/* Whether the thread was on its processor from its last sample until now. */
static inline bool cpu_time_is_known(uint64_t now_ns) {
    return pio_self.mark != NULL ? mark_is_there(pio_self.mark) : now_ns - pio_self.sample_ns < SAMPLE_NS;
}

/* Its CPU time then. */
static inline uint64_t cpu_time_at(uint64_t ns) {
    return pio_self.cpu_ns + (ns - pio_self.sample_ns);
}

/* A reading of the thread's CPU clock becomes its last sample. */
static inline void take_sample(const struct pioscope_span *read) {
    pio_self.cpu_ns = read->cpu_ns;
    pio_self.sample_ns = read->start_ns;
}

/* CPU time that the thread used since this span began (pio_used_span_begin). */
static inline uint64_t span_used(const struct pioscope_span *span, uint64_t end_ns) {
    if (UNLIKELY(!cpu_time_is_known(end_ns)))
        (void)pio_sample_cpu_time();
    uint64_t used_ns = cpu_time_at(end_ns) - span->cpu_ns, elapsed_ns = end_ns - span->start_ns;
    /* Two clocks, not read at one moment: less than none stands for none. */
    return LIKELY(used_ns <= elapsed_ns) ? used_ns : (int64_t)used_ns < 0 ? 0 : elapsed_ns;
}

/* After an outermost call: think time begins. */
static inline void thinking_begins(uint64_t end_ns) {
    if (UNLIKELY(pio_self.operation != 0))
        return;
    pio_self.end_ns = LIKELY(cpu_time_is_known(end_ns)) ? end_ns : pio_sample_cpu_time();
}

/* The same after its record, if a budget might have left it out: what its begin read of the CPU clock counts from now on. */
static inline void span_over(const struct pioscope_span *span, uint64_t end_ns) {
    if (UNLIKELY(span->cpu_ns != 0 && pio_self.operation == 0))
        take_sample(span);
    thinking_begins(end_ns);
}

/* Instead, after a call that is not recorded: it counts as thinking, by its CPU time. */
static inline void span_is_dropped(void) {
    if (pio_self.mark != NULL && mark_is_there(pio_self.mark))
        *(volatile uint64_t *)pio_self.mark = 0;
}

/* When a call ended by the clock, which may step back a little where a thread reads it anew. */
static inline uint64_t end_of(const struct pioscope_span *span) {
    uint64_t end_ns = now_ns();
    return UNLIKELY(end_ns < span->start_ns) ? span->start_ns : end_ns;
}

#pragma GCC visibility pop

#endif
