#include "pio_descriptors.h"

#include <string.h>

unsigned char pio_descriptors[DESCRIPTORS];
static int highest_descriptor;

void pio_set_descriptor(int fd, unsigned char state) {
    if (!in_table(fd))
        return;
    STORE(&pio_descriptors[fd], state);
    if (state == TRACKED && fd > LOAD(&highest_descriptor))
        STORE(&highest_descriptor, fd);
}

bool pio_forget_descriptor(int fd) {
    if (!in_table(fd))
        return false;
    return __atomic_exchange_n(&pio_descriptors[fd], UNKNOWN, __ATOMIC_RELAXED) >= TRACKED;
}

void pio_forget_descriptors(void) {
    memset(pio_descriptors, UNKNOWN, sizeof pio_descriptors);
    highest_descriptor = 0;
}

void pio_descriptors_are_shared(void) {
    for (int fd = 0; fd <= LOAD(&highest_descriptor); fd++)
        if (pio_descriptors[fd] == TRACKED)
            pio_descriptors[fd] = EXACT;
}
