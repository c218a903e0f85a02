/* Programs that restrict their system calls by seccomp(2). */
#ifndef PIO_SECCOMP_H
#define PIO_SECCOMP_H

#pragma GCC visibility push(hidden)

/* prctl(2) or seccomp(2), by number, as the C library's syscall() does it. */
long pio_restrict(long number, long a, long b, long c, long d, long e);

#pragma GCC visibility pop

#endif
