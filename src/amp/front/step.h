/* ==== >>front-step ===============================================================================================
   The optimizer step.   tests: tests/test_step.c, tests/test_phases.c, tests/test_layouts.c, tests/test_context.c */

/* x, or what its absence means. A bare number in place of amp_opt(x) has a value but is not given. */
static amp_status ampi_optional(
    amp_ctx *ctx, const char *name, const char *field, float *out, amp_optional x, float absent) {
    AMPI_CHECK(x.given || ampi_bits(x.value) == 0, "%s.%s is the bare number %g; write amp_opt(%g)", name, field,
        (double)x.value, (double)x.value);
    *out = x.given ? x.value : absent;
    return AMP_OK;
}

static amp_status ampi_rate(amp_ctx *ctx, const char *name, const amp_group *g, float *lr) {
    AMPI_CHECK((uintptr_t)g->lr_ptr % 4u == 0, "%s.lr_ptr is not aligned to 4 bytes", name);
    *lr = 0.0f;
    if (g->lr_ptr || ampi_bits(g->lr) == ampi_bits((float)AMP_NONE)) return AMP_OK;
    AMPI_CHECK(ampi_nonzero(g->lr), "%s.lr is 0: give a learning rate, lr_ptr, or AMP_NONE for a rate of 0", name);
    *lr = g->lr;
    return AMP_OK;
}

static int ampi_in_range(float x, float least, float most) { return amp_is_finite(x) && x >= least && x <= most; }
#define AMPI_MOST      3.4028234e38f
#define AMPI_ONE       0.99999994f /* the largest number below 1 */
/* eps 0: 0 / 0 becomes 0, and no other quotient changes, since a root that is not 0 is 2^-75 or more */
#define AMPI_LEAST_EPS 7.8886091e-31f /* 2^-100 */

/* a row of AMP_OPTIMIZER_LIST */
typedef struct ampi_optimizer {
    amp_update_kind kind;
    uint32_t decoupled;
    float beta2;
} ampi_optimizer;
static ampi_optimizer ampi_optimizer_of(amp_optimizer optimizer) {
#define AMP_X(name, kind, decoupled, beta2) static const ampi_optimizer of_##name = {kind, decoupled, beta2};
    AMP_OPTIMIZER_LIST(AMP_X)
#undef AMP_X
    switch (optimizer) {
#define AMP_X(name, kind, decoupled, beta2) \
case name: return of_##name;
        AMP_OPTIMIZER_LIST(AMP_X)
#undef AMP_X
    case AMP_OPTIMIZER_COUNT: break;
    }
    return of_AMP_ADAMW;
}

/* checks one group's hyper-parameters and fills in their defaults; name: "desc" or "desc.groups[0]" ... */
static amp_status ampi_check_group(
    amp_ctx *ctx, const char *name, amp_optimizer optimizer, const amp_group *g, amp_hyper *h) {
    const float beta2 = ampi_optimizer_of(optimizer).beta2;
    memset(h, 0, sizeof *h);
    AMPI_TRY(ampi_rate(ctx, name, g, &h->lr));
    AMPI_TRY(ampi_optional(ctx, name, "beta1", &h->beta1, g->beta1, 0.9f));
    AMPI_TRY(ampi_optional(ctx, name, "beta2", &h->beta2, g->beta2, beta2));
    AMPI_TRY(ampi_optional(ctx, name, "eps", &h->eps, g->eps, 1e-8f));
    if (!ampi_nonzero(h->eps)) h->eps = AMPI_LEAST_EPS;
    h->weight_decay = g->weight_decay;
    h->momentum = g->momentum;
    h->dampening = g->dampening;
    h->lr_ptr = g->lr_ptr;
#define AMPI_RANGE(field, most, range) \
    AMPI_CHECK(ampi_in_range(h->field, 0.0f, most), "%s." #field " is %g; it must be " range, name, (double)h->field)
    AMPI_RANGE(lr, AMPI_MOST, "finite and >= 0");
    AMPI_RANGE(beta1, AMPI_ONE, "in [0, 1)");
    AMPI_RANGE(beta2, AMPI_ONE, "in [0, 1)");
    AMPI_RANGE(eps, AMPI_MOST, "finite and >= 0");
    AMPI_RANGE(weight_decay, AMPI_MOST, "finite and >= 0");
    AMPI_RANGE(momentum, AMPI_MOST, "finite and >= 0");
    AMPI_RANGE(dampening, 1.0f, "in [0, 1]");
#undef AMPI_RANGE
    return AMP_OK;
}

/* A step desc that was checked, and all its groups with their defaults filled in. */
typedef struct ampi_step_args {
    const amp_step_desc *d;
    amp_hyper group[AMP_GROUPS];
} ampi_step_args;

static amp_group ampi_group_of(const amp_step_desc *d, uint32_t i) {
    amp_group g = AMP_ZERO;
    if (i > 0 && i <= d->n_groups) return d->groups[i - 1];
    g.lr = d->lr;
    g.beta1 = d->beta1;
    g.beta2 = d->beta2;
    g.eps = d->eps;
    g.weight_decay = d->weight_decay;
    g.momentum = d->momentum;
    g.dampening = d->dampening;
    g.lr_ptr = d->lr_ptr;
    return g;
}
static amp_status ampi_check_groups(amp_ctx *ctx, const amp_params *p, ampi_step_args *a) {
    const amp_step_desc *d = a->d;
    uint32_t i;
    AMPI_CHECK(d->n_groups < AMP_GROUPS, "desc.n_groups is %u; at most %d", (unsigned)d->n_groups, AMP_GROUPS - 1);
    AMPI_CHECK(!d->n_groups || d->groups, "desc.groups is NULL");
    for (i = 0; i < AMP_GROUPS; i++) {
        amp_group g = ampi_group_of(d, i);
        amp_hyper *h = &a->group[i];
        int needed;
        char name[24] = "desc";
        if (i > 0 && i <= d->n_groups) snprintf(name, sizeof name, "desc.groups[%u]", (unsigned)i - 1);
        AMPI_TRY(ampi_check_group(ctx, name, d->optimizer, &g, h));
        AMPI_CHECK(!d->nesterov || (h->momentum > 0.0f && !ampi_nonzero(h->dampening)),
            "%s.nesterov needs momentum > 0 and dampening 0", name);
        needed = amp_moments_of(ampi_optimizer_of(d->optimizer).kind, h->momentum);
        AMPI_CHECK(needed <= p->desc.moments,
            "desc.optimizer needs %d moment arrays, but the set keeps %d (amp_params_desc.moments)", needed,
            (int)p->desc.moments);
    }
    return AMP_OK;
}
static amp_status ampi_check_clip(amp_ctx *ctx, const char *name, float x) {
    AMPI_CHECK(ampi_in_range(x, 0.0f, AMPI_MOST), "%s is %g; it must be finite and >= 0", name, (double)x);
    return AMP_OK;
}

static amp_status ampi_check_step(amp_ctx *ctx, const amp_params *p, const amp_step_desc *d, ampi_step_args *a) {
    AMPI_CHECK_DESC(d);
    a->d = d;
    AMPI_CHECK(AMPI_BELOW(d->optimizer, AMP_OPTIMIZER_COUNT), "desc.optimizer is %d", (int)d->optimizer);
    AMPI_TRY(ampi_check_clip(ctx, "desc.clip_norm", d->clip_norm));
    AMPI_TRY(ampi_check_clip(ctx, "desc.clip_value", d->clip_value));
    AMPI_TRY(ampi_check_groups(ctx, p, a));
    AMPI_CHECK(!d->stochastic || (p->desc.master != AMP_MASTER_SPLIT && p->desc.master != AMP_MASTER_KAHAN),
        "desc.stochastic is 1, but the set's layout needs model copies rounded to nearest");
    return AMP_OK;
}

static amp_inspect_job ampi_inspect_of(amp_params *p, const amp_scaler *s, ampi_takes takes, amp_purpose purpose) {
    amp_scaler_state *state = ampi_is_on(s) ? s->state : NULL;
    int aside = purpose == AMP_FOR_NORM; /* asked by hand: leaves the step's record and the scaler alone */
    amp_inspect_job job = AMP_ZERO;
    job.sum.table = p->table;
    job.sum.scale = takes == AMPI_SCALED ? state : NULL;
    job.sum.divide = 1;
    job.sum.accum = takes == AMPI_SUMS;
    job.sum.write = purpose == AMP_FOR_UNSCALE;
    job.record = aside ? p->probe : p->record;
    job.mirror = aside ? NULL : p->mirror;
    job.scaler = aside ? NULL : state;
    job.purpose = purpose;
    job.fresh = aside || takes != AMPI_PLAIN;
    job.summed = aside || (job.fresh && state);
    return job;
}

static amp_inspect_job ampi_step_inspection(
    amp_params *p, const amp_scaler *s, const ampi_step_args *a, ampi_takes takes, int next) {
    const amp_step_desc *d = a->d;
    amp_inspect_job job = ampi_inspect_of(p, s, takes, AMP_FOR_STEP);
    if (d->unscaled) job.sum.scale = NULL;
    if (d->micro_batches)
        job.sum.divide = d->micro_batches;
    else if (takes == AMPI_SUMS)
        job.sum.window = p->record;
    job.clip_norm = d->clip_norm;
    if (ampi_nonzero(d->clip_norm)) job.summed = 1;
    job.next_scale = next != 0;
    job.stochastic = d->stochastic != 0;
    job.seed = d->seed;
    memcpy(job.group, a->group, sizeof job.group);
    return job;
}

/* amp_step and its halves: amp_update without the next scale, amp_inspect without the update, too. */
typedef struct ampi_step_call {
    ampi_verb verb;
    int update, next;
    const char *returned; /* what is said when the context is taken after a hook */
    int lost;             /* 1: by a different thread, which has the door now: the step ends there */
    char said;            /* first character of the last failure's sentence, while a hook runs */
} ampi_step_call;

/* A hook may call verbs of this context, so it is not in use while one runs. Who fails without a sentence gets one; if
   all goes well, the last failure's stays. */
static amp_status ampi_before_hook(amp_ctx *ctx, ampi_step_call *call) {
    call->said = ctx->error[0];
    ctx->error[0] = 0;
    return amp_verb_end(ctx, AMP_OK);
}
static amp_status ampi_after_hook(amp_ctx *ctx, ampi_step_call *call, const char *hook, amp_status st) {
    call->lost = amp_verb_begin(ctx, call->returned) != AMP_OK;
    if (call->lost) return AMP_ERR_BUSY;
    if (ctx->error[0]) return st;
    ctx->error[0] = call->said;
    return st == AMP_OK ? st : amp_fail(ctx, st, "desc.%s returned %d", hook, (int)st);
}
static amp_status ampi_reduce_grads(amp_ctx *ctx, amp_params *p, const amp_step_desc *d, ampi_step_call *call) {
    amp_status st = ampi_before_hook(ctx, call);
    if (st == AMP_OK) st = d->reduce_grads_fn(ctx, p, d->user);
    return ampi_after_hook(ctx, call, "reduce_grads_fn", st);
}
static amp_status ampi_reduce_totals(amp_ctx *ctx, amp_totals *t, const amp_step_desc *d, ampi_step_call *call) {
    amp_status st = ampi_before_hook(ctx, call);
    if (st == AMP_OK) st = d->reduce_totals_fn(ctx, t, d->user);
    return ampi_after_hook(ctx, call, "reduce_totals_fn", st);
}
static amp_status ampi_run_inspection(
    amp_ctx *ctx, const amp_inspect_job *job, const amp_step_desc *d, ampi_step_call *call) {
    if (!job->summed) return (ctx->b->conclude)(ctx, job);
    if (!d->reduce_totals_fn) return (ctx->b->inspect)(ctx, job);
    AMPI_TRY((ctx->b->sum_gradients)(ctx, &job->sum));
    AMPI_TRY(ampi_reduce_totals(ctx, job->sum.table.totals, d, call));
    return (ctx->b->conclude)(ctx, job);
}
static amp_status ampi_run_update(amp_ctx *ctx, const amp_params *p, const ampi_step_args *a, ampi_takes takes) {
    const ampi_optimizer optimizer = ampi_optimizer_of(a->d->optimizer);
    amp_update_job job = AMP_ZERO;
    job.table = p->table;
    job.record = p->record;
    job.mirror = p->mirror;
    job.kind = optimizer.kind;
    job.decoupled = optimizer.decoupled;
    job.nesterov = a->d->nesterov;
    job.clip_value = a->d->clip_value;
    job.accum = takes == AMPI_SUMS;
    job.moment = p->desc.moment;
    job.pairs = ampi_has_low(p->desc.master) ? 1u : 0u;
    job.count = p->count;
    memcpy(job.group, a->group, sizeof job.group);
    return (ctx->b->update)(ctx, &job);
}
/* The counts of a step begin at 0, also if it is skipped; those of one that does not count stay. */
static amp_status ampi_begin_counts(amp_ctx *ctx, amp_params *p, const amp_step_desc *d) {
    p->count = d->count_lost;
    if (!p->count) return AMP_OK;
    p->drawn = d->stochastic != 0;
    return (ctx->b->zero)(ctx, p->table.counts, p->n * sizeof *p->table.counts);
}

static amp_status ampi_step(amp_params *p, amp_scaler *s, const amp_step_desc *d, ampi_step_call *call) {
    amp_ctx *ctx = p->ctx;
    const ampi_rule *rule;
    ampi_step_args a;
    amp_inspect_job job;
    int next;
    AMPI_TRY(ampi_check_pair(ctx, p, s));
    AMPI_TRY(ampi_check_step(ctx, p, d, &a));
    rule = ampi_rule_of(p, s, call->verb);
    AMPI_TRY(ampi_check_phase(ctx, p, s, rule));
    AMPI_STAGE(!s || !call->next || !ampi_held(s, p), "the accumulation window of a different set holds the scale");
    /* after amp_accumulate the scaler may be up to date already */
    next = call->next && ampi_is_on(s) && (rule->takes != AMPI_SUMS || s->checked);
    AMPI_STAGE(!d->reduce_grads_fn || rule->takes == AMPI_SCALED,
        "desc.reduce_grads_fn sums scaled gradients, and these were unscaled or accumulated: sum them before that");
    AMPI_STAGE(!d->reduce_totals_fn || !ampi_is_on(s) || rule->takes == AMPI_SCALED,
        "desc.reduce_totals_fn adds up what a check finds, and these were checked on each rank when they were unscaled "
        "or accumulated: ranks would decide differently");
    if (d->reduce_grads_fn) AMPI_TRY(ampi_reduce_grads(ctx, p, d, call));
    job = ampi_step_inspection(p, s, &a, rule->takes, next);
    AMPI_TRY(ampi_run_inspection(ctx, &job, d, call));
    AMPI_TRY(ampi_begin_counts(ctx, p, d));
    if (call->update) {
        AMPI_TRY(ampi_run_update(ctx, p, &a, rule->takes));
        ampi_weights_changed(ctx, p);
    }
    if (d->stochastic) p->stochastic = 1;
    p->holds = 0;
    ampi_enter_phase(p, s, rule->next);
    if (ampi_is_on(s) && rule->takes != AMPI_SUMS) s->checked = 1;
    p->late = ampi_is_on(s) && !s->checked;
    if (next) ampi_next_iteration(s);
    return AMP_OK;
}

/* AMP_VERB, but that a hook may have cost it the context */
static amp_status ampi_step_verb(
    const char *verb, const char *returned, amp_params *p, amp_scaler *s, const amp_step_desc *d, ampi_step_call call) {
    amp_status st = amp_verb_begin(AMPI_CTX(p), verb);
    if (st != AMP_OK) return st;
    call.returned = returned;
    st = ampi_step(p, s, d, &call);
    return call.lost ? st : amp_verb_end(p->ctx, st);
}
#define AMPI_STEP_BUSY(name) name AMPI_BUSY, name ": its hook has returned" AMPI_BUSY
AMP_API amp_status amp_step(amp_params *p, amp_scaler *s, const amp_step_desc *desc) {
    const ampi_step_call call = {AMPI_DO_STEP, 1, 1, NULL, 0, 0};
    return ampi_step_verb(AMPI_STEP_BUSY("amp_step"), p, s, desc, call);
}
AMP_API amp_status amp_update(amp_params *p, amp_scaler *s, const amp_step_desc *desc) {
    const ampi_step_call call = {AMPI_DO_STEP, 1, 0, NULL, 0, 0};
    return ampi_step_verb(AMPI_STEP_BUSY("amp_update"), p, s, desc, call);
}
AMP_API amp_status amp_inspect(amp_params *p, amp_scaler *s, const amp_step_desc *desc) {
    const ampi_step_call call = {AMPI_DO_INSPECT, 0, 0, NULL, 0, 0};
    return ampi_step_verb(AMPI_STEP_BUSY("amp_inspect"), p, s, desc, call);
}

/* An update may be the gradients or the sums of a window, but no part of what it changes. */
static amp_status ampi_check_update(amp_ctx *ctx, const amp_param_entry *e, amp_array u) {
    const size_t n = (size_t)e->count;
    const amp_array model = ampi_entry_array(e->model, e->model_dtype, e->count);
    const amp_array sums = ampi_entry_array(u.data == e->accum ? NULL : e->accum, AMP_F32, e->count);
    const ampi_extent r[5] = {
        ampi_extent_of("u", u, n, 1, 0),
        ampi_extent_of("the parameter's master", ampi_entry_master(e), n, 0, 1),
        ampi_extent_of("the parameter's model copy", model, n, 0, 1),
        ampi_extent_of("the parameter's low part", ampi_entry_low(e), n, 0, 1),
        ampi_extent_of("the parameter's accumulators", sums, n, 0, 1),
    };
    return ampi_check_extents(ctx, r, 5);
}
static amp_status ampi_do_apply(amp_params *p, size_t i, amp_array u, uint32_t with_rates) {
    amp_ctx *ctx = p->ctx;
    const ampi_rule *rule;
    amp_apply_job job = AMP_ZERO;
    AMPI_TRY(ampi_check_params(ctx, p));
    AMPI_CHECK(i < p->n, "i is %llu, but the set has %llu parameters", AMPI_ULL(i), AMPI_ULL(p->n));
    AMPI_TRY(ampi_check_array(ctx, "u", u, (size_t)p->entries[i].count, 1));
    AMPI_CHECK(u.dtype == AMP_F32, "u.dtype is %s; f32 is needed", amp_dtype_name(u.dtype));
    AMPI_CHECK((uintptr_t)u.data % sizeof(float) == 0, "u.data is not aligned to the %d bytes of its elements",
        (int)sizeof(float));
    AMPI_TRY(ampi_check_update(ctx, &p->entries[i], u));
    AMPI_STAGE(!ampi_param_at(p, i)->unused, "amp_params_use has left parameter %llu out", AMPI_ULL(i));
    rule = &ampi_rules[p->phase][AMPI_DO_APPLY];
    AMPI_TRY(ampi_check_phase(ctx, p, NULL, rule));
    job.table = p->table;
    job.record = p->record;
    job.mirror = p->mirror;
    job.u = (const float *)u.data;
    job.param = (uint32_t)i;
    job.with_rates = with_rates != 0;
    job.accum = rule->takes == AMPI_SUMS;
    job.count = p->count;
    AMPI_TRY((ctx->b->apply)(ctx, &job));
    ampi_weights_changed(ctx, p);
    return AMP_OK;
}
AMP_API amp_status amp_apply(amp_params *p, size_t i, amp_array u, uint32_t with_rates) {
    AMPI_VERB_OF(p, apply, (p, i, u, with_rates));
}

static amp_status ampi_do_accumulate(amp_params *p, amp_scaler *s, uint32_t keep_going) {
    amp_ctx *ctx = p->ctx;
    const ampi_rule *rule;
    amp_inspect_job job;
    amp_add_job add = AMP_ZERO;
    AMPI_TRY(ampi_check_pair(ctx, p, s));
    AMPI_CHECK(p->desc.accumulate, "the set has no accumulators (amp_params_desc.accumulate)");
    rule = ampi_rule_of(p, s, AMPI_DO_ACCUMULATE);
    AMPI_TRY(ampi_check_phase(ctx, p, s, rule));
    job = ampi_inspect_of(p, s, rule->takes, AMP_FOR_ACCUMULATE);
    job.keep_going = keep_going != 0;
    AMPI_TRY(job.summed ? (ctx->b->inspect)(ctx, &job) : (ctx->b->conclude)(ctx, &job));
    add.table = p->table;
    add.record = p->record;
    ampi_wrote_grads(p);
    AMPI_TRY((ctx->b->add)(ctx, &add));
    ampi_enter_phase(p, s, rule->next);
    if (ampi_is_on(s)) s->checked = 1;
    return AMP_OK;
}
AMP_API amp_status amp_accumulate(amp_params *p, amp_scaler *s, uint32_t keep_going) {
    AMPI_VERB_OF(p, accumulate, (p, s, keep_going));
}
static amp_status ampi_do_window_begin(amp_params *p, amp_scaler *s) {
    amp_ctx *ctx = p->ctx;
    AMPI_TRY(ampi_check_pair(ctx, p, s));
    AMPI_STAGE(!p->holds, "the set has an open window");
    if (ampi_is_on(s))
        ampi_tie(p, s);
    else
        ampi_untie(p);
    p->holds = 1;
    return AMP_OK;
}
AMP_API amp_status amp_window_begin(amp_params *p, amp_scaler *s) { AMPI_VERB_OF(p, window_begin, (p, s)); }
static amp_status ampi_do_window_end(amp_params *p) {
    amp_ctx *ctx = p->ctx;
    AMPI_TRY(ampi_check_params(ctx, p));
    p->holds = 0;
    return AMP_OK;
}
AMP_API amp_status amp_window_end(amp_params *p) { AMPI_VERB_OF(p, window_end, (p)); }

static amp_status ampi_do_scaler_unscale(amp_scaler *s, amp_params *p) {
    amp_ctx *ctx = p ? p->ctx : AMPI_CTX(s);
    const ampi_rule *rule;
    amp_inspect_job job;
    AMPI_TRY(ampi_check_pair(ctx, p, s));
    if (!ampi_is_on(s)) return AMP_OK;
    rule = ampi_rule_of(p, s, AMPI_DO_UNSCALE);
    AMPI_TRY(ampi_check_phase(ctx, p, s, rule));
    job = ampi_inspect_of(p, s, rule->takes, AMP_FOR_UNSCALE);
    ampi_wrote_grads(p);
    AMPI_TRY((ctx->b->inspect)(ctx, &job));
    ampi_enter_phase(p, s, rule->next);
    s->checked = 1;
    return AMP_OK;
}
AMP_API amp_status amp_scaler_unscale(amp_scaler *s, amp_params *p) {
    AMPI_VERB(p ? p->ctx : AMPI_CTX(s), scaler_unscale, (s, p));
}

/* norm of the gradients, and the coefficient of clipping to max_norm (0: none), into the probe record */
static amp_status ampi_probe(amp_ctx *ctx, amp_params *p, const amp_scaler *s, float max_norm) {
    amp_inspect_job job = ampi_inspect_of(p, s, ampi_rule_of(p, s, AMPI_DO_MEASURE)->takes, AMP_FOR_NORM);
    job.clip_norm = max_norm;
    return (ctx->b->inspect)(ctx, &job);
}
static amp_status ampi_do_grad_norm(amp_params *p, amp_scaler *s, double *norm) {
    amp_ctx *ctx = p->ctx;
    amp_step_record r;
    AMPI_TRY(ampi_check_pair(ctx, p, s));
    AMPI_CHECK(norm, "norm is NULL");
    AMPI_TRY((ctx->b->may_wait)(ctx));
    AMPI_TRY(ampi_probe(ctx, p, s, 0.0f));
    AMPI_TRY((ctx->b->copy)(ctx, &r, p->probe, sizeof r));
    *norm = r.norm;
    return AMP_OK;
}
AMP_API amp_status amp_grad_norm(amp_params *p, amp_scaler *s, double *norm) {
    AMPI_VERB_OF(p, grad_norm, (p, s, norm));
}
static amp_status ampi_do_clip(amp_params *p, amp_scaler *s, float max_norm, float max_value) {
    amp_ctx *ctx = p->ctx;
    ampi_takes takes;
    amp_clip_job job = AMP_ZERO;
    AMPI_TRY(ampi_check_pair(ctx, p, s));
    AMPI_TRY(ampi_check_clip(ctx, "max_norm", max_norm));
    AMPI_TRY(ampi_check_clip(ctx, "max_value", max_value));
    AMPI_CHECK(
        ampi_nonzero(max_norm) || ampi_nonzero(max_value), "max_norm and max_value are 0: one of them must be > 0");
    takes = ampi_rule_of(p, s, AMPI_DO_MEASURE)->takes;
    job.table = p->table;
    job.limit = max_value;
    job.accum = takes == AMPI_SUMS;
    job.scaler = takes == AMPI_SCALED && ampi_is_on(s) ? s->state : NULL;
    if (ampi_nonzero(max_norm)) {
        AMPI_TRY(ampi_probe(ctx, p, s, max_norm));
        job.record = p->probe;
    }
    ampi_wrote_grads(p);
    return (ctx->b->clip)(ctx, &job);
}
AMP_API amp_status amp_clip(amp_params *p, amp_scaler *s, float max_norm, float max_value) {
    AMPI_VERB_OF(p, clip, (p, s, max_norm, max_value));
}
static amp_status ampi_do_step_poll(amp_params *p, amp_step_record *out) {
    amp_ctx *ctx = p->ctx;
    AMPI_TRY(ampi_check_params(ctx, p));
    AMPI_CHECK(out, "out is NULL");
    if (!ctx->b->poll) return (ctx->b->copy)(ctx, out, p->record, sizeof *out);
    return (ctx->b->poll)(ctx, p->record, p->mirror, out);
}
AMP_API amp_status amp_step_poll(amp_params *p, amp_step_record *out) { AMPI_VERB_OF(p, step_poll, (p, out)); }

static int ampi_is_f8(amp_dtype t) { return amp_dtype_size(t) == 1u; }

