#include "pio_file_system.h"
#include "pio_kernel.h"
#include "pio_status.h"
#include "pio_writer.h"

#include <string.h>
#include <sys/statfs.h>

/* A process opens files of a few devices. Of further ones the kind is not known. */
#define MOST_DEVICES 64u

static uint64_t devices[MOST_DEVICES];

void pio_forget_devices(void) {
    memset(devices, 0, sizeof devices);
}

static bool define_device(uint64_t device, int fd) {
    struct statfs found;
    if (KERNEL(SYS_fstatfs, fd, &found) != 0)
        return false;
    struct pio_record *record = pio_reserve(1);
    if (record == NULL)
        return false;
    record->offset = device;
    record->size = (uint32_t)found.f_type; /* its type differs between architectures; the number has 32 bits */
    publish(record, PIO_RECORD_DEVICE, 1, 0);
    return true;
}

uint64_t pio_device_of(int fd) {
    uint64_t device = pio_status_of(fd).device;
    for (size_t place = 0; device != 0 && place < MOST_DEVICES; place++) {
        uint64_t seen = LOAD(&devices[place]);
        if (seen == 0 && __atomic_compare_exchange_n(&devices[place], &seen, device, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            if (define_device(device, fd))
                return device;
            STORE(&devices[place], 0);
            return 0;
        }
        if (seen == device)
            return device;
    }
    return 0;
}
