/* ref.h - second implementations, slow and obvious, that share nothing with amp.h but its type names.

   Formats are tables of numbers made with ldexp; rounding finds the neighbours in the table and compares with their
   midpoint. The update rules are written out with volatile floats, so that no compiler can fuse or reorder them. */
#ifndef REF_H
#define REF_H

#include "t.h"

#include <math.h>

/* ---- formats --------------------------------------------------------------------------------------------------- */

typedef struct ref_format {
    int bits, mant, bias;
    uint32_t max;  /* pattern of the largest finite number */
    uint32_t over; /* pattern that overflow gives */
    int has_inf;
} ref_format;

static inline ref_format ref_format_of(amp_dtype t) {
    static const ref_format f16 = {16, 10, 15, 0x7bff, 0x7c00, 1};
    static const ref_format bf16 = {16, 7, 127, 0x7f7f, 0x7f80, 1};
    static const ref_format e4m3 = {8, 3, 7, 0x7e, 0x7f, 0};
    static const ref_format e5m2 = {8, 2, 15, 0x7b, 0x7c, 1};
    if (t == AMP_F16) return f16;
    if (t == AMP_BF16) return bf16;
    return t == AMP_F8E4M3 ? e4m3 : e5m2;
}

static const amp_dtype ref_dtypes[5] = {AMP_F32, AMP_F16, AMP_BF16, AMP_F8E4M3, AMP_F8E5M2};

static inline int ref_is_nan(double x) { /* by its bits: right under -ffast-math too */
    uint64_t u;
    memcpy(&u, &x, 8);
    return (u & 0x7fffffffffffffffu) > 0x7ff0000000000000u;
}

/* The number of a positive pattern. Pattern max + 1 gives the number that would come next if the format went on. */
static inline double ref_value(const ref_format *f, uint32_t pattern) {
    int e = (int)(pattern >> f->mant), m = (int)(pattern & ((1u << f->mant) - 1u));
    return e ? ldexp((double)(m + (1 << f->mant)), e - f->bias - f->mant) : ldexp((double)m, 1 - f->bias - f->mant);
}

static inline uint32_t ref_f32_bits(float x) {
    uint32_t u;
    memcpy(&u, &x, 4);
    return u;
}
static inline float ref_f32(uint32_t u) {
    float x;
    memcpy(&x, &u, 4);
    return x;
}
static inline uint64_t ref_f64_bits(double x) {
    uint64_t u;
    memcpy(&u, &x, 8);
    return u;
}
static inline double ref_f64(uint64_t u) {
    double x;
    memcpy(&x, &u, 8);
    return x;
}

/* Float bits of any pattern; NaN: quiet, sign and payload kept from the top. */
static inline uint32_t ref_decode(uint32_t pattern, amp_dtype t) {
    ref_format f;
    uint32_t sign, a, m;
    double v;
    if (t == AMP_F32) return pattern;
    f = ref_format_of(t);
    sign = (pattern >> (f.bits - 1)) << 31;
    a = pattern & ((1u << (f.bits - 1)) - 1u);
    m = a & ((1u << f.mant) - 1u);
    if (a <= f.max) {
        v = ref_value(&f, a);
        return sign | ref_f32_bits((float)v);
    }
    if (f.has_inf && a == f.over) return sign | 0x7f800000u;
    return sign | 0x7fc00000u | (m << (23 - f.mant));
}

/* The largest pattern whose number is <= v (v >= 0, finite); max + 1 if v is at least the number after the largest. */
static inline uint32_t ref_floor(const ref_format *f, double v) {
    uint32_t lo = 0, hi = f->max + 2u; /* value(lo) <= v < value(hi) */
    while (hi - lo > 1) {
        uint32_t mid = (lo + hi) / 2;
        if (mid <= f->max + 1u && ref_value(f, mid) <= v)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

/* Rounds a double to nearest even, once. NaN: quiet, sign and upper payload kept (E4M3: its only NaN). */
static inline uint32_t ref_encode(double x, amp_dtype t, int saturate) {
    ref_format f = ref_format_of(t);
    uint64_t u = ref_f64_bits(x);
    uint32_t sign = (uint32_t)(u >> 63) << (f.bits - 1), c;
    double v = fabs(x), middle;
    if (ref_is_nan(x)) {
        uint32_t m = (uint32_t)(u >> (52 - f.mant)) & ((1u << f.mant) - 1u);
        return sign | (f.has_inf ? f.over | (1u << (f.mant - 1)) | m : f.over);
    }
    if ((u << 1 >> 53) != 0x7ffu) {
        c = ref_floor(&f, v);
        if (c <= f.max) {
            middle = 0.5 * (ref_value(&f, c) + ref_value(&f, c + 1u));
            if (v > middle || (v == middle && (c & 1u))) c++;
        }
        if (c <= f.max) return sign | c;
    }
    return sign | (saturate ? f.max : f.over);
}

static inline double ref_f32_as_f64(float x) { /* keeps NaN payloads, also signalling ones */
    uint32_t u = ref_f32_bits(x);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return ref_f64(((uint64_t)(u >> 31) << 63) | ((uint64_t)0x7ff8 << 48) | ((uint64_t)(u & 0x7fffffu) << 29));
    return (double)x;
}

/* Half the distance between neighbours in dtype at v: the error of one rounding. */
static inline double ref_half_ulp(double v, amp_dtype t) {
    int e, mant, emin;
    if (t == AMP_F32) {
        mant = 23;
        emin = -126;
    } else {
        ref_format f = ref_format_of(t);
        mant = f.mant;
        emin = 1 - f.bias;
    }
    if (v == 0.0)
        e = emin;
    else {
        (void)frexp(v, &e);
        e--;
        if (e < emin) e = emin;
    }
    return ldexp(0.5, e - mant);
}

/* ---- the rule of sums, as amp.h states it ---------------------------------------------------------------------- */

typedef volatile float ref_vf;

static inline float ref_mul(float a, float b) {
    ref_vf r = a * b;
    return r;
}
static inline float ref_add(float a, float b) {
    ref_vf r = a + b;
    return r;
}
static inline float ref_sum_part(const float *x, size_t n) { /* n <= 2048 */
    float lane[256];
    size_t i, h;
    for (i = 0; i < 256; i++)
        lane[i] = 0.0f;
    for (i = 0; i < n; i++)
        lane[i % 256] = ref_add(lane[i % 256], x[i]);
    for (h = 128; h; h /= 2)
        for (i = 0; i < h; i++)
            lane[i] = ref_add(lane[i], lane[i + h]);
    return lane[0];
}

static inline float ref_squares_by(const float *u, size_t n, float by) {
    float x[2048];
    size_t i;
    for (i = 0; i < n; i++) {
        float v = ref_mul(u[i], by);
        x[i] = ref_mul(v, v);
    }
    return ref_sum_part(x, n);
}
/* The sum of squares of a part's u, whose range is kept. */
static inline double ref_squares_part(const float *u, size_t n) {
    float sum = ref_squares_by(u, n, 1.0f);
    if ((ref_f32_bits(sum) & 0x7fffffffu) >= 0x7f800000u)
        return ldexp((double)ref_squares_by(u, n, (float)ldexp(1.0, -96)), 192);
    if ((double)sum >= ldexp(1.0, -100)) return (double)sum;
    return ldexp((double)ref_squares_by(u, n, (float)ldexp(1.0, 96)), -192);
}

static inline double ref_halve(double *y, size_t n) { /* a power of two */
    size_t i;
    for (n /= 2; n; n /= 2)
        for (i = 0; i < n; i++)
            y[i] += y[i + n];
    return y[0];
}

/* Of a chunk, from the sums of its parts. */
static inline double ref_sum_chunk(const double *parts, size_t n) {
    double y[32] = {0};
    size_t i;
    for (i = 0; i < n; i++)
        y[i] = parts[i];
    return ref_halve(y, 32);
}

/* Of an array, from the sums of its chunks. */
static inline double ref_sum_chunks(const double *chunks, size_t n) {
    double lane[256] = {0};
    size_t i;
    for (i = 0; i < n; i++)
        lane[i % 256] += chunks[i];
    return ref_halve(lane, 256);
}

static inline double ref_squares_chunk(const float *u, size_t n) {
    double part[32];
    size_t i, parts = 0;
    for (i = 0; i < n; i += 2048)
        part[parts++] = ref_squares_part(u + i, n - i < 2048 ? n - i : 2048);
    return ref_sum_chunk(part, parts);
}

static inline double ref_sum(const float *x, size_t n) {
    double total, part[32], *chunks = (double *)malloc((n / 65536 + 1) * sizeof *chunks);
    size_t i, parts = 0, c = 0;
    if (!chunks) abort();
    for (i = 0; i < n; i += 2048) {
        part[parts++] = (double)ref_sum_part(x + i, n - i < 2048 ? n - i : 2048);
        if (parts < 32 && n - i > 2048) continue;
        chunks[c++] = ref_sum_chunk(part, parts);
        parts = 0;
    }
    total = ref_sum_chunks(chunks, c);
    free(chunks);
    return total;
}

/* Of a column: x[0], x[stride], ... */
static inline double ref_sum_column(const float *x, size_t rows, size_t stride) {
    double lane[8] = {0};
    size_t r, k;
    for (r = 0; r < rows; r += 32) {
        float part = 0.0f;
        for (k = r; k < r + 32 && k < rows; k++)
            part = ref_add(part, x[k * stride]);
        lane[r / 32 % 8] += (double)part;
    }
    return ref_halve(lane, 8);
}

/* ---- one update, as amp.h states it under >>step --------------------------------------------------------------- */

static inline float ref_sub(float a, float b) {
    ref_vf r = a - b;
    return r;
}
static inline float ref_div(float a, float b) {
    ref_vf r = a / b;
    return r;
}
static inline float ref_sqrt(float a) {
    ref_vf r = sqrtf(a);
    return r;
}

/* Does the context multiply FP8 without AMP_GEMM_EMULATE? GPUs before sm_89 do not. */
static inline int ref_has_f8(amp_ctx *ctx) {
    char text[400];
    amp_gemm_desc g = AMP_ZERO;
    g.m = g.n = g.k = 16;
    g.trans_b = 1;
    g.a = amp_arr((void *)(uintptr_t)4096, AMP_F8E4M3); /* looked at by nobody */
    g.b = amp_arr((void *)(uintptr_t)8192, AMP_F8E4M3);
    g.d = amp_arr((void *)(uintptr_t)16384, AMP_F16);
    return amp_gemm_explain(ctx, text, sizeof text, &g) == AMP_OK;
}
/* The unit of the products' bound: Tensor Cores cut off instead of rounding. */
static inline double ref_eps(const t_run *t) { return ldexp(1.0, t->place->kind == T_KIND_CUDA ? -23 : -24); }
/* a * b + c, rounded once: the C library's. Where that rounds twice (mingw, zig) the sum is first rounded to odd. */
static inline float ref_fmaf(float a, float b, float c) {
#if defined(_WIN32) || defined(REF_OWN_FMAF)
    double p = (double)a * b, s = p + c, back = s - p, error = (p - (s - back)) + (c - back);
    uint64_t u;
    memcpy(&u, &s, sizeof u);
    if (!(u & 1u) && (error > 0.0 || error < 0.0)) u += (error > 0.0) == (s > 0.0) ? 1u : (uint64_t)-1;
    memcpy(&s, &u, sizeof s);
    return (float)s;
#else
    return fmaf(a, b, c);
#endif
}
/* The sum over k of an ordered product, as >>numerics gives it. */
static inline float ref_ordered_sum(const float *a, const float *b, size_t k) {
    float total = 0.0f, sum;
    size_t i, j;
    for (i = 0; i < k; i += 256, total = i > 256 ? ref_add(total, sum) : sum)
        for (sum = 0.0f, j = i; j < k && j < i + 256; j++)
            sum = ref_fmaf(a[j], b[j], sum);
    return total;
}
static inline double ref_power(double beta, uint64_t t) { /* repeated squaring */
    volatile double r = 1.0, b = beta;
    for (; t; t /= 2) {
        if (t % 2) r = r * b;
        b = b * b;
    }
    return r;
}

typedef struct ref_rule { /* a desc with its defaults filled in */
    amp_optimizer optimizer;
    float lr, beta1, beta2, eps, weight_decay, momentum, dampening, clip_value;
    int nesterov, no_decay;
} ref_rule;

static inline float ref_clamp(float u, float limit) {
    if (limit > 0.0f && u > limit) return limit;
    if (limit > 0.0f && u < -limit) return -limit;
    return u;
}

typedef struct ref_consts { /* computed once per step, in double */
    float step, rsqrt, decay, one_beta1, one_beta2, one_dampening;
} ref_consts;

static inline ref_consts ref_consts_of(const ref_rule *r, uint64_t t) {
    volatile double bc1 = 1.0 - ref_power((double)r->beta1, t);
    volatile double bc2 = 1.0 - ref_power((double)r->beta2, t);
    volatile double step = (double)r->lr / bc1;
    volatile double root = sqrt(bc2);
    volatile double rsqrt = 1.0 / root;
    volatile double decayed = (double)r->lr * (double)r->weight_decay;
    ref_consts c;
    c.step = (float)step;
    c.rsqrt = (float)rsqrt;
    c.decay = (float)(1.0 - decayed);
    c.one_beta1 = (float)(1.0 - (double)r->beta1);
    c.one_beta2 = (float)(1.0 - (double)r->beta2);
    c.one_dampening = (float)(1.0 - (double)r->dampening);
    return c;
}

/* u is g / scale, already multiplied by the clip coefficient; t is the number of steps with this one. */
static inline void ref_update(
    const ref_rule *r, const ref_consts *c, uint64_t t, float u, float *w, float *m, float *v) {
    u = ref_clamp(u, r->clip_value);
    if (r->optimizer == AMP_LION) {
        float way = ref_add(ref_mul(r->beta1, *m), ref_mul(c->one_beta1, u));
        float w1 = r->no_decay ? *w : ref_mul(*w, c->decay);
        if (way > 0.0f) w1 = ref_sub(w1, r->lr);
        if (way < 0.0f) w1 = ref_add(w1, r->lr);
        *w = w1;
        *m = ref_add(ref_mul(r->beta2, *m), ref_mul(c->one_beta2, u));
        return;
    }
    if (r->optimizer != AMP_ADAMW && r->weight_decay != 0.0f && !r->no_decay)
        u = ref_add(u, ref_mul(r->weight_decay, *w));
    if (r->optimizer == AMP_SGD) {
        float d = u;
        if (r->momentum != 0.0f) {
            *m = t == 1 ? u : ref_add(ref_mul(r->momentum, *m), ref_mul(c->one_dampening, u));
            d = r->nesterov ? ref_add(u, ref_mul(r->momentum, *m)) : *m;
        }
        *w = ref_sub(*w, ref_mul(r->lr, d));
    } else {
        float w1 = *w;
        if (r->optimizer == AMP_ADAMW && !r->no_decay) w1 = ref_mul(w1, c->decay);
        *m = ref_add(ref_mul(r->beta1, *m), ref_mul(c->one_beta1, u));
        *v = ref_add(ref_mul(r->beta2, *v), ref_mul(c->one_beta2, ref_mul(u, u)));
        *w = ref_sub(w1, ref_mul(c->step, ref_div(*m, ref_add(ref_mul(ref_sqrt(*v), c->rsqrt), r->eps))));
    }
}

/* The same rule in double: what an optimizer without rounding would do. */
static inline void ref_update_f64(const ref_rule *r, uint64_t t, double u, double *w, double *m, double *v) {
    if (r->clip_value > 0.0f) u = fmin(fmax(u, -(double)r->clip_value), (double)r->clip_value);
    if (r->optimizer == AMP_LION) {
        double way = (double)r->beta1 * *m + (1.0 - (double)r->beta1) * u;
        if (!r->no_decay) *w *= 1.0 - (double)r->lr * (double)r->weight_decay;
        if (way > 0.0) *w -= (double)r->lr;
        if (way < 0.0) *w += (double)r->lr;
        *m = (double)r->beta2 * *m + (1.0 - (double)r->beta2) * u;
        return;
    }
    if (r->optimizer != AMP_ADAMW && !r->no_decay) u += (double)r->weight_decay * *w;
    if (r->optimizer == AMP_SGD) {
        double d = u;
        if (r->momentum != 0.0f) {
            *m = t == 1 ? u : (double)r->momentum * *m + (1.0 - (double)r->dampening) * u;
            d = r->nesterov ? u + (double)r->momentum * *m : *m;
        }
        *w -= (double)r->lr * d;
    } else {
        double bc1 = 1.0 - pow((double)r->beta1, (double)t), bc2 = 1.0 - pow((double)r->beta2, (double)t);
        if (r->optimizer == AMP_ADAMW && !r->no_decay) *w *= 1.0 - (double)r->lr * (double)r->weight_decay;
        *m = (double)r->beta1 * *m + (1.0 - (double)r->beta1) * u;
        *v = (double)r->beta2 * *v + (1.0 - (double)r->beta2) * u * u;
        *w -= (double)r->lr / bc1 * (*m / (sqrt(*v) / sqrt(bc2) + (double)r->eps));
    }
}

/* ---- products -------------------------------------------------------------------------------------------------- */

static inline double ref_gelu(double x) {
    return 0.5 * x * (1.0 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
}
static inline double ref_gelu_grad(double x) {
    double th = tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x));
    return 0.5 * (1.0 + th) + 0.5 * x * (1.0 - th * th) * 0.79788456080286535588 * (1.0 + 3 * 0.044715 * x * x);
}
static inline double ref_act(amp_act act, double x) {
    switch (act) {
    case AMP_RELU: return x > 0.0 ? x : 0.0;
    case AMP_GELU: return ref_gelu(x);
    case AMP_GELU_ERF: return 0.5 * x * erfc(-x * 0.70710678118654752440);
    case AMP_SILU: return x / (1.0 + exp(-x));
    case AMP_TANH: return tanh(x);
    case AMP_SIGMOID: return 1.0 / (1.0 + exp(-x));
    default: return x;
    }
}
static inline double ref_act_grad(amp_act act, double x) {
    const double s = 1.0 / (1.0 + exp(-x));
    switch (act) {
    case AMP_RELU: return x > 0.0 ? 1.0 : 0.0;
    case AMP_GELU: return ref_gelu_grad(x);
    case AMP_GELU_ERF: return 0.5 * erfc(-x * 0.70710678118654752440) + x * exp(-0.5 * x * x) * 0.39894228040143267794;
    case AMP_SILU: return s + x * s * (1.0 - s);
    case AMP_TANH: return 1.0 - tanh(x) * tanh(x);
    case AMP_SIGMOID: return s * (1.0 - s);
    default: return 1.0;
    }
}

#endif
