/* ---- inspection: from what was found in the gradients to the record, the scaler and the rates of a step ----
   tests: tests/test_step.c, tests/test_scaler.c, tests/test_phases.c */

/* What gradients are multiplied with: 1 / (scale * micro-batches), once in double. */
AMP_INLINE float amp_sum_scale(const amp_sum_job *job) { return job->scale ? job->scale->scale : 1.0f; }
AMP_INLINE uint32_t amp_sum_divide(const amp_sum_job *job) {
    return job->window ? job->window->window_good : job->divide;
}
AMP_INLINE float amp_factor_of(float scale, uint32_t micro_batches) {
    if (micro_batches <= 1) return amp_inverse_scale(scale);
    return amp_narrow(amp_ddiv(1.0, amp_dmul(amp_widen(scale), (double)micro_batches)));
}
AMP_INLINE float amp_sum_factor(const amp_sum_job *job) {
    return amp_factor_of(amp_sum_scale(job), amp_sum_divide(job));
}
/* min(1, max_norm / (norm + 1e-6)); 1 for max_norm 0. */
AMP_INLINE float amp_clip_factor(float max_norm, double norm) {
    double c;
    if (!ampi_nonzero(max_norm)) return 1.0f;
    c = amp_ddiv(amp_widen(max_norm), amp_dadd(norm, 1e-6));
    return c < 1.0 ? amp_narrow(c) : 1.0f;
}

/* 1 - beta^t for two betas: repeated squaring, each product rounded to double; side by side, so that neither waits for
   the other. */
AMP_INLINE void ampi_bias_corrections(double *bc1, double *bc2, double beta1, double beta2, uint64_t t) {
    double r1 = 1.0, r2 = 1.0;
    for (; t; t >>= 1) {
        if (t & 1u) {
            r1 = amp_dmul(r1, beta1);
            r2 = amp_dmul(r2, beta2);
        }
        beta1 = amp_dmul(beta1, beta1);
        beta2 = amp_dmul(beta2, beta2);
    }
    *bc1 = amp_dsub(1.0, r1);
    *bc2 = amp_dsub(1.0, r2);
}
/* What step number `steps` needs for one group. */
AMP_INLINE void amp_rates_of(amp_rates *r, const amp_hyper *g, uint64_t steps) {
    double lr = amp_widen(g->lr_ptr ? *g->lr_ptr : g->lr), bc1, bc2;
    ampi_bias_corrections(&bc1, &bc2, amp_widen(g->beta1), amp_widen(g->beta2), steps);
    r->lr = amp_narrow(lr);
    r->step_size = amp_narrow(amp_ddiv(lr, bc1));
    r->rsqrt_bc2 = amp_narrow(amp_ddiv(1.0, amp_dsqrt(bc2)));
    r->decay = amp_narrow(amp_dsub(1.0, amp_dmul(lr, amp_widen(g->weight_decay))));
}

/* Where the end of an inspection works: the job's record and scaler, or copies of them, and what it need not find out
   itself. */
typedef struct ampi_ending {
    amp_step_record *record;
    amp_scaler_state *scaler; /* looked at where the job has one */
    float factor;             /* amp_sum_factor */
    int finite;               /* the learning rates are */
} ampi_ending;
AMP_INLINE void ampi_conclude_fresh(const amp_inspect_job *job, const ampi_ending *at) {
    amp_step_record *r = at->record;
    r->skip = 0;
    r->nan = r->inf = r->overflow = r->first_index = 0;
    r->first_param = 0;
    r->scale = job->scaler ? at->scaler->scale : 1.0f;
    if (!job->summed) r->norm = -1.0;
}
AMP_INLINE void ampi_conclude_faults(const ampi_ending *at, const amp_totals *totals) {
    amp_step_record *r = at->record;
    uint32_t found = amp_totals_found(totals);
    r->nan = totals->nan;
    r->inf = totals->inf;
    r->overflow = totals->overflow;
    r->first_index = totals->first_index;
    r->first_param = totals->first_param;
    if (at->scaler->no_check) found = 0;
    at->scaler->found |= found;
    r->skip = found != 0;
}
AMP_INLINE void ampi_conclude_micro_batch(const amp_inspect_job *job, amp_step_record *r) {
    if (!r->skip) {
        r->window_good++;
        return;
    }
    r->window_bad++;
    if (!job->keep_going) r->window_lost = 1;
}
AMP_INLINE amp_outcome ampi_outcome_of(const amp_step_record *r) {
    if (!r->skip) return AMP_STEPPED;
    if (r->nan) return AMP_SKIPPED_NAN;
    if (r->inf) return AMP_SKIPPED_INF;
    return r->overflow ? AMP_SKIPPED_OVERFLOW : AMP_SKIPPED_WINDOW;
}
AMP_INLINE int ampi_rate_is_finite(const amp_hyper *g) { return !g->lr_ptr || amp_is_finite(*g->lr_ptr); }
AMP_INLINE int ampi_conclude_step(const amp_inspect_job *job, const ampi_ending *at) { /* 1: a step is taken */
    amp_step_record *r = at->record;
    if (job->sum.accum) { /* a lost or empty window does not step */
        if (r->window_lost || r->window_good == 0) r->skip = 1;
        r->window_good = r->window_bad = r->window_lost = 0;
    }
    r->outcome = ampi_outcome_of(r);
    if (!r->skip && !at->finite) {
        r->skip = 1;
        r->outcome = AMP_SKIPPED_RATE;
    }
    r->seed = job->seed;
    r->stochastic = job->stochastic;
    if (r->skip) {
        r->skipped++;
        return 0;
    }
    r->steps++;
    return 1;
}

/* The norm, and the clip factor of gradients in which nothing was found: a device finds them beside the rest. */
AMP_INLINE void ampi_conclude_norm(const amp_inspect_job *job, amp_step_record *r, const amp_totals *totals) {
    if (!job->summed) return;
    r->norm = amp_dsqrt(totals->sum);
    if (!amp_totals_found(totals)) r->clip = amp_clip_factor(job->clip_norm, r->norm);
}
/* By a norm that is not finite nothing can be divided: a step that is taken all the same takes the factor 0, as PyTorch
   does for Inf, so that finite weights get no unclipped update. */
AMP_INLINE void ampi_conclude_unclipped(const amp_inspect_job *job, amp_step_record *r, const amp_totals *totals) {
    const int clips = job->purpose == AMP_FOR_STEP && !r->skip && ampi_nonzero(job->clip_norm);
    if (!job->summed)
        r->clip = 1.0f;
    else if (amp_totals_found(totals))
        r->clip = clips ? 0.0f : 1.0f;
}
/* The end of an inspection but for ampi_conclude_norm, by one thread: from totals (read when summed is 1) to the
   record, the scaler, the next scale. 1: a step is taken, so the record wants the rates of every group for its step
   count. */
AMP_INLINE int ampi_conclude_record(const amp_inspect_job *job, const ampi_ending *at, const amp_totals *totals) {
    amp_step_record *r = at->record;
    int stepped = 0;
    if (job->fresh) ampi_conclude_fresh(job, at);
    r->inv_scale = job->sum.write ? 1.0f : at->factor;
    if (job->summed && job->fresh && job->scaler) ampi_conclude_faults(at, totals);
    ampi_conclude_unclipped(job, r, totals);
    if (job->purpose == AMP_FOR_ACCUMULATE) ampi_conclude_micro_batch(job, r);
    if (job->purpose == AMP_FOR_STEP) stepped = ampi_conclude_step(job, at);
    if (job->next_scale) amp_scaler_next(at->scaler);
    return stepped;
}
/* All of it by one thread; a device shares out the groups. */
AMP_INLINE void amp_conclude(const amp_inspect_job *job, const amp_totals *totals) {
    amp_step_record *r = job->record;
    ampi_ending at;
    uint32_t i;
    at.record = r;
    at.scaler = job->scaler;
    at.factor = amp_sum_factor(&job->sum);
    at.finite = 1;
    for (i = 0; i < AMP_GROUPS; i++)
        at.finite &= ampi_rate_is_finite(&job->group[i]);
    ampi_conclude_norm(job, r, totals);
    if (!ampi_conclude_record(job, &at, totals)) return;
    for (i = 0; i < AMP_GROUPS; i++)
        amp_rates_of(&r->rate[i], &job->group[i], r->steps);
}

