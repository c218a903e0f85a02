#include "options.h"

#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ZONES = 65536 };

static const char usage[] =
    "Usage: mpiexec -n PROCESSES collapse [OPTION]...\n"
    "\n"
    "Compressible hydrodynamics with self-gravity in a periodic box, on a power-of-two number of processes.\n"
    "\n"
    "  -m, --mesh NXxNYxNZ     zones along each axis (default 64x64x32); the longest side has length 1\n"
    "  -n, --iterations N      time steps to make (default 20)\n"
    "  -d, --dump-every N      write all files after every N-th iteration (default 5; 0: none of these)\n"
    "  -i, --dump-initial      write all files before the first iteration, too\n"
    "  -t, --end-time T        stop at time T, if that comes before N iterations, and write all files\n"
    "  -o, --output DIR        folder for the files (default .), made if it does not exist\n"
    "  -r, --restart FILE      go on from a restart file of the same mesh\n"
    "  -p, --problem NAME      what the box holds at first:\n";

static const char usage_end[] =
    "  -g, --gamma X           ratio of specific heats, greater than 1 (default 5/3; sod 1.4)\n"
    "  -c, --sound-speed X     of the gas in collapse (default 0.1) and jeans (default 0.3)\n"
    "  -G, --no-gravity        leave self-gravity out\n"
    "  -h, --help              print this\n"
    "\n"
    "Files, in each dump: analysis_NNNN.dat, vis_{density,pressure,speed,potential}_NNNN.dat for iteration NNNN,\n"
    "and restart.dat, which is overwritten. Numbers of iterations go on after a restart.\n"
    "\n"
    "Examples:\n"
    "  make a restart file, then run 20 iterations from it with a dump every five:\n"
    "    mpiexec -n 8 collapse --mesh 128x128x64 --iterations 0 --dump-initial --output start\n"
    "    mpiexec -n 8 collapse --mesh 128x128x64 --restart start/restart.dat --output run\n"
    "  Sod's shock tube up to time 0.1:\n"
    "    mpiexec -n 2 collapse --problem sod --mesh 256x4x4 --end-time 0.1 --iterations 1000 --dump-every 0\n";

static void print_help(void)
{
    fputs(usage, stdout);
    for (int p = 0; p < PROBLEMS; p++)
        printf("                            %-9s %s%s\n", problem_traits[p].name, problem_traits[p].about,
               p == PROBLEM_COLLAPSE ? " (default)" : "");
    fputs(usage_end, stdout);
}

static OptionsResult wrong(int talk, const char *format, ...) __attribute__((format(printf, 2, 3)));

static OptionsResult wrong(int talk, const char *format, ...)
{
    if (talk) {
        va_list arguments;
        va_start(arguments, format);
        fputs("collapse: ", stderr);
        vfprintf(stderr, format, arguments);
        fputs(" (see --help)\n", stderr);
        va_end(arguments);
    }
    return OPTIONS_WRONG;
}

static int read_count(const char *text, int least, int most, int *value)
{
    char *end;
    const long number = strtol(text, &end, 10);
    if (end == text || *end != '\0' || number < least || number > most)
        return 0;
    *value = (int)number;
    return 1;
}

static int read_real(const char *text, double above, double *value)
{
    char *end;
    *value = strtod(text, &end);
    return end != text && *end == '\0' && *value > above && isfinite(*value);
}

static int read_mesh(const char *text, int zones[AXES])
{
    for (int axis = 0; axis < AXES; axis++) {
        char *end;
        const long number = strtol(text, &end, 10);
        if (end == text || *end != (axis < AXES - 1 ? 'x' : '\0') || number < 1 || number > MOST_ZONES)
            return 0;
        zones[axis] = (int)number;
        text = end + 1;
    }
    return 1;
}

OptionsResult options_read(int argc, char **argv, int talk, Options *options)
{
    static const struct option known[] = {
        {"mesh", required_argument, NULL, 'm'},       {"iterations", required_argument, NULL, 'n'},
        {"dump-every", required_argument, NULL, 'd'}, {"dump-initial", no_argument, NULL, 'i'},
        {"end-time", required_argument, NULL, 't'},   {"output", required_argument, NULL, 'o'},
        {"restart", required_argument, NULL, 'r'},    {"problem", required_argument, NULL, 'p'},
        {"gamma", required_argument, NULL, 'g'},      {"sound-speed", required_argument, NULL, 'c'},
        {"no-gravity", no_argument, NULL, 'G'},       {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0}};
    *options = (Options){.zones = {64, 64, 32},
                         .iterations = 20,
                         .dump_every = 5,
                         .end_time = INFINITY,
                         .output = ".",
                         .problem = PROBLEM_COLLAPSE};
    const char *initial = NULL; /* an option about the initial state, which a restart file sets */
    int no_gravity = 0;

    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":m:n:d:it:o:r:p:g:c:Gh", known, NULL)) != -1;) {
        switch (option) {
        case 'm':
            if (!read_mesh(optarg, options->zones))
                return wrong(talk, "--mesh %s: must be NXxNYxNZ, each from 1 to %d", optarg, MOST_ZONES);
            break;
        case 'n':
            if (!read_count(optarg, 0, INT_MAX / 2, &options->iterations))
                return wrong(talk, "--iterations %s: must be a number from 0", optarg);
            break;
        case 'd':
            if (!read_count(optarg, 0, INT_MAX / 2, &options->dump_every))
                return wrong(talk, "--dump-every %s: must be a number from 0", optarg);
            break;
        case 'i':
            options->dump_initial = 1;
            break;
        case 't':
            if (!read_real(optarg, 0.0, &options->end_time))
                return wrong(talk, "--end-time %s: must be a number greater than 0", optarg);
            break;
        case 'o':
            options->output = optarg;
            break;
        case 'r':
            options->restart = optarg;
            break;
        case 'p': {
            int p = 0;
            while (p < PROBLEMS && strcmp(optarg, problem_traits[p].name) != 0)
                p++;
            if (p == PROBLEMS)
                return wrong(talk, "--problem %s: there is no such problem", optarg);
            options->problem = (Problem)p;
            initial = "problem";
            break;
        }
        case 'g':
            if (!read_real(optarg, 1.0, &options->gamma))
                return wrong(talk, "--gamma %s: must be a number greater than 1", optarg);
            initial = "gamma";
            break;
        case 'c':
            if (!read_real(optarg, 0.0, &options->sound_speed))
                return wrong(talk, "--sound-speed %s: must be a number greater than 0", optarg);
            initial = "sound-speed";
            break;
        case 'G':
            no_gravity = 1;
            initial = "no-gravity";
            break;
        case 'h':
            if (talk)
                print_help();
            return OPTIONS_HELP;
        case ':':
            return wrong(talk, "%s: needs a value", argv[optind - 1]);
        default:
            return wrong(talk, "%s: there is no such option", argv[optind - 1]);
        }
    }
    if (optind < argc)
        return wrong(talk, "%s: not an option", argv[optind]);
    if (options->restart != NULL && initial != NULL)
        return wrong(talk, "--%s cannot be given with --restart: the restart file sets it", initial);

    const ProblemTraits *traits = &problem_traits[options->problem];
    if (options->sound_speed != 0.0 && traits->sound_speed == 0.0)
        return wrong(talk, "--sound-speed: the problem %s has none to set", traits->name);
    if (options->gamma == 0.0)
        options->gamma = traits->gamma;
    if (options->sound_speed == 0.0)
        options->sound_speed = traits->sound_speed;
    options->gravity = no_gravity ? 0.0 : traits->gravity;
    return OPTIONS_RUN;
}
