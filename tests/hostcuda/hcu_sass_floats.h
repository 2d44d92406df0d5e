/* hcu_sass_floats.h - internal, of hcu_sass.cpp: arithmetic of floats, doubles and halves, the approximations, and the
 * conversions. */
#ifndef HCU_SASS_FLOATS_H
#define HCU_SASS_FLOATS_H
#include "hcu_sass_integers.h"
#include <cuda_fp8.h>
#include <cuda_fp16.h>
#include <cfenv>

namespace hcu {
namespace sass {
namespace {

struct Floats : Integers {
    using Integers::Integers;
    /* Nothing moves across a change of the rounding mode. */
    template <class T> static void set_rounding(int mode, T *values) {
        __asm__ volatile("" : : "r"(values) : "memory");
        fesetround(mode);
        __asm__ volatile("" : : "r"(values) : "memory");
    }
    static int rounding(const Ins &i) {
        return i.has(MOD_RM) ? FE_DOWNWARD : i.has(MOD_RP) ? FE_UPWARD : i.has(MOD_RZ) ? FE_TOWARDZERO : FE_TONEAREST;
    }
    static float fused(float a, float b, float c) { return fmaf(a, b, c); }
    static double fused(double a, double b, double c) { return fma(a, b, c); }
    template <class T> void arithmetic(const Ins &i) {
        T a[kLanes], b[kLanes], c[kLanes], v[kLanes];
        int mode = rounding(i);
        read(i.o[1], a);
        read(i.o[i.code == C_DADD && i.o.size() == 4 ? 3 : 2], b);
        if (i.code == C_FFMA || i.code == C_DFMA) read(i.o[3], c);
        if (mode != FE_TONEAREST) set_rounding(mode, a);
        switch (i.code) {
        case C_FADD:
        case C_DADD: EACH_LANE v[l] = a[l] + b[l]; break;
        case C_FMUL:
        case C_DMUL: EACH_LANE v[l] = a[l] * b[l]; break;
        default: EACH_LANE v[l] = fused(a[l], b[l], c[l]);
        }
        if (mode != FE_TONEAREST) set_rounding(FE_TONEAREST, v);
        if (i.has(MOD_SAT)) EACH_LANE v[l] = v[l] > 0 ? std::min(v[l], T(1)) : T(0);
        write(i.o[0], v);
    }
    void float_min_or_max(const Ins &i) {
        float a[kLanes], b[kLanes];
        uint32_t minimum = read_predicate(i.o.back());
        read(i.o[1], a);
        for (size_t n = 2; n + 1 < i.o.size(); n++) {
            read(i.o[n], b);
            EACH_LANE a[l] = pick_float(i.has(MOD_NAN), minimum >> l & 1, a[l], b[l]);
        }
        write(i.o[0], a);
    }
    static float pick_float(bool nan, bool minimum, float a, float b) {
        if (a != a || b != b) return nan || (a != a && b != b) ? NAN : a != a ? b : a;
        if (a == b) return std::signbit(a) == minimum ? a : b; /* -0 is below 0 */
        return (a < b) == minimum ? a : b;
    }
    void check_division(const Ins &i) { /* may a / b leave the range where reciprocal and two corrections are right? */
        uint32_t a[kLanes], b[kLanes], v = 0;
        read(i.o[1], a);
        read(i.o[2], b);
        EACH_LANE {
            int ea = int(a[l] >> 23 & 255), eb = int(b[l] >> 23 & 255);
            bool zero = !(a[l] << 1);
            bool bad = ea == 255 || eb == 255 || eb <= 2 || eb >= 252 || ea - eb >= 126 || ea <= 24 || ea - eb <= -124;
            if (zero) bad = eb == 0 || eb == 255;
            v |= uint32_t(bad) << l;
        }
        write_predicate(i.o[0], v);
    }
    static float wrong_neighbour(double y) { /* the float on the other side of y than the nearest one; y if it is one */
        float nearest = float(y);
        if (double(nearest) == y || !std::isfinite(nearest)) return nearest;
        return nextafterf(nearest, double(nearest) < y ? INFINITY : -INFINITY);
    }
    void function(const Ins &i) {
        float x[kLanes], v[kLanes];
        if (i.has(MOD_RCP64H) || i.has(MOD_RSQ64H)) { /* of the high word of a double */
            uint32_t h[kLanes];
            read(i.o[1], x);
            memcpy(h, x, sizeof h);
            EACH_LANE {
                double d = from_bits<double>(uint64_t(h[l]) << 32);
                h[l] = uint32_t(to_bits(i.has(MOD_RCP64H) ? 1 / d : 1 / sqrt(d)) >> 32);
            }
            return write(i.o[0], h);
        }
        read(i.o[1], x);
        EACH_LANE {
            double d = x[l];
            double y = i.has(MOD_RCP) ? 1 / d
                : i.has(MOD_RSQ)      ? 1 / sqrt(d)
                : i.has(MOD_SQRT)     ? sqrt(d)
                : i.has(MOD_EX2)      ? exp2(d)
                : i.has(MOD_LG2)      ? log2(d)
                : i.has(MOD_SIN)      ? sin(d)
                : i.has(MOD_COS)      ? cos(d)
                                      : tanh(d);
            v[l] = i.has(MOD_RCP) ? float(y) : wrong_neighbour(y);
        }
        write(i.o[0], v);
    }
    static float half_to_float(uint32_t bits) {
        __half_raw h;
        h.x = (unsigned short)bits;
        return __half2float(h);
    }
    static uint32_t float_to_half(float x) {
        uint32_t b = __half_raw(__float2half_rn(x)).x;
        return (b & 0x7fff) > 0x7c00 ? 0x7fff : b;
    }
    static uint32_t float_to_bfloat(float x) {
        uint32_t b = uint32_t(to_bits(x));
        return (b & 0x7fffffff) > 0x7f800000 ? 0x7fff : (b + 0x7fff + (b >> 16 & 1)) >> 16;
    }
    void half_add(const Ins &i) { /* only HADD2.F32 d, -RZ, x.H0_H0, in either order: a half becomes a float */
        uint32_t a[kLanes];
        float v[kLanes];
        bool swapped = i.o[2].index == kZero && i.o[2].negated;
        const Operand &zero = i.o[swapped ? 2 : 1], &x = i.o[swapped ? 1 : 2];
        if (!i.has(MOD_F32) || zero.index != kZero || !zero.negated || x.half < 0)
            return wrong("not known: arithmetic");
        read_raw(x, a);
        EACH_LANE v[l] = half_to_float(a[l] >> (16 * x.half));
        if (x.absolute) EACH_LANE v[l] = fabsf(v[l]);
        if (x.negated) EACH_LANE v[l] = -v[l];
        write(i.o[0], v);
    }
    void half_fma(const Ins &i) { /* only HFMA2 d, -RZ, RZ, high, low: two numbers */
        uint32_t v[kLanes];
        if (i.o.size() != 5 || i.o[1].index != kZero || i.o[2].index != kZero || i.o[3].kind != O_NUMBER)
            return wrong("not known: arithmetic");
        EACH_LANE v[l] = uint32_t(i.o[3].bits << 16 | (i.o[4].bits & 0xffff));
        write(i.o[0], v);
    }
    void pack(const Ins &i) { /* F2FP d, high, low, [merge] */
        float a[kLanes], b[kLanes];
        uint32_t v[kLanes], c[kLanes] = {0};
        __nv_fp8_interpretation_t narrow = i.has(MOD_E4M3) ? __NV_E4M3 : __NV_E5M2;
        bool eight = i.has(MOD_E4M3) || i.has(MOD_E5M2);
        if (i.has(MOD_UNPACK_B)) {
            if (!i.has(MOD_F16) || !eight) return wrong("not known: conversion");
            read_raw(i.o[1], v);
            EACH_LANE {
                uint32_t two = i.o[1].half == 1 ? v[l] >> 16 : v[l];
                __half2_raw h = __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t(two), narrow);
                v[l] = uint32_t(h.y) << 16 | h.x;
            }
            return write(i.o[0], v);
        }
        if (eight && (!i.has(MOD_F32) || !i.has(MOD_SATFINITE))) return wrong("not known: conversion");
        read(i.o[1], a);
        read(i.o[2], b);
        if (i.has(MOD_PACK_AB_MERGE_C)) read_raw(i.o[3], c);
        EACH_LANE {
            if (eight)
                v[l] = uint32_t(__nv_cvt_float2_to_fp8x2(float2{b[l], a[l]}, __NV_SATFINITE, narrow)) | c[l] << 16;
            else if (i.has(MOD_BF16))
                v[l] = float_to_bfloat(a[l]) << 16 | float_to_bfloat(b[l]);
            else
                v[l] = float_to_half(a[l]) << 16 | float_to_half(b[l]);
        }
        write(i.o[0], v);
    }
    /* the first type of the text is the result's: F2F.F64.F32 */
    static string type_named(const Ins &i, int which) {
        size_t at = i.text.find("F2F.") + 4, end = i.text.find_first_of(". ", at);
        if (which) at = end + 1, end = i.text.find_first_of(". ", at);
        return i.text.substr(at, end - at);
    }
    void convert_float(const Ins &i) {
        string to = type_named(i, 0), from = type_named(i, 1);
        if (to == "F64" && from == "F32") {
            float a[kLanes];
            double v[kLanes];
            read(i.o[1], a);
            EACH_LANE v[l] = double(a[l]);
            write(i.o[0], v);
        } else if (to == "F32" && from == "F64") {
            double a[kLanes];
            float v[kLanes];
            read(i.o[1], a);
            set_rounding(rounding(i), a);
            EACH_LANE v[l] = float(a[l]);
            set_rounding(FE_TONEAREST, v);
            write(i.o[0], v);
        } else if (from == "F32" && (to == "F16" || to == "BF16") && rounding(i) == FE_TONEAREST) {
            float a[kLanes];
            uint32_t v[kLanes];
            read(i.o[1], a);
            EACH_LANE v[l] = to == "F16" ? float_to_half(a[l]) : float_to_bfloat(a[l]);
            write(i.o[0], v);
        } else {
            wrong("not known: conversion");
        }
    }
    void from_integer(const Ins &i) {
        uint64_t x[kLanes];
        bool wide = i.has(MOD_U64) || i.has(MOD_S64);
        bool is_signed = !(i.has(MOD_U64) || i.has(MOD_U32) || i.has(MOD_U16) || i.has(MOD_U8));
        if (wide) {
            read_integer(i.o[1], x);
        } else {
            uint32_t a[kLanes];
            read(i.o[1], a);
            int drop = i.has(MOD_U8) || i.has(MOD_S8) ? 24 : i.has(MOD_U16) || i.has(MOD_S16) ? 16 : 0;
            EACH_LANE x[l] = is_signed ? uint64_t(int64_t(int32_t(a[l] << drop) >> drop)) : a[l] << drop >> drop;
        }
        if (i.has(MOD_F16)) return wrong("not known: conversion");
        if (i.has(MOD_F64)) {
            double v[kLanes];
            set_rounding(rounding(i), x);
            EACH_LANE v[l] = is_signed ? double(int64_t(x[l])) : double(x[l]);
            set_rounding(FE_TONEAREST, v);
            write(i.o[0], v);
        } else {
            float v[kLanes];
            set_rounding(rounding(i), x);
            EACH_LANE v[l] = is_signed ? float(int64_t(x[l])) : float(x[l]);
            set_rounding(FE_TONEAREST, v);
            write(i.o[0], v);
        }
    }
    static double rounded(const Ins &i, double x) {
        return i.has(MOD_TRUNC) ? trunc(x) : i.has(MOD_FLOOR) ? floor(x) : i.has(MOD_CEIL) ? ceil(x) : nearbyint(x);
    }
    void to_integer(const Ins &i) {
        double x[kLanes];
        uint64_t v[kLanes];
        bool wide = i.has(MOD_U64) || i.has(MOD_S64), is_signed = !i.has(MOD_U32) && !i.has(MOD_U64);
        double high =
            is_signed ? (wide ? 9223372036854775807.0 : 2147483647.0) : (wide ? 18446744073709551615.0 : 4294967295.0);
        double low = is_signed ? -high - 1 : 0;
        if (i.has(MOD_F64)) {
            read(i.o[1], x);
        } else {
            float a[kLanes];
            read(i.o[1], a);
            EACH_LANE x[l] = a[l];
        }
        EACH_LANE {
            double y = rounded(i, x[l]);
            if (y != y)
                v[l] = wide ? uint64_t(1) << 63 : 0;
            else if (y >= high)
                v[l] = is_signed ? (wide ? INT64_MAX : INT32_MAX) : (wide ? UINT64_MAX : UINT32_MAX);
            else if (y <= low)
                v[l] = is_signed ? (wide ? uint64_t(INT64_MIN) : uint64_t(INT32_MIN)) : 0;
            else
                v[l] = is_signed ? uint64_t(int64_t(y)) : uint64_t(y);
        }
        if (wide) return write(i.o[0], v);
        uint32_t narrow[kLanes];
        EACH_LANE narrow[l] = uint32_t(v[l]);
        write(i.o[0], narrow);
    }
    void round_float(const Ins &i) {
        float a[kLanes];
        if (i.has(MOD_F64)) return wrong("not known: rounding");
        read(i.o[1], a);
        EACH_LANE a[l] = float(rounded(i, a[l]));
        write(i.o[0], a);
    }
};

} // namespace
} // namespace sass
} // namespace hcu
#endif
