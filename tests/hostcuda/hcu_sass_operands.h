/* hcu_sass_operands.h - internal, of hcu_sass.cpp: the state of a warp, how long each instruction takes and what it
 * waits for, and reading and writing of registers, predicates and constants. */
#ifndef HCU_SASS_OPERANDS_H
#define HCU_SASS_OPERANDS_H
#include "hcu_sass.h"
#include <cmath>

namespace hcu {
namespace sass {
namespace {

/* ---- latencies ----
 * Cycles from an instruction's issue to that of one that depends on it. [1] Jia et al., "Dissecting the NVIDIA Volta
 * GPU architecture via microbenchmarking", arXiv 1804.06826; [2] the same for the Turing T4, arXiv 1903.07486; [3]
 * Abdelkhalik et al., "Demystifying the Nvidia Ampere architecture through microbenchmarking and instruction-level
 * analysis", arXiv 2208.11174. The figures are recalled from these papers, they were not looked up again; Hopper's and
 * Blackwell's are taken to be Ampere's. [-]: no figure there, taken. The same figures for every kernel, ours or not. */

enum {
    L_ARITHMETIC = 4,    /* [1][2] integers, FP32, comparisons, selections */
    L_IMAD = 5,          /* [1][2] */
    L_FP64 = 8,          /* [1] where there are 32 or 64 units for each SM */
    L_FP64_FEW = 48,     /* [2] where there are two */
    L_XU = 18,           /* [3] approximations, conversions */
    L_UNIFORM = 10,      /* [-] uniform registers and the way to them */
    L_CONSTANT = 27,     /* [1] LDC that hits the first-level cache */
    L_SHARED = 23,       /* [3] also shuffles and special registers */
    L_L2 = 200,          /* [3] what other blocks wrote: past the first-level cache; atomics */
    L_QUEUE = 4,         /* [-] between two atomic operations on one address */
    L_GLOBAL = 290,      /* [3] */
    L_BRANCH = 8,        /* [-] until the next instruction issues */
    L_BARRIER = 20,      /* [-] after the last warp has come */
    L_FENCE = 200,       /* [-] after the stores before it */
    L_FENCE_SYSTEM = 800 /* [-] across PCIe */
};
int latency(const Ins &i) {
    bool few = g_arch != 80 && g_arch != 90 && g_arch != 100;
    switch (i.code) {
    case C_LDC:
    case C_LDCU: return L_CONSTANT;
    case C_LDG:
    case C_LD: return i.has(MOD_STRONG) ? L_L2 : L_GLOBAL;
    case C_ATOM:
    case C_ATOMG:
    case C_RED:
    case C_REDG:
    case C_STG:
    case C_ST: return L_L2;
    case C_MEMBAR: return i.has(MOD_SYS) ? L_FENCE_SYSTEM : L_FENCE;
    default: break;
    }
    switch (i.pipe) {
    case HCU_PIPE_IMAD: return L_IMAD;
    case HCU_PIPE_FP64: return few ? L_FP64_FEW : L_FP64;
    case HCU_PIPE_CVT64: return few ? L_FP64_FEW : L_XU;
    case HCU_PIPE_XU: return L_XU;
    case HCU_PIPE_LSU: return L_SHARED;
    case HCU_PIPE_UNIFORM: return L_UNIFORM;
    case HCU_PIPE_BRANCH: return L_BRANCH;
    default: return L_ARITHMETIC;
    }
}

/* ---- chains ----
 * A path is a number of instructions, each of which depends on the one before it, in units of kStep; in the lower bits
 * stands how many of them are on the FP64 pipes. An instruction depends on what wrote the registers, predicates and
 * words of shared memory that it reads, and on the last branch of its warp that asked for something; a fence on the
 * stores before it, and what comes after a fence on the fence. A barrier joins the ways and stores of the warps, an
 * atomic operation those of the blocks that were there before: neither's queue is counted. */

constexpr uint64_t kStep = uint64_t(1) << 24;
struct Ready { /* in which cycle something is there, and the longest path to it */
    uint64_t at, path;
    unsigned load; /* a register's: the number of the load that it waits for, or 0 */
};

constexpr int kLanes = 32, kBarriers = 17, kWarpSync = 16;
constexpr unsigned kAll = 0xffffffffu;
constexpr size_t kShared = 256 << 10, kStack = 16 << 10;
#define EACH_LANE for (int l = 0; l < kLanes; l++)
struct Warp {
    uint32_t r[256][kLanes];
    uint32_t u[256];
    uint32_t p[8], up[8];                /* a bit per lane */
    uint32_t barrier[kBarriers][kLanes]; /* whom a lane waits for: two groups apart may use one barrier at a time */
    uint32_t live, waiting, at_block_barrier;
    int wait_on[kLanes], pc[kLanes];
    unsigned first_thread;
    vector<char> local;
    struct
        Clock { /* cycles from the launch: when it can issue, when its stores are done, when each register is there */
        uint64_t now, path, issued, fp64;
        Ready stored, r[256], u[256], p[8], up[8];
    } clock;
    enum { LOADS = 256 };
    struct Loads { /* from memory; those that no instruction has waited for, as a scoreboard does */
        unsigned last, bytes[LOADS], under_way;
    } loads;
};
struct Operands {
    Kernel &k;
    const GridConfig &config;
    uint3 index;
    vector<char> &bank0;
    char *shared;
    Warp *w = nullptr;
    unsigned mask = 0; /* the lanes that execute the current instruction */
    const Ins *now = nullptr;
    unsigned turn = 1;      /* cycles between two instructions of a warp, as warps share four schedulers */
    Ready need = {0, 0, 0}; /* when everything that the current instruction reads is there */
    Ready *made[48] = {nullptr};
    int n_made = 0;
    vector<uint64_t *> words = {}; /* the paths to the words of memory that it writes */
    vector<uint64_t> shared_path = vector<uint64_t>(g_sms ? kShared / 4 : 0);
    Map<uintptr_t, Ready> *touched = nullptr; /* when the last atomic operation on an address was done */

    Operands(Kernel &kernel, const GridConfig &grid, uint3 block, vector<char> &bank, char *shared_memory)
        : k(kernel), config(grid), index(block), bank0(bank), shared(shared_memory) {}

    static void later(Ready &a, const Ready &b) { a = {std::max(a.at, b.at), std::max(a.path, b.path), 0}; }
    void uses(const Ready &ready) {
        later(need, ready);
        if (ready.load) arrives(ready.load);
    }
    void arrives(unsigned load) {
        Warp::Loads &all = w->loads;
        if (all.last - load >= Warp::LOADS) return; /* long ago */
        all.under_way -= all.bytes[load % Warp::LOADS];
        all.bytes[load % Warp::LOADS] = 0;
    }
    /* `words` registers from `first` on get n bytes for each lane. */
    void asks(int first, size_t words, size_t n) {
        Warp::Loads &all = w->loads;
        if (first == kZero) return;
        if (++all.last == 0) ++all.last;
        arrives(all.last); /* what had its place */
        all.bytes[all.last % Warp::LOADS] = unsigned(n) * unsigned(__builtin_popcount(mask));
        all.under_way += all.bytes[all.last % Warp::LOADS];
        k.under_way = std::max(k.under_way, all.under_way);
        for (size_t word = 0; word < words; word++)
            w->clock.r[first + int(word)].load = all.last;
    }
    void makes(Ready *ready) {
        if (n_made < 48) made[n_made++] = ready;
    }
    void uses_shared(const char *p, size_t n, bool writes) {
        for (size_t word = size_t(p - shared) / 4; g_sms && word < (size_t(p - shared) + n + 3) / 4; word++) {
            if (!writes) uses({0, shared_path[word], 0});
            if (writes) words.push_back(&shared_path[word]);
        }
    }
    void issue(const Ins &i) {
        Warp::Clock &c = w->clock;
        if (i.code == C_MEMBAR) uses(c.stored);
        bool stores = i.code == C_STG || i.code == C_ST || i.code == C_RED || i.code == C_REDG || i.code == C_STS;
        bool waits = i.code == C_MEMBAR || i.pipe == HCU_PIPE_BRANCH;
        bool fp64 = i.pipe == HCU_PIPE_FP64 || i.pipe == HCU_PIPE_CVT64;
        uint64_t start = std::max(c.now, need.at);
        Ready done = {start + uint64_t(latency(i)), std::max(c.path, need.path) + kStep + fp64, 0};
        while (n_made) {
            n_made--;
            made[n_made]->at = done.at;
            made[n_made]->path = done.path;
        }
        for (uint64_t *path : words)
            *path = done.path;
        words.clear();
        if (stores) later(c.stored, {i.code == C_STS ? 0 : done.at, done.path, 0});
        if (waits && need.path) c.path = done.path;
        c.now = waits ? done.at : start + turn;
        c.issued++;
        c.fp64 += fp64;
        k.path = std::max(k.path, done.path);
    }

    [[noreturn]] void wrong(const char *what) {
        bug("%s: %s in \"%s\"", k.name.c_str(), what, now ? now->text.c_str() : "?");
        abort();
    }

    /* ---- operands ---- */

    const char *constant_at(const Operand &o, uint64_t offset, size_t n) {
        const vector<char> &c = o.bank ? k.constant[o.bank] : bank0;
        if (offset + n > c.size()) wrong("constant out of range");
        return c.data() + offset;
    }
    void read_raw(const Operand &o, uint32_t *v, int word = 0) {
        uint32_t x = 0;
        switch (o.kind) {
        case O_REGISTER:
            uses(w->clock.r[o.index == kZero ? kZero : o.index + word]);
            memcpy(v, w->r[o.index == kZero ? kZero : o.index + word], sizeof w->r[0]);
            return;
        case O_UNIFORM:
            uses(w->clock.u[o.index == kZero ? kZero : o.index + word]);
            x = w->u[o.index == kZero ? kZero : o.index + word];
            break;
        case O_NUMBER: x = uint32_t(o.bits >> 32 * word); break;
        case O_CONSTANT:
            if (o.index != kZero) {
                uses(w->clock.r[o.index]);
                EACH_LANE {
                    if (mask >> l & 1)
                        memcpy(&v[l],
                            constant_at(
                                o, w->r[o.index][l] * uint32_t(o.scale) + uint32_t(o.bits) + 4u * unsigned(word), 4),
                            4);
                }
                return;
            }
            memcpy(&x, constant_at(o, w->u[o.uniform] + o.bits + 4u * unsigned(word), 4), 4);
            break;
        default: wrong("operand kind");
        }
        EACH_LANE v[l] = x;
    }
    void read(const Operand &o, uint32_t *v) { /* as an integer */
        read_raw(o, v);
        if (o.absolute) EACH_LANE v[l] = v[l] >> 31 ? 0 - v[l] : v[l];
        if (o.negated) EACH_LANE v[l] = 0 - v[l];
        if (o.inverted) EACH_LANE v[l] = ~v[l];
        if (o.half >= 0) EACH_LANE v[l] = v[l] >> (16 * o.half) & 0xffff;
        if (o.byte >= 0) EACH_LANE v[l] = v[l] >> (8 * o.byte) & 0xff;
    }
    void read(const Operand &o, float *v) {
        uint32_t x[kLanes];
        read_raw(o, x);
        if (o.absolute) EACH_LANE x[l] &= 0x7fffffff;
        if (o.negated) EACH_LANE x[l] ^= 0x80000000;
        memcpy(v, x, sizeof x);
        if (!now->has(MOD_FTZ)) return;
        EACH_LANE v[l] = flush(v[l]);
    }
    static float flush(float x) { return fabsf(x) < 1.17549435e-38f ? copysignf(0.0f, x) : x; }
    void read(const Operand &o, uint64_t *v) {
        uint32_t low[kLanes], high[kLanes];
        if (o.kind == O_NUMBER) {
            EACH_LANE v[l] = o.bits;
        } else {
            read_raw(o, low);
            read_raw(o, high, 1);
            EACH_LANE v[l] = uint64_t(high[l]) << 32 | low[l];
        }
    }
    void read_integer(const Operand &o, uint64_t *v) {
        read(o, v);
        if (o.negated) EACH_LANE v[l] = 0 - v[l];
        if (o.inverted) EACH_LANE v[l] = ~v[l];
    }
    void read(const Operand &o, double *v) {
        uint64_t x[kLanes];
        read(o, x);
        if (o.absolute) EACH_LANE x[l] &= ~(uint64_t(1) << 63);
        if (o.negated) EACH_LANE x[l] ^= uint64_t(1) << 63;
        memcpy(v, x, sizeof x);
    }
    uint32_t read_predicate(const Operand &o) {
        uint32_t v = o.kind == O_PREDICATE ? w->p[o.index] : o.kind == O_UNIFORM_PREDICATE ? w->up[o.index] : 0;
        if (o.kind != O_PREDICATE && o.kind != O_UNIFORM_PREDICATE) wrong("a predicate is wanted");
        uses(o.kind == O_PREDICATE ? w->clock.p[o.index] : w->clock.up[o.index]);
        return o.inverted ? ~v : v;
    }
    void write(const Operand &o, const uint32_t *v, int word = 0) {
        if (o.kind == O_UNIFORM) {
            if (o.index == kZero) return;
            w->u[o.index + word] = v[__builtin_ctz(mask)];
            makes(&w->clock.u[o.index + word]);
            return;
        }
        if (o.kind != O_REGISTER) wrong("a register is wanted");
        if (o.index == kZero) return;
        makes(&w->clock.r[o.index + word]);
        uses({0, 0, w->clock.r[o.index + word].load}); /* nothing overtakes a load */
        w->clock.r[o.index + word].load = 0;
        uint32_t *r = w->r[o.index + word];
        if (mask == kAll)
            memcpy(r, v, sizeof w->r[0]);
        else
            EACH_LANE r[l] = mask >> l & 1 ? v[l] : r[l];
    }
    void write(const Operand &o, const float *v) {
        uint32_t x[kLanes];
        memcpy(x, v, sizeof x);
        EACH_LANE if ((x[l] & 0x7fffffff) > 0x7f800000) x[l] = 0x7fffffff; /* the NaN of FP32 arithmetic */
        if (now->has(MOD_FTZ)) EACH_LANE if (!(x[l] & 0x7f800000)) x[l] &= 0x80000000;
        write(o, x);
    }
    void write(const Operand &o, const uint64_t *v) {
        uint32_t x[kLanes];
        EACH_LANE x[l] = uint32_t(v[l]);
        write(o, x);
        EACH_LANE x[l] = uint32_t(v[l] >> 32);
        write(o, x, 1);
    }
    void write(const Operand &o, const double *v) {
        uint64_t x[kLanes];
        memcpy(x, v, sizeof x);
        write(o, x);
    }
    void write_predicate(const Operand &o, uint32_t v) {
        if (o.index == kTrue) return;
        makes(o.kind == O_PREDICATE ? &w->clock.p[o.index] : &w->clock.up[o.index]);
        if (o.kind == O_PREDICATE)
            w->p[o.index] = (w->p[o.index] & ~mask) | (v & mask);
        else if (o.kind == O_UNIFORM_PREDICATE)
            w->up[o.index] = v & mask ? kAll : 0;
        else
            wrong("a predicate is wanted");
    }
    static bool is_predicate(const Operand &o) { return o.kind == O_PREDICATE || o.kind == O_UNIFORM_PREDICATE; }
};

} // namespace
} // namespace sass
} // namespace hcu
#endif
