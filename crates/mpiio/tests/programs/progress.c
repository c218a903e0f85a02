/* What has begun goes on: while one rank waits for a nonblocking collective operation, others may be in any call of MPI,
 * or in none, before they wait themselves. */
#include "suite.h"

enum { INTS = 3000 };

static int data[INTS], back[INTS];

static void fill(int salt) {
  for (int i = 0; i < INTS; i++) data[i] = salt * 1000000 + rank * INTS + i;
}

static void wait_with(int way, MPI_Request *request) {
  MPI_Status status;
  int flag = 0, index = -1, count = 0;
  if (way % 4 == 0) {
    OK(MPI_Wait(request, &status));
  } else if (way % 4 == 1) {
    while (!flag) OK(MPI_Testall(1, request, &flag, &status));
  } else if (way % 4 == 2) {
    OK(MPI_Waitany(1, request, &index, &status));
  } else {
    OK(MPI_Waitsome(1, request, &count, &index, &status));
    CHECK(count == 1);
  }
  CHECK(*request == MPI_REQUEST_NULL && count_of(&status, MPI_INT) == INTS);
}

/* Calls of the program in which the last rank is until rank 0 is through with the operation. */
static void meet(int way, MPI_Comm comm) {
  int mine = rank, all[64] = {0}, sum = 0, size;
  MPI_Comm inner;
  MPI_Comm_size(comm, &size);
  switch (way) {
    case 0:
    case 1: MPI_Barrier(comm); break;
    case 2: MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm); break;
    case 3: MPI_Bcast(&mine, 1, MPI_INT, 0, comm); break;
    case 4: MPI_Gather(&mine, 1, MPI_INT, all, 1, MPI_INT, size - 1, comm); MPI_Barrier(comm); break;
    case 5: MPI_Alltoall(all, 1, MPI_INT, all + size, 1, MPI_INT, comm); break;
    case 6: MPI_Scan(&mine, &sum, 1, MPI_INT, MPI_SUM, comm); MPI_Barrier(comm); break;
    case 7: MPI_Allgather(&mine, 1, MPI_INT, all, 1, MPI_INT, comm); break;
    case 8: MPI_Comm_dup(comm, &inner); MPI_Barrier(inner); MPI_Comm_free(&inner); break;
    case 9: MPI_Comm_split(comm, 0, -rank, &inner); MPI_Barrier(inner); MPI_Comm_free(&inner); break;
    default: MPI_Barrier(comm); break;
  }
}

/* Rank 0 waits before the others' meeting, these after it. */
static void others_meet_first(MPI_Comm comm, const char *name) {
  for (int way = 0; way < 10; way++) {
    MPI_File file = created(name);
    MPI_Request request;
    interleave(file);
    fill(way);
    OK(MPI_File_iwrite_all(file, data, INTS, MPI_INT, &request));
    if (rank == 0) wait_with(way, &request);
    meet(way, comm);
    if (rank != 0) wait_with(way + 1, &request);
    OK(MPI_File_iread_at_all(file, 0, back, INTS, MPI_INT, &request));
    if (rank == 0) wait_with(way, &request);
    meet(way, comm);
    if (rank != 0) wait_with(way, &request);
    CHECK(memcmp(data, back, sizeof data) == 0);
    OK(MPI_File_close(&file));
  }
}

/* Rank 0 waits before it sends what the others receive before they wait. */
static void others_receive_first(void) {
  MPI_File file = created("receive");
  MPI_Request request;
  int word = 0;
  interleave(file);
  fill(20);
  OK(MPI_File_iwrite_all(file, data, INTS, MPI_INT, &request));
  if (rank == 0) {
    wait_with(0, &request);
    for (int other = 1; other < ranks; other++) MPI_Send(&other, 1, MPI_INT, other, 3, MPI_COMM_WORLD);
  } else {
    MPI_Recv(&word, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(word == rank);
    wait_with(0, &request);
  }
  OK(MPI_File_close(&file));
}

/* A split operation, and several at once on files of nested communicators. */
static void several(void) {
  static int more[INTS];
  MPI_File whole = created("whole"), half;
  MPI_Comm comm;
  MPI_Request requests[3];
  char name[40];
  snprintf(name, sizeof name, "half.%d", rank % 2);
  const char *path = fresh(name);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comm);
  OK(MPI_File_open(comm, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &half));
  interleave(whole);
  interleave(half);
  fill(30);
  memcpy(more, data, sizeof more);
  OK(MPI_File_iwrite_all(whole, data, INTS, MPI_INT, &requests[0]));
  OK(MPI_File_iwrite_all(half, more, INTS, MPI_INT, &requests[1]));
  OK(MPI_File_iread_at_all(half, 0, back, INTS, MPI_INT, &requests[2]));
  if (rank == 0) OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
  MPI_Barrier(comm);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank != 0) OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
  CHECK(memcmp(data, back, sizeof data) == 0);
  OK(MPI_File_write_all_begin(whole, data, INTS, MPI_INT));
  if (rank == 0) OK(MPI_File_write_all_end(whole, data, MPI_STATUS_IGNORE));
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank != 0) OK(MPI_File_write_all_end(whole, data, MPI_STATUS_IGNORE));
  /* Ordered ones, too. */
  OK(MPI_File_write_ordered_begin(half, data, INTS, MPI_INT));
  if (rank == 0) OK(MPI_File_write_ordered_end(half, data, MPI_STATUS_IGNORE));
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank != 0) OK(MPI_File_write_ordered_end(half, data, MPI_STATUS_IGNORE));
  OK(MPI_File_close(&half));
  OK(MPI_File_close(&whole));
  MPI_Comm_free(&comm);
}

/* The rest of a rank's part is done while it computes. */
static void computes(void) {
  MPI_File file = created("computes");
  MPI_Request request;
  interleave(file);
  fill(40);
  OK(MPI_File_iwrite_all(file, data, INTS, MPI_INT, &request));
  if (rank == 0) {
    wait_with(0, &request);
    OK(MPI_File_read_at(file, 0, back, INTS, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(memcmp(data, back, sizeof data) == 0);
  } else {
    usleep(200000);
  }
  if (rank != 0) wait_with(0, &request);
  OK(MPI_File_close(&file));
}

/* The ways in which rank 0 takes a word, or gives one, before it waits itself. */
enum { IPROBE, IMPROBE, REPLACE, RECEIVE_LARGE, SEND_LARGE, EXCHANGE_LARGE, REPLACE_LARGE, STATUS_ANY, STATUS_ALL, STATUS_SOME, WAYS };
static const int of_4_0 = MPI_VERSION >= 4, of_4_1 = MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1);

static void take(int way) {
  int word = 0, given = 7, flag = 0, index = -1;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Message message;
  if (way == IPROBE) {
    while (!flag) OK(MPI_Iprobe(1, way, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    OK(MPI_Recv(&word, 1, MPI_INT, 1, way, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  } else if (way == REPLACE) {
    int words[4] = {7, 1, 7, 1};
    MPI_Datatype pair;
    MPI_Status status;
    MPI_Type_vector(2, 1, 2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    OK(MPI_Sendrecv_replace(words, 1, pair, 1, way, 1, way, MPI_COMM_WORLD, &status));
    MPI_Type_free(&pair);
    CHECK(words[0] == 1 && words[1] == 1 && words[2] == 7 && count_of(&status, MPI_INT) == 1);
    word = words[0];
  } else if (way == IMPROBE) {
    while (!flag) OK(MPI_Improbe(1, way, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE));
    OK(MPI_Mrecv(&word, 1, MPI_INT, &message, MPI_STATUS_IGNORE));
#if MPI_VERSION >= 4
  } else if (way == RECEIVE_LARGE) {
    OK(MPI_Recv_c(&word, 1, MPI_INT, 1, way, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  } else if (way == SEND_LARGE) {
    OK(MPI_Ssend_c(&given, 1, MPI_INT, 1, way, MPI_COMM_WORLD));
    word = 1;
  } else if (way == EXCHANGE_LARGE) {
    OK(MPI_Sendrecv_c(&given, 1, MPI_INT, 1, way, &word, 1, MPI_INT, 1, way, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  } else if (way == REPLACE_LARGE) {
    word = given;
    OK(MPI_Sendrecv_replace_c(&word, 1, MPI_INT, 1, way, 1, way, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
#endif
  } else {
    OK(MPI_Irecv(&word, 1, MPI_INT, 1, way, MPI_COMM_WORLD, &request));
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
    while (!flag) {
      if (way == STATUS_ANY) OK(MPI_Request_get_status_any(1, &request, &index, &flag, MPI_STATUS_IGNORE));
      if (way == STATUS_ALL) OK(MPI_Request_get_status_all(1, &request, &flag, MPI_STATUSES_IGNORE));
      if (way == STATUS_SOME) OK(MPI_Request_get_status_some(1, &request, &flag, &index, MPI_STATUSES_IGNORE));
    }
#endif
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  }
  CHECK(word == 1 && given == 7 && index <= 0);
}

/* Rank 1's word comes when it has waited for the operation, which rank 0 must carry on while it looks for the word. */
static void looks_first(void) {
  for (int way = 0; way < WAYS; way++) {
    if ((way >= RECEIVE_LARGE && !of_4_0) || (way >= STATUS_ANY && !of_4_1)) continue;
    MPI_File file = created("looks");
    MPI_Request request;
    int word = 1, given[2] = {0};
    interleave(file);
    fill(50 + way);
    OK(MPI_File_iwrite_all(file, data, INTS, MPI_INT, &request));
    if (rank == 0) take(way);
    wait_with(0, &request);
    if (rank == 1 && (way == REPLACE || (way >= SEND_LARGE && way <= REPLACE_LARGE))) {
      OK(MPI_Recv(given, 2, MPI_INT, 0, way, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      CHECK(given[0] == 7 && (way != REPLACE || given[1] == 7));
    }
    if (rank == 1 && way != SEND_LARGE) OK(MPI_Send(&word, 1, MPI_INT, 0, way, MPI_COMM_WORLD));
    OK(MPI_File_close(&file));
  }
}

/* Rank 0 aggregates in an operation that it could not begin itself; its part goes on while it waits for a message that
 * comes when the operation is through elsewhere. */
static void looks_first_with_an_error(int split) {
  MPI_File file = MPI_FILE_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Info info;
  int word = 1, code;
  MPI_Info_create(&info);
  /* Several rounds, in each of which rank 0 answers. */
  MPI_Info_set(info, "cb_nodes", "1");
  MPI_Info_set(info, "cb_buffer_size", "4096");
  OK(MPI_File_open(MPI_COMM_WORLD, fresh("error"), MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file));
  MPI_Info_free(&info);
  interleave(file);
  fill(70);
  if (split)
    code = MPI_File_write_at_all_begin(file, 0, data, rank == 0 ? -1 : INTS, MPI_INT);
  else
    code = MPI_File_iwrite_at_all(file, 0, data, rank == 0 ? -1 : INTS, MPI_INT, &request);
  CHECK(rank == 0 ? code != MPI_SUCCESS && request == MPI_REQUEST_NULL : code == MPI_SUCCESS);
  if (rank == 0) OK(MPI_Recv(&word, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  if (split && rank != 0) OK(MPI_File_write_at_all_end(file, data, MPI_STATUS_IGNORE));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  if (rank == 1) OK(MPI_Send(&word, 1, MPI_INT, 0, 5, MPI_COMM_WORLD));
  if (rank != 0) {
    OK(MPI_File_read_at(file, 0, back, INTS, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(memcmp(data, back, sizeof data) == 0);
  }
  OK(MPI_File_close(&file));
}

int main(int count, char **arguments) {
  MPI_Comm comm;
  /* Without a second argument, or if it only looks, as a program that has no threads. */
  int only_looks = count > 2 && strcmp(arguments[2], "looks") == 0;
  if (count > 2 && !only_looks) {
    begin(&count, &arguments);
  } else {
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    snprintf(path, sizeof path, "%s", arguments[1]);
  }
  if (ranks > 1) {
    looks_first();
    looks_first_with_an_error(0);
    looks_first_with_an_error(1);
  }
  if (only_looks) return end();
  others_meet_first(MPI_COMM_WORLD, "world");
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  others_meet_first(comm, "duplicate");
  MPI_Comm_free(&comm);
  others_receive_first();
  several();
  computes();
  return end();
}
