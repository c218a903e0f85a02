/* Describes an MPI datatype in a form that does not depend on the MPI library.
 *
 * Header only: compiled with the user's own mpicc, also into libraries that are not linked to MPI. Hence it calls
 * PMPI functions only, and names no predefined handle: in some MPIs those are addresses of data, and a reference to
 * data, unlike one to a function, cannot wait until the program's own MPI is there.
 *
 * The description is a row of 64-bit little-endian two's-complement integers, in prefix order:
 *
 *   1 NAMED          size extent                       (extent > size: a value and an int, each aligned)
 *   2 CONTIGUOUS     count, type
 *   3 HVECTOR        count block_len stride_bytes, type
 *   4 HINDEXED       n, n block lengths, n displacements in bytes, type
 *   5 HINDEXED_BLOCK n block_len, n displacements in bytes, type
 *   6 STRUCT         n, n block lengths, n displacements in bytes, n types
 *   7 RESIZED        lower_bound extent, type
 *   8 SUBARRAY       n, n sizes, n subsizes, n starts, order (0 C, 1 Fortran), type
 *   9 DARRAY         process_count rank n, n sizes, n distributions (0 none, 1 block, 2 cyclic),
 *                    n arguments (-1 default), n grid sizes, order, type
 *  10 VECTOR         count block_len stride_in_extents, type
 *  11 INDEXED        n, n block lengths, n displacements in extents, type
 *  12 INDEXED_BLOCK  n block_len, n displacements in extents, type
 *
 * A structure is always inside a RESIZED with the bounds that MPI gave it: they contain the compiler's padding.
 */
#ifndef PIO_DATATYPE_H
#define PIO_DATATYPE_H

#include <mpi.h>
#include <stddef.h>
#include <stdlib.h>

/* How deeply types may be nested. */
#define PIO_DATATYPE_MAX_DEPTH 64

typedef struct {
  unsigned char *bytes;
  size_t length;
  size_t capacity;
} pio_datatype_buffer;

/* Appends one integer; returns 0 or MPI_ERR_NO_MEM. */
static int pio_datatype_put(pio_datatype_buffer *buffer, long long value) {
  unsigned long long bits = (unsigned long long)value;
  int i;
  if (buffer->length + 8 > buffer->capacity) {
    size_t capacity = buffer->capacity ? 2 * buffer->capacity : 256;
    unsigned char *bytes = (unsigned char *)realloc(buffer->bytes, capacity);
    if (bytes == NULL) return MPI_ERR_NO_MEM;
    buffer->bytes = bytes;
    buffer->capacity = capacity;
  }
  for (i = 0; i < 8; i++) buffer->bytes[buffer->length++] = (unsigned char)(bits >> (8 * i));
  return MPI_SUCCESS;
}

static int pio_datatype_put_ints(pio_datatype_buffer *buffer, const int *values, int count) {
  int i, error = MPI_SUCCESS;
  for (i = 0; i < count && error == MPI_SUCCESS; i++) error = pio_datatype_put(buffer, values[i]);
  return error;
}

static int pio_datatype_put_addresses(pio_datatype_buffer *buffer, const MPI_Aint *values, int count) {
  int i, error = MPI_SUCCESS;
  for (i = 0; i < count && error == MPI_SUCCESS; i++) error = pio_datatype_put(buffer, values[i]);
  return error;
}

/* MPI's constants differ from one MPI to the next: the description has its own. */
static long long pio_datatype_order(int order) { return order == MPI_ORDER_FORTRAN; }

static int pio_datatype_put_distributions(pio_datatype_buffer *buffer, const int *values, int count) {
  int i, error = MPI_SUCCESS;
  for (i = 0; i < count && error == MPI_SUCCESS; i++) {
    long long value = values[i] == MPI_DISTRIBUTE_BLOCK ? 1 : values[i] == MPI_DISTRIBUTE_CYCLIC ? 2 : 0;
    error = pio_datatype_put(buffer, value);
  }
  return error;
}

static int pio_datatype_put_arguments(pio_datatype_buffer *buffer, const int *values, int count) {
  int i, error = MPI_SUCCESS;
  for (i = 0; i < count && error == MPI_SUCCESS; i++)
    error = pio_datatype_put(buffer, values[i] == MPI_DISTRIBUTE_DFLT_DARG ? -1 : values[i]);
  return error;
}

static int pio_datatype_put_named(pio_datatype_buffer *buffer, MPI_Datatype type) {
  MPI_Count size, lower_bound, extent;
  int error = PMPI_Type_size_x(type, &size);
  if (error == MPI_SUCCESS) error = PMPI_Type_get_extent_x(type, &lower_bound, &extent);
  if (error == MPI_SUCCESS) error = pio_datatype_put(buffer, 1);
  if (error == MPI_SUCCESS) error = pio_datatype_put(buffer, size);
  if (error == MPI_SUCCESS) error = pio_datatype_put(buffer, extent);
  return error;
}

/* True if the combiner makes a type without others inside that counts as a basic one. */
static int pio_datatype_is_basic(int combiner) {
  return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
         combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
         || combiner == MPI_COMBINER_VALUE_INDEX
#endif
      ;
}

static int pio_datatype_put_type(pio_datatype_buffer *buffer, MPI_Datatype type, int depth);

/* Appends everything before the types inside, given what MPI_Type_get_contents says. */
static int pio_datatype_put_head(pio_datatype_buffer *buffer, MPI_Datatype type, int combiner, const int *ints,
                                 const MPI_Aint *addresses) {
  int n, error = MPI_SUCCESS;
  MPI_Count lower_bound, extent;
  switch (combiner) {
    case MPI_COMBINER_DUP:
      break;
    case MPI_COMBINER_CONTIGUOUS:
      if (!error) error = pio_datatype_put(buffer, 2);
      if (!error) error = pio_datatype_put(buffer, ints[0]);
      break;
    case MPI_COMBINER_VECTOR:
      if (!error) error = pio_datatype_put(buffer, 10);
      if (!error) error = pio_datatype_put_ints(buffer, ints, 3);
      break;
    case MPI_COMBINER_HVECTOR:
      if (!error) error = pio_datatype_put(buffer, 3);
      if (!error) error = pio_datatype_put_ints(buffer, ints, 2);
      if (!error) error = pio_datatype_put(buffer, addresses[0]);
      break;
    case MPI_COMBINER_INDEXED:
      n = ints[0];
      if (!error) error = pio_datatype_put(buffer, 11);
      if (!error) error = pio_datatype_put_ints(buffer, ints, 1 + 2 * n);
      break;
    case MPI_COMBINER_HINDEXED:
      n = ints[0];
      if (!error) error = pio_datatype_put(buffer, 4);
      if (!error) error = pio_datatype_put_ints(buffer, ints, 1 + n);
      if (!error) error = pio_datatype_put_addresses(buffer, addresses, n);
      break;
    case MPI_COMBINER_INDEXED_BLOCK:
      n = ints[0];
      if (!error) error = pio_datatype_put(buffer, 12);
      if (!error) error = pio_datatype_put_ints(buffer, ints, 2 + n);
      break;
    case MPI_COMBINER_HINDEXED_BLOCK:
      n = ints[0];
      if (!error) error = pio_datatype_put(buffer, 5);
      if (!error) error = pio_datatype_put_ints(buffer, ints, 2);
      if (!error) error = pio_datatype_put_addresses(buffer, addresses, n);
      break;
    case MPI_COMBINER_STRUCT:
      n = ints[0];
      error = PMPI_Type_get_extent_x(type, &lower_bound, &extent);
      if (!error) error = pio_datatype_put(buffer, 7);
      if (!error) error = pio_datatype_put(buffer, lower_bound);
      if (!error) error = pio_datatype_put(buffer, extent);
      if (!error) error = pio_datatype_put(buffer, 6);
      if (!error) error = pio_datatype_put_ints(buffer, ints, 1 + n);
      if (!error) error = pio_datatype_put_addresses(buffer, addresses, n);
      break;
    case MPI_COMBINER_RESIZED:
      if (!error) error = pio_datatype_put(buffer, 7);
      if (!error) error = pio_datatype_put_addresses(buffer, addresses, 2);
      break;
    case MPI_COMBINER_SUBARRAY:
      n = ints[0];
      if (!error) error = pio_datatype_put(buffer, 8);
      if (!error) error = pio_datatype_put_ints(buffer, ints, 1 + 3 * n);
      if (!error) error = pio_datatype_put(buffer, pio_datatype_order(ints[1 + 3 * n]));
      break;
    case MPI_COMBINER_DARRAY:
      n = ints[2];
      if (!error) error = pio_datatype_put(buffer, 9);
      if (!error) error = pio_datatype_put_ints(buffer, ints, 3 + n);
      if (!error) error = pio_datatype_put_distributions(buffer, ints + 3 + n, n);
      if (!error) error = pio_datatype_put_arguments(buffer, ints + 3 + 2 * n, n);
      if (!error) error = pio_datatype_put_ints(buffer, ints + 3 + 3 * n, n);
      if (!error) error = pio_datatype_put(buffer, pio_datatype_order(ints[3 + 4 * n]));
      break;
    default:
      error = MPI_ERR_TYPE;
  }
  return error;
}

/* Frees a type that MPI_Type_get_contents handed out: derived ones are ours, predefined ones are not. */
static int pio_datatype_release(MPI_Datatype *type) {
  int ints, addresses, types, combiner;
  int error = PMPI_Type_get_envelope(*type, &ints, &addresses, &types, &combiner);
  if (error != MPI_SUCCESS) return error;
  /* F90 types are predefined, too: they must not be freed. */
  return pio_datatype_is_basic(combiner) ? MPI_SUCCESS : PMPI_Type_free(type);
}

static int pio_datatype_put_type(pio_datatype_buffer *buffer, MPI_Datatype type, int depth) {
  int int_count, address_count, type_count, combiner, i, error;
  int *ints;
  MPI_Aint *addresses;
  MPI_Datatype *types;

  if (depth > PIO_DATATYPE_MAX_DEPTH) return MPI_ERR_TYPE;
  error = PMPI_Type_get_envelope(type, &int_count, &address_count, &type_count, &combiner);
  if (error != MPI_SUCCESS) return error;
  if (pio_datatype_is_basic(combiner)) return pio_datatype_put_named(buffer, type);

  ints = (int *)malloc((size_t)(int_count + 1) * sizeof(int));
  addresses = (MPI_Aint *)malloc((size_t)(address_count + 1) * sizeof(MPI_Aint));
  types = (MPI_Datatype *)malloc((size_t)(type_count + 1) * sizeof(MPI_Datatype));
  if (ints == NULL || addresses == NULL || types == NULL) {
    error = MPI_ERR_NO_MEM;
  } else {
    error = PMPI_Type_get_contents(type, int_count, address_count, type_count, ints, addresses, types);
    if (error == MPI_SUCCESS) {
      error = pio_datatype_put_head(buffer, type, combiner, ints, addresses);
      for (i = 0; i < type_count; i++) {
        int freed;
        if (error == MPI_SUCCESS) error = pio_datatype_put_type(buffer, types[i], depth + 1);
        freed = pio_datatype_release(&types[i]);
        if (error == MPI_SUCCESS) error = freed;
      }
    }
  }
  free(types);
  free(addresses);
  free(ints);
  return error;
}

/* Describes `type` in a buffer that the caller frees. Returns 0, or an MPI error code and no buffer. */
static int pio_datatype_describe(MPI_Datatype type, unsigned char **buffer, size_t *length) {
  pio_datatype_buffer description = {NULL, 0, 0};
  int error = pio_datatype_put_type(&description, type, 0);
  if (error != MPI_SUCCESS) {
    free(description.bytes);
    description.bytes = NULL;
    description.length = 0;
  }
  *buffer = description.bytes;
  *length = description.length;
  return error;
}

#endif
