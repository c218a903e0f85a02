/* What programs that measure have in common: how their ranks meet, and what they tell of several runs. */
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The median of the seconds of so many runs, and their quartiles, at the end of a line. */
static inline void print_runs(FILE *results, double *seconds, int runs) {
  qsort(seconds, (size_t)runs, sizeof *seconds, ascending);
  fprintf(results, " %.9f %.9f %.9f\n", seconds[runs / 2], seconds[runs / 4], seconds[runs - 1 - runs / 4]);
}

/* Until all ranks are here, without taking processor time from them. */
static inline void meet_asleep(void) {
  MPI_Request all;
  int here = 0;
  for (MPI_Ibarrier(MPI_COMM_WORLD, &all); !here; usleep(500)) MPI_Test(&all, &here, MPI_STATUS_IGNORE);
}

#ifdef CPU_COUNT /* With _GNU_SOURCE. */
/* Those that any rank of the node may use: launchers bind ranks to some. */
static inline int processors(MPI_Comm node) {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  sched_getaffinity(0, sizeof mine, &mine);
  MPI_Allreduce(MPI_IN_PLACE, &mine, sizeof mine, MPI_BYTE, MPI_BOR, node);
  return CPU_COUNT(&mine) > 0 ? CPU_COUNT(&mine) : 1;
}
#endif
