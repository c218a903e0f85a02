/* Each rank writes 32 MiB to a file of its own; rank 1 waits for the disk at each write. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

static char block[1 << 20];

int main(int count, char **words) {
    int rank;
    char name[32];
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(name, sizeof name, "part-%d", rank);
    int file = open(name, O_CREAT | O_WRONLY | O_TRUNC | (rank == 1 ? O_SYNC : 0), 0644);
    for (int i = 0; i < 32; i++)
        if (write(file, block, sizeof block) < 0)
            return 1;
    close(file);
    MPI_Finalize();
    return 0;
}
