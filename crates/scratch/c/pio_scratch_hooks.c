/* The C library's calls that take names of files: each is handed the name that pio_scratch.h gives. */
#include "pio_scratch.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#define EXPORT __attribute__((visibility("default")))
#define ARGUMENTS(...) __VA_ARGS__

/* The next definition of a function, of the type of ours. */
#define NEXT(name)                                                                                                     \
    static __typeof__(&name) next;                                                                                     \
    if (next == NULL)                                                                                                  \
    next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

/* A call on one name. `failure` is what it returns if that is refused. */
#define HOOK(type, failure, name, parameters, folder, path, intent, arguments)                                         \
    EXPORT type name(parameters) {                                                                                     \
        NEXT(name);                                                                                                    \
        struct pio_name found;                                                                                         \
        pio_scratch_name(&found, folder, path, intent);                                                                \
        if (found.used == NULL && path != NULL)                                                                        \
            return failure;                                                                                            \
        path = found.used;                                                                                             \
        return next(arguments);                                                                                        \
    }
#define HOOK_HERE(name, parameters, path, intent, arguments)                                                           \
    HOOK(int, -1, name, ARGUMENTS(parameters), AT_FDCWD, path, intent, ARGUMENTS(arguments))
#define HOOK_AT(name, parameters, path, intent, arguments)                                                             \
    HOOK(int, -1, name, ARGUMENTS(parameters), folder, path, intent, ARGUMENTS(arguments))

/* Calls that look. -------------------------------------------------------------------------------------------------- */

HOOK_HERE(access, ARGUMENTS(const char *path, int mode), path, PIO_READ, ARGUMENTS(path, mode))
HOOK_HERE(eaccess, ARGUMENTS(const char *path, int mode), path, PIO_READ, ARGUMENTS(path, mode))
HOOK_HERE(euidaccess, ARGUMENTS(const char *path, int mode), path, PIO_READ, ARGUMENTS(path, mode))
HOOK_AT(faccessat, ARGUMENTS(int folder, const char *path, int mode, int flags), path, PIO_READ,
        ARGUMENTS(folder, path, mode, flags))
HOOK_HERE(stat, ARGUMENTS(const char *path, struct stat *status), path, PIO_READ, ARGUMENTS(path, status))
HOOK_HERE(stat64, ARGUMENTS(const char *path, struct stat64 *status), path, PIO_READ, ARGUMENTS(path, status))
HOOK_HERE(statfs, ARGUMENTS(const char *path, struct statfs *status), path, PIO_READ, ARGUMENTS(path, status))
HOOK_HERE(statfs64, ARGUMENTS(const char *path, struct statfs64 *status), path, PIO_READ, ARGUMENTS(path, status))
HOOK_HERE(statvfs, ARGUMENTS(const char *path, struct statvfs *status), path, PIO_READ, ARGUMENTS(path, status))
HOOK_HERE(statvfs64, ARGUMENTS(const char *path, struct statvfs64 *status), path, PIO_READ, ARGUMENTS(path, status))
HOOK_HERE(chdir, ARGUMENTS(const char *path), path, PIO_READ, ARGUMENTS(path))
HOOK(DIR *, NULL, opendir, ARGUMENTS(const char *path), AT_FDCWD, path, PIO_READ, ARGUMENTS(path))
HOOK(long, -1, pathconf, ARGUMENTS(const char *path, int name), AT_FDCWD, path, PIO_READ, ARGUMENTS(path, name))
HOOK(char *, NULL, realpath, ARGUMENTS(const char *restrict path, char *restrict real), AT_FDCWD, path, PIO_READ,
     ARGUMENTS(path, real))
HOOK_HERE(scandir,
          ARGUMENTS(const char *path, struct dirent ***list, int (*select)(const struct dirent *),
                    int (*compare)(const struct dirent **, const struct dirent **)),
          path, PIO_READ, ARGUMENTS(path, list, select, compare))
HOOK_HERE(ftw, ARGUMENTS(const char *path, __ftw_func_t visit, int depth), path, PIO_READ,
          ARGUMENTS(path, visit, depth))
HOOK_HERE(nftw, ARGUMENTS(const char *path, __nftw_func_t visit, int depth, int flags), path, PIO_READ,
          ARGUMENTS(path, visit, depth, flags))
HOOK(ssize_t, -1, getxattr, ARGUMENTS(const char *path, const char *name, void *value, size_t size), AT_FDCWD, path,
     PIO_READ, ARGUMENTS(path, name, value, size))

/* What is a file in the original is to look like one. */
#define LOOK_HOOK(name, parameters, folder, path, arguments, as_file)                                                  \
    EXPORT int name(parameters) {                                                                                      \
        NEXT(name);                                                                                                    \
        struct pio_name found;                                                                                         \
        pio_scratch_name(&found, folder, path, PIO_LOOK);                                                              \
        if (found.used == NULL && path != NULL)                                                                        \
            return -1;                                                                                                 \
        if (path != NULL && pio_stands_for_file(found.used)) {                                                         \
            path = found.used;                                                                                         \
            as_file;                                                                                                   \
        }                                                                                                              \
        path = found.used;                                                                                             \
        return next(arguments);                                                                                        \
    }

LOOK_HOOK(lstat, ARGUMENTS(const char *path, struct stat *status), AT_FDCWD, path, ARGUMENTS(path, status),
          return stat(path, status))
LOOK_HOOK(lstat64, ARGUMENTS(const char *path, struct stat64 *status), AT_FDCWD, path, ARGUMENTS(path, status),
          return stat64(path, status))
LOOK_HOOK(fstatat, ARGUMENTS(int folder, const char *path, struct stat *status, int flags), folder, path,
          ARGUMENTS(folder, path, status, flags), flags &= ~AT_SYMLINK_NOFOLLOW)
LOOK_HOOK(fstatat64, ARGUMENTS(int folder, const char *path, struct stat64 *status, int flags), folder, path,
          ARGUMENTS(folder, path, status, flags), flags &= ~AT_SYMLINK_NOFOLLOW)
LOOK_HOOK(statx, ARGUMENTS(int folder, const char *path, int flags, unsigned mask, struct statx *status), folder, path,
          ARGUMENTS(folder, path, flags, mask, status), flags &= ~AT_SYMLINK_NOFOLLOW)

static ssize_t is_no_link(void) {
    errno = EINVAL;
    return -1;
}

EXPORT ssize_t readlink(const char *path, char *target, size_t size) {
    NEXT(readlink);
    struct pio_name found;
    pio_scratch_name(&found, AT_FDCWD, path, PIO_LOOK);
    if (found.used == NULL && path != NULL)
        return -1;
    return path != NULL && pio_stands_for_file(found.used) ? is_no_link() : next(found.used, target, size);
}

EXPORT ssize_t readlinkat(int folder, const char *path, char *target, size_t size) {
    NEXT(readlinkat);
    struct pio_name found;
    pio_scratch_name(&found, folder, path, PIO_LOOK);
    if (found.used == NULL && path != NULL)
        return -1;
    return path != NULL && pio_stands_for_file(found.used) ? is_no_link() : next(folder, found.used, target, size);
}

/* Of C libraries before 2.33. */
int __xstat(int version, const char *path, struct stat *status);
int __lxstat(int version, const char *path, struct stat *status);
int __fxstatat(int version, int folder, const char *path, struct stat *status, int flags);
HOOK_HERE(__xstat, ARGUMENTS(int version, const char *path, struct stat *status), path, PIO_READ,
          ARGUMENTS(version, path, status))
LOOK_HOOK(__lxstat, ARGUMENTS(int version, const char *path, struct stat *status), AT_FDCWD, path,
          ARGUMENTS(version, path, status), return __xstat(version, path, status))
LOOK_HOOK(__fxstatat, ARGUMENTS(int version, int folder, const char *path, struct stat *status, int flags), folder, path,
          ARGUMENTS(version, folder, path, status, flags), flags &= ~AT_SYMLINK_NOFOLLOW)
int __xstat64(int version, const char *path, struct stat64 *status);
int __lxstat64(int version, const char *path, struct stat64 *status);
int __fxstatat64(int version, int folder, const char *path, struct stat64 *status, int flags);
HOOK_HERE(__xstat64, ARGUMENTS(int version, const char *path, struct stat64 *status), path, PIO_READ,
          ARGUMENTS(version, path, status))
LOOK_HOOK(__lxstat64, ARGUMENTS(int version, const char *path, struct stat64 *status), AT_FDCWD, path,
          ARGUMENTS(version, path, status), return __xstat64(version, path, status))
LOOK_HOOK(__fxstatat64, ARGUMENTS(int version, int folder, const char *path, struct stat64 *status, int flags), folder, path,
          ARGUMENTS(version, folder, path, status, flags), flags &= ~AT_SYMLINK_NOFOLLOW)

/* Calls that open. -------------------------------------------------------------------------------------------------- */

static enum pio_intent of_flags(int flags) {
    bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0;
    if ((flags & O_PATH) != 0 || !writes)
        return (flags & O_NOFOLLOW) != 0 ? PIO_LOOK : PIO_READ;
    if ((flags & O_TMPFILE) == O_TMPFILE || ((flags & O_CREAT) != 0 && (flags & O_EXCL) != 0))
        return PIO_MAKE_ENTRY;
    if ((flags & O_NOFOLLOW) != 0)
        return PIO_CHANGE_LINK;
    return (flags & O_TRUNC) != 0 ? PIO_REPLACE_FILE : PIO_CHANGE_FILE;
}

/* A link that stands for a file is to be followed, as there is none in the original. */
static int followed(int flags, const char *name) {
    return (flags & O_NOFOLLOW) != 0 && pio_stands_for_file(name) ? flags & ~O_NOFOLLOW : flags;
}

#define MODE_ARGUMENT(flags, mode)                                                                                     \
    mode_t mode = 0;                                                                                                   \
    if ((flags) & (O_CREAT | O_TMPFILE)) {                                                                             \
        va_list list;                                                                                                  \
        va_start(list, flags);                                                                                         \
        mode = va_arg(list, mode_t);                                                                                   \
        va_end(list);                                                                                                  \
    }
#define OPEN_BODY(folder, arguments)                                                                                   \
    struct pio_name found;                                                                                             \
    pio_scratch_name(&found, folder, path, of_flags(flags));                                                           \
    if (found.used == NULL && path != NULL)                                                                            \
        return -1;                                                                                                     \
    path = found.used;                                                                                                 \
    flags = path == NULL ? flags : followed(flags, path);                                                              \
    return next(arguments);
#define HOOK_OPEN(name)                                                                                                \
    EXPORT int name(const char *path, int flags, ...) {                                                                \
        NEXT(name);                                                                                                    \
        MODE_ARGUMENT(flags, mode)                                                                                     \
        OPEN_BODY(AT_FDCWD, ARGUMENTS(path, flags, mode))                                                              \
    }
#define HOOK_OPENAT(name)                                                                                              \
    EXPORT int name(int folder, const char *path, int flags, ...) {                                                    \
        NEXT(name);                                                                                                    \
        MODE_ARGUMENT(flags, mode)                                                                                     \
        OPEN_BODY(folder, ARGUMENTS(folder, path, flags, mode))                                                        \
    }

/* Declared by no header. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int folder, const char *path, int flags);
int __openat64_2(int folder, const char *path, int flags);

HOOK_OPEN(open)
HOOK_OPEN(open64)
HOOK_OPENAT(openat)
HOOK_OPENAT(openat64)
EXPORT int __open_2(const char *path, int flags) {
    NEXT(__open_2);
    OPEN_BODY(AT_FDCWD, ARGUMENTS(path, flags))
}
EXPORT int __open64_2(const char *path, int flags) {
    NEXT(__open64_2);
    OPEN_BODY(AT_FDCWD, ARGUMENTS(path, flags))
}
EXPORT int __openat_2(int folder, const char *path, int flags) {
    NEXT(__openat_2);
    OPEN_BODY(folder, ARGUMENTS(folder, path, flags))
}
EXPORT int __openat64_2(int folder, const char *path, int flags) {
    NEXT(__openat64_2);
    OPEN_BODY(folder, ARGUMENTS(folder, path, flags))
}
HOOK_HERE(creat, ARGUMENTS(const char *path, mode_t mode), path, PIO_REPLACE_FILE, ARGUMENTS(path, mode))
HOOK_HERE(creat64, ARGUMENTS(const char *path, mode_t mode), path, PIO_REPLACE_FILE, ARGUMENTS(path, mode))

static enum pio_intent of_mode(const char *mode) {
    if (mode == NULL || (mode[0] == 'r' && strchr(mode, '+') == NULL))
        return PIO_READ;
    if (mode[0] != 'r' && strchr(mode, 'x') != NULL)
        return PIO_MAKE_ENTRY;
    return mode[0] == 'w' ? PIO_REPLACE_FILE : PIO_CHANGE_FILE;
}

HOOK(FILE *, NULL, fopen, ARGUMENTS(const char *path, const char *mode), AT_FDCWD, path, of_mode(mode), ARGUMENTS(path, mode))
HOOK(FILE *, NULL, fopen64, ARGUMENTS(const char *path, const char *mode), AT_FDCWD, path, of_mode(mode),
     ARGUMENTS(path, mode))
HOOK(FILE *, NULL, freopen, ARGUMENTS(const char *path, const char *mode, FILE *stream), AT_FDCWD, path, of_mode(mode),
     ARGUMENTS(path, mode, stream))
HOOK(FILE *, NULL, freopen64, ARGUMENTS(const char *path, const char *mode, FILE *stream), AT_FDCWD, path, of_mode(mode),
     ARGUMENTS(path, mode, stream))

/* The C library fills in the name in place: the last characters of ours are those of the program's. */
#define HOOK_TEMPLATE(type, failure, name, parameters, suffix, arguments)                                              \
    EXPORT type name(parameters) {                                                                                     \
        NEXT(name);                                                                                                    \
        struct pio_name found;                                                                                         \
        char *given = template;                                                                                        \
        pio_scratch_name(&found, AT_FDCWD, given, PIO_MAKE_ENTRY);                                                   \
        if (found.used == NULL && given != NULL)                                                                       \
            return failure;                                                                                            \
        if (found.used == given)                                                                                       \
            return next(arguments);                                                                                    \
        template = found.buffer;                                                                                       \
        type made = next(arguments);                                                                                   \
        size_t own = strlen(given), used = strlen(template), last = 6 + (size_t)(suffix);                              \
        if (own >= last && used >= last)                                                                               \
            memcpy(given + own - last, template + used - last, last);                                                  \
        return made;                                                                                                   \
    }

HOOK_TEMPLATE(int, -1, mkstemp, ARGUMENTS(char *template), 0, ARGUMENTS(template))
HOOK_TEMPLATE(int, -1, mkstemp64, ARGUMENTS(char *template), 0, ARGUMENTS(template))
HOOK_TEMPLATE(int, -1, mkostemp, ARGUMENTS(char *template, int flags), 0, ARGUMENTS(template, flags))
HOOK_TEMPLATE(int, -1, mkostemp64, ARGUMENTS(char *template, int flags), 0, ARGUMENTS(template, flags))
HOOK_TEMPLATE(int, -1, mkstemps, ARGUMENTS(char *template, int suffix), suffix, ARGUMENTS(template, suffix))
HOOK_TEMPLATE(int, -1, mkstemps64, ARGUMENTS(char *template, int suffix), suffix, ARGUMENTS(template, suffix))
HOOK_TEMPLATE(int, -1, mkostemps, ARGUMENTS(char *template, int suffix, int flags), suffix,
              ARGUMENTS(template, suffix, flags))
HOOK_TEMPLATE(int, -1, mkostemps64, ARGUMENTS(char *template, int suffix, int flags), suffix,
              ARGUMENTS(template, suffix, flags))

EXPORT char *mkdtemp(char *template) {
    NEXT(mkdtemp);
    struct pio_name found;
    pio_scratch_name(&found, AT_FDCWD, template, PIO_MAKE_ENTRY);
    if (found.used == NULL || found.used == template)
        return found.used == NULL ? NULL : next(template);
    if (next(found.buffer) == NULL)
        return NULL;
    size_t own = strlen(template), used = strlen(found.buffer);
    memcpy(template + own - 6, found.buffer + used - 6, 6);
    return template;
}

/* Calls that change. ------------------------------------------------------------------------------------------------ */

static enum pio_intent of_at_flags(const char *path, int flags) {
    if ((flags & AT_EMPTY_PATH) != 0 && path != NULL && path[0] == 0)
        return PIO_CHANGE_OPEN;
    return (flags & AT_SYMLINK_NOFOLLOW) != 0 ? PIO_CHANGE_LINK : PIO_CHANGE_FILE;
}

/* A call on an open file, by which one that is open only for reading can be changed. */
#define HOOK_OPEN_FILE(name, parameters, arguments)                                                                    \
    EXPORT int name(parameters) {                                                                                      \
        NEXT(name);                                                                                                    \
        return pio_scratch_may_change(fd) ? next(arguments) : -1;                                                      \
    }

HOOK_OPEN_FILE(fchmod, ARGUMENTS(int fd, mode_t mode), ARGUMENTS(fd, mode))
HOOK_OPEN_FILE(fchown, ARGUMENTS(int fd, uid_t user, gid_t group), ARGUMENTS(fd, user, group))
HOOK_OPEN_FILE(futimes, ARGUMENTS(int fd, const struct timeval times[2]), ARGUMENTS(fd, times))
HOOK_OPEN_FILE(futimens, ARGUMENTS(int fd, const struct timespec times[2]), ARGUMENTS(fd, times))
HOOK_OPEN_FILE(fsetxattr, ARGUMENTS(int fd, const char *name, const void *value, size_t size, int flags),
               ARGUMENTS(fd, name, value, size, flags))
HOOK_OPEN_FILE(fremovexattr, ARGUMENTS(int fd, const char *name), ARGUMENTS(fd, name))

HOOK_HERE(truncate, ARGUMENTS(const char *path, off_t size), path, PIO_CHANGE_FILE, ARGUMENTS(path, size))
HOOK_HERE(truncate64, ARGUMENTS(const char *path, off64_t size), path, PIO_CHANGE_FILE, ARGUMENTS(path, size))
HOOK_HERE(chmod, ARGUMENTS(const char *path, mode_t mode), path, PIO_CHANGE_FILE, ARGUMENTS(path, mode))
HOOK_AT(fchmodat, ARGUMENTS(int folder, const char *path, mode_t mode, int flags), path, of_at_flags(path, flags),
        ARGUMENTS(folder, path, mode, flags))
HOOK_HERE(chown, ARGUMENTS(const char *path, uid_t user, gid_t group), path, PIO_CHANGE_FILE, ARGUMENTS(path, user, group))
HOOK_HERE(lchown, ARGUMENTS(const char *path, uid_t user, gid_t group), path, PIO_CHANGE_LINK, ARGUMENTS(path, user, group))
HOOK_AT(fchownat, ARGUMENTS(int folder, const char *path, uid_t user, gid_t group, int flags), path, of_at_flags(path, flags),
        ARGUMENTS(folder, path, user, group, flags))
HOOK_HERE(utime, ARGUMENTS(const char *path, const struct utimbuf *times), path, PIO_CHANGE_FILE, ARGUMENTS(path, times))
HOOK_HERE(utimes, ARGUMENTS(const char *path, const struct timeval times[2]), path, PIO_CHANGE_FILE, ARGUMENTS(path, times))
HOOK_HERE(lutimes, ARGUMENTS(const char *path, const struct timeval times[2]), path, PIO_CHANGE_LINK, ARGUMENTS(path, times))
HOOK_AT(futimesat, ARGUMENTS(int folder, const char *path, const struct timeval times[2]), path, PIO_CHANGE_FILE,
        ARGUMENTS(folder, path, times))
HOOK_AT(utimensat, ARGUMENTS(int folder, const char *path, const struct timespec times[2], int flags), path,
        of_at_flags(path, flags), ARGUMENTS(folder, path, times, flags))
HOOK_HERE(setxattr, ARGUMENTS(const char *path, const char *name, const void *value, size_t size, int flags), path,
          PIO_CHANGE_FILE, ARGUMENTS(path, name, value, size, flags))
HOOK_HERE(lsetxattr, ARGUMENTS(const char *path, const char *name, const void *value, size_t size, int flags), path,
          PIO_CHANGE_LINK, ARGUMENTS(path, name, value, size, flags))
HOOK_HERE(removexattr, ARGUMENTS(const char *path, const char *name), path, PIO_CHANGE_FILE, ARGUMENTS(path, name))
HOOK_HERE(lremovexattr, ARGUMENTS(const char *path, const char *name), path, PIO_CHANGE_LINK, ARGUMENTS(path, name))
HOOK_HERE(unlink, ARGUMENTS(const char *path), path, PIO_CHANGE_ENTRY, ARGUMENTS(path))
HOOK_AT(unlinkat, ARGUMENTS(int folder, const char *path, int flags), path, PIO_CHANGE_ENTRY, ARGUMENTS(folder, path, flags))
HOOK_HERE(remove, ARGUMENTS(const char *path), path, PIO_CHANGE_ENTRY, ARGUMENTS(path))
HOOK_HERE(rmdir, ARGUMENTS(const char *path), path, PIO_CHANGE_ENTRY, ARGUMENTS(path))
HOOK_HERE(mkfifo, ARGUMENTS(const char *path, mode_t mode), path, PIO_MAKE_ENTRY, ARGUMENTS(path, mode))
HOOK_AT(mkfifoat, ARGUMENTS(int folder, const char *path, mode_t mode), path, PIO_MAKE_ENTRY,
        ARGUMENTS(folder, path, mode))
HOOK_HERE(mknod, ARGUMENTS(const char *path, mode_t mode, dev_t device), path, PIO_MAKE_ENTRY,
          ARGUMENTS(path, mode, device))
HOOK_AT(mknodat, ARGUMENTS(int folder, const char *path, mode_t mode, dev_t device), path, PIO_MAKE_ENTRY,
        ARGUMENTS(folder, path, mode, device))

/* Folders on the way, which are there, are made again by many a program. */
static bool is_there(const char *path) {
    struct stat file;
    return stat(path, &file) == 0;
}

EXPORT int mkdirat(int folder, const char *path, mode_t mode) {
    NEXT(mkdirat);
    struct pio_name found;
    if (folder == AT_FDCWD && path != NULL && is_there(path)) {
        errno = EEXIST;
        return -1;
    }
    pio_scratch_name(&found, folder, path, PIO_MAKE_ENTRY);
    return found.used == NULL && path != NULL ? -1 : next(folder, found.used, mode);
}

EXPORT int mkdir(const char *path, mode_t mode) {
    return mkdirat(AT_FDCWD, path, mode);
}

EXPORT int symlinkat(const char *target, int folder, const char *path) {
    NEXT(symlinkat);
    struct pio_name found, meant;
    pio_scratch_name(&found, folder, path, PIO_MAKE_ENTRY);
    return found.used == NULL && path != NULL ? -1 : next(pio_scratch_target(&meant, target), folder, found.used);
}

EXPORT int symlink(const char *target, const char *path) {
    return symlinkat(target, AT_FDCWD, path);
}

/* Calls on two names. */
#define HOOK_TWO(name, parameters, folder, path, intent, other_folder, other, other_intent, arguments)                 \
    EXPORT int name(parameters) {                                                                                      \
        NEXT(name);                                                                                                    \
        struct pio_name found, other_found;                                                                            \
        pio_scratch_name(&found, folder, path, intent);                                                                \
        if (found.used == NULL && path != NULL)                                                                        \
            return -1;                                                                                                 \
        pio_scratch_name(&other_found, other_folder, other, other_intent);                                             \
        if (other_found.used == NULL && other != NULL)                                                                 \
            return -1;                                                                                                 \
        path = found.used;                                                                                             \
        other = other_found.used;                                                                                      \
        return next(arguments);                                                                                        \
    }

static enum pio_intent of_rename_flags(unsigned flags) {
    return (flags & RENAME_NOREPLACE) != 0 ? PIO_MAKE_ENTRY : PIO_CHANGE_ENTRY;
}

/* A hard link is one to a link itself, if it is not to be followed. */
static enum pio_intent of_link_flags(const char *path, int flags) {
    return of_at_flags(path, (flags & AT_SYMLINK_FOLLOW) != 0 ? flags : flags | AT_SYMLINK_NOFOLLOW);
}

HOOK_TWO(rename, ARGUMENTS(const char *path, const char *other), AT_FDCWD, path, PIO_CHANGE_ENTRY, AT_FDCWD, other,
         PIO_CHANGE_ENTRY, ARGUMENTS(path, other))
HOOK_TWO(renameat, ARGUMENTS(int folder, const char *path, int other_folder, const char *other), folder, path,
         PIO_CHANGE_ENTRY, other_folder, other, PIO_CHANGE_ENTRY, ARGUMENTS(folder, path, other_folder, other))
HOOK_TWO(renameat2, ARGUMENTS(int folder, const char *path, int other_folder, const char *other, unsigned flags), folder,
         path, PIO_CHANGE_ENTRY, other_folder, other, of_rename_flags(flags),
         ARGUMENTS(folder, path, other_folder, other, flags))
HOOK_TWO(link, ARGUMENTS(const char *path, const char *other), AT_FDCWD, path, PIO_CHANGE_LINK, AT_FDCWD, other,
         PIO_MAKE_ENTRY, ARGUMENTS(path, other))
HOOK_TWO(linkat, ARGUMENTS(int folder, const char *path, int other_folder, const char *other, int flags), folder, path,
         of_link_flags(path, flags), other_folder, other, PIO_MAKE_ENTRY,
         ARGUMENTS(folder, path, other_folder, other, flags))

/* Calls by number, which go on as what they are. -------------------------------------------------------------------- */

/* What `*name` is to be instead. False if the call is refused. */
static bool is_named(struct pio_name *found, int folder, long *name, enum pio_intent intent) {
    const char *given = (const char *)*name;
    pio_scratch_name(found, folder, given, intent);
    *name = (long)found->used;
    return found->used != NULL || given == NULL;
}

static bool may_open(struct pio_name *found, int folder, long *name, long *flags) {
    if (!is_named(found, folder, name, of_flags((int)*flags)))
        return false;
    if (*name != 0)
        *flags = followed((int)*flags, (const char *)*name);
    return true;
}

/* `flags` may be told to follow what stands for a file. */
static bool may_look(struct pio_name *found, int folder, long *name, long *flags) {
    if (!is_named(found, folder, name, PIO_LOOK))
        return false;
    if (*name != 0 && pio_stands_for_file((const char *)*name))
        *flags &= ~AT_SYMLINK_NOFOLLOW;
    return true;
}

static bool may_read_link(struct pio_name *found, int folder, long *name) {
    if (!is_named(found, folder, name, PIO_LOOK))
        return false;
    return *name == 0 || !pio_stands_for_file((const char *)*name) || is_no_link() == 0;
}

static bool may_make_folder(struct pio_name *found, int folder, long *name) {
    if (folder == AT_FDCWD && *name != 0 && is_there((const char *)*name)) {
        errno = EEXIST;
        return false;
    }
    return is_named(found, folder, name, PIO_MAKE_ENTRY);
}

/* Puts the names of the copies into what a call by number is given. False if it is refused, with errno set. */
static bool may_call(long *number, long word[6], struct pio_name found[2]) {
    const int folder = (int)word[0];
    long flags;
    switch (*number) {
#ifdef SYS_open
    case SYS_open:
        return may_open(found, AT_FDCWD, &word[0], &word[1]);
    case SYS_creat:
        return is_named(found, AT_FDCWD, &word[0], PIO_REPLACE_FILE);
    case SYS_stat:
        return is_named(found, AT_FDCWD, &word[0], PIO_READ);
    case SYS_lstat:
        flags = AT_SYMLINK_NOFOLLOW;
        if (!may_look(found, AT_FDCWD, &word[0], &flags))
            return false;
        *number = flags == 0 ? SYS_stat : SYS_lstat;
        return true;
    case SYS_access:
        return is_named(found, AT_FDCWD, &word[0], PIO_READ);
    case SYS_readlink:
        return may_read_link(found, AT_FDCWD, &word[0]);
    case SYS_chmod:
    case SYS_chown:
        return is_named(found, AT_FDCWD, &word[0], PIO_CHANGE_FILE);
    case SYS_lchown:
        return is_named(found, AT_FDCWD, &word[0], PIO_CHANGE_LINK);
    case SYS_unlink:
    case SYS_rmdir:
        return is_named(found, AT_FDCWD, &word[0], PIO_CHANGE_ENTRY);
    case SYS_mkdir:
        return may_make_folder(found, AT_FDCWD, &word[0]);
    case SYS_mknod:
        return is_named(found, AT_FDCWD, &word[0], PIO_MAKE_ENTRY);
    case SYS_rename:
        return is_named(&found[0], AT_FDCWD, &word[0], PIO_CHANGE_ENTRY) &&
               is_named(&found[1], AT_FDCWD, &word[1], PIO_CHANGE_ENTRY);
    case SYS_link:
        return is_named(&found[0], AT_FDCWD, &word[0], PIO_CHANGE_LINK) &&
               is_named(&found[1], AT_FDCWD, &word[1], PIO_MAKE_ENTRY);
    case SYS_symlink:
        word[0] = (long)pio_scratch_target(&found[0], (const char *)word[0]);
        return is_named(&found[1], AT_FDCWD, &word[1], PIO_MAKE_ENTRY);
#endif
    case SYS_chdir:
        return is_named(found, AT_FDCWD, &word[0], PIO_READ);
    case SYS_truncate:
        return is_named(found, AT_FDCWD, &word[0], PIO_CHANGE_FILE);
    case SYS_openat:
        return may_open(found, folder, &word[1], &word[2]);
#ifdef SYS_openat2
    case SYS_openat2: /* the flags come first */
        flags = word[2] < 65536 ? 0 : (long)*(const unsigned long long *)word[2];
        return may_open(found, folder, &word[1], &flags);
#endif
    case SYS_newfstatat:
        return may_look(found, folder, &word[1], &word[3]);
    case SYS_statx:
        return may_look(found, folder, &word[1], &word[2]);
    case SYS_faccessat:
        return is_named(found, folder, &word[1], PIO_READ);
    case SYS_readlinkat:
        return may_read_link(found, folder, &word[1]);
    case SYS_fchmodat:
        return is_named(found, folder, &word[1], PIO_CHANGE_FILE);
    case SYS_fchownat:
        return is_named(found, folder, &word[1], of_at_flags((const char *)word[1], (int)word[4]));
    case SYS_utimensat:
        if (word[1] == 0)
            return pio_scratch_may_change(folder);
        return is_named(found, folder, &word[1], of_at_flags((const char *)word[1], (int)word[3]));
    case SYS_unlinkat:
        return is_named(found, folder, &word[1], PIO_CHANGE_ENTRY);
    case SYS_mkdirat:
        return may_make_folder(found, folder, &word[1]);
    case SYS_mknodat:
        return is_named(found, folder, &word[1], PIO_MAKE_ENTRY);
#ifdef SYS_renameat
    case SYS_renameat:
#endif
    case SYS_renameat2:
        return is_named(&found[0], folder, &word[1], PIO_CHANGE_ENTRY) &&
               is_named(&found[1], (int)word[2], &word[3],
                        *number == SYS_renameat2 ? of_rename_flags((unsigned)word[4]) : PIO_CHANGE_ENTRY);
    case SYS_linkat:
        return is_named(&found[0], folder, &word[1], of_link_flags((const char *)word[1], (int)word[4])) &&
               is_named(&found[1], (int)word[2], &word[3], PIO_MAKE_ENTRY);
    case SYS_symlinkat:
        word[0] = (long)pio_scratch_target(&found[0], (const char *)word[0]);
        return is_named(&found[1], (int)word[1], &word[2], PIO_MAKE_ENTRY);
    case SYS_fchmod:
    case SYS_fchown:
    case SYS_fsetxattr:
    case SYS_fremovexattr:
        return pio_scratch_may_change((int)word[0]);
    default:
        return true;
    }
}

EXPORT long syscall(long number, ...) {
    NEXT(syscall);
    long word[6];
    va_list words;
    va_start(words, number);
    for (int i = 0; i < 6; i++)
        word[i] = va_arg(words, long);
    va_end(words);
    struct pio_name found[2];
    return may_call(&number, word, found) ? next(number, word[0], word[1], word[2], word[3], word[4], word[5]) : -1;
}
