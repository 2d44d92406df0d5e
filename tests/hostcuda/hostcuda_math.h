/* hostcuda_math.h - the mathematical functions of CUDA that neither libm nor hostcuda.h has.
 *
 * NVIDIA's headers hold host versions of erfinv, normcdf, sinpi and the like: those are taken as they are. The rest are
 * lines of ours: exact to the last bit or two, where a GPU promises two or more. The integer and packed ones
 * are exact. */
#ifndef HOSTCUDA_MATH_H
#define HOSTCUDA_MATH_H
#define __CUDA_INCLUDE_COMPILER_INTERNAL_HEADERS__
#define __CUDA_INTERNAL_COMPILATION__
#include <crt/math_functions.h>
#define __DEVICE_HOST_FUNCTIONS_STATIC_DECL__ static inline __attribute__((unused))
#include <crt/device_functions.hpp>
#undef __DEVICE_HOST_FUNCTIONS_STATIC_DECL__
#undef __func__
#undef __device_func__
#undef __CUDA_INTERNAL_COMPILATION__
#undef __CUDA_INCLUDE_COMPILER_INTERNAL_HEADERS__
#include <fenv.h>
#include <math.h>

/* ---- norms, Bessel functions ------------------------------------------------------------------------------------- */

namespace hcu {
template <class T> inline T norm_of(const T *x, int n) { /* no overflow on the way */
    T most = 0, sum = 0;
    for (int i = 0; i < n; i++) {
        if (isinf(x[i])) return T(INFINITY);
        most = fabs(x[i]) > most || x[i] != x[i] ? fabs(x[i]) : most;
    }
    if (!(most > 0)) return most;
    for (int i = 0; i < n; i++)
        sum += (x[i] / most) * (x[i] / most);
    return most * sqrt(sum);
}
inline double norm_many(double x, double y, double z, double w) {
    const double v[4] = {x, y, z, w};
    return norm_of(v, 4);
}
/* I0 and I1 by their series; from 30 on by the asymptotic one. */
inline double bessel_i(int order, double x) {
    double a = fabs(x), sign = order && x < 0 ? -1.0 : 1.0;
    if (a < 30.0) {
        double term = order ? a / 2.0 : 1.0, sum = term;
        for (int k = 1; term > 1e-18 * sum; k++)
            sum += term *= a * a / 4.0 / (double(k) * double(k + order));
        return sign * sum;
    }
    double term = 1.0, sum = 1.0, four = 4.0 * order * order;
    for (int k = 1; k < 20; k++)
        sum += term *= -(four - (2.0 * k - 1.0) * (2.0 * k - 1.0)) / (k * 8.0 * a);
    return sign * exp(a / 2.0) * (exp(a / 2.0) / sqrt(2.0 * 3.14159265358979323846 * a) * sum);
}
} // namespace hcu
inline double norm3d(double x, double y, double z) { return hcu::norm_many(x, y, z, 0.0); }
inline double norm4d(double x, double y, double z, double w) { return hcu::norm_many(x, y, z, w); }
inline double norm(int n, const double *x) { return hcu::norm_of(x, n); }
inline float norm3df(float x, float y, float z) { return float(hcu::norm_many(x, y, z, 0.0)); }
inline float norm4df(float x, float y, float z, float w) { return float(hcu::norm_many(x, y, z, w)); }
inline float normf(int n, const float *x) { return hcu::norm_of(x, n); }
inline double rhypot(double x, double y) { return 1.0 / hypot(x, y); }
inline double rnorm3d(double x, double y, double z) { return 1.0 / norm3d(x, y, z); }
inline double rnorm4d(double x, double y, double z, double w) { return 1.0 / norm4d(x, y, z, w); }
inline double rnorm(int n, const double *x) { return 1.0 / norm(n, x); }
inline float rhypotf(float x, float y) { return float(1.0 / hypot(double(x), double(y))); }
inline float rnorm3df(float x, float y, float z) { return float(1.0 / hcu::norm_many(x, y, z, 0.0)); }
inline float rnorm4df(float x, float y, float z, float w) { return float(1.0 / hcu::norm_many(x, y, z, w)); }
inline float rnormf(int n, const float *x) { return 1.0f / normf(n, x); }
inline double cyl_bessel_i0(double x) { return hcu::bessel_i(0, x); }
inline double cyl_bessel_i1(double x) { return hcu::bessel_i(1, x); }
inline float cyl_bessel_i0f(float x) { return float(hcu::bessel_i(0, x)); }
inline float cyl_bessel_i1f(float x) { return float(hcu::bessel_i(1, x)); }
inline float fdividef(float a, float b) { return a / b; }
inline double fdivide(double a, double b) { return a / b; }
inline float __tanf(float x) { return tanf(x); }
inline float __exp10f(float x) { return float(pow(10.0, double(x))); }
#define __log10f(x)        log10f(x) /* macros: glibc declares functions of these names */
#define __sincosf(x, s, c) sincosf(x, s, c)
#define __tanhf(x)         tanhf(x)

/* ---- arithmetic rounded down, up and towards zero ---------------------------------------------------------------- */

namespace hcu {
/* volatile: nothing may be worked out before, or moved out of, the other mode */
template <class T, class F> inline T rounded(int mode, T a, T b, T c, F f) {
    volatile T x = a, y = b, z = c, result;
    int before = fegetround();
    fesetround(mode);
    result = f(x, y, z);
    fesetround(before);
    return one_nan(result);
}
template <class To, class From> inline To converted(int mode, From v) {
    volatile From x = v;
    int before = fegetround();
    fesetround(mode);
    volatile To result = To(x);
    fesetround(before);
    return result;
}
} // namespace hcu
#define HCU_ROUNDED(suffix, mode) \
    HCU_ROUNDED_OF(float, f, __f, suffix, mode, sqrtf, fmaf) \
    HCU_ROUNDED_OF(double, d, __d, suffix, mode, sqrt, fma) \
    inline float __fmaf_##suffix(float a, float b, float c) { \
        return hcu::rounded(mode, a, b, c, [](float x, float y, float z) { return fmaf(x, y, z); }); \
    } \
    inline float __fmaf_ieee_##suffix(float a, float b, float c) { return __fmaf_##suffix(a, b, c); } \
    inline double __fma_##suffix(double a, double b, double c) { \
        return hcu::rounded(mode, a, b, c, [](double x, double y, double z) { return fma(x, y, z); }); \
    } \
    inline float __double2float_##suffix(double v) { return hcu::converted<float>(mode, v); } \
    inline float __int2float_##suffix(int v) { return hcu::converted<float>(mode, v); } \
    inline float __uint2float_##suffix(unsigned v) { return hcu::converted<float>(mode, v); } \
    inline float __ll2float_##suffix(long long v) { return hcu::converted<float>(mode, v); } \
    inline float __ull2float_##suffix(unsigned long long v) { return hcu::converted<float>(mode, v); } \
    inline double __ll2double_##suffix(long long v) { return hcu::converted<double>(mode, v); } \
    inline double __ull2double_##suffix(unsigned long long v) { return hcu::converted<double>(mode, v); }
#define HCU_ROUNDED_OF(T, letter, prefix, suffix, mode, root, fused) \
    inline T prefix##add_##suffix(T a, T b) { \
        return hcu::rounded(mode, a, b, T(0), [](T x, T y, T) { return x + y; }); \
    } \
    inline T prefix##sub_##suffix(T a, T b) { \
        return hcu::rounded(mode, a, b, T(0), [](T x, T y, T) { return x - y; }); \
    } \
    inline T prefix##mul_##suffix(T a, T b) { \
        return hcu::rounded(mode, a, b, T(0), [](T x, T y, T) { return x * y; }); \
    } \
    inline T prefix##div_##suffix(T a, T b) { \
        return hcu::rounded(mode, a, b, T(0), [](T x, T y, T) { return x / y; }); \
    } \
    inline T prefix##rcp_##suffix(T a) { \
        return hcu::rounded(mode, a, T(0), T(0), [](T x, T, T) { return T(1) / x; }); \
    } \
    inline T prefix##sqrt_##suffix(T a) { \
        return hcu::rounded(mode, a, T(0), T(0), [](T x, T, T) { return T(root(x)); }); \
    }
HCU_ROUNDED(rd, FE_DOWNWARD)
HCU_ROUNDED(ru, FE_UPWARD)
HCU_ROUNDED(rz, FE_TOWARDZERO)
#undef HCU_ROUNDED
#undef HCU_ROUNDED_OF

/* ---- the smaller and the larger float: the other one of a NaN, and -0 is less than 0. By bits and without a branch,
   at which msan would tell an unwritten number, and not where the kernel decides by the result. ---- */

namespace hcu {
template <class I, class T> inline T extreme(T a, T b, bool largest, I nan) { /* nan: of two */
    I x, y, r;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    const I top = std::numeric_limits<I>::max(), sign = 8 * sizeof x - 1;
    const I less = -I((x ^ ((x >> sign) & top)) < (y ^ ((y >> sign) & top)));
    const I no_a = -I(a != a), no_b = -I(b != b), second = ((largest ? less : ~less) & ~no_b) | no_a;
    r = (y & second) | (x & ~second);
    r = (r & ~(no_a & no_b)) | (nan & no_a & no_b);
    memcpy(&a, &r, sizeof r);
    return a;
}
inline float smaller(float a, float b) { return extreme<int32_t>(a, b, false, 0x7fffffff); }
inline float larger(float a, float b) { return extreme<int32_t>(a, b, true, 0x7fffffff); }
inline double smaller(double a, double b) { return extreme<int64_t>(a, b, false, 0x7fffffffffffffff); }
inline double larger(double a, double b) { return extreme<int64_t>(a, b, true, 0x7fffffffffffffff); }
} // namespace hcu
inline float hcu_fminf(float a, float b) { return hcu::smaller(a, b); }
inline float hcu_fmaxf(float a, float b) { return hcu::larger(a, b); }
namespace std { /* std::fmaxf */
using ::hcu_fmaxf;
using ::hcu_fminf;
} // namespace std
#define fminf hcu_fminf /* macros: libm has functions of these names, and leaves the sign of a zero open */
#define fmaxf hcu_fmaxf

/* ---- the logarithm of the gamma function: libm's writes the sign into a variable of all threads, a race ---- */

inline float hcu_lgammaf(float x) {
    int sign;
    return lgammaf_r(x, &sign);
}
inline double hcu_lgamma(double x) {
    int sign;
    return lgamma_r(x, &sign);
}
inline float hcu_lgamma(float x) { return hcu_lgammaf(x); }
template <class I> inline std::enable_if_t<std::is_integral_v<I>, double> hcu_lgamma(I x) {
    return hcu_lgamma(double(x));
}
namespace std {
using ::hcu_lgamma;
using ::hcu_lgammaf;
} // namespace std
#define lgammaf hcu_lgammaf
#define lgamma  hcu_lgamma

/* ---- the smaller and the larger one: declared by NVIDIA's header, and defined on Windows alone ------------------- */

#define HCU_MIN_MAX(T, prefix) \
    inline T prefix##min(T a, T b) { return b < a ? b : a; } \
    inline T prefix##max(T a, T b) { return a < b ? b : a; }
HCU_MIN_MAX(int, )
HCU_MIN_MAX(unsigned, u)
HCU_MIN_MAX(long long, ll)
HCU_MIN_MAX(unsigned long long, ull)
#undef HCU_MIN_MAX

/* ---- integers ---------------------------------------------------------------------------------------------------- */

inline int __mul24(int a, int b) { return int((unsigned(a) << 8 >> 8) * (unsigned(b) << 8 >> 8)); }
inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffffu) * (b & 0xffffffu); }
inline int __hadd(int a, int b) { return int(((long long)a + b) >> 1); }
inline int __rhadd(int a, int b) { return int(((long long)a + b + 1) >> 1); }
inline unsigned __uhadd(unsigned a, unsigned b) { return unsigned(((unsigned long long)a + b) >> 1); }
inline unsigned __urhadd(unsigned a, unsigned b) { return unsigned(((unsigned long long)a + b + 1) >> 1); }
inline unsigned __usad(unsigned a, unsigned b, unsigned c) { return (a > b ? a - b : b - a) + c; }
inline unsigned __sad(int a, int b, unsigned c) { return unsigned(a > b ? (long long)a - b : (long long)b - a) + c; }
inline unsigned __funnelshift_lc(unsigned lo, unsigned hi, unsigned n) {
    return n >= 32 ? lo : unsigned(((unsigned long long)hi << 32 | lo) << n >> 32);
}
inline unsigned __funnelshift_rc(unsigned lo, unsigned hi, unsigned n) {
    return n >= 32 ? hi : unsigned(((unsigned long long)hi << 32 | lo) >> n);
}
/* the nth set bit from a position on (n > 0) or back (n < 0); all ones if there is none */
inline unsigned __fns(unsigned mask, unsigned base, int n) {
    int step = n < 0 ? -1 : 1, left = n < 0 ? -n : n;
    if (n == 0) return mask >> base & 1 ? base : ~0u;
    for (int i = int(base); i >= 0 && i < 32; i += step)
        if ((mask >> i & 1) && --left == 0) return unsigned(i);
    return ~0u;
}
namespace hcu {
template <class A, class B, class Sum> inline Sum dot4(unsigned a, unsigned b, Sum c) {
    for (int i = 0; i < 4; i++)
        c = Sum(unsigned(c) + unsigned(int(A(a >> 8 * i)) * int(B(b >> 8 * i))));
    return c;
}
/* halves of a with two bytes of b, from byte `first` on */
template <class A, class B, class Sum> inline Sum dot2(unsigned a, unsigned b, Sum c, int first) {
    for (int i = 0; i < 2; i++)
        c = Sum(unsigned(c) + unsigned(int(A(a >> 16 * i)) * int(B(b >> 8 * (i + first)))));
    return c;
}
template <class V> inline unsigned word(V v) { /* of char4, uchar4, short2, ushort2 */
    unsigned w;
    static_assert(sizeof w == sizeof v, "a packed word");
    memcpy(&w, &v, sizeof w);
    return w;
}
} // namespace hcu
inline int __dp4a(int a, int b, int c) { return hcu::dot4<signed char, signed char>(unsigned(a), unsigned(b), c); }
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) { return hcu::dot4<unsigned char, unsigned char>(a, b, c); }
inline int __dp4a(char4 a, char4 b, int c) { return __dp4a(int(hcu::word(a)), int(hcu::word(b)), c); }
inline unsigned __dp4a(uchar4 a, uchar4 b, unsigned c) { return __dp4a(hcu::word(a), hcu::word(b), c); }
#define HCU_DP2A(name, first) \
    inline int name(int a, int b, int c) { return hcu::dot2<short, signed char>(unsigned(a), unsigned(b), c, first); } \
    inline unsigned name(unsigned a, unsigned b, unsigned c) { \
        return hcu::dot2<unsigned short, unsigned char>(a, b, c, first); \
    } \
    inline int name(short2 a, char4 b, int c) { return name(int(hcu::word(a)), int(hcu::word(b)), c); } \
    inline unsigned name(ushort2 a, uchar4 b, unsigned c) { return name(hcu::word(a), hcu::word(b), c); }
HCU_DP2A(__dp2a_lo, 0)
HCU_DP2A(__dp2a_hi, 2)
#undef HCU_DP2A

/* ---- packed integers: two of 16 bits or four of 8 in a word ------------------------------------------------------ */

namespace hcu {
template <class T, class F> inline unsigned packed(unsigned a, unsigned b, F f) {
    constexpr int bits = 8 * int(sizeof(T));
    unsigned r = 0;
    for (int i = 0; i < 32; i += bits)
        r |= (unsigned(f(int(T(a >> i)), int(T(b >> i)))) & ((1u << bits) - 1u)) << i;
    return r;
}
template <class T> inline int clamped(int v) {
    constexpr int low = T(-1) < T(0) ? -(1 << (8 * sizeof(T) - 1)) : 0;
    constexpr int high = low + (1 << 8 * sizeof(T)) - 1;
    return v < low ? low : v > high ? high : v;
}
} // namespace hcu
#define HCU_PACKED(name, T, expression) \
    inline unsigned name(unsigned a, unsigned b) { \
        return hcu::packed<T>(a, b, [](int x, int y) { return int(expression); }); \
    }
#define HCU_PACKED_ONE(name, T, expression) \
    inline unsigned name(unsigned a) { \
        return hcu::packed<T>(a, a, [](int x, int) { return int(expression); }); \
    }
#define HCU_PACKED_COMPARE(name, S, U, n, op) \
    HCU_PACKED(__vcmp##name##s##n, S, x op y ? -1 : 0) \
    HCU_PACKED(__vcmp##name##u##n, U, x op y ? -1 : 0) \
    HCU_PACKED(__vset##name##s##n, S, x op y) \
    HCU_PACKED(__vset##name##u##n, U, x op y)
#define HCU_PACKED_ALL(n, S, U) \
    HCU_PACKED(__vadd##n, U, x + y) \
    HCU_PACKED(__vsub##n, U, x - y) \
    HCU_PACKED(__vaddss##n, S, hcu::clamped<S>(x + y)) \
    HCU_PACKED(__vaddus##n, U, hcu::clamped<U>(x + y)) \
    HCU_PACKED(__vsubss##n, S, hcu::clamped<S>(x - y)) \
    HCU_PACKED(__vsubus##n, U, hcu::clamped<U>(x - y)) \
    HCU_PACKED(__vavgs##n, S, (x + y + (x + y >= 0)) >> 1) \
    HCU_PACKED(__vavgu##n, U, (x + y + 1) >> 1) \
    HCU_PACKED(__vhaddu##n, U, (x + y) >> 1) \
    HCU_PACKED(__vabsdiffs##n, S, x > y ? x - y : y - x) \
    HCU_PACKED(__vabsdiffu##n, U, x > y ? x - y : y - x) \
    HCU_PACKED(__vmaxs##n, S, x > y ? x : y) \
    HCU_PACKED(__vmaxu##n, U, x > y ? x : y) \
    HCU_PACKED(__vmins##n, S, x < y ? x : y) \
    HCU_PACKED(__vminu##n, U, x < y ? x : y) \
    HCU_PACKED(__vcmpeq##n, U, x == y ? -1 : 0) \
    HCU_PACKED(__vcmpne##n, U, x != y ? -1 : 0) \
    HCU_PACKED(__vseteq##n, U, x == y) \
    HCU_PACKED(__vsetne##n, U, x != y) \
    HCU_PACKED_COMPARE(ge, S, U, n, >=) \
    HCU_PACKED_COMPARE(gt, S, U, n, >) \
    HCU_PACKED_COMPARE(le, S, U, n, <=) \
    HCU_PACKED_COMPARE(lt, S, U, n, <) \
    HCU_PACKED_ONE(__vneg##n, U, -x) \
    HCU_PACKED_ONE(__vnegss##n, S, hcu::clamped<S>(-x)) \
    HCU_PACKED_ONE(__vabs##n, S, x < 0 ? -x : x) \
    HCU_PACKED_ONE(__vabsss##n, S, hcu::clamped<S>(x < 0 ? -x : x)) \
    inline unsigned __vsads##n(unsigned a, unsigned b) { return hcu::packed_sum<U>(__vabsdiffs##n(a, b)); } \
    inline unsigned __vsadu##n(unsigned a, unsigned b) { return hcu::packed_sum<U>(__vabsdiffu##n(a, b)); }
namespace hcu {
template <class U> inline unsigned packed_sum(unsigned w) {
    unsigned sum = 0;
    for (int i = 0; i < 32; i += 8 * int(sizeof(U)))
        sum += unsigned(U(w >> i));
    return sum;
}
} // namespace hcu
HCU_PACKED_ALL(2, short, unsigned short)
HCU_PACKED_ALL(4, signed char, unsigned char)
#undef HCU_PACKED
#undef HCU_PACKED_ONE
#undef HCU_PACKED_COMPARE
#undef HCU_PACKED_ALL

/* ---- atomics of one block and of the whole machine: one OS thread runs all --------------------------------------- */

#define HCU_SCOPED(name) \
    template <class T> inline T name##_block(T *p, hcu::Id<T> v) { return name(p, v); } \
    template <class T> inline T name##_system(T *p, hcu::Id<T> v) { return name(p, v); }
HCU_SCOPED(atomicAdd)
HCU_SCOPED(atomicSub)
HCU_SCOPED(atomicMin)
HCU_SCOPED(atomicMax)
HCU_SCOPED(atomicAnd)
HCU_SCOPED(atomicOr)
HCU_SCOPED(atomicXor)
HCU_SCOPED(atomicExch)
HCU_SCOPED(atomicInc)
HCU_SCOPED(atomicDec)
#undef HCU_SCOPED
template <class T> inline T atomicCAS_block(T *p, hcu::Id<T> compare, hcu::Id<T> v) { return atomicCAS(p, compare, v); }
template <class T> inline T atomicCAS_system(T *p, hcu::Id<T> compare, hcu::Id<T> v) {
    return atomicCAS(p, compare, v);
}
#endif
