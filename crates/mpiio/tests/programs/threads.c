/* Several threads: independent operations on one file, collective ones on files of their own communicators. */
#include "suite.h"

#include <pthread.h>

enum { THREADS = 4, BLOCKS = 40, INTS = 50 };

static MPI_File together;
static MPI_Comm comms[THREADS];

/* Interleaved blocks through one handle: threads must not undo what others write. */
static void *independent(void *argument) {
  int me = (int)(long)argument, data[INTS];
  for (int block = 0; block < BLOCKS; block++) {
    MPI_Status status;
    MPI_Offset at = ((block * THREADS + me) * ranks + rank) * (MPI_Offset)INTS;
    for (int i = 0; i < INTS; i++) data[i] = (int)at + i;
    OK(MPI_File_write_at(together, at, data, INTS, MPI_INT, &status));
    CHECK(count_of(&status, MPI_INT) == INTS);
    memset(data, 0, sizeof data);
    OK(MPI_File_read_at(together, at, data, INTS, MPI_INT, &status));
    for (int i = 0; i < INTS; i++) CHECK(data[i] == (int)at + i);
  }
  return NULL;
}

static void *collective(void *argument) {
  int me = (int)(long)argument, data[INTS], back[INTS];
  char name[1300];
  MPI_File file;
  MPI_Datatype type;
  MPI_Request request;
  MPI_Status status;
  snprintf(name, sizeof name, "%s/thread.%d", path, me);
  OK(MPI_File_open(comms[me], name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
  MPI_Type_create_resized(MPI_INT, 0, 4 * ranks, &type);
  MPI_Type_commit(&type);
  OK(MPI_File_set_view(file, 4 * rank, MPI_INT, type, "native", MPI_INFO_NULL));
  for (int round = 0; round < 10; round++) {
    for (int i = 0; i < INTS; i++) data[i] = 1000 * me + 100 * rank + round + i;
    if (round % 2) {
      OK(MPI_File_iwrite_at_all(file, 0, data, INTS, MPI_INT, &request));
      OK(MPI_Wait(&request, &status));
    } else {
      OK(MPI_File_write_at_all(file, 0, data, INTS, MPI_INT, &status));
    }
    CHECK(count_of(&status, MPI_INT) == INTS);
    OK(MPI_File_read_at_all(file, 0, back, INTS, MPI_INT, &status));
    CHECK(memcmp(data, back, sizeof data) == 0);
  }
  MPI_Type_free(&type);
  OK(MPI_File_close(&file));
  return NULL;
}

static void run(void *(*work)(void *)) {
  pthread_t threads[THREADS];
  for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

int main(int count, char **arguments) {
  int provided;
  begin(&count, &arguments);
  MPI_Query_thread(&provided);
  if (provided == MPI_THREAD_MULTIPLE) {
    MPI_Datatype gaps;
    together = created("together");
    /* Every second int: what is written must not be in the way of what is not. */
    MPI_Type_create_resized(MPI_INT, 0, 8, &gaps);
    MPI_Type_commit(&gaps);
    OK(MPI_File_set_view(together, 0, MPI_INT, gaps, "native", MPI_INFO_NULL));
    run(independent);
    OK(MPI_File_close(&together));
    MPI_Type_free(&gaps);
    for (int i = 0; i < THREADS; i++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    run(collective);
    for (int i = 0; i < THREADS; i++) MPI_Comm_free(&comms[i]);
  }
  return end();
}
