/* hostcuda_half.h - the functions of half and bfloat16 that NVIDIA's headers have for the device alone: computed as
 * float and rounded once. A GPU's are within an ulp or two of that. */
#ifndef HOSTCUDA_HALF_H
#define HOSTCUDA_HALF_H
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace hcu {
template <class H> struct Half;
template <> struct Half<__half> {
    typedef __half2 Two;
    static float up(__half h) { return __half2float(h); }
    static __half down(float v) { return __float2half(v); }
    static __half of_double(double v) { return __double2half(v); }
    static Two pair(__half a, __half b) { return __halves2half2(a, b); }
};
template <> struct Half<__nv_bfloat16> {
    typedef __nv_bfloat162 Two;
    static float up(__nv_bfloat16 h) { return __bfloat162float(h); }
    static __nv_bfloat16 down(float v) { return __float2bfloat16(v); }
    static __nv_bfloat16 of_double(double v) { return __double2bfloat16(v); }
    static Two pair(__nv_bfloat16 a, __nv_bfloat16 b) { return __halves2bfloat162(a, b); }
};
/* a b + c with one rounding: the product is exact, the sum is rounded to odd, so that the second rounding is right */
template <class H> inline H fused(H a, H b, H c) {
    double p = double(Half<H>::up(a)) * double(Half<H>::up(b)), q = double(Half<H>::up(c)), s = p + q;
    double part = s - p, rest = (p - (s - part)) + (q - part);
    if (rest != 0 && s - s == 0 && !(pack(s) & 1)) s = nextafter(s, rest > 0 ? INFINITY : -INFINITY);
    return Half<H>::of_double(s);
}
template <class H> inline H not_negative(H v) { /* relu: a NaN becomes the canonical one */
    float f = Half<H>::up(v);
    return f > 0 ? v : f != f ? Half<H>::down(NAN) : Half<H>::down(0.0f);
}
template <class H> inline H saturated(H v) {
    float f = Half<H>::up(v);
    return Half<H>::down(f > 0 ? (f < 1 ? f : 1.0f) : 0.0f);
}
} // namespace hcu

#define HCU_HALF_FUNCTION(H, name, expression) \
    inline H h##name(H v) { \
        float x = hcu::Half<H>::up(v); \
        return hcu::Half<H>::down(expression); \
    } \
    inline hcu::Half<H>::Two h2##name(hcu::Half<H>::Two v) { return hcu::Half<H>::pair(h##name(v.x), h##name(v.y)); }
#define HCU_HALF_FUNCTIONS(H) \
    HCU_HALF_FUNCTION(H, exp, expf(x)) \
    HCU_HALF_FUNCTION(H, exp2, exp2f(x)) \
    HCU_HALF_FUNCTION(H, exp10, float(pow(10.0, double(x)))) \
    HCU_HALF_FUNCTION(H, log, logf(x)) \
    HCU_HALF_FUNCTION(H, log2, log2f(x)) \
    HCU_HALF_FUNCTION(H, log10, log10f(x)) \
    HCU_HALF_FUNCTION(H, sin, sinf(x)) \
    HCU_HALF_FUNCTION(H, cos, cosf(x)) \
    HCU_HALF_FUNCTION(H, sqrt, sqrtf(x)) \
    HCU_HALF_FUNCTION(H, rsqrt, rsqrtf(x)) \
    HCU_HALF_FUNCTION(H, rcp, 1.0f / x) \
    HCU_HALF_FUNCTION(H, floor, floorf(x)) \
    HCU_HALF_FUNCTION(H, ceil, ceilf(x)) \
    HCU_HALF_FUNCTION(H, trunc, truncf(x)) \
    HCU_HALF_FUNCTION(H, rint, nearbyintf(x)) \
    HCU_HALF_FUNCTION(H, tanh, tanhf(x)) \
    HCU_HALF_FUNCTION(H, tanh_approx, tanhf(x)) \
    inline H __hfma(H a, H b, H c) { return hcu::fused(a, b, c); } \
    inline H __hfma_relu(H a, H b, H c) { return hcu::not_negative(hcu::fused(a, b, c)); } \
    inline H __hfma_sat(H a, H b, H c) { return hcu::saturated(hcu::fused(a, b, c)); } \
    HCU_HALF_PAIR(H, __hfma2, __hfma) \
    HCU_HALF_PAIR(H, __hfma2_relu, __hfma_relu) \
    HCU_HALF_PAIR(H, __hfma2_sat, __hfma_sat) \
    inline hcu::Half<H>::Two __hcmadd(/* complex */ \
        hcu::Half<H>::Two a, hcu::Half<H>::Two b, hcu::Half<H>::Two c) { \
        H real = __hfma(a.x, b.x, c.x), imaginary = __hfma(a.x, b.y, c.y); \
        return hcu::Half<H>::pair(__hfma(__hneg(a.y), b.y, real), __hfma(a.y, b.x, imaginary)); \
    }
#define HCU_HALF_PAIR(H, name, one) \
    inline hcu::Half<H>::Two name(hcu::Half<H>::Two a, hcu::Half<H>::Two b, hcu::Half<H>::Two c) { \
        return hcu::Half<H>::pair(one(a.x, b.x, c.x), one(a.y, b.y, c.y)); \
    }
HCU_HALF_FUNCTIONS(__half)
HCU_HALF_FUNCTIONS(__nv_bfloat16)
#undef HCU_HALF_FUNCTION
#undef HCU_HALF_FUNCTIONS
#undef HCU_HALF_PAIR

/* ---- to and from integers; rz is in NVIDIA's headers ------------------------------------------------------------- */

#define HCU_HALF_TO(H, from, to, I) \
    inline I __##from##2##to##_rn(H v) { return hcu::half_to<I>(nearbyintf(hcu::Half<H>::up(v))); } \
    inline I __##from##2##to##_rd(H v) { return hcu::half_to<I>(floorf(hcu::Half<H>::up(v))); } \
    inline I __##from##2##to##_ru(H v) { return hcu::half_to<I>(ceilf(hcu::Half<H>::up(v))); }
#define HCU_HALF_TO_ALL(H, from) \
    HCU_HALF_TO(H, from, int, int) \
    HCU_HALF_TO(H, from, uint, unsigned) \
    HCU_HALF_TO(H, from, ll, long long) \
    HCU_HALF_TO(H, from, ull, unsigned long long) \
    HCU_HALF_TO(H, from, short, short) \
    HCU_HALF_TO(H, from, ushort, unsigned short)
namespace hcu {
template <class I> inline I half_to(float rounded) { return to_integer<I>(rounded); }
} // namespace hcu
HCU_HALF_TO_ALL(__half, half)
HCU_HALF_TO_ALL(__nv_bfloat16, bfloat16)
#undef HCU_HALF_TO
#undef HCU_HALF_TO_ALL

/* rounded twice in one direction is rounded once */
#define HCU_TO_BF16(from, I, suffix) \
    inline __nv_bfloat16 __##from##2bfloat16_##suffix(I v) { \
        return __float2bfloat16_##suffix(hcu_float_##suffix((long long)v)); \
    }
#define HCU_TO_BF16_ALL(suffix) \
    inline float hcu_float_##suffix(long long v) { return __ll2float_##suffix(v); } \
    HCU_TO_BF16(int, int, suffix) \
    HCU_TO_BF16(uint, unsigned, suffix) \
    HCU_TO_BF16(ll, long long, suffix) \
    HCU_TO_BF16(short, short, suffix) \
    HCU_TO_BF16(ushort, unsigned short, suffix) \
    inline __nv_bfloat16 __ull2bfloat16_##suffix(unsigned long long v) { \
        return __float2bfloat16_##suffix(__ull2float_##suffix(v)); \
    }
HCU_TO_BF16_ALL(rd)
HCU_TO_BF16_ALL(ru)
HCU_TO_BF16_ALL(rz)
#undef HCU_TO_BF16
#undef HCU_TO_BF16_ALL
#endif
