/* test_modes.c - the same bits under flush-to-zero, denormals-are-zero and every rounding mode, with exceptions
   unmasked, and the control word left as it was found: every verb of VERB_LIST, counted, so that a new one is
   missed. Also for the scalar functions, which promise it without any set-up.  Guards: >>numerics.  x86 only. */
#if !defined(_GNU_SOURCE)
#  define _GNU_SOURCE /* ucontext_t with the floating-point state */
#endif
#include "set.h"
#include "verbs.h"

#if defined(__SSE2__) && defined(__linux__)

#  include <signal.h>
#  include <ucontext.h>

static uint32_t get_mxcsr(void) {
    uint32_t u = 0;
    __asm__ volatile("stmxcsr %0" : "=m"(u));
    return u;
}
static void set_mxcsr(uint32_t u) { __asm__ volatile("ldmxcsr %0" : : "m"(u)); }

#  define DEFAULT 0x1f80u
#  define CONTROL 0xffc0u /* everything but the sticky flags */
static const struct {
    uint32_t bits;
    const char *name;
} modes[] = {
    {DEFAULT, "default"},
    {0x9fc0, "FTZ + DAZ"},
    {0x9f80, "FTZ"},
    {0x1fc0, "DAZ"},
    {0x3f80, "round down"},
    {0x5f80, "round up"},
    {0x7f80, "round to zero"},
    {0xffc0, "round to zero, FTZ + DAZ"},
    {0x0000, "all exceptions unmasked"},
    {0xe040, "everything at once"},
};
#  define N_MODES  (sizeof modes / sizeof modes[0])
#  define N_MASKED (N_MODES - 2)

/* With exceptions unmasked, an instruction that raises one ends in SIGFPE, in any thread: count it, mask exceptions
   there and go on. */
static volatile sig_atomic_t traps;
static void on_trap(int sig, siginfo_t *info, void *context) {
    size_t offset = sizeof(void *) == 8 ? 24 : 136; /* in what fxsave stores */
    char *mxcsr = (char *)((ucontext_t *)context)->uc_mcontext.fpregs + offset;
    uint32_t u;
    (void)sig;
    (void)info;
    traps = traps + 1;
    memcpy(&u, mxcsr, 4);
    u |= 0x1f80u;
    memcpy(mxcsr, &u, 4);
}

static void check_call(t_run *t, amp_status got, uint32_t after, uint32_t mode, const char *call, int line) {
    t_check_status(t, got, AMP_OK, NULL, call, __FILE__, line);
    if (traps)
        t_check(t, 0, __FILE__, line, "%s: stopped by SIGFPE, %d times", call, (int)traps);
    else
        t_check(t, (after & CONTROL) == (mode & CONTROL), __FILE__, line, "%s leaves MXCSR %04x, found %04x", call,
            (unsigned)after, (unsigned)mode);
}

/* Runs the call in a mode, with no flag set before, and checks that the mode is still there. Floating-point code of the
   test itself stays outside. */
#  define IN_MODE(mode, call) IN_MODE_AS(mode, call, #call)
#  define IN_MODE_AS(mode, call, text) \
    do { \
        amp_status st_; \
        uint32_t after_; \
        traps = 0; \
        set_mxcsr(mode); \
        st_ = (call); \
        after_ = get_mxcsr(); \
        set_mxcsr(DEFAULT); \
        check_call(t, st_, after_, mode, text, __LINE__); \
    } while (0)

#  define VERB_NAME(name, class) #name,
static const char *const verbs[] = {VERB_LIST(VERB_NAME)};
#  define N_VERBS (sizeof verbs / sizeof verbs[0])

typedef struct visit { /* every verb once or more, in one mode */
    t_run *t;
    t_blob out; /* what they computed */
    uint32_t mode;
    unsigned calls[N_VERBS];
    unsigned long allocations[N_VERBS];
} visit;

static void count_call(visit *v, const char *call, unsigned long allocations) {
    size_t i;
    for (i = 0; i < N_VERBS; i++) {
        const char *at = strstr(call, verbs[i]);
        if (!at || at[strlen(verbs[i])] != '(') continue;
        v->calls[i]++;
        v->allocations[i] += allocations;
    }
}
#  define VERB(call) \
    do { \
        unsigned long before_ = t_allocations(); \
        IN_MODE_AS(v->mode, call, #call); \
        count_call(v, #call, t_allocations() - before_); \
    } while (0)

/* Who allocates, as >>memory says: these, and no other verb. (Tuning does so on CUDA only.) */
static int may_allocate(const char *verb) {
    static const char *const names[] = {"amp_alloc", "amp_params_create", "amp_params_add", "amp_params_commit",
        "amp_scaler_create", "amp_autocast_begin", "amp_snapshot_begin", "amp_param_read", "amp_param_write",
        "amp_state_save", "amp_state_load", "amp_params_use", "amp_fp8_create"};
    size_t i;
    for (i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(verb, names[i]) == 0) return 1;
    return 0;
}

/* Any floats, many of them subnormal; no NaN, whose payload arithmetic may choose. */
static float awkward(t_run *t) {
    uint32_t kind = t_below(t, 6), u = t_u32(t);
    if (kind == 0) return ref_f32(u & 0x807fffffu); /* subnormal */
    if (kind == 1) return t_range(t, -30, -10);     /* subnormal in FP16 */
    if (kind == 2) return t_range(t, -2, 2);
    if (kind == 3) return ref_f32((u & 0x80ffffffu) | 0x00800000u); /* just normal: products underflow */
    return t_real(t);
}
static amp_array awkward_array(t_run *t, amp_dtype dtype, size_t n) { /* in context memory */
    char *host = (char *)t_host(t, 4 * n);
    size_t i;
    for (i = 0; i < n; i++)
        amp_store(host, dtype, i, awkward(t));
    return amp_arrn(t_put(t, host, n * amp_dtype_size(dtype)), dtype, n);
}
static amp_array output(t_run *t, amp_dtype dtype, size_t n) {
    size_t bytes = n * amp_dtype_size(dtype);
    void *zeros = t_host(t, bytes);
    return amp_arrn(t_put(t, zeros, bytes), dtype, n);
}
static void keep(visit *v, amp_array a) { t_blob_dev(v->t, &v->out, a.data, a.count * amp_dtype_size(a.dtype)); }

static void v_memory(visit *v) {
    t_run *t = v->t;
    size_t n = 1000;
    amp_array a = awkward_array(t, AMP_F32, n);
    void *p = NULL;
    VERB(amp_alloc(t->ctx, &p, 4 * n, "modes"));
    VERB(amp_zero(t->ctx, p, 4 * n));
    VERB(amp_copy(t->ctx, p, a.data, 4 * n));
    VERB(amp_zero(t->ctx, p, 4 * n));
    VERB(amp_copy_async(t->ctx, p, a.data, 4 * n));
    VERB(amp_sync(t->ctx));
    CHECK_EQ(t_compare(t, a, amp_arr(p, AMP_F32), n), n);
    VERB(amp_free(t->ctx, p));
    keep(v, a);
}

static void v_arrays(visit *v) {
    t_run *t = v->t;
    size_t n = 3001, i, d;
    float *x = (float *)t_host(t, 4 * n);
    amp_finite_report report;
    amp_histogram hist;
    amp_array src;
    memset(&report, 0, sizeof report);
    memset(&hist, 0, sizeof hist);
    for (i = 0; i < n; i++)
        x[i] = i % 5 ? awkward(t) : t_pattern(t);
    src = amp_arrn(t_put(t, x, 4 * n), AMP_F32, n);
    for (d = 1; d < 5; d++) { /* both ways, nearest and stochastic */
        amp_cast_desc o = AMP_ZERO;
        amp_array dst = output(t, ref_dtypes[d], n);
        amp_array back = output(t, AMP_F32, n);
        amp_array other = output(t, ref_dtypes[1 + d % 4], n);
        o.rounding = AMP_STOCHASTIC;
        o.seed = 3;
        o.saturate = d % 2;
        VERB(amp_cast(t->ctx, dst, src, n, NULL));
        VERB(amp_cast(t->ctx, back, dst, n, NULL));
        VERB(amp_cast(t->ctx, other, dst, n, NULL));
        keep(v, dst);
        keep(v, back);
        keep(v, other);
        VERB(amp_cast(t->ctx, dst, src, n, &o));
        keep(v, dst);
    }
    VERB(amp_all_finite(t->ctx, &report, &src, 1));
    VERB(amp_histogram_count(t->ctx, &hist, &src, 1));
    t_blob_add(&v->out, &report.nan, 8);
    t_blob_add(&v->out, &report.inf, 8);
    t_blob_add(&v->out, hist.pow2, sizeof hist.pow2);
    t_blob_add(&v->out, &hist.amax, 4);
}

static void v_scaler(visit *v) {
    t_run *t = v->t;
    amp_scaler *s = NULL;
    amp_scaler_desc d = AMP_ZERO;
    amp_scaler_info info;
    amp_finite_report report;
    int step;
    memset(&info, 0, sizeof info);
    memset(&report, 0, sizeof report);
    d.scale = 333.3f;
    d.growth_interval = 2;
    d.growth_factor = 1.7f;
    d.backoff_factor = 0.3f;
    d.max_scale = 1e4f;
    VERB(amp_scaler_create(&s, t->ctx, &d));
    d.scale = 0;
    d.growth_factor = 1.9f;
    d.min_scale = 1e-3f;
    VERB(amp_scaler_configure(s, &d));
    for (step = 0; step < 12; step++) {
        amp_array in[2], to[2];
        in[0] = awkward_array(t, AMP_F16, 700);
        in[1] = awkward_array(t, step % 2 ? AMP_BF16 : AMP_F32, 70);
        to[0] = output(t, AMP_F32, 700);
        to[1] = output(t, AMP_BF16, 70);
        if (step == 6) VERB(amp_scaler_set_scale(s, 1e-30f)); /* large reciprocal: overflow in the division */
        if (step == 9) VERB(amp_scaler_set_scale(s, 3e38f));  /* its reciprocal is subnormal */
        VERB(amp_unscale(s, to, step % 3 ? NULL : &report, in, 2));
        VERB(amp_scaler_update(s));
        VERB(amp_scaler_get(s, &info));
        VERB(amp_scaler_set(s, &info));
        t_blob_add(&v->out, &info, sizeof info);
        t_blob_add(&v->out, &report, sizeof report);
        if (step != 6 && step != 7 && step != 8) {
            keep(v, to[0]);
            keep(v, to[1]);
        }
    }
    VERB((amp_scaler_destroy(s), AMP_OK));
}

static const struct kind {
    amp_optimizer optimizer;
    amp_dtype model, grad;
    amp_master master;
    amp_dtype moment;
    uint32_t stochastic, accumulate;
} kinds[] = {
    {AMP_SGD, AMP_F16, AMP_AUTO, AMP_MASTER_F32, AMP_AUTO, 0, 0},
    {AMP_ADAM, AMP_BF16, AMP_AUTO, AMP_MASTER_F32, AMP_AUTO, 1, 0},
    {AMP_ADAMW, AMP_F16, AMP_F32, AMP_MASTER_F32, AMP_BF16, 0, 1},
    {AMP_LION, AMP_BF16, AMP_AUTO, AMP_MASTER_NONE, AMP_AUTO, 1, 0},
    {AMP_LION, AMP_F32, AMP_AUTO, AMP_MASTER_F32, AMP_AUTO, 0, 0},
    {AMP_ADAMW, AMP_F16, AMP_AUTO, AMP_MASTER_SPLIT, AMP_BF16, 0, 1},
    {AMP_ADAM, AMP_BF16, AMP_F32, AMP_MASTER_KAHAN, AMP_AUTO, 0, 0},
    {AMP_ADAMW, AMP_F16, AMP_F32, AMP_MASTER_SPLIT8, AMP_BF16, 1, 0},
    {AMP_SGD, AMP_BF16, AMP_AUTO, AMP_MASTER_SPLIT8, AMP_AUTO, 0, 1},
};
static const size_t counts[] = {1, 9, 300, 2051};

static void one_update(visit *v, amp_params *p, amp_scaler *s, const amp_step_desc *d, int step) {
    t_run *t = v->t;
    if (step % 2 == 0) {
        VERB(amp_step(p, s, d));
        return;
    }
    VERB(amp_update(p, s, d));
    VERB(amp_scaler_update(s));
}

static void new_gradients(t_run *t, amp_params *p) {
    size_t i, k;
    for (i = 0; i < 4; i++) {
        amp_array g = amp_param_grad(p, i);
        void *host = t_host(t, 4 * counts[i]);
        for (k = 0; k < counts[i]; k++)
            amp_store(host, g.dtype, k, awkward(t));
        t_set(t, g.data, host, counts[i] * amp_dtype_size(g.dtype));
    }
}

static amp_params *new_params(visit *v, const struct kind *kind) {
    t_run *t = v->t;
    amp_params *p = NULL;
    amp_params_desc pd = AMP_ZERO;
    size_t i, k;
    pd.model = kind->model;
    pd.grad = kind->grad;
    pd.master = kind->master;
    pd.moment = kind->moment;
    pd.accumulate = kind->accumulate;
    VERB(amp_params_create(&p, t->ctx, &pd));
    for (i = 0; i < 4; i++) {
        amp_param_desc e = AMP_ZERO;
        float *init = (float *)t_host(t, 4 * counts[i]);
        for (k = 0; k < counts[i]; k++)
            init[k] = awkward(t);
        e.count = counts[i];
        e.init = init;
        e.keep_f32 = i == 1;
        e.group = i == 2;
        VERB(amp_params_add(p, &e));
    }
    VERB(amp_params_commit(p));
    return p;
}

/* What the gradients are like, and the last step's lost updates. */
static void v_report(visit *v, amp_params *p, amp_scaler *s) {
    t_run *t = v->t;
    amp_report_row *rows = (amp_report_row *)t_host(t, 5 * sizeof *rows);
    amp_watch w = AMP_ZERO;
    size_t i;
    VERB(amp_report(p, s, rows, 5, NULL, NULL, 0));
    for (i = 0; i < 5; i++) {
        t_blob_add(&v->out, &rows[i].values, sizeof rows[i].values);
        t_blob_add(&v->out, &rows[i].updates, 16);
        t_blob_add(&v->out, &rows[i].ratio, 4);
    }
    w.on = 1;
    VERB(amp_watch_array(t->ctx, &w, "gradient", amp_param_grad(p, 1)));
    t_blob_add(&v->out, &w.found, sizeof w.found);
}

/* One step, with what may come between gradients and update. */
static void v_step(visit *v, amp_params *p, amp_scaler *s, const struct kind *kind, const amp_step_desc *d, int step) {
    t_run *t = v->t;
    amp_step_record r;
    double norm = 0;
    memset(&r, 0, sizeof r);
    new_gradients(t, p);
    if (step == 1) /* arithmetic on Inf must not trap */
        set_grad_bits(t, p, 1, 3, set_inf(amp_param_grad(p, 1).dtype));
    VERB(amp_grad_norm(p, s, &norm));
    t_blob_add(&v->out, &norm, 8);
    v_report(v, p, s);
    if (kind->accumulate) {
        VERB(amp_accumulate(p, s, 1));
        VERB(amp_scaler_update(s));
        new_gradients(t, p);
        VERB(amp_accumulate(p, s, 1));
    } else if (step == 2) {
        VERB(amp_clip(p, s, 0.0f, 0.5f));
        VERB(amp_clip(p, s, 0.9f, 0.0f));
        VERB(amp_scaler_unscale(s, p));
    }
    one_update(v, p, s, d, step);
    CHECK_OK(amp_sync(t->ctx));
    VERB(amp_step_poll(p, &r));
    t_blob_add(&v->out, &r, sizeof r);
    if (kind->master == AMP_MASTER_F32) VERB(amp_params_master_to_model(p));
}

/* Weights and gradients go out and come in. */
static void v_move(visit *v, amp_params *p) {
    t_run *t = v->t;
    amp_array to[4];
    float *w = (float *)t_host(t, 4 * counts[3]);
    size_t i, k;
    for (i = 0; i < 4; i++)
        to[i] = output(t, AMP_F32, counts[i]);
    VERB(amp_params_grads_to(p, to, 4));
    for (i = 0; i < 4; i++)
        keep(v, to[i]);
    VERB(amp_param_read(p, 3, w));
    t_blob_add(&v->out, w, 4 * counts[3]);
    for (k = 0; k < counts[3]; k++)
        w[k] = awkward(t);
    VERB(amp_param_write(p, 3, w));
    set_blob(t, &v->out, p, counts, 4);
}

/* An update made elsewhere. */
static void v_apply(visit *v, amp_params *p, amp_scaler *s, const amp_step_desc *d) {
    t_run *t = v->t;
    amp_step_record r;
    size_t i;
    VERB(amp_window_begin(p, s));
    VERB(amp_inspect(p, s, d));
    VERB(amp_window_end(p));
    for (i = 0; i < 4; i++) {
        amp_array u = awkward_array(t, AMP_F32, counts[i]);
        VERB(amp_apply(p, i, u, i % 2));
    }
    set_blob(t, &v->out, p, counts, 4);
    VERB(amp_scaler_update(s));
    r = set_poll(t, p);
    t_blob_add(&v->out, &r, sizeof r);
}

static void v_state(visit *v, amp_params *p, amp_scaler *s) {
    t_run *t = v->t;
    amp_state_desc state = AMP_ZERO;
    state.params = &p;
    state.n_params = 1;
    state.scalers = &s;
    state.n_scalers = 1;
    VERB(amp_params_use(p, NULL));
    VERB(amp_params_set_steps(p, 11));
    VERB(amp_state_save(t->ctx, t_file("modes"), &state));
    VERB(amp_params_zero_grad(p));
    VERB(amp_params_model_to_master(p));
    set_blob(t, &v->out, p, counts, 4);
    VERB(amp_state_load(t->ctx, t_file("modes"), &state));
    set_blob(t, &v->out, p, counts, 4);
}

static void v_update(visit *v, const struct kind *kind) {
    t_run *t = v->t;
    amp_params *p = new_params(v, kind);
    amp_scaler *s = NULL;
    amp_scaler_desc sd = AMP_ZERO;
    amp_step_desc d = AMP_ZERO;
    int step;
    sd.scale = 1000.0f;
    sd.growth_interval = 2;
    sd.growth_factor = 1.7f;
    CHECK_OK(amp_scaler_create(&s, t->ctx, &sd));
    d.optimizer = kind->optimizer;
    d.stochastic = kind->stochastic;
    d.count_lost = 1;
    d.lr = 1e-3f;
    d.momentum = kind->optimizer == AMP_SGD ? 0.9f : 0.0f;
    d.weight_decay = 0.01f;
    d.clip_norm = 0.7f;
    d.clip_value = 0.6f;
    d.eps = amp_opt(1e-30f);
    for (step = 0; step < 5; step++)
        v_step(v, p, s, kind, &d, step);
    v_move(v, p);
    v_apply(v, p, s, &d);
    v_state(v, p, s);
    amp_scaler_destroy(s);
    VERB((amp_params_destroy(p), AMP_OK));
}

static void v_updates(visit *v) {
    size_t i;
    for (i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        t_note(v->t, "kind %d, mode %04x", (int)i, (unsigned)v->mode);
        v_update(v, &kinds[i]);
    }
}

static void v_policy(visit *v) {
    static const float p[] = {0.0f, 0.1f, 0.75f, 1.0f};
    t_run *t = v->t;
    size_t n = 900, i;
    amp_array in[2], out[2];
    amp_snapshot snapshot;
    amp_autocast_desc region = AMP_ZERO;
    amp_rng rng = {1, 2, 3};
    in[0] = awkward_array(t, AMP_F16, n);
    in[1] = awkward_array(t, AMP_F32, n);
    for (i = 0; i < 2; i++) {
        region.low = i ? AMP_BF16 : AMP_F16;
        VERB(amp_autocast_begin(t->ctx, &region));
        VERB(amp_autocast_input(t->ctx, out, AMP_OP_LINEAR, &in[1], 1));
        CHECK_EQ(out[0].dtype, region.low);
        out[0].count = n;
        keep(v, out[0]);
        VERB(amp_autocast_input(t->ctx, out, AMP_OP_ADD, in, 2));
        CHECK_EQ(out[0].dtype, AMP_F32);
        out[0].count = n;
        keep(v, out[0]);
        CHECK_OK(amp_snapshot_take(t->ctx, &snapshot, &rng, NULL));
        CHECK_OK(amp_autocast_end(t->ctx));
        VERB(amp_autocast_release(t->ctx));
        VERB(amp_snapshot_begin(t->ctx, &rng, &snapshot));
        CHECK_OK(amp_autocast_end(t->ctx));
    }
    VERB(amp_autocast_release(t->ctx));
    for (i = 0; i < 8; i++) {
        amp_dropout_desc d = AMP_ZERO;
        d.p = p[i % 4];
        d.count = n;
        d.x = in[i / 4];
        d.y = output(t, ref_dtypes[i % 5], n);
        d.rng.seed = i;
        VERB(amp_dropout(t->ctx, &d));
        keep(v, d.y);
    }
    for (i = 1; i < AMP_ACT_COUNT; i++) {
        amp_array sums = output(t, AMP_F32, 3);
        amp_activation_desc d = AMP_ZERO;
        d.act = (amp_act)i;
        d.count = n;
        d.x = in[i % 2];
        d.y = output(t, ref_dtypes[i % 5], n);
        VERB(amp_activation(t->ctx, &d));
        keep(v, d.y);
        d.dy = in[1];
        d.dx = output(t, AMP_F32, n);
        VERB(amp_activation(t->ctx, &d));
        keep(v, d.dx);
        VERB(amp_column_sums(t->ctx, sums, in[i % 2], n / 3, 3, 0, 0));
        keep(v, sums);
    }
    for (i = 0; i < 8; i++) {
        amp_array dst = output(t, i % 2 ? AMP_F8E5M2 : AMP_F8E4M3, n), dst_t = output(t, dst.dtype, n);
        amp_fp8_desc d = AMP_ZERO;
        amp_fp8_info info;
        amp_fp8 *f = NULL;
        d.history = (uint32_t)(i / 4);
        VERB(amp_fp8_create(&f, t->ctx, &d));
        VERB(amp_quantize(f, 0, dst, dst_t, in[i / 2 % 2], 1, n, 0));
        keep(v, dst);
        VERB(amp_quantize(f, 0, dst, dst_t, in[i / 2 % 2], n, 1, 0));
        keep(v, dst_t);
        VERB(amp_fp8_get(f, 0, &info));
        t_blob_add(&v->out, &info, sizeof info);
        VERB((amp_fp8_destroy(f), AMP_OK));
    }
}

static void v_gemm(visit *v, amp_dtype in, amp_dtype to, int relu) {
    t_run *t = v->t;
    amp_gemm_desc g = AMP_ZERO;
    float factor = 0.7f;
    char text[200];
    g.m = 43;
    g.n = 35;
    g.k = 67;
    g.act = relu ? AMP_RELU : AMP_GELU;
    g.trans_b = relu ? 1 : 0;
    g.alpha = amp_opt(1e-3f);
    g.beta = amp_opt(0.3f);
    g.alpha_ptr = (const float *)t_put(t, &factor, 4);
    g.a = awkward_array(t, in, g.m * g.k);
    g.b = awkward_array(t, in, g.k * g.n);
    g.bias = awkward_array(t, AMP_F32, g.n);
    g.d = awkward_array(t, to, g.m * g.n);
    g.aux = output(t, to, g.m * g.n);
    g.flags = AMP_GEMM_EMULATE;
    VERB(amp_gemm(t->ctx, &g));
    keep(v, g.d);
    keep(v, g.aux);
    g.backward = 1; /* with column sums, or with FP8's scales */
    g.bias.data = NULL;
    g.beta_ptr = g.alpha_ptr;
    if (in == AMP_F8E4M3) {
        g.d = awkward_array(t, in, g.m * g.n);
        g.scale_a = g.scale_b = g.scale_d = g.alpha_ptr;
        g.amax_d = (float *)t_put(t, &factor, 4);
    } else
        g.dbias = output(t, AMP_F32, g.n);
    VERB(amp_gemm(t->ctx, &g));
    keep(v, g.d);
    if (g.amax_d)
        t_blob_dev(t, &v->out, g.amax_d, 4);
    else
        keep(v, g.dbias);
    VERB(amp_gemm_explain(t->ctx, text, sizeof text, &g));
    VERB(amp_gemm_tune(t->ctx, &g));
}

static void v_linear(visit *v, amp_dtype in, int relu, int accumulate) {
    t_run *t = v->t;
    amp_linear_desc l = AMP_ZERO;
    l.rows = 33;
    l.in = 41;
    l.out = 29;
    l.act = relu ? AMP_RELU : AMP_GELU;
    l.accumulate = accumulate ? 1 : 0;
    l.x = awkward_array(t, in, 33 * 41);
    l.w = awkward_array(t, in, 29 * 41);
    l.bias = awkward_array(t, AMP_F32, 29);
    l.y = output(t, in, 33 * 29);
    l.aux = output(t, in, 33 * 29);
    l.dy = awkward_array(t, in, 33 * 29);
    l.dx = output(t, in, 33 * 41);
    l.dw = output(t, AMP_F32, 29 * 41);
    l.dbias = output(t, AMP_F32, 29);
    VERB(amp_linear_forward(t->ctx, &l));
    VERB(amp_linear_backward(t->ctx, &l));
    VERB(amp_linear_tune(t->ctx, &l));
    keep(v, l.y);
    keep(v, l.aux);
    keep(v, l.dy);
    keep(v, l.dx);
    keep(v, l.dw);
    keep(v, l.dbias);
}

static void v_products(visit *v) { /* the same bits here too, since path and order are the same */
    static const amp_dtype dtypes[][2] = {
        {AMP_F32, AMP_F16}, {AMP_F16, AMP_F16}, {AMP_BF16, AMP_F32}, {AMP_F8E4M3, AMP_BF16}, {AMP_F32, AMP_F32}};
    size_t i;
    for (i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        amp_dtype in = dtypes[i][0], to = dtypes[i][1];
        v_gemm(v, in, to, i % 2 == 1);
        if (in != AMP_F8E4M3) v_linear(v, in, i % 2 == 1, i > 1);
    }
}

static void v_loss(visit *v) {
    t_run *t = v->t;
    size_t i, rows = 7, classes = 301;
    float *z = (float *)t_host(t, 4 * rows * classes);
    int32_t labels[7] = {0, 300, -1, 5, 7, 100, 200};
    amp_scaler *s = NULL;
    amp_xent_desc e = AMP_ZERO;
    amp_linear_xent_desc d = AMP_ZERO;
    CHECK_OK(amp_scaler_create(&s, t->ctx, NULL));
    for (i = 0; i < rows * classes; i++)
        z[i] = i % 3 ? awkward(t) : t_real(t) * 40.0f;
    e.rows = rows;
    e.classes = classes;
    e.smoothing = 0.1f;
    e.factor = amp_opt(1e-3f);
    e.scaler = s;
    e.logits = amp_arr(t_put(t, z, 4 * rows * classes), AMP_F32);
    e.dlogits = output(t, AMP_F16, rows * classes);
    e.labels = (const int32_t *)t_put(t, labels, sizeof labels);
    e.loss = (float *)t_alloc(t, 4);
    e.row_loss = (float *)t_alloc(t, 4 * rows);
    VERB(amp_softmax_cross_entropy(t->ctx, &e));
    keep(v, e.dlogits);
    t_blob_dev(t, &v->out, e.loss, 4);
    t_blob_dev(t, &v->out, e.row_loss, 4 * rows);
    d.linear.rows = rows;
    d.linear.in = 4;
    d.linear.out = classes;
    d.linear.x = amp_arr(e.logits.data, AMP_F32);
    d.linear.w = e.logits;
    d.linear.dw = output(t, AMP_F16, classes * 4);
    d.xent.labels = e.labels;
    d.xent.loss = e.loss;
    d.xent.row_loss = e.row_loss;
    d.xent.scaler = s;
    d.chunk = 3;
    VERB(amp_linear_cross_entropy_bytes(t->ctx, &d.scratch_bytes, &d));
    d.scratch = t_alloc(t, d.scratch_bytes);
    VERB(amp_linear_cross_entropy(t->ctx, &d));
    keep(v, d.linear.dw);
    t_blob_dev(t, &v->out, e.row_loss, 4 * rows);
    amp_scaler_destroy(s);
}

static void (*const parts[])(visit *v) = {v_memory, v_arrays, v_scaler, v_updates, v_policy, v_products, v_loss};

static void go(visit *v, t_run *t, uint32_t mode) {
    struct sigaction trap, found;
    size_t i;
    memset(v, 0, sizeof *v);
    memset(&trap, 0, sizeof trap);
    v->t = t;
    v->mode = mode;
    trap.sa_sigaction = on_trap;
    trap.sa_flags = SA_SIGINFO;
    sigaction(SIGFPE, &trap, &found);
    for (i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        parts[i](v);
        t_clear(t);
    }
    sigaction(SIGFPE, &found, NULL);
}

static void verbs_in(t_run *t, size_t first, size_t end) {
    uint64_t rng = t->rng;
    uint32_t found = get_mxcsr();
    visit want, got;
    size_t m, i;
    go(&want, t, DEFAULT);
    for (i = 0; i < N_VERBS; i++)
        t_check(t, want.calls[i] > 0, __FILE__, __LINE__, "%s is missing here", verbs[i]);
    for (i = 0; i < N_VERBS; i++)
        t_check(t, (want.allocations[i] > 0) == may_allocate(verbs[i]), __FILE__, __LINE__, "%s allocates %lu times",
            verbs[i], want.allocations[i]);
    for (m = first; m < end; m++) {
        t->rng = rng;
        t_note(t, "%s", modes[m].name);
        go(&got, t, modes[m].bits);
        t_note(t, "%s", modes[m].name);
        CHECK_EQ(got.out.bytes, want.out.bytes);
        if (got.out.bytes == want.out.bytes) CHECK_BITS(got.out.data, want.out.data, want.out.bytes, 1);
        free(got.out.data);
    }
    free(want.out.data);
    set_mxcsr(found);
}
static void verbs_in_modes(t_run *t) { verbs_in(t, 1, N_MASKED); }
static void verbs_unmasked(t_run *t) { verbs_in(t, N_MASKED, N_MODES); }

/* Twelve words: what the scalar functions make of x, y and the random number r. */
static void scalar_results(uint32_t to[12], float x, double y, uint32_t r) {
    float v;
    to[0] = amp_f16_from_f32(x).bits;
    to[1] = amp_bf16_from_f32(x).bits;
    to[2] = amp_f8e4m3_from_f32(x).bits;
    to[3] = amp_f8e5m2_from_f32(x).bits;
    to[4] = amp_f16_from_f32_sr(x, r).bits;
    to[5] = amp_f16_from_f64(y).bits;
    to[6] = amp_bf16_from_f64(y).bits;
    v = amp_f32_from_f16(amp_f16_from_f32(x));
    memcpy(&to[7], &v, 4);
    v = amp_f32_from_bf16(amp_bf16_from_f32(x));
    memcpy(&to[8], &v, 4);
    v = amp_f32_from_f8e4m3(amp_f8e4m3_from_f32_sat(x));
    memcpy(&to[9], &v, 4);
    v = amp_f32_from_f8e5m2(amp_f8e5m2_from_f32_sat(x));
    memcpy(&to[10], &v, 4);
    to[11] = (uint32_t)amp_is_finite(x) * 2u + (uint32_t)amp_is_nan(x);
}

#  if defined(__F16C__)
#    define RAISED  0x3fu    /* the instructions for F16 raise flags, */
#    define N_QUIET N_MASKED /* and trap where exceptions are unmasked */
#  else
#    define RAISED  0u
#    define N_QUIET N_MODES
#  endif
static void scalar_in_modes(t_run *t) { /* integers only: no set-up, no trap, the same bits */
    size_t n = 4000, i, m;
    float *x = (float *)t_host(t, 4 * n);
    double *y = (double *)t_host(t, 8 * n);
    uint32_t *want = (uint32_t *)t_host(t, 4 * 12 * n), *got = (uint32_t *)t_host(t, 4 * 12 * n), found = get_mxcsr();
    for (i = 0; i < n; i++) {
        uint64_t u = t_u64(t);
        x[i] = t_pattern(t);
        y[i] = i % 2 ? ref_f64(u) : (double)t_range(t, -28, 17) * (1.0 + 1e-9);
    }
    for (m = 0; m < N_QUIET; m++) {
        uint32_t *to = m ? got : want, after;
        set_mxcsr(modes[m].bits);
        for (i = 0; i < n; i++)
            scalar_results(to + 12 * i, x[i], y[i], (uint32_t)i * 2654435761u);
        after = get_mxcsr();
        set_mxcsr(found);
        t_note(t, "%s", modes[m].name);
        CHECK_EQ(after & 0xffffu & ~RAISED, modes[m].bits & ~RAISED); /* not even a flag is raised */
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
    for (i = 0; i < n; i++) {
        from[i] = awkward(t);
        want[i] = ref_mul(from[i], 0.5f);
    }
    set_mxcsr(0xffc0); /* toward zero, FTZ, DAZ */
    st = t_create(t->place, &c, NULL, NULL);
    set_mxcsr(found);
    CHECK_EQ(st, AMP_OK);
    if (!c) return;
    d.scale = 2.0f;
    CHECK_EQ(amp_scaler_create(&s, c, &d), AMP_OK);
    list[0] = amp_arrn(x, AMP_F32, n);
    /* x / 2: subnormal operands and results, in many chunks. Often, since on a busy machine the calling thread may do
       all the work before a worker wakes. */
    for (round = 0; round < 30; round++) {
        memcpy(x, from, 4 * n);
        IN_MODE(0xffc0u, amp_unscale(s, NULL, NULL, list, 1));
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
    {NULL, NULL, 0},
};
