/*
 * Waiting for messages.
 *
 * MPI libraries wait in a busy loop. With more processes than processors on a node that keeps the processor from the very
 * process waited for until the end of its time slice: measured with 8 processes on 2 processors, 11 ms an exchange. In
 * that case, and only then, this program sleeps between looks instead.
 */
#ifndef COLLAPSE_WAIT_H
#define COLLAPSE_WAIT_H

#include <mpi.h>

/* Finds out whether the node has more processes than processors. Collective over MPI_COMM_WORLD; call it first. */
void wait_prepare(void);

/* Completes all requests, like MPI_Waitall. */
void wait_all(int requests, MPI_Request request[]);

#endif
