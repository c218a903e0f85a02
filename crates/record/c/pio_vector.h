/* Arrays of buffers. */
#ifndef PIO_VECTOR_H
#define PIO_VECTOR_H

#include "pio_kernel.h"

#include <limits.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#pragma GCC visibility push(hidden)

/* Bytes that an array of buffers holds; not looked at if the kernel refused it. */
static inline uint64_t vector_bytes(const struct iovec *vector, int count, ssize_t result) {
    uint64_t sum = 0;
    if (result >= 0)
        for (int i = 0; i < count; i++)
            sum += vector[i].iov_len;
    return sum;
}

/* Bytes that an array of buffers holds which the kernel has not looked at yet; 0 for one that it will refuse. */
static inline uint64_t given_vector_bytes(const struct iovec *vector, uint64_t count) {
    return may_be_mapped(vector) && count <= IOV_MAX ? vector_bytes(vector, (int)count, 0) : 0;
}

#pragma GCC visibility pop

#endif
