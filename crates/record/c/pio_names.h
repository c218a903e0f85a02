/* The paths of calls that open nothing. */
#ifndef PIO_NAMES_H
#define PIO_NAMES_H

#include "pio_common.h"

#pragma GCC visibility push(hidden)

/* Whether a call on a name is to be recorded; *id says its path, or PIO_NO_OFFSET if that is not known. errno may
 * change. */
bool pio_is_name_kept(int folder, const char *name, uint64_t *id);

/* The id of the second path of a call; 0 if it is not known, or not to be recorded. errno may change. */
uint64_t pio_id_of_other(int folder, const char *name);

/* The same of what a symbolic link stands for: it is meant from the link's own folder on. */
uint64_t pio_id_of_linked(int folder, const char *target, const char *link);

/* In a forked child, whose spool has no names yet. */
void pio_forget_names(void);

#pragma GCC visibility pop

#endif
