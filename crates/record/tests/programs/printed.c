/* Prints to a descriptor. argv: a folder. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static int print(int fd, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int printed = vdprintf(fd, format, arguments);
    va_end(arguments);
    return printed;
}

int main(int count, char **words) {
    int fd = count == 2 && chdir(words[1]) == 0 ? open("data", O_CREAT | O_RDWR, 0600) : -1;
    if (dprintf(fd, "%s %d\n", "count", count) != 8 || print(fd, "%*d", 20000, count) != 20000 || write(fd, "end", 3) != 3)
        return 1;
    int same = open("data", O_RDONLY);
    return dprintf(same, "%d", count) < 0 && lseek(fd, 0, SEEK_CUR) == 20011 ? 0 : 2;
}
