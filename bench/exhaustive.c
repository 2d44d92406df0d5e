/* exhaustive.c - every path's conversions against the scalar reference: all 2^32 floats (or a share), all 16- and 8-bit
   patterns.

       exhaustive [step]         only every step-th block of 65,536 floats (default 1: all; about 3 minutes)

   For each SIMD path that this machine runs, through amp_cast: nearest, saturating, stochastic; every 97th block with
   FTZ + DAZ and each rounding mode set by the caller. Then finite checks; then exp and the activations, forward and
   backward, of all floats. Prints one line per path and format; the exit status is 1 on any difference. */
#define AMP_IMPLEMENTATION
#include "../amp.h"
#include <time.h>
#if defined(__SSE2__)
#  include <immintrin.h>
#endif

#define BLOCK 65536u
#define PATHS 6  /* amp_simd; 0 is AUTO */
#define SHOWN 20 /* differences that are printed */
static const amp_dtype types[4] = {AMP_F16, AMP_BF16, AMP_F8E4M3, AMP_F8E5M2};

static amp_ctx *ctx[PATHS]; /* one thread each; NULL: not here */
static uint32_t shown;

static void set_mode(int m) { /* the caller's floating-point control word */
#if defined(__SSE2__)
    static const unsigned csr[6] = {0x1f80, 0x9fc0, 0x3f80, 0x5f80, 0x7f80, 0xffc0};
    _mm_setcsr(csr[m]);
#elif defined(__aarch64__)
    static const uint64_t fpcr[6] = {0, 1u << 24, 1u << 22, 2u << 22, 3u << 22, 1u << 24 | 1u << 25 | 1u << 19};
    __asm__ volatile("msr fpcr, %0" : : "r"(fpcr[m]));
#else
    (void)m;
#endif
}

/* ---- floats to the small formats ---- */

typedef enum how { NEAREST, SATURATING, STOCHASTIC, HOWS } how;
static const char *const how_name[HOWS] = {"nearest", "saturating", "stochastic"};
static uint64_t wrong[PATHS][4][HOWS];

static amp_cast_desc cast_desc(uint32_t block, how h) {
    amp_cast_desc d = AMP_ZERO;
    d.seed = 12345;
    d.stream = (uint64_t)block << 20 | 7u;
    d.offset = block * 13u + 1u;
    d.rounding = h == STOCHASTIC ? AMP_STOCHASTIC : AMP_NEAREST;
    d.saturate = h == SATURATING || (h == STOCHASTIC && (block & 1u));
    return d;
}

static uint32_t pattern(const void *data, int t, uint32_t i) {
    return t < 2 ? ((const uint16_t *)data)[i] : ((const uint8_t *)data)[i];
}
static void set_pattern(void *data, int t, uint32_t i, uint32_t p) {
    if (t < 2)
        ((uint16_t *)data)[i] = (uint16_t)p;
    else
        ((uint8_t *)data)[i] = (uint8_t)p;
}

/* One block to one format on every path. */
static void narrow_block(uint32_t block, const uint32_t *x, int t, how h, int mode) {
    static uint16_t want[BLOCK], out[BLOCK];
    amp_cast_desc d = cast_desc(block, h);
    uint32_t n = BLOCK - (block & 63u), i;
    int p;
    for (i = 0; i < n; i++) {
        uint32_t random = h == STOCHASTIC ? amp_random(d.seed, d.stream, d.offset + i) : 0;
        want[i] = (uint16_t)ampi_encode(x[i], types[t], d.rounding, random, d.saturate ? 1 : 0);
    }
    for (p = 1; p < PATHS; p++) {
        amp_status st;
        if (!ctx[p]) continue;
        set_mode(mode);
        st = amp_cast(ctx[p], amp_arr(out, types[t]), amp_arr(x, AMP_F32), n, &d);
        set_mode(0);
        if (st != AMP_OK) {
            puts("amp_cast failed");
            exit(1);
        }
        for (i = 0; i < n; i++) {
            uint32_t got = pattern(out, t, i);
            if (got == want[i]) continue;
            wrong[p][t][h]++;
            if (shown++ < SHOWN)
                printf("%s %s %s, mode %d: %08x -> %04x, should be %04x\n", amp_ctx_name(ctx[p]),
                    amp_dtype_name(types[t]), how_name[h], mode, x[i], got, want[i]);
        }
    }
}

static void narrow(uint32_t step) {
    static uint32_t x[BLOCK];
    uint32_t block, i;
    int t, h;
    for (block = 0; block < 65536u; block += step) {
        int in_a_mode = block % 97u == 0, mode = in_a_mode ? (int)(block / 97u % 6u) : 0;
        int hows = block % 16u == 0 || step > 1 || in_a_mode ? HOWS : 1;
        for (i = 0; i < BLOCK; i++)
            x[i] = block << 16 | i;
        for (t = 0; t < 4; t++)
            for (h = 0; h < hows; h++)
                narrow_block(block, x, t, (how)h, mode);
    }
}

static uint64_t narrow_report(int p) {
    uint64_t total = 0;
    int t, h;
    printf("%-20s", amp_ctx_name(ctx[p]));
    for (t = 0; t < 4; t++)
        for (h = 0; h < HOWS; h++) {
            total += wrong[p][t][h];
            printf(" %s %s %llu", h ? "" : amp_dtype_name(types[t]), how_name[h], (unsigned long long)wrong[p][t][h]);
        }
    return total;
}

/* ---- all patterns back to float, and alone in a finite check ---- */

static uint32_t widen(amp_ctx *c, int t, int mode) {
    static uint16_t in[BLOCK];
    static uint32_t wide[BLOCK];
    uint32_t n = t < 2 ? 65536u : 256u, bad = 0, i;
    for (i = 0; i < n; i++)
        set_pattern(in, t, i, i);
    set_mode(mode);
    if (amp_cast(c, amp_arr(wide, AMP_F32), amp_arr(in, types[t]), n, NULL) != AMP_OK) exit(1);
    set_mode(0);
    for (i = 0; i < n; i++) {
        if (wide[i] == ampi_decode(i, types[t])) continue;
        bad++;
        if (shown++ < SHOWN)
            printf("\n%s widening %04x: %08x, should be %08x\n", amp_dtype_name(types[t]), i, wide[i],
                ampi_decode(i, types[t]));
    }
    return bad;
}

static uint32_t check_alone(amp_ctx *c, int t) { /* each pattern among zeros, at a place that moves */
    uint16_t in[64];
    amp_array a = amp_arrn(in, types[t], 61);
    uint32_t n = t < 2 ? 65536u : 256u, bad = 0, i;
    for (i = 0; i < n; i++) {
        amp_finite_report r;
        uint32_t at = i % 61u, b = ampi_decode(i, types[t]) & 0x7fffffffu;
        int is_nan = b > 0x7f800000u, is_inf = b == 0x7f800000u;
        memset(in, 0, sizeof in);
        set_pattern(in, t, at, i);
        if (amp_all_finite(c, &r, &a, 1) != AMP_OK || r.nan != (uint64_t)is_nan || r.inf != (uint64_t)is_inf)
            bad++;
        else if ((is_nan || is_inf) && r.first_index != at)
            bad++;
    }
    return bad;
}

static uint64_t patterns(amp_ctx *c) {
    uint64_t total = 0;
    int t, mode;
    for (t = 0; t < 4; t++)
        for (mode = 0; mode < 6; mode++) {
            uint32_t bad = widen(c, t, mode);
            if (mode == 0) bad += check_alone(c, t);
            if (bad) printf("\n%s from mode %d: %u wrong\n", amp_dtype_name(types[t]), mode, bad);
            total += bad;
        }
    return total;
}

/* ---- the vector forms of exp and the activations, against the scalar functions; any NaN equals any other ---- */

enum { EXP, RELU, GELU, RELU_GRAD, GELU_GRAD, FUNCTIONS };
static const char *const function_name[FUNCTIONS] = {"exp", "relu", "gelu", "relu'", "gelu'"};

static float scalar_function(int f, float x) {
    switch (f) {
    case EXP: return amp_exp(x);
    case RELU: return amp_relu(x);
    case GELU: return amp_gelu(x);
    case RELU_GRAD: return ampi_act_grad(AMP_RELU, 1.5f, x);
    default: return ampi_act_grad(AMP_GELU, 1.5f, x);
    }
}

static void vector_function(const ampi_kernels *k, int f, float *y, const float *x) {
    uint32_t i;
    for (i = 0; i < BLOCK; i++)
        y[i] = f >= RELU_GRAD ? 1.5f : x[i];
    switch (f) {
    case EXP: k->exps(y, BLOCK, 0.0f); break;
    case RELU: k->act(y, y, BLOCK, AMP_RELU); break;
    case GELU: k->act(y, y, BLOCK, AMP_GELU); break;
    case RELU_GRAD: k->act_grad(y, y, x, BLOCK, AMP_RELU); break;
    default: k->act_grad(y, y, x, BLOCK, AMP_GELU); break;
    }
}

static uint64_t function_block(const ampi_kernels *k, int f, const float *x, const float *want) {
    static float got[BLOCK];
    uint64_t bad = 0;
    uint32_t i;
    vector_function(k, f, got, x);
    for (i = 0; i < BLOCK; i++) {
        if (ampi_bits(got[i]) == ampi_bits(want[i])) continue;
        if (amp_is_nan(got[i]) && amp_is_nan(want[i])) continue;
        bad++;
        if (shown++ < SHOWN)
            printf("%s %s: %08x -> %08x, should be %08x\n", k->name, function_name[f], ampi_bits(x[i]),
                ampi_bits(got[i]), ampi_bits(want[i]));
    }
    return bad;
}

static uint64_t functions(uint32_t step) { /* how many differ */
    static float x[BLOCK], want[BLOCK];
    uint64_t bad[PATHS][FUNCTIONS], total = 0;
    uint32_t block, i;
    int p, f;
    memset(bad, 0, sizeof bad);
    for (block = 0; block < 65536u; block += step) {
        for (i = 0; i < BLOCK; i++)
            x[i] = ampi_float(block << 16 | i);
        for (f = 0; f < FUNCTIONS; f++) {
            for (i = 0; i < BLOCK; i++)
                want[i] = scalar_function(f, x[i]);
            for (p = 2; p < PATHS; p++)
                if (ctx[p]) bad[p][f] += function_block(ampi_cpu_of(ctx[p])->k, f, x, want);
        }
    }
    for (p = 2; p < PATHS; p++) {
        if (!ctx[p]) continue;
        printf("%-20s", amp_ctx_name(ctx[p]));
        for (f = 0; f < FUNCTIONS; f++) {
            total += bad[p][f];
            printf(" %s %llu", function_name[f], (unsigned long long)bad[p][f]);
        }
        printf("\n");
    }
    return total;
}

int main(int argc, char **argv) {
    uint32_t step = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1u;
    uint64_t total = 0;
    int p;
    if (step == 0) step = 1;
    for (p = 1; p < PATHS; p++) {
        amp_cpu_desc d = AMP_ZERO;
        d.simd = (amp_simd)p;
        d.threads = 1;
        if (amp_cpu_create(&ctx[p], &d) != AMP_OK) ctx[p] = NULL;
    }
    narrow(step);
    for (p = 1; p < PATHS; p++) {
        if (!ctx[p]) continue;
        total += narrow_report(p);
        total += patterns(ctx[p]);
        printf("\n");
    }
    total += functions(step);
    for (p = 1; p < PATHS; p++)
        amp_ctx_destroy(ctx[p]);
    if (total)
        printf("exhaustive: %llu differences\n", (unsigned long long)total);
    else
        printf("exhaustive: passed\n");
    return total != 0;
}
