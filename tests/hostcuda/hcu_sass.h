/* hcu_sass.h - internal: a program of machine code as hcu_sass_text.cpp reads it and hcu_sass.cpp runs it: opcodes,
 * operands, instructions, kernels. */
#ifndef HCU_SASS_H
#define HCU_SASS_H
#include "hcu_core.h"
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

namespace hcu {
namespace sass {
using std::string;
using std::vector;

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
    X(MOV) X(SHL) X(IADD) X(COLLECTIVE) X(U16x2) X(RN)
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
extern Map<string, std::unique_ptr<Kernel>> &g_kernels;
extern long g_launches;
extern int g_arch, g_sms; /* g_sms: 0 while no chain is counted */

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

} // namespace sass
} // namespace hcu
#endif
