/* Call sites: which line of a Python program opens a file.
 *
 * An interpreter tells its audit hooks (PEP 578) of every file that Python code is about to open. Ours looks at the frames of
 * the thread, and leaves the line for the hook of open(), which comes next. A hook in Python could do the same, but is code
 * that the interpreter runs in the midst of the program's: signal handlers and other threads would have their turn within it,
 * it takes a frame of the recursion limit, and debuggers see it. This one runs no Python code and keeps no object: not even
 * garbage is collected meanwhile. It calls what is the same in all versions from 3.9 on; in older ones, and in other
 * interpreters, there are no call sites.
 *
 * Python does not tell of what a library opens by itself, in C: such an open has a call site only within a function that
 * our sitecustomize wraps (pio_call_site_begin). */
#include "pio_call_sites.h"
#include "pio_frames.h"
#include "pio_mark.h"
#include "pio_marks.h"
#include "pio_process.h"
#include "pio_writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct object object;
typedef int audit_hook(const char *event, object *arguments, void *data);

/* Of Python's own interface. */
static struct {
    object *(*frame)(void); /* borrowed */
    object *(*back)(object *frame);
    object *(*code)(object *frame);
    int (*line)(object *frame);
    object *(*attribute)(object *of, const char *name);
    object *(*item)(object *tuple, long index); /* borrowed */
    const char *(*text)(object *string); /* as long as the string is there */
    char *(*bytes)(object *bytes);
    void (*clear_error)(void);
    void (*release)(object *object);
    int (*keep_garbage)(void); /* whether it was collected; from 3.10 on, and only 3.11 makes objects of frames that are asked for */
    int (*collect_garbage)(void);
} python;
static const char *function_name;

#define MOST_NAMES 1024u /* functions that open files, once for each library that they do it by */
static uint64_t places[2 * MOST_NAMES];
static struct pio_texts names = {places, MOST_NAMES, 0};

/* Frames that are looked at: the program's own lies behind those of libraries. */
#define MOST_FRAMES 200

/* What the thread is about to open; and where it is, within functions that open files. */
static __thread struct {
    uint64_t path; /* its id, 0 for nothing */
    struct call_site site;
    struct call_site outer;
    uint32_t depth; /* of such functions */
} next __attribute__((tls_model("initial-exec")));

static uint64_t id_of_path(const char *path) {
    return pio_content_id((const unsigned char *)path, strlen(path), PIO_RECORD_NAME);
}

struct call_site pio_take_call_site(const char *name) {
    if (LIKELY(next.path == 0))
        return next.outer;
    /* What was told of may not have been opened in the end: then this is another file. */
    struct call_site site = name != NULL && next.path == id_of_path(name) ? next.site : next.outer;
    next.path = 0;
    return site;
}

void pio_forget_call_sites(void) {
    pio_forget_texts(&names);
    next.path = 0;
}

/* A text that an attribute of code is, which lives as long as the code: names of files and functions are its own. */
static const char *text_of(object *code, const char *name) {
    object *value = python.attribute(code, name);
    const char *text = value == NULL ? NULL : python.text(value);
    if (text == NULL)
        python.clear_error();
    if (value != NULL)
        python.release(value);
    return text == NULL ? "" : text;
}

static void look_at_frame(struct pio_frames *frames, object *frame) {
    object *code = python.code(frame);
    if (code == NULL)
        return;
    const char *function = text_of(code, function_name);
    if (pio_choose_frame(frames, text_of(code, "co_filename"), strcmp(function, "<module>") == 0)) {
        size_t length = strnlen(function, sizeof frames->function - 1);
        memcpy(frames->function, function, length);
        frames->function[length] = 0;
        int line = python.line(frame);
        frames->line = line > 0 ? (uint64_t)line : 0;
    }
    python.release(code);
}

static struct call_site find_call_site(void) {
    struct call_site none = {0, 0};
    struct pio_frames frames;
    frames.rank = NO_FRAME;
    frames.is_settled = false;
    frames.library[0] = frames.standard[0] = frames.opener[0] = 0;
    bool collects = python.keep_garbage != NULL && python.collect_garbage != NULL && python.keep_garbage() != 0;
    object *own = NULL; /* the frame, if it is to be released */
    object *frame = python.frame();
    for (int depth = 0; frame != NULL && depth < MOST_FRAMES; depth++) {
        look_at_frame(&frames, frame);
        object *back = pio_frames_are_done(&frames) ? NULL : python.back(frame);
        if (own != NULL)
            python.release(own);
        own = frame = back;
    }
    if (own != NULL)
        python.release(own);
    if (collects)
        python.collect_garbage();
    char text[MOST_CALL_SITE_BYTES];
    size_t length = pio_name_call_site(&frames, text);
    if (length == 0)
        return none;
    return (struct call_site){pio_id_of_text(&names, PIO_RECORD_CALL_SITE, text, length), frames.line};
}

/* The path of an open; NULL if it is none that has one, such as that of a descriptor. */
static const char *path_of(object *arguments) {
    object *path = python.item(arguments, 0);
    const char *text = path == NULL ? NULL : python.text(path);
    if (text != NULL)
        return text;
    python.clear_error();
    if (path == NULL)
        return NULL;
    text = python.bytes(path);
    if (text == NULL)
        python.clear_error();
    return text;
}

/* Python's allocator, of which there is one before the interpreter starts, and another one afterwards, if it is to find errors
 * (`python -X dev`): that one takes the memory of an audit hook for damaged, as it did not give it. */
struct allocator {
    void *own;
    void *(*give)(void *own, size_t bytes);
    void *(*give_empty)(void *own, size_t count, size_t bytes);
    void *(*resize)(void *own, void *memory, size_t bytes);
    void (*take_back)(void *own, void *memory);
};
enum { RAW = 0 }; /* PYMEM_DOMAIN_RAW */
static void (*get_allocator)(int domain, struct allocator *allocator);
static void (*set_allocator)(int domain, struct allocator *allocator);
static struct allocator beneath;
static void *memory_of_hook;

static void *give_for_hook(void *own, size_t bytes) {
    return memory_of_hook = beneath.give(own, bytes);
}

static void take_back_but_for_hook(void *own, void *memory) {
    if (memory != memory_of_hook)
        beneath.take_back(own, memory);
}

/* The hooks are about to be forgotten. */
static void keep_memory_of_hook(void) {
    struct allocator ours;
    get_allocator(RAW, &ours);
    if (ours.take_back == take_back_but_for_hook)
        return;
    beneath = ours;
    ours.take_back = take_back_but_for_hook;
    set_allocator(RAW, &ours);
}

/* Never refuses anything. */
static int hear_event(const char *event, object *arguments, void *data) {
    (void)data;
    if (UNLIKELY(strcmp(event, "cpython._PySys_ClearAuditHooks") == 0))
        keep_memory_of_hook();
    if (LIKELY(strcmp(event, "open") != 0) || !recording())
        return 0;
    int saved = errno;
    const char *path = path_of(arguments);
    next.path = 0;
    if (path != NULL) {
        meet_thread();
        next.site = find_call_site();
        next.path = next.site.id == 0 ? 0 : id_of_path(path);
    }
    errno = saved;
    return 0;
}

/* Returns how deep the thread was before, which is to be handed to the end. */
EXPORT uint32_t pio_call_site_begin(void) {
    uint32_t before = next.depth++;
    if (before == 0 && python.frame != NULL && recording()) {
        int saved = errno;
        meet_thread();
        next.outer = find_call_site();
        errno = saved;
    }
    return before;
}

EXPORT void pio_call_site_end(uint32_t before) {
    next.depth = before;
    if (before == 0)
        next.outer.id = 0;
}

#define FIND(place, name) ((python.place = (__typeof__(python.place))dlsym(RTLD_DEFAULT, name)) != NULL)

void pio_watch_python(void) {
    int (*add)(audit_hook *, void *) = (__typeof__(add))dlsym(RTLD_DEFAULT, "PySys_AddAuditHook");
    get_allocator = (__typeof__(get_allocator))dlsym(RTLD_DEFAULT, "PyMem_GetAllocator");
    set_allocator = (__typeof__(set_allocator))dlsym(RTLD_DEFAULT, "PyMem_SetAllocator");
    if (add == NULL || get_allocator == NULL || set_allocator == NULL || strcmp(pio_call_sites_wanted, "no") == 0)
        return;
    bool has_all = FIND(frame, "PyEval_GetFrame") && FIND(back, "PyFrame_GetBack") && FIND(code, "PyFrame_GetCode") &&
                   FIND(line, "PyFrame_GetLineNumber") && FIND(attribute, "PyObject_GetAttrString") &&
                   FIND(item, "PyTuple_GetItem") && FIND(text, "PyUnicode_AsUTF8") && FIND(bytes, "PyBytes_AsString") &&
                   FIND(clear_error, "PyErr_Clear") && FIND(release, "Py_DecRef");
    /* From Python 3.11 on, which has this constant, code knows its function's name with that of its class. */
    function_name = dlsym(RTLD_DEFAULT, "Py_Version") == NULL ? "co_name" : "co_qualname";
    python.keep_garbage = (__typeof__(python.keep_garbage))dlsym(RTLD_DEFAULT, "PyGC_Disable");
    python.collect_garbage = (__typeof__(python.collect_garbage))dlsym(RTLD_DEFAULT, "PyGC_Enable");
    if (!has_all) {
        python.frame = NULL;
        return;
    }
    struct allocator ours;
    get_allocator(RAW, &beneath);
    ours = beneath;
    ours.give = give_for_hook;
    set_allocator(RAW, &ours);
    /* May be called before the interpreter starts; tells of all its threads. */
    (void)add(hear_event, NULL);
    set_allocator(RAW, &beneath);
}
