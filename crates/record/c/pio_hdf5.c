/* HDF5.
 *
 * Facts of its ABI since 1.10: hid_t is int64_t, herr_t and htri_t are int, hsize_t is uint64_t, hssize_t is int64_t,
 * H5F_scope_t is an enum; ids of files, groups, types, spaces and data sets have the types below, H5S_ALL is 0, and what is
 * no id of a space is below 3. Programs of older versions are passed on only.
 *
 * HDF5 keeps a stack of errors, which every call of it empties, and prints what it finds wrong. So what we ask is asked
 * before the program's call, and of ids that are valid.
 *
 * Which file a call is about: H5Iget_file_id gives the id under which it was opened. */
#include "pio_library.h"
#include "pio_path.h"

typedef int64_t hid_t;

#define HDF5_FILE 1
#define HDF5_GROUP 2
#define HDF5_TYPE 3
#define HDF5_SPACE 4
#define HDF5_DATA_SET 5
#define HDF5_ATTRIBUTE_UNTIL_1_10 6
#define HDF5_ATTRIBUTE_SINCE_1_12 7
#define HDF5_LAST_CONSTANT_SPACE 2 /* H5S_ALL, H5S_BLOCK, H5S_PLIST */
#define HDF5_COLLECTIVE 1          /* H5FD_MPIO_COLLECTIVE */

int H5get_libversion(unsigned *, unsigned *, unsigned *);
int H5Iget_type(hid_t);
hid_t H5Iget_file_id(hid_t);
int H5Iget_ref(hid_t);
size_t H5Tget_size(hid_t);
int64_t H5Sget_select_npoints(hid_t);
int64_t H5Sget_simple_extent_npoints(hid_t);
int H5Sclose(hid_t);
hid_t H5Dget_space(hid_t);
hid_t H5Aget_space(hid_t);
int H5Pget_dxpl_mpio(hid_t, int *);

static bool hdf5_is_usable(struct copy *copy) {
    if (UNLIKELY(LOAD(&copy->known) == COPY_UNKNOWN)) {
        unsigned major = 0, minor = 0, release = 0;
        __typeof__(&H5get_libversion) version = THEIRS(H5get_libversion);
        bool is_new = version != NULL && version(&major, &minor, &release) >= 0 &&
                      (major > 1 || (major == 1 && minor >= 10));
        STORE(&copy->known, is_new ? COPY_IS_USABLE : COPY_IS_TOO_OLD);
    }
    return LOAD(&copy->known) == COPY_IS_USABLE;
}

static struct library hdf5 = {.probe = "H5open"};
static struct library_file *hdf5_files;

/* Asking ----------------------------------------------------------------------------------------------------------- */

static int hdf5_type(const struct copy *copy, hid_t id) {
    __typeof__(&H5Iget_type) type = THEIRS(H5Iget_type);
    return id <= 0 || type == NULL ? -1 : type(id);
}

int H5Idec_ref(hid_t);
DECLARE_NEXT(H5Idec_ref)

/* The file that an object lies in. */
static struct library_file hdf5_file(const struct copy *copy, hid_t object) {
    struct library_file none = {.number = 0};
    __typeof__(&H5Iget_file_id) file_id = THEIRS(H5Iget_file_id);
    __typeof__(&H5Idec_ref) release = (__typeof__(&H5Idec_ref))pio_function_of(copy, &next_of_H5Idec_ref, "H5Idec_ref");
    if (file_id == NULL || release == NULL)
        return none;
    switch (hdf5_type(copy, object)) {
    case HDF5_FILE:
        return pio_find_library_file(&hdf5_files, object, false);
    case HDF5_GROUP:
    case HDF5_DATA_SET:
    case HDF5_ATTRIBUTE_UNTIL_1_10:
    case HDF5_ATTRIBUTE_SINCE_1_12: {
        hid_t file = file_id(object);
        if (file < 0)
            return none;
        release(file);
        return pio_find_library_file(&hdf5_files, file, false);
    }
    default:
        return none;
    }
}

static uint64_t hdf5_points(const struct copy *copy, hid_t space) {
    __typeof__(&H5Sget_select_npoints) points = THEIRS(H5Sget_select_npoints);
    int64_t count = points == NULL || hdf5_type(copy, space) != HDF5_SPACE ? 0 : points(space);
    return count < 0 ? 0 : (uint64_t)count;
}

/* All points of the object that `space_of` belongs to. */
static uint64_t hdf5_all_points(const struct copy *copy, hid_t object, hid_t (*space_of)(hid_t)) {
    __typeof__(&H5Sget_simple_extent_npoints) points = THEIRS(H5Sget_simple_extent_npoints);
    __typeof__(&H5Sclose) close_space = THEIRS(H5Sclose);
    if (space_of == NULL || points == NULL || close_space == NULL)
        return 0;
    hid_t space = space_of(object);
    if (space < 0)
        return 0;
    int64_t count = points(space);
    close_space(space);
    return count < 0 ? 0 : (uint64_t)count;
}

static uint64_t hdf5_size(const struct copy *copy, hid_t type) {
    __typeof__(&H5Tget_size) size = THEIRS(H5Tget_size);
    return size == NULL || hdf5_type(copy, type) != HDF5_TYPE ? 0 : size(type);
}

/* Bytes in memory of what is read or written: the program's type, as often as points are selected. Of data of variable
 * length these are the references to them. */
static uint64_t hdf5_data_bytes(const struct copy *copy, hid_t data_set, hid_t type, hid_t memory_space, hid_t file_space) {
    if (hdf5_type(copy, data_set) != HDF5_DATA_SET)
        return 0;
    uint64_t points = memory_space > HDF5_LAST_CONSTANT_SPACE ? hdf5_points(copy, memory_space)
                      : file_space > HDF5_LAST_CONSTANT_SPACE ? hdf5_points(copy, file_space)
                                                              : hdf5_all_points(copy, data_set, THEIRS(H5Dget_space));
    return points * hdf5_size(copy, type);
}

static uint64_t hdf5_attribute_bytes(const struct copy *copy, hid_t attribute, hid_t type) {
    int kind = hdf5_type(copy, attribute);
    if (kind != HDF5_ATTRIBUTE_UNTIL_1_10 && kind != HDF5_ATTRIBUTE_SINCE_1_12)
        return 0;
    return hdf5_all_points(copy, attribute, THEIRS(H5Aget_space)) * hdf5_size(copy, type);
}

/* Whether a transfer is one of all ranks: libraries without MPI do not have the question. */
static uint32_t hdf5_transfer_flags(const struct copy *copy, hid_t transfer) {
    int mode = 0;
    __typeof__(&H5Pget_dxpl_mpio) ask = transfer <= 0 ? NULL : THEIRS(H5Pget_dxpl_mpio);
    return ask != NULL && ask(transfer, &mode) >= 0 && mode == HDF5_COLLECTIVE ? PIO_COLLECTIVE : 0;
}

/* Calls ------------------------------------------------------------------------------------------------------------ */

/* The copy that is meant, and its function; without it the call fails, as it would have without us at its start. */
#define HDF5_THEIRS(name)                                                                                              \
    struct copy *copy = pio_copy_of(&hdf5, __builtin_return_address(0));                                               \
    __typeof__(&name) theirs = copy == NULL ? NULL : THEIRS(name);                                                     \
    if (theirs == NULL)                                                                                                \
        return -1;

#define HDF5_IS_PASSED_ON (!pio_is_outermost() || !hdf5_is_usable(copy))

static struct pioscope_io hdf5_call(uint32_t call, struct library_file file, uint32_t flags, uint64_t size) {
    return (struct pioscope_io){
        .call = call, .flags = flags, .file = file.number, .ranks = 1, .position = PIO_NO_OFFSET, .size = size};
}

static int64_t hdf5_outcome(int64_t result, uint64_t moved) {
    return result < 0 ? -1 : (int64_t)moved;
}

/* A call on an object that opens and closes no file. */
#define HDF5_BODY(type, call, object, flags, size, moved, next_call)                                                   \
    if (HDF5_IS_PASSED_ON)                                                                                             \
        return next_call;                                                                                              \
    uint64_t bytes = (size);                                                                                           \
    struct pioscope_io io = hdf5_call(call, hdf5_file(copy, object), flags, bytes);                                    \
    struct pio_record *record = pio_library_begin(&io);                                                                \
    type result = next_call;                                                                                           \
    pio_library_end(record, hdf5_outcome(result, moved));                                                              \
    return result;

#define HOOK_HDF5(type, name, call, object, parameters, arguments)                                                     \
    EXPORT type name parameters {                                                                                      \
        HDF5_THEIRS(name)                                                                                              \
        HDF5_BODY(type, call, object, 0, 0, 0, theirs arguments)                                                       \
    }

/* Files. */

static void flag_as_collective(struct pio_record *record) {
    if (record != NULL)
        RELEASE(&record->word, LOAD(&record->word) | PIO_COLLECTIVE << 24);
}

/* After an open: `file` is its id. */
static void finish_hdf5_open(struct pio_record *record, uint32_t number, hid_t file) {
    bool is_shared = pio_ranks_of_open(record) > 0;
    if (is_shared)
        flag_as_collective(record);
    if (file >= 0)
        pio_add_library_file(&hdf5_files, file, number, is_shared);
    pio_library_end(record, hdf5_outcome(file, 0));
}

#define HDF5_OPEN_BODY(call, name, next_call)                                                                          \
    if (HDF5_IS_PASSED_ON || name == NULL)                                                                             \
        return next_call;                                                                                              \
    char path[PATH_MAX];                                                                                               \
    absolute_path(name, path);                                                                                         \
    struct library_file opened = {.number = pio_number_library_file()};                                                \
    struct pioscope_io io = hdf5_call(call, opened, 0, 0);                                                             \
    io.path = path;                                                                                                    \
    struct pio_record *record = pio_library_begin(&io);                                                                \
    hid_t file = next_call;                                                                                            \
    finish_hdf5_open(record, opened.number, file);                                                                     \
    return file;

EXPORT hid_t H5Fcreate(const char *name, unsigned flags, hid_t creation, hid_t access) {
    HDF5_THEIRS(H5Fcreate)
    HDF5_OPEN_BODY(PIO_CALL_H5FCREATE, name, theirs(name, flags, creation, access))
}

EXPORT hid_t H5Fopen(const char *name, unsigned flags, hid_t access) {
    HDF5_THEIRS(H5Fopen)
    HDF5_OPEN_BODY(PIO_CALL_H5FOPEN, name, theirs(name, flags, access))
}

/* Another id of the same open file: the same handle. */
EXPORT hid_t H5Freopen(hid_t file) {
    HDF5_THEIRS(H5Freopen)
    if (HDF5_IS_PASSED_ON)
        return theirs(file);
    struct library_file of = hdf5_file(copy, file);
    struct pioscope_io io = hdf5_call(PIO_CALL_H5FREOPEN, of, of.is_shared ? PIO_COLLECTIVE : 0, 0);
    struct pio_record *record = pio_library_begin(&io);
    hid_t reopened = theirs(file);
    if (reopened >= 0 && of.number != 0)
        pio_add_library_file(&hdf5_files, reopened, of.number, of.is_shared);
    pio_library_end(record, hdf5_outcome(reopened, 0));
    return reopened;
}

/* Closes an id of a file. It is forgotten before: its number may come again. */
static int close_hdf5_file(struct library_file file, hid_t id, int (*theirs)(hid_t)) {
    struct pioscope_io io = hdf5_call(PIO_CALL_H5FCLOSE, file, file.is_shared ? PIO_COLLECTIVE : 0, 0);
    struct pio_record *record = pio_library_begin(&io);
    int result = theirs(id);
    pio_library_end(record, hdf5_outcome(result, 0));
    return result;
}

EXPORT int H5Fclose(hid_t file) {
    HDF5_THEIRS(H5Fclose)
    if (HDF5_IS_PASSED_ON)
        return theirs(file);
    return close_hdf5_file(pio_find_library_file(&hdf5_files, file, true), file, theirs);
}

/* The call that closes what has this id; 0 for what lies in no file. */
static uint32_t hdf5_close_of(const struct copy *copy, hid_t id) {
    switch (hdf5_type(copy, id)) {
    case HDF5_FILE:
        return PIO_CALL_H5FCLOSE;
    case HDF5_GROUP:
        return PIO_CALL_H5GCLOSE;
    case HDF5_DATA_SET:
        return PIO_CALL_H5DCLOSE;
    case HDF5_ATTRIBUTE_UNTIL_1_10:
    case HDF5_ATTRIBUTE_SINCE_1_12:
        return PIO_CALL_H5ACLOSE;
    default:
        return 0;
    }
}

/* Some (h5py) close all they have so: letting go of the last reference is the close. */
EXPORT int H5Idec_ref(hid_t id) {
    struct copy *copy = pio_copy_of(&hdf5, __builtin_return_address(0));
    __typeof__(&H5Idec_ref) theirs =
        copy == NULL ? NULL : (__typeof__(&H5Idec_ref))pio_function_of(copy, &next_of_H5Idec_ref, "H5Idec_ref");
    if (theirs == NULL)
        return -1;
    if (HDF5_IS_PASSED_ON)
        return theirs(id);
    uint32_t call = hdf5_close_of(copy, id);
    __typeof__(&H5Iget_ref) references = THEIRS(H5Iget_ref);
    if (call == 0 || references == NULL || references(id) != 1)
        return theirs(id);
    if (call == PIO_CALL_H5FCLOSE) {
        struct library_file file = pio_find_library_file(&hdf5_files, id, true);
        return file.number == 0 ? theirs(id) : close_hdf5_file(file, id, theirs);
    }
    HDF5_BODY(int, call, id, 0, 0, 0, theirs(id))
}

EXPORT int H5Fflush(hid_t object, int scope) {
    HDF5_THEIRS(H5Fflush)
    HDF5_BODY(int, PIO_CALL_H5FFLUSH, object, 0, 0, 0, theirs(object, scope))
}

/* Data. */

EXPORT int H5Dread(hid_t data_set, hid_t type, hid_t memory_space, hid_t file_space, hid_t transfer, void *data) {
    HDF5_THEIRS(H5Dread)
    HDF5_BODY(int, PIO_CALL_H5DREAD, data_set, hdf5_transfer_flags(copy, transfer),
              hdf5_data_bytes(copy, data_set, type, memory_space, file_space), bytes,
              theirs(data_set, type, memory_space, file_space, transfer, data))
}

EXPORT int H5Dwrite(hid_t data_set, hid_t type, hid_t memory_space, hid_t file_space, hid_t transfer,
                    const void *data) {
    HDF5_THEIRS(H5Dwrite)
    HDF5_BODY(int, PIO_CALL_H5DWRITE, data_set, hdf5_transfer_flags(copy, transfer),
              hdf5_data_bytes(copy, data_set, type, memory_space, file_space), bytes,
              theirs(data_set, type, memory_space, file_space, transfer, data))
}

/* Since 1.14: all data sets are of one file. */
static uint64_t hdf5_multi_bytes(const struct copy *copy, size_t count, const hid_t data_sets[], const hid_t types[],
                                 const hid_t memory_spaces[], const hid_t file_spaces[]) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += hdf5_data_bytes(copy, data_sets[i], types[i], memory_spaces[i], file_spaces[i]);
    return bytes;
}

EXPORT int H5Dread_multi(size_t count, hid_t data_sets[], hid_t types[], hid_t memory_spaces[], hid_t file_spaces[],
                         hid_t transfer, void *data[]) {
    HDF5_THEIRS(H5Dread_multi)
    HDF5_BODY(int, PIO_CALL_H5DREAD_MULTI, count == 0 ? -1 : data_sets[0], hdf5_transfer_flags(copy, transfer),
              hdf5_multi_bytes(copy, count, data_sets, types, memory_spaces, file_spaces), bytes,
              theirs(count, data_sets, types, memory_spaces, file_spaces, transfer, data))
}

EXPORT int H5Dwrite_multi(size_t count, hid_t data_sets[], hid_t types[], hid_t memory_spaces[], hid_t file_spaces[],
                          hid_t transfer, const void *data[]) {
    HDF5_THEIRS(H5Dwrite_multi)
    HDF5_BODY(int, PIO_CALL_H5DWRITE_MULTI, count == 0 ? -1 : data_sets[0], hdf5_transfer_flags(copy, transfer),
              hdf5_multi_bytes(copy, count, data_sets, types, memory_spaces, file_spaces), bytes,
              theirs(count, data_sets, types, memory_spaces, file_spaces, transfer, data))
}

EXPORT int H5Dwrite_chunk(hid_t data_set, hid_t transfer, uint32_t filters, const uint64_t *offset, size_t size,
                          const void *data) {
    HDF5_THEIRS(H5Dwrite_chunk)
    HDF5_BODY(int, PIO_CALL_H5DWRITE_CHUNK, data_set, hdf5_transfer_flags(copy, transfer), size, bytes,
              theirs(data_set, transfer, filters, offset, size, data))
}

EXPORT int H5Aread(hid_t attribute, hid_t type, void *data) {
    HDF5_THEIRS(H5Aread)
    HDF5_BODY(int, PIO_CALL_H5AREAD, attribute, 0, hdf5_attribute_bytes(copy, attribute, type), bytes,
              theirs(attribute, type, data))
}

EXPORT int H5Awrite(hid_t attribute, hid_t type, const void *data) {
    HDF5_THEIRS(H5Awrite)
    HDF5_BODY(int, PIO_CALL_H5AWRITE, attribute, 0, hdf5_attribute_bytes(copy, attribute, type), bytes,
              theirs(attribute, type, data))
}

/* What lies in a file, by its name. */

/* clang-format off */
HOOK_HDF5(hid_t, H5Dcreate1, PIO_CALL_H5DCREATE, at, (hid_t at, const char *name, hid_t type, hid_t space, hid_t how), (at, name, type, space, how))
HOOK_HDF5(hid_t, H5Dcreate2, PIO_CALL_H5DCREATE, at, (hid_t at, const char *name, hid_t type, hid_t space, hid_t link, hid_t how, hid_t access), (at, name, type, space, link, how, access))
HOOK_HDF5(hid_t, H5Dcreate_anon, PIO_CALL_H5DCREATE, at, (hid_t at, hid_t type, hid_t space, hid_t how, hid_t access), (at, type, space, how, access))
HOOK_HDF5(hid_t, H5Dopen1, PIO_CALL_H5DOPEN, at, (hid_t at, const char *name), (at, name))
HOOK_HDF5(hid_t, H5Dopen2, PIO_CALL_H5DOPEN, at, (hid_t at, const char *name, hid_t access), (at, name, access))
HOOK_HDF5(int, H5Dclose, PIO_CALL_H5DCLOSE, id, (hid_t id), (id))
HOOK_HDF5(int, H5Dset_extent, PIO_CALL_H5DSET_EXTENT, id, (hid_t id, const uint64_t *size), (id, size))
HOOK_HDF5(int, H5Dextend, PIO_CALL_H5DSET_EXTENT, id, (hid_t id, const uint64_t *size), (id, size))
HOOK_HDF5(int, H5Dflush, PIO_CALL_H5DFLUSH, id, (hid_t id), (id))
HOOK_HDF5(int, H5Drefresh, PIO_CALL_H5DREFRESH, id, (hid_t id), (id))
HOOK_HDF5(hid_t, H5Acreate1, PIO_CALL_H5ACREATE, at, (hid_t at, const char *name, hid_t type, hid_t space, hid_t how), (at, name, type, space, how))
HOOK_HDF5(hid_t, H5Acreate2, PIO_CALL_H5ACREATE, at, (hid_t at, const char *name, hid_t type, hid_t space, hid_t how, hid_t access), (at, name, type, space, how, access))
HOOK_HDF5(hid_t, H5Acreate_by_name, PIO_CALL_H5ACREATE, at, (hid_t at, const char *object, const char *name, hid_t type, hid_t space, hid_t how, hid_t access, hid_t link), (at, object, name, type, space, how, access, link))
HOOK_HDF5(hid_t, H5Aopen, PIO_CALL_H5AOPEN, at, (hid_t at, const char *name, hid_t access), (at, name, access))
HOOK_HDF5(hid_t, H5Aopen_name, PIO_CALL_H5AOPEN, at, (hid_t at, const char *name), (at, name))
HOOK_HDF5(hid_t, H5Aopen_idx, PIO_CALL_H5AOPEN, at, (hid_t at, unsigned index), (at, index))
HOOK_HDF5(hid_t, H5Aopen_by_name, PIO_CALL_H5AOPEN, at, (hid_t at, const char *object, const char *name, hid_t access, hid_t link), (at, object, name, access, link))
HOOK_HDF5(int, H5Aclose, PIO_CALL_H5ACLOSE, id, (hid_t id), (id))
HOOK_HDF5(int, H5Adelete, PIO_CALL_H5ADELETE, at, (hid_t at, const char *name), (at, name))
HOOK_HDF5(int, H5Aexists, PIO_CALL_H5AEXISTS, at, (hid_t at, const char *name), (at, name))
HOOK_HDF5(int, H5Arename, PIO_CALL_H5ARENAME, at, (hid_t at, const char *from, const char *to), (at, from, to))
HOOK_HDF5(hid_t, H5Gcreate1, PIO_CALL_H5GCREATE, at, (hid_t at, const char *name, size_t hint), (at, name, hint))
HOOK_HDF5(hid_t, H5Gcreate2, PIO_CALL_H5GCREATE, at, (hid_t at, const char *name, hid_t link, hid_t how, hid_t access), (at, name, link, how, access))
HOOK_HDF5(hid_t, H5Gopen1, PIO_CALL_H5GOPEN, at, (hid_t at, const char *name), (at, name))
HOOK_HDF5(hid_t, H5Gopen2, PIO_CALL_H5GOPEN, at, (hid_t at, const char *name, hid_t access), (at, name, access))
HOOK_HDF5(int, H5Gclose, PIO_CALL_H5GCLOSE, id, (hid_t id), (id))
HOOK_HDF5(int, H5Lcreate_hard, PIO_CALL_H5LCREATE, at, (hid_t from, const char *old, hid_t at, const char *name, hid_t how, hid_t access), (from, old, at, name, how, access))
HOOK_HDF5(int, H5Lcreate_soft, PIO_CALL_H5LCREATE, at, (const char *old, hid_t at, const char *name, hid_t how, hid_t access), (old, at, name, how, access))
HOOK_HDF5(int, H5Lcreate_external, PIO_CALL_H5LCREATE, at, (const char *file, const char *old, hid_t at, const char *name, hid_t how, hid_t access), (file, old, at, name, how, access))
HOOK_HDF5(int, H5Ldelete, PIO_CALL_H5LDELETE, at, (hid_t at, const char *name, hid_t access), (at, name, access))
HOOK_HDF5(int, H5Lexists, PIO_CALL_H5LEXISTS, at, (hid_t at, const char *name, hid_t access), (at, name, access))
HOOK_HDF5(int, H5Lmove, PIO_CALL_H5LMOVE, at, (hid_t at, const char *from, hid_t to_at, const char *to, hid_t how, hid_t access), (at, from, to_at, to, how, access))
HOOK_HDF5(hid_t, H5Oopen, PIO_CALL_H5OOPEN, at, (hid_t at, const char *name, hid_t access), (at, name, access))
HOOK_HDF5(int, H5Oclose, PIO_CALL_H5OCLOSE, id, (hid_t id), (id))
HOOK_HDF5(int, H5Ocopy, PIO_CALL_H5OCOPY, at, (hid_t from, const char *old, hid_t at, const char *name, hid_t how, hid_t link), (from, old, at, name, how, link))
HOOK_HDF5(int, H5Tcommit1, PIO_CALL_H5TCOMMIT, at, (hid_t at, const char *name, hid_t type), (at, name, type))
HOOK_HDF5(int, H5Tcommit2, PIO_CALL_H5TCOMMIT, at, (hid_t at, const char *name, hid_t type, hid_t link, hid_t how, hid_t access), (at, name, type, link, how, access))
HOOK_HDF5(hid_t, H5Topen1, PIO_CALL_H5TOPEN, at, (hid_t at, const char *name), (at, name))
HOOK_HDF5(hid_t, H5Topen2, PIO_CALL_H5TOPEN, at, (hid_t at, const char *name, hid_t access), (at, name, access))
/* clang-format on */
