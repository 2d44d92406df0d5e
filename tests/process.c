/* process.c - contexts and what surrounds them: fork(), processors and threads that are withheld, memory that is
   not needed, signals, a locale.  Guards: >>cpu-host, >>cpu-table.   Last line: N passed, N failed, N skipped. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <locale.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../amp.h"

static int passed, failed, skipped, bad;
static const char *now = "";

static int check(int ok, int line, const char *text) {
    if (ok) return 1;
    fprintf(stderr, "FAILED %s, process.c:%d: %s\n", now, line, text);
    bad = 1;
    return 0;
}
#define CHECK(c) check((c) != 0, __LINE__, #c)
static void skip(const char *why) {
    printf("skipped: %s: %s\n", now, why);
    skipped++;
}

#define N    1000000u
#define HANG 600 /* seconds: a loaded machine is slow, and no failure */
static float in[N];
static amp_f16 out[N], expected[N];

static amp_ctx *create(int32_t threads) {
    amp_cpu_desc d = AMP_ZERO;
    amp_ctx *c = NULL;
    d.threads = threads;
    CHECK(amp_cpu_create(&c, &d) == AMP_OK);
    return c;
}
static int threads_of(const amp_ctx *c) {
    const char *comma = strchr(amp_ctx_name(c), ',');
    return comma ? atoi(comma + 1) : 0;
}
static int works(amp_ctx *c) { /* verbs on several threads, a product, a step */
    static float w[64 * 64], x[64 * 64], y[64 * 64];
    amp_gemm_desc g = AMP_ZERO;
    amp_params *p = NULL;
    amp_param_desc e = AMP_ZERO;
    amp_step_desc d = AMP_ZERO;
    size_t i;
    int good;
    memset(out, 0, sizeof out);
    good = amp_cast(c, amp_arr(out, AMP_F16), amp_arr(in, AMP_F32), N, NULL) == AMP_OK;
    good &= memcmp(out, expected, sizeof out) == 0;
    for (i = 0; i < 64 * 64; i++)
        w[i] = x[i] = 1.0f;
    g.m = g.n = g.k = 64;
    g.a = amp_arr(w, AMP_F32);
    g.b = amp_arr(x, AMP_F32);
    g.d = amp_arr(y, AMP_F32);
    good &= amp_gemm(c, &g) == AMP_OK && y[4095] > 63.5f && y[4095] < 64.5f;
    e.count = N;
    d.lr = 0.1f;
    good &= amp_params_create(&p, c, NULL) == AMP_OK && amp_params_add(p, &e) == AMP_OK;
    good &= amp_params_commit(p) == AMP_OK && amp_step(p, NULL, &d) == AMP_OK;
    amp_params_destroy(p);
    return good;
}
static int ended(pid_t child) { /* its exit status; -1: killed */
    int status = 0;
    (void)waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- fork ---- */

static void child_uses_and_destroys(void) {
    int round, k;
    for (round = 0; round < 5; round++)
        for (k = 0; k < 4; k++) {
            amp_ctx *c = create(4);
            pid_t child;
            CHECK(works(c));
            child = fork();
            if (child == 0) {
                (void)alarm(HANG / 2);
                if (k & 1 && !works(c)) _exit(1);
                if (k & 2) amp_ctx_destroy(c);
                _exit(0);
            }
            CHECK(works(c)); /* the parent's threads go on meanwhile */
            CHECK(ended(child) == 0);
            CHECK(works(c));
            amp_ctx_destroy(c);
        }
}
static void child_makes_its_own(void) {
    amp_ctx *c = create(3);
    pid_t child = fork();
    if (child == 0) {
        amp_ctx *own;
        (void)alarm(HANG / 2);
        amp_ctx_destroy(c);
        own = create(3);
        if (bad || !works(own) || threads_of(own) != 3) _exit(1);
        amp_ctx_destroy(own);
        _exit(0);
    }
    CHECK(ended(child) == 0);
    amp_ctx_destroy(c);
}

/* ---- what the system gives ---- */

/* In place of the C library's, so that it can fail, as where there are more processors than a mask has room for. */
static int no_mask;
int sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *mask) {
    long filled = -1;
    memset(mask, 0, bytes);
    if (no_mask)
        errno = EINVAL;
    else
        filled = syscall(SYS_sched_getaffinity, pid, bytes, mask);
    return filled < 0 ? -1 : 0;
}

static void affinity(void) {
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    cpu_set_t all, one;
    amp_ctx *c;
    int i = 0;
    if (sched_getaffinity(0, sizeof all, &all) != 0) {
        skip("no sched_getaffinity here");
        return;
    }
    c = create(0);
    CHECK(threads_of(c) == (CPU_COUNT(&all) > 256 ? 256 : CPU_COUNT(&all)));
    amp_ctx_destroy(c);
    while (!CPU_ISSET(i, &all))
        i++;
    CPU_ZERO(&one);
    CPU_SET(i, &one);
    if (!CHECK(sched_setaffinity(0, sizeof one, &one) == 0)) return;
    c = create(0);
    CHECK(threads_of(c) == 1);
    amp_ctx_destroy(c);
    c = create(2); /* a number is obeyed */
    CHECK(threads_of(c) == 2 && works(c));
    amp_ctx_destroy(c);
    CHECK(sched_setaffinity(0, sizeof all, &all) == 0);
    no_mask = 1;
    c = create(0);
    CHECK(threads_of(c) == (online > 256 ? 256 : online));
    amp_ctx_destroy(c);
    no_mask = 0;
}
static int warned, refused;
static void on_log(amp_log_level level, amp_status status, const char *text, void *user) {
    (void)user;
    warned += level == AMP_LOG_WARNING && strstr(text, "threads") != NULL;
    refused += level == AMP_LOG_ERROR && status == AMP_ERR_NO_MEMORY && strstr(text, "threads") != NULL;
}
static void no_threads_to_have(void) { /* as nobody, with a limit of one */
    pid_t child = fork();
    int status;
    if (child == 0) {
        struct rlimit limit = {1, 1};
        amp_cpu_desc d = AMP_ZERO;
        amp_ctx *c = NULL;
        int processors = threads_of(create(0));
        if (processors < 2) _exit(77);
        (void)(getuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0));
        if (setrlimit(RLIMIT_NPROC, &limit) != 0) _exit(77);
        d.logger.fn = on_log;
        if (amp_cpu_create(&c, &d) != AMP_OK) _exit(1);
        if (threads_of(c) == processors) _exit(77); /* the limit does not hold here */
        if (threads_of(c) != 1 || warned != 1 || !works(c)) _exit(2);
        amp_ctx_destroy(c);
        d.threads = 4; /* a number that cannot be had is refused */
        if (amp_cpu_create(&c, &d) != AMP_ERR_NO_MEMORY || c || refused != 1) _exit(3);
        _exit(0);
    }
    status = ended(child);
    if (status == 77)
        skip("threads cannot be limited here");
    else
        CHECK(status == 0);
}
static size_t least_refused, bytes_asked;
static void *small_only(size_t bytes, void *user) {
    (void)user;
    bytes_asked += bytes;
    return bytes < least_refused ? malloc(bytes) : NULL;
}
static void small_free(void *p, size_t bytes, void *user) {
    (void)bytes;
    (void)user;
    free(p);
}
static void no_memory_to_have(void) { /* room for one workspace, of 2.2 MB, but not for two */
    amp_cpu_desc d = AMP_ZERO;
    amp_ctx *c = NULL;
    d.allocator.alloc_fn = small_only;
    d.allocator.free_fn = small_free;
    d.logger.fn = on_log;
    least_refused = 3u << 20;
    CHECK(amp_cpu_create(&c, &d) == AMP_OK && threads_of(c) == 1);
    amp_ctx_destroy(c);
    d.threads = 2;
    CHECK(amp_cpu_create(&c, &d) == AMP_ERR_NO_MEMORY && !c);
}
static void memory_of_a_thread(void) { /* 2.2 MB for each more, as amp_cpu_create says */
    amp_cpu_desc d = AMP_ZERO;
    size_t asked[2];
    int i;
    d.allocator.alloc_fn = small_only;
    d.allocator.free_fn = small_free;
    least_refused = (size_t)1 << 30;
    for (i = 0; i < 2; i++) {
        amp_ctx *c = NULL;
        bytes_asked = 0;
        d.threads = 2 + i;
        CHECK(amp_cpu_create(&c, &d) == AMP_OK);
        amp_ctx_destroy(c);
        asked[i] = bytes_asked;
    }
    printf("a thread more: %lu bytes\n", (unsigned long)(asked[1] - asked[0]));
    CHECK(asked[1] - asked[0] > 2150000 && asked[1] - asked[0] < 2250000);
}
static long resident(void) { /* KiB; -1: not known */
    FILE *f = fopen("/proc/self/statm", "r");
    long pages = -1;
    if (f && fscanf(f, "%*s %ld", &pages) != 1) pages = -1;
    if (f) (void)fclose(f);
    return pages < 0 ? -1 : pages * (sysconf(_SC_PAGESIZE) / 1024);
}
static void memory_when_needed(void) {
    long before = resident(), after;
    amp_ctx *c;
    if (before < 0) {
        skip("no /proc/self/statm here");
        return;
    }
    c = create(64);
    after = resident();
    printf("64 threads: %ld KiB resident\n", after - before);
    CHECK(after - before < 64 * 100); /* all of their workspaces: 140 MB */
    CHECK(works(c));
    amp_ctx_destroy(c);
}

/* ---- signals ---- */

static uint64_t blocked_now(const char *task) { /* the signals that a thread of this process blocks, bit s - 1 for s */
    char path[300], line[200];
    unsigned long long mask = 0;
    FILE *f;
    snprintf(path, sizeof path, "/proc/self/task/%.200s/status", task);
    f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f) && sscanf(line, "SigBlk: %llx", &mask) != 1)
        ;
    if (f) (void)fclose(f);
    return mask;
}
/* The same once the thread has begun: until then the C library blocks all. */
static uint64_t blocked_by(const char *task) {
    const struct timespec moment = {0, 1000000};
    uint64_t mask = blocked_now(task);
    int i;
    for (i = 0; i < 10000 && mask >> (SIGSEGV - 1) & 1; i++) {
        (void)nanosleep(&moment, NULL);
        mask = blocked_now(task);
    }
    return mask;
}
/* A signal that the program blocks, to wait for it, reaches the program: no worker takes it, which would end the
   process. Faults are not blocked: their handlers run. The thread that makes a context keeps its own mask. */
static void signals_are_the_programs(void) {
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}, others[] = {SIGTERM, SIGINT, SIGUSR1, 40};
    amp_ctx *c = create(3);
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *d;
    int workers = 0;
    size_t i;
    pid_t child;
    if (!tasks) {
        skip("no /proc/self/task here");
        amp_ctx_destroy(c);
        return;
    }
    while ((d = readdir(tasks)) != NULL) {
        uint64_t mask = blocked_by(d->d_name);
        if (d->d_name[0] == '.') continue;
        if (atoi(d->d_name) == (int)getpid()) {
            CHECK(mask == 0);
            continue;
        }
        workers++;
        for (i = 0; i < sizeof others / sizeof others[0]; i++)
            CHECK(mask >> (others[i] - 1) & 1);
        for (i = 0; i < sizeof faults / sizeof faults[0]; i++)
            CHECK(!(mask >> (faults[i] - 1) & 1));
    }
    (void)closedir(tasks);
    CHECK(workers == 2);
    amp_ctx_destroy(c);
    child = fork();
    if (child == 0) {
        struct timespec wait = {HANG / 2, 0};
        sigset_t set;
        c = create(2);
        (void)sigemptyset(&set);
        (void)sigaddset(&set, SIGTERM);
        (void)sigprocmask(SIG_BLOCK, &set, NULL);
        if (!works(c) || kill(getpid(), SIGTERM) != 0 || sigtimedwait(&set, NULL, &wait) != SIGTERM) _exit(1);
        _exit(works(c) ? 0 : 2);
    }
    CHECK(ended(child) == 0);
}

/* ---- a locale with a decimal comma ---- */

static void decimal_comma(void) {
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8", "nl_NL.UTF-8"};
    amp_policy_desc o = AMP_ZERO;
    amp_policy p;
    amp_ctx *c = create(1);
    size_t i = 0;
    while (i < sizeof names / sizeof names[0] && !setlocale(LC_ALL, names[i]))
        i++;
    if (i == sizeof names / sizeof names[0]) {
        skip("no locale with a decimal comma is installed");
    } else {
        o.loss_scale = "128.5";
        CHECK(amp_policy_init(c, &p, AMP_O2, &o) == AMP_OK && p.loss_scale > 128.4f && p.loss_scale < 128.6f);
        CHECK(amp_policy_set(c, &p, "min_loss_scale", "0.5") == AMP_OK);
        o.loss_scale = "128,5";
        CHECK(amp_policy_init(c, &p, AMP_O2, &o) == AMP_ERR_INVALID_ARG);
        (void)setlocale(LC_ALL, "C");
    }
    amp_ctx_destroy(c);
}

static const struct {
    const char *name;
    void (*fn)(void);
} tests[] = {{"child_uses_and_destroys", child_uses_and_destroys}, {"child_makes_its_own", child_makes_its_own},
    {"affinity", affinity}, {"no_threads_to_have", no_threads_to_have}, {"no_memory_to_have", no_memory_to_have},
    {"memory_of_a_thread", memory_of_a_thread}, {"memory_when_needed", memory_when_needed},
    {"signals_are_the_programs", signals_are_the_programs}, {"decimal_comma", decimal_comma}};

int main(void) {
    size_t i;
    for (i = 0; i < N; i++) {
        in[i] = (float)i - 5e5f;
        expected[i] = amp_f16_from_f32(in[i]);
    }
    for (i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        int before = skipped;
        now = tests[i].name;
        bad = 0;
        (void)alarm(HANG);
        tests[i].fn();
        if (bad || skipped == before) *(bad ? &failed : &passed) += 1;
    }
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed != 0;
}
