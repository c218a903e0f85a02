/*
 * The program's files, by MPI-IO: data-analysis, restart and visualisation files, as section 3.2 of Thakur, Gropp & Lusk
 * (1996) describes them. README.md draws their bytes.
 *
 * Every file is opened once by all processes, its header written by the first alone and its arrays by all together, one
 * collective call an array, and closed. Any error ends the program.
 */
#ifndef COLLAPSE_OUTPUT_H
#define COLLAPSE_OUTPUT_H

#include "gas.h"

/* The six variables that begin every file, in the file's order; stored in single precision. */
typedef struct {
    double time, dt, iteration, gamma, gravity, zone_width;
} Header;

typedef struct Output Output;

/* Files go to the folder `folder`, which is made if it does not exist. */
Output *output_create(const Mesh *mesh, const char *folder);
void output_free(Output *output);

/* All files of one dump: analysis, four for visualisation, restart. Collective. */
void output_dump(Output *output, const Header *header, const Gas *gas, const double *potential,
                 const Storage *potential_storage);

/*
 * Reads a restart file into the gas and the potential (own zones), and returns its header. The gas's mesh and zone width
 * must be those of the file; its gamma is set. Collective.
 */
Header output_restart(Output *output, const char *path, Gas *gas, double *potential, const Storage *potential_storage);

/* Seconds this process has spent in MPI-IO calls, and in files altogether. */
double output_seconds(const Output *output);

#endif
