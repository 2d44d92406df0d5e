/* Guards: >>threads. A context serves one thread at a time: who comes meanwhile is refused and changes nothing, and a
   hook's own calls are no second caller. This file has a copy of amp.h of its own (AMP_STATIC), so that it can mark a
   context as in use and does not depend on two threads' luck; contexts are the harness's. */
#define AMP_STATIC
#define AMP_NO_SIMD /* in that copy: it computes nothing, and compiles in less time */
#include <errno.h>
#if defined(__wasi__) /* it has no longjmp */
#  define HAVE_JUMPS         0
#  define longjmp(to, value) ((void)(to), abort())
typedef int jmp_buf;
#else
#  define HAVE_JUMPS 1
#  include <setjmp.h>
#endif

#include "set.h"
#include "verbs.h"

#if defined(__GCC_ATOMIC_INT_LOCK_FREE) && __GCC_ATOMIC_INT_LOCK_FREE == 2
#  define HAVE_ATOMICS 1
#else
#  define HAVE_ATOMICS 0
#endif
#if defined(_POSIX_THREADS) && !defined(AMP_NO_THREADS)
#  define HAVE_THREADS 1
#  include <pthread.h>
#  if !defined(_WIN32) && !defined(__wasi__)
#    include <sys/wait.h>
#  endif
#else
#  define HAVE_THREADS 0
#endif

/* ---- every verb on a context that is in use ---- */

typedef struct bench { /* what verbs work on */
    amp_ctx *ctx;
    amp_params *p, *fresh; /* committed; not yet */
    amp_scaler *s;
    amp_fp8 *f;
    amp_array x, y; /* 64 F32 */
    void *made;     /* must stay what it is; NULL where a verb promises that */
    float number[64];
    uint64_t room[1024];
} bench;
#define UNTOUCHED 0x5a

static const size_t n_weights = 4;

static amp_state_desc state_of(bench *b) {
    amp_state_desc d = AMP_ZERO;
    d.params = &b->p;
    d.n_params = 1;
    return d;
}
static amp_gemm_desc gemm_of(bench *b) {
    amp_gemm_desc d = AMP_ZERO;
    d.m = d.n = d.k = 4;
    d.a = d.b = b->x;
    d.d = b->y;
    return d;
}
static amp_linear_desc linear_of(bench *b) {
    amp_linear_desc l = AMP_ZERO;
    l.rows = l.in = l.out = 4;
    l.x = l.w = l.dy = b->x;
    l.y = l.dw = b->y;
    return l;
}

static amp_watch watch_on(void) {
    amp_watch w = AMP_ZERO;
    w.on = 1;
    return w;
}

static amp_activation_desc tanh_of(const bench *b) {
    amp_activation_desc d = AMP_ZERO;
    d.act = AMP_TANH;
    d.count = 4;
    d.x = b->x;
    d.y = b->y;
    return d;
}

#define DO(name, call) \
    static amp_status do_##name(bench *b) { return call; }
#define DO_DESC(name, type, of, call) \
    static amp_status do_##name(bench *b) { \
        type d = of; \
        return call; \
    }
#define DO_VOID(name, call) \
    static amp_status do_##name(bench *b) { \
        call; \
        return strstr(amp_last_error(b->ctx), #name) ? AMP_ERR_BUSY : AMP_OK; \
    }
DO(amp_alloc, amp_alloc(b->ctx, &b->made, 64, NULL))
DO(amp_free, amp_free(b->ctx, b->y.data))
DO(amp_copy, amp_copy(b->ctx, b->y.data, b->x.data, 4))
DO(amp_copy_async, amp_copy_async(b->ctx, b->y.data, b->x.data, 4))
DO(amp_zero, amp_zero(b->ctx, b->y.data, 4))
DO(amp_sync, amp_sync(b->ctx))
DO(amp_cast, amp_cast(b->ctx, b->y, b->x, 64, NULL))
DO(amp_all_finite, amp_all_finite(b->ctx, (amp_finite_report *)b->room, &b->x, 1))
DO(amp_histogram_count, amp_histogram_count(b->ctx, (amp_histogram *)b->room, &b->x, 0))
DO(amp_params_create, amp_params_create((amp_params **)&b->made, b->ctx, NULL))
DO_DESC(amp_params_add, amp_param_desc, AMP_ZERO, amp_params_add(b->fresh, &d))
DO(amp_params_commit, amp_params_commit(b->fresh))
DO_VOID(amp_params_destroy, amp_params_destroy(b->p))
DO(amp_params_master_to_model, amp_params_master_to_model(b->p))
DO(amp_params_model_to_master, amp_params_model_to_master(b->p))
DO(amp_params_grads_to, amp_params_grads_to(b->p, &b->y, 1))
DO(amp_params_zero_grad, amp_params_zero_grad(b->p))
DO(amp_scaler_create, amp_scaler_create((amp_scaler **)&b->made, b->ctx, NULL))
DO_VOID(amp_scaler_destroy, amp_scaler_destroy(b->s))
DO(amp_scaler_set, amp_scaler_set(b->s, (const amp_scaler_info *)b->room))
DO(amp_params_use, amp_params_use(b->p, NULL))
DO(amp_params_set_steps, amp_params_set_steps(b->p, 3))
DO(amp_scaler_get, amp_scaler_get(b->s, (amp_scaler_info *)b->room))
DO(amp_scaler_set_scale, amp_scaler_set_scale(b->s, 2.0f))
DO_DESC(amp_scaler_configure, amp_scaler_desc, AMP_ZERO, amp_scaler_configure(b->s, &d))
DO(amp_scaler_unscale, amp_scaler_unscale(b->s, b->p))
DO(amp_unscale, amp_unscale(b->s, NULL, (amp_finite_report *)b->room, &b->y, 1))
DO(amp_scaler_update, amp_scaler_update(b->s))
DO_DESC(amp_step, amp_step_desc, t_rate_0(), amp_step(b->p, b->s, &d))
DO_DESC(amp_update, amp_step_desc, t_rate_0(), amp_update(b->p, b->s, &d))
DO_DESC(amp_inspect, amp_step_desc, t_rate_0(), amp_inspect(b->p, b->s, &d))
DO(amp_apply, amp_apply(b->p, 0, b->x, 0))
DO(amp_window_begin, amp_window_begin(b->p, b->s))
DO(amp_window_end, amp_window_end(b->p))
DO(amp_accumulate, amp_accumulate(b->p, b->s, 0))
DO(amp_param_read, amp_param_read(b->p, 0, b->number))
DO(amp_param_write, amp_param_write(b->p, 0, b->number))
DO(amp_grad_norm, amp_grad_norm(b->p, b->s, (double *)b->room))
DO(amp_report, amp_report(b->p, b->s, (amp_report_row *)b->room, 2, NULL, NULL, 0))
DO_DESC(amp_watch_array, amp_watch, watch_on(), amp_watch_array(b->ctx, &d, "x", b->x))
DO(amp_clip, amp_clip(b->p, b->s, 1.0f, 0.0f))
DO(amp_step_poll, amp_step_poll(b->p, (amp_step_record *)b->room))
DO(amp_autocast_begin, amp_autocast_begin(b->ctx, NULL))
DO(amp_autocast_end, amp_autocast_end(b->ctx))
DO(amp_autocast_release, amp_autocast_release(b->ctx))
DO(amp_autocast_input, amp_autocast_input(b->ctx, (amp_array *)b->room, AMP_OP_LINEAR, &b->x, 1))
DO_VOID(amp_autocast_invalidate, amp_autocast_invalidate(b->ctx, NULL))
DO_DESC(amp_snapshot_begin, amp_snapshot, AMP_ZERO, amp_snapshot_begin(b->ctx, NULL, &d))
DO_DESC(amp_linear_cross_entropy, amp_linear_xent_desc, AMP_ZERO, amp_linear_cross_entropy(b->ctx, &d))
DO_DESC(amp_linear_cross_entropy_bytes, amp_linear_xent_desc, AMP_ZERO,
    amp_linear_cross_entropy_bytes(b->ctx, (size_t *)b->room, &d))
DO_DESC(amp_dropout, amp_dropout_desc, AMP_ZERO, amp_dropout(b->ctx, &d))
DO(amp_fp8_create, amp_fp8_create((amp_fp8 **)&b->made, b->ctx, NULL))
DO_VOID(amp_fp8_destroy, amp_fp8_destroy(b->f))
DO(amp_quantize, amp_quantize(b->f, 0, amp_arr(b->y.data, AMP_F8E4M3), b->y, b->x, 2, 2, 0))
DO(amp_fp8_get, amp_fp8_get(b->f, 0, (amp_fp8_info *)b->room))
DO_DESC(amp_gemm, amp_gemm_desc, gemm_of(b), amp_gemm(b->ctx, &d))
DO_DESC(amp_gemm_explain, amp_gemm_desc, gemm_of(b), amp_gemm_explain(b->ctx, (char *)b->room, 100, &d))
DO_DESC(amp_gemm_tune, amp_gemm_desc, gemm_of(b), amp_gemm_tune(b->ctx, &d))
DO_DESC(amp_linear_forward, amp_linear_desc, linear_of(b), amp_linear_forward(b->ctx, &d))
DO_DESC(amp_linear_backward, amp_linear_desc, linear_of(b), amp_linear_backward(b->ctx, &d))
DO_DESC(amp_linear_tune, amp_linear_desc, linear_of(b), amp_linear_tune(b->ctx, &d))
DO(amp_column_sums, amp_column_sums(b->ctx, b->y, b->x, 1, 1, 0, 0))
DO_DESC(amp_activation, amp_activation_desc, tanh_of(b), amp_activation(b->ctx, &d))
DO_DESC(amp_softmax_cross_entropy, amp_xent_desc, AMP_ZERO, amp_softmax_cross_entropy(b->ctx, &d))
DO_DESC(amp_state_save, amp_state_desc, state_of(b), amp_state_save(b->ctx, t_file("busy"), &d))
DO_DESC(amp_state_load, amp_state_desc, state_of(b), amp_state_load(b->ctx, t_file("busy"), &d))
DO(amp_policy_init, amp_policy_init(b->ctx, (amp_policy *)b->room, AMP_O1, NULL))
DO(amp_policy_set, amp_policy_set(b->ctx, (amp_policy *)b->room, "low", "bf16"))
DO(amp_policy_edit, amp_policy_edit(b->ctx, (amp_policy *)b->room, AMP_OP_LINEAR, AMP_CLASS_F32))
DO(amp_policy_custom, amp_policy_custom(b->ctx, (amp_policy *)b->room, NULL, 0, NULL, 0, AMP_F16))
DO(amp_snapshot_take, amp_snapshot_take(b->ctx, (amp_snapshot *)b->room, NULL, b->s))
DO_VOID(amp_ctx_destroy, amp_ctx_destroy(b->ctx))

#define ROW(name, class) {#name, do_##name},
static const struct {
    const char *name;
    amp_status (*call)(bench *b);
} verbs[] = {/* the public list: a verb that is new there does not link until it is here; then those with a context
                 that are not on it */
    VERB_LIST(ROW) ROW(amp_autocast_end, host) ROW(amp_autocast_invalidate, host) ROW(amp_policy_init, host)
        ROW(amp_policy_set, host) ROW(amp_policy_edit, host) ROW(amp_policy_custom, host) ROW(amp_snapshot_take, host)
            ROW(amp_ctx_destroy, setup)};
#define N_VERBS (sizeof verbs / sizeof verbs[0])

static void bench_new(t_run *t, bench *b) {
    float host[64];
    amp_params_desc d = AMP_ZERO;
    size_t i;
    memset(b, 0, sizeof *b);
    b->ctx = t->ctx;
    for (i = 0; i < 64; i++)
        host[i] = t_real(t);
    b->x = amp_arrn(t_put(t, host, sizeof host), AMP_F32, 64);
    b->y = amp_arrn(t_put(t, host, sizeof host), AMP_F32, 64);
    b->p = set_new(t, AMP_F16, AMP_F16, &n_weights, 1);
    CHECK_OK(amp_params_create(&b->fresh, t->ctx, &d));
    CHECK_OK(amp_scaler_create(&b->s, t->ctx, NULL));
    CHECK_OK(amp_fp8_create(&b->f, t->ctx, NULL));
    set_grad(t, b->p, 0, n_weights, 1.0f);
    memset(b->room, UNTOUCHED, sizeof b->room);
    memset(b->number, UNTOUCHED, sizeof b->number);
}
static void bench_free(bench *b) {
    amp_params_destroy(b->p);
    amp_params_destroy(b->fresh);
    amp_scaler_destroy(b->s);
    amp_fp8_destroy(b->f);
}
static void bench_blob(t_run *t, bench *b, t_blob *to) { /* all that a verb could have changed */
    amp_scaler_info info = set_info(t, b->s);
    amp_ledger_row rows[32];
    size_t n = amp_ledger(t->ctx, rows, 32, NULL);
    t_blob_add(to, &info, sizeof info);
    t_blob_add(to, rows, n * sizeof rows[0]);
    t_blob_dev(t, to, b->x.data, 256);
    t_blob_dev(t, to, b->y.data, 256);
    t_blob_add(to, b->room, sizeof b->room);
    t_blob_add(to, b->number, sizeof b->number);
    t_blob_add(to, &b->p->phase, sizeof b->p->phase);
    t_blob_add(to, &b->p->holds, sizeof b->p->holds);
    set_blob(t, to, b->p, &n_weights, 1);
}

static void every_verb_is_refused(t_run *t) {
    bench b;
    t_blob before = AMP_ZERO, after = AMP_ZERO;
    size_t i;
    if (!HAVE_ATOMICS) {
        t_skip(t, "this compiler has no atomics: nobody is refused");
        return;
    }
    bench_new(t, &b);
    bench_blob(t, &b, &before);
    for (i = 0; i < N_VERBS; i++) {
        char words[80];
        snprintf(words, sizeof words, "%s: thread context one for each never returned", verbs[i].name);
        t_note(t, "%s", verbs[i].name);
        b.made = &b;
        t->ctx->in_use = 1;
        CHECK_STATUS(verbs[i].call(&b), AMP_ERR_BUSY, words);
        CHECK_EQ(t->ctx->in_use, 1); /* it is still the other thread's */
        t->ctx->in_use = 0;
        CHECK(b.made == &b || b.made == NULL);
    }
    bench_blob(t, &b, &after);
    CHECK_EQ(before.bytes, after.bytes);
    if (before.bytes == after.bytes) CHECK_BITS(after.data, before.data, before.bytes, 1);
    CHECK(!t->ctx->scope); /* no region was opened */
    CHECK(strstr(amp_strerror(AMP_ERR_BUSY), "thread") != NULL);
    /* then it goes on, and the next failure's sentence takes its place */
    CHECK_OK(amp_cast(t->ctx, b.y, b.x, 64, NULL));
    CHECK_STATUS(amp_cast(t->ctx, b.y, amp_arr(NULL, AMP_F32), 64, NULL), AMP_ERR_INVALID_ARG, "amp_cast src");
    bench_free(&b);
    free(before.data);
    free(after.data);
}

/* ---- hooks ---- */

typedef struct hooked {
    bench *b;
    t_run *t;
    int calls, steal;
} hooked;

static amp_status hook(hooked *h) {
    const char *outer = t_called;
    t_run *t = h->t;
    h->calls++;
    CHECK_OK(amp_cast(t->ctx, h->b->y, h->b->x, 64, NULL)); /* the same thread: no second caller */
    CHECK_OK(amp_sync(t->ctx));
    t_called = outer;
    if (h->steal == h->calls) t->ctx->in_use = 1; /* as a different thread would leave it, inside a verb */
    return AMP_OK;
}
static amp_status on_grads(amp_ctx *ctx, amp_params *p, void *user) {
    (void)ctx;
    (void)p;
    return hook((hooked *)user);
}
static amp_status on_totals(amp_ctx *ctx, amp_totals *totals, void *user) {
    (void)ctx;
    (void)totals;
    return hook((hooked *)user);
}

static void hooks_may_call(t_run *t) {
    amp_step_desc d = t_rate_0();
    hooked h = AMP_ZERO;
    bench b;
    int steal;
    bench_new(t, &b);
    h.b = &b;
    h.t = t;
    d.reduce_grads_fn = on_grads;
    d.reduce_totals_fn = on_totals;
    d.user = &h;
    CHECK_OK(amp_step(b.p, b.s, &d));
    CHECK_EQ(h.calls, 2);
    CHECK_EQ(t->ctx->in_use, 0);
    for (steal = 1; HAVE_ATOMICS && steal <= 2; steal++) { /* a different thread is inside when the hook returns */
        h.calls = 0;
        h.steal = steal;
        t_note(t, "stolen in hook %d", steal);
        CHECK_STATUS(amp_step(b.p, b.s, &d), AMP_ERR_BUSY, "hook thread");
        CHECK_EQ(h.calls, steal);
        CHECK_EQ(t->ctx->in_use, 1); /* not given away: it is the other's */
        t->ctx->in_use = 0;
    }
    h.steal = 0;
    CHECK_OK(amp_step(b.p, b.s, &d));
    bench_free(&b);
}

/* ---- a verb that an exception or a longjmp leaves ---- */

enum { LEFT_BLOCKS = 400 };
typedef struct left { /* an allocator and a logger of which one leaves the verb; NULL: it stays */
    jmp_buf to;
    int alloc_in, log; /* alloc_in 1: the next allocation leaves; log 1: the next line does */
    void *blocks[LEFT_BLOCKS];
    size_t live;
    int warned;
} left;
static void *left_alloc(size_t bytes, void *user) {
    left *l = (left *)user;
    void *p;
    size_t i = 0;
    if (l->alloc_in && --l->alloc_in == 0) longjmp(l->to, 1);
    p = malloc(bytes);
    while (i < LEFT_BLOCKS && l->blocks[i])
        i++;
    if (!p || i == LEFT_BLOCKS) abort();
    l->blocks[i] = p;
    l->live++;
    errno = 5; /* as functions may that succeed */
    return p;
}
static void left_free(void *p, size_t bytes, void *user) {
    left *l = (left *)user;
    size_t i = 0;
    (void)bytes;
    while (i < LEFT_BLOCKS && l->blocks[i] != p)
        i++;
    if (i == LEFT_BLOCKS) abort(); /* freed twice */
    l->blocks[i] = NULL;
    l->live--;
    free(p);
    errno = 5;
}
static void left_log(amp_log_level level, amp_status status, const char *text, void *user) {
    left *l = (left *)user;
    (void)status;
    if (l->log) {
        l->log = 0;
        longjmp(l->to, 1);
    }
    l->warned += level == AMP_LOG_WARNING && strstr(text, "this call never returned") != NULL;
}
static amp_ctx *left_new(t_run *t, left *l) {
    amp_allocator allocator = AMP_ZERO;
    amp_logger logger = AMP_ZERO;
    amp_ctx *ctx = NULL;
    memset(l, 0, sizeof *l);
    allocator.alloc_fn = left_alloc;
    allocator.free_fn = left_free;
    logger.fn = left_log;
    allocator.user = logger.user = l;
    CHECK_EQ(t_create(t->place, &ctx, &allocator, &logger), AMP_OK);
    return ctx;
}
#if HAVE_JUMPS
/* What is left to do is to destroy: the call that was left loses at most `lost` blocks, all others are freed. */
static void left_end(t_run *t, left *l, amp_ctx *ctx, amp_params *p, size_t lost) {
    size_t i;
    if (HAVE_ATOMICS) {
        CHECK_EQ(amp_sync(ctx), AMP_ERR_BUSY);
        CHECK(strstr(amp_last_error(ctx), "amp_sync: ") && strstr(amp_last_error(ctx), "never returned"));
    }
    amp_params_destroy(p);
    amp_ctx_destroy(ctx);
    CHECK(l->live <= lost);
    if (HAVE_ATOMICS) CHECK_EQ(l->warned, 1);
    for (i = 0; i < LEFT_BLOCKS; i++)
        free(l->blocks[i]);
}
static amp_params *left_set(t_run *t, amp_ctx *ctx) {
    amp_param_desc e = AMP_ZERO;
    amp_params *p = NULL;
    e.count = 10;
    CHECK_EQ(amp_params_create(&p, ctx, NULL), AMP_OK);
    CHECK_EQ(amp_params_add(p, &e), AMP_OK);
    return p;
}
/* Each allocation of a commit in turn, until it succeeds. */
static void left_by_allocator(t_run *t) {
    left *l = (left *)t_host(t, sizeof *l);
    volatile int at = 0, done = 0;
    while (!done) {
        amp_ctx *volatile ctx = left_new(t, l);
        amp_params *volatile p = left_set(t, ctx);
        amp_scaler *s = NULL;
        at = at + 1;
        t_note(t, "allocation %d", at);
        CHECK_EQ(amp_scaler_create(&s, ctx, NULL), AMP_OK); /* for amp_ctx_destroy to find */
        if (setjmp(l->to) == 0) {
            l->alloc_in = at;
            CHECK_EQ(amp_params_commit(p), AMP_OK);
            l->alloc_in = 0;
            done = 1;
            if (setjmp(l->to) == 0) {
                l->log = 1;
                (void)amp_free(ctx, l); /* refused; and the set is committed: for amp_ctx_destroy, too */
                CHECK(0);
            }
            left_end(t, l, ctx, NULL, 0);
        } else {
            left_end(t, l, ctx, p, 1);
        }
    }
    CHECK(at > 2);
}
/* The logger leaves amp_ctx_destroy itself: a second call goes on. */
static void left_by_logger(t_run *t) {
    left *l = (left *)t_host(t, sizeof *l);
    amp_ctx *volatile ctx = left_new(t, l);
    amp_params *p = left_set(t, ctx);
    void *block = NULL;
    size_t i;
    CHECK_EQ(amp_params_commit(p), AMP_OK);
    for (i = 0; i < 3; i++)
        CHECK_EQ(amp_alloc(ctx, &block, 100, "three"), AMP_OK);
    if (setjmp(l->to) == 0) {
        l->log = 1;
        amp_ctx_destroy(ctx);
        CHECK(0);
    }
    amp_ctx_destroy(ctx);
    CHECK_EQ(l->live, 0);
}
#endif

/* ---- errno ---- */

static void errno_is_the_callers(t_run *t) {
    left *l = (left *)t_host(t, sizeof *l);
    amp_ctx *own;
    amp_state_desc d;
    bench b;
    bench_new(t, &b);
    d = state_of(&b);
    errno = 77;
    CHECK_OK(amp_state_save(t->ctx, t_file("errno"), &d)); /* asks the system for much that is not there */
    CHECK_EQ(errno, 77);
    CHECK_OK(amp_state_load(t->ctx, t_file("errno"), &d));
    CHECK_EQ(errno, 77);
    own = left_new(t, l);
    CHECK_EQ(errno, 77);
    amp_ctx_destroy(own);
    CHECK_EQ(errno, 77);
    (void)remove(t_file("errno"));
    bench_free(&b);
}

/* ---- two threads ---- */

#if HAVE_THREADS
typedef struct meeting { /* a thread is inside amp_alloc of a context, while a second one calls */
    amp_ctx *ctx;
    pthread_t first;
    amp_status refused;
    char sentence[320];
    int armed, logged, logged_elsewhere;
} meeting;

static void *second_thread(void *user) {
    meeting *m = (meeting *)user;
    float x[4] = {1, 2, 3, 4};
    amp_f16 y[4] = {{7}, {7}, {7}, {7}};
    m->refused = amp_cast(m->ctx, amp_arr(y, AMP_F16), amp_arr(x, AMP_F32), 4, NULL);
    if (y[0].bits != 7 || y[3].bits != 7) m->refused = AMP_ERR_DEAD; /* it must not write */
    snprintf(m->sentence, sizeof m->sentence, "%s", amp_last_error(m->ctx));
    return NULL;
}
static void *meeting_alloc(size_t bytes, void *user) {
    meeting *m = (meeting *)user;
    pthread_t second;
    if (m->armed) {
        m->armed = 0;
        if (pthread_create(&second, NULL, second_thread, m) == 0) pthread_join(second, NULL);
    }
    return malloc(bytes);
}
static void meeting_free(void *p, size_t bytes, void *user) {
    (void)bytes;
    (void)user;
    free(p);
}
static void meeting_log(amp_log_level level, amp_status status, const char *text, void *user) {
    meeting *m = (meeting *)user;
    if (level != AMP_LOG_ERROR || status != AMP_ERR_BUSY || !strstr(text, "amp_cast")) return;
    m->logged++;
    m->logged_elsewhere += !pthread_equal(pthread_self(), m->first);
}

static void a_second_thread(t_run *t) {
    meeting m = AMP_ZERO;
    amp_allocator allocator = AMP_ZERO;
    amp_logger logger = AMP_ZERO;
    void *p = NULL;
    if (!HAVE_ATOMICS) {
        t_skip(t, "this compiler has no atomics: nobody is refused");
        return;
    }
    allocator.alloc_fn = meeting_alloc;
    allocator.free_fn = meeting_free;
    logger.fn = meeting_log;
    allocator.user = logger.user = &m;
    m.first = pthread_self();
    if (!CHECK_EQ(t_create(t->place, &m.ctx, &allocator, &logger), AMP_OK)) return;
    m.armed = 1;
    CHECK_EQ(amp_alloc(m.ctx, &p, 1000, NULL), AMP_OK); /* the first thread's verb is as if nobody had come */
    CHECK_EQ(m.armed, 0);
    CHECK_EQ(m.refused, AMP_ERR_BUSY);
    CHECK(strstr(m.sentence, "amp_cast: a different thread") != NULL);
    CHECK(strstr(m.sentence, "threads = 1") != NULL);
    CHECK_EQ(m.logged, 1); /* once, and by the thread that has the context */
    CHECK_EQ(m.logged_elsewhere, 0);
    CHECK_EQ(amp_free(m.ctx, p), AMP_OK);
    CHECK_EQ(m.logged, 1);
    amp_ctx_destroy(m.ctx);
}

/* A thread that is cancelled inside a verb ends after it. AddressSanitizer of clang 14 takes the end of any cancelled
   thread for a fault. */
#if defined(__SANITIZE_ADDRESS__)
#  define CANCEL_IS_KNOWN 0
#elif defined(__has_feature)
#  define CANCEL_IS_KNOWN (!__has_feature(address_sanitizer))
#else
#  define CANCEL_IS_KNOWN 1
#endif
typedef struct cancelled {
    amp_ctx *ctx;
    amp_status (*verb)(struct cancelled *); /* it reaches a place where its thread could be cancelled */
    const char *path;
    pthread_t thread;
    amp_status got;
    int returned, later, worked;
} cancelled;
static void *cancelled_alloc(size_t bytes, void *user) {
    if (((cancelled *)user)->ctx) pthread_testcancel();
    return malloc(bytes);
}
static void cancelled_free(void *p, size_t bytes, void *user) {
    if (((cancelled *)user)->ctx) pthread_testcancel();
    meeting_free(p, bytes, user);
}
static void cancelled_log(amp_log_level level, amp_status status, const char *text, void *user) {
    (void)level;
    (void)status;
    (void)text;
    if (((cancelled *)user)->ctx) pthread_testcancel();
}
static void *cancelled_thread(void *user) {
    cancelled *c = (cancelled *)user;
    c->thread = pthread_self();
    (void)pthread_cancel(pthread_self());
    c->got = (c->verb)(c);
    c->returned = 1;
    pthread_testcancel();
    c->later = 1;
    return NULL;
}
static void cancelled_in(t_run *t, cancelled *c, amp_status expected) {
    pthread_t thread;
    void *result = NULL;
    c->got = AMP_ERR_DEAD;
    c->returned = c->later = 0;
    if (!CHECK(pthread_create(&thread, NULL, cancelled_thread, c) == 0)) return;
    CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    CHECK(c->returned && !c->later);
    CHECK_EQ(c->got, expected);
}
static amp_status cancelled_amp_alloc(cancelled *c) {
    void *p = NULL;
    return amp_alloc(c->ctx, &p, 100, NULL);
}
static amp_status cancelled_amp_free(cancelled *c) {
    void *p = NULL;
    amp_status st = amp_alloc(c->ctx, &p, 100, NULL);
    return st == AMP_OK ? amp_free(c->ctx, p) : st;
}
static amp_status cancelled_failure(cancelled *c) { return amp_copy(c->ctx, NULL, NULL, 1); }
static void cancelled_after_it(t_run *t) {
    amp_allocator allocator = AMP_ZERO;
    amp_logger logger = AMP_ZERO;
    cancelled c = AMP_ZERO;
    amp_ctx *ctx = NULL;
    if (!CANCEL_IS_KNOWN) {
        t_skip(t, "AddressSanitizer does not know cancelled threads");
        return;
    }
    allocator.alloc_fn = cancelled_alloc;
    allocator.free_fn = cancelled_free;
    logger.fn = cancelled_log;
    allocator.user = logger.user = &c;
    if (!CHECK_EQ(t_create(t->place, &ctx, &allocator, &logger), AMP_OK)) return;
    c.ctx = ctx;
    c.verb = cancelled_amp_alloc;
    cancelled_in(t, &c, AMP_OK);
    c.verb = cancelled_amp_free;
    cancelled_in(t, &c, AMP_OK);
    c.verb = cancelled_failure;
    cancelled_in(t, &c, AMP_ERR_INVALID_ARG);
    CHECK_EQ(amp_sync(ctx), AMP_OK);
    c.ctx = NULL;
    amp_ctx_destroy(ctx); /* with the block */
}

/* The same where nothing of the program's runs: files, workers, and what a backend does that knows nothing of this. */
static cancelled *waiting; /* whose test runs */
static amp_status waiting_zero(amp_ctx *ctx, void *dst, size_t bytes) {
    (void)ctx;
    memset(dst, 0, bytes);
    pthread_testcancel();
    return AMP_OK;
}
static void waiting_narrow(void *dst, const void *f32, size_t n) { /* done by the worker after all else */
    const time_t begin = time(NULL);
    int i;
    (void)f32;
    memset(dst, 0, 2 * n);
    while (pthread_equal(pthread_self(), waiting->thread)) {
        if (AMPI_READ(&waiting->worked) || time(NULL) > begin + 10) return;
        sched_yield();
    }
    AMPI_WRITE(&waiting->worked, 1);
    for (i = 0; i < 1000; i++)
        sched_yield();
}
static amp_status cancelled_amp_cast(cancelled *c) {
    static float x[2 * AMP_CHUNK];
    static amp_f16 y[2 * AMP_CHUNK];
    return amp_cast(c->ctx, amp_arr(y, AMP_F16), amp_arr(x, AMP_F32), 2 * AMP_CHUNK, NULL);
}
static amp_status cancelled_amp_zero(cancelled *c) {
    char bytes[8];
    return amp_zero(c->ctx, bytes, sizeof bytes);
}
static amp_status cancelled_save(cancelled *c) {
    amp_state_desc state = AMP_ZERO;
    return amp_state_save(c->ctx, c->path, &state);
}
static amp_status cancelled_load(cancelled *c) {
    amp_state_desc state = AMP_ZERO;
    return amp_state_load(c->ctx, c->path, &state);
}
static void cancelled_while_waiting(t_run *t) {
    cancelled c = AMP_ZERO;
    ampi_cpu *cpu;
    if (!CANCEL_IS_KNOWN || !HAVE_ATOMICS) {
        t_skip(t, "AddressSanitizer does not know cancelled threads");
        return;
    }
    if (!CHECK_EQ(t_create_cpu(&c.ctx, AMP_SIMD_SCALAR, 2), AMP_OK)) return;
    waiting = &c;
    c.path = t_file("cancelled.state");
    c.verb = cancelled_save;
    cancelled_in(t, &c, AMP_OK);
    c.verb = cancelled_load;
    cancelled_in(t, &c, AMP_OK);
    cpu = ampi_cpu_of(c.ctx);
    cpu->kernels.narrow[AMP_F16] = waiting_narrow;
    c.verb = cancelled_amp_cast;
    cancelled_in(t, &c, AMP_OK);
    CHECK(c.worked);
    c.ctx->table.zero = waiting_zero;
    c.ctx->table.holds = 0;
    c.verb = cancelled_amp_zero;
    cancelled_in(t, &c, AMP_OK);
    remove(c.path);
    amp_ctx_destroy(c.ctx);
}

/* A thread that a child of fork() has not may hold the lock of the pool: a verb that needs no worker goes on. */
#  if defined(_WIN32) || defined(__wasi__) || defined(__EMSCRIPTEN__)
static void a_lock_is_left(t_run *t) { t_skip(t, "no fork() here"); }
#  else
static void a_lock_is_left(t_run *t) {
    float x[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    const amp_array list = amp_arrn(x, AMP_F32, 10);
    amp_histogram h;
    amp_ctx *ctx = NULL;
    int status = -1;
    pid_t child;
    if (!CHECK_EQ(t_create_cpu(&ctx, AMP_SIMD_SCALAR, 2), AMP_OK)) return;
    (void)pthread_mutex_lock(&ampi_cpu_of(ctx)->lock);
    child = fork();
    if (child == 0) {
        (void)alarm(20);
        _exit(amp_histogram_count(ctx, &h, &list, 1) != AMP_OK);
    }
    (void)pthread_mutex_unlock(&ampi_cpu_of(ctx)->lock);
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK_EQ(status, 0);
    amp_ctx_destroy(ctx);
}
#  endif
#else
static void a_lock_is_left(t_run *t) { t_skip(t, "no threads here"); }
static void a_second_thread(t_run *t) { t_skip(t, "no threads here"); }
static void cancelled_after_it(t_run *t) { t_skip(t, "no threads here"); }
static void cancelled_while_waiting(t_run *t) { t_skip(t, "no threads here"); }
#endif

/* ---- casts around the caches: each thread orders what it wrote before anyone is told that it is done ---- */

static int streams, unordered;
static void stream_and_count(char *dst, const char *buf, size_t pages, const char *next, size_t step) {
    size_t page, i, piece = 4096 / pages;
    for (page = 0; page < pages; page++)
        for (i = 0; i < piece; i += 64)
            memcpy(dst + page * 4096 + i, buf + page * piece + i, 64);
    (void)next;
    (void)step;
    streams++;
    unordered = 1;
}
static void fence_and_count(void) { unordered = 0; }
static void streams_are_ordered(t_run *t) {
    size_t n = AMP_STREAM_BYTES / 2 + 3 * AMP_CHUNK / 2, i;
    amp_array x, y;
    float *host = (float *)t_host(t, 4 * n), *got = (float *)t_host(t, 4 * n);
    uint16_t *half = (uint16_t *)t_host(t, 2 * n);
    amp_ctx *ctx = NULL;
    ampi_cpu *c;
    if (!CHECK_EQ(t_create_cpu(&ctx, AMP_SIMD_SCALAR, 1), AMP_OK)) return;
    c = ampi_cpu_of(ctx);
    c->kernels.stream = stream_and_count;
    c->kernels.fence = fence_and_count;
    c->kernels.pages = 4;
    for (i = 0; i < n; i++) {
        host[i] = (float)(i % 2039);
        half[i] = (uint16_t)ampi_nearest(host[i], AMP_F16);
    }
    streams = unordered = 0;
    x = amp_arr(half, AMP_F16);
    y = amp_arr(got, AMP_F32);
    CHECK_EQ(amp_cast(ctx, y, x, n, NULL), AMP_OK);
    CHECK(streams > (int)(n / 1024 / 4 * 9 / 10) && !unordered);
    CHECK_BITS(got, host, n, 4);
    amp_ctx_destroy(ctx);
}

const t_test t_suite_threads[] = {{"threads.every_verb_is_refused", every_verb_is_refused, T_ALL},
    {"threads.hooks_may_call", hooks_may_call, T_ALL},
#if HAVE_JUMPS
    {"threads.left_by_allocator", left_by_allocator, T_ALL}, {"threads.left_by_logger", left_by_logger, T_ALL},
#endif
    {"threads.errno_is_the_callers", errno_is_the_callers, T_ALL}, {"threads.a_second_thread", a_second_thread, T_CPU},
    {"threads.cancelled_after_it", cancelled_after_it, T_CPU},
    {"threads.cancelled_while_waiting", cancelled_while_waiting, T_HOST},
    {"threads.a_lock_is_left", a_lock_is_left, T_HOST}, {"threads.streams_are_ordered", streams_are_ordered, T_HOST},
    {NULL, NULL, 0}};
