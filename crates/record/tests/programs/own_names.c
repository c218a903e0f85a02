/* Has functions of its own for calls that an older C library has none for. argv: a folder. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags) {
    return (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
}

ssize_t copy_file_range(int from, off64_t *from_offset, int to, off64_t *to_offset, size_t count, unsigned flags) {
    return syscall(SYS_copy_file_range, from, from_offset, to, to_offset, count, flags);
}

int main(int count, char **words) {
    int from = count == 2 && chdir(words[1]) == 0 ? open("from", O_CREAT | O_RDWR, 0600) : -1;
    int to = open("to", O_CREAT | O_WRONLY, 0600);
    if (write(from, "data", 4) != 4 || lseek(from, 0, SEEK_SET) != 0 || copy_file_range(from, NULL, to, NULL, 4, 0) != 4)
        return 1;
    return renameat2(AT_FDCWD, "from", AT_FDCWD, "other", 0) == 0 && access("other", F_OK) == 0 ? 0 : 2;
}
