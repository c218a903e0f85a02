/* What a file system that all nodes share costs them: `pioscope machines calibrate` runs it.
 *
 *   mpiexec -n RANKS shared FOLDER RESULTS
 *
 * One rank of each node makes calls to files in the folder; the others sleep. Writes lines to RESULTS: what was measured,
 * bytes, the median of its seconds, and their quartiles.
 *
 *   open, create, close, resize, lock, unlock, sync   calls of one rank: of a file that is there, of a new one, …
 *   write, read         calls of one rank, of so many bytes, inside a file that nobody else uses meanwhile; what is read
 *                       was written by another node, if there is one, and is not in this node's memory
 *   stat, remove        calls of one rank, of files that another node made, if there is one
 *   cpu-NAME            the processor time of the same calls
 *   node-write, node-read   bytes that several threads of one node move, and what each 1 MiB takes then
 *   all-write, all-read     the same of all nodes at once: what each 1 MiB of any takes
 *   threads             how many small reads are made at once (in the place of bytes), and the seconds for each of them
 *   both-write, both-grow   small writes of two threads of a node to one file: within it, and at its end
 *   owner               a small write of one node, so many bytes behind one that another has just made
 */
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "runs.h"

enum { RUNS = 5, SMALL = 8, MIB = 1 << 20, LONG = 4 << 20, STEP = 64 << 10, MOST_THREADS = 16, MOVERS = 4 };
/* Bytes of the files in which calls are made. */
static const off_t length = 32 << 20;
/* The furthest that a lock is looked for from where it was taken. */
static const off_t furthest = (off_t)1 << 30;
/* Of one measurement, about. */
static const double run_s = 0.15;
static const int most_calls = 1000;

static int head = -1, heads; /* this rank among the first ranks of the nodes; -1: it is none */
static MPI_Comm between;
static const char *folder;
static char *memory;
static FILE *results; /* of rank 0 */

static void need(int holds, const char *what) {
  if (holds) return;
  perror("shared");
  fprintf(stderr, "shared: %s failed\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static double now_of(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double now(void) { return now_of(CLOCK_MONOTONIC); }
static double used(void) { return now_of(CLOCK_THREAD_CPUTIME_ID); }

static void print(const char *name, long bytes, double *seconds) {
  if (head != 0) return;
  fprintf(results, "%s %ld", name, bytes);
  print_runs(results, seconds, RUNS);
}

/* The path of a file of the folder: that of a node, or with this number. */
static const char *path_of(char *path, size_t room, const char *name, int number) {
  snprintf(path, room, "%s/%s-%d", folder, name, number);
  return path;
}

static int opened(const char *name, int number, int flags) {
  char path[4096];
  int file = open(path_of(path, sizeof path, name, number), flags, 0600);
  need(file >= 0, path);
  return file;
}

static void removed(const char *name, int number) {
  char path[4096];
  unlink(path_of(path, sizeof path, name, number));
}

static void put(int file, off_t offset, size_t bytes) { need(pwrite(file, memory, bytes, offset) == (ssize_t)bytes, "pwrite"); }

/* What calls on a file are: made in turn, the next of so many. */
struct kind {
  const char *name, *cpu;
  void (*call)(int file, long bytes, int number);
};

/* What this node has read of a file leaves its memory. */
static void forget(int file) { need(posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) == 0, "posix_fadvise"); }

/* The locks of another node on what it wrote end when somebody reads it. */
static void end_locks(int file) {
  for (off_t offset = 0; offset < length; offset += MIB) need(pread(file, memory, MIB, offset) == MIB, "pread");
}

static void write_next(int file, long bytes, int number) { put(file, (off_t)number * bytes % (length - bytes), (size_t)bytes); }

/* Small reads are apart, so that no kernel has one's data from another. */
static void read_next(int file, long bytes, int number) {
  off_t step = bytes < STEP ? STEP : bytes;
  need(pread(file, memory, (size_t)bytes, (off_t)number * step % (length - bytes)) == bytes, "pread");
}

static void resize_next(int file, long bytes, int number) {
  (void)bytes;
  need(ftruncate(file, length + number % 2) == 0, "ftruncate");
}

static void set_lock(int file, short type, int number) {
  struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_start = number, .l_len = 1};
  need(fcntl(file, F_SETLKW, &range) == 0, "fcntl");
}

static void lock_next(int file, long bytes, int number) {
  (void)bytes;
  set_lock(file, F_WRLCK, number);
}

static void unlock_next(int file, long bytes, int number) {
  (void)bytes;
  set_lock(file, F_UNLCK, number);
}

/* Calls of rank 0 alone, as many a run as the time allows (and the length, for calls that must not come to a place twice). */
static void measure(struct kind kind, int file, long bytes, int most) {
  double seconds[RUNS], cpu[RUNS];
  int number = 0, rounds = 1;
  if (head == 0)
    for (int run = -1; run < RUNS; run++) {
      double start = now(), busy = used();
      for (int i = 0; i < rounds; i++) kind.call(file, bytes, number++);
      double each = (now() - start) / rounds;
      if (run >= 0) seconds[run] = each, cpu[run] = (used() - busy) / rounds;
      if (run < 0) {
        rounds = (int)(run_s / each);
        rounds = rounds < 1 ? 1 : rounds > most / RUNS ? most / RUNS : rounds;
      }
    }
  print(kind.name, bytes, seconds);
  if (kind.cpu != NULL) print(kind.cpu, bytes, cpu);
}

static void measure_opens(void) {
  enum { OPENS = 8 };
  double opens[RUNS], closes[RUNS], creates[RUNS], cpu_opens[RUNS], cpu_closes[RUNS];
  if (head == 0) {
    for (int run = 0; run < RUNS; run++) {
      int made[OPENS];
      double start = now();
      for (int i = 0; i < OPENS; i++) made[i] = opened("new", run * OPENS + i, O_CREAT | O_RDWR);
      creates[run] = (now() - start) / OPENS;
      for (int i = 0; i < OPENS; i++) close(made[i]);
      double busy = used();
      start = now();
      for (int i = 0; i < OPENS; i++) made[i] = opened("new", run * OPENS + i, O_RDWR);
      opens[run] = (now() - start) / OPENS, cpu_opens[run] = (used() - busy) / OPENS;
      for (int i = 0; i < OPENS; i++) put(made[i], 0, SMALL);
      busy = used(), start = now();
      for (int i = 0; i < OPENS; i++) close(made[i]);
      closes[run] = (now() - start) / OPENS, cpu_closes[run] = (used() - busy) / OPENS;
    }
    for (int i = 0; i < RUNS * OPENS; i++) removed("new", i);
  }
  print("open", 0, opens);
  print("cpu-open", 0, cpu_opens);
  print("create", 0, creates);
  print("close", 0, closes);
  print("cpu-close", 0, cpu_closes);
}

/* Of files that another node has made, if there is one. */
static void measure_names(void) {
  enum { NAMES = 8 };
  double stats[RUNS], removals[RUNS], cpu_stats[RUNS], cpu_removals[RUNS];
  for (int i = 0; i < RUNS * NAMES && head == heads - 1; i++) {
    int file = opened("named", i, O_CREAT | O_RDWR);
    put(file, 0, SMALL);
    close(file);
  }
  meet_asleep();
  for (int run = 0; run < RUNS && head == 0; run++) {
    double busy = used(), start = now();
    for (int i = 0; i < NAMES; i++) {
      char path[4096];
      struct stat known;
      need(stat(path_of(path, sizeof path, "named", run * NAMES + i), &known) == 0, path);
    }
    stats[run] = (now() - start) / NAMES, cpu_stats[run] = (used() - busy) / NAMES;
    busy = used(), start = now();
    for (int i = 0; i < NAMES; i++) removed("named", run * NAMES + i);
    removals[run] = (now() - start) / NAMES, cpu_removals[run] = (used() - busy) / NAMES;
  }
  print("stat", 0, stats);
  print("cpu-stat", 0, cpu_stats);
  print("remove", 0, removals);
  print("cpu-remove", 0, cpu_removals);
}

/* A sync, after so many bytes were written. */
static void measure_sync(int file, long bytes) {
  double seconds[RUNS];
  if (head == 0)
    for (int run = 0; run < RUNS; run++) {
      put(file, run * (off_t)bytes, (size_t)bytes);
      double start = now();
      need(fsync(file) == 0, "fsync");
      seconds[run] = now() - start;
    }
  print("sync", bytes, seconds);
}

/* Several threads of a node at work. */
struct mover {
  int file, number, count, writes, failed;
  long bytes;
  off_t first, step; /* where its calls begin, and how far they are apart */
};

static void *move(void *given) {
  struct mover *mover = given;
  char *data = malloc((size_t)mover->bytes);
  mover->failed = data == NULL;
  if (data != NULL) memset(data, 1, (size_t)mover->bytes);
  for (int i = 0; i < mover->count && !mover->failed; i++) {
    off_t offset = mover->first + i * mover->step;
    ssize_t moved = mover->writes ? pwrite(mover->file, data, (size_t)mover->bytes, offset) : pread(mover->file, data, (size_t)mover->bytes, offset);
    mover->failed = moved != mover->bytes;
  }
  free(data);
  return NULL;
}

/* Seconds that so many threads of this node take together. */
static double at_once(struct mover *movers, int count) {
  pthread_t threads[MOST_THREADS];
  double start = now();
  for (int i = 0; i < count; i++) need(pthread_create(&threads[i], NULL, move, &movers[i]) == 0, "pthread_create");
  for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
  double took = now() - start;
  for (int i = 0; i < count; i++) need(!movers[i].failed, "a call of a thread");
  return took;
}

/* How fast the first `nodes` nodes move data, each in a file of its own. A node reads what another wrote. */
static void measure_rate(const char *name, int writes, int nodes, double guess_s) {
  double seconds[RUNS];
  int each = (int)(run_s / MOVERS / guess_s);
  each = each < 1 ? 1 : each > (int)(length / MIB / MOVERS) ? (int)(length / MIB / MOVERS) : each;
  for (int run = 0; run < RUNS; run++) {
    struct mover movers[MOVERS];
    double took = 0, longest;
    int plays = head >= 0 && head < nodes;
    int file = plays ? opened("data", writes ? head : (head + 1) % heads, writes ? O_RDWR : O_RDONLY) : -1;
    if (plays && !writes) forget(file);
    for (int i = 0; i < MOVERS; i++)
      movers[i] = (struct mover){.file = file, .count = each, .writes = writes, .bytes = MIB, .first = (off_t)i * each * MIB, .step = MIB};
    meet_asleep();
    if (plays) took = at_once(movers, MOVERS);
    if (plays) close(file);
    MPI_Reduce(&took, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    seconds[run] = longest / (MOVERS * each * nodes);
  }
  print(name, MIB, seconds);
}

/* Small reads of all nodes, more and more at once, and as far apart as those of one rank. */
static void measure_threads(double small_s) {
  for (int threads = 1; threads <= MOST_THREADS; threads *= 2) {
    double seconds[RUNS];
    int each = (int)(run_s / 2 / small_s), most = (int)(length / STEP / threads);
    each = each < 4 ? 4 : each > most ? most : each;
    for (int run = 0; run < RUNS; run++) {
      struct mover movers[MOST_THREADS];
      double took = 0, longest;
      int file = head >= 0 ? opened("data", (head + 1) % heads, O_RDONLY) : -1;
      if (head >= 0) forget(file);
      for (int i = 0; i < threads; i++)
        movers[i] = (struct mover){.file = file, .count = each, .bytes = SMALL, .first = (off_t)i * STEP, .step = (off_t)threads * STEP};
      meet_asleep();
      if (head >= 0) took = at_once(movers, threads);
      if (head >= 0) close(file);
      MPI_Reduce(&took, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
      seconds[run] = longest / each;
    }
    print("threads", (long)threads * heads, seconds);
  }
}

/* Two threads of one node that write to one file: seconds of a write of one of them. */
static void measure_both(const char *name, int grow, double small_s) {
  double seconds[RUNS];
  int each = (int)(run_s / 2 / small_s);
  each = each < 4 ? 4 : each > 500 ? 500 : each;
  if (head == 0)
    for (int run = 0; run < RUNS; run++) {
      int file = opened("both", 0, O_CREAT | O_TRUNC | O_RDWR);
      if (!grow) need(ftruncate(file, length) == 0, "ftruncate");
      struct mover movers[2];
      for (int i = 0; i < 2; i++)
        movers[i] = (struct mover){.file = file, .count = each, .writes = 1, .bytes = SMALL, .first = (off_t)i * SMALL, .step = 2 * SMALL};
      seconds[run] = at_once(movers, 2) / each;
      close(file);
    }
  if (head == 0) removed("both", 0);
  print(name, SMALL, seconds);
}

/* A write of the second node, so far behind one of the first, which had made another there before. */
static void measure_owner(off_t distance) {
  double seconds[RUNS];
  int file = head == 0 || head == 1 ? opened("owned", 0, O_RDWR) : -1;
  for (int run = 0; run < RUNS; run++) {
    double took = 0;
    if (head == 0) put(file, 0, SMALL), put(file, 0, SMALL);
    if (head == 0) MPI_Send(&took, 1, MPI_DOUBLE, 1, 0, between);
    if (head == 1) {
      MPI_Recv(&took, 1, MPI_DOUBLE, 0, 0, between, MPI_STATUS_IGNORE);
      double start = now();
      put(file, distance, SMALL);
      took = now() - start;
      MPI_Send(&took, 1, MPI_DOUBLE, 0, 0, between);
    }
    if (head == 0) MPI_Recv(&took, 1, MPI_DOUBLE, 1, 0, between, MPI_STATUS_IGNORE);
    seconds[run] = took;
  }
  if (file >= 0) close(file);
  print("owner", (long)distance, seconds);
}

/* The file of this node, in which nobody else writes. */
static void fill(void) {
  int file = opened("data", head, O_CREAT | O_RDWR);
  for (off_t offset = 0; offset < length; offset += MIB) put(file, offset, MIB);
  close(file);
}

/* About how long a call takes, as rank 0 sees it. */
static double guess(void (*call)(int, long, int), long bytes) {
  double took = 0;
  if (head == 0) {
    int file = opened("data", 0, O_RDWR);
    double start = now();
    for (int i = 0; i < 3; i++) call(file, bytes, i);
    took = (now() - start) / 3;
    close(file);
  }
  MPI_Bcast(&took, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  return took;
}

static void measure_all(void) {
  static const long calls[] = {SMALL, 4 << 10, 64 << 10, MIB, LONG};
  int file = head == 0 ? opened("data", 0, O_RDWR) : -1, other = head >= 0 ? opened("data", (head + 1) % heads, O_RDONLY) : -1;
  measure_opens();
  measure_names();
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
    measure((struct kind){"write", "cpu-write", write_next}, file, calls[i], most_calls);
  /* The others' reading must not hold up what rank 0 measures. */
  meet_asleep();
  if (head >= 0) end_locks(other);
  meet_asleep();
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    if (head == 0) forget(other);
    measure((struct kind){"read", "cpu-read", read_next}, other, calls[i], (int)(length / (calls[i] < STEP ? STEP : calls[i])));
  }
  measure((struct kind){"resize", NULL, resize_next}, file, 0, 100);
  measure((struct kind){"lock", NULL, lock_next}, file, 0, 100);
  measure((struct kind){"unlock", NULL, unlock_next}, file, 0, 100);
  measure_sync(file, SMALL);
  measure_sync(file, MIB);
  if (head == 0) close(file);
  if (head >= 0) close(other);
  double small_s = guess(write_next, SMALL), large_s = guess(write_next, MIB);
  measure_both("both-write", 0, small_s);
  measure_both("both-grow", 1, small_s);
  measure_rate("node-write", 1, 1, large_s);
  measure_rate("node-read", 0, 1, large_s);
  measure_rate("all-write", 1, heads, large_s);
  measure_rate("all-read", 0, heads, large_s);
  measure_threads(small_s);
  if (heads < 2) return;
  if (head == 0) {
    int owned = opened("owned", 0, O_CREAT | O_RDWR);
    need(ftruncate(owned, furthest + SMALL) == 0, "ftruncate");
    close(owned);
  }
  meet_asleep();
  measure_owner(0);
  for (off_t distance = 4096; distance <= furthest; distance *= 2) measure_owner(distance);
  if (head == 0) removed("owned", 0);
}

int main(int count, char **words) {
  MPI_Comm node;
  int rank, place;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  need(count == 3, "shared FOLDER RESULTS: reading arguments");
  folder = words[1];
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &place);
  MPI_Comm_split(MPI_COMM_WORLD, place == 0 ? 0 : MPI_UNDEFINED, rank, &between);
  if (place == 0) MPI_Comm_rank(between, &head), MPI_Comm_size(between, &heads);
  MPI_Bcast(&heads, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (rank == 0) need((results = fopen(words[2], "w")) != NULL, "opening the file for results");
  need(posix_memalign((void **)&memory, 4096, LONG) == 0, "posix_memalign");
  memset(memory, 1, LONG);
  if (head >= 0) fill();
  meet_asleep();
  measure_all();
  meet_asleep();
  if (head >= 0) removed("data", head);
  if (rank == 0) need(fclose(results) == 0, "writing the results");
  MPI_Finalize();
  return 0;
}
