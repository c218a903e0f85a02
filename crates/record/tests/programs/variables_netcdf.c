/* Writes and reads variables through PnetCDF in every way there is. argv: the file. */
#include <pnetcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        int error = (call);                                                                                            \
        if (error != NC_NOERR) {                                                                                       \
            fprintf(stderr, "line %d: %s\n", __LINE__, ncmpi_strerror(error));                                         \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                                              \
        }                                                                                                              \
    } while (0)

enum { ROWS = 8, COLUMNS = 16, RECORDS = 3 };

int main(int argc, char **argv) {
    int rank, ranks, file, axes[2], record_axes[2], fixed, record, requests[RECORDS], states[RECORDS];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    static double doubles[ROWS * COLUMNS];
    static int ints[ROWS * COLUMNS];
    MPI_Offset start[2] = {0, COLUMNS * rank}, count[2] = {ROWS, COLUMNS}, stride[2] = {2, 1};

    CHECK(ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file));
    CHECK(ncmpi_def_dim(file, "row", ROWS, &axes[0]));
    CHECK(ncmpi_def_dim(file, "column", (MPI_Offset)COLUMNS * ranks, &axes[1]));
    CHECK(ncmpi_def_dim(file, "time", NC_UNLIMITED, &record_axes[0]));
    record_axes[1] = axes[1];
    CHECK(ncmpi_def_var(file, "fixed", NC_DOUBLE, 2, axes, &fixed));
    CHECK(ncmpi_def_var(file, "record", NC_SHORT, 2, record_axes, &record));
    CHECK(ncmpi_enddef(file));
    /* All ranks: 8 x 16 doubles; every other row; the same by a type of MPI. */
    CHECK(ncmpi_put_vara_double_all(file, fixed, start, count, doubles));
    count[0] = ROWS / 2;
    CHECK(ncmpi_put_vars_double_all(file, fixed, start, count, stride, doubles));
    CHECK(ncmpi_put_vara_all(file, fixed, start, count, doubles, ROWS / 2 * COLUMNS, MPI_DOUBLE));
    /* Records of shorts, given as ints, later. */
    count[0] = 1;
    for (int i = 0; i < RECORDS; i++) {
        start[0] = i;
        CHECK(ncmpi_iput_vara_int(file, record, start, count, ints, &requests[i]));
    }
    CHECK(ncmpi_wait_all(file, RECORDS, requests, states));
    /* Two boxes of 1 x 16 and 2 x 16. */
    MPI_Offset starts[2][2] = {{0, COLUMNS * rank}, {2, COLUMNS * rank}}, counts[2][2] = {{1, COLUMNS}, {2, COLUMNS}};
    MPI_Offset *each_start[2] = {starts[0], starts[1]}, *each_count[2] = {counts[0], counts[1]};
    CHECK(ncmpi_put_varn_double_all(file, fixed, 2, each_start, each_count, doubles));
    CHECK(ncmpi_sync(file));
    CHECK(ncmpi_close(file));

    CHECK(ncmpi_open(MPI_COMM_WORLD, argv[1], NC_NOWRITE, MPI_INFO_NULL, &file));
    double *whole = malloc((size_t)(ROWS * COLUMNS * ranks) * sizeof *whole);
    CHECK(ncmpi_get_var_double_all(file, fixed, whole));
    CHECK(ncmpi_begin_indep_data(file));
    start[0] = 1;
    CHECK(ncmpi_get_var1_int(file, record, start, ints));
    CHECK(ncmpi_end_indep_data(file));
    if (ncmpi_get_vara_int_all(file, 99, start, count, ints) == NC_NOERR)
        MPI_Abort(MPI_COMM_WORLD, 1);
    CHECK(ncmpi_close(file));
    free(whole);
    MPI_Finalize();
    return 0;
}
