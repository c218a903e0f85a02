/* Handles of our files: which are ours, and their numbers in Fortran. */
#include "pio_shim.h"

#include <pthread.h>

static pthread_mutex_t pio_files_lock = PTHREAD_MUTEX_INITIALIZER;
static struct pio_file **pio_files;
static int pio_file_slots;

/* Fortran numbers of our files: far from those of any MPI. */
enum { PIO_FORTRAN_BASE = 0x50494f00 };

static int pio_slot_of(MPI_File handle) {
  for (int slot = 0; slot < pio_file_slots; slot++)
    if (pio_files[slot] != NULL && (void *)pio_files[slot] == (void *)handle) return slot;
  return -1;
}

struct pio_file *pio_own(MPI_File handle) {
  int slot;
  pthread_mutex_lock(&pio_files_lock);
  slot = pio_slot_of(handle);
  pthread_mutex_unlock(&pio_files_lock);
  return slot < 0 ? NULL : (struct pio_file *)(void *)handle;
}

int pio_keep(struct pio_file *file) {
  int slot, error = MPI_SUCCESS;
  pthread_mutex_lock(&pio_files_lock);
  for (slot = 0; slot < pio_file_slots && pio_files[slot] != NULL; slot++) {
  }
  if (slot == pio_file_slots) {
    int slots = slot ? 2 * slot : 16;
    struct pio_file **files = realloc(pio_files, (size_t)slots * sizeof *files);
    if (files == NULL) {
      error = MPI_ERR_NO_MEM;
    } else {
      memset(files + slot, 0, (size_t)(slots - slot) * sizeof *files);
      pio_files = files;
      pio_file_slots = slots;
    }
  }
  if (error == MPI_SUCCESS) pio_files[slot] = file;
  pthread_mutex_unlock(&pio_files_lock);
  return error;
}

void pio_forget_file(struct pio_file *file) {
  int slot;
  pthread_mutex_lock(&pio_files_lock);
  slot = pio_slot_of((MPI_File)(void *)file);
  if (slot >= 0) pio_files[slot] = NULL;
  pthread_mutex_unlock(&pio_files_lock);
}

/* --- Fortran numbers ----------------------------------------------------------------------------------------------- */

static int pio_number_of(MPI_File fh) {
  pthread_mutex_lock(&pio_files_lock);
  int slot = pio_slot_of(fh);
  pthread_mutex_unlock(&pio_files_lock);
  return slot < 0 ? -1 : PIO_FORTRAN_BASE + slot;
}

static struct pio_file *pio_numbered(int number) {
  struct pio_file *file = NULL;
  pthread_mutex_lock(&pio_files_lock);
  int slot = number - PIO_FORTRAN_BASE;
  if (slot >= 0 && slot < pio_file_slots) file = pio_files[slot];
  pthread_mutex_unlock(&pio_files_lock);
  return file;
}

/* The standard ABI's header has none of Fortran's. */
#ifndef MPI_H_ABI
MPI_Fint MPI_File_c2f(MPI_File file) {
  int number;
  pio_find_mpi(PIO_CALLER);
  number = pio_number_of(file);
  return number >= 0 ? (MPI_Fint)number : PIO_NATIVE(MPI_File_c2f)(file);
}

MPI_File MPI_File_f2c(MPI_Fint number) {
  struct pio_file *file;
  pio_find_mpi(PIO_CALLER);
  file = pio_numbered((int)number);
  return file != NULL ? (MPI_File)(void *)file : PIO_NATIVE(MPI_File_f2c)(number);
}

PIO_PROFILING(MPI_File_c2f)
PIO_PROFILING(MPI_File_f2c)
#endif

#if MPI_VERSION >= 5
int MPI_File_toint(MPI_File file) {
  int number;
  pio_find_mpi(PIO_CALLER);
  number = pio_number_of(file);
  return number >= 0 ? number : PIO_NATIVE(MPI_File_toint)(file);
}

MPI_File MPI_File_fromint(int number) {
  struct pio_file *file;
  pio_find_mpi(PIO_CALLER);
  file = pio_numbered(number);
  return file != NULL ? (MPI_File)(void *)file : PIO_NATIVE(MPI_File_fromint)(number);
}

PIO_PROFILING(MPI_File_toint)
PIO_PROFILING(MPI_File_fromint)
#endif
