/* Files in /dev/shm, and memory that processes share there: FOLDER of the one, NAME of the other. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MUST(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #condition, strerror(errno));                              \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static const char *in(const char *folder, const char *name) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void map(int fd, size_t size) {
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    MUST(memory != MAP_FAILED);
    memory[size - 1] = 1;
    MUST(munmap(memory, size) == 0);
}

int main(int count, char **arguments) {
    MUST(count == 3);
    const char *folder = arguments[1], *name = arguments[2];
    char data[4096] = "";
    struct stat status;

    /* A library's: by its own call, and as a file that is cut to its size, or made so large by its last byte. */
    int fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    MUST(fd >= 0 && write(fd, data, 4096) == 4096 && ftruncate(fd, 65536) == 0 && fstat(fd, &status) == 0);
    map(fd, 65536);
    int copy = dup(fd);
    MUST(copy >= 0 && close(copy) == 0 && close(fd) == 0 && shm_unlink(name) == 0);
    char path[] = "/dev/shm/pioscope_segment_XXXXXX";
    fd = mkstemp(path);
    MUST(fd >= 0 && lseek(fd, 65535, SEEK_SET) == 65535 && write(fd, "", 1) == 1);
    int second = open(path, O_RDWR);
    MUST(second >= 0 && stat(path, &status) == 0 && unlink(path) == 0);
    map(fd, 65536);
    map(second, 65536);
    MUST(close(second) == 0 && close(fd) == 0);
    MUST(access("/dev/shm/pioscope_is_not_there", F_OK) != 0);

    /* In no folder at all. */
    fd = memfd_create("scratch", 0);
    MUST(fd >= 0 && write(fd, data, 4096) == 4096 && ftruncate(fd, 65536) == 0 && pread(fd, data, 100, 0) == 100);
    map(fd, 65536);
    MUST(close(fd) == 0);

    /* The program's. */
    MUST(mkdir(folder, 0700) == 0);
    fd = open(in(folder, "data"), O_RDWR | O_CREAT, 0600);
    MUST(fd >= 0 && write(fd, data, 4096) == 4096 && pread(fd, data, 100, 1000) == 100 && close(fd) == 0);
    FILE *stream = fopen(in(folder, "data"), "r");
    MUST(stream != NULL && fread(data, 1, 2000, stream) == 2000 && fclose(stream) == 0);
    fd = open(in(folder, "data"), O_RDWR);
    MUST(fd >= 0);
    map(fd, 4096);
    MUST(close(fd) == 0);
    MUST(open(in(folder, "missing"), O_RDONLY) < 0);
    MUST(unlink(in(folder, "data")) == 0 && rmdir(folder) == 0);
    return 0;
}
