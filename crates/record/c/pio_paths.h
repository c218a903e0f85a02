/* Paths of descriptors and of names, and whether they are the job's. */
#ifndef PIO_PATHS_H
#define PIO_PATHS_H

#include "pio_common.h"

#pragma GCC visibility push(hidden)

/* A file system in memory. Programs keep files there, and libraries the memory that processes share: which is which, the
 * collector tells by what was done with them (src/memory.rs). */
#define IN_MEMORY "/dev/shm/"

/* Not the job's files: the kernel's, devices, memory without a name in a folder, and our own spools. */
bool pio_is_foreign_path(const char *path);

/* Whether the user wants to see this file (src/filter.rs says how the rules are meant). */
bool pio_is_kept(const char *path);

/* The path of an open regular file, in a buffer of PATH_MAX (or NULL), and its device: the path's length, or 0 if it is none of
 * the job's files. */
size_t pio_path_of_descriptor(int fd, char *path, uint64_t *device);

/* Whether a descriptor is of a file in /dev/shm. */
bool pio_is_in_memory(int fd);

/* The absolute path of a name that is meant from a folder on, without `.` and `..` but with symbolic links, as --path is
 * told. False if it is too long, or the folder is not known. */
bool pio_absolute_name(int folder, const char *name, char *path);

#pragma GCC visibility pop

#endif
