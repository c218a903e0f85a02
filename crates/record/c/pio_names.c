#include "pio_names.h"
#include "pio_ids.h"
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

/* The id of a path, or PIO_NO_OFFSET if there are too many. Once the budget is short, no new ones are written. One that could not be
 * written is the next call's to write. */
static uint64_t id_of_name(const char *path) {
    size_t length = strlen(path);
    uint64_t id = pio_content_id((const unsigned char *)path, length, PIO_RECORD_NAME) >> 1 | 1;
    bool may_enter = LOAD(&names_known) < MOST_NAMES && LOAD(&pio_spool.thinning) == 0, is_new;
    uint64_t *place = pio_place_of(id, names, NAME_PLACES, id / 2, may_enter, &is_new);
    if (place == NULL)
        return PIO_NO_OFFSET;
    if (is_new) {
        if (pio_define_text(PIO_RECORD_NAME, id, path, length))
            __atomic_fetch_add(&names_known, 1, __ATOMIC_RELAXED);
        else
            STORE(place, 0);
    }
    return id;
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

uint64_t pio_id_of_other(int folder, const char *name) {
    uint64_t id;
    return pio_is_name_kept(folder, name, &id) && id != PIO_NO_OFFSET ? id : 0;
}

uint64_t pio_id_of_linked(int folder, const char *target, const char *link) {
    const char *end = strrchr(link, '/');
    if (target[0] == '/' || end == NULL)
        return pio_id_of_other(folder, target);
    size_t length = (size_t)(end + 1 - link), rest = strlen(target);
    char *path = pio_take_path_buffer();
    uint64_t id = 0;
    if (path != NULL && length + rest < PATH_MAX) {
        memcpy(path, link, length);
        memcpy(path + length, target, rest + 1);
        id = pio_id_of_other(folder, path);
    }
    pio_give_path_buffer(path);
    return id;
}
