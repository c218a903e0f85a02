/* The program's calls that wait: these carry on with operations that go on by themselves.
 *
 * Nobody completes the request of such an operation while the MPI itself waits. So the program's calls that wait for
 * requests or messages come here: with nothing under way they go straight on to the MPI, else they look again and again,
 * and carry on with what is under way in between.
 *
 * Collective calls of the program cannot be split like that: one that is blocking here would not match one that is not
 * elsewhere. A rank inside one of them does not carry on.
 */
#include "pio_shim.h"

#include <limits.h>

/* Operations that failed, found by the MPI's last look in this thread. The MPI must not see errors: it would call the
 * error handler of a communicator. */
struct pio_failure {
  MPI_Request request;
  int status;
  struct pio_file *file;
};
static __thread struct pio_failure *pio_failures;
static __thread int pio_failure_count;

int pio_failed(MPI_Request request, int status, struct pio_file *file) {
  size_t more = (size_t)pio_failure_count + 1;
  /* Some MPIs ask several times. */
  for (int i = 0; i < pio_failure_count; i++)
    if (pio_failures[i].request == request) return MPI_SUCCESS;
  struct pio_failure *failures = realloc(pio_failures, more * sizeof *failures);
  if (failures == NULL) return MPI_ERR_NO_MEM;
  pio_failures = failures;
  failures[pio_failure_count++] = (struct pio_failure){request, status, file};
  return MPI_SUCCESS;
}

static int pio_is_idle(void) { return __atomic_load_n(&pio_attention, __ATOMIC_ACQUIRE) == 0; }

/* --- The program waits --------------------------------------------------------------------------------------------- */

static void pio_forget_failures(void) {
  free(pio_failures);
  pio_failures = NULL;
  pio_failure_count = 0;
}

/* Tells the error handlers of what failed. Returns the first error, else `code`. */
static int pio_checked(const char *function, int code) {
  for (int i = 0; i < pio_failure_count; i++) {
    const struct pio_failure *failure = &pio_failures[i];
    int failed = pio_raise(pio_own((MPI_File)(void *)failure->file), function, pio_code(failure->status));
    if (code == MPI_SUCCESS) code = failed;
  }
  pio_forget_failures();
  return code;
}

/* The requests of a call that completes several: the MPI overwrites those that are complete. */
static MPI_Request *pio_saved(int count, const MPI_Request requests[], MPI_Status *statuses) {
  size_t bytes = (size_t)(count > 0 ? count : 0) * sizeof *requests;
  MPI_Request *saved = malloc(bytes + 1);
  if (saved != NULL) memcpy(saved, requests, bytes);
  /* The MPI sets the errors of statuses only if it found one itself. */
  if (statuses != MPI_STATUSES_IGNORE)
    for (int i = 0; i < count; i++) statuses[i].MPI_ERROR = MPI_SUCCESS;
  return saved;
}

/* Whether the MPI's code says that the statuses tell what failed. */
static int pio_is_in_status(int code) {
  int class = MPI_SUCCESS;
  return code != MPI_SUCCESS && pio.Error_class(code, &class) == MPI_SUCCESS && class == MPI_ERR_IN_STATUS;
}

/* The same for such calls, which say in the statuses what failed: beside ours other requests may have. `indices`, if there
 * are, tell which requests the `count` statuses are of. */
static int pio_checked_all(const char *function, int code, MPI_Request *saved, int count, const int indices[],
                           MPI_Status *statuses) {
  int failed = pio_failure_count > 0, others_failed = pio_is_in_status(code);
  int has_statuses = saved != NULL && statuses != MPI_STATUSES_IGNORE && (code == MPI_SUCCESS || others_failed);
  for (int i = 0; failed && has_statuses && i < count; i++) {
    if (!others_failed) statuses[i].MPI_ERROR = MPI_SUCCESS;
    for (int k = 0; k < pio_failure_count; k++)
      if (saved[indices != NULL ? indices[i] : i] == pio_failures[k].request)
        statuses[i].MPI_ERROR = pio_code(pio_failures[k].status);
  }
  free(saved);
  pio_checked(function, code);
  return code == MPI_SUCCESS && failed ? MPI_ERR_IN_STATUS : code;
}

#define PIO_FORWARD(name)                                                                            \
  ({                                                                                                 \
    static __typeof__(&name) next_;                                                                  \
    if (next_ == NULL) next_ = (__typeof__(&name))pio_next(#name, PIO_CALLER);                        \
    next_;                                                                                           \
  })
/* Goes on to the MPI if nothing is under way. */
#define PIO_UNLESS_BUSY(name, ...) \
  if (pio_is_idle()) return PIO_FORWARD(name)(__VA_ARGS__)
/* Looks until there is an error, or `found`. */
#define PIO_LOOK(look, found)                                                     \
  do {                                                                            \
    uint64_t since_ns_ = 0;                                                       \
    while ((code = look) == MPI_SUCCESS && !(found)) pio_core->relax(&since_ns_); \
  } while (0)

static int pio_wait(MPI_Request *request, MPI_Status *status) {
  int code, flag = 0;
  PIO_LOOK(pio.Test(request, &flag, status), flag);
  return code;
}

#define PIO_WAIT(name)                                                  \
  int name(MPI_Request *request, MPI_Status *status) {                  \
    PIO_UNLESS_BUSY(name, request, status);                             \
    return pio_checked("MPI_Wait", pio_wait(request, status));       \
  }
PIO_WAIT(MPI_Wait)
PIO_WAIT(PMPI_Wait)

#define PIO_WAITALL(name)                                                             \
  int name(int count, MPI_Request requests[], MPI_Status *statuses) {                 \
    int code, flag = 0;                                                               \
    PIO_UNLESS_BUSY(name, count, requests, statuses);                                 \
    MPI_Request *saved = pio_saved(count, requests, statuses);                        \
    PIO_LOOK(pio.Testall(count, requests, &flag, statuses), flag);                    \
    return pio_checked_all("MPI_Waitall", code, saved, count, NULL, statuses);        \
  }
PIO_WAITALL(MPI_Waitall)
PIO_WAITALL(PMPI_Waitall)

#define PIO_WAITANY(name)                                                             \
  int name(int count, MPI_Request requests[], int *index, MPI_Status *status) {       \
    int code, flag = 0;                                                               \
    PIO_UNLESS_BUSY(name, count, requests, index, status);                            \
    PIO_LOOK(pio.Testany(count, requests, index, &flag, status), flag);               \
    return pio_checked("MPI_Waitany", code);                                          \
  }
PIO_WAITANY(MPI_Waitany)
PIO_WAITANY(PMPI_Waitany)

#define PIO_WAITSOME(name)                                                                          \
  int name(int count, MPI_Request requests[], int *found, int indices[], MPI_Status *statuses) {    \
    int code;                                                                                       \
    PIO_UNLESS_BUSY(name, count, requests, found, indices, statuses);                               \
    MPI_Request *saved = pio_saved(count, requests, statuses);                                      \
    PIO_LOOK(pio.Testsome(count, requests, found, indices, statuses), *found != 0);                 \
    return pio_checked_all("MPI_Waitsome", code, saved, *found, indices, statuses);                 \
  }
PIO_WAITSOME(MPI_Waitsome)
PIO_WAITSOME(PMPI_Waitsome)

/* --- The program looks --------------------------------------------------------------------------------------------- */

#define PIO_LOOKED(name, ...)                                                      \
  PIO_UNLESS_BUSY(name, __VA_ARGS__);                                              \
  pio_core->progress();                                                            \
  return pio_checked(#name, PIO_FORWARD(name)(__VA_ARGS__))

#define PIO_TEST(name)                                                             \
  int name(MPI_Request *request, int *flag, MPI_Status *status) {                  \
    PIO_LOOKED(name, request, flag, status);                                       \
  }
PIO_TEST(MPI_Test)
PIO_TEST(PMPI_Test)

#define PIO_GET_STATUS(name)                                                       \
  int name(MPI_Request request, int *flag, MPI_Status *status) {                   \
    PIO_LOOKED(name, request, flag, status);                                       \
  }
PIO_GET_STATUS(MPI_Request_get_status)
PIO_GET_STATUS(PMPI_Request_get_status)

#if PIO_STATUS_OF_SEVERAL
#define PIO_GET_STATUS_ANY(name)                                                                        \
  int name(int count, const MPI_Request requests[], int *index, int *flag, MPI_Status *status) {        \
    PIO_LOOKED(name, count, requests, index, flag, status);                                             \
  }
PIO_GET_STATUS_ANY(MPI_Request_get_status_any)
PIO_GET_STATUS_ANY(PMPI_Request_get_status_any)

#endif

#define PIO_TESTANY(name)                                                                       \
  int name(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status) {      \
    PIO_LOOKED(name, count, requests, index, flag, status);                                     \
  }
PIO_TESTANY(MPI_Testany)
PIO_TESTANY(PMPI_Testany)

#define PIO_LOOKED_AT_ALL(name, constant)                                                      \
  int name(int count, constant MPI_Request requests[], int *flag, MPI_Status *statuses) {      \
    int code;                                                                                  \
    PIO_UNLESS_BUSY(name, count, requests, flag, statuses);                                    \
    MPI_Request *saved = pio_saved(count, requests, statuses);                                 \
    pio_core->progress();                                                                      \
    code = PIO_FORWARD(name)(count, requests, flag, statuses);                                 \
    if (code == MPI_SUCCESS && !*flag) pio_forget_failures();                                  \
    return pio_checked_all(#name, code, saved, count, NULL, statuses);                         \
  }
PIO_LOOKED_AT_ALL(MPI_Testall, )
PIO_LOOKED_AT_ALL(PMPI_Testall, )

#define PIO_LOOKED_AT_SOME(name, constant)                                                                 \
  int name(int count, constant MPI_Request requests[], int *found, int indices[], MPI_Status *statuses) {  \
    int code;                                                                                              \
    PIO_UNLESS_BUSY(name, count, requests, found, indices, statuses);                                      \
    MPI_Request *saved = pio_saved(count, requests, statuses);                                             \
    pio_core->progress();                                                                                  \
    code = PIO_FORWARD(name)(count, requests, found, indices, statuses);                                   \
    return pio_checked_all(#name, code, saved, *found, indices, statuses);                                 \
  }
PIO_LOOKED_AT_SOME(MPI_Testsome, )
PIO_LOOKED_AT_SOME(PMPI_Testsome, )

#if PIO_STATUS_OF_SEVERAL
PIO_LOOKED_AT_ALL(MPI_Request_get_status_all, const)
PIO_LOOKED_AT_ALL(PMPI_Request_get_status_all, const)
PIO_LOOKED_AT_SOME(MPI_Request_get_status_some, const)
PIO_LOOKED_AT_SOME(PMPI_Request_get_status_some, const)
#endif

#define PIO_IPROBES(name)                                                          \
  int name(int from, int tag, MPI_Comm comm, int *flag, MPI_Status *status) {      \
    PIO_LOOKED(name, from, tag, comm, flag, status);                               \
  }
PIO_IPROBES(MPI_Iprobe)
PIO_IPROBES(PMPI_Iprobe)

#define PIO_IMATCHES(name)                                                                           \
  int name(int from, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status) {  \
    PIO_LOOKED(name, from, tag, comm, flag, message, status);                                        \
  }
PIO_IMATCHES(MPI_Improbe)
PIO_IMATCHES(PMPI_Improbe)

/* --- The program sends and receives -------------------------------------------------------------------------------- */

/* Those of large counts are looked up when they are called: few programs do. */
#define PIO_SENDS(name, nonblocking, pio_count)                                                      \
  int name(const void *buffer, pio_count count, MPI_Datatype type, int to, int tag, MPI_Comm comm) { \
    MPI_Request request;                                                                             \
    PIO_UNLESS_BUSY(name, buffer, count, type, to, tag, comm);                                       \
    int code = nonblocking(buffer, count, type, to, tag, comm, &request);                            \
    return code == MPI_SUCCESS ? pio_wait(&request, MPI_STATUS_IGNORE) : code;                       \
  }
PIO_SENDS(MPI_Send, pio.Isend, int)
PIO_SENDS(PMPI_Send, pio.Isend, int)
PIO_SENDS(MPI_Ssend, pio.Issend, int)
PIO_SENDS(PMPI_Ssend, pio.Issend, int)
PIO_SENDS(MPI_Rsend, pio.Irsend, int)
PIO_SENDS(PMPI_Rsend, pio.Irsend, int)
#if PIO_LARGE_COUNT
PIO_SENDS(MPI_Send_c, PIO_NATIVE(MPI_Isend_c), MPI_Count)
PIO_SENDS(PMPI_Send_c, PIO_NATIVE(MPI_Isend_c), MPI_Count)
PIO_SENDS(MPI_Ssend_c, PIO_NATIVE(MPI_Issend_c), MPI_Count)
PIO_SENDS(PMPI_Ssend_c, PIO_NATIVE(MPI_Issend_c), MPI_Count)
PIO_SENDS(MPI_Rsend_c, PIO_NATIVE(MPI_Irsend_c), MPI_Count)
PIO_SENDS(PMPI_Rsend_c, PIO_NATIVE(MPI_Irsend_c), MPI_Count)
#endif

#define PIO_RECEIVES(name, nonblocking, pio_count)                                                \
  int name(void *buffer, pio_count count, MPI_Datatype type, int from, int tag, MPI_Comm comm,    \
           MPI_Status *status) {                                                                  \
    MPI_Request request;                                                                          \
    PIO_UNLESS_BUSY(name, buffer, count, type, from, tag, comm, status);                          \
    int code = nonblocking(buffer, count, type, from, tag, comm, &request);                       \
    return code == MPI_SUCCESS ? pio_wait(&request, status) : code;                               \
  }
PIO_RECEIVES(MPI_Recv, pio.Irecv, int)
PIO_RECEIVES(PMPI_Recv, pio.Irecv, int)
#if PIO_LARGE_COUNT
PIO_RECEIVES(MPI_Recv_c, PIO_NATIVE(MPI_Irecv_c), MPI_Count)
PIO_RECEIVES(PMPI_Recv_c, PIO_NATIVE(MPI_Irecv_c), MPI_Count)
#endif

#define PIO_EXCHANGES(name, receive, send, pio_count)                                                       \
  int name(const void *sent, pio_count sends, MPI_Datatype sent_type, int to, int sent_tag, void *received, \
           pio_count receives, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status) {   \
    MPI_Request receiving, sending;                                                                         \
    PIO_UNLESS_BUSY(name, sent, sends, sent_type, to, sent_tag, received, receives, type, from, tag,        \
                    comm, status);                                                                          \
    int code = receive(received, receives, type, from, tag, comm, &receiving);                              \
    if (code == MPI_SUCCESS) code = send(sent, sends, sent_type, to, sent_tag, comm, &sending);             \
    if (code == MPI_SUCCESS) code = pio_wait(&sending, MPI_STATUS_IGNORE);                                  \
    return code == MPI_SUCCESS ? pio_wait(&receiving, status) : code;                                       \
  }
PIO_EXCHANGES(MPI_Sendrecv, pio.Irecv, pio.Isend, int)
PIO_EXCHANGES(PMPI_Sendrecv, pio.Irecv, pio.Isend, int)
#if PIO_LARGE_COUNT
PIO_EXCHANGES(MPI_Sendrecv_c, PIO_NATIVE(MPI_Irecv_c), PIO_NATIVE(MPI_Isend_c), MPI_Count)
PIO_EXCHANGES(PMPI_Sendrecv_c, PIO_NATIVE(MPI_Irecv_c), PIO_NATIVE(MPI_Isend_c), MPI_Count)
#endif

/* Whether so many of a datatype may be packed into `most` bytes: what MPI counts in an int says no more of it. */
static int pio_packs(MPI_Count count, MPI_Datatype type, MPI_Count most) {
  MPI_Count size = 0;
  return count <= 0 || pio.Type_size_x(type, &size) != MPI_SUCCESS || size <= most / count;
}

/* What is sent is packed first: what is received takes its place. Without memory for that, it is the MPI's to say so. */
#define PIO_REPLACES(name, receive, send, pack_size, pack, pio_count, most)                                 \
  int name(void *buffer, pio_count count, MPI_Datatype type, int to, int sent_tag, int from, int tag,       \
           MPI_Comm comm, MPI_Status *status) {                                                             \
    MPI_Request receiving, sending;                                                                         \
    pio_count bytes = 0, packed = 0;                                                                        \
    void *copy;                                                                                             \
    PIO_UNLESS_BUSY(name, buffer, count, type, to, sent_tag, from, tag, comm, status);                      \
    /* It may take some more bytes packed. */                                                               \
    if (!pio_packs(count, type, (most) - 65536))                                                            \
      return PIO_FORWARD(name)(buffer, count, type, to, sent_tag, from, tag, comm, status);                 \
    int code = pack_size(count, type, comm, &bytes);                                                        \
    if (code != MPI_SUCCESS) return code;                                                                   \
    copy = malloc((size_t)bytes + 1);                                                                       \
    if (copy == NULL) return PIO_FORWARD(name)(buffer, count, type, to, sent_tag, from, tag, comm, status); \
    code = pack(buffer, count, type, copy, bytes, &packed, comm);                                           \
    if (code == MPI_SUCCESS) code = receive(buffer, count, type, from, tag, comm, &receiving);              \
    if (code == MPI_SUCCESS) code = send(copy, packed, pio.packed, to, sent_tag, comm, &sending);           \
    if (code == MPI_SUCCESS) code = pio_wait(&sending, MPI_STATUS_IGNORE);                                  \
    free(copy);                                                                                             \
    return code == MPI_SUCCESS ? pio_wait(&receiving, status) : code;                                       \
  }
PIO_REPLACES(MPI_Sendrecv_replace, pio.Irecv, pio.Isend, PIO_NATIVE(MPI_Pack_size), pio.Pack, int,
             INT_MAX)
PIO_REPLACES(PMPI_Sendrecv_replace, pio.Irecv, pio.Isend, PIO_NATIVE(MPI_Pack_size), pio.Pack, int,
             INT_MAX)
#if PIO_LARGE_COUNT
PIO_REPLACES(MPI_Sendrecv_replace_c, PIO_NATIVE(MPI_Irecv_c), PIO_NATIVE(MPI_Isend_c), PIO_NATIVE(MPI_Pack_size_c),
             PIO_NATIVE(MPI_Pack_c), MPI_Count, INT64_MAX)
PIO_REPLACES(PMPI_Sendrecv_replace_c, PIO_NATIVE(MPI_Irecv_c), PIO_NATIVE(MPI_Isend_c), PIO_NATIVE(MPI_Pack_size_c),
             PIO_NATIVE(MPI_Pack_c), MPI_Count, INT64_MAX)
#endif

#define PIO_PROBES(name)                                                          \
  int name(int from, int tag, MPI_Comm comm, MPI_Status *status) {                \
    int code, flag = 0;                                                           \
    PIO_UNLESS_BUSY(name, from, tag, comm, status);                               \
    PIO_LOOK(pio.Iprobe(from, tag, comm, &flag, status), flag);                   \
    return code;                                                                  \
  }
PIO_PROBES(MPI_Probe)
PIO_PROBES(PMPI_Probe)

#define PIO_MATCHES(name)                                                                         \
  int name(int from, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status) {          \
    int code, flag = 0;                                                                           \
    PIO_UNLESS_BUSY(name, from, tag, comm, message, status);                                      \
    PIO_LOOK(pio.Improbe(from, tag, comm, &flag, message, status), flag);                         \
    return code;                                                                                  \
  }
PIO_MATCHES(MPI_Mprobe)
PIO_MATCHES(PMPI_Mprobe)
