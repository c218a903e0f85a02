#include "output.h"

#include "fail.h"
#include "reduce.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { HEADER_VALUES = 6, HEADER_BYTES = HEADER_VALUES * 4, ARRAYS = CONSERVED + 1, PATH_SIZE = 4096 };

struct Output {
    const Mesh *mesh;
    char folder[PATH_SIZE];
    size_t own_zones;
    MPI_Offset all_zones;
    MPI_Datatype single_block; /* this process's zones of an array of MPI_FLOAT in the file */
    MPI_Datatype byte_block;   /* and of MPI_UNSIGNED_CHAR */
    float *single;
    unsigned char *byte;
    double *value;
    double seconds;
};

/* A file being written or read, and what to call it in errors. */
typedef struct {
    MPI_File handle;
    char path[PATH_SIZE];
} File;

Output *output_create(const Mesh *mesh, const char *folder)
{
    Output *output = allocate(1, sizeof *output);
    output->mesh = mesh;
    if (snprintf(output->folder, PATH_SIZE, "%s", folder) >= PATH_SIZE - 64)
        fail("the output folder's name is too long");
    output->own_zones = (size_t)mesh->count[0] * (size_t)mesh->count[1] * (size_t)mesh->count[2];
    output->all_zones = (MPI_Offset)mesh->zones[0] * mesh->zones[1] * mesh->zones[2];
    MPI_Type_create_subarray(AXES, mesh->zones, mesh->count, mesh->start, MPI_ORDER_FORTRAN, MPI_FLOAT,
                             &output->single_block);
    MPI_Type_create_subarray(AXES, mesh->zones, mesh->count, mesh->start, MPI_ORDER_FORTRAN, MPI_UNSIGNED_CHAR,
                             &output->byte_block);
    MPI_Type_commit(&output->single_block);
    MPI_Type_commit(&output->byte_block);
    output->single = allocate(output->own_zones, sizeof(float));
    output->byte = allocate(4 * output->own_zones, 1);
    output->value = allocate(output->own_zones, sizeof(double));
    if (mesh->rank == 0 && mkdir(folder, 0777) != 0 && errno != EEXIST)
        fail("cannot make the folder %s: %s", folder, strerror(errno));
    MPI_Barrier(mesh->comm);
    return output;
}

void output_free(Output *output)
{
    MPI_Type_free(&output->single_block);
    MPI_Type_free(&output->byte_block);
    free(output->single);
    free(output->byte);
    free(output->value);
    free(output);
}

double output_seconds(const Output *output)
{
    return output->seconds;
}

static void write_arrays(Output *output, const char *path, const Header *header, const Gas *gas,
                         const double *potential, const Storage *potential_storage);
static void write_pictures(Output *output, const Header *header, const Gas *gas, const double *potential,
                           const Storage *potential_storage);

void output_dump(Output *output, const Header *header, const Gas *gas, const double *potential,
                 const Storage *potential_storage)
{
    char path[PATH_SIZE];
    const double begin = MPI_Wtime();
    snprintf(path, PATH_SIZE, "%.4000s/analysis_%04d.dat", output->folder, (int)header->iteration);
    write_arrays(output, path, header, gas, potential, potential_storage);
    write_pictures(output, header, gas, potential, potential_storage);
    snprintf(path, PATH_SIZE, "%.4000s/restart.dat", output->folder);
    write_arrays(output, path, header, gas, potential, potential_storage);
    output->seconds += MPI_Wtime() - begin;
}

/* ---- MPI-IO, every call checked ---- */

static void check(const File *file, const char *operation, int code)
{
    if (code == MPI_SUCCESS)
        return;
    char reason[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Error_string(code, reason, &length);
    for (char *c = reason; *c != '\0'; c++)
        if (*c == '\n')
            *c = ' ';
    fail("%s: %s: %s", file->path, operation, reason);
}

static void open_to_write(const Output *output, File *file, const char *path, MPI_Offset size)
{
    snprintf(file->path, PATH_SIZE, "%s", path);
    check(file, "MPI_File_open", MPI_File_open(output->mesh->comm, path, MPI_MODE_CREATE | MPI_MODE_WRONLY,
                                               MPI_INFO_NULL, &file->handle));
    /* A longer file of an earlier run would keep its end. */
    check(file, "MPI_File_set_size", MPI_File_set_size(file->handle, size));
}

/* By one process alone, in one operation. */
static void write_header(const Output *output, const File *file, const Header *header)
{
    if (output->mesh->rank != 0)
        return;
    const float value[HEADER_VALUES] = {(float)header->time,  (float)header->dt,      (float)header->iteration,
                                        (float)header->gamma, (float)header->gravity, (float)header->zone_width};
    check(file, "MPI_File_write_at",
          MPI_File_write_at(file->handle, 0, value, HEADER_VALUES, MPI_FLOAT, MPI_STATUS_IGNORE));
}

/* Array number `number` of the file, from all processes together. */
static void write_array(const Output *output, const File *file, int number, const void *data, MPI_Datatype element,
                        MPI_Datatype block)
{
    int size;
    MPI_Type_size(element, &size);
    const MPI_Offset offset = HEADER_BYTES + number * output->all_zones * size;
    check(file, "MPI_File_set_view",
          MPI_File_set_view(file->handle, offset, element, block, "native", MPI_INFO_NULL));
    check(file, "MPI_File_write_all",
          MPI_File_write_all(file->handle, data, (int)output->own_zones, element, MPI_STATUS_IGNORE));
}

static void read_array(const Output *output, const File *file, int number, float *data)
{
    const MPI_Offset offset = HEADER_BYTES + number * output->all_zones * (MPI_Offset)sizeof(float);
    MPI_Status status;
    int count;
    check(file, "MPI_File_set_view",
          MPI_File_set_view(file->handle, offset, MPI_FLOAT, output->single_block, "native", MPI_INFO_NULL));
    check(file, "MPI_File_read_all",
          MPI_File_read_all(file->handle, data, (int)output->own_zones, MPI_FLOAT, &status));
    MPI_Get_count(&status, MPI_FLOAT, &count);
    if (count != (int)output->own_zones)
        fail("%s: MPI_File_read_all: %d of %zu values of array %d read", file->path, count, output->own_zones, number);
}

static void close_file(File *file)
{
    check(file, "MPI_File_close", MPI_File_close(&file->handle));
}

/* ---- analysis and restart files: six arrays in single precision ---- */

static void write_arrays(Output *output, const char *path, const Header *header, const Gas *gas,
                         const double *potential, const Storage *potential_storage)
{
    const MPI_Offset size = HEADER_BYTES + ARRAYS * output->all_zones * (MPI_Offset)sizeof(float);
    const int *count = output->mesh->count;
    File file;
    open_to_write(output, &file, path, size);
    write_header(output, &file, header);
    for (int array = 0; array < ARRAYS; array++) {
        const double *field = array < CONSERVED ? gas->conserved[array] : potential;
        const Storage *storage = array < CONSERVED ? &gas->storage : potential_storage;
        float *restrict next = output->single;
        for (int k = 0; k < count[2]; k++)
            for (int j = 0; j < count[1]; j++, next += count[0]) {
                const double *restrict row = field + storage_index(storage, 0, j, k);
                for (int i = 0; i < count[0]; i++)
                    next[i] = (float)row[i];
            }
        write_array(output, &file, array, output->single, MPI_FLOAT, output->single_block);
    }
    close_file(&file);
}

Header output_restart(Output *output, const char *path, Gas *gas, double *potential, const Storage *potential_storage)
{
    const double begin = MPI_Wtime();
    const MPI_Offset expected = HEADER_BYTES + ARRAYS * output->all_zones * (MPI_Offset)sizeof(float);
    const int *count = output->mesh->count, *zones = output->mesh->zones;
    File file;
    snprintf(file.path, PATH_SIZE, "%s", path);
    check(&file, "MPI_File_open",
          MPI_File_open(output->mesh->comm, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file.handle));
    MPI_Offset size;
    check(&file, "MPI_File_get_size", MPI_File_get_size(file.handle, &size));
    if (size != expected)
        fail("%s: not a restart file of a mesh of %dx%dx%d: it has %lld bytes, not %lld", path, zones[0], zones[1],
             zones[2], (long long)size, (long long)expected);

    /* Read by one process alone, in one operation, and told to the others. */
    float value[HEADER_VALUES] = {0};
    if (output->mesh->rank == 0) {
        MPI_Status status;
        int read;
        check(&file, "MPI_File_read_at", MPI_File_read_at(file.handle, 0, value, HEADER_VALUES, MPI_FLOAT, &status));
        MPI_Get_count(&status, MPI_FLOAT, &read);
        if (read != HEADER_VALUES)
            fail("%s: MPI_File_read_at: %d of %d header values read", path, read, HEADER_VALUES);
    }
    MPI_Bcast(value, HEADER_VALUES, MPI_FLOAT, 0, output->mesh->comm);
    const Header header = {value[0], value[1], value[2], value[3], value[4], value[5]};
    if (!(header.time >= 0.0 && header.dt >= 0.0 && header.iteration >= 0.0 && header.gamma > 1.0 &&
          header.gravity >= 0.0) || (float)header.zone_width != (float)gas->zone_width)
        fail("%s: not a restart file of a mesh of %dx%dx%d: its header is %g %g %g %g %g %g", path, zones[0], zones[1],
             zones[2], header.time, header.dt, header.iteration, header.gamma, header.gravity, header.zone_width);

    for (int array = 0; array < ARRAYS; array++) {
        read_array(output, &file, array, output->single);
        double *field = array < CONSERVED ? gas->conserved[array] : potential;
        const Storage *storage = array < CONSERVED ? &gas->storage : potential_storage;
        const float *next = output->single;
        for (int k = 0; k < count[2]; k++)
            for (int j = 0; j < count[1]; j++, next += count[0]) {
                double *row = field + storage_index(storage, 0, j, k);
                for (int i = 0; i < count[0]; i++)
                    row[i] = next[i];
            }
    }
    close_file(&file);
    gas->gamma = header.gamma;
    output->seconds += MPI_Wtime() - begin;
    return header;
}

/* ---- visualisation files: one array of bytes each ---- */

typedef struct {
    const Gas *gas;
    const double *potential;
    const Storage *potential_storage;
} Scene;

static double log_density(const Scene *scene, int i, int j, int k)
{
    return log(scene->gas->conserved[DENSITY][storage_index(&scene->gas->storage, i, j, k)]);
}

static double log_pressure(const Scene *scene, int i, int j, int k)
{
    return log(gas_pressure(scene->gas, storage_index(&scene->gas->storage, i, j, k)));
}

static double speed(const Scene *scene, int i, int j, int k)
{
    const ptrdiff_t z = storage_index(&scene->gas->storage, i, j, k);
    double *const *conserved = scene->gas->conserved;
    const double x = conserved[MOMENTUM_X][z], y = conserved[MOMENTUM_Y][z], w = conserved[MOMENTUM_Z][z];
    return sqrt(x * x + y * y + w * w) / conserved[DENSITY][z];
}

static double potential_at(const Scene *scene, int i, int j, int k)
{
    return scene->potential[storage_index(scene->potential_storage, i, j, k)];
}

static const struct {
    const char *name;
    double (*at)(const Scene *scene, int i, int j, int k);
} picture[] = {{"density", log_density}, {"pressure", log_pressure}, {"speed", speed}, {"potential", potential_at}};
enum { PICTURES = sizeof picture / sizeof picture[0] };

/* Scales a quantity to 0 for its least and 255 for its greatest value in the box. */
static void draw(Output *output, double (*at)(const Scene *, int, int, int), const Scene *scene, unsigned char *byte)
{
    const int *count = output->mesh->count;
    double *value = output->value;
    double least = INFINITY, greatest = -INFINITY;
    size_t n = 0;
    for (int k = 0; k < count[2]; k++)
        for (int j = 0; j < count[1]; j++)
            for (int i = 0; i < count[0]; i++, n++) {
                value[n] = at(scene, i, j, k);
                least = value[n] < least ? value[n] : least;
                greatest = value[n] > greatest ? value[n] : greatest;
            }
    greatest = reduce_max(output->mesh, greatest);
    least = -reduce_max(output->mesh, -least);
    const double scale = greatest > least ? 255.0 / (greatest - least) : 0.0;
    for (n = 0; n < output->own_zones; n++) {
        const double scaled = (value[n] - least) * scale + 0.5;
        byte[n] = (unsigned char)(scaled < 255.0 ? scaled : 255.0);
    }
}

static void write_pictures(Output *output, const Header *header, const Gas *gas, const double *potential,
                           const Storage *potential_storage)
{
    /* All scales are agreed on before the first file is open: with a file open there is no communication but the file's. */
    const Scene scene = {gas, potential, potential_storage};
    for (size_t p = 0; p < PICTURES; p++)
        draw(output, picture[p].at, &scene, output->byte + p * output->own_zones);

    for (size_t p = 0; p < PICTURES; p++) {
        char path[PATH_SIZE];
        File file;
        snprintf(path, PATH_SIZE, "%.4000s/vis_%s_%04d.dat", output->folder, picture[p].name, (int)header->iteration);
        open_to_write(output, &file, path, HEADER_BYTES + output->all_zones);
        write_header(output, &file, header);
        write_array(output, &file, 0, output->byte + p * output->own_zones, MPI_UNSIGNED_CHAR, output->byte_block);
        close_file(&file);
    }
}
