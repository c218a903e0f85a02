/* Operations that go on by themselves. The request of such an operation is a generalized request of the MPI, which only a
 * call of the program completes: see pio_wait.c. */
#include "pio_shim.h"

struct pio_operation {
  struct pio_file *file;
  int how;
  struct pio_buffer buffer;
  MPI_Request request;
  /* The core and the request; some MPIs give up a request that the program frees before it is complete. */
  int references;
  int has_request, freed, complete, status;
  uint64_t moved;
};

int pio_attention;

static void pio_attend(int more) { __atomic_add_fetch(&pio_attention, more, __ATOMIC_ACQ_REL); }

static void pio_release_operation(struct pio_operation *operation) {
  if (__atomic_sub_fetch(&operation->references, 1, __ATOMIC_ACQ_REL) == 0) free(operation);
}

static int pio_query(void *state, MPI_Status *status) {
  struct pio_operation *operation = state;
  pio_set_status(status, operation->moved);
  status->MPI_SOURCE = MPI_UNDEFINED;
  status->MPI_TAG = MPI_UNDEFINED;
  status->MPI_ERROR = MPI_SUCCESS;
  if (operation->status == PIO_SUCCESS) return MPI_SUCCESS;
  return pio_failed(operation->request, operation->status, operation->file);
}

static int pio_free(void *state) {
  struct pio_operation *operation = state;
  if (operation->complete && operation->status != PIO_SUCCESS) pio_attend(-1);
  operation->freed = 1;
  pio_release_operation(operation);
  return MPI_SUCCESS;
}

/* What has begun cannot be taken back. */
static int pio_cancel(void *state, int complete) {
  (void)state, (void)complete;
  return MPI_SUCCESS;
}

/* An operation that cannot begin: the others' part of a collective one needs this rank's, which has no data. */
static int pio_operation_refused(struct pio_file *file, int how, MPI_Offset offset, int status) {
  if (!(how & PIO_COLLECTIVE)) return status;
  pio_attend(1);
  return pio_core->start(file->core, how, offset, NULL, status, NULL);
}

int pio_operation_begin(struct pio_file *file, int how, MPI_Offset offset, const void *buffer, MPI_Count count,
                        MPI_Datatype type, MPI_Request *request, struct pio_operation **begun) {
  struct pio_operation *operation = calloc(1, sizeof *operation);
  uint64_t none = 0;
  int status;
  if (operation == NULL) return pio_operation_refused(file, how, offset, PIO_NO_MEMORY);
  operation->file = file;
  operation->how = how;
  operation->references = request != NULL ? 2 : 1;
  status = pio_buffer_begin(file, how, buffer, count, type, &operation->buffer);
  if (status == PIO_SUCCESS) status = pio_buffer_keep(&operation->buffer);
  if (request != NULL) {
    if (pio.Grequest_start(pio_query, pio_free, pio_cancel, operation, request) != MPI_SUCCESS) {
      pio_buffer_end(&operation->buffer, how, status, &none);
      free(operation);
      return pio_operation_refused(file, how, offset, PIO_INTERNAL);
    }
    operation->request = *request;
    operation->has_request = 1;
  }
  pio_attend(1);
  status = pio_core->start(file->core, how, offset, &operation->buffer.memory, status, operation);
  if (status == PIO_SUCCESS) {
    *begun = operation;
    return PIO_SUCCESS;
  }
  /* As in pio_operation_refused: pio_operation_complete hears of the end of this rank's part. */
  if (!(how & PIO_COLLECTIVE)) pio_attend(-1);
  pio_buffer_end(&operation->buffer, how, status, &none);
  if (request == NULL) {
    free(operation);
  } else {
    pio.Grequest_complete(operation->request);
    pio.Request_free(request);
    *request = pio.request_null;
    pio_release_operation(operation);
  }
  return status;
}

void pio_operation_complete(void *token, int status, uint64_t moved) {
  struct pio_operation *operation = token;
  if (operation == NULL) {
    pio_attend(-1);
    return;
  }
  MPI_Request request = operation->request;
  int has_request = operation->has_request;
  status = pio_buffer_end(&operation->buffer, operation->how, status, &moved);
  operation->status = status;
  operation->moved = moved;
  if (status == PIO_SUCCESS || !has_request || operation->freed) pio_attend(-1);
  __atomic_store_n(&operation->complete, 1, __ATOMIC_RELEASE);
  /* Without a request, who waits for it may free it now. */
  if (!has_request) return;
  pio.Grequest_complete(request);
  pio_release_operation(operation);
}

int pio_operation_end(struct pio_operation *operation, uint64_t *moved) {
  uint64_t since_ns = 0;
  int status;
  while (!__atomic_load_n(&operation->complete, __ATOMIC_ACQUIRE)) pio_core->relax(&since_ns);
  *moved = operation->moved;
  status = operation->status;
  free(operation);
  return status;
}
