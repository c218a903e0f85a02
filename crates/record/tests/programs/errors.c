/* Prints what calls return and leave in errno, right ones and wrong ones. argv: a folder. */
#define _GNU_SOURCE
#include <aio.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wnonnull"
#define BAD ((void *)1)

static char said[1 << 18];
static size_t length;

static void say(const char *call, long result, int error) {
    length += (size_t)snprintf(said + length, sizeof said - length, "%s: %ld, errno %d\n", call, result, error);
}

/* 4242 is no error: who succeeds leaves it. */
#define TELL(call)                                                                                                     \
    do {                                                                                                               \
        errno = 4242;                                                                                                  \
        long result = (long)(call);                                                                                    \
        say(#call, result, errno);                                                                                     \
    } while (0)

static char bytes[4096];
static struct iovec two[2] = {{bytes, 10}, {bytes + 10, 20}};
static struct stat status;

static void on_descriptors(int fd) {
    TELL(write(fd, bytes, 100));
    TELL(write(fd, BAD, 10));
    TELL(pwrite(fd, bytes, 9, -5));
    TELL(writev(fd, two, 2));
    TELL(readv(fd, BAD, 2));
    TELL(preadv(fd, two, -1, 0));
    TELL(lseek(fd, -100, SEEK_SET));
    TELL(read(fd, BAD, 10) + lseek(fd, 0, SEEK_SET));
    TELL(ftruncate(fd, -1));
    TELL(fallocate(fd, 0, 0, -1));
    TELL(posix_fallocate(fd, -1, 5));
    TELL(posix_fadvise(fd, 0, 0, 99));
    TELL(sync_file_range(fd, -1, 0, 0));
    TELL(fsync(-1));
    TELL(flock(fd, 99));
    TELL(fcntl(fd, 9999));
    TELL(fcntl(fd, F_SETLK, BAD));
    TELL(dup2(-1, fd));
    TELL(dup3(fd, fd, 0));
    TELL(close(-1));
    TELL(fstat(fd, BAD));
    TELL(sendfile(fd, fd, BAD, 5));
    TELL(copy_file_range(fd, NULL, fd, NULL, 5, 9));
    TELL(splice(fd, NULL, fd, NULL, 5, 0));
    TELL(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 1));
    TELL(msync(BAD, 1, MS_SYNC));
    TELL(dprintf(-1, "x"));
    TELL(dprintf(fd, "%d", 12345));
    struct aiocb control = {.aio_fildes = fd, .aio_buf = bytes, .aio_nbytes = 5, .aio_reqprio = -5};
    TELL(aio_write(&control));
}

static void on_names(int fd) {
    TELL(open("nowhere", O_RDONLY));
    TELL(open("", O_RDONLY));
    TELL(open(BAD, O_RDONLY));
    TELL(openat(fd, "data", O_RDONLY));
    TELL(creat("data/below", 0600));
    TELL(stat(NULL, &status));
    TELL(fstatat(fd, "", &status, AT_EMPTY_PATH));
    TELL(fstatat(-1, "", &status, AT_EMPTY_PATH));
    TELL(access("data", 99));
    TELL(readlink("data", bytes, 0));
    TELL(unlinkat(AT_FDCWD, "data", AT_REMOVEDIR));
    TELL(rename("data", NULL));
    TELL(link("data", "data"));
    TELL(symlink(NULL, "link"));
    TELL(mkdir("data", 0700));
    TELL(truncate("data", -1));
    TELL(opendir("data"));
    TELL(mkstemp(strcpy(bytes, "template")));
}

static void on_streams(void) {
    FILE *stream = NULL;
    TELL((stream = fopen("stream", "w+")) != NULL);
    TELL(fprintf(stream, "%d\n", 5));
    TELL(fseek(stream, -100, SEEK_SET));
    TELL(fseek(stream, 0, SEEK_SET));
    TELL(getc(stream));
    TELL(fread(bytes, 1, 100, stream));
    TELL(getc(stream));
    TELL(fclose(stream));
    TELL(fopen("stream", "nonsense"));
    TELL(fopen(NULL, "r"));
    TELL((stream = fopen("stream", "r")) != NULL);
    TELL(fputs("text", stream));
    TELL(fclose(stream));
}

static void on_programs(char *const environment[]) {
    char *words[] = {"false", NULL};
    pid_t child = 0;
    int ended = 0;
    TELL(posix_spawnp(&child, "false", NULL, NULL, words, environment));
    TELL(waitpid(child, &ended, 0) == child && WEXITSTATUS(ended) == 1);
    TELL(waitpid(child, &ended, 0));
    TELL(posix_spawn(&child, "/nowhere", NULL, NULL, words, environment));
    TELL(execve(".", words, environment));
    TELL(execve(BAD, words, environment));
    TELL(execvp("nowhere", words));
    TELL(wait(NULL));
    TELL(waitid(P_ALL, 0, NULL, 0));
    TELL(wait4(-1, NULL, 12345678, NULL));
    TELL(system("exit 3"));
}

static void by_number(char *const environment[]) {
    char *words[] = {"sh", "-c", "exit 6", NULL};
    siginfo_t ended = {.si_signo = 0};
    int fd = -1;
    TELL(fd = (int)syscall(SYS_openat, AT_FDCWD, "data", O_RDWR));
    TELL(syscall(SYS_openat, AT_FDCWD, BAD, O_RDWR));
    TELL(syscall(SYS_read, fd, bytes, 5));
    TELL(syscall(SYS_read, fd, BAD, 5));
    TELL(syscall(SYS_lseek, fd, -1, SEEK_SET));
    TELL(syscall(SYS_fcntl, fd, F_SETOWN, -getpgrp()));
    TELL(syscall(SYS_fcntl, fd, F_GETOWN) == -getpgrp());
    TELL(syscall(SYS_fadvise64, fd, 0, 0, 99));
    TELL(syscall(SYS_dup3, fd, fd, 0));
    TELL(syscall(SYS_sendfile, fd, fd, BAD, 5));
    TELL(syscall(SYS_msync, BAD, 1, MS_SYNC));
    TELL(syscall(SYS_renameat2, AT_FDCWD, BAD, AT_FDCWD, "data", 0));
    TELL(syscall(SYS_symlinkat, BAD, AT_FDCWD, "link"));
    TELL(syscall(SYS_execve, "/nowhere", words, environment));
    TELL(syscall(SYS_execve, BAD, words, environment));
    TELL(syscall(SYS_wait4, -1, NULL, 0, NULL));
    TELL(syscall(99999));
    TELL(syscall(SYS_close, fd));
    TELL(syscall(SYS_close, fd));
    pid_t child = fork();
    if (child == 0)
        syscall(SYS_execve, "/bin/sh", words, environment);
    TELL(syscall(SYS_waitid, P_PID, child, &ended, WEXITED, NULL));
    TELL(ended.si_pid == child && ended.si_status == 6);
    child = fork();
    if (child == 0)
        syscall(SYS_exit_group, 9);
    int how = 0;
    TELL(syscall(SYS_wait4, child, &how, 0, NULL) == child && WEXITSTATUS(how) == 9);
}

int main(int count, char **words) {
    if (count != 2 || chdir(words[1]) != 0)
        return 1;
    int fd = open("data", O_CREAT | O_RDWR | O_TRUNC, 0600);
    on_descriptors(fd);
    on_names(fd);
    on_streams();
    on_programs(environ);
    by_number(environ);
    int out = open("said", O_CREAT | O_WRONLY | O_TRUNC, 0600);
    return write(out, said, length) == (ssize_t)length ? 0 : 1;
}
