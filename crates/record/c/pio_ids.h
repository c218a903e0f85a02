/* Sets of ids that only grow, which any number of threads may enter at once: what a process has written once is not written
 * again. */
#ifndef PIO_IDS_H
#define PIO_IDS_H

#include "pio_common.h"

/* Looks for an id, which is not 0, in `count` places, of which those that hold nothing are 0: from the place `first` on, and around.
 * If it is not there and `may_enter`, it is entered, and `is_new` says so. Its place; NULL if it has none. */
static inline uint64_t *pio_place_of(uint64_t id, uint64_t *places, size_t count, size_t first, bool may_enter, bool *is_new) {
    *is_new = false;
    for (size_t probe = 0; probe < count; probe++) {
        uint64_t *place = &places[(first + probe) % count];
        uint64_t seen = LOAD(place);
        if (seen == 0) {
            if (!may_enter)
                return NULL;
            *is_new = __atomic_compare_exchange_n(place, &seen, id, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
            if (*is_new)
                return place;
        }
        if (seen == id)
            return place;
    }
    return NULL;
}

#endif
