/* Names that a process writes once: of marks, and of call sites. */
#ifndef PIO_MARKS_H
#define PIO_MARKS_H

#include "pio_common.h"

#pragma GCC visibility push(hidden)

/* Names of one kind. */
struct pio_texts {
    uint64_t *places; /* of ids: twice as many as there may be */
    uint32_t most;
    uint32_t known;
};

/* The id of a text, which is in the spool, in a record of this kind; 0 if there are too many or there is no room for it. */
uint64_t pio_id_of_text(struct pio_texts *texts, uint32_t kind, const char *text, size_t length);

/* In a forked child, whose spool has no names yet. */
void pio_forget_texts(struct pio_texts *texts);
void pio_forget_marks(void);

#pragma GCC visibility pop

#endif
