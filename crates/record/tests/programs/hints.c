/* Two ranks give MPI-IO hints, when they open a file and later. argv: a folder. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static MPI_File open_in(const char *folder, const char *name, MPI_Info info) {
    char path[4096];
    MPI_File file;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 2);
    return file;
}

int main(int argc, char **argv) {
    (void)argc;
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Info at_open, later, own;
    MPI_Info_create(&at_open);
    MPI_Info_set(at_open, "cb_nodes", "2");
    MPI_Info_set(at_open, "cb_config_list", "*:1,*:2");
    MPI_Info_set(at_open, "my colour", "red");
    MPI_Info_create(&later);
    MPI_Info_set(later, "cb_nodes", "1");
    MPI_Info_set(later, "romio_cb_write", "enable");
    MPI_Info_create(&own);
    MPI_Info_set(own, "start_iodevice", rank == 0 ? "0" : "1");

    MPI_File file = open_in(argv[1], "alike", at_open);
    MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", later);
    MPI_File_close(&file);
    file = open_in(argv[1], "other", own);
    MPI_File_set_info(file, later);
    MPI_File_close(&file);
    file = open_in(argv[1], "none", MPI_INFO_NULL);
    MPI_File_close(&file);

    MPI_Info_free(&at_open);
    MPI_Info_free(&later);
    MPI_Info_free(&own);
    MPI_Finalize();
    return 0;
}
