#include "pio_async.h"
#include "pio_kernel.h"

#include <sched.h>
#include <sys/mman.h>

/* A table of them, by key, in memory of its own. */
struct in_flight {
    uint32_t is_locked;
    uint32_t places; /* a power of two */
    uint32_t used;   /* places that were ever taken */
    uint32_t free;   /* first of the chain of those that are free again, + 1 */
    struct chain {
        uint32_t first, last; /* + 1 */
    } *chains;
    struct operation operations[];
};

/* Whether this thread holds a table: a signal handler must not wait for it. */
static __thread bool holds_in_flight __attribute__((tls_model("initial-exec")));

static size_t in_flight_bytes(uint32_t places) {
    return sizeof(struct in_flight) + places * (sizeof(struct operation) + sizeof(struct chain));
}

struct in_flight *pio_new_in_flight(uint32_t least) {
    uint32_t places = 256;
    while (places < least && places < 1u << 20)
        places *= 2;
    void *memory = (void *)KERNEL(SYS_mmap, NULL, in_flight_bytes(places), PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    madvise(memory, in_flight_bytes(places), MADV_DONTFORK);
    struct in_flight *table = memory;
    table->places = places;
    table->chains = (struct chain *)(table->operations + places);
    return table;
}

void pio_free_in_flight(struct in_flight *table) {
    if (table != NULL)
        KERNEL(SYS_munmap, table, in_flight_bytes(table->places));
}

struct in_flight *pio_in_flight_at(struct in_flight **place, uint32_t least) {
    struct in_flight *table = ACQUIRE(place);
    if (UNLIKELY(table == NULL)) {
        struct in_flight *fresh = pio_new_in_flight(least);
        if (__atomic_compare_exchange_n(place, &table, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return fresh;
        pio_free_in_flight(fresh);
    }
    return table;
}

bool pio_hold_in_flight(struct in_flight *table) {
    if (holds_in_flight)
        return false;
    holds_in_flight = true;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    while (__atomic_exchange_n(&table->is_locked, 1, __ATOMIC_ACQUIRE) != 0)
        sched_yield();
    return true;
}

void pio_release_in_flight(struct in_flight *table) {
    RELEASE(&table->is_locked, 0);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    holds_in_flight = false;
}

void pio_forget_holds(void) {
    holds_in_flight = false;
}

static struct chain *chain_of(struct in_flight *table, uint64_t key) {
    return &table->chains[(key * 0x9e3779b97f4a7c15u >> 32) & (table->places - 1)];
}

struct operation *pio_add_operation(struct in_flight *table, uint64_t key) {
    uint32_t place = table->free;
    if (place == 0 && table->used == table->places)
        return NULL;
    if (place == 0)
        place = ++table->used;
    else
        table->free = table->operations[place - 1].next;
    struct operation *operation = &table->operations[place - 1];
    *operation = (struct operation){.key = key};
    struct chain *chain = chain_of(table, key);
    if (chain->first == 0)
        chain->first = place;
    else
        table->operations[chain->last - 1].next = place;
    chain->last = place;
    return operation;
}

bool pio_take_operation(struct in_flight *table, uint64_t key, bool stays, struct operation *taken) {
    struct chain *chain = chain_of(table, key);
    uint32_t before = 0;
    for (uint32_t place = chain->first; place != 0; before = place, place = table->operations[place - 1].next) {
        struct operation *operation = &table->operations[place - 1];
        if (operation->key != key)
            continue;
        *taken = *operation;
        if (stays)
            return true;
        if (before == 0)
            chain->first = operation->next;
        else
            table->operations[before - 1].next = operation->next;
        if (chain->last == place)
            chain->last = before;
        operation->next = table->free;
        table->free = place;
        return true;
    }
    return false;
}

struct pio_record *pio_begin_async(struct pioscope_span *span, uint32_t call, int fd, uint64_t offset,
                                   uint64_t size) {
    if (LOAD(&pio_spool.thinning) != 0 && !pio_spared(call, (int64_t)size))
        return NULL;
    struct pio_record *record = pio_reserve(1);
    if (record == NULL)
        return NULL;
    record->fd = fd;
    record->start_ns = span->start_ns;
    record->think_ns = span->think_ns;
    record->offset = offset;
    record->size = size;
    record->operation = pio_self.operation;
    publish(record, call, 1, PIO_ASYNC | PIO_UNFINISHED | (pio_self.operation != 0 ? PIO_PHYSICAL : 0));
    span->think_ns = 0; /* what is submitted together was thought of once */
    return record;
}

void pio_forget_async(struct pio_record *record) {
    if (record != NULL)
        publish(record, PIO_RECORD_NOTHING, 1, 0);
}
