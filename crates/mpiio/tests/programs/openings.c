/* Opening files that ranks still change by their names, and hints that come from outside.
 *
 * openings FOLDER [site]: with "site", looks at the hints of a file's opening only.
 */
#include "suite.h"

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

static void hints_of_the_site(void) {
  MPI_File file = MPI_FILE_NULL;
  MPI_Info mine, used;
  OK(MPI_Info_create(&mine));
  OK(MPI_Info_set(mine, "romio_cb_read", "disable"));
  OK(MPI_File_open(MPI_COMM_WORLD, fresh("site"), MPI_MODE_CREATE | MPI_MODE_RDWR, mine, &file));
  OK(MPI_File_get_info(file, &used));
  check_hint(used, "romio_cb_read", "disable");
  check_hint(used, "cb_nodes", "1");
  check_hint(used, "ind_rd_buffer_size", "49");
  check_is_one(file);
  OK(MPI_Info_free(&used));
  OK(MPI_Info_free(&mine));
  OK(MPI_File_close(&file));
}

int main(int count, char **arguments) {
  begin(&count, &arguments);
  if (count > 2) {
    hints_of_the_site();
  } else {
    deleted_by_all(MPI_MODE_CREATE | MPI_MODE_RDWR);
    deleted_by_all(MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR);
    made_by_the_last();
  }
  return end();
}
