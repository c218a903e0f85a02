#include "pio_told.h"

#include <stdlib.h>
#include <string.h>

char pio_spool_folder[PATH_MAX];
char pio_path_rules[16384];
char pio_call_sites_wanted[4];
char pio_own_libraries[4096];
char pio_recorder_libraries[8192];
char pio_own_sanitizer[512];
char pio_others_folder[PATH_MAX], pio_others_libraries[4096];

static void keep_variable(const char *name, char *place, size_t room) {
    const char *value = getenv(name);
    if (value != NULL && strlen(value) < room)
        strcpy(place, value);
}

bool pio_keep_told(void) {
    const char *folder = getenv(PIO_TOLD("SPOOL"));
    if (folder == NULL || folder[0] != '/' || strlen(folder) + 300 > sizeof pio_spool_folder)
        return false;
    strcpy(pio_spool_folder, folder);
    keep_variable(PIO_TOLD("PATHS"), pio_path_rules, sizeof pio_path_rules);
    keep_variable(PIO_TOLD("CALL_SITES"), pio_call_sites_wanted, sizeof pio_call_sites_wanted);
    keep_variable(PIO_TOLD("PRELOAD"), pio_own_libraries, sizeof pio_own_libraries);
    keep_variable(PIO_TOLD("RECORDER"), pio_recorder_libraries, sizeof pio_recorder_libraries);
    keep_variable(PIO_TOLD("FIRST"), pio_own_sanitizer, sizeof pio_own_sanitizer);
    keep_variable(PIO_TOLD("OTHERS"), pio_others_folder, sizeof pio_others_folder - 300);
    keep_variable(PIO_TOLD("OTHERS_PRELOAD"), pio_others_libraries, sizeof pio_others_libraries);
    return true;
}
