/* Gets the numbers of descriptors that stood for a folder and a pipe for files that it opens by an instruction of its own.
 * argv: a file of 10 bytes. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_unseen(const char *path) {
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(SYS_open), "D"(path), "S"(O_RDONLY), "d"(0) : "rcx", "r11", "memory");
    return (int)result;
}

int main(int count, char **words) {
    char data[10];
    struct stat status;
    DIR *folder = opendir("/");
    if (count != 2 || folder == NULL || fstat(dirfd(folder), &status) != 0)
        return 1;
    int was = dirfd(folder), fd;
    closedir(folder);
    if ((fd = open_unseen(words[1])) != was || read(fd, data, 10) != 10 || close(fd) != 0)
        return 2;
    FILE *pipe = popen("echo data", "r");
    if (pipe == NULL || fgets(data, sizeof data, pipe) == NULL)
        return 3;
    was = fileno(pipe);
    pclose(pipe);
    if ((fd = open_unseen(words[1])) != was || read(fd, data, 10) != 10 || close(fd) != 0)
        return 4;
    return 0;
}
