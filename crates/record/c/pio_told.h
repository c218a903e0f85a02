/* What a process is told in its environment when it starts, and tells those that it starts (pio_environment.c). */
#ifndef PIO_TOLD_H
#define PIO_TOLD_H

#include "pio_common.h"

#include <limits.h>

#pragma GCC visibility push(hidden)

/* The recorder and the small library that only starts programs (pio_starts.c) may be in one process: each has variables of
 * its own. */
#ifdef PIO_STARTS_ONLY
#define PIO_TOLD(name) "PIOSCOPE_STARTS_" name
#else
#define PIO_STARTS_ONLY 0
#define PIO_TOLD(name) "PIOSCOPE_" name
#endif

extern char pio_spool_folder[PATH_MAX];
extern char pio_path_rules[16384];   /* of PATHS */
extern char pio_call_sites_wanted[4]; /* of CALL_SITES: yes or no */
extern char pio_own_libraries[4096]; /* of PRELOAD: what is to be in LD_PRELOAD */
extern char pio_recorder_libraries[8192]; /* of RECORDER: those of them, and of OTHERS_PRELOAD, that record */
extern char pio_own_sanitizer[512];  /* of FIRST: what was put before them for this program alone */
/* The same for processes of other users, who may not reach those: a folder to which all may write, and libraries there. */
extern char pio_others_folder[PATH_MAX], pio_others_libraries[4096];

/* Keeps it, whatever the program makes of its environment. False if no spool folder was named. */
bool pio_keep_told(void);

#pragma GCC visibility pop

#endif
