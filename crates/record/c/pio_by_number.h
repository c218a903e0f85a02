/* System calls by number (pio_syscall.c) that are no function, or none in the C libraries of some systems. */
#ifndef PIO_BY_NUMBER_H
#define PIO_BY_NUMBER_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* `how` is a struct open_how of <linux/openat2.h>, which begins with the flags. */
int pio_openat2(int folder, const char *path, const uint64_t *how, size_t size);

/* Before glibc 2.33, stat() and its kin were in each program. */
int pio_stat_by_number(long number, const char *path, void *status);
int pio_fstat_by_number(int fd, void *status);
int pio_fstatat_by_number(int fd, const char *path, void *status, int flags);

#pragma GCC visibility pop

#endif
