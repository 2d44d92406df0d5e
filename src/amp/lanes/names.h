/* ==== >>lanes ====================================================================================================
   Code that stands once and is compiled for each width of vectors. To stamp it, amp.h defines AMPI_F(name), which puts
   a path's prefix before a name (ampi_scalar_, ampi_sse2_, ampi_avx2_, ampi_avx512_, ampi_neon_), and AMPI_PASS, which
   says which part is wanted, and includes itself; the guards above then skip all the rest. A debugger, a sanitizer and
   the compiler see plain functions and lines.

   AMPI_FLOATS are AMPI_WIDTH floats, AMPI_WORDS as many 32-bit integers, AMPI_WORDS64 64-bit integers for Philox.
   Names in capitals are operations of the path. Arithmetic is guarded like the scalar operations; division, root,
   larger and smaller are written as instructions, because compilers replace the operators under -ffast-math.
   A loop takes whole vectors first; what is left of n goes through the scalar path (n = 3: all of it), in conversions
   through a padded copy. */
#ifdef AMPI_PASS
#define AMPI_FLOATS      AMPI_F(floats)
#define AMPI_WORDS       AMPI_F(words)
#define AMPI_WORDS64     AMPI_F(words64)
#define AMPI_MASK        AMPI_F(mask)
/* floats */
#define AMPI_SET         AMPI_F(set) /* one number in every lane */
#define AMPI_LOAD        AMPI_F(load)
#define AMPI_STORE       AMPI_F(store)
#define AMPI_ADD         AMPI_F(add)
#define AMPI_SUB         AMPI_F(sub)
#define AMPI_MUL         AMPI_F(mul)
#define AMPI_DIV         AMPI_F(div)
#define AMPI_SQRT        AMPI_F(sqrt)
#define AMPI_NEGATIVE    AMPI_F(negative)
#define AMPI_FMA         AMPI_F(fma)      /* a * b + c; for products only: rounds once, or twice on SSE2 and scalar */
#define AMPI_FUSE        AMPI_F(fuse)     /* a * b + c, rounded once */
#define AMPI_INVERSE     AMPI_F(inverse)  /* 1 / d for d in [1, 2] */
#define AMPI_AT_LEAST    AMPI_F(at_least) /* x, or the limit where x is less; NaN stays */
#define AMPI_AT_MOST     AMPI_F(at_most)
#define AMPI_LARGER      AMPI_F(larger)     /* b (NEON: NaN) when one is NaN */
#define AMPI_SMALLER     AMPI_F(smaller)    /* likewise */
#define AMPI_LARGER_ABS  AMPI_F(larger_abs) /* a >= 0, or |b|; a, where b is NaN, which must be quiet */
#define AMPI_BITS        AMPI_F(bits)
#define AMPI_AS_FLOATS   AMPI_F(as_floats)
/* words; void pointers may be unaligned */
#define AMPI_WORD        AMPI_F(word) /* one number in every lane */
#define AMPI_LOAD_WORDS  AMPI_F(load_words)
#define AMPI_STORE_WORDS AMPI_F(store_words)
#define AMPI_AND         AMPI_F(and_words)
#define AMPI_OR          AMPI_F(or_words)
#define AMPI_XOR         AMPI_F(xor_words)
#define AMPI_ADD_WORDS   AMPI_F(add_words)
#define AMPI_SUB_WORDS   AMPI_F(sub_words)
#define AMPI_SHL         AMPI_F(shl)
#define AMPI_SHR         AMPI_F(shr)
#define AMPI_MIN         AMPI_F(min) /* of signed numbers */
#define AMPI_MAX         AMPI_F(max)
#define AMPI_GREATER     AMPI_F(greater) /* a mask: a > b, signed */
#define AMPI_SELECT      AMPI_F(select)  /* mask ? a : b */
#define AMPI_CHOOSE      AMPI_F(choose)  /* the same of floats; the scalar one may branch */
#define AMPI_ANY         AMPI_F(any)     /* is any bit set? */
/* masks */
#define AMPI_NONZERO     AMPI_F(nonzero) /* where a float is neither 0 nor NaN */
#define AMPI_SAME        AMPI_F(same)    /* of a mask, where floats a == b, so neither is NaN */
#define AMPI_SAME16      AMPI_F(same16)  /* of a mask, where the 16-bit words at a and b are equal */
#define AMPI_ADD_IF      AMPI_F(add_if)  /* to words: one where the mask is set */

#if AMPI_PASS <= AMPI_PASS_UPDATE
#  define AMPI_INNER AMP_INLINE
#endif
#if AMPI_PASS == AMPI_PASS_SCALAR
#  define AMPI_INNER AMPI_ALWAYS
#  define AMPI_OUTER static
#endif
#ifndef AMPI_INNER
#  define AMPI_INNER AMPI_TARGET AMPI_ALWAYS
#  define AMPI_OUTER AMPI_TARGET static
#endif

/* ---- operations that SSE2, AVX2 and AVX-512 spell alike. AMPI_MM(add_ps): _mm_add_ps; AMPI_SI(_and): _mm_and_si128
   ---- */
#if AMPI_PASS == AMPI_PASS_X86
AMPI_INNER AMPI_FLOATS AMPI_F(guard)(AMPI_FLOATS x) {
    __asm__("" : "+" AMPI_REG(x));
    return x;
}
AMPI_INNER AMPI_FLOATS AMPI_F(set)(float x) { return AMPI_MM(set1_ps)(x); }
AMPI_INNER AMPI_FLOATS AMPI_F(load)(const float *p) { return AMPI_MM(loadu_ps)(p); }
AMPI_INNER void AMPI_F(store)(float *p, AMPI_FLOATS x) { AMPI_MM(storeu_ps)(p, x); }
AMPI_INNER AMPI_FLOATS AMPI_F(add)(AMPI_FLOATS a, AMPI_FLOATS b) { return AMPI_F(guard)(AMPI_MM(add_ps)(a, b)); }
AMPI_INNER AMPI_FLOATS AMPI_F(sub)(AMPI_FLOATS a, AMPI_FLOATS b) { return AMPI_F(guard)(AMPI_MM(sub_ps)(a, b)); }
AMPI_INNER AMPI_FLOATS AMPI_F(mul)(AMPI_FLOATS a, AMPI_FLOATS b) { return AMPI_F(guard)(AMPI_MM(mul_ps)(a, b)); }
AMPI_INNER AMPI_WORDS AMPI_F(word)(uint32_t x) { return AMPI_MM(set1_epi32)((int)x); }
AMPI_INNER AMPI_WORDS AMPI_F(load_words)(const void *p) { return AMPI_SI(_loadu)((const AMPI_WORDS *)p); }
AMPI_INNER void AMPI_F(store_words)(void *p, AMPI_WORDS x) { AMPI_SI(_storeu)((AMPI_WORDS *)p, x); }
AMPI_INNER AMPI_WORDS AMPI_F(and_words)(AMPI_WORDS a, AMPI_WORDS b) { return AMPI_SI(_and)(a, b); }
AMPI_INNER AMPI_WORDS AMPI_F(or_words)(AMPI_WORDS a, AMPI_WORDS b) { return AMPI_SI(_or)(a, b); }
AMPI_INNER AMPI_WORDS AMPI_F(xor_words)(AMPI_WORDS a, AMPI_WORDS b) { return AMPI_SI(_xor)(a, b); }
AMPI_INNER AMPI_WORDS AMPI_F(add_words)(AMPI_WORDS a, AMPI_WORDS b) { return AMPI_MM(add_epi32)(a, b); }
AMPI_INNER AMPI_WORDS AMPI_F(sub_words)(AMPI_WORDS a, AMPI_WORDS b) { return AMPI_MM(sub_epi32)(a, b); }
AMPI_INNER AMPI_WORDS64 AMPI_F(add64)(AMPI_WORDS64 a, AMPI_WORDS64 b) { return AMPI_MM(add_epi64)(a, b); }
AMPI_INNER AMPI_WORDS64 AMPI_F(xor64)(AMPI_WORDS64 a, AMPI_WORDS64 b) { return AMPI_SI(_xor)(a, b); }
AMPI_INNER AMPI_WORDS64 AMPI_F(mul32)(AMPI_WORDS64 a, AMPI_WORDS64 b) { return AMPI_MM(mul_epu32)(a, b); }
AMPI_INNER AMPI_WORDS64 AMPI_F(even64)(AMPI_WORDS64 a, AMPI_WORDS64 b) { return AMPI_MM(unpacklo_epi64)(a, b); }
AMPI_INNER AMPI_WORDS64 AMPI_F(odd64)(AMPI_WORDS64 a, AMPI_WORDS64 b) { return AMPI_MM(unpackhi_epi64)(a, b); }
AMPI_INNER AMPI_WORDS64 AMPI_F(high32)(AMPI_WORDS64 a) { return AMPI_MM(srli_epi64)(a, 32); }
AMPI_INNER AMPI_WORDS64 AMPI_F(join32)(AMPI_WORDS64 low, AMPI_WORDS64 high) {
    return AMPI_SI(_or)(AMPI_SI(_and)(low, AMPI_F(word64)(0xffffffffu)), AMPI_MM(slli_epi64)(high, 32));
}
AMPI_INNER void AMPI_F(store64)(void *p, AMPI_WORDS64 x) { AMPI_SI(_storeu)((AMPI_WORDS64 *)p, x); }
#  ifdef AMPI_HAS_VEX /* three operands, and what SSE2 lacks */
AMPI_INNER AMPI_FLOATS AMPI_F(div)(AMPI_FLOATS a, AMPI_FLOATS b) {
    AMPI_FLOATS r;
    __asm__("vdivps %2, %1, %0" : "=" AMPI_REG(r) : AMPI_REG(a), AMPI_REG(b));
    return r;
}
AMPI_INNER AMPI_FLOATS AMPI_F(sqrt)(AMPI_FLOATS a) {
    AMPI_FLOATS r;
    __asm__("vsqrtps %1, %0" : "=" AMPI_REG(r) : AMPI_REG(a));
    return r;
}
AMPI_INNER AMPI_FLOATS AMPI_F(larger)(AMPI_FLOATS a, AMPI_FLOATS b) {
    AMPI_FLOATS r;
    __asm__("vmaxps %2, %1, %0" : "=" AMPI_REG(r) : AMPI_REG(a), AMPI_REG(b));
    return r;
}
AMPI_INNER AMPI_FLOATS AMPI_F(smaller)(AMPI_FLOATS a, AMPI_FLOATS b) {
    AMPI_FLOATS r;
    __asm__("vminps %2, %1, %0" : "=" AMPI_REG(r) : AMPI_REG(a), AMPI_REG(b));
    return r;
}
AMPI_INNER AMPI_FLOATS AMPI_F(fuse)(AMPI_FLOATS a, AMPI_FLOATS b, AMPI_FLOATS c) {
    return AMPI_F(guard)(AMPI_MM(fmadd_ps)(a, b, c));
}
AMPI_INNER AMPI_WORDS AMPI_F(min)(AMPI_WORDS a, AMPI_WORDS b) { return AMPI_MM(min_epi32)(a, b); }
AMPI_INNER AMPI_WORDS AMPI_F(max)(AMPI_WORDS a, AMPI_WORDS b) { return AMPI_MM(max_epi32)(a, b); }
AMPI_INNER AMPI_WORDS AMPI_F(shl_each)(AMPI_WORDS a, AMPI_WORDS n) { return AMPI_MM(sllv_epi32)(a, n); }
AMPI_INNER AMPI_WORDS AMPI_F(shr_each)(AMPI_WORDS a, AMPI_WORDS n) { return AMPI_MM(srlv_epi32)(a, n); }
#  endif
#endif /* AMPI_PASS_X86 */

/* ---- operations made of operations; the scalar ones branch instead ---- */
#if AMPI_PASS == AMPI_PASS_VECTOR
AMPI_INNER AMPI_FLOATS AMPI_F(negative)(AMPI_FLOATS x) {
    return AMPI_AS_FLOATS(AMPI_XOR(AMPI_BITS(x), AMPI_WORD(0x80000000u)));
}
AMPI_INNER AMPI_FLOATS AMPI_F(choose)(AMPI_MASK m, AMPI_FLOATS a, AMPI_FLOATS b) {
    return AMPI_AS_FLOATS(AMPI_SELECT(m, AMPI_BITS(a), AMPI_BITS(b)));
}
AMPI_INNER AMPI_FLOATS AMPI_F(inverse)(AMPI_FLOATS d) { return AMPI_DIV(AMPI_SET(1.0f), d); }
AMPI_INNER AMPI_FLOATS AMPI_F(at_least)(AMPI_FLOATS x, AMPI_FLOATS limit) { return AMPI_LARGER(limit, x); }
AMPI_INNER AMPI_FLOATS AMPI_F(at_most)(AMPI_FLOATS x, AMPI_FLOATS limit) { return AMPI_SMALLER(limit, x); }
AMPI_INNER AMPI_FLOATS AMPI_F(magic_add)(AMPI_FLOATS a, AMPI_FLOATS b) { return AMPI_ADD(a, b); }
AMPI_INNER AMPI_FLOATS AMPI_F(magic_sub)(AMPI_FLOATS a, AMPI_FLOATS b) { return AMPI_SUB(a, b); }
AMPI_INNER AMPI_FLOATS AMPI_F(clamp)(AMPI_FLOATS x, AMPI_FLOATS limit) { /* NaN stays */
    return AMPI_LARGER(AMPI_SUB(AMPI_SET(0.0f), limit), AMPI_SMALLER(limit, x));
}
/* x * sign(s), x >= 0; 0 for s = 0; NaN for NaN */
AMPI_INNER AMPI_FLOATS AMPI_F(with_sign)(AMPI_FLOATS x, AMPI_FLOATS s) {
    AMPI_WORDS u = AMPI_BITS(s), size = AMPI_AND(u, AMPI_WORD(0x7fffffffu));
    AMPI_WORDS r = AMPI_OR(AMPI_BITS(x), AMPI_AND(u, AMPI_WORD(0x80000000u)));
    r = AMPI_SELECT(AMPI_GREATER(size, AMPI_WORD(0)), r, AMPI_WORD(0));
    return AMPI_AS_FLOATS(AMPI_SELECT(AMPI_GREATER(size, AMPI_WORD(0x7f800000u)), u, r));
}
#endif

