#if AMPI_PASS == AMPI_PASS_SCALAR || AMPI_PASS == AMPI_PASS_VECTOR
/* ---- loops over floats; what is left of n is done by the scalar path.
   tests: tests/test_arrays.c, tests/test_step.c, tests/test_layouts.c ---- */
#  define AMPI_LEFT(i, n) (AMPI_WIDTH > 1u && (i) < (n))
AMPI_OUTER int AMPI_F(scale)(float *to, const float *u, size_t n, float by) {
    const AMPI_WORDS exponent = AMPI_WORD(0x7f800000u), one = AMPI_WORD(0x00800000u);
    AMPI_WORDS any = AMPI_WORD(0);
    size_t i;
    int bad;
    for (i = 0; i + AMPI_WIDTH <= n; i += AMPI_WIDTH) {
        AMPI_FLOATS x = AMPI_MUL(AMPI_LOAD(u + i), AMPI_SET(by));
        AMPI_STORE(to + i, x);
        any = AMPI_OR(any, AMPI_ADD_WORDS(AMPI_AND(AMPI_BITS(x), exponent), one));
    }
    bad = AMPI_ANY(AMPI_AND(any, AMPI_WORD(0x80000000u)));
    if (AMPI_LEFT(i, n)) bad |= ampi_scalar_scale(to + i, u + i, n - i, by);
    return bad;
}
AMPI_OUTER void AMPI_F(axpy)(float *to, const float *u, size_t n, float by) {
    size_t i;
    for (i = 0; i + AMPI_WIDTH <= n; i += AMPI_WIDTH) {
        AMPI_FLOATS term = AMPI_MUL(AMPI_SET(by), AMPI_LOAD(u + i));
        AMPI_STORE(to + i, AMPI_ADD(AMPI_LOAD(to + i), term));
    }
    AMPI_F(done)();
    if (AMPI_LEFT(i, n)) ampi_scalar_axpy(to + i, u + i, n - i, by);
}
AMPI_OUTER void AMPI_F(exps)(float *u, size_t n, float top) {
    size_t i;
    for (i = 0; i + AMPI_WIDTH <= n; i += AMPI_WIDTH) {
        AMPI_STORE(u + i, AMPI_F(exp_term)(AMPI_SUB(AMPI_LOAD(u + i), AMPI_SET(top))));
    }
    AMPI_F(done)();
    if (AMPI_LEFT(i, n)) ampi_scalar_exps(u + i, n - i, top);
}
AMPI_OUTER void AMPI_F(softmax_shares)(float *u, size_t n, float by, float less) {
    const AMPI_FLOATS minus = AMPI_NEGATIVE(AMPI_SET(less));
    size_t i;
    for (i = 0; i + AMPI_WIDTH <= n; i += AMPI_WIDTH)
        AMPI_STORE(u + i, AMPI_FUSE(AMPI_LOAD(u + i), AMPI_SET(by), minus));
    AMPI_F(done)();
    if (AMPI_LEFT(i, n)) ampi_scalar_softmax_shares(u + i, n - i, by, less);
}
AMPI_OUTER void AMPI_F(targets)(float *q, const float *w, size_t n, float keep, float share) {
    size_t i;
    for (i = 0; i + AMPI_WIDTH <= n; i += AMPI_WIDTH) {
        AMPI_FLOATS x = AMPI_ADD(AMPI_SET(share), AMPI_MUL(AMPI_SET(keep), AMPI_LOAD(q + i)));
        AMPI_STORE(q + i, w ? AMPI_MUL(x, AMPI_LOAD(w + i)) : x);
    }
    AMPI_F(done)();
    if (AMPI_LEFT(i, n)) ampi_scalar_targets(q + i, w ? w + i : NULL, n - i, keep, share);
}
AMPI_OUTER void AMPI_F(misses)(float *x, const float *q, size_t n, float max) {
    size_t i;
    for (i = 0; i + AMPI_WIDTH <= n; i += AMPI_WIDTH) {
        AMPI_FLOATS one = AMPI_LOAD(q + i);
        AMPI_FLOATS miss = AMPI_MUL(AMPI_SUB(AMPI_SET(max), AMPI_LOAD(x + i)), one);
        AMPI_STORE(x + i, AMPI_CHOOSE(AMPI_NONZERO(one), miss, one));
    }
    AMPI_F(done)();
    if (AMPI_LEFT(i, n)) ampi_scalar_misses(x + i, q + i, n - i, max);
}
AMPI_OUTER void AMPI_F(grad_each)(float *u, const float *q, size_t n, float by, float factor) {
    size_t i;
    for (i = 0; i + AMPI_WIDTH <= n; i += AMPI_WIDTH) {
        AMPI_FLOATS less = AMPI_MUL(AMPI_LOAD(q + i), AMPI_SET(factor));
        AMPI_STORE(u + i, AMPI_FUSE(AMPI_LOAD(u + i), AMPI_SET(by), AMPI_NEGATIVE(less)));
    }
    AMPI_F(done)();
    if (AMPI_LEFT(i, n)) ampi_scalar_grad_each(u + i, q + i, n - i, by, factor);
}
/* What is left of n, fewer than a vector, in a vector: its activation takes as long as that of one float. */
#  ifndef AMPI_HAS_SOME
AMPI_INNER AMPI_FLOATS AMPI_F(load_some)(const float *u, size_t n) {
    float some[AMPI_WIDTH] = {0};
    memcpy(some, u, n * sizeof *u);
    return AMPI_LOAD(some);
}
AMPI_INNER void AMPI_F(store_some)(float *u, size_t n, AMPI_FLOATS x) {
    float some[AMPI_WIDTH];
    AMPI_STORE(some, x);
    memcpy(u, some, n * sizeof *u);
}
#  endif
/* Activations: n is a multiple of AMPI_WIDTH; the rules, which are long, stand in the code once. */
#define AMPI_ACT_LOOPS(name, rule, aux) \
    AMPI_INNER void AMPI_F(rule##_all)(float *to, const float *x, size_t n) { \
        size_t i; \
        for (i = 0; i < n; i += AMPI_WIDTH) \
            AMPI_STORE(to + i, AMPI_F(rule)(AMPI_LOAD(x + i))); \
    } \
    AMPI_INNER void AMPI_F(rule##_back_all)(float *to, const float *dy, const float *saved, size_t n) { \
        size_t i; \
        for (i = 0; i < n; i += AMPI_WIDTH) \
            AMPI_STORE(to + i, AMPI_F(rule##_back)(AMPI_LOAD(dy + i), AMPI_LOAD(saved + i))); \
    }
AMPI_ACT_LIST(AMPI_ACT_LOOPS)
#undef AMPI_ACT_LOOPS
AMPI_OUTER void AMPI_F(act)(float *to, const float *x, size_t n, amp_act act) {
    const size_t left = n % AMPI_WIDTH;
#define AMP_X(name, rule, aux) \
    if (act == name) AMPI_F(rule##_all)(to, x, n - left);
    AMPI_ACT_LIST(AMP_X)
#undef AMP_X
    AMPI_F(done)();
    if (left) { /* in a vector: it takes as long as one float */
        float some[AMPI_WIDTH] = {0};
        memcpy(some, x + n - left, left * sizeof *x);
        AMPI_F(act)(some, some, AMPI_WIDTH, act);
        memcpy(to + n - left, some, left * sizeof *to);
    }
}
AMPI_OUTER void AMPI_F(act_grad)(float *to, const float *dy, const float *saved, size_t n, amp_act act) {
    const size_t left = n % AMPI_WIDTH;
#define AMP_X(name, rule, aux) \
    if (act == name) AMPI_F(rule##_back_all)(to, dy, saved, n - left);
    AMPI_ACT_LIST(AMP_X)
#undef AMP_X
    AMPI_F(done)();
    if (left) {
        float some[AMPI_WIDTH] = {0}, some_saved[AMPI_WIDTH] = {0};
        memcpy(some, dy + n - left, left * sizeof *dy);
        memcpy(some_saved, saved + n - left, left * sizeof *saved);
        AMPI_F(act_grad)(some, some, some_saved, AMPI_WIDTH, act);
        memcpy(to + n - left, some, left * sizeof *to);
    }
}
#  ifdef AMPI_HAS_FMA
/* ReLU from 16 bits to 16 bits, as AMPI_F(relu) and AMPI_F(relu_back) have it, in words of 16 bits: signed, numbers
   below 0 are those above -0 and up to -Inf. NaN stays, and becomes quiet. */
typedef int16_t AMPI_F(i16) __attribute__((__vector_size__(4u * AMPI_WIDTH)));
typedef AMPI_F(i16) AMPI_F(i16_at) __attribute__((__aligned__(1), __may_alias__));
AMPI_INNER void AMPI_F(relu16_step)(void *to, const void *from, const void *saved, int16_t inf, int16_t quiet) {
    AMPI_F(i16) x = *(const AMPI_F(i16_at) *)from;
    const AMPI_F(i16) nan = (x & 0x7fff) > inf;
    const AMPI_F(i16) below = (x < 0) & (x > INT16_MIN) & ~nan;
    x |= nan & quiet;
    if (saved) {
        const AMPI_F(i16) y = *(const AMPI_F(i16_at) *)saved;
        const AMPI_F(i16) open = (y > 0) | ((y & 0x7fff) > inf);
        x &= open;
    } else {
        x &= ~below;
    }
    *(AMPI_F(i16_at) *)to = x;
}
AMPI_OUTER void AMPI_F(relu16)(char *to, const char *x, const char *saved, amp_dtype t, size_t n) {
    const int16_t inf = t == AMP_F16 ? 0x7c00 : 0x7f80;
    const int16_t quiet = t == AMP_F16 ? 0x0200 : 0x0040;
    const size_t step = 4u * AMPI_WIDTH;
    const size_t bytes = 2u * n;
    size_t i;
    for (i = 0; i + step <= bytes; i += step)
        AMPI_F(relu16_step)(to + i, x + i, saved ? saved + i : NULL, inf, quiet);
    if (i < bytes) {
        char left[4u * AMPI_WIDTH] = {0};
        char left_saved[4u * AMPI_WIDTH] = {0};
        memcpy(left, x + i, bytes - i);
        if (saved) memcpy(left_saved, saved + i, bytes - i);
        AMPI_F(relu16_step)(left, left, saved ? left_saved : NULL, inf, quiet);
        memcpy(to + i, left, bytes - i);
    }
    AMPI_F(done)();
}
#  endif
/* A mask of ReLU's y: a bit for each that is not 0, NaN too. And dy where the bit is 1, else 0. */
AMPI_OUTER void AMPI_F(mask_of)(uint8_t *bits, const float *y, size_t n) {
    size_t i, k;
    for (i = 0; i + AMPI_WIDTH <= n; i += AMPI_WIDTH) {
        const AMPI_WORDS size = AMPI_AND(AMPI_BITS(AMPI_LOAD(y + i)), AMPI_WORD(0x7fffffffu));
        const AMPI_MASK open = AMPI_GREATER(size, AMPI_WORD(0));
        uint32_t each[AMPI_WIDTH], all = 0;
        AMPI_STORE_WORDS(each, AMPI_SELECT(open, AMPI_LOAD_WORDS(ampi_places), AMPI_WORD(0)));
        for (k = 0; k < AMPI_WIDTH; k++)
            all |= each[k];
        if (i % 8u == 0) bits[i / 8u] = 0;
        bits[i / 8u] |= (uint8_t)(all << i % 8u);
        if (AMPI_WIDTH > 8u) bits[i / 8u + 1u] = (uint8_t)(all >> 8);
    }
    AMPI_F(done)();
    for (; i < n; i++) {
        if (i % 8u == 0) bits[i / 8u] = 0;
        if (ampi_bits(y[i]) & 0x7fffffffu) bits[i / 8u] |= (uint8_t)(1u << i % 8u);
    }
}
AMPI_OUTER void AMPI_F(mask_grad)(float *dy, const uint8_t *bits, size_t n) {
    const AMPI_WORDS places = AMPI_LOAD_WORDS(ampi_places);
    size_t i;
    for (i = 0; i + AMPI_WIDTH <= n; i += AMPI_WIDTH) {
        uint32_t all = (uint32_t)bits[i / 8u] >> i % 8u;
        AMPI_MASK open;
        if (AMPI_WIDTH > 8u) all |= (uint32_t)bits[i / 8u + 1u] << 8;
        open = AMPI_GREATER(AMPI_AND(AMPI_WORD(all), places), AMPI_WORD(0));
        AMPI_STORE(dy + i, AMPI_AS_FLOATS(AMPI_SELECT(open, AMPI_BITS(AMPI_LOAD(dy + i)), AMPI_WORD(0))));
    }
    AMPI_F(done)();
    for (; i < n; i++)
        if (!(bits[i / 8u] >> i % 8u & 1u)) dy[i] = 0.0f;
}
AMPI_OUTER void AMPI_F(drop)(float *u, const uint32_t *random, size_t n, uint32_t threshold, float factor) {
    const AMPI_WORDS sign = AMPI_WORD(0x80000000u); /* comparisons are signed */
    size_t i;
    for (i = 0; i + AMPI_WIDTH <= n; i += AMPI_WIDTH) {
        AMPI_WORDS kept = AMPI_BITS(AMPI_MUL(AMPI_LOAD(u + i), AMPI_SET(factor)));
        AMPI_WORDS drawn = AMPI_XOR(AMPI_LOAD_WORDS(random + i), sign);
        AMPI_MASK dropped = AMPI_GREATER(AMPI_WORD(threshold ^ 0x80000000u), drawn);
        AMPI_STORE(u + i, AMPI_AS_FLOATS(AMPI_SELECT(dropped, AMPI_WORD(0), kept)));
    }
    AMPI_F(done)();
    if (AMPI_LEFT(i, n)) ampi_scalar_drop(u + i, random + i, n - i, threshold, factor);
}
AMPI_OUTER void AMPI_F(prepare)(float *to, const float *u, size_t n, const amp_coef *c) {
    size_t i;
    for (i = 0; i + AMPI_WIDTH <= n; i += AMPI_WIDTH)
        AMPI_STORE(to + i, AMPI_F(prepare_one)(AMPI_LOAD(u + i), c));
    AMPI_F(done)();
    if (AMPI_LEFT(i, n)) ampi_scalar_prepare(to + i, u + i, n - i, c);
}
/* Lost updates, counted in vectors: each lane has sums of its own. */
typedef struct AMPI_F(counts) {
    AMPI_WORDS updates;
    AMPI_WORDS lost;
    AMPI_WORDS most;
    AMPI_FLOATS ratio;
} AMPI_F(counts);
/* An update of the weights i ... from `old` to w. It changes a weight of 0, so SAME is about bits. */
AMPI_INNER void AMPI_F(tally)(
    ampi_tally *t, int again, AMPI_F(counts) * s, size_t i, AMPI_FLOATS step, AMPI_FLOATS old, AMPI_FLOATS w) {
    AMPI_MASK update = AMPI_NONZERO(step);
    AMPI_MASK same = AMPI_SAME(update, again ? w : old, w);
    if (again)
        memcpy(t->moved + i / AMPI_WIDTH * sizeof same, &same, sizeof same);
    else
        s->lost = AMPI_ADD_IF(s->lost, same);
    s->updates = AMPI_ADD_IF(s->updates, update);
    s->ratio = AMPI_LARGER_ABS(s->ratio, AMPI_F(in_spacings)(step, old, s->most));
}
AMPI_OUTER void AMPI_F(count_sizes)(ampi_tally *t, const float *w, const float *u, size_t n, float by) {
    const uint32_t again = t->again; /* no store can change it */
    AMPI_F(counts) s;
    size_t i;
    s.updates = AMPI_LOAD_WORDS(t->updates);
    s.lost = AMPI_LOAD_WORDS(t->lost);
    s.most = AMPI_WORD(t->spacing.most);
    s.ratio = AMPI_LOAD(t->ratio);
    for (i = t->at; i + AMPI_WIDTH <= n; i += AMPI_WIDTH) {
        AMPI_FLOATS step = AMPI_MUL(AMPI_LOAD(u + i), AMPI_SET(by));
        AMPI_F(tally)(t, (int)again, &s, i, step, AMPI_LOAD(t->old + i), AMPI_LOAD(w + i));
    }
    AMPI_STORE_WORDS(t->updates, s.updates);
    AMPI_STORE_WORDS(t->lost, s.lost);
    AMPI_STORE(t->ratio, s.ratio);
    t->at = i;
    AMPI_F(done)();
    if (AMPI_LEFT(i, n)) ampi_scalar_count_sizes(t, w, u, n, by);
}
AMPI_OUTER void AMPI_F(count_unchanged)(ampi_tally *t, const char *model, const char *low, size_t n) {
    AMPI_WORDS lost = AMPI_LOAD_WORDS(t->lost);
    size_t i;
    for (i = t->at; i + AMPI_WIDTH <= n; i += AMPI_WIDTH) {
        AMPI_MASK same;
        memcpy(&same, t->moved + i / AMPI_WIDTH * sizeof same, sizeof same);
        same = AMPI_SAME16(same, t->was[0] + i, model + 2u * i);
        if (low) same = AMPI_SAME16(same, t->was[1] + i, low + 2u * i);
        lost = AMPI_ADD_IF(lost, same);
    }
    AMPI_STORE_WORDS(t->lost, lost);
    t->at = i;
    AMPI_F(done)();
    if (AMPI_LEFT(i, n)) ampi_scalar_count_unchanged(t, model, low, n);
}
/* A loop for each kind of update; 1 if a second moment is Inf. Who counts lost updates asks for the steps, which is one
   branch a vector: no second loop is compiled for it. */
AMPI_INNER int AMPI_F(update)(
    amp_update_kind kind, float *w, float *m, float *v, const float *u, size_t n, const amp_coef *c, float *steps) {
    const int moments = amp_moments_of(kind, c->momentum);
    const amp_coef own = *c;          /* no store can change it, so it is read once */
    AMPI_FLOATS top = AMPI_SET(0.0f); /* of second moments */
    size_t i;
    int inf;
    for (i = 0; i + AMPI_WIDTH <= n; i += AMPI_WIDTH) {
        AMPI_FLOATS wi = AMPI_LOAD(w + i), step;
        AMPI_FLOATS mi = moments > 0 ? AMPI_LOAD(m + i) : AMPI_SET(0.0f);
        AMPI_FLOATS vi = moments > 1 ? AMPI_LOAD(v + i) : AMPI_SET(0.0f);
        AMPI_FLOATS ui = AMPI_F(prepare_one)(AMPI_LOAD(u + i), &own);
        step = AMPI_F(update_one)(kind, &wi, &mi, &vi, ui, &own);
        AMPI_STORE(w + i, wi);
        if (moments > 0) AMPI_STORE(m + i, mi);
        if (moments > 1) AMPI_STORE(v + i, vi);
        if (moments > 1) top = AMPI_LARGER_ABS(top, vi);
        if (steps) AMPI_STORE(steps + i, step);
    }
    inf = AMPI_ANY(AMPI_AND(AMPI_ADD_WORDS(AMPI_BITS(top), AMPI_WORD(0x00800000u)), AMPI_WORD(0x80000000u)));
    AMPI_F(done)();
    return inf;
}
#  define AMP_X(kind, rule, moments) \
    AMPI_OUTER int AMPI_F(rule)( \
        float *w, float *m, float *v, const float *u, size_t n, const amp_coef *c, float *steps) { \
        const size_t i = n - n % AMPI_WIDTH; \
        int inf = AMPI_F(update)(kind, w, m, v, u, n, c, steps); \
        if (!AMPI_LEFT(i, n)) return inf; \
        if (m) m += i; \
        if (v) v += i; \
        return inf | ampi_scalar_##rule(w + i, m, v, u + i, n - i, c, steps ? steps + i : NULL); \
    }
AMP_UPDATE_LIST(AMP_X)
#  undef AMP_X
#endif

