/* Asks for many names that are not there, twice. argv: a folder, how many. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc != 3 || chdir(argv[1]) != 0 || close(open("file", O_CREAT | O_RDWR, 0600)) != 0)
        return 1;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < atoi(argv[2]); i++) {
            char name[32];
            struct stat status;
            snprintf(name, sizeof name, "none/%d", i);
            if (stat(name, &status) == 0)
                return 1;
        }
    }
    return 0;
}
