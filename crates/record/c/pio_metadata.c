/* Calls that name a path, and calls that ask or tell what a file is. */
#include "pio_bodies.h"
#include "pio_names.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* The second's id stands where others have a size; 0 if it is not known. */
__attribute__((noinline)) void pio_finish_names(const struct pioscope_span *span, uint32_t call, int folder, const char *name,
                                                int other_folder, const char *other, int64_t result) {
    int saved = errno;
    bool is_readable = other != NULL && name != NULL && (result >= 0 || (saved != EFAULT && saved != ENAMETOOLONG));
    bool is_recorded = is_readable && (LOAD(&pio_spool.thinning) == 0 || pio_spared(call, result));
    uint64_t size = !is_recorded               ? 0
                    : call == PIO_CALL_SYMLINK ? pio_id_of_linked(other_folder, other, name)
                                               : pio_id_of_other(other_folder, other);
    errno = saved;
    pio_finish_name(span, call, 0, folder, name, size, result);
}

#define HOOK_ON_PATH(name, parameters, folder, path, call, size, next_call)                                            \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT int name parameters {                                                                                       \
        PATH_BODY(int, folder, path, call, size, next_call)                                                            \
    }

#define HOOK_ON_TWO(name, parameters, call, folder, path, other_folder, other, next_call)                              \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT int name parameters {                                                                                       \
        TWO_BODY(call, folder, path, other_folder, other, next_call)                                                   \
    }

HOOK_ON_PATH(truncate, (const char *path, off_t size), AT_FDCWD, path, PIO_CALL_TRUNCATE, size, NEXT(truncate)(path, size))
HOOK_ON_PATH(truncate64, (const char *path, off64_t size), AT_FDCWD, path, PIO_CALL_TRUNCATE, size,
             NEXT(truncate64)(path, size))
HOOK_ON_PATH(unlink, (const char *path), AT_FDCWD, path, PIO_CALL_UNLINK, 0, NEXT(unlink)(path))
HOOK_ON_PATH(unlinkat, (int folder, const char *path, int flags), folder, path,
             flags &AT_REMOVEDIR ? PIO_CALL_RMDIR : PIO_CALL_UNLINK, 0, NEXT(unlinkat)(folder, path, flags))
HOOK_ON_PATH(remove, (const char *path), AT_FDCWD, path, PIO_CALL_UNLINK, 0, NEXT(remove)(path))
HOOK_ON_TWO(rename, (const char *from, const char *to), PIO_CALL_RENAME, AT_FDCWD, from, AT_FDCWD, to, NEXT(rename)(from, to))
HOOK_ON_TWO(renameat, (int from_folder, const char *from, int to_folder, const char *to), PIO_CALL_RENAME, from_folder, from,
            to_folder, to, NEXT(renameat)(from_folder, from, to_folder, to))
HOOK_ON_TWO(renameat2, (int from_folder, const char *from, int to_folder, const char *to, unsigned flags), PIO_CALL_RENAME,
            from_folder, from, to_folder, to, NEXT(renameat2)(from_folder, from, to_folder, to, flags))
HOOK_ON_TWO(link, (const char *from, const char *to), PIO_CALL_LINK, AT_FDCWD, from, AT_FDCWD, to, NEXT(link)(from, to))
HOOK_ON_TWO(linkat, (int from_folder, const char *from, int to_folder, const char *to, int flags), PIO_CALL_LINK, from_folder,
            from, to_folder, to, NEXT(linkat)(from_folder, from, to_folder, to, flags))
HOOK_ON_TWO(symlink, (const char *target, const char *path), PIO_CALL_SYMLINK, AT_FDCWD, path, AT_FDCWD, target,
            NEXT(symlink)(target, path))
HOOK_ON_TWO(symlinkat, (const char *target, int folder, const char *path), PIO_CALL_SYMLINK, folder, path, folder, target,
            NEXT(symlinkat)(target, folder, path))
HOOK_ON_PATH(mkdir, (const char *path, mode_t mode), AT_FDCWD, path, PIO_CALL_MKDIR, 0, NEXT(mkdir)(path, mode))
HOOK_ON_PATH(mkdirat, (int folder, const char *path, mode_t mode), folder, path, PIO_CALL_MKDIR, 0,
             NEXT(mkdirat)(folder, path, mode))
HOOK_ON_PATH(rmdir, (const char *path), AT_FDCWD, path, PIO_CALL_RMDIR, 0, NEXT(rmdir)(path))
HOOK_ON_PATH(chmod, (const char *path, mode_t mode), AT_FDCWD, path, PIO_CALL_CHMOD, 0, NEXT(chmod)(path, mode))
HOOK_ON_PATH(fchmodat, (int folder, const char *path, mode_t mode, int flags), folder, path, PIO_CALL_CHMOD, 0,
             NEXT(fchmodat)(folder, path, mode, flags))
HOOK_ON_PATH(access, (const char *path, int mode), AT_FDCWD, path, PIO_CALL_ACCESS, 0, NEXT(access)(path, mode))
HOOK_ON_PATH(faccessat, (int folder, const char *path, int mode, int flags), folder, path, PIO_CALL_ACCESS, 0,
             NEXT(faccessat)(folder, path, mode, flags))
HOOK_ON_PATH(euidaccess, (const char *path, int mode), AT_FDCWD, path, PIO_CALL_ACCESS, 0, NEXT(euidaccess)(path, mode))

DECLARE_NEXT(readlink)
EXPORT ssize_t readlink(const char *path, char *buffer, size_t room) {
    PATH_BODY(ssize_t, AT_FDCWD, path, PIO_CALL_READLINK, 0, NEXT(readlink)(path, buffer, room))
}

DECLARE_NEXT(readlinkat)
EXPORT ssize_t readlinkat(int folder, const char *path, char *buffer, size_t room) {
    PATH_BODY(ssize_t, folder, path, PIO_CALL_READLINK, 0, NEXT(readlinkat)(folder, path, buffer, room))
}

DECLARE_NEXT(opendir)
EXPORT DIR *opendir(const char *path) {
    if (!recording() || !is_owner())
        return NEXT(opendir)(path);
    struct pioscope_span span;
    pio_span_begin(&span);
    DIR *folder = NEXT(opendir)(path);
    pio_finish_name(&span, PIO_CALL_OPENDIR, 0, AT_FDCWD, path, 0, folder == NULL ? -1 : 0);
    return folder;
}

/* It closes its descriptor inside the C library. What gets that number next may be opened where no hook sees it. */
DECLARE_NEXT(closedir)
EXPORT int closedir(DIR *folder) {
    if (recording() && is_owner() && folder != NULL)
        pio_forget_descriptor(dirfd(folder));
    return NEXT(closedir)(folder);
}

/* Status ----------------------------------------------------------------------------------------------------------- */

HOOK_ON_PATH(stat, (const char *path, struct stat *status), AT_FDCWD, path, PIO_CALL_STAT, 0, NEXT(stat)(path, status))
HOOK_ON_PATH(stat64, (const char *path, struct stat64 *status), AT_FDCWD, path, PIO_CALL_STAT, 0, NEXT(stat64)(path, status))
HOOK_ON_PATH(lstat, (const char *path, struct stat *status), AT_FDCWD, path, PIO_CALL_STAT, 0, NEXT(lstat)(path, status))
HOOK_ON_PATH(lstat64, (const char *path, struct stat64 *status), AT_FDCWD, path, PIO_CALL_STAT, 0, NEXT(lstat64)(path, status))
HOOK_ON_DESCRIPTOR(fstat, (int fd, struct stat *status), PIO_CALL_STAT, PIO_NO_OFFSET, 0, NEXT(fstat)(fd, status))
HOOK_ON_DESCRIPTOR(fstat64, (int fd, struct stat64 *status), PIO_CALL_STAT, PIO_NO_OFFSET, 0,
                   NEXT(fstat64)(fd, status))

void pio_finish_status(const struct pioscope_span *span, int fd, const char *path, int result) {
    bool is_readable = path != NULL && (result == 0 || errno != EFAULT);
    if (path == NULL || (is_readable && path[0] == 0))
        pio_finish_simple(span, PIO_CALL_STAT, fd, PIO_NO_OFFSET, 0, result);
    else
        pio_finish_name(span, PIO_CALL_STAT, 0, fd, path, 0, result);
}

DECLARE_NEXT(fstatat)
EXPORT int fstatat(int fd, const char *path, struct stat *status, int flags) {
    STATUS_AT_BODY(fd, path, flags, NEXT(fstatat)(fd, path, status, flags))
}

DECLARE_NEXT(fstatat64)
EXPORT int fstatat64(int fd, const char *path, struct stat64 *status, int flags) {
    STATUS_AT_BODY(fd, path, flags, NEXT(fstatat64)(fd, path, status, flags))
}

DECLARE_NEXT(statx)
EXPORT int statx(int fd, const char *path, int flags, unsigned mask, struct statx *status) {
    STATUS_AT_BODY(fd, path, flags, NEXT(statx)(fd, path, flags, mask, status))
}

/* The names that programs built for C libraries before 2.33 call. */
int __xstat(int version, const char *path, struct stat *status);
int __xstat64(int version, const char *path, struct stat64 *status);
int __lxstat(int version, const char *path, struct stat *status);
int __lxstat64(int version, const char *path, struct stat64 *status);
int __fxstat(int version, int fd, struct stat *status);
int __fxstat64(int version, int fd, struct stat64 *status);
int __fxstatat(int version, int fd, const char *path, struct stat *status, int flags);
int __fxstatat64(int version, int fd, const char *path, struct stat64 *status, int flags);
HOOK_ON_PATH(__xstat, (int version, const char *path, struct stat *status), AT_FDCWD, path, PIO_CALL_STAT, 0,
             NEXT(__xstat)(version, path, status))
HOOK_ON_PATH(__xstat64, (int version, const char *path, struct stat64 *status), AT_FDCWD, path, PIO_CALL_STAT, 0,
             NEXT(__xstat64)(version, path, status))
HOOK_ON_PATH(__lxstat, (int version, const char *path, struct stat *status), AT_FDCWD, path, PIO_CALL_STAT, 0,
             NEXT(__lxstat)(version, path, status))
HOOK_ON_PATH(__lxstat64, (int version, const char *path, struct stat64 *status), AT_FDCWD, path, PIO_CALL_STAT, 0,
             NEXT(__lxstat64)(version, path, status))
HOOK_ON_DESCRIPTOR(__fxstat, (int version, int fd, struct stat *status), PIO_CALL_STAT, PIO_NO_OFFSET, 0,
                   NEXT(__fxstat)(version, fd, status))
HOOK_ON_DESCRIPTOR(__fxstat64, (int version, int fd, struct stat64 *status), PIO_CALL_STAT, PIO_NO_OFFSET, 0,
                   NEXT(__fxstat64)(version, fd, status))

DECLARE_NEXT(__fxstatat)
EXPORT int __fxstatat(int version, int fd, const char *path, struct stat *status, int flags) {
    STATUS_AT_BODY(fd, path, flags, NEXT(__fxstatat)(version, fd, path, status, flags))
}

DECLARE_NEXT(__fxstatat64)
EXPORT int __fxstatat64(int version, int fd, const char *path, struct stat64 *status, int flags) {
    STATUS_AT_BODY(fd, path, flags, NEXT(__fxstatat64)(version, fd, path, status, flags))
}

HOOK_ON_DESCRIPTOR(fchmod, (int fd, mode_t mode), PIO_CALL_CHMOD, PIO_NO_OFFSET, 0, NEXT(fchmod)(fd, mode))
HOOK_ON_DESCRIPTOR(flock, (int fd, int operation), PIO_CALL_FLOCK, PIO_NO_OFFSET, 0, NEXT(flock)(fd, operation))
