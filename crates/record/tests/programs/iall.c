/* Nonblocking MPI-IO, waited for in several ways. Each rank writes its blocks of a file, and reads them. argv: the file.
 *
 * MPICH does the I/O of the collective operations in the call that waits. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK (1 << 20)
#define MANY 5000

#define MUST(call)                                                                                                     \
    if ((call) != MPI_SUCCESS)                                                                                         \
        MPI_Abort(MPI_COMM_WORLD, 1);

int main(int argc, char **argv) {
    int rank, ranks, flag = 0, index, done, indices[2];
    MPI_File file;
    MPI_Request request, two[2];
    static MPI_Request many[MANY];
    char *data = calloc(2, BLOCK);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MUST(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
#define AT(block) (MPI_Offset)((block) * ranks + rank) * BLOCK
#define WRITE(block, request)                                                                                          \
    MUST(MPI_File_iwrite_at_all(file, AT(block), data + BLOCK * ((block) % 2), BLOCK, MPI_BYTE, request))

    /* 1. a wait */
    WRITE(0, &request);
    MUST(MPI_Wait(&request, MPI_STATUS_IGNORE));
    /* 2. tests */
    WRITE(1, &request);
    for (flag = 0; !flag;)
        MUST(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
    /* 3. others that take a list: of one, for which it is clear what they go on with */
    WRITE(2, &many[0]);
    for (int i = 1; i < MANY; i++)
        many[i] = MPI_REQUEST_NULL;
    MUST(MPI_Waitall(MANY, many, MPI_STATUSES_IGNORE));
    WRITE(3, &request);
    MUST(MPI_Waitany(1, &request, &index, MPI_STATUS_IGNORE));
    WRITE(4, &request);
    MUST(MPI_Waitsome(1, &request, &done, indices, MPI_STATUSES_IGNORE));
    WRITE(5, &request);
    for (flag = 0; !flag;)
        MUST(MPI_Testall(1, &request, &flag, MPI_STATUSES_IGNORE));
    WRITE(6, &request);
    for (flag = 0; !flag;)
        MUST(MPI_Testany(1, &request, &index, &flag, MPI_STATUS_IGNORE));
    WRITE(7, &request);
    for (done = 0; done == 0;)
        MUST(MPI_Testsome(1, &request, &done, indices, MPI_STATUSES_IGNORE));
    WRITE(8, &request);
    for (flag = 0; !flag;)
        MUST(MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE));
    MUST(MPI_Wait(&request, MPI_STATUS_IGNORE));
    /* 4. two at a time: a wait for both may be for either */
    WRITE(9, &two[0]);
    WRITE(10, &two[1]);
    MUST(MPI_Waitall(2, two, MPI_STATUSES_IGNORE));
    /* 5. a message, whose request may have a number that MPI used before */
    int token = rank, got;
    MUST(MPI_Irecv(&got, 1, MPI_INT, (rank + 1) % ranks, 0, MPI_COMM_WORLD, &two[0]));
    MUST(MPI_Isend(&token, 1, MPI_INT, (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, &two[1]));
    MUST(MPI_Waitall(2, two, MPI_STATUSES_IGNORE));

    MUST(MPI_File_iread_at_all(file, AT(0), data, BLOCK, MPI_BYTE, &request));
    MUST(MPI_Wait(&request, MPI_STATUS_IGNORE));
    /* 6. independent */
    MUST(MPI_File_iwrite_at(file, AT(11), data, BLOCK, MPI_BYTE, &request));
    MUST(MPI_Wait(&request, MPI_STATUS_IGNORE));
    MUST(MPI_File_iread_at(file, AT(11), data, BLOCK, MPI_BYTE, &request));
    MUST(MPI_Wait(&request, MPI_STATUS_IGNORE));
    MUST(MPI_File_close(&file));
    MPI_Finalize();
    return 0;
}
