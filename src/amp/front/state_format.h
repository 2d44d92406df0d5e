/* ==== >>front-state ==============================================================================================
   State files.   tests: tests/test_state.c, tests/state_files.c
   File: "AMPSTATE", u32 version 2, u32 number of sections; then sections in this order:
       char tag[4]; u32 index; u64 payload bytes; payload
   and at the end u64 XXH64 (see ampi_xxh) of every byte before it, which binds the sections to one save.
   Tags: "SET " parameter set `index`, followed by its arrays: u32 parameters, u32 moments, u64 steps, u64 skipped
         "PRM " an array of set `index`: u32 parameter, u32 which (0 weights, 1, 2 moments, 3 model copy, 4 low part,
                5, 6 scales of moments, 7 KAHAN's compensation), u32 dtype, u32 name length, u64 count, name padded to
                8 bytes, elements
         "SCL " scaler `index`: the fields of amp_scaler_state in order       "USER" bytes of the caller
         "FP8 " amp_fp8 `index`: u32 tensors, u32 history, then its states and histories as words of 4 bytes
   All numbers little-endian. */

#ifndef AMP_NO_STDIO

/* ---- a file that takes the place of a different one whole, or not at all. What each part is for:
   a temporary file beside it, then rename     killed while writing: the old file is there, whole
   fsync of the file before the rename         power lost after it: the name would lead to a file without its bytes
   fsync of the directory after it             power lost: the old name may come back after the call returned
   the lock on the temporary file              killed: the next save removes what was left, but not a living writer's
   The file keeps its permissions, and a symbolic link stays one. ---- */

static const char *ampi_reason(void) { return errno ? strerror(errno) : "no reason given"; }

#  define AMPI_PATH 4096
typedef struct ampi_replacement {
    amp_ctx *ctx;
    const char *given;         /* the path as it was given */
    FILE *f;                   /* open on `temporary` */
    unsigned mode;             /* of the file that will be replaced */
    int32_t replaces;          /* 1: there is one */
    char path[AMPI_PATH];      /* of that file */
    char temporary[AMPI_PATH]; /* beside it */
} ampi_replacement;

#  if defined(_WIN32)
#    define AMPI_SEPARATORS "/\\:"
#  else
#    define AMPI_SEPARATORS "/"
#  endif
static size_t ampi_base_of(const char *path) { /* where the last part begins */
    size_t i, at = 0;
    for (i = 0; path[i]; i++)
        if (strchr(AMPI_SEPARATORS, path[i])) at = i + 1;
    return at;
}
#  if defined(__wasi__) /* no clock of a process, no number, no locks, though headers declare them */
static uint64_t ampi_clock(void) { return 0; }
static uint64_t ampi_process(void) { return 0; }
static int ampi_lock_file(int fd) {
    errno = ENOTSUP;
    return fd < 0;
}
#  elif defined(_WIN32)
static uint64_t ampi_clock(void) { return (uint64_t)clock(); }
static uint64_t ampi_process(void) { return (uint64_t)_getpid(); }
#  else
#    if !defined(LOCK_EX)
extern int flock(int, int); /* macOS hides it and its flags from who defines _POSIX_C_SOURCE */
#    endif
static uint64_t ampi_clock(void) { return (uint64_t)clock(); }
static uint64_t ampi_process(void) { return (uint64_t)getpid(); }
static int ampi_lock_file(int fd) { return flock(fd, 2 | 4) == 0; } /* LOCK_EX | LOCK_NB */
#  endif
/* A name beside r->path: its last part (cut, so that file systems take it), 16 digits, ".tmp". */
#  define AMPI_TEMPORARY_BASE 200
static int ampi_temporary_name(ampi_replacement *r, uint64_t process, uint64_t attempt) {
    uint64_t seed[3];
    ampi_xxh h = ampi_xxh_begin();
    size_t dir = ampi_base_of(r->path);
    int n;
    seed[0] = attempt;
    seed[1] = ampi_clock();
    seed[2] = (uint64_t)(uintptr_t)r; /* systems put the stack anywhere */
    ampi_xxh_add(&h, seed, sizeof seed);
    n = snprintf(r->temporary, sizeof r->temporary, "%.*s%.*s.%08lx%08lx.tmp", (int)dir, r->path, AMPI_TEMPORARY_BASE,
        r->path + dir, (unsigned long)(process & 0xffffffffu), (unsigned long)(ampi_xxh_end(&h) & 0xffffffffu));
    return (size_t)n < sizeof r->temporary;
}

#  if !defined(_WIN32)
static void ampi_directory_of(const char *path, char to[AMPI_PATH]) {
    size_t n = ampi_base_of(path);
    memcpy(to, "./", 3); /* of a name alone */
    if (n == 0) return;
    memcpy(to, path, n);
    to[n] = 0;
}
/* Follows symbolic links, as fopen does, also to a file that is not there yet. */
static amp_status ampi_follow_links(ampi_replacement *r) {
    amp_ctx *ctx = r->ctx;
    char to[AMPI_PATH];
    int depth;
    for (depth = 0; depth < 40; depth++) {
        ssize_t n = readlink(r->path, to, sizeof to - 1);
        size_t dir;
        if (n < 0) return AMP_OK; /* not a link; what else may be wrong shows later */
        dir = to[0] == '/' ? 0 : ampi_base_of(r->path);
        AMPI_REQUIRE(dir + (size_t)n < sizeof r->path, AMP_ERR_IO, "%s: a symbolic link is too long", r->given);
        memcpy(r->path + dir, to, (size_t)n);
        r->path[dir + (size_t)n] = 0;
    }
    return amp_fail(ctx, AMP_ERR_IO, "%s: 40 symbolic links in a row", r->given);
}
static const char *ampi_kind_of(mode_t mode) {
    if (S_ISDIR(mode)) return "directory";
    if (S_ISFIFO(mode)) return "fifo";
    return S_ISCHR(mode) || S_ISBLK(mode) ? "device" : "special file";
}
/* A regular file, whose mode this is, or none: then *is is 0. */
static amp_status ampi_check_kind(amp_ctx *ctx, const char *given, const char *path, int32_t *is, unsigned *mode) {
    struct stat s;
    *is = 0;
    *mode = 0;
    if (stat(path, &s) != 0) {
        AMPI_REQUIRE(errno == ENOENT, AMP_ERR_IO, "%s: %s", given, ampi_reason());
        return AMP_OK;
    }
    AMPI_REQUIRE(
        S_ISREG(s.st_mode), AMP_ERR_IO, "%s: it is a %s, but a regular file is needed", given, ampi_kind_of(s.st_mode));
    *is = 1;
    *mode = (unsigned)s.st_mode & 07777u;
    return AMP_OK;
}

/* A writer holds a lock on its temporary file; the lock ends when the writer dies. */
static int ampi_is_named(int fd, const char *name) { /* does the name still lead to this file? */
    struct stat a, b;
    return fstat(fd, &a) == 0 && stat(name, &b) == 0 && a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}
static int ampi_is_temporary_of(const char *name, const char *base) {
    size_t n = strlen(base);
    if (n > AMPI_TEMPORARY_BASE) n = AMPI_TEMPORARY_BASE;
    if (strncmp(name, base, n) != 0 || name[n] != '.') return 0;
    return strspn(name + n + 1, "0123456789abcdef") == 16 && strcmp(name + n + 17, ".tmp") == 0;
}
static void ampi_remove_if_dead(const ampi_replacement *r, const char *name) {
    char to[1];
    struct stat s;
    int fd;
    if (readlink(name, to, sizeof to) >= 0 || stat(name, &s) != 0 || !S_ISREG(s.st_mode)) return;
    fd = open(name, O_RDWR);
    if (fd < 0) return;
    if (ampi_lock_file(fd) && ampi_is_named(fd, name) && remove(name) == 0)
        amp_log_event(r->ctx, AMP_LOG_INFO, "%s: removed; a writer that died had left it", name);
    (void)close(fd);
}
static void ampi_remove_dead(const ampi_replacement *r) {
    char name[AMPI_PATH];
    int dir = (int)ampi_base_of(r->path);
    const struct dirent *e;
    DIR *d;
    ampi_directory_of(r->path, name);
    d = opendir(name);
    if (!d) return;
    while ((e = readdir(d)) != NULL) {
        if (!ampi_is_temporary_of(e->d_name, r->path + dir)) continue;
        if (snprintf(name, sizeof name, "%.*s%s", dir, r->path, e->d_name) < AMPI_PATH) ampi_remove_if_dead(r, name);
    }
    (void)closedir(d);
}

static amp_status ampi_prepare_place(ampi_replacement *r) {
    AMPI_TRY(ampi_follow_links(r));
    AMPI_TRY(ampi_check_kind(r->ctx, r->given, r->path, &r->replaces, &r->mode));
    ampi_remove_dead(r);
    return AMP_OK;
}
/* r->f becomes a new file with a lock on it; 0: not this time, with the reason in errno */
static int ampi_open_temporary(ampi_replacement *r) {
    int fd = open(r->temporary, O_WRONLY | O_CREAT | O_EXCL, r->replaces ? 0600 : 0666); /* O_EXCL follows no link */
    int locked, reason = EEXIST; /* a writer that took it for a dead one's is removing it */
    if (fd < 0) return 0;
    locked = ampi_lock_file(fd);
    if (locked ? ampi_is_named(fd, r->temporary) : errno != EWOULDBLOCK) { /* where there are no locks nobody does */
        r->f = fdopen(fd, "wb");
        if (r->f) return 1;
        reason = errno;
        (void)remove(r->temporary);
    }
    (void)close(fd);
    errno = reason;
    return 0;
}

/* The old file's mode comes last: a later save must be able to open what a writer that died has left. */
static int ampi_flush(const ampi_replacement *r) {
    const int fd = fileno(r->f);
    if (fflush(r->f) != 0) return 0;
    if (r->replaces && fchmod(fd, (mode_t)r->mode) != 0 && errno != ENOSYS) return 0; /* WASI has no modes */
    return fsync(fd) == 0;
}
static void ampi_flush_directory(const char *path) {
    char dir[AMPI_PATH];
    int fd;
    ampi_directory_of(path, dir);
    fd = open(dir, O_RDONLY);
    if (fd < 0) return;
    (void)fsync(fd); /* some file systems refuse: the rename stands all the same */
    (void)close(fd);
}
/* Closes the file in any case. Renamed while the lock is held, so that nobody takes it for a dead writer's. */
static int ampi_take_place(ampi_replacement *r) {
    int done = rename(r->temporary, r->path) == 0, reason = errno;
    (void)fclose(r->f);
    if (done) ampi_flush_directory(r->path);
    errno = reason;
    return done;
}
#  else
__declspec(dllimport) int __stdcall MoveFileExA(const char *, const char *, unsigned long);
__declspec(dllimport) unsigned long __stdcall GetLastError(void);
static amp_status ampi_check_kind(amp_ctx *ctx, const char *given, const char *path, int32_t *is, unsigned *mode) {
    (void)ctx;
    (void)given;
    (void)path;
    *is = 0;
    *mode = 0;
    return AMP_OK;
}
static amp_status ampi_prepare_place(ampi_replacement *r) {
    (void)r; /* no links are followed, and what dead writers left stays */
    return AMP_OK;
}
static int ampi_open_temporary(ampi_replacement *r) {
    int fd = _open(r->temporary, _O_WRONLY | _O_CREAT | _O_EXCL | _O_BINARY, 0600);
    if (fd < 0) return 0;
    r->f = _fdopen(fd, "wb");
    if (!r->f) (void)_close(fd);
    return r->f != NULL;
}
static int ampi_flush(const ampi_replacement *r) { return fflush(r->f) == 0 && _commit(_fileno(r->f)) == 0; }
static int ampi_take_place(ampi_replacement *r) {
    unsigned long reason;
    if (fclose(r->f) != 0) return 0;
    if (MoveFileExA(r->temporary, r->path, 1 | 8) != 0) return 1; /* replace existing, write through */
    reason = GetLastError();
    errno = reason == 5 || reason == 32 || reason == 33 ? EACCES : EIO; /* denied; open or locked elsewhere */
    return 0;
}
#  endif

static amp_status ampi_replacement_begin(ampi_replacement *r, amp_ctx *ctx, const char *path) {
    uint64_t attempt;
    r->ctx = ctx;
    r->given = path;
    r->f = NULL;
    r->replaces = 0;
    r->mode = 0;
    AMPI_REQUIRE(strlen(path) < AMPI_PATH, AMP_ERR_IO, "%.100s...: the path is too long", path);
    memcpy(r->path, path, strlen(path) + 1);
    AMPI_TRY(ampi_prepare_place(r));
    for (attempt = 0; attempt < 100; attempt++) {
        AMPI_REQUIRE(
            ampi_temporary_name(r, ampi_process(), attempt), AMP_ERR_IO, "%.100s...: the path is too long", path);
        if (ampi_open_temporary(r)) return AMP_OK;
        if (errno != EEXIST) break;
    }
    return amp_fail(ctx, AMP_ERR_IO, "%s: cannot be created: %s", path, ampi_reason());
}
static amp_status ampi_replacement_put(ampi_replacement *r, const void *data, size_t n) {
    amp_ctx *ctx = r->ctx;
    errno = 0;
    AMPI_REQUIRE(fwrite(data, 1, n, r->f) == n, AMP_ERR_IO, "%s: write failed: %s", r->given, ampi_reason());
    return AMP_OK;
}
/* st: of what was written. The new file takes its place if all went well, and is removed if not. */
static amp_status ampi_replacement_end(ampi_replacement *r, amp_status st) {
    errno = 0;
    if (st == AMP_OK && !ampi_flush(r))
        st = amp_fail(r->ctx, AMP_ERR_IO, "%s: flushing it to disk failed: %s", r->given, ampi_reason());
    if (st != AMP_OK)
        (void)fclose(r->f);
    else if (!ampi_take_place(r))
        st = amp_fail(r->ctx, AMP_ERR_IO, "%s: the new file cannot take its place: %s", r->given, ampi_reason());
    if (st != AMP_OK) (void)remove(r->temporary);
    return st;
}
AMP_API amp_status amp_write_file(amp_ctx *ctx, const char *path, const void *data, size_t bytes) {
    const int before = ampi_hold();
    ampi_replacement r;
    amp_status st = ampi_replacement_begin(&r, ctx, path);
    if (st == AMP_OK) st = ampi_replacement_end(&r, ampi_replacement_put(&r, data, bytes));
    ampi_release(before);
    return st;
}

