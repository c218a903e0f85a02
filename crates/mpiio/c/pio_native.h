/* The program's own MPI, found at run time.
 *
 * This library is preloaded into every process of a job, launchers and shells too: it must neither draw MPI into them
 * nor need it there. So it is not linked to MPI, and refers to none of its symbols: not to functions, because the
 * program may be bound at once (LD_BIND_NOW), not to data, which some MPIs have for predefined handles. All are looked
 * up at the first MPI-IO call. They are the PMPI names: tools must not take our own messages for the program's.
 * We define PMPI names ourselves (see pio_shim.h), hence the next definition after ours is looked up.
 */
#ifndef PIO_NATIVE_H
#define PIO_NATIVE_H

/* What mpi.h declares is what we define for the program to find, even where the rest is compiled to stay hidden. */
#pragma GCC visibility push(default)
#include <mpi.h>
#pragma GCC visibility pop

#include "pio_mpiio.h"

#define PIO_HIDDEN __attribute__((visibility("hidden")))

#if MPI_VERSION >= 4
#define PIO_LARGE_COUNT 1
#define PIO_LARGE_TYPES(X) X(Type_get_contents_c) X(Type_get_envelope_c)
#else
#define PIO_LARGE_COUNT 0
#define PIO_LARGE_TYPES(X)
#endif
/* Of MPI 4.1; but not yet of MPICH 4.0, which says that it has 4.0 whole. */
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
#define PIO_STATUS_SET_ELEMENTS Status_set_elements_c
#define PIO_STATUS_OF_SEVERAL 1
#else
#define PIO_STATUS_SET_ELEMENTS Status_set_elements_x
#define PIO_STATUS_OF_SEVERAL 0
#endif

#define PIO_FUNCTIONS(X)    \
  X(Abort)                  \
  X(Add_error_code)         \
  X(Add_error_string)       \
  X(Comm_create_keyval)     \
  X(Comm_dup)               \
  X(Comm_free)              \
  X(Comm_get_attr)          \
  X(Comm_group)             \
  X(Comm_rank)              \
  X(Comm_set_attr)          \
  X(Comm_set_errhandler)    \
  X(Comm_size)              \
  X(Comm_split_type)        \
  X(Comm_test_inter)        \
  X(Error_class)            \
  X(Error_string)           \
  X(Errhandler_free)        \
  X(Get_count)              \
  X(Grequest_complete)      \
  X(Grequest_start)         \
  X(Iallgather)             \
  X(Ibarrier)               \
  X(Ibcast)                 \
  X(Improbe)                \
  X(Info_create)            \
  X(Info_get)               \
  X(Info_get_nkeys)         \
  X(Info_get_nthkey)        \
  X(Info_set)               \
  X(Initialized)            \
  X(Iprobe)                 \
  X(Irecv)                  \
  X(Irsend)                 \
  X(Isend)                  \
  X(Issend)                 \
  X(Allreduce)              \
  X(Mrecv)                  \
  X(Pack)                   \
  X(Pack_external)          \
  X(Pack_external_size)     \
  X(Query_thread)           \
  X(Request_free)           \
  X(Status_set_cancelled)   \
  X(PIO_STATUS_SET_ELEMENTS)\
  X(Test)                   \
  X(Testall)                \
  X(Testany)                \
  X(Testsome)               \
  X(Type_create_keyval)     \
  X(Type_dup)               \
  X(Type_free)              \
  X(Type_get_attr)          \
  X(Type_get_contents)      \
  X(Type_get_envelope)      \
  PIO_LARGE_TYPES(X)        \
  X(Type_get_extent)        \
  X(Type_get_extent_x)      \
  X(Type_get_true_extent_x) \
  X(Type_set_attr)          \
  X(Type_size_x)            \
  X(Unpack_external)

#define PIO_JOIN(a, b) a##b
#define PIO_MEMBER(name) __typeof__(PIO_JOIN(MPI_, name)) *name;

/* The handles that we need; in Open MPI they are addresses, to be looked up as well. */
struct pio_native {
  PIO_FUNCTIONS(PIO_MEMBER)
  MPI_Comm comm_null, comm_self, comm_world;
  MPI_Datatype byte, packed, type_int, datatype_null;
  MPI_Errhandler errhandler_null, errors_are_fatal, errors_return, errors_abort;
  MPI_File file_null;
  MPI_Info info_null;
  MPI_Op min;
  MPI_Request request_null;
};
#undef PIO_MEMBER

PIO_HIDDEN extern struct pio_native pio;
PIO_HIDDEN extern const struct pio_mpi pio_table;

struct pio_communicator {
  MPI_Comm comm;
};

/* Finds the MPI that `caller` (a code address) uses. Ends the process, with the reason, if there is none. */
PIO_HIDDEN void pio_find_mpi(void *caller);

/* The next definition of an MPI function after ours, which `caller` (a code address) called. */
PIO_HIDDEN void *pio_next(const char *name, void *caller);

/* Told by the core: see `complete` in pio_mpiio.h. */
PIO_HIDDEN void pio_operation_complete(void *token, int status, uint64_t moved);

#endif
