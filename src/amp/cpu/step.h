/* ==== >>cpu-step =================================================================================================
   Inspection and updates.   tests: tests/test_step.c, tests/test_layouts.c, tests/test_scaler.c */
typedef struct ampi_step_job { /* one of the jobs, and what its tasks share */
    ampi_cpu *c;
    const amp_sum_job *sum;
    const amp_update_job *update;
    const amp_apply_job *apply;
    const amp_add_job *add;
    const amp_clip_job *clip;
    float inv;
    uint32_t overflow;
} ampi_step_job;
static ampi_step_job ampi_step_of(amp_ctx *ctx) {
    ampi_step_job j = AMP_ZERO;
    j.c = ampi_cpu_of(ctx);
    return j;
}
static amp_array ampi_gradient(const amp_param_entry *p, uint32_t accum) {
    return accum ? amp_arr(p->accum, AMP_F32) : amp_arr(p->grad, p->grad_dtype);
}
/* By the bits, after a guarded addition: compilers may be told that Inf and NaN do not occur. */
static int ampi_not_finite(double x) {
    uint64_t b;
    x = amp_dadd(x, 0.0);
    memcpy(&b, &x, sizeof b);
    return (b >> 52 & 0x7ffu) == 0x7ffu;
}

static int ampi_all_zero(const char *p, size_t bytes) {
    uint64_t any = 0, x[4];
    for (; bytes >= sizeof x; bytes -= sizeof x, p += sizeof x) {
        memcpy(x, p, sizeof x);
        any |= x[0] | x[1] | x[2] | x[3];
    }
    memset(x, 0, sizeof x);
    memcpy(x, p, bytes);
    return (any | x[0] | x[1] | x[2] | x[3]) == 0;
}
/* Sum of squares of one part. Nearly always its numbers are widened in registers: nothing but arithmetic between two
   loads. */
static double ampi_part_squares(const ampi_kernels *k, amp_array g, size_t count, float inv) {
    const char *from = (const char *)g.data;
    float own[AMP_PART], sum, by;
    if (amp_dtype_size(g.dtype) == 1) {
        k->widen[g.dtype](own, from, count);
        g = amp_arr(own, AMP_F32);
        from = (const char *)own;
    }
    sum = (k->squares)(from, g.dtype, count, inv);
    by = amp_squares_by(sum);
    if (ampi_bits(by) == 0x3f800000u) return amp_widen(sum);
    if (ampi_all_zero(from, count * amp_dtype_size(g.dtype))) return 0.0;
    (void)(k->scale)(own, ampi_floats(k, g, 0, count, own), count, inv);
    return amp_squares_sum((k->squares)((const char *)own, AMP_F32, count, by), by);
}
static double ampi_chunk_squares(const ampi_kernels *k, ampi_workspace *w, amp_array g, size_t count, float inv) {
    size_t i, parts = 0;
    for (i = 0; i < count; i += AMP_PART)
        w->part[parts++] = ampi_part_squares(k, ampi_part(g, i), ampi_least(AMP_PART, count - i), inv);
    return ampi_halve(w->part, parts);
}
static void ampi_cpu_sum_task(void *arg, size_t task, ampi_workspace *w) {
    const ampi_step_job *j = (const ampi_step_job *)arg;
    const amp_sum_job *job = j->sum;
    const ampi_kernels *k = j->c->k;
    amp_chunk at = job->table.chunks[task];
    const amp_param_entry *p = &job->table.entries[at.param];
    amp_array g = ampi_gradient(p, job->accum);
    amp_partial *out = &job->table.partials[task];
    float own[AMPI_BLOCK];
    size_t start = (size_t)at.index * AMP_CHUNK, count = ampi_least((size_t)p->count - start, AMP_CHUNK), i, n;
    int bad;
    out->faults = amp_no_faults();
    g = ampi_part(g, start);
    out->sum[0] = ampi_chunk_squares(k, w, g, count, j->inv);
    bad = ampi_not_finite(out->sum[0]);
    if (!bad && !job->write) return;
    if (!bad && ampi_rescales(k, g.dtype, g.dtype, j->inv)) {
        (void)(k->rescale)(g.data, g.data, g.dtype, count, j->inv);
        return;
    }
    for (i = 0; i < count; i += n) {
        const float *u;
        n = ampi_least(AMPI_BLOCK, count - i);
        u = ampi_floats(k, g, i, n, own);
        if (ampi_bits(j->inv) != 0x3f800000u) {
            (void)(k->scale)(own, u, n, j->inv);
            u = own;
        }
        if (bad) ampi_count_faults(&out->faults, g, i, u, n);
        if (!job->write) continue;
        k->narrow[g.dtype](ampi_at(g, i), u, n);
        if (amp_may_lose(j->inv, g.dtype, g.dtype)) ampi_count_lost(&out->faults, g, i, u, n);
    }
}
static void ampi_sum_partials(const amp_param_table *table, amp_totals *t, ampi_workspace *w) {
    ampi_sum s = ampi_sum_begin(w);
    uint32_t i;
    memset(t, 0, sizeof *t);
    for (i = 0; i < table->n_chunks; i++) {
        const amp_faults *p = &table->partials[i].faults;
        ampi_sum_chunk(&s, table->partials[i].sum[0]);
        if (p->first < AMP_CHUNK && amp_found(t->nan, t->inf, t->overflow) == 0) {
            t->first_param = table->chunks[i].param;
            t->first_index = (uint64_t)table->chunks[i].index * AMP_CHUNK + p->first;
        }
        t->nan += p->nan;
        t->inf += p->inf;
        t->overflow += p->overflow;
    }
    t->sum = ampi_sum_end_of(&s);
}
static amp_status ampi_cpu_sum_gradients(amp_ctx *ctx, const amp_sum_job *job) {
    ampi_step_job j = ampi_step_of(ctx);
    j.sum = job;
    j.inv = amp_sum_factor(job);
    ampi_parallel(j.c, job->table.n_chunks, (size_t)job->table.n_elements, ampi_cpu_sum_task, &j);
    ampi_sum_partials(&job->table, job->table.totals, j.c->work);
    return AMP_OK;
}
static amp_status ampi_cpu_conclude(amp_ctx *ctx, const amp_inspect_job *job) {
    (void)ctx;
    amp_conclude(job, job->sum.table.totals);
    return AMP_OK;
}
static amp_status ampi_cpu_inspect(amp_ctx *ctx, const amp_inspect_job *job) {
    AMPI_TRY(ampi_cpu_sum_gradients(ctx, &job->sum));
    return ampi_cpu_conclude(ctx, job);
}

/* Elements i .. i + n of a parameter while an update works on them. */
typedef struct ampi_updating {
    const ampi_kernels *k;
    const amp_param_entry *p;
    const amp_step_record *r;
    amp_draw draw;
    size_t i, n;
    uint32_t param;
} ampi_updating;
static ampi_updating ampi_updating_of(
    const ampi_step_job *j, const amp_param_table *table, uint32_t param, const amp_step_record *r) {
    ampi_updating b = AMP_ZERO;
    b.k = j->c->k;
    b.p = &table->entries[param];
    b.r = r;
    b.param = param;
    b.draw = amp_draw_of(r, param);
    return b;
}
/* Weights and moments as floats: where they are if they are kept as floats, else in buf. */
static float *ampi_load_weights(const ampi_updating *b, float *buf) {
    const amp_param_entry *p = b->p;
    if (p->layout == AMP_MASTER_F32) return (float *)p->master + b->i;
    if (p->layout == AMP_MASTER_NONE)
        b->k->widen[p->model_dtype](buf, (const char *)p->model + 2 * b->i, b->n);
    else
        (b->k->pair_widen)(buf, p, b->i, b->n);
    return buf;
}
static float *ampi_load_moment(const ampi_updating *b, uint32_t which, float *buf) {
    const amp_param_entry *p = b->p;
    if (p->moment_dtype == AMP_F32) return (float *)p->moment[which] + b->i;
    if (p->moment_dtype == AMP_MOMENT_8BIT) {
        (b->k->moment_widen)(buf, (const uint8_t *)p->moment[which] + b->i,
            ampi_moment_scales(p, which) + b->i / AMP_MOMENT_BLOCK, b->n, which);
        return buf;
    }
    b->k->widen[p->moment_dtype](buf, (const char *)p->moment[which] + 2 * b->i, b->n);
    return buf;
}
static void ampi_store_drawn(const ampi_updating *b, void *to, amp_dtype t, const float *x, amp_stored what) {
    amp_draw d = amp_draw_for(b->draw, what);
    ampi_round_block(
        b->k, (char *)to + 2 * b->i, t, x, b->n, d.seed, d.stream, b->i, 0); /* ampi_encode with amp_random's words */
}
static void ampi_store_moment(const ampi_updating *b, uint32_t which, const float *m) {
    const amp_param_entry *p = b->p;
    if (!m || p->moment_dtype == AMP_F32) return;
    ampi_store_drawn(b, p->moment[which], p->moment_dtype, m, (amp_stored)(AMP_STORED_MOMENT_1 + which));
}
/* What load gave of 8-bit moments, whose blocks are whole here: b->i is a multiple of them. */
static void ampi_store_codes(const ampi_updating *b, float *m, float *v) {
    const amp_draw d = amp_draw_for(b->draw, AMP_STORED_MOMENT_1);
    const size_t block = b->i / AMP_MOMENT_BLOCK;
    uint32_t words[AMPI_BLOCK + 64];
    const uint32_t *r = (b->k->random)(words, (b->n + 63u) & ~(size_t)63u, d.seed, d.stream, b->i);
    float *x[AMP_MOMENTS];
    uint32_t k;
    x[0] = m;
    x[1] = v;
    for (k = 0; k < (uint32_t)AMP_MOMENTS; k++)
        if (x[k])
            (b->k->moment_narrow)(
                (uint8_t *)b->p->moment[k] + b->i, ampi_moment_scales(b->p, k) + block, x[k], r, b->n, k);
}
static void ampi_store_moments(const ampi_updating *b, float *m, float *v) {
    if (m && b->p->moment_dtype == AMP_MOMENT_8BIT) {
        ampi_store_codes(b, m, v);
        return;
    }
    ampi_store_moment(b, 0, m);
    ampi_store_moment(b, 1, v);
}
static void ampi_store_pairs(const ampi_updating *b, const float *w) {
    const amp_draw d = b->draw;
    uint32_t words[AMPI_BLOCK + 64];
    const uint32_t *r = NULL;
    if (b->r->stochastic) r = (b->k->random)(words, (b->n + 63u) & ~(size_t)63u, d.seed, d.stream, b->i);
    (b->k->pair_narrow)(b->p, b->i, w, r, b->n);
}
/* Block by block what amp_weight_store does; returns 1 when a model copy overflows. */
static uint32_t ampi_store_weights(const ampi_updating *b, const float *w) {
    const amp_param_entry *p = b->p;
    char *to;
    uint32_t overflow = 0;
    size_t e;
    if (!p->model) return 0;
    to = (char *)p->model + 2 * b->i;
    if (p->low)
        ampi_store_pairs(b, w);
    else if (b->r->stochastic)
        ampi_store_drawn(b, p->model, p->model_dtype, w, AMP_STORED_MODEL);
    else
        b->k->narrow[p->model_dtype](to, w, b->n);
    if (!(b->k->is_bad)(to, b->n * 2, p->model_dtype)) return 0;
    for (e = 0; e < b->n; e++)
        overflow |= amp_copy_overflow(ampi_load_pattern(to, p->model_dtype, e), w[e], p->model_dtype);
    return overflow;
}
static void ampi_note_overflow(ampi_step_job *j, uint32_t overflow) {
    if (!overflow) return;
    ampi_lock(j->c);
    j->overflow |= overflow;
    ampi_unlock(j->c);
}
static void ampi_end_update(const ampi_step_job *j, amp_step_record *r) {
    if (j->overflow & AMP_WEIGHT_OVERFLOW) r->weight_overflow = 1;
    if (j->overflow & AMP_MOMENT_OVERFLOW) r->moment_overflow = 1;
}
static void ampi_tally_begin(ampi_tally *t, const ampi_updating *b) {
    memset(t, 0, offsetof(ampi_tally, moved));
    t->spacing = amp_spacing_of(b->p->layout, b->p->model_dtype);
    t->again = b->p->layout != AMP_MASTER_F32;
}
static void ampi_tally_low(const ampi_updating *b, uint16_t *to) { /* low parts, as 16 bits each */
    const char *low = (const char *)b->p->low;
    size_t e;
    if (b->p->layout != AMP_MASTER_SPLIT8) memcpy(to, low + 2 * b->i, 2 * b->n);
    for (e = 0; e < b->n && b->p->layout == AMP_MASTER_SPLIT8; e++)
        to[e] = (uint8_t)low[b->i + e];
}
static void ampi_tally_before(ampi_tally *t, const ampi_updating *b) {
    const amp_param_entry *p = b->p;
    t->at = 0;
    if (!t->again) return;
    memcpy(t->was[0], (const char *)p->model + 2 * b->i, 2 * b->n);
    if (p->low) ampi_tally_low(b, t->was[1]);
}
static void ampi_tally_after(ampi_tally *t, const ampi_updating *b) {
    uint16_t low[AMPI_BLOCK];
    t->at = 0;
    if (!t->again) return;
    if (b->p->low) ampi_tally_low(b, low);
    (b->k->count_unchanged)(t, (const char *)b->p->model + 2 * b->i, b->p->low ? (const char *)low : NULL, b->n);
}
static void ampi_tally_done(ampi_step_job *j, const ampi_tally *t, amp_update_count *to) {
    uint32_t k;
    ampi_lock(j->c);
    for (k = 0; k < AMPI_WIDEST; k++) {
        uint32_t ratio = ampi_bits(amp_mul(t->ratio[k], t->spacing.rest));
        to->updates += t->updates[k];
        to->lost += t->lost[k];
        if (to->ratio < ratio) to->ratio = ratio;
    }
    ampi_unlock(j->c);
}
static void ampi_cpu_update_task(void *arg, size_t task, ampi_workspace *ws) {
    ampi_step_job *j = (ampi_step_job *)arg;
    const amp_update_job *job = j->update;
    const ampi_kernels *k = j->c->k;
    amp_chunk at = job->table.chunks[task];
    ampi_updating b = ampi_updating_of(j, &job->table, at.param, job->record);
    const amp_param_entry *p = b.p;
    amp_array g = ampi_gradient(p, job->accum);
    amp_coef c = amp_coef_of(job, p);
    AMPI_LINES float own_u[AMPI_BLOCK], own_w[AMPI_BLOCK], own_m[AMPI_BLOCK], own_v[AMPI_BLOCK];
    size_t end = ampi_least((size_t)p->count, (size_t)(at.index + 1u) * AMP_CHUNK);
    /* past the caches: conversions, most of them of a gradient of 16 bits, are to overlap the next block's loads */
    size_t least = g.dtype == AMP_F32 ? AMPI_BLOCK / 2 : AMPI_BLOCK / 4;
    size_t block = job->table.n_elements > 1u << 20 ? least : AMPI_BLOCK;
    int moments = amp_moments_of(job->kind, c.momentum);
    uint32_t overflow = 0;
    ampi_tally own, *tally;
    (void)ws;
    ampi_tally_begin(&own, &b);
    for (b.i = (size_t)at.index * AMP_CHUNK; b.i < end; b.i += b.n) {
        float *w, *m, *v;
        const float *u;
        b.n = ampi_least(block, end - b.i);
        tally = job->count && amp_is_counted(b.i, job->count) ? &own : NULL;
        if (tally) ampi_tally_before(tally, &b);
        u = ampi_floats(k, g, b.i, b.n, own_u);
        w = ampi_load_weights(&b, own_w);
        m = moments > 0 ? ampi_load_moment(&b, 0, own_m) : NULL;
        v = moments > 1 ? ampi_load_moment(&b, 1, own_v) : NULL;
        if (tally) memcpy(tally->old, w, b.n * sizeof *w);
        if (k->update[job->kind](w, m, v, u, b.n, &c, tally ? own_u : NULL)) overflow |= AMP_MOMENT_OVERFLOW;
        if (tally) (k->count_sizes)(tally, w, own_u, b.n, 1.0f);
        if (job->accum) memset(p->accum + b.i, 0, b.n * sizeof *p->accum);
        ampi_store_moments(&b, m, v);
        overflow |= ampi_store_weights(&b, w);
        if (tally) ampi_tally_after(tally, &b);
    }
    if (job->count) ampi_tally_done(j, &own, &job->table.counts[at.param]);
    ampi_note_overflow(j, overflow);
}
static void ampi_zero_accum(const amp_param_entry *p) { memset(p->accum, 0, (size_t)p->count * sizeof *p->accum); }
static amp_status ampi_cpu_update(amp_ctx *ctx, const amp_update_job *job) {
    ampi_step_job j = ampi_step_of(ctx);
    uint32_t i;
    j.update = job;
    if (!job->record->skip) {
        (void)ampi_run(j.c, job->table.n_chunks, (double)job->table.n_elements, ampi_cpu_update_task, &j);
        ampi_end_update(&j, job->record);
    } else if (job->accum) { /* a lost window still ends */
        for (i = 0; i < job->table.n_entries; i++)
            ampi_zero_accum(&job->table.entries[i]);
    }
    return AMP_OK;
}

static void ampi_cpu_apply_task(void *arg, size_t task, ampi_workspace *ws) {
    ampi_step_job *j = (ampi_step_job *)arg;
    const amp_apply_job *job = j->apply;
    ampi_updating b = ampi_updating_of(j, &job->table, job->param, job->record);
    amp_coef c = amp_coef_of_apply(job, b.p);
    float own[AMPI_BLOCK];
    size_t end = ampi_least((size_t)b.p->count, (task + 1) * AMP_CHUNK);
    uint32_t overflow = 0;
    ampi_tally noted, *tally;
    (void)ws;
    ampi_tally_begin(&noted, &b);
    for (b.i = task * AMP_CHUNK; b.i < end; b.i += b.n) {
        float *w;
        b.n = ampi_least(AMPI_BLOCK, end - b.i);
        tally = job->count && amp_is_counted(b.i, job->count) ? &noted : NULL;
        if (tally) ampi_tally_before(tally, &b);
        w = ampi_load_weights(&b, own);
        if (tally) memcpy(tally->old, w, b.n * sizeof *w);
        (void)(b.k->scale)(w, w, b.n, c.decay); /* = amp_apply_one */
        (b.k->axpy)(w, job->u + b.i, b.n, amp_negative(c.lr));
        if (tally) (b.k->count_sizes)(tally, w, job->u + b.i, b.n, c.lr);
        overflow |= ampi_store_weights(&b, w);
        if (tally) ampi_tally_after(tally, &b);
    }
    if (job->count) ampi_tally_done(j, &noted, &job->table.counts[job->param]);
    ampi_note_overflow(j, overflow);
}
static amp_status ampi_cpu_apply(amp_ctx *ctx, const amp_apply_job *job) {
    const amp_param_entry *p = &job->table.entries[job->param];
    ampi_step_job j = ampi_step_of(ctx);
    j.apply = job;
    if (!job->record->skip) {
        (void)ampi_run(j.c, ampi_chunks((size_t)p->count), (double)p->count, ampi_cpu_apply_task, &j);
        ampi_end_update(&j, job->record);
    }
    if (job->accum) ampi_zero_accum(p); /* the update may be these */
    return AMP_OK;
}

static void ampi_cpu_add_task(void *arg, size_t task, ampi_workspace *w) {
    const ampi_step_job *j = (const ampi_step_job *)arg;
    const amp_add_job *job = j->add;
    amp_chunk at = job->table.chunks[task];
    const amp_param_entry *p = &job->table.entries[at.param];
    amp_array g = ampi_gradient(p, 0);
    float u[AMPI_BLOCK];
    size_t i = (size_t)at.index * AMP_CHUNK, end = ampi_least((size_t)p->count, i + AMP_CHUNK), n;
    (void)w;
    for (; i < end; i += n) {
        n = ampi_least(AMPI_BLOCK, end - i);
        (j->c->k->axpy)(p->accum + i, ampi_floats(j->c->k, g, i, n, u), n, job->record->inv_scale);
    }
}
static amp_status ampi_cpu_add(amp_ctx *ctx, const amp_add_job *job) {
    ampi_step_job j = ampi_step_of(ctx);
    if (job->record->skip) return AMP_OK;
    j.add = job;
    return ampi_run(j.c, job->table.n_chunks, (double)job->table.n_elements, ampi_cpu_add_task, &j);
}

static void ampi_cpu_clip_task(void *arg, size_t task, ampi_workspace *w) {
    const ampi_step_job *j = (const ampi_step_job *)arg;
    const amp_clip_job *job = j->clip;
    amp_chunk at = job->table.chunks[task];
    const amp_param_entry *p = &job->table.entries[at.param];
    amp_array g = ampi_gradient(p, job->accum);
    amp_coef c;
    float u[AMPI_BLOCK];
    size_t i = (size_t)at.index * AMP_CHUNK, end = ampi_least((size_t)p->count, i + AMP_CHUNK), n;
    (void)w;
    c = amp_coef_of_clip(job);
    for (; i < end; i += n) {
        n = ampi_least(AMPI_BLOCK, end - i);
        (j->c->k->prepare)(u, ampi_floats(j->c->k, g, i, n, u), n, &c);
        j->c->k->narrow[g.dtype](ampi_at(g, i), u, n);
    }
}
static amp_status ampi_cpu_clip(amp_ctx *ctx, const amp_clip_job *job) {
    ampi_step_job j = ampi_step_of(ctx);
    j.clip = job;
    if (amp_clip_is_idle(job)) return AMP_OK;
    return ampi_run(j.c, job->table.n_chunks, (double)job->table.n_elements, ampi_cpu_clip_task, &j);
}
static amp_status ampi_cpu_next_scale(amp_ctx *ctx, amp_scaler_state *s) {
    (void)ctx;
    amp_scaler_next(s);
    return AMP_OK;
}

