/* What every file of the recorder is written with: atomic loads and stores, and how a hook finds the function that it
 * stands for. */
#ifndef PIO_COMMON_H
#define PIO_COMMON_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define LOAD(place) __atomic_load_n(place, __ATOMIC_RELAXED)
#define ACQUIRE(place) __atomic_load_n(place, __ATOMIC_ACQUIRE)
#define STORE(place, value) __atomic_store_n(place, value, __ATOMIC_RELAXED)
#define RELEASE(place, value) __atomic_store_n(place, value, __ATOMIC_RELEASE)

#define EXPORT __attribute__((visibility("default")))

/* The next definition of a function: the C library's, or that of a library preloaded after this one. Found when first
 * needed, since other libraries call before our constructor runs. */
#define NEXT(name) ((__typeof__(&name))next_function((void **)&next_of_##name, #name))
#define DECLARE_NEXT(name) static void *next_of_##name;

static inline void *next_function(void **place, const char *name) {
    void *found = LOAD(place);
    if (UNLIKELY(found == NULL)) {
        found = dlsym(RTLD_NEXT, name);
        STORE(place, found);
    }
    return found;
}

#endif
