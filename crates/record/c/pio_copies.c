#include "pio_copies.h"
#include "pio_process.h"

#include <errno.h>
#include <link.h>
#include <stdlib.h>

static void *object_of(const void *address) {
    Dl_info where;
    return dladdr(address, &where) != 0 ? where.dli_fbase : NULL;
}

/* The libraries of a loaded object, if the probe is among them. Held for good: the functions that we call must stay. */
static void *handle_of(const char *path, const char *probe) {
    void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    void *found = handle == NULL ? NULL : dlsym(handle, probe);
    if (found != NULL && object_of(found) != object_of(&pio_switched_off))
        return handle;
    if (handle != NULL)
        dlclose(handle);
    return NULL;
}

struct search {
    const char *probe;
    void *handle;
};

static int search_object(struct dl_phdr_info *object, size_t size, void *argument) {
    (void)size;
    struct search *search = argument;
    if (object->dlpi_name != NULL && object->dlpi_name[0] != 0)
        search->handle = handle_of(object->dlpi_name, search->probe);
    return search->handle != NULL;
}

static struct copy *private_copy(struct library *library, void *caller) {
    Dl_info where;
    if (dladdr(caller, &where) == 0 || where.dli_fname == NULL)
        return NULL;
    struct copy *first = ACQUIRE(&library->private);
    for (struct copy *copy = first; copy != NULL; copy = copy->next)
        if (copy->base == where.dli_fbase)
            return copy;
    if (dlsym(RTLD_NEXT, library->probe) != NULL)
        return NULL;
    struct search search = {library->probe, handle_of(where.dli_fname, library->probe)};
    if (search.handle == NULL) /* it was loaded with another object, which brought the library */
        dl_iterate_phdr(search_object, &search);
    struct copy *copy = search.handle == NULL ? NULL : malloc(sizeof *copy);
    if (copy == NULL)
        return NULL;
    *copy = (struct copy){.next = first, .base = where.dli_fbase, .handle = search.handle};
    while (!__atomic_compare_exchange_n(&library->private, &copy->next, copy, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        ;
    return copy;
}

struct copy *pio_copy_of(struct library *library, void *caller) {
    if (LIKELY(ACQUIRE(&library->shared_found)) && LOAD(&library->private) == NULL)
        return &library->shared;
    int saved = errno;
    struct copy *copy = private_copy(library, caller);
    if (copy == NULL && dlsym(RTLD_NEXT, library->probe) != NULL) {
        copy = &library->shared;
        RELEASE(&library->shared_found, true);
    }
    errno = saved;
    return copy;
}

void *pio_function_of(const struct copy *copy, void **place, const char *name) {
    if (copy->handle != NULL)
        return dlsym(copy->handle, name);
    return next_function(place, name);
}
