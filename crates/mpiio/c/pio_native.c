/* The program's own MPI: finding it, and what the core needs of it. */
#define _GNU_SOURCE
#include "pio_native.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pio_other_mpi.h"

PIO_HIDDEN struct pio_native pio;

__attribute__((constructor)) static void pio_begin(int count, char **arguments) {
  (void)count;
  pio_leave_other_mpi(arguments, "carried out by Pioscope");
}

static pthread_mutex_t pio_find_lock = PTHREAD_MUTEX_INITIALIZER;
static int pio_found;
static void *pio_caller_library;

static void pio_remember(void *caller) {
  Dl_info info;
  if (pio_caller_library == NULL && caller != NULL && dladdr(caller, &info) && info.dli_fname != NULL)
    pio_caller_library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

static void *pio_symbol(const char *name) {
  void *symbol = dlsym(RTLD_NEXT, name);
  /* A program may load its MPI privately, as Python does: then only the caller's own libraries know it. */
  if (symbol == NULL && pio_caller_library != NULL) symbol = dlsym(pio_caller_library, name);
  return symbol;
}

static void *pio_needed(const char *name, void *symbol) {
  if (symbol == NULL) {
    fprintf(stderr, "pioscope: this program's MPI has no %s: cannot carry out its MPI-IO\n", name);
    abort();
  }
  return symbol;
}

static void *pio_need(const char *name) { return pio_needed(name, pio_symbol(name)); }

#ifdef OPEN_MPI
/* A program that refers to data of a library has its own copy, which the library uses, too: it must be that. */
static void *pio_need_data(const char *name) {
  void *symbol = dlsym(RTLD_DEFAULT, name);
  return symbol != NULL ? symbol : pio_need(name);
}

#define PIO_PREDEFINED(type, constant, name) ((type)pio_need_data(name))
#else
#define PIO_PREDEFINED(type, constant, name) (constant)
#endif

#define PIO_TEXT(name) #name
#define PIO_NAME(name) "PMPI_" PIO_TEXT(name)
#define PIO_LOOK_UP(name) pio.name = (__typeof__(pio.name))pio_need(PIO_NAME(name));

void pio_find_mpi(void *caller) {
  if (__atomic_load_n(&pio_found, __ATOMIC_ACQUIRE)) return;
  pthread_mutex_lock(&pio_find_lock);
  if (!pio_found) {
    pio_remember(caller);
    PIO_FUNCTIONS(PIO_LOOK_UP)
    pio.comm_null = PIO_PREDEFINED(MPI_Comm, MPI_COMM_NULL, "ompi_mpi_comm_null");
    pio.comm_self = PIO_PREDEFINED(MPI_Comm, MPI_COMM_SELF, "ompi_mpi_comm_self");
    pio.comm_world = PIO_PREDEFINED(MPI_Comm, MPI_COMM_WORLD, "ompi_mpi_comm_world");
    pio.byte = PIO_PREDEFINED(MPI_Datatype, MPI_BYTE, "ompi_mpi_byte");
    pio.type_int = PIO_PREDEFINED(MPI_Datatype, MPI_INT, "ompi_mpi_int");
    pio.datatype_null = PIO_PREDEFINED(MPI_Datatype, MPI_DATATYPE_NULL, "ompi_mpi_datatype_null");
    pio.errhandler_null = PIO_PREDEFINED(MPI_Errhandler, MPI_ERRHANDLER_NULL, "ompi_mpi_errhandler_null");
    pio.errors_are_fatal = PIO_PREDEFINED(MPI_Errhandler, MPI_ERRORS_ARE_FATAL, "ompi_mpi_errors_are_fatal");
    pio.errors_return = PIO_PREDEFINED(MPI_Errhandler, MPI_ERRORS_RETURN, "ompi_mpi_errors_return");
#ifdef MPI_ERRORS_ABORT
    pio.errors_abort = PIO_PREDEFINED(MPI_Errhandler, MPI_ERRORS_ABORT, "ompi_mpi_errors_abort");
#else
    pio.errors_abort = pio.errors_are_fatal;
#endif
    pio.file_null = PIO_PREDEFINED(MPI_File, MPI_FILE_NULL, "ompi_mpi_file_null");
    pio.info_null = PIO_PREDEFINED(MPI_Info, MPI_INFO_NULL, "ompi_mpi_info_null");
    pio.min = PIO_PREDEFINED(MPI_Op, MPI_MIN, "ompi_mpi_op_min");
    pio.request_null = PIO_PREDEFINED(MPI_Request, MPI_REQUEST_NULL, "ompi_request_null");
    __atomic_store_n(&pio_found, 1, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&pio_find_lock);
}

void *pio_next(const char *name, void *caller) {
  void *symbol;
  pthread_mutex_lock(&pio_find_lock);
  pio_remember(caller);
  symbol = pio_symbol(name);
  pthread_mutex_unlock(&pio_find_lock);
  if (symbol == NULL) {
    fprintf(stderr, "pioscope: this program's MPI has no %s\n", name);
    abort();
  }
  return symbol;
}

/* --- What the core needs ------------------------------------------------------------------------------------------ */

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
    .complete = pio_operation_complete,
};
