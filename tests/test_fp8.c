/* test_fp8.c - FP8 with a scale per tensor: scales, amaxes and casts against a reference written from
   TransformerEngine's definition, layers, scopes, state files, refusals.

   Guards: >>fp8, >>front-fp8. The reference keeps the history as TransformerEngine does: entry 0 is the running amax.
 */
#include "set.h"

enum { MOST_HISTORY = 40 };

/* ---- TransformerEngine's definition ---- */

typedef struct te_tensor {
    float scale, used, scale_inv, amax; /* scale: the next one; used: of the last cast */
    float largest;
    float history[MOST_HISTORY + 1]; /* one more than desc.history, at least 1 */
} te_tensor;

static te_tensor te_new(void) {
    te_tensor s = AMP_ZERO;
    s.scale = s.used = s.scale_inv = 1.0f;
    return s;
}
static float te_max(amp_dtype t) { return t == AMP_F8E4M3 ? 448.0f : 57344.0f; }
static float te_scale(const amp_fp8_desc *d, amp_dtype t, float amax, float otherwise) {
    float scale;
    int e;
    if (amax == 0.0f || !amp_is_finite(amax)) return otherwise;
    scale = ref_div(te_max(t) * ldexpf(1.0f, -(int)d->margin), amax);
    if (!amp_is_finite(scale)) scale = ref_f32(0x7f7fffffu);
    if (!d->power_of_two) return scale;
    (void)frexpf(scale, &e);
    return ldexpf(1.0f, e - 1);
}
static float te_amax(const float *x, size_t n) { /* fmaxf: a NaN does not count */
    float most = 0.0f;
    size_t i;
    for (i = 0; i < n; i++)
        if (!amp_is_nan(x[i]) && fabsf(x[i]) > most) most = fabsf(x[i]);
    return most;
}
/* After a step: the amax of entry 0 moves to the end, unless it is 0, and the scale follows the largest of them. */
static void te_update(te_tensor *s, const amp_fp8_desc *d, amp_dtype t) {
    uint32_t n = d->history, i;
    float most = 0.0f, last = s->history[0];
    if (last == 0.0f) return;
    for (i = 0; i < n; i++) {
        float a = i < n - 1 ? s->history[i + 1] : last;
        if (a > most) most = a;
        s->history[i] = i ? a : 0.0f;
    }
    s->largest = most;
    s->scale = te_scale(d, t, most, s->scale);
}
static uint32_t te_cast_one(float x, float scale, amp_dtype t) {
    float v = ref_mul(x, scale);
    if (!amp_is_finite(x)) return ref_encode(ref_f32_as_f64(x), t, 0); /* ours: Inf and NaN stay */
    if (!amp_is_finite(v)) v = copysignf(ref_f32(0x7f7fffffu), x);
    return ref_encode((double)v, t, 1);
}
/* One cast: *now is the scale that it takes. */
static void te_cast(te_tensor *s, const amp_fp8_desc *d, amp_dtype t, const float *x, size_t n, uint8_t *q, int keep) {
    float amax = te_amax(x, n), scale = s->scale;
    size_t i;
    if (!keep && !d->history) scale = s->scale = te_scale(d, t, amax, 1.0f);
    if (keep) scale = s->used;
    for (i = 0; i < n; i++)
        q[i] = (uint8_t)te_cast_one(x[i], scale, t);
    if (keep) return;
    s->used = scale;
    s->scale_inv = ref_div(1.0f, scale);
    s->amax = amax;
    s->history[0] = amax;
}

/* ---- a tensor through many casts ---- */

typedef enum content { NORMAL, TINY, ZEROS, WITH_INF, WITH_NAN, HUGE_ONES, PATTERNS, CONTENTS } content;
static float number(t_run *t, content c) {
    switch (c) {
    case TINY: return t_range(t, -149, -130);
    case ZEROS: return t_below(t, 2) ? 0.0f : -0.0f;
    case WITH_INF: return t_below(t, 50) ? t_real(t) : ref_f32(0x7f800000u | t_below(t, 2) << 31);
    case WITH_NAN: return t_below(t, 50) ? t_real(t) : ref_f32(0x7fc00001u);
    case HUGE_ONES: return t_range(t, 100, 127);
    case PATTERNS: return t_pattern(t);
    default: return t_range(t, -12, 4);
    }
}

typedef struct matrix {
    size_t rows, cols, n;
    amp_array src, dst, dst_t;
    float *x;
    uint8_t *want, *want_t;
} matrix;

static matrix matrix_new(t_run *t, size_t rows, size_t cols, amp_dtype from, amp_dtype to) {
    matrix m = AMP_ZERO;
    size_t odd = t_below(t, 2) ? 0 : amp_dtype_size(from) * t_below(t, 9);
    m.rows = rows;
    m.cols = cols;
    m.n = rows * cols;
    m.src = amp_arr(t_alloc_at(t, m.n * amp_dtype_size(from), odd), from);
    m.dst = amp_arr(t_alloc_at(t, m.n, t_below(t, 2) ? 0 : t_below(t, 17)), to);
    m.dst_t = amp_arr(t_alloc_at(t, m.n, t_below(t, 2) ? 0 : t_below(t, 17)), to);
    m.x = (float *)t_host(t, 4 * m.n);
    m.want = (uint8_t *)t_host(t, m.n);
    m.want_t = (uint8_t *)t_host(t, m.n);
    return m;
}
static void matrix_fill(t_run *t, matrix *m, content c) {
    void *host = t_host(t, m->n * amp_dtype_size(m->src.dtype));
    size_t i;
    for (i = 0; i < m->n; i++) {
        amp_store(host, m->src.dtype, i, number(t, c));
        m->x[i] = amp_load(host, m->src.dtype, i);
    }
    t_set(t, m->src.data, host, m->n * amp_dtype_size(m->src.dtype));
}
static void matrix_check(t_run *t, const matrix *m, int plain, int turned) {
    uint8_t *got = (uint8_t *)t_host(t, m->n);
    size_t r, c;
    for (r = 0; r < m->rows; r++)
        for (c = 0; c < m->cols; c++)
            m->want_t[c * m->rows + r] = m->want[r * m->cols + c];
    t_get(t, got, m->dst.data, m->n);
    if (plain) CHECK_BITS(got, m->want, m->n, 1);
    t_get(t, got, m->dst_t.data, m->n);
    if (turned) CHECK_BITS(got, m->want_t, m->n, 1);
}
static void check_state(t_run *t, amp_fp8 *f, size_t i, const te_tensor *want, const amp_fp8_desc *d) {
    amp_fp8_info info = {-1, -1, -1};
    float inverse = -1;
    CHECK_OK(amp_fp8_get(f, i, &info));
    t_get(t, &inverse, amp_fp8_inverse_ptr(f, i), 4);
    CHECK_F32(info.amax, want->amax);
    CHECK_F32(inverse, want->scale_inv);
    CHECK_F32(info.scale, want->used);
    if (d->history) CHECK_F32(info.largest, want->largest);
}

typedef struct recipe_case {
    amp_fp8_desc d;
    amp_dtype from, to;
    size_t rows, cols;
} recipe_case;
static void one_recipe(t_run *t, const recipe_case *c) {
    const amp_array none = AMP_ZERO;
    matrix m = matrix_new(t, c->rows, c->cols, c->from, c->to);
    te_tensor ref = te_new();
    amp_fp8 *f = NULL;
    int step;
    if (!CHECK_OK(amp_fp8_create(&f, t->ctx, &c->d))) return;
    for (step = 0; step < 12; step++) {
        int plain = t_below(t, 3) != 0, turned = !plain || t_below(t, 2), keep = step > 1 && t_below(t, 5) == 0;
        content what = t_below(t, 2) ? NORMAL : (content)t_below(t, CONTENTS);
        matrix_fill(t, &m, what);
        t_note(t, "%s to %s, %d x %d, history %d, margin %d, step %d, content %d, keep %d", amp_dtype_name(c->from),
            amp_dtype_name(c->to), (int)c->rows, (int)c->cols, (int)c->d.history, (int)c->d.margin, step, (int)what,
            keep);
        te_cast(&ref, &c->d, c->to, m.x, m.n, m.want, keep);
        CHECK_OK(
            amp_quantize(f, 1, plain ? m.dst : none, turned ? m.dst_t : none, m.src, c->rows, c->cols, (uint32_t)keep));
        matrix_check(t, &m, plain, turned);
        if (c->d.history && !keep) te_update(&ref, &c->d, c->to);
        check_state(t, f, 1, &ref, &c->d);
    }
    amp_fp8_destroy(f);
}
static void recipes(t_run *t) {
    static const size_t shapes[][2] = {
        {1, 1}, {3, 5}, {64, 64}, {65, 71}, {1, 300}, {129, 8}, {16, 1040}, {70, 260}, {8, 16}};
    static const uint32_t histories[] = {0, 1, 2, 5, MOST_HISTORY};
    static const amp_dtype from[] = {AMP_F32, AMP_F16, AMP_BF16}, to[] = {AMP_F8E4M3, AMP_F8E5M2};
    size_t s, h, k;
    for (s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        for (h = 0; h < 5; h++)
            for (k = 0; k < 6; k++, t_clear(t)) {
                recipe_case c = AMP_ZERO;
                if (!t_full() && (s + h + k) % 9u) continue;
                c.d.history = histories[h];
                c.d.margin = t_below(t, 3) ? 0 : t_below(t, 7);
                c.d.power_of_two = t_below(t, 2);
                c.from = from[k % 3];
                c.to = to[k / 3];
                c.rows = shapes[s][0];
                c.cols = shapes[s][1];
                one_recipe(t, &c);
            }
}

/* Numbers whose results are known by hand. */
static void by_hand(t_run *t) {
    static const float x[4] = {1.0f, -2.0f, 3.5f, 0.0f}, tiny[4] = {7.174648137343064e-43f, 0, 0, 0};
    static const float inf[4] = {1.0f, 0, 0, 1.0f / 0.0f};
    static const uint8_t want[4] = {0x70, 0xf8, 0x7e, 0x00}; /* 128, -256, 448 in E4M3 */
    const amp_array none = AMP_ZERO;
    amp_fp8_desc d = AMP_ZERO;
    amp_fp8_info info;
    uint8_t got[4];
    amp_array src = amp_arr(t_alloc(t, 16), AMP_F32), dst = amp_arr(t_alloc(t, 4), AMP_F8E4M3);
    amp_fp8 *f = NULL;
    CHECK_OK(amp_fp8_create(&f, t->ctx, NULL));
    t_set(t, src.data, x, 16);
    CHECK_OK(amp_quantize(f, 0, dst, none, src, 2, 2, 0));
    t_get(t, got, dst.data, 4);
    CHECK_BITS(got, want, 4, 1);
    CHECK_OK(amp_fp8_get(f, 0, &info));
    CHECK_F32(info.scale, 128.0f);
    CHECK_F32(info.amax, 3.5f);
    t_set(t, src.data, tiny, 16);
    CHECK_OK(amp_quantize(f, 0, dst, none, src, 1, 4, 0));
    CHECK_OK(amp_fp8_get(f, 0, &info));
    CHECK_F32(info.scale, ref_f32(0x7f7fffffu)); /* 448 / 2^-140 is Inf */
    t_set(t, src.data, inf, 16);
    CHECK_OK(amp_quantize(f, 0, dst, none, src, 1, 4, 0));
    CHECK_OK(amp_fp8_get(f, 0, &info));
    CHECK_F32(info.scale, 1.0f);
    t_get(t, got, dst.data, 4);
    CHECK_EQ(got[3], 0x7f); /* Inf is NaN in E4M3, and no 448 */
    CHECK_OK(amp_quantize(f, 0, dst, none, src, 0, 4, 0));
    amp_fp8_destroy(f);
    f = NULL;
    d.history = 2; /* the scale waits for one cast; an Inf keeps it for two; zeros are forgotten */
    CHECK_OK(amp_fp8_create(&f, t->ctx, &d));
    t_set(t, src.data, x, 16);
    CHECK_OK(amp_quantize(f, 2, dst, none, src, 2, 2, 0));
    CHECK_OK(amp_fp8_get(f, 2, &info));
    CHECK_F32(info.scale, 1.0f);
    CHECK_F32(info.largest, 3.5f);
    t_set(t, src.data, inf, 16);
    CHECK_OK(amp_quantize(f, 2, dst, none, src, 2, 2, 0));
    CHECK_OK(amp_zero(t->ctx, src.data, 16));
    CHECK_OK(amp_quantize(f, 2, dst, none, src, 2, 2, 0));
    t_set(t, src.data, x, 16);
    CHECK_OK(amp_quantize(f, 2, dst, none, src, 2, 2, 0));
    CHECK_OK(amp_fp8_get(f, 2, &info));
    CHECK_F32(info.scale, 128.0f);
    CHECK_F32(info.largest, 1.0f / 0.0f);
    CHECK(amp_fp8_inverse_ptr(f, 3) == NULL && amp_fp8_inverse_ptr(NULL, 0) == NULL);
    amp_fp8_destroy(f);
    amp_fp8_destroy(NULL);
}

/* Large enough for threads, chunks and many blocks. */
static void large_scenario(t_run *t, t_blob *b, const void *arg) {
    const size_t rows = t_slow(t) ? 130 : 700, cols = 328, n = rows * cols;
    amp_fp8_desc d = AMP_ZERO;
    amp_fp8 *f = NULL;
    amp_array src = amp_arr(t_alloc(t, 2 * n), AMP_BF16), dst = amp_arr(t_alloc(t, n), AMP_F8E5M2), dst_t = dst;
    void *host = t_host(t, 2 * n);
    int step;
    d.history = *(const uint32_t *)arg;
    dst_t.data = t_alloc(t, n);
    CHECK_OK(amp_fp8_create(&f, t->ctx, &d));
    for (step = 0; step < 3 && f; step++) {
        float inverse;
        t_fill_real(t, host, AMP_BF16, n, 1e-4f * (float)(step + 1));
        t_set(t, src.data, host, 2 * n);
        CHECK_OK(amp_quantize(f, 0, dst, dst_t, src, rows, cols, 0));
        t_get(t, &inverse, amp_fp8_inverse_ptr(f, 0), 4);
        t_blob_add(b, &inverse, 4);
        t_blob_dev(t, b, dst.data, n);
        t_blob_dev(t, b, dst_t.data, n);
    }
    amp_fp8_destroy(f);
}
static void large(t_run *t) {
    static const uint32_t histories[2] = {0, 3};
    t_same_everywhere(t, large_scenario, &histories[0]);
    t_clear(t);
    t_same_everywhere(t, large_scenario, &histories[1]);
}

/* ---- layers ---- */

enum { ROWS = 32, IN = 48, OUT = 16 };
typedef struct layer {
    amp_linear_desc l;
    amp_fp8 *f, *by_hand;
    float *host;
} layer;
static amp_array filled(t_run *t, amp_dtype type, size_t n, float size) {
    void *host = t_host(t, n * amp_dtype_size(type));
    t_fill_real(t, host, type, n, size);
    return amp_arr(t_put(t, host, n * amp_dtype_size(type)), type);
}
static amp_array empty(t_run *t, amp_dtype type, size_t n) {
    return amp_arr(t_alloc(t, n * amp_dtype_size(type)), type);
}
static layer layer_new(t_run *t, amp_dtype type, amp_act act, const amp_fp8_desc *d) {
    layer a = AMP_ZERO;
    amp_linear_desc *l = &a.l;
    l->rows = ROWS;
    l->in = IN;
    l->out = OUT;
    l->act = act;
    l->flags = ref_has_f8(t->ctx) ? 0 : AMP_GEMM_EMULATE;
    l->x = filled(t, type, ROWS * IN, 1.0f);
    l->w = filled(t, AMP_F32, OUT * IN, 0.1f);
    l->bias = filled(t, AMP_F32, OUT, 0.1f);
    l->y = empty(t, type, ROWS * OUT);
    l->aux = empty(t, type, ROWS * OUT);
    l->dy = filled(t, type, ROWS * OUT, 1e-5f);
    l->dx = empty(t, type, ROWS * IN);
    l->dw = empty(t, AMP_F32, OUT * IN);
    l->dbias = empty(t, AMP_F32, OUT);
    l->scratch_bytes = ROWS * IN + OUT * IN + 2 * ROWS * OUT + 1024;
    l->scratch = t_alloc(t, l->scratch_bytes);
    l->fp8_first = 2;
    CHECK_OK(amp_fp8_create(&a.f, t->ctx, d));
    CHECK_OK(amp_fp8_create(&a.by_hand, t->ctx, d));
    l->fp8 = a.f;
    return a;
}
static void layer_end(layer *a) {
    amp_fp8_destroy(a->f);
    amp_fp8_destroy(a->by_hand);
}
static void same_array(t_run *t, const char *what, amp_array a, amp_array b, size_t n) {
    size_t bytes = n * amp_dtype_size(a.dtype);
    void *x = t_host(t, bytes), *y = t_host(t, bytes);
    t_get(t, x, a.data, bytes);
    t_get(t, y, b.data, bytes);
    t_check(t, memcmp(x, y, bytes) == 0, __FILE__, __LINE__, "%s differs from the same by hand", what);
}
/* y as amp_quantize and amp_gemm make it. */
static void forward_by_hand(t_run *t, const layer *a) {
    const amp_array none = AMP_ZERO;
    const amp_linear_desc *l = &a->l;
    amp_array x8 = empty(t, AMP_F8E4M3, ROWS * IN), w8 = empty(t, AMP_F8E4M3, OUT * IN);
    amp_gemm_desc g = AMP_ZERO;
    CHECK_OK(amp_quantize(a->by_hand, 2, x8, none, l->x, ROWS, IN, l->fp8_keep));
    CHECK_OK(amp_quantize(a->by_hand, 3, w8, none, l->w, OUT, IN, l->fp8_keep));
    g.m = ROWS;
    g.n = OUT;
    g.k = IN;
    g.trans_b = 1;
    g.act = l->act;
    g.flags = l->flags;
    g.a = x8;
    g.b = w8;
    g.scale_a = amp_fp8_inverse_ptr(a->by_hand, 2);
    g.scale_b = amp_fp8_inverse_ptr(a->by_hand, 3);
    g.d = empty(t, l->y.dtype, ROWS * OUT);
    g.aux = empty(t, l->y.dtype, ROWS * OUT);
    g.bias = l->bias;
    CHECK_OK(amp_gemm(t->ctx, &g));
    same_array(t, "y", l->y, g.d, ROWS * OUT);
}
/* dx and dw from the dy before act. */
static void backward_by_hand(t_run *t, const layer *a) {
    const amp_linear_desc *l = &a->l;
    amp_array x8 = empty(t, AMP_F8E4M3, ROWS * IN), w8 = empty(t, AMP_F8E4M3, OUT * IN);
    amp_array x8_t = empty(t, AMP_F8E4M3, ROWS * IN), w8_t = empty(t, AMP_F8E4M3, OUT * IN);
    amp_array dy8 = empty(t, AMP_F8E5M2, ROWS * OUT), dy8_t = empty(t, AMP_F8E5M2, ROWS * OUT);
    amp_gemm_desc g = AMP_ZERO;
    CHECK_OK(amp_quantize(a->by_hand, 2, x8, x8_t, l->x, ROWS, IN, 1));
    CHECK_OK(amp_quantize(a->by_hand, 3, w8, w8_t, l->w, OUT, IN, 1));
    CHECK_OK(amp_quantize(a->by_hand, 4, dy8, dy8_t, l->dy, ROWS, OUT, 0));
    g.m = OUT;
    g.n = IN;
    g.k = ROWS;
    g.trans_b = 1;
    g.flags = l->flags;
    g.a = dy8_t;
    g.b = x8_t;
    g.scale_a = amp_fp8_inverse_ptr(a->by_hand, 4);
    g.scale_b = amp_fp8_inverse_ptr(a->by_hand, 2);
    g.d = empty(t, l->dw.dtype, OUT * IN);
    CHECK_OK(amp_gemm(t->ctx, &g));
    same_array(t, "dw", l->dw, g.d, OUT * IN);
    g.m = ROWS;
    g.k = OUT;
    g.a = dy8;
    g.b = w8_t;
    g.scale_b = amp_fp8_inverse_ptr(a->by_hand, 3);
    g.d = empty(t, l->dx.dtype, ROWS * IN);
    CHECK_OK(amp_gemm(t->ctx, &g));
    same_array(t, "dx", l->dx, g.d, ROWS * IN);
}
static void layers(t_run *t) {
    static const amp_dtype types[3] = {AMP_BF16, AMP_F16, AMP_F32};
    size_t k;
    int step;
    for (k = 0; k < 6; k++, t_clear(t)) {
        amp_fp8_desc d = AMP_ZERO;
        layer a;
        d.tensors = 5;
        d.history = k % 2 ? 3 : 0;
        a = layer_new(t, types[k % 3], (amp_act)(k % 3), &d);
        for (step = 0; step < 3; step++) {
            t_note(t, "case %d, step %d", (int)k, step);
            a.l.fp8_keep = 0;
            CHECK_OK(amp_linear_forward(t->ctx, &a.l));
            forward_by_hand(t, &a);
            CHECK_OK(amp_linear_backward(t->ctx, &a.l));
            backward_by_hand(t, &a);
            a.l.fp8_keep = 1;
            CHECK_OK(amp_linear_forward(t->ctx, &a.l)); /* evaluation */
            forward_by_hand(t, &a);
        }
        layer_end(&a);
    }
}

/* What FP8 costs a layer, and what the same without a scale would cost: as the share of dy that becomes 0. */
static double zeros_of(t_run *t, amp_array a, size_t n) {
    uint8_t *q = (uint8_t *)t_host(t, n);
    size_t i, zero = 0;
    t_get(t, q, a.data, n);
    for (i = 0; i < n; i++)
        zero += (q[i] & 0x7fu) == 0;
    return (double)zero / (double)n;
}
static void zeros_without_a_scale(t_run *t) {
    const amp_array none = AMP_ZERO;
    amp_array x = filled(t, AMP_F32, 4096, 3e-4f), q = empty(t, AMP_F8E4M3, 4096);
    amp_fp8 *f = NULL;
    double plain, scaled;
    CHECK_OK(amp_fp8_create(&f, t->ctx, NULL));
    CHECK_OK(amp_cast(t->ctx, q, x, 4096, NULL));
    plain = zeros_of(t, q, 4096);
    CHECK_OK(amp_quantize(f, 0, q, none, x, 64, 64, 0));
    scaled = zeros_of(t, q, 4096);
    t_note(t, "zeros: %.4f without, %.4f with a scale", plain, scaled);
    CHECK(plain > 0.99 && scaled < 0.01);
    amp_fp8_destroy(f);
}

/* ---- scopes ---- */

static float scale_of(t_run *t, amp_fp8 *f, size_t i) {
    amp_fp8_info info = {0, 0, 0};
    CHECK_OK(amp_fp8_get(f, i, &info));
    return info.scale;
}
static float amax_of(t_run *t, amp_fp8 *f, size_t i) {
    amp_fp8_info info = {0, 0, 0};
    CHECK_OK(amp_fp8_get(f, i, &info));
    return info.amax;
}
static void in_scope(t_run *t, layer *a, amp_preset preset, amp_dtype pin, int quantised) {
    amp_autocast_desc region = AMP_ZERO;
    amp_policy policy;
    amp_precision record = AMP_ZERO;
    float before[3];
    size_t i;
    for (i = 0; i < 3; i++)
        before[i] = amax_of(t, a->f, 2 + i);
    CHECK_OK(amp_policy_init(t->ctx, &policy, preset, NULL));
    region.policy = &policy;
    region.pin = pin;
    a->l.record = &record;
    a->l.y.dtype = a->l.aux.dtype = a->l.dy.dtype = AMP_AUTO;
    CHECK_OK(amp_autocast_begin(t->ctx, &region));
    CHECK_OK(amp_linear_forward(t->ctx, &a->l));
    CHECK_OK(amp_autocast_end(t->ctx));
    CHECK_OK(amp_linear_backward(t->ctx, &a->l));
    t_note(t, "%s, pin %s", amp_preset_name(preset), amp_dtype_name(pin));
    CHECK_EQ(record.used == AMP_F8E4M3, quantised);
    if (preset == AMP_PRESET_FP8 && quantised) CHECK_EQ(record.y, AMP_BF16);
    for (i = 0; i < 3; i++)
        CHECK_EQ(amax_of(t, a->f, 2 + i) != before[i], quantised); /* the scale may happen to be what it was */
}
static void scopes(t_run *t) {
    amp_fp8_desc d = AMP_ZERO;
    amp_policy policy;
    amp_scaler_desc s;
    layer a;
    d.tensors = 5;
    a = layer_new(t, AMP_F32, AMP_ACT_NONE, &d);
    in_scope(t, &a, AMP_PRESET_AMP, AMP_AUTO, 0);
    in_scope(t, &a, AMP_PRESET_FP8, AMP_BF16, 0);
    in_scope(t, &a, AMP_O0, AMP_AUTO, 0);
    in_scope(t, &a, AMP_PRESET_FP8, AMP_AUTO, 1);
    CHECK_OK(amp_autocast_release(t->ctx));
    CHECK_OK(amp_policy_init(t->ctx, &policy, AMP_PRESET_FP8, NULL));
    CHECK_EQ(policy.low, AMP_BF16);
    s = amp_policy_scaler_desc(&policy);
    CHECK_EQ(s.mode, AMP_SCALER_OFF);
    layer_end(&a);
}

/* Each tensor has a scale and a history of its own: what one is quantised with changes no other. */
static void tensors_apart(t_run *t) {
    const amp_array none = AMP_ZERO;
    amp_array dst = empty(t, AMP_F8E4M3, 64);
    void *src_room = t_alloc(t, 64 * sizeof(float));
    amp_fp8_desc d = AMP_ZERO;
    amp_fp8 *f = NULL;
    int i, j, k;
    d.tensors = 3;
    d.history = 4;
    CHECK_OK(amp_fp8_create(&f, t->ctx, &d));
    for (k = 0; k < 6; k++)
        for (i = 2; i >= 0; i--) {
            float host[64];
            amp_array src = amp_arr(src_room, AMP_F32);
            for (j = 0; j < 64; j++)
                host[j] = (float)(8 * i + k + 1);
            t_set(t, src_room, host, sizeof host);
            CHECK_OK(amp_quantize(f, (size_t)i, dst, none, src, 8, 8, 0));
        }
    for (i = 0; i < 3; i++) {
        amp_fp8_info info;
        CHECK_OK(amp_fp8_get(f, (size_t)i, &info));
        CHECK_F32(info.amax, (float)(8 * i + 6));
        CHECK_F32(info.largest, (float)(8 * i + 6));
        CHECK_F32(info.scale, 448.0f / (float)(8 * i + 5)); /* of the casts before it */
    }
    amp_fp8_destroy(f);
}

static long file_bytes(t_run *t, const char *path, const amp_state_desc *st) {
    FILE *f;
    long bytes;
    CHECK_OK(amp_state_save(t->ctx, path, st));
    f = fopen(path, "rb");
    if (!CHECK(f != NULL)) return -1;
    (void)fseek(f, 0, SEEK_END);
    bytes = ftell(f);
    (void)fclose(f);
    return bytes;
}
/* ---- state files ---- */

static void state_files(t_run *t) {
    amp_fp8_desc d = AMP_ZERO;
    amp_state_desc st = AMP_ZERO;
    amp_fp8 *f[3] = {NULL, NULL, NULL};
    amp_array src = filled(t, AMP_F32, 64, 1.0f), dst = empty(t, AMP_F8E4M3, 64);
    const amp_array none = AMP_ZERO;
    const char *path = t_file("fp8");
    char user[8] = "user's";
    long bytes, with_user;
    int step;
    d.tensors = 2;
    d.history = 4;
    for (step = 0; step < 2; step++)
        CHECK_OK(amp_fp8_create(&f[step], t->ctx, &d));
    st.fp8 = f;
    st.n_fp8 = 1;
    for (step = 0; step < 9; step++) {
        float host[64];
        int i;
        for (i = 0; i < 64; i++)
            host[i] = ldexpf(t_real(t), step * 3 % 8);
        t_set(t, src.data, host, sizeof host);
        if (step == 5) { /* a second one goes on where the first one was */
            CHECK_OK(amp_state_save(t->ctx, path, &st));
            st.fp8 = f + 1;
            CHECK_OK(amp_state_load(t->ctx, path, &st));
        }
        CHECK_OK(amp_quantize(f[0], 1, dst, none, src, 8, 8, 0));
        if (step < 5) continue;
        CHECK_OK(amp_quantize(f[1], 1, dst, none, src, 8, 8, 0));
        CHECK_F32(scale_of(t, f[1], 1), scale_of(t, f[0], 1));
        CHECK(scale_of(t, f[1], 1) != 1.0f);
    }
    t_note(t, "a section: its head, as that of 8 bytes of the user's, two counts, then states and histories");
    st.fp8 = f;
    st.n_fp8 = 1;
    bytes = file_bytes(t, path, &st);
    st.n_fp8 = 2;
    bytes = file_bytes(t, path, &st) - bytes;
    st.user = user;
    st.user_bytes = sizeof user;
    with_user = file_bytes(t, path, &st);
    st.user = NULL;
    st.user_bytes = 0;
    CHECK_EQ(bytes - 2 * (sizeof(amp_fp8_state) + 4 * sizeof(float)), with_user - file_bytes(t, path, &st));
    st.n_fp8 = 1;
    CHECK_OK(amp_state_save(t->ctx, path, &st));
    { /* the two counts stand there, as 32 bits */
        static const unsigned char counts[8] = {2, 0, 0, 0, 4, 0, 0, 0};
        unsigned char all[4096];
        FILE *in = fopen(path, "rb");
        size_t n = in ? fread(all, 1, sizeof all, in) : 0, at = 0;
        while (at + 8 <= n && memcmp(all + at, counts, 8) != 0)
            at++;
        CHECK(n < sizeof all && at + 8 <= n);
        if (in) (void)fclose(in);
    }
    d.history = 5;
    CHECK_OK(amp_fp8_create(&f[2], t->ctx, &d));
    st.fp8 = f + 2;
    CHECK_STATUS(amp_state_load(t->ctx, path, &st), AMP_ERR_FORMAT, "amp_fp8 history");
    st.n_fp8 = 0;
    CHECK_STATUS(amp_state_load(t->ctx, path, &st), AMP_ERR_FORMAT, "amp_fp8");
    st.n_fp8 = 1;
    st.fp8 = NULL;
    CHECK_STATUS(amp_state_save(t->ctx, path, &st), AMP_ERR_INVALID_ARG, "state.fp8");
    for (step = 0; step < 3; step++)
        amp_fp8_destroy(f[step]);
}

/* ---- refusals ---- */

static void refused_descs(t_run *t) {
    amp_fp8 *f = (amp_fp8 *)t;
    amp_fp8_desc d = AMP_ZERO;
    d.margin = 7;
    CHECK_STATUS(amp_fp8_create(&f, t->ctx, &d), AMP_ERR_INVALID_ARG, "desc.margin 7");
    CHECK(f == NULL);
    d.margin = 0;
    d.history = 65537;
    CHECK_STATUS(amp_fp8_create(&f, t->ctx, &d), AMP_ERR_INVALID_ARG, "desc.history 65537");
    d.history = 0;
    d.tensors = 65537;
    CHECK_STATUS(amp_fp8_create(&f, t->ctx, &d), AMP_ERR_INVALID_ARG, "desc.tensors 65537");
    if (sizeof(size_t) < 8) { /* where it has 64 bits, any number of them can be counted */
        d.tensors = d.history = 65536;
        CHECK_STATUS(amp_fp8_create(&f, t->ctx, &d), AMP_ERR_NO_MEMORY, "too much");
        d.history = 0;
    }
    d.tensors = 0;
    d.forward = AMP_BF16;
    CHECK_STATUS(amp_fp8_create(&f, t->ctx, &d), AMP_ERR_INVALID_ARG, "desc.forward bf16");
    d.forward = AMP_F8E5M2;
    CHECK_STATUS(amp_fp8_create(&f, t->ctx, &d), AMP_ERR_UNSUPPORTED, "f8e5m2");
    d.forward = AMP_AUTO;
    d.flags = 1;
    CHECK_STATUS(amp_fp8_create(&f, t->ctx, &d), AMP_ERR_INVALID_ARG, "desc.flags");
    d.flags = 0;
    d._end = 1;
    CHECK_STATUS(amp_fp8_create(&f, t->ctx, &d), AMP_ERR_UNINIT, "_end");
    CHECK_STATUS(amp_fp8_create(NULL, t->ctx, NULL), AMP_ERR_INVALID_ARG, "out");
    CHECK_EQ(amp_fp8_create(&f, NULL, NULL), AMP_ERR_INVALID_ARG);
    CHECK_STATUS(
        amp_fp8_create_checked(&f, t->ctx, AMP_VERSION, sizeof d + 8, NULL), AMP_ERR_VERSION, "amp_fp8_create");
}
static void refused_casts(t_run *t) {
    const amp_array none = AMP_ZERO;
    amp_array src = filled(t, AMP_F32, 64, 1.0f), dst = empty(t, AMP_F8E4M3, 128), dst_t = dst, bad = src;
    amp_fp8_info info;
    amp_fp8 *f = NULL;
    CHECK_OK(amp_fp8_create(&f, t->ctx, NULL));
    dst_t.data = (char *)dst.data + 64;
    CHECK_STATUS(amp_quantize(f, 3, dst, dst_t, src, 8, 8, 0), AMP_ERR_INVALID_ARG, "i 3");
    CHECK_STATUS(amp_quantize(f, 0, none, none, src, 8, 8, 0), AMP_ERR_INVALID_ARG, "dst dst_t");
    CHECK_STATUS(amp_quantize(f, 0, dst, dst_t, none, 8, 8, 0), AMP_ERR_INVALID_ARG, "src");
    CHECK_STATUS(amp_quantize(f, 0, bad, dst_t, src, 8, 8, 0), AMP_ERR_INVALID_ARG, "dst f32");
    CHECK_STATUS(amp_quantize(f, 0, dst, bad, src, 8, 8, 0), AMP_ERR_INVALID_ARG, "dst_t f32");
    CHECK_STATUS(amp_quantize(f, 0, dst, dst_t, dst, 8, 8, 0), AMP_ERR_INVALID_ARG, "src f8e4m3");
    bad = dst_t;
    bad.dtype = AMP_F8E5M2;
    CHECK_STATUS(amp_quantize(f, 0, dst, bad, src, 8, 8, 0), AMP_ERR_INVALID_ARG, "one format");
    bad.dtype = AMP_F8E4M3;
    bad.count = 63;
    CHECK_STATUS(amp_quantize(f, 0, dst, bad, src, 8, 8, 0), AMP_ERR_INVALID_ARG, "dst_t.count 63");
    bad = dst_t;
    bad.data = (char *)dst.data + 63;
    CHECK_STATUS(amp_quantize(f, 0, dst, bad, src, 8, 8, 0), AMP_ERR_INVALID_ARG, "dst_t overlaps dst");
    bad.data = (char *)src.data + 255;
    CHECK_STATUS(amp_quantize(f, 0, dst, bad, src, 8, 8, 0), AMP_ERR_INVALID_ARG, "dst_t overlaps src");
    CHECK_STATUS(amp_quantize(f, 0, bad, dst_t, src, 8, 8, 0), AMP_ERR_INVALID_ARG, "dst overlaps src");
    CHECK_STATUS(amp_quantize(f, 0, dst, dst_t, src, (size_t)-1 / 4, 8, 0), AMP_ERR_INVALID_ARG, "rows");
    CHECK_STATUS(amp_fp8_get(f, 3, &info), AMP_ERR_INVALID_ARG, "i 3");
    CHECK_STATUS(amp_fp8_get(f, 0, NULL), AMP_ERR_INVALID_ARG, "out");
    CHECK_EQ(amp_quantize(NULL, 0, dst, dst_t, src, 8, 8, 0), AMP_ERR_INVALID_ARG);
    CHECK_EQ(amp_fp8_get(NULL, 0, &info), AMP_ERR_INVALID_ARG);
    CHECK_OK(amp_quantize(f, 0, dst, dst_t, src, 8, 8, 0));
    amp_fp8_destroy(f);
}
/* A layer that is refused has moved no scale and written nothing. */
static void refused_layers(t_run *t) {
    amp_fp8_desc d = AMP_ZERO;
    layer a;
    amp_linear_desc l;
    unsigned char *before = (unsigned char *)t_host(t, 4096), *after = (unsigned char *)t_host(t, 4096);
    d.tensors = 5;
    a = layer_new(t, AMP_BF16, AMP_RELU, &d);
    CHECK_OK(amp_linear_forward(t->ctx, &a.l));
    t_get(t, before, a.l.scratch, 1024);
    l = a.l;
    l.fp8_first = 3;
    CHECK_STATUS(amp_linear_forward(t->ctx, &l), AMP_ERR_INVALID_ARG, "fp8_first 3");
    l.fp8_first = (size_t)-2;
    CHECK_STATUS(amp_linear_backward(t->ctx, &l), AMP_ERR_INVALID_ARG, "fp8_first");
    l = a.l;
    l.scratch_bytes = ROWS * IN + OUT * IN - 1;
    CHECK_STATUS(amp_linear_forward(t->ctx, &l), AMP_ERR_INVALID_ARG, "scratch 2303 2304");
    l.scratch_bytes += 2;
    CHECK_STATUS(amp_linear_backward(t->ctx, &l), AMP_ERR_INVALID_ARG, "scratch");
    l = a.l;
    l.scratch = NULL;
    CHECK_STATUS(amp_linear_forward(t->ctx, &l), AMP_ERR_INVALID_ARG, "scratch 0");
    l.scratch = (char *)a.l.scratch + 8;
    CHECK_STATUS(amp_linear_forward(t->ctx, &l), AMP_ERR_INVALID_ARG, "aligned");
    l.scratch = a.l.y.data;
    CHECK_STATUS(amp_linear_forward(t->ctx, &l), AMP_ERR_INVALID_ARG, "scratch overlaps y");
    l.scratch = a.l.dw.data;
    CHECK_STATUS(amp_linear_backward(t->ctx, &l), AMP_ERR_INVALID_ARG, "scratch overlaps");
    l = a.l;
    l.dx.data = l.scratch;
    CHECK_STATUS(amp_linear_backward(t->ctx, &l), AMP_ERR_INVALID_ARG, "scratch overlaps dx");
    l = a.l;
    l.x.dtype = AMP_F8E4M3;
    CHECK_STATUS(amp_linear_forward(t->ctx, &l), AMP_ERR_INVALID_ARG, "x f8e4m3");
    l = a.l;
    l.dy.dtype = AMP_F8E5M2;
    CHECK_STATUS(amp_linear_backward(t->ctx, &l), AMP_ERR_INVALID_ARG, "dy f8e5m2");
    l = a.l;
    if (t->place->kind == T_KIND_CUDA) { /* what the hardware does not multiply */
        /* asked for before the check: it calls a verb itself, and compilers evaluate arguments in either order */
        const char *why = ref_has_f8(t->ctx) ? "16" : "sm_89";
        l.in = 40;
        l.flags = 0;
        CHECK_STATUS(amp_linear_forward(t->ctx, &l), AMP_ERR_UNSUPPORTED, why);
        l.flags = AMP_GEMM_EMULATE;
        CHECK_OK(amp_linear_forward(t->ctx, &l));
        CHECK_OK(amp_linear_forward(t->ctx, &a.l));
    }
    t_get(t, after, a.l.scratch, 1024);
    CHECK_BITS(after, before, 1024, 1);
    layer_end(&a);
}

/* ---- 20 steps of one layer, in the defined order: the same weights everywhere ---- */

static void run_scenario(t_run *t, t_blob *b, const void *arg) {
    amp_ctx *own = t->ctx, *ctx = NULL;
    static const t_place portable = {"", T_KIND_CPU, AMP_SIMD_SCALAR, 1};
    const t_place *place = own == t->own ? t->place : &portable;
    amp_fp8_desc d = AMP_ZERO;
    amp_params_desc pd = AMP_ZERO;
    amp_param_desc e = AMP_ZERO;
    amp_step_desc step = AMP_ZERO;
    amp_params *p = NULL;
    void *dy = t_host(t, 4 * ROWS * OUT);
    layer a;
    int i;
    if (!CHECK_OK(t_create_flags(place, &ctx, AMP_GEMM_ORDERED))) return;
    t->ctx = ctx;
    d.tensors = 5;
    d.history = *(const uint32_t *)arg;
    a = layer_new(t, AMP_BF16, AMP_GELU, &d);
    pd.model = AMP_BF16;
    e.rows = OUT;
    e.cols = IN;
    CHECK_OK(amp_params_create(&p, ctx, &pd));
    CHECK_OK(amp_params_add(p, &e));
    CHECK_OK(amp_params_commit(p));
    a.l.w = amp_param_model(p, 0);
    a.l.dw = amp_param_grad(p, 0);
    step.lr = 0.01f;
    for (i = 0; i < 20; i++) {
        t_fill_real(t, dy, AMP_BF16, ROWS * OUT, 1e-4f);
        t_set(t, a.l.dy.data, dy, 2 * ROWS * OUT);
        CHECK_OK(amp_linear_forward(ctx, &a.l));
        CHECK_OK(amp_linear_backward(ctx, &a.l));
        CHECK_OK(amp_step(p, NULL, &step));
        t_blob_dev(t, b, a.l.y.data, 2 * ROWS * OUT);
        t_blob_dev(t, b, amp_param_get(p, 0).master.data, 4 * OUT * IN);
    }
    amp_params_destroy(p);
    layer_end(&a);
    t_clear(t);
    t->ctx = own;
    amp_ctx_destroy(ctx);
}
static void run(t_run *t) {
    static const uint32_t histories[2] = {0, 4};
    t_same_everywhere(t, run_scenario, &histories[0]);
    t_same_everywhere(t, run_scenario, &histories[1]);
}

const t_test t_suite_fp8[] = {{"fp8.recipes", recipes, T_ALL}, {"fp8.by_hand", by_hand, T_ALL},
    {"fp8.large", large, T_ALL}, {"fp8.layers", layers, T_ALL}, {"fp8.zeros", zeros_without_a_scale, T_ALL},
    {"fp8.scopes", scopes, T_ALL}, {"fp8.tensors_apart", tensors_apart, T_ALL}, {"fp8.state", state_files, T_ALL},
    {"fp8.descs", refused_descs, T_ALL}, {"fp8.casts", refused_casts, T_ALL},
    {"fp8.refused_layers", refused_layers, T_ALL}, {"fp8.20_steps", run, T_ALL}, {NULL, NULL, 0}};
