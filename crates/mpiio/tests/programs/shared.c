/* Shared file pointers, and files in sequential mode. */
#include "suite.h"

/* Each of the ranks' records is in the file once, in any order. */
static void check_records(const char *name, int of_each) {
  int total = ranks * of_each, *seen = calloc((size_t)total, sizeof *seen), *all = calloc((size_t)total, sizeof *all);
  MPI_File file = opened(name, MPI_MODE_RDONLY);
  MPI_Offset size = 0;
  OK(MPI_File_get_size(file, &size));
  CHECK(size == (MPI_Offset)(total * (int)sizeof(int)));
  OK(MPI_File_read_at(file, 0, all, total, MPI_INT, MPI_STATUS_IGNORE));
  for (int i = 0; i < total; i++) {
    CHECK(all[i] >= 0 && all[i] < total);
    if (all[i] >= 0 && all[i] < total) seen[all[i]]++;
  }
  for (int i = 0; i < total; i++) CHECK(seen[i] == 1);
  OK(MPI_File_close(&file));
  free(seen);
  free(all);
}

static void unordered(void) {
  enum { EACH = 20 };
  MPI_File file = created("shared");
  MPI_Status status;
  MPI_Offset place = -1;
  char name[1300];
  snprintf(name, sizeof name, "%s/shared", path);
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  for (int i = 0; i < EACH; i++) {
    int value = rank * EACH + i;
    if (i % 2) {
      MPI_Request request;
      OK(MPI_File_iwrite_shared(file, &value, 1, MPI_INT, &request));
      OK(MPI_Wait(&request, &status));
    } else {
      OK(MPI_File_write_shared(file, &value, 1, MPI_INT, &status));
    }
    CHECK(count_of(&status, MPI_INT) == 1);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_get_position_shared(file, &place));
  CHECK(place == ranks * EACH);
  /* The individual pointer has not moved. */
  OK(MPI_File_get_position(file, &place));
  CHECK(place == 0);
  settle(file);
  OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
  int sum = 0, all = 0, total = ranks * EACH;
  for (int i = 0; i < EACH; i++) {
    int value = -1;
    if (i % 3 == 0) {
      MPI_Request request;
      OK(MPI_File_iread_shared(file, &value, 1, MPI_INT, &request));
      OK(MPI_Wait(&request, &status));
    } else {
      OK(MPI_File_read_shared(file, &value, 1, MPI_INT, &status));
    }
    CHECK(count_of(&status, MPI_INT) == 1);
    sum += value;
  }
  MPI_Allreduce(&sum, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK(all == total * (total - 1) / 2);
  OK(MPI_File_close(&file));
  check_records(name, EACH);
}

static void ordered(void) {
  MPI_File file = created("ordered");
  MPI_Status status;
  MPI_Offset place = -1;
  int before = rank * (rank + 1) / 2, total = ranks * (ranks + 1) / 2, mine = rank + 1;
  int *data = malloc((size_t)mine * sizeof(int)), *back = malloc((size_t)mine * sizeof(int));
  OK(MPI_File_set_view(file, 8, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < mine; i++) data[i] = round * 1000 + before + i;
    if (round == 1) {
      OK(MPI_File_write_ordered_begin(file, data, mine, MPI_INT));
      OK(MPI_File_write_ordered_end(file, data, &status));
    } else {
      OK(MPI_File_write_ordered(file, data, mine, MPI_INT, &status));
    }
    CHECK(count_of(&status, MPI_INT) == mine);
    /* Collective: all have moved the pointer when one returns, but one may go on. */
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_get_position_shared(file, &place));
    CHECK(place == (round + 1) * total);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  settle(file);
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < mine; i++) {
      int value = -1;
      OK(MPI_File_read_at(file, round * total + before + i, &value, 1, MPI_INT, &status));
      CHECK(value == round * 1000 + before + i);
    }
  }
  OK(MPI_File_seek_shared(file, -2 * total, MPI_SEEK_END));
  OK(MPI_File_get_position_shared(file, &place));
  CHECK(place == total);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int round = 1; round < 3; round++) {
    memset(back, 0, (size_t)mine * sizeof(int));
    if (round == 2) {
      OK(MPI_File_read_ordered_begin(file, back, mine, MPI_INT));
      OK(MPI_File_read_ordered_end(file, back, &status));
    } else {
      OK(MPI_File_read_ordered(file, back, mine, MPI_INT, &status));
    }
    CHECK(count_of(&status, MPI_INT) == mine);
    for (int i = 0; i < mine; i++) CHECK(back[i] == round * 1000 + before + i);
  }
  /* Past the end there is nothing. */
  OK(MPI_File_read_ordered(file, back, mine, MPI_INT, &status));
  CHECK(count_of(&status, MPI_INT) == 0);
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_seek_shared(file, total, MPI_SEEK_SET));
  OK(MPI_File_seek_shared(file, 2, MPI_SEEK_CUR));
  OK(MPI_File_get_position_shared(file, &place));
  CHECK(place == total + 2);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(MPI_File_seek_shared(file, -1, MPI_SEEK_SET) != MPI_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
  /* A new view: from the beginning. */
  OK(MPI_File_set_view(file, 8, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  OK(MPI_File_get_position_shared(file, &place));
  CHECK(place == 0);
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_read_ordered(file, back, rank == 0 ? 0 : 1, MPI_INT, &status));
  CHECK(rank == 0 || back[0] == rank - 1);
  OK(MPI_File_close(&file));
  free(data);
  free(back);
}

/* A view with gaps, the same on all ranks. */
static void strided(void) {
  MPI_File file = created("strided");
  MPI_Datatype vector, type;
  MPI_Status status;
  int data[3], back[3];
  MPI_Type_vector(1, 1, 1, MPI_INT, &vector);
  MPI_Type_create_resized(vector, 0, 3 * sizeof(int), &type);
  MPI_Type_commit(&type);
  OK(MPI_File_set_view(file, 4, MPI_INT, type, "native", MPI_INFO_NULL));
  for (int i = 0; i < 3; i++) data[i] = 10 * rank + i;
  OK(MPI_File_write_ordered(file, data, 3, MPI_INT, &status));
  settle(file);
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  for (int i = 0; i < 3; i++) {
    OK(MPI_File_read_at(file, 1 + 3 * (3 * rank + i), back, 1, MPI_INT, &status));
    CHECK(back[0] == 10 * rank + i);
  }
  OK(MPI_File_close(&file));
  MPI_Type_free(&type);
  MPI_Type_free(&vector);
}

/* Ranks append a letter each, in order, to a file that has so many bytes. */
static void append_letters(const char *name, int length, char first) {
  MPI_File file = opened(name, MPI_MODE_WRONLY | MPI_MODE_APPEND);
  MPI_Offset place = -1;
  char letter = (char)(first + rank);
  OK(MPI_File_get_position(file, &place));
  CHECK(place == length);
  OK(MPI_File_get_position_shared(file, &place));
  CHECK(place == length);
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_write_ordered(file, &letter, 1, MPI_CHAR, MPI_STATUS_IGNORE));
  OK(MPI_File_close(&file));
  MPI_Barrier(MPI_COMM_WORLD);
}

static void appended(void) {
  const char *name = fresh("appended");
  MPI_File file = opened(name, MPI_MODE_CREATE | MPI_MODE_WRONLY);
  char text[3] = "ab";
  OK(MPI_File_write_ordered(file, text, 2, MPI_CHAR, MPI_STATUS_IGNORE));
  OK(MPI_File_close(&file));
  MPI_Barrier(MPI_COMM_WORLD);
  append_letters(name, 2 * ranks, 'c');
  file = opened(name, MPI_MODE_RDONLY | MPI_MODE_DELETE_ON_CLOSE);
  OK(MPI_File_read_at_all(file, 2 * ranks + rank, text, 1, MPI_CHAR, MPI_STATUS_IGNORE));
  CHECK(text[0] == 'c' + rank);
  OK(MPI_File_close(&file));
}

/* Ranks append to what the last to come wrote, or cut, before it opened the file. They have opened one together before:
 * without that, they would meet in this call before they look at the file. */
static void appended_to_what_the_last_left(const char *left) {
  const char *name = fresh("late");
  const int length = (int)strlen(left);
  MPI_File file = opened(name, MPI_MODE_CREATE | MPI_MODE_WRONLY), own;
  char text[64] = "0123456789", *all = calloc((size_t)(length + ranks + 1), 1);
  MPI_Status status;
  if (rank == 0) OK(MPI_File_write_at(file, 0, text, 10, MPI_CHAR, MPI_STATUS_IGNORE));
  OK(MPI_File_close(&file));
  if (rank == ranks - 1) {
    usleep(100000);
    OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_WRONLY, MPI_INFO_NULL, &own));
    OK(MPI_File_set_size(own, 0));
    OK(MPI_File_write(own, left, length, MPI_CHAR, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&own));
  }
  append_letters(name, length, 'a');
  file = opened(name, MPI_MODE_RDONLY | MPI_MODE_DELETE_ON_CLOSE);
  OK(MPI_File_read_at_all(file, 0, all, length + ranks + 1, MPI_CHAR, &status));
  CHECK(count_of(&status, MPI_CHAR) == length + ranks && memcmp(all, left, (size_t)length) == 0);
  for (int i = 0; i < ranks; i++) CHECK(all[length + i] == 'a' + i);
  OK(MPI_File_close(&file));
  free(all);
}

static void sequential(void) {
  const char *name = fresh("sequential");
  MPI_File file = opened(name, MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL);
  MPI_Status status;
  MPI_Offset place;
  int value = 100 + rank, header = 7;
  if (rank == 0) OK(MPI_File_write_shared(file, &header, 1, MPI_INT, &status));
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_write_ordered(file, &value, 1, MPI_INT, &status));
  /* Nothing but the shared pointer, in one direction. */
  CHECK(MPI_File_write(file, &value, 1, MPI_INT, &status) != MPI_SUCCESS);
  CHECK(MPI_File_write_at(file, 0, &value, 1, MPI_INT, &status) != MPI_SUCCESS);
  CHECK(MPI_File_write_all(file, &value, 1, MPI_INT, &status) != MPI_SUCCESS);
  CHECK(MPI_File_write_at_all(file, 0, &value, 1, MPI_INT, &status) != MPI_SUCCESS);
  CHECK(MPI_File_seek(file, 0, MPI_SEEK_SET) != MPI_SUCCESS);
  CHECK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET) != MPI_SUCCESS);
  CHECK(MPI_File_get_position(file, &place) != MPI_SUCCESS);
  CHECK(MPI_File_get_position_shared(file, &place) != MPI_SUCCESS);
  OK(MPI_File_close(&file));
  MPI_Barrier(MPI_COMM_WORLD);
  file = opened(name, MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL | MPI_MODE_DELETE_ON_CLOSE);
  if (rank == ranks - 1) {
    /* The others wait for it in the call that sets the view from there on. */
    usleep(100000);
    header = 0;
    OK(MPI_File_read_shared(file, &header, 1, MPI_INT, &status));
    CHECK(header == 7);
  }
  OK(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  CHECK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL) != MPI_SUCCESS);
  OK(MPI_File_read_ordered(file, &value, 1, MPI_INT, &status));
  CHECK(value == 100 + rank);
  OK(MPI_File_close(&file));
  CHECK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL,
                      &file) != MPI_SUCCESS);
}

/* Two opens of one file have two pointers; so have two files on a communicator of one rank. */
static void own_pointers(void) {
  MPI_File one = created("own"), two, self;
  char name[1300], mine[1400];
  MPI_Offset place = -1;
  int value = rank;
  snprintf(name, sizeof name, "%s/own", path);
  two = opened(name, MPI_MODE_RDWR);
  OK(MPI_File_write_ordered(one, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_get_position_shared(one, &place));
  CHECK(place == 4 * ranks);
  OK(MPI_File_get_position_shared(two, &place));
  CHECK(place == 0);
  snprintf(mine, sizeof mine, "%s.%d", name, rank);
  OK(MPI_File_open(MPI_COMM_SELF, mine, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                   &self));
  for (int i = 0; i <= rank; i++) OK(MPI_File_write_shared(self, &i, 1, MPI_INT, MPI_STATUS_IGNORE));
  OK(MPI_File_get_position_shared(self, &place));
  CHECK(place == 4 * (rank + 1));
  OK(MPI_File_seek_shared(self, -4, MPI_SEEK_CUR));
  OK(MPI_File_read_ordered(self, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
  CHECK(value == rank);
  OK(MPI_File_close(&self));
  OK(MPI_File_close(&two));
  OK(MPI_File_close(&one));
}

int main(int count, char **arguments) {
  begin(&count, &arguments);
  unordered();
  ordered();
  strided();
  appended();
  appended_to_what_the_last_left("header, longer than before");
  appended_to_what_the_last_left("short");
  sequential();
  own_pointers();
  return end();
}
