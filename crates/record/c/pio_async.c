/* Operations in flight: submitted, and not yet known to be complete. Part of pio_posix.c; for libaio and io_uring.
 *
 * The record of an operation is written when it is submitted, as unfinished, and gets its time and result when its
 * completion is seen: a process that is killed in between leaves it so. */

/* Read and write that an operation stands for: `second` only for a copy. */
struct operation {
    uint64_t key; /* what the completion names: several operations may share it, and end in their order */
    struct pio_record *record, *second;
    uint32_t next; /* in its chain, + 1 */
    bool opens;
    int32_t directly; /* of an open into a place that the kernel chooses: our number of the file */
};

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

/* NULL if there is no memory. A forked child does not have it. */
static struct in_flight *new_in_flight(uint32_t least) {
    uint32_t places = 256;
    while (places < least && places < 1u << 20)
        places *= 2;
    void *memory = (void *)KERNEL_MMAP(NULL, in_flight_bytes(places), PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    madvise(memory, in_flight_bytes(places), MADV_DONTFORK);
    struct in_flight *table = memory;
    table->places = places;
    table->chains = (struct chain *)(table->operations + places);
    return table;
}

static void free_in_flight(struct in_flight *table) {
    if (table != NULL)
        KERNEL(SYS_munmap, table, in_flight_bytes(table->places));
}

/* False in a signal handler that interrupted who holds a table. */
static bool hold_in_flight(struct in_flight *table) {
    if (holds_in_flight)
        return false;
    holds_in_flight = true;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    while (__atomic_exchange_n(&table->is_locked, 1, __ATOMIC_ACQUIRE) != 0)
        sched_yield();
    return true;
}

static void release_in_flight(struct in_flight *table) {
    RELEASE(&table->is_locked, 0);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    holds_in_flight = false;
}

static struct chain *chain_of(struct in_flight *table, uint64_t key) {
    return &table->chains[(key * 0x9e3779b97f4a7c15u >> 32) & (table->places - 1)];
}

/* A place for one more, empty but for its key; NULL if all are taken. */
static struct operation *add_operation(struct in_flight *table, uint64_t key) {
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

/* The oldest of this key; it leaves the table unless more completions of it will come. False if there is none. */
static bool take_operation(struct in_flight *table, uint64_t key, bool stays, struct operation *taken) {
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

/* The record of an operation that is about to be submitted; NULL if the budget or the room does not allow one. */
static struct pio_record *begin_async(struct pioscope_span *span, uint32_t call, int fd, uint64_t offset,
                                      uint64_t size) {
    if (LOAD(&spool.thinning) != 0 && !spared(call, (int64_t)size))
        return NULL;
    struct pio_record *record = reserve(1);
    if (record == NULL)
        return NULL;
    record->fd = fd;
    record->start_ns = span->start_ns;
    record->think_ns = span->think_ns;
    record->offset = offset;
    record->size = size;
    record->operation = self.operation;
    publish(record, call, 1, PIO_ASYNC | PIO_UNFINISHED | (self.operation != 0 ? PIO_PHYSICAL : 0));
    span->think_ns = 0; /* what is submitted together was thought of once */
    return record;
}

/* It was not submitted after all. */
static void forget_async(struct pio_record *record) {
    if (record != NULL)
        publish(record, PIO_RECORD_NOTHING, 1, 0);
}
