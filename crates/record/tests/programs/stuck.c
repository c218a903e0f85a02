/* Rank 0 begins a collective call in which it is killed: rank 1 never joins, but kills it. argv: the file. */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int rank, pid = getpid();
    static double data[100];
    MPI_File file;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    /* Every other number, so that no MPI takes the collective write for an independent one. */
    MPI_Datatype every_other;
    MPI_Type_create_resized(MPI_DOUBLE, 0, 16, &every_other);
    MPI_Type_commit(&every_other);
    MPI_File_set_view(file, 8 * rank, MPI_DOUBLE, every_other, "native", MPI_INFO_NULL);
    MPI_Bcast(&pid, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank == 1) {
        sleep(1);
        kill(pid, SIGKILL);
        sleep(10);
    }
    MPI_File_write_at_all(file, 10, data, 100, MPI_DOUBLE, MPI_STATUS_IGNORE);
    MPI_File_close(&file); /* where the write is not collective, this is */
    return 0;
}
