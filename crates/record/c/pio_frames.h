/* Which of a thread's Python frames is the call site of a file that it opens. */
#ifndef PIO_FRAMES_H
#define PIO_FRAMES_H

#include "pio_common.h"

#pragma GCC visibility push(hidden)

#define MOST_PATH_BYTES 1024u /* of a file of code */
#define MOST_FUNCTION_BYTES 256u
#define MOST_LIBRARY_BYTES 64u
#define MOST_CALL_SITE_BYTES (MOST_PATH_BYTES + MOST_FUNCTION_BYTES + MOST_LIBRARY_BYTES + 16u)

enum frame_rank { NO_FRAME, STANDARD_FRAME, LIBRARY_FRAME, PROGRAM_FRAME };

/* What is known after the frames that were looked at, from the one that opens the file to those that called it. */
struct pio_frames {
    enum frame_rank rank; /* of the frame that is chosen up to now */
    char path[MOST_PATH_BYTES]; /* its file of code */
    char function[MOST_FUNCTION_BYTES];
    uint64_t line;
    bool is_settled; /* that of a library which another library was called by */
    char opener[MOST_LIBRARY_BYTES]; /* the library whose frame came first */
    char library[MOST_LIBRARY_BYTES]; /* that whose frame came last, empty for none */
    char standard[MOST_LIBRARY_BYTES]; /* the module of the standard library whose frame came last */
};

/* Looks at the next frame, which has this file of code, its path as Python knows it, and is in the outermost code of its file, or
 * is not. Whether it is chosen: then path is set, and function and line are to be set. */
bool pio_choose_frame(struct pio_frames *frames, const char *path, bool is_module);

/* Whether no further frame can be chosen. */
static inline bool pio_frames_are_done(const struct pio_frames *frames) {
    return frames->rank == PROGRAM_FRAME;
}

/* The name of the call site (pio_trace::CallSite): its length, 0 if no frame was chosen. */
size_t pio_name_call_site(const struct pio_frames *frames, char text[MOST_CALL_SITE_BYTES]);

#pragma GCC visibility pop

#endif
