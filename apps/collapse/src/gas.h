/*
 * The gas: conserved quantities per unit volume, in double precision, with ghost zones.
 */
#ifndef COLLAPSE_GAS_H
#define COLLAPSE_GAS_H

#include "halo.h"
#include "mesh.h"

enum { DENSITY, MOMENTUM_X, MOMENTUM_Y, MOMENTUM_Z, ENERGY, CONSERVED };

/* Ghost zones that PPM needs: three for the parabolas of the first ghost zone, one more for its shock detector. */
enum { GAS_GHOST = 4 };

typedef struct {
    const Mesh *mesh;
    Storage storage;
    double zone_width; /* the same along all axes */
    double gamma;      /* ratio of specific heats */
    double *conserved[CONSERVED];
    Halo *halo[AXES]; /* ghost zones of one axis, for the sweep along it */
} Gas;

Gas gas_create(const Mesh *mesh, double zone_width, double gamma);
void gas_free(Gas *gas);

/* Pressure below which none is allowed to fall: cold gas at high Mach number may round to less. */
#define PRESSURE_FLOOR 1e-12

/* Pressure of local zone `index`. */
double gas_pressure(const Gas *gas, ptrdiff_t index);

/*
 * The greatest rate, in 1/time, at which a signal crosses a zone of this process's block: (|velocity| + sound speed) /
 * zone width. Fails, naming the zone, if the density is not positive or a value is not finite.
 */
double gas_signal_rate(const Gas *gas);

#endif
