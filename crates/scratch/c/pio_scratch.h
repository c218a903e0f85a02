/* Names of files, as a program that works on scratch copies of folders is to mean them.
 *
 * A copy has a folder for each folder of the original, and a link for each of its files. A link is replaced by a copy of
 * its file before that is changed.
 */
#ifndef PIO_SCRATCH_H
#define PIO_SCRATCH_H

#include <limits.h>
#include <stdbool.h>

#pragma GCC visibility push(hidden)

/* What a call is about to do with a name. */
enum pio_intent {
    PIO_READ,          /* nothing to it, following links */
    PIO_LOOK,          /* nothing, and a link is meant itself */
    PIO_CHANGE_FILE,   /* changes the file, following links */
    PIO_REPLACE_FILE,  /* the same, and nothing of what it holds is kept */
    PIO_CHANGE_LINK,   /* changes the file, and of a link the link itself */
    PIO_CHANGE_OPEN,   /* changes what is open as the folder: there is no name */
    PIO_MAKE_ENTRY,    /* makes the name, if there is none */
    PIO_CHANGE_ENTRY,  /* removes, renames or replaces the name itself */
};

struct pio_name {
    const char *used; /* to be used instead; NULL if the call is refused, with errno set */
    char buffer[PATH_MAX];
};

/* Fills in what to use for `name`, meant from the open folder `folder` on (or AT_FDCWD). */
void pio_scratch_name(struct pio_name *found, int folder, const char *name, enum pio_intent intent);

/* Whether a call may change the open file other than by its bytes; if not, errno is set. */
bool pio_scratch_may_change(int fd);

/* Whether a name in a copy is a link that stands for a file of the original. */
bool pio_stands_for_file(const char *name);

/* What the link `target` is to hold, if a program makes one. */
const char *pio_scratch_target(struct pio_name *found, const char *target);

#pragma GCC visibility pop

#endif
