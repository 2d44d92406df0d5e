/* exhaustive.c - every path's conversions against the scalar reference: all 2^32 floats (or a share), all 16- and 8-bit patterns.

       exhaustive [step]         only every step-th block of 65,536 floats (default 1: all; about 3 minutes)

   For each SIMD path that this machine runs, through amp_cast: nearest, saturating, stochastic; every 97th block with FTZ + DAZ and each
   rounding mode set by the caller. Then finite checks; then exp and the activations, forward and backward, of all floats. Prints one
   line per path and format; the exit status is 1 on any difference. */
#define AMP_IMPLEMENTATION
#include "../amp.h"
#include <time.h>
#if defined(__SSE2__)
#  include <immintrin.h>
#endif

#define BLOCK 65536u
#define PATHS 6
static const amp_dtype types[4] = {AMP_F16, AMP_BF16, AMP_F8E4M3, AMP_F8E5M2};

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

/* The vector forms of exp and the activations against the scalar functions; any NaN equals any other. Returns how many differ. */
static uint64_t functions(amp_ctx **ctx, uint32_t step) {
    static const char *const name[5] = {"exp", "relu", "gelu", "relu'", "gelu'"};
    static float x[BLOCK], want[5][BLOCK], got[BLOCK];
    uint64_t wrong[PATHS][5], total = 0;
    uint32_t block, i, shown = 0;
    int p, f;
    memset(wrong, 0, sizeof wrong);
    for (block = 0; block < 65536u; block += step) {
        for (i = 0; i < BLOCK; i++) {
            x[i] = ampi_float(block << 16 | i);
            want[0][i] = amp_exp(x[i]);
            want[1][i] = amp_relu(x[i]);
            want[2][i] = amp_gelu(x[i]);
            want[3][i] = ampi_act_grad(AMP_RELU, 1.5f, x[i]);
            want[4][i] = ampi_act_grad(AMP_GELU, 1.5f, x[i]);
        }
        for (p = 2; p < PATHS; p++)
            if (ctx[p])
                for (f = 0; f < 5; f++) {
                    const ampi_kernels *k = ampi_cpu_of(ctx[p])->k;
                    for (i = 0; i < BLOCK; i++)
                        got[i] = f > 2 ? 1.5f : x[i];
                    if (f == 0)
                        k->exps(got, BLOCK, 0.0f);
                    else if (f < 3)
                        k->act(got, BLOCK, f == 1 ? AMP_RELU : AMP_GELU);
                    else
                        k->act_grad(got, x, BLOCK, f == 3 ? AMP_RELU : AMP_GELU);
                    for (i = 0; i < BLOCK; i++) {
                        if (ampi_bits(got[i]) == ampi_bits(want[f][i]) ||
                            (amp_is_nan(got[i]) && amp_is_nan(want[f][i])))
                            continue;
                        wrong[p][f]++;
                        if (shown++ < 20)
                            printf("%s %s: %08x -> %08x, should be %08x\n", k->name, name[f], ampi_bits(x[i]),
                                ampi_bits(got[i]), ampi_bits(want[f][i]));
                    }
                }
    }
    for (p = 2; p < PATHS; p++)
        if (ctx[p]) {
            printf("%-20s", amp_ctx_name(ctx[p]));
            for (f = 0; f < 5; f++) {
                total += wrong[p][f];
                printf(" %s %llu", name[f], (unsigned long long)wrong[p][f]);
            }
            printf("\n");
        }
    return total;
}

int main(int argc, char **argv) {
    static uint32_t x[BLOCK], wide[BLOCK];
    static uint16_t ref[3][BLOCK], out[BLOCK];
    static const char *const how_name[3] = {"nearest", "saturating", "stochastic"};
    uint32_t step = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1u, block, i, shown = 0;
    amp_ctx *ctx[PATHS];
    uint64_t wrong[PATHS][4][3], total = 0;
    int p, t, how;
    memset(wrong, 0, sizeof wrong);
    for (p = 1; p < PATHS; p++) {
        amp_cpu_desc d = AMP_ZERO;
        d.simd = (amp_simd)p;
        d.threads = 1;
        if (amp_cpu_create(&ctx[p], &d) != AMP_OK) ctx[p] = NULL;
    }
    for (block = 0; block < 65536u; block += step) {
        int mode = block % 97u == 0 ? (int)(block / 97u % 6u) : 0;
        for (i = 0; i < BLOCK; i++)
            x[i] = block << 16 | i;
        for (t = 0; t < 4; t++) {
            amp_cast_desc d = AMP_ZERO;
            int most = block % 16u == 0 || step > 1 || block % 97u == 0 ? 3 : 1;
            d.seed = 12345;
            d.stream = (uint64_t)block << 20 | 7u;
            d.offset = block * 13u + 1u;
            for (how = 0; how < most; how++)
                for (i = 0; i < BLOCK; i++)
                    ref[how][i] = (uint16_t)ampi_encode(x[i], types[t], how == 2 ? AMP_STOCHASTIC : AMP_NEAREST,
                        how == 2 ? amp_random(d.seed, d.stream, d.offset + i) : 0,
                        how == 1 || (how == 2 && block & 1u));
            for (p = 1; p < PATHS; p++)
                if (ctx[p])
                    for (how = 0; how < most; how++) {
                        amp_status st;
                        d.rounding = how == 2 ? AMP_STOCHASTIC : AMP_NEAREST;
                        d.saturate = how == 1 || (how == 2 && block & 1u);
                        set_mode(mode);
                        st = amp_cast(ctx[p], amp_arr(out, types[t]), amp_arr(x, AMP_F32), BLOCK - (block & 63u), &d);
                        set_mode(0);
                        if (st != AMP_OK) {
                            puts("amp_cast failed");
                            return 1;
                        }
                        for (i = 0; i < BLOCK - (block & 63u); i++) {
                            uint32_t got = t < 2 ? out[i] : ((const uint8_t *)out)[i];
                            if (got == ref[how][i]) continue;
                            wrong[p][t][how]++;
                            if (shown++ < 20)
                                printf("%s %s %s, mode %d: %08x -> %04x, should be %04x\n", amp_ctx_name(ctx[p]),
                                    amp_dtype_name(types[t]), how_name[how], mode, x[i], got, ref[how][i]);
                        }
                    }
        }
    }
    for (p = 1; p < PATHS; p++)
        if (ctx[p]) {
            int mode;
            printf("%-20s", amp_ctx_name(ctx[p]));
            for (t = 0; t < 4; t++)
                for (how = 0; how < 3; how++) {
                    total += wrong[p][t][how];
                    printf(" %s %s %llu", how ? "" : amp_dtype_name(types[t]), how_name[how],
                        (unsigned long long)wrong[p][t][how]);
                }
            for (t = 0; t < 4; t++)
                for (mode = 0; mode < 6; mode++) {
                    uint32_t n = t < 2 ? 65536u : 256u, bad = 0;
                    for (i = 0; i < n; i++) {
                        if (t < 2)
                            out[i] = (uint16_t)i;
                        else
                            ((uint8_t *)out)[i] = (uint8_t)i;
                    }
                    set_mode(mode);
                    if (amp_cast(ctx[p], amp_arr(wide, AMP_F32), amp_arr(out, types[t]), n, NULL) != AMP_OK) return 1;
                    set_mode(0);
                    for (i = 0; i < n; i++)
                        if (wide[i] != ampi_decode(i, types[t])) {
                            bad++;
                            if (shown++ < 20)
                                printf("\n%s widening %04x: %08x, should be %08x\n", amp_dtype_name(types[t]), i,
                                    wide[i], ampi_decode(i, types[t]));
                        }
                    for (i = 0; i < n; i++) { /* each pattern alone in a finite check, at a place that moves */
                        amp_array a;
                        amp_finite_report r;
                        uint32_t at = i % 61u, b = ampi_decode(i, types[t]) & 0x7fffffffu, k;
                        if (mode) break;
                        for (k = 0; k < 64; k++) {
                            if (t < 2)
                                out[k] = k == at ? (uint16_t)i : 0;
                            else
                                ((uint8_t *)out)[k] = k == at ? (uint8_t)i : 0;
                        }
                        a = amp_arrn(out, types[t], 61);
                        if (amp_all_finite(ctx[p], &r, &a, 1) != AMP_OK || r.nan != (b > 0x7f800000u) ||
                            r.inf != (b == 0x7f800000u) || (b >= 0x7f800000u && r.first_index != at))
                            bad++;
                    }
                    if (bad) printf("\n%s from mode %d: %u wrong\n", amp_dtype_name(types[t]), mode, bad);
                    total += bad;
                }
            printf("\n");
        }
    total += functions(ctx, step);
    for (p = 1; p < PATHS; p++)
        amp_ctx_destroy(ctx[p]);
    printf(total ? "exhaustive: %llu differences\n" : "exhaustive: passed\n", (unsigned long long)total);
    return total != 0;
}
