/* Opens files while another thread waits for its children. argv: a file. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static void *wait_for_two(void *nothing) {
    for (int i = 0; i < 2; i++)
        if (fork() == 0) {
            usleep(300000);
            _exit(0);
        }
    while (wait(NULL) > 0)
        ;
    return nothing;
}

int main(int count, char **words) {
    pthread_t thread;
    int first = count == 2 ? open(words[1], O_CREAT | O_WRONLY, 0600) : -1;
    if (first < 0 || pthread_create(&thread, NULL, wait_for_two, NULL) != 0)
        return 1;
    usleep(100000);
    int second = open(words[1], O_WRONLY);
    pthread_join(thread, NULL);
    return second == first + 1 ? 0 : 2;
}
