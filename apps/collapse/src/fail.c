#include "fail.h"

#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void fail(const char *format, ...)
{
    /* One buffer and one write, so that lines of several ranks do not mix. */
    char message[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);

    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank != 0) {
        /* What fails on all ranks alike is said once: the first ends the others before they speak. */
        const struct timespec moment = {.tv_nsec = 300000000};
        nanosleep(&moment, NULL);
    }
    fprintf(stderr, "collapse: rank %d: %s\n", rank, message);
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count > 0 ? count : 1, size);
    if (memory == NULL)
        fail("no memory for %zu items of %zu bytes", count, size);
    return memory;
}
