/* Writes and reads back an array of interleaved rows, each time in a new file: what a simulation does at each step.
 *
 * dumps FOLDER TIMES
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **arguments) {
  enum { ELEMENTS = 1000 };
  int rank, ranks, wrong = 0;
  float data[ELEMENTS], back[ELEMENTS];
  MPI_Init(&count, &arguments);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Datatype rows;
  MPI_Type_vector(ELEMENTS / 10, 10, 10 * ranks, MPI_FLOAT, &rows);
  MPI_Type_commit(&rows);
  for (int step = 0; step < atoi(arguments[2]); step++) {
    char path[1000];
    MPI_File file;
    for (int i = 0; i < ELEMENTS; i++) data[i] = (float)(step * 100000 + rank * 10000 + i);
    snprintf(path, sizeof path, "%s/counted.%d", arguments[1], step % 3);
    wrong += MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) != MPI_SUCCESS;
    wrong += MPI_File_set_view(file, 40 * rank, MPI_FLOAT, rows, "native", MPI_INFO_NULL) != MPI_SUCCESS;
    wrong += MPI_File_write_all(file, data, ELEMENTS, MPI_FLOAT, MPI_STATUS_IGNORE) != MPI_SUCCESS;
    wrong += MPI_File_read_at_all(file, 0, back, ELEMENTS, MPI_FLOAT, MPI_STATUS_IGNORE) != MPI_SUCCESS;
    wrong += MPI_File_close(&file) != MPI_SUCCESS;
    for (int i = 0; i < ELEMENTS; i++) wrong += data[i] != back[i];
  }
  if (rank == 0) printf("%d wrong\n", wrong);
  MPI_Type_free(&rows);
  MPI_Finalize();
  return wrong != 0;
}
