/* What the core needs of the program's own MPI. */
#include "pio_native.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(MPI_Request) <= sizeof(pio_request), "an MPI_Request fits a pio_request");
_Static_assert(sizeof(MPI_Message) <= sizeof(pio_message), "an MPI_Message fits a pio_message");

static int pio_started(int error, MPI_Request started, pio_request *request) {
  *request = 0;
  memcpy(request, &started, sizeof started);
  return error == MPI_SUCCESS ? PIO_SUCCESS : PIO_INTERNAL;
}

static int pio_duplicate(const pio_communicator *communicator, pio_communicator **duplicate) {
  *duplicate = malloc(sizeof **duplicate);
  if (*duplicate == NULL) return PIO_NO_MEMORY;
  if (pio.Comm_dup(communicator->comm, &(*duplicate)->comm) == MPI_SUCCESS) return PIO_SUCCESS;
  free(*duplicate);
  *duplicate = NULL;
  return PIO_COMMUNICATOR;
}

static void pio_release(pio_communicator *communicator, int communicate) {
  if (communicate) pio.Comm_free(&communicator->comm);
  free(communicator);
}

static int pio_size(const pio_communicator *communicator, int *rank, int *ranks) {
  if (pio.Comm_rank(communicator->comm, rank) != MPI_SUCCESS) return PIO_COMMUNICATOR;
  return pio.Comm_size(communicator->comm, ranks) == MPI_SUCCESS ? PIO_SUCCESS : PIO_COMMUNICATOR;
}

static int pio_node(const pio_communicator *communicator, int *leader) {
  MPI_Comm node;
  int rank, error;
  if (pio.Comm_rank(communicator->comm, &rank) != MPI_SUCCESS) return PIO_COMMUNICATOR;
  error = pio.Comm_split_type(communicator->comm, MPI_COMM_TYPE_SHARED, rank, pio.info_null, &node);
  if (error != MPI_SUCCESS) return PIO_COMMUNICATOR;
  error = pio.Allreduce(&rank, leader, 1, pio.type_int, pio.min, node);
  pio.Comm_free(&node);
  return error == MPI_SUCCESS ? PIO_SUCCESS : PIO_COMMUNICATOR;
}

static int pio_send(const pio_communicator *communicator, int to, int tag, const void *bytes, uint64_t size,
                    pio_request *request) {
  MPI_Request started = pio.request_null;
  int error = MPI_ERR_COUNT;
  if (size <= INT_MAX) error = pio.Isend(bytes, (int)size, pio.byte, to, tag, communicator->comm, &started);
  return pio_started(error, started, request);
}

static int pio_test(pio_request *request, int *done) {
  MPI_Request started;
  int error;
  memcpy(&started, request, sizeof started);
  error = pio.Test(&started, done, MPI_STATUS_IGNORE);
  return pio_started(error, started, request);
}

static int pio_probe(const pio_communicator *communicator, int tag, int *found, int *from, uint64_t *size,
                     pio_message *message) {
  MPI_Message arrived;
  MPI_Status status;
  int count = 0;
  if (pio.Improbe(MPI_ANY_SOURCE, tag, communicator->comm, found, &arrived, &status) != MPI_SUCCESS)
    return PIO_INTERNAL;
  if (!*found) return PIO_SUCCESS;
  if (pio.Get_count(&status, pio.byte, &count) != MPI_SUCCESS) return PIO_INTERNAL;
  *from = status.MPI_SOURCE;
  *size = (uint64_t)count;
  *message = 0;
  memcpy(message, &arrived, sizeof arrived);
  return PIO_SUCCESS;
}

static int pio_receive(pio_message *message, void *bytes, uint64_t size) {
  MPI_Message arrived;
  memcpy(&arrived, message, sizeof arrived);
  int error = pio.Mrecv(bytes, (int)size, pio.byte, &arrived, MPI_STATUS_IGNORE);
  return error == MPI_SUCCESS ? PIO_SUCCESS : PIO_INTERNAL;
}

static int pio_broadcast(const pio_communicator *communicator, void *bytes, uint64_t size, int root,
                         pio_request *request) {
  MPI_Request started = pio.request_null;
  int error = pio.Ibcast(bytes, (int)size, pio.byte, root, communicator->comm, &started);
  return pio_started(error, started, request);
}

static int pio_barrier(const pio_communicator *communicator, pio_request *request) {
  MPI_Request started = pio.request_null;
  int error = pio.Ibarrier(communicator->comm, &started);
  return pio_started(error, started, request);
}

static int pio_gather(const pio_communicator *communicator, const void *mine, void *all, uint64_t size,
                      pio_request *request) {
  MPI_Request started = pio.request_null;
  int error = pio.Iallgather(mine, (int)size, pio.byte, all, (int)size, pio.byte, communicator->comm, &started);
  return pio_started(error, started, request);
}

static int pio_for_threads(void) {
  int provided = MPI_THREAD_SINGLE;
  return pio.Query_thread(&provided) == MPI_SUCCESS && provided == MPI_THREAD_MULTIPLE;
}

/* MPI forbids it, and MPICH refuses it. */
static int pio_parts_of_etypes(void) {
#ifdef OPEN_MPI
  return 1;
#else
  return 0;
#endif
}

PIO_HIDDEN const struct pio_mpi pio_table = {
    .duplicate = pio_duplicate,
    .release = pio_release,
    .size = pio_size,
    .node = pio_node,
    .send = pio_send,
    .test = pio_test,
    .probe = pio_probe,
    .receive = pio_receive,
    .broadcast = pio_broadcast,
    .barrier = pio_barrier,
    .gather = pio_gather,
    .for_threads = pio_for_threads,
    .parts_of_etypes = pio_parts_of_etypes,
    .complete = pio_operation_complete,
};
