/* Collective and independent writes of other bytes of the same stretch of a file, under way at the same time: none loses
 * what another wrote.
 *
 *   beside FOLDER [single|multiple]
 */
#include "suite.h"

#include <pthread.h>

enum { INTS = 120000, ROUNDS = 12 };

static int several_threads;

static int value(int round, int i) { return (round * 16 + rank) * INTS + i; }

static void *write_nothing(void *file) {
  OK(MPI_File_write_at_all(*(MPI_File *)file, 0, NULL, 0, MPI_INT, MPI_STATUS_IGNORE));
  return NULL;
}

/* One rank writes its ints, between the others', on its own; the others write theirs together. */
static void round_of(MPI_File file, int round) {
  static int data[INTS], back[INTS];
  int is_alone = round % ranks == rank, kind = round / ranks % (several_threads ? 4 : 3);
  int together = is_alone ? 0 : INTS;
  MPI_Request alone = MPI_REQUEST_NULL, all = MPI_REQUEST_NULL;
  for (int i = 0; i < INTS; i++) data[i] = value(round, i);
  if (kind == 0) {
    if (is_alone) OK(MPI_File_iwrite_at(file, 0, data, INTS, MPI_INT, &alone));
    OK(MPI_File_write_at_all(file, 0, data, together, MPI_INT, MPI_STATUS_IGNORE));
  } else if (kind == 1) {
    OK(MPI_File_iwrite_at_all(file, 0, data, together, MPI_INT, &all));
    if (is_alone) OK(MPI_File_write_at(file, 0, data, INTS, MPI_INT, MPI_STATUS_IGNORE));
  } else if (kind == 3 && is_alone) {
    pthread_t other;
    pthread_create(&other, NULL, write_nothing, &file);
    /* Not before the others may know of the collective write. */
    usleep(1000 * (round % 5));
    OK(MPI_File_write_at(file, 0, data, INTS, MPI_INT, MPI_STATUS_IGNORE));
    pthread_join(other, NULL);
  } else if (kind == 3) {
    OK(MPI_File_write_at_all(file, 0, data, together, MPI_INT, MPI_STATUS_IGNORE));
  } else {
    OK(MPI_File_write_at_all_begin(file, 0, data, together, MPI_INT));
    if (is_alone) OK(MPI_File_iwrite_at(file, 0, data, INTS, MPI_INT, &alone));
    OK(MPI_File_write_at_all_end(file, data, MPI_STATUS_IGNORE));
  }
  OK(MPI_Wait(&alone, MPI_STATUS_IGNORE));
  OK(MPI_Wait(&all, MPI_STATUS_IGNORE));
  settle(file);
  OK(MPI_File_read_at(file, 0, back, INTS, MPI_INT, MPI_STATUS_IGNORE));
  int lost = 0;
  for (int i = 0; i < INTS; i++) lost += back[i] != data[i];
  if (lost > 0) fprintf(stderr, "round %d: %d of rank %d are lost\n", round, lost, rank);
  CHECK(lost == 0);
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int count, char **arguments) {
  int provided, level = MPI_THREAD_SINGLE;
  if (count > 2 && strcmp(arguments[2], "multiple") == 0) level = MPI_THREAD_MULTIPLE;
  MPI_Init_thread(&count, &arguments, level, &provided);
  several_threads = provided == MPI_THREAD_MULTIPLE;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  snprintf(path, sizeof path, "%s", arguments[1]);
  MPI_File file = created("beside");
  interleave(file);
  for (int round = 0; round < ROUNDS * ranks; round++) round_of(file, round);
  OK(MPI_File_close(&file));
  return end();
}
