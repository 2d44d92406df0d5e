/* ---- cross-entropy and dropout on the CPU.   tests: tests/test_products.c, tests/test_paths.c ---- */

typedef struct ampi_xent_work {
    ampi_cpu *c;
    const amp_xent_job *d;
    size_t per_task;
    float factor; /* amp_xent_factor */
    uint32_t _pad;
} ampi_xent_work;

static size_t ampi_full_vectors(const ampi_kernels *k, size_t n) {
    return (n + k->lanes - 1) & ~(size_t)(k->lanes - 1);
}
/* n logits from element `at` on, and zeros up to the end of the last vector; returns how many that makes. */
static size_t ampi_xent_logits(const ampi_xent_work *j, float *x, size_t at, size_t n) {
    size_t full = ampi_full_vectors(j->c->k, n);
    j->c->k->widen[j->d->logits.dtype](x, ampi_at(j->d->logits, at), n);
    memset(x + n, 0, (full - n) * sizeof *x);
    return full;
}
AMPI_RARE void ampi_xent_fill(const amp_xent_job *d, size_t row, float value) {
    size_t i;
    if (d->row_loss) d->row_loss[d->first + row] = value;
    if (!d->dlogits.data) return;
    for (i = 0; i < d->classes; i++)
        amp_store(d->dlogits.data, d->dlogits.dtype, row * d->ld + i, value);
}
static void ampi_xent_pad(const amp_xent_job *d, size_t row) {
    size_t size = amp_dtype_size(d->dlogits.dtype);
    if (d->padding) memset(ampi_at(d->dlogits, row * d->ld + d->classes), 0, d->padding * size);
}
/* The sum of a row, as it grows; see amp_xent_rescaled. */
typedef struct ampi_xent_sum {
    ampi_sum sum; /* part: of the chunk under way, each for its own top */
    float top[AMP_PARTS], max;
    uint32_t _pad;
} ampi_xent_sum;
static void ampi_xent_chunk(ampi_xent_sum *s) {
    double *lane = s->sum.lane;
    float before = s->max;
    size_t i;
    for (i = 0; i < s->sum.parts; i++)
        s->max = ampi_larger(s->max, s->top[i]);
    for (i = 0; i < s->sum.parts; i++)
        s->sum.part[i] = amp_xent_rescaled(s->sum.part[i], s->top[i], s->max);
    for (i = 0; amp_less(before, s->max) && i < s->sum.chunks && i < AMP_LANES; i++)
        lane[i] = amp_xent_rescaled(lane[i], before, s->max);
    ampi_sum_chunk(&s->sum, ampi_halve(s->sum.part, s->sum.parts));
    s->sum.parts = 0;
}
static float ampi_xent_mean(const ampi_xent_work *j, size_t at, float *x, ampi_workspace *w) { /* of a row's logits */
    ampi_sum s = ampi_sum_begin(w);
    size_t i, n;
    for (i = 0; i < j->d->classes; i += n) {
        n = ampi_least(AMP_PART, j->d->classes - i);
        ampi_sum_part(&s, (j->c->k->sum)(ampi_floats(j->c->k, j->d->logits, at + i, n, x), n));
    }
    return amp_narrow(amp_ddiv(ampi_sum_end_of(&s), (double)j->d->classes));
}
/* Maximum and sum of a row. x[AMP_PART] keeps the terms of the last part. */
static amp_xent_row ampi_xent_sums(const ampi_xent_work *j, size_t at, float *x, ampi_workspace *w) {
    const amp_xent_job *d = j->d;
    const ampi_kernels *k = j->c->k;
    size_t i, n, full;
    amp_xent_row r = AMP_ZERO;
    ampi_xent_sum s;
    s.sum = ampi_sum_begin(w);
    s.max = AMP_XENT_LEAST;
    for (i = 0; i < d->classes; i += n) {
        float *top = &s.top[s.sum.parts];
        n = ampi_least(AMP_PART, d->classes - i);
        full = ampi_xent_logits(j, x, at + i, n);
        *top = (k->largest)(x, n, AMP_XENT_LEAST);
        (k->exps)(x, full, *top);
        s.sum.part[s.sum.parts++] = amp_widen((k->sum)(x, n));
        if (s.sum.parts == AMP_PARTS || i + n == d->classes) ampi_xent_chunk(&s);
    }
    r.max = s.max;
    r.sum = amp_narrow(ampi_sum_end_of(&s.sum));
    return r;
}
/* The gradients of a row: amp_xent_grad_one in vectors, and the label's. */
static void ampi_xent_gradients(const ampi_xent_work *j, size_t at, size_t label, const amp_xent_row *r, float *x) {
    const amp_xent_job *d = j->d;
    const ampi_kernels *k = j->c->k;
    size_t i, n;
    for (i = 0; i < d->classes; i += n) {
        n = ampi_least(AMP_PART, d->classes - i);
        if (d->classes > AMP_PART) (k->exps)(x, ampi_xent_logits(j, x, at + i, n), r->max); /* else they are there */
        (k->softmax_shares)(x, ampi_full_vectors(k, n), r->by, r->less);
        if (label - i < n) x[label - i] = amp_xent_grad_label(r);
        k->narrow[d->dlogits.dtype](ampi_at(d->dlogits, at + i), x, n);
    }
}
/* Of a row with one label: the factor of its gradients, and its loss. */
static float ampi_xent_row_factor(const ampi_xent_work *j, int64_t label) {
    return j->d->weights.data ? amp_mul(j->factor, amp_xent_row_weight(j->d, label)) : j->factor;
}
static void ampi_xent_row_loss(
    const ampi_xent_work *j, size_t row, int64_t label, float max, float target, float mean, float sum) {
    const amp_xent_job *d = j->d;
    const float weight = amp_xent_row_weight(d, label);
    const float loss = amp_xent_loss_one(d->smoothing, max, ampi_nonzero(weight) ? target : max, mean, sum);
    d->row_loss[d->first + row] = d->weights.data ? amp_mul(loss, weight) : loss;
}

static void ampi_xent_label_row(const ampi_xent_work *j, size_t row, size_t label, float *x, ampi_workspace *w) {
    const amp_xent_job *d = j->d;
    size_t at = row * d->ld;
    float mean = ampi_nonzero(d->smoothing) ? ampi_xent_mean(j, at, x, w) : 0.0f;
    amp_xent_row r = ampi_xent_sums(j, at, x, w);
    r.target = amp_load(d->logits.data, d->logits.dtype, at + label);
    amp_xent_row_end(&r, d, ampi_xent_row_factor(j, (int64_t)label), 1.0f);
    if (d->row_loss) ampi_xent_row_loss(j, row, (int64_t)label, r.max, r.target, mean, r.sum);
    if (d->dlogits.data) ampi_xent_gradients(j, at, d->softmax ? (size_t)-1 : label, &r, x);
}
/* q of the classes i .. i + n of a row. */
static void ampi_xent_targets(
    const ampi_xent_work *j, size_t row, int64_t label, size_t i, size_t n, const amp_xent_row *r, float *q) {
    const amp_xent_job *d = j->d;
    float buf[AMP_PART];
    const float *w = d->weights.data ? ampi_floats(j->c->k, d->weights, i, n, buf) : NULL;
    if (d->targets.data)
        j->c->k->widen[d->targets.dtype](q, ampi_at(d->targets, row * d->ld + i), n);
    else
        memset(q, 0, n * sizeof *q);
    if (!d->targets.data && (size_t)label - i < n) q[(size_t)label - i] = 1.0f;
    (j->c->k->targets)(q, w, n, r->keep, r->share);
}
/* A row with a target for each class. */
static void ampi_xent_each_row(const ampi_xent_work *j, size_t row, int64_t label, float *x, ampi_workspace *w) {
    const amp_xent_job *d = j->d;
    const ampi_kernels *k = j->c->k;
    size_t at = row * d->ld, i, n;
    float q[AMP_PART], all;
    amp_xent_row r = ampi_xent_sums(j, at, x, w);
    ampi_sum misses = ampi_sum_begin(w), sum = {w->column, w->column + AMP_PARTS, 0, 0};
    amp_xent_row_end(&r, d, j->factor, 1.0f);
    for (i = 0; i < d->classes; i += n) {
        n = ampi_least(AMP_PART, d->classes - i);
        (void)ampi_xent_logits(j, x, at + i, n);
        ampi_xent_targets(j, row, label, i, n, &r, q);
        ampi_sum_part(&sum, (k->sum)(q, n));
        (k->misses)(x, q, n, r.max);
        ampi_sum_part(&misses, (k->sum)(x, n));
    }
    all = amp_narrow(ampi_sum_end_of(&sum));
    amp_xent_row_end(&r, d, j->factor, all);
    if (d->row_loss) d->row_loss[d->first + row] = amp_xent_loss_each(amp_narrow(ampi_sum_end_of(&misses)), all, r.sum);
    for (i = 0; d->dlogits.data && i < d->classes; i += n) {
        n = ampi_least(AMP_PART, d->classes - i);
        (k->exps)(x, ampi_xent_logits(j, x, at + i, n), r.max);
        ampi_xent_targets(j, row, label, i, n, &r, q);
        (k->grad_each)(x, q, n, r.by, r.factor);
        k->narrow[d->dlogits.dtype](ampi_at(d->dlogits, at + i), x, n);
    }
}
/* Rows of few classes: from memory to lanes and back, each row's numbers to its lane. The rows, packed, lie where
   they are or in buf. */
static const float *ampi_xent_few_load(const ampi_xent_work *j, size_t row, size_t rows, float *x, float *buf) {
    const amp_xent_job *d = j->d;
    const size_t n = d->classes, at_once = d->ld == n ? rows : 1;
    const float *from = buf;
    size_t r;
    if (at_once == AMPI_XENT_ROWS) {
        from = ampi_floats(j->c->k, d->logits, row * n, rows * n, buf);
    } else {
        for (r = 0; r < rows; r += at_once)
            j->c->k->widen[d->logits.dtype](buf + r * n, ampi_at(d->logits, (row + r) * d->ld), at_once * n);
        memset(buf + rows * n, 0, (AMPI_XENT_ROWS - rows) * n * sizeof *buf);
    }
    for (r = 0; r < AMPI_XENT_ROWS; r += 4)
        (j->c->k->pack4)(x + r, AMPI_XENT_ROWS, from + r * n, n, n);
    return from;
}
static void ampi_xent_few_store(const ampi_xent_work *j, size_t row, size_t rows, const float *x, float *buf) {
    const amp_xent_job *d = j->d;
    const size_t n = d->classes, at_once = d->ld == n ? rows : 1;
    const int here = d->ld == n && ampi_in_place(d->dlogits, row * n);
    float *to = here ? (float *)d->dlogits.data + row * n : buf;
    size_t r, c;
    for (c = 0; n >= 4 && c < n; c += 4) { /* the last four may lie over those before them */
        const size_t first = ampi_least(c, n - 4);
        (j->c->k->pack4)(to + first, n, x + first * AMPI_XENT_ROWS, AMPI_XENT_ROWS, rows);
    }
    for (; c < n; c++)
        for (r = 0; r < rows; r++)
            to[r * n + c] = x[c * AMPI_XENT_ROWS + r];
    for (r = 0; !here && r < rows; r += at_once)
        j->c->k->narrow[d->dlogits.dtype](ampi_at(d->dlogits, (row + r) * d->ld), buf + r * n, at_once * n);
}
/* Rows at .. at + rows, at most AMPI_XENT_ROWS; a loop for each result, so that chains of many rows are under way. */
static void ampi_xent_few(const ampi_xent_work *j, size_t at, size_t rows) {
    const amp_xent_job *d = j->d;
    float x[AMPI_XENT_CLASSES * AMPI_XENT_ROWS], buf[AMPI_XENT_CLASSES * AMPI_XENT_ROWS];
    float all[AMPI_XENT_ROWS], at_label[AMPI_XENT_ROWS];
    float max[AMPI_XENT_ROWS], sum[AMPI_XENT_ROWS], by[AMPI_XENT_ROWS] = {0}, less[AMPI_XENT_ROWS] = {0};
    int64_t label[AMPI_XENT_ROWS];
    const int smooth = ampi_nonzero(d->smoothing);
    const float *from = ampi_xent_few_load(j, at, rows, x, buf);
    amp_xent_row row;
    size_t r;
    (j->c->k->few_terms)(x, d->classes, max, smooth ? all : NULL, sum);
    amp_xent_row_begin(&row, d);
    for (r = 0; r < rows; r++) {
        label[r] = amp_xent_label(d, d->first + at + r);
        if (amp_xent_is_wrong(d, label[r])) continue;
        row.sum = sum[r];
        amp_xent_row_factors(&row, ampi_xent_row_factor(j, label[r]), 1.0f);
        by[r] = row.by;
        less[r] = row.less;
        at_label[r] = amp_xent_grad_at(&row, x[(size_t)label[r] * AMPI_XENT_ROWS + r]);
    }
    for (r = 0; d->row_loss && r < rows; r++) {
        float mean = smooth ? amp_narrow(amp_ddiv(amp_widen(all[r]), (double)d->classes)) : 0.0f;
        if (amp_xent_is_wrong(d, label[r])) continue;
        ampi_xent_row_loss(j, at + r, label[r], max[r], from[r * d->classes + (size_t)label[r]], mean, sum[r]);
    }
    if (!d->dlogits.data) return;
    (j->c->k->few_shares)(x, d->classes, by, less);
    for (r = 0; r < rows; r++)
        if (!d->softmax && !amp_xent_is_wrong(d, label[r])) x[(size_t)label[r] * AMPI_XENT_ROWS + r] = at_label[r];
    ampi_xent_few_store(j, at, rows, x, buf);
}
static void ampi_xent_task(void *arg, size_t task, ampi_workspace *w) {
    const ampi_xent_work *j = (const ampi_xent_work *)arg;
    const amp_xent_job *d = j->d;
    size_t row = task * j->per_task, end = ampi_least(d->rows, row + j->per_task), i;
    int few = d->classes <= AMPI_XENT_CLASSES && !d->each;
    float x[AMP_PART];
    for (i = row; few && i < end; i += AMPI_XENT_ROWS)
        ampi_xent_few(j, i, ampi_least(AMPI_XENT_ROWS, end - i));
    for (; row < end; row++) {
        int64_t label = amp_xent_label(d, d->first + row);
        ampi_xent_pad(d, row);
        if (label < 0) /* left out */
            ampi_xent_fill(d, row, 0.0f);
        else if (amp_xent_is_wrong(d, label)) /* an error made visible */
            ampi_xent_fill(d, row, ampi_float(0x7fc00000u));
        else if (d->each)
            ampi_xent_each_row(j, row, label, x, w);
        else if (!few)
            ampi_xent_label_row(j, row, (size_t)label, x, w);
    }
}
/* What all rows count. */
static double ampi_xent_counted(const ampi_xent_work *j, float *x) {
    const amp_xent_job *d = j->d;
    ampi_sum sum = ampi_sum_begin(j->c->work);
    size_t r, n, i;
    if (d->sum) return 0.0;
    for (r = 0; r < d->all; r += n) {
        n = ampi_least(AMP_PART, d->all - r);
        for (i = 0; i < n; i++)
            x[i] = amp_xent_row_weight(d, amp_xent_label(d, r + i));
        ampi_sum_part(&sum, (j->c->k->sum)(x, n));
    }
    return ampi_sum_end_of(&sum);
}
static amp_status ampi_cpu_xent(amp_ctx *ctx, const amp_xent_job *d) {
    ampi_xent_work j = AMP_ZERO;
    float x[AMP_PART];
    double counted;
    size_t r, n;
    j.c = ampi_cpu_of(ctx);
    j.d = d;
    j.per_task = d->classes < 8192 ? 8192 / d->classes : 1;
    counted = ampi_xent_counted(&j, x);
    j.factor = amp_xent_factor(d, counted);
    ampi_parallel(j.c, (d->rows - 1) / j.per_task + 1, d->rows * d->classes * 8, ampi_xent_task, &j);
    if (d->loss && d->first + d->rows == d->all) { /* rows that are left out hold 0 */
        ampi_sum sum = ampi_sum_begin(j.c->work);
        for (r = 0; r < d->all; r += n) {
            n = ampi_least(AMP_PART, d->all - r);
            ampi_sum_part(&sum, (j.c->k->sum)(d->row_loss + r, n));
        }
        *d->loss = amp_narrow(amp_dmul(ampi_sum_end_of(&sum), amp_xent_weight(d, counted)));
    }
    return AMP_OK;
}

/* ---- dropout ---- */

typedef struct ampi_dropout_work {
    const ampi_kernels *k;
    const amp_dropout_job *d;
} ampi_dropout_work;
static void ampi_dropout_task(void *arg, size_t task, ampi_workspace *w) {
    const ampi_dropout_work *j = (const ampi_dropout_work *)arg;
    const amp_dropout_job *d = j->d;
    uint64_t threshold = amp_dropout_threshold(d->p);
    float factor = amp_dropout_factor(d->p), x[AMPI_BLOCK];
    uint32_t buf[AMPI_BLOCK + 64];
    size_t i = task * AMP_CHUNK, end = ampi_least(d->count, i + AMP_CHUNK), n;
    (void)w;
    for (; i < end; i += n) {
        uint64_t at = d->rng.offset + i;
        n = ampi_random_run(at, ampi_least(AMPI_BLOCK, end - i));
        j->k->widen[d->x.dtype](x, ampi_at(d->x, i), n);
        if (threshold >> 32) {
            memset(x, 0, n * sizeof *x); /* p = 1 */
        } else {
            const uint32_t *words = (j->k->random)(buf, n, d->rng.seed, d->rng.stream, at);
            (j->k->drop)(x, words, n, (uint32_t)threshold, factor);
        }
        j->k->narrow[d->y.dtype](ampi_at(d->y, i), x, n);
    }
}
static amp_status ampi_cpu_dropout(amp_ctx *ctx, const amp_dropout_job *d) {
    ampi_dropout_work j = {ampi_cpu_of(ctx)->k, d};
    return ampi_run(ampi_cpu_of(ctx), ampi_chunks(d->count), (double)d->count, ampi_dropout_task, &j);
}

