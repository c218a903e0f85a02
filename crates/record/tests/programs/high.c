/* Writes by a copy of a descriptor that is too high to be recorded. argv: a folder. Ends with 77 if it may not have such a one. */
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

int main(int count, char **words) {
    struct rlimit limit = {70000, 70000};
    if (count != 2 || chdir(words[1]) != 0)
        return 1;
    int first = open("first", O_CREAT | O_WRONLY, 0600), second = open("second", O_CREAT | O_WRONLY, 0600);
    if (write(first, "a", 1) != 1)
        return 2;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || fcntl(second, F_DUPFD, 65535) != 65535)
        return 77;
    if (write(65535, "bc", 2) != 2 || dup2(65535, first) != first || write(first, "defg", 4) != 4)
        return 3;
    return 0;
}
