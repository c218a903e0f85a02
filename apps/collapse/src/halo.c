#include "halo.h"

#include "fail.h"
#include "wait.h"

#include <stdlib.h>
#include <string.h>

/* A run of zones along one axis, as the receiver sees it. */
typedef struct {
    int owner; /* coordinate of the process that owns the zones */
    int from;  /* first zone, in the whole mesh */
    int to;    /* where it goes: offset from the first own zone of the receiver, negative in the lower ghost zones */
    int count;
} Run;

/* A box of zones: its first zone's index in the arrays, and its size. */
typedef struct {
    ptrdiff_t index;
    int count[AXES];
} Box;

typedef struct {
    Box *box;
    size_t boxes, zones;
} Boxes;

typedef struct {
    int rank;
    Boxes outgoing, incoming;
    double *outgoing_buffer, *incoming_buffer;
} Peer;

struct Halo {
    MPI_Comm comm;
    ptrdiff_t stride[AXES];
    Peer *peer;
    int peers;
    Boxes own_source, own_target; /* what this process copies to itself */
    MPI_Request *request;
};

static void add_box(Boxes *boxes, Box box)
{
    if ((boxes->boxes & (boxes->boxes - 1)) == 0) {
        const size_t room = boxes->boxes == 0 ? 1 : 2 * boxes->boxes;
        boxes->box = realloc(boxes->box, room * sizeof(Box));
        if (boxes->box == NULL)
            fail("no memory for %zu ghost boxes", room);
    }
    boxes->box[boxes->boxes++] = box;
    boxes->zones += (size_t)box.count[0] * (size_t)box.count[1] * (size_t)box.count[2];
}

/* Splits zones first .. last - 1 (numbered past the mesh's ends, it being periodic) by owner. Returns the new count. */
static int add_runs(const Mesh *mesh, int axis, int start, int first, int last, Run *run, int runs)
{
    const int zones = mesh->zones[axis];
    while (first < last) {
        const int from = ((first % zones) + zones) % zones;
        int owner = 0;
        while (mesh->edge[axis][owner + 1] <= from)
            owner++;
        const int available = mesh->edge[axis][owner + 1] - from;
        const int wanted = last - first;
        const int count = available < wanted ? available : wanted;
        run[runs++] = (Run){.owner = owner, .from = from, .to = first - start, .count = count};
        first += count;
    }
    return runs;
}

/*
 * Calls for every box of ghost zones that process `receiver` needs from process `owner`, always in the same order, so
 * that sender and receiver agree on a message's contents: adds the zones' places at the owner to `source` and those at
 * the receiver to `target`; either may be NULL.
 */
static void add_boxes(const Mesh *mesh, const Storage *storage, const int width[AXES], int receiver, int owner,
                      Boxes *source, Boxes *target)
{
    int coordinate[AXES];
    mesh_coordinate(mesh, receiver, coordinate);
    Run *run[AXES];
    int runs[AXES], own_run[AXES];
    for (int axis = 0; axis < AXES; axis++) {
        const int start = mesh->edge[axis][coordinate[axis]];
        const int end = mesh->edge[axis][coordinate[axis] + 1];
        run[axis] = allocate(2 * (size_t)width[axis] + 1, sizeof(Run));
        runs[axis] = add_runs(mesh, axis, start, start - width[axis], start, run[axis], 0);
        own_run[axis] = runs[axis];
        runs[axis] = add_runs(mesh, axis, start, start, end, run[axis], runs[axis]);
        runs[axis] = add_runs(mesh, axis, start, end, end + width[axis], run[axis], runs[axis]);
    }
    for (int z = 0; z < runs[2]; z++)
        for (int y = 0; y < runs[1]; y++)
            for (int x = 0; x < runs[0]; x++) {
                if (x == own_run[0] && y == own_run[1] && z == own_run[2])
                    continue;
                const Run r[AXES] = {run[0][x], run[1][y], run[2][z]};
                const int owners[AXES] = {r[0].owner, r[1].owner, r[2].owner};
                if (mesh_rank(mesh, owners) != owner)
                    continue;
                Box box = {.count = {r[0].count, r[1].count, r[2].count}};
                if (source != NULL) {
                    box.index = storage_index(storage, r[0].from - mesh->start[0], r[1].from - mesh->start[1],
                                              r[2].from - mesh->start[2]);
                    add_box(source, box);
                }
                if (target != NULL) {
                    box.index = storage_index(storage, r[0].to, r[1].to, r[2].to);
                    add_box(target, box);
                }
            }
    for (int axis = 0; axis < AXES; axis++)
        free(run[axis]);
}

Halo *halo_create(const Mesh *mesh, const Storage *storage, const int width[AXES], int fields)
{
    int size;
    MPI_Comm_size(mesh->comm, &size);
    Halo *halo = allocate(1, sizeof *halo);
    halo->comm = mesh->comm;
    memcpy(halo->stride, storage->stride, sizeof halo->stride);
    halo->peer = allocate((size_t)size, sizeof(Peer));
    halo->request = allocate(2 * (size_t)size, sizeof(MPI_Request));
    add_boxes(mesh, storage, width, mesh->rank, mesh->rank, &halo->own_source, &halo->own_target);
    for (int rank = 0; rank < size; rank++) {
        if (rank == mesh->rank)
            continue;
        Peer peer = {.rank = rank};
        add_boxes(mesh, storage, width, rank, mesh->rank, &peer.outgoing, NULL);
        add_boxes(mesh, storage, width, mesh->rank, rank, NULL, &peer.incoming);
        if (peer.outgoing.boxes == 0 && peer.incoming.boxes == 0)
            continue;
        peer.outgoing_buffer = allocate(peer.outgoing.zones * (size_t)fields, sizeof(double));
        peer.incoming_buffer = allocate(peer.incoming.zones * (size_t)fields, sizeof(double));
        halo->peer[halo->peers++] = peer;
    }
    return halo;
}

static double *pack(const Halo *halo, const Boxes *boxes, const double *field, double *buffer)
{
    for (size_t b = 0; b < boxes->boxes; b++) {
        const Box *box = &boxes->box[b];
        for (int k = 0; k < box->count[2]; k++)
            for (int j = 0; j < box->count[1]; j++) {
                const double *row = field + box->index + j * halo->stride[1] + k * halo->stride[2];
                for (int i = 0; i < box->count[0]; i++)
                    *buffer++ = row[i];
            }
    }
    return buffer;
}

static const double *unpack(const Halo *halo, const Boxes *boxes, double *field, const double *buffer)
{
    for (size_t b = 0; b < boxes->boxes; b++) {
        const Box *box = &boxes->box[b];
        for (int k = 0; k < box->count[2]; k++)
            for (int j = 0; j < box->count[1]; j++) {
                double *row = field + box->index + j * halo->stride[1] + k * halo->stride[2];
                for (int i = 0; i < box->count[0]; i++)
                    row[i] = *buffer++;
            }
    }
    return buffer;
}

static void copy_own(const Halo *halo, double *field)
{
    for (size_t b = 0; b < halo->own_source.boxes; b++) {
        const Box *source = &halo->own_source.box[b];
        const Box *target = &halo->own_target.box[b];
        for (int k = 0; k < source->count[2]; k++)
            for (int j = 0; j < source->count[1]; j++) {
                const ptrdiff_t row = j * halo->stride[1] + k * halo->stride[2];
                const double *from = field + source->index + row;
                double *to = field + target->index + row;
                for (int i = 0; i < source->count[0]; i++)
                    to[i] = from[i];
            }
    }
}

void halo_exchange(Halo *halo, double *const field[], int fields)
{
    enum { TAG = 1 };
    MPI_Request *request = halo->request;
    for (int p = 0; p < halo->peers; p++) {
        const Peer *peer = &halo->peer[p];
        MPI_Irecv(peer->incoming_buffer, (int)(peer->incoming.zones * (size_t)fields), MPI_DOUBLE, peer->rank, TAG,
                  halo->comm, request++);
    }
    for (int p = 0; p < halo->peers; p++) {
        const Peer *peer = &halo->peer[p];
        double *buffer = peer->outgoing_buffer;
        for (int f = 0; f < fields; f++)
            buffer = pack(halo, &peer->outgoing, field[f], buffer);
        MPI_Isend(peer->outgoing_buffer, (int)(buffer - peer->outgoing_buffer), MPI_DOUBLE, peer->rank, TAG,
                  halo->comm, request++);
    }
    for (int f = 0; f < fields; f++)
        copy_own(halo, field[f]);
    wait_all((int)(request - halo->request), halo->request);
    for (int p = 0; p < halo->peers; p++) {
        const Peer *peer = &halo->peer[p];
        const double *buffer = peer->incoming_buffer;
        for (int f = 0; f < fields; f++)
            buffer = unpack(halo, &peer->incoming, field[f], buffer);
    }
}

void halo_free(Halo *halo)
{
    if (halo == NULL)
        return;
    for (int p = 0; p < halo->peers; p++) {
        Peer *peer = &halo->peer[p];
        free(peer->outgoing.box);
        free(peer->incoming.box);
        free(peer->outgoing_buffer);
        free(peer->incoming_buffer);
    }
    free(halo->own_source.box);
    free(halo->own_target.box);
    free(halo->peer);
    free(halo->request);
    free(halo);
}
