/* Programs of one process, or a few that fork, each with one defect in its I/O; and clean ones.
 *
 * defect NAME [mended]: works in the current folder, in which what "prepare" made may be read. With "mended" it does the
 * same without the defect. How long that took, nanoseconds, is then in the file "took". */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB (1 << 20)

static char *buffer;
/* When the program began: what it prepares before is not measured. */
static long long started_ns;

static long long now_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

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

/* Gathers what the mended programs write in small pieces. */
struct gathered {
    int fd;
    size_t filled;
};

static void flush_gathered(struct gathered *out) {
    check(write(out->fd, buffer, out->filled) == (ssize_t)out->filled, "write");
    out->filled = 0;
}

static void gather(struct gathered *out, const char *piece, size_t bytes) {
    if (out->filled + bytes > MIB)
        flush_gathered(out);
    memcpy(buffer + out->filled, piece, bytes);
    out->filled += bytes;
}

/* 64 MiB of data to read, on the device and not in memory. */
static void prepare(int mended) {
    (void)mended;
    int fd = create("data");
    for (int i = 0; i < 64; i++)
        put(fd, MIB, (off_t)i * MIB);
    fsync(fd);
    close(fd);
}

static void pieces_written(size_t bytes, int count, int mended) {
    char piece[16384] = "piece";
    struct gathered out = {create("out"), 0};
    for (int i = 0; i < count; i++)
        if (mended)
            gather(&out, piece, bytes);
        else
            check(write(out.fd, piece, bytes) == (ssize_t)bytes, "write");
    if (mended)
        flush_gathered(&out);
    close(out.fd);
}

static void small_writes(int mended) { pieces_written(100, 100000, mended); }

/* As dd bs=512 does. */
static void blocks_of_512(int mended) { pieces_written(512, 80000, mended); }

static void writes_of_2_kib(int mended) { pieces_written(2048, 50000, mended); }

static void pieces_read(size_t bytes, int count, int mended) {
    char piece[16384];
    int fd = open_file("data", O_RDONLY);
    size_t taken = MIB;
    for (int i = 0; i < count; i++) {
        if (!mended) {
            check(read(fd, piece, bytes) == (ssize_t)bytes, "read");
            continue;
        }
        if (taken + bytes > MIB) {
            check(read(fd, buffer, MIB / bytes * bytes) > 0, "read");
            taken = 0;
        }
        memcpy(piece, buffer + taken, bytes);
        taken += bytes;
    }
    close(fd);
}

static void small_reads(int mended) { pieces_read(100, 100000, mended); }

static void reads_of_160(int mended) { pieces_read(160, 80000, mended); }

/* Numbers that lie here and there, looked up one by one; or in memory, where all of them
 * fit: little of it, as what the system takes to give it is another matter. */
static void random_access(int mended) {
    int fd = open_file("data", O_RDONLY);
    char *all = mended ? malloc(16 * MIB) : NULL;
    for (int i = 0; mended && i < 16; i++)
        check(pread(fd, all + (size_t)i * MIB, MIB, (off_t)i * MIB) == MIB, "pread");
    volatile char sum = 0;
    for (int i = 0; i < 150000; i++) {
        unsigned at = next_random() % (16 * MIB - 64);
        if (mended)
            sum += all[at];
        else
            get(fd, 64, at);
    }
    free(all);
    close(fd);
}

/* The data, mapped, and not in memory any more. */
static char *mapped_cold(int *fd) {
    *fd = open_file("data", O_RDONLY);
    posix_fadvise(*fd, 0, 0, POSIX_FADV_DONTNEED);
    char *data = mmap(NULL, 64 * MIB, PROT_READ, MAP_SHARED, *fd, 0);
    check(data != MAP_FAILED, "mmap");
    return data;
}

/* Numbers that lie here and there in a mapped file, of which the system brings in a page at a time, as it does by itself
 * in a mapping that is touched like this for long; or in memory, where all of them fit. */
static void mapping_at_random(int mended) {
    int fd;
    char *data = mapped_cold(&fd);
    char *all = mended ? malloc(16 * MIB) : NULL;
    for (int i = 0; mended && i < 16; i++)
        check(pread(fd, all + (size_t)i * MIB, MIB, (off_t)i * MIB) == MIB, "pread");
    check(madvise(data, 64 * MIB, MADV_RANDOM) == 0, "madvise");
    volatile char sum = 0;
    for (int i = 0; i < 6000; i++) {
        unsigned at = next_random() % (16 * MIB);
        sum += mended ? all[at] : data[at];
    }
    free(all);
    munmap(data, 64 * MIB);
    close(fd);
}

/* A file on the device, and not in memory. */
static int cold_file(void) {
    int fd = create("records");
    for (int i = 0; i < 64; i++)
        put(fd, MIB, (off_t)i * MIB);
    check(fsync(fd) == 0, "fsync");
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    started_ns = now_ns(CLOCK_MONOTONIC);
    return fd;
}

static void records_written(int fd, size_t bytes) {
    for (size_t i = 0; i < 900; i++)
        put(fd, bytes, (off_t)(i * bytes));
    close(fd);
}

/* Records of an odd size are brought up to date: each begins and ends within a page; or padded to whole pages. */
static void partial_pages(int mended) { records_written(cold_file(), mended ? 73728 : 70000); }

/* The same here and there. */
static void partial_pages_at_random(int mended) {
    int fd = cold_file();
    for (unsigned i = 0; i < 1000; i++)
        put(fd, mended ? 8192 : 8000, (off_t)(i * 2654435761u % 8000) * (mended ? 8192 : 8000));
    close(fd);
}

static void clean_records(int mended) {
    (void)mended;
    records_written(create("records"), 70000);
}

static void clean_pages(int mended) {
    (void)mended;
    records_written(cold_file(), 73728);
}

static void strided_access(int mended) {
    int fd = open_file("data", O_RDONLY);
    volatile char sum = 0;
    for (int i = 0; i < 256 * 1024; i++)
        if (!mended)
            get(fd, 16, (off_t)i * 128);
        else {
            if (i % 8192 == 0)
                get(fd, MIB, (off_t)i * 128);
            sum += buffer[i % 8192 * 128];
        }
    close(fd);
}

static void redundant_reads(int mended) {
    int fd = open_file("data", O_RDONLY);
    for (int pass = 0; pass < (mended ? 1 : 600); pass++)
        get(fd, MIB, 0);
    close(fd);
}

/* A table in the file, looked up again before every step. */
static void table_read_again(int mended) {
    int fd = open_file("data", O_RDONLY);
    for (int pass = 0; pass < (mended ? 1 : 60); pass++)
        for (int i = 0; i < 1024; i++)
            get(fd, 4096, (off_t)i * 4096);
    close(fd);
}

/* The kernel is told to forget the data, as it does by itself when they are more than its cache holds. */
static void cyclic_rereads(int mended) {
    int fd = open_file("data", O_RDONLY);
    for (int pass = 0; pass < (mended ? 1 : 5); pass++) {
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        for (int i = 0; i < 24; i++)
            get(fd, MIB, (off_t)i * MIB);
    }
    close(fd);
}

static void open_storm(int mended) {
    for (int i = 0; i < (mended ? 1 : 20000); i++) {
        int fd = open_file("data", O_RDONLY);
        close(fd);
    }
}

/* A log that is opened, appended to and closed for every line. */
static void log_reopened(int mended) {
    char line[80] = "line";
    int fd = mended ? open_file("log", O_WRONLY | O_CREAT | O_APPEND) : -1;
    for (int i = 0; i < 12000; i++) {
        if (!mended)
            fd = open_file("log", O_WRONLY | O_CREAT | O_APPEND);
        check(write(fd, line, sizeof line) == sizeof line, "write");
        if (!mended)
            close(fd);
    }
    if (mended)
        close(fd);
}

static void metadata_storm(int mended) {
    close(create("name"));
    for (int i = 0; i < (mended ? 0 : 8000); i++) {
        check(rename("name", "other") == 0, "rename");
        check(rename("other", "name") == 0, "rename");
    }
}

/* Asks for a file that is not there, again and again. */
static void missing_file(int mended) {
    for (int i = 0; i < (mended ? 1 : 50000); i++)
        check(open("not-there", O_RDONLY) < 0, "not-there");
}

static void overwrites(int mended) {
    int fd = create("out");
    for (int i = 0; i < (mended ? 1 : 1500); i++)
        put(fd, 256 << 10, 0);
    close(fd);
}

/* A header that is brought up to date after every record; or once, in the end. */
static void header_rewritten(int mended) {
    int fd = create("out");
    for (int i = 0; i < 50; i++) {
        put(fd, MIB, 4096 + (off_t)i * MIB);
        for (int j = 0; j < (mended ? i == 49 : 2000); j++)
            put(fd, 4096, 0);
    }
    close(fd);
}

static void read_after_write(int mended) {
    int fd = create("out");
    for (int i = 0; i < 100; i++) {
        put(fd, MIB, (off_t)i * MIB);
        if (!mended)
            get(fd, MIB, (off_t)i * MIB);
    }
    close(fd);
}

static void sync_per_write(int mended) {
    int fd = create("out");
    for (int i = 0; i < 60; i++) {
        put(fd, 4096, (off_t)i * 4096);
        if (!mended || i == 59)
            check(fsync(fd) == 0, "fsync");
    }
    close(fd);
}

static void sync_per_file(int mended) {
    char name[32];
    for (int i = 0; i < 120; i++) {
        snprintf(name, sizeof name, "record-%d", i);
        int fd = create(name);
        put(fd, 4096, 0);
        if (!mended)
            check(fsync(fd) == 0, "fsync");
        else if (i == 119)
            check(syncfs(fd) == 0, "syncfs");
        close(fd);
    }
}

static void unbuffered_stream(int mended) {
    FILE *out = fopen("out", "w");
    check(out != NULL, "out");
    if (!mended)
        setvbuf(out, NULL, _IONBF, 0);
    for (int i = 0; i < 100000; i++)
        check(fwrite(buffer, 8, 1, out) == 1, "fwrite");
    fclose(out);
}

static void append_lines(int mended) {
    char line[80] = "line";
    char *lines = malloc(MIB);
    size_t filled = 0;
    int fd = open_file("log", O_WRONLY | O_CREAT | O_APPEND);
    for (int i = 0; i < 60000; i++) {
        if (!mended)
            check(write(fd, line, sizeof line) == sizeof line, "write");
        else {
            if (filled + sizeof line > MIB) {
                check(write(fd, lines, filled) == (ssize_t)filled, "write");
                filled = 0;
            }
            memcpy(lines + filled, line, sizeof line);
            filled += sizeof line;
        }
    }
    check(write(fd, lines, filled) == (ssize_t)filled, "write");
    free(lines);
    close(fd);
}

static void append_broken(int process) {
    (void)process;
    append_lines(0);
}

static void append_mended(int process) {
    (void)process;
    append_lines(1);
}

static void shared_append(int mended) { in_processes(2, mended ? append_mended : append_broken); }

static void write_records(int process) {
    int fd = open_file("shared", O_WRONLY | O_CREAT);
    for (int i = 0; i < 30000; i++)
        put(fd, 700, ((off_t)i * 2 + process) * 700);
    close(fd);
}

static void write_own_records(int process) {
    int fd = open_file("shared", O_WRONLY | O_CREAT);
    for (int i = 0; i < 20; i++)
        put(fd, MIB, ((off_t)i + process * 20) * MIB);
    close(fd);
}

static void unaligned_sharing(int mended) { in_processes(2, mended ? write_own_records : write_records); }

static void work_under_lock(int fd, int lock) {
    for (int i = 0; i < 30; i++) {
        if (lock)
            check(flock(fd, LOCK_EX) == 0, "flock");
        think(3);
        check(write(fd, buffer, 1000) == 1000, "write");
        if (lock)
            check(flock(fd, LOCK_UN) == 0, "flock");
    }
}

static void results_under_lock(int process) {
    (void)process;
    work_under_lock(open_file("results", O_WRONLY | O_CREAT | O_APPEND), 1);
}

static void results_of_ones_own(int process) {
    char name[32];
    snprintf(name, sizeof name, "results-%d", process);
    work_under_lock(open_file(name, O_WRONLY | O_CREAT | O_APPEND), 0);
}

/* One computes while the other waits for its lock; or both at once. */
static void lock_waits(int mended) { in_processes(2, mended ? results_of_ones_own : results_under_lock); }

/* The same with locks that nobody else has. */
static void locks_of_ones_own(int process) {
    char name[32];
    snprintf(name, sizeof name, "results-%d", process);
    work_under_lock(open_file(name, O_WRONLY | O_CREAT | O_APPEND), 1);
}

static void clean_locks(int mended) {
    (void)mended;
    in_processes(2, locks_of_ones_own);
}

static int behind_fd, behind_from;

/* What one step wrote, while the next one computes. */
static void *write_behind(void *unused) {
    for (int j = 0; j < 8; j++)
        put(behind_fd, MIB, ((off_t)behind_from + j) * MIB);
    return unused;
}

static void no_overlap(int mended) {
    int fd = behind_fd = create("out");
    pthread_t writer;
    for (int i = 0; i < 16; i++) {
        think(8);
        if (mended) {
            if (i > 0)
                pthread_join(writer, NULL);
            behind_from = i * 8;
            check(pthread_create(&writer, NULL, write_behind, NULL) == 0, "pthread_create");
        } else
            for (int j = 0; j < 8; j++)
                put(fd, MIB, ((off_t)i * 8 + j) * MIB);
    }
    if (mended)
        pthread_join(writer, NULL);
    close(fd);
}

static void seeks(int mended) {
    int fd = open_file("data", O_RDONLY);
    for (int i = 0; i < 400000; i++) {
        if (!mended)
            check(lseek(fd, 0, SEEK_CUR) >= 0, "lseek");
        if (i % 10000 == 0)
            check(read(fd, buffer, MIB) == MIB, "read");
    }
    close(fd);
}

static void many_small_files(int mended) {
    char name[32];
    struct gathered out = {mended ? create("pieces") : -1, 0};
    char piece[100] = "piece";
    for (int i = 0; i < 1200; i++) {
        if (mended) {
            gather(&out, piece, sizeof piece);
            continue;
        }
        snprintf(name, sizeof name, "piece-%d", i);
        int fd = create(name);
        put(fd, 100, 0);
        close(fd);
    }
    if (mended)
        flush_gathered(&out);
}

/* Clean ones */

static void clean_copy(int mended) {
    (void)mended;
    int in = open_file("data", O_RDONLY), out = create("copy");
    for (ssize_t got; (got = read(in, buffer, MIB)) > 0;)
        check(write(out, buffer, (size_t)got) == got, "write");
    close(in);
    close(out);
}

static void clean_stream(int mended) {
    (void)mended;
    FILE *out = fopen("out", "w");
    check(out != NULL, "out");
    for (int i = 0; i < 200000; i++)
        fprintf(out, "%d\n", i);
    fclose(out);
}

static void clean_checkpoints(int mended) {
    (void)mended;
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

static void clean_shared(int mended) {
    (void)mended;
    in_processes(4, write_own_part);
}

/* A small file, written and read as any program begins and ends. */
static void clean_settings(int mended) {
    (void)mended;
    char line[64];
    FILE *out = fopen("settings", "w");
    check(out != NULL, "settings");
    for (int i = 0; i < 50; i++)
        fprintf(out, "key-%d = %d\n", i, i);
    fclose(out);
    FILE *in = fopen("settings", "r");
    check(in != NULL, "settings");
    while (fgets(line, sizeof line, in))
        ;
    fclose(in);
    think(30);
}

/* Large requests in any order. */
static void clean_tiles(int mended) {
    (void)mended;
    int fd = open_file("data", O_RDONLY);
    for (int i = 0; i < 64; i++)
        get(fd, MIB, (off_t)(i * 37 % 64) * MIB);
    close(fd);
}

/* A log by the way of a long computation. */
static void clean_log(int mended) {
    (void)mended;
    int fd = open_file("log", O_WRONLY | O_CREAT | O_APPEND);
    for (int i = 0; i < 50; i++) {
        think(2);
        check(write(fd, "step\n", 5) == 5, "write");
    }
    close(fd);
}

/* Pieces of one file through a mapping, from its beginning to its end. */
static void clean_mapping(int mended) {
    (void)mended;
    int fd = open_file("data", O_RDONLY);
    char *data = mmap(NULL, 64 * MIB, PROT_READ, MAP_SHARED, fd, 0);
    check(data != MAP_FAILED, "mmap");
    volatile char sum = 0;
    for (size_t at = 0; at < 64 * MIB; at += 64)
        sum += data[at];
    munmap(data, 64 * MIB);
    close(fd);
}

/* The same, from the device. */
static void clean_cold_mapping(int mended) {
    (void)mended;
    int fd;
    char *data = mapped_cold(&fd);
    volatile char sum = 0;
    for (size_t at = 0; at < 64 * MIB; at += 64)
        sum += data[at];
    munmap(data, 64 * MIB);
    close(fd);
}

/* Says whether the pages of a file are gone from memory when the system was asked to forget them. */
static void forget(const char *path) {
    int fd = open_file(path, O_RDONLY);
    check(fsync(fd) == 0, "fsync");
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    void *data = mmap(NULL, MIB, PROT_READ, MAP_SHARED, fd, 0);
    unsigned char in_memory[MIB / 4096] = {0};
    check(data != MAP_FAILED && mincore(data, MIB, in_memory) == 0, "mincore");
    printf(in_memory[0] & 1 || in_memory[200] & 1 ? "kept" : "forgotten");
    close(fd);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(int mended);
    } programs[] = {
        {"prepare", prepare},
        {"small-writes", small_writes},
        {"blocks-of-512", blocks_of_512},
        {"writes-of-2-kib", writes_of_2_kib},
        {"small-reads", small_reads},
        {"reads-of-160", reads_of_160},
        {"random-access", random_access},
        {"mapping-at-random", mapping_at_random},
        {"partial-pages", partial_pages},
        {"partial-pages-at-random", partial_pages_at_random},
        {"clean-records", clean_records},
        {"clean-pages", clean_pages},
        {"strided-access", strided_access},
        {"redundant-reads", redundant_reads},
        {"table-read-again", table_read_again},
        {"cyclic-rereads", cyclic_rereads},
        {"open-storm", open_storm},
        {"log-reopened", log_reopened},
        {"metadata-storm", metadata_storm},
        {"missing-file", missing_file},
        {"overwrites", overwrites},
        {"header-rewritten", header_rewritten},
        {"read-after-write", read_after_write},
        {"sync-per-write", sync_per_write},
        {"sync-per-file", sync_per_file},
        {"unbuffered-stream", unbuffered_stream},
        {"shared-append", shared_append},
        {"unaligned-sharing", unaligned_sharing},
        {"no-overlap", no_overlap},
        {"seeks", seeks},
        {"lock-waits", lock_waits},
        {"clean-locks", clean_locks},
        {"many-small-files", many_small_files},
        {"clean-copy", clean_copy},
        {"clean-stream", clean_stream},
        {"clean-checkpoints", clean_checkpoints},
        {"clean-shared", clean_shared},
        {"clean-settings", clean_settings},
        {"clean-tiles", clean_tiles},
        {"clean-log", clean_log},
        {"clean-mapping", clean_mapping},
        {"clean-cold-mapping", clean_cold_mapping},
    };
    int mended = argc == 3 && strcmp(argv[2], "mended") == 0;
    buffer = malloc(MIB);
    check(buffer != NULL, "malloc");
    memset(buffer, 'x', MIB);
    /* If this is allowed: what else the machine does must not be measured. */
    sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1});
    if (argc == 3 && strcmp(argv[1], "forget") == 0) {
        forget(argv[2]);
        return 0;
    }
    for (size_t i = 0; argc >= 2 && i < sizeof programs / sizeof *programs; i++)
        if (strcmp(argv[1], programs[i].name) == 0) {
            started_ns = now_ns(CLOCK_MONOTONIC);
            programs[i].run(mended);
            int fd = create("took");
            check(dprintf(fd, "%lld", now_ns(CLOCK_MONOTONIC) - started_ns) > 0, "took");
            close(fd);
            return 0;
        }
    fprintf(stderr, "defect NAME [mended]\n");
    return 1;
}
