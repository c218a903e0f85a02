/* The absolute path of a file that a library is asked to open, as the POSIX recorder will see it: the file may not be
 * there yet, but its folder has a real path. */
#ifndef PIO_PATH_H
#define PIO_PATH_H

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Without the name of a file system, by which ROMIO lets users choose one ("ufs:/data/x"), or of our I/O servers. */
static inline const char *without_file_system(const char *name) {
    static const char *const known[] = {"daos", "gpfs", "hfs", "ime", "lustre", "nfs", "panfs", "pfs", "piofs",
                                        "pioscope", "pvfs", "pvfs2", "quobyte", "sfs", "testfs", "ufs", "xfs", "zoidfs"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t length = strlen(known[i]);
        if (strncasecmp(name, known[i], length) == 0 && name[length] == ':')
            return name + length + 1;
    }
    return name;
}

/* `path` has room for PATH_MAX bytes; empty if the name is too long. */
static inline void absolute_path(const char *name, char *path) {
    char folder[PATH_MAX];
    const char *last = strrchr(name, '/');
    size_t folder_length = last == NULL ? 0 : (size_t)(last - name);
    if (strlen(name) >= PATH_MAX / 2) {
        path[0] = 0;
        return;
    }
    memcpy(folder, name, folder_length);
    folder[folder_length] = 0;
    if (realpath(name, path) != NULL)
        return;
    if (realpath(last == NULL ? "." : folder_length == 0 ? "/" : folder, path) == NULL || strlen(path) >= PATH_MAX / 2) {
        snprintf(path, PATH_MAX, "%s", name);
        return;
    }
    size_t length = strlen(path);
    snprintf(path + length, PATH_MAX - length, "%s%s", path[length - 1] == '/' ? "" : "/",
             last == NULL ? name : last + 1);
}

#endif
