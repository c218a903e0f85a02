/* The command line. */
#ifndef COLLAPSE_OPTIONS_H
#define COLLAPSE_OPTIONS_H

#include "mesh.h"
#include "problem.h"

typedef struct {
    int zones[AXES];
    int iterations;
    int dump_every; /* 0: never */
    int dump_initial;
    double end_time; /* infinite if not given */
    const char *output;
    const char *restart; /* NULL if not given */
    Problem problem;
    double gamma, gravity, sound_speed;
} Options;

typedef enum { OPTIONS_RUN, OPTIONS_HELP, OPTIONS_WRONG } OptionsResult;

/* Reads the command line. On one process (`talk`) prints the help, or one line that says what is wrong. */
OptionsResult options_read(int argc, char **argv, int talk, Options *options);

#endif
