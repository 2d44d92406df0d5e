/* test_ordered.c - AMP_GEMM_ORDERED: sums bit by bit, layers and a whole run on every context.

   Guards: >>numerics, >>products. Epilogues, layouts and batches in this mode are in the grid of test_products.c. */
#include "set.h"

/* ---- amp_fma against the C library's fmaf ---- */

static void check_fma(t_run *t, float a, float b, float c) {
    float got = amp_fma(a, b, c), want = ref_fmaf(a, b, c);
    if (amp_is_nan(want) ? amp_is_nan(got) : ref_f32_bits(got) == ref_f32_bits(want)) return;
    t_check(t, 0, __FILE__, __LINE__, "amp_fma(%a, %a, %a) is %a, should be %a", (double)a, (double)b, (double)c,
        (double)got, (double)want);
}
static void fma_rounds_once(t_run *t) {
    int i, rounds = t_full() ? 20000000 : 400000;
    for (i = 0; i < rounds; i++) {
        float a = t_pattern(t), b = t_pattern(t), c = t_pattern(t);
        check_fma(t, a, b, c);
        a = t_range(t, -70, 3); /* sums near halfway, and near the smallest numbers */
        b = t_range(t, -70, 3);
        c = t_range(t, -149, 10);
        check_fma(t, a, b, c);
        check_fma(t, a, b, ref_f32(ref_f32_bits(-(a * b)) + t_below(t, 3)));
        check_fma(t, 1.0f + ldexpf(1.0f, -12), 1.0f + ldexpf((float)t_below(t, 5), -12), ldexpf(c, -24));
    }
    CHECK(1);
}

/* ---- sums: shapes around 256, blocks and few rows; numbers of all kinds ---- */

typedef enum number_kind { REALS, WIDE, EXTREME, SIGNED_ZEROS, NOT_FINITE, HALFWAY, TINY, NUMBER_KINDS } number_kind;

static float number_of(t_run *t, number_kind kind) {
    static const float odd[] = {0.0f, -0.0f, 1.0f, -1.0f};
    static const float halves[] = {0.0f, 1.0f, 1.00000012f, 2.44140625e-4f, 2.44140858e-4f, 2.44140392e-4f};
    static const float tinies[] = {
        0.0f, 2.71050543e-20f, 2.7105106e-20f, 2.64697796e-23f, 2.64698048e-23f, 2.64697544e-23f};
    switch (kind) {
    /* 1, and products 2^-40 below a half of its last place, 2^-12 (1 + 2^-20) 2^-12 (1 - 2^-20): a double does not
       tell them from the half. TINY: below the normal range, 2^-65, 2^-65 (1 + 2^-19) and 2^-75 (1 +- 2^-20) */
    case HALFWAY: return t_below(t, 2) ? halves[t_below(t, 6)] : -halves[t_below(t, 6)];
    case TINY: return t_below(t, 2) ? tinies[t_below(t, 6)] : -tinies[t_below(t, 6)];
    case WIDE: return t_range(t, -30, 8);
    case EXTREME: return t_below(t, 4) ? t_range(t, -149, -50) : t_range(t, 40, 127);
    case SIGNED_ZEROS: return odd[t_below(t, 4)];
    case NOT_FINITE: return t_below(t, 200) ? t_real(t) : t_pattern(t);
    default: return t_real(t);
    }
}
static amp_array numbers(t_run *t, amp_dtype type, size_t n, number_kind kind, float *as_floats, void **host) {
    size_t i;
    *host = t_host(t, n * amp_dtype_size(type));
    for (i = 0; i < n; i++) {
        amp_store(*host, type, i, number_of(t, kind));
        as_floats[i] = amp_load(*host, type, i);
    }
    return amp_arr(t_put(t, *host, n * amp_dtype_size(type)), type);
}

typedef struct sum_case {
    amp_gemm_desc g;
    float *a, *b, *got; /* a as [m][k], b as [n][k] */
} sum_case;

/* Both operands, stored as trans_a and trans_b say. */
static void sum_operands(t_run *t, sum_case *c, amp_dtype type, number_kind kind) {
    amp_gemm_desc *g = &c->g;
    size_t na = g->m * g->k, nb = g->n * g->k, i;
    float *a = (float *)t_host(t, 4 * na), *b = (float *)t_host(t, 4 * nb);
    void *host;
    c->a = (float *)t_host(t, 4 * na);
    c->b = (float *)t_host(t, 4 * nb);
    c->got = (float *)t_host(t, 4 * g->m * g->n);
    g->a = numbers(t, type, na, kind, a, &host);
    g->b = numbers(t, type, nb, kind, b, &host);
    g->d = amp_arr(t_alloc(t, 4 * g->m * g->n), AMP_F32);
    for (i = 0; i < na; i++)
        c->a[i] = g->trans_a ? a[i % g->k * g->m + i / g->k] : a[i];
    for (i = 0; i < nb; i++)
        c->b[i] = g->trans_b ? b[i] : b[i % g->k * g->n + i / g->k];
}
static int right_sum(float got, float want) {
    return amp_is_nan(want) ? amp_is_nan(got) : ref_f32_bits(got) == ref_f32_bits(want);
}
static void check_sums(t_run *t, sum_case *c) {
    const amp_gemm_desc *g = &c->g;
    size_t i, j;
    if (!CHECK_OK(amp_gemm(t->ctx, g))) return;
    t_get(t, c->got, g->d.data, 4 * g->m * g->n);
    for (i = 0; i < g->m; i++)
        for (j = 0; j < g->n; j++) {
            float got = c->got[i * g->n + j], want = ref_ordered_sum(c->a + i * g->k, c->b + j * g->k, g->k);
            if (right_sum(got, want)) continue;
            t_check(t, 0, __FILE__, __LINE__, "row %d, column %d is %a, should be %a", (int)i, (int)j, (double)got,
                (double)want);
            return;
        }
    CHECK(1);
}
static void sums(t_run *t) {
    static const size_t shapes[][3] = {{1, 1, 255}, {2, 3, 256}, {1, 40, 257}, {3, 33, 513}, {4, 17, 770}, {5, 9, 512},
        {17, 40, 300}, {70, 33, 258}, {1, 530, 260}, {540, 1, 257}, {7, 5, 1}};
    size_t s, d, kind;
    for (s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        for (d = 0; d < 5; d++)
            for (kind = 0; kind < NUMBER_KINDS; kind++, t_clear(t)) {
                sum_case c = AMP_ZERO;
                if (!t_full() && (s + d + kind) % 3) continue;
                if ((kind == EXTREME || kind == TINY) && s > 5) continue; /* subnormal numbers are slow */
                c.g.m = shapes[s][0];
                c.g.n = shapes[s][1];
                c.g.k = shapes[s][2];
                c.g.trans_a = t_below(t, 2);
                c.g.trans_b = t_below(t, 2);
                c.g.flags = AMP_GEMM_ORDERED;
                t_note(t, "%s, m %d n %d k %d, trans %d%d, kind %d", amp_dtype_name(ref_dtypes[d]), (int)c.g.m,
                    (int)c.g.n, (int)c.g.k, (int)c.g.trans_a, (int)c.g.trans_b, (int)kind);
                sum_operands(t, &c, ref_dtypes[d], (number_kind)kind);
                check_sums(t, &c);
            }
}

typedef struct power { /* sign * 2^exponent; sign 0: 0, or -0 where the exponent is 1 */
    int sign, exponent;
} power;
static float power_value(power p) {
    if (!p.sign) return p.exponent ? -0.0f : 0.0f;
    return ldexpf((float)p.sign, p.exponent);
}
/* What a BF16 product below FP32's range, or above it, does to a sum: by hand. */
static void out_of_range(t_run *t) {
    static const power a[4][2] = {
        {{1, -100}, {1, -100}}, {{-1, 127}, {1, 100}}, {{-1, -100}, {0, 1}}, {{1, -75}, {0, 0}}};
    static const power b[4][2] = {{{1, -49}, {1, -50}}, {{1, 0}, {1, 28}}, {{1, -100}, {1, 0}}, {{1, -75}, {0, 0}}};
    const float want[4] = {ldexpf(1.0f, -148), ldexpf(1.0f, 127), -0.0f, 0.0f};
    amp_dtype types[2] = {AMP_BF16, AMP_F32};
    size_t i, d;
    for (d = 0; d < 2; d++)
        for (i = 0; i < 4; i++) {
            amp_gemm_desc g = AMP_ZERO;
            size_t size = amp_dtype_size(types[d]), k;
            unsigned char x[8], y[8];
            float got;
            for (k = 0; k < 2; k++) {
                amp_store(x, types[d], k, power_value(a[i][k]));
                amp_store(y, types[d], k, power_value(b[i][k]));
            }
            g.m = g.n = 1;
            g.k = 2;
            g.a = amp_arr(t_put(t, x, 2 * size), types[d]);
            g.b = amp_arr(t_put(t, y, 2 * size), types[d]);
            g.d = amp_arr(t_alloc(t, 4), AMP_F32);
            g.flags = AMP_GEMM_ORDERED;
            t_note(t, "%s, case %d", amp_dtype_name(types[d]), (int)i);
            CHECK_OK(amp_gemm(t->ctx, &g));
            t_get(t, &got, g.d.data, 4);
            CHECK_F32(got, want[i]);
        }
}

/* ---- asking for it, and being told ---- */

/* BF16 products that are just not exact in FP32: a bit below the smallest subnormal number, and one beyond the largest.
   A multiply-add rounds once. */
static void just_not_exact(t_run *t) {
    static const struct {
        uint16_t a[2], b[2];
        uint32_t d;
    } cases[] = {{{0x1e01, 0x1d81}, {0x1d81, 0x1d81}, 0x00006182}, /* 16641 + 8320.5 units: a tie, to even */
        {{0xdfc0, 0x5fc0}, {0x5f00, 0x5f40}, 0x7ec00000}};         /* -1.5 2^127 + 1.125 2^128 */
    size_t i;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++, t_clear(t)) {
        amp_gemm_desc g = AMP_ZERO;
        float d = 0.0f;
        g.m = g.n = 1;
        g.k = 2;
        g.trans_b = 1;
        g.flags = AMP_GEMM_ORDERED;
        g.a = amp_arr(t_put(t, cases[i].a, 4), AMP_BF16);
        g.b = amp_arr(t_put(t, cases[i].b, 4), AMP_BF16);
        g.d = amp_arr(t_alloc(t, 4), AMP_F32);
        t_note(t, "case %d", (int)i);
        CHECK_OK(amp_gemm(t->ctx, &g));
        t_get(t, &d, g.d.data, 4);
        CHECK_F32(d, ref_f32(cases[i].d));
    }
}

static void asking(t_run *t) {
    amp_ctx *ctx = NULL, *own = t->ctx;
    amp_gemm_desc g = AMP_ZERO;
    char text[400];
    sum_case c = AMP_ZERO;
    c.g.m = 2;
    c.g.n = 5;
    c.g.k = 700;
    c.g.trans_b = 1;
    sum_operands(t, &c, AMP_F32, REALS);
    CHECK_OK(amp_gemm_explain(t->ctx, text, sizeof text, &c.g));
    CHECK(strstr(text, "AMP_GEMM_ORDERED") == NULL);
    g = c.g;
    g.flags = AMP_GEMM_ORDERED;
    CHECK_OK(amp_gemm_explain(t->ctx, text, sizeof text, &g));
    CHECK(strstr(text, "AMP_GEMM_ORDERED") != NULL);
    CHECK_OK(amp_gemm_tune(t->ctx, &g));
    t_clear(t);

    t_note(t, "by the context's desc, beside permissions that the mode overrides");
    if (!CHECK_OK(t_create_flags(t->place, &ctx, AMP_GEMM_ORDERED | AMP_GEMM_TF32))) return;
    t->ctx = ctx;
    sum_operands(t, &c, AMP_F32, REALS);
    check_sums(t, &c);
    CHECK_OK(amp_gemm_explain(ctx, text, sizeof text, &c.g));
    CHECK(strstr(text, "AMP_GEMM_ORDERED") != NULL);
    t_clear(t);
    sum_operands(t, &c, AMP_F16, REALS);
    c.g.flags = AMP_GEMM_F16_SUM | AMP_GEMM_REDUCED | AMP_GEMM_FAST_FP8;
    check_sums(t, &c);
    t_clear(t);
    t->ctx = own;
    amp_ctx_destroy(ctx);
    CHECK_EQ(t_create_flags(t->place, &ctx, 1u << 20), AMP_ERR_INVALID_ARG);
    CHECK(ctx == NULL);
}

/* ---- layers: forward, backward and a chain, against portable C ---- */

typedef struct layer_case {
    amp_dtype x, dy, y;
    size_t rows, in, out;
} layer_case;

/* Bits to compare, every NaN the same. */
static void blob_numbers(t_run *t, t_blob *b, amp_array a, size_t n) {
    size_t size = amp_dtype_size(a.dtype), i;
    char *host = (char *)t_host(t, n * size);
    t_get(t, host, a.data, n * size);
    for (i = 0; i < n; i++)
        if (amp_is_nan(amp_load(host, a.dtype, i))) ampi_store_pattern(host, a.dtype, i, set_nan(a.dtype));
    t_blob_add(b, host, n * size);
}
static amp_array filled(t_run *t, amp_dtype type, size_t n, float size) {
    void *host = t_host(t, n * amp_dtype_size(type));
    t_fill_real(t, host, type, n, size);
    return amp_arr(t_put(t, host, n * amp_dtype_size(type)), type);
}
static void layers_scenario(t_run *t, t_blob *b, const void *arg) {
    const layer_case *c = (const layer_case *)arg;
    amp_linear_desc one = AMP_ZERO, two = AMP_ZERO;
    size_t w1 = c->out * c->in, w2 = c->out * c->out, y = c->rows * c->out;
    one.rows = two.rows = c->rows;
    one.in = c->in;
    one.out = two.in = two.out = c->out;
    one.flags = two.flags = AMP_GEMM_ORDERED;
    one.act = AMP_GELU;
    two.act = AMP_RELU;
    one.x = filled(t, c->x, c->rows * c->in, 1.0f);
    one.w = filled(t, c->x, w1, 0.2f);
    two.w = filled(t, c->x, w2, 0.2f);
    one.bias = filled(t, AMP_F32, c->out, 1.0f);
    one.aux = amp_arr(t_alloc(t, y * amp_dtype_size(c->y)), c->y);
    one.y = amp_arr(t_alloc(t, y * amp_dtype_size(c->y)), c->y);
    two.x = filled(t, c->x, y, 1.0f);
    two.y = amp_arr(t_alloc(t, y * amp_dtype_size(c->y)), c->y);
    two.dy = filled(t, c->dy, y, 1.0f);
    one.dy = two.dx = amp_arr(t_alloc(t, y * amp_dtype_size(c->dy)), c->dy);
    one.dx = amp_arr(t_alloc(t, 4 * c->rows * c->in), AMP_F32);
    one.dw = filled(t, AMP_F32, w1, 1.0f);
    one.accumulate = 1;
    one.dbias = filled(t, AMP_F32, c->out, 1.0f);
    two.dw = amp_arr(t_alloc(t, 4 * w2), AMP_F32);
    two.before = &one;
    one.after = &two;
    CHECK_OK(amp_linear_forward(t->ctx, &one));
    CHECK_OK(amp_linear_forward(t->ctx, &two));
    CHECK_OK(amp_linear_backward(t->ctx, &two));
    CHECK_OK(amp_linear_backward(t->ctx, &one));
    blob_numbers(t, b, one.y, y);
    blob_numbers(t, b, one.aux, y);
    blob_numbers(t, b, two.y, y);
    blob_numbers(t, b, two.dy, y);
    blob_numbers(t, b, one.dy, y);
    blob_numbers(t, b, one.dx, c->rows * c->in);
    blob_numbers(t, b, one.dw, w1);
    blob_numbers(t, b, two.dw, w2);
    blob_numbers(t, b, one.dbias, c->out);
}
static void layers(t_run *t) {
    static const layer_case cases[] = {{AMP_F16, AMP_F16, AMP_F16, 5, 300, 40},
        {AMP_BF16, AMP_BF16, AMP_BF16, 33, 70, 24}, {AMP_F32, AMP_F32, AMP_F32, 3, 270, 20},
        {AMP_F8E4M3, AMP_F8E5M2, AMP_BF16, 16, 272, 32}, {AMP_F16, AMP_F16, AMP_F32, 1, 520, 9},
        {AMP_F16, AMP_F16, AMP_F32, 2, 24, 520}, {AMP_F16, AMP_F16, AMP_F32, 700, 5, 6}, /* dw's sums are long */
        {AMP_F32, AMP_F32, AMP_F32, 530, 6, 4}};
    size_t i;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++, t_clear(t)) {
        t_note(t, "case %d", (int)i);
        t_same_everywhere(t, layers_scenario, &cases[i]);
    }
}

/* ---- a run: 40 steps of a network on every context ----
   A classifier with GELU and ReLU, or with every activation, weights stored both ways, and a last layer whose loss is
   made in pieces; cross-entropy, AdamW, clipping, and a dynamic scale that begins so high that the first steps are
   skipped. The order comes with the context, as a user would have it. */

enum { RUN_STEPS = 40, RUN_ROWS = 24, RUN_CLASSES = 10, RUN_LAYERS = 7 };
typedef struct run_plan {
    amp_dtype type;
    uint32_t w_in_out; /* 1: every second layer has it */
    size_t chunk;      /* rows of a piece of the last layer and its loss; 0: verbs of their own */
    size_t layers, sizes[RUN_LAYERS + 1];
    amp_act act[RUN_LAYERS];
} run_plan;
#define RUN_TWO \
    0, 0, 3, {300, 64, 48, RUN_CLASSES}, { AMP_GELU, AMP_RELU }
#define RUN_ALL \
    1, 8, 7, {40, 32, 24, 24, 16, 16, 16, RUN_CLASSES}, { \
        AMP_RELU, AMP_GELU, AMP_GELU_ERF, AMP_SILU, AMP_TANH, AMP_SIGMOID \
    }

typedef struct run_net {
    const run_plan *plan;
    amp_params *p;
    amp_scaler *s;
    amp_linear_desc layer[RUN_LAYERS];
    amp_xent_desc loss;
    amp_linear_xent_desc last; /* with a plan that has a chunk */
    amp_array x;
    int32_t *labels;
    size_t counts[2 * RUN_LAYERS];
} run_net;

static amp_array run_array(t_run *t, amp_dtype type, size_t n) {
    return amp_arr(t_alloc(t, n * amp_dtype_size(type)), type);
}
static int run_parameters(t_run *t, run_net *n) {
    amp_params_desc d = AMP_ZERO;
    amp_scaler_desc s = AMP_ZERO;
    size_t i, k;
    d.model = n->plan->type;
    if (!CHECK_OK(amp_params_create(&n->p, t->ctx, &d))) return 0;
    for (i = 0; i < 2 * n->plan->layers; i++) {
        amp_param_desc e = AMP_ZERO;
        size_t in = n->plan->sizes[i / 2], out = n->plan->sizes[i / 2 + 1];
        float *w;
        e.count = n->counts[i] = i % 2 ? out : in * out;
        w = (float *)t_host(t, 4 * e.count);
        for (k = 0; k < e.count && i % 2 == 0; k++)
            w[k] = t_real(t) / sqrtf((float)in);
        e.init = w;
        CHECK_OK(amp_params_add(n->p, &e));
    }
    s.scale = 16777216.0f;
    s.growth_interval = 8;
    return CHECK_OK(amp_params_commit(n->p)) && CHECK_OK(amp_scaler_create(&n->s, t->ctx, &s));
}
/* The last layer and its loss as one verb. */
static void run_last(t_run *t, run_net *n) {
    n->last.linear = n->layer[n->plan->layers - 1];
    n->last.linear.y.data = NULL;
    memset(&n->last.linear.dy, 0, sizeof n->last.linear.dy);
    n->last.xent = n->loss;
    memset(&n->last.xent.logits, 0, sizeof n->last.xent.logits);
    memset(&n->last.xent.dlogits, 0, sizeof n->last.xent.dlogits);
    n->last.chunk = n->plan->chunk;
    CHECK_OK(amp_linear_cross_entropy_bytes(t->ctx, &n->last.scratch_bytes, &n->last));
    n->last.scratch = t_alloc(t, n->last.scratch_bytes);
}
static void run_layers(t_run *t, run_net *n) {
    const run_plan *plan = n->plan;
    amp_dtype type = plan->type;
    size_t i;
    n->x = run_array(t, type, RUN_ROWS * plan->sizes[0]);
    n->labels = (int32_t *)t_alloc(t, RUN_ROWS * sizeof *n->labels);
    for (i = 0; i < plan->layers; i++) {
        amp_linear_desc *l = &n->layer[i];
        const amp_linear_desc *before = i ? &n->layer[i - 1] : NULL;
        l->rows = RUN_ROWS;
        l->in = plan->sizes[i];
        l->out = plan->sizes[i + 1];
        l->act = plan->act[i];
        l->w_in_out = plan->w_in_out && i % 2 == 0;
        l->x = before ? before->y : n->x;
        l->w = amp_param_model(n->p, 2 * i);
        l->bias = amp_param_model(n->p, 2 * i + 1);
        l->y = run_array(t, type, RUN_ROWS * l->out);
        if (l->act == AMP_GELU || l->act == AMP_GELU_ERF || l->act == AMP_SILU)
            l->aux = run_array(t, type, RUN_ROWS * l->out);
        l->dy = run_array(t, type, RUN_ROWS * l->out);
        if (before) l->dx = before->dy;
        l->dw = amp_param_grad(n->p, 2 * i);
        l->dbias = amp_param_grad(n->p, 2 * i + 1);
    }
    n->loss.rows = RUN_ROWS;
    n->loss.classes = RUN_CLASSES;
    n->loss.logits = n->layer[plan->layers - 1].y;
    n->loss.dlogits = n->layer[plan->layers - 1].dy;
    n->loss.labels = n->labels;
    n->loss.loss = (float *)t_alloc(t, 4);
    n->loss.row_loss = (float *)t_alloc(t, RUN_ROWS * 4);
    n->loss.scaler = n->s;
    if (plan->chunk) run_last(t, n);
}
/* Each class has its own places where the inputs are larger. */
static void run_batch(t_run *t, run_net *n, void *x) {
    int32_t labels[RUN_ROWS];
    size_t r, i, in = n->plan->sizes[0];
    for (r = 0; r < RUN_ROWS; r++) {
        labels[r] = (int32_t)t_below(t, RUN_CLASSES);
        for (i = 0; i < in; i++)
            amp_store(x, n->x.dtype, r * in + i, t_real(t) + (i % RUN_CLASSES == (size_t)labels[r] ? 1.0f : 0.0f));
    }
    t_set(t, n->x.data, x, RUN_ROWS * in * amp_dtype_size(n->x.dtype));
    t_set(t, n->labels, labels, sizeof labels);
}
static void run_step(t_run *t, run_net *n) {
    amp_step_desc step = AMP_ZERO;
    size_t i, apart = n->plan->layers - (n->plan->chunk != 0);
    for (i = 0; i < apart; i++)
        CHECK_OK(amp_linear_forward(t->ctx, &n->layer[i]));
    if (n->plan->chunk)
        CHECK_OK(amp_linear_cross_entropy(t->ctx, &n->last));
    else
        CHECK_OK(amp_softmax_cross_entropy(t->ctx, &n->loss));
    for (i = apart; i-- > 0;)
        CHECK_OK(amp_linear_backward(t->ctx, &n->layer[i]));
    step.lr = 3e-3f;
    step.clip_norm = 1.0f;
    step.weight_decay = 0.01f;
    CHECK_OK(amp_step(n->p, n->s, &step));
}
static void run_scenario(t_run *t, t_blob *b, const void *arg) {
    amp_ctx *own = t->ctx, *ctx = NULL;
    static const t_place portable = {"", T_KIND_CPU, AMP_SIMD_SCALAR, 1};
    const t_place *place = own == t->own ? t->place : &portable;
    const run_plan *plan = (const run_plan *)arg;
    run_net n = AMP_ZERO;
    amp_scaler_info info;
    float first = 0, last = 0;
    void *x = t_host(t, RUN_ROWS * plan->sizes[0] * 4);
    size_t step, i;
    if (!CHECK_OK(t_create_flags(place, &ctx, AMP_GEMM_ORDERED))) return;
    t->ctx = ctx;
    n.plan = plan;
    if (run_parameters(t, &n)) run_layers(t, &n);
    for (step = 0; step < RUN_STEPS && n.s; step++) {
        run_batch(t, &n, x);
        run_step(t, &n);
        t_get(t, &last, n.loss.loss, 4);
        t_blob_add(b, &last, sizeof last);
        if (step == 0) first = last;
        for (i = 0; i < 2 * plan->layers && step % 10 == 9; i++)
            t_blob_dev(t, b, amp_param_get(n.p, i).master.data, 4 * n.counts[i]);
    }
    CHECK_OK(amp_scaler_get(n.s, &info));
    t_blob_add(b, &info.scale, sizeof info.scale);
    t_note(t, "loss %g to %g, %d steps skipped", (double)first, (double)last, (int)info.bad);
    if (plan->layers <= 3) CHECK(last < 0.6f * first);                         /* it learns; more layers take longer */
    if (n.x.dtype == AMP_F16) CHECK(info.bad > 2 && info.bad < RUN_STEPS / 2); /* and skips steps */
    amp_scaler_destroy(n.s);
    amp_params_destroy(n.p);
    t_clear(t);
    t->ctx = own;
    amp_ctx_destroy(ctx);
}
/* The bits of this run on every machine: with --full other numbers, too, beside portable C. */
static void check_run(t_run *t, const run_plan *plan, uint64_t want) {
    t_blob b = AMP_ZERO;
    uint64_t h = 0xcbf29ce484222325u;
    uint32_t word;
    size_t i;
    if (t_full()) t_same_everywhere(t, run_scenario, plan);
    t->rng = 40;
    run_scenario(t, &b, plan);
    for (i = 0; i + sizeof word <= b.bytes;
        i += sizeof word) { /* FNV-1a over words: floats, whatever their bytes' order */
        memcpy(&word, (const char *)b.data + i, sizeof word);
        h = (h ^ word) * 0x100000001b3u;
    }
    free(b.data);
    t_check(t, h == want, __FILE__, __LINE__, "losses, weights and scale hash to %016llx, on other machines to %016llx",
        (unsigned long long)h, (unsigned long long)want);
}
static void run_f16(t_run *t) {
    static const run_plan plan = {AMP_F16, RUN_TWO};
    check_run(t, &plan, 0x2a0857b76fdc1e9du);
}
static void run_bf16(t_run *t) {
    static const run_plan plan = {AMP_BF16, RUN_TWO};
    check_run(t, &plan, 0x1757cfb6d8cd8e8eu);
}
static void run_f32(t_run *t) {
    static const run_plan plan = {AMP_F32, RUN_TWO};
    check_run(t, &plan, 0xcc0959ade5f058b5u);
}
static void run_all_f16(t_run *t) {
    static const run_plan plan = {AMP_F16, RUN_ALL};
    check_run(t, &plan, 0x752e33253c218dbcu);
}
static void run_all_bf16(t_run *t) {
    static const run_plan plan = {AMP_BF16, RUN_ALL};
    check_run(t, &plan, 0x6de547b962d000d9u);
}

const t_test t_suite_ordered[] = {{"ordered.fma", fma_rounds_once, T_HOST}, {"ordered.sums", sums, T_ALL},
    {"ordered.out_of_range", out_of_range, T_ALL}, {"ordered.just_not_exact", just_not_exact, T_ALL},
    {"ordered.asking", asking, T_ALL}, {"ordered.layers", layers, T_ALL}, {"ordered.40_steps_f16", run_f16, T_ALL},
    {"ordered.40_steps_bf16", run_bf16, T_ALL}, {"ordered.40_steps_f32", run_f32, T_ALL},
    {"ordered.40_steps_of_all_f16", run_all_f16, T_ALL}, {"ordered.40_steps_of_all_bf16", run_all_bf16, T_ALL},
    {NULL, NULL, 0}};
