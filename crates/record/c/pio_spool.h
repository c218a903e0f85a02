/* The bytes of a spool: what one process leaves behind for the collector (src/spool.rs reads the same bytes).
 *
 * A spool is one file, written through shared mappings only, so that everything recorded survives the death of the
 * process at any instruction:
 *
 *     0       header, 4096 bytes
 *     4096    chunks, each a multiple of 4096 bytes, each filled by one thread from its start; zeros are unused room
 *
 * A chunk is a 64-byte chunk header followed by records, all whole or all short. A whole record is a multiple of 64
 * bytes, a short one 16 to 56. The first word of either is stored last, with release order: zero means that nothing (more)
 * follows in this chunk. The records of a thread are two streams of chunks, one of each kind, each in order of sequence.
 *
 * Short records are for the many: calls that the program itself made, without a payload. They say when they began
 * relative to the end of the one before them in the chunk.
 *
 * A thread writes short records into the same mapped chunk again and again: to touch new pages of a mapping costs more
 * than all else that a record does. When the chunk is full, the thread writes a copy to the end of the file, clears the
 * chunk, and gives it the next sequence number. A process that is killed in between leaves both, whole; one that is
 * killed while it writes leaves a copy that need not be whole. So of two chunks with the same number the first counts.
 */
#ifndef PIO_SPOOL_H
#define PIO_SPOOL_H

#include <stddef.h>
#include <stdint.h>

#define PIO_SPOOL_MAGIC "PIOSPOOL"
#define PIO_SPOOL_VERSION 7u
#define PIO_CHUNK_MAGIC 0x4b4e4843u /* "CHNK" */
#define PIO_HEADER_BYTES 4096u
#define PIO_FIRST_CHUNK_BYTES 4096u /* most threads make few calls */
#define PIO_CHUNK_BYTES 16384u       /* of whole records */
#define PIO_SHORT_CHUNK_BYTES 65536u /* of short ones, from the second on */
#define PIO_MOST_SHORT_BYTES 56u
#define PIO_UNIT_BYTES 64u
#define PIO_COMMAND_BYTES 3648u

/* Bits of pio_header.ended. */
#define PIO_ENDED_NORMALLY 1u
#define PIO_ENDED_BY_MPI_ABORT 2u

/* Flags of a record: those of pio_trace::Flags, and the last. */
#define PIO_PHYSICAL 1u
#define PIO_COLLECTIVE 2u
#define PIO_ASYNC 4u
#define PIO_APPEND 8u
#define PIO_UNFINISHED 16u
#define PIO_SYNC 32u   /* of an open: O_SYNC or O_DSYNC */
#define PIO_DIRECT 64u /* of an open: O_DIRECT */
#define PIO_SHORT 128u
/* An open that succeeded has the path for a payload, and its length for a size. If its call site is known, the result is the id of
 * its name, and the number of the line follows the path, 8 bytes; else the result is 0. */
/* In the place of the offset of an open: the file was there to be read, and memory had less than half of it; what it had was cut
 * off (O_TRUNC); plus the number of its device, shifted by this. */
#define PIO_COLD 1u
#define PIO_TRUNCATE 2u
#define PIO_DEVICE_SHIFT 2u

#define PIO_NO_FD UINT16_MAX

/* What a short record has behind its fixed part, in this order, 8 bytes each. */
#define PIO_HAS_THINK 1u  /* think time; else it is the gap */
#define PIO_HAS_SIZE 2u   /* else it is that of the short record before it in the chunk (0 for the first) */
#define PIO_HAS_OFFSET 4u /* else see PIO_GOES_ON */
#define PIO_HAS_RESULT 8u /* else the result is the size */
/* The offset is where the short record before it in the chunk ended: its offset + its result, if that is not negative.
 * Without this and without an offset: PIO_NO_OFFSET. */
#define PIO_GOES_ON 16u
/* First of all that follows: when it began. Else gap_ns says it. */
#define PIO_HAS_START 32u

/* Records that are no calls. Calls have the numbers of pio_calls.h. */
#define PIO_RECORD_ADOPT 0xf001u    /* a descriptor that was open before we saw it: fd, offset, size = length of path,
                                       result = the number of its device */
#define PIO_RECORD_DATATYPE 0xf002u /* piece of a datatype description: offset = its id, size = length of the whole,
                                       result = where this piece starts, think_ns = its length */
#define PIO_RECORD_VIEW 0xf003u     /* a view: offset = its id, payload pio_view */
#define PIO_RECORD_NOTHING 0xf005u  /* a record that was taken back */
#define PIO_RECORD_NAME 0xf004u     /* a path that calls name: offset = its id, size = its length, which follows */
#define PIO_RECORD_HINTS 0xf006u    /* hints for an MPI file: fd = its number, size = length of what follows: key, value, key, …,
                                       each with a zero byte behind it */
#define PIO_RECORD_DEVICE 0xf007u   /* what a device has: offset = its number, size = the type that statfs says */
#define PIO_RECORD_MARK_NAME 0xf008u /* the name of marks and phases: offset = its id, size = its length, which follows */
#define PIO_RECORD_CALL_SITE 0xf009u /* the same of a call site, without its line */

/* No offset was given: the call worked at the descriptor's own position. Calls without a descriptor have the id of their
 * path there, or this; marks and phases that of their name, and their number for a size. */
#define PIO_NO_OFFSET UINT64_MAX

/* In the place of the offset of a message of MPI: the thread used its processor all the time. Else there is the CPU time that
 * it used within the call, ns. What a strategy sends has this, too, and nothing is known of it. */
#define PIO_ALL_USED PIO_NO_OFFSET

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
    uint64_t major_faults; /* since the process first mapped a file, as far as it came to say so */
    /* What the budget did not allow: calls, and bytes that they moved, of reads, writes and all others, atomic. */
    uint64_t thinned_calls[3];
    uint64_t thinned_bytes[3];
    uint64_t keeps_one_in; /* of so many calls, at the end; 0 or 1: all were kept */
    uint64_t processors[8]; /* that the rank may use, a bit each; all 0: not known, or no MPI process */
    uint64_t fault_device_bytes; /* … and bytes that it caused to be read from devices meanwhile */
    /* Rings (io_uring) that could not be followed, atomic; and where there are any, at the end, what the process moved to
     * and from devices. */
    uint64_t unseen_rings;
    uint64_t device_bytes_known;
    uint64_t device_read_bytes;
    uint64_t device_written_bytes;
    char command[PIO_COMMAND_BYTES];
    /* Of a rank, since MPI_Init, and 1 more; 0: not known. */
    uint64_t sleeps; /* how often it gave its processor away to wait */
    uint64_t processor_waits_ns; /* how long it could run and had no processor */
    /* Of the dropped records, those of reads and of writes, and the bytes that they moved, atomic. */
    uint64_t lost_calls[2];
    uint64_t lost_bytes[2];
};

struct pio_chunk {
    uint32_t magic; /* stored last */
    uint32_t bytes;
    uint32_t thread;
    uint32_t sequence;
    uint32_t is_short;
    uint32_t reserved;
    uint64_t reserved2[5];
};

struct pio_record {
    uint32_t word; /* stored last: call, length in units of 64 bytes << 16, flags << 24 */
    int32_t fd;    /* MPI-IO: number of the MPI file; HDF5, PnetCDF: of their file, 0 for none; messages: the peer, -1 for none; requests: the server */
    uint64_t start_ns;
    uint64_t elapsed_ns;
    uint64_t think_ns;
    uint64_t offset;
    uint64_t size;
    int64_t result; /* minus the error number (class) if negative */
    uint64_t operation;
};

struct pio_short_record {
    uint32_t word; /* stored last: call, length in units of 8 bytes << 16, flags | PIO_SHORT << 24 */
    uint16_t fd; /* PIO_NO_FD for none */
    uint16_t form; /* PIO_HAS_..., PIO_GOES_ON */
    uint32_t gap_ns;
    uint32_t elapsed_ns;
};

/* What follows the record of a call of MPI-IO, HDF5 or PnetCDF (which have neither view nor memory datatype). */
struct pio_mpi_part {
    uint64_t view;   /* id of the view in force */
    uint64_t memory; /* id of the memory datatype */
    uint32_t ranks;  /* open: size of the communicator */
    uint32_t path_bytes; /* open: length of the path, which follows */
    uint64_t cpu_ns;     /* the thread's CPU time when the call began */
    uint64_t used_ns;    /* CPU time that it used within, if the record is finished */
    uint64_t reserved[3];
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
_Static_assert(offsetof(struct pio_header, command) == 400, "header");
_Static_assert(sizeof(struct pio_chunk) == PIO_UNIT_BYTES, "chunk");
_Static_assert(offsetof(struct pio_header, thinned_calls) == 240, "header");
_Static_assert(offsetof(struct pio_header, major_faults) == 232, "header");
_Static_assert(offsetof(struct pio_header, fault_device_bytes) == 360, "header");
_Static_assert(offsetof(struct pio_header, unseen_rings) == 368, "header");
_Static_assert(offsetof(struct pio_header, sleeps) == 4048, "header");
_Static_assert(offsetof(struct pio_header, processor_waits_ns) == 4056, "header");
_Static_assert(offsetof(struct pio_header, lost_calls) == 4064, "header");
_Static_assert(sizeof(struct pio_record) == PIO_UNIT_BYTES, "record");
_Static_assert(sizeof(struct pio_short_record) == 16, "short record");
_Static_assert(sizeof(struct pio_mpi_part) == PIO_UNIT_BYTES, "MPI part");
_Static_assert(sizeof(struct pio_view) == PIO_UNIT_BYTES, "view");

#endif
