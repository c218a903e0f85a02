#include "pio_environment.h"
#include "pio_kernel.h"
#include "pio_process.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Variables that an environment may get from us, and its end. */
#define OWN_VARIABLES 10

static const char *after_name(const char *variable, const char *name) {
    size_t length = strlen(name);
    return strncmp(variable, name, length) == 0 && variable[length] == '=' ? variable + length + 1 : NULL;
}

static bool is_entry(const char *word, size_t length, const char *list) {
    while (*list != 0) {
        size_t own = strcspn(list, ": ");
        if (own == length && memcmp(list, word, length) == 0)
            return true;
        list += own;
        list += *list != 0;
    }
    return false;
}

static char *append_entry(char *end, const char *word, size_t length) {
    if (end[-1] != '=')
        *end++ = ':';
    memcpy(end, word, length);
    return end + length;
}

static bool is_sanitizer(const char *word, size_t length) {
    return memmem(word, length, "libasan.so", 10) != NULL || memmem(word, length, "libclang_rt.asan", 16) != NULL;
}

/* What a user preloads beside us. Returns whether there is a sanitizer among it, which must come first. */
static bool append_others(char **end, const char *list) {
    bool has_sanitizer = false;
    while (list != NULL && *list != 0) {
        size_t length = strcspn(list, ": ");
        if (length > 0 && !is_entry(list, length, pio_own_libraries) && !is_entry(list, length, pio_others_libraries) &&
            !is_entry(list, length, pio_own_sanitizer)) {
            has_sanitizer = has_sanitizer || is_sanitizer(list, length);
            *end = append_entry(*end, list, length);
        }
        list += length;
        list += *list != 0;
    }
    return has_sanitizer;
}

bool pio_is_readable(const char *list) {
    char *path = pio_take_path_buffer();
    bool readable = path != NULL && *list != 0;
    while (readable && *list != 0) {
        size_t length = strcspn(list, ":");
        memcpy(path, list, length);
        path[length] = 0;
        int fd = (int)KERNEL(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
        readable = fd >= 0;
        if (fd >= 0)
            KERNEL(SYS_close, fd);
        list += length;
        list += *list != 0;
    }
    pio_give_path_buffer(path);
    return readable;
}

/* Whether a program can leave there what it records, if it records. */
static bool is_writable(const char *folder) {
    return PIO_STARTS_ONLY || (folder[0] != 0 && KERNEL(SYS_faccessat, AT_FDCWD, folder, W_OK | X_OK) == 0);
}

static size_t count_of(char *const *list) {
    size_t count = 0;
    while (list != NULL && list[count] != NULL)
        count++;
    return count;
}

bool pio_is_environment(char *const *from) {
    if (from == NULL)
        return true;
    bool can = may_be_mapped(from);
    for (; can && *from != NULL; from++)
        can = may_be_mapped(*from);
    return can;
}

size_t pio_environment_bytes(char *const *from) {
    size_t list = 0;
    for (size_t i = 0; i < count_of(from); i++) {
        const char *value = after_name(from[i], "LD_PRELOAD");
        list += value == NULL ? 0 : strlen(value) + 1;
    }
    size_t names = 256; /* of the variables and their ends */
    return (count_of(from) + OWN_VARIABLES) * sizeof(char *) + list +
           2 * (strlen(pio_own_libraries) + strlen(pio_others_libraries)) +
           strlen(pio_recorder_libraries) + PIO_SANITIZER_BYTES * 2 + strlen(pio_path_rules) + strlen(pio_spool_folder) +
           2 * strlen(pio_others_folder) + names;
}

/* Whether a list has our libraries. What needs settings of its own, beside ours, does not go back into an environment from which
 * its caller took both. */
static bool is_named_by(const char *list) {
    return list != NULL && is_entry(pio_own_libraries, strcspn(pio_own_libraries, ":"), list);
}

static char *put_variable(char **text, const char *name, const char *value) {
    char *variable = *text;
    *text = stpcpy(stpcpy(stpcpy(variable, name), "="), value) + 1;
    return variable;
}

/* Whether a recorder within the job made this environment: with our libraries beside its own, each would call the other's
 * functions for the C library's, and these ours. */
static bool is_of_another_recorder(char *const *from) {
    const char *folder = NULL, *libraries = NULL, *list = NULL;
    for (size_t i = 0; i < count_of(from); i++) {
        const char *value;
        if ((value = after_name(from[i], PIO_TOLD("SPOOL"))) != NULL)
            folder = value;
        else if ((value = after_name(from[i], PIO_TOLD("PRELOAD"))) != NULL)
            libraries = value;
        else if ((value = after_name(from[i], "LD_PRELOAD")) != NULL)
            list = value;
    }
    return folder != NULL && libraries != NULL && list != NULL && strcmp(folder, pio_spool_folder) != 0 &&
           strcmp(libraries, pio_own_libraries) != 0 && strcmp(libraries, pio_others_libraries) != 0 &&
           is_entry(libraries, strcspn(libraries, ":"), list) && pio_is_readable(libraries);
}

/* The folder and the libraries that this process can hand on: none if it is another user's, or the job is over, and its folder
 * gone. */
static bool can_hand_on(const char **folder, const char **libraries) {
    *folder = pio_spool_folder;
    *libraries = pio_own_libraries;
    if (pio_is_readable(*libraries) && is_writable(*folder))
        return true;
    *folder = pio_others_folder;
    *libraries = pio_others_libraries;
    return pio_is_readable(*libraries) && is_writable(*folder);
}

/* Appends those of our libraries that do not record, as far as a list lacks them. */
static char *append_companions(char *end, const char *libraries, const char *list) {
    while (*libraries != 0) {
        size_t length = strcspn(libraries, ":");
        if (length > 0 && !is_entry(libraries, length, pio_recorder_libraries) && !is_entry(libraries, length, list))
            end = append_entry(end, libraries, length);
        libraries += length;
        libraries += *libraries != 0;
    }
    return end;
}

/* An environment that another recorder made, with what is preloaded beside ours: the job relies on that, whoever records it. */
static char *const *with_companions(char *const *from, void *memory) {
    const char *folder, *libraries;
    /* Which of them record is not known where nobody told us. */
    if (pio_recorder_libraries[0] == 0 || !can_hand_on(&folder, &libraries))
        return from;
    char **made = memory;
    char *list = (char *)(made + count_of(from) + OWN_VARIABLES);
    for (; *from != NULL; from++) {
        const char *value = after_name(*from, "LD_PRELOAD");
        *made++ = value == NULL ? *from : list;
        if (value != NULL)
            *append_companions(stpcpy(list, *from), libraries, value) = 0;
    }
    *made = NULL;
    return memory;
}

char *const *pio_build_environment(char *const *from, struct pio_program *program, void *memory) {
    if (is_of_another_recorder(from)) {
        if (program->reason == NULL)
            program->reason = "recorded";
        return with_companions(from, memory);
    }
    char **made = memory;
    char *text = (char *)(made + count_of(from) + OWN_VARIABLES);
    const char *preload = NULL;
    for (size_t i = 0; i < count_of(from); i++) {
        const char *value = after_name(from[i], "LD_PRELOAD");
        if (value != NULL && preload == NULL)
            preload = value;
        if (value == NULL && after_name(from[i], PIO_TOLD("SPOOL")) == NULL &&
            after_name(from[i], PIO_TOLD("PRELOAD")) == NULL && after_name(from[i], PIO_TOLD("RECORDER")) == NULL &&
            after_name(from[i], PIO_TOLD("OTHERS")) == NULL && after_name(from[i], PIO_TOLD("OTHERS_PRELOAD")) == NULL &&
            after_name(from[i], PIO_TOLD("PATHS")) == NULL && after_name(from[i], PIO_TOLD("FIRST")) == NULL &&
            after_name(from[i], PIO_TOLD("CALL_SITES")) == NULL)
            *made++ = from[i];
    }
    const char *folder, *libraries;
    if (!can_hand_on(&folder, &libraries)) {
        libraries = "";
        folder = pio_spool_folder;
        if (program->reason == NULL)
            program->reason = "user";
    }
    if (program->is_harmed || (PIO_STARTS_ONLY && !is_named_by(preload)))
        libraries = "";
    char *list = text;
    char *end = stpcpy(list, "LD_PRELOAD=");
    const char *sanitizer = libraries[0] == 0 ? "" : program->sanitizer;
    if (sanitizer[0] != 0)
        end = append_entry(end, sanitizer, strlen(sanitizer));
    char *ours = end;
    if (libraries[0] != 0)
        end = append_entry(end, libraries, strlen(libraries));
    /* Where nothing is recorded here, a recorder of the user's is to see the program's calls before ours. */
    if ((append_others(&end, preload) || PIO_STARTS_ONLY) && libraries[0] != 0) {
        end = ours;
        append_others(&end, preload);
        end = append_entry(end, libraries, strlen(libraries));
    }
    *end = 0;
    text = end + 1;
    if (end[-1] != '=')
        *made++ = list;
    *made++ = put_variable(&text, PIO_TOLD("SPOOL"), folder);
    *made++ = put_variable(&text, PIO_TOLD("PRELOAD"), pio_own_libraries);
    if (pio_recorder_libraries[0] != 0)
        *made++ = put_variable(&text, PIO_TOLD("RECORDER"), pio_recorder_libraries);
    if (pio_others_folder[0] != 0) {
        *made++ = put_variable(&text, PIO_TOLD("OTHERS"), pio_others_folder);
        *made++ = put_variable(&text, PIO_TOLD("OTHERS_PRELOAD"), pio_others_libraries);
    }
    *made++ = put_variable(&text, PIO_TOLD("PATHS"), pio_path_rules);
    *made++ = put_variable(&text, PIO_TOLD("CALL_SITES"), pio_call_sites_wanted);
    if (sanitizer[0] != 0)
        *made++ = put_variable(&text, PIO_TOLD("FIRST"), sanitizer);
    *made = NULL;
    return memory;
}

/* system() and others hand on the process's environment as it is. */
void pio_forget_sanitizer(void) {
    char *list = getenv("LD_PRELOAD");
    char *first = getenv(PIO_TOLD("FIRST"));
    if (list == NULL || first == NULL || first[0] == 0)
        return;
    size_t length = strlen(first);
    if (strncmp(list, first, length) == 0 && list[length] == ':')
        memmove(list, list + length + 1, strlen(list + length + 1) + 1);
    first[0] = 0;
}
