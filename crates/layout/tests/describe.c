/* Prints, for many MPI datatypes: name, size, lower bound, extent, offsets of three copies' bytes as MPI packs them,
 * and the description. The Rust side compares. */
#include <stdio.h>
#include <string.h>

#include "pio_datatype.h"

/* Bytes before and behind the origin of the buffer that a test type may touch. */
#define MARGIN 16384
#define COPIES 3

static void check(int error, const char *what) {
  if (error != MPI_SUCCESS) {
    printf("error %s %d\n", what, error);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

/* Finds out where each packed byte comes from: packs a buffer that holds the low, then the high byte of each index. */
static void print_map(MPI_Datatype type, int size) {
  static unsigned char buffer[2][2 * MARGIN], packed[2][4 * MARGIN];
  int half, i;
  for (half = 0; half < 2; half++) {
    int position = 0;
    for (i = 0; i < 2 * MARGIN; i++) buffer[half][i] = (unsigned char)(i >> (8 * half));
    check(MPI_Pack(buffer[half] + MARGIN, COPIES, type, packed[half], sizeof packed[half], &position, MPI_COMM_SELF),
          "pack");
    if (position != COPIES * size) printf("error packed %d bytes of %d\n", position, COPIES * size);
  }
  for (i = 0; i < COPIES * size; i++) printf("%s%d", i ? "," : "", packed[0][i] + 256 * packed[1][i] - MARGIN);
}

static void show(const char *name, MPI_Datatype type) {
  unsigned char *description;
  size_t length, i;
  MPI_Aint lower_bound, extent;
  int size;
  check(MPI_Type_commit(&type), "commit");
  check(MPI_Type_size(type, &size), "size");
  check(MPI_Type_get_extent(type, &lower_bound, &extent), "extent");
  check(pio_datatype_describe(type, &description, &length), name);
  printf("type %s %d %ld %ld ", name, size, (long)lower_bound, (long)extent);
  print_map(type, size);
  printf(" ");
  for (i = 0; i < length; i++) printf("%02x", description[i]);
  printf("\n");
  free(description);
}

int main(int argc, char **argv) {
  MPI_Datatype a, b, c, d, types[3];
  int lens[4] = {2, 0, 3, 1}, at[4] = {5, 1, 0, 20}, i, j;
  MPI_Aint bytes_at[4] = {40, 1, -12, 100};

  MPI_Init(&argc, &argv);
  show("byte", MPI_BYTE);
  show("double", MPI_DOUBLE);
  show("double_int", MPI_DOUBLE_INT);
  show("short_int", MPI_SHORT_INT);
  show("two_int", MPI_2INT);
  MPI_Type_create_f90_real(15, 300, &a);
  show("f90_real", a);
  MPI_Type_contiguous(3, a, &b);
  show("contiguous_of_f90", b);

  MPI_Type_contiguous(5, MPI_INT, &a);
  show("contiguous", a);
  MPI_Type_contiguous(0, MPI_INT, &b);
  show("contiguous_none", b);
  MPI_Type_dup(a, &b);
  show("dup", b);
  MPI_Type_vector(4, 2, 5, MPI_INT, &a);
  show("vector", a);
  MPI_Type_vector(4, 2, -5, MPI_INT, &b);
  show("vector_backward", b);
  MPI_Type_vector(3, 2, 4, a, &b);
  show("vector_of_vector", b);
  MPI_Type_create_hvector(3, 1, 100, a, &b);
  show("hvector", b);
  MPI_Type_create_hvector(3, 0, 100, a, &b);
  show("hvector_none", b);
  MPI_Type_indexed(4, lens, at, MPI_SHORT, &b);
  show("indexed", b);
  MPI_Type_create_hindexed(4, lens, bytes_at, MPI_INT, &c);
  show("hindexed", c);
  MPI_Type_create_indexed_block(4, 2, at, MPI_INT, &b);
  show("indexed_block", b);
  MPI_Type_create_hindexed_block(4, 2, bytes_at, MPI_INT, &b);
  show("hindexed_block", b);

  types[0] = MPI_DOUBLE;
  types[1] = MPI_CHAR;
  types[2] = a;
  bytes_at[0] = 0, bytes_at[1] = 8, bytes_at[2] = 16;
  lens[0] = 1, lens[1] = 3, lens[2] = 2;
  MPI_Type_create_struct(2, lens, bytes_at, types, &b);
  show("struct_padded", b);
  MPI_Type_contiguous(3, b, &c);
  show("contiguous_of_struct", c);
  MPI_Type_create_struct(3, lens, bytes_at, types, &c);
  show("struct_of_vector", c);
  MPI_Type_create_resized(c, -8, 200, &d);
  show("resized", d);
  MPI_Type_vector(2, 1, 2, d, &b);
  show("vector_of_resized", b);
  types[0] = d;
  types[1] = MPI_INT;
  bytes_at[1] = 300;
  MPI_Type_create_struct(2, lens, bytes_at, types, &b);
  show("struct_of_resized", b);

  for (i = 0; i < 2; i++) {
    int order = i ? MPI_ORDER_FORTRAN : MPI_ORDER_C;
    int sizes[3] = {5, 4, 6}, subsizes[3] = {2, 3, 4}, starts[3] = {1, 0, 2};
    int kinds[3] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_BLOCK};
    int arguments[3] = {2, MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG};
    int grid[3] = {2, 1, 4};
    int sizes2[2] = {11, 13}, kinds2[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_CYCLIC};
    int arguments2[2] = {MPI_DISTRIBUTE_DFLT_DARG, 3}, grid2[2] = {3, 2};
    MPI_Type_create_subarray(3, sizes, subsizes, starts, order, MPI_INT, &b);
    show(i ? "subarray_fortran" : "subarray_c", b);
    MPI_Type_create_subarray(2, sizes, subsizes, starts, order, d, &c);
    show(i ? "subarray_fortran_of_resized" : "subarray_c_of_resized", c);
    for (j = 0; j < 8; j++) {
      char name[40];
      MPI_Type_create_darray(8, j, 3, sizes, kinds, arguments, grid, order, MPI_INT, &b);
      sprintf(name, "darray_%s_%d", i ? "fortran" : "c", j);
      show(name, b);
    }
    for (j = 0; j < 6; j++) {
      char name[40];
      MPI_Type_create_darray(6, j, 2, sizes2, kinds2, arguments2, grid2, order, MPI_SHORT, &b);
      sprintf(name, "darray_cyclic_%s_%d", i ? "fortran" : "c", j);
      show(name, b);
    }
  }

  /* Describing must not use up the types inside. */
  for (i = 0; i < 10000; i++) {
    unsigned char *description;
    size_t length;
    check(pio_datatype_describe(d, &description, &length), "again");
    free(description);
  }
  show("resized_again", d);
  MPI_Finalize();
  printf("done\n");
  return 0;
}
