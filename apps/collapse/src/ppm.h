/*
 * The piecewise parabolic method (Colella & Woodward 1984): one sweep of the Euler equations along one axis, in
 * Eulerian form, without gravity.
 */
#ifndef COLLAPSE_PPM_H
#define COLLAPSE_PPM_H

#include "gas.h"

typedef struct Ppm Ppm;

/* Work space for sweeps over the blocks of `mesh`. */
Ppm *ppm_create(const Mesh *mesh);
void ppm_free(Ppm *ppm);

/* Advances the gas by `dt` as far as the terms along `axis` go. Collective: fetches the ghost zones it needs. */
void ppm_sweep(Ppm *ppm, Gas *gas, int axis, double dt);

#endif
