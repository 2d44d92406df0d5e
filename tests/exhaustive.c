/* exhaustive.c - every float. Takes minutes; not a part of `make test`.

   exhaustive [--formats] [--split] [--math] [--threads N] [--stride N] [--mxcsr HEX]

   formats  all 2^32 floats to f16, bf16, e4m3 and e5m2, with and without saturation: the scalar functions and amp_cast on every code path of
            this machine against ref.h's table of numbers (a float belongs to the pattern between whose neighbouring midpoints it lies),
            f16 also against the processor's own conversion; all 2^16 and 2^8 patterns back
   split    every float to 16 + 16 bits and back (amp_split_pack): FP16: exact where the half is normal or the float zero, |r| <= 2^14, else within
            2^-40; 65520 and more is a status; NaN stays NaN. BF16: exact but for the float that lies just between two copies and goes to the
            lower one, which moves by one ulp. Then an update that changes nothing, on each path in turn: the same weights and copies
   math     exp, log, GELU and its derivative of every float against libm in double
   --stride N takes every N-th block of 2^20 floats; --mxcsr sets the control word around amp's calls (8040: FTZ + DAZ, 6000: toward zero)

   Last line: N passed, N failed, N skipped. Exit status 1 on a failure. */
#if !defined(_POSIX_C_SOURCE) && !defined(_GNU_SOURCE)
#  define _POSIX_C_SOURCE 200112L
#endif
#include "../amp.h"

/* ref.h needs the harness for its includes only; its checks are not linked here */
#include "ref.h"

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

static struct {
    int formats, split, math, threads;
    uint32_t stride, mxcsr, use_mxcsr;
} options = {0, 0, 0, 0, 1, 0, 0};

static const amp_dtype formats[4] = {AMP_F16, AMP_BF16, AMP_F8E4M3, AMP_F8E5M2};
#define N_PATHS 5
static const struct {
    const char *name;
    amp_simd simd;
} paths[N_PATHS] = {{"scalar", AMP_SIMD_SCALAR}, {"sse2", AMP_SIMD_SSE2}, {"avx2", AMP_SIMD_AVX2},
    {"avx512", AMP_SIMD_AVX512}, {"neon", AMP_SIMD_NEON}};

typedef struct worker {
    int id, step; /* takes blocks id, id + step, ... */
    uint64_t floats;
    uint64_t wrong_scalar[4][2], wrong_path[N_PATHS][4][2], wrong_hardware;
    int has_path[N_PATHS], has_hardware;
    double exp_ulp, log_ulp, gelu, gelu_grad, exp_sub;
    uint32_t exp_at, log_at, gelu_at, gelu_grad_at;
    uint64_t wrong_special;
    uint64_t split_half[2], split_back[2], split_status, split_path[N_PATHS][2], exact[2], near[2];
    double split_error;
    uint32_t n_paths;
    int broken;
} worker;

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

/* The first float (bits) that rounds to pattern c + 1: the midpoint, or what follows it when c is even and keeps the tie. */
static uint32_t threshold(const ref_format *f, uint32_t c) {
    return ref_f32_bits((float)(0.5 * (ref_value(f, c) + ref_value(f, c + 1)))) + (c % 2 ? 0u : 1u);
}

/* What the floats `first` .. `first` + BLOCK must become. The midpoints are exact floats, so no arithmetic is done on the floats. */
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
            p = f.has_inf ? f.over | (1u << (f.mant - 1)) | ((a >> (23 - f.mant)) & ((1u << f.mant) - 1u)) : f.over;
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
        if (++*wrong <= 3)
            printf("%s%s: %s from %08x is %x, should be %x\n", who, saturate ? ", saturating" : "",
                amp_dtype_name(type), first + (uint32_t)i, g, w);
    }
}

static void do_formats(worker *w) {
    float *x = (float *)malloc(BLOCK * 4u);
    void *want = malloc(BLOCK * 2u), *got = malloc(BLOCK * 2u);
    amp_ctx *ctx[N_PATHS];
    uint32_t b;
    size_t d, p, i;
    if (!x || !want || !got) {
        w->broken = 1;
        free(x);
        free(want);
        free(got);
        return;
    }
    for (p = 0; p < N_PATHS; p++) {
        amp_cpu_desc cd = AMP_ZERO;
        cd.threads = 1;
        cd.simd = paths[p].simd;
        w->has_path[p] = amp_cpu_create(&ctx[p], &cd) == AMP_OK;
    }
    for (b = (uint32_t)w->id * options.stride; b < BLOCKS; b += (uint32_t)w->step * options.stride) {
        uint32_t first = b * BLOCK;
        for (i = 0; i < BLOCK; i++) {
            uint32_t u = first + (uint32_t)i;
            memcpy(&x[i], &u, 4);
        }
        w->floats += BLOCK;
        for (d = 0; d < 4; d++) {
            int sat;
            for (sat = 0; sat < 2; sat++) {
                amp_cast_desc o = AMP_ZERO;
                o.saturate = (uint32_t)sat;
                expected(first, formats[d], sat, want);
                if (!sat || d >= 2) {
                    scalar(x, formats[d], sat, got);
                    count_wrong(&w->wrong_scalar[d][sat], "scalar function", formats[d], sat, first, got, want);
                }
                for (p = 0; p < N_PATHS; p++) {
                    amp_status st;
                    if (!w->has_path[p]) continue;
                    memset(got, 0x5a, BLOCK * 2u);
                    enter();
                    st = amp_cast(ctx[p], amp_arr(got, formats[d]), amp_arr(x, AMP_F32), BLOCK, sat ? &o : NULL);
                    leave();
                    if (st != AMP_OK) w->broken = 1;
                    count_wrong(&w->wrong_path[p][d][sat], paths[p].name, formats[d], sat, first, got, want);
                }
#if HAVE_F16C
                if (d == 0 && !sat && have_hardware()) {
                    w->has_hardware = 1;
                    hardware_f16((uint16_t *)got, x, BLOCK);
                    count_wrong(&w->wrong_hardware, "the processor", formats[d], sat, first, got, want);
                }
#endif
            }
        }
    }
    for (p = 0; p < N_PATHS; p++)
        if (w->has_path[p]) amp_ctx_destroy(ctx[p]);
    free(x);
    free(want);
    free(got);
}

/* One float in 16 + 16 bits, against the copy that the table says. 1: came back the same, 0: near, as allowed; -1: wrong. */
static int split_one(worker *w, uint32_t u, uint32_t pair, uint32_t half, amp_dtype t) {
    float x = ref_f32(u), back = amp_split_unpack(pair, t);
    uint32_t b = ref_f32_bits(back), magnitude = u & 0x7fffffffu;
    int32_t r = (int32_t)(pair >> 16) - (pair >> 31 ? 65536 : 0);
    double e;
    if (magnitude > 0x7f800000u) return amp_is_nan(back) ? 1 : -1;
    if (t == AMP_BF16) return b == u ? 1 : (u & 0x1ffffu) == 0x8000u && b == u - 1 ? 0 : -1;
    if ((half & 0x7c00u) == 0x7c00u)
        return magnitude >= 0x477ff000u && b == ((u & 0x80000000u) | 0x7f800000u) ? 1 : -1; /* 65520 */
    if (r > 16384 || r < -16384) return -1;
    if (half & 0x7c00u || magnitude == 0) return b == u ? 1 : -1;
    e = fabs((double)back - (double)x);
    if (e > w->split_error) w->split_error = e;
    return e > 9.094947017729282e-13 ? -1 : b == u; /* 2^-40 */
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

static void do_split(worker *w) {
    static const amp_dtype types[2] = {AMP_F16, AMP_BF16};
    float *x = (float *)malloc(BLOCK * 4u);
    uint16_t *half = (uint16_t *)malloc(BLOCK * 2u), *low = (uint16_t *)malloc(BLOCK * 2u);
    amp_ctx *ctx[N_PATHS];
    amp_params *set[N_PATHS][2];
    uint32_t b, i, pair;
    size_t d, p;
    memset(set, 0, sizeof set);
    if (!x || !half || !low) {
        w->broken = 1;
        free(x);
        free(half);
        free(low);
        return;
    }
    for (p = 0; p < N_PATHS; p++) {
        amp_cpu_desc cd = AMP_ZERO;
        cd.threads = 1;
        cd.simd = paths[p].simd;
        w->has_path[p] = amp_cpu_create(&ctx[p], &cd) == AMP_OK;
        w->n_paths += (uint32_t)w->has_path[p];
        for (d = 0; d < 2 && w->has_path[p]; d++)
            if ((set[p][d] = split_set(ctx[p], types[d])) == NULL) w->broken = 1;
    }
    for (b = (uint32_t)w->id * options.stride; b < BLOCKS && !w->broken; b += (uint32_t)w->step * options.stride) {
        uint32_t first = b * BLOCK;
        w->floats += BLOCK;
        for (i = 0; i < BLOCK; i++)
            x[i] = ref_f32(first + i);
        for (d = 0; d < 2; d++) {
            int refused = 0, wrote = 0;
            uint32_t seen = 0;
            expected(first, types[d], 0, half);
            for (i = 0; i < BLOCK; i++) {
                int good;
                pair = amp_split_pack(x[i], types[d]);
                low[i] = (uint16_t)(pair >> 16);
                if ((pair & 0xffffu) != half[i] && ++w->split_half[d] <= 3)
                    printf("%s copy of %08x: %04x, should be %04x\n", amp_dtype_name(types[d]), first + i,
                        pair & 0xffffu, half[i]);
                good = split_one(w, first + i, pair, half[i], types[d]);
                w->exact[d] += good == 1;
                w->near[d] += good == 0;
                if (good < 0 && ++w->split_back[d] <= 3)
                    printf("%s split of %08x: %08x does not hold it\n", amp_dtype_name(types[d]), first + i, pair);
                refused |= types[d] == AMP_F16 && (half[i] & 0x7c00u) == 0x7c00u;
            }
            for (p = 0; p < N_PATHS; p++) {
                amp_step_desc s = AMP_ZERO;
                uint16_t *h, *r;
                if (!w->has_path[p] || (w->n_paths > 1 && b / options.stride % w->n_paths != seen++)) continue;
                h = (uint16_t *)amp_param_model(set[p][d], 0).data;
                r = (uint16_t *)amp_param_get(set[p][d], 0).low.data;
                if (!wrote) { /* by floats, once: refused when one of them does not fit */
                    wrote = 1;
                    if ((amp_param_write(set[p][d], 0, x) == AMP_OK) == refused)
                        w->split_status++;
                    else if (!refused && (memcmp(h, half, BLOCK * 2u) != 0 || memcmp(r, low, BLOCK * 2u) != 0))
                        w->split_status++;
                }
                memcpy(h, half, BLOCK * 2u);
                memcpy(r, low, BLOCK * 2u);
                s.lr = AMP_NONE;
                s.optimizer = AMP_SGD;
                enter();
                if (amp_step(set[p][d], NULL, &s) != AMP_OK) w->broken = 1;
                leave();
                if (memcmp(h, half, BLOCK * 2u) == 0 && memcmp(r, low, BLOCK * 2u) == 0) continue;
                for (i = 0; i < BLOCK; i++) { /* where the half is subnormal a number may have two pairs */
                    float was = amp_split_unpack(half[i] | (uint32_t)low[i] << 16, types[d]),
                          is = amp_split_unpack(h[i] | (uint32_t)r[i] << 16, types[d]);
                    int same = amp_is_nan(was) ? amp_is_nan(is)
                                               : ref_f32_bits(was) == ref_f32_bits(is) &&
                            (h[i] == half[i] || (types[d] == AMP_F16 && !(half[i] & 0x7c00u)));
                    if (!same && ++w->split_path[p][d] <= 3)
                        printf("%s update on %s: %04x %04x became %04x %04x\n", amp_dtype_name(types[d]), paths[p].name,
                            half[i], low[i], h[i], r[i]);
                }
            }
        }
    }
    for (p = 0; p < N_PATHS; p++) {
        if (!w->has_path[p]) continue;
        amp_params_destroy(set[p][0]);
        amp_params_destroy(set[p][1]);
        amp_ctx_destroy(ctx[p]);
    }
    free(x);
    free(half);
    free(low);
}

static double ulps(double got, double want) { /* for normal results */
    int e;
    (void)frexp(want, &e);
    return fabs(got - want) / ldexp(1.0, e - 24);
}

static void do_math(worker *w) {
    uint32_t b, i;
    for (b = (uint32_t)w->id * options.stride; b < BLOCKS; b += (uint32_t)w->step * options.stride) {
        w->floats += BLOCK;
        for (i = 0; i < BLOCK; i++) {
            uint32_t u = b * BLOCK + i;
            float x = ref_f32(u);
            double e, want, got;
            if ((u & 0x7fffffffu) > 0x7f800000u) { /* NaN stays NaN */
                w->wrong_special += !amp_is_nan(amp_exp(x)) || !amp_is_nan(amp_log(x)) || !amp_is_nan(amp_gelu(x)) ||
                    !amp_is_nan(amp_gelu_grad(x));
                continue;
            }
            got = (double)amp_exp(x);
            if (x >= 88.72284f)
                w->wrong_special += ref_f32_bits((float)got) != 0x7f800000u;
            else if (x < -103.9721f)
                w->wrong_special += ref_f32_bits((float)got) != 0;
            else {
                want = exp((double)x);
                if (want >= 1.1754943508222875e-38) {
                    e = ulps(got, want);
                    if (!(e <= w->exp_ulp)) {
                        w->exp_ulp = e;
                        w->exp_at = u;
                    }
                } else {
                    e = fabs(got - want) / 1.401298464324817e-45;
                    if (!(e <= w->exp_sub)) w->exp_sub = e;
                }
            }
            got = (double)amp_log(x);
            if (u >> 31 && u != 0x80000000u)
                w->wrong_special += got == got;
            else if (u == 0 || u == 0x80000000u)
                w->wrong_special += ref_f32_bits((float)got) != 0xff800000u;
            else if (u == 0x7f800000u)
                w->wrong_special += ref_f32_bits((float)got) != 0x7f800000u;
            else if (u == 0x3f800000u)
                w->wrong_special += ref_f32_bits((float)got) != 0;
            else {
                e = ulps(got, log((double)x));
                if (!(e <= w->log_ulp)) {
                    w->log_ulp = e;
                    w->log_at = u;
                }
            }
            if ((u & 0x7fffffffu) == 0x7f800000u) {
                w->wrong_special += ref_f32_bits(amp_gelu(x)) << 1 != (u >> 31 ? 0u : 0x7f800000u << 1) ||
                    amp_gelu_grad(x) != (u >> 31 ? 0.0f : 1.0f);
                continue;
            }
            if ((double)fabsf(x) < 1e-30 || (double)fabsf(x) > 1e4) { /* x/2, x or 0: no need of tanh */
                want = fabsf(x) < 1.0f ? 0.5 * (double)x : u >> 31 ? 0.0 : (double)x;
                e = fabs((double)amp_gelu(x) - want) - 1.401298464324817e-45;
                e = e > 0 ? e / fabs((double)x) : 0;
            } else
                e = fabs((double)amp_gelu(x) - ref_gelu((double)x)) / fabs((double)x);
            if (!(e <= w->gelu)) {
                w->gelu = e;
                w->gelu_at = u;
            }
            e = fabs(
                (double)amp_gelu_grad(x) - ((double)fabsf(x) > 1e4 ? (u >> 31 ? 0.0 : 1.0) : ref_gelu_grad((double)x)));
            if (!(e <= w->gelu_grad)) {
                w->gelu_grad = e;
                w->gelu_grad_at = u;
            }
        }
    }
}

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

static double run(void *(*fn)(void *)) { /* seconds */
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
static void result(int ok, const char *what, uint64_t wrong) {
    if (ok)
        passed++;
    else {
        failed++;
        printf("FAILED %s: %llu wrong\n", what, (unsigned long long)wrong);
    }
}

/* All patterns back to float, on every path. */
static void back(void) {
    static uint16_t in[65536];
    static float out[65536];
    size_t d, p, n, i;
    for (d = 0; d < 4; d++) {
        n = (size_t)1 << ref_format_of(formats[d]).bits;
        for (i = 0; i < n; i++)
            ampi_store_pattern(in, formats[d], i, (uint32_t)i);
        for (p = 0; p < N_PATHS; p++) {
            amp_cpu_desc cd = AMP_ZERO;
            amp_ctx *ctx = NULL;
            uint64_t wrong = 0;
            char what[64];
            cd.threads = 1;
            cd.simd = paths[p].simd;
            if (amp_cpu_create(&ctx, &cd) != AMP_OK) continue;
            enter();
            if (amp_cast(ctx, amp_arr(out, AMP_F32), amp_arr(in, formats[d]), n, NULL) != AMP_OK) wrong = n;
            leave();
            for (i = 0; i < n && wrong < n; i++) {
                uint32_t u;
                memcpy(&u, &out[i], 4);
                wrong += u != ref_decode((uint32_t)i, formats[d]);
            }
            snprintf(what, sizeof what, "%s to f32, %s", amp_dtype_name(formats[d]), paths[p].name);
            result(wrong == 0, what, wrong);
            amp_ctx_destroy(ctx);
        }
    }
    printf("all 65536 and 256 patterns back to f32 on every path\n");
}

static void formats_report(double seconds) {
    size_t d, p, i;
    int sat, broken = 0;
    uint64_t floats = 0, hardware = 0;
    for (i = 0; i < (size_t)options.threads; i++) {
        floats += workers[i].floats;
        hardware += workers[i].wrong_hardware;
        broken |= workers[i].broken;
    }
    if (broken) {
        failed++;
        printf("FAILED: no memory, or amp_cast failed\n");
    }
    for (d = 0; d < 4; d++)
        for (sat = 0; sat < 2; sat++) {
            uint64_t wrong = 0;
            char what[64];
            for (i = 0; i < (size_t)options.threads; i++)
                wrong += workers[i].wrong_scalar[d][sat];
            snprintf(what, sizeof what, "%s%s, scalar function", amp_dtype_name(formats[d]), sat ? ", saturating" : "");
            if (!sat || d >= 2) result(wrong == 0, what, wrong);
            for (p = 0; p < N_PATHS; p++) {
                for (wrong = 0, i = 0; i < (size_t)options.threads; i++)
                    wrong += workers[i].wrong_path[p][d][sat];
                snprintf(what, sizeof what, "%s%s, amp_cast on %s", amp_dtype_name(formats[d]),
                    sat ? ", saturating" : "", paths[p].name);
                if (workers[0].has_path[p]) result(wrong == 0, what, wrong);
            }
        }
    for (p = 0; p < N_PATHS; p++)
        if (!workers[0].has_path[p]) {
            skipped++;
            printf("skipped: this machine or build has no %s path\n", paths[p].name);
        }
    if (workers[0].has_hardware)
        result(hardware == 0, "f16, the processor's own conversion against the table", hardware);
    else {
        skipped++;
        printf("skipped: no F16C here\n");
    }
    printf("%llu floats to f16, bf16, e4m3, e5m2, plain and saturating: %.1f s\n", (unsigned long long)floats, seconds);
}

static void split_report(double seconds) {
    static const char *const name[2] = {"f16", "bf16"};
    uint64_t floats = 0, half[2] = {0, 0}, back[2] = {0, 0}, exact[2] = {0, 0}, near[2] = {0, 0}, status = 0,
             path[N_PATHS][2];
    double error = 0;
    size_t d, p;
    int i, broken = 0;
    char what[80];
    memset(path, 0, sizeof path);
    for (i = 0; i < options.threads; i++) {
        const worker *w = &workers[i];
        for (d = 0; d < 2; d++) {
            half[d] += w->split_half[d];
            back[d] += w->split_back[d];
            exact[d] += w->exact[d];
            near[d] += w->near[d];
            for (p = 0; p < N_PATHS; p++)
                path[p][d] += w->split_path[p][d];
        }
        if (w->split_error > error) error = w->split_error;
        floats += w->floats;
        status += w->split_status;
        broken |= w->broken;
    }
    if (broken) {
        failed++;
        printf("FAILED: no memory, or a verb failed\n");
    }
    for (d = 0; d < 2; d++) {
        printf("16 + 16 bits, %s: %llu floats come back, %llu near\n", name[d], (unsigned long long)exact[d],
            (unsigned long long)near[d]);
        snprintf(what, sizeof what, "the copy of a %s split is the rounded float", name[d]);
        result(half[d] == 0, what, half[d]);
        snprintf(what, sizeof what, "a %s split holds the float", name[d]);
        result(back[d] == 0 && exact[d] + near[d] == floats, what, back[d]);
        for (p = 0; p < N_PATHS; p++) {
            snprintf(what, sizeof what, "an update by nothing of %s splits on %s", name[d], paths[p].name);
            if (workers[0].has_path[p]) result(path[p][d] == 0, what, path[p][d]);
        }
    }
    result(status == 0, "amp_param_write stores the same pairs, or refuses what FP16 cannot hold", status);
    printf("%llu floats to 16 + 16 bits, largest error %.6g of 2^-40: %.1f s\n", (unsigned long long)floats,
        error / 9.094947017729282e-13, seconds);
}

static void math_report(double seconds) {
    worker m;
    int i;
    memset(&m, 0, sizeof m);
    for (i = 0; i < options.threads; i++) {
        const worker *w = &workers[i];
        if (w->exp_ulp > m.exp_ulp) {
            m.exp_ulp = w->exp_ulp;
            m.exp_at = w->exp_at;
        }
        if (w->log_ulp > m.log_ulp) {
            m.log_ulp = w->log_ulp;
            m.log_at = w->log_at;
        }
        if (w->gelu > m.gelu) {
            m.gelu = w->gelu;
            m.gelu_at = w->gelu_at;
        }
        if (w->gelu_grad > m.gelu_grad) {
            m.gelu_grad = w->gelu_grad;
            m.gelu_grad_at = w->gelu_grad_at;
        }
        if (w->exp_sub > m.exp_sub) m.exp_sub = w->exp_sub;
        m.wrong_special += w->wrong_special;
        m.floats += w->floats;
    }
    printf(
        "exp  %.4f ulp at %08x where normal, %.3f of 2^-149 below\nlog  %.4f ulp at %08x\ngelu %.3g of |x| at %08x, derivative %.3g at %08x\n",
        m.exp_ulp, m.exp_at, m.exp_sub, m.log_ulp, m.log_at, m.gelu, m.gelu_at, m.gelu_grad, m.gelu_grad_at);
    printf("%llu floats through exp, log, GELU and its derivative: %.1f s\n", (unsigned long long)m.floats, seconds);
    result(m.exp_ulp <= 1.1, "exp within 1.1 ulp", 0);
    result(m.exp_sub <= 2.0, "exp within two steps where subnormal", 0);
    result(m.log_ulp <= 1.5, "log within 1.5 ulp", 0);
    result(m.gelu <= 4e-7, "gelu within 4e-7 |x|", 0);
    result(m.gelu_grad <= 4e-6, "derivative of gelu within 4e-6", 0);
    result(m.wrong_special == 0, "NaN, Inf, zero, ends of the range", m.wrong_special);
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
        } else {
            fprintf(stderr,
                "what is \"%s\"?\nusage: exhaustive [--formats] [--split] [--math] [--threads N] [--stride N] [--mxcsr HEX]\n",
                argv[i]);
            return 2;
        }
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
