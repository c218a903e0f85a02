#include "pio_bodies.h"
#include "pio_kernel.h"
#include "pio_paths.h"

#include <sys/mman.h>
#include <sys/resource.h>

uint64_t pio_files_mapped;

/* What the process had before its first mapping: programs begin with faults of their own. */
static uint64_t faults_before, fault_blocks_before;

/* The kernel counts what was read from devices in blocks of this many bytes. */
#define DEVICE_BLOCK_BYTES 512

static void begin_faults(void) {
    struct rusage used;
    if (KERNEL(SYS_getrusage, RUSAGE_SELF, &used) == 0) {
        STORE(&fault_blocks_before, (uint64_t)used.ru_inblock);
        STORE(&faults_before, (uint64_t)used.ru_majflt);
    }
}

void pio_count_faults(void) {
    struct rusage used;
    if (LOAD(&pio_files_mapped) == 0 || LOAD(pio_alive) == 0 || !is_owner() || ACQUIRE(&pio_spool.state) != SPOOL_OPEN ||
        KERNEL(SYS_getrusage, RUSAGE_SELF, &used) != 0)
        return;
    STORE(&pio_spool.header->fault_device_bytes,
          ((uint64_t)used.ru_inblock - LOAD(&fault_blocks_before)) * DEVICE_BLOCK_BYTES);
    STORE(&pio_spool.header->major_faults, (uint64_t)used.ru_majflt - LOAD(&faults_before));
}

void pio_forget_faults(void) {
    faults_before = fault_blocks_before = 0;
}

/* Files in /dev/shm are memory already: MPI libraries map some before the program begins, which is no reason to count. */
static void count_mapping(int fd) {
    int saved = errno;
    bool counts = LOAD(&pio_files_mapped) != 0 || !pio_is_in_memory(fd);
    errno = saved;
    if (counts && __atomic_fetch_add(&pio_files_mapped, 1, __ATOMIC_RELAXED) == 0)
        begin_faults();
}

/* Memory without a file is for the system alone: allocators ask for it before anything can be looked up. */
#define MMAP_BODY(next_call)                                                                                           \
    if ((flags & MAP_ANONYMOUS) || fd < 0)                                                                             \
        return (void *)KERNEL(SYS_mmap, address, length, (long)protection, (long)flags, (long)fd, offset);             \
    if (!tracked(fd))                                                                                                  \
        return next_call;                                                                                              \
    struct pioscope_span span;                                                                                         \
    pio_span_begin(&span);                                                                                             \
    void *mapped = next_call;                                                                                          \
    count_mapping(fd);                                                                                                 \
    pio_finish_simple(&span, PIO_CALL_MMAP, fd, (uint64_t)offset, length, mapped == MAP_FAILED ? -1 : 0);              \
    return mapped;

DECLARE_NEXT(mmap)
EXPORT void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
    MMAP_BODY(NEXT(mmap)(address, length, protection, flags, fd, offset))
}

DECLARE_NEXT(mmap64)
EXPORT void *mmap64(void *address, size_t length, int protection, int flags, int fd, off64_t offset) {
    MMAP_BODY(NEXT(mmap64)(address, length, protection, flags, fd, offset))
}

DECLARE_NEXT(msync)
EXPORT int msync(void *address, size_t length, int flags) {
    MSYNC_BODY(length, NEXT(msync)(address, length, flags))
}
