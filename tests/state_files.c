/* state_files.c - what happens to a state file when writers are killed, meet, or are refused by the system, and when a
   file changes while it is read.  Guards: >>front-state.
   usage: state_files [--full] DIRECTORY     (for files; made, and removed at the end)
   The system calls of amp.h's copy in this file go through t_... below: each is a moment at which the process can be
   killed, the call can fail, or something else can happen. Last line: N passed, N failed, N skipped. */
#define _DEFAULT_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- moments ---- */

typedef enum deed { NOTHING, KILL, FAIL, HOOK } deed;
static struct {
    deed what;
    int at, count, error; /* at the at-th moment, counted from 1; 0: at each */
    const char *call;     /* NULL: any */
    void (*hook)(const char *path);
    const char *failed; /* the call that failed */
} plan;

static int moment(const char *call, const char *path) { /* 1: it fails */
    if (plan.what == NOTHING || (plan.call && strcmp(plan.call, call) != 0)) return 0;
    plan.count++;
    if (plan.at && plan.count != plan.at) return 0;
    if (plan.what == KILL) (void)kill(getpid(), SIGKILL);
    if (plan.what == HOOK) {
        plan.what = NOTHING;
        plan.hook(path);
        if (!plan.at) plan.what = HOOK;
        return 0;
    }
    plan.failed = call;
    errno = plan.error;
    return 1;
}
static void set_plan(deed w, const char *call, int at, int error, void (*hook)(const char *)) {
    memset(&plan, 0, sizeof plan);
    plan.what = w;
    plan.call = call;
    plan.at = at;
    plan.error = error;
    plan.hook = hook;
}

static int t_open(const char *path, int flags, ...) {
    va_list va;
    int mode;
    va_start(va, flags);
    mode = flags & O_CREAT ? va_arg(va, int) : 0;
    va_end(va);
    return moment(flags & O_CREAT ? "create" : "open", path) ? -1 : open(path, flags, mode);
}
static FILE *t_fdopen(int fd, const char *mode) { return moment("fdopen", NULL) ? NULL : fdopen(fd, mode); }
static int t_flock(int fd, int how) { return moment("flock", NULL) ? -1 : flock(fd, how); }
static int t_fchmod(int fd, mode_t mode) { return moment("fchmod", NULL) ? -1 : fchmod(fd, mode); }
static size_t t_fwrite(const void *p, size_t size, size_t n, FILE *f) {
    return moment("fwrite", NULL) ? 0 : fwrite(p, size, n, f);
}
static size_t t_fread(void *p, size_t size, size_t n, FILE *f) {
    return moment("fread", NULL) ? 0 : fread(p, size, n, f);
}
static int t_fflush(FILE *f) { return moment("fflush", NULL) ? EOF : fflush(f); }
static int t_fsync(int fd) { return moment("fsync", NULL) ? -1 : fsync(fd); }
static int t_rename(const char *from, const char *to) { return moment("rename", to) ? -1 : rename(from, to); }
static int t_remove(const char *path) { return moment("remove", path) ? -1 : remove(path); }
/* A call that succeeds may leave anything in errno. */
static int t_close(int fd) {
    int rc = close(fd);
    errno = ECHILD;
    return rc;
}
static int t_fclose(FILE *f) {
    int rc = fclose(f);
    errno = ECHILD;
    return rc;
}

#define open   t_open
#define fdopen t_fdopen
#define flock  t_flock
#define fchmod t_fchmod
#define fwrite t_fwrite
#define fread  t_fread
#define fflush t_fflush
#define fsync  t_fsync
#define rename t_rename
#define remove t_remove
#define close  t_close
#define fclose t_fclose
#define AMP_STATIC
#include "../amp.h"
#undef open
#undef fdopen
#undef flock
#undef fchmod
#undef fwrite
#undef fread
#undef fflush
#undef fsync
#undef rename
#undef remove
#undef close
#undef fclose

/* ---- checks ---- */

static int passed, failed, bad;
static const char *now = "";

static int check(int ok, int line, const char *text) {
    if (ok) return 1;
    fprintf(stderr, "FAILED %s, state_files.c:%d: %s\n", now, line, text);
    bad = 1;
    return 0;
}
#define CHECK(c) check((c) != 0, __LINE__, #c)

/* ---- a state whose every number is the tag, so that a mixture shows ---- */

static char dir[512], path[600];
static int full;

static const char *in_dir(const char *name) {
    static char names[32][800];
    static unsigned next;
    char *to = names[next++ % 32];
    snprintf(to, sizeof names[0], "%s/%s", dir, name);
    return to;
}

typedef struct state {
    amp_ctx *ctx;
    amp_params *p;
    amp_scaler *s;
    uint32_t user;
    amp_state_desc d;
    int warnings;
} state;

#define N_PARAMS 3u
#define HANG     600 /* seconds of a test: a loaded machine is slow, and no failure */
static size_t elements = 5000;

static void on_log(amp_log_level level, amp_status status, const char *text, void *user) {
    (void)status;
    (void)text;
    if (level == AMP_LOG_WARNING) ++*(int *)user;
}
static void fill(state *s, float tag) {
    size_t i, k;
    int j;
    for (k = 0; k < N_PARAMS; k++) {
        amp_param q = amp_param_get(s->p, k);
        for (i = 0; i < elements; i++) {
            ((float *)q.master.data)[i] = tag;
            for (j = 0; j < 2; j++)
                ((float *)q.moment[j].data)[i] = tag;
        }
    }
    s->user = (uint32_t)tag;
    (void)amp_scaler_set_scale(s->s, tag);
}
static void state_new(state *s, float tag) {
    amp_cpu_desc c = AMP_ZERO;
    amp_param_desc e = AMP_ZERO;
    size_t k;
    memset(s, 0, sizeof *s);
    c.threads = 1;
    c.logger.fn = on_log;
    c.logger.user = &s->warnings;
    e.count = elements;
    CHECK(amp_cpu_create(&s->ctx, &c) == AMP_OK);
    CHECK(amp_params_create(&s->p, s->ctx, NULL) == AMP_OK);
    for (k = 0; k < N_PARAMS; k++)
        CHECK(amp_params_add(s->p, &e) == AMP_OK);
    CHECK(amp_params_commit(s->p) == AMP_OK);
    CHECK(amp_scaler_create(&s->s, s->ctx, NULL) == AMP_OK);
    s->d.params = &s->p;
    s->d.n_params = 1;
    s->d.scalers = &s->s;
    s->d.n_scalers = 1;
    s->d.user = &s->user;
    s->d.user_bytes = sizeof s->user;
    fill(s, tag);
}
static void state_free(state *s) {
    amp_params_destroy(s->p);
    amp_scaler_destroy(s->s);
    amp_ctx_destroy(s->ctx);
}
static amp_status save(state *s) { return amp_state_save(s->ctx, path, &s->d); }
/* the tag of everything in a state; -1: a mixture */
static float tag_of(state *s) {
    amp_scaler_info info = AMP_ZERO;
    float tag = (float)s->user;
    size_t i, k;
    int j;
    (void)amp_scaler_get(s->s, &info);
    if (info.scale < tag || info.scale > tag) return -1;
    for (k = 0; k < N_PARAMS; k++) {
        amp_param q = amp_param_get(s->p, k);
        for (i = 0; i < elements; i++) {
            if (memcmp((float *)q.master.data + i, &tag, 4) != 0) return -1;
            for (j = 0; j < 2; j++)
                if (memcmp((float *)q.moment[j].data + i, &tag, 4) != 0) return -1;
        }
    }
    return tag;
}
static float tag_of_file(const char *name) { /* -2: it does not load */
    state s;
    float tag = -2;
    state_new(&s, 1);
    if (amp_state_load(s.ctx, name, &s.d) == AMP_OK) tag = tag_of(&s);
    state_free(&s);
    return tag;
}
static int is(float a, float b) { return !(a < b) && !(a > b); }

static int temporaries(void) { /* in the directory */
    DIR *d = opendir(dir);
    const struct dirent *e;
    int n = 0;
    while (d && (e = readdir(d)) != NULL)
        n += strstr(e->d_name, ".tmp") != NULL;
    if (d) closedir(d);
    return n;
}
static void save_tag(float tag) {
    state s;
    state_new(&s, tag);
    CHECK(save(&s) == AMP_OK);
    state_free(&s);
}
static int ended(pid_t child) { /* its exit status; -1: killed */
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
static void touch(const char *name, const char *text) {
    FILE *f = fopen(name, "wb");
    if (!CHECK(f != NULL) || !f) return;
    fputs(text, f);
    fclose(f);
}
static int holds(const char *name, const char *text) {
    char b[100] = "";
    FILE *f = fopen(name, "rb");
    size_t n = f ? fread(b, 1, sizeof b - 1, f) : 0;
    if (f) fclose(f);
    return f && n == strlen(text) && memcmp(b, text, n) == 0;
}

/* ---- writers that die ---- */

static void killed_at_every_call(void) {
    int at, status, seen[2] = {0, 0}, left = 0;
    state s;
    save_tag(10);
    state_new(&s, 20);
    for (at = 1;; at++) {
        pid_t child = fork();
        float tag;
        if (child == 0) {
            set_plan(KILL, NULL, at, 0, NULL);
            _exit(save(&s) != AMP_OK);
        }
        status = ended(child);
        tag = tag_of_file(path);
        CHECK(is(tag, 10) || is(tag, 20));
        seen[is(tag, 20)]++;
        if (temporaries() > left) left = temporaries();
        if (status >= 0) break;
        if (is(tag, 20)) save_tag(10);
    }
    CHECK(status == 0 && at > 15);
    CHECK(seen[0] > 10 && seen[1] > 0);
    CHECK(left == 1); /* each save removes what the last one's death left */
    CHECK(temporaries() == 0);
    state_free(&s);
}
static void killed_at_random(void) {
    int round, rounds = full ? 300 : 20, killed = 0, seen[2] = {0, 0};
    state s;
    elements = 200000; /* 7 MB: long enough to be hit */
    save_tag(10);
    state_new(&s, 20);
    srand(1);
    for (round = 0; round < rounds; round++) {
        pid_t parent = getpid(), child = fork();
        float tag;
        if (child == 0) {
            while (getppid() == parent) /* should nobody be left to kill it */
                (void)save(&s);
            _exit(0);
        }
        (void)usleep((useconds_t)(rand() % 60000));
        CHECK(kill(child, SIGKILL) == 0);
        killed += ended(child) < 0;
        tag = tag_of_file(path);
        CHECK(is(tag, 10) || is(tag, 20));
        seen[is(tag, 20)]++;
        if (is(tag, 20)) save_tag(10);
    }
    save_tag(30);
    CHECK(is(tag_of_file(path), 30) && temporaries() == 0);
    printf("%d writers killed: the file was the old one %d times and the new one %d times, never a different one\n",
        killed, seen[0], seen[1]);
    CHECK(killed == rounds);
    state_free(&s);
    elements = 5000;
}
static void two_writers(void) {
    int round, rounds = full ? 200 : 15, k, seen[2] = {0, 0};
    elements = 100000;
    for (round = 0; round < rounds; round++) {
        pid_t child[2];
        float tag;
        save_tag(10);
        for (k = 0; k < 2; k++) {
            child[k] = fork();
            if (child[k] == 0) {
                state s;
                state_new(&s, (float)(20 + k));
                _exit(save(&s) != AMP_OK);
            }
        }
        for (k = 0; k < 2; k++)
            CHECK(ended(child[k]) == 0);
        tag = tag_of_file(path);
        if (CHECK(is(tag, 20) || is(tag, 21))) seen[is(tag, 21)]++;
        CHECK(temporaries() == 0);
    }
    printf("%d rounds of two writers: the file was one's %d times and the other's %d times, never a mixture\n", rounds,
        seen[0], seen[1]);
    elements = 5000;
}

/* ---- a system that refuses ---- */

static void no_temporary(void) { /* each try at one fails, and the sentence says why */
    static const char *const calls[2] = {"fchmod", "fdopen"};
    int i;
    state s;
    state_new(&s, 20);
    save_tag(10);
    for (i = 0; i < 2; i++) {
        set_plan(FAIL, calls[i], 0, EMFILE, NULL);
        CHECK(save(&s) == AMP_ERR_IO);
        plan.what = NOTHING;
        CHECK(strstr(amp_last_error(s.ctx), strerror(EMFILE)) && strstr(amp_last_error(s.ctx), path));
        CHECK(is(tag_of_file(path), 10) && temporaries() == 0);
    }
    state_free(&s);
}
static void each_call_fails(void) {
    static const int errors[2] = {ENOSPC, EIO};
    int at, refused = 0, k;
    state s;
    state_new(&s, 20);
    for (k = 0; k < 2; k++)
        for (at = 1;; at++) {
            amp_status st;
            float tag;
            save_tag(10);
            set_plan(FAIL, NULL, at, errors[k], NULL);
            st = save(&s);
            plan.what = NOTHING;
            if (!plan.failed) break;
            tag = tag_of_file(path);
            CHECK(st == AMP_OK || st == AMP_ERR_IO);
            CHECK(is(tag, st == AMP_OK ? 20 : 10));
            CHECK(temporaries() == 0);
            if (st == AMP_OK) continue;
            refused++;
            CHECK(strstr(amp_last_error(s.ctx), strerror(errors[k])) && strstr(amp_last_error(s.ctx), path));
        }
    CHECK(refused >= 20);
    state_free(&s);
}
static void full_disk(void) { /* as a limit of the process sees it */
    pid_t child;
    save_tag(10);
    child = fork();
    if (child == 0) {
        struct rlimit limit;
        state s;
        limit.rlim_cur = limit.rlim_max = 50000;
        (void)signal(SIGXFSZ, SIG_IGN);
        state_new(&s, 20);
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(9);
        if (save(&s) != AMP_ERR_IO) _exit(1);
        _exit(strstr(amp_last_error(s.ctx), strerror(EFBIG)) == NULL);
    }
    CHECK(ended(child) == 0);
    CHECK(is(tag_of_file(path), 10) && temporaries() == 0);
}
static void says_why(void) {
    state s;
    state_new(&s, 20);
    CHECK(amp_state_save(s.ctx, in_dir("none/x"), &s.d) == AMP_ERR_IO);
    CHECK(strstr(amp_last_error(s.ctx), strerror(ENOENT)) != NULL);
    CHECK(amp_state_load(s.ctx, in_dir("none/x"), &s.d) == AMP_ERR_IO);
    CHECK(strstr(amp_last_error(s.ctx), strerror(ENOENT)) != NULL);
    touch(in_dir("file"), "x");
    CHECK(amp_state_save(s.ctx, in_dir("file/x"), &s.d) == AMP_ERR_IO);
    CHECK(strstr(amp_last_error(s.ctx), strerror(ENOTDIR)) != NULL);
    state_free(&s);
}

/* ---- temporary files ---- */

static state other;
static int other_status;
static void other_saves(const char *p) {
    (void)p;
    other_status = (int)save(&other);
}
static void living_writers_keep_theirs(void) { /* a second writer comes at each moment of the first one's save */
    int at, met = 0;
    for (at = 1; at < 100; at++) {
        state s;
        float tag;
        save_tag(10);
        state_new(&s, 20);
        state_new(&other, 30);
        other_status = 1;
        set_plan(HOOK, NULL, at, 0, other_saves);
        CHECK(save(&s) == AMP_OK);
        plan.what = NOTHING;
        tag = tag_of_file(path);
        CHECK(is(tag, 20) || is(tag, 30));
        CHECK(temporaries() == 0);
        CHECK(other_status == AMP_OK || other_status == 1);
        met += other_status == AMP_OK;
        state_free(&s);
        state_free(&other);
        if (other_status == 1) break;
    }
    CHECK(met > 15);
}
static void removes_only_dead_ones(void) {
    static const char *const stay[] = {"f.amp.tmp", "f.amp.0123.tmp", "f.amp.0123456789abcdeg.tmp",
        "g.amp.0123456789abcdef.tmp", "f.amp.0123456789abcdef.tmp2", "f.amp0123456789abcdef.tmp"};
    const char *dead = in_dir("f.amp.0123456789abcdef.tmp"), *linked = in_dir("f.amp.00000000000000ff.tmp");
    size_t i;
    for (i = 0; i < sizeof stay / sizeof stay[0]; i++)
        touch(in_dir(stay[i]), "mine");
    touch(dead, "dead");
    touch(in_dir("victim"), "victim");
    CHECK(symlink("victim", linked) == 0);
    save_tag(10);
    CHECK(!holds(dead, "dead"));
    for (i = 0; i < sizeof stay / sizeof stay[0]; i++)
        CHECK(holds(in_dir(stay[i]), "mine") && unlink(in_dir(stay[i])) == 0);
    CHECK(holds(in_dir("victim"), "victim") && holds(linked, "victim") && unlink(linked) == 0);
}
static void without_locks(void) { /* they stay, and nothing else changes */
    const char *dead = in_dir("f.amp.0123456789abcdef.tmp");
    state s;
    state_new(&s, 20);
    touch(dead, "dead");
    set_plan(FAIL, "flock", 0, ENOLCK, NULL);
    CHECK(save(&s) == AMP_OK);
    plan.what = NOTHING;
    CHECK(holds(dead, "dead") && is(tag_of_file(path), 20));
    CHECK(unlink(dead) == 0 && temporaries() == 0);
    state_free(&s);
}
static int planted;
static void plants_a_link(const char *p) {
    if (planted++ < 3) CHECK(symlink(in_dir("victim"), p) == 0);
}
static void planted_links(void) { /* at the very name that the temporary file will have */
    state s;
    touch(in_dir("victim"), "victim");
    state_new(&s, 20);
    planted = 0;
    set_plan(HOOK, "create", 0, 0, plants_a_link);
    CHECK(save(&s) == AMP_OK);
    plan.what = NOTHING;
    CHECK(planted == 4);
    CHECK(holds(in_dir("victim"), "victim") && is(tag_of_file(path), 20));
    state_free(&s);
}

/* ---- what path may be ---- */

static void refused_kind(state *s, const char *name, const char *word) {
    struct stat a, b;
    CHECK(stat(name, &a) == 0);
    CHECK(amp_state_save(s->ctx, name, &s->d) == AMP_ERR_IO);
    CHECK(strstr(amp_last_error(s->ctx), word) && strstr(amp_last_error(s->ctx), name));
    CHECK(amp_state_load(s->ctx, name, &s->d) == AMP_ERR_IO);
    CHECK(strstr(amp_last_error(s->ctx), word) != NULL);
    CHECK(stat(name, &b) == 0 && a.st_ino == b.st_ino && a.st_mode == b.st_mode);
}
static void kinds(void) {
    state s;
    state_new(&s, 20);
    CHECK(mkdir(in_dir("d"), 0777) == 0);
    refused_kind(&s, in_dir("d"), "directory");
    CHECK(mkfifo(in_dir("fifo"), 0666) == 0);
    refused_kind(&s, in_dir("fifo"), "fifo");
    CHECK(symlink("fifo", in_dir("to-fifo")) == 0);
    refused_kind(&s, in_dir("to-fifo"), "fifo");
    if (mknod(in_dir("full"), S_IFCHR | 0666, (dev_t)0x107) == 0) /* what /dev/full is */
        refused_kind(&s, in_dir("full"), "device");
    else
        printf("(a device node cannot be made here: not tried)\n");
    if (mknod(in_dir("disk"), S_IFBLK | 0666, (dev_t)0x700) == 0) refused_kind(&s, in_dir("disk"), "device");
    if (mknod(in_dir("socket"), S_IFSOCK | 0666, 0) == 0) refused_kind(&s, in_dir("socket"), "special file");
    state_free(&s);
}
/* A name without a directory is of the current one, where what a dead writer left is removed, too. */
static void bare_name(void) {
    char home[512];
    state s;
    if (!CHECK(getcwd(home, sizeof home) != NULL && chdir(dir) == 0)) return;
    state_new(&s, 20);
    touch("bare.0123456789abcdef.tmp", "dead");
    CHECK(mkdir("bare.00000000000000ff.tmp", 0777) == 0); /* of a dead writer's form, but no file */
    CHECK(mkfifo("bare.00000000000000fe.tmp", 0666) == 0);
    CHECK(amp_state_save(s.ctx, "bare", &s.d) == AMP_OK);
    CHECK(is(tag_of_file("bare"), 20) && !holds("bare.0123456789abcdef.tmp", "dead"));
    CHECK(rmdir("bare.00000000000000ff.tmp") == 0);
    CHECK(remove("bare.00000000000000fe.tmp") == 0);
    state_free(&s);
    CHECK(chdir(home) == 0);
}
static void links(void) {
    char far[4090];
    struct stat a;
    size_t i;
    state s;
    state_new(&s, 20);
    CHECK(mkdir(in_dir("big"), 0777) == 0);
    CHECK(symlink("big/real", in_dir("latest")) == 0 && symlink("latest", in_dir("latest2")) == 0);
    CHECK(amp_state_save(s.ctx, in_dir("latest2"), &s.d) == AMP_OK); /* to a file that is not there yet */
    CHECK(is(tag_of_file(in_dir("big/real")), 20));
    fill(&s, 30);
    CHECK(amp_state_save(s.ctx, in_dir("latest"), &s.d) == AMP_OK);
    CHECK(is(tag_of_file(in_dir("big/real")), 30));
    CHECK(lstat(in_dir("latest"), &a) == 0 && S_ISLNK(a.st_mode));
    CHECK(symlink(in_dir("big/real"), in_dir("absolute")) == 0);
    fill(&s, 40);
    CHECK(amp_state_save(s.ctx, in_dir("absolute"), &s.d) == AMP_OK);
    CHECK(is(tag_of_file(in_dir("big/real")), 40) && is(tag_of_file(in_dir("latest")), 40));
    CHECK(symlink("round", in_dir("round")) == 0);
    CHECK(amp_state_save(s.ctx, in_dir("round"), &s.d) == AMP_ERR_IO);
    CHECK(strstr(amp_last_error(s.ctx), "symbolic links") != NULL);
    memset(far, '.', sizeof far - 1);
    for (i = 1; i < sizeof far; i += 2)
        far[i] = '/';
    far[sizeof far - 1] = 0;
    CHECK(symlink(far, in_dir("far")) == 0); /* with the directory it is in, more than a path may have */
    CHECK(amp_state_save(s.ctx, in_dir("far"), &s.d) == AMP_ERR_IO);
    CHECK(strstr(amp_last_error(s.ctx), "symbolic link is too long") != NULL);
    state_free(&s);
}
static void mode_is_kept(void) {
    static const mode_t modes[5] = {0600, 0640, 0444, 0666, 0};
    struct stat a;
    mode_t mask = umask(022);
    int i;
    (void)unlink(path);
    save_tag(10);
    CHECK(stat(path, &a) == 0 && (a.st_mode & 07777) == 0644);
    for (i = 0; i < 5; i++) {
        CHECK(chmod(path, modes[i]) == 0);
        save_tag(20);
        CHECK(stat(path, &a) == 0 && (a.st_mode & 07777) == modes[i]);
    }
    (void)umask(mask);
}
static void long_names(void) {
    char name[300], deep[6000];
    size_t i;
    state s;
    state_new(&s, 20);
    memset(name, 'n', 250);
    name[250] = 0;
    CHECK(amp_state_save(s.ctx, in_dir(name), &s.d) == AMP_OK);
    CHECK(is(tag_of_file(in_dir(name)), 20));
    for (i = 0; i < sizeof deep - 1; i++)
        deep[i] = i % 2 ? '/' : '.';
    deep[i] = 0;
    CHECK(amp_state_save(s.ctx, deep, &s.d) == AMP_ERR_IO);
    CHECK(amp_state_load(s.ctx, deep, &s.d) == AMP_ERR_IO);
    snprintf(deep + 4080, sizeof deep - 4080, "file"); /* it could be saved to, but not beside */
    CHECK(amp_state_save(s.ctx, deep, &s.d) == AMP_ERR_IO);
    CHECK(strstr(amp_last_error(s.ctx), "path is too long") != NULL);
    state_free(&s);
}
static void name_at_the_end(void) { /* of readable memory: nothing behind a name is read */
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = strlen(path) + 1;
    int fd = open("/dev/zero", O_RDWR);
    char *two = (char *)mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    char *name = two + page - bytes;
    state s;
    if (!CHECK(two != MAP_FAILED && mprotect(two + page, page, PROT_NONE) == 0)) return;
    memcpy(name, path, bytes);
    state_new(&s, 20);
    CHECK(amp_state_save(s.ctx, name, &s.d) == AMP_OK);
    state_free(&s);
    CHECK(is(tag_of_file(name), 20));
    (void)munmap(two, 2 * page);
    (void)close(fd);
}

/* ---- a file that changes while it is read ---- */

static long place;
static void cut_file(const char *p) {
    (void)p;
    CHECK(truncate(path, place) == 0);
}
static void flip_byte(const char *p) {
    FILE *f = fopen(path, "r+b");
    int c;
    (void)p;
    if (!CHECK(f != NULL) || !f) return;
    (void)fseek(f, place, SEEK_SET);
    c = fgetc(f);
    (void)fseek(f, place, SEEK_SET);
    (void)fputc(c ^ 0x80, f);
    (void)fclose(f);
}
static void replace_file(const char *p) { /* in place, as cp does */
    FILE *from = fopen(in_dir("next"), "rb"), *to = fopen(path, "r+b");
    int c;
    (void)p;
    while (from && to && (c = fgetc(from)) != EOF)
        (void)fputc(c, to);
    if (from) (void)fclose(from);
    if (to) (void)fclose(to);
}
/* The hook at each read. A load that fails leaves the state as it was; one that succeeds has all of one file. */
static void changed_at_every_read(void (*hook)(const char *), const char *word) {
    int at, refused = 0;
    for (at = 1;; at++) {
        state s;
        amp_status st;
        save_tag(10);
        state_new(&s, 30);
        set_plan(HOOK, "fread", at, 0, hook);
        st = amp_state_load(s.ctx, path, &s.d);
        if (plan.what == HOOK) {
            state_free(&s);
            break;
        }
        plan.what = NOTHING;
        refused += st != AMP_OK;
        if (st == AMP_OK) /* what was read already may change */
            CHECK(is(tag_of(&s), 10) || is(tag_of(&s), 20));
        else if (!CHECK(is(tag_of(&s), 30) && strstr(amp_last_error(s.ctx), word)))
            fprintf(stderr, "    read %d, place %ld: %s\n", at, place, amp_last_error(s.ctx));
        state_free(&s);
    }
    plan.what = NOTHING;
    CHECK(at > 25 && refused > 0);
}
static void changed_while_read(void) {
    struct stat a;
    int i;
    save_tag(20);
    CHECK(rename(path, in_dir("next")) == 0);
    save_tag(10);
    CHECK(stat(path, &a) == 0);
    for (i = 0; i < (full ? 40 : 6); i++) {
        place = (long)a.st_size / (full ? 40 : 6) * i + 20;
        changed_at_every_read(cut_file, "truncated");
        changed_at_every_read(flip_byte, "checksum");
    }
    changed_at_every_read(replace_file, "changed while it was read");
}
static void reads_fail(void) {
    int at;
    state s;
    save_tag(10);
    state_new(&s, 30);
    for (at = 1;; at++) {
        amp_status st;
        set_plan(FAIL, "fread", at, EIO, NULL);
        st = amp_state_load(s.ctx, path, &s.d);
        plan.what = NOTHING;
        if (!plan.failed) break;
        CHECK(st != AMP_OK && is(tag_of(&s), 30));
    }
    CHECK(at > 25 && is(tag_of(&s), 10));
    state_free(&s);
}

/* ---- main ---- */

static const struct {
    const char *name;
    void (*fn)(void);
} tests[] = {{"killed_at_every_call", killed_at_every_call}, {"killed_at_random", killed_at_random},
    {"two_writers", two_writers}, {"each_call_fails", each_call_fails}, {"no_temporary", no_temporary},
    {"full_disk", full_disk}, {"says_why", says_why}, {"living_writers_keep_theirs", living_writers_keep_theirs},
    {"removes_only_dead_ones", removes_only_dead_ones}, {"without_locks", without_locks},
    {"planted_links", planted_links}, {"kinds", kinds}, {"bare_name", bare_name}, {"links", links},
    {"mode_is_kept", mode_is_kept}, {"long_names", long_names}, {"name_at_the_end", name_at_the_end},
    {"changed_while_read", changed_while_read}, {"reads_fail", reads_fail}};

static void remove_all(const char *name) {
    DIR *d = opendir(name);
    const struct dirent *e;
    char inside[1200];
    while (d && (e = readdir(d)) != NULL) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        snprintf(inside, sizeof inside, "%.700s/%.300s", name, e->d_name);
        if (unlink(inside) != 0) remove_all(inside);
    }
    if (d) closedir(d);
    (void)rmdir(name);
}

int main(int argc, char **argv) {
    size_t i;
    full = argc > 1 && strcmp(argv[1], "--full") == 0;
    if (argc != 2 + full) {
        fprintf(stderr, "usage: state_files [--full] DIRECTORY\n");
        return 2;
    }
    if (argv[1 + full][0] != '/' && getcwd(dir, 300)) strcat(dir, "/");
    snprintf(dir + strlen(dir), 200, "%s", argv[1 + full]);
    for (i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        remove_all(dir);
        if (mkdir(dir, 0777) != 0) {
            perror(dir);
            return 2;
        }
        snprintf(path, sizeof path, "%s/f.amp", dir);
        now = tests[i].name;
        (void)alarm(HANG);
        bad = 0;
        tests[i].fn();
        plan.what = NOTHING;
        *(bad ? &failed : &passed) += 1;
    }
    remove_all(dir);
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed != 0;
}
