/* What messages take within a node and between nodes, and how nodes see a folder: `pioscope machines calibrate` runs it.
 *
 *   mpiexec -n RANKS messages FOLDER RESULTS
 *
 * Writes lines to RESULTS: `nodes`, `ranks-a-node`, `processors` (of rank 0's node) and `is-seen` (whether what rank 0 makes in
 * the folder is there for all nodes) with a number; then what each measurement found: its name, bytes, the median of its
 * seconds, and their quartiles.
 *
 *   within, between   a message of so many bytes on its way, between two ranks of a node, and of two nodes
 *   at-once           the same between nodes, where all nodes send and receive in pairs
 *   send, receive     how long a rank is busy with one that is small: who sends some one after the other, and who takes in
 *                     what came while it slept
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runs.h"

enum { RUNS = 7, BURST = 32, SMALL = 8, LARGEST = 1 << 22, MOST_ROUNDS = 200 };

static const int sizes[] = {SMALL, 1 << 10, 8 << 10, 64 << 10, 1 << 20, LARGEST};
static const double run_s = 0.02;
static int rank, ranks;
static char *memory;
static FILE *results; /* of rank 0 */

static void need(int code, const char *what) {
  if (code == MPI_SUCCESS) return;
  fprintf(stderr, "messages: %s failed\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void print(const char *name, int bytes, double *seconds) {
  fprintf(results, "%s %d", name, bytes);
  print_runs(results, seconds, RUNS);
}

/* Seconds of a message on its way: there and back so often, as one of two ranks of a communicator. */
static double exchange(MPI_Comm comm, int partner, int is_first, int bytes, int rounds) {
  double start = MPI_Wtime();
  for (int i = 0; i < rounds; i++) {
    if (is_first) MPI_Send(memory, bytes, MPI_BYTE, partner, 0, comm);
    MPI_Recv(memory, bytes, MPI_BYTE, partner, 0, comm, MPI_STATUS_IGNORE);
    if (!is_first) MPI_Send(memory, bytes, MPI_BYTE, partner, 0, comm);
  }
  return (MPI_Wtime() - start) / (2 * rounds);
}

/* Ranks of a communicator in pairs, so many of them at once; the others sleep. Those of the first rank are printed: it is
 * rank 0 of all. */
static void ping_pong(const char *name, MPI_Comm comm, int pairs, int least) {
  int me = -1, count = 0;
  double runs[RUNS];
  if (comm != MPI_COMM_NULL) {
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &count);
  }
  int plays = me >= 0 && me < 2 * pairs && (me ^ 1) < count;
  for (size_t size = 0; size < sizeof sizes / sizeof *sizes; size++) {
    if (sizes[size] < least) continue;
    int rounds = 1;
    for (int run = -1; run < RUNS; run++) {
      meet_asleep();
      if (plays) {
        double way = exchange(comm, me ^ 1, !(me & 1), sizes[size], run < 0 ? 3 : rounds);
        if (run >= 0) runs[run] = way;
        if (run < 0 && me % 2 == 0) rounds = (int)(run_s / (2 * way + 1e-9));
      }
      if (run < 0) {
        rounds = rounds < 1 ? 1 : rounds > MOST_ROUNDS ? MOST_ROUNDS : rounds;
        /* As many for all. */
        MPI_Bcast(&rounds, 1, MPI_INT, 0, MPI_COMM_WORLD);
      }
    }
    if (rank == 0) print(name, sizes[size], runs);
  }
}

/* How long the two ends of small messages are busy with them. */
static void measure_ends(MPI_Comm comm) {
  double sends[RUNS], receives[RUNS];
  int me = -1;
  if (comm != MPI_COMM_NULL) MPI_Comm_rank(comm, &me);
  for (int run = 0; run < RUNS; run++) {
    meet_asleep();
    double start = MPI_Wtime();
    if (me == 0)
      for (int i = 0; i < BURST; i++) MPI_Send(memory, SMALL, MPI_BYTE, 1, 0, comm);
    sends[run] = (MPI_Wtime() - start) / BURST;
    if (me == 1) {
      usleep(10000);
      start = MPI_Wtime();
      for (int i = 0; i < BURST; i++) MPI_Recv(memory, SMALL, MPI_BYTE, 0, 0, comm, MPI_STATUS_IGNORE);
      receives[run] = (MPI_Wtime() - start) / BURST;
      MPI_Send(&receives[run], 1, MPI_DOUBLE, 0, 0, comm);
    }
    if (me == 0) MPI_Recv(&receives[run], 1, MPI_DOUBLE, 1, 0, comm, MPI_STATUS_IGNORE);
  }
  if (rank == 0) print("send", SMALL, sends), print("receive", SMALL, receives);
}

/* Whether what rank 0 makes in a folder is there for all ranks. */
static int is_seen(const char *folder) {
  char path[4096];
  struct stat status;
  snprintf(path, sizeof path, "%s/seen-by-all", folder);
  FILE *made = rank == 0 ? fopen(path, "w") : NULL;
  if (rank == 0 && (made == NULL || fclose(made) != 0)) need(MPI_ERR_FILE, "making a file in the folder");
  meet_asleep();
  int seen = stat(path, &status) == 0;
  MPI_Allreduce(MPI_IN_PLACE, &seen, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (rank == 0) unlink(path);
  return seen;
}

int main(int count, char **words) {
  MPI_Comm node, heads;
  int beside, place, nodes;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (count != 3) need(MPI_ERR_ARG, "messages FOLDER RESULTS: reading arguments");
  if (rank == 0 && (results = fopen(words[2], "w")) == NULL) need(MPI_ERR_FILE, "opening the file for results");
  memory = calloc(1, LARGEST);
  if (memory == NULL) need(MPI_ERR_NO_MEM, "calloc");
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &place);
  MPI_Comm_size(node, &beside);
  /* The first rank of each node. */
  MPI_Comm_split(MPI_COMM_WORLD, place == 0 ? 0 : MPI_UNDEFINED, rank, &heads);
  nodes = place == 0;
  MPI_Allreduce(MPI_IN_PLACE, &nodes, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &beside, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  int seen = is_seen(words[1]), usable = processors(node);
  if (rank == 0) fprintf(results, "nodes %d\nranks-a-node %d\nis-seen %d\nprocessors %d\n", nodes, beside, seen, usable);
  if (nodes > 1) {
    /* The node of rank 0, which is the first of it. */
    int of_node = rank, here;
    MPI_Comm_size(node, &here);
    MPI_Bcast(&of_node, 1, MPI_INT, 0, node);
    MPI_Bcast(&here, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (here > 1) ping_pong("within", of_node == 0 ? node : MPI_COMM_NULL, 1, 0);
    ping_pong("between", heads, 1, 0);
    if (nodes > 3) ping_pong("at-once", heads, nodes / 2, LARGEST);
    measure_ends(heads);
  }
  meet_asleep();
  if (rank == 0 && fclose(results) != 0) need(MPI_ERR_IO, "writing the results");
  MPI_Finalize();
  return 0;
}
