/*
 * Poisson's equation in the periodic box, by multigrid.
 *
 * Every value is computed by the same operations from the same numbers however the mesh is divided, so the solution
 * does not depend on the number of processes in any bit.
 */
#ifndef COLLAPSE_MULTIGRID_H
#define COLLAPSE_MULTIGRID_H

#include "mesh.h"

typedef struct Multigrid Multigrid;

Multigrid *multigrid_create(const Mesh *mesh, double zone_width);
void multigrid_free(Multigrid *multigrid);

/* Where `multigrid_potential` and `multigrid_source` keep their zones. */
const Storage *multigrid_storage(const Multigrid *multigrid);

/*
 * The potential: before a solution the first guess, own zones only; after it the solution, with one valid ghost zone on
 * all sides. The array is another one after each solution.
 */
double *multigrid_potential(Multigrid *multigrid);

/* The right-hand side, own zones only, to be set before each solution. */
double *multigrid_source(Multigrid *multigrid);

/*
 * Solves laplacian(potential) = source - mean(source), and leaves the potential with zero mean, to a greatest residual
 * of 1e-8 of the greatest source, or of 1e-12 `scale` if that is more. Returns the number of V-cycles; fails if 60 do
 * not reach it. Collective.
 */
int multigrid_solve(Multigrid *multigrid, double scale);

#endif
