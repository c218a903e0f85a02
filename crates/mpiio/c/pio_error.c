/* Errors of files: their MPI codes, and the error handlers that are told of them. */
#include "pio_shim.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

/* An error handler that the program made for files. The program may free it while files still use it. */
struct pio_errhandler {
  MPI_Errhandler handle;
  MPI_File_errhandler_function *function;
  /* A subroutine of Fortran: its handles are numbers. */
  int is_fortran;
  int references;
  struct pio_errhandler *next;
};

static pthread_mutex_t pio_lock = PTHREAD_MUTEX_INITIALIZER;
static struct pio_errhandler *pio_errhandlers;
/* The error handler of MPI_FILE_NULL, which files inherit; unset: errors are returned. */
static MPI_Errhandler pio_default_errhandler;
static int pio_default_errhandler_set;

/* --- Codes --------------------------------------------------------------------------------------------------------- */

static int pio_class(int status) {
  switch (status) {
    case PIO_SUCCESS: return MPI_SUCCESS;
    case PIO_ACCESS: return MPI_ERR_ACCESS;
    case PIO_AMODE: return MPI_ERR_AMODE;
    case PIO_ARGUMENT: return MPI_ERR_ARG;
    case PIO_BAD_FILE: return MPI_ERR_BAD_FILE;
    case PIO_FILE_EXISTS: return MPI_ERR_FILE_EXISTS;
    case PIO_FILE_IN_USE: return MPI_ERR_FILE_IN_USE;
    case PIO_IO: return MPI_ERR_IO;
    case PIO_NO_SPACE: return MPI_ERR_NO_SPACE;
    case PIO_NO_SUCH_FILE: return MPI_ERR_NO_SUCH_FILE;
    case PIO_QUOTA: return MPI_ERR_QUOTA;
    case PIO_READ_ONLY: return MPI_ERR_READ_ONLY;
    case PIO_TYPE: return MPI_ERR_TYPE;
    case PIO_UNSUPPORTED: return MPI_ERR_UNSUPPORTED_OPERATION;
    case PIO_NO_MEMORY: return MPI_ERR_NO_MEM;
    case PIO_DATA_REPRESENTATION: return MPI_ERR_UNSUPPORTED_DATAREP;
    case PIO_FILE: return MPI_ERR_FILE;
    case PIO_COUNT: return MPI_ERR_COUNT;
    case PIO_COMMUNICATOR: return MPI_ERR_COMM;
    case PIO_NOT_SAME: return MPI_ERR_NOT_SAME;
    case PIO_DISPLACEMENT: return MPI_ERR_ARG;
    case PIO_CONVERSION: return MPI_ERR_CONVERSION;
    case PIO_UNREACHABLE: return MPI_ERR_IO;
    case PIO_BUFFER: return MPI_ERR_BUFFER;
    default: return MPI_ERR_INTERN;
  }
}

/* Errors of which there is more to say than the name of their class: each has a code of its own in that class. */
static struct pio_detail {
  int status;
  const char *text;
  int code; /* MPI_SUCCESS: not made yet */
} pio_details[] = {
    {PIO_DISPLACEMENT, "Invalid displacement argument of a file view", MPI_SUCCESS},
    {PIO_UNREACHABLE, "The file's servers did not answer in time", MPI_SUCCESS},
};
#define PIO_DETAILS (sizeof pio_details / sizeof pio_details[0])

int pio_code(int status) {
  int code = pio_class(status);
  pthread_mutex_lock(&pio_lock);
  for (size_t i = 0; i < PIO_DETAILS; i++) {
    struct pio_detail *detail = &pio_details[i];
    if (detail->status != status) continue;
    if (detail->code == MPI_SUCCESS) {
      int added = code;
      if (pio.Add_error_code(code, &added) == MPI_SUCCESS) pio.Add_error_string(added, detail->text);
      detail->code = added;
    }
    code = detail->code;
  }
  pthread_mutex_unlock(&pio_lock);
  return code;
}

/* The text of a code of our own, or NULL. */
static const char *pio_text_of(int code) {
  const char *text = NULL;
  pthread_mutex_lock(&pio_lock);
  for (size_t i = 0; i < PIO_DETAILS && code != MPI_SUCCESS; i++)
    if (pio_details[i].code == code && code != pio_class(pio_details[i].status)) text = pio_details[i].text;
  pthread_mutex_unlock(&pio_lock);
  return text;
}

static int pio_error_string(int code, char *string, int *length, int (*native)(int, char *, int *)) {
  const char *text = pio_text_of(code);
  if (text == NULL) return native(code, string, length);
  *length = (int)strlen(text);
  memcpy(string, text, (size_t)*length + 1);
  return MPI_SUCCESS;
}

/* MPICH 4.0 says something else of codes that are added to its own classes. */
int MPI_Error_string(int errorcode, char *string, int *resultlen) {
  pio_find_mpi(PIO_CALLER);
  return pio_error_string(errorcode, string, resultlen, PIO_NATIVE(MPI_Error_string));
}

/* --- Error handlers ------------------------------------------------------------------------------------------------ */

static struct pio_errhandler *pio_errhandler_of(MPI_Errhandler handle) {
  struct pio_errhandler *known = pio_errhandlers;
  while (known != NULL && known->handle != handle) known = known->next;
  return known;
}

int pio_refer(MPI_Errhandler handle, int references) {
  struct pio_errhandler **link, *known, *freed = NULL;
  int error = MPI_SUCCESS;
  pthread_mutex_lock(&pio_lock);
  known = pio_errhandler_of(handle);
  if (known != NULL && (known->references += references) == 0) {
    for (link = &pio_errhandlers; *link != known; link = &(*link)->next) {
    }
    *link = known->next;
    freed = known;
  }
  pthread_mutex_unlock(&pio_lock);
  if (freed != NULL) {
    error = pio.Errhandler_free(&freed->handle);
    free(freed);
  }
  return error;
}

MPI_Errhandler pio_inherited_errhandler(void) {
  return pio_default_errhandler_set ? pio_default_errhandler : pio.errors_return;
}

/* Launchers drop what a job's processes wrote just before it is aborted, and that is the reason: they get a moment to
 * take it, long enough for a busy node. Some MPIs' MPI_Abort returns before the launcher's signal comes. */
void pio_abort(MPI_Comm comm, int code) {
  sleep(1);
  pio.Abort(comm, code);
  _exit(EXIT_FAILURE);
}

int pio_raise(struct pio_file *file, const char *function, int code) {
  return pio_tell(file != NULL ? file->errhandler : pio_inherited_errhandler(), file, function, code);
}

int pio_tell(MPI_Errhandler handle, struct pio_file *file, const char *function, int code) {
  MPI_File argument = file != NULL ? (MPI_File)(void *)file : pio.file_null;
  MPI_File_errhandler_function *user = NULL;
  struct pio_errhandler *known;
  int is_fortran = 0;
  if (code == MPI_SUCCESS || handle == pio.errors_return) return code;
  pthread_mutex_lock(&pio_lock);
  known = pio_errhandler_of(handle);
  if (known != NULL) {
    user = known->function;
    is_fortran = known->is_fortran;
  }
  pthread_mutex_unlock(&pio_lock);
  if (user != NULL && is_fortran) {
    MPI_Fint number = PIO_FILE_TO_FORTRAN(argument), told = code;
    ((void (*)(MPI_Fint *, MPI_Fint *))(void *)user)(&number, &told);
  } else if (user != NULL) {
    user(&argument, &code);
  } else if (handle == pio.errors_are_fatal || handle == pio.errors_abort) {
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    if (pio_error_string(code, text, &length, pio.Error_string) != MPI_SUCCESS) length = 0;
    fprintf(stderr, "pioscope: %s: %.*s: the file's error handler ends the program\n", function, length, text);
    pio_abort(file != NULL && handle == pio.errors_abort ? file->communicator->comm : pio.comm_world, code);
  }
  return code;
}

/* Keeps in mind what an error handler that the MPI has made calls. */
static void pio_know(MPI_Errhandler handle, MPI_File_errhandler_function *function, int is_fortran) {
  struct pio_errhandler *known;
  pthread_mutex_lock(&pio_lock);
  /* Fortran's function of some MPIs has called C's. */
  known = pio_errhandler_of(handle);
  if (known == NULL && (known = malloc(sizeof *known)) != NULL) {
    known->handle = handle;
    known->references = 1;
    known->next = pio_errhandlers;
    pio_errhandlers = known;
  }
  if (known != NULL) {
    known->function = function;
    known->is_fortran = is_fortran;
  }
  pthread_mutex_unlock(&pio_lock);
}

void pio_errhandler_is_fortran(MPI_Errhandler handle, MPI_File_errhandler_function *function) {
  pio_know(handle, function, 1);
}

int MPI_File_create_errhandler(MPI_File_errhandler_function *function, MPI_Errhandler *errhandler) {
  pio_find_mpi(PIO_CALLER);
  int code = PIO_NATIVE(MPI_File_create_errhandler)(function, errhandler);
  if (code == MPI_SUCCESS) pio_know(*errhandler, function, 0);
  return code;
}

int MPI_Errhandler_free(MPI_Errhandler *errhandler) {
  pio_find_mpi(PIO_CALLER);
  pthread_mutex_lock(&pio_lock);
  int known = pio_errhandler_of(*errhandler) != NULL;
  pthread_mutex_unlock(&pio_lock);
  /* Files hand out predefined ones, too, which are not the program's to free: some MPIs see to that by counting. */
  int predefined =
      *errhandler == pio.errors_return || *errhandler == pio.errors_are_fatal || *errhandler == pio.errors_abort;
  if (!known && !predefined) return PIO_NATIVE(MPI_Errhandler_free)(errhandler);
  int code = known ? pio_refer(*errhandler, -1) : MPI_SUCCESS;
  *errhandler = pio.errhandler_null;
  return code;
}

int MPI_File_set_errhandler(MPI_File fh, MPI_Errhandler errhandler) {
  pio_find_mpi(PIO_CALLER);
  struct pio_file *file = pio_own(fh);
  if (file == NULL) {
    int code = PIO_NATIVE(MPI_File_set_errhandler)(fh, errhandler);
    if (code == MPI_SUCCESS && fh == pio.file_null) {
      pio_refer(errhandler, 1);
      if (pio_default_errhandler_set) pio_refer(pio_default_errhandler, -1);
      pio_default_errhandler = errhandler;
      pio_default_errhandler_set = 1;
    }
    return code;
  }
  if (errhandler == pio.errhandler_null) return pio_raise(file, "MPI_File_set_errhandler", MPI_ERR_ARG);
  pio_refer(errhandler, 1);
  pio_refer(file->errhandler, -1);
  file->errhandler = errhandler;
  return MPI_SUCCESS;
}

int MPI_File_get_errhandler(MPI_File fh, MPI_Errhandler *errhandler) {
  pio_find_mpi(PIO_CALLER);
  struct pio_file *file = pio_own(fh);
  if (file == NULL) {
    int code = PIO_NATIVE(MPI_File_get_errhandler)(fh, errhandler);
    /* The program frees what it is given. */
    if (code == MPI_SUCCESS) pio_refer(*errhandler, 1);
    return code;
  }
  pio_core->progress();
  pio_refer(file->errhandler, 1);
  *errhandler = file->errhandler;
  return MPI_SUCCESS;
}

int MPI_File_call_errhandler(MPI_File fh, int errorcode) {
  PIO_OWN_OR_FORWARD(MPI_File_call_errhandler, fh, fh, errorcode);
  pio_raise(file, "MPI_File_call_errhandler", errorcode);
  return MPI_SUCCESS;
}

PIO_PROFILING(MPI_Error_string)
PIO_PROFILING(MPI_File_create_errhandler)
PIO_PROFILING(MPI_Errhandler_free)
PIO_PROFILING(MPI_File_set_errhandler)
PIO_PROFILING(MPI_File_get_errhandler)
PIO_PROFILING(MPI_File_call_errhandler)
