#include "pio_paths.h"
#include "pio_kernel.h"
#include "pio_process.h"
#include "pio_status.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

static bool starts_with(const char *text, const char *prefix) {
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool pio_is_foreign_path(const char *path) {
    /* What memfd_create makes lies in no folder. */
    if (starts_with(path, "/proc/") || starts_with(path, "/sys/") || starts_with(path, "/memfd:") ||
        (starts_with(path, "/dev/") && !starts_with(path, IN_MEMORY)))
        return true;
    size_t length = strlen(pio_spool_folder);
    return strncmp(path, pio_spool_folder, length) == 0 && (path[length] == '/' || path[length] == 0);
}

/* `*` stands for any characters, `?` for one; the pattern ends with its line. */
static bool matches(const char *pattern, const char *text) {
    const char *star = NULL, *star_text = NULL;
    while (*text != 0) {
        if (*pattern == '*') {
            star = ++pattern;
            star_text = text;
        } else if (*pattern != '\n' && *pattern != 0 && (*pattern == '?' || *pattern == *text)) {
            pattern++;
            text++;
        } else if (star != NULL) {
            pattern = star;
            text = ++star_text;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\n' || *pattern == 0;
}

/* The rules are lines that begin with + or -. */
bool pio_is_kept(const char *path) {
    bool some_keep = false;
    for (const char *rule = pio_path_rules; *rule != 0;) {
        if (matches(rule + 1, path))
            return *rule == '+';
        some_keep = some_keep || *rule == '+';
        const char *end = strchr(rule, '\n');
        rule = end == NULL ? rule + strlen(rule) : end + 1;
    }
    return !some_keep;
}

/* The kernel's name of what a descriptor stands for. snprintf would take a page of stack. */
static void name_of_descriptor(int fd, char name[32]) {
    char digits[12];
    int count = 0;
    unsigned rest = (unsigned)fd;
    do
        digits[count++] = (char)('0' + rest % 10);
    while ((rest /= 10) != 0);
    char *end = stpcpy(name, "/proc/self/fd/");
    while (count > 0)
        *end++ = digits[--count];
    *end = 0;
}

/* The path that a descriptor was opened by, in a buffer of PATH_MAX: its length, 0 if it is not known. */
static size_t read_descriptor_path(int fd, char *path) {
    char name[32];
    name_of_descriptor(fd, name);
    long length = KERNEL(SYS_readlinkat, AT_FDCWD, name, path, PATH_MAX - 1);
    if (length <= 0)
        return 0;
    path[length] = 0;
    return (size_t)length;
}

size_t pio_path_of_descriptor(int fd, char *path, uint64_t *device) {
    *device = 0;
    if (path == NULL)
        return 0;
    struct pio_status status = pio_status_of(fd);
    if (!status.is_regular_file)
        return 0;
    *device = status.device;
    size_t length = read_descriptor_path(fd, path);
    return length == 0 || pio_is_foreign_path(path) || !pio_is_kept(path) ? 0 : length;
}

bool pio_is_in_memory(int fd) {
    char *path = pio_take_path_buffer();
    bool is_in_memory = path != NULL && read_descriptor_path(fd, path) > 0 && starts_with(path, IN_MEMORY);
    pio_give_path_buffer(path);
    return is_in_memory;
}

bool pio_absolute_name(int folder, const char *name, char *path) {
    size_t length = 0;
    if (name[0] != '/') {
        long got = folder == AT_FDCWD ? KERNEL(SYS_getcwd, path, PATH_MAX) - 1 : (long)read_descriptor_path(folder, path);
        if (got <= 0)
            return false;
        length = got == 1 ? 0 : (size_t)got; /* the root has no name before its slash */
    }
    while (*name != 0) {
        size_t part = strcspn(name, "/");
        if (part == 2 && name[0] == '.' && name[1] == '.') {
            while (length > 0 && path[--length] != '/')
                ;
        } else if (part > 1 || (part == 1 && name[0] != '.')) {
            if (length + 1 + part >= PATH_MAX)
                return false;
            path[length] = '/';
            memcpy(path + length + 1, name, part);
            length += 1 + part;
        }
        name += part + (name[part] != 0);
    }
    strcpy(path + length, length == 0 ? "/" : "");
    return true;
}
