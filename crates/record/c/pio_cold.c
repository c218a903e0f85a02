#include "pio_cold.h"
#include "pio_kernel.h"
#include "pio_status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

/* The same on all architectures; older headers do not have it. */
#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

/* Parts of a large file that are looked at: the kernel goes through all pages that it is asked for. */
#define PARTS 8u
#define PART_BYTES (64u << 10)

/* As the kernel's. */
struct cache_range {
    uint64_t offset, bytes;
};
struct cache_pages {
    uint64_t there, dirty, in_write_back, evicted, recently_evicted;
};

static bool kernel_cannot_say; /* before Linux 6.5 */

bool pio_is_cold(int fd, int flags) {
    if (LOAD(&kernel_cannot_say) || (flags & O_ACCMODE) == O_WRONLY || (flags & (O_TRUNC | O_DIRECT)))
        return false;
    uint64_t size = pio_status_of(fd).size, pages = 0, there = 0;
    if (size == 0)
        return false;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    bool is_large = size > PARTS * PART_BYTES;
    for (uint64_t part = 0; part < (is_large ? PARTS : 1); part++) {
        struct cache_range range = {is_large ? part * ((size - PART_BYTES) / (PARTS - 1)) : 0,
                                    is_large ? PART_BYTES : size};
        struct cache_pages found;
        if (KERNEL(SYS_cachestat, fd, &range, &found, 0) != 0) {
            if (errno == ENOSYS)
                STORE(&kernel_cannot_say, true);
            return false;
        }
        pages += (range.bytes + page - 1) / page;
        there += found.there;
    }
    return 2 * there < pages;
}
