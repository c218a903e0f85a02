/* Mapped files, asynchronous I/O, and system calls by number. Part of pio_posix.c. */

/* Mapped files ----------------------------------------------------------------------------------------------------- */

/* Memory without a file is for the system alone: allocators ask for it before anything can be looked up. */
#define MMAP_BODY(next_call)                                                                                           \
    if ((flags & MAP_ANONYMOUS) || fd < 0)                                                                             \
        return (void *)KERNEL_MMAP(address, length, protection, flags, fd, offset);                                    \
    if (!tracked(fd))                                                                                                  \
        return next_call;                                                                                              \
    struct pioscope_span span;                                                                                         \
    span_begin(&span);                                                                                                 \
    void *mapped = next_call;                                                                                          \
    if (__atomic_fetch_add(&files_mapped, 1, __ATOMIC_RELAXED) == 0)                                                   \
        begin_faults();                                                                                                \
    finish_simple(&span, PIO_CALL_MMAP, fd, (uint64_t)offset, length, mapped == MAP_FAILED ? -1 : 0);                  \
    return mapped;

#define KERNEL_MMAP(...) raw_mmap(__VA_ARGS__)

/* How many times a file was mapped so far: while it is 0, unmapping is no business of ours. */
static uint64_t files_mapped;

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

/* Faults that waited for a device since then: when the process ends. */
static void count_faults(void) {
    struct rusage used;
    if (LOAD(&files_mapped) == 0 || LOAD(alive) == 0 || !is_owner() || ACQUIRE(&spool.state) != SPOOL_OPEN ||
        KERNEL(SYS_getrusage, RUSAGE_SELF, &used) != 0)
        return;
    STORE(&spool.header->fault_device_bytes,
          ((uint64_t)used.ru_inblock - LOAD(&fault_blocks_before)) * DEVICE_BLOCK_BYTES);
    STORE(&spool.header->major_faults, (uint64_t)used.ru_majflt - LOAD(&faults_before));
}

/* What a rank's first thread waited for a processor, by the kernel's count: when the process ends. Its second number. */
static void count_processor_waits(void) {
    if (LOAD(alive) == 0 || !is_owner() || ACQUIRE(&spool.state) != SPOOL_OPEN || spool.header->rank < 0)
        return;
    char text[96];
    text[read_small_file("/proc/self/schedstat", text, sizeof text - 1)] = 0;
    const char *second = strchr(text, ' ');
    if (second != NULL)
        STORE(&spool.header->processor_waits_ns, (uint64_t)strtoull(second, NULL, 10) + 1);
}

/* In a forked child, whose faults the kernel counts from 0. */
static void forget_faults(void) {
    faults_before = fault_blocks_before = 0;
}

#if defined(__x86_64__)
static long raw_mmap(void *address, size_t length, int protection, int flags, int fd, off64_t offset) {
    register long r10 __asm__("r10") = flags;
    register long r8 __asm__("r8") = fd;
    register long r9 __asm__("r9") = offset;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(SYS_mmap), "D"(address), "S"(length), "d"((long)protection), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    if (result < 0 && result > -4096) {
        errno = (int)-result;
        return -1;
    }
    return result;
}
#else
static long raw_mmap(void *address, size_t length, int protection, int flags, int fd, off64_t offset) {
    return KERNEL(SYS_mmap, address, length, protection, flags, fd, offset);
}
#endif

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
    if (LOAD(&files_mapped) == 0 || !recording() || !is_owner())
        return NEXT(msync)(address, length, flags);
    struct pioscope_span span;
    span_begin(&span);
    int result = NEXT(msync)(address, length, flags);
    finish_simple(&span, PIO_CALL_MSYNC, -1, PIO_NO_OFFSET, length, result);
    return result;
}

/* Asynchronous I/O ------------------------------------------------------------------------------------------------- */

/* A call that was started is recorded as moving all that it was asked for; what aio_return says replaces that. Here are
 * the records that wait for it. Where two fall on one place, or no room is left, the first word stays. */
#define WAITING 1024
static struct {
    const struct aiocb *control;
    struct pio_record *record;
} waiting[WAITING];

/* In a forked child, whose records are not its parent's. */
static void forget_waiting(void) {
    memset(waiting, 0, sizeof waiting);
}

static size_t waiting_place(const struct aiocb *control) {
    return (size_t)((uintptr_t)control / sizeof *control * 0x9e3779b9u) % WAITING;
}

/* After a call that started (or failed to). `asked` is what stood in `control` before: another thread may have freed that
 * as soon as the call ran. */
static void finish_aio(const struct pioscope_span *span, uint32_t call, const struct aiocb *control,
                       const struct aiocb *asked, int result) {
    int saved = errno;
    uint64_t end_ns = end_of(span);
    struct pio_record *record = reserve(1);
    if (record != NULL) {
        bool moves = call == PIO_CALL_AIO_READ || call == PIO_CALL_AIO_WRITE;
        record->fd = asked->aio_fildes;
        record->start_ns = span->start_ns;
        record->elapsed_ns = end_ns - span->start_ns;
        record->think_ns = span->think_ns;
        record->offset = moves ? (uint64_t)asked->aio_offset : PIO_NO_OFFSET;
        record->size = moves ? asked->aio_nbytes : 0;
        record->result = result < 0 ? -(int64_t)saved : (int64_t)record->size;
        record->operation = self.operation;
        publish(record, call, 1, PIO_ASYNC | (self.operation != 0 ? PIO_PHYSICAL : 0));
        size_t place = waiting_place(control);
        if (result == 0 && moves) {
            RELEASE(&waiting[place].record, record);
            RELEASE(&waiting[place].control, control);
        }
    }
    span_over(span, end_ns);
    errno = saved;
}

static void finish_aio_return(const struct aiocb *control, ssize_t result) {
    size_t place = waiting_place(control);
    const struct aiocb *expected = control;
    struct pio_record *record = ACQUIRE(&waiting[place].record);
    if (__atomic_compare_exchange_n(&waiting[place].control, &expected, NULL, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED) &&
        record != NULL)
        STORE(&record->result, result < 0 ? -(int64_t)errno : result);
}

#define AIO_BODY(call, next_call)                                                                                      \
    if (!tracked(control->aio_fildes))                                                                                 \
        return next_call;                                                                                              \
    struct aiocb asked;                                                                                                \
    memcpy(&asked, control, sizeof asked);                                                                             \
    struct pioscope_span span;                                                                                         \
    span_begin(&span);                                                                                                 \
    int result = next_call;                                                                                            \
    finish_aio(&span, call, (const struct aiocb *)control, &asked, result);                                            \
    return result;

#define HOOK_AIO(suffix)                                                                                               \
    DECLARE_NEXT(aio_read##suffix)                                                                                     \
    EXPORT int aio_read##suffix(struct aiocb##suffix *control) {                                                       \
        AIO_BODY(PIO_CALL_AIO_READ, NEXT(aio_read##suffix)(control))                                                   \
    }                                                                                                                  \
    DECLARE_NEXT(aio_write##suffix)                                                                                    \
    EXPORT int aio_write##suffix(struct aiocb##suffix *control) {                                                      \
        AIO_BODY(PIO_CALL_AIO_WRITE, NEXT(aio_write##suffix)(control))                                                 \
    }                                                                                                                  \
    DECLARE_NEXT(aio_fsync##suffix)                                                                                    \
    EXPORT int aio_fsync##suffix(int operation, struct aiocb##suffix *control) {                                       \
        AIO_BODY(PIO_CALL_FSYNC, NEXT(aio_fsync##suffix)(operation, control))                                          \
    }                                                                                                                  \
    DECLARE_NEXT(aio_return##suffix)                                                                                   \
    EXPORT ssize_t aio_return##suffix(struct aiocb##suffix *control) {                                                 \
        ssize_t result = NEXT(aio_return##suffix)(control);                                                            \
        if (recording() && is_owner())                                                                                 \
            finish_aio_return((const struct aiocb *)control, result);                                                  \
        return result;                                                                                                 \
    }                                                                                                                  \
    /* Each part is a call of its own, and the time of starting them all is the first one's. */                        \
    DECLARE_NEXT(lio_listio##suffix)                                                                                   \
    EXPORT int lio_listio##suffix(int mode, struct aiocb##suffix *const list[restrict], int count,                     \
                                  struct sigevent *restrict told) {                                                    \
        if (!recording() || !is_owner())                                                                               \
            return NEXT(lio_listio##suffix)(mode, list, count, told);                                                  \
        struct pioscope_span span;                                                                                     \
        span_begin(&span);                                                                                             \
        int result = NEXT(lio_listio##suffix)(mode, list, count, told);                                                \
        for (int i = 0; i < count; i++) {                                                                              \
            if (list[i] == NULL || list[i]->aio_lio_opcode == LIO_NOP || !tracked(list[i]->aio_fildes))                \
                continue;                                                                                              \
            finish_aio(&span, list[i]->aio_lio_opcode == LIO_READ ? PIO_CALL_AIO_READ : PIO_CALL_AIO_WRITE,            \
                       (const struct aiocb *)list[i], (const struct aiocb *)list[i], result < 0 && errno != EIO && errno != EINTR ? result : 0);      \
            span.start_ns = self.end_ns;                                                                               \
            span.think_ns = 0;                                                                                         \
            span.cpu_ns = 0;                                                                                           \
        }                                                                                                              \
        return result;                                                                                                 \
    }

_Static_assert(sizeof(struct aiocb) == sizeof(struct aiocb64), "one layout for both");

HOOK_AIO()
HOOK_AIO(64)

/* Older headers do not know these. */
#ifndef SYS_io_uring_setup
#define SYS_io_uring_setup 425
#define SYS_io_uring_enter 426
#define SYS_io_uring_register 427
#endif

/* By number -------------------------------------------------------------------------------------------------------- */

/* Some programs make the same calls by number. Those that return as the functions do are the functions. */
static long libaio_syscall(long number, long a, long b, long c, long d, long e, long f); /* pio_libaio.c */
struct ring_params; /* pio_uring.c */
static long ring_setup(long entries, struct ring_params *made);
static long ring_enter(int fd, long count, long least, long flags, long argument, long bytes);
static long ring_register(int fd, long what, const void *argument, long count);

EXPORT long syscall(long number, ...) {
    va_list arguments;
    va_start(arguments, number);
    long a = va_arg(arguments, long), b = va_arg(arguments, long), c = va_arg(arguments, long),
         d = va_arg(arguments, long), e = va_arg(arguments, long), f = va_arg(arguments, long);
    va_end(arguments);
    switch (number) {
    case SYS_read:
        return read((int)a, (void *)b, (size_t)c);
    case SYS_write:
        return write((int)a, (const void *)b, (size_t)c);
    case SYS_pread64:
        return pread64((int)a, (void *)b, (size_t)c, d);
    case SYS_pwrite64:
        return pwrite64((int)a, (const void *)b, (size_t)c, d);
    case SYS_readv:
        return readv((int)a, (const struct iovec *)b, (int)c);
    case SYS_writev:
        return writev((int)a, (const struct iovec *)b, (int)c);
    case SYS_openat:
        return openat64((int)a, (const char *)b, (int)c, (mode_t)d);
    case SYS_close:
        return close((int)a);
    case SYS_close_range:
        return close_range((unsigned)a, (unsigned)b, (int)c);
    case SYS_lseek:
        return lseek64((int)a, b, (int)c);
    case SYS_fsync:
        return fsync((int)a);
    case SYS_fdatasync:
        return fdatasync((int)a);
    case SYS_statx:
        return statx((int)a, (const char *)b, (int)c, (unsigned)d, (struct statx *)e);
    case SYS_copy_file_range:
        return copy_file_range((int)a, (off64_t *)b, (int)c, (off64_t *)d, (size_t)e, (unsigned)f);
    case SYS_sendfile:
        return sendfile64((int)a, (int)b, (off64_t *)c, (size_t)d);
    case SYS_io_submit:
    case SYS_io_getevents:
    case SYS_io_cancel:
#ifdef SYS_io_pgetevents
    case SYS_io_pgetevents:
#endif
        return libaio_syscall(number, a, b, c, d, e, f);
    case SYS_io_uring_setup:
        return ring_setup(a, (struct ring_params *)b);
    case SYS_io_uring_enter:
        return ring_enter((int)a, b, c, d, e, f);
    case SYS_io_uring_register:
        return ring_register((int)a, b, (const void *)c, d);
    default:
        return KERNEL(number, a, b, c, d, e, f);
    }
}
