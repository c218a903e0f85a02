/* The I/O of known applications, without their science: what predictions are tried on. Standard MPI-IO only.
 *
 *   mpiexec -n RANKS kernels KERNEL [--mesh N] [--steps S] [--compute MS] [--folder PATH] [--hint KEY=VALUE]...
 *
 * bt-io      a mesh of five numbers a point, cut into slices; a rank has another block of columns in each slice
 *            (NAS BT-IO's diagonal cells): pieces of N / RANKS points, one collective write a step
 * s3d-io     arrays of 1, 1, 3 and 11 numbers a point in three-dimensional blocks (S3D's checkpoint), a collective write
 *            each into a file of each step
 * hacc-io    nine variables of N^3 / RANKS particles, one after the other, each rank's part by a call of its own (HACC's
 *            checkpoint); read back by the next rank
 * ior        each rank N segments of 256 KiB by calls of its own, in its own part of the file; read back by the next rank
 * segments   N pieces of 47,008 bytes a rank in turn, a collective call for each (IOR's hard case)
 * small      N^2 calls of a rank, of 40 to 4,000 bytes, at places of a file that no other rank has
 * transpose  a matrix of N x N x 16 numbers written by blocks of rows, read by blocks of columns, collectively
 * phases     a matrix in blocks of columns, with a barrier before and after each write, and computing between them
 * late       the same without barriers; each step another rank computes three times as long as the others
 * log        each rank appends a record of 200 bytes with each step to its part of a file, 64 steps an N, and all write
 *            their blocks of rows every 256 records
 *
 * Every byte that is read back is verified: a wrong one ends the program with an error. Computing is real: it keeps the
 * processor busy.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "need.h"

static int rank, ranks;
static long mesh = 0, steps = 4;
static double compute_ms = 5;
static const char *folder = ".";
static MPI_Info info;

static void wrong(const char *what) {
  fprintf(stderr, "rank %d: %s\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* The same work in every run and on every rank, as real programs have it: about a millisecond on a processor of 3 GHz, more where it is
 * slower. The clock is not read meanwhile: Linux ends a turn that is over when it is, and otherwise at the next tick, as for
 * programs that only compute. */
enum { ROUNDS_A_MS = 230000 };

static void compute(double ms) {
  volatile double number = 1;
  for (long i = 0; i < (long)(ms * ROUNDS_A_MS); i++) number = number * 1.0000001 + 1e-9;
}

/* Numbers by which any of a file's can be told: `seed` says which part of which file. */
static double number(long seed, long index) { return (double)((seed * 7919 + index) % 16777213); }

static double *numbers(long count, long seed) {
  double *made = malloc((size_t)(count > 0 ? count : 1) * sizeof *made);
  if (made == NULL) wrong("no memory");
  for (long i = 0; i < count; i++) made[i] = number(seed, i);
  return made;
}

static void verify(const double *found, long count, long seed) {
  for (long i = 0; i < count; i++)
    if (found[i] != number(seed, i)) wrong("read something else");
}

static MPI_File open_file(const char *name, long step) {
  char path[4096];
  MPI_File file;
  if (snprintf(path, sizeof path, "%s/%s-%ld.dat", folder, name, step) >= (int)sizeof path) wrong("the folder's name is too long");
  need(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file), path);
  return file;
}

static void set_view(MPI_File file, MPI_Offset at, MPI_Datatype filetype) {
  need(MPI_File_set_view(file, at, MPI_DOUBLE, filetype, "native", info), "set_view");
}

/* This rank's share of `all` things in a row. */
static long share(long all, long *first) {
  *first = all * rank / ranks;
  return all * (rank + 1) / ranks - *first;
}

static void bt_io(void) {
  long n = mesh ? mesh : 40;
  int *lengths = malloc((size_t)n * sizeof *lengths);
  MPI_Datatype *slices = malloc((size_t)n * sizeof *slices);
  MPI_Aint *places = malloc((size_t)n * sizeof *places);
  if (lengths == NULL || slices == NULL || places == NULL) wrong("no memory");
  long points = 0;
  for (long z = 0; z < n; z++) {
    int block = (int)((rank + z * ranks / n) % ranks);
    int sizes[2] = {(int)n, (int)(n * 5)}, part[2], start[2] = {0, (int)(n * block / ranks * 5)};
    part[0] = (int)n;
    part[1] = (int)(n * (block + 1) / ranks * 5) - start[1];
    need(MPI_Type_create_subarray(2, sizes, part, start, MPI_ORDER_C, MPI_DOUBLE, &slices[z]), "subarray");
    lengths[z] = 1;
    places[z] = (MPI_Aint)(z * n * n * 5 * 8);
    points += (long)part[0] * part[1];
  }
  MPI_Datatype cells;
  need(MPI_Type_create_struct((int)n, lengths, places, slices, &cells), "struct");
  need(MPI_Type_commit(&cells), "commit");
  double *data = numbers(points, rank);
  MPI_File file = open_file("bt-io", 0);
  set_view(file, 0, cells);
  for (long step = 0; step < steps; step++) {
    compute(compute_ms);
    need(MPI_File_write_at_all(file, step * points, data, (int)points, MPI_DOUBLE, MPI_STATUS_IGNORE), "write");
  }
  for (long step = 0; step < steps; step++) {
    memset(data, 0, (size_t)points * sizeof *data);
    need(MPI_File_read_at_all(file, step * points, data, (int)points, MPI_DOUBLE, MPI_STATUS_IGNORE), "read");
    verify(data, points, rank);
  }
  need(MPI_File_close(&file), "close");
  for (long z = 0; z < n; z++) MPI_Type_free(&slices[z]);
  MPI_Type_free(&cells);
  free(lengths), free(slices), free(places), free(data);
}

static void s3d_io(void) {
  static const int components[] = {1, 1, 3, 11};
  int n = (int)(mesh ? mesh : 40), grid[3] = {0, 0, 0}, at = rank;
  MPI_Dims_create(ranks, 3, grid);
  int sizes[4] = {0, n, n, n}, part[4], start[4] = {0, 0, 0, 0};
  for (int d = 2; d >= 0; d--) {
    int place = at % grid[d];
    at /= grid[d];
    start[d + 1] = n * place / grid[d];
    part[d + 1] = n * (place + 1) / grid[d] - start[d + 1];
  }
  long points = (long)part[1] * part[2] * part[3];
  double *data = numbers(points * 11, rank);
  for (long step = 0; step < steps; step++) {
    compute(compute_ms);
    MPI_File file = open_file("s3d-io", step);
    MPI_Offset begin = 0;
    for (int i = 0; i < 4; i++) {
      MPI_Datatype block;
      sizes[0] = part[0] = components[i];
      need(MPI_Type_create_subarray(4, sizes, part, start, MPI_ORDER_C, MPI_DOUBLE, &block), "subarray");
      need(MPI_Type_commit(&block), "commit");
      set_view(file, begin, block);
      need(MPI_File_write_all(file, data, (int)(points * components[i]), MPI_DOUBLE, MPI_STATUS_IGNORE), "write");
      begin += (MPI_Offset)components[i] * n * n * n * 8;
      MPI_Type_free(&block);
    }
    need(MPI_File_close(&file), "close");
  }
  free(data);
}

static void hacc_io(void) {
  long n = mesh ? mesh : 64, all = n * n * n, first, count = share(all, &first);
  double *data = numbers(count, rank);
  for (long step = 0; step < steps; step++) {
    compute(compute_ms);
    MPI_File file = open_file("hacc-io", step);
    for (int variable = 0; variable < 9; variable++)
      need(MPI_File_write_at(file, (variable * all + first) * 8, data, (int)count, MPI_DOUBLE, MPI_STATUS_IGNORE), "write");
    need(MPI_File_close(&file), "close");
  }
  free(data);
  rank = (rank + 1) % ranks;
  count = share(all, &first);
  data = numbers(count, 0);
  MPI_File file = open_file("hacc-io", 0);
  for (int variable = 0; variable < 9; variable++) {
    need(MPI_File_read_at(file, (variable * all + first) * 8, data, (int)count, MPI_DOUBLE, MPI_STATUS_IGNORE), "read");
    verify(data, count, rank);
  }
  need(MPI_File_close(&file), "close");
  free(data);
}

static void ior(void) {
  enum { COUNT = 32768 };
  long n = mesh ? mesh : 8;
  double *data = numbers(COUNT, rank);
  MPI_File file = open_file("ior", 0);
  for (long step = 0; step < steps; step++) {
    compute(compute_ms);
    for (long i = 0; i < n; i++)
      need(MPI_File_write_at(file, ((rank * steps + step) * n + i) * COUNT * 8, data, COUNT, MPI_DOUBLE, MPI_STATUS_IGNORE),
           "write");
  }
  MPI_Barrier(MPI_COMM_WORLD);
  rank = (rank + 1) % ranks;
  for (long i = 0; i < steps * n; i++) {
    need(MPI_File_read_at(file, (rank * steps * n + i) * COUNT * 8, data, COUNT, MPI_DOUBLE, MPI_STATUS_IGNORE), "read");
    verify(data, COUNT, rank);
  }
  need(MPI_File_close(&file), "close");
  free(data);
}

static void segments(void) {
  enum { COUNT = 47008 / 8 };
  long n = mesh ? mesh : 16;
  double *data = numbers(COUNT, rank);
  MPI_File file = open_file("segments", 0);
  for (long step = 0; step < steps; step++) {
    compute(compute_ms);
    for (long i = 0; i < n; i++) {
      MPI_Offset at = ((step * n + i) * ranks + rank) * (MPI_Offset)COUNT * 8;
      need(MPI_File_write_at_all(file, at, data, COUNT, MPI_DOUBLE, MPI_STATUS_IGNORE), "write");
    }
  }
  need(MPI_File_close(&file), "close");
  free(data);
}

static void small(void) {
  long n = mesh ? mesh : 24;
  double *data = numbers(500, rank);
  MPI_File file = open_file("small", 0);
  for (long step = 0; step < steps; step++) {
    compute(compute_ms);
    for (long i = 0; i < n * n; i++) {
      long slot = (i * 37 + step) % (n * n);
      int count = (int)(5 + slot * 131 % 496);
      MPI_Offset at = ((rank * steps + step) * n * n + slot) * 4096;
      need(MPI_File_write_at(file, at, data, count, MPI_DOUBLE, MPI_STATUS_IGNORE), "write");
    }
  }
  need(MPI_File_close(&file), "close");
  free(data);
}

/* A matrix of `rows` x `columns` numbers: this rank's block of rows or columns. */
static long block_of(int columns_too, long rows, long columns, MPI_Datatype *block) {
  long first, count = share(columns_too ? columns : rows, &first);
  int sizes[2] = {(int)rows, (int)columns}, part[2] = {(int)rows, (int)columns}, start[2] = {0, 0};
  part[columns_too] = (int)count;
  start[columns_too] = (int)first;
  need(MPI_Type_create_subarray(2, sizes, part, start, MPI_ORDER_C, MPI_DOUBLE, block), "subarray");
  need(MPI_Type_commit(block), "commit");
  return (long)part[0] * part[1];
}

static void transpose(void) {
  long n = mesh ? mesh : 160, rows = n, columns = n * 16, first, count = share(columns, &first);
  MPI_Datatype by_rows, by_columns;
  long mine = block_of(0, rows, columns, &by_rows), theirs = block_of(1, rows, columns, &by_columns);
  long row, my_rows = share(rows, &row);
  double *data = malloc((size_t)(mine > theirs ? mine : theirs) * sizeof *data);
  if (data == NULL) wrong("no memory");
  for (long step = 0; step < steps; step++) {
    compute(compute_ms);
    for (long i = 0; i < my_rows * columns; i++) data[i] = number(step, row * columns + i);
    MPI_File file = open_file("transpose", step);
    set_view(file, 0, by_rows);
    need(MPI_File_write_all(file, data, (int)mine, MPI_DOUBLE, MPI_STATUS_IGNORE), "write");
    set_view(file, 0, by_columns);
    need(MPI_File_read_all(file, data, (int)theirs, MPI_DOUBLE, MPI_STATUS_IGNORE), "read");
    for (long i = 0; i < theirs; i++)
      if (data[i] != number(step, i / count * columns + first + i % count)) wrong("read something else");
    need(MPI_File_close(&file), "close");
  }
  free(data);
  MPI_Type_free(&by_rows);
  MPI_Type_free(&by_columns);
}

static void by_columns(const char *name, int barriers) {
  long n = mesh ? mesh : 128;
  MPI_Datatype block;
  long mine = block_of(1, n, n * 16, &block);
  double *data = numbers(mine, rank);
  MPI_File file = open_file(name, 0);
  set_view(file, 0, block);
  for (long step = 0; step < steps; step++) {
    compute(barriers || step % ranks != rank ? compute_ms : compute_ms * 3);
    if (barriers) MPI_Barrier(MPI_COMM_WORLD);
    need(MPI_File_write_at_all(file, step * mine, data, (int)mine, MPI_DOUBLE, MPI_STATUS_IGNORE), "write");
    if (barriers) MPI_Barrier(MPI_COMM_WORLD);
  }
  need(MPI_File_close(&file), "close");
  free(data);
  MPI_Type_free(&block);
}

static void phases(void) { by_columns("phases", 1); }

static void late(void) { by_columns("late", 0); }

static void log_records(void) {
  enum { RECORD = 25 };
  long n = mesh ? mesh : 16, records = n * 64, row;
  double *data = numbers(share(1024, &row) * 128, rank);
  long mine = share(1024, &row) * 128;
  MPI_File file = open_file("log", 0);
  for (long step = 0; step < steps; step++) {
    compute(compute_ms);
    for (long i = 0; i < records; i++) {
      MPI_Offset at = (rank * (steps * records) + step * records + i) * (MPI_Offset)(RECORD * 8);
      need(MPI_File_write_at(file, at, data, RECORD, MPI_DOUBLE, MPI_STATUS_IGNORE), "write");
      if (i % 256 == 255) {
        MPI_File dump = open_file("log-dump", step);
        need(MPI_File_write_at_all(dump, row * 128 * 8, data, (int)mine, MPI_DOUBLE, MPI_STATUS_IGNORE), "write");
        need(MPI_File_close(&dump), "close");
      }
    }
  }
  need(MPI_File_close(&file), "close");
  free(data);
}

int main(int count, char **arguments) {
  static const struct {
    const char *name;
    void (*run)(void);
  } kernels[] = {{"bt-io", bt_io},   {"s3d-io", s3d_io},       {"hacc-io", hacc_io}, {"ior", ior},   {"segments", segments},
                 {"small", small},   {"transpose", transpose}, {"phases", phases},   {"late", late}, {"log", log_records}};
  enum { KERNELS = sizeof kernels / sizeof *kernels };
  MPI_Init(&count, &arguments);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Info_create(&info);
  int kernel = 0;
  while (kernel < KERNELS && (count < 2 || strcmp(arguments[1], kernels[kernel].name) != 0)) kernel++;
  if (kernel == KERNELS || count % 2 != 0) wrong("expected a kernel, and options with a value each");
  for (int i = 2; i < count; i += 2) {
    char *value = arguments[i + 1], *equals = strchr(value, '=');
    if (strcmp(arguments[i], "--mesh") == 0) {
      mesh = atol(value);
    } else if (strcmp(arguments[i], "--steps") == 0) {
      steps = atol(value);
    } else if (strcmp(arguments[i], "--compute") == 0) {
      compute_ms = atof(value);
    } else if (strcmp(arguments[i], "--folder") == 0) {
      folder = value;
    } else if (strcmp(arguments[i], "--hint") == 0 && equals != NULL) {
      *equals = 0;
      MPI_Info_set(info, value, equals + 1);
    } else {
      wrong("unknown option");
    }
  }
  if (mesh < 0 || steps < 1) wrong("--mesh and --steps: expected positive numbers");
  kernels[kernel].run();
  MPI_Info_free(&info);
  MPI_Finalize();
  return 0;
}
