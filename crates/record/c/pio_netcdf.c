/* PnetCDF.
 *
 * Facts of its ABI: ids are int, MPI_Offset is 64 bits, nc_type is int with the numbers below, errors are negative, 0 is
 * success. MPI's handles are ints in some MPIs and addresses in others: both are passed on in a register or slot of a
 * pointer's size.
 *
 * Of each function there is one for every type of data in memory. All are recorded as the one that takes any. Bytes are
 * those of the variable in the file: the elements that are asked for, of its own type. */
#include "pio_library.h"
#include "pio_path.h"

/* Sizes of the types NC_BYTE, NC_CHAR, ... NC_UINT64. */
static const unsigned char netcdf_type_bytes[] = {0, 1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8};

#define NETCDF_NO_SUCH_ID (-33) /* NC_EBADID */
#define NETCDF_MOST_DIMENSIONS 1024 /* a variable of more is of unknown size */

int ncmpi_inq_varndims(int, int, int *);
int ncmpi_inq_vartype(int, int, int *);
int ncmpi_inq_vardimid(int, int, int *);
int ncmpi_inq_dimlen(int, int, int64_t *);
int ncmpi_inq_put_size(int, int64_t *);
int ncmpi_inq_get_size(int, int64_t *);

static struct library netcdf = {.probe = "ncmpi_inq_libvers"};
static struct library_file *netcdf_files;

/* Sizes ------------------------------------------------------------------------------------------------------------ */

static uint64_t product(const int64_t *counts, int dimensions) {
    uint64_t elements = 1;
    for (int i = 0; i < dimensions; i++)
        elements *= counts[i] < 0 ? 0 : (uint64_t)counts[i];
    return elements;
}

static uint64_t netcdf_whole(const struct copy *copy, int id, int variable, int dimensions) {
    int axes[NETCDF_MOST_DIMENSIONS];
    __typeof__(&ncmpi_inq_vardimid) ask_axes = THEIRS(ncmpi_inq_vardimid);
    __typeof__(&ncmpi_inq_dimlen) ask_length = THEIRS(ncmpi_inq_dimlen);
    if (ask_axes == NULL || ask_length == NULL || ask_axes(id, variable, axes) != 0)
        return 0;
    uint64_t elements = 1;
    for (int i = 0; i < dimensions; i++) {
        int64_t length = 0;
        elements *= ask_length(id, axes[i], &length) != 0 || length < 0 ? 0 : (uint64_t)length;
    }
    return elements;
}

/* What a request is for. */
struct netcdf_request {
    enum { ONE_ELEMENT, WHOLE_VARIABLE, BOXES } kind;
    int boxes;
    const int64_t *box;          /* the only one, or */
    const int64_t *const *lists; /* one each; NULL, as a whole or each: one element */
};

static __attribute__((noinline)) uint64_t netcdf_bytes(const struct copy *copy, int id, int variable,
                                                       struct netcdf_request request) {
    int dimensions = 0, type = 0;
    __typeof__(&ncmpi_inq_varndims) ask_dimensions = THEIRS(ncmpi_inq_varndims);
    __typeof__(&ncmpi_inq_vartype) ask_type = THEIRS(ncmpi_inq_vartype);
    if (ask_dimensions == NULL || ask_type == NULL || ask_dimensions(id, variable, &dimensions) != 0 ||
        ask_type(id, variable, &type) != 0 || type <= 0 || (size_t)type >= sizeof netcdf_type_bytes ||
        dimensions < 0 || dimensions > NETCDF_MOST_DIMENSIONS)
        return 0;
    uint64_t elements = 0;
    switch (request.kind) {
    case ONE_ELEMENT:
        elements = 1;
        break;
    case WHOLE_VARIABLE:
        elements = netcdf_whole(copy, id, variable, dimensions);
        break;
    case BOXES:
        for (int i = 0; i < request.boxes; i++) {
            const int64_t *box = request.lists == NULL ? request.box : request.lists[i];
            elements += box == NULL ? 1 : product(box, dimensions);
        }
        break;
    }
    return elements * netcdf_type_bytes[type];
}

/* Calls ------------------------------------------------------------------------------------------------------------ */

#define NETCDF_THEIRS(name)                                                                                            \
    struct copy *copy = pio_copy_of(&netcdf, __builtin_return_address(0));                                             \
    __typeof__(&name) theirs = copy == NULL ? NULL : THEIRS(name);                                                     \
    if (theirs == NULL)                                                                                                \
        return NETCDF_NO_SUCH_ID;

static __attribute__((noinline)) struct pio_record *netcdf_begin(int id, uint32_t call, uint32_t flags, uint64_t bytes) {
    struct library_file file = pio_find_library_file(&netcdf_files, id, false);
    struct pioscope_io io = {
        .call = call, .flags = flags, .file = file.number, .ranks = 1, .position = PIO_NO_OFFSET, .size = bytes};
    return pio_library_begin(&io);
}

static int netcdf_end(struct pio_record *record, int error, uint64_t moved) {
    pio_library_end(record, error < 0 ? error : (int64_t)moved);
    return error;
}

#define NETCDF_BODY(call, flags, size, moved, next_call)                                                               \
    if (!pio_is_outermost())                                                                                           \
        return next_call;                                                                                              \
    uint64_t bytes = (size);                                                                                           \
    struct pio_record *record = netcdf_begin(id, call, flags, bytes);                                                  \
    return netcdf_end(record, next_call, moved);

#define HOOK_NETCDF(name, call, flags, parameters, arguments)                                                          \
    EXPORT int name parameters {                                                                                       \
        NETCDF_THEIRS(name)                                                                                            \
        NETCDF_BODY(call, flags, 0, 0, theirs arguments)                                                               \
    }

#define HOOK_NETCDF_OPEN(name, number_of_call)                                                                         \
    EXPORT int name(void *comm, const char *path, int mode, void *info, int *id) {                                     \
        NETCDF_THEIRS(name)                                                                                            \
        if (!pio_is_outermost() || path == NULL)                                                                       \
            return theirs(comm, path, mode, info, id);                                                                 \
        char absolute[PATH_MAX];                                                                                       \
        absolute_path(without_file_system(path), absolute);                                                            \
        struct pioscope_io io = {.call = number_of_call,                                                               \
                                 .flags = PIO_COLLECTIVE,                                                              \
                                 .file = pio_number_library_file(),                                                    \
                                 .ranks = 1,                                                                           \
                                 .position = PIO_NO_OFFSET,                                                            \
                                 .path = absolute};                                                                    \
        struct pio_record *record = pio_library_begin(&io);                                                            \
        int error = theirs(comm, path, mode, info, id);                                                                \
        pio_ranks_of_open(record);                                                                                     \
        if (error == 0 && id != NULL)                                                                                  \
            pio_add_library_file(&netcdf_files, *id, io.file, true);                                                   \
        return netcdf_end(record, error, 0);                                                                           \
    }

/* The file is forgotten before it is closed: its id may come again. */
#define HOOK_NETCDF_CLOSE(name, number_of_call)                                                                        \
    EXPORT int name(int id) {                                                                                          \
        NETCDF_THEIRS(name)                                                                                            \
        if (!pio_is_outermost())                                                                                       \
            return theirs(id);                                                                                         \
        struct library_file file = pio_find_library_file(&netcdf_files, id, true);                                     \
        struct pioscope_io io = {.call = number_of_call,                                                               \
                                 .flags = PIO_COLLECTIVE,                                                              \
                                 .file = file.number,                                                                  \
                                 .ranks = 1,                                                                           \
                                 .position = PIO_NO_OFFSET};                                                           \
        struct pio_record *record = pio_library_begin(&io);                                                            \
        return netcdf_end(record, theirs(id), 0);                                                                      \
    }

/* clang-format off */
HOOK_NETCDF_OPEN(ncmpi_create, PIO_CALL_NCMPI_CREATE)
HOOK_NETCDF_OPEN(ncmpi_open, PIO_CALL_NCMPI_OPEN)
HOOK_NETCDF_CLOSE(ncmpi_close, PIO_CALL_NCMPI_CLOSE)
HOOK_NETCDF_CLOSE(ncmpi_abort, PIO_CALL_NCMPI_ABORT)
HOOK_NETCDF(ncmpi_enddef, PIO_CALL_NCMPI_ENDDEF, PIO_COLLECTIVE, (int id), (id))
HOOK_NETCDF(ncmpi__enddef, PIO_CALL_NCMPI_ENDDEF, PIO_COLLECTIVE, (int id, int64_t a, int64_t b, int64_t c, int64_t d), (id, a, b, c, d))
HOOK_NETCDF(ncmpi_redef, PIO_CALL_NCMPI_REDEF, PIO_COLLECTIVE, (int id), (id))
HOOK_NETCDF(ncmpi_sync, PIO_CALL_NCMPI_SYNC, PIO_COLLECTIVE, (int id), (id))
HOOK_NETCDF(ncmpi_sync_numrecs, PIO_CALL_NCMPI_SYNC_NUMRECS, PIO_COLLECTIVE, (int id), (id))
HOOK_NETCDF(ncmpi_flush, PIO_CALL_NCMPI_FLUSH, 0, (int id), (id))
HOOK_NETCDF(ncmpi_begin_indep_data, PIO_CALL_NCMPI_BEGIN_INDEP_DATA, PIO_COLLECTIVE, (int id), (id))
HOOK_NETCDF(ncmpi_end_indep_data, PIO_CALL_NCMPI_END_INDEP_DATA, PIO_COLLECTIVE, (int id), (id))
HOOK_NETCDF(ncmpi_fill_var_rec, PIO_CALL_NCMPI_FILL_VAR_REC, PIO_COLLECTIVE, (int id, int variable, int64_t record_number), (id, variable, record_number))
HOOK_NETCDF(ncmpi_wait, PIO_CALL_NCMPI_WAIT, 0, (int id, int count, int *requests, int *states), (id, count, requests, states))
HOOK_NETCDF(ncmpi_wait_all, PIO_CALL_NCMPI_WAIT_ALL, PIO_COLLECTIVE, (int id, int count, int *requests, int *states), (id, count, requests, states))
/* clang-format on */

/* Data: ncmpi_VERB_KIND[_TYPE][_all](id, variable, where, data[, how many, of which type][, request]) */

#define WHERE_var1 const int64_t *start,
#define NAMED_var1 start,
#define ASKED_var1 (struct netcdf_request){.kind = ONE_ELEMENT}
#define WHERE_var
#define NAMED_var
#define ASKED_var (struct netcdf_request){.kind = WHOLE_VARIABLE}
#define WHERE_vara const int64_t *start, const int64_t *count,
#define NAMED_vara start, count,
#define ASKED_vara (struct netcdf_request){.kind = BOXES, .boxes = 1, .box = count}
#define WHERE_vars const int64_t *start, const int64_t *count, const int64_t *stride,
#define NAMED_vars start, count, stride,
#define ASKED_vars ASKED_vara
#define WHERE_varm const int64_t *start, const int64_t *count, const int64_t *stride, const int64_t *map,
#define NAMED_varm start, count, stride, map,
#define ASKED_varm ASKED_vara
#define WHERE_varn int boxes, const int64_t *const *starts, const int64_t *const *counts,
#define NAMED_varn boxes, starts, counts,
#define ASKED_varn (struct netcdf_request){.kind = BOXES, .boxes = boxes, .lists = counts}

/* Behind the data. */
#define MORE_none
#define MORE_NAMED_none
#define MORE_any_type , int64_t memory_count, void *memory_type
#define MORE_NAMED_any_type , memory_count, memory_type
#define MORE_request , int *request
#define MORE_NAMED_request , request
#define MORE_any_type_request , int64_t memory_count, void *memory_type, int *request
#define MORE_NAMED_any_type_request , memory_count, memory_type, request

#define HOOK_NETCDF_DATA(name, kind, more, call, flags)                                                                \
    EXPORT int name(int id, int variable, WHERE_##kind void *data MORE_##more) {                                       \
        NETCDF_THEIRS(name)                                                                                            \
        NETCDF_BODY(call, flags, netcdf_bytes(copy, id, variable, ASKED_##kind), bytes,                                \
                    theirs(id, variable, NAMED_##kind data MORE_NAMED_##more))                                         \
    }

/* One function of each type. */
#define HOOK_NETCDF_TYPES(stem, all, kind, more, call, flags)                                                          \
    HOOK_NETCDF_DATA(stem##_text##all, kind, more, call, flags)                                                        \
    HOOK_NETCDF_DATA(stem##_schar##all, kind, more, call, flags)                                                       \
    HOOK_NETCDF_DATA(stem##_uchar##all, kind, more, call, flags)                                                       \
    HOOK_NETCDF_DATA(stem##_short##all, kind, more, call, flags)                                                       \
    HOOK_NETCDF_DATA(stem##_ushort##all, kind, more, call, flags)                                                      \
    HOOK_NETCDF_DATA(stem##_int##all, kind, more, call, flags)                                                         \
    HOOK_NETCDF_DATA(stem##_uint##all, kind, more, call, flags)                                                        \
    HOOK_NETCDF_DATA(stem##_long##all, kind, more, call, flags)                                                        \
    HOOK_NETCDF_DATA(stem##_float##all, kind, more, call, flags)                                                       \
    HOOK_NETCDF_DATA(stem##_double##all, kind, more, call, flags)                                                      \
    HOOK_NETCDF_DATA(stem##_longlong##all, kind, more, call, flags)                                                    \
    HOOK_NETCDF_DATA(stem##_ulonglong##all, kind, more, call, flags)                                                   

#define HOOK_NETCDF_BLOCKING(verb, kind, call)                                                                         \
    HOOK_NETCDF_DATA(ncmpi_##verb##_##kind, kind, any_type, call, 0)                                                   \
    HOOK_NETCDF_TYPES(ncmpi_##verb##_##kind, , kind, none, call, 0)                                                    \
    HOOK_NETCDF_DATA(ncmpi_##verb##_##kind##_all, kind, any_type, call##_ALL, PIO_COLLECTIVE)                          \
    HOOK_NETCDF_TYPES(ncmpi_##verb##_##kind, _all, kind, none, call##_ALL, PIO_COLLECTIVE)

/* What was asked for counts as moved: the wait that moves it says nothing of bytes. */
#define HOOK_NETCDF_STARTING(verb, kind, call)                                                                         \
    HOOK_NETCDF_DATA(ncmpi_##verb##_##kind, kind, any_type_request, call, PIO_ASYNC)                                   \
    HOOK_NETCDF_TYPES(ncmpi_##verb##_##kind, , kind, request, call, PIO_ASYNC)

HOOK_NETCDF_BLOCKING(put, var1, PIO_CALL_NCMPI_PUT_VAR1)
HOOK_NETCDF_BLOCKING(put, var, PIO_CALL_NCMPI_PUT_VAR)
HOOK_NETCDF_BLOCKING(put, vara, PIO_CALL_NCMPI_PUT_VARA)
HOOK_NETCDF_BLOCKING(put, vars, PIO_CALL_NCMPI_PUT_VARS)
HOOK_NETCDF_BLOCKING(put, varm, PIO_CALL_NCMPI_PUT_VARM)
HOOK_NETCDF_BLOCKING(put, varn, PIO_CALL_NCMPI_PUT_VARN)
HOOK_NETCDF_BLOCKING(get, var1, PIO_CALL_NCMPI_GET_VAR1)
HOOK_NETCDF_BLOCKING(get, var, PIO_CALL_NCMPI_GET_VAR)
HOOK_NETCDF_BLOCKING(get, vara, PIO_CALL_NCMPI_GET_VARA)
HOOK_NETCDF_BLOCKING(get, vars, PIO_CALL_NCMPI_GET_VARS)
HOOK_NETCDF_BLOCKING(get, varm, PIO_CALL_NCMPI_GET_VARM)
HOOK_NETCDF_BLOCKING(get, varn, PIO_CALL_NCMPI_GET_VARN)
HOOK_NETCDF_STARTING(iput, var1, PIO_CALL_NCMPI_IPUT_VAR1)
HOOK_NETCDF_STARTING(iput, var, PIO_CALL_NCMPI_IPUT_VAR)
HOOK_NETCDF_STARTING(iput, vara, PIO_CALL_NCMPI_IPUT_VARA)
HOOK_NETCDF_STARTING(iput, vars, PIO_CALL_NCMPI_IPUT_VARS)
HOOK_NETCDF_STARTING(iput, varm, PIO_CALL_NCMPI_IPUT_VARM)
HOOK_NETCDF_STARTING(iput, varn, PIO_CALL_NCMPI_IPUT_VARN)
HOOK_NETCDF_STARTING(iget, var1, PIO_CALL_NCMPI_IGET_VAR1)
HOOK_NETCDF_STARTING(iget, var, PIO_CALL_NCMPI_IGET_VAR)
HOOK_NETCDF_STARTING(iget, vara, PIO_CALL_NCMPI_IGET_VARA)
HOOK_NETCDF_STARTING(iget, vars, PIO_CALL_NCMPI_IGET_VARS)
HOOK_NETCDF_STARTING(iget, varm, PIO_CALL_NCMPI_IGET_VARM)
HOOK_NETCDF_STARTING(iget, varn, PIO_CALL_NCMPI_IGET_VARN)
HOOK_NETCDF_STARTING(bput, var1, PIO_CALL_NCMPI_BPUT_VAR1)
HOOK_NETCDF_STARTING(bput, var, PIO_CALL_NCMPI_BPUT_VAR)
HOOK_NETCDF_STARTING(bput, vara, PIO_CALL_NCMPI_BPUT_VARA)
HOOK_NETCDF_STARTING(bput, vars, PIO_CALL_NCMPI_BPUT_VARS)
HOOK_NETCDF_STARTING(bput, varm, PIO_CALL_NCMPI_BPUT_VARM)
HOOK_NETCDF_STARTING(bput, varn, PIO_CALL_NCMPI_BPUT_VARN)

/* Data whose place is an MPI datatype: only the library knows how many bytes that are, and counts them. */
#define HOOK_NETCDF_VARD(name, asking, number_of_call, flags)                                                          \
    EXPORT int name(int id, int variable, void *place, void *data, int64_t memory_count, void *memory_type) {          \
        NETCDF_THEIRS(name)                                                                                            \
        if (!pio_is_outermost())                                                                                       \
            return theirs(id, variable, place, data, memory_count, memory_type);                                       \
        __typeof__(&asking) ask = THEIRS(asking);                                                                      \
        int64_t before = 0, after = 0;                                                                                 \
        bool is_known = ask != NULL && ask(id, &before) == 0;                                                          \
        struct pio_record *record = netcdf_begin(id, number_of_call, flags, 0);                                        \
        int error = theirs(id, variable, place, data, memory_count, memory_type);                                      \
        uint64_t moved = is_known && ask(id, &after) == 0 && after > before ? (uint64_t)(after - before) : 0;          \
        if (record != NULL)                                                                                            \
            record->size = moved;                                                                                      \
        return netcdf_end(record, error, moved);                                                                       \
    }

HOOK_NETCDF_VARD(ncmpi_put_vard, ncmpi_inq_put_size, PIO_CALL_NCMPI_PUT_VARD, 0)
HOOK_NETCDF_VARD(ncmpi_put_vard_all, ncmpi_inq_put_size, PIO_CALL_NCMPI_PUT_VARD_ALL, PIO_COLLECTIVE)
HOOK_NETCDF_VARD(ncmpi_get_vard, ncmpi_inq_get_size, PIO_CALL_NCMPI_GET_VARD, 0)
HOOK_NETCDF_VARD(ncmpi_get_vard_all, ncmpi_inq_get_size, PIO_CALL_NCMPI_GET_VARD_ALL, PIO_COLLECTIVE)
