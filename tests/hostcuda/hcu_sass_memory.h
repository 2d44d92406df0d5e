/* hcu_sass_memory.h - internal, of hcu_sass.cpp: special registers, votes and shuffles of a warp, loads, stores and
 * atomic operations. */
#ifndef HCU_SASS_MEMORY_H
#define HCU_SASS_MEMORY_H
#include "hcu_sass_floats.h"

namespace hcu {
namespace sass {
namespace {

struct Memory : Floats {
    using Floats::Floats;
    /* ---- the warp ---- */

    void special(const Ins &i) {
        const string &s = i.o[1].text;
        uint32_t v[kLanes];
        uint64_t zero[kLanes] = {0};
        if (s == "SRZ") {
            EACH_LANE v[l] = 0;
            return i.has(MOD_32) ? write(i.o[0], v) : write(i.o[0], zero);
        }
        EACH_LANE {
            unsigned t = w->first_thread + unsigned(l);
            if (s == "SR_TID.X")
                v[l] = t % config.block.x;
            else if (s == "SR_TID.Y")
                v[l] = t / config.block.x % config.block.y;
            else if (s == "SR_LANEID")
                v[l] = unsigned(l);
            else if (s == "SR_CTAID.X")
                v[l] = index.x;
            else if (s == "SR_CTAID.Y")
                v[l] = index.y;
            else if (s == "SR_CTAID.Z")
                v[l] = index.z;
            else if (s == "SR_CgaCtaId")
                v[l] = 0;
            else if (s == "SR_EQMASK")
                v[l] = 1u << l;
            else if (s == "SR_LTMASK")
                v[l] = (1u << l) - 1;
            else
                wrong("not known: special register");
        }
        write(i.o[0], v);
    }
    void vote(const Ins &i) { /* [d,] [p,] predicate */
        uint32_t ballot = read_predicate(i.o.back()) & mask, v[kLanes];
        EACH_LANE v[l] = ballot;
        for (size_t n = 0; n + 1 < i.o.size(); n++)
            if (is_predicate(i.o[n]))
                write_predicate(i.o[n],
                    (i.has(MOD_ALL)         ? ballot == mask
                            : i.has(MOD_EQ) ? ballot == mask || !ballot
                                            : ballot != 0)
                        ? kAll
                        : 0);
            else
                write(i.o[n], v);
    }
    void reduce(const Ins &i) {
        uint32_t a[kLanes], v = 0;
        bool first = true;
        read(i.o[1], a);
        EACH_LANE {
            if (!(mask >> l & 1)) continue;
            if (first)
                v = a[l];
            else if (i.has(MOD_SUM) || i.has(MOD_ADD))
                v += a[l];
            else if (i.has(MOD_AND))
                v &= a[l];
            else if (i.has(MOD_OR))
                v |= a[l];
            else if (i.has(MOD_XOR))
                v ^= a[l];
            else if (i.has(MOD_MIN) || i.has(MOD_MAX))
                v = pick(i.has(MOD_MIN), i.has(MOD_S32), v, a[l]);
            else
                wrong("not known: reduction");
            first = false;
        }
        EACH_LANE a[l] = v;
        write(i.o[0], a);
    }
    void match(const Ins &i) {
        uint32_t a[kLanes], v[kLanes] = {0};
        if (!i.has(MOD_ANY) || i.has(MOD_U64)) return wrong("not known: match");
        read(i.o.back(), a);
        EACH_LANE {
            for (int q = 0; q < kLanes; q++)
                v[l] |= uint32_t((mask >> q & 1) && a[q] == a[l]) << q;
        }
        write(i.o[is_predicate(i.o[0]) ? 1 : 0], v);
    }
    void shuffle(const Ins &i) { /* p, d, a, b, c */
        uint32_t a[kLanes], b[kLanes], c[kLanes], v[kLanes], inside = 0;
        read(i.o[2], a);
        read(i.o[3], b);
        read(i.o[4], c);
        EACH_LANE {
            int lane = l, n = int(b[l] & 31), segment = int(c[l] >> 8 & 31), low = lane & segment;
            int limit = low | (int(c[l] & 31) & ~segment);
            int from = i.has(MOD_UP) ? lane - n
                : i.has(MOD_DOWN)    ? lane + n
                : i.has(MOD_BFLY)    ? lane ^ n
                                     : low | (n & ~segment);
            bool in = i.has(MOD_UP) ? from >= limit : from <= limit;
            if (!in) from = lane;
            inside |= uint32_t(in) << l;
            v[l] = mask >> from & 1 ? a[from] : ~0u;
        }
        write_predicate(i.o[0], inside);
        write(i.o[1], v);
    }

    /* ---- memory ---- */

    size_t width(const Ins &i) {
        return i.has(MOD_128)                                   ? 16
            : i.has(MOD_64) || i.has(MOD_U64) || i.has(MOD_S64) ? 8
            : i.has(MOD_U16) || i.has(MOD_S16)                  ? 2
            : i.has(MOD_U8) || i.has(MOD_S8)                    ? 1
                                                                : 4;
    }
    enum Space { GLOBAL, SHARED, LOCAL };
    static Space space(const Ins &i) {
        switch (i.code) {
        case C_LDS:
        case C_STS:
        case C_ATOMS: return SHARED;
        case C_LDL:
        case C_STL: return LOCAL;
        default: return GLOBAL;
        }
    }
    char *at(const Ins &i, const Operand &o, int l, size_t n) {
        Space s = space(i);
        bool wide = s == GLOBAL;
        uint64_t a = o.bits;
        if (o.index != kZero) uses(w->clock.r[o.index]);
        if (o.index != kZero && wide) uses(w->clock.r[o.index + 1]);
        if (o.uniform != kZero) uses(w->clock.u[o.uniform]);
        if (o.index != kZero)
            a += (uint64_t(w->r[o.index][l]) |
                     (wide && (o.wide || o.uniform == kZero) ? uint64_t(w->r[o.index + 1][l]) << 32 : 0)) *
                uint64_t(o.scale);
        if (o.uniform != kZero) a += uint64_t(w->u[o.uniform]) | (wide ? uint64_t(w->u[o.uniform + 1]) << 32 : 0);
        if (s != GLOBAL) a = uint32_t(a);
        if (a % n) wrong("misaligned address");
        if (s == GLOBAL) return reinterpret_cast<char *>(a);
        if (a + n > (s == SHARED ? kShared : kStack)) wrong("address out of range");
        if (s == SHARED) return shared + a;
        if (w->local.empty()) w->local.resize(kStack * kLanes);
        return w->local.data() + kStack * size_t(l) + a;
    }
    void load(const Ins &i) {
        size_t n = width(i), words = (n + 3) / 4;
        uint32_t v[4][kLanes];
        if (i.o[1].kind != O_ADDRESS) return wrong("an address is wanted");
        EACH_LANE {
            uint32_t x[4] = {0, 0, 0, 0};
            if (!(mask >> l & 1)) continue;
            const char *p = at(i, i.o[1], l, n);
            if (space(i) == SHARED) uses_shared(p, n, false);
            memcpy(x, p, n);
            if (i.has(MOD_S16)) x[0] = uint32_t(int32_t(int16_t(x[0])));
            if (i.has(MOD_S8)) x[0] = uint32_t(int32_t(int8_t(x[0])));
            for (size_t k = 0; k < words; k++)
                v[k][l] = x[k];
        }
        for (size_t k = 0; k < words; k++)
            write(i.o[0], v[k], int(k));
        if (space(i) == GLOBAL) asks(i.o[0].index, words, n);
    }
    void load_constant(const Ins &i) {
        size_t n = width(i), words = (n + 3) / 4;
        uint32_t v[4][kLanes];
        const Operand &o = i.o[1];
        if (o.kind != O_CONSTANT) return wrong("a constant is wanted");
        EACH_LANE {
            uint32_t x[4] = {0, 0, 0, 0};
            if (!(mask >> l & 1)) continue;
            memcpy(x,
                constant_at(o, uint32_t(w->r[o.index][l] * uint32_t(o.scale) + w->u[o.uniform] + uint32_t(o.bits)), n),
                n);
            if (i.has(MOD_S16)) x[0] = uint32_t(int32_t(int16_t(x[0])));
            if (i.has(MOD_S8)) x[0] = uint32_t(int32_t(int8_t(x[0])));
            for (size_t k = 0; k < words; k++)
                v[k][l] = x[k];
        }
        for (size_t k = 0; k < words; k++)
            write(i.o[0], v[k], int(k));
    }
    void store(const Ins &i) {
        size_t n = width(i);
        const Operand &o = i.o[1];
        for (int k = 0; k < int(n + 3) / 4 && o.index != kZero; k++)
            uses(o.kind == O_UNIFORM ? w->clock.u[o.index + k] : w->clock.r[o.index + k]);
        EACH_LANE {
            uint32_t x[4] = {0, 0, 0, 0};
            if (!(mask >> l & 1)) continue;
            for (size_t k = 0; k < (n + 3) / 4; k++)
                x[k] = o.kind == O_UNIFORM ? w->u[o.index == kZero ? kZero : o.index + int(k)]
                                           : w->r[o.index == kZero ? kZero : o.index + int(k)][l];
            char *p = at(i, i.o[0], l, n);
            if (space(i) == SHARED) uses_shared(p, n, true);
            memcpy(p, x, n);
        }
    }
    uint64_t changed(const Ins &i, uint64_t old, uint64_t b, bool wide) {
        if (i.has(MOD_POPC)) return old + 1;
        if (i.has(MOD_ADD)) {
            if (i.has(MOD_F32)) return to_bits(from_bits<float>(old) + from_bits<float>(b));
            if (i.has(MOD_F64)) return to_bits(from_bits<double>(old) + from_bits<double>(b));
            return old + b;
        }
        if (i.has(MOD_AND)) return old & b;
        if (i.has(MOD_OR)) return old | b;
        if (i.has(MOD_XOR)) return old ^ b;
        if (i.has(MOD_EXCH)) return b;
        if (i.has(MOD_INC)) return old >= b ? 0 : old + 1;
        if (i.has(MOD_DEC)) return old == 0 || old > b ? b : old - 1;
        if (i.has(MOD_MIN) || i.has(MOD_MAX)) {
            bool is_signed = i.has(MOD_S32) || i.has(MOD_S64);
            if (!wide) return pick(i.has(MOD_MIN), is_signed, uint32_t(old), uint32_t(b));
            bool less = is_signed ? int64_t(b) < int64_t(old) : b < old;
            return less == i.has(MOD_MIN) ? b : old;
        }
        wrong("not known: atomic");
        return 0;
    }
    /* RED [a], b; ATOMG p, d, [a], b; ATOMS d, [a], b; CAS: b, c; CAST: d says whether it was done */
    void atomic(const Ins &i) {
        size_t where = 0, n = width(i);
        bool wide = n == 8, swap = i.has(MOD_CAS) || i.has(MOD_CAST);
        uint64_t b[kLanes] = {0}, c[kLanes] = {0}, v[kLanes] = {0};
        uint32_t narrow[kLanes];
        while (i.o[where].kind != O_ADDRESS)
            where++;
        for (int n = 1; n < 3 && where + size_t(n) < i.o.size(); n++) {
            uint64_t *x = n == 1 ? b : c;
            if (wide) {
                read(i.o[where + size_t(n)], x);
            } else {
                read(i.o[where + size_t(n)], narrow);
                EACH_LANE x[l] = narrow[l];
            }
        }
        EACH_LANE {
            uint64_t old = 0, next;
            if (!(mask >> l & 1)) continue;
            char *p = at(i, i.o[where], l, n);
            if (g_sms && space(i) == GLOBAL) { /* one after the other */
                Ready &last = (*touched)[uintptr_t(p)];
                uses({last.at, last.path ? last.path - kStep : 0, 0});
                last.at = std::max(last.at, std::max(w->clock.now, need.at)) + L_QUEUE;
                words.push_back(&last.path);
            }
            if (space(i) == SHARED) uses_shared(p, n, false);
            if (space(i) == SHARED) uses_shared(p, n, true);
            memcpy(&old, p, n);
            next = swap ? (old == b[l] ? c[l] : old) : changed(i, old, b[l], wide);
            memcpy(p, &next, n);
            v[l] = i.has(MOD_CAST) ? uint64_t(old == b[l]) : old;
        }
        if (where == 0) return;
        const Operand &d = i.o[where - 1];
        if (is_predicate(d)) return wrong("not known: atomic");
        EACH_LANE narrow[l] = uint32_t(v[l]);
        return wide ? write(d, v) : write(d, narrow);
    }
};

} // namespace
} // namespace sass
} // namespace hcu
#endif
