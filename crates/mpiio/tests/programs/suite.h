/* What the programs of the conformance suite share. Each takes a folder, and says "all is as MPI says" at the end.
 *
 * They are plain MPI programs: the MPI's own files must pass them, too, where the standard says what must come out.
 */
#ifndef SUITE_H
#define SUITE_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* MPICH's MPI_STATUSES_IGNORE is no array; GCC 12 takes it for one that is too short. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#endif

static int rank, ranks, failures;
static char path[1200];

#define CHECK(condition)                                                                                     \
  do {                                                                                                       \
    if (!(condition)) {                                                                                      \
      fprintf(stderr, "FAILED: %s:%d: %s (rank %d of %d)\n", __FILE__, __LINE__, #condition, rank, ranks);    \
      failures++;                                                                                            \
    }                                                                                                        \
  } while (0)
#define OK(call) CHECK((call) == MPI_SUCCESS)
#define FAILS(call, wanted) CHECK(class_of(call) == (wanted))

static inline int class_of(int code) {
  int error_class = -1;
  MPI_Error_class(code, &error_class);
  return error_class;
}

static inline int count_of(MPI_Status *status, MPI_Datatype type) {
  int count = -1;
  MPI_Get_count(status, type, &count);
  return count;
}

/* The same name on all ranks, and no such file. */
static inline const char *fresh(const char *name) {
  static char file[1300];
  snprintf(file, sizeof file, "%s/%s", path, name);
  MPI_Barrier(MPI_COMM_WORLD);
  /* Not unlink: the files may be on I/O servers. */
  if (rank == 0) MPI_File_delete(file, MPI_INFO_NULL);
  MPI_Barrier(MPI_COMM_WORLD);
  return file;
}

static inline MPI_File opened(const char *name, int mode) {
  MPI_File file = MPI_FILE_NULL;
  OK(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file));
  return file;
}

static inline MPI_File created(const char *name) {
  return opened(fresh(name), MPI_MODE_CREATE | MPI_MODE_RDWR);
}

/* Ranks take turns by single ints. */
static inline void interleave(MPI_File file) {
  MPI_Datatype type;
  MPI_Type_create_resized(MPI_INT, 0, (MPI_Aint)sizeof(int) * ranks, &type);
  MPI_Type_commit(&type);
  OK(MPI_File_set_view(file, (MPI_Offset)sizeof(int) * rank, MPI_INT, type, "native", MPI_INFO_NULL));
  MPI_Type_free(&type);
}

/* What was written can be read by all. */
static inline void settle(MPI_File file) {
  OK(MPI_File_sync(file));
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_sync(file));
}

static inline void begin(int *count, char ***arguments) {
  int provided;
  MPI_Init_thread(count, arguments, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  snprintf(path, sizeof path, "%s", *count > 1 ? (*arguments)[1] : "/tmp");
}

static inline int end(void) {
  int all = 0;
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf(all == 0 ? "all is as MPI says\n" : "%d checks failed\n", all);
  MPI_Finalize();
  return all != 0;
}

#endif
