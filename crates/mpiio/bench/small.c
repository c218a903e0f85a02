/* Times what a job does around its data: opening a file, setting a view, a collective write, another one behind it, closing.
 * Standard MPI-IO only.
 *
 *   mpiexec -n RANKS small [--pieces N] [--bytes B] [--repeat R] [--file PATH]
 *
 * Rank r owns every P-th piece of B bytes, a multiple of 4, and writes N of them in each call. Each step is repeated R times, with a
 * new file each time, and takes as long as the slowest rank's.
 *
 * Prints a line for each step, as patterns.c. The content is verified: a wrong byte ends the program with an error.
 */
#include "need.h"

#include <stdlib.h>
#include <string.h>

enum { OPEN, VIEW, WRITE, AGAIN, CLOSE, STEPS };
static const char *const names[] = {"open", "view", "write", "again", "close"};

/* Calls that write. */
enum { WRITES = 2 };

static double began;

/* All ranks begin a step together. */
static void begin(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  began = MPI_Wtime();
}

static double slowest(void) {
  double mine = MPI_Wtime() - began, most;
  MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return most;
}

static void verify(const char *path, int elements) {
  FILE *file = fopen(path, "rb");
  int element;
  for (int i = 0; i < elements; i++) {
    if (file == NULL || fread(&element, sizeof element, 1, file) != 1 || element != i) {
      fprintf(stderr, "element %d is wrong\n", i);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
  fclose(file);
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int count, char **arguments) {
  const char *path = "small.dat";
  int rank, ranks, pieces = 64, bytes = 4, repeat = 5;
  MPI_File file;
  MPI_Datatype filetype;

  MPI_Init(&count, &arguments);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 1; i + 1 < count; i += 2) {
    if (strcmp(arguments[i], "--pieces") == 0) pieces = atoi(arguments[i + 1]);
    if (strcmp(arguments[i], "--bytes") == 0) bytes = atoi(arguments[i + 1]);
    if (strcmp(arguments[i], "--repeat") == 0) repeat = atoi(arguments[i + 1]);
    if (strcmp(arguments[i], "--file") == 0) path = arguments[i + 1];
  }
  /* Elements of a piece, and of a call. */
  int length = bytes / 4, elements = pieces * length;
  int *memory = malloc((size_t)(WRITES * elements) * sizeof *memory);
  double *seconds[STEPS];
  for (int step = 0; step < STEPS; step++) seconds[step] = malloc((size_t)repeat * sizeof(double));
  for (int i = 0; i < WRITES * elements; i++) memory[i] = (i / length * ranks + rank) * length + i % length;
  MPI_Type_vector(WRITES * pieces, length, ranks * length, MPI_INT, &filetype);
  MPI_Type_commit(&filetype);

  for (int i = 0; i < repeat; i++) {
    begin();
    need(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file), "open");
    seconds[OPEN][i] = slowest();
    begin();
    need(MPI_File_set_view(file, (MPI_Offset)rank * bytes, MPI_INT, filetype, "native", MPI_INFO_NULL), "set_view");
    seconds[VIEW][i] = slowest();
    begin();
    need(MPI_File_write_at_all(file, 0, memory, elements, MPI_INT, MPI_STATUS_IGNORE), "write");
    seconds[WRITE][i] = slowest();
    begin();
    need(MPI_File_write_at_all(file, elements, memory + elements, elements, MPI_INT, MPI_STATUS_IGNORE), "write");
    seconds[AGAIN][i] = slowest();
    begin();
    need(MPI_File_close(&file), "close");
    seconds[CLOSE][i] = slowest();
    if (rank == 0) {
      verify(path, ranks * WRITES * elements);
      MPI_File_delete(path, MPI_INFO_NULL);
    }
  }
  for (int step = 0; rank == 0 && step < STEPS; step++) {
    qsort(seconds[step], (size_t)repeat, sizeof(double), ascending);
    printf("small %s ranks=%d pieces=%d MB=%.3f min_s=%.6f median_s=%.6f\n", names[step], ranks, pieces,
           step == WRITE || step == AGAIN ? (double)ranks * elements * 4 / 1e6 : 0.0, seconds[step][0], seconds[step][repeat / 2]);
  }
  for (int step = 0; step < STEPS; step++) free(seconds[step]);
  free(memory);
  MPI_Type_free(&filetype);
  MPI_Finalize();
  return 0;
}
