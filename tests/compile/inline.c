/* inline.c - the inline conversions, which take short ways and, built with -mf16c, instructions, beside definitions
   (ampi_encode, ampi_decode): all 16- and 8-bit patterns and a share of all floats, in the default floating-point mode,
   in each rounding mode, and with FTZ and DAZ. Argument: a step between floats, 1 for all. The exit status tells what
   failed. */
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

static uint32_t encoded(uint32_t x, amp_dtype t, int saturate) { return ampi_encode(x, t, AMP_NEAREST, 0, saturate); }
static int narrow_is_right(uint32_t x) {
    float f = ampi_float(x);
    uint8_t room[4];
    amp_dtype t;
    if (amp_f16_from_f32(f).bits != encoded(x, AMP_F16, 0)) return 0;
    if (amp_bf16_from_f32(f).bits != encoded(x, AMP_BF16, 0)) return 0;
    if (amp_f8e4m3_from_f32(f).bits != encoded(x, AMP_F8E4M3, 0)) return 0;
    if (amp_f8e5m2_from_f32(f).bits != encoded(x, AMP_F8E5M2, 0)) return 0;
    if (amp_f8e4m3_from_f32_sat(f).bits != encoded(x, AMP_F8E4M3, 1)) return 0;
    if (amp_f8e5m2_from_f32_sat(f).bits != encoded(x, AMP_F8E5M2, 1)) return 0;
    for (t = AMP_F16; t < AMP_DTYPE_COUNT; t = (amp_dtype)(t + 1)) {
        amp_store(room, t, 0, f);
        if (ampi_load_pattern(room, t, 0) != encoded(x, t, 0)) return 0;
    }
    return 1;
}
static int widen_is_right(uint32_t pattern, amp_dtype t) {
    uint8_t room[4];
    ampi_store_pattern(room, t, 0, pattern);
    return ampi_load_bits(room, t, 0) == ampi_decode(pattern, t) &&
        ampi_bits(amp_load(room, t, 0)) == ampi_decode(pattern, t);
}

int main(int argc, char **argv) {
    uint64_t step = argc > 1 ? strtoul(argv[1], NULL, 10) : 8191u, x; /* a prime */
    amp_dtype t;
    uint32_t p;
    int mode;
    for (mode = 0; mode < 6; mode++) {
        set_mode(mode);
        for (x = (uint64_t)mode; x < (uint64_t)1 << 32; x += step)
            if (!narrow_is_right((uint32_t)x)) return 10 + mode;
        for (t = AMP_F16; t < AMP_DTYPE_COUNT; t = (amp_dtype)(t + 1))
            for (p = 0; p < 1u << (8u * amp_dtype_size(t)); p++) {
                if (!widen_is_right(p, t)) return 20 + mode;
                for (x = 0; x < 4; x++) /* around every number, and around every tie */
                    if (!narrow_is_right(ampi_decode(p, t) + (uint32_t)(x & 1) * 0x1000u + (uint32_t)(x & 2) / 2 - 1u))
                        return 30 + mode;
            }
    }
    set_mode(0);
    return 0;
}
