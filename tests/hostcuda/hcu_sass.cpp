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
#include "hcu_core.h"
#include <cuda_fp8.h>
#include <cuda_fp16.h>
#include <cfenv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <memory>
#include <string>
using std::string;
using std::vector;

namespace hcu {
namespace {

/* ---- program ----------------------------------------------------------------------------------------------------- */

/* clang-format off */
#define HCU_OPCODES(X) /* name, pipe */ \
    X(NOP, OTHER) X(YIELD, OTHER) X(MEMBAR, LSU) X(ERRBAR, LSU) X(CCTL, LSU) X(CGAERRBAR, LSU) X(DEPBAR, OTHER) \
    X(EXIT, BRANCH) X(BRA, BRANCH) X(BRX, BRANCH) X(BRXU, BRANCH) X(CALL, BRANCH) X(RET, BRANCH) X(BSSY, BRANCH) \
    X(BSYNC, BRANCH) X(BREAK, BRANCH) X(BMOV, BRANCH) X(WARPSYNC, BRANCH) X(BAR, BRANCH) X(MOV, ALU) X(S2R, LSU) \
    X(ENDCOLLECTIVE, BRANCH) \
    X(S2UR, UNIFORM) X(CS2R, ALU) X(LDC, LSU) X(LDCU, UNIFORM) X(R2UR, ALU) X(VOTE, ALU) X(VOTEU, ALU) X(REDUX, XU) \
    X(CREDUX, XU) X(MATCH, XU) X(SHFL, LSU) X(P2R, ALU) X(UP2UR, UNIFORM) X(R2P, ALU) X(IADD, ALU) X(IADD3, ALU) \
    X(IMAD, IMAD) \
    X(LEA, ALU) X(LOP3, ALU) X(SHF, ALU) X(PRMT, ALU) X(SEL, ALU) X(PLOP3, ALU) X(ISETP, ALU) X(IMNMX, ALU) \
    X(VIADD, ALU) X(VIMNMX, ALU) X(VIMNMX3, ALU) X(VIADDMNMX, ALU) X(IABS, ALU) X(FLO, XU) X(POPC, XU) X(BREV, XU) \
    X(SGXT, ALU) X(BMSK, ALU) X(FADD, FMA) X(FMUL, FMA) X(FFMA, FMA) X(FSEL, ALU) X(FSETP, ALU) X(FMNMX, ALU) \
    X(FMNMX3, ALU) X(FCHK, ALU) X(MUFU, XU) X(HADD2, FMA) X(HFMA2, FMA) X(DADD, FP64) X(DMUL, FP64) X(DFMA, FP64) \
    X(DSETP, FP64) X(F2F, XU) X(F2FP, ALU) X(F2I, XU) X(I2F, XU) X(I2FP, ALU) X(FRND, XU) X(LD, LSU) X(LDG, LSU) \
    X(LDS, LSU) X(LDL, LSU) X(ST, LSU) X(STG, LSU) X(STS, LSU) X(STL, LSU) X(ATOM, LSU) X(ATOMG, LSU) X(ATOMS, LSU) \
    X(RED, LSU) X(REDG, LSU)
/* modifiers that change what an instruction does, and those that do not */
#define HCU_MODIFIERS(X) \
    X(X) X(U32) X(S32) X(U64) X(S64) X(U16) X(S16) X(U8) X(S8) X(F32) X(F64) X(F16) X(BF16) X(E4M3) X(E5M2) X(WIDE) \
    X(HI) X(SX32) X(L) X(R) X(W) X(EX) X(AND) X(OR) X(XOR) X(LT) X(EQ) X(LE) X(GT) X(NE) X(GE) X(NUM) X(NAN) X(LTU) \
    X(EQU) X(LEU) X(GTU) X(NEU) X(GEU) X(RM) X(RP) X(RZ) X(FTZ) X(SAT) X(TRUNC) X(FLOOR) X(CEIL) X(RCP) X(RSQ) \
    X(SQRT) X(EX2) X(LG2) X(RCP64H) X(RSQ64H) X(SIN) X(COS) X(TANH) X(128) X(64) X(32) X(ADD) X(MIN) X(MAX) X(INC) \
    X(DEC) X(EXCH) X(CAS) X(CAST) X(POPC) X(ANY) X(ALL) X(SUM) X(IDX) X(UP) X(DOWN) X(BFLY) X(PACK_AB) \
    X(PACK_AB_MERGE_C) X(UNPACK_B) X(SATFINITE) X(SH) X(CLEAR) X(DIV) X(PAND) X(U) X(RED) X(E) X(STRONG) X(GPU) \
    X(SYS) X(CTA) X(SM) X(EF) X(EL) X(LU) X(CONSTANT) X(LTC128B) X(LTC256B) X(LTC64B) X(DEFER_BLOCKING) X(SYNC) \
    X(REL) X(NOINC) X(NODEC) X(LUT) X(NTZ) X(SPIN) X(SC) X(IVALL) X(INVALIDATE) X(MMA) X(RECONVERGENT) X(RELIABLE) \
    X(MOV) X(SHL) X(IADD) X(COLLECTIVE) X(U16x2) X(RN) X(CONV)
/* clang-format on */

enum Code : unsigned char {
#define X(name, pipe) C_##name,
    HCU_OPCODES(X)
#undef X
};
enum Modifier : unsigned char {
#define X(name) MOD_##name,
    HCU_MODIFIERS(X)
#undef X
        MOD_COUNT
};
const struct {
    const char *name;
    Code code;
    hcu_pipe pipe;
} kCodes[] = {
#define X(name, pipe) {#name, C_##name, HCU_PIPE_##pipe},
    HCU_OPCODES(X)
#undef X
};
const char *const kModifiers[] = {
#define X(name) #name,
    HCU_MODIFIERS(X)
#undef X
};

enum Kind : unsigned char {
    O_REGISTER,
    O_UNIFORM,
    O_PREDICATE,
    O_UNIFORM_PREDICATE,
    O_ALL_PREDICATES,
    O_BARRIER,
    O_NUMBER,
    O_CONSTANT,
    O_ADDRESS,
    O_SPECIAL,
    O_LABEL
};
constexpr int kZero = 255, kTrue = 7; /* RZ and URZ; PT and UPT */
struct Operand {
    Kind kind = O_NUMBER;
    bool negated = false, inverted = false, absolute = false; /* -x; ~x or !p; |x| */
    int index = kZero;                                        /* of a register; of a constant's or an address' base */
    int uniform = kZero;                                      /* the uniform register in an address */
    bool wide = false, wide_uniform = false;                  /* 64 bits of it */
    int scale = 1, bank = 0;
    int byte = -1, half = -1; /* .B2, .H1 */
    uint64_t bits = 0;        /* a number, as the instruction sees it; an offset */
    string text;              /* a special register, a label */
    int target = -1;
};
struct Ins {
    Code code;
    hcu_pipe pipe;
    int guard = kTrue;
    bool guard_uniform = false, guard_inverted = false;
    uint64_t modifiers[3] = {0, 0, 0};
    vector<Operand> o;
    string text;
    bool has(Modifier m) const { return modifiers[m / 64] >> (m % 64) & 1; }
};
struct Kernel {
    string name, unsupported;
    vector<Ins> code;
    vector<uint64_t> issued; /* how often a warp issued each of them */
    vector<char> constant[8];
    struct Param { size_t offset, bytes; };
    vector<Param> params;
    size_t param_base = 0;
    int registers = 0, file = 0; /* file: which of those that were loaded */
    long launches = 0, blocks = 0;
    uint64_t cycles = 0, longest = 0, longest_fp64 = 0, path = 0; /* of hcu_sass_model */
};
Map<string, std::unique_ptr<Kernel>> &g_kernels = *new Map<string, std::unique_ptr<Kernel>>;
long g_launches;
int g_arch, g_sms; /* g_sms: 0 while no chain is counted */
int g_file;

template <class T> T from_bits(uint64_t v) {
    T x;
    memcpy(&x, &v, sizeof x);
    return x;
}
template <class T> uint64_t to_bits(T x) {
    uint64_t v = 0;
    memcpy(&v, &x, sizeof x);
    return v;
}

/* ---- nvdisasm's text --------------------------------------------------------------------------------------------- */

struct Parser {
    Kernel *k = nullptr;
    Map<string, int> labels; /* of the section */
    string refuse;

    static bool starts(const string &s, const char *with) { return s.compare(0, strlen(with), with) == 0; }
    static string strip(const string &s) {
        size_t a = s.find_first_not_of(" \t"), b = s.find_last_not_of(" \t");
        return a == string::npos ? "" : s.substr(a, b - a + 1);
    }
    static bool number_after(const string &s, const char *prefix, int zero, int *out) {
        size_t n = strlen(prefix);
        if (!starts(s, prefix)) return false;
        string rest = s.substr(n);
        if (rest == "Z") return *out = zero, true;
        if (rest == "T") return *out = kTrue, true;
        if (rest.empty() || rest.find_first_not_of("0123456789") != string::npos) return false;
        return *out = atoi(rest.c_str()), true;
    }
    bool wants_float(const Ins &i) const {
        switch (i.code) {
        case C_FADD:
        case C_FMUL:
        case C_FFMA:
        case C_FSEL:
        case C_FSETP:
        case C_FMNMX:
        case C_FMNMX3:
        case C_FCHK:
        case C_MUFU:
        case C_F2FP:
        case C_F2F:
        case C_F2I:
        case C_FRND: return !i.has(MOD_F64) || i.code == C_F2F;
        default: return false;
        }
    }
    bool wants_double(const Ins &i) const {
        return i.code == C_DADD || i.code == C_DMUL || i.code == C_DFMA || i.code == C_DSETP;
    }
    void number(const Ins &i, const string &s, Operand &o) {
        char *end;
        bool hex = s.find("0x") != string::npos, word = s.find("INF") != string::npos || s.find("NAN") != string::npos;
        o.kind = O_NUMBER;
        if (hex) {
            bool minus = s[0] == '-';
            uint64_t v = strtoull(s.c_str() + (minus ? 1 : 0), &end, 16);
            o.bits = minus ? 0 - v : v;
            if (*end) refuse = "number " + s;
            return;
        }
        double x = strtod(s.c_str(), &end);
        if (word) {
            x = s.find("INF") != string::npos ? INFINITY : NAN;
            if (s[0] == '-') x = -x;
            end = const_cast<char *>("");
        }
        if (*end) refuse = "operand " + s;
        if (wants_double(i))
            o.bits = to_bits(x);
        else if (wants_float(i))
            o.bits = std::isnan(x) ? 0x7fffffff : uint32_t(to_bits(float(x)));
        else if (i.code == C_HADD2 || i.code == C_HFMA2)
            o.bits = __half_raw(__double2half(x)).x;
        else
            o.bits = uint64_t(int64_t(x));
    }
    /* R2.64+UR4.64+-0x10, R3.X8+0x4, UR5+0xc */
    void address(const string &s, Operand &o) {
        for (size_t at = 0; at < s.size();) {
            size_t end = s.find('+', at);
            if (end == string::npos) end = s.size();
            string t = strip(s.substr(at, end - at)), base = t.substr(0, t.find('.'));
            string suffix = t.size() > base.size() ? t.substr(base.size() + 1) : "";
            int n;
            at = end + 1;
            if (number_after(base, "R", kZero, &n)) {
                o.index = n;
                if (suffix == "64")
                    o.wide = true;
                else if (suffix == "X4" || suffix == "X8" || suffix == "X16")
                    o.scale = atoi(suffix.c_str() + 1);
                else if (suffix != "" && suffix != "U32")
                    refuse = "address " + s;
            } else if (number_after(base, "UR", kZero, &n)) {
                o.uniform = n;
                o.wide_uniform = suffix == "64";
            } else if (t.find("0x") != string::npos) {
                bool minus = t[0] == '-';
                uint64_t v = strtoull(t.c_str() + (minus ? 1 : 0), nullptr, 16);
                o.bits += minus ? 0 - v : v;
            } else {
                refuse = "address " + s;
            }
        }
    }
    void constant(const string &s, Operand &o) { /* c[0x2][R5+0xc] */
        o.kind = O_CONSTANT;
        o.bank = int(strtol(s.c_str() + 2, nullptr, 16));
        size_t at = s.find("][");
        if (at == string::npos || o.bank > 7) {
            refuse = "constant " + s;
            return;
        }
        address(s.substr(at + 2, s.rfind(']') - at - 2), o);
    }
    void suffixes(string &s, Operand &o) {
        for (size_t dot; (dot = s.rfind('.')) != string::npos;) {
            string t = s.substr(dot + 1);
            if (t == "reuse") {
            } else if (t == "H0_H0" || t == "H0") {
                o.half = 0;
            } else if (t == "H1_H1" || t == "H1") {
                o.half = 1;
            } else if (t.size() == 2 && t[0] == 'B' && t[1] >= '0' && t[1] <= '3') {
                o.byte = t[1] - '0';
            } else if (t == "64") {
                o.wide = true;
            } else {
                refuse = "operand " + s;
            }
            s.resize(dot);
        }
    }
    Operand operand(const Ins &i, string s) {
        Operand o;
        size_t desc = s.find("desc[");
        if (desc == 0) s = s.substr(s.find(']') + 1);
        if (starts(s, "SR")) {
            o.kind = O_SPECIAL;
            o.text = s;
            return o;
        }
        if (starts(s, "`(")) {
            o.kind = O_LABEL;
            o.text = s.substr(2, s.size() - 3);
            return o;
        }
        if (s[0] == '[') {
            o.kind = O_ADDRESS;
            address(s.substr(1, s.find(']') - 1), o);
            return o;
        }
        if ((s[0] >= '0' && s[0] <= '9') ||
            ((s[0] == '-' || s[0] == '+') && ((s[1] >= '0' && s[1] <= '9') || s[1] == 'I' || s[1] == 'Q'))) {
            number(i, s, o);
            return o;
        }
        if (s[0] == '-') o.negated = true;
        if (s[0] == '~' || s[0] == '!') o.inverted = true;
        if (o.negated || o.inverted) s = s.substr(1);
        if (s[0] == '|') {
            o.absolute = true;
            s = s.substr(1, s.rfind('|') - 1);
        }
        if (starts(s, "c[")) {
            size_t end = s.rfind(']');
            string tail = s.substr(end + 1);
            suffixes(tail, o);
            constant(s.substr(0, end + 1), o);
            return o;
        }
        suffixes(s, o);
        if (s == "PR" || s == "UPR") {
            o.kind = O_ALL_PREDICATES;
        } else if (number_after(s, "R", kZero, &o.index)) {
            o.kind = O_REGISTER;
        } else if (number_after(s, "UR", kZero, &o.index)) {
            o.kind = O_UNIFORM;
        } else if (number_after(s, "P", 0, &o.index)) {
            o.kind = O_PREDICATE;
        } else if (number_after(s, "UP", 0, &o.index)) {
            o.kind = O_UNIFORM_PREDICATE;
        } else if (number_after(s, "B", 0, &o.index)) {
            o.kind = O_BARRIER;
        } else {
            refuse = "operand " + s;
        }
        return o;
    }
    bool opcode(const string &word, Ins &i) {
        size_t dot = word.find('.');
        string name = word.substr(0, dot), bare = name[0] == 'U' ? name.substr(1) : name;
        bool found = false, uniform = false;
        for (const string *n : {&name, &bare})
            for (const auto &c : kCodes)
                if (!found && *n == c.name) {
                    i.code = c.code;
                    i.pipe = c.pipe;
                    uniform = n == &bare && name != bare;
                    found = true;
                }
        if (uniform) i.pipe = HCU_PIPE_UNIFORM;
        while (found && dot != string::npos) {
            size_t next = word.find('.', dot + 1);
            string m = word.substr(dot + 1, next == string::npos ? next : next - dot - 1);
            int n = 0;
            while (n < MOD_COUNT && m != kModifiers[n])
                n++;
            if (n == MOD_COUNT) return false;
            i.modifiers[n / 64] |= uint64_t(1) << (n % 64);
            dot = next;
        }
        bool converts = i.code == C_F2F || i.code == C_I2F || i.code == C_F2I;
        if (converts && i.has(MOD_F64)) i.pipe = HCU_PIPE_CVT64;
        return found;
    }
    void line(size_t address, string s) {
        Ins i{};
        i.text = s;
        refuse.clear();
        if (address != 16 * k->code.size()) refuse = "address out of order";
        if (s[0] == '@') {
            size_t end = s.find(' ');
            Operand g = operand(i, s.substr(1, end - 1));
            i.guard = g.index;
            i.guard_uniform = g.kind == O_UNIFORM_PREDICATE;
            i.guard_inverted = g.inverted;
            s = strip(s.substr(end));
        }
        size_t end = s.find(' ');
        string rest = end == string::npos ? "" : strip(s.substr(end));
        size_t note = rest.find("(*");
        if (note != string::npos) rest = strip(rest.substr(0, note));
        if (!opcode(s.substr(0, end), i)) refuse = "instruction " + s.substr(0, end);
        if (i.code == C_BRX || i.code == C_BRXU || i.code == C_RET) /* R4 -0x1a90; R4 `(label) */
            for (char &c : rest)
                if (c == ' ') c = ',';
        for (size_t at = 0; at < rest.size() && refuse.empty();) {
            size_t comma = rest.find(',', at);
            if (comma == string::npos) comma = rest.size();
            i.o.push_back(operand(i, strip(rest.substr(at, comma - at))));
            at = comma + 1;
        }
        if (!refuse.empty() && k->unsupported.empty()) k->unsupported = refuse + " in \"" + i.text + "\"";
        k->code.push_back(std::move(i));
    }
    void finish() {
        if (!k) return;
        k->issued.assign(k->code.size(), 0);
        for (Ins &i : k->code)
            for (Operand &o : i.o) {
                int *at = o.kind == O_LABEL ? labels.get(o.text) : nullptr;
                if (at)
                    o.target = *at;
                else if (o.kind == O_LABEL && k->unsupported.empty())
                    k->unsupported = "label " + o.text;
            }
        k = nullptr;
    }
    void run(const string &text) {
        static const char section[] = "\t.section\t.text.";
        for (size_t at = 0; at < text.size();) {
            size_t end = text.find('\n', at);
            if (end == string::npos) end = text.size();
            string s = text.substr(at, end - at);
            at = end + 1;
            if (starts(s, "\t.section\t")) finish();
            if (starts(s, "\t.target\tsm_")) g_arch = atoi(s.c_str() + 12);
            if (starts(s, section)) {
                string name = s.substr(sizeof section - 1, s.find(',') - sizeof section + 1);
                if (name[0] == '"') name = name.substr(1, name.size() - 2);
                labels = Map<string, int>();
                auto *entry = g_kernels.get(name);
                k = entry ? entry->get() : nullptr;
            }
            if (!k) continue;
            size_t open = s.find("/*");
            if (!s.empty() && s[0] != ' ' && s[0] != '\t' && s.back() == ':')
                labels[s.substr(0, s.size() - 1)] = int(k->code.size());
            if (s.empty() || s[0] != ' ' || open == string::npos) continue;
            size_t close = s.find("*/", open), semicolon = s.rfind(';');
            if (close == string::npos || semicolon == string::npos || semicolon < close) continue;
            line(strtoul(s.c_str() + open + 2, nullptr, 16), strip(s.substr(close + 2, semicolon - close - 2)));
        }
        finish();
    }
};

/* ---- the cubin: what the text does not say ----------------------------------------------------------------------- */

void read_info(Kernel &k, const char *p, const char *end) { /* attributes: format, which, size or value, data */
    enum { FORMAT_DATA = 4, KPARAM_INFO = 0x17, PARAM_CBANK = 0x0a };
    while (p + 4 <= end) {
        uint16_t size, offset, ordinal;
        uint32_t word;
        memcpy(&size, p + 2, 2);
        if (p[0] != FORMAT_DATA) size = 0;
        if (p[1] == PARAM_CBANK && size >= 8) {
            memcpy(&offset, p + 8, 2);
            k.param_base = offset;
        }
        if (p[1] == KPARAM_INFO && size >= 12) {
            memcpy(&ordinal, p + 8, 2);
            memcpy(&offset, p + 10, 2);
            memcpy(&word, p + 12, 4);
            if (k.params.size() <= ordinal) k.params.resize(size_t(ordinal) + 1);
            k.params[ordinal] = {offset, word >> 18};
        }
        p += 4 + size;
    }
}
/* Registers: of the section's header, or, in newer files, in .nv.info, by number of the symbol. */
void read_registers(const char *p, const char *end, const Elf64_Sym *symbols, const char *names) {
    enum { FORMAT_DATA = 4, REGCOUNT = 0x2f };
    while (p + 4 <= end) {
        uint16_t size;
        uint32_t symbol, count;
        memcpy(&size, p + 2, 2);
        if (p[0] != FORMAT_DATA) size = 0;
        if (p[1] == REGCOUNT && size >= 8) {
            memcpy(&symbol, p + 4, 4);
            memcpy(&count, p + 8, 4);
            auto *entry = g_kernels.get(names + symbols[symbol].st_name);
            if (entry) (*entry)->registers = int(count);
        }
        p += 4 + size;
    }
}
bool read_cubin(const string &file) {
    if (file.size() < sizeof(Elf64_Ehdr) || memcmp(file.data(), ELFMAG, SELFMAG) != 0) return false;
    const Elf64_Ehdr *head = reinterpret_cast<const Elf64_Ehdr *>(file.data());
    const Elf64_Shdr *section = reinterpret_cast<const Elf64_Shdr *>(file.data() + head->e_shoff);
    const char *names = file.data() + section[head->e_shstrndx].sh_offset;
    int symbols = 0;
    for (int pass = 0; pass < 2; pass++) /* kernels first */
        for (int i = 0; i < head->e_shnum; i++) {
            string name = names + section[i].sh_name;
            const char *data = file.data() + section[i].sh_offset, *end = data + section[i].sh_size;
            if (!pass && name.compare(0, 6, ".text.") == 0) {
                g_kernels[name.substr(6)] = std::make_unique<Kernel>();
                g_kernels[name.substr(6)]->name = name.substr(6);
                g_kernels[name.substr(6)]->registers = int(section[i].sh_info >> 24);
                g_kernels[name.substr(6)]->file = g_file;
            }
            if (!pass || section[i].sh_type == SHT_NOBITS) continue;
            if (name == ".symtab") symbols = i;
            if (name == ".nv.info" && symbols)
                read_registers(data, end, reinterpret_cast<const Elf64_Sym *>(file.data() + section[symbols].sh_offset),
                    file.data() + section[section[symbols].sh_link].sh_offset);
            for (auto *e : g_kernels.entries) {
                Kernel &k = *e->value;
                if (k.file != g_file) continue;
                if (name == ".nv.info." + k.name) read_info(k, data, end);
                for (int bank = 0; bank < 8; bank++) {
                    string own = ".nv.constant" + std::to_string(bank);
                    if (name == own || name == own + "." + k.name) k.constant[bank].assign(data, end);
                }
            }
        }
    return true;
}

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

/* ---- one warp ---------------------------------------------------------------------------------------------------- */

/* ---- chains ----
 * A path is a number of instructions, each of which depends on the one before it, in units of kStep; in the lower bits
 * stands how many of them are on the FP64 pipes. An instruction depends on what wrote the registers, predicates and
 * words of shared memory that it reads, and on the last branch of its warp that asked for something; a fence on the
 * stores before it, and what comes after a fence on the fence. A barrier joins the ways and stores of the warps, an
 * atomic operation those of the blocks that were there before: neither's queue is counted. */

constexpr uint64_t kStep = uint64_t(1) << 24;
struct Ready { /* in which cycle something is there, and the longest path to it */
    uint64_t at, path;
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
};
struct Block {
    Kernel &k;
    const GridConfig &config;
    uint3 index;
    vector<char> &bank0;
    char *shared;
    Warp *w = nullptr;
    unsigned mask = 0; /* the lanes that execute the current instruction */
    const Ins *now = nullptr;
    unsigned turn = 1;   /* cycles between two instructions of a warp, as warps share four schedulers */
    Ready need = {0, 0}; /* when everything that the current instruction reads is there */
    Ready *made[48] = {nullptr};
    int n_made = 0;
    vector<uint64_t *> words = {}; /* the paths to the words of memory that it writes */
    vector<uint64_t> shared_path = vector<uint64_t>(g_sms ? kShared / 4 : 0);
    Map<uintptr_t, Ready> *touched = nullptr; /* when the last atomic operation on an address was done */

    static void later(Ready &a, const Ready &b) { a = {std::max(a.at, b.at), std::max(a.path, b.path)}; }
    void uses(const Ready &ready) { later(need, ready); }
    void makes(Ready *ready) {
        if (n_made < 48) made[n_made++] = ready;
    }
    void uses_shared(const char *p, size_t n, bool writes) {
        for (size_t word = size_t(p - shared) / 4; g_sms && word < (size_t(p - shared) + n + 3) / 4; word++) {
            if (!writes) uses({0, shared_path[word]});
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
        Ready done = {start + uint64_t(latency(i)), std::max(c.path, need.path) + kStep + fp64};
        while (n_made)
            *made[--n_made] = done;
        for (uint64_t *path : words)
            *path = done.path;
        words.clear();
        if (stores) later(c.stored, {i.code == C_STS ? 0 : done.at, done.path});
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

    /* ---- integers ---- */

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

    /* ---- floats ---- */

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
                uses({last.at, last.path ? last.path - kStep : 0});
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

    /* ---- execution ---- */

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
/* How many blocks the GPU holds: by registers, threads and slots of an SM. */
size_t resident_blocks(const Kernel &k, unsigned threads) {
    unsigned warps = (threads + kLanes - 1) / kLanes, registers = unsigned(k.registers + 7) / 8 * 8 * kLanes * warps;
    bool large = g_arch == 80 || g_arch == 90 || g_arch == 100;
    unsigned most = g_arch == 75 ? 1024 : large ? 2048 : 1536;
    unsigned per_sm = std::min({registers ? 65536 / registers : 16u, most / (kLanes * warps), 16u});
    return size_t(g_sms) * std::max(1u, per_sm);
}
} // namespace

bool sass_launch(const char *name, const KernelDesc *desc, void **args, const GridConfig &config) {
    std::unique_ptr<Kernel> *entry = g_kernels.entries.empty() ? nullptr : g_kernels.get(name);
    if (g_kernels.entries.empty()) return false;
    if (!entry) {
        bug("%s is not in the machine code", name);
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
    vector<uint64_t> slot(g_sms ? std::min(blocks, resident_blocks(k, threads)) : 1); /* when each is free */
    Map<uintptr_t, Ready> touched;
    for (size_t n = 0; n < blocks; n++) {
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
static bool read_file(const string &path, string &text) {
    FILE *f = fopen(path.c_str(), "rb");
    char buffer[65536];
    if (!f) return perror(path.c_str()), false;
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, f)) > 0;)
        text.append(buffer, n);
    fclose(f);
    return true;
}
/* One file more. */
static bool add_code(const string &name) {
    string cubin, text;
    g_file++;
    if (!read_file(name + ".cubin", cubin) || !read_file(name + ".sass", text)) return false;
    if (!read_cubin(cubin)) return fprintf(stderr, "%s.cubin is no cubin\n", name.c_str()), false;
    Parser().run(text);
    return true;
}
extern "C" int hcu_sass_load(const char *name) {
    int usable = 0;
    while (!g_kernels.entries.empty())
        g_kernels.erase(string(g_kernels.entries.back()->key));
    for (const char *end = name; *name; name = *end ? end + 1 : end) {
        end = name + strcspn(name, " ");
        if (end != name && !add_code(string(name, end))) return -1;
    }
    for (auto *e : g_kernels.entries) {
        const Kernel &k = *e->value;
        usable += k.unsupported.empty() && !k.code.empty();
        if (!k.unsupported.empty()) fprintf(stderr, "%s: not known: %s\n", k.name.c_str(), k.unsupported.c_str());
    }
    return usable;
}
extern "C" int hcu_sass_arch(void) { return g_arch; }
extern "C" void hcu_sass_model(int sms) { g_sms = sms; }
extern "C" long hcu_sass_launches(void) { return g_launches; }
extern "C" void hcu_sass_reset(void) {
    g_launches = 0;
    for (auto *e : g_kernels.entries) {
        Kernel &k = *e->value;
        k.launches = k.blocks = 0;
        k.cycles = k.longest = k.longest_fp64 = k.path = 0;
        std::fill(k.issued.begin(), k.issued.end(), 0);
    }
}
extern "C" hcu_sass_count hcu_sass_counts(const char *kernel) {
    hcu_sass_count c = {};
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
        for (size_t i = 0; i < k.code.size(); i++) {
            c.issued += k.issued[i];
            c.pipe[k.code[i].pipe] += k.issued[i];
        }
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
