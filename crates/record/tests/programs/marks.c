/* Marks and phases, around and between calls: nested, by two threads, in a forked child, and one that is not ended. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct pio_phase {
    void *record;
    uint32_t process;
};
extern void pio_mark(const char *name, uint64_t number) __attribute__((weak));
extern struct pio_phase pio_phase_begin(const char *name, uint64_t number) __attribute__((weak));
extern void pio_phase_end(struct pio_phase phase) __attribute__((weak));

static void write_file(const char *name) {
    int fd = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0644);
    if (fd < 0 || write(fd, name, 1) != 1)
        exit(3);
    close(fd);
}

static void *end_phase(void *phase) {
    pio_phase_end(*(struct pio_phase *)phase);
    return NULL;
}

int main(int count, char **words) {
    if (pio_mark == NULL || pio_phase_begin == NULL || pio_phase_end == NULL) {
        puts("not recorded");
        return 0;
    }
    if (count > 1) {
        (void)pio_phase_begin(words[1], 0);
        pio_mark(words[1], 1);
        write_file("data");
        return 0;
    }
    errno = 77;
    for (uint64_t epoch = 0; epoch < 2; epoch++) {
        pio_mark("epoch", epoch);
        for (uint64_t step = 0; step < 3; step++) {
            struct pio_phase wait = pio_phase_begin("batch wait", step);
            write_file("data");
            pio_phase_end(wait);
        }
    }
    struct pio_phase outer = pio_phase_begin("outer", UINT64_MAX);
    pthread_t thread;
    pthread_create(&thread, NULL, end_phase, &outer);
    pthread_join(thread, NULL);

    struct pio_phase ours = pio_phase_begin("of the parent", 0);
    pid_t child = fork();
    if (child == 0) {
        pio_phase_end(ours); /* not ours to end */
        pio_mark("in the child", 5);
        write_file("of-child");
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    usleep(20000);
    pio_phase_end(ours);

    pio_mark(NULL, 0);
    pio_mark("", 0);
    char long_name[1000];
    for (unsigned i = 0; i + 1 < sizeof long_name; i++)
        long_name[i] = 'x';
    long_name[sizeof long_name - 1] = 0;
    pio_mark(long_name, 1);
    for (int i = 0; i < 3000; i++) { /* more names than are kept */
        char name[32];
        snprintf(name, sizeof name, "name %d", i);
        pio_mark(name, (uint64_t)i);
    }
    (void)pio_phase_begin("epoch", 2);
    return status != 0;
}
