/* Locks by fcntl and lockf, and one that another process waits for. argv: a folder. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MUST(condition)                                                                                                \
    if (!(condition)) {                                                                                                \
        dprintf(2, "line %d: %s: %s\n", __LINE__, #condition, strerror(errno));                                        \
        return 1;                                                                                                      \
    }

int main(int argc, char **argv) {
    MUST(argc == 2 && chdir(argv[1]) == 0);
    int fd = open("file", O_CREAT | O_RDWR, 0600);
    MUST(ftruncate(fd, 1000) == 0);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 100, .l_len = 50};
    MUST(fcntl(fd, F_SETLKW, &lock) == 0);
    MUST(lseek(fd, 150, SEEK_SET) == 150 && lockf(fd, F_LOCK, 50) == 0 && lockf(fd, F_TEST, 50) == 0);
    struct flock rest = {.l_type = F_UNLCK, .l_whence = SEEK_CUR};
    MUST(fcntl(fd, F_SETLK, &rest) == 0);
    struct flock before = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 1000, .l_len = -100};
    MUST(fcntl(fd, F_OFD_SETLK, &before) == 0);
    before.l_type = F_UNLCK;
    MUST(fcntl(fd, F_OFD_SETLKW, &before) == 0);

    int told[2];
    char byte = 0;
    MUST(pipe(told) == 0);
    pid_t child = fork();
    if (child == 0) {
        /* Asking is no lock. */
        struct flock asked = lock;
        MUST(fcntl(fd, F_GETLK, &asked) == 0 && asked.l_type == F_WRLCK);
        MUST(fcntl(fd, F_SETLK, &lock) == -1 && errno == EAGAIN);
        MUST(write(told[1], &byte, 1) == 1);
        MUST(fcntl(fd, F_SETLKW, &lock) == 0);
        return 0;
    }
    MUST(read(told[0], &byte, 1) == 1);
    usleep(50000);
    lock.l_type = F_UNLCK;
    MUST(fcntl(fd, F_SETLK, &lock) == 0);
    int status;
    MUST(waitpid(child, &status, 0) == child && status == 0);
    MUST(close(fd) == 0);
    return 0;
}
