/* ---- update: elementwise, so a chunk may be cut into pieces for more blocks, without changing a bit; then
   accumulation and clipping   tests: tests/test_step.c, tests/test_layouts.c, tests/test_report.c ---- */

/* Elements of a chunk that a block does at a time: few enough to share out evenly, enough to be worth a start. */
#define AMPI_PIECE 16384u

typedef struct ampi_k_piece {
    uint32_t param, n;
    uint64_t base;
} ampi_k_piece; /* elements [base, base + n) of a parameter; n may be 0 */

/* Pieces of a table whose chunks are cut into 2^cuts are taken from the end: of the gradients that an inspection has
   just read, the last ones are still in the cache. Number `back` from the front, in chunk c of a parameter of so many
   elements. */
AMPI_K uint64_t ampi_k_from_end(const amp_param_table *t, uint32_t cuts, uint64_t i) {
    return ((uint64_t)t->n_chunks << cuts) - 1u - i;
}
AMPI_K ampi_k_piece ampi_k_piece_in(amp_chunk c, uint32_t cuts, uint64_t back, uint64_t count) {
    uint64_t size = AMP_CHUNK >> cuts, begin = (uint64_t)c.index * AMP_CHUNK + (back & ((1u << cuts) - 1u)) * size;
    ampi_k_piece p;
    p.param = c.param;
    p.base = begin;
    if (begin >= count)
        p.n = 0;
    else
        p.n = (uint32_t)(count - begin < size ? count - begin : size);
    return p;
}
AMPI_K ampi_k_piece ampi_k_piece_of(const amp_param_table *t, uint32_t cuts, uint64_t i) {
    uint64_t back = ampi_k_from_end(t, cuts, i);
    amp_chunk c = t->chunks[back >> cuts];
    return ampi_k_piece_in(c, cuts, back, t->entries[c.param].count);
}

/* What one piece's update needs to know of its parameter. kind: an amp_update_kind, or AMPI_K_APPLY, whose
   "gradients" are updates made elsewhere. */
#define AMPI_K_APPLY (-1)
#define AMPI_STORED  (1u + AMP_MOMENTS) /* kinds of numbers that are drawn: amp_stored */
static_assert(AMP_MOMENTS == 2, "here each moment array is named: where it is loaded, stored and aligned");
typedef struct ampi_k_updating {
    amp_param_entry e;
    void *grad, *weights;
    float *zero; /* accumulators to be emptied, or NULL */
    amp_dtype grad_type, weight_type;
    amp_draw draw;
    const ampi_k_u4 *keys; /* AMPI_KEYS for each amp_stored */
    int stochastic, moments, pair, drawn;
    amp_dtype low_type;
    int coded;     /* moments in 8 bits; `moments` are the others */
    int brief;     /* Adam: ampi_k_adam_brief may; SGD: this is the parameter's first step */
    int grad_wide; /* gradients are aligned where the other arrays are */
} ampi_k_updating;

/* Lost updates of a piece: what one thread finds. */
typedef struct ampi_k_tally {
    amp_spacing spacing;
    uint32_t every, counts; /* updates in the low half, lost ones in the high one: a register less */
    float ratio;            /* without spacing.rest */
} ampi_k_tally;
static_assert(AMP_CHUNK / AMP_BLOCK < 65536u, "what a thread counts of a piece, in 16 bits");
AMPI_K ampi_k_tally ampi_k_tally_begin(const amp_param_entry *e, uint32_t every) {
    ampi_k_tally t = {amp_spacing_of(e->layout, e->model_dtype), every, 0, 0.0f};
    return t;
}
/* The update of a weight from `old` to w, before it is stored: returns 1 if it is one, and it has to be looked at again
   when the weight was stored. */
AMPI_K uint32_t ampi_k_tally_update(ampi_k_tally *t, float update, uint32_t old, uint32_t w) {
    uint32_t size = ampi_bits(update) & 0x7fffffffu, is = size - 1u < 0x7f800000u;
    t->ratio = ampi_larger(t->ratio, ampi_scalar_in_spacings(ampi_float(size), ampi_float(old), t->spacing.most));
    t->counts += is;
    return is & (uint32_t)!amp_is_nan(ampi_float(w));
}
/* By the whole block. */
AMPI_K void ampi_k_tally_end(const ampi_k_tally *t, amp_update_count *to) {
    AMP_SHARED(uint32_t, sum, 3); /* updates, lost, ratio */
    if (threadIdx.x < 3u) sum[threadIdx.x] = 0;
    __syncthreads();
    if (t->counts) {
        atomicAdd(&sum[0], t->counts & 0xffffu);
        atomicAdd(&sum[1], t->counts >> 16);
        atomicMax(&sum[2], ampi_bits(amp_mul(t->ratio, t->spacing.rest)));
    }
    __syncthreads();
    if (threadIdx.x == 0 && sum[0]) {
        ampi_k_add64(&to->updates, sum[0]);
        ampi_k_add64(&to->lost, sum[1]);
        atomicMax((unsigned *)&to->ratio, sum[2]);
    }
    __syncthreads();
}

/* An update works on eight elements at a time, on four where moments have 8 bits, or on one: at the ends of arrays, and
   where addresses are odd. These give all of them the same names. Four are the first half of eight, whose other half is
   0, for compilers to leave out. */
typedef struct ampi_k_raw4 { ampi_k_raw eight; } ampi_k_raw4;
template <int N> struct ampi_k_raw_of { typedef ampi_k_raw type; };
template <> struct ampi_k_raw_of<4> { typedef ampi_k_raw4 type; };
template <> struct ampi_k_raw_of<1> { typedef uint32_t type; };
AMPI_K void ampi_k_fetch(ampi_k_raw *r, const void *p, amp_dtype t, size_t i, int wide) {
    ampi_k_fetch8(r, p, t, i, wide);
}
AMPI_K void ampi_k_fetch(ampi_k_raw4 *r, const void *p, amp_dtype t, size_t i, int wide) {
    const char *at = (const char *)p + amp_dtype_size(t) * i;
    ampi_k_raw *eight = &r->eight;
    memset(r, 0, sizeof *r);
    if (!wide) {
        ampi_k_gather8(eight, p, t, i, 0, 4);
    } else if (t == AMP_F32) {
        eight->a = ampi_k_ld4((const ampi_k_u4 *)at, wide);
    } else if (amp_dtype_size(t) == 2u) {
        const ampi_k_u2 a = *(const ampi_k_u2 *)at;
        eight->a.x = a.x;
        eight->a.y = a.y;
    } else {
        eight->a.x = *(const ampi_k_u32 *)at;
    }
}
AMPI_K void ampi_k_fetch(uint32_t *r, const void *p, amp_dtype t, size_t i, int) { *r = ampi_load_pattern(p, t, i); }
AMPI_K void ampi_k_first_half(uint32_t (&x)[4], const uint32_t (&y)[8]) {
    uint32_t k;
    AMP_UNROLL
    for (k = 0; k < 4u; k++)
        x[k] = y[k];
}
AMPI_K void ampi_k_patterns(uint32_t (&x)[8], const ampi_k_raw *r, amp_dtype t) { ampi_k_patterns8(x, r, t); }
AMPI_K void ampi_k_patterns(uint32_t (&x)[4], const ampi_k_raw4 *r, amp_dtype t) {
    uint32_t y[8];
    ampi_k_patterns8(y, &r->eight, t);
    ampi_k_first_half(x, y);
}
AMPI_K void ampi_k_patterns(uint32_t (&x)[1], const uint32_t *r, amp_dtype) { x[0] = *r; }
/* To float bits, but for NaN: see ampi_k_about8. */
AMPI_K void ampi_k_widen(uint32_t (&x)[8], const ampi_k_raw *r, amp_dtype t) { ampi_k_about8(x, r, t); }
AMPI_K void ampi_k_widen(uint32_t (&x)[4], const ampi_k_raw4 *r, amp_dtype t) {
    uint32_t y[8];
    ampi_k_widen(y, &r->eight, t);
    ampi_k_first_half(x, y);
}
AMPI_K void ampi_k_widen(uint32_t (&x)[1], const uint32_t *r, amp_dtype t) { x[0] = ampi_decode_any(*r, t); }
AMPI_K void ampi_k_store(const uint32_t (&x)[8], void *p, amp_dtype t, size_t i, int wide) {
    ampi_k_store8(x, p, t, i, 8, wide);
}
AMPI_K void ampi_k_store(const uint32_t (&x)[4], void *p, amp_dtype t, size_t i, int wide) {
    char *at = (char *)p + amp_dtype_size(t) * i;
    if (t == AMP_F32) {
        ampi_k_put4(at, x, wide);
    } else if (amp_dtype_size(t) == 2u) {
        ampi_k_u2 a = {x[0] | x[1] << 16, x[2] | x[3] << 16};
        *(ampi_k_u2 *)at = a;
    } else {
        *(ampi_k_u32 *)at = x[0] | x[1] << 8 | x[2] << 16 | x[3] << 24;
    }
}
AMPI_K void ampi_k_store(const uint32_t (&x)[1], void *p, amp_dtype t, size_t i, int) {
    ampi_store_pattern(p, t, i, x[0]);
}

/* Stores n float bits rounded to 16 bits, which are left in x; 1: an Inf or a NaN is among them. */
AMPI_K void ampi_k_short_of(
    uint32_t w[4], const uint32_t x[8], const uint32_t r[8], amp_dtype t, amp_rounding how, uint32_t n) {
    const uint32_t none[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    if (!(how == AMP_NEAREST ? ampi_k_quick_words(w, x, t) : ampi_k_drawn_words(w, x, t, r, n)))
        ampi_k_exact_words(w, x, t, how, how == AMP_NEAREST ? none : r, 0);
}
AMPI_K uint32_t ampi_k_store_short(
    uint32_t (&x)[8], const uint32_t r[8], void *p, amp_dtype t, uint64_t at, amp_rounding how, int wide) {
    uint32_t w[4], k;
    ampi_k_short_of(w, x, r, t, how, 8);
    ampi_k_put4((char *)p + 2u * at, w, wide);
    AMP_UNROLL
    for (k = 0; k < 4u; k++)
        ampi_k_unpack2(x + 2u * k, w[k]);
    return ampi_k_odd(w[0], w[1], t) | ampi_k_odd(w[2], w[3], t);
}
AMPI_K uint32_t ampi_k_store_drawn(
    uint32_t (&x)[8], const ampi_k_updating *p, amp_stored what, void *to, amp_dtype t, uint64_t at) {
    const int wide = what == AMP_STORED_MODEL ? 1 : AMPI_K_STREAM;
    uint32_t r[8];
    ampi_k_draw8(r, p->keys + AMPI_KEYS * (uint32_t)what, p->draw.stream, at);
    if (t == AMP_BF16) return ampi_k_store_short(x, r, to, AMP_BF16, at, AMP_STOCHASTIC, wide);
    return ampi_k_store_short(x, r, to, AMP_F16, at, AMP_STOCHASTIC, wide);
}
AMPI_K uint32_t ampi_k_store_short4(
    uint32_t (&x)[4], const uint32_t r[8], void *p, amp_dtype t, uint64_t at, amp_rounding how) {
    const uint32_t y[8] = {x[0], x[1], x[2], x[3], 0, 0, 0, 0};
    uint32_t w[4];
    ampi_k_u2 two;
    ampi_k_short_of(w, y, r, t, how, 4);
    two.x = w[0];
    two.y = w[1];
    *(ampi_k_u2 *)((char *)p + 2u * at) = two;
    ampi_k_unpack2(x, two.x);
    ampi_k_unpack2(x + 2, two.y);
    return ampi_k_odd(two.x, two.y, t);
}
AMPI_K uint32_t ampi_k_store_drawn(
    uint32_t (&x)[4], const ampi_k_updating *p, amp_stored what, void *to, amp_dtype t, uint64_t at) {
    uint32_t r[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    ampi_k_draw4(r, p->keys + AMPI_KEYS * (uint32_t)what, p->draw.stream, at);
    if (t == AMP_BF16) return ampi_k_store_short4(x, r, to, AMP_BF16, at, AMP_STOCHASTIC);
    return ampi_k_store_short4(x, r, to, AMP_F16, at, AMP_STOCHASTIC);
}
AMPI_K uint32_t ampi_k_store_drawn(
    uint32_t (&x)[1], const ampi_k_updating *p, amp_stored what, void *to, amp_dtype t, uint64_t at) {
    amp_draw d = amp_draw_for(p->draw, what);
    x[0] = ampi_encode_any(x[0], t, AMP_STOCHASTIC, amp_random(d.seed, d.stream, at), 0);
    ampi_store_pattern(to, t, at, x[0]);
    return ampi_k_odd(x[0], 0, t);
}
AMPI_K uint32_t ampi_k_store_nearest(uint32_t (&x)[8], void *to, amp_dtype t, uint64_t at) {
    if (t == AMP_BF16) return ampi_k_store_short(x, NULL, to, AMP_BF16, at, AMP_NEAREST, 1);
    return ampi_k_store_short(x, NULL, to, AMP_F16, at, AMP_NEAREST, 1);
}
AMPI_K uint32_t ampi_k_store_nearest(uint32_t (&x)[4], void *to, amp_dtype t, uint64_t at) {
    if (t == AMP_BF16) return ampi_k_store_short4(x, NULL, to, AMP_BF16, at, AMP_NEAREST);
    return ampi_k_store_short4(x, NULL, to, AMP_F16, at, AMP_NEAREST);
}
AMPI_K uint32_t ampi_k_store_nearest(uint32_t (&x)[1], void *to, amp_dtype t, uint64_t at) {
    x[0] = ampi_encode_any(x[0], t, AMP_NEAREST, 0, 0);
    ampi_store_pattern(to, t, at, x[0]);
    return ampi_k_odd(x[0], 0, t);
}

/* Float bits of a weight, a momentum, a second moment and a gradient; for lost updates, the weight as it is kept.
   inf: 1, a second moment is Inf. */
template <int N> struct ampi_k_working { uint32_t g[N], w[N], b[N], v[N], kept[N], inf; };

/* Pairs of a model copy and a low part, to weights and back: for eight at once layout and format are known. */
#define AMPI_K_PAIRS(X) X(SPLIT, F16) X(SPLIT, BF16) X(SPLIT8, F16) X(SPLIT8, BF16) X(KAHAN, BF16)
template <int N, class raw>
AMPI_K void ampi_k_unpair(ampi_k_working<N> *x, const raw *model, const raw *rest, amp_master layout, amp_dtype t) {
    uint32_t copy[N], low[N], k;
    ampi_k_patterns(copy, model, AMP_F16);
    ampi_k_patterns(low, rest, ampi_low_type(layout));
    AMP_UNROLL
    for (k = 0; k < N; k++) {
        x->kept[k] = copy[k] | low[k] << 16;
        x->w[k] = ampi_bits(amp_pair_unpack(x->kept[k], layout, t));
    }
}

/* Four of SPLIT or SPLIT8 in BF16, the quick way; 0: it is wrong, for Inf or NaN is among them, or a zero of SPLIT8
   whose remainder takes it past zero. The others have no quick way. */
AMPI_K int ampi_k_unpair_brief(
    ampi_k_working<4> *x, const ampi_k_raw4 *model, const ampi_k_raw4 *rest, const amp_param_entry *e) {
    const uint32_t by = e->layout == AMP_MASTER_SPLIT8 ? 24u : 16u;
    uint32_t copy[4], low[4], k, past = 0;
    if (e->model_dtype != AMP_BF16 || e->layout == AMP_MASTER_KAHAN) return 0;
    ampi_k_patterns(copy, model, AMP_BF16);
    ampi_k_patterns(low, rest, ampi_low_type(e->layout));
    AMP_UNROLL
    for (k = 0; k < 4u; k++) {
        const uint32_t high = copy[k] << 16;
        x->kept[k] = copy[k] | low[k] << 16;
        x->w[k] = high + (uint32_t)((int32_t)(low[k] << by) >> 16);
        past |= high ^ x->w[k];
    }
    if (e->layout == AMP_MASTER_SPLIT) past = 0;
    return !(past >> 31) && !ampi_k_odd(model->eight.a.x, model->eight.a.y, AMP_BF16);
}
template <int N, class raw>
AMPI_K int ampi_k_unpair_brief(ampi_k_working<N> *, const raw *, const raw *, const amp_param_entry *) {
    return 0;
}

/* All loads before the first use. Weights and moments are streamed: until the next step nobody wants them. */
template <int N> struct ampi_k_raws { typename ampi_k_raw_of<N>::type g, w, low, b, v; };
template <int N> AMPI_K void ampi_k_update_fetch(ampi_k_raws<N> *r, const ampi_k_updating *p, uint64_t at) {
    const amp_param_entry *e = &p->e;
#if !defined(__CUDACC__)
    memset(r, 0, sizeof *r);
#endif
    ampi_k_fetch(&r->g, p->grad, p->grad_type, at, p->grad_wide);
    ampi_k_fetch(&r->w, p->weights, p->weight_type, at, AMPI_K_STREAM);
    if (p->pair) ampi_k_fetch(&r->low, e->low, p->low_type, at, AMPI_K_STREAM);
    if (p->moments > 0) ampi_k_fetch(&r->b, e->moment[0], e->moment_dtype, at, AMPI_K_STREAM);
    if (p->moments > 1) ampi_k_fetch(&r->v, e->moment[1], e->moment_dtype, at, AMPI_K_STREAM);
}
template <int N>
AMPI_K void ampi_k_update_widen(ampi_k_working<N> *x, const ampi_k_raws<N> *r, const ampi_k_updating *p) {
    const amp_param_entry *e = &p->e;
    uint32_t k;
    AMP_UNROLL
    for (k = 0; k < N; k++)
        x->b[k] = x->v[k] = 0;
    x->inf = 0;
    if (p->pair) {
#define AMPI_K_UNPAIR(L, T) \
    if (e->layout == AMP_MASTER_##L && e->model_dtype == AMP_##T) \
        ampi_k_unpair(x, &r->w, &r->low, AMP_MASTER_##L, AMP_##T);
        if (!ampi_k_unpair_brief(x, &r->w, &r->low, e)) {
            AMPI_K_PAIRS(AMPI_K_UNPAIR)
        }
#undef AMPI_K_UNPAIR
    } else {
        ampi_k_patterns(x->kept, &r->w, p->weight_type);
        ampi_k_widen(x->w, &r->w, p->weight_type);
    }
    if (p->moments > 0) ampi_k_widen(x->b, &r->b, e->moment_dtype == AMP_F32 ? AMP_F32 : AMP_BF16);
    if (p->moments > 1) ampi_k_widen(x->v, &r->v, e->moment_dtype == AMP_F32 ? AMP_F32 : AMP_BF16);
    ampi_k_widen(x->g, &r->g, p->grad_type);
}
template <int N> AMPI_K void ampi_k_update_load(ampi_k_working<N> *x, const ampi_k_updating *p, uint64_t at) {
    ampi_k_raws<N> r;
    ampi_k_update_fetch(&r, p, at);
    ampi_k_update_widen(x, &r, p);
}
template <int N> AMPI_K void ampi_k_update_moment(uint32_t (&x)[N], const ampi_k_updating *p, uint32_t i, uint64_t at) {
    const amp_param_entry *e = &p->e;
    if (e->moment_dtype == AMP_F32)
        ampi_k_store(x, e->moment[i], AMP_F32, at, AMPI_K_STREAM);
    else
        (void)ampi_k_store_drawn(x, p, (amp_stored)(AMP_STORED_MOMENT_1 + i), e->moment[i], AMP_BF16, at);
}
AMPI_K void ampi_k_update_words(uint32_t (&r)[8], const ampi_k_updating *p, uint64_t at) { /* of the model copy */
    ampi_k_draw8(r, p->keys, p->draw.stream, at);
}
AMPI_K void ampi_k_update_words(uint32_t (&r)[4], const ampi_k_updating *p, uint64_t at) {
    ampi_k_draw4(r, p->keys, p->draw.stream, at);
}
AMPI_K void ampi_k_update_words(uint32_t (&r)[1], const ampi_k_updating *p, uint64_t at) {
    r[0] = amp_random(p->draw.seed, p->draw.stream, at);
}
AMPI_K uint32_t ampi_k_low_bytes(const uint32_t x[4]) {
    const uint32_t ab = __byte_perm(x[0], x[1], 0x0040u), cd = __byte_perm(x[2], x[3], 0x0040u);
    return __byte_perm(ab, cd, 0x5410u);
}
/* Four in BF16, the quick way; 0: nothing was done, for Inf, NaN or such a zero is among them, or a tie that rounds
   down: else SPLIT's remainder is the lower half of w. SPLIT8 rounds as ampi_split8_round does, with the sign. */
AMPI_K int ampi_k_split4(const uint32_t (&w)[4], const amp_param_entry *e, uint64_t at) {
    const ampi_k_u2 copy = {AMP_TO_BF16S(w[0], w[1]), AMP_TO_BF16S(w[2], w[3])};
    const ampi_k_u2 low = {__byte_perm(w[0], w[1], 0x5410u), __byte_perm(w[2], w[3], 0x5410u)};
    const uint32_t x = low.x ^ 0x80008000u, y = low.y ^ 0x80008000u;
    const uint32_t tie = (((x - 0x00010001u) & ~x) | ((y - 0x00010001u) & ~y)) & 0x80008000u;
    if (tie | ampi_k_odd(copy.x, copy.y, AMP_BF16)) return 0;
    *(ampi_k_u2 *)((char *)e->low + 2u * at) = low;
    *(ampi_k_u2 *)((char *)e->model + 2u * at) = copy;
    return 1;
}
AMPI_K int ampi_k_split8_4(const uint32_t (&w)[4], const amp_param_entry *e, uint64_t at) {
    uint32_t code[4], high[4], k, past = 0;
    ampi_k_u2 copy;
    AMP_UNROLL
    for (k = 0; k < 4u; k++) {
        code[k] = w[k] + 0x7fu + (w[k] >> 8 & 1u);
        high[k] = code[k] + 0x8000u;
        past |= high[k] ^ w[k];
        code[k] >>= 8;
    }
    copy.x = __byte_perm(high[0], high[1], 0x7632u);
    copy.y = __byte_perm(high[2], high[3], 0x7632u);
    if (past >> 31 | ampi_k_odd(copy.x, copy.y, AMP_BF16)) return 0;
    *(ampi_k_u32 *)((char *)e->low + at) = ampi_k_low_bytes(code);
    *(ampi_k_u2 *)((char *)e->model + 2u * at) = copy;
    return 1;
}
AMPI_K int ampi_k_pair_brief(const uint32_t (&w)[4], const ampi_k_updating *p, uint64_t at) {
    if (p->e.model_dtype != AMP_BF16) return 0;
    if (p->e.layout == AMP_MASTER_SPLIT) return ampi_k_split4(w, &p->e, at);
    return p->e.layout == AMP_MASTER_SPLIT8 && !p->stochastic && ampi_k_split8_4(w, &p->e, at);
}
template <int N> AMPI_K int ampi_k_pair_brief(const uint32_t (&)[N], const ampi_k_updating *, uint64_t) { return 0; }
/* Model copy and low part of SPLIT, SPLIT8 or KAHAN; as below. */
template <int counted, int N>
AMPI_K uint32_t ampi_k_pair(
    uint32_t (&w)[N], const ampi_k_updating *p, uint64_t at, const uint32_t (&r)[N], amp_master layout, amp_dtype t) {
    const amp_rounding how = p->stochastic ? AMP_STOCHASTIC : AMP_NEAREST;
    uint32_t k, copy[N], low[N], overflow = 0;
    AMP_UNROLL
    for (k = 0; k < N; k++) {
        uint32_t both = amp_pair_pack(ampi_float(w[k]), layout, t, how, r[k]);
        copy[k] = both & 0xffffu;
        low[k] = both >> 16;
        overflow |= amp_copy_overflow(copy[k], ampi_float(w[k]), t);
        if (counted) w[k] = both;
    }
    ampi_k_store(low, p->e.low, ampi_low_type(layout), at, AMPI_K_STREAM);
    ampi_k_store(copy, p->e.model, AMP_F16, at, 1);
    return overflow;
}
template <int counted, int N>
AMPI_K uint32_t ampi_k_update_pair(uint32_t (&w)[N], const ampi_k_updating *p, uint64_t at) {
    uint32_t r[N], k;
    if (!counted && ampi_k_pair_brief(w, p, at)) return 0;
    AMP_UNROLL
    for (k = 0; k < N; k++)
        r[k] = 0;
    if (p->stochastic) ampi_k_update_words(r, p, at);
#define AMPI_K_PAIR(L, T) \
    if (p->e.layout == AMP_MASTER_##L && p->e.model_dtype == AMP_##T) \
        return ampi_k_pair<counted>(w, p, at, r, AMP_MASTER_##L, AMP_##T);
    AMPI_K_PAIRS(AMPI_K_PAIR)
#undef AMPI_K_PAIR
    return 0;
}
/* Master, model copy (for the next products, so it is not streamed) and low part; 1: a copy overflowed. counted: w
   becomes what is kept of it. */
template <int counted, int N>
AMPI_K uint32_t ampi_k_update_weights(uint32_t (&w)[N], const ampi_k_updating *p, uint64_t at) {
    const amp_param_entry *e = &p->e;
    uint32_t k, copy[N], overflow = 0, odd;
    if (e->master) ampi_k_store(w, e->master, AMP_F32, at, AMPI_K_STREAM);
    if (!e->model) return 0;
    if (p->pair) return ampi_k_update_pair<counted>(w, p, at);
    AMP_UNROLL
    for (k = 0; k < N; k++)
        copy[k] = w[k];
    if (p->stochastic)
        odd = ampi_k_store_drawn(copy, p, AMP_STORED_MODEL, e->model, e->model_dtype, at);
    else
        odd = ampi_k_store_nearest(copy, e->model, e->model_dtype, at);
    if (!counted && !odd) return 0;
    AMP_UNROLL
    for (k = 0; k < N; k++)
        overflow |= amp_copy_overflow(copy[k], ampi_float(w[k]), e->model_dtype);
    AMP_UNROLL
    for (k = 0; k < N; k++)
        if (counted && !e->master) w[k] = copy[k];
    return overflow;
}

/* Whether these coefficients allow ampi_k_adam_brief: 1 / sqrt(bc2) in 2^-10 ... 2^30, eps in 2^-56 ... 2^20, a step
   size in 2^-78 ... 2^60. */
AMPI_K int ampi_k_is_brief(const amp_coef *c) {
    uint32_t step = ampi_bits(c->step_size) & 0x7fffffffu;
    if (ampi_bits(c->rsqrt_bc2) - 0x3a800000u > 0x14000000u) return 0;
    return ampi_bits(c->eps) - 0x23800000u <= 0x26000000u && step - 0x18800000u <= 0x45000000u;
}
/* Adam's steps of several by the instructions that ptxas makes of sqrt.rn and div.rn for numbers in the middle of the
   range (seen for sm_75 to sm_120; the last two of a quotient twice), whether they are there asked once. For that the
   second moment is multiplied by 2^64 and the first by 2^48, which is exact, so that tiny ones and 0 get there, too. 0:
   v is 2^62 or more or not a number, m 2^22 or more, or the quotient is subnormal. */
template <int N> AMPI_K int ampi_k_adam_brief(float (&step)[N], const ampi_k_working<N> *x, const amp_coef *c) {
    const float by = amp_mul(c->rsqrt_bc2, ampi_float(0x2f800000u)),
                rate = amp_mul(c->step_size, ampi_float(0x27800000u));
    float largest = 0.0f;
    uint32_t k, most = 0, least = 0xffffffffu;
    AMP_UNROLL
    for (k = 0; k < N; k++) {
        float v = amp_mul(ampi_float(x->v[k]), ampi_float(0x5f800000u));
        float a = amp_mul(ampi_float(x->b[k]), ampi_float(0x57800000u));
        float y = ampi_about_rsqrt(ampi_larger(v, ampi_float(0x0d800000u))), s = amp_mul(v, y), root, q;
        s = AMP_FMA(AMP_FMA(amp_negative(s), s, v), amp_mul(y, 0.5f), s);
        root = amp_add(amp_mul(s, by), c->eps);
        y = ampi_about_inverse(root);
        y = AMP_FMA(y, AMP_FMA(amp_negative(root), y, 1.0f), y);
        q = amp_mul(a, y);
        q = AMP_FMA(amp_negative(y), AMP_FMA(root, q, amp_negative(a)), q); /* this way -0 stays */
        q = AMP_FMA(amp_negative(y), AMP_FMA(root, q, amp_negative(a)), q);
        step[k] = amp_mul(rate, q);
        most = ampi_bits(v) > most ? ampi_bits(v) : most;
        least = 2u * ampi_bits(q) - 1u < least ? 2u * ampi_bits(q) - 1u : least; /* of 0: the largest number */
        largest = ampi_larger(largest, ampi_float(x->b[k] & 0x7fffffffu));
    }
    return most < 0x7e800000u && least >= 0x30ffffffu && amp_less(largest, ampi_float(0x4a800000u));
}
AMPI_K int ampi_k_adam_brief(float (&)[1], const ampi_k_working<1> *, const amp_coef *) { return 0; }
template <int N> AMPI_K void ampi_k_update_adam(float (&step)[N], ampi_k_working<N> *x, const amp_coef *c, int brief) {
    uint32_t k;
    AMP_UNROLL
    for (k = 0; k < N; k++) {
        float u = ampi_float(x->g[k]);
        x->b[k] = ampi_bits(ampi_scalar_average(c->beta1, ampi_float(x->b[k]), c->one_beta1, u));
        x->v[k] = ampi_bits(ampi_scalar_average(c->beta2, ampi_float(x->v[k]), c->one_beta2, amp_mul(u, u)));
    }
    if (!brief || !ampi_k_adam_brief(step, x, c)) { /* which says no to Inf */
        AMP_UNROLL
        for (k = 0; k < N; k++) {
            step[k] = ampi_scalar_adam_step(ampi_float(x->b[k]), ampi_float(x->v[k]), c);
            x->inf |= x->v[k] == 0x7f800000u;
        }
    }
    AMP_UNROLL
    for (k = 0; k < N; k++)
        x->w[k] = ampi_bits(amp_sub(amp_mul(ampi_float(x->w[k]), c->decay), step[k]));
}
template <int kind, int N> AMPI_K void ampi_k_update_each(float (&step)[N], ampi_k_working<N> *x, const amp_coef *c) {
    const int both = kind != AMPI_K_APPLY && amp_moments_of((amp_update_kind)kind, 1.0f) > 1;
    uint32_t k;
    AMP_UNROLL
    for (k = 0; k < N; k++) {
        float u = ampi_float(x->g[k]), w = ampi_float(x->w[k]), b = ampi_float(x->b[k]), v = ampi_float(x->v[k]);
        if (kind == AMPI_K_APPLY)
            step[k] = amp_apply_one(&w, u, c);
        else
            step[k] = amp_update_one((amp_update_kind)kind, &w, &b, &v, u, c);
        x->w[k] = ampi_bits(w);
        x->b[k] = ampi_bits(b);
        x->v[k] = ampi_bits(v);
        if (both) x->inf |= x->v[k] == 0x7f800000u;
    }
}
/* amp_prepare_one and amp_update_one, or amp_apply_one. What is the same for all elements is asked once: the rules then
   get coefficients that say no to it. */
template <int kind, int N>
AMPI_K void ampi_k_update_rule(float (&step)[N], ampi_k_working<N> *x, const amp_coef *coef, int brief) {
    amp_coef c = *coef;
    uint32_t k;
    if (kind == AMPI_K_APPLY) return ampi_k_update_each<kind>(step, x, &c);
    c.limit = c.l2 = 0.0f;
    AMP_UNROLL
    for (k = 0; k < N; k++)
        x->g[k] = ampi_bits(amp_prepare_one(ampi_float(x->g[k]), &c));
    if (ampi_nonzero(coef->limit)) {
        AMP_UNROLL
        for (k = 0; k < N; k++)
            x->g[k] = ampi_bits(ampi_scalar_clamp(ampi_float(x->g[k]), coef->limit));
    }
    if (kind != AMP_UPDATE_LION && ampi_nonzero(coef->l2)) {
        AMP_UNROLL
        for (k = 0; k < N; k++)
            x->g[k] = ampi_bits(ampi_scalar_decayed(ampi_float(x->w[k]), ampi_float(x->g[k]), coef));
    }
    if (kind == AMP_UPDATE_ADAM) return ampi_k_update_adam(step, x, &c, brief);
    if (kind != AMP_UPDATE_SGD) return ampi_k_update_each<kind>(step, x, &c);
    if (!ampi_nonzero(coef->momentum)) {
        c.momentum = 0.0f;
        ampi_k_update_each<kind>(step, x, &c);
    } else if (brief) {
        c.first = 1;
        ampi_k_update_each<kind>(step, x, &c);
    } else {
        c.first = 0;
        ampi_k_update_each<kind>(step, x, &c);
    }
}
/* One of them, with the count of its update: counting has no registers for all of them at once. */
template <int kind, int N>
AMPI_K uint32_t ampi_k_update_counted(
    ampi_k_working<N> *x, uint32_t k, uint64_t at, const amp_coef *coef, int first, ampi_k_tally *tally) {
    ampi_k_working<1> one;
    float step[1];
    uint32_t old = x->w[k];
    one.g[0] = x->g[k];
    one.w[0] = old;
    one.b[0] = x->b[k];
    one.v[0] = x->v[k];
    one.inf = 0;
    ampi_k_update_rule<kind>(step, &one, coef, first);
    x->w[k] = one.w[0];
    x->b[k] = one.b[0];
    x->v[k] = one.v[0];
    x->inf |= one.inf;
    return amp_is_counted(at + k, tally->every) ? ampi_k_tally_update(tally, step[0], old, x->w[k]) : 0u;
}
template <int kind, int counted, int N>
AMPI_K uint32_t ampi_k_update_at(const ampi_k_updating *p, uint64_t at, const amp_coef *coef, ampi_k_tally *tally) {
    ampi_k_working<N> x;
    float step[N];
    uint32_t k, updates = 0, found; /* updates: a bit for each */
    ampi_k_update_load(&x, p, at);
    AMP_UNROLL
    for (k = 0; k < N; k++)
        if (counted)
            updates |= ampi_k_update_counted<kind>(&x, k, at, coef, kind == AMP_UPDATE_SGD && p->brief, tally) << k;
    if (!counted) ampi_k_update_rule<kind>(step, &x, coef, p->brief);
    if (p->zero) {
        uint32_t zero[N];
        AMP_UNROLL
        for (k = 0; k < N; k++)
            zero[k] = 0;
        ampi_k_store(zero, p->zero, AMP_F32, at, AMPI_K_STREAM);
    }
    if (p->moments > 0) ampi_k_update_moment(x.b, p, 0, at);
    if (p->moments > 1) ampi_k_update_moment(x.v, p, 1, at);
    found = ampi_k_update_weights<counted>(x.w, p, at);
    AMP_UNROLL
    for (k = 0; k < N; k++)
        if (counted) tally->counts += (updates >> k & (uint32_t)(x.kept[k] == x.w[k])) << 16;
    return x.inf ? found | AMP_MOMENT_OVERFLOW : found;
}
/* 1 into a word of the record and, whoever is first, into its copy for the host: the low half, for its number stays. */
AMPI_K void ampi_k_note_overflow(amp_step_record *record, amp_step_mirror *mirror, size_t at) {
    const uint32_t known = atomicOr((unsigned *)((char *)record + at), 1u);
    if (mirror && !known) *(volatile ampi_k_u32 *)&mirror->word[at / 4u] = 1u;
}
AMPI_K void ampi_k_note_overflows(uint32_t found, amp_step_record *record, amp_step_mirror *mirror) {
    if (found & AMP_WEIGHT_OVERFLOW) ampi_k_note_overflow(record, mirror, offsetof(amp_step_record, weight_overflow));
    if (found & AMP_MOMENT_OVERFLOW) ampi_k_note_overflow(record, mirror, offsetof(amp_step_record, moment_overflow));
}

/* What all kinds of update fill in alike; grad and grad_type are the caller's. */
AMPI_K void ampi_k_update_begin(
    ampi_k_updating *p, const amp_param_entry *e, uint32_t param, const amp_step_record *r, const ampi_k_u4 *keys) {
    p->e = *e;
    p->weights = p->e.master ? p->e.master : p->e.model;
    p->weight_type = p->e.master ? AMP_F32 : p->e.model_dtype;
    p->draw = amp_draw_of(r, param);
    p->stochastic = r->stochastic != 0;
    p->drawn = p->stochastic || p->e.moment_dtype == AMP_BF16;
    p->pair = p->e.low != NULL;
    p->low_type = ampi_low_type(p->e.layout);
    p->zero = NULL;
    p->keys = keys;
    p->moments = p->coded = p->brief = 0;
}
/* Where the arrays of a piece are aligned together, and whether the gradients are there, too. */
AMPI_K ampi_k_ends ampi_k_update_ends(ampi_k_updating *p, uint64_t base) {
    const amp_param_entry *e = &p->e;
    const uintptr_t all = (uintptr_t)p->grad | (uintptr_t)p->weights | (uintptr_t)e->model | (uintptr_t)e->low |
        (uintptr_t)e->moment[0] | (uintptr_t)e->moment[1] | (uintptr_t)p->zero;
    ampi_k_ends ends = ampi_k_no_ends(), meet;
    p->grad_wide = 1;
    if (all % 16u == 0) return ends; /* nearly always, and a base is a multiple of 8 */
    ampi_k_meet(&ends, p->weights, p->weight_type, base);
    ampi_k_meet(&ends, e->model, e->model_dtype, base);
    ampi_k_meet(&ends, e->low, p->low_type, base);
    ampi_k_meet(&ends, e->moment[0], e->moment_dtype, base);
    ampi_k_meet(&ends, e->moment[1], e->moment_dtype, base);
    ampi_k_meet(&ends, p->zero, AMP_F32, base);
    if (p->drawn) ends.never |= (ends.head & 3u) != 0; /* their words come in fours */
    meet = ends;
    ampi_k_meet(&meet, p->grad, p->grad_type, base);
    p->grad_wide = !meet.never && meet.head == ends.head;
    return ends;
}
/* counts: NULL unless counted; then one in `every` blocks. */
template <int kind, int counted>
AMPI_K void ampi_k_update_piece(ampi_k_updating *p, const ampi_k_piece *c, const amp_coef *coef,
    amp_step_record *record, amp_step_mirror *mirror, amp_update_count *counts, uint32_t every) {
    ampi_k_tally tally = ampi_k_tally_begin(&p->e, every);
    const ampi_k_ends ends = ampi_k_update_ends(p, c->base);
    uint32_t i, groups = ampi_k_groups(&ends, c->n), found = 0;
    uint64_t at, end;
    for (i = threadIdx.x; i < c->n - 8u * groups; i += AMP_BLOCK)
        found |= ampi_k_update_at<kind, counted, 1>(p, c->base + ampi_k_outside(&ends, groups, i), coef, &tally);
    at = c->base + ends.head + 8u * threadIdx.x;
    end = c->base + ends.head + 8u * groups;
    for (; at < end; at += 8u * AMP_BLOCK)
        found |= ampi_k_update_at<kind, counted, 8>(p, at, coef, &tally);
    ampi_k_note_overflows(found, record, mirror);
    if (counted) ampi_k_tally_end(&tally, &counts[c->param]);
}
/* By the block, which has a barrier to come: the keys of everything that is drawn. */
AMPI_K void ampi_k_update_keys(ampi_k_u4 *keys, uint64_t seed) {
    uint32_t k;
    for (k = AMP_BLOCK - 1u - threadIdx.x; k < AMPI_KEYS * AMPI_STORED; k += AMP_BLOCK)
        keys[k] = ampi_k_two_keys(seed + k / AMPI_KEYS, k % AMPI_KEYS);
}
/* What the pieces of a block have in common, in shared memory, so that their loads are under way side by side: record
   and coefficients by warps that need not wait for a chunk. Complete after a barrier. */
typedef struct ampi_k_update_room {
    ampi_k_u4 keys[AMPI_KEYS * AMPI_STORED];
    amp_coef coef[2 * AMP_GROUPS]; /* [2 * group + no_decay] */
    amp_step_record record;        /* of it what an update reads; other blocks may be noting an overflow there */
    amp_chunk chunk;               /* of this piece, and its parameter */
    amp_param_entry entry;
} ampi_k_update_room;
AMPI_K void ampi_k_update_common(ampi_k_update_room *room, const amp_update_job *job) {
    const uint64_t seed = job->record->seed, steps = job->record->steps;
    const uint32_t skip = job->record->skip, stochastic = job->record->stochastic;
    const uint32_t k = threadIdx.x - AMP_BLOCK / 2u;
    if (threadIdx.x == AMP_BLOCK - 1u) {
        room->record.skip = skip;
        room->record.steps = steps;
        room->record.seed = seed;
        room->record.stochastic = stochastic;
    }
    if (k < 2u * AMP_GROUPS) {
        amp_param_entry like;
        like.group = k / 2u;
        like.no_decay = k % 2u;
        like.before = 0;
        room->coef[k] = amp_coef_of(job, &like);
    }
    ampi_k_update_keys(room->keys, seed);
}
static_assert(sizeof(amp_param_entry) <= 4u * AMPI_TEAM, "the first team loads an entry");
AMPI_K void ampi_k_update_entry(ampi_k_update_room *room, const amp_param_table *t, uint32_t cuts, uint64_t back) {
    amp_chunk c;
    if (threadIdx.x >= sizeof(amp_param_entry) / 4u) return;
    c = t->chunks[back >> cuts];
    ((ampi_k_u32 *)&room->entry)[threadIdx.x] = ((const ampi_k_u32 *)&t->entries[c.param])[threadIdx.x];
    if (threadIdx.x == 0) room->chunk = c;
}
/* How the pieces of a kernel are done: see ampi_k_codes. Without pairs half of the code is left out. */
template <int kind, int counted, int pairs> struct ampi_k_plain {
    static AMPI_K_AT void piece(
        ampi_k_updating *p, const ampi_k_piece *c, const amp_coef *coef, const amp_update_job &job) {
        if (!pairs) p->pair = 0;
        ampi_k_update_piece<kind, counted>(p, c, coef, job.record, job.mirror, job.table.counts, job.count);
    }
};
template <int kind, class way> AMPI_K void ampi_k_update_all(const amp_update_job &job, uint32_t cuts) {
    AMP_SHARED(ampi_k_update_room, room, 1);
    uint64_t i = blockIdx.x, n = (uint64_t)job.table.n_chunks << cuts;
    uint32_t k;
    AMP_FOLLOW();
    if (i >= n) return;
    for (;;) {
        const uint64_t back = ampi_k_from_end(&job.table, cuts, i);
        ampi_k_updating p;
        ampi_k_piece c;
        if (i == blockIdx.x) ampi_k_update_common(room, &job);
        ampi_k_update_entry(room, &job.table, cuts, back);
        __syncthreads();
        if (room->record.skip && !job.accum) return; /* all threads alike; a lost window still ends */
        ampi_k_update_begin(&p, &room->entry, room->chunk.param, &room->record, room->keys);
        c = ampi_k_piece_in(room->chunk, cuts, back, p.e.count);
        if (room->record.skip) {
            for (k = threadIdx.x; k < c.n; k += AMP_BLOCK)
                p.e.accum[c.base + k] = 0.0f;
        } else {
            const amp_coef *own = &room->coef[2u * p.e.group + (p.e.no_decay != 0)];
            p.grad = ampi_k_gradient(&p.e, job.accum, &p.grad_type);
            p.zero = job.accum ? p.e.accum : NULL;
            p.moments = amp_moments_of((amp_update_kind)kind, own->momentum);
            p.brief = kind == AMP_UPDATE_ADAM && ampi_k_is_brief(own);
            if (kind == AMP_UPDATE_SGD) p.brief = amp_is_first_step(room->record.steps, &p.e);
            way::piece(&p, &c, own, job);
        }
        i += gridDim.x;
        if (i >= n) return;
        __syncthreads(); /* the next entry takes the place of this one */
    }
}
template <int kind>
static __global__ void __launch_bounds__(AMP_BLOCK, 2)
    ampi_k_update(const AMP_GRID_CONSTANT amp_update_job job, uint32_t cuts) {
    ampi_k_update_all<kind, ampi_k_plain<kind, 0, 0>>(job, cuts);
}
template <int kind> /* the same, of pairs of a model copy and a low part */
static __global__ void __launch_bounds__(AMP_BLOCK, 2)
    ampi_k_update_pairs(const AMP_GRID_CONSTANT amp_update_job job, uint32_t cuts) {
    ampi_k_update_all<kind, ampi_k_plain<kind, 0, 1>>(job, cuts);
}
template <int kind> /* the same, with the counts of lost updates */
static __global__ void __launch_bounds__(AMP_BLOCK, 2)
    ampi_k_count_update(const AMP_GRID_CONSTANT amp_update_job job, uint32_t cuts) {
    ampi_k_update_all<kind, ampi_k_plain<kind, 1, 1>>(job, cuts);
}

/* The same for one parameter, whose update was made elsewhere. */
template <int counted> AMPI_K void ampi_k_apply_all(const amp_apply_job &job) {
    AMP_SHARED(ampi_k_u4, keys, AMPI_KEYS * AMPI_STORED);
    ampi_k_updating p;
    ampi_k_piece c;
    amp_coef coef;
    uint32_t k;
    int skip = job.record->skip != 0;
    if (skip && !job.accum) return;
    ampi_k_update_keys(keys, job.record->seed);
    __syncthreads();
    ampi_k_update_begin(&p, &job.table.entries[job.param], job.param, job.record, keys);
    p.grad = (void *)job.u;
    p.grad_type = AMP_F32;
    p.zero = job.accum ? p.e.accum : NULL;
    coef = amp_coef_of_apply(&job, &p.e);
    c.param = job.param;
    for (c.base = (uint64_t)blockIdx.x * AMPI_PIECE; c.base < p.e.count; c.base += (uint64_t)gridDim.x * AMPI_PIECE) {
        uint64_t left = p.e.count - c.base;
        c.n = (uint32_t)(left < AMPI_PIECE ? left : AMPI_PIECE);
        if (!skip)
            ampi_k_update_piece<AMPI_K_APPLY, counted>(
                &p, &c, &coef, job.record, job.mirror, job.table.counts, job.count);
        else
            for (k = threadIdx.x; k < c.n; k += AMP_BLOCK)
                p.zero[c.base + k] = 0.0f;
    }
}
static __global__ void __launch_bounds__(AMP_BLOCK, 2) ampi_k_apply(const AMP_GRID_CONSTANT amp_apply_job job) {
    ampi_k_apply_all<0>(job);
}
static __global__ void __launch_bounds__(AMP_BLOCK, 2) ampi_k_count_apply(const AMP_GRID_CONSTANT amp_apply_job job) {
    ampi_k_apply_all<1>(job);
}

AMPI_K void ampi_k_add8(const amp_param_entry *e, uint64_t i, uint32_t m, float inv) {
    uint32_t k, x[8], y[8];
    ampi_k_load8(y, e->accum, AMP_F32, i, m, 1);
    ampi_k_load8(x, e->grad, e->grad_dtype, i, m, 1);
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        y[k] = ampi_bits(amp_add(ampi_float(y[k]), amp_mul(ampi_float(x[k]), inv)));
    ampi_k_store8(y, e->accum, AMP_F32, i, m, 1);
}
static __global__ void __launch_bounds__(AMP_BLOCK, 2) ampi_k_add(amp_add_job job, uint32_t cuts) {
    float inv = job.record->inv_scale;
    uint64_t piece, n = (uint64_t)job.table.n_chunks << cuts;
    uint32_t i, groups;
    if (job.record->skip) return;
    for (piece = blockIdx.x; piece < n; piece += gridDim.x) {
        ampi_k_piece c = ampi_k_piece_of(&job.table, cuts, piece);
        const amp_param_entry *e = &job.table.entries[c.param];
        ampi_k_ends ends = ampi_k_no_ends();
        ampi_k_meet(&ends, e->grad, e->grad_dtype, c.base);
        ampi_k_meet(&ends, e->accum, AMP_F32, c.base);
        groups = ampi_k_groups(&ends, c.n);
        for (i = threadIdx.x; i < groups; i += AMP_BLOCK)
            ampi_k_add8(e, c.base + ends.head + 8u * i, 8, inv);
        for (i = threadIdx.x; i < c.n - 8u * groups; i += AMP_BLOCK)
            ampi_k_add8(e, c.base + ampi_k_outside(&ends, groups, i), 1, inv);
    }
}

AMPI_K void ampi_k_clip8(void *grad, amp_dtype t, uint64_t i, uint32_t m, const amp_coef *coef) {
    uint32_t k, x[8];
    ampi_k_load8(x, grad, t, i, m, 1);
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        x[k] = ampi_bits(amp_prepare_one(ampi_float(x[k]), coef));
    ampi_k_nearest8(x, t);
    ampi_k_store8(x, grad, t, i, m, 1);
}
static __global__ void __launch_bounds__(AMP_BLOCK, 2) ampi_k_clip(amp_clip_job job, uint32_t cuts) {
    amp_coef coef;
    uint64_t piece, n = (uint64_t)job.table.n_chunks << cuts;
    uint32_t i, groups;
    if (amp_clip_is_idle(&job)) return;
    coef = amp_coef_of_clip(&job);
    for (piece = blockIdx.x; piece < n; piece += gridDim.x) {
        ampi_k_piece c = ampi_k_piece_of(&job.table, cuts, piece);
        ampi_k_ends ends = ampi_k_no_ends();
        amp_dtype type;
        void *grad = ampi_k_gradient(&job.table.entries[c.param], job.accum, &type);
        ampi_k_meet(&ends, grad, type, c.base);
        groups = ampi_k_groups(&ends, c.n);
        for (i = threadIdx.x; i < groups; i += AMP_BLOCK)
            ampi_k_clip8(grad, type, c.base + ends.head + 8u * i, 8, &coef);
        for (i = threadIdx.x; i < c.n - 8u * groups; i += AMP_BLOCK)
            ampi_k_clip8(grad, type, c.base + ampi_k_outside(&ends, groups, i), 1, &coef);
    }
}

static __global__ void __launch_bounds__(AMP_BLOCK) ampi_k_next_scale(amp_scaler_state *state) {
    if (blockIdx.x == 0 && threadIdx.x == 0) amp_scaler_next(state);
}

#define AMPI_K_UPDATE(X) X(ampi_k_apply) X(ampi_k_count_apply) X(ampi_k_add) X(ampi_k_clip) X(ampi_k_next_scale)
