/* Programs that a recorded process starts, and waits for. Part of pio_posix.c.
 *
 * A program must run as it would without us, and be seen if it can be. So before one is started we look at its file
 * (pio_program.h), and start it with an environment in which the recorder is named (whatever the caller made of it), or
 * is not, where that would end the program. Programs that cannot be seen are noted in a file of their own, one a process:
 * which program and why, and what it had moved in the end, by /proc, which the waiting parent reads before it lets the
 * process go. The collector (src/unseen.rs) reads the notes.
 *
 * All of it may run in a child of vfork or fork: no allocation, no lock. */
#include "pio_program.h"

#include <sys/wait.h>

int execveat(int folder, const char *path, char *const words[], char *const environment[], int flags);

extern char **environ;

/* Notes on what cannot be seen -------------------------------------------------------------------------------------- */

/* Opens the notes on a process, in the job's folder or in that for other users; -1 if that cannot be. */
static int open_notes(uint32_t pid, int flags) {
    char *path = take_path_buffer();
    if (path == NULL)
        return -1;
    int fd = -1;
    struct utsname names;
    if (uname(&names) == 0) {
        host_name(&names);
        const char *const folders[] = {spool_folder, others_folder};
        for (int i = 0; i < 2 && fd < 0; i++) {
            if (folders[i][0] == 0)
                continue;
            snprintf(path, PATH_MAX, "%s/%s-%u.unseen", folders[i], names.nodename, pid);
            fd = (int)KERNEL(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
        }
    }
    give_path_buffer(path);
    return fd;
}

/* The kernel's account of a process; -1 if it may not be known. */
static int open_account(uint32_t pid) {
    char path[40];
    snprintf(path, sizeof path, "/proc/%u/io", pid);
    return (int)KERNEL(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
}

/* What a process has read and written, by its account: false if that may not be known. */
static bool moved_bytes(int account, unsigned long long *read, unsigned long long *written) {
    char text[256];
    long length = account < 0 ? -1 : KERNEL(SYS_pread64, account, text, sizeof text - 1, 0);
    text[length < 0 ? 0 : length] = 0;
    return sscanf(text, "rchar: %llu wchar: %llu", read, written) == 2;
}

static void append_line(int fd, const char *line) {
    (void)KERNEL(SYS_write, fd, line, strlen(line));
    KERNEL(SYS_close, fd);
}

/* Notes that a process runs (or, by this process itself, is about to run) a program that cannot be seen. */
static void note_unseen(uint32_t pid, const char *reason, const char *program) {
    int fd = open_notes(pid, O_CREAT);
    if (fd < 0)
        return;
    unsigned long long read = 0, written = 0;
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    bool is_self = pid == (uint32_t)KERNEL(SYS_getpid);
    if (is_self) {
        int account = open_account(pid);
        moved_bytes(account, &read, &written);
        if (account >= 0)
            KERNEL(SYS_close, account);
    }
    char line[512 + 192];
    /* Twice: what the process itself writes here is none of what the program will. */
    for (int pass = 0; pass < 2; pass++) {
        snprintf(line, sizeof line - 1, "start %s %llu %llu %020llu %u %.512s", reason,
                 (unsigned long long)now, read, written, is_self ? (uint32_t)getppid() : (uint32_t)getpid(),
                 program);
        if (is_self && pass == 0)
            written += strlen(line) + 1;
    }
    for (char *c = line; *c != 0; c++)
        if (*c == '\n')
            *c = '?';
    append_line(fd, strcat(line, "\n"));
}

/* The program did not start after all. */
static void take_back_unseen(void) {
    int fd = open_notes((uint32_t)KERNEL(SYS_getpid), 0);
    if (fd >= 0)
        append_line(fd, "failed\n");
}

/* Children that a thread waits for, and their accounts: newer kernels let only root open that of a process that has
 * ended. */
enum { ACCOUNTS = 16 };

struct accounts {
    int count;
    uint32_t pids[ACCOUNTS];
    int fds[ACCOUNTS];
};

static void keep_account(struct accounts *kept, uint32_t pid) {
    int fd = kept->count < ACCOUNTS ? open_account(pid) : -1;
    if (fd < 0)
        return;
    kept->pids[kept->count] = pid;
    kept->fds[kept->count++] = fd;
}

/* Those of the child `pid`, or if that is 0 of all children that this thread has started: as many as there is room for. */
static void keep_accounts(struct accounts *kept, pid_t pid) {
    kept->count = 0;
    if (pid > 0) {
        keep_account(kept, (uint32_t)pid);
        return;
    }
    char text[512];
    size_t length = read_small_file("/proc/thread-self/children", text, sizeof text - 1);
    /* A number that is cut off is none. */
    while (length == sizeof text - 1 && length > 0 && text[length - 1] != ' ')
        length--;
    text[length] = 0;
    for (char *at = text, *end; *at != 0; at = end) {
        unsigned long child = strtoul(at, &end, 10);
        if (end == at)
            break;
        keep_account(kept, (uint32_t)child);
    }
}

static int account_of(const struct accounts *kept, uint32_t pid) {
    for (int i = 0; i < kept->count; i++)
        if (kept->pids[i] == pid)
            return kept->fds[i];
    return -1;
}

static void drop_accounts(struct accounts *kept) {
    while (kept->count > 0)
        KERNEL(SYS_close, kept->fds[--kept->count]);
}

/* A child has ended, and is still there: notes what it moved, if it was noted as not seen. */
static void note_end(uint32_t pid, struct accounts *kept) {
    int fd = open_notes(pid, 0);
    if (fd < 0)
        return;
    int account = account_of(kept, pid);
    if (account < 0) {
        keep_account(kept, pid);
        account = account_of(kept, pid);
    }
    unsigned long long read, written;
    char line[64] = "end\n";
    if (moved_bytes(account, &read, &written))
        snprintf(line, sizeof line, "end %llu %llu\n", read, written);
    append_line(fd, line);
}

/* The environment of a program ------------------------------------------------------------------------------------- */

#define ENVIRONMENT_ON_STACK 32768u

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
        if (length > 0 && !is_entry(list, length, own_libraries) && !is_entry(list, length, others_libraries) &&
            !is_entry(list, length, own_sanitizer)) {
            has_sanitizer = has_sanitizer || is_sanitizer(list, length);
            *end = append_entry(*end, list, length);
        }
        list += length;
        list += *list != 0;
    }
    return has_sanitizer;
}

/* Whether our libraries are still there, and readable by whom this process has become. */
static bool is_readable(const char *list) {
    char *path = take_path_buffer();
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
    give_path_buffer(path);
    return readable;
}

/* Whether this process may leave notes there. */
static bool is_writable(const char *folder) {
    return folder[0] != 0 && KERNEL(SYS_faccessat, AT_FDCWD, folder, W_OK | X_OK) == 0;
}

static size_t count_of(char *const *list) {
    size_t count = 0;
    while (list != NULL && list[count] != NULL)
        count++;
    return count;
}

/* Room for what build_environment() makes. */
static size_t environment_bytes(char *const *from) {
    size_t list = 0;
    for (size_t i = 0; i < count_of(from); i++) {
        const char *value = after_name(from[i], "LD_PRELOAD");
        list += value == NULL ? 0 : strlen(value) + 1;
    }
    size_t names = 256; /* of the variables and their ends */
    return (count_of(from) + 8) * sizeof(char *) + list + 2 * (strlen(own_libraries) + strlen(others_libraries)) +
           PIO_SANITIZER_BYTES * 2 + strlen(path_rules) + strlen(spool_folder) + 2 * strlen(others_folder) + names;
}

static char *put_variable(char **text, const char *name, const char *value) {
    char *variable = *text;
    *text = stpcpy(stpcpy(stpcpy(variable, name), "="), value) + 1;
    return variable;
}

/* `from` in `memory`, with the recorder in it, or without where the program would not run with it. */
static char **build_environment(char *const *from, struct pio_program *program, void *memory) {
    char **made = memory;
    char *text = (char *)(made + count_of(from) + 8);
    const char *preload = NULL;
    for (size_t i = 0; i < count_of(from); i++) {
        const char *value = after_name(from[i], "LD_PRELOAD");
        if (value != NULL && preload == NULL)
            preload = value;
        if (value == NULL && after_name(from[i], "PIOSCOPE_SPOOL") == NULL &&
            after_name(from[i], "PIOSCOPE_PRELOAD") == NULL && after_name(from[i], "PIOSCOPE_OTHERS") == NULL &&
            after_name(from[i], "PIOSCOPE_OTHERS_PRELOAD") == NULL && after_name(from[i], "PIOSCOPE_PATHS") == NULL &&
            after_name(from[i], "PIOSCOPE_FIRST") == NULL)
            *made++ = from[i];
    }
    const char *folder = spool_folder, *libraries = own_libraries;
    if (!is_readable(libraries) || !is_writable(folder)) {
        folder = others_folder;
        libraries = others_libraries;
        if (!is_readable(libraries) || !is_writable(folder)) {
            /* Another user's program; or the job is over, and its folder gone. */
            libraries = "";
            folder = spool_folder;
            if (program->reason == NULL)
                program->reason = "user";
        }
    }
    if (program->is_harmed)
        libraries = "";
    char *list = text;
    char *end = stpcpy(list, "LD_PRELOAD=");
    const char *sanitizer = libraries[0] == 0 ? "" : program->sanitizer;
    if (sanitizer[0] != 0)
        end = append_entry(end, sanitizer, strlen(sanitizer));
    char *ours = end;
    if (libraries[0] != 0)
        end = append_entry(end, libraries, strlen(libraries));
    if (append_others(&end, preload) && libraries[0] != 0) {
        end = ours;
        append_others(&end, preload);
        end = append_entry(end, libraries, strlen(libraries));
    }
    *end = 0;
    text = end + 1;
    if (end[-1] != '=')
        *made++ = list;
    *made++ = put_variable(&text, "PIOSCOPE_SPOOL", folder);
    *made++ = put_variable(&text, "PIOSCOPE_PRELOAD", own_libraries);
    if (others_folder[0] != 0) {
        *made++ = put_variable(&text, "PIOSCOPE_OTHERS", others_folder);
        *made++ = put_variable(&text, "PIOSCOPE_OTHERS_PRELOAD", others_libraries);
    }
    *made++ = put_variable(&text, "PIOSCOPE_PATHS", path_rules);
    if (sanitizer[0] != 0)
        *made++ = put_variable(&text, "PIOSCOPE_FIRST", sanitizer);
    *made = NULL;
    return memory;
}

/* In a process that was started with a sanitizer before us: its children are to be started without, and system() and
 * others hand on the process's environment as it is. */
static void forget_sanitizer(void) {
    char *list = getenv("LD_PRELOAD");
    char *first = getenv("PIOSCOPE_FIRST");
    if (list == NULL || first == NULL || first[0] == 0)
        return;
    size_t length = strlen(first);
    if (strncmp(list, first, length) == 0 && list[length] == ':')
        memmove(list, list + length + 1, strlen(list + length + 1) + 1);
    first[0] = 0;
}

/* Starting --------------------------------------------------------------------------------------------------------- */

/* Where the C library will find a program of that name: NULL if nowhere. */
static const char *find_program(const char *name, char *path) {
    if (name == NULL || *name == 0 || strchr(name, '/') != NULL)
        return name;
    const char *folders = getenv("PATH");
    if (folders == NULL)
        folders = "/bin:/usr/bin";
    for (;;) {
        size_t length = strcspn(folders, ":");
        if (length + strlen(name) + 2 < PATH_MAX) {
            memcpy(path, folders, length);
            path[length] = '/';
            strcpy(path + length + (length > 0), name);
            struct stat file;
            if (KERNEL(SYS_faccessat, AT_FDCWD, path, X_OK) == 0 &&
                KERNEL(SYS_newfstatat, AT_FDCWD, path, &file, 0) == 0 && S_ISREG(file.st_mode))
                return path;
        }
        folders += length;
        if (*folders == 0)
            return NULL;
        folders++;
    }
}

static void look_at_named(const char *name, struct pio_program *program, char *path) {
    const char *found = find_program(name, path);
    if (found != NULL && *found != 0) {
        pio_look_at(found, program);
        if (found != path)
            snprintf(path, PATH_MAX, "%s", found);
    } else {
        memset(program, 0, sizeof *program);
        path[0] = 0;
    }
}

/* Evaluates `start`, in which `made` stands for the environment. `name` is searched for as execvp does, unless it has a
 * slash. errno is what `start` leaves. */
#define WITH_ENVIRONMENT(result, name, from, start, on_start, on_failure, is_failure)                                  \
    do {                                                                                                               \
        int saved = errno;                                                                                             \
        struct pio_program program;                                                                                    \
        char *path = take_path_buffer();                                                                               \
        if (path == NULL) {                                                                                            \
            char *const *made = from;                                                                                  \
            errno = saved;                                                                                             \
            result = start;                                                                                            \
            break;                                                                                                     \
        }                                                                                                              \
        look_at_named(name, &program, path);                                                                           \
        char what[512];                                                                                                \
        snprintf(what, sizeof what, "%s", path);                                                                       \
        give_path_buffer(path);                                                                                        \
        size_t bytes = environment_bytes(from);                                                                        \
        bool on_stack = bytes <= ENVIRONMENT_ON_STACK;                                                                 \
        void *memory = on_stack ? NULL                                                                                 \
                                : (void *)KERNEL(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE,                        \
                                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);                                  \
        void *stack[on_stack ? bytes / sizeof(void *) + 1 : 1];                                                        \
        if (on_stack)                                                                                                  \
            memory = stack;                                                                                            \
        char *const *made = memory == MAP_FAILED ? from : build_environment(from, &program, memory);                   \
        bool is_unseen = program.reason != NULL;                                                                       \
        on_start;                                                                                                      \
        errno = saved;                                                                                                 \
        result = start;                                                                                                \
        saved = errno;                                                                                                 \
        if (is_failure)                                                                                                \
            on_failure;                                                                                                \
        if (!on_stack && memory != MAP_FAILED)                                                                         \
            KERNEL(SYS_munmap, memory, bytes);                                                                         \
        errno = saved;                                                                                                 \
    } while (0)

/* This process becomes another program. In a child of vfork it still works in our memory, and what it becomes shares our
 * open files. */
#define BECOME(name, from, start)                                                                                      \
    do {                                                                                                               \
        if (!is_owner())                                                                                               \
            descriptors_are_shared();                                                                                  \
        int result;                                                                                                    \
        WITH_ENVIRONMENT(result, name, from, start,                                                                    \
                         if (is_unseen) note_unseen((uint32_t)KERNEL(SYS_getpid), program.reason, what),               \
                         if (is_unseen) take_back_unseen(), true);                                                     \
        return result;                                                                                                 \
    } while (0)

DECLARE_NEXT(execve)
DECLARE_NEXT(execvpe)
DECLARE_NEXT(fexecve)
DECLARE_NEXT(execveat)
DECLARE_NEXT(posix_spawn)
DECLARE_NEXT(posix_spawnp)

EXPORT int execve(const char *name, char *const words[], char *const environment[]) {
    if (!recording() || name == NULL)
        return NEXT(execve)(name, words, environment);
    char here[264];
    snprintf(here, sizeof here, "./%.255s", name);
    BECOME(strchr(name, '/') == NULL ? here : name, environment, NEXT(execve)(name, words, made));
}

EXPORT int execv(const char *name, char *const words[]) {
    return execve(name, words, environ);
}

EXPORT int execvpe(const char *name, char *const words[], char *const environment[]) {
    if (!recording() || name == NULL)
        return NEXT(execvpe)(name, words, environment);
    BECOME(name, environment, NEXT(execvpe)(name, words, made));
}

EXPORT int execvp(const char *name, char *const words[]) {
    return execvpe(name, words, environ);
}

/* The words of execl and its kin as a list. */
#define WORDS_OF(first, list, arguments)                                                                               \
    va_start(arguments, first);                                                                                        \
    size_t words_count = 1;                                                                                            \
    while (first != NULL && va_arg(arguments, char *) != NULL)                                                         \
        words_count++;                                                                                                 \
    va_end(arguments);                                                                                                 \
    char *list[words_count + 1];                                                                                       \
    va_start(arguments, first);                                                                                        \
    list[0] = (char *)first;                                                                                           \
    for (size_t i = 1; i < words_count; i++)                                                                           \
        list[i] = va_arg(arguments, char *);                                                                           \
    if (first != NULL)                                                                                                 \
        (void)va_arg(arguments, char *);                                                                               \
    list[words_count] = NULL;

EXPORT int execl(const char *name, const char *word, ...) {
    va_list arguments;
    WORDS_OF(word, words, arguments)
    va_end(arguments);
    return execve(name, words, environ);
}

EXPORT int execlp(const char *name, const char *word, ...) {
    va_list arguments;
    WORDS_OF(word, words, arguments)
    va_end(arguments);
    return execvpe(name, words, environ);
}

EXPORT int execle(const char *name, const char *word, ...) {
    va_list arguments;
    WORDS_OF(word, words, arguments)
    char *const *environment = va_arg(arguments, char *const *);
    va_end(arguments);
    return execve(name, words, environment);
}

EXPORT int fexecve(int fd, char *const words[], char *const environment[]) {
    if (!recording() || fd < 0)
        return NEXT(fexecve)(fd, words, environment);
    char name[32];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    BECOME(name, environment, NEXT(fexecve)(fd, words, made));
}

EXPORT int execveat(int folder, const char *path_in_it, char *const words[], char *const environment[], int flags) {
    if (!recording() || path_in_it == NULL)
        return NEXT(execveat)(folder, path_in_it, words, environment, flags);
    char name[512];
    if (path_in_it[0] == '/' || (folder == AT_FDCWD && path_in_it[0] != 0))
        snprintf(name, sizeof name, "%s%s", strchr(path_in_it, '/') == NULL ? "./" : "", path_in_it);
    else
        snprintf(name, sizeof name, "/proc/self/fd/%d%s%s", folder, path_in_it[0] == 0 ? "" : "/", path_in_it);
    BECOME(name, environment, NEXT(execveat)(folder, path_in_it, words, made, flags));
}

/* A spawned child shares our open files: their positions move without us. */
#define HOOK_SPAWN(name, searched)                                                                                     \
    EXPORT int name(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,                           \
                    const posix_spawnattr_t *attributes, char *const words[], char *const environment[]) {             \
        if (!recording() || file == NULL)                                                                              \
            return NEXT(name)(pid, file, actions, attributes, words, environment);                                     \
        descriptors_are_shared();                                                                                      \
        int error;                                                                                                     \
        pid_t child = -1;                                                                                              \
        WITH_ENVIRONMENT(error, searched, environment, NEXT(name)(&child, file, actions, attributes, words, made), ,   \
                         if (is_unseen) note_unseen((uint32_t)child, program.reason, what), error == 0);               \
        if (error == 0 && pid != NULL)                                                                                 \
            *pid = child;                                                                                              \
        return error;                                                                                                  \
    }

HOOK_SPAWN(posix_spawn, strchr(file, '/') == NULL ? "" : file)
HOOK_SPAWN(posix_spawnp, file)

/* Where the C library starts a shell by itself, it hands on the environment as it is: the recorder must be in there. */
static void before_shell(void) {
    if (!recording())
        return;
    int saved = errno;
    descriptors_are_shared();
    if (is_owner() && is_readable(own_libraries) && getenv("PIOSCOPE_SPOOL") == NULL) {
        setenv("PIOSCOPE_SPOOL", spool_folder, 1);
        setenv("PIOSCOPE_PRELOAD", own_libraries, 1);
        setenv("PIOSCOPE_PATHS", path_rules, 1);
        if (getenv("LD_PRELOAD") == NULL)
            setenv("LD_PRELOAD", own_libraries, 1);
    }
    errno = saved;
}

DECLARE_NEXT(system)
EXPORT int system(const char *line) {
    before_shell();
    return NEXT(system)(line);
}

DECLARE_NEXT(popen)
EXPORT FILE *popen(const char *line, const char *mode) {
    before_shell();
    return NEXT(popen)(line, mode);
}

/* Waiting ---------------------------------------------------------------------------------------------------------- */

DECLARE_NEXT(wait4)
DECLARE_NEXT(waitid)

static bool has_ended(const siginfo_t *child) {
    return child->si_code == CLD_EXITED || child->si_code == CLD_KILLED || child->si_code == CLD_DUMPED;
}

/* Looks which child a call would return, and notes what it moved if it was not seen. */
static int look_for_child(idtype_t kind, id_t id, siginfo_t *child, int options) {
    struct accounts kept = {.count = 0};
    int saved = errno;
    if ((options & WNOHANG) == 0)
        keep_accounts(&kept, kind == P_PID ? (pid_t)id : 0);
    errno = saved;
    int looked = NEXT(waitid)(kind, id, child, options | WNOWAIT);
    saved = errno;
    if (looked == 0 && has_ended(child))
        note_end((uint32_t)child->si_pid, &kept);
    drop_accounts(&kept);
    errno = saved;
    return looked;
}

/* Takes the child that the call would return, once it has been looked at. Options of tracers are passed on as they are. */
EXPORT pid_t wait4(pid_t pid, int *status, int options, struct rusage *usage) {
    if (!recording() || (options & ~(WNOHANG | WUNTRACED | WCONTINUED)) != 0)
        return NEXT(wait4)(pid, status, options, usage);
    int looking = WEXITED | (options & WNOHANG) | (options & WUNTRACED ? WSTOPPED : 0) | (options & WCONTINUED);
    for (;;) {
        siginfo_t child = {.si_signo = 0};
        idtype_t kind = pid > 0 ? P_PID : pid == -1 ? P_ALL : P_PGID;
        id_t id = pid > 0 ? (id_t)pid : pid == -1 ? 0 : pid == 0 ? (id_t)getpgrp() : (id_t)-pid;
        int saved = errno;
        if (look_for_child(kind, id, &child, looking) != 0)
            return -1;
        if (child.si_pid == 0)
            return 0;
        pid_t taken = NEXT(wait4)(child.si_pid, status, options | WNOHANG, usage);
        if (taken > 0 || (taken < 0 && (errno != ECHILD || pid > 0)))
            return taken;
        errno = saved; /* another thread was faster */
    }
}

EXPORT pid_t wait3(int *status, int options, struct rusage *usage) {
    return wait4(-1, status, options, usage);
}

EXPORT pid_t waitpid(pid_t pid, int *status, int options) {
    return wait4(pid, status, options, NULL);
}

EXPORT pid_t wait(int *status) {
    return wait4(-1, status, 0, NULL);
}

EXPORT int waitid(idtype_t kind, id_t id, siginfo_t *info, int options) {
    if (!recording() || (options & WEXITED) == 0 || (options & ~(WEXITED | WSTOPPED | WCONTINUED | WNOHANG)) != 0)
        return NEXT(waitid)(kind, id, info, options);
    for (;;) {
        siginfo_t child = {.si_signo = 0};
        int saved = errno;
        int looked = look_for_child(kind, id, &child, options);
        if (looked != 0 || child.si_pid == 0) {
            if (looked == 0 && info != NULL)
                *info = child;
            return looked;
        }
        siginfo_t taken = {.si_signo = 0};
        int result = NEXT(waitid)(P_PID, (id_t)child.si_pid, &taken, options | WNOHANG);
        if (result == 0 && taken.si_pid != 0) {
            if (info != NULL)
                *info = taken;
            return 0;
        }
        if (result != 0 && (errno != ECHILD || kind == P_PID))
            return result;
        errno = saved;
    }
}
