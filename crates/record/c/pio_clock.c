/* pio_clock.h: the counter's beginning, and where a thread reads the clock anew. */
#include "pio_clock.h"

#define MOST_TRUSTED_NS 100000000u /* ticks of a counter below 40 GHz are then fewer than 2^32 */
#define LEAST_MEASURED_NS 1000000u

#if defined(__x86_64__)

/* When the process began to measure; 0 ticks as long as the counter is not known to be the kernel's clock. */
static struct {
    uint64_t ticks;
    uint64_t ns;
} counter_start;

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
void pio_counter_begin(const char *source) {
    if (source[0] != 't' || source[1] != 's' || source[2] != 'c')
        return;
    uint64_t ticks;
    uint64_t ns = read_both(&ticks);
    counter_start.ns = ns;
    __atomic_store_n(&counter_start.ticks, ticks, __ATOMIC_RELEASE);
}

__attribute__((noinline)) uint64_t pio_clock_again(struct clock_anchor *anchor) {
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

#else

void pio_counter_begin(const char *source) {
    (void)source;
}

#endif

#if defined(PIO_MARKS)

/* The critical section that no thread is ever in, and what the kernel wants to find before the address where it would go
 * on. */
__asm__(".pushsection .text\n"
        "pio_never: nop\n"
        "pio_never_end: .long 0x53053053\n" /* RSEQ_SIG */
        "pio_never_abort: ud2\n"
        ".popsection\n"
        ".pushsection .data.rel.ro, \"aw\"\n"
        ".balign 32\n"
        ".globl pio_rseq_mark\n"
        ".hidden pio_rseq_mark\n"
        "pio_rseq_mark: .long 0, 0\n"
        ".quad pio_never, 1, pio_never_abort\n"
        ".popsection\n");

#endif

/* Whether a thread that sleeps loses its mark. One that wakes up on another processor does in any case: that says
 * nothing. */
bool pio_sleep_wipes_marks(uint64_t *place, void (*sleep_ns)(long ns)) {
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
