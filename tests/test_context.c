/* test_context.c - contexts: creation, allocator and logger hooks, memory, ledger, error texts.
   Guards: >>context, >>memory, >>errors. */
#include "../amp_cuda.cuh"
#include "ref.h"
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__TINYC__)
#  include <cpuid.h> /* that of tests/hide, if features are hidden */
#endif

/* ---- hooks that count and can fail ---- */

#define MAX_ROWS 1024u

typedef struct hooks {
    size_t calls, fail_at; /* fail_at: which call fails, from 1; 0: none */
    size_t fail_for;       /* how many calls in a row fail */
    size_t live, live_bytes, peak_bytes, failed, wrong_frees;
    struct {
        void *p;
        size_t bytes;
    } row[MAX_ROWS];
    size_t logs, errors, warnings;
    amp_status status;
    char text[512];
} hooks;

static void *hook_alloc(size_t bytes, void *user) {
    hooks *h = (hooks *)user;
    size_t i;
    void *p;
    h->calls++;
    if (h->fail_at && h->calls >= h->fail_at && h->calls < h->fail_at + h->fail_for) {
        h->failed++;
        return NULL;
    }
    p = malloc(bytes ? bytes : 1);
    if (!p) return NULL;
    memset(p, 0xcd, bytes); /* nothing may rely on zeroed memory */
    for (i = 0; i < MAX_ROWS; i++)
        if (!h->row[i].p) {
            h->row[i].p = p;
            h->row[i].bytes = bytes;
            break;
        }
    h->live++;
    h->live_bytes += bytes;
    if (h->live_bytes > h->peak_bytes) h->peak_bytes = h->live_bytes;
    return p;
}

static void hook_free(void *p, size_t bytes, void *user) {
    hooks *h = (hooks *)user;
    size_t i;
    for (i = 0; i < MAX_ROWS; i++) {
        if (h->row[i].p != p || !p) continue;
        if (h->row[i].bytes != bytes) h->wrong_frees++;
        h->row[i].p = NULL;
        h->live--;
        h->live_bytes -= h->row[i].bytes;
        free(p);
        return;
    }
    h->wrong_frees++; /* never given, or freed twice */
}

static void hook_log(amp_log_level level, amp_status status, const char *text, void *user) {
    hooks *h = (hooks *)user;
    h->logs++;
    h->errors += level == AMP_LOG_ERROR;
    h->warnings += level == AMP_LOG_WARNING;
    h->status = status;
    snprintf(h->text, sizeof h->text, "%s", text ? text : "(null)");
}

static amp_allocator allocator_of(hooks *h) {
    amp_allocator a = AMP_ZERO;
    a.alloc_fn = hook_alloc;
    a.free_fn = hook_free;
    a.user = h;
    return a;
}
static amp_logger logger_of(hooks *h) {
    amp_logger l = AMP_ZERO;
    l.fn = hook_log;
    l.user = h;
    return l;
}

/* ---- creation ---- */

static amp_ctx *const junk = (amp_ctx *)(uintptr_t)8; /* outputs must not be left like this */

static void create_defaults(t_run *t) {
    amp_ctx *a = NULL, *b = NULL;
    amp_cpu_desc d = AMP_ZERO;
    CHECK_EQ(amp_cpu_create(&a, NULL), AMP_OK);
    CHECK_EQ(amp_cpu_create(&b, &d), AMP_OK);
    CHECK(a && b && a != b);
    CHECK(strncmp(amp_ctx_name(a), "cpu: ", 5) == 0);
    CHECK(strcmp(amp_ctx_name(a), amp_ctx_name(b)) == 0);
    CHECK(strstr(amp_ctx_name(a), "thread") != NULL);
    CHECK(strcmp(amp_last_error(a), "") == 0);
    amp_ctx_destroy(a);
    amp_ctx_destroy(b);
    amp_ctx_destroy(NULL);
    CHECK(strcmp(amp_last_error(NULL), "") == 0);
    CHECK(strcmp(amp_ctx_name(NULL), "") == 0); /* "never NULL" */
}

static void create_errors(t_run *t) {
    hooks h;
    amp_cpu_desc d = AMP_ZERO;
    amp_ctx *c = junk;
    memset(&h, 0, sizeof h);
    CHECK_EQ(amp_cpu_create(NULL, NULL), AMP_ERR_INVALID_ARG);
    d._begin = 1;
    CHECK_EQ(amp_cpu_create(&c, &d), AMP_ERR_UNINIT);
    CHECK(!c);
    d._begin = 0;
    d._end = 1;
    c = junk;
    CHECK_EQ(amp_cpu_create(&c, &d), AMP_ERR_UNINIT);
    CHECK(!c);
    d._end = 0;
    c = junk;
    CHECK_EQ(amp_cpu_create_checked(&c, AMP_VERSION + 1, sizeof d, &d), AMP_ERR_VERSION);
    CHECK(!c);
    c = junk;
    CHECK_EQ(amp_cpu_create_checked(&c, AMP_VERSION - 1, sizeof d, &d), AMP_ERR_VERSION);
    CHECK(!c);
    c = junk;
    CHECK_EQ(amp_cpu_create_checked(&c, AMP_VERSION, sizeof d + 8, &d), AMP_ERR_VERSION);
    CHECK(!c);
    c = junk;
    CHECK_EQ(amp_cpu_create_checked(&c, AMP_VERSION, sizeof d - 8, NULL), AMP_ERR_VERSION);
    CHECK(!c);
    c = junk;
    d.logger = logger_of(&h);
    CHECK_EQ(amp_cpu_create(NULL, &d), AMP_ERR_INVALID_ARG);
    CHECK(h.logs == 1 && strstr(h.text, "out") != NULL);
    h.logs = h.errors = 0;
    d.threads = -1;
    CHECK_EQ(amp_cpu_create(&c, &d), AMP_ERR_INVALID_ARG);
    CHECK(!c);
    c = junk;
    CHECK(h.logs == 1 && strstr(h.text, "threads") != NULL && strstr(h.text, "-1") != NULL);
    d.threads = 257;
    CHECK_EQ(amp_cpu_create(&c, &d), AMP_ERR_INVALID_ARG);
    CHECK(!c);
    c = junk;
    CHECK(strstr(h.text, "threads") != NULL && strstr(h.text, "257") != NULL);
    d.threads = 1;
    d.gemm_flags = 1024;
    CHECK_EQ(amp_cpu_create(&c, &d), AMP_ERR_INVALID_ARG);
    CHECK(!c);
    c = junk;
    CHECK(strstr(h.text, "gemm_flags") != NULL);
    d.gemm_flags = 0;
#ifndef __cplusplus
    d.simd = (amp_simd)9;
    CHECK_EQ(amp_cpu_create(&c, &d), AMP_ERR_INVALID_ARG);
    CHECK(!c);
    c = junk;
    CHECK(strstr(h.text, "simd") != NULL);
    d.simd = AMP_SIMD_AUTO;
#endif
    d.allocator.alloc_fn = hook_alloc;
    d.allocator.user = &h;
    CHECK_EQ(amp_cpu_create(&c, &d), AMP_ERR_INVALID_ARG);
    CHECK(!c);
    c = junk;
    CHECK(strstr(h.text, "allocator") != NULL);
    d.allocator.alloc_fn = NULL;
    d.allocator.free_fn = hook_free;
    CHECK_EQ(amp_cpu_create(&c, &d), AMP_ERR_INVALID_ARG);
    CHECK(!c);
    CHECK(h.errors == h.logs && h.status == AMP_ERR_INVALID_ARG && h.live == 0);
}

#ifndef T_NO_CUDA
/* With the stub, too: programs must not need an #ifdef. */
static void create_cuda(t_run *t) {
    hooks h;
    amp_cuda_desc d = AMP_ZERO;
    amp_ctx *c = junk;
    memset(&h, 0, sizeof h);
    d.logger = logger_of(&h);
    CHECK_EQ(amp_cuda_create(NULL, NULL), AMP_ERR_INVALID_ARG);
    CHECK_EQ(amp_cuda_create_checked(&c, AMP_VERSION + 1, sizeof d, &d), AMP_ERR_VERSION);
    CHECK(!c);
    c = junk;
    CHECK_EQ(amp_cuda_create_checked(&c, AMP_VERSION, sizeof d + 8, &d), AMP_ERR_VERSION);
    CHECK(!c);
    c = junk;
    d._end = 1;
    CHECK_EQ(amp_cuda_create(&c, &d), AMP_ERR_UNINIT);
    CHECK(!c);
    CHECK_EQ(h.logs, 0); /* the desc cannot be trusted */
    d._end = 0;
    d.device = 1000;
    c = junk;
    if (amp_cuda_available()) {
        CHECK_EQ(amp_cuda_create(&c, &d), AMP_ERR_INVALID_ARG);
        CHECK(strstr(h.text, "device") != NULL);
    } else {
        CHECK_EQ(amp_cuda_create(&c, &d), AMP_ERR_NO_CUDA);
        CHECK_EQ(amp_cuda_create(&c, NULL), AMP_ERR_NO_CUDA);
    }
    CHECK(!c);
    CHECK_EQ(h.errors, 1);
    CHECK(strstr(h.text, "amp_cuda_create") != NULL);
}
#endif

/* Does this processor have the path, by the compiler's own look at it? */
static int processor_is_known(void) { /* zig's library answers no to each question */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__TINYC__)
    return __builtin_cpu_supports("sse2");
#else
    return 1;
#endif
}
static int processor_has(amp_simd simd) {
#if defined(AMP_NO_SIMD) || defined(__TINYC__)
    return simd == AMP_SIMD_SCALAR;
#elif defined(__aarch64__) && defined(__AARCH64EL__)
    return simd == AMP_SIMD_SCALAR || simd == AMP_SIMD_NEON;
#elif defined(__x86_64__) && defined(__GNUC__)
#  ifdef HIDDEN_FROM /* tests/hide */
    if (simd >= HIDDEN_FROM) return 0;
#  endif
    if (simd == AMP_SIMD_AVX2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (simd == AMP_SIMD_AVX512)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    return simd == AMP_SIMD_SCALAR || simd == AMP_SIMD_SSE2;
#else
    return simd == AMP_SIMD_SCALAR;
#endif
}

static void create_simd(t_run *t) { /* a forced path is taken or refused, never replaced */
    static const struct {
        amp_simd simd;
        const char *name;
    } c[] = {{AMP_SIMD_SCALAR, "scalar"}, {AMP_SIMD_SSE2, "sse2"}, {AMP_SIMD_NEON, "neon"}, {AMP_SIMD_AVX2, "avx2"},
        {AMP_SIMD_AVX512, "avx512"}};
    size_t i;
    for (i = 0; i < 5; i++) {
        amp_ctx *ctx = junk;
        amp_status st = t_create_cpu(&ctx, c[i].simd, 1);
        t_note(t, "%s", c[i].name);
        if (processor_is_known()) CHECK_EQ(st, processor_has(c[i].simd) ? AMP_OK : AMP_ERR_UNSUPPORTED);
        CHECK(st == AMP_OK ? strstr(amp_ctx_name(ctx), c[i].name) != NULL : ctx == NULL);
        amp_ctx_destroy(st == AMP_OK ? ctx : NULL);
    }
}

static void create_many(t_run *t) { /* threads come and go; contexts are independent */
    amp_ctx *c[6];
    int i, round;
    for (round = 0; round < 5; round++) {
        for (i = 0; i < 6; i++) {
            CHECK_EQ(t_create_cpu(&c[i], AMP_SIMD_AUTO, i + 1), AMP_OK);
            t_note(t, "%d threads: %s", i + 1, amp_ctx_name(c[i]));
        }
        for (i = 5; i >= 0; i--)
            amp_ctx_destroy(c[(i + round) % 6]);
    }
}

/* ---- allocator: nothing leaks, whatever call fails ---- */

/* The error names the function that was called: the text of the call up to its parenthesis. */
static int names_function(const char *error, const char *call) {
    size_t n = strcspn(call, "(");
    return strncmp(error, call, n) == 0 && (error[n] == ':' || error[n] == '(' || error[n] == ' ');
}

/* Makes one call; if it fails for lack of memory, the call must say so, and must work when repeated. */
#define TRY(call) \
    do { \
        size_t failed_before = h.failed; \
        amp_status st_ = (call); \
        if (st_ != AMP_OK) { \
            t_check(t, st_ == AMP_ERR_NO_MEMORY && h.failed > failed_before, __FILE__, __LINE__, \
                "%s gives %d (allocation %lu failed)", #call, (int)st_, (unsigned long)h.fail_at); \
            t_check(t, !c || names_function(amp_last_error(c), #call), __FILE__, __LINE__, "%s: the error is \"%s\"", \
                #call, amp_last_error(c)); \
            st_ = (call); \
            t_check(t, st_ == AMP_OK, __FILE__, __LINE__, "%s, repeated, gives %d: %s", #call, (int)st_, \
                amp_last_error(c)); \
        } else \
            t_check(t, h.failed == failed_before, __FILE__, __LINE__, "%s hides a failed allocation", #call); \
        if (st_ != AMP_OK) goto out; \
    } while (0)

/* One life of a context with everything that allocates. Returns the number of allocations. */
static size_t one_life(t_run *t, size_t fail_at, const char *file) {
    hooks h;
    amp_ctx *c = NULL;
    amp_params *p = NULL;
    amp_params *set[1];
    amp_scaler *s = NULL;
    amp_scaler *scalers[1];
    amp_param_desc pd = AMP_ZERO;
    amp_step_desc sd = AMP_ZERO;
    amp_state_desc state = AMP_ZERO;
    amp_finite_report report;
    amp_histogram hist;
    amp_array list[2];
    float w[64];
    void *m = NULL, *m2 = NULL;
    amp_allocator allocator;
    amp_logger logger;
    int i;
    memset(&h, 0, sizeof h);
    h.fail_at = fail_at;
    h.fail_for = 1;
    allocator = allocator_of(&h);
    logger = logger_of(&h);
    t_note(t, "allocation %d fails", (int)fail_at);
    for (i = 0; i < 64; i++)
        w[i] = (float)i;
    TRY(t_create(t->place, &c, &allocator, &logger));
    TRY(amp_alloc(c, &m, 1000, "mine"));
    TRY(amp_alloc(c, &m2, 1, NULL));
    TRY(amp_params_create(&p, c, NULL));
    pd.name = "weight";
    pd.count = 64;
    pd.init = w;
    TRY(amp_params_add(p, &pd));
    for (i = 0; i < 20; i++) { /* lists inside the set must grow */
        pd.name = NULL;
        pd.count = (size_t)i + 1;
        pd.init = NULL;
        TRY(amp_params_add(p, &pd));
    }
    TRY(amp_params_commit(p));
    CHECK_EQ(amp_params_count(p), 21);
    TRY(amp_scaler_create(&s, c, NULL));
    sd.lr = 0.5f;
    { /* verbs of a step allocate nothing */
        size_t before = h.calls;
        TRY(amp_cast(c, amp_arr(m, AMP_F16), amp_arr(w, AMP_F32), 64, NULL));
        list[0] = amp_param_grad(p, 0);
        list[1] = amp_arrn(w, AMP_F32, 64);
        TRY(amp_all_finite(c, &report, list, 2));
        TRY(amp_histogram_count(c, &hist, list, 2));
        TRY(amp_step(p, s, &sd));
        TRY(amp_params_master_to_model(p));
        TRY(amp_params_zero_grad(p));
        TRY(amp_unscale(s, NULL, &report, list, 1));
        TRY(amp_scaler_update(s));
        CHECK_EQ(h.calls, before);
    }
    set[0] = p;
    scalers[0] = s;
    state.params = set;
    state.n_params = 1;
    state.scalers = scalers;
    state.n_scalers = 1;
    state.user = w;
    state.user_bytes = sizeof w;
    TRY(amp_state_save(c, file, &state));
    TRY(amp_state_load(c, file, &state));
    TRY(amp_free(c, m));
    m = NULL;
out:
    amp_scaler_destroy(s);
    amp_params_destroy(p);
    if (c) amp_free(c, m2);
    if (c && m) amp_free(c, m);
    if (c) CHECK_EQ(t_ledger(c, "total").bytes, 0);
    amp_ctx_destroy(c);
    CHECK_EQ(h.live, 0);
    CHECK_EQ(h.live_bytes, 0);
    CHECK_EQ(h.wrong_frees, 0);
    CHECK_EQ(h.warnings, 0);
    if (fail_at) CHECK(h.failed == 1 || h.calls < fail_at);
    return h.calls;
}

static void allocation_failures(t_run *t) {
    const char *file = t_file("alloc.state");
    size_t calls = one_life(t, 0, file), k;
    CHECK(calls > 5 && calls < MAX_ROWS);
    for (k = 1; k <= calls; k++)
        one_life(t, k, file);
}
/* No memory for workspaces: of fewer threads, if their number is the library's choice; else the sentence says so. */
static void no_workspaces(t_run *t) {
    hooks h;
    amp_cpu_desc d = AMP_ZERO;
    amp_ctx *c = NULL;
    int given = 0, there = 0;
    for (d.threads = 0; d.threads <= 4; d.threads += 4) {
        memset(&h, 0, sizeof h);
        h.fail_at = 2; /* the first is the backend's own */
        h.fail_for = MAX_ROWS;
        d.allocator = allocator_of(&h);
        d.logger = logger_of(&h);
        CHECK_EQ(amp_cpu_create(&c, &d), AMP_ERR_NO_MEMORY);
        CHECK(!c && h.live == 0 && h.errors == 1 && strstr(h.text, "no memory for desc.threads workspaces"));
    }
    h.fail_for = 1;
    h.calls = 0;
    CHECK_EQ(amp_cpu_create(&c, &d), AMP_ERR_NO_MEMORY);
    CHECK(!c && h.live == 0 && strstr(h.text, "no memory for desc.threads workspaces"));
    d.threads = 0;
    memset(&h, 0, sizeof h);
    CHECK_EQ(amp_cpu_create(&c, &d), AMP_OK); /* it is told when the system gives fewer than there are processors */
    if (h.warnings)
        CHECK(
            sscanf(h.text, "amp_cpu_create: the system gives %d threads of %d", &given, &there) == 2 && given < there);
    amp_ctx_destroy(c);
    CHECK_EQ(h.live, 0);
}

static void destroyed_with_leftovers(t_run *t) { /* freed all the same, with a warning */
    hooks h;
    amp_scaler *s = NULL;
    amp_allocator a;
    amp_logger l;
    amp_ctx *c = NULL;
    void *p = NULL;
    memset(&h, 0, sizeof h);
    a = allocator_of(&h);
    l = logger_of(&h);
    CHECK_EQ(t_create(t->place, &c, &a, &l), AMP_OK);
    if (!c) return;
    CHECK_EQ(amp_alloc(c, &p, 12345, "forgotten"), AMP_OK);
    CHECK_EQ(amp_alloc(c, &p, 5, NULL), AMP_OK);
    CHECK_EQ(amp_scaler_create(&s, c, NULL), AMP_OK);
    CHECK_EQ(h.warnings, 0);
    amp_ctx_destroy(c);
    CHECK_EQ(h.warnings, 3); /* the scaler, two blocks */
    CHECK(strstr(h.text, "12350") != NULL || strstr(h.text, "forgotten") != NULL || strstr(h.text, "user") != NULL ||
        strstr(h.text, "2") != NULL);
    CHECK_EQ(h.live, 0);
    CHECK_EQ(h.wrong_frees, 0);
}

static void logger_gets_the_sentence(t_run *t) {
    hooks h;
    amp_logger l;
    amp_ctx *c = NULL;
    void *p = NULL;
    memset(&h, 0, sizeof h);
    l = logger_of(&h);
    CHECK_EQ(t_create(t->place, &c, NULL, &l), AMP_OK);
    if (!c) return;
    CHECK_EQ(h.errors, 0);
    CHECK_EQ(amp_cast(c, amp_arr(NULL, AMP_F16), amp_arr(&h, AMP_F32), 3, NULL), AMP_ERR_INVALID_ARG);
    CHECK_EQ(h.errors, 1);
    CHECK_EQ(h.status, AMP_ERR_INVALID_ARG);
    CHECK(strcmp(h.text, amp_last_error(c)) == 0);
    CHECK(strstr(h.text, "amp_cast") && strstr(h.text, "dst"));
    CHECK_EQ(amp_alloc(c, &p, 10, NULL), AMP_OK); /* success keeps the last error */
    CHECK(strcmp(h.text, amp_last_error(c)) == 0);
    CHECK_EQ(amp_free(c, p), AMP_OK);
    CHECK_EQ(amp_free(c, &h), AMP_ERR_INVALID_ARG);
    CHECK_EQ(h.errors, 2);
    CHECK(strcmp(h.text, amp_last_error(c)) == 0 && strstr(h.text, "amp_free"));
    amp_ctx_destroy(c);
    CHECK_EQ(h.warnings, 0);
}

static void default_allocator_is_quiet(t_run *t) { /* no hooks at all: everything still works */
    one_life(t, 0, t_file("alloc.state"));
}

/* Weights without FP32 masters are brought into place through host memory; where none are given, none is taken. */
static void staged(t_run *t) {
    size_t calls[2];
    float w[100];
    int i;
    for (i = 0; i < 100; i++)
        w[i] = (float)i;
    for (i = 0; i < 2; i++) {
        hooks h;
        amp_allocator a;
        amp_ctx *c = NULL;
        amp_params *p = NULL;
        amp_params_desc set = AMP_ZERO;
        amp_param_desc d = AMP_ZERO;
        memset(&h, 0, sizeof h);
        a = allocator_of(&h);
        CHECK_EQ(t_create(t->place, &c, &a, NULL), AMP_OK);
        if (!c) return;
        set.master = AMP_MASTER_SPLIT;
        CHECK_EQ(amp_params_create(&p, c, &set), AMP_OK);
        d.init = i ? w : NULL;
        d.count = 100;
        CHECK_EQ(amp_params_add(p, &d), AMP_OK);
        calls[i] = h.calls;
        CHECK_EQ(amp_params_commit(p), AMP_OK);
        calls[i] = h.calls - calls[i];
        amp_params_destroy(p);
        amp_ctx_destroy(c);
        CHECK_EQ(h.live, 0);
    }
    CHECK_EQ(calls[1], calls[0] + 1);
}

/* The lists of parameters, of their names and of allocations double when they are full: few copies of an element. */
static void lists_double(t_run *t) {
    enum { LISTED = 400 };
    hooks h;
    amp_allocator a;
    amp_ctx *c = NULL;
    amp_params *p = NULL;
    amp_param_desc d = AMP_ZERO;
    void *blocks[LISTED];
    size_t i, before;
    memset(&h, 0, sizeof h);
    a = allocator_of(&h);
    CHECK_EQ(t_create(t->place, &c, &a, NULL), AMP_OK);
    if (!c) return;
    CHECK_EQ(amp_params_create(&p, c, NULL), AMP_OK);
    d.count = 3;
    before = h.calls;
    for (i = 0; i < LISTED; i++)
        CHECK_EQ(amp_params_add(p, &d), AMP_OK);
    CHECK(h.calls - before >= LISTED && h.calls - before < LISTED + 20); /* a name for each; 8 ... 512, 16 ... 1024 */
    before = h.calls;
    for (i = 0; i < LISTED; i++)
        CHECK_EQ(amp_alloc(c, &blocks[i], 16, "one of many"), AMP_OK);
    CHECK(h.calls - before < LISTED + 10);
    for (i = 0; i < LISTED; i++)
        CHECK_EQ(amp_free(c, blocks[i]), AMP_OK);
    amp_params_destroy(p);
    amp_ctx_destroy(c);
    CHECK_EQ(h.live, 0);
    CHECK_EQ(h.wrong_frees, 0);
}

/* Large blocks begin at different places of a page, even if the allocator gives whole pages: what an update reads and
   writes at the same index of four of them does not meet in one set of a cache. */
static void *pages_alloc(size_t bytes, void *user) {
    char *raw = (char *)malloc(bytes + 4096 + sizeof raw), *p;
    (void)user;
    if (!raw) return NULL;
    p = raw + sizeof raw;
    p += (4096 - (uintptr_t)p % 4096) % 4096;
    memcpy(p - sizeof raw, &raw, sizeof raw);
    return p;
}
static void pages_free(void *p, size_t bytes, void *user) {
    char *raw;
    (void)bytes;
    (void)user;
    memcpy(&raw, (char *)p - sizeof raw, sizeof raw);
    free(raw);
}
static void blocks_apart(t_run *t) {
    enum { BLOCKS = 16 };
    amp_allocator a = AMP_ZERO;
    amp_ctx *c = NULL;
    void *blocks[BLOCKS];
    int i, j;
    a.alloc_fn = pages_alloc;
    a.free_fn = pages_free;
    CHECK_EQ(t_create(t->place, &c, &a, NULL), AMP_OK);
    if (!c) return;
    for (i = 0; i < BLOCKS; i++) {
        CHECK_EQ(amp_alloc(c, &blocks[i], 65536, "large"), AMP_OK);
        for (j = 0; j < i; j++)
            CHECK((uintptr_t)blocks[i] % 4096 != (uintptr_t)blocks[j] % 4096);
    }
    for (i = 0; i < BLOCKS; i++)
        CHECK_EQ(amp_free(c, blocks[i]), AMP_OK);
    amp_ctx_destroy(c);
}

/* ---- memory ---- */

static void memory(t_run *t) {
    void *p[20], *q = &q;
    unsigned char host[300], back[300];
    size_t i;
    for (i = 0; i < 20; i++) {
        p[i] = NULL;
        CHECK_OK(amp_alloc(t->ctx, &p[i], i * 17 + 1, NULL));
        CHECK(p[i] != NULL && (uintptr_t)p[i] % 256 == 0);
    }
    for (i = 1; i < 20; i++)
        CHECK(p[i] != p[i - 1]);
    for (i = 0; i < 20; i++)
        CHECK_OK(amp_free(t->ctx, p[(i * 7) % 20]));
    CHECK_OK(amp_alloc(t->ctx, &q, 0, NULL));
    CHECK(q == NULL);
    CHECK_OK(amp_free(t->ctx, NULL));
    t_fill_bits(t, host, sizeof host);
    CHECK_OK(amp_alloc(t->ctx, &q, 300, NULL));
    CHECK_OK(amp_copy(t->ctx, q, host, 300));
    CHECK_OK(amp_copy(t->ctx, back, q, 300));
    CHECK_BITS(back, host, 300, 1);
    CHECK_OK(amp_copy(t->ctx, (char *)q + 3, (char *)q + 150, 7)); /* inside context memory */
    memcpy(host + 3, host + 150, 7);
    CHECK_OK(amp_copy(t->ctx, back, q, 300));
    CHECK_BITS(back, host, 300, 1);
    CHECK_OK(amp_zero(t->ctx, (char *)q + 5, 101));
    memset(host + 5, 0, 101);
    CHECK_OK(amp_copy(t->ctx, back, q, 300));
    CHECK_BITS(back, host, 300, 1);
    memset(back, 1, 300);
    CHECK_OK(amp_copy(t->ctx, back, host, 300)); /* host to host */
    CHECK_BITS(back, host, 300, 1);
    CHECK_OK(amp_copy(t->ctx, NULL, NULL, 0));
    CHECK_OK(amp_copy_async(t->ctx, (char *)q + 200, (char *)q + 20, 90));
    CHECK_OK(amp_copy_async(t->ctx, (char *)q + 1, (char *)q + 205, 50)); /* what the first one wrote */
    memcpy(host + 200, host + 20, 90);
    memcpy(host + 1, host + 205, 50);
    CHECK_OK(amp_copy(t->ctx, back, q, 300));
    CHECK_BITS(back, host, 300, 1);
    CHECK_OK(amp_copy_async(t->ctx, NULL, NULL, 0));
    CHECK_OK(amp_zero(t->ctx, NULL, 0));
    CHECK_OK(amp_sync(t->ctx));
    CHECK_OK(amp_free(t->ctx, q));
}

static void memory_errors(t_run *t) {
    void *p = NULL, *big = &big, *scale;
    const float *pointer;
    amp_scaler *s = NULL;
    char host[8] = {0};
    CHECK_OK(amp_alloc(t->ctx, &p, 1000, "x"));
    CHECK_EQ(amp_alloc(NULL, &big, 8, NULL), AMP_ERR_INVALID_ARG);
    CHECK_STATUS(amp_alloc(t->ctx, NULL, 8, NULL), AMP_ERR_INVALID_ARG, "amp_alloc out");
    big = &big;
    CHECK_STATUS(amp_alloc(t->ctx, &big, (size_t)-1, NULL), AMP_ERR_NO_MEMORY, "amp_alloc");
    CHECK(big == NULL);
    big = &big;
    CHECK_STATUS(amp_alloc(t->ctx, &big, (size_t)-1 / 2, NULL), AMP_ERR_NO_MEMORY, "amp_alloc");
    CHECK(big == NULL);
    CHECK_STATUS(amp_free(t->ctx, host), AMP_ERR_INVALID_ARG, "amp_free ptr");
    CHECK_STATUS(amp_free(t->ctx, (char *)p + 256), AMP_ERR_INVALID_ARG, "amp_free ptr");
    CHECK_EQ(amp_free(NULL, p), AMP_ERR_INVALID_ARG);
    CHECK_OK(amp_free(t->ctx, p));
    CHECK_STATUS(amp_free(t->ctx, p), AMP_ERR_INVALID_ARG, "amp_free ptr"); /* twice */
    CHECK_OK(amp_scaler_create(&s, t->ctx, NULL));
    pointer = amp_scaler_scale_ptr(s);
    memcpy(&scale, &pointer, sizeof scale);                                     /* without its const */
    CHECK_STATUS(amp_free(t->ctx, scale), AMP_ERR_INVALID_ARG, "amp_free ptr"); /* the scaler's */
    amp_scaler_destroy(s);
    CHECK_STATUS(amp_alloc(t->ctx, &p, 256, "total"), AMP_ERR_INVALID_ARG, "amp_alloc label total");
    CHECK_STATUS(amp_copy(t->ctx, NULL, host, 8), AMP_ERR_INVALID_ARG, "amp_copy dst");
    CHECK_STATUS(amp_copy(t->ctx, host, NULL, 8), AMP_ERR_INVALID_ARG, "amp_copy src");
    CHECK_STATUS(amp_copy_async(t->ctx, NULL, host, 8), AMP_ERR_INVALID_ARG, "amp_copy_async dst");
    CHECK_STATUS(amp_copy_async(t->ctx, host, NULL, 8), AMP_ERR_INVALID_ARG, "amp_copy_async src");
    CHECK_EQ(amp_copy_async(NULL, host, host, 8), AMP_ERR_INVALID_ARG);
    CHECK_STATUS(amp_zero(t->ctx, NULL, 8), AMP_ERR_INVALID_ARG, "amp_zero dst");
    CHECK_EQ(amp_copy(NULL, host, host, 8), AMP_ERR_INVALID_ARG);
    CHECK_EQ(amp_zero(NULL, host, 8), AMP_ERR_INVALID_ARG);
    CHECK_EQ(amp_sync(NULL), AMP_ERR_INVALID_ARG);
}

static void ledger(t_run *t) {
    amp_ledger_row all[20], found;
    void *a = NULL, *b = NULL, *c = NULL, *d = NULL;
    uint64_t base = t_ledger(t->ctx, "total").bytes, sum = 0;
    size_t i, n;
    CHECK_OK(amp_alloc(t->ctx, &a, 1000, "alpha"));
    CHECK_OK(amp_alloc(t->ctx, &b, 500, "alpha"));
    CHECK_OK(amp_alloc(t->ctx, &c, 70, "beta"));
    CHECK_OK(amp_alloc(t->ctx, &d, 3, NULL));
    found = t_ledger(t->ctx, "alpha");
    CHECK(strcmp(found.label, "alpha") == 0);
    CHECK_EQ(found.bytes, 1500);
    CHECK_EQ(found.peak, 1500);
    CHECK_EQ(t_ledger(t->ctx, "beta").bytes, 70);
    CHECK_EQ(t_ledger(t->ctx, "user").bytes, 3);
    CHECK_EQ(t_ledger(t->ctx, "total").bytes, base + 1573);
    CHECK_OK(amp_free(t->ctx, a));
    CHECK_EQ(t_ledger(t->ctx, "alpha").bytes, 500);
    CHECK_EQ(t_ledger(t->ctx, "alpha").peak, 1500);
    CHECK_OK(amp_alloc(t->ctx, &a, 600, "alpha"));
    CHECK_EQ(t_ledger(t->ctx, "alpha").bytes, 1100);
    CHECK_EQ(t_ledger(t->ctx, "alpha").peak, 1500);
    CHECK_EQ(t_ledger(t->ctx, "total").peak, base + 1573);
    found = t_ledger(t->ctx, "nobody");
    CHECK(found.bytes == 0 && found.peak == 0 && found.label[0] == 0);
    t_note(t, "one label");
    CHECK_EQ(amp_ledger(t->ctx, &found, 1, "nobody"), 0);
    CHECK_EQ(amp_ledger(t->ctx, &found, 1, "beta"), 1);
    CHECK(strcmp(found.label, "beta") == 0);
    CHECK_EQ(amp_ledger(t->ctx, NULL, 0, "beta"), 1);
    t_note(t, "all of them");
    n = amp_ledger(t->ctx, NULL, 0, NULL);
    CHECK(n >= 4 && n < 20);
    CHECK_EQ(amp_ledger(t->ctx, NULL, 7, NULL), n);
    CHECK_EQ(amp_ledger(t->ctx, all, 20, NULL), n);
    CHECK(strcmp(all[0].label, "total") == 0);
    CHECK_EQ(all[0].bytes, base + 1173);
    for (i = 1; i < n; i++)
        sum += all[i].bytes;
    CHECK_EQ(sum, base + 1173); /* the labels add up to the total */
    t_note(t, "no more than there is room for");
    memset(all, 0x77, sizeof all);
    CHECK_EQ(amp_ledger(t->ctx, all, 2, NULL), n);
    CHECK(strcmp(all[0].label, "total") == 0);
    CHECK(all[1].label[0] != 0x77);
    CHECK_EQ(all[2].label[0], 0x77);
    CHECK_EQ(amp_ledger(NULL, all, 20, NULL), 0);
    CHECK_OK(amp_free(t->ctx, a));
    CHECK_OK(amp_free(t->ctx, b));
    CHECK_OK(amp_free(t->ctx, c));
    CHECK_OK(amp_free(t->ctx, d));
    CHECK_EQ(t_ledger(t->ctx, "alpha").bytes, 0);
    CHECK_EQ(t_ledger(t->ctx, "alpha").peak, 1500);
    CHECK_EQ(t_ledger(t->ctx, "total").bytes, base);
}

static void ledger_many_labels(t_run *t) { /* whatever the number of labels, the sums hold */
    void *p[80];
    char label[40];
    amp_ledger_row all[100];
    uint64_t base = t_ledger(t->ctx, "total").bytes, sum = 0;
    size_t i, n;
    for (i = 0; i < 80; i++) {
        snprintf(label, sizeof label, "a label of 31 characters, nr %02d", (int)i);
        CHECK_EQ(strlen(label), 31);
        CHECK_OK(amp_alloc(t->ctx, &p[i], 100 + i, label));
        CHECK_EQ(t_ledger(t->ctx, label).bytes, 100 + i);
    }
    n = amp_ledger(t->ctx, all, 100, NULL);
    CHECK(n > 80 && n < 100);
    for (i = 1; i < n && i < 100; i++)
        sum += all[i].bytes;
    CHECK_EQ(sum, base + 80 * 100 + 80 * 79 / 2);
    for (i = 0; i < 80; i++)
        CHECK_OK(amp_free(t->ctx, p[i]));
    CHECK_EQ(t_ledger(t->ctx, "total").bytes, base);
}

static void many_allocations(t_run *t) { /* the book of allocations grows */
    void *p[500];
    size_t i;
    for (i = 0; i < 500; i++) {
        p[i] = NULL;
        CHECK_OK(amp_alloc(t->ctx, &p[i], 16, "many"));
    }
    for (i = 0; i < 500; i++)
        CHECK_OK(amp_free(t->ctx, p[(i * 263) % 500]));
    CHECK_EQ(t_ledger(t->ctx, "many").bytes, 0);
}

static void names(t_run *t) {
    const char *kind = t->place->kind == T_KIND_CUDA ? "cuda: " : "cpu: ";
    CHECK(strncmp(amp_ctx_name(t->ctx), kind, strlen(kind)) == 0);
    CHECK(strlen(amp_ctx_name(t->ctx)) > strlen(kind));
#ifndef AMP_NO_THREADS
    if (t->place->kind == T_KIND_CPU) {
        char want[32];
        snprintf(want, sizeof want, ", %d thread", (int)t->place->threads);
        CHECK(strstr(amp_ctx_name(t->ctx), want) != NULL);
    }
#endif
}

/* ---- a backend of our own: host memory, and a switch that says "this stream is being captured" ---- */

typedef struct toy {
    amp_status wait;
    size_t destroyed, blocks, scaler_updates;
    size_t leaves, refuse_leave; /* which of them fails; 0: none */
} toy;

static toy *toy_of(amp_ctx *c) { return (toy *)amp_ctx_self(c); }
static void toy_destroy(amp_ctx *c) { toy_of(c)->destroyed++; }
static amp_status toy_alloc(amp_ctx *c, void **out, size_t bytes) {
    *out = malloc(bytes);
    if (!*out) return amp_fail(c, AMP_ERR_NO_MEMORY, "toy: no %lu bytes", (unsigned long)bytes);
    toy_of(c)->blocks++;
    return AMP_OK;
}
static void toy_release(amp_ctx *c, void *p, size_t bytes) {
    (void)bytes;
    toy_of(c)->blocks--;
    free(p);
}
static amp_status toy_copy(amp_ctx *c, void *dst, const void *src, size_t bytes) {
    (void)c;
    memmove(dst, src, bytes);
    return AMP_OK;
}
static amp_status toy_zero(amp_ctx *c, void *dst, size_t bytes) {
    (void)c;
    memset(dst, 0, bytes);
    return AMP_OK;
}
static amp_status toy_sync(amp_ctx *c) {
    (void)c;
    return AMP_OK;
}
static amp_status toy_leave(amp_ctx *c, amp_status status) {
    toy *own = toy_of(c);
    if (++own->leaves != own->refuse_leave || status != AMP_OK) return status;
    return amp_fail(c, AMP_ERR_CUDA, "toy: no way back");
}
static const char toy_captured[] =
    "toy: the stream is being captured; and a sentence that is as long as a context can keep loses its "
    "end when the name of a verb comes before it: .........1.........2.........3.........4.........5......"
    "...6.........7.........8.........9........10........11........12........13........14........15........16..";
static amp_status toy_may_wait(amp_ctx *c) {
    return toy_of(c)->wait == AMP_OK ? AMP_OK : amp_fail(c, toy_of(c)->wait, "%s", toy_captured);
}
static amp_status toy_cast(amp_ctx *c, amp_array d, amp_array s, size_t n, const amp_cast_desc *o) {
    (void)c;
    (void)d;
    (void)s;
    (void)n;
    (void)o;
    return AMP_OK;
}
static amp_status toy_finite(
    amp_ctx *c, const amp_array *dst, const amp_array *a, size_t n, amp_scaler_state *s, amp_finite_report *r) {
    (void)c;
    (void)dst;
    (void)a;
    (void)n;
    (void)s;
    if (r) memset(r, 0, sizeof *r);
    return AMP_OK;
}
static amp_status toy_histogram(amp_ctx *c, const amp_array *a, size_t n, amp_histogram *h) {
    (void)c;
    (void)a;
    (void)n;
    (void)h;
    return AMP_OK;
}
static amp_status toy_inspect(amp_ctx *c, const amp_inspect_job *j) {
    (void)c;
    (void)j;
    return AMP_OK;
}
static amp_status toy_sum_gradients(amp_ctx *c, const amp_sum_job *j) {
    (void)c;
    (void)j;
    return AMP_OK;
}
static amp_status toy_apply(amp_ctx *c, const amp_apply_job *j) {
    (void)c;
    (void)j;
    return AMP_OK;
}
static amp_status toy_set_record(amp_ctx *c, amp_step_record *r, amp_step_mirror *m, const amp_step_record *host) {
    (void)c;
    (void)m;
    *r = *host;
    return AMP_OK;
}
static amp_status toy_update(amp_ctx *c, const amp_update_job *j) {
    (void)c;
    (void)j;
    return AMP_OK;
}
static amp_status toy_add(amp_ctx *c, const amp_add_job *j) {
    (void)c;
    (void)j;
    return AMP_OK;
}
static amp_status toy_mirror_create(amp_ctx *c, amp_step_mirror **out) {
    (void)c;
    *out = NULL;
    return AMP_OK;
}
static void toy_mirror_destroy(amp_ctx *c, amp_step_mirror *m) {
    (void)c;
    (void)m;
}
static amp_status toy_poll(amp_ctx *c, const amp_step_record *r, const amp_step_mirror *m, amp_step_record *out) {
    (void)c;
    (void)m;
    *out = *r;
    return AMP_OK;
}
static amp_status toy_clip(amp_ctx *c, const amp_clip_job *j) {
    (void)c;
    (void)j;
    return AMP_OK;
}
static amp_status toy_next_scale(amp_ctx *c, amp_scaler_state *s) {
    toy_of(c)->scaler_updates++;
    amp_scaler_next(s);
    return AMP_OK;
}
static amp_status toy_gemm(amp_ctx *c, const amp_gemm_job *j) {
    (void)c;
    (void)j;
    return AMP_OK;
}
static amp_status toy_gemm_explain(amp_ctx *c, char *text, size_t bytes, const amp_gemm_job *j) {
    (void)c;
    (void)j;
    snprintf(text, bytes, "toy");
    return AMP_OK;
}
static amp_status toy_bias_grad(amp_ctx *c, const amp_bias_grad_job *j) {
    (void)c;
    (void)j;
    return AMP_OK;
}
static amp_status toy_xent(amp_ctx *c, const amp_xent_job *j) {
    (void)c;
    (void)j;
    return AMP_OK;
}

static amp_backend toy_table(void) {
    amp_backend b;
    memset(&b, 0, sizeof b);
    b.version = AMP_VERSION;
    b.size = sizeof b;
    b.name = "toy: a toy";
    b.destroy = toy_destroy;
    b.alloc = toy_alloc;
    b.release = toy_release;
    b.copy = toy_copy;
    b.copy_async = toy_copy;
    b.zero = toy_zero;
    b.sync = toy_sync;
    b.may_wait = toy_may_wait;
    b.cast = toy_cast;
    b.finite = toy_finite;
    b.histogram = toy_histogram;
    b.sum_gradients = toy_sum_gradients;
    b.conclude = toy_inspect;
    b.inspect = toy_inspect;
    b.update = toy_update;
    b.apply = toy_apply;
    b.add = toy_add;
    b.mirror_create = toy_mirror_create;
    b.mirror_destroy = toy_mirror_destroy;
    b.poll = toy_poll;
    b.set_record = toy_set_record;
    b.clip = toy_clip;
    b.next_scale = toy_next_scale;
    b.gemm = toy_gemm;
    b.gemm_explain = toy_gemm_explain;
    b.bias_grad = toy_bias_grad;
    b.xent = toy_xent;
    return b;
}

static void backend_table(t_run *t) {
    amp_backend b = toy_table(), bad;
    toy own = AMP_ZERO;
    hooks h;
    amp_allocator a;
    amp_logger l;
    amp_ctx *c = junk;
    memset(&h, 0, sizeof h);
    a = allocator_of(&h);
    l = logger_of(&h);
    CHECK_EQ(amp_ctx_create_backend(NULL, &b, &own, NULL, NULL), AMP_ERR_INVALID_ARG);
    CHECK_EQ(amp_ctx_create_backend(&c, NULL, &own, NULL, NULL), AMP_ERR_INVALID_ARG);
    CHECK(!c);
    c = junk;
    bad = b;
    bad.version++;
    CHECK_EQ(amp_ctx_create_backend(&c, &bad, &own, NULL, NULL), AMP_ERR_VERSION);
    CHECK(!c);
    c = junk;
    bad = b;
    bad.size -= 8;
    CHECK_EQ(amp_ctx_create_backend(&c, &bad, &own, NULL, NULL), AMP_ERR_VERSION);
    CHECK(!c);
    c = junk;
    h.fail_at = 1;
    h.fail_for = 1;
    CHECK_EQ(amp_ctx_create_backend(&c, &b, &own, &a, &l), AMP_ERR_NO_MEMORY);
    CHECK(!c);
    CHECK_EQ(own.destroyed, 0); /* creation failed: self stays the caller's */
    CHECK_EQ(amp_ctx_create_backend(&c, &b, &own, &a, &l), AMP_OK);
    if (!c) return;
    CHECK(amp_ctx_self(c) == &own && strcmp(amp_ctx_name(c), "toy: a toy") == 0);
    CHECK_EQ(amp_fail(c, AMP_ERR_CUDA, "toy: %s %d", "failed", 7), AMP_ERR_CUDA);
    CHECK(strcmp(amp_last_error(c), "toy: failed 7") == 0 && strcmp(h.text, "toy: failed 7") == 0 &&
        h.status == AMP_ERR_CUDA && h.errors == 1);
    { /* a message of any length is cut, not overrun */
        char text[3000];
        memset(text, 'm', sizeof text);
        text[sizeof text - 1] = 0;
        CHECK_EQ(amp_fail(c, AMP_ERR_CUDA, "toy: %s", text), AMP_ERR_CUDA);
        CHECK(strncmp(amp_last_error(c), "toy: mmm", 8) == 0 && strlen(amp_last_error(c)) < sizeof text);
    }
    amp_log_event(c, AMP_LOG_INFO, "toy: %d", 8);
    CHECK(strcmp(h.text, "toy: 8") == 0 && h.errors == 2);
    amp_ctx_destroy(c);
    CHECK_EQ(own.destroyed, 1);
    CHECK(h.live == 0 && h.wrong_frees == 0);
}

/* The least that is a backend: memory, and a plain cast that rounds as the CPU's does. amp.h knows nothing of it. */
static amp_status least_cast(amp_ctx *c, amp_array d, amp_array s, size_t n, const amp_cast_desc *o) {
    size_t i;
    (void)c;
    for (i = 0; i < n; i++) {
        uint32_t r = o->rounding == AMP_STOCHASTIC ? amp_random(o->seed, o->stream, o->offset + i) : 0;
        uint32_t x = ampi_load_bits(s.data, s.dtype, i);
        ampi_store_pattern(d.data, d.dtype, i, ampi_encode_any(x, d.dtype, o->rounding, r, (int)o->saturate));
    }
    return AMP_OK;
}
static amp_backend least_table(void) {
    amp_backend b = AMP_ZERO;
    b.version = AMP_VERSION;
    b.size = sizeof b;
    b.name = "least: plain C";
    b.destroy = toy_destroy;
    b.alloc = toy_alloc;
    b.release = toy_release;
    b.copy = toy_copy;
    b.copy_async = toy_copy;
    b.zero = toy_zero;
    b.sync = toy_sync;
    b.may_wait = toy_may_wait;
    b.cast = least_cast;
    return b;
}
static void least_casts(t_run *t, amp_ctx *c) {
    float x[100], back[100];
    uint16_t got[100], want[100];
    amp_cast_desc o = AMP_ZERO;
    void *m = NULL;
    int i;
    for (i = 0; i < 100; i++)
        x[i] = t_range(t, -20, 20);
    o.rounding = AMP_STOCHASTIC;
    o.seed = 5;
    CHECK_OK(amp_alloc(c, &m, 200, "numbers"));
    CHECK_OK(amp_zero(c, m, 200));
    CHECK_OK(amp_cast(c, amp_arr(m, AMP_F16), amp_arr(x, AMP_F32), 100, &o));
    CHECK_OK(amp_cast(c, amp_arr(back, AMP_F32), amp_arr(m, AMP_F16), 100, NULL));
    CHECK_OK(amp_copy(c, got, m, sizeof got));
    for (i = 0; i < 100; i++) {
        want[i] = amp_f16_from_f32_sr(x[i], amp_random(5, 0, (uint64_t)i)).bits;
        CHECK_EQ(got[i], want[i]);
        CHECK_F32(back[i], amp_load(want, AMP_F16, (size_t)i));
    }
    CHECK_OK(amp_free(c, m));
}
static void least_refuses(t_run *t, amp_ctx *c) { /* what has no entry says so, and nothing is called */
    float x[4] = {1, 2, 3, 4};
    int32_t label = 1;
    amp_array a = amp_arrn(x, AMP_F32, 4);
    amp_params *p = NULL;
    amp_scaler *s = NULL;
    amp_fp8 *f = NULL;
    amp_finite_report report;
    amp_histogram h;
    amp_gemm_desc g = AMP_ZERO;
    amp_linear_desc l = AMP_ZERO;
    amp_xent_desc e = AMP_ZERO;
    amp_dropout_desc d = AMP_ZERO;
    amp_activation_desc n = AMP_ZERO;
    char text[64];
    CHECK_STATUS(amp_all_finite(c, &report, &a, 1), AMP_ERR_UNSUPPORTED, "amp_all_finite least no finite");
    CHECK_STATUS(amp_histogram_count(c, &h, &a, 1), AMP_ERR_UNSUPPORTED, "amp_histogram_count no histogram");
    CHECK_STATUS(amp_params_create(&p, c, NULL), AMP_ERR_UNSUPPORTED, "amp_params_create no inspect");
    CHECK_STATUS(amp_scaler_create(&s, c, NULL), AMP_ERR_UNSUPPORTED, "amp_scaler_create no next_scale");
    CHECK(!p && !s);
    g.m = g.n = 2;
    g.k = 1;
    g.a = g.b = amp_arr(x, AMP_F32);
    g.d = amp_arr(text, AMP_F16);
    CHECK_STATUS(amp_gemm(c, &g), AMP_ERR_UNSUPPORTED, "amp_gemm no gemm");
    CHECK_STATUS(amp_gemm_tune(c, &g), AMP_ERR_UNSUPPORTED, "amp_gemm_tune no gemm");
    CHECK_STATUS(amp_gemm_explain(c, text, sizeof text, &g), AMP_ERR_UNSUPPORTED, "no gemm");
    l.rows = l.in = l.out = 1;
    l.x = l.w = amp_arr(x, AMP_F32);
    l.y = amp_arr(x + 1, AMP_F32);
    l.dy = amp_arr(x + 2, AMP_F32);
    l.dw = amp_arr(x + 3, AMP_F32);
    CHECK_STATUS(amp_linear_forward(c, &l), AMP_ERR_UNSUPPORTED, "amp_linear_forward no gemm");
    l.dbias = amp_arr(text, AMP_F32);
    CHECK_STATUS(amp_linear_backward(c, &l), AMP_ERR_UNSUPPORTED, "amp_linear_backward no gemm");
    e.rows = 1;
    e.classes = 4;
    e.logits = a;
    e.labels = &label;
    CHECK_STATUS(amp_softmax_cross_entropy(c, &e), AMP_ERR_UNSUPPORTED, "amp_softmax_cross_entropy no xent");
    d.count = 4;
    d.x = d.y = a;
    CHECK_STATUS(amp_dropout(c, &d), AMP_ERR_UNSUPPORTED, "amp_dropout no dropout");
    n.count = 4;
    n.act = AMP_SILU;
    n.x = n.y = a;
    CHECK_STATUS(amp_activation(c, &n), AMP_ERR_UNSUPPORTED, "amp_activation no activation");
    CHECK_STATUS(amp_column_sums(c, l.dbias, a, 1, 1, 0, 0), AMP_ERR_UNSUPPORTED, "amp_column_sums no bias_grad");
    CHECK_STATUS(amp_fp8_create(&f, c, NULL), AMP_ERR_UNSUPPORTED, "amp_fp8_create no quantize");
}
static void least_backend(t_run *t) {
    amp_backend b = least_table(), bad = b;
    toy own = AMP_ZERO;
    amp_ctx *c = NULL, *keep = t->ctx;
    int i;
    for (i = 0; i < 10; i++) { /* without any one of its ten, it is none */
        bad = b;
        if (i == 0) bad.name = NULL;
        if (i == 1) bad.destroy = NULL;
        if (i == 2) bad.alloc = NULL;
        if (i == 3) bad.release = NULL;
        if (i == 4) bad.copy = NULL;
        if (i == 5) bad.copy_async = NULL;
        if (i == 6) bad.zero = NULL;
        if (i == 7) bad.sync = NULL;
        if (i == 8) bad.may_wait = NULL;
        if (i == 9) bad.cast = NULL;
        t_note(t, "without number %d", i);
        CHECK_EQ(amp_ctx_create_backend(&c, &bad, &own, NULL, NULL), AMP_ERR_INVALID_ARG);
        CHECK(!c);
    }
    CHECK_EQ(amp_ctx_create_backend(&c, &b, &own, NULL, NULL), AMP_OK);
    if (!c) return;
    t->ctx = c;
    least_casts(t, c);
    least_refuses(t, c);
    CHECK_EQ(own.blocks, 0);
    amp_ctx_destroy(c);
    CHECK_EQ(own.destroyed, 1);
    t->ctx = keep;
}

/* Inside a capture every query says AMP_ERR_CAPTURE and changes nothing; what is only queued goes on. */
static void queries_in_a_capture(t_run *t) {
    amp_backend b = toy_table();
    toy own = AMP_ZERO;
    amp_ctx *c = NULL;
    amp_params *p = NULL, *q = NULL;
    amp_params *sets[1];
    amp_scaler *s = NULL, *s2 = NULL;
    amp_scaler *scalers[1];
    amp_param_desc e = AMP_ZERO;
    amp_step_desc d = t_rate_0();
    amp_scaler_desc sd = AMP_ZERO;
    amp_scaler_info info, as_it_was = AMP_ZERO;
    amp_autocast_desc larger = AMP_ZERO;
    amp_step_record r;
    amp_finite_report report;
    amp_histogram hist;
    amp_array list[1];
    amp_state_desc st = AMP_ZERO;
    amp_gemm_desc g = AMP_ZERO;
    float x[4] = {1, 2, 3, 4};
    double norm = 5;
    char text[320]; /* of which a context keeps as much */
    void *m = NULL;
    amp_ctx *keep = t->ctx;
    CHECK_EQ(amp_ctx_create_backend(&c, &b, &own, NULL, NULL), AMP_OK);
    if (!c) return;
    t->ctx = c; /* for amp_last_error */
    e.count = 4;
    CHECK_OK(amp_params_create(&p, c, NULL));
    CHECK_OK(amp_params_add(p, &e));
    CHECK_OK(amp_params_commit(p));
    CHECK_OK(amp_params_create(&q, c, NULL));
    CHECK_OK(amp_params_add(q, &e));
    CHECK_OK(amp_scaler_create(&s, c, NULL));
    CHECK_OK(amp_alloc(c, &m, 64, NULL));
    CHECK_OK(amp_scaler_get(s, &as_it_was));
    CHECK_OK(amp_autocast_begin(c, NULL)); /* there is an arena */
    CHECK_OK(amp_autocast_end(c));
    larger.arena = (size_t)1 << 24;
    list[0] = amp_arrn(m, AMP_F32, 4);
    sets[0] = p;
    scalers[0] = s;
    st.params = sets;
    st.n_params = 1;
    st.scalers = scalers;
    st.n_scalers = 1;
    own.wait = AMP_ERR_CAPTURE;
    CHECK_STATUS(amp_copy(c, m, x, 16), AMP_ERR_CAPTURE, "captured");
    CHECK_OK(amp_copy_async(c, m, x, 16));
    CHECK_STATUS(amp_sync(c), AMP_ERR_CAPTURE, "captured");
    snprintf(text, sizeof text, "amp_sync: %s", toy_captured);
    CHECK(strcmp(amp_last_error(c), text) == 0);
    CHECK_STATUS(amp_histogram_count(c, &hist, list, 1), AMP_ERR_CAPTURE, "captured");
    CHECK(strlen(amp_last_error(c)) == 319 && strncmp(amp_last_error(c), "amp_histogram_count: ", 21) == 0);
    CHECK(strncmp(amp_last_error(c) + 21, toy_captured, 298) == 0); /* what has no room is cut off */
    CHECK_STATUS(amp_all_finite(c, &report, list, 1), AMP_ERR_CAPTURE, "captured");
    CHECK_STATUS(amp_histogram_count(c, &hist, list, 1), AMP_ERR_CAPTURE, "captured");
    CHECK_STATUS(amp_params_commit(q), AMP_ERR_CAPTURE, "captured");
    CHECK_STATUS(amp_scaler_create(&s2, c, NULL), AMP_ERR_CAPTURE, "captured");
    CHECK(!s2);
    CHECK_STATUS(amp_scaler_get(s, &info), AMP_ERR_CAPTURE, "captured");
    CHECK_STATUS(amp_scaler_set_scale(s, 8.0f), AMP_ERR_CAPTURE, "captured");
    CHECK_STATUS(amp_scaler_set(s, &as_it_was), AMP_ERR_CAPTURE, "captured");
    CHECK_STATUS(amp_scaler_configure(s, &sd), AMP_ERR_CAPTURE, "captured");
    CHECK_STATUS(amp_unscale(s, NULL, &report, list, 1), AMP_ERR_CAPTURE, "captured");
    CHECK_STATUS(amp_scaler_update(s), AMP_ERR_STAGE, "amp_scaler_update"); /* so nothing was checked */
    CHECK_STATUS(amp_grad_norm(p, s, &norm), AMP_ERR_CAPTURE, "captured");
    CHECK_STATUS(amp_params_use(p, NULL), AMP_ERR_CAPTURE, "captured");
    CHECK_STATUS(amp_params_set_steps(p, 3), AMP_ERR_CAPTURE, "captured");
    CHECK_STATUS(amp_param_read(p, 0, x), AMP_ERR_CAPTURE, "captured");
    CHECK_STATUS(amp_param_write(p, 0, x), AMP_ERR_CAPTURE, "captured");
    CHECK_STATUS(amp_autocast_begin(c, &larger), AMP_ERR_CAPTURE, "captured");
    CHECK_STATUS(amp_autocast_release(c), AMP_ERR_CAPTURE, "captured");
    CHECK(norm == 5);
    CHECK_OK(amp_step_poll(p, &r)); /* never waits */
    CHECK_STATUS(amp_state_save(c, t_file("capture.state"), &st), AMP_ERR_CAPTURE, "captured");
    CHECK_STATUS(amp_state_load(c, t_file("capture.state"), &st), AMP_ERR_CAPTURE, "captured");
    t_note(t, "the enqueue class goes on");
    CHECK_OK(amp_zero(c, m, 64));
    CHECK_OK(amp_cast(c, amp_arr(m, AMP_F16), amp_arr(x, AMP_F32), 4, NULL));
    CHECK_OK(amp_unscale(s, NULL, NULL, list, 1)); /* without a report */
    CHECK_OK(amp_scaler_update(s));
    CHECK_EQ(own.scaler_updates, 1);
    CHECK_OK(amp_step(p, s, &d));
    CHECK_OK(amp_scaler_unscale(s, p));
    CHECK_OK(amp_clip(p, s, 1.0f, 0.0f));
    CHECK_OK(amp_clip(p, s, 0.0f, 1.0f));
    CHECK_OK(t_update(p, s, &d, AMP_ADAM));
    CHECK_OK(amp_scaler_update(s));
    CHECK_OK(amp_inspect(p, NULL, &d));
    CHECK_OK(amp_params_zero_grad(p));
    CHECK_OK(amp_params_master_to_model(p));
    CHECK_OK(amp_params_model_to_master(p));
    CHECK_OK(amp_params_grads_to(p, list, 1));
    g.m = g.n = g.k = 1;
    g.a = g.b = amp_arr(x, AMP_F32);
    g.d = amp_arr(m, AMP_F32);
    CHECK_OK(amp_gemm(c, &g));
    own.wait = AMP_ERR_DEAD;
    CHECK_STATUS(amp_sync(c), AMP_ERR_DEAD, "captured");
    own.wait = AMP_OK;
    t_note(t, "and after it all is as before");
    CHECK_OK(amp_params_commit(q));
    CHECK_OK(amp_autocast_release(c));
    CHECK_F32(t_scale(s), 65536.0f);
    CHECK_OK(amp_free(c, m));
    amp_scaler_destroy(s);
    amp_params_destroy(p);
    amp_params_destroy(q);
    CHECK_EQ(own.blocks, 0);
    amp_ctx_destroy(c);
    t->ctx = keep;
}

/* A backend leaves at the end of each verb and before each hook. If it cannot, what the verb made goes again, and a
   hook does not run. */
static amp_status count_totals(amp_ctx *c, amp_totals *totals, void *user) {
    (void)totals;
    *(size_t *)user = toy_of(c)->leaves;
    return amp_fail(c, AMP_ERR_IO, "said outside of any verb");
}
static void inside_no_more(t_run *t, amp_ctx *c) { /* a layer is made of products: only its sentences say so */
    float x[3] = {1, 2, 3};
    amp_linear_desc l = AMP_ZERO;
    l.rows = l.in = l.out = 1;
    l.x = amp_arr(&x[0], AMP_F32);
    l.w = amp_arr(&x[1], AMP_F32);
    l.y = amp_arr(&x[2], AMP_F32);
    CHECK_OK(amp_linear_forward(c, &l));
    CHECK_STATUS(amp_zero(c, NULL, 1), AMP_ERR_INVALID_ARG, "dst");
    CHECK(strstr(amp_last_error(c), "amp_gemm") == NULL);
}
static void leaves_end(t_run *t, amp_ctx *c, toy *own) {
    amp_params *p = NULL;
    amp_param_desc e = AMP_ZERO;
    amp_step_desc d = t_rate_0();
    size_t seen = 0;
    void *m = NULL;
    CHECK_OK(amp_zero(c, &seen, sizeof seen));
    CHECK_EQ(own->leaves, 1);
    CHECK_STATUS(amp_cast(c, amp_arr(NULL, AMP_F16), amp_arr(&seen, AMP_F16), 1, NULL), AMP_ERR_INVALID_ARG, "dst");
    CHECK_EQ(own->leaves, 2);
    own->refuse_leave = own->leaves + 1;
    CHECK_STATUS(amp_alloc(c, &m, 64, NULL), AMP_ERR_CUDA, "no way back");
    CHECK(!m && own->blocks == 0);
    own->refuse_leave = own->leaves + 1;
    CHECK_STATUS(amp_sync(c), AMP_ERR_CUDA, "no way back");
    e.count = 4;
    CHECK_OK(amp_params_create(&p, c, NULL));
    CHECK_OK(amp_params_add(p, &e));
    own->refuse_leave = own->leaves + 6; /* after five arenas: masters, model copies, gradients, moments, tables */
    CHECK_STATUS(amp_params_commit(p), AMP_ERR_CUDA, "no way back");
    CHECK_EQ(own->blocks, 0);
    CHECK_OK(amp_params_commit(p));
    d.reduce_totals_fn = count_totals;
    d.user = &seen;
    d.clip_norm = 1.0f;
    own->refuse_leave = own->leaves + 1;
    CHECK_STATUS(amp_step(p, NULL, &d), AMP_ERR_CUDA, "no way back");
    CHECK_EQ(seen, 0);
    own->leaves = 0;
    own->refuse_leave = 0;
    t_called = NULL;
    CHECK_EQ(amp_step(p, NULL, &d), AMP_ERR_IO);
    CHECK(strcmp(amp_last_error(c), "said outside of any verb") == 0); /* inside a hook a different verb may run */
    CHECK(seen == 1 && own->leaves == 2);
    amp_params_destroy(p);
}
static void backend_leaves(t_run *t) {
    amp_backend b = toy_table();
    toy own = AMP_ZERO;
    amp_ctx *c = NULL, *keep = t->ctx;
    b.leave = toy_leave;
    CHECK_EQ(amp_ctx_create_backend(&c, &b, &own, NULL, NULL), AMP_OK);
    if (!c) return;
    t->ctx = c;
    leaves_end(t, c, &own);
    inside_no_more(t, c);
    CHECK_EQ(own.blocks, 0);
    amp_ctx_destroy(c);
    t->ctx = keep;
}

const t_test t_suite_context[] = {
#ifndef T_NO_CUDA
    {"context.create_cuda", create_cuda, T_HOST},
#endif
    {"context.backend_table", backend_table, T_HOST}, {"context.least_backend", least_backend, T_HOST},
    {"context.backend_leaves", backend_leaves, T_HOST}, {"context.queries_in_a_capture", queries_in_a_capture, T_HOST},
    {"context.create_defaults", create_defaults, T_HOST}, {"context.create_errors", create_errors, T_HOST},
    {"context.create_simd", create_simd, T_HOST}, {"context.create_many", create_many, T_HOST},
    {"context.allocation_failures", allocation_failures, T_CPU}, {"context.no_workspaces", no_workspaces, T_HOST},
    {"context.destroyed_with_leftovers", destroyed_with_leftovers, T_CPU},
    {"context.logger_gets_the_sentence", logger_gets_the_sentence, T_CPU},
    {"context.default_allocator", default_allocator_is_quiet, T_CPU}, {"context.staged", staged, T_CPU},
    {"context.lists_double", lists_double, T_CPU}, {"context.blocks_apart", blocks_apart, T_CPU},
    {"context.memory", memory, T_ALL}, {"context.memory_errors", memory_errors, T_ALL},
    {"context.ledger", ledger, T_ALL}, {"context.ledger_many_labels", ledger_many_labels, T_ALL},
    {"context.many_allocations", many_allocations, T_ALL}, {"context.names", names, T_ALL}, {NULL, NULL, 0}};
