/*
 * Self-gravity: the potential of the gas, and its pull on it.
 *
 * A time step kicks the gas for half the step, moves it, solves for the potential of the new density and kicks it for
 * the other half: second order in time.
 */
#ifndef COLLAPSE_GRAVITY_H
#define COLLAPSE_GRAVITY_H

#include "gas.h"
#include "multigrid.h"

typedef struct {
    double constant; /* G; 0 for no gravity */
    Multigrid *multigrid;
} Gravity;

Gravity gravity_create(const Mesh *mesh, double zone_width, double constant);
void gravity_free(Gravity *gravity);

/* Sets the potential to that of the gas. Starts from the potential there is. Returns the number of V-cycles. */
int gravity_solve(Gravity *gravity, const Gas *gas);

/* Accelerates the gas for the time `dt`; its internal energy stays. */
void gravity_kick(const Gravity *gravity, Gas *gas, double dt);

/* The greatest rate, in 1/time, at which the pull alone crosses a zone of this process's block. */
double gravity_rate(const Gravity *gravity, const Gas *gas);

#endif
