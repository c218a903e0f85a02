/* The benchmark of Hong, You and Chung (2006), section 5. Standard MPI-IO only.
 *
 *   mpiexec -n CLIENTS benchmark SEGMENTS SEGMENT_BYTES EXECUTIONS FILE RESULTS
 *
 * SEGMENTS of SEGMENT_BYTES lie one behind the other in FILE; client r owns every CLIENTS-th, beginning with the r-th.
 * All clients write theirs in one collective call, EXECUTIONS times, and then read them as often. RESULTS gets two lines,
 * "write" and "read", each with the seconds of all executions on the slowest client. The last contents are verified: a
 * wrong byte ends the program with an error.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, clients;

static void fail(const char *what) {
  fprintf(stderr, "client %d: %s\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void need(int code, const char *what) {
  char text[MPI_MAX_ERROR_STRING];
  int length;
  if (code == MPI_SUCCESS) return;
  MPI_Error_string(code, text, &length);
  fprintf(stderr, "client %d: %s: %s\n", rank, what, text);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* What the file holds at an offset. */
static unsigned char value_at(long long offset) { return (unsigned char)((unsigned long long)offset * 2654435761u >> 13); }

static long number(const char *text, const char *what, long least) {
  char *end;
  long value = strtol(text, &end, 10);
  if (*end != 0 || value < least) fail(what);
  return value;
}

int main(int count, char **words) {
  MPI_File file;
  MPI_Datatype segment, filetype;
  double slowest[2];

  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &clients);
  if (count != 6) fail("expected SEGMENTS SEGMENT_BYTES EXECUTIONS FILE RESULTS");
  long segments = number(words[1], "SEGMENTS: expected a number from 1", 1);
  long bytes = number(words[2], "SEGMENT_BYTES: expected a number from 1", 1);
  long executions = number(words[3], "EXECUTIONS: expected a number from 1", 1);
  long own = segments / clients + (rank < segments % clients);
  if (own > 0x7fffffff) fail("SEGMENTS: expected at most 2147483647 for each client");

  unsigned char *memory = malloc((size_t)(own * bytes + 1));
  if (memory == NULL) fail("no memory");
  for (long i = 0; i < own * bytes; i++) {
    long long offset = ((long long)(i / bytes) * clients + rank) * bytes + i % bytes;
    memory[i] = value_at(offset);
  }

  need(MPI_Type_contiguous((int)bytes, MPI_BYTE, &segment), "segment");
  need(MPI_Type_commit(&segment), "segment");
  need(MPI_Type_vector((int)(own > 0 ? own : 1), 1, clients, segment, &filetype), "filetype");
  need(MPI_Type_commit(&filetype), "filetype");
  need(MPI_File_open(MPI_COMM_WORLD, words[4], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file), "open");
  need(MPI_File_set_size(file, 0), "set_size");
  need(MPI_File_set_view(file, (MPI_Offset)rank * bytes, segment, filetype, "native", MPI_INFO_NULL), "set_view");

  for (int reads = 0; reads < 2; reads++) {
    if (reads) memset(memory, 0, (size_t)(own * bytes));
    MPI_Barrier(MPI_COMM_WORLD);
    double mine = -MPI_Wtime();
    for (long i = 0; i < executions; i++)
      if (reads)
        need(MPI_File_read_at_all(file, 0, memory, (int)own, segment, MPI_STATUS_IGNORE), "read");
      else
        need(MPI_File_write_at_all(file, 0, memory, (int)own, segment, MPI_STATUS_IGNORE), "write");
    mine += MPI_Wtime();
    MPI_Reduce(&mine, &slowest[reads], 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  }
  for (long i = 0; i < own * bytes; i++) {
    long long offset = ((long long)(i / bytes) * clients + rank) * bytes + i % bytes;
    if (memory[i] != value_at(offset)) fail("read something else than was written");
  }

  need(MPI_File_close(&file), "close");
  if (rank == 0) {
    FILE *results = fopen(words[5], "w");
    need(MPI_File_delete(words[4], MPI_INFO_NULL), "delete");
    if (results == NULL) fail("RESULTS: cannot write");
    fprintf(results, "write %.9f\nread %.9f\n", slowest[0], slowest[1]);
    if (fclose(results) != 0) fail("RESULTS: cannot write");
  }
  free(memory);
  MPI_Type_free(&filetype);
  MPI_Type_free(&segment);
  MPI_Finalize();
  return 0;
}
