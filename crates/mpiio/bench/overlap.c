/* Times how much of an operation's time a program hides behind its own computing. Standard MPI-IO only.
 *
 *   mpiexec -n RANKS overlap FILE [--level single|funneled|serialized|multiple] [--bytes N] [--compute-ms T]
 *                                 [--pieces N] [--rounds R]
 *
 * For each of write and read, independent and collective: R times the blocking operation, and R times the nonblocking one
 * with T ms of computing between its beginning and MPI_Wait. Each rank has N bytes, in PIECES pieces that alternate with
 * those of the other ranks.
 *
 * Prints a line for each: the calls, the direction, the thread level, ranks; medians over rounds of the slowest rank's
 * seconds in the blocking call, in the one that begins and in MPI_Wait; how much of the blocking time is hidden, 1 - waiting /
 * blocking; and what the program computed meanwhile, over what it computes in as many milliseconds without I/O.
 */
#include "need.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_ROUNDS = 1000 };
static const char *const names[] = {"single", "funneled", "serialized", "multiple"};
static const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};

static int rank, ranks;

/* Computes without any call of MPI but for the clock; how much. */
static double compute(double seconds) {
  static volatile double sum;
  double rounds = 0;
  for (double start = MPI_Wtime(); MPI_Wtime() - start < seconds; rounds++)
    for (int i = 1; i < 1000; i++) sum += 1.0 / i;
  return rounds;
}

static const char *name_of(int level) {
  for (int i = 0; i < 4; i++)
    if (levels[i] == level) return names[i];
  return "unknown";
}

static int by_size(const void *a, const void *b) {
  double first = *(const double *)a, second = *(const double *)b;
  return (first > second) - (first < second);
}

/* Median over rounds of the slowest rank. */
static double median(double *seconds, int rounds) {
  static double slowest[MOST_ROUNDS];
  MPI_Allreduce(seconds, slowest, rounds, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  qsort(slowest, (size_t)rounds, sizeof *slowest, by_size);
  return slowest[rounds / 2];
}

int main(int count, char **arguments) {
  static double blocking[MOST_ROUNDS], beginning[MOST_ROUNDS], waiting[MOST_ROUNDS], alone[MOST_ROUNDS], computed[MOST_ROUNDS];
  int level = 0, provided, rounds = 5, bytes = 1 << 20, pieces = 1;
  double seconds = 0.05;
  for (int i = 2; i + 1 < count; i += 2) {
    if (strcmp(arguments[i], "--level") == 0)
      for (int k = 0; k < 4; k++) level = strcmp(arguments[i + 1], names[k]) == 0 ? k : level;
    else if (strcmp(arguments[i], "--bytes") == 0) bytes = atoi(arguments[i + 1]);
    else if (strcmp(arguments[i], "--compute-ms") == 0) seconds = 1e-3 * atof(arguments[i + 1]);
    else if (strcmp(arguments[i], "--pieces") == 0) pieces = atoi(arguments[i + 1]);
    else if (strcmp(arguments[i], "--rounds") == 0) rounds = atoi(arguments[i + 1]);
  }
  if (count < 2 || rounds < 1 || rounds > MOST_ROUNDS || pieces < 1 || bytes < pieces || bytes % pieces != 0) {
    fprintf(stderr, "overlap FILE [--level LEVEL] [--bytes N] [--compute-ms T] [--pieces N] [--rounds R]\n");
    return 2;
  }
  MPI_Init_thread(&count, &arguments, levels[level], &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);

  MPI_File file;
  MPI_Datatype type;
  unsigned char *data = malloc((size_t)bytes), *back = malloc((size_t)bytes);
  if (data == NULL || back == NULL) return 1;
  for (int i = 0; i < bytes; i++) data[i] = (unsigned char)(i * 7 + rank * 13);
  need(MPI_File_open(MPI_COMM_WORLD, arguments[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file), "open");
  MPI_Type_vector(pieces, bytes / pieces, bytes / pieces * ranks, MPI_BYTE, &type);
  MPI_Type_commit(&type);
  need(MPI_File_set_view(file, (MPI_Offset)rank * (bytes / pieces), MPI_BYTE, type, "native", MPI_INFO_NULL), "view");

  for (int kind = 0; kind < 4; kind++) {
    int reads = kind % 2, together = kind / 2;
    for (int round = 0; round < rounds; round++) {
      MPI_Request request;
      MPI_Barrier(MPI_COMM_WORLD);
      double start = MPI_Wtime();
      if (together)
        need(reads ? MPI_File_read_at_all(file, 0, back, bytes, MPI_BYTE, MPI_STATUS_IGNORE)
                   : MPI_File_write_at_all(file, 0, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE), "blocking");
      else
        need(reads ? MPI_File_read_at(file, 0, back, bytes, MPI_BYTE, MPI_STATUS_IGNORE)
                   : MPI_File_write_at(file, 0, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE), "blocking");
      blocking[round] = MPI_Wtime() - start;
      if (reads) memset(back, 0, (size_t)bytes);

      MPI_Barrier(MPI_COMM_WORLD);
      alone[round] = compute(seconds);
      MPI_Barrier(MPI_COMM_WORLD);
      start = MPI_Wtime();
      if (together)
        need(reads ? MPI_File_iread_at_all(file, 0, back, bytes, MPI_BYTE, &request)
                   : MPI_File_iwrite_at_all(file, 0, data, bytes, MPI_BYTE, &request), "beginning");
      else
        need(reads ? MPI_File_iread_at(file, 0, back, bytes, MPI_BYTE, &request)
                   : MPI_File_iwrite_at(file, 0, data, bytes, MPI_BYTE, &request), "beginning");
      beginning[round] = MPI_Wtime() - start;
      computed[round] = compute(seconds);
      start = MPI_Wtime();
      need(MPI_Wait(&request, MPI_STATUS_IGNORE), "waiting");
      waiting[round] = MPI_Wtime() - start;
      if (reads && memcmp(data, back, (size_t)bytes) != 0) {
        fprintf(stderr, "rank %d: what was read is not what was written\n", rank);
        MPI_Abort(MPI_COMM_WORLD, 1);
      }
    }
    double whole = median(blocking, rounds), begun = median(beginning, rounds), waited = median(waiting, rounds);
    double speed = median(computed, rounds) / median(alone, rounds);
    if (rank == 0)
      printf("calls=%s direction=%s level=%s ranks=%d blocking=%.6f beginning=%.6f waiting=%.6f hidden=%.3f computed=%.3f\n",
             together ? "collective" : "independent", reads ? "read" : "write", name_of(provided),
             ranks, whole, begun, waited, 1 - waited / whole, speed);
  }
  MPI_Type_free(&type);
  need(MPI_File_close(&file), "close");
  MPI_Finalize();
  return 0;
}
