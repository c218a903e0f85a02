/* Ranks write a matrix of 8-byte numbers to one file, four times, each rank its block of columns.
 *
 *   mpiexec -n 4 ./mesh [ROWS [one]]      with "one", rank 0 gathers the matrix and writes it alone */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **words) {
    int rank, ranks;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int rows = count > 1 ? atoi(words[1]) : 512, own = rows / ranks;
    double *block = calloc((size_t)rows * own, sizeof *block);
    double *whole = count > 2 && rank == 0 ? calloc((size_t)rows * rows, sizeof *whole) : NULL;

    MPI_Datatype columns;
    MPI_Type_create_subarray(2, (int[]){rows, own * ranks}, (int[]){rows, own}, (int[]){0, rank * own}, MPI_ORDER_C,
                             MPI_DOUBLE, &columns);
    MPI_Type_commit(&columns);
    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, "mesh.bin", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    if (count <= 2)
        MPI_File_set_view(file, 0, MPI_DOUBLE, columns, "native", MPI_INFO_NULL);
    for (int step = 0; step < 4; step++) {
        if (count <= 2) {
            MPI_File_seek(file, 0, MPI_SEEK_SET);
            MPI_File_write_all(file, block, rows * own, MPI_DOUBLE, MPI_STATUS_IGNORE);
            continue;
        }
        MPI_Gather(block, rows * own, MPI_DOUBLE, whole, rows * own, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        if (rank == 0)
            MPI_File_write_at(file, 0, whole, rows * own * ranks, MPI_DOUBLE, MPI_STATUS_IGNORE);
    }
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
