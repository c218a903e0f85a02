/* The environment of a program that a recorded process starts: with the recorder, or without where it would not run with it.
 *
 * May run in a child of vfork or fork: no allocation, no lock. */
#ifndef PIO_ENVIRONMENT_H
#define PIO_ENVIRONMENT_H

#include "pio_program.h"

#pragma GCC visibility push(hidden)

/* Whether it can be one: the kernel has not looked at it yet. */
bool pio_is_environment(char *const *from);

/* Room for what pio_build_environment() makes. */
size_t pio_environment_bytes(char *const *from);

/* `from` in `memory`, with the recorder in it, or without; why not, `program` says then. */
char *const *pio_build_environment(char *const *from, struct pio_program *program, void *memory);

/* Whether libraries (a list with colons) are there, and readable by whom this process has become. */
bool pio_is_readable(const char *list);

/* In a process that was started with a sanitizer before us: its children are to be started without. */
void pio_forget_sanitizer(void);

#pragma GCC visibility pop

#endif
