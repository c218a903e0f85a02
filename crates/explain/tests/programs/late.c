/* Collective MPI-IO with one thing wrong, or nothing. late NAME ROUNDS: works in the current folder. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB (1 << 20)

static int rank, ranks, rounds;

static void check(int error, const char *what) {
    if (error != MPI_SUCCESS) {
        fprintf(stderr, "%s failed\n", what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static MPI_File open_shared(void) {
    MPI_File file;
    check(MPI_File_open(MPI_COMM_WORLD, "shared", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file), "open");
    return file;
}

static void compute(double seconds) {
    volatile double sum = 0;
    for (double start = MPI_Wtime(); MPI_Wtime() - start < seconds;)
        sum += 1;
}

/* The last rank computes for 20 ms before each write. */
static void late_rank(void) {
    char *buffer = calloc(1, MIB);
    MPI_File file = open_shared();
    for (int i = 0; i < rounds; i++) {
        if (rank == ranks - 1)
            compute(0.02);
        check(MPI_File_write_at_all(file, ((MPI_Offset)i * ranks + rank) * MIB, buffer, MIB, MPI_BYTE, MPI_STATUS_IGNORE),
              "write");
    }
    check(MPI_File_close(&file), "close");
    free(buffer);
}

/* Every rank's data are 4-byte pieces, one of each rank by turns. */
static void pieces(void) {
    char *buffer = calloc(1, MIB);
    MPI_File file = open_shared();
    MPI_Datatype piece, view;
    check(MPI_Type_contiguous(4, MPI_BYTE, &piece), "type");
    check(MPI_Type_create_resized(piece, 0, 4 * ranks, &view), "type");
    check(MPI_Type_commit(&view), "type");
    check(MPI_File_set_view(file, 4 * rank, MPI_BYTE, view, "native", MPI_INFO_NULL), "view");
    for (int i = 0; i < rounds; i++)
        check(MPI_File_write_all(file, buffer, MIB, MPI_BYTE, MPI_STATUS_IGNORE), "write");
    check(MPI_File_close(&file), "close");
    MPI_Type_free(&view);
    MPI_Type_free(&piece);
    free(buffer);
}

/* Large contiguous parts, all ranks alike. */
static void balanced(void) {
    char *buffer = calloc(8, MIB);
    MPI_File file = open_shared();
    for (int i = 0; i < rounds; i++)
        check(MPI_File_write_at_all(file, ((MPI_Offset)i * ranks + rank) * 8 * MIB, buffer, 8 * MIB, MPI_BYTE,
                                    MPI_STATUS_IGNORE),
              "write");
    check(MPI_File_close(&file), "close");
    free(buffer);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    rounds = argc > 2 ? atoi(argv[2]) : 1;
    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "late-rank") == 0)
        late_rank();
    else if (strcmp(name, "pieces") == 0)
        pieces();
    else if (strcmp(name, "balanced") == 0)
        balanced();
    else
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Finalize();
    return 0;
}
