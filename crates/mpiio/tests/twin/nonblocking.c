/* Reads and writes that the program waits for later: nonblocking NAME. Several at a time, of ranks together and alone, on one
 * file of all ranks and one of each half of them. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { PARTS = 3, PIECES = 40, INTS = 9, PART = PIECES * INTS };

static int rank, ranks;

static void need(int code, const char *what) {
    if (code != MPI_SUCCESS) {
        fprintf(stderr, "rank %d: %s\n", rank, what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* Opens a file, of which each of `members` ranks sees every so many-th piece. */
static MPI_File opened(MPI_Comm comm, const char *name) {
    MPI_File file;
    MPI_Datatype type;
    int me, members;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &members);
    MPI_Type_vector(PIECES, INTS, INTS * members, MPI_INT, &type);
    MPI_Datatype tile;
    MPI_Type_create_resized(type, 0, (MPI_Aint)PART * members * (MPI_Aint)sizeof(int), &tile);
    MPI_Type_commit(&tile);
    need(MPI_File_open(comm, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file), "open");
    need(MPI_File_set_view(file, (MPI_Offset)(me * INTS * (int)sizeof(int)), MPI_INT, tile, "native", MPI_INFO_NULL),
         "view");
    MPI_Type_free(&tile);
    MPI_Type_free(&type);
    return file;
}

static void write_and_read(MPI_Comm comm, const char *name) {
    static int data[PARTS + 2][PART], back[PARTS + 2][PART];
    MPI_File file = opened(comm, name);
    MPI_Request requests[PARTS + 1];
    for (int i = 0; i < PARTS + 2; i++)
        for (int k = 0; k < PART; k++) data[i][k] = (i * 10 + rank) * 1000 + k;
    /* Together, without waiting in between; alone meanwhile, and until another write in two halves is done. */
    for (int i = 0; i < PARTS; i++) need(MPI_File_iwrite_all(file, data[i], PART, MPI_INT, &requests[i]), "write");
    need(MPI_File_iwrite_at(file, PARTS * PART, data[PARTS], PART, MPI_INT, &requests[PARTS]), "write alone");
    need(MPI_Waitall(PARTS, requests, MPI_STATUSES_IGNORE), "wait");
    need(MPI_File_write_at_all_begin(file, (PARTS + 1) * PART, data[PARTS + 1], PART, MPI_INT), "begin to write");
    need(MPI_File_write_at_all_end(file, data[PARTS + 1], MPI_STATUS_IGNORE), "end writing");
    need(MPI_Wait(&requests[PARTS], MPI_STATUS_IGNORE), "wait");
    MPI_Barrier(comm);
    need(MPI_File_seek(file, 0, MPI_SEEK_SET), "seek");
    need(MPI_File_read_all_begin(file, back[0], PART, MPI_INT), "begin to read");
    need(MPI_File_iread_at(file, PARTS * PART, back[PARTS], PART, MPI_INT, &requests[PARTS]), "read alone");
    need(MPI_File_read_all_end(file, back[0], MPI_STATUS_IGNORE), "end reading");
    for (int i = 1; i < PARTS; i++)
        need(MPI_File_iread_at_all(file, i * PART, back[i], PART, MPI_INT, &requests[i]), "read");
    need(MPI_File_read_at_all(file, (PARTS + 1) * PART, back[PARTS + 1], PART, MPI_INT, MPI_STATUS_IGNORE), 
         "read at once");
    need(MPI_Waitall(PARTS, requests + 1, MPI_STATUSES_IGNORE), "wait");
    for (int i = 0; i < PARTS + 2; i++)
        for (int k = 0; k < PART; k++)
            if (back[i][k] != data[i][k]) need(1, "read something else");
    need(MPI_File_close(&file), "close");
}

int main(int count, char **words) {
    char name[256];
    MPI_Comm half;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    write_and_read(MPI_COMM_WORLD, words[1]);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    snprintf(name, sizeof name, "%s.%d", words[1], rank % 2);
    write_and_read(half, name);
    MPI_Comm_free(&half);
    MPI_Finalize();
    return 0;
}
