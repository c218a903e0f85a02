/*
 * The Riemann problem at zone interfaces: HLLC (Toro, Spruce & Speares 1994) with the wave speeds of Einfeldt (1988)
 * and Batten et al. (1997). It keeps density and pressure positive and resolves contact discontinuities exactly.
 */
#ifndef COLLAPSE_RIEMANN_H
#define COLLAPSE_RIEMANN_H

#include <stddef.h>

/* Along a sweep: velocity normal to the interfaces, then the two along them, in cyclic order of the axes. */
enum { RHO, NORMAL, TANGENT_1, TANGENT_2, PRESSURE, PRIMITIVE };

/*
 * flux[q][i], i < count, from the states left[q][i] and right[q][i] on both sides of interface i. Fluxes of mass,
 * normal momentum, both tangential momenta and energy, in the places of RHO, NORMAL, ... The arrays do not overlap.
 */
void riemann_flux(size_t count, double gamma, double *const left[PRIMITIVE], double *const right[PRIMITIVE],
                  double *const flux[PRIMITIVE]);

#endif
