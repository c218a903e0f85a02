/* A library that was compiled for one MPI, preloaded into a process of another.
 *
 * A script may start programs of several MPIs, and which is not known before it does. Handles of one family are numbers
 * and of the other addresses: our functions, declared for one, would cut the other's in half even where they only pass
 * them on. So such a process begins again without the library, before its program has done anything.
 *
 * A program that loads its MPI later, as Python's modules do, has done a lot by then. It goes on, and our functions give way:
 * what is bound to them is bound to MPI's own, and nothing finds them any more.
 *
 * For the sources of libraries that are preloaded; the one that includes it has a constructor, and functions in place of
 * MPI_Init and MPI_Init_thread, whose arguments are the same in all MPIs.
 */
#ifndef PIO_OTHER_MPI_H
#define PIO_OTHER_MPI_H

#include <dlfcn.h>
#include <link.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

extern char **environ;

/* Tells this library from one of another version, which was compiled from other sources. */
#ifndef PIO_SOURCES
#define PIO_SOURCES 0
#endif
__attribute__((used)) static const struct {
    char mark[16];
    uint64_t sources;
} pio_compiled_from = {"pioscope source", PIO_SOURCES};

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

/* An MPI library in the process, if it is another than we were compiled for. */
struct pio_other {
    const char *family;
    const char *path;
};

static int pio_is_mpi_library(struct dl_phdr_info *object, size_t size, void *found) {
    (void)size;
    const char *name = strrchr(object->dlpi_name, '/');
    if (name == NULL || strncmp(name, "/libmpi", 7) != 0 || strncmp(name, "/libmpifort", 11) == 0)
        return 0;
    void *library = dlopen(object->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    if (library == NULL)
        return 0;
    struct pio_other *other = found;
    /* The standard's: its handles are others than those of any MPI of its own. */
    int is_abi = strncmp(name, "/libmpi_abi", 11) == 0;
    /* Open MPI's predefined handles are data; no other's are. */
    int is_open_mpi = !is_abi && dlsym(library, "ompi_mpi_comm_world") != NULL;
#if defined(MPI_H_ABI)
    int is_ours = is_abi;
#elif defined(OPEN_MPI)
    int is_ours = is_open_mpi;
#else
    int is_ours = !is_open_mpi && !is_abi;
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
    const char *family = is_abi ? "MPI's standard ABI" : is_open_mpi ? "Open MPI" : "MPICH or a relative of it";
    if (!is_ours)
        *other = (struct pio_other){family, object->dlpi_name};
    dlclose(library);
    return 1;
}

/* The process's MPI, if it is another than we were compiled for; nothing if it is ours, or there is none. */
static struct pio_other pio_other_mpi(void) {
    struct pio_other other = {NULL, NULL};
    dl_iterate_phdr(pio_is_mpi_library, &other);
    return other;
}

/* Once a job. `what` is not done to a program. */
static void pio_tell_of_other_mpi(const char *program, const char *family, const char *what) {
    const char *ranks[] = {"PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"};
    const char *rank = NULL;
    for (size_t i = 0; rank == NULL && i < sizeof ranks / sizeof ranks[0]; i++)
        rank = getenv(ranks[i]);
    if (rank == NULL || strcmp(rank, "0") == 0)
        fprintf(stderr, "pioscope: %s uses %s, another MPI or an older one than the one that was found for this job: its MPI calls are not %s "
                        "(name its compiler with --mpicc)\n", program, family, what);
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
    const char *family = pio_other_mpi().family;
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
    pio_tell_of_other_mpi(arguments[0], family, what);
    /* Its own name, which people look for in lists of processes. */
    static char program[4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length > 0)
        start(program, arguments, environ);
}

/* Giving way ------------------------------------------------------------------------------------------------------- */

#if defined(__x86_64__)
#define PIO_BOUND_CALL R_X86_64_JUMP_SLOT
#define PIO_BOUND_DATA R_X86_64_GLOB_DAT
#elif defined(__aarch64__)
#define PIO_BOUND_CALL R_AARCH64_JUMP_SLOT
#define PIO_BOUND_DATA R_AARCH64_GLOB_DAT
#endif

/* Our library, and that of the MPI that it gives way to. */
struct pio_way {
    void *own, *library;
    const ElfW(Dyn) *own_dynamic;
};

static int pio_is_of_mpi(const char *name) {
    return strncmp(name, "MPI_", 4) == 0 || strncmp(name, "PMPI_", 5) == 0 || strncmp(name, "mpi_", 4) == 0;
}

/* What an object says of itself: an address is the process's own, or one in the object's file. */
static uintptr_t pio_word_of(const ElfW(Dyn) *dynamic, int64_t tag, uintptr_t base) {
    for (; dynamic->d_tag != DT_NULL; dynamic++)
        if (dynamic->d_tag == tag)
            return dynamic->d_un.d_ptr < base ? base + dynamic->d_un.d_ptr : dynamic->d_un.d_ptr;
    return 0;
}

static int pio_make_writable(void *memory, size_t bytes) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)memory & ~(page - 1);
    return mprotect((void *)first, (uintptr_t)memory + bytes - first, PROT_READ | PROT_WRITE) == 0;
}

#ifdef PIO_BOUND_CALL
/* Binds what an object has bound to us, or will at its first call, to MPI's own function. */
static int pio_bind_to_mpi(struct dl_phdr_info *object, size_t size, void *given) {
    (void)size;
    const struct pio_way *way = given;
    const ElfW(Dyn) *dynamic = NULL;
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
            dynamic = (const ElfW(Dyn) *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
    if (dynamic == NULL || dynamic == way->own_dynamic)
        return 0;
    uintptr_t base = object->dlpi_addr;
    const ElfW(Sym) *symbols = (const ElfW(Sym) *)pio_word_of(dynamic, DT_SYMTAB, base);
    const char *names = (const char *)pio_word_of(dynamic, DT_STRTAB, base);
    const int64_t tables[2][2] = {{DT_JMPREL, DT_PLTRELSZ}, {DT_RELA, DT_RELASZ}};
    for (int i = 0; i < 2 && symbols != NULL && names != NULL; i++) {
        const ElfW(Rela) *entry = (const ElfW(Rela) *)pio_word_of(dynamic, tables[i][0], base);
        size_t count = entry == NULL ? 0 : pio_word_of(dynamic, tables[i][1], 0) / sizeof *entry;
        for (; count > 0; count--, entry++) {
            uint32_t type = (uint32_t)entry->r_info;
            const ElfW(Sym) *symbol = &symbols[entry->r_info >> 32];
            const char *name = names + symbol->st_name;
            if ((type != PIO_BOUND_CALL && type != PIO_BOUND_DATA) || !pio_is_of_mpi(name) || dlsym(way->own, name) == NULL)
                continue;
            void *theirs = dlsym(way->library, name), **place = (void **)(base + entry->r_offset);
            /* A weak one is how a module asks whether its MPI has a function. */
            bool may_lack = symbol->st_info >> 4 == STB_WEAK;
            if ((theirs != NULL || may_lack) && pio_make_writable(place, sizeof *place))
                *place = theirs;
        }
    }
    return 0;
}
#endif

/* Whether the program has loaded another MPI since it began; then none of our functions is called from now on but the one that
 * asks, and `what` is not done to it. */
static int pio_gives_way(const char *what) {
    struct pio_other other = pio_other_mpi();
    if (other.family == NULL)
        return 0;
#ifdef PIO_BOUND_CALL
    Dl_info info;
    struct link_map *map;
    if (dladdr1((void *)pio_gives_way, &info, (void **)&map, RTLD_DL_LINKMAP) == 0)
        return 0;
    struct pio_way way = {dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD), dlopen(other.path, RTLD_LAZY | RTLD_NOLOAD), map->l_ld};
    const uint32_t *hash = (const uint32_t *)pio_word_of(map->l_ld, DT_HASH, map->l_addr);
    ElfW(Sym) *symbols = (ElfW(Sym) *)pio_word_of(map->l_ld, DT_SYMTAB, map->l_addr);
    const char *names = (const char *)pio_word_of(map->l_ld, DT_STRTAB, map->l_addr);
    if (way.own == NULL || way.library == NULL || hash == NULL || symbols == NULL || names == NULL)
        return 0;
    dl_iterate_phdr(pio_bind_to_mpi, &way);
    /* What is loaded later does not find them: a symbol without a section is not defined here. */
    uint32_t count = hash[1];
    if (pio_make_writable(symbols, count * sizeof *symbols))
        for (uint32_t i = 0; i < count; i++)
            if (pio_is_of_mpi(names + symbols[i].st_name)) {
                symbols[i].st_shndx = SHN_UNDEF;
                symbols[i].st_value = 0;
            }
#endif
    extern char *program_invocation_name;
    pio_tell_of_other_mpi(program_invocation_name, other.family, what);
    return 1;
}

#endif
