/* ---- random words, stochastic and saturating rounding, finite checks.   tests: tests/test_arrays.c ---- */
#if AMPI_PASS == AMPI_PASS_SCALAR
AMPI_OUTER void AMPI_F(round)(void *d, amp_dtype t, const void *s, size_t n, const uint32_t *r, int saturate) {
    amp_rounding how = r ? AMP_STOCHASTIC : AMP_NEAREST;
    size_t i;
    uint32_t u;
    for (i = 0; i < n; i++) {
        memcpy(&u, (const char *)s + 4 * i, 4);
        ampi_store_pattern(d, t, i, ampi_encode(u, t, how, r ? r[i] : 0, saturate));
    }
}
AMPI_OUTER const uint32_t *AMPI_F(random)(uint32_t *buf, size_t n, uint64_t seed, uint64_t stream, uint64_t at) {
    size_t i;
    for (i = 0; i < n + (at & 3u); i += 4)
        amp_philox(buf + i, seed, stream, (at >> 2) + i / 4);
    return buf + (at & 3u);
}
AMPI_OUTER int AMPI_F(is_bad)(const void *p, size_t bytes, amp_dtype t) {
    uint32_t e = ampi_exponents(t), sign = ampi_signs(t), any = 0, x[16], k;
    size_t i;
    for (i = 0; i + 64 <= bytes; i += 64) {
        memcpy(x, (const char *)p + i, 64);
        for (k = 0; k < 16; k++)
            any |= (x[k] & e) + (sign - e);
    }
    if (i < bytes) {
        memset(x, 0, 64);
        memcpy(x, (const char *)p + i, bytes - i);
        for (k = 0; k < 16; k++)
            any |= (x[k] & e) + (sign - e);
    }
    return (any & sign) != 0;
}
#endif

#if AMPI_PASS == AMPI_PASS_VECTOR
/* ---- stochastic and saturating rounding: see ampi_encode for the fixed-point number q.F; here F's carry is looked at
   by itself ---- */
#  ifdef AMPI_HAS_SHIFT_EACH
/* q and F of |x|, whose exponent and 24-bit mantissa are e and m; counts beyond 31 give 0 */
AMPI_INNER AMPI_WORDS AMPI_F(carry)(AMPI_WORDS m, AMPI_WORDS shift, AMPI_WORDS random) {
    AMPI_WORDS high = AMPI_F(shl_each)(m, AMPI_SUB_WORDS(AMPI_WORD(32), shift));
    AMPI_WORDS fraction = AMPI_OR(high, AMPI_F(shr_each)(m, AMPI_SUB_WORDS(shift, AMPI_WORD(32))));
    AMPI_WORDS below = AMPI_XOR(random, AMPI_WORD(0x7fffffffu));
    AMPI_MASK carries = AMPI_GREATER(AMPI_XOR(fraction, AMPI_WORD(0x80000000u)), below);
    return AMPI_SELECT(carries, AMPI_WORD(1), AMPI_WORD(0));
}
AMPI_INNER AMPI_WORDS AMPI_F(encode_how)(const char *s, const uint32_t *random, amp_dtype t, int saturate) {
    const ampi_format f = ampi_format_of(t);
    AMPI_WORDS x = AMPI_LOAD_WORDS(s), a, e, least, m, shift, q;
    if (!random) return AMPI_F(encode)(x, t, saturate ? f.maxf : f.over);
    a = AMPI_AND(x, AMPI_WORD(0x7fffffffu));
    e = AMPI_SHR(a, 23);
    m = AMPI_SELECT(AMPI_GREATER(e, AMPI_WORD(0)), AMPI_WORD(0x800000u), AMPI_WORD(0)); /* the implicit bit */
    m = AMPI_OR(AMPI_AND(a, AMPI_WORD(0x7fffffu)), m);
    e = AMPI_MAX(e, AMPI_WORD(1));
    least = AMPI_MAX(e, AMPI_WORD(f.emin));
    shift = AMPI_ADD_WORDS(AMPI_WORD(23u - f.mant), AMPI_SUB_WORDS(least, e));
    q = AMPI_ADD_WORDS(AMPI_F(shr_each)(m, shift), AMPI_F(carry)(m, shift, AMPI_LOAD_WORDS(random)));
    q = AMPI_ADD_WORDS(q, AMPI_SHL(AMPI_SUB_WORDS(least, AMPI_WORD(f.emin)), f.mant));
    q = AMPI_MIN(q, AMPI_WORD(f.maxf));
    if (!saturate) q = AMPI_SELECT(AMPI_GREATER(a, AMPI_WORD(f.limit - 1u)), AMPI_WORD(f.over), q);
    return AMPI_F(finish)(x, a, q, t);
}
AMPI_INNER void AMPI_F(round_step)(char *d, const char *s, const uint32_t *r, amp_dtype t, int saturate) {
    uint32_t v[AMPI_STEP];
    size_t i; /* a loop: four copies of this for each format would be a tenth of the path's code */
    for (i = 0; i < AMPI_STEP; i += AMPI_WIDTH)
        AMPI_STORE_WORDS(v + i, AMPI_F(encode_how)(s + 4u * i, r ? r + i : NULL, t, saturate));
    AMPI_F(store_words_step)(d, t, v);
}
AMPI_OUTER void AMPI_F(round)(void *dst, amp_dtype t, const void *src, size_t n, const uint32_t *r, int saturate) {
    const size_t size = AMPI_STEP * amp_dtype_size(t);
    char *d = (char *)dst;
    const char *s = (const char *)src;
    for (; n >= AMPI_STEP; n -= AMPI_STEP, d += size, s += AMPI_STEP * 4u) {
#    define AMP_X(T, ...) \
    if (t == AMP_##T) AMPI_F(round_step)(d, s, r, AMP_##T, saturate);
        AMPI_FORMATS(AMP_X)
#    undef AMP_X
        if (r) r += AMPI_STEP;
    }
    AMPI_F(done)();
    ampi_scalar_round(d, t, s, n, r, saturate);
}
#  endif

/* ---- amp_philox in lanes: the high halves may hold anything, a product does not look at them ---- */
AMPI_OUTER const uint32_t *AMPI_F(random)(uint32_t *buf, size_t n, uint64_t seed, uint64_t stream, uint64_t at) {
    const AMPI_WORDS64 m0 = AMPI_F(word64)(0xD2511F53u), m1 = AMPI_F(word64)(0xCD9E8D57u);
    AMPI_WORDS64 counter = AMPI_F(add64)(AMPI_F(word64)(at >> 2), AMPI_F(counters)());
    size_t i;
    for (i = 0; i < n + (at & 3u); i += 2u * AMPI_WIDTH) {
        AMPI_WORDS64 c0 = counter, c1 = AMPI_F(high32)(counter);
        AMPI_WORDS64 c2 = AMPI_F(word64)(stream), c3 = AMPI_F(word64)(stream >> 32);
        uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32), k;
        for (k = 0; k < 10u; k++) {
            AMPI_WORDS64 p0 = AMPI_F(mul32)(c0, m0), p1 = AMPI_F(mul32)(c2, m1);
            c0 = AMPI_F(xor64)(AMPI_F(xor64)(AMPI_F(high32)(p1), c1), AMPI_F(word64)(k0));
            c1 = p1;
            c2 = AMPI_F(xor64)(AMPI_F(xor64)(AMPI_F(high32)(p0), c3), AMPI_F(word64)(k1));
            c3 = p0;
            k0 += 0x9E3779B9u;
            k1 += 0xBB67AE85u;
        }
        c0 = AMPI_F(join32)(c0, c1);
        c2 = AMPI_F(join32)(c2, c3);
        AMPI_F(store64)(buf + i, AMPI_F(even64)(c0, c2));
        AMPI_F(store64)(buf + i + AMPI_WIDTH, AMPI_F(odd64)(c0, c2));
        counter = AMPI_F(add64)(counter, AMPI_F(word64)(AMPI_WIDTH / 2u));
    }
    return buf + (at & 3u);
}

/* ---- finite checks: see ampi_scalar_is_bad ---- */
AMPI_INNER AMPI_WORDS AMPI_F(carried)(const char *p, AMPI_WORDS exponents, AMPI_WORDS one) {
    return AMPI_ADD_WORDS(AMPI_AND(AMPI_LOAD_WORDS(p), exponents), one);
}
AMPI_OUTER int AMPI_F(is_bad)(const void *src, size_t bytes, amp_dtype t) {
    const AMPI_WORDS e = AMPI_WORD(ampi_exponents(t)), one = AMPI_WORD(ampi_signs(t) - ampi_exponents(t));
    const size_t step = 16u * AMPI_WIDTH;
    const char *p = (const char *)src;
    AMPI_WORDS any = AMPI_WORD(0);
    for (; bytes >= step; bytes -= step, p += step) {
        AMPI_WORDS v0 = AMPI_F(carried)(p, e, one);
        AMPI_WORDS v1 = AMPI_F(carried)(p + 4u * AMPI_WIDTH, e, one);
        AMPI_WORDS v2 = AMPI_F(carried)(p + 8u * AMPI_WIDTH, e, one);
        AMPI_WORDS v3 = AMPI_F(carried)(p + 12u * AMPI_WIDTH, e, one);
        AMPI_PREFETCH(p + 2048); /* each line of the step */
        if (AMPI_WIDTH > 4u) AMPI_PREFETCH(p + 2112);
        if (AMPI_WIDTH > 8u) AMPI_PREFETCH(p + 2176);
        if (AMPI_WIDTH > 8u) AMPI_PREFETCH(p + 2240);
        any = AMPI_OR(any, AMPI_OR(AMPI_OR(v0, v1), AMPI_OR(v2, v3)));
    }
    if (AMPI_ANY(AMPI_AND(any, AMPI_WORD(ampi_signs(t))))) return 1;
    return ampi_scalar_is_bad(p, bytes, t);
}

#  ifdef AMPI_HAS_STREAM
AMPI_OUTER void AMPI_F(stream)(char *dst, const char *buf, size_t pages, const char *next, size_t step) {
    size_t i, page, at, piece = 4096 / pages;
    for (i = 0; i < piece; i += 64) {
        for (page = 0; page < pages; page++) {
            const char *from = next + (page * 64 + i / 64) * step;
            AMPI_F(stream64)(dst + page * 4096 + i, buf + page * piece + i);
            for (at = 0; at < step; at += 64)
                AMPI_PREFETCH(from + at);
        }
    }
}
#  endif
#endif /* AMPI_PASS_VECTOR */

