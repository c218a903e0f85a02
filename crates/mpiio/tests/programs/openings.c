/* Opening files that ranks still change by their names, and hints that come from outside.
 *
 * openings FOLDER [site CB_READ | unreachable]: with "site", looks at the hints of a file's opening only, where CB_READ is
 * what romio_cb_read comes to; with "unreachable", at an opening that fails because the servers are not there.
 */
#include "suite.h"

#include <sys/resource.h>

/* Ranks come one after the other: each is late for the one before. */
static void be_late(void) { usleep((useconds_t)(rank * 20000)); }

/* Every rank writes its own number; all numbers must be in one file. */
static void check_is_one(MPI_File file) {
  int mine = rank, *all = calloc((size_t)ranks, sizeof *all);
  OK(MPI_File_write_at(file, (MPI_Offset)(rank * (int)sizeof mine), &mine, 1, MPI_INT, MPI_STATUS_IGNORE));
  settle(file);
  OK(MPI_File_read_at(file, 0, all, ranks, MPI_INT, MPI_STATUS_IGNORE));
  for (int i = 0; i < ranks; i++) CHECK(all[i] == i);
  free(all);
}

/* Each rank deletes the file, if it is there, and goes on to open it: rank 0 long before the others delete. */
static void deleted_by_all(int mode) {
  MPI_File file = MPI_FILE_NULL;
  char name[1300];
  snprintf(name, sizeof name, "%s", fresh("late"));
  file = opened(name, MPI_MODE_CREATE | MPI_MODE_WRONLY);
  OK(MPI_File_close(&file));
  be_late();
  MPI_File_delete(name, MPI_INFO_NULL);
  OK(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file));
  if (file == MPI_FILE_NULL) return;
  check_is_one(file);
  OK(MPI_File_close(&file));
  OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  check_is_one(file);
  OK(MPI_File_close(&file));
}

/* The last rank makes a file on its own; the others only wait for it in the call that opens it together. */
static void made_by_the_last(void) {
  MPI_File file = MPI_FILE_NULL;
  char name[1300];
  snprintf(name, sizeof name, "%s", fresh("last"));
  be_late();
  if (rank == ranks - 1) {
    OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
    OK(MPI_File_close(&file));
  }
  OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  if (file == MPI_FILE_NULL) return;
  check_is_one(file);
  OK(MPI_File_close(&file));
  MPI_Barrier(MPI_COMM_WORLD);
  /* Who is through may delete, whatever the others still do in the call. */
  file = opened(name, MPI_MODE_RDWR);
  check_is_one(file);
  OK(MPI_File_close(&file));
  if (rank == 0) OK(MPI_File_delete(name, MPI_INFO_NULL));
  MPI_Barrier(MPI_COMM_WORLD);
  FAILS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_NO_SUCH_FILE);
}

static void check_hint(MPI_Info info, const char *key, const char *expected) {
  char value[MPI_MAX_INFO_VAL + 1] = "";
  int found = 0;
  OK(MPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &found));
  CHECK(found && strcmp(value, expected) == 0);
}

/* The program's hints come before those of the file that ROMIO_HINTS names: see the test that runs this. */
static void hints_of_the_site(const char *cb_read) {
  MPI_File file = MPI_FILE_NULL;
  MPI_Info mine, used;
  OK(MPI_Info_create(&mine));
  OK(MPI_Info_set(mine, "romio_cb_read", "disable"));
  OK(MPI_Info_set(mine, "ind_wr_buffer_size", "8192"));
  OK(MPI_File_open(MPI_COMM_WORLD, fresh("site"), MPI_MODE_CREATE | MPI_MODE_RDWR, mine, &file));
  OK(MPI_File_get_info(file, &used));
  check_hint(used, "romio_cb_read", cb_read);
  check_hint(used, "cb_nodes", "1");
  check_hint(used, "cb_buffer_size", "16777216");
  check_hint(used, "ind_rd_buffer_size", "49");
  check_hint(used, "ind_wr_buffer_size", "8192");
  check_is_one(file);
  OK(MPI_Info_free(&used));
  OK(MPI_Info_free(&mine));
  OK(MPI_File_close(&file));
}

/* What a program tells others by the same info object comes first. */
static void hints_after_many_others(void) {
  MPI_File file = MPI_FILE_NULL;
  MPI_Info mine, used;
  char key[40];
  OK(MPI_Info_create(&mine));
  for (int i = 0; i < 100; i++) {
    snprintf(key, sizeof key, "of_others_%d", i);
    OK(MPI_Info_set(mine, key, "1"));
  }
  OK(MPI_Info_set(mine, "cb_buffer_size", "65536"));
  OK(MPI_File_open(MPI_COMM_WORLD, fresh("hints"), MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, mine,
                   &file));
  OK(MPI_File_get_info(file, &used));
  check_hint(used, "cb_buffer_size", "65536");
  OK(MPI_Info_free(&used));
  OK(MPI_Info_set(mine, "cb_buffer_size", "131072"));
  OK(MPI_File_set_info(file, mine));
  OK(MPI_File_get_info(file, &used));
  check_hint(used, "cb_buffer_size", "131072");
  OK(MPI_Info_free(&used));
  OK(MPI_Info_set(mine, "cb_buffer_size", "262144"));
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", mine));
  OK(MPI_File_get_info(file, &used));
  check_hint(used, "cb_buffer_size", "262144");
  OK(MPI_Info_free(&used));
  OK(MPI_Info_free(&mine));
  OK(MPI_File_close(&file));
}

static void servers_are_not_there(void) {
  MPI_File file = MPI_FILE_NULL;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0, code = MPI_File_open(MPI_COMM_WORLD, "run/none", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
  CHECK(class_of(code) == MPI_ERR_IO);
  OK(MPI_Error_string(code, text, &length));
  CHECK(strstr(text, "did not answer") != NULL);
  CHECK(file == MPI_FILE_NULL);
}

/* As many files as a program has descriptors for: what we need beside that must not be why one cannot be opened. */
static void many_at_once(void) {
  enum { FILES = 120, DESCRIPTORS = 256 };
  static MPI_File files[FILES];
  char name[40];
  struct rlimit before, few;
  CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
  few = before;
  few.rlim_cur = DESCRIPTORS;
  CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
  for (int i = 0; i < FILES; i++) {
    snprintf(name, sizeof name, "many.%d", i);
    OK(MPI_File_open(MPI_COMM_WORLD, fresh(name), MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                     MPI_INFO_NULL, &files[i]));
  }
  for (int i = 0; i < FILES; i += FILES - 1) {
    int data[100], back[100] = {0};
    for (int k = 0; k < 100; k++) data[k] = 1000 * rank + k;
    interleave(files[i]);
    OK(MPI_File_write_all(files[i], data, 100, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_read_at_all(files[i], 0, back, 100, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(memcmp(data, back, sizeof data) == 0);
  }
  for (int i = 0; i < FILES; i++) OK(MPI_File_close(&files[i]));
  CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
}

int main(int count, char **arguments) {
  begin(&count, &arguments);
  if (count > 3) {
    hints_of_the_site(arguments[3]);
  } else if (count > 2) {
    servers_are_not_there();
  } else {
    deleted_by_all(MPI_MODE_CREATE | MPI_MODE_RDWR);
    deleted_by_all(MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR);
    made_by_the_last();
    hints_after_many_others();
    many_at_once();
  }
  return end();
}
