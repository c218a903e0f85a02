/*
 * The mesh and how it is divided among processes: (block, block, block).
 *
 * Axes are 0, 1, 2 for x, y, z; x varies fastest everywhere: in memory, in files, and in the numbering of processes.
 * A block may have any size, so a mesh need not be a multiple of the process grid.
 */
#ifndef COLLAPSE_MESH_H
#define COLLAPSE_MESH_H

#include <mpi.h>
#include <stddef.h>

enum { AXES = 3 };

typedef struct {
    MPI_Comm comm;
    int rank;
    int zones[AXES];      /* of the whole mesh */
    int processes[AXES];  /* of the process grid */
    int coordinate[AXES]; /* of this process in it */
    int *edge[AXES];      /* block c of an axis is zones edge[c] .. edge[c + 1] - 1 */
    int start[AXES];      /* this process's block */
    int count[AXES];
} Mesh;

/*
 * Factors of two go to z, y, x, z, ... in turn (2 is 1x1x2, 4 is 1x2x2, 8 is 2x2x2, 64 is 4x4x4), passing over an axis
 * that has too few zones. Returns 0 if `size` is not a power of two or the mesh is too small for it, otherwise 1.
 */
int mesh_process_grid(const int zones[AXES], int size, int processes[AXES]);

/* The mesh in blocks as equal as possible. */
Mesh mesh_create(MPI_Comm comm, const int zones[AXES], const int processes[AXES]);

/* A coarser mesh of the same box, each block covering nearly the same part of it as that of `fine`. */
Mesh mesh_coarsen(const Mesh *fine, const int zones[AXES]);

/* The same zones, all of them on this process alone. */
Mesh mesh_gather(const Mesh *mesh);

void mesh_free(Mesh *mesh);

int mesh_rank(const Mesh *mesh, const int coordinate[AXES]);
void mesh_coordinate(const Mesh *mesh, int rank, int coordinate[AXES]);

/* How this process's block of a mesh lies in memory: with `ghost` more zones on each side. */
typedef struct {
    int ghost;
    ptrdiff_t stride[AXES];
    size_t total;
} Storage;

Storage storage_create(const Mesh *mesh, int ghost);

/* Index of local zone (i, j, k), where (0, 0, 0) is the block's first own zone. */
static inline ptrdiff_t storage_index(const Storage *s, int i, int j, int k)
{
    return (i + s->ghost) + (j + s->ghost) * s->stride[1] + (k + s->ghost) * s->stride[2];
}

#endif
