/* Which of a thread's Python frames is the call site of a file that it opens: the first of the program itself.
 *
 * Libraries are what lies in a folder site-packages or dist-packages, and the standard library, in a folder python3.x; all
 * else is the program. Where there is nothing else (`python -m`, a worker process), it is the library that called the
 * one that opens the file. */
#include "pio_frames.h"
#include "pio_process.h"

#include <string.h>

static bool starts_with(const char *text, const char *prefix) {
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static void copy(char *place, size_t room, const char *text, size_t length) {
    if (length >= room)
        length = room - 1;
    memcpy(place, text, length);
    place[length] = 0;
}

/* The first name of a path that is relative to a folder of modules: a package, or a module without its ending. */
static void copy_module(char place[MOST_LIBRARY_BYTES], const char *path) {
    copy(place, MOST_LIBRARY_BYTES, path, strcspn(path, "/."));
}

/* What follows a folder of this name in a path, behind the last of them; NULL if it is not there. */
static const char *behind_folder(const char *path, const char *folder) {
    const char *found = NULL;
    for (const char *at = path; (at = strstr(at, folder)) != NULL;)
        found = at += strlen(folder);
    return found;
}

/* The same of the folder of the standard library: lib/python3.12/ and its like. */
static const char *behind_standard(const char *path) {
    const char *found = behind_folder(path, "/python3.");
    if (found == NULL)
        return NULL;
    found += strspn(found, "0123456789t"); /* t: without the interpreter's lock */
    return *found == '/' ? found + 1 : starts_with(found, ".zip/") ? found + 5 : NULL;
}

static enum frame_rank rank_of(const char *path, char module[MOST_LIBRARY_BYTES]) {
    const char *rest = behind_folder(path, "/site-packages/");
    if (rest == NULL)
        rest = behind_folder(path, "/dist-packages/");
    if (rest != NULL) {
        copy_module(module, rest);
        return LIBRARY_FRAME;
    }
    rest = starts_with(path, "<frozen ") ? path + 8 : behind_standard(path);
    if (rest != NULL) {
        copy_module(module, rest);
        return STANDARD_FRAME;
    }
    return PROGRAM_FRAME;
}

/* Whether a program's frame only starts what is in libraries: a command that pip made, or the code that begins a process of
 * multiprocessing. */
static bool only_starts(const struct pio_frames *frames, const char *path, bool is_module) {
    if (!is_module)
        return false;
    if (strcmp(path, "<string>") == 0)
        return strcmp(frames->standard, "multiprocessing") == 0;
    const char *name = behind_folder(path, "/bin/");
    return frames->rank == LIBRARY_FRAME && name != NULL && strchr(name, '/') == NULL && strstr(name, ".py") == NULL;
}

static bool choose(struct pio_frames *frames, enum frame_rank rank, const char *path) {
    frames->rank = rank;
    copy(frames->path, sizeof frames->path, path, strlen(path));
    return true;
}

bool pio_choose_frame(struct pio_frames *frames, const char *path, bool is_module) {
    /* Our own sitecustomize. */
    if (path[0] == 0 || starts_with(path, pio_spool_folder))
        return false;
    char module[MOST_LIBRARY_BYTES];
    switch (rank_of(path, module)) {
    case PROGRAM_FRAME:
        return !only_starts(frames, path, is_module) && choose(frames, PROGRAM_FRAME, path);
    case LIBRARY_FRAME:
        strcpy(frames->library, module);
        if (frames->rank < LIBRARY_FRAME) {
            strcpy(frames->opener, module);
            return choose(frames, LIBRARY_FRAME, path);
        }
        if (frames->is_settled || strcmp(frames->opener, module) == 0)
            return false;
        frames->is_settled = true;
        return choose(frames, LIBRARY_FRAME, path);
    default:
        strcpy(frames->standard, module);
        return frames->rank < STANDARD_FRAME && choose(frames, STANDARD_FRAME, path);
    }
}

size_t pio_name_call_site(const struct pio_frames *frames, char text[MOST_CALL_SITE_BYTES]) {
    const char *library = "";
    if (frames->rank == NO_FRAME)
        return 0;
    if (frames->rank == PROGRAM_FRAME)
        library = frames->library[0] != 0 ? frames->library : frames->standard;
    else if (frames->is_settled)
        library = frames->opener;
    char *end = stpcpy(stpcpy(stpcpy(text, frames->function), " in "), frames->path);
    if (library[0] != 0)
        end = stpcpy(stpcpy(end, " through "), library);
    return (size_t)(end - text);
}
