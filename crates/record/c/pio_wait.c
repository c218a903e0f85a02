/* Waiting for children: what one that cannot be seen has moved is noted before it goes (pio_unseen.h). */
#include "pio_numbered.h"
#include "pio_process.h"
#include "pio_unseen.h"

#include <errno.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

DECLARE_NEXT(wait4)
DECLARE_NEXT(waitid)

static bool has_ended(const siginfo_t *child) {
    return child->si_code == CLD_EXITED || child->si_code == CLD_KILLED || child->si_code == CLD_DUMPED;
}

/* As the program asks: by the functions, or by number. */
static pid_t ask(bool by_number, pid_t pid, int *status, int options, struct rusage *usage) {
    return by_number ? (pid_t)pass_on(&(struct numbered){SYS_wait4, pid, (long)status, options, (long)usage, 0, 0})
                     : NEXT(wait4)(pid, status, options, usage);
}

static int ask_id(bool by_number, idtype_t kind, id_t id, siginfo_t *child, int options) {
    return by_number ? (int)pass_on(&(struct numbered){SYS_waitid, kind, id, (long)child, options, 0, 0})
                     : NEXT(waitid)(kind, id, child, options);
}

/* Looks which child a call would return, and notes what it moved if it was not seen. */
static int look_for_child(bool by_number, idtype_t kind, id_t id, siginfo_t *child, int options) {
    struct accounts kept = {.count = 0};
    int saved = errno;
    if ((options & WNOHANG) == 0)
        pio_keep_accounts(&kept, kind == P_PID ? (pid_t)id : 0);
    errno = saved;
    int looked = ask_id(by_number, kind, id, child, options | WNOWAIT);
    saved = errno;
    if (looked == 0 && has_ended(child))
        pio_note_end((uint32_t)child->si_pid, &kept);
    pio_drop_accounts(&kept);
    errno = saved;
    return looked;
}

/* Takes the child that the call would return, once it has been looked at. Options of tracers are passed on as they are. */
static pid_t take(bool by_number, pid_t pid, int *status, int options, struct rusage *usage) {
    if (!recording() || (options & ~(WNOHANG | WUNTRACED | WCONTINUED)) != 0)
        return ask(by_number, pid, status, options, usage);
    int looking = WEXITED | (options & WNOHANG) | (options & WUNTRACED ? WSTOPPED : 0) | (options & WCONTINUED);
    for (;;) {
        siginfo_t child = {.si_signo = 0};
        idtype_t kind = pid > 0 ? P_PID : pid == -1 ? P_ALL : P_PGID;
        id_t id = pid > 0 ? (id_t)pid : pid == -1 ? 0 : pid == 0 ? (id_t)getpgrp() : (id_t)-pid;
        int saved = errno;
        if (look_for_child(by_number, kind, id, &child, looking) != 0)
            return -1;
        if (child.si_pid == 0)
            return 0;
        pid_t taken = ask(by_number, child.si_pid, status, options | WNOHANG, usage);
        if (taken > 0 || (taken < 0 && (errno != ECHILD || pid > 0)))
            return taken;
        errno = saved; /* another thread was faster */
    }
}

EXPORT pid_t wait4(pid_t pid, int *status, int options, struct rusage *usage) {
    return take(false, pid, status, options, usage);
}

EXPORT pid_t wait3(int *status, int options, struct rusage *usage) {
    return take(false, -1, status, options, usage);
}

EXPORT pid_t waitpid(pid_t pid, int *status, int options) {
    return take(false, pid, status, options, NULL);
}

EXPORT pid_t wait(int *status) {
    return take(false, -1, status, 0, NULL);
}

static int take_id(bool by_number, idtype_t kind, id_t id, siginfo_t *info, int options) {
    if (!recording() || (options & WEXITED) == 0 || (options & ~(WEXITED | WSTOPPED | WCONTINUED | WNOHANG)) != 0)
        return ask_id(by_number, kind, id, info, options);
    for (;;) {
        siginfo_t child = {.si_signo = 0};
        int saved = errno;
        int looked = look_for_child(by_number, kind, id, &child, options);
        if (looked != 0 || child.si_pid == 0) {
            if (looked == 0 && info != NULL)
                *info = child;
            return looked;
        }
        siginfo_t taken = {.si_signo = 0};
        int result = ask_id(by_number, P_PID, (id_t)child.si_pid, &taken, options | WNOHANG);
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

EXPORT int waitid(idtype_t kind, id_t id, siginfo_t *info, int options) {
    return take_id(false, kind, id, info, options);
}

/* The function waitid() does not ask for what the child used. */
long pio_numbered_wait(const struct numbered *asked) {
    if (asked->number == SYS_wait4)
        return take(true, (pid_t)asked->a, (int *)asked->b, (int)asked->c, (struct rusage *)asked->d);
    if (asked->e != 0)
        return pass_on(asked);
    return take_id(true, (idtype_t)asked->a, (id_t)asked->b, (siginfo_t *)asked->c, (int)asked->d);
}
