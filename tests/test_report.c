/* test_report.c - lost updates, amp_report and its text, the first bad array. Guards: amp_step_desc.count_lost,
   amp_spacing_of, amp_report, amp_report_text, amp_watch_array, and the CUDA kernels that count. */
#include "set.h"

#define N_LAYOUTS 9
static amp_params_desc layout(int i) {
    static const amp_dtype model[N_LAYOUTS] = {
        AMP_BF16, AMP_F16, AMP_F16, AMP_BF16, AMP_F16, AMP_BF16, AMP_F32, AMP_F16, AMP_BF16};
    static const amp_master master[N_LAYOUTS] = {AMP_MASTER_NONE, AMP_MASTER_NONE, AMP_MASTER_F32, AMP_MASTER_SPLIT,
        AMP_MASTER_SPLIT, AMP_MASTER_KAHAN, AMP_MASTER_F32, AMP_MASTER_SPLIT8, AMP_MASTER_SPLIT8};
    amp_params_desc d = AMP_ZERO;
    d.model = model[i];
    d.master = master[i];
    d.grad = AMP_F32;
    return d;
}

#define N_PARAMS 3
/* Weights of all sizes, among them 0, subnormals of the small formats, Inf and NaN (not in FP16 under SPLIT). */
static void random_set(t_run *t, amp_params **p, amp_params_desc d, const size_t *counts) {
    size_t i, k;
    int tame = (d.master == AMP_MASTER_SPLIT || d.master == AMP_MASTER_SPLIT8) && d.model == AMP_F16;
    CHECK_OK(amp_params_create(p, t->ctx, &d));
    for (i = 0; i < N_PARAMS; i++) {
        amp_param_desc e = AMP_ZERO;
        float *w = (float *)t_host(t, 4 * counts[i]);
        for (k = 0; k < counts[i]; k++) {
            w[k] = k % 7 == 3 ? t_range(t, -30, -10) : t_range(t, -8, 3);
            if (k % 50 == 9) w[k] = 0.0f;
            if (k % 97 == 5 && !tame) w[k] = ref_f32(k % 2 ? 0x7fc00000u : 0xff800000u);
        }
        e.count = counts[i];
        e.init = w;
        e.keep_f32 = i == 2;
        CHECK_OK(amp_params_add(*p, &e));
    }
    CHECK_OK(amp_params_commit(*p));
}
/* From 2^-34 to 2^3, so that some updates are lost in every layout; also 0, Inf and NaN. */
static float *random_grads(t_run *t, amp_params *p, size_t i) {
    amp_array g = amp_param_grad(p, i);
    float *host = (float *)t_host(t, 4 * g.count);
    size_t k;
    for (k = 0; k < g.count; k++) {
        host[k] = t_range(t, -34, 2);
        if (k % 20 == 3) host[k] = 0.0f;
        if (k % 89 == 7) host[k] = ref_f32(0x7fc00000u);
        if (k % 211 == 8) host[k] = ref_f32(0x7f800000u);
    }
    t_set(t, g.data, host, 4 * g.count);
    return host;
}

static amp_report_row *rows_of(t_run *t, amp_params *p, amp_scaler *s) {
    size_t n = 1 + amp_params_count(p);
    amp_report_row *rows = (amp_report_row *)t_host(t, n * sizeof *rows);
    CHECK_OK(amp_report(p, s, rows, n, NULL, NULL, 0));
    return rows;
}

/* The distance from |w| to the next larger number of the layout, as the header says it: in double, by frexp. */
static double spacing_of(amp_params_desc d, int keeps_f32, float w) {
    int mant = 23, least = -126, e;
    double s;
    if (!keeps_f32 && d.model != AMP_F32) {
        if (d.master == AMP_MASTER_NONE || d.master == AMP_MASTER_SPLIT8) {
            mant = (d.model == AMP_F16 ? 10 : 7) + (d.master == AMP_MASTER_SPLIT8 ? 8 : 0);
            least = d.model == AMP_F16 ? -14 : -126;
        }
        if (d.master == AMP_MASTER_KAHAN) mant = 15;
        if (d.master == AMP_MASTER_SPLIT && d.model == AMP_F16) least = -16;
    }
    if (!amp_is_finite(w)) return HUGE_VAL;
    (void)frexp((double)w, &e);
    e--;
    if (w == 0.0f || e < least) e = least;
    s = ldexp(1.0, e - mant);
    return s < ldexp(1.0, -126) ? ldexp(1.0, -126) : s;
}

/* What is stored of each weight: its bits, or those of the model copy and the low part. */
static uint32_t *stored_bits(t_run *t, amp_params *p, size_t i, const float *w, size_t n) {
    uint32_t *bits = (uint32_t *)t_host(t, 4 * n);
    amp_param a = amp_param_get(p, i);
    const void *model, *low;
    size_t k;
    memcpy(bits, w, 4 * n);
    if (!a.low.data) return bits;
    model = set_bits(t, a.model, n);
    low = set_bits(t, a.low, n);
    for (k = 0; k < n; k++)
        bits[k] = ampi_load_pattern(model, AMP_BF16, k) | ampi_load_pattern(low, a.low.dtype, k) << 16;
    return bits;
}
typedef struct seen { /* before and after a step */
    float *w[2];
    uint32_t *stored[2];
} seen;
/* What a step did. update[k]: what was subtracted. */
static void expect_counts(t_run *t, const amp_report_row *row, amp_params_desc d, size_t n, const seen *weights,
    const float *update, uint32_t every) {
    float *const *w = weights->w;
    uint64_t updates = 0, lost = 0;
    float ratio = 0.0f;
    size_t k;
    for (k = 0; k < n; k++) {
        float r;
        if (k / 1024 % every) continue;
        if (update[k] == 0.0f || amp_is_nan(update[k])) continue;
        updates++;
        lost += !amp_is_nan(w[1][k]) && weights->stored[0][k] == weights->stored[1][k];
        r = (float)(fabs((double)update[k]) / spacing_of(d, d.model == AMP_F32, w[0][k]));
        if (r > ratio) ratio = r;
    }
    CHECK_EQ(row->updates, updates);
    CHECK_EQ(row->lost, lost);
    CHECK_F32(row->ratio, ratio);
}

static size_t *some_counts(t_run *t) {
    size_t *counts = (size_t *)t_host(t, N_PARAMS * sizeof *counts);
    counts[0] = t_slow(t) ? 2100 : 65536 + 4097;
    counts[1] = 1;
    counts[2] = 1029;
    return counts;
}

/* SGD, whose update is lr * g, in every layout: the counts are what weights before and after tell. */
static void lost_reference(t_run *t) {
    int i, how;
    for (i = 0; i < N_LAYOUTS; i++)
        for (how = 0; how < 4; how++) { /* all; one block in two; stochastic; an update made elsewhere */
            size_t *counts = some_counts(t), k;
            amp_params_desc pd = layout(i), own;
            amp_step_desc d = AMP_ZERO;
            amp_params *p = NULL;
            seen w[N_PARAMS];
            float *g[N_PARAMS];
            amp_report_row *rows;
            int pair = pd.master == AMP_MASTER_SPLIT || pd.master == AMP_MASTER_KAHAN;
            if (how == 2 && pair) continue;
            t_note(t, "layout %d, case %d", i, how);
            random_set(t, &p, pd, counts);
            d.optimizer = AMP_SGD;
            d.lr = 0.0078125f;
            d.stochastic = how == 2;
            if (how == 3 && i < 2) d.weight_decay = 0.5f; /* what amp_apply multiplies by is no part of its update */
            d.count_lost = how == 1 ? 2 : 1;
            for (k = 0; k < N_PARAMS; k++) {
                size_t e;
                w[k].w[0] = (float *)t_host(t, 4 * counts[k]);
                w[k].w[1] = (float *)t_host(t, 4 * counts[k]);
                g[k] = random_grads(t, p, k);
                CHECK_OK(amp_param_read(p, k, w[k].w[0]));
                w[k].stored[0] = stored_bits(t, p, k, w[k].w[0], counts[k]);
                for (e = 0; e < counts[k] && how != 0; e++) /* an Inf is the largest ratio, whatever the spacing */
                    if (ref_f32_bits(g[k][e]) == 0x7f800000u) g[k][e] = 0.5f;
                t_set(t, amp_param_grad(p, k).data, g[k], 4 * counts[k]);
                for (e = 0; e < counts[k]; e++)
                    g[k][e] *= 0.0078125f;
            }
            if (how == 3) {
                CHECK_OK(amp_inspect(p, NULL, &d));
                for (k = 0; k < N_PARAMS; k++)
                    CHECK_OK(amp_apply(p, k, amp_param_grad(p, k), 1));
            } else {
                CHECK_OK(amp_step(p, NULL, &d));
            }
            rows = rows_of(t, p, NULL);
            for (k = 0; k < N_PARAMS; k++) {
                CHECK_OK(amp_param_read(p, k, w[k].w[1]));
                w[k].stored[1] = stored_bits(t, p, k, w[k].w[1], counts[k]);
                own = pd;
                if (k == 2) own.model = AMP_F32;
                expect_counts(t, &rows[1 + k], own, counts[k], &w[k], g[k], d.count_lost);
            }
            CHECK(rows[0].lost > 0 && rows[0].lost < rows[0].updates);
            CHECK_EQ(rows[0].lost, rows[1].lost + rows[2].lost + rows[3].lost);
            CHECK_EQ(rows[0].updates, rows[1].updates + rows[2].updates + rows[3].updates);
            CHECK(rows[0].ratio >= rows[1].ratio && rows[0].ratio >= rows[2].ratio && rows[0].ratio >= rows[3].ratio);
            amp_params_destroy(p);
        }
}

/* Every optimizer and layout: the same counts on every context, and the weights are those of a step that does not
   count. */
typedef struct lost_case {
    amp_optimizer optimizer;
    int layout, counting;
    uint32_t accumulate;
} lost_case;
static void lost_steps(t_run *t, t_blob *b, const void *arg) {
    const lost_case *c = (const lost_case *)arg;
    size_t *counts = some_counts(t), i;
    amp_params_desc pd = layout(c->layout);
    amp_step_desc d = AMP_ZERO;
    amp_params *p = NULL;
    int step, k;
    counts[0] = t_slow(t) ? 1500 : 70001;
    pd.accumulate = c->accumulate;
    pd.moment = c->layout == 0 ? AMP_BF16 : AMP_F32;
    random_set(t, &p, pd, counts);
    d.optimizer = c->optimizer;
    d.lr = 0.001f;
    d.weight_decay = c->layout & 1 ? 0.01f : 0.0f;
    d.momentum = c->layout & 2 ? 0.9f : 0.0f;
    d.clip_value = 0.5f;
    d.stochastic = c->layout == 1 || c->layout == 8;
    d.count_lost = c->counting ? 1u + (c->layout == 2) : 0;
    for (step = 0; step < 2; step++) {
        amp_report_row *rows;
        for (i = 0; i < N_PARAMS; i++)
            (void)random_grads(t, p, i);
        if (c->accumulate) CHECK_OK(amp_accumulate(p, NULL, 0));
        CHECK_OK(amp_step(p, NULL, &d));
        rows = rows_of(t, p, NULL);
        for (i = 0; i <= N_PARAMS; i++) {
            CHECK(!c->counting == !rows[i].updates || i == 2);
            if (!c->counting) continue;
            t_blob_add(b, &rows[i].updates, 8);
            t_blob_add(b, &rows[i].lost, 8);
            t_blob_add(b, &rows[i].ratio, 4);
        }
    }
    if (c->counting < 2) set_blob_any_nan(t, b, p, counts, N_PARAMS);
    for (i = 0, k = 0; i < N_PARAMS; i++)
        k += amp_param_get(p, i).low.data != NULL;
    CHECK(k == 0 || pd.master >= AMP_MASTER_SPLIT);
    amp_params_destroy(p);
}
static void lost_everywhere(t_run *t) {
    lost_case c;
    int o;
    memset(&c, 0, sizeof c);
    for (c.layout = 0; c.layout < N_LAYOUTS; c.layout++)
        for (o = 0; o < AMP_OPTIMIZER_COUNT; o++) {
            if (t_slow(t) && (o + c.layout) % AMP_OPTIMIZER_COUNT && o != (int)AMP_ADAMW) continue;
            c.optimizer = (amp_optimizer)o;
            c.accumulate = (uint32_t)(o + c.layout) % 2u;
            c.counting = 1;
            t_note(t, "optimizer %d, layout %d", o, c.layout);
            t_same_everywhere(t, lost_steps, &c);
        }
}
/* counting changes no bit of a set */
static void lost_is_aside(t_run *t) {
    lost_case c;
    memset(&c, 0, sizeof c);
    for (c.layout = 0; c.layout < N_LAYOUTS; c.layout++) {
        t_blob blob[2];
        size_t counted = 2 * (N_PARAMS + 1) * 20;
        uint64_t rng = t->rng;
        memset(blob, 0, sizeof blob);
        c.counting = 0;
        lost_steps(t, &blob[0], &c);
        t->rng = rng;
        c.counting = 1;
        lost_steps(t, &blob[1], &c);
        t_note(t, "layout %d", c.layout);
        if (CHECK_EQ(blob[0].bytes + counted, blob[1].bytes))
            CHECK_BITS(blob[0].data, blob[1].data + counted, blob[0].bytes, 1);
        free(blob[0].data);
        free(blob[1].data);
    }
}

/* Which step's counts a report gives: the last one that was told to count, zeros if it was skipped. */
static void lost_when(t_run *t) {
    const size_t n = 100;
    amp_params_desc pd = layout(0);
    amp_param_desc e = AMP_ZERO;
    amp_step_desc d = AMP_ZERO;
    amp_params *p = NULL;
    amp_scaler *s = NULL;
    amp_report_row *rows;
    float ones[100];
    uint8_t used[2] = {1, 0};
    size_t i;
    for (i = 0; i < n; i++)
        ones[i] = 1.0f;
    e.count = n;
    e.init = ones;
    CHECK_OK(amp_params_create(&p, t->ctx, &pd));
    CHECK_OK(amp_params_add(p, &e));
    CHECK_OK(amp_params_add(p, &e));
    CHECK_OK(amp_params_commit(p));
    CHECK_OK(amp_scaler_create(&s, t->ctx, NULL));
    d.optimizer = AMP_SGD;
    d.lr = 1.0f;
    d.unscaled = 1;
    set_grad(t, p, 0, n, 0.001953125f); /* half the spacing below 1: a tie, back to 1 */
    set_grad(t, p, 1, n, 0.00390625f);  /* all of it */
    CHECK_OK(amp_step(p, s, &d));
    CHECK_EQ(rows_of(t, p, s)[0].updates, 0);
    d.count_lost = 1;
    CHECK_OK(amp_step(p, s, &d));
    rows = rows_of(t, p, s);
    CHECK_EQ(rows[1].updates, n);
    CHECK_EQ(rows[1].lost, n);
    CHECK_F32(rows[1].ratio, 0.25f); /* of the spacing at 1 */
    CHECK_EQ(rows[2].updates, n);
    CHECK_EQ(rows[2].lost, 0);
    CHECK_F32(rows[2].ratio, 1.0f); /* it is below 1 by now */
    d.count_lost = 0;
    CHECK_OK(amp_step(p, s, &d));
    CHECK_EQ(rows_of(t, p, s)[1].lost, n);
    CHECK_OK(amp_params_use(p, used));
    d.count_lost = 1000;
    CHECK_OK(amp_step(p, s, &d));
    rows = rows_of(t, p, s);
    CHECK_EQ(rows[1].lost, n);
    CHECK_EQ(rows[2].updates, 0);
    CHECK_EQ(rows[2].values.total, 0);
    set_grad_bits(t, p, 0, 5, set_inf(AMP_F32));
    CHECK_OK(amp_step(p, s, &d));
    CHECK_EQ(rows_of(t, p, s)[0].updates, 0); /* skipped */
    amp_scaler_destroy(s);
    amp_params_destroy(p);
}

/* ---- the report ---- */

static void has(t_run *t, const amp_report_row *row, const char *words) {
    t_note(t, "%s: \"%s\"", row->name, row->advice);
    CHECK(words ? strstr(row->advice, words) != NULL : row->advice[0] == 0);
    t_note(t, "%s", "");
}
/* Rows whose shares are known, and their advice. */
static void report_rows(t_run *t) {
    static const char *const names[3] = {"wte", "head", "norm"};
    static const char *const mine[3] = {"acts", NULL, "hidden"};
    amp_params_desc pd = AMP_ZERO;
    amp_step_desc d = AMP_ZERO;
    amp_params *p = NULL;
    amp_report_row rows[7];
    amp_array arrays[3];
    float x[64], ones[64];
    size_t i;
    for (i = 0; i < 64; i++)
        ones[i] = 1.0f;
    pd.model = AMP_BF16;
    pd.grad = AMP_F16;
    pd.master = AMP_MASTER_NONE;
    CHECK_OK(amp_params_create(&p, t->ctx, &pd));
    for (i = 0; i < 3; i++) {
        amp_param_desc e = AMP_ZERO;
        e.name = names[i];
        e.count = 64;
        e.init = ones;
        e.keep_f32 = i == 2;
        CHECK_OK(amp_params_add(p, &e));
    }
    CHECK_OK(amp_params_commit(p));
    d.optimizer = AMP_SGD;
    d.lr = 1.0f;
    d.count_lost = 1;
    set_grad(t, p, 0, 64, 1.0f / 1024);
    set_grad(t, p, 1, 64, 1.0f);
    set_grad(t, p, 2, 64, 1.0f);
    for (i = 0; i < 5; i++)
        set_grad_bits(t, p, 0, i, 0x2000u); /* 2^-7: these are not lost */
    CHECK_OK(amp_step(p, NULL, &d));
    for (i = 0; i < 64; i++) { /* F16: 16 zeros, 16 of 2^-20, 24 of 2^-3, 8 of 2^10 */
        x[i] = i < 16 ? 0.0f : i < 32 ? 9.5367431640625e-7f : i < 56 ? 0.125f : 1024.0f;
    }
    arrays[0] = amp_arrn(t_put(t, x, sizeof x), AMP_F32, 64);
    arrays[1] = amp_arrn(NULL, (amp_dtype)99, 0); /* not there, whatever it says */
    x[3] = ref_f32(0xff800000u);
    arrays[2] = amp_arrn(t_put(t, x, sizeof x), AMP_F32, 64);
    set_grad(t, p, 1, 64, 0.0f);
    memset(rows, 0x5a, sizeof rows);
    CHECK_OK(amp_report(p, NULL, rows, 7, arrays, mine, 3));
    CHECK(!strcmp(rows[0].name, "all parameters") && !strcmp(rows[1].name, "wte") && !strcmp(rows[4].name, "acts"));
    CHECK_EQ(rows[1].lost, 59);
    has(t, &rows[1], "92.2 % of updates are lost in bf16 weights: keep masters, or round stochastically");
    has(t, &rows[2], "every value is 0: raise the loss scale");
    has(t, &rows[3], NULL);
    has(t, &rows[0], NULL); /* 59 of 192 */
    has(t, &rows[4], NULL); /* F32 holds it all */
    has(t, &rows[6], "1 of 64 values are Inf");
    CHECK_EQ(rows[5].values.total, 0);
    CHECK(rows[5].low > rows[5].high);
    CHECK_EQ(rows[0].values.total, 192);
    CHECK_EQ(rows[4].values.zero, 16);
    CHECK_EQ(rows[4].low, -20);
    CHECK_EQ(rows[4].high, 10);
    CHECK_F64(rows[4].fate[AMP_F32].subnormal, 0.0);
    CHECK_F64(rows[4].fate[AMP_F16].subnormal, 16.0 / 48);
    CHECK_F64(rows[4].fate[AMP_BF16].subnormal, 0.0);
    CHECK_F64(rows[4].fate[AMP_F8E4M3].lost, 16.0 / 48);
    CHECK_F64(rows[4].fate[AMP_F8E4M3].overflow, 8.0 / 48);
    CHECK_F64(rows[4].fate[AMP_F8E5M2].lost, 16.0 / 48);
    CHECK_F64(rows[4].fate[AMP_F8E5M2].overflow, 0.0);
    for (i = 16; i < 32; i++) /* now as F16 gradients: a third of them subnormal, the largest 2^-3 */
        set_grad_bits(t, p, 1, i, 0x0010u);
    for (i = 32; i < 64; i++)
        set_grad_bits(t, p, 1, i, 0x3000u);
    CHECK_OK(amp_report(p, NULL, rows, 7, arrays, mine, 3));
    has(t, &rows[2], "33 % of the nonzero values are subnormal in f16: a loss scale 131072 times as large fits");
    set_grad_bits(t, p, 1, 63, 0x7bffu);
    CHECK_OK(amp_report(p, NULL, rows, 7, arrays, mine, 3));
    has(t, &rows[2], "33 % of the nonzero values are subnormal in f16: use a wider format");
    set_grad_bits(t, p, 1, 1, set_nan(AMP_F16));
    CHECK_OK(amp_report(p, NULL, rows, 4, NULL, NULL, 0));
    has(t, &rows[2], "1 of 64 values are NaN");
    has(t, &rows[0], "1 of 192 values are NaN");
    d.stochastic = 1; /* what is lost is so by chance then */
    CHECK_OK(amp_step(p, NULL, &d));
    CHECK_OK(amp_report(p, NULL, rows, 4, NULL, NULL, 0));
    CHECK(rows[1].lost > 0);
    has(t, &rows[1], NULL);
    amp_params_destroy(p);
}

/* Masters that do not move, and a scale that cannot fall any more. */
static void report_run(t_run *t) {
    amp_scaler_desc sd = AMP_ZERO;
    amp_step_desc d = AMP_ZERO;
    amp_params *p = set_one(t, 64, AMP_F16);
    amp_scaler *s = NULL;
    int i;
    sd.scale = sd.min_scale = 2.0f;
    sd.dead_after = 2;
    CHECK_OK(amp_scaler_create(&s, t->ctx, &sd));
    d.lr = 1e-12f;
    d.count_lost = 1;
    set_grad(t, p, 0, 64, 1.0f);
    CHECK_OK(amp_step(p, s, &d));
    has(t, rows_of(t, p, s) + 1, "updates are below what the masters hold: raise the learning rate");
    has(t, rows_of(t, p, s), "updates are below what the masters hold");
    set_grad_bits(t, p, 0, 5, set_inf(AMP_F16));
    for (i = 0; i < 2; i++)
        CHECK_OK(amp_step(p, s, &d));
    has(t, rows_of(t, p, s), "the loss scale is dead at 2: 2 overflows in a row");
    amp_scaler_destroy(s);
    amp_params_destroy(p);
}

/* Weights of 24 bits that do not move: updates of a quarter of their step. */
static void report_split8(t_run *t) {
    float ones[64];
    amp_params_desc pd = AMP_ZERO;
    amp_param_desc e = AMP_ZERO;
    amp_step_desc d = AMP_ZERO;
    amp_params *p = NULL;
    int i;
    for (i = 0; i < 64; i++)
        ones[i] = 1.0f;
    pd.model = AMP_BF16;
    pd.master = AMP_MASTER_SPLIT8;
    e.count = 64;
    e.init = ones;
    CHECK_OK(amp_params_create(&p, t->ctx, &pd));
    CHECK_OK(amp_params_add(p, &e));
    CHECK_OK(amp_params_commit(p));
    d.optimizer = AMP_SGD;
    d.lr = 1.0f / 262144;
    d.count_lost = 1;
    set_grad(t, p, 0, 64, 1.0f);
    CHECK_OK(amp_step(p, NULL, &d));
    has(t, rows_of(t, p, NULL) + 1,
        "100 % of updates are lost in 24-bit weights: round stochastically, or AMP_MASTER_SPLIT");
    d.stochastic = 1;
    CHECK_OK(amp_step(p, NULL, &d));
    has(t, rows_of(t, p, NULL) + 1, NULL);
    amp_params_destroy(p);
}

static void report_text(t_run *t) {
    static const char want[] =
        "percent of values        values   bad         2^ |         f16 |        bf16 |      f8e4m3 |      f8e5m2 |"
        " lost    ratio\n"
        "                                                 |zero sub big |zero sub big |zero sub big |zero sub big |\n"
        "all parameters                0   0.0          - |   0   0   0 |   0   0   0 |   0   0   0 |   0   0   0 |"
        "    -        -\n"
        "wte                         100   1.0  -20..  10 |   9  20   0 |   9   0   0 |  29   0  30 |  29   0   0 |"
        " 92.2     0.25\n"
        "wte: keep masters\n";
    amp_report_row rows[2];
    char text[1024], all[1024];
    size_t n, k;
    memset(rows, 0, sizeof rows);
    rows[0].name = "all parameters";
    rows[0].low = 1;
    rows[1].name = "wte";
    rows[1].values.total = 100;
    rows[1].values.zero = 9;
    rows[1].values.nan = 1;
    rows[1].low = -20;
    rows[1].high = 10;
    rows[1].fate[AMP_F16].subnormal = 20.0 / 90;
    rows[1].fate[AMP_F8E4M3].lost = 20.0 / 90;
    rows[1].fate[AMP_F8E5M2].lost = 20.0 / 90;
    rows[1].fate[AMP_F8E4M3].overflow = 30.0 / 90;
    rows[1].updates = 64;
    rows[1].lost = 59;
    rows[1].ratio = 0.25f;
    strcpy(rows[1].advice, "keep masters");
    n = amp_report_text(all, sizeof all, rows, 2);
    CHECK_EQ(n, sizeof want - 1);
    if (!CHECK(!strcmp(all, want))) puts(all);
    CHECK_EQ(amp_report_text(NULL, 0, rows, 2), n);
    for (k = 1; k <= n + 1; k += 37) { /* as snprintf: what fits, and a 0 */
        memset(text, 'x', sizeof text);
        CHECK_EQ(amp_report_text(text, k, rows, 2), n);
        CHECK_EQ(strlen(text), k - 1);
        CHECK(!memcmp(text, all, k - 1) && text[k] == 'x');
    }
    CHECK_EQ(amp_report_text(text, sizeof text, NULL, 2), 0);
    CHECK_EQ(text[0], 0);
}

/* Every argument wrong; nothing is written then. */
static void report_refusals(t_run *t) {
    static const char *const names[1] = {"x"};
    amp_params *p = set_one(t, 64, AMP_F16), *fresh = NULL;
    amp_report_row rows[3], before[3];
    amp_array a = amp_arrn(t_alloc(t, 64), AMP_F16, 32), none = amp_arr(a.data, AMP_F16);
    amp_scaler *s = NULL;
    amp_ctx *other = NULL;
    memset(rows, 0x5a, sizeof rows);
    memcpy(before, rows, sizeof rows);
    CHECK_EQ(amp_report(NULL, NULL, rows, 3, NULL, NULL, 0), AMP_ERR_INVALID_ARG);
    CHECK_STATUS(amp_report(p, NULL, NULL, 3, NULL, NULL, 0), AMP_ERR_INVALID_ARG, "amp_report rows NULL");
    CHECK_STATUS(amp_report(p, NULL, rows, 1, NULL, NULL, 0), AMP_ERR_INVALID_ARG, "amp_report cap 1 + 1 + 0");
    CHECK_STATUS(amp_report(p, NULL, rows, 2, &a, names, 1), AMP_ERR_INVALID_ARG, "cap 2 1 + 1 + 1");
    CHECK_STATUS(amp_report(p, NULL, rows, 3, &a, names, (size_t)-1), AMP_ERR_INVALID_ARG, "cap");
    CHECK_STATUS(amp_report(p, NULL, rows, 3, NULL, names, 1), AMP_ERR_INVALID_ARG, "arrays NULL");
    CHECK_STATUS(amp_report(p, NULL, rows, 3, &a, NULL, 1), AMP_ERR_INVALID_ARG, "names NULL");
    none.dtype = AMP_DTYPE_COUNT;
    none.count = 32;
    CHECK_STATUS(amp_report(p, NULL, rows, 3, &none, names, 1), AMP_ERR_INVALID_ARG, "arrays[0] dtype");
    CHECK_OK(amp_params_create(&fresh, t->ctx, NULL));
    CHECK_STATUS(amp_report(fresh, NULL, rows, 3, NULL, NULL, 0), AMP_ERR_STAGE, "amp_report committed");
    CHECK_OK(t_create(t->place, &other, NULL, NULL));
    CHECK_OK(amp_scaler_create(&s, other, NULL));
    CHECK_STATUS(amp_report(p, s, rows, 3, NULL, NULL, 0), AMP_ERR_INVALID_ARG, "amp_report context");
    CHECK(!memcmp(rows, before, sizeof rows));
    amp_scaler_destroy(s);
    amp_ctx_destroy(other);
    amp_params_destroy(fresh);
    amp_params_destroy(p);
}

/* ---- the first bad array ---- */

static void watch_finds(t_run *t) {
    static const char *const name[4] = {"h1", "h2", "h3", "dy"};
    amp_watch w = AMP_ZERO;
    amp_array a[4];
    float x[40];
    int i;
    memset(x, 0, sizeof x);
    for (i = 0; i < 4; i++) {
        if (i >= 2) x[7 + i] = ref_f32(0x7f800000u);
        if (i == 3) x[2] = ref_f32(0x7fc00000u);
        a[i] = amp_arrn(t_put(t, x, sizeof x), AMP_F32, 40);
    }
    CHECK_OK(amp_watch_array(NULL, NULL, NULL, a[3])); /* off: not even its arguments */
    CHECK_OK(amp_watch_array(NULL, &w, NULL, a[3]));
    for (i = 0; i < 4; i++)
        CHECK_OK(amp_watch_array(t->ctx, &w, name[i], a[i]));
    CHECK(!w.where && w.seen == 0);
    w.on = 1;
    for (i = 0; i < 4; i++)
        CHECK_OK(amp_watch_array(t->ctx, &w, name[i], a[i]));
    CHECK(w.where && !strcmp(w.where, "h3"));
    CHECK_EQ(w.seen, 3);
    CHECK_EQ(w.found.inf, 1);
    CHECK_EQ(w.found.nan, 0);
    CHECK_EQ(w.found.first_index, 9);
    memset(&w, 0, sizeof w);
    w.on = 1;
    CHECK_STATUS(amp_watch_array(t->ctx, &w, NULL, a[3]), AMP_ERR_INVALID_ARG, "amp_watch_array name NULL");
    CHECK_STATUS(
        amp_watch_array(t->ctx, &w, "x", amp_arr(a[3].data, AMP_F32)), AMP_ERR_INVALID_ARG, "amp_watch_array count");
    CHECK_EQ(amp_watch_array(NULL, &w, "x", a[3]), AMP_ERR_INVALID_ARG);
    CHECK(!w.where && w.seen == 0);
}

const t_test t_suite_report[] = {{"lost.reference", lost_reference, T_ALL}, {"lost.everywhere", lost_everywhere, T_ALL},
    {"lost.is_aside", lost_is_aside, T_ALL}, {"lost.when", lost_when, T_ALL}, {"report.rows", report_rows, T_ALL},
    {"report.run", report_run, T_ALL}, {"report.split8", report_split8, T_ALL}, {"report.text", report_text, T_HOST},
    {"report.refusals", report_refusals, T_ALL}, {"watch.finds", watch_finds, T_ALL}, {NULL, NULL, 0}};
