/* A library between the recorder and the C library. It stands for functions, and for no call by number. */
#define _GNU_SOURCE
#include <stdlib.h>

#define STANDS_FOR(name)                                                                                               \
    int name(void) {                                                                                                   \
        abort();                                                                                                       \
    }

#pragma GCC diagnostic ignored "-Wbuiltin-declaration-mismatch"
STANDS_FOR(open)
STANDS_FOR(open64)
STANDS_FOR(openat)
STANDS_FOR(openat64)
STANDS_FOR(creat64)
STANDS_FOR(write)
STANDS_FOR(preadv64)
STANDS_FOR(preadv64v2)
STANDS_FOR(pwritev64)
STANDS_FOR(pwritev64v2)
STANDS_FOR(ftruncate64)
STANDS_FOR(truncate64)
STANDS_FOR(fallocate64)
STANDS_FOR(posix_fadvise64)
STANDS_FOR(sync_file_range)
STANDS_FOR(flock)
STANDS_FOR(fchmod)
STANDS_FOR(msync)
STANDS_FOR(dup)
STANDS_FOR(dup2)
STANDS_FOR(dup3)
STANDS_FOR(fcntl)
STANDS_FOR(access)
STANDS_FOR(faccessat)
STANDS_FOR(chmod)
STANDS_FOR(fchmodat)
STANDS_FOR(rename)
STANDS_FOR(renameat)
STANDS_FOR(renameat2)
STANDS_FOR(link)
STANDS_FOR(linkat)
STANDS_FOR(symlink)
STANDS_FOR(symlinkat)
STANDS_FOR(readlink)
STANDS_FOR(readlinkat)
STANDS_FOR(mkdir)
STANDS_FOR(mkdirat)
STANDS_FOR(rmdir)
STANDS_FOR(unlink)
STANDS_FOR(unlinkat)
STANDS_FOR(_exit)
