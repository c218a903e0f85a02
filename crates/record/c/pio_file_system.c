#include "pio_file_system.h"
#include "pio_ids.h"
#include "pio_kernel.h"
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

uint64_t pio_tell_device(uint64_t device, int fd) {
    bool is_new;
    uint64_t *place = device == 0 ? NULL : pio_place_of(device, devices, MOST_DEVICES, 0, true, &is_new);
    if (place == NULL)
        return 0;
    if (is_new && !define_device(device, fd)) {
        STORE(place, 0);
        return 0;
    }
    return device;
}
