#include "problem.h"

#include <math.h>

static const double PI = 3.14159265358979323846;

const ProblemTraits problem_traits[PROBLEMS] = {
    [PROBLEM_COLLAPSE] = {"collapse", 5.0 / 3.0, 1.0, 0.1, "a perturbed cloud that falls together under its own gravity"},
    [PROBLEM_SOD] = {"sod", 1.4, 0.0, 0.0, "Sod's shock tube, and its mirror image, at 3/4 and 1/4 of the longest axis"},
    [PROBLEM_JEANS] = {"jeans", 5.0 / 3.0, 1.0, 0.3, "a plane wave of 0.1 % along the longest axis, in uniform gas of density 1"},
    [PROBLEM_ENTROPY] = {"entropy", 5.0 / 3.0, 0.0, 0.0, "a smooth density wave, carried along the longest axis at speed 1"},
};

typedef struct {
    double density, pressure, velocity[AXES];
} State;

typedef struct {
    const Gas *gas;
    double gravity, sound_speed;
    int axis;         /* the mesh's longest */
    double box[AXES]; /* lengths of its sides */
} Setting;

static State cloud(const Setting *setting, const double position[AXES]);
static State shock_tube(const Setting *setting, const double position[AXES]);
static State plane_wave(const Setting *setting, const double position[AXES]);
static State entropy_wave(const Setting *setting, const double position[AXES]);

void problem_fill(Problem problem, Gas *gas, double gravity, double sound_speed)
{
    static State (*const state_at[PROBLEMS])(const Setting *, const double[AXES]) = {
        [PROBLEM_COLLAPSE] = cloud, [PROBLEM_SOD] = shock_tube, [PROBLEM_JEANS] = plane_wave,
        [PROBLEM_ENTROPY] = entropy_wave};
    const Mesh *mesh = gas->mesh;
    Setting setting = {.gas = gas, .gravity = gravity, .sound_speed = sound_speed, .axis = 0};
    for (int axis = 0; axis < AXES; axis++) {
        setting.box[axis] = mesh->zones[axis] * gas->zone_width;
        if (mesh->zones[axis] > mesh->zones[setting.axis])
            setting.axis = axis;
    }
    for (int k = 0; k < mesh->count[2]; k++)
        for (int j = 0; j < mesh->count[1]; j++)
            for (int i = 0; i < mesh->count[0]; i++) {
                const double position[AXES] = {(mesh->start[0] + i + 0.5) * gas->zone_width,
                                               (mesh->start[1] + j + 0.5) * gas->zone_width,
                                               (mesh->start[2] + k + 0.5) * gas->zone_width};
                const State state = state_at[problem](&setting, position);
                const ptrdiff_t z = storage_index(&gas->storage, i, j, k);
                double squared = 0.0;
                for (int axis = 0; axis < AXES; axis++) {
                    gas->conserved[MOMENTUM_X + axis][z] = state.density * state.velocity[axis];
                    squared += state.velocity[axis] * state.velocity[axis];
                }
                gas->conserved[DENSITY][z] = state.density;
                gas->conserved[ENERGY][z] = state.pressure / (gas->gamma - 1.0) + 0.5 * state.density * squared;
            }
}

/*
 * A cloud of density 1 in thin gas of the same pressure, both at rest. Its diameter, 0.7 of the shortest side, is two
 * Jeans lengths, sound speed * sqrt(pi / G), at the default sound speed (given for a side of 1/2; it scales with the
 * side, so that meshes of any shape behave alike). Waves of 10 % break the symmetry.
 */
static State cloud(const Setting *setting, const double position[AXES])
{
    const double thin = 0.05;
    const double side = fmin(setting->box[0], fmin(setting->box[1], setting->box[2]));
    const double radius = 0.35 * side, edge = 0.03 * side;
    double squared = 0.0, angle[AXES];
    for (int axis = 0; axis < AXES; axis++) {
        const double offset = position[axis] - 0.5 * setting->box[axis];
        squared += offset * offset;
        angle[axis] = 2.0 * PI * offset / side;
    }
    const double inside = 1.0 / (1.0 + exp((sqrt(squared) - radius) / edge));
    const double wave = sin(2.0 * angle[0] + 0.3) * cos(angle[1] - 1.1) + cos(3.0 * angle[1] + 0.7) * sin(angle[2] + 2.1) +
                        sin(2.0 * angle[2] - 0.5) * cos(2.0 * angle[0] + 1.9);
    const double sound = setting->sound_speed * side / 0.5;
    return (State){.density = thin + (1.0 - thin) * inside * (1.0 + 0.1 * wave),
                   .pressure = sound * sound / setting->gas->gamma};
}

/* Sod (1978), made periodic by its mirror image. */
static State shock_tube(const Setting *setting, const double position[AXES])
{
    const double x = position[setting->axis] / setting->box[setting->axis];
    const int dense = x >= 0.25 && x < 0.75;
    return (State){.density = dense ? 1.0 : 0.125, .pressure = dense ? 1.0 : 0.1};
}

/*
 * Jeans (1902): a wave of one wavelength in the box obeys omega^2 = k^2 c^2 - 4 pi G rho. Where that is negative this is
 * the growing mode alone, otherwise a standing wave at its greatest amplitude.
 */
static State plane_wave(const Setting *setting, const double position[AXES])
{
    const double amplitude = 1e-3, gamma = setting->gas->gamma;
    const double k = 2.0 * PI / setting->box[setting->axis];
    const double sound = setting->sound_speed;
    const double omega_squared = k * k * sound * sound - 4.0 * PI * setting->gravity;
    const double growth = omega_squared < 0.0 ? sqrt(-omega_squared) : 0.0;
    const double phase = k * position[setting->axis];
    State state = {.density = 1.0 + amplitude * cos(phase),
                   .pressure = sound * sound / gamma * (1.0 + gamma * amplitude * cos(phase))};
    state.velocity[setting->axis] = -growth / k * amplitude * sin(phase);
    return state;
}

static State entropy_wave(const Setting *setting, const double position[AXES])
{
    State state = {.density = 1.0 + 0.2 * sin(2.0 * PI * position[setting->axis] / setting->box[setting->axis]),
                   .pressure = 1.0};
    state.velocity[setting->axis] = 1.0;
    return state;
}
