/* hcu_sass_integers.h - internal, of hcu_sass.cpp: sums, products, logic, shifts, bits, comparisons and selections,
 * and the predicates. */
#ifndef HCU_SASS_INTEGERS_H
#define HCU_SASS_INTEGERS_H
#include "hcu_sass_operands.h"

namespace hcu {
namespace sass {
namespace {

struct Integers : Operands {
    using Operands::Operands;
    void add3(const Ins &i) { /* d, [carry, [carry,]] a, b, c, [carry in, [carry in]] */
        uint32_t v[kLanes], lost[kLanes] = {0};
        uint64_t sum[kLanes] = {0};
        size_t at = 1, first;
        while (is_predicate(i.o[at]))
            at++;
        first = at;
        for (; at < first + 3; at++) {
            const Operand &o = i.o[at];
            read_raw(o, v);
            if (o.negated || o.inverted) EACH_LANE v[l] = ~v[l]; /* -x is ~x + 1; with X the carry is that 1 */
            EACH_LANE sum[l] += v[l] + uint64_t(o.negated && !i.has(MOD_X));
        }
        for (; at < i.o.size(); at++) {
            uint32_t carry = read_predicate(i.o[at]);
            EACH_LANE sum[l] += carry >> l & 1;
        }
        EACH_LANE v[l] = uint32_t(sum[l]);
        for (at = 1; at < first; at++) {
            uint32_t carry = 0;
            EACH_LANE carry |= uint32_t(sum[l] >> 32 > lost[l]) << l;
            EACH_LANE lost[l] += carry >> l & 1;
            write_predicate(i.o[at], carry);
        }
        write(i.o[0], v);
    }
    void add64(const Ins &i) { /* IADD.64 d, a, b; UIADD3.64 d, p, p, a, b, c */
        uint64_t v[kLanes], sum[kLanes] = {0};
        for (size_t at = 1; at < i.o.size(); at++) {
            if (is_predicate(i.o[at])) {
                if (i.o[at].index != kTrue) return wrong("not known: a carry of 64 bits");
                continue;
            }
            read_integer(i.o[at], v);
            EACH_LANE sum[l] += v[l];
        }
        write(i.o[0], sum);
    }
    void multiply_add(const Ins &i) {
        size_t at = is_predicate(i.o[1]) ? 2 : 1;
        uint32_t a[kLanes], b[kLanes], carry = i.o.size() > at + 3 ? read_predicate(i.o[at + 3]) : 0;
        uint32_t out = 0, v[kLanes];
        bool is_signed = !i.has(MOD_U32);
        read(i.o[at], a);
        read(i.o[at + 1], b);
        if (i.has(MOD_WIDE) || i.has(MOD_HI)) { /* c has 64 bits; HI: the sum's upper half */
            uint64_t c[kLanes];
            read_integer(i.o[at + 2], c);
            EACH_LANE {
                uint64_t product = is_signed ? uint64_t(int64_t(int32_t(a[l])) * int32_t(b[l])) : uint64_t(a[l]) * b[l];
                unsigned __int128 sum = (unsigned __int128)product + c[l] + (carry >> l & 1);
                out |= uint32_t(sum >> 64 & 1) << l;
                c[l] = uint64_t(sum);
                v[l] = uint32_t(c[l] >> 32);
            }
            if (i.has(MOD_HI))
                write(i.o[0], v);
            else
                write(i.o[0], c);
        } else {
            uint32_t c[kLanes];
            read(i.o[at + 2], c);
            EACH_LANE {
                uint64_t sum = uint64_t(a[l] * b[l]) + c[l] + (carry >> l & 1);
                out |= uint32_t(sum >> 32 & 1) << l;
                v[l] = uint32_t(sum);
            }
            write(i.o[0], v);
        }
        if (at == 2) write_predicate(i.o[1], out);
    }
    void lea(const Ins &i) { /* d, [carry,] a, b, [a's high word,] shift, [carry in] */
        size_t at = is_predicate(i.o[1]) ? 2 : 1;
        uint32_t a[kLanes], b[kLanes], high[kLanes] = {0}, v[kLanes], carry = 0, out = 0;
        bool three = i.has(MOD_HI) && !i.has(MOD_SX32);
        size_t last = at + (three ? 3 : 2);
        uint64_t shift = i.o[last].bits;
        read_raw(i.o[at], a);
        bool minus = i.o[at].negated; /* b - (a << shift) */
        if (i.o[at].inverted || (minus && i.has(MOD_HI))) wrong("not known: a negated operand");
        read_raw(i.o[at + 1], b);
        if (i.o[at + 1].negated || i.o[at + 1].inverted) EACH_LANE b[l] = ~b[l]; /* -x is ~x + 1 */
        if (three) read(i.o[at + 2], high);
        if (i.has(MOD_SX32)) EACH_LANE high[l] = a[l] >> 31 ? ~0u : 0;
        if (i.o.size() > last + 1) carry = read_predicate(i.o[last + 1]);
        EACH_LANE {
            uint64_t x = (uint64_t(high[l]) << 32 | a[l]) << shift;
            uint64_t part = i.has(MOD_HI) ? x >> 32 : uint32_t(minus ? ~x : x);
            uint64_t sum = part + uint64_t(minus) + uint64_t(b[l]) + (carry >> l & 1);
            sum += uint64_t(i.o[at + 1].negated && !i.has(MOD_X));
            out |= uint32_t(sum >> 32 & 1) << l;
            v[l] = uint32_t(sum);
        }
        write(i.o[0], v);
        if (at == 2) write_predicate(i.o[1], out);
    }
    void logic(const Ins &i) { /* [p,] d, a, b, c, table, predicate in */
        size_t at = is_predicate(i.o[0]) ? 1 : 0;
        uint32_t a[kLanes], b[kLanes], c[kLanes], v[kLanes] = {0}, nonzero = 0;
        uint64_t table = i.o[at + 4].bits;
        read(i.o[at + 1], a);
        read(i.o[at + 2], b);
        read(i.o[at + 3], c);
        for (int n = 0; n < 8; n++) {
            if (!(table >> n & 1)) continue;
            uint32_t na = n & 4 ? 0 : ~0u, nb = n & 2 ? 0 : ~0u, nc = n & 1 ? 0 : ~0u;
            EACH_LANE v[l] |= (a[l] ^ na) & (b[l] ^ nb) & (c[l] ^ nc);
        }
        if (at) {
            uint32_t in = read_predicate(i.o[6]);
            EACH_LANE nonzero |= uint32_t(v[l] != 0) << l;
            write_predicate(i.o[0], i.has(MOD_PAND) ? nonzero & in : nonzero | in);
        }
        write(i.o[at], v);
    }
    static uint32_t by_table(uint64_t table, uint32_t a, uint32_t b, uint32_t c) {
        uint32_t v = 0;
        for (int n = 0; n < 8; n++)
            if (table >> n & 1) v |= (n & 4 ? a : ~a) & (n & 2 ? b : ~b) & (n & 1 ? c : ~c);
        return v;
    }
    void predicate_logic(const Ins &i) { /* p, q, a, b, c, table of p, table of q */
        uint32_t a = read_predicate(i.o[2]), b = read_predicate(i.o[3]), c = read_predicate(i.o[4]);
        write_predicate(i.o[0], by_table(i.o[5].bits, a, b, c));
        write_predicate(i.o[1], by_table(i.o[6].bits, a, b, c));
    }
    void shift(const Ins &i) { /* d, low, count, high: a funnel */
        uint32_t low[kLanes], count[kLanes], high[kLanes], v[kLanes];
        bool wide = i.has(MOD_U64) || i.has(MOD_S64), is_signed = i.has(MOD_S32) || i.has(MOD_S64);
        uint32_t most = wide ? 64 : 32;
        read(i.o[1], low);
        read(i.o[2], count);
        read(i.o[3], high);
        EACH_LANE {
            uint64_t x = uint64_t(high[l]) << 32 | low[l];
            uint32_t n = i.has(MOD_W) ? count[l] & (most - 1) : std::min(count[l], most);
            if (i.has(MOD_L))
                x = n > 63 ? 0 : x << n;
            else if (is_signed)
                x = uint64_t(int64_t(x) >> std::min(n, 63u));
            else
                x = n > 63 ? 0 : x >> n;
            v[l] = uint32_t(i.has(MOD_HI) ? x >> 32 : x);
        }
        write(i.o[0], v);
    }
    void permute(const Ins &i) {
        uint32_t a[kLanes], s[kLanes], c[kLanes], v[kLanes] = {0};
        read(i.o[1], a);
        read(i.o[2], s);
        read(i.o[3], c);
        EACH_LANE {
            uint64_t bytes = uint64_t(c[l]) << 32 | a[l];
            for (int j = 0; j < 4; j++) {
                uint32_t n = s[l] >> (4 * j) & 15, x = uint32_t(bytes >> (8 * (n & 7)) & 255);
                v[l] |= (n & 8 ? (x & 128 ? 255 : 0) : x) << (8 * j);
            }
        }
        write(i.o[0], v);
    }
    uint32_t combined(const Ins &i, uint32_t v, uint32_t with) {
        return i.has(MOD_AND) ? v & with : i.has(MOD_XOR) ? v ^ with : v | with;
    }
    void read_any(const Operand &o, bool wide, uint64_t *v) {
        uint32_t narrow[kLanes];
        if (wide) return read_integer(o, v);
        read(o, narrow);
        EACH_LANE v[l] = narrow[l];
    }
    void compare_integers(const Ins &i) { /* p, q, a, b, combine with, [result for the low words] */
        uint64_t a[kLanes], b[kLanes];
        uint32_t less = 0, equal = 0, v;
        bool wide = i.has(MOD_U64) || i.has(MOD_S64);
        uint64_t flip = i.has(MOD_U32) || i.has(MOD_U64) ? 0 : wide ? uint64_t(1) << 63 : 0x80000000;
        read_any(i.o[2], wide, a);
        read_any(i.o[3], wide, b);
        EACH_LANE less |= uint32_t((a[l] ^ flip) < (b[l] ^ flip)) << l;
        EACH_LANE equal |= uint32_t(a[l] == b[l]) << l;
        uint32_t greater = ~less & ~equal, tie = i.has(MOD_EX) ? read_predicate(i.o[5]) : kAll;
        if (i.has(MOD_EQ))
            v = equal & tie;
        else if (i.has(MOD_NE))
            v = i.has(MOD_EX) ? ~equal | tie : ~equal;
        else if (i.has(MOD_LT))
            v = i.has(MOD_EX) ? less | (equal & tie) : less;
        else if (i.has(MOD_LE))
            v = less | (equal & tie);
        else if (i.has(MOD_GT))
            v = i.has(MOD_EX) ? greater | (equal & tie) : greater;
        else if (i.has(MOD_GE))
            v = greater | (equal & tie);
        else
            return wrong("comparison");
        set_both(i, v);
    }
    void set_both(const Ins &i, uint32_t v) {
        uint32_t with = read_predicate(i.o[4]);
        write_predicate(i.o[0], combined(i, v, with));
        write_predicate(i.o[1], combined(i, ~v, with));
    }
    template <class T> void compare_floats(const Ins &i) {
        T a[kLanes], b[kLanes];
        uint32_t less = 0, equal = 0, greater = 0, v = 0;
        read(i.o[2], a);
        read(i.o[3], b);
        EACH_LANE {
            less |= uint32_t(a[l] < b[l]) << l;
            equal |= uint32_t(a[l] == b[l]) << l;
            greater |= uint32_t(a[l] > b[l]) << l;
        }
        uint32_t unordered = ~(less | equal | greater);
        if (i.has(MOD_LT) || i.has(MOD_LE) || i.has(MOD_NE) || i.has(MOD_NUM) || i.has(MOD_LTU) || i.has(MOD_LEU) ||
            i.has(MOD_NEU))
            v |= less;
        if (i.has(MOD_EQ) || i.has(MOD_LE) || i.has(MOD_GE) || i.has(MOD_NUM) || i.has(MOD_EQU) || i.has(MOD_LEU) ||
            i.has(MOD_GEU))
            v |= equal;
        if (i.has(MOD_GT) || i.has(MOD_GE) || i.has(MOD_NE) || i.has(MOD_NUM) || i.has(MOD_GTU) || i.has(MOD_GEU) ||
            i.has(MOD_NEU))
            v |= greater;
        if (i.has(MOD_NAN) || i.has(MOD_LTU) || i.has(MOD_EQU) || i.has(MOD_LEU) || i.has(MOD_GTU) || i.has(MOD_NEU) ||
            i.has(MOD_GEU))
            v |= unordered;
        set_both(i, v);
    }
    static uint32_t pick(bool minimum, bool is_signed, uint32_t a, uint32_t b) {
        uint32_t flip = is_signed ? 0x80000000 : 0;
        return ((a ^ flip) < (b ^ flip)) == minimum ? a : b;
    }
    static uint32_t pick_as(const Ins &i, bool minimum, bool is_signed, uint32_t a, uint32_t b) {
        if (!i.has(MOD_U16x2)) return pick(minimum, is_signed, a, b);
        return pick(minimum, false, a & 0xffff, b & 0xffff) | pick(minimum, false, a >> 16, b >> 16) << 16;
    }
    void min_or_max64(const Ins &i) { /* p, p, d, a, b, minimum?, false */
        uint64_t a[kLanes], b[kLanes];
        uint32_t minimum = read_predicate(i.o[5]);
        if (i.o[0].index != kTrue || i.o[1].index != kTrue || i.o[6].index != kTrue || i.has(MOD_S64))
            wrong("not known: form");
        read_integer(i.o[3], a);
        read_integer(i.o[4], b);
        EACH_LANE a[l] = (a[l] < b[l]) == bool(minimum >> l & 1) ? a[l] : b[l];
        write(i.o[2], a);
    }
    void min_or_max(const Ins &i) { /* d, [p, p,] a, b, [c,] minimum? */
        if (i.has(MOD_U64) || i.has(MOD_S64)) return min_or_max64(i);
        uint32_t a[kLanes], b[kLanes], minimum = read_predicate(i.o.back());
        bool is_signed = !i.has(MOD_U32);
        size_t at = 1;
        for (; is_predicate(i.o[at]); at++)
            if (i.o[at].index != kTrue) wrong("not known: a predicate as a result");
        read(i.o[at++], a);
        read(i.o[at++], b);
        if (i.code == C_VIADDMNMX) {
            EACH_LANE a[l] += b[l];
            read(i.o[at++], b);
        }
        EACH_LANE a[l] = pick_as(i, minimum >> l & 1, is_signed, a[l], b[l]);
        if (i.code == C_VIMNMX3) {
            read(i.o[at], b);
            EACH_LANE a[l] = pick_as(i, minimum >> l & 1, is_signed, a[l], b[l]);
        }
        write(i.o[0], a);
    }
    void bits(const Ins &i) {
        uint32_t a[kLanes];
        read(i.o[i.code == C_FLO && is_predicate(i.o[1]) ? 2 : 1], a);
        EACH_LANE {
            uint32_t x = a[l];
            if (i.code == C_POPC) {
                a[l] = uint32_t(__builtin_popcount(x));
            } else if (i.code == C_FLO) {
                if (!i.has(MOD_U32) && x >> 31) x = ~x;
                int top = x ? 31 - __builtin_clz(x) : -1;
                a[l] = uint32_t(i.has(MOD_SH) && x ? 31 - top : top);
            } else if (i.code == C_BREV) {
                a[l] = 0;
                for (int n = 0; n < 32; n++)
                    a[l] |= (x >> n & 1) << (31 - n);
            } else {
                a[l] = x >> 31 ? 0 - x : x;
            }
        }
        write(i.o[0], a);
    }
    void sign_extend(const Ins &i) { /* SGXT d, a, width; BMSK d, position, width */
        uint32_t a[kLanes], b[kLanes];
        read(i.o[1], a);
        read(i.o[2], b);
        EACH_LANE {
            uint32_t width = i.has(MOD_W) ? b[l] & 31 : std::min(b[l], 32u), shift = 32 - width;
            if (i.code == C_BMSK)
                a[l] = a[l] > 31 ? 0 : uint32_t(((uint64_t(1) << width) - 1) << a[l]);
            else if (width == 0)
                a[l] = 0;
            else
                a[l] = i.has(MOD_U32) ? a[l] << shift >> shift : uint32_t(int32_t(a[l] << shift) >> shift);
        }
        write(i.o[0], a);
    }
    void select(const Ins &i) {
        uint32_t a[kLanes], b[kLanes], p = read_predicate(i.o[3]);
        if (i.has(MOD_64)) {
            uint64_t x[kLanes], y[kLanes];
            read_integer(i.o[1], x);
            read_integer(i.o[2], y);
            EACH_LANE x[l] = p >> l & 1 ? x[l] : y[l];
            return write(i.o[0], x);
        }
        if (i.code == C_FSEL) {
            float x[kLanes], y[kLanes];
            read(i.o[1], x);
            read(i.o[2], y);
            memcpy(a, x, sizeof a);
            memcpy(b, y, sizeof b);
        } else {
            read(i.o[1], a);
            read(i.o[2], b);
        }
        EACH_LANE a[l] = p >> l & 1 ? a[l] : b[l];
        write(i.o[0], a);
    }
    void predicates(const Ins &i) { /* P2R d, PR, a, mask; R2P PR, a, mask */
        uint32_t a[kLanes], m[kLanes];
        if (i.code == C_P2R || i.code == C_UP2UR) {
            bool uniform = i.code == C_UP2UR;
            read(i.o[2], a);
            read(i.o[3], m);
            for (int n = 0; n < 7; n++)
                uses(uniform ? w->clock.up[n] : w->clock.p[n]);
            EACH_LANE {
                uint32_t v = 0;
                for (int n = 0; n < 7; n++)
                    v |= ((uniform ? w->up[n] : w->p[n]) >> l & 1) << n;
                a[l] = (v & m[l]) | (a[l] & ~m[l]);
            }
            write(i.o[0], a);
            return;
        }
        read(i.o[1], a);
        read(i.o[2], m);
        for (int n = 0; n < 7; n++) {
            uint32_t v = 0, which = 0;
            EACH_LANE v |= (a[l] >> n & 1) << l;
            EACH_LANE which |= (m[l] >> n & 1) << l;
            which &= mask;
            if (which) makes(&w->clock.p[n]);
            w->p[n] = (w->p[n] & ~which) | (v & which);
        }
    }
};

} // namespace
} // namespace sass
} // namespace hcu
#endif
