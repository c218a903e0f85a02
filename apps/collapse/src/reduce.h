/* Reductions over all zones whose result does not depend, in any bit, on how the mesh is divided. */
#ifndef COLLAPSE_REDUCE_H
#define COLLAPSE_REDUCE_H

#include "mesh.h"

/* The greatest of the processes' values. Collective. */
double reduce_max(const Mesh *mesh, double value);

/*
 * Sum of field[index of zone] over all own zones of all processes. Collective. Exact up to the rounding of each
 * value to 2^-52 of the greatest magnitude: values become integers, and integers add up the same in any order.
 * At most 2^30 zones a process and 2^31 in all.
 */
double reduce_sum(const Mesh *mesh, const Storage *storage, const double *field);

#endif
