/* A library that was compiled for one MPI, preloaded into a process of another.
 *
 * A script may start programs of several MPIs, and which is not known before it does. Handles of one family are numbers
 * and of the other addresses: our functions, declared for one, would cut the other's in half even where they only pass
 * them on. So such a process begins again without the library, before its program has done anything.
 *
 * For the sources of libraries that are preloaded; the one that includes it has a constructor.
 */
#ifndef PIO_OTHER_MPI_H
#define PIO_OTHER_MPI_H

#include <dlfcn.h>
#include <link.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

/* Of the functions that we need, one that came last into the standard. What an MPI says of its version is not asked: Intel's
 * has those of MPI 5.0 and says 4.1. */
#if MPI_VERSION >= 5
#define PIO_NEWEST_FUNCTION "PMPI_File_toint"
#elif MPI_VERSION == 4 && MPI_SUBVERSION >= 1
#define PIO_NEWEST_FUNCTION "PMPI_Status_set_elements_c"
#elif MPI_VERSION == 4
#define PIO_NEWEST_FUNCTION "PMPI_File_read_c"
#elif MPI_VERSION == 3 && MPI_SUBVERSION >= 1
#define PIO_NEWEST_FUNCTION "PMPI_File_iread_all"
#else
#define PIO_NEWEST_FUNCTION "PMPI_Type_size_x"
#endif

/* An MPI library that the process was started with. Modules, as Python has them, load theirs later. */
static int pio_is_mpi_library(struct dl_phdr_info *object, size_t size, void *found) {
    (void)size;
    const char *name = strrchr(object->dlpi_name, '/');
    if (name == NULL || strncmp(name, "/libmpi", 7) != 0 || strncmp(name, "/libmpifort", 11) == 0)
        return 0;
    void *library = dlopen(object->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    if (library == NULL)
        return 0;
    const char **name_of_other = found;
    /* Open MPI's predefined handles are data; no other's are. */
    int is_open_mpi = dlsym(library, "ompi_mpi_comm_world") != NULL;
#ifdef OPEN_MPI
    int is_ours = is_open_mpi;
#else
    int is_ours = !is_open_mpi;
#endif
    /* One that is older than our header lacks functions that we need. */
    is_ours = is_ours && dlsym(library, PIO_NEWEST_FUNCTION) != NULL;
#ifdef OMPI_MAJOR_VERSION
    /* Its major versions have the same functions. "Open MPI v4.1.4, package: ...": also at any time. */
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0, major = 0;
    int (*get_library_version)(char *, int *) = (int (*)(char *, int *))dlsym(library, "PMPI_Get_library_version");
    if (is_ours && get_library_version != NULL && get_library_version(text, &length) == MPI_SUCCESS &&
        sscanf(text, "Open MPI v%d", &major) == 1)
        is_ours = major >= OMPI_MAJOR_VERSION;
#endif
    if (!is_ours)
        *name_of_other = is_open_mpi ? "Open MPI" : "MPICH or a relative of it";
    dlclose(library);
    return 1;
}

/* The process's MPI, if it is another than we were compiled for; NULL if it is ours, or there is none, or we were compiled
 * for the standard ABI, which all have. */
static const char *pio_other_mpi(void) {
    const char *other = NULL;
#ifndef MPI_ABI_VERSION
    dl_iterate_phdr(pio_is_mpi_library, &other);
#else
    (void)pio_is_mpi_library;
#endif
    return other;
}

/* Takes `own` out of a list of libraries; false if it is not there. */
static int pio_take_out(char *list, const char *own) {
    size_t length = strlen(own);
    for (char *entry = list; *entry != 0;) {
        size_t part = strcspn(entry, ": ");
        if (part == length && strncmp(entry, own, length) == 0) {
            char *rest = entry + part + (entry[part] != 0);
            memmove(entry, rest, strlen(rest) + 1);
            return 1;
        }
        entry += part + (entry[part] != 0);
    }
    return 0;
}

/* In a process of another MPI: starts its program again without us, and says so once a job. `what` is not done to it. */
static void pio_leave_other_mpi(char **arguments, const char *what) {
    Dl_info own;
    const char *family = pio_other_mpi();
    char *list = getenv("LD_PRELOAD"), *recorder = getenv("PIOSCOPE_PRELOAD");
    if (family == NULL || list == NULL || arguments == NULL || dladdr((void *)pio_leave_other_mpi, &own) == 0)
        return;
    /* The C library's own: the recorder's would put us back. */
    void *library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    int (*start)(const char *, char *const *, char *const *) =
        library == NULL ? NULL : (int (*)(const char *, char *const *, char *const *))dlsym(library, "execve");
    if (start == NULL || !pio_take_out(list, own.dli_fname))
        return;
    if (recorder != NULL)
        pio_take_out(recorder, own.dli_fname);
    const char *ranks[] = {"PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"};
    const char *rank = NULL;
    for (size_t i = 0; rank == NULL && i < sizeof ranks / sizeof ranks[0]; i++)
        rank = getenv(ranks[i]);
    if (rank == NULL || strcmp(rank, "0") == 0)
        fprintf(stderr, "pioscope: %s uses %s, another MPI or an older one than the one that was found for this job: its MPI calls are not %s "
                        "(name its compiler with --mpicc)\n", arguments[0], family, what);
    /* Its own name, which people look for in lists of processes. */
    static char program[4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length > 0)
        start(program, arguments, environ);
}

#endif
