/* The boundary between the shim (C, compiled by the user's own mpicc) and the core (Rust, knows no MPI).
 *
 * Everything that crosses it has a fixed size: handles of MPI are numbers in one MPI and addresses in another, so
 * they stay in the shim. Functions return 0 or one of the numbers of `pio_status`. src/core/boundary.rs is the other side.
 */
#ifndef PIO_MPIIO_H
#define PIO_MPIIO_H

#include <stddef.h>
#include <stdint.h>

#define PIO_VERSION 7

/* What went wrong: each has its MPI error class. */
enum pio_status {
  PIO_SUCCESS = 0,
  PIO_ACCESS = 1,
  PIO_AMODE = 2,
  PIO_ARGUMENT = 3,
  PIO_BAD_FILE = 4,
  PIO_FILE_EXISTS = 5,
  PIO_FILE_IN_USE = 6,
  PIO_IO = 7,
  PIO_NO_SPACE = 8,
  PIO_NO_SUCH_FILE = 9,
  PIO_QUOTA = 10,
  PIO_READ_ONLY = 11,
  PIO_TYPE = 12,
  PIO_UNSUPPORTED = 13,
  PIO_NO_MEMORY = 14,
  PIO_INTERNAL = 15,
  PIO_DATA_REPRESENTATION = 16,
  PIO_FILE = 17,
  PIO_COUNT = 18,
  PIO_COMMUNICATOR = 19,
  PIO_NOT_SAME = 20,
  PIO_DISPLACEMENT = 21,
  PIO_CONVERSION = 22,
  PIO_UNREACHABLE = 23,
  PIO_BUFFER = 24
};

/* Access modes, as MPI has them; the shim translates. */
enum {
  PIO_READ_ONLY_MODE = 1,
  PIO_WRITE_ONLY_MODE = 2,
  PIO_READ_WRITE_MODE = 4,
  PIO_CREATE_MODE = 8,
  PIO_EXCLUSIVE_MODE = 16,
  PIO_DELETE_ON_CLOSE_MODE = 32,
  PIO_UNIQUE_OPEN_MODE = 64,
  PIO_SEQUENTIAL_MODE = 128,
  PIO_APPEND_MODE = 256
};

enum { PIO_SEEK_SET = 0, PIO_SEEK_CURRENT = 1, PIO_SEEK_END = 2 };

typedef struct pio_communicator pio_communicator; /* the shim's */
typedef struct pio_cache pio_cache;               /* the core's: what it keeps for a communicator */
typedef struct pio_core_file pio_core_file;       /* the core's: an open file */
typedef struct pio_type pio_type;                 /* the core's: a datatype */
typedef uint64_t pio_request;                     /* an MPI_Request, whatever it is */
typedef uint64_t pio_message;                     /* an MPI_Message, whatever it is */

/* What the shim does for the core. None waits for other ranks but `duplicate`, `release` and `node`, which are collective;
 * `receive` waits until a message that has arrived is there as a whole. */
struct pio_mpi {
  int (*duplicate)(const pio_communicator *communicator, pio_communicator **duplicate);
  /* Frees a duplicate; only its memory if MPI itself is about to end (`communicate` 0). */
  void (*release)(pio_communicator *communicator, int communicate);
  int (*size)(const pio_communicator *communicator, int *rank, int *ranks);
  /* The least rank among those that share memory with this one. */
  int (*node)(const pio_communicator *communicator, int *leader);
  int (*send)(const pio_communicator *communicator, int to, int tag, const void *bytes, uint64_t size,
              pio_request *request);
  int (*test)(pio_request *request, int *done);
  /* Takes a message that has arrived, from anyone. */
  int (*probe)(const pio_communicator *communicator, int tag, int *found, int *from, uint64_t *size,
               pio_message *message);
  /* The bytes of a message that `probe` took. */
  int (*receive)(pio_message *message, void *bytes, uint64_t size);
  int (*broadcast)(const pio_communicator *communicator, void *bytes, uint64_t size, int root, pio_request *request);
  int (*barrier)(const pio_communicator *communicator, pio_request *request);
  /* `size` bytes from every rank to every rank. */
  int (*gather)(const pio_communicator *communicator, const void *mine, void *all, uint64_t size,
                pio_request *request);
  /* Whether any thread may call MPI, beside others. */
  int (*for_threads)(void);
  /* Whether this MPI moves data that end within an etype. */
  int (*parts_of_etypes)(void);
  /* A nonblocking operation is complete. Called once for each that `start` began without an error; and once, with NULL, for
   * each collective one with an error, in which the rank takes part with no data. */
  void (*complete)(void *token, int status, uint64_t moved);
};

/* A hint, as the program gave it or as it is in force. */
struct pio_hint {
  char key[32];
  char value[256];
};

/* The part of memory that an operation reads from or writes to: `count` copies of `type` from `address` on. */
struct pio_memory {
  void *address;
  uint64_t count;
  const pio_type *type;
};

/* How an operation is carried out. */
enum { PIO_WRITE = 1, PIO_COLLECTIVE = 2, PIO_EXPLICIT_OFFSET = 4, PIO_SHARED = 8 };

/* Instead of a displacement: where the shared file pointer is. */
#define PIO_DISPLACEMENT_CURRENT INT64_MIN

/* What the core does for the shim. */
struct pio_core {
  /* Collective. `cache` is what an earlier open left with this communicator, or NULL; the core may create it.
   * `own` is the communicator of the file. */
  int (*open)(const pio_communicator *communicator, pio_cache **cache, const char *path, int mode,
              const struct pio_hint *hints, uint64_t hint_count, pio_core_file **file,
              const pio_communicator **own);
  /* Collective. The file can still be asked what it was, until it is freed. */
  int (*close)(pio_core_file *file);
  void (*free)(pio_core_file *file);
  int (*remove)(const char *path);
  /* The communicator is about to go. */
  void (*forget)(pio_cache *cache, int communicate);
  pio_type *(*type_create)(const unsigned char *description, uint64_t length);
  void (*type_free)(pio_type *type);
  int64_t (*type_size)(const pio_type *type);
  int64_t (*type_extent)(const pio_type *type);
  int (*set_view)(pio_core_file *file, int64_t displacement, const pio_type *etype, const pio_type *filetype,
                  const struct pio_hint *hints, uint64_t hint_count);
  int (*displacement)(pio_core_file *file, int64_t *displacement);
  /* `error` (a pio_status) is what the shim found wrong with the arguments: the rank then takes part with no data. */
  int (*transfer)(pio_core_file *file, int how, int64_t offset, const struct pio_memory *memory, int error,
                  uint64_t *moved);
  /* The same without waiting. Unless it returns an error, `complete` is told of `token`, in this call or in one of
   * `progress` or `relax`. The memory is in use until then. With an error, `token` is not used after this call. */
  int (*start)(pio_core_file *file, int how, int64_t offset, const struct pio_memory *memory, int error, void *token);
  /* Carries on with what was started. Cheap if that is nothing. */
  void (*progress)(void);
  /* The same between two looks for something that others do, and waits a moment. `since_ns` is 0 before the first. */
  void (*relax)(uint64_t *since_ns);
  int (*seek)(pio_core_file *file, int64_t offset, int whence);
  int (*position)(pio_core_file *file, int64_t *position);
  int (*seek_shared)(pio_core_file *file, int64_t offset, int whence);
  int (*position_shared)(pio_core_file *file, int64_t *position);
  int (*byte_offset)(pio_core_file *file, int64_t offset, int64_t *byte);
  int (*sync)(pio_core_file *file);
  int (*get_size)(pio_core_file *file, int64_t *size);
  int (*set_size)(pio_core_file *file, int64_t size);
  int (*preallocate)(pio_core_file *file, int64_t size);
  int (*set_hints)(pio_core_file *file, const struct pio_hint *hints, uint64_t hint_count);
  /* Fills in at most `capacity`; returns how many. */
  int (*get_hints)(pio_core_file *file, struct pio_hint *hints, int capacity);
  int (*set_atomic)(pio_core_file *file, int atomic);
  int (*get_atomic)(pio_core_file *file);
};

/* The one symbol of the core. NULL (and the reason on the standard error output) if it cannot work. */
typedef const struct pio_core *pio_attach(uint32_t version, const struct pio_mpi *mpi);
#define PIO_ATTACH "pio_mpiio_attach"

#endif
