/* hcu_ptx.cpp - runs the PTX that nvcc made, on the same fibers, barriers and memory as the host-compiled kernels.
 *
 * hcu_ptx_load (or HCU_PTX=file.ptx) reads a module; every launched kernel whose mangled name is one of its .entry
 * symbols is then interpreted instead of called.  This shows what the host compiler cannot: nvcc's contraction, its
 * real vector accesses and their alignment, __CUDA_ARCH__ branches, inline PTX, the parameter layout.  A kernel that
 * uses an instruction outside the subset is named on stderr and stays with its host version. */
#include "hcu_ptx.h"
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cmath>
#include <cstring>
#if HCU_HAS_TSAN
extern "C" {
void __tsan_read1(void *);
void __tsan_read2(void *);
void __tsan_read4(void *);
void __tsan_read8(void *);
void __tsan_write1(void *);
void __tsan_write2(void *);
void __tsan_write4(void *);
void __tsan_write8(void *);
}
#endif

namespace hcu {
namespace ptx {
namespace {

template <class T> T from_bits(uint64_t u) {
    T v;
    memcpy(&v, &u, sizeof v);
    return v;
}
template <class T> uint64_t to_bits(T v) {
    uint64_t u = 0;
    memcpy(&u, &v, sizeof v);
    return u;
}
int64_t sign_extended(uint64_t v, Type t) {
    switch (bytes_of(t)) {
    case 1: return int8_t(v);
    case 2: return int16_t(v);
    case 4: return int32_t(v);
    default: return int64_t(v);
    }
}
uint64_t zero_extended(uint64_t v, Type t) {
    if (t == PRED) return v & 1;
    int n = bytes_of(t);
    return n == 8 || n == 0 ? v : v & ((uint64_t(1) << (8 * n)) - 1);
}
float half_to_float(uint64_t v) {
    __half_raw r;
    r.x = (unsigned short)v;
    return __half2float(__half(r));
}
uint64_t float_to_half(float f) { return __half_raw(__float2half_rn(f)).x; }
float bfloat_to_float(uint64_t v) { return from_bits<float>(v << 16 & 0xffffffffu); }
uint64_t float_to_bfloat(float f) { return __nv_bfloat16_raw(__float2bfloat16_rn(f)).x; }
bool packed_half(Type t) { return t == F16 || t == F16X2; }
uint64_t one_lane(Type t, float f) { return packed_half(t) ? float_to_half(f) : float_to_bfloat(f); }
float one_lane(Type t, uint64_t v) { return packed_half(t) ? half_to_float(v & 0xffff) : bfloat_to_float(v & 0xffff); }
uint64_t one_f8(Type t, uint64_t v) { /* saturating, as cvt.rn.satfinite is */
    return __nv_cvt_float_to_fp8(from_bits<float>(v), __NV_SATFINITE, t == E4M3X2 ? __NV_E4M3 : __NV_E5M2);
}
uint64_t half_of_f8(Type t, uint64_t v) {
    return __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t(v), t == E4M3X2 ? __NV_E4M3 : __NV_E5M2).x;
}
double as_double(uint64_t v, Type t) {
    switch (t) {
    case F32: return double(from_bits<float>(v));
    case F64: return from_bits<double>(v);
    case F16:
    case BF16: return double(one_lane(t, v));
    default: return is_signed(t) ? double(sign_extended(v, t)) : double(zero_extended(v, t));
    }
}
float flush(const Ins &i, float f) { return i.has(M_FTZ) && fabsf(f) < 1.17549435e-38f ? copysignf(0.0f, f) : f; }
float finish(const Ins &i, float f) {
    if (i.has(M_SAT)) f = f > 0 ? (f < 1 ? f : 1.0f) : 0.0f;
    return flush(i, f);
}
template <class F> uint64_t float_op(const Ins &i, Type t, uint64_t a, uint64_t b, F op) {
    switch (t) {
    case F32: return to_bits(finish(i, op(flush(i, from_bits<float>(a)), flush(i, from_bits<float>(b)))));
    case F64: return to_bits(op(from_bits<double>(a), from_bits<double>(b)));
    case F16:
    case BF16: return one_lane(t, float(op(one_lane(t, a), one_lane(t, b))));
    default:
        return one_lane(t, float(op(one_lane(t, a), one_lane(t, b)))) |
            one_lane(t, float(op(one_lane(t, a >> 16), one_lane(t, b >> 16)))) << 16;
    }
}
uint64_t fused(const Ins &i, Type t, uint64_t a, uint64_t b, uint64_t c) {
    if (t == F32)
        return to_bits(finish(
            i, fmaf(flush(i, from_bits<float>(a)), flush(i, from_bits<float>(b)), flush(i, from_bits<float>(c)))));
    if (t == F64) return to_bits(fma(from_bits<double>(a), from_bits<double>(b), from_bits<double>(c)));
    auto lane16 = [t](uint64_t x, uint64_t y, uint64_t z) -> uint64_t { /* the product is exact in double */
        double q = double(one_lane(t, x)) * double(one_lane(t, y)) + double(one_lane(t, z));
        return packed_half(t) ? uint64_t(__half_raw(__double2half(q)).x)
                              : uint64_t(__nv_bfloat16_raw(__double2bfloat16(q)).x);
    };
    uint64_t low = lane16(a, b, c);
    return t == F16 || t == BF16 ? low : low | lane16(a >> 16, b >> 16, c >> 16) << 16;
}
uint64_t to_integer(const Ins &i, double x, Type d, Type source) {
    int bits = bytes_of(d) * 8;
    if (x != x) return bits == 64 || source == F64 ? zero_extended(uint64_t(1) << (bits - 1), d) : 0;
    x = i.has(M_RNI) ? nearbyint(x) : i.has(M_RMI) ? floor(x) : i.has(M_RPI) ? ceil(x) : trunc(x);
    if (is_signed(d)) {
        double limit = ldexp(1, bits - 1);
        if (x >= limit) return (uint64_t(1) << (bits - 1)) - 1;
        return zero_extended(x < -limit ? uint64_t(1) << (bits - 1) : uint64_t(int64_t(x)), d);
    }
    return x <= 0 ? 0 : x >= ldexp(1, bits) ? zero_extended(~uint64_t(0), d) : uint64_t(x);
}
uint64_t convert(const Ins &i, uint64_t v) {
    Type d = i.t, s = i.t2;
    if (!is_float(d)) {
        if (is_float(s)) return to_integer(i, as_double(v, s), d, s);
        return zero_extended(is_signed(s) ? uint64_t(sign_extended(v, s)) : zero_extended(v, s), d);
    }
    if (!is_float(s)) { /* one rounding, straight from the integer */
        bool sg = is_signed(s);
        int64_t x = sign_extended(v, s);
        uint64_t u = zero_extended(v, s);
        if (d == F64) return to_bits(sg ? double(x) : double(u));
        float f = sg ? float(x) : float(u);
        return d == F32 ? to_bits(f) : one_lane(d, f);
    }
    double x = as_double(v, s);
    x = i.has(M_RNI) ? nearbyint(x) : i.has(M_RZI) ? trunc(x) : i.has(M_RMI) ? floor(x) : i.has(M_RPI) ? ceil(x) : x;
    if (d == F64) return to_bits(x);
    if (d == F32) return to_bits(finish(i, float(x)));
    if (s == F64)
        return d == F16 ? uint64_t(__half_raw(__double2half(x)).x)
                        : uint64_t(__nv_bfloat16_raw(__double2bfloat16(x)).x);
    return one_lane(d, float(x));
}
template <class T> bool compare_values(Word w, T a, T b) {
    return w == W_EQ ? a == b
        : w == W_NE  ? a != b
        : w == W_LT  ? a < b
        : w == W_LE  ? a <= b
        : w == W_GT  ? a > b
                     : a >= b;
}
bool compare(const Ins &i, uint64_t a, uint64_t b) {
    if (!is_float(i.t)) {
        if (is_signed(i.t)) return compare_values(i.word, sign_extended(a, i.t), sign_extended(b, i.t));
        return compare_values(i.word, zero_extended(a, i.t), zero_extended(b, i.t));
    }
    double x = as_double(a, i.t), y = as_double(b, i.t);
    if (i.t == F32) x = double(flush(i, float(x))), y = double(flush(i, float(y)));
    bool nan = x != x || y != y;
    if (i.word == W_NUM || i.word == W_NAN) return nan == (i.word == W_NAN);
    return nan ? i.unordered : compare_values(i.word, x, y);
}
uint64_t pick(Word w, Type t, uint64_t a, uint64_t b) { /* integer minimum or maximum */
    bool less = is_signed(t) ? sign_extended(a, t) < sign_extended(b, t) : zero_extended(a, t) < zero_extended(b, t);
    return less == (w == W_MIN) ? a : b;
}
/* min and max of floats: a number beats a NaN, or with .NaN the other way round */
template <class T> T pick_float(bool minimum, bool nan, T x, T y) {
    if (x != x) return nan ? x : y;
    if (y != y) return nan ? y : x;
    if (x == 0 && y == 0) return (std::signbit(x) == minimum) ? x : y;
    return (x < y) == minimum ? x : y;
}
void tell_tsan(const char *p, int n, bool write) { /* this file is not instrumented */
#if HCU_HAS_TSAN
    void *q = const_cast<char *>(p);
    if (write)
        n == 1 ? __tsan_write1(q) : n == 2 ? __tsan_write2(q) : n == 4 ? __tsan_write4(q) : __tsan_write8(q);
    else
        n == 1 ? __tsan_read1(q) : n == 2 ? __tsan_read2(q) : n == 4 ? __tsan_read4(q) : __tsan_read8(q);
#else
    (void)p, (void)n, (void)write;
#endif
}
uint64_t read_memory(const char *p, int n) {
    switch (n) {
    case 1: return *reinterpret_cast<const uint8_t *>(p);
    case 2: return *reinterpret_cast<const uint16_t *>(p);
    case 4: return *reinterpret_cast<const uint32_t *>(p);
    default: return *reinterpret_cast<const uint64_t *>(p);
    }
}
void write_memory(char *p, int n, uint64_t v) {
    switch (n) {
    case 1: *reinterpret_cast<uint8_t *>(p) = uint8_t(v); break;
    case 2: *reinterpret_cast<uint16_t *>(p) = uint16_t(v); break;
    case 4: *reinterpret_cast<uint32_t *>(p) = uint32_t(v); break;
    default: *reinterpret_cast<uint64_t *>(p) = v; break;
    }
}

struct Thread {
    const Kernel &k;
    uint64_t *r;
    char *param, *local, *shared;
    bool carry = false;

    uint64_t special(const Operand &o) const {
        auto component = [&](auto v) { return uint64_t(o.component == 0 ? v.x : o.component == 1 ? v.y : v.z); };
        unsigned bit = 1u << lane();
        switch (o.special) {
        case S_TID: return component(threadIdx);
        case S_NTID: return component(blockDim);
        case S_CTAID: return component(blockIdx);
        case S_NCTAID: return component(gridDim);
        case S_LANE: return lane();
        case S_WARP: return threadIdx.x / 32;
        case S_LANEMASK_LT: return bit - 1;
        case S_LANEMASK_LE: return bit | (bit - 1);
        case S_LANEMASK_EQ: return bit;
        case S_LANEMASK_GE: return uint32_t(~(bit - 1));
        case S_LANEMASK_GT: return uint32_t(~(bit | (bit - 1)));
        default: return uint64_t(clock_ns());
        }
    }
    uint64_t get(const Operand &o, Type t = NONE) const {
        switch (o.kind) {
        case O_REG: return o.negated ? !r[o.reg] : r[o.reg];
        case O_SPECIAL: return special(o);
        case O_VECTOR: { /* mov.b64 %rd, {%r1, %r2} */
            unsigned bits = unsigned(bytes_of(t) * 8) / unsigned(o.parts.size());
            uint64_t v = 0;
            for (size_t i = 0; i < o.parts.size(); i++)
                v |= (get(o.parts[i]) & ((uint64_t(1) << bits) - 1)) << (bits * i);
            return v;
        }
        default: return o.value;
        }
    }
    void set(const Operand &o, uint64_t v, Type t) {
        if (o.kind == O_SINK) return;
        if (o.kind == O_VECTOR) {
            unsigned bits = unsigned(bytes_of(t) * 8) / unsigned(o.parts.size());
            for (size_t i = 0; i < o.parts.size(); i++)
                set(o.parts[i], v >> (bits * i) & ((uint64_t(1) << bits) - 1), NONE);
            return;
        }
        r[o.reg] = zero_extended(v, t);
    }
    char *address(const Ins &i, const Operand &o, size_t bytes) {
        uint64_t a = o.value + (o.reg >= 0 ? r[o.reg] : 0);
        if (i.space == 'p') return param + a;
        if (i.space == 's' || i.space == 'l') a &= 0xffffffffu; /* windows are 32 bits wide */
        if (a % bytes)
            bug("%s: misaligned address 0x%llx for an access of %zu bytes: %s (%s:%d), block %u thread %u",
                k.name.c_str(), (unsigned long long)a, bytes, i.text.c_str(), g_file.c_str(), i.line, blockIdx.x,
                threadIdx.x);
        if (i.space == 'l') return local + a;
        if (i.space == 's') return a >= kDynamic ? static_cast<char *>(shared_dynamic()) + (a - kDynamic) : shared + a;
        return reinterpret_cast<char *>(a);
    }
    void load(const Ins &i) {
        int n = bytes_of(i.t);
        const char *a = address(i, i.o[1], size_t(n * i.vec));
        for (int j = 0; j < i.vec; j++) {
            if (i.space == 'g' || i.space == 's') tell_tsan(a + j * n, n, false);
            uint64_t v = read_memory(a + j * n, n);
            set(i.vec > 1 ? i.o[0].parts[size_t(j)] : i.o[0], is_signed(i.t) ? uint64_t(sign_extended(v, i.t)) : v,
                NONE);
        }
    }
    void store(const Ins &i) {
        int n = bytes_of(i.t);
        char *a = address(i, i.o[0], size_t(n * i.vec));
        for (int j = 0; j < i.vec; j++) {
            if (i.space == 'g' || i.space == 's') tell_tsan(a + j * n, n, true);
            write_memory(a + j * n, n, get(i.vec > 1 ? i.o[1].parts[size_t(j)] : i.o[1]));
        }
    }
    void cvta(const Ins &i) { /* between a window and the generic address space */
        uint64_t v = get(i.o[1]);
        if (i.space == 'l')
            v = i.has(M_TO) ? v - uint64_t(local) : v + uint64_t(local);
        else if (i.space == 'p')
            v = i.has(M_TO) ? v - uint64_t(param) : v + uint64_t(param);
        else if (i.space == 's' && i.has(M_TO))
            v -= uint64_t(shared);
        else if (i.space == 's')
            v = v >= kDynamic ? uint64_t(shared_dynamic()) + v - kDynamic : uint64_t(shared) + v;
        set(i.o[0], v, i.t);
    }
    void add_or_sub(const Ins &i) {
        uint64_t a = get(i.o[1]), b = get(i.o[2]);
        bool sub = i.code == SUB;
        if (is_float(i.t)) {
            uint64_t v = sub ? float_op(i, i.t, a, b, [](auto x, auto y) { return x - y; })
                             : float_op(i, i.t, a, b, [](auto x, auto y) { return x + y; });
            return set(i.o[0], v, i.t);
        }
        unsigned __int128 x = zero_extended(a, i.t), y = zero_extended(b, i.t), in = i.has(M_CARRY_IN) && carry;
        unsigned __int128 sum = sub ? x - y - in : x + y + in;
        if (i.has(M_CC)) carry = (sum >> (bytes_of(i.t) * 8) & 1) != 0;
        set(i.o[0], uint64_t(sum), i.t);
    }
    void multiply(const Ins &i) {
        uint64_t a = get(i.o[1]), b = get(i.o[2]);
        if (is_float(i.t)) {
            if (i.code == MAD)
                set(i.o[0], fused(i, i.t, a, b, get(i.o[3])), i.t);
            else
                set(i.o[0], float_op(i, i.t, a, b, [](auto x, auto y) { return x * y; }), i.t);
            return;
        }
        unsigned __int128 q = is_signed(i.t)
            ? (unsigned __int128)((__int128)sign_extended(a, i.t) * sign_extended(b, i.t))
            : (unsigned __int128)zero_extended(a, i.t) * zero_extended(b, i.t);
        Type width = i.has(M_WIDE) ? (bytes_of(i.t) == 2 ? U32 : U64) : i.t;
        if (i.has(M_HI)) q >>= bytes_of(i.t) * 8;
        unsigned __int128 sum = zero_extended(uint64_t(q), width);
        if (i.code == MAD) sum += zero_extended(get(i.o[3]), width);
        if (i.code == MAD && i.has(M_CC)) carry = (sum >> (bytes_of(width) * 8) & 1) != 0;
        set(i.o[0], uint64_t(sum), width);
    }
    void divide(const Ins &i) {
        uint64_t a = get(i.o[1]), b = get(i.o[2]);
        if (is_float(i.t)) return set(i.o[0], float_op(i, i.t, a, b, [](auto x, auto y) { return x / y; }), i.t);
        if (zero_extended(b, i.t) == 0) return set(i.o[0], ~uint64_t(0), i.t);
        uint64_t v;
        if (is_signed(i.t)) {
            __int128 x = sign_extended(a, i.t), y = sign_extended(b, i.t);
            v = uint64_t(i.code == DIV ? x / y : x % y);
        } else {
            uint64_t x = zero_extended(a, i.t), y = zero_extended(b, i.t);
            v = i.code == DIV ? x / y : x % y;
        }
        set(i.o[0], v, i.t);
    }
    void function(
        const Ins &i) { /* rounded once from double; the approximate forms differ from hardware in the last bits */
        uint64_t v = get(i.o[1]);
        double x = i.t == F32 ? double(flush(i, from_bits<float>(v))) : as_double(v, i.t), y = 0;
        switch (i.code) {
        case SQRT: y = i.t == F32 ? double(sqrtf(float(x))) : sqrt(x); break;
        case RCP: y = 1 / x; break;
        case RSQRT: y = 1 / sqrt(x); break;
        case EX2: y = exp2(x); break;
        case LG2: y = log2(x); break;
        case SIN: y = sin(x); break;
        case COS: y = cos(x); break;
        default: y = tanh(x);
        }
        set(i.o[0], i.t == F64 ? to_bits(y) : i.t == F32 ? to_bits(flush(i, float(y))) : one_lane(i.t, float(y)), i.t);
    }
    void min_or_max(const Ins &i) {
        uint64_t a = get(i.o[1]), b = get(i.o[2]);
        bool minimum = i.code == MIN, nan = i.has(M_NAN);
        auto pick_one = [minimum, nan](auto x, auto y) { return pick_float(minimum, nan, x, y); };
        if (is_float(i.t))
            set(i.o[0], float_op(i, i.t, a, b, pick_one), i.t);
        else
            set(i.o[0], pick(minimum ? W_MIN : W_MAX, i.t, a, b), i.t);
    }
    static uint64_t sign_bits(Type t) {
        switch (t) {
        case F32: return 0x80000000u;
        case F64: return uint64_t(1) << 63;
        case F16X2:
        case BF16X2: return 0x80008000u;
        default: return 0x8000u;
        }
    }
    void sign(const Ins &i) {
        uint64_t a = get(i.o[1]), bits = sign_bits(i.t), v;
        if (i.code == COPYSIGN)
            v = (get(i.o[2]) & ~bits) | (a & bits);
        else if (is_float(i.t))
            v = i.code == ABS ? a & ~bits : a ^ bits;
        else
            v = i.code == NEG || sign_extended(a, i.t) < 0 ? uint64_t(0) - a : a;
        set(i.o[0], v, i.t);
    }
    void lop3(const Ins &i) {
        uint64_t a = get(i.o[1]), b = get(i.o[2]), c = get(i.o[3]), table = get(i.o[4]), v = 0;
        for (int bit = 0; bit < 32; bit++)
            v |= (table >> ((a >> bit & 1) << 2 | (b >> bit & 1) << 1 | (c >> bit & 1)) & 1) << bit;
        set(i.o[0], v, B32);
    }
    void shift(const Ins &i) {
        uint64_t a = get(i.o[1]), n = get(i.o[2]) & 0xffffffffu, width = uint64_t(bytes_of(i.t) * 8);
        if (i.code == SHL)
            set(i.o[0], n >= width ? 0 : a << n, i.t);
        else if (is_signed(i.t))
            set(i.o[0], uint64_t(sign_extended(a, i.t) >> std::min(n, width - 1)), i.t);
        else
            set(i.o[0], n >= width ? 0 : zero_extended(a, i.t) >> n, i.t);
    }
    void funnel_shift(const Ins &i) {
        uint64_t both = zero_extended(get(i.o[2]), B32) << 32 | zero_extended(get(i.o[1]), B32),
                 n = get(i.o[3]) & 0xffffffffu;
        n = i.has(M_WRAP) ? n & 31 : std::min<uint64_t>(n, 32);
        set(i.o[0], i.has(M_LEFT) ? (n ? both << n >> 32 : both >> 32) : both >> n, B32);
    }
    void setp(const Ins &i) {
        bool c = compare(i, get(i.o[1]), get(i.o[2])), p = c, q = !c;
        if (i.o.size() > 3) {
            bool z = get(i.o[3]) & 1;
            p = i.combine == W_AND ? c && z : i.combine == W_OR ? c || z : c != z;
            q = i.combine == W_AND ? !c && z : i.combine == W_OR ? !c || z : !c != z;
        }
        if (i.o[0].kind != O_VECTOR) return set(i.o[0], p, PRED);
        set(i.o[0].parts[0], p, PRED);
        set(i.o[0].parts[1], q, PRED);
    }
    void testp(const Ins &i) {
        double x = as_double(get(i.o[1]), i.t), tiny = i.t == F32 ? 1.17549435e-38 : 2.2250738585072014e-308;
        bool finite = std::isfinite(x), subnormal = finite && x != 0 && fabs(x) < tiny;
        set(i.o[0],
            i.word == W_FINITE           ? finite
                : i.word == W_INFINITE   ? std::isinf(x)
                : i.word == W_NOTANUMBER ? x != x
                : i.word == W_NUMBER     ? x == x
                : i.word == W_SUBNORMAL  ? subnormal
                                         : finite && x != 0 && !subnormal,
            PRED);
    }
    void barrier(const Ins &i) {
        const char *file = g_file.c_str();
        if (i.has(M_WARP)) return exchange_done(warp_exchange(unsigned(get(i.o[0])), 0, WARP_SYNC, file, i.line));
        if (!i.has(M_RED)) return void(block_barrier(0, BARRIER_PLAIN, file, i.line));
        BarrierOp op = i.word == W_OR ? BARRIER_OR : i.word == W_AND ? BARRIER_AND : BARRIER_COUNT;
        int v = block_barrier(int(get(i.o.back()) & 1), op, file, i.line);
        set(i.o[0], uint64_t(v), op == BARRIER_COUNT ? U32 : PRED);
    }
    void shfl(const Ins &i) { /* shfl.sync.mode.b32 d|p, a, b, c, membermask */
        unsigned b = unsigned(get(i.o[2])) & 31, c = unsigned(get(i.o[3])), l = lane(), segment = c >> 8 & 31,
                 low = l & segment;
        int limit = int(low | (c & 31 & ~segment)),
            j = i.has(M_UP) ? int(l) - int(b)
            : i.has(M_DOWN) ? int(l + b)
            : i.has(M_BFLY) ? int(l ^ b)
                            : int(low | (b & ~segment));
        bool inside = i.has(M_UP) ? j >= limit : j <= limit;
        if (!inside) j = int(l);
        Exchange *x = warp_exchange(unsigned(get(i.o[4])), get(i.o[1]), WARP_SHFL, g_file.c_str(), i.line);
        uint64_t v = x->mask >> j & 1 ? x->value[j] : ~uint64_t(0);
        exchange_done(x);
        if (i.o[0].kind != O_VECTOR) return set(i.o[0], v, B32);
        set(i.o[0].parts[0], v, B32);
        set(i.o[0].parts[1], inside, PRED);
    }
    void vote(const Ins &i) {
        WarpOp op = i.has(M_BALLOT) ? WARP_BALLOT : i.has(M_ANY) ? WARP_ANY : WARP_ALL;
        Exchange *x = warp_exchange(unsigned(get(i.o[2])), get(i.o[1]) & 1, op, g_file.c_str(), i.line);
        unsigned ballot = 0, all = x->mask;
        for (unsigned q = 0; q < 32; q++)
            if ((all >> q & 1) && x->value[q]) ballot |= 1u << q;
        exchange_done(x);
        set(i.o[0],
            op == WARP_BALLOT    ? ballot
                : op == WARP_ANY ? ballot != 0
                                 : ballot == all,
            op == WARP_BALLOT ? B32 : PRED);
    }
    void match_or_redux(const Ins &i) {
        uint64_t own = zero_extended(get(i.o[1]), i.t), v = 0;
        Exchange *x = warp_exchange(
            unsigned(get(i.o[2])), own, i.code == MATCH ? WARP_MATCH : WARP_REDUCE, g_file.c_str(), i.line);
        bool first = true;
        for (unsigned q = 0; q < 32; q++) {
            if (!(x->mask >> q & 1)) continue;
            uint64_t e = x->value[q];
            if (i.code == MATCH)
                v |= uint64_t(e == own) << q;
            else if (first)
                v = e;
            else
                v = i.word == W_ADD   ? v + e
                    : i.word == W_AND ? v & e
                    : i.word == W_OR  ? v | e
                    : i.word == W_XOR ? v ^ e
                                      : pick(i.word, i.t, v, e);
            first = false;
        }
        exchange_done(x);
        set(i.o[0], v, B32);
    }
    static uint64_t float_sum(const Ins &i, uint64_t a, uint64_t b, bool shared) { /* as atomicAdd: hostcuda.h */
        if (i.t != F32 || shared) return float_op(i, i.t, a, b, [](auto x, auto y) { return x + y; });
        return to_bits(flushed(flushed(from_bits<float>(a)) + flushed(from_bits<float>(b))));
    }
    void atomic(const Ins &i) { /* on one OS thread a plain read, change and write is atomic */
        bool no_dst = i.has(M_NO_DST);
        int n = bytes_of(i.t);
        char *a = address(i, i.o[no_dst ? 0 : 1], size_t(n));
        uint64_t b = get(i.o[no_dst ? 1 : 2]), old, v;
        atomic_hook(a);
        old = read_memory(a, n);
        switch (i.word) {
        case W_ADD: v = is_float(i.t) ? float_sum(i, old, b, in_shared(a)) : old + b; break;
        case W_AND: v = old & b; break;
        case W_OR: v = old | b; break;
        case W_XOR: v = old ^ b; break;
        case W_EXCH: v = b; break;
        case W_CAS: v = zero_extended(old, i.t) == zero_extended(b, i.t) ? get(i.o[3]) : old; break;
        case W_INC: v = zero_extended(old, i.t) >= zero_extended(b, i.t) ? 0 : old + 1; break;
        case W_DEC: v = old == 0 || zero_extended(old, i.t) > zero_extended(b, i.t) ? b : old - 1; break;
        default: v = pick(i.word, i.t, b, old);
        }
        write_memory(a, n, v);
        if (!no_dst) set(i.o[0], old, i.t);
    }
    void bits(const Ins &i) {
        uint64_t a = zero_extended(get(i.o[1]), i.t), v = 0;
        unsigned width = unsigned(bytes_of(i.t) * 8);
        if (i.code == POPC) return set(i.o[0], uint64_t(__builtin_popcountll(a)), U32);
        if (i.code == CLZ) return set(i.o[0], a ? uint64_t(__builtin_clzll(a)) - (64 - width) : width, U32);
        if (i.code == BFIND) { /* highest bit that differs from the sign */
            if (is_signed(i.t) && sign_extended(a, i.t) < 0) a = zero_extended(~a, i.t);
            unsigned top = a ? 63 - unsigned(__builtin_clzll(a)) : ~0u;
            return set(i.o[0], a && i.has(M_SHIFT_AMOUNT) ? width - 1 - top : top, U32);
        }
        if (i.code == BREV)
            for (unsigned j = 0; j < width; j++)
                v |= (a >> j & 1) << (width - 1 - j);
        uint64_t position, length, mask;
        if (i.code == BFE || i.code == BFI) {
            size_t first = i.code == BFE ? 2 : 3;
            position = get(i.o[first]) & 255;
            length = get(i.o[first + 1]) & 255;
            mask = length >= 64 ? ~uint64_t(0) : (uint64_t(1) << length) - 1;
            if (i.code == BFI) {
                uint64_t b = get(i.o[2]);
                v = position >= width ? b : (b & ~(mask << position)) | ((a & mask) << position);
            } else {
                v = position >= width ? 0 : a >> position & mask;
                if (is_signed(i.t) && length && length < width) {
                    uint64_t top = position + length - 1 < width ? position + length - 1 : width - 1;
                    if (a >> top & 1) v |= ~mask;
                }
            }
        }
        set(i.o[0], v, i.t);
    }
    void permute(const Ins &i) {
        uint64_t bytes = zero_extended(get(i.o[1]), B32) | zero_extended(get(i.o[2]), B32) << 32,
                 selector = get(i.o[3]), v = 0;
        for (int j = 0; j < 4; j++) {
            unsigned s = unsigned(selector >> (4 * j) & 15);
            uint64_t b = bytes >> (8 * (s & 7)) & 255;
            v |= (s & 8 ? (b & 128 ? 255 : 0) : b) << (8 * j);
        }
        set(i.o[0], v, B32);
    }
    void run() {
        for (size_t pc = 0; pc < k.code.size();) {
            const Ins &i = k.code[pc++];
            if (i.predicate >= 0 && bool(r[i.predicate] & 1) == i.predicate_negated) continue;
            switch (i.code) {
            case MOV: set(i.o[0], get(i.o[1], i.t), i.t); break;
            case LD: load(i); break;
            case ST: store(i); break;
            case CVTA: cvta(i); break;
            case CVT:
                if (i.t2 == E4M3X2 || i.t2 == E5M2X2)
                    set(i.o[0], half_of_f8(i.t2, get(i.o[1]) >> 8) << 16 | half_of_f8(i.t2, get(i.o[1])), B32);
                else if (i.t == E4M3X2 || i.t == E5M2X2)
                    set(i.o[0], one_f8(i.t, get(i.o[1])) << 8 | one_f8(i.t, get(i.o[2])), B16);
                else if (i.t == F16X2 || i.t == BF16X2)
                    set(i.o[0],
                        one_lane(i.t, from_bits<float>(get(i.o[1]))) << 16 |
                            one_lane(i.t, from_bits<float>(get(i.o[2]))),
                        B32);
                else
                    set(i.o[0], convert(i, get(i.o[1])), NONE);
                break;
            case ADD:
            case SUB: add_or_sub(i); break;
            case MUL:
            case MAD: multiply(i); break;
            case FMA: set(i.o[0], fused(i, i.t, get(i.o[1]), get(i.o[2]), get(i.o[3])), i.t); break;
            case DIV:
            case REM: divide(i); break;
            case SQRT:
            case RCP:
            case RSQRT:
            case EX2:
            case LG2:
            case SIN:
            case COS:
            case TANH: function(i); break;
            case MIN:
            case MAX: min_or_max(i); break;
            case ABS:
            case NEG:
            case COPYSIGN: sign(i); break;
            case AND: set(i.o[0], get(i.o[1]) & get(i.o[2]), i.t); break;
            case OR: set(i.o[0], get(i.o[1]) | get(i.o[2]), i.t); break;
            case XOR: set(i.o[0], get(i.o[1]) ^ get(i.o[2]), i.t); break;
            case NOT: set(i.o[0], ~get(i.o[1]), i.t); break;
            case LOP3: lop3(i); break;
            case SHL:
            case SHR: shift(i); break;
            case SHF: funnel_shift(i); break;
            case SETP: setp(i); break;
            case SELP: set(i.o[0], get(i.o[3]) & 1 ? get(i.o[1]) : get(i.o[2]), i.t); break;
            case TESTP: testp(i); break;
            case BRA: pc = size_t(i.targets[0]); break;
            case BRX: pc = size_t(i.targets[get(i.o[0]) & 0xffffffffu]); break;
            case RET: return;
            case BAR: barrier(i); break;
            case SHFL: shfl(i); break;
            case VOTE: vote(i); break;
            case MATCH:
            case REDUX: match_or_redux(i); break;
            case ACTIVEMASK: set(i.o[0], warp_live_mask(), B32); break;
            case ATOM: atomic(i); break;
            case FENCE: fence(); break;
            case POPC:
            case CLZ:
            case BFIND:
            case BREV:
            case BFE:
            case BFI: bits(i); break;
            case PRMT: permute(i); break;
            case TRAP: device_trap(g_file.c_str(), i.line);
            case NOP:
            case UNKNOWN: break;
            }
        }
    }
};

/* Registers start with a pattern that is a NaN in every float type's eyes and no small integer. */
void invoke(const void *function, void **args) {
    static const char site = 0;
    const Kernel &k = *static_cast<const Kernel *>(function);
    vector<uint64_t> registers(k.registers + 1, 0x7ff7a5a57fa5ffffull);
    vector<char> param(k.param_bytes + 8), local(k.local + 16);
    for (size_t i = 0; i < k.params.size(); i++)
        memcpy(param.data() + k.params[i].offset, args[i], k.params[i].bytes);
    char *shared = k.shared ? static_cast<char *>(shared_static(&site, k.shared, 128)) : nullptr;
    Thread t{k, registers.data(), param.data(), local.data() + (16 - uintptr_t(local.data()) % 16) % 16, shared};
    t.run();
}
} // namespace
} // namespace ptx

using namespace ptx;
bool ptx_find(const char *name, const KernelDesc *host, const void **function, KernelDesc *desc) {
    if (g_kernels.entries.empty()) return false;
    std::unique_ptr<Kernel> *entry = g_kernels.get(name);
    if (!entry || !(*entry)->unsupported.empty()) return false;
    const Kernel &k = **entry;
    if (int(k.params.size()) != host->count) {
        bug("%s has %zu parameters in the PTX and %d here", name, k.params.size(), host->count);
        return false;
    }
    for (int i = 0; i < host->count; i++)
        if (k.params[size_t(i)].bytes != host->size[i]) {
            bug("%s: parameter %d has %zu bytes for nvcc and %zu for the host compiler", name, i,
                k.params[size_t(i)].bytes, host->size[i]);
            return false;
        }
    *function = &k;
    *desc = *host;
    desc->invoke = invoke;
    return true;
}
} // namespace hcu
