#include "pio_library.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

static uint32_t library_files_so_far;
static pthread_mutex_t library_files_lock = PTHREAD_MUTEX_INITIALIZER;

uint32_t pio_number_library_file(void) {
    return __atomic_add_fetch(&library_files_so_far, 1, __ATOMIC_RELAXED);
}

void pio_add_library_file(struct library_file **files, int64_t id, uint32_t number, bool is_shared) {
    struct library_file *file = malloc(sizeof *file);
    if (file == NULL)
        return;
    *file = (struct library_file){.id = id, .number = number, .is_shared = is_shared};
    pthread_mutex_lock(&library_files_lock);
    file->next = *files;
    *files = file;
    pthread_mutex_unlock(&library_files_lock);
}

struct library_file pio_find_library_file(struct library_file **files, int64_t id, bool and_remove) {
    struct library_file found = {.number = 0};
    pthread_mutex_lock(&library_files_lock);
    for (struct library_file **place = files; *place != NULL; place = &(*place)->next)
        if ((*place)->id == id) {
            struct library_file *file = *place;
            found = *file;
            if (and_remove) {
                *place = file->next;
                free(file);
            }
            break;
        }
    pthread_mutex_unlock(&library_files_lock);
    return found;
}

bool pio_is_outermost(void) {
    if (!recording() || !is_owner())
        return false;
    meet_thread();
    return pio_self.operation == 0;
}

struct pio_record *pio_library_begin(const struct pioscope_io *io) {
    int saved = errno;
    struct pioscope_span span;
    pio_used_span_begin(&span);
    pio_self.library = pio_self.operation = pio_new_operation();
    pio_self.library_ranks = 0;
    struct pio_record *record = pio_begin_io_record(io, &span, io->flags);
    errno = saved;
    return record;
}

void pio_library_end(struct pio_record *record, int64_t result) {
    int saved = errno;
    pio_end_operation(record, result);
    pio_self.library = pio_self.operation = 0;
    thinking_begins(now_ns());
    errno = saved;
}

uint32_t pio_ranks_of_open(struct pio_record *record) {
    if (record != NULL && pio_self.library_ranks > 0)
        ((struct pio_mpi_part *)(record + 1))->ranks = pio_self.library_ranks;
    return pio_self.library_ranks;
}
