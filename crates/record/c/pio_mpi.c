/* The MPI recorder: preloaded, compiled by the user's own mpicc. It records MPI-IO as the program asked for it, and, while
 * an MPI file is open, the program's messages.
 *
 * It is loaded into every process of a job, launchers and shells included, and is not linked to MPI. So:
 * - it names no MPI data (in some MPIs predefined handles are addresses of data), only functions that resolve when
 *   called;
 * - each wrapper calls the next definition of its own MPI_ name, not PMPI_: another library (Pioscope's own MPI-IO, a
 *   tool) may lie between us and MPI;
 * - MPI's profiling interface is left to others.
 *
 * It adds no communication. The services of the POSIX recorder are found when the process starts; without it, every
 * wrapper only passes on.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pio_calls.h"
#include "pio_other_mpi.h"
#include "pio_path.h"
#include "pio_recorder.h"
#include "pio_spool.h"

#define EXPORT __attribute__((visibility("default")))
#define LOAD(place) __atomic_load_n(place, __ATOMIC_RELAXED)
#define STORE(place, value) __atomic_store_n(place, value, __ATOMIC_RELAXED)

#if MPI_VERSION >= 4
#define HAVE_LARGE_COUNTS 1
#else
#define HAVE_LARGE_COUNTS 0
#endif

/* Finding others -------------------------------------------------------------------------------------------------- */

/* Opens the MPI library that a module (Python's, say) has loaded for itself alone, also for us. */
static int open_mpi_library(struct dl_phdr_info *object, size_t size, void *handle) {
    (void)size;
    const char *name = strrchr(object->dlpi_name, '/');
    if (name == NULL || strncmp(name, "/libmpi", 7) != 0 || strncmp(name, "/libmpifort", 11) == 0)
        return 0;
    *(void **)handle = dlopen(object->dlpi_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_GLOBAL);
    return *(void **)handle != NULL;
}

static void *mpi_library(void) {
    static void *library;
    void *handle = LOAD(&library);
    if (handle == NULL) {
        dl_iterate_phdr(open_mpi_library, &handle);
        STORE(&library, handle);
    }
    return handle;
}

static void *find_next(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (found == NULL && mpi_library() != NULL)
        found = dlsym(mpi_library(), name);
    if (found == NULL) {
        fprintf(stderr, "pioscope: %s was called, but no MPI library that has it is loaded\n", name);
        abort();
    }
    return found;
}

static inline void *next_function(void **place, const char *name) {
    void *found = LOAD(place);
    if (__builtin_expect(found == NULL, 0)) {
        found = find_next(name);
        STORE(place, found);
    }
    return found;
}

/* The next definition of the function `name`. */
#define NEXT(name)                                                                                                     \
    ({                                                                                                                 \
        static void *place;                                                                                            \
        (__typeof__(&name)) next_function(&place, #name);                                                              \
    })

/* What describes datatypes calls MPI as all here does: a name that is bound when a process starts (LD_BIND_NOW) is not there in
 * those that have no MPI, or load it later, as Python does. */
#define PMPI_Type_size_x NEXT(PMPI_Type_size_x)
#define PMPI_Type_get_extent_x NEXT(PMPI_Type_get_extent_x)
#define PMPI_Type_get_envelope NEXT(PMPI_Type_get_envelope)
#define PMPI_Type_get_contents NEXT(PMPI_Type_get_contents)
#define PMPI_Type_free NEXT(PMPI_Type_free)
#if HAVE_LARGE_COUNTS
#define PMPI_Type_get_envelope_c NEXT(PMPI_Type_get_envelope_c)
#define PMPI_Type_get_contents_c NEXT(PMPI_Type_get_contents_c)
#endif
#include "pio_datatype.h"

/* Predefined handles: constants in the MPICH family, addresses of data in Open MPI. */
#ifdef OPEN_MPI
static void *find_predefined(void **place, const char *name) {
    void *found = LOAD(place);
    if (found == NULL) {
        /* The first in the process, not the next: a program may have its own copy, to which MPI itself refers. */
        found = dlsym(RTLD_DEFAULT, name);
        if (found == NULL && mpi_library() != NULL)
            found = dlsym(mpi_library(), name);
        STORE(place, found);
    }
    return found;
}
#define PREDEFINED(name)                                                                                               \
    ({                                                                                                                 \
        static void *place;                                                                                            \
        find_predefined(&place, name);                                                                                 \
    })
#define WORLD ((MPI_Comm)PREDEFINED("ompi_mpi_comm_world"))
#define NO_DATATYPE ((MPI_Datatype)PREDEFINED("ompi_mpi_datatype_null"))
#define NO_INFO ((MPI_Info)PREDEFINED("ompi_mpi_info_null"))
#else
#define WORLD MPI_COMM_WORLD
#define NO_DATATYPE MPI_DATATYPE_NULL
#define NO_INFO MPI_INFO_NULL
#endif

/* The POSIX recorder. */
#define SERVICE(name) static __typeof__(&pioscope_##name) name;
SERVICE(io_begin)
SERVICE(io_end)
SERVICE(inside_mpi)
SERVICE(message_begin)
SERVICE(message_end)
SERVICE(operation_begin)
SERVICE(operation_end)
SERVICE(operation_resume)
SERVICE(operation_switch)
SERVICE(define_datatype)
SERVICE(define_view)
SERVICE(give_hints)
SERVICE(set_rank)
SERVICE(aborted)

static bool present; /* all services are there */

__attribute__((constructor)) static void find_services(int count, char **arguments) {
    (void)count;
    pio_leave_other_mpi(arguments, "recorded");
#define FIND(name) name = (__typeof__(name))dlsym(RTLD_DEFAULT, "pioscope_" #name)
    FIND(io_begin);
    FIND(io_end);
    FIND(inside_mpi);
    FIND(message_begin);
    FIND(message_end);
    FIND(operation_begin);
    FIND(operation_end);
    FIND(operation_resume);
    FIND(operation_switch);
    FIND(define_datatype);
    FIND(define_view);
    FIND(give_hints);
    FIND(set_rank);
    FIND(aborted);
    present = io_begin && io_end && inside_mpi && message_begin && message_end && operation_begin && operation_end &&
              operation_resume && operation_switch && define_datatype && define_view && give_hints && set_rank && aborted;
}

/* Sizes ------------------------------------------------------------------------------------------------------------ */

static uint64_t type_bytes(MPI_Datatype type) {
    MPI_Count size = 0;
    if (type == NO_DATATYPE || NEXT(MPI_Type_size_x)(type, &size) != MPI_SUCCESS || size < 0)
        return 0;
    return (uint64_t)size;
}

static uint64_t bytes_of(MPI_Count count, MPI_Datatype type) {
    return count <= 0 ? 0 : (uint64_t)count * type_bytes(type);
}

/* Bytes that a status says were moved: whole elements, or else counted in the basic elements that the type has `size`
 * bytes of. */
static int64_t moved_bytes(const MPI_Status *status, MPI_Datatype type, MPI_Count count) {
    int whole = 0;
    uint64_t size = type_bytes(type);
    if (size == 0 || count <= 0)
        return 0;
    if (NEXT(MPI_Get_count)(status, type, &whole) == MPI_SUCCESS && whole != MPI_UNDEFINED && whole <= count)
        return (int64_t)((uint64_t)whole * size);
    MPI_Count elements = 0;
    if (NEXT(MPI_Get_elements_x)(status, type, &elements) != MPI_SUCCESS || elements < 0)
        return 0;
    /* More whole elements than an int holds, or a part of one: MPI counts in basic elements. All was asked for is the
     * most there can be. */
    uint64_t asked = (uint64_t)count * size;
    return (int64_t)((uint64_t)elements < asked ? (uint64_t)elements : asked);
}

static int64_t outcome_of(int error, int64_t moved) {
    int class = error;
    if (error == MPI_SUCCESS)
        return moved;
    NEXT(MPI_Error_class)(error, &class);
    return class > 0 ? -(int64_t)class : -1;
}

/* The id of a datatype: PIO_PLAIN if it is contiguous from 0. */
static uint64_t datatype_id(MPI_Datatype type) {
    pio_datatype_envelope envelope;
    if (type == NO_DATATYPE || mpi_library() == NULL || pio_datatype_get_envelope(type, &envelope) != MPI_SUCCESS)
        return PIO_PLAIN;
    MPI_Count lower_bound, extent, true_lower_bound, true_extent;
    if (envelope.combiner == MPI_COMBINER_NAMED ||
        (NEXT(MPI_Type_get_extent_x)(type, &lower_bound, &extent) == MPI_SUCCESS &&
         NEXT(MPI_Type_get_true_extent_x)(type, &true_lower_bound, &true_extent) == MPI_SUCCESS && lower_bound == 0 &&
         true_lower_bound == 0 && extent == true_extent && (uint64_t)extent == type_bytes(type)))
        return PIO_PLAIN;
    unsigned char *description;
    size_t length;
    if (pio_datatype_describe(type, &description, &length) != MPI_SUCCESS)
        return PIO_PLAIN;
    uint64_t id = define_datatype(description, length);
    free(description);
    return id;
}

/* Open files ------------------------------------------------------------------------------------------------------- */

struct open_file {
    struct open_file *next;
    MPI_File file;
    uint32_t number;
    uint64_t view;
    uint64_t etype_bytes;
    uint64_t split; /* the operation of a split collective that has begun */
};

static struct open_file *open_files;
static pthread_mutex_t open_files_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t files_so_far;

/* While it is 0, messages cost one load. */
static uint32_t open_count;

static void add_file(MPI_File file, uint32_t number) {
    struct open_file *entry = calloc(1, sizeof *entry);
    if (entry == NULL)
        return;
    entry->file = file;
    entry->number = number;
    entry->view = PIO_PLAIN;
    entry->etype_bytes = 1;
    pthread_mutex_lock(&open_files_lock);
    entry->next = open_files;
    open_files = entry;
    STORE(&open_count, open_count + 1);
    pthread_mutex_unlock(&open_files_lock);
}

/* A program uses an open file from one thread at a time where it sets views or closes it: the entry stays valid. */
static struct open_file *find_file(MPI_File file) {
    if (!present || LOAD(&open_count) == 0)
        return NULL;
    pthread_mutex_lock(&open_files_lock);
    struct open_file *entry = open_files;
    while (entry != NULL && entry->file != file)
        entry = entry->next;
    pthread_mutex_unlock(&open_files_lock);
    return entry;
}

static void remove_file(struct open_file *gone) {
    pthread_mutex_lock(&open_files_lock);
    for (struct open_file **place = &open_files; *place != NULL; place = &(*place)->next)
        if (*place == gone) {
            *place = gone->next;
            STORE(&open_count, open_count - 1);
            break;
        }
    pthread_mutex_unlock(&open_files_lock);
    free(gone);
}

/* Requests --------------------------------------------------------------------------------------------------------- */

/* Requests of nonblocking MPI-IO of which the program does not know yet that they are complete, with the operations that they
 * stand for: MPICH does the I/O of a collective one in the call that waits for it. Threads find and change places without a
 * lock, as a request is waited for by one thread at a time. */
#define REQUESTS 1024u
#define REQUEST_PROBES 16u
static struct {
    uintptr_t request; /* 0: a free place, as no request is */
    uint64_t operation;
} requests[REQUESTS];

/* While it is 0, no request is looked for. */
static uint32_t requests_known;

static uint32_t request_place(uintptr_t request, uint32_t probe) {
    return (uint32_t)(((uint64_t)request * 0x9e3779b97f4a7c15u >> 40) + probe) % REQUESTS;
}

/* The place of a request; REQUESTS if it is not known. */
static uint32_t find_request(uintptr_t request) {
    for (uint32_t probe = 0; probe < REQUEST_PROBES; probe++) {
        uint32_t place = request_place(request, probe);
        if (__atomic_load_n(&requests[place].request, __ATOMIC_ACQUIRE) == request)
            return place;
    }
    return REQUESTS;
}

/* Where there is no room, what MPI does for the request belongs to no operation of the program. */
static void remember_request(MPI_Request request, uint64_t operation) {
    uintptr_t key = (uintptr_t)request;
    uint32_t known = find_request(key); /* complete, and MPI uses its handle again: nobody has told us */
    if (known != REQUESTS) {
        STORE(&requests[known].operation, operation);
        return;
    }
    for (uint32_t probe = 0; probe < REQUEST_PROBES; probe++) {
        uint32_t place = request_place(key, probe);
        uintptr_t free_place = 0;
        if (!__atomic_compare_exchange_n(&requests[place].request, &free_place, key, false, __ATOMIC_ACQ_REL,
                                         __ATOMIC_RELAXED))
            continue;
        STORE(&requests[place].operation, operation);
        __atomic_fetch_add(&requests_known, 1, __ATOMIC_RELAXED);
        return;
    }
}

static void forget_request(uintptr_t request) {
    uint32_t place = find_request(request);
    if (place == REQUESTS)
        return;
    STORE(&requests[place].operation, 0);
    __atomic_store_n(&requests[place].request, 0, __ATOMIC_RELEASE);
    __atomic_fetch_sub(&requests_known, 1, __ATOMIC_RELAXED);
}

/* The operation that a call on these requests goes on with; 0 if there is none, or if it may be any of several. */
static uint64_t operation_of(int count, const MPI_Request waited_for[]) {
    uint64_t operation = 0;
    for (int i = 0; i < count; i++) {
        uint32_t place = find_request((uintptr_t)waited_for[i]);
        uint64_t found = place == REQUESTS ? 0 : LOAD(&requests[place].operation);
        if (found != 0 && operation != 0)
            return 0;
        operation |= found;
    }
    return operation;
}

/* Requests of one call, as they were before: those that it found complete are null after it. A list of many is not on the stack. */
#define FEW_REQUESTS 1024
#define REMEMBER_REQUESTS(count, waited_for)                                                                           \
    int known_count = LOAD(&requests_known) == 0 || (count) < 0 ? 0 : (count);                                         \
    MPI_Request few[known_count <= FEW_REQUESTS ? known_count + 1 : 1];                                                \
    MPI_Request *were = known_count <= FEW_REQUESTS ? few : malloc((size_t)known_count * sizeof were[0]);              \
    uint64_t operation = 0;                                                                                            \
    if (were == NULL)                                                                                                  \
        known_count = 0;                                                                                               \
    if (known_count > 0) {                                                                                             \
        memcpy(were, waited_for, (size_t)known_count * sizeof were[0]);                                                \
        operation = operation_of(known_count, were);                                                                   \
    }

#define FORGET_COMPLETED(waited_for)                                                                                   \
    forget_completed(known_count, were, waited_for);                                                                   \
    if (were != few)                                                                                                   \
        free(were);

static void forget_completed(int count, const MPI_Request were[], const MPI_Request are[]) {
    for (int i = 0; i < count; i++)
        if (were[i] != are[i])
            forget_request((uintptr_t)were[i]);
}

/* Hints ------------------------------------------------------------------------------------------------------------ */

/* The value of a key, with a zero byte behind it; false if it is not set, or does not fit. */
static bool value_of(MPI_Info info, const char *key, char *value, size_t room) {
    int flag = 0;
    if (room <= MPI_MAX_INFO_VAL)
        return false;
#if MPI_VERSION >= 4
    int length = MPI_MAX_INFO_VAL + 1;
    return NEXT(MPI_Info_get_string)(info, key, &length, value, &flag) == MPI_SUCCESS && flag;
#else
    return NEXT(MPI_Info_get)(info, key, MPI_MAX_INFO_VAL, value, &flag) == MPI_SUCCESS && flag;
#endif
}

/* Records the hints of an info object, as far as they fit: those that are known do. */
static void record_hints(uint32_t file, MPI_Info info) {
    char text[4 * (MPI_MAX_INFO_KEY + MPI_MAX_INFO_VAL)], key[MPI_MAX_INFO_KEY + 1];
    size_t length = 0;
    int keys = 0;
    if (info == NO_INFO || NEXT(MPI_Info_get_nkeys)(info, &keys) != MPI_SUCCESS)
        return;
    for (int i = 0; i < keys; i++) {
        if (NEXT(MPI_Info_get_nthkey)(info, i, key) != MPI_SUCCESS)
            continue;
        size_t key_bytes = strnlen(key, MPI_MAX_INFO_KEY) + 1;
        if (key_bytes >= sizeof text - length ||
            !value_of(info, key, text + length + key_bytes, sizeof text - length - key_bytes))
            continue;
        memcpy(text + length, key, key_bytes);
        length += key_bytes;
        length += strlen(text + length) + 1;
    }
    give_hints(file, text, length);
}

/* Calls that move no data ------------------------------------------------------------------------------------------ */

/* A call on an open file: `next_call` yields `error`. */
#define CONTROL_BODY(number_of_call, flags_of_call, size_of_call, next_call)                                           \
    struct open_file *entry = find_file(file);                                                                         \
    if (entry == NULL)                                                                                                 \
        return next_call;                                                                                              \
    struct pioscope_io io = {.call = number_of_call,                                                                   \
                             .flags = flags_of_call,                                                                   \
                             .file = entry->number,                                                                    \
                             .view = entry->view,                                                                      \
                             .position = PIO_NO_OFFSET,                                                                \
                             .size = (uint64_t)(size_of_call)};                                                        \
    uint64_t operation;                                                                                                \
    void *record = io_begin(&io, &operation);                                                                          \
    int error = next_call;                                                                                             \
    io_end(record, outcome_of(error, 0));                                                                              \
    return error;

EXPORT int MPI_File_open(MPI_Comm comm, const char *name, int mode, MPI_Info info, MPI_File *file) {
    if (!present || name == NULL)
        return NEXT(MPI_File_open)(comm, name, mode, info, file);
    char path[PATH_MAX];
    absolute_path(without_file_system(name), path);
    int ranks = 1;
    NEXT(MPI_Comm_size)(comm, &ranks);
    struct pioscope_io io = {.call = PIO_CALL_MPI_FILE_OPEN,
                             .flags = PIO_COLLECTIVE | (mode & MPI_MODE_APPEND ? PIO_APPEND : 0),
                             .file = __atomic_add_fetch(&files_so_far, 1, __ATOMIC_RELAXED),
                             .ranks = (uint32_t)ranks,
                             .position = PIO_NO_OFFSET,
                             .path = path};
    record_hints(io.file, info);
    uint64_t operation;
    void *record = io_begin(&io, &operation);
    int error = NEXT(MPI_File_open)(comm, name, mode, info, file);
    if (error == MPI_SUCCESS)
        add_file(*file, io.file);
    io_end(record, outcome_of(error, 0));
    return error;
}

EXPORT int MPI_File_close(MPI_File *handle) {
    struct open_file *entry = find_file(*handle);
    if (entry == NULL)
        return NEXT(MPI_File_close)(handle);
    struct pioscope_io io = {.call = PIO_CALL_MPI_FILE_CLOSE,
                             .flags = PIO_COLLECTIVE,
                             .file = entry->number,
                             .position = PIO_NO_OFFSET};
    /* Before the file is gone: another thread may open one and get the same handle. */
    remove_file(entry);
    uint64_t operation;
    void *record = io_begin(&io, &operation);
    int error = NEXT(MPI_File_close)(handle);
    io_end(record, outcome_of(error, 0));
    return error;
}

EXPORT int MPI_File_delete(const char *name, MPI_Info info) {
    if (!present || name == NULL)
        return NEXT(MPI_File_delete)(name, info);
    char path[PATH_MAX];
    absolute_path(without_file_system(name), path);
    struct pioscope_io io = {.call = PIO_CALL_MPI_FILE_DELETE, .position = PIO_NO_OFFSET, .path = path};
    uint64_t operation;
    void *record = io_begin(&io, &operation);
    int error = NEXT(MPI_File_delete)(name, info);
    io_end(record, outcome_of(error, 0));
    return error;
}

EXPORT int MPI_File_set_view(MPI_File file, MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype,
                             const char *representation, MPI_Info info) {
    struct open_file *entry = find_file(file);
    if (entry == NULL)
        return NEXT(MPI_File_set_view)(file, displacement, etype, filetype, representation, info);
    /* MPI_DISPLACEMENT_CURRENT is for sequential files only: their displacement is not known. */
    uint64_t etype_bytes = type_bytes(etype);
    uint64_t type = datatype_id(filetype);
    uint64_t view = displacement == 0 && etype_bytes == 1 && type == PIO_PLAIN
                        ? PIO_PLAIN
                        : define_view(displacement < 0 ? 0 : (uint64_t)displacement, etype_bytes, type);
    struct pioscope_io io = {.call = PIO_CALL_MPI_FILE_SET_VIEW,
                             .flags = PIO_COLLECTIVE,
                             .file = entry->number,
                             .view = view};
    record_hints(entry->number, info);
    uint64_t operation;
    void *record = io_begin(&io, &operation);
    int error = NEXT(MPI_File_set_view)(file, displacement, etype, filetype, representation, info);
    if (error == MPI_SUCCESS) {
        entry->view = view;
        entry->etype_bytes = etype_bytes;
    }
    io_end(record, outcome_of(error, 0));
    return error;
}

/* Not recorded as a call: what it says is. */
EXPORT int MPI_File_set_info(MPI_File file, MPI_Info info) {
    struct open_file *entry = find_file(file);
    if (entry != NULL)
        record_hints(entry->number, info);
    return NEXT(MPI_File_set_info)(file, info);
}

/* Where the individual file pointer stands, in data bytes of the view. */
static uint64_t pointer_position(const struct open_file *entry) {
    MPI_Offset offset = 0;
    if (NEXT(MPI_File_get_position)(entry->file, &offset) != MPI_SUCCESS || offset < 0)
        return PIO_NO_OFFSET;
    return (uint64_t)offset * entry->etype_bytes;
}

EXPORT int MPI_File_seek(MPI_File file, MPI_Offset offset, int whence) {
    struct open_file *entry = find_file(file);
    if (entry == NULL)
        return NEXT(MPI_File_seek)(file, offset, whence);
    struct pioscope_io io = {.call = PIO_CALL_MPI_FILE_SEEK,
                             .file = entry->number,
                             .view = entry->view,
                             .position = whence == MPI_SEEK_SET && offset >= 0 ? (uint64_t)offset * entry->etype_bytes
                                         : whence == MPI_SEEK_CUR
                                             ? pointer_position(entry) + (uint64_t)offset * entry->etype_bytes
                                             : PIO_NO_OFFSET};
    uint64_t operation;
    void *record = io_begin(&io, &operation);
    int error = NEXT(MPI_File_seek)(file, offset, whence);
    io_end(record, outcome_of(error, 0));
    return error;
}

EXPORT int MPI_File_sync(MPI_File file) {
    CONTROL_BODY(PIO_CALL_MPI_FILE_SYNC, PIO_COLLECTIVE, 0, NEXT(MPI_File_sync)(file))
}

EXPORT int MPI_File_set_size(MPI_File file, MPI_Offset size) {
    CONTROL_BODY(PIO_CALL_MPI_FILE_SET_SIZE, PIO_COLLECTIVE, size, NEXT(MPI_File_set_size)(file, size))
}

EXPORT int MPI_File_preallocate(MPI_File file, MPI_Offset size) {
    CONTROL_BODY(PIO_CALL_MPI_FILE_PREALLOCATE, PIO_COLLECTIVE, size, NEXT(MPI_File_preallocate)(file, size))
}

EXPORT int MPI_File_get_size(MPI_File file, MPI_Offset *size) {
    CONTROL_BODY(PIO_CALL_MPI_FILE_GET_SIZE, 0, 0, NEXT(MPI_File_get_size)(file, size))
}

/* Calls that move data --------------------------------------------------------------------------------------------- */

static void *data_begin(const struct open_file *entry, uint32_t call, uint32_t flags, uint64_t position,
                        MPI_Count count, MPI_Datatype type, uint64_t *operation) {
    struct pioscope_io io = {.call = call,
                             .flags = flags,
                             .file = entry->number,
                             .view = entry->view,
                             .memory = datatype_id(type),
                             .position = position,
                             .size = bytes_of(count, type)};
    return io_begin(&io, operation);
}

#define AT(offset) (uint64_t)(offset) * entry->etype_bytes
#define AT_POINTER pointer_position(entry)
#define AT_SHARED_POINTER PIO_NO_OFFSET /* asking for it would do I/O */

/* A call with a status; ours, if the program wants none. */
#define BLOCKING_BODY(call, flags, position, next_call_with_status, next_call)                                         \
    struct open_file *entry = find_file(file);                                                                         \
    if (entry == NULL)                                                                                                 \
        return next_call;                                                                                              \
    MPI_Status own;                                                                                                    \
    MPI_Status *told = status == MPI_STATUS_IGNORE ? &own : status;                                                    \
    uint64_t operation;                                                                                                \
    void *record = data_begin(entry, call, flags, position, count, type, &operation);                                  \
    int error = next_call_with_status;                                                                                 \
    io_end(record, outcome_of(error, error == MPI_SUCCESS ? moved_bytes(told, type, count) : 0));                      \
    return error;

/* A call that may return before the data have moved: what was asked for counts as moved. */
#define STARTING_BODY(call, flags, position, remember, next_call)                                                      \
    struct open_file *entry = find_file(file);                                                                         \
    if (entry == NULL)                                                                                                 \
        return next_call;                                                                                              \
    uint64_t operation;                                                                                                \
    void *record = data_begin(entry, call, PIO_ASYNC | (flags), position, count, type, &operation);                    \
    int error = next_call;                                                                                             \
    if (error == MPI_SUCCESS && operation != 0)                                                                        \
        remember;                                                                                                      \
    io_end(record, outcome_of(error, (int64_t)bytes_of(count, type)));                                                 \
    return error;

#define WRAP_BLOCKING(name, call, flags, position, buffer_type, count_type)                                            \
    EXPORT int name(MPI_File file, buffer_type buffer, count_type count, MPI_Datatype type, MPI_Status *status) {      \
        BLOCKING_BODY(call, flags, position, NEXT(name)(file, buffer, count, type, told),                              \
                      NEXT(name)(file, buffer, count, type, status))                                                   \
    }
#define WRAP_BLOCKING_AT(name, call, flags, buffer_type, count_type)                                                   \
    EXPORT int name(MPI_File file, MPI_Offset offset, buffer_type buffer, count_type count, MPI_Datatype type,         \
                    MPI_Status *status) {                                                                              \
        BLOCKING_BODY(call, flags, AT(offset), NEXT(name)(file, offset, buffer, count, type, told),                    \
                      NEXT(name)(file, offset, buffer, count, type, status))                                           \
    }
#define WRAP_STARTING(name, call, flags, buffer_type, count_type)                                                      \
    EXPORT int name(MPI_File file, buffer_type buffer, count_type count, MPI_Datatype type, MPI_Request *request) {    \
        STARTING_BODY(call, flags, AT_POINTER, remember_request(*request, operation),                                  \
                      NEXT(name)(file, buffer, count, type, request))                                                  \
    }
#define WRAP_STARTING_AT(name, call, flags, buffer_type, count_type)                                                   \
    EXPORT int name(MPI_File file, MPI_Offset offset, buffer_type buffer, count_type count, MPI_Datatype type,         \
                    MPI_Request *request) {                                                                            \
        STARTING_BODY(call, flags, AT(offset), remember_request(*request, operation),                                  \
                      NEXT(name)(file, offset, buffer, count, type, request))                                          \
    }
#define WRAP_SPLIT(name, call, buffer_type, count_type)                                                                \
    EXPORT int name(MPI_File file, buffer_type buffer, count_type count, MPI_Datatype type) {                          \
        STARTING_BODY(call, PIO_COLLECTIVE, AT_POINTER, entry->split = operation,                                      \
                      NEXT(name)(file, buffer, count, type))                                                           \
    }
#define WRAP_SPLIT_AT(name, call, buffer_type, count_type)                                                             \
    EXPORT int name(MPI_File file, MPI_Offset offset, buffer_type buffer, count_type count, MPI_Datatype type) {       \
        STARTING_BODY(call, PIO_COLLECTIVE, AT(offset), entry->split = operation,                                      \
                      NEXT(name)(file, offset, buffer, count, type))                                                   \
    }
/* The second half belongs to the operation that the first began. */
#define WRAP_SPLIT_END(name, buffer_type)                                                                              \
    EXPORT int name(MPI_File file, buffer_type buffer, MPI_Status *status) {                                           \
        struct open_file *entry = find_file(file);                                                                     \
        if (entry == NULL || entry->split == 0)                                                                        \
            return NEXT(name)(file, buffer, status);                                                                   \
        operation_resume(entry->split);                                                                                \
        entry->split = 0;                                                                                              \
        int error = NEXT(name)(file, buffer, status);                                                                  \
        operation_end();                                                                                               \
        return error;                                                                                                  \
    }

#define WRAP_DATA(suffix, count_type)                                                                                  \
    WRAP_BLOCKING(MPI_File_read##suffix, PIO_CALL_MPI_FILE_READ, 0, AT_POINTER, void *, count_type)                    \
    WRAP_BLOCKING(MPI_File_read_all##suffix, PIO_CALL_MPI_FILE_READ_ALL, PIO_COLLECTIVE, AT_POINTER, void *,           \
                  count_type)                                                                                          \
    WRAP_BLOCKING(MPI_File_write##suffix, PIO_CALL_MPI_FILE_WRITE, 0, AT_POINTER, const void *, count_type)            \
    WRAP_BLOCKING(MPI_File_write_all##suffix, PIO_CALL_MPI_FILE_WRITE_ALL, PIO_COLLECTIVE, AT_POINTER, const void *,   \
                  count_type)                                                                                          \
    WRAP_BLOCKING(MPI_File_read_shared##suffix, PIO_CALL_MPI_FILE_READ_SHARED, 0, AT_SHARED_POINTER, void *,           \
                  count_type)                                                                                          \
    WRAP_BLOCKING(MPI_File_write_shared##suffix, PIO_CALL_MPI_FILE_WRITE_SHARED, 0, AT_SHARED_POINTER, const void *,   \
                  count_type)                                                                                          \
    WRAP_BLOCKING(MPI_File_read_ordered##suffix, PIO_CALL_MPI_FILE_READ_ORDERED, PIO_COLLECTIVE, AT_SHARED_POINTER,    \
                  void *, count_type)                                                                                  \
    WRAP_BLOCKING(MPI_File_write_ordered##suffix, PIO_CALL_MPI_FILE_WRITE_ORDERED, PIO_COLLECTIVE, AT_SHARED_POINTER,  \
                  const void *, count_type)                                                                            \
    WRAP_BLOCKING_AT(MPI_File_read_at##suffix, PIO_CALL_MPI_FILE_READ_AT, 0, void *, count_type)                       \
    WRAP_BLOCKING_AT(MPI_File_read_at_all##suffix, PIO_CALL_MPI_FILE_READ_AT_ALL, PIO_COLLECTIVE, void *, count_type)  \
    WRAP_BLOCKING_AT(MPI_File_write_at##suffix, PIO_CALL_MPI_FILE_WRITE_AT, 0, const void *, count_type)               \
    WRAP_BLOCKING_AT(MPI_File_write_at_all##suffix, PIO_CALL_MPI_FILE_WRITE_AT_ALL, PIO_COLLECTIVE, const void *,      \
                     count_type)                                                                                       \
    WRAP_STARTING(MPI_File_iread##suffix, PIO_CALL_MPI_FILE_IREAD, 0, void *, count_type)                              \
    WRAP_STARTING(MPI_File_iread_all##suffix, PIO_CALL_MPI_FILE_IREAD_ALL, PIO_COLLECTIVE, void *, count_type)         \
    WRAP_STARTING(MPI_File_iwrite##suffix, PIO_CALL_MPI_FILE_IWRITE, 0, const void *, count_type)                      \
    WRAP_STARTING(MPI_File_iwrite_all##suffix, PIO_CALL_MPI_FILE_IWRITE_ALL, PIO_COLLECTIVE, const void *, count_type) \
    WRAP_STARTING_AT(MPI_File_iread_at##suffix, PIO_CALL_MPI_FILE_IREAD_AT, 0, void *, count_type)                     \
    WRAP_STARTING_AT(MPI_File_iread_at_all##suffix, PIO_CALL_MPI_FILE_IREAD_AT_ALL, PIO_COLLECTIVE, void *,            \
                     count_type)                                                                                       \
    WRAP_STARTING_AT(MPI_File_iwrite_at##suffix, PIO_CALL_MPI_FILE_IWRITE_AT, 0, const void *, count_type)             \
    WRAP_STARTING_AT(MPI_File_iwrite_at_all##suffix, PIO_CALL_MPI_FILE_IWRITE_AT_ALL, PIO_COLLECTIVE, const void *,    \
                     count_type)                                                                                       \
    WRAP_SPLIT(MPI_File_read_all_begin##suffix, PIO_CALL_MPI_FILE_READ_ALL_BEGIN, void *, count_type)                  \
    WRAP_SPLIT(MPI_File_write_all_begin##suffix, PIO_CALL_MPI_FILE_WRITE_ALL_BEGIN, const void *, count_type)          \
    WRAP_SPLIT_AT(MPI_File_read_at_all_begin##suffix, PIO_CALL_MPI_FILE_READ_AT_ALL_BEGIN, void *, count_type)         \
    WRAP_SPLIT_AT(MPI_File_write_at_all_begin##suffix, PIO_CALL_MPI_FILE_WRITE_AT_ALL_BEGIN, const void *, count_type)

WRAP_DATA(, int)
#if HAVE_LARGE_COUNTS
WRAP_DATA(_c, MPI_Count)
#endif

WRAP_SPLIT_END(MPI_File_read_all_end, void *)
WRAP_SPLIT_END(MPI_File_write_all_end, const void *)
WRAP_SPLIT_END(MPI_File_read_at_all_end, void *)
WRAP_SPLIT_END(MPI_File_write_at_all_end, const void *)

/* Messages --------------------------------------------------------------------------------------------------------- */

static inline bool messages_matter(void) {
    return LOAD(&open_count) != 0;
}

/* `told`, for those who need it, is the status that the call fills in. */
#define MESSAGE_BODY(call, peer, bytes, next_call)                                                                     \
    if (!messages_matter())                                                                                            \
        return next_call;                                                                                              \
    struct pioscope_span span;                                                                                         \
    uint64_t before = message_begin(&span, 0);                                                                         \
    int error = next_call;                                                                                             \
    int64_t message_bytes = (int64_t)(bytes);                                                                          \
    message_end(&span, before, call, peer, (uint64_t)message_bytes, outcome_of(error, message_bytes));                 \
    return error;

/* A call that waits for requests until they are complete. */
#define WAIT_BODY(call, count, waited_for, next_call)                                                                  \
    if (!messages_matter())                                                                                            \
        return next_call;                                                                                              \
    REMEMBER_REQUESTS(count, waited_for)                                                                               \
    struct pioscope_span span;                                                                                         \
    uint64_t before = message_begin(&span, operation);                                                                 \
    int error = next_call;                                                                                             \
    message_end(&span, before, call, -1, 0, outcome_of(error, 0));                                                     \
    FORGET_COMPLETED(waited_for)                                                                                       \
    return error;

/* One that asks for them, or waits for some of them: not recorded, but MPI may do their I/O in it. */
#define PROGRESS_BODY(count, waited_for, next_call)                                                                    \
    if (!messages_matter())                                                                                            \
        return next_call;                                                                                              \
    REMEMBER_REQUESTS(count, waited_for)                                                                               \
    uint64_t before = inside_mpi(operation);                                                                           \
    int error = next_call;                                                                                             \
    operation_switch(before);                                                                                          \
    FORGET_COMPLETED(waited_for)                                                                                       \
    return error;

/* With how many ranks a rank exchanges data: of an intercommunicator, with those of the other group. */
static int ranks_of(MPI_Comm comm) {
    int ranks = 1, is_between_groups = 0;
    NEXT(MPI_Comm_test_inter)(comm, &is_between_groups);
    if (is_between_groups)
        NEXT(MPI_Comm_remote_size)(comm, &ranks);
    else
        NEXT(MPI_Comm_size)(comm, &ranks);
    return ranks;
}

#define SUM_BODY                                                                                                       \
    uint64_t sum = 0;                                                                                                  \
    int ranks = ranks_of(comm);                                                                                        \
    for (int i = 0; i < ranks; i++)                                                                                    \
        sum += (uint64_t)counts[i];                                                                                    \
    return sum * type_bytes(type);

static uint64_t sum_of(const int *counts, MPI_Datatype type, MPI_Comm comm) {
    SUM_BODY
}

#if HAVE_LARGE_COUNTS
static uint64_t sum_of_large(const MPI_Count *counts, MPI_Datatype type, MPI_Comm comm) {
    SUM_BODY
}
#endif

/* Bytes are what this process gives (scatter: gets): for data that stay in place, none. */
#define GIVEN(count, type) (send == MPI_IN_PLACE ? 0 : bytes_of(count, type))

#define WRAP_MESSAGES(suffix, count_type, displacement_type, sum)                                                      \
    EXPORT int MPI_Send##suffix(const void *data, count_type count, MPI_Datatype type, int peer, int tag,              \
                                MPI_Comm comm) {                                                                       \
        MESSAGE_BODY(PIO_CALL_MPI_SEND, peer, bytes_of(count, type),                                                   \
                     NEXT(MPI_Send##suffix)(data, count, type, peer, tag, comm))                                       \
    }                                                                                                                  \
    EXPORT int MPI_Isend##suffix(const void *data, count_type count, MPI_Datatype type, int peer, int tag,             \
                                 MPI_Comm comm, MPI_Request *request) {                                                \
        MESSAGE_BODY(PIO_CALL_MPI_ISEND, peer, bytes_of(count, type),                                                  \
                     NEXT(MPI_Isend##suffix)(data, count, type, peer, tag, comm, request))                             \
    }                                                                                                                  \
    EXPORT int MPI_Irecv##suffix(void *data, count_type count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,    \
                                 MPI_Request *request) {                                                               \
        MESSAGE_BODY(PIO_CALL_MPI_IRECV, peer, bytes_of(count, type),                                                  \
                     NEXT(MPI_Irecv##suffix)(data, count, type, peer, tag, comm, request))                             \
    }                                                                                                                  \
    EXPORT int MPI_Recv##suffix(void *data, count_type count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,     \
                                MPI_Status *status) {                                                                  \
        MPI_Status own;                                                                                                \
        MPI_Status *told = status == MPI_STATUS_IGNORE ? &own : status;                                                \
        MESSAGE_BODY(PIO_CALL_MPI_RECV, error == MPI_SUCCESS ? told->MPI_SOURCE : peer,                                \
                     error == MPI_SUCCESS ? moved_bytes(told, type, count) : 0,                                        \
                     NEXT(MPI_Recv##suffix)(data, count, type, peer, tag, comm, told))                                 \
    }                                                                                                                  \
    EXPORT int MPI_Sendrecv##suffix(const void *send, count_type send_count, MPI_Datatype send_type, int to,           \
                                    int send_tag, void *receive, count_type count, MPI_Datatype type, int from,        \
                                    int tag, MPI_Comm comm, MPI_Status *status) {                                      \
        MESSAGE_BODY(PIO_CALL_MPI_SENDRECV, to, bytes_of(send_count, send_type),                                       \
                     NEXT(MPI_Sendrecv##suffix)(send, send_count, send_type, to, send_tag, receive, count, type, from, \
                                                tag, comm, status))                                                    \
    }                                                                                                                  \
    EXPORT int MPI_Bcast##suffix(void *data, count_type count, MPI_Datatype type, int root, MPI_Comm comm) {           \
        MESSAGE_BODY(PIO_CALL_MPI_BCAST, root, bytes_of(count, type),                                                  \
                     NEXT(MPI_Bcast##suffix)(data, count, type, root, comm))                                           \
    }                                                                                                                  \
    EXPORT int MPI_Reduce##suffix(const void *send, void *receive, count_type count, MPI_Datatype type, MPI_Op op,     \
                                  int root, MPI_Comm comm) {                                                           \
        MESSAGE_BODY(PIO_CALL_MPI_REDUCE, root, bytes_of(count, type),                                                 \
                     NEXT(MPI_Reduce##suffix)(send, receive, count, type, op, root, comm))                             \
    }                                                                                                                  \
    EXPORT int MPI_Allreduce##suffix(const void *send, void *receive, count_type count, MPI_Datatype type, MPI_Op op,  \
                                     MPI_Comm comm) {                                                                  \
        MESSAGE_BODY(PIO_CALL_MPI_ALLREDUCE, -1, bytes_of(count, type),                                                \
                     NEXT(MPI_Allreduce##suffix)(send, receive, count, type, op, comm))                                \
    }                                                                                                                  \
    EXPORT int MPI_Gather##suffix(const void *send, count_type send_count, MPI_Datatype send_type, void *receive,      \
                                  count_type count, MPI_Datatype type, int root, MPI_Comm comm) {                      \
        MESSAGE_BODY(PIO_CALL_MPI_GATHER, root, GIVEN(send_count, send_type),                                          \
                     NEXT(MPI_Gather##suffix)(send, send_count, send_type, receive, count, type, root, comm))          \
    }                                                                                                                  \
    EXPORT int MPI_Gatherv##suffix(const void *send, count_type send_count, MPI_Datatype send_type, void *receive,     \
                                   const count_type counts[], const displacement_type displacements[],                 \
                                   MPI_Datatype type, int root, MPI_Comm comm) {                                       \
        MESSAGE_BODY(PIO_CALL_MPI_GATHERV, root, GIVEN(send_count, send_type),                                         \
                     NEXT(MPI_Gatherv##suffix)(send, send_count, send_type, receive, counts, displacements, type,      \
                                               root, comm))                                                            \
    }                                                                                                                  \
    EXPORT int MPI_Allgather##suffix(const void *send, count_type send_count, MPI_Datatype send_type, void *receive,   \
                                     count_type count, MPI_Datatype type, MPI_Comm comm) {                             \
        MESSAGE_BODY(PIO_CALL_MPI_ALLGATHER, -1,                                                                       \
                     send == MPI_IN_PLACE ? bytes_of(count, type) : bytes_of(send_count, send_type),                   \
                     NEXT(MPI_Allgather##suffix)(send, send_count, send_type, receive, count, type, comm))             \
    }                                                                                                                  \
    EXPORT int MPI_Allgatherv##suffix(const void *send, count_type send_count, MPI_Datatype send_type, void *receive,  \
                                      const count_type counts[], const displacement_type displacements[],              \
                                      MPI_Datatype type, MPI_Comm comm) {                                              \
        MESSAGE_BODY(PIO_CALL_MPI_ALLGATHERV, -1, GIVEN(send_count, send_type),                                        \
                     NEXT(MPI_Allgatherv##suffix)(send, send_count, send_type, receive, counts, displacements, type,   \
                                                  comm))                                                               \
    }                                                                                                                  \
    EXPORT int MPI_Scatter##suffix(const void *send, count_type send_count, MPI_Datatype send_type, void *receive,     \
                                   count_type count, MPI_Datatype type, int root, MPI_Comm comm) {                     \
        MESSAGE_BODY(PIO_CALL_MPI_SCATTER, root, receive == MPI_IN_PLACE ? 0 : bytes_of(count, type),                  \
                     NEXT(MPI_Scatter##suffix)(send, send_count, send_type, receive, count, type, root, comm))         \
    }                                                                                                                  \
    EXPORT int MPI_Scatterv##suffix(const void *send, const count_type counts[],                                       \
                                    const displacement_type displacements[], MPI_Datatype send_type, void *receive,    \
                                    count_type count, MPI_Datatype type, int root, MPI_Comm comm) {                    \
        MESSAGE_BODY(PIO_CALL_MPI_SCATTERV, root, receive == MPI_IN_PLACE ? 0 : bytes_of(count, type),                 \
                     NEXT(MPI_Scatterv##suffix)(send, counts, displacements, send_type, receive, count, type, root,    \
                                                comm))                                                                 \
    }                                                                                                                  \
    EXPORT int MPI_Alltoall##suffix(const void *send, count_type send_count, MPI_Datatype send_type, void *receive,    \
                                    count_type count, MPI_Datatype type, MPI_Comm comm) {                              \
        MESSAGE_BODY(PIO_CALL_MPI_ALLTOALL, -1,                                                                        \
                     (uint64_t)ranks_of(comm) *                                                                        \
                         (send == MPI_IN_PLACE ? bytes_of(count, type) : bytes_of(send_count, send_type)),             \
                     NEXT(MPI_Alltoall##suffix)(send, send_count, send_type, receive, count, type, comm))              \
    }                                                                                                                  \
    EXPORT int MPI_Alltoallv##suffix(const void *send, const count_type send_counts[],                                 \
                                     const displacement_type send_displacements[], MPI_Datatype send_type,             \
                                     void *receive, const count_type counts[], const displacement_type displacements[],\
                                     MPI_Datatype type, MPI_Comm comm) {                                               \
        MESSAGE_BODY(PIO_CALL_MPI_ALLTOALLV, -1,                                                                       \
                     send == MPI_IN_PLACE ? sum(counts, type, comm) : sum(send_counts, send_type, comm),               \
                     NEXT(MPI_Alltoallv##suffix)(send, send_counts, send_displacements, send_type, receive, counts,    \
                                                 displacements, type, comm))                                           \
    }

WRAP_MESSAGES(, int, int, sum_of)
#if HAVE_LARGE_COUNTS
WRAP_MESSAGES(_c, MPI_Count, MPI_Aint, sum_of_large)
#endif

EXPORT int MPI_Wait(MPI_Request *request, MPI_Status *status) {
    WAIT_BODY(PIO_CALL_MPI_WAIT, 1, request, NEXT(MPI_Wait)(request, status))
}

EXPORT int MPI_Waitall(int count, MPI_Request list[], MPI_Status statuses[]) {
    WAIT_BODY(PIO_CALL_MPI_WAITALL, count, list, NEXT(MPI_Waitall)(count, list, statuses))
}

EXPORT int MPI_Waitany(int count, MPI_Request list[], int *index, MPI_Status *status) {
    PROGRESS_BODY(count, list, NEXT(MPI_Waitany)(count, list, index, status))
}

EXPORT int MPI_Waitsome(int count, MPI_Request list[], int *done, int indices[], MPI_Status statuses[]) {
    PROGRESS_BODY(count, list, NEXT(MPI_Waitsome)(count, list, done, indices, statuses))
}

EXPORT int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status) {
    PROGRESS_BODY(1, request, NEXT(MPI_Test)(request, flag, status))
}

EXPORT int MPI_Testall(int count, MPI_Request list[], int *flag, MPI_Status statuses[]) {
    PROGRESS_BODY(count, list, NEXT(MPI_Testall)(count, list, flag, statuses))
}

EXPORT int MPI_Testany(int count, MPI_Request list[], int *index, int *flag, MPI_Status *status) {
    PROGRESS_BODY(count, list, NEXT(MPI_Testany)(count, list, index, flag, status))
}

EXPORT int MPI_Testsome(int count, MPI_Request list[], int *done, int indices[], MPI_Status statuses[]) {
    PROGRESS_BODY(count, list, NEXT(MPI_Testsome)(count, list, done, indices, statuses))
}

EXPORT int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status) {
    MPI_Request *asked = &request;
    PROGRESS_BODY(1, asked, NEXT(MPI_Request_get_status)(request, flag, status))
}

EXPORT int MPI_Request_free(MPI_Request *request) {
    PROGRESS_BODY(1, request, NEXT(MPI_Request_free)(request))
}

EXPORT int MPI_Barrier(MPI_Comm comm) {
    MESSAGE_BODY(PIO_CALL_MPI_BARRIER, -1, 0, NEXT(MPI_Barrier)(comm))
}

/* Start and end ---------------------------------------------------------------------------------------------------- */

static void tell_rank(int error) {
    int rank = -1, ranks = 0;
    if (!present || error != MPI_SUCCESS)
        return;
    mpi_library(); /* from here on, functions that we call directly resolve */
    NEXT(MPI_Comm_rank)(WORLD, &rank);
    NEXT(MPI_Comm_size)(WORLD, &ranks);
    set_rank(rank, ranks);
}

/* What MPI itself reads and writes when it starts and ends (its settings, its shared memory) is not the program's: it
 * belongs to an operation, too. */
#define OWN_IO_BODY(after, next_call)                                                                                  \
    if (present)                                                                                                       \
        operation_begin();                                                                                             \
    int error = next_call;                                                                                             \
    if (present)                                                                                                       \
        operation_end();                                                                                               \
    after;                                                                                                             \
    return error;

/* Who stands between us and MPI is to find what a module has loaded for itself alone, too: hence mpi_library(). */
EXPORT int MPI_Init(int *count, char ***arguments) {
    mpi_library();
    if (pio_gives_way("recorded"))
        return NEXT(MPI_Init)(count, arguments);
    OWN_IO_BODY(tell_rank(error), NEXT(MPI_Init)(count, arguments))
}

EXPORT int MPI_Init_thread(int *count, char ***arguments, int required, int *provided) {
    mpi_library();
    if (pio_gives_way("recorded"))
        return NEXT(MPI_Init_thread)(count, arguments, required, provided);
    OWN_IO_BODY(tell_rank(error), NEXT(MPI_Init_thread)(count, arguments, required, provided))
}

EXPORT int MPI_Finalize(void) {
    OWN_IO_BODY(, NEXT(MPI_Finalize)())
}

EXPORT int MPI_Abort(MPI_Comm comm, int code) {
    if (present)
        aborted();
    return NEXT(MPI_Abort)(comm, code);
}
