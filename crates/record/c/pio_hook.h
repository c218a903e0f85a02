/* What a hook does around the call of the next definition: tracked() before, and one of these afterwards. */
#ifndef PIO_HOOK_H
#define PIO_HOOK_H

#include "pio_descriptors.h"
#include "pio_writer.h"

#pragma GCC visibility push(hidden)

/* Looks at a descriptor that was opened before our time, or behind our back: whether it is tracked from now on. */
bool pio_adopt(int fd);

/* Whether calls on this descriptor are recorded. */
static inline bool tracked(int fd) {
    if (UNLIKELY(!recording()) || UNLIKELY(!in_table(fd)))
        return false;
    unsigned char state = LOAD(&pio_descriptors[fd]);
    return LIKELY(state >= TRACKED) || (state == UNKNOWN && is_owner() && pio_adopt(fd));
}

/* After a call that returned: writes its record and leaves errno alone. A negative result stands for errno. */
void pio_finish_simple(const struct pioscope_span *span, uint32_t call, int fd, uint64_t offset, uint64_t size,
                       int64_t result);

/* The same of a tracked descriptor, which the call may have moved on from where it stood (PIO_NO_OFFSET). */
void pio_finish_data(const struct pioscope_span *span, uint32_t call, int fd, uint64_t offset, uint64_t size,
                     int64_t result);

/* The same of a write at the end of the file, of which `pending` bytes are still in a stream's buffer. */
void pio_finish_appended(const struct pioscope_span *span, uint32_t call, int fd, size_t pending, uint64_t size,
                         int64_t result);

/* After a call on a name that opened nothing. A result of -1 stands for errno. */
void pio_finish_name(const struct pioscope_span *span, uint32_t call, uint32_t flags, int folder, const char *name,
                     uint64_t size, int64_t result);

#pragma GCC visibility pop

#endif
