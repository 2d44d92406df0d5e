/* exhaustive.c - every float. Takes minutes; not a part of `make test`.

   exhaustive [--formats] [--split] [--math] [--threads N] [--stride N] [--mxcsr HEX]

   formats  all 2^32 floats to f16, bf16, e4m3 and e5m2, with and without saturation: the scalar functions and amp_cast
            on every code path of this machine against ref.h's table of numbers (a float belongs to the pattern between
            whose neighbouring midpoints it lies), f16 also against the processor's own conversion; all 2^16 and 2^8
            patterns back
   split    every float to 16 + 16 bits and back (amp_split_pack). FP16: exact where the half is normal or the float
            is zero, and |r| <= 2^14; otherwise within 2^-40. 65520 and more is a status; NaN stays NaN. BF16: exact,
            except that the float just between two copies goes to the lower one and moves by one ulp. Then an update
            that changes nothing, on each path in turn: the same weights and copies
   math     exp, log, GELU and its derivative of every float against libm in double; then the terms of a softmax, GELU
            and its derivative on every code path: the bits of the scalar functions (which emulate fused multiply-add
            where the compiler has no instruction for it)

   --stride N takes every N-th block of 2^20 floats. --mxcsr sets the control word around amp's calls (8040: FTZ + DAZ,
   6000: toward zero).

   Last line: N passed, N failed, N skipped. Exit status 1 on a failure. */
#if !defined(_POSIX_C_SOURCE) && !defined(_GNU_SOURCE)
#  define _POSIX_C_SOURCE 200112L
#endif
#define AMP_STATIC /* the tables of kernels are looked at, too */
#define AMP_IMPLEMENTATION
#include "../amp.h"

/* needs the test harness for its includes only: no check is linked here */
#include "ref.h"

#include <stdarg.h>
#include <time.h>
#if defined(__unix__) && !defined(AMP_NO_THREADS)
#  include <pthread.h>
#  include <unistd.h>
#  define HAVE_THREADS 1
#else
#  define HAVE_THREADS 0
#endif
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__)) && !defined(__TINYC__)
#  include <immintrin.h>
#  define HAVE_F16C 1
#else
#  define HAVE_F16C 0
#endif

#define BLOCK       (1u << 20)
#define BLOCKS      4096u
#define MAX_THREADS 64
#define MAX_SHOWN   3 /* wrong results of one kind that are printed */

#define BITS_ONE   0x3f800000u
#define BITS_INF   0x7f800000u
#define BITS_MINUS 0x80000000u /* the sign, and -0 */

static struct {
    int formats, split, math, threads;
    uint32_t stride, mxcsr, use_mxcsr;
} options = {0, 0, 0, 0, 1, 0, 0};

static const amp_dtype formats[4] = {AMP_F16, AMP_BF16, AMP_F8E4M3, AMP_F8E5M2};
#define N_PATHS 5
static const struct {
    const char *name;
    amp_simd simd;
} paths[N_PATHS] = {
    {"scalar", AMP_SIMD_SCALAR},
    {"sse2", AMP_SIMD_SSE2},
    {"avx2", AMP_SIMD_AVX2},
    {"avx512", AMP_SIMD_AVX512},
    {"neon", AMP_SIMD_NEON},
};

typedef struct error { /* the largest of many, and the float that has it */
    double size;
    uint32_t at;
} error;

typedef struct worker {
    int id, step; /* takes blocks id, id + step, ... */
    int broken;   /* a verb failed */
    int has_path[N_PATHS], has_hardware;
    uint64_t floats;
    uint64_t wrong_scalar[4][2], wrong_path[N_PATHS][4][2], wrong_hardware; /* formats: [dtype][saturating] */
    uint64_t split_half[2], split_back[2], split_status, split_path[N_PATHS][2], exact[2], near[2]; /* [dtype] */
    double split_error;
    error exp_normal, exp_subnormal, log, gelu, gelu_grad;
    uint64_t wrong_special, math_path[N_PATHS][3]; /* terms, GELU, its derivative */
} worker;

static void *need(size_t bytes) {
    void *p = malloc(bytes);
    if (p) return p;
    fprintf(stderr, "exhaustive: no memory\n");
    exit(2);
}

/* A context on this path, with one thread. NULL: this machine or build lacks the path. */
static amp_ctx *path_context(size_t p) {
    amp_ctx *ctx = NULL;
    amp_cpu_desc d = AMP_ZERO;
    d.threads = 1;
    d.simd = paths[p].simd;
    return amp_cpu_create(&ctx, &d) == AMP_OK ? ctx : NULL;
}

static uint32_t first_block(const worker *w) { return (uint32_t)w->id * options.stride; }
static uint32_t next_block(const worker *w, uint32_t b) { return b + (uint32_t)w->step * options.stride; }

static void fill_block(float *x, uint32_t first) {
    uint32_t i;
    for (i = 0; i < BLOCK; i++)
        x[i] = ref_f32(first + i);
}

static void enter(void) {
#if defined(__SSE2__)
    if (options.use_mxcsr) {
        uint32_t u = options.mxcsr | 0x1f80u;
        __asm__ volatile("ldmxcsr %0" : : "m"(u));
    }
#endif
}
static void leave(void) {
#if defined(__SSE2__)
    uint32_t u = 0x1f80u;
    if (options.use_mxcsr) __asm__ volatile("ldmxcsr %0" : : "m"(u));
#endif
}

#if HAVE_F16C
__attribute__((target("avx,f16c"))) static void hardware_f16(uint16_t *to, const float *from, size_t n) {
    size_t i;
    for (i = 0; i < n; i += 8)
        _mm_storeu_si128(
            (__m128i *)(void *)(to + i), _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
}
static int have_hardware(void) { return __builtin_cpu_supports("avx") && __builtin_cpu_supports("avx2"); }
#endif

/* The first float (bits) that rounds to pattern c + 1: the midpoint, or the float after it when c is even and keeps
   the tie. */
static uint32_t threshold(const ref_format *f, uint32_t c) {
    return ref_f32_bits((float)(0.5 * (ref_value(f, c) + ref_value(f, c + 1)))) + (c % 2 ? 0u : 1u);
}

/* What the floats `first` .. `first` + BLOCK must become. The midpoints are exact floats, so no arithmetic is done on
   the floats. */
static void expected(uint32_t first, amp_dtype type, int saturate, void *out) {
    ref_format f = ref_format_of(type);
    uint32_t a = first & 0x7fffffffu, sign = (first >> 31) << (f.bits - 1), end = a + BLOCK, c = 0, next, p;
    uint8_t *o8 = (uint8_t *)out;
    uint16_t *o16 = (uint16_t *)out;
    size_t i = 0;
    if (a < 0x7f800000u) {
        double v = (double)ref_f32(a);
        c = ref_floor(&f, v);
        if (c > f.max + 1) c = f.max + 1;
        if (c <= f.max && a >= threshold(&f, c)) c++;
    }
    while (a < end) {
        if (a > 0x7f800000u) { /* NaN: quiet, upper payload kept; E4M3 has one */
            p = f.over;
            if (f.has_inf) p |= (1u << (f.mant - 1)) | ((a >> (23 - f.mant)) & ((1u << f.mant) - 1u));
            next = a + 1;
        } else if (c <= f.max) {
            p = c;
            next = threshold(&f, c);
            c++;
        } else {
            p = saturate ? f.max : f.over;
            next = 0x7f800001u;
        }
        if (next > end) next = end;
        for (; a < next; a++, i++) {
            if (f.bits == 8)
                o8[i] = (uint8_t)(sign | p);
            else
                o16[i] = (uint16_t)(sign | p);
        }
    }
}

static void scalar(const float *x, amp_dtype type, int saturate, void *out) {
    size_t i;
    uint8_t *o8 = (uint8_t *)out;
    uint16_t *o16 = (uint16_t *)out;
    enter();
    if (type == AMP_F16 && !saturate)
        for (i = 0; i < BLOCK; i++)
            o16[i] = amp_f16_from_f32(x[i]).bits;
    else if (type == AMP_BF16 && !saturate)
        for (i = 0; i < BLOCK; i++)
            o16[i] = amp_bf16_from_f32(x[i]).bits;
    else if (type == AMP_F8E4M3)
        for (i = 0; i < BLOCK; i++)
            o8[i] = saturate ? amp_f8e4m3_from_f32_sat(x[i]).bits : amp_f8e4m3_from_f32(x[i]).bits;
    else if (type == AMP_F8E5M2)
        for (i = 0; i < BLOCK; i++)
            o8[i] = saturate ? amp_f8e5m2_from_f32_sat(x[i]).bits : amp_f8e5m2_from_f32(x[i]).bits;
    leave();
}

static int has_saturating_function(size_t d) { return formats[d] == AMP_F8E4M3 || formats[d] == AMP_F8E5M2; }

static void count_wrong(
    uint64_t *wrong, const char *who, amp_dtype type, int saturate, uint32_t first, const void *got, const void *want) {
    size_t size = amp_dtype_size(type), i;
    if (memcmp(got, want, BLOCK * size) == 0) return;
    for (i = 0; i < BLOCK; i++) {
        uint16_t g = 0, w = 0;
        if (size == 1) {
            g = ((const uint8_t *)got)[i];
            w = ((const uint8_t *)want)[i];
        } else {
            g = ((const uint16_t *)got)[i];
            w = ((const uint16_t *)want)[i];
        }
        if (g == w) continue;
        if (++*wrong <= MAX_SHOWN)
            printf("%s%s: %s from %08x is %x, should be %x\n", who, saturate ? ", saturating" : "",
                amp_dtype_name(type), first + (uint32_t)i, g, w);
    }
}

/* One block to one format, on every path. */
static void format_block(worker *w, amp_ctx **ctx, uint32_t first, size_t d, int saturate, const float *x) {
    static const char scalar_name[] = "scalar function";
    amp_cast_desc desc = AMP_ZERO;
    void *want = need(BLOCK * 2u), *got = need(BLOCK * 2u);
    size_t p;
    desc.saturate = (uint32_t)saturate;
    expected(first, formats[d], saturate, want);
    if (!saturate || has_saturating_function(d)) {
        scalar(x, formats[d], saturate, got);
        count_wrong(&w->wrong_scalar[d][saturate], scalar_name, formats[d], saturate, first, got, want);
    }
    for (p = 0; p < N_PATHS; p++) {
        amp_status st;
        if (!ctx[p]) continue;
        memset(got, 0x5a, BLOCK * 2u);
        enter();
        st = amp_cast(ctx[p], amp_arr(got, formats[d]), amp_arr(x, AMP_F32), BLOCK, saturate ? &desc : NULL);
        leave();
        if (st != AMP_OK) w->broken = 1;
        count_wrong(&w->wrong_path[p][d][saturate], paths[p].name, formats[d], saturate, first, got, want);
    }
#if HAVE_F16C
    if (formats[d] == AMP_F16 && !saturate && have_hardware()) {
        w->has_hardware = 1;
        hardware_f16((uint16_t *)got, x, BLOCK);
        count_wrong(&w->wrong_hardware, "the processor", formats[d], saturate, first, got, want);
    }
#endif
    free(want);
    free(got);
}

static void do_formats(worker *w) {
    float *x = (float *)need(BLOCK * 4u);
    amp_ctx *ctx[N_PATHS];
    uint32_t b;
    size_t d, p;
    for (p = 0; p < N_PATHS; p++) {
        ctx[p] = path_context(p);
        w->has_path[p] = ctx[p] != NULL;
    }
    for (b = first_block(w); b < BLOCKS; b = next_block(w, b)) {
        fill_block(x, b * BLOCK);
        w->floats += BLOCK;
        for (d = 0; d < 4; d++) {
            format_block(w, ctx, b * BLOCK, d, 0, x);
            format_block(w, ctx, b * BLOCK, d, 1, x);
        }
    }
    for (p = 0; p < N_PATHS; p++)
        amp_ctx_destroy(ctx[p]);
    free(x);
}

/* ---- 16 + 16 bits ---- */

static const amp_dtype split_types[2] = {AMP_F16, AMP_BF16};

static int is_infinite(uint32_t half) { return (half & 0x7c00u) == 0x7c00u; } /* or NaN: of an FP16 number */
static int is_subnormal(uint32_t half) { return (half & 0x7c00u) == 0; }      /* or zero */

typedef enum verdict { WRONG, NEAR, SAME } verdict;
static verdict same_or_wrong(int same) { return same ? SAME : WRONG; }

/* One float in 16 + 16 bits, against the copy that the table says. SAME: it came back; NEAR: not quite, as allowed. */
static verdict split_one(worker *w, uint32_t u, uint32_t pair, uint32_t half, amp_dtype t) {
    float x = ref_f32(u), back = amp_split_unpack(pair, t);
    uint32_t b = ref_f32_bits(back), magnitude = u & ~BITS_MINUS;
    int32_t r = (int32_t)(pair >> 16) - (pair >> 31 ? 65536 : 0);
    double e;
    if (magnitude > BITS_INF) return same_or_wrong(amp_is_nan(back));
    if (t == AMP_BF16) {
        int between_two_copies = (u & 0x1ffffu) == 0x8000u;
        if (between_two_copies && b == u - 1) return NEAR;
        return same_or_wrong(b == u);
    }
    if (is_infinite(half)) {
        int too_large = magnitude >= 0x477ff000u; /* 65520 */
        return same_or_wrong(too_large && b == ((u & BITS_MINUS) | BITS_INF));
    }
    if (r > 16384 || r < -16384) return WRONG;
    if (!is_subnormal(half) || magnitude == 0) return same_or_wrong(b == u);
    e = fabs((double)back - (double)x);
    if (e > w->split_error) w->split_error = e;
    if (e > 9.094947017729282e-13) return WRONG; /* 2^-40 */
    return b == u ? SAME : NEAR;
}

static amp_params *split_set(amp_ctx *ctx, amp_dtype t) {
    amp_params *p = NULL;
    amp_params_desc d = AMP_ZERO;
    amp_param_desc e = AMP_ZERO;
    d.model = t;
    d.master = AMP_MASTER_SPLIT;
    d.moments = AMP_NONE;
    e.count = BLOCK;
    if (amp_params_create(&p, ctx, &d) == AMP_OK && amp_params_add(p, &e) == AMP_OK && amp_params_commit(p) == AMP_OK)
        return p;
    amp_params_destroy(p);
    return NULL;
}

/* The pairs of a block: low[] gets their lower halves. Returns 1 if FP16 cannot hold one of the floats. */
static int split_pairs(worker *w, uint32_t first, size_t d, const uint16_t *half, uint16_t *low) {
    amp_dtype type = split_types[d];
    const char *name = amp_dtype_name(type);
    int refused = 0;
    uint32_t i;
    for (i = 0; i < BLOCK; i++) {
        uint32_t u = first + i, pair = amp_split_pack(ref_f32(u), type), copy = pair & 0xffffu;
        low[i] = (uint16_t)(pair >> 16);
        if (copy != half[i] && ++w->split_half[d] <= MAX_SHOWN)
            printf("%s copy of %08x: %04x, should be %04x\n", name, u, copy, half[i]);
        switch (split_one(w, u, pair, half[i], type)) {
        case SAME: w->exact[d]++; break;
        case NEAR: w->near[d]++; break;
        case WRONG:
            if (++w->split_back[d] <= MAX_SHOWN) printf("%s split of %08x: %08x does not hold it\n", name, u, pair);
            break;
        }
        refused |= type == AMP_F16 && is_infinite(half[i]);
    }
    return refused;
}

/* The same number in two pairs. Where the half is subnormal, a number may have two of them. */
static int same_number(amp_dtype type, uint16_t half, uint16_t low, uint16_t new_half, uint16_t new_low) {
    float was = amp_split_unpack(half | (uint32_t)low << 16, type);
    float is = amp_split_unpack(new_half | (uint32_t)new_low << 16, type);
    if (amp_is_nan(was)) return amp_is_nan(is);
    if (ref_f32_bits(was) != ref_f32_bits(is)) return 0;
    return new_half == half || (type == AMP_F16 && is_subnormal(half));
}

/* A step with a learning rate of 0 on these pairs leaves them as they are. */
static void split_update(worker *w, amp_params *set, size_t p, size_t d, const uint16_t *half, const uint16_t *low) {
    uint16_t *h = (uint16_t *)amp_param_model(set, 0).data;
    uint16_t *r = (uint16_t *)amp_param_get(set, 0).low.data;
    amp_step_desc s = AMP_ZERO;
    uint32_t i;
    memcpy(h, half, BLOCK * 2u);
    memcpy(r, low, BLOCK * 2u);
    s.lr = AMP_NONE;
    s.optimizer = AMP_SGD;
    enter();
    if (amp_step(set, NULL, &s) != AMP_OK) w->broken = 1;
    leave();
    if (memcmp(h, half, BLOCK * 2u) == 0 && memcmp(r, low, BLOCK * 2u) == 0) return;
    for (i = 0; i < BLOCK; i++)
        if (!same_number(split_types[d], half[i], low[i], h[i], r[i]) && ++w->split_path[p][d] <= MAX_SHOWN)
            printf("%s update on %s: %04x %04x became %04x %04x\n", amp_dtype_name(split_types[d]), paths[p].name,
                half[i], low[i], h[i], r[i]);
}

/* Writing a block of floats stores the same pairs, or is refused if one of them does not fit. */
static void split_write(
    worker *w, amp_params *set, const float *x, const uint16_t *half, const uint16_t *low, int refused) {
    int written = amp_param_write(set, 0, x) == AMP_OK;
    if (written == refused)
        w->split_status++;
    else if (written && memcmp(amp_param_model(set, 0).data, half, BLOCK * 2u) != 0)
        w->split_status++;
    else if (written && memcmp(amp_param_get(set, 0).low.data, low, BLOCK * 2u) != 0)
        w->split_status++;
}

static void do_split(worker *w) {
    float *x = (float *)need(BLOCK * 4u);
    uint16_t *half = (uint16_t *)need(BLOCK * 2u), *low = (uint16_t *)need(BLOCK * 2u);
    amp_ctx *ctx[N_PATHS];
    amp_params *set[N_PATHS][2];
    size_t here[N_PATHS], n_here = 0, d, p; /* the paths of this machine */
    uint32_t b;
    memset(set, 0, sizeof set);
    for (p = 0; p < N_PATHS; p++) {
        ctx[p] = path_context(p);
        w->has_path[p] = ctx[p] != NULL;
        if (!ctx[p]) continue;
        here[n_here++] = p;
        for (d = 0; d < 2; d++) {
            set[p][d] = split_set(ctx[p], split_types[d]);
            if (!set[p][d]) w->broken = 1;
        }
    }
    for (b = first_block(w); b < BLOCKS && n_here && !w->broken; b = next_block(w, b)) {
        fill_block(x, b * BLOCK);
        w->floats += BLOCK;
        p = here[b / options.stride % n_here];
        for (d = 0; d < 2; d++) {
            int refused;
            expected(b * BLOCK, split_types[d], 0, half);
            refused = split_pairs(w, b * BLOCK, d, half, low);
            split_write(w, set[p][d], x, half, low, refused);
            split_update(w, set[p][d], p, d, half, low);
        }
    }
    for (p = 0; p < N_PATHS; p++) {
        amp_params_destroy(set[p][0]);
        amp_params_destroy(set[p][1]);
        amp_ctx_destroy(ctx[p]);
    }
    free(x);
    free(half);
    free(low);
}

/* ---- exp, log, GELU ---- */

static double ulps(double got, double want) { /* for normal results */
    int e;
    (void)frexp(want, &e);
    return fabs(got - want) / ldexp(1.0, e - 24);
}

static void keep_worst(error *worst, double size, uint32_t at) { /* NaN is worse than any number */
    if (size <= worst->size || ref_is_nan(worst->size)) return;
    worst->size = size;
    worst->at = at;
}

/* Each returns 1 if the result is wrong where only one result is right. */
static int exp_is_wrong(worker *w, uint32_t u) {
    float x = ref_f32(u), y = amp_exp(x);
    double want;
    if (x >= 88.72284f) return ref_f32_bits(y) != BITS_INF;
    if (x < -103.9721f) return ref_f32_bits(y) != 0;
    want = exp((double)x);
    if (want >= 1.1754943508222875e-38)
        keep_worst(&w->exp_normal, ulps((double)y, want), u);
    else
        keep_worst(&w->exp_subnormal, fabs((double)y - want) / 1.401298464324817e-45, u);
    return 0;
}

static int log_is_wrong(worker *w, uint32_t u) {
    float x = ref_f32(u), y = amp_log(x);
    if (u << 1 == 0) return ref_f32_bits(y) != (BITS_MINUS | BITS_INF);
    if (u & BITS_MINUS) return !amp_is_nan(y);
    if (u == BITS_INF) return ref_f32_bits(y) != BITS_INF;
    if (u == BITS_ONE) return ref_f32_bits(y) != 0;
    keep_worst(&w->log, ulps((double)y, log((double)x)), u);
    return 0;
}

/* GELU far from 0 is x/2, x or 0 and its derivative 0 or 1: no need of tanh, which is slow. */
static double gelu_error(double x, double got) {
    double size = fabs(x), want, e;
    if (size >= 1e-30 && size <= 1e4) return fabs(got - ref_gelu(x)) / size;
    if (size < 1.0)
        want = 0.5 * x;
    else
        want = x < 0 ? 0.0 : x;
    e = fabs(got - want) - 1.401298464324817e-45;
    return e > 0 ? e / size : 0;
}
static double gelu_grad_error(double x, double got) {
    double slope = x < 0 ? 0.0 : 1.0;
    return fabs(got - (fabs(x) > 1e4 ? slope : ref_gelu_grad(x)));
}

static int gelu_is_wrong(worker *w, uint32_t u) {
    float x = ref_f32(u), y = amp_gelu(x), dy = amp_gelu_grad(x);
    if (u == BITS_INF) return ref_f32_bits(y) != BITS_INF || dy != 1.0f;
    if (u == (BITS_MINUS | BITS_INF)) return y != 0.0f || dy != 0.0f;
    keep_worst(&w->gelu, gelu_error((double)x, (double)y), u);
    keep_worst(&w->gelu_grad, gelu_grad_error((double)x, (double)dy), u);
    return 0;
}

static int nan_is_lost(float nan) {
    return !amp_is_nan(amp_exp(nan)) || !amp_is_nan(amp_log(nan)) || !amp_is_nan(amp_gelu(nan)) ||
        !amp_is_nan(amp_gelu_grad(nan));
}

#define PIECE 1024u /* floats that a kernel takes at a time */

/* Equal, or both NaN. */
static uint64_t differ(const float *a, const float *b, size_t n) {
    uint64_t wrong = 0;
    size_t i;
    for (i = 0; i < n; i++)
        wrong += ref_f32_bits(a[i]) != ref_f32_bits(b[i]) && !(amp_is_nan(a[i]) && amp_is_nan(b[i]));
    return wrong;
}
/* The floats from `first` on through the kernels of each path, and through the scalar functions. */
static void math_on_paths(worker *w, uint32_t first, const ampi_kernels *k) {
    float x[PIECE], want[3][PIECE], got[3][PIECE];
    int terms = (first & BITS_MINUS) || first > BITS_INF; /* of numbers that are not above 0, and NaN */
    size_t i, p;
    for (i = 0; i < PIECE; i++) {
        x[i] = ref_f32(first + (uint32_t)i);
        want[0][i] = terms ? ampi_scalar_exp_term(x[i]) : 0.0f;
        want[1][i] = amp_gelu(x[i]);
        want[2][i] = amp_gelu_grad(x[i]);
    }
    for (p = 0; p < N_PATHS; p++) {
        if (!w->has_path[p]) continue;
        for (i = 0; i < PIECE; i++) {
            got[0][i] = terms ? x[i] : 0.0f;
            got[1][i] = x[i];
            got[2][i] = 1.0f;
        }
        if (terms) k[p].exps(got[0], PIECE, 0.0f);
        k[p].act(got[1], got[1], PIECE, AMP_GELU);
        k[p].act_grad(got[2], got[2], x, PIECE, AMP_GELU);
        for (i = 0; i < 3; i++)
            w->math_path[p][i] += differ(got[i], want[i], PIECE);
    }
}

static void do_math(worker *w) {
    ampi_kernels kernels[N_PATHS];
    uint32_t b, i;
    size_t p;
    for (p = 0; p < N_PATHS; p++)
        w->has_path[p] = ampi_pick_kernels(&kernels[p], paths[p].simd);
    for (b = first_block(w); b < BLOCKS; b = next_block(w, b)) {
        for (i = 0; i < BLOCK; i += PIECE)
            math_on_paths(w, b * BLOCK + i, kernels);
        w->floats += BLOCK;
        for (i = 0; i < BLOCK; i++) {
            uint32_t u = b * BLOCK + i;
            if ((u & ~BITS_MINUS) > BITS_INF) {
                w->wrong_special += (uint64_t)nan_is_lost(ref_f32(u));
                continue;
            }
            w->wrong_special += (uint64_t)exp_is_wrong(w, u);
            w->wrong_special += (uint64_t)log_is_wrong(w, u);
            w->wrong_special += (uint64_t)gelu_is_wrong(w, u);
        }
    }
}

/* ---- threads, reports ---- */

static void *formats_thread(void *w) {
    do_formats((worker *)w);
    return NULL;
}
static void *split_thread(void *w) {
    do_split((worker *)w);
    return NULL;
}
static void *math_thread(void *w) {
    do_math((worker *)w);
    return NULL;
}

static double now(void) {
#ifdef CLOCK_MONOTONIC
    struct timespec s;
    clock_gettime(CLOCK_MONOTONIC, &s);
    return (double)s.tv_sec + 1e-9 * (double)s.tv_nsec;
#else
    return (double)time(NULL);
#endif
}

static worker workers[MAX_THREADS];

static double run(void *(*fn)(void *)) { /* returns the seconds it took */
    double start = now();
    int i;
    memset(workers, 0, sizeof workers);
    for (i = 0; i < options.threads; i++) {
        workers[i].id = i;
        workers[i].step = options.threads;
    }
#if HAVE_THREADS
    {
        pthread_t thread[MAX_THREADS];
        for (i = 1; i < options.threads; i++)
            if (pthread_create(&thread[i], NULL, fn, &workers[i]) != 0) {
                fprintf(stderr, "no thread\n");
                exit(2);
            }
        fn(&workers[0]);
        for (i = 1; i < options.threads; i++)
            pthread_join(thread[i], NULL);
    }
#else
    for (i = 0; i < options.threads; i++)
        fn(&workers[i]);
#endif
    return now() - start;
}

static unsigned passed, failed, skipped;
static void result(int ok, uint64_t wrong, const char *format, ...) {
    va_list args;
    if (ok) {
        passed++;
        return;
    }
    failed++;
    printf("FAILED ");
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf(": %llu wrong\n", (unsigned long long)wrong);
}
static void skip(const char *what) {
    skipped++;
    printf("skipped: %s\n", what);
}

/* All patterns back to float, on one path. */
static void back_on(amp_ctx *ctx, const char *path, amp_dtype type) {
    static uint16_t in[65536];
    static float out[65536];
    size_t n = (size_t)1 << ref_format_of(type).bits, i;
    uint64_t wrong = 0;
    amp_status st;
    for (i = 0; i < n; i++)
        ampi_store_pattern(in, type, i, (uint32_t)i);
    enter();
    st = amp_cast(ctx, amp_arr(out, AMP_F32), amp_arr(in, type), n, NULL);
    leave();
    for (i = 0; i < n; i++)
        wrong += st != AMP_OK || ref_f32_bits(out[i]) != ref_decode((uint32_t)i, type);
    result(wrong == 0, wrong, "%s to f32, %s", amp_dtype_name(type), path);
}

static void back(void) {
    size_t d, p;
    for (p = 0; p < N_PATHS; p++) {
        amp_ctx *ctx = path_context(p);
        for (d = 0; d < 4 && ctx; d++)
            back_on(ctx, paths[p].name, formats[d]);
        amp_ctx_destroy(ctx);
    }
    printf("all 65536 and 256 patterns back to f32 on every path\n");
}

/* The counts of all threads in one. */
static worker sum_of_workers(void) {
    worker sum = workers[0];
    size_t d, p;
    int i, sat;
    for (i = 1; i < options.threads; i++) {
        const worker *w = &workers[i];
        sum.broken |= w->broken;
        sum.floats += w->floats;
        sum.wrong_hardware += w->wrong_hardware;
        sum.wrong_special += w->wrong_special;
        sum.split_status += w->split_status;
        if (w->split_error > sum.split_error) sum.split_error = w->split_error;
        for (d = 0; d < 4; d++)
            for (sat = 0; sat < 2; sat++) {
                sum.wrong_scalar[d][sat] += w->wrong_scalar[d][sat];
                for (p = 0; p < N_PATHS; p++)
                    sum.wrong_path[p][d][sat] += w->wrong_path[p][d][sat];
            }
        for (d = 0; d < 2; d++) {
            sum.split_half[d] += w->split_half[d];
            sum.split_back[d] += w->split_back[d];
            sum.exact[d] += w->exact[d];
            sum.near[d] += w->near[d];
            for (p = 0; p < N_PATHS; p++)
                sum.split_path[p][d] += w->split_path[p][d];
        }
        for (p = 0; p < N_PATHS; p++)
            for (d = 0; d < 3; d++)
                sum.math_path[p][d] += w->math_path[p][d];
        keep_worst(&sum.exp_normal, w->exp_normal.size, w->exp_normal.at);
        keep_worst(&sum.exp_subnormal, w->exp_subnormal.size, w->exp_subnormal.at);
        keep_worst(&sum.log, w->log.size, w->log.at);
        keep_worst(&sum.gelu, w->gelu.size, w->gelu.at);
        keep_worst(&sum.gelu_grad, w->gelu_grad.size, w->gelu_grad.at);
    }
    if (sum.broken) {
        failed++;
        printf("FAILED: a verb failed\n");
    }
    return sum;
}

static void formats_report(double seconds) {
    worker sum = sum_of_workers();
    size_t d, p;
    int sat;
    for (d = 0; d < 4; d++)
        for (sat = 0; sat < 2; sat++) {
            const char *name = amp_dtype_name(formats[d]), *how = sat ? ", saturating" : "";
            uint64_t wrong = sum.wrong_scalar[d][sat];
            if (!sat || has_saturating_function(d)) result(wrong == 0, wrong, "%s%s, scalar function", name, how);
            for (p = 0; p < N_PATHS; p++) {
                wrong = sum.wrong_path[p][d][sat];
                if (sum.has_path[p]) result(wrong == 0, wrong, "%s%s, amp_cast on %s", name, how, paths[p].name);
            }
        }
    for (p = 0; p < N_PATHS; p++) {
        char what[64];
        snprintf(what, sizeof what, "this machine or build has no %s path", paths[p].name);
        if (!sum.has_path[p]) skip(what);
    }
    if (sum.has_hardware)
        result(sum.wrong_hardware == 0, sum.wrong_hardware, "f16, the processor's own conversion against the table");
    else
        skip("no F16C here");
    printf("%llu floats to f16, bf16, e4m3, e5m2, plain and saturating: %.1f s\n", (unsigned long long)sum.floats,
        seconds);
}

static void split_report(double seconds) {
    worker sum = sum_of_workers();
    size_t d, p;
    for (d = 0; d < 2; d++) {
        const char *name = amp_dtype_name(split_types[d]);
        int all_back = sum.split_back[d] == 0 && sum.exact[d] + sum.near[d] == sum.floats;
        printf("16 + 16 bits, %s: %llu floats come back, %llu near\n", name, (unsigned long long)sum.exact[d],
            (unsigned long long)sum.near[d]);
        result(sum.split_half[d] == 0, sum.split_half[d], "the copy of a %s split is the rounded float", name);
        result(all_back, sum.split_back[d], "a %s split holds the float", name);
        for (p = 0; p < N_PATHS; p++) {
            uint64_t wrong = sum.split_path[p][d];
            if (!sum.has_path[p]) continue;
            result(wrong == 0, wrong, "an update by nothing of %s splits on %s", name, paths[p].name);
        }
    }
    result(sum.split_status == 0, sum.split_status,
        "amp_param_write stores the same pairs, or refuses what FP16 cannot hold");
    printf("%llu floats to 16 + 16 bits, largest error %.6g of 2^-40: %.1f s\n", (unsigned long long)sum.floats,
        sum.split_error / 9.094947017729282e-13, seconds);
}

static void math_report(double seconds) {
    static const char *const names[3] = {"terms of a softmax", "gelu", "derivative of gelu"};
    worker sum = sum_of_workers();
    size_t p, f;
    printf("exp  %.4f ulp at %08x where normal, %.3f of 2^-149 below\n", sum.exp_normal.size, sum.exp_normal.at,
        sum.exp_subnormal.size);
    printf("log  %.4f ulp at %08x\n", sum.log.size, sum.log.at);
    printf("gelu %.3g of |x| at %08x, derivative %.3g at %08x\n", sum.gelu.size, sum.gelu.at, sum.gelu_grad.size,
        sum.gelu_grad.at);
    printf("%llu floats through exp, log, GELU and its derivative: %.1f s\n", (unsigned long long)sum.floats, seconds);
    for (p = 0; p < N_PATHS; p++)
        for (f = 0; f < 3 && sum.has_path[p]; f++)
            result(sum.math_path[p][f] == 0, sum.math_path[p][f], "%s on %s", names[f], paths[p].name);
    result(sum.exp_normal.size <= 1.0, 0, "exp within 1 ulp");
    result(sum.exp_subnormal.size <= 2.0, 0, "exp within two steps where subnormal");
    result(sum.log.size <= 1.5, 0, "log within 1.5 ulp");
    result(sum.gelu.size <= 2.5e-7, 0, "gelu within 2.5e-7 |x|");
    result(sum.gelu_grad.size <= 3e-7, 0, "derivative of gelu within 3e-7");
    result(sum.wrong_special == 0, sum.wrong_special, "NaN, Inf, zero, ends of the range");
}

static int usage(const char *wrong) {
    fprintf(stderr, "what is \"%s\"?\n", wrong);
    fprintf(stderr, "usage: exhaustive [--formats] [--split] [--math] [--threads N] [--stride N] [--mxcsr HEX]\n");
    return 2;
}

int main(int argc, char **argv) {
    int i;
    for (i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--formats") == 0)
            options.formats = 1;
        else if (strcmp(argv[i], "--split") == 0)
            options.split = 1;
        else if (strcmp(argv[i], "--math") == 0)
            options.math = 1;
        else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
            options.threads = atoi(argv[++i]);
        else if (strcmp(argv[i], "--stride") == 0 && i + 1 < argc)
            options.stride = (uint32_t)atoi(argv[++i]);
        else if (strcmp(argv[i], "--mxcsr") == 0 && i + 1 < argc) {
            options.mxcsr = (uint32_t)strtoul(argv[++i], NULL, 16);
            options.use_mxcsr = 1;
        } else
            return usage(argv[i]);
    }
    if (!options.formats && !options.split && !options.math) options.formats = options.split = options.math = 1;
#if HAVE_THREADS && defined(_SC_NPROCESSORS_ONLN)
    if (options.threads <= 0) options.threads = (int)sysconf(_SC_NPROCESSORS_ONLN);
#endif
    if (options.threads <= 0) options.threads = 1;
    if (options.threads > MAX_THREADS) options.threads = MAX_THREADS;
    if (options.stride == 0) options.stride = 1;
    if (options.formats) {
        back();
        fflush(stdout);
        formats_report(run(formats_thread));
        fflush(stdout);
    }
    if (options.split) {
        split_report(run(split_thread));
        fflush(stdout);
    }
    if (options.math) math_report(run(math_thread));
    printf("%u passed, %u failed, %u skipped\n", passed, failed, skipped);
    return failed != 0;
}
