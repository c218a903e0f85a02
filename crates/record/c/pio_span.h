/* When a call began and ended, and how long its thread was thinking before it. */
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

/* Reads the thread's CPU clock; the time by the other clock. */
uint64_t pio_sample_cpu_time(void);

/* After the record of an outermost call: think time begins. */
static inline void span_over(const struct pioscope_span *span, uint64_t end_ns) {
    if (UNLIKELY(pio_self.operation != 0))
        return;
    if (UNLIKELY(span->cpu_ns != 0)) {
        pio_self.cpu_ns = span->cpu_ns;
        pio_self.sample_ns = span->start_ns;
    }
    bool is_known = pio_self.mark != NULL ? mark_is_there(pio_self.mark) : end_ns - pio_self.sample_ns < SAMPLE_NS;
    pio_self.end_ns = LIKELY(is_known) ? end_ns : pio_sample_cpu_time();
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
