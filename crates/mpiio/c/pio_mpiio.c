/* MPI-IO under an unmodified MPI program: the functions that the program calls.
 *
 * Thin by intent: it turns MPI's handles into plain values, hands them to the core, and turns what the core says into
 * MPI's return codes. It decides nothing about I/O. Handles that are not ours go to the MPI's own functions.
 */
#define _GNU_SOURCE
#include "pio_native.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The header that takes datatypes apart calls MPI by name: here, through the table. */
#define PMPI_Type_free pio.Type_free
#define PMPI_Type_get_contents pio.Type_get_contents
#define PMPI_Type_get_contents_c pio.Type_get_contents_c
#define PMPI_Type_get_envelope pio.Type_get_envelope
#define PMPI_Type_get_envelope_c pio.Type_get_envelope_c
#define PMPI_Type_get_extent_x pio.Type_get_extent_x
#define PMPI_Type_size_x pio.Type_size_x
#include "pio_datatype.h"

/* An open file of ours: what an MPI_File of the program points to. */
struct pio_file {
  pio_core_file *core;
  const pio_communicator *communicator;
  int amode;
  MPI_Errhandler errhandler;
  MPI_Datatype etype, filetype;
  char representation[MPI_MAX_DATAREP_STRING + 1];
  /* A split collective operation that has begun: its kind, and what it moved. */
  const char *split;
  uint64_t split_moved;
};

/* An error handler that the program made for files. The program may free it while files still use it. */
struct pio_errhandler {
  MPI_Errhandler handle;
  MPI_File_errhandler_function *function;
  int references;
  struct pio_errhandler *next;
};

static pthread_mutex_t pio_lock = PTHREAD_MUTEX_INITIALIZER;
static const struct pio_core *pio_core;
static int pio_comm_keyval, pio_type_keyval;
static struct pio_file **pio_files;
static int pio_file_slots;
static struct pio_errhandler *pio_errhandlers;
/* The error handler of MPI_FILE_NULL, which files inherit; unset: errors are returned. */
static MPI_Errhandler pio_default_errhandler;
static int pio_default_errhandler_set;

/* Fortran numbers of our files: far from those of any MPI. */
enum { PIO_FORTRAN_BASE = 0x50494f00 };

#define PIO_CALLER __builtin_return_address(0)
#define PIO_NATIVE(name)                                         \
  ({                                                             \
    static __typeof__(&name) native_;                            \
    if (native_ == NULL) native_ = (__typeof__(&name))pio_next(#name); \
    native_;                                                     \
  })
#define PIO_OWN_OR_FORWARD(name, handle, ...)     \
  struct pio_file *file;                          \
  pio_find_mpi(PIO_CALLER);                       \
  file = pio_own(handle);                         \
  if (file == NULL) return PIO_NATIVE(name)(__VA_ARGS__)

/* --- Our handles -------------------------------------------------------------------------------------------------- */

static int pio_slot_of(MPI_File handle) {
  for (int slot = 0; slot < pio_file_slots; slot++)
    if (pio_files[slot] != NULL && (void *)pio_files[slot] == (void *)handle) return slot;
  return -1;
}

static struct pio_file *pio_own(MPI_File handle) {
  int slot;
  pthread_mutex_lock(&pio_lock);
  slot = pio_slot_of(handle);
  pthread_mutex_unlock(&pio_lock);
  return slot < 0 ? NULL : (struct pio_file *)(void *)handle;
}

static int pio_keep(struct pio_file *file) {
  int slot, error = MPI_SUCCESS;
  pthread_mutex_lock(&pio_lock);
  for (slot = 0; slot < pio_file_slots && pio_files[slot] != NULL; slot++) {
  }
  if (slot == pio_file_slots) {
    int slots = slot ? 2 * slot : 16;
    struct pio_file **files = realloc(pio_files, (size_t)slots * sizeof *files);
    if (files == NULL) {
      error = MPI_ERR_NO_MEM;
    } else {
      memset(files + slot, 0, (size_t)(slots - slot) * sizeof *files);
      pio_files = files;
      pio_file_slots = slots;
    }
  }
  if (error == MPI_SUCCESS) pio_files[slot] = file;
  pthread_mutex_unlock(&pio_lock);
  return error;
}

static void pio_forget_file(struct pio_file *file) {
  int slot;
  pthread_mutex_lock(&pio_lock);
  slot = pio_slot_of((MPI_File)(void *)file);
  if (slot >= 0) pio_files[slot] = NULL;
  pthread_mutex_unlock(&pio_lock);
}

/* --- Errors ------------------------------------------------------------------------------------------------------- */

static int pio_class(int status) {
  switch (status) {
    case PIO_SUCCESS: return MPI_SUCCESS;
    case PIO_ACCESS: return MPI_ERR_ACCESS;
    case PIO_AMODE: return MPI_ERR_AMODE;
    case PIO_ARGUMENT: return MPI_ERR_ARG;
    case PIO_BAD_FILE: return MPI_ERR_BAD_FILE;
    case PIO_FILE_EXISTS: return MPI_ERR_FILE_EXISTS;
    case PIO_FILE_IN_USE: return MPI_ERR_FILE_IN_USE;
    case PIO_IO: return MPI_ERR_IO;
    case PIO_NO_SPACE: return MPI_ERR_NO_SPACE;
    case PIO_NO_SUCH_FILE: return MPI_ERR_NO_SUCH_FILE;
    case PIO_QUOTA: return MPI_ERR_QUOTA;
    case PIO_READ_ONLY: return MPI_ERR_READ_ONLY;
    case PIO_TYPE: return MPI_ERR_TYPE;
    case PIO_UNSUPPORTED: return MPI_ERR_UNSUPPORTED_OPERATION;
    case PIO_NO_MEMORY: return MPI_ERR_NO_MEM;
    case PIO_DATA_REPRESENTATION: return MPI_ERR_UNSUPPORTED_DATAREP;
    case PIO_FILE: return MPI_ERR_FILE;
    case PIO_COUNT: return MPI_ERR_COUNT;
    case PIO_COMMUNICATOR: return MPI_ERR_COMM;
    default: return MPI_ERR_INTERN;
  }
}

static struct pio_errhandler *pio_errhandler_of(MPI_Errhandler handle) {
  struct pio_errhandler *known = pio_errhandlers;
  while (known != NULL && known->handle != handle) known = known->next;
  return known;
}

/* Adds to the references of an error handler of the program; frees it with the last. */
static int pio_refer(MPI_Errhandler handle, int references) {
  struct pio_errhandler **link, *known, *freed = NULL;
  int error = MPI_SUCCESS;
  pthread_mutex_lock(&pio_lock);
  known = pio_errhandler_of(handle);
  if (known != NULL && (known->references += references) == 0) {
    for (link = &pio_errhandlers; *link != known; link = &(*link)->next) {
    }
    *link = known->next;
    freed = known;
  }
  pthread_mutex_unlock(&pio_lock);
  if (freed != NULL) {
    error = pio.Errhandler_free(&freed->handle);
    free(freed);
  }
  return error;
}

static MPI_Errhandler pio_inherited_errhandler(void) {
  return pio_default_errhandler_set ? pio_default_errhandler : pio.errors_return;
}

/* Ends the job. Some MPIs' MPI_Abort returns before the launcher's signal comes. */
static void pio_abort(MPI_Comm comm, int code) {
  pio.Abort(comm, code);
  _exit(EXIT_FAILURE);
}

/* Calls the error handler of `file`, or of MPI_FILE_NULL, and gives the code to return. */
static int pio_raise(struct pio_file *file, const char *function, int code) {
  MPI_Errhandler handle = file != NULL ? file->errhandler : pio_inherited_errhandler();
  MPI_File argument = file != NULL ? (MPI_File)(void *)file : pio.file_null;
  MPI_File_errhandler_function *user = NULL;
  struct pio_errhandler *known;
  if (code == MPI_SUCCESS || handle == pio.errors_return) return code;
  pthread_mutex_lock(&pio_lock);
  known = pio_errhandler_of(handle);
  if (known != NULL) user = known->function;
  pthread_mutex_unlock(&pio_lock);
  if (user != NULL) {
    user(&argument, &code);
  } else if (handle == pio.errors_are_fatal || handle == pio.errors_abort) {
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    if (pio.Error_string(code, text, &length) != MPI_SUCCESS) length = 0;
    fprintf(stderr, "pioscope: %s: %.*s: the file's error handler ends the program\n", function, length, text);
    pio_abort(file != NULL && handle == pio.errors_abort ? file->communicator->comm : pio.comm_world, code);
  }
  return code;
}

static int pio_refuse(struct pio_file *file, const char *function) {
  fprintf(stderr, "pioscope: %s is not supported on a file that pioscope carries out\n", function);
  return pio_raise(file, function, MPI_ERR_UNSUPPORTED_OPERATION);
}

/* --- What the core keeps with communicators and datatypes --------------------------------------------------------- */

static int pio_comm_copied(MPI_Comm comm, int keyval, void *extra, void *value, void *copy, int *flag) {
  (void)comm, (void)keyval, (void)extra, (void)value, (void)copy;
  *flag = 0;
  return MPI_SUCCESS;
}

static int pio_comm_deleted(MPI_Comm comm, int keyval, void *value, void *extra) {
  (void)keyval, (void)extra;
  /* MPI_COMM_WORLD goes when MPI ends: no communication any more. */
  pio_core->forget(value, comm != pio.comm_world);
  return MPI_SUCCESS;
}

static int pio_type_copied(MPI_Datatype type, int keyval, void *extra, void *value, void *copy, int *flag) {
  (void)type, (void)keyval, (void)extra, (void)value, (void)copy;
  *flag = 0;
  return MPI_SUCCESS;
}

static int pio_type_deleted(MPI_Datatype type, int keyval, void *value, void *extra) {
  (void)type, (void)keyval, (void)extra;
  pio_core->type_free(value);
  return MPI_SUCCESS;
}

/* Loads the core. A job must not go on with some ranks carried out by us and some not: what is wrong ends it. */
static void pio_load(void) {
  const char *path = getenv("PIOSCOPE_MPIIO_CORE");
  pthread_mutex_lock(&pio_lock);
  if (pio_core == NULL) {
    void *library = path != NULL ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    pio_attach *attach = library != NULL ? (pio_attach *)dlsym(library, PIO_ATTACH) : NULL;
    const struct pio_core *core = attach != NULL ? attach(PIO_VERSION, &pio_table) : NULL;
    if (path == NULL) {
      fprintf(stderr, "pioscope: PIOSCOPE_MPIIO_CORE is not set: start the program with 'pioscope apply'\n");
    } else if (library == NULL) {
      fprintf(stderr, "pioscope: cannot load %s: %s\n", path, dlerror());
    } else if (attach == NULL) {
      fprintf(stderr, "pioscope: %s is not the MPI-IO core: it has no %s\n", path, PIO_ATTACH);
    }
    if (core == NULL || pio.Comm_create_keyval(pio_comm_copied, pio_comm_deleted, &pio_comm_keyval, NULL) ||
        pio.Type_create_keyval(pio_type_copied, pio_type_deleted, &pio_type_keyval, NULL)) {
      pio_abort(pio.comm_world, MPI_ERR_OTHER);
    }
    pio_core = core;
  }
  pthread_mutex_unlock(&pio_lock);
}

/* The core's form of a datatype. It stays with the datatype, so that it is made once. */
static int pio_type_of(MPI_Datatype type, const pio_type **found) {
  unsigned char *description = NULL;
  size_t length = 0;
  void *value = NULL;
  int flag = 0;
  *found = NULL;
  if (type == pio.datatype_null) return PIO_TYPE;
  if (pio.Type_get_attr(type, pio_type_keyval, &value, &flag) != MPI_SUCCESS) return PIO_TYPE;
  if (!flag) {
    if (pio_datatype_describe(type, &description, &length) != MPI_SUCCESS) return PIO_TYPE;
    value = pio_core->type_create(description, length);
    free(description);
    if (value == NULL || pio.Type_set_attr(type, pio_type_keyval, value) != MPI_SUCCESS) return PIO_TYPE;
  }
  *found = value;
  return PIO_SUCCESS;
}

enum { PIO_MOST_HINTS = 16 };

/* The hints of an info object that we can know. */
static uint64_t pio_hints_of(MPI_Info info, struct pio_hint *hints) {
  static const char *const keys[] = {"cb_nodes", "cb_buffer_size", "striping_unit", "striping_factor"};
  uint64_t count = 0;
  if (info == pio.info_null) return 0;
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    struct pio_hint *hint = &hints[count];
    char value[sizeof hint->value];
    int flag = 0;
    if (pio.Info_get(info, keys[i], (int)sizeof value - 1, value, &flag) != MPI_SUCCESS || !flag) continue;
    snprintf(hint->key, sizeof hint->key, "%s", keys[i]);
    snprintf(hint->value, sizeof hint->value, "%s", value);
    count++;
  }
  return count;
}

static void pio_set_status(MPI_Status *status, uint64_t moved) {
  if (status == MPI_STATUS_IGNORE) return;
  pio.PIO_STATUS_SET_ELEMENTS(status, pio.byte, (MPI_Count)moved);
  pio.Status_set_cancelled(status, 0);
}

/* --- Opening and closing ------------------------------------------------------------------------------------------ */

static int pio_mode_of(int amode) {
  return (amode & MPI_MODE_RDONLY ? PIO_READ_ONLY_MODE : 0) | (amode & MPI_MODE_WRONLY ? PIO_WRITE_ONLY_MODE : 0) |
         (amode & MPI_MODE_RDWR ? PIO_READ_WRITE_MODE : 0) | (amode & MPI_MODE_CREATE ? PIO_CREATE_MODE : 0) |
         (amode & MPI_MODE_EXCL ? PIO_EXCLUSIVE_MODE : 0) |
         (amode & MPI_MODE_DELETE_ON_CLOSE ? PIO_DELETE_ON_CLOSE_MODE : 0) |
         (amode & MPI_MODE_UNIQUE_OPEN ? PIO_UNIQUE_OPEN_MODE : 0) |
         (amode & MPI_MODE_SEQUENTIAL ? PIO_SEQUENTIAL_MODE : 0) | (amode & MPI_MODE_APPEND ? PIO_APPEND_MODE : 0);
}

/* Duplicates a datatype for keeping, or for the program; predefined ones are their own duplicates. */
static int pio_type_kept(MPI_Datatype type, MPI_Datatype *kept) {
  int ints, addresses, types, combiner;
  int error = pio.Type_get_envelope(type, &ints, &addresses, &types, &combiner);
  if (error != MPI_SUCCESS) return error;
  *kept = type;
  return pio_datatype_is_basic(combiner) ? MPI_SUCCESS : pio.Type_dup(type, kept);
}

int MPI_File_open(MPI_Comm comm, const char *filename, int amode, MPI_Info info, MPI_File *fh) {
  struct pio_communicator communicator = {comm};
  struct pio_hint hints[PIO_MOST_HINTS];
  struct pio_file *file;
  pio_cache *cache = NULL, *cached;
  void *value = NULL;
  int flag = 0, status;

  pio_find_mpi(PIO_CALLER);
  pio_load();
  *fh = pio.file_null;
  if (comm == pio.comm_null || pio.Comm_test_inter(comm, &flag) != MPI_SUCCESS || flag)
    return pio_raise(NULL, "MPI_File_open", MPI_ERR_COMM);
  file = calloc(1, sizeof *file);
  if (file == NULL) return pio_raise(NULL, "MPI_File_open", MPI_ERR_NO_MEM);

  if (pio.Comm_get_attr(comm, pio_comm_keyval, &value, &flag) == MPI_SUCCESS && flag) cache = value;
  cached = cache;
  status = pio_core->open(&communicator, &cache, filename, pio_mode_of(amode), hints, pio_hints_of(info, hints),
                          &file->core, &file->communicator);
  if (cache != cached) pio.Comm_set_attr(comm, pio_comm_keyval, cache);
  if (status != PIO_SUCCESS) {
    free(file);
    return pio_raise(NULL, "MPI_File_open", pio_class(status));
  }
  file->amode = amode;
  file->etype = file->filetype = pio.byte;
  strcpy(file->representation, "native");
  file->errhandler = pio_inherited_errhandler();
  pio_refer(file->errhandler, 1);
  if (pio_keep(file) != MPI_SUCCESS) {
    pio_core->close(file->core);
    free(file);
    return pio_raise(NULL, "MPI_File_open", MPI_ERR_NO_MEM);
  }
  *fh = (MPI_File)(void *)file;
  return MPI_SUCCESS;
}

int MPI_File_close(MPI_File *fh) {
  PIO_OWN_OR_FORWARD(MPI_File_close, *fh, fh);
  int status = pio_core->close(file->core);
  int code = pio_raise(file, "MPI_File_close", pio_class(status));
  pio_forget_file(file);
  pio_datatype_release(&file->etype);
  pio_datatype_release(&file->filetype);
  pio_refer(file->errhandler, -1);
  free(file);
  *fh = pio.file_null;
  return code;
}

int MPI_File_delete(const char *filename, MPI_Info info) {
  (void)info;
  pio_find_mpi(PIO_CALLER);
  pio_load();
  return pio_raise(NULL, "MPI_File_delete", pio_class(pio_core->remove(filename)));
}

/* --- Views, sizes, positions -------------------------------------------------------------------------------------- */

int MPI_File_set_view(MPI_File fh, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, const char *datarep,
                      MPI_Info info) {
  PIO_OWN_OR_FORWARD(MPI_File_set_view, fh, fh, disp, etype, filetype, datarep, info);
  struct pio_hint hints[PIO_MOST_HINTS];
  const pio_type *core_etype = NULL, *core_filetype = NULL;
  MPI_Datatype kept_etype, kept_filetype;
  int status = pio_type_of(etype, &core_etype);
  if (status == PIO_SUCCESS) status = pio_type_of(filetype, &core_filetype);
  /* With types that are none, the rank still takes part in what is collective. */
  int told = pio_core->set_view(file->core, disp, core_etype, core_filetype, datarep, hints,
                                pio_hints_of(info, hints));
  if (status == PIO_SUCCESS) status = told;
  if (status == PIO_SUCCESS && pio_type_kept(etype, &kept_etype) == MPI_SUCCESS &&
      pio_type_kept(filetype, &kept_filetype) == MPI_SUCCESS) {
    pio_datatype_release(&file->etype);
    pio_datatype_release(&file->filetype);
    file->etype = kept_etype;
    file->filetype = kept_filetype;
    snprintf(file->representation, sizeof file->representation, "%s", datarep);
  }
  return pio_raise(file, "MPI_File_set_view", pio_class(status));
}

int MPI_File_get_view(MPI_File fh, MPI_Offset *disp, MPI_Datatype *etype, MPI_Datatype *filetype, char *datarep) {
  PIO_OWN_OR_FORWARD(MPI_File_get_view, fh, fh, disp, etype, filetype, datarep);
  int64_t displacement = 0;
  int code = pio_class(pio_core->displacement(file->core, &displacement));
  *disp = displacement;
  if (code == MPI_SUCCESS) code = pio_type_kept(file->etype, etype);
  if (code == MPI_SUCCESS) code = pio_type_kept(file->filetype, filetype);
  strcpy(datarep, file->representation);
  return pio_raise(file, "MPI_File_get_view", code);
}

int MPI_File_seek(MPI_File fh, MPI_Offset offset, int whence) {
  PIO_OWN_OR_FORWARD(MPI_File_seek, fh, fh, offset, whence);
  int from = whence == MPI_SEEK_SET ? PIO_SEEK_SET
             : whence == MPI_SEEK_CUR ? PIO_SEEK_CURRENT
             : whence == MPI_SEEK_END ? PIO_SEEK_END
                                      : -1;
  return pio_raise(file, "MPI_File_seek", pio_class(pio_core->seek(file->core, offset, from)));
}

int MPI_File_get_position(MPI_File fh, MPI_Offset *offset) {
  PIO_OWN_OR_FORWARD(MPI_File_get_position, fh, fh, offset);
  int64_t position = 0;
  int status = pio_core->position(file->core, &position);
  *offset = position;
  return pio_raise(file, "MPI_File_get_position", pio_class(status));
}

int MPI_File_get_byte_offset(MPI_File fh, MPI_Offset offset, MPI_Offset *disp) {
  PIO_OWN_OR_FORWARD(MPI_File_get_byte_offset, fh, fh, offset, disp);
  int64_t byte = 0;
  int status = pio_core->byte_offset(file->core, offset, &byte);
  *disp = byte;
  return pio_raise(file, "MPI_File_get_byte_offset", pio_class(status));
}

int MPI_File_sync(MPI_File fh) {
  PIO_OWN_OR_FORWARD(MPI_File_sync, fh, fh);
  return pio_raise(file, "MPI_File_sync", pio_class(pio_core->sync(file->core)));
}

int MPI_File_get_size(MPI_File fh, MPI_Offset *size) {
  PIO_OWN_OR_FORWARD(MPI_File_get_size, fh, fh, size);
  int64_t bytes = 0;
  int status = pio_core->get_size(file->core, &bytes);
  *size = bytes;
  return pio_raise(file, "MPI_File_get_size", pio_class(status));
}

int MPI_File_set_size(MPI_File fh, MPI_Offset size) {
  PIO_OWN_OR_FORWARD(MPI_File_set_size, fh, fh, size);
  return pio_raise(file, "MPI_File_set_size", pio_class(pio_core->set_size(file->core, size)));
}

int MPI_File_preallocate(MPI_File fh, MPI_Offset size) {
  PIO_OWN_OR_FORWARD(MPI_File_preallocate, fh, fh, size);
  return pio_raise(file, "MPI_File_preallocate", pio_class(pio_core->preallocate(file->core, size)));
}

int MPI_File_get_amode(MPI_File fh, int *amode) {
  PIO_OWN_OR_FORWARD(MPI_File_get_amode, fh, fh, amode);
  *amode = file->amode;
  return MPI_SUCCESS;
}

int MPI_File_get_group(MPI_File fh, MPI_Group *group) {
  PIO_OWN_OR_FORWARD(MPI_File_get_group, fh, fh, group);
  return pio_raise(file, "MPI_File_get_group", pio.Comm_group(file->communicator->comm, group));
}

int MPI_File_get_type_extent(MPI_File fh, MPI_Datatype datatype, MPI_Aint *extent) {
  PIO_OWN_OR_FORWARD(MPI_File_get_type_extent, fh, fh, datatype, extent);
  MPI_Aint lower_bound;
  int code = datatype == pio.datatype_null ? MPI_ERR_TYPE : pio.Type_get_extent(datatype, &lower_bound, extent);
  return pio_raise(file, "MPI_File_get_type_extent", code);
}

int MPI_File_set_info(MPI_File fh, MPI_Info info) {
  PIO_OWN_OR_FORWARD(MPI_File_set_info, fh, fh, info);
  struct pio_hint hints[PIO_MOST_HINTS];
  int status = pio_core->set_hints(file->core, hints, pio_hints_of(info, hints));
  return pio_raise(file, "MPI_File_set_info", pio_class(status));
}

int MPI_File_get_info(MPI_File fh, MPI_Info *info_used) {
  PIO_OWN_OR_FORWARD(MPI_File_get_info, fh, fh, info_used);
  struct pio_hint hints[PIO_MOST_HINTS];
  int count = pio_core->get_hints(file->core, hints, PIO_MOST_HINTS);
  int code = pio.Info_create(info_used);
  for (int i = 0; i < count && code == MPI_SUCCESS; i++) code = pio.Info_set(*info_used, hints[i].key, hints[i].value);
  return pio_raise(file, "MPI_File_get_info", code);
}

int MPI_File_set_atomicity(MPI_File fh, int flag) {
  PIO_OWN_OR_FORWARD(MPI_File_set_atomicity, fh, fh, flag);
  return flag ? pio_refuse(file, "MPI_File_set_atomicity(true)") : MPI_SUCCESS;
}

int MPI_File_get_atomicity(MPI_File fh, int *flag) {
  PIO_OWN_OR_FORWARD(MPI_File_get_atomicity, fh, fh, flag);
  *flag = 0;
  return MPI_SUCCESS;
}

/* --- Error handlers and Fortran numbers --------------------------------------------------------------------------- */

int MPI_File_create_errhandler(MPI_File_errhandler_function *function, MPI_Errhandler *errhandler) {
  pio_find_mpi(PIO_CALLER);
  int code = PIO_NATIVE(MPI_File_create_errhandler)(function, errhandler);
  struct pio_errhandler *known = code == MPI_SUCCESS ? malloc(sizeof *known) : NULL;
  if (known == NULL) return code;
  known->handle = *errhandler;
  known->function = function;
  known->references = 1;
  pthread_mutex_lock(&pio_lock);
  known->next = pio_errhandlers;
  pio_errhandlers = known;
  pthread_mutex_unlock(&pio_lock);
  return code;
}

int MPI_Errhandler_free(MPI_Errhandler *errhandler) {
  pio_find_mpi(PIO_CALLER);
  pthread_mutex_lock(&pio_lock);
  int known = pio_errhandler_of(*errhandler) != NULL;
  pthread_mutex_unlock(&pio_lock);
  if (!known) return PIO_NATIVE(MPI_Errhandler_free)(errhandler);
  int code = pio_refer(*errhandler, -1);
  *errhandler = pio.errhandler_null;
  return code;
}

int MPI_File_set_errhandler(MPI_File fh, MPI_Errhandler errhandler) {
  pio_find_mpi(PIO_CALLER);
  struct pio_file *file = pio_own(fh);
  if (file == NULL) {
    int code = PIO_NATIVE(MPI_File_set_errhandler)(fh, errhandler);
    if (code == MPI_SUCCESS && fh == pio.file_null) {
      pio_refer(errhandler, 1);
      if (pio_default_errhandler_set) pio_refer(pio_default_errhandler, -1);
      pio_default_errhandler = errhandler;
      pio_default_errhandler_set = 1;
    }
    return code;
  }
  if (errhandler == pio.errhandler_null) return pio_raise(file, "MPI_File_set_errhandler", MPI_ERR_ARG);
  pio_refer(errhandler, 1);
  pio_refer(file->errhandler, -1);
  file->errhandler = errhandler;
  return MPI_SUCCESS;
}

int MPI_File_get_errhandler(MPI_File fh, MPI_Errhandler *errhandler) {
  PIO_OWN_OR_FORWARD(MPI_File_get_errhandler, fh, fh, errhandler);
  pio_refer(file->errhandler, 1);
  *errhandler = file->errhandler;
  return MPI_SUCCESS;
}

int MPI_File_call_errhandler(MPI_File fh, int errorcode) {
  PIO_OWN_OR_FORWARD(MPI_File_call_errhandler, fh, fh, errorcode);
  pio_raise(file, "MPI_File_call_errhandler", errorcode);
  return MPI_SUCCESS;
}

static int pio_number_of(MPI_File fh) {
  pthread_mutex_lock(&pio_lock);
  int slot = pio_slot_of(fh);
  pthread_mutex_unlock(&pio_lock);
  return slot < 0 ? -1 : PIO_FORTRAN_BASE + slot;
}

static struct pio_file *pio_numbered(int number) {
  struct pio_file *file = NULL;
  pthread_mutex_lock(&pio_lock);
  int slot = number - PIO_FORTRAN_BASE;
  if (slot >= 0 && slot < pio_file_slots) file = pio_files[slot];
  pthread_mutex_unlock(&pio_lock);
  return file;
}

/* The standard ABI's header has none of Fortran's. */
#ifndef MPI_H_ABI
MPI_Fint MPI_File_c2f(MPI_File file) {
  int number;
  pio_find_mpi(PIO_CALLER);
  number = pio_number_of(file);
  return number >= 0 ? (MPI_Fint)number : PIO_NATIVE(MPI_File_c2f)(file);
}

MPI_File MPI_File_f2c(MPI_Fint number) {
  struct pio_file *file;
  pio_find_mpi(PIO_CALLER);
  file = pio_numbered((int)number);
  return file != NULL ? (MPI_File)(void *)file : PIO_NATIVE(MPI_File_f2c)(number);
}
#endif

#if MPI_VERSION >= 5
int MPI_File_toint(MPI_File file) {
  int number;
  pio_find_mpi(PIO_CALLER);
  number = pio_number_of(file);
  return number >= 0 ? number : PIO_NATIVE(MPI_File_toint)(file);
}

MPI_File MPI_File_fromint(int number) {
  struct pio_file *file;
  pio_find_mpi(PIO_CALLER);
  file = pio_numbered(number);
  return file != NULL ? (MPI_File)(void *)file : PIO_NATIVE(MPI_File_fromint)(number);
}
#endif

/* --- Reading and writing ------------------------------------------------------------------------------------------ */

static int pio_transfer(struct pio_file *file, const char *function, int how, MPI_Offset offset, const void *buffer,
                        MPI_Count count, MPI_Datatype type, uint64_t *moved) {
  struct pio_memory memory = {(void *)buffer, 0, NULL};
  int status = pio_type_of(type, &memory.type);
  if (count < 0) status = PIO_COUNT;
  if (status == PIO_SUCCESS) memory.count = (uint64_t)count;
  *moved = 0;
  status = pio_core->transfer(file->core, how, offset, &memory, status, moved);
  return pio_raise(file, function, pio_class(status));
}

static int pio_blocking(struct pio_file *file, const char *function, int how, MPI_Offset offset, const void *buffer,
                        MPI_Count count, MPI_Datatype type, MPI_Status *status) {
  uint64_t moved;
  int code = pio_transfer(file, function, how, offset, buffer, count, type, &moved);
  pio_set_status(status, moved);
  return code;
}

#define PIO_BLOCKING(name, constant, integer, how)                                                           \
  int name(MPI_File fh, constant void *buf, integer count, MPI_Datatype datatype, MPI_Status *status) {      \
    PIO_OWN_OR_FORWARD(name, fh, fh, buf, count, datatype, status);                                          \
    return pio_blocking(file, #name, how, 0, buf, count, datatype, status);                                  \
  }
#define PIO_BLOCKING_AT(name, constant, integer, how)                                                        \
  int name(MPI_File fh, MPI_Offset offset, constant void *buf, integer count, MPI_Datatype datatype,         \
           MPI_Status *status) {                                                                             \
    PIO_OWN_OR_FORWARD(name, fh, fh, offset, buf, count, datatype, status);                                  \
    return pio_blocking(file, #name, (how) | PIO_EXPLICIT_OFFSET, offset, buf, count, datatype, status);     \
  }

PIO_BLOCKING(MPI_File_read, , int, 0)
PIO_BLOCKING(MPI_File_read_all, , int, PIO_COLLECTIVE)
PIO_BLOCKING(MPI_File_write, const, int, PIO_WRITE)
PIO_BLOCKING(MPI_File_write_all, const, int, PIO_WRITE | PIO_COLLECTIVE)
PIO_BLOCKING_AT(MPI_File_read_at, , int, 0)
PIO_BLOCKING_AT(MPI_File_read_at_all, , int, PIO_COLLECTIVE)
PIO_BLOCKING_AT(MPI_File_write_at, const, int, PIO_WRITE)
PIO_BLOCKING_AT(MPI_File_write_at_all, const, int, PIO_WRITE | PIO_COLLECTIVE)

#if PIO_LARGE_COUNT
PIO_BLOCKING(MPI_File_read_c, , MPI_Count, 0)
PIO_BLOCKING(MPI_File_read_all_c, , MPI_Count, PIO_COLLECTIVE)
PIO_BLOCKING(MPI_File_write_c, const, MPI_Count, PIO_WRITE)
PIO_BLOCKING(MPI_File_write_all_c, const, MPI_Count, PIO_WRITE | PIO_COLLECTIVE)
PIO_BLOCKING_AT(MPI_File_read_at_c, , MPI_Count, 0)
PIO_BLOCKING_AT(MPI_File_read_at_all_c, , MPI_Count, PIO_COLLECTIVE)
PIO_BLOCKING_AT(MPI_File_write_at_c, const, MPI_Count, PIO_WRITE)
PIO_BLOCKING_AT(MPI_File_write_at_all_c, const, MPI_Count, PIO_WRITE | PIO_COLLECTIVE)

int MPI_File_get_type_extent_c(MPI_File fh, MPI_Datatype datatype, MPI_Count *extent) {
  PIO_OWN_OR_FORWARD(MPI_File_get_type_extent_c, fh, fh, datatype, extent);
  MPI_Count lower_bound;
  int code = datatype == pio.datatype_null ? MPI_ERR_TYPE : pio.Type_get_extent_x(datatype, &lower_bound, extent);
  return pio_raise(file, "MPI_File_get_type_extent_c", code);
}
#endif

/* Split collective operations: all is done at the beginning, the end says what was moved. */

static int pio_begin(struct pio_file *file, const char *function, const char *kind, int how, MPI_Offset offset,
                     const void *buffer, MPI_Count count, MPI_Datatype type) {
  if (file->split != NULL) return pio_raise(file, function, MPI_ERR_REQUEST);
  int code = pio_transfer(file, function, how | PIO_COLLECTIVE, offset, buffer, count, type, &file->split_moved);
  if (code == MPI_SUCCESS) file->split = kind;
  return code;
}

static int pio_end(struct pio_file *file, const char *function, const char *kind, MPI_Status *status) {
  if (file->split == NULL || strcmp(file->split, kind) != 0) return pio_raise(file, function, MPI_ERR_REQUEST);
  file->split = NULL;
  pio_set_status(status, file->split_moved);
  return MPI_SUCCESS;
}

#define PIO_BEGIN(name, kind, constant, integer, how)                                                        \
  int name(MPI_File fh, constant void *buf, integer count, MPI_Datatype datatype) {                          \
    PIO_OWN_OR_FORWARD(name, fh, fh, buf, count, datatype);                                                  \
    return pio_begin(file, #name, kind, how, 0, buf, count, datatype);                                       \
  }
#define PIO_BEGIN_AT(name, kind, constant, integer, how)                                                     \
  int name(MPI_File fh, MPI_Offset offset, constant void *buf, integer count, MPI_Datatype datatype) {       \
    PIO_OWN_OR_FORWARD(name, fh, fh, offset, buf, count, datatype);                                          \
    return pio_begin(file, #name, kind, (how) | PIO_EXPLICIT_OFFSET, offset, buf, count, datatype);          \
  }
#define PIO_END(name, kind, constant)                                                                        \
  int name(MPI_File fh, constant void *buf, MPI_Status *status) {                                            \
    PIO_OWN_OR_FORWARD(name, fh, fh, buf, status);                                                           \
    return pio_end(file, #name, kind, status);                                                               \
  }

PIO_BEGIN(MPI_File_read_all_begin, "read", , int, 0)
PIO_BEGIN(MPI_File_write_all_begin, "write", const, int, PIO_WRITE)
PIO_BEGIN_AT(MPI_File_read_at_all_begin, "read_at", , int, 0)
PIO_BEGIN_AT(MPI_File_write_at_all_begin, "write_at", const, int, PIO_WRITE)
PIO_END(MPI_File_read_all_end, "read", )
PIO_END(MPI_File_write_all_end, "write", const)
PIO_END(MPI_File_read_at_all_end, "read_at", )
PIO_END(MPI_File_write_at_all_end, "write_at", const)
#if PIO_LARGE_COUNT
PIO_BEGIN(MPI_File_read_all_begin_c, "read", , MPI_Count, 0)
PIO_BEGIN(MPI_File_write_all_begin_c, "write", const, MPI_Count, PIO_WRITE)
PIO_BEGIN_AT(MPI_File_read_at_all_begin_c, "read_at", , MPI_Count, 0)
PIO_BEGIN_AT(MPI_File_write_at_all_begin_c, "write_at", const, MPI_Count, PIO_WRITE)
#endif

/* Nonblocking independent operations: done at once, which MPI allows; the request is complete from the start. */

static int pio_request_query(void *state, MPI_Status *status) {
  pio_set_status(status, *(uint64_t *)state);
  status->MPI_SOURCE = MPI_UNDEFINED;
  status->MPI_TAG = MPI_UNDEFINED;
  return MPI_SUCCESS;
}

static int pio_request_free(void *state) {
  free(state);
  return MPI_SUCCESS;
}

static int pio_request_cancel(void *state, int complete) {
  (void)state, (void)complete;
  return MPI_SUCCESS;
}

static int pio_nonblocking(struct pio_file *file, const char *function, int how, MPI_Offset offset,
                           const void *buffer, MPI_Count count, MPI_Datatype type, MPI_Request *request) {
  uint64_t *moved = malloc(sizeof *moved);
  *request = pio.request_null;
  if (moved == NULL) return pio_raise(file, function, MPI_ERR_NO_MEM);
  int code = pio_transfer(file, function, how, offset, buffer, count, type, moved);
  if (code == MPI_SUCCESS)
    code = pio.Grequest_start(pio_request_query, pio_request_free, pio_request_cancel, moved, request);
  else
    free(moved);
  return code == MPI_SUCCESS ? pio.Grequest_complete(*request) : code;
}

#define PIO_NONBLOCKING(name, constant, integer, how)                                                        \
  int name(MPI_File fh, constant void *buf, integer count, MPI_Datatype datatype, MPI_Request *request) {    \
    PIO_OWN_OR_FORWARD(name, fh, fh, buf, count, datatype, request);                                         \
    return pio_nonblocking(file, #name, how, 0, buf, count, datatype, request);                              \
  }
#define PIO_NONBLOCKING_AT(name, constant, integer, how)                                                     \
  int name(MPI_File fh, MPI_Offset offset, constant void *buf, integer count, MPI_Datatype datatype,         \
           MPI_Request *request) {                                                                           \
    PIO_OWN_OR_FORWARD(name, fh, fh, offset, buf, count, datatype, request);                                 \
    return pio_nonblocking(file, #name, (how) | PIO_EXPLICIT_OFFSET, offset, buf, count, datatype, request); \
  }

PIO_NONBLOCKING(MPI_File_iread, , int, 0)
PIO_NONBLOCKING(MPI_File_iwrite, const, int, PIO_WRITE)
PIO_NONBLOCKING_AT(MPI_File_iread_at, , int, 0)
PIO_NONBLOCKING_AT(MPI_File_iwrite_at, const, int, PIO_WRITE)
#if PIO_LARGE_COUNT
PIO_NONBLOCKING(MPI_File_iread_c, , MPI_Count, 0)
PIO_NONBLOCKING(MPI_File_iwrite_c, const, MPI_Count, PIO_WRITE)
PIO_NONBLOCKING_AT(MPI_File_iread_at_c, , MPI_Count, 0)
PIO_NONBLOCKING_AT(MPI_File_iwrite_at_c, const, MPI_Count, PIO_WRITE)
#endif

/* --- What we do not carry out: nonblocking collective operations and shared file pointers ------------------------- */

#define PIO_REFUSED(name, constant, integer)                                                                 \
  int name(MPI_File fh, constant void *buf, integer count, MPI_Datatype datatype, MPI_Status *status) {      \
    PIO_OWN_OR_FORWARD(name, fh, fh, buf, count, datatype, status);                                          \
    pio_set_status(status, 0);                                                                               \
    return pio_refuse(file, #name);                                                                          \
  }
#define PIO_REFUSED_REQUEST(name, constant, integer)                                                         \
  int name(MPI_File fh, constant void *buf, integer count, MPI_Datatype datatype, MPI_Request *request) {    \
    PIO_OWN_OR_FORWARD(name, fh, fh, buf, count, datatype, request);                                         \
    *request = pio.request_null;                                                                             \
    return pio_refuse(file, #name);                                                                          \
  }
#define PIO_REFUSED_REQUEST_AT(name, constant, integer)                                                      \
  int name(MPI_File fh, MPI_Offset offset, constant void *buf, integer count, MPI_Datatype datatype,         \
           MPI_Request *request) {                                                                           \
    PIO_OWN_OR_FORWARD(name, fh, fh, offset, buf, count, datatype, request);                                 \
    *request = pio.request_null;                                                                             \
    return pio_refuse(file, #name);                                                                          \
  }
#define PIO_REFUSED_BEGIN(name, constant, integer)                                                           \
  int name(MPI_File fh, constant void *buf, integer count, MPI_Datatype datatype) {                          \
    PIO_OWN_OR_FORWARD(name, fh, fh, buf, count, datatype);                                                  \
    return pio_refuse(file, #name);                                                                          \
  }
#define PIO_REFUSED_END(name, constant)                                                                      \
  int name(MPI_File fh, constant void *buf, MPI_Status *status) {                                            \
    PIO_OWN_OR_FORWARD(name, fh, fh, buf, status);                                                           \
    pio_set_status(status, 0);                                                                               \
    return pio_refuse(file, #name);                                                                          \
  }

PIO_REFUSED(MPI_File_read_shared, , int)
PIO_REFUSED(MPI_File_write_shared, const, int)
PIO_REFUSED(MPI_File_read_ordered, , int)
PIO_REFUSED(MPI_File_write_ordered, const, int)
PIO_REFUSED_REQUEST(MPI_File_iread_shared, , int)
PIO_REFUSED_REQUEST(MPI_File_iwrite_shared, const, int)
PIO_REFUSED_BEGIN(MPI_File_read_ordered_begin, , int)
PIO_REFUSED_BEGIN(MPI_File_write_ordered_begin, const, int)
PIO_REFUSED_END(MPI_File_read_ordered_end, )
PIO_REFUSED_END(MPI_File_write_ordered_end, const)
#if MPI_VERSION > 3 || (MPI_VERSION == 3 && MPI_SUBVERSION >= 1)
PIO_REFUSED_REQUEST(MPI_File_iread_all, , int)
PIO_REFUSED_REQUEST(MPI_File_iwrite_all, const, int)
PIO_REFUSED_REQUEST_AT(MPI_File_iread_at_all, , int)
PIO_REFUSED_REQUEST_AT(MPI_File_iwrite_at_all, const, int)
#endif
#if PIO_LARGE_COUNT
PIO_REFUSED(MPI_File_read_shared_c, , MPI_Count)
PIO_REFUSED(MPI_File_write_shared_c, const, MPI_Count)
PIO_REFUSED(MPI_File_read_ordered_c, , MPI_Count)
PIO_REFUSED(MPI_File_write_ordered_c, const, MPI_Count)
PIO_REFUSED_REQUEST(MPI_File_iread_shared_c, , MPI_Count)
PIO_REFUSED_REQUEST(MPI_File_iwrite_shared_c, const, MPI_Count)
PIO_REFUSED_REQUEST(MPI_File_iread_all_c, , MPI_Count)
PIO_REFUSED_REQUEST(MPI_File_iwrite_all_c, const, MPI_Count)
PIO_REFUSED_REQUEST_AT(MPI_File_iread_at_all_c, , MPI_Count)
PIO_REFUSED_REQUEST_AT(MPI_File_iwrite_at_all_c, const, MPI_Count)
PIO_REFUSED_BEGIN(MPI_File_read_ordered_begin_c, , MPI_Count)
PIO_REFUSED_BEGIN(MPI_File_write_ordered_begin_c, const, MPI_Count)
#endif

int MPI_File_seek_shared(MPI_File fh, MPI_Offset offset, int whence) {
  PIO_OWN_OR_FORWARD(MPI_File_seek_shared, fh, fh, offset, whence);
  return pio_refuse(file, "MPI_File_seek_shared");
}

int MPI_File_get_position_shared(MPI_File fh, MPI_Offset *offset) {
  PIO_OWN_OR_FORWARD(MPI_File_get_position_shared, fh, fh, offset);
  return pio_refuse(file, "MPI_File_get_position_shared");
}
