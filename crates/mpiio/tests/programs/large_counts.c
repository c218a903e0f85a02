/* The functions that count with MPI_Count, and types made with large counts. An MPI before 4.0 has none. */
#include "suite.h"

#if MPI_VERSION >= 4
enum { INTS = 300 };

static int data[INTS], back[INTS];

static void check(MPI_Status *status) {
  MPI_Count count = -1;
  MPI_Get_count_c(status, MPI_INT, &count);
  CHECK(count == INTS);
}

static void written(MPI_File file, MPI_Offset at) {
  settle(file);
  memset(back, 0, sizeof back);
  OK(MPI_File_read_at(file, at, back, INTS, MPI_INT, MPI_STATUS_IGNORE));
  CHECK(memcmp(data, back, sizeof data) == 0);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < INTS; i++) data[i]++;
}

static void was_read(void) {
  CHECK(memcmp(data, back, sizeof data) == 0);
  memset(back, 0, sizeof back);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void every_function(void) {
  MPI_File file = created("large");
  MPI_Offset at = (MPI_Offset)rank * INTS;
  MPI_Request request;
  MPI_Status status;
  MPI_Count extent = -1;
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  OK(MPI_File_get_type_extent_c(file, MPI_DOUBLE, &extent));
  CHECK(extent == 8);
  for (int i = 0; i < INTS; i++) data[i] = 1000 * rank + i;
#define AT_START(call)                        \
  OK(MPI_File_seek(file, at, MPI_SEEK_SET));  \
  OK(call)
#define SHARED_START(call)                            \
  MPI_Barrier(MPI_COMM_WORLD);                        \
  OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));    \
  OK(call)
#define WAIT(call) \
  OK(call);        \
  OK(MPI_Wait(&request, &status))
  AT_START(MPI_File_write_c(file, data, INTS, MPI_INT, &status));
  check(&status), written(file, at);
  AT_START(MPI_File_write_all_c(file, data, INTS, MPI_INT, &status));
  check(&status), written(file, at);
  OK(MPI_File_write_at_c(file, at, data, INTS, MPI_INT, &status));
  check(&status), written(file, at);
  OK(MPI_File_write_at_all_c(file, at, data, INTS, MPI_INT, &status));
  check(&status), written(file, at);
  SHARED_START(MPI_File_write_ordered_c(file, data, INTS, MPI_INT, &status));
  check(&status), written(file, at);
  SHARED_START(MPI_File_write_ordered_begin_c(file, data, INTS, MPI_INT));
  OK(MPI_File_write_ordered_end(file, data, &status));
  check(&status), written(file, at);
  AT_START(MPI_File_write_all_begin_c(file, data, INTS, MPI_INT));
  OK(MPI_File_write_all_end(file, data, &status));
  check(&status), written(file, at);
  OK(MPI_File_write_at_all_begin_c(file, at, data, INTS, MPI_INT));
  OK(MPI_File_write_at_all_end(file, data, &status));
  check(&status), written(file, at);
  WAIT(MPI_File_iwrite_at_c(file, at, data, INTS, MPI_INT, &request));
  check(&status), written(file, at);
  WAIT(MPI_File_iwrite_at_all_c(file, at, data, INTS, MPI_INT, &request));
  check(&status), written(file, at);
  OK(MPI_File_seek(file, at, MPI_SEEK_SET));
  WAIT(MPI_File_iwrite_c(file, data, INTS, MPI_INT, &request));
  check(&status), written(file, at);
  OK(MPI_File_seek(file, at, MPI_SEEK_SET));
  WAIT(MPI_File_iwrite_all_c(file, data, INTS, MPI_INT, &request));
  check(&status), written(file, at);

  OK(MPI_File_write_at_all(file, at, data, INTS, MPI_INT, &status));
  settle(file);
  memset(back, 0, sizeof back);
  AT_START(MPI_File_read_c(file, back, INTS, MPI_INT, &status));
  check(&status), was_read();
  AT_START(MPI_File_read_all_c(file, back, INTS, MPI_INT, &status));
  check(&status), was_read();
  OK(MPI_File_read_at_c(file, at, back, INTS, MPI_INT, &status));
  check(&status), was_read();
  OK(MPI_File_read_at_all_c(file, at, back, INTS, MPI_INT, &status));
  check(&status), was_read();
  SHARED_START(MPI_File_read_ordered_c(file, back, INTS, MPI_INT, &status));
  check(&status), was_read();
  SHARED_START(MPI_File_read_ordered_begin_c(file, back, INTS, MPI_INT));
  OK(MPI_File_read_ordered_end(file, back, &status));
  check(&status), was_read();
  AT_START(MPI_File_read_all_begin_c(file, back, INTS, MPI_INT));
  OK(MPI_File_read_all_end(file, back, &status));
  check(&status), was_read();
  OK(MPI_File_read_at_all_begin_c(file, at, back, INTS, MPI_INT));
  OK(MPI_File_read_at_all_end(file, back, &status));
  check(&status), was_read();
  WAIT(MPI_File_iread_at_c(file, at, back, INTS, MPI_INT, &request));
  check(&status), was_read();
  WAIT(MPI_File_iread_at_all_c(file, at, back, INTS, MPI_INT, &request));
  check(&status), was_read();
  OK(MPI_File_seek(file, at, MPI_SEEK_SET));
  WAIT(MPI_File_iread_c(file, back, INTS, MPI_INT, &request));
  check(&status), was_read();
  OK(MPI_File_seek(file, at, MPI_SEEK_SET));
  WAIT(MPI_File_iread_all_c(file, back, INTS, MPI_INT, &request));
  check(&status), was_read();
  SHARED_START(MPI_File_read_shared_c(file, back, INTS, MPI_INT, &status));
  check(&status);
  MPI_Barrier(MPI_COMM_WORLD);
  SHARED_START(MPI_File_iread_shared_c(file, back, INTS, MPI_INT, &request));
  OK(MPI_Wait(&request, &status));
  check(&status);
  MPI_Barrier(MPI_COMM_WORLD);
  SHARED_START(MPI_File_write_shared_c(file, data, INTS, MPI_INT, &status));
  check(&status);
  WAIT(MPI_File_iwrite_shared_c(file, data, INTS, MPI_INT, &request));
  check(&status);
  OK(MPI_File_close(&file));
}

/* A count that no int can hold, of a type of no data but one byte at the end; and a view beyond 2^32. */
static void more_than_an_int(void) {
  MPI_File file = created("beyond");
  MPI_Datatype type;
  MPI_Count lengths[1] = {5}, places[1] = {(MPI_Count)1 << 33};
  MPI_Offset byte = -1, size = -1;
  MPI_Status status;
  char text[6] = "abcde", found[6] = "";
  MPI_Type_create_hindexed_c(1, lengths, places, MPI_CHAR, &type);
  MPI_Type_commit(&type);
  OK(MPI_File_set_view(file, 10 * rank, MPI_CHAR, type, "native", MPI_INFO_NULL));
  OK(MPI_File_get_byte_offset(file, 2, &byte));
  CHECK(byte == ((MPI_Offset)1 << 33) + 10 * rank + 2);
  OK(MPI_File_write_all_c(file, text, 5, MPI_CHAR, &status));
  settle(file);
  OK(MPI_File_read_at_all_c(file, 0, found, 5, MPI_CHAR, &status));
  CHECK(memcmp(text, found, 5) == 0);
  OK(MPI_File_get_size(file, &size));
  CHECK(size == ((MPI_Offset)1 << 33) + 10 * (ranks - 1) + 5);
  OK(MPI_File_set_size(file, 0));
  OK(MPI_File_close(&file));
  MPI_Type_free(&type);
}
#endif

int main(int count, char **arguments) {
  begin(&count, &arguments);
#if MPI_VERSION >= 4
  every_function();
  more_than_an_int();
#endif
  return end();
}
