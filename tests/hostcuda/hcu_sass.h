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

enum Code : unsigned char {
#define OPCODE(name, pipe) C_##name,
#include "hcu_sass_names.inc"
#undef OPCODE
};
enum Modifier : unsigned char {
#define MODIFIER(name) MOD_##name,
#include "hcu_sass_names.inc"
#undef MODIFIER
    MOD_COUNT
};
const struct {
    const char *name;
    Code code;
    hcu_pipe pipe;
} kCodes[] = {
#define OPCODE(name, pipe) {#name, C_##name, HCU_PIPE_##pipe},
#include "hcu_sass_names.inc"
#undef OPCODE
};
const char *const kModifiers[] = {
#define MODIFIER(name) #name,
#include "hcu_sass_names.inc"
#undef MODIFIER
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
    size_t shared = 0;           /* bytes of shared memory of a block */
    long launches = 0, blocks = 0;
    size_t grid = 0;                     /* blocks of its largest launch, and their threads */
    unsigned threads = 0, under_way = 0; /* under_way: most bytes that a warp had asked memory for and not used */
    uint64_t cycles = 0, longest = 0, longest_fp64 = 0, path = 0; /* of hcu_sass_model */
};
extern Map<string, std::unique_ptr<Kernel>> &g_kernels;
extern long g_launches;
extern int g_arch, g_sms;      /* g_sms: 0 while no chain is counted */
extern int g_partial, g_grids; /* see hcu_sass_partial, hcu_sass_grids */

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
