#include "pio_names.h"
#include "pio_kernel.h"
#include "pio_paths.h"
#include "pio_writer.h"

#include <limits.h>
#include <string.h>

/* Calls that open nothing refer to their path by its id: each path is written once a process, up to so many. Calls on
 * further ones are recorded without: a search through millions of files must not fill disk and memory with names. */
#define MOST_NAMES 16384u
#define NAME_PLACES (2 * MOST_NAMES)

static uint64_t names[NAME_PLACES]; /* ids */
static uint32_t names_known;

void pio_forget_names(void) {
    if (names_known > 0)
        memset(names, 0, sizeof names);
    names_known = 0;
}

static void define_name(uint64_t id, const char *path, size_t length) {
    unsigned units = 1 + (unsigned)((length + PIO_UNIT_BYTES - 1) / PIO_UNIT_BYTES);
    struct pio_record *record = pio_reserve(units);
    if (record == NULL)
        return;
    record->offset = id;
    record->size = length;
    memcpy(record + 1, path, length);
    publish(record, PIO_RECORD_NAME, units, 0);
}

/* The id of a path, or PIO_NO_OFFSET if there are too many. Once the budget is short, no new ones are written. */
static uint64_t id_of_name(const char *path) {
    size_t length = strlen(path);
    uint64_t id = pio_content_id((const unsigned char *)path, length, PIO_RECORD_NAME) >> 1 | 1;
    for (size_t probe = 0; probe < NAME_PLACES; probe++) {
        uint64_t *place = &names[(id / 2 + probe) % NAME_PLACES];
        uint64_t seen = LOAD(place);
        if (seen == 0) {
            if (LOAD(&names_known) >= MOST_NAMES || LOAD(&pio_spool.thinning) != 0)
                break;
            if (__atomic_compare_exchange_n(place, &seen, id, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
                __atomic_fetch_add(&names_known, 1, __ATOMIC_RELAXED);
                define_name(id, path, length);
                return id;
            }
        }
        if (seen == id)
            return id;
    }
    return PIO_NO_OFFSET;
}

bool pio_is_name_kept(int folder, const char *name, uint64_t *id) {
    *id = PIO_NO_OFFSET;
    if (pio_is_foreign_path(name))
        return false;
    bool is_wanted = true;
    char *path = pio_take_path_buffer();
    if (path != NULL && pio_absolute_name(folder, name, path) && path[0] == '/') {
        is_wanted = !pio_is_foreign_path(path) && pio_is_kept(path);
        if (is_wanted)
            *id = id_of_name(path);
    }
    pio_give_path_buffer(path);
    return is_wanted;
}

uint64_t pio_id_of_other(int folder, const char *name, const char *first) {
    (void)first;
    uint64_t id;
    return pio_is_name_kept(folder, name, &id) && id != PIO_NO_OFFSET ? id : 0;
}

uint64_t pio_id_of_linked(int folder, const char *target, const char *link) {
    const char *end = strrchr(link, '/');
    if (target[0] == '/' || end == NULL)
        return pio_id_of_other(folder, target, link);
    size_t length = (size_t)(end + 1 - link), rest = strlen(target);
    char *path = pio_take_path_buffer();
    uint64_t id = 0;
    if (path != NULL && length + rest < PATH_MAX) {
        memcpy(path, link, length);
        memcpy(path + length, target, rest + 1);
        id = pio_id_of_other(folder, path, link);
    }
    pio_give_path_buffer(path);
    return id;
}
