/* Names files, and describes a view to the recorder, while it may open no file, and again when it may. argv: a folder, names. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pio_calls.h"
#include "pio_recorder.h"

#define SERVICE(name) __typeof__(&pioscope_##name) name = (__typeof__(name))dlsym(RTLD_DEFAULT, "pioscope_" #name)

static void ask(int names) {
    char name[200];
    struct stat status;
    for (int i = 0; i < names; i++) {
        snprintf(name, sizeof name, "none/%0100d", i);
        stat(name, &status);
    }
}

static void *begin(uint32_t call, uint64_t view) {
    SERVICE(io_begin);
    struct pioscope_io io = {.call = call, .file = 1, .ranks = 1, .view = view, .size = 1, .path = "/nowhere"};
    uint64_t operation;
    return io_begin(&io, &operation);
}

int main(int argc, char **argv) {
    SERVICE(io_end);
    SERVICE(define_view);
    struct rlimit limit, none;
    if (argc != 3 || io_end == NULL || chdir(argv[1]) != 0 || close(open("file", O_CREAT | O_RDWR, 0600)) != 0 ||
        getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 1;
    io_end(begin(PIO_CALL_MPI_FILE_OPEN, 0), 0);
    none = limit;
    none.rlim_cur = 0;
    for (int round = 0; round < 2; round++) {
        if (setrlimit(RLIMIT_NOFILE, round == 0 ? &none : &limit) != 0)
            return 2;
        usleep(20000);
        ask(atoi(argv[2]));
        uint64_t view = define_view(4096, 1, 0);
        if (round == 1)
            io_end(begin(PIO_CALL_MPI_FILE_WRITE_AT, view), 1);
    }
    return 0;
}
