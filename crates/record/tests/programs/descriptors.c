/* Writes, while for some time it may open no file. argv: the file, writes in all. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    long count = atol(argv[2]);
    int fd = open(argv[1], O_CREAT | O_WRONLY, 0600);
    struct rlimit limit, none;
    if (fd < 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 1;
    none = limit;
    none.rlim_cur = 0;
    for (long i = 0; i < count; i++) {
        if (i == count / 4 && setrlimit(RLIMIT_NOFILE, &none) != 0)
            return 1;
        if (i == count / 2 && setrlimit(RLIMIT_NOFILE, &limit) != 0)
            return 1;
        if (i == count / 2 + 1)
            usleep(20000);
        if (pwrite(fd, "data", 4, 4 * i) != 4)
            return 1;
    }
    return 0;
}
