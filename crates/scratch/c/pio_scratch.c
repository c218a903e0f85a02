/* pio_scratch.h. Nothing here calls a function that the hooks replace: the kernel is asked directly. */
#include "pio_scratch.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MOST_FOLDERS 16
#define MOST_LINKS 40 /* the kernel's own limit */
#define LONGEST_S 600 /* who copies and says nothing for longer was killed */

/* The folders that are copied, without a slash at the end; longest first. */
static struct folder {
    const char *original, *copy;
    size_t original_length, copy_length, scratch_length; /* the copy is `copy`/NAME in a scratch folder, whose path is so long */
    const char *name; /* of the scratch folder in the original, or NULL if it is elsewhere */
} folders[MOST_FOLDERS];
static int folder_count;
static const char *control;    /* the folder of our own files */
static struct timespec began; /* what is not younger is not the job's own */

/* Where programs leave what is not meant to last: one after the other, the last is empty. */
static const char *places = "";

/* The C library's syscall(): ours stands before it, and those of others may. */
static long (*syscall_of_c_library)(long, ...);

__attribute__((constructor(101))) static void find_syscall(void) {
    void *c_library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    syscall_of_c_library = (long (*)(long, ...))dlsym(c_library == NULL ? RTLD_NEXT : c_library, "syscall");
}

/* Libraries that begin before this one make calls, too. */
#define ask_kernel(...) ((syscall_of_c_library == NULL ? find_syscall() : (void)0), syscall_of_c_library(__VA_ARGS__))

static bool is_below(const char *path, const char *folder, size_t length) {
    return strncmp(path, folder, length) == 0 && (path[length] == 0 || path[length] == '/');
}

/* The length of what `path` is in. */
static size_t above(const char *path, size_t length) {
    while (length > 0 && path[--length] != '/')
        ;
    return length;
}

static void add_folder(char *original, char *copy) {
    if (folder_count == MOST_FOLDERS)
        return;
    int at = folder_count++;
    size_t length = strlen(original), copy_length = strlen(copy);
    for (; at > 0 && folders[at - 1].original_length < length; at--)
        folders[at] = folders[at - 1];
    size_t scratch_length = above(copy, above(copy, copy_length));
    bool is_in_original = is_below(copy, original, length) && above(copy, scratch_length) == length;
    folders[at] = (struct folder){original, copy, length, copy_length, scratch_length, is_in_original ? copy + length + 1 : NULL};
}

/* PIOSCOPE_SCRATCH: the folder for our own files, the time (seconds and, behind a dot, nanoseconds) after which files are the
 * job's, the places for temporary files and an empty line, then each folder and its copy, a line each. */
__attribute__((constructor)) static void begin(void) {
    const char *told = getenv("PIOSCOPE_SCRATCH");
    char *lines = told == NULL ? NULL : strdup(told); /* it lasts as long as the process */
    char *rest = lines, *first = rest == NULL ? NULL : strsep(&rest, "\n"), *second = strsep(&rest, "\n");
    if (first == NULL || second == NULL)
        return;
    control = first;
    char *nanoseconds;
    began.tv_sec = strtoll(second, &nanoseconds, 10);
    began.tv_nsec = *nanoseconds == '.' ? strtol(nanoseconds + 1, NULL, 10) : 0;
    places = rest == NULL ? "" : rest;
    for (char *place = strsep(&rest, "\n"); place != NULL && *place != 0;)
        place = strsep(&rest, "\n");
    while (rest != NULL && *rest != 0) {
        char *original = strsep(&rest, "\n"), *copy = strsep(&rest, "\n");
        if (copy != NULL)
            add_folder(original, copy);
    }
}

static const struct folder *with_copy(const char *path) {
    for (int i = 0; i < folder_count; i++)
        if (is_below(path, folders[i].copy, folders[i].copy_length))
            return &folders[i];
    return NULL;
}

/* A name in an original; those in a scratch folder are not. */
static const struct folder *with_original(const char *path) {
    for (int i = 0; i < folder_count; i++)
        if (is_below(path, folders[i].copy, folders[i].scratch_length))
            return NULL;
    for (int i = 0; i < folder_count; i++)
        if (is_below(path, folders[i].original, folders[i].original_length))
            return &folders[i];
    return NULL;
}

/* `first` and `rest` in a buffer of PATH_MAX, which may hold either; if they do not fit, errno is set. */
static bool join(char *buffer, const char *first, size_t first_length, const char *rest) {
    size_t rest_length = strlen(rest);
    if (first_length + rest_length >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    memmove(buffer + first_length, rest, rest_length + 1);
    memmove(buffer, first, first_length);
    return true;
}

static bool to_copy(char *path) {
    const struct folder *folder = with_original(path);
    if (folder == NULL)
        return true;
    return join(path, folder->copy, folder->copy_length, path + folder->original_length);
}

/* Whether `path`, a name in `folder`, begins with its scratch folder. */
static bool is_of_scratch(const struct folder *folder, const char *path) {
    return folder->name != NULL &&
           is_below(path, folder->name, folder->scratch_length - folder->original_length - 1);
}

/* A scratch folder has no copy: who walks down to a copy, part by part as getcwd() names it, comes to it through the copy of the
 * folder that it is in, and means the real one. */
static bool to_scratch(char *path) {
    const struct folder *folder = with_copy(path);
    if (folder == NULL || path[folder->copy_length] == 0 || !is_of_scratch(folder, path + folder->copy_length + 1))
        return false;
    return join(path, folder->original, folder->original_length, path + folder->copy_length);
}

/* The same of a name from the working folder on, which is in a copy. */
static bool may_lead_to_scratch(const char *name) {
    for (int i = 0; i < folder_count; i++)
        if (is_of_scratch(&folders[i], name))
            return true;
    return false;
}

/* What a link holds, 0 if it is none. */
static size_t read_link(const char *path, char *target) {
    long length = ask_kernel(SYS_readlinkat, AT_FDCWD, path, target, PATH_MAX - 1);
    if (length <= 0)
        return 0;
    target[length] = 0;
    return (size_t)length;
}

/* The folder `path` as it really is: links on the way may lead anywhere. If there is none, errno is set. */
static bool real_folder(char *path) {
    int fd = (int)ask_kernel(SYS_openat, AT_FDCWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        return false;
    char link[40];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    size_t length = read_link(link, path);
    close(fd);
    return length > 0;
}

/* The length of what is above the folder `path`, which is real. Above a copy is what is above its original. */
static size_t step_up(char *path, size_t length) {
    length = above(path, length);
    for (int i = 0; i < folder_count; i++) {
        if (above(folders[i].copy, folders[i].copy_length) == length && strncmp(path, folders[i].copy, length) == 0) {
            length = above(folders[i].original, folders[i].original_length);
            memcpy(path, folders[i].original, length);
            break;
        }
    }
    return length;
}

/* The name, meant from the real folder `path` on, from the root on, without `.` and `..`. What `..` is above may be a link: as
 * the kernel does, it is followed first. If that leads to no folder, errno is set. */
static bool resolve(char *path, size_t length, const char *name) {
    bool is_real = true;
    if (name[0] == '/')
        length = 0;
    while (*name != 0) {
        size_t part = strcspn(name, "/");
        if (part == 2 && name[0] == '.' && name[1] == '.') {
            path[length] = 0;
            if (!is_real) {
                to_scratch(path);
                if (!to_copy(path) || !real_folder(path))
                    return false;
                length = strlen(path);
                is_real = true;
            }
            length = step_up(path, length);
        } else if (part > 1 || (part == 1 && name[0] != '.')) {
            if (length + 1 + part >= PATH_MAX) {
                errno = ENAMETOOLONG;
                return false;
            }
            path[length] = '/';
            memcpy(path + length + 1, name, part);
            length += 1 + part;
            is_real = false;
        }
        name += part + (name[part] != 0);
    }
    strcpy(path + length, length == 0 ? "/" : "");
    return true;
}

/* The same of a name that is meant from the open folder `folder` on. */
static bool absolute(int folder, const char *name, char *path) {
    size_t length = 0;
    if (name[0] != '/') {
        char link[40];
        snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        long got = folder == AT_FDCWD ? ask_kernel(SYS_getcwd, path, PATH_MAX) - 1 : (long)read_link(link, path);
        if (got <= 0 || path[0] != '/') {
            if (folder != AT_FDCWD)
                errno = got <= 0 ? EBADF : ENOTDIR;
            return false;
        }
        length = got == 1 ? 0 : (size_t)got; /* the root has no name before its slash */
    }
    return resolve(path, length, name);
}

/* A line in a file of ours; a line is shorter than what the kernel appends at once. */
static void note(const char *file, const char *path) {
    if (strstr(path, "/__pycache__/") != NULL)
        return;
    char line[PATH_MAX + 1];
    if (!join(line, control, strlen(control), file))
        return;
    int fd = (int)ask_kernel(SYS_openat, AT_FDCWD, line, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    size_t length = strlen(path);
    memcpy(line, path, length);
    line[length] = '\n';
    if (fd >= 0) {
        (void)!write(fd, line, length + 1);
        close(fd);
    }
}

/* What `path` is, from the open file `folder` on. Kernels before 4.11 have no statx, and sandboxes refuse it. */
static bool look(int folder, const char *path, int flags, struct statx *file) {
    if (ask_kernel(SYS_statx, folder, path, flags, STATX_BASIC_STATS | STATX_BTIME, file) == 0)
        return true;
    struct stat status;
    if (errno == ENOENT || ask_kernel(SYS_newfstatat, folder, path, &status, flags) != 0)
        return false;
    *file = (struct statx){.stx_mode = (unsigned short)status.st_mode, .stx_nlink = (unsigned)status.st_nlink};
    file->stx_ctime.tv_sec = status.st_ctim.tv_sec;
    file->stx_ctime.tv_nsec = (unsigned)status.st_ctim.tv_nsec;
    return true;
}

/* Whether the job itself made the file: others may change files of theirs while it runs. Where the file system does not
 * know when a file was made, its last change must do. */
static bool is_of_job(const struct statx *file) {
    const struct statx_timestamp *made = (file->stx_mask & STATX_BTIME) != 0 ? &file->stx_btime : &file->stx_ctime;
    return made->tv_sec > began.tv_sec || (made->tv_sec == began.tv_sec && made->tv_nsec > began.tv_nsec);
}

/* Whether a name outside the copies is at a place for what is not meant to last. */
static bool is_at_place(const char *path) {
    const char *own = getenv("TMPDIR");
    if (own != NULL && own[0] == '/' && is_below(path, own, strlen(own)))
        return true;
    for (const char *place = places; *place != 0; place += strlen(place) + 1)
        if (is_below(path, place, strlen(place)))
            return true;
    return false;
}

/* Whether the job may change what it finds outside the copies: at system places, but for what others left there. Devices,
 * pipes and sockets there are written to by all. */
static bool is_free(const char *path, const struct statx *file, enum pio_intent intent) {
    if (!is_at_place(path))
        return false;
    bool is_kept = S_ISREG(file->stx_mode) || S_ISDIR(file->stx_mode) || intent == PIO_CHANGE_LINK ||
                   intent == PIO_CHANGE_ENTRY;
    return !is_kept || is_of_job(file) || is_below(path, "/proc", 5) || is_below(path, "/sys", 4);
}

/* The same of a name; if there is nothing, the job may make it. What is there cannot be made: the call itself says so. */
static bool is_free_name(const char *path, enum pio_intent intent) {
    struct statx file;
    if (is_below(path, control, strlen(control)))
        return true;
    if (intent == PIO_MAKE_ENTRY || !look(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, &file))
        return is_at_place(path);
    return is_free(path, &file, intent);
}

/* The folder of `path` as it really is, with the name's last part. */
static bool really(const char *path, char *real) {
    const char *slash = strrchr(path, '/');
    if (slash == path)
        return strcpy(real, path) != NULL;
    memcpy(real, path, (size_t)(slash - path));
    real[slash - path] = 0;
    if (!real_folder(real))
        return false;
    size_t length = strlen(real);
    return join(real, real, length == 1 ? 0 : length, slash);
}

bool pio_stands_for_file(const char *name) {
    char target[PATH_MAX];
    return folder_count > 0 && read_link(name, target) > 0 && target[0] == '/' && with_original(target) != NULL;
}

/* Says to those who wait for the open file `lock` that the copying goes on. */
static void still_copies(int lock) {
    ask_kernel(SYS_utimensat, lock, NULL, NULL, 0);
}

/* Copies the bytes of one open file to another, in parts that take much less than LONGEST_S each. */
static bool copy_bytes(int from, int to, int lock) {
    if (ioctl(to, FICLONE, from) == 0)
        return true;
    static const size_t most = 8 << 20, most_within_kernel = 64 << 20;
    long got;
    while ((got = ask_kernel(SYS_copy_file_range, from, NULL, to, NULL, most_within_kernel, 0)) > 0)
        still_copies(lock);
    if (got == 0 && lseek(from, 0, SEEK_CUR) > 0)
        return true;
    /* Not between these file systems, or there is nothing. */
    if (lseek(from, 0, SEEK_SET) != 0 || lseek(to, 0, SEEK_SET) != 0)
        return false;
    char *bytes = malloc(most);
    if (bytes == NULL)
        return false;
    while ((got = read(from, bytes, most)) > 0) {
        for (long done = 0; done < got;) {
            long put = write(to, bytes + done, (size_t)(got - done));
            if (put < 0) {
                free(bytes);
                return false;
            }
            done += put;
        }
        still_copies(lock);
    }
    free(bytes);
    return got == 0;
}

/* Only one process of the job replaces a link at a time: a second copy would take the place of what was written to the
 * first. A file that one alone can create works on every file system; one that was killed does not hold up the others.
 * It is open as long as the process has the lock; negative if that fails. */
static int lock(const char *name) {
    struct timespec pause = {0, 1000000};
    for (;;) {
        int fd = (int)ask_kernel(SYS_openat, AT_FDCWD, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd >= 0 || errno != EEXIST)
            return fd;
        struct stat file;
        if (ask_kernel(SYS_newfstatat, AT_FDCWD, name, &file, 0) == 0 && time(NULL) - file.st_ctim.tv_sec > LONGEST_S)
            ask_kernel(SYS_unlinkat, AT_FDCWD, name, 0);
        nanosleep(&pause, NULL);
    }
}

/* Makes `fresh` a copy of `original`, which is `file`; without its bytes, that need not be readable. */
static bool copy_file(const char *original, const struct stat *file, const char *fresh, bool with_bytes, int lock) {
    int from = with_bytes ? (int)ask_kernel(SYS_openat, AT_FDCWD, original, O_RDONLY | O_CLOEXEC, 0) : -1;
    if (with_bytes && from < 0)
        return false;
    int to = (int)ask_kernel(SYS_openat, AT_FDCWD, fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool done = to >= 0 && (!with_bytes || copy_bytes(from, to, lock)) && fchmod(to, file->st_mode & 07777) == 0;
    int saved = errno;
    if (to >= 0)
        close(to);
    if (from >= 0)
        close(from);
    errno = saved;
    return done;
}

/* Replaces the link by a file of its own; one whose file is gone since goes, too. If that fails, errno is set. */
static bool replace(const char *path, bool with_bytes) {
    char name[PATH_MAX], original[PATH_MAX];
    int locked = join(name, control, strlen(control), "/replacing") ? lock(name) : -1;
    if (locked < 0)
        return false;
    bool done = false;
    size_t length = strlen(path);
    char fresh[PATH_MAX];
    struct stat file;
    if (!pio_stands_for_file(path)) {
        done = true; /* another process was faster */
    } else if (read_link(path, original) > 0 && join(fresh, path, length, ".pioscope-new")) {
        if (ask_kernel(SYS_newfstatat, AT_FDCWD, original, &file, 0) != 0) {
            done = errno == ENOENT && ask_kernel(SYS_unlinkat, AT_FDCWD, path, 0) == 0;
        } else {
            /* A call that may not write to it fails, and nothing is overwritten. */
            with_bytes = with_bytes || ask_kernel(SYS_faccessat, AT_FDCWD, original, W_OK) != 0;
            done = copy_file(original, &file, fresh, with_bytes, locked) &&
                   ask_kernel(SYS_renameat2, AT_FDCWD, fresh, AT_FDCWD, path, 0) == 0;
            if (done && with_bytes && file.st_size > 0)
                note("/copied", original);
        }
        if (!done) {
            int saved = errno;
            ask_kernel(SYS_unlinkat, AT_FDCWD, fresh, 0);
            errno = saved;
        }
    }
    int saved = errno;
    close(locked);
    ask_kernel(SYS_unlinkat, AT_FDCWD, name, 0);
    errno = saved;
    return done;
}

static void refuse(struct pio_name *found, const char *path) {
    note("/refused", path);
    errno = EROFS;
    found->used = NULL;
}

/* Whether a link of /proc leads to what has no name, such as a pipe or a file that was removed, or to what this process has
 * open for writing anyway, such as its standard output. */
static bool is_open_anyway(const char *path, const char *target) {
    char own[32];
    struct statx file, link;
    snprintf(own, sizeof own, "/proc/%d", (int)getpid());
    return target[0] != '/' || !look(AT_FDCWD, path, 0, &file) || file.stx_nlink == 0 ||
           (is_below(path, own, strlen(own)) && look(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, &link) &&
            (link.stx_mode & S_IWUSR) != 0);
}

/* On to what a link `real` that holds `target` leads to: to the copy, if it leads to an original. */
static bool follow(struct pio_name *found, const char *real, const char *target) {
    char *path = found->buffer;
    size_t folder_length = above(real, strlen(real));
    memcpy(path, real, folder_length);
    if (!resolve(path, folder_length, target))
        return false;
    if (with_original(path) != NULL || strstr(target, "..") != NULL)
        found->used = path;
    return to_copy(path);
}

/* `found->buffer`, a name outside the copies, is to be read: links on the way may lead to what has a copy. */
static void find_copy(struct pio_name *found, bool follows) {
    char *path = found->buffer, real[PATH_MAX], target[PATH_MAX];
    for (int links = 0; links < MOST_LINKS && with_copy(path) == NULL && really(path, real); links++) {
        if (with_original(real) != NULL) {
            if (to_copy(real))
                found->used = strcpy(path, real);
            return;
        }
        /* What is in /proc is open already. */
        if (!follows || is_below(real, "/proc", 5) || read_link(real, target) == 0 || !follow(found, real, target))
            return;
    }
}

/* `found->buffer` is to be changed: the file that it leads to must be one of the job's own. */
static void make_own(struct pio_name *found, enum pio_intent intent) {
    char *path = found->buffer, real[PATH_MAX], target[PATH_MAX];
    bool is_entry = intent == PIO_MAKE_ENTRY || intent == PIO_CHANGE_ENTRY;
    for (int links = 0; links < MOST_LINKS; links++) {
        if (!really(path, real)) {
            found->used = NULL; /* there is no such folder, or none that can be looked at */
            return;
        }
        if (with_original(real) != NULL) {
            if (!to_copy(real)) {
                found->used = NULL;
                return;
            }
            found->used = strcpy(path, real);
        }
        bool is_in_copy = with_copy(real) != NULL, is_link = !is_entry && read_link(real, target) > 0;
        bool is_of_proc = is_link && is_below(real, "/proc", 5);
        if (is_of_proc && is_open_anyway(real, target))
            return;
        /* The job may have moved such a link to where its own files are. */
        if (is_link && !is_of_proc && pio_stands_for_file(real) && (is_in_copy || is_free_name(real, PIO_CHANGE_LINK))) {
            if (!replace(real, intent != PIO_REPLACE_FILE)) {
                int why = errno;
                if (why == EACCES || why == EPERM)
                    note("/refused", target);
                errno = why;
                found->used = NULL; /* what the link leads to is the user's */
            }
            return;
        }
        if (!is_link || intent == PIO_CHANGE_LINK) {
            if (!is_in_copy && !is_free_name(real, intent))
                refuse(found, real);
            return;
        }
        /* A link of the user's or of the job's. */
        if (!follow(found, real, target)) {
            found->used = NULL;
            return;
        }
    }
}

bool pio_scratch_may_change(int fd) {
    char link[40], path[PATH_MAX];
    struct statx file;
    if (folder_count == 0 || fd < 0)
        return true;
    int saved = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    bool has_name = read_link(link, path) > 0 && path[0] == '/' && look(fd, "", AT_EMPTY_PATH, &file) && file.stx_nlink > 0;
    bool may = !has_name || with_copy(path) != NULL || is_below(path, control, strlen(control)) ||
               (with_original(path) == NULL && is_free(path, &file, PIO_CHANGE_FILE));
    errno = saved;
    if (!may) {
        note("/refused", path);
        errno = EROFS;
    }
    return may;
}

/* Nothing is in the first page: what programs pass by mistake for a name is there, and the kernel tells them. */
static bool is_mapped(const char *name) {
    return (uintptr_t)name >= 4096;
}

void pio_scratch_name(struct pio_name *found, int folder, const char *name, enum pio_intent intent) {
    found->used = name;
    if (folder_count == 0 || !is_mapped(name))
        return;
    if (intent == PIO_CHANGE_OPEN && !pio_scratch_may_change(folder))
        found->used = NULL;
    if (intent == PIO_CHANGE_OPEN || name[0] == 0)
        return;
    bool is_reading = intent == PIO_READ || intent == PIO_LOOK;
    /* The job works in a copy: what it names from there on is in it, if it does not leave it. */
    if (is_reading && name[0] != '/' && folder == AT_FDCWD && strstr(name, "..") == NULL && intent == PIO_READ &&
        !may_lead_to_scratch(name))
        return;
    int saved = errno;
    char *path = found->buffer;
    if (absolute(folder, name, path)) {
        bool is_scratch = to_scratch(path), is_original = with_original(path) != NULL;
        bool has_left = name[0] != '/' && with_copy(path) == NULL;
        if (to_copy(path)) {
            /* What is looked at here is what the call is to get: `..` must lead both the same way. */
            if (is_scratch || is_original || has_left || strstr(name, "..") != NULL)
                found->used = path;
            if (!is_reading)
                make_own(found, intent);
            else if (with_copy(path) == NULL)
                find_copy(found, intent == PIO_READ);
            else if (intent == PIO_LOOK)
                found->used = path;
        } else if (!is_reading) {
            found->used = NULL;
        }
    } else if (!is_reading || name[0] == '/') {
        found->used = NULL;
    }
    if (found->used != NULL)
        errno = saved;
}

const char *pio_scratch_target(struct pio_name *found, const char *target) {
    if (!is_mapped(target) || target[0] != '/' || strlen(target) >= PATH_MAX || folder_count == 0)
        return target;
    strcpy(found->buffer, target);
    return to_copy(found->buffer) ? found->buffer : target;
}
