/* ---- arithmetic that no compiler flag changes: each operation rounds once, to nearest even, subnormals kept ----
   NVIDIA's GPUs: PTX .rn without .ftz. Elsewhere the result passes through an empty asm statement, so it can be neither
   contracted nor reassociated, and division and square root are not replaced by estimates (on POWER, -ffast-math does
   that). Rounding mode and FTZ/DAZ: the verbs see to it; called by themselves (in kernels of your own, say), these
   functions and amp_exp, amp_log, amp_gelu work in the environment they find.
   tests: tests/test_modes.c, tests/test_formats.c, tests/compile/quotients.c, tests/ptx.sh */
#if defined(__CUDA_ARCH__)
#  define AMPI_OP2(name, T, ptx, c) \
    AMP_INLINE T name(T a, T b) { \
        T r; \
        asm(ptx " %0, %1, %2;" : "=" c(r) : c(a), c(b)); \
        return r; \
    }
#  define AMPI_OP1(name, R, T, ptx, cr, ct) \
    AMP_INLINE R name(T a) { \
        R r; \
        asm(ptx " %0, %1;" : "=" cr(r) : ct(a)); \
        return r; \
    }
AMPI_OP2(amp_add, float, "add.rn.f32", "f")
AMPI_OP2(amp_sub, float, "sub.rn.f32", "f")
AMPI_OP2(amp_mul, float, "mul.rn.f32", "f")
AMPI_OP2(amp_div, float, "div.rn.f32", "f")
AMPI_OP2(amp_dadd, double, "add.rn.f64", "d")
AMPI_OP2(amp_dsub, double, "sub.rn.f64", "d")
AMPI_OP2(amp_dmul, double, "mul.rn.f64", "d")
AMPI_OP2(amp_ddiv, double, "div.rn.f64", "d")
AMPI_OP1(amp_sqrt, float, float, "sqrt.rn.f32", "f", "f")
AMPI_OP1(amp_dsqrt, double, double, "sqrt.rn.f64", "d", "d")
AMPI_OP1(amp_narrow, float, double, "cvt.rn.f32.f64", "f", "d")
AMPI_OP1(amp_widen, double, float, "cvt.f64.f32", "d", "f")
AMPI_OP1(amp_negative, float, float, "neg.f32", "f", "f")
AMP_INLINE int amp_less(float a, float b) { /* -use_fast_math would flush subnormals in a < b */
    int r;
    asm("{ .reg .pred p; setp.lt.f32 p, %1, %2; selp.s32 %0, 1, 0, p; }" : "=r"(r) : "f"(a), "f"(b));
    return r;
}
#else
#  if !defined(__GNUC__) || defined(__TINYC__)
#    define AMPI_HOLD         volatile /* MSVC may contract: through memory. tcc does not optimise: harmless */
#    define AMPI_GUARD(x)     (void)0
#    define AMPI_GUARD2(x, y) (void)0
#  else
#    define AMPI_HOLD
#    define AMPI_GUARD(x)     __asm__("" : AMPI_HOME(x)) /* where the number is */
#    define AMPI_GUARD2(x, y) __asm__("" : AMPI_HOME(x), AMPI_HOME(y))
#    if defined(AMP_DEVICE)
#      define AMPI_HOME "+v" /* AMD's GPUs; no guard against fast-math's estimates of a / b */
#    endif
#    if defined(__wasm__)
#      define AMPI_HOME "+r"
#    endif
#    if defined(__SSE2__) && !defined(AMP_DEVICE) && !defined(__wasm__)
#      define AMPI_HOME "+x"
#    endif
#    if defined(__aarch64__) && !defined(AMP_DEVICE)
#      define AMPI_HOME "+w"
#    endif
#    ifndef AMPI_HOME
#      define AMPI_HOME "+m"
#    endif
#  endif
#  define AMPI_OP2(name, T, op) \
    AMP_INLINE T name(T a, T b) { \
        AMPI_HOLD T r = a op b; \
        AMPI_GUARD(r); \
        return r; \
    }
#  define AMPI_OP1(name, R, T, value) \
    AMP_INLINE R name(T a) { \
        AMPI_HOLD R r = value; \
        AMPI_GUARD(r); \
        return r; \
    }
#  if defined(__SSE2__) && defined(__GNUC__) && !defined(__TINYC__) && !defined(AMP_DEVICE) && !defined(__wasm__)
#    define AMPI_SSE_BY_NAME
#    define AMPI_BY_NAME(name, T, instruction) \
    AMP_INLINE T name(T a, T b) { \
        __asm__("{" instruction " %1, %0|" instruction " %0, %1}" : "+x"(a) : "x"(b)); \
        return a; \
    }
#  endif
#  if defined(AMPI_SSE_BY_NAME) && !defined(__SSE2_MATH__) /* the operators would be x87's, which round doubles twice */
AMPI_BY_NAME(amp_add, float, "addss")
AMPI_BY_NAME(amp_sub, float, "subss")
AMPI_BY_NAME(amp_mul, float, "mulss")
AMPI_BY_NAME(amp_dadd, double, "addsd")
AMPI_BY_NAME(amp_dsub, double, "subsd")
AMPI_BY_NAME(amp_dmul, double, "mulsd")
#  else
AMPI_OP2(amp_add, float, +)
AMPI_OP2(amp_sub, float, -)
AMPI_OP2(amp_mul, float, *)
AMPI_OP2(amp_dadd, double, +)
AMPI_OP2(amp_dsub, double, -)
AMPI_OP2(amp_dmul, double, *)
#  endif
#  ifdef AMPI_SSE_BY_NAME
AMPI_BY_NAME(amp_div, float, "divss")
AMPI_BY_NAME(amp_ddiv, double, "divsd")
AMP_INLINE float amp_sqrt(float a) {
    float r;
    __asm__("{sqrtss %1, %0|sqrtss %0, %1}" : "=x"(r) : "x"(a));
    return r;
}
AMP_INLINE double amp_dsqrt(double a) {
    double r;
    __asm__("{sqrtsd %1, %0|sqrtsd %0, %1}" : "=x"(r) : "x"(a));
    return r;
}
#  else
/* Fast-math takes the reciprocal of a divisor that is a constant, or that does not change in a loop, and multiplies by
   it. So a divisor is what an empty asm statement made of both operands. */
#    define AMPI_QUOTIENT(name, T) \
    AMP_INLINE T name(T a, T b) { \
        AMPI_HOLD T divisor = b, r; \
        AMPI_GUARD2(a, divisor); \
        r = a / divisor; \
        AMPI_GUARD(r); \
        return r; \
    }
AMPI_QUOTIENT(amp_div, float)
AMPI_QUOTIENT(amp_ddiv, double)
#    ifdef __cplusplus
extern "C++" {
#    endif
#    include <math.h>
#    ifdef __cplusplus
}
#    endif
AMPI_OP1(amp_sqrt, float, float, sqrtf(a))
AMPI_OP1(amp_dsqrt, double, double, sqrt(a))
#  endif
AMPI_OP1(amp_narrow, float, double, (float)a)
AMPI_OP1(amp_widen, double, float, (double)a)
AMP_INLINE int amp_less(float a, float b) { return a < b; }
AMP_INLINE float amp_negative(float x) { return ampi_float(ampi_bits(x) ^ 0x80000000u); }
#endif
/* By the bits: a comparison may flush subnormals. */
AMP_INLINE int ampi_nonzero(float x) { return ampi_bits(x) << 1 != 0; }
/* a * b + c, rounded once, also where the machine has no such instruction. The product is exact in double. Narrowing
   the rounded sum s is right but where s lies halfway between two floats, or below their normal range: there s + e, the
   exact sum (Knuth's two-sum), is rounded to odd first (Boldo and Melquiond, see ampi_odd_f32). */
#if defined(__CUDA_ARCH__)
AMP_INLINE float amp_fma(float a, float b, float c) {
    float r;
    asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(r) : "f"(a), "f"(b), "f"(c));
    return r;
}
#elif defined(__GNUC__) && (defined(__FMA__) || defined(__aarch64__))
AMP_INLINE float amp_fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
#else
AMPI_RARE float ampi_fma_rare(double p, double w, double s) {
    double t = amp_dsub(s, p), e = amp_dadd(amp_dsub(p, amp_dsub(s, t)), amp_dsub(w, t));
    uint64_t u, v;
    memcpy(&u, &s, sizeof u);
    memcpy(&v, &e, sizeof v);
    if (v << 1 == 0) return amp_narrow(s);
    u -= (u ^ v) >> 63; /* the signs differ: s lies beyond the exact sum */
    u |= 1u;
    memcpy(&s, &u, sizeof s);
    return amp_narrow(s);
}
AMP_INLINE float amp_fma(float a, float b, float c) {
    double p = amp_dmul(amp_widen(a), amp_widen(b)), w = amp_widen(c), s = amp_dadd(p, w);
    uint64_t u;
    memcpy(&u, &s, sizeof u);
    if ((u & 0x1fffffffu) != 0x10000000u && (u >> 52 & 0x7ffu) >= 897u) return amp_narrow(s); /* so do Inf and NaN */
    return ampi_fma_rare(p, w, s);
}
#endif
/* ampi_at_least, ampi_at_most: x, or the limit beyond it; NaN stays. ampi_recip: 1 / d, 1 <= d <= 2. */
#if defined(__CUDA_ARCH__)
#  if __CUDA_ARCH__ >= 800
AMPI_OP2(ampi_at_least, float, "max.NaN.f32", "f")
AMPI_OP2(ampi_at_most, float, "min.NaN.f32", "f")
AMPI_OP1(ampi_magnitude, float, float, "abs.f32", "f", "f") /* part of the next instruction; NaN: any */
#  else
AMP_INLINE float ampi_magnitude(float x) { return ampi_float(ampi_bits(x) & 0x7fffffffu); }
AMP_INLINE float ampi_at_least(float x, float limit) { return amp_less(x, limit) ? limit : x; }
AMP_INLINE float ampi_at_most(float x, float limit) { return amp_less(limit, x) ? limit : x; }
#  endif
AMPI_OP2(ampi_larger, float, "max.f32", "f") /* a, where b is NaN */
/* 1 / x, 1 / sqrt(x) and sqrt(x), nearly, for numbers in the middle of the range. */
AMPI_OP1(ampi_about_inverse, float, float, "rcp.approx.ftz.f32", "f", "f")
AMPI_OP1(ampi_about_rsqrt, float, float, "rsqrt.approx.ftz.f32", "f", "f")
AMPI_OP1(ampi_about_root, float, float, "sqrt.approx.ftz.f32", "f", "f")
/* The root, rounded to nearest, of a number in the middle of the range: what ptxas makes of sqrt.rn, without the branch
   for others. */
AMP_INLINE float ampi_root(float x) {
    float y = ampi_about_rsqrt(x), s = amp_mul(x, y);
    return amp_fma(amp_fma(amp_negative(s), s, x), amp_mul(y, 0.5f), s);
}
/* What ptxas makes of rcp.rn for such a d (seen for sm_75 to sm_120), without the branch for others. */
AMP_INLINE float ampi_recip(float d) {
    float r = ampi_about_inverse(d);
    return amp_fma(r, amp_fma(amp_negative(d), r, 1.0f), r);
}
#else
AMP_INLINE float ampi_at_least(float x, float limit) { return amp_less(x, limit) && !amp_is_nan(x) ? limit : x; }
AMP_INLINE float ampi_at_most(float x, float limit) { return amp_less(limit, x) && !amp_is_nan(x) ? limit : x; }
AMP_INLINE float ampi_magnitude(float x) { return ampi_float(ampi_bits(x) & 0x7fffffffu); }
AMP_INLINE float ampi_larger(float a, float b) { return amp_less(a, b) && !amp_is_nan(b) ? b : a; }
AMP_INLINE float ampi_about_inverse(float x) { return amp_div(1.0f, x); }
AMP_INLINE float ampi_about_rsqrt(float x) { return amp_div(1.0f, amp_sqrt(x)); }
AMP_INLINE float ampi_about_root(float x) { return amp_sqrt(x); }
AMP_INLINE float ampi_root(float x) { return amp_sqrt(x); }
AMP_INLINE float ampi_recip(float d) { return amp_div(1.0f, d); }
#endif
#undef AMPI_OP1
#undef AMPI_OP2
#undef AMPI_BY_NAME
#undef AMPI_SSE_BY_NAME

/* ---- doubles as a storage format.   tests: tests/test_arrays.c ---- */

/* The bits of a float to those of a double, exactly; NaN made quiet. */
AMP_INLINE uint64_t ampi_f64_of(uint32_t x) {
    uint64_t sign = (uint64_t)(x >> 31) << 63, a = x & 0x7fffffffu, e = 897;
    uint64_t quiet = a > 0x7f800000u ? (uint64_t)1 << 51 : 0;
    if (a == 0) return sign;
    if (a >= 0x7f800000u) return sign | (uint64_t)0x7ff << 52 | (a & 0x7fffffu) << 29 | quiet;
    if (a >= 0x00800000u) return sign | ((a << 29) + ((uint64_t)896 << 52));
    for (; !(a >> 23); e--)
        a <<= 1;
    return sign | e << 52 | (a & 0x7fffffu) << 29;
}
/* A double to the pattern of any dtype, rounded once; how, r and saturate as in ampi_encode, F32 always to nearest. */
AMP_INLINE uint32_t ampi_encode_f64(double x, amp_dtype t, amp_rounding how, uint32_t r, int saturate) {
    uint32_t odd = ampi_odd_f32(x), size = odd & 0x7fffffffu, nearest;
    if (t != AMP_F32) return ampi_encode_any(odd, t, how, r, saturate);
    if (size > 0x7f800000u) return odd;
    nearest = ampi_bits(amp_narrow(x));
    return saturate && (nearest & 0x7fffffffu) == 0x7f800000u ? nearest - 1u : nearest;
}
/* 0: a double is finite; 1: Inf; 2: NaN */
AMP_INLINE uint32_t ampi_f64_fault(uint64_t x) {
    x &= ~((uint64_t)1 << 63);
    return (uint32_t)(x >= (uint64_t)0x7ff << 52) + (uint32_t)(x > (uint64_t)0x7ff << 52);
}
