/* ==== >>lanes ====================================================================================================
   Code that stands once and is compiled for each width of vectors. To stamp it, amp.h defines AMPI_F(name), which puts
   a path's prefix before a name (ampi_scalar_, ampi_sse2_, ampi_avx2_, ampi_avx512_, ampi_neon_), and AMPI_PASS, which
   says which part is wanted, and includes itself; the guards above then skip all the rest. A debugger, a sanitizer and
   the compiler see plain functions and lines.

   ampi_PATH_name is AMPI_F(name): search F(name).

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
#else
#  define AMPI_INNER AMPI_OP
#  define AMPI_OUTER AMPI_TARGET static
#endif

