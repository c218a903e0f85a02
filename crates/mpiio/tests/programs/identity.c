/* Random collective and independent operations, each done twice: through MPI_File_* (which the test has carried out by
 * us) and through the MPI's own functions. Files, memory and counts must be the same, byte for byte.
 *
 * identity FOLDER SEED CASES
 */
#include "native.h"

#include <fcntl.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_PIECES = 600, MOST_BYTES = 1 << 18, NATIVE_BYTES = 5 << 19 };

static int rank, ranks, failures;
static uint64_t shared_state, own_state;
static unsigned long seed;
static int this_case;

static uint64_t next(uint64_t *state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
/* The same on all ranks, and different. */
static int together(int most) { return (int)(next(&shared_state) % (uint64_t)most); }
static int alone(int most) { return (int)(next(&own_state) % (uint64_t)most); }

static void fail(const char *what) {
  fprintf(stderr, "FAILED: %s: rank %d of %d, seed %lu, case %d\n", what, rank, ranks, seed, this_case);
  failures++;
}

static void need(int code, const char *what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length;
  MPI_Error_string(code, text, &length);
  fprintf(stderr, "%s: ", text);
  fail(what);
}

/* A filetype of this rank, in bytes, and how much of it there is. */
struct view {
  MPI_Offset displacement;
  MPI_Datatype type;
  int bytes;      /* in one filetype */
  int tiles;      /* how many we access */
  int count;      /* pieces, if known, of one tile; else 0 */
  MPI_Aint offsets[MOST_PIECES];
  int lengths[MOST_PIECES];
};

static void commit(struct view *view) {
  MPI_Type_commit(&view->type);
  MPI_Type_size(view->type, &view->bytes);
}

static void interleaved(struct view *view) {
  int element = 1 << together(4), block = 1 + together(5), pieces = 1 + together(300);
  MPI_Datatype old;
  MPI_Type_contiguous(element, MPI_BYTE, &old);
  MPI_Type_vector(pieces, block, block * ranks, old, &view->type);
  view->displacement = together(100) + (MPI_Offset)rank * block * element;
  MPI_Type_free(&old);
  commit(view);
}

static void tiled(struct view *view) {
  int element = 1 + together(12);
  MPI_Aint place = 0;
  MPI_Datatype piece;
  MPI_Type_create_hindexed_block(1, element, &place, MPI_BYTE, &piece);
  MPI_Type_create_resized(piece, 0, (MPI_Aint)element * (ranks + together(2)), &view->type);
  view->displacement = together(50) + (MPI_Offset)rank * element;
  view->tiles = 1 + together(400);
  MPI_Type_free(&piece);
  commit(view);
}

static void subarrays(struct view *view) {
  int grid[3] = {0, 0, 0}, sizes[3], sub[3], starts[3], at[3], dimensions = 1 + together(3), r = rank;
  MPI_Dims_create(ranks, dimensions, grid);
  for (int d = 0; d < dimensions; d++) {
    sub[d] = 1 + together(9);
    sizes[d] = sub[d] * grid[d] + (together(4) == 0);
    at[d] = r % grid[d];
    r /= grid[d];
    starts[d] = at[d] * sub[d];
  }
  MPI_Type_create_subarray(dimensions, sizes, sub, starts, together(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, MPI_DOUBLE,
                           &view->type);
  view->displacement = together(20);
  view->tiles = 1 + together(3);
  commit(view);
}

static void distributed(struct view *view) {
  int grid[2] = {0, 0}, sizes[2], kinds[2], arguments[2];
  MPI_Dims_create(ranks, 2, grid);
  for (int d = 0; d < 2; d++) {
    sizes[d] = grid[d] + together(30);
    kinds[d] = together(2) ? MPI_DISTRIBUTE_CYCLIC : MPI_DISTRIBUTE_BLOCK;
    arguments[d] = kinds[d] == MPI_DISTRIBUTE_CYCLIC && together(2) ? 1 + together(3) : MPI_DISTRIBUTE_DFLT_DARG;
  }
  MPI_Type_create_darray(ranks, rank, 2, sizes, kinds, arguments, grid, together(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN,
                         MPI_INT, &view->type);
  view->displacement = together(20);
  view->tiles = 1 + together(2);
  commit(view);
}

/* The file is cut into pieces, and each given to one rank or to none. */
static void scattered(struct view *view) {
  int pieces = 1 + together(MOST_PIECES - 1), most = 1 + together(together(3) ? 60 : 2000), gaps = together(3);
  MPI_Aint at = 0;
  view->count = 0;
  for (int i = 0; i < pieces && at < MOST_BYTES; i++) {
    int length = 1 + together(most), owner = together(ranks + gaps);
    if (owner == rank) {
      view->offsets[view->count] = at;
      view->lengths[view->count++] = length;
    }
    at += length;
  }
  MPI_Type_create_hindexed(view->count, view->lengths, view->offsets, MPI_BYTE, &view->type);
  view->displacement = together(300);
  commit(view);
}

static void contiguous(struct view *view) {
  int length = 1 + together(20000), some = together(3);
  view->displacement = (MPI_Offset)rank * (length + together(2) * together(500));
  view->offsets[0] = 0;
  view->lengths[0] = some == 0 && alone(2) ? 0 : length;
  if (view->lengths[0] > 0) {
    view->count = 1;
    MPI_Type_contiguous(view->lengths[0], MPI_BYTE, &view->type);
  } else {
    MPI_Type_contiguous(0, MPI_BYTE, &view->type);
  }
  commit(view);
}

/* Large pieces: what is direct, and what is written in parts. */
static void large(struct view *view) {
  int length = 70000 + together(3) * 11, pieces = 1 + together(2), stride = ranks + together(2);
  MPI_Datatype old;
  MPI_Type_contiguous(length, MPI_BYTE, &old);
  MPI_Type_vector(pieces, 1, stride, old, &view->type);
  view->displacement = (MPI_Offset)rank * length;
  MPI_Type_free(&old);
  commit(view);
}

/* Each rank anything: for reading only. */
static void overlapping(struct view *view) {
  int pieces = 1 + alone(MOST_PIECES - 1);
  MPI_Aint at = 0;
  for (view->count = 0; view->count < pieces; view->count++) {
    at += alone(100);
    view->offsets[view->count] = at;
    view->lengths[view->count] = 1 + alone(100);
    at += view->lengths[view->count];
  }
  MPI_Type_create_hindexed(view->count, view->lengths, view->offsets, MPI_BYTE, &view->type);
  view->displacement = alone(1000);
  commit(view);
}

static struct view make_view(int for_reading) {
  static void (*const kinds[])(struct view *) = {interleaved, tiled,      subarrays, distributed,
                                                 scattered,   contiguous, large,     overlapping};
  struct view view;
  memset(&view, 0, sizeof view);
  view.tiles = 1;
  kinds[together(for_reading ? 8 : 7)](&view);
  return view;
}

/* A buffer of `bytes` data bytes in all: a type, how many of it, and the memory it spans. */
struct buffer {
  MPI_Datatype type;
  int count;
  size_t span;
  unsigned char *memory;
};

static struct buffer make_buffer(int bytes, uint64_t salt) {
  struct buffer buffer = {MPI_BYTE, bytes, (size_t)bytes, NULL};
  int kind = alone(5);
  MPI_Aint lower, extent;
  if (bytes == 0) kind = 0;
  if (kind == 1) { /* blocks with gaps */
    int block = 1 + alone(9), blocks = bytes / block, rest = bytes % block;
    int lengths[2] = {1, rest};
    MPI_Aint places[2] = {0, (MPI_Aint)blocks * (block + 3)};
    MPI_Datatype vector, types[2] = {MPI_BYTE, MPI_BYTE};
    MPI_Type_vector(blocks, block, block + 3, MPI_BYTE, &vector);
    types[0] = vector;
    MPI_Type_create_struct(2, lengths, places, types, &buffer.type);
    MPI_Type_free(&vector);
    buffer.count = 1;
  } else if (kind == 2) { /* backward */
    int half = bytes / 2, lengths[2] = {bytes - half, half}, places[2] = {half + 5, 0};
    MPI_Type_indexed(2, lengths, places, MPI_BYTE, &buffer.type);
    buffer.count = 1;
  } else if (kind == 3) { /* many of a small type with an extent */
    int unit = bytes % 12 == 0 ? 12 : bytes % 4 == 0 ? 4 : 1;
    MPI_Datatype old;
    MPI_Type_contiguous(unit, MPI_BYTE, &old);
    MPI_Type_create_resized(old, 0, unit + 1 + alone(3), &buffer.type);
    MPI_Type_free(&old);
    buffer.count = bytes / unit;
  } else if (kind == 4) {
    MPI_Type_contiguous(bytes, MPI_BYTE, &buffer.type);
    buffer.count = 1;
  }
  if (kind != 0) MPI_Type_commit(&buffer.type);
  MPI_Type_get_extent(buffer.type, &lower, &extent);
  buffer.span = (size_t)extent * (size_t)buffer.count + 64;
  buffer.memory = malloc(buffer.span + 1);
  for (size_t i = 0; i < buffer.span; i++) buffer.memory[i] = (unsigned char)next(&salt);
  return buffer;
}

static void free_buffer(struct buffer *buffer) {
  if (buffer->type != MPI_BYTE) MPI_Type_free(&buffer->type);
  free(buffer->memory);
}

static unsigned char *contents(const char *path, size_t *size) {
  struct stat info;
  int fd = open(path, O_RDONLY);
  if (fd < 0 || fstat(fd, &info) != 0) {
    *size = 0;
    return NULL;
  }
  unsigned char *bytes = malloc((size_t)info.st_size + 1);
  *size = (size_t)info.st_size;
  if (read(fd, bytes, *size) != (ssize_t)*size) fail("cannot read the file back");
  close(fd);
  return bytes;
}

/* The MPI's own file is longer from the start: some MPIs fill gaps past the end of a file with whatever is in memory. */
static void compare_files(const char *ours, const char *theirs, MPI_Offset expected, const char *what) {
  size_t our_size, their_size;
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    unsigned char *a = contents(ours, &our_size), *b = contents(theirs, &their_size);
    if ((MPI_Offset)our_size != expected) {
      fprintf(stderr, "size %zu instead of %lld: ", our_size, (long long)expected);
      fail(what);
    }
    for (size_t i = 0; i < their_size; i++) {
      unsigned char byte = i < our_size ? a[i] : 0;
      if (byte == b[i]) continue;
      fprintf(stderr, "byte %zu of %zu: %d and %d: ", i, our_size, byte, b[i]);
      fail(what);
      break;
    }
    free(a);
    free(b);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Bytes of the view, from data byte `from` on, that lie before `size`. */
static long long before(const struct view *view, long long from, long long bytes, long long size) {
  MPI_Aint lower, extent;
  long long position = 0, there = 0;
  MPI_Type_get_extent(view->type, &lower, &extent);
  for (long long tile = 0; position < from + bytes; tile++) {
    for (int i = 0; i < view->count; i++) {
      for (int k = 0; k < view->lengths[i]; k++, position++) {
        long long offset = view->displacement + tile * extent + view->offsets[i] + k;
        if (position >= from && position < from + bytes && offset < size) there++;
      }
    }
  }
  return there;
}

/* Returns where the file ends now. */
static MPI_Offset run_writes(MPI_File ours, MPI_File theirs, MPI_Offset end) {
  struct view view = make_view(0);
  int independent = together(4) == 0, parts = 1 + together(2), bytes = view.bytes * view.tiles;
  need(MPI_File_set_view(ours, view.displacement, MPI_BYTE, view.type, "native", MPI_INFO_NULL), "our set_view");
  need(NATIVE(MPI_File_set_view)(theirs, view.displacement, MPI_BYTE, view.type, "native", MPI_INFO_NULL), "set_view");
  MPI_Offset last = -1, native_last = -1;
  if (bytes > 0) {
    need(MPI_File_get_byte_offset(ours, bytes - 1, &last), "our get_byte_offset");
    need(NATIVE(MPI_File_get_byte_offset)(theirs, bytes - 1, &native_last), "get_byte_offset");
    if (last != native_last) fail("get_byte_offset");
  }
  /* Not -1: some MPIs take an MPI_OFFSET for unsigned. */
  MPI_Offset written = last + 1;
  MPI_Allreduce(MPI_IN_PLACE, &written, 1, MPI_OFFSET, MPI_MAX, MPI_COMM_WORLD);
  for (int part = 0; part < parts; part++) {
    int from = part * bytes / parts, to = (part + 1) * bytes / parts, moved = -1;
    struct buffer buffer = make_buffer(to - from, next(&own_state));
    MPI_Status status;
    if (independent) {
      need(MPI_File_write(ours, buffer.memory, buffer.count, buffer.type, &status), "our write");
      MPI_Barrier(MPI_COMM_WORLD);
      need(NATIVE(MPI_File_write)(theirs, buffer.memory, buffer.count, buffer.type, MPI_STATUS_IGNORE), "write");
    } else if (together(2)) {
      need(MPI_File_write_all(ours, buffer.memory, buffer.count, buffer.type, &status), "our write_all");
      need(NATIVE(MPI_File_write_all)(theirs, buffer.memory, buffer.count, buffer.type, MPI_STATUS_IGNORE), "write_all");
    } else {
      need(MPI_File_write_at_all(ours, from, buffer.memory, buffer.count, buffer.type, &status), "our write_at_all");
      need(NATIVE(MPI_File_write_at_all)(theirs, from, buffer.memory, buffer.count, buffer.type, MPI_STATUS_IGNORE),
           "write_at_all");
      need(MPI_File_seek(ours, to, MPI_SEEK_SET), "our seek");
      need(NATIVE(MPI_File_seek)(theirs, to, MPI_SEEK_SET), "seek");
    }
    MPI_Get_count(&status, buffer.type, &moved);
    if (moved != buffer.count) fail("count of a write");
    free_buffer(&buffer);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Type_free(&view.type);
  return written > end ? written : end;
}

static void run_reads(MPI_File ours, MPI_File theirs, long long size) {
  struct view view = make_view(1);
  int independent = together(4) == 0, bytes = view.bytes * view.tiles;
  struct buffer mine = make_buffer(bytes, 1);
  struct buffer other = {mine.type, mine.count, mine.span, malloc(mine.span + 1)};
  MPI_Offset our_place, their_place;
  MPI_Status status;
  MPI_Aint lower, extent;
  memcpy(other.memory, mine.memory, mine.span);
  need(MPI_File_set_view(ours, view.displacement, MPI_BYTE, view.type, "native", MPI_INFO_NULL), "our set_view");
  need(NATIVE(MPI_File_set_view)(theirs, view.displacement, MPI_BYTE, view.type, "native", MPI_INFO_NULL), "set_view");
  if (independent) {
    need(MPI_File_read_at(ours, 0, mine.memory, mine.count, mine.type, &status), "our read_at");
    need(NATIVE(MPI_File_read_at)(theirs, 0, other.memory, mine.count, mine.type, MPI_STATUS_IGNORE), "read_at");
  } else {
    need(MPI_File_read_all(ours, mine.memory, mine.count, mine.type, &status), "our read_all");
    need(NATIVE(MPI_File_read_all)(theirs, other.memory, mine.count, mine.type, MPI_STATUS_IGNORE), "read_all");
  }
  MPI_Type_get_extent(view.type, &lower, &extent);
  long long end = view.displacement + (long long)view.tiles * extent;
  if (end <= size) {
    int moved = -1;
    MPI_File_get_position(ours, &our_place);
    NATIVE(MPI_File_get_position)(theirs, &their_place);
    if (our_place != their_place) fail("position after a read");
    MPI_Get_count(&status, mine.type, &moved);
    if (moved != mine.count) fail("count of a read");
    if (memcmp(mine.memory, other.memory, mine.span) != 0) fail("memory after a read");
  } else if (view.count > 0) {
    MPI_Count moved = -1;
    MPI_Get_elements_x(&status, MPI_BYTE, &moved);
    long long there = before(&view, 0, bytes, size);
    if (moved != there) {
      fprintf(stderr, "%lld instead of %lld bytes: ", (long long)moved, there);
      fail("count of a read past the end");
    }
    if (mine.type == MPI_BYTE && memcmp(mine.memory, other.memory, (size_t)there) != 0)
      fail("memory after a read past the end");
  }
  free(other.memory);
  free_buffer(&mine);
  MPI_Type_free(&view.type);
}

static MPI_Info make_hints(void) {
  static const char *const sizes[] = {"512", "4096", "10000", "65536"};
  MPI_Info info;
  char text[20];
  MPI_Info_create(&info);
  if (together(4)) {
    snprintf(text, sizeof text, "%d", 1 + together(ranks));
    MPI_Info_set(info, "cb_nodes", text);
  }
  if (together(4)) MPI_Info_set(info, "cb_buffer_size", (char *)sizes[together(4)]);
  if (together(4) == 0) MPI_Info_set(info, "striping_unit", "4096");
  MPI_Info_set(info, "an_unknown_hint", "x");
  return info;
}

static void run_case(const char *folder) {
  char our_path[1000], their_path[1000];
  MPI_File ours, theirs;
  snprintf(our_path, sizeof our_path, "%s/ours", folder);
  snprintf(their_path, sizeof their_path, "%s/theirs", folder);
  int old_bytes = together(2) ? together(MOST_BYTES) : 0;
  MPI_Offset end = old_bytes;
  if (rank == 0) {
    unlink(our_path);
    unlink(their_path);
    /* Something is there already: it must survive in the gaps. */
    unsigned char *old = malloc((size_t)old_bytes + 1);
    for (int i = 0; i < old_bytes; i++) old[i] = (unsigned char)(i * 7 + i / 256);
    for (int i = 0; i < 2; i++) {
      int fd = i && !old_bytes ? -1 : open(i ? our_path : their_path, O_CREAT | O_WRONLY, 0600);
      if (fd < 0) continue;
      if (write(fd, old, (size_t)old_bytes) != old_bytes) fail("cannot prepare the file");
      if (!i && ftruncate(fd, NATIVE_BYTES) != 0) fail("cannot extend the file");
      close(fd);
    }
    free(old);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  int mode = MPI_MODE_CREATE | (together(3) ? MPI_MODE_RDWR : MPI_MODE_WRONLY);
  MPI_Info hints = make_hints();
  need(MPI_File_open(MPI_COMM_WORLD, our_path, mode, hints, &ours), "our open");
  need(NATIVE(MPI_File_open)(MPI_COMM_WORLD, their_path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &theirs), "open");
  int writes = 1 + together(3);
  for (int i = 0; i < writes; i++) {
    end = run_writes(ours, theirs, end);
    compare_files(our_path, their_path, end, "the file after a write");
  }
  need(MPI_File_close(&ours), "our close");
  need(NATIVE(MPI_File_close)(&theirs), "close");
  if (rank == 0 && truncate(their_path, end) != 0) fail("cannot cut the file");
  MPI_Barrier(MPI_COMM_WORLD);
  need(MPI_File_open(MPI_COMM_WORLD, our_path, MPI_MODE_RDONLY, hints, &ours), "our open to read");
  need(NATIVE(MPI_File_open)(MPI_COMM_WORLD, their_path, MPI_MODE_RDONLY, MPI_INFO_NULL, &theirs), "open to read");
  int reads = 1 + together(3);
  for (int i = 0; i < reads; i++) run_reads(ours, theirs, end);
  need(MPI_File_close(&ours), "our close");
  need(NATIVE(MPI_File_close)(&theirs), "close");
  MPI_Info_free(&hints);
}

int main(int count, char **arguments) {
  int all = 0;
  MPI_Init(&count, &arguments);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  seed = strtoul(arguments[2], NULL, 10);
  for (this_case = 0; this_case < atoi(arguments[3]) && all == 0; this_case++) {
    shared_state = seed * 1000003u + (uint64_t)this_case;
    own_state = shared_state ^ ((uint64_t)(rank + 1) << 40);
    run_case(arguments[1]);
    MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  }
  if (rank == 0 && all == 0) printf("%d cases agree\n", this_case);
  MPI_Finalize();
  return all != 0;
}
