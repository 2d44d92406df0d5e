/* ---- an update of one element: its coefficients; its rule is at >>lanes (ampi_scalar_adam_one: AMPI_F(adam_one)) ----
   tests: tests/test_step.c, tests/test_layouts.c */

typedef struct amp_coef {   /* what one parameter's update needs, from the desc, the record and the parameter */
    float inv, clip, limit; /* limit 0: none */
    float beta1, one_beta1, beta2, one_beta2, eps; /* Adam, AdamW */
    float lr, step_size, rsqrt_bc2, decay;         /* decay multiplies w (AdamW); 1: none */
    float l2;                                      /* added as l2 * w (SGD, Adam); 0: none */
    float momentum, one_dampening;                 /* SGD */
    uint32_t first, nesterov;
} amp_coef;

AMP_INLINE int amp_is_first_step(uint64_t steps, const amp_param_entry *p) {
    return p->before != AMPI_HAS_STEPPED && steps == (uint64_t)p->before + 1u;
}
AMP_INLINE amp_coef amp_coef_of(const amp_update_job *job, const amp_param_entry *p) {
    const amp_hyper *g = &job->group[p->group];
    const amp_rates *r = &job->record->rate[p->group];
    amp_coef c;
    c.inv = job->record->inv_scale;
    c.clip = job->record->clip;
    c.limit = job->clip_value;
    c.beta1 = g->beta1;
    c.one_beta1 = amp_narrow(amp_dsub(1.0, amp_widen(g->beta1)));
    c.beta2 = g->beta2;
    c.one_beta2 = amp_narrow(amp_dsub(1.0, amp_widen(g->beta2)));
    c.eps = g->eps;
    c.lr = r->lr;
    c.step_size = r->step_size;
    c.rsqrt_bc2 = r->rsqrt_bc2;
    c.decay = job->decoupled && !p->no_decay ? r->decay : 1.0f;
    c.l2 = job->decoupled || p->no_decay ? 0.0f : g->weight_decay;
    c.momentum = g->momentum;
    c.one_dampening = amp_narrow(amp_dsub(1.0, amp_widen(g->dampening)));
    c.first = (uint32_t)amp_is_first_step(job->record->steps, p);
    c.nesterov = job->nesterov;
    return c;
}
AMP_INLINE amp_coef amp_coef_of_apply(const amp_apply_job *job, const amp_param_entry *p) {
    const amp_rates *r = &job->record->rate[p->group];
    amp_coef c = AMP_ZERO;
    c.inv = c.clip = 1.0f;
    c.lr = job->with_rates ? r->lr : 1.0f;
    c.decay = job->with_rates && !p->no_decay ? r->decay : 1.0f;
    return c;
}

/* Clipping alone: gradients stay scaled, so the limit is. */
AMP_INLINE int amp_clip_is_idle(const amp_clip_job *job) {
    return !ampi_nonzero(job->limit) && ampi_bits(job->record->clip) == 0x3f800000u;
}
AMP_INLINE amp_coef amp_coef_of_clip(const amp_clip_job *job) {
    amp_coef c = AMP_ZERO;
    c.inv = 1.0f;
    c.clip = job->record ? job->record->clip : 1.0f;
    c.limit = job->scaler ? amp_mul(job->limit, job->scaler->scale) : job->limit;
    return c;
}

/* The spacing of a weight in the format that keeps it, 2^(exponent - mant), but at least 2^-126: for KAHAN that of 16
   significant bits. An update's ratio to it is ampi_scalar_in_spacings times rest: 0 where the weight is Inf or NaN. */
typedef struct amp_spacing {
    uint32_t most; /* bits of the largest 2^(128 - exponent) */
    float rest;    /* 2^(mant - 1) */
} amp_spacing;
AMP_INLINE amp_spacing amp_spacing_of(amp_master layout, amp_dtype model) {
    const ampi_format f = ampi_format_of(model);
    uint32_t mant = 23, least = 1;
    amp_spacing s;
    if (layout == AMP_MASTER_NONE) {
        mant = f.mant;
        least = f.emin;
    }
    if (layout == AMP_MASTER_KAHAN) mant = 15;
    if (layout == AMP_MASTER_SPLIT && model == AMP_F16) least = 111; /* in steps of 2^-39: see amp_split_pack */
    if (layout == AMP_MASTER_SPLIT8) {
        mant = f.mant + 8u;
        least = f.emin;
    }
    s.most = (255u - (least > mant ? least : mant + 1u)) << 23;
    s.rest = ampi_float((126u + mant) << 23);
    return s;
}

/* x * sign(s), x >= 0; 0 for s = 0; NaN for NaN */
AMP_INLINE float ampi_scalar_with_sign(float x, float s) {
    uint32_t u = ampi_bits(s);
    if (u << 1 == 0) return 0.0f;
    return amp_is_nan(s) ? s : ampi_float(ampi_bits(x) | (u & 0x80000000u));
}
/* NaN stays; by the bits: -ffast-math forgets NaN in comparisons */
AMP_INLINE float ampi_scalar_clamp(float x, float limit) {
    uint32_t a = ampi_bits(x) & 0x7fffffffu, l = ampi_bits(limit);
    return a > l && a <= 0x7f800000u ? ampi_float((ampi_bits(x) & 0x80000000u) | l) : x;
}
#define AMPI_F(name) ampi_scalar_##name
#define AMPI_PASS    AMPI_PASS_UPDATE
#include AMP_SELF
#undef AMPI_F

/* One element through an update. u: the gradient, unscaled and clipped by amp_prepare_one; what the kind has no moment
   array for stays as it is. Returns what was subtracted from the weight: its update. */
AMP_INLINE float amp_prepare_one(float u, const amp_coef *c) { return ampi_scalar_prepare_one(u, c); }
AMP_INLINE float amp_update_one(amp_update_kind kind, float *w, float *m, float *v, float u, const amp_coef *c) {
    return ampi_scalar_update_one(kind, w, m, v, u, c);
}

/* ---- what an update stores, in every layout and on every backend   tests: tests/test_layouts.c ---- */

/* Each kind of number that is rounded stochastically has random words of its own: element i takes
   amp_random(seed, stream, i). */
typedef enum amp_stored { AMP_STORED_MODEL = 0, AMP_STORED_MOMENT_1, AMP_STORED_MOMENT_2 } AMP_INT amp_stored;
typedef struct amp_draw { uint64_t seed, stream; } amp_draw;
AMP_INLINE amp_draw amp_draw_of(const amp_step_record *r, uint32_t param) { /* of the model copy */
    amp_draw d = {r->seed, (r->steps << 24) + param};
    return d;
}
AMP_INLINE amp_draw amp_draw_for(amp_draw model, amp_stored what) {
    model.seed += (uint64_t)what;
    return model;
}
/* What an update can find, bits: see amp_step_record. */
#define AMP_WEIGHT_OVERFLOW 1u
#define AMP_MOMENT_OVERFLOW 2u
/* AMP_WEIGHT_OVERFLOW: the 16-bit copy of w is Inf and w is not NaN. */
AMP_INLINE uint32_t amp_copy_overflow(uint32_t copy, float w, amp_dtype t) {
    return (copy & 0x7fffu) >= (t == AMP_F16 ? 0x7c00u : 0x7f80u) && !amp_is_nan(w);
}

/* An update made elsewhere; returns it as amp_update_one does. */
AMP_INLINE float amp_apply_one(float *w, float u, const amp_coef *c) {
    u = amp_mul(c->lr, u);
    *w = amp_sub(amp_mul(*w, c->decay), u);
    return u;
}

/* A weight of SPLIT, SPLIT8 or KAHAN: model copy in the low half, the rest in the high half. how, r: SPLIT8's alone. */
AMP_INLINE uint32_t amp_pair_pack(float w, amp_master layout, amp_dtype t, amp_rounding how, uint32_t r) {
    if (layout == AMP_MASTER_KAHAN) return amp_kahan_pack(w);
    if (layout == AMP_MASTER_SPLIT8) /* the format's numbers fold */
        return t == AMP_F16 ? amp_split8_pack(w, AMP_F16, how, r) : amp_split8_pack(w, AMP_BF16, how, r);
    return t == AMP_F16 ? amp_split_pack(w, AMP_F16) : amp_split_pack(w, AMP_BF16);
}
AMP_INLINE float amp_pair_unpack(uint32_t pair, amp_master layout, amp_dtype t) {
    if (layout == AMP_MASTER_KAHAN) return amp_kahan_unpack(pair);
    if (layout == AMP_MASTER_SPLIT8)
        return t == AMP_F16 ? amp_split8_unpack(pair, AMP_F16) : amp_split8_unpack(pair, AMP_BF16);
    return t == AMP_F16 ? amp_split_unpack(pair, AMP_F16) : amp_split_unpack(pair, AMP_BF16);
}

/* One element of a weight, whatever the layout, for kernels of your own optimizer. Load before an update; store writes
   master and model copy as amp_inspect was told (record r, parameter number `param`) and returns 1 when the 16-bit copy
   cannot hold the weight. */
AMP_INLINE float amp_weight_load(const amp_param_entry *p, uint64_t i) {
    uint32_t low;
    if (p->layout == AMP_MASTER_F32) return amp_load(p->master, AMP_F32, (size_t)i);
    if (p->layout == AMP_MASTER_NONE) return amp_load(p->model, p->model_dtype, (size_t)i);
    low = ampi_load_pattern(p->low, ampi_low_type(p->layout), (size_t)i);
    return amp_pair_unpack(ampi_load_pattern(p->model, AMP_BF16, (size_t)i) | low << 16, p->layout, p->model_dtype);
}
/* ... of SPLIT, SPLIT8 or KAHAN */
AMP_INLINE uint32_t ampi_pair_store(const amp_param_entry *p, uint64_t i, float w, amp_rounding how, uint32_t r) {
    const uint32_t both = amp_pair_pack(w, p->layout, p->model_dtype, how, r);
    ampi_store_pattern(p->low, ampi_low_type(p->layout), (size_t)i, both >> 16);
    ampi_store_pattern(p->model, AMP_BF16, (size_t)i, both & 0xffffu);
    return amp_copy_overflow(both & 0xffffu, w, p->model_dtype);
}
AMP_INLINE uint32_t amp_weight_store(
    const amp_param_entry *p, uint64_t i, float w, const amp_step_record *r, uint32_t param) {
    const amp_draw d = amp_draw_of(r, param);
    const amp_rounding how = r->stochastic ? AMP_STOCHASTIC : AMP_NEAREST;
    const uint32_t word = r->stochastic ? amp_random(d.seed, d.stream, i) : 0u;
    uint32_t copy;
    if (p->layout == AMP_MASTER_F32) {
        amp_store(p->master, AMP_F32, (size_t)i, w);
        if (!p->model) return 0;
    }
    if (p->low) return ampi_pair_store(p, i, w, how, word);
    copy = ampi_encode(ampi_bits(w), p->model_dtype, how, word, 0);
    ampi_store_pattern(p->model, p->model_dtype, (size_t)i, copy);
    return amp_copy_overflow(copy, w, p->model_dtype);
}

/* Element i of moment 0 or 1, however it is kept. Class: also in kernels. */
AMP_INLINE float amp_moment_load(const amp_param_entry *p, uint32_t which, uint64_t i) {
    const void *moment = p->moment[which];
    uint32_t code;
    float scale;
    if (p->moment_dtype != AMP_MOMENT_8BIT) return amp_load(moment, p->moment_dtype, (size_t)i);
    code = ((const uint8_t *)moment)[i];
    scale = ampi_moment_scales(p, which)[i / AMP_MOMENT_BLOCK];
    return which ? ampi_scalar_moment_value(code, scale, 1) : ampi_scalar_moment_value(code, scale, 0);
}

/* Where the arrays of parameter i are and how they are kept, to go by value into a kernel of your own optimizer, which
   then reads and writes weights with the two functions above in every layout. All zero before commit and past the end.
   Class: host. */
AMP_API amp_param_entry amp_param_entry_get(const amp_params *p, size_t i);

