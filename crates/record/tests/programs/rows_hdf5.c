/* Every rank writes its rows of a dataset and reads them again, through parallel HDF5. argv: the file. */
#include <hdf5.h>
#include <mpi.h>

int main(int argc, char **argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
    hid_t file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, access);
    hsize_t all[2] = {(hsize_t)ranks * 10, 100}, mine[2] = {10, 100}, start[2] = {(hsize_t)rank * 10, 0};
    hid_t space = H5Screate_simple(2, all, NULL), memory = H5Screate_simple(2, mine, NULL);
    hid_t rows = H5Dcreate2(file, "rows", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, mine, NULL);
    hid_t how = H5Pcreate(H5P_DATASET_XFER);
    static double data[1000];
    for (int collective = 0; collective < 2; collective++) {
        H5Pset_dxpl_mpio(how, collective ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT);
        if (H5Dwrite(rows, H5T_NATIVE_DOUBLE, memory, space, how, data) < 0 ||
            H5Dread(rows, H5T_NATIVE_DOUBLE, memory, space, how, data) < 0)
            MPI_Abort(MPI_COMM_WORLD, 1);
    }
    H5Pclose(how);
    H5Dclose(rows);
    H5Sclose(space);
    H5Sclose(memory);
    H5Fclose(file);
    H5Pclose(access);
    MPI_Finalize();
    return 0;
}
