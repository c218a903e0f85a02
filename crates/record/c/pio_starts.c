/* The small library that goes with what is loaded into programs that are not recorded (`pioscope apply`): the exec hooks
 * alone (pio_exec.c). What would not run with libraries of ours is started without them, as under the recorder. */
#include "pio_descriptors.h"
#include "pio_environment.h"
#include "pio_process.h"

#include <pthread.h>

static uint32_t this_process;
uint32_t *pio_alive = &this_process;
bool pio_switched_off;

static void after_fork_in_child(void) {
    STORE(&this_process, (uint32_t)getpid());
}

bool pio_start(void) {
    pio_switched_off = !pio_keep_told();
    if (pio_switched_off)
        return false;
    STORE(&this_process, (uint32_t)getpid());
    pthread_atfork(NULL, NULL, after_fork_in_child);
    return true;
}

/* No positions are followed here. */
void pio_descriptors_are_shared(void) {
}

__attribute__((constructor)) static void process_starts(void) {
    (void)recording();
    pio_forget_sanitizer();
}
