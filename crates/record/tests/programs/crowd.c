/* Each rank computes 10 ms before each of ten writes. argv: the file. */
#include <mpi.h>
#include <time.h>

static double cpu_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

int main(int argc, char **argv) {
    int rank;
    MPI_File file;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    for (int i = 0; i < 10; i++) {
        for (double start_ms = cpu_ms(); cpu_ms() < start_ms + 10;)
            ;
        MPI_File_write_at(file, rank * 10 + i, "x", 1, MPI_BYTE, MPI_STATUS_IGNORE);
    }
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
