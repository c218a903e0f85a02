/* Calls that close descriptors. */
#include "pio_hook.h"
#include "pio_uring.h"

#include <unistd.h>

DECLARE_NEXT(close)
EXPORT int close(int fd) {
    if (pio_leave_ring(fd)) {
        int result = NEXT(close)(fd);
        pio_end_change();
        return result;
    }
    if (!recording() || !is_owner() || !pio_forget_descriptor(fd))
        return NEXT(close)(fd);
    pio_look_at_close();
    struct pioscope_span span;
    pio_span_begin(&span);
    int result = NEXT(close)(fd);
    pio_finish_simple(&span, PIO_CALL_CLOSE, fd, PIO_NO_OFFSET, 0, result);
    return result;
}

DECLARE_NEXT(close_range)
EXPORT int close_range(unsigned first, unsigned last, int flags) {
    /* The collector closes by itself what is opened again; what stays open unclosed is no error. */
    if (recording() && is_owner() && (flags & CLOSE_RANGE_CLOEXEC) == 0)
        for (unsigned fd = first; fd <= last && fd < DESCRIPTORS; fd++)
            STORE(&pio_descriptors[fd], UNKNOWN);
    return NEXT(close_range)(first, last, flags);
}

DECLARE_NEXT(closefrom)
EXPORT void closefrom(int first) {
    if (recording() && is_owner())
        for (int fd = first < 0 ? 0 : first; fd < DESCRIPTORS; fd++)
            STORE(&pio_descriptors[fd], UNKNOWN);
    NEXT(closefrom)(first);
}
