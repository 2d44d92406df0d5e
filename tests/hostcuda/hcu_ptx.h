/* hcu_ptx.h - internal: a module of PTX as hcu_ptx_text.cpp reads it and hcu_ptx.cpp runs it: types, opcodes, operands,
 * instructions, kernels. */
#ifndef HCU_PTX_H
#define HCU_PTX_H
#include "hcu_core.h"
#include <memory>
#include <string>

namespace hcu {
namespace ptx {
using std::string;
using std::vector;

/* ---- program ----------------------------------------------------------------------------------------------------- */

enum Type : unsigned char {
    NONE,
    U8,
    S8,
    B8,
    U16,
    S16,
    B16,
    U32,
    S32,
    B32,
    U64,
    S64,
    B64,
    F16,
    F16X2,
    BF16,
    BF16X2,
    E4M3X2,
    E5M2X2,
    F32,
    F64,
    PRED
};
inline int bytes_of(Type t) {
    switch (t) {
    case NONE: return 0;
    case U8:
    case S8:
    case B8: return 1;
    case U16:
    case S16:
    case B16:
    case F16:
    case BF16:
    case E4M3X2:
    case E5M2X2: return 2;
    case U64:
    case S64:
    case B64:
    case F64: return 8;
    default: return 4;
    }
}
inline bool is_signed(Type t) { return t == S8 || t == S16 || t == S32 || t == S64; }
inline bool is_float(Type t) { return t >= F16 && t <= F64; }

enum Code : unsigned char {
    MOV,
    LD,
    ST,
    CVTA,
    CVT,
    ADD,
    SUB,
    MUL,
    MAD,
    FMA,
    DIV,
    REM,
    SQRT,
    RCP,
    RSQRT,
    EX2,
    LG2,
    SIN,
    COS,
    TANH,
    MIN,
    MAX,
    ABS,
    NEG,
    COPYSIGN,
    AND,
    OR,
    XOR,
    NOT,
    LOP3,
    SHL,
    SHR,
    SHF,
    SETP,
    SELP,
    TESTP,
    BRA,
    BRX,
    RET,
    BAR,
    SHFL,
    VOTE,
    MATCH,
    REDUX,
    ACTIVEMASK,
    ATOM,
    FENCE,
    POPC,
    CLZ,
    BFIND,
    BREV,
    BFE,
    BFI,
    PRMT,
    TRAP,
    NOP,
    UNKNOWN
};

/* Modifiers that change what an instruction does, decoded once.  Words of one family exclude each other. */
enum Modifier : uint64_t {
    M_WIDE = 1,
    M_HI = 2,
    M_FTZ = 4,
    M_SAT = 8,
    M_RNI = 16,
    M_RZI = 32,
    M_RMI = 64,
    M_RPI = 128,
    M_TO = 256,
    M_CC = 512,
    M_CARRY_IN = 1024,
    M_RED = 2048,
    M_WARP = 4096,
    M_LEFT = 8192,
    M_RIGHT = 16384,
    M_WRAP = 32768,
    M_ALL = 65536,
    M_ANY = 1 << 17,
    M_BALLOT = 1 << 18,
    M_UP = 1 << 19,
    M_DOWN = 1 << 20,
    M_BFLY = 1 << 21,
    M_NO_DST = 1 << 22,
    M_SHIFT_AMOUNT = 1 << 23,
    M_NAN = 1 << 24
};
/* Words that need no decoding here: hints, scopes and orders that one OS thread satisfies by itself, exact forms of
 * what is computed exactly anyway.  Any other word makes the instruction unknown. */
const char *const kIgnored[] = {"rn", "satfinite", "lo", "uni", "sync", "aligned", "approx", "full", "global", "shared",
    "shared::cta", "local", "param", "param::entry", "const", "v2", "v4", "v8", "nc", "ca", "cg", "cs", "lu", "cv",
    "wb", "wt", "volatile", "relaxed", "acquire", "release", "acq_rel", "sc", "gpu", "cta", "sys", "gl", "weak", "cta",
    "idx", "b1", "L1::no_allocate", "L1::evict_first", "L1::evict_last", "L1::evict_normal", "L2::64B", "L2::128B",
    "L2::256B", "clamp", "x", "or", "and", "xor", "popc", "add", "min", "max", "exch", "cas", "inc", "dec", "noftz",
    "proxy", "async", "launch_dependents", "wait", "idx", "noinc"};
enum Word : unsigned char {
    W_NONE,
    W_EQ,
    W_NE,
    W_LT,
    W_LE,
    W_GT,
    W_GE,
    W_NUM,
    W_NAN,
    W_ADD,
    W_MIN,
    W_MAX,
    W_AND,
    W_OR,
    W_XOR,
    W_EXCH,
    W_CAS,
    W_INC,
    W_DEC,
    W_POPC,
    W_FINITE,
    W_INFINITE,
    W_NUMBER,
    W_NOTANUMBER,
    W_NORMAL,
    W_SUBNORMAL
};

enum OperandKind : unsigned char { O_REG, O_IMM, O_SPECIAL, O_ADDRESS, O_VECTOR, O_SINK, O_SYMBOL };
enum Special : unsigned char {
    S_TID,
    S_NTID,
    S_CTAID,
    S_NCTAID,
    S_LANE,
    S_WARP,
    S_LANEMASK_LT,
    S_LANEMASK_LE,
    S_LANEMASK_EQ,
    S_LANEMASK_GE,
    S_LANEMASK_GT,
    S_CLOCK
};
struct Operand {
    OperandKind kind = O_IMM;
    bool negated = false;
    Special special = S_TID;
    unsigned char component = 0; /* of a special register: x y z */
    int reg = -1;                /* register, or base of an address (-1: absolute) */
    uint64_t value = 0;          /* immediate, symbol's offset, address offset */
    vector<Operand> parts;
};
struct Ins {
    Code code = UNKNOWN;
    Type t = NONE, t2 = NONE;
    Word word = W_NONE, combine = W_NONE; /* comparison or atomic; setp's second word */
    bool unordered = false, predicate_negated = false;
    char space = 'g'; /* g global, s shared, l local, p param, c const */
    int vec = 1, predicate = -1, line = 0;
    uint64_t flags = 0;
    vector<Operand> o;
    vector<int> targets;
    string text;
    bool has(uint64_t f) const { return (flags & f) != 0; }
};
struct Variable {
    size_t offset, bytes;
    char space;
};
struct Parameter {
    string name;
    size_t offset, bytes;
};
struct Kernel {
    string name, unsupported;
    vector<Ins> code;
    vector<Parameter> params;
    size_t param_bytes = 0, registers = 0, shared = 0, local = 0;
    Map<string, Variable> variables;
};
constexpr uint64_t kDynamic = uint64_t(1) << 20; /* where the dynamic array lies in the shared window */
extern Map<string, std::unique_ptr<Kernel>> &g_kernels;
extern string &g_file;

} // namespace ptx
} // namespace hcu
#endif
