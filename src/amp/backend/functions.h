/* ---- exp, log, GELU: our own, so that every backend has the same bits -----------------------------------------------
   What is done to one element is written once, at >>lanes near the end of this file, over operations on "lanes": one
   float here and in kernels, a vector on each SIMD path of the CPU backend. amp.h includes itself (AMP_SELF) for each
   of them: ampi_scalar_exp_scaled is AMPI_F(exp_scaled) there.   tests: tests/test_formats.c, tests/exhaustive.c */

#define AMPI_PASS_MATH   1 /* exp and the activations */
#define AMPI_PASS_UPDATE 2 /* the optimizers */
#define AMPI_PASS_ALIKE  3 /* operations that all paths of vectors spell alike */
#define AMPI_PASS_SCALAR 4 /* loops over arrays, one float at a time */
#define AMPI_PASS_VECTOR 5 /* all of it but the operations, for vectors */

typedef float ampi_scalar_floats;
typedef uint32_t ampi_scalar_words, ampi_scalar_u32;
typedef int ampi_scalar_mask;
AMP_INLINE float ampi_scalar_set(float x) { return x; }
AMP_INLINE uint32_t ampi_scalar_word(uint32_t x) { return x; }
AMP_INLINE float ampi_scalar_sqrt(float a) { return amp_sqrt(a); }
AMP_INLINE float ampi_scalar_root(float x) { return ampi_root(x); }
AMP_INLINE float ampi_scalar_negative(float a) { return amp_negative(a); }
AMP_INLINE float ampi_scalar_magnitude(float a) { return ampi_magnitude(a); }
AMP_INLINE float ampi_scalar_fuse(float a, float b, float c) { return amp_fma(a, b, c); }
AMP_INLINE float ampi_scalar_inverse(float d) { return ampi_recip(d); }
AMP_INLINE int ampi_scalar_greater(uint32_t a, uint32_t b) { return (int32_t)a > (int32_t)b; }
#define AMPI_SCALAR(name, T, value) \
    AMP_INLINE T ampi_scalar_##name(T a, T b) { return value; }
AMPI_SCALAR(add, float, amp_add(a, b))
AMPI_SCALAR(sub, float, amp_sub(a, b))
AMPI_SCALAR(mul, float, amp_mul(a, b))
AMPI_SCALAR(div, float, amp_div(a, b))
AMPI_SCALAR(at_least, float, ampi_at_least(a, b))
AMPI_SCALAR(at_most, float, ampi_at_most(a, b))
AMPI_SCALAR(max, uint32_t, (int32_t)a > (int32_t)b ? a : b)
AMPI_SCALAR(min, uint32_t, (int32_t)a > (int32_t)b ? b : a)
#undef AMPI_SCALAR
AMP_INLINE uint32_t ampi_scalar_select(int condition, uint32_t yes, uint32_t no) { /* no branch */
    uint32_t mask = 0u - (uint32_t)condition;
    return (yes & mask) | (no & ~mask);
}
AMP_INLINE float ampi_scalar_choose(int condition, float yes, float no) { return condition ? yes : no; }
#define AMPI_F(name) ampi_scalar_##name
#define AMPI_PASS    AMPI_PASS_MATH
#include AMP_SELF
#undef AMPI_F

/* e^x. Error <= 1 ulp where the result is normal (tests: every float). x >= 88.72284 gives Inf, x < -103.9721 gives
   0, NaN gives NaN. */
AMP_INLINE float amp_exp(float x) {
    if (amp_is_nan(x)) return x;
    if (amp_less(88.72284f, x)) return ampi_float(0x7f800000u);
    if (amp_less(x, -103.9721f)) return 0.0f;
    if (amp_less(x, 0.0f)) return amp_mul(ampi_scalar_exp_scaled(x, 24), 5.9604644775390625e-8f);
    return amp_mul(ampi_scalar_exp_scaled(x, -24), 16777216.0f);
}

/* ln x. Error <= 1.5 ulp (tests: every float). x < 0 and NaN give NaN, 0 gives -Inf, Inf gives Inf. x = m 2^e, m in
   [sqrt(1/2), sqrt(2)); with s = (m-1)/(m+1): ln m = 2 (s + s^3/3 + ... + s^9/9), next term below 2^-31. */
AMP_INLINE float amp_log(float x) {
    uint32_t u = ampi_bits(x);
    int32_t k, e = 0;
    float f, s, z, p, en;
    if (u << 1 == 0) return ampi_float(0xff800000u);
    if (u >= 0x7f800000u) return u == 0x7f800000u ? x : ampi_float(0x7fc00000u);
    if (u < 0x00800000u) {
        u = ampi_bits(amp_mul(x, 8388608.0f));
        e = -23;
    }
    k = (int32_t)((u + 0x004afb0du) >> 23) - 127; /* 0x3f800000 - 0x004afb0d = 0x3f3504f3: sqrt(1/2) */
    f = amp_sub(ampi_float(u - ((uint32_t)k << 23)), 1.0f);
    s = amp_div(f, amp_add(2.0f, f));
    z = amp_mul(s, s);
    p = amp_add(amp_mul(z, 0.22222222f), 0.28571429f);
    p = amp_add(amp_mul(p, z), 0.4f);
    p = amp_add(amp_mul(p, z), 0.66666667f);
    p = amp_mul(amp_mul(p, z), s); /* ln m = 2s + p; 2s = f - s f */
    en = (float)(e + k);
    p = amp_add(amp_sub(p, amp_mul(s, f)), amp_mul(en, -2.12194440e-4f));
    return amp_add(amp_add(p, f), amp_mul(en, 0.693359375f));
}

/* GELU in its tanh form, x/2 (1 + tanh z) with z = sqrt(2/pi) (x + 0.044715 x^3), and its derivative. Errors <= 2.5e-7
   |x| and <= 3e-7 (tests: every float). Source: Hendrycks and Gimpel, arXiv 1606.08415. */
AMP_INLINE float amp_gelu(float x) { return ampi_scalar_gelu(x); }
AMP_INLINE float amp_gelu_grad(float x) { return ampi_scalar_gelu_grad(x); }
AMP_INLINE float amp_relu(float x) { return ampi_scalar_relu(x); }

/* Activations: name, rule, 1: backward reads aux, the value before the activation, 0: it reads y. The rule is a pair of
   functions at >>lanes, relu(x) and relu_back(dy, saved). To add one: its name in amp_act (>>products), its row, its
   rule. */
#define AMPI_ACT_LIST(X) \
    X(AMP_GELU, gelu, 1) \
    X(AMP_RELU, relu, 0) \
    X(AMP_GELU_ERF, gelu_erf, 1) \
    X(AMP_SILU, silu, 1) \
    X(AMP_TANH, tanh, 0) \
    X(AMP_SIGMOID, sigmoid, 0)
AMP_INLINE float ampi_act(amp_act act, float x) {
#define AMP_X(name, rule, aux) \
    if (act == name) return ampi_scalar_##rule(x);
    AMPI_ACT_LIST(AMP_X)
#undef AMP_X
    return x;
}
AMP_INLINE float ampi_act_grad(amp_act act, float dy, float saved) {
#define AMP_X(name, rule, aux) \
    if (act == name) return ampi_scalar_##rule##_back(dy, saved);
    AMPI_ACT_LIST(AMP_X)
#undef AMP_X
    return dy;
}
AMP_INLINE int ampi_act_reads_aux(amp_act act) {
#define AMP_X(name, rule, aux) || (act == name && (aux))
    return 0 AMPI_ACT_LIST(AMP_X);
#undef AMP_X
}

/* ---- dropout: element i is dropped if its random number is below the threshold; p = 1 drops all ----
   tests: tests/test_memory.c */
AMP_INLINE uint64_t amp_dropout_threshold(float p) {
    float t = amp_mul(p, 4294967296.0f);
    return (uint64_t)t;
}
AMP_INLINE float amp_dropout_factor(float p) {
    return p < 1.0f ? amp_narrow(amp_ddiv(1.0, amp_dsub(1.0, amp_widen(p)))) : 0.0f;
}
AMP_INLINE float amp_dropout_one(float x, uint32_t r, uint64_t threshold, float factor) {
    return r < threshold ? 0.0f : amp_mul(x, factor);
}

