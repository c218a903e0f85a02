/* All sleep a hundred times before MPI_Init. Rank 0 sleeps thirty times before a barrier, in which rank 1 waits for it.
 * Rank 1 removes the file. argv: the file. */
#include <mpi.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int rank;
    MPI_File file;
    for (int i = 0; i < 100; i++)
        usleep(10);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < 30; i++)
        usleep(10000);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_close(&file);
    if (rank == 1)
        MPI_File_delete(argv[1], MPI_INFO_NULL);
    MPI_Finalize();
    return 0;
}
