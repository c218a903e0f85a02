/* Data representations: native, internal, external32, and the program's own. */
#include "suite.h"

#include <stdint.h>

static void check_bytes(const char *name, MPI_Offset at, const void *wanted, int bytes) {
  MPI_File file = opened(name, MPI_MODE_RDONLY);
  unsigned char found[64];
  MPI_Status status;
  OK(MPI_File_read_at_all(file, at, found, bytes, MPI_BYTE, &status));
  CHECK(count_of(&status, MPI_BYTE) == bytes);
  CHECK(memcmp(found, wanted, (size_t)bytes) == 0);
  OK(MPI_File_close(&file));
}

static void names(void) {
  MPI_File file = created("names");
  MPI_Datatype etype, filetype;
  MPI_Offset displacement;
  char name[MPI_MAX_DATAREP_STRING + 1];
  static const char *const known[] = {"native", "internal", "external32"};
  /* As programs in Fortran write them. */
  static const char *const upper[] = {"NATIVE", "INTERNAL", "EXTERNAL32"};
  static const char *const unknown[] = {"nobody's", "Native", "External32", "NATIVE "};
  for (int i = 0; i < 3; i++) {
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, known[i], MPI_INFO_NULL));
    OK(MPI_File_get_view(file, &displacement, &etype, &filetype, name));
    CHECK(strcmp(name, known[i]) == 0);
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, upper[i], MPI_INFO_NULL));
    OK(MPI_File_get_view(file, &displacement, &etype, &filetype, name));
    CHECK(strcmp(name, known[i]) == 0);
  }
  for (int i = 0; i < 4; i++)
    FAILS(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, unknown[i], MPI_INFO_NULL), MPI_ERR_UNSUPPORTED_DATAREP);
  /* The last one that was taken, EXTERNAL32, is in force. */
  static const unsigned char bytes[4] = {0, 0, 0, 7};
  int seven = 7;
  char path_of_names[1300];
  OK(MPI_File_write_at_all(file, rank, &seven, 1, MPI_INT, MPI_STATUS_IGNORE));
  OK(MPI_File_close(&file));
  snprintf(path_of_names, sizeof path_of_names, "%s/names", path);
  check_bytes(path_of_names, 4 * rank, bytes, 4);
}

static void external32(void) {
  const char *name = fresh("external32");
  MPI_File file = opened(name, MPI_MODE_CREATE | MPI_MODE_RDWR);
  MPI_Status status;
  int values[3] = {0x01020304, -2, rank}, back[3] = {0, 0, 0};
  double pi = 3.141592653589793, read = 0;
  static const unsigned char ints[8] = {1, 2, 3, 4, 0xff, 0xff, 0xff, 0xfe};
  static const unsigned char doubles[8] = {0x40, 0x09, 0x21, 0xfb, 0x54, 0x44, 0x2d, 0x18};
  MPI_Aint extent = -1;
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL));
  OK(MPI_File_get_type_extent(file, MPI_INT, &extent));
  CHECK(extent == 4);
  OK(MPI_File_get_type_extent(file, MPI_DOUBLE, &extent));
  CHECK(extent == 8);
  OK(MPI_File_write_at_all(file, 3 * rank, values, 3, MPI_INT, &status));
  CHECK(count_of(&status, MPI_INT) == 3);
  settle(file);
  OK(MPI_File_read_at_all(file, 3 * rank, back, 3, MPI_INT, &status));
  CHECK(count_of(&status, MPI_INT) == 3 && memcmp(values, back, sizeof back) == 0);
  /* Past the end: what is not there leaves memory alone. */
  memset(back, 7, sizeof back);
  OK(MPI_File_read_at(file, 3 * ranks - 1, back, 3, MPI_INT, &status));
  CHECK(count_of(&status, MPI_INT) == 1 && back[0] == ranks - 1 && back[1] == 0x07070707);
  OK(MPI_File_close(&file));
  check_bytes(name, 12 * rank, ints, 8);

  file = opened(name, MPI_MODE_RDWR);
  OK(MPI_File_set_view(file, 0, MPI_DOUBLE, MPI_DOUBLE, "external32", MPI_INFO_NULL));
  OK(MPI_File_seek(file, rank, MPI_SEEK_SET));
  OK(MPI_File_write_all(file, &pi, 1, MPI_DOUBLE, &status));
  settle(file);
  OK(MPI_File_read_at(file, (rank + 1) % ranks, &read, 1, MPI_DOUBLE, &status));
  CHECK(read == pi && count_of(&status, MPI_DOUBLE) == 1);
  OK(MPI_File_close(&file));
  check_bytes(name, 8 * rank, doubles, 8);
}

/* Derived types in memory and file, all ways to move them. */
static void derived(void) {
  const char *name = fresh("derived");
  MPI_File file = opened(name, MPI_MODE_CREATE | MPI_MODE_RDWR);
  MPI_Datatype memory, column;
  MPI_Request request;
  MPI_Status status;
  uint16_t data[20], back[20];
  unsigned char wanted[4];
  for (int i = 0; i < 20; i++) data[i] = (uint16_t)(256 * rank + i);
  MPI_Type_vector(5, 2, 4, MPI_UINT16_T, &memory);
  MPI_Type_commit(&memory);
  MPI_Type_create_resized(MPI_UINT16_T, 0, 2 * ranks, &column);
  MPI_Type_commit(&column);
  OK(MPI_File_set_view(file, 2 * rank, MPI_UINT16_T, column, "external32", MPI_INFO_NULL));
  OK(MPI_File_write_all(file, data, 1, memory, &status));
  CHECK(count_of(&status, memory) == 1);
  OK(MPI_File_iwrite_all(file, data, 1, memory, &request));
  OK(MPI_Wait(&request, &status));
  CHECK(count_of(&status, memory) == 1);
  settle(file);
  for (int way = 0; way < 4; way++) {
    memset(back, 0, sizeof back);
    if (way == 0) OK(MPI_File_read_at(file, 10, back, 1, memory, &status));
    if (way == 1) OK(MPI_File_read_at_all(file, 10, back, 1, memory, &status));
    if (way == 2) {
      OK(MPI_File_iread_at_all(file, 10, back, 1, memory, &request));
      OK(MPI_Wait(&request, &status));
    }
    if (way == 3) {
      OK(MPI_File_read_at_all_begin(file, 10, back, 1, memory));
      OK(MPI_File_read_at_all_end(file, back, &status));
    }
    CHECK(count_of(&status, memory) == 1);
    for (int i = 0; i < 18; i++) CHECK(back[i] == (i % 4 < 2 ? data[i] : 0));
  }
  OK(MPI_File_close(&file));
  for (int i = 0; i < 2; i++) {
    wanted[0] = (unsigned char)rank;
    wanted[1] = (unsigned char)i;
    check_bytes(name, 2 * (ranks * i + rank), wanted, 2);
  }
  MPI_Type_free(&memory);
  MPI_Type_free(&column);
}

/* A datatype may be freed while operations with it go on; another may then have its handle. */
static void freed_types(void) {
  MPI_File file = created("freed");
  MPI_Datatype type, other;
  MPI_Request request;
  MPI_Status status;
  int data[8], back[8] = {0};
  for (int i = 0; i < 8; i++) data[i] = 100 * rank + i;
  OK(MPI_File_set_view(file, 16 * rank, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL));
  for (int way = 0; way < 4; way++) {
    MPI_Type_vector(4, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    if (way == 0) OK(MPI_File_iwrite_at_all(file, 0, data, 1, type, &request));
    if (way == 1) OK(MPI_File_iread_at_all(file, 0, back, 1, type, &request));
    if (way == 2) OK(MPI_File_iread_at(file, 0, back, 1, type, &request));
    if (way == 3) OK(MPI_File_read_at_all_begin(file, 0, back, 1, type));
    MPI_Type_free(&type);
    MPI_Type_contiguous(3, MPI_SHORT, &other);
    MPI_Type_commit(&other);
    if (way < 3) OK(MPI_Wait(&request, &status));
    if (way == 3) OK(MPI_File_read_at_all_end(file, back, &status));
    MPI_Type_free(&other);
    CHECK(count_of(&status, MPI_INT) == 4);
    for (int i = 0; i < 8 && way > 0; i++) CHECK(back[i] == (i % 2 == 0 ? data[i] : 0));
    memset(back, 0, sizeof back);
    if (way == 0) settle(file);
  }
  OK(MPI_File_close(&file));
}

/* A representation of the program's: ints with one byte more, the first, which says so. */
static int conversions;

static int extent_of(MPI_Datatype type, MPI_Aint *extent, void *extra) {
  CHECK(type == MPI_INT && extra == &conversions);
  *extent = 5;
  return MPI_SUCCESS;
}

static int reads(void *memory, MPI_Datatype type, int count, void *file, MPI_Offset position, void *extra) {
  CHECK(type == MPI_INT && extra == &conversions);
  conversions++;
  for (int i = 0; i < count; i++) {
    unsigned char *from = (unsigned char *)file + 5 * i;
    CHECK(from[0] == 'i');
    memcpy((int *)memory + position + i, from + 1, 4);
  }
  return MPI_SUCCESS;
}

static int writes(void *memory, MPI_Datatype type, int count, void *file, MPI_Offset position, void *extra) {
  CHECK(type == MPI_INT && extra == &conversions);
  conversions++;
  for (int i = 0; i < count; i++) {
    unsigned char *to = (unsigned char *)file + 5 * i;
    to[0] = 'i';
    memcpy(to + 1, (int *)memory + position + i, 4);
  }
  return MPI_SUCCESS;
}

static void own_representation(void) {
  const char *name = fresh("own");
  MPI_File file = opened(name, MPI_MODE_CREATE | MPI_MODE_RDWR);
  MPI_Status status;
  MPI_Aint extent = -1;
  MPI_Offset byte = -1;
  int values[4], back[4] = {0, 0, 0, 0};
  for (int i = 0; i < 4; i++) values[i] = 10 * rank + i;
  OK(MPI_Register_datarep("marked", reads, writes, extent_of, &conversions));
  FAILS(MPI_Register_datarep("marked", reads, writes, extent_of, &conversions), MPI_ERR_DUP_DATAREP);
  FAILS(MPI_Register_datarep("native", reads, writes, extent_of, &conversions), MPI_ERR_DUP_DATAREP);
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "marked", MPI_INFO_NULL));
  OK(MPI_File_get_type_extent(file, MPI_INT, &extent));
  CHECK(extent == 5);
  OK(MPI_File_get_byte_offset(file, 3, &byte));
  CHECK(byte == 15);
  OK(MPI_File_write_at_all(file, 4 * rank, values, 4, MPI_INT, &status));
  CHECK(count_of(&status, MPI_INT) == 4);
  settle(file);
  OK(MPI_File_read_at_all(file, 4 * rank, back, 4, MPI_INT, &status));
  CHECK(count_of(&status, MPI_INT) == 4 && memcmp(values, back, sizeof back) == 0);
  CHECK(conversions >= 2);
  OK(MPI_File_close(&file));
  unsigned char wanted[5] = {'i'};
  memcpy(wanted + 1, &values[1], 4);
  check_bytes(name, 5 * (4 * rank + 1), wanted, 5);
}

static int reads_fours(void *memory, MPI_Datatype type, int count, void *file, MPI_Offset position, void *extra) {
  CHECK(type != MPI_INT);
  return reads(memory, MPI_INT, 4 * count, file, 4 * position, extra);
}

static int writes_fours(void *memory, MPI_Datatype type, int count, void *file, MPI_Offset position, void *extra) {
  CHECK(type != MPI_INT);
  return writes(memory, MPI_INT, 4 * count, file, 4 * position, extra);
}

/* Where the file ends within a datatype, the status counts what came to memory: parts of it if MPI converts, none if the program
 * does. */
static void parts_of_datatypes(void) {
  const char *name = fresh("parts");
  MPI_File file = opened(name, MPI_MODE_CREATE | MPI_MODE_RDWR);
  MPI_Datatype many, four;
  MPI_Status status;
  MPI_Count bytes = -1;
  int values[49], back[49];
  for (int i = 0; i < 49; i++) values[i] = i + 1;
  MPI_Type_contiguous(49, MPI_INT, &many);
  MPI_Type_commit(&many);
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL));
  OK(MPI_File_write_at_all(file, 0, values, 49, MPI_INT, &status));
  settle(file);
  for (int left = 1; left <= 49; left++) {
    memset(back, 0, sizeof back);
    OK(MPI_File_read_at(file, 49 - left, back, 1, many, &status));
    MPI_Get_elements_x(&status, MPI_INT, &bytes);
    CHECK(bytes == left && count_of(&status, MPI_INT) == left && back[left - 1] == 49);
  }
  OK(MPI_File_close(&file));
  MPI_Type_free(&many);

  file = created("fours");
  MPI_Type_contiguous(4, MPI_INT, &four);
  MPI_Type_commit(&four);
  OK(MPI_Register_datarep("fours", reads_fours, writes_fours, extent_of, &conversions));
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "fours", MPI_INFO_NULL));
  OK(MPI_File_write_at_all(file, 0, values, 2, four, &status));
  CHECK(count_of(&status, four) == 2);
  settle(file);
  memset(back, 0, sizeof back);
  OK(MPI_File_read_at(file, 1, back, 2, four, &status));
  CHECK(count_of(&status, MPI_INT) == 4 && count_of(&status, four) == 1 && back[3] == 5 && back[4] == 0);
  OK(MPI_File_read_at(file, 5, back, 1, four, &status));
  CHECK(count_of(&status, MPI_INT) == 0 && back[0] == 2);
  OK(MPI_File_close(&file));
  MPI_Type_free(&four);
}

/* A read whose conversion fails has failed. */
static int fails_to_read(void *memory, MPI_Datatype type, int count, void *file, MPI_Offset position, void *extra) {
  (void)memory, (void)type, (void)count, (void)file, (void)position, (void)extra;
  return MPI_ERR_OTHER;
}

static void failing_conversion(void) {
  MPI_File file = created("failing");
  MPI_Request request;
  MPI_Status status;
  int value = rank, back = -1;
  OK(MPI_Register_datarep("failing", fails_to_read, writes, extent_of, &conversions));
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "failing", MPI_INFO_NULL));
  OK(MPI_File_write_at_all(file, rank, &value, 1, MPI_INT, &status));
  settle(file);
  FAILS(MPI_File_read_at(file, rank, &back, 1, MPI_INT, &status), MPI_ERR_CONVERSION);
  FAILS(MPI_File_read_at_all(file, rank, &back, 1, MPI_INT, &status), MPI_ERR_CONVERSION);
  OK(MPI_File_iread_at(file, rank, &back, 1, MPI_INT, &request));
  FAILS(MPI_Wait(&request, &status), MPI_ERR_CONVERSION);
  OK(MPI_File_read_at_all_begin(file, rank, &back, 1, MPI_INT));
  FAILS(MPI_File_read_at_all_end(file, &back, &status), MPI_ERR_CONVERSION);
  /* Nothing to convert. */
  OK(MPI_File_read_at(file, 1000, &back, 1, MPI_INT, &status));
  CHECK(count_of(&status, MPI_INT) == 0 && back == -1);
  OK(MPI_File_close(&file));
}

#if MPI_VERSION >= 4
static int reads_large(void *memory, MPI_Datatype type, MPI_Count count, void *file, MPI_Offset position, void *extra) {
  return reads(memory, type, (int)count, file, position, extra);
}

static int writes_large(void *memory, MPI_Datatype type, MPI_Count count, void *file, MPI_Offset position, void *extra) {
  return writes(memory, type, (int)count, file, position, extra);
}

/* The same, registered with functions that take large counts. */
static void own_representation_with_large_counts(void) {
  const char *name = fresh("large");
  MPI_File file = opened(name, MPI_MODE_CREATE | MPI_MODE_RDWR);
  MPI_Status status;
  int values[4], back[4] = {0, 0, 0, 0}, before = conversions;
  for (int i = 0; i < 4; i++) values[i] = 20 * rank + i;
  OK(MPI_Register_datarep_c("large", reads_large, writes_large, extent_of, &conversions));
  FAILS(MPI_Register_datarep_c("marked", reads_large, writes_large, extent_of, &conversions), MPI_ERR_DUP_DATAREP);
  FAILS(MPI_Register_datarep("large", reads, writes, extent_of, &conversions), MPI_ERR_DUP_DATAREP);
  FAILS(MPI_Register_datarep_c("none", reads_large, writes_large, NULL, NULL), MPI_ERR_ARG);
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "large", MPI_INFO_NULL));
  OK(MPI_File_write_at_all_c(file, 4 * rank, values, 4, MPI_INT, &status));
  settle(file);
  OK(MPI_File_read_at_all_c(file, 4 * rank, back, 4, MPI_INT, &status));
  CHECK(count_of(&status, MPI_INT) == 4 && memcmp(values, back, sizeof back) == 0);
  CHECK(conversions == before + 2);
  OK(MPI_File_close(&file));
  unsigned char wanted[5] = {'i'};
  memcpy(wanted + 1, &values[2], 4);
  check_bytes(name, 5 * (4 * rank + 2), wanted, 5);
}
#endif

int main(int count, char **arguments) {
  begin(&count, &arguments);
  names();
  external32();
  derived();
  freed_types();
  own_representation();
  failing_conversion();
  parts_of_datatypes();
#if MPI_VERSION >= 4
  own_representation_with_large_counts();
#endif
  return end();
}
