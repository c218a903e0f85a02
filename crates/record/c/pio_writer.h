/* Writes the records of this process: where the next one goes, and when it becomes visible.
 *
 * The rules that everything here follows:
 * - recording a call takes no lock, no memory, and no system call (but the thread's CPU clock, once it was taken off the
 *   processor);
 * - a record becomes visible by one release store of its first word, into a shared mapping: a process may be killed at
 *   any instruction, and what was visible stays;
 * - room is reserved on the device (fallocate) before it is mapped: a full disk costs records, never a SIGBUS;
 * - errno is the program's;
 * - no descriptor is held: programs close those they do not know.
 */
#ifndef PIO_WRITER_H
#define PIO_WRITER_H

#include "pio_calls.h"
#include "pio_room.h"
#include "pio_span.h"

#pragma GCC visibility push(hidden)

/* A whole record of this many units, zero, to be filled and published; NULL if there is no room. */
struct pio_record *pio_reserve(unsigned units);

static inline void publish(struct pio_record *record, uint32_t call, unsigned units, uint32_t flags) {
    RELEASE(&record->word, call | (uint32_t)units << 16 | flags << 24);
}

/* A record that says of an id what text it stands for. False if there is no room. */
bool pio_define_text(uint32_t call, uint64_t id, const char *text, size_t length);

/* Counts a record that is lost. */
void pio_drop(void);

/* A call that has returned: what it was asked for, and what came of it. */
struct outcome {
    uint32_t call;
    uint32_t flags;
    int32_t fd;
    uint64_t offset;
    uint64_t size;
    int64_t result;
};

/* The record of a call in few bytes. False if the numbers do not fit. */
bool pio_record_short(const struct pioscope_span *span, uint64_t end_ns, const struct outcome *outcome);
void pio_record_whole(const struct pioscope_span *span, uint64_t end_ns, const struct outcome *outcome,
                      const void *payload, size_t payload_bytes);

/* Writes the record of a call that has returned, with its payload. The caller restores errno. */
static inline void record_call(const struct pioscope_span *span, uint64_t end_ns, struct outcome outcome,
                               const void *payload, size_t payload_bytes) {
    if (payload_bytes > 0 || UNLIKELY(pio_self.operation != 0) || !pio_record_short(span, end_ns, &outcome))
        pio_record_whole(span, end_ns, &outcome, payload, payload_bytes);
}

/* Whether the budget lets this call be recorded; if it does not, it is counted. */
bool pio_spared(uint32_t call, int64_t result);

/* Writes the record of a call that begins, as unfinished; NULL if there is no room. The span's CPU time is known. */
struct pio_record *pio_begin_io_record(const struct pioscope_io *io, const struct pioscope_span *span, uint32_t flags);
/* It ends, in the same thread. */
void pio_end_operation(struct pio_record *record, int64_t result);
/* The same of any record that is unfinished, in whatever thread. */
void pio_end_io_record(struct pio_record *record, int64_t result);

/* FNV-1a with a final mix, never 0. */
uint64_t pio_content_id(const unsigned char *bytes, size_t length, uint64_t seed);

#pragma GCC visibility pop

#endif
