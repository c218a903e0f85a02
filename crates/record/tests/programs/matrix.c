/* Four ranks (or any square) write and read a matrix of 8-byte numbers, distributed by blocks. argv: file, rank to kill
 * in the middle (or -1). */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CHECK(call)                                                                                                    \
    if ((call) != MPI_SUCCESS) {                                                                                       \
        fprintf(stderr, "%s failed\n", #call);                                                                         \
        MPI_Abort(MPI_COMM_WORLD, 2);                                                                                  \
    }

enum { LOCAL = 8 }; /* each rank's block is LOCAL by LOCAL */

int main(int argc, char **argv) {
    int rank, ranks, side = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    while (side * side < ranks)
        side++;
    int victim = argc > 2 ? atoi(argv[2]) : -1;

    MPI_Barrier(MPI_COMM_WORLD); /* no file is open: not recorded */
    MPI_File file;
    CHECK(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));

    int sizes[2] = {side * LOCAL, side * LOCAL};
    int local[2] = {LOCAL, LOCAL};
    int starts[2] = {rank / side * LOCAL, rank % side * LOCAL};
    MPI_Datatype block, column;
    MPI_Type_create_subarray(2, sizes, local, starts, MPI_ORDER_C, MPI_DOUBLE, &block);
    MPI_Type_commit(&block);
    CHECK(MPI_File_set_view(file, 16, MPI_DOUBLE, block, "native", MPI_INFO_NULL));

    double data[2 * LOCAL * LOCAL], back[2 * LOCAL * LOCAL];
    for (int i = 0; i < 2 * LOCAL * LOCAL; i++)
        data[i] = rank * 1000 + i;
    MPI_Status status;
    CHECK(MPI_File_write_all(file, data, LOCAL * LOCAL, MPI_DOUBLE, &status));
    MPI_Barrier(MPI_COMM_WORLD); /* recorded */
    if (rank == victim)
        kill(getpid(), SIGKILL);
    if (victim >= 0)
        MPI_Barrier(MPI_COMM_WORLD); /* never returns */

    /* Types that are made with large counts, as mpi4py makes all, cannot be asked for with small ones. */
#if MPI_VERSION >= 4
    MPI_Type_vector_c(LOCAL * LOCAL, 1, 2, MPI_DOUBLE, &column);
#else
    MPI_Type_vector(LOCAL * LOCAL, 1, 2, MPI_DOUBLE, &column);
#endif
    MPI_Type_commit(&column);
    CHECK(MPI_File_write_at_all(file, LOCAL * LOCAL, data, 1, column, MPI_STATUS_IGNORE));
    CHECK(MPI_File_seek(file, 0, MPI_SEEK_SET));
    CHECK(MPI_File_read_all(file, back, LOCAL * LOCAL, MPI_DOUBLE, &status));
    for (int i = 0; i < LOCAL * LOCAL; i++)
        if (back[i] != data[i]) {
            fprintf(stderr, "rank %d: wrong data\n", rank);
            MPI_Abort(MPI_COMM_WORLD, 3);
        }

    CHECK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    CHECK(MPI_File_write_at(file, rank, &rank, 1, MPI_INT, MPI_STATUS_IGNORE));
    int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks, got;
    MPI_Request request;
    MPI_Irecv(&got, 1, MPI_INT, from, 7, MPI_COMM_WORLD, &request);
    MPI_Send(&rank, 1, MPI_INT, to, 7, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(MPI_File_close(&file));
    MPI_Barrier(MPI_COMM_WORLD); /* not recorded */
    MPI_Type_free(&block);
    MPI_Type_free(&column);
    MPI_Finalize();
    return 0;
}
