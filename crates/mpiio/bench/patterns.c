/* Times reads and writes of usual access patterns. Standard MPI-IO only.
 *
 *   mpiexec -n RANKS patterns [--pattern interleaved|subarray|contiguous|segments] [--pieces N] [--repeat R]
 *                             [--mode write|read|both] [--calls collective|independent]
 *                             [--file PATH] [--hint KEY=VALUE]...
 *
 * interleaved  rank r owns every P-th 4-byte element, N elements a rank
 * subarray     a float array of 128 x 128 x 64 cells a rank (N: edge of the first dimension instead of 128), cut into
 *              blocks
 * contiguous   N 4-byte elements a rank, one after the other
 * segments     N segments of 47,008 bytes a rank, those of all ranks in turn, a call for each: IOR's "hard" case
 *
 * Prints one line for each direction: pattern, ranks, pieces, MB in all, least and median seconds, MB/s of the median.
 * The content is verified: a wrong byte ends the program with an error.
 */
#include "need.h"

#include <stdlib.h>
#include <string.h>

enum { INTERLEAVED, SUBARRAY, CONTIGUOUS, SEGMENTS, PATTERNS };
static const char *const names[] = {"interleaved", "subarray", "contiguous", "segments"};

/* Of a segment. */
enum { SEGMENT_ELEMENTS = 47008 / 4 };

static int rank, ranks;

static void wrong(const char *what) {
  fprintf(stderr, "rank %d: %s\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

struct pattern {
  int kind;
  long pieces;
  MPI_Datatype filetype;
  MPI_Offset displacement;
  long elements;
  int sizes[3], sub[3], starts[3];
};

static void make_pattern(struct pattern *pattern) {
  if (pattern->kind == INTERLEAVED) {
    MPI_Type_vector((int)pattern->pieces, 1, ranks, MPI_FLOAT, &pattern->filetype);
    pattern->displacement = (MPI_Offset)rank * 4;
    pattern->elements = pattern->pieces;
  } else if (pattern->kind == CONTIGUOUS) {
    MPI_Type_contiguous((int)pattern->pieces, MPI_FLOAT, &pattern->filetype);
    pattern->displacement = (MPI_Offset)rank * pattern->pieces * 4;
    pattern->elements = pattern->pieces;
  } else if (pattern->kind == SEGMENTS) {
    MPI_Type_contiguous(SEGMENT_ELEMENTS, MPI_FLOAT, &pattern->filetype);
    pattern->displacement = 0;
    pattern->elements = pattern->pieces * SEGMENT_ELEMENTS;
  } else {
    int grid[3] = {0, 0, 0}, r = rank;
    MPI_Dims_create(ranks, 3, grid);
    pattern->sizes[0] = pattern->pieces > 0 ? (int)pattern->pieces : 128;
    pattern->sizes[1] = 128;
    pattern->sizes[2] = 64;
    pattern->elements = 1;
    for (int d = 2; d >= 0; d--) {
      if (pattern->sizes[d] % grid[d] != 0) wrong("the array cannot be cut evenly");
      pattern->sub[d] = pattern->sizes[d] / grid[d];
      pattern->starts[d] = r % grid[d] * pattern->sub[d];
      r /= grid[d];
      pattern->elements *= pattern->sub[d];
    }
    MPI_Type_create_subarray(3, pattern->sizes, pattern->sub, pattern->starts, MPI_ORDER_C, MPI_FLOAT,
                             &pattern->filetype);
    pattern->displacement = 0;
    pattern->pieces = (long)pattern->sub[0] * pattern->sub[1];
  }
  MPI_Type_commit(&pattern->filetype);
}

/* The index in the file of a rank's i-th element: what is written there. */
static float value_of(const struct pattern *pattern, long i) {
  long index;
  if (pattern->kind == INTERLEAVED) {
    index = i * ranks + rank;
  } else if (pattern->kind == CONTIGUOUS) {
    index = rank * pattern->pieces + i;
  } else if (pattern->kind == SEGMENTS) {
    index = (i / SEGMENT_ELEMENTS * ranks + rank) * SEGMENT_ELEMENTS + i % SEGMENT_ELEMENTS;
  } else {
    long z = i % pattern->sub[2], y = i / pattern->sub[2] % pattern->sub[1], x = i / pattern->sub[2] / pattern->sub[1];
    index = ((x + pattern->starts[0]) * pattern->sizes[1] + y + pattern->starts[1]) * pattern->sizes[2] + z +
            pattern->starts[2];
  }
  return (float)(index % 16777213);
}

/* The file as anyone would read it: element k is k. */
static void verify_file(const char *path, const struct pattern *pattern) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    FILE *file = fopen(path, "rb");
    float block[4096];
    size_t count;
    long index = 0;
    if (file == NULL) wrong("cannot open the file");
    while ((count = fread(block, sizeof *block, 4096, file)) > 0)
      for (size_t i = 0; i < count; i++, index++)
        if (block[i] != (float)(index % 16777213)) wrong("the file holds something else");
    fclose(file);
    if (index != pattern->elements * ranks) wrong("the file has another size");
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

typedef int (*call)(MPI_File, MPI_Offset, void *, int, MPI_Datatype, MPI_Status *);

static int write_independent(MPI_File file, MPI_Offset at, void *data, int count, MPI_Datatype type, MPI_Status *status) {
  return MPI_File_write_at(file, at, data, count, type, status);
}

static int write_collective(MPI_File file, MPI_Offset at, void *data, int count, MPI_Datatype type, MPI_Status *status) {
  return MPI_File_write_at_all(file, at, data, count, type, status);
}

/* All of this rank's data; the seconds of the slowest rank. */
static double timed(const struct pattern *pattern, MPI_File file, float *memory, call transfer) {
  double start, mine, slowest;
  MPI_Status status;
  long moved = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  start = MPI_Wtime();
  if (pattern->kind == SEGMENTS) {
    for (long i = 0; i < pattern->pieces; i++) {
      MPI_Offset at = (i * ranks + rank) * (MPI_Offset)SEGMENT_ELEMENTS;
      int count = 0;
      need(transfer(file, at, memory + i * SEGMENT_ELEMENTS, SEGMENT_ELEMENTS, MPI_FLOAT, &status), "transfer");
      MPI_Get_count(&status, MPI_FLOAT, &count);
      moved += count;
    }
  } else {
    int count = 0;
    need(transfer(file, 0, memory, (int)pattern->elements, MPI_FLOAT, &status), "transfer");
    MPI_Get_count(&status, MPI_FLOAT, &count);
    moved = count;
  }
  mine = MPI_Wtime() - start;
  if (moved != pattern->elements) wrong("a transfer was short");
  MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void report(const struct pattern *pattern, const char *mode, double *seconds, int repeat) {
  double mb = (double)pattern->elements * ranks * 4 / 1e6;
  if (rank != 0) return;
  qsort(seconds, (size_t)repeat, sizeof *seconds, ascending);
  printf("%s %s ranks=%d pieces=%ld MB=%.3f min_s=%.6f median_s=%.6f MB/s=%.1f\n", names[pattern->kind], mode, ranks,
         pattern->pieces, mb, seconds[0], seconds[repeat / 2], mb / seconds[repeat / 2]);
  fflush(stdout);
}

int main(int count, char **arguments) {
  struct pattern pattern = {.kind = INTERLEAVED, .pieces = 0};
  const char *path = "patterns.dat", *mode = "both";
  int repeat = 5, independent = 0;
  MPI_File file;
  MPI_Info info;

  MPI_Init(&count, &arguments);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Info_create(&info);
  for (int i = 1; i + 1 < count; i += 2) {
    char *value = arguments[i + 1];
    if (strcmp(arguments[i], "--pattern") == 0) {
      for (pattern.kind = 0; pattern.kind < PATTERNS && strcmp(value, names[pattern.kind]) != 0; pattern.kind++) {
      }
      if (pattern.kind == PATTERNS) wrong("unknown pattern");
    } else if (strcmp(arguments[i], "--calls") == 0) {
      independent = strcmp(value, "independent") == 0;
    } else if (strcmp(arguments[i], "--pieces") == 0) {
      pattern.pieces = atol(value);
    } else if (strcmp(arguments[i], "--repeat") == 0) {
      repeat = atoi(value);
    } else if (strcmp(arguments[i], "--mode") == 0) {
      mode = value;
    } else if (strcmp(arguments[i], "--file") == 0) {
      path = value;
    } else if (strcmp(arguments[i], "--hint") == 0 && strchr(value, '=') != NULL) {
      *strchr(value, '=') = 0;
      MPI_Info_set(info, value, value + strlen(value) + 1);
    } else {
      wrong("unknown option");
    }
  }
  if (pattern.pieces == 0 && pattern.kind != SUBARRAY) pattern.pieces = pattern.kind == SEGMENTS ? 64 : 16000;
  if (repeat < 1) repeat = 1;
  make_pattern(&pattern);

  double *seconds = malloc((size_t)repeat * sizeof *seconds);
  float *memory = malloc((size_t)pattern.elements * sizeof *memory);
  if (seconds == NULL || memory == NULL) wrong("no memory");
  for (long i = 0; i < pattern.elements; i++) memory[i] = value_of(&pattern, i);

  /* A file on I/O servers can be read back through MPI only. */
  int plain = strncmp(path, "pioscope:", 9) != 0 && getenv("PIOSCOPE_STORE") == NULL;
  int writes = strcmp(mode, "read") != 0, reads = strcmp(mode, "write") != 0;
  need(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file), "open");
  need(MPI_File_set_size(file, 0), "set_size");
  need(MPI_File_set_view(file, pattern.displacement, MPI_FLOAT, pattern.filetype, "native", info), "set_view");
  for (int i = 0; i < (writes ? repeat : 1); i++)
    seconds[i] = timed(&pattern, file, memory, independent ? write_independent : write_collective);
  if (writes) {
    if (plain) verify_file(path, &pattern);
    report(&pattern, "write", seconds, repeat);
  }
  for (int i = 0; reads && i < repeat; i++) {
    memset(memory, 0, (size_t)pattern.elements * sizeof *memory);
    seconds[i] = timed(&pattern, file, memory, independent ? MPI_File_read_at : MPI_File_read_at_all);
    for (long k = 0; k < pattern.elements; k++)
      if (memory[k] != value_of(&pattern, k)) wrong("read something else");
  }
  if (reads) report(&pattern, "read", seconds, repeat);

  need(MPI_File_close(&file), "close");
  if (rank == 0) MPI_File_delete(path, MPI_INFO_NULL);
  free(memory);
  free(seconds);
  MPI_Info_free(&info);
  MPI_Type_free(&pattern.filetype);
  MPI_Finalize();
  return 0;
}
