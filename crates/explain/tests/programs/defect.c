/* Programs of one process, or a few that fork, each with one defect in its I/O; and clean ones.
 *
 * defect NAME: works in the current folder, in which what "prepare" made may be read. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB (1 << 20)

static char *buffer;

static void check(int ok, const char *what) {
    if (!ok) {
        perror(what);
        exit(1);
    }
}

static int open_file(const char *name, int flags) {
    int fd = open(name, flags, 0644);
    check(fd >= 0, name);
    return fd;
}

static int create(const char *name) { return open_file(name, O_RDWR | O_CREAT | O_TRUNC); }

static void put(int fd, size_t bytes, off_t offset) {
    check(pwrite(fd, buffer, bytes, offset) == (ssize_t)bytes, "pwrite");
}

static void get(int fd, size_t bytes, off_t offset) {
    check(pread(fd, buffer, bytes, offset) == (ssize_t)bytes, "pread");
}

static unsigned next_random(void) {
    static unsigned long long state = 88172645463325252ull;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state >> 16);
}

static void think(long milliseconds) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    long long end = now.tv_sec * 1000000000ll + now.tv_nsec + milliseconds * 1000000ll;
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while (now.tv_sec * 1000000000ll + now.tv_nsec < end);
}

static void in_processes(int count, void (*work)(int)) {
    for (int i = 0; i < count; i++)
        if (fork() == 0) {
            work(i);
            exit(0);
        }
    int status;
    while (wait(&status) > 0)
        check(status == 0, "a child");
}

/* 64 MiB of data to read, on the device and not in memory. */
static void prepare(void) {
    int fd = create("data");
    for (int i = 0; i < 64; i++)
        put(fd, MIB, (off_t)i * MIB);
    fsync(fd);
    close(fd);
}

static void small_writes(void) {
    int fd = create("out");
    for (int i = 0; i < 60000; i++)
        check(write(fd, buffer, 100) == 100, "write");
    close(fd);
}

static void small_reads(void) {
    int fd = open_file("data", O_RDONLY);
    for (int i = 0; i < 60000; i++)
        check(read(fd, buffer, 100) == 100, "read");
    close(fd);
}

static void random_access(void) {
    int fd = open_file("data", O_RDONLY);
    for (int i = 0; i < 40000; i++)
        get(fd, 64, next_random() % (64 * MIB - 64));
    close(fd);
}

static void strided_access(void) {
    int fd = open_file("data", O_RDONLY);
    for (int i = 0; i < 40000; i++)
        get(fd, 64, (off_t)i * 1024);
    close(fd);
}

static void redundant_reads(void) {
    int fd = open_file("data", O_RDONLY);
    for (int pass = 0; pass < 200; pass++)
        get(fd, MIB, 0);
    close(fd);
}

/* The kernel is told to forget the data, as it does by itself when they are more than its cache holds. */
static void cyclic_rereads(void) {
    int fd = open_file("data", O_RDONLY);
    for (int pass = 0; pass < 5; pass++) {
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        for (int i = 0; i < 24; i++)
            get(fd, MIB, (off_t)i * MIB);
    }
    close(fd);
}

static void open_storm(void) {
    for (int i = 0; i < 20000; i++) {
        int fd = open_file("data", O_RDONLY);
        close(fd);
    }
}

static void metadata_storm(void) {
    close(create("name"));
    for (int i = 0; i < 4000; i++) {
        check(rename("name", "other") == 0, "rename");
        check(rename("other", "name") == 0, "rename");
    }
}

static void overwrites(void) {
    int fd = create("out");
    for (int i = 0; i < 1000; i++)
        put(fd, 256 << 10, 0);
    close(fd);
}

static void read_after_write(void) {
    int fd = create("out");
    for (int i = 0; i < 100; i++) {
        put(fd, MIB, (off_t)i * MIB);
        get(fd, MIB, (off_t)i * MIB);
    }
    close(fd);
}

static void sync_per_write(void) {
    int fd = create("out");
    for (int i = 0; i < 60; i++) {
        put(fd, 4096, (off_t)i * 4096);
        check(fsync(fd) == 0, "fsync");
    }
    close(fd);
}

static void unbuffered_stream(void) {
    FILE *out = fopen("out", "w");
    check(out != NULL, "out");
    setvbuf(out, NULL, _IONBF, 0);
    for (int i = 0; i < 60000; i++)
        check(fwrite(buffer, 8, 1, out) == 1, "fwrite");
    fclose(out);
}

static void append_lines(int process) {
    (void)process;
    int fd = open_file("log", O_WRONLY | O_CREAT | O_APPEND);
    for (int i = 0; i < 10000; i++)
        check(write(fd, buffer, 80) == 80, "write");
    close(fd);
}

static void shared_append(void) { in_processes(4, append_lines); }

static void write_records(int process) {
    int fd = open_file("shared", O_WRONLY | O_CREAT);
    for (int i = 0; i < 10000; i++)
        put(fd, 1000, ((off_t)i * 4 + process) * 1000);
    close(fd);
}

static void unaligned_sharing(void) { in_processes(4, write_records); }

static void no_overlap(void) {
    int fd = create("out");
    for (int i = 0; i < 12; i++) {
        think(6);
        for (int j = 0; j < 8; j++)
            put(fd, MIB, ((off_t)i * 8 + j) * MIB);
    }
    close(fd);
}

static void seeks(void) {
    int fd = open_file("data", O_RDONLY);
    for (int i = 0; i < 40000; i++) {
        check(lseek(fd, 0, SEEK_CUR) >= 0, "lseek");
        check(lseek(fd, 0, SEEK_CUR) >= 0, "lseek");
        if (i % 1000 == 0)
            check(read(fd, buffer, MIB) == MIB, "read");
    }
    close(fd);
}

static void many_small_files(void) {
    char name[32];
    for (int i = 0; i < 3000; i++) {
        snprintf(name, sizeof name, "piece-%d", i);
        int fd = create(name);
        put(fd, 100, 0);
        close(fd);
    }
}

/* Clean ones */

static void clean_copy(void) {
    int in = open_file("data", O_RDONLY), out = create("copy");
    for (ssize_t got; (got = read(in, buffer, MIB)) > 0;)
        check(write(out, buffer, (size_t)got) == got, "write");
    close(in);
    close(out);
}

static void clean_stream(void) {
    FILE *out = fopen("out", "w");
    check(out != NULL, "out");
    for (int i = 0; i < 200000; i++)
        fprintf(out, "%d\n", i);
    fclose(out);
}

static void clean_checkpoints(void) {
    int fd = create("state");
    for (int i = 0; i < 4; i++) {
        think(60);
        for (int j = 0; j < 4; j++)
            put(fd, MIB, (off_t)j * MIB);
        check(fdatasync(fd) == 0, "fdatasync");
    }
    close(fd);
}

static void write_own_part(int process) {
    int fd = open_file("shared", O_WRONLY | O_CREAT);
    for (int i = 0; i < 8; i++)
        put(fd, MIB, ((off_t)process * 8 + i) * MIB);
    close(fd);
}

static void clean_shared(void) { in_processes(4, write_own_part); }

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } programs[] = {
        {"prepare", prepare},
        {"small-writes", small_writes},
        {"small-reads", small_reads},
        {"random-access", random_access},
        {"strided-access", strided_access},
        {"redundant-reads", redundant_reads},
        {"cyclic-rereads", cyclic_rereads},
        {"open-storm", open_storm},
        {"metadata-storm", metadata_storm},
        {"overwrites", overwrites},
        {"read-after-write", read_after_write},
        {"sync-per-write", sync_per_write},
        {"unbuffered-stream", unbuffered_stream},
        {"shared-append", shared_append},
        {"unaligned-sharing", unaligned_sharing},
        {"no-overlap", no_overlap},
        {"seeks", seeks},
        {"many-small-files", many_small_files},
        {"clean-copy", clean_copy},
        {"clean-stream", clean_stream},
        {"clean-checkpoints", clean_checkpoints},
        {"clean-shared", clean_shared},
    };
    buffer = malloc(MIB);
    check(buffer != NULL, "malloc");
    memset(buffer, 'x', MIB);
    for (size_t i = 0; argc == 2 && i < sizeof programs / sizeof *programs; i++)
        if (strcmp(argv[1], programs[i].name) == 0) {
            programs[i].run();
            return 0;
        }
    fprintf(stderr, "defect NAME\n");
    return 1;
}
