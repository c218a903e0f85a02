/* Calls with names that cannot be read: the kernel says so, and the program goes on. Prints what each call said. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

int execveat(int folder, const char *path, char *const words[], char *const environment[], int flags);

#define SAY(call)                                                                                                      \
    do {                                                                                                               \
        errno = 0;                                                                                                     \
        long result = (long)(call);                                                                                    \
        printf("%s, %p: %ld, %d\n", #call, (void *)name, result, errno);                                               \
    } while (0)

int main(int count, char **words) {
    char *environment[] = {NULL};
    /* Unknown to the compiler, or it would warn, or leave out what follows. */
    const char *volatile unreadable[] = {NULL, (const char *)1};
    setvbuf(stdout, NULL, _IONBF, 0);
    int fd = open(words[count - 1], O_RDONLY);
    for (int which = 0; which < 2; which++) {
        const char *name = unreadable[which];
        struct stat status;
        struct statx extended;
        struct statfs system;
        char text[100];
        pid_t child;
        SAY(open(name, O_RDONLY));
        SAY(open64(name, O_CREAT | O_WRONLY, 0600));
        SAY(openat(AT_FDCWD, name, O_RDONLY));
        SAY(openat(fd, name, O_RDWR));
        SAY(creat(name, 0600));
        SAY(fopen(name, "r"));
        SAY(stat(name, &status));
        SAY(lstat(name, &status));
        SAY(fstatat(AT_FDCWD, name, &status, 0));
        SAY(fstatat(fd, name, &status, AT_SYMLINK_NOFOLLOW));
        SAY(statx(0, name, 0, STATX_ALL, NULL));
        SAY(statx(AT_FDCWD, name, 0, STATX_ALL, &extended));
        SAY(statx(fd, name, AT_EMPTY_PATH, STATX_ALL, &extended));
        SAY(statfs(name, &system));
        SAY(access(name, R_OK));
        SAY(faccessat(AT_FDCWD, name, R_OK, 0));
        SAY(readlink(name, text, sizeof text));
        SAY(getxattr(name, "user.name", text, sizeof text));
        SAY(unlink(name));
        SAY(unlinkat(AT_FDCWD, name, 0));
        SAY(remove(name));
        SAY(rename(name, words[count - 1]));
        SAY(rename(words[count - 1], name));
        SAY(renameat(fd, name, AT_FDCWD, name));
        SAY(link(words[count - 1], name));
        SAY(link(name, "other"));
        SAY(symlink(name, "other"));
        SAY(symlink("target", name));
        SAY(mkdir(name, 0700));
        SAY(mkdirat(AT_FDCWD, name, 0700));
        SAY(rmdir(name));
        SAY(chdir(name));
        SAY(truncate(name, 0));
        SAY(chmod(name, 0600));
        SAY(chown(name, 0, 0));
        SAY(mkfifo(name, 0600));
        SAY(execve(name, words, environment));
        SAY(execv(name, words));
        SAY(execveat(AT_FDCWD, name, words, environment, 0));
        /* A place that cannot be read is no name, and where none is given the descriptor's own is meant. */
        if (name != NULL) {
            SAY(sendfile(fd, fd, (off_t *)name, 10));
            SAY(copy_file_range(fd, (off64_t *)name, fd, NULL, 10, 0));
            SAY(splice(fd, (off64_t *)name, fd, NULL, 10, 0));
        }
        SAY(posix_spawn(&child, name, NULL, NULL, words, environment));
    }
    return 0;
}
