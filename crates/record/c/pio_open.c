#include "pio_open.h"
#include "pio_bodies.h"
#include "pio_call_sites.h"
#include "pio_cold.h"
#include "pio_file_system.h"
#include "pio_kernel.h"
#include "pio_paths.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* Declared by no header. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int folder, const char *path, int flags);
int __openat64_2(int folder, const char *path, int flags);

__attribute__((noinline)) void pio_finish_open(const struct pioscope_span *span, uint32_t call, int folder,
                                               const char *name, int fd, int flags) {
    int saved = errno;
    uint64_t end_ns = end_of(span);
    struct call_site site = pio_take_call_site(fd >= 0 ? name : NULL);
    /* O_SYNC has the bit of O_DSYNC too. */
    uint32_t opened = (flags & O_APPEND ? PIO_APPEND : 0) | (flags & O_DSYNC ? PIO_SYNC : 0) |
                      (flags & O_DIRECT ? PIO_DIRECT : 0);
    if (fd < 0) {
        pio_finish_name(span, call, opened, folder, name, 0, -1);
    } else {
        char *path = pio_take_path_buffer();
        uint64_t device;
        size_t length = pio_path_of_descriptor(fd, path, &device);
        pio_set_descriptor(fd, length == 0 ? IGNORED : TRACKED);
        if (length > 0) {
            if (flags & O_APPEND)
                pio_set_descriptor(fd, APPENDS);
            else if (LOAD(&pio_spool.thinning) != 0)
                pio_set_descriptor(fd, EXACT);
            uint64_t place = pio_tell_device(device, fd) << PIO_DEVICE_SHIFT | (pio_is_cold(fd, flags) ? PIO_COLD : 0) |
                             (flags & O_TRUNC ? PIO_TRUNCATE : 0);
            size_t bytes = length;
            if (site.id != 0 && length + sizeof site.line <= PATH_MAX) {
                memcpy(path + length, &site.line, sizeof site.line);
                bytes += sizeof site.line;
            } else {
                site.id = 0;
            }
            record_call(span, end_ns, (struct outcome){call, opened, fd, place, length, (int64_t)site.id}, path, bytes);
            span_over(span, now_ns()); /* our own work is not thinking */
        } else {
            span_is_dropped();
        }
        pio_give_path_buffer(path);
    }
    errno = saved;
}

/* The mode argument is there only if a file may be created. */
#define MODE_ARGUMENT(flags, mode)                                                                                     \
    mode_t mode = 0;                                                                                                   \
    if ((flags) & (O_CREAT | O_TMPFILE)) {                                                                             \
        va_list arguments;                                                                                             \
        va_start(arguments, flags);                                                                                    \
        mode = va_arg(arguments, mode_t);                                                                              \
        va_end(arguments);                                                                                             \
    }

#define HOOK_OPEN(name)                                                                                                \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT int name(const char *path, int flags, ...) {                                                                \
        MODE_ARGUMENT(flags, mode)                                                                                     \
        OPEN_BODY(PIO_CALL_OPEN, AT_FDCWD, path, flags, NEXT(name)(path, flags, mode))                                 \
    }
#define HOOK_OPENAT(name)                                                                                              \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT int name(int folder, const char *path, int flags, ...) {                                                    \
        MODE_ARGUMENT(flags, mode)                                                                                     \
        OPEN_BODY(PIO_CALL_OPEN, folder, path, flags, NEXT(name)(folder, path, flags, mode))                           \
    }
#define HOOK_OPEN_2(name)                                                                                              \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT int name(const char *path, int flags) {                                                                     \
        OPEN_BODY(PIO_CALL_OPEN, AT_FDCWD, path, flags, NEXT(name)(path, flags))                                       \
    }
#define HOOK_OPENAT_2(name)                                                                                            \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT int name(int folder, const char *path, int flags) {                                                         \
        OPEN_BODY(PIO_CALL_OPEN, folder, path, flags, NEXT(name)(folder, path, flags))                                 \
    }
#define HOOK_CREAT(name)                                                                                               \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT int name(const char *path, mode_t mode) {                                                                   \
        OPEN_BODY(PIO_CALL_CREAT, AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, NEXT(name)(path, mode))                \
    }

HOOK_OPEN(open)
HOOK_OPEN(open64)
HOOK_OPENAT(openat)
HOOK_OPENAT(openat64)
HOOK_OPEN_2(__open_2)
HOOK_OPEN_2(__open64_2)
HOOK_OPENAT_2(__openat_2)
HOOK_OPENAT_2(__openat64_2)
HOOK_CREAT(creat)
HOOK_CREAT(creat64)

/* Temporary files: opened inside the C library. -------------------------------------------------------------------- */

#define HOOK_MKSTEMP(name, parameters, flags, next_call)                                                               \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT int name parameters {                                                                                       \
        OPEN_BODY(PIO_CALL_OPEN, AT_FDCWD, template, flags, next_call)                                                 \
    }

HOOK_MKSTEMP(mkstemp, (char *template), 0, NEXT(mkstemp)(template))
HOOK_MKSTEMP(mkstemp64, (char *template), 0, NEXT(mkstemp64)(template))
HOOK_MKSTEMP(mkostemp, (char *template, int flags), flags, NEXT(mkostemp)(template, flags))
HOOK_MKSTEMP(mkostemp64, (char *template, int flags), flags, NEXT(mkostemp64)(template, flags))
HOOK_MKSTEMP(mkstemps, (char *template, int suffix), 0, NEXT(mkstemps)(template, suffix))
HOOK_MKSTEMP(mkstemps64, (char *template, int suffix), 0, NEXT(mkstemps64)(template, suffix))
HOOK_MKSTEMP(mkostemps, (char *template, int suffix, int flags), flags, NEXT(mkostemps)(template, suffix, flags))
HOOK_MKSTEMP(mkostemps64, (char *template, int suffix, int flags), flags, NEXT(mkostemps64)(template, suffix, flags))

/* Shared memory, by the call that is for it: what is done with it need not tell (UCX writes to it, to see whether there is room). */

DECLARE_NEXT(shm_open)

/* Before glibc 2.34 the call was in a library of its own, which a module may have loaded for itself alone. */
static int open_memory(const char *name, int flags, mode_t mode) {
    int (*next)(const char *, int, mode_t) = NEXT(shm_open);
    if (next != NULL)
        return next(name, flags, mode);
    char *path = pio_take_path_buffer();
    int fd = -1;
    name += strspn(name, "/");
    if (path == NULL || strlen(name) >= PATH_MAX - sizeof IN_MEMORY) {
        errno = path == NULL ? ENOMEM : ENAMETOOLONG;
    } else {
        strcpy(stpcpy(path, IN_MEMORY), name);
        fd = (int)KERNEL(SYS_openat, AT_FDCWD, path, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, mode);
    }
    int saved = errno;
    pio_give_path_buffer(path);
    errno = saved;
    return fd;
}

EXPORT int shm_open(const char *name, int flags, mode_t mode) {
    int fd = open_memory(name, flags, mode);
    if (fd >= 0 && recording() && is_owner())
        pio_set_descriptor(fd, IGNORED);
    return fd;
}
