/* The program's own MPI: finding it. */
#define _GNU_SOURCE
#include "pio_native.h"

#include <dlfcn.h>
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
    pio.packed = PIO_PREDEFINED(MPI_Datatype, MPI_PACKED, "ompi_mpi_packed");
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

/* Whoever uses another MPI is to be left alone before it opens a file. */
int MPI_Init(int *count, char ***arguments) {
  pio_gives_way("carried out by Pioscope");
  return ((int (*)(int *, char ***))pio_next("MPI_Init", __builtin_return_address(0)))(count, arguments);
}

int MPI_Init_thread(int *count, char ***arguments, int required, int *provided) {
  pio_gives_way("carried out by Pioscope");
  return ((int (*)(int *, char ***, int, int *))pio_next("MPI_Init_thread", __builtin_return_address(0)))(
      count, arguments, required, provided);
}
