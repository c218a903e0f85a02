/* What a program may say of itself while it is recorded. Programs find these by dlsym(RTLD_DEFAULT, name), or declare them
 * weak: they are absent where nothing is recorded. All may be called at any time, from any thread; they leave errno alone.
 */
#ifndef PIO_MARK_H
#define PIO_MARK_H

#include <stdint.h>

/* A phase that goes on. */
struct pio_phase {
    void *record; /* NULL if it is not recorded */
    uint32_t process; /* that began it */
};

/* Now: the number is that of the epoch, of the step, or 0. Of a name, at most 255 bytes count. */
void pio_mark(const char *name, uint64_t number);

/* From begin to end. A phase may end in another thread. One that a forked child ends, and did not begin, goes on. */
struct pio_phase pio_phase_begin(const char *name, uint64_t number);
void pio_phase_end(struct pio_phase phase);

/* From begin to end, in one thread that holds Python's lock at begin: what it opens there, and Python does not know of, was opened
 * by the line of Python code that is running at begin. Within each other, the outermost counts. */
uint32_t pio_call_site_begin(void);
void pio_call_site_end(uint32_t before);

#endif
