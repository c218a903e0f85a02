/* What the files of the shim share: open files, operations under way, and how calls that are not ours go on.
 *
 * Each file defines MPI functions under both of their names. Fortran's functions of most MPIs, and tools, call the
 * PMPI ones: files that are ours must be so for all.
 */
#ifndef PIO_SHIM_H
#define PIO_SHIM_H

#include "pio_native.h"

#include <stdlib.h>
#include <string.h>

/* The standard ABI's header has nothing of Fortran's: an INTEGER is an int, and functions of other names number handles. */
#ifdef MPI_H_ABI
typedef int MPI_Fint;
#define PIO_FILE_TO_FORTRAN MPI_File_toint
#else
#define PIO_FILE_TO_FORTRAN MPI_File_c2f
#endif

/* How data are in the file. Native ones: as in memory. Others are converted, and may have other sizes there. */
struct pio_representation {
  char name[MPI_MAX_DATAREP_STRING + 1];
  /* External32 has none of these: MPI converts. */
  MPI_Datarep_conversion_function *read, *write;
#if PIO_LARGE_COUNT
  /* Of a representation that was registered with large counts: it has these instead. */
  MPI_Datarep_conversion_function_c *read_large, *write_large;
#endif
  MPI_Datarep_extent_function *extent;
  void *extra;
  struct pio_representation *next;
};

struct pio_operation;

/* An open file of ours: what an MPI_File of the program points to. */
struct pio_file {
  pio_core_file *core;
  const pio_communicator *communicator;
  int amode;
  MPI_Errhandler errhandler;
  MPI_Datatype etype, filetype;
  char representation[MPI_MAX_DATAREP_STRING + 1];
  /* NULL: native. */
  const struct pio_representation *converted;
  char *name;
  /* A split collective operation that has begun, and its kind. */
  const char *split_kind;
  struct pio_operation *split;
};

/* Memory of an operation, as the core sees it: the program's, or a copy in the file's representation. */
struct pio_buffer {
  struct pio_memory memory;
  /* Of a copy, else NULL. */
  unsigned char *copy;
  uint64_t copy_bytes;
  const struct pio_representation *representation;
  void *address;
  MPI_Count count;
  MPI_Datatype type;
  /* Whether that is a duplicate of ours: the program may free its own while the operation goes on. */
  int keeps_type;
};

PIO_HIDDEN extern const struct pio_core *pio_core;

/* A function that programs and libraries find by its name before the one that it stands for. Those of mpi.h are so anyway. */
#define PIO_EXPORTED __attribute__((visibility("default")))
#define PIO_CALLER __builtin_return_address(0)
/* The MPI's own function. */
#define PIO_NATIVE(name)                                                                          \
  ({                                                                                              \
    static __typeof__(&name) native_;                                                             \
    if (native_ == NULL) native_ = (__typeof__(&name))pio_next("P" #name, PIO_CALLER);             \
    native_;                                                                                      \
  })
#define PIO_OWN_OR_FORWARD(name, handle, ...)     \
  struct pio_file *file;                          \
  pio_find_mpi(PIO_CALLER);                       \
  file = pio_own(handle);                         \
  if (file == NULL) return PIO_NATIVE(name)(__VA_ARGS__); \
  pio_core->progress()
/* The same function under its PMPI name. */
#define PIO_PROFILING(name) \
  extern __typeof__(name) P##name __attribute__((alias(#name))) PIO_EXPORTED;

/* pio_handle.c: the file that a handle stands for, NULL if it is not ours; */
PIO_HIDDEN struct pio_file *pio_own(MPI_File handle);
/* from now on, or no longer, a handle stands for this file. An MPI error class. */
PIO_HIDDEN int pio_keep(struct pio_file *file);
PIO_HIDDEN void pio_forget_file(struct pio_file *file);

/* pio_file.c: opens a file, without a call of an error handler; an MPI error class; */
PIO_HIDDEN int pio_open(MPI_Comm comm, const char *filename, int amode, MPI_Info info, MPI_Errhandler errhandler,
                        MPI_File *fh);
/* removes a file, likewise. */
PIO_HIDDEN int pio_delete(const char *filename);

/* pio_netcdf.c: the mode in which to open a file that PnetCDF makes, where it was asked for `amode`; */
PIO_HIDDEN int pio_netcdf_amode(int amode);
/* whether what is in such a file is to go. */
PIO_HIDDEN int pio_netcdf_empties(int amode);

/* pio_error.c: the MPI error code of a pio_status; */
PIO_HIDDEN int pio_code(int status);
/* calls the error handler of `file`, or of MPI_FILE_NULL, and gives the code to return; */
PIO_HIDDEN int pio_raise(struct pio_file *file, const char *function, int code);
/* calls this one, which is told of `file`; */
PIO_HIDDEN int pio_tell(MPI_Errhandler handle, struct pio_file *file, const char *function, int code);
/* keeps in mind that an error handler calls a subroutine of Fortran; */
PIO_HIDDEN void pio_errhandler_is_fortran(MPI_Errhandler handle, MPI_File_errhandler_function *function);
/* adds to the references of an error handler of the program, and frees it with the last; */
PIO_HIDDEN int pio_refer(MPI_Errhandler handle, int references);
/* the error handler of files that are opened now; */
PIO_HIDDEN MPI_Errhandler pio_inherited_errhandler(void);
/* ends the job. */
PIO_HIDDEN void pio_abort(MPI_Comm comm, int code);

/* pio_types.c: the core's form of a datatype, which stays with it; PIO_TYPE if it is not committed; */
PIO_HIDDEN int pio_type_of(MPI_Datatype type, const pio_type **found);
/* the core's form of a datatype as it is in a file with another representation, to be freed by the caller. Not whether
 * it is committed; */
PIO_HIDDEN int pio_type_in_file(MPI_Datatype type, const struct pio_representation *representation, pio_type **found);
/* a duplicate of a datatype, for keeping or for the program; predefined ones are their own duplicates; */
PIO_HIDDEN int pio_type_kept(MPI_Datatype type, MPI_Datatype *kept);
PIO_HIDDEN int pio_type_release(MPI_Datatype *type);
/* called once, when the core is there. */
PIO_HIDDEN int pio_types_begin(void);

/* pio_representation.c: the one with a name; found 0 if there is none. NULL is the native one. */
PIO_HIDDEN const struct pio_representation *pio_representation_of(const char *name, int *found);
/* The standard's spelling of a predefined name; any other stays as it is. */
PIO_HIDDEN const char *pio_representation_name(const char *name);
/* Memory for an operation; a pio_status. */
PIO_HIDDEN int pio_buffer_begin(const struct pio_file *file, int how, const void *address, MPI_Count count,
                                MPI_Datatype type, struct pio_buffer *buffer);
/* For one that goes on by itself, so that the program may free the datatype; a pio_status. */
PIO_HIDDEN int pio_buffer_keep(struct pio_buffer *buffer);
/* After the operation, which had this pio_status, moved so many bytes of the file: from here on bytes of memory. A pio_status. */
PIO_HIDDEN int pio_buffer_end(struct pio_buffer *buffer, int how, int status, uint64_t *moved);

/* pio_access.c */
PIO_HIDDEN void pio_set_status(MPI_Status *status, uint64_t moved);

/* pio_request.c: an operation that goes on by itself. A pio_status; if that is an error, there is no operation. */
PIO_HIDDEN int pio_operation_begin(struct pio_file *file, int how, MPI_Offset offset, const void *buffer,
                                   MPI_Count count, MPI_Datatype type, MPI_Request *request,
                                   struct pio_operation **operation);
/* Waits for an operation without a request, and frees it; a pio_status. */
PIO_HIDDEN int pio_operation_end(struct pio_operation *operation, uint64_t *moved);
/* How many operations are not complete, or have failed and the program still has their requests. */
PIO_HIDDEN extern int pio_attention;

/* pio_wait.c: the MPI's look at a request found that its operation failed, with a pio_status. An MPI error class. */
PIO_HIDDEN int pio_failed(MPI_Request request, int status, struct pio_file *file);

#endif
