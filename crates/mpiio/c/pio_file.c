/* MPI-IO under an unmodified MPI program: opening files, and what is asked of them beside reading and writing.
 *
 * Thin by intent: it turns MPI's handles into plain values, hands them to the core, and turns what the core says into
 * MPI's return codes. It decides nothing about I/O. Handles that are not ours go to the MPI's own functions.
 */
#define _GNU_SOURCE
#include "pio_shim.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

PIO_HIDDEN const struct pio_core *pio_core;

static pthread_mutex_t pio_lock = PTHREAD_MUTEX_INITIALIZER;
static int pio_comm_keyval;

/* --- What the core keeps with communicators --------------------------------------------------------- */

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
        pio_types_begin() != MPI_SUCCESS) {
      pio_abort(pio.comm_world, MPI_ERR_OTHER);
    }
    pio_core = core;
  }
  pthread_mutex_unlock(&pio_lock);
}

/* The hints of an info object, to be freed; NULL if there are none. Programs may put as many keys there as they like for
 * others: the core picks those that it knows. Without memory there are no hints, which are no more than wishes. */
static struct pio_hint *pio_hints_of(MPI_Info info, uint64_t *count) {
  struct pio_hint *hints;
  int keys = 0;
  *count = 0;
  if (info == pio.info_null || pio.Info_get_nkeys(info, &keys) != MPI_SUCCESS || keys <= 0) return NULL;
  hints = calloc((size_t)keys, sizeof *hints);
  for (int i = 0; hints != NULL && i < keys; i++) {
    struct pio_hint *hint = &hints[*count];
    char key[MPI_MAX_INFO_KEY + 1];
    int flag = 0;
    if (pio.Info_get_nthkey(info, i, key) != MPI_SUCCESS || strlen(key) >= sizeof hint->key) continue;
    strcpy(hint->key, key);
    if (pio.Info_get(info, key, (int)sizeof hint->value - 1, hint->value, &flag) == MPI_SUCCESS && flag) (*count)++;
  }
  return hints;
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

int pio_open(MPI_Comm comm, const char *filename, int amode, MPI_Info info, MPI_Errhandler errhandler, MPI_File *fh) {
  struct pio_communicator communicator = {comm};
  struct pio_hint *hints;
  uint64_t hint_count;
  struct pio_file *file;
  pio_cache *cache = NULL, *cached;
  void *value = NULL;
  int flag = 0, status;

  pio_load();
  *fh = pio.file_null;
  if (comm == pio.comm_null || pio.Comm_test_inter(comm, &flag) != MPI_SUCCESS || flag) return MPI_ERR_COMM;
  file = calloc(1, sizeof *file);
  if (file == NULL) return MPI_ERR_NO_MEM;

  if (pio.Comm_get_attr(comm, pio_comm_keyval, &value, &flag) == MPI_SUCCESS && flag) cache = value;
  cached = cache;
  hints = pio_hints_of(info, &hint_count);
  status = pio_core->open(&communicator, &cache, filename, pio_mode_of(amode), hints, hint_count, &file->core,
                          &file->communicator);
  free(hints);
  if (cache != cached) pio.Comm_set_attr(comm, pio_comm_keyval, cache);
  if (status != PIO_SUCCESS) {
    free(file);
    return pio_code(status);
  }
  file->amode = amode;
  file->etype = file->filetype = pio.byte;
  strcpy(file->representation, "native");
  file->name = strdup(filename);
  file->errhandler = errhandler;
  pio_refer(file->errhandler, 1);
  if (pio_keep(file) != MPI_SUCCESS) {
    pio_core->close(file->core);
    pio_core->free(file->core);
    free(file);
    return MPI_ERR_NO_MEM;
  }
  *fh = (MPI_File)(void *)file;
  return MPI_SUCCESS;
}

int MPI_File_open(MPI_Comm comm, const char *filename, int amode, MPI_Info info, MPI_File *fh) {
  pio_find_mpi(PIO_CALLER);
  int code = pio_open(comm, filename, pio_netcdf_amode(amode), info, pio_inherited_errhandler(), fh);
  if (code != MPI_SUCCESS) return pio_raise(NULL, "MPI_File_open", code);
  return pio_netcdf_empties(amode) ? MPI_File_set_size(*fh, 0) : MPI_SUCCESS;
}

int MPI_File_close(MPI_File *fh) {
  PIO_OWN_OR_FORWARD(MPI_File_close, *fh, fh);
  int code = pio_code(pio_core->close(file->core));
  /* The error handler may ask the file what it was. It is not told of what cannot be said any more. */
  MPI_Errhandler told = file->errhandler;
  file->errhandler = pio.errors_return;
  code = pio_tell(told, file, "MPI_File_close", code);
  pio_forget_file(file);
  pio_core->free(file->core);
  pio_refer(told, -1);
  pio_type_release(&file->etype);
  pio_type_release(&file->filetype);
  pio_refer(file->errhandler, -1);
  free(file->name);
  free(file);
  *fh = pio.file_null;
  return code;
}

int pio_delete(const char *filename) {
  pio_load();
  return pio_code(pio_core->remove(filename));
}

int MPI_File_delete(const char *filename, MPI_Info info) {
  (void)info;
  pio_find_mpi(PIO_CALLER);
  return pio_raise(NULL, "MPI_File_delete", pio_delete(filename));
}

/* --- Views, sizes, positions -------------------------------------------------------------------------------------- */

int MPI_File_set_view(MPI_File fh, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, const char *datarep,
                      MPI_Info info) {
  PIO_OWN_OR_FORWARD(MPI_File_set_view, fh, fh, disp, etype, filetype, datarep, info);
  uint64_t hint_count;
  struct pio_hint *hints = pio_hints_of(info, &hint_count);
  const pio_type *core_etype = NULL, *core_filetype = NULL;
  pio_type *own_etype = NULL, *own_filetype = NULL;
  MPI_Datatype kept_etype, kept_filetype;
  int found = 0, status;
  const struct pio_representation *representation = pio_representation_of(datarep, &found);
  int64_t displacement = disp == MPI_DISPLACEMENT_CURRENT ? PIO_DISPLACEMENT_CURRENT : disp;
  status = pio_type_of(etype, &core_etype);
  if (status == PIO_SUCCESS) status = pio_type_of(filetype, &core_filetype);
  if (representation != NULL && status == PIO_SUCCESS) {
    status = pio_type_in_file(etype, representation, &own_etype);
    if (status == PIO_SUCCESS) status = pio_type_in_file(filetype, representation, &own_filetype);
    core_etype = own_etype;
    core_filetype = own_filetype;
  }
  if (status == PIO_SUCCESS && !found) status = PIO_DATA_REPRESENTATION;
  /* With types that are none, the rank still takes part in what is collective. */
  int told = pio_core->set_view(file->core, displacement, status == PIO_SUCCESS ? core_etype : NULL, core_filetype,
                                hints, hint_count);
  free(hints);
  if (own_etype != NULL) pio_core->type_free(own_etype);
  if (own_filetype != NULL) pio_core->type_free(own_filetype);
  if (status == PIO_SUCCESS) status = told;
  if (status == PIO_SUCCESS && pio_type_kept(etype, &kept_etype) == MPI_SUCCESS &&
      pio_type_kept(filetype, &kept_filetype) == MPI_SUCCESS) {
    pio_type_release(&file->etype);
    pio_type_release(&file->filetype);
    file->etype = kept_etype;
    file->filetype = kept_filetype;
    file->converted = representation;
    snprintf(file->representation, sizeof file->representation, "%s", pio_representation_name(datarep));
  }
  return pio_raise(file, "MPI_File_set_view", pio_code(status));
}

int MPI_File_get_view(MPI_File fh, MPI_Offset *disp, MPI_Datatype *etype, MPI_Datatype *filetype, char *datarep) {
  PIO_OWN_OR_FORWARD(MPI_File_get_view, fh, fh, disp, etype, filetype, datarep);
  int64_t displacement = 0;
  int code = pio_code(pio_core->displacement(file->core, &displacement));
  *disp = displacement;
  if (code == MPI_SUCCESS) code = pio_type_kept(file->etype, etype);
  if (code == MPI_SUCCESS) code = pio_type_kept(file->filetype, filetype);
  strcpy(datarep, file->representation);
  return pio_raise(file, "MPI_File_get_view", code);
}

static int pio_whence_of(int whence) {
  return whence == MPI_SEEK_SET   ? PIO_SEEK_SET
         : whence == MPI_SEEK_CUR ? PIO_SEEK_CURRENT
         : whence == MPI_SEEK_END ? PIO_SEEK_END
                                  : -1;
}

int MPI_File_seek(MPI_File fh, MPI_Offset offset, int whence) {
  PIO_OWN_OR_FORWARD(MPI_File_seek, fh, fh, offset, whence);
  return pio_raise(file, "MPI_File_seek", pio_code(pio_core->seek(file->core, offset, pio_whence_of(whence))));
}

int MPI_File_seek_shared(MPI_File fh, MPI_Offset offset, int whence) {
  PIO_OWN_OR_FORWARD(MPI_File_seek_shared, fh, fh, offset, whence);
  int status = pio_core->seek_shared(file->core, offset, pio_whence_of(whence));
  return pio_raise(file, "MPI_File_seek_shared", pio_code(status));
}

int MPI_File_get_position(MPI_File fh, MPI_Offset *offset) {
  PIO_OWN_OR_FORWARD(MPI_File_get_position, fh, fh, offset);
  int64_t position = 0;
  int status = pio_core->position(file->core, &position);
  *offset = position;
  return pio_raise(file, "MPI_File_get_position", pio_code(status));
}

int MPI_File_get_position_shared(MPI_File fh, MPI_Offset *offset) {
  PIO_OWN_OR_FORWARD(MPI_File_get_position_shared, fh, fh, offset);
  int64_t position = 0;
  int status = pio_core->position_shared(file->core, &position);
  *offset = position;
  return pio_raise(file, "MPI_File_get_position_shared", pio_code(status));
}

int MPI_File_get_byte_offset(MPI_File fh, MPI_Offset offset, MPI_Offset *disp) {
  PIO_OWN_OR_FORWARD(MPI_File_get_byte_offset, fh, fh, offset, disp);
  int64_t byte = 0;
  int status = pio_core->byte_offset(file->core, offset, &byte);
  *disp = byte;
  return pio_raise(file, "MPI_File_get_byte_offset", pio_code(status));
}

int MPI_File_sync(MPI_File fh) {
  PIO_OWN_OR_FORWARD(MPI_File_sync, fh, fh);
  return pio_raise(file, "MPI_File_sync", pio_code(pio_core->sync(file->core)));
}

int MPI_File_get_size(MPI_File fh, MPI_Offset *size) {
  PIO_OWN_OR_FORWARD(MPI_File_get_size, fh, fh, size);
  int64_t bytes = 0;
  int status = pio_core->get_size(file->core, &bytes);
  *size = bytes;
  return pio_raise(file, "MPI_File_get_size", pio_code(status));
}

int MPI_File_set_size(MPI_File fh, MPI_Offset size) {
  PIO_OWN_OR_FORWARD(MPI_File_set_size, fh, fh, size);
  return pio_raise(file, "MPI_File_set_size", pio_code(pio_core->set_size(file->core, size)));
}

int MPI_File_preallocate(MPI_File fh, MPI_Offset size) {
  PIO_OWN_OR_FORWARD(MPI_File_preallocate, fh, fh, size);
  return pio_raise(file, "MPI_File_preallocate", pio_code(pio_core->preallocate(file->core, size)));
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

/* The extent that a datatype has in the file. */
static int pio_extent_in_file(const struct pio_file *file, MPI_Datatype datatype, MPI_Count *extent) {
  MPI_Count lower_bound;
  pio_type *type;
  if (datatype == pio.datatype_null) return MPI_ERR_TYPE;
  if (file->converted == NULL) return pio.Type_get_extent_x(datatype, &lower_bound, extent);
  int status = pio_type_in_file(datatype, file->converted, &type);
  if (status != PIO_SUCCESS) return pio_code(status);
  *extent = pio_core->type_extent(type);
  pio_core->type_free(type);
  return MPI_SUCCESS;
}

int MPI_File_get_type_extent(MPI_File fh, MPI_Datatype datatype, MPI_Aint *extent) {
  PIO_OWN_OR_FORWARD(MPI_File_get_type_extent, fh, fh, datatype, extent);
  MPI_Count bytes = 0;
  int code = pio_extent_in_file(file, datatype, &bytes);
  if (code == MPI_SUCCESS) *extent = (MPI_Aint)bytes;
  return pio_raise(file, "MPI_File_get_type_extent", code);
}

#if PIO_LARGE_COUNT
int MPI_File_get_type_extent_c(MPI_File fh, MPI_Datatype datatype, MPI_Count *extent) {
  PIO_OWN_OR_FORWARD(MPI_File_get_type_extent_c, fh, fh, datatype, extent);
  return pio_raise(file, "MPI_File_get_type_extent_c", pio_extent_in_file(file, datatype, extent));
}
PIO_PROFILING(MPI_File_get_type_extent_c)
#endif

int MPI_File_set_info(MPI_File fh, MPI_Info info) {
  PIO_OWN_OR_FORWARD(MPI_File_set_info, fh, fh, info);
  uint64_t hint_count;
  struct pio_hint *hints = pio_hints_of(info, &hint_count);
  int status = pio_core->set_hints(file->core, hints, hint_count);
  free(hints);
  return pio_raise(file, "MPI_File_set_info", pio_code(status));
}

/* More than the core knows. */
enum { PIO_MOST_HINTS = 64 };

int MPI_File_get_info(MPI_File fh, MPI_Info *info_used) {
  PIO_OWN_OR_FORWARD(MPI_File_get_info, fh, fh, info_used);
  struct pio_hint hints[PIO_MOST_HINTS];
  int count = pio_core->get_hints(file->core, hints, PIO_MOST_HINTS);
  int code = pio.Info_create(info_used);
  for (int i = 0; i < count && code == MPI_SUCCESS; i++) code = pio.Info_set(*info_used, hints[i].key, hints[i].value);
  if (code == MPI_SUCCESS && file->name != NULL && strlen(file->name) < MPI_MAX_INFO_VAL)
    code = pio.Info_set(*info_used, "filename", file->name);
  return pio_raise(file, "MPI_File_get_info", code);
}

int MPI_File_set_atomicity(MPI_File fh, int flag) {
  PIO_OWN_OR_FORWARD(MPI_File_set_atomicity, fh, fh, flag);
  return pio_raise(file, "MPI_File_set_atomicity", pio_code(pio_core->set_atomic(file->core, flag != 0)));
}

int MPI_File_get_atomicity(MPI_File fh, int *flag) {
  PIO_OWN_OR_FORWARD(MPI_File_get_atomicity, fh, fh, flag);
  *flag = pio_core->get_atomic(file->core);
  return MPI_SUCCESS;
}

PIO_PROFILING(MPI_File_open)
PIO_PROFILING(MPI_File_close)
PIO_PROFILING(MPI_File_delete)
PIO_PROFILING(MPI_File_set_view)
PIO_PROFILING(MPI_File_get_view)
PIO_PROFILING(MPI_File_seek)
PIO_PROFILING(MPI_File_seek_shared)
PIO_PROFILING(MPI_File_get_position)
PIO_PROFILING(MPI_File_get_position_shared)
PIO_PROFILING(MPI_File_get_byte_offset)
PIO_PROFILING(MPI_File_sync)
PIO_PROFILING(MPI_File_get_size)
PIO_PROFILING(MPI_File_set_size)
PIO_PROFILING(MPI_File_preallocate)
PIO_PROFILING(MPI_File_get_amode)
PIO_PROFILING(MPI_File_get_group)
PIO_PROFILING(MPI_File_get_type_extent)
PIO_PROFILING(MPI_File_set_info)
PIO_PROFILING(MPI_File_get_info)
PIO_PROFILING(MPI_File_set_atomicity)
PIO_PROFILING(MPI_File_get_atomicity)
