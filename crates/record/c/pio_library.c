/* Calls of libraries above MPI-IO and POSIX (HDF5, PnetCDF), by name. Part of pio_posix.c.
 *
 * Such a call is an operation: what it causes is marked so. Its headers are not needed: what we know of the libraries is
 * their ABI, which is said where it is used. What a library's functions call of each other inside is not recorded.
 *
 * A program that is linked with the library, or a module that is loaded for all, finds ours first, and ours the next one.
 * A module that is loaded for itself alone (Python's) brings a library that only it can see; another module may bring
 * another copy. So ours then looks where the caller itself would have looked. */

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

static void *object_of(const void *address) {
    Dl_info where;
    return dladdr(address, &where) != 0 ? where.dli_fbase : NULL;
}

/* The libraries of a loaded object, if the probe is among them. Held for good: the functions that we call must stay. */
static void *handle_of(const char *path, const char *probe) {
    void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    void *found = handle == NULL ? NULL : dlsym(handle, probe);
    if (found != NULL && object_of(found) != object_of(&switched_off))
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

/* The copy that `caller` means; NULL if it means none. */
static struct copy *copy_of(struct library *library, void *caller) {
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

/* A function of a copy, which keeps `place` if it is the one that all see. */
static void *function_of(const struct copy *copy, void **place, const char *name) {
    if (copy->handle != NULL)
        return dlsym(copy->handle, name);
    return next_function(place, name);
}

#define THEIRS(name)                                                                                                   \
    ({                                                                                                                 \
        static void *place;                                                                                            \
        (__typeof__(&name)) function_of(copy, &place, #name);                                                          \
    })

/* Open files ------------------------------------------------------------------------------------------------------- */

/* Files that a library has open, by its own id. */
struct library_file {
    struct library_file *next;
    int64_t id;
    uint32_t number;
    bool is_shared; /* by the ranks of a communicator */
};

static uint32_t library_files_so_far;
static pthread_mutex_t library_files_lock = PTHREAD_MUTEX_INITIALIZER;

static void add_library_file(struct library_file **files, int64_t id, uint32_t number, bool is_shared) {
    struct library_file *file = malloc(sizeof *file);
    if (file == NULL)
        return;
    *file = (struct library_file){.id = id, .number = number, .is_shared = is_shared};
    pthread_mutex_lock(&library_files_lock);
    file->next = *files;
    *files = file;
    pthread_mutex_unlock(&library_files_lock);
}

/* A copy of what is known of a file: number 0 if that is nothing. */
static struct library_file find_library_file(struct library_file **files, int64_t id, bool and_remove) {
    struct library_file found = {.number = 0};
    pthread_mutex_lock(&library_files_lock);
    for (struct library_file **place = files; *place != NULL; place = &(*place)->next)
        if ((*place)->id == id) {
            struct library_file *file = *place;
            found = *file;
            if (and_remove) {
                *place = file->next;
                free(file);
            }
            break;
        }
    pthread_mutex_unlock(&library_files_lock);
    return found;
}

/* Calls ------------------------------------------------------------------------------------------------------------ */

/* Whether a call is the program's own: not one that a library makes inside another. */
static bool is_outermost(void) {
    if (!recording() || !is_owner())
        return false;
    meet_thread();
    return self.operation == 0;
}

static struct pio_record *library_begin(const struct pioscope_io *io) {
    int saved = errno;
    struct pioscope_span span;
    span_begin(&span);
    self.library = self.operation = __atomic_add_fetch(&spool.operations, 1, __ATOMIC_RELAXED);
    self.library_ranks = 0;
    struct pio_record *record = begin_io_record(io, &span, io->flags);
    errno = saved;
    return record;
}

static void library_end(struct pio_record *record, int64_t result) {
    int saved = errno;
    end_io_record(record, result);
    self.library = self.operation = 0;
    struct pioscope_span unread = {0, 0, 0};
    span_over(&unread, now_ns());
    errno = saved;
}

/* After an open: with how many ranks MPI-IO opened the file, 0 if it did not. */
static uint32_t ranks_of_open(struct pio_record *record) {
    if (record != NULL && self.library_ranks > 0)
        ((struct pio_mpi_part *)(record + 1))->ranks = self.library_ranks;
    return self.library_ranks;
}

static void flag_as_collective(struct pio_record *record) {
    if (record != NULL)
        RELEASE(&record->word, LOAD(&record->word) | PIO_COLLECTIVE << 24);
}
