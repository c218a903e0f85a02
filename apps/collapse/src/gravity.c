#include "gravity.h"

#include <math.h>

static const double PI = 3.14159265358979323846;

Gravity gravity_create(const Mesh *mesh, double zone_width, double constant)
{
    return (Gravity){.constant = constant, .multigrid = multigrid_create(mesh, zone_width)};
}

void gravity_free(Gravity *gravity)
{
    multigrid_free(gravity->multigrid);
}

int gravity_solve(Gravity *gravity, const Gas *gas)
{
    if (gravity->constant == 0.0)
        return 0;
    const Storage *to = multigrid_storage(gravity->multigrid);
    double *source = multigrid_source(gravity->multigrid);
    const double factor = 4.0 * PI * gravity->constant;
    const int *count = gas->mesh->count;
    for (int k = 0; k < count[2]; k++)
        for (int j = 0; j < count[1]; j++) {
            const double *restrict density = gas->conserved[DENSITY] + storage_index(&gas->storage, 0, j, k);
            double *restrict row = source + storage_index(to, 0, j, k);
            for (int i = 0; i < count[0]; i++)
                row[i] = factor * density[i];
        }
    /* Of a uniform density only the rounding is left once the mean is gone: measure against the whole. */
    return multigrid_solve(gravity->multigrid, factor);
}

void gravity_kick(const Gravity *gravity, Gas *gas, double dt)
{
    if (gravity->constant == 0.0)
        return;
    const double *potential = multigrid_potential(gravity->multigrid);
    const Storage *at = multigrid_storage(gravity->multigrid);
    const double factor = -0.5 * dt / gas->zone_width;
    const int *count = gas->mesh->count;
    for (int k = 0; k < count[2]; k++)
        for (int j = 0; j < count[1]; j++) {
            const double *restrict p = potential + storage_index(at, 0, j, k);
            const double *restrict south = p - at->stride[1], *restrict north = p + at->stride[1];
            const double *restrict down = p - at->stride[2], *restrict up = p + at->stride[2];
            const ptrdiff_t row = storage_index(&gas->storage, 0, j, k);
            const double *restrict density = gas->conserved[DENSITY] + row;
            double *restrict mx = gas->conserved[MOMENTUM_X] + row;
            double *restrict my = gas->conserved[MOMENTUM_Y] + row;
            double *restrict mz = gas->conserved[MOMENTUM_Z] + row;
            double *restrict energy = gas->conserved[ENERGY] + row;
            for (int i = 0; i < count[0]; i++) {
                /* Velocity changes; the work done is the change of kinetic energy. */
                const double dx = factor * (p[i + 1] - p[i - 1]);
                const double dy = factor * (north[i] - south[i]);
                const double dz = factor * (up[i] - down[i]);
                const double half = 0.5 * density[i];
                energy[i] += dx * (mx[i] + half * dx) + dy * (my[i] + half * dy) + dz * (mz[i] + half * dz);
                mx[i] += density[i] * dx;
                my[i] += density[i] * dy;
                mz[i] += density[i] * dz;
            }
        }
}

double gravity_rate(const Gravity *gravity, const Gas *gas)
{
    if (gravity->constant == 0.0)
        return 0.0;
    const double *potential = multigrid_potential(gravity->multigrid);
    const Storage *at = multigrid_storage(gravity->multigrid);
    const int *count = gas->mesh->count;
    double greatest = 0.0;
    for (int axis = 0; axis < AXES; axis++)
        for (int k = 0; k < count[2]; k++)
            for (int j = 0; j < count[1]; j++) {
                const double *p = potential + storage_index(at, 0, j, k);
                for (int i = 0; i < count[0]; i++) {
                    const double difference = fabs(p[i + at->stride[axis]] - p[i - at->stride[axis]]);
                    greatest = difference > greatest ? difference : greatest;
                }
            }
    /* A zone at rest is crossed in the time sqrt(2 width / acceleration). */
    const double acceleration = 0.5 * greatest / gas->zone_width;
    return sqrt(0.5 * acceleration / gas->zone_width);
}
