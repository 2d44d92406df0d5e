/* ---- weights in 16 + 16 bits and 16 + 8: elements at ... at + n of p, by amp_pair_unpack and amp_pair_pack, whose
   rules the lanes repeat.   tests: tests/test_layouts.c ---- */
#if AMPI_PASS == AMPI_PASS_SCALAR
AMPI_OUTER void AMPI_F(pair_widen)(float *w, const amp_param_entry *p, size_t at, size_t n) {
    size_t i;
    for (i = 0; i < n; i++)
        w[i] = amp_weight_load(p, at + i);
}
AMPI_OUTER void AMPI_F(pair_narrow)(const amp_param_entry *p, size_t at, const float *w, const uint32_t *r, size_t n) {
    const amp_rounding how = r ? AMP_STOCHASTIC : AMP_NEAREST;
    size_t i;
    for (i = 0; i < n; i++)
        (void)ampi_pair_store(p, at + i, w[i], how, r ? r[i] : 0u);
}
#endif

#if AMPI_PASS == AMPI_PASS_VECTOR && defined(AMPI_HAS_SHIFT_EACH)
/* SPLIT and KAHAN: what is left of w beside x, its model copy. For FP16 in units of 2^-25 of x's exponent, of at least
   -14: see amp_split_pack. */
AMPI_INNER AMPI_WORDS AMPI_F(half_exponent)(AMPI_WORDS x) {
    return AMPI_MAX(AMPI_AND(x, AMPI_WORD(0x7f800000u)), AMPI_WORD(113u << 23));
}
AMPI_INNER AMPI_WORDS AMPI_F(pair_rest)(AMPI_FLOATS w, AMPI_WORDS x, amp_master layout, amp_dtype t) {
    const int exact = layout == AMP_MASTER_SPLIT && t == AMP_BF16;
    const AMPI_WORDS size = AMPI_AND(x, AMPI_WORD(0x7fffffffu));
    const AMPI_MASK kept = AMPI_GREATER(AMPI_WORD(exact ? 0x7f800001u : 0x7f800000u), size);
    AMPI_WORDS rest;
    if (exact) {
        rest = AMPI_MIN(AMPI_SUB_WORDS(AMPI_BITS(w), x), AMPI_WORD(32767));
    } else if (t == AMP_BF16) {
        rest = AMPI_F(encode)(AMPI_BITS(AMPI_SUB(w, AMPI_AS_FLOATS(x))), t, ampi_format_of(t).over);
    } else {
        const AMPI_WORDS units = AMPI_SUB_WORDS(AMPI_WORD(279u << 23), AMPI_F(half_exponent)(x));
        const AMPI_FLOATS left = AMPI_SUB(w, AMPI_AS_FLOATS(x));
        const AMPI_FLOATS r = AMPI_MUL(left, AMPI_AS_FLOATS(units));
        rest = AMPI_BITS(AMPI_ADD(r, AMPI_SET(12582912.0f)));
    }
    return AMPI_AND(rest, AMPI_SELECT(kept, AMPI_WORD(0xffffu), AMPI_WORD(0)));
}
AMPI_INNER AMPI_WORDS AMPI_F(pair_joined)(AMPI_WORDS x, AMPI_WORDS low, amp_master layout, amp_dtype t) {
    const AMPI_WORDS size = AMPI_AND(x, AMPI_WORD(0x7fffffffu));
    const AMPI_WORDS r = AMPI_SUB_WORDS(AMPI_XOR(low, AMPI_WORD(0x8000u)), AMPI_WORD(0x8000u));
    AMPI_FLOATS rest;
    if (layout == AMP_MASTER_KAHAN) {
        rest = AMPI_ADD(AMPI_AS_FLOATS(x), AMPI_AS_FLOATS(AMPI_SHL(low, 16)));
        low = AMPI_AND(low, AMPI_WORD(0x7fffu));
    } else if (t == AMP_BF16) {
        return AMPI_SELECT(AMPI_GREATER(size, AMPI_WORD(0x7f800000u)), x, AMPI_ADD_WORDS(x, r));
    } else {
        const AMPI_WORDS unit = AMPI_SUB_WORDS(AMPI_F(half_exponent)(x), AMPI_WORD(25u << 23));
        const AMPI_WORDS moved = AMPI_ADD_WORDS(r, AMPI_WORD(0x4b400000u));
        rest = AMPI_SUB(AMPI_AS_FLOATS(moved), AMPI_SET(12582912.0f)); /* r */
        rest = AMPI_MUL(rest, AMPI_AS_FLOATS(unit));
        rest = AMPI_ADD(AMPI_AS_FLOATS(x), rest);
        low = AMPI_SELECT(AMPI_GREATER(AMPI_WORD(0x7f800000u), size), low, AMPI_WORD(0));
    }
    return AMPI_SELECT(AMPI_GREATER(low, AMPI_WORD(0)), AMPI_BITS(rest), x); /* -0 + 0 would be 0 */
}
/* SPLIT8: see ampi_split8_round and the two after it. */
AMPI_INNER AMPI_WORDS AMPI_F(split8_tiny)(AMPI_WORDS a, const uint32_t *random, ampi_format f) {
    const AMPI_WORDS magic = AMPI_WORD((f.emin + 15u - f.mant) << 23);
    if (random) {
        const AMPI_WORDS e = AMPI_SHR(a, 23);
        const AMPI_WORDS hidden = AMPI_SELECT(AMPI_GREATER(e, AMPI_WORD(0)), AMPI_WORD(0x800000u), AMPI_WORD(0));
        const AMPI_WORDS m = AMPI_OR(AMPI_AND(a, AMPI_WORD(0x7fffffu)), hidden);
        const AMPI_WORDS shift = AMPI_SUB_WORDS(AMPI_WORD(15u - f.mant + f.emin), AMPI_MAX(e, AMPI_WORD(1)));
        return AMPI_ADD_WORDS(AMPI_F(shr_each)(m, shift), AMPI_F(carry)(m, shift, AMPI_LOAD_WORDS(random)));
    }
    return AMPI_SUB_WORDS(AMPI_BITS(AMPI_F(magic_add)(AMPI_AS_FLOATS(a), AMPI_AS_FLOATS(magic))), magic);
}
AMPI_INNER AMPI_WORDS AMPI_F(split8_rounded)(AMPI_WORDS a, const uint32_t *random, amp_dtype t) {
    const ampi_format f = ampi_format_of(t);
    const uint32_t drop = 15u - f.mant;
    AMPI_WORDS more = AMPI_AND(AMPI_SHR(a, drop), AMPI_WORD(1)), q;
    more = AMPI_ADD_WORDS(more, AMPI_WORD((1u << (drop - 1u)) - 1u));
    if (random) more = AMPI_SHR(AMPI_LOAD_WORDS(random), 32u - drop);
    q = AMPI_SUB_WORDS(a, AMPI_WORD((f.emin - 1u) << 23));
    q = AMPI_SHR(AMPI_ADD_WORDS(q, more), drop);
    if (f.emin > 1u) q = AMPI_SELECT(AMPI_GREATER(AMPI_WORD(f.emin << 23), a), AMPI_F(split8_tiny)(a, random, f), q);
    return AMPI_MIN(q, AMPI_WORD(f.over << 8));
}
AMPI_INNER void AMPI_F(split8_parts)(uint32_t *h, uint32_t *code, AMPI_WORDS w, const uint32_t *random, amp_dtype t) {
    const AMPI_WORDS a = AMPI_AND(w, AMPI_WORD(0x7fffffffu));
    const AMPI_WORDS q = AMPI_F(split8_rounded)(a, random, t);
    const AMPI_MASK nan = AMPI_GREATER(a, AMPI_WORD(0x7f800000u));
    AMPI_STORE_WORDS(h, AMPI_F(finish)(w, a, AMPI_SHR(AMPI_ADD_WORDS(q, AMPI_WORD(0x80u)), 8), t));
    AMPI_STORE_WORDS(code, AMPI_AND(q, AMPI_SELECT(nan, AMPI_WORD(0), AMPI_WORD(0xffu))));
}
AMPI_INNER AMPI_WORDS AMPI_F(split8_joined)(const char *model, AMPI_WORDS code, amp_dtype t) {
    const ampi_format f = ampi_format_of(t);
    const AMPI_WORDS sign = AMPI_WORD(0x80000000u), h = AMPI_F(load16)(model);
    const AMPI_WORDS r = AMPI_SUB_WORDS(AMPI_XOR(code, AMPI_WORD(0x80u)), AMPI_WORD(0x80u));
    const AMPI_WORDS q = AMPI_ADD_WORDS(AMPI_SHL(AMPI_AND(h, AMPI_WORD(0x7fffu)), 8), r);
    const AMPI_MASK over = AMPI_GREATER(AMPI_XOR(q, sign), AMPI_WORD(((f.over << 8) - 1u) ^ 0x80000000u));
    AMPI_WORDS x = AMPI_ADD_WORDS(AMPI_SHL(q, 15u - f.mant), AMPI_WORD((f.emin - 1u) << 23));
    if (f.emin > 1u) {
        const AMPI_WORDS moved = AMPI_OR(q, AMPI_WORD(0x4b000000u));
        const AMPI_WORDS unit = AMPI_WORD((f.emin - f.mant - 8u) << 23);
        const AMPI_FLOATS count = AMPI_SUB(AMPI_AS_FLOATS(moved), AMPI_SET(8388608.0f));
        const AMPI_FLOATS tiny = AMPI_MUL(count, AMPI_AS_FLOATS(unit));
        x = AMPI_SELECT(AMPI_GREATER(AMPI_WORD(1u << (f.mant + 8u)), q), AMPI_BITS(tiny), x);
    }
    return AMPI_SELECT(over, AMPI_F(widened)(model, t), AMPI_OR(x, AMPI_AND(AMPI_SHL(h, 16), sign)));
}

AMPI_INNER AMPI_WORDS AMPI_F(pair_load)(const char *model, const char *low, amp_master layout, amp_dtype t) {
    if (layout == AMP_MASTER_SPLIT8) return AMPI_F(split8_joined)(model, AMPI_F(load8)(low), t);
    return AMPI_F(pair_joined)(AMPI_F(widened)(model, t), AMPI_F(load16)(low), layout, t);
}
/* One step; model holds what w is rounded to already, but for SPLIT8. */
AMPI_INNER void AMPI_F(pair_store)(
    char *model, char *low, const float *w, const uint32_t *r, amp_master layout, amp_dtype t) {
    uint32_t h[AMPI_STEP], rest[AMPI_STEP];
    size_t i;
    for (i = 0; i < AMPI_STEP; i += AMPI_WIDTH)
        if (layout == AMP_MASTER_SPLIT8)
            AMPI_F(split8_parts)(h + i, rest + i, AMPI_LOAD_WORDS(w + i), r ? r + i : NULL, t);
        else
            AMPI_STORE_WORDS(
                rest + i, AMPI_F(pair_rest)(AMPI_LOAD(w + i), AMPI_F(widened)(model + 2u * i, t), layout, t));
    if (layout == AMP_MASTER_SPLIT8) AMPI_F(store_words_step)(model, t, h);
    AMPI_F(store_words_step)(low, ampi_low_type(layout), rest);
}
#  define AMPI_PAIRS(X) \
    X(AMP_MASTER_SPLIT, AMP_F16) \
    X(AMP_MASTER_SPLIT, AMP_BF16) \
    X(AMP_MASTER_SPLIT8, AMP_F16) \
    X(AMP_MASTER_SPLIT8, AMP_BF16) \
    X(AMP_MASTER_KAHAN, AMP_BF16)
#  define AMPI_IS_PAIR(p, L, T) ((p)->layout == (L) && (p)->model_dtype == (T))
AMPI_OUTER void AMPI_F(pair_widen)(float *w, const amp_param_entry *p, size_t at, size_t n) {
    const size_t size = amp_dtype_size(ampi_low_type(p->layout));
    const char *model = (const char *)p->model + 2u * at;
    const char *low = (const char *)p->low + size * at;
    const size_t whole = n - n % AMPI_WIDTH;
    size_t i;
#  define AMP_X(L, T) \
    for (i = 0; i < whole && AMPI_IS_PAIR(p, L, T); i += AMPI_WIDTH) \
        AMPI_STORE_WORDS(w + i, AMPI_F(pair_load)(model + 2u * i, low + size * i, L, T));
    AMPI_PAIRS(AMP_X)
#  undef AMP_X
    AMPI_F(done)();
    ampi_scalar_pair_widen(w + whole, p, at + whole, n - whole);
}
AMPI_OUTER void AMPI_F(pair_narrow)(const amp_param_entry *p, size_t at, const float *w, const uint32_t *r, size_t n) {
    const size_t size = amp_dtype_size(ampi_low_type(p->layout));
    char *model = (char *)p->model + 2u * at;
    char *low = (char *)p->low + size * at;
    const size_t whole = n - n % AMPI_STEP;
    size_t i;
    if (p->layout != AMP_MASTER_SPLIT8 && p->model_dtype == AMP_F16) AMPI_F(narrow_f16)(model, w, whole);
    if (p->layout != AMP_MASTER_SPLIT8 && p->model_dtype == AMP_BF16) AMPI_F(narrow_bf16)(model, w, whole);
#  define AMP_X(L, T) \
    for (i = 0; i < whole && AMPI_IS_PAIR(p, L, T); i += AMPI_STEP) \
        AMPI_F(pair_store)(model + 2u * i, low + size * i, w + i, r ? r + i : NULL, L, T);
    AMPI_PAIRS(AMP_X)
#  undef AMP_X
    AMPI_F(done)();
    ampi_scalar_pair_narrow(p, at + whole, w + whole, r ? r + whole : NULL, n - whole);
}
#  undef AMPI_PAIRS
#  undef AMPI_IS_PAIR
#endif

