/* What programs that measure have in common: how their ranks meet, and what they tell of several runs. */
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
/* As many processors as the control groups of this process allow it the time of: each of those that its group is in has a limit. */
static inline int quota(void) {
  char group[1024] = "", path[1280];
  int least = CPU_SETSIZE;
  FILE *groups = fopen("/proc/self/cgroup", "r");
  while (groups != NULL && fgets(path, 1024, groups) != NULL)
    if (strncmp(path, "0::/", 4) == 0) snprintf(group, sizeof group, "%s", path + 3);
  if (groups != NULL) fclose(groups);
  group[strcspn(group, "\n")] = '\0';
  for (char *end = group + strlen(group); end != NULL; end = strrchr(group, '/')) {
    long time, period;
    *end = '\0';
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", group);
    FILE *limit = fopen(path, "r");
    if (limit == NULL) continue;
    if (fscanf(limit, "%ld %ld", &time, &period) == 2 && period > 0 && time / period < least) least = (int)(time / period);
    fclose(limit);
  }
  return least > 0 ? least : 1;
}

/* Those that any rank of the node may use: launchers bind ranks to some. */
static inline int processors(MPI_Comm node) {
  cpu_set_t mine;
  int allowed = quota();
  CPU_ZERO(&mine);
  sched_getaffinity(0, sizeof mine, &mine);
  MPI_Allreduce(MPI_IN_PLACE, &mine, sizeof mine, MPI_BYTE, MPI_BOR, node);
  MPI_Allreduce(MPI_IN_PLACE, &allowed, 1, MPI_INT, MPI_MIN, node);
  int bound = CPU_COUNT(&mine) > 0 ? CPU_COUNT(&mine) : 1;
  return bound < allowed ? bound : allowed;
}
#endif
