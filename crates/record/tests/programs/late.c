/* Rank 0 sleeps before a barrier, in which rank 1 waits for it. argv: the file. */
#include <mpi.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int rank;
    MPI_File file;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        usleep(300000);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
