/* Programs whose I/O time is predicted and measured, to say how far predictions are off: `pioscope machines calibrate` runs it.
 *
 *   mpiexec -n RANKS samples KIND FILE
 *
 *   shared   all ranks write records of one array together, by turns, and read them back
 *   blocks   each rank writes large blocks of its own, and reads those of another rank
 *   small    each rank writes and reads records of its own, a few hundred bytes each
 *   steps    ranks compute, some longer than others, and write together a little after each step
 */
#define _DEFAULT_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BLOCK = 1 << 20, BLOCKS = 24, RECORD = 384, RECORDS = 2048, PIECE = 2048, PIECES = 128, ROUNDS = 24, STEPS = 24 };

static int rank, ranks;
static char *memory; /* of a block */

static void need(int code, const char *what) {
  if (code == MPI_SUCCESS) return;
  fprintf(stderr, "samples: %s failed\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static MPI_File opened(const char *path, int mode) {
  MPI_File file;
  need(MPI_File_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &file), "MPI_File_open");
  return file;
}

static MPI_File created(const char *path) { return opened(path, MPI_MODE_CREATE | MPI_MODE_RDWR); }

static void done(MPI_File file) { need(MPI_File_close(&file), "MPI_File_close"); }

/* Processor time, not the clock's: with more ranks than processors it takes longer. */
static double used(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void compute(double seconds) {
  for (double until = used() + seconds; used() < until;) {}
}

/* This rank sees every RANKS-th piece of the file. */
static void view(MPI_File file) {
  MPI_Datatype every;
  MPI_Type_vector(PIECES, PIECE, PIECE * ranks, MPI_BYTE, &every);
  MPI_Type_commit(&every);
  need(MPI_File_set_view(file, (MPI_Offset)rank * PIECE, MPI_BYTE, every, "native", MPI_INFO_NULL), "MPI_File_set_view");
  MPI_Type_free(&every);
}

static void shared(const char *path) {
  MPI_File file = created(path);
  view(file);
  for (int i = 0; i < ROUNDS; i++)
    need(MPI_File_write_all(file, memory, PIECE * PIECES, MPI_BYTE, MPI_STATUS_IGNORE), "MPI_File_write_all");
  done(file);
  file = opened(path, MPI_MODE_RDONLY);
  view(file);
  for (int i = 0; i < ROUNDS; i++)
    need(MPI_File_read_all(file, memory, PIECE * PIECES, MPI_BYTE, MPI_STATUS_IGNORE), "MPI_File_read_all");
  done(file);
}

static void blocks(const char *path) {
  MPI_File file = created(path);
  MPI_Offset mine = (MPI_Offset)rank * BLOCKS * BLOCK, others = (MPI_Offset)((rank + 1) % ranks) * BLOCKS * BLOCK;
  for (int i = 0; i < BLOCKS; i++)
    need(MPI_File_write_at(file, mine + (MPI_Offset)i * BLOCK, memory, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE), "MPI_File_write_at");
  done(file);
  MPI_Barrier(MPI_COMM_WORLD);
  file = opened(path, MPI_MODE_RDONLY);
  for (int i = 0; i < BLOCKS; i++)
    need(MPI_File_read_at(file, others + (MPI_Offset)i * BLOCK, memory, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE), "MPI_File_read_at");
  done(file);
}

static void small(const char *path) {
  MPI_File file = created(path);
  for (int i = 0; i < RECORDS; i++)
    need(MPI_File_write_at(file, ((MPI_Offset)i * ranks + rank) * RECORD, memory, RECORD, MPI_BYTE, MPI_STATUS_IGNORE),
         "MPI_File_write_at");
  for (int i = 0; i < RECORDS; i++)
    need(MPI_File_read_at(file, ((MPI_Offset)i * ranks + rank) * RECORD, memory, RECORD, MPI_BYTE, MPI_STATUS_IGNORE),
         "MPI_File_read_at");
  done(file);
}

static void steps(const char *path) {
  MPI_File file = created(path);
  view(file);
  for (int i = 0; i < STEPS; i++) {
    compute(1e-3 * (1 + rank % 2));
    need(MPI_File_write_all(file, memory, PIECE * PIECES / 4, MPI_BYTE, MPI_STATUS_IGNORE), "MPI_File_write_all");
  }
  done(file);
}

int main(int count, char **words) {
  static const struct {
    const char *name;
    void (*run)(const char *path);
  } kinds[] = {{"shared", shared}, {"blocks", blocks}, {"small", small}, {"steps", steps}};
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (count != 3) need(MPI_ERR_ARG, "samples KIND FILE: reading arguments");
  memory = malloc(BLOCK);
  if (memory == NULL) need(MPI_ERR_NO_MEM, "malloc");
  memset(memory, rank, BLOCK);
  /* Which rank a launcher starts last is no part of what is compared. */
  MPI_Barrier(MPI_COMM_WORLD);
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (strcmp(words[1], kinds[i].name) == 0) kinds[i].run(words[2]);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) MPI_File_delete(words[2], MPI_INFO_NULL);
  free(memory);
  MPI_Finalize();
  return 0;
}
