/* Writes and reads what HDF5 can hold, without MPI. argv: the file.
 *
 * With MODULE it is a module, loaded for itself alone by load_module.c. */
#include <hdf5.h>
#include <stdio.h>
#include <string.h>

#define CHECK(condition)                                                                                               \
    if (!(condition)) {                                                                                                \
        fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                                        \
        return 1;                                                                                                      \
    }

int run(const char *path);

int run(const char *path) {
    static double numbers[50][20];
    static int few[100];
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t group = H5Gcreate2(file, "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    hsize_t all[2] = {50, 20}, part[2] = {5, 4}, start[2] = {1, 2};
    hid_t space = H5Screate_simple(2, all, NULL), memory = H5Screate_simple(2, part, NULL);
    hid_t set = H5Dcreate2(group, "numbers", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    CHECK(file >= 0 && group >= 0 && set >= 0);
    /* 1000 doubles; 20 of them, kept as doubles but given as ints; */
    CHECK(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >= 0);
    CHECK(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, part, NULL) >= 0);
    CHECK(H5Dwrite(set, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, few) >= 0);
    /* ... the places are those in memory, if only the file's are told. */
    CHECK(H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, space, H5P_DEFAULT, numbers) >= 0);
    hsize_t three = 3;
    hid_t line = H5Screate_simple(1, &three, NULL);
    hid_t attribute = H5Acreate2(set, "units", H5T_NATIVE_SHORT, line, H5P_DEFAULT, H5P_DEFAULT);
    short units[3] = {1, 2, 3};
    CHECK(H5Awrite(attribute, H5T_NATIVE_SHORT, units) >= 0 && H5Aread(attribute, H5T_NATIVE_SHORT, units) >= 0);
    CHECK(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
    H5Aclose(attribute);
    H5Dclose(set);
    H5Gclose(group);
    CHECK(H5Fclose(file) >= 0);

    CHECK(H5Eset_auto2(H5E_DEFAULT, NULL, NULL) >= 0);
    CHECK(H5Fopen("/nowhere/at/all.h5", H5F_ACC_RDONLY, H5P_DEFAULT) < 0);
    file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    CHECK(H5Lexists(file, "group", H5P_DEFAULT) == 1);
    set = H5Dopen2(file, "group/numbers", H5P_DEFAULT);
    CHECK(H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >= 0);
    /* What the program did wrong is still told to it. */
    CHECK(H5Dread(set, H5T_NATIVE_DOUBLE, memory, H5S_ALL, H5P_DEFAULT, numbers) < 0);
    CHECK(H5Eget_num(H5E_DEFAULT) > 0);
    H5Dclose(set);
    /* As h5py closes files. */
    CHECK(H5Idec_ref(file) == 0);
    H5Sclose(line);
    H5Sclose(space);
    H5Sclose(memory);
    return 0;
}

#ifndef MODULE
int main(int argc, char **argv) {
    return argc == 2 ? run(argv[1]) : 2;
}
#endif
