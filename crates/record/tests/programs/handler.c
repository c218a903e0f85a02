/* Ends as a rank of MPI, or becomes another program, in a handler whose stack is small. argv: what to do, a file, a program to become. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#define VARIABLES 2000

static char **words;
static char *environment[VARIABLES + 1], texts[VARIABLES][12];

static void handler(int number) {
    (void)number;
    if (strcmp(words[1], "end") == 0)
        _exit(0);
    execve(words[3], words + 3, environment);
    _exit(3);
}

int main(int count, char **given) {
    words = given;
    void (*set_rank)(int32_t, int32_t) = (void (*)(int32_t, int32_t))dlsym(RTLD_DEFAULT, "pioscope_set_rank");
    int fd = count == 4 ? open(given[2], O_CREAT | O_WRONLY, 0600) : -1;
    if (fd < 0 || set_rank == NULL || write(fd, "data", 4) != 4)
        return 1;
    set_rank(0, 1);
    for (int i = 0; i < VARIABLES; i++) {
        snprintf(texts[i], sizeof texts[i], "V%d=1", i);
        environment[i] = texts[i];
    }
    /* What the kernel needs for a handler's frame, and what is left for the handler. Below it is nothing. */
    size_t left = strcmp(given[1], "end") == 0 ? 3072 : 10240;
    size_t size = (getauxval(AT_MINSIGSTKSZ) + left + 15) / 16 * 16, room = (size + 4095) / 4096 * 4096;
    char *pages = mmap(NULL, 65536 + room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages + 65536, room, PROT_READ | PROT_WRITE);
    stack_t stack = {.ss_sp = pages + 65536, .ss_size = size};
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    if (pages == MAP_FAILED || sigaltstack(&stack, NULL) != 0 || sigaction(SIGUSR1, &action, NULL) != 0)
        return 2;
    raise(SIGUSR1);
    return 4;
}
