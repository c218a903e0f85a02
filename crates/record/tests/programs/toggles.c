/* One thread sends messages to itself and receives them without a status, while another opens and closes a file. argv: the file. */
#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>

static bool is_over;
static const char *name;

static void *open_and_close(void *unused) {
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
        MPI_File file;
        if (MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) == MPI_SUCCESS)
            MPI_File_close(&file);
    }
    return unused;
}

int main(int argc, char **argv) {
    int provided, sent = 0, received;
    pthread_t thread;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    name = argv[1];
    if (provided == MPI_THREAD_MULTIPLE && pthread_create(&thread, NULL, open_and_close, NULL) == 0) {
        double start = MPI_Wtime();
        while (MPI_Wtime() - start < 1) {
            MPI_Request request;
            MPI_Isend(&sent, 1, MPI_INT, 0, 7, MPI_COMM_SELF, &request);
            MPI_Recv(&received, 1, MPI_INT, 0, 7, MPI_COMM_SELF, MPI_STATUS_IGNORE);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        __atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
        pthread_join(thread, NULL);
    }
    return MPI_Finalize();
}
