/* Calls that close descriptors. */
#include "pio_hook.h"
#include "pio_kernel.h"
#include "pio_uring.h"

#include <unistd.h>

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC 4u /* since glibc 2.34 */
#endif

DECLARE_NEXT(close)
EXPORT int close(int fd) {
    uint32_t rings = pio_leave_rings((uint32_t)fd, (uint32_t)fd);
    if (rings > 0) {
        int result = NEXT(close)(fd);
        pio_rings_are_closed(rings);
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

/* Before all descriptors from `first` to `last` are closed. The collector closes by itself what is opened again; what stays open
 * unclosed is no error. */
static uint32_t forget_descriptors(unsigned first, unsigned last) {
    if (!recording() || !is_owner())
        return 0;
    for (unsigned fd = first; fd <= last && fd < DESCRIPTORS; fd++)
        STORE(&pio_descriptors[fd], UNKNOWN);
    return pio_leave_rings(first, last);
}

/* By the kernel's own call: who makes it by its number (pio_syscall.c) may have a C library before 2.34, without a function. */
EXPORT int close_range(unsigned first, unsigned last, int flags) {
    uint32_t rings = flags & CLOSE_RANGE_CLOEXEC ? 0 : forget_descriptors(first, last);
    int result = (int)KERNEL(SYS_close_range, first, last, flags);
    pio_rings_are_closed(rings);
    return result;
}

DECLARE_NEXT(closefrom)
EXPORT void closefrom(int first) {
    uint32_t rings = forget_descriptors(first < 0 ? 0 : (unsigned)first, UINT32_MAX);
    NEXT(closefrom)(first);
    pio_rings_are_closed(rings);
}
