/* The one way out when the program cannot go on: one line on standard error, then MPI_Abort. */
#ifndef COLLAPSE_FAIL_H
#define COLLAPSE_FAIL_H

#include <stddef.h>

/* Prints "collapse: rank R: MESSAGE" and ends all processes with exit code 1. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Memory for `count` items of `size` bytes, set to zero; fails if there is none. */
void *allocate(size_t count, size_t size);

#endif
