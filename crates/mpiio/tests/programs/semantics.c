/* What MPI says of files beside moving bytes: modes, errors, positions, hints, error handlers. Run under the shim.
 *
 * semantics FOLDER [fatal]
 */
#include "native.h"

#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int rank, ranks, failures;
static char path[1000], other_path[1010];

#define CHECK(condition)                                                                        \
  do {                                                                                          \
    if (!(condition)) {                                                                         \
      fprintf(stderr, "FAILED: line %d: %s (rank %d of %d)\n", __LINE__, #condition, rank, ranks); \
      failures++;                                                                               \
    }                                                                                           \
  } while (0)

static int class_of(int code) {
  int error_class = -1;
  MPI_Error_class(code, &error_class);
  return error_class;
}

static int open_file(const char *name, int mode, MPI_File *file) {
  return MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, file);
}

static void remove_file(const char *name) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) unlink(name);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void modes(void) {
  MPI_File file;
  MPI_Offset place, size;
  MPI_Status status;
  char text[4] = "abcd", back[8];
  int amode = 0, count = -1;
  remove_file(path);
  CHECK(class_of(open_file(path, MPI_MODE_RDONLY, &file)) == MPI_ERR_NO_SUCH_FILE);
  CHECK(file == MPI_FILE_NULL);
  CHECK(class_of(open_file("/no/such/folder/file", MPI_MODE_CREATE | MPI_MODE_RDWR, &file)) == MPI_ERR_NO_SUCH_FILE);
  CHECK(class_of(open_file(path, MPI_MODE_RDONLY | MPI_MODE_RDWR, &file)) == MPI_ERR_AMODE);
  CHECK(class_of(open_file(path, MPI_MODE_RDONLY | MPI_MODE_CREATE, &file)) == MPI_ERR_AMODE);
  CHECK(class_of(open_file(path, MPI_MODE_CREATE, &file)) == MPI_ERR_AMODE);
  CHECK(class_of(open_file(path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL, &file)) ==
        MPI_ERR_AMODE);

  CHECK(open_file(path, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY, &file) == MPI_SUCCESS);
  CHECK(MPI_File_get_amode(file, &amode) == MPI_SUCCESS);
  CHECK(amode == (MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY));
  CHECK(MPI_File_write_at_all(file, 4 * rank, text, 4, MPI_CHAR, &status) == MPI_SUCCESS);
  CHECK(class_of(MPI_File_read_at(file, 0, back, 4, MPI_CHAR, &status)) == MPI_ERR_ACCESS);
  CHECK(class_of(MPI_File_read_all(file, back, 4, MPI_CHAR, &status)) == MPI_ERR_ACCESS);
  MPI_Get_count(&status, MPI_CHAR, &count);
  CHECK(count == 0);
  CHECK(MPI_File_close(&file) == MPI_SUCCESS);
  CHECK(file == MPI_FILE_NULL);
  CHECK(class_of(open_file(path, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY, &file)) == MPI_ERR_FILE_EXISTS);

  CHECK(open_file(path, MPI_MODE_RDONLY, &file) == MPI_SUCCESS);
  CHECK(class_of(MPI_File_write_at(file, 0, text, 4, MPI_CHAR, &status)) == MPI_ERR_READ_ONLY);
  CHECK(class_of(MPI_File_write_at_all(file, 0, text, 4, MPI_CHAR, &status)) == MPI_ERR_READ_ONLY);
  CHECK(class_of(MPI_File_set_size(file, 0)) == MPI_ERR_READ_ONLY);
  CHECK(MPI_File_close(&file) == MPI_SUCCESS);

  CHECK(open_file(path, MPI_MODE_RDWR | MPI_MODE_APPEND | MPI_MODE_UNIQUE_OPEN, &file) == MPI_SUCCESS);
  CHECK(MPI_File_get_position(file, &place) == MPI_SUCCESS);
  CHECK(place == 4 * ranks);
  CHECK(MPI_File_get_size(file, &size) == MPI_SUCCESS);
  CHECK(size == 4 * ranks);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(MPI_File_set_size(file, 10) == MPI_SUCCESS);
  CHECK(MPI_File_get_size(file, &size) == MPI_SUCCESS && size == 10);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(MPI_File_preallocate(file, 5000) == MPI_SUCCESS);
  CHECK(MPI_File_get_size(file, &size) == MPI_SUCCESS && size == 5000);
  CHECK(class_of(MPI_File_set_size(file, -1)) == MPI_ERR_ARG);
  CHECK(MPI_File_sync(file) == MPI_SUCCESS);
  CHECK(MPI_File_close(&file) == MPI_SUCCESS);

  snprintf(other_path, sizeof other_path, "ufs:%s", path);
  CHECK(open_file(other_path, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, &file) == MPI_SUCCESS);
  CHECK(MPI_File_close(&file) == MPI_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(access(path, F_OK) != 0);
  CHECK(class_of(MPI_File_delete(path, MPI_INFO_NULL)) == MPI_ERR_NO_SUCH_FILE);
}

static void positions(void) {
  MPI_File file;
  MPI_Offset place = -1, byte = -1;
  MPI_Datatype filetype, etype_back, filetype_back;
  MPI_Status status;
  char representation[MPI_MAX_DATAREP_STRING];
  int data[6] = {1, 2, 3, 4, 5, 6}, back[6] = {0}, count = -1, combiner, a, b, c;
  remove_file(path);
  CHECK(open_file(path, MPI_MODE_CREATE | MPI_MODE_RDWR, &file) == MPI_SUCCESS);
  MPI_Type_vector(2, 1, ranks, MPI_INT, &filetype);
  MPI_Type_create_resized(filetype, 0, 8 * ranks, &filetype_back);
  MPI_Type_free(&filetype);
  filetype = filetype_back;
  MPI_Type_commit(&filetype);
  CHECK(MPI_File_set_view(file, 4 * rank, MPI_INT, filetype, "native", MPI_INFO_NULL) == MPI_SUCCESS);
  MPI_Type_free(&filetype);
  CHECK(MPI_File_get_view(file, &place, &etype_back, &filetype_back, representation) == MPI_SUCCESS);
  CHECK(place == 4 * rank && etype_back == MPI_INT && strcmp(representation, "native") == 0);
  MPI_Type_get_envelope(filetype_back, &a, &b, &c, &combiner);
  CHECK(combiner != MPI_COMBINER_NAMED);
  MPI_Type_size(filetype_back, &a);
  CHECK(a == 8);
  MPI_Type_free(&filetype_back);

  CHECK(MPI_File_write_all(file, data, 4, MPI_INT, &status) == MPI_SUCCESS);
  CHECK(MPI_File_get_position(file, &place) == MPI_SUCCESS && place == 4);
  CHECK(MPI_File_write(file, data + 4, 2, MPI_INT, &status) == MPI_SUCCESS);
  CHECK(MPI_File_get_position(file, &place) == MPI_SUCCESS && place == 6);
  CHECK(MPI_File_get_byte_offset(file, 5, &byte) == MPI_SUCCESS && byte == 4 * rank + 5 * 4 * ranks);
  CHECK(class_of(MPI_File_get_byte_offset(file, -1, &byte)) == MPI_ERR_ARG);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(MPI_File_seek(file, -6, MPI_SEEK_CUR) == MPI_SUCCESS);
  CHECK(class_of(MPI_File_seek(file, -1, MPI_SEEK_CUR)) == MPI_ERR_ARG);
  CHECK(class_of(MPI_File_seek(file, 0, 12345)) == MPI_ERR_ARG);
  CHECK(MPI_File_read(file, back, 2, MPI_INT, &status) == MPI_SUCCESS);
  CHECK(MPI_File_read_all(file, back + 2, 4, MPI_INT, &status) == MPI_SUCCESS);
  CHECK(memcmp(data, back, sizeof data) == 0);
  CHECK(MPI_File_seek(file, 0, MPI_SEEK_END) == MPI_SUCCESS);
  CHECK(MPI_File_get_position(file, &place) == MPI_SUCCESS && place == 6);
  CHECK(MPI_File_seek(file, -2, MPI_SEEK_END) == MPI_SUCCESS);
  CHECK(MPI_File_read_all(file, back, 6, MPI_INT, &status) == MPI_SUCCESS);
  MPI_Get_count(&status, MPI_INT, &count);
  CHECK(count == 2 && back[0] == 5 && back[1] == 6);
  CHECK(MPI_File_read_at(file, 100, back, 6, MPI_INT, &status) == MPI_SUCCESS);
  MPI_Get_count(&status, MPI_INT, &count);
  CHECK(count == 0);

  CHECK(class_of(MPI_File_set_view(file, -1, MPI_INT, MPI_INT, "native", MPI_INFO_NULL)) == MPI_ERR_ARG);
  CHECK(class_of(MPI_File_set_view(file, 0, MPI_INT, MPI_CHAR, "native", MPI_INFO_NULL)) == MPI_ERR_ARG);
  CHECK(class_of(MPI_File_set_view(file, 0, MPI_INT, MPI_DATATYPE_NULL, "native", MPI_INFO_NULL)) == MPI_ERR_TYPE);
  CHECK(class_of(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "external33", MPI_INFO_NULL)) ==
        MPI_ERR_UNSUPPORTED_DATAREP);
  /* What was refused changed nothing. */
  CHECK(MPI_File_get_byte_offset(file, 1, &byte) == MPI_SUCCESS && byte == 4 * rank + 4 * ranks);
  CHECK(MPI_File_close(&file) == MPI_SUCCESS);
}

/* One rank's mistake is its own: the others' data arrive. */
static void mistakes(void) {
  MPI_File file;
  MPI_Status status;
  int value = 100 + rank, back = 0, code;
  remove_file(path);
  CHECK(open_file(path, MPI_MODE_CREATE | MPI_MODE_RDWR, &file) == MPI_SUCCESS);
  code = MPI_File_write_at_all(file, rank == 0 ? -1 : 4 * rank, &value, 1, MPI_INT, &status);
  CHECK(class_of(code) == (rank == 0 ? MPI_ERR_ARG : MPI_SUCCESS));
  code = MPI_File_write_at_all(file, 4 * rank, &value, rank == 0 ? -1 : 1, MPI_INT, &status);
  CHECK(class_of(code) == (rank == 0 ? MPI_ERR_COUNT : MPI_SUCCESS));
  code = MPI_File_read_at_all(file, 4 * rank, &back, 1, rank == 0 ? MPI_DATATYPE_NULL : MPI_INT, &status);
  CHECK(class_of(code) == (rank == 0 ? MPI_ERR_TYPE : MPI_SUCCESS));
  CHECK(rank == 0 || back == value);
  CHECK(MPI_File_set_view(file, 0, MPI_DOUBLE, MPI_DOUBLE, "native", MPI_INFO_NULL) == MPI_SUCCESS);
#ifdef OPEN_MPI
  CHECK(MPI_File_write_at(file, 0, &value, 1, MPI_INT, &status) == MPI_SUCCESS);
#else
  CHECK(class_of(MPI_File_write_at(file, 0, &value, 1, MPI_INT, &status)) == MPI_ERR_IO);
#endif
  CHECK(MPI_File_close(&file) == MPI_SUCCESS);
}

static void hints(void) {
  MPI_File file;
  MPI_Info info, used;
  char value[MPI_MAX_INFO_VAL];
  int flag = 0;
  MPI_Info_create(&info);
  MPI_Info_set(info, "cb_nodes", "1");
  MPI_Info_set(info, "cb_buffer_size", "65536");
  MPI_Info_set(info, "striping_unit", "not a number");
  MPI_Info_set(info, "access_style", "write_once,random");
  MPI_Info_set(info, "nobody_knows", "this");
  CHECK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file) == MPI_SUCCESS);
  CHECK(MPI_File_get_info(file, &used) == MPI_SUCCESS);
  MPI_Info_get(used, "cb_nodes", sizeof value - 1, value, &flag);
  CHECK(flag && strcmp(value, "1") == 0);
  MPI_Info_get(used, "cb_buffer_size", sizeof value - 1, value, &flag);
  CHECK(flag && strcmp(value, "65536") == 0);
  MPI_Info_get(used, "striping_unit", sizeof value - 1, value, &flag);
  CHECK(!flag);
  MPI_Info_get(used, "access_style", sizeof value - 1, value, &flag);
  CHECK(flag && strcmp(value, "write_once,random") == 0);
  MPI_Info_get(used, "nobody_knows", sizeof value - 1, value, &flag);
  CHECK(!flag);
  MPI_Info_get(used, "filename", sizeof value - 1, value, &flag);
  CHECK(flag && strcmp(value, path) == 0);
  MPI_Info_free(&used);
  MPI_Info_set(info, "cb_buffer_size", "8192");
  MPI_Info_set(info, "access_style", "read_once");
  CHECK(MPI_File_set_info(file, info) == MPI_SUCCESS);
  CHECK(MPI_File_get_info(file, &used) == MPI_SUCCESS);
  MPI_Info_get(used, "cb_buffer_size", sizeof value - 1, value, &flag);
  CHECK(flag && strcmp(value, "8192") == 0);
  MPI_Info_get(used, "access_style", sizeof value - 1, value, &flag);
  CHECK(flag && strcmp(value, "read_once") == 0);
  MPI_Info_free(&used);
  CHECK(MPI_File_close(&file) == MPI_SUCCESS);
  MPI_Info_free(&info);
}

static MPI_File handled_file;
static int handled_class, handled;

static void handler(MPI_File *file, int *code, ...) {
  handled_file = *file;
  handled_class = class_of(*code);
  handled++;
}

static void error_handlers(void) {
  MPI_File file, none;
  MPI_Errhandler errhandler, got;
  CHECK(open_file(path, MPI_MODE_CREATE | MPI_MODE_RDWR, &file) == MPI_SUCCESS);
  CHECK(MPI_File_get_errhandler(file, &got) == MPI_SUCCESS && got == MPI_ERRORS_RETURN);
  CHECK(MPI_File_create_errhandler(handler, &errhandler) == MPI_SUCCESS);
  CHECK(MPI_File_set_errhandler(file, errhandler) == MPI_SUCCESS);
  CHECK(MPI_File_get_errhandler(file, &got) == MPI_SUCCESS && got == errhandler);
  CHECK(MPI_Errhandler_free(&got) == MPI_SUCCESS && got == MPI_ERRHANDLER_NULL);
  CHECK(MPI_Errhandler_free(&errhandler) == MPI_SUCCESS && errhandler == MPI_ERRHANDLER_NULL);
  CHECK(class_of(MPI_File_seek(file, -1, MPI_SEEK_SET)) == MPI_ERR_ARG);
  CHECK(handled == 1 && handled_file == file && handled_class == MPI_ERR_ARG);
  CHECK(MPI_File_call_errhandler(file, MPI_ERR_IO) == MPI_SUCCESS);
  CHECK(handled == 2 && handled_class == MPI_ERR_IO);

  CHECK(MPI_File_create_errhandler(handler, &errhandler) == MPI_SUCCESS);
  CHECK(MPI_File_set_errhandler(MPI_FILE_NULL, errhandler) == MPI_SUCCESS);
  CHECK(class_of(open_file("/no/such/folder/file", MPI_MODE_RDONLY, &none)) == MPI_ERR_NO_SUCH_FILE);
  CHECK(handled == 3 && handled_file == MPI_FILE_NULL);
  CHECK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN) == MPI_SUCCESS);
  CHECK(MPI_Errhandler_free(&errhandler) == MPI_SUCCESS);
  CHECK(MPI_File_set_errhandler(file, MPI_ERRORS_RETURN) == MPI_SUCCESS);
  CHECK(MPI_File_close(&file) == MPI_SUCCESS);
}

static void nonblocking_and_split(void) {
  MPI_File file;
  MPI_Request request;
  MPI_Status status;
  int data[3] = {rank, rank + 1, rank + 2}, back[3] = {-1, -1, -1}, count = -1;
  remove_file(path);
  CHECK(open_file(path, MPI_MODE_CREATE | MPI_MODE_RDWR, &file) == MPI_SUCCESS);
  CHECK(MPI_File_iwrite_at(file, 12 * rank, data, 3, MPI_INT, &request) == MPI_SUCCESS);
  CHECK(MPI_Wait(&request, &status) == MPI_SUCCESS);
  MPI_Get_count(&status, MPI_INT, &count);
  CHECK(count == 3 && request == MPI_REQUEST_NULL);
  CHECK(MPI_File_read_at_all_begin(file, 12 * rank, back, 3, MPI_INT) == MPI_SUCCESS);
  CHECK(class_of(MPI_File_read_at_all_begin(file, 0, back, 3, MPI_INT)) == MPI_ERR_REQUEST);
  CHECK(MPI_File_read_at_all_end(file, back, &status) == MPI_SUCCESS);
  MPI_Get_count(&status, MPI_INT, &count);
  CHECK(count == 3 && memcmp(data, back, sizeof data) == 0);
  CHECK(class_of(MPI_File_read_at_all_end(file, back, &status)) == MPI_ERR_REQUEST);
  CHECK(MPI_File_close(&file) == MPI_SUCCESS);
}

/* Several files at once, on several communicators, in different orders; and a communicator that goes before its file. */
static void many_files(void) {
  enum { FILES = 5 };
  MPI_File files[FILES];
  MPI_Comm duplicate, half;
  MPI_Group group, world;
  char names[FILES][1100];
  int compared = -1, value, back;
  MPI_Comm_dup(MPI_COMM_WORLD, &duplicate);
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < FILES; i++) {
      snprintf(names[i], sizeof names[i], "%s.%d", path, i);
      CHECK(MPI_File_open(i % 2 ? duplicate : MPI_COMM_WORLD, names[i], MPI_MODE_CREATE | MPI_MODE_RDWR,
                          MPI_INFO_NULL, &files[i]) == MPI_SUCCESS);
    }
    for (int i = 0; i < FILES; i++) {
      MPI_Datatype type;
      value = round * 1000 + i * 100 + rank;
      MPI_Type_create_resized(MPI_INT, 0, 4 * ranks, &type);
      MPI_Type_commit(&type);
      CHECK(MPI_File_set_view(files[i], 4 * rank, MPI_INT, type, "native", MPI_INFO_NULL) == MPI_SUCCESS);
      MPI_Type_free(&type);
      CHECK(MPI_File_write_all(files[i], &value, 1, MPI_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    }
    for (int i = FILES - 1; i >= 0; i--) {
      CHECK(MPI_File_read_at_all(files[i], 0, &back, 1, MPI_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS);
      CHECK(back == round * 1000 + i * 100 + rank);
    }
    CHECK(MPI_File_get_group(files[0], &group) == MPI_SUCCESS);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_compare(group, world, &compared);
    CHECK(compared == MPI_IDENT);
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    for (int i = 0; i < FILES; i++) CHECK(MPI_File_close(&files[(i + round) % FILES]) == MPI_SUCCESS);
  }
  for (int i = 0; i < FILES; i++) remove_file(names[i]);

  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  snprintf(names[0], sizeof names[0], "%s.half%d", path, rank % 2);
  CHECK(MPI_File_open(half, names[0], MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                      &files[0]) == MPI_SUCCESS);
  CHECK(MPI_File_open(MPI_COMM_SELF, "/no/such/file", MPI_MODE_RDONLY, MPI_INFO_NULL, &files[1]) != MPI_SUCCESS);
  MPI_Comm_free(&half);
  value = rank;
  CHECK(MPI_File_write_at_all(files[0], 4 * (rank / 2), &value, 1, MPI_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  CHECK(MPI_File_read_at_all(files[0], 4 * (rank / 2), &back, 1, MPI_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  CHECK(back == rank);
  CHECK(MPI_File_close(&files[0]) == MPI_SUCCESS);
  MPI_Comm_free(&duplicate);
}

/* A Fortran program has a number for the handle. */
static void numbers(void) {
  MPI_File file;
  CHECK(open_file(path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, &file) == MPI_SUCCESS);
#ifndef MPI_H_ABI
  CHECK(MPI_File_f2c(MPI_File_c2f(file)) == file);
  CHECK(MPI_File_f2c(MPI_File_c2f(MPI_FILE_NULL)) == MPI_FILE_NULL);
#endif
  CHECK(MPI_File_close(&file) == MPI_SUCCESS);
}

/* A file that the MPI opened itself stays the MPI's. One that was opened by the PMPI name is ours. */
static void not_ours(void) {
  MPI_File file;
  MPI_Offset size = -1;
  int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
  CHECK(NATIVE(MPI_File_open)(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &file) == MPI_SUCCESS);
  CHECK(MPI_File_set_size(file, 77) == MPI_SUCCESS);
  CHECK(MPI_File_get_size(file, &size) == MPI_SUCCESS && size == 77);
  CHECK(MPI_File_close(&file) == MPI_SUCCESS);
  /* Another name: some MPIs delete the old file when they like. */
  snprintf(other_path, sizeof other_path, "%s.2", path);
  CHECK(PMPI_File_open(MPI_COMM_WORLD, other_path, mode, MPI_INFO_NULL, &file) == MPI_SUCCESS);
  CHECK(MPI_File_set_size(file, 78) == MPI_SUCCESS);
  CHECK(PMPI_File_get_size(file, &size) == MPI_SUCCESS && size == 78);
  CHECK(PMPI_File_close(&file) == MPI_SUCCESS);
}

int main(int count, char **arguments) {
  int all = 0;
  MPI_Init(&count, &arguments);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  snprintf(path, sizeof path, "%s/semantics", arguments[1]);
  if (count > 2) { /* to see that it ends the program */
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_ARE_FATAL);
    MPI_File file;
    open_file("/no/such/folder/file", MPI_MODE_RDONLY, &file);
    printf("still there\n");
  }
  modes();
  positions();
  mistakes();
  hints();
  error_handlers();
  nonblocking_and_split();
  many_files();
  numbers();
  not_ours();
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0 && all == 0) printf("all is as MPI says\n");
  MPI_Finalize();
  return all != 0;
}
