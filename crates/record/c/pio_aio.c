#include "pio_aio.h"
#include "pio_hook.h"

#include <aio.h>
#include <string.h>

/* A call that was started is recorded as moving all that it was asked for; what aio_return says replaces that. Here are
 * the records that wait for it. Where two fall on one place, or no room is left, the first word stays. */
#define WAITING 1024
static struct {
    const struct aiocb *control;
    struct pio_record *record;
} waiting[WAITING];

void pio_forget_waiting(void) {
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
    struct pio_record *record = pio_reserve(1);
    if (record != NULL) {
        bool moves = call == PIO_CALL_AIO_READ || call == PIO_CALL_AIO_WRITE;
        record->fd = asked->aio_fildes;
        record->start_ns = span->start_ns;
        record->elapsed_ns = end_ns - span->start_ns;
        record->think_ns = span->think_ns;
        record->offset = moves ? (uint64_t)asked->aio_offset : PIO_NO_OFFSET;
        record->size = moves ? asked->aio_nbytes : 0;
        record->result = result < 0 ? -(int64_t)saved : (int64_t)record->size;
        record->operation = pio_self.operation;
        publish(record, call, 1, PIO_ASYNC | (pio_self.operation != 0 ? PIO_PHYSICAL : 0));
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
    pio_span_begin(&span);                                                                                             \
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
        pio_span_begin(&span);                                                                                         \
        int result = NEXT(lio_listio##suffix)(mode, list, count, told);                                                \
        for (int i = 0; i < count; i++) {                                                                              \
            if (list[i] == NULL || list[i]->aio_lio_opcode == LIO_NOP || !tracked(list[i]->aio_fildes))                \
                continue;                                                                                              \
            finish_aio(&span, list[i]->aio_lio_opcode == LIO_READ ? PIO_CALL_AIO_READ : PIO_CALL_AIO_WRITE,            \
                       (const struct aiocb *)list[i], (const struct aiocb *)list[i], result < 0 && errno != EIO && errno != EINTR ? result : 0); \
            span.start_ns = pio_self.end_ns;                                                                           \
            span.think_ns = 0;                                                                                         \
            span.cpu_ns = 0;                                                                                           \
        }                                                                                                              \
        return result;                                                                                                 \
    }

_Static_assert(sizeof(struct aiocb) == sizeof(struct aiocb64), "one layout for both");

HOOK_AIO()
HOOK_AIO(64)
