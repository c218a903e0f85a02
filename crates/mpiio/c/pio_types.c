/* Datatypes in the core's form. */
#include "pio_shim.h"

#include <pthread.h>

/* The header that takes datatypes apart calls MPI by name: here, through the table. */
#define PMPI_Type_free pio.Type_free
#define PMPI_Type_get_contents pio.Type_get_contents
#define PMPI_Type_get_contents_c pio.Type_get_contents_c
#define PMPI_Type_get_envelope pio.Type_get_envelope
#define PMPI_Type_get_envelope_c pio.Type_get_envelope_c
#define PMPI_Type_get_extent_x pio.Type_get_extent_x
#define PMPI_Type_size_x pio.Type_size_x
/* Where data are represented in another way, basic types have other sizes. */
static __thread const struct pio_representation *pio_representation;
static int pio_basic(MPI_Datatype type, MPI_Count *size, MPI_Count *extent);
#define PIO_DATATYPE_BASIC pio_basic
#include "pio_datatype.h"

static int pio_type_keyval;
/* Of this process alone, and it returns errors. Null if the program began MPI with sessions only. */
static MPI_Comm pio_alone;

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

static int pio_alone_begin(void) {
  int has_world = 0, error = pio.Initialized(&has_world);
  pio_alone = pio.comm_null;
  if (error != MPI_SUCCESS || !has_world) return error;
  /* Not duplicated: that would call the program's functions for the attributes of MPI_COMM_SELF. */
  error = pio.Comm_split_type(pio.comm_self, MPI_COMM_TYPE_SHARED, 0, pio.info_null, &pio_alone);
  return error == MPI_SUCCESS ? pio.Comm_set_errhandler(pio_alone, pio.errors_return) : error;
}

int pio_types_begin(void) {
  int error = pio_alone_begin();
  if (error != MPI_SUCCESS) return error;
  return pio.Type_create_keyval(pio_type_copied, pio_type_deleted, &pio_type_keyval, NULL);
}

/* MPI cannot be asked, but MPICH and Open MPI look before they pack nothing. */
static int pio_is_committed(MPI_Datatype type) {
  char from[1], to[1];
  int position = 0, class = MPI_SUCCESS, error;
  if (pio_alone == pio.comm_null) return 1;
  error = pio.Pack(from, 0, type, to, (int)sizeof to, &position, pio_alone);
  if (error != MPI_SUCCESS) pio.Error_class(error, &class);
  return class != MPI_ERR_TYPE;
}

static int pio_basic(MPI_Datatype type, MPI_Count *size, MPI_Count *extent) {
  const struct pio_representation *representation = pio_representation;
  MPI_Count lower_bound;
  MPI_Aint bytes = 0;
  int error;
  if (representation == NULL) {
    error = pio.Type_size_x(type, size);
    return error == MPI_SUCCESS ? pio.Type_get_extent_x(type, &lower_bound, extent) : error;
  }
  error = representation->extent != NULL ? representation->extent(type, &bytes, representation->extra)
                                         : pio.Pack_external_size("external32", 1, type, &bytes);
  *size = *extent = bytes;
  return error;
}

/* What stays with the datatype: `made`, or what another thread made meanwhile; NULL if that fails. */
static void *attached(MPI_Datatype type, void *made) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  void *value = NULL;
  int flag = 0;
  pthread_mutex_lock(&mutex);
  if (pio.Type_get_attr(type, pio_type_keyval, &value, &flag) != MPI_SUCCESS)
    value = NULL;
  else if (!flag)
    value = pio.Type_set_attr(type, pio_type_keyval, made) == MPI_SUCCESS ? made : NULL;
  pthread_mutex_unlock(&mutex);
  if (value != made) pio_core->type_free(made);
  return value;
}

/* It stays with the datatype, so that it is made once: a type that has been committed stays so. */
int pio_type_of(MPI_Datatype type, const pio_type **found) {
  unsigned char *description = NULL;
  size_t length = 0;
  void *value = NULL;
  int flag = 0;
  *found = NULL;
  if (type == pio.datatype_null) return PIO_TYPE;
  if (pio.Type_get_attr(type, pio_type_keyval, &value, &flag) != MPI_SUCCESS) return PIO_TYPE;
  if (!flag) {
    if (!pio_is_committed(type)) return PIO_TYPE;
    if (pio_datatype_describe(type, &description, &length) != MPI_SUCCESS) return PIO_TYPE;
    value = pio_core->type_create(description, length);
    free(description);
    if (value == NULL || (value = attached(type, value)) == NULL) return PIO_TYPE;
  }
  *found = value;
  return PIO_SUCCESS;
}

int pio_type_in_file(MPI_Datatype type, const struct pio_representation *representation, pio_type **found) {
  unsigned char *description = NULL;
  size_t length = 0;
  int error;
  *found = NULL;
  if (type == pio.datatype_null) return PIO_TYPE;
  pio_representation = representation;
  error = pio_datatype_describe(type, &description, &length);
  pio_representation = NULL;
  if (error != MPI_SUCCESS) return PIO_TYPE;
  *found = pio_core->type_create(description, length);
  free(description);
  return *found != NULL ? PIO_SUCCESS : PIO_TYPE;
}

int pio_type_kept(MPI_Datatype type, MPI_Datatype *kept) {
  pio_datatype_envelope envelope;
  int error = pio_datatype_get_envelope(type, &envelope);
  *kept = type;
  if (error != MPI_SUCCESS || pio_datatype_is_basic(envelope.combiner)) return error;
  return pio.Type_dup(type, kept);
}

int pio_type_release(MPI_Datatype *type) { return pio_datatype_release(type); }
