/* ---- moments in 8 bits: see >>backend, amp_moment_load.   tests: tests/test_moments.c ---- */
#if AMPI_PASS == AMPI_PASS_UPDATE || AMPI_PASS == AMPI_PASS_VECTOR
/* which is 0 or 1, a constant wherever these are inlined: m and a sign, or v. Of s = k^2, m has s (s + a) and v s^2. */
AMPI_INNER AMPI_FLOATS AMPI_F(moment_power)(AMPI_FLOATS s, float a, uint32_t which) {
    return AMPI_MUL(s, which ? s : AMPI_ADD(s, AMPI_SET(a)));
}
AMPI_INNER AMPI_FLOATS AMPI_F(moment_value)(AMPI_WORDS code, AMPI_FLOATS scale, uint32_t which) {
    AMPI_WORDS k = AMPI_AND(code, AMPI_WORD(AMPI_MOMENT_TOP(which)));
    AMPI_FLOATS x = AMPI_SUB(AMPI_AS_FLOATS(AMPI_OR(k, AMPI_WORD(0x4b000000u))), AMPI_SET(8388608.0f)); /* k */
    x = AMPI_MUL(x, AMPI_SET(which ? 0.00392156886f : 0.00787401572f));
    x = AMPI_F(moment_power)(AMPI_MUL(x, x), 0.5f, which);
    if (!which) x = AMPI_MUL(x, AMPI_SET(0.666666687f)); /* 1 for k = 127 */
    x = AMPI_MUL(x, scale);
    if (which) return x;
    return AMPI_AS_FLOATS(AMPI_OR(AMPI_BITS(x), AMPI_SHL(AMPI_AND(code, AMPI_WORD(0x80u)), 24)));
}
/* The larger of x and 2^-64: what a root needs. */
AMPI_INNER AMPI_FLOATS AMPI_F(moment_least)(AMPI_FLOATS x) {
    return AMPI_AS_FLOATS(AMPI_MAX(AMPI_BITS(x), AMPI_WORD(0x1f800000u)));
}
AMPI_INNER AMPI_FLOATS AMPI_F(moment_root)(AMPI_FLOATS q, uint32_t which) { /* k / top */
    AMPI_FLOATS s;
    if (which) return AMPI_ROOT(AMPI_ROOT(q));
    s = AMPI_ROOT(AMPI_ADD(AMPI_MUL(q, AMPI_SET(1.5f)), AMPI_SET(0.0625f)));
    return AMPI_ROOT(AMPI_F(moment_least)(AMPI_SUB(s, AMPI_SET(0.25f))));
}
/* k is rounded down, and one more if the share lies above the point between the two neighbours that the random number u
   in (0, 1) says. Where a root is rounded across a whole number, u has the last word, too. Of Inf and NaN the share
   is 1. */
AMPI_INNER AMPI_WORDS AMPI_F(moment_code)(AMPI_FLOATS x, AMPI_FLOATS inverse, AMPI_WORDS random, uint32_t which) {
    const float top = (float)AMPI_MOMENT_TOP(which), steps = which ? 4228250624.0f : 390216960.0f, a = 8064.5f;
    AMPI_WORDS size = AMPI_AND(AMPI_BITS(x), AMPI_WORD(0x7fffffffu)), code, more;
    AMPI_WORDS share = AMPI_BITS(AMPI_F(moment_least)(AMPI_MUL(AMPI_AS_FLOATS(size), inverse)));
    AMPI_FLOATS q = AMPI_AS_FLOATS(AMPI_MIN(share, AMPI_WORD(0x3f800000u))), k, low, high, u;
    k = AMPI_SUB(AMPI_MUL(AMPI_F(moment_root)(q, which), AMPI_SET(top)), AMPI_SET(0.5f));
    k = AMPI_ADD(k, AMPI_SET(12582912.0f));
    code = AMPI_SUB_WORDS(AMPI_BITS(k), AMPI_WORD(0x4b400000u));
    low = AMPI_SUB(k, AMPI_SET(12582912.0f));
    high = AMPI_ADD(low, AMPI_SET(1.0f));
    low = AMPI_F(moment_power)(AMPI_MUL(low, low), a, which);
    high = AMPI_F(moment_power)(AMPI_MUL(high, high), a, which);
    if (which) random = AMPI_SHR(random, 9); /* 16 bits, in the middle of their interval */
    if (!which) random = AMPI_SHL(random, 7);
    random = AMPI_OR(AMPI_AND(random, AMPI_WORD(0x7fff80u)), AMPI_WORD(0x3f800040u));
    u = AMPI_SUB(AMPI_AS_FLOATS(random), AMPI_SET(1.0f));
    u = AMPI_ADD(low, AMPI_MUL(u, AMPI_SUB(high, low)));
    more = AMPI_SHR(AMPI_SUB_WORDS(AMPI_BITS(u), AMPI_BITS(AMPI_MUL(q, AMPI_SET(steps)))), 31); /* of what is >= 0 */
    code = AMPI_ADD_WORDS(code, more);
    if (which) return AMPI_MAX(code, AMPI_MIN(size, AMPI_WORD(1))); /* no 0 but of 0 */
    return AMPI_OR(code, AMPI_AND(AMPI_SHR(AMPI_BITS(x), 24), AMPI_WORD(0x80u)));
}
#endif

#if AMPI_PASS == AMPI_PASS_SCALAR || AMPI_PASS == AMPI_PASS_VECTOR
/* Blocks of n elements, the last one perhaps short: there floats are written, and codes read and written, up to a
   multiple of 64. */
AMPI_INNER void AMPI_F(moment_widen_all)(float *x, const uint8_t *code, const float *scale, size_t n, uint32_t which) {
    size_t i, k;
    for (i = 0; i < n; i += AMP_MOMENT_BLOCK) {
        const AMPI_FLOATS s = AMPI_SET(scale[i / AMP_MOMENT_BLOCK]);
        for (k = i; k < n && k < i + AMP_MOMENT_BLOCK; k += AMPI_WIDTH)
            AMPI_STORE(x + k, AMPI_F(moment_value)(AMPI_F(load8)(code + k), s, which));
    }
}
AMPI_OUTER void AMPI_F(moment_widen)(float *x, const uint8_t *code, const float *scale, size_t n, uint32_t which) {
    if (which)
        AMPI_F(moment_widen_all)(x, code, scale, n, 1);
    else
        AMPI_F(moment_widen_all)(x, code, scale, n, 0);
    AMPI_F(done)();
}
AMPI_INNER void AMPI_F(moment_codes)(uint8_t *to, const float *x, float inverse, const uint32_t *r, uint32_t which) {
    uint32_t code[4u * AMPI_WIDTH];
    size_t i;
    for (i = 0; i < 4u * AMPI_WIDTH; i += AMPI_WIDTH)
        AMPI_STORE_WORDS(
            code + i, AMPI_F(moment_code)(AMPI_LOAD(x + i), AMPI_SET(inverse), AMPI_LOAD_WORDS(r + i), which));
    AMPI_F(store8)(to, AMPI_LOAD_WORDS(code), AMPI_LOAD_WORDS(code + AMPI_WIDTH),
        AMPI_LOAD_WORDS(code + 2u * AMPI_WIDTH), AMPI_LOAD_WORDS(code + 3u * AMPI_WIDTH));
}
AMPI_OUTER void AMPI_F(moment_narrow)(
    uint8_t *code, float *scale, float *x, const uint32_t *r, size_t n, uint32_t which) {
    size_t i, k, end;
    for (; n % 64u; n++)
        x[n] = 0.0f;
    for (i = 0; i < n; i = end) {
        const float s = ampi_moment_scale(AMPI_F(amax)(x + i, n - i < AMP_MOMENT_BLOCK ? n - i : AMP_MOMENT_BLOCK, 0));
        const float inverse = ampi_moment_inverse(s);
        scale[i / AMP_MOMENT_BLOCK] = s;
        end = n - i < AMP_MOMENT_BLOCK ? n : i + AMP_MOMENT_BLOCK;
        for (k = i; k < end; k += 4u * AMPI_WIDTH)
            if (which)
                AMPI_F(moment_codes)(code + k, x + k, inverse, r + k, 1);
            else
                AMPI_F(moment_codes)(code + k, x + k, inverse, r + k, 0);
    }
    AMPI_F(done)();
}
#endif

