/* ---- rules: exp, the activations, the optimizers.   tests: tests/test_products.c, tests/test_step.c ---- */
#if AMPI_PASS == AMPI_PASS_MATH || AMPI_PASS == AMPI_PASS_VECTOR
/* n = x rounded to an integer, where t = n + shift and shift = 1.5 * 2^23 + 127 + up: the low bits of t are the
   exponent of 2^(n + up), as a float has it; 0 for n = -127 - up, which is how a result becomes 0. */
#  define AMPI_SHIFT(up) (12582912.0f + 127.0f + (float)(up))
#  define AMPI_POWER(t)  AMPI_AS_FLOATS(AMPI_SHL(AMPI_BITS(t), 23))
/* 2^up e^x for (-127.4 - up) ln2 < x < (127.4 - up) ln2: x = n ln2 + r, |r| <= 0.347, with ln2 in two parts (Cody and
   Waite), and e^r = 1 + r + r^2 q(r), q of degree 4 with the least largest error, 5e-9. */
AMPI_INNER AMPI_FLOATS AMPI_F(exp_scaled)(AMPI_FLOATS x, int32_t up) {
    const AMPI_FLOATS shift = AMPI_SET(AMPI_SHIFT(up));
    AMPI_FLOATS t = AMPI_FUSE(x, AMPI_SET(1.44269504f), shift), n = AMPI_SUB(t, shift), p;
    AMPI_FLOATS r = AMPI_FUSE(n, AMPI_SET(-0.693147182f), x);
    r = AMPI_FUSE(n, AMPI_SET(1.90465421e-9f), r);
    p = AMPI_FUSE(AMPI_SET(1.38934073e-3f), r, AMPI_SET(8.37029982e-3f));
    p = AMPI_FUSE(p, r, AMPI_SET(4.16670926e-2f));
    p = AMPI_FUSE(p, r, AMPI_SET(0.166665062f));
    p = AMPI_FUSE(p, r, AMPI_SET(0.499999970f));
    p = AMPI_FUSE(p, r, AMPI_SET(1.0f));
    p = AMPI_FUSE(p, r, AMPI_SET(1.0f));
    return AMPI_MUL(p, AMPI_POWER(t));
}
/* A term of a softmax: 2^24 e^x for x <= 0, so that it is normal or 0 (x < -104.3). NaN stays. */
AMPI_INNER AMPI_FLOATS AMPI_F(exp_term)(AMPI_FLOATS x) {
    return AMPI_F(exp_scaled)(AMPI_AT_LEAST(x, AMPI_SET(-104.7f)), 24);
}

/* |x|, at most `most`. */
AMPI_INNER AMPI_FLOATS AMPI_F(size_to)(AMPI_FLOATS x, float most) {
    return AMPI_AT_MOST(AMPI_MAGNITUDE(x), AMPI_SET(most));
}
AMPI_INNER AMPI_FLOATS AMPI_F(sign_of)(AMPI_FLOATS size, AMPI_FLOATS x) { /* size with the sign of x */
    return AMPI_AS_FLOATS(AMPI_OR(AMPI_BITS(size), AMPI_AND(AMPI_BITS(x), AMPI_WORD(0x80000000u))));
}
AMPI_INNER AMPI_MASK AMPI_F(below_0)(AMPI_FLOATS x) { return AMPI_GREATER(AMPI_WORD(0), AMPI_BITS(x)); }
/* 2^(a b) for -127.4 < a b <= 0, which becomes 0 at -126.5: a b = n + r, |r| <= 0.5, 2^r by a polynomial with an error
   of 5e-7. */
AMPI_INNER AMPI_FLOATS AMPI_F(power_of)(AMPI_FLOATS a, AMPI_FLOATS b) {
    const AMPI_FLOATS shift = AMPI_SET(AMPI_SHIFT(0));
    AMPI_FLOATS t = AMPI_FUSE(a, b, shift), n = AMPI_SUB(t, shift);
    AMPI_FLOATS r = AMPI_FUSE(a, b, AMPI_NEGATIVE(n)), p;
    p = AMPI_FUSE(AMPI_SET(1.11255061e-3f), r, AMPI_SET(9.66632087e-3f));
    p = AMPI_FUSE(p, r, AMPI_SET(5.55740632e-2f));
    p = AMPI_FUSE(p, r, AMPI_SET(0.240223497f));
    p = AMPI_FUSE(p, r, AMPI_SET(0.693142831f));
    p = AMPI_FUSE(p, r, AMPI_SET(1.0f));
    return AMPI_MUL(p, AMPI_POWER(t));
}

/* GELU with the logistic function instead of tanh, x / (1 + e^(-2z)), from a = |x|, at most 10.03, where e^(-2z) has
   become 0, and E = e^(-2z) of a: 1 / (1 + E) and E / (1 + E) are the logistic function at a and at -a.
   E = 2^y, y = a (k1 + k3 a^2); of the error of that power a quarter arrives. */
AMPI_INNER AMPI_FLOATS AMPI_F(gelu_size)(AMPI_FLOATS x) { return AMPI_F(size_to)(x, 10.03f); }
AMPI_INNER AMPI_FLOATS AMPI_F(gelu_power)(AMPI_FLOATS a, AMPI_FLOATS square) {
    return AMPI_F(power_of)(a, AMPI_FUSE(square, AMPI_SET(-0.102943242f), AMPI_SET(-2.30220819f)));
}
AMPI_INNER AMPI_FLOATS AMPI_F(gelu)(AMPI_FLOATS x) {
    AMPI_FLOATS a = AMPI_F(gelu_size)(x), power = AMPI_F(gelu_power)(a, AMPI_MUL(a, a));
    AMPI_FLOATS s = AMPI_INVERSE(AMPI_ADD(AMPI_SET(1.0f), power));
    return AMPI_MUL(AMPI_CHOOSE(AMPI_F(below_0)(x), AMPI_NEGATIVE(AMPI_MUL(a, power)), x), s);
}
/* Its derivative, s + x s (1 - s) 2z', s the logistic function at x. */
AMPI_INNER AMPI_FLOATS AMPI_F(gelu_grad)(AMPI_FLOATS x) {
    AMPI_FLOATS a = AMPI_F(gelu_size)(x), square = AMPI_MUL(a, a), power = AMPI_F(gelu_power)(a, square);
    AMPI_FLOATS above = AMPI_INVERSE(AMPI_ADD(AMPI_SET(1.0f), power)), below = AMPI_MUL(power, above);
    AMPI_FLOATS slope = AMPI_FUSE(square, AMPI_SET(0.214064448f), AMPI_SET(1.59576917f)); /* 2z' */
    AMPI_FLOATS s = AMPI_CHOOSE(AMPI_F(below_0)(x), below, above);
    return AMPI_FUSE(AMPI_MUL(AMPI_F(sign_of)(a, x), slope), AMPI_MUL(below, above), s);
}
AMPI_INNER AMPI_FLOATS AMPI_F(gelu_back)(AMPI_FLOATS dy, AMPI_FLOATS x) { return AMPI_MUL(dy, AMPI_F(gelu_grad)(x)); }
/* GELU with the normal distribution, x Phi(x). With a = |x|, at most 13.25, where E = e^(-a^2/2) has become 0,
   Phi(-a) = E q(a), q of degree 10 with the least largest error of that product for a <= 5, 7e-8. */
AMPI_INNER AMPI_FLOATS AMPI_F(normal_size)(AMPI_FLOATS x) { return AMPI_F(size_to)(x, 13.25f); }
AMPI_INNER AMPI_FLOATS AMPI_F(normal_power)(AMPI_FLOATS a) {
    return AMPI_F(power_of)(AMPI_MUL(a, a), AMPI_SET(-0.721347520f));
}
AMPI_INNER AMPI_FLOATS AMPI_F(normal_share)(AMPI_FLOATS x, AMPI_FLOATS a, AMPI_FLOATS power) { /* Phi(x) */
    AMPI_FLOATS b = AMPI_AT_MOST(a, AMPI_SET(5.0f)), q;
    q = AMPI_FUSE(AMPI_SET(1.63172149e-6f), b, AMPI_SET(-3.52082789e-5f));
    q = AMPI_FUSE(q, b, AMPI_SET(3.39741702e-4f));
    q = AMPI_FUSE(q, b, AMPI_SET(-1.97463878e-3f));
    q = AMPI_FUSE(q, b, AMPI_SET(7.93941412e-3f));
    q = AMPI_FUSE(q, b, AMPI_SET(-2.43139602e-2f));
    q = AMPI_FUSE(q, b, AMPI_SET(6.11549094e-2f));
    q = AMPI_FUSE(q, b, AMPI_SET(-0.132513806f));
    q = AMPI_FUSE(q, b, AMPI_SET(0.249916792f));
    q = AMPI_FUSE(q, b, AMPI_SET(-0.398936510f));
    q = AMPI_MUL(power, AMPI_FUSE(q, b, AMPI_SET(0.499999940f)));
    return AMPI_CHOOSE(AMPI_F(below_0)(x), q, AMPI_SUB(AMPI_SET(1.0f), q));
}
AMPI_INNER AMPI_FLOATS AMPI_F(gelu_erf)(AMPI_FLOATS x) {
    AMPI_FLOATS a = AMPI_F(normal_size)(x), share = AMPI_F(normal_share)(x, a, AMPI_F(normal_power)(a));
    return AMPI_MUL(AMPI_CHOOSE(AMPI_F(below_0)(x), AMPI_NEGATIVE(a), x), share);
}
AMPI_INNER AMPI_FLOATS AMPI_F(gelu_erf_back)(AMPI_FLOATS dy, AMPI_FLOATS x) { /* Phi(x) + x E / sqrt(2 pi) */
    AMPI_FLOATS a = AMPI_F(normal_size)(x), power = AMPI_F(normal_power)(a);
    AMPI_FLOATS slope = AMPI_MUL(AMPI_F(sign_of)(a, x), AMPI_SET(0.398942280f));
    return AMPI_MUL(dy, AMPI_FUSE(slope, power, AMPI_F(normal_share)(x, a, power)));
}

/* The logistic function, s = 1 / (1 + E) at a = |x| and E s at -a; a at most 88.3, where E = e^-a has become 0. */
AMPI_INNER AMPI_FLOATS AMPI_F(logistic_power)(AMPI_FLOATS a) { return AMPI_F(exp_scaled)(AMPI_NEGATIVE(a), 0); }
AMPI_INNER AMPI_FLOATS AMPI_F(logistic)(AMPI_FLOATS power) { return AMPI_INVERSE(AMPI_ADD(AMPI_SET(1.0f), power)); }
AMPI_INNER AMPI_FLOATS AMPI_F(sigmoid)(AMPI_FLOATS x) {
    AMPI_FLOATS power = AMPI_F(logistic_power)(AMPI_F(size_to)(x, 88.3f)), s = AMPI_F(logistic)(power);
    return AMPI_CHOOSE(AMPI_F(below_0)(x), AMPI_MUL(power, s), s);
}
AMPI_INNER AMPI_FLOATS AMPI_F(sigmoid_back)(AMPI_FLOATS dy, AMPI_FLOATS y) {
    return AMPI_MUL(dy, AMPI_FUSE(AMPI_NEGATIVE(y), y, y));
}
AMPI_INNER AMPI_FLOATS AMPI_F(silu)(AMPI_FLOATS x) {
    AMPI_FLOATS a = AMPI_F(size_to)(x, 88.3f), power = AMPI_F(logistic_power)(a), s = AMPI_F(logistic)(power);
    return AMPI_MUL(AMPI_CHOOSE(AMPI_F(below_0)(x), AMPI_NEGATIVE(AMPI_MUL(a, power)), x), s);
}
AMPI_INNER AMPI_FLOATS AMPI_F(silu_back)(AMPI_FLOATS dy, AMPI_FLOATS x) { /* s + x s (1 - s), s at x */
    AMPI_FLOATS a = AMPI_F(size_to)(x, 88.3f), power = AMPI_F(logistic_power)(a);
    AMPI_FLOATS above = AMPI_F(logistic)(power), below = AMPI_MUL(power, above);
    AMPI_FLOATS s = AMPI_CHOOSE(AMPI_F(below_0)(x), below, above);
    return AMPI_MUL(dy, AMPI_FUSE(AMPI_F(sign_of)(a, x), AMPI_MUL(below, above), s));
}
/* tanh of a = |x|: from 0.6 on 1 - 2 E / (1 + E), E = e^(-2a); below a + a^3 p(a^2), p of degree 4 with the least
   largest relative error, 3e-9. */
AMPI_INNER AMPI_FLOATS AMPI_F(tanh)(AMPI_FLOATS x) {
    AMPI_FLOATS a = AMPI_F(size_to)(x, 10.0f), square = AMPI_MUL(a, a), p, large;
    AMPI_FLOATS power = AMPI_F(logistic_power)(AMPI_ADD(a, a));
    large = AMPI_FUSE(AMPI_MUL(power, AMPI_SET(-2.0f)), AMPI_F(logistic)(power), AMPI_SET(1.0f));
    p = AMPI_FUSE(AMPI_SET(-5.89515828e-3f), square, AMPI_SET(2.07959712e-2f));
    p = AMPI_FUSE(p, square, AMPI_SET(-5.37838303e-2f));
    p = AMPI_FUSE(p, square, AMPI_SET(0.133319244f));
    p = AMPI_FUSE(p, square, AMPI_SET(-0.333332986f));
    p = AMPI_FUSE(AMPI_MUL(a, square), p, a);
    return AMPI_F(sign_of)(AMPI_CHOOSE(AMPI_GREATER(AMPI_WORD(0x3f19999au), AMPI_BITS(a)), p, large), x);
}
AMPI_INNER AMPI_FLOATS AMPI_F(tanh_back)(AMPI_FLOATS dy, AMPI_FLOATS y) {
    return AMPI_MUL(dy, AMPI_FUSE(AMPI_NEGATIVE(y), y, AMPI_SET(1.0f)));
}
/* As bits and signed, negative numbers are those above -0 and up to -Inf; NaN stays. */
AMPI_INNER AMPI_FLOATS AMPI_F(relu)(AMPI_FLOATS x) {
    AMPI_WORDS b = AMPI_BITS(x), y = AMPI_SELECT(AMPI_GREATER(b, AMPI_WORD(0x80000000u)), AMPI_WORD(0), b);
    return AMPI_AS_FLOATS(AMPI_SELECT(AMPI_GREATER(AMPI_WORD(0xff800001u), b), y, b));
}
/* 0 where y <= 0, else dy: also where y is NaN of any sign, so that a NaN of dy arrives. A mask would be !(y <= 0). */
AMPI_INNER AMPI_FLOATS AMPI_F(relu_back)(AMPI_FLOATS dy, AMPI_FLOATS y) {
    AMPI_WORDS above = AMPI_BITS(AMPI_AT_LEAST(y, AMPI_SET(0.0f))); /* 0, more, and NaN of any sign */
    AMPI_MASK open = AMPI_GREATER(AMPI_AND(above, AMPI_WORD(0x7fffffffu)), AMPI_WORD(0));
    return AMPI_AS_FLOATS(AMPI_SELECT(open, AMPI_BITS(dy), AMPI_WORD(0)));
}
#endif

#if AMPI_PASS == AMPI_PASS_MATH || AMPI_PASS == AMPI_PASS_VECTOR
/* x * by, its magnitude at most the number whose bits are `most`; Inf and NaN as they are. */
AMPI_INNER AMPI_FLOATS AMPI_F(fit_one)(AMPI_FLOATS x, AMPI_FLOATS by, AMPI_WORDS most) {
    AMPI_WORDS bits = AMPI_BITS(x);
    AMPI_WORDS sign = AMPI_AND(bits, AMPI_WORD(0x80000000u));
    AMPI_WORDS v = AMPI_BITS(AMPI_MUL(x, by));
    AMPI_WORDS size = AMPI_AND(v, AMPI_WORD(0x7fffffffu));
    v = AMPI_SELECT(AMPI_GREATER(size, most), AMPI_OR(most, sign), v);
    size = AMPI_AND(bits, AMPI_WORD(0x7fffffffu));
    return AMPI_AS_FLOATS(AMPI_SELECT(AMPI_GREATER(size, AMPI_WORD(0x7f7fffffu)), bits, v));
}
#endif

/* ---- rules: the optimizers ---- */
#if AMPI_PASS == AMPI_PASS_UPDATE || AMPI_PASS == AMPI_PASS_VECTOR
AMPI_INNER AMPI_FLOATS AMPI_F(prepare_one)(AMPI_FLOATS u, const amp_coef *c) {
    u = AMPI_MUL(AMPI_MUL(u, AMPI_SET(c->inv)), AMPI_SET(c->clip));
    return ampi_nonzero(c->limit) ? AMPI_F(clamp)(u, AMPI_SET(c->limit)) : u;
}
AMPI_INNER AMPI_FLOATS AMPI_F(decayed)(AMPI_FLOATS w, AMPI_FLOATS u, const amp_coef *c) {
    return ampi_nonzero(c->l2) ? AMPI_ADD(u, AMPI_MUL(AMPI_SET(c->l2), w)) : u;
}
AMPI_INNER AMPI_FLOATS AMPI_F(average)(float of_old, AMPI_FLOATS old, float of_new, AMPI_FLOATS x) {
    return AMPI_ADD(AMPI_MUL(AMPI_SET(of_old), old), AMPI_MUL(AMPI_SET(of_new), x));
}
AMPI_INNER AMPI_FLOATS AMPI_F(adam_step)(AMPI_FLOATS m, AMPI_FLOATS v, const amp_coef *c) {
    AMPI_FLOATS root = AMPI_MUL(AMPI_SQRT(v), AMPI_SET(c->rsqrt_bc2));
    root = AMPI_ADD(root, AMPI_SET(c->eps));
    return AMPI_MUL(AMPI_SET(c->step_size), AMPI_DIV(m, root));
}
AMPI_INNER AMPI_FLOATS AMPI_F(adam_one)(
    AMPI_FLOATS *w, AMPI_FLOATS *m, AMPI_FLOATS *v, AMPI_FLOATS u, const amp_coef *c) {
    AMPI_FLOATS step;
    u = AMPI_F(decayed)(*w, u, c);
    *m = AMPI_F(average)(c->beta1, *m, c->one_beta1, u);
    *v = AMPI_F(average)(c->beta2, *v, c->one_beta2, AMPI_MUL(u, u));
    step = AMPI_F(adam_step)(*m, *v, c);
    *w = AMPI_SUB(AMPI_MUL(*w, AMPI_SET(c->decay)), step);
    return step;
}
AMPI_INNER AMPI_FLOATS AMPI_F(sgd_one)(
    AMPI_FLOATS *w, AMPI_FLOATS *b, AMPI_FLOATS *v, AMPI_FLOATS u, const amp_coef *c) {
    (void)v;
    u = AMPI_F(decayed)(*w, u, c);
    if (ampi_nonzero(c->momentum)) {
        *b = c->first ? u : AMPI_F(average)(c->momentum, *b, c->one_dampening, u);
        u = c->nesterov ? AMPI_ADD(u, AMPI_MUL(AMPI_SET(c->momentum), *b)) : *b;
    }
    u = AMPI_MUL(AMPI_SET(c->lr), u);
    *w = AMPI_SUB(*w, u);
    return u;
}
AMPI_INNER AMPI_FLOATS AMPI_F(lion_one)(
    AMPI_FLOATS *w, AMPI_FLOATS *m, AMPI_FLOATS *v, AMPI_FLOATS u, const amp_coef *c) {
    AMPI_FLOATS direction = AMPI_F(average)(c->beta1, *m, c->one_beta1, u);
    AMPI_FLOATS step = AMPI_F(with_sign)(AMPI_SET(c->lr), direction);
    (void)v;
    *w = AMPI_SUB(AMPI_MUL(*w, AMPI_SET(c->decay)), step);
    *m = AMPI_F(average)(c->beta2, *m, c->one_beta2, u);
    return step;
}
/* The rule of a kind, which is a constant wherever this is inlined. Returns what was subtracted from the weight. */
AMPI_INNER AMPI_FLOATS AMPI_F(update_one)(
    amp_update_kind update, AMPI_FLOATS *w, AMPI_FLOATS *m, AMPI_FLOATS *v, AMPI_FLOATS u, const amp_coef *c) {
#  define AMP_X(kind, rule, moments) \
    if (update == kind) return AMPI_F(rule##_one)(w, m, v, u, c);
    AMP_UPDATE_LIST(AMP_X)
#  undef AMP_X
    return u;
}
/* An update times 2^(128 - exponent) of the weight before it, but at most the power `most`: see amp_spacing_of. */
AMPI_INNER AMPI_FLOATS AMPI_F(in_spacings)(AMPI_FLOATS step, AMPI_FLOATS before, AMPI_WORDS most) {
    const AMPI_WORDS exponent = AMPI_WORD(0x7f800000u);
    AMPI_WORDS power = AMPI_XOR(AMPI_AND(AMPI_BITS(before), exponent), exponent);
    return AMPI_MUL(step, AMPI_AS_FLOATS(AMPI_MIN(power, most)));
}
#endif

