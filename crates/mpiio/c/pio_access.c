/* MPI-IO under an unmodified MPI program: reading and writing.
 *
 * Every function says how (which direction, whose file pointer, alone or all ranks) and where; the core does the rest.
 */
#include "pio_shim.h"

void pio_set_status(MPI_Status *status, uint64_t moved) {
  if (status == MPI_STATUS_IGNORE) return;
  pio.PIO_STATUS_SET_ELEMENTS(status, pio.byte, (MPI_Count)moved);
  pio.Status_set_cancelled(status, 0);
}

static int pio_transfer(struct pio_file *file, const char *function, int how, MPI_Offset offset, const void *buffer,
                        MPI_Count count, MPI_Datatype type, uint64_t *moved) {
  struct pio_buffer memory;
  int status = pio_buffer_begin(file, how, buffer, count, type, &memory);
  *moved = 0;
  status = pio_core->transfer(file->core, how, offset, &memory.memory, status, moved);
  status = pio_buffer_end(&memory, how, status, moved);
  return pio_raise(file, function, pio_code(status));
}

/* --- Blocking ------------------------------------------------------------------------------------------------------ */

static int pio_blocking(struct pio_file *file, const char *function, int how, MPI_Offset offset, const void *buffer,
                        MPI_Count count, MPI_Datatype type, MPI_Status *status) {
  uint64_t moved;
  int code;
  /* Collective operations and a split one exclude each other. */
  if (how & PIO_COLLECTIVE && file->split != NULL) return pio_raise(file, function, MPI_ERR_REQUEST);
  code = pio_transfer(file, function, how, offset, buffer, count, type, &moved);
  pio_set_status(status, moved);
  return code;
}

#define PIO_BLOCKING(name, constant, integer, how)                                                           \
  int name(MPI_File fh, constant void *buf, integer count, MPI_Datatype datatype, MPI_Status *status) {      \
    PIO_OWN_OR_FORWARD(name, fh, fh, buf, count, datatype, status);                                          \
    return pio_blocking(file, #name, how, 0, buf, count, datatype, status);                                  \
  }                                                                                                          \
  PIO_PROFILING(name)
#define PIO_BLOCKING_AT(name, constant, integer, how)                                                        \
  int name(MPI_File fh, MPI_Offset offset, constant void *buf, integer count, MPI_Datatype datatype,         \
           MPI_Status *status) {                                                                             \
    PIO_OWN_OR_FORWARD(name, fh, fh, offset, buf, count, datatype, status);                                  \
    return pio_blocking(file, #name, (how) | PIO_EXPLICIT_OFFSET, offset, buf, count, datatype, status);     \
  }                                                                                                          \
  PIO_PROFILING(name)

PIO_BLOCKING(MPI_File_read, , int, 0)
PIO_BLOCKING(MPI_File_read_all, , int, PIO_COLLECTIVE)
PIO_BLOCKING(MPI_File_read_shared, , int, PIO_SHARED)
PIO_BLOCKING(MPI_File_read_ordered, , int, PIO_SHARED | PIO_COLLECTIVE)
PIO_BLOCKING_AT(MPI_File_read_at, , int, 0)
PIO_BLOCKING_AT(MPI_File_read_at_all, , int, PIO_COLLECTIVE)
PIO_BLOCKING(MPI_File_write, const, int, PIO_WRITE)
PIO_BLOCKING(MPI_File_write_all, const, int, PIO_WRITE | PIO_COLLECTIVE)
PIO_BLOCKING(MPI_File_write_shared, const, int, PIO_WRITE | PIO_SHARED)
PIO_BLOCKING(MPI_File_write_ordered, const, int, PIO_WRITE | PIO_SHARED | PIO_COLLECTIVE)
PIO_BLOCKING_AT(MPI_File_write_at, const, int, PIO_WRITE)
PIO_BLOCKING_AT(MPI_File_write_at_all, const, int, PIO_WRITE | PIO_COLLECTIVE)
#if PIO_LARGE_COUNT
PIO_BLOCKING(MPI_File_read_c, , MPI_Count, 0)
PIO_BLOCKING(MPI_File_read_all_c, , MPI_Count, PIO_COLLECTIVE)
PIO_BLOCKING(MPI_File_read_shared_c, , MPI_Count, PIO_SHARED)
PIO_BLOCKING(MPI_File_read_ordered_c, , MPI_Count, PIO_SHARED | PIO_COLLECTIVE)
PIO_BLOCKING_AT(MPI_File_read_at_c, , MPI_Count, 0)
PIO_BLOCKING_AT(MPI_File_read_at_all_c, , MPI_Count, PIO_COLLECTIVE)
PIO_BLOCKING(MPI_File_write_c, const, MPI_Count, PIO_WRITE)
PIO_BLOCKING(MPI_File_write_all_c, const, MPI_Count, PIO_WRITE | PIO_COLLECTIVE)
PIO_BLOCKING(MPI_File_write_shared_c, const, MPI_Count, PIO_WRITE | PIO_SHARED)
PIO_BLOCKING(MPI_File_write_ordered_c, const, MPI_Count, PIO_WRITE | PIO_SHARED | PIO_COLLECTIVE)
PIO_BLOCKING_AT(MPI_File_write_at_c, const, MPI_Count, PIO_WRITE)
PIO_BLOCKING_AT(MPI_File_write_at_all_c, const, MPI_Count, PIO_WRITE | PIO_COLLECTIVE)
#endif

/* --- Split collective ---------------------------------------------------------------------------------------------- */

static int pio_begin(struct pio_file *file, const char *function, const char *kind, int how, MPI_Offset offset,
                     const void *buffer, MPI_Count count, MPI_Datatype type) {
  if (file->split != NULL) return pio_raise(file, function, MPI_ERR_REQUEST);
  int status =
      pio_operation_begin(file, how | PIO_COLLECTIVE, offset, buffer, count, type, NULL, &file->split);
  if (status == PIO_SUCCESS) file->split_kind = kind;
  return pio_raise(file, function, pio_code(status));
}

static int pio_end(struct pio_file *file, const char *function, const char *kind, MPI_Status *status) {
  uint64_t moved;
  if (file->split == NULL || strcmp(file->split_kind, kind) != 0) return pio_raise(file, function, MPI_ERR_REQUEST);
  int outcome = pio_operation_end(file->split, &moved);
  file->split = NULL;
  pio_set_status(status, moved);
  return pio_raise(file, function, pio_code(outcome));
}

#define PIO_BEGIN(name, kind, constant, integer, how)                                                        \
  int name(MPI_File fh, constant void *buf, integer count, MPI_Datatype datatype) {                          \
    PIO_OWN_OR_FORWARD(name, fh, fh, buf, count, datatype);                                                  \
    return pio_begin(file, #name, kind, how, 0, buf, count, datatype);                                       \
  }                                                                                                          \
  PIO_PROFILING(name)
#define PIO_BEGIN_AT(name, kind, constant, integer, how)                                                     \
  int name(MPI_File fh, MPI_Offset offset, constant void *buf, integer count, MPI_Datatype datatype) {       \
    PIO_OWN_OR_FORWARD(name, fh, fh, offset, buf, count, datatype);                                          \
    return pio_begin(file, #name, kind, (how) | PIO_EXPLICIT_OFFSET, offset, buf, count, datatype);          \
  }                                                                                                          \
  PIO_PROFILING(name)
#define PIO_END(name, kind, constant)                                                                        \
  int name(MPI_File fh, constant void *buf, MPI_Status *status) {                                            \
    PIO_OWN_OR_FORWARD(name, fh, fh, buf, status);                                                           \
    return pio_end(file, #name, kind, status);                                                               \
  }                                                                                                          \
  PIO_PROFILING(name)

PIO_BEGIN(MPI_File_read_all_begin, "read_all", , int, 0)
PIO_BEGIN(MPI_File_read_ordered_begin, "read_ordered", , int, PIO_SHARED)
PIO_BEGIN_AT(MPI_File_read_at_all_begin, "read_at_all", , int, 0)
PIO_END(MPI_File_read_all_end, "read_all", )
PIO_END(MPI_File_read_ordered_end, "read_ordered", )
PIO_END(MPI_File_read_at_all_end, "read_at_all", )
PIO_BEGIN(MPI_File_write_all_begin, "write_all", const, int, PIO_WRITE)
PIO_BEGIN(MPI_File_write_ordered_begin, "write_ordered", const, int, PIO_WRITE | PIO_SHARED)
PIO_BEGIN_AT(MPI_File_write_at_all_begin, "write_at_all", const, int, PIO_WRITE)
PIO_END(MPI_File_write_all_end, "write_all", const)
PIO_END(MPI_File_write_ordered_end, "write_ordered", const)
PIO_END(MPI_File_write_at_all_end, "write_at_all", const)
#if PIO_LARGE_COUNT
PIO_BEGIN(MPI_File_read_all_begin_c, "read_all", , MPI_Count, 0)
PIO_BEGIN(MPI_File_read_ordered_begin_c, "read_ordered", , MPI_Count, PIO_SHARED)
PIO_BEGIN_AT(MPI_File_read_at_all_begin_c, "read_at_all", , MPI_Count, 0)
PIO_BEGIN(MPI_File_write_all_begin_c, "write_all", const, MPI_Count, PIO_WRITE)
PIO_BEGIN(MPI_File_write_ordered_begin_c, "write_ordered", const, MPI_Count, PIO_WRITE | PIO_SHARED)
PIO_BEGIN_AT(MPI_File_write_at_all_begin_c, "write_at_all", const, MPI_Count, PIO_WRITE)
#endif

/* --- Nonblocking --------------------------------------------------------------------------------------------------- */

static int pio_nonblocking(struct pio_file *file, const char *function, int how, MPI_Offset offset,
                           const void *buffer, MPI_Count count, MPI_Datatype type, MPI_Request *request) {
  struct pio_operation *operation;
  *request = pio.request_null;
  if (how & PIO_COLLECTIVE && file->split != NULL) return pio_raise(file, function, MPI_ERR_REQUEST);
  int status = pio_operation_begin(file, how, offset, buffer, count, type, request, &operation);
  return pio_raise(file, function, pio_code(status));
}

#define PIO_NONBLOCKING(name, constant, integer, how)                                                        \
  int name(MPI_File fh, constant void *buf, integer count, MPI_Datatype datatype, MPI_Request *request) {    \
    PIO_OWN_OR_FORWARD(name, fh, fh, buf, count, datatype, request);                                         \
    return pio_nonblocking(file, #name, how, 0, buf, count, datatype, request);                              \
  }                                                                                                          \
  PIO_PROFILING(name)
#define PIO_NONBLOCKING_AT(name, constant, integer, how)                                                     \
  int name(MPI_File fh, MPI_Offset offset, constant void *buf, integer count, MPI_Datatype datatype,         \
           MPI_Request *request) {                                                                           \
    PIO_OWN_OR_FORWARD(name, fh, fh, offset, buf, count, datatype, request);                                 \
    return pio_nonblocking(file, #name, (how) | PIO_EXPLICIT_OFFSET, offset, buf, count, datatype, request); \
  }                                                                                                          \
  PIO_PROFILING(name)

PIO_NONBLOCKING(MPI_File_iread, , int, 0)
PIO_NONBLOCKING(MPI_File_iread_shared, , int, PIO_SHARED)
PIO_NONBLOCKING_AT(MPI_File_iread_at, , int, 0)
PIO_NONBLOCKING(MPI_File_iwrite, const, int, PIO_WRITE)
PIO_NONBLOCKING(MPI_File_iwrite_shared, const, int, PIO_WRITE | PIO_SHARED)
PIO_NONBLOCKING_AT(MPI_File_iwrite_at, const, int, PIO_WRITE)
#if MPI_VERSION > 3 || (MPI_VERSION == 3 && MPI_SUBVERSION >= 1)
PIO_NONBLOCKING(MPI_File_iread_all, , int, PIO_COLLECTIVE)
PIO_NONBLOCKING_AT(MPI_File_iread_at_all, , int, PIO_COLLECTIVE)
PIO_NONBLOCKING(MPI_File_iwrite_all, const, int, PIO_WRITE | PIO_COLLECTIVE)
PIO_NONBLOCKING_AT(MPI_File_iwrite_at_all, const, int, PIO_WRITE | PIO_COLLECTIVE)
#endif
#if PIO_LARGE_COUNT
PIO_NONBLOCKING(MPI_File_iread_c, , MPI_Count, 0)
PIO_NONBLOCKING(MPI_File_iread_shared_c, , MPI_Count, PIO_SHARED)
PIO_NONBLOCKING_AT(MPI_File_iread_at_c, , MPI_Count, 0)
PIO_NONBLOCKING(MPI_File_iwrite_c, const, MPI_Count, PIO_WRITE)
PIO_NONBLOCKING(MPI_File_iwrite_shared_c, const, MPI_Count, PIO_WRITE | PIO_SHARED)
PIO_NONBLOCKING_AT(MPI_File_iwrite_at_c, const, MPI_Count, PIO_WRITE)
PIO_NONBLOCKING(MPI_File_iread_all_c, , MPI_Count, PIO_COLLECTIVE)
PIO_NONBLOCKING_AT(MPI_File_iread_at_all_c, , MPI_Count, PIO_COLLECTIVE)
PIO_NONBLOCKING(MPI_File_iwrite_all_c, const, MPI_Count, PIO_WRITE | PIO_COLLECTIVE)
PIO_NONBLOCKING_AT(MPI_File_iwrite_at_all_c, const, MPI_Count, PIO_WRITE | PIO_COLLECTIVE)
#endif
