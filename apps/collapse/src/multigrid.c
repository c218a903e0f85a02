#include "multigrid.h"

#include "fail.h"
#include "halo.h"
#include "reduce.h"
#include "wait.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * The method: V-cycles of zone-centred multigrid. Each level's mesh has half the zones of the finer one along each axis,
 * rounded up, over the same box, so any mesh coarsens: where a number is odd the zones of the two levels do not nest,
 * and interpolation weights vary along the axis. The residual of a coarse zone is the average of what it covers, which
 * keeps the mean zero; the correction is interpolated linearly between zone centres. The operator is the seven-point
 * Laplacian on every level.
 *
 * The smoother is Jacobi's, with Chebyshev weights for the upper part of the spectrum: as strong as red-black
 * Gauss-Seidel, but a step's result does not depend on the order of zones, which for an odd number of zones in a
 * periodic box no colouring in two would give.
 *
 * Communication: on a divided level ghost zones are fetched once for all steps of a smoothing, wide enough for each
 * step to compute a shrinking margin of the neighbours' zones itself. From the first level that is small, all processes
 * hold the whole mesh and compute the same.
 */
enum {
    STEPS = 2,              /* smoothing steps before and after each coarse correction */
    COARSEST_ROUNDS = 5,    /* smoothings on the coarsest level, which replace its solution */
    COARSEST_ZONES = 4,     /* the coarsest level has at most so many zones along any axis */
    GATHERED_ZONES = 32768, /* a level of at most so many zones is held whole by all processes */
    GATHERED_BLOCK = 4,     /* so is one with blocks of fewer zones along any axis */
    MOST_CYCLES = 60,
    KEPT = 1,               /* ghost zones valid after smoothing: for interpolation and for the residual's norm */
    SUPPORT = 3             /* most fine zones along an axis that a coarse zone's residual is made from */
};

/* How one axis of a level relates to the next coarser one. */
typedef struct {
    /* Fine zone i lies between the centres of coarse zones below[i] and below[i] + 1, at `fraction[i]` of the way. */
    int *below;
    double *fraction;
    /* Coarse zone c takes fine zones first[c], first[c] + 1, ... with weights weight[c]. */
    int *first;
    double (*weight)[SUPPORT];
} Transfer;

typedef struct {
    Mesh mesh;
    Storage storage;
    int divided;                 /* among processes; otherwise this process holds it all */
    double inverse_square[AXES]; /* of the zone width; 0 along an axis of one zone */
    double step_weight[STEPS];
    double *potential, *source, *scratch;
    double *row;          /* a line of zones */
    Halo *before, *after; /* for the smoothing before and after the coarse correction */

    /* Towards the next coarser level; not on the coarsest. */
    Transfer transfer[AXES];
    int reach;       /* how far beyond the own zones restriction reads the residual */
    Mesh restricted; /* the coarse zones whose residual this process computes */
    double *gathered, *contribution;
    int *gathered_count, *gathered_offset;
} Level;

struct Multigrid {
    Level *level;
    int levels;
};

/* ---- the public story ---- */

static void cycle(Multigrid *multigrid, int depth);
static double residual_norm(const Level *level);
static void subtract_mean(const Level *level, double *field);
static double greatest_magnitude(const Level *level, const double *field);

int multigrid_solve(Multigrid *multigrid, double scale)
{
    Level *finest = &multigrid->level[0];
    subtract_mean(finest, finest->source);
    const double relative = 1e-8 * greatest_magnitude(finest, finest->source);
    const double absolute = 1e-12 * scale;
    const double enough = relative > absolute ? relative : absolute;
    halo_exchange(finest->before, &finest->source, 1);

    double residual = INFINITY;
    int cycles = 0;
    while (!(residual <= enough)) {
        if (cycles == MOST_CYCLES)
            fail("multigrid does not converge: after %d cycles the residual is %g, %g is wanted", cycles, residual,
                 enough);
        cycle(multigrid, 0);
        residual = reduce_max(&finest->mesh, residual_norm(finest));
        cycles++;
    }
    subtract_mean(finest, finest->potential);
    halo_exchange(finest->after, &finest->potential, 1);
    return cycles;
}

const Storage *multigrid_storage(const Multigrid *multigrid)
{
    return &multigrid->level[0].storage;
}

double *multigrid_potential(Multigrid *multigrid)
{
    return multigrid->level[0].potential;
}

double *multigrid_source(Multigrid *multigrid)
{
    return multigrid->level[0].source;
}

/* ---- one V-cycle ---- */

static void smooth(Level *level, Halo *halo, int kept);
static void find_residual(Level *level, int width);
static void restrict_residual(const Level *fine, Level *coarse);
static void interpolate_correction(Level *fine, const Level *coarse);

static void cycle(Multigrid *multigrid, int depth)
{
    Level *level = &multigrid->level[depth];
    if (depth == multigrid->levels - 1) {
        for (int round = 0; round < COARSEST_ROUNDS; round++)
            smooth(level, level->after, KEPT);
        return;
    }
    Level *coarser = level + 1;

    /* A coarse level starts from zero, valid everywhere; its source's ghost zones came with the restriction. */
    if (depth == 0)
        halo_exchange(level->before, &level->potential, 1);
    smooth(level, level->before, level->reach + 1);
    find_residual(level, level->reach);
    restrict_residual(level, coarser);
    memset(coarser->potential, 0, coarser->storage.total * sizeof(double));
    cycle(multigrid, depth + 1);
    interpolate_correction(level, coarser);
    if (level->divided)
        halo_exchange(level->after, &level->potential, 1);
    smooth(level, level->after, KEPT);
}

static void smoothing_step(Level *level, double weight, int width);

/*
 * STEPS steps, after which `kept` ghost zones are valid. On a divided level STEPS + kept of them must be valid before;
 * on one held whole, ghost zones are copies within memory, made here.
 */
static void smooth(Level *level, Halo *halo, int kept)
{
    for (int step = 0; step < STEPS; step++) {
        if (!level->divided)
            halo_exchange(halo, &level->potential, 1);
        smoothing_step(level, level->step_weight[step], level->divided ? kept + STEPS - 1 - step : 0);
    }
    if (!level->divided)
        halo_exchange(halo, &level->potential, 1);
}

/* potential += weight (laplacian(potential) - source), on the own zones and `width` more on all sides. */
static void smoothing_step(Level *level, double weight, int width)
{
    const Storage *s = &level->storage;
    const int *count = level->mesh.count;
    const double wx = weight * level->inverse_square[0];
    const double wy = weight * level->inverse_square[1];
    const double wz = weight * level->inverse_square[2];
    const double own = 1.0 - 2.0 * (wx + wy + wz);
    const int length = count[0] + 2 * width;
    for (int k = -width; k < count[2] + width; k++)
        for (int j = -width; j < count[1] + width; j++) {
            const ptrdiff_t row = storage_index(s, -width, j, k);
            const double *restrict p = level->potential + row;
            const double *restrict f = level->source + row;
            double *restrict result = level->scratch + row;
            const double *p_south = p - s->stride[1], *p_north = p + s->stride[1];
            const double *p_down = p - s->stride[2], *p_up = p + s->stride[2];
            for (int i = 0; i < length; i++)
                result[i] = own * p[i] + wx * (p[i - 1] + p[i + 1]) + wy * (p_south[i] + p_north[i]) +
                            wz * (p_down[i] + p_up[i]) - weight * f[i];
        }
    double *const old = level->potential;
    level->potential = level->scratch;
    level->scratch = old;
}

/* result[i], i < length: the residual of a line of zones that begins at index `row`. */
static inline void residual_row(const Level *level, ptrdiff_t row, int length, double *restrict result)
{
    const Storage *s = &level->storage;
    const double ix = level->inverse_square[0], iy = level->inverse_square[1], iz = level->inverse_square[2];
    const double *p = level->potential + row;
    const double *f = level->source + row;
    const double *p_south = p - s->stride[1], *p_north = p + s->stride[1];
    const double *p_down = p - s->stride[2], *p_up = p + s->stride[2];
    for (int i = 0; i < length; i++) {
        const double twice = 2.0 * p[i];
        result[i] = f[i] - (ix * (p[i - 1] + p[i + 1] - twice) + iy * (p_south[i] + p_north[i] - twice) +
                            iz * (p_down[i] + p_up[i] - twice));
    }
}

/* scratch = source - laplacian(potential), on the own zones and at least `width` more on all sides. */
static void find_residual(Level *level, int width)
{
    const int margin = level->divided ? width : 0;
    const int *count = level->mesh.count;
    for (int k = -margin; k < count[2] + margin; k++)
        for (int j = -margin; j < count[1] + margin; j++) {
            const ptrdiff_t row = storage_index(&level->storage, -margin, j, k);
            residual_row(level, row, count[0] + 2 * margin, level->scratch + row);
        }
    if (!level->divided)
        halo_exchange(level->before, &level->scratch, 1);
}

static double residual_norm(const Level *level)
{
    const int *count = level->mesh.count;
    double greatest = 0.0;
    for (int k = 0; k < count[2]; k++)
        for (int j = 0; j < count[1]; j++) {
            residual_row(level, storage_index(&level->storage, 0, j, k), count[0], level->row);
            for (int i = 0; i < count[0]; i++)
                greatest = fabs(level->row[i]) > greatest ? fabs(level->row[i]) : greatest;
        }
    return greatest;
}

static void gather(const Level *fine, Level *coarse);

static void restrict_residual(const Level *fine, Level *coarse)
{
    const Transfer *tx = &fine->transfer[0], *ty = &fine->transfer[1], *tz = &fine->transfer[2];
    const Mesh *to = &fine->restricted;
    const int length = fine->mesh.count[0] + 2 * fine->reach;
    double *restrict sum = fine->row;
    double *contribution = fine->contribution;
    const int gathering = fine->contribution != NULL;

    for (int ck = to->start[2]; ck < to->start[2] + to->count[2]; ck++)
        for (int cj = to->start[1]; cj < to->start[1] + to->count[1]; cj++) {
            /* Lines of fine zones into one, then that one's zones into coarse ones. */
            memset(sum, 0, (size_t)length * sizeof(double));
            for (int n = 0; n < SUPPORT; n++)
                for (int m = 0; m < SUPPORT; m++) {
                    const double weight = ty->weight[cj][m] * tz->weight[ck][n];
                    if (weight == 0.0)
                        continue;
                    const double *residual =
                        fine->scratch + storage_index(&fine->storage, -fine->reach,
                                                      ty->first[cj] + m - fine->mesh.start[1],
                                                      tz->first[ck] + n - fine->mesh.start[2]);
                    for (int i = 0; i < length; i++)
                        sum[i] += weight * residual[i];
                }
            double *target = gathering ? contribution
                                       : coarse->source + storage_index(&coarse->storage, 0, cj - to->start[1],
                                                                        ck - to->start[2]);
            for (int c = 0; c < to->count[0]; c++) {
                const int ci = to->start[0] + c;
                double value = 0.0;
                for (int m = 0; m < SUPPORT; m++)
                    if (tx->weight[ci][m] != 0.0)
                        value += tx->weight[ci][m] * sum[tx->first[ci] + m - fine->mesh.start[0] + fine->reach];
                target[c] = value;
            }
            if (gathering)
                contribution += to->count[0];
        }

    if (gathering)
        gather(fine, coarse);
    else if (coarse->divided)
        halo_exchange(coarse->before, &coarse->source, 1);
}

/* All processes' contributions to the source of a level that all hold whole. */
static void gather(const Level *fine, Level *coarse)
{
    const Mesh *mesh = &fine->restricted;
    MPI_Request request;
    MPI_Iallgatherv(fine->contribution, fine->gathered_count[mesh->rank], MPI_DOUBLE, fine->gathered,
                    fine->gathered_count, fine->gathered_offset, MPI_DOUBLE, mesh->comm, &request);
    wait_all(1, &request);
    const int ranks = mesh->processes[0] * mesh->processes[1] * mesh->processes[2];
    const double *from = fine->gathered;
    for (int rank = 0; rank < ranks; rank++) {
        int c[AXES];
        mesh_coordinate(mesh, rank, c);
        for (int k = mesh->edge[2][c[2]]; k < mesh->edge[2][c[2] + 1]; k++)
            for (int j = mesh->edge[1][c[1]]; j < mesh->edge[1][c[1] + 1]; j++) {
                const int first = mesh->edge[0][c[0]], count = mesh->edge[0][c[0] + 1] - first;
                memcpy(coarse->source + storage_index(&coarse->storage, first, j, k), from,
                       (size_t)count * sizeof(double));
                from += count;
            }
    }
}

/* potential += the coarse potential between coarse zone centres, on the own zones. */
static void interpolate_correction(Level *fine, const Level *coarse)
{
    const Transfer *tx = &fine->transfer[0], *ty = &fine->transfer[1], *tz = &fine->transfer[2];
    const Storage *s = &coarse->storage;
    const int *start = fine->mesh.start, *count = fine->mesh.count;
    const int first = tx->below[start[0]];
    const int length = tx->below[start[0] + count[0] - 1] + 2 - first;
    double *restrict line = fine->row;
    for (int k = 0; k < count[2]; k++)
        for (int j = 0; j < count[1]; j++) {
            const double y = ty->fraction[start[1] + j], z = tz->fraction[start[2] + k];
            const double *near = coarse->potential + storage_index(s, first - coarse->mesh.start[0],
                                                                   ty->below[start[1] + j] - coarse->mesh.start[1],
                                                                   tz->below[start[2] + k] - coarse->mesh.start[2]);
            const double *north = near + s->stride[1], *up = near + s->stride[2], *far = up + s->stride[1];
            const double w_near = (1.0 - y) * (1.0 - z), w_north = y * (1.0 - z), w_up = (1.0 - y) * z, w_far = y * z;
            for (int c = 0; c < length; c++)
                line[c] = (w_near * near[c] + w_north * north[c]) + (w_up * up[c] + w_far * far[c]);
            double *restrict potential = fine->potential + storage_index(&fine->storage, 0, j, k);
            for (int i = 0; i < count[0]; i++) {
                const double *between = line + (tx->below[start[0] + i] - first);
                const double x = tx->fraction[start[0] + i];
                potential[i] += (1.0 - x) * between[0] + x * between[1];
            }
        }
}

static void subtract_mean(const Level *level, double *field)
{
    const Mesh *mesh = &level->mesh;
    const double zones = (double)mesh->zones[0] * mesh->zones[1] * mesh->zones[2];
    const double mean = reduce_sum(mesh, &level->storage, field) / zones;
    for (int k = 0; k < mesh->count[2]; k++)
        for (int j = 0; j < mesh->count[1]; j++) {
            double *row = field + storage_index(&level->storage, 0, j, k);
            for (int i = 0; i < mesh->count[0]; i++)
                row[i] -= mean;
        }
}

static double greatest_magnitude(const Level *level, const double *field)
{
    const Mesh *mesh = &level->mesh;
    double greatest = 0.0;
    for (int k = 0; k < mesh->count[2]; k++)
        for (int j = 0; j < mesh->count[1]; j++) {
            const double *row = field + storage_index(&level->storage, 0, j, k);
            for (int i = 0; i < mesh->count[0]; i++)
                greatest = fabs(row[i]) > greatest ? fabs(row[i]) : greatest;
        }
    return reduce_max(mesh, greatest);
}

/* ---- setting up ---- */

/* Index and weight of linear interpolation at fine zone i. */
static double locate(int fine_zones, int coarse_zones, int i, int *below)
{
    /* Position (i + 1/2) coarse/fine - 1/2 in units of coarse zones, as an integer fraction: exact, and the same on
     * all processes. */
    const long long denominator = 2LL * fine_zones;
    const long long numerator = (2LL * i + 1) * coarse_zones - fine_zones;
    long long whole = numerator / denominator;
    if (whole * denominator > numerator)
        whole--;
    *below = (int)whole;
    return (double)(numerator - whole * denominator) / (double)denominator;
}

static Transfer transfer_create(int fine_zones, int coarse_zones)
{
    Transfer transfer = {.below = allocate((size_t)fine_zones, sizeof(int)),
                         .fraction = allocate((size_t)fine_zones, sizeof(double)),
                         .first = allocate((size_t)coarse_zones, sizeof(int)),
                         .weight = allocate((size_t)coarse_zones, sizeof(double[SUPPORT]))};
    for (int i = 0; i < fine_zones; i++)
        transfer.fraction[i] = locate(fine_zones, coarse_zones, i, &transfer.below[i]);
    for (int c = 0; c < coarse_zones; c++) {
        /* In units of 1 / (fine_zones coarse_zones) of the box: the coarse zone, then each fine one. */
        const long long begin = (long long)c * fine_zones, end = begin + fine_zones;
        transfer.first[c] = (int)(begin / coarse_zones);
        for (int m = 0; m < SUPPORT; m++) {
            const long long low = (long long)(transfer.first[c] + m) * coarse_zones, high = low + coarse_zones;
            const long long overlap = (high < end ? high : end) - (low > begin ? low : begin);
            transfer.weight[c][m] = overlap > 0 ? (double)overlap / fine_zones : 0.0;
        }
    }
    return transfer;
}

static void transfer_free(Transfer *transfer)
{
    free(transfer->below);
    free(transfer->fraction);
    free(transfer->first);
    free(transfer->weight);
}

/* How far beyond its own zones any process reads to restrict to its coarse zones. */
static int find_reach(const Mesh *fine, const Mesh *coarse, const Transfer transfer[AXES])
{
    int reach = 0;
    for (int axis = 0; axis < AXES; axis++)
        for (int c = 0; c < fine->processes[axis]; c++)
            for (int zone = coarse->edge[axis][c]; zone < coarse->edge[axis][c + 1]; zone++)
                for (int m = 0; m < SUPPORT; m++) {
                    if (transfer[axis].weight[zone][m] == 0.0)
                        continue;
                    const int read = transfer[axis].first[zone] + m;
                    const int under = fine->edge[axis][c] - read, over = read - fine->edge[axis][c + 1] + 1;
                    reach = under > reach ? under : reach;
                    reach = over > reach ? over : reach;
                }
    return reach;
}

static int is_coarsest(const Mesh *mesh)
{
    return mesh->zones[0] <= COARSEST_ZONES && mesh->zones[1] <= COARSEST_ZONES && mesh->zones[2] <= COARSEST_ZONES;
}

static int must_gather(const Mesh *mesh)
{
    if ((long long)mesh->zones[0] * mesh->zones[1] * mesh->zones[2] <= GATHERED_ZONES)
        return 1;
    for (int axis = 0; axis < AXES; axis++)
        for (int c = 0; c < mesh->processes[axis]; c++)
            if (mesh->edge[axis][c + 1] - mesh->edge[axis][c] < GATHERED_BLOCK)
                return 1;
    return 0;
}

/* Weights of the smoothing steps: the inverse roots of Chebyshev's polynomial over the eigenvalues to be damped. */
static void find_step_weights(Level *level)
{
    const double pi = 3.14159265358979323846;
    double sum = 0.0, least = INFINITY;
    for (int axis = 0; axis < AXES; axis++) {
        const double coupling = level->inverse_square[axis];
        sum += coupling;
        if (coupling > 0.0 && coupling < least)
            least = coupling;
    }
    if (sum == 0.0)
        return; /* one zone: nothing to smooth */
    /* A mode that the coarser level cannot represent has a half-wavelength under two zones along some axis, so at least
     * twice the least coupling; a little less than that converges in the fewest cycles on most meshes. */
    const double top = 4.0 * sum, bottom = 1.6 * least;
    for (int step = 0; step < STEPS; step++)
        level->step_weight[step] =
            1.0 / (0.5 * (top + bottom) + 0.5 * (top - bottom) * cos(pi * (2 * step + 1) / (2.0 * STEPS)));
}

/* The level's relation to the next coarser one, whose mesh is returned. */
static Mesh plan_coarser(Level *level)
{
    int zones[AXES];
    for (int axis = 0; axis < AXES; axis++) {
        zones[axis] = (level->mesh.zones[axis] + 1) / 2;
        level->transfer[axis] = transfer_create(level->mesh.zones[axis], zones[axis]);
    }
    level->restricted = mesh_coarsen(&level->mesh, zones);
    level->reach = find_reach(&level->mesh, &level->restricted, level->transfer);
    if (!level->divided || !must_gather(&level->restricted))
        return mesh_coarsen(&level->mesh, zones);

    const Mesh *mesh = &level->restricted;
    const int ranks = mesh->processes[0] * mesh->processes[1] * mesh->processes[2];
    level->gathered_count = allocate((size_t)ranks, sizeof(int));
    level->gathered_offset = allocate((size_t)ranks, sizeof(int));
    int total = 0;
    for (int rank = 0; rank < ranks; rank++) {
        int c[AXES];
        mesh_coordinate(mesh, rank, c);
        level->gathered_count[rank] = 1;
        for (int axis = 0; axis < AXES; axis++)
            level->gathered_count[rank] *= mesh->edge[axis][c[axis] + 1] - mesh->edge[axis][c[axis]];
        level->gathered_offset[rank] = total;
        total += level->gathered_count[rank];
    }
    level->gathered = allocate((size_t)total, sizeof(double));
    level->contribution = allocate((size_t)level->gathered_count[mesh->rank], sizeof(double));
    return mesh_gather(mesh);
}

static void allocate_level(Level *level)
{
    const int before = level->divided ? STEPS + level->reach + 1 : level->reach + 1;
    const int after = level->divided ? STEPS + KEPT : KEPT;
    const int width_before[AXES] = {before, before, before}, width_after[AXES] = {after, after, after};
    const int ghost = before > after ? before : after;
    level->storage = storage_create(&level->mesh, ghost);
    level->potential = allocate(level->storage.total, sizeof(double));
    level->source = allocate(level->storage.total, sizeof(double));
    level->scratch = allocate(level->storage.total, sizeof(double));
    level->row = allocate((size_t)(level->mesh.count[0] + 2 * ghost), sizeof(double));
    level->before = halo_create(&level->mesh, &level->storage, width_before, 1);
    level->after = halo_create(&level->mesh, &level->storage, width_after, 1);
    find_step_weights(level);
}

Multigrid *multigrid_create(const Mesh *mesh, double zone_width)
{
    enum { MOST_LEVELS = 32 };
    Multigrid *multigrid = allocate(1, sizeof *multigrid);
    multigrid->level = allocate(MOST_LEVELS, sizeof(Level));

    const double box[AXES] = {mesh->zones[0] * zone_width, mesh->zones[1] * zone_width, mesh->zones[2] * zone_width};
    Mesh next = mesh_coarsen(mesh, mesh->zones); /* a copy, with its own tables */
    for (int coarsest = 0; !coarsest;) {
        Level *level = &multigrid->level[multigrid->levels++];
        level->mesh = next;
        level->divided = next.processes[0] * next.processes[1] * next.processes[2] > 1;
        for (int axis = 0; axis < AXES; axis++) {
            const double width = box[axis] / level->mesh.zones[axis];
            level->inverse_square[axis] = level->mesh.zones[axis] > 1 ? 1.0 / (width * width) : 0.0;
        }
        /* At least two levels, divided or not: a small mesh among many processes is gathered on the second. */
        coarsest = is_coarsest(&level->mesh) && multigrid->levels > 1;
        if (!coarsest)
            next = plan_coarser(level);
        allocate_level(level);
    }
    return multigrid;
}

void multigrid_free(Multigrid *multigrid)
{
    if (multigrid == NULL)
        return;
    for (int depth = 0; depth < multigrid->levels; depth++) {
        Level *level = &multigrid->level[depth];
        mesh_free(&level->mesh);
        free(level->potential);
        free(level->source);
        free(level->scratch);
        free(level->row);
        halo_free(level->before);
        halo_free(level->after);
        free(level->gathered);
        free(level->contribution);
        free(level->gathered_count);
        free(level->gathered_offset);
        if (depth < multigrid->levels - 1) {
            mesh_free(&level->restricted);
            for (int axis = 0; axis < AXES; axis++)
                transfer_free(&level->transfer[axis]);
        }
    }
    free(multigrid->level);
    free(multigrid);
}
