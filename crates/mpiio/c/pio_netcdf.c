/* PnetCDF looks at files, and empties them, by their names and past MPI: files on I/O servers are not there. So we do it.
 *
 * PnetCDF and programs call these functions by their names. What is not on servers goes on to PnetCDF's own.
 */
#include "pio_shim.h"

#include <stdint.h>

/* PnetCDF's numbers of formats, modes and errors, which programs compile in. */
enum {
  PIO_NC_UNKNOWN = -1,
  PIO_NC_CLASSIC = 1,
  PIO_NC_64BIT_OFFSET = 2,
  PIO_NC_NETCDF4 = 3,
  PIO_NC_64BIT_DATA = 5,
};
enum { PIO_NC_NOCLOBBER = 0x0004 };
enum {
  PIO_NC_NO_ERROR = 0,
  PIO_NC_EEXIST = -35,
  PIO_NC_EACCESS = -77,
  PIO_NC_EFILE = -204,
  PIO_NC_ENOENT = -220,
  PIO_NC_EBAD_FILE = -223,
};

static int pio_is_on_servers(const char *path) {
  const char *store = getenv("PIOSCOPE_STORE");
  return path != NULL && ((store != NULL && store[0] != 0) || strncmp(path, "pioscope:", 9) == 0);
}

/* As PnetCDF says errors of MPI. */
static int pio_netcdf_error(int class) {
  switch (class) {
    case MPI_SUCCESS: return PIO_NC_NO_ERROR;
    case MPI_ERR_NO_SUCH_FILE: return PIO_NC_ENOENT;
    case MPI_ERR_FILE_EXISTS: return PIO_NC_EEXIST;
    case MPI_ERR_ACCESS: return PIO_NC_EACCESS;
    case MPI_ERR_BAD_FILE: return PIO_NC_EBAD_FILE;
    default: return PIO_NC_EFILE;
  }
}

/* --- Which format a file has --------------------------------------------------------------------------------------- */

enum { PIO_SIGNATURE_BYTES = 8 };

/* Whether there are so many bytes. */
static int pio_read_signature(MPI_File file, MPI_Offset offset, char signature[PIO_SIGNATURE_BYTES]) {
  MPI_Status status;
  int count = 0;
  int code = MPI_File_read_at(file, offset, signature, PIO_SIGNATURE_BYTES, pio.byte, &status);
  return code == MPI_SUCCESS && pio.Get_count(&status, pio.byte, &count) == MPI_SUCCESS && count == PIO_SIGNATURE_BYTES;
}

static int pio_is_hdf5(const char signature[PIO_SIGNATURE_BYTES]) {
  return memcmp(signature, "\211HDF\r\n\032\n", PIO_SIGNATURE_BYTES) == 0;
}

static int pio_format_of(MPI_File file, char signature[PIO_SIGNATURE_BYTES]) {
  MPI_Offset offset = 0;
  if (memcmp(signature, "CDF", 3) == 0) switch (signature[3]) {
      case 1: return PIO_NC_CLASSIC;
      case 2: return PIO_NC_64BIT_OFFSET;
      case 5: return PIO_NC_64BIT_DATA;
      default: return PIO_NC_UNKNOWN;
    }
  /* In front of an HDF5 file may be something else, of 512 bytes or as many times two. */
  while (!pio_is_hdf5(signature)) {
    offset = offset == 0 ? 512 : 2 * offset;
    if (offset > INT64_MAX / 4 || !pio_read_signature(file, offset, signature)) return PIO_NC_UNKNOWN;
  }
  return PIO_NC_NETCDF4;
}

static int pio_inquire_format(const char *path, int *format) {
  char signature[PIO_SIGNATURE_BYTES];
  MPI_File file = pio.file_null;
  int code = pio_open(pio.comm_self, path, MPI_MODE_RDONLY, pio.info_null, pio.errors_return, &file);
  if (code != MPI_SUCCESS) return pio_netcdf_error(code);
  int error = pio_read_signature(file, 0, signature) ? PIO_NC_NO_ERROR : PIO_NC_EFILE;
  if (error == PIO_NC_NO_ERROR) *format = pio_format_of(file, signature);
  MPI_File_close(&file);
  return error;
}

PIO_EXPORTED int ncmpi_inq_file_format(const char *path, int *format);

int ncmpi_inq_file_format(const char *path, int *format) {
  pio_find_mpi(PIO_CALLER);
  if (!pio_is_on_servers(path) || format == NULL)
    return ((__typeof__(&ncmpi_inq_file_format))pio_next("ncmpi_inq_file_format", PIO_CALLER))(path, format);
  *format = PIO_NC_UNKNOWN;
  return pio_inquire_format(path, format);
}

/* --- Making files -------------------------------------------------------------------------------------------------- */

/* What the thread's PnetCDF does to a file before it opens it with MPI_MODE_CREATE. */
static __thread enum { PIO_CREATES_NOTHING, PIO_EMPTIES, PIO_NEEDS_NEW } pio_creation;

int pio_netcdf_amode(int amode) {
  return pio_creation == PIO_NEEDS_NEW && amode & MPI_MODE_CREATE ? amode | MPI_MODE_EXCL : amode;
}

int pio_netcdf_empties(int amode) { return pio_creation == PIO_EMPTIES && amode & MPI_MODE_CREATE; }

PIO_EXPORTED int ncmpi_create(MPI_Comm comm, const char *path, int mode, MPI_Info info, int *id);

int ncmpi_create(MPI_Comm comm, const char *path, int mode, MPI_Info info, int *id) {
  pio_find_mpi(PIO_CALLER);
  if (pio_is_on_servers(path)) pio_creation = mode & PIO_NC_NOCLOBBER ? PIO_NEEDS_NEW : PIO_EMPTIES;
  int error = ((__typeof__(&ncmpi_create))pio_next("ncmpi_create", PIO_CALLER))(comm, path, mode, info, id);
  pio_creation = PIO_CREATES_NOTHING;
  return error;
}

PIO_EXPORTED int ncmpi_delete(const char *path, MPI_Info info);

int ncmpi_delete(const char *path, MPI_Info info) {
  pio_find_mpi(PIO_CALLER);
  if (!pio_is_on_servers(path))
    return ((__typeof__(&ncmpi_delete))pio_next("ncmpi_delete", PIO_CALLER))(path, info);
  return pio_netcdf_error(pio_delete(path));
}
