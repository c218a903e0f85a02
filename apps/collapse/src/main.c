/*
 * Collapse of a self-gravitating cloud in a periodic box: the production application of Thakur, Gropp & Lusk, "An
 * experimental evaluation of the parallel I/O systems of the IBM SP and Intel Paragon using a production application"
 * (1996), in miniature. See README.md.
 */
#include "fail.h"
#include "gas.h"
#include "gravity.h"
#include "mesh.h"
#include "options.h"
#include "output.h"
#include "ppm.h"
#include "problem.h"
#include "reduce.h"
#include "wait.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Fraction of a zone that the fastest signal may cross in one step. */
static const double COURANT_NUMBER = 0.6;
/* Greatest growth of the step from one iteration to the next. */
static const double STEP_GROWTH = 1.25;

typedef struct {
    Mesh mesh;
    Gas gas;
    Gravity gravity;
    Ppm *ppm;
    Output *output;
    double time, dt; /* dt: of the last step; 0 before the first */
    int iteration;
    int cycles; /* V-cycles of the last solution for the potential */
} Simulation;

static int prepare(Simulation *simulation, const Options *options);
static void run(Simulation *simulation, const Options *options);
static void summarise(const Simulation *simulation, double begin);
static void finish(Simulation *simulation);

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const double begin = MPI_Wtime();
    wait_prepare();
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    Options options;
    const OptionsResult result = options_read(argc, argv, rank == 0, &options);
    int code = result == OPTIONS_WRONG ? 2 : 0;
    if (result == OPTIONS_RUN) {
        Simulation simulation = {0};
        if (prepare(&simulation, &options)) {
            run(&simulation, &options);
            summarise(&simulation, begin);
            finish(&simulation);
        } else {
            code = 2;
        }
    }
    MPI_Finalize();
    return code;
}

/* Returns 0, having said why, if the processes cannot divide the mesh. */
static int prepare(Simulation *simulation, const Options *options)
{
    Simulation *s = simulation;
    const int *zones = options->zones;
    int size, rank, processes[AXES];
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!mesh_process_grid(zones, size, processes)) {
        if (rank == 0)
            fprintf(stderr,
                    "collapse: %d processes cannot divide a mesh of %dx%dx%d: their number must be a power of two, and "
                    "not exceed the zones\n",
                    size, zones[0], zones[1], zones[2]);
        return 0;
    }
    const double longest = fmax(zones[0], fmax(zones[1], zones[2]));
    const double zone_width = 1.0 / longest;
    s->mesh = mesh_create(MPI_COMM_WORLD, zones, processes);
    s->gas = gas_create(&s->mesh, zone_width, options->gamma);
    s->gravity = gravity_create(&s->mesh, zone_width, options->gravity);
    s->ppm = ppm_create(&s->mesh);
    s->output = output_create(&s->mesh, options->output);

    if (options->restart != NULL) {
        const Header header =
            output_restart(s->output, options->restart, &s->gas, multigrid_potential(s->gravity.multigrid),
                           multigrid_storage(s->gravity.multigrid));
        s->time = header.time;
        s->dt = header.dt;
        s->iteration = (int)header.iteration;
        s->gravity.constant = header.gravity;
    } else {
        problem_fill(options->problem, &s->gas, options->gravity, options->sound_speed);
    }
    s->cycles = gravity_solve(&s->gravity, &s->gas);
    return 1;
}

static double next_step(const Simulation *simulation, double end_time);
static void advance(Simulation *simulation);
static void dump(Simulation *simulation);

static void run(Simulation *simulation, const Options *options)
{
    if (options->dump_initial)
        dump(simulation);
    const int last = simulation->iteration + options->iterations;
    while (simulation->iteration < last && simulation->time < options->end_time) {
        simulation->dt = next_step(simulation, options->end_time);
        advance(simulation);
        /* The last step was cut to end there; its sum may round to just under. */
        const int ended = simulation->time >= options->end_time * (1.0 - 1e-12);
        if (ended)
            simulation->time = options->end_time;
        const int due = options->dump_every > 0 && simulation->iteration % options->dump_every == 0;
        if (due || ended)
            dump(simulation);
    }
}

static double next_step(const Simulation *simulation, double end_time)
{
    const double rate = reduce_max(&simulation->mesh, fmax(gas_signal_rate(&simulation->gas),
                                                           gravity_rate(&simulation->gravity, &simulation->gas)));
    double dt = COURANT_NUMBER / rate;
    if (simulation->dt > 0.0 && dt > STEP_GROWTH * simulation->dt)
        dt = STEP_GROWTH * simulation->dt;
    const double left = end_time - simulation->time;
    return dt < left ? dt : left;
}

/* One time step: sweeps in one order and its reverse on alternate steps (Strang 1968), between half kicks. */
static void advance(Simulation *simulation)
{
    Simulation *s = simulation;
    gravity_kick(&s->gravity, &s->gas, 0.5 * s->dt);
    const int forward = s->iteration % 2 == 0;
    for (int n = 0; n < AXES; n++)
        ppm_sweep(s->ppm, &s->gas, forward ? n : AXES - 1 - n, s->dt);
    s->cycles = gravity_solve(&s->gravity, &s->gas);
    gravity_kick(&s->gravity, &s->gas, 0.5 * s->dt);
    s->time += s->dt;
    s->iteration++;
}

static void dump(Simulation *simulation)
{
    const Simulation *s = simulation;
    const Header header = {.time = s->time,
                           .dt = s->dt,
                           .iteration = s->iteration,
                           .gamma = s->gas.gamma,
                           .gravity = s->gravity.constant,
                           .zone_width = s->gas.zone_width};
    output_dump(s->output, &header, &s->gas, multigrid_potential(s->gravity.multigrid),
                multigrid_storage(s->gravity.multigrid));
    if (s->mesh.rank == 0) {
        printf("dump: iteration %d, time %.6g, step %.4g, V-cycles %d, I/O so far %.3f s\n", s->iteration, s->time, s->dt,
               s->cycles, output_seconds(s->output));
        fflush(stdout);
    }
}

/* Energy of a zone of the gas in its own potential, gas energy included. */
static void find_total_energy(const Simulation *simulation, double *energy)
{
    const Gas *gas = &simulation->gas;
    const double *potential = multigrid_potential(simulation->gravity.multigrid);
    const Storage *at = multigrid_storage(simulation->gravity.multigrid);
    const int *count = simulation->mesh.count;
    for (int k = 0; k < count[2]; k++)
        for (int j = 0; j < count[1]; j++)
            for (int i = 0; i < count[0]; i++) {
                const ptrdiff_t z = storage_index(&gas->storage, i, j, k);
                energy[z] = gas->conserved[ENERGY][z] +
                            0.5 * gas->conserved[DENSITY][z] * potential[storage_index(at, i, j, k)];
            }
}

static void summarise(const Simulation *simulation, double begin)
{
    const Simulation *s = simulation;
    double *energy = allocate(s->gas.storage.total, sizeof(double));
    find_total_energy(s, energy);
    const double volume = s->gas.zone_width * s->gas.zone_width * s->gas.zone_width;
    const double mass = reduce_sum(&s->mesh, &s->gas.storage, s->gas.conserved[DENSITY]) * volume;
    const double total_energy = reduce_sum(&s->mesh, &s->gas.storage, energy) * volume;
    free(energy);
    const double io_seconds = reduce_max(&s->mesh, output_seconds(s->output));
    const double seconds = reduce_max(&s->mesh, MPI_Wtime() - begin);
    if (s->mesh.rank == 0)
        printf("end: iteration %d, time %.9g, mass %.17g, energy %.17g, wall time %.3f s, I/O time %.3f s\n", s->iteration,
               s->time, mass, total_energy, seconds, io_seconds);
}

static void finish(Simulation *simulation)
{
    output_free(simulation->output);
    ppm_free(simulation->ppm);
    gravity_free(&simulation->gravity);
    gas_free(&simulation->gas);
    mesh_free(&simulation->mesh);
}
