/* Calls of libraries above MPI-IO and POSIX (HDF5, PnetCDF), by name.
 *
 * Such a call is an operation: what it causes is marked so. Its headers are not needed: what we know of the libraries is
 * their ABI, which is said where it is used. What a library's functions call of each other inside is not recorded. */
#ifndef PIO_LIBRARY_H
#define PIO_LIBRARY_H

#include "pio_copies.h"
#include "pio_writer.h"

#pragma GCC visibility push(hidden)

/* Files that a library has open, by its own id. */
struct library_file {
    struct library_file *next;
    int64_t id;
    uint32_t number;
    bool is_shared; /* by the ranks of a communicator */
};

/* A number for a file that is about to be opened. */
uint32_t pio_number_library_file(void);

void pio_add_library_file(struct library_file **files, int64_t id, uint32_t number, bool is_shared);

/* A copy of what is known of a file: number 0 if that is nothing. */
struct library_file pio_find_library_file(struct library_file **files, int64_t id, bool and_remove);

/* Whether a call is the program's own: not one that a library makes inside another. */
bool pio_is_outermost(void);

struct pio_record *pio_library_begin(const struct pioscope_io *io);
void pio_library_end(struct pio_record *record, int64_t result);

/* After an open: with how many ranks MPI-IO opened the file, 0 if it did not. */
uint32_t pio_ranks_of_open(struct pio_record *record);

#pragma GCC visibility pop

#endif
