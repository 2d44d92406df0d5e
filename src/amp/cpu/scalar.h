/* ==== >>cpu-paths ================================================================================================
   How each path spells an operation, and nothing else: names and meanings stand at >>lanes, and so does all that is
   made of operations. A path defines AMPI_F and what it has, stamps the operations that all paths of vectors spell
   alike (AMPI_PASS_ALIKE), adds its own, and stamps the rest, which ends these definitions.
   tests: tests/fingerprint.c, tests/exhaustive.c, tests/test_arrays.c, tests/test_step.c, tests/test_products.c

   AMPI_WIDTH      floats of a vector
   AMPI_TARGET     the attribute of functions that use its instructions
   AMPI_TILES(X)   heights of its tiles of products, falling
   AMPI_REG        asm's letter for a register of vectors; AMPI_FIRST: for the first of two operands
   AMPI_ASM1, 2    an instruction of one operand, of two; AMPI_EQUAL: its name for a == b
   AMPI_MM(name)   x86: the intrinsic _mm_name of this width
   AMPI_HAS_...    FMA: AMPI_FMA rounds once. SHIFT_EACH: shl_each and shr_each. SOME: load_some, store_some.
                   MASKS: masks are no vectors. HALVES: F16 by instructions; HALVES_OF_F8: FP8 by way of them.
                   STREAM: stream64. PACK4: pack4 */
#define AMPI_OP AMPI_TARGET AMPI_ALWAYS

/* ---- scalar: portable C. What rules for one element need stands at >>backend already ---- */
#define AMPI_F(name) ampi_scalar_##name
#define AMPI_TARGET
#define AMPI_WIDTH    1u
#define AMPI_TILES(X) X(4)
#define AMPI_HAS_PACK4
/* clang-format off */
AMPI_OP float ampi_scalar_load(const float *p)           { return *p; }
AMPI_OP void  ampi_scalar_store(float *p, float x)       { *p = x; }
AMPI_OP float ampi_scalar_fma(float a, float b, float c) { return a * b + c; }
AMPI_OP float ampi_scalar_larger(float a, float b)       { return a > b ? a : b; }

AMPI_OP int      ampi_scalar_any(uint32_t a)                { return a != 0; }
AMPI_OP int      ampi_scalar_nonzero(float x)               { return (ampi_bits(x) & 0x7fffffffu) - 1u < 0x7f800000u; }
AMPI_OP uint32_t ampi_scalar_add_if(uint32_t sum, int mask) { return sum + (uint32_t)mask; }

AMPI_OP uint32_t ampi_scalar_load_words(const void *p)            { uint32_t x; memcpy(&x, p, sizeof x); return x; }
AMPI_OP uint32_t ampi_scalar_load16(const void *p)                { uint16_t h; memcpy(&h, p, sizeof h); return h; }
AMPI_OP uint32_t ampi_scalar_load8(const void *p)                 { return *(const uint8_t *)p; }
AMPI_OP void     ampi_scalar_store_words(uint32_t *p, uint32_t x) { *p = x; }
AMPI_OP void     ampi_scalar_done(void)                           {}

AMPI_OP int ampi_scalar_same16(int mask, const void *a, const void *b) { return mask & (memcmp(a, b, 2) == 0); }

/* These two without a guard: compilers are to vectorise loops of them. */
AMPI_OP float ampi_scalar_magic_add(float a, float b) { return a + b; }
AMPI_OP float ampi_scalar_magic_sub(float a, float b) { return a - b; }
/* clang-format on */
AMPI_OP float ampi_scalar_larger_abs(float a, float b) {
    return ampi_larger(a, ampi_float(ampi_bits(b) & 0x7fffffffu));
}
AMPI_OP int ampi_scalar_same(int mask, float a, float b) {
    return mask & (ampi_bits(a) == ampi_bits(b)) & !amp_is_nan(b);
}
AMPI_OP void ampi_scalar_store8(uint8_t *p, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    p[0] = (uint8_t)a;
    p[1] = (uint8_t)b;
    p[2] = (uint8_t)c;
    p[3] = (uint8_t)d;
}
#define AMPI_PASS AMPI_PASS_SCALAR
#include AMP_SELF
