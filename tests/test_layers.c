/* test_layers.c - layers whose weights are stored [in, out]; sums of columns; activations apart from products; a bias
   per row and batches that add up; masks.  Guards: >>products. */
#include "ref.h"

static amp_array filled(t_run *t, amp_dtype type, size_t n, float size) {
    void *host = t_host(t, n * amp_dtype_size(type));
    t_fill_real(t, host, type, n, size);
    return amp_arr(t_put(t, host, n * amp_dtype_size(type)), type);
}
static amp_array empty(t_run *t, amp_dtype type, size_t n) {
    return amp_arr(t_alloc(t, n * amp_dtype_size(type)), type);
}
static void *contents(t_run *t, amp_array a, size_t n) {
    void *host = t_host(t, n * amp_dtype_size(a.dtype));
    t_get(t, host, a.data, n * amp_dtype_size(a.dtype));
    return host;
}
static amp_array copy_of(t_run *t, amp_array a, size_t n) {
    return a.data ? amp_arr(t_put(t, contents(t, a, n), n * amp_dtype_size(a.dtype)), a.dtype) : a;
}
static amp_array turned(t_run *t, amp_array a, size_t rows, size_t cols) { /* the transpose of a[rows, cols] */
    const size_t size = amp_dtype_size(a.dtype);
    const char *from = (const char *)contents(t, a, rows * cols);
    char *to = (char *)t_host(t, rows * cols * size);
    amp_array b = a;
    size_t i, j;
    for (i = 0; i < rows; i++)
        for (j = 0; j < cols; j++)
            memcpy(to + (j * rows + i) * size, from + (i * cols + j) * size, size);
    b.data = t_put(t, to, rows * cols * size);
    return b;
}
/* Its contents, but each NaN as one and the same: of two that meet in an addition a compiler chooses which goes on. */
static const void *one_nan(t_run *t, amp_array a, size_t n) {
    void *x = contents(t, a, n);
    size_t i;
    for (i = 0; i < n; i++)
        if (amp_is_nan(amp_load(x, a.dtype, i))) amp_store(x, a.dtype, i, ampi_float(0x7fc00000u));
    return x;
}
static void same_array(t_run *t, const char *what, amp_array got, amp_array want, size_t n) {
    if (!want.data) return;
    t_check_bits(t, one_nan(t, got, n), one_nan(t, want, n), n, amp_dtype_size(want.dtype), what, __FILE__, __LINE__);
}

/* ---- weights stored [in, out]: what [out, in] gives, in every way of a layer ---- */

typedef struct way {
    amp_dtype x, w, dw;
    amp_act act;
    uint32_t scope; /* 1: in an autocast scope, with a record; 2: and the weight's cast is kept */
    uint32_t fp8, accumulate, chain, few;
} way;
static const way ways[] = {
    {AMP_F32, AMP_F32, AMP_F32, AMP_ACT_NONE, 0, 0, 0, 0, 0},
    {AMP_F32, AMP_F32, AMP_F32, AMP_GELU, 0, 0, 1, 0, 1},
    {AMP_F16, AMP_F16, AMP_F16, AMP_RELU, 0, 0, 1, 1, 0},
    {AMP_BF16, AMP_BF16, AMP_F32, AMP_GELU, 0, 0, 0, 1, 0},
    {AMP_F32, AMP_F32, AMP_F32, AMP_RELU, 1, 0, 0, 0, 0},
    {AMP_F32, AMP_F32, AMP_F32, AMP_GELU, 2, 0, 1, 1, 1},
    {AMP_F16, AMP_F16, AMP_F32, AMP_GELU, 0, 1, 0, 0, 0},
    {AMP_F32, AMP_F32, AMP_F32, AMP_RELU, 0, 1, 1, 1, 0},
};
typedef struct stored { /* a layer whose weights are in one of the two orders */
    amp_linear_desc l;
    amp_linear_desc before; /* the one before it, of which backward is asked too */
    amp_precision made;
    amp_fp8 *f;
} stored;

static void stored_make(t_run *t, stored *s, const way *y) {
    amp_linear_desc *l = &s->l;
    memset(s, 0, sizeof *s);
    l->rows = y->few ? 3 : y->fp8 ? 32 : 21;
    l->in = y->fp8 ? 48 : 35;
    l->out = y->fp8 ? 16 : 19;
    l->act = y->act;
    l->accumulate = y->accumulate;
    l->x = filled(t, y->x, l->rows * l->in, 1.0f);
    l->w = filled(t, y->w, l->in * l->out, 0.2f);
    l->bias = filled(t, AMP_F32, l->out, 0.2f);
    l->dy = filled(t, y->x, l->rows * l->out, 1.0f);
    l->dw = filled(t, y->dw, l->in * l->out, 1.0f);
    l->dbias = filled(t, AMP_F32, l->out, 1.0f);
    s->before.rows = l->rows;
    s->before.in = 1;
    s->before.out = l->in;
    s->before.act = AMP_RELU;
    s->before.y = l->x;
    s->before.dbias = filled(t, AMP_F32, l->in, 1.0f);
}
/* The same with arrays of its own, and weights in the other order. */
static void stored_turn(t_run *t, stored *s, const stored *from) {
    const amp_linear_desc *a = &from->l;
    *s = *from;
    s->l.w_in_out = 1;
    s->l.w = turned(t, a->w, a->out, a->in);
    s->l.dw = turned(t, a->dw, a->out, a->in);
    s->l.dy = copy_of(t, a->dy, a->rows * a->out);
    s->l.dbias = copy_of(t, a->dbias, a->out);
    s->before.dbias = copy_of(t, from->before.dbias, a->in);
}
static void stored_run(t_run *t, stored *s, const way *y, uint32_t flags) {
    amp_linear_desc *l = &s->l;
    l->flags = flags;
    l->y = empty(t, y->x, l->rows * l->out);
    l->aux = empty(t, y->x, l->rows * l->out);
    l->dx = empty(t, y->x, l->rows * l->in);
    if (y->scope) l->record = &s->made;
    if (y->scope == 2) l->w.flags = AMP_CACHE;
    if (y->chain) {
        l->before = &s->before;
        s->before.after = l;
    }
    if (y->fp8) {
        amp_fp8_desc d = AMP_ZERO;
        d.tensors = 3;
        CHECK_OK(amp_fp8_create(&s->f, t->ctx, &d));
        l->fp8 = s->f;
        l->scratch_bytes = l->rows * l->in + l->out * l->in + 2 * l->rows * l->out + 1024;
        l->scratch = t_alloc(t, l->scratch_bytes);
    }
    if (y->scope) CHECK_OK(amp_autocast_begin(t->ctx, NULL));
    CHECK_OK(amp_linear_tune(t->ctx, l));
    CHECK_OK(amp_linear_forward(t->ctx, l));
    CHECK_OK(amp_linear_backward(t->ctx, l));
    if (y->scope) CHECK_OK(amp_autocast_end(t->ctx));
    if (y->scope) CHECK_OK(amp_autocast_release(t->ctx));
    amp_fp8_destroy(s->f);
}
static void stored_in_out(t_run *t) {
    size_t i;
    for (i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        const way *y = &ways[i];
        const amp_linear_desc *a, *b;
        stored out_in, in_out;
        t_note(t, "way %d", (int)i);
        stored_make(t, &out_in, y);
        stored_turn(t, &in_out, &out_in);
        stored_run(t, &out_in, y, AMP_GEMM_ORDERED);
        stored_run(t, &in_out, y, AMP_GEMM_ORDERED);
        a = &out_in.l;
        b = &in_out.l;
        same_array(t, "y", b->y, a->y, a->rows * a->out);
        same_array(t, "aux", b->aux, a->aux, a->rows * a->out);
        same_array(t, "dy", b->dy, a->dy, a->rows * a->out);
        same_array(t, "dx", b->dx, a->dx, a->rows * a->in);
        same_array(t, "dw", b->dw, turned(t, a->dw, a->out, a->in), a->in * a->out);
        same_array(t, "dbias", b->dbias, a->dbias, a->out);
        same_array(t, "before->dbias", in_out.before.dbias, out_in.before.dbias, a->in);
        if (y->scope) CHECK_EQ(in_out.made.used, AMP_F16);
        t_clear(t);
    }
}
/* FP8 on the hardware's own path: x w^T is the one order that every device has, so the copies are turned to it. */
static void stored_fp8_by_cublas(t_run *t) {
    stored out_in, in_out;
    stored_make(t, &out_in, &ways[6]);
    stored_turn(t, &in_out, &out_in);
    stored_run(t, &in_out, &ways[6], 0);
    t_clear(t);
}

/* A scope would cast, backward could not know: refused, unless a record tells it, or nothing depends on it. */
static void no_record(t_run *t) {
    amp_precision made = AMP_ZERO;
    stored s;
    amp_linear_desc *l = &s.l;
    stored_make(t, &s, &ways[4]);
    l->y = empty(t, AMP_F32, l->rows * l->out);
    l->dx = empty(t, AMP_F32, l->rows * l->in);
    CHECK_OK(amp_linear_forward(t->ctx, l)); /* no scope */
    CHECK_OK(amp_autocast_begin(t->ctx, NULL));
    CHECK_STATUS(amp_linear_forward(t->ctx, l), AMP_ERR_INVALID_ARG, "f16 record .record");
    l->dx.data = NULL;
    CHECK_STATUS(amp_linear_forward(t->ctx, l), AMP_ERR_INVALID_ARG, "record dw");
    CHECK_STATUS(amp_linear_tune(t->ctx, l), AMP_ERR_INVALID_ARG, "record dw");
    l->pin = AMP_BF16; /* which backward has, too */
    CHECK_OK(amp_linear_forward(t->ctx, l));
    l->pin = AMP_AUTO;
    l->record = &made;
    CHECK_OK(amp_linear_forward(t->ctx, l));
    l->record = NULL;
    l->dw.data = NULL;
    CHECK_OK(amp_linear_forward(t->ctx, l)); /* evaluation */
    l->dw = filled(t, AMP_F32, l->in * l->out, 1.0f);
    l->x = filled(t, AMP_F16, l->rows * l->in, 1.0f);
    CHECK_STATUS(amp_linear_forward(t->ctx, l), AMP_ERR_INVALID_ARG, "record"); /* of w */
    l->w = filled(t, AMP_F16, l->in * l->out, 1.0f);
    l->dy = filled(t, AMP_F16, l->rows * l->out, 1.0f);
    CHECK_OK(amp_linear_forward(t->ctx, l)); /* nothing is cast */
    CHECK_OK(amp_linear_backward(t->ctx, l));
    CHECK_OK(amp_autocast_end(t->ctx));
    CHECK_OK(amp_autocast_release(t->ctx));
    t_clear(t);
}

/* ---- the cast of a weight that no set owns ends with the iteration, in a scope that is open around the loop ---- */

static uint64_t casts(t_run *t) { return amp_autocast_get(t->ctx).casts; }
static void new_weights(t_run *t, amp_array w, size_t n) {
    float *host = (float *)t_host(t, 4 * n);
    t_fill_real(t, host, AMP_F32, n, 0.3f);
    t_set(t, w.data, host, 4 * n);
}
/* Without a scaler: a forward after a backward casts anew; forwards before it, and backwards after it, do not. */
static void cache_ends_with_backward(t_run *t) {
    amp_precision made = AMP_ZERO;
    stored s;
    amp_linear_desc *l = &s.l;
    int step;
    stored_make(t, &s, &ways[4]);
    l->act = AMP_ACT_NONE;
    l->y = empty(t, AMP_F32, l->rows * l->out);
    l->dx = empty(t, AMP_F32, l->rows * l->in);
    l->record = &made;
    l->w.flags = AMP_CACHE;
    CHECK_OK(amp_autocast_begin(t->ctx, NULL));
    for (step = 0; step < 3; step++) {
        amp_linear_desc fresh = *l;
        uint64_t before = casts(t);
        t_note(t, "step %d", step);
        CHECK_OK(amp_linear_forward(t->ctx, l));
        CHECK_EQ(casts(t) - before, 2); /* x and w */
        CHECK_OK(amp_linear_forward(t->ctx, l));
        CHECK_EQ(casts(t) - before, 3); /* x */
        fresh.w.flags = 0;
        fresh.y = empty(t, AMP_F32, l->rows * l->out);
        CHECK_OK(amp_linear_forward(t->ctx, &fresh));
        same_array(t, "y", l->y, fresh.y, l->rows * l->out);
        before = casts(t);
        CHECK_OK(amp_linear_backward(t->ctx, l));
        CHECK_OK(amp_linear_backward(t->ctx, l)); /* as in a loop over time steps */
        CHECK_EQ(casts(t) - before, 4);           /* x and dy */
        new_weights(t, l->w, l->in * l->out);
    }
    CHECK_OK(amp_autocast_end(t->ctx));
    CHECK_OK(amp_autocast_release(t->ctx));
    t_clear(t);
}
/* Products alone: at amp_scaler_update. */
static void cache_ends_with_the_scale(t_run *t) {
    amp_scaler *scaler = NULL;
    amp_finite_report *none = NULL;
    amp_gemm_desc g = AMP_ZERO;
    int step;
    g.m = 5;
    g.n = 6;
    g.k = 7;
    g.a = filled(t, AMP_F32, 35, 1.0f);
    g.b = filled(t, AMP_F32, 42, 1.0f);
    g.d = empty(t, AMP_F32, 30);
    g.b.flags = AMP_CACHE;
    CHECK_OK(amp_scaler_create(&scaler, t->ctx, NULL));
    CHECK_OK(amp_autocast_begin(t->ctx, NULL));
    for (step = 0; step < 3; step++) {
        amp_gemm_desc fresh = g;
        amp_array grad = filled(t, AMP_F32, 8, 1.0f);
        uint64_t before = casts(t);
        CHECK_OK(amp_gemm(t->ctx, &g));
        CHECK_OK(amp_gemm(t->ctx, &g));
        CHECK_EQ(casts(t) - before, 3);
        fresh.b.flags = 0;
        fresh.d = empty(t, AMP_F32, 30);
        CHECK_OK(amp_gemm(t->ctx, &fresh));
        same_array(t, "d", g.d, fresh.d, 30);
        grad.count = 8;
        CHECK_OK(amp_unscale(scaler, NULL, none, &grad, 1));
        CHECK_OK(amp_scaler_update(scaler));
        new_weights(t, g.b, 42);
    }
    CHECK_OK(amp_autocast_end(t->ctx));
    CHECK_OK(amp_autocast_release(t->ctx));
    amp_scaler_destroy(scaler);
    t_clear(t);
}

/* ---- sums of columns: the bits of a layer's dbias, any dtypes and pitch ---- */

static void column_sums(t_run *t) {
    static const amp_dtype types[] = {AMP_F32, AMP_F16, AMP_BF16, AMP_F8E4M3, AMP_F8E5M2};
    int round, rounds = t_rounds(t, 60, 600, 12, 60);
    for (round = 0; round < rounds; round++) {
        amp_dtype from = types[round % 3], to = types[round / 3 % 5];
        size_t rows = round == 5 ? 0 : 1 + t_below(t, round % 4 ? 70 : 600), cols = 1 + t_below(t, 40);
        size_t aligned = (8 - cols % 8) % 8, pad = round % 4 == 3 ? aligned : t_below(t, 9);
        size_t i, size = amp_dtype_size(from);
        size_t bytes = ((rows ? rows - 1 : 0) * (cols + pad) + cols) * size; /* the last row has nothing behind it */
        char *wide = (char *)t_host(t, bytes);
        amp_array dy = filled(t, from, rows * cols, 1.0f), sums = filled(t, to, cols, 1.0f), src;
        const char *packed = (const char *)contents(t, dy, rows * cols);
        amp_linear_desc l = AMP_ZERO;
        t_note(t, "round %d: %s to %s, %d rows of %d, %d apart", round, amp_dtype_name(from), amp_dtype_name(to),
            (int)rows, (int)cols, (int)(cols + pad));
        t_fill_bits(t, wide, bytes); /* what lies between rows is not read */
        for (i = 0; i < rows; i++)
            memcpy(wide + i * (cols + pad) * size, packed + i * cols * size, cols * size);
        src = amp_arr(t_put(t, wide, bytes), from);
        l.rows = rows;
        l.in = 1;
        l.out = cols;
        l.dy = dy;
        l.dbias = copy_of(t, sums, cols);
        l.accumulate = (uint32_t)(round & 1);
        CHECK_OK(amp_linear_backward(t->ctx, &l));
        CHECK_OK(amp_column_sums(t->ctx, sums, src, rows, cols, cols + pad, l.accumulate));
        same_array(t, "sums", sums, l.dbias, cols);
        CHECK_OK(amp_column_sums(t->ctx, sums, dy, rows, cols, 0, 0)); /* packed */
        l.accumulate = 0;
        CHECK_OK(amp_linear_backward(t->ctx, &l));
        same_array(t, "packed sums", sums, l.dbias, cols);
        t_clear(t);
    }
}
/* The rule of >>sums, written out: 32 rows at a time in FP32, their sums in double by eight in turn, then by halves.
   Numbers are up to 2^60 times as large as others, and every other part or so begins with 2^70 or, the next time, with
   -2^70: what a sum has lost before these cancel depends on the order. */
static float column_by_rule(const float *x, size_t rows, size_t cols) {
    volatile double lane[8] = {0};
    size_t r, first, h, i;
    for (first = 0; first < rows; first += 32) {
        volatile float part = 0;
        for (r = first; r < rows && r < first + 32; r++)
            part += x[r * cols];
        lane[first / 32 % 8] += (double)part;
    }
    for (h = 4; h; h /= 2)
        for (i = 0; i < h; i++)
            lane[i] += lane[i + h];
    return (float)lane[0];
}
static void spread(t_run *t, float *x, size_t rows, size_t cols) {
    size_t i, r;
    for (i = 0; i < rows * cols; i++) {
        const int exponent = (int)t_below(t, 60) - 30;
        const float sign = t_below(t, 2) ? 1.0f : -1.0f;
        x[i] = sign * (float)ldexp((double)(128 + t_below(t, 128)), exponent);
    }
    for (i = 0; i < cols; i++) {
        float huge = 1.1805916e21f; /* 2^70 */
        for (r = 0; r < rows; r += 32)
            if (t_below(t, 2)) {
                x[r * cols + i] = huge;
                huge = -huge;
            }
    }
}
static void column_sums_by_rule(t_run *t) {
    static const size_t most[] = {3, 32, 100, 130, 255, 257, 900}, widths[] = {1, 10, 16, 33, 68};
    int round;
    for (round = 0; round < 35; round++) {
        const size_t rows = most[round % 7], cols = widths[round / 7], n = rows * cols;
        const amp_dtype type = round % 2 ? AMP_BF16 : AMP_F32;
        float *x = (float *)t_host(t, n * sizeof *x), *want = (float *)t_host(t, cols * sizeof *want);
        amp_array src, sums = empty(t, AMP_F32, cols);
        size_t i;
        spread(t, x, rows, cols);
        src = filled(t, type, n, 0.0f);
        if (type == AMP_F32) {
            t_set(t, src.data, x, n * sizeof *x);
        } else {
            amp_bf16 *half = (amp_bf16 *)t_host(t, n * sizeof *half);
            for (i = 0; i < n; i++)
                half[i] = amp_bf16_from_f32(x[i]);
            t_set(t, src.data, half, n * sizeof *half);
        }
        for (i = 0; i < cols; i++)
            want[i] = column_by_rule(x + i, rows, cols);
        t_note(t, "%s [%d, %d]", amp_dtype_name(type), (int)rows, (int)cols);
        CHECK_OK(amp_column_sums(t->ctx, sums, src, rows, cols, 0, 0));
        CHECK_BITS(contents(t, sums, cols), want, cols, 4);
        t_clear(t);
    }
}
/* FP8 is widened exactly, so it gives what its values give in FP32. */
static void column_sums_of_f8(t_run *t) {
    static const size_t rows = 200, cols = 24;
    int i;
    for (i = 0; i < 2; i++) {
        amp_array q = filled(t, i ? AMP_F8E5M2 : AMP_F8E4M3, rows * cols, 1.0f), x = empty(t, AMP_F32, rows * cols);
        amp_array got = empty(t, AMP_F32, cols), want = empty(t, AMP_F32, cols);
        CHECK_OK(amp_cast(t->ctx, x, q, rows * cols, NULL));
        CHECK_OK(amp_column_sums(t->ctx, got, q, rows, cols, 0, 0));
        CHECK_OK(amp_column_sums(t->ctx, want, x, rows, cols, 0, 0));
        same_array(t, "sums", got, want, cols);
        t_clear(t);
    }
}
static void column_sums_refused(t_run *t) {
    amp_array x = filled(t, AMP_F32, 24, 1.0f), s = filled(t, AMP_F32, 4, 1.0f), none = AMP_ZERO;
    CHECK_STATUS(amp_column_sums(t->ctx, s, x, 6, 4, 3, 0), AMP_ERR_INVALID_ARG, "ld 3 4");
    CHECK_STATUS(amp_column_sums(t->ctx, none, x, 6, 4, 0, 0), AMP_ERR_INVALID_ARG, "dst NULL");
    CHECK_STATUS(amp_column_sums(t->ctx, s, none, 6, 4, 0, 0), AMP_ERR_INVALID_ARG, "src NULL");
    CHECK_STATUS(amp_column_sums(t->ctx, x, x, 6, 4, 0, 0), AMP_ERR_INVALID_ARG, "dst overlaps src");
    CHECK_STATUS(amp_column_sums(t->ctx, s, x, (size_t)-1, 4, 0, 0), AMP_ERR_INVALID_ARG, "large");
    CHECK_STATUS(amp_column_sums(t->ctx, s, x, 0, (size_t)-1, 0, 0), AMP_ERR_INVALID_ARG, "large");
    x.count = 23;
    CHECK_STATUS(amp_column_sums(t->ctx, s, x, 6, 4, 0, 0), AMP_ERR_INVALID_ARG, "src.count 23 24");
    CHECK_OK(amp_column_sums(t->ctx, none, none, 6, 0, 0, 0));
    CHECK_EQ(amp_column_sums(NULL, s, x, 6, 4, 0, 0), AMP_ERR_INVALID_ARG);
    t_clear(t);
}

/* ---- activations apart from products ---- */

/* The errors that amp.h promises, over all exponents. */
static double act_bound(amp_act act, double x, double y) {
    const double tiny = 1.1754943508222875e-38;
    switch (act) {
    case AMP_GELU: return 2.5e-7 * fabs(x) + tiny;
    case AMP_GELU_ERF: return 3.5e-7 * fabs(x) + tiny;
    case AMP_SILU: return 3e-7 * fabs(x) + tiny;
    case AMP_RELU: return 0;
    default: return 2.5e-7 * fabs(y) + tiny;
    }
}
static double act_grad_bound(amp_act act) {
    switch (act) {
    case AMP_GELU_ERF: return 3.5e-7;
    case AMP_RELU: return 0;
    case AMP_TANH:
    case AMP_SIGMOID: return 1.5e-7;
    default: return 3e-7;
    }
}
static void activation_values(t_run *t) {
    const size_t n = t_full() && !t_slow(t) ? 4000000 : t_slow(t) ? 4000 : 30000;
    float *x = (float *)t_host(t, 4 * n), *y = (float *)t_host(t, 4 * n), *one = (float *)t_host(t, 4 * n);
    amp_activation_desc d = AMP_ZERO;
    int act;
    size_t i;
    for (i = 0; i < n; i++) {
        x[i] = i % 2 ? t_range(t, -120, 9) : (float)(8.0 * (2.0 * t_unit(t) - 1.0));
        one[i] = 1.0f;
    }
    x[0] = 0.0f;
    d.count = n;
    for (act = 1; act < AMP_ACT_COUNT; act++) {
        const int by_y = act == AMP_RELU || act == AMP_TANH || act == AMP_SIGMOID;
        d.act = (amp_act)act;
        d.x = amp_arr(t_put(t, x, 4 * n), AMP_F32);
        d.y = amp_arr(t_alloc(t, 4 * n), AMP_AUTO);
        d.dx.data = NULL;
        d.dy.data = NULL;
        CHECK_OK(amp_activation(t->ctx, &d));
        t_get(t, y, d.y.data, 4 * n);
        for (i = 0; i < n; i++) {
            double v = (double)x[i], want = ref_act(d.act, v), e = fabs((double)y[i] - want);
            if (e <= act_bound(d.act, v, want)) continue;
            t_check(t, 0, __FILE__, __LINE__, "act %d of %.9g is %.9g, should be %.9g", act, v, (double)y[i], want);
            break;
        }
        d.dy = d.dx = amp_arr(t_put(t, one, 4 * n), AMP_F32);
        d.y.dtype = AMP_F32;
        CHECK_OK(amp_activation(t->ctx, &d));
        t_get(t, y, d.dx.data, 4 * n);
        for (i = 0; i < n; i++) {
            double v = (double)x[i], e = fabs((double)y[i] - ref_act_grad(d.act, v));
            if (e <= act_grad_bound(d.act) + (by_y ? 3e-7 : 0.0)) continue; /* y has an error of its own */
            t_check(t, 0, __FILE__, __LINE__, "act %d: derivative at %.9g is %.9g", act, v, (double)y[i]);
            break;
        }
    }
    CHECK(1);
}
/* What comes out of 0, Inf and NaN. */
static void activation_ends(t_run *t) {
    const float inf = ref_f32(0x7f800000u);
    const float x[6] = {0.0f, -0.0f, inf, -inf, ref_f32(0x7fc00000u), 3e38f};
    float y[6];
    int act, i;
    for (act = 1; act < AMP_ACT_COUNT; act++) {
        const int bounded = act == AMP_TANH || act == AMP_SIGMOID;
        amp_activation_desc d = AMP_ZERO;
        d.act = (amp_act)act;
        d.count = 6;
        d.x = d.y = amp_arr(t_put(t, x, sizeof x), AMP_F32); /* in place */
        CHECK_OK(amp_activation(t->ctx, &d));
        t_get(t, y, d.y.data, sizeof y);
        t_note(t, "act %d", act);
        for (i = 0; i < 2; i++)
            CHECK_EQ(y[i] == (act == AMP_SIGMOID ? 0.5f : 0.0f), 1);
        CHECK_EQ(y[2] == (bounded ? 1.0f : inf), 1);
        CHECK_EQ(y[3] == (act == AMP_TANH ? -1.0f : 0.0f), 1);
        CHECK(amp_is_nan(y[4]));
        CHECK_EQ(y[5] == (bounded ? 1.0f : x[5]), 1);
    }
    t_clear(t);
}
/* ReLU from 16 bits to the same has loops of its own: each pattern becomes what it becomes by way of F32. */
static void relu_of_halves(t_run *t) {
    enum { N = 65536 + 5 };
    static const amp_dtype types[2] = {AMP_F16, AMP_BF16};
    uint16_t *x = (uint16_t *)t_host(t, 2 * N), *y = (uint16_t *)t_host(t, 2 * N);
    int i, grad;
    for (i = 0; i < N; i++) {
        x[i] = (uint16_t)i;
        y[i] = (uint16_t)(i * 40503u + 7u); /* each pattern once, elsewhere */
    }
    for (i = 0; i < 2; i++)
        for (grad = 0; grad < 2; grad++) {
            amp_array in = amp_arr(t_put_at(t, x, 2 * N, 2), types[i]), saved = amp_arr(t_put(t, y, 2 * N), types[i]);
            amp_array wide = empty(t, AMP_F32, N), wide_saved = empty(t, AMP_F32, N);
            amp_array got = empty(t, types[i], N), want = empty(t, types[i], N);
            amp_activation_desc d = AMP_ZERO;
            t_note(t, "%s, %s", amp_dtype_name(types[i]), grad ? "backward" : "forward");
            CHECK_OK(amp_cast(t->ctx, wide, in, N, NULL));
            CHECK_OK(amp_cast(t->ctx, wide_saved, saved, N, NULL));
            d.act = AMP_RELU;
            d.count = N;
            d.x = in;
            d.y = grad ? saved : got;
            if (grad) d.dy = in;
            if (grad) d.dx = got;
            CHECK_OK(amp_activation(t->ctx, &d));
            d.x = wide;
            d.y = grad ? wide_saved : wide;
            if (grad) d.dy = d.dx = wide;
            CHECK_OK(amp_activation(t->ctx, &d));
            CHECK_OK(amp_cast(t->ctx, want, wide, N, NULL));
            CHECK_BITS(contents(t, got, N), contents(t, want, N), N, 2);
        }
    t_clear(t);
}
/* The same bits everywhere, any dtypes, aligned or not, in place or apart. */
static void blob_values(t_run *t, t_blob *b, amp_array a, size_t n) { /* NaN is NaN */
    const size_t size = amp_dtype_size(a.dtype);
    char *host = (char *)contents(t, a, n);
    size_t i;
    for (i = 0; i < n; i++)
        if (amp_is_nan(amp_load(host, a.dtype, i))) amp_store(host, a.dtype, i, ref_f32(0x7fc00000u));
    t_blob_add(b, host, n * size);
}
static void activation_scenario(t_run *t, t_blob *b, const void *arg) {
    static const amp_dtype types[5] = {AMP_F32, AMP_F16, AMP_BF16, AMP_F8E4M3, AMP_F8E5M2};
    size_t c, n, i;
    (void)arg;
    for (c = 0; c < 5 * (AMP_ACT_COUNT - 1); c++) {
        amp_dtype in = types[c % 5], out = types[t_below(t, 5)], saved = types[t_below(t, 5)];
        size_t si = amp_dtype_size(in), so = amp_dtype_size(out), ss = amp_dtype_size(saved), shift = t_below(t, 4);
        amp_activation_desc d = AMP_ZERO;
        char *x, *y;
        n = 1 + t_below(t, t_slow(t) ? 200 : 3000);
        x = (char *)t_host(t, n * si);
        y = (char *)t_host(t, n * ss);
        for (i = 0; i < n; i++) {
            amp_store(x, in, i, t_below(t, 9) ? 3.0f * t_real(t) : t_pattern(t));
            amp_store(y, saved, i, t_below(t, 9) ? t_real(t) : t_pattern(t));
        }
        t_note(t, "act %d, %d elements, %s to %s", (int)(1 + c / 5), (int)n, amp_dtype_name(in), amp_dtype_name(out));
        d.act = (amp_act)(1 + c / 5);
        d.count = n;
        d.x = amp_arr(t_put_at(t, x, n * si, shift * si), in);
        d.y = amp_arr(t_alloc_at(t, n * so, shift * so), out);
        CHECK_OK(amp_activation(t->ctx, &d));
        blob_values(t, b, d.y, n);
        d.dy = d.x;
        d.x = d.y = amp_arr(t_put_at(t, y, n * ss, shift * ss), saved);
        d.dx = c % 2 ? d.dy : amp_arr(t_alloc_at(t, n * so, 0), out);
        CHECK_OK(amp_activation(t->ctx, &d));
        blob_values(t, b, d.dx, n);
        t_clear(t);
    }
}
static void activation_same_everywhere(t_run *t) { t_same_everywhere(t, activation_scenario, NULL); }
static void activation_refused(t_run *t) {
    amp_array x = filled(t, AMP_F32, 8, 1.0f), y = filled(t, AMP_F16, 8, 1.0f);
    amp_activation_desc good = AMP_ZERO, d;
    good.act = AMP_SILU;
    good.count = 8;
    good.x = x;
    good.y = y;
    CHECK_OK(amp_activation(t->ctx, &good));
    CHECK_EQ(amp_activation(NULL, &good), AMP_ERR_INVALID_ARG);
    CHECK_STATUS(amp_activation(t->ctx, NULL), AMP_ERR_INVALID_ARG, "desc");
    d = good;
    d.act = AMP_ACT_NONE;
    CHECK_STATUS(amp_activation(t->ctx, &d), AMP_ERR_INVALID_ARG, "act 0");
    d.act = AMP_ACT_COUNT;
    CHECK_STATUS(amp_activation(t->ctx, &d), AMP_ERR_INVALID_ARG, "act 7");
    d = good;
    d.dy = x;
    CHECK_STATUS(amp_activation(t->ctx, &d), AMP_ERR_INVALID_ARG, "dx dy");
    d.dx = filled(t, AMP_F32, 8, 1.0f);
    d.x.data = NULL;
    CHECK_STATUS(amp_activation(t->ctx, &d), AMP_ERR_INVALID_ARG, "desc.x");
    d.act = AMP_TANH; /* which reads y */
    CHECK_OK(amp_activation(t->ctx, &d));
    d.y.data = NULL;
    CHECK_STATUS(amp_activation(t->ctx, &d), AMP_ERR_INVALID_ARG, "desc.y");
    d = good;
    d.y.data = (char *)x.data + 4;
    CHECK_STATUS(amp_activation(t->ctx, &d), AMP_ERR_INVALID_ARG, "desc.y desc.x overlap");
    d = good;
    d.x.count = 7;
    CHECK_STATUS(amp_activation(t->ctx, &d), AMP_ERR_INVALID_ARG, "desc.x.count 7 8");
    t_clear(t);
}
/* In a layer: what the verb makes of the product before it, and of dy; in the defined order to the bit. */
static void activation_in_layers(t_run *t) {
    static const amp_dtype types[3] = {AMP_F32, AMP_F16, AMP_BF16};
    int c;
    for (c = 0; c < 3 * (AMP_ACT_COUNT - 1); c++) {
        const size_t rows = 9, in = 20, out = 13;
        amp_dtype type = types[c % 3];
        amp_linear_desc l = AMP_ZERO, plain;
        amp_activation_desc d = AMP_ZERO;
        t_note(t, "act %d, %s", 1 + c / 3, amp_dtype_name(type));
        l.rows = rows;
        l.in = in;
        l.out = out;
        l.flags = AMP_GEMM_ORDERED;
        l.x = filled(t, type, rows * in, 1.0f);
        l.w = filled(t, type, in * out, 0.4f);
        plain = l;
        plain.y = empty(t, AMP_F32, rows * out);
        CHECK_OK(amp_linear_forward(t->ctx, &plain));
        l.act = d.act = (amp_act)(1 + c / 3);
        l.y = empty(t, type, rows * out);
        l.aux = empty(t, type, rows * out);
        l.dy = filled(t, type, rows * out, 1.0f);
        l.dw = empty(t, AMP_F32, in * out);
        CHECK_OK(amp_linear_forward(t->ctx, &l));
        d.count = rows * out;
        d.x = plain.y;
        d.y = empty(t, type, rows * out);
        CHECK_OK(amp_activation(t->ctx, &d));
        same_array(t, "y", l.y, d.y, rows * out);
        d.x = l.aux;
        d.dy = d.dx = copy_of(t, l.dy, rows * out);
        CHECK_OK(amp_linear_backward(t->ctx, &l));
        CHECK_OK(amp_activation(t->ctx, &d));
        same_array(t, "dy", l.dy, d.dx, rows * out);
        t_clear(t);
    }
}

/* ---- a bias per row, and batches that add up: small whole numbers, so every sum is exact ---- */

typedef struct grid_case {
    amp_gemm_desc g;
    float *a, *b, *c, *bias; /* as the host has them; c is what d begins with */
    float *d, *sums;         /* what should come out */
} grid_case;
static amp_array whole(t_run *t, amp_dtype type, size_t n, float **host) { /* -1, 0, 1 */
    void *stored = t_host(t, n * amp_dtype_size(type));
    size_t i;
    *host = (float *)t_host(t, 4 * n);
    for (i = 0; i < n; i++) {
        (*host)[i] = (float)t_below(t, 3) - 1.0f;
        amp_store(stored, type, i, (*host)[i]);
    }
    return amp_arrn(t_put(t, stored, n * amp_dtype_size(type)), type, n);
}
static void grid_expected(t_run *t, grid_case *x) {
    const amp_gemm_desc *g = &x->g;
    const size_t outputs = g->sum_batches ? 1 : g->batch;
    const float beta = g->beta.given ? g->beta.value : 0.0f;
    size_t z, i, j, k;
    x->d = (float *)t_host(t, 4 * outputs * g->m * g->n);
    x->sums = (float *)t_host(t, 4 * (g->m + g->n));
    for (z = 0; z < g->batch; z++)
        for (i = 0; i < g->m; i++)
            for (j = 0; j < g->n; j++) {
                float *d = x->d + ((g->sum_batches ? 0 : z) * g->m + i) * g->n + j;
                const float *a = x->a + z * g->m * g->k, *b = x->b + z * g->k * g->n;
                for (k = 0; k < g->k; k++)
                    *d += (g->trans_a ? a[k * g->m + i] : a[i * g->k + k]) *
                        (g->trans_b ? b[j * g->k + k] : b[k * g->n + j]);
            }
    for (i = 0; i < outputs * g->m; i++)
        for (j = 0; j < g->n; j++) {
            float *d = x->d + i * g->n + j;
            *d += beta * x->c[i * g->n + j] + (g->bias.data ? x->bias[g->bias_per_row ? i % g->m : j] : 0.0f);
            if (g->act == AMP_RELU && *d < 0.0f) *d = 0.0f;
            x->sums[g->bias_per_row ? i % g->m : j] += *d;
        }
}
static void rows_and_batches(t_run *t) {
    static const amp_dtype types[3] = {AMP_F32, AMP_F16, AMP_BF16};
    int round, rounds = t_rounds(t, 120, 3000, 24, 120);
    for (round = 0; round < rounds; round++) {
        const uint32_t form = (uint32_t)round % 8u;
        grid_case x;
        amp_gemm_desc *g = &x.g;
        size_t outputs, size, i;
        amp_dtype type = types[t_below(t, 3)], to = t_below(t, 2) ? AMP_F32 : type;
        char text[300];
        void *got;
        memset(&x, 0, sizeof x);
        g->m = 1 + t_below(t, 40);
        g->n = 1 + t_below(t, 70);
        g->k = t_below(t, 4) ? 1 + t_below(t, 20) : to == AMP_F32 ? 200 + t_below(t, 200) : 0;
        g->batch = 1 + t_below(t, 4);
        g->bias_per_row = form & 1u;
        g->sum_batches = form >> 1 & 1u;
        g->flags = form & 4u ? AMP_GEMM_ORDERED : 0;
        g->trans_a = t_below(t, 2);
        g->trans_b = t_below(t, 2);
        g->act = t_below(t, 2) ? AMP_RELU : AMP_ACT_NONE;
        outputs = g->sum_batches ? 1 : g->batch;
        g->a = whole(t, type, g->batch * g->m * g->k, &x.a);
        g->b = whole(t, type, g->batch * g->k * g->n, &x.b);
        g->d = whole(t, to, outputs * g->m * g->n, &x.c);
        if (t_below(t, 4)) g->bias = whole(t, types[t_below(t, 3)], g->bias_per_row ? g->m : g->n, &x.bias);
        if (t_below(t, 2)) g->beta = amp_opt((float)t_below(t, 3));
        if (g->beta.given && t_below(t, 2)) {
            g->c = g->d;
            g->d = empty(t, to, outputs * g->m * g->n);
        }
        if (outputs == 1 && t_below(t, 2)) g->dbias = empty(t, AMP_F32, g->bias_per_row ? g->m : g->n);
        t_note(t, "round %d: %d x %d x %d, batch %d, form %d, %s to %s", round, (int)g->m, (int)g->n, (int)g->k,
            (int)g->batch, (int)form, amp_dtype_name(type), amp_dtype_name(to));
        grid_expected(t, &x);
        CHECK_OK(amp_gemm_explain(t->ctx, text, sizeof text, g));
        CHECK_OK(amp_gemm_tune(t->ctx, g));
        CHECK_OK(amp_gemm(t->ctx, g));
        size = amp_dtype_size(to);
        got = contents(t, g->d, outputs * g->m * g->n);
        for (i = 0; i < outputs * g->m * g->n; i++)
            if (amp_load(got, to, i) != x.d[i]) break;
        t_check(t, i == outputs * g->m * g->n, __FILE__, __LINE__, "d[%d] is wrong (%d bytes each): %s", (int)i,
            (int)size, text);
        if (g->dbias.data) {
            got = contents(t, g->dbias, g->bias_per_row ? g->m : g->n);
            CHECK_BITS(got, x.sums, g->bias_per_row ? g->m : g->n, 4);
        }
        t_clear(t);
    }
}
/* Sums of rows or of columns beside each act, forward and back, where cuBLASLt may make them or not: as on the CPU. */
typedef struct summed {
    amp_gemm_desc g;
    void *a, *b, *bias, *aux; /* of one dtype, in host memory */
    float *d, *sums;
} summed;
static void sums_made(t_run *t, const summed *x, int at) { /* at 1: into the second half of what is kept */
    const amp_dtype type = x->g.d.dtype;
    const size_t size = amp_dtype_size(type), n = x->g.m * x->g.n, count = x->g.bias_per_row ? x->g.m : x->g.n;
    amp_gemm_desc g = x->g;
    const void *d, *sums;
    size_t i;
    g.a = amp_arr(t_put(t, x->a, g.m * g.k * size), type);
    g.b = amp_arr(t_put(t, x->b, g.k * g.n * size), type);
    g.d = empty(t, type, n);
    g.aux = g.backward ? amp_arr(t_put(t, x->aux, n * size), type) : empty(t, type, n);
    if (x->bias) g.bias = amp_arr(t_put(t, x->bias, count * size), type);
    g.dbias = empty(t, type, count); /* with a guard behind it */
    CHECK_OK(amp_gemm(t->ctx, &g));
    d = contents(t, g.d, n);
    sums = contents(t, g.dbias, count);
    for (i = 0; i < n; i++)
        x->d[(size_t)at * n + i] = amp_load(d, type, i);
    for (i = 0; i < count; i++)
        x->sums[(size_t)at * count + i] = amp_load(sums, type, i);
}
static void *real_numbers(t_run *t, amp_dtype type, size_t n, float size) {
    void *host = t_host(t, n * amp_dtype_size(type));
    t_fill_real(t, host, type, n, size);
    return host;
}
/* Two roundings of nearly the same number may be a step of its format apart, which grows with the number: up to 16, and
   in proportion beyond. */
static double near_of(double near, double size) { return size > 16.0 ? near * size / 16.0 : near; }
static void sums_beside_acts(t_run *t) {
    static const amp_dtype types[3] = {AMP_F16, AMP_BF16, AMP_F32};
    int c;
    for (c = 0; c < 24 * AMP_ACT_COUNT; c++) {
        const amp_dtype type = types[c / 8 % 3];
        const double near = type == AMP_F32 ? 1e-4 : type == AMP_F16 ? 0.03 : 0.25;
        double most = 0.0;
        size_t i, n, count;
        summed x;
        memset(&x, 0, sizeof x);
        x.g.m = c & 1 ? 12 : 24;
        x.g.n = c & 1 ? 24 : 16;
        x.g.k = 20;
        x.g.bias_per_row = (uint32_t)c >> 1 & 1u;
        x.g.backward = (uint32_t)c >> 2 & 1u;
        x.g.act = (amp_act)(c / 24);
        x.g.d.dtype = type;
        n = x.g.m * x.g.n;
        count = x.g.bias_per_row ? x.g.m : x.g.n;
        x.a = real_numbers(t, type, x.g.m * x.g.k, 0.5f);
        x.b = real_numbers(t, type, x.g.k * x.g.n, 0.5f);
        x.aux = real_numbers(t, type, n, 1.0f);
        if (!x.g.backward && c & 1) x.bias = real_numbers(t, type, count, 1.0f);
        x.d = (float *)t_host(t, 8 * n);
        x.sums = (float *)t_host(t, 8 * count);
        t_note(t, "%s, act %d, backward %d, %s", amp_dtype_name(type), (int)x.g.act, (int)x.g.backward,
            x.g.bias_per_row ? "rows" : "columns");
        sums_made(t, &x, 0);
        t_reference(t, 1);
        sums_made(t, &x, 1);
        t_reference(t, 0);
        for (i = 0; i < n; i++) {
            const double size = fabs((double)x.d[i]);
            if (!CHECK_NEAR((double)x.d[i], (double)x.d[n + i], near_of(near, size))) break;
            if (size > most) most = size;
        }
        for (i = 0; i < count; i++) {
            const double size = fabs((double)x.sums[i]);
            const double allowed = near_of(4.0 * near, size > most ? size : most);
            if (!CHECK_NEAR((double)x.sums[i], (double)x.sums[count + i], allowed)) break;
        }
        t_clear(t);
    }
}
/* A 16-bit d is rounded once, and in the defined order the bits are the same everywhere. */
static void batches_scenario(t_run *t, t_blob *b, const void *arg) {
    int c;
    (void)arg;
    for (c = 0; c < 6; c++) {
        amp_dtype type = c % 2 ? AMP_BF16 : AMP_F16;
        amp_gemm_desc g = AMP_ZERO, wide;
        g.m = 5 + (size_t)c * 9;
        g.n = 33;
        g.k = c < 3 ? 20 : 300;
        g.batch = 3;
        g.sum_batches = 1;
        g.bias_per_row = (uint32_t)(c & 1);
        g.act = (amp_act)(c % AMP_ACT_COUNT);
        g.flags = AMP_GEMM_ORDERED;
        g.a = filled(t, type, g.batch * g.m * g.k, 1.0f);
        g.b = filled(t, type, g.batch * g.k * g.n, 0.3f);
        g.bias = filled(t, AMP_F32, g.m > g.n ? g.m : g.n, 1.0f);
        wide = g;
        g.d = empty(t, type, g.m * g.n);
        wide.d = empty(t, AMP_F32, g.m * g.n);
        CHECK_OK(amp_gemm(t->ctx, &g));
        CHECK_OK(amp_gemm(t->ctx, &wide));
        blob_values(t, b, wide.d, g.m * g.n);
        CHECK_OK(amp_cast(t->ctx, amp_arr(g.a.data, type), wide.d, g.m * g.n, NULL)); /* a is done with */
        same_array(t, "16 bits", g.d, g.a, g.m * g.n);
        t_clear(t);
    }
}
static void batches_same_everywhere(t_run *t) { t_same_everywhere(t, batches_scenario, NULL); }
static void rows_and_batches_refused(t_run *t) {
    amp_gemm_desc g = AMP_ZERO;
    g.m = 2;
    g.n = 3;
    g.k = 4;
    g.batch = 2;
    g.a = filled(t, AMP_F32, 16, 1.0f);
    g.b = filled(t, AMP_F32, 24, 1.0f);
    g.d = filled(t, AMP_F32, 12, 1.0f);
    g.bias = filled(t, AMP_F32, 3, 1.0f);
    g.bias.count = 2;
    CHECK_STATUS(amp_gemm(t->ctx, &g), AMP_ERR_INVALID_ARG, "desc.bias.count 2 3");
    g.bias_per_row = 1;
    CHECK_OK(amp_gemm(t->ctx, &g));
    g.dbias = filled(t, AMP_F32, 2, 1.0f);
    CHECK_STATUS(amp_gemm(t->ctx, &g), AMP_ERR_INVALID_ARG, "desc.dbias batch");
    g.sum_batches = 1;
    CHECK_OK(amp_gemm(t->ctx, &g));
    g.dbias.count = 1;
    CHECK_STATUS(amp_gemm(t->ctx, &g), AMP_ERR_INVALID_ARG, "desc.dbias.count 1 2");
    g.dbias.data = NULL;
    g.d.count = 6; /* one for all batches */
    CHECK_OK(amp_gemm(t->ctx, &g));
    g.a.count = 15;
    CHECK_STATUS(amp_gemm(t->ctx, &g), AMP_ERR_INVALID_ARG, "desc.a.count 15 16");
    t_clear(t);
}

/* ---- masks of ReLU: what backward does with y, from a bit per element ---- */

static size_t pitch_of(size_t cols) { return (cols + 7) / 8; }
static amp_array mask_new(t_run *t, size_t rows, size_t cols) {
    return amp_arrn(t_alloc(t, rows * pitch_of(cols)), AMP_MASK, rows * pitch_of(cols) * 8);
}
/* The bits of y[batches * rows, cols], whose rows are ld and whose batches `stride` elements apart, with zeros behind
   the end of each row. */
static void check_mask(t_run *t, amp_array mask, amp_array y, const amp_gemm_desc *g, size_t outputs) {
    const size_t ld = g->ldd ? g->ldd : g->n, stride = g->stride_d ? g->stride_d : g->m * ld;
    const size_t bytes = outputs * g->m * pitch_of(g->n), all = (outputs - 1) * stride + (g->m - 1) * ld + g->n;
    uint8_t *got = (uint8_t *)t_host(t, bytes), *want = (uint8_t *)t_host(t, bytes);
    const void *values = contents(t, y, all);
    size_t z, i, j;
    t_get(t, got, mask.data, bytes);
    for (z = 0; z < outputs; z++)
        for (i = 0; i < g->m; i++)
            for (j = 0; j < g->n; j++) {
                const float v = amp_load(values, y.dtype, z * stride + i * ld + j);
                if (!(v <= 0.0f)) want[(z * g->m + i) * pitch_of(g->n) + j / 8] |= (uint8_t)(1u << j % 8);
            }
    t_check_bits(t, got, want, bytes, 1, "mask", __FILE__, __LINE__);
}
typedef struct masked {
    amp_dtype type;
    size_t rows, in, out;
    uint32_t flags, accumulate, chain, scope;
} masked;
static const masked maskeds[] = {
    {AMP_F16, 21, 35, 32, 0, 0, 0, 0},
    {AMP_F16, 40, 16, 19, 0, 1, 1, 0},
    {AMP_BF16, 3, 70, 264, 0, 0, 1, 0},
    {AMP_BF16, 33, 24, 9, AMP_GEMM_ORDERED, 0, 0, 0},
    {AMP_F32, 18, 20, 16, 0, 1, 0, 0},
    {AMP_F32, 65, 9, 11, AMP_GEMM_ORDERED, 0, 1, 0},
    {AMP_F32, 12, 40, 24, 0, 0, 0, 1},
};
/* With Inf and NaN, one of them signalling, here and there: a mask lets them through, or not, as y does. */
static amp_array mask_gradient(t_run *t, amp_dtype type, size_t n) {
    static const uint32_t odd[3][4] = {{0x7f800001u, 0xffc00000u, 0x7f800000u, 0xff800000u},
        {0x7c01u, 0xfe00u, 0x7c00u, 0xfc00u}, {0x7f81u, 0xffc0u, 0x7f80u, 0xff80u}};
    const size_t size = amp_dtype_size(type);
    char *host = (char *)t_host(t, n * size);
    size_t k;
    t_fill_real(t, host, type, n, 1.0f);
    for (k = 0; k < 12; k++) {
        const uint32_t bits = odd[type - AMP_F32][k % 4];
        const uint16_t half = (uint16_t)bits;
        memcpy(host + (k * 11 + 3) % n * size, size == 2 ? (const void *)&half : (const void *)&bits, size);
    }
    return amp_arr(t_put(t, host, n * size), type);
}
/* Weights of 0 leave the bias in the first columns: what is 0, what becomes 0 in F16, and what is no number. */
static void mask_layer(t_run *t, amp_linear_desc *l, const masked *m) {
    static const uint32_t odd[9] = {
        0, 0x80000000u, 0x32800000u, 0x33800000u, 0x7fc00000u, 0xffc00000u, 0x7f800000u, 0xff800000u, 0x80000001u};
    float *bias = (float *)t_host(t, m->out * sizeof *bias);
    void *w = t_host(t, m->out * m->in * amp_dtype_size(m->type));
    memset(l, 0, sizeof *l);
    l->rows = m->rows;
    l->in = m->in;
    l->out = m->out;
    l->act = AMP_RELU;
    l->flags = m->flags;
    l->accumulate = m->accumulate;
    t_fill_real(t, bias, AMP_F32, m->out, 0.2f);
    t_fill_real(t, w, m->type, m->out * m->in, 0.2f);
    memcpy(bias, odd, sizeof odd);
    memset(w, 0, 9 * m->in * amp_dtype_size(m->type));
    l->x = filled(t, m->type, m->rows * m->in, 1.0f);
    l->w = amp_arr(t_put(t, w, m->out * m->in * amp_dtype_size(m->type)), m->type);
    l->bias = amp_arr(t_put(t, bias, m->out * sizeof *bias), AMP_F32);
    l->dy = mask_gradient(t, m->scope ? AMP_F16 : m->type, m->rows * m->out);
    l->dx = empty(t, m->type, m->rows * m->in);
    l->dw = filled(t, m->type, m->in * m->out, 1.0f);
    l->dbias = filled(t, AMP_F32, m->out, 1.0f);
    l->y = empty(t, m->scope ? AMP_F16 : m->type, m->rows * m->out);
}
static void mask_run(t_run *t, amp_linear_desc *l, amp_linear_desc *before, const masked *m, amp_precision *made) {
    if (m->chain) {
        l->before = before;
        before->after = l;
    }
    if (m->scope) l->record = made;
    if (m->scope) CHECK_OK(amp_autocast_begin(t->ctx, NULL));
    if (m->flags) CHECK_OK(amp_linear_tune(t->ctx, l)); /* else each might choose another algorithm */
    CHECK_OK(amp_linear_forward(t->ctx, l));
    if (l->aux.data) l->y.data = NULL; /* backward does without */
    CHECK_OK(amp_linear_backward(t->ctx, l));
    if (m->scope) CHECK_OK(amp_autocast_end(t->ctx));
    if (m->scope) CHECK_OK(amp_autocast_release(t->ctx));
}
static void mask_in_layers(t_run *t) {
    size_t i;
    for (i = 0; i < sizeof maskeds / sizeof *maskeds; i++) {
        const masked *m = &maskeds[i];
        const size_t ny = m->rows * m->out, nx = m->rows * m->in, nw = m->in * m->out;
        amp_linear_desc by_y, by_mask, before = AMP_ZERO, before_mask = AMP_ZERO;
        amp_precision made[2] = {{0, AMP_AUTO, AMP_AUTO, AMP_AUTO}, {0, AMP_AUTO, AMP_AUTO, AMP_AUTO}};
        amp_gemm_desc shape = AMP_ZERO;
        amp_array y;
        t_note(t, "layer %d", (int)i);
        mask_layer(t, &by_y, m);
        by_mask = by_y;
        by_mask.dy = copy_of(t, by_y.dy, ny);
        by_mask.dw = copy_of(t, by_y.dw, nw);
        by_mask.dbias = copy_of(t, by_y.dbias, m->out);
        by_mask.dx = empty(t, m->type, nx);
        by_mask.y = y = empty(t, by_y.y.dtype, ny);
        by_mask.aux = mask_new(t, m->rows, m->out);
        before.rows = m->rows; /* its y is x */
        before.in = 1;
        before.out = m->in;
        before.act = AMP_RELU;
        before.y = by_y.x;
        before.dbias = filled(t, AMP_F32, m->in, 1.0f);
        before_mask = before;
        before_mask.y.data = NULL;
        before_mask.aux = mask_new(t, m->rows, m->in);
        before_mask.dbias = copy_of(t, before.dbias, m->in);
        shape.m = m->rows;
        shape.n = m->in;
        if (m->chain) { /* a mask of x, made by hand */
            const void *x = contents(t, by_y.x, nx);
            uint8_t *bits = (uint8_t *)t_host(t, m->rows * pitch_of(m->in));
            size_t r, c;
            for (r = 0; r < m->rows; r++)
                for (c = 0; c < m->in; c++)
                    if (amp_load(x, m->type, r * m->in + c) > 0)
                        bits[r * pitch_of(m->in) + c / 8] |= (uint8_t)(1u << c % 8);
            t_set(t, before_mask.aux.data, bits, m->rows * pitch_of(m->in));
        }
        mask_run(t, &by_y, &before, m, &made[0]);
        mask_run(t, &by_mask, &before_mask, m, &made[1]);
        shape.n = m->out;
        check_mask(t, by_mask.aux, y, &shape, 1);
        same_array(t, "y", y, by_y.y, ny);
        same_array(t, "dy", by_mask.dy, by_y.dy, ny);
        same_array(t, "dx", by_mask.dx, by_y.dx, nx);
        same_array(t, "dw", by_mask.dw, by_y.dw, nw);
        same_array(t, "dbias", by_mask.dbias, by_y.dbias, m->out);
        if (m->chain) same_array(t, "before.dbias", before_mask.dbias, before.dbias, m->in);
        t_clear(t);
    }
}
/* One product, forward with a mask, and backward through it as through d; g->d is then backward's. */
static void mask_product(t_run *t, amp_gemm_desc *g, amp_dtype to) {
    const size_t outputs = g->sum_batches ? 1 : g->batch ? g->batch : 1;
    const size_t ld = g->ldd ? g->ldd : g->n, all = ((outputs - 1) * g->m + g->m - 1) * ld + g->n;
    amp_gemm_desc back;
    amp_array by_y, by_mask;
    g->act = AMP_RELU;
    g->d = empty(t, to, all);
    g->aux = mask_new(t, outputs * g->m, g->n);
    CHECK_OK(amp_gemm_tune(t->ctx, g));
    CHECK_OK(amp_gemm(t->ctx, g));
    check_mask(t, g->aux, g->d, g, outputs);
    back = *g;
    back.backward = 1;
    back.bias.data = NULL;
    back.alpha = amp_opt(-0.5f); /* other numbers than forward's */
    back.d = by_mask = empty(t, to, all);
    CHECK_OK(amp_gemm(t->ctx, &back));
    back.d = by_y = empty(t, to, all);
    back.aux = g->d;
    CHECK_OK(amp_gemm(t->ctx, &back));
    same_array(t, "backward", by_mask, by_y, all);
    g->d = by_mask;
}
static void mask_of_products(t_run *t) {
    static const amp_dtype types[3] = {AMP_F16, AMP_BF16, AMP_F32};
    int round, rounds = t_rounds(t, 80, 2000, 20, 80);
    for (round = 0; round < rounds; round++) {
        const amp_dtype type = types[t_below(t, 3)];
        amp_dtype to = t_below(t, 3) ? type : AMP_F32;
        amp_gemm_desc g = AMP_ZERO;
        g.flags = t_below(t, 2) ? AMP_GEMM_ORDERED : 0;
        if (g.flags && t_below(t, 4) == 0) to = t_below(t, 2) ? AMP_F8E4M3 : AMP_F8E5M2;
        g.m = 1 + t_below(t, t_below(t, 2) ? 4 : 60);
        g.n = t_below(t, 8) ? 1 + t_below(t, 70) : 1;
        if (g.n == 1) g.flags = AMP_GEMM_ORDERED; /* on the CPU a column is a row without a mask */
        g.k = 1 + t_below(t, t_below(t, 4) ? 20 : 300);
        if (t_below(t, 3) == 0) g.batch = 2 + t_below(t, 3);
        if (g.batch && to == AMP_F32) g.sum_batches = t_below(t, 2);
        if (t_below(t, 3) == 0) g.ldd = g.n + t_below(t, 9);
        g.trans_b = t_below(t, 2);
        g.a = filled(t, type, (g.batch + 1) * g.m * g.k, 1.0f);
        g.b = filled(t, type, (g.batch + 1) * g.k * g.n, 0.3f);
        if (t_below(t, 2)) g.bias = filled(t, AMP_F32, g.n, 0.5f);
        t_note(t, "round %d: %d x %d x %d, ldd %d, batch %d, flags %d, %s to %s", round, (int)g.m, (int)g.n, (int)g.k,
            (int)g.ldd, (int)g.batch, (int)g.flags, amp_dtype_name(type), amp_dtype_name(to));
        mask_product(t, &g, to);
        t_clear(t);
    }
}
static void mask_scenario(t_run *t, t_blob *b, const void *arg) {
    static const size_t sizes[5][3] = {{1, 300, 9}, {5, 17, 40}, {70, 64, 33}, {33, 1, 12}, {9, 530, 270}};
    int c;
    (void)arg;
    for (c = 0; c < 5; c++) {
        const amp_dtype type = c % 3 == 0 ? AMP_F16 : c % 3 == 1 ? AMP_F32 : AMP_BF16;
        amp_gemm_desc g = AMP_ZERO;
        g.m = sizes[c][0];
        g.n = sizes[c][1];
        g.k = sizes[c][2];
        g.flags = AMP_GEMM_ORDERED;
        g.a = filled(t, type, g.m * g.k, 1.0f);
        g.b = filled(t, type, g.k * g.n, 0.3f);
        mask_product(t, &g, type);
        t_blob_dev(t, b, g.aux.data, g.m * pitch_of(g.n));
        blob_values(t, b, g.d, g.m * g.n);
        t_clear(t);
    }
}
static void mask_same_everywhere(t_run *t) { t_same_everywhere(t, mask_scenario, NULL); }
/* GELU's and SiLU's aux in FP8: the value before, saturated; backward is that of what is kept there. */
static void aux_in_f8(t_run *t) {
    static const amp_act acts[3] = {AMP_GELU, AMP_GELU_ERF, AMP_SILU};
    static const float far[8] = {448.0f, -500.0f, 1e6f, -1e30f, INFINITY, -INFINITY, 464.0f, 1e-3f};
    int c;
    for (c = 0; c < 12; c++) {
        const amp_dtype type = c % 3 == 0 ? AMP_F16 : c % 3 == 1 ? AMP_F32 : AMP_BF16;
        const amp_dtype f8 = c % 2 ? AMP_F8E4M3 : AMP_F8E5M2;
        const size_t rows = 9, in = 24, out = 37, ny = rows * out;
        const int exact = type == AMP_F32 || c >= 6; /* else cuBLASLt rounds before */
        amp_linear_desc l = AMP_ZERO;
        amp_activation_desc d = AMP_ZERO;
        uint8_t *kept, *want = (uint8_t *)t_host(t, ny);
        float *bias = (float *)t_host(t, out * sizeof *bias);
        void *w = t_host(t, out * in * amp_dtype_size(type));
        const float *before;
        size_t i;
        t_note(t, "case %d: %s beside %s", c, amp_dtype_name(f8), amp_dtype_name(type));
        t_fill_real(t, bias, AMP_F32, out, 1.0f);
        t_fill_real(t, w, type, out * in, 0.3f);
        memcpy(bias, far, sizeof far);
        memset(w, 0, 8 * in * amp_dtype_size(type));
        l.rows = rows;
        l.in = in;
        l.out = out;
        l.act = acts[c / 2 % 3];
        l.flags = c >= 6 ? AMP_GEMM_ORDERED : 0;
        l.x = filled(t, type, rows * in, 1.0f);
        l.w = amp_arr(t_put(t, w, out * in * amp_dtype_size(type)), type);
        l.bias = amp_arr(t_put(t, bias, out * sizeof *bias), AMP_F32);
        l.y = empty(t, type, ny);
        l.aux = empty(t, f8, ny);
        CHECK_OK(amp_linear_forward(t->ctx, &l));
        kept = (uint8_t *)contents(t, l.aux, ny);
        l.y = l.aux = empty(t, AMP_F32, ny); /* the same product, unrounded */
        l.act = AMP_ACT_NONE;
        l.aux.data = NULL;
        CHECK_OK(amp_linear_forward(t->ctx, &l));
        before = (const float *)contents(t, l.y, ny);
        for (i = 0; i < ny; i++)
            want[i] =
                f8 == AMP_F8E4M3 ? amp_f8e4m3_from_f32_sat(before[i]).bits : amp_f8e5m2_from_f32_sat(before[i]).bits;
        for (i = 0; i < ny && !exact; i++) { /* of a product that was rounded: half a step of it, and of FP8 */
            const float v = amp_load(kept, f8, i), limit = f8 == AMP_F8E4M3 ? 448.0f : 57344.0f;
            const float x = before[i] > limit ? limit : before[i] < -limit ? -limit : before[i];
            if (fabsf(v - x) <= 0.13f * fabsf(x) + 0.05f) want[i] = kept[i];
        }
        CHECK_BITS(kept, want, ny, 1);
        CHECK(f8 != AMP_F8E4M3 || (kept[0] == 0x7e && kept[1] == 0xfe && kept[4] == 0x7e && kept[5] == 0xfe));
        l.act = acts[c / 2 % 3];
        l.aux = amp_arr(t_put(t, kept, ny), f8);
        l.y.data = NULL;
        l.dy = filled(t, type, ny, 1.0f);
        l.dbias = empty(t, AMP_F32, out);
        d.act = l.act;
        d.count = ny;
        d.x = l.aux;
        d.dy = l.dy;
        d.dx = empty(t, type, ny);
        CHECK_OK(amp_activation(t->ctx, &d));
        CHECK_OK(amp_linear_backward(t->ctx, &l));
        same_array(t, "dy", l.dy, d.dx, ny);
        t_clear(t);
    }
}
static void mask_refused(t_run *t) {
    amp_linear_desc l = AMP_ZERO;
    amp_gemm_desc g = AMP_ZERO;
    l.rows = 4;
    l.in = 3;
    l.out = 9; /* two bytes in a row */
    l.x = filled(t, AMP_F32, 12, 1.0f);
    l.w = filled(t, AMP_F32, 27, 1.0f);
    l.y = empty(t, AMP_F32, 36);
    l.dy = filled(t, AMP_F32, 36, 1.0f);
    l.dw = empty(t, AMP_F32, 27);
    l.aux = mask_new(t, 4, 9);
    CHECK(amp_dtype_size(AMP_MASK) == 0 && strcmp(amp_dtype_name(AMP_MASK), "mask") == 0);
    CHECK_STATUS(amp_cast(t->ctx, l.aux, l.x, 8, NULL), AMP_ERR_INVALID_ARG, "dst.dtype mask");
    l.act = AMP_GELU;
    CHECK_STATUS(amp_linear_forward(t->ctx, &l), AMP_ERR_INVALID_ARG, "aux mask AMP_RELU");
    CHECK_STATUS(amp_linear_backward(t->ctx, &l), AMP_ERR_INVALID_ARG, "aux mask AMP_RELU");
    l.act = AMP_RELU;
    l.aux.count = 63;
    CHECK_STATUS(amp_linear_forward(t->ctx, &l), AMP_ERR_INVALID_ARG, "aux.count 63 64 bits");
    CHECK_STATUS(amp_linear_backward(t->ctx, &l), AMP_ERR_INVALID_ARG, "aux.count 63 64 bits");
    l.aux.count = 64;
    CHECK_OK(amp_linear_forward(t->ctx, &l));
    l.aux.data = (char *)l.y.data + 143; /* its last byte is y's */
    CHECK_STATUS(amp_linear_forward(t->ctx, &l), AMP_ERR_INVALID_ARG, "y|aux overlaps");
    l.y.data = NULL;
    l.aux.data = (char *)l.dy.data - 7;
    CHECK_STATUS(amp_linear_backward(t->ctx, &l), AMP_ERR_INVALID_ARG, "dy|aux overlaps");
    g.m = g.k = 2;
    g.n = 17;
    g.act = AMP_RELU;
    g.a = filled(t, AMP_F32, 4, 1.0f);
    g.b = filled(t, AMP_F32, 34, 1.0f);
    g.d = empty(t, AMP_F32, 34);
    g.aux = mask_new(t, 2, 17);
    g.aux.count = 47;
    CHECK_STATUS(amp_gemm(t->ctx, &g), AMP_ERR_INVALID_ARG, "desc.aux.count 47 48");
    g.aux.count = 0;
    CHECK_OK(amp_gemm(t->ctx, &g));
    g.act = AMP_TANH;
    CHECK_STATUS(amp_gemm(t->ctx, &g), AMP_ERR_INVALID_ARG, "desc.aux mask AMP_RELU");
    g.act = AMP_RELU;
    g.d.dtype = AMP_MASK;
    CHECK_STATUS(amp_gemm(t->ctx, &g), AMP_ERR_INVALID_ARG, "desc.d.dtype mask");
    t_clear(t);
}

const t_test t_suite_layers[] = {{"layers.in_out", stored_in_out, T_ALL},
    {"layers.in_out_fp8", stored_fp8_by_cublas, T_ALL}, {"layers.no_record", no_record, T_ALL},
    {"layers.cache_ends_with_backward", cache_ends_with_backward, T_ALL},
    {"layers.cache_ends_with_the_scale", cache_ends_with_the_scale, T_ALL}, {"sums.bits", column_sums, T_ALL},
    {"sums.by_rule", column_sums_by_rule, T_ALL}, {"sums.f8", column_sums_of_f8, T_ALL},
    {"sums.refused", column_sums_refused, T_ALL}, {"act.values", activation_values, T_ALL},
    {"act.ends", activation_ends, T_ALL}, {"act.relu_of_halves", relu_of_halves, T_CPU},
    {"act.same_everywhere", activation_same_everywhere, T_ALL}, {"act.refused", activation_refused, T_ALL},
    {"act.in_layers", activation_in_layers, T_ALL}, {"gemm.rows_and_batches", rows_and_batches, T_ALL},
    {"gemm.sums_beside_acts", sums_beside_acts, T_ALL},
    {"gemm.batches_same_everywhere", batches_same_everywhere, T_ALL},
    {"gemm.rows_and_batches_refused", rows_and_batches_refused, T_ALL}, {"mask.in_layers", mask_in_layers, T_ALL},
    {"mask.products", mask_of_products, T_ALL}, {"mask.same_everywhere", mask_same_everywhere, T_ALL},
    {"mask.refused", mask_refused, T_ALL}, {"act.aux_in_f8", aux_in_f8, T_ALL}, {NULL, NULL, 0}};
