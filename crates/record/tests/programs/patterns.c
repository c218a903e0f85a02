/* Accesses files in one of a few patterns. argv: pattern (sequential, cyclic, venus, random), accesses, a folder.
 *
 * venus is the interleaving of Miller and Katz (1991, section 5.2): six files, each staged in and out from start to end,
 * time and again, in turn. Between accesses the program computes a little, as programs do. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BYTES 512

static char data[BYTES];
static volatile double sum;

static void compute(void) {
    for (int i = 0; i < 300; i++)
        sum += i;
}

static int open_one(const char *folder, int number) {
    char path[4096];
    snprintf(path, sizeof path, "%s/file-%d", folder, number);
    return open(path, O_CREAT | O_RDWR, 0600);
}

int main(int argc, char **argv) {
    long count = argc == 4 ? atol(argv[2]) : 0;
    int fds[6];
    for (int i = 0; i < 6; i++)
        fds[i] = open_one(argv[3], i);
    unsigned long random = 7;
    for (long i = 0; i < count; i++) {
        compute();
        ssize_t done;
        if (strcmp(argv[1], "sequential") == 0) {
            done = write(fds[0], data, BYTES);
        } else if (strcmp(argv[1], "cyclic") == 0) { /* the blocks of one of four ranks, again and again */
            done = pwrite(fds[0], data, BYTES, (i % 1000 * 4 + 1) * BYTES);
        } else if (strcmp(argv[1], "venus") == 0) {
            long turn = i / 6 % 2000;
            done = turn % 1000 * BYTES;
            done = turn < 1000 ? pwrite(fds[i % 6], data, BYTES, done) : pread(fds[i % 6], data, BYTES, done);
        } else {
            random = random * 6364136223846793005u + 1442695040888963407u;
            done = pwrite(fds[0], data, BYTES, (off_t)(random >> 42) % 100000 * BYTES);
        }
        if (done != BYTES)
            return 1;
    }
    return 0;
}
