/* Every datatype constructor, in memory and as a filetype. What must come out is what MPI_Pack says. */
#include "suite.h"

enum { MOST = 1 << 16 };

static unsigned char source[MOST], image[MOST], packed[MOST], found[MOST];

/* Types whose offsets increase, as a filetype needs it. */
static MPI_Datatype make(int which) {
  MPI_Datatype type = MPI_DATATYPE_NULL, old, other;
  int lengths[3] = {2, 0, 3}, places[3] = {1, 7, 9}, sizes[3] = {4, 5, 6}, parts[3] = {2, 3, 4}, starts[3] = {1, 2, 0};
  MPI_Aint addresses[3] = {4, 30, 44};
  switch (which) {
    case 0: MPI_Type_contiguous(7, MPI_INT, &type); break;
    case 1: MPI_Type_vector(5, 2, 3, MPI_SHORT, &type); break;
    case 2: MPI_Type_create_hvector(4, 3, 19, MPI_CHAR, &type); break;
    case 3: MPI_Type_indexed(3, lengths, places, MPI_INT, &type); break;
    case 4: MPI_Type_create_hindexed(3, lengths, addresses, MPI_INT, &type); break;
    case 5: MPI_Type_create_indexed_block(3, 2, places, MPI_SHORT, &type); break;
    case 6: MPI_Type_create_hindexed_block(3, 2, addresses, MPI_SHORT, &type); break;
    case 7: {
      MPI_Datatype types[3] = {MPI_INT, MPI_DOUBLE, MPI_CHAR};
      MPI_Type_create_struct(3, lengths, addresses, types, &type);
      break;
    }
    case 8: MPI_Type_create_subarray(3, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &type); break;
    case 9: MPI_Type_create_subarray(3, sizes, parts, starts, MPI_ORDER_FORTRAN, MPI_SHORT, &type); break;
    case 10: {
      int global[2] = {7, 9}, grid[2] = {2, 2}, arguments[2] = {MPI_DISTRIBUTE_DFLT_DARG, 2};
      int kinds[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
      MPI_Type_create_darray(4, 3, 2, global, kinds, arguments, grid, MPI_ORDER_C, MPI_INT, &type);
      break;
    }
    case 11: {
      int global[2] = {7, 9}, grid[2] = {2, 2}, arguments[2] = {1, MPI_DISTRIBUTE_DFLT_DARG};
      int kinds[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK};
      MPI_Type_create_darray(4, 1, 2, global, kinds, arguments, grid, MPI_ORDER_FORTRAN, MPI_SHORT, &type);
      break;
    }
    case 12: MPI_Type_create_resized(MPI_INT, 0, 11, &type); break;
    case 13: MPI_Type_dup(MPI_DOUBLE, &type); break;
    case 14: /* nested */
      MPI_Type_vector(3, 1, 2, MPI_INT, &old);
      MPI_Type_create_resized(old, 0, 40, &other);
      MPI_Type_contiguous(3, other, &type);
      MPI_Type_free(&other);
      MPI_Type_free(&old);
      break;
    case 15: /* a hole in front */
      MPI_Type_contiguous(3, MPI_CHAR, &old);
      lengths[0] = 1;
      MPI_Type_create_hindexed(1, lengths, addresses, old, &type);
      MPI_Type_free(&old);
      break;
    default: return MPI_DATATYPE_NULL;
  }
  MPI_Type_commit(&type);
  return type;
}

/* In memory: the file has the packed data. */
static void in_memory(MPI_Datatype type, int copies) {
  MPI_File file = created("memory");
  MPI_Status status;
  int bytes = 0, size = 0;
  MPI_Offset base;
  MPI_Type_size(type, &size);
  MPI_Pack(source, copies, type, packed, MOST, &bytes, MPI_COMM_WORLD);
  CHECK(bytes == copies * size);
  base = (MPI_Offset)rank * bytes;
  OK(MPI_File_write_at_all(file, base, source, copies, type, &status));
  CHECK(count_of(&status, type) == copies);
  settle(file);
  memset(found, 0, sizeof found);
  OK(MPI_File_read_at(file, base, found, bytes, MPI_BYTE, &status));
  CHECK(memcmp(found, packed, (size_t)bytes) == 0);
  memset(found, 0x55, sizeof found);
  memset(image, 0x55, sizeof image);
  int at = 0;
  MPI_Unpack(packed, bytes, &at, image, copies, type, MPI_COMM_WORLD);
  OK(MPI_File_read_at_all(file, base, found, copies, type, &status));
  CHECK(count_of(&status, type) == copies);
  CHECK(memcmp(found, image, sizeof found) == 0);
  OK(MPI_File_close(&file));
}

/* As a filetype, of each rank in a part of its own: the file has the data where MPI_Unpack puts them. */
static void in_file(MPI_Datatype type, int tiles) {
  MPI_File file = created("file");
  MPI_Datatype etype = MPI_BYTE;
  MPI_Status status;
  MPI_Aint lower, extent, true_lower, true_extent;
  int size = 0, at = 0, bytes;
  MPI_Type_size(type, &size);
  MPI_Type_get_extent(type, &lower, &extent);
  MPI_Type_get_true_extent(type, &true_lower, &true_extent);
  bytes = tiles * size;
  MPI_Offset part = tiles * extent + true_lower + true_extent + 10, base = 3 + rank * part;
  memset(image, 0, sizeof image);
  MPI_Unpack(source, bytes, &at, image, tiles, type, MPI_COMM_WORLD);
  /* Some MPIs write what happens to be in memory into gaps past the end. */
  OK(MPI_File_set_size(file, MOST * 8));
  OK(MPI_File_set_view(file, base, etype, type, "native", MPI_INFO_NULL));
  OK(MPI_File_write_all(file, source, bytes / 2, MPI_BYTE, &status));
  OK(MPI_File_write(file, source + bytes / 2, bytes - bytes / 2, MPI_BYTE, &status));
  CHECK(count_of(&status, MPI_BYTE) == bytes - bytes / 2);
  settle(file);
  OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
  memset(found, 0, sizeof found);
  OK(MPI_File_read_all(file, found, bytes, MPI_BYTE, &status));
  CHECK(count_of(&status, MPI_BYTE) == bytes && memcmp(found, source, (size_t)bytes) == 0);
  OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  memset(found, 0, sizeof found);
  int span = (int)((tiles - 1) * extent + true_lower + true_extent);
  OK(MPI_File_read_at(file, base, found, span, MPI_BYTE, &status));
  CHECK(count_of(&status, MPI_BYTE) == span && memcmp(found, image, (size_t)span) == 0);
  OK(MPI_File_close(&file));
}

/* Absolute addresses. */
static void bottom(void) {
  MPI_File file = created("bottom");
  int a = 100 + rank, b = 200 + rank, c = 0, d = 0, lengths[2] = {1, 1};
  MPI_Aint from[2], to[2];
  MPI_Datatype writes, reads;
  MPI_Status status;
  MPI_Get_address(&a, &from[0]);
  MPI_Get_address(&b, &from[1]);
  MPI_Get_address(&c, &to[0]);
  MPI_Get_address(&d, &to[1]);
  MPI_Type_create_hindexed(2, lengths, from, MPI_INT, &writes);
  MPI_Type_create_hindexed(2, lengths, to, MPI_INT, &reads);
  MPI_Type_commit(&writes);
  MPI_Type_commit(&reads);
  OK(MPI_File_write_at_all(file, 8 * rank, MPI_BOTTOM, 1, writes, &status));
  CHECK(count_of(&status, writes) == 1);
  OK(MPI_File_read_at(file, 8 * rank, MPI_BOTTOM, 1, reads, &status));
  CHECK(c == a && d == b);
  MPI_Type_free(&writes);
  MPI_Type_free(&reads);
  OK(MPI_File_close(&file));
}

/* Types of nothing, and counts of nothing, on some ranks. */
static void nothing(void) {
  MPI_File file = created("nothing");
  MPI_Datatype empty;
  MPI_Status status;
  int value = rank, count = rank % 2, no_lengths[1] = {0}, no_places[1] = {0};
  MPI_Type_indexed(1, no_lengths, no_places, MPI_INT, &empty);
  MPI_Type_commit(&empty);
  OK(MPI_File_write_at_all(file, 4 * rank, count ? &value : NULL, count, MPI_INT, &status));
  CHECK(count_of(&status, MPI_INT) == count);
  OK(MPI_File_write_all(file, NULL, 0, MPI_INT, &status));
  CHECK(count_of(&status, MPI_INT) == 0);
  OK(MPI_File_write_all(file, &value, 5, empty, &status));
  OK(MPI_File_read_at(file, 0, NULL, 0, MPI_INT, &status));
  OK(MPI_File_set_view(file, 0, MPI_INT, rank % 2 ? MPI_INT : empty, "native", MPI_INFO_NULL));
  OK(MPI_File_write_all(file, &value, rank % 2, MPI_INT, &status));
  CHECK(count_of(&status, MPI_INT) == rank % 2);
  OK(MPI_File_close(&file));
  MPI_Type_free(&empty);
}

/* Memory for what is behind the end of a file stays as it was. */
static void behind_the_end(void) {
  MPI_File file = created("short");
  MPI_Status status;
  unsigned char data[5] = {1, 2, 3, 4, 5}, back[10];
  if (rank == 0) OK(MPI_File_write_at(file, 0, data, 5, MPI_BYTE, &status));
  settle(file);
  for (int how = 0; how < 3; how++) {
    int there = 5;
    memset(back, 99, sizeof back);
    if (how == 0) {
      OK(MPI_File_read_at(file, 0, back, 10, MPI_BYTE, &status));
    } else if (how == 1) {
      OK(MPI_File_read_at_all(file, 0, back, 10, MPI_BYTE, &status));
    } else {
      OK(MPI_File_read_ordered(file, back, 10, MPI_BYTE, &status));
      there = rank == 0 ? 5 : 0;
    }
    CHECK(count_of(&status, MPI_BYTE) == there);
    CHECK(memcmp(back, data, (size_t)there) == 0);
    for (int i = there; i < 10; i++) CHECK(back[i] == 99);
  }
  OK(MPI_File_close(&file));
}

int main(int count, char **arguments) {
  begin(&count, &arguments);
  for (int i = 0; i < MOST; i++) source[i] = (unsigned char)(i * 31 + i / 256 + 7 * rank);
  for (int which = 0;; which++) {
    MPI_Datatype type = make(which);
    if (type == MPI_DATATYPE_NULL) break;
    int before = failures;
    in_memory(type, 1);
    in_memory(type, 5);
    in_file(type, 1);
    in_file(type, 6);
    if (failures > before) fprintf(stderr, "with constructor %d\n", which);
    MPI_Type_free(&type);
  }
  bottom();
  nothing();
  behind_the_end();
  return end();
}
