/* Writes some records and ends in the way that argv[2] names; argv[1] is the file. Some ways begin other processes, which
 * write to the same file. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static char data[100];

static void write_some(int fd, int count) {
    for (int i = 0; i < count; i++)
        if (write(fd, data, sizeof data) != sizeof data)
            exit(9);
}

static int wait_for(pid_t child) {
    int status;
    return waitpid(child, &status, 0) == child && status == 0 ? 0 : 8;
}

int main(int argc, char **argv) {
    const char *how = argc > 2 ? argv[2] : "";
    int fd = open(argv[1], O_CREAT | O_RDWR, 0600);
    write_some(fd, 1000);
    char *again[] = {argv[0], argv[1], "return", NULL};
    if (strcmp(how, "exit") == 0)
        exit(0);
    if (strcmp(how, "_exit") == 0)
        _exit(0);
    if (strcmp(how, "abort") == 0)
        abort();
    if (strcmp(how, "kill") == 0)
        kill(getpid(), SIGKILL);
    if (strcmp(how, "terminate") == 0)
        kill(getpid(), SIGTERM);
    if (strcmp(how, "wait") == 0)
        pause();
    if (strcmp(how, "exit_group") == 0)
        syscall(SYS_exit_group, 0);
    if (strcmp(how, "exec") == 0)
        execv(argv[0], again);
    if (strcmp(how, "spawn") == 0) {
        pid_t child;
        if (posix_spawn(&child, argv[0], NULL, NULL, again, environ) != 0)
            return 7;
        return wait_for(child);
    }
    if (strcmp(how, "fork") == 0 || strcmp(how, "clone") == 0) {
        pid_t child = strcmp(how, "fork") == 0 ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
        if (child == 0) {
            write_some(fd, 500); /* at the position that it shares */
            _exit(0);
        }
        int result = wait_for(child);
        write_some(fd, 10);
        return result;
    }
    if (strcmp(how, "vfork") == 0) {
        pid_t child = vfork();
        if (child == 0) {
            close(fd); /* its own, not ours, though the memory is ours */
            execve(argv[0], again, environ);
            _exit(6);
        }
        int result = wait_for(child);
        write_some(fd, 10);
        return result;
    }
    if (strcmp(how, "close-all") == 0) {
        /* Closes what it does not know, as daemons do, and goes on. */
        for (int other = fd + 1; other < 1000; other++)
            close(other);
        write_some(fd, 10);
    }
    return 0;
}
