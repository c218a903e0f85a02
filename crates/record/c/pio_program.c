/* pio_program.h. No allocation, no lock, raw system calls only: it runs in children of vfork. */
#include "pio_program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

/* The command has no hooks to pass by (build.rs). */
#ifndef KERNEL
#include "pio_kernel.h"
#endif

#define PIO_ELF_CLASS (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32)
#if defined(__x86_64__)
#define PIO_ELF_MACHINE EM_X86_64
#elif defined(__i386__)
#define PIO_ELF_MACHINE EM_386
#elif defined(__aarch64__)
#define PIO_ELF_MACHINE EM_AARCH64
#elif defined(__powerpc64__)
#define PIO_ELF_MACHINE EM_PPC64
#elif defined(__riscv)
#define PIO_ELF_MACHINE EM_RISCV
#elif defined(__s390x__)
#define PIO_ELF_MACHINE EM_S390
#endif

#if UINTPTR_MAX > UINT32_MAX
typedef Elf64_Ehdr pio_elf_header;
typedef Elf64_Phdr pio_elf_part;
typedef Elf64_Dyn pio_elf_dynamic;
#else
typedef Elf32_Ehdr pio_elf_header;
typedef Elf32_Phdr pio_elf_part;
typedef Elf32_Dyn pio_elf_dynamic;
#endif

static const char *pio_name_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

/* What of `size` bytes at `offset` the file holds. */
static size_t pio_read_at(int fd, void *buffer, size_t size, uint64_t offset) {
    long got = KERNEL(SYS_pread64, fd, buffer, size, (off_t)offset);
    return got < 0 ? 0 : (size_t)got;
}

static bool pio_is_file(const char *path) {
    return KERNEL(SYS_faccessat, AT_FDCWD, path, R_OK) == 0;
}

/* The loader of glibc: any other belongs to a C library into which ours cannot be loaded. */
static bool pio_is_glibc_loader(const char *path) {
    const char *name = pio_name_of(path);
    return strncmp(name, "ld-linux", 8) == 0 || strncmp(name, "ld64.so", 7) == 0 || strncmp(name, "ld.so", 5) == 0 ||
           strncmp(name, "ld-2.", 5) == 0;
}

/* Whether a file gives its rights to who starts it: then the loader ignores LD_PRELOAD. */
static bool pio_is_privileged(const char *path) {
    struct stat file;
    if (KERNEL(SYS_newfstatat, AT_FDCWD, path, &file, 0) != 0)
        return false;
    uid_t user = geteuid();
    gid_t group = getegid();
    char capabilities[64];
    bool gives = (file.st_mode & (S_ISUID | S_ISGID)) != 0 ||
                 (user != 0 && KERNEL(SYS_getxattr, path, "security.capability", capabilities, sizeof capabilities) > 0);
    if (gives) {
        struct statfs system;
        bool is_off = KERNEL(SYS_statfs, path, &system) == 0 && (system.f_flags & 2 /* ST_NOSUID */) != 0;
        gives = !is_off && KERNEL(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1;
    }
    if (gives && file.st_mode & S_ISUID)
        user = file.st_uid;
    if (gives && file.st_mode & S_ISGID && file.st_mode & S_IXGRP)
        group = file.st_gid;
    bool has_capabilities = gives && (file.st_mode & (S_ISUID | S_ISGID)) == 0;
    return user != getuid() || group != getgid() || has_capabilities;
}

/* Whether a note of the Go linker is among the file's. */
static bool pio_has_go_note(int fd, const pio_elf_part *part) {
    unsigned char notes[1024];
    size_t length = pio_read_at(fd, notes, part->p_filesz < sizeof notes ? part->p_filesz : sizeof notes, part->p_offset);
    for (size_t at = 0; at + 16 <= length;) {
        uint32_t head[3];
        memcpy(head, notes + at, sizeof head);
        if (head[0] == 4 && memcmp(notes + at + 12, "Go\0", 4) == 0)
            return true;
        if (head[0] > length || head[1] > length)
            return false;
        at += 12 + ((head[0] + 3u) & ~3u) + ((head[1] + 3u) & ~3u);
    }
    return false;
}

/* Puts the first `folder`/`name` that is there to `found`; `folders` are separated by colons. */
static bool pio_find_in(const char *folders, const char *name, char *found, size_t room) {
    while (folders != NULL && *folders != 0) {
        size_t length = strcspn(folders, ":;");
        if (length > 0 && folders[0] == '/' && length + strlen(name) + 2 <= room) {
            memcpy(found, folders, length);
            found[length] = '/';
            strcpy(found + length + 1, name);
            if (pio_is_file(found))
                return true;
        }
        folders += length;
        folders += *folders != 0;
    }
    return false;
}

/* What a program is linked with. */
struct pio_needs {
    char sanitizer[128]; /* name of a library of AddressSanitizer, or empty */
    char folders[1024];  /* where else it looks for libraries */
};

static void pio_read_needs(int fd, const pio_elf_part *parts, size_t count, struct pio_needs *needs) {
    needs->sanitizer[0] = needs->folders[0] = 0;
    const pio_elf_part *dynamic = NULL;
    for (size_t i = 0; i < count; i++)
        if (parts[i].p_type == PT_DYNAMIC)
            dynamic = &parts[i];
    if (dynamic == NULL)
        return;
    pio_elf_dynamic entries[16];
    uint64_t strings = 0;
    /* Twice over the entries: the table of strings may come behind the names. */
    for (int pass = 0; pass < 2; pass++) {
        bool is_over = false;
        for (uint64_t at = 0; !is_over && at < dynamic->p_filesz && at < (1u << 16); at += sizeof entries) {
            size_t got = pio_read_at(fd, entries, sizeof entries, dynamic->p_offset + at) / sizeof entries[0];
            is_over = got < sizeof entries / sizeof entries[0];
            for (size_t i = 0; i < got; i++) {
                char name[128] = "";
                if (entries[i].d_tag == DT_NULL) {
                    is_over = true;
                    break;
                }
                if (pass == 0 && entries[i].d_tag == DT_STRTAB)
                    for (size_t p = 0; p < count; p++)
                        if (parts[p].p_type == PT_LOAD && entries[i].d_un.d_ptr >= parts[p].p_vaddr &&
                            entries[i].d_un.d_ptr - parts[p].p_vaddr < parts[p].p_filesz)
                            strings = entries[i].d_un.d_ptr - parts[p].p_vaddr + parts[p].p_offset;
                if (pass == 1 && entries[i].d_tag == DT_NEEDED) {
                    name[pio_read_at(fd, name, sizeof name - 1, strings + entries[i].d_un.d_val)] = 0;
                    if (strstr(name, "libasan.so") != NULL || strstr(name, "libclang_rt.asan") != NULL)
                        strcpy(needs->sanitizer, name);
                }
                if (pass == 1 && (entries[i].d_tag == DT_RUNPATH || entries[i].d_tag == DT_RPATH))
                    needs->folders[pio_read_at(fd, needs->folders, sizeof needs->folders - 1,
                                               strings + entries[i].d_un.d_val)] = 0;
            }
        }
        if (strings == 0)
            return;
    }
}

/* A dynamic program of this machine: AddressSanitizer ends it if its library is not the first of all, so that goes before
 * ours, if the loader is sure to find it. */
static void pio_look_at_sanitizer(int fd, const pio_elf_part *parts, size_t count, struct pio_program *program) {
    struct pio_needs needs;
    pio_read_needs(fd, parts, count, &needs);
    if (needs.sanitizer[0] == 0)
        return;
    static const char usual[] =
        "/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:/lib/aarch64-linux-gnu:/usr/lib/aarch64-linux-gnu:"
        "/lib64:/usr/lib64:/usr/local/lib64:/usr/local/lib:/usr/lib:/lib";
    char *found = program->sanitizer;
    if (pio_find_in(needs.folders, needs.sanitizer, found, PIO_SANITIZER_BYTES) ||
        pio_find_in(getenv("LD_LIBRARY_PATH"), needs.sanitizer, found, PIO_SANITIZER_BYTES) ||
        pio_find_in(usual, needs.sanitizer, found, PIO_SANITIZER_BYTES))
        if (strpbrk(found, ": ") == NULL)
            return;
    found[0] = 0;
    program->reason = "sanitizer";
    program->is_harmed = true;
}

static void pio_look_at_elf(int fd, const char *path, const unsigned char *start_of, size_t length,
                            struct pio_program *program) {
    pio_elf_header header;
    bool is_ours = start_of[EI_CLASS] == PIO_ELF_CLASS && length >= sizeof header;
    if (is_ours)
        memcpy(&header, start_of, sizeof header);
#ifdef PIO_ELF_MACHINE
    is_ours = is_ours && header.e_machine == PIO_ELF_MACHINE;
#endif
    if (!is_ours || header.e_phentsize != sizeof(pio_elf_part)) {
        program->reason = "machine";
        program->is_harmed = true;
        return;
    }
    pio_elf_part parts[32];
    size_t count = header.e_phnum < 32 ? header.e_phnum : 32;
    count = pio_read_at(fd, parts, count * sizeof parts[0], header.e_phoff) / sizeof parts[0];
    char loader[256] = "";
    bool has_loader = false, is_go = false;
    for (size_t i = 0; i < count; i++) {
        if (parts[i].p_type == PT_INTERP) {
            has_loader = true;
            size_t most = parts[i].p_filesz < sizeof loader - 1 ? parts[i].p_filesz : sizeof loader - 1;
            loader[pio_read_at(fd, loader, most, parts[i].p_offset)] = 0;
        } else if (parts[i].p_type == PT_NOTE) {
            is_go = is_go || pio_has_go_note(fd, &parts[i]);
        }
    }
    if (!has_loader) {
        /* The loader itself has none, and loads us into the program that it is given. */
        if (!pio_is_glibc_loader(path))
            program->reason = is_go ? "go" : "static";
        if (strncmp(pio_name_of(path), "ld-musl", 7) == 0) {
            program->reason = "libc";
            program->is_harmed = true;
        }
    } else if (!pio_is_glibc_loader(loader)) {
        program->reason = "libc";
        program->is_harmed = true;
    } else {
        pio_look_at_sanitizer(fd, parts, count, program);
        if (is_go && program->reason == NULL)
            program->reason = "go";
    }
}

void pio_look_at_program(const char *path, struct pio_program *program) {
    char name[2][256];
    memset(program, 0, sizeof *program);
    for (int depth = 0; path != NULL && depth < 5; depth++) {
        int fd = (int)KERNEL(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        unsigned char start_of[256] = {0};
        size_t length = fd < 0 ? 0 : pio_read_at(fd, start_of, sizeof start_of - 1, 0);
        bool is_script = length > 2 && start_of[0] == '#' && start_of[1] == '!';
        if (!is_script && pio_is_privileged(path))
            program->reason = "privileged";
        else if (length >= EI_NIDENT && memcmp(start_of, ELFMAG, SELFMAG) == 0)
            pio_look_at_elf(fd, path, start_of, length, program);
        if (fd >= 0)
            KERNEL(SYS_close, fd);
        path = NULL;
        if (is_script) {
            char *word = (char *)start_of + 2;
            word += strspn(word, " \t");
            word[strcspn(word, " \t\n")] = 0;
            path = strcpy(name[depth % 2], word);
        }
    }
}
