/* More than 2 GiB in one operation, of bytes that no int counts: blocking, and collective in a view with gaps. */
#include "suite.h"

#if MPI_VERSION >= 4
#define BYTES (((MPI_Count)1 << 31) + 12345)
#define STEP ((MPI_Count)1 << 20)

/* One byte of a mebibyte tells where it belongs. */
static void mark(unsigned char *data, int salt) {
  for (MPI_Count i = 0; i < BYTES; i += STEP) data[i] = (unsigned char)(i / STEP * 7 + salt);
  data[BYTES - 1] = (unsigned char)(salt + 1);
}

static void check(const unsigned char *data, int salt, MPI_Status *status) {
  MPI_Count count = -1;
  int wrong = 0;
  OK(MPI_Get_count_c(status, MPI_BYTE, &count));
  CHECK(count == BYTES);
  for (MPI_Count i = 0; i < BYTES; i += STEP) wrong += data[i] != (unsigned char)(i / STEP * 7 + salt);
  CHECK(wrong == 0 && data[BYTES - 1] == (unsigned char)(salt + 1));
}

static void in_one_operation(void) {
  unsigned char *data = calloc((size_t)BYTES, 1);
  MPI_File file = created("large");
  MPI_Datatype type, tile;
  MPI_Status status;
  MPI_Offset size = 0;
  CHECK(data != NULL);
  mark(data, 1);
  OK(MPI_File_write_at_c(file, 100, data, BYTES, MPI_BYTE, &status));
  OK(MPI_File_get_size(file, &size));
  CHECK(size == 100 + BYTES);
  mark(data, 2);
  OK(MPI_File_read_at_c(file, 100, data, BYTES, MPI_BYTE, &status));
  check(data, 1, &status);
  /* 64 KiB of each 96. */
  MPI_Type_contiguous(65536, MPI_BYTE, &type);
  MPI_Type_create_resized(type, 0, 98304, &tile);
  MPI_Type_commit(&tile);
  OK(MPI_File_set_view(file, 0, MPI_BYTE, tile, "native", MPI_INFO_NULL));
  mark(data, 3);
  OK(MPI_File_write_all_c(file, data, BYTES, MPI_BYTE, &status));
  mark(data, 4);
  OK(MPI_File_read_at_all_c(file, 0, data, BYTES, MPI_BYTE, &status));
  check(data, 3, &status);
  MPI_Type_free(&type);
  MPI_Type_free(&tile);
  OK(MPI_File_close(&file));
  free(data);
}
#endif

int main(int count, char **arguments) {
  begin(&count, &arguments);
#if MPI_VERSION >= 4
  in_one_operation();
#endif
  return end();
}
