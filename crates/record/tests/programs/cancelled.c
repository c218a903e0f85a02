/* Threads that are cancelled while they write and read a stream, which the program uses afterwards. argv: a file of 100 000 bytes. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static FILE *stream;
static char data[65536];

static void *writes(void *nothing) {
    pthread_cancel(pthread_self());
    fwrite(data, 1, sizeof data, stream);
    return nothing;
}

static void *reads(void *nothing) {
    pthread_cancel(pthread_self());
    fread(data, 1, sizeof data, stream);
    return nothing;
}

static void *scans(void *nothing) {
    pthread_cancel(pthread_self());
    int found;
    fscanf(stream, "%d", &found);
    return nothing;
}

int main(int count, char **words) {
    void *(*const all[])(void *) = {writes, reads, scans};
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        void *result;
        alarm(20);
        stream = count < 2 ? NULL : fopen(words[1], "r+");
        if (stream == NULL || pthread_create(&thread, NULL, all[i], NULL) != 0 || pthread_join(thread, &result) != 0 ||
            result != PTHREAD_CANCELED || fseek(stream, 0, SEEK_SET) != 0 || fwrite("1234567", 1, 7, stream) != 7 ||
            fclose(stream) != 0)
            return 1 + i;
    }
    return 0;
}
