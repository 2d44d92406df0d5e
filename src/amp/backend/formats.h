/* ==== >>backend ==================================================================================================
   From here on: for authors of kernels, optimizers and backends. First the arithmetic and the per-element math, written
   once for every backend, then the jobs and the table of functions that a backend implements. */

/* ---- formats of numbers: the bodies of >>types and >>formats ----
   tests: tests/test_formats.c, tests/exhaustive.c, tests/ptx.sh */

#if defined(__apple_build_version__)
#  define AMPI_CLANG_DROPS 16 /* its numbers are its own */
#else
#  define AMPI_CLANG_DROPS 17
#endif
#if defined(__clang__) && __clang_major__ >= AMPI_CLANG_DROPS && defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#  error "amp.h: with -ffast-math this clang drops tests for Inf and NaN, also those of bits: add -fno-finite-math-only"
#endif
AMP_INLINE amp_array amp_arr(const void *data, amp_dtype dtype) {
    amp_array a = AMP_ZERO;
    memcpy(&a.data, &data, sizeof data);
    a.dtype = dtype;
    return a;
}
AMP_INLINE amp_array amp_arrn(const void *data, amp_dtype dtype, size_t count) {
    amp_array a = amp_arr(data, dtype);
    a.count = count;
    return a;
}
AMP_INLINE amp_optional amp_opt(float x) {
    amp_optional o = {x, 1};
    return o;
}

AMP_INLINE uint32_t ampi_bits(float x) {
    uint32_t u;
    memcpy(&u, &x, 4);
    return u;
}
AMP_INLINE float ampi_float(uint32_t u) {
    float x;
    memcpy(&x, &u, 4);
    return x;
}

/* The small formats: all that is known of them. Another one is a row here, and a size in amp_dtype_size. */
typedef struct ampi_format {
    uint32_t mant;         /* mantissa bits */
    uint32_t emin;         /* biased float exponent of the smallest normal number */
    uint32_t limit;        /* the first float, as bits, that overflows */
    uint32_t over, maxf;   /* patterns of what overflows, and of the largest finite number */
    uint32_t nan, payload; /* pattern of NaN, and which of its bits are kept of a float's NaN */
    uint32_t sign;         /* place of the sign bit */
} ampi_format;
/* clang-format off */
#define AMPI_FORMATS(X) \
    /* AMP_,   name,   mant, emin,       limit,    over,    maxf,     nan, payload, sign */ \
    X( F16,    f16,     10,   113, 0x477ff000u, 0x7c00u, 0x7bffu, 0x7e00u,  0x3ffu,   15) \
    X( BF16,   bf16,     7,     1, 0x7f7f8000u, 0x7f80u, 0x7f7fu, 0x7fc0u,  0x07fu,   15) \
    X( F8E4M3, f8e4m3,   3,   121, 0x43e80001u,   0x7fu,   0x7eu,   0x7fu,       0,    7) \
    X( F8E5M2, f8e5m2,   2,   113, 0x47700000u,   0x7cu,   0x7bu,   0x7eu,       3,    7)
/* clang-format on */
#define AMPI_FORMAT_ROW(T, name, ...) \
    if (t == AMP_##T) { \
        ampi_format f = {__VA_ARGS__}; \
        return f; \
    }
AMP_INLINE ampi_format ampi_format_of(amp_dtype t) { /* folded when t is a constant; all 0 for F32 */
    ampi_format none = AMP_ZERO;
    AMPI_FORMATS(AMPI_FORMAT_ROW)
    return none;
}
AMP_INLINE int ampi_has_inf(ampi_format f) { return f.over != f.nan; }
/* Not made of the rows: as comparisons it leaves ampi_k_cast 80 registers instead of 94. */
AMP_INLINE size_t amp_dtype_size(amp_dtype t) {
#if !defined(AMP_DEVICE) /* no kernel asks */
    if (t == AMP_F64) return 8u;
#endif
    if (t == AMP_F32) return 4u;
    if (t == AMP_F16 || t == AMP_BF16) return 2u;
    return t == AMP_F8E4M3 || t == AMP_F8E5M2 ? 1u : 0u;
}

/* Conversions by NVIDIA's GPUs, as PTX, which no compiler flag changes: the same bits for all numbers within the range.
   NaN, and what lies beyond, is the callers'. */
#if defined(__CUDA_ARCH__)
AMP_INLINE uint32_t ampi_from_half(uint32_t pattern) {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"((uint16_t)pattern));
    return ampi_bits(x);
}
AMP_INLINE uint32_t ampi_to_half(uint32_t x) {
    uint16_t h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(ampi_float(x)));
    return h;
}
AMP_INLINE uint32_t ampi_to_halves(uint32_t low, uint32_t high) {
#  if __CUDA_ARCH__ >= 800
    uint32_t w;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(w) : "f"(ampi_float(high)), "f"(ampi_float(low)));
    return w;
#  else
    return ampi_to_half(low) | ampi_to_half(high) << 16;
#  endif
}
#  if __CUDA_ARCH__ >= 800
#    define AMPI_BF16_HARDWARE 1
AMP_INLINE uint32_t ampi_to_bf16s(uint32_t low, uint32_t high) {
    uint32_t w;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(w) : "f"(ampi_float(high)), "f"(ampi_float(low)));
    return w;
}
#  endif
#  if __CUDA_ARCH__ >= 890
#    define AMPI_F8_HARDWARE(t) ((t) == AMP_F8E4M3 || (t) == AMP_F8E5M2)
AMP_INLINE uint32_t ampi_from_two_f8(uint32_t patterns, amp_dtype t) { /* to two halves, exactly */
    uint32_t w;
    if (t == AMP_F8E4M3)
        asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(w) : "h"((uint16_t)patterns));
    else
        asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(w) : "h"((uint16_t)patterns));
    return w;
}
AMP_INLINE uint32_t ampi_to_two_f8(uint32_t low, uint32_t high, amp_dtype t) {
    uint16_t w;
    if (t == AMP_F8E4M3)
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(w) : "f"(ampi_float(high)), "f"(ampi_float(low)));
    else
        asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(w) : "f"(ampi_float(high)), "f"(ampi_float(low)));
    return w;
}
#  endif
#endif

/* A pattern of FP8 to float bits. Without the hardware's way it is read as a half, of which a number of E4M3 is 2^8
   times as much. */
#if defined(__CUDA_ARCH__)
AMP_INLINE uint32_t ampi_from_f8(uint32_t pattern, amp_dtype t) {
#  if defined(AMPI_F8_HARDWARE)
    return ampi_from_half(ampi_from_two_f8(pattern, t) & 0xffffu);
#  else
    float x;
    if (t == AMP_F8E5M2) return ampi_from_half(pattern << 8);
    asm("mul.rn.f32 %0, %1, 0f43800000;"
        : "=f"(x)
        : "f"(ampi_float(ampi_from_half((pattern & 0x80u) << 8 | (pattern & 0x7fu) << 7))));
    return ampi_bits(x);
#  endif
}
#endif

/* The magnitude of a float, as bits, to the pattern of a format with so many bits of mantissa; what is beyond the range
   is the caller's. It becomes a fixed-point number q.F of the target's grid, F of 32 bits; nearest-even and stochastic
   rounding differ only in what is added to F before its carry goes into q:
       nearest even  0x7fffffff + (q odd)
       stochastic    r, uniform in [0, 2^32): away from zero with probability F / 2^32
   F is exact for every number of at least 2^-33 of the grid's step, so the expectation of the result is the number. */
AMP_INLINE uint32_t ampi_on_grid(uint32_t a, uint32_t mant, uint32_t emin, amp_rounding how, uint32_t r) {
    uint32_t hidden = a >> 23 ? 0x800000u : 0u;
    uint32_t e = a >> 23 ? a >> 23 : 1u;
    uint32_t grid = e > emin ? e : emin; /* exponent that the target's step belongs to */
    uint32_t shift = 23u - mant + (grid - e);
    uint64_t v = (uint64_t)((a & 0x7fffffu) | hidden) << 32;
    uint32_t q;
    v = shift > 56u ? 0u : v >> shift;
    q = (uint32_t)(v >> 32);
    v += how == AMP_STOCHASTIC ? r : 0x7fffffffu + (q & 1u);
    return (uint32_t)(v >> 32) + ((grid - emin) << mant);
}
AMP_INLINE uint32_t ampi_rounded(uint32_t a, amp_dtype t, amp_rounding how, uint32_t r) {
    ampi_format f = ampi_format_of(t);
    if (t == AMP_BF16) return (a + (how == AMP_NEAREST ? 0x7fffu + (a >> 16 & 1u) : r >> 16)) >> 16;
#if defined(__CUDA_ARCH__)
    if (how == AMP_NEAREST && t == AMP_F16) return ampi_to_half(a);
#  if defined(AMPI_F8_HARDWARE)
    if (how == AMP_NEAREST && AMPI_F8_HARDWARE(t)) return ampi_to_two_f8(a, 0, t) & 0xffu;
#  endif
#endif
    return ampi_on_grid(a, f.mant, f.emin, how, r);
}
/* What overflows becomes Inf there by itself. */
AMP_INLINE int ampi_rounds_to_inf(amp_dtype t, amp_rounding how) {
#if defined(__CUDA_ARCH__)
    if (t == AMP_F16 && how == AMP_NEAREST) return 1;
#endif
    return t == AMP_BF16 && how == AMP_NEAREST;
}
/* Float bits x to the 8- or 16-bit pattern. Overflow is never random: the same numbers overflow in both modes. */
AMP_INLINE uint32_t ampi_encode(uint32_t x, amp_dtype t, amp_rounding how, uint32_t r, int saturate) {
    ampi_format f = ampi_format_of(t);
    uint32_t a = x & 0x7fffffffu, q = ampi_rounded(a, t, how, r);
    if (saturate || !ampi_rounds_to_inf(t, how)) {
        if (q > f.maxf) q = f.maxf;
        if (a >= f.limit) q = saturate ? f.maxf : f.over;
    }
    if (a > 0x7f800000u) q = f.nan | ((a >> (23u - f.mant)) & f.payload);
    return (x >> 31) << f.sign | q;
}

AMP_INLINE uint32_t ampi_in_each(uint32_t pattern, amp_dtype t) { /* of a small format; in each element of a word */
    return pattern * (amp_dtype_size(t) == 1u ? 0x01010101u : 0x00010001u);
}
/* Not finite: the exponent bits e of every element in the word are ones, so adding its lowest bit carries into the
   sign's place, and never past it. */
AMP_INLINE uint32_t ampi_exponents(amp_dtype t) {
    return t == AMP_F32 ? 0x7f800000u : ampi_in_each(ampi_format_of(t).over, t);
}
AMP_INLINE uint32_t ampi_signs(amp_dtype t) {
    return t == AMP_F32 ? 0x80000000u : ampi_in_each(1u << ampi_format_of(t).sign, t);
}

AMP_INLINE uint32_t ampi_top_bit(uint32_t m) { /* position of the highest set bit of m, 0 < m < 1024 */
    uint32_t p = 0;
    if (m >> 8) {
        p += 8;
        m >>= 8;
    }
    if (m >> 4) {
        p += 4;
        m >>= 4;
    }
    if (m >> 2) {
        p += 2;
        m >>= 2;
    }
    return p + (m >> 1);
}

/* The 8- or 16-bit pattern to float bits: exact; NaN made quiet. */
AMP_INLINE uint32_t ampi_decode(uint32_t b, amp_dtype t) {
    ampi_format f = ampi_format_of(t);
    uint32_t sign = (b >> f.sign) << 31;
    uint32_t a = b & ((1u << f.sign) - 1u);
    uint32_t up = 23u - f.mant;
    uint32_t m = a & ((1u << f.mant) - 1u);
    int infinite = ampi_has_inf(f) && a == f.over;
    uint32_t p;
    if (t == AMP_BF16) return sign | (a << 16) | (a > f.over ? 0x400000u : 0u);
#if defined(__CUDA_ARCH__)
    if (infinite || a < f.over) return t == AMP_F16 ? ampi_from_half(b) : ampi_from_f8(b, t);
#endif
    if (a >= f.over) return sign | 0x7f800000u | (m << up) | (infinite ? 0u : 0x400000u);
    if (a >> f.mant) return sign | ((a << up) + ((f.emin - 1u) << 23));
    if (m == 0) return sign;
    p = ampi_top_bit(m); /* a subnormal: m * 2^(emin - 127 - mant) becomes a normal float */
    return sign | ((f.emin - f.mant + p) << 23) | ((m << (23u - p)) & 0x7fffffu);
}

/* ampi_decode and ampi_encode for a dtype that is known only at run time, F32 too: the format's constants fold into
   each case. */
#define AMPI_FORMAT_DECODE(T, ...) \
case AMP_##T: return ampi_decode(pattern, AMP_##T);
AMP_INLINE uint32_t ampi_decode_any(uint32_t pattern, amp_dtype t) {
    switch (t) {
        AMPI_FORMATS(AMPI_FORMAT_DECODE)
    case AMP_AUTO:
    case AMP_F32:
    case AMP_F64:
    case AMP_MOMENT_8BIT:
    case AMP_MASK:
    case AMP_DTYPE_COUNT: break;
    }
    return pattern;
}
#define AMPI_FORMAT_ENCODE(T, ...) \
case AMP_##T: return ampi_encode(x, AMP_##T, how, r, saturate);
AMP_INLINE uint32_t ampi_encode_any(uint32_t x, amp_dtype t, amp_rounding how, uint32_t r, int saturate) {
    switch (t) {
        AMPI_FORMATS(AMPI_FORMAT_ENCODE)
    case AMP_AUTO:
    case AMP_F32:
    case AMP_F64:
    case AMP_MOMENT_8BIT:
    case AMP_MASK:
    case AMP_DTYPE_COUNT: break;
    }
    return x;
}

/* A mask: bit c % 8 of byte c / 8 of a row; a row begins with a byte, bits behind its end are 0. ReLU's are 1 unless
   y <= 0, y as it is stored; no y of ReLU is negative, so where it is not 0. */
AMP_INLINE size_t ampi_mask_pitch(size_t cols) { return cols / 8u + (cols % 8u != 0); }
AMP_INLINE uint8_t *ampi_mask_at(void *mask, size_t row, size_t cols, size_t col) { /* col: a multiple of 8 */
    return (uint8_t *)mask + row * ampi_mask_pitch(cols) + col / 8u;
}
/* What stands in y's place: 1 or 0. */
AMP_INLINE float ampi_mask_y(const uint8_t *bits, size_t i) { return bits[i / 8u] >> i % 8u & 1u ? 1.0f : 0.0f; }

/* ---- the same for one number at a time on the host ----
   The definitions above hold for every number. Nearly all are normal or zero, and take a shorter way here. F16 has
   instructions where the build enables F16C: their rounding is in the instruction; no bit depends on the control word
   (tests/compile/inline.c), but they raise flags as IEEE 754 says. */
#if !defined(AMP_DEVICE) && defined(__GNUC__) && !defined(__TINYC__)
#  if defined(__clang__) /* not inlined, so that the short way is; one compiler warns of the other's form */
#    define AMPI_RARE AMP_INLINE __attribute__((noinline, __cold__))
#  else
#    define AMPI_RARE AMP_HD static __attribute__((noinline, __cold__, __unused__))
#  endif
#else
#  define AMPI_RARE AMP_INLINE
#endif
AMPI_RARE uint32_t ampi_round_rare(uint32_t x, amp_dtype t, int saturate) {
    return ampi_encode_any(x, t, AMP_NEAREST, 0, saturate);
}
AMPI_RARE uint32_t ampi_widen_rare(uint32_t pattern, amp_dtype t) { return ampi_decode_any(pattern, t); }

#if defined(__F16C__) && defined(__GNUC__) && !defined(__TINYC__) && !defined(__CUDACC__)
#  define AMPI_F16C
typedef float ampi_four __attribute__((__vector_size__(16)));
AMP_INLINE uint32_t ampi_f16c_narrow(uint32_t x) {
    ampi_four v = {ampi_float(x), 0.0f, 0.0f, 0.0f};
    __asm__("{vcvtps2ph $0, %0, %0|vcvtps2ph %0, %0, 0}"
        : "+x"(v)); /* 0: to nearest even, whatever the control word says */
    return ampi_bits(v[0]) & 0xffffu;
}
AMP_INLINE uint32_t ampi_f16c_widen(uint32_t pattern) {
    ampi_four v = {ampi_float(pattern), 0.0f, 0.0f, 0.0f};
    __asm__("vcvtph2ps %0, %0" : "+x"(v));
    return ampi_bits(v[0]);
}
#endif

/* ampi_encode to nearest even */
AMP_INLINE uint32_t ampi_round_bits(uint32_t x, amp_dtype t, int saturate) {
#if defined(AMP_DEVICE)
    return ampi_encode(x, t, AMP_NEAREST, 0, saturate);
#else
    ampi_format f = ampi_format_of(t);
    uint32_t a = x & 0x7fffffffu, up = 23u - f.mant, sign = (x >> 31) << f.sign;
    uint32_t bias = ((f.emin - 1u) << 23) & (0u - (uint32_t)(a != 0)); /* so that zero goes with the normal ones */
    int tiny = f.emin > 1u && a - 1u < (f.emin << 23) - 1u;
#  if defined(AMPI_F16C)
    if (t == AMP_F16 && !saturate) return ampi_f16c_narrow(x);
#  endif
    if (tiny || a >= f.limit) return ampi_round_rare(x, t, saturate);
    return sign | (a - bias + (1u << (up - 1u)) - 1u + ((a >> up) & 1u)) >> up;
#endif
}
/* ampi_decode */
AMP_INLINE uint32_t ampi_widen_bits(uint32_t pattern, amp_dtype t) {
#if defined(AMP_DEVICE)
    return ampi_decode(pattern, t);
#else
    ampi_format f = ampi_format_of(t);
    uint32_t a = pattern & ((1u << f.sign) - 1u), sign = (pattern >> f.sign) << 31;
    uint32_t bias = ((f.emin - 1u) << 23) & (0u - (uint32_t)(a != 0));
    int tiny = a - 1u < (1u << f.mant) - 1u;
#  if defined(AMPI_F16C)
    if (t == AMP_F16) return ampi_f16c_widen(pattern);
#  endif
    if (t == AMP_BF16) return ampi_decode(pattern, t);
    if (tiny || a >= f.over) return ampi_widen_rare(pattern, t);
    return sign | ((a << (23u - f.mant)) + bias);
#endif
}
/* For a dtype that is known only at run time: the format's constants fold into each line. */
#define AMPI_FORMAT_WIDE(T, ...) \
    if (t == AMP_##T) return ampi_widen_bits(pattern, AMP_##T);
AMP_INLINE uint32_t ampi_widen_any(uint32_t pattern, amp_dtype t) {
    AMPI_FORMATS(AMPI_FORMAT_WIDE)
    return pattern;
}
#define AMPI_FORMAT_NEAREST(T, ...) \
    if (t == AMP_##T) return ampi_round_bits(x, AMP_##T, 0);
AMP_INLINE uint32_t ampi_round_any(uint32_t x, amp_dtype t) {
    AMPI_FORMATS(AMPI_FORMAT_NEAREST)
    return x;
}

/* Double to float bits by rounding to odd: the last bit remembers whether anything was cut off, so that a second
   rounding to a format at least two bits shorter is as if rounded once (Boldo and Melquiond, "Emulation of a FMA and
   correctly rounded sums", 2008). */
AMP_INLINE uint32_t ampi_odd_f32(double x) {
    uint64_t d, m;
    uint32_t sign, e, shift;
    memcpy(&d, &x, 8);
    sign = (uint32_t)(d >> 32) & 0x80000000u;
    e = (uint32_t)(d >> 52) & 0x7ffu;
    m = d & 0xfffffffffffffu;
    if (e == 0x7ffu) return sign | 0x7f800000u | (m ? 0x400000u | (uint32_t)(m >> 29) : 0u);
    if (e >= 1023u + 128u) return sign | 0x7f7fffffu;
    if (e <= 1023u - 127u) { /* below the normal floats */
        shift = 29u + (1023u - 126u - e);
        m |= (uint64_t)1 << 52;
        if (e == 0 || shift > 53u) /* in halves: clang 22 compares the whole as a double, which raises flags */
            return sign | (((uint32_t)d | ((uint32_t)(d >> 32) & 0x7fffffffu)) ? 1u : 0u);
        return sign | (uint32_t)(m >> shift) | (m & (((uint64_t)1 << shift) - 1u) ? 1u : 0u);
    }
    return sign | ((e - 1023u + 127u) << 23) | (uint32_t)(m >> 29) | (m & 0x1fffffffu ? 1u : 0u);
}

/* x rounded once, as a pattern. */
AMP_INLINE uint32_t ampi_nearest_bits(uint32_t x, amp_dtype t) { return ampi_round_bits(x, t, 0); }
AMP_INLINE uint32_t ampi_nearest(float x, amp_dtype t) { return ampi_nearest_bits(ampi_bits(x), t); }
AMP_INLINE uint32_t ampi_nearest_sat(float x, amp_dtype t) { return ampi_round_bits(ampi_bits(x), t, 1); }
AMP_INLINE uint32_t ampi_nearest_f64(double x, amp_dtype t) {
    return ampi_encode(ampi_odd_f32(x), t, AMP_NEAREST, 0, 0);
}
AMP_INLINE uint32_t ampi_stochastic(float x, amp_dtype t, uint32_t r) {
    return ampi_encode(ampi_bits(x), t, AMP_STOCHASTIC, r, 0);
}
AMP_INLINE float ampi_decoded(uint32_t pattern, amp_dtype t) { return ampi_float(ampi_widen_bits(pattern, t)); }

#define AMPI_OF_PATTERN(name, word) \
    AMP_INLINE amp_##name ampi_##name(uint32_t pattern) { \
        amp_##name h; \
        h.bits = (word)pattern; \
        return h; \
    }
AMPI_OF_PATTERN(f16, uint16_t)
AMPI_OF_PATTERN(bf16, uint16_t)
AMPI_OF_PATTERN(f8e4m3, uint8_t)
AMPI_OF_PATTERN(f8e5m2, uint8_t)
#undef AMPI_OF_PATTERN

AMP_INLINE amp_f16 amp_f16_from_f32(float x) { return ampi_f16(ampi_nearest(x, AMP_F16)); }
AMP_INLINE amp_bf16 amp_bf16_from_f32(float x) { return ampi_bf16(ampi_nearest(x, AMP_BF16)); }
AMP_INLINE amp_f8e4m3 amp_f8e4m3_from_f32(float x) { return ampi_f8e4m3(ampi_nearest(x, AMP_F8E4M3)); }
AMP_INLINE amp_f8e5m2 amp_f8e5m2_from_f32(float x) { return ampi_f8e5m2(ampi_nearest(x, AMP_F8E5M2)); }
AMP_INLINE amp_f8e4m3 amp_f8e4m3_from_f32_sat(float x) { return ampi_f8e4m3(ampi_nearest_sat(x, AMP_F8E4M3)); }
AMP_INLINE amp_f8e5m2 amp_f8e5m2_from_f32_sat(float x) { return ampi_f8e5m2(ampi_nearest_sat(x, AMP_F8E5M2)); }
AMP_INLINE amp_f16 amp_f16_from_f32_sr(float x, uint32_t r) { return ampi_f16(ampi_stochastic(x, AMP_F16, r)); }
AMP_INLINE amp_bf16 amp_bf16_from_f32_sr(float x, uint32_t r) { return ampi_bf16(ampi_stochastic(x, AMP_BF16, r)); }
AMP_INLINE amp_f8e4m3 amp_f8e4m3_from_f32_sr(float x, uint32_t r) {
    return ampi_f8e4m3(ampi_stochastic(x, AMP_F8E4M3, r));
}
AMP_INLINE amp_f8e5m2 amp_f8e5m2_from_f32_sr(float x, uint32_t r) {
    return ampi_f8e5m2(ampi_stochastic(x, AMP_F8E5M2, r));
}
AMP_INLINE amp_f16 amp_f16_from_f64(double x) { return ampi_f16(ampi_nearest_f64(x, AMP_F16)); }
AMP_INLINE amp_bf16 amp_bf16_from_f64(double x) { return ampi_bf16(ampi_nearest_f64(x, AMP_BF16)); }
AMP_INLINE float amp_f32_from_f16(amp_f16 h) { return ampi_decoded(h.bits, AMP_F16); }
AMP_INLINE float amp_f32_from_bf16(amp_bf16 h) { return ampi_decoded(h.bits, AMP_BF16); }
AMP_INLINE float amp_f32_from_f8e4m3(amp_f8e4m3 h) { return ampi_decoded(h.bits, AMP_F8E4M3); }
AMP_INLINE float amp_f32_from_f8e5m2(amp_f8e5m2 h) { return ampi_decoded(h.bits, AMP_F8E5M2); }

/* One element as it lies in memory. A host takes any address; a device loads and stores whole aligned elements. */
#if defined(AMP_DEVICE)
AMP_INLINE uint32_t ampi_load_pattern(const void *data, amp_dtype t, size_t i) {
    size_t size = amp_dtype_size(t);
    if (size == 4u) return ((const uint32_t *)data)[i];
    return size == 2u ? ((const uint16_t *)data)[i] : ((const uint8_t *)data)[i];
}
AMP_INLINE void ampi_store_pattern(void *data, amp_dtype t, size_t i, uint32_t pattern) {
    size_t size = amp_dtype_size(t);
    if (size == 4u) ((uint32_t *)data)[i] = pattern;
    if (size == 2u) ((uint16_t *)data)[i] = (uint16_t)pattern;
    if (size == 1u) ((uint8_t *)data)[i] = (uint8_t)pattern;
}
#else
AMP_INLINE uint32_t ampi_load_pattern(const void *data, amp_dtype t, size_t i) {
    size_t size = amp_dtype_size(t);
    uint32_t u;
    uint16_t h;
    if (size == 1u) return ((const uint8_t *)data)[i];
    if (size == 2u) {
        memcpy(&h, (const char *)data + 2u * i, 2);
        return h;
    }
    memcpy(&u, (const char *)data + 4u * i, 4);
    return u;
}
AMP_INLINE void ampi_store_pattern(void *data, amp_dtype t, size_t i, uint32_t pattern) {
    size_t size = amp_dtype_size(t);
    uint16_t h = (uint16_t)pattern;
    if (size == 4u) memcpy((char *)data + 4u * i, &pattern, 4);
    if (size == 2u) memcpy((char *)data + 2u * i, &h, 2);
    if (size == 1u) ((uint8_t *)data)[i] = (uint8_t)pattern;
}
#endif
AMP_INLINE uint32_t ampi_load_bits(const void *data, amp_dtype t, size_t i) { /* as the bits of a float */
    return ampi_widen_any(ampi_load_pattern(data, t, i), t);
}
AMP_INLINE float amp_load(const void *data, amp_dtype t, size_t i) { return ampi_float(ampi_load_bits(data, t, i)); }
AMP_INLINE void amp_store(void *data, amp_dtype t, size_t i, float x) {
    ampi_store_pattern(data, t, i, ampi_round_any(ampi_bits(x), t));
}

AMP_INLINE int amp_is_finite(float x) { return (ampi_bits(x) & 0x7f800000u) != 0x7f800000u; }
AMP_INLINE int amp_is_nan(float x) { return (ampi_bits(x) & 0x7fffffffu) > 0x7f800000u; }

AMP_INLINE void amp_philox(uint32_t out[4], uint64_t seed, uint64_t stream, uint64_t counter) {
    uint32_t c0 = (uint32_t)counter, c1 = (uint32_t)(counter >> 32);
    uint32_t c2 = (uint32_t)stream, c3 = (uint32_t)(stream >> 32);
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    int i;
    for (i = 0; i < 10; i++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}
AMP_INLINE uint32_t amp_random(uint64_t seed, uint64_t stream, uint64_t index) {
    uint32_t w[4];
    amp_philox(w, seed, stream, index >> 2);
    if (index & 2u) return index & 1u ? w[3] : w[2]; /* no indexing: stays in registers on a device */
    return index & 1u ? w[1] : w[0];
}

