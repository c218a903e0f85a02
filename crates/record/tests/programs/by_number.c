/* Makes system calls by their numbers. argv: a folder. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define MUST(condition)                                                                                                \
    if (!(condition)) {                                                                                                \
        dprintf(2, "line %d: %s: %s\n", __LINE__, #condition, strerror(errno));                                        \
        return 1;                                                                                                      \
    }

int main(int count, char **words) {
    static char data[4096];
    struct iovec two[2] = {{data, 10}, {data + 10, 20}};
    struct stat status;
    MUST(count == 2 && chdir(words[1]) == 0);

    int fd = (int)syscall(SYS_open, "data", O_CREAT | O_RDWR, 0600);
    MUST(fd >= 0 && syscall(SYS_pwritev, fd, two, 2, 100, 0) == 30);
    MUST(syscall(SYS_pwritev2, fd, two, 2, 200, 0, 0) == 30);
    MUST(syscall(SYS_preadv, fd, two, 2, 101, 0) == 30);
    MUST(syscall(SYS_preadv2, fd, two, 2, 102, 0, 0) == 30);
    MUST(syscall(SYS_write, fd, data, 5) == 5);
    MUST(syscall(SYS_fcntl, fd, F_SETFL, O_APPEND) == 0 && syscall(SYS_write, fd, data, 6) == 6);
    MUST(syscall(SYS_ftruncate, fd, 500) == 0 && syscall(SYS_fallocate, fd, 0, 500, 100) == 0);
    MUST(syscall(SYS_fadvise64, fd, 7, 8, POSIX_FADV_RANDOM) == 0 && syscall(SYS_fadvise64, fd, 0, 0, 99) == -1);
    MUST(errno == EINVAL && syscall(SYS_sync_file_range, fd, 9, 10, SYNC_FILE_RANGE_WRITE) == 0);
    MUST(syscall(SYS_flock, fd, LOCK_EX) == 0 && syscall(SYS_fchmod, fd, 0644) == 0 && syscall(SYS_fstat, fd, &status) == 0);
    void *map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    MUST(map != MAP_FAILED && syscall(SYS_msync, map, 4096, MS_ASYNC) == 0 && syscall(SYS_close, fd) == 0);

    /* What a descriptor stands for changes: the second file is behind both numbers of the first. */
    int first = (int)syscall(SYS_creat, "first", 0600);
    struct {
        uint64_t flags, mode, resolve;
    } how = {O_CREAT | O_WRONLY, 0600, 0};
    int second = (int)syscall(SYS_openat2, AT_FDCWD, "second", &how, sizeof how);
    if (second < 0 && errno == ENOSYS) /* before Linux 5.6 */
        second = open("second", O_CREAT | O_WRONLY, 0600);
    MUST(first >= 0 && second >= 0 && syscall(SYS_write, first, data, 1) == 1);
    int copy = (int)syscall(SYS_dup, first);
    MUST(syscall(SYS_write, copy, data, 2) == 2);
    MUST(syscall(SYS_dup2, second, first) == first && syscall(SYS_write, first, data, 4) == 4);
    MUST(syscall(SYS_dup3, second, copy, 0) == copy && syscall(SYS_write, copy, data, 8) == 8);
    int last = (int)syscall(SYS_fcntl, second, F_DUPFD, 100);
    MUST(last == 100 && syscall(SYS_write, last, data, 16) == 16);
    MUST(close(first) == 0 && close(second) == 0 && close(copy) == 0 && close(last) == 0);

    MUST(syscall(SYS_truncate, "first", 10) == 0);
    MUST(syscall(SYS_stat, "first", &status) == 0 && syscall(SYS_lstat, "first", &status) == 0);
    MUST(syscall(SYS_newfstatat, AT_FDCWD, "first", &status, 0) == 0);
    MUST(syscall(SYS_access, "first", R_OK) == 0 && syscall(SYS_faccessat, AT_FDCWD, "first", R_OK) == 0);
    MUST(syscall(SYS_chmod, "first", 0600) == 0 && syscall(SYS_fchmodat, AT_FDCWD, "first", 0600) == 0);
    MUST(syscall(SYS_rename, "first", "a") == 0 && syscall(SYS_renameat, AT_FDCWD, "a", AT_FDCWD, "b") == 0);
    MUST(syscall(SYS_renameat2, AT_FDCWD, "b", AT_FDCWD, "c", 0) == 0);
    MUST(syscall(SYS_link, "c", "d") == 0 && syscall(SYS_linkat, AT_FDCWD, "c", AT_FDCWD, "e", 0) == 0);
    MUST(syscall(SYS_symlink, "c", "f") == 0 && syscall(SYS_symlinkat, "c", AT_FDCWD, "g") == 0);
    MUST(syscall(SYS_readlink, "f", data, 1) == 1 && syscall(SYS_readlinkat, AT_FDCWD, "g", data, 1) == 1);
    MUST(syscall(SYS_mkdir, "h", 0700) == 0 && syscall(SYS_mkdirat, AT_FDCWD, "i", 0700) == 0);
    MUST(syscall(SYS_rmdir, "h") == 0 && syscall(SYS_unlinkat, AT_FDCWD, "i", AT_REMOVEDIR) == 0);
    MUST(syscall(SYS_unlink, "f") == 0 && syscall(SYS_unlinkat, AT_FDCWD, "g", 0) == 0);
    syscall(SYS_exit_group, 0);
    return 1;
}
