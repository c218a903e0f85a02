/* What the POSIX recorder offers to the other libraries in the process: the MPI recorder, and Pioscope's own MPI-IO.
 *
 * Find these by dlsym(RTLD_DEFAULT, name): they are absent when nothing is recorded. All may be called at any time, from
 * any thread; they leave errno alone.
 */
#ifndef PIO_RECORDER_H
#define PIO_RECORDER_H

#include <stddef.h>
#include <stdint.h>

/* When a call began, and the CPU time its thread used since its last recorded call. */
struct pioscope_span {
    uint64_t start_ns; /* CLOCK_MONOTONIC */
    uint64_t think_ns;
    uint64_t cpu_ns; /* the thread's CPU clock at the start, 0 if it was not read */
};

/* An MPI-IO call. */
struct pioscope_io {
    uint32_t call;     /* PIO_CALL_MPI_FILE_... */
    uint32_t flags;    /* PIO_COLLECTIVE, PIO_ASYNC, PIO_APPEND */
    uint32_t file;     /* this process's number for the MPI file */
    uint32_t ranks;    /* open: size of the communicator */
    uint64_t view;     /* id by pioscope_define_view */
    uint64_t memory;   /* id by pioscope_define_datatype */
    uint64_t position; /* first data byte in the view, or PIO_NO_OFFSET */
    uint64_t size;     /* bytes asked for */
    const char *path;  /* open, delete: absolute path */
};

/* From begin to end, the thread's POSIX calls and messages belong to one operation, whose id begin returns. An operation
 * within an operation is the same one, but not within a call of HDF5 or PnetCDF: what MPI-IO does for that has its own. */
uint64_t pioscope_operation_begin(void);
void pioscope_operation_end(void);

/* Goes on with an operation that began earlier (the second half of a split collective). */
void pioscope_operation_resume(uint64_t operation);

/* What the thread does from now on belongs to this operation, 0 for none; returns the one before, to be switched back to. For
 * an operation that goes on after its call, in whatever thread. */
uint64_t pioscope_operation_switch(uint64_t operation);

/* A message that was sent or received: times by CLOCK_MONOTONIC, peer -1 for none, result as in pio_trace::Event. */
void pioscope_record_message(uint32_t call, int32_t peer, uint64_t bytes, uint64_t start_ns, uint64_t end_ns,
                             int64_t result);

/* A request to an I/O server that was answered: where its first byte is in the file, the bytes that it asked to move, and
 * otherwise as for messages. */
void pioscope_record_request(uint32_t call, int32_t server, uint64_t offset, uint64_t bytes, uint64_t start_ns,
                             uint64_t end_ns, int64_t result);

/* Within a call of MPI that is no operation of MPI-IO: what MPI does in it is not the program's own. Where it goes on with an
 * operation that began earlier, as a wait for its request does, what it does belongs to that, by its id; else (0) to the
 * operation that the thread is in, or to none of the program's. Returns the one before, for pioscope_operation_switch(). */
uint64_t pioscope_inside_mpi(uint64_t operation);

/* The same for a message call, which is recorded. Pass begin's result to end. */
uint64_t pioscope_message_begin(struct pioscope_span *span, uint64_t operation);
void pioscope_message_end(const struct pioscope_span *span, uint64_t before, uint32_t call, int32_t peer, uint64_t bytes,
                          int64_t result);

/* An MPI-IO call: an operation whose record is visible, as unfinished, from begin on. Pass begin's result to end, with
 * the bytes moved (or minus the error class). The operation's id is stored in *operation. */
void *pioscope_io_begin(const struct pioscope_io *io, uint64_t *operation);
void pioscope_io_end(void *record, int64_t result);

/* Ids of what calls refer to: each content is written once. */
uint64_t pioscope_define_datatype(const unsigned char *description, size_t length);
uint64_t pioscope_define_view(uint64_t displacement, uint64_t etype_bytes, uint64_t filetype);

/* The program gave these hints for a file of its number: key, value, key, value, …, each with a zero byte behind it. Of a key that is
 * given several times the last value counts. */
void pioscope_give_hints(uint32_t file, const char *hints, size_t length);

/* Rank in and size of MPI_COMM_WORLD. */
void pioscope_set_rank(int32_t rank, int32_t ranks);

/* MPI_Abort was called: the process did not end by itself. */
void pioscope_aborted(void);

#endif
