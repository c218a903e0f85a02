/* Writes pieces.bin in pieces of 1, 2, 4, … 512 KiB, eight of each. */
#include <fcntl.h>
#include <unistd.h>

static char block[512 << 10];

int main(void) {
    int file = open("pieces.bin", O_CREAT | O_WRONLY | O_TRUNC, 0644);
    for (size_t size = 1 << 10; size <= sizeof block; size *= 2)
        for (int i = 0; i < 8; i++)
            if (write(file, block, size) < 0)
                return 1;
    return close(file);
}
