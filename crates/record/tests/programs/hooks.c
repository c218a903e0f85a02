/* Makes every call that the recorder hooks, each a known number of times, each write with another size. argv: a folder. */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

int __open_2(const char *, int);
int __open64_2(const char *, int);
int __openat_2(int, const char *, int);
int __openat64_2(int, const char *, int);
ssize_t __read_chk(int, void *, size_t, size_t);
ssize_t __pread_chk(int, void *, size_t, off_t, size_t);
ssize_t __pread64_chk(int, void *, size_t, off64_t, size_t);
size_t __fread_chk(void *, size_t, size_t, size_t, FILE *);

static char data[4096], path[4200];

static const char *in(const char *folder, const char *name) {
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

#define MUST(condition)                                                                                                \
    if (!(condition)) {                                                                                                \
        dprintf(2, "line %d: %s: %s\n", __LINE__, #condition, strerror(errno));                                        \
        return 1;                                                                                                      \
    }

int main(int argc, char **argv) {
    const char *folder = argv[1];
    (void)argc;
    struct iovec two[2] = {{data, 10}, {data + 10, 20}};

    /* opens: ten ways */
    int fds[10] = {open(in(folder, "opens"), O_CREAT | O_RDWR, 0600),
                   open64(in(folder, "opens"), O_RDWR),
                   openat(AT_FDCWD, in(folder, "opens"), O_RDWR),
                   openat64(AT_FDCWD, in(folder, "opens"), O_RDWR),
                   creat(in(folder, "opens"), 0600),
                   creat64(in(folder, "opens"), 0600),
                   __open_2(in(folder, "opens"), O_RDWR),
                   __open64_2(in(folder, "opens"), O_RDWR),
                   __openat_2(AT_FDCWD, in(folder, "opens"), O_RDWR),
                   __openat64_2(AT_FDCWD, in(folder, "opens"), O_RDWR)};
    for (int i = 0; i < 10; i++)
        MUST(fds[i] >= 0 && close(fds[i]) == 0);
    MUST(open(in(folder, "missing/opens"), O_RDONLY) == -1 && errno == ENOENT);

    /* data: offsets are what they must be */
    int fd = open(in(folder, "data"), O_CREAT | O_RDWR, 0600);
    MUST(write(fd, data, 1000) == 1000);                      /* 0 */
    MUST(writev(fd, two, 2) == 30);                           /* 1000 */
    MUST(pwrite(fd, data, 7, 2000) == 7);
    MUST(pwrite64(fd, data, 8, 3000) == 8);
    MUST(pwritev(fd, two, 2, 4000) == 30);
    MUST(pwritev64(fd, two, 2, 4100) == 30);
    MUST(pwritev2(fd, two, 2, 4200, 0) == 30);
    MUST(pwritev64v2(fd, two, 2, -1, 0) == 30);               /* 1030 */
    MUST(write(fd, data, 5) == 5);                            /* 1060 */
    MUST(lseek(fd, 100, SEEK_SET) == 100);
    MUST(lseek64(fd, 100, SEEK_CUR) == 200);
    MUST(read(fd, data, 11) == 11);                           /* 200 */
    MUST(__read_chk(fd, data, 12, sizeof data) == 12);        /* 211 */
    MUST(readv(fd, two, 2) == 30);                            /* 223 */
    MUST(pread(fd, data, 13, 300) == 13);
    MUST(pread64(fd, data, 14, 301) == 14);
    MUST(__pread_chk(fd, data, 15, 302, sizeof data) == 15);
    MUST(__pread64_chk(fd, data, 16, 303, sizeof data) == 16);
    MUST(preadv(fd, two, 2, 304) == 30);
    MUST(preadv64(fd, two, 2, 305) == 30);
    MUST(preadv2(fd, two, 2, 306, 0) == 30);
    MUST(preadv64v2(fd, two, 2, -1, 0) == 30);                /* 253 */
    int copy = dup(fd);
    MUST(read(copy, data, 17) == 17);                         /* 283: the same position */
    MUST(dup2(fd, 100) == 100);
    MUST(dup3(fd, 101, O_CLOEXEC) == 101);
    MUST(fcntl(fd, F_DUPFD, 102) == 102);
    MUST(fcntl(fd, F_DUPFD_CLOEXEC, 103) == 103);
    MUST(read(103, data, 18) == 18);                          /* 300 */
    MUST(close(103) == 0 && close(102) == 0 && close(101) == 0 && close(100) == 0 && close(copy) == 0);
    MUST(fsync(fd) == 0);
    MUST(fdatasync(fd) == 0);
    MUST(ftruncate(fd, 9000) == 0);
    MUST(ftruncate64(fd, 9001) == 0);
    MUST(posix_fallocate(fd, 0, 9100) == 0);
    MUST(fallocate(fd, 0, 0, 9200) == 0);
    MUST(read(fd, NULL, 1) == -1 && errno == EFAULT);
    MUST(close(fd) == 0);

    /* append: written at the end, wherever that is */
    fd = open(in(folder, "append"), O_CREAT | O_WRONLY | O_APPEND, 0600);
    int other = open(in(folder, "append"), O_WRONLY);
    MUST(pwrite(other, data, 50, 0) == 50);
    MUST(write(fd, data, 6) == 6); /* 50 */
    MUST(pwrite(other, data, 50, 100) == 50);
    MUST(write(fd, data, 6) == 6); /* 150 */
    MUST(close(fd) == 0 && close(other) == 0);

    /* copies inside the kernel */
    int from = open(in(folder, "data"), O_RDONLY), to = open(in(folder, "copy"), O_CREAT | O_RDWR, 0600);
    MUST(copy_file_range(from, NULL, to, NULL, 100, 0) == 100);
    MUST(sendfile(to, from, NULL, 200) == 200);
    off_t where = 1000;
    MUST(sendfile(to, from, &where, 300) == 300);
    MUST(close(from) == 0 && close(to) == 0);

    /* names */
    MUST(truncate(in(folder, "copy"), 10) == 0);
    MUST(truncate64(in(folder, "copy"), 11) == 0);
    char moved[4200];
    snprintf(moved, sizeof moved, "%s/moved", folder);
    MUST(rename(in(folder, "copy"), moved) == 0);
    MUST(unlink(moved) == 0);
    MUST(unlinkat(AT_FDCWD, in(folder, "opens"), 0) == 0);

    /* streams */
    FILE *stream = fopen(in(folder, "stream"), "w+");
    MUST(stream != NULL);
    MUST(fwrite(data, 10, 20, stream) == 20);                 /* 0 */
    MUST(fwrite_unlocked(data, 1, 3, stream) == 3);           /* 200 */
    MUST(fputs("hello\n", stream) >= 0);                      /* 203 */
    MUST(fprintf(stream, "%d\n", 12345) == 6);                /* 209 */
    MUST(fflush(stream) == 0);
    MUST(fseek(stream, 5, SEEK_SET) == 0);
    MUST(fread(data, 1, 9, stream) == 9);                     /* 5 */
    MUST(fread_unlocked(data, 1, 8, stream) == 8);            /* 14 */
    MUST(__fread_chk(data, sizeof data, 1, 7, stream) == 7);  /* 22 */
    MUST(fseeko(stream, 203, SEEK_SET) == 0);
    MUST(fgets(data, 100, stream) != NULL);                   /* 203 */
    char *line = NULL;
    size_t room = 0;
    MUST(getline(&line, &room, stream) == 6);                 /* 209 */
    MUST(fclose(stream) == 0);
    stream = fopen64(in(folder, "stream"), "a");
    MUST(stream != NULL && fwrite("xy", 1, 2, stream) == 2);  /* 215 */
    MUST(fclose(stream) == 0);

    /* none of the job's files */
    fd = open("/proc/self/status", O_RDONLY);
    MUST(read(fd, data, 10) == 10 && close(fd) == 0);
    fd = open("/dev/zero", O_RDONLY);
    MUST(read(fd, data, 10) == 10 && close(fd) == 0);
    int ends[2];
    MUST(pipe(ends) == 0 && write(ends[1], data, 10) == 10 && read(ends[0], data, 10) == 10);
    return 0;
}
