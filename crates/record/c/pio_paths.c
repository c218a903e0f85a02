/* Paths: of descriptors and of names, whether they are the job's, and the names of calls that open nothing. Part of
 * pio_posix.c. */

static bool starts_with(const char *text, const char *prefix) {
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Not the job's files: the kernel's, devices, shared memory, and our own spools. */
static bool is_foreign_path(const char *path) {
    if (starts_with(path, "/proc/") || starts_with(path, "/sys/") || starts_with(path, "/dev/"))
        return true;
    size_t length = strlen(spool_folder);
    return strncmp(path, spool_folder, length) == 0 && (path[length] == '/' || path[length] == 0);
}

/* `*` stands for any characters, `?` for one; the pattern ends with its line. */
static bool matches(const char *pattern, const char *text) {
    const char *star = NULL, *star_text = NULL;
    while (*text != 0) {
        if (*pattern == '*') {
            star = ++pattern;
            star_text = text;
        } else if (*pattern != '\n' && *pattern != 0 && (*pattern == '?' || *pattern == *text)) {
            pattern++;
            text++;
        } else if (star != NULL) {
            pattern = star;
            text = ++star_text;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\n' || *pattern == 0;
}

/* Whether the user wants to see this file (src/filter.rs says how the rules are meant): lines that begin with + or -. */
static bool is_kept(const char *path) {
    bool some_keep = false;
    for (const char *rule = path_rules; *rule != 0;) {
        if (matches(rule + 1, path))
            return *rule == '+';
        some_keep = some_keep || *rule == '+';
        const char *end = strchr(rule, '\n');
        rule = end == NULL ? rule + strlen(rule) : end + 1;
    }
    return !some_keep;
}

/* The kernel's name of what a descriptor stands for. snprintf would take a page of stack. */
static void name_of_descriptor(int fd, char name[32]) {
    char digits[12];
    int count = 0;
    unsigned rest = (unsigned)fd;
    do
        digits[count++] = (char)('0' + rest % 10);
    while ((rest /= 10) != 0);
    char *end = stpcpy(name, "/proc/self/fd/");
    while (count > 0)
        *end++ = digits[--count];
    *end = 0;
}

/* The path that a descriptor was opened by, in a buffer of PATH_MAX: its length, 0 if it is not known. */
static size_t read_descriptor_path(int fd, char *path) {
    char name[32];
    name_of_descriptor(fd, name);
    long length = KERNEL(SYS_readlinkat, AT_FDCWD, name, path, PATH_MAX - 1);
    if (length <= 0)
        return 0;
    path[length] = 0;
    return (size_t)length;
}

/* The path of an open regular file: its length, or 0 if it is none of the job's files. */
static size_t path_of_descriptor(int fd, char *path) {
    struct stat status;
    if (path == NULL || KERNEL(SYS_fstat, fd, &status) != 0 || !S_ISREG(status.st_mode))
        return 0;
    size_t length = read_descriptor_path(fd, path);
    return length == 0 || is_foreign_path(path) || !is_kept(path) ? 0 : length;
}

/* The absolute path of a name that is meant from a folder on, without `.` and `..` but with symbolic links, as --path is
 * told. False if it is too long, or the folder is not known. */
static bool absolute_name(int folder, const char *name, char *path) {
    size_t length = 0;
    if (name[0] != '/') {
        long got = folder == AT_FDCWD ? KERNEL(SYS_getcwd, path, PATH_MAX) - 1 : (long)read_descriptor_path(folder, path);
        if (got <= 0)
            return false;
        length = got == 1 ? 0 : (size_t)got; /* the root has no name before its slash */
    }
    while (*name != 0) {
        size_t part = strcspn(name, "/");
        if (part == 2 && name[0] == '.' && name[1] == '.') {
            while (length > 0 && path[--length] != '/')
                ;
        } else if (part > 1 || (part == 1 && name[0] != '.')) {
            if (length + 1 + part >= PATH_MAX)
                return false;
            path[length] = '/';
            memcpy(path + length + 1, name, part);
            length += 1 + part;
        }
        name += part + (name[part] != 0);
    }
    strcpy(path + length, length == 0 ? "/" : "");
    return true;
}

/* Names ---------------------------------------------------------------------------------------------------------- */

/* Calls that open nothing refer to their path by its id: each path is written once a process, up to so many. Calls on
 * further ones are recorded without: a search through millions of files must not fill disk and memory with names. */
#define MOST_NAMES 16384u
#define NAME_PLACES (2 * MOST_NAMES)

static uint64_t names[NAME_PLACES]; /* ids */
static uint32_t names_known;

static uint64_t content_id(const unsigned char *bytes, size_t length, uint64_t seed); /* pio_recorder.c */

/* In a forked child, whose spool has no names yet. */
static void forget_names(void) {
    if (names_known > 0)
        memset(names, 0, sizeof names);
    names_known = 0;
}

static void define_name(uint64_t id, const char *path, size_t length) {
    unsigned units = 1 + (unsigned)((length + PIO_UNIT_BYTES - 1) / PIO_UNIT_BYTES);
    struct pio_record *record = reserve(units);
    if (record == NULL)
        return;
    record->offset = id;
    record->size = length;
    memcpy(record + 1, path, length);
    publish(record, PIO_RECORD_NAME, units, 0);
}

/* The id of a path, or PIO_NO_OFFSET if there are too many. Once the budget is short, no new ones are written. */
static uint64_t id_of_name(const char *path) {
    size_t length = strlen(path);
    uint64_t id = content_id((const unsigned char *)path, length, PIO_RECORD_NAME) >> 1 | 1;
    for (size_t probe = 0; probe < NAME_PLACES; probe++) {
        uint64_t *place = &names[(id / 2 + probe) % NAME_PLACES];
        uint64_t seen = LOAD(place);
        if (seen == 0) {
            if (LOAD(&names_known) >= MOST_NAMES || LOAD(&spool.thinning) != 0)
                break;
            if (__atomic_compare_exchange_n(place, &seen, id, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
                __atomic_fetch_add(&names_known, 1, __ATOMIC_RELAXED);
                define_name(id, path, length);
                return id;
            }
        }
        if (seen == id)
            return id;
    }
    return PIO_NO_OFFSET;
}

static bool is_name_kept(int folder, const char *name, uint64_t *id);

/* The id of the second path of a call; 0 if it is not known, or not to be recorded. errno may change. */
static uint64_t id_of_other(int folder, const char *name, const char *first) {
    (void)first;
    uint64_t id;
    return is_name_kept(folder, name, &id) && id != PIO_NO_OFFSET ? id : 0;
}

/* The same of what a symbolic link stands for: it is meant from the link's own folder on. */
static uint64_t id_of_linked(int folder, const char *target, const char *link) {
    const char *end = strrchr(link, '/');
    if (target[0] == '/' || end == NULL)
        return id_of_other(folder, target, link);
    size_t length = (size_t)(end + 1 - link), rest = strlen(target);
    char *path = take_path_buffer();
    uint64_t id = 0;
    if (path != NULL && length + rest < PATH_MAX) {
        memcpy(path, link, length);
        memcpy(path + length, target, rest + 1);
        id = id_of_other(folder, path, link);
    }
    give_path_buffer(path);
    return id;
}

/* Whether a call on a name is to be recorded; *id says its path, or PIO_NO_OFFSET if that is not known. errno may
 * change. */
static bool is_name_kept(int folder, const char *name, uint64_t *id) {
    *id = PIO_NO_OFFSET;
    if (is_foreign_path(name))
        return false;
    bool is_wanted = true;
    char *path = take_path_buffer();
    if (path != NULL && absolute_name(folder, name, path) && path[0] == '/') {
        is_wanted = !is_foreign_path(path) && is_kept(path);
        if (is_wanted)
            *id = id_of_name(path);
    }
    give_path_buffer(path);
    return is_wanted;
}
