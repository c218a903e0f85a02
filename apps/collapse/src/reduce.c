#include "reduce.h"

#include "wait.h"

#include <math.h>
#include <stdint.h>

double reduce_max(const Mesh *mesh, double value)
{
    double result;
    MPI_Request request;
    MPI_Iallreduce(&value, &result, 1, MPI_DOUBLE, MPI_MAX, mesh->comm, &request);
    wait_all(1, &request);
    return result;
}

double reduce_sum(const Mesh *mesh, const Storage *storage, const double *field)
{
    double greatest = 0.0;
    for (int k = 0; k < mesh->count[2]; k++)
        for (int j = 0; j < mesh->count[1]; j++) {
            const double *row = field + storage_index(storage, 0, j, k);
            for (int i = 0; i < mesh->count[0]; i++)
                greatest = fabs(row[i]) > greatest ? fabs(row[i]) : greatest;
        }
    greatest = reduce_max(mesh, greatest);
    if (greatest == 0.0 || !isfinite(greatest))
        return greatest;

    /* |value| * 2^shift is at most 2^52; halves of 32 bits each leave 31 bits for the number of zones. */
    int exponent;
    frexp(greatest, &exponent);
    const int shift = 52 - exponent;
    int64_t half[2] = {0, 0};
    const double scale = ldexp(1.0, shift);
    for (int k = 0; k < mesh->count[2]; k++)
        for (int j = 0; j < mesh->count[1]; j++) {
            const double *row = field + storage_index(storage, 0, j, k);
            for (int i = 0; i < mesh->count[0]; i++) {
                const int64_t value = (int64_t)llrint(row[i] * scale);
                half[0] += (int64_t)((uint64_t)value & 0xffffffffu);
                half[1] += value >> 32;
            }
        }
    int64_t sum[2];
    MPI_Request request;
    MPI_Iallreduce(half, sum, 2, MPI_INT64_T, MPI_SUM, mesh->comm, &request);
    wait_all(1, &request);
    return ldexp(ldexp((double)sum[1], 32) + (double)sum[0], -shift);
}
