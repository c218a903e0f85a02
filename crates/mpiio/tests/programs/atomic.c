/* Atomic mode: what several ranks write to the same place at once is of one of them, and readers see all or nothing. */
#include "suite.h"

enum { BYTES = 60000, ROUNDS = 12 };

/* One value all over. */
static void check_uniform(const unsigned char *data, int stride) {
  for (int i = stride; i < BYTES; i += stride)
    if (data[i] != data[0]) {
      CHECK(data[i] == data[0]);
      return;
    }
}

static void writers_and_readers(int collective, int gaps) {
  static unsigned char data[BYTES], back[BYTES];
  MPI_File file = created("atomic");
  MPI_Datatype type = MPI_BYTE;
  int flag = -1;
  OK(MPI_File_get_atomicity(file, &flag));
  CHECK(flag == 0);
  OK(MPI_File_set_atomicity(file, 1));
  OK(MPI_File_get_atomicity(file, &flag));
  CHECK(flag == 1);
  if (gaps) {
    MPI_Type_vector(BYTES / 10, 10, 25, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    OK(MPI_File_set_view(file, 0, MPI_BYTE, type, "native", MPI_INFO_NULL));
  }
  /* Some MPIs write what happens to be in memory into gaps past the end. */
  OK(MPI_File_set_size(file, 3 * BYTES));
  memset(data, 1, sizeof data);
  OK(MPI_File_write_at_all(file, 0, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
  MPI_Barrier(MPI_COMM_WORLD);
  for (int round = 0; round < ROUNDS; round++) {
    memset(data, 1 + rank + ranks * round, sizeof data);
    if (rank % 2 == 0 || collective) {
      if (collective)
        OK(MPI_File_write_at_all(file, 0, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
      else
        OK(MPI_File_write_at(file, 0, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
    }
    if (!collective) {
      OK(MPI_File_read_at(file, 0, back, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
      check_uniform(back, 1);
    }
  }
  /* No sync in between: in atomic mode, what was written is there. */
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_read_at_all(file, 0, back, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
  check_uniform(back, 1);
  if (gaps) {
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_read_at(file, 10, back, 15, MPI_BYTE, MPI_STATUS_IGNORE));
    for (int i = 0; i < 15; i++) CHECK(back[i] == 0);
    MPI_Type_free(&type);
  }
  OK(MPI_File_set_atomicity(file, 0));
  OK(MPI_File_get_atomicity(file, &flag));
  CHECK(flag == 0);
  OK(MPI_File_close(&file));
}

/* Each rank reads what the one before wrote, told by a message and nothing else. */
static void sequence(void) {
  MPI_File file = created("sequence");
  int value = 0, seen = -1;
  OK(MPI_File_set_atomicity(file, 1));
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  if (rank > 0) {
    MPI_Recv(&value, 1, MPI_INT, rank - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    OK(MPI_File_read_at(file, 0, &seen, 1, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(seen == value);
  }
  value = 1000 + rank;
  OK(MPI_File_write_at(file, 0, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
  if (rank + 1 < ranks) MPI_Send(&value, 1, MPI_INT, rank + 1, 1, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_read_at_all(file, 0, &seen, 1, MPI_INT, MPI_STATUS_IGNORE));
  CHECK(seen == 1000 + ranks - 1);
  OK(MPI_File_close(&file));
}

int main(int count, char **arguments) {
  begin(&count, &arguments);
  writers_and_readers(0, 0);
  writers_and_readers(0, 1);
  writers_and_readers(1, 0);
  writers_and_readers(1, 1);
  sequence();
  return end();
}
