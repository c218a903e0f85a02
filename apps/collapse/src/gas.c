#include "gas.h"

#include "fail.h"

#include <math.h>
#include <stdlib.h>

Gas gas_create(const Mesh *mesh, double zone_width, double gamma)
{
    Gas gas = {
        .mesh = mesh, .storage = storage_create(mesh, GAS_GHOST), .zone_width = zone_width, .gamma = gamma};
    for (int q = 0; q < CONSERVED; q++)
        gas.conserved[q] = allocate(gas.storage.total, sizeof(double));
    for (int axis = 0; axis < AXES; axis++) {
        int width[AXES] = {0, 0, 0};
        width[axis] = GAS_GHOST;
        gas.halo[axis] = halo_create(mesh, &gas.storage, width, CONSERVED);
    }
    return gas;
}

void gas_free(Gas *gas)
{
    for (int q = 0; q < CONSERVED; q++)
        free(gas->conserved[q]);
    for (int axis = 0; axis < AXES; axis++)
        halo_free(gas->halo[axis]);
}

double gas_pressure(const Gas *gas, ptrdiff_t index)
{
    const double mx = gas->conserved[MOMENTUM_X][index];
    const double my = gas->conserved[MOMENTUM_Y][index];
    const double mz = gas->conserved[MOMENTUM_Z][index];
    const double kinetic = 0.5 * (mx * mx + my * my + mz * mz) / gas->conserved[DENSITY][index];
    const double pressure = (gas->gamma - 1.0) * (gas->conserved[ENERGY][index] - kinetic);
    return pressure > PRESSURE_FLOOR ? pressure : PRESSURE_FLOOR;
}

double gas_signal_rate(const Gas *gas)
{
    const Mesh *mesh = gas->mesh;
    double greatest = 0.0;
    for (int k = 0; k < mesh->count[2]; k++)
        for (int j = 0; j < mesh->count[1]; j++)
            for (int i = 0; i < mesh->count[0]; i++) {
                const ptrdiff_t z = storage_index(&gas->storage, i, j, k);
                const double density = gas->conserved[DENSITY][z];
                const double sound = sqrt(gas->gamma * gas_pressure(gas, z) / density);
                double momentum = 0.0;
                for (int q = MOMENTUM_X; q <= MOMENTUM_Z; q++)
                    momentum = fmax(momentum, fabs(gas->conserved[q][z]));
                const double speed = momentum / density + sound;
                if (!(density > 0.0) || !isfinite(speed) || !isfinite(gas->conserved[ENERGY][z]))
                    fail("the gas is unphysical in zone (%d, %d, %d): density %g, greatest momentum %g, energy %g",
                         i + mesh->start[0], j + mesh->start[1], k + mesh->start[2], density, momentum,
                         gas->conserved[ENERGY][z]);
                greatest = speed > greatest ? speed : greatest;
            }
    return greatest / gas->zone_width;
}
