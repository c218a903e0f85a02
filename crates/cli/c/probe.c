/* What calls of all ranks cost under the MPI-IO that carries this program's out: `pioscope machines calibrate` runs it.
 *
 *   mpiexec -n RANKS probe FILE RESULTS [CALLS [requests]]
 *
 * Writes lines to RESULTS: how many ranks a node has, and the job, and for each call its name, the median of its seconds, and their
 * quartiles. Those of a call of all ranks are what it takes each of them, in the mean: after other work, if each has a processor,
 * and as NAME-again behind several such calls.
 * The line `fresh` has the seconds that new memory takes in an exchange, and the bytes of each rank in it; the line
 * `pieces` those that many small pieces take beyond few, and how many more each rank has; with `requests`, for FILE on I/O
 * servers, the line `request` those of a write of a few bytes, where all ranks make such, each to pages of its own. CALLS is a
 * file near rank 0, for small calls, if FILE is on I/O servers, or one of a file system whose answers take time: then collective
 * writes go to /dev/null, which takes none.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runs.h"

enum { ROUNDS = 7, SMALL_CALLS = 2000, REQUESTS = 250, PIECE = 4096, PIECES = 256, FEW_PIECES = 32, SMALL_PIECES = 8192 };

/* After which nothing is left of what a process used before. */
static const double OTHER_WORK_S = 0.01;

/* Calls behind other work: the first has to fetch all that the library uses, the next few what is left of it. */
enum { CALLS_IN_A_ROW = 6 };

static int rank, ranks, beside; /* ranks on this node; the most of any */
static int crowded;             /* whether ranks share processors */
static FILE *results; /* of rank 0 */

static void need(int code, const char *what) {
  if (code == MPI_SUCCESS) return;
  fprintf(stderr, "probe: %s failed\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void print(const char *name, double *seconds, int rounds) {
  fputs(name, results);
  print_runs(results, seconds, rounds);
}

/* Of the seconds that each rank took in each round. */
static void print_means(const char *name, const double *mine, int rounds) {
  double means[ROUNDS];
  MPI_Reduce(mine, means, rounds, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  for (int i = 0; i < rounds; i++) means[i] /= ranks;
  if (rank == 0) print(name, means, rounds);
}

/* What a write of this rank takes beyond the kernel's call. Files on I/O servers are none of the kernel's. */
static void measure_calls(const char *path) {
  char bytes[8] = "pioscope";
  double beyond[ROUNDS];
  MPI_File file;
  int kernel = open(path, O_RDWR);
  if (kernel < 0 && errno == ENOENT) return;
  if (kernel < 0) need(MPI_ERR_FILE, "open");
  need(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file), "MPI_File_open");
  for (int round = 0; round < ROUNDS; round++) {
    double start = MPI_Wtime();
    for (int i = 0; i < SMALL_CALLS; i++)
      need(MPI_File_write_at(file, i * 8, bytes, 8, MPI_BYTE, MPI_STATUS_IGNORE), "MPI_File_write_at");
    double through = MPI_Wtime() - start;
    start = MPI_Wtime();
    for (int i = 0; i < SMALL_CALLS; i++)
      if (pwrite(kernel, bytes, 8, i * 8) != 8) need(MPI_ERR_IO, "pwrite");
    beyond[round] = (through - (MPI_Wtime() - start)) / SMALL_CALLS;
  }
  need(MPI_File_close(&file), "MPI_File_close");
  close(kernel);
  print("call", beyond, ROUNDS);
}

/* Requests to servers, of all ranks at once, one by one. */
static void measure_requests(MPI_File file, double *took) {
  char bytes[8] = "pioscope";
  for (int round = -1; round < ROUNDS; round++) {
    meet_asleep();
    double start = MPI_Wtime();
    for (int i = 0; i < REQUESTS; i++)
      need(MPI_File_write_at(file, ((MPI_Offset)rank * REQUESTS + i) * PIECE, bytes, 8, MPI_BYTE, MPI_STATUS_IGNORE),
           "MPI_File_write_at");
    /* At first the pages are new. */
    if (round >= 0) took[round] = (MPI_Wtime() - start) / REQUESTS;
  }
}

/* Those with a processor each then go on at the same moment: what one of them wakes late, the others would count as the time
 * of a call. */
static void meet(void) {
  meet_asleep();
  if (!crowded) MPI_Barrier(MPI_COMM_WORLD);
}

/* Before such a call a program has computed, or moved data: of the library's own, the processor's caches have nothing left. */
static void meet_after_other_work(void) {
  enum { MOST = 64 << 20, PART = 1 << 16 };
  static char *memory;
  static size_t size = MOST, at;
  if (crowded) return; /* They do that to each other. */
  if (memory == NULL) {
#ifdef _SC_LEVEL3_CACHE_SIZE
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    if (cache > PART && cache < MOST) size = (size_t)cache / PART * PART;
#endif
    if ((memory = malloc(size)) == NULL) need(MPI_ERR_NO_MEM, "malloc");
  }
  for (double begun = MPI_Wtime(); MPI_Wtime() - begun < OTHER_WORK_S; at = (at + PART) % size) memset(memory + at, 1, PART);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Every rank talks to every other. */
static void connect_all(void) {
  char *to = calloc((size_t)ranks, 2);
  if (to == NULL) need(MPI_ERR_NO_MEM, "calloc");
  MPI_Alltoall(to, 1, MPI_BYTE, to + ranks, 1, MPI_BYTE, MPI_COMM_WORLD);
  free(to);
}

/* Seconds that a second exchange of so many bytes is faster than the first, whose memory nobody has used before; in the
 * mean of ranks. */
static double measure_fresh(MPI_File file) {
  char *data = calloc(PIECES, PIECE);
  MPI_Datatype every;
  double took[2], sum;
  if (data == NULL) need(MPI_ERR_NO_MEM, "calloc");
  memset(data, 1, (size_t)PIECES * PIECE);
  MPI_Type_vector(PIECES, PIECE, PIECE * ranks, MPI_BYTE, &every);
  MPI_Type_commit(&every);
  need(MPI_File_set_view(file, (MPI_Offset)rank * PIECE, MPI_BYTE, every, "native", MPI_INFO_NULL), "MPI_File_set_view");
  /* The pages of the file are no news the second time: they are there before. */
  need(MPI_File_write_at(file, 0, data, PIECES * PIECE, MPI_BYTE, MPI_STATUS_IGNORE), "MPI_File_write_at");
  for (int i = 0; i < 2; i++) {
    meet();
    double start = MPI_Wtime();
    need(MPI_File_write_at_all(file, 0, data, PIECES * PIECE, MPI_BYTE, MPI_STATUS_IGNORE), "MPI_File_write_at_all");
    took[i] = MPI_Wtime() - start;
  }
  took[0] -= took[1];
  MPI_Reduce(took, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Type_free(&every);
  free(data);
  return sum / ranks;
}

/* Seconds that many small pieces take in an exchange beyond the same bytes in few, in the mean of ranks. One rank writes. */
static double measure_pieces(const char *path) {
  static const int pieces[] = {FEW_PIECES, SMALL_PIECES};
  double took[ROUNDS], means[2][ROUNDS];
  MPI_Datatype every;
  MPI_File file;
  MPI_Info one;
  static double data[SMALL_PIECES];
  MPI_Info_create(&one);
  MPI_Info_set(one, "cb_nodes", "1");
  need(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, one, &file), "MPI_File_open");
  MPI_Info_free(&one);
  for (int many = 0; many < 2; many++) {
    int size = (int)sizeof data / pieces[many];
    MPI_Type_vector(pieces[many], size, size * ranks, MPI_BYTE, &every);
    MPI_Type_commit(&every);
    need(MPI_File_set_view(file, (MPI_Offset)rank * size, MPI_BYTE, every, "native", MPI_INFO_NULL), "MPI_File_set_view");
    for (int i = 0; i < ROUNDS; i++) {
      meet();
      double start = MPI_Wtime();
      need(MPI_File_write_at_all(file, 0, data, sizeof data, MPI_BYTE, MPI_STATUS_IGNORE), "MPI_File_write_at_all");
      took[i] = MPI_Wtime() - start;
    }
    MPI_Type_free(&every);
    MPI_Reduce(took, means[many], ROUNDS, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    qsort(means[many], ROUNDS, sizeof *took, ascending);
  }
  need(MPI_File_close(&file), "MPI_File_close");
  return (means[1][ROUNDS / 2] - means[0][ROUNDS / 2]) / ranks;
}

int main(int count, char **arguments) {
  double first_open, first_view, first_close, barriers[ROUNDS], requests[ROUNDS];
  /* After other work, and behind several such calls; where ranks share processors, there is no difference. */
  double opens[2][ROUNDS], closes[2][ROUNDS], views[2][ROUNDS], collectives[2][ROUNDS];
  char bytes[16] = "pioscope";
  MPI_File file;
  MPI_Datatype every;
  MPI_Comm node;
  MPI_Init(&count, &arguments);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (count < 3 || count > 5) need(MPI_ERR_ARG, "probe FILE RESULTS [CALLS [requests]]: reading arguments");
  int with_requests = count == 5;
  const char *near = count > 3 ? arguments[3] : NULL, *written = near != NULL ? "/dev/null" : arguments[1];
  /* Where nodes share a file system, they would come to the close one after the other, as they wait for each other's writes. */
  int on_servers = strncmp(arguments[1], "pioscope:", 9) == 0, writes = near == NULL || on_servers;
  /* Between nodes, ranks connect when they first talk to each other: programs have done so before. */
  if (near != NULL) connect_all();
  if (rank == 0 && (results = fopen(arguments[2], "w")) == NULL) need(MPI_ERR_FILE, "opening the file for results");
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_size(node, &beside);
  crowded = beside > processors(node);
  MPI_Comm_free(&node);
  MPI_Allreduce(MPI_IN_PLACE, &beside, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &crowded, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  int kinds = crowded ? 1 : 2, calls = crowded ? 1 : CALLS_IN_A_ROW;
  MPI_Type_vector(64, 8, 8 * ranks, MPI_BYTE, &every);
  MPI_Type_commit(&every);

  meet();
  double start = MPI_Wtime();
  need(MPI_File_open(MPI_COMM_WORLD, arguments[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file), "MPI_File_open");
  first_open = MPI_Wtime() - start;
  start = MPI_Wtime();
  need(MPI_File_set_view(file, rank * 8, MPI_BYTE, every, "native", MPI_INFO_NULL), "MPI_File_set_view");
  first_view = MPI_Wtime() - start;
  if (writes) need(MPI_File_write_at(file, rank * 8, bytes, 8, MPI_BYTE, MPI_STATUS_IGNORE), "MPI_File_write_at");
  start = MPI_Wtime();
  need(MPI_File_close(&file), "MPI_File_close");
  first_close = MPI_Wtime() - start;
  need(MPI_File_open(MPI_COMM_WORLD, arguments[1], MPI_MODE_RDWR, MPI_INFO_NULL, &file), "MPI_File_open");
  /* Ranks that share processors do not meet in between: they would leave one after the other, and pay for it here. */
  for (int i = 0; i < ROUNDS; i++)
    for (int call = 0; call < calls; call++) {
      int again = call > 0;
      if (!again) meet_after_other_work();
      start = MPI_Wtime();
      need(MPI_File_close(&file), "MPI_File_close");
      closes[again][i] = MPI_Wtime() - start;
      if (!again) meet_after_other_work();
      start = MPI_Wtime();
      need(MPI_File_open(MPI_COMM_WORLD, arguments[1], MPI_MODE_RDWR, MPI_INFO_NULL, &file), "MPI_File_open");
      opens[again][i] = MPI_Wtime() - start;
      if (writes) need(MPI_File_write_at(file, rank * 8, bytes, 8, MPI_BYTE, MPI_STATUS_IGNORE), "MPI_File_write_at");
    }
  if (with_requests) measure_requests(file, requests);
  /* The library is connected now, and only files whose names say so are to be there. */
  if (on_servers) unsetenv("PIOSCOPE_STORE");
  if (near != NULL) {
    need(MPI_File_close(&file), "MPI_File_close");
    need(MPI_File_open(MPI_COMM_WORLD, written, MPI_MODE_RDWR, MPI_INFO_NULL, &file), "MPI_File_open of /dev/null");
  }
  double fresh = measure_fresh(file), of_pieces = measure_pieces(written);
  for (int i = 0; i < ROUNDS; i++)
    for (int call = 0; call < calls; call++) {
      int again = call > 0;
      if (!again) meet_after_other_work();
      start = MPI_Wtime();
      need(MPI_File_set_view(file, rank * 8, MPI_BYTE, every, "native", MPI_INFO_NULL), "MPI_File_set_view");
      views[again][i] = MPI_Wtime() - start;
    }
  for (int i = 0; i < ROUNDS; i++)
    for (int call = 0; call < calls; call++) {
      int again = call > 0;
      if (!again) meet_after_other_work();
      start = MPI_Wtime();
      /* Two pieces, so that those of all ranks are mixed. */
      need(MPI_File_write_all(file, bytes, 16, MPI_BYTE, MPI_STATUS_IGNORE), "MPI_File_write_all");
      collectives[again][i] = MPI_Wtime() - start;
    }
  need(MPI_File_close(&file), "MPI_File_close");
  for (int i = 0; i < ROUNDS; i++) {
    start = MPI_Wtime();
    MPI_Barrier(MPI_COMM_WORLD);
    barriers[i] = MPI_Wtime() - start;
  }
  if (rank == 0) fprintf(results, "ranks-a-node %d %d\n", beside, ranks);
  if (rank == 0 && near != NULL) close(open(near, O_CREAT | O_RDWR, 0600));
  if (rank == 0) measure_calls(near != NULL ? near : arguments[1]);
  if (rank == 0 && near != NULL) unlink(near);
  meet();
  print_means("first-open", &first_open, 1);
  print_means("first-view", &first_view, 1);
  print_means("first-close", &first_close, 1);
  print_means("open", opens[0], ROUNDS);
  print_means("open-again", opens[kinds - 1], ROUNDS);
  print_means("close", closes[0], ROUNDS);
  print_means("close-again", closes[kinds - 1], ROUNDS);
  print_means("view", views[0], ROUNDS);
  print_means("view-again", views[kinds - 1], ROUNDS);
  print_means("collective", collectives[0], ROUNDS);
  print_means("collective-again", collectives[kinds - 1], ROUNDS);
  print_means("barrier", barriers, ROUNDS);
  if (with_requests) print_means("request", requests, ROUNDS);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    fprintf(results, "fresh %.9f %d\n", fresh, PIECE * PIECES);
    fprintf(results, "pieces %.9f %d\n", of_pieces, SMALL_PIECES - FEW_PIECES);
    MPI_File_delete(arguments[1], MPI_INFO_NULL);
    if (fclose(results) != 0) need(MPI_ERR_IO, "writing the results");
  }
  MPI_Type_free(&every);
  MPI_Finalize();
  return 0;
}
