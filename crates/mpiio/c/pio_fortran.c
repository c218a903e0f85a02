/* What Fortran's functions do otherwise than C's: they take subroutines of Fortran, which get all by reference, and
 * handles as numbers.
 *
 * Each compiler, and each of MPI's Fortran interfaces, has its own name for a function. Whichever the program calls, the
 * MPI's own function goes first; then we learn what it was given. Nobody calls these but Fortran, so there is one.
 */
#include "pio_shim.h"

static MPI_Errhandler pio_errhandler_of_number(MPI_Fint number, void *caller) {
#if defined(MPI_H_ABI)
  return ((__typeof__(&MPI_Errhandler_fromint))pio_next("PMPI_Errhandler_fromint", caller))(number);
#elif defined(MPI_Errhandler_f2c)
  (void)caller;
  return MPI_Errhandler_f2c(number);
#else
  static __typeof__(&MPI_Errhandler_f2c) native;
  if (native == NULL) native = (__typeof__(&MPI_Errhandler_f2c))pio_next("PMPI_Errhandler_f2c", caller);
  return native(number);
#endif
}

typedef void pio_create_errhandler(MPI_File_errhandler_function *function, MPI_Fint *errhandler, MPI_Fint *ierror);

static void pio_created(const char *name, void *caller, MPI_File_errhandler_function *function, MPI_Fint *errhandler,
                        MPI_Fint *ierror) {
  MPI_Fint error = MPI_SUCCESS;
  pio_find_mpi(caller);
  ((pio_create_errhandler *)pio_next(name, caller))(function, errhandler, &error);
  if (error == MPI_SUCCESS) pio_errhandler_is_fortran(pio_errhandler_of_number(*errhandler, caller), function);
  /* Fortran 2008's may be absent. */
  if (ierror != NULL) *ierror = error;
}

#define PIO_CREATES_ERRHANDLER(name)                                                                       \
  PIO_EXPORTED void name(MPI_File_errhandler_function *function, MPI_Fint *errhandler, MPI_Fint *ierror);  \
  void name(MPI_File_errhandler_function *function, MPI_Fint *errhandler, MPI_Fint *ierror) {              \
    pio_created(#name, PIO_CALLER, function, errhandler, ierror);                                          \
  }

PIO_CREATES_ERRHANDLER(mpi_file_create_errhandler)
PIO_CREATES_ERRHANDLER(mpi_file_create_errhandler_)
PIO_CREATES_ERRHANDLER(mpi_file_create_errhandler__)
PIO_CREATES_ERRHANDLER(MPI_FILE_CREATE_ERRHANDLER)
PIO_CREATES_ERRHANDLER(pmpi_file_create_errhandler)
PIO_CREATES_ERRHANDLER(pmpi_file_create_errhandler_)
PIO_CREATES_ERRHANDLER(pmpi_file_create_errhandler__)
PIO_CREATES_ERRHANDLER(PMPI_FILE_CREATE_ERRHANDLER)
/* Of mpi_f08: MPICH's and Open MPI's. */
PIO_CREATES_ERRHANDLER(mpi_file_create_errhandler_f08_)
PIO_CREATES_ERRHANDLER(pmpi_file_create_errhandler_f08_)
PIO_CREATES_ERRHANDLER(pmpir_file_create_errhandler_f08_)
