/* Programs that a recorded process starts.
 *
 * A program must run as it would without us, and be seen if it can be. So before one is started we look at its file
 * (pio_program.h), and start it with an environment in which the recorder is named (whatever the caller made of it), or
 * is not, where that would end the program. Programs that cannot be seen are noted (pio_unseen.h).
 *
 * All of it may run in a child of vfork or fork: no allocation, no lock. */
#include "pio_descriptors.h"
#include "pio_environment.h"
#include "pio_kernel.h"
#include "pio_numbered.h"
#include "pio_process.h"
#include "pio_unseen.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int execveat(int folder, const char *path, char *const words[], char *const environment[], int flags);

extern char **environ;

/* An environment of more is not made on the stack, which is small in a handler of signals; but in a child of vfork, where what is
 * mapped would stay behind in the parent. */
#define ENVIRONMENT_ON_STACK 1024u
#define ENVIRONMENT_ON_STACK_OF_PARENT 32768u

/* Also where recording has stopped: what is started is told of the recorder, and may not bear it. */
static bool looks_at_programs(void) {
    return recording() || pio_spool_folder[0] != 0;
}

/* Where the C library will find a program of that name: NULL if nowhere. */
static const char *find_program(const char *name, char *path) {
    if (*name == 0 || strchr(name, '/') != NULL)
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
        pio_look_at_program(found, program);
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
        char *path = pio_is_environment(from) ? pio_take_path_buffer() : NULL;                                         \
        if (path == NULL) {                                                                                            \
            char *const *made = from;                                                                                  \
            errno = saved;                                                                                             \
            result = start;                                                                                            \
            break;                                                                                                     \
        }                                                                                                              \
        look_at_named(name, &program, path);                                                                           \
        char what[512];                                                                                                \
        snprintf(what, sizeof what, "%s", path);                                                                       \
        pio_give_path_buffer(path);                                                                                    \
        size_t bytes = pio_environment_bytes(from);                                                                    \
        bool on_stack = bytes <= (is_owner() ? ENVIRONMENT_ON_STACK : ENVIRONMENT_ON_STACK_OF_PARENT);                 \
        void *memory = on_stack ? NULL                                                                                 \
                                : (void *)KERNEL(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE,                        \
                                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);                                  \
        void *stack[on_stack ? bytes / sizeof(void *) + 1 : 1];                                                        \
        if (on_stack)                                                                                                  \
            memory = stack;                                                                                            \
        char *const *made = memory == MAP_FAILED ? from : pio_build_environment(from, &program, memory);               \
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
            pio_descriptors_are_shared();                                                                              \
        int result;                                                                                                    \
        WITH_ENVIRONMENT(result, name, from, start,                                                                    \
                         if (is_unseen) pio_note_unseen((uint32_t)KERNEL(SYS_getpid), program.reason, what),           \
                         if (is_unseen) pio_take_back_unseen(), true);                                                 \
        return result;                                                                                                 \
    } while (0)

DECLARE_NEXT(execve)
DECLARE_NEXT(execvpe)
DECLARE_NEXT(fexecve)
DECLARE_NEXT(posix_spawn)
DECLARE_NEXT(posix_spawnp)

/* A program that is not searched for, as it is looked at: by a name with a slash. */
#define IN_FOLDER_BYTES 264
static const char *in_folder(const char *name, char here[IN_FOLDER_BYTES]) {
    if (strchr(name, '/') != NULL)
        return name;
    snprintf(here, IN_FOLDER_BYTES, "%s%.255s", *name == 0 ? "" : "./", name);
    return here;
}

EXPORT int execve(const char *name, char *const words[], char *const environment[]) {
    if (!looks_at_programs() || !pio_can_read(name))
        return NEXT(execve)(name, words, environment);
    char here[IN_FOLDER_BYTES];
    BECOME(in_folder(name, here), environment, NEXT(execve)(name, words, made));
}

EXPORT int execv(const char *name, char *const words[]) {
    return execve(name, words, environ);
}

EXPORT int execvpe(const char *name, char *const words[], char *const environment[]) {
    if (!looks_at_programs() || !pio_can_read(name))
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
    if (!looks_at_programs() || fd < 0)
        return NEXT(fexecve)(fd, words, environment);
    char name[32];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    BECOME(name, environment, NEXT(fexecve)(fd, words, made));
}

/* As execveat(2), by a call of that number. */
static int become_at(const struct numbered *asked, long (*make)(const struct numbered *)) {
    int folder = (int)asked->a;
    const char *path_in_it = (const char *)asked->b;
    if (!looks_at_programs() || !pio_can_read(path_in_it))
        return (int)make(asked);
    char name[512];
    if (path_in_it[0] == '/' || (folder == AT_FDCWD && path_in_it[0] != 0))
        snprintf(name, sizeof name, "%s%s", strchr(path_in_it, '/') == NULL ? "./" : "", path_in_it);
    else
        snprintf(name, sizeof name, "/proc/self/fd/%d%s%s", folder, path_in_it[0] == 0 ? "" : "/", path_in_it);
    struct numbered made_so = *asked;
    BECOME(name, (char *const *)asked->d, (made_so.d = (long)made, (int)make(&made_so)));
}

static long by_kernel(const struct numbered *asked) {
    return KERNEL(asked->number, asked->a, asked->b, asked->c, asked->d, asked->e);
}

/* By the kernel's own call: a C library before 2.34 has no function. */
EXPORT int execveat(int folder, const char *path_in_it, char *const words[], char *const environment[], int flags) {
    const struct numbered asked = {SYS_execveat, folder, (long)path_in_it, (long)words, (long)environment, flags, 0};
    return become_at(&asked, by_kernel);
}

static int become_by_number(const struct numbered *asked) {
    const char *name = (const char *)asked->a;
    if (!looks_at_programs() || !pio_can_read(name))
        return (int)pass_on(asked);
    char here[IN_FOLDER_BYTES];
    struct numbered made_so = *asked;
    BECOME(in_folder(name, here), (char *const *)asked->c, (made_so.c = (long)made, (int)pass_on(&made_so)));
}

long pio_numbered_exec(const struct numbered *asked) {
    return asked->number == SYS_execve ? become_by_number(asked) : become_at(asked, pass_on);
}

/* A spawned child shares our open files: their positions move without us. */
#define HOOK_SPAWN(name, searched)                                                                                     \
    EXPORT int name(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,                           \
                    const posix_spawnattr_t *attributes, char *const words[], char *const environment[]) {             \
        if (!looks_at_programs() || !pio_can_read(file))                                                               \
            return NEXT(name)(pid, file, actions, attributes, words, environment);                                     \
        pio_descriptors_are_shared();                                                                                  \
        int error;                                                                                                     \
        pid_t child = -1;                                                                                              \
        char here[IN_FOLDER_BYTES] __attribute__((unused));                                                            \
        WITH_ENVIRONMENT(error, searched, environment, NEXT(name)(&child, file, actions, attributes, words, made), ,   \
                         if (is_unseen) pio_note_unseen((uint32_t)child, program.reason, what), error == 0);           \
        if (error == 0 && pid != NULL)                                                                                 \
            *pid = child;                                                                                              \
        return error;                                                                                                  \
    }

HOOK_SPAWN(posix_spawn, in_folder(file, here))
HOOK_SPAWN(posix_spawnp, file)

/* Where the C library starts a shell by itself, it hands on the environment as it is: the recorder must be in there. */
static void before_shell(void) {
    if (!recording())
        return;
    int saved = errno;
    pio_descriptors_are_shared();
    if (!PIO_STARTS_ONLY && is_owner() && pio_is_readable(pio_own_libraries) && getenv(PIO_TOLD("SPOOL")) == NULL) {
        setenv(PIO_TOLD("SPOOL"), pio_spool_folder, 1);
        setenv(PIO_TOLD("PRELOAD"), pio_own_libraries, 1);
        setenv(PIO_TOLD("RECORDER"), pio_recorder_libraries, 1);
        setenv(PIO_TOLD("PATHS"), pio_path_rules, 1);
        setenv(PIO_TOLD("CALL_SITES"), pio_call_sites_wanted, 1);
        if (getenv("LD_PRELOAD") == NULL)
            setenv("LD_PRELOAD", pio_own_libraries, 1);
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
