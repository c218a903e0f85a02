/* What PnetCDF's interface offers, each once: ways to make, open and remove files, to name the elements that are moved, and
 * to put off moving them. Every rank writes elements that only it writes, and reads what another one wrote.
 *
 * pnetcdf_calls FOLDER
 */
#include "suite.h"

#include <pnetcdf.h>

enum { ROWS = 8, COLUMNS = 6 };

#define DONE(call) IS(call, NC_NOERR)
#define IS(call, wanted)                                                                                            \
  do {                                                                                                              \
    int error_ = (call);                                                                                            \
    if (error_ != (wanted)) {                                                                                       \
      fprintf(stderr, "FAILED: %s:%d: %s: %s (rank %d of %d)\n", __FILE__, __LINE__, #call, ncmpi_strerror(error_), \
              rank, ranks);                                                                                         \
      failures++;                                                                                                   \
    }                                                                                                               \
  } while (0)

static int create(const char *name, int mode) {
  int file = -1;
  DONE(ncmpi_create(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file));
  return file;
}

static int opened_file(const char *name, int mode) {
  int file = -1;
  DONE(ncmpi_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file));
  return file;
}

/* A variable of ROWS rows, in which each rank has COLUMNS columns. */
static int define(int file, const char *name) {
  int dimensions[2], variable = -1;
  char row[64], column[64];
  snprintf(row, sizeof row, "%s_row", name);
  snprintf(column, sizeof column, "%s_column", name);
  DONE(ncmpi_def_dim(file, row, ROWS, &dimensions[0]));
  DONE(ncmpi_def_dim(file, column, (MPI_Offset)COLUMNS * ranks, &dimensions[1]));
  DONE(ncmpi_def_var(file, name, NC_INT, 2, dimensions, &variable));
  return variable;
}

static int value_of(int row, int column) { return 1000 * row + column; }

static int mine(int row, int column) { return value_of(row, COLUMNS * rank + column); }

/* All that all ranks wrote is there. */
static void check_values(int file, int variable) {
  int *all = calloc((size_t)(ROWS * COLUMNS * ranks), sizeof *all);
  DONE(ncmpi_get_var_int_all(file, variable, all));
  for (int row = 0; row < ROWS; row++)
    for (int column = 0; column < COLUMNS * ranks; column++)
      CHECK(all[row * COLUMNS * ranks + column] == value_of(row, column));
  free(all);
}

/* --- Files --------------------------------------------------------------------------------------------------------- */

static void one_value(const char *name, int mode, int value) {
  int file = create(name, mode), variable = -1;
  DONE(ncmpi_put_att_int(file, NC_GLOBAL, "value", NC_INT, 1, &value));
  DONE(ncmpi_def_var(file, "scalar", NC_INT, 0, NULL, &variable));
  DONE(ncmpi_enddef(file));
  DONE(ncmpi_put_var_int_all(file, variable, &value));
  DONE(ncmpi_close(file));
}

static void check_value(const char *name, int value) {
  int file = opened_file(name, NC_NOWRITE), variable = -1, attribute = 0, scalar = 0;
  DONE(ncmpi_get_att_int(file, NC_GLOBAL, "value", &attribute));
  DONE(ncmpi_inq_varid(file, "scalar", &variable));
  DONE(ncmpi_get_var_int_all(file, variable, &scalar));
  CHECK(attribute == value && scalar == value);
  DONE(ncmpi_close(file));
}

static MPI_Offset size_of(const char *name) {
  MPI_Offset size = -1;
  MPI_File file = opened(name, MPI_MODE_RDONLY);
  OK(MPI_File_get_size(file, &size));
  OK(MPI_File_close(&file));
  return size;
}

static void files(void) {
  static const struct {
    int mode, format;
  } formats[] = {{0, NC_FORMAT_CLASSIC}, {NC_64BIT_OFFSET, NC_FORMAT_CDF2}, {NC_64BIT_DATA, NC_FORMAT_CDF5}};
  int file = -1, format = 77;
  const char *name = fresh("files.nc");
  IS(ncmpi_open(MPI_COMM_WORLD, name, NC_NOWRITE, MPI_INFO_NULL, &file), NC_ENOENT);
  IS(ncmpi_inq_file_format(name, &format), NC_ENOENT);
  for (int i = 0; i < 3; i++) {
    one_value(name, NC_CLOBBER | formats[i].mode, 10 + i);
    DONE(ncmpi_inq_file_format(name, &format));
    CHECK(format == formats[i].format);
    check_value(name, 10 + i);
  }
  /* What is there stays, if it shall, */
  IS(ncmpi_create(MPI_COMM_WORLD, name, NC_NOCLOBBER, MPI_INFO_NULL, &file), NC_EEXIST);
  check_value(name, 12);
  MPI_Barrier(MPI_COMM_WORLD);
  /* and nothing of it, if it shall not: not behind a shorter file either. */
  MPI_File longer = opened(name, MPI_MODE_WRONLY);
  OK(MPI_File_set_size(longer, 100000));
  OK(MPI_File_close(&longer));
  one_value(name, NC_CLOBBER, 20);
  check_value(name, 20);
  CHECK(size_of(name) < 1000);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    DONE(ncmpi_delete(name, MPI_INFO_NULL));
    CHECK(ncmpi_delete(name, MPI_INFO_NULL) != NC_NOERR);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  one_value(name, NC_NOCLOBBER, 30);
  check_value(name, 30);
  MPI_Barrier(MPI_COMM_WORLD);
  /* Neither netCDF nor HDF5; too short for either. */
  for (int bytes = 8; bytes >= 4; bytes -= 4) {
    MPI_File other = created("other");
    if (rank == 0) OK(MPI_File_write_at(other, 0, "neither", bytes, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&other));
    MPI_Barrier(MPI_COMM_WORLD);
    char text[1400];
    snprintf(text, sizeof text, "%s/other", path);
    format = 77;
    IS(ncmpi_inq_file_format(text, &format), bytes == 8 ? NC_NOERR : NC_EFILE);
    CHECK(format == NC_FORMAT_UNKNOWN);
    CHECK(ncmpi_open(MPI_COMM_WORLD, text, NC_NOWRITE, MPI_INFO_NULL, &file) != NC_NOERR);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

/* A header that grows moves the data behind it; a file that is closed can be written on. */
static void definitions(void) {
  int file, first, second;
  const char *name = fresh("definitions.nc");
  char text[600], back[601] = "";
  MPI_Offset start[2] = {0, (MPI_Offset)COLUMNS * rank}, count[2] = {ROWS, COLUMNS};
  int data[ROWS][COLUMNS];
  for (int row = 0; row < ROWS; row++)
    for (int column = 0; column < COLUMNS; column++) data[row][column] = mine(row, column);
  memset(text, 'x', sizeof text);
  file = create(name, NC_CLOBBER);
  first = define(file, "first");
  DONE(ncmpi_enddef(file));
  DONE(ncmpi_put_vara_int_all(file, first, start, count, &data[0][0]));
  DONE(ncmpi_redef(file));
  DONE(ncmpi_put_att_text(file, NC_GLOBAL, "text", sizeof text, text));
  second = define(file, "second");
  DONE(ncmpi_enddef(file));
  DONE(ncmpi_put_vara_int_all(file, second, start, count, &data[0][0]));
  DONE(ncmpi_close(file));
  file = opened_file(name, NC_WRITE);
  DONE(ncmpi_get_att_text(file, NC_GLOBAL, "text", back));
  CHECK(memcmp(text, back, sizeof text) == 0);
  DONE(ncmpi_redef(file));
  DONE(ncmpi_rename_var(file, first, "renamed"));
  DONE(ncmpi_del_att(file, NC_GLOBAL, "text"));
  DONE(ncmpi_enddef(file));
  check_values(file, first);
  check_values(file, second);
  DONE(ncmpi_close(file));
}

/* Elements that nobody wrote, in records that come to be one by one. */
static void fill_values_and_records(void) {
  int file, time_, dimensions[2], variable, value, old;
  MPI_Offset start[2] = {0, rank}, records = 0;
  file = create(fresh("records.nc"), NC_CLOBBER | NC_64BIT_DATA);
  DONE(ncmpi_set_fill(file, NC_FILL, &old));
  DONE(ncmpi_def_dim(file, "time", NC_UNLIMITED, &time_));
  dimensions[0] = time_;
  DONE(ncmpi_def_dim(file, "place", 2 * (MPI_Offset)ranks, &dimensions[1]));
  DONE(ncmpi_def_var(file, "value", NC_INT, 2, dimensions, &variable));
  DONE(ncmpi_enddef(file));
  for (int record = 0; record < 3; record++) {
    start[0] = record;
    value = value_of(record, rank);
    DONE(ncmpi_fill_var_rec(file, variable, record));
    DONE(ncmpi_put_var1_int_all(file, variable, start, &value));
  }
  DONE(ncmpi_sync(file));
  DONE(ncmpi_inq_dimlen(file, time_, &records));
  CHECK(records == 3);
  for (int record = 0; record < 3; record++) {
    start[0] = record;
    start[1] = (rank + 1) % ranks;
    DONE(ncmpi_get_var1_int_all(file, variable, start, &value));
    CHECK(value == value_of(record, (rank + 1) % ranks));
    start[1] += ranks;
    DONE(ncmpi_get_var1_int_all(file, variable, start, &value));
    CHECK(value == NC_FILL_INT);
  }
  DONE(ncmpi_begin_indep_data(file));
  if (rank == ranks - 1) {
    start[0] = 5;
    start[1] = 0;
    value = -7;
    DONE(ncmpi_put_var1_int(file, variable, start, &value));
  }
  DONE(ncmpi_end_indep_data(file));
  DONE(ncmpi_inq_dimlen(file, time_, &records));
  CHECK(records == 6);
  DONE(ncmpi_close(file));
}

/* --- Elements ------------------------------------------------------------------------------------------------------ */

enum { EVERY_OTHER, TRANSPOSED, DERIVED, MANY, LISTED, BY_TYPE, WAYS };

static void put(int file, int variable, int way) {
  MPI_Offset start[2] = {0, (MPI_Offset)COLUMNS * rank}, count[2] = {ROWS, COLUMNS};
  int data[ROWS][COLUMNS], transposed[COLUMNS][ROWS], framed[ROWS + 2][COLUMNS + 4];
  memset(framed, 0xff, sizeof framed);
  for (int row = 0; row < ROWS; row++)
    for (int column = 0; column < COLUMNS; column++)
      data[row][column] = transposed[column][row] = framed[row + 1][column + 2] = mine(row, column);
  if (way == EVERY_OTHER) {
    MPI_Offset half[2] = {ROWS / 2, COLUMNS}, stride[2] = {2, 1};
    int rows[ROWS / 2][COLUMNS];
    for (int first = 0; first < 2; first++) {
      for (int row = 0; row < ROWS / 2; row++) memcpy(rows[row], data[2 * row + first], sizeof rows[row]);
      start[0] = first;
      DONE(ncmpi_put_vars_int_all(file, variable, start, half, stride, &rows[0][0]));
    }
  } else if (way == TRANSPOSED) {
    MPI_Offset one[2] = {1, 1}, map[2] = {1, ROWS};
    DONE(ncmpi_put_varm_int_all(file, variable, start, count, one, map, &transposed[0][0]));
  } else if (way == DERIVED) {
    int sizes[2] = {ROWS + 2, COLUMNS + 4}, subsizes[2] = {ROWS, COLUMNS}, starts[2] = {1, 2};
    MPI_Datatype inner;
    MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT, &inner);
    MPI_Type_commit(&inner);
    DONE(ncmpi_put_vara_all(file, variable, start, count, framed, 1, inner));
    MPI_Type_free(&inner);
  } else if (way == MANY) {
    MPI_Offset starts[ROWS][2], counts[ROWS][2], *start_of[ROWS], *count_of_[ROWS];
    for (int row = 0; row < ROWS; row++) {
      /* The last first. */
      starts[row][0] = ROWS - 1 - row;
      starts[row][1] = start[1];
      counts[row][0] = 1;
      counts[row][1] = COLUMNS;
      start_of[row] = starts[row];
      count_of_[row] = counts[row];
    }
    int backward[ROWS][COLUMNS];
    for (int row = 0; row < ROWS; row++) memcpy(backward[row], data[ROWS - 1 - row], sizeof data[row]);
    DONE(ncmpi_put_varn_int_all(file, variable, ROWS, start_of, count_of_, &backward[0][0]));
  } else if (way == LISTED) {
    MPI_Offset starts[2][2] = {{0, start[1]}, {ROWS / 2, start[1]}}, counts[2][2] = {{ROWS / 2, COLUMNS}, {ROWS / 2, COLUMNS}};
    MPI_Offset *start_of[2] = {starts[0], starts[1]}, *count_of_[2] = {counts[0], counts[1]};
    int variables[2] = {variable, variable};
    int *halves[2] = {&data[0][0], &data[ROWS / 2][0]};
    DONE(ncmpi_mput_vara_int_all(file, 2, variables, start_of, count_of_, halves));
  } else {
    int sizes[2] = {ROWS, COLUMNS * ranks}, subsizes[2] = {ROWS, COLUMNS}, starts[2] = {0, COLUMNS * rank};
    MPI_Datatype in_file;
    MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT, &in_file);
    MPI_Type_commit(&in_file);
    DONE(ncmpi_put_vard_all(file, variable, in_file, data, ROWS * COLUMNS, MPI_INT));
    MPI_Type_free(&in_file);
  }
}

static void elements(void) {
  int file = create(fresh("elements.nc"), NC_CLOBBER | NC_64BIT_OFFSET), variables[WAYS];
  for (int way = 0; way < WAYS; way++) {
    char name[16];
    snprintf(name, sizeof name, "way%d", way);
    variables[way] = define(file, name);
  }
  DONE(ncmpi_enddef(file));
  for (int way = 0; way < WAYS; way++) put(file, variables[way], way);
  for (int way = 0; way < WAYS; way++) check_values(file, variables[way]);
  DONE(ncmpi_close(file));
}

/* --- Later --------------------------------------------------------------------------------------------------------- */

/* Requests of some rows each: all waited for together, or some independently; buffered ones may change at once. */
static void later(void) {
  int file = create(fresh("later.nc"), NC_CLOBBER | NC_64BIT_DATA), variables[3], requests[ROWS], statuses[ROWS];
  int data[ROWS][COLUMNS];
  MPI_Offset start[2] = {0, (MPI_Offset)COLUMNS * rank}, count[2] = {1, COLUMNS};
  for (int i = 0; i < 3; i++) {
    char name[16];
    snprintf(name, sizeof name, "later%d", i);
    variables[i] = define(file, name);
  }
  DONE(ncmpi_enddef(file));
  for (int i = 0; i < 3; i++) {
    if (i == 1) DONE(ncmpi_buffer_attach(file, sizeof data));
    if (i == 2) DONE(ncmpi_begin_indep_data(file));
    for (int row = 0; row < ROWS; row++) {
      start[0] = row;
      for (int column = 0; column < COLUMNS; column++) data[row][column] = mine(row, column);
      if (i == 1) {
        DONE(ncmpi_bput_vara_int(file, variables[i], start, count, data[row], &requests[row]));
        memset(data[row], 0, sizeof data[row]);
      } else {
        DONE(ncmpi_iput_vara_int(file, variables[i], start, count, data[row], &requests[row]));
      }
    }
    if (i == 2) {
      DONE(ncmpi_wait(file, ROWS, requests, statuses));
      DONE(ncmpi_end_indep_data(file));
    } else {
      DONE(ncmpi_wait_all(file, ROWS, requests, statuses));
    }
    for (int row = 0; row < ROWS; row++) CHECK(statuses[row] == NC_NOERR);
    if (i == 1) DONE(ncmpi_buffer_detach(file));
  }
  DONE(ncmpi_flush(file));
  for (int i = 0; i < 3; i++) check_values(file, variables[i]);
  /* What the next rank wrote, two rows a request, the rest given up. */
  start[1] = (MPI_Offset)COLUMNS * ((rank + 1) % ranks);
  count[0] = 2;
  for (int i = 0; i < ROWS / 2; i++) {
    start[0] = 2 * i;
    DONE(ncmpi_iget_vara_int(file, variables[0], start, count, data[2 * i], &requests[i]));
  }
  DONE(ncmpi_cancel(file, 1, &requests[ROWS / 2 - 1], statuses));
  memset(data[ROWS - 2], 0, 2 * sizeof data[0]);
  DONE(ncmpi_wait_all(file, ROWS / 2 - 1, requests, statuses));
  for (int row = 0; row < ROWS; row++)
    for (int column = 0; column < COLUMNS; column++)
      CHECK(data[row][column] == (row < ROWS - 2 ? value_of(row, (int)start[1] + column) : 0));
  DONE(ncmpi_close(file));
}

/* --- Hints --------------------------------------------------------------------------------------------------------- */

static void hints(void) {
  MPI_Info info, used = MPI_INFO_NULL;
  char value[MPI_MAX_INFO_VAL + 1] = "";
  int file = -1, found = 0, variable;
  MPI_Offset offset = 0;
  MPI_Info_create(&info);
  MPI_Info_set(info, "nc_var_align_size", "4096");
  MPI_Info_set(info, "cb_buffer_size", "65536");
  DONE(ncmpi_create(MPI_COMM_WORLD, fresh("hints.nc"), NC_CLOBBER, info, &file));
  MPI_Info_free(&info);
  variable = define(file, "aligned");
  DONE(ncmpi_enddef(file));
  DONE(ncmpi_inq_varoffset(file, variable, &offset));
  CHECK(offset > 0 && offset % 4096 == 0);
  DONE(ncmpi_inq_file_info(file, &used));
  MPI_Info_get(used, "cb_buffer_size", MPI_MAX_INFO_VAL, value, &found);
  CHECK(found && strcmp(value, "65536") == 0);
  MPI_Info_free(&used);
  DONE(ncmpi_close(file));
}

int main(int count, char **arguments) {
  begin(&count, &arguments);
  files();
  definitions();
  fill_values_and_records();
  elements();
  later();
  hints();
  return end();
}
