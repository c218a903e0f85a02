#include "ppm.h"

#include "fail.h"
#include "riemann.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * Pencils of zones along the sweep are taken LANES at a time, interleaved: zone m of lane l is at m * LANES + l. So every
 * loop runs over contiguous memory, with neighbours LANES apart, and vectorises whatever the axis; and all work arrays
 * of a bundle stay in the second-level cache.
 */
enum { LANES = 8 };

struct Ppm {
    double *memory;
    double *conserved[CONSERVED]; /* in the order of PRIMITIVE: normal momentum first */
    double *zone[PRIMITIVE];      /* averages */
    double *low[PRIMITIVE];       /* the parabola at the zone's lower face */
    double *high[PRIMITIVE];      /* and at its upper face */
    double *left[PRIMITIVE];      /* at each zone's lower face: the state on its left */
    double *right[PRIMITIVE];     /* and on its right, averaged over the step */
    double *flux[PRIMITIVE];
    double *slope;
    double *shock;
    double *flatten;
};

Ppm *ppm_create(const Mesh *mesh)
{
    int longest = 0;
    for (int axis = 0; axis < AXES; axis++)
        longest = mesh->count[axis] > longest ? mesh->count[axis] : longest;
    const size_t size = (size_t)(longest + 2 * GAS_GHOST) * LANES;

    Ppm *ppm = allocate(1, sizeof *ppm);
    double **const sets[] = {ppm->conserved, ppm->zone, ppm->low, ppm->high, ppm->left, ppm->right, ppm->flux};
    const size_t set_count = sizeof sets / sizeof sets[0];
    ppm->memory = allocate(size * (set_count * PRIMITIVE + 3), sizeof(double));
    double *next = ppm->memory;
    for (size_t s = 0; s < set_count; s++)
        for (int q = 0; q < PRIMITIVE; q++, next += size)
            sets[s][q] = next;
    ppm->slope = next;
    ppm->shock = next + size;
    ppm->flatten = next + 2 * size;
    return ppm;
}

void ppm_free(Ppm *ppm)
{
    free(ppm->memory);
    free(ppm);
}

/* Where a bundle of pencils lies in the gas's arrays. */
typedef struct {
    ptrdiff_t index;       /* first own zone of the first pencil */
    ptrdiff_t zone_stride; /* along the sweep */
    ptrdiff_t lane_stride; /* from pencil to pencil */
    int zones, lanes;
} Bundle;

static void sweep_bundle(Ppm *ppm, Gas *gas, const Bundle *bundle, double *const field[CONSERVED], double dt);

void ppm_sweep(Ppm *ppm, Gas *gas, int axis, double dt)
{
    halo_exchange(gas->halo[axis], gas->conserved, CONSERVED);

    const int next = (axis + 1) % AXES, last = (axis + 2) % AXES;
    double *const field[CONSERVED] = {gas->conserved[DENSITY], gas->conserved[MOMENTUM_X + axis],
                                      gas->conserved[MOMENTUM_X + next], gas->conserved[MOMENTUM_X + last],
                                      gas->conserved[ENERGY]};
    /* Neighbouring pencils are neighbours in x where the sweep is not along x itself. */
    const int lane_axis = axis == 0 ? 1 : 0;
    const int outer_axis = AXES - axis - lane_axis;
    const int *count = gas->mesh->count;
    const ptrdiff_t *stride = gas->storage.stride;
    for (int outer = 0; outer < count[outer_axis]; outer++)
        for (int lane = 0; lane < count[lane_axis]; lane += LANES) {
            const int lanes = count[lane_axis] - lane;
            const Bundle bundle = {
                .index = storage_index(&gas->storage, 0, 0, 0) + outer * stride[outer_axis] + lane * stride[lane_axis],
                .zone_stride = stride[axis],
                .lane_stride = stride[lane_axis],
                .zones = count[axis],
                .lanes = lanes < LANES ? lanes : LANES};
            sweep_bundle(ppm, gas, &bundle, field, dt);
        }
}

static void load(const Bundle *bundle, const double *restrict field, double *restrict work);
static void store(const Bundle *bundle, const double *restrict work, double *restrict field);
static void find_primitives(Ppm *ppm, size_t count, double gamma);
static void find_flattening(Ppm *ppm, size_t begin, size_t end);
static void interpolate(Ppm *ppm, int q, size_t begin, size_t end);
static void trace(Ppm *ppm, size_t begin, size_t end, double gamma, double dt_over_width);
static void add_fluxes(Ppm *ppm, size_t begin, size_t end, double dt_over_width);

static void sweep_bundle(Ppm *ppm, Gas *gas, const Bundle *bundle, double *const field[CONSERVED], double dt)
{
    const double dt_over_width = dt / gas->zone_width;
    const size_t own_begin = GAS_GHOST * LANES;
    const size_t own_end = own_begin + (size_t)bundle->zones * LANES;

    for (int q = 0; q < CONSERVED; q++)
        load(bundle, field[q], ppm->conserved[q]);
    find_primitives(ppm, own_end + GAS_GHOST * LANES, gas->gamma);

    /* One zone beyond the own ones on each side, for the outermost interfaces. */
    find_flattening(ppm, own_begin - LANES, own_end + LANES);
    for (int q = 0; q < PRIMITIVE; q++)
        interpolate(ppm, q, own_begin - LANES, own_end + LANES);
    trace(ppm, own_begin - LANES, own_end + LANES, gas->gamma, dt_over_width);

    double *left[PRIMITIVE], *right[PRIMITIVE], *flux[PRIMITIVE];
    for (int q = 0; q < PRIMITIVE; q++) {
        left[q] = ppm->left[q] + own_begin;
        right[q] = ppm->right[q] + own_begin;
        flux[q] = ppm->flux[q] + own_begin;
    }
    riemann_flux(own_end + LANES - own_begin, gas->gamma, left, right, flux);
    add_fluxes(ppm, own_begin, own_end, dt_over_width);

    for (int q = 0; q < CONSERVED; q++)
        store(bundle, ppm->conserved[q], field[q]);
}

/* Lanes without a pencil of their own repeat the last one: valid states, whose results are not stored. */
static void load(const Bundle *bundle, const double *restrict field, double *restrict work)
{
    const ptrdiff_t zone_stride = bundle->zone_stride;
    const double *first = field + bundle->index - GAS_GHOST * zone_stride;
    const int zones = bundle->zones + 2 * GAS_GHOST;
    if (bundle->lane_stride == 1 && bundle->lanes == LANES) {
        for (int m = 0; m < zones; m++)
            memcpy(work + m * LANES, first + m * zone_stride, LANES * sizeof(double));
        return;
    }
    for (int l = 0; l < LANES; l++) {
        const double *pencil = first + (l < bundle->lanes ? l : bundle->lanes - 1) * bundle->lane_stride;
        for (int m = 0; m < zones; m++)
            work[m * LANES + l] = pencil[m * zone_stride];
    }
}

static void store(const Bundle *bundle, const double *restrict work, double *restrict field)
{
    work += GAS_GHOST * LANES;
    if (bundle->lane_stride == 1 && bundle->lanes == LANES) {
        double *first = field + bundle->index;
        for (int m = 0; m < bundle->zones; m++)
            memcpy(first + m * bundle->zone_stride, work + m * LANES, LANES * sizeof(double));
        return;
    }
    for (int l = 0; l < bundle->lanes; l++) {
        double *pencil = field + bundle->index + l * bundle->lane_stride;
        for (int m = 0; m < bundle->zones; m++)
            pencil[m * bundle->zone_stride] = work[m * LANES + l];
    }
}

static void find_primitives(Ppm *ppm, size_t count, double gamma)
{
    const double *restrict density = ppm->conserved[RHO];
    const double *restrict normal = ppm->conserved[NORMAL];
    const double *restrict tangent_1 = ppm->conserved[TANGENT_1];
    const double *restrict tangent_2 = ppm->conserved[TANGENT_2];
    const double *restrict energy = ppm->conserved[PRESSURE];
    double *restrict rho = ppm->zone[RHO];
    double *restrict u = ppm->zone[NORMAL];
    double *restrict v = ppm->zone[TANGENT_1];
    double *restrict w = ppm->zone[TANGENT_2];
    double *restrict p = ppm->zone[PRESSURE];
#pragma omp simd
    for (size_t i = 0; i < count; i++) {
        const double inverse = 1.0 / density[i];
        rho[i] = density[i];
        u[i] = normal[i] * inverse;
        v[i] = tangent_1[i] * inverse;
        w[i] = tangent_2[i] * inverse;
        const double kinetic = 0.5 * (normal[i] * u[i] + tangent_1[i] * v[i] + tangent_2[i] * w[i]);
        const double pressure = (gamma - 1.0) * (energy[i] - kinetic);
        p[i] = pressure > PRESSURE_FLOOR ? pressure : PRESSURE_FLOOR;
    }
}

/*
 * How far, from 0 to 1, to replace each zone's parabola by its average: in shocks too steep for the scheme (section 4
 * and appendix, equations A.1 and A.2). The greatest of a zone and its neighbours is taken, for symmetry.
 */
static void find_flattening(Ppm *ppm, size_t begin, size_t end)
{
    const double strong = 0.33, steep = 0.75, sharpness = 10.0; /* epsilon, omega(1), omega(2) of the paper */
    const double *restrict p = ppm->zone[PRESSURE];
    const double *restrict u = ppm->zone[NORMAL];
    double *restrict shock = ppm->shock;
    double *restrict flatten = ppm->flatten;
#pragma omp simd
    for (size_t i = begin - LANES; i < end + LANES; i++) {
        const double jump = p[i + LANES] - p[i - LANES];
        const double wide_jump = p[i + 2 * LANES] - p[i - 2 * LANES];
        const double lowest = p[i + LANES] < p[i - LANES] ? p[i + LANES] : p[i - LANES];
        const double safe_jump = fabs(wide_jump) > 1e-30 ? wide_jump : 1e-30;
        const double steepness = sharpness * (jump / safe_jump - steep);
        const double limited = steepness < 0.0 ? 0.0 : (steepness > 1.0 ? 1.0 : steepness);
        const double if_strong = fabs(jump) > strong * lowest ? limited : 0.0;
        shock[i] = u[i - LANES] > u[i + LANES] ? if_strong : 0.0;
    }
#pragma omp simd
    for (size_t i = begin; i < end; i++) {
        const double beside = shock[i - LANES] > shock[i + LANES] ? shock[i - LANES] : shock[i + LANES];
        flatten[i] = shock[i] > beside ? shock[i] : beside;
    }
}

/* Parabolas through zone averages, monotonised: section 1, equations 1.6 to 1.10, and 4.1 for the flattening. */
static void interpolate(Ppm *ppm, int q, size_t begin, size_t end)
{
    const double *restrict a = ppm->zone[q];
    const double *restrict flatten = ppm->flatten;
    double *restrict slope = ppm->slope;
    double *restrict low = ppm->low[q];
    double *restrict high = ppm->high[q];
#pragma omp simd
    for (size_t i = begin - LANES; i < end + LANES; i++) {
        const double below = a[i] - a[i - LANES], above = a[i + LANES] - a[i];
        const double central = 0.5 * (below + above);
        const double smaller = fabs(below) < fabs(above) ? fabs(below) : fabs(above);
        const double size = fabs(central) < 2.0 * smaller ? fabs(central) : 2.0 * smaller;
        slope[i] = below * above > 0.0 ? copysign(size, central) : 0.0;
    }
#pragma omp simd
    for (size_t i = begin; i < end; i++) {
        const double at_low = 0.5 * (a[i - LANES] + a[i]) - (slope[i] - slope[i - LANES]) * (1.0 / 6.0);
        const double at_high = 0.5 * (a[i] + a[i + LANES]) - (slope[i + LANES] - slope[i]) * (1.0 / 6.0);
        const double lower = at_low + flatten[i] * (a[i] - at_low);
        const double upper = at_high + flatten[i] * (a[i] - at_high);
        const double rise = upper - lower;
        const double bend = rise * (6.0 * a[i] - 3.0 * (lower + upper));
        const int extremum = (upper - a[i]) * (a[i] - lower) <= 0.0;
        const double steep_low = bend > rise * rise ? 3.0 * a[i] - 2.0 * upper : lower;
        const double steep_high = bend < -(rise * rise) ? 3.0 * a[i] - 2.0 * lower : upper;
        low[i] = extremum ? a[i] : steep_low;
        high[i] = extremum ? a[i] : steep_high;
    }
}

/* Average of a zone's parabola over the fraction `part` of it next to its upper face, and to its lower face. */
static inline double average_high(double low, double high, double a, double part)
{
    const double rise = high - low, six = 6.0 * a - 3.0 * (low + high);
    return high - 0.5 * part * (rise - (1.0 - (2.0 / 3.0) * part) * six);
}

static inline double average_low(double low, double high, double a, double part)
{
    const double rise = high - low, six = 6.0 * a - 3.0 * (low + high);
    return low + 0.5 * part * (rise + (1.0 - (2.0 / 3.0) * part) * six);
}

/*
 * Time-averaged states at both faces of each zone: each characteristic brings the average over its domain of
 * dependence (section 3, equations 3.5 to 3.7). Waves that leave the face are referred to the fastest one.
 */
static void trace(Ppm *ppm, size_t begin, size_t end, double gamma, double dt_over_width)
{
    const double *restrict rho = ppm->zone[RHO], *restrict rho_low = ppm->low[RHO], *restrict rho_high = ppm->high[RHO];
    const double *restrict u = ppm->zone[NORMAL], *restrict u_low = ppm->low[NORMAL],
                 *restrict u_high = ppm->high[NORMAL];
    const double *restrict p = ppm->zone[PRESSURE], *restrict p_low = ppm->low[PRESSURE],
                 *restrict p_high = ppm->high[PRESSURE];
    double *restrict left_rho = ppm->left[RHO] + LANES, *restrict right_rho = ppm->right[RHO];
    double *restrict left_u = ppm->left[NORMAL] + LANES, *restrict right_u = ppm->right[NORMAL];
    double *restrict left_p = ppm->left[PRESSURE] + LANES, *restrict right_p = ppm->right[PRESSURE];

#pragma omp simd
    for (size_t i = begin; i < end; i++) {
        const double sound = sqrt(gamma * p[i] / rho[i]);
        const double impedance = rho[i] * sound;
        const double half_inverse_square = 0.5 / (sound * sound);
        const double slow = (u[i] - sound) * dt_over_width;
        const double middle = u[i] * dt_over_width;
        const double fast = (u[i] + sound) * dt_over_width;
        {
            const double s_fast = fast > 0.0 ? fast : 0.0;
            const double s_middle = middle > 0.0 ? middle : 0.0;
            const double s_slow = slow > 0.0 ? slow : 0.0;
            const double rho_ref = average_high(rho_low[i], rho_high[i], rho[i], s_fast);
            const double u_ref = average_high(u_low[i], u_high[i], u[i], s_fast);
            const double p_ref = average_high(p_low[i], p_high[i], p[i], s_fast);
            const double d_rho = rho_ref - average_high(rho_low[i], rho_high[i], rho[i], s_middle);
            const double d_p_middle = p_ref - average_high(p_low[i], p_high[i], p[i], s_middle);
            const double d_u = u_ref - average_high(u_low[i], u_high[i], u[i], s_slow);
            const double d_p_slow = p_ref - average_high(p_low[i], p_high[i], p[i], s_slow);
            const double entropy = middle > 0.0 ? d_rho - 2.0 * d_p_middle * half_inverse_square : 0.0;
            const double sonic = slow > 0.0 ? (d_p_slow - impedance * d_u) * half_inverse_square : 0.0;
            const double new_rho = rho_ref - entropy - sonic;
            const double new_u = u_ref + sonic * sound / rho[i];
            const double new_p = p_ref - sonic * sound * sound;
            const int valid = (new_rho > 0.0) & (new_p > 0.0);
            left_rho[i] = valid ? new_rho : rho[i];
            left_u[i] = valid ? new_u : u[i];
            left_p[i] = valid ? new_p : p[i];
        }
        {
            const double s_fast = fast < 0.0 ? -fast : 0.0;
            const double s_middle = middle < 0.0 ? -middle : 0.0;
            const double s_slow = slow < 0.0 ? -slow : 0.0;
            const double rho_ref = average_low(rho_low[i], rho_high[i], rho[i], s_slow);
            const double u_ref = average_low(u_low[i], u_high[i], u[i], s_slow);
            const double p_ref = average_low(p_low[i], p_high[i], p[i], s_slow);
            const double d_rho = rho_ref - average_low(rho_low[i], rho_high[i], rho[i], s_middle);
            const double d_p_middle = p_ref - average_low(p_low[i], p_high[i], p[i], s_middle);
            const double d_u = u_ref - average_low(u_low[i], u_high[i], u[i], s_fast);
            const double d_p_fast = p_ref - average_low(p_low[i], p_high[i], p[i], s_fast);
            const double entropy = middle < 0.0 ? d_rho - 2.0 * d_p_middle * half_inverse_square : 0.0;
            const double sonic = fast < 0.0 ? (d_p_fast + impedance * d_u) * half_inverse_square : 0.0;
            const double new_rho = rho_ref - entropy - sonic;
            const double new_u = u_ref - sonic * sound / rho[i];
            const double new_p = p_ref - sonic * sound * sound;
            const int valid = (new_rho > 0.0) & (new_p > 0.0);
            right_rho[i] = valid ? new_rho : rho[i];
            right_u[i] = valid ? new_u : u[i];
            right_p[i] = valid ? new_p : p[i];
        }
    }

    /* Tangential velocities go with the gas. */
    for (int q = TANGENT_1; q <= TANGENT_2; q++) {
        const double *restrict a = ppm->zone[q], *restrict low = ppm->low[q], *restrict high = ppm->high[q];
        double *restrict left = ppm->left[q] + LANES, *restrict right = ppm->right[q];
#pragma omp simd
        for (size_t i = begin; i < end; i++) {
            const double shift = u[i] * dt_over_width;
            left[i] = average_high(low[i], high[i], a[i], shift > 0.0 ? shift : 0.0);
            right[i] = average_low(low[i], high[i], a[i], shift < 0.0 ? -shift : 0.0);
        }
    }
}

static void add_fluxes(Ppm *ppm, size_t begin, size_t end, double dt_over_width)
{
    for (int q = 0; q < CONSERVED; q++) {
        const double *restrict flux = ppm->flux[q];
        double *restrict conserved = ppm->conserved[q];
#pragma omp simd
        for (size_t i = begin; i < end; i++)
            conserved[i] -= dt_over_width * (flux[i + LANES] - flux[i]);
    }
}
