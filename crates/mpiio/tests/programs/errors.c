/* What is wrong has its error class, on the rank where it is wrong; what was refused changed nothing. */
#include "suite.h"

#include <sys/stat.h>

static void opening(void) {
  MPI_File file = MPI_FILE_NULL, other;
  MPI_Comm inter, half;
  const char *name = fresh("opening");
  char folder[1400];
  FAILS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR, MPI_INFO_NULL, &file), MPI_ERR_NO_SUCH_FILE);
  FAILS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY | MPI_MODE_CREATE, MPI_INFO_NULL, &file), MPI_ERR_AMODE);
  FAILS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY | MPI_MODE_EXCL, MPI_INFO_NULL, &file), MPI_ERR_AMODE);
  FAILS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_WRONLY, MPI_INFO_NULL, &file), MPI_ERR_AMODE);
  FAILS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE, MPI_INFO_NULL, &file), MPI_ERR_AMODE);
  snprintf(folder, sizeof folder, "%s/folder", path);
  if (rank == 0) mkdir(folder, 0700);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(MPI_File_open(MPI_COMM_WORLD, folder, MPI_MODE_RDWR, MPI_INFO_NULL, &file) != MPI_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) rmdir(folder);
  FAILS(MPI_File_delete(name, MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL, MPI_INFO_NULL, &file));
  FAILS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL, MPI_INFO_NULL, &other),
        MPI_ERR_FILE_EXISTS);
  OK(MPI_File_close(&file));
  CHECK(file == MPI_FILE_NULL);
  if (ranks > 1) {
    CHECK(MPI_File_open(MPI_COMM_WORLD, name, rank == 0 ? MPI_MODE_RDWR : MPI_MODE_RDONLY, MPI_INFO_NULL, &file) !=
          MPI_SUCCESS);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank % 2 ? 0 : 1, 5, &inter);
    FAILS(MPI_File_open(inter, name, MPI_MODE_RDWR, MPI_INFO_NULL, &file), MPI_ERR_COMM);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
  }
  /* The last one deletes it. */
  OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE | MPI_MODE_UNIQUE_OPEN, MPI_INFO_NULL,
                   &file));
  OK(MPI_File_close(&file));
  FAILS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR, MPI_INFO_NULL, &file), MPI_ERR_NO_SUCH_FILE);
}

/* A file is deleted by its name where it was opened, not by that name wherever the program is then. */
static void deleting_from_another_folder(void) {
  MPI_File file = MPI_FILE_NULL;
  char before[1200], folder[1400], same[1500];
  struct stat found;
  if (stat(path, &found) != 0 || getcwd(before, sizeof before) == NULL) return;
  snprintf(folder, sizeof folder, "%s/elsewhere", path);
  snprintf(same, sizeof same, "%s/relative", folder);
  fresh("relative");
  if (rank == 0) {
    CHECK(mkdir(folder, 0700) == 0);
    fclose(fopen(same, "w"));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(chdir(path) == 0);
  OK(MPI_File_open(MPI_COMM_WORLD, "relative", MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                   MPI_INFO_NULL, &file));
  CHECK(chdir(folder) == 0);
  OK(MPI_File_close(&file));
  CHECK(chdir(path) == 0);
  CHECK(access("relative", F_OK) != 0 && access(same, F_OK) == 0);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    unlink(same);
    rmdir(folder);
  }
  CHECK(chdir(before) == 0);
}

static int told;

/* What a file was can be asked until its handle is gone. */
static void asks(MPI_File *file, int *code, ...) {
  MPI_Info info = MPI_INFO_NULL;
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Offset size = 0;
  int mode = 0, members = 0;
  CHECK(++told == 1 && class_of(*code) == MPI_ERR_NO_SUCH_FILE);
  OK(MPI_File_get_info(*file, &info));
  OK(MPI_File_get_amode(*file, &mode));
  OK(MPI_File_get_group(*file, &group));
  MPI_Group_size(group, &members);
  CHECK(mode == (MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE) && members == ranks);
  /* Its bytes are gone: that is an error, of which the handler is not told anew. */
  CHECK(MPI_File_get_size(*file, &size) != MPI_SUCCESS);
  CHECK(MPI_File_write_at_all(*file, 0, &mode, 1, MPI_INT, MPI_STATUS_IGNORE) != MPI_SUCCESS);
  MPI_Info_free(&info);
  MPI_Group_free(&group);
}

/* Closing fails on the rank that was to delete the file. */
static void failing_to_close(void) {
  const char *name = fresh("vanished");
  MPI_Errhandler handler;
  MPI_Comm comm;
  MPI_File file;
  struct stat found;
  if (stat(path, &found) != 0) return;
  for (int gone = 0; gone < 2; gone++) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    OK(MPI_File_open(comm, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    OK(MPI_File_create_errhandler(asks, &handler));
    OK(MPI_File_set_errhandler(file, handler));
    OK(MPI_Errhandler_free(&handler));
    if (gone) MPI_Comm_free(&comm);
    if (rank == 0) CHECK(unlink(name) == 0);
    told = 0;
    int code = MPI_File_close(&file);
    CHECK(rank == 0 ? class_of(code) == MPI_ERR_NO_SUCH_FILE && told == 1 : code == MPI_SUCCESS && told == 0);
    CHECK(file == MPI_FILE_NULL);
    if (!gone) MPI_Comm_free(&comm);
  }
}

static int by_default;

static void counts(MPI_File *file, int *code, ...) {
  CHECK(*file == MPI_FILE_NULL && class_of(*code) == MPI_ERR_NO_SUCH_FILE);
  by_default++;
}

/* A library sets the default handler aside for a while, and puts it back. */
static void keeping_the_default_handler(void) {
  const char *name = fresh("default");
  MPI_Errhandler handler, kept;
  MPI_File file;
  OK(MPI_File_create_errhandler(counts, &handler));
  OK(MPI_File_set_errhandler(MPI_FILE_NULL, handler));
  OK(MPI_Errhandler_free(&handler));
  for (int time = 0; time < 3; time++) {
    OK(MPI_File_get_errhandler(MPI_FILE_NULL, &kept));
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
    FAILS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR, MPI_INFO_NULL, &file), MPI_ERR_NO_SUCH_FILE);
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, kept));
    OK(MPI_Errhandler_free(&kept));
    FAILS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR, MPI_INFO_NULL, &file), MPI_ERR_NO_SUCH_FILE);
    CHECK(by_default == time + 1);
  }
  OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
}

/* Every entry point in a mode that does not allow it. */
static void modes(void) {
  const char *name = fresh("modes");
  MPI_File file = opened(name, MPI_MODE_CREATE | MPI_MODE_WRONLY);
  MPI_Request request;
  MPI_Status status;
  int value = 0;
  FAILS(MPI_File_read(file, &value, 1, MPI_INT, &status), MPI_ERR_ACCESS);
  FAILS(MPI_File_read_at(file, 0, &value, 1, MPI_INT, &status), MPI_ERR_ACCESS);
  FAILS(MPI_File_read_all(file, &value, 1, MPI_INT, &status), MPI_ERR_ACCESS);
  FAILS(MPI_File_read_at_all(file, 0, &value, 1, MPI_INT, &status), MPI_ERR_ACCESS);
  FAILS(MPI_File_read_shared(file, &value, 1, MPI_INT, &status), MPI_ERR_ACCESS);
  FAILS(MPI_File_read_ordered(file, &value, 1, MPI_INT, &status), MPI_ERR_ACCESS);
  FAILS(MPI_File_iread(file, &value, 1, MPI_INT, &request), MPI_ERR_ACCESS);
  FAILS(MPI_File_iread_at(file, 0, &value, 1, MPI_INT, &request), MPI_ERR_ACCESS);
  FAILS(MPI_File_iread_all(file, &value, 1, MPI_INT, &request), MPI_ERR_ACCESS);
  FAILS(MPI_File_iread_at_all(file, 0, &value, 1, MPI_INT, &request), MPI_ERR_ACCESS);
  FAILS(MPI_File_iread_shared(file, &value, 1, MPI_INT, &request), MPI_ERR_ACCESS);
  FAILS(MPI_File_read_all_begin(file, &value, 1, MPI_INT), MPI_ERR_ACCESS);
  FAILS(MPI_File_read_at_all_begin(file, 0, &value, 1, MPI_INT), MPI_ERR_ACCESS);
  FAILS(MPI_File_read_ordered_begin(file, &value, 1, MPI_INT), MPI_ERR_ACCESS);
  OK(MPI_File_close(&file));
  MPI_Barrier(MPI_COMM_WORLD);
  file = opened(name, MPI_MODE_RDONLY);
  FAILS(MPI_File_write(file, &value, 1, MPI_INT, &status), MPI_ERR_READ_ONLY);
  FAILS(MPI_File_write_at(file, 0, &value, 1, MPI_INT, &status), MPI_ERR_READ_ONLY);
  FAILS(MPI_File_write_all(file, &value, 1, MPI_INT, &status), MPI_ERR_READ_ONLY);
  FAILS(MPI_File_write_at_all(file, 0, &value, 1, MPI_INT, &status), MPI_ERR_READ_ONLY);
  FAILS(MPI_File_write_shared(file, &value, 1, MPI_INT, &status), MPI_ERR_READ_ONLY);
  FAILS(MPI_File_write_ordered(file, &value, 1, MPI_INT, &status), MPI_ERR_READ_ONLY);
  FAILS(MPI_File_iwrite(file, &value, 1, MPI_INT, &request), MPI_ERR_READ_ONLY);
  FAILS(MPI_File_iwrite_at(file, 0, &value, 1, MPI_INT, &request), MPI_ERR_READ_ONLY);
  FAILS(MPI_File_iwrite_all(file, &value, 1, MPI_INT, &request), MPI_ERR_READ_ONLY);
  FAILS(MPI_File_iwrite_at_all(file, 0, &value, 1, MPI_INT, &request), MPI_ERR_READ_ONLY);
  FAILS(MPI_File_iwrite_shared(file, &value, 1, MPI_INT, &request), MPI_ERR_READ_ONLY);
  FAILS(MPI_File_write_all_begin(file, &value, 1, MPI_INT), MPI_ERR_READ_ONLY);
  FAILS(MPI_File_write_at_all_begin(file, 0, &value, 1, MPI_INT), MPI_ERR_READ_ONLY);
  FAILS(MPI_File_write_ordered_begin(file, &value, 1, MPI_INT), MPI_ERR_READ_ONLY);
  FAILS(MPI_File_set_size(file, 0), MPI_ERR_READ_ONLY);
  FAILS(MPI_File_preallocate(file, 10), MPI_ERR_READ_ONLY);
  FAILS(MPI_File_sync(file), MPI_ERR_READ_ONLY);
  OK(MPI_File_close(&file));
}

static void arguments_of_one_rank(void) {
  MPI_File file = created("arguments");
  MPI_Request request;
  MPI_Status status;
  MPI_Offset place;
  MPI_Aint extent;
  int value = 100 + rank, back = 0, me = rank == ranks - 1;
  /* The last rank is wrong, the others' data arrive. */
  int code = MPI_File_write_at_all(file, me ? -8 : 4 * rank, &value, 1, MPI_INT, &status);
  CHECK(class_of(code) == (me ? MPI_ERR_ARG : MPI_SUCCESS));
  code = MPI_File_iread_at_all(file, 4 * rank, &back, 1, me ? MPI_DATATYPE_NULL : MPI_INT, &request);
  CHECK(class_of(code) == (me ? MPI_ERR_TYPE : MPI_SUCCESS));
  OK(MPI_Wait(&request, &status));
  CHECK(me || back == value);
  code = MPI_File_write_ordered(file, &value, me ? -1 : 1, MPI_INT, &status);
  CHECK(me ? code != MPI_SUCCESS : code == MPI_SUCCESS);
  code = MPI_File_read_at_all_begin(file, me ? -1 : 0, &back, 1, MPI_INT);
  CHECK(class_of(code) == (me ? MPI_ERR_ARG : MPI_SUCCESS));
  if (!me) OK(MPI_File_read_at_all_end(file, &back, &status));
  FAILS(MPI_File_write_at(file, -1, &value, 1, MPI_INT, &status), MPI_ERR_ARG);
  FAILS(MPI_File_write(file, &value, 1, MPI_DATATYPE_NULL, &status), MPI_ERR_TYPE);
  CHECK(MPI_File_read_at(file, 0, &value, -1, MPI_INT, &status) != MPI_SUCCESS);
  /* No memory is wrong where there are data, and only there. */
  code = MPI_File_write_at_all(file, 4 * rank, me ? NULL : &value, 1, MPI_INT, &status);
  CHECK(class_of(code) == (me ? MPI_ERR_BUFFER : MPI_SUCCESS));
  code = MPI_File_iread_at_all(file, 4 * rank, me ? NULL : &back, 1, MPI_INT, &request);
  CHECK(class_of(code) == (me ? MPI_ERR_BUFFER : MPI_SUCCESS));
  OK(MPI_Wait(&request, &status));
  CHECK(me || back == value);
  code = MPI_File_write_ordered_begin(file, me ? NULL : &value, 1, MPI_INT);
  CHECK(class_of(code) == (me ? MPI_ERR_BUFFER : MPI_SUCCESS));
  if (!me) OK(MPI_File_write_ordered_end(file, &value, &status));
  FAILS(MPI_File_write_at(file, 0, NULL, 1, MPI_INT, &status), MPI_ERR_BUFFER);
  FAILS(MPI_File_read_shared(file, NULL, 1, MPI_INT, &status), MPI_ERR_BUFFER);
  FAILS(MPI_File_iwrite(file, NULL, 1, MPI_INT, &request), MPI_ERR_BUFFER);
  OK(MPI_File_read_at(file, 0, NULL, 0, MPI_INT, &status));
  FAILS(MPI_File_seek(file, -1, MPI_SEEK_SET), MPI_ERR_ARG);
  FAILS(MPI_File_seek(file, 0, 77), MPI_ERR_ARG);
  FAILS(MPI_File_get_byte_offset(file, -1, &place), MPI_ERR_ARG);
  FAILS(MPI_File_get_type_extent(file, MPI_DATATYPE_NULL, &extent), MPI_ERR_TYPE);
  FAILS(MPI_File_set_size(file, -1), MPI_ERR_ARG);
  FAILS(MPI_File_preallocate(file, -1), MPI_ERR_ARG);
  if (ranks > 1) {
    CHECK(MPI_File_set_size(file, 100 + rank) != MPI_SUCCESS);
    CHECK(MPI_File_set_atomicity(file, rank == 0) != MPI_SUCCESS);
    CHECK(MPI_File_seek_shared(file, rank, MPI_SEEK_SET) != MPI_SUCCESS);
  }
  OK(MPI_File_close(&file));
}

/* MPI wants whole etypes. Open MPI moves parts, too; at its shared pointer, what comes next overwrites the last one. */
static void parts_of_etypes(void) {
  MPI_File file = created("parts");
  MPI_Request request;
  MPI_Status status;
  MPI_Offset place = -1;
  char data[24], back[24] = "";
  for (int i = 0; i < 24; i++) data[i] = (char)(24 * rank + i + 1);
  interleave(file);
#ifdef OPEN_MPI
  OK(MPI_File_write(file, data, 6, MPI_BYTE, &status));
  CHECK(count_of(&status, MPI_BYTE) == 6);
  OK(MPI_File_get_position(file, &place));
  CHECK(place == 1);
  OK(MPI_File_write_all(file, data + 6, 7, MPI_BYTE, &status));
  OK(MPI_File_iwrite(file, data + 13, 3, MPI_BYTE, &request));
  OK(MPI_Wait(&request, &status));
  OK(MPI_File_get_position(file, &place));
  CHECK(place == 4);
  OK(MPI_File_write_at_all(file, 4, data + 16, 6, MPI_BYTE, &status));
  settle(file);
  OK(MPI_File_read_at(file, 0, back, 5, MPI_BYTE, &status));
  CHECK(memcmp(back, data, 5) == 0 && back[5] == 0);
  OK(MPI_File_seek(file, 1, MPI_SEEK_SET));
  OK(MPI_File_read_all(file, back + 4, 9, MPI_BYTE, &status));
  OK(MPI_File_read_all(file, back + 13, 9, MPI_BYTE, &status));
  CHECK(memcmp(back, data, 22) == 0);
  /* A seek from a pointer within an etype counts from the beginning of that. */
  OK(MPI_File_seek(file, -4, MPI_SEEK_CUR));
  OK(MPI_File_get_position(file, &place));
  CHECK(place == 1);
#else
  FAILS(MPI_File_write(file, data, 6, MPI_BYTE, &status), MPI_ERR_IO);
  FAILS(MPI_File_write_all(file, data, 6, MPI_BYTE, &status), MPI_ERR_IO);
  FAILS(MPI_File_iwrite(file, data, 6, MPI_BYTE, &request), MPI_ERR_IO);
  FAILS(MPI_File_read_at(file, 0, back, 6, MPI_BYTE, &status), MPI_ERR_IO);
  OK(MPI_File_get_position(file, &place));
  CHECK(place == 0);
#endif
  FAILS(MPI_File_write_shared(file, data, 6, MPI_BYTE, &status), MPI_ERR_IO);
  FAILS(MPI_File_write_ordered(file, data, 6, MPI_BYTE, &status), MPI_ERR_IO);
  OK(MPI_File_get_position_shared(file, &place));
  CHECK(place == 0);
  OK(MPI_File_close(&file));
}

/* A datatype counts only from its commitment on, whatever was tried before. */
static void uncommitted(void) {
  MPI_File file = created("uncommitted");
  MPI_Datatype type;
  MPI_Request request;
  MPI_Status status;
  int data[2] = {1 + rank, 2 + rank}, back[2] = {0, 0};
  MPI_Type_contiguous(2, MPI_INT, &type);
  FAILS(MPI_File_write(file, data, 1, type, &status), MPI_ERR_TYPE);
  FAILS(MPI_File_write_at(file, 0, data, 0, type, &status), MPI_ERR_TYPE);
  FAILS(MPI_File_write_all(file, data, 1, type, &status), MPI_ERR_TYPE);
  FAILS(MPI_File_write_shared(file, data, 1, type, &status), MPI_ERR_TYPE);
  FAILS(MPI_File_iwrite(file, data, 1, type, &request), MPI_ERR_TYPE);
  FAILS(MPI_File_write_at_all_begin(file, 0, data, 1, type), MPI_ERR_TYPE);
  FAILS(MPI_File_read_at(file, 0, back, 1, type, &status), MPI_ERR_TYPE);
  FAILS(MPI_File_set_view(file, 0, MPI_INT, type, "native", MPI_INFO_NULL), MPI_ERR_TYPE);
  FAILS(MPI_File_set_view(file, 0, type, type, "native", MPI_INFO_NULL), MPI_ERR_TYPE);
  FAILS(MPI_File_set_view(file, 0, MPI_INT, type, "external32", MPI_INFO_NULL), MPI_ERR_TYPE);
  MPI_Type_commit(&type);
  OK(MPI_File_set_view(file, 8 * rank, MPI_INT, type, "native", MPI_INFO_NULL));
  OK(MPI_File_write_at_all(file, 0, data, 1, type, &status));
  OK(MPI_File_read_at(file, 0, back, 1, type, &status));
  CHECK(memcmp(data, back, sizeof data) == 0);
  MPI_Type_free(&type);
  /* The next one may have the handle of the last. */
  MPI_Type_contiguous(2, MPI_INT, &type);
  FAILS(MPI_File_write_at(file, 0, data, 1, type, &status), MPI_ERR_TYPE);
  MPI_Type_free(&type);
  OK(MPI_File_close(&file));
}

/* Where one rank sets no view, all still have one shared pointer. */
static void view_of_all_but_one(void) {
  MPI_File file = created("all_but_one");
  MPI_Datatype type;
  MPI_Offset place = -1;
  int data = rank, found[64] = {0}, sum = 0;
  MPI_Type_contiguous(1, MPI_INT, &type);
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  OK(MPI_File_write_shared(file, &data, 1, MPI_INT, MPI_STATUS_IGNORE));
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0)
    FAILS(MPI_File_set_view(file, 0, MPI_INT, type, "native", MPI_INFO_NULL), MPI_ERR_TYPE);
  else
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  OK(MPI_File_write_shared(file, &data, 1, MPI_INT, MPI_STATUS_IGNORE));
  MPI_Barrier(MPI_COMM_WORLD);
  OK(MPI_File_get_position_shared(file, &place));
  CHECK(place == ranks);
  settle(file);
  OK(MPI_File_read_at(file, 0, found, ranks, MPI_INT, MPI_STATUS_IGNORE));
  for (int i = 0; i < ranks; i++) sum += found[i];
  CHECK(sum == ranks * (ranks - 1) / 2);
  MPI_Type_free(&type);
  OK(MPI_File_close(&file));
}

static MPI_Datatype indexed(int first_length, int first, int second_length, int second) {
  int lengths[2] = {first_length, second_length}, places[2] = {first, second};
  MPI_Datatype type;
  MPI_Type_indexed(2, lengths, places, MPI_INT, &type);
  MPI_Type_commit(&type);
  return type;
}

static void views(void) {
  const char *name = fresh("views");
  MPI_File file = opened(name, MPI_MODE_CREATE | MPI_MODE_RDWR);
  MPI_Offset byte = -1;
  MPI_Status status;
  MPI_Datatype back = indexed(1, 3, 1, 0), negative = indexed(1, -2, 1, 2), overlapping = indexed(3, 0, 1, 1);
  int data[4] = {1, 2, 3, 4}, found[8] = {0};
  char text[MPI_MAX_ERROR_STRING];
  int length = 0, code;
  OK(MPI_File_set_view(file, 12, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  code = MPI_File_set_view(file, -1, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
  CHECK(class_of(code) == MPI_ERR_ARG);
  MPI_Error_string(code, text, &length);
  CHECK(strstr(text, "displacement") != NULL);
  CHECK(MPI_File_set_view(file, 0, MPI_INT, MPI_CHAR, "native", MPI_INFO_NULL) != MPI_SUCCESS);
  CHECK(MPI_File_set_view(file, 0, MPI_INT, back, "native", MPI_INFO_NULL) != MPI_SUCCESS);
  CHECK(MPI_File_set_view(file, 0, MPI_INT, negative, "native", MPI_INFO_NULL) != MPI_SUCCESS);
  CHECK(MPI_File_set_view(file, 0, MPI_INT, overlapping, "native", MPI_INFO_NULL) != MPI_SUCCESS);
  CHECK(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", MPI_INFO_NULL) != MPI_SUCCESS);
  OK(MPI_File_get_byte_offset(file, 1, &byte));
  CHECK(byte == 16);
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  if (rank == 0) OK(MPI_File_write(file, data, 4, MPI_INT, &status));
  OK(MPI_File_close(&file));
  MPI_Barrier(MPI_COMM_WORLD);
  /* To read, pieces may overlap. */
  file = opened(name, MPI_MODE_RDONLY);
  CHECK(MPI_File_set_view(file, 0, MPI_INT, back, "native", MPI_INFO_NULL) != MPI_SUCCESS);
  OK(MPI_File_set_view(file, 0, MPI_INT, overlapping, "native", MPI_INFO_NULL));
  OK(MPI_File_read_all(file, found, 6, MPI_INT, &status));
  CHECK(found[0] == 1 && found[1] == 2 && found[2] == 3 && found[3] == 2 && found[4] == 4);
  CHECK(count_of(&status, MPI_INT) == 5);
  /* The end is the first etype behind the last byte: the fifth is the last int, the sixth is the first one behind it. */
  OK(MPI_File_seek(file, 0, MPI_SEEK_END));
  OK(MPI_File_get_position(file, &byte));
  CHECK(byte == 5);
  OK(MPI_File_seek_shared(file, -1, MPI_SEEK_END));
  OK(MPI_File_get_position_shared(file, &byte));
  CHECK(byte == 4);
  OK(MPI_File_close(&file));
  MPI_Type_free(&back);
  MPI_Type_free(&negative);
  MPI_Type_free(&overlapping);
}

int main(int count, char **arguments) {
  begin(&count, &arguments);
  opening();
  deleting_from_another_folder();
  failing_to_close();
  keeping_the_default_handler();
  modes();
  arguments_of_one_rank();
  parts_of_etypes();
  uncommitted();
  if (ranks > 1) view_of_all_but_one();
  views();
  return end();
}
