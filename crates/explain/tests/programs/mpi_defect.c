/* MPI programs, each with one defect in its I/O; and clean ones.
 *
 * mpi_defect NAME [mended]: works in the current folder. With "mended" it does the same without the defect. How long that
 * took, nanoseconds, is then in the file "took". */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB (1 << 20)

static char *buffer;
static int rank, ranks, mended;

static void check(int ok, const char *what) {
    if (!ok) {
        perror(what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static int open_file(const char *name, int flags) {
    int fd = open(name, flags, 0644);
    check(fd >= 0, name);
    return fd;
}

static int open_own(int flags) {
    char name[32];
    snprintf(name, sizeof name, "own-%d", rank);
    return open_file(name, O_RDWR | O_CREAT | flags);
}

static void put(int fd, size_t bytes, off_t offset) {
    check(pwrite(fd, buffer, bytes, offset) == (ssize_t)bytes, "pwrite");
}

static MPI_File open_shared(void) {
    MPI_File file;
    check(MPI_File_open(MPI_COMM_WORLD, "shared", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) ==
              MPI_SUCCESS,
          "shared");
    return file;
}

static void one_writer(void) {
    for (int i = 0; i < 100; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            int fd = open_file("out", O_RDWR | O_CREAT);
            put(fd, MIB, (off_t)i * MIB);
            put(fd, MIB, (off_t)(i + 100) * MIB);
            close(fd);
        }
    }
}

static void compute(double seconds) {
    volatile double sum = 0;
    for (double start = MPI_Wtime(); MPI_Wtime() - start < seconds;)
        sum += 1;
}

/* The last rank computes before each write; or all ranks do their part of that. */
static void late_rank(void) {
    MPI_File file = open_shared();
    for (int i = 0; i < 20; i++) {
        if (mended)
            compute(0.02 / ranks);
        else if (rank == ranks - 1)
            compute(0.02);
        check(MPI_File_write_at_all(file, ((MPI_Offset)i * ranks + rank) * 4096, buffer, 4096, MPI_BYTE,
                                    MPI_STATUS_IGNORE) == MPI_SUCCESS,
              "write");
    }
    MPI_File_close(&file);
}

/* Only the last rank's data must be on the device before it goes on. */
static void straggler(void) {
    int fd = open_own(!mended && rank == ranks - 1 ? O_DSYNC : 0);
    for (int i = 0; i < 200; i++)
        put(fd, 64 << 10, (off_t)i * (64 << 10));
    close(fd);
}

static void uneven_ranks(void) {
    int fd = open_own(0);
    for (int i = 0; i < (rank == 1 ? 200 : 30); i++)
        put(fd, MIB, (off_t)i * MIB);
    close(fd);
}

/* Pieces of 256 bytes that a rank writes. */
#define PIECES 8000

/* By turns with the other ranks; or, as a good collective call does it, ranks exchange the pieces, and each writes all of
 * one part. */
static void missing_collective(void) {
    MPI_File file = open_shared();
    if (mended) {
        int bytes = PIECES / ranks * 256;
        char *pieces = calloc((size_t)ranks, (size_t)bytes), *part = calloc((size_t)ranks, (size_t)bytes);
        MPI_Alltoall(pieces, bytes, MPI_BYTE, part, bytes, MPI_BYTE, MPI_COMM_WORLD);
        for (int i = 0; i < PIECES / ranks; i++)
            for (int from = 0; from < ranks; from++)
                memcpy(pieces + ((size_t)i * ranks + from) * 256, part + (size_t)from * bytes + (size_t)i * 256, 256);
        MPI_File_write_at(file, (MPI_Offset)rank * ranks * bytes, pieces, ranks * bytes, MPI_BYTE, MPI_STATUS_IGNORE);
        free(part);
        free(pieces);
    }
    for (int i = 0; !mended && i < PIECES; i++)
        MPI_File_write_at(file, ((MPI_Offset)i * ranks + rank) * 256, buffer, 256, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

/* Every other 256 bytes of a part of its own. */
static void no_view(void) {
    MPI_File file = open_shared();
    for (int i = 0; i < PIECES; i++)
        MPI_File_write_at(file, rank * (MPI_Offset)(8 * MIB) + i * 512, buffer, 256, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

static void file_per_process(void) {
    char name[64];
    int shared = mended ? open_file("steps", O_WRONLY | O_CREAT) : -1;
    for (int i = 0; i < 200; i++) {
        if (mended) {
            put(shared, 4096, ((off_t)i * ranks + rank) * 4096);
            continue;
        }
        snprintf(name, sizeof name, "step-%d-rank-%d", i, rank);
        int fd = open_file(name, O_WRONLY | O_CREAT);
        put(fd, 4096, 0);
        close(fd);
    }
}

static void same_read_by_all(void) {
    int fd = open_file("data", O_RDONLY);
    for (int i = 0; i < 64; i++)
        check(pread(fd, buffer, MIB, (off_t)i * MIB) == MIB, "pread");
    close(fd);
}

/* Every rank looks for the modules of a library, as Python does when it starts. */
static void same_names_by_all(void) {
    char name[32];
    struct stat known;
    if (rank == 0)
        for (int i = 0; i < 500; i++) {
            snprintf(name, sizeof name, "module-%d", i);
            close(open_file(name, O_WRONLY | O_CREAT));
        }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 500; i++) {
        snprintf(name, sizeof name, "module-%d.so", i);
        check(stat(name, &known) < 0, name);
        snprintf(name, sizeof name, "module-%d", i);
        check(stat(name, &known) == 0, name);
        close(open_file(name, O_RDONLY));
    }
}

static void clean_collective(void) {
    MPI_File file = open_shared();
    for (int i = 0; i < 4; i++)
        MPI_File_write_at_all(file, ((MPI_Offset)i * ranks + rank) * MIB, buffer, MIB, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } programs[] = {
        {"one-writer", one_writer},
        {"late-rank", late_rank},
        {"straggler", straggler},
        {"uneven-ranks", uneven_ranks},
        {"missing-collective", missing_collective},
        {"no-view", no_view},
        {"file-per-process", file_per_process},
        {"same-read-by-all", same_read_by_all},
        {"same-names-by-all", same_names_by_all},
        {"clean-collective", clean_collective},
    };
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    buffer = malloc(MIB);
    check(buffer != NULL, "malloc");
    memset(buffer, 'x', MIB);
    int found = 0;
    mended = argc == 3 && strcmp(argv[2], "mended") == 0;
    for (size_t i = 0; argc >= 2 && i < sizeof programs / sizeof *programs; i++)
        if (strcmp(argv[1], programs[i].name) == 0) {
            MPI_Barrier(MPI_COMM_WORLD);
            double start = MPI_Wtime();
            programs[i].run();
            MPI_Barrier(MPI_COMM_WORLD);
            if (rank == 0) {
                int fd = open_file("took", O_WRONLY | O_CREAT);
                check(dprintf(fd, "%.0f", (MPI_Wtime() - start) * 1e9) > 0, "took");
                close(fd);
            }
            found = 1;
        }
    MPI_Finalize();
    return found ? 0 : 1;
}
