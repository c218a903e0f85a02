/* Calls that close descriptors. */
#include "pio_bodies.h"
#include "pio_kernel.h"

#include <unistd.h>

DECLARE_NEXT(close)
EXPORT int close(int fd) {
    CLOSE_BODY(fd, NEXT(close)(fd))
}

/* The collector closes by itself what is opened again; what stays open unclosed is no error. */
uint32_t pio_forget_range(unsigned first, unsigned last) {
    if (!recording() || !is_owner())
        return 0;
    for (unsigned fd = first; fd <= last && fd < DESCRIPTORS; fd++)
        STORE(&pio_descriptors[fd], UNKNOWN);
    return pio_leave_rings(first, last);
}

/* By the kernel's own call: a C library before 2.34 has no function. */
EXPORT int close_range(unsigned first, unsigned last, int flags) {
    CLOSE_RANGE_BODY(first, last, flags, (int)KERNEL(SYS_close_range, first, last, flags))
}

DECLARE_NEXT(closefrom)
EXPORT void closefrom(int first) {
    uint32_t rings = pio_forget_range(first < 0 ? 0 : (unsigned)first, UINT32_MAX);
    NEXT(closefrom)(first);
    pio_rings_are_closed(rings);
}
