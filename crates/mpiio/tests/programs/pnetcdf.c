/* A PnetCDF program: fixed and record variables, blocking collective, nonblocking and independent access.
 *
 * pnetcdf FOLDER [check]: with "check", only reads what a run before wrote.
 */
#include "suite.h"

#include <pnetcdf.h>

enum { ROWS = 12, RECORDS = 5 };

#define DONE(call) CHECK((call) == NC_NOERR)

int main(int count, char **arguments) {
  begin(&count, &arguments);
  int only_check = count > 2, file, dims[2], record_dims[2], fixed, record, requests[RECORDS], statuses[RECORDS];
  char name[1300];
  MPI_Offset columns = 10 * ranks, start[2] = {0, 10 * rank}, size[2] = {ROWS, 10};
  int data[ROWS * 10], back[ROWS * 10];
  snprintf(name, sizeof name, "%s/data.nc", path);
  for (int i = 0; i < ROWS * 10; i++) data[i] = 1000 * rank + i;
  if (!only_check) {
    DONE(ncmpi_create(MPI_COMM_WORLD, name, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file));
    DONE(ncmpi_def_dim(file, "row", ROWS, &dims[0]));
    DONE(ncmpi_def_dim(file, "column", columns, &dims[1]));
    DONE(ncmpi_def_dim(file, "time", NC_UNLIMITED, &record_dims[0]));
    record_dims[1] = dims[1];
    DONE(ncmpi_def_var(file, "fixed", NC_INT, 2, dims, &fixed));
    DONE(ncmpi_def_var(file, "record", NC_INT, 2, record_dims, &record));
    DONE(ncmpi_put_att_text(file, NC_GLOBAL, "title", 5, "suite"));
    DONE(ncmpi_enddef(file));
    DONE(ncmpi_put_vara_int_all(file, fixed, start, size, data));
    size[0] = 1;
    for (int i = 0; i < RECORDS; i++) {
      start[0] = i;
      DONE(ncmpi_iput_vara_int(file, record, start, size, data + 10 * i, &requests[i]));
    }
    DONE(ncmpi_wait_all(file, RECORDS, requests, statuses));
    for (int i = 0; i < RECORDS; i++) CHECK(statuses[i] == NC_NOERR);
    DONE(ncmpi_close(file));
  }
  DONE(ncmpi_open(MPI_COMM_WORLD, name, NC_NOWRITE, MPI_INFO_NULL, &file));
  DONE(ncmpi_inq_varid(file, "fixed", &fixed));
  DONE(ncmpi_inq_varid(file, "record", &record));
  start[0] = 0;
  size[0] = ROWS;
  DONE(ncmpi_get_vara_int_all(file, fixed, start, size, back));
  CHECK(memcmp(data, back, sizeof data) == 0);
  size[0] = RECORDS;
  memset(back, 0, sizeof back);
  DONE(ncmpi_begin_indep_data(file));
  DONE(ncmpi_get_vara_int(file, record, start, size, back));
  DONE(ncmpi_end_indep_data(file));
  CHECK(memcmp(data, back, RECORDS * 10 * sizeof(int)) == 0);
  DONE(ncmpi_close(file));
  return end();
}
