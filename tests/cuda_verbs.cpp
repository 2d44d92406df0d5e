/* cuda_verbs.cpp - what each verb may do to CUDA: its class by counters, capture and replay, lent resources, refusals,
   every failure. Runs on tests/hostcuda only, which counts the calls and can fail each of them. Built and run by
   tests/cuda_verbs.sh.
   usage: cuda_verbs [--full] [--slice I/N]    every failure of every flag set, or the I-th of N parts of them, the
   first with all other tests; without --full: all other tests, each failure of each verb, or of each N-th verb from
   the I-th on, one of four in a new context, and each STEP-th of a whole life, of a plain context. */
#include "../amp.h"
#include "../amp_cuda.cuh"
#include "hostcuda_ctl.h"
#include "verbs.h"

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "called.h"
#include <unistd.h>

#define STEP 499 /* of the thinned fault loop */

static long passed, failed;
static amp_ctx *ctx; /* the context under test: its last error goes into messages */
static char last_log[400], last_warning[400];
T_CALLED const char *t_called;

static int report() {
    printf("%ld passed, %ld failed, 0 skipped\n", passed, failed);
    return failed != 0;
}

#define CHECK(c, ...) \
    do { \
        if (c) { \
            passed++; \
            break; \
        } \
        printf("FAILED: cuda_verbs.cpp:%d: %s: ", __LINE__, #c); \
        printf(__VA_ARGS__); \
        puts(""); \
        if (++failed > 30) exit(report()); \
    } while (0)
#define WANT(x, status) \
    do { \
        t_called = NULL; \
        amp_status got_ = (x); \
        CHECK(got_ == (status), "%s -> %d, wanted %d: %s", #x, (int)got_, (int)(status), amp_last_error(ctx)); \
        CHECK(!got_ || !ctx || t_names_verb(amp_last_error(ctx)), "%s: %s", #x, amp_last_error(ctx)); \
    } while (0)
#define OK(x) WANT(x, AMP_OK)
#define TRY(x) \
    do { \
        amp_status try_ = (x); \
        if (try_ != AMP_OK) return try_; \
    } while (0)

static long warnings;
static const char *fail_after_log; /* the next call of this function fails when a line was logged: a second failure */
static long warm_tunings;          /* tuned without the memory that makes the cache cold */
static void keep_log(amp_log_level level, amp_status, const char *text, void *) {
    warnings += level == AMP_LOG_WARNING;
    warm_tunings += strstr(text, ", operands in the cache") != NULL;
    if (level == AMP_LOG_WARNING) snprintf(last_warning, sizeof last_warning, "%s", text);
    if (fail_after_log) hcu_fail_call(fail_after_log, 1, 0, 0);
    fail_after_log = NULL;
    snprintf(last_log, sizeof last_log, "%s", text);
}

static amp_cuda_desc desc_with(uint32_t flags) {
    amp_cuda_desc d = AMP_ZERO;
    d.logger.fn = keep_log;
    d.flags = flags;
    return d;
}

static amp_ledger_row ledger_row(const amp_ctx *x, const char *label) {
    amp_ledger_row row = AMP_ZERO;
    (void)amp_ledger(x, &row, 1, label);
    return row;
}

static void no_leak(const char *where) { CHECK(hcu_leaks(1) == 0, "leak: %s", where); }

/* ---- an allocator of device memory that is lent, and may refuse ---- */

static size_t device_most;        /* of one allocation, since it was 0 */
static int device_areas, fail_in; /* fail_in n: the n-th allocation from now on fails */

static void *device_alloc(size_t n, void *) {
    void *p;
    if (fail_in && --fail_in == 0) return NULL;
    if (cudaMalloc(&p, n) != cudaSuccess) return NULL;
    if (n > device_most) device_most = n;
    device_areas++;
    return p;
}
static long freed_in_use; /* memory given back while work was still to run: whoever gets it next would share it */
static void device_free(void *p, size_t, void *) {
    device_areas--;
    freed_in_use += hcu_pending() > 0;
    cudaFree(p);
}

/* ---- a world: all that the verbs need, on one context ---- */

enum { BUFFERS = 9, PARAMS = 3, N = 4096 };
static float numbers[N];

typedef struct world {
    amp_ctx *x;
    amp_params *p, *acc; /* acc: with accumulators */
    amp_scaler *s;
    amp_fp8 *delayed, *current;
    void *buf[BUFFERS]; /* N floats each */
} world;

static amp_status build_params(amp_params **out, amp_ctx *x, uint32_t accumulate) {
    amp_params_desc d = AMP_ZERO;
    d.accumulate = accumulate;
    d.label = accumulate ? "acc" : "params";
    TRY(amp_params_create(out, x, &d));
    for (int i = 0; i < PARAMS; i++) {
        amp_param_desc e = AMP_ZERO;
        e.count = (size_t)(700 + i);
        e.init = numbers;
        TRY(amp_params_add(*out, &e));
    }
    return amp_params_commit(*out);
}

static amp_status build(world *w, amp_ctx *x) {
    memset(w, 0, sizeof *w);
    w->x = x;
    for (int i = 0; i < BUFFERS; i++) {
        TRY(amp_alloc(x, &w->buf[i], N * 4, "buf"));
        TRY(amp_zero(x, w->buf[i], N * 4));
    }
    for (int i = 0; i < N; i++)
        numbers[i] = (float)((i * 37) % 101) / 64 - 0.7f;
    TRY(amp_copy(x, w->buf[0], numbers, N * 4));
    TRY(amp_copy(x, w->buf[1], numbers, N * 4));
    TRY(build_params(&w->p, x, 0));
    TRY(build_params(&w->acc, x, 1));
    amp_fp8_desc d = AMP_ZERO;
    d.tensors = 6;
    d.history = 4;
    TRY(amp_fp8_create(&w->delayed, x, d));
    TRY(amp_fp8_create(&w->current, x, NULL));
    return amp_scaler_create(&w->s, x, NULL);
}

static void drop(world *w) { /* also of a world that was not finished */
    amp_scaler_destroy(w->s);
    amp_fp8_destroy(w->delayed);
    amp_fp8_destroy(w->current);
    amp_params_destroy(w->acc);
    amp_params_destroy(w->p);
    for (int i = 0; i < BUFFERS; i++) {
        if (w->buf[i]) amp_free(w->x, w->buf[i]);
    }
}

static void end(world *w) {
    drop(w);
    amp_ctx_destroy(ctx);
    ctx = NULL;
}

static amp_array at(world *w, int buf, amp_dtype t, size_t byte = 0) { return amp_arr((char *)w->buf[buf] + byte, t); }

static amp_step_desc step_desc(amp_optimizer optimizer = AMP_ADAMW) {
    amp_step_desc d = AMP_ZERO;
    d.optimizer = optimizer;
    d.lr = 0.01f;
    d.clip_norm = 1;
    return d;
}

/* ---- verbs of class enqueue ---- */

static amp_status v_cast(world *w) { return amp_cast(w->x, at(w, 2, AMP_F16), at(w, 0, AMP_F32), N, NULL); }
static amp_status v_copy(world *w) { return amp_copy_async(w->x, w->buf[8], w->buf[0], N * 4); }
static amp_status v_cast_same(world *w) { /* equal dtypes: bits are copied */
    return amp_cast(w->x, at(w, 3, AMP_F32), at(w, 0, AMP_F32), N, NULL);
}
static amp_status v_zero(world *w) { return amp_zero(w->x, w->buf[3], 1000); }
static amp_status v_step(world *w) { return amp_step(w->p, w->s, step_desc()); }
static amp_status v_xent(world *w) {
    amp_xent_desc e = AMP_ZERO;
    e.rows = 20;
    e.classes = 30;
    e.logits = at(w, 0, AMP_F32);
    e.labels = (int32_t *)w->buf[5];
    e.row_loss = (float *)w->buf[6];
    e.loss = (float *)w->buf[7];
    e.dlogits = at(w, 4, AMP_F16);
    e.scaler = w->s;
    return amp_softmax_cross_entropy(w->x, e);
}
static amp_status v_vocabulary(world *w) { /* two pieces */
    amp_linear_xent_desc d = AMP_ZERO;
    d.linear.rows = 20;
    d.linear.in = 8;
    d.linear.out = 30;
    d.linear.x = at(w, 0, AMP_F32);
    d.linear.w = at(w, 0, AMP_F32, 1024);
    d.linear.dw = at(w, 4, AMP_F32);
    d.xent.labels = (int32_t *)w->buf[5];
    d.xent.row_loss = (float *)w->buf[6];
    d.xent.loss = (float *)w->buf[7];
    d.chunk = 12;
    TRY(amp_linear_cross_entropy_bytes(w->x, &d.scratch_bytes, d));
    d.scratch = w->buf[3];
    return amp_linear_cross_entropy(w->x, d);
}
static amp_status gemm(world *w, amp_gemm_desc g) {
    g.m = 16;
    g.n = 24;
    g.k = 32;
    return amp_gemm(w->x, g);
}
static amp_status v_gemm_f16(world *w) { /* cuBLASLt and a kernel */
    amp_gemm_desc g = AMP_ZERO;
    g.a = at(w, 2, AMP_F16);
    g.b = at(w, 2, AMP_F16, 2048);
    g.d = at(w, 3, AMP_F16);
    g.bias = at(w, 1, AMP_F16);
    g.act = AMP_RELU;
    return gemm(w, g);
}
static amp_status v_gemm_f32(world *w) {
    amp_gemm_desc g = AMP_ZERO;
    g.a = at(w, 0, AMP_F32);
    g.b = at(w, 1, AMP_F32);
    g.d = at(w, 3, AMP_F32);
    g.bias = at(w, 1, AMP_F32);
    g.act = AMP_GELU;
    g.aux = at(w, 4, AMP_F32);
    return gemm(w, g);
}
static amp_status v_gemm_own(world *w) { /* a layout that cuBLASLt has not: our kernel */
    amp_gemm_desc g = AMP_ZERO;
    g.a = at(w, 0, AMP_F8E4M3);
    g.b = at(w, 1, AMP_F8E4M3);
    g.d = at(w, 3, AMP_F16);
    g.flags = AMP_GEMM_EMULATE;
    return gemm(w, g);
}
static amp_status v_gemm_f8(world *w) { /* with everything that FP8 has */
    amp_gemm_desc g = AMP_ZERO;
    g.m = g.n = g.k = 32;
    g.trans_b = 1;
    g.a = at(w, 0, AMP_F8E4M3);
    g.b = at(w, 1, AMP_F8E4M3);
    g.d = at(w, 3, AMP_F8E4M3);
    g.scale_a = g.scale_b = g.scale_d = (const float *)w->buf[5];
    g.amax_d = (float *)w->buf[6];
    return amp_gemm(w->x, g);
}
static amp_status v_gemm_factors(world *w) { /* factors on both sides, a bias of another dtype, sums of columns */
    amp_gemm_desc g = AMP_ZERO;
    g.a = at(w, 2, AMP_F16);
    g.b = at(w, 2, AMP_F16, 2048);
    g.d = at(w, 3, AMP_F16);
    g.bias = at(w, 1, AMP_F32);
    g.alpha = amp_opt(0.5f);
    g.beta = amp_opt(2);
    g.alpha_ptr = amp_scaler_inverse_ptr(w->s);
    g.beta_ptr = (const float *)w->buf[5];
    g.act = AMP_GELU;
    g.dbias = at(w, 7, AMP_F32);
    return gemm(w, g);
}
static amp_status v_linear(world *w) {
    amp_linear_desc l = AMP_ZERO;
    l.act = AMP_GELU;
    l.rows = 16;
    l.in = 24;
    l.out = 32;
    l.x = at(w, 0, AMP_F16);
    l.w = at(w, 0, AMP_F16, 4096);
    l.bias = at(w, 1, AMP_F16);
    l.y = at(w, 2, AMP_F16);
    l.aux = at(w, 3, AMP_F16);
    l.dy = at(w, 4, AMP_F16);
    l.dx = at(w, 6, AMP_F16);
    l.dw = at(w, 7, AMP_F16);
    l.dbias = at(w, 7, AMP_F32, 8192);
    TRY(amp_linear_forward(w->x, l));
    return amp_linear_backward(w->x, l);
}
static amp_status v_chain(world *w) { /* a layer that does the act and bias gradient of the one before it */
    amp_linear_desc a = AMP_ZERO, b = AMP_ZERO;
    a.act = AMP_GELU;
    a.after = &b;
    a.rows = b.rows = 300; /* several slices of the bias gradient */
    a.in = a.out = b.in = b.out = 8;
    a.y = at(w, 2, AMP_F16);
    a.aux = at(w, 3, AMP_F16);
    a.dbias = at(w, 7, AMP_F32);
    b.before = &a;
    b.w = at(w, 0, AMP_F16);
    b.dy = at(w, 4, AMP_F16);
    b.dx = at(w, 6, AMP_F16);
    b.dbias = at(w, 7, AMP_F32, 8192);
    b.act = AMP_RELU;
    b.y = at(w, 2, AMP_F16, 8192);
    return amp_linear_backward(w->x, b);
}
static amp_status v_adamw(world *w) {
    TRY(amp_scaler_unscale(w->s, w->p));
    TRY(amp_update(w->p, w->s, step_desc(AMP_ADAMW)));
    return amp_scaler_update(w->s);
}
static amp_status v_sgd(world *w) {
    TRY(amp_update(w->p, w->s, step_desc(AMP_SGD)));
    return amp_scaler_update(w->s);
}
static amp_status v_lion(world *w) {
    amp_step_desc d = step_desc(AMP_LION);
    d.count_lost = 1;
    TRY(amp_update(w->p, w->s, d));
    return amp_scaler_update(w->s);
}
static amp_status v_accumulate(world *w) {
    TRY(amp_accumulate(w->acc, w->s, 1));
    TRY(amp_scaler_update(w->s));
    TRY(amp_accumulate(w->acc, w->s, 1));
    return amp_step(w->acc, w->s, step_desc());
}
static amp_status v_clip(world *w) { return amp_clip(w->p, w->s, 1.0f, 0.0f); }
static amp_status v_clip_value(world *w) { return amp_clip(w->p, w->s, 0.0f, 1.0f); }
static amp_status v_unscale(world *w) {
    amp_array a = amp_arrn(w->buf[4], AMP_F32, 100);
    TRY(amp_unscale(w->s, NULL, NULL, &a, 1));
    return amp_scaler_update(w->s);
}
static amp_status v_inspect(world *w) {
    TRY(amp_inspect(w->p, w->s, step_desc()));
    return amp_scaler_update(w->s);
}
static amp_status v_apply(world *w) { /* updates made elsewhere: of gradients, counted, and of accumulators */
    amp_step_desc d = step_desc();
    d.count_lost = 2;
    TRY(amp_inspect(w->p, w->s, d));
    for (size_t i = 0; i < PARAMS; i++)
        TRY(amp_apply(w->p, i, at(w, 0, AMP_F32), i % 2));
    TRY(amp_scaler_update(w->s));
    TRY(amp_accumulate(w->acc, w->s, 1));
    TRY(amp_inspect(w->acc, w->s, step_desc()));
    for (size_t i = 0; i < PARAMS; i++)
        TRY(amp_apply(w->acc, i, at(w, 1, AMP_F32), 1));
    return amp_scaler_update(w->s);
}
static amp_status v_between(world *w) {
    TRY(amp_params_master_to_model(w->p));
    TRY(amp_params_model_to_master(w->p));
    return amp_params_zero_grad(w->p);
}
static amp_status v_adam(world *w) {
    TRY(amp_update(w->p, w->s, step_desc(AMP_ADAM)));
    return amp_scaler_update(w->s);
}
static amp_status v_grads_to(world *w) {
    amp_array to[PARAMS];
    for (int i = 0; i < PARAMS; i++)
        to[i] = at(w, 8, AMP_BF16, 8192 + 2048 * (size_t)i);
    return amp_params_grads_to(w->p, to, PARAMS);
}
static amp_status v_autocast(world *w) { /* begin allocates the first time only */
    amp_array in[2] = {amp_arrn(w->buf[2], AMP_F16, N), amp_arrn(w->buf[0], AMP_F32, N)}, out[2];
    amp_snapshot snapshot;
    TRY(amp_autocast_begin(w->x, NULL));
    amp_status s = amp_autocast_input(w->x, out, AMP_OP_LINEAR, &in[1], 1);
    if (s == AMP_OK) s = amp_autocast_input(w->x, out, AMP_OP_ADD, in, 2);
    if (s == AMP_OK) s = amp_snapshot_take(w->x, &snapshot, NULL, NULL);
    const char *called = t_called;
    TRY(amp_autocast_end(w->x));
    t_called = called; /* s is its */
    TRY(s);
    TRY(amp_snapshot_begin(w->x, NULL, &snapshot));
    return amp_autocast_end(w->x);
}
static amp_status v_dropout(world *w) {
    amp_dropout_desc d = AMP_ZERO;
    d.p = 0.25f;
    d.count = N;
    d.x = at(w, 0, AMP_F32);
    d.y = at(w, 8, AMP_F16);
    return amp_dropout(w->x, d);
}
static amp_status v_column_sums(world *w) {
    return amp_column_sums(w->x, at(w, 8, AMP_BF16), at(w, 0, AMP_F32), 60, 48, 64, 0);
}
static amp_status v_activation(world *w) {
    amp_activation_desc d = AMP_ZERO;
    d.act = AMP_SILU;
    d.count = N;
    d.x = at(w, 0, AMP_F32);
    d.y = at(w, 8, AMP_F16);
    TRY(amp_activation(w->x, d));
    d.dy = at(w, 1, AMP_F32);
    d.dx = at(w, 8, AMP_F32);
    return amp_activation(w->x, d);
}
static amp_status v_quantize(world *w) {
    amp_array none = AMP_ZERO, x = at(w, 0, AMP_F32);
    TRY(amp_quantize(w->delayed, 0, at(w, 8, AMP_F8E4M3), at(w, 8, AMP_F8E4M3, N), x, 64, 64, 0));
    return amp_quantize(w->current, 0, at(w, 8, AMP_F8E5M2, 2 * N), none, x, 60, 68, 0);
}
static amp_status v_linear_f8(world *w) {
    amp_linear_desc l = AMP_ZERO;
    l.rows = l.in = l.out = 32;
    l.act = AMP_RELU;
    l.x = at(w, 0, AMP_F32);
    l.w = at(w, 1, AMP_F32);
    l.y = at(w, 8, AMP_BF16);
    l.dy = at(w, 8, AMP_BF16, 4096);
    l.dx = at(w, 8, AMP_BF16, 8192);
    l.dw = at(w, 8, AMP_BF16, 12288);
    l.fp8 = w->delayed;
    l.fp8_first = 3;
    l.scratch = w->buf[7];
    l.scratch_bytes = N * 4;
    TRY(amp_zero(w->x, (char *)w->buf[8] + 4096, 2048));
    TRY(amp_linear_forward(w->x, l));
    return amp_linear_backward(w->x, l);
}
static amp_status v_cast_sr(
    world *w) { /* the last one: what it leaves in buffer 2 has the same bits on every context */
    amp_cast_desc c = AMP_ZERO;
    c.rounding = AMP_STOCHASTIC;
    return amp_cast(w->x, at(w, 2, AMP_BF16), at(w, 0, AMP_F32), N, c);
}

/* ---- verbs of class query ---- */

static amp_status q_copy(world *w) {
    char h[64];
    return amp_copy(w->x, h, w->buf[0], sizeof h);
}
static amp_status q_sync(world *w) { return amp_sync(w->x); }
static amp_status q_finite(world *w) {
    amp_array a[2] = {amp_arrn(w->buf[0], AMP_F32, N), amp_arrn(w->buf[2], AMP_F16, N)};
    amp_finite_report r;
    return amp_all_finite(w->x, &r, a, 2);
}
static amp_status q_histogram(world *w) {
    amp_array a[2] = {amp_arrn(w->buf[0], AMP_F32, N), amp_arrn(w->buf[2], AMP_F16, N)};
    amp_histogram h;
    return amp_histogram_count(w->x, &h, a, 2);
}
static amp_status q_get(world *w) {
    amp_scaler_info i;
    return amp_scaler_get(w->s, &i);
}
static amp_status q_norm(world *w) {
    double n;
    return amp_grad_norm(w->p, w->s, &n);
}
static amp_status q_report(world *w) {
    static const char *const names[1] = {"x"};
    amp_report_row rows[8];
    amp_array a = amp_arrn(w->buf[0], AMP_F32, N);
    return amp_report(w->p, w->s, rows, 8, &a, names, 1);
}
static amp_status q_watch(world *w) {
    amp_watch on = AMP_ZERO;
    on.on = 1;
    return amp_watch_array(w->x, &on, "x", amp_arrn(w->buf[0], AMP_F32, N));
}
static amp_status q_read(world *w) {
    float h[702];
    return amp_param_read(w->p, 1, h);
}
static amp_status q_write(world *w) { return amp_param_write(w->p, 1, numbers); }
static amp_status q_set_scale(world *w) { return amp_scaler_set_scale(w->s, 256.0f); }
static amp_status q_set(world *w) {
    amp_scaler_info i;
    amp_status s = amp_scaler_get(w->s, &i);
    return s == AMP_OK ? amp_scaler_set(w->s, &i) : s;
}
static amp_status q_set_steps(world *w) { return amp_params_set_steps(w->p, 3); }
static amp_status q_use(world *w) { return amp_params_use(w->p, NULL); }
static amp_status q_configure(world *w) {
    amp_scaler_desc d = AMP_ZERO;
    d.max_scale = 65536.0f;
    return amp_scaler_configure(w->s, &d);
}
static char state_file[512];
static amp_state_desc state_of(world *w) {
    amp_state_desc a = AMP_ZERO;
    a.params = &w->p;
    a.n_params = 1;
    a.scalers = &w->s;
    a.n_scalers = 1;
    return a;
}
static amp_status q_save(world *w) { return amp_state_save(w->x, state_file, state_of(w)); }
static amp_status q_fp8(world *w) {
    amp_fp8_info info;
    return amp_fp8_get(w->delayed, 0, &info);
}
static amp_status q_load(world *w) { return amp_state_load(w->x, state_file, state_of(w)); }
static amp_status q_unscale(world *w) { /* enqueue, but for the report */
    amp_array a = amp_arrn(w->buf[0], AMP_F32, N);
    amp_finite_report r;
    return amp_unscale(w->s, NULL, &r, &a, 1);
}

static amp_status q_tune(world *w) {
    amp_gemm_desc g = AMP_ZERO;
    amp_linear_desc l = AMP_ZERO;
    g.m = g.n = g.k = 16;
    g.a = at(w, 0, AMP_F32);
    g.b = at(w, 1, AMP_F32);
    g.d = at(w, 3, AMP_F32);
    g.bias = at(w, 1, AMP_F32);
    g.beta = amp_opt(1);
    g.dbias = at(w, 7, AMP_F32);
    TRY(amp_gemm_tune(w->x, &g));
    l.rows = l.in = l.out = 16;
    l.x = at(w, 0, AMP_F16);
    l.w = at(w, 0, AMP_F16, 4096);
    l.y = at(w, 2, AMP_F16);
    l.dy = at(w, 4, AMP_F16);
    l.dx = at(w, 6, AMP_F16);
    l.dw = at(w, 7, AMP_F16);
    return amp_linear_tune(w->x, &l);
}

typedef struct verb {
    const char *name;
    amp_status (*call)(world *);
} verb;

static const verb verbs[] = {/* enqueue first */
    {"cast", v_cast}, {"copy_async", v_copy}, {"cast as a copy", v_cast_same}, {"zero", v_zero}, {"step", v_step},
    {"xent", v_xent}, {"vocabulary", v_vocabulary}, {"gemm f16", v_gemm_f16}, {"gemm f32 gelu", v_gemm_f32},
    {"gemm own", v_gemm_own}, {"gemm f8", v_gemm_f8}, {"gemm factors", v_gemm_factors}, {"linear", v_linear},
    {"chain", v_chain}, {"unscale adamw update", v_adamw}, {"clip", v_clip}, {"clip_value", v_clip_value},
    {"amp_unscale", v_unscale}, {"inspect update", v_inspect}, {"inspect apply", v_apply},
    {"between copies", v_between}, {"sgd", v_sgd}, {"lion", v_lion}, {"accumulate", v_accumulate}, {"adam", v_adam},
    {"grads_to", v_grads_to}, {"autocast", v_autocast}, {"dropout", v_dropout}, {"quantize", v_quantize},
    {"linear f8", v_linear_f8}, {"column sums", v_column_sums}, {"activation", v_activation},
    {"cast stochastic", v_cast_sr},

    {"copy", q_copy}, {"sync", q_sync}, {"all_finite", q_finite}, {"histogram", q_histogram}, {"get", q_get},
    {"norm", q_norm}, {"report", q_report}, {"watch", q_watch}, {"param_read", q_read}, {"param_write", q_write},
    {"set_scale", q_set_scale}, {"set", q_set}, {"set_steps", q_set_steps}, {"use", q_use}, {"configure", q_configure},
    {"state_save", q_save}, {"state_load", q_load}, {"unscale report", q_unscale}, {"tune", q_tune},
    {"fp8_get", q_fp8}};
enum { VERBS = sizeof verbs / sizeof verbs[0], QUERIES = 20, ENQUEUES = VERBS - QUERIES };

static void run_ok(world *w, int from, int to) {
    for (int v = from; v < to; v++) {
        amp_status s = verbs[v].call(w);
        CHECK(s == AMP_OK, "%s -> %d: %s", verbs[v].name, (int)s, amp_last_error(w->x));
    }
}

/* ---- classes: an enqueue verb neither waits nor allocates, and from its second call on it does not search ---- */

static void only_enqueues(const char *name) {
    long a = hcu_group_calls(HCU_ALLOC), f = hcu_group_calls(HCU_FREE), s = hcu_group_calls(HCU_SYNC);
    long h = hcu_group_calls(HCU_HEURISTIC), o = hcu_group_calls(HCU_OBJECT);
    CHECK(a + f + s + h + o == 0, "%s: alloc %ld, free %ld, sync %ld, heuristic %ld, object %ld", name, a, f, s, h, o);
}

/* What a verb's first call may do more: look for algorithms, and the descriptors for that, if it is made of products;
   memory of a scope's first casts. */
static void only_enqueues_first(const char *name) {
    int product =
            !strcmp(name, "vocabulary") || strstr(name, "gemm") || strstr(name, "linear") || strstr(name, "chain"),
        scope = !strcmp(name, "autocast");
    long a = hcu_group_calls(HCU_ALLOC), f = hcu_group_calls(HCU_FREE), s = hcu_group_calls(HCU_SYNC);
    long h = hcu_group_calls(HCU_HEURISTIC), o = hcu_group_calls(HCU_OBJECT);
    CHECK((scope || a == 0) && f + s == 0, "%s, first call: alloc %ld, free %ld, sync %ld", name, a, f, s);
    CHECK(product || h + o == 0, "%s, first call: heuristic %ld, object %ld", name, h, o);
}

static void test_list() { /* no verb of VERB_LIST is missing in this file */
#define NAME(name, class) #name "(",
    static const char *const names[] = {VERB_LIST(NAME)};
    static char text[1 << 17];
    FILE *f = fopen(__FILE__, "rb");
    CHECK(f && fread(text, 1, sizeof text - 1, f) > 0, "cannot read %s", __FILE__);
    if (f) fclose(f);
    for (const char *name : names)
        CHECK(strstr(text, name), "%s...) is missing here", name);
}

static void test_classes() {
    world w;
    amp_step_record r;
    OK(amp_cuda_create(&ctx, desc_with(0)));
    OK(build(&w, ctx));
    for (int v = 0; v < ENQUEUES; v++) {
        hcu_reset_counts();
        run_ok(&w, v, v + 1);
        only_enqueues_first(verbs[v].name);
        hcu_reset_counts();
        run_ok(&w, v, v + 1);
        only_enqueues(verbs[v].name);
        CHECK(hcu_group_calls(HCU_LAUNCH) + hcu_group_calls(HCU_FILL) + hcu_group_calls(HCU_COPY) +
                    hcu_group_calls(HCU_MATMUL) >
                0,
            "%s does nothing", verbs[v].name);
    }
    hcu_reset_counts();
    OK(amp_step_poll(w.p, &r));
    only_enqueues("step_poll");
    hcu_reset_counts();
    OK(amp_window_begin(w.p, w.s));
    OK(amp_window_end(w.p));
    CHECK(hcu_group_calls(HCU_LAUNCH) + hcu_group_calls(HCU_FILL) + hcu_group_calls(HCU_COPY) == 0, "a window");
    only_enqueues("window");
    amp_gemm_desc g = AMP_ZERO;
    char text[200];
    g.m = g.n = g.k = 16;
    g.a = g.b = at(&w, 0, AMP_F32);
    g.d = at(&w, 3, AMP_F32);
    hcu_reset_counts();
    OK(amp_gemm_explain(ctx, text, sizeof text, &g));
    only_enqueues_first("gemm_explain");
    hcu_reset_counts();
    OK(amp_gemm_explain(ctx, text, sizeof text, &g));
    only_enqueues("gemm_explain");
    run_ok(&w, ENQUEUES, VERBS);
    OK(amp_autocast_release(ctx));
    end(&w);
    no_leak("classes");
}

/* ---- a product that cuBLASLt does not take: a warning once for its shape, unless that was asked for ---- */

static void test_plain_products() {
    world w;
    amp_gemm_desc g = AMP_ZERO;
    OK(amp_cuda_create(&ctx, desc_with(0)));
    OK(build(&w, ctx));
    g.m = g.n = g.k = 16;
    g.a = g.b = at(&w, 0, AMP_F16);
    g.d = at(&w, 3, AMP_BF16);
    warnings = 0;
    g.flags = AMP_GEMM_ORDERED;
    OK(amp_gemm(ctx, &g));
    CHECK(warnings == 0, "%ld warnings about a product in the defined order", warnings);
    g.flags = 0;
    OK(amp_gemm(ctx, &g));
    CHECK(warnings == 1 && strstr(last_log, "plain kernel"), "%ld warnings, the last: %s", warnings, last_log);
    OK(amp_gemm(ctx, &g));
    CHECK(warnings == 1, "%ld warnings about one shape", warnings);
    end(&w);
    no_leak("plain products");
}

/* ---- the update of a step follows its inspection where that was asked for and can be had; nothing else does ---- */

static long followers_of_a_step(world *w, const amp_step_desc &d) {
    const long before = hcu_followers();
    hcu_reset_counts();
    OK(amp_step(w->p, w->s, d));
    return hcu_followers() - before;
}
static amp_status launch_between(amp_ctx *x, amp_totals *totals, void *) {
    return (amp_status)cudaMemsetAsync(totals, 0, 0, amp_cuda_stream(x));
}
static void test_follows(const char *where, amp_cuda_desc d, long want) {
    world w;
    amp_step_desc step = step_desc(), counted = step_desc(), hooked = step_desc();
    counted.count_lost = 1;
    hooked.reduce_totals_fn = launch_between;
    OK(amp_cuda_create(&ctx, d));
    OK(build(&w, ctx));
    CHECK(followers_of_a_step(&w, step) == want, "%s: a step", where);
    CHECK(hcu_group_calls(HCU_LAUNCH) == 2, "%s: %ld launches", where, hcu_group_calls(HCU_LAUNCH));
    CHECK(followers_of_a_step(&w, hooked) == want, "%s: a step of ranks", where);
    CHECK(followers_of_a_step(&w, counted) == 0, "%s: counts are zeroed between the two", where);
    for (int v = 0; v < VERBS; v++) { /* Lion's updates are counted */
        static const char *const updates[] = {"step", "unscale adamw update", "sgd", "adam", "accumulate"};
        const long before = hcu_followers();
        long expected = 0;
        run_ok(&w, v, v + 1);
        for (const char *name : updates)
            if (!strcmp(verbs[v].name, name)) expected = want;
        CHECK(hcu_followers() - before == expected, "%s: %s: %ld", where, verbs[v].name, hcu_followers() - before);
    }
    end(&w);
    no_leak(where);
}
static void test_dependent_launch() {
    const amp_cuda_desc asked = desc_with(AMP_CUDA_DEPENDENT_LAUNCH);
    amp_cuda_desc legacy = asked;
    legacy.stream = AMP_CUDA_STREAM_LEGACY;
    test_follows("not asked for", desc_with(0), 0);
    test_follows("asked for", asked, 1);
    test_follows("the legacy stream", legacy, 0);
    hcu_set_arch(0, 8, 9);
    test_follows("sm_89", asked, 0);
    hcu_set_arch(0, 9, 0);
    hcu_set_compiled(80, 0);
    test_follows("code for compute_80", asked, 0);
    hcu_set_compiled(90, 12020);
    test_follows("a driver of CUDA 12.2", asked, 0);
    hcu_set_compiled(90, 12030);
    test_follows("a driver of CUDA 12.3", asked, 1);
    hcu_set_compiled(0, 0);
}

/* ---- a captured product that adds up micro-batches: *beta_ptr is 0 for the first, and d NaN, then 1 ---- */

static void test_captured_factor(uint32_t flags) {
    float host[4] = {1, 1, 1, 1}, got[4];
    const uint32_t bad[4] = {0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu};
    void *a, *d, *beta;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    amp_gemm_desc g = AMP_ZERO;
    OK(amp_cuda_create(&ctx, desc_with(0)));
    OK(amp_alloc(ctx, &a, 16, NULL));
    OK(amp_alloc(ctx, &d, 16, NULL));
    OK(amp_alloc(ctx, &beta, 4, NULL));
    OK(amp_copy(ctx, a, host, 16));
    OK(amp_copy(ctx, d, bad, 16));
    g.m = g.n = g.k = 2;
    g.a = g.b = amp_arr(a, AMP_F32);
    g.d = amp_arr(d, AMP_F32);
    g.beta_ptr = (const float *)beta;
    g.flags = flags;
    cudaStream_t st = amp_cuda_stream(ctx);
    CHECK(cudaStreamBeginCapture(st, cudaStreamCaptureModeGlobal) == cudaSuccess, "begin");
    OK(amp_gemm(ctx, &g));
    CHECK(cudaStreamEndCapture(st, &graph) == cudaSuccess, "end");
    CHECK(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess, "instantiate");
    for (int round = 0; round < 4; round++) {
        const float factor = round % 2 ? 1.0f : 0.0f; /* the third begins anew */
        OK(amp_copy(ctx, beta, &factor, 4));
        CHECK(cudaGraphLaunch(exec, st) == cudaSuccess, "replay %d", round);
        OK(amp_copy(ctx, got, d, 16));
        CHECK(got[0] == 2 + 2 * factor && got[3] == got[0], "flags %u, replay %d: %g", flags, round, got[0]);
    }
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    OK(amp_free(ctx, a));
    OK(amp_free(ctx, d));
    OK(amp_free(ctx, beta));
    amp_ctx_destroy(ctx);
    ctx = NULL;
    no_leak("captured factor");
}

/* ---- the first call of all, inside a capture: nothing has been prepared, and nothing is refused ---- */

static void test_first_capture() {
    world w;
    cudaGraph_t graph;
    OK(amp_cuda_create(&ctx, desc_with(0)));
    OK(build(&w, ctx));
    cudaStream_t st = amp_cuda_stream(ctx);
    for (int v = 0; v < ENQUEUES; v++) {
        if (!strcmp(verbs[v].name, "autocast")) continue; /* a scope's first casts need memory */
        CHECK(cudaStreamBeginCapture(st, cudaStreamCaptureModeGlobal) == cudaSuccess, "begin");
        hcu_reset_counts();
        run_ok(&w, v, v + 1);
        only_enqueues_first(verbs[v].name);
        CHECK(cudaStreamEndCapture(st, &graph) == cudaSuccess, "end");
        cudaGraphDestroy(graph);
    }
    end(&w);
    no_leak("first capture");
}

/* ---- products: what has a plan of its own, and what cuBLASLt is allowed ---- */

static amp_gemm_desc planned(world *w, size_t k, size_t bias_byte) {
    amp_gemm_desc g = AMP_ZERO;
    g.m = 16;
    g.n = 24;
    g.k = k;
    g.a = at(w, 2, AMP_F16);
    g.b = at(w, 2, AMP_F16, 4096);
    g.d = at(w, 3, AMP_F16);
    g.bias = at(w, 4, AMP_F16, bias_byte);
    return g;
}
static long searched(amp_gemm_desc g) {
    hcu_reset_counts();
    OK(amp_gemm(ctx, g));
    return hcu_group_calls(HCU_HEURISTIC);
}

/* Products that differ from one another in one thing, which the key of a plan must hold. Packed, A^T B has no
   leading dimension that tells k, and with strides of its own no stride. */
static int another(world *w, int i, amp_gemm_desc *g) { /* 0: there is no i-th */
    *g = planned(w, 32, 0);
    g->trans_a = 1;
    g->stride_a = g->stride_b = 2048;
    g->batch = i >= 16 ? 2 : 1;
    if (i >= 9 && i <= 12) g->flags = AMP_GEMM_F16_SUM;
    if (i == 7 || i == 8 || i == 12 || i == 18 || i >= 30) g->beta = amp_opt(1);
    if (i == 8 || i == 18 || i >= 30) g->c = at(w, 5, AMP_F16);
    if (i >= 30) {
        g->stride_c = 512;
        g->stride_d = 1024;
    }
    switch (i) {
    case 1: g->m = 32; break;
    case 2: g->n = 32; break;
    case 3: g->k = 40; break;
    case 4: g->lda = 40; break;
    case 5: g->ldb = 40; break;
    case 6: g->ldd = 40; break;
    case 8: g->ldc = 48; break;
    case 10: g->alpha = amp_opt(2); break;
    case 11: g->alpha = amp_opt(3); break;
    case 13: g->trans_b = 1; break;
    case 14: g->trans_a = 0; break;
    case 15: g->act = AMP_GELU; break;
    case 17: g->stride_d = 1024; break;
    case 18: g->stride_c = 512; break;
    case 19: g->stride_a = 2304; break;
    case 20: g->stride_b = 2304; break;
    case 21: g->d.dtype = AMP_F32; break;
    case 22:
        g->a.dtype = g->b.dtype = AMP_BF16;
        g->d.dtype = AMP_F32;
        break;
    case 23: g->a = at(w, 2, AMP_F16, 8); break;
    case 24: g->b = at(w, 2, AMP_F16, 4096 + 8); break;
    case 25: g->d = at(w, 3, AMP_F16, 8); break;
    case 26: g->bias = at(w, 4, AMP_F16, 8); break;
    case 27: g->bias.data = NULL; break;
    case 28: g->bias.dtype = AMP_F32; break;
    case 29: g->alpha_ptr = (const float *)w->buf[6]; break;
    case 30: g->ldd = 40; break; /* this and the next two: beside a c of its own, which else tells */
    case 32: g->d = at(w, 3, AMP_F16, 8); break;
    default: break; /* what is set above tells it from the others */
    }
    return i < 33;
}
static void test_keys(world *w) {
    amp_gemm_desc g;
    for (int again = 0; again < 2; again++)
        for (int i = 0; another(w, i, &g); i++) {
            long n = searched(g);
            CHECK(
                again ? n == 0 : n >= 1, "product %d, %s time: looked up %ld times", i, again ? "second" : "first", n);
        }
}

static void test_plans() {
    world w;
    OK(amp_cuda_create(&ctx, desc_with(0)));
    OK(build(&w, ctx));
    CHECK(searched(planned(&w, 32, 0)) == 1, "a first product is not looked up");
    CHECK(hcu_reductions() == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, "reductions allowed: %x", hcu_reductions());
    CHECK(searched(planned(&w, 32, 0)) == 0, "looked up again");
    CHECK(searched(planned(&w, 48, 0)) == 1, "a plan for another k");
    CHECK(searched(planned(&w, 32, 2)) == 1, "a plan for a bias that was aligned"); /* a GPU would fault */
    CHECK(searched(planned(&w, 32, 0)) == 0, "the first plan is gone");
    test_keys(&w);
    amp_gemm_desc f8 = planned(&w, 32, 0); /* its bias has a dtype of its own, which cuBLASLt has to be told */
    char text[400] = "";
    f8.trans_b = 1;
    f8.n = 32;
    f8.a.dtype = f8.b.dtype = AMP_F8E4M3;
    f8.d.dtype = AMP_F32;
    f8.bias.dtype = AMP_BF16;
    hcu_reset_counts();
    OK(amp_gemm(ctx, f8));
    CHECK(hcu_group_calls(HCU_MATMUL) == 1 && hcu_group_calls(HCU_LAUNCH) == 0, "a kernel adds the bias");
    OK(amp_gemm_explain(ctx, text, sizeof text, f8));
    CHECK(strstr(text, "with the bias"), "%s", text);
    f8.d.dtype = AMP_F16; /* an aux that cuBLASLt does not write: the act is left to a kernel */
    f8.bias.data = NULL;
    f8.act = AMP_GELU;
    f8.aux = at(&w, 4, AMP_F32);
    OK(amp_gemm_explain(ctx, text, sizeof text, f8));
    CHECK(strstr(text, "then the epilogue kernel"), "%s", text);
    f8.act = AMP_ACT_NONE; /* a d that is rounded before the aux is taken would be left over */
    CHECK(amp_gemm_explain(ctx, text, sizeof text, f8) == AMP_ERR_UNSUPPORTED, "%s", text);
    amp_gemm_desc gelu = planned(&w, 32, 0); /* the product writes the aux, too, and to where it is this time */
    gelu.act = AMP_GELU;
    for (size_t byte : {size_t(0), size_t(1024)}) {
        uint16_t aux[16 * 24];
        int missing = 0;
        memset(aux, 0xff, sizeof aux);
        gelu.aux = at(&w, 5, AMP_F16, byte);
        OK(amp_copy(ctx, gelu.aux.data, aux, sizeof aux));
        hcu_reset_counts();
        OK(amp_gemm(ctx, gelu));
        CHECK(hcu_group_calls(HCU_MATMUL) == 1 && hcu_group_calls(HCU_LAUNCH) == 0, "a kernel makes the aux");
        OK(amp_copy(ctx, aux, gelu.aux.data, sizeof aux));
        for (uint16_t x : aux)
            missing += x == 0xffff;
        CHECK(missing == 0, "%d elements of the aux are not written", missing);
    }
    amp_gemm_desc unread = planned(&w, 32, 0); /* a c that beta 0 does not read may lie in any way */
    unread.batch = 2;
    unread.c = at(&w, 5, AMP_F16);
    unread.stride_c = AMP_BROADCAST;
    OK(amp_gemm_explain(ctx, text, sizeof text, unread));
    CHECK(strstr(text, "cuBLASLt ("), "%s", text);
    amp_gemm_desc tall = planned(&w, 64, 0);
    tall.trans_a = 1;
    tall.stride_a = tall.stride_b = 4096;
    for (const char *call : {"cublasLtMatmulDescSetAttribute", "cublasLtMatrixLayoutSetAttribute"}) {
        tall.batch = 2; /* what has an attribute to set */
        tall.stride_d = 1024;
        hcu_fail_call(call, 1, 0, 0);
        WANT(amp_gemm(ctx, tall), AMP_ERR_CUDA);
        CHECK(strstr(amp_last_error(ctx), call), "%s", amp_last_error(ctx));
    }
    OK(amp_sync(ctx));
    end(&w);
    no_leak("plans");
}

/* ---- plan files: what is refused, and a plan that is none of this product is made anew ---- */

enum { HEAD = 120, PLAN = 496, MOST = 64 }; /* bytes of struct ampi_cu_plan_head, of ampi_cu_plan; desc.plans here */
enum { LIBRARY = 8, PLAN_BYTES = 16, DEVICE = 24, SMS = 88, WORKSPACE = 96, COUNT = 104, SUM = 112 };
enum { ALGO = 384, LT = 468, EPILOGUE = 472, COMPUTE = 476, CONVERT = 480, KERNEL = 484 };
typedef struct plan_file {
    size_t bytes;
    unsigned char b[HEAD + (MOST + 1) * PLAN + 8];
} plan_file;
static char plans_path[520];

static void plans_read(plan_file *f) {
    FILE *file = fopen(plans_path, "rb");
    memset(f, 0, sizeof *f);
    CHECK(file, "no plan file");
    if (!file) return;
    f->bytes = fread(f->b, 1, sizeof f->b, file);
    fclose(file);
    CHECK(f->bytes >= HEAD && (f->bytes - HEAD) % PLAN == 0 && f->b[COUNT] == (f->bytes - HEAD) / PLAN,
        "%zu bytes, %d plans: the layout of plan files is another one", f->bytes, f->b[COUNT]);
    CHECK(f->b[PLAN_BYTES] + 256 * f->b[PLAN_BYTES + 1] == PLAN, "a plan has %d bytes",
        f->b[PLAN_BYTES] + 256 * f->b[PLAN_BYTES + 1]);
}
static void plans_put(plan_file *f, size_t at, uint64_t x, size_t bytes) { /* with a sum that is right */
    ampi_xxh h = ampi_xxh_begin();
    memcpy(f->b + at, &x, bytes);
    ampi_xxh_add(&h, f->b, SUM);
    ampi_xxh_add(&h, f->b + HEAD, f->bytes - HEAD);
    x = ampi_xxh_end(&h);
    memcpy(f->b + SUM, &x, 8);
}
static amp_status plans_load(const plan_file *f, size_t bytes) {
    FILE *file = fopen(plans_path, "wb");
    CHECK(file && fwrite(f->b, 1, bytes, file) == bytes, "cannot write %s", plans_path);
    if (file) fclose(file);
    return amp_cuda_plans_load(ctx, plans_path);
}
static void plans_refused(const plan_file *f, size_t bytes, const char *sentence) {
    WANT(plans_load(f, bytes), AMP_ERR_FORMAT);
    CHECK(strstr(amp_last_error(ctx), sentence), "%zu bytes: %s", bytes, amp_last_error(ctx));
}
static void next_context(world *w) { /* the same as a process that begins again */
    amp_cuda_desc d = desc_with(0);
    d.workspace_bytes = 65536; /* less to make */
    d.plans = MOST;
    if (ctx) end(w);
    OK(amp_cuda_create(&ctx, d));
    OK(build(w, ctx));
    warnings = 0;
}
static void plan_arguments(world *w) {
    amp_ctx *cpu;
    OK(amp_cuda_plans_save(ctx, plans_path)); /* of no product */
    OK(amp_cuda_plans_load(ctx, plans_path));
    OK(amp_cpu_create(&cpu, NULL));
    CHECK(amp_cuda_plans_save(NULL, plans_path) == AMP_ERR_INVALID_ARG, "save without a context");
    CHECK(amp_cuda_plans_load(NULL, plans_path) == AMP_ERR_INVALID_ARG, "load without a context");
    CHECK(amp_cuda_plans_save(cpu, plans_path) == AMP_ERR_INVALID_ARG, "save of a CPU context");
    CHECK(strstr(amp_last_error(cpu), "amp_cuda_plans_save: ctx is not a CUDA context"), "%s", amp_last_error(cpu));
    CHECK(amp_cuda_plans_load(cpu, plans_path) == AMP_ERR_INVALID_ARG, "load into a CPU context");
    CHECK(strstr(amp_last_error(cpu), "amp_cuda_plans_load: ctx is not a CUDA context"), "%s", amp_last_error(cpu));
    amp_ctx_destroy(cpu);
    WANT(amp_cuda_plans_save(ctx, NULL), AMP_ERR_INVALID_ARG);
    CHECK(strstr(amp_last_error(ctx), "path is NULL"), "%s", amp_last_error(ctx));
    WANT(amp_cuda_plans_load(ctx, NULL), AMP_ERR_INVALID_ARG);
    CHECK(strstr(amp_last_error(ctx), "path is NULL"), "%s", amp_last_error(ctx));
    (void)remove(plans_path);
    CHECK(mkfifo(plans_path, 0600) == 0, "no fifo");
    (void)alarm(60); /* who opens it waits for a writer */
    WANT(amp_cuda_plans_load(ctx, plans_path), AMP_ERR_IO);
    CHECK(strstr(amp_last_error(ctx), "regular file"), "%s", amp_last_error(ctx));
    WANT(amp_cuda_plans_save(ctx, plans_path), AMP_ERR_IO);
    (void)alarm(0);
    (void)remove(plans_path);
    amp_gemm_desc plain = planned(w, 32, 0); /* a plan without cuBLASLt is not saved */
    plain.d.dtype = AMP_BF16;
    plain.bias.data = NULL;
    OK(amp_gemm(ctx, plain));
    CHECK(searched(planned(w, 32, 0)) == 1 && searched(planned(w, 48, 0)) == 1, "plans are there already");
    OK(amp_cuda_plans_save(ctx, plans_path));
}
/* Refused as damaged, or as made elsewhere; nothing of such a file is taken. */
static void plan_files_refused(world *w, const plan_file *f) {
    static const char damaged[] = "is not a plan file of this version, or damaged";
    static const struct {
        int at;
        const char *said;
    } others[] = {{LIBRARY, "was made with cuBLASLt 7 on "},
        {DEVICE, "on \7ostcuda device 0 sm_90 with 132 SMs; here is "}, {SMS, "with 7 SMs; here is "},
        {WORKSPACE, "(or the workspace differs)"}};
    for (size_t bytes = 0; bytes < f->bytes; bytes++)
        plans_refused(f, bytes, damaged);
    plans_refused(f, f->bytes + 1, damaged);
    for (int i = 0; i < 3; i++) {
        plan_file x = *f;
        plans_put(&x, i == 0 ? 7 : i == 1 ? (size_t)PLAN_BYTES : (size_t)COUNT, i == 2 ? 1 : 7, i ? 8 : 1);
        plans_refused(&x, x.bytes, damaged); /* magic, bytes of a plan, a count that is too small */
    }
    for (const auto &o : others) {
        plan_file x = *f;
        plans_put(&x, (size_t)o.at, 7, o.at == DEVICE ? 1 : 8);
        plans_refused(&x, x.bytes, o.said);
    }
    plan_file wrong = *f;
    wrong.b[HEAD + ALGO + 4] ^= 1; /* under the old sum */
    plans_refused(&wrong, wrong.bytes, damaged);
    plan_file many = *f;
    for (size_t i = 2; i <= MOST; i++)
        memcpy(many.b + HEAD + i * PLAN, f->b + HEAD, PLAN);
    many.bytes = HEAD + (MOST + 1) * PLAN;
    plans_put(&many, COUNT, 65537, 8);
    plans_refused(&many, many.bytes, damaged);
    CHECK(searched(planned(w, 32, 0)) == 1, "a refused file left a plan");
    plans_put(&many, COUNT, MOST + 1, 8); /* more than there is room for, the same again and again */
    OK(plans_load(&many, many.bytes));
    CHECK(searched(planned(w, 32, 0)) == 0 && searched(planned(w, 48, 0)) == 0, "a plan is missing");
}
/* One field of a plan is of another product: noticed at its first use, said, and made anew. */
static void plans_not_valid(world *w, const plan_file *f) {
    static const struct {
        size_t at, bytes;
        uint64_t x;
    } fields[] = {{LT, 4, 0}, {EPILOGUE, 4, CUBLASLT_EPILOGUE_DEFAULT}, {COMPUTE, 4, CUBLAS_COMPUTE_16F},
        {CONVERT, 4, 1}, {KERNEL, 4, 1}, {ALGO + 8, 8, 1 << 30}}; /* the last: the algorithm's workspace */
    for (const auto &field : fields) {
        plan_file x = *f;
        next_context(w);
        plans_put(&x, HEAD + field.at, field.x, field.bytes);
        OK(plans_load(&x, x.bytes));
        CHECK(searched(planned(w, 32, 0)) == 1, "the field at %zu is not looked at", field.at);
        CHECK(warnings == 1 && strstr(last_warning, "amp_gemm: a plan from a file is not valid here; made anew"),
            "%ld warnings, the last: %s", warnings, last_warning);
        CHECK(searched(planned(w, 32, 0)) == 0 && warnings == 1, "made anew again");
    }
    next_context(w); /* nor one that cannot be described, or that cannot be made anew */
    OK(plans_load(f, f->bytes));
    hcu_fail_call("cublasLtMatmulDescSetAttribute", 1, 0, 0);
    CHECK(searched(planned(w, 32, 0)) == 1 && warnings == 1, "%ld warnings", warnings);
    next_context(w);
    OK(plans_load(f, f->bytes));
    hcu_fail_call("cublasLtMatmulAlgoCheck", 1, 0, 0);
    CHECK(searched(planned(w, 32, 0)) == 1 && warnings == 1, "%ld warnings", warnings);
    plan_file x = *f;
    next_context(w);
    plans_put(&x, HEAD + LT, 0, 4);
    OK(plans_load(&x, x.bytes));
    hcu_fail_call("cublasLtMatmulAlgoGetHeuristic", 1, CUBLAS_STATUS_EXECUTION_FAILED, 0);
    WANT(amp_gemm(ctx, planned(w, 32, 0)), AMP_ERR_CUDA);
    CHECK(searched(planned(w, 32, 0)) == 1, "what could not be made anew counts as a plan");
}
/* The way and the algorithm of another product, which cuBLASLt would take: without the bias, or with sums in F16. */
static void plans_of_others(world *w) {
    amp_f16 want[16 * 24], got[16 * 24];
    plan_file f;
    amp_gemm_desc g = planned(w, 32, 0), other[2] = {g, g};
    other[0].bias.data = NULL;
    other[1].flags = AMP_GEMM_F16_SUM;
    for (const amp_gemm_desc &o : other) {
        next_context(w);
        OK(amp_cast(ctx, at(w, 2, AMP_F16), at(w, 0, AMP_F32), N, NULL));
        OK(amp_copy_async(ctx, w->buf[4], w->buf[2], N)); /* a bias */
        OK(amp_gemm(ctx, g = planned(w, 32, 0)));
        OK(amp_copy(ctx, want, g.d.data, sizeof want));
        amp_gemm_desc theirs = planned(w, 32, 0);
        theirs.flags = o.flags;
        if (!o.bias.data) theirs.bias.data = NULL;
        OK(amp_gemm(ctx, theirs));
        OK(amp_cuda_plans_save(ctx, plans_path));
        plans_read(&f);
        CHECK(f.b[COUNT] == 2, "%d plans", f.b[COUNT]);
        memcpy(f.b + HEAD + ALGO, f.b + HEAD + PLAN + ALGO, 64);
        memcpy(f.b + HEAD + COMPUTE, f.b + HEAD + PLAN + COMPUTE, 4);
        plans_put(&f, HEAD + EPILOGUE, f.b[HEAD + PLAN + EPILOGUE], 4);
        OK(plans_load(&f, f.bytes));
        warnings = 0;
        CHECK(searched(g) == 1 && warnings == 1, "another product's plan is taken: %s", last_log);
        OK(amp_copy(ctx, got, g.d.data, sizeof got));
        CHECK(!memcmp(want, got, sizeof got), "another product");
    }
}
/* A plan from a file is checked once, and goes before one that is there; the oldest makes room. */
static void plans_in_order(world *w, const plan_file *f) {
    char text[300];
    plan_file x = *f;
    next_context(w);
    OK(amp_gemm_explain(ctx, text, sizeof text, planned(w, 32, 0)));
    CHECK(strstr(text, "algorithm 0,"), "%s", text);
    plans_put(&x, HEAD + ALGO + 4, 2, 4);
    OK(plans_load(&x, x.bytes));
    hcu_reset_counts();
    for (int i = 0; i < 2; i++)
        OK(amp_gemm_explain(ctx, text, sizeof text, planned(w, 32, 0)));
    CHECK(strstr(text, "algorithm 2,"), "%s", text);
    CHECK(hcu_calls("cublasLtMatmulAlgoCheck") == 1 && warnings == 0, "%ld checks, %ld warnings",
        hcu_calls("cublasLtMatmulAlgoCheck"), warnings);
    next_context(w);
    for (size_t i = 0; i < MOST + 2; i++)
        CHECK(searched(planned(w, 2 + 2 * i, 0)) == 1, "product %zu", i);
    OK(amp_cuda_plans_save(ctx, plans_path));
    plans_read(&x);
    CHECK(x.b[COUNT] == MOST, "%d plans", x.b[COUNT]);
    next_context(w);
    OK(amp_cuda_plans_load(ctx, plans_path));
    CHECK(searched(planned(w, 6, 0)) == 0, "the third is not remembered");
    CHECK(searched(planned(w, 4, 0)) == 1, "the second is");
    CHECK(searched(planned(w, 8, 0)) == 1, "the fourth did not make room");
    CHECK(searched(planned(w, 6, 0)) == 0, "the third, which was used, did");
}
static void test_plan_files() {
    world w;
    plan_file f;
    snprintf(plans_path, sizeof plans_path, "%s.plans", state_file);
    hcu_reset();
    next_context(&w);
    plan_arguments(&w);
    plans_read(&f);
    CHECK(f.b[COUNT] == 2, "%d plans are saved, two are of cuBLASLt", f.b[COUNT]);
    next_context(&w);
    plan_files_refused(&w, &f);
    plans_not_valid(&w, &f);
    plans_of_others(&w);
    plans_in_order(&w, &f);
    end(&w);
    remove(plans_path);
    no_leak("plan files");
}

/* ---- memory that a verb must not leave: a small workspace, and a bias that is longer than the room for one ---- */

/* ---- captures of other people's streams: no function of class setup breaks one, and no first call of a verb ---- */

static cudaStream_t other_stream;
static void other_begin(cudaStreamCaptureMode mode) {
    CHECK(cudaStreamBeginCapture(other_stream, mode) == cudaSuccess, "begin");
}
/* It is whole, unless cuBLASLt's handle was destroyed, and the thread has its mode back. */
static void other_end(const char *what) {
    const int whole = strcmp(what, "amp_ctx_destroy") != 0;
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    cudaGraph_t graph = NULL;
    cudaThreadExchangeStreamCaptureMode(&mode);
    CHECK(mode == cudaStreamCaptureModeGlobal, "%s: the thread's capture mode is %d", what, (int)mode);
    cudaThreadExchangeStreamCaptureMode(&mode);
    CHECK((cudaStreamEndCapture(other_stream, &graph) == cudaSuccess) == whole, "%s and the capture of another stream",
        what);
    if (!whole) (void)cudaGetLastError();
    if (graph) cudaGraphDestroy(graph);
}
typedef struct others { /* what a chain of setup functions makes */
    world *w;
    void *p;
    amp_params *set;
    amp_scaler *s;
    amp_fp8 *f;
} others;
static amp_linear_desc other_linear(others *o) {
    amp_linear_desc l = AMP_ZERO;
    l.rows = 16;
    l.in = l.out = 32;
    l.x = at(o->w, 2, AMP_F16);
    l.w = at(o->w, 2, AMP_F16, 4096);
    l.y = at(o->w, 3, AMP_F16);
    return l;
}
static amp_param_desc other_param() {
    amp_param_desc e = AMP_ZERO;
    e.count = 70;
    e.init = numbers;
    return e;
}
static const struct {
    const char *name;
    amp_status (*call)(others *);
} setups[] = {{"amp_alloc", [](others *o) { return amp_alloc(ctx, &o->p, 100, NULL); }},
    {"amp_free", [](others *o) { return amp_free(ctx, o->p); }},
    {"amp_params_create", [](others *o) { return amp_params_create(&o->set, ctx, NULL); }},
    {"amp_params_add", [](others *o) { return amp_params_add(o->set, other_param()); }},
    {"amp_params_commit", [](others *o) { return amp_params_commit(o->set); }},
    {"amp_params_use", [](others *o) { return amp_params_use(o->set, NULL); }},
    {"amp_params_destroy", [](others *o) { return amp_params_destroy(o->set), AMP_OK; }},
    {"amp_scaler_create", [](others *o) { return amp_scaler_create(&o->s, ctx, NULL); }},
    {"amp_scaler_destroy", [](others *o) { return amp_scaler_destroy(o->s), AMP_OK; }},
    {"amp_fp8_create", [](others *o) { return amp_fp8_create(&o->f, ctx, NULL); }},
    {"amp_fp8_destroy", [](others *o) { return amp_fp8_destroy(o->f), AMP_OK; }},
    {"amp_autocast_begin", [](others *o) { return v_autocast(o->w); }},
    {"amp_autocast_release", [](others *) { return amp_autocast_release(ctx); }},
    {"amp_snapshot_begin", [](others *o) { return v_autocast(o->w); }},
    {"amp_gemm_tune", [](others *o) { return amp_gemm_tune(ctx, planned(o->w, 32, 0)); }},
    {"amp_linear_tune", [](others *o) { return amp_linear_tune(ctx, other_linear(o)); }}};

static void test_other_capture(const amp_cuda_desc *d, cudaStreamCaptureMode mode) {
    world w;
    others o = AMP_ZERO;
    hcu_unload(0);
    cudaStreamCreateWithFlags(&other_stream, cudaStreamNonBlocking);
    other_begin(mode);
    OK(amp_cuda_create(&ctx, d));
    other_end("amp_cuda_create");
    other_begin(mode);
    OK(build(&w, ctx));
    other_end("making sets");
    o.w = &w;
    for (const auto &s : setups) {
        other_begin(mode);
        amp_status got = s.call(&o);
        CHECK(got == AMP_OK, "%s -> %d: %s", s.name, (int)got, amp_last_error(ctx));
        other_end(s.name);
    }
    for (int v = 0; v < VERBS; v++) {
        other_begin(mode);
        run_ok(&w, v, v + 1);
        other_end(verbs[v].name);
    }
    other_begin(mode);
    drop(&w);
    other_end("giving sets back");
    other_begin(mode);
    amp_ctx_destroy(ctx);
    ctx = NULL;
    other_end("amp_ctx_destroy");
    cudaStreamDestroy(other_stream);
    hcu_unload(1);
    no_leak("other capture");
}
static void test_other_captures() {
#define SETUP_setup(name) name,
#define SETUP_query(name)
#define SETUP_enqueue(name)
#define SETUP_host(name)
#define SETUP_enqueue_or_query(name)
#define SETUP(name, class) SETUP_##class(#name)
    static const char *const names[] = {VERB_LIST(SETUP)};
    for (const char *name : names) {
        int there = 0;
        for (const auto &s : setups)
            there |= !strcmp(s.name, name);
        CHECK(there, "%s is missing among the functions of class setup", name);
    }
    amp_cuda_desc plain = desc_with(0), pool = desc_with(AMP_CUDA_POOL), debug = desc_with(AMP_CUDA_DEBUG),
                  lent = plain;
    lent.allocator.alloc_fn = device_alloc;
    lent.allocator.free_fn = device_free;
    for (const amp_cuda_desc *d : {&plain, &pool, &debug, &lent})
        test_other_capture(d, cudaStreamCaptureModeGlobal);
    test_other_capture(&plain, cudaStreamCaptureModeThreadLocal);
}

static void refuses(const amp_cuda_desc *d, amp_status status, const char *sentence);
/* A verb of a context on another device than the thread's: the thread's comes back, and a failure of that is told. */
/* How often products are looked up: by explain, which runs nothing. */
static uint64_t searches() {
    amp_cuda_plans p = AMP_ZERO;
    OK(amp_cuda_plans_get(ctx, &p));
    return p.searches;
}
static amp_array somewhere(int i, size_t byte) { return amp_arr((void *)(((uintptr_t)i << 40) + byte), AMP_F16); }
static void layer_products(size_t rows, size_t in, size_t out, size_t byte) {
    for (int i = 0; i < 3; i++) { /* y, dx, dw */
        char text[320];
        amp_gemm_desc g = AMP_ZERO;
        g.m = i == 2 ? out : rows;
        g.n = i == 0 ? out : in;
        g.k = i == 0 ? in : i == 1 ? out : rows;
        g.trans_a = i == 2;
        g.trans_b = i == 0;
        g.a = somewhere(1, byte);
        g.b = somewhere(2, byte);
        g.d = somewhere(3, byte);
        OK(amp_gemm_explain(ctx, text, sizeof text, &g));
    }
}
static void gpt2_products(size_t tokens) {
    for (size_t layer = 0; layer < 12; layer++) { /* in buffers of four alignments */
        size_t byte = (size_t)32 << layer % 4;
        layer_products(8 * tokens, 768, 2304, byte);
        layer_products(8 * tokens, 768, 768, byte);
        layer_products(8 * tokens, 768, 3072, byte);
        layer_products(8 * tokens, 3072, 768, byte);
    }
    layer_products(8 * tokens, 768, 50257, 256);
}
static void models_step(world *w, int layers) {
    for (int i = 0; i < layers; i++)
        layer_products(16, 8 + 8 * (size_t)(i % 8), 8 + 8 * (size_t)(i / 8), 0);
    if (!layers) gpt2_products(1024);
    if (!layers) gpt2_products(512);
    OK(v_step(w));
}
static void test_plans_kept() {
    world w;
    amp_cuda_plans p = {7, 7};
    amp_cuda_desc d = desc_with(0);
    WANT(amp_cuda_plans_get(NULL, &p), AMP_ERR_INVALID_ARG);
    CHECK(p.searches == 0 && p.room == 0, "of no context: %d", (int)p.room);
    for (int layers : {10, 22, 100, 0}) {
        OK(amp_cuda_create(&ctx, d));
        OK(build(&w, ctx));
        WANT(amp_cuda_plans_get(ctx, NULL), AMP_ERR_INVALID_ARG);
        OK(amp_cuda_plans_get(ctx, &p));
        CHECK(p.searches == 0 && p.room == 512, "%d searches, room for %d", (int)p.searches, (int)p.room);
        models_step(&w, layers);
        uint64_t first = searches();
        CHECK(first == (layers ? 3u * (unsigned)layers : 102u), "%d layers: %d searches", layers, (int)first);
        warnings = 0;
        for (int step = 0; step < 12; step++)
            models_step(&w, layers);
        CHECK(searches() == first, "%d layers: %d searches after the first step", layers, (int)(searches() - first));
        layer_products(48, 48, 48, 0); /* an evaluation */
        CHECK(warnings == 0 && searches() == first + 3, "%ld warnings: %s", warnings, last_warning);
        end(&w);
    }
    d.plans = 29; /* for 30 products in turn: each is looked up again and again, and that is said once */
    OK(amp_cuda_create(&ctx, d));
    OK(build(&w, ctx));
    warnings = 0;
    for (int step = 1; step <= 15; step++) {
        models_step(&w, 10);
        CHECK(searches() == 30u * (unsigned)step, "step %d: %d searches", step, (int)searches());
        CHECK(warnings == (step > 12), "step %d: %ld warnings", step, warnings);
    }
    CHECK(strstr(last_warning, "are still looked for after step 10") && strstr(last_warning, "than the 29 products"),
        "%s", last_warning);
    end(&w);
    d.plans = 3;
    OK(amp_cuda_create(&ctx, d));
    OK(build(&w, ctx));
    for (size_t k : {16, 32, 48, 16, 64}) /* 32 is the least recently used one */
        (void)searched(planned(&w, k, 0));
    CHECK(searched(planned(&w, 16, 0)) == 0 && searched(planned(&w, 64, 0)) == 0, "a plan that was used has left");
    CHECK(searched(planned(&w, 48, 0)) == 0 && searched(planned(&w, 32, 0)) == 1, "the plan that was not is there");
    hcu_fail_call("cublasLtMatmulDescSetAttribute", 1, 0, 0); /* one that is not made leaves an empty place */
    WANT(amp_gemm(ctx, planned(&w, 80, 0)), AMP_ERR_CUDA);
    CHECK(searched(planned(&w, 80, 0)) == 1 && searched(planned(&w, 80, 0)) == 0, "it is not made afterwards");
    CHECK(searched(planned(&w, 32, 0)) == 0 && searched(planned(&w, 48, 0)) == 0, "the empty place was not taken");
    end(&w);
    no_leak("plans kept");
}

static void test_device_comes_back() {
    void *p = NULL;
    int now = 9;
    amp_cuda_desc d = desc_with(0);
    hcu_reset();
    d.device = 1;
    OK(amp_cuda_create(&ctx, d));
    OK(amp_alloc(ctx, &p, 64, NULL));
    for (long nth = 1; nth <= 2; nth++) { /* there; back */
        hcu_reset_counts();
        hcu_fail_call("cudaSetDevice", nth, 0, 0);
        WANT(amp_zero(ctx, p, 64), AMP_ERR_CUDA);
        CHECK(hcu_injected() == 1 && strstr(amp_last_error(ctx), "cudaSetDevice"), "%s", amp_last_error(ctx));
        CHECK(cudaGetDevice(&now) == cudaSuccess && now == 0, "device %d", now);
    }
    OK(amp_free(ctx, p));
    amp_ctx_destroy(ctx);
    ctx = NULL;
    no_leak("device");
}
/* A context of device 1 does not begin to use device 0, whose place the thread then does not go back to. */
static void test_devices_in_use() {
    world w;
    int now = 9;
    amp_cuda_desc d = desc_with(0);
    d.device = 1;
    hcu_reset();
    for (int used = 0; used < 2; used++) {
        hcu_unload(1);
        hcu_set_devices(2); /* the thread is at device 0 */
        if (used) cudaSetDevice(0);
        OK(amp_cuda_create(&ctx, d));
        OK(build(&w, ctx));
        if (!used) cudaGetDevice(&now);
        CHECK(used || now == 1, "the thread is at device %d", now);
        for (int v = 0; v < VERBS; v++) {
            run_ok(&w, v, v + 1);
            CHECK(hcu_devices_in_use() == (used ? 3u : 2u), "%s: devices %u", verbs[v].name, hcu_devices_in_use());
            CHECK(cudaGetDevice(&now) == cudaSuccess && now == !used, "%s: device %d", verbs[v].name, now);
        }
        end(&w);
        CHECK(hcu_devices_in_use() == (used ? 3u : 2u), "destroy: devices %u", hcu_devices_in_use());
        CHECK(cudaGetDevice(&now) == cudaSuccess && now == !used, "destroy: device %d", now);
    }
    hcu_unload(1);
    cudaSetDevice(0);
    hcu_fail_call("cudaGetDriverEntryPointByVersion", 1, 0, 0); /* a driver that does not tell: the device comes back */
    hcu_fail_call("cudaGetDriverEntryPointByVersion", 1, 0, 0);
    OK(amp_cuda_create(&ctx, d));
    amp_ctx_destroy(ctx);
    ctx = NULL;
    CHECK(cudaGetDevice(&now) == cudaSuccess && now == 0, "device %d", now);
    no_leak("devices in use");
}
/* A context of the program's own on the same device, as cuCtxCreate makes it current: each verb works in the device's
   primary one, and then the program's is current again. */
static void test_driver_contexts() {
    int mine = 0, now = 9; /* stands for a CUcontext */
    world w;
    hcu_reset();
    for (int known = 1; known >= 0; known--) { /* 0: a driver that does not tell: as before */
        if (!known) hcu_fail_call("cudaGetDriverEntryPointByVersion", 2, 0, 0);
        hcu_set_context(known ? &mine : NULL);
        OK(amp_cuda_create(&ctx, desc_with(0)));
        CHECK(hcu_context() == (known ? &mine : NULL), "amp_cuda_create: %p", hcu_context());
        OK(build(&w, ctx));
        for (int v = 0; v < VERBS && known; v++) {
            run_ok(&w, v, v + 1);
            CHECK(hcu_context() == &mine, "%s: the program's context is gone", verbs[v].name);
        }
        CHECK(cudaGetDevice(&now) == cudaSuccess && now == 0, "device %d", now);
        drop(&w);
        CHECK(hcu_context() == (known ? &mine : NULL), "drop: %p", hcu_context());
        amp_ctx_destroy(ctx);
        ctx = NULL;
        CHECK(hcu_context() == (known ? &mine : NULL), "amp_ctx_destroy: %p", hcu_context());
        hcu_reset();
        no_leak("contexts of the driver");
    }
    amp_cuda_desc d = desc_with(0);
    d.workspace_bytes = (size_t)1 << 40;
    hcu_set_context(&mine);
    refuses(&d, AMP_ERR_NO_MEMORY, "cudaMalloc");
    CHECK(hcu_context() == &mine, "a creation that fails");
    hcu_reset();
}
/* The default streams of a context are those of its device, not of the thread's. */
static void test_capture_of_default_stream() {
    amp_cuda_desc d = desc_with(0);
    cudaGraph_t graph;
    hcu_reset();
    hcu_set_devices(2);
    cudaSetDevice(0);
    d.device = 1;
    d.stream = AMP_CUDA_STREAM_PER_THREAD;
    OK(amp_cuda_create(&ctx, d));
    OK(amp_autocast_begin(ctx, NULL));
    OK(amp_autocast_end(ctx));
    CHECK(cudaStreamBeginCapture(cudaStreamPerThread, cudaStreamCaptureModeRelaxed) == cudaSuccess, "begin");
    amp_autocast_desc larger = AMP_ZERO; /* of device 0's stream: the arena may grow */
    larger.arena = 1 << 20;
    OK(amp_autocast_begin(ctx, &larger));
    OK(amp_autocast_end(ctx));
    CHECK(cudaStreamEndCapture(cudaStreamPerThread, &graph) == cudaSuccess, "end");
    cudaGraphDestroy(graph);
    cudaSetDevice(1);
    CHECK(cudaStreamBeginCapture(cudaStreamPerThread, cudaStreamCaptureModeRelaxed) == cudaSuccess, "begin");
    cudaSetDevice(0);
    larger.arena = 4 << 20; /* of device 1's: it may not */
    WANT(amp_autocast_begin(ctx, &larger), AMP_ERR_CAPTURE);
    cudaSetDevice(1);
    CHECK(cudaStreamEndCapture(cudaStreamPerThread, &graph) == cudaSuccess, "end");
    cudaGraphDestroy(graph);
    cudaSetDevice(0);
    amp_ctx_destroy(ctx);
    ctx = NULL;
    no_leak("capture of a default stream");
}

/* The workspace that a context takes by itself, in MiB. */
static size_t own_workspace(int major, int minor) {
    hcu_set_arch(0, major, minor);
    size_t before = hcu_device_bytes(0);
    OK(amp_cuda_create(&ctx, desc_with(0)));
    size_t bytes = hcu_device_bytes(0) - before;
    amp_ctx_destroy(ctx);
    ctx = NULL;
    hcu_set_arch(0, 9, 0);
    return bytes >> 20;
}
/* The figures of >>MEMORY at the head of amp_cuda.cuh: what a context with so many plans takes beside its workspace. */
typedef struct taken { size_t device, pinned, host; } taken;
static size_t host_bytes;
static void *counted_alloc(size_t n, void *) {
    host_bytes += n;
    return malloc(n);
}
static void counted_free(void *p, size_t n, void *) {
    host_bytes -= n;
    free(p);
}
static taken taken_by(uint32_t plans) {
    amp_cuda_desc d = desc_with(0);
    void *workspace = NULL;
    CHECK(cudaMalloc(&workspace, 1 << 20) == cudaSuccess, "a workspace");
    const size_t device = hcu_device_bytes(0), pinned = hcu_pinned_bytes();
    d.workspace = workspace;
    d.workspace_bytes = 1 << 20;
    d.plans = plans;
    d.host.alloc_fn = counted_alloc;
    d.host.free_fn = counted_free;
    OK(amp_cuda_create(&ctx, d));
    const taken t = {hcu_device_bytes(0) - device, hcu_pinned_bytes() - pinned, host_bytes};
    amp_ctx_destroy(ctx);
    ctx = NULL;
    CHECK(host_bytes == 0, "%zu bytes of host memory are left", host_bytes);
    cudaFree(workspace);
    return t;
}
static void test_figures_of_memory() {
    const taken few = taken_by(100), many = taken_by(1100);
    const double plan = (double)(many.host - few.host) / 1000;
    CHECK((few.pinned + 512) / 1024 == 6, "a scratch block of %zu bytes", few.pinned);
    CHECK(few.device >= few.pinned && few.device <= few.pinned + 1024, "%zu bytes on the device", few.device);
    CHECK(many.device == few.device && many.pinned == few.pinned, "plans take device memory");
    CHECK(plan > 475 && plan < 525, "a plan takes %.0f bytes", plan);
}
static void test_own_workspace() {
    CHECK(own_workspace(8, 9) == 4 && own_workspace(9, 0) == 32 && own_workspace(10, 0) == 32, "other workspaces");
}

/* Tunes a product after `prepare`, which may be NULL; what it logged stays in last_log. */
static void tune(void (*prepare)(double), double argument) {
    world w;
    OK(amp_cuda_create(&ctx, desc_with(0)));
    OK(build(&w, ctx));
    amp_gemm_desc g = planned(&w, 32, 0);
    g.bias.data = NULL;
    last_log[0] = 0;
    if (prepare) prepare(argument);
    OK(amp_gemm_tune(ctx, &g));
    end(&w);
}
/* A candidate that cuBLASLt refuses to run counts for nothing. */
static void refuse_product(double which) {
    hcu_fail_call("cublasLtMatmul", (long)which, CUBLAS_STATUS_NOT_SUPPORTED, 0);
}
static unsigned tuned(long refused) { /* the refused-th product is */
    unsigned tried = 0;
    const char *at;
    tune(refused ? refuse_product : NULL, (double)refused);
    CHECK(hcu_injected() == (refused != 0), "%ld products were refused", hcu_injected());
    at = strstr(last_log, "first of ");
    CHECK(at && sscanf(at, "first of %u", &tried) == 1, "%s", last_log);
    hcu_reset();
    return tried;
}
/* The fastest is taken: each candidate takes longer than the one before it, or less. */
static void time_products(double more_ms) { hcu_product_time(100.0, more_ms); }
static void tuned_by(double more_ms, double *least, double *first) {
    tune(time_products, more_ms);
    CHECK(sscanf(last_log, "amp_gemm_tune: %lf ms, the first of %*u candidates %lf ms", least, first) == 2, "%s",
        last_log);
    hcu_reset();
}
static void test_tuning_takes_the_fastest(unsigned candidates) {
    double least = 0, first = 0;
    tuned_by(0.125, &least, &first);
    CHECK(first > 100.0 && least == first, "the first is the fastest: %g of %g ms", least, first);
    tuned_by(-0.125, &least, &first);
    CHECK(fabs(first - least - 0.125 * 6 * (candidates - 1)) < 1e-3, "the last is the fastest: %g of %g ms", least,
        first);
}
static void test_tuning() {
    world w;
    hcu_reset();
    unsigned all = tuned(0);
    test_tuning_takes_the_fastest(all);
    CHECK(all > 2, "%u candidates", all);
    CHECK(tuned(1) == all - 1, "the candidate whose first run is refused counts");
    CHECK(tuned(2) == all - 1, "the candidate whose second run is refused counts");
    OK(amp_cuda_create(&ctx, desc_with(0)));
    OK(build(&w, ctx));
    hcu_fail_call("cublasLtMatmul", 1, CUBLAS_STATUS_EXECUTION_FAILED, 0);
    WANT(amp_gemm_tune(ctx, planned(&w, 32, 0)), AMP_ERR_CUDA); /* that is no refusal */
    end(&w);
    hcu_reset();
    no_leak("tuning");
}

/* GELU's derivative and the sums of its columns: in the product, the sums after it, or both after it. */
static amp_gemm_desc gradient(world *w, amp_dtype sums) { /* sums AMP_AUTO: none */
    amp_gemm_desc g = planned(w, 32, 0);
    g.act = AMP_GELU;
    g.backward = 1;
    g.bias.data = NULL;
    g.aux = at(w, 5, AMP_F16);
    if (sums != AMP_AUTO) g.dbias = at(w, 7, sums);
    return g;
}
static unsigned tuned_gradient(world *w, amp_dtype sums) {
    amp_gemm_desc g = gradient(w, sums);
    unsigned tried = 0;
    OK(amp_gemm_tune(ctx, &g));
    CHECK(sscanf(last_log, "amp_gemm_tune: %*f ms, the first of %u", &tried) == 1, "%s", last_log);
    return tried;
}
static void test_tuning_gradients() {
    world w;
    char how[500];
    hcu_reset();
    OK(amp_cuda_create(&ctx, desc_with(0)));
    OK(build(&w, ctx));
    hcu_product_time(100.0, 0.125);
    unsigned inside = tuned_gradient(&w, AMP_F16), beside = tuned_gradient(&w, AMP_F32);
    CHECK(inside && 2 * inside == 3 * beside, "%u candidates, %u where cuBLASLt cannot make the sums", inside, beside);
    amp_gemm_desc g = gradient(&w, AMP_F16);
    OK(amp_gemm_explain(ctx, how, sizeof how, &g));
    CHECK(strstr(how, " with GELU's derivative and bias gradient"), "tuned, the first way is the fastest: %s", how);
    hcu_product_time(100.0, -0.125);
    OK(amp_gemm_tune(ctx, &g));
    OK(amp_gemm_explain(ctx, how, sizeof how, &g));
    CHECK(!strstr(how, " with GELU") && strstr(how, "kernel"), "tuned, the last way is the fastest: %s", how);
    g.m = 8; /* not tuned: by what each way does, whatever the clock says */
    OK(amp_gemm_explain(ctx, how, sizeof how, &g));
    CHECK(strstr(how, " with GELU's derivative and bias gradient"), "%s", how);
    g.m = 4;
    hcu_fail_call("cublasLtMatmulAlgoGetHeuristic", 1, CUBLAS_STATUS_NOT_SUPPORTED, 0);
    OK(amp_gemm_explain(ctx, how, sizeof how, &g)); /* the next best */
    CHECK(strstr(how, " with GELU's derivative, then the bias gradient kernel"), "%s", how);
    end(&w);
    hcu_reset();
    no_leak("tuning gradients");
}
/* Beside an E4M3 d cuBLASLt keeps what GELU got in 16 bits: BF16, or F16 with a bias of F16. */
static void test_f8_aux() {
    static const amp_dtype kept[] = {AMP_BF16, AMP_F16};
    world w;
    char how[500];
    hcu_reset();
    OK(amp_cuda_create(&ctx, desc_with(0)));
    OK(build(&w, ctx));
    for (int i = 0; i < 2; i++) {
        amp_gemm_desc g = planned(&w, 32, 0);
        g.n = 32;
        g.ldd = 48;
        g.trans_b = 1;
        g.a.dtype = g.b.dtype = g.d.dtype = AMP_F8E4M3;
        g.act = AMP_GELU;
        g.aux = at(&w, 5, kept[i]);
        if (i == 0) g.bias.data = NULL;
        if (i == 1) g.bias.dtype = AMP_F16;
        OK(amp_gemm_explain(ctx, how, sizeof how, &g));
        CHECK(strstr(how, "cuBLASLt") && strstr(how, " with GELU") && !strstr(how, "epilogue kernel"), "%s", how);
        OK(amp_gemm(ctx, &g));
        g.a.dtype = g.b.dtype = AMP_F8E5M2; /* no kernel has them both */
        WANT(amp_gemm(ctx, &g), AMP_ERR_UNSUPPORTED);
    }
    end(&w);
    no_leak("an FP8 product's aux");
}

/* Tuning has outputs of its own: those of the product stay as they are. */
static amp_gemm_desc tunable(world *w, int i) {
    amp_gemm_desc g = planned(w, 32, 0);
    g.ldd = 40;
    if (i == 0) { /* GELU and what it keeps, by the product */
        g.act = AMP_GELU;
        g.aux = at(w, 5, AMP_F16);
    } else if (i == 1) { /* FP8 and the largest of it */
        g.n = 32;
        g.ldd = 48;
        g.trans_b = 1;
        g.a.dtype = g.b.dtype = g.d.dtype = AMP_F8E4M3;
        g.bias.data = NULL;
        g.amax_d = (float *)w->buf[6];
    } else if (i == 4) { /* two batches, the second some elements behind the first */
        g.batch = 2;
        g.stride_b = AMP_BROADCAST;
        g.stride_d = 700;
        g.bias.data = NULL;
    } else {       /* sums of columns; C is D, or another matrix */
        g.ldd = 0; /* packed */
        g.beta = amp_opt(1);
        g.dbias = at(w, 7, AMP_F32);
        if (i == 3) g.c = at(w, 8, AMP_F16);
    }
    return g;
}
static void test_tuning_outputs() {
    static const int written[] = {3, 5, 6, 7, 8}; /* d, aux, amax, dbias; and a c */
    static char pattern[N * 4], got[N * 4];
    world w;
    amp_cuda_desc d = desc_with(0);
    d.allocator.alloc_fn = device_alloc;
    d.allocator.free_fn = device_free;
    d.workspace_bytes = 65536;
    hcu_reset();
    OK(amp_cuda_create(&ctx, d));
    OK(build(&w, ctx));
    memset(pattern, 0x3a, sizeof pattern);
    for (int i = 0; i < 5; i++) {
        static const size_t bytes[5][2] = {{1248, 1248}, {752, 4}, {768, 96}, {768, 96}, {2648, 0}}; /* d, the other */
        amp_gemm_desc g = tunable(&w, i);
        int areas = device_areas;
        unsigned tried = 0;
        device_most = 0;
        for (int b : written)
            OK(amp_copy(ctx, w.buf[b], pattern, sizeof pattern));
        hcu_reset_counts();
        OK(amp_gemm_tune(ctx, &g));
        CHECK(sscanf(last_log, "amp_gemm_tune: %*f ms, the first of %u candidates", &tried) == 1 && tried, "%s",
            last_log);
        /* zeros for a D that is read; and each timed run begins with a cold cache */
        CHECK(hcu_executed(HCU_FILL) == (i == 2) + 5 * (long)tried, "%ld fills, %u candidates", hcu_executed(HCU_FILL),
            tried);
        CHECK(device_areas == areas, "%d areas more", device_areas - areas);
        CHECK(device_most >= 2 * 524288, "the most that was taken is %zu", device_most);
        for (int b : written) {
            OK(amp_copy(ctx, got, w.buf[b], sizeof got));
            CHECK(!memcmp(got, pattern, sizeof got), "tuning product %d changed buffer %d", i, b);
        }
        for (int k = 0; k < 2 && bytes[i][k]; k++) {
            char said[100];
            snprintf(said, sizeof said, "amp_gemm_tune: the allocator has no %d bytes for an output", (int)bytes[i][k]);
            fail_in = k + 1;
            WANT(amp_gemm_tune(ctx, &g), AMP_ERR_NO_MEMORY);
            CHECK(strstr(amp_last_error(ctx), said), "%d, %d: %s", i, k, amp_last_error(ctx));
            CHECK(device_areas == areas && fail_in == 0, "%d areas more", device_areas - areas);
        }
        fail_in = bytes[i][1] ? 3 : 2; /* no memory for what fills the cache: then without */
        OK(amp_gemm_tune(ctx, &g));
        CHECK(strstr(last_log, ", operands in the cache") && device_areas == areas && fail_in == 0, "%s", last_log);
        OK(amp_gemm_tune(ctx, &g));
    }
    end(&w);
    no_leak("tuning outputs");
}

/* Those of its own are as aligned as the product's: of an aux or a dbias cuBLASLt sees the pointer when it is asked. */
static void test_tuning_alignment() {
    world w;
    hcu_reset();
    OK(amp_cuda_create(&ctx, desc_with(0)));
    OK(build(&w, ctx));
    for (int i = 0; i < 2; i++) {
        char how[500];
        amp_gemm_desc g = i ? gradient(&w, AMP_F16) : planned(&w, 32, 0);
        g.bias.data = NULL;
        g.act = AMP_GELU;
        if (i == 0) g.aux = at(&w, 5, AMP_F16, 2);
        if (i == 1) g.dbias = at(&w, 7, AMP_F16, 2);
        hcu_product_time(100.0, 0.125); /* the first is the fastest */
        OK(amp_gemm_tune(ctx, &g));
        warnings = 0;
        OK(amp_gemm(ctx, &g));
        OK(amp_gemm_explain(ctx, how, sizeof how, &g));
        CHECK(
            warnings == 0 && strstr(how, "cuBLASLt (") && strstr(how, " with GELU"), "%ld warnings, %s", warnings, how);
        hcu_reset();
    }
    end(&w);
    no_leak("alignment of tuning's outputs");
}

/* ---- why a product is none of cuBLASLt's ---- */

static amp_gemm_desc f8_product(world *w) { /* that cuBLASLt takes */
    amp_gemm_desc g = AMP_ZERO;
    g.m = g.n = g.k = 32;
    g.trans_b = 1;
    g.a = at(w, 0, AMP_F8E4M3);
    g.b = at(w, 1, AMP_F8E4M3);
    g.d = at(w, 3, AMP_F16);
    return g;
}
static void f8_refused(amp_gemm_desc g, const char *why) { /* and on a plain kernel if that is wished */
    char text[400] = "";
    WANT(amp_gemm_explain(ctx, text, sizeof text, g), AMP_ERR_UNSUPPORTED);
    CHECK(strstr(amp_last_error(ctx), why), "said is '%s', not '%s'", amp_last_error(ctx), why);
    g.flags = AMP_GEMM_EMULATE;
    OK(amp_gemm_explain(ctx, text, sizeof text, g));
    CHECK(strstr(text, "plain kernel: ") && strstr(text, why), "said is '%s', not '%s'", text, why);
}
static void test_f8_reasons() {
    world w;
    char text[400];
    next_context(&w);
    OK(amp_gemm_explain(ctx, text, sizeof text, f8_product(&w)));
    CHECK(strstr(text, "cuBLASLt (algorithm"), "%s", text);
    for (int i = 0; i < 5; i++) { /* n, k and the leading dimensions */
        amp_gemm_desc g = f8_product(&w);
        g.lda = g.ldb = g.ldd = 48; /* so that it is one of them */
        if (i == 0) g.n = 36;       /* on sm_90 a multiple of 8 would do */
        if (i == 1) g.k = 40;
        if (i == 2) g.lda = 40;
        if (i == 3) g.ldb = 40;
        if (i == 4) g.ldd = 40;
        if (i == 4) g.trans_b = 0; /* else an ldd like that is none of cuBLASLt's reasons */
        f8_refused(g, "n, k and the leading dimensions are not all multiples of 16");
    }
    for (int i = 0; i < 8; i++) {
        static const char *const why[] = {"a and b are both f8e5m2", "d is f8e5m2, a and b are both f8e4m3",
            "none for the layout trans_a = 1", "none for the layout trans_b = 0", "a, b and d are not all aligned",
            "a, b and d are not all aligned", "a, b and d are not all aligned", "beta is not 0 and d is FP8"};
        amp_gemm_desc g = f8_product(&w);
        if (i == 0) g.a.dtype = g.b.dtype = AMP_F8E5M2;
        if (i == 1) g.d.dtype = AMP_F8E5M2;
        if (i == 2) g.trans_a = 1;
        if (i == 3) g.trans_b = 0;
        if (i == 4) g.a = at(&w, 0, AMP_F8E4M3, 8);
        if (i == 5) g.b = at(&w, 1, AMP_F8E4M3, 8);
        if (i == 6) g.d = at(&w, 3, AMP_F16, 8);
        if (i == 7) g.d.dtype = AMP_F8E4M3;
        if (i == 7) g.beta = amp_opt(1);
        f8_refused(g, why[i]);
    }
    amp_gemm_desc mixed = f8_product(&w); /* with one operand in E5M2 a d in E5M2 is fine */
    mixed.d.dtype = mixed.a.dtype = AMP_F8E5M2;
    OK(amp_gemm_explain(ctx, text, sizeof text, mixed));
    mixed.trans_a = 1;
    f8_refused(mixed, "none for the layout trans_a = 1");
    mixed.a.dtype = AMP_F8E4M3;
    mixed.b.dtype = AMP_F8E5M2;
    f8_refused(mixed, "none for the layout trans_a = 1");
    amp_gemm_desc none = f8_product(&w);
    none.m = 48;
    hcu_fail_call("cublasLtMatmulAlgoGetHeuristic", 1, CUBLAS_STATUS_NOT_SUPPORTED, 0);
    WANT(amp_gemm_explain(ctx, text, sizeof text, none), AMP_ERR_UNSUPPORTED);
    CHECK(strstr(amp_last_error(ctx), "cuBLASLt offers no algorithm"), "%s", amp_last_error(ctx));
    hcu_set_arch(0, 8, 6);
    next_context(&w);
    f8_refused(f8_product(&w), "the device is older than sm_89");
    hcu_set_arch(0, 9, 0);
    end(&w);
    no_leak("reasons of FP8");
}
/* FP8 batches that add up: what may be refused is refused before the first one is in d, and by all three verbs. */
static void test_f8_sum_refused() {
    static float before[32 * 32], after[32 * 32];
    world w;
    next_context(&w);
    for (int i = 0; i < 3; i++) {
        char text[400] = "";
        amp_gemm_desc g = f8_product(&w);
        g.d.dtype = AMP_F32;
        g.batch = 2;
        g.sum_batches = 1;
        g.beta = amp_opt(1);
        if (i == 0) g.stride_a = 32 * 32 + 8;
        if (i == 1) g.stride_b = 32 * 32 + 8;
        OK(amp_copy(ctx, before, g.d.data, sizeof before));
        if (i == 2) { /* one of the two plans has an algorithm, the one that is made after it has none */
            g.c = at(&w, 5, AMP_F32);
            hcu_fail_call("cublasLtMatmulAlgoGetHeuristic", 2, CUBLAS_STATUS_NOT_SUPPORTED, 0);
            WANT(amp_gemm(ctx, g), AMP_ERR_UNSUPPORTED);
        } else {
            WANT(amp_gemm(ctx, g), AMP_ERR_UNSUPPORTED);
            CHECK(strstr(amp_last_error(ctx), "desc.stride_a and stride_b are not both"), "%s", amp_last_error(ctx));
            WANT(amp_gemm_tune(ctx, g), AMP_ERR_UNSUPPORTED);
            WANT(amp_gemm_explain(ctx, text, sizeof text, g), AMP_ERR_UNSUPPORTED);
        }
        OK(amp_copy(ctx, after, g.d.data, sizeof after));
        CHECK(!memcmp(before, after, sizeof after), "d was changed before the product was refused: %d", i);
        g.flags = AMP_GEMM_EMULATE;
        OK(amp_gemm(ctx, g));
    }
    amp_gemm_desc g = planned(&w, 32, 0); /* and however odd a stride is, the product has two plans */
    g.bias.data = NULL;
    g.d.dtype = AMP_F32;
    g.batch = 5;
    g.sum_batches = 1;
    g.stride_a = 16 * 32 + 1;
    g.stride_b = 32 * 24 + 2;
    CHECK(searched(g) == 2 && searched(g) == 0, "%ld searches", hcu_group_calls(HCU_HEURISTIC));
    end(&w);
    no_leak("FP8 sums that are refused");
}
/* A last piece, too, may have rows that FP8 products do not take: then nothing is written, and no scale has moved. */
static void test_vocabulary_refused() {
    static char before[BUFFERS][N * 4], after[N * 4];
    for (int i = 0; i < 2; i++) {
        world w;
        amp_linear_xent_desc d = AMP_ZERO;
        amp_fp8_info info[2];
        next_context(&w);
        d.linear.rows = i == 1 ? 296 : 40; /* pieces of 32 and 8; of 256 and 40 */
        d.linear.in = d.linear.out = 16;
        d.linear.fp8 = w.delayed;
        d.linear.x = at(&w, 0, AMP_BF16);
        d.linear.w = at(&w, 1, AMP_BF16);
        d.linear.dx = at(&w, 2, AMP_BF16);
        d.linear.dw = at(&w, 4, AMP_F32);
        d.xent.labels8 = (const uint8_t *)w.buf[5];
        d.xent.row_loss = (float *)w.buf[6];
        d.xent.loss = (float *)w.buf[7];
        d.chunk = i == 1 ? 256 : 32;
        OK(amp_linear_cross_entropy_bytes(ctx, &d.scratch_bytes, d));
        OK(amp_alloc(ctx, &d.scratch, d.scratch_bytes, NULL));
        for (int b = 0; b < BUFFERS; b++)
            OK(amp_copy(ctx, before[b], w.buf[b], N * 4));
        for (size_t tensor = 0; tensor < 3; tensor++) {
            OK(amp_fp8_get(w.delayed, tensor, &info[0]));
            WANT(amp_linear_cross_entropy(ctx, d), AMP_ERR_UNSUPPORTED);
            OK(amp_fp8_get(w.delayed, tensor, &info[1]));
            CHECK(!memcmp(&info[0], &info[1], sizeof info[0]), "%d: the scale of tensor %d moved", i, (int)tensor);
        }
        for (int b = 0; b < BUFFERS; b++) {
            OK(amp_copy(ctx, after, w.buf[b], N * 4));
            CHECK(!memcmp(before[b], after, N * 4), "%d: buffer %d was written before it was refused", i, b);
        }
        d.linear.rows += 8;
        OK(amp_linear_cross_entropy(ctx, d));
        OK(amp_free(ctx, d.scratch));
        end(&w);
    }
    no_leak("a piece that is refused");
}
static void plain_because(amp_gemm_desc g, const char *why) {
    char text[400] = "";
    hcu_reset_counts();
    OK(amp_gemm_explain(ctx, text, sizeof text, g));
    CHECK(strstr(text, "plain kernel: ") && strstr(text, why), "said is '%s', not '%s'", text, why);
    CHECK(hcu_calls("cublasLtMatmulAlgoGetHeuristic") == 0, "cuBLASLt was asked: %s", why);
}
static void test_plain_reasons() { /* known before cuBLASLt is asked */
    world w;
    next_context(&w);
    amp_gemm_desc g = planned(&w, 0, 0);
    plain_because(g, "k is 0");
    g = planned(&w, 32, 0);
    g.flags = AMP_GEMM_ORDERED;
    plain_because(g, "the order is defined");
    g = planned(&w, 32, 0);
    g.bias.data = NULL;
    g.d.dtype = AMP_BF16;
    plain_because(g, "cuBLASLt does not have these dtypes");
    g.d.dtype = AMP_F16;
    g.batch = 2;
    g.beta = amp_opt(1);
    g.c = at(&w, 5, AMP_F16);
    g.stride_c = AMP_BROADCAST; /* one c for both */
    plain_because(g, "cuBLASLt does not have this batch");
    hcu_set_arch(0, 7, 5);
    next_context(&w);
    g = planned(&w, 32, 0);
    g.a.dtype = g.b.dtype = g.d.dtype = g.bias.dtype = AMP_BF16;
    plain_because(g, "the device is older than sm_80");
    hcu_set_arch(0, 9, 0);
    end(&w);
    no_leak("plain reasons");
}
static amp_gemm_desc f32_product(world *w) {
    amp_gemm_desc g = planned(w, 32, 0);
    g.m = g.n = 8;
    g.bias.data = NULL;
    g.d.dtype = AMP_F32;
    return g;
}
/* What the search for an algorithm may answer: no, which is a plain kernel's work, or an error. */
static void test_search_answers() {
    static const int no[] = {CUBLAS_STATUS_NOT_SUPPORTED, CUBLAS_STATUS_INVALID_VALUE, CUBLAS_STATUS_ARCH_MISMATCH};
    static const int errors[] = {CUBLAS_STATUS_NOT_INITIALIZED, CUBLAS_STATUS_INTERNAL_ERROR};
    float want[64], got[64];
    world w;
    next_context(&w);
    for (int code : errors) {
        hcu_fail_call("cublasLtMatmulAlgoGetHeuristic", 1, code, 0);
        WANT(amp_gemm(ctx, planned(&w, 32, 0)), AMP_ERR_CUDA);
        CHECK(strstr(amp_last_error(ctx), "cublasLtMatmulAlgoGetHeuristic"), "%s", amp_last_error(ctx));
    }
    for (int nth = 1; nth <= 6; nth++) { /* the limit of the workspace, the reductions, four alignments */
        hcu_fail_call("cublasLtMatmulPreferenceSetAttribute", nth, 0, 0);
        WANT(amp_gemm(ctx, planned(&w, 32, 0)), AMP_ERR_CUDA);
        CHECK(strstr(amp_last_error(ctx), "cublasLtMatmulPreferenceSetAttribute"), "%s", amp_last_error(ctx));
    }
    CHECK(warnings == 0, "%ld warnings", warnings);
    amp_gemm_desc g = f32_product(&w);
    OK(v_cast(&w));
    OK(amp_gemm(ctx, g));
    OK(amp_copy(ctx, want, g.d.data, sizeof want));
    for (int code : no) {
        next_context(&w);
        OK(v_cast(&w));
        hcu_fail_call("cublasLtMatmulAlgoGetHeuristic", 1, code, 0);
        hcu_reset_counts();
        g = f32_product(&w);
        OK(amp_gemm(ctx, g));
        CHECK(hcu_group_calls(HCU_MATMUL) == 0 && warnings == 1, "%ld warnings", warnings);
        CHECK(strstr(last_warning, "plain kernel: cuBLASLt offers no algorithm"), "%s", last_warning);
        OK(amp_copy(ctx, got, g.d.data, sizeof got));
        for (int i = 0; i < 64; i++)
            CHECK(fabsf(got[i] - want[i]) < 1e-4f, "element %d is %g, not %g", i, got[i], want[i]);
    }
    end(&w);
    no_leak("answers of the search");
}

/* Sums of many columns, in a workspace of the context's own, of `room` bytes with others behind it if that is not 0. */
enum { TALL = 2000, WIDE = 600, AFTER = 1 << 20 };
static void sums_with_room(size_t room, float *sums) {
    static unsigned char after[AFTER];
    unsigned char *memory;
    void *dy, *w, *x, *dbias;
    amp_linear_desc l = AMP_ZERO;
    amp_cuda_desc d = desc_with(0);
    CHECK(cudaMalloc((void **)&memory, room + AFTER) == cudaSuccess, "no memory");
    CHECK(cudaMemset(memory, 0x5a, room + AFTER) == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess, "memset");
    if (room) {
        d.workspace = memory;
        d.workspace_bytes = room;
    }
    OK(amp_cuda_create(&ctx, d));
    OK(amp_alloc(ctx, &dy, TALL * WIDE * 2, NULL));
    OK(amp_alloc(ctx, &x, TALL * 8 * 2, NULL));
    OK(amp_alloc(ctx, &w, WIDE * 8 * 2, NULL));
    OK(amp_alloc(ctx, &dbias, WIDE * 4, NULL));
    OK(amp_zero(ctx, w, WIDE * 8 * 2));
    OK(amp_zero(ctx, x, TALL * 8 * 2));
    amp_f16 *host = (amp_f16 *)malloc(TALL * WIDE * 2);
    for (int i = 0; i < TALL * WIDE; i++)
        host[i] = amp_f16_from_f32((float)(i % 7) - 2.0f);
    OK(amp_copy(ctx, dy, host, TALL * WIDE * 2));
    free(host);
    l.rows = TALL;
    l.in = 8;
    l.out = WIDE;
    l.x = amp_arr(x, AMP_F16);
    l.w = amp_arr(w, AMP_F16);
    l.dy = amp_arr(dy, AMP_F16);
    l.dbias = amp_arr(dbias, AMP_F32);
    OK(amp_linear_backward(ctx, l));
    l.accumulate = 1; /* each column to its own */
    OK(amp_linear_backward(ctx, l));
    OK(amp_copy(ctx, sums, dbias, WIDE * 4));
    CHECK(cudaMemcpy(after, memory + room, AFTER, cudaMemcpyDeviceToHost) == cudaSuccess, "copy");
    size_t whole = 0;
    while (whole < AFTER && after[whole] == 0x5a)
        whole++;
    CHECK(whole == AFTER, "byte %zu after a workspace of %zu was written", whole, room);
    void *const areas[] = {dy, x, w, dbias};
    for (void *area : areas)
        OK(amp_free(ctx, area));
    amp_ctx_destroy(ctx);
    ctx = NULL;
    cudaFree(memory);
}
static void test_small_workspace() { /* by slices: of all columns, of none, of 256 of them at a time */
    static float all[WIDE], sums[WIDE];
    sums_with_room(0, all);
    for (size_t room = 512; room <= 65536; room *= 128) {
        sums_with_room(room, sums);
        CHECK(memcmp(all, sums, sizeof all) == 0 && all[0] != 0.0f, "another sum in a workspace of %zu bytes", room);
    }
    no_leak("small workspace");
}

/* One parameter of n weights on ctx; grad: of these gradients, NULL: of its own. */
static amp_params *set_of(size_t n, amp_dtype t, void *grad) {
    amp_params_desc d = AMP_ZERO;
    amp_param_desc e = AMP_ZERO;
    amp_params *p = NULL;
    d.grad = t;
    e.count = n;
    if (grad) e.grad = amp_arrn(grad, t, n);
    OK(amp_params_create(&p, ctx, &d));
    OK(amp_params_add(p, &e));
    OK(amp_params_commit(p));
    return p;
}
/* An inspection has no more blocks than the GPU holds, nor has an update made elsewhere. Other updates have one for
   each piece, up to 16 times as many. */
static void test_residency() {
    static const amp_optimizer optimizers[] = {AMP_ADAMW, AMP_SGD, AMP_LION};
    const size_t n = 70000;
    hcu_set_sms(0, 2);
    hcu_set_occupancy(1);
    OK(amp_cuda_create(&ctx, desc_with(0)));
    amp_params *p = set_of(n, AMP_F16, NULL);
    amp_scaler *s;
    void *u;
    OK(amp_scaler_create(&s, ctx, NULL));
    OK(amp_alloc(ctx, &u, n * 4, NULL));
    OK(amp_zero(ctx, u, n * 4));
    OK(amp_zero(ctx, amp_param_grad(p, 0).data, n * 2));
    for (int i = 0; i < 8; i++) { /* three optimizers and an update made elsewhere, with counts and without */
        amp_step_desc d = step_desc(optimizers[i / 2 % 3]);
        d.count_lost = i % 2;
        hcu_reset_counts();
        if (i < 6) {
            OK(amp_step(p, s, d));
        } else {
            OK(amp_inspect(p, s, d));
            OK(amp_apply(p, 0, amp_arr(u, AMP_F32), 0));
            OK(amp_scaler_update(s));
        }
        OK(amp_sync(ctx));
        const unsigned wanted = i < 6 ? 8 : 2; /* 8: two chunks, four pieces each */
        CHECK(hcu_largest_grid() == wanted, "%d: %d blocks", i, (int)hcu_largest_grid());
    }
    OK(amp_free(ctx, u));
    amp_scaler_destroy(s);
    amp_params_destroy(p);
    amp_ctx_destroy(ctx);
    ctx = NULL;
    hcu_set_occupancy(0);
    hcu_set_sms(0, 132);
    no_leak("residency");
}
/* A window that is lost: amp_apply changes no weight and empties the accumulators for the next one. */
static void lost_window(amp_ctx *x, size_t n, float *master) {
    amp_params *p = NULL;
    amp_scaler *s = NULL;
    amp_params_desc d = AMP_ZERO;
    amp_param_desc e = AMP_ZERO;
    amp_step_record r;
    void *u = NULL;
    const uint16_t inf = 0x7c00;
    amp_f16 *grad = (amp_f16 *)malloc(n * 2);
    d.accumulate = 1;
    e.count = n;
    OK(amp_params_create(&p, x, &d));
    OK(amp_params_add(p, &e));
    OK(amp_params_commit(p));
    OK(amp_scaler_create(&s, x, NULL));
    OK(amp_alloc(x, &u, n * 4, NULL));
    for (size_t i = 0; i < n; i++)
        master[i] = 1;
    OK(amp_copy(x, u, master, n * 4));
    for (int round = 0; round < 3; round++) { /* good, bad, and the next window */
        for (size_t i = 0; i < n; i++)
            grad[i] = amp_f16_from_f32((float)(i % 13) - 6);
        OK(amp_copy(x, amp_param_grad(p, 0).data, grad, n * 2));
        if (round == 1) OK(amp_copy(x, amp_param_grad(p, 0).data, &inf, 2));
        OK(amp_accumulate(p, s, 0));
        if (round != 1) continue;
        OK(amp_inspect(p, s, step_desc()));
        OK(amp_apply(p, 0, amp_arr(u, AMP_F32), 0));
        OK(amp_scaler_update(s));
        OK(amp_sync(x));
        OK(amp_step_poll(p, &r));
        CHECK(r.outcome == AMP_SKIPPED_WINDOW, "%s", amp_outcome_name(r.outcome));
    }
    OK(amp_step(p, s, step_desc(AMP_SGD)));
    OK(amp_param_read(p, 0, master));
    free(grad);
    OK(amp_free(x, u));
    amp_scaler_destroy(s);
    amp_params_destroy(p);
}
static void test_lost_window() {
    const size_t n = 40001; /* several pieces */
    float *want = (float *)malloc(n * 4), *got = (float *)malloc(n * 4);
    OK(amp_cpu_create(&ctx, NULL));
    lost_window(ctx, n, want);
    amp_ctx_destroy(ctx);
    for (int i = 0; i < 2; i++) { /* a block for each piece, and one for all */
        hcu_set_sms(0, i ? 1 : 132);
        hcu_set_occupancy(i);
        OK(amp_cuda_create(&ctx, desc_with(0)));
        lost_window(ctx, n, got);
        CHECK(!memcmp(want, got, n * 4), "other weights than the CPU's after a lost window: %g, %g", got[1], want[1]);
        amp_ctx_destroy(ctx);
    }
    ctx = NULL;
    hcu_set_occupancy(0);
    hcu_set_sms(0, 132);
    free(want);
    free(got);
    no_leak("lost window");
}
static amp_status totals_of_one(amp_ctx *, amp_totals *, void *) { return AMP_OK; } /* nobody else has any */
/* A small set is spread over the SMs: more blocks than it has chunks, and the same numbers. */
static void test_spread() {
    double norm[2] = {-1, -2};
    for (int i = 0; i < 2; i++) {
        const size_t n = 70000; /* two chunks */
        float *host = (float *)malloc(n * 4);
        hcu_set_sms(0, i ? 1 : 132);
        OK(amp_cuda_create(&ctx, desc_with(0)));
        amp_params *p = set_of(n, AMP_F32, NULL);
        for (size_t k = 0; k < n; k++)
            host[k] = (float)(k % 101) / 64 - 0.7f;
        OK(amp_copy(ctx, amp_param_grad(p, 0).data, host, n * 4));
        hcu_reset_counts();
        OK(amp_grad_norm(p, NULL, &norm[i]));
        CHECK(hcu_largest_grid() == (i ? 8 : 64), "the sums have %d blocks", (int)hcu_largest_grid());
        hcu_reset_counts();
        amp_step_desc d = step_desc();
        d.reduce_totals_fn = totals_of_one;
        OK(amp_inspect(p, NULL, d));
        OK(amp_sync(ctx));
        CHECK(hcu_largest_grid() == (i ? 8 : 64), "sums that are added up have %d blocks", (int)hcu_largest_grid());
        amp_step_record r;
        OK(amp_step_poll(p, &r));
        CHECK(r.norm == norm[i], "norm %g of a step, not %g", r.norm, norm[i]);
        free(host);
        amp_params_destroy(p);
        amp_ctx_destroy(ctx);
        ctx = NULL;
    }
    CHECK(norm[0] == norm[1], "norm %.17g on many SMs, %.17g on one", norm[0], norm[1]);
    hcu_set_sms(0, 132);
    no_leak("spread");
}
static void
test_small_grid() { /* an epilogue whose threads go on to other rows and batches: the same on a GPU of one SM */
    const size_t m = 300, n = 203, all = 2 * m * n;
    float *got[2];
    for (int i = 0; i < 2; i++) {
        world w;
        void *d;
        amp_gemm_desc g = AMP_ZERO;
        hcu_set_sms(0, i ? 1 : 132);
        OK(amp_cuda_create(&ctx, desc_with(0)));
        OK(build(&w, ctx));
        OK(amp_alloc(ctx, &d, all * 4, NULL));
        g.m = m;
        g.n = n;
        g.k = 8;
        g.batch = 2;
        g.a = at(&w, 0, AMP_F16); /* the halves of floats */
        g.b = at(&w, 1, AMP_F16);
        g.stride_a = g.stride_b = 8;
        g.bias = at(&w, 1, AMP_F32);
        g.act = AMP_RELU;
        g.d = amp_arr(d, AMP_F32);
        OK(amp_gemm(ctx, g));
        got[i] = (float *)malloc(all * 4);
        OK(amp_copy(ctx, got[i], d, all * 4));
        OK(amp_free(ctx, d));
        end(&w);
    }
    CHECK(!memcmp(got[0], got[1], all * 4), "other bits on a GPU of one SM");
    free(got[0]);
    free(got[1]);
    hcu_set_sms(0, 132);
    no_leak("small grid");
}
static void test_one_of_many() { /* a single gradient among zeros, whose square underflows: its magnitude is the norm */
    const size_t n = 5 * 2048 + 301, where[] = {0, 2047, 2048 + 777, 3 * 2048 + 1, n - 302, n - 1, n};
    for (int i = 0; i < 8; i++) { /* chunks in pieces of many parts or of one; BF16 or FP32; aligned or not */
        amp_dtype t = i & 2 ? AMP_F32 : AMP_BF16;
        size_t size = amp_dtype_size(t);
        char *g, *host = (char *)malloc(n * size);
        hcu_set_sms(0, i & 1 ? 1 : 132);
        OK(amp_cuda_create(&ctx, desc_with(0)));
        OK(amp_alloc(ctx, (void **)&g, n * size + 16, NULL));
        if (i & 4) g += size;
        amp_params *p = set_of(n, t, g);
        for (size_t at : where) {
            double norm = -1;
            for (size_t k = 0; k < n; k++)
                amp_store(host, t, k, k == at ? ldexpf(-1, -100) : k % 3 ? 0.0f : -0.0f);
            OK(amp_copy(ctx, g, host, n * size));
            OK(amp_grad_norm(p, NULL, &norm));
            CHECK(norm == (at < n ? ldexp(1, -100) : 0), "%d: norm %g of one at %d", i, norm, (int)at);
        }
        amp_params_destroy(p);
        OK(amp_free(ctx, i & 4 ? g - size : g));
        amp_ctx_destroy(ctx);
        ctx = NULL;
        free(host);
    }
    hcu_set_sms(0, 132);
    no_leak("one of many");
}
static void test_long_bias() { /* an F32 bias of an F16 product is rounded into the room for it, if it fits */
    enum { WIDTH = 150000 };
    void *a, *b, *bias, *out;
    static float ones[WIDTH];
    amp_gemm_desc g = AMP_ZERO;
    OK(amp_cuda_create(&ctx, desc_with(0)));
    OK(amp_alloc(ctx, &a, 16, NULL));
    OK(amp_alloc(ctx, &b, WIDTH * 8 * 2, NULL));
    OK(amp_alloc(ctx, &bias, WIDTH * 4, NULL));
    OK(amp_alloc(ctx, &out, WIDTH * 2, NULL));
    OK(amp_zero(ctx, a, 16));
    OK(amp_zero(ctx, b, WIDTH * 8 * 2));
    for (int i = 0; i < WIDTH; i++)
        ones[i] = (float)(i % 512);
    OK(amp_copy(ctx, bias, ones, sizeof ones));
    g.m = 1;
    g.n = WIDTH;
    g.k = 8;
    g.a = amp_arr(a, AMP_F16);
    g.b = amp_arr(b, AMP_F16);
    g.bias = amp_arr(bias, AMP_F32);
    g.d = amp_arr(out, AMP_F16);
    OK(amp_gemm(ctx, g));
    amp_f16 *host = (amp_f16 *)malloc(WIDTH * 2);
    OK(amp_copy(ctx, host, out, WIDTH * 2));
    int bad = 0;
    for (int i = 0; i < WIDTH; i++)
        bad += amp_f32_from_f16(host[i]) != (float)(i % 512);
    CHECK(bad == 0, "%d of a long bias are wrong", bad);
    free(host);
    void *const areas[] = {a, b, bias, out};
    for (void *area : areas)
        OK(amp_free(ctx, area));
    amp_ctx_destroy(ctx);
    ctx = NULL;
    no_leak("long bias");
}

/* ---- a lent workspace: its end holds biases if it is over 1 MiB, and nothing outside of it is touched ---- */

enum { ROOM_FOR = 131072 }; /* a bias of so many elements fits */
/* A row times a matrix of zeros plus a long bias in F32, and then sums of columns, in `lent` bytes at this offset.
   The sentence about the product. */
static void product_in_lent(size_t offset, size_t lent, size_t n, char *said, size_t bytes) {
    unsigned char *memory, *host;
    void *a, *b, *bias, *out;
    amp_cuda_desc d = desc_with(0);
    amp_gemm_desc g = AMP_ZERO;
    const size_t behind = 4096, whole = offset + lent + behind;
    CHECK(cudaMalloc((void **)&memory, whole) == cudaSuccess, "no memory");
    CHECK(cudaMemset(memory, 0x5a, whole) == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess, "memset");
    d.workspace = memory + offset;
    d.workspace_bytes = lent;
    OK(amp_cuda_create(&ctx, d));
    OK(amp_alloc(ctx, &a, 16, NULL));
    OK(amp_alloc(ctx, &b, n * 16, NULL));
    OK(amp_alloc(ctx, &bias, n * 4, NULL));
    OK(amp_alloc(ctx, &out, n * 2, NULL));
    OK(amp_zero(ctx, a, 16));
    OK(amp_zero(ctx, b, n * 16));
    host = (unsigned char *)malloc(whole > n * 4 ? whole : n * 4);
    for (size_t i = 0; i < n; i++)
        ((float *)host)[i] = (float)(i % 512);
    OK(amp_copy(ctx, bias, host, n * 4));
    g.m = 1;
    g.n = n;
    g.k = 8;
    g.a = amp_arr(a, AMP_F16);
    g.b = amp_arr(b, AMP_F16);
    g.bias = amp_arr(bias, AMP_F32);
    g.d = amp_arr(out, AMP_F16);
    OK(amp_gemm_explain(ctx, said, bytes, g));
    OK(amp_gemm(ctx, g));
    OK(amp_copy(ctx, host, out, n * 2));
    size_t bad = 0, left = 0;
    for (size_t i = 0; i < n; i++)
        bad += amp_f32_from_f16(((amp_f16 *)host)[i]) != (float)(i % 512);
    CHECK(bad == 0, "%zu of the sums are wrong in %zu bytes at %zu", bad, lent, offset);
    CHECK(cudaMemcpy(host, memory, whole, cudaMemcpyDeviceToHost) == cudaSuccess, "copy");
    for (size_t i = 0; i < whole; i++)
        left += (i < offset || i >= offset + lent) && host[i] != 0x5a;
    CHECK(left == 0, "%zu bytes outside of a workspace of %zu at %zu were written", left, lent, offset);
    free(host);
    void *const areas[] = {a, b, bias, out};
    for (void *area : areas)
        OK(amp_free(ctx, area));
    amp_ctx_destroy(ctx);
    ctx = NULL;
    cudaFree(memory);
}
static void test_lent_workspace() {
    const size_t mega = 1 << 20;
    char said[400];
    static const struct {
        size_t offset, lent, n;
        const char *how;
    } cases[] = {{0, mega, 64, "plain kernel: the bias is in a different dtype than d"}, {0, mega + 1, 64, "cuBLASLt"},
        {0, mega + 1, ROOM_FOR, "the bias rounded to its dtype"},
        {0, 2 * mega + 100, ROOM_FOR, "the bias rounded to its dtype"},
        {0, mega + 256, ROOM_FOR + 8, "plain kernel: the bias is in a different dtype than d"},
        {16, mega + 240, 64, "plain kernel"}, /* what is skipped does not count */
        {16, mega + 241, ROOM_FOR, "the bias rounded to its dtype"}};
    hcu_reset();
    for (const auto &c : cases) {
        product_in_lent(c.offset, c.lent, c.n, said, sizeof said);
        CHECK(strstr(said, c.how), "%zu bytes at %zu: %s", c.lent, c.offset, said);
    }
    no_leak("lent workspace");
}

/* ---- the next minibatch: page-locked host memory to context memory and back, without waiting ---- */

static void test_pinned() {
    enum { BYTES = 1000 };
    unsigned char *host = NULL, *back = NULL;
    void *device = NULL;
    OK(amp_cuda_create(&ctx, desc_with(0)));
    OK(amp_alloc(ctx, &device, BYTES, NULL));
    CHECK(cudaMallocHost((void **)&host, BYTES) == cudaSuccess, "no page-locked memory");
    CHECK(cudaMallocHost((void **)&back, BYTES) == cudaSuccess, "no page-locked memory");
    for (int i = 0; i < BYTES; i++)
        host[i] = (unsigned char)(7 * i);
    memset(back, 0, BYTES);
    hcu_reset_counts();
    OK(amp_copy_async(ctx, device, host, BYTES));
    OK(amp_copy_async(ctx, back, device, BYTES));
    only_enqueues("copy_async of page-locked memory");
    CHECK(hcu_group_calls(HCU_COPY) == 2, "%ld copies", hcu_group_calls(HCU_COPY));
    OK(amp_sync(ctx));
    CHECK(memcmp(back, host, BYTES) == 0, "other bytes came back");
    cudaFreeHost(host);
    cudaFreeHost(back);
    OK(amp_free(ctx, device));
    amp_ctx_destroy(ctx);
    ctx = NULL;
    no_leak("page-locked memory");
}

/* ---- a record that the device is still writing is not read: the one that was read before is ---- */

static void test_torn_record() {
    amp_params *p = NULL;
    amp_step_record r;
    amp_step_desc d = AMP_ZERO;
    OK(amp_cuda_create(&ctx, desc_with(0)));
    OK(build_params(&p, ctx, 0));
    amp_step_mirror *mirror = (amp_step_mirror *)hcu_last_pinned();
    d.lr = 0.5f;
    OK(amp_step(p, NULL, &d));
    OK(amp_sync(ctx));
    CHECK(mirror && mirror->word[0] >> 32 == 1 && mirror->word[9] >> 32 == 1, "the record has another place");
    mirror->word[9] += (uint64_t)1 << 32;
    OK(amp_step_poll(p, &r));
    CHECK(r.outcome == AMP_NO_STEP && r.steps == 0, "outcome %d, steps %d", (int)r.outcome, (int)r.steps);
    mirror->word[9] -= (uint64_t)1 << 32;
    OK(amp_step_poll(p, &r));
    CHECK(r.outcome == AMP_STEPPED && r.steps == 1, "outcome %d, steps %d", (int)r.outcome, (int)r.steps);
    OK(amp_step(p, NULL, &d));
    OK(amp_sync(ctx));
    mirror->word[9] -= (uint64_t)1 << 32;
    OK(amp_step_poll(p, &r));
    CHECK(r.outcome == AMP_STEPPED && r.steps == 1, "outcome %d, steps %d", (int)r.outcome, (int)r.steps);
    mirror->word[9] += (uint64_t)1 << 32;
    OK(amp_step_poll(p, &r));
    CHECK(r.outcome == AMP_STEPPED && r.steps == 2, "outcome %d, steps %d", (int)r.outcome, (int)r.steps);
    OK(amp_params_set_steps(p, 5)); /* the host writes the record: beside the ticks, which stay */
    CHECK(mirror->word[0] >> 32 == 2 && mirror->word[9] >> 32 == 2, "other ticks");
    OK(amp_step(p, NULL, &d));
    hcu_reset_counts();
    amp_params_destroy(p); /* CUDA's manual does not say that freeing page-locked memory waits for who writes to it */
    CHECK(hcu_calls("cudaStreamSynchronize") >= 1, "the record's copy is freed under a step");
    amp_ctx_destroy(ctx);
    ctx = NULL;
    no_leak("a torn record");
}

/* ---- weights travel in large blocks, whatever the layout: a million of them in at most eight copies ---- */

static void few_copies(const char *what, const char *layout) {
    long copies = hcu_calls("cudaMemcpyAsync"), waits = hcu_calls("cudaStreamSynchronize");
    CHECK(copies > 0 && copies <= 8, "%s, %s: %ld copies", what, layout, copies);
    CHECK(waits > 0 && waits <= 8, "%s, %s: %ld waits", what, layout, waits);
}

static void test_weights_travel() {
    static const struct {
        const char *name;
        amp_dtype model;
        amp_master master;
    } layouts[] = {{"masters", AMP_F16, AMP_MASTER_F32}, {"split f16", AMP_F16, AMP_MASTER_SPLIT},
        {"split bf16", AMP_BF16, AMP_MASTER_SPLIT}, {"kahan", AMP_BF16, AMP_MASTER_KAHAN},
        {"none", AMP_BF16, AMP_MASTER_NONE}, {"split8", AMP_BF16, AMP_MASTER_SPLIT8}};
    const size_t n = (size_t)1 << 20;
    float *w = (float *)malloc(n * 4), *got = (float *)malloc(n * 4);
    CHECK(w && got, "no memory");
    for (size_t i = 0; i < n; i++)
        w[i] = (float)(i % 256) / 64 - 2; /* BF16 holds these */
    OK(amp_cuda_create(&ctx, desc_with(0)));
    for (int l = 0; l < 6; l++) {
        amp_params *p = NULL;
        amp_params_desc d = AMP_ZERO;
        amp_param_desc e = AMP_ZERO;
        d.model = layouts[l].model;
        d.master = layouts[l].master;
        d.moments = AMP_NONE;
        OK(amp_params_create(&p, ctx, d));
        e.count = n;
        e.init = w;
        OK(amp_params_add(p, e));
        hcu_reset_counts();
        OK(amp_params_commit(p));
        few_copies("amp_params_commit", layouts[l].name);
        memset(got, 0, n * 4);
        hcu_reset_counts();
        OK(amp_param_read(p, 0, got));
        few_copies("amp_param_read", layouts[l].name);
        CHECK(memcmp(got, w, n * 4) == 0, "%s: read other weights than given", layouts[l].name);
        w[n - 1] = 1.0f + (float)l;
        hcu_reset_counts();
        OK(amp_param_write(p, 0, w));
        few_copies("amp_param_write", layouts[l].name);
        OK(amp_param_read(p, 0, got));
        CHECK(memcmp(got, w, n * 4) == 0, "%s: read other weights than written", layouts[l].name);
        amp_params_destroy(p);
    }
    free(w);
    free(got);
    amp_ctx_destroy(ctx);
    ctx = NULL;
    no_leak("weights travel");
}

/* ---- a step is two launches and nothing else, for every optimizer, layout and number of tensors ---- */

static amp_params *layout_set(amp_dtype model, amp_master master, amp_dtype moment, int tensors) {
    amp_params *p = NULL;
    amp_params_desc d = AMP_ZERO;
    d.model = model;
    d.master = master;
    d.moment = moment;
    OK(amp_params_create(&p, ctx, d));
    for (int i = 0; i < tensors; i++) {
        amp_param_desc e = AMP_ZERO;
        e.count = i ? (size_t)(1 + i % 5) : tensors > 3 ? 70000 : 3000; /* one of many: two chunks, and small ones */
        e.keep_f32 = i % 3 == 2;
        OK(amp_params_add(p, e));
    }
    OK(amp_params_commit(p));
    return p;
}

static void test_step_counts() {
    static const struct {
        amp_dtype model;
        amp_master master;
    } layouts[] = {{AMP_F16, AMP_MASTER_F32}, {AMP_BF16, AMP_MASTER_F32}, {AMP_F32, AMP_MASTER_F32},
        {AMP_F16, AMP_MASTER_SPLIT}, {AMP_BF16, AMP_MASTER_SPLIT}, {AMP_BF16, AMP_MASTER_NONE},
        {AMP_BF16, AMP_MASTER_KAHAN}, {AMP_BF16, AMP_MASTER_SPLIT8}};
    static const char *const names[AMP_OPTIMIZER_COUNT] = {
#define AMP_X(name, kind, decoupled, beta2) #name,
        AMP_OPTIMIZER_LIST(AMP_X)
#undef AMP_X
    };
    hcu_set_sms(0, 4); /* fewer blocks: a quarter of the time */
    OK(amp_cuda_create(&ctx, desc_with(0)));
    for (int l = 0; l < 8; l++) {
        for (int o = 0; o < (int)AMP_OPTIMIZER_COUNT; o++) {
            char what[80];
            amp_scaler *s;
            amp_step_desc d = step_desc();
            amp_params *p =
                layout_set(layouts[l].model, layouts[l].master, o % 2 ? AMP_BF16 : AMP_F32, o == 0 ? 60 : 3);
            OK(amp_scaler_create(&s, ctx, NULL));
            d.optimizer = (amp_optimizer)o;
            d.momentum = d.optimizer == AMP_SGD ? 0.9f : 0.0f;
            for (int bad = 0; bad < 2; bad++) { /* taken, and skipped */
                uint16_t inf = layouts[l].model == AMP_BF16 ? 0x7f80 : 0x7c00;
                float inf32 = INFINITY;
                if (bad && layouts[l].model == AMP_F32)
                    OK(amp_copy(ctx, amp_param_grad(p, 0).data, &inf32, sizeof inf32));
                else if (bad)
                    OK(amp_copy(ctx, amp_param_grad(p, 0).data, &inf, sizeof inf));
                hcu_reset_counts();
                OK(amp_step(p, s, d));
                snprintf(what, sizeof what, "a step of %s, layout %d, bad %d", names[o], l, bad);
                only_enqueues(what);
                long launches = hcu_group_calls(HCU_LAUNCH),
                     others = hcu_group_calls(HCU_FILL) + hcu_group_calls(HCU_COPY) + hcu_group_calls(HCU_MATMUL);
                CHECK(launches == 2 && others == 0, "%s: %ld launches, %ld others", what, launches, others);
            }
            amp_step_record r;
            OK(amp_sync(ctx));
            OK(amp_step_poll(p, &r));
            CHECK(r.steps == 1 && r.skipped == 1 && r.outcome == AMP_SKIPPED_INF, "%s: %s", what,
                amp_outcome_name(r.outcome));
            amp_scaler_destroy(s);
            amp_params_destroy(p);
        }
    }
    amp_ctx_destroy(ctx);
    ctx = NULL;
    hcu_set_sms(0, 132);
    no_leak("step counts");
}

/* ---- a captured step of short weights and moments: replays draw new numbers, and skip, as the CPU's steps ---- */

static void same_array(amp_array a, amp_array b, const char *what, int step, int i) { /* a of ctx, b of the CPU */
    static char got[3000 * 4];
    const size_t bytes = b.count * (b.dtype == AMP_MOMENT_8BIT ? 1 : amp_dtype_size(b.dtype));
    CHECK(!a.data == !b.data && a.count == b.count && bytes <= sizeof got, "%s of %d", what, i);
    if (bytes == 0) return;
    OK(amp_copy(ctx, got, a.data, bytes));
    CHECK(memcmp(got, b.data, bytes) == 0, "step %d: %s of %d differs", step, what, i);
}
static void same_param(amp_params *p, amp_params *q, int step) {
    for (size_t i = 0; i < amp_params_count(p); i++) {
        const amp_param a = amp_param_get(p, i), b = amp_param_get(q, i);
        same_array(a.model, b.model, "model", step, (int)i);
        same_array(a.low, b.low, "low part", step, (int)i);
        for (int k = 0; k < 2; k++) {
            same_array(a.moment[k], b.moment[k], "moment", step, (int)i);
            same_array(a.moment_scale[k], b.moment_scale[k], "scale", step, (int)i);
        }
    }
}
static void captured_gradients(amp_params *p, amp_params *q, int step) {
    static char host[3000 * 4];
    for (size_t i = 0; i < amp_params_count(p); i++) {
        const amp_array g = amp_param_grad(p, i);
        const size_t bytes = g.count * amp_dtype_size(g.dtype);
        for (size_t k = 0; k < g.count; k++)
            amp_store(
                host, g.dtype, k, (float)((int)((k * 37 + (size_t)step * 11 + i) % 101) - 50) * (k % 7 ? 1.0f : 64.0f));
        if (step == 2 && i == 0) amp_store(host, g.dtype, 1234, INFINITY);
        OK(amp_copy(ctx, g.data, host, bytes));
        memcpy(amp_param_grad(q, i).data, host, bytes);
    }
}
static void capture_layout(amp_dtype model, amp_master master, amp_dtype moment, uint32_t stochastic) {
    amp_ctx *cpu, *gpu;
    amp_scaler *s, *u;
    amp_step_desc d = step_desc();
    amp_step_record r;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    OK(amp_cuda_create(&gpu, desc_with(0)));
    OK(amp_cpu_create(&cpu, NULL));
    d.stochastic = stochastic;
    ctx = cpu;
    amp_params *q = layout_set(model, master, moment, 3);
    OK(amp_scaler_create(&u, cpu, NULL));
    ctx = gpu;
    amp_params *p = layout_set(model, master, moment, 3);
    OK(amp_scaler_create(&s, gpu, NULL));
    cudaStream_t st = amp_cuda_stream(gpu);
    CHECK(cudaStreamBeginCapture(st, cudaStreamCaptureModeGlobal) == cudaSuccess, "begin");
    OK(amp_step(p, s, d));
    CHECK(cudaStreamEndCapture(st, &graph) == cudaSuccess, "end");
    CHECK(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess, "instantiate");
    for (int step = 0; step < 4; step++) {
        captured_gradients(p, q, step);
        CHECK(cudaGraphLaunch(exec, st) == cudaSuccess, "replay %d", step);
        OK(amp_step(q, u, d));
        OK(amp_sync(gpu));
        same_param(p, q, step);
    }
    OK(amp_step_poll(p, &r));
    CHECK(r.steps == 3 && r.skipped == 1, "%d steps, %d skipped", (int)r.steps, (int)r.skipped);
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    amp_scaler_destroy(s);
    amp_scaler_destroy(u);
    amp_params_destroy(p);
    amp_params_destroy(q);
    amp_ctx_destroy(cpu);
    amp_ctx_destroy(gpu);
    ctx = NULL;
    no_leak("captured codes");
}
static void test_captured_codes() {
    capture_layout(AMP_BF16, AMP_MASTER_SPLIT, AMP_MOMENT_8BIT, 0);
    capture_layout(AMP_BF16, AMP_MASTER_SPLIT8, AMP_MOMENT_8BIT, 0);
    capture_layout(AMP_F16, AMP_MASTER_SPLIT8, AMP_F32, 1);
}

/* ---- capture: enqueue verbs go into a graph, the others are refused and leave the capture whole ---- */

static void same_bytes(const void *device, const void *host, size_t bytes, const char *what, int i) {
    static char got[N * 4];
    OK(amp_copy(ctx, got, device, bytes));
    CHECK(memcmp(got, host, bytes) == 0, "%s %d differs from the CPU's", what, i);
}

static void still_capturing(cudaStream_t st, const char *after) {
    cudaStreamCaptureStatus cs;
    cudaStreamIsCapturing(st, &cs);
    CHECK(cs == cudaStreamCaptureStatusActive, "%s broke the capture", after);
}

static void refused_in_capture(cudaStream_t st, void *spare) {
    void *p;
    WANT(amp_alloc(ctx, &p, 100, "x"), AMP_ERR_CAPTURE);
    CHECK(!p, "alloc left a pointer");
    still_capturing(st, "alloc");

    OK(amp_free(ctx, spare)); /* put off until later, not refused */
    still_capturing(st, "free");

    amp_ctx *second;
    amp_cuda_desc d = desc_with(0);
    d.stream = st;
    WANT(amp_cuda_create(&second, d), AMP_ERR_CAPTURE);
    CHECK(!second, "create left a context");
    still_capturing(st, "create");

    amp_params *set;
    amp_param_desc e = AMP_ZERO;
    e.count = 10;
    OK(amp_params_create(&set, ctx, NULL));
    OK(amp_params_add(set, e));
    WANT(amp_params_commit(set), AMP_ERR_CAPTURE);
    amp_params_destroy(set);
    still_capturing(st, "commit");
}

static void test_capture(uint32_t flags, cudaStreamCaptureMode mode) {
    world w, u; /* u: the same on the CPU */
    amp_ctx *cpu;
    void *spare;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    amp_step_record r, ru;

    OK(amp_cuda_create(&ctx, desc_with(flags)));
    OK(amp_cpu_create(&cpu, NULL));
    OK(build(&w, ctx));
    OK(build(&u, cpu));
    OK(amp_alloc(ctx, &spare, 100, "spare"));
    run_ok(&w, 0, ENQUEUES);
    run_ok(&u, 0, ENQUEUES);

    cudaStream_t st = amp_cuda_stream(ctx);
    CHECK(cudaStreamBeginCapture(st, mode) == cudaSuccess, "begin");
    for (int v = 0; v < ENQUEUES; v++) {
        const verb *q = &verbs[ENQUEUES + v % QUERIES];
        run_ok(&w, v, v + 1);
        amp_status s = q->call(&w);
        CHECK(s == AMP_ERR_CAPTURE, "%s in a capture -> %d: %s", q->name, (int)s, amp_last_error(ctx));
        still_capturing(st, q->name);
    }
    OK(amp_step_poll(w.p, &r)); /* never waits: allowed */
    still_capturing(st, "step_poll");
    refused_in_capture(st, spare);
    CHECK(cudaStreamEndCapture(st, &graph) == cudaSuccess, "end");
    CHECK(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess, "instantiate");

    for (int i = 0; i < 3; i++) {
        CHECK(cudaGraphLaunch(exec, st) == cudaSuccess, "replay %d", i);
        run_ok(&u, 0, ENQUEUES);
    }
    OK(amp_sync(ctx));
    static const int exact[] = {0, 1, 2, 5, 8}; /* the others hold products, which CUDA sums in an order of its own */
    for (int b : exact)
        same_bytes(w.buf[b], u.buf[b], N * 4, "buffer", b);
    for (size_t i = 0; i < PARAMS; i++) {
        same_bytes(amp_param_get(w.p, i).master.data, amp_param_get(u.p, i).master.data, 2800, "master", (int)i);
        same_bytes(amp_param_get(w.acc, i).master.data, amp_param_get(u.acc, i).master.data, 2800, "accumulated master",
            (int)i);
    }
    OK(amp_step_poll(w.p, &r));
    OK(amp_step_poll(u.p, &ru));
    CHECK(memcmp(&r, &ru, sizeof r) == 0, "records differ: steps %llu, %llu", (unsigned long long)r.steps,
        (unsigned long long)ru.steps);
    amp_scaler_info is, iu;
    OK(amp_scaler_get(w.s, &is));
    OK(amp_scaler_get(u.s, &iu));
    CHECK(memcmp(&is, &iu, sizeof is) == 0, "scales differ: %g, %g", is.scale, iu.scale);

    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    drop(&u);
    amp_ctx_destroy(cpu);
    end(&w);
    no_leak("capture");
}

/* ---- capture through an autocast scope: a graph makes its own casts, and nothing else touches them ---- */

static void cast_counts(uint64_t casts, uint64_t hits, const char *where) {
    amp_autocast_info i = amp_autocast_get(ctx);
    CHECK(i.casts == casts && i.hits == hits, "%s: %llu casts, %llu hits; wanted %llu, %llu", where,
        (unsigned long long)i.casts, (unsigned long long)i.hits, (unsigned long long)casts, (unsigned long long)hits);
}

static amp_status scope_gemm(world *w, int out) { /* buf[out] = buf[0] buf[1] in FP16, as the scope casts them */
    amp_gemm_desc g = AMP_ZERO;
    g.a = at(w, 0, AMP_F32);
    g.b = at(w, 1, AMP_F32);
    g.b.flags = AMP_CACHE;
    g.d = at(w, out, AMP_F32);
    return gemm(w, g);
}

static void product_is(world *w, int out, const char *what) { /* as by hand, from the weights that are there now */
    static char want[16 * 24 * 4];
    amp_gemm_desc g = AMP_ZERO;
    OK(amp_cast(ctx, at(w, 6, AMP_F16), at(w, 0, AMP_F32), N, NULL));
    OK(amp_cast(ctx, at(w, 7, AMP_F16), at(w, 1, AMP_F32), N, NULL));
    g.a = at(w, 6, AMP_F16);
    g.b = at(w, 7, AMP_F16);
    g.d = at(w, 8, AMP_F32);
    OK(gemm(w, g));
    OK(amp_copy(ctx, want, w->buf[8], sizeof want));
    same_bytes(w->buf[out], want, sizeof want, what, out);
}

static cudaGraphExec_t captured(cudaStream_t st) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK(cudaStreamEndCapture(st, &graph) == cudaSuccess, "end");
    CHECK(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess, "instantiate");
    cudaGraphDestroy(graph);
    return exec;
}

static void test_autocast_capture(uint32_t flags) {
    world w;
    cudaGraphExec_t first, second;
    amp_autocast_desc d = AMP_ZERO;
    d.arena = 1 << 16;

    OK(amp_cuda_create(&ctx, desc_with(flags)));
    OK(build(&w, ctx));
    cudaStream_t st = amp_cuda_stream(ctx);
    OK(amp_autocast_begin(ctx, &d));
    OK(scope_gemm(&w, 2));
    cast_counts(2, 0, "the first product");
    OK(scope_gemm(&w, 2));
    cast_counts(3, 1, "the second: a hit");

    CHECK(cudaStreamBeginCapture(st, cudaStreamCaptureModeGlobal) == cudaSuccess, "begin");
    OK(scope_gemm(&w, 3));
    cast_counts(5, 1, "in a graph: the cast from outside is no hit");
    OK(scope_gemm(&w, 4));
    cast_counts(6, 2, "in a graph: its own cast is one");
    WANT(amp_autocast_release(ctx), AMP_ERR_STAGE);
    still_capturing(st, "release");
    first = captured(st);

    OK(scope_gemm(&w, 2));
    cast_counts(7, 3, "outside again: the cast from outside");
    CHECK(cudaStreamBeginCapture(st, cudaStreamCaptureModeGlobal) == cudaSuccess, "begin");
    OK(scope_gemm(&w, 5));
    cast_counts(9, 3, "in another graph: none of the others");
    second = captured(st);
    product_is(&w, 2, "an eager product");
    OK(amp_autocast_end(ctx));

    size_t bytes = ledger_row(ctx, "autocast").bytes;
    for (int round = 1; round < 4; round++) { /* new weights: only a cast inside the graph has them */
        for (int i = 0; i < N; i++)
            numbers[i] = (float)((i * (37 + round)) % 101) / 64 - 0.7f;
        OK(amp_copy(ctx, w.buf[1], numbers, N * 4));
        for (int b = 2; b < 6; b++)
            OK(amp_zero(ctx, w.buf[b], N * 4));
        CHECK(cudaGraphLaunch(first, st) == cudaSuccess, "replay");
        product_is(&w, 3, "a replayed product");
        product_is(&w, 4, "a replayed product");
        OK(amp_autocast_begin(ctx, &d)); /* eager work between replays has an arena of its own */
        OK(scope_gemm(&w, 2));
        CHECK(cudaGraphLaunch(second, st) == cudaSuccess, "replay");
        OK(scope_gemm(&w, 2));
        cast_counts(3, 1, "an eager scope beside graphs");
        OK(amp_autocast_end(ctx));
        product_is(&w, 2, "an eager product beside graphs");
        product_is(&w, 5, "a replayed product");
        CHECK(ledger_row(ctx, "autocast").bytes == 2 * bytes, "%lu bytes",
            (unsigned long)ledger_row(ctx, "autocast").bytes);
    }

    CHECK(cudaStreamBeginCapture(st, cudaStreamCaptureModeGlobal) == cudaSuccess, "begin");
    WANT(amp_autocast_release(ctx), AMP_ERR_CAPTURE);
    still_capturing(st, "release");
    d.arena *= 4;
    WANT(amp_autocast_begin(ctx, &d), AMP_ERR_CAPTURE); /* it would have to allocate */
    still_capturing(st, "begin");
    cudaGraphExecDestroy(captured(st));
    cudaGraphExecDestroy(second);
    cudaGraphExecDestroy(first);
    OK(amp_autocast_release(ctx));
    end(&w);
    no_leak("autocast capture");
}

/* A whole training step, written in FP32: wrapped, captured and replayed it trains as the eager one. */

typedef struct layer {
    amp_params *p;
    amp_scaler *s;
    amp_linear_desc l;
    amp_precision r;
    amp_xent_desc e;
    amp_policy policy;
} layer;

static void layer_new(layer *n, world *w, void *labels) { /* buf[0]: x; 2 .. 5 belong to the layer, a half of each */
    enum { ROWS = 16, IN = 32, OUT = 24 };
    amp_params_desc pd;
    amp_param_desc e = AMP_ZERO;
    memset(n, 0, sizeof *n);
    OK(amp_policy_init(ctx, &n->policy, AMP_O1, NULL));
    pd = amp_policy_params_desc(&n->policy);
    OK(amp_params_create(&n->p, ctx, &pd));
    e.init = numbers;
    e.count = OUT * IN;
    OK(amp_params_add(n->p, e));
    e.count = OUT;
    OK(amp_params_add(n->p, e));
    OK(amp_params_commit(n->p));
    amp_scaler_desc sd = amp_policy_scaler_desc(&n->policy);
    OK(amp_scaler_create(&n->s, ctx, &sd));
    n->l.rows = ROWS;
    n->l.in = IN;
    n->l.out = OUT;
    n->l.x = at(w, 0, AMP_F32);
    n->l.w = amp_param_model(n->p, 0);
    n->l.bias = amp_param_model(n->p, 1);
    n->l.dw = amp_param_grad(n->p, 0);
    n->l.dbias = amp_param_grad(n->p, 1);
    n->l.record = &n->r;
    n->e.rows = ROWS;
    n->e.classes = OUT;
    n->e.from = &n->r;
    n->e.labels = (int32_t *)labels;
    n->e.scaler = n->s;
}
static void layer_outputs(layer *n, world *w, size_t half) {
    n->l.y = n->e.logits = at(w, 2, AMP_AUTO, half);
    n->l.dy = n->e.dlogits = at(w, 3, AMP_AUTO, half);
    n->e.row_loss = (float *)((char *)w->buf[4] + half);
    n->e.loss = (float *)((char *)w->buf[5] + half);
}
static void layer_step(layer *n) {
    amp_autocast_desc d = AMP_ZERO;
    d.policy = &n->policy;
    OK(amp_autocast_begin(ctx, &d));
    OK(amp_linear_forward(ctx, n->l));
    OK(amp_softmax_cross_entropy(ctx, n->e));
    OK(amp_autocast_end(ctx));
    OK(amp_linear_backward(ctx, n->l));
    OK(amp_step(n->p, n->s, step_desc()));
}

static void test_autocast_training() {
    static char want[32 * 24 * 4];
    world w;
    layer eager, graph;
    int32_t labels[16];

    OK(amp_cuda_create(&ctx, desc_with(0)));
    OK(build(&w, ctx));
    cudaStream_t st = amp_cuda_stream(ctx);
    for (int i = 0; i < 16; i++)
        labels[i] = i;
    OK(amp_copy(ctx, w.buf[6], labels, sizeof labels));
    layer_new(&eager, &w, w.buf[6]);
    layer_new(&graph, &w, w.buf[6]);
    layer_outputs(&eager, &w, 0);
    layer_outputs(&graph, &w, N * 2);
    layer_step(&eager); /* these also make the arena */
    layer_step(&graph);
    CHECK(cudaStreamBeginCapture(st, cudaStreamCaptureModeGlobal) == cudaSuccess, "begin");
    layer_step(&graph);
    cudaGraphExec_t exec = captured(st);
    for (int i = 0; i < 5; i++) {
        CHECK(cudaGraphLaunch(exec, st) == cudaSuccess, "replay %d", i);
        layer_step(&eager);
        OK(amp_copy(ctx, want, amp_param_get(eager.p, 0).master.data, sizeof want));
        same_bytes(amp_param_get(graph.p, 0).master.data, want, sizeof want, "weights after step", i);
        OK(amp_copy(ctx, want, eager.e.loss, 4));
        same_bytes(graph.e.loss, want, 4, "loss of step", i);
    }
    amp_step_record r;
    OK(amp_sync(ctx));
    OK(amp_step_poll(graph.p, &r));
    CHECK(r.steps == 6, "%llu steps", (unsigned long long)r.steps);
    cudaGraphExecDestroy(exec);
    amp_params_destroy(eager.p);
    amp_params_destroy(graph.p);
    amp_scaler_destroy(eager.s);
    amp_scaler_destroy(graph.s);
    end(&w);
    no_leak("autocast training");
}

/* ---- lent resources: used instead of our own, and given back ---- */

static void *host_alloc(size_t n, void *user) {
    ++*(int *)user;
    return malloc(n);
}
static void host_free(void *p, size_t, void *user) {
    --*(int *)user;
    free(p);
}

static void lent(amp_cuda_desc d, int hosts_before) {
    world w;
    int now = 9, *hosts = (int *)d.host.user, pool = (d.flags & AMP_CUDA_POOL) != 0;
    void *p = NULL;

    cudaSetDevice(1);
    OK(amp_cuda_create(&ctx, d));
    cudaSetDevice(0);
    CHECK(*hosts > hosts_before, "host allocator not used");
    CHECK(amp_cuda_stream(ctx) == d.stream, "another stream");
    hcu_reset_counts();
    OK(build(&w, ctx));
    run_ok(&w, 0, VERBS);
    if (pool) {
        CHECK(hcu_calls("cudaMalloc") == 0 && hcu_calls("cudaMallocAsync") > 0, "pool not used");
        OK(amp_alloc(ctx, &p, 1 << 10, "z"));
        OK(amp_free(ctx, p));
        CHECK(hcu_calls("cudaFree") == 0 && hcu_calls("cudaFreeAsync") > 0, "not given back to the pool");
        p = NULL;
    }
    cudaGetDevice(&now);
    CHECK(now == 0, "current device is now %d", now);

    if (pool)
        hcu_set_memory_limit(1, hcu_device_bytes(1));
    else
        fail_in = 1;
    WANT(amp_alloc(ctx, &p, 1 << 20, "z"), AMP_ERR_NO_MEMORY);
    CHECK(!p, "alloc left a pointer");
    if (pool) hcu_set_memory_limit(1, (size_t)4 << 30);
    CHECK(cudaPeekAtLastError() == cudaSuccess, "our error was left to the caller");
    run_ok(&w, 0, ENQUEUES); /* goes on after it */
    OK(amp_sync(ctx));
    end(&w);
    CHECK(device_areas == 0 && *hosts == hosts_before, "kept: device %d, host %d", device_areas, *hosts - hosts_before);
}

static void test_lent() {
    cudaStream_t st, streams[3];
    cublasHandle_t handle;
    void *workspace;
    int hosts = 0;

    hcu_reset();
    hcu_set_sms(1, 4); /* fewer blocks: half of the time */
    CHECK(cudaSetDevice(1) == cudaSuccess, "no device 1");
    cudaStreamCreateWithFlags(&st, cudaStreamNonBlocking);
    cublasCreate(&handle);
    cudaMalloc(&workspace, 1 << 20);
    streams[0] = st;
    streams[1] = (cudaStream_t)AMP_CUDA_STREAM_LEGACY;
    streams[2] = (cudaStream_t)AMP_CUDA_STREAM_PER_THREAD;
    for (int i = 0; i < 6; i++) {
        amp_cuda_desc d = desc_with(0);
        d.device = i % 2 ? AMP_NONE : 1;
        d.stream = streams[i < 4 ? 0 : i - 3];
        d.cublas = handle;
        d.workspace = (char *)workspace + (i ? 0 : 16); /* once not aligned to 256 */
        d.workspace_bytes = (1 << 20) - 16;
        d.host.alloc_fn = host_alloc;
        d.host.free_fn = host_free;
        d.host.user = &hosts;
        if (i == 3) {
            d.flags = AMP_CUDA_POOL; /* not together with an allocator */
        } else {
            d.allocator.alloc_fn = device_alloc;
            d.allocator.free_fn = device_free;
        }
        lent(d, hosts);
    }
    cudaSetDevice(1);
    cudaFree(workspace);
    cublasDestroy(handle);
    cudaStreamDestroy(st);
    cudaSetDevice(0);
    hcu_set_sms(1, 132);
    no_leak("lent");
}

/* ---- memory that is freed inside a capture ---- */

static void *last_area; /* of device_alloc */
static void *device_alloc_noted(size_t n, void *user) { return last_area = device_alloc(n, user); }
static void test_freed_in_capture() { /* 64 areas wait for the end of the capture; one more is lost, and that is said */
    enum { WAIT = 64 };
    void *areas[WAIT + 1], *p = NULL;
    cudaGraph_t graph;
    amp_cuda_desc d = desc_with(0);
    d.allocator.alloc_fn = device_alloc_noted;
    d.allocator.free_fn = device_free;
    d.workspace_bytes = 4096;
    hcu_reset();
    OK(amp_cuda_create(&ctx, d));
    int own = device_areas;
    for (int i = 0; i <= WAIT; i++)
        OK(amp_alloc(ctx, &areas[i], i == WAIT ? 1234 : 64, NULL));
    void *lost = last_area;
    for (int round = 0; round < 2; round++) {
        CHECK(cudaStreamBeginCapture(amp_cuda_stream(ctx), cudaStreamCaptureModeGlobal) == cudaSuccess, "begin");
        int before = device_areas;
        warnings = 0;
        for (int i = round ? WAIT : 0; i < WAIT; i++)
            OK(amp_free(ctx, areas[i]));
        CHECK(warnings == 0 && device_areas == before, "%ld warnings, %d areas of %d", warnings, device_areas, before);
        if (!round) OK(amp_free(ctx, areas[WAIT]));
        if (!round)
            CHECK(warnings == 1 && strstr(last_log, "too much was freed inside a capture: 1234 bytes are lost"),
                "%ld warnings, the last: %s", warnings, last_log);
        still_capturing(amp_cuda_stream(ctx), "free");
        CHECK(cudaStreamEndCapture(amp_cuda_stream(ctx), &graph) == cudaSuccess, "end");
        cudaGraphDestroy(graph);
        OK(amp_alloc(ctx, &p, 64, NULL)); /* frees what waits */
        CHECK(device_areas == own + 2, "%d areas", device_areas - own);
        OK(amp_free(ctx, p));
        CHECK(device_areas == own + 1, "%d areas", device_areas - own);
    }
    amp_ctx_destroy(ctx);
    ctx = NULL;
    CHECK(device_areas == 1, "%d areas: all but the lost one", device_areas);
    device_free(lost, 1234, NULL);
    no_leak("freed in a capture");
}
/* A set has a page-locked record, too. It is destroyed inside a capture of its own stream, which stays whole. */
static void test_set_destroyed_in_capture() {
    cudaGraph_t graph;
    void *p = NULL;
    for (uint32_t flags : {0u, (uint32_t)AMP_CUDA_POOL}) {
        amp_cuda_desc d = desc_with(flags);
        amp_params *set;
        amp_scaler *s;
        amp_fp8 *f;
        d.workspace_bytes = 4096;
        hcu_reset();
        OK(amp_cuda_create(&ctx, d));
        OK(amp_alloc(ctx, &p, 256, NULL));
        OK(build_params(&set, ctx, 0));
        OK(amp_scaler_create(&s, ctx, NULL));
        OK(amp_fp8_create(&f, ctx, NULL));
        size_t pinned = hcu_pinned_bytes();
        CHECK(cudaStreamBeginCapture(amp_cuda_stream(ctx), cudaStreamCaptureModeRelaxed) == cudaSuccess,
            "begin a capture");
        OK(amp_zero(ctx, p, 256));
        amp_params_destroy(set);
        still_capturing(amp_cuda_stream(ctx), "amp_params_destroy");
        amp_scaler_destroy(s);
        amp_fp8_destroy(f);
        still_capturing(amp_cuda_stream(ctx), "amp_fp8_destroy");
        OK(amp_zero(ctx, p, 256));
        CHECK(cudaPeekAtLastError() == cudaSuccess, "error %d is left", (int)cudaPeekAtLastError());
        CHECK(cudaStreamEndCapture(amp_cuda_stream(ctx), &graph) == cudaSuccess, "end");
        cudaGraphDestroy(graph);
        OK(amp_free(ctx, p));
        CHECK(hcu_pinned_bytes() < pinned, "what waited is not freed: %zu of %zu bytes", hcu_pinned_bytes(), pinned);
        amp_ctx_destroy(ctx);
        ctx = NULL;
        no_leak("a set destroyed in a capture");
    }
}
/* CUDA's legacy stream cannot be asked while a stream that waits for it is being captured: that is a capture, too. */
static void test_implicit_capture() {
    void *p = NULL, *other = NULL;
    amp_cuda_desc d = desc_with(0);
    d.stream = AMP_CUDA_STREAM_LEGACY;
    d.workspace_bytes = 4096;
    hcu_reset();
    OK(amp_cuda_create(&ctx, d));
    OK(amp_alloc(ctx, &p, 64, NULL));
    hcu_fail_call("cudaStreamIsCapturing", 1, cudaErrorStreamCaptureImplicit, 0);
    WANT(amp_alloc(ctx, &other, 64, NULL), AMP_ERR_CAPTURE);
    CHECK(!other && strstr(amp_last_error(ctx), "is being captured"), "%s", amp_last_error(ctx));
    hcu_fail_call("cudaStreamIsCapturing", 1, cudaErrorStreamCaptureImplicit, 0);
    WANT(amp_sync(ctx), AMP_ERR_CAPTURE);
    size_t bytes = hcu_device_bytes(0);
    hcu_fail_call("cudaStreamIsCapturing", 1, cudaErrorStreamCaptureImplicit, 0);
    OK(amp_free(ctx, p));
    CHECK(hcu_device_bytes(0) == bytes, "freed inside a capture");
    CHECK(cudaPeekAtLastError() == cudaSuccess, "left to the caller");
    OK(amp_sync(ctx));
    OK(amp_alloc(ctx, &p, 64, NULL));
    CHECK(hcu_device_bytes(0) == bytes, "what waited is not freed");
    OK(amp_free(ctx, p));
    amp_ctx_destroy(ctx);
    ctx = NULL;
    no_leak("implicit capture");
}

static void test_given_back() { /* lent memory goes back when nothing uses it any more */
    world w;
    amp_cuda_desc d = desc_with(0);
    d.allocator.alloc_fn = device_alloc;
    d.allocator.free_fn = device_free;
    hcu_reset();
    OK(amp_cuda_create(&ctx, d));
    OK(build(&w, ctx));
    freed_in_use = 0;
    run_ok(&w, 0, ENQUEUES);
    CHECK(hcu_pending() > 0, "nothing is left to run: this test sees nothing");
    OK(amp_free(ctx, w.buf[BUFFERS - 1]));
    w.buf[BUFFERS - 1] = NULL;
    run_ok(&w, 3, 4);
    end(&w);
    CHECK(freed_in_use == 0, "%ld areas went back while work was to run", freed_in_use);
    no_leak("given back");
}

/* A device that dies in a launch: the first verb that waits says so, if not that one (an H100 accepts launches until
   somebody waits). */
static void test_dead_launch() {
    for (int v = 0; v < 2; v++) {
        world w;
        hcu_reset();
        OK(amp_cuda_create(&ctx, desc_with(0)));
        OK(build(&w, ctx));
        hcu_reset_counts();
        hcu_set_mode(HCU_EAGER, 1); /* the kernel faults while it is being launched */
        hcu_fail_exec(1, 0);
        amp_status s = verbs[v ? 4 : 0].call(&w); /* a cast, a step */
        CHECK(s == AMP_OK || s == AMP_ERR_DEAD, "the launch gives %d", (int)s);
        CHECK(hcu_injected() == 1, "%ld faults", hcu_injected());
        WANT(amp_sync(ctx), AMP_ERR_DEAD);
        end(&w);
        hcu_reset();
        hcu_set_mode(HCU_LAZY, 1);
        no_leak("dead launch");
    }
}

/* ---- refusals, and errors that are not ours ---- */

/* The thread's last error, which the runtime keeps, may be of another device, or have been left by the caller. */
typedef struct two_devices {
    amp_ctx *of[2];
    void *p[2];
} two_devices;
static void make_two(two_devices *t, uint32_t flags) {
    hcu_reset();
    for (int i = 0; i < 2; i++) {
        amp_cuda_desc d = desc_with(flags);
        d.device = i;
        d.workspace_bytes = 4096;
        OK(amp_cuda_create(&t->of[i], d));
        OK(amp_alloc(t->of[i], &t->p[i], 256, NULL));
        OK(amp_zero(t->of[i], t->p[i], 256));
        OK(amp_sync(t->of[i]));
    }
}
static void healthy(const two_devices *t, const char *after) { /* the context of device 0 */
    char *p = (char *)t->p[0];
    ctx = t->of[0];
    OK(amp_cast(ctx, amp_arr(p, AMP_F16), amp_arr(p + 128, AMP_F32), 16, NULL));
    OK(amp_sync(ctx));
    amp_cuda_error e;
    OK(amp_cuda_last_error(ctx, &e));
    CHECK(e.library == AMP_CUDA_NO_LIBRARY, "%s: %s failed", after, e.call);
    ctx = NULL;
}
static void drop_two(two_devices *t) {
    for (int i = 0; i < 2; i++)
        amp_ctx_destroy(t->of[i]);
    hcu_reset();
}
static void test_fault_of_another_device() {
    two_devices t;
    cudaStream_t st;
    for (uint32_t flags : {0u, (uint32_t)AMP_CUDA_POOL, (uint32_t)AMP_CUDA_DEBUG}) {
        make_two(&t, flags);
        cudaSetDevice(1);
        cudaStreamCreateWithFlags(&st, cudaStreamNonBlocking);
        hcu_kill(1, cudaErrorIllegalAddress);
        CHECK(
            cudaStreamSynchronize(st) == cudaErrorIllegalAddress, "device 1 is not dead"); /* the program's own call */
        cudaSetDevice(0);
        healthy(&t, "a fault that the program met on device 1");
        CHECK(cudaGetLastError() == cudaErrorIllegalAddress, "the caller's error is gone");
        cudaStreamDestroy(st);
        drop_two(&t);

        make_two(&t, flags);
        hcu_kill(1, cudaErrorIllegalAddress);
        WANT(amp_sync(t.of[1]), AMP_ERR_DEAD);
        OK(amp_free(t.of[1], t.p[1]));
        CHECK(cudaPeekAtLastError() == cudaSuccess, "amp_free left error %d", (int)cudaPeekAtLastError());
        healthy(&t, "a fault that the library met on device 1");
        drop_two(&t);
    }
    make_two(&t, 0); /* and if it is the device's own after all, it is found; as is one of both */
    hcu_kill(0, cudaErrorIllegalAddress);
    CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress, "device 0 is not dead");
    WANT(amp_zero(t.of[0], t.p[0], 256), AMP_ERR_DEAD);
    drop_two(&t);
    no_leak("a fault of another device");
}
/* What the caller has left stays there, whatever a context that ends has to free; and nothing of it is left. */
static void test_error_survives_destroy() {
    void *p;
    for (int dead = 0; dead < 2; dead++) {
        hcu_reset();
        OK(amp_cuda_create(&ctx, desc_with(0)));
        OK(amp_alloc(ctx, &p, 64, NULL));
        hcu_fail_call("cudaMalloc", 1, 0, 0);
        CHECK(cudaMalloc(&p, 8) == cudaErrorMemoryAllocation, "no failure injected");
        if (dead) hcu_kill(0, cudaErrorIllegalAddress);
        amp_ctx_destroy(ctx); /* with a block that was not freed */
        ctx = NULL;
        cudaError_t left = cudaGetLastError(); /* a runtime keeps one: ours has taken its place, and goes */
        CHECK(left == (dead ? cudaSuccess : cudaErrorMemoryAllocation), "error %d is left", (int)left);
    }
    hcu_reset();
    no_leak("errors and the end of a context");
}

/* A thread that is cancelled while a context is made, or destroyed, ends after it. */
static int cancel_called; /* places where it could have been cancelled */
static void cancel_here() {
    cancel_called++;
    pthread_testcancel();
}
static void *cancel_alloc(size_t n, void *) {
    cancel_here();
    return malloc(n);
}
static void cancel_free(void *p, size_t, void *) {
    cancel_here();
    free(p);
}
static void cancel_log(amp_log_level, amp_status, const char *, void *) { cancel_here(); }
static amp_cuda_desc cancel_desc;
static amp_ctx *cancel_made;
static int cancel_ended;
static void *cancel_create(void *) {
    (void)pthread_cancel(pthread_self());
    (void)amp_cuda_create(&cancel_made, cancel_desc);
    cancel_ended = 1;
    pthread_testcancel();
    return NULL;
}
static void *cancel_destroy(void *) {
    (void)pthread_cancel(pthread_self());
    amp_ctx_destroy(cancel_made);
    cancel_ended = 1;
    pthread_testcancel();
    return NULL;
}
static void cancelled(void *(*body)(void *), const char *what) {
    pthread_t thread;
    void *end_of_it = NULL;
    cancel_called = cancel_ended = 0;
    CHECK(pthread_create(&thread, NULL, body, NULL) == 0, "no thread");
    CHECK(pthread_join(thread, &end_of_it) == 0 && end_of_it == PTHREAD_CANCELED, "%s: not cancelled", what);
    CHECK(cancel_ended && cancel_called > 0, "%s: cancelled inside, at place %d", what, cancel_called);
}
static void test_cancelled() {
    hcu_reset();
    cancel_desc = desc_with(0);
    cancel_desc.host.alloc_fn = cancel_alloc;
    cancel_desc.host.free_fn = cancel_free;
    cancel_desc.logger.fn = cancel_log;
    cancel_desc.workspace_bytes = (size_t)1 << 40; /* more than there is */
    cancelled(cancel_create, "a creation that fails");
    CHECK(!cancel_made, "a context");
    cancel_desc.workspace_bytes = 4096;
    cancelled(cancel_create, "amp_cuda_create");
    CHECK(cancel_made, "no context");
    if (cancel_made) cancelled(cancel_destroy, "amp_ctx_destroy");
    no_leak("cancelled");
}

static void test_create() {
    amp_ctx *x = (amp_ctx *)1, *cpu;
    amp_cuda_error e;
    amp_cuda_desc d = AMP_ZERO;

    d._end = 1;
    WANT(amp_cuda_create(&x, d), AMP_ERR_UNINIT);
    CHECK(!x, "create left a context");
    d = desc_with(0);
    d.device = 7;
    WANT(amp_cuda_create(&x, d), AMP_ERR_INVALID_ARG);
    d.device = -2;
    WANT(amp_cuda_create(&x, d), AMP_ERR_INVALID_ARG);
    WANT(amp_cuda_create(&x, desc_with(8)), AMP_ERR_INVALID_ARG);
    d = desc_with(0);
    d.allocator.alloc_fn = device_alloc; /* half an allocator */
    WANT(amp_cuda_create(&x, d), AMP_ERR_INVALID_ARG);
    WANT(amp_cuda_create_checked(&x, 1, sizeof d, d), AMP_ERR_VERSION);
    WANT(amp_cuda_create(NULL, d), AMP_ERR_INVALID_ARG);
    CHECK(amp_cuda_available() == 1, "not available");

    hcu_set_devices(0);
    CHECK(amp_cuda_available() == 0, "available without a device");
    WANT(amp_cuda_create(&x, desc_with(0)), AMP_ERR_NO_CUDA);
    CHECK(!x, "create left a context");
    hcu_set_devices(2);

    OK(amp_cpu_create(&cpu, NULL));
    WANT(amp_cuda_last_error(cpu, &e), AMP_ERR_INVALID_ARG);
    CHECK(amp_cuda_stream(cpu) == NULL, "a stream of the CPU");
    amp_ctx_destroy(cpu);
    no_leak("create");
}

static int harmless(const char *call) {                                        /* a failure of these has a way round */
    static const char *const calls[] = {"cudaThreadExchangeStreamCaptureMode", /* the mode stays what it was */
        "cudaStreamGetCaptureInfo",                                            /* then it is no capture */
        "cudaGetDriverEntryPoint", "cudaGetDriverEntryPointByVersion",         /* the device is restored as it was */
        "cublasLtMatmulAlgoConfigGetAttribute",                                /* a number in a sentence */
        "cublasLtMatmulAlgoGetHeuristic"};                                     /* its usual one: nothing is offered */
    for (const char *other : calls) {
        if (!strcmp(call, other)) return 1;
    }
    return 0;
}

/* ---- amp_cuda_create: what it refuses, and each of its calls that fails ---- */

/* Refused with this status and this sentence; nothing stays. */
static void refuses(const amp_cuda_desc *d, amp_status status, const char *sentence) {
    amp_ctx *x = (amp_ctx *)1;
    cudaError_t theirs = cudaPeekAtLastError();
    last_log[0] = 0;
    amp_status s = amp_cuda_create(&x, d);
    CHECK(s == status, "%d, wanted %d: %s (%s)", (int)s, (int)status, sentence, last_log);
    CHECK(!x, "create left a context: %s", sentence);
    CHECK(strstr(last_log, sentence), "said is '%s', not '%s'", last_log, sentence);
    if (s == AMP_OK) amp_ctx_destroy(x);
    CHECK(cudaGetLastError() == theirs, "an error of ours was left to the caller, or theirs is gone: %s", sentence);
    no_leak(sentence);
}
static void test_refused_desc() {
    amp_ctx *x = (amp_ctx *)1;
    char lent[600];
    amp_cuda_desc d = desc_with(0);
    d._begin = 1;
    last_log[0] = 0;
    WANT(amp_cuda_create(&x, d), AMP_ERR_UNINIT);
    CHECK(!x && !last_log[0], "a logger that cannot be trusted was told: %s", last_log);
    x = (amp_ctx *)1;
    WANT(amp_cuda_create_checked(&x, AMP_VERSION, sizeof d - 8, d), AMP_ERR_VERSION);
    CHECK(!x, "create left a context");
    for (int half = 0; half < 2; half++) {
        d = desc_with(0);
        if (half)
            d.host.alloc_fn = host_alloc;
        else
            d.host.free_fn = host_free;
        refuses(&d, AMP_ERR_INVALID_ARG, "desc.host needs both functions or neither");
        d = desc_with(0);
        if (half)
            d.allocator.alloc_fn = device_alloc;
        else
            d.allocator.free_fn = device_free;
        refuses(&d, AMP_ERR_INVALID_ARG, "desc.allocator needs both functions or neither");
    }
    d = desc_with(AMP_CUDA_POOL);
    d.allocator.alloc_fn = device_alloc;
    d.allocator.free_fn = device_free;
    refuses(&d, AMP_ERR_INVALID_ARG, "desc.allocator and AMP_CUDA_POOL exclude each other");
    d = desc_with(0);
    d.workspace = lent; /* it is not looked at */
    d.workspace_bytes = 511;
    refuses(&d, AMP_ERR_INVALID_ARG, "desc.workspace_bytes is less than 512");
    d.workspace_bytes = 512;
    OK(amp_cuda_create(&ctx, d));
    amp_ctx_destroy(ctx);
    ctx = NULL;
    refuses((d = desc_with(1u << 31), &d), AMP_ERR_INVALID_ARG, "desc.flags has an unknown bit");
    d = desc_with(0);
    d.gemm_flags = 1u << 31;
    refuses(&d, AMP_ERR_INVALID_ARG, "desc.gemm_flags has an unknown bit");
    d = desc_with(0);
    d.device = 2;
    refuses(&d, AMP_ERR_INVALID_ARG, "desc.device: this machine has no such device");
    d = desc_with(0);
    for (size_t bytes : {(size_t)-1, (size_t)-1 / 2 + 1, (size_t)-1 / 2}) { /* a sum with it must not wrap round */
        d.workspace_bytes = bytes;
        refuses(&d, AMP_ERR_NO_MEMORY, "cudaMalloc: cudaErrorMemoryAllocation");
    }
}

/* A driver that cannot be started, in twelve ways: there is no CUDA, or there is and it fails, in the runtime's words.
   tests/failing_driver.sh asks the toolkit's runtime the same. */
static void test_failing_drivers() {
    static const struct {
        int error, driver;
        amp_status status;
    } ways[] = {{cudaErrorInsufficientDriver, 0, AMP_ERR_NO_CUDA}, {cudaErrorStubLibrary, 13000, AMP_ERR_NO_CUDA},
        {cudaErrorNoDevice, 13000, AMP_ERR_NO_CUDA}, {cudaErrorInsufficientDriver, 12020, AMP_ERR_CUDA},
        {cudaErrorSystemDriverMismatch, 13000, AMP_ERR_CUDA},
        {cudaErrorCompatNotSupportedOnDevice, 13000, AMP_ERR_CUDA}, {cudaErrorDevicesUnavailable, 13000, AMP_ERR_CUDA},
        {cudaErrorMpsConnectionFailed, 13000, AMP_ERR_CUDA}, {cudaErrorMemoryAllocation, 13000, AMP_ERR_CUDA},
        {cudaErrorUnknown, 13000, AMP_ERR_CUDA}, {cudaErrorSoftwareValidityNotEstablished, 13000, AMP_ERR_CUDA}};
    amp_cuda_desc d = desc_with(0);
    hcu_reset();
    for (const auto &w : ways)
        for (int twice = 0; twice < 2; twice++) {
            char sentence[300];
            amp_ctx *x = (amp_ctx *)1;
            cudaError_t e = (cudaError_t)w.error;
            snprintf(sentence, sizeof sentence, "amp_cuda_create: cudaGetDeviceCount: %s (%s)", cudaGetErrorName(e),
                cudaGetErrorString(e));
            hcu_fail_start(w.error, w.driver);
            last_log[0] = 0;
            CHECK(amp_cuda_available() == 0, "error %d: available", w.error);
            WANT(amp_cuda_create(&x, d), w.status);
            CHECK(!x && !strcmp(last_log, sentence), "said is '%s', not '%s'", last_log, sentence);
            CHECK(cudaGetLastError() == e, "an error of the start has gone"); /* CUDA's way */
            hcu_fail_start(0, 0);
        }
    no_leak("failing drivers");
}

static int hosts_left, host_fails_in;
static void *host_alloc_fails(size_t n, void *) {
    if (host_fails_in && --host_fails_in == 0) return NULL;
    hosts_left++;
    return malloc(n);
}
static void host_free_counts(void *p, size_t, void *) {
    hosts_left--;
    free(p);
}
/* Lent allocators that have nothing: for the host, for the device. */
static void test_create_without_memory() {
    amp_cuda_desc d = desc_with(0);
    d.host.alloc_fn = host_alloc_fails;
    d.host.free_fn = host_free_counts;
    for (int k = 1; k <= 4; k++) { /* the backend's state, its plans, the context, its ledger */
        host_fails_in = k;
        refuses(&d, AMP_ERR_NO_MEMORY, "amp_cuda_create: no host memory");
        CHECK(hosts_left == 0 && host_fails_in == 0, "%d host areas are left, %d", hosts_left, host_fails_in);
    }
    d.allocator.alloc_fn = device_alloc;
    d.allocator.free_fn = device_free;
    for (int k = 1; k <= 2; k++) { /* the workspace, the scratch block */
        fail_in = k;
        refuses(&d, AMP_ERR_NO_MEMORY, "allocator.alloc_fn: cudaErrorMemoryAllocation");
        CHECK(device_areas == 0 && hosts_left == 0 && fail_in == 0, "%d, %d areas", device_areas, hosts_left);
    }
}

static amp_status create_status(const char *call, int error, int sticky) { /* of a creation in which this fails */
    if (!strncmp(call, "cudaGetDevice", 13) && call[13] != 'A' && call[13] != 'P' && !error) return AMP_ERR_NO_CUDA;
    if (sticky || (!error && strstr(call, "Synchronize"))) return AMP_ERR_DEAD;
    if (!error && (strstr(call, "Malloc") || strstr(call, "StreamCreate"))) return AMP_ERR_NO_MEMORY;
    return AMP_ERR_CUDA;
}
/* The k-th call of a creation fails; 0: it has not so many. */
static int create_fails(const amp_cuda_desc *d, long k, int error, int sticky) {
    amp_ctx *x = (amp_ctx *)1;
    int now = 9, before = 9;
    last_log[0] = 0;
    cudaGetDevice(&before);
    hcu_reset_counts();
    hcu_fail_call(NULL, k, error, sticky);
    amp_status s = amp_cuda_create(&x, d);
    const char *call = hcu_last_injected();
    int hit = hcu_injected() > 0;
    if (s == AMP_OK) {
        CHECK(!hit || harmless(call), "creation %ld: %s fails unseen", k, call);
        amp_ctx_destroy(x);
    } else {
        amp_status kind = create_status(call, error, sticky);
        CHECK(!x, "creation %ld: %s left a context", k, call);
        CHECK(s == kind, "creation %ld: %s -> %d, wanted %d", k, call, (int)s, (int)kind);
        CHECK(strstr(last_log, call) || (sticky && harmless(call)), "%s failed, said is '%s'", call, last_log);
    }
    hcu_reset();
    no_leak(call);
    CHECK(cudaGetDevice(&now) == cudaSuccess && now == before, "device %d after %s", now, call);
    return hit;
}
static void test_create_faults() {
    hcu_reset();
    for (int i = 0; i < 18; i++) {
        static const uint32_t flags[] = {0, AMP_CUDA_POOL, AMP_CUDA_DEBUG};
        amp_cuda_desc d = desc_with(flags[i % 3]);
        long k = 1;
        d.device = i / 3 % 2 ? 1 : AMP_NONE;
        d.workspace_bytes = 4096;
        while (create_fails(&d, k, i / 6 == 1 ? cudaErrorUnknown : 0, i / 6 == 2))
            k++;
        CHECK(k > 30, "%ld calls", k);
    }
}

/* A creation that fails, at any of its calls, leaves another stream's capture as it was. */
static void test_create_fails_beside_capture() {
    amp_cuda_desc d = desc_with(0);
    int hit = 1;
    d.workspace_bytes = 4096;
    hcu_reset();
    cudaStreamCreateWithFlags(&other_stream, cudaStreamNonBlocking);
    for (long k = 1; hit; k++) {
        amp_ctx *x = NULL;
        hcu_reset_counts();
        other_begin(cudaStreamCaptureModeRelaxed); /* a thread whose mode cannot be changed may break the others */
        hcu_fail_call(NULL, k, 0, 0);
        amp_status s = amp_cuda_create(&x, d);
        hit = hcu_injected() > 0;
        char what[100];
        snprintf(what, sizeof what, "a creation in which %s fails", hcu_last_injected());
        hcu_fail_call(NULL, 0, 0, 0);
        other_end(what);
        if (s == AMP_OK) amp_ctx_destroy(x);
        (void)cudaGetLastError(); /* CUDA's, of a failed start */
    }
    cudaStreamDestroy(other_stream);
    hcu_reset();
    no_leak("create beside a capture");
}

/* What cublasLtCreate says, with an error of the caller's own pending: that one is not mistaken for a dead device. */
static void test_create_cublas() {
    static const struct {
        cublasStatus_t code;
        const char *name;
        amp_status status;
    } cases[] = {{CUBLAS_STATUS_NOT_INITIALIZED, "CUBLAS_STATUS_NOT_INITIALIZED", AMP_ERR_CUDA},
        {CUBLAS_STATUS_ALLOC_FAILED, "CUBLAS_STATUS_ALLOC_FAILED", AMP_ERR_NO_MEMORY},
        {CUBLAS_STATUS_ARCH_MISMATCH, "CUBLAS_STATUS_ARCH_MISMATCH", AMP_ERR_CUDA},
        {(cublasStatus_t)99, "a cuBLAS status without a name here", AMP_ERR_CUDA}};
    const amp_cuda_desc d = desc_with(0);
    for (const auto &c : cases) {
        for (int pending = 0; pending < 2; pending++) {
            char sentence[120];
            void *p;
            snprintf(sentence, sizeof sentence, "amp_cuda_create: cublasLtCreate: %s", c.name);
            if (pending) {
                hcu_fail_call("cudaMalloc", 1, 0, 0);
                CHECK(cudaMalloc(&p, 8) != cudaSuccess, "no failure injected");
            }
            hcu_fail_call("cublasLtCreate", 1, (int)c.code, 0);
            refuses(&d, c.status, sentence);
        }
    }
    hcu_fail_call("cublasLtCreate", 1, 0, 1);
    amp_ctx *x = (amp_ctx *)1;
    WANT(amp_cuda_create(&x, d), AMP_ERR_DEAD);
    CHECK(!x && strstr(last_log, "cublasLtCreate"), "%s", last_log);
    hcu_reset();
    no_leak("create cublas");
}
/* The thread's own device comes back after a creation that succeeds, and after one that fails. */
static void test_create_restores() {
    amp_cuda_desc d = desc_with(0);
    int now = 9;
    hcu_reset();
    cudaSetDevice(0); /* in use, so that it comes back */
    d.device = 1;
    hcu_fail_call("cudaSetDevice", 2, 0, 0); /* there; back */
    refuses(&d, AMP_ERR_CUDA, "amp_cuda_create: cudaSetDevice: cudaErrorInvalidDevice");
    CHECK(cudaGetDevice(&now) == cudaSuccess && now == 0, "device %d", now);
    hcu_reset_counts();
    hcu_fail_call("cudaMallocHost", 1, 0, 0);
    fail_after_log = "cudaSetDevice";
    amp_ctx *x = (amp_ctx *)1;
    WANT(amp_cuda_create(&x, d), AMP_ERR_NO_MEMORY);
    CHECK(!x && hcu_injected() == 2, "%ld failures", hcu_injected());
    CHECK(cudaGetDevice(&now) == cudaSuccess && now == 0, "device %d", now);
    CHECK(cudaPeekAtLastError() == cudaSuccess, "left to the caller");
    cudaStream_t st; /* the legacy stream says so while a stream that waits for it is being captured */
    cudaStreamCreateWithFlags(&st, cudaStreamNonBlocking);
    d = desc_with(0);
    d.stream = st;
    for (int error : {(int)cudaErrorStreamCaptureImplicit, (int)cudaErrorStreamCaptureInvalidated}) {
        x = (amp_ctx *)1;
        hcu_fail_call("cudaStreamIsCapturing", 1, error, 0);
        last_log[0] = 0;
        WANT(amp_cuda_create(&x, d), AMP_ERR_CAPTURE);
        CHECK(!x && cudaPeekAtLastError() == cudaSuccess, "left to the caller");
        const char *said = error == cudaErrorStreamCaptureImplicit ? "desc.stream is being captured"
                                                                   : "cudaErrorStreamCaptureInvalidated";
        CHECK(strstr(last_log, said), "%s", last_log);
    }
    cudaStreamDestroy(st);
    d = desc_with(0);
    hcu_fail_call("cudaGetDeviceCount", 1, 0, 0);
    refuses(&d, AMP_ERR_NO_CUDA, "amp_cuda_create: cudaGetDeviceCount: cudaErrorNoDevice");
    hcu_fail_call("cudaGetDeviceCount", 1, cudaErrorIllegalAddress, 0);
    refuses(&d, AMP_ERR_DEAD, "amp_cuda_create: cudaGetDeviceCount: cudaErrorIllegalAddress");
    hcu_fail_call("cudaGetDeviceCount", 1, 0, 0);
    CHECK(amp_cuda_available() == 0, "available without a count");
    CHECK(cudaPeekAtLastError() == cudaSuccess, "amp_cuda_available left its error to the caller");
    CHECK(amp_cuda_available() == 1, "not available");
    hcu_reset();
    no_leak("create restores");
}
static void test_last_error() {
    amp_cuda_error e = {7, AMP_CUDA_CUBLASLT, NULL};
    OK(amp_cuda_create(&ctx, desc_with(0)));
    WANT(amp_cuda_last_error(ctx, NULL), AMP_ERR_INVALID_ARG);
    WANT(amp_cuda_last_error(NULL, &e), AMP_ERR_INVALID_ARG);
    CHECK(e.code == 0 && e.library == AMP_CUDA_NO_LIBRARY && e.call && !e.call[0], "of no context: %d", (int)e.code);
    OK(amp_cuda_last_error(ctx, &e));
    CHECK(e.code == 0 && e.library == AMP_CUDA_NO_LIBRARY && e.call && !e.call[0], "none failed: %d", (int)e.code);
    amp_ctx_destroy(ctx);
    ctx = NULL;
    no_leak("last error");
}

/* ---- what a CUDA error means: which are sticky, which are of a capture; and the names of cuBLAS's ---- */

static amp_status zero_fails(int code) { /* of a context of its own, which may die of it */
    void *p = NULL;
    amp_cuda_error e;
    amp_cuda_desc d = desc_with(0);
    d.workspace_bytes = 4096; /* less to make */
    OK(amp_cuda_create(&ctx, d));
    OK(amp_alloc(ctx, &p, 64, NULL));
    hcu_fail_call("cudaMemsetAsync", 1, code, 0);
    amp_status s = amp_zero(ctx, p, 64);
    OK(amp_cuda_last_error(ctx, &e));
    CHECK(e.code == code && e.library == AMP_CUDA_RUNTIME && !strcmp(e.call, "cudaMemsetAsync"), "%d", (int)e.code);
    CHECK(strstr(amp_last_error(ctx), "amp_zero: cudaMemsetAsync: "), "%s", amp_last_error(ctx));
    CHECK(cudaPeekAtLastError() == cudaSuccess, "error %d was left to the caller", code);
    amp_status again = amp_zero(ctx, p, 64), dead = s == AMP_ERR_DEAD ? AMP_ERR_DEAD : AMP_OK;
    CHECK(again == dead, "after error %d: %d", code, (int)again);
    if (dead) CHECK(strstr(amp_last_error(ctx), "since cudaMemsetAsync failed"), "%s", amp_last_error(ctx));
    OK(amp_free(ctx, p));
    amp_ctx_destroy(ctx);
    ctx = NULL;
    hcu_reset();
    return s;
}
static void test_kinds_of_errors() {
    static const int sticky[] = {226, 721, 911, cudaErrorIllegalAddress, cudaErrorLaunchTimeout, cudaErrorAssert,
        cudaErrorHardwareStackError, cudaErrorIllegalInstruction, cudaErrorMisalignedAddress,
        cudaErrorInvalidAddressSpace, cudaErrorInvalidPc, cudaErrorLaunchFailure, cudaErrorECCUncorrectable,
        cudaErrorNvlinkUncorrectable, cudaErrorMpsClientTerminated, cudaErrorCudartUnloading};
    hcu_reset();
    for (int code : sticky)
        CHECK(zero_fails(code) == AMP_ERR_DEAD, "error %d is sticky", code);
    for (int code = cudaErrorStreamCaptureUnsupported - 1; code <= cudaErrorStreamCaptureWrongThread + 1; code++) {
        int capture = code >= cudaErrorStreamCaptureUnsupported && code <= cudaErrorStreamCaptureWrongThread;
        amp_status s = zero_fails(code);
        CHECK(s == (capture ? AMP_ERR_CAPTURE : AMP_ERR_CUDA), "error %d -> %d", code, (int)s);
    }
    CHECK(zero_fails(cudaErrorMemoryAllocation) == AMP_ERR_NO_MEMORY, "no memory");
    CHECK(zero_fails(cudaErrorInvalidValue) == AMP_ERR_CUDA, "an invalid value");
    no_leak("kinds of errors");
}
/* No memory, and then the question whether the device is alive has an answer of its own. */
static void test_probe() {
    static const struct {
        int code, sticky;
        amp_status status;
    } cases[] = {{cudaErrorMemoryAllocation, 0, AMP_ERR_NO_MEMORY}, {cudaErrorIllegalAddress, 0, AMP_ERR_DEAD},
        {cudaErrorInvalidValue, 0, AMP_ERR_NO_MEMORY}, {cudaErrorMemoryAllocation, 1, AMP_ERR_DEAD}};
    hcu_reset();
    for (const auto &c : cases) {
        void *p = (void *)1;
        OK(amp_cuda_create(&ctx, desc_with(0)));
        hcu_set_memory_limit(0, hcu_device_bytes(0));
        hcu_reset_counts();
        hcu_fail_call("cudaStreamIsCapturing", 2, c.code, c.sticky); /* the first one asks for a capture */
        WANT(amp_alloc(ctx, &p, 1 << 20, NULL), c.status);
        CHECK(hcu_injected() == 1 && !p, "%ld failures, %p", hcu_injected(), p);
        hcu_reset();
        CHECK(cudaPeekAtLastError() == cudaSuccess, "left to the caller");
        hcu_set_memory_limit(0, (size_t)4 << 30);
        amp_ctx_destroy(ctx);
        ctx = NULL;
    }
    no_leak("probe");
}
/* A failure on the way to a call, or on the way back, is told by its own name and leaves nothing behind. */
static void test_ways_there_and_back() {
    static const char *const timed[] = {"cudaEventRecord", "cudaEventSynchronize", "cudaEventElapsedTime"};
    world w;
    amp_cuda_error e;
    amp_cuda_desc d = desc_with(0);
    cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
    void *p;
    hcu_reset();
    d.device = 1;
    OK(amp_cuda_create(&ctx, d));
    OK(build(&w, ctx));
    for (const char *call : timed)
        for (int k = 1; k <= 2; k++) {
            hcu_reset_counts();
            hcu_fail_call(call, k, cudaErrorInvalidValue, 0); /* its own would be a dead device */
            amp_status s = amp_gemm_tune(ctx, planned(&w, 40, 0));
            OK(amp_cuda_last_error(ctx, &e));
            CHECK(hcu_injected() == 1 && s != AMP_OK && !strcmp(e.call, call), "%s: %d, %s", call, (int)s, e.call);
        }
    hcu_reset();
    for (int k = 1; k <= 2; k++) {
        hcu_reset_counts();
        hcu_fail_call("cudaThreadExchangeStreamCaptureMode", k, 0, 0);
        OK(amp_alloc(ctx, &p, 64, NULL));
        CHECK(hcu_injected() == 1 && cudaPeekAtLastError() == cudaSuccess, "%ld failures", hcu_injected());
        CHECK(cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess && mode == cudaStreamCaptureModeGlobal,
            "change %d fails: the thread's mode is %d", k, (int)mode);
        OK(amp_free(ctx, p));
    }
    end(&w);
    no_leak("there and back");
}
static void test_cublas_names() {
    static const struct {
        int code;
        const char *name;
        amp_status status;
    } cases[] = {{CUBLAS_STATUS_NOT_INITIALIZED, "CUBLAS_STATUS_NOT_INITIALIZED (1)", AMP_ERR_CUDA},
        {CUBLAS_STATUS_ALLOC_FAILED, "CUBLAS_STATUS_ALLOC_FAILED (3)", AMP_ERR_NO_MEMORY},
        {CUBLAS_STATUS_MAPPING_ERROR, "CUBLAS_STATUS_MAPPING_ERROR (11)", AMP_ERR_CUDA},
        {CUBLAS_STATUS_EXECUTION_FAILED, "CUBLAS_STATUS_EXECUTION_FAILED (13)", AMP_ERR_CUDA},
        {CUBLAS_STATUS_INTERNAL_ERROR, "CUBLAS_STATUS_INTERNAL_ERROR (14)", AMP_ERR_CUDA},
        {CUBLAS_STATUS_LICENSE_ERROR, "a cuBLAS status without a name here (16)", AMP_ERR_CUDA}};
    world w;
    OK(amp_cuda_create(&ctx, desc_with(0)));
    OK(build(&w, ctx));
    for (const auto &c : cases) {
        for (int pending = 0; pending < 2; pending++) { /* an error of the caller's own is not a dead device */
            amp_cuda_error e;
            void *p;
            if (pending) {
                hcu_fail_call("cudaMalloc", 1, 0, 0);
                CHECK(cudaMalloc(&p, 8) != cudaSuccess, "no failure injected");
            }
            hcu_fail_call("cublasLtMatmul", 1, c.code, 0);
            WANT(v_gemm_f16(&w), c.status);
            CHECK(strstr(amp_last_error(ctx), c.name), "%s", amp_last_error(ctx));
            OK(amp_cuda_last_error(ctx, &e));
            CHECK(
                e.code == c.code && e.library == AMP_CUDA_CUBLASLT && !strcmp(e.call, "cublasLtMatmul"), "%s", e.call);
        }
    }
    hcu_fail_call("cublasLtMatmulDescSetAttribute", 1, CUBLAS_STATUS_INVALID_VALUE, 0);
    WANT(v_gemm_f16(&w), AMP_ERR_CUDA);
    CHECK(strstr(amp_last_error(ctx), "CUBLAS_STATUS_INVALID_VALUE (7)"), "%s", amp_last_error(ctx));
    hcu_fail_call("cublasLtMatmulDescSetAttribute", 1, CUBLAS_STATUS_NOT_SUPPORTED, 0);
    WANT(v_gemm_f16(&w), AMP_ERR_CUDA);
    CHECK(strstr(amp_last_error(ctx), "CUBLAS_STATUS_NOT_SUPPORTED (15)"), "%s", amp_last_error(ctx));
    OK(v_gemm_f16(&w));
    (void)cudaGetLastError();
    end(&w);
    no_leak("names of cuBLAS");
}

/* A fault that a call of cuBLASLt's meets first: the CUDA runtime has not noticed it, and the device is dead. */
static void test_beneath_cublas() {
    world w;
    hcu_reset();
    for (int way = 0; way < 3; way++) {
        OK(amp_cuda_create(&ctx, desc_with(0)));
        OK(build(&w, ctx));
        OK(v_gemm_f16(&w));
        amp_gemm_desc product = way == 0 ? planned(&w, 32, 0) : way == 1 ? planned(&w, 48, 0) : f8_product(&w);
        OK(amp_gemm(ctx, planned(&w, 32, 0)));
        hcu_kill(0, cudaErrorIllegalAddress);
        CHECK(cudaPeekAtLastError() == cudaSuccess, "the fault has been noticed");
        hcu_dead_search(way == 2 ? CUBLAS_STATUS_NOT_SUPPORTED : 0); /* it offers nothing, without saying why */
        WANT(amp_gemm(ctx, product), AMP_ERR_DEAD); /* the product itself, or the search, meets it first */
        hcu_dead_search(0);
        end(&w);
        hcu_reset();
    }
    no_leak("beneath cuBLASLt");
}

/* A product that cuBLASLt refuses only when it is to run ends as the plain kernel's: the same bits as in the defined
   order, which is its, for all dtypes and epilogues. */
static int refused_product(world *w, int i, amp_gemm_desc *g) { /* 0: this one is none */
    static const amp_dtype types[5][2] = {
        {AMP_F32, AMP_F32}, {AMP_F16, AMP_F16}, {AMP_BF16, AMP_BF16}, {AMP_F16, AMP_F32}, {AMP_F8E4M3, AMP_F16}};
    const int bias = i % 3, act = i / 3 % 3, aux = i / 9 % 2, c = i / 18 % 2, backward = i / 36 % 2, sums = i / 72 % 2;
    const int batch = i / 144 % 2, type = i / 288;
    memset(g, 0, sizeof *g);
    if (type == 5) return -1;
    if ((backward && (bias || !aux || !act)) || (batch && sums)) return 0;
    if (types[type][0] == AMP_F8E4M3 && backward) return 0; /* with the derivative of a rounded value */
    g->m = 16;
    g->n = g->k = 32;
    g->batch = batch ? 2 : 1;
    g->trans_b = 1;
    g->a = at(w, 2, types[type][0]);
    g->b = at(w, 2, types[type][0], 4096);
    g->d = at(w, 3, types[type][1]);
    g->act = (amp_act)act;
    g->backward = (uint32_t)backward;
    if (bias) g->bias = at(w, 4, bias == 1 ? types[type][1] : types[type][1] == AMP_F32 ? AMP_F16 : AMP_F32);
    if (aux) g->aux = at(w, 5, types[type][1]);
    if (sums) g->dbias = at(w, 6, types[type][1]);
    if (c) {
        g->c = at(w, 7, types[type][1]);
        g->beta = amp_opt(0.5f);
    }
    return 1;
}
static void fill_for(world *w, const amp_gemm_desc *g) {
    OK(amp_cast(ctx, amp_arr(w->buf[2], g->a.dtype), at(w, 0, AMP_F32), 2048, NULL));
    OK(amp_cast(ctx, amp_arr((char *)w->buf[2] + 4096, g->a.dtype), at(w, 1, AMP_F32), 2048, NULL));
    for (int b : {4, 5, 7})
        OK(amp_cast(ctx, amp_arr(w->buf[b], g->d.dtype), at(w, 1, AMP_F32), 2048, NULL));
    if (g->bias.data) OK(amp_cast(ctx, amp_arr(w->buf[4], g->bias.dtype), at(w, 1, AMP_F32), 32, NULL));
}
static void outputs_of(world *w, const amp_gemm_desc *g, int code, unsigned char *out) {
    static unsigned char unwritten[3][4096];
    memset(unwritten, 0x7f, sizeof unwritten);
    fill_for(w, g);
    OK(amp_copy(ctx, w->buf[3], unwritten[0], 4096));
    OK(amp_copy(ctx, w->buf[6], unwritten[1], 4096));
    if (!g->backward) OK(amp_copy(ctx, w->buf[5], unwritten[2], 4096));
    hcu_reset_counts();
    if (code) hcu_fail_call("cublasLtMatmul", 1, code, 0);
    OK(amp_gemm(ctx, g));
    CHECK(!code || hcu_injected() == 1, "cublasLtMatmul is not called");
    hcu_fail_call(NULL, 0, 0, 0);
    for (int b : {3, 5, 6})
        OK(amp_copy(ctx, out + 4096 * (b == 3 ? 0 : b - 4), w->buf[b], 4096));
}
static void test_refused_when_run() {
    static const int codes[] = {CUBLAS_STATUS_NOT_SUPPORTED, CUBLAS_STATUS_INVALID_VALUE, CUBLAS_STATUS_ARCH_MISMATCH};
    static unsigned char want[3 * 4096], got[3 * 4096];
    world w;
    amp_gemm_desc g;
    amp_cuda_desc d = desc_with(0);
    int there, n = 0;
    d.plans = 1024;
    hcu_set_sms(0, 1);
    hcu_reset();
    OK(amp_cuda_create(&ctx, d));
    OK(build(&w, ctx));
    for (int i = 0; (there = refused_product(&w, i, &g)) >= 0; i++) {
        char how[320] = "";
        if (there) OK(amp_gemm_explain(ctx, how, sizeof how, &g));
        if (!strstr(how, "cuBLASLt (")) continue;
        outputs_of(&w, &g, codes[n++ % 3], got);
        CHECK(strstr(last_warning, "refused what the heuristic had offered"), "product %d: %s", i, last_warning);
        last_warning[0] = 0;
        hcu_reset_counts();
        OK(amp_gemm(ctx, &g)); /* not asked again */
        CHECK(hcu_group_calls(HCU_MATMUL) == 0, "product %d is asked for again", i);
        g.flags = AMP_GEMM_ORDERED;
        outputs_of(&w, &g, 0, want);
        CHECK(!memcmp(want, got, sizeof want), "product %d, refused, is not the plain kernel's", i);
        CHECK(got[4] != 0x7f || got[5] != 0x7f, "product %d is not written", i);
    }
    CHECK(n > 400, "%d products", n);
    hcu_set_sms(0, 132);
    end(&w);
    no_leak("refused when run");
}

static void test_errors() {
    world w;
    void *p;
    amp_cuda_error e;

    OK(amp_cuda_create(&ctx, NULL));
    OK(build(&w, ctx));
    hcu_fail_call("cudaMalloc", 1, 0, 0); /* an error of the caller's own: neither ours, nor eaten */
    CHECK(cudaMalloc(&p, 8) != cudaSuccess, "no failure injected");
    OK(v_step(&w));
    OK(v_gemm_f16(&w));
    CHECK(cudaGetLastError() == cudaErrorMemoryAllocation, "the caller's error is gone");

    hcu_fail_call("cudaMemsetAsync", 1, 0, 0);
    WANT(v_zero(&w), AMP_ERR_CUDA);
    OK(amp_cuda_last_error(ctx, &e));
    CHECK(e.library == AMP_CUDA_RUNTIME && !strcmp(e.call, "cudaMemsetAsync"), "%d, %s", (int)e.library, e.call);

    hcu_fail_call("cublasLtMatmul", 1, 0, 0);
    WANT(v_gemm_f16(&w), AMP_ERR_CUDA);
    OK(v_gemm_f16(&w));
    hcu_fail_call("cublasLtMatmul", 1, CUBLAS_STATUS_NOT_SUPPORTED, 0); /* this one has a way round: our kernel */
    OK(v_gemm_f16(&w));

    hcu_fail_exec(1, 0); /* a kernel faults: seen by the next call that waits, and by all calls after it */
    v_step(&w);
    WANT(amp_sync(ctx), AMP_ERR_DEAD);
    hcu_reset_counts();
    WANT(v_step(&w), AMP_ERR_DEAD);
    CHECK(hcu_calls(NULL) == 0, "%ld calls to a device that is known to be dead", hcu_calls(NULL));
    end(&w);
    hcu_reset();
    no_leak("errors");
}

/* ---- faults: the k-th CUDA call of a whole life fails, for every k ---- */

static int at_end; /* no call had failed when the life came to its end */

static amp_status once_more(world *w, const verb *v) { /* after a failure that is not sticky the verb works again */
    amp_scaler_set_scale(w->s, 1024.0f);               /* also ends a half-done update */
    amp_status s = v->call(w);
    CHECK(s == AMP_OK || s == AMP_ERR_STAGE || s == AMP_ERR_DEAD, "%s again -> %d: %s", v->name, (int)s,
        amp_last_error(w->x));
    amp_scaler_set_scale(w->s, 1024.0f);
    return s;
}

static amp_status life(uint32_t flags, int retry) { /* returns the first failure */
    world w;
    amp_cuda_error e;
    amp_cuda_desc d = desc_with(flags);
    d.device = 1;
    d.workspace_bytes = 4096;
    at_end = 0;
    amp_status first = amp_cuda_create(&ctx, d), s;
    if (first != AMP_OK) {
        CHECK(ctx == NULL, "create failed and left a context");
        ctx = NULL;
        return first;
    }
    first = build(&w, ctx);
    for (int v = 0; v < VERBS && w.s; v++) {
        s = verbs[v].call(&w);
        if (s == AMP_OK) continue;
        if (first == AMP_OK) first = s;
        if (retry && s != AMP_ERR_DEAD) once_more(&w, &verbs[v]);
    }
    s = amp_sync(ctx);
    if (first == AMP_OK) first = s;
    at_end = first == AMP_OK && !hcu_injected();
    OK(amp_cuda_last_error(ctx, &e));
    if (first == AMP_ERR_DEAD || first == AMP_ERR_CUDA) {
        CHECK(e.library != AMP_CUDA_NO_LIBRARY && e.code && e.call[0], "no code of CUDA's after %d", (int)first);
    }
    end(&w);
    return first;
}

static void after_life(long k) {
    int now = 9;
    hcu_reset();
    CHECK(hcu_leaks(1) == 0, "leak, k %ld", k);
    cudaGetLastError();
    cudaGetDevice(&now);
    CHECK(now == 0, "current device is now %d, k %ld", now, k);
    cudaSetDevice(0);
}

/* Every step-th failure from the first on. */
static void test_faults(uint32_t flags, int first, int step) {
    long total = 0, k;
    hcu_reset();
    hcu_set_mode(HCU_EAGER, 1); /* work runs when enqueued: the k-th call is the same in every life */
    hcu_set_sms(1, 1);          /* few blocks: no call is made for one */
    OK(life(flags, 1));
    after_life(0);
    for (int sticky = 0; sticky < 2; sticky++) {
        for (k = first;; k += step) {
            hcu_reset();
            hcu_fail_call(NULL, k, 0, sticky);
            warm_tunings = 0;
            amp_status s = life(flags, !sticky);
            const char *call = hcu_last_injected();
            if (!hcu_injected()) {
                CHECK(s == AMP_OK, "k %ld: nothing injected, but %d", k, (int)s);
                break;
            }
            total++;
            CHECK(s != AMP_OK || harmless(call) || at_end || warm_tunings, "k %ld, sticky %d: %s swallowed", k, sticky,
                call);
            if (sticky && s != AMP_OK)
                CHECK(s == AMP_ERR_DEAD || s == AMP_ERR_NO_CUDA, "%s sticky -> %d: %s", call, (int)s, last_log);
            if (!sticky && s == AMP_ERR_DEAD)
                CHECK(strstr(call, "Synchronize") != NULL, "dead after %s: %s", call, last_log);
            after_life(k);
        }
    }
    for (k = first;; k += step) { /* the k-th piece of work faults while it runs */
        hcu_reset();
        hcu_fail_exec(k, 0);
        amp_status s = life(flags, 0);
        if (!hcu_injected()) break;
        total++;
        CHECK(s == AMP_ERR_DEAD, "work %ld faults -> %d: %s", k, (int)s, last_log);
        after_life(k);
    }
    hcu_reset();
    hcu_set_sms(1, 132);
    hcu_set_mode(HCU_LAZY, 1);
    CHECK(total >= 4000 / step, "only %ld faults", total);
    printf("faults, flags %u: %ld injected, from the %d-th on\n", (unsigned)flags, total, first);
}

/* ---- the k-th CUDA call of one verb fails, for every k and every verb ---- */

/* A verb whose k-th call fails, with `error` if that is not 0; 0: it has not so many. */
static int one_failure(world *w, const verb *v, long k, int error, int sticky) {
    amp_cuda_error e;
    int now = 9;
    hcu_reset_counts();
    warm_tunings = 0;
    hcu_fail_call(NULL, k, error, sticky);
    amp_status s = v->call(w);
    const char *call = hcu_last_injected();
    hcu_fail_call(NULL, 0, 0, 0);
    if (!hcu_injected()) return 0;
    CHECK(s != AMP_OK || harmless(call) || warm_tunings, "%s, call %ld: %s fails unseen", v->name, k, call);
    CHECK(
        s == AMP_OK || t_names_verb(amp_last_error(w->x)), "%s failed in %s: %s", call, t_called, amp_last_error(w->x));
    OK(amp_cuda_last_error(w->x, &e));
    if (s == AMP_ERR_CUDA || (s == AMP_ERR_DEAD && !sticky)) {
        CHECK(!strcmp(e.call, call) && e.code, "%s: %s failed, told is %s (%d)", v->name, call, e.call, (int)e.code);
        CHECK(strstr(amp_last_error(w->x), call), "%s: %s failed: %s", v->name, call, amp_last_error(w->x));
    }
    if (sticky) {
        CHECK(s == AMP_ERR_DEAD || s == AMP_OK, "%s: %s sticky -> %d", v->name, call, (int)s);
        hcu_reset_counts();
        amp_status then = amp_sync(w->x);
        const int told = strcmp(call, "cudaThreadExchangeStreamCaptureMode") != 0 && /* it knows of no device */
            strcmp(call, "cudaStreamGetCaptureInfo") != 0; /* asked while the caller's device is current */
        CHECK(then == AMP_ERR_DEAD || !told, "%s: %s sticky -> %d, then amp_sync %d", v->name, call, (int)s, (int)then);
        CHECK(s == AMP_OK || hcu_calls(NULL) == 0, "%ld calls to a device that is known to be dead", hcu_calls(NULL));
        hcu_reset();
    } else {
        CHECK(s != AMP_ERR_DEAD || strstr(call, "Synchronize"), "%s: dead after %s", v->name, call);
    }
    CHECK(cudaGetDevice(&now) == cudaSuccess && now == 0, "%s: device %d after %s", v->name, now, call);
    return 1;
}
/* In one world: the verb works as soon as no call fails. */
static long fail_each_call(world *w, const verb *v) {
    long k = 1;
    while (one_failure(w, v, k, cudaErrorUnknown, 0)) {
        amp_scaler_set_scale(w->s, 1024.0f); /* ends a half-done update */
        k++;
    }
    CHECK(k > 2, "%s: %ld calls", v->name, k - 1);
    OK(v->call(w));
    return k - 1;
}
static amp_status q_objects(world *w) { /* memory and objects, made and given back */
    world own;
    int live = hcu_leaks(0);
    amp_status s = build(&own, w->x);
    CHECK(s == AMP_OK || t_names_verb(amp_last_error(w->x)), "%s: %s", t_called, amp_last_error(w->x));
    hcu_fail_call(NULL, 0, 0, 0); /* giving back has no status */
    drop(&own);
    t_called = NULL; /* what goes wrong there has a sentence of its own */
    CHECK(hcu_leaks(0) == live, "%d objects are left after %s", hcu_leaks(0) - live, hcu_last_injected());
    return s;
}
/* As the first call of the verb after a context was made, with the failure that is usual for the CUDA call. */
static int every = 4; /* of the calls of a new context: all with --full; which, goes by the verb */
static long fail_each_first_call(const amp_cuda_desc *d, const verb *v, int sticky) {
    const int planned = strstr(v->name, "gemm") || strstr(v->name, "linear") || strstr(v->name, "chain"),
              anew = sticky || planned || !strcmp(v->name, "tune") || !strcmp(v->name, "autocast");
    const long most = strcmp(v->name, "tune") ? 1000 : 100; /* after that it does the same again */
    const long step = (1 + sticky) * every;                 /* of a dead device each second one: each takes a world */
    long k = -(long)(strlen(v->name) % (size_t)every), tried = 0;
    int hit = 1;
    world w = AMP_ZERO;
    while (hit && k < most) {
        if (!w.x) {
            OK(amp_cuda_create(&ctx, d));
            OK(build(&w, ctx));
        }
        k += step;
        hit = one_failure(&w, v, k, 0, sticky);
        tried += hit;
        amp_scaler_set_scale(w.s, 1024.0f);
        if (!anew && hit && amp_sync(w.x) == AMP_OK) continue;
        end(&w);
        memset(&w, 0, sizeof w);
        hcu_reset();
    }
    return tried;
}
/* Nothing stays when a call fails while a context and all that is on it goes. */
static long fail_each_end(const amp_cuda_desc *d) {
    long k = 0;
    int hit = 1, now = 9;
    while (hit) {
        world w;
        OK(amp_cuda_create(&ctx, d));
        OK(build(&w, ctx));
        hcu_reset_counts();
        hcu_fail_call(NULL, ++k, 0, 0);
        end(&w);
        hit = hcu_injected() > 0;
        CHECK(cudaPeekAtLastError() == cudaSuccess, "left to the caller: of %s", hcu_last_injected());
        hcu_reset();
        no_leak("a call fails at the end");
        CHECK(cudaGetDevice(&now) == cudaSuccess && now == 0, "device %d", now);
    }
    CHECK(k > 20, "%ld calls", k);
    return k - 1;
}
/* slice I of N: of every verb's, those of each N-th verb. */
static void test_each_call(int slice, int slices) {
    static const verb objects = {"objects", q_objects};
    const int with_objects = slice == slices; /* and the end of a context */
    long total = 0;
    int turn = 0;
    amp_cuda_desc d = desc_with(0);
    world w;
    hcu_reset();
    hcu_set_mode(HCU_EAGER, 1); /* no copy to memory of the host is left over when a call has failed */
    hcu_set_sms(1, 1);          /* few blocks: a quarter of the time */
    CHECK(cudaFree(NULL) == cudaSuccess, "device 0"); /* it is in use: each verb goes back to it */
    d.device = 1;
    d.workspace_bytes = 4096;
    OK(amp_cuda_create(&ctx, d));
    OK(build(&w, ctx));
    run_ok(&w, 0, VERBS);
    for (const verb &v : verbs)
        if (turn++ % slices == slice - 1) total += fail_each_call(&w, &v);
    if (with_objects) total += fail_each_call(&w, &objects);
    end(&w);
    no_leak("each call");
    turn = 0;
    for (const verb &v : verbs) {
        if (turn++ % slices != slice - 1) continue;
        total += fail_each_first_call(&d, &v, 0);
        total += fail_each_first_call(&d, &v, 1);
        no_leak(v.name);
    }
    if (with_objects) total += fail_each_first_call(&d, &objects, 0) + fail_each_end(&d);
    hcu_set_sms(1, 132);
    hcu_set_mode(HCU_LAZY, 1);
    printf("each call of each verb: %ld failures\n", total);
}

/* Everything but the failures that --full deals to its parts. */
static void test_each_promise() {
    test_list();
    test_plain_products();
    test_classes();
    test_first_capture();
    test_other_captures();
    test_plans();
    test_plan_files();
    test_plans_kept();
    test_device_comes_back();
    test_devices_in_use();
    test_driver_contexts();
    test_capture_of_default_stream();
    test_own_workspace();
    test_figures_of_memory();
    test_tuning();
    test_tuning_gradients();
    test_f8_aux();
    test_tuning_outputs();
    test_tuning_alignment();
    test_f8_reasons();
    test_f8_sum_refused();
    test_vocabulary_refused();
    test_plain_reasons();
    test_captured_factor(0);
    test_captured_factor(AMP_GEMM_ORDERED);
    test_search_answers();
    test_small_workspace();
    test_residency();
    test_spread();
    test_lost_window();
    test_small_grid();
    test_one_of_many();
    test_long_bias();
    test_lent_workspace();
    test_pinned();
    test_torn_record();
    test_weights_travel();
    test_step_counts();
    test_dependent_launch();
    test_captured_codes();
    test_capture(0, cudaStreamCaptureModeGlobal);
    test_capture(0, cudaStreamCaptureModeThreadLocal);
    test_capture(AMP_CUDA_DEBUG, cudaStreamCaptureModeGlobal);
    test_capture(AMP_CUDA_POOL, cudaStreamCaptureModeGlobal);
    test_capture(AMP_CUDA_DEPENDENT_LAUNCH, cudaStreamCaptureModeGlobal);
    test_autocast_capture(0);
    test_autocast_capture(AMP_CUDA_POOL);
    test_autocast_training();
    test_lent();
    test_freed_in_capture();
    test_set_destroyed_in_capture();
    test_implicit_capture();
    test_given_back();
    test_dead_launch();
    test_fault_of_another_device();
    test_error_survives_destroy();
    test_cancelled();
    test_create();
    test_refused_desc();
    test_create_without_memory();
    test_failing_drivers();
    test_create_faults();
    test_create_fails_beside_capture();
    test_create_cublas();
    test_create_restores();
    test_last_error();
    test_kinds_of_errors();
    test_probe();
    test_ways_there_and_back();
    test_cublas_names();
    test_beneath_cublas();
    test_refused_when_run();
    test_errors();
}

int main(int argc, char **argv) {
    int full = argc > 1 && !strcmp(argv[1], "--full"), slice = 1, slices = 1;
    const int sliced = argc == full + 3 && !strcmp(argv[full + 1], "--slice");
    if (argc != full + 1 && (!sliced || sscanf(argv[full + 2], "%d/%d", &slice, &slices) != 2)) return 2;
    setvbuf(stdout, NULL, _IOLBF, 0); /* a bug that the runtime finds aborts: show what came before */
    const char *folder = getenv("TMPDIR");
    snprintf(state_file, sizeof state_file, "%s/amp-verbs-XXXXXX", folder ? folder : "/tmp");
    int file = mkstemp(state_file);
    CHECK(file >= 0, "no file %s", state_file);
    if (!full || slice == 1) test_each_promise();
    if (full) every = 1;
    hcu_set_protect(0); /* closing device memory takes half of the time, and the verbs ran with it closed above */
    test_each_call(slice, slices);
    hcu_set_protect(full);
    test_faults(0, full ? slice : STEP / 2, full ? slices : STEP);
    hcu_set_protect(0);
    if (full) {
        test_faults(AMP_CUDA_POOL, slice, slices);
        test_faults(AMP_CUDA_DEBUG, slice, slices);
    }
    CHECK(hcu_bugs() == 0, "%d bugs", hcu_bugs());
    unlink(state_file);
    return report();
}
