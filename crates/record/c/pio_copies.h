/* Where the functions of a library are that a program may have loaded more than once.
 *
 * A program that is linked with the library, or a module that is loaded for all, finds ours first, and ours the next one.
 * A module that is loaded for itself alone (Python's) brings a library that only it can see; another module may bring
 * another copy. So ours then looks where the caller itself would have looked. */
#ifndef PIO_COPIES_H
#define PIO_COPIES_H

#include "pio_common.h"

#pragma GCC visibility push(hidden)

/* One copy of a library. */
struct copy {
    struct copy *next;
    void *base;   /* of the object that calls it */
    void *handle; /* by which that object's own libraries are searched; NULL: those that all see */
    uint32_t known; /* COPY_... */
};

enum { COPY_UNKNOWN, COPY_IS_USABLE, COPY_IS_TOO_OLD };

struct library {
    const char *probe; /* a function that every version has */
    struct copy shared;
    bool shared_found;
    struct copy *private; /* only ever added to; one object's twice does no harm */
};

/* The copy that `caller` means; NULL if it means none. */
struct copy *pio_copy_of(struct library *library, void *caller);

/* A function of a copy, which keeps `place` if it is the one that all see. */
void *pio_function_of(const struct copy *copy, void **place, const char *name);

#define THEIRS(name)                                                                                                   \
    ({                                                                                                                 \
        static void *place;                                                                                            \
        (__typeof__(&name)) pio_function_of(copy, &place, #name);                                                      \
    })

#pragma GCC visibility pop

#endif
