/* Nonblocking operations: collective ones do not wait for ranks that come later, and all ways to wait see their end. */
#include "suite.h"

#include <signal.h>
#include <sys/resource.h>

enum { INTS = 5000 };

static void fill(int *data, int salt) {
  for (int i = 0; i < INTS; i++) data[i] = salt * 1000000 + rank * INTS + i;
}

static int is_filled(const int *data, int salt) {
  for (int i = 0; i < INTS; i++)
    if (data[i] != salt * 1000000 + rank * INTS + i) return 0;
  return 1;
}

/* Rank 0 begins, and only then tells the others to. */
static void does_not_block(void) {
  static int data[INTS], back[INTS];
  MPI_File file = created("does_not_block");
  MPI_Request request;
  MPI_Status status;
  int word = 1, previous = rank - 1, next = rank + 1;
  interleave(file);
  fill(data, 1);
  for (int round = 0; round < 2; round++) {
    if (previous >= 0) MPI_Recv(&word, 1, MPI_INT, previous, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (round == 0)
      OK(MPI_File_iwrite_all(file, data, INTS, MPI_INT, &request));
    else
      OK(MPI_File_iread_at_all(file, 0, back, INTS, MPI_INT, &request));
    if (next < ranks) MPI_Send(&word, 1, MPI_INT, next, 7, MPI_COMM_WORLD);
    OK(MPI_Wait(&request, &status));
    CHECK(request == MPI_REQUEST_NULL);
    CHECK(count_of(&status, MPI_INT) == INTS);
    settle(file);
  }
  CHECK(is_filled(back, 1));
  OK(MPI_File_close(&file));
}

/* The last rank waits for the others to be done; they send to it meanwhile, which it receives before. */
static void goes_on_while_receiving(void) {
  static int data[INTS];
  MPI_File file = created("receiving");
  MPI_Request request;
  int word = 0;
  interleave(file);
  fill(data, 2);
  OK(MPI_File_iwrite_all(file, data, INTS, MPI_INT, &request));
  if (rank == 0) {
    for (int other = 1; other < ranks; other++) {
      MPI_Status status;
      if (other % 2) {
        MPI_Probe(other, 8, MPI_COMM_WORLD, &status);
        MPI_Recv(&word, 1, MPI_INT, other, 8, MPI_COMM_WORLD, &status);
      } else {
        MPI_Sendrecv(&other, 1, MPI_INT, other, 9, &word, 1, MPI_INT, other, 8, MPI_COMM_WORLD, &status);
      }
      CHECK(word == other);
    }
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  } else {
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    if (rank % 2)
      MPI_Ssend(&rank, 1, MPI_INT, 0, 8, MPI_COMM_WORLD);
    else
      MPI_Sendrecv(&rank, 1, MPI_INT, 0, 8, &word, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  OK(MPI_File_close(&file));
}

/* A collective call of the program between beginning and waiting, which some begin only after it. */
static void around_barriers(void) {
  static int data[INTS], back[INTS];
  for (int late = 0; late < 2; late++) {
    MPI_File file = created("barriers");
    MPI_Request request;
    interleave(file);
    fill(data, 3 + late);
    if (!late || rank % 2 == 0) OK(MPI_File_iwrite_all(file, data, INTS, MPI_INT, &request));
    MPI_Barrier(MPI_COMM_WORLD);
    if (late && rank % 2 == 1) OK(MPI_File_iwrite_all(file, data, INTS, MPI_INT, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_File_iread_at_all(file, 0, back, INTS, MPI_INT, &request));
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Bcast(&late, 1, MPI_INT, 0, MPI_COMM_WORLD);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(memcmp(data, back, sizeof data) == 0);
    OK(MPI_File_close(&file));
  }
}

/* Several at once, on several files; independent ones between them. */
static void several(void) {
  enum { FILES = 3, EACH = 3 };
  static int data[FILES][EACH][INTS], back[INTS];
  MPI_File files[FILES];
  MPI_Request requests[FILES * EACH + 1];
  MPI_Status statuses[FILES * EACH + 1];
  MPI_Offset place;
  int spare = 42, seen = -1;
  for (int i = 0; i < FILES; i++) {
    char name[20];
    snprintf(name, sizeof name, "several.%d", i);
    files[i] = created(name);
    interleave(files[i]);
  }
  for (int k = 0; k < EACH; k++) {
    for (int i = 0; i < FILES; i++) {
      /* Files in another order on every second rank. */
      int f = rank % 2 ? FILES - 1 - i : i;
      fill(data[f][k], 10 * f + k);
      OK(MPI_File_iwrite_all(files[f], data[f][k], INTS, MPI_INT, &requests[f * EACH + k]));
      OK(MPI_File_get_position(files[f], &place));
      CHECK(place == (k + 1) * INTS);
    }
  }
  OK(MPI_File_iwrite_at(files[0], EACH * INTS, &spare, 1, MPI_INT, &requests[FILES * EACH]));
  OK(MPI_Wait(&requests[FILES * EACH], MPI_STATUS_IGNORE));
  OK(MPI_File_read_at(files[0], EACH * INTS, &seen, 1, MPI_INT, MPI_STATUS_IGNORE));
  CHECK(seen == 42);
  OK(MPI_Waitall(FILES * EACH + 1, requests, statuses));
  for (int i = 0; i < FILES * EACH; i++) {
    CHECK(requests[i] == MPI_REQUEST_NULL);
    CHECK(count_of(&statuses[i], MPI_INT) == INTS);
  }
  for (int f = 0; f < FILES; f++) {
    settle(files[f]);
    OK(MPI_File_seek(files[f], 0, MPI_SEEK_SET));
    for (int k = 0; k < EACH; k++) {
      OK(MPI_File_read_all(files[f], back, INTS, MPI_INT, &statuses[0]));
      CHECK(is_filled(back, 10 * f + k));
    }
    OK(MPI_File_close(&files[f]));
  }
}

/* Every way to wait and to look. */
static void ways_to_wait(void) {
  static int data[6][INTS], back[6][INTS];
  MPI_File file = created("ways");
  MPI_Request requests[6];
  MPI_Status status, statuses[6];
  int flag = 0, index = -1, done = 0, indices[6], found = 0;
  interleave(file);
  for (int i = 0; i < 6; i++) {
    fill(data[i], i);
    OK(MPI_File_iwrite_at_all(file, i * INTS, data[i], INTS, MPI_INT, &requests[i]));
  }
  while (!flag) OK(MPI_Test(&requests[0], &flag, &status));
  CHECK(count_of(&status, MPI_INT) == INTS && requests[0] == MPI_REQUEST_NULL);
  for (flag = 0; !flag;) OK(MPI_Request_get_status(requests[1], &flag, &status));
  CHECK(requests[1] != MPI_REQUEST_NULL && count_of(&status, MPI_INT) == INTS);
  for (flag = 0; !flag;) OK(MPI_Testany(6, requests, &index, &flag, &status));
  CHECK(index >= 1 && index < 6);
  OK(MPI_Waitany(6, requests, &index, &status));
  CHECK(index >= 1 && index < 6 && count_of(&status, MPI_INT) == INTS);
  for (found = 0; found == 0;) OK(MPI_Testsome(6, requests, &found, indices, statuses));
  done = 3 + found;
  while (done < 6) {
    OK(MPI_Waitsome(6, requests, &found, indices, statuses));
    CHECK(found > 0);
    if (found <= 0) break;
    done += found;
  }
  OK(MPI_Waitsome(6, requests, &found, indices, statuses));
  CHECK(found == MPI_UNDEFINED);
  settle(file);
  for (int i = 0; i < 6; i++) OK(MPI_File_iread_at_all(file, i * INTS, back[i], INTS, MPI_INT, &requests[i]));
  for (flag = 0; !flag;) OK(MPI_Testall(6, requests, &flag, statuses));
  for (int i = 0; i < 6; i++) CHECK(is_filled(back[i], i));
  /* Cancelling is asking: what is done is done. */
  OK(MPI_File_iread_at_all(file, 0, back[0], INTS, MPI_INT, &requests[0]));
  OK(MPI_Cancel(&requests[0]));
  OK(MPI_Wait(&requests[0], &status));
  MPI_Test_cancelled(&status, &flag);
  CHECK(!flag && is_filled(back[0], 0));
  /* A request that is freed: its operation goes on, at the latest until the file is closed. */
  fill(data[0], 7);
  OK(MPI_File_iwrite_at_all(file, 0, data[0], INTS, MPI_INT, &requests[0]));
  OK(MPI_Request_free(&requests[0]));
  CHECK(requests[0] == MPI_REQUEST_NULL);
  OK(MPI_File_iwrite_at_all(file, INTS, data[1], INTS, MPI_INT, &requests[1]));
  OK(MPI_Wait(&requests[1], &status));
  settle(file);
  OK(MPI_File_read_at_all(file, 0, back[0], INTS, MPI_INT, &status));
  CHECK(is_filled(back[0], 7));
  OK(MPI_File_close(&file));
}

/* Mixed with blocking and split collective operations, in the same order on all ranks. */
static void mixed(void) {
  static int data[4][INTS], back[INTS];
  MPI_File file = created("mixed");
  MPI_Request request;
  MPI_Status status;
  interleave(file);
  for (int i = 0; i < 4; i++) fill(data[i], i);
  OK(MPI_File_iwrite_all(file, data[0], INTS, MPI_INT, &request));
  OK(MPI_File_write_all(file, data[1], INTS, MPI_INT, &status));
  OK(MPI_Wait(&request, &status));
  CHECK(count_of(&status, MPI_INT) == INTS);
  OK(MPI_File_write_all_begin(file, data[2], INTS, MPI_INT));
  /* Independent operations may come between. */
  OK(MPI_File_write_at(file, 3 * INTS, data[3], INTS, MPI_INT, &status));
  OK(MPI_File_write_all_end(file, data[2], &status));
  CHECK(count_of(&status, MPI_INT) == INTS);
  settle(file);
  for (int i = 0; i < 4; i++) {
    OK(MPI_File_read_at_all_begin(file, i * INTS, back, INTS, MPI_INT));
    OK(MPI_File_read_at_all_end(file, back, &status));
    CHECK(count_of(&status, MPI_INT) == INTS && is_filled(back, i));
  }
  OK(MPI_File_close(&file));
}

/* Split collective operations need not wait for others either, and exclude collective ones on their file. */
static void split(void) {
  static int data[INTS], back[INTS];
  MPI_File file = created("split");
  MPI_Status status;
  MPI_Request request;
  interleave(file);
  fill(data, 3);
  OK(MPI_File_write_all_begin(file, data, INTS, MPI_INT));
  CHECK(MPI_File_write_all_begin(file, data, INTS, MPI_INT) != MPI_SUCCESS);
  CHECK(MPI_File_read_all_end(file, data, &status) != MPI_SUCCESS);
  OK(MPI_File_write_all_end(file, data, &status));
  CHECK(MPI_File_write_all_end(file, data, &status) != MPI_SUCCESS);
  settle(file);
  OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
  OK(MPI_File_read_all_begin(file, back, INTS, MPI_INT));
  OK(MPI_File_iread_at(file, 0, data, 1, MPI_INT, &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  OK(MPI_File_read_all_end(file, back, &status));
  CHECK(is_filled(back, 3) && count_of(&status, MPI_INT) == INTS);
  OK(MPI_File_close(&file));
}

static int handled;

static void handler(MPI_File *file, int *code, ...) {
  (void)file;
  handled += *code != MPI_SUCCESS;
}

/* What the file system refuses is told by the call that completes the request, and to the file's error handler. */
static void fails_at_the_end(void) {
  static int data[INTS];
  struct rlimit limit = {10000, RLIM_INFINITY}, before;
  MPI_File file = created("fails");
  MPI_Errhandler errhandler;
  MPI_Request requests[2];
  MPI_Status statuses[2];
  getrlimit(RLIMIT_FSIZE, &before);
  limit.rlim_max = before.rlim_max;
  signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &limit);
  OK(MPI_File_create_errhandler(handler, &errhandler));
  OK(MPI_File_set_errhandler(file, errhandler));
  OK(MPI_Errhandler_free(&errhandler));
  OK(MPI_File_iwrite_at_all(file, 1000000 + rank * (MPI_Offset)sizeof data, data, INTS, MPI_INT, &requests[0]));
  CHECK(handled == 0);
  FAILS(MPI_Wait(&requests[0], &statuses[0]), MPI_ERR_IO);
  CHECK(handled == 1 && requests[0] == MPI_REQUEST_NULL);
  OK(MPI_File_iwrite_at_all(file, 4 * rank, data, 1, MPI_INT, &requests[0]));
  OK(MPI_File_iwrite_at_all(file, 1000000 + rank * (MPI_Offset)sizeof data, data, INTS, MPI_INT, &requests[1]));
  FAILS(MPI_Waitall(2, requests, statuses), MPI_ERR_IN_STATUS);
  CHECK(statuses[0].MPI_ERROR == MPI_SUCCESS && class_of(statuses[1].MPI_ERROR) == MPI_ERR_IO);
  CHECK(count_of(&statuses[0], MPI_INT) == 1);
  CHECK(handled == 2);
  OK(MPI_File_write_at_all(file, 4 * rank, data, 1, MPI_INT, &statuses[0]));
  FAILS(MPI_File_write_at_all(file, 1000000 + rank * (MPI_Offset)sizeof data, data, INTS, MPI_INT, &statuses[0]), MPI_ERR_IO);
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, SIG_DFL);
  OK(MPI_File_close(&file));
}

/* The calls that tell of several requests at once. */
enum { WAITALL, WAITSOME, TESTALL, TESTSOME, STATUS_ALL, STATUS_SOME, SEVERAL };

/* A file's operation fails beside a message that is received, or that is too long for that: each status tells of its own. */
static void fails_beside_another(int way, int is_too_long, int mine) {
  static int data[INTS];
  int received[2], sent[2] = {0};
  const int other = 1 - mine;
  MPI_File file = created("beside");
  MPI_Request requests[2];
  MPI_Status statuses[2], status;
  int flag = 0, count = 0, indices[2] = {0, 1}, code = MPI_SUCCESS;
  OK(MPI_File_iwrite_at(file, 1000000, data, INTS, MPI_INT, &requests[mine]));
  while (!flag) code = MPI_Request_get_status(requests[mine], &flag, &status);
  CHECK(class_of(code) == MPI_ERR_IO);
  OK(MPI_Irecv(received, is_too_long ? 1 : 2, MPI_INT, (rank + 1) % ranks, way, MPI_COMM_WORLD, &requests[other]));
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_Send(sent, 2, MPI_INT, (rank + ranks - 1) % ranks, way, MPI_COMM_WORLD));
  for (flag = 0; !flag;) MPI_Request_get_status(requests[other], &flag, &status);
  memset(statuses, 0x55, sizeof statuses);
  switch (way) {
    case WAITALL: code = MPI_Waitall(2, requests, statuses); break;
    case TESTALL: code = MPI_Testall(2, requests, &flag, statuses); break;
    case WAITSOME: code = MPI_Waitsome(2, requests, &count, indices, statuses); break;
    case TESTSOME: code = MPI_Testsome(2, requests, &count, indices, statuses); break;
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
    case STATUS_ALL: code = MPI_Request_get_status_all(2, requests, &flag, statuses); break;
    case STATUS_SOME: code = MPI_Request_get_status_some(2, requests, &count, indices, statuses); break;
#endif
    default: break;
  }
  CHECK(class_of(code) == MPI_ERR_IN_STATUS && flag == 1);
  if (way == WAITSOME || way == TESTSOME || way == STATUS_SOME) CHECK(count == 2);
  for (int i = 0; i < 2; i++) {
    int expected = indices[i] == mine ? MPI_ERR_IO : is_too_long ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
    CHECK(class_of(statuses[i].MPI_ERROR) == expected);
  }
  if (way == STATUS_ALL || way == STATUS_SOME) FAILS(MPI_Waitall(2, requests, statuses), MPI_ERR_IN_STATUS);
  CHECK(requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL);
  OK(MPI_File_close(&file));
}

static void fails_among_several(void) {
  struct rlimit limit = {10000, RLIM_INFINITY}, before;
  const int of_4_1 = MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1);
  getrlimit(RLIMIT_FSIZE, &before);
  limit.rlim_max = before.rlim_max;
  signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &limit);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  for (int way = 0; way < (of_4_1 ? SEVERAL : STATUS_ALL); way++)
    for (int is_too_long = 0; is_too_long < 2; is_too_long++)
      for (int mine = 0; mine < 2; mine++) fails_beside_another(way, is_too_long, mine);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, SIG_DFL);
}

int main(int count, char **arguments) {
  begin(&count, &arguments);
  does_not_block();
  goes_on_while_receiving();
  around_barriers();
  several();
  ways_to_wait();
  mixed();
  split();
  /* The limit of a process does not concern I/O servers. */
  if (getenv("PIOSCOPE_STORE") == NULL) {
    fails_at_the_end();
    /* To themselves, Open MPI's ranks may send what is too long. */
    if (ranks > 1) fails_among_several();
  }
  return end();
}
