/* Writes 100 bytes to a file, restricts its system calls in the way that is named, writes 1000 more and reads some of them
 * again, and ends with 7; or becomes the program that is named behind the file. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ALLOW(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static struct sock_filter rules[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    ALLOW(SYS_read),
    ALLOW(SYS_write),
    ALLOW(SYS_lseek),
    ALLOW(SYS_close),
    ALLOW(SYS_exit),
    ALLOW(SYS_exit_group),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};
static struct sock_fprog filter = {sizeof rules / sizeof rules[0], rules};

static int restrict_calls(const char *how) {
    if (strcmp(how, "strict") == 0)
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return -1;
    if (strcmp(how, "prctl") == 0)
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
    if (strcmp(how, "seccomp") == 0)
        return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter);
    if (strcmp(how, "lenient") == 0) {
        rules[0] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
        filter.len = 1;
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
    }
    /* A filter that the kernel refuses, and a question whether it knows filters. */
    filter.len = 0;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == -1 && errno == EINVAL &&
                   syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL) == -1 && errno == EFAULT
               ? 0
               : -1;
}

int main(int count, char **words) {
    static char bytes[1000];
    int fd = count >= 3 ? open(words[2], O_RDWR | O_CREAT, 0600) : -1;
    if (write(fd, bytes, 100) != 100 || restrict_calls(words[1]) != 0)
        return 1;
    if (count > 3)
        return execv(words[3], words + 3);
    if (write(fd, bytes, 1000) != 1000)
        return 2;
    /* Strict mode allows no more. */
    if (strcmp(words[1], "strict") == 0)
        return (int)syscall(SYS_exit, 7);
    return lseek(fd, 0, SEEK_SET) == 0 && read(fd, bytes, 50) == 50 && close(fd) == 0 ? 7 : 3;
}
