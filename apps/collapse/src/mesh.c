#include "mesh.h"

#include "fail.h"

#include <stdlib.h>

int mesh_process_grid(const int zones[AXES], int size, int processes[AXES])
{
    for (int axis = 0; axis < AXES; axis++)
        processes[axis] = 1;
    if (size < 1 || (size & (size - 1)) != 0)
        return 0;
    int axis = AXES - 1;
    for (int left = size; left > 1; left /= 2) {
        int tried = 0;
        while (2 * processes[axis] > zones[axis]) {
            if (++tried == AXES)
                return 0;
            axis = (axis + AXES - 1) % AXES;
        }
        processes[axis] *= 2;
        axis = (axis + AXES - 1) % AXES;
    }
    return 1;
}

static void take_own_block(Mesh *mesh)
{
    mesh_coordinate(mesh, mesh->rank, mesh->coordinate);
    for (int axis = 0; axis < AXES; axis++) {
        const int *edge = mesh->edge[axis] + mesh->coordinate[axis];
        mesh->start[axis] = edge[0];
        mesh->count[axis] = edge[1] - edge[0];
    }
}

Mesh mesh_create(MPI_Comm comm, const int zones[AXES], const int processes[AXES])
{
    Mesh mesh = {.comm = comm};
    MPI_Comm_rank(comm, &mesh.rank);
    for (int axis = 0; axis < AXES; axis++) {
        mesh.zones[axis] = zones[axis];
        mesh.processes[axis] = processes[axis];
        mesh.edge[axis] = allocate((size_t)processes[axis] + 1, sizeof(int));
        for (int c = 0; c <= processes[axis]; c++)
            mesh.edge[axis][c] = (int)((long long)c * zones[axis] / processes[axis]);
    }
    take_own_block(&mesh);
    return mesh;
}

Mesh mesh_coarsen(const Mesh *fine, const int zones[AXES])
{
    Mesh mesh = *fine;
    for (int axis = 0; axis < AXES; axis++) {
        mesh.zones[axis] = zones[axis];
        mesh.edge[axis] = allocate((size_t)mesh.processes[axis] + 1, sizeof(int));
        /* To the nearest zone: then no block reaches further than two fine zones beyond its own (see multigrid.c). */
        const long long n = fine->zones[axis];
        for (int c = 0; c <= mesh.processes[axis]; c++)
            mesh.edge[axis][c] = (int)((2LL * fine->edge[axis][c] * zones[axis] + n) / (2 * n));
    }
    take_own_block(&mesh);
    return mesh;
}

Mesh mesh_gather(const Mesh *mesh)
{
    const int one[AXES] = {1, 1, 1};
    return mesh_create(MPI_COMM_SELF, mesh->zones, one);
}

void mesh_free(Mesh *mesh)
{
    for (int axis = 0; axis < AXES; axis++)
        free(mesh->edge[axis]);
}

int mesh_rank(const Mesh *mesh, const int coordinate[AXES])
{
    return coordinate[0] + mesh->processes[0] * (coordinate[1] + mesh->processes[1] * coordinate[2]);
}

void mesh_coordinate(const Mesh *mesh, int rank, int coordinate[AXES])
{
    for (int axis = 0; axis < AXES; axis++) {
        coordinate[axis] = rank % mesh->processes[axis];
        rank /= mesh->processes[axis];
    }
}

Storage storage_create(const Mesh *mesh, int ghost)
{
    Storage storage = {.ghost = ghost};
    ptrdiff_t stride = 1;
    for (int axis = 0; axis < AXES; axis++) {
        storage.stride[axis] = stride;
        stride *= mesh->count[axis] + 2 * ghost;
    }
    storage.total = (size_t)stride;
    return storage;
}
