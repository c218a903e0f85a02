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
    /* What fails on all ranks alike is said once: the first ends the others before they speak. */
    if (rank != 0)
        nanosleep(&(struct timespec){.tv_sec = 3}, NULL);
    fprintf(stderr, "collapse: rank %d: %s\n", rank, message);
    fflush(stderr);
    /* A launcher ends its job without waiting for lines that it has not yet passed on: on a busy node it needs time. */
    nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
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
