/* The functions return minus the error number, the system calls set errno. */
#include "pio_libaio.h"
#include "pio_async.h"
#include "pio_copies.h"
#include "pio_hook.h"
#include "pio_kernel.h"
#include "pio_vector.h"

#include <linux/aio_abi.h>
#include <time.h>

int io_submit(aio_context_t context, long count, struct iocb **list);
int io_cancel(aio_context_t context, struct iocb *control, struct io_event *event);
int io_getevents(aio_context_t context, long least, long most, struct io_event *events, struct timespec *limit);
int io_pgetevents(aio_context_t context, long least, long most, struct io_event *events, struct timespec *limit,
                  void *signals);

#define MOST_IOCBS 65536u /* the kernel's own limit for a machine, as it comes */

static struct library libaio = {.probe = "io_submit"};
static struct in_flight *iocbs;

/* Whether this thread is inside a function of libaio, whose system calls are then no calls of the program's. */
static __thread bool inside_libaio __attribute__((tls_model("initial-exec")));

static struct in_flight *iocbs_in_flight(void) {
    return pio_in_flight_at(&iocbs, MOST_IOCBS);
}

static struct pio_record *begin_iocb(struct pioscope_span *span, const struct iocb *asked) {
    int fd = (int)asked->aio_fildes;
    uint64_t offset = (uint64_t)asked->aio_offset, size = asked->aio_nbytes;
    const struct iovec *vector = (const struct iovec *)(uintptr_t)asked->aio_buf;
    switch (asked->aio_lio_opcode) {
    case IOCB_CMD_PREAD:
        return pio_begin_async(span, PIO_CALL_LIBAIO_READ, fd, offset, size);
    case IOCB_CMD_PWRITE:
        return pio_begin_async(span, PIO_CALL_LIBAIO_WRITE, fd, offset, size);
    case IOCB_CMD_PREADV:
        return pio_begin_async(span, PIO_CALL_LIBAIO_READ, fd, offset, given_vector_bytes(vector, size));
    case IOCB_CMD_PWRITEV:
        return pio_begin_async(span, PIO_CALL_LIBAIO_WRITE, fd, offset, given_vector_bytes(vector, size));
    case IOCB_CMD_FSYNC:
        return pio_begin_async(span, PIO_CALL_FSYNC, fd, PIO_NO_OFFSET, 0);
    case IOCB_CMD_FDSYNC:
        return pio_begin_async(span, PIO_CALL_FDATASYNC, fd, PIO_NO_OFFSET, 0);
    default:
        return NULL;
    }
}

/* Before a submission: from then on, another thread may see completions. False if nothing is recorded of it. */
static bool begin_submission(struct pioscope_span *span, long count, struct iocb **list) {
    bool is_ours = false;
    if (inside_libaio || !recording() || !is_owner() || !may_be_mapped(list))
        return false;
    for (long i = 0; i < count; i++) {
        if (!may_be_mapped(list[i]))
            count = i; /* the kernel takes those before it */
        else
            is_ours = tracked((int)list[i]->aio_fildes) || is_ours;
    }
    struct in_flight *table = is_ours ? iocbs_in_flight() : NULL;
    if (table == NULL || !pio_hold_in_flight(table))
        return false;
    int saved = errno;
    pio_span_begin(span);
    for (long i = 0; i < count; i++) {
        if (!tracked((int)list[i]->aio_fildes))
            continue;
        struct operation *operation = pio_add_operation(table, (uintptr_t)list[i]);
        if (operation != NULL)
            operation->record = begin_iocb(span, list[i]);
        else
            pio_drop();
    }
    pio_release_in_flight(table);
    errno = saved;
    return true;
}

/* After it: `result` of them were submitted, or minus the error of the first. */
static void end_submission(const struct pioscope_span *span, long count, struct iocb **list, long result) {
    int saved = errno;
    struct in_flight *table = iocbs_in_flight();
    if (result < count && pio_hold_in_flight(table)) {
        for (long i = result < 0 ? 0 : result; i < count; i++) {
            struct operation operation;
            if (!pio_take_operation(table, (uintptr_t)list[i], false, &operation))
                continue;
            if (i == 0 && result < 0 && result != -EAGAIN && result != -EINTR)
                pio_end_io_record(operation.record, result);
            else
                pio_forget_async(operation.record);
        }
        pio_release_in_flight(table);
    }
    span_over(span, end_of(span));
    errno = saved;
}

static void see_events(const struct io_event *events, long count) {
    struct in_flight *table = ACQUIRE(&iocbs);
    if (inside_libaio || count <= 0 || table == NULL || !recording() || !is_owner() || !pio_hold_in_flight(table))
        return;
    int saved = errno;
    for (long i = 0; i < count; i++) {
        struct operation operation;
        if (pio_take_operation(table, events[i].obj, false, &operation))
            pio_end_io_record(operation.record, events[i].res);
    }
    pio_release_in_flight(table);
    errno = saved;
}

void pio_forget_iocbs(void) {
    iocbs = NULL;
    pio_forget_holds();
}

/* `theirs`, the library's own function; that of a program without the library cannot be called. */
#define LIBAIO_THEIRS(name)                                                                                            \
    static void *place;                                                                                                \
    struct copy *copy = pio_copy_of(&libaio, __builtin_return_address(0));                                             \
    __typeof__(&name) theirs = copy == NULL ? NULL : (__typeof__(&name))pio_function_of(copy, &place, #name);          \
    if (theirs == NULL)                                                                                                \
        return -ENOSYS;

EXPORT int io_submit(aio_context_t context, long count, struct iocb **list) {
    LIBAIO_THEIRS(io_submit)
    struct pioscope_span span;
    bool is_recorded = begin_submission(&span, count, list);
    bool was_inside = inside_libaio;
    inside_libaio = true;
    int result = theirs(context, count, list);
    inside_libaio = was_inside;
    if (is_recorded)
        end_submission(&span, count, list, result);
    return result;
}

#define LIBAIO_EVENTS(events, next_call)                                                                               \
    bool was_inside = inside_libaio;                                                                                   \
    inside_libaio = true;                                                                                              \
    int result = next_call;                                                                                            \
    inside_libaio = was_inside;                                                                                        \
    see_events(events, result);                                                                                        \
    return result;

EXPORT int io_getevents(aio_context_t context, long least, long most, struct io_event *events,
                        struct timespec *limit) {
    LIBAIO_THEIRS(io_getevents)
    LIBAIO_EVENTS(events, theirs(context, least, most, events, limit))
}

EXPORT int io_pgetevents(aio_context_t context, long least, long most, struct io_event *events,
                         struct timespec *limit, void *signals) {
    LIBAIO_THEIRS(io_pgetevents)
    LIBAIO_EVENTS(events, theirs(context, least, most, events, limit, signals))
}

EXPORT int io_cancel(aio_context_t context, struct iocb *control, struct io_event *event) {
    LIBAIO_THEIRS(io_cancel)
    bool was_inside = inside_libaio;
    inside_libaio = true;
    int result = theirs(context, control, event);
    inside_libaio = was_inside;
    see_events(event, result == 0 ? 1 : 0);
    return result;
}

/* Programs that were linked long ago have these under the library's first version: io_getevents waits for one event at
 * least, and io_cancel does not tell the event. The library has both on top of the later ones, as we have. */
EXPORT int pio_libaio_getevents_0_1(aio_context_t context, long most, struct io_event *events,
                                    const struct timespec *limit) {
    struct timespec copied = limit == NULL ? (struct timespec){0, 0} : *limit;
    LIBAIO_THEIRS(io_getevents)
    LIBAIO_EVENTS(events, theirs(context, 1, most, events, limit == NULL ? NULL : &copied))
}
__asm__(".symver pio_libaio_getevents_0_1, io_getevents@LIBAIO_0.1");

EXPORT int pio_libaio_cancel_0_1(aio_context_t context, struct iocb *control) {
    struct io_event event;
    return io_cancel(context, control, &event);
}
__asm__(".symver pio_libaio_cancel_0_1, io_cancel@LIBAIO_0.1");
__asm__(".symver io_getevents, io_getevents@@@LIBAIO_0.4");
__asm__(".symver io_cancel, io_cancel@@@LIBAIO_0.4");

long pio_numbered_libaio(const struct numbered *asked) {
    struct iocb **list = (struct iocb **)asked->c;
    struct pioscope_span span;
    bool is_recorded = asked->number == SYS_io_submit && begin_submission(&span, asked->b, list);
    long result = pass_on(asked);
    if (is_recorded)
        end_submission(&span, asked->b, list, result < 0 ? -errno : result);
    else if (asked->number == SYS_io_cancel)
        see_events((const struct io_event *)asked->c, result == 0 ? 1 : 0);
    else if (asked->number != SYS_io_submit)
        see_events((const struct io_event *)asked->d, result);
    return result;
}
