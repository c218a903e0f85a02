#include "pio_hook.h"
#include "pio_file_system.h"
#include "pio_kernel.h"
#include "pio_names.h"
#include "pio_paths.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

__attribute__((noinline)) bool pio_adopt(int fd) {
    int saved = errno;
    char *path = pio_take_path_buffer();
    uint64_t device;
    size_t length = pio_path_of_descriptor(fd, path, &device);
    bool appends = false;
    if (length > 0) {
        meet_thread();
        struct pioscope_span now = {now_ns(), 0, 0};
        off_t position = (off_t)KERNEL(SYS_lseek, fd, 0, SEEK_CUR);
        long mode = KERNEL(SYS_fcntl, fd, F_GETFL);
        appends = mode >= 0 && (mode & O_APPEND);
        record_call(&now, now.start_ns,
                    (struct outcome){.call = PIO_RECORD_ADOPT,
                                     .flags = appends ? PIO_APPEND : 0,
                                     .fd = fd,
                                     .offset = position < 0 ? 0 : (uint64_t)position,
                                     .size = length,
                                     .result = (int64_t)pio_tell_device(device, fd)},
                    path, length);
    }
    pio_give_path_buffer(path);
    pio_set_descriptor(fd, length == 0 ? IGNORED : appends ? APPENDS : EXACT);
    errno = saved;
    return length > 0;
}

/* Where a descriptor stood before a call that moved it on by `moved` bytes. */
static __attribute__((noinline)) uint64_t position_before(int fd, int64_t moved) {
    int saved = errno;
    off_t position = (off_t)KERNEL(SYS_lseek, fd, 0, SEEK_CUR);
    errno = saved;
    return position >= moved ? (uint64_t)(position - moved) : PIO_NO_OFFSET;
}

/* Where a write of `moved` bytes at the end of a file began. What others wrote there since then cannot be told apart. */
static __attribute__((noinline)) uint64_t end_before(int fd, size_t pending, int64_t moved) {
    int saved = errno;
    struct stat file;
    uint64_t end = KERNEL(SYS_fstat, fd, &file) == 0 && file.st_size >= 0 ? (uint64_t)file.st_size + pending : 0;
    errno = saved;
    return end >= (uint64_t)moved ? end - (uint64_t)moved : PIO_NO_OFFSET;
}

/* Where a call worked: at its offset, where the descriptor stood, or at the end of the file. */
enum place { AT_OFFSET, AT_POSITION, AT_END };

/* After a call that returned: writes its record and leaves errno alone. A negative result stands for errno. A call at the
 * descriptor's position moved it on from where it stood: if others move that, too, it is asked where that is. */
static inline __attribute__((always_inline)) void finish(const struct pioscope_span *span, uint32_t call, int fd,
                                                         uint64_t offset, uint64_t size, int64_t result,
                                                         enum place place, size_t pending) {
    uint64_t end_ns = end_of(span);
    bool spares = LIKELY(LOAD(&pio_spool.thinning) == 0) || pio_spared(call, result);
    if (UNLIKELY(result < 0))
        result = -(int64_t)errno;
    else if (place == AT_POSITION && offset == PIO_NO_OFFSET && LOAD(&pio_descriptors[fd]) >= EXACT && spares)
        offset = position_before(fd, result);
    else if (place == AT_END && spares)
        offset = end_before(fd, pending, result);
    if (LIKELY(spares)) {
        record_call(span, end_ns, (struct outcome){call, 0, fd, offset, size, result}, NULL, 0);
        span_over(span, end_ns);
    } else {
        span_is_dropped();
    }
}

__attribute__((noinline, hot)) void pio_finish_simple(const struct pioscope_span *span, uint32_t call, int fd,
                                                      uint64_t offset, uint64_t size, int64_t result) {
    finish(span, call, fd, offset, size, result, AT_OFFSET, 0);
}

__attribute__((noinline, hot)) void pio_finish_data(const struct pioscope_span *span, uint32_t call, int fd,
                                                    uint64_t offset, uint64_t size, int64_t result) {
    finish(span, call, fd, offset, size, result, AT_POSITION, 0);
}

__attribute__((noinline)) void pio_finish_appended(const struct pioscope_span *span, uint32_t call, int fd,
                                                   size_t pending, uint64_t size, int64_t result) {
    finish(span, call, fd, PIO_NO_OFFSET, size, result, AT_END, pending);
}

/* The C library refuses some paths, and does not say whether it could read them: then we do not, either. */
__attribute__((noinline)) void pio_finish_name(const struct pioscope_span *span, uint32_t call, uint32_t flags,
                                               int folder, const char *name, uint64_t size, int64_t result) {
    int saved = errno;
    uint64_t end_ns = end_of(span), id;
    bool is_readable = name != NULL && (result >= 0 || (saved != EFAULT && saved != ENAMETOOLONG));
    bool spares = is_readable && (LOAD(&pio_spool.thinning) == 0 || pio_spared(call, result));
    if (spares && pio_is_name_kept(folder, name, &id)) {
        result = result < 0 ? -(int64_t)saved : 0;
        record_call(span, end_ns, (struct outcome){call, flags, -1, id, size, result}, NULL, 0);
        span_over(span, now_ns()); /* our own work is not thinking */
    } else {
        span_is_dropped();
    }
    errno = saved;
}
