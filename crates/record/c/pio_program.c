/* pio_program.h for the command that starts a job. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#define KERNEL syscall
#include "pio_program.h"

void pio_look_at_program(const char *path, struct pio_program *program) {
    pio_look_at(path, program);
}
