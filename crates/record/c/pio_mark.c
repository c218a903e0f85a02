/* Marks and phases: what the program says of itself. */
#include "pio_mark.h"
#include "pio_ids.h"
#include "pio_marks.h"
#include "pio_writer.h"

#include <errno.h>
#include <string.h>

/* Names are few: what belongs to a mark by number is its number. Marks of further names are not recorded. */
#define MOST_NAMES 1024u
#define MOST_NAME_BYTES 255u

static uint64_t places[2 * MOST_NAMES];
static struct pio_texts names = {places, MOST_NAMES, 0};

void pio_forget_texts(struct pio_texts *texts) {
    memset(texts->places, 0, sizeof *texts->places * 2 * texts->most);
    texts->known = 0;
}

void pio_forget_marks(void) {
    pio_forget_texts(&names);
}

uint64_t pio_id_of_text(struct pio_texts *texts, uint32_t kind, const char *text, size_t length) {
    uint64_t id = pio_content_id((const unsigned char *)text, length, kind);
    bool is_new;
    uint64_t *place = pio_place_of(id, texts->places, 2 * texts->most, id, LOAD(&texts->known) < texts->most, &is_new);
    if (place == NULL)
        return 0;
    if (is_new) {
        if (!pio_define_text(kind, id, text, length)) {
            STORE(place, 0);
            return 0;
        }
        __atomic_fetch_add(&texts->known, 1, __ATOMIC_RELAXED);
    }
    return id;
}

/* The id of a name, 0 if it has none. */
static uint64_t id_of(const char *name) {
    size_t length = name == NULL ? 0 : strnlen(name, MOST_NAME_BYTES);
    return length == 0 ? 0 : pio_id_of_text(&names, PIO_RECORD_MARK_NAME, name, length);
}

EXPORT void pio_mark(const char *name, uint64_t number) {
    if (!recording())
        return;
    int saved = errno;
    meet_thread();
    uint64_t id = id_of(name);
    /* To mark is a part of thinking: the think time of the next call goes on over it. */
    struct pioscope_span now = {.start_ns = now_ns()};
    if (id != 0)
        record_call(&now, now.start_ns, (struct outcome){PIO_CALL_MARK, 0, -1, id, number, 0}, NULL, 0);
    errno = saved;
}

EXPORT struct pio_phase pio_phase_begin(const char *name, uint64_t number) {
    struct pio_phase phase = {NULL, 0};
    if (!recording())
        return phase;
    int saved = errno;
    meet_thread();
    uint64_t id = id_of(name);
    struct pio_record *record = id == 0 ? NULL : pio_reserve(1);
    if (record != NULL) {
        record->fd = -1;
        record->start_ns = now_ns();
        record->offset = id;
        record->size = number;
        publish(record, PIO_CALL_PHASE, 1, PIO_UNFINISHED);
        phase.record = record;
        phase.process = LOAD(pio_alive);
    }
    errno = saved;
    return phase;
}

EXPORT void pio_phase_end(struct pio_phase phase) {
    if (phase.record == NULL || !recording() || phase.process != LOAD(pio_alive))
        return;
    int saved = errno;
    meet_thread();
    pio_end_io_record(phase.record, 0);
    errno = saved;
}
