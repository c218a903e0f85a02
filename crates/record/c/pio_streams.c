/* Buffered streams.
 *
 * The reads and writes inside the C library do not pass through symbols: streams are recorded at their own level, with
 * what the program asked of them. */
#include "pio_hook.h"
#include "pio_open.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The C library's headers make macros of some that are functions too. */
#undef fread_unlocked
#undef fwrite_unlocked

/* Declared by no header, or only in some modes. */
size_t __fread_chk(void *buffer, size_t room, size_t size, size_t count, FILE *stream);
size_t __fread_unlocked_chk(void *buffer, size_t room, size_t size, size_t count, FILE *stream);
char *__fgets_chk(char *buffer, size_t room, int count, FILE *stream);
int __fprintf_chk(FILE *stream, int flag, const char *format, ...);
int __vfprintf_chk(FILE *stream, int flag, const char *format, va_list arguments);
int __printf_chk(int flag, const char *format, ...);
int __vprintf_chk(int flag, const char *format, va_list arguments);

static void forget_stream(FILE *stream);
static void catch_up(FILE *stream, int fd);

static void remember_stream(FILE *stream, int fd, uint64_t position);

/* The descriptor under a stream, -1 if there is none: streams in memory leave the field as it was. fileno() would set
 * errno, which is the program's. */
static inline int stream_fd(const FILE *stream) {
    return stream->_flags & 0x2000 /* _IO_IS_FILEBUF */ ? stream->_fileno : -1;
}

/* Pointers before and after a call tell what it moved: no other thread may move them meanwhile. So the stream is ours for
 * as long; stdio takes its lock once more inside. */
extern char __libc_single_threaded __attribute__((weak)); /* since glibc 2.32 */

/* A thread may be cancelled within a call (pthread_cancel), and the stream is another's to use afterwards. The C library keeps these for
 * programs of before 2003, and they cost two stores: its macros call setjmp at each, and the compiler's own clean-up needs the
 * compiler's unwinder in every program. */
void _pthread_cleanup_push(struct _pthread_cleanup_buffer *buffer, void (*routine)(void *), void *argument);
void _pthread_cleanup_pop(struct _pthread_cleanup_buffer *buffer, int execute);

struct held {
    bool is_held;
    struct _pthread_cleanup_buffer at_cancel;
};

static void give_back(void *stream) {
    funlockfile(stream);
}

static inline void hold(struct held *held, FILE *stream) {
    held->is_held = !(&__libc_single_threaded != NULL && __libc_single_threaded);
    if (LIKELY(!held->is_held))
        return;
    flockfile(stream);
    _pthread_cleanup_push(&held->at_cancel, give_back, stream);
}

static inline void let_go(struct held *held) {
    if (UNLIKELY(held->is_held))
        _pthread_cleanup_pop(&held->at_cancel, 1);
}

/* After an open that returned `stream` (or failed). */
static void finish_stream_open(const struct pioscope_span *span, const char *name, FILE *stream, int flags) {
    int fd = stream == NULL ? -1 : stream_fd(stream);
    pio_finish_open(span, PIO_CALL_FOPEN, AT_FDCWD, name, fd, flags);
    if (stream != NULL && in_table(fd) && LOAD(&pio_descriptors[fd]) >= TRACKED)
        remember_stream(stream, fd, 0);
}

/* As open() has them. Behind the first letter stand others in any order, and behind a comma the name of a character set. */
static int open_flags_of(const char *mode) {
    size_t letters = strcspn(mode, ",");
    int access = memchr(mode, '+', letters) != NULL ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY;
    return access | (mode[0] == 'w' ? O_TRUNC : mode[0] == 'a' ? O_APPEND : 0);
}

#define HOOK_FOPEN(name)                                                                                               \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT FILE *name(const char *path, const char *mode) {                                                            \
        if (!recording() || !is_owner())                                                                               \
            return NEXT(name)(path, mode);                                                                             \
        struct pioscope_span span;                                                                                     \
        pio_span_begin(&span);                                                                                         \
        FILE *stream = NEXT(name)(path, mode);                                                                         \
        finish_stream_open(&span, path, stream, open_flags_of(mode));                                                  \
        return stream;                                                                                                 \
    }

HOOK_FOPEN(fopen)
HOOK_FOPEN(fopen64)

/* The old descriptor is closed inside, whatever happens. */
#define HOOK_FREOPEN(name)                                                                                             \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT FILE *name(const char *path, const char *mode, FILE *stream) {                                              \
        if (!recording() || !is_owner())                                                                               \
            return NEXT(name)(path, mode, stream);                                                                     \
        int old = stream_fd(stream);                                                                                   \
        struct pioscope_span span;                                                                                     \
        pio_span_begin(&span);                                                                                         \
        if (tracked(old))                                                                                              \
            catch_up(stream, old);                                                                                     \
        if (pio_forget_descriptor(old))                                                                                \
            pio_finish_simple(&span, PIO_CALL_FCLOSE, old, PIO_NO_OFFSET, 0, 0);                                       \
        forget_stream(stream);                                                                                         \
        pio_span_begin(&span);                                                                                         \
        FILE *reopened = NEXT(name)(path, mode, stream);                                                               \
        if (path != NULL)                                                                                              \
            finish_stream_open(&span, path, reopened, open_flags_of(mode));                                            \
        else                                                                                                           \
            span_is_dropped(); /* the same file in another mode: adopted when it is used */                            \
        return reopened;                                                                                               \
    }

HOOK_FREOPEN(freopen)
HOOK_FREOPEN(freopen64)

#define HOOK_TMPFILE(name)                                                                                             \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT FILE *name(void) {                                                                                          \
        if (!recording() || !is_owner())                                                                               \
            return NEXT(name)();                                                                                       \
        struct pioscope_span span;                                                                                     \
        pio_span_begin(&span);                                                                                         \
        FILE *stream = NEXT(name)();                                                                                   \
        finish_stream_open(&span, "", stream, O_RDWR);                                                                 \
        return stream;                                                                                                 \
    }

HOOK_TMPFILE(tmpfile)
HOOK_TMPFILE(tmpfile64)

/* Where a stream and its pointers stand after the last call on it that was recorded.
 *
 * ftello() asks the system each time, unless the program has sought before. So we count along. And macros of <stdio.h>
 * move single bytes in the buffer, without a call that we could hook until the buffer ends (__overflow and __uflow): what
 * they moved is what the pointers have gone on by, and is recorded as one call. */
#define KNOWN_STREAMS 1024
static struct known_stream {
    FILE *stream;
    const char *read_at;
    const char *write_at;
    const char *buffer; /* that they point into */
    uint64_t position; /* PIO_NO_OFFSET: to be asked for, as others may write at the end, too */
} __attribute__((aligned(64))) known_streams[KNOWN_STREAMS];

static struct known_stream *known_stream(FILE *stream) {
    return &known_streams[((uintptr_t)stream >> 4) * 0x9e3779b97f4a7c15u >> 54];
}

static void forget_stream(FILE *stream) {
    struct known_stream *known = known_stream(stream);
    if (known->stream == stream)
        known->stream = NULL;
}

static __attribute__((noinline)) uint64_t ask_for_position(FILE *stream) {
    int saved = errno;
    off_t position = ftello(stream);
    errno = saved;
    return position < 0 ? PIO_NO_OFFSET : (uint64_t)position;
}

/* After a call that brought a stream to `position`. */
static void remember_stream(FILE *stream, int fd, uint64_t position) {
    struct known_stream *known = known_stream(stream);
    known->stream = stream;
    known->read_at = stream->_IO_read_ptr;
    known->write_at = stream->_IO_write_ptr;
    known->buffer = stream->_IO_buf_base;
    known->position = LIKELY(LOAD(&pio_descriptors[fd]) == TRACKED) ? position : PIO_NO_OFFSET;
}

/* Whether what is written to a stream goes to the end of its file, wherever the stream stands. */
static inline bool appends(int fd) {
    return UNLIKELY(LOAD(&pio_descriptors[fd]) == APPENDS);
}

/* What was written to a stream and is still in its buffer. */
static size_t pending_bytes(const FILE *stream) {
    return stream->_IO_write_ptr > stream->_IO_write_base ? (size_t)(stream->_IO_write_ptr - stream->_IO_write_base) : 0;
}

/* Bytes that the pointers have gone on by since the last call that was recorded, with `more` of the call in which they
 * are noticed. */
static __attribute__((noinline)) void record_macros(const struct known_stream *known, FILE *stream, int fd,
                                                    uint64_t more) {
    bool writes = stream->_flags & 0x0800; /* _IO_CURRENTLY_PUTTING */
    const char *was_at = writes ? known->write_at : known->read_at;
    const char *is_at = writes ? stream->_IO_write_ptr : stream->_IO_read_ptr;
    bool is_another = known->buffer != NULL && stream->_IO_buf_base != known->buffer; /* setvbuf() */
    uint64_t bytes = !is_another && was_at != NULL && is_at > was_at ? (uint64_t)(is_at - was_at) : 0;
    /* The buffer was filled or emptied by a call that we do not know: its pointers tell nothing, positions do. */
    if ((is_another || is_at < was_at) && known->position != PIO_NO_OFFSET) {
        uint64_t position = ask_for_position(stream);
        bytes = position != PIO_NO_OFFSET && position > known->position ? position - known->position : 0;
    }
    bytes += more;
    if (bytes == 0)
        return;
    uint64_t from = known->position;
    struct pioscope_span span;
    pio_span_begin(&span);
    remember_stream(stream, fd, from == PIO_NO_OFFSET ? from : from + bytes);
    if (writes && appends(fd))
        pio_finish_appended(&span, PIO_CALL_FWRITE, fd, pending_bytes(stream), bytes, (int64_t)bytes);
    else
        pio_finish_simple(&span, writes ? PIO_CALL_FWRITE : PIO_CALL_FREAD, fd, from, bytes, (int64_t)bytes);
}

/* The position of a stream, as the program sees it. */
static inline uint64_t stream_position(FILE *stream, int fd) {
    const struct known_stream *known = known_stream(stream);
    if (UNLIKELY(known->stream != stream))
        return ask_for_position(stream);
    if (UNLIKELY(known->read_at != stream->_IO_read_ptr || known->write_at != stream->_IO_write_ptr))
        record_macros(known, stream, fd, 0);
    /* Others may write at the end, too, or share the position since a fork. */
    return LIKELY(known->position != PIO_NO_OFFSET && LOAD(&pio_descriptors[fd]) == TRACKED) ? known->position
                                                                                         : ask_for_position(stream);
}

/* Before a call that moves a stream or its buffer. */
static void catch_up(FILE *stream, int fd) {
    const struct known_stream *known = known_stream(stream);
    if (known->stream == stream)
        record_macros(known, stream, fd, 0);
}

DECLARE_NEXT(fclose)
EXPORT int fclose(FILE *stream) {
    if (!recording() || !is_owner())
        return NEXT(fclose)(stream);
    int fd = stream_fd(stream);
    if (tracked(fd))
        catch_up(stream, fd);
    forget_stream(stream);
    if (!pio_forget_descriptor(fd))
        return NEXT(fclose)(stream);
    struct pioscope_span span;
    pio_span_begin(&span);
    int result = NEXT(fclose)(stream);
    pio_finish_simple(&span, PIO_CALL_FCLOSE, fd, PIO_NO_OFFSET, 0, result);
    return result;
}

/* What popen() opened is a pipe, but its number may soon be a file's. */
DECLARE_NEXT(pclose)
EXPORT int pclose(FILE *stream) {
    if (recording() && is_owner())
        pio_forget_descriptor(stream_fd(stream));
    return NEXT(pclose)(stream);
}

/* `type result = next_call`, of which `moved` bytes of `size` count as transferred (-1: it failed); it may look at where the call
 * moved the stream `from`. */
#define STREAM_BODY(call, type, size, moved, next_call)                                                                \
    int fd = recording() ? stream_fd(stream) : -1;                                                                     \
    if (!tracked(fd))                                                                                                  \
        return next_call;                                                                                              \
    struct held held;                                                                                                  \
    hold(&held, stream);                                                                                               \
    bool at_end = (call) == PIO_CALL_FWRITE && appends(fd);                                                            \
    if (at_end)                                                                                                        \
        catch_up(stream, fd);                                                                                          \
    uint64_t position = at_end ? 0 : stream_position(stream, fd);                                                      \
    uint64_t from __attribute__((unused)) = at_end ? PIO_NO_OFFSET : position;                                         \
    struct pioscope_span span;                                                                                         \
    pio_span_begin(&span);                                                                                             \
    type result = next_call;                                                                                           \
    int64_t bytes = (int64_t)(moved);                                                                                  \
    if (LIKELY(bytes >= 0 && position != PIO_NO_OFFSET))                                                               \
        remember_stream(stream, fd, position + (uint64_t)bytes);                                                       \
    else                                                                                                               \
        forget_stream(stream);                                                                                         \
    if (at_end)                                                                                                        \
        pio_finish_appended(&span, call, fd, pending_bytes(stream), (uint64_t)(size), bytes);                          \
    else                                                                                                               \
        pio_finish_simple(&span, call, fd, position, (uint64_t)(size), bytes);                                         \
    let_go(&held);                                                                                                     \
    return result;

/* How far a call moved a stream from `position`; `counted` if that is not known. */
static __attribute__((noinline)) int64_t moved_from(FILE *stream, uint64_t position, uint64_t counted) {
    uint64_t after = position == PIO_NO_OFFSET ? PIO_NO_OFFSET : ask_for_position(stream);
    return (int64_t)(after == PIO_NO_OFFSET || after < position ? counted : after - position);
}

/* Items are counted whole: behind those of a short count there may be a part of one. Such a count is an error only if the stream
 * says so. */
static inline int64_t items_moved(FILE *stream, uint64_t position, size_t size, size_t asked, size_t moved) {
    if (LIKELY(moved == asked || size == 0))
        return (int64_t)(size * moved);
    int64_t bytes = size == 1 ? (int64_t)moved : moved_from(stream, position, size * moved);
    return bytes == 0 && ferror_unlocked(stream) ? -1 : bytes;
}

#define HOOK_FREAD(name)                                                                                               \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT size_t name(void *buffer, size_t size, size_t count, FILE *stream) {                                        \
        STREAM_BODY(PIO_CALL_FREAD, size_t, size *count, items_moved(stream, from, size, count, result),               \
                    NEXT(name)(buffer, size, count, stream))                                                           \
    }
#define HOOK_FREAD_CHK(name)                                                                                           \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT size_t name(void *buffer, size_t room, size_t size, size_t count, FILE *stream) {                           \
        STREAM_BODY(PIO_CALL_FREAD, size_t, size *count, items_moved(stream, from, size, count, result),               \
                    NEXT(name)(buffer, room, size, count, stream))                                                     \
    }
#define HOOK_FWRITE(name)                                                                                              \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT size_t name(const void *buffer, size_t size, size_t count, FILE *stream) {                                  \
        STREAM_BODY(PIO_CALL_FWRITE, size_t, size *count, items_moved(stream, from, size, count, result),              \
                    NEXT(name)(buffer, size, count, stream))                                                           \
    }

HOOK_FREAD(fread)
HOOK_FREAD(fread_unlocked)
HOOK_FREAD_CHK(__fread_chk)
HOOK_FREAD_CHK(__fread_unlocked_chk)
HOOK_FWRITE(fwrite)
HOOK_FWRITE(fwrite_unlocked)

/* The bytes of a line, which may be zero bytes, too: it ends where it is as long as asked for, or with its first newline, or else
 * with the file. */
static inline int64_t line_bytes(FILE *stream, uint64_t position, const char *line, int asked) {
    if (line == NULL)
        return 0;
    size_t length = strlen(line);
    bool is_whole = (length > 0 && line[length - 1] == '\n') || (int64_t)length >= (int64_t)asked - 1;
    return LIKELY(is_whole) ? (int64_t)length : moved_from(stream, position, length);
}

#define HOOK_FPUTS(name)                                                                                               \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT int name(const char *text, FILE *stream) {                                                                  \
        STREAM_BODY(PIO_CALL_FWRITE, int, strlen(text), result < 0 ? -1 : (int64_t)strlen(text),                       \
                    NEXT(name)(text, stream))                                                                          \
    }
#define HOOK_FGETS(name)                                                                                               \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT char *name(char *buffer, int count, FILE *stream) {                                                         \
        STREAM_BODY(PIO_CALL_FREAD, char *, count > 0 ? count - 1 : 0, line_bytes(stream, from, result, count),        \
                    NEXT(name)(buffer, count, stream))                                                                 \
    }

HOOK_FPUTS(fputs)
HOOK_FPUTS(fputs_unlocked)
HOOK_FGETS(fgets)
HOOK_FGETS(fgets_unlocked)

DECLARE_NEXT(__fgets_chk)
EXPORT char *__fgets_chk(char *buffer, size_t room, int count, FILE *stream) {
    STREAM_BODY(PIO_CALL_FREAD, char *, count > 0 ? count - 1 : 0, line_bytes(stream, from, result, count),
                NEXT(__fgets_chk)(buffer, room, count, stream))
}

/* Size and result are what was found: nobody asked for a number of bytes. */
#define HOOK_GETDELIM(name)                                                                                            \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT ssize_t name(char **line, size_t *room, int delimiter, FILE *stream) {                                      \
        STREAM_BODY(PIO_CALL_FREAD, ssize_t, result < 0 ? 0 : result, result < 0 ? 0 : result,                         \
                    NEXT(name)(line, room, delimiter, stream))                                                         \
    }

HOOK_GETDELIM(getdelim)
HOOK_GETDELIM(__getdelim)

DECLARE_NEXT(getline)
EXPORT ssize_t getline(char **line, size_t *room, FILE *stream) {
    STREAM_BODY(PIO_CALL_FREAD, ssize_t, result < 0 ? 0 : result, result < 0 ? 0 : result,
                NEXT(getline)(line, room, stream))
}

DECLARE_NEXT(vfprintf)
EXPORT int vfprintf(FILE *stream, const char *format, va_list arguments) {
    STREAM_BODY(PIO_CALL_FWRITE, int, result < 0 ? 0 : result, result, NEXT(vfprintf)(stream, format, arguments))
}

DECLARE_NEXT(__vfprintf_chk)
EXPORT int __vfprintf_chk(FILE *stream, int flag, const char *format, va_list arguments) {
    STREAM_BODY(PIO_CALL_FWRITE, int, result < 0 ? 0 : result, result,
                NEXT(__vfprintf_chk)(stream, flag, format, arguments))
}

EXPORT int fprintf(FILE *stream, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int result = vfprintf(stream, format, arguments);
    va_end(arguments);
    return result;
}

EXPORT int __fprintf_chk(FILE *stream, int flag, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int result = __vfprintf_chk(stream, flag, format, arguments);
    va_end(arguments);
    return result;
}

/* The same on standard output. */
EXPORT int vprintf(const char *format, va_list arguments) {
    return vfprintf(stdout, format, arguments);
}

EXPORT int printf(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int result = vfprintf(stdout, format, arguments);
    va_end(arguments);
    return result;
}

EXPORT int __vprintf_chk(int flag, const char *format, va_list arguments) {
    return __vfprintf_chk(stdout, flag, format, arguments);
}

EXPORT int __printf_chk(int flag, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int result = __vfprintf_chk(stdout, flag, format, arguments);
    va_end(arguments);
    return result;
}

DECLARE_NEXT(puts)
EXPORT int puts(const char *text) {
    FILE *stream = stdout;
    STREAM_BODY(PIO_CALL_FWRITE, int, strlen(text) + 1, result < 0 ? -1 : (int64_t)strlen(text) + 1, NEXT(puts)(text))
}

/* Characters. ------------------------------------------------------------------------------------------------------ */

#undef putc
#undef getc
#undef putchar
#undef getchar
#undef putc_unlocked
#undef getc_unlocked
#undef putchar_unlocked
#undef getchar_unlocked
#undef fputc_unlocked
#undef fgetc_unlocked
int _IO_putc(int character, FILE *stream);
int _IO_getc(FILE *stream);

#define HOOK_PUTC(name)                                                                                                \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT int name(int character, FILE *stream) {                                                                     \
        STREAM_BODY(PIO_CALL_FWRITE, int, 1, result == EOF ? -1 : 1, NEXT(name)(character, stream))                    \
    }
#define HOOK_GETC(name)                                                                                                \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT int name(FILE *stream) {                                                                                    \
        STREAM_BODY(PIO_CALL_FREAD, int, 1, result != EOF ? 1 : ferror_unlocked(stream) ? -1 : 0, NEXT(name)(stream))  \
    }

HOOK_PUTC(fputc)
HOOK_PUTC(fputc_unlocked)
HOOK_PUTC(putc)
HOOK_PUTC(putc_unlocked)
HOOK_PUTC(_IO_putc)
HOOK_GETC(fgetc)
HOOK_GETC(fgetc_unlocked)
HOOK_GETC(getc)
HOOK_GETC(getc_unlocked)
HOOK_GETC(_IO_getc)

EXPORT int putchar(int character) {
    return putc(character, stdout);
}

EXPORT int putchar_unlocked(int character) {
    return putc_unlocked(character, stdout);
}

EXPORT int getchar(void) {
    return getc(stdin);
}

EXPORT int getchar_unlocked(void) {
    return getc_unlocked(stdin);
}

DECLARE_NEXT(ungetc)
EXPORT int ungetc(int character, FILE *stream) {
    if (!recording() || !tracked(stream_fd(stream)))
        return NEXT(ungetc)(character, stream);
    catch_up(stream, stream_fd(stream));
    forget_stream(stream);
    return NEXT(ungetc)(character, stream);
}

/* The macros call these where the buffer ends. */
int __overflow(FILE *stream, int character);
int __uflow(FILE *stream);

/* The one byte that went through the end of the buffer: where it is in the new buffer, it is one of the next that are
 * noticed. */
static void remember_end(FILE *stream, int fd, uint64_t position, bool moved) {
    struct known_stream *known = known_stream(stream);
    remember_stream(stream, fd, position);
    if (!moved)
        return;
    if ((stream->_flags & 0x0800) != 0 && stream->_IO_write_ptr > stream->_IO_write_base)
        known->write_at--;
    else if ((stream->_flags & 0x0800) == 0 && stream->_IO_read_ptr > stream->_IO_read_base)
        known->read_at--;
    else
        record_macros(known, stream, fd, 1);
}

#define BUFFER_END_BODY(moved, next_call)                                                                              \
    int fd = recording() ? stream_fd(stream) : -1;                                                                     \
    struct known_stream *known = known_stream(stream);                                                                 \
    if (!tracked(fd) || known->stream != stream) {                                                                     \
        forget_stream(stream);                                                                                         \
        return next_call;                                                                                              \
    }                                                                                                                  \
    record_macros(known, stream, fd, 0);                                                                               \
    uint64_t position = known->position;                                                                               \
    int result = next_call;                                                                                            \
    remember_end(stream, fd, position, moved);                                                                         \
    return result;

DECLARE_NEXT(__overflow)
EXPORT int __overflow(FILE *stream, int character) {
    BUFFER_END_BODY(character != EOF && result != EOF, NEXT(__overflow)(stream, character))
}

DECLARE_NEXT(__uflow)
EXPORT int __uflow(FILE *stream) {
    BUFFER_END_BODY(result != EOF, NEXT(__uflow)(stream))
}

/* What was scanned is what the stream moved by. */
#define SCAN_BODY(next_call)                                                                                           \
    int fd = recording() ? stream_fd(stream) : -1;                                                                     \
    if (!tracked(fd))                                                                                                  \
        return next_call;                                                                                              \
    struct held held;                                                                                                  \
    hold(&held, stream);                                                                                               \
    uint64_t position = stream_position(stream, fd);                                                                   \
    struct pioscope_span span;                                                                                         \
    pio_span_begin(&span);                                                                                             \
    int result = next_call;                                                                                            \
    forget_stream(stream);                                                                                             \
    uint64_t after = ask_for_position(stream);                                                                         \
    uint64_t moved = position != PIO_NO_OFFSET && after != PIO_NO_OFFSET && after > position ? after - position : 0;   \
    remember_stream(stream, fd, after);                                                                                \
    pio_finish_simple(&span, PIO_CALL_FREAD, fd, position, moved, (int64_t)moved);                                     \
    let_go(&held);                                                                                                     \
    return result;

/* Each under three names, by the standard that a program was compiled for; the C library's headers map them to each other.
 */
#define HOOK_SCANS(tag, prefix)                                                                                        \
    EXPORT int scan_stream_list_##tag(FILE *stream, const char *format, va_list arguments) __asm__(prefix "vfscanf");  \
    EXPORT int scan_stream_##tag(FILE *stream, const char *format, ...) __asm__(prefix "fscanf");                      \
    EXPORT int scan_list_##tag(const char *format, va_list arguments) __asm__(prefix "vscanf");                        \
    EXPORT int scan_##tag(const char *format, ...) __asm__(prefix "scanf");                                            \
    int scan_stream_list_##tag(FILE *stream, const char *format, va_list arguments) {                                  \
        static void *place;                                                                                            \
        SCAN_BODY(((__typeof__(&scan_stream_list_##tag))next_function(&place, prefix "vfscanf"))(stream, format,       \
                                                                                                 arguments))           \
    }                                                                                                                  \
    int scan_stream_##tag(FILE *stream, const char *format, ...) {                                                     \
        va_list arguments;                                                                                             \
        va_start(arguments, format);                                                                                   \
        int result = scan_stream_list_##tag(stream, format, arguments);                                                \
        va_end(arguments);                                                                                             \
        return result;                                                                                                 \
    }                                                                                                                  \
    int scan_list_##tag(const char *format, va_list arguments) {                                                       \
        return scan_stream_list_##tag(stdin, format, arguments);                                                       \
    }                                                                                                                  \
    int scan_##tag(const char *format, ...) {                                                                          \
        va_list arguments;                                                                                             \
        va_start(arguments, format);                                                                                   \
        int result = scan_stream_list_##tag(stdin, format, arguments);                                                 \
        va_end(arguments);                                                                                             \
        return result;                                                                                                 \
    }

HOOK_SCANS(gnu, "")
HOOK_SCANS(c99, "__isoc99_")
HOOK_SCANS(c23, "__isoc23_")

/* After a call that moved a stream. */
static void finish_seek(const struct pioscope_span *span, FILE *stream, int result) {
    int fd = stream_fd(stream);
    forget_stream(stream);
    uint64_t position = ask_for_position(stream);
    remember_stream(stream, fd, position);
    pio_finish_simple(span, PIO_CALL_FSEEK, fd, position, 0, result);
}

#define HOOK_FSEEK(name, parameters, next_call)                                                                        \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT int name parameters {                                                                                       \
        if (!recording() || !tracked(stream_fd(stream)))                                                               \
            return next_call;                                                                                          \
        catch_up(stream, stream_fd(stream));                                                                           \
        struct pioscope_span span;                                                                                     \
        pio_span_begin(&span);                                                                                         \
        int result = next_call;                                                                                        \
        finish_seek(&span, stream, result);                                                                            \
        return result;                                                                                                 \
    }

HOOK_FSEEK(fseek, (FILE * stream, long offset, int whence), NEXT(fseek)(stream, offset, whence))
HOOK_FSEEK(fseeko, (FILE * stream, off_t offset, int whence), NEXT(fseeko)(stream, offset, whence))
HOOK_FSEEK(fseeko64, (FILE * stream, off64_t offset, int whence), NEXT(fseeko64)(stream, offset, whence))
HOOK_FSEEK(fsetpos, (FILE * stream, const fpos_t *place), NEXT(fsetpos)(stream, place))
HOOK_FSEEK(fsetpos64, (FILE * stream, const fpos64_t *place), NEXT(fsetpos64)(stream, place))

DECLARE_NEXT(rewind)
EXPORT void rewind(FILE *stream) {
    if (!recording() || !tracked(stream_fd(stream))) {
        NEXT(rewind)(stream);
        return;
    }
    catch_up(stream, stream_fd(stream));
    struct pioscope_span span;
    pio_span_begin(&span);
    NEXT(rewind)(stream);
    finish_seek(&span, stream, 0);
}

#define HOOK_FFLUSH(name)                                                                                              \
    DECLARE_NEXT(name)                                                                                                 \
    EXPORT int name(FILE *stream) {                                                                                    \
        if (stream == NULL || !recording() || !tracked(stream_fd(stream)))                                             \
            return NEXT(name)(stream);                                                                                 \
        catch_up(stream, stream_fd(stream));                                                                           \
        uint64_t position = known_stream(stream)->position;                                                            \
        bool is_known = known_stream(stream)->stream == stream;                                                        \
        struct pioscope_span span;                                                                                     \
        pio_span_begin(&span);                                                                                         \
        int result = NEXT(name)(stream);                                                                               \
        if (is_known)                                                                                                  \
            remember_stream(stream, stream_fd(stream), position);                                                      \
        pio_finish_simple(&span, PIO_CALL_FFLUSH, stream_fd(stream), 0, 0, result);                                    \
        return result;                                                                                                 \
    }

HOOK_FFLUSH(fflush)
HOOK_FFLUSH(fflush_unlocked)

