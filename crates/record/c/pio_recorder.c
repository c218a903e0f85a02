/* What the other libraries of the process may ask of the recorder (pio_recorder.h). */
#include "pio_kernel.h"
#include "pio_names.h"
#include "pio_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

EXPORT uint64_t pioscope_operation_begin(void) {
    if (!recording())
        return 0;
    meet_thread();
    if (pio_self.depth++ == 0)
        pio_self.operation = pio_new_operation();
    return pio_self.operation;
}

EXPORT void pioscope_operation_resume(uint64_t operation) {
    if (!recording())
        return;
    meet_thread();
    if (pio_self.depth++ == 0)
        pio_self.operation = operation;
}

EXPORT void pioscope_operation_end(void) {
    int saved = errno;
    meet_thread();
    if (pio_self.depth > 0 && --pio_self.depth == 0) {
        pio_self.operation = pio_self.library;
        thinking_begins(now_ns());
    }
    errno = saved;
}

EXPORT uint64_t pioscope_operation_switch(uint64_t operation) {
    if (!recording())
        return 0;
    int saved = errno;
    meet_thread();
    uint64_t before = pio_self.operation;
    pio_self.operation = operation;
    errno = saved;
    return before;
}

EXPORT void pioscope_record_request(uint32_t call, int32_t server, uint64_t offset, uint64_t bytes, uint64_t start_ns,
                                    uint64_t end_ns, int64_t result) {
    if (!recording())
        return;
    int saved = errno;
    meet_thread();
    struct pioscope_span span = {start_ns, 0, 0};
    record_call(&span, end_ns < start_ns ? start_ns : end_ns,
                (struct outcome){call, 0, server, offset, bytes, result}, NULL, 0);
    errno = saved;
}

EXPORT void pioscope_record_message(uint32_t call, int32_t peer, uint64_t bytes, uint64_t start_ns, uint64_t end_ns,
                                    int64_t result) {
    pioscope_record_request(call, peer, PIO_NO_OFFSET, bytes, start_ns, end_ns, result);
}

/* The thread's part of pioscope_inside_mpi(). */
static inline uint64_t go_inside_mpi(uint64_t operation) {
    uint64_t before = pio_self.operation;
    pio_self.operation = operation != 0 ? operation : before != 0 ? before : PIO_OPERATION_OF_MPI;
    return before;
}

EXPORT uint64_t pioscope_inside_mpi(uint64_t operation) {
    if (!recording())
        return 0;
    meet_thread();
    return go_inside_mpi(operation);
}

EXPORT uint64_t pioscope_message_begin(struct pioscope_span *span, uint64_t operation) {
    int saved = errno;
    pio_used_span_begin(span);
    errno = saved;
    return go_inside_mpi(operation);
}

EXPORT void pioscope_message_end(const struct pioscope_span *span, uint64_t before, uint32_t call, int32_t peer,
                                 uint64_t bytes, int64_t result) {
    pio_self.operation = before;
    if (!recording())
        return;
    int saved = errno;
    uint64_t end_ns = end_of(span);
    uint64_t used_ns = span_used(span, end_ns);
    if (LIKELY(used_ns == end_ns - span->start_ns))
        used_ns = PIO_ALL_USED;
    record_call(span, end_ns, (struct outcome){call, 0, peer, used_ns, bytes, result}, NULL, 0);
    thinking_begins(end_ns < pio_self.sample_ns ? pio_self.sample_ns : end_ns);
    errno = saved;
}

EXPORT void *pioscope_io_begin(const struct pioscope_io *io, uint64_t *operation) {
    *operation = 0;
    if (!recording())
        return NULL;
    int saved = errno;
    /* A call that opens nothing has its path's id in place of a position, as those of POSIX have. */
    struct pioscope_io named;
    if (io->call == PIO_CALL_MPI_FILE_DELETE && io->path != NULL) {
        named = *io;
        named.path = NULL;
        pio_is_name_kept(AT_FDCWD, io->path, &named.position);
        io = &named;
    }
    struct pioscope_span span;
    pio_used_span_begin(&span);
    uint32_t flags = io->flags | (pio_self.operation != 0 ? PIO_PHYSICAL : 0);
    *operation = pioscope_operation_begin();
    struct pio_record *record = pio_begin_io_record(io, &span, flags);
    if (io->call == PIO_CALL_MPI_FILE_OPEN && io->ranks > pio_self.library_ranks)
        pio_self.library_ranks = io->ranks;
    errno = saved;
    return record;
}

EXPORT void pioscope_io_end(void *token, int64_t result) {
    int saved = errno;
    pio_end_operation(token, result);
    pioscope_operation_end();
    errno = saved;
}

/* What was defined already: a set of ids. Where two threads race, or the set is full, a content is written twice: the
 * collector does not mind. */
static uint64_t defined[4096];

/* If it is not, it is from now on, and `place` says where: NULL if the set is full. */
static bool is_defined(uint64_t id, uint64_t **place) {
    for (size_t probe = 0; probe < 16; probe++) {
        *place = &defined[(id + probe) % (sizeof defined / sizeof defined[0])];
        uint64_t seen = LOAD(*place);
        if (seen == id)
            return true;
        if (seen == 0) {
            STORE(*place, id);
            return false;
        }
    }
    *place = NULL;
    return false;
}

/* It could not be written: the next call is to try again. */
static void is_not_defined(uint64_t *place) {
    if (place != NULL)
        STORE(place, 0);
}

EXPORT uint64_t pioscope_define_datatype(const unsigned char *description, size_t length) {
    if (!recording() || length == 0)
        return PIO_PLAIN;
    uint64_t id = pio_content_id(description, length, PIO_RECORD_DATATYPE);
    uint64_t *place;
    if (is_defined(id, &place))
        return id;
    int saved = errno;
    const size_t most = PIO_CHUNK_BYTES - 2 * PIO_UNIT_BYTES;
    for (size_t done = 0; done < length;) {
        size_t piece = length - done < most ? length - done : most;
        unsigned units = 1 + (unsigned)((piece + PIO_UNIT_BYTES - 1) / PIO_UNIT_BYTES);
        struct pio_record *record = pio_reserve(units);
        if (record == NULL) {
            is_not_defined(place);
            break;
        }
        record->offset = id;
        record->size = length;
        record->result = (int64_t)done;
        record->think_ns = piece;
        memcpy(record + 1, description + done, piece);
        publish(record, PIO_RECORD_DATATYPE, units, 0);
        done += piece;
    }
    errno = saved;
    return id;
}

EXPORT uint64_t pioscope_define_view(uint64_t displacement, uint64_t etype_bytes, uint64_t filetype) {
    if (!recording())
        return PIO_PLAIN;
    struct pio_view view = {.displacement = displacement, .etype_bytes = etype_bytes, .filetype = filetype};
    uint64_t id = pio_content_id((const unsigned char *)&view, sizeof view, PIO_RECORD_VIEW);
    uint64_t *place;
    if (is_defined(id, &place))
        return id;
    int saved = errno;
    struct pio_record *record = pio_reserve(2);
    if (record != NULL) {
        record->offset = id;
        memcpy(record + 1, &view, sizeof view);
        publish(record, PIO_RECORD_VIEW, 2, 0);
    } else {
        is_not_defined(place);
    }
    errno = saved;
    return id;
}

EXPORT void pioscope_give_hints(uint32_t file, const char *hints, size_t length) {
    if (!recording() || length == 0 || length > PIO_CHUNK_BYTES - 2 * PIO_UNIT_BYTES)
        return;
    int saved = errno;
    unsigned units = 1 + (unsigned)((length + PIO_UNIT_BYTES - 1) / PIO_UNIT_BYTES);
    struct pio_record *record = pio_reserve(units);
    if (record != NULL) {
        record->fd = (int32_t)file;
        record->start_ns = now_ns();
        record->size = length;
        memcpy(record + 1, hints, length);
        publish(record, PIO_RECORD_HINTS, units, 0);
    }
    errno = saved;
}

EXPORT void pioscope_set_rank(int32_t rank, int32_t ranks) {
    int saved = errno;
    if (recording() && is_owner() && pio_spool_is_open()) {
        pio_spool.header->rank = rank;
        pio_spool.header->ranks = ranks;
        /* By the kernel's own call: it fails where there are more processors than bits. */
        KERNEL(SYS_sched_getaffinity, 0, sizeof pio_spool.header->processors, pio_spool.header->processors);
        pio_rank_starts();
    }
    errno = saved;
}

EXPORT void pioscope_aborted(void) {
    int saved = errno;
    pio_mark_ended(PIO_ENDED_BY_MPI_ABORT);
    errno = saved;
}
