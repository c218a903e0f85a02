/* Files that are not there, asked for by every rank alike and one by one. */
#include "suite.h"

int main(int count, char **arguments) {
  begin(&count, &arguments);
  MPI_File file = MPI_FILE_NULL;
  const char *name = fresh("missing");
  MPI_Comm communicators[2] = {MPI_COMM_WORLD, MPI_COMM_SELF};
  for (int i = 0; i < 2; i++) {
    FAILS(MPI_File_open(communicators[i], name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_NO_SUCH_FILE);
    FAILS(MPI_File_open(communicators[i], name, MPI_MODE_RDWR, MPI_INFO_NULL, &file), MPI_ERR_NO_SUCH_FILE);
    CHECK(file == MPI_FILE_NULL);
  }
  FAILS(MPI_File_delete(name, MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
  MPI_Barrier(MPI_COMM_WORLD);
  return end();
}
