#include "pio_unseen.h"
#include "pio_clock.h"
#include "pio_kernel.h"
#include "pio_process.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* Opens the notes on a process, in the job's folder or in that for other users; -1 if that cannot be. */
static int open_notes(uint32_t pid, int flags) {
    char *path = pio_take_path_buffer();
    if (path == NULL)
        return -1;
    int fd = -1;
    struct utsname names;
    if (uname(&names) == 0) {
        pio_host_name(&names);
        const char *const folders[] = {pio_spool_folder, pio_others_folder};
        for (int i = 0; i < 2 && fd < 0; i++) {
            if (folders[i][0] == 0)
                continue;
            snprintf(path, PATH_MAX, "%s/%s-%u.unseen", folders[i], names.nodename, pid);
            fd = (int)KERNEL(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
        }
    }
    pio_give_path_buffer(path);
    return fd;
}

/* The kernel's account of a process; -1 if it may not be known. */
static int open_account(uint32_t pid) {
    char path[40];
    snprintf(path, sizeof path, "/proc/%u/io", pid);
    return (int)KERNEL(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
}

/* What a process has read and written, by its account: false if that may not be known. */
static bool moved_bytes(int account, unsigned long long *read, unsigned long long *written) {
    char text[256];
    long length = account < 0 ? -1 : KERNEL(SYS_pread64, account, text, sizeof text - 1, 0);
    text[length < 0 ? 0 : length] = 0;
    return sscanf(text, "rchar: %llu wchar: %llu", read, written) == 2;
}

static void append_line(int fd, const char *line) {
    (void)KERNEL(SYS_write, fd, line, strlen(line));
    KERNEL(SYS_close, fd);
}

void pio_note_unseen(uint32_t pid, const char *reason, const char *program) {
    int fd = open_notes(pid, O_CREAT);
    if (fd < 0)
        return;
    unsigned long long read = 0, written = 0;
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    bool is_self = pid == (uint32_t)KERNEL(SYS_getpid);
    if (is_self) {
        int account = open_account(pid);
        moved_bytes(account, &read, &written);
        if (account >= 0)
            KERNEL(SYS_close, account);
    }
    char line[512 + 192];
    /* Twice: what the process itself writes here is none of what the program will. */
    for (int pass = 0; pass < 2; pass++) {
        snprintf(line, sizeof line - 1, "start %s %llu %llu %020llu %u %.512s", reason,
                 (unsigned long long)now, read, written, is_self ? (uint32_t)getppid() : (uint32_t)getpid(),
                 program);
        if (is_self && pass == 0)
            written += strlen(line) + 1;
    }
    for (char *c = line; *c != 0; c++)
        if (*c == '\n')
            *c = '?';
    append_line(fd, strcat(line, "\n"));
}

void pio_take_back_unseen(void) {
    int fd = open_notes((uint32_t)KERNEL(SYS_getpid), 0);
    if (fd >= 0)
        append_line(fd, "failed\n");
}

/* A wait lasts as long as a child, and other threads open files meanwhile, whose numbers are to be the program's own: the account's is
 * as high as a small table of descriptors allows. */
static int move_up(int fd) {
    struct rlimit limit;
    if (fd < 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return fd;
    rlim_t end = limit.rlim_cur < 1024 ? limit.rlim_cur : 1024;
    int high = end < 4 * ACCOUNTS ? -1 : (int)KERNEL(SYS_fcntl, fd, F_DUPFD_CLOEXEC, (int)end - 2 * ACCOUNTS);
    if (high < 0)
        return fd;
    KERNEL(SYS_close, fd);
    return high;
}

static void keep_account(struct accounts *kept, uint32_t pid) {
    int fd = kept->count < ACCOUNTS ? move_up(open_account(pid)) : -1;
    if (fd < 0)
        return;
    kept->pids[kept->count] = pid;
    kept->fds[kept->count++] = fd;
}

void pio_keep_accounts(struct accounts *kept, pid_t pid) {
    kept->count = 0;
    if (pid > 0) {
        keep_account(kept, (uint32_t)pid);
        return;
    }
    char text[512];
    size_t length = pio_read_small_file("/proc/thread-self/children", text, sizeof text - 1);
    /* A number that is cut off is none. */
    while (length == sizeof text - 1 && length > 0 && text[length - 1] != ' ')
        length--;
    text[length] = 0;
    for (char *at = text, *end; *at != 0; at = end) {
        unsigned long child = strtoul(at, &end, 10);
        if (end == at)
            break;
        keep_account(kept, (uint32_t)child);
    }
}

static int account_of(const struct accounts *kept, uint32_t pid) {
    for (int i = 0; i < kept->count; i++)
        if (kept->pids[i] == pid)
            return kept->fds[i];
    return -1;
}

void pio_drop_accounts(struct accounts *kept) {
    while (kept->count > 0)
        KERNEL(SYS_close, kept->fds[--kept->count]);
}

void pio_note_end(uint32_t pid, struct accounts *kept) {
    int fd = open_notes(pid, 0);
    if (fd < 0)
        return;
    int account = account_of(kept, pid);
    if (account < 0) {
        keep_account(kept, pid);
        account = account_of(kept, pid);
    }
    unsigned long long read, written;
    char line[64] = "end\n";
    if (moved_bytes(account, &read, &written))
        snprintf(line, sizeof line, "end %llu %llu\n", read, written);
    append_line(fd, line);
}
