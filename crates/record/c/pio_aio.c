/* POSIX asynchronous I/O, which the C library does in threads of its own.
 *
 * An operation lasts until the program learns that it is complete: by whichever of these calls it asks first. */
#include "pio_aio.h"
#include "pio_async.h"
#include "pio_hook.h"

#include <aio.h>
#include <string.h>

#define MOST_CONTROLS 65536u

/* By the address of the control block. */
static struct in_flight *controls;

void pio_forget_controls(void) {
    controls = NULL;
    pio_forget_holds();
}

static struct in_flight *controls_in_flight(void) {
    return pio_in_flight_at(&controls, MOST_CONTROLS);
}

/* Submission ------------------------------------------------------------------------------------------------------- */

static struct pio_record *begin_control(struct pioscope_span *span, uint32_t call, const struct aiocb *asked) {
    bool moves = call == PIO_CALL_AIO_READ || call == PIO_CALL_AIO_WRITE;
    return pio_begin_async(span, call, asked->aio_fildes, moves ? (uint64_t)asked->aio_offset : PIO_NO_OFFSET,
                           moves ? asked->aio_nbytes : 0);
}

/* Before a submission: from then on, another thread may see the completion. The table is held. */
static void begin_operation(struct in_flight *table, struct pioscope_span *span, uint32_t call,
                            const struct aiocb *control) {
    struct operation operation;
    /* One that the program never asked for, and that is over, as its control block is used again. */
    (void)pio_take_operation(table, (uintptr_t)control, false, &operation);
    struct operation *begun = pio_add_operation(table, (uintptr_t)control);
    if (begun != NULL)
        begun->record = begin_control(span, call, control);
    else
        pio_drop();
}

/* Completion ------------------------------------------------------------------------------------------------------- */

static void end_operation(const struct aiocb *control, int64_t result) {
    struct in_flight *table = ACQUIRE(&controls);
    if (table == NULL || !pio_hold_in_flight(table))
        return;
    int saved = errno;
    struct operation operation;
    if (pio_take_operation(table, (uintptr_t)control, false, &operation))
        pio_end_io_record(operation.record, result);
    pio_release_in_flight(table);
    errno = saved;
}

/* `error` is what aio_error says. */
static void see_error(const struct aiocb *control, int error) {
    if (error != EINPROGRESS && error >= 0 && recording() && is_owner())
        end_operation(control, error == 0 ? control->__return_value : -(int64_t)error);
}

DECLARE_NEXT(aio_error)

static void see_control(const struct aiocb *control) {
    int saved = errno;
    see_error(control, NEXT(aio_error)(control));
    errno = saved;
}

static void see_controls(const struct aiocb *const list[], int count) {
    if (ACQUIRE(&controls) == NULL)
        return;
    for (int i = 0; i < count; i++)
        if (list[i] != NULL)
            see_control(list[i]);
}

/* Lists ------------------------------------------------------------------------------------------------------------ */

static bool is_recorded(const struct aiocb *control) {
    return control != NULL && control->aio_lio_opcode != LIO_NOP && tracked(control->aio_fildes);
}

/* Before lio_listio: whether anything is recorded of it. */
static bool begin_list(struct pioscope_span *span, const struct aiocb *const list[], int count) {
    bool is_ours = false;
    if (!recording() || !is_owner())
        return false;
    for (int i = 0; i < count; i++)
        is_ours = is_recorded(list[i]) || is_ours;
    struct in_flight *table = is_ours ? controls_in_flight() : NULL;
    if (table == NULL || !pio_hold_in_flight(table))
        return false;
    int saved = errno;
    pio_span_begin(span);
    for (int i = 0; i < count; i++)
        if (is_recorded(list[i]))
            begin_operation(table, span, list[i]->aio_lio_opcode == LIO_READ ? PIO_CALL_AIO_READ : PIO_CALL_AIO_WRITE,
                            list[i]);
    pio_release_in_flight(table);
    errno = saved;
    return true;
}

/* After it. With EINVAL it has looked at none; with other errors each part says what became of it. */
static void end_list(const struct pioscope_span *span, int mode, const struct aiocb *const list[], int count,
                     int result) {
    int saved = errno;
    if (result < 0 && saved == EINVAL) {
        for (int i = 0; i < count; i++)
            if (is_recorded(list[i]))
                end_operation(list[i], -EINVAL);
    } else if (mode == LIO_WAIT || result < 0) {
        see_controls(list, count);
    }
    span_over(span, end_of(span));
    errno = saved;
}

/* Hooks ------------------------------------------------------------------------------------------------------------ */

/* `control` is named so in each. */
#define AIO_BODY(call, next_call)                                                                                      \
    const struct aiocb *asked = (const struct aiocb *)control;                                                         \
    struct in_flight *table = tracked(asked->aio_fildes) && is_owner() ? controls_in_flight() : NULL;                  \
    if (table == NULL || !pio_hold_in_flight(table))                                                                   \
        return next_call;                                                                                              \
    int saved = errno;                                                                                                 \
    struct pioscope_span span;                                                                                         \
    pio_span_begin(&span);                                                                                             \
    begin_operation(table, &span, call, asked);                                                                        \
    pio_release_in_flight(table);                                                                                      \
    errno = saved;                                                                                                     \
    int result = next_call;                                                                                            \
    saved = errno;                                                                                                     \
    if (result < 0)                                                                                                    \
        end_operation(asked, -(int64_t)saved);                                                                         \
    span_over(&span, end_of(&span));                                                                                   \
    errno = saved;                                                                                                     \
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
    DECLARE_NEXT(aio_error##suffix)                                                                                    \
    EXPORT int aio_error##suffix(const struct aiocb##suffix *control) {                                                \
        int error = NEXT(aio_error##suffix)(control);                                                                  \
        see_error((const struct aiocb *)control, error);                                                               \
        return error;                                                                                                  \
    }                                                                                                                  \
    DECLARE_NEXT(aio_return##suffix)                                                                                   \
    EXPORT ssize_t aio_return##suffix(struct aiocb##suffix *control) {                                                 \
        see_control((const struct aiocb *)control);                                                                    \
        return NEXT(aio_return##suffix)(control);                                                                      \
    }                                                                                                                  \
    DECLARE_NEXT(aio_suspend##suffix)                                                                                  \
    EXPORT int aio_suspend##suffix(const struct aiocb##suffix *const list[], int count,                                \
                                   const struct timespec *restrict limit) {                                            \
        int result = NEXT(aio_suspend##suffix)(list, count, limit);                                                    \
        see_controls((const struct aiocb *const *)list, count);                                                        \
        return result;                                                                                                 \
    }                                                                                                                  \
    DECLARE_NEXT(aio_cancel##suffix)                                                                                   \
    EXPORT int aio_cancel##suffix(int fd, struct aiocb##suffix *control) {                                             \
        int result = NEXT(aio_cancel##suffix)(fd, control);                                                            \
        if (control != NULL)                                                                                           \
            see_control((const struct aiocb *)control);                                                                \
        return result;                                                                                                 \
    }                                                                                                                  \
    DECLARE_NEXT(lio_listio##suffix)                                                                                   \
    EXPORT int lio_listio##suffix(int mode, struct aiocb##suffix *const list[restrict], int count,                     \
                                  struct sigevent *restrict told) {                                                    \
        const struct aiocb *const *asked = (const struct aiocb *const *)list;                                          \
        struct pioscope_span span;                                                                                     \
        bool is_ours = begin_list(&span, asked, count);                                                                \
        int result = NEXT(lio_listio##suffix)(mode, list, count, told);                                                \
        if (is_ours)                                                                                                   \
            end_list(&span, mode, asked, count, result);                                                               \
        return result;                                                                                                 \
    }

_Static_assert(sizeof(struct aiocb) == sizeof(struct aiocb64), "one layout for both");

HOOK_AIO()
HOOK_AIO(64)
