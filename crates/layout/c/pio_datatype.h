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

/* What a type was made from. `numbers` are MPI's integers, then its addresses, in the order of MPI's tables; types made
 * with large counts have their large counts there instead. */
typedef struct {
  int combiner;
  size_t number_count;
  size_t type_count;
  long long *numbers;
  MPI_Datatype *types;
} pio_datatype_contents;

/* The four counts of an envelope, and the combiner. */
typedef struct {
  MPI_Count ints, addresses, large_counts, types;
  int combiner;
} pio_datatype_envelope;

static int pio_datatype_get_envelope(MPI_Datatype type, pio_datatype_envelope *envelope) {
#if MPI_VERSION >= 4
  return PMPI_Type_get_envelope_c(type, &envelope->ints, &envelope->addresses, &envelope->large_counts,
                                  &envelope->types, &envelope->combiner);
#else
  int ints, addresses, types;
  int error = PMPI_Type_get_envelope(type, &ints, &addresses, &types, &envelope->combiner);
  if (error != MPI_SUCCESS) return error;
  envelope->ints = ints;
  envelope->addresses = addresses;
  envelope->large_counts = 0;
  envelope->types = types;
  return MPI_SUCCESS;
#endif
}

static void pio_datatype_free_contents(pio_datatype_contents *contents) {
  free(contents->numbers);
  free(contents->types);
  contents->numbers = NULL;
  contents->types = NULL;
}

/* Fills `contents`, whose arrays the caller frees whatever is returned. */
static int pio_datatype_get_contents(MPI_Datatype type, const pio_datatype_envelope *envelope,
                                     pio_datatype_contents *contents) {
  size_t ints_count = (size_t)envelope->ints, addresses_count = (size_t)envelope->addresses;
  size_t large_count = (size_t)envelope->large_counts, numbers, first, i;
  int error;
  /* One more of each: the result of malloc(0) may be NULL. */
  int *ints = (int *)malloc((ints_count + 1) * sizeof(int));
  MPI_Aint *addresses = (MPI_Aint *)malloc((addresses_count + 1) * sizeof(MPI_Aint));
  MPI_Count *large = (MPI_Count *)malloc((large_count + 1) * sizeof(MPI_Count));

  contents->combiner = envelope->combiner;
  contents->type_count = (size_t)envelope->types;
  contents->number_count = ints_count + addresses_count + large_count;
  contents->numbers = (long long *)malloc((contents->number_count + 1) * sizeof(long long));
  contents->types = (MPI_Datatype *)malloc((contents->type_count + 1) * sizeof(MPI_Datatype));
  if (ints == NULL || addresses == NULL || large == NULL || contents->numbers == NULL || contents->types == NULL) {
    error = MPI_ERR_NO_MEM;
  } else {
#if MPI_VERSION >= 4
    error = PMPI_Type_get_contents_c(type, envelope->ints, envelope->addresses, envelope->large_counts,
                                     envelope->types, ints, addresses, large, contents->types);
#else
    error = PMPI_Type_get_contents(type, (int)ints_count, (int)addresses_count, (int)contents->type_count, ints,
                                   addresses, contents->types);
#endif
  }
  if (error == MPI_SUCCESS) {
    /* With large counts, arrays keep small integers around the sizes: the first 1 or 3, then the others. */
    first = ints_count;
    if (large_count > 0 && contents->combiner == MPI_COMBINER_SUBARRAY) first = 1;
    if (large_count > 0 && contents->combiner == MPI_COMBINER_DARRAY) first = 3;
    numbers = 0;
    for (i = 0; i < first; i++) contents->numbers[numbers++] = ints[i];
    for (i = 0; i < large_count; i++) contents->numbers[numbers++] = large[i];
    for (i = first; i < ints_count; i++) contents->numbers[numbers++] = ints[i];
    for (i = 0; i < addresses_count; i++) contents->numbers[numbers++] = addresses[i];
  } else {
    contents->type_count = 0;
  }
  free(large);
  free(addresses);
  free(ints);
  return error;
}

/* MPI's constants differ from one MPI to the next: the description has its own. */
static void pio_datatype_translate(pio_datatype_contents *contents) {
  long long *numbers = contents->numbers;
  size_t last = contents->number_count - 1, n, i;
  if (contents->combiner == MPI_COMBINER_SUBARRAY) numbers[last] = numbers[last] == MPI_ORDER_FORTRAN;
  if (contents->combiner == MPI_COMBINER_DARRAY) {
    numbers[last] = numbers[last] == MPI_ORDER_FORTRAN;
    n = (size_t)numbers[2];
    for (i = 3 + n; i < 3 + 2 * n; i++)
      numbers[i] = numbers[i] == MPI_DISTRIBUTE_BLOCK ? 1 : numbers[i] == MPI_DISTRIBUTE_CYCLIC ? 2 : 0;
    for (i = 3 + 2 * n; i < 3 + 3 * n; i++)
      if (numbers[i] == MPI_DISTRIBUTE_DFLT_DARG) numbers[i] = -1;
  }
}

/* Who includes this file may define the sizes of basic types: in files, they may be others than in memory. */
#ifndef PIO_DATATYPE_BASIC
#define PIO_DATATYPE_BASIC pio_datatype_basic
static int pio_datatype_basic(MPI_Datatype type, MPI_Count *size, MPI_Count *extent) {
  MPI_Count lower_bound;
  int error = PMPI_Type_size_x(type, size);
  return error == MPI_SUCCESS ? PMPI_Type_get_extent_x(type, &lower_bound, extent) : error;
}
#endif

static int pio_datatype_put_named(pio_datatype_buffer *buffer, MPI_Datatype type) {
  MPI_Count size, extent;
  int error = PIO_DATATYPE_BASIC(type, &size, &extent);
  if (error == MPI_SUCCESS) error = pio_datatype_put(buffer, 1);
  if (error == MPI_SUCCESS) error = pio_datatype_put(buffer, size);
  if (error == MPI_SUCCESS) error = pio_datatype_put(buffer, extent);
  return error;
}

/* True if a type with this combiner counts as a basic one. The F90 ones are predefined, too: never to be freed. */
static int pio_datatype_is_basic(int combiner) {
  return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
         combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
         || combiner == MPI_COMBINER_VALUE_INDEX
#endif
      ;
}

static int pio_datatype_put_type(pio_datatype_buffer *buffer, MPI_Datatype type, int depth);

/* The description's number for what MPI calls a combiner; 0 for a duplicate, which is not told; -1 if unknown. */
static int pio_datatype_constructor(int combiner) {
  switch (combiner) {
    case MPI_COMBINER_DUP: return 0;
    case MPI_COMBINER_CONTIGUOUS: return 2;
    case MPI_COMBINER_HVECTOR: return 3;
    case MPI_COMBINER_HINDEXED: return 4;
    case MPI_COMBINER_HINDEXED_BLOCK: return 5;
    case MPI_COMBINER_STRUCT: return 6;
    case MPI_COMBINER_RESIZED: return 7;
    case MPI_COMBINER_SUBARRAY: return 8;
    case MPI_COMBINER_DARRAY: return 9;
    case MPI_COMBINER_VECTOR: return 10;
    case MPI_COMBINER_INDEXED: return 11;
    case MPI_COMBINER_INDEXED_BLOCK: return 12;
    default: return -1;
  }
}

/* Appends everything before the types inside. */
static int pio_datatype_put_head(pio_datatype_buffer *buffer, MPI_Datatype type, pio_datatype_contents *contents) {
  int constructor = pio_datatype_constructor(contents->combiner), error = MPI_SUCCESS;
  size_t i;
  if (constructor < 0) return MPI_ERR_TYPE;
  if (constructor == 0) return MPI_SUCCESS;
  if (contents->combiner == MPI_COMBINER_STRUCT) {
    MPI_Count lower_bound, extent;
    error = PMPI_Type_get_extent_x(type, &lower_bound, &extent);
    if (error == MPI_SUCCESS) error = pio_datatype_put(buffer, 7);
    if (error == MPI_SUCCESS) error = pio_datatype_put(buffer, lower_bound);
    if (error == MPI_SUCCESS) error = pio_datatype_put(buffer, extent);
  }
  if (error == MPI_SUCCESS) error = pio_datatype_put(buffer, constructor);
  pio_datatype_translate(contents);
  for (i = 0; i < contents->number_count && error == MPI_SUCCESS; i++)
    error = pio_datatype_put(buffer, contents->numbers[i]);
  return error;
}

/* Frees a type that MPI_Type_get_contents handed out: derived ones are ours, predefined ones are not. */
static int pio_datatype_release(MPI_Datatype *type) {
  pio_datatype_envelope envelope;
  int error = pio_datatype_get_envelope(*type, &envelope);
  if (error != MPI_SUCCESS) return error;
  return pio_datatype_is_basic(envelope.combiner) ? MPI_SUCCESS : PMPI_Type_free(type);
}

static int pio_datatype_put_type(pio_datatype_buffer *buffer, MPI_Datatype type, int depth) {
  pio_datatype_envelope envelope;
  pio_datatype_contents contents;
  size_t i;
  int error, released;

  if (depth > PIO_DATATYPE_MAX_DEPTH) return MPI_ERR_TYPE;
  error = pio_datatype_get_envelope(type, &envelope);
  if (error != MPI_SUCCESS) return error;
  if (pio_datatype_is_basic(envelope.combiner)) return pio_datatype_put_named(buffer, type);

  error = pio_datatype_get_contents(type, &envelope, &contents);
  if (error == MPI_SUCCESS) error = pio_datatype_put_head(buffer, type, &contents);
  for (i = 0; i < contents.type_count; i++) {
    if (error == MPI_SUCCESS) error = pio_datatype_put_type(buffer, contents.types[i], depth + 1);
    released = pio_datatype_release(&contents.types[i]);
    if (error == MPI_SUCCESS) error = released;
  }
  pio_datatype_free_contents(&contents);
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
