/* ---- update with moments in 8 bits: a warp has a block of 256 elements, a thread eight of it in a row, so the largest
   of a block goes from thread to thread. Blocks whose arrays are not all there and aligned, and those that count lost
   updates, take their elements one by one; then new moments wait in shared memory.
   tests: tests/test_moments.c, tests/test_layouts.c ---- */
static_assert(AMP_MOMENT_BLOCK == 8u * AMPI_TEAM, "eight elements for each thread of a warp");

typedef struct ampi_k_codes { /* of a thread's eight, as they are in memory */
    ampi_k_u2 code[AMP_MOMENTS];
    float scale[AMP_MOMENTS];
} ampi_k_codes;
AMPI_K ampi_k_u2 *ampi_k_codes_at(const amp_param_entry *e, uint32_t which, uint64_t at) {
    return (ampi_k_u2 *)((char *)e->moment[which] + at);
}
AMPI_K void ampi_k_codes_fetch(ampi_k_codes *r, const ampi_k_updating *p, uint64_t at) {
    uint32_t i;
    AMP_UNROLL
    for (i = 0; i < (uint32_t)AMP_MOMENTS; i++) {
        r->scale[i] = 0.0f;
        r->code[i].x = r->code[i].y = 0;
        if ((int)i >= p->coded) continue;
        r->code[i] = *ampi_k_codes_at(&p->e, i, at);
        r->scale[i] = ampi_moment_scales(&p->e, i)[at / AMP_MOMENT_BLOCK];
    }
}
AMPI_K void ampi_k_codes_widen(uint32_t x[8], const ampi_k_codes *r, uint32_t which) {
    uint32_t k;
    ampi_k_unpack4(x, r->code[which].x);
    ampi_k_unpack4(x + 4, r->code[which].y);
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        x[k] = ampi_bits(ampi_scalar_moment_value(x[k], r->scale[which], which));
}
AMPI_K float ampi_k_block_scale(const uint32_t x[8]) { /* by the whole warp */
    float most = 0.0f;
    uint32_t k;
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        most = ampi_larger(most, ampi_float(x[k] & 0x7fffffffu));
    AMP_UNROLL
    for (k = AMPI_TEAM / 2u; k; k /= 2u)
        most = ampi_larger(most, AMP_SHUFFLE(most, k));
    return ampi_moment_scale(ampi_bits(most));
}
AMPI_K void ampi_k_codes_narrow(
    const uint32_t x[8], const uint32_t r[8], const ampi_k_updating *p, uint64_t at, uint32_t which) {
    const float scale = ampi_k_block_scale(x), inverse = ampi_moment_inverse(scale);
    uint32_t c[8], k;
    ampi_k_u2 code;
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        c[k] = ampi_scalar_moment_code(ampi_float(x[k]), inverse, r[k], which);
    code.x = c[0] | c[1] << 8 | c[2] << 16 | c[3] << 24;
    code.y = c[4] | c[5] << 8 | c[6] << 16 | c[7] << 24;
    *ampi_k_codes_at(&p->e, which, at) = code;
    AMP_SYNC_TEAM(); /* all have read the old scale */
    if (threadIdx.x % AMPI_TEAM == 0) ampi_moment_scales(&p->e, which)[at / AMP_MOMENT_BLOCK] = scale;
}
AMPI_K void ampi_k_codes_store(const ampi_k_working<8> *x, const ampi_k_updating *p, uint64_t at) {
    uint32_t r[8];
    if (p->coded == 0) return;
    ampi_k_draw8(r, p->keys + AMPI_KEYS * (uint32_t)AMP_STORED_MOMENT_1, p->draw.stream, at);
    ampi_k_codes_narrow(x->b, r, p, at, 0);
    if (p->coded > 1) ampi_k_codes_narrow(x->v, r, p, at, 1);
}

/* One element of a thread's eight: its weight is stored, its new moments go to *b and *v. */
template <int kind>
AMPI_K uint32_t ampi_k_codes_one(const ampi_k_updating *p, const ampi_k_codes *old, uint32_t k, uint64_t at,
    const amp_coef *coef, ampi_k_tally *tally, uint32_t *b, uint32_t *v) {
    const uint32_t by = 8u * (k % 4u);
    const ampi_k_u2 m0 = old->code[0], m1 = old->code[1];
    ampi_k_working<1> x;
    uint32_t update, found;
    ampi_k_update_load<kind>(&x, p, at);
    x.b[0] = ampi_bits(ampi_scalar_moment_value((k < 4u ? m0.x : m0.y) >> by & 0xffu, old->scale[0], 0));
    x.v[0] = ampi_bits(ampi_scalar_moment_value((k < 4u ? m1.x : m1.y) >> by & 0xffu, old->scale[1], 1));
    update = ampi_k_update_counted<kind>(&x, 0, at, coef, kind == AMP_UPDATE_SGD && p->brief, tally);
    *b = x.b[0];
    *v = x.v[0];
    if (p->zero) p->zero[at] = 0.0f;
    found = ampi_k_update_weights<1>(x.w, p, at);
    tally->counts += (update & (uint32_t)(x.kept[0] == x.w[0])) << 16;
    return x.inf ? found | AMP_MOMENT_OVERFLOW : found;
}
/* The eight elements from `at` on, those before `end`. Where threads of a warp have fewer, the others' are 0. */
template <int kind>
AMPI_K uint32_t ampi_k_codes_each(ampi_k_working<8> *x, const ampi_k_updating *p, const ampi_k_codes *old, uint64_t at,
    uint64_t end, const amp_coef *coef, ampi_k_tally *tally) {
    AMP_SHARED(uint32_t, kept, AMP_MOMENTS * 8 * AMP_BLOCK);
    const uint32_t m = ampi_k_group(at, end);
    uint32_t *own = kept + threadIdx.x, k, found = 0;
    AMP_NO_UNROLL
    for (k = 0; k < 8u; k++, own += AMP_MOMENTS * AMP_BLOCK) {
        own[0] = own[AMP_BLOCK] = 0;
        if (k < m) found |= ampi_k_codes_one<kind>(p, old, k, at + k, coef, tally, &own[0], &own[AMP_BLOCK]);
    }
    own = kept + threadIdx.x;
    AMP_UNROLL
    for (k = 0; k < 8u; k++) {
        x->b[k] = own[AMP_MOMENTS * AMP_BLOCK * k];
        x->v[k] = own[AMP_MOMENTS * AMP_BLOCK * k + AMP_BLOCK];
    }
    return found;
}
template <int kind>
AMPI_K uint32_t ampi_k_codes_eight(
    ampi_k_working<8> *x, const ampi_k_updating *p, const ampi_k_codes *old, uint64_t at, const amp_coef *coef) {
    uint32_t k, found;
    float step[8];
    ampi_k_update_load<kind>(x, p, at);
    ampi_k_codes_widen(x->b, old, 0);
    ampi_k_codes_widen(x->v, old, 1);
    ampi_k_update_rule<kind>(step, x, coef, p->brief);
    AMP_UNROLL
    for (k = 0; p->zero && k < 2u; k++) {
        const uint32_t none[4] = {0, 0, 0, 0};
        ampi_k_put4(p->zero + at + 4u * k, none, AMPI_K_STREAM);
    }
    found = ampi_k_update_weights<0>(x->w, p, at);
    return x->inf ? found | AMP_MOMENT_OVERFLOW : found;
}
template <int kind> struct ampi_k_codes_way {
    static AMPI_K_AT void piece(
        ampi_k_updating *p, const ampi_k_piece *c, const amp_coef *coef, const amp_update_job &job) {
        ampi_k_tally tally = ampi_k_tally_begin(&p->e, job.count ? job.count : 1u);
        const ampi_k_ends ends = ampi_k_update_ends(p, c->base);
        const int whole = !job.count && !ends.never && ends.head == 0;
        const uint64_t end = c->base + c->n;
        uint64_t first = c->base + threadIdx.x / AMPI_TEAM * AMP_MOMENT_BLOCK;
        uint32_t found = 0;
        p->coded = p->moments;
        p->moments = 0;
        for (; first < end; first += AMPI_TEAMS * AMP_MOMENT_BLOCK) {
            const uint64_t at = first + 8u * (threadIdx.x % AMPI_TEAM);
            ampi_k_working<8> x;
            ampi_k_codes old;
            ampi_k_codes_fetch(&old, p, at);
            if (whole && first + AMP_MOMENT_BLOCK <= end)
                found |= ampi_k_codes_eight<kind>(&x, p, &old, at, coef);
            else
                found |= ampi_k_codes_each<kind>(&x, p, &old, at, end, coef, &tally);
            ampi_k_codes_store(&x, p, at);
        }
        ampi_k_note_overflows(found, job.record, job.mirror);
        if (job.count) ampi_k_tally_end(&tally, &job.table.counts[c->param]);
    }
};
template <int kind> /* counts lost updates if it is asked to */
static __global__ void __launch_bounds__(AMP_BLOCK, 2)
    ampi_k_update_codes(const AMP_GRID_CONSTANT amp_update_job job, uint32_t cuts) {
    ampi_k_update_all<kind, ampi_k_codes_way<kind>>(job, cuts);
}
