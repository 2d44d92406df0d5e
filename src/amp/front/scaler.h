/* ==== >>front-scaler =============================================================================================
   The loss scaler.   tests: tests/test_scaler.c */

struct amp_scaler {
    amp_ctx *ctx;
    amp_scaler_state *state; /* context memory */
    amp_params *tied;        /* sets whose phase belongs to its iteration, or whose windows hold its scale */
    uint64_t serial;         /* of this iteration */
    amp_scaler *next;        /* in the context's list of scalers */
    int32_t checked;         /* 1: gradients were checked in this iteration */
    int32_t off;
    float kept; /* the scale from before it was switched off; 0: none */
    int32_t _pad;
};
static ampi_phase ampi_phase_after_update(const amp_params *p);
static int ampi_is_on(const amp_scaler *s) { return s && !s->off; }

static amp_status ampi_check_scale(amp_ctx *ctx, const char *name, float scale) {
    AMPI_CHECK(amp_is_finite(scale) && scale > 0.0f, "%s is %g; it must be finite and > 0", name, (double)scale);
    AMPI_CHECK(amp_is_finite(ampi_inverse(scale)), "%s is %g, whose reciprocal is not finite", name, (double)scale);
    return AMP_OK;
}

static int ampi_is_scale(float x) { return amp_is_finite(x) && x > 0.0f && amp_is_finite(ampi_inverse(x)); }
/* What a rule with this scale may not have, and which number it is; NULL: it is good. For what is given, and for what
   comes from a file. */
static const char *ampi_rule_fault(const amp_scaler_state *s, double *is) {
    const float growth = s->growth_factor, backoff = s->backoff_factor;
    *is = (double)growth;
    if (!amp_is_finite(growth) || !(growth > 1.0f)) return "growth_factor, which must be > 1,";
    *is = (double)backoff;
    if (!amp_is_finite(backoff) || !(backoff > 0.0f && backoff < 1.0f))
        return "backoff_factor, which must be in (0, 1),";
    *is = s->growth_interval;
    if (s->growth_interval < AMP_NONE) return "growth_interval, which must be > 0, 0 (for 2000) or AMP_NONE,";
    *is = s->hysteresis;
    if (s->hysteresis < 0) return "hysteresis, which must be >= 0,";
    *is = (double)s->min_scale;
    if (!ampi_is_scale(s->min_scale)) return "min_scale, which must be > 0, it and its reciprocal finite,";
    if (s->min_scale > s->scale) return "min_scale, which may not be above the scale,";
    *is = (double)s->max_scale;
    if (!ampi_is_scale(s->max_scale)) return "max_scale, which must be > 0, it and its reciprocal finite,";
    if (s->max_scale < s->scale) return "max_scale, which may not be below the scale,";
    *is = s->mode;
    return s->mode > (uint32_t)AMP_SCALER_OFF ? "mode" : NULL;
}
/* checks a rule and writes it into *s (whose scale is the scale it will work with) */
static amp_status ampi_scaler_rule(amp_ctx *ctx, amp_scaler_state *s, const amp_scaler_desc *d) {
    const float one = s->scale < 1.0f ? s->scale : 1.0f, largest = ampi_float(0x7f7fffffu);
    amp_scaler_state t = *s;
    const char *fault;
    double is = 0.0;
    AMPI_CHECK(!d->flags, "desc.flags is not 0");
    t.growth_factor = ampi_nonzero(d->growth_factor) ? d->growth_factor : 2.0f;
    t.backoff_factor = ampi_nonzero(d->backoff_factor) ? d->backoff_factor : 0.5f;
    t.min_scale = ampi_nonzero(d->min_scale) ? d->min_scale : one;
    t.max_scale = ampi_nonzero(d->max_scale) ? d->max_scale : largest;
    t.growth_interval = d->growth_interval ? d->growth_interval : 2000;
    t.hysteresis = d->hysteresis ? d->hysteresis : 1;
    t.mode = (uint32_t)d->mode;
    t.no_check = d->no_check != 0;
    t.dead_after = d->dead_after ? d->dead_after : 10;
    fault = ampi_rule_fault(&t, &is);
    AMPI_CHECK(!fault, "desc.%s is %g", fault, is);
    *s = t;
    return AMP_OK;
}

static amp_scaler_state ampi_off_state(void) { /* of a scaler that is OFF */
    amp_scaler_desc d = AMP_ZERO;
    amp_scaler_state t = AMP_ZERO;
    t.scale = t.inverse = 1.0f;
    d.mode = AMP_SCALER_OFF;
    (void)ampi_scaler_rule(NULL, &t, &d);
    t.hysteresis_tracker = t.hysteresis;
    return t;
}

static amp_status ampi_do_scaler_create(
    amp_scaler **out, amp_ctx *ctx, int version, size_t size, const amp_scaler_desc *desc) {
    amp_scaler_state state = ampi_off_state();
    amp_scaler_desc d = AMP_ZERO;
    amp_scaler *s;
    amp_status st;
    void *mem;
    AMPI_CHECK_CREATE(out, version, size, &d, desc);
    if (!ampi_nonzero(d.scale) || (d.mode == AMP_SCALER_OFF && !ampi_is_scale(d.scale))) d.scale = 65536.0f;
    AMPI_TRY(ampi_check_scale(ctx, "desc.scale", d.scale));
    if (d.mode != AMP_SCALER_OFF) { /* of one that is OFF no rule counts */
        state.scale = d.scale;
        AMPI_TRY(ampi_scaler_rule(ctx, &state, &d));
        state.hysteresis_tracker = state.hysteresis;
        state.inverse = ampi_inverse(state.scale);
    }
    AMPI_HAS(next_scale);
    AMPI_HAS(finite);
    AMPI_TRY((ctx->b->may_wait)(ctx));
    s = (amp_scaler *)ampi_host_new(ctx, sizeof *s);
    AMPI_MEMORY(s);
    st = ampi_alloc_block(ctx, &mem, sizeof state, "scaler", 0);
    if (st == AMP_OK) st = ampi_settle(ctx, (ctx->b->copy)(ctx, mem, &state, sizeof state));
    if (st != AMP_OK) {
        ampi_free_block(ctx, mem);
        ampi_host_drop(ctx, s, sizeof *s);
        return st;
    }
    s->ctx = ctx;
    s->state = (amp_scaler_state *)mem;
    s->next = ctx->scalers;
    ctx->scalers = s;
    s->serial = ++ctx->serial;
    s->off = d.mode == AMP_SCALER_OFF;
    s->kept = d.scale;
    *out = s;
    return AMP_OK;
}
AMP_API amp_status amp_scaler_create_checked(
    amp_scaler **out, amp_ctx *ctx, int version, size_t size, const amp_scaler_desc *desc) {
    if (out) *out = NULL;
    AMPI_VERB(ctx, scaler_create, (out, ctx, version, size, desc));
}

static void ampi_do_scaler_destroy(amp_scaler *s) {
    amp_ctx *ctx = s->ctx;
    while (s->tied)
        ampi_untie(s->tied);
    AMPI_UNLINK(amp_scaler, ctx->scalers, s, next);
    ampi_free_block(ctx, s->state);
    ampi_host_drop(ctx, s, sizeof *s);
}
AMP_API void amp_scaler_destroy(amp_scaler *s) { AMPI_DESTROY(AMPI_CTX(s), scaler_destroy, (s)); }

static amp_status ampi_scaler_read(amp_scaler *s, amp_scaler_state *out) { /* s NULL: as if OFF */
    if (!s) {
        *out = ampi_off_state();
        return AMP_OK;
    }
    return ampi_do_copy(s->ctx, out, s->state, sizeof *out);
}
static amp_status ampi_scaler_write(amp_scaler *s, const amp_scaler_state *in) {
    return (s->ctx->b->copy)(s->ctx, s->state, in, sizeof *in);
}

AMP_API const float *amp_scaler_scale_ptr(const amp_scaler *s) { return s ? &s->state->scale : NULL; }
AMP_API const float *amp_scaler_inverse_ptr(const amp_scaler *s) { return s ? &s->state->inverse : NULL; }

static amp_status ampi_do_scaler_get(amp_scaler *s, amp_scaler_info *out) {
    amp_ctx *ctx = s->ctx;
    amp_scaler_state t;
    AMPI_CHECK(out, "out is NULL");
    AMPI_TRY(ampi_scaler_read(s, &t));
    out->scale = t.scale;
    out->growth_tracker = t.growth_tracker;
    out->hysteresis_tracker = t.hysteresis_tracker;
    out->dead = amp_scaler_dead(&t);
    out->good = t.good;
    out->bad = t.bad;
    out->bad_in_a_row = t.bad_in_a_row;
    out->bad_nan = t.bad_nan;
    out->bad_inf = t.bad_inf;
    out->bad_overflow = t.bad_overflow;
    return AMP_OK;
}
AMP_API amp_status amp_scaler_get(amp_scaler *s, amp_scaler_info *out) {
    amp_scaler_info off = AMP_ZERO;
    off.scale = 1.0f;
    off.hysteresis_tracker = 1;
    if (!s && out) *out = off;
    if (!s) return out ? AMP_OK : AMP_ERR_INVALID_ARG;
    AMPI_VERB(s->ctx, scaler_get, (s, out));
}

static void ampi_next_iteration(amp_scaler *s) {
    amp_params *p;
    for (p = s->tied; p; p = p->next_tied)
        p->phase = ampi_phase_after_update(p);
    s->serial = ++s->ctx->serial;
    s->checked = 0;
}

static amp_status ampi_check_scaler(amp_ctx *ctx, const amp_scaler *s) {
    AMPI_CHECK(s, "s is NULL");
    AMPI_CHECK(s->ctx == ctx, "s belongs to a different context");
    return AMP_OK;
}
/* does the window of a set hold the scale? Of a set that is not `but` (NULL allowed). */
static int ampi_held(const amp_scaler *s, const amp_params *but) {
    const amp_params *p = s->tied;
    while (p && (p == but || !p->holds))
        p = p->next_tied;
    return p != NULL;
}
/* may the scale move? */
static amp_status ampi_check_held(amp_ctx *ctx, const amp_scaler *s) {
    AMPI_STAGE(!ampi_held(s, NULL), "an accumulation window (amp_window_begin) holds the scale");
    return AMP_OK;
}

static void ampi_put_scale(amp_scaler_state *t, float scale) { /* by hand: what was found is forgotten */
    t->scale = scale;
    t->inverse = ampi_inverse(scale);
    if (t->min_scale > scale) t->min_scale = scale;
    if (t->max_scale < scale) t->max_scale = scale;
    t->found = 0;
}
static amp_status ampi_do_scaler_set_scale(amp_scaler *s, float scale) {
    amp_ctx *ctx = s->ctx;
    amp_scaler_state t;
    AMPI_TRY(ampi_check_scale(ctx, "scale", scale));
    if (s->off) s->kept = scale;
    if (s->off) return AMP_OK;
    AMPI_TRY(ampi_check_held(ctx, s));
    AMPI_TRY(ampi_scaler_read(s, &t));
    ampi_put_scale(&t, scale);
    t.stuck = 0;
    AMPI_TRY(ampi_scaler_write(s, &t));
    ampi_next_iteration(s);
    return AMP_OK;
}
AMP_API amp_status amp_scaler_set_scale(amp_scaler *s, float scale) {
    if (!s) return AMP_OK;
    AMPI_VERB(s->ctx, scaler_set_scale, (s, scale));
}

static amp_status ampi_do_scaler_set(amp_scaler *s, const amp_scaler_info *info) {
    amp_ctx *ctx = s->ctx;
    amp_scaler_state t;
    AMPI_CHECK(info, "info is NULL");
    AMPI_TRY(ampi_check_scale(ctx, "info.scale", info->scale));
    AMPI_CHECK(info->growth_tracker >= 0, "info.growth_tracker is %d; it must be >= 0", (int)info->growth_tracker);
    if (s->off) return AMP_OK;
    AMPI_TRY(ampi_check_held(ctx, s));
    AMPI_TRY(ampi_scaler_read(s, &t));
    AMPI_CHECK(info->hysteresis_tracker <= t.hysteresis,
        "info.hysteresis_tracker is %d, above the rule's hysteresis %d", (int)info->hysteresis_tracker,
        (int)t.hysteresis);
    if (!info->dead != !amp_scaler_dead(&t)) t.stuck = info->dead ? t.dead_after : 0;
    ampi_put_scale(&t, info->scale);
    t.growth_tracker = info->growth_tracker;
    t.hysteresis_tracker = info->hysteresis_tracker;
    t.good = info->good;
    t.bad = info->bad;
    t.bad_in_a_row = info->bad_in_a_row;
    t.bad_nan = info->bad_nan;
    t.bad_inf = info->bad_inf;
    t.bad_overflow = info->bad_overflow;
    AMPI_TRY(ampi_scaler_write(s, &t));
    ampi_next_iteration(s);
    return AMP_OK;
}
AMP_API amp_status amp_scaler_set(amp_scaler *s, const amp_scaler_info *info) {
    if (!s) return info ? AMP_OK : AMP_ERR_INVALID_ARG;
    AMPI_VERB_OF(s, scaler_set, (s, info));
}

/* A scaler that is off has scale 1 in context memory, too; the one before is kept for the next mode. */
static amp_status ampi_do_scaler_configure(amp_scaler *s, const amp_scaler_desc *desc) {
    amp_ctx *ctx = s->ctx;
    const int was_off = s->off;
    amp_scaler_state t;
    float kept;
    int off;
    AMPI_CHECK_DESC(desc);
    AMPI_CHECK(!ampi_nonzero(desc->scale), "desc.scale is not 0 (amp_scaler_set_scale sets it)");
    off = desc->mode == AMP_SCALER_OFF;
    if (off != was_off) AMPI_TRY(ampi_check_held(ctx, s));
    AMPI_TRY(ampi_scaler_read(s, &t));
    if (was_off) t.scale = s->kept; /* the rule is checked with the scale that it will work with */
    AMPI_TRY(ampi_scaler_rule(ctx, &t, desc));
    if (t.hysteresis_tracker > t.hysteresis) t.hysteresis_tracker = t.hysteresis;
    kept = t.scale;
    if (off) t.scale = 1.0f;
    if (off != was_off) t.found = 0;
    t.inverse = ampi_inverse(t.scale);
    AMPI_TRY(ampi_scaler_write(s, &t));
    s->kept = kept;
    s->off = off;
    if (off != was_off) ampi_next_iteration(s);
    return AMP_OK;
}
AMP_API amp_status amp_scaler_configure(amp_scaler *s, const amp_scaler_desc *desc) {
    AMPI_VERB_OF(s, scaler_configure, (s, desc));
}

/* dst[i] is grads[i], or apart from every list entry that is read; and apart from every dst before it */
static amp_status ampi_check_unscaled(amp_ctx *ctx, const amp_array *dst, const amp_array *grads, size_t i, size_t n) {
    char name[40];
    size_t k, bytes;
    snprintf(name, sizeof name, "dst[%llu]", AMPI_ULL(i));
    AMPI_TRY(ampi_check_array(ctx, name, dst[i], grads[i].count, 1));
    AMPI_CHECK(ampi_product(&bytes, grads[i].count, amp_dtype_size(dst[i].dtype)),
        "%s would have %llu elements, which is too large", name, AMPI_ULL(grads[i].count));
    AMPI_CHECK(dst[i].data != grads[i].data || dst[i].dtype == grads[i].dtype || !bytes,
        "%s is grads[%llu] with a different dtype", name, AMPI_ULL(i));
    for (k = 0; k < n; k++) {
        size_t read = grads[k].count * amp_dtype_size(grads[k].dtype);
        int same = k == i && dst[i].data == grads[i].data;
        AMPI_CHECK(same || !ampi_overlap(dst[i].data, bytes, grads[k].data, read), "%s overlaps grads[%llu]", name,
            AMPI_ULL(k));
    }
    for (k = 0; k < i; k++) {
        size_t before = grads[k].count * amp_dtype_size(dst[k].dtype);
        int meet = ampi_overlap(dst[i].data, bytes, dst[k].data, before);
        AMPI_CHECK(!meet, "%s overlaps dst[%llu]", name, AMPI_ULL(k));
    }
    return AMP_OK;
}
/* In place: what stands in the list twice would be divided twice. Most lists lie in the order of their addresses, or
   against it. */
static amp_status ampi_check_once(amp_ctx *ctx, const amp_array *grads, size_t n) {
    uintptr_t least = UINTPTR_MAX, end = 0; /* of all so far */
    size_t i, k;
    for (i = 0; i < n; i++) {
        const uintptr_t first = (uintptr_t)grads[i].data;
        const size_t bytes = grads[i].count * amp_dtype_size(grads[i].dtype);
        const int between = bytes && first < end && first + bytes > least;
        for (k = 0; between && k < i; k++) {
            const size_t before = grads[k].count * amp_dtype_size(grads[k].dtype);
            AMPI_CHECK(!ampi_overlap(grads[i].data, bytes, grads[k].data, before), "grads[%llu] overlaps grads[%llu]",
                AMPI_ULL(i), AMPI_ULL(k));
        }
        if (bytes && first < least) least = first;
        if (bytes && first + bytes > end) end = first + bytes;
    }
    return AMP_OK;
}
static amp_status ampi_unscale_by_nothing(
    const amp_array *dst, amp_finite_report *report, const amp_array *grads, size_t n) {
    if (dst || (n && !grads)) return AMP_ERR_INVALID_ARG; /* without a context: no sentence */
    if (report) memset(report, 0, sizeof *report);
    return AMP_OK;
}
static amp_status ampi_do_unscale(
    amp_scaler *s, const amp_array *dst, amp_finite_report *report, const amp_array *grads, size_t n) {
    amp_ctx *ctx = s->ctx;
    amp_finite_report r = AMP_ZERO;
    size_t i;
    AMPI_TRY(ampi_check_list(ctx, "grads", grads, n, 0));
    if (!dst) AMPI_TRY(ampi_check_once(ctx, grads, n));
    for (i = 0; dst && i < n; i++)
        AMPI_TRY(ampi_check_unscaled(ctx, dst, grads, i, n));
    for (i = 0; (dst || !s->off) && i < n; i++)
        ampi_wrote_array(ctx, dst ? dst[i] : grads[i], grads[i].count);
    if (report) AMPI_TRY((ctx->b->may_wait)(ctx));
    if (!s->off) {
        AMPI_TRY((ctx->b->finite)(ctx, dst, grads, n, s->state, report ? &r : NULL));
        s->checked = 1;
    } else
        for (i = 0; dst && i < n; i++) {
            int in_place = dst[i].data == grads[i].data;
            if (!in_place) AMPI_TRY(ampi_do_cast(ctx, dst[i], grads[i], grads[i].count, NULL));
        }
    if (report) *report = r;
    return AMP_OK;
}
AMP_API amp_status amp_unscale(
    amp_scaler *s, const amp_array *dst, amp_finite_report *report, const amp_array *grads, size_t n) {
    if (!s) return ampi_unscale_by_nothing(dst, report, grads, n);
    AMPI_VERB(s->ctx, unscale, (s, dst, report, grads, n));
}

static amp_status ampi_do_scaler_update(amp_scaler *s) {
    amp_ctx *ctx = s->ctx;
    if (!ampi_is_on(s)) return AMP_OK;
    AMPI_TRY(ampi_check_held(ctx, s));
    AMPI_STAGE(s->checked != 0, "nothing was checked since the last update (unscale or step first)");
    AMPI_TRY((ctx->b->next_scale)(ctx, s->state));
    ampi_next_iteration(s);
    ampi_iteration_ended(ctx);
    return AMP_OK;
}
AMP_API amp_status amp_scaler_update(amp_scaler *s) {
    if (!s) return AMP_OK;
    AMPI_VERB(s->ctx, scaler_update, (s));
}

