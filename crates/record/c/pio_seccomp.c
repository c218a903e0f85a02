/* pio_seccomp.h. A filter may end the process at a call that the program itself would not make, and strict mode forbids to
 * read the processor's counter, too. So nothing is recorded of a process from then on, and it is named as not seen. */
#include "pio_seccomp.h"
#include "pio_kernel.h"
#include "pio_process.h"
#include "pio_unseen.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/prctl.h>

/* Whether a call restricts the process, if it succeeds. Without a filter it only asks what there is. */
static bool restricts(const struct numbered *asked) {
    long a = asked->a, b = asked->b, c = asked->c;
    if (asked->number == SYS_prctl)
        return a == PR_SET_SECCOMP && (b == SECCOMP_MODE_STRICT || (b == SECCOMP_MODE_FILTER && c != 0));
    return a == SECCOMP_SET_MODE_STRICT || (a == SECCOMP_SET_MODE_FILTER && c != 0);
}

static void note_this_program(void) {
    char program[512];
    long length = KERNEL(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", program, sizeof program - 1);
    program[length < 0 ? 0 : length] = 0;
    pio_note_unseen((uint32_t)getpid(), "seccomp", program);
}

long pio_restrict(const struct numbered *asked) {
    if (!restricts(asked) || !recording() || !is_owner())
        return pass_on(asked);
    int saved = errno;
    pio_stop_recording();
    note_this_program();
    errno = saved;
    long result = pass_on(asked);
    if (result < 0) {
        saved = errno;
        pio_take_back_unseen();
        pio_go_on_recording();
        errno = saved;
    }
    return result;
}

DECLARE_NEXT(prctl)
EXPORT int prctl(int option, ...) {
    va_list arguments;
    va_start(arguments, option);
    long b = va_arg(arguments, long), c = va_arg(arguments, long), d = va_arg(arguments, long),
         e = va_arg(arguments, long);
    va_end(arguments);
    if (option == PR_SET_SECCOMP)
        return (int)pio_restrict(&(struct numbered){SYS_prctl, option, b, c, d, e, 0});
    return NEXT(prctl)(option, b, c, d, e);
}
