/* Call sites: which line of a Python program opens a file. */
#ifndef PIO_CALL_SITES_H
#define PIO_CALL_SITES_H

#include "pio_common.h"

#pragma GCC visibility push(hidden)

struct call_site {
    uint64_t id; /* of its name (PIO_RECORD_CALL_SITE); 0 if there is none */
    uint64_t line;
};

/* When the process starts: has its Python, if it is a Python process, tell of what it opens. */
void pio_watch_python(void);

/* The call site of an open that has returned, by the name that it was given, NULL if it failed. Asked for once an open. */
struct call_site pio_take_call_site(const char *name);

/* In a forked child, whose spool has no names yet. */
void pio_forget_call_sites(void);

#pragma GCC visibility pop

#endif
