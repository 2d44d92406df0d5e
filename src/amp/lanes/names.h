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
   through a padded copy.   tests: tests/test_arrays.c, tests/test_step.c, tests/test_modes.c, tests/fingerprint.c */
#ifdef AMPI_PASS
#define AMPI_FLOATS     AMPI_F(floats)
#define AMPI_WORDS      AMPI_F(words)
#define AMPI_WORDS64    AMPI_F(words64)
#define AMPI_U32        AMPI_F(u32) /* words, as the language counts with them */
#define AMPI_MASK       AMPI_F(mask)
/* floats */
#define AMPI_SET        AMPI_F(set) /* one number in every lane */
#define AMPI_LOAD       AMPI_F(load)
#define AMPI_STORE      AMPI_F(store)
#define AMPI_ADD        AMPI_F(add)
#define AMPI_SUB        AMPI_F(sub)
#define AMPI_MUL        AMPI_F(mul)
#define AMPI_DIV        AMPI_F(div)
#define AMPI_SQRT       AMPI_F(sqrt)
#define AMPI_ROOT       AMPI_F(root) /* the same, of a number in the middle of the range */
#define AMPI_NEGATIVE   AMPI_F(negative)
#define AMPI_MAGNITUDE  AMPI_F(magnitude) /* |x|; NaN stays one */
#define AMPI_FMA        AMPI_F(fma)       /* a * b + c; for products only: rounds once, or twice on SSE2 and scalar */
#define AMPI_FUSE       AMPI_F(fuse)      /* a * b + c, rounded once */
#define AMPI_INVERSE    AMPI_F(inverse)   /* 1 / d for d in [1, 2] */
#define AMPI_AT_LEAST   AMPI_F(at_least)  /* x, or the limit where x is less; NaN stays */
#define AMPI_AT_MOST    AMPI_F(at_most)
#define AMPI_LARGER     AMPI_F(larger)     /* b (NEON: NaN) when one is NaN */
#define AMPI_SMALLER    AMPI_F(smaller)    /* likewise */
#define AMPI_LARGER_ABS AMPI_F(larger_abs) /* a >= 0, or |b|; a, where b is NaN, which must be quiet */
#if AMPI_PASS == AMPI_PASS_VECTOR
#  define AMPI_BITS(x)      ((AMPI_WORDS)(x))
#  define AMPI_AS_FLOATS(x) ((AMPI_FLOATS)(x))
#else
#  define AMPI_BITS(x)      ampi_bits(x)
#  define AMPI_AS_FLOATS(x) ampi_float(x)
#endif
/* words; void pointers may be unaligned */
#define AMPI_WORD            AMPI_F(word) /* one number in every lane */
#define AMPI_LOAD_WORDS      AMPI_F(load_words)
#define AMPI_STORE_WORDS     AMPI_F(store_words)
/* the language's operators, of vectors, too: no functions, of which compilers would inline thousands */
#define AMPI_AND(a, b)       ((a) & (b))
#define AMPI_OR(a, b)        ((a) | (b))
#define AMPI_XOR(a, b)       ((a) ^ (b))
#define AMPI_ADD_WORDS(a, b) ((AMPI_WORDS)((AMPI_U32)(a) + (AMPI_U32)(b)))
#define AMPI_SUB_WORDS(a, b) ((AMPI_WORDS)((AMPI_U32)(a) - (AMPI_U32)(b)))
#define AMPI_SHL(a, n)       ((AMPI_WORDS)((AMPI_U32)(a) << (uint32_t)(n)))
#define AMPI_SHR(a, n)       ((AMPI_WORDS)((AMPI_U32)(a) >> (uint32_t)(n)))
#define AMPI_MIN             AMPI_F(min) /* of signed numbers */
#define AMPI_MAX             AMPI_F(max)
#define AMPI_GREATER         AMPI_F(greater) /* a mask: a > b, signed */
#define AMPI_SELECT          AMPI_F(select)  /* mask ? a : b */
#define AMPI_CHOOSE          AMPI_F(choose)  /* the same of floats; the scalar one may branch */
#define AMPI_ANY             AMPI_F(any)     /* is any bit set? */
/* masks */
#define AMPI_NONZERO         AMPI_F(nonzero) /* where a float is neither 0 nor NaN */
#define AMPI_SAME            AMPI_F(same)    /* of a mask, where floats a == b, so neither is NaN */
#define AMPI_SAME16          AMPI_F(same16)  /* of a mask, where the 16-bit words at a and b are equal */
#define AMPI_ADD_IF          AMPI_F(add_if)  /* to words: one where the mask is set */

#if AMPI_PASS <= AMPI_PASS_UPDATE
#  define AMPI_INNER AMP_INLINE
#else
#  define AMPI_INNER AMPI_OP
#  define AMPI_OUTER AMPI_TARGET static
#endif

/* ---- operations that all paths of vectors spell alike: by the vectors that gcc and clang have in the language, where
   they give the same instructions whatever the flags; the others by name ---- */
#if AMPI_PASS == AMPI_PASS_ALIKE
typedef AMPI_FLOATS AMPI_F(floats_at) __attribute__((__aligned__(1), __may_alias__));
typedef AMPI_WORDS AMPI_F(words_at) __attribute__((__aligned__(1), __may_alias__));
typedef AMPI_WORDS64 AMPI_F(words64_at) __attribute__((__aligned__(1), __may_alias__));
typedef uint32_t AMPI_F(u32) __attribute__((__vector_size__(4u * AMPI_WIDTH)));
typedef int32_t AMPI_F(i32) __attribute__((__vector_size__(4u * AMPI_WIDTH)));
typedef uint64_t AMPI_F(u64) __attribute__((__vector_size__(4u * AMPI_WIDTH)));
#  define AMPI_I32 AMPI_F(i32)
#  define AMPI_U64 AMPI_F(u64)
AMPI_OP AMPI_FLOATS AMPI_F(guard)(AMPI_FLOATS x) {
    __asm__("" : "+" AMPI_REG(x));
    return x;
}
/* clang-format off */
AMPI_OP AMPI_FLOATS AMPI_F(load)(const float *p)              { return *(const AMPI_F(floats_at) *)p; }
AMPI_OP void        AMPI_F(store)(float *p, AMPI_FLOATS x)    { *(AMPI_F(floats_at) *)p = x; }
AMPI_OP AMPI_FLOATS AMPI_F(add)(AMPI_FLOATS a, AMPI_FLOATS b) { return AMPI_F(guard)(a + b); }
AMPI_OP AMPI_FLOATS AMPI_F(sub)(AMPI_FLOATS a, AMPI_FLOATS b) { return AMPI_F(guard)(a - b); }
AMPI_OP AMPI_FLOATS AMPI_F(mul)(AMPI_FLOATS a, AMPI_FLOATS b) { return AMPI_F(guard)(a * b); }
AMPI_OP AMPI_FLOATS AMPI_F(size)(AMPI_FLOATS x)               { return (AMPI_FLOATS)((AMPI_U32)x & 0x7fffffffu); }

AMPI_OP AMPI_WORDS AMPI_F(load_words)(const void *p)             { return *(const AMPI_F(words_at) *)p; }
AMPI_OP void       AMPI_F(store_words)(void *p, AMPI_WORDS x)    { *(AMPI_F(words_at) *)p = x; }

AMPI_OP AMPI_WORDS64 AMPI_F(add64)(AMPI_WORDS64 a, AMPI_WORDS64 b) { return (AMPI_WORDS64)((AMPI_U64)a + (AMPI_U64)b); }
AMPI_OP AMPI_WORDS64 AMPI_F(xor64)(AMPI_WORDS64 a, AMPI_WORDS64 b) { return a ^ b; }
AMPI_OP AMPI_WORDS64 AMPI_F(low32)(AMPI_WORDS64 a)                 { return (AMPI_WORDS64)((AMPI_U64)a & 0xffffffffu); }
AMPI_OP AMPI_WORDS64 AMPI_F(high32)(AMPI_WORDS64 a)                { return (AMPI_WORDS64)((AMPI_U64)a >> 32); }
AMPI_OP AMPI_WORDS64 AMPI_F(up32)(AMPI_WORDS64 a)                  { return (AMPI_WORDS64)((AMPI_U64)a << 32); }
AMPI_OP void         AMPI_F(store64)(void *p, AMPI_WORDS64 x)      { *(AMPI_F(words64_at) *)p = x; }

AMPI_OP AMPI_WORDS64 AMPI_F(join32)(AMPI_WORDS64 a, AMPI_WORDS64 b) { return AMPI_F(low32)(a) | AMPI_F(up32)(b); }
/* clang-format on */
#  ifndef AMPI_HAS_MASKS
AMPI_OP AMPI_MASK AMPI_F(greater)(AMPI_WORDS a, AMPI_WORDS b) { return (AMPI_MASK)((AMPI_I32)a > (AMPI_I32)b); }
AMPI_OP AMPI_WORDS AMPI_F(add_if)(AMPI_WORDS sum, AMPI_MASK m) { return (AMPI_WORDS)((AMPI_U32)sum - (AMPI_U32)m); }
#  endif
/* By name: compilers replace the operators under -ffast-math. */
#  define AMPI_BINARY(name, op) \
    AMPI_OP AMPI_FLOATS AMPI_F(name)(AMPI_FLOATS a, AMPI_FLOATS b) { \
        AMPI_FLOATS r; \
        __asm__(AMPI_ASM2(op) : "=" AMPI_REG(r) : AMPI_FIRST(a), AMPI_REG(b)); \
        return r; \
    }
AMPI_BINARY(div, "div")
AMPI_BINARY(larger, "max")
AMPI_BINARY(smaller, "min")
AMPI_BINARY(plus, "add")
#  ifndef AMPI_HAS_MASKS
AMPI_BINARY(equal, AMPI_EQUAL)
#    ifdef AMPI_MM
AMPI_BINARY(less, "cmplt")
AMPI_OP AMPI_MASK AMPI_F(nonzero)(AMPI_FLOATS x) { /* not cmpneq: valgrind takes NaN for unequal in each form */
    return (AMPI_MASK)AMPI_F(less)(AMPI_MM(setzero_ps)(), AMPI_F(size)(x));
}
#    endif
AMPI_OP AMPI_MASK AMPI_F(same)(AMPI_MASK mask, AMPI_FLOATS a, AMPI_FLOATS b) {
    return mask & (AMPI_MASK)AMPI_F(equal)(a, b);
}
#  endif
#  undef AMPI_BINARY
AMPI_OP AMPI_FLOATS AMPI_F(sqrt)(AMPI_FLOATS a) {
    AMPI_FLOATS r;
    __asm__(AMPI_ASM1("sqrt") : "=" AMPI_REG(r) : AMPI_REG(a));
    return r;
}
#  ifdef AMPI_MM /* intrinsics that SSE2, AVX2 and AVX-512 have alike: AMPI_MM(set1_ps) is _mm_set1_ps */
/* clang-format off */
AMPI_OP AMPI_FLOATS  AMPI_F(set)(float x)                           { return AMPI_MM(set1_ps)(x); }
AMPI_OP AMPI_WORDS   AMPI_F(word)(uint32_t x)                       { return AMPI_MM(set1_epi32)((int)x); }
AMPI_OP AMPI_WORDS64 AMPI_F(mul32)(AMPI_WORDS64 a, AMPI_WORDS64 b)  { return AMPI_MM(mul_epu32)(a, b); }
AMPI_OP AMPI_WORDS64 AMPI_F(even64)(AMPI_WORDS64 a, AMPI_WORDS64 b) { return AMPI_MM(unpacklo_epi64)(a, b); }
AMPI_OP AMPI_WORDS64 AMPI_F(odd64)(AMPI_WORDS64 a, AMPI_WORDS64 b)  { return AMPI_MM(unpackhi_epi64)(a, b); }
#    ifdef AMPI_HAS_SHIFT_EACH /* what SSE2 lacks */
AMPI_OP AMPI_WORDS AMPI_F(min)(AMPI_WORDS a, AMPI_WORDS b)      { return AMPI_MM(min_epi32)(a, b); }
AMPI_OP AMPI_WORDS AMPI_F(max)(AMPI_WORDS a, AMPI_WORDS b)      { return AMPI_MM(max_epi32)(a, b); }
AMPI_OP AMPI_WORDS AMPI_F(shl_each)(AMPI_WORDS a, AMPI_WORDS n) { return AMPI_MM(sllv_epi32)(a, n); }
AMPI_OP AMPI_WORDS AMPI_F(shr_each)(AMPI_WORDS a, AMPI_WORDS n) { return AMPI_MM(srlv_epi32)(a, n); }
#    endif
/* clang-format on */
#    ifdef AMPI_HAS_FMA
AMPI_OP AMPI_FLOATS AMPI_F(fuse)(AMPI_FLOATS a, AMPI_FLOATS b, AMPI_FLOATS c) {
    return AMPI_F(guard)(AMPI_MM(fmadd_ps)(a, b, c));
}
#    endif
#  endif
#  undef AMPI_I32
#  undef AMPI_U64
#endif /* AMPI_PASS_ALIKE */

/* ---- operations made of operations; the scalar ones branch instead ---- */
#if AMPI_PASS == AMPI_PASS_VECTOR
AMPI_INNER AMPI_FLOATS AMPI_F(negative)(AMPI_FLOATS x) {
    return AMPI_AS_FLOATS(AMPI_XOR(AMPI_BITS(x), AMPI_WORD(0x80000000u)));
}
AMPI_INNER AMPI_FLOATS AMPI_F(magnitude)(AMPI_FLOATS x) {
    return AMPI_AS_FLOATS(AMPI_AND(AMPI_BITS(x), AMPI_WORD(0x7fffffffu)));
}
AMPI_INNER AMPI_FLOATS AMPI_F(choose)(AMPI_MASK m, AMPI_FLOATS a, AMPI_FLOATS b) {
    return AMPI_AS_FLOATS(AMPI_SELECT(m, AMPI_BITS(a), AMPI_BITS(b)));
}
AMPI_INNER AMPI_FLOATS AMPI_F(root)(AMPI_FLOATS x) { return AMPI_SQRT(x); }
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
/* F16, by instructions. They help FP8 too: an E5M2 byte is the upper byte of a half; E4M3 moved up by 7 is a half 256
   times too small, its NaN apart. */
#  ifdef AMPI_HAS_HALVES
typedef AMPI_F(halves) AMPI_F(halves_at) __attribute__((__aligned__(1), __may_alias__));
AMPI_INNER AMPI_WORDS AMPI_F(load_halves)(const void *p) { return AMPI_F(from_halves)(*(const AMPI_F(halves_at) *)p); }
AMPI_INNER void AMPI_F(store_two_halves)(char *p, const char *s) {
    AMPI_F(halves) a = AMPI_F(to_halves)(AMPI_LOAD_WORDS(s));
    AMPI_F(halves) b = AMPI_F(to_halves)(AMPI_LOAD_WORDS(s + 4u * AMPI_WIDTH));
    __asm__("" : "+" AMPI_REG(a)); /* in registers: the forms that convert into memory are slow on some machines */
    __asm__("" : "+" AMPI_REG(b));
    memcpy(p, &a, sizeof a);
    memcpy(p + sizeof a, &b, sizeof b);
}
AMPI_INNER void AMPI_F(store_halves)(char *p, const char *s) {
    AMPI_F(store_two_halves)(p, s);
    AMPI_F(store_two_halves)(p + 4u * AMPI_WIDTH, s + 8u * AMPI_WIDTH);
}
#  endif
#  ifdef AMPI_HAS_HALVES_OF_F8
typedef uint16_t AMPI_F(u16) __attribute__((__vector_size__(2u * AMPI_WIDTH)));
AMPI_INNER AMPI_WORDS AMPI_F(load_e5m2)(const void *p) {
    return AMPI_F(from_halves)((AMPI_F(halves))((AMPI_F(u16))AMPI_F(load_bytes)(p) << 8));
}
AMPI_INNER AMPI_WORDS AMPI_F(load_e4m3)(const void *p) {
    AMPI_F(u16) h = (AMPI_F(u16))AMPI_F(load_bytes)(p) << 7 & 0xbf80, nan = (h + 0x80) & 0x4000;
    AMPI_WORDS tiny = AMPI_F(from_halves)((AMPI_F(halves))(h | nan));
    return AMPI_BITS(AMPI_MUL(AMPI_AS_FLOATS(tiny), AMPI_SET(256.0f)));
}
#  endif
#endif

