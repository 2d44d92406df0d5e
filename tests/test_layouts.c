/* test_layouts.c - 16 + 16-bit, 16 + 8-bit and other layouts of the weights, BF16 moments, parameter groups, Lion,
   accumulation windows, hooks. Guards: amp_master, amp_layout_bytes, amp_accumulate, amp_step_desc.groups and hooks. */
#include "set.h"

#if defined(__unix__) && !defined(AMP_NO_THREADS)
#  include <pthread.h>
#  define HAVE_RANKS 1
#else
#  define HAVE_RANKS 0
#endif

#define N_LAYOUTS 9
static amp_params_desc layout(int i) { /* every rung of the ladder */
    static const amp_dtype model[N_LAYOUTS] = {
        AMP_F16, AMP_BF16, AMP_F16, AMP_BF16, AMP_BF16, AMP_BF16, AMP_F32, AMP_F16, AMP_BF16};
    static const amp_master master[N_LAYOUTS] = {AMP_MASTER_F32, AMP_MASTER_F32, AMP_MASTER_SPLIT, AMP_MASTER_SPLIT,
        AMP_MASTER_NONE, AMP_MASTER_KAHAN, AMP_MASTER_F32, AMP_MASTER_SPLIT8, AMP_MASTER_SPLIT8};
    amp_params_desc d = AMP_ZERO;
    d.model = model[i];
    d.master = master[i];
    return d;
}

/* A set of two parameters with the weights of w (the second keeps FP32 and belongs to group 1). */
static amp_params *two(t_run *t, amp_params_desc d, const float *w, size_t n) {
    amp_params *p = NULL;
    amp_param_desc e = AMP_ZERO;
    CHECK_OK(amp_params_create(&p, t->ctx, &d));
    e.count = n;
    e.init = w;
    e.name = "a";
    CHECK_OK(amp_params_add(p, &e));
    e.count = n / 2 + 1;
    e.name = "b";
    e.keep_f32 = 1;
    e.group = 1;
    e.no_decay = 1;
    CHECK_OK(amp_params_add(p, &e));
    CHECK_OK(amp_params_commit(p));
    return p;
}

static void random_grads(t_run *t, amp_params *p, float size) {
    size_t i;
    for (i = 0; i < amp_params_count(p); i++) {
        amp_array g = amp_param_grad(p, i);
        void *host = t_host(t, g.count * amp_dtype_size(g.dtype));
        t_fill_real(t, host, g.dtype, g.count, size);
        t_set(t, g.data, host, g.count * amp_dtype_size(g.dtype));
    }
}

static float *weights(t_run *t, amp_params *p, size_t i) {
    float *w = (float *)t_host(t, 4 * amp_param_grad(p, i).count);
    CHECK_OK(amp_param_read(p, i, w));
    return w;
}

static amp_step_record record(t_run *t, amp_params *p) {
    amp_step_record r;
    memset(&r, 0, sizeof r);
    CHECK_OK(amp_sync(t->ctx));
    CHECK_OK(amp_step_poll(p, &r));
    return r;
}

/* everything a set holds, for comparison */
static void blob_of(t_run *t, t_blob *b, amp_params *p) {
    size_t i, k;
    for (i = 0; i < amp_params_count(p); i++) {
        amp_array a[7];
        a[0] = amp_param_get(p, i).master;
        a[1] = amp_param_model(p, i);
        a[2] = amp_param_get(p, i).low;
        a[3] = amp_param_grad(p, i);
        a[4] = amp_param_get(p, i).moment[0];
        a[5] = amp_param_get(p, i).moment[1];
        a[6] = amp_param_get(p, i).accum;
        for (k = 0; k < 7; k++)
            if (a[k].data && amp_dtype_size(a[k].dtype))
                t_blob_dev(t, b, a[k].data, a[k].count * amp_dtype_size(a[k].dtype));
        set_blob_codes(t, b, p, i);
    }
}

static float *some_weights(t_run *t, size_t n) {
    float *w = (float *)t_host(t, 4 * n);
    size_t i;
    for (i = 0; i < n; i++)
        w[i] = i % 50 == 7 ? 0.0f : t_range(t, -9, 3);
    return w;
}

/* ---- the 16 + 16 bits ---- */

static void split_bits(t_run *t) {
    unsigned long i, n = t_full() ? 50000000ul : 2000000ul;
    for (i = 0; i < n; i++) {
        float w = i & 1 ? t_pattern(t) : t_range(t, -30, 16), back;
        uint32_t u = ref_f32_bits(w), p = amp_split_pack(w, AMP_F16), h = p & 0xffffu, b = amp_split_pack(w, AMP_BF16);
        int16_t r = (int16_t)(p >> 16);
        back = amp_split_unpack(p, AMP_F16);
        if (!amp_is_nan(w) && h != ref_encode((double)w, AMP_F16, 0)) {
            t_note(t, "w %08x", u);
            CHECK_EQ(h, ref_encode((double)w, AMP_F16, 0));
            return;
        }
        if (amp_is_nan(w)) {
            if (!CHECK(amp_is_nan(back))) return;
        } else if ((h & 0x7c00u) == 0x7c00u) {
            if (!CHECK(!amp_is_finite(back))) return;
        } else if ((h & 0x7c00u) || u << 1 == 0) {
            if (ref_f32_bits(back) != u || r > 16384 || r < -16384) {
                t_note(t, "w %08x, half %04x, r %d", u, h, r);
                CHECK_F32(back, w);
                return;
            }
        } else if (fabs((double)back - (double)w) > 9.094947017729282e-13) {
            t_note(t, "w %08x", u);
            CHECK_NEAR((double)back, (double)w, 9.094947017729282e-13);
            return;
        }
        back = amp_split_unpack(b, AMP_BF16);
        if (amp_is_nan(w)) {
            if (!CHECK(amp_is_nan(back))) return;
            continue;
        }
        if ((b & 0xffffu) != ref_encode((double)w, AMP_BF16, 0)) {
            t_note(t, "w %08x", u);
            CHECK_EQ(b & 0xffffu, ref_encode((double)w, AMP_BF16, 0));
            return;
        }
        if (ref_f32_bits(back) != u && !((u & 0xffffu) == 0x8000u && ref_f32_bits(back) == u - 1)) {
            t_note(t, "w %08x", u);
            CHECK_F32(back, w);
            return;
        }
    }
    CHECK(i == n);
}

/* ---- the 16 + 8 bits ---- */

typedef struct small_format { /* as frexp and ldexp want it */
    amp_dtype t;
    int mant, emin, emax;
} small_format;
static const small_format small_formats[2] = {{AMP_F16, 10, -14, 15}, {AMP_BF16, 7, -126, 127}};

/* The step of the numbers of 24 bits at w: 1/256 of the spacing of model copies. */
static double step24(const small_format *f, float w) {
    int e;
    (void)frexp((double)w, &e);
    return ldexp(1.0, (w == 0.0f || e - 1 < f->emin ? f->emin : e - 1) - f->mant - 8);
}
/* w rounded to 24 bits, in double: to nearest even, or with the random word r. */
static double rounded24(const small_format *f, float w, int drawn, uint32_t r) {
    double step = step24(f, w), x = fabs((double)w) / step, down = floor(x);
    double up = drawn ? floor((x - down) * 4294967296.0) + r >= 4294967296.0 : rint(x) - down;
    double is = (down + up) * step;
    if (isinf(w) || is >= ldexp(2.0, f->emax)) is = HUGE_VAL;
    return ref_f32_bits(w) >> 31 ? -is : is;
}
/* The model copy of that: to nearest, ties away from zero. */
static uint32_t copy24(const small_format *f, double is) {
    double ulp = 256.0 * step24(f, (float)is);
    double h = isinf(is) ? HUGE_VAL : floor(fabs(is) / ulp + 0.5) * ulp;
    return ref_encode(signbit(is) ? -h : h, f->t, 0);
}
static int split8_one(t_run *t, const small_format *f, float w, int drawn, uint32_t r) {
    uint32_t pair = amp_split8_pack(w, f->t, drawn ? AMP_STOCHASTIC : AMP_NEAREST, r);
    float back = amp_split8_unpack(pair, f->t);
    double is;
    t_note(t, "w %08x, %s, %s %08x", ref_f32_bits(w), amp_dtype_name(f->t), drawn ? "word" : "nearest", r);
    if (amp_is_nan(w)) return CHECK(amp_is_nan(back) && pair >> 16 == 0);
    is = rounded24(f, w, drawn, r);
    if (!CHECK_EQ(ref_f32_bits(back), ref_f32_bits((float)is)) || !CHECK_EQ(pair & 0xffffu, copy24(f, is))) return 0;
    if (isinf(is)) return CHECK(pair >> 16 == 0);
    if (!drawn && !CHECK(fabs((double)back - (double)w) <= 0.5 * step24(f, w))) return 0;
    return CHECK_EQ(amp_split8_pack(back, f->t, AMP_STOCHASTIC, ~r), pair); /* what is kept stays */
}
/* Every kind of number against arithmetic in double: 0, subnormals, ties of copies and of codes, Inf, NaN, what FP16
   cannot hold. */
static void split8_bits(t_run *t) {
    static const uint32_t edges[] = {0, 0x80000000u, 1, 0x80000001u, 0x007fffffu, 0x00800000u, 0x2f800000u, 0x2f000000u,
        0x387fffffu, 0x38800000u, 0x3f7f8000u, 0x3f7ff000u, 0x3f808000u, 0x3f807f80u, 0x3f807f7fu, 0x3f801000u,
        0x3f800ff0u, 0x477fefefu, 0x477feff0u, 0x477ff000u, 0x477fffffu, 0x7f7f7f7fu, 0x7f7f7f80u, 0x7f7f8000u,
        0x7f7fff7fu, 0x7f7fff80u, 0x7f7fffffu, 0x7f800000u, 0xff800000u, 0x7fc00000u, 0x7f800001u};
    unsigned long i, n = t_full() ? 20000000ul : 100000ul, n_edges = sizeof edges / sizeof *edges;
    int k, how;
    for (i = 0; i < n + n_edges; i++) {
        float w = i < n_edges ? ref_f32(edges[i]) : i & 1 ? t_pattern(t) : t_range(t, -34, 17);
        uint32_t r = t_u32(t);
        if (i % 8 == 3) w = ref_f32(ref_f32_bits(w) & (i & 8 ? 0xffffff80u : 0xfffffff0u)); /* ties of codes */
        for (k = 0; k < 2; k++)
            for (how = 0; how < 2; how++)
                if (!split8_one(t, &small_formats[k], w, how, r)) return;
    }
}

/* A step of SPLIT8 is the step of FP32 masters from the same weights, rounded to 24 bits: to nearest, or with the
   random words of the step. Its weights come back from amp_param_write as they are. */
static void split8_is_rounded(t_run *t) {
    size_t n = 5000, i;
    int format, step;
    for (format = 0; format < 2; format++) {
        amp_params_desc a = layout(format), b = layout(format + 7);
        const small_format *f = &small_formats[format];
        float *w = some_weights(t, n), *before, *x, *y;
        amp_params *p, *q;
        amp_step_desc d = AMP_ZERO;
        a.grad = b.grad = AMP_F32;
        p = two(t, a, w, n);
        q = two(t, b, w, n);
        d.lr = 0.01f;
        d.weight_decay = 0.1f;
        d.seed = 77;
        for (step = 1; step < 5; step++) {
            uint16_t *copy;
            d.stochastic = step % 2u == 0;
            random_grads(t, p, 1.0f);
            for (i = 0; i < 2; i++) {
                size_t count = amp_param_grad(p, i).count;
                t_set(t, amp_param_grad(q, i).data, set_bits(t, amp_param_grad(p, i), count), 4 * count);
            }
            before = weights(t, q, 0);
            CHECK_OK(amp_param_write(q, 0, before));
            CHECK_BITS(weights(t, q, 0), before, n, 4);
            CHECK_OK(amp_param_write(p, 0, before));
            CHECK_OK(amp_step(p, NULL, &d));
            CHECK_OK(amp_step(q, NULL, &d));
            x = weights(t, p, 0);
            y = weights(t, q, 0);
            CHECK_EQ(amp_param_get(q, 0).low.dtype, AMP_F8E4M3);
            copy = (uint16_t *)set_bits(t, amp_param_model(q, 0), n);
            for (i = 0; i < n; i++) {
                uint32_t word = amp_random(d.seed, (uint64_t)step << 24, i);
                double is = rounded24(f, x[i], (int)d.stochastic, word);
                t_note(t, "%s step %d element %lu", amp_dtype_name(a.model), step, (unsigned long)i);
                if (!CHECK_F32(y[i], (float)is) || !CHECK_EQ(copy[i], copy24(f, is))) break;
            }
        }
        amp_params_destroy(p);
        amp_params_destroy(q);
    }
}

/* An update of split weights is the FP32-master update wherever old and new halves are normal or zero; model copies are
   the same. */
static void split_is_master(t_run *t) {
    size_t n = 5000, i;
    int format, step;
    for (format = 0; format < 2; format++) {
        amp_params_desc a = layout(format), b = layout(format + 2);
        float *w = some_weights(t, n), *before, *x, *y;
        amp_params *p = two(t, a, w, n), *q = two(t, b, w, n);
        amp_step_desc d = AMP_ZERO;
        unsigned long compared = 0;
        d.lr = 0.01f;
        d.weight_decay = 0.1f;
        for (step = 0; step < 5; step++) {
            void *g;
            random_grads(t, p, 1.0f);
            for (i = 0; i < 2; i++) {
                size_t bytes = amp_param_grad(p, i).count * amp_dtype_size(amp_param_grad(p, i).dtype);
                g = t_host(t, bytes);
                t_get(t, g, amp_param_grad(p, i).data, bytes);
                t_set(t, amp_param_grad(q, i).data, g, bytes);
            }
            before = weights(t, q, 0);
            CHECK_OK(amp_param_write(p, 0, before)); /* the same start for each step: BF16 ties move by an ulp */
            CHECK_OK(amp_step(p, NULL, &d));
            CHECK_OK(amp_step(q, NULL, &d));
            x = weights(t, p, 0);
            y = weights(t, q, 0);
            for (i = 0; i < n; i++) {
                uint32_t h0 = amp_f16_from_f32(before[i]).bits, h1 = amp_f16_from_f32(x[i]).bits;
                int normal = ((h0 & 0x7c00u) || !(h0 & 0x7fffu)) && ((h1 & 0x7c00u) || ref_f32_bits(x[i]) << 1 == 0);
                if (format == 1) normal = (ref_f32_bits(x[i]) & 0xffffu) != 0x8000u;
                if (!normal) continue;
                compared++;
                if (ref_f32_bits(x[i]) != ref_f32_bits(y[i])) {
                    t_note(t, "%s step %d element %lu", amp_dtype_name(a.model), step, (unsigned long)i);
                    CHECK_F32(y[i], x[i]);
                    break;
                }
            }
            CHECK_BITS((uint16_t *)set_bits(t, amp_param_model(q, 0), n),
                (uint16_t *)set_bits(t, amp_param_model(p, 0), n), n, 2);
        }
        CHECK(compared > 4 * n);
        amp_params_destroy(p);
        amp_params_destroy(q);
    }
}

/* FP16 in 24 bits ends at 65519.875 and 65520, whose copy is Inf: a step whose word draws it says so, and a later one
   brings the weight back. */
static void split8_overflows(t_run *t) {
    enum { N = 300 };
    static const float to[3] = {65519.86f, 65519.9f, 65000.0f};
    const small_format *f = &small_formats[0];
    amp_params_desc pd = layout(7);
    amp_step_desc d = AMP_ZERO;
    amp_params *p;
    float w[N], g[N], *got;
    size_t i, infinite;
    int step;
    pd.grad = AMP_F32;
    d.optimizer = AMP_SGD;
    d.lr = 1.0f;
    d.stochastic = 1;
    d.seed = 3;
    for (i = 0; i < N; i++)
        w[i] = i % 2 ? -65519.0f : 65519.0f;
    p = two(t, pd, w, N);
    for (step = 0; step < 3; step++) {
        uint16_t *copy;
        float *was = weights(t, p, 0);
        for (i = 0; i < N; i++)
            g[i] = ref_sub(was[i], i % 2 ? -to[step] : to[step]);
        t_set(t, amp_param_grad(p, 0).data, g, sizeof g);
        CHECK_OK(amp_step(p, NULL, &d));
        got = weights(t, p, 0);
        copy = (uint16_t *)set_bits(t, amp_param_model(p, 0), N);
        for (i = infinite = 0; i < N; i++) {
            double is = rounded24(f, ref_sub(was[i], g[i]), 1, amp_random(3, (uint64_t)(step + 1) << 24, i));
            CHECK_F32(got[i], (float)is);
            CHECK_EQ(copy[i], copy24(f, is));
            infinite += (copy[i] & 0x7fffu) == 0x7c00u;
        }
        t_note(t, "step %d, %d copies are Inf", step, (int)infinite);
        CHECK(step == 1 ? infinite > 0 && infinite < N : infinite == 0);
        CHECK_EQ(record(t, p).weight_overflow, step > 0); /* it stays 1 */
    }
    amp_params_destroy(p);
}

static void split_refuses(t_run *t) {
    amp_params_desc d = layout(2);
    amp_param_desc e = AMP_ZERO;
    amp_params *p = NULL;
    amp_step_desc s = AMP_ZERO;
    float w[3] = {1.0f, 65519.0f, 65520.0f}, back[3], nothing = 0.0f;
    CHECK_OK(amp_params_create(&p, t->ctx, &d));
    e.count = 3;
    e.init = w;
    e.name = "big";
    e.grad.dtype = AMP_F32;
    CHECK_STATUS(amp_params_add(p, &e), AMP_ERR_INVALID_ARG, "amp_params_add big 65520");
    CHECK_EQ(amp_params_count(p), 0);
    w[2] = -2.0f;
    CHECK_OK(amp_params_add(p, &e));
    CHECK_OK(amp_params_commit(p));
    w[0] = 70000.0f;
    CHECK_STATUS(amp_param_write(p, 0, w), AMP_ERR_INVALID_ARG, "amp_param_write big 70000");
    CHECK_OK(amp_param_read(p, 0, back));
    CHECK_F32(back[0], 1.0f);
    s.stochastic = 1;
    s.lr = 1.0f;
    CHECK_STATUS(amp_step(p, NULL, &s), AMP_ERR_INVALID_ARG, "stochastic");
    s.stochastic = 0;
    {
        float g[3] = {0.0f, -1.0f, 0.0f};
        t_set(t, amp_param_grad(p, 0).data, g, sizeof g);
    }
    s.lr = 0.0f;
    s.lr_ptr = (const float *)t_put(t, &nothing, sizeof nothing);
    CHECK_OK(amp_step(p, NULL, &s));
    CHECK_EQ(record(t, p).weight_overflow, 0);
    s.lr_ptr = NULL;
    s.lr = 1.0f;
    CHECK_OK(amp_step(p, NULL, &s)); /* 65519 + about 1: Inf in FP16 */
    CHECK_EQ(record(t, p).weight_overflow, 1);
    amp_params_destroy(p);
    d = layout(7);
    CHECK_OK(amp_params_create(&p, t->ctx, &d));
    w[0] = 1.0f;
    w[2] = 65519.9375f; /* in 24 bits halfway to 65536 */
    CHECK_STATUS(amp_params_add(p, &e), AMP_ERR_INVALID_ARG, "amp_params_add big 65519.9 SPLIT8 65519.9375");
    w[2] = ref_f32(0x477fefefu); /* the number before it: 65519.875 */
    CHECK_OK(amp_params_add(p, &e));
    CHECK_OK(amp_params_commit(p));
    CHECK_OK(amp_param_read(p, 0, back));
    CHECK_F32(back[2], 65519.875f);
    amp_params_destroy(p);
    d.model = AMP_F16;
    d.master = AMP_MASTER_KAHAN;
    CHECK_STATUS(amp_params_create(&p, t->ctx, &d), AMP_ERR_INVALID_ARG, "KAHAN bf16");
}

/* ---- every layout ---- */

typedef struct ladder {
    int layout;
    amp_optimizer optimizer;
    amp_dtype moment;
    int stochastic;
} ladder;

static amp_step_desc ladder_desc(const ladder *l) {
    amp_step_desc s = AMP_ZERO;
    s.optimizer = l->optimizer;
    s.lr = 0.02f;
    s.weight_decay = 0.01f;
    s.seed = 99;
    s.clip_norm = 5.0f;
    s.momentum = l->optimizer == AMP_SGD ? 0.9f : 0.0f;
    s.stochastic = (uint32_t)l->stochastic;
    return s;
}

static void ladder_run(t_run *t, t_blob *b, const void *arg) {
    const ladder *l = (const ladder *)arg;
    size_t n = 2311;
    float *w = some_weights(t, n);
    amp_params_desc d = layout(l->layout);
    amp_scaler_desc sd = AMP_ZERO;
    amp_scaler *s = NULL;
    amp_params *p;
    amp_step_desc step = ladder_desc(l);
    amp_group group = AMP_ZERO;
    int i;
    d.moment = l->moment;
    d.accumulate = 1;
    p = two(t, d, w, n);
    sd.scale = 1024.0f;
    CHECK_OK(amp_scaler_create(&s, t->ctx, &sd));
    group.lr = 0.3f;
    group.momentum = step.momentum;
    group.beta1 = amp_opt(0.5f);
    step.groups = &group;
    step.n_groups = 1;
    for (i = 0; i < 3; i++) {
        random_grads(t, p, 64.0f);
        if (i == 1) set_grad_bits(t, p, 0, 17, set_inf(amp_param_grad(p, 0).dtype)); /* a skipped one in between */
        CHECK_OK(amp_step(p, s, &step));
    }
    for (i = 0; i < 2; i++) {
        random_grads(t, p, 64.0f);
        CHECK_OK(amp_accumulate(p, s, 1));
    }
    CHECK_OK(amp_step(p, s, &step));
    CHECK_EQ(record(t, p).steps, 3);
    CHECK_EQ(record(t, p).skipped, 1);
    blob_of(t, b, p);
    amp_scaler_destroy(s);
    amp_params_destroy(p);
}

/* A set of n parameters of these sizes; gradients and model copies of two in three are adopted, one element behind an
   aligned address; one has a model copy alone there. FP32 weights have every second gradient in F16, four elements
   behind an aligned one: groups of eight are not aligned there, although the others' are. */
static amp_params *sizes_set(t_run *t, amp_params_desc d, const size_t *counts, size_t n) {
    amp_params *p = NULL;
    size_t i;
    CHECK_OK(amp_params_create(&p, t->ctx, &d));
    for (i = 0; i < n; i++) {
        amp_param_desc e = AMP_ZERO;
        e.count = counts[i];
        e.init = some_weights(t, counts[i]);
        if (i % 3 && d.model != AMP_F32) e.grad = amp_arr(t_alloc_at(t, 2 * counts[i], 2), AMP_AUTO);
        if (i % 2 == 0 && d.model == AMP_F32) e.grad = amp_arr(t_alloc_at(t, 2 * counts[i], 8), AMP_F16);
        if ((i % 3 == 1 || i == 6) && d.model != AMP_F32) e.model = amp_arr(t_alloc_at(t, 2 * counts[i], 2), AMP_AUTO);
        CHECK_OK(amp_params_add(p, &e));
    }
    CHECK_OK(amp_params_commit(p));
    return p;
}

static ladder ladder_rung(int layout_i, int o) { /* moments and rounding in turn */
    ladder l;
    memset(&l, 0, sizeof l);
    l.layout = layout_i;
    l.optimizer = (amp_optimizer)o;
    l.moment = (layout_i + o) % 3 == 2 ? AMP_MOMENT_8BIT : (layout_i + o) % 3 ? AMP_BF16 : AMP_F32;
    l.stochastic = layout(layout_i).master != AMP_MASTER_SPLIT && layout(layout_i).master != AMP_MASTER_KAHAN && o & 1;
    return l;
}

static void ladder_same(t_run *t) {
    int i, o;
    for (i = 0; i < N_LAYOUTS; i++)
        for (o = 0; o < (int)AMP_OPTIMIZER_COUNT; o++) {
            ladder l = ladder_rung(i, o);
            t_note(t, "layout %d optimizer %d", i, o);
            t_same_everywhere(t, ladder_run, &l);
        }
}

static const size_t odd_sizes[] = {1, 2, 3, 7, 8, 9, 17, 65535, 65536, 65537};
static void sizes_run(t_run *t, t_blob *b, const void *arg) {
    const ladder *l = (const ladder *)arg;
    amp_params_desc d = layout(l->layout);
    amp_step_desc s = ladder_desc(l);
    amp_params *p;
    int i, large = !t_slow(t) || (l->layout == 2 && l->optimizer == AMP_ADAMW); /* an emulated device: only once */
    size_t n = large ? 10 : 7;
    d.moment = l->moment;
    p = sizes_set(t, d, odd_sizes, n);
    for (i = 0; i < 2; i++) {
        random_grads(t, p, 1.0f);
        CHECK_OK(amp_step(p, NULL, &s));
    }
    blob_of(t, b, p);
    amp_params_destroy(p);
}
static void sizes_same(t_run *t) {
    int i, o;
    for (i = 0; i < N_LAYOUTS; i++)
        for (o = 0; o < (int)AMP_OPTIMIZER_COUNT; o++) {
            ladder l = ladder_rung(i, o);
            if (t_twin(t) && (i + o) % 3) continue;
            t_note(t, "layout %d optimizer %d", i, o);
            t_same_everywhere(t, sizes_run, &l);
            t_clear(t);
        }
}

/* BF16 weights without masters and moments, rounded at random, one element behind an aligned address: there a group of
   eight would begin in the middle of a call of the generator. */
static void drawn_run(t_run *t, t_blob *b, const void *arg) {
    amp_params_desc d = layout(4);
    amp_step_desc s = AMP_ZERO;
    amp_params *p;
    (void)arg;
    d.moments = AMP_NONE;
    p = sizes_set(t, d, odd_sizes, 7);
    s.optimizer = AMP_SGD;
    s.lr = 0.02f;
    s.seed = 5;
    s.stochastic = 1;
    random_grads(t, p, 1.0f);
    CHECK_OK(amp_step(p, NULL, &s));
    blob_of(t, b, p);
    amp_params_destroy(p);
}
static void drawn_same(t_run *t) { t_same_everywhere(t, drawn_run, NULL); }

/* Inf or NaN in every element of every parameter in turn, the first before any step: no array changes, and a good step
   in between is that of a set that never met a bad one. */
static void skip_anywhere(t_run *t) {
    static const size_t counts[] = {1, 2, 3, 7, 8, 9, 17}, n = 7;
    int rung;
    for (rung = 0; rung < N_LAYOUTS; rung++) {
        ladder l = ladder_rung(rung, rung % (int)AMP_OPTIMIZER_COUNT);
        amp_params_desc d = layout(rung);
        amp_step_desc s = ladder_desc(&l);
        amp_scaler_desc sd = AMP_ZERO;
        amp_scaler *scaler = NULL, *other = NULL;
        amp_params *p, *q;
        uint64_t rng = t->rng, skipped = 0, steps = 0;
        size_t stride = t_slow(t) ? 5 : 1;
        t_blob x = {NULL, 0, 0}, y = {NULL, 0, 0};
        size_t i, j, k;
        if (t_slow(t) && rung != 2 && rung != 5) continue; /* an emulated device */
        d.moment = l.moment;
        p = sizes_set(t, d, counts, n);
        t->rng = rng;
        q = sizes_set(t, d, counts, n); /* the same weights */
        sd.scale = 256.0f;
        sd.backoff_factor = 0.75f;
        sd.min_scale = 1.0f;
        sd.growth_interval = AMP_NONE;
        CHECK_OK(amp_scaler_create(&scaler, t->ctx, &sd));
        for (i = 0; i < n; i++)
            for (k = 0; k < counts[i]; k += stride) {
                t_blob before = {NULL, 0, 0}, after = {NULL, 0, 0};
                amp_array g = amp_param_grad(p, i);
                float scale = t_scale(scaler), next = scale * 0.75f;
                amp_step_record r;
                int nan = (int)(k + i) % 2;
                uint32_t sign = g.dtype == AMP_F32 ? 0x80000000u : 0x8000u;
                random_grads(t, p, 16.0f);
                set_grad_bits(t, p, i, k, (nan ? set_nan(g.dtype) : set_inf(g.dtype)) | (k % 4 < 2 ? 0u : sign));
                blob_of(t, &before, p);
                CHECK_OK(amp_step(p, scaler, &s));
                blob_of(t, &after, p);
                skipped++;
                t_note(t, "layout %d, parameter %d element %d", rung, (int)i, (int)k);
                CHECK(before.bytes == after.bytes && memcmp(before.data, after.data, before.bytes) == 0);
                free(before.data);
                free(after.data);
                r = record(t, p);
                CHECK_EQ(r.outcome, nan ? AMP_SKIPPED_NAN : AMP_SKIPPED_INF);
                CHECK_EQ(r.first_param, i);
                CHECK_EQ(r.first_index, k);
                CHECK_EQ(r.steps, steps);
                CHECK_EQ(r.skipped, skipped);
                CHECK_F32(t_scale(scaler), next < 1.0f ? 1.0f : next);
                if (k != 0) continue; /* one good step for each parameter, in both sets */
                random_grads(t, p, 16.0f);
                for (j = 0; j < n; j++) {
                    amp_array a = amp_param_grad(p, j);
                    t_set(t, amp_param_grad(q, j).data, set_bits(t, a, a.count), a.count * amp_dtype_size(a.dtype));
                }
                sd.scale = t_scale(scaler);
                sd.min_scale = 0.0f;
                CHECK_OK(amp_scaler_create(&other, t->ctx, &sd));
                CHECK_OK(amp_step(p, scaler, &s));
                CHECK_OK(amp_step(q, other, &s));
                amp_scaler_destroy(other);
                CHECK_EQ(record(t, p).steps, ++steps);
            }
        random_grads(t, p, 16.0f); /* gradients are not what is compared */
        for (j = 0; j < n; j++) {
            amp_array a = amp_param_grad(p, j);
            t_set(t, amp_param_grad(q, j).data, set_bits(t, a, a.count), a.count * amp_dtype_size(a.dtype));
        }
        blob_of(t, &x, p);
        blob_of(t, &y, q);
        t_note(t, "layout %d, at the end", rung);
        CHECK(x.bytes == y.bytes && memcmp(x.data, y.data, x.bytes) == 0);
        free(x.data);
        free(y.data);
        amp_scaler_destroy(scaler);
        amp_params_destroy(p);
        amp_params_destroy(q);
        t_clear(t);
    }
}

/* A set of one parameter, with its gradients, in FP32. */
static amp_params *set_with_grads(t_run *t, amp_params_desc d, float *w, const float *g, size_t n) {
    amp_param_desc e = AMP_ZERO;
    amp_params *p = NULL;
    d.grad = AMP_F32;
    CHECK_OK(amp_params_create(&p, t->ctx, &d));
    e.count = n;
    e.init = w;
    CHECK_OK(amp_params_add(p, &e));
    CHECK_OK(amp_params_commit(p));
    t_set(t, amp_param_grad(p, 0).data, g, 4 * n);
    return p;
}

/* 600 updates (on CUDA 150) of 2^-13 at w = 1: half an ulp of BF16 is 2^-9, so a plain BF16 weight never moves */
static void small_updates(t_run *t) {
    int i, updates = t_slow(t) ? 150 : 600;
    double moved = updates / 8192.0;
    for (i = 0; i < N_LAYOUTS + 1; i++) {
        int stochastic = i == N_LAYOUTS, k;
        amp_params_desc d = layout(stochastic ? 4 : i);
        size_t n = 400, j;
        float *w = (float *)t_host(t, 4 * n), *g = (float *)t_host(t, 4 * n), *got;
        double mean = 0.0;
        amp_params *p;
        amp_step_desc s = AMP_ZERO;
        for (j = 0; j < n; j++) {
            w[j] = 1.0f;
            g[j] = -1.0f;
        }
        p = set_with_grads(t, d, w, g, n);
        s.lr = 1.0f / 8192.0f;
        s.stochastic = (uint32_t)stochastic;
        for (k = 0; k < updates; k++) {
            s.seed = 5;
            CHECK_OK(t_update(p, NULL, &s, AMP_SGD));
        }
        got = weights(t, p, 0);
        for (j = 0; j < n; j++)
            mean += (double)got[j] / (double)n;
        t_note(t, "layout %d%s", i, stochastic ? ", stochastic" : "");
        if (i == 4)
            CHECK_NEAR(mean, 1.0, 1e-12); /* lost, all of them */
        else if (stochastic)
            CHECK_NEAR(mean, 1.0 + moved, 0.004); /* right on average: standard error below 0.001 */
        else if (i == 5)
            CHECK_NEAR(mean, 1.0 + moved, 0.001);
        else
            CHECK_NEAR(mean, 1.0 + moved, i == 3 ? 1e-6 : 1e-9); /* BF16 split: a tie moves by one ulp */
        amp_params_destroy(p);
    }
}

/* Gradients from 2^-149 to 2^104, eight neighbours alike, some 0: moments that are 0, subnormal, large and Inf. */
static void adam_far_apart(t_run *t) {
    static const float eps[] = {1e-8f, 1e-3f, 1e-30f, 1e-8f, 1e8f}, rates[] = {1.0f, 1.0f, 1.0f, 1e-30f, 1e20f};
    size_t n = 2000, j, i;
    int k;
    float *w = some_weights(t, n), *g = (float *)t_host(t, 4 * n);
    for (j = 0; j < n; j++) {
        g[j] = j % 8 == j / 8 % 9 ? 0.0f : ldexpf(t_range(t, -1, 1), (int)(j / 8) - 145);
        if (j % 3 == 0) w[j] = 0.0f; /* shows the smallest update */
    }
    for (i = 0; i < sizeof eps / sizeof eps[0]; i++) {
        amp_params_desc d = layout(0);
        amp_params *p;
        amp_step_desc s = AMP_ZERO;
        float *want = (float *)t_host(t, 4 * n), *m = (float *)t_host(t, 4 * n), *v = (float *)t_host(t, 4 * n);
        memcpy(want, w, 4 * n);
        memset(m, 0, 4 * n);
        memset(v, 0, 4 * n);
        p = set_with_grads(t, d, w, g, n);
        s.lr = rates[i];
        s.eps = amp_opt(eps[i]);
        s.weight_decay = 0.01f;
        for (k = 0; k < 3; k++) {
            amp_step_record r;
            amp_coef c = AMP_ZERO;
            s.count_lost = k == 1; /* by other loops, which change nothing */
            CHECK_OK(t_update(p, NULL, &s, AMP_ADAMW));
            r = record(t, p);
            c.inv = c.clip = 1.0f;
            c.beta1 = 0.9f;
            c.one_beta1 = (float)(1.0 - (double)c.beta1); /* 0.9f itself may be evaluated as a double */
            c.beta2 = 0.999f;
            c.one_beta2 = (float)(1.0 - (double)c.beta2);
            c.eps = eps[i];
            c.step_size = r.rate[0].step_size;
            c.rsqrt_bc2 = r.rate[0].rsqrt_bc2;
            c.decay = r.rate[0].decay;
            for (j = 0; j < n; j++)
                (void)amp_update_one(AMP_UPDATE_ADAM, &want[j], &m[j], &v[j], amp_prepare_one(g[j], &c), &c);
        }
        t_note(t, "eps %g, lr %g", (double)eps[i], (double)rates[i]);
        CHECK_BITS(weights(t, p, 0), want, n, 4);
        CHECK_BITS(set_bits(t, amp_param_get(p, 0).moment[0], n), m, n, 4);
        CHECK_BITS(set_bits(t, amp_param_get(p, 0).moment[1], n), v, n, 4);
        amp_params_destroy(p);
    }
}

/* A constant gradient: v goes to g^2, though one step moves it by less than half an ulp. */
static void bf16_moments(t_run *t) {
    size_t n = 300, j;
    float *g = (float *)t_host(t, 4 * n);
    uint16_t *v;
    double mean = 0.0, want = 0.25 * (1.0 - pow(0.999, 1500.0));
    amp_params_desc d = layout(0);
    amp_params *p = NULL;
    amp_param_desc e = AMP_ZERO;
    amp_step_desc s = AMP_ZERO;
    int k;
    for (j = 0; j < n; j++)
        g[j] = 0.5f;
    d.grad = AMP_F32;
    d.moment = AMP_BF16;
    CHECK_OK(amp_params_create(&p, t->ctx, &d));
    e.count = n;
    CHECK_OK(amp_params_add(p, &e));
    CHECK_OK(amp_params_commit(p));
    t_set(t, amp_param_grad(p, 0).data, g, 4 * n);
    s.lr = 1e-4f;
    s.seed = 3;
    for (k = 0; k < 1500; k++)
        CHECK_OK(amp_step(p, NULL, &s));
    CHECK_EQ(amp_param_get(p, 0).moment[1].dtype, AMP_BF16);
    v = (uint16_t *)set_bits(t, amp_param_get(p, 0).moment[1], n);
    for (j = 0; j < n; j++)
        mean += (double)ref_f32(ref_decode(v[j], AMP_BF16)) / (double)n;
    CHECK_NEAR(mean, want, 0.01 * want);
    amp_params_destroy(p);
}

static void bytes_and_ledger(t_run *t) {
    int i;
    amp_layout l = amp_layout_bytes(NULL);
    CHECK_EQ(l.total, 16);
    for (i = 0; i < N_LAYOUTS; i++) {
        size_t n = 64 * 100;
        amp_params_desc d = layout(i);
        amp_params *p = NULL;
        amp_param_desc e = AMP_ZERO;
        d.accumulate = (uint32_t)(i & 1);
        d.moment = i & 2 ? AMP_BF16 : AMP_F32;
        d.label = "bytes";
        l = amp_layout_bytes(&d);
        CHECK_OK(amp_params_create(&p, t->ctx, &d));
        e.count = n;
        CHECK_OK(amp_params_add(p, &e));
        CHECK_OK(amp_params_commit(p));
        t_note(t, "layout %d", i);
        CHECK_EQ(t_ledger(t->ctx, "bytes.master").bytes, n * l.master);
        CHECK_EQ(t_ledger(t->ctx, "bytes.model").bytes, n * l.model);
        CHECK_EQ(t_ledger(t->ctx, "bytes.grad").bytes, n * l.grad);
        CHECK_EQ(t_ledger(t->ctx, "bytes.moments").bytes, n * l.moments);
        CHECK_EQ(t_ledger(t->ctx, "bytes.accum").bytes, n * l.accum);
        CHECK_EQ(l.total, l.master + l.model + l.grad + l.moments + l.accum);
        CHECK(amp_param_entry_get(p, 0).low == amp_param_get(p, 0).low.data &&
            amp_param_entry_get(p, 0).grad == amp_param_grad(p, 0).data);
        CHECK_EQ(amp_param_entry_get(p, 0).count, n);
        CHECK_EQ(amp_param_entry_get(p, 1).count, 0);
        CHECK_EQ(amp_param_entry_get(NULL, 0).count, 0);
        amp_params_destroy(p);
    }
    { /* the ladder's figures, gradients of 2 bytes included */
        amp_params_desc d = layout(2);
        CHECK_EQ(amp_layout_bytes(&d).total, 14);
        d.master = AMP_MASTER_SPLIT8;
        CHECK_EQ(amp_layout_bytes(&d).total, 13);
        d.moment = AMP_MOMENT_8BIT;
        CHECK_EQ(amp_layout_bytes(&d).total, 7);
        d = layout(4);
        CHECK_EQ(amp_layout_bytes(&d).total, 12);
        d.moment = AMP_BF16;
        CHECK_EQ(amp_layout_bytes(&d).total, 8);
        d = layout(5);
        d.moment = AMP_BF16;
        CHECK_EQ(amp_layout_bytes(&d).total, 10);
        d.master = AMP_MASTER_KAHAN;
        d.model = AMP_F16;
        CHECK_EQ(amp_layout_bytes(&d).total, 0);
    }
}

static void state_round(t_run *t) {
    int i;
    for (i = 0; i < N_LAYOUTS; i++) {
        size_t n = 700;
        float *w = some_weights(t, n);
        amp_params_desc d = layout(i);
        amp_params *p, *q;
        amp_step_desc s = AMP_ZERO;
        amp_state_desc st = AMP_ZERO;
        t_blob a = {NULL, 0, 0}, b = {NULL, 0, 0};
        const char *file = t_file("layouts");
        int k;
        d.moment = i & 1 ? AMP_BF16 : AMP_F32;
        p = two(t, d, w, n);
        q = two(t, d, some_weights(t, n), n);
        s.lr = 0.01f;
        s.stochastic = i == 4 || i == 7; /* where the layout rounds what is kept */
        random_grads(t, p, 1.0f);
        CHECK_OK(amp_step(p, NULL, &s));
        st.params = &p;
        st.n_params = 1;
        CHECK_OK(amp_state_save(t->ctx, file, &st));
        st.params = &q;
        CHECK_OK(amp_state_load(t->ctx, file, &st));
        for (k = 0; k < 2; k++) { /* the same gradients, one more step each */
            size_t j;
            random_grads(t, p, 1.0f);
            for (j = 0; j < 2; j++) {
                amp_array g = amp_param_grad(p, j);
                void *bits = set_bits(t, g, g.count);
                t_set(t, amp_param_grad(q, j).data, bits, g.count * amp_dtype_size(g.dtype));
            }
            CHECK_OK(amp_step(p, NULL, &s));
            CHECK_OK(amp_step(q, NULL, &s));
        }
        blob_of(t, &a, p);
        blob_of(t, &b, q);
        t_note(t, "layout %d", i);
        CHECK(a.bytes == b.bytes && memcmp(a.data, b.data, a.bytes) == 0);
        free(a.data);
        free(b.data);
        amp_params_destroy(p);
        amp_params_destroy(q);
    }
}

/* A file of SPLIT8 is none of SPLIT, whose remainders have 16 bits, and a set that refuses it stays as it is. */
static amp_params *of_master(t_run *t, int master) {
    amp_params_desc d = AMP_ZERO;
    d.model = AMP_BF16;
    d.master = (amp_master)master;
    return two(t, d, some_weights(t, 300), 300);
}
/* What a set with a second part beside its 16-bit copies saved, only a set of the same layout loads. */
static void state_of_another_layout(t_run *t) {
    const char *file = t_file("layouts");
    int from, to;
    for (from = AMP_MASTER_NONE; from <= AMP_MASTER_SPLIT8; from++) {
        amp_params *p = of_master(t, from);
        amp_state_desc st = AMP_ZERO;
        st.params = &p;
        st.n_params = 1;
        CHECK_OK(amp_state_save(t->ctx, file, &st));
        for (to = AMP_MASTER_NONE; to <= AMP_MASTER_SPLIT8; to++) {
            amp_params *q = of_master(t, to);
            float *before = weights(t, q, 0);
            st.params = &q;
            t_note(t, "saved with master %d, loaded with %d", from, to);
            if (from == to)
                CHECK_OK(amp_state_load(t->ctx, file, &st));
            else
                CHECK_STATUS(amp_state_load(t->ctx, file, &st), AMP_ERR_FORMAT, NULL);
            CHECK_BITS(weights(t, q, 0), from == to ? weights(t, p, 0) : before, 300, 4);
            amp_params_destroy(q);
        }
        amp_params_destroy(p);
    }
}

/* ---- groups, Lion ---- */

static void groups_are_sets(t_run *t) { /* two groups in one set == two sets with their own hyper-parameters */
    size_t n[2] = {900, 451};
    amp_params *all, *one[2];
    amp_step_desc d = AMP_ZERO, e = AMP_ZERO;
    amp_group g = AMP_ZERO;
    amp_params_desc pd = AMP_ZERO;
    float *w = some_weights(t, 900), *lr;
    int i, k;
    float host_lr = 0.125f;
    all = two(t, pd, w, 900);
    for (i = 0; i < 2; i++) {
        amp_param_desc x = AMP_ZERO;
        CHECK_OK(amp_params_create(&one[i], t->ctx, &pd));
        x.count = n[i];
        x.init = w;
        x.keep_f32 = (uint32_t)i;
        x.no_decay = (uint32_t)i;
        CHECK_OK(amp_params_add(one[i], &x));
        CHECK_OK(amp_params_commit(one[i]));
    }
    lr = (float *)t_put(t, &host_lr, 4);
    d.lr = 0.01f;
    d.weight_decay = 0.1f;
    g.lr_ptr = lr;
    g.beta1 = amp_opt(0.0f);
    g.beta2 = amp_opt(0.9f);
    g.eps = amp_opt(1e-3f);
    d.groups = &g;
    d.n_groups = 1;
    for (k = 0; k < 3; k++) {
        random_grads(t, all, 1.0f);
        for (i = 0; i < 2; i++) {
            amp_array a = amp_param_grad(all, (size_t)i);
            t_set(t, amp_param_grad(one[i], 0).data, set_bits(t, a, a.count), a.count * amp_dtype_size(a.dtype));
        }
        CHECK_OK(amp_step(all, NULL, &d));
        e.lr = 0.01f;
        e.weight_decay = 0.1f;
        memset(&e.beta1, 0, sizeof e.beta1);
        e.beta2 = e.eps = e.beta1;
        e.lr_ptr = NULL;
        CHECK_OK(amp_step(one[0], NULL, &e));
        e.lr = 0.0f;
        e.lr_ptr = lr;
        e.beta1 = amp_opt(0.0f);
        e.beta2 = amp_opt(0.9f);
        e.eps = amp_opt(1e-3f);
        e.weight_decay = 0.0f;
        CHECK_OK(amp_step(one[1], NULL, &e));
    }
    for (i = 0; i < 2; i++)
        CHECK_BITS((uint32_t *)(void *)weights(t, all, (size_t)i), (uint32_t *)(void *)weights(t, one[i], 0), n[i], 4);
    d.n_groups = AMP_GROUPS;
    CHECK_STATUS(amp_step(all, NULL, &d), AMP_ERR_INVALID_ARG, "n_groups");
    d.n_groups = 1;
    g.beta2 = amp_opt(1.0f);
    CHECK_STATUS(amp_step(all, NULL, &d), AMP_ERR_INVALID_ARG, "groups[0].beta2");
    d.groups = NULL;
    CHECK_STATUS(amp_step(all, NULL, &d), AMP_ERR_INVALID_ARG, "groups");
    {
        amp_param_desc x = AMP_ZERO;
        amp_params *p = NULL;
        CHECK_OK(amp_params_create(&p, t->ctx, NULL));
        x.count = 1;
        x.group = AMP_GROUPS;
        CHECK_STATUS(amp_params_add(p, &x), AMP_ERR_INVALID_ARG, "group");
        amp_params_destroy(p);
    }
    amp_params_destroy(all);
    amp_params_destroy(one[0]);
    amp_params_destroy(one[1]);
}

static void lion(t_run *t) { /* against the formula, each operation rounded to float */
    size_t n = 1003, i;
    float *w = some_weights(t, n), *m = (float *)t_host(t, 4 * n), *g = (float *)t_host(t, 4 * n), *got;
    amp_params *p = NULL;
    amp_params_desc pd = AMP_ZERO;
    amp_param_desc e = AMP_ZERO;
    amp_step_desc d = AMP_ZERO;
    volatile float b1 = 0.9f, b2 = 0.99f, lr = 0.003f; /* s390x takes float constants for doubles */
    float one_b1 = (float)(1.0 - (double)b1), one_b2 = (float)(1.0 - (double)b2),
          decay = (float)(1.0 - (double)lr * 0.5), x;
    int k;
    pd.model = AMP_F32;
    pd.moments = 1;
    CHECK_OK(amp_params_create(&p, t->ctx, &pd));
    e.count = n;
    e.init = w;
    CHECK_OK(amp_params_add(p, &e));
    CHECK_OK(amp_params_commit(p));
    d.optimizer = AMP_LION;
    d.lr = 0.003f;
    d.weight_decay = 0.5f;
    for (k = 0; k < 4; k++) {
        for (i = 0; i < n; i++)
            g[i] = i % 9 == 0 ? 0.0f : t_real(t);
        t_set(t, amp_param_grad(p, 0).data, g, 4 * n);
        CHECK_OK(amp_step(p, NULL, &d));
        for (i = 0; i < n; i++) {
            x = ref_add(ref_mul(b1, m[i]), ref_mul(one_b1, g[i]));
            w[i] = ref_sub(ref_mul(w[i], decay), x > 0.0f ? lr : x < 0.0f ? -lr : 0.0f);
            m[i] = ref_add(ref_mul(b2, m[i]), ref_mul(one_b2, g[i]));
        }
        got = weights(t, p, 0);
        CHECK_BITS((uint32_t *)(void *)got, (uint32_t *)(void *)w, n, 4);
        CHECK_BITS((uint32_t *)set_bits(t, amp_param_get(p, 0).moment[0], n), (uint32_t *)(void *)m, n, 4);
    }
    d.optimizer = AMP_ADAM;
    CHECK_STATUS(amp_step(p, NULL, &d), AMP_ERR_INVALID_ARG, "moment");
    amp_params_destroy(p);
}

/* ---- accumulation ---- */

static amp_params *accumulating(t_run *t, size_t n, amp_scaler **s, float scale) {
    amp_params *p = NULL;
    amp_params_desc d = AMP_ZERO;
    amp_param_desc e = AMP_ZERO;
    amp_scaler_desc sd = AMP_ZERO;
    d.accumulate = 1;
    CHECK_OK(amp_params_create(&p, t->ctx, &d));
    e.count = n;
    CHECK_OK(amp_params_add(p, &e));
    CHECK_OK(amp_params_commit(p));
    sd.scale = scale;
    CHECK_OK(amp_scaler_create(s, t->ctx, &sd));
    return p;
}

static void accumulate_means(t_run *t) {
    amp_scaler *s = NULL;
    amp_params *p = accumulating(t, 5, &s, 8.0f);
    amp_step_desc d = AMP_ZERO;
    amp_step_record r;
    float acc[5], *w;
    d.lr = 1.0f;
    set_grad(t, p, 0, 5, 16.0f);
    CHECK_OK(amp_accumulate(p, s, 0)); /* + 2 */
    CHECK_OK(amp_scaler_update(s));
    CHECK_OK(amp_scaler_set_scale(s, 32.0f)); /* the scale moves inside the window */
    set_grad(t, p, 0, 5, 16.0f);
    CHECK_OK(amp_accumulate(p, s, 0)); /* + 0.5 */
    set_grad(t, p, 0, 5, -32.0f);
    CHECK_OK(amp_accumulate(p, s, 0)); /* - 1 */
    t_get(t, acc, amp_param_get(p, 0).accum.data, sizeof acc);
    CHECK_F32(acc[4], 1.5f);
    CHECK_EQ(record(t, p).window_good, 3);
    CHECK_OK(t_update(p, s, &d, AMP_SGD));
    w = weights(t, p, 0);
    CHECK_F32(w[0], -0.5f); /* the average of 3 */
    t_get(t, acc, amp_param_get(p, 0).accum.data, sizeof acc);
    CHECK_F32(acc[0], 0.0f);
    r = record(t, p);
    CHECK_EQ(r.steps, 1);
    CHECK_EQ(r.window_good, 0);
    CHECK_OK(amp_scaler_update(s));
    /* the sum, and a window of one */
    set_grad(t, p, 0, 5, 32.0f);
    CHECK_OK(amp_accumulate(p, s, 0));
    set_grad(t, p, 0, 5, 32.0f);
    CHECK_OK(amp_accumulate(p, s, 0));
    d.micro_batches = 1;
    d.optimizer = AMP_SGD;
    CHECK_OK(amp_step(p, s, &d));
    CHECK_F32(weights(t, p, 0)[1], -2.5f);
    d.micro_batches = 0;
    set_grad(t, p, 0, 5, 64.0f);
    CHECK_OK(amp_accumulate(p, s, 0));
    CHECK_OK(amp_step(p, s, &d));
    CHECK_F32(weights(t, p, 0)[1], -4.5f);
    {
        double norm = -1.0;
        set_grad(t, p, 0, 5, 96.0f);
        CHECK_OK(amp_accumulate(p, s, 0));
        CHECK_OK(amp_grad_norm(p, s, &norm));
        CHECK_NEAR(norm, 3.0 * sqrt(5.0), 1e-12);
        CHECK_OK(amp_clip(p, s, 1.0f, 0.0f));
        CHECK_OK(amp_grad_norm(p, s, &norm));
        CHECK_NEAR(norm, 1.0, 1e-5);
    }
    amp_params_destroy(p);
    amp_scaler_destroy(s);
}

static void accumulate_bad(t_run *t) {
    amp_scaler *s = NULL;
    amp_params *p = accumulating(t, 70000, &s, 16.0f);
    amp_step_desc d = AMP_ZERO;
    amp_step_record r;
    float *w, acc[2];
    d.lr = 1.0f;
    d.optimizer = AMP_SGD;
    /* left out: the average is over the others */
    set_grad(t, p, 0, 70000, 16.0f);
    CHECK_OK(amp_accumulate(p, s, 1));
    set_grad_bits(t, p, 0, 69999, 0x7c00u);
    CHECK_OK(amp_accumulate(p, s, 1));
    set_grad(t, p, 0, 70000, 48.0f);
    CHECK_OK(amp_accumulate(p, s, 1));
    r = record(t, p);
    CHECK_EQ(r.window_good, 2);
    CHECK_EQ(r.window_bad, 1);
    CHECK_EQ(r.window_lost, 0);
    CHECK_OK(amp_step(p, s, &d));
    CHECK_EQ(record(t, p).outcome, AMP_STEPPED);
    w = weights(t, p, 0);
    CHECK_F32(w[0], -2.0f);
    CHECK_F32(w[69999], -2.0f);
    CHECK_F32(t_scale(s), 8.0f); /* the overflow was seen */
    /* the window is lost */
    set_grad(t, p, 0, 70000, 8.0f);
    CHECK_OK(amp_accumulate(p, s, 0));
    set_grad_bits(t, p, 0, 3, 0x7e00u);
    CHECK_OK(amp_accumulate(p, s, 0));
    set_grad(t, p, 0, 70000, 8.0f);
    CHECK_OK(amp_accumulate(p, s, 0));
    CHECK_EQ(record(t, p).window_lost, 1);
    CHECK_OK(amp_step(p, s, &d));
    r = record(t, p);
    CHECK_EQ(r.outcome, AMP_SKIPPED_WINDOW);
    CHECK_EQ(r.steps, 1);
    CHECK_EQ(r.skipped, 1);
    CHECK_F32(weights(t, p, 0)[3], -2.0f);
    t_get(t, acc, amp_param_get(p, 0).accum.data, sizeof acc);
    CHECK_F32(acc[0], 0.0f);
    /* all bad: nothing to step with */
    set_grad_bits(t, p, 0, 3, 0x7c00u);
    CHECK_OK(amp_accumulate(p, s, 1));
    CHECK_OK(amp_step(p, s, &d));
    CHECK_EQ(record(t, p).outcome, AMP_SKIPPED_WINDOW);
    /* and the next window is clean */
    set_grad(t, p, 0, 70000, 4.0f);
    CHECK_OK(amp_accumulate(p, s, 1));
    CHECK_OK(amp_step(p, s, &d));
    CHECK_EQ(record(t, p).outcome, AMP_STEPPED);
    amp_params_destroy(p);
    amp_scaler_destroy(s);
}

static void accumulate_errors(t_run *t) {
    amp_scaler *s = NULL;
    amp_params *p = accumulating(t, 5, &s, 8.0f), *plain = set_one(t, 4, AMP_F16);
    amp_step_desc d = AMP_ZERO;
    amp_state_desc st = AMP_ZERO;
    st.params = &p;
    st.n_params = 1;
    CHECK_STATUS(amp_accumulate(plain, s, 0), AMP_ERR_INVALID_ARG, "accumulators");
    d.lr = 1.0f;
    CHECK_OK(amp_accumulate(p, s, 0));
    CHECK_STATUS(amp_state_save(t->ctx, t_file("window"), &st), AMP_ERR_STAGE, "window");
    CHECK_OK(amp_step(p, s, &d));
    /* a scaled window holds the scale */
    CHECK_OK(amp_window_begin(plain, s));
    CHECK_STATUS(amp_window_begin(plain, s), AMP_ERR_STAGE, "open");
    CHECK_STATUS(amp_scaler_set_scale(s, 4.0f), AMP_ERR_STAGE, "window");
    CHECK_STATUS(amp_scaler_update(s), AMP_ERR_STAGE, "window");
    CHECK_STATUS(amp_step(p, s, &d), AMP_ERR_STAGE, "different set holds");
    set_grad(t, plain, 0, 4, 64.0f);
    d.optimizer = AMP_SGD;
    d.lr = 1.0f;
    d.micro_batches = 4;
    {
        float before = weights(t, plain, 0)[0];
        CHECK_OK(amp_step(plain, s, &d));
        CHECK_F32(weights(t, plain, 0)[0], before - 64.0f / 8.0f / 4.0f);
    }
    CHECK_OK(amp_scaler_set_scale(s, 4.0f));
    amp_params_destroy(p);
    amp_params_destroy(plain);
    amp_scaler_destroy(s);
}

/* ---- unscaled gradients straight from a product, hooks ---- */

static void inverse_in_product(t_run *t) {
    amp_scaler *s = NULL;
    amp_scaler_desc sd = AMP_ZERO;
    amp_gemm_desc g = AMP_ZERO;
    uint16_t a[4], b[4];
    float d[4] = {1.0f, 1.0f, 1.0f, 1.0f};
    float *out;
    int i;
    for (i = 0; i < 4; i++) {
        a[i] = amp_f16_from_f32((float)(i + 1) * 512.0f).bits;
        b[i] = amp_f16_from_f32((float)(i - 1)).bits;
    }
    sd.scale = 512.0f;
    CHECK_OK(amp_scaler_create(&s, t->ctx, &sd));
    out = (float *)t_put(t, d, sizeof d);
    g.m = g.n = g.k = 2;
    g.a = amp_arr(t_put(t, a, sizeof a), AMP_F16);
    g.b = amp_arr(t_put(t, b, sizeof b), AMP_F16);
    g.d = amp_arr(out, AMP_F32);
    g.beta = amp_opt(1.0f);
    g.alpha_ptr = amp_scaler_inverse_ptr(s);
    CHECK_OK(amp_gemm(t->ctx, &g));
    t_get(t, d, out, sizeof d);
    CHECK_F32(d[0], 1.0f + 1.0f * -1.0f + 2.0f * 1.0f);
    CHECK_F32(d[3], 1.0f + 3.0f * 0.0f + 4.0f * 2.0f);
    CHECK_OK(amp_scaler_set_scale(s, 1024.0f)); /* the pointer follows */
    CHECK_OK(amp_gemm(t->ctx, &g));
    t_get(t, d, out, sizeof d);
    CHECK_F32(d[0], 2.5f);
    amp_scaler_destroy(s);
}

static void unscaled_is_checked(t_run *t) {
    amp_scaler *s = NULL;
    amp_params *p = set_one(t, 6, AMP_F32);
    amp_step_desc d = AMP_ZERO;
    float before;
    CHECK_OK(amp_scaler_create(&s, t->ctx, NULL));
    d.optimizer = AMP_SGD;
    d.lr = 1.0f;
    d.unscaled = 1;
    set_grad(t, p, 0, 6, 0.5f);
    before = weights(t, p, 0)[2];
    CHECK_OK(amp_step(p, s, &d));
    CHECK_F32(weights(t, p, 0)[2], before - 0.5f);
    set_grad_bits(t, p, 0, 5, 0x7fc00000u);
    before = weights(t, p, 0)[2];
    CHECK_OK(amp_step(p, s, &d));
    CHECK_F32(weights(t, p, 0)[2], before);
    CHECK_EQ(record(t, p).outcome, AMP_SKIPPED_NAN);
    CHECK_F32(t_scale(s), 32768.0f);
    amp_params_destroy(p);
    amp_scaler_destroy(s);
}

typedef struct hooks {
    t_run *t;
    int grads, totals;
    amp_status fail;
} hooks;
/* As if another rank had the same gradients: x2. */
static amp_status hook_grads(amp_ctx *ctx, amp_params *p, void *user) {
    hooks *h = (hooks *)user;
    (void)ctx;
    set_grad(h->t, p, 0, 6, 2.0f);
    h->grads++;
    return h->fail;
}
static amp_status hook_totals(amp_ctx *ctx, amp_totals *totals, void *user) { /* as if another rank had found an Inf */
    hooks *h = (hooks *)user;
    amp_totals t;
    h->totals++;
    if (h->fail) return h->fail;
    if (amp_copy(ctx, &t, totals, sizeof t) != AMP_OK) return AMP_ERR_IO;
    t.inf += 1;
    t.sum = 1.0;
    return amp_copy(ctx, totals, &t, sizeof t);
}
static void hooks_run(t_run *t) {
    amp_scaler *s = NULL;
    amp_scaler_desc sd = AMP_ZERO;
    amp_params *p = set_one(t, 6, AMP_F32);
    amp_step_desc d = AMP_ZERO;
    hooks h;
    float before = weights(t, p, 0)[0];
    memset(&h, 0, sizeof h);
    h.t = t;
    sd.scale = 4.0f;
    CHECK_OK(amp_scaler_create(&s, t->ctx, &sd));
    d.optimizer = AMP_SGD;
    d.lr = 1.0f;
    d.reduce_grads_fn = hook_grads;
    d.user = &h;
    set_grad(t, p, 0, 6, 1.0f);
    CHECK_OK(amp_step(p, s, &d));
    CHECK_EQ(h.grads, 1);
    CHECK_F32(weights(t, p, 0)[0], before - 0.5f);
    d.reduce_totals_fn = hook_totals;
    before = weights(t, p, 0)[0];
    CHECK_OK(amp_step(p, s, &d));
    CHECK_EQ(h.totals, 1);
    CHECK_EQ(record(t, p).outcome, AMP_SKIPPED_INF);
    CHECK_F64(record(t, p).norm, 1.0);
    CHECK_F32(weights(t, p, 0)[0], before);
    h.fail = AMP_ERR_IO;
    CHECK(amp_step(p, s, &d) == AMP_ERR_IO);
    CHECK(strcmp(amp_last_error(t->ctx), "amp_step: desc.reduce_grads_fn returned -11") == 0);
    CHECK_EQ(record(t, p).skipped, 1);
    t_note(t, "the second hook fails");
    d.reduce_grads_fn = NULL;
    CHECK(amp_step(p, s, &d) == AMP_ERR_IO);
    CHECK(strcmp(amp_last_error(t->ctx), "amp_step: desc.reduce_totals_fn returned -11") == 0);
    CHECK_EQ(h.totals, 2);
    CHECK_EQ(record(t, p).skipped, 1);
    CHECK_F32(weights(t, p, 0)[0], before);
    t_note(t, "and the step is tried again");
    h.fail = AMP_OK;
    d.reduce_totals_fn = NULL;
    CHECK_OK(amp_step(p, s, &d));
    CHECK_EQ(record(t, p).outcome, AMP_STEPPED);
    CHECK(weights(t, p, 0)[0] < before);
    CHECK(strstr(amp_last_error(t->ctx), "reduce_totals_fn") != NULL); /* of the last failure, still */
    t_note(t, "too late to sum gradients");
    CHECK_OK(amp_scaler_unscale(s, p));
    d.reduce_grads_fn = hook_grads;
    CHECK_STATUS(amp_step(p, s, &d), AMP_ERR_STAGE, "amp_step desc.reduce_grads_fn unscaled");
    d.reduce_grads_fn = NULL;
    d.reduce_totals_fn = hook_totals;
    CHECK_STATUS(amp_step(p, s, &d), AMP_ERR_STAGE, "amp_step desc.reduce_totals_fn unscaled");
    d.reduce_totals_fn = NULL;
    CHECK_OK(amp_step(p, s, &d));
    amp_params_destroy(p);
    amp_scaler_destroy(s);
}

/* A hook may call any verb, also those that use the device's scratch memory, and nothing is lost. */
static amp_status hook_curious(amp_ctx *ctx, amp_totals *totals, void *user) {
    amp_params *p = (amp_params *)user;
    amp_array a[2];
    amp_finite_report report;
    amp_histogram h;
    amp_totals t;
    double norm;
    a[0] = amp_param_model(p, 0);
    a[1] = amp_param_model(p, 1);
    if (amp_all_finite(ctx, &report, a, 2) != AMP_OK || report.nan + report.inf > 0) return AMP_ERR_IO;
    if (amp_histogram_count(ctx, &h, a, 2) != AMP_OK) return AMP_ERR_IO;
    if (amp_grad_norm(p, NULL, &norm) != AMP_OK) return AMP_ERR_IO;
    if (amp_copy(ctx, &t, totals, sizeof t) != AMP_OK) return AMP_ERR_IO;
    return t.first_param == 1 && t.first_index == 7 && t.inf == 1 ? AMP_OK : AMP_ERR_IO;
}
static void hook_calls_verbs(t_run *t) {
    amp_params_desc pd = AMP_ZERO;
    amp_params *p = two(t, pd, NULL, 30);
    amp_scaler *s = NULL;
    amp_step_desc d = t_rate_0();
    amp_step_record r;
    CHECK_OK(amp_scaler_create(&s, t->ctx, NULL));
    d.reduce_totals_fn = hook_curious;
    d.user = p;
    set_grad_bits(t, p, 1, 7, set_inf(AMP_F32));
    CHECK_OK(amp_step(p, s, &d));
    r = record(t, p);
    CHECK_EQ(r.outcome, AMP_SKIPPED_INF);
    CHECK_EQ(r.inf, 1);
    CHECK_EQ(r.first_param, 1);
    CHECK_EQ(r.first_index, 7);
    amp_params_destroy(p);
    amp_scaler_destroy(s);
}

/* ---- updates made elsewhere ---- */

/* Master, model copy and low part of every parameter. */
static void weights_blob(t_run *t, t_blob *b, amp_params *p) {
    size_t i, k;
    for (i = 0; i < amp_params_count(p); i++) {
        amp_array a[3];
        a[0] = amp_param_get(p, i).master;
        a[1] = amp_param_model(p, i);
        a[2] = amp_param_get(p, i).low;
        for (k = 0; k < 3; k++)
            if (a[k].data && amp_dtype_size(a[k].dtype))
                t_blob_dev(t, b, a[k].data, a[k].count * amp_dtype_size(a[k].dtype));
    }
}
static void check_same_weights(t_run *t, amp_params *p, amp_params *q) {
    t_blob a = AMP_ZERO, b = AMP_ZERO;
    weights_blob(t, &a, p);
    weights_blob(t, &b, q);
    CHECK_EQ(a.bytes, b.bytes);
    CHECK_BITS(a.data, b.data, a.bytes, 1);
    free(a.data);
    free(b.data);
}
static void *signs_of(t_run *t, amp_array g) { /* of a gradient, as floats in context memory */
    void *bits = set_bits(t, g, g.count);
    float *u = (float *)t_host(t, 4 * g.count);
    size_t k;
    for (k = 0; k < g.count; k++) {
        float x = amp_load(bits, g.dtype, k);
        u[k] = x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : 0.0f;
    }
    return t_put(t, u, 4 * g.count);
}
/* The first step of Lion is w * decay - lr * sign(g): amp_apply with the signs gives the same weights in every layout.
   */
static void apply_is_an_update(t_run *t) {
    size_t n = t_slow(t) ? 17000 : 70000, i;
    int rung;
    for (rung = 0; rung < N_LAYOUTS + 1; rung++) {
        int stochastic = rung == N_LAYOUTS, window;
        amp_params_desc pd = layout(stochastic ? 1 : rung);
        pd.accumulate = 1;
        for (window = 0; window < 2; window++) {
            float *w = some_weights(t, n);
            amp_params *p = two(t, pd, w, n), *q = two(t, pd, w, n);
            amp_step_desc d = AMP_ZERO;
            amp_group g = AMP_ZERO;
            t_note(t, "layout %d, stochastic %d, window %d", rung, stochastic, window);
            d.optimizer = AMP_LION;
            d.lr = 0.003f;
            d.weight_decay = 0.3f;
            d.stochastic = (uint32_t)stochastic;
            d.seed = 77;
            g.lr = 0.02f;
            d.groups = &g;
            d.n_groups = 1;
            random_grads(t, p, 1.0f);
            for (i = 0; i < 2; i++) {
                amp_array from = amp_param_grad(p, i);
                CHECK_OK(amp_cast(t->ctx, amp_param_grad(q, i), from, from.count, NULL));
            }
            if (window) CHECK_OK(amp_accumulate(p, NULL, 0));
            if (window) CHECK_OK(amp_accumulate(q, NULL, 0));
            CHECK_OK(amp_step(p, NULL, &d));
            CHECK_OK(amp_inspect(q, NULL, &d));
            for (i = 0; i < 2; i++)
                CHECK_OK(amp_apply(q, i, amp_arr(signs_of(t, amp_param_grad(q, i)), AMP_F32), 1));
            check_same_weights(t, p, q);
            CHECK_EQ(record(t, q).steps, 1);
            if (window) { /* used up, as by an update */
                float *sum = (float *)set_bits(t, amp_param_get(q, 0).accum, n);
                CHECK(sum[0] == 0.0f && sum[n - 1] == 0.0f);
            }
            amp_params_destroy(p);
            amp_params_destroy(q);
            t_clear(t);
        }
    }
}
/* What a kernel of one's own does with a weight: amp_weight_load and amp_weight_store leave what amp_apply leaves. */
static void subtract_both(t_run *t, amp_params *p, amp_params *q, const float *u, const amp_step_desc *d) {
    size_t i, k;
    CHECK_OK(amp_inspect(p, NULL, d));
    CHECK_OK(amp_inspect(q, NULL, d));
    for (i = 0; i < 2; i++) {
        amp_param_entry e = amp_param_entry_get(q, i);
        CHECK_OK(amp_apply(p, i, amp_arr(u, AMP_F32), 0));
        for (k = 0; k < e.count; k++)
            (void)amp_weight_store(&e, k, amp_sub(amp_weight_load(&e, k), u[k]), amp_step_record_ptr(q), (uint32_t)i);
    }
    check_same_weights(t, p, q);
}
/* Numbers of all sizes, whose lower bits are near to where a format rounds; Inf, NaN and zeros among them. */
static float any_size(size_t k) {
    static const uint32_t lower[8] = {0, 0x8000u, 0x7fffu, 0x8001u, 0x1000u, 0x0fffu, 0x10u, 0xffffu};
    static const uint32_t edges[8] = {
        0x7f7f0000u, 0x7f800000u, 0x477f0000u, 0x47800000u, 0x38800000u, 0x33800000u, 0, 0x800000u};
    const uint32_t spread = (uint32_t)k * 2654435761u;
    const uint32_t near = k % 5u == 0 ? edges[spread >> 29] : spread >> 1 & 0x7fff0000u;
    return ampi_float(near | (uint32_t)(k & 1u) << 31 | lower[k / 2u % 8u]);
}
static void weight_store_is_apply(t_run *t) {
    enum { N = 20011 };
    int rung;
    for (rung = 0; rung < 2 * N_LAYOUTS; rung++) {
        amp_params_desc pd = layout(rung / 2);
        amp_step_desc d = AMP_ZERO;
        amp_params *p, *q;
        float *w = some_weights(t, N), *u = (float *)t_host(t, 4 * N), *zero = (float *)t_host(t, 4 * N);
        size_t k;
        d.lr = 1.0f;
        d.seed = 9;
        d.stochastic = (uint32_t)(rung % 2);
        if (d.stochastic && (pd.master == AMP_MASTER_SPLIT || pd.master == AMP_MASTER_KAHAN)) continue;
        t_note(t, "layout %d, stochastic %d", rung / 2, rung % 2);
        p = two(t, pd, w, N);
        q = two(t, pd, w, N);
        for (k = 0; k < N; k++)
            u[k] = t_real(t) * 0.001f;
        subtract_both(t, p, q, u, &d);
        amp_params_destroy(p);
        amp_params_destroy(q);
        for (k = 0; k < N; k++) {
            u[k] = any_size(k);
            w[k] = zero[k] = 0.0f;
        }
        p = two(t, pd, w, N);
        q = two(t, pd, w, N);
        subtract_both(t, p, q, u, &d);
        subtract_both(t, p, q, zero, &d);
        amp_params_destroy(p);
        amp_params_destroy(q);
        t_clear(t);
    }
}
static void apply_sums(t_run *t) { /* the sums of a window as an update: read before they become 0 */
    float w[5] = {1.0f, -2.0f, 0.1f, 3.0f, 0.0f}, *got;
    amp_params *p = NULL;
    amp_params_desc pd = AMP_ZERO;
    amp_param_desc e = AMP_ZERO;
    amp_step_desc d = AMP_ZERO;
    amp_array sums, beside;
    size_t i;
    pd.accumulate = 1;
    CHECK_OK(amp_params_create(&p, t->ctx, &pd));
    e.count = 5;
    e.init = w;
    CHECK_OK(amp_params_add(p, &e));
    CHECK_OK(amp_params_commit(p));
    d.lr = AMP_NONE;
    set_grad(t, p, 0, 5, 0.5f);
    CHECK_OK(amp_accumulate(p, NULL, 0));
    CHECK_OK(amp_inspect(p, NULL, &d));
    sums = amp_param_get(p, 0).accum;
    beside = amp_arr((char *)sums.data + 4, AMP_F32);
    CHECK_STATUS(amp_apply(p, 0, beside, 0), AMP_ERR_INVALID_ARG, "amp_apply accumulators overlap u");
    CHECK_OK(amp_apply(p, 0, sums, 0));
    CHECK_OK(amp_scaler_update(NULL));
    got = weights(t, p, 0);
    for (i = 0; i < 5; i++)
        CHECK_F32(got[i], ref_sub(w[i], 0.5f));
    t_get(t, got, sums.data, 4 * 5);
    for (i = 0; i < 5; i++)
        CHECK_F32(got[i], 0.0f);
    amp_params_destroy(p);
}
static void apply_plain(t_run *t) { /* w - u; skips; overflow of a copy; arguments */
    float w[5] = {1.0f, -2.0f, 0.1f, 3.0f, 0.0f}, u[5] = {0.25f, 1e-9f, -0.3f, -70000.0f, 2.0f}, *got;
    amp_params *p = NULL;
    amp_params_desc pd = AMP_ZERO;
    amp_param_desc e = AMP_ZERO;
    amp_scaler *s = NULL;
    amp_step_desc d = AMP_ZERO;
    amp_array ua;
    size_t i;
    CHECK_OK(amp_params_create(&p, t->ctx, &pd));
    e.count = 5;
    e.init = w;
    CHECK_OK(amp_params_add(p, &e));
    CHECK_OK(amp_params_commit(p));
    CHECK_OK(amp_scaler_create(&s, t->ctx, NULL));
    ua = amp_arrn(t_put(t, u, sizeof u), AMP_F32, 5);
    d.lr = 123.0f; /* nobody asks for it here */
    CHECK_STATUS(amp_apply(p, 0, ua, 0), AMP_ERR_STAGE, "amp_apply amp_inspect");

    set_grad_bits(t, p, 0, 2, set_inf(AMP_F16)); /* skipped: nothing changes */
    CHECK_OK(amp_inspect(p, s, &d));
    CHECK_OK(amp_apply(p, 0, ua, 0));
    CHECK_OK(amp_scaler_update(s));
    got = weights(t, p, 0);
    CHECK_BITS(got, w, 5, 4);
    CHECK_EQ(record(t, p).weight_overflow, 0);

    set_grad(t, p, 0, 5, 1.0f);
    CHECK_OK(amp_inspect(p, s, &d));
    CHECK_OK(amp_apply(p, 0, ua, 0));
    CHECK_OK(amp_scaler_update(s));
    got = weights(t, p, 0);
    for (i = 0; i < 5; i++)
        CHECK_F32(got[i], ref_sub(w[i], u[i]));
    CHECK_EQ(record(t, p).weight_overflow, 1); /* 70003 as a half */
    CHECK_STATUS(amp_apply(p, 0, ua, 0), AMP_ERR_STAGE, "amp_apply amp_inspect");

    CHECK_OK(amp_inspect(p, s, &d));
    CHECK_STATUS(amp_apply(p, 1, ua, 0), AMP_ERR_INVALID_ARG, "amp_apply i");
    CHECK_STATUS(amp_apply(p, 0, amp_arr(NULL, AMP_F32), 0), AMP_ERR_INVALID_ARG, "amp_apply u");
    CHECK_STATUS(amp_apply(p, 0, amp_arr(ua.data, AMP_F16), 0), AMP_ERR_INVALID_ARG, "amp_apply u.dtype f16");
    CHECK_STATUS(amp_apply(p, 0, amp_arrn(ua.data, AMP_F32, 4), 0), AMP_ERR_INVALID_ARG, "amp_apply u.count");
    CHECK_STATUS(amp_apply(p, 0, amp_param_get(p, 0).master, 0), AMP_ERR_INVALID_ARG, "amp_apply u overlaps master");
    CHECK_EQ(amp_apply(NULL, 0, ua, 0), AMP_ERR_INVALID_ARG);
    amp_params_destroy(p);
    amp_scaler_destroy(s);
}

/* ---- BF16 moments: the words that round them are those that the header names ---- */

/* First moments with seed + 1, second with seed + 2; stream (step << 24) + parameter; element. */
static void moments_are_drawn(t_run *t) {
    enum { N = 500 };
    amp_params_desc pd = AMP_ZERO;
    amp_params *p;
    amp_step_desc d = AMP_ZERO;
    volatile float b1 = 0.9f, b2 = 0.999f;
    float one_b1 = (float)(1.0 - (double)b1), one_b2 = (float)(1.0 - (double)b2), g[2][N], m[2][N], v[2][N];
    size_t i, k;
    uint64_t step;
    memset(m, 0, sizeof m);
    memset(v, 0, sizeof v);
    pd.moment = AMP_BF16;
    pd.grad = AMP_F32;
    p = two(t, pd, some_weights(t, N), N);
    d.lr = 0.01f;
    d.seed = 0xfffffffffffffffeu; /* and the seeds wrap */
    for (step = 1; step <= 3; step++) {
        for (i = 0; i < 2; i++) {
            amp_array a = amp_param_grad(p, i);
            for (k = 0; k < a.count; k++)
                g[i][k] = t_real(t);
            t_set(t, a.data, g[i], 4 * a.count);
        }
        CHECK_OK(amp_step(p, NULL, &d));
        for (i = 0; i < 2; i++) {
            uint64_t stream = (step << 24) + i;
            size_t n = amp_param_grad(p, i).count;
            uint16_t *got_m = (uint16_t *)set_bits(t, amp_param_get(p, i).moment[0], n);
            uint16_t *got_v = (uint16_t *)set_bits(t, amp_param_get(p, i).moment[1], n);
            uint16_t want_m[N], want_v[N];
            for (k = 0; k < n; k++) {
                float u = g[i][k];
                float new_m = ref_add(ref_mul(b1, m[i][k]), ref_mul(one_b1, u));
                float new_v = ref_add(ref_mul(b2, v[i][k]), ref_mul(one_b2, ref_mul(u, u)));
                want_m[k] = amp_bf16_from_f32_sr(new_m, amp_random(d.seed + 1u, stream, k)).bits;
                want_v[k] = amp_bf16_from_f32_sr(new_v, amp_random(d.seed + 2u, stream, k)).bits;
                m[i][k] = amp_load(want_m, AMP_BF16, k);
                v[i][k] = amp_load(want_v, AMP_BF16, k);
            }
            t_note(t, "step %d, parameter %d", (int)step, (int)i);
            CHECK_BITS(got_m, want_m, n, 2);
            CHECK_BITS(got_v, want_v, n, 2);
        }
    }
    amp_params_destroy(p);
}

/* ---- two ranks, each with its context in its thread; sums through memory that they share ---- */

#if HAVE_RANKS
#  define RANKS      2
#  define RANK_N     500u
#  define RANK_STEPS 6
typedef struct ranks {
    pthread_mutex_t lock;
    pthread_cond_t all_here;
    int here, turn, sharded;
    amp_params_desc layout;
    float grads[RANKS][RANK_N]; /* of all ranks */
    amp_totals totals[RANKS];
} ranks;
typedef struct rank {
    ranks *all;
    int id, broken;
    float w[RANK_N], scale[RANK_STEPS];
    amp_step_record r[RANK_STEPS];
} rank;

static void rank_wait(ranks *all) { /* until every rank is here */
    int turn;
    pthread_mutex_lock(&all->lock);
    turn = all->turn;
    if (++all->here == RANKS) {
        all->here = 0;
        all->turn++;
        pthread_cond_broadcast(&all->all_here);
    }
    while (turn == all->turn)
        pthread_cond_wait(&all->all_here, &all->lock);
    pthread_mutex_unlock(&all->lock);
}

/* The gradient of rank id, element i: in the third step rank 1 overflows, in the fifth one NaN appears on rank 0. */
static float rank_grad(int id, int step, size_t i) {
    float g = (float)((int)((i * 7 + (size_t)step * 13 + (size_t)id * 29) % 64) - 32) * 4.0f;
    if (step == 2 && id == 1 && i == 377) return ref_f32(0x7f800000u);
    if (step == 4 && id == 0 && i == 3) return ref_f32(0x7fc00000u);
    return g;
}

/* An all-reduce: the sum, in the order of ranks. */
static amp_status rank_reduce_grads(amp_ctx *ctx, amp_params *p, void *user) {
    rank *me = (rank *)user;
    float sum[RANK_N];
    size_t i;
    if (amp_copy(ctx, me->all->grads[me->id], amp_param_grad(p, 0).data, sizeof sum) != AMP_OK) return AMP_ERR_IO;
    rank_wait(me->all);
    for (i = 0; i < RANK_N; i++)
        sum[i] = me->all->grads[0][i] + me->all->grads[1][i];
    rank_wait(me->all);
    return amp_copy(ctx, amp_param_grad(p, 0).data, sum, sizeof sum);
}
static amp_status rank_reduce_totals(amp_ctx *ctx, amp_totals *totals, void *user) {
    rank *me = (rank *)user;
    amp_totals t, u;
    if (amp_copy(ctx, &t, totals, sizeof t) != AMP_OK) return AMP_ERR_IO;
    me->all->totals[me->id] = t;
    rank_wait(me->all);
    t = me->all->totals[0];
    u = me->all->totals[1];
    rank_wait(me->all);
    t.sum += u.sum;
    t.nan += u.nan;
    t.inf += u.inf;
    t.overflow += u.overflow;
    return amp_copy(ctx, totals, &t, sizeof t);
}

/* sharded: this rank's half of the weights; else all of them, with this rank's gradients. all NULL: one rank that has
   everything. */
static void rank_train(rank *me, amp_params_desc pd, int sharded, size_t first, size_t n) {
    amp_ctx *ctx = NULL;
    amp_params *p = NULL;
    amp_scaler *s = NULL;
    amp_param_desc e = AMP_ZERO;
    amp_scaler_desc sd = AMP_ZERO;
    amp_step_desc d = AMP_ZERO;
    float g[RANK_N];
    size_t i;
    int step;
    pd.grad = AMP_F32;
    sd.scale = 64.0f;
    e.count = n;
    me->broken = t_create_cpu(&ctx, AMP_SIMD_AUTO, 1) != AMP_OK || amp_params_create(&p, ctx, &pd) != AMP_OK ||
        amp_params_add(p, &e) != AMP_OK || amp_params_commit(p) != AMP_OK || amp_scaler_create(&s, ctx, &sd) != AMP_OK;
    d.lr = 0.01f;
    d.clip_norm = 3.0f;
    if (!sharded) d.micro_batches = RANKS; /* the average */
    d.user = me;
    if (me->all && sharded)
        d.reduce_totals_fn = rank_reduce_totals;
    else if (me->all)
        d.reduce_grads_fn = rank_reduce_grads;
    for (step = 0; step < RANK_STEPS && !me->broken; step++) {
        for (i = 0; i < n; i++) {
            int owner = first + i < RANK_N / 2 ? 0 : 1;
            if (sharded)
                g[i] = rank_grad(owner, step, first + i);
            else if (me->all)
                g[i] = rank_grad(me->id, step, i);
            else
                g[i] = rank_grad(0, step, i) + rank_grad(1, step, i);
        }
        me->broken |= amp_copy(ctx, amp_param_grad(p, 0).data, g, 4 * n) != AMP_OK || amp_step(p, s, &d) != AMP_OK ||
            amp_step_poll(p, &me->r[step]) != AMP_OK;
        me->scale[step] = t_scale(s);
    }
    me->broken |= amp_param_read(p, 0, me->w) != AMP_OK;
    amp_scaler_destroy(s);
    amp_params_destroy(p);
    amp_ctx_destroy(ctx);
}
static void *rank_main(void *arg) {
    rank *me = (rank *)arg;
    if (me->all->sharded)
        rank_train(me, me->all->layout, 1, me->id ? RANK_N / 2 : 0, RANK_N / 2);
    else
        rank_train(me, me->all->layout, 0, 0, RANK_N);
    return NULL;
}

static void ranks_agree(t_run *t) {      /* with each other, and with one rank that has it all */
    static const int layouts[] = {0, 8}; /* FP32 masters; SPLIT8 */
    static ranks all;
    static rank rank_of[RANKS], one;
    pthread_t thread;
    int run, step;
    for (run = 0; run < 4; run++) {
        const int sharded = run % 2;
        static const amp_outcome outcome[RANK_STEPS] = {
            AMP_STEPPED, AMP_STEPPED, AMP_SKIPPED_INF, AMP_STEPPED, AMP_SKIPPED_NAN, AMP_STEPPED};
        int r;
        memset(&all, 0, sizeof all);
        memset(rank_of, 0, sizeof rank_of);
        memset(&one, 0, sizeof one);
        pthread_mutex_init(&all.lock, NULL);
        pthread_cond_init(&all.all_here, NULL);
        all.sharded = sharded;
        all.layout = layout(layouts[run / 2]);
        for (r = 0; r < RANKS; r++) {
            rank_of[r].all = &all;
            rank_of[r].id = r;
        }
        if (!CHECK(pthread_create(&thread, NULL, rank_main, &rank_of[1]) == 0)) return;
        rank_main(&rank_of[0]);
        pthread_join(thread, NULL);
        pthread_cond_destroy(&all.all_here);
        pthread_mutex_destroy(&all.lock);
        rank_train(&one, all.layout, sharded, 0, RANK_N);
        CHECK(!one.broken && !rank_of[0].broken && !rank_of[1].broken);
        for (step = 0; step < RANK_STEPS; step++)
            for (r = 0; r < RANKS; r++) {
                t_note(t, "layout %d, sharded %d, step %d, rank %d", layouts[run / 2], sharded, step, r);
                CHECK_EQ(rank_of[r].r[step].outcome, outcome[step]); /* one rank's overflow is everybody's */
                CHECK_EQ(rank_of[r].r[step].steps, one.r[step].steps);
                CHECK_F32(rank_of[r].scale[step], one.scale[step]);
                if (outcome[step] != AMP_STEPPED) continue;
                CHECK_F64(rank_of[r].r[step].norm, rank_of[0].r[step].norm);
                CHECK_F32(rank_of[r].r[step].clip, rank_of[0].r[step].clip);
                CHECK(rank_of[r].r[step].clip < 1.0f);
                CHECK_NEAR(rank_of[r].r[step].norm, one.r[step].norm,
                    1e-12 * one.r[step].norm); /* shards are added in another order */
            }
        for (r = 0; r < RANKS; r++) {
            if (sharded)
                CHECK_BITS(rank_of[r].w, one.w + (r ? RANK_N / 2 : 0), RANK_N / 2, 4);
            else
                CHECK_BITS(rank_of[r].w, one.w, RANK_N, 4);
        }
    }
}
#else
static void ranks_agree(t_run *t) { t_skip(t, "no threads in this build"); }
#endif

/* Weights without FP32 masters are read and written in blocks of 2^19: more than one here. SPLIT keeps every bit
   of numbers that lie not halfway between two of BF16. */
static void longer_than_a_block(t_run *t) {
    const size_t n = ((size_t)1 << 19) + 777;
    amp_params_desc d = AMP_ZERO;
    amp_param_desc e = AMP_ZERO;
    amp_params *p = NULL;
    float *w = (float *)t_host(t, 4 * n), *got = (float *)t_host(t, 4 * n);
    size_t i;
    for (i = 0; i < n; i++)
        w[i] = ref_f32(0x3f800001u | ((uint32_t)i * 2654435761u >> 9)); /* an odd pattern is not halfway */
    d.model = AMP_BF16;
    d.master = AMP_MASTER_SPLIT;
    CHECK_OK(amp_params_create(&p, t->ctx, &d));
    e.count = n;
    CHECK_OK(amp_params_add(p, &e));
    CHECK_OK(amp_params_commit(p));
    CHECK_OK(amp_param_write(p, 0, w));
    CHECK_OK(amp_param_read(p, 0, got));
    CHECK_BITS(got, w, n, 4);
    amp_params_destroy(p);
}

const t_test t_suite_layouts[] = {{"layouts.split_bits", split_bits, T_HOST},
    {"layouts.split8_bits", split8_bits, T_HOST}, {"layouts.split8_is_rounded", split8_is_rounded, T_ALL},
    {"layouts.longer_than_a_block", longer_than_a_block, T_ALL}, {"layouts.split_is_master", split_is_master, T_ALL},
    {"layouts.split8_overflows", split8_overflows, T_ALL}, {"layouts.split_refuses", split_refuses, T_ALL},
    {"layouts.ladder_same", ladder_same, T_ALL}, {"layouts.sizes_same", sizes_same, T_ALL},
    {"layouts.drawn_same", drawn_same, T_ALL}, {"layouts.skip_anywhere", skip_anywhere, T_ALL},
    {"layouts.small_updates", small_updates, T_ALL}, {"layouts.adam_far_apart", adam_far_apart, T_ALL},
    {"layouts.bf16_moments", bf16_moments, T_CPU}, {"layouts.bytes_and_ledger", bytes_and_ledger, T_ALL},
    {"layouts.state", state_round, T_ALL}, {"layouts.state_of_another_layout", state_of_another_layout, T_ALL},
    {"layouts.groups", groups_are_sets, T_ALL}, {"layouts.lion", lion, T_ALL},
    {"layouts.accumulate_means", accumulate_means, T_ALL}, {"layouts.accumulate_bad", accumulate_bad, T_ALL},
    {"layouts.accumulate_errors", accumulate_errors, T_ALL}, {"layouts.inverse_in_product", inverse_in_product, T_ALL},
    {"layouts.unscaled", unscaled_is_checked, T_ALL}, {"layouts.hooks", hooks_run, T_ALL},
    {"layouts.hook_calls_verbs", hook_calls_verbs, T_ALL}, {"layouts.apply_is_an_update", apply_is_an_update, T_ALL},
    {"layouts.apply_plain", apply_plain, T_ALL}, {"layouts.apply_sums", apply_sums, T_ALL},
    {"layouts.weight_store_is_apply", weight_store_is_apply, T_CPU},
    {"layouts.moments_are_drawn", moments_are_drawn, T_ALL}, {"layouts.ranks", ranks_agree, T_HOST}, {NULL, NULL, 0}};
