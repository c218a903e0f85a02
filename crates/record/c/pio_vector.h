/* Arrays of buffers. */
#ifndef PIO_VECTOR_H
#define PIO_VECTOR_H

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

#pragma GCC visibility pop

#endif
