/* Writes and reads seven files, FOLDER/PATTERN, through views of a pattern each: twins FOLDER BYTES.
 *
 * contiguous  each rank one block of BYTES bytes, one behind the other
 * pieces      every P-th piece of 60 bytes
 * blocks      a part of a matrix, cut into rectangles
 * large       every P-th piece of 20,000 bytes
 * gaps        pieces of 100 bytes, with gaps that no rank has
 * uneven      pieces of several sizes; the last of three or more ranks has nothing
 * later       as pieces, but waits for each two writes, or reads, when both have begun
 *
 * Of each: half of the data by one collective write and read, the other half by each rank alone. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;
static long block_bytes;

static void need(int code, const char *what) {
    if (code != MPI_SUCCESS) {
        fprintf(stderr, "rank %d: %s\n", rank, what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* The filetype, and data bytes of this rank. */
static long pattern(const char *name, MPI_Datatype *type, MPI_Offset *displacement) {
    *displacement = 0;
    if (strcmp(name, "contiguous") == 0) {
        MPI_Type_contiguous((int)(block_bytes / 2), MPI_BYTE, type);
        *displacement = (MPI_Offset)rank * block_bytes;
        return block_bytes;
    }
    int is_large = strcmp(name, "large") == 0, has_gaps = strcmp(name, "gaps") == 0;
    if (is_large || has_gaps || strcmp(name, "pieces") == 0 || strcmp(name, "later") == 0) {
        int bytes = is_large ? 20000 : has_gaps ? 100 : 60;
        int gap = has_gaps ? 700 : 0;
        int count = is_large ? 10 : 1500;
        MPI_Datatype piece;
        MPI_Type_contiguous(bytes, MPI_BYTE, &piece);
        MPI_Type_create_resized(piece, 0, (MPI_Aint)ranks * bytes + gap, type);
        MPI_Type_free(&piece);
        *displacement = (MPI_Offset)rank * bytes;
        return (long)count * bytes;
    }
    if (strcmp(name, "blocks") == 0) {
        int grid[2] = {0, 0}, sizes[2] = {512, 512}, sub[2], starts[2];
        MPI_Dims_create(ranks, 2, grid);
        sub[0] = sizes[0] / grid[0], sub[1] = sizes[1] / grid[1];
        starts[0] = rank / grid[1] * sub[0], starts[1] = rank % grid[1] * sub[1];
        MPI_Type_create_subarray(2, sizes, sub, starts, MPI_ORDER_C, MPI_BYTE, type);
        return (long)sub[0] * sub[1];
    }
    int lengths[400];
    MPI_Aint places[400];
    long sum = 0;
    for (int i = 0; i < 400; i++) {
        lengths[i] = 1 + (i * 37 + rank * 11) % 300;
        places[i] = (MPI_Aint)(i * ranks + rank) * 300;
        sum += lengths[i];
    }
    MPI_Type_create_hindexed(400, lengths, places, MPI_BYTE, type);
    return ranks > 2 && rank == ranks - 1 ? 0 : sum;
}

static void move(MPI_File file, char *data, char *back, int half, int rest) {
    need(MPI_File_write_at_all(file, 0, data, half, MPI_BYTE, MPI_STATUS_IGNORE), "write together");
    need(MPI_File_write_at(file, half, data + half, rest, MPI_BYTE, MPI_STATUS_IGNORE), "write alone");
    MPI_Barrier(MPI_COMM_WORLD);
    need(MPI_File_read_at_all(file, 0, back, half, MPI_BYTE, MPI_STATUS_IGNORE), "read together");
    need(MPI_File_read_at(file, half, back + half, rest, MPI_BYTE, MPI_STATUS_IGNORE), "read alone");
}

static void move_later(MPI_File file, char *data, char *back, int half, int rest) {
    MPI_Request requests[2];
    MPI_Status statuses[2];
    /* In this order the first is complete before the second begins. In the other, the library writes alone piece by piece while
     * ranks write together, which the simulator does not know. */
    need(MPI_File_iwrite_at(file, half, data + half, rest, MPI_BYTE, &requests[1]), "write alone");
    need(MPI_File_iwrite_at_all(file, 0, data, half, MPI_BYTE, &requests[0]), "write together");
    need(MPI_Waitall(2, requests, statuses), "wait for both");
    MPI_Barrier(MPI_COMM_WORLD);
    need(MPI_File_iread_at_all(file, 0, back, half, MPI_BYTE, &requests[0]), "read together");
    need(MPI_File_iread_at(file, half, back + half, rest, MPI_BYTE, &requests[1]), "read alone");
    need(MPI_Waitall(2, requests, statuses), "wait for both");
}

static void write_and_read(const char *folder, const char *name) {
    char path[256];
    MPI_Datatype type;
    MPI_Offset displacement;
    MPI_File file;
    long bytes = pattern(name, &type, &displacement), half = bytes / 2;
    char *data = malloc((size_t)bytes + 1), *back = malloc((size_t)bytes + 1);
    MPI_Type_commit(&type);
    for (long i = 0; i < bytes; i++) data[i] = (char)(i * 31 + rank * 7 + 1);
    snprintf(path, sizeof path, "%s%s", folder, name);
    need(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file), "open");
    need(MPI_File_set_view(file, displacement, MPI_BYTE, type, "native", MPI_INFO_NULL), "view");
    if (strcmp(name, "later") == 0)
        move_later(file, data, back, (int)half, (int)(bytes - half));
    else
        move(file, data, back, (int)half, (int)(bytes - half));
    if (memcmp(data, back, (size_t)bytes) != 0) need(1, "read something else");
    need(MPI_File_close(&file), "close");
    MPI_Type_free(&type);
    free(data);
    free(back);
}

int main(int count, char **words) {
    static const char *const names[] = {"contiguous", "pieces", "blocks", "large", "gaps", "uneven", "later"};
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    block_bytes = atol(words[2]);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) write_and_read(words[1], names[i]);
    MPI_Finalize();
    return 0;
}
