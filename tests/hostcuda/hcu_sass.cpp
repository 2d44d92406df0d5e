/* hcu_sass.cpp - executes a GPU's machine code (SASS) on the host runtime's memory, and counts it.
 *
 * hcu_sass_load (or HCU_SASS=name) reads name.cubin, for constants and parameters, and name.sass, nvdisasm's text of
 * it. Every launched kernel then runs its machine code instead of the host function: with the arguments, the memory and
 * the grid of the real launch. A warp runs in lock step; its lanes part at branches and meet again where the code says
 * so (BSSY, BSYNC), so an instruction is counted as often as a warp issues it. Blocks run one after the other.
 *
 * A kernel with an instruction, a modifier or an operand that is not known here is refused with a sentence when it is
 * launched: a count that leaves something out would be wrong. Approximations (MUFU) of floats are rounded the wrong way
 * here, where there is a choice: code whose result depends on their last bit is not exact on a GPU either. But 1/x is
 * the nearest float: ptxas makes rcp.rn of it with one step of Newton's, exact from a GPU's own table alone. */
#include "hcu_sass_memory.h"
#include <cstdio>

namespace hcu {
namespace sass {
namespace {

struct Block : Memory {
    using Memory::Memory;

    void move(const Ins &i) { /* MOV d, a; IMAD.MOV has its own operands */
        uint32_t a[kLanes];
        uint64_t wide[kLanes];
        if (i.has(MOD_64)) {
            read_integer(i.o[1], wide);
            return write(i.o[0], wide);
        }
        read(i.o[1], a);
        write(i.o[0], a);
    }
    void to_uniform(const Ins &i) {
        uint32_t a[kLanes];
        read(i.o.back(), a);
        write(i.o[0], a);
    }
    void execute(const Ins &i) {
        switch (i.code) {
        case C_NOP:
        case C_YIELD:
        case C_MEMBAR:
        case C_ERRBAR:
        case C_CCTL:
        case C_CGAERRBAR:
        case C_ACQBULK: /* griddepcontrol: kernels of a stream run one after the other */
        case C_PREEXIT:
        case C_DEPBAR: break;
        case C_MOV: move(i); break;
        case C_S2R:
        case C_S2UR:
        case C_CS2R: special(i); break;
        case C_LDC:
        case C_LDCU: load_constant(i); break;
        case C_R2UR: to_uniform(i); break;
        case C_VOTE:
        case C_VOTEU: vote(i); break;
        case C_REDUX:
        case C_CREDUX: reduce(i); break;
        case C_MATCH: match(i); break;
        case C_SHFL: shuffle(i); break;
        case C_P2R:
        case C_UP2UR:
        case C_R2P: predicates(i); break;
        case C_VIADD: {
            uint32_t a[kLanes], b[kLanes];
            read(i.o[1], a);
            read(i.o[2], b);
            EACH_LANE a[l] += b[l];
            write(i.o[0], a);
            break;
        }
        case C_IADD:
        case C_IADD3: i.has(MOD_64) ? add64(i) : add3(i); break;
        case C_IMAD: multiply_add(i); break;
        case C_LEA: lea(i); break;
        case C_LOP3: logic(i); break;
        case C_PLOP3: predicate_logic(i); break;
        case C_SHF: shift(i); break;
        case C_PRMT: permute(i); break;
        case C_SEL:
        case C_FSEL: select(i); break;
        case C_ISETP: compare_integers(i); break;
        case C_IMNMX:
        case C_VIMNMX:
        case C_VIMNMX3:
        case C_VIADDMNMX: min_or_max(i); break;
        case C_IABS:
        case C_FLO:
        case C_POPC:
        case C_BREV: bits(i); break;
        case C_SGXT:
        case C_BMSK: sign_extend(i); break;
        case C_FADD:
        case C_FMUL:
        case C_FFMA: arithmetic<float>(i); break;
        case C_DADD:
        case C_DMUL:
        case C_DFMA: arithmetic<double>(i); break;
        case C_FSETP: compare_floats<float>(i); break;
        case C_DSETP: compare_floats<double>(i); break;
        case C_FMNMX:
        case C_FMNMX3: float_min_or_max(i); break;
        case C_FCHK: check_division(i); break;
        case C_MUFU: function(i); break;
        case C_HADD2: half_add(i); break;
        case C_HFMA2: half_fma(i); break;
        case C_F2FP: pack(i); break;
        case C_F2F: convert_float(i); break;
        case C_I2F:
        case C_I2FP: from_integer(i); break;
        case C_F2I: to_integer(i); break;
        case C_FRND: round_float(i); break;
        case C_LD:
        case C_LDG:
        case C_LDS:
        case C_LDL: load(i); break;
        case C_ST:
        case C_STG:
        case C_STS:
        case C_STL: store(i); break;
        case C_ATOM:
        case C_ATOMG:
        case C_ATOMS:
        case C_RED:
        case C_REDG: atomic(i); break;
        default: wrong("not known: instruction");
        }
    }
    void release(int b) { /* each lane there for which all are there that it waits for */
        uint32_t there = 0;
        EACH_LANE if ((w->waiting >> l & 1) && w->wait_on[l] == b) there |= 1u << l;
        EACH_LANE if ((there >> l & 1) && !(w->barrier[b][l] & w->live & ~there)) w->waiting &= ~(1u << l);
    }
    void wait_for(int b, uint32_t lanes, uint32_t whom) { EACH_LANE if (lanes >> l & 1) w->barrier[b][l] = whom; }
    void park(uint32_t lanes, int pc) { EACH_LANE if (lanes >> l & 1) w->pc[l] = pc; }
    void wait_on(uint32_t lanes, int b, int pc) {
        park(lanes, pc);
        EACH_LANE if (lanes >> l & 1) w->wait_on[l] = b;
        w->waiting |= lanes;
        release(b);
    }
    /* Runs `group` from pc until it waits, ends or parts; what is left of it is in w->pc. */
    void control(const Ins &i, uint32_t &group, uint32_t taken, int &pc) {
        switch (i.code) {
        case C_EXIT:
            if (!i.o.empty()) taken &= read_predicate(i.o[0]);
            w->live &= ~taken;
            group &= ~taken;
            for (int b = 0; b < kBarriers; b++)
                release(b);
            pc++;
            return;
        case C_BSSY:
            wait_for(i.o[0].index, taken, taken);
            pc++;
            return;
        case C_BSYNC:
        case C_WARPSYNC: {
            int b = i.code == C_BSYNC ? i.o[0].index : kWarpSync;
            if (i.code == C_WARPSYNC) {
                uint32_t m[kLanes];
                if (i.has(MOD_COLLECTIVE)) wrong("not known: collective code");
                EACH_LANE m[l] = kAll;
                if (!i.o.empty()) read(i.o[0], m);
                if (taken) wait_for(b, taken, m[__builtin_ctz(taken)]);
            }
            pc++;
            if (!taken) return;
            wait_on(taken, b, pc);
            park(group & ~taken, pc);
            group = 0;
            return;
        }
        case C_ENDCOLLECTIVE: wrong("not known: collective code");
        case C_BREAK:
            EACH_LANE w->barrier[i.o.back().index][l] &= ~taken;
            release(i.o.back().index);
            pc++;
            return;
        case C_BMOV: { /* B to R or R to B */
            uint32_t v[kLanes];
            if (i.o[0].kind == O_BARRIER) {
                read(i.o[1], v);
                EACH_LANE if (taken >> l & 1) w->barrier[i.o[0].index][l] = v[l];
            } else {
                memcpy(v, w->barrier[i.o[1].index], sizeof v);
                if (taken) write(i.o[0], v);
                if (i.has(MOD_CLEAR)) wait_for(i.o[1].index, taken, 0);
            }
            pc++;
            return;
        }
        case C_BAR:
            if (!i.has(MOD_SYNC) || i.o.empty() || i.o[0].kind != O_NUMBER || i.o[0].bits) wrong("not known: barrier");
            pc++;
            park(group, pc);
            w->at_block_barrier |= taken;
            group = 0;
            return;
        default: jump(i, group, taken, pc);
        }
    }
    void jump(const Ins &i, uint32_t &group, uint32_t taken, int &pc) {
        uint32_t target[kLanes];
        if (i.code == C_BRA || i.code == C_CALL) {
            const Operand &to = i.o.back();
            if (i.has(MOD_DIV) || i.has(MOD_CONV)) { /* where lanes are missing; where none is */
                uint32_t m[kLanes] = {kAll};         /* unless it is said */
                if (i.o.size() > 1) read(i.o[0], m);
                if ((group == m[0]) != i.has(MOD_CONV)) taken = 0;
            } else if (i.o.size() > 1) {
                taken &= read_predicate(i.o[0]);
            }
            if (to.target < 0) wrong("a label is wanted");
            EACH_LANE target[l] = uint32_t(to.target);
        } else {
            read(i.o[0], target);
            int base = i.code == C_RET ? i.o[1].target : 0;
            uint32_t offset = i.code != C_RET ? uint32_t(16 * (pc + 1)) + uint32_t(i.o[1].bits) : 0;
            EACH_LANE target[l] = uint32_t(base) + (target[l] + offset) / 16;
        }
        if (!taken) {
            pc++;
            return;
        }
        int to = int(target[__builtin_ctz(taken)]);
        uint32_t same = 0;
        EACH_LANE if ((taken >> l & 1) && int(target[l]) == to) same |= 1u << l;
        EACH_LANE if (taken >> l & 1) w->pc[l] = int(target[l]);
        if (same == group) {
            pc = to;
            return;
        }
        park(group & ~taken, pc + 1);
        group = 0; /* the one that is first in the code goes on */
    }
    void run_warp() {
        for (;;) {
            uint32_t ready = w->live & ~w->waiting & ~w->at_block_barrier, group = 0;
            int pc = -1;
            if (!ready) return;
            EACH_LANE if ((ready >> l & 1) && (pc < 0 || w->pc[l] < pc)) pc = w->pc[l];
            EACH_LANE if ((ready >> l & 1) && w->pc[l] == pc) group |= 1u << l;
            while (group) {
                if (size_t(pc) >= k.code.size()) wrong("the program ran past its end");
                const Ins &i = k.code[size_t(pc)];
                uint32_t guard = i.guard_uniform ? w->up[i.guard] : w->p[i.guard];
                now = &i;
                k.issued[size_t(pc)]++;
                mask = group & (i.guard_inverted ? ~guard : guard);
                need = i.guard_uniform ? w->clock.up[i.guard] : w->clock.p[i.guard];
                n_made = 0;
                if (i.pipe == HCU_PIPE_BRANCH) {
                    control(i, group, mask, pc);
                } else {
                    if (mask) execute(i);
                    pc++;
                }
                if (g_sms) issue(i);
            }
        }
    }
};

/* Runs a block from cycle `start` of the launch on; returns the cycle in which it ends. */
uint64_t run_block(Block &b, vector<Warp> &warps, uint64_t start) {
    Kernel &k = b.k;
    unsigned threads = b.config.block.x * b.config.block.y * b.config.block.z;
    char *shared = b.shared;
    b.turn = unsigned(std::max<size_t>(1, warps.size() / 4));
    memset(shared, 0xff, kShared);
    for (size_t n = 0; n < warps.size(); n++) {
        Warp &w = warps[n];
        unsigned lanes = threads - unsigned(n) * kLanes;
        for (int r = 0; r < 256; r++)
            for (uint32_t &x : w.r[r])
                x = r == kZero ? 0 : 0x7ff7a5a5;
        memset(w.u, 0, sizeof w.u);
        memset(w.p, 0, sizeof w.p);
        memset(w.up, 0, sizeof w.up);
        memset(w.barrier, 0, sizeof w.barrier);
        memset(w.pc, 0, sizeof w.pc);
        w.p[kTrue] = w.up[kTrue] = kAll;
        w.live = lanes >= kLanes ? kAll : (1u << lanes) - 1;
        w.waiting = w.at_block_barrier = 0;
        w.first_thread = unsigned(n) * kLanes;
        memset(&w.clock, 0, sizeof w.clock);
        memset(&w.loads, 0, sizeof w.loads);
        w.clock.now = start;
    }
    for (;;) {
        uint32_t live = 0, missing = 0;
        uint64_t last = 0, path = 0;
        for (Warp &w : warps) {
            b.w = &w;
            b.run_warp();
            live |= w.live;
            missing |= w.live & ~w.at_block_barrier;
            last = std::max(last, w.clock.now);
            path = std::max({path, w.clock.path, w.clock.stored.path});
        }
        if (!live) break;
        if (missing) {
            bug("%s: deadlock in its machine code", k.name.c_str());
            abort();
        }
        for (Warp &w : warps) {
            w.at_block_barrier = 0;
            w.clock.now = last + L_BARRIER;
            w.clock.path = path + kStep;
        }
    }
    uint64_t end = start;
    for (const Warp &w : warps) {
        end = std::max({end, w.clock.now, w.clock.stored.at});
        if (w.clock.issued <= k.longest) continue;
        k.longest = w.clock.issued;
        k.longest_fp64 = w.clock.fp64;
    }
    return end;
}
/* How many blocks an SM holds: by registers, threads, shared memory (CUDA C++ Programming Guide, "Technical
 * Specifications per Compute Capability", recalled; a block takes 1 KB more from sm_80 on) and slots. */
unsigned resident_blocks(const Kernel &k, unsigned threads) {
    unsigned warps = (threads + kLanes - 1) / kLanes, registers = unsigned(k.registers + 7) / 8 * 8 * kLanes * warps;
    bool large = g_arch == 80 || g_arch == 90 || g_arch == 100;
    unsigned most = g_arch == 75 ? 1024 : large ? 2048 : 1536;
    unsigned room = g_arch == 75 ? 64 : g_arch == 80 ? 164 : large ? 228 : 100;
    unsigned own = unsigned(k.shared) + (g_arch == 75 ? 0 : 1024);
    unsigned by_shared = own ? (room << 10) / own : 16u;
    return std::max(1u, std::min({registers ? 65536 / registers : 16u, most / (kLanes * warps), by_shared, 16u}));
}
} // namespace

} // namespace sass

using namespace sass;
bool sass_launch(const char *name, const KernelDesc *desc, void **args, const GridConfig &config) {
    std::unique_ptr<Kernel> *entry = g_kernels.entries.empty() ? nullptr : g_kernels.get(name);
    if (g_kernels.entries.empty()) return false;
    if (!entry) {
        if (!g_partial) bug("%s is not in the machine code", name);
        return false;
    }
    Kernel &k = **entry;
    if (!k.unsupported.empty() || k.code.empty()) {
        bug("%s: its machine code cannot be run: not known: %s", name, k.unsupported.c_str());
        return false;
    }
    if (int(k.params.size()) != desc->count) {
        bug("%s has %zu parameters in the machine code and %d here", name, k.params.size(), desc->count);
        return false;
    }
    static char *shared = static_cast<char *>(malloc(kShared));
    vector<char> bank0(0x2000, 0);
    bool blackwell = g_arch >= 100;
    const uint32_t size[6] = {
        config.block.x, config.block.y, config.block.z, config.grid.x, config.grid.y, config.grid.z};
    const uint32_t stack = kStack;
    if (!k.constant[0].empty())
        memcpy(bank0.data(), k.constant[0].data(), std::min(bank0.size(), k.constant[0].size()));
    memcpy(bank0.data() + (blackwell ? 0x360 : 0), size, 12);
    memcpy(bank0.data() + (blackwell ? 0x370 : 12), size + 3, 12);
    memcpy(bank0.data() + (blackwell ? 0x37c : 0x28), &stack, sizeof stack);
    for (int i = 0; i < desc->count; i++) {
        const Kernel::Param &p = k.params[size_t(i)];
        if (p.bytes != desc->size[i] || k.param_base + p.offset + p.bytes > bank0.size()) {
            bug("%s: parameter %d has %zu bytes for nvcc and %zu for the host compiler", name, i, p.bytes,
                desc->size[i]);
            return false;
        }
        memcpy(bank0.data() + k.param_base + p.offset, args[i], p.bytes);
    }
    unsigned threads = config.block.x * config.block.y * config.block.z;
    vector<Warp> warps((threads + kLanes - 1) / kLanes);
    size_t blocks = size_t(config.grid.x) * config.grid.y * config.grid.z;
    vector<uint64_t> slot(
        g_sms ? std::min(blocks, size_t(g_sms) * resident_blocks(k, threads)) : 1); /* when each is free */
    Map<uintptr_t, Ready> touched;
    if (blocks > k.grid) k.threads = threads;
    k.grid = std::max(k.grid, blocks);
    for (size_t n = 0; n < blocks && !g_grids; n++) {
        size_t row = n / config.grid.x;
        uint3 index{unsigned(n % config.grid.x), unsigned(row % config.grid.y), unsigned(row / config.grid.y)};
        Block b{k, config, index, bank0, shared};
        auto free = std::min_element(slot.begin(), slot.end());
        b.touched = &touched;
        *free = run_block(b, warps, *free);
    }
    k.launches++;
    k.blocks += long(blocks);
    if (g_sms) k.cycles += *std::max_element(slot.begin(), slot.end());
    g_launches++;
    return true;
}
} // namespace hcu

/* ---- what a test asks -------------------------------------------------------------------------------------------- */

using namespace hcu;
using namespace hcu::sass;
extern "C" int hcu_sass_arch(void) { return g_arch; }
extern "C" void hcu_sass_partial(int on) { g_partial = on != 0; }
extern "C" void hcu_sass_grids(int only) { g_grids = only != 0; }
extern "C" void hcu_sass_model(int sms) { g_sms = sms; }
extern "C" long hcu_sass_launches(void) { return g_launches; }
extern "C" void hcu_sass_reset(void) {
    g_launches = 0;
    for (auto *e : g_kernels.entries) {
        Kernel &k = *e->value;
        k.launches = k.blocks = 0;
        k.cycles = k.longest = k.longest_fp64 = k.path = k.grid = k.under_way = 0;
        std::fill(k.issued.begin(), k.issued.end(), 0);
    }
}
extern "C" hcu_sass_count hcu_sass_counts(const char *kernel) {
    hcu_sass_count c = {};
    unsigned long long most = 0;
    for (auto *e : g_kernels.entries) {
        const Kernel &k = *e->value;
        if (!k.launches || (kernel && k.name.find(kernel) == string::npos)) continue;
        c.launches += k.launches;
        c.blocks += k.blocks;
        c.registers = std::max(c.registers, k.registers);
        c.cycles += k.cycles;
        if (k.longest > c.longest) {
            c.longest = k.longest;
            c.longest_fp64 = k.longest_fp64;
        }
        if (k.path / kStep > c.chain) {
            c.chain = k.path / kStep;
            c.chain_fp64 = k.path % kStep;
        }
        unsigned long long issued = 0;
        for (size_t i = 0; i < k.code.size(); i++) {
            issued += k.issued[i];
            c.pipe[k.code[i].pipe] += k.issued[i];
        }
        c.issued += issued;
        c.grid = std::max(c.grid, k.grid);
        if (issued <= most) continue;
        most = issued;
        c.under_way =
            (unsigned long long)resident_blocks(k, k.threads) * ((k.threads + kLanes - 1) / kLanes) * k.under_way;
    }
    return c;
}
extern "C" const char *hcu_sass_kernel(int i) {
    for (auto *e : g_kernels.entries)
        if (e->value->launches && i-- == 0) return e->value->name.c_str();
    return nullptr;
}
/* Opcodes with their modifiers, most frequent first, and where they are. */
extern "C" void hcu_sass_profile(const char *kernel, double per, int lines) {
    Map<string, uint64_t> by_opcode;
    for (auto *e : g_kernels.entries) {
        const Kernel &k = *e->value;
        if (!k.launches || (kernel && k.name.find(kernel) == string::npos)) continue;
        for (size_t i = 0; i < k.code.size(); i++) {
            string t = k.code[i].text;
            if (t[0] == '@') t = t.substr(t.find_first_not_of(' ', t.find(' ')));
            if (k.issued[i]) by_opcode[t.substr(0, t.find(' '))] += k.issued[i];
        }
    }
    auto &v = by_opcode.entries;
    std::sort(v.begin(), v.end(), [](const auto *a, const auto *b) { return a->value > b->value; });
    for (size_t i = 0; i < v.size() && int(i) < lines; i++)
        printf("    %-32s %8.3f\n", v[i]->key.c_str(), double(v[i]->value) / per);
}
/* The whole program of a kernel with how often each instruction was issued. */
extern "C" void hcu_sass_listing(const char *kernel, double per) {
    for (auto *e : g_kernels.entries) {
        const Kernel &k = *e->value;
        if (!k.launches || k.name.find(kernel) == string::npos) continue;
        printf("%s\n", k.name.c_str());
        for (size_t i = 0; i < k.code.size(); i++)
            if (k.issued[i])
                printf("%8.4f  /*%04zx*/  %s\n", double(k.issued[i]) / per, 16 * i, k.code[i].text.c_str());
    }
}
