/* The bytes of a spool: what one process leaves behind for the collector (src/spool.rs reads the same bytes).
 *
 * A spool is one file, written through shared mappings only, so that everything recorded survives the death of the
 * process at any instruction:
 *
 *     0       header, 4096 bytes
 *     4096    chunks, each a multiple of 4096 bytes, each filled by one thread from its start; zeros are unused room
 *
 * A chunk is a 64-byte chunk header followed by records. A record is a multiple of 64 bytes. The first word of either
 * is stored last, with release order: zero means that nothing (more) follows in this chunk.
 */
#ifndef PIO_SPOOL_H
#define PIO_SPOOL_H

#include <stddef.h>
#include <stdint.h>

#define PIO_SPOOL_MAGIC "PIOSPOOL"
#define PIO_SPOOL_VERSION 1u
#define PIO_CHUNK_MAGIC 0x4b4e4843u /* "CHNK" */
#define PIO_HEADER_BYTES 4096u
#define PIO_FIRST_CHUNK_BYTES 4096u /* most threads make few calls */
#define PIO_CHUNK_BYTES 16384u
#define PIO_UNIT_BYTES 64u
#define PIO_COMMAND_BYTES 3856u

/* Bits of pio_header.ended. */
#define PIO_ENDED_NORMALLY 1u
#define PIO_ENDED_BY_MPI_ABORT 2u

/* Flags of a record: those of pio_trace::Flags. */
#define PIO_PHYSICAL 1u
#define PIO_COLLECTIVE 2u
#define PIO_ASYNC 4u
#define PIO_APPEND 8u
#define PIO_UNFINISHED 16u

/* Records that are no calls. Calls have the numbers of pio_calls.h. */
#define PIO_RECORD_ADOPT 0xf001u    /* a descriptor that was open before we saw it: fd, offset, size = length of path */
#define PIO_RECORD_DATATYPE 0xf002u /* piece of a datatype description: offset = its id, size = length of the whole,
                                       result = where this piece starts, think_ns = its length */
#define PIO_RECORD_VIEW 0xf003u     /* a view: offset = its id, payload pio_view */

/* No offset was given: the call worked at the descriptor's own position. */
#define PIO_NO_OFFSET UINT64_MAX

/* The id of plain contiguous bytes, as memory datatype and as view: never defined. */
#define PIO_PLAIN 0u

struct pio_header {
    char magic[8];
    uint32_t version;
    uint32_t pid;
    uint32_t parent_pid;
    int32_t rank;  /* in MPI_COMM_WORLD, -1 if no MPI process */
    int32_t ranks; /* of MPI_COMM_WORLD, 0 if no MPI process */
    uint32_t ended;
    uint64_t next;         /* where the next chunk goes, atomic */
    uint64_t dropped;      /* records lost for want of room, atomic */
    uint64_t realtime_ns;  /* both clocks, read together */
    uint64_t monotonic_ns;
    uint64_t start_ns;     /* when the process was first seen, CLOCK_MONOTONIC */
    uint64_t end_ns;       /* when it ended, if it ended normally */
    char boot_id[40];      /* one clock per boot: hosts are aligned by it */
    char host[104];
    uint32_t command_length;
    uint32_t reserved;
    uint64_t reserved2;
    char command[PIO_COMMAND_BYTES];
};

struct pio_chunk {
    uint32_t magic; /* stored last */
    uint32_t bytes;
    uint32_t thread;
    uint32_t sequence;
    uint64_t reserved[6];
};

struct pio_record {
    uint32_t word; /* stored last: call, length in units of 64 bytes << 16, flags << 24 */
    int32_t fd;    /* MPI-IO: number of the MPI file; messages: the peer, -1 for none */
    uint64_t start_ns;
    uint64_t elapsed_ns;
    uint64_t think_ns;
    uint64_t offset;
    uint64_t size;
    int64_t result; /* minus the error number (class) if negative */
    uint64_t operation;
};

/* What follows the record of an MPI-IO call. */
struct pio_mpi_part {
    uint64_t view;   /* id of the view in force */
    uint64_t memory; /* id of the memory datatype */
    uint32_t ranks;  /* open: size of the communicator */
    uint32_t path_bytes; /* open: length of the path, which follows */
    uint64_t reserved[5];
};

/* The payload of PIO_RECORD_VIEW. */
struct pio_view {
    uint64_t displacement;
    uint64_t etype_bytes;
    uint64_t filetype; /* id of a datatype */
    uint64_t reserved[5];
};

_Static_assert(sizeof(struct pio_header) == PIO_HEADER_BYTES, "header");
_Static_assert(offsetof(struct pio_header, next) == 32, "header");
_Static_assert(offsetof(struct pio_header, command_length) == 224, "header");
_Static_assert(offsetof(struct pio_header, command) == 240, "header");
_Static_assert(sizeof(struct pio_chunk) == PIO_UNIT_BYTES, "chunk");
_Static_assert(sizeof(struct pio_record) == PIO_UNIT_BYTES, "record");
_Static_assert(sizeof(struct pio_mpi_part) == PIO_UNIT_BYTES, "MPI part");
_Static_assert(sizeof(struct pio_view) == PIO_UNIT_BYTES, "view");

#endif
