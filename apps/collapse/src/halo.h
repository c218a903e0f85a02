/*
 * Ghost zones: copies of zones that other processes own, or of own zones across the periodic boundary.
 *
 * One exchange fills faces, edges and corners at once, with one message to each process concerned, whatever the
 * block sizes: a ghost layer may be wider than the neighbour's block, or than the whole mesh.
 */
#ifndef COLLAPSE_HALO_H
#define COLLAPSE_HALO_H

#include "mesh.h"

typedef struct Halo Halo;

/* Plans the exchange of `width[axis]` ghost zones on both sides of each axis, for up to `fields` arrays at a time. */
Halo *halo_create(const Mesh *mesh, const Storage *storage, const int width[AXES], int fields);

/* Collective over the mesh's communicator. */
void halo_exchange(Halo *halo, double *const field[], int fields);

void halo_free(Halo *halo);

#endif
