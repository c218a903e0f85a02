/* 200 threads write 100 records of 8 bytes each, all to one file. argv: the file. */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static int fd;

static void *work(void *number) {
    long base = (long)number * 800;
    for (long i = 0; i < 100; i++)
        if (pwrite(fd, &i, 8, base + 8 * i) != 8)
            abort();
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[200];
    (void)argc;
    fd = open(argv[1], O_CREAT | O_WRONLY, 0600);
    for (long i = 0; i < 200; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i) != 0)
            return 1;
    for (int i = 0; i < 200; i++)
        pthread_join(threads[i], NULL);
    return close(fd);
}
