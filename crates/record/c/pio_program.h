/* Can a program be recorded? Told from its file before it starts: its kind of ELF, its loader, what it needs, its rights.
 *
 * Shared by the recorder's exec hooks and by the command that starts the job (src/program.rs), so that both decide alike.
 */
#ifndef PIO_PROGRAM_H
#define PIO_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

#pragma GCC visibility push(hidden)

#define PIO_SANITIZER_BYTES 512u

struct pio_program {
    const char *reason; /* why it cannot be seen: a name of pio_trace::Reason; NULL if it can */
    bool is_harmed;     /* it does not run, or complains, with our library in LD_PRELOAD */
    char sanitizer[PIO_SANITIZER_BYTES]; /* the library that must come before ours; empty if none must */
};

/* The program that the system would start for the file `path`, which may be a script. What cannot be read is taken for
 * one that can be seen, as most can. */
void pio_look_at_program(const char *path, struct pio_program *program);

#pragma GCC visibility pop

#endif
