/* test_modes.c - the same bits under flush-to-zero, denormals-are-zero and every rounding mode, with exceptions unmasked, and the control
   word left as it was found. Also for the scalar functions, which promise it without any set-up.  Guards: >>numerics.  x86 only. */
#if !defined(_POSIX_C_SOURCE) && !defined(_GNU_SOURCE)
#  define _POSIX_C_SOURCE 200112L /* sigsetjmp */
#endif
#include "set.h"

#if defined(__SSE2__) && defined(__unix__)

#include <setjmp.h>
#include <signal.h>

static uint32_t get_mxcsr(void) { uint32_t u; __asm__ volatile("stmxcsr %0" : "=m"(u)); return u; }
static void set_mxcsr(uint32_t u) { __asm__ volatile("ldmxcsr %0" : : "m"(u)); }

#define CONTROL 0xffc0u /* everything but the sticky flags */
static const struct { uint32_t bits; const char *name; } modes[] = {
    {0x1f80, "default"}, {0x9fc0, "FTZ + DAZ"}, {0x9f80, "FTZ"}, {0x1fc0, "DAZ"}, {0x3f80, "round down"}, {0x5f80, "round up"}, {0x7f80, "round to zero"},
    {0xffc0, "round to zero, FTZ + DAZ"}, {0x0000, "all exceptions unmasked"}, {0xe040, "everything at once"}};
#define N_MODES (sizeof modes / sizeof modes[0])
#define N_MASKED (N_MODES - 2)

/* With exceptions unmasked, floating-point code that raises one is stopped by SIGFPE: come back from it and say so. */
static sigjmp_buf trapped;
static void on_trap(int sig) { (void)sig; siglongjmp(trapped, 1); }

/* Runs the call in a mode, with no flag set before, and checks that the mode is still there. Floating-point code of the test itself stays
   outside. */
#define IN_MODE(mode, call) \
    do { \
        volatile amp_status st_ = AMP_OK; \
        volatile uint32_t after_ = 0; \
        void (*old_)(int) = signal(SIGFPE, on_trap); \
        if (sigsetjmp(trapped, 1) == 0) { \
            set_mxcsr(mode); \
            st_ = (call); \
            after_ = get_mxcsr(); \
            set_mxcsr(0x1f80); \
            t_check_status(t, st_, AMP_OK, NULL, #call, __FILE__, __LINE__); \
            t_check(t, (after_ & CONTROL) == ((mode) & CONTROL), __FILE__, __LINE__, "%s leaves MXCSR %04x, found %04x", #call, after_, (unsigned)(mode)); \
        } else { \
            set_mxcsr(0x1f80); \
            t_check(t, 0, __FILE__, __LINE__, "%s: stopped by SIGFPE", #call); \
        } \
        signal(SIGFPE, old_); \
    } while (0)

/* Any floats, many of them subnormal; no NaN, whose payload arithmetic may choose. */
static float awkward(t_run *t) {
    uint32_t kind = t_below(t, 6), u = t_u32(t);
    if (kind == 0) return ref_f32(u & 0x807fffffu);                /* subnormal */
    if (kind == 1) return t_range(t, -30, -10);                    /* subnormal in FP16 */
    if (kind == 2) return t_range(t, -2, 2);
    if (kind == 3) return ref_f32((u & 0x80ffffffu) | 0x00800000u); /* just normal: products underflow */
    return t_real(t);
}

static void verbs_scenario(t_run *t, t_blob *b, uint32_t mode) {
    static const size_t counts[] = {1, 9, 300, 2051};
    size_t n = 3001, i, d;
    float *x = (float *)t_host(t, 4 * n);
    void *src, *dst;
    amp_finite_report report;
    amp_histogram hist;
    amp_array list[1];
    memset(&report, 0, sizeof report);
    for (i = 0; i < n; i++) x[i] = i % 5 ? awkward(t) : t_pattern(t);
    src = t_put(t, x, 4 * n);
    for (d = 1; d < 5; d++) { /* casts, both ways, nearest and stochastic */
        amp_cast_desc o = AMP_ZERO;
        volatile size_t size = amp_dtype_size(ref_dtypes[d]); /* volatile: may live across a trap */
        o.rounding = AMP_STOCHASTIC; o.seed = 3;
        dst = t_alloc(t, 4 * n);
        IN_MODE(mode, amp_cast(t->ctx, amp_arr(dst, ref_dtypes[d]), amp_arr(src, AMP_F32), n, NULL));
        t_blob_dev(t, b, dst, size * n);
        {
            void *back = t_alloc(t, 4 * n);
            IN_MODE(mode, amp_cast(t->ctx, amp_arr(back, AMP_F32), amp_arr(dst, ref_dtypes[d]), n, NULL));
            t_blob_dev(t, b, back, 4 * n);
            IN_MODE(mode, amp_cast(t->ctx, amp_arr(back, ref_dtypes[1 + d % 4]), amp_arr(dst, ref_dtypes[d]), n, NULL));
            t_blob_dev(t, b, back, amp_dtype_size(ref_dtypes[1 + d % 4]) * n);
        }
        IN_MODE(mode, amp_cast(t->ctx, amp_arr(dst, ref_dtypes[d]), amp_arr(src, AMP_F32), n, &o));
        t_blob_dev(t, b, dst, size * n);
    }
    list[0] = amp_arrn(src, AMP_F32, n);
    IN_MODE(mode, amp_all_finite(t->ctx, list, 1, &report));
    memset(&hist, 0, sizeof hist);
    IN_MODE(mode, amp_histogram_count(t->ctx, list, 1, &hist));
    t_blob_add(b, &report.nan, 8); t_blob_add(b, &report.inf, 8); t_blob_add(b, hist.pow2, sizeof hist.pow2); t_blob_add(b, &hist.amax, 4);
    for (d = 0; d < 3; d++) { /* updates, norm, clip, unscale */
        amp_params *volatile p = set_new(t, d == 1 ? AMP_BF16 : AMP_F16, d == 2 ? AMP_F32 : AMP_AUTO, counts, 4);
        amp_scaler *s = NULL;
        amp_scaler_desc sd = AMP_ZERO;
        amp_step_desc a = AMP_ZERO;
        amp_step_record r;
        double norm = 0;
        volatile int step;
        sd.scale = 1000.0f; sd.growth_interval = 2; sd.growth_factor = 1.7f;
        CHECK_OK(amp_scaler_create(&s, t->ctx, &sd));
        a.optimizer = d == 0 ? AMP_SGD : d == 1 ? AMP_ADAM : AMP_ADAMW;
        a.lr = 1e-3f; a.momentum = d == 0 ? 0.9f : 0.0f; a.weight_decay = 0.01f; a.clip_norm = 0.7f; a.stochastic = d == 1;
        for (step = 0; step < 4; step++) {
            for (i = 0; i < 4; i++) {
                amp_array g = amp_param_grad(p, i);
                void *host = t_host(t, 4 * counts[i]);
                size_t k;
                for (k = 0; k < counts[i]; k++) amp_store(host, g.dtype, k, awkward(t));
                t_set(t, g.data, host, counts[i] * amp_dtype_size(g.dtype));
            }
            if (step == 1) { /* an overflow too: arithmetic on Inf must not trap */
                set_grad_bits(t, p, 1, 3, set_inf(amp_param_grad(p, 1).dtype));
            }
            IN_MODE(mode, amp_grad_norm(t->ctx, p, s, &norm));
            t_blob_add(b, &norm, 8);
            if (step == 2) {
                IN_MODE(mode, amp_clip_value(t->ctx, p, s, 0.5f));
                IN_MODE(mode, amp_clip(t->ctx, p, s, 0.9f));
                IN_MODE(mode, amp_scaler_unscale(t->ctx, s, p));
            }
            IN_MODE(mode, amp_step(t->ctx, p, s, &a));
            r = set_poll(t, p);
            t_blob_add(b, &r, sizeof r);
            IN_MODE(mode, amp_params_master_to_model(t->ctx, p));
            IN_MODE(mode, amp_params_model_to_master(t->ctx, p));
        }
        set_blob(t, b, p, counts, 4);
        amp_scaler_destroy(s);
        amp_params_destroy(p);
    }
    { /* softmax cross-entropy; the backward of activations */
        size_t rows = 7, classes = 301;
        float *z = (float *)t_host(t, 4 * rows * classes);
        int32_t labels[7] = {0, 300, -1, 5, 7, 100, 200};
        amp_xent e = AMP_ZERO;
        amp_linear l = AMP_ZERO;
        for (i = 0; i < rows * classes; i++) z[i] = i % 3 ? awkward(t) : t_real(t) * 40.0f;
        e.rows = rows; e.classes = classes; e.smoothing = 0.1f; e.factor = 1e-3f;
        e.logits = amp_arr(t_put(t, z, 4 * rows * classes), AMP_F32); e.dlogits = amp_arr(t_alloc(t, 4 * rows * classes), AMP_F32);
        e.labels = (const int32_t *)t_put(t, labels, sizeof labels); e.loss = (float *)t_alloc(t, 4); e.row_loss = (float *)t_alloc(t, 4 * rows);
        IN_MODE(mode, amp_softmax_cross_entropy(t->ctx, &e));
        t_blob_dev(t, b, e.loss, 4); t_blob_dev(t, b, e.row_loss, 4 * rows); t_blob_dev(t, b, e.dlogits.data, 4 * rows * classes);
        l.rows = rows; l.in = 1; l.out = classes; l.act = AMP_GELU; l.aux = e.logits; l.dy = e.dlogits; l.dbias = amp_arr(t_alloc(t, 4 * classes), AMP_F32);
        IN_MODE(mode, amp_linear_backward(t->ctx, &l));
        t_blob_dev(t, b, l.dy.data, 4 * rows * classes); t_blob_dev(t, b, l.dbias.data, 4 * classes);
    }
    { /* products: same bits here too, since path and order are the same */
        amp_gemm_desc g = AMP_ZERO;
        float *m = (float *)t_host(t, 4 * 40 * 40);
        for (i = 0; i < 1600; i++) m[i] = awkward(t);
        g.m = g.n = g.k = 40; g.act = AMP_GELU;
        g.a = amp_arr(t_put(t, m, 6400), AMP_F32); g.b = amp_arr(t_put(t, m, 6400), AMP_F32); g.d = amp_arr(t_alloc(t, 3200), AMP_F16);
        IN_MODE(mode, amp_gemm(t->ctx, &g));
        t_blob_dev(t, b, g.d.data, 3200);
    }
    t_clear(t);
}

static void verbs_in(t_run *t, size_t first, size_t end) {
    uint64_t rng = t->rng;
    uint32_t found = get_mxcsr();
    t_blob want = AMP_ZERO;
    size_t m;
    verbs_scenario(t, &want, 0x1f80);
    for (m = first; m < end; m++) {
        t_blob got = AMP_ZERO;
        t_note(t, "%s", modes[m].name);
        t->rng = rng;
        verbs_scenario(t, &got, modes[m].bits);
        t_note(t, "%s", modes[m].name);
        CHECK_EQ(got.bytes, want.bytes);
        if (got.bytes == want.bytes) CHECK_BITS(got.data, want.data, want.bytes, 1);
        free(got.data);
    }
    free(want.data);
    set_mxcsr(found);
}
static void verbs_in_modes(t_run *t) { verbs_in(t, 1, N_MASKED); }
static void verbs_unmasked(t_run *t) {
    if (t->place->threads > 1) { t_skip(t, "a trap in a worker cannot be caught"); return; }
    verbs_in(t, N_MASKED, N_MODES);
}

static void scalar_in_modes(t_run *t) { /* integers only: no set-up, no trap, the same bits */
    size_t n = 4000, i, m;
    float *x = (float *)t_host(t, 4 * n);
    double *y = (double *)t_host(t, 8 * n);
    uint32_t *want = (uint32_t *)t_host(t, 4 * 12 * n), *got = (uint32_t *)t_host(t, 4 * 12 * n), found = get_mxcsr();
    for (i = 0; i < n; i++) { uint64_t u = t_u64(t); x[i] = t_pattern(t); y[i] = i % 2 ? ref_f64(u) : (double)t_range(t, -28, 17) * (1.0 + 1e-9); }
    for (m = 0; m < N_MODES; m++) {
        uint32_t *to = m ? got : want, after;
        set_mxcsr(modes[m].bits);
        for (i = 0; i < n; i++, to += 12) {
            float v;
            to[0] = amp_f16_from_f32(x[i]).bits; to[1] = amp_bf16_from_f32(x[i]).bits; to[2] = amp_f8e4m3_from_f32(x[i]).bits; to[3] = amp_f8e5m2_from_f32(x[i]).bits;
            to[4] = amp_f16_from_f32_sr(x[i], (uint32_t)i * 2654435761u).bits;
            to[5] = amp_f16_from_f64(y[i]).bits; to[6] = amp_bf16_from_f64(y[i]).bits;
            v = amp_f32_from_f16(amp_f16_from_f32(x[i])); memcpy(&to[7], &v, 4);
            v = amp_f32_from_bf16(amp_bf16_from_f32(x[i])); memcpy(&to[8], &v, 4);
            v = amp_f32_from_f8e4m3(amp_f8e4m3_from_f32_sat(x[i])); memcpy(&to[9], &v, 4);
            v = amp_f32_from_f8e5m2(amp_f8e5m2_from_f32_sat(x[i])); memcpy(&to[10], &v, 4);
            to[11] = (uint32_t)amp_is_finite(x[i]) * 2u + (uint32_t)amp_is_nan(x[i]);
        }
        after = get_mxcsr();
        set_mxcsr(found);
        t_note(t, "%s", modes[m].name);
        CHECK_EQ(after & 0xffffu, modes[m].bits); /* not even a flag is raised */
        if (m) CHECK_BITS(got, want, 12 * n, 4);
    }
}

static void workers_in_modes(t_run *t) { /* the mode of the calling thread does not leak into threads made under it */
    uint32_t found = get_mxcsr();
    amp_ctx *c = NULL;
    amp_status st;
    size_t n = 1000000, i;
    float *x = (float *)t_host(t, 4 * n), *from = (float *)t_host(t, 4 * n), *want = (float *)t_host(t, 4 * n);
    int round;
    amp_array list[1];
    amp_scaler *s = NULL;
    amp_scaler_desc d = AMP_ZERO;
    for (i = 0; i < n; i++) { from[i] = awkward(t); want[i] = ref_mul(from[i], 0.5f); }
    set_mxcsr(0xffc0); /* toward zero, FTZ, DAZ */
    st = t_create(t->place, &c, NULL, NULL);
    set_mxcsr(found);
    CHECK_EQ(st, AMP_OK);
    if (!c) return;
    d.scale = 2.0f;
    CHECK_EQ(amp_scaler_create(&s, c, &d), AMP_OK);
    list[0] = amp_arrn(x, AMP_F32, n);
    for (round = 0; round < 30; round++) { /* often: on a busy machine the calling thread may do all the work before a worker wakes */
        memcpy(x, from, 4 * n);
        IN_MODE(0xffc0u, amp_unscale(c, s, NULL, list, 1, NULL)); /* x / 2: subnormal operands and results, in many chunks */
        CHECK_BITS(x, want, n, 4);
    }
    amp_scaler_destroy(s);
    amp_ctx_destroy(c);
}

#else
static void verbs_in_modes(t_run *t) { t_skip(t, "no MXCSR on this machine"); }
static void scalar_in_modes(t_run *t) { t_skip(t, "no MXCSR on this machine"); }
static void verbs_unmasked(t_run *t) { t_skip(t, "no MXCSR on this machine"); }
static void workers_in_modes(t_run *t) { t_skip(t, "no MXCSR on this machine"); }
#endif

const t_test t_suite_modes[] = {
    {"modes.scalar", scalar_in_modes, T_HOST},
    {"modes.verbs", verbs_in_modes, T_CPU},
    {"modes.verbs_unmasked", verbs_unmasked, T_CPU},
    {"modes.workers", workers_in_modes, T_CPU},
    {NULL, NULL, 0}};
