/* Data representations: data in the file that are not as in memory go through a copy.
 *
 * The core moves bytes and knows the view in the sizes that data have in the file. "external32" is converted by the
 * MPI's own packing, a program's representation by the program's functions.
 */
#include "pio_shim.h"

#include <limits.h>
#include <pthread.h>

static pthread_mutex_t pio_lock = PTHREAD_MUTEX_INITIALIZER;
static struct pio_representation pio_external32 = {.name = "external32"};
static struct pio_representation *pio_registered;

static int pio_is_external32(const struct pio_representation *representation) {
  return representation == &pio_external32;
}

/* Fortran's programs also write the predefined names in upper case, and other MPI-IO libraries take them. */
const char *pio_representation_name(const char *name) {
  static const char *const known[][2] = {{"NATIVE", "native"}, {"INTERNAL", "internal"}, {"EXTERNAL32", "external32"}};
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
    if (strcmp(name, known[i][0]) == 0) return known[i][1];
  return name;
}

const struct pio_representation *pio_representation_of(const char *name, int *found) {
  const struct pio_representation *known;
  *found = 1;
  name = pio_representation_name(name);
  if (strcmp(name, "native") == 0 || strcmp(name, "internal") == 0) return NULL;
  if (strcmp(name, "external32") == 0) return &pio_external32;
  pthread_mutex_lock(&pio_lock);
  for (known = pio_registered; known != NULL && strcmp(known->name, name) != 0; known = known->next) {
  }
  pthread_mutex_unlock(&pio_lock);
  *found = known != NULL;
  return known;
}

/* Takes in a representation whose functions are set. */
static int pio_register(const char *call, const char *name, const struct pio_representation *wanted) {
  struct pio_representation *added;
  int found;
  if (name == NULL || strlen(name) == 0 || strlen(name) > MPI_MAX_DATAREP_STRING || wanted->extent == NULL)
    return pio_raise(NULL, call, MPI_ERR_ARG);
  pio_representation_of(name, &found);
  if (found) return pio_raise(NULL, call, MPI_ERR_DUP_DATAREP);
  added = malloc(sizeof *added);
  if (added == NULL) return pio_raise(NULL, call, MPI_ERR_NO_MEM);
  *added = *wanted;
  strcpy(added->name, name);
  pthread_mutex_lock(&pio_lock);
  added->next = pio_registered;
  pio_registered = added;
  pthread_mutex_unlock(&pio_lock);
  return MPI_SUCCESS;
}

int MPI_Register_datarep(const char *datarep, MPI_Datarep_conversion_function *read_conversion_fn,
                         MPI_Datarep_conversion_function *write_conversion_fn,
                         MPI_Datarep_extent_function *dtype_file_extent_fn, void *extra_state) {
  struct pio_representation wanted = {.read = read_conversion_fn, .write = write_conversion_fn};
  pio_find_mpi(PIO_CALLER);
  wanted.extent = dtype_file_extent_fn;
  wanted.extra = extra_state;
  return pio_register("MPI_Register_datarep", datarep, &wanted);
}
PIO_PROFILING(MPI_Register_datarep)

#if PIO_LARGE_COUNT
int MPI_Register_datarep_c(const char *datarep, MPI_Datarep_conversion_function_c *read_conversion_fn,
                           MPI_Datarep_conversion_function_c *write_conversion_fn,
                           MPI_Datarep_extent_function *dtype_file_extent_fn, void *extra_state) {
  struct pio_representation wanted = {.read_large = read_conversion_fn, .write_large = write_conversion_fn};
  pio_find_mpi(PIO_CALLER);
  wanted.extent = dtype_file_extent_fn;
  wanted.extra = extra_state;
  return pio_register("MPI_Register_datarep_c", datarep, &wanted);
}
PIO_PROFILING(MPI_Register_datarep_c)
#endif

/* Whether the program converts. */
static int pio_converts(const struct pio_representation *representation, int write) {
#if PIO_LARGE_COUNT
  if (write ? representation->write_large != NULL : representation->read_large != NULL) return 1;
#endif
  return write ? representation->write != NULL : representation->read != NULL;
}

/* --- External32 ---------------------------------------------------------------------------------------------------- */

/* The MPI's functions count with int. */
static int pio_external(const struct pio_buffer *buffer, unsigned char *copy, int pack) {
  MPI_Count lower_bound, extent, done = 0;
  MPI_Aint position = 0, size = (MPI_Aint)buffer->copy_bytes;
  int error = pio.Type_get_extent_x(buffer->type, &lower_bound, &extent);
  while (error == MPI_SUCCESS && done < buffer->count) {
    int part = buffer->count - done < INT_MAX ? (int)(buffer->count - done) : INT_MAX;
    char *address = (char *)buffer->address + done * extent;
    error = pack ? pio.Pack_external("external32", address, part, buffer->type, copy, size, &position)
                 : pio.Unpack_external("external32", copy, size, &position, address, part, buffer->type);
    done += part;
  }
  return error;
}

/* A read that ended early: what was not read stays as it was in memory. */
static int pio_external_partly(const struct pio_buffer *buffer, uint64_t moved) {
  unsigned char *whole = malloc(buffer->copy_bytes);
  int error = whole == NULL ? MPI_ERR_NO_MEM : pio_external(buffer, whole, 1);
  if (error == MPI_SUCCESS) {
    memcpy(whole, buffer->copy, moved);
    error = pio_external(buffer, whole, 0);
  }
  free(whole);
  return error;
}

/* --- Memory of operations ------------------------------------------------------------------------------------------ */

static int pio_convert(const struct pio_buffer *buffer, int write, MPI_Count count) {
  const struct pio_representation *representation = buffer->representation;
  MPI_Datarep_conversion_function *function = write ? representation->write : representation->read;
#if PIO_LARGE_COUNT
  MPI_Datarep_conversion_function_c *large = write ? representation->write_large : representation->read_large;
  if (large != NULL) return large(buffer->address, buffer->type, count, buffer->copy, 0, representation->extra);
#endif
  MPI_Count lower_bound, extent, done = 0;
  uint64_t element = buffer->copy_bytes / (uint64_t)(buffer->count > 0 ? buffer->count : 1);
  int error = pio.Type_get_extent_x(buffer->type, &lower_bound, &extent);
  while (error == MPI_SUCCESS && done < count) {
    int part = count - done < INT_MAX ? (int)(count - done) : INT_MAX;
    error = function((char *)buffer->address + done * extent, buffer->type, part,
                     buffer->copy + (uint64_t)done * element, 0, representation->extra);
    done += part;
  }
  return error;
}

/* Whether there must be data at address 0, where none can be. With MPI_BOTTOM, the datatype's bounds are addresses. */
static int pio_is_missing(const void *address, MPI_Count count, MPI_Datatype type) {
  static const MPI_Count least_address = 4096;
  MPI_Count size, lower_bound, extent;
  if (address != NULL || count == 0 || pio.Type_size_x(type, &size) != MPI_SUCCESS || size == 0) return 0;
  return pio.Type_get_true_extent_x(type, &lower_bound, &extent) == MPI_SUCCESS && lower_bound >= 0 &&
         lower_bound < least_address;
}

int pio_buffer_begin(const struct pio_file *file, int how, const void *address, MPI_Count count, MPI_Datatype type,
                     struct pio_buffer *buffer) {
  const struct pio_representation *representation = file->converted;
  const int write = (how & PIO_WRITE) != 0;
  pio_type *in_file;
  memset(buffer, 0, sizeof *buffer);
  int status = pio_type_of(type, &buffer->memory.type);
  if (count < 0) status = PIO_COUNT;
  if (status == PIO_SUCCESS && pio_is_missing(address, count, type)) status = PIO_BUFFER;
  if (status != PIO_SUCCESS) return status;
  buffer->memory.address = buffer->address = (void *)address;
  buffer->memory.count = (uint64_t)count;
  buffer->count = count;
  buffer->type = type;
  if (representation == NULL) return PIO_SUCCESS;
  if (!pio_is_external32(representation) && !pio_converts(representation, write)) return PIO_SUCCESS;

  status = pio_type_in_file(type, representation, &in_file);
  if (status != PIO_SUCCESS) return status;
  int64_t size = pio_core->type_size(in_file);
  pio_core->type_free(in_file);
  if (__builtin_mul_overflow((uint64_t)size, (uint64_t)count, &buffer->copy_bytes)) return PIO_COUNT;
  buffer->copy = malloc(buffer->copy_bytes + 1);
  if (buffer->copy == NULL) return PIO_NO_MEMORY;
  buffer->representation = representation;
  buffer->memory.address = buffer->copy;
  buffer->memory.count = buffer->copy_bytes;
  status = pio_type_of(pio.byte, &buffer->memory.type);
  if (status == PIO_SUCCESS && write && count > 0) {
    int error = pio_is_external32(representation) ? pio_external(buffer, buffer->copy, 1) : pio_convert(buffer, 1, count);
    if (error != MPI_SUCCESS) status = PIO_CONVERSION;
  }
  if (status != PIO_SUCCESS) {
    free(buffer->copy);
    buffer->copy = NULL;
  }
  return status;
}

int pio_buffer_keep(struct pio_buffer *buffer) {
  MPI_Datatype kept;
  if (buffer->copy == NULL) return PIO_SUCCESS;
  if (pio_type_kept(buffer->type, &kept) != MPI_SUCCESS) return PIO_TYPE;
  buffer->type = kept;
  buffer->keeps_type = 1;
  return PIO_SUCCESS;
}

int pio_buffer_end(struct pio_buffer *buffer, int how, int status, uint64_t *moved) {
  const int reads = (how & PIO_WRITE) == 0;
  uint64_t element, whole = 0, part = 0;
  MPI_Count native = 0;
  int error = MPI_SUCCESS;
  if (buffer->copy == NULL) return status;
  element = buffer->count > 0 ? buffer->copy_bytes / (uint64_t)buffer->count : 0;
  if (element > 0) {
    whole = *moved / element;
    part = *moved % element;
  }
  /* The program's functions convert whole datatypes only: it has no more than these. */
  if (reads && !pio_is_external32(buffer->representation)) part = 0;
  if (reads && whole + part > 0) {
    if (!pio_is_external32(buffer->representation))
      error = pio_convert(buffer, 0, (MPI_Count)whole);
    else if (*moved == buffer->copy_bytes)
      error = pio_external(buffer, buffer->copy, 0);
    else
      error = pio_external_partly(buffer, *moved);
  }
  pio.Type_size_x(buffer->type, &native);
  *moved = error == MPI_SUCCESS ? whole * (uint64_t)native : 0;
  if (error == MPI_SUCCESS && part > 0)
    *moved += (uint64_t)((unsigned __int128)part * (uint64_t)native / element);
  free(buffer->copy);
  buffer->copy = NULL;
  if (buffer->keeps_type) pio_type_release(&buffer->type);
  return status == PIO_SUCCESS && error != MPI_SUCCESS ? PIO_CONVERSION : status;
}
