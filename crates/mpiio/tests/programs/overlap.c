/* Nonblocking operations while the program does something else: many at once, of all kinds, byte for byte, at any thread
 * level; and one that cannot end yet, which must neither hold the call that begins it nor need another call to end.
 *
 *   overlap FOLDER [single|funneled|serialized|multiple]
 */
#define _GNU_SOURCE
#include "suite.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

enum { BLOCKS = 12, INTS = 700, KINDS = 4, ALL = KINDS * BLOCKS };
/* Longer is a hang, however busy the machine is. */
enum { LIMIT_S = 60 };

static int value(int file, int block, int i) { return ((file * 64 + block) * 16 + rank) * INTS + i; }

/* Begins the block of one of the kinds, at a place of its own in the view. */
static void begin_block(MPI_File file, int writes, int kind, int block, int *data, MPI_Request *request) {
  MPI_Offset at = (MPI_Offset)(kind * BLOCKS + block) * INTS;
  if (kind == 0) {
    OK(writes ? MPI_File_iwrite_at(file, at, data, INTS, MPI_INT, request)
              : MPI_File_iread_at(file, at, data, INTS, MPI_INT, request));
  } else if (kind == 1) {
    OK(writes ? MPI_File_iwrite_at_all(file, at, data, INTS, MPI_INT, request)
              : MPI_File_iread_at_all(file, at, data, INTS, MPI_INT, request));
  } else {
    OK(MPI_File_seek(file, at, MPI_SEEK_SET));
    if (kind == 2)
      OK(writes ? MPI_File_iwrite(file, data, INTS, MPI_INT, request)
                : MPI_File_iread(file, data, INTS, MPI_INT, request));
    else
      OK(writes ? MPI_File_iwrite_all(file, data, INTS, MPI_INT, request)
                : MPI_File_iread_all(file, data, INTS, MPI_INT, request));
  }
}

/* Ranks' ints alternate, so that most that is written is read, changed and written back. */
static void many(int files, int atomic) {
  static int data[2][ALL][INTS], back[2][ALL][INTS];
  MPI_File file[2];
  MPI_Request requests[2 * ALL];
  MPI_Status statuses[2 * ALL];
  for (int f = 0; f < files; f++) {
    char name[32];
    snprintf(name, sizeof name, "many.%d", f);
    file[f] = created(name);
    if (atomic) OK(MPI_File_set_atomicity(file[f], 1));
    interleave(file[f]);
  }
  for (int writes = 1; writes >= 0; writes--) {
    int (*memory)[ALL][INTS] = writes ? data : back;
    int count = 0;
    for (int block = 0; block < BLOCKS; block++)
      for (int kind = 0; kind < KINDS; kind++)
        for (int f = 0; f < files; f++) {
          int *here = memory[f][kind * BLOCKS + block];
          for (int i = 0; i < INTS; i++) here[i] = writes ? value(f, kind * BLOCKS + block, i) : -1;
          begin_block(file[f], writes, kind, block, here, &requests[count++]);
        }
    /* Some are waited for one by one, in another order. */
    for (int i = 1; i < count; i += 5) {
      OK(MPI_Wait(&requests[i], &statuses[i]));
      CHECK(count_of(&statuses[i], MPI_INT) == INTS);
    }
    OK(MPI_Waitall(count, requests, statuses));
    for (int i = 0; i < count; i++)
      if (i % 5 != 1) CHECK(count_of(&statuses[i], MPI_INT) == INTS);
    if (writes)
      for (int f = 0; f < files; f++) settle(file[f]);
  }
  for (int f = 0; f < files; f++) {
    CHECK(memcmp(data[f], back[f], sizeof data[f]) == 0);
    OK(MPI_File_close(&file[f]));
  }
}

/* Blocking operations after nonblocking ones that nobody waited for yet: as if in the order of the calls. */
static void in_order(void) {
  MPI_File file = created("in_order");
  int first[INTS], second[INTS], back[INTS];
  MPI_Request requests[2];
  MPI_Offset size = 0, mine = (MPI_Offset)rank * sizeof first;
  for (int i = 0; i < INTS; i++) first[i] = value(7, 1, i), second[i] = value(7, 2, i);
  OK(MPI_File_iwrite_at(file, mine, first, INTS * 4, MPI_BYTE, &requests[0]));
  OK(MPI_File_iwrite_at(file, mine, second, INTS * 4, MPI_BYTE, &requests[1]));
  OK(MPI_File_read_at(file, mine, back, INTS * 4, MPI_BYTE, MPI_STATUS_IGNORE));
  CHECK(memcmp(back, second, sizeof back) == 0);
  OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  settle(file);
  OK(MPI_File_get_size(file, &size));
  CHECK(size == (MPI_Offset)sizeof first * ranks);
  /* What is past the end is not read. */
  OK(MPI_File_iread_at(file, size - 8, back, 100, MPI_BYTE, &requests[0]));
  MPI_Status status;
  OK(MPI_Wait(&requests[0], &status));
  CHECK(count_of(&status, MPI_BYTE) == 8);
  OK(MPI_File_close(&file));
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Locks the file that Pioscope keeps beside one in atomic mode; -1 if there is none, as on the MPI's own files. */
static int lock_sidecar(const char *folder) {
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  struct dirent *entry;
  DIR *open_folder = opendir(folder);
  int found = -1;
  while (open_folder != NULL && (entry = readdir(open_folder)) != NULL) {
    if (strncmp(entry->d_name, ".pioscope-", 10) != 0 || found >= 0) continue;
    char name[1600];
    snprintf(name, sizeof name, "%s/%s", folder, entry->d_name);
    found = open(name, O_RDWR);
    CHECK(found >= 0 && fcntl(found, F_OFD_SETLK, &lock) == 0);
  }
  if (open_folder != NULL) closedir(open_folder);
  return found;
}

/* A file of this rank alone, which somebody else has locked: what is begun cannot end. Then it is unlocked, and must end
 * while the program calls nothing at all. */
static void ends_by_itself(int collective) {
  char folder[1300], name[1400];
  MPI_File file;
  MPI_Request request, others[2];
  MPI_Status status;
  int before = 1, after = 2, seen = 0, flag = 1;
  snprintf(folder, sizeof folder, "%s/locked.%d.%d", path, rank, collective);
  mkdir(folder, 0700);
  snprintf(name, sizeof name, "%s/file", folder);
  OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  OK(MPI_File_set_atomicity(file, 1));
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  OK(MPI_File_write_at(file, 0, &before, 1, MPI_INT, &status));
  int locked = lock_sidecar(folder);
  if (locked >= 0) {
    OK(collective ? MPI_File_iwrite_at_all(file, 0, &after, 1, MPI_INT, &request)
                  : MPI_File_iwrite_at(file, 0, &after, 1, MPI_INT, &request));
    /* Long enough for it to be at the lock. */
    for (double start = now(); now() - start < 0.05;) {
      OK(MPI_Test(&request, &flag, &status));
      CHECK(!flag);
    }
    /* Others behind it must not be held up either, of either kind. */
    OK(MPI_File_iwrite_at(file, 1, &after, 1, MPI_INT, &others[0]));
    OK(MPI_File_iwrite_at_all(file, 2, &after, 1, MPI_INT, &others[1]));
    OK(MPI_Testall(2, others, &flag, MPI_STATUSES_IGNORE));
    CHECK(!flag);
    close(locked);
    int plain = open(name, O_RDONLY);
    for (double start = now(); seen != after && now() - start < LIMIT_S;)
      if (pread(plain, &seen, sizeof seen, 0) != sizeof seen) break;
    CHECK(seen == after);
    close(plain);
    OK(MPI_Wait(&request, &status));
    CHECK(count_of(&status, MPI_INT) == 1);
    OK(MPI_Waitall(2, others, MPI_STATUSES_IGNORE));
  }
  OK(MPI_File_close(&file));
  unlink(name);
  rmdir(folder);
}

int main(int count, char **arguments) {
  static const char *const names[] = {"single", "funneled", "serialized", "multiple"};
  static const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};
  int wanted = MPI_THREAD_SINGLE, provided;
  for (int i = 0; i < 4; i++)
    if (count > 2 && strcmp(arguments[2], names[i]) == 0) wanted = levels[i];
  MPI_Init_thread(&count, &arguments, wanted, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  snprintf(path, sizeof path, "%s", arguments[1]);
  many(1, 0);
  many(2, 0);
  many(1, 1);
  in_order();
  /* Not on I/O servers, which other means would be needed to look at. */
  if (getenv("PIOSCOPE_STORE") == NULL) {
    ends_by_itself(0);
    ends_by_itself(1);
  }
  return end();
}
