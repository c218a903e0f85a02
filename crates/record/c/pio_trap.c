/* Calls of io_uring_enter by instructions of the program's own, where it made the ring by the C library (fio does).
 *
 * The kernel can turn system calls from outside a range of addresses into signals (syscall user dispatch, Linux 5.11), for
 * one thread. The range is all that lies above the program's own code: the C library, other libraries, and this one. The
 * only call that is carried out in the handler is io_uring_enter. At the first other one, the thread is left alone from
 * then on: it is made again, as it stands. So it is where anything stands in the way: then the ring is named as not seen
 * (pio_uring.c), as its tail moves without a call. */
#include "pio_trap.h"
#include "pio_kernel.h"
#include "pio_uring.h"

#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__x86_64__)

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif
#define TRAP_ON 1
#define TRAP_ALLOWS ((char)0)
#define TRAP_BLOCKS ((char)1)
#define CODE_OF_TRAP 2 /* SYS_USER_DISPATCH, of si_code */
#define SYSCALL_INSTRUCTION_BYTES 2

/* What the kernel looks at before each call from outside the range. */
static __thread char trap __attribute__((tls_model("initial-exec")));
static bool traps_are_used;

/* What the program itself wants to do at this signal. */
static struct sigaction program_action;

DECLARE_NEXT(sigaction)
DECLARE_NEXT(syscall)

/* The signal is no trap of ours. */
static void hand_on(int number, siginfo_t *what, void *context) {
    if (program_action.sa_flags & SA_SIGINFO) {
        program_action.sa_sigaction(number, what, context);
    } else if (program_action.sa_handler == SIG_DFL) {
        NEXT(sigaction)(number, &program_action, NULL);
        raise(number);
    } else if (program_action.sa_handler != SIG_IGN) {
        program_action.sa_handler(number);
    }
}

static void at_trap(int number, siginfo_t *what, void *context) {
    int saved = errno;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    if (what->si_code != CODE_OF_TRAP) {
        hand_on(number, what, context);
    } else if (registers[REG_RAX] != SYS_io_uring_enter) {
        trap = TRAP_ALLOWS;
        registers[REG_RIP] -= SYSCALL_INSTRUCTION_BYTES;
    } else {
        long result = pio_ring_enter(&(struct numbered){SYS_io_uring_enter, registers[REG_RDI], registers[REG_RSI],
                                                        registers[REG_RDX], registers[REG_R10], registers[REG_R8],
                                                        registers[REG_R9]});
        registers[REG_RAX] = result < 0 ? -errno : result;
    }
    errno = saved;
}

/* Where the program's own code ends, 0 if it is not known. */
static int find_end(struct dl_phdr_info *object, size_t size, void *argument) {
    (void)size;
    uintptr_t *end = argument;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        uintptr_t part_end = object->dlpi_addr + part->p_vaddr + part->p_memsz;
        if (part->p_type == PT_LOAD && part_end > *end)
            *end = part_end;
    }
    return 1; /* the first object is the program */
}

void pio_trap_ring_calls(void) {
    struct sigaction present;
    sigset_t one, before;
    if (trap == TRAP_BLOCKS || NEXT(sigaction)(SIGSYS, NULL, &present) != 0)
        return;
    bool is_ours = (present.sa_flags & SA_SIGINFO) && present.sa_sigaction == at_trap;
    if (!is_ours && ((present.sa_flags & SA_SIGINFO) || present.sa_handler != SIG_DFL))
        return;
    uintptr_t end = 0;
    dl_iterate_phdr(find_end, &end);
    uintptr_t libc = (uintptr_t)NEXT(syscall);
    if (end == 0 || (uintptr_t)&at_trap < end || libc < end)
        return;
    struct sigaction action = {.sa_sigaction = at_trap, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART};
    sigemptyset(&one);
    sigaddset(&one, SIGSYS);
    if ((!is_ours && NEXT(sigaction)(SIGSYS, &action, NULL) != 0) || pthread_sigmask(SIG_UNBLOCK, &one, &before) != 0)
        return;
    STORE(&traps_are_used, true);
    trap = TRAP_BLOCKS;
    const uintptr_t top = (uintptr_t)1 << 47;
    if (KERNEL(SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, TRAP_ON, end, top - end, &trap) != 0) {
        trap = TRAP_ALLOWS;
        if (sigismember(&before, SIGSYS) == 1)
            pthread_sigmask(SIG_BLOCK, &one, NULL);
    }
}

/* A blocked signal that must be delivered ends the process: it stays open, whatever the program blocks. */
static const sigset_t *without_trap(int how, const sigset_t *set, sigset_t *room) {
    if (LIKELY(!LOAD(&traps_are_used)) || set == NULL || how == SIG_UNBLOCK)
        return set;
    *room = *set;
    sigdelset(room, SIGSYS);
    return room;
}

#define HOOK_SIGNAL_MASK(name)                                                                                         \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT int name(int how, const sigset_t *set, sigset_t *before) {                                                  \
        sigset_t room;                                                                                                 \
        return NEXT(name)(how, without_trap(how, set, &room), before);                                                 \
    }

HOOK_SIGNAL_MASK(pthread_sigmask)
HOOK_SIGNAL_MASK(sigprocmask)

EXPORT int sigaction(int number, const struct sigaction *action, struct sigaction *before) {
    if (LIKELY(!LOAD(&traps_are_used)) || number != SIGSYS)
        return NEXT(sigaction)(number, action, before);
    struct sigaction present = program_action;
    if (action != NULL)
        program_action = *action;
    if (before != NULL)
        *before = present;
    return 0;
}

/* signal() and its kin call the C library's own sigaction. */
#define HOOK_SIGNAL(name, flags)                                                                                       \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT sighandler_t name(int number, sighandler_t handler) {                                                       \
        if (LIKELY(!LOAD(&traps_are_used)) || number != SIGSYS)                                                        \
            return NEXT(name)(number, handler);                                                                        \
        sighandler_t before = program_action.sa_handler; /* one place with sa_sigaction */                             \
        if (handler != SIG_HOLD) /* it stays open */                                                                   \
            program_action = (struct sigaction){.sa_handler = handler, .sa_flags = (flags)};                           \
        return before;                                                                                                 \
    }

#ifndef SIG_HOLD
#define SIG_HOLD ((sighandler_t)2) /* declared for X/Open alone */
#endif

/* The headers warn of some. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
sighandler_t __sysv_signal(int number, sighandler_t handler);
sighandler_t bsd_signal(int number, sighandler_t handler);
sighandler_t ssignal(int number, sighandler_t handler);
sighandler_t sysv_signal(int number, sighandler_t handler);
sighandler_t sigset(int number, sighandler_t handler);
HOOK_SIGNAL(signal, SA_RESTART)
HOOK_SIGNAL(bsd_signal, SA_RESTART)
HOOK_SIGNAL(ssignal, SA_RESTART)
HOOK_SIGNAL(sysv_signal, SA_RESETHAND | SA_NODEFER)
HOOK_SIGNAL(__sysv_signal, SA_RESETHAND | SA_NODEFER)
HOOK_SIGNAL(sigset, 0)

DECLARE_NEXT(sigignore)
EXPORT int sigignore(int number) {
    if (LIKELY(!LOAD(&traps_are_used)) || number != SIGSYS)
        return NEXT(sigignore)(number);
    program_action = (struct sigaction){.sa_handler = SIG_IGN};
    return 0;
}
#pragma GCC diagnostic pop

#else
void pio_trap_ring_calls(void) {
}
#endif
