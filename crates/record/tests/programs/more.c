/* The calls that hooks.c does not make: status, names, mapped files, asynchronous I/O, characters, calls by number. argv: a
 * folder, which becomes the working one. Optimised, so that the macros of <stdio.h> are macros. */
#define _GNU_SOURCE
#include <aio.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static char data[100000];

#define MUST(condition)                                                                                                \
    if (!(condition)) {                                                                                                \
        dprintf(2, "line %d: %s: %s\n", __LINE__, #condition, strerror(errno));                                        \
        return 1;                                                                                                      \
    }

static ssize_t wait_for(struct aiocb *control) {
    const struct aiocb *list[1] = {control};
    while (aio_error(control) == EINPROGRESS)
        aio_suspend(list, 1, NULL);
    return aio_return(control);
}

int main(int argc, char **argv) {
    MUST(argc == 2 && chdir(argv[1]) == 0);
    struct stat status;
    struct statx more;

    /* names and status: 2 mkdir, 1 rmdir, 2 link, 1 symlink, 1 readlink, 3 rename, 4 unlink, 3 access, 7 stat, 2 chmod, 1 opendir */
    MUST(mkdir("d", 0700) == 0 && mkdirat(AT_FDCWD, "e", 0700) == 0 && rmdir("e") == 0);
    int fd = open("a", O_CREAT | O_RDWR, 0600);
    MUST(link("a", "b") == 0 && linkat(AT_FDCWD, "a", AT_FDCWD, "c", 0) == 0 && symlink("a", "s") == 0);
    MUST(readlink("s", data, sizeof data) == 1);
    MUST(rename("b", "b2") == 0 && renameat(AT_FDCWD, "c", AT_FDCWD, "c2") == 0);
    MUST(renameat2(AT_FDCWD, "s", AT_FDCWD, "s2", RENAME_NOREPLACE) == 0);
    MUST(unlink("b2") == 0 && remove("c2") == 0 && unlinkat(AT_FDCWD, "s2", 0) == 0 && unlink("none") == -1);
    MUST(access("a", R_OK) == 0 && faccessat(AT_FDCWD, "a", R_OK, 0) == 0 && access("none", R_OK) == -1);
    MUST(stat("a", &status) == 0 && lstat("a", &status) == 0 && fstatat(AT_FDCWD, "a", &status, 0) == 0);
    MUST(statx(AT_FDCWD, "a", 0, STATX_SIZE, &more) == 0 && stat("none", &status) == -1);
    MUST(fstat(fd, &status) == 0 && fstatat(fd, "", &status, AT_EMPTY_PATH) == 0); /* of the descriptor */
    MUST(chmod("a", 0600) == 0 && fchmod(fd, 0600) == 0);
    DIR *folder = opendir("d");
    MUST(folder != NULL && closedir(folder) == 0);

    /* the descriptor: 2 sync_file_range and sync, 1 posix_fadvise, 2 flock, 1 mmap, 1 msync */
    MUST(ftruncate(fd, 8192) == 0);
    MUST(sync_file_range(fd, 0, 4096, SYNC_FILE_RANGE_WRITE) == 0 && syncfs(fd) == 0);
    MUST(posix_fadvise(fd, 100, 200, POSIX_FADV_DONTNEED) == 0);
    MUST(flock(fd, LOCK_EX) == 0 && flock(fd, LOCK_UN) == 0);
    char *mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 4096);
    MUST(mapped != MAP_FAILED);
    mapped[0] = 'x';
    MUST(msync(mapped, 4096, MS_SYNC) == 0 && munmap(mapped, 4096) == 0);
    void *memory = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(memory != MAP_FAILED && munmap(memory, 4096) == 0);

    /* asynchronous: the second read gets less than it asks for */
    struct aiocb one = {.aio_fildes = fd, .aio_buf = data, .aio_nbytes = 1000, .aio_offset = 0};
    MUST(aio_write(&one) == 0 && wait_for(&one) == 1000);
    MUST(aio_read(&one) == 0 && wait_for(&one) == 1000);
    one.aio_offset = 8000;
    MUST(aio_read(&one) == 0 && wait_for(&one) == 192);
    struct aiocb two = {.aio_fildes = fd, .aio_buf = data, .aio_nbytes = 10, .aio_offset = 20, .aio_lio_opcode = LIO_WRITE};
    struct aiocb three = {.aio_fildes = fd, .aio_buf = data, .aio_nbytes = 30, .aio_offset = 40, .aio_lio_opcode = LIO_READ};
    struct aiocb *list[2] = {&two, &three};
    MUST(lio_listio(LIO_WAIT, list, 2, NULL) == 0 && aio_return(&two) == 10 && aio_return(&three) == 30);
    MUST(close(fd) == 0);

    /* by number */
    fd = (int)syscall(SYS_openat, AT_FDCWD, "number", O_CREAT | O_RDWR, 0600);
    MUST(syscall(SYS_write, fd, data, 11) == 11 && syscall(SYS_pread64, fd, data, 5, 3) == 5);
    MUST(syscall(SYS_close, fd) == 0 && syscall(SYS_getppid) == getppid());

    /* characters: 1 + 20000 + 5 + 100 + 1 bytes written, 20107 read */
    FILE *stream = fopen("characters", "w");
    MUST(fputc('a', stream) == 'a');
    for (int i = 0; i < 20000; i++)
        putc_unlocked('b', stream);
    MUST(fputs("hello", stream) >= 0);
    for (int i = 0; i < 100; i++)
        putc_unlocked('c', stream);
    MUST(fflush(stream) == 0 && putc('d', stream) == 'd' && fclose(stream) == 0);
    int count = 0, number = 0;
    stream = fopen("characters", "r");
    while (getc_unlocked(stream) != EOF)
        count++;
    MUST(count == 20107 && fclose(stream) == 0);

    /* rebuffered: another buffer, above the first, between calls: 7 + 5 bytes written and read */
    char buffer[4096], line[100];
    stream = fopen("rebuffered", "w");
    MUST(fputs("header\n", stream) >= 0 && fflush(stream) == 0);
    MUST(setvbuf(stream, buffer, _IOFBF, sizeof buffer) == 0 && fputs("body\n", stream) >= 0 && fclose(stream) == 0);
    stream = fopen("rebuffered", "r");
    MUST(fgets(line, sizeof line, stream) && setvbuf(stream, buffer, _IOFBF, sizeof buffer) == 0);
    MUST(fgets(line, sizeof line, stream) && strcmp(line, "body\n") == 0 && fclose(stream) == 0);

    /* streams that change */
    stream = fopen("first", "w");
    MUST(fwrite(data, 1, 10, stream) == 10);
    stream = freopen("second", "w+", stream);
    MUST(stream != NULL && fprintf(stream, "%d %d\n", 12, 345) == 7);
    rewind(stream);
    MUST(fscanf(stream, "%d", &number) == 1 && number == 12 && fclose(stream) == 0);
    stream = tmpfile();
    MUST(stream != NULL && fwrite(data, 1, 77, stream) == 77 && fclose(stream) == 0);
    char name[] = "madeXXXXXX";
    fd = mkstemp(name);
    MUST(write(fd, data, 88) == 88 && close(fd) == 0 && unlink(name) == 0);
    return 0;
}
