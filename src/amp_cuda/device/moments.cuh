/* ---- update with moments in 8 bits: a warp takes a block of 256 elements in two halves, of which a thread has four
   elements in a row. New moments wait in shared memory until the largest of the block has given the scale. In halves,
   for so the loop's code is short: eight elements at a time made more of it than an SM keeps near, and warps waited for
   instructions. Blocks whose arrays are not all there and aligned, and those that count lost updates, take their
   elements one by one.   tests: tests/test_moments.c, tests/test_layouts.c ---- */
#define AMPI_HALF        (4u * AMPI_TEAM)
#define AMPI_CODES       256u
static_assert(AMP_MOMENT_BLOCK == 2u * AMPI_HALF, "four elements in each half for each thread of a warp");

typedef struct ampi_k_codes { /* of one block: scales, and what its largest moments are going to be */
    float scale[AMP_MOMENTS], largest[AMP_MOMENTS];
} ampi_k_codes;
/* of: new moments, as float bits. words: where they are seldom needed. value: what a code stands for where the scale is
   1. step: where code k, without a sign, begins in the steps of ampi_scalar_moment_code, and the way from there to the
   next one, times 2^-16, as float bits. */
typedef struct ampi_k_codes_room {
    ampi_k_u4 of[2][AMP_MOMENTS][AMP_BLOCK], words[AMP_BLOCK];
    float value[AMP_MOMENTS][AMPI_CODES];
    ampi_k_u2 step[AMP_MOMENTS][AMPI_CODES];
} ampi_k_codes_room;
AMPI_K ampi_k_codes_room *ampi_k_codes_room_of_block(void) {
    AMP_SHARED(ampi_k_codes_room, room, 1);
    return room;
}
AMPI_K uint8_t *ampi_k_codes_at(const amp_param_entry *e, uint32_t which, uint64_t at) {
    return (uint8_t *)e->moment[which] + at;
}
AMPI_K void ampi_k_codes_scales(float scale[AMP_MOMENTS], const ampi_k_updating *p, uint64_t at) {
    uint32_t i;
    AMP_UNROLL
    for (i = 0; i < (uint32_t)AMP_MOMENTS; i++)
        scale[i] = (int)i < p->coded ? ampi_moment_scales(&p->e, i)[at / AMP_MOMENT_BLOCK] : 0.0f;
}
AMPI_K ampi_k_u2 ampi_k_codes_step(uint32_t k, uint32_t which) {
    const float k0 = (float)(int32_t)k, k1 = amp_add(k0, 1.0f), a = 8064.5f;
    const float low = ampi_scalar_moment_power(amp_mul(k0, k0), a, which);
    const float high = ampi_scalar_moment_power(amp_mul(k1, k1), a, which);
    ampi_k_u2 step;
    step.x = ampi_bits(low);
    step.y = ampi_bits(amp_mul(amp_sub(high, low), ampi_float(0x37800000u)));
    return step;
}
AMPI_K void ampi_k_codes_tables(ampi_k_codes_room *room) { /* by the whole block, which has a barrier to come */
    uint32_t k, which;
    for (k = threadIdx.x; k < AMPI_CODES; k += AMP_BLOCK) {
        AMP_UNROLL
        for (which = 0; which < (uint32_t)AMP_MOMENTS; which++) {
            room->value[which][k] = ampi_scalar_moment_value(k, 1.0f, which);
            room->step[which][k] = ampi_k_codes_step(k, which);
        }
    }
}
/* x, which ampi_scalar_moment_code rounds to k, nearly. The first root of m is the same; the hardware's approximations
   are within 2^-22.9 (a root's inverse) and 2^-23 of theirs, a rounded root within 2^-24, and of what is less than 256
   or 128 each of three roundings within 2^-17 or 2^-18: so this is within 2^-13.3 of x for v, 2^-14.8 for m. Of shares
   near 0 and 1 it keeps away from -1/2 and top - 1/2: k is 0 and top - 1 there, whatever the root is rounded to. */
AMPI_K float ampi_k_code_about(float q, uint32_t which) {
    q = ampi_bits(q) < 0x3f7fc000u ? q : ampi_float(0x3f7fc000u); /* 1 - 2^-10; NaN, too */
    if (which) return AMP_FMA(ampi_about_rsqrt(ampi_about_rsqrt(amp_add(q, ampi_float(0x1f800000u)))), 255.0f, -0.5f);
    q = ampi_root(amp_add(amp_mul(q, 1.5f), 0.0625f));
    q = amp_add(amp_sub(q, 0.25f), ampi_float(0x2c800000u)); /* 2^-38 */
    return AMP_FMA(ampi_about_root(q), 127.0f, -0.5f);
}
/* ampi_scalar_moment_code of four, without signs and without the rule for a v that is not 0, in the low bytes of c. 0:
   some x is so near to 1/2 beside k, where k changes, that it is not sure; seldom. */
AMPI_K int ampi_k_codes_brief(
    uint32_t c[4], const uint32_t x[4], const uint32_t r[4], const ampi_k_u2 *step, float inverse, uint32_t which) {
    const float steps = which ? 4228250624.0f : 390216960.0f;
    float most = 0.0f;
    uint32_t k;
    AMP_UNROLL
    for (k = 0; k < 4u; k++) {
        const float q = amp_mul(ampi_magnitude(ampi_float(x[k])), inverse); /* above 1 it gives top, as 1 does */
        const float about = ampi_k_code_about(q, which), whole = amp_add(about, 12582912.0f);
        const ampi_k_u2 own = step[ampi_bits(whole) - 0x4b400000u];
        /* half + 1/2, times 2^-16, of the word's half is u */
        const uint32_t half = __byte_perm(r[k], 0x4b000000u, which ? 0x7632u : 0x7610u);
        const float u = amp_sub(ampi_float(half), 8388607.5f);
        const float point = amp_add(ampi_float(own.x), amp_mul(u, ampi_float(own.y)));
        c[k] = ampi_bits(whole) + ((ampi_bits(point) - ampi_bits(amp_mul(q, steps))) >> 31);
        most = ampi_larger(most, ampi_magnitude(amp_sub(about, amp_sub(whole, 12582912.0f))));
    }
    return amp_less(most, which ? 0.5f - 1.0f / 8192.0f : 0.5f - 1.0f / 16384.0f);
}
/* Where k may be the rule's neighbour, x lies at the end of one interval and the beginning of the next, within 2^-11 of
   their lengths: both give the same code unless a random point does, too. 1: none of four is within 2^-10. */
AMPI_K int ampi_k_points_are_inside(const uint32_t r[4], uint32_t which) {
    uint32_t k, least = 0xffffffffu;
    AMP_UNROLL
    for (k = 0; k < 4u; k++) {
        const uint32_t point = (which ? r[k] : r[k] << 16) + 0x400000u;
        least = point < least ? point : least;
    }
    return least >= 0x800000u;
}
/* The same as ampi_k_codes_brief by the rule, in little code, which is seldom needed. four: x, in its place. */
AMPI_K void ampi_k_codes_surely(
    uint32_t c[4], ampi_k_u4 *four, const uint32_t r[4], ampi_k_codes_room *room, float inverse, uint32_t which) {
    ampi_k_u32 *x = (ampi_k_u32 *)four, *word = (ampi_k_u32 *)&room->words[threadIdx.x];
    uint32_t k;
    room->words[threadIdx.x] = ampi_k_four(r);
    AMP_NO_UNROLL
    for (k = 0; k < 4u; k++)
        word[k] = ampi_scalar_moment_code(ampi_float(x[k]), inverse, word[k], which) & AMPI_MOMENT_TOP(which);
    ampi_k_words(c, room->words[threadIdx.x]);
}
AMPI_K uint32_t ampi_k_signs_of(const uint32_t x[4]) { /* in the high bits of bytes */
    const uint32_t ab = __byte_perm(x[0], x[1], 0x0073u), cd = __byte_perm(x[2], x[3], 0x0073u);
    return __byte_perm(ab, cd, 0x5410u) & 0x80808080u;
}
AMPI_K uint32_t ampi_k_zero_bytes(uint32_t w) { return (w - 0x01010101u) & ~w & 0x80808080u; } /* 0: none is 0 */
/* Rounds a thread's four, new moments of a half, to codes. */
AMPI_K void ampi_k_codes_narrow(const ampi_k_updating *p, ampi_k_codes_room *room, ampi_k_u4 *four, const uint32_t r[4],
    float inverse, uint64_t at, uint32_t which) {
    uint32_t c[4], x[4], code, k;
    ampi_k_words(x, *four);
    if (!ampi_k_codes_brief(c, x, r, room->step[which], inverse, which) && !ampi_k_points_are_inside(r, which))
        ampi_k_codes_surely(c, four, r, room, inverse, which);
    code = ampi_k_low_bytes(c);
    if (!which) {
        code |= ampi_k_signs_of(x);
    } else if (ampi_k_zero_bytes(code)) {
        AMP_UNROLL
        for (k = 0; k < 4u; k++)
            c[k] |= (uint32_t)((c[k] & 0xffu) == 0 && x[k] << 1 != 0);
        code = ampi_k_low_bytes(c);
    }
    *(ampi_k_u32 *)ampi_k_codes_at(&p->e, which, at) = code;
}
/* The largest of a warp's magnitudes, and its inverse; in the middle of the range rcp.rn has no branch. */
AMPI_K float ampi_k_warp_largest(float size) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    return ampi_float(__reduce_max_sync(0xffffffffu, ampi_bits(size)));
#else
    uint32_t k;
    AMP_UNROLL
    for (k = AMPI_TEAM / 2u; k; k /= 2u)
        size = ampi_larger(size, AMP_SHUFFLE(size, k));
    return size;
#endif
}
AMPI_K float ampi_k_block_inverse(float scale) {
    if (ampi_bits(scale) - 0x0f800000u <= 0x60000000u) return ampi_recip(scale); /* 2^-96 ... 2^96 */
    return ampi_moment_inverse(scale);
}
/* The end of a block, by a whole warp; at: the thread's first element. */
AMPI_K void ampi_k_codes_end(ampi_k_codes *b, const ampi_k_updating *p, ampi_k_codes_room *room, uint64_t at) {
    float inverse[AMP_MOMENTS];
    uint32_t i, k, r[4];
    AMP_UNROLL
    for (i = 0; i < (uint32_t)AMP_MOMENTS; i++) {
        b->scale[i] = ampi_moment_scale(ampi_bits(ampi_k_warp_largest(b->largest[i])));
        inverse[i] = ampi_k_block_inverse(b->scale[i]);
    }
    AMP_NO_UNROLL
    for (k = 0; k < 2u; k++, at += AMPI_HALF) {
        ampi_k_draw4(r, p->keys + AMPI_KEYS * (uint32_t)AMP_STORED_MOMENT_1, p->draw.stream, at);
        ampi_k_codes_narrow(p, room, &room->of[k][0][threadIdx.x], r, inverse[0], at, 0);
        if (p->coded > 1) ampi_k_codes_narrow(p, room, &room->of[k][1][threadIdx.x], r, inverse[1], at, 1);
    }
    at -= 2u * AMPI_HALF;
    AMP_SYNC_TEAM(); /* all have read the old scales */
    if (threadIdx.x % AMPI_TEAM != 0) return;
    AMP_UNROLL
    for (i = 0; i < (uint32_t)AMP_MOMENTS; i++)
        if ((int)i < p->coded) ampi_moment_scales(&p->e, i)[at / AMP_MOMENT_BLOCK] = b->scale[i];
}

/* A thread's elements of a half, from `at` on, as they lie in memory; b and v are codes. */
AMPI_K void ampi_k_codes_fetch(ampi_k_raws<4> *r, const ampi_k_updating *p, uint64_t at) {
    ampi_k_update_fetch(r, p, at);
    r->b.eight.a.x = r->v.eight.a.x = 0;
    if (p->coded > 0) r->b.eight.a.x = *(const ampi_k_u32 *)ampi_k_codes_at(&p->e, 0, at);
    if (p->coded > 1) r->v.eight.a.x = *(const ampi_k_u32 *)ampi_k_codes_at(&p->e, 1, at);
}
/* Their weights are stored, new moments left in `to`. */
template <int kind>
AMPI_K uint32_t ampi_k_codes_four(const ampi_k_raws<4> *r, ampi_k_codes *b, const ampi_k_updating *p,
    const ampi_k_codes_room *room, ampi_k_u4 (*to)[AMP_BLOCK], uint64_t at, const amp_coef *coef) {
    const uint32_t m = r->b.eight.a.x, v = r->v.eight.a.x;
    ampi_k_working<4> x;
    uint32_t k, found;
    float step[4];
    ampi_k_update_widen(&x, r, p);
    AMP_UNROLL
    for (k = 0; k < 4u; k++) {
        x.b[k] = ampi_bits(amp_mul(room->value[0][m >> 8u * k & 0xffu], b->scale[0]));
        x.v[k] = ampi_bits(amp_mul(room->value[1][v >> 8u * k & 0xffu], b->scale[1]));
    }
    ampi_k_update_rule<kind>(step, &x, coef, p->brief);
    if (p->zero) {
        const uint32_t none[4] = {0, 0, 0, 0};
        ampi_k_put4(p->zero + at, none, AMPI_K_STREAM);
    }
    AMP_UNROLL
    for (k = 0; k < 4u; k++) {
        b->largest[0] = ampi_larger(b->largest[0], ampi_magnitude(ampi_float(x.b[k])));
        b->largest[1] = ampi_larger(b->largest[1], ampi_magnitude(ampi_float(x.v[k])));
    }
    to[0][threadIdx.x] = ampi_k_four(x.b);
    to[1][threadIdx.x] = ampi_k_four(x.v);
    found = ampi_k_update_weights<0>(x.w, p, at);
    return x.inf ? found | AMP_MOMENT_OVERFLOW : found;
}
/* The same one by one, of those before `end`; the others are 0. */
template <int kind>
AMPI_K uint32_t ampi_k_codes_each(ampi_k_codes *b, const ampi_k_updating *p, ampi_k_u4 (*to)[AMP_BLOCK], uint64_t at,
    uint64_t end, const amp_coef *coef, ampi_k_tally *tally) {
    ampi_k_u32 *m = (ampi_k_u32 *)&to[0][threadIdx.x], *v = (ampi_k_u32 *)&to[1][threadIdx.x];
    uint32_t k, update, found = 0;
    AMP_NO_UNROLL
    for (k = 0; k < 4u; k++, at++) {
        ampi_k_working<1> x;
        m[k] = v[k] = 0;
        if (at >= end) continue;
        ampi_k_update_load(&x, p, at);
        if (p->coded > 0) x.b[0] = ampi_bits(ampi_scalar_moment_value(*ampi_k_codes_at(&p->e, 0, at), b->scale[0], 0));
        if (p->coded > 1) x.v[0] = ampi_bits(ampi_scalar_moment_value(*ampi_k_codes_at(&p->e, 1, at), b->scale[1], 1));
        update = ampi_k_update_counted<kind>(&x, 0, at, coef, kind == AMP_UPDATE_SGD && p->brief, tally);
        m[k] = x.b[0];
        v[k] = x.v[0];
        b->largest[0] = ampi_larger(b->largest[0], ampi_magnitude(ampi_float(x.b[0])));
        b->largest[1] = ampi_larger(b->largest[1], ampi_magnitude(ampi_float(x.v[0])));
        if (p->zero) p->zero[at] = 0.0f;
        found |= ampi_k_update_weights<1>(x.w, p, at);
        tally->counts += (update & (uint32_t)(x.kept[0] == x.w[0])) << 16;
        if (x.inf) found |= AMP_MOMENT_OVERFLOW;
    }
    return found;
}
/* What is under way while a half is worked on: the next one, and the scales of its block. */
typedef struct ampi_k_codes_ahead {
    ampi_k_raws<4> half;
    float scale[AMP_MOMENTS];
} ampi_k_codes_ahead;
/* A block whose elements all are there and aligned. next: where the next block is, or any other. early: the next half
   is loaded before one is worked on, not after. */
template <int kind, int early>
AMPI_K uint32_t ampi_k_codes_block(ampi_k_codes_ahead *ahead, const ampi_k_updating *p, ampi_k_codes_room *room,
    uint64_t at, uint64_t next, const amp_coef *coef) {
    uint32_t k, found = 0;
    ampi_k_codes b = {{ahead->scale[0], ahead->scale[1]}, {0.0f, 0.0f}};
    if (early)
        ampi_k_codes_scales(ahead->scale, p, next);
    else
        ampi_k_codes_scales(b.scale, p, at);
    AMP_NO_UNROLL
    for (k = 0; k < 2u; k++) {
        ampi_k_raws<4> own = ahead->half;
        if (early)
            ampi_k_codes_fetch(&ahead->half, p, k == 0 ? at + AMPI_HALF : next);
        else
            ampi_k_codes_fetch(&own, p, at + k * AMPI_HALF);
        found |= ampi_k_codes_four<kind>(&own, &b, p, room, room->of[k], at + k * AMPI_HALF, coef);
    }
    if (p->coded > 0) ampi_k_codes_end(&b, p, room, at);
    return found;
}
/* All such blocks of a piece; returns where they end. */
template <int kind, int early>
AMPI_K uint64_t ampi_k_codes_blocks(uint32_t *found, const ampi_k_updating *p, ampi_k_codes_room *room, uint64_t at,
    uint64_t last, const amp_coef *coef) {
    ampi_k_codes_ahead ahead;
    if (at + AMP_MOMENT_BLOCK > last) return at;
    memset(&ahead, 0, sizeof ahead);
    if (early) {
        ampi_k_codes_fetch(&ahead.half, p, at);
        ampi_k_codes_scales(ahead.scale, p, at);
    }
    AMP_NO_UNROLL
    while (at + AMP_MOMENT_BLOCK <= last) {
        const uint64_t next = at + AMPI_TEAMS * AMP_MOMENT_BLOCK;
        const uint64_t then = next + AMP_MOMENT_BLOCK <= last ? next : at;
        *found |= ampi_k_codes_block<kind, early>(&ahead, p, room, at, then, coef);
        at = next;
    }
    return at;
}
template <int kind>
AMPI_K uint32_t ampi_k_codes_part(const ampi_k_updating *p, ampi_k_codes_room *room, uint64_t at, uint64_t end,
    const amp_coef *coef, ampi_k_tally *tally) {
    ampi_k_codes b = {{0.0f, 0.0f}, {0.0f, 0.0f}};
    uint32_t k, found = 0;
    ampi_k_codes_scales(b.scale, p, at);
    AMP_NO_UNROLL
    for (k = 0; k < 2u; k++)
        found |= ampi_k_codes_each<kind>(&b, p, room->of[k], at + k * AMPI_HALF, end, coef, tally);
    if (p->coded > 0) ampi_k_codes_end(&b, p, room, at);
    return found;
}
/* Most updates with 8-bit moments: Adam, weights in BF16 and a remainder, gradients in BF16. What is the same in all of
   them is said to the compiler, which then leaves out the questions. Returns where it ends. */
AMPI_K int ampi_k_codes_are_usual(const ampi_k_updating *p, const amp_coef *c) {
    if (!p->pair || p->e.model_dtype != AMP_BF16 || p->stochastic) return 0;
    if (p->grad_type != AMP_BF16 || !p->grad_wide || p->zero) return 0;
    return p->coded == 2 && p->brief && !ampi_nonzero(c->limit) && !ampi_nonzero(c->l2);
}
template <int layout>
AMPI_K uint64_t ampi_k_codes_usual(uint32_t *found, const ampi_k_updating *p, const amp_coef *coef,
    ampi_k_codes_room *room, uint64_t at, uint64_t last) {
    ampi_k_updating q = *p;
    amp_coef c = *coef;
    q.e.layout = (amp_master)layout;
    q.e.model_dtype = q.weight_type = q.grad_type = AMP_BF16;
    q.e.moment_dtype = AMP_MOMENT_8BIT;
    q.low_type = ampi_low_type((amp_master)layout);
    q.e.master = NULL;
    q.weights = q.e.model;
    q.zero = NULL;
    q.stochastic = 0;
    q.pair = q.grad_wide = q.brief = 1;
    q.coded = 2;
    c.limit = c.l2 = 0.0f;
    return ampi_k_codes_blocks<AMP_UPDATE_ADAM, 1>(found, &q, room, at, last, &c);
}
template <int kind> struct ampi_k_codes_way {
    static AMPI_K_AT void piece(
        ampi_k_updating *p, const ampi_k_piece *c, const amp_coef *coef, const amp_update_job &job) {
        const uint64_t end = c->base + c->n;
        ampi_k_codes_room *room = ampi_k_codes_room_of_block();
        const ampi_k_ends ends = ampi_k_update_ends(p, c->base);
        const int whole = !job.count && !ends.never && ends.head == 0;
        uint64_t at = c->base + threadIdx.x / AMPI_TEAM * AMP_MOMENT_BLOCK + 4u * (threadIdx.x % AMPI_TEAM);
        const uint64_t last = end + 4u * (threadIdx.x % AMPI_TEAM); /* of the same thread */
        uint32_t found = 0;
        p->coded = p->moments;
        p->moments = 0;
        if (kind == AMP_UPDATE_ADAM && whole && ampi_k_codes_are_usual(p, coef)) {
            if (p->e.layout == AMP_MASTER_SPLIT)
                at = ampi_k_codes_usual<AMP_MASTER_SPLIT>(&found, p, coef, room, at, last);
            if (p->e.layout == AMP_MASTER_SPLIT8)
                at = ampi_k_codes_usual<AMP_MASTER_SPLIT8>(&found, p, coef, room, at, last);
        }
        if (whole) at = ampi_k_codes_blocks<kind, 0>(&found, p, room, at, last, coef);
        ampi_k_tally tally = ampi_k_tally_begin(&p->e, job.count ? job.count : 1u);
        AMP_NO_UNROLL
        for (; at < last; at += AMPI_TEAMS * AMP_MOMENT_BLOCK)
            found |= ampi_k_codes_part<kind>(p, room, at, end, coef, &tally);
        ampi_k_note_overflows(found, job.record, job.mirror);
        if (job.count) ampi_k_tally_end(&tally, &job.table.counts[c->param]);
    }
};
/* Three blocks on an SM hide what two wait for; from sm_100 on the compiler has no registers for three. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
#  define AMPI_CODES_BLOCKS 2
#else
#  define AMPI_CODES_BLOCKS 3
#endif
template <int kind> /* counts lost updates if it is asked to */
static __global__ void __launch_bounds__(AMP_BLOCK, AMPI_CODES_BLOCKS)
    ampi_k_update_codes(const AMP_GRID_CONSTANT amp_update_job job, uint32_t cuts) {
    ampi_k_codes_tables(ampi_k_codes_room_of_block());
    ampi_k_update_all<kind, ampi_k_codes_way<kind>>(job, cuts);
}
