/* ==== >>front-report =============================================================================================
   What precision does to a run.   tests: tests/test_report.c */

static double ampi_share(uint64_t part, uint64_t all) { return all ? (double)part / (double)all : 0.0; }

/* What follows from the values of a row. */
static void ampi_report_values(amp_report_row *row) {
    amp_dtype t;
    int32_t e;
    row->low = 1;
    row->high = 0;
    for (e = 0; e < 255; e++) {
        if (!row->values.pow2[e]) continue;
        if (row->low > row->high) row->low = e - 127;
        row->high = e - 127;
    }
    for (t = AMP_F32; t < AMP_DTYPE_COUNT; t = (amp_dtype)(t + 1))
        row->fate[t] = amp_histogram_fates(&row->values, t, 1.0f);
}

#define AMPI_ADVISE(row, ...) snprintf((row)->advice, sizeof(row)->advice, __VA_ARGS__)
/* Each gives the advice if it has one: then 1. */
static int ampi_advise_not_finite(amp_report_row *row) {
    const amp_histogram *h = &row->values;
    if (h->nan)
        AMPI_ADVISE(row, "%llu of %llu values are NaN: amp_watch_array finds where they come from", AMPI_ULL(h->nan),
            AMPI_ULL(h->total));
    else if (h->inf)
        AMPI_ADVISE(row, "%llu of %llu values are Inf: a lower loss scale, or amp_watch_array finds the layer",
            AMPI_ULL(h->inf), AMPI_ULL(h->total));
    return h->nan || h->inf;
}
#define AMPI_MANY_LOST 0.5 /* of updates */
static int ampi_advise_lost(amp_report_row *row, const amp_params *p, amp_master layout, amp_dtype model) {
    double lost = ampi_share(row->lost, row->updates);
    const char *name = amp_dtype_name(layout == AMP_MASTER_NONE ? model : AMP_F32);
    if (lost < AMPI_MANY_LOST || p->drawn) return 0;
    if (layout == AMP_MASTER_NONE)
        AMPI_ADVISE(row, "%.3g %% of updates are lost in %s weights: keep masters, or round stochastically",
            100.0 * lost, name);
    else if (layout == AMP_MASTER_SPLIT8)
        AMPI_ADVISE(row, "%.3g %% of updates are lost in 24-bit weights: round stochastically, or AMP_MASTER_SPLIT",
            100.0 * lost);
    else
        AMPI_ADVISE(row, "%.3g %% of updates are below what the masters hold: raise the learning rate", 100.0 * lost);
    return 1;
}
#define AMPI_MANY_SUBNORMAL 10.0 /* percent of the values that are not 0 */
static int ampi_advise_small(amp_report_row *row, amp_dtype t, int is_gradient) {
    double by = (double)amp_histogram_suggest_scale(&row->values);
    double subnormal = 0.0;
    int narrow = t == AMP_F16 || ampi_is_f8(t);
    if (narrow) subnormal = 100.0 * row->fate[t].subnormal; /* an array that is not there may have any dtype */
    if (row->values.total && row->values.zero == row->values.total) {
        AMPI_ADVISE(row,
            is_gradient && narrow ? "every value is 0: raise the loss scale, or is the layer cut off?"
                                  : "every value is 0: is the layer cut off?");
        return 1;
    }
    if (subnormal < AMPI_MANY_SUBNORMAL) return 0;
    if (is_gradient && t == AMP_F16 && by > 1.0)
        AMPI_ADVISE(row, "%.0f %% of the nonzero values are subnormal in f16: a loss scale %.0f times as large fits",
            subnormal, by);
    else
        AMPI_ADVISE(row, "%.0f %% of the nonzero values are subnormal in %s: use a wider format, or a scale", subnormal,
            amp_dtype_name(t));
    return 1;
}
/* Of 8-bit first moments, those that are 0 where gradients are not. */
#define AMPI_MANY_FALLEN 0.5
static amp_status ampi_advise_moments(amp_ctx *ctx, const amp_param_entry *e, amp_report_row *row) {
    const amp_array codes = ampi_entry_zeros(e, 0);
    amp_histogram h = AMP_ZERO;
    double fallen;
    if (row->advice[0] || !codes.data || e->moment_dtype != AMP_MOMENT_8BIT) return AMP_OK;
    AMPI_TRY((ctx->b->histogram)(ctx, &codes, 1, &h));
    fallen = ampi_share(h.zero, h.total) - ampi_share(row->values.zero, row->values.total);
    if (h.zero < h.total && fallen >= AMPI_MANY_FALLEN)
        AMPI_ADVISE(row,
            "%.0f %% of 8-bit first moments fell to 0 beside the largest of their blocks: try bf16 moments",
            100.0 * fallen);
    return AMP_OK;
}

static amp_status ampi_report_param(amp_ctx *ctx, const amp_params *p, size_t i, amp_report_row *row) {
    const amp_param_entry *e = &p->entries[i];
    const amp_array grad = ampi_entry_grad(e);
    amp_update_count c;
    row->name = ampi_param_at(p, i)->name;
    if (!ampi_param_at(p, i)->unused) AMPI_TRY((ctx->b->histogram)(ctx, &grad, 1, &row->values));
    AMPI_TRY((ctx->b->copy)(ctx, &c, &p->table.counts[i], sizeof c));
    row->updates = c.updates;
    row->lost = c.lost;
    row->ratio = ampi_float(c.ratio);
    ampi_report_values(row);
    if (ampi_advise_not_finite(row) || ampi_advise_lost(row, p, e->layout, e->model_dtype)) return AMP_OK;
    (void)ampi_advise_small(row, grad.dtype, 1);
    return ampi_advise_moments(ctx, e, row);
}
static amp_status ampi_report_array(amp_ctx *ctx, amp_array a, const char *name, amp_report_row *row) {
    row->name = name ? name : "array";
    if (a.data) AMPI_TRY((ctx->b->histogram)(ctx, &a, 1, &row->values));
    ampi_report_values(row);
    if (!ampi_advise_not_finite(row)) (void)ampi_advise_small(row, a.dtype, 0);
    return AMP_OK;
}
/* All parameters: the sums of their rows, and what concerns the run. */
static void ampi_report_all(const amp_params *p, amp_report_row *rows, const amp_scaler_info *s) {
    size_t i;
    rows->name = "all parameters";
    for (i = 1; i <= p->n; i++) {
        amp_histogram_add(&rows->values, &rows[i].values);
        rows->updates += rows[i].updates;
        rows->lost += rows[i].lost;
        if (rows->ratio < rows[i].ratio) rows->ratio = rows[i].ratio;
    }
    ampi_report_values(rows);
    if (s->dead)
        AMPI_ADVISE(rows, "the loss scale is dead at %g: %llu overflows in a row; find the layer (amp_watch_array)",
            (double)s->scale, AMPI_ULL(s->bad_in_a_row));
    else if (!ampi_advise_not_finite(rows))
        (void)ampi_advise_lost(rows, p, p->desc.master, p->desc.model);
}
static amp_status ampi_report_rows(const amp_params *p, amp_report_row *rows, const amp_array *arrays,
    const char *const *names, size_t n, const amp_scaler_info *s) {
    size_t i;
    memset(rows, 0, (1 + p->n + n) * sizeof *rows);
    for (i = 0; i < p->n; i++)
        AMPI_TRY(ampi_report_param(p->ctx, p, i, &rows[1 + i]));
    for (i = 0; i < n; i++)
        AMPI_TRY(ampi_report_array(p->ctx, arrays[i], names[i], &rows[1 + p->n + i]));
    ampi_report_all(p, rows, s);
    return AMP_OK;
}
static amp_status ampi_do_report(amp_params *p, amp_scaler *s, amp_report_row *rows, size_t cap,
    const amp_array *arrays, const char *const *names, size_t n) {
    amp_ctx *ctx = p->ctx;
    amp_scaler_info info = AMP_ZERO;
    AMPI_TRY(ampi_check_pair(ctx, p, s));
    AMPI_CHECK(rows, "rows is NULL");
    AMPI_CHECK(n < (size_t)-1 / 2 && cap >= 1 + p->n + n, "cap is %llu, but there are 1 + %llu + %llu rows",
        AMPI_ULL(cap), AMPI_ULL(p->n), AMPI_ULL(n));
    AMPI_TRY(ampi_check_list(ctx, "arrays", arrays, n, 0));
    AMPI_CHECK(!n || names, "names is NULL");
    AMPI_HAS(histogram);
    AMPI_TRY((ctx->b->may_wait)(ctx));
    if (s) AMPI_TRY(ampi_do_scaler_get(s, &info));
    return ampi_report_rows(p, rows, arrays, names, n, &info);
}
AMP_API amp_status amp_report(amp_params *p, amp_scaler *s, amp_report_row *rows, size_t cap, const amp_array *arrays,
    const char *const *names, size_t n) {
    AMPI_VERB_OF(p, report, (p, s, rows, cap, arrays, names, n));
}

/* Text that goes on where the last piece ended; what has no room is counted, not written. */
typedef struct ampi_text {
    char *to;
    size_t bytes, length;
} ampi_text;
#if defined(__GNUC__) || defined(__clang__)
__attribute__((__format__(__printf__, 2, 3)))
#endif
static void ampi_add_text(ampi_text *t, const char *format, ...) {
    size_t room = t->length < t->bytes ? t->bytes - t->length : 0;
    va_list va;
    int n;
    va_start(va, format);
    n = vsnprintf(room ? t->to + t->length : NULL, room, format, va);
    va_end(va);
    if (n > 0) t->length += (size_t)n;
}
static void ampi_report_line(ampi_text *text, const amp_report_row *row) {
    const amp_histogram *h = &row->values;
    uint64_t bad = h->inf + h->nan, nonzero = h->total - h->zero - bad;
    size_t k;
    ampi_add_text(text, "%-20.20s %10llu %5.1f ", row->name ? row->name : "", AMPI_ULL(h->total),
        100.0 * ampi_share(bad, h->total));
    if (row->low > row->high)
        ampi_add_text(text, "%10s", "-");
    else
        ampi_add_text(text, "%4d..%4d", (int)row->low, (int)row->high);
    for (k = AMP_F16; k < AMP_DTYPE_COUNT; k++) {
        amp_fates f = row->fate[k];
        double share = 100.0 * ampi_share(nonzero, h->total), zero = 100.0 * ampi_share(h->zero, h->total);
        ampi_add_text(text, " |%4.0f%4.0f%4.0f", zero + share * f.lost, share * f.subnormal, share * f.overflow);
    }
    if (row->updates)
        ampi_add_text(text, " |%5.1f %8.2g\n", 100.0 * ampi_share(row->lost, row->updates), (double)row->ratio);
    else
        ampi_add_text(text, " |%5s %8s\n", "-", "-");
}
AMP_API size_t amp_report_text(char *text, size_t bytes, const amp_report_row *rows, size_t n) {
    ampi_text t = {text, text ? bytes : 0, 0};
    size_t i;
    if (t.bytes) text[0] = 0;
    if (!rows) return 0;
    ampi_add_text(&t, "%-20s %10s %5s %10s", "percent of values", "values", "bad", "2^");
    for (i = AMP_F16; i < AMP_DTYPE_COUNT; i++)
        ampi_add_text(&t, " |%12s", amp_dtype_name((amp_dtype)i));
    ampi_add_text(&t, " |%5s %8s\n%-48s", "lost", "ratio", "");
    for (i = AMP_F16; i < AMP_DTYPE_COUNT; i++)
        ampi_add_text(&t, " |zero sub big");
    ampi_add_text(&t, " |\n");
    for (i = 0; i < n; i++)
        ampi_report_line(&t, &rows[i]);
    for (i = 0; i < n; i++) {
        const char *name = rows[i].name ? rows[i].name : "";
        if (rows[i].advice[0]) ampi_add_text(&t, "%s: %s\n", name, rows[i].advice);
    }
    return t.length;
}

static amp_status ampi_do_watch_array(amp_ctx *ctx, amp_watch *w, const char *name, amp_array a) {
    if (w->where) return AMP_OK;
    AMPI_CHECK(name, "name is NULL");
    AMPI_CHECK(!a.data || a.count, "a.count is 0");
    AMPI_TRY(ampi_do_all_finite(ctx, &w->found, &a, 1));
    w->seen++;
    if (w->found.nan + w->found.inf == 0) return AMP_OK;
    w->where = name;
    return AMP_OK;
}
AMP_API amp_status amp_watch_array(amp_ctx *ctx, amp_watch *w, const char *name, amp_array a) {
    if (!w || !w->on) return AMP_OK;
    AMPI_VERB(ctx, watch_array, (ctx, w, name, a));
}

