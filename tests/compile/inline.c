/* inline.c - the inline conversions, which take short ways and, built with -mf16c, instructions, beside definitions
   (ampi_encode, ampi_decode): all 16- and 8-bit patterns and a share of all floats, in the default floating-point mode,
   in each rounding mode, and with FTZ and DAZ. The definitions are asked in the default mode, once for all modes.
   Arguments: a step between floats, 1 for all; the first and the last float in units of 2^24 (0 256). The exit status
   tells what failed. */
#define AMP_STATIC
#include "../../amp.h"

static void set_mode(int mode) {
#if defined(__SSE2__) && defined(__GNUC__)
    static const uint32_t csr[] = {0x1f80, 0x3f80, 0x5f80, 0x7f80, 0x9fc0, 0xffc0};
    __asm__ volatile("ldmxcsr %0" : : "m"(csr[mode]));
#elif defined(__aarch64__) && defined(__GNUC__)
    static const uint64_t fpcr[] = {0, 2u << 22, 1u << 22, 3u << 22, 1u << 24, 1u << 24 | 3u << 22};
    __asm__ volatile("msr fpcr, %0" : : "r"(fpcr[mode]));
#else
    (void)mode;
#endif
}

enum { MODES = 6, BLOCK = 1024 };

static uint32_t encoded(uint32_t x, amp_dtype t, int saturate) { return ampi_encode(x, t, AMP_NEAREST, 0, saturate); }

typedef struct definition { /* what a float becomes */
    uint32_t x, plain[AMP_DTYPE_COUNT], saturated[AMP_DTYPE_COUNT];
} definition;

static void define(definition *d, uint32_t x) {
    amp_dtype t;
    d->x = x;
    for (t = AMP_F16; t < AMP_DTYPE_COUNT; t = (amp_dtype)(t + 1))
        d->plain[t] = encoded(x, t, 0);
    d->saturated[AMP_F8E4M3] = encoded(x, AMP_F8E4M3, 1);
    d->saturated[AMP_F8E5M2] = encoded(x, AMP_F8E5M2, 1);
}
static int narrow_is_right(const definition *d) {
    float f = ampi_float(d->x);
    if (amp_f16_from_f32(f).bits != d->plain[AMP_F16]) return 0;
    if (amp_bf16_from_f32(f).bits != d->plain[AMP_BF16]) return 0;
    if (amp_f8e4m3_from_f32(f).bits != d->plain[AMP_F8E4M3]) return 0;
    if (amp_f8e5m2_from_f32(f).bits != d->plain[AMP_F8E5M2]) return 0;
    if (amp_f8e4m3_from_f32_sat(f).bits != d->saturated[AMP_F8E4M3]) return 0;
    if (amp_f8e5m2_from_f32_sat(f).bits != d->saturated[AMP_F8E5M2]) return 0;
    return 1;
}
static int store_is_right(const definition *d) {
    float f = ampi_float(d->x);
    uint8_t room[4] = {0};
    amp_dtype t;
    for (t = AMP_F16; t < AMP_DTYPE_COUNT; t = (amp_dtype)(t + 1)) {
        amp_store(room, t, 0, f);
        if (ampi_load_pattern(room, t, 0) != d->plain[t]) return 0;
    }
    return 1;
}
static int widen_is_right(uint32_t pattern, amp_dtype t) {
    uint8_t room[4] = {0};
    ampi_store_pattern(room, t, 0, pattern);
    return ampi_load_bits(room, t, 0) == ampi_decode(pattern, t) &&
        ampi_bits(amp_load(room, t, 0)) == ampi_decode(pattern, t);
}

/* 0, or the first mode, counted from 1, in which one of them becomes something else */
static int wrong_mode(const definition *d, int n) {
    int mode, i, wrong = 0;
    for (mode = 0; mode < MODES && !wrong; mode++) {
        set_mode(mode);
        for (i = 0; i < n; i++)
            if (!narrow_is_right(&d[i])) wrong = mode + 1;
        for (i = 0; i < n; i += 8) /* the same functions behind a switch: a share is enough */
            if (!store_is_right(&d[i])) wrong = mode + 1;
    }
    set_mode(0);
    return wrong;
}
static int every_float(uint64_t from, uint64_t to, uint64_t step) {
    definition d[BLOCK];
    uint64_t x = from;
    while (x < to) {
        int n = 0, wrong;
        for (; n < BLOCK && x < to; x += step)
            define(&d[n++], (uint32_t)x);
        wrong = wrong_mode(d, n);
        if (wrong) return 10 + wrong - 1;
    }
    return 0;
}
/* every number and tie of a format, and the floats beside them */
static int every_pattern(amp_dtype t) {
    definition d[6];
    uint32_t p, i;
    int mode;
    for (p = 0; p < 1u << (8u * amp_dtype_size(t)); p++) {
        for (mode = 0; mode < MODES; mode++) {
            int right;
            set_mode(mode);
            right = widen_is_right(p, t);
            set_mode(0);
            if (!right) return 20 + mode;
        }
        for (i = 0; i < 6; i++)
            define(&d[i], ampi_decode(p, t) + i / 3 * 0x1000u + i % 3 - 1u);
        mode = wrong_mode(d, 6);
        if (mode) return 30 + mode - 1;
    }
    return 0;
}

int main(int argc, char **argv) {
    uint64_t step = argc > 1 ? strtoul(argv[1], NULL, 10) : 8191u; /* a prime */
    uint64_t from = argc > 3 ? strtoul(argv[2], NULL, 10) : 0u;
    uint64_t to = argc > 3 ? strtoul(argv[3], NULL, 10) : 256u;
    amp_dtype t;
    int failed = every_float(from << 24, to << 24, step);
    for (t = AMP_F16; t < AMP_DTYPE_COUNT && !failed; t = (amp_dtype)(t + 1))
        failed = every_pattern(t);
    return failed;
}
