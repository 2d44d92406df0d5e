#if AMPI_PASS == AMPI_PASS_SCALAR || AMPI_PASS == AMPI_PASS_VECTOR
/* ---- conversions: nearest even without a branch. Normal numbers by integers; below them the addition of a number
   whose last place is the target's smallest subnormal rounds. The dtype is a constant wherever these are inlined.
   tests: tests/test_arrays.c, tests/exhaustive.c ---- */
AMPI_INNER AMPI_WORDS AMPI_F(finish)(AMPI_WORDS x, AMPI_WORDS a, AMPI_WORDS r, amp_dtype t) { /* NaN and sign; a: |x| */
    const ampi_format f = ampi_format_of(t);
    AMPI_WORDS nan = AMPI_WORD(f.nan), sign;
    if (ampi_has_inf(f)) {
        AMPI_WORDS payload = AMPI_AND(AMPI_SHR(a, 23u - f.mant), AMPI_WORD(f.payload));
        nan = AMPI_OR(nan, payload);
    }
    r = AMPI_SELECT(AMPI_GREATER(a, AMPI_WORD(0x7f800000u)), nan, r);
    sign = AMPI_AND(AMPI_SHR(x, 31u - f.sign), AMPI_WORD(1u << f.sign));
    return AMPI_OR(r, sign);
}
AMPI_INNER AMPI_WORDS AMPI_F(encode)(AMPI_WORDS x, amp_dtype t, uint32_t cap) { /* cap: what overflow becomes */
    const ampi_format f = ampi_format_of(t);
    const uint32_t shift = 23u - f.mant, magic = (f.emin + shift) << 23, bias = (f.emin - 1u) << 23;
    AMPI_WORDS a = AMPI_AND(x, AMPI_WORD(0x7fffffffu)), r, tiny;
    if (t == AMP_BF16 && cap == f.over) {
        r = AMPI_ADD_WORDS(x, AMPI_ADD_WORDS(AMPI_AND(AMPI_SHR(x, 16), AMPI_WORD(1)), AMPI_WORD(0x7fffu)));
        r = AMPI_SELECT(AMPI_GREATER(a, AMPI_WORD(0x7f800000u)), AMPI_OR(x, AMPI_WORD(0x400000u)), r);
        return AMPI_SHR(r, 16);
    }
    r = AMPI_ADD_WORDS(a, AMPI_WORD((1u << (shift - 1u)) - 1u - bias));
    r = AMPI_ADD_WORDS(r, AMPI_AND(AMPI_SHR(a, shift), AMPI_WORD(1)));
    r = AMPI_SHR(r, shift);
    if (t != AMP_BF16) {
        tiny = AMPI_BITS(AMPI_F(magic_add)(AMPI_AS_FLOATS(a), AMPI_AS_FLOATS(AMPI_WORD(magic))));
        tiny = AMPI_SUB_WORDS(tiny, AMPI_WORD(magic));
        r = AMPI_SELECT(AMPI_GREATER(AMPI_WORD(f.emin << 23), a), tiny, r);
    }
    r = AMPI_MIN(r, AMPI_WORD(cap));
    if (cap == f.nan) return AMPI_OR(r, AMPI_AND(AMPI_SHR(x, 24), AMPI_WORD(0x80u)));
    return AMPI_F(finish)(x, a, r, t);
}
#  if AMPI_PASS == AMPI_PASS_VECTOR
/* BF16: x + -0 is x, bit for bit, but that a signalling NaN becomes quiet: one operation. An addition takes subnormals
   in its stride where a multiplication by 1 does not. By name, since compilers know, too, that it is x. */
AMPI_INNER AMPI_WORDS AMPI_F(widened_bf16)(const void *s) {
    const AMPI_FLOATS zero = AMPI_AS_FLOATS(AMPI_WORD(0x80000000u));
    return AMPI_BITS(AMPI_F(plus)(AMPI_AS_FLOATS(AMPI_F(load_upper)(s)), zero));
}
#  endif
/* Quiet: 0x400000 where a > over, which is what NaN is; 0 elsewhere. */
AMPI_INNER AMPI_WORDS AMPI_F(quiet)(AMPI_WORDS a, uint32_t over) {
    return AMPI_AND(AMPI_SHR(AMPI_SUB_WORDS(AMPI_WORD(over), a), 9), AMPI_WORD(0x400000u));
}
AMPI_INNER AMPI_WORDS AMPI_F(decode)(AMPI_WORDS w, amp_dtype t) {
    const ampi_format f = ampi_format_of(t);
    const uint32_t shift = 23u - f.mant, magic = (f.emin + shift) << 23;
    AMPI_WORDS a = AMPI_AND(w, AMPI_WORD((1u << f.sign) - 1u)), up, r, tiny;
    if (t == AMP_BF16) return AMPI_OR(AMPI_SHL(w, 16), AMPI_F(quiet)(a, f.over));
    up = AMPI_SHL(a, shift);
    r = AMPI_ADD_WORDS(up, AMPI_WORD((f.emin - 1u) << 23));
    tiny = AMPI_ADD_WORDS(a, AMPI_WORD(magic));
    tiny = AMPI_BITS(AMPI_F(magic_sub)(AMPI_AS_FLOATS(tiny), AMPI_AS_FLOATS(AMPI_WORD(magic))));
    r = AMPI_SELECT(AMPI_GREATER(AMPI_WORD(1u << f.mant), a), tiny, r);
    if (!ampi_has_inf(f)) {
        r = AMPI_SELECT(AMPI_GREATER(a, AMPI_WORD(f.maxf)), AMPI_WORD(0x7ff00000u), r);
    } else {
        r = AMPI_SELECT(AMPI_GREATER(a, AMPI_WORD(f.over - 1u)), AMPI_OR(up, AMPI_WORD(0x7f800000u)), r);
        r = AMPI_OR(r, AMPI_F(quiet)(a, f.over));
    }
    return AMPI_OR(r, AMPI_SHL(AMPI_SHR(w, f.sign), 31));
}
/* One vector of a small format, as the bits of floats. */
AMPI_INNER AMPI_WORDS AMPI_F(widened)(const void *s, amp_dtype t) {
#  ifdef AMPI_HAS_HALVES
    if (t == AMP_F16) return AMPI_F(load_halves)(s);
#  endif
#  ifdef AMPI_HAS_HALVES_OF_F8
    if (t == AMP_F8E4M3) return AMPI_F(load_e4m3)(s);
    if (t == AMP_F8E5M2) return AMPI_F(load_e5m2)(s);
#  endif
#  if AMPI_PASS == AMPI_PASS_VECTOR
    if (t == AMP_BF16) return AMPI_F(widened_bf16)(s);
#  endif
    return AMPI_F(decode)(amp_dtype_size(t) == 2 ? AMPI_F(load16)(s) : AMPI_F(load8)(s), t);
}

/* Conversions go in steps of AMPI_STEP elements; what is left of n goes through a padded copy. */
#  if AMPI_PASS == AMPI_PASS_SCALAR
#    define AMPI_STEP 16u
AMPI_INNER void AMPI_F(widen_step)(char *d, const char *s, amp_dtype t) { /* loops that compilers turn into vectors */
    uint32_t u[AMPI_STEP], e;
    uint16_t h[AMPI_STEP];
    uint8_t b[AMPI_STEP];
    if (amp_dtype_size(t) == 2) {
        memcpy(h, s, sizeof h);
        for (e = 0; e < AMPI_STEP; e++)
            u[e] = AMPI_F(decode)(h[e], t);
    } else {
        memcpy(b, s, sizeof b);
        for (e = 0; e < AMPI_STEP; e++)
            u[e] = AMPI_F(decode)(b[e], t);
    }
    memcpy(d, u, sizeof u);
}
AMPI_INNER void AMPI_F(narrow_step)(char *d, const char *s, amp_dtype t) {
    uint32_t u[AMPI_STEP], e;
    uint16_t h[AMPI_STEP];
    uint8_t b[AMPI_STEP];
    memcpy(u, s, sizeof u);
    if (amp_dtype_size(t) == 2) {
        for (e = 0; e < AMPI_STEP; e++)
            h[e] = (uint16_t)AMPI_F(encode)(u[e], t, ampi_format_of(t).over);
        memcpy(d, h, sizeof h);
    } else {
        for (e = 0; e < AMPI_STEP; e++)
            b[e] = (uint8_t)AMPI_F(encode)(u[e], t, ampi_format_of(t).over);
        memcpy(d, b, sizeof b);
    }
}
#  else
#    define AMPI_STEP (4u * AMPI_WIDTH)
AMPI_INNER void AMPI_F(widen_step)(char *d, const char *s, amp_dtype t) {
    const size_t size = amp_dtype_size(t) * AMPI_WIDTH;
    AMPI_WORDS v0 = AMPI_F(widened)(s, t);
    AMPI_WORDS v1 = AMPI_F(widened)(s + size, t);
    AMPI_WORDS v2 = AMPI_F(widened)(s + 2u * size, t);
    AMPI_WORDS v3 = AMPI_F(widened)(s + 3u * size, t);
    AMPI_STORE_WORDS(d, v0);
    AMPI_STORE_WORDS(d + 4u * AMPI_WIDTH, v1);
    AMPI_STORE_WORDS(d + 8u * AMPI_WIDTH, v2);
    AMPI_STORE_WORDS(d + 12u * AMPI_WIDTH, v3);
}
AMPI_INNER void AMPI_F(store_step)(char *d, amp_dtype t, AMPI_WORDS v0, AMPI_WORDS v1, AMPI_WORDS v2, AMPI_WORDS v3) {
    if (amp_dtype_size(t) == 2) {
        AMPI_F(store16)(d, v0, v1);
        AMPI_F(store16)(d + 4u * AMPI_WIDTH, v2, v3);
    } else {
        AMPI_F(store8)(d, v0, v1, v2, v3);
    }
}
AMPI_INNER void AMPI_F(store_words_step)(char *d, amp_dtype t, const uint32_t *v) {
    AMPI_F(store_step)(d, t, AMPI_LOAD_WORDS(v), AMPI_LOAD_WORDS(v + AMPI_WIDTH), AMPI_LOAD_WORDS(v + 2u * AMPI_WIDTH),
        AMPI_LOAD_WORDS(v + 3u * AMPI_WIDTH));
}
AMPI_INNER void AMPI_F(narrow_step)(char *d, const char *s, amp_dtype t) {
    const uint32_t cap = ampi_format_of(t).over;
    AMPI_WORDS v0, v1, v2, v3;
#    ifdef AMPI_HAS_HALVES
    if (t == AMP_F16) {
        AMPI_F(store_halves)(d, s);
        return;
    }
#    endif
    v0 = AMPI_F(encode)(AMPI_LOAD_WORDS(s), t, cap);
    v1 = AMPI_F(encode)(AMPI_LOAD_WORDS(s + 4u * AMPI_WIDTH), t, cap);
    v2 = AMPI_F(encode)(AMPI_LOAD_WORDS(s + 8u * AMPI_WIDTH), t, cap);
    v3 = AMPI_F(encode)(AMPI_LOAD_WORDS(s + 12u * AMPI_WIDTH), t, cap);
    AMPI_F(store_step)(d, t, v0, v1, v2, v3);
}
#  endif
AMPI_INNER void AMPI_F(widen)(void *dst, const void *src, size_t n, amp_dtype t) {
    const size_t size = amp_dtype_size(t);
    char *d = (char *)dst;
    const char *s = (const char *)src;
    size_t i;
    for (i = 0; i + AMPI_STEP <= n; i += AMPI_STEP)
        AMPI_F(widen_step)(d + i * 4u, s + i * size, t);
    if (i < n && n >= AMPI_STEP) { /* a few of them again */
        i = n - AMPI_STEP;
        AMPI_F(widen_step)(d + i * 4u, s + i * size, t);
    } else if (i < n) {
        char from[AMPI_STEP * 2u], to[AMPI_STEP * 4u];
        memset(from, 0, AMPI_STEP * size);
        memcpy(from, s + i * size, (n - i) * size);
        AMPI_F(widen_step)(to, from, t);
        memcpy(d + i * 4u, to, (n - i) * 4u);
    }
}
AMPI_INNER void AMPI_F(narrow)(void *dst, const void *src, size_t n, amp_dtype t) {
    const size_t size = amp_dtype_size(t);
    char *d = (char *)dst;
    const char *s = (const char *)src;
    size_t i;
    for (i = 0; i + AMPI_STEP <= n; i += AMPI_STEP)
        AMPI_F(narrow_step)(d + i * size, s + i * 4u, t);
    if (i < n && n >= AMPI_STEP) {
        i = n - AMPI_STEP;
        AMPI_F(narrow_step)(d + i * size, s + i * 4u, t);
    } else if (i < n) {
        char from[AMPI_STEP * 4u], to[AMPI_STEP * 2u];
        memset(from, 0, sizeof from);
        memcpy(from, s + i * 4u, (n - i) * 4u);
        AMPI_F(narrow_step)(to, from, t);
        memcpy(d + i * size, to, (n - i) * size);
    }
}
#  define AMP_X(T, name, ...) \
    AMPI_OUTER void AMPI_F(widen_##name)(void *d, const void *s, size_t n) { AMPI_F(widen)(d, s, n, AMP_##T); } \
    AMPI_OUTER void AMPI_F(narrow_##name)(void *d, const void *s, size_t n) { AMPI_F(narrow)(d, s, n, AMP_##T); }
AMPI_FORMATS(AMP_X)
#  undef AMP_X
#  ifdef AMPI_HAS_FMA
/* scale from 16 bits to 16 bits, a step at a time in registers. */
AMPI_INNER AMPI_WORDS AMPI_F(rescale_step)(char *d, const char *s, amp_dtype t, AMPI_FLOATS by) {
    const AMPI_WORDS exponent = AMPI_WORD(0x7f800000u), one = AMPI_WORD(0x00800000u);
    AMPI_LINES float u[AMPI_STEP];
    AMPI_WORDS any = AMPI_WORD(0);
    AMPI_FLOATS x;
#    define AMPI_X(v) \
    x = AMPI_MUL(AMPI_AS_FLOATS(AMPI_F(widened)(s + 2u * v * AMPI_WIDTH, t)), by); \
    AMPI_STORE(u + v * AMPI_WIDTH, x); \
    any = AMPI_OR(any, AMPI_ADD_WORDS(AMPI_AND(AMPI_BITS(x), exponent), one));
    AMPI_X(0)
    AMPI_X(1)
    AMPI_X(2)
    AMPI_X(3)
#    undef AMPI_X
    AMPI_F(narrow_step)(d, (const char *)u, t);
    return any;
}
AMPI_INNER int AMPI_F(rescale_of)(amp_dtype t, char *d, const char *s, size_t n, float by) {
    AMPI_WORDS any = AMPI_WORD(0);
    size_t i;
    for (i = 0; i + AMPI_STEP <= n; i += AMPI_STEP)
        any = AMPI_OR(any, AMPI_F(rescale_step)(d + 2u * i, s + 2u * i, t, AMPI_SET(by)));
    if (i < n) {
        char left[AMPI_STEP * 2u] = {0};
        memcpy(left, s + 2u * i, 2u * (n - i));
        any = AMPI_OR(any, AMPI_F(rescale_step)(left, left, t, AMPI_SET(by)));
        memcpy(d + 2u * i, left, 2u * (n - i));
    }
    return AMPI_ANY(AMPI_AND(any, AMPI_WORD(0x80000000u)));
}
AMPI_OUTER int AMPI_F(rescale)(void *to, const void *from, amp_dtype t, size_t n, float by) {
    if (t == AMP_F16) return AMPI_F(rescale_of)(AMP_F16, (char *)to, (const char *)from, n, by);
    return AMPI_F(rescale_of)(AMP_BF16, (char *)to, (const char *)from, n, by);
}
#  endif
#  if AMPI_PASS == AMPI_PASS_SCALAR /* the same on every path */
AMPI_OUTER void AMPI_F(widen_f32)(void *d, const void *s, size_t n) { memcpy(d, s, n * 4); }
AMPI_OUTER void AMPI_F(narrow_f32)(void *d, const void *s, size_t n) {
    if (d != s) memcpy(d, s, n * 4);
}
#  endif
#endif

