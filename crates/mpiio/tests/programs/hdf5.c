/* A parallel HDF5 program: a contiguous and a chunked data set, written and read collectively and not.
 *
 * hdf5 FOLDER [check]: with "check", only reads what a run before wrote.
 */
#include "suite.h"

#include <hdf5.h>

enum { ROWS = 48, COLUMNS = 60 };

static double value_of(hsize_t row, hsize_t column, int set) { return 1000000.0 * set + 1000.0 * (double)row + (double)column; }

/* Rows cyclically: rank, rank + ranks, … */
static hid_t selected(hid_t space, hsize_t *rows) {
  hsize_t start[2] = {(hsize_t)rank, 0}, stride[2] = {(hsize_t)ranks, 1}, count[2] = {0, COLUMNS};
  *rows = count[0] = (hsize_t)((ROWS - rank + ranks - 1) / ranks);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, start, stride, count, NULL);
  return H5Screate_simple(2, count, NULL);
}

static void one_set(hid_t file, int set, int collective, int chunked, int only_check) {
  hsize_t size[2] = {ROWS, COLUMNS}, chunk[2] = {7, 11}, rows;
  char name[20];
  hid_t space = H5Screate_simple(2, size, NULL), creation = H5Pcreate(H5P_DATASET_CREATE), data;
  hid_t transfer = H5Pcreate(H5P_DATASET_XFER), memory;
  double *buffer;
  H5Pset_dxpl_mpio(transfer, collective ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT);
  if (chunked) H5Pset_chunk(creation, 2, chunk);
  snprintf(name, sizeof name, "set%d", set);
  memory = selected(space, &rows);
  buffer = malloc(rows * COLUMNS * sizeof *buffer);
  if (only_check) {
    data = H5Dopen2(file, name, H5P_DEFAULT);
  } else {
    data = H5Dcreate2(file, name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    for (hsize_t i = 0; i < rows; i++)
      for (hsize_t j = 0; j < COLUMNS; j++)
        buffer[i * COLUMNS + j] = value_of((hsize_t)rank + i * (hsize_t)ranks, j, set);
    CHECK(H5Dwrite(data, H5T_NATIVE_DOUBLE, memory, space, transfer, buffer) >= 0);
  }
  memset(buffer, 0, rows * COLUMNS * sizeof *buffer);
  CHECK(data >= 0 && H5Dread(data, H5T_NATIVE_DOUBLE, memory, space, transfer, buffer) >= 0);
  int wrong = 0;
  for (hsize_t i = 0; i < rows; i++)
    for (hsize_t j = 0; j < COLUMNS; j++)
      wrong += buffer[i * COLUMNS + j] != value_of((hsize_t)rank + i * (hsize_t)ranks, j, set);
  CHECK(wrong == 0);
  free(buffer);
  H5Dclose(data);
  H5Sclose(memory);
  H5Sclose(space);
  H5Pclose(creation);
  H5Pclose(transfer);
}

int main(int count, char **arguments) {
  begin(&count, &arguments);
  int only_check = count > 2;
  char name[1300];
  hid_t access = H5Pcreate(H5P_FILE_ACCESS), file;
  snprintf(name, sizeof name, "%s/data.h5", path);
  H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
  file = only_check ? H5Fopen(name, H5F_ACC_RDONLY, access) : H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, access);
  CHECK(file >= 0);
  for (int set = 0; file >= 0 && set < 4; set++) one_set(file, set, set % 2, set / 2, only_check);
  if (file >= 0) CHECK(H5Fclose(file) >= 0);
  H5Pclose(access);
  return end();
}
