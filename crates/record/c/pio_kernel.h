/* System calls of the recorder's own, which no hook sees. */
#ifndef PIO_KERNEL_H
#define PIO_KERNEL_H

#include "pio_common.h"

#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/utsname.h>

/* Where the headers are older than Linux 5.9; the numbers are those of all processors. */
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif

#pragma GCC visibility push(hidden)

/* As the C library's syscall(), past ours and those of other libraries that stand for it; also before anything can be looked up. */
long pio_kernel(long number, ...);
#define KERNEL pio_kernel

/* Whether there may be something at an address that the kernel has not looked at yet: below 64 KiB it maps nothing, and programs that
 * try what a wrong address does give such a one. */
static inline bool may_be_mapped(const void *address) {
    return (uintptr_t)address >= 65536 && (intptr_t)address > 0;
}

/* Whether a program's own pointer to a name can be followed. */
bool pio_can_read(const char *name);

/* What the file holds, up to `size` bytes: their number, 0 if it cannot be read. */
size_t pio_read_small_file(const char *path, char *buffer, size_t size);

/* How long a thread has waited for a processor, nanoseconds, by its schedstat (proc(5)); -1 if the kernel does not say. */
int64_t pio_waited_ns(const char *schedstat);

/* Makes the host's name fit to be part of a file's. */
void pio_host_name(struct utsname *names);

/* Room for a path, PATH_MAX bytes. NULL if there is no memory; errno may change. */
char *pio_take_path_buffer(void);
void pio_give_path_buffer(char *buffer);

#pragma GCC visibility pop

#endif
