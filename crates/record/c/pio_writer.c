#include "pio_writer.h"
#include "pio_kernel.h"

#include <fcntl.h>
#include <string.h>

/* Threads -------------------------------------------------------------------------------------------------------- */

/* Room for a chunk: its place in the file, which lies in one segment. */
static uint64_t chunk_place(uint32_t bytes) {
    for (;;) { /* what is left over at the end of a segment stays zero */
        uint64_t offset = __atomic_fetch_add(&pio_spool.header->next, bytes, __ATOMIC_RELAXED);
        if (segment_of(offset) == segment_of(offset + bytes - 1))
            return offset;
    }
}

/* The same, or the room that could not be used the last time. */
static uint64_t take_place(uint32_t bytes) {
    if (pio_self.kept_bytes != bytes)
        return chunk_place(bytes);
    pio_self.kept_bytes = 0;
    return pio_self.kept_place;
}

/* After room at `place` could not be used, for the reason that errno says. */
static void no_room(uint64_t place, uint32_t bytes) {
    if (is_passing(errno)) {
        pio_self.retry_ns = now_ns() + RETRY_NS;
        pio_self.kept_place = place;
        pio_self.kept_bytes = bytes;
    } else {
        STORE(&pio_spool.full, true);
    }
}

static bool may_ask_for_room(void) {
    return !LOAD(&pio_spool.full) && (LIKELY(pio_self.retry_ns == 0) || now_ns() >= pio_self.retry_ns);
}

static struct pio_chunk *new_chunk(uint32_t bytes, uint32_t sequence, bool is_short) {
    if (!may_ask_for_room() || !pio_spool_is_open())
        return NULL;
    pio_look_at_budget();
    uint64_t offset = take_place(bytes);
    size_t segment = segment_of(offset);
    char *address = pio_promise(offset, bytes) ? pio_segment_address(segment) : NULL;
    if (address == NULL) {
        no_room(offset, bytes);
        return NULL;
    }
    if (!pio_self.has_number) {
        pio_self.has_number = true;
        pio_self.number = __atomic_fetch_add(&pio_spool.threads, 1, __ATOMIC_RELAXED);
    }
    struct pio_chunk *chunk = (struct pio_chunk *)(address + (offset - segment_start(segment)));
    chunk->bytes = bytes;
    chunk->thread = pio_self.number;
    chunk->sequence = sequence;
    chunk->is_short = is_short;
    RELEASE(&chunk->magic, PIO_CHUNK_MAGIC);
    return chunk;
}

/* Gives the thread a new chunk for whole records, with room for one of any length. */
static __attribute__((noinline)) bool take_whole_chunk(size_t bytes) {
    int saved = errno;
    uint32_t size = pio_self.whole_chunks == 0 && bytes <= PIO_UNIT_BYTES * 4 ? PIO_FIRST_CHUNK_BYTES : PIO_CHUNK_BYTES;
    struct pio_chunk *chunk = new_chunk(size, pio_self.whole_chunks, false);
    errno = saved;
    if (chunk == NULL)
        return false;
    pio_self.whole_chunks++;
    pio_self.whole_cursor = (char *)(chunk + 1);
    pio_self.whole_end = (char *)chunk + size;
    return true;
}

/* Copies the thread's full chunk to a place in the file; errno says why it could not. */
static bool copy_chunk_to(uint64_t offset) {
    if (!pio_promise(offset, PIO_SHORT_CHUNK_BYTES))
        return false;
    if (!pio_may_grow_to(offset + PIO_SHORT_CHUNK_BYTES)) {
        errno = EFBIG;
        return false;
    }
    int fd = (int)KERNEL(SYS_openat, AT_FDCWD, pio_spool.path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    long written = KERNEL(SYS_pwrite64, fd, pio_self.chunk, PIO_SHORT_CHUNK_BYTES, (off_t)offset);
    KERNEL(SYS_close, fd);
    errno = EIO;
    return written == (long)PIO_SHORT_CHUNK_BYTES;
}

/* Copies it to the end. */
static bool copy_chunk(void) {
    if (!may_ask_for_room())
        return false;
    uint64_t offset = take_place(PIO_SHORT_CHUNK_BYTES);
    if (copy_chunk_to(offset))
        return true;
    no_room(offset, PIO_SHORT_CHUNK_BYTES);
    return false;
}

/* An empty chunk for short records; NULL if there is no room. */
static struct pio_chunk *next_short_chunk(void) {
    struct pio_chunk *chunk = pio_self.chunk;
    if (chunk != NULL && chunk->bytes == PIO_SHORT_CHUNK_BYTES) {
        if (!copy_chunk())
            return NULL;
        pio_look_at_budget();
        uint32_t sequence = chunk->sequence + 1;
        RELEASE(&chunk->magic, 0);
        __atomic_thread_fence(__ATOMIC_RELEASE);
        memset(chunk + 1, 0, PIO_SHORT_CHUNK_BYTES - sizeof *chunk);
        chunk->sequence = sequence;
        RELEASE(&chunk->magic, PIO_CHUNK_MAGIC);
        return chunk;
    }
    return chunk == NULL ? new_chunk(PIO_FIRST_CHUNK_BYTES, 0, true)
                         : new_chunk(PIO_SHORT_CHUNK_BYTES, chunk->sequence + 1, true);
}

/* Gives it to the thread. */
static __attribute__((noinline)) bool take_short_chunk(void) {
    int saved = errno;
    struct pio_chunk *chunk = next_short_chunk();
    errno = saved;
    if (chunk == NULL)
        return false;
    pio_self.chunk = chunk;
    pio_self.base_ns = 0;
    pio_self.last_size = 0;
    pio_self.last_end = 0;
    pio_self.cursor = (char *)(chunk + 1);
    pio_self.end = (char *)chunk + chunk->bytes;
    return true;
}

/* Calls that have returned ----------------------------------------------------------------------------------------- */

__attribute__((noinline)) void pio_drop(void) {
    bool is_open = ACQUIRE(&pio_spool.state) == SPOOL_OPEN;
    __atomic_fetch_add(is_open ? &pio_spool.header->dropped : &pio_spool.early_drops, 1, __ATOMIC_RELAXED);
}

/* Calls that the budget never drops: without them, what the others work on would not be known. */
#define ALWAYS_KEPT 3u

static unsigned kind_of(uint32_t call) {
    switch (call) {
    case PIO_CALL_OPEN:
    case PIO_CALL_CREAT:
    case PIO_CALL_CLOSE:
    case PIO_CALL_DUP:
    case PIO_CALL_FOPEN:
    case PIO_CALL_FCLOSE:
        return ALWAYS_KEPT;
    case PIO_CALL_READ:
    case PIO_CALL_PREAD:
    case PIO_CALL_READV:
    case PIO_CALL_PREADV:
    case PIO_CALL_FREAD:
    case PIO_CALL_AIO_READ:
    case PIO_CALL_LIBAIO_READ:
    case PIO_CALL_IO_URING_READ:
        return 0;
    case PIO_CALL_WRITE:
    case PIO_CALL_PWRITE:
    case PIO_CALL_WRITEV:
    case PIO_CALL_PWRITEV:
    case PIO_CALL_FWRITE:
    case PIO_CALL_AIO_WRITE:
    case PIO_CALL_LIBAIO_WRITE:
    case PIO_CALL_IO_URING_WRITE:
        return 1;
    default:
        return 2;
    }
}

/* Whether the budget spares this call; if it does not, it is counted: 0 reads, 1 writes, 2 others. */
static __attribute__((noinline)) bool is_thinned_out(unsigned kind, int64_t result) {
    if ((pio_self.thinned++ & LOAD(&pio_spool.thinning)) == 0)
        return false;
    __atomic_fetch_add(&pio_spool.header->thinned_calls[kind], 1, __ATOMIC_RELAXED);
    if (result > 0)
        __atomic_fetch_add(&pio_spool.header->thinned_bytes[kind], (uint64_t)result, __ATOMIC_RELAXED);
    return true;
}

bool pio_spared(uint32_t call, int64_t result) {
    unsigned kind = kind_of(call);
    return kind == ALWAYS_KEPT || !is_thinned_out(kind, result);
}

/* Beside pio_drop(): what was lost with the record. */
static __attribute__((noinline)) void count_lost(uint32_t call, int64_t result) {
    unsigned kind = kind_of(call);
    if (kind > 1 || ACQUIRE(&pio_spool.state) != SPOOL_OPEN)
        return;
    __atomic_fetch_add(&pio_spool.header->lost_calls[kind], 1, __ATOMIC_RELAXED);
    if (result > 0)
        __atomic_fetch_add(&pio_spool.header->lost_bytes[kind], (uint64_t)result, __ATOMIC_RELAXED);
}

/* From here to end_writing() a signal handler must not record: false in such a handler. */
static inline bool begin_writing(void) {
    if (UNLIKELY(pio_self.busy)) {
        pio_drop();
        return false;
    }
    pio_self.busy = true;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return true;
}

static inline void end_writing(void) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    pio_self.busy = false;
}

/* A whole record of this many units, zero, to be filled and published; NULL if there is no room. */
static inline struct pio_record *take_whole(unsigned units) {
    size_t bytes = (size_t)units * PIO_UNIT_BYTES;
    if ((size_t)(pio_self.whole_end - pio_self.whole_cursor) >= bytes || take_whole_chunk(bytes)) {
        struct pio_record *taken = (struct pio_record *)pio_self.whole_cursor;
        pio_self.whole_cursor += bytes;
        return taken;
    }
    pio_drop();
    return NULL;
}

struct pio_record *pio_reserve(unsigned units) {
    meet_thread();
    if (!begin_writing())
        return NULL;
    struct pio_record *record = take_whole(units);
    end_writing();
    return record;
}

__attribute__((noinline)) void pio_record_whole(const struct pioscope_span *span, uint64_t end_ns,
                                                const struct outcome *outcome, const void *payload,
                                                size_t payload_bytes) {
    unsigned units = 1 + (unsigned)((payload_bytes + PIO_UNIT_BYTES - 1) / PIO_UNIT_BYTES);
    if (!begin_writing()) {
        count_lost(outcome->call, outcome->result);
        return;
    }
    struct pio_record *record = take_whole(units);
    if (record == NULL) {
        count_lost(outcome->call, outcome->result);
    } else {
        record->fd = outcome->fd;
        record->start_ns = span->start_ns;
        record->elapsed_ns = end_ns - span->start_ns;
        record->think_ns = span->think_ns;
        record->offset = outcome->offset;
        record->size = outcome->size;
        record->result = outcome->result;
        record->operation = pio_self.operation;
        if (payload_bytes > 0)
            memcpy(record + 1, payload, payload_bytes);
        publish(record, outcome->call, units, outcome->flags | (pio_self.operation != 0 ? PIO_PHYSICAL : 0));
    }
    end_writing();
}

/* False if the numbers do not fit. */
__attribute__((hot)) bool pio_record_short(const struct pioscope_span *span, uint64_t end_ns,
                                           const struct outcome *outcome) {
    uint64_t elapsed_ns = end_ns - span->start_ns;
    if (UNLIKELY(elapsed_ns >> 32 != 0 || (uint32_t)outcome->fd + 1 > UINT16_MAX))
        return false;
    if (!begin_writing()) {
        count_lost(outcome->call, outcome->result);
        return true;
    }
    if (UNLIKELY((size_t)(pio_self.end - pio_self.cursor) < PIO_MOST_SHORT_BYTES) && !take_short_chunk()) {
        pio_drop();
        count_lost(outcome->call, outcome->result);
        end_writing();
        return true;
    }
    struct pio_short_record *record = (struct pio_short_record *)pio_self.cursor;
    uint64_t *more = (uint64_t *)(record + 1);
    uint32_t form = 0;
    uint64_t gap_ns = span->start_ns - pio_self.base_ns;
    if (UNLIKELY(gap_ns >> 32 != 0)) {
        form |= PIO_HAS_START;
        *more++ = span->start_ns;
    }
    if (UNLIKELY(gap_ns != span->think_ns || gap_ns >> 32 != 0)) {
        form |= PIO_HAS_THINK;
        *more++ = span->think_ns;
    }
    if (outcome->size != pio_self.last_size) {
        form |= PIO_HAS_SIZE;
        *more++ = pio_self.last_size = outcome->size;
    }
    if (outcome->offset != PIO_NO_OFFSET) {
        if (outcome->offset == pio_self.last_end) {
            form |= PIO_GOES_ON;
        } else {
            form |= PIO_HAS_OFFSET;
            *more++ = outcome->offset;
        }
        pio_self.last_end = outcome->offset + (outcome->result < 0 ? 0 : (uint64_t)outcome->result);
    }
    if (UNLIKELY(outcome->result != (int64_t)outcome->size)) {
        form |= PIO_HAS_RESULT;
        *more++ = (uint64_t)outcome->result;
    }
    size_t bytes = (size_t)((char *)more - (char *)record);
    record->fd = (uint16_t)outcome->fd;
    record->form = (uint16_t)form;
    record->gap_ns = (uint32_t)gap_ns;
    record->elapsed_ns = (uint32_t)elapsed_ns;
    RELEASE(&record->word, outcome->call | (uint32_t)bytes / 8 << 16 | (outcome->flags | PIO_SHORT) << 24);
    pio_self.cursor += bytes;
    pio_self.base_ns = end_ns;
    end_writing();
    return true;
}

/* Calls that take long --------------------------------------------------------------------------------------------- */

struct pio_record *pio_begin_io_record(const struct pioscope_io *io, const struct pioscope_span *span,
                                       uint32_t flags) {
    size_t path_bytes = io->path == NULL ? 0 : strnlen(io->path, PATH_MAX);
    unsigned units = 2 + (unsigned)((path_bytes + PIO_UNIT_BYTES - 1) / PIO_UNIT_BYTES);
    struct pio_record *record = pio_reserve(units);
    if (record != NULL) {
        struct pio_mpi_part *part = (struct pio_mpi_part *)(record + 1);
        record->fd = (int32_t)io->file;
        record->start_ns = span->start_ns;
        record->think_ns = span->think_ns;
        record->offset = io->position;
        record->size = io->size;
        record->operation = pio_self.operation;
        part->view = io->view;
        part->memory = io->memory;
        part->ranks = io->ranks;
        part->cpu_ns = span->cpu_ns;
        part->path_bytes = (uint32_t)path_bytes;
        if (path_bytes > 0)
            memcpy(part + 1, io->path, path_bytes);
        publish(record, io->call, units, flags | PIO_UNFINISHED);
    }
    return record;
}

static void end_record_at(struct pio_record *record, uint64_t end_ns, int64_t result) {
    record->elapsed_ns = end_ns - record->start_ns;
    record->result = result;
    RELEASE(&record->word, LOAD(&record->word) & ~(PIO_UNFINISHED << 24));
}

void pio_end_operation(struct pio_record *record, int64_t result) {
    if (record == NULL)
        return;
    struct pio_mpi_part *part = (struct pio_mpi_part *)(record + 1);
    struct pioscope_span span = {record->start_ns, record->think_ns, part->cpu_ns};
    uint64_t end_ns = end_of(&span);
    part->used_ns = span_used(&span, end_ns);
    end_record_at(record, end_ns, result);
}

void pio_end_io_record(struct pio_record *record, int64_t result) {
    if (record == NULL)
        return;
    struct pioscope_span span = {.start_ns = record->start_ns};
    end_record_at(record, end_of(&span), result);
}

bool pio_define_text(uint32_t call, uint64_t id, const char *text, size_t length) {
    unsigned units = 1 + (unsigned)((length + PIO_UNIT_BYTES - 1) / PIO_UNIT_BYTES);
    struct pio_record *record = pio_reserve(units);
    if (record == NULL)
        return false;
    record->offset = id;
    record->size = length;
    memcpy(record + 1, text, length);
    publish(record, call, units, 0);
    return true;
}

uint64_t pio_content_id(const unsigned char *bytes, size_t length, uint64_t seed) {
    uint64_t hash = 0xcbf29ce484222325u ^ seed;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    hash ^= hash >> 32;
    hash *= 0xd6e8feb86659fd93u;
    hash ^= hash >> 32;
    return hash == 0 ? 1 : hash;
}
