/* test_promises.c - promises that could be broken without a test that noticed: each of these was written after a fault,
   planted in the text, had survived. The comment of a test names the fault.  Guards: >>front-scaler, >>front-params,
   >>front-step, >>front-arrays, >>policy. */
#include "set.h"
#include "../examples/recompute_plan.h"

#include <math.h>

/* ---- the scaler ---- */

/* 1 / scale in context memory, as a product with alpha_ptr reads it. */
static float inverse_of(t_run *t, amp_scaler *s) {
    float x = 0;
    t_get(t, &x, amp_scaler_inverse_ptr(s), sizeof x);
    return x;
}
static float scale_there(t_run *t, amp_scaler *s) {
    float x = 0;
    t_get(t, &x, amp_scaler_scale_ptr(s), sizeof x);
    return x;
}
static void one_step(t_run *t, amp_params *p, amp_scaler *s, int overflow) {
    amp_step_desc d = t_rate_0();
    set_grad(t, p, 0, 2, 1.0f);
    if (overflow) set_grad_bits(t, p, 0, 1, set_inf(AMP_F32));
    CHECK_OK(amp_step(p, s, &d));
}

/* The pointers follow the scale also when an update changes it: only set_scale was looked at. */
static void pointers_follow(t_run *t) {
    static const char overflows[] = "0100110000"; /* growth every second good step */
    amp_scaler_desc d = AMP_ZERO;
    amp_scaler *s = NULL;
    amp_params *p = set_one(t, 2, AMP_F32);
    float before = 0.0f;
    int i, changes = 0;
    d.scale = 1024.0f;
    d.growth_interval = 2;
    CHECK_OK(amp_scaler_create(&s, t->ctx, &d));
    for (i = 0; overflows[i]; i++) {
        one_step(t, p, s, overflows[i] == '1');
        t_note(t, "step %d", i);
        changes += t_scale(s) != before;
        before = t_scale(s);
        CHECK_F32(scale_there(t, s), before);
        CHECK_F32(inverse_of(t, s), 1.0f / before);
    }
    CHECK(changes >= 5);
    amp_params_destroy(p);
    amp_scaler_destroy(s);
}

/* A lower scale ends "dead" at once; a higher one, or the same, does not. */
static void a_lower_scale_revives(t_run *t) {
    amp_scaler_desc d = AMP_ZERO;
    amp_scaler *s = NULL;
    amp_params *p = set_one(t, 2, AMP_F32);
    int i;
    d.mode = AMP_SCALER_STATIC;
    d.scale = 4.0f;
    d.dead_after = 2;
    CHECK_OK(amp_scaler_create(&s, t->ctx, &d));
    for (i = 0; i < 2; i++)
        one_step(t, p, s, 1);
    CHECK_EQ(set_info(t, s).dead, 1);
    CHECK_OK(amp_scaler_set_scale(s, 2.0f));
    CHECK_EQ(set_info(t, s).dead, 0);
    one_step(t, p, s, 1);
    CHECK_EQ(set_info(t, s).dead, 0); /* the count began anew */
    one_step(t, p, s, 1);
    CHECK_EQ(set_info(t, s).dead, 1);
    amp_params_destroy(p);
    amp_scaler_destroy(s);
}

/* A state saved while a scaler was off cannot be loaded into one that is on (S15); the other way round is fine. */
static void off_is_not_on(t_run *t) {
    amp_scaler_desc off = AMP_ZERO;
    amp_scaler *s[2] = {NULL, NULL};
    const char *path = t_file("promises-off");
    int i;
    off.mode = AMP_SCALER_OFF;
    CHECK_OK(amp_scaler_create(&s[0], t->ctx, &off));
    CHECK_OK(amp_scaler_create(&s[1], t->ctx, NULL));
    for (i = 0; i < 2; i++) {
        amp_state_desc d = AMP_ZERO;
        float before = t_scale(s[!i]);
        d.n_scalers = 1;
        d.scalers = &s[i];
        t_note(t, "saved while %s", i ? "on" : "off");
        CHECK_OK(amp_state_save(t->ctx, path, &d));
        CHECK_OK(amp_state_load(t->ctx, path, &d));
        d.scalers = &s[!i];
        if (i)
            CHECK_OK(amp_state_load(t->ctx, path, &d));
        else
            CHECK_STATUS(amp_state_load(t->ctx, path, &d), AMP_ERR_FORMAT, "amp_state_load off");
        CHECK_F32(t_scale(s[!i]), before);
    }
    amp_scaler_destroy(s[0]);
    amp_scaler_destroy(s[1]);
}

/* ---- sets and steps ---- */

/* amp_clip leaves gradients alone whose norm is Inf: only NaN was looked at. */
static void clip_of_inf(t_run *t) {
    size_t n = 10;
    amp_params *p = set_new(t, AMP_F16, AMP_F32, &n, 1);
    float g[10] = {1, 2, 3, 4, 5, -6, 7, 8, -9, 10};
    int sign;
    for (sign = 0; sign < 2; sign++) {
        g[3] = ref_f32(sign ? 0xff800000u : 0x7f800000u);
        t_set(t, amp_param_grad(p, 0).data, g, sizeof g);
        CHECK_OK(amp_clip(p, NULL, 0.1f, 0.0f));
        CHECK_BITS((float *)set_bits(t, amp_param_grad(p, 0), n), g, n, 4);
    }
    amp_params_destroy(p);
}

/* Weights that come from the model copies are exactly those: the low parts are forgotten. */
static void low_parts_are_forgotten(t_run *t) {
    static const amp_master masters[3] = {AMP_MASTER_SPLIT, AMP_MASTER_KAHAN, AMP_MASTER_SPLIT8};
    enum { N = 300 };
    int k, i;
    for (k = 0; k < 3; k++) {
        amp_params *p = NULL;
        amp_params_desc d = AMP_ZERO;
        amp_param_desc e = AMP_ZERO;
        float *w = (float *)t_host(t, N * 4), *got = (float *)t_host(t, N * 4);
        uint16_t model[N];
        d.model = AMP_BF16;
        d.master = masters[k];
        CHECK_OK(amp_params_create(&p, t->ctx, &d));
        for (i = 0; i < N; i++)
            w[i] = 1.0f + (float)(i + 1) * (1.0f / 4096.0f); /* between two numbers of BF16 */
        e.count = N;
        e.init = w;
        CHECK_OK(amp_params_add(p, &e));
        CHECK_OK(amp_params_commit(p));
        for (i = 0; i < N; i++)
            model[i] = amp_bf16_from_f32((float)i / 64.0f).bits;
        t_set(t, amp_param_model(p, 0).data, model, sizeof model);
        CHECK_OK(amp_params_model_to_master(p));
        CHECK_OK(amp_param_read(p, 0, got));
        t_note(t, "master %d", (int)masters[k]);
        for (i = 0; i < N; i++)
            CHECK_F32(got[i], amp_f32_from_bf16(amp_bf16_from_f32((float)i / 64.0f)));
        amp_params_destroy(p);
    }
}

/* What lies after the last element of an adopted gradient is not looked at, wherever the count ends. */
static void nothing_behind_a_gradient(t_run *t) {
    static const size_t counts[] = {1, 7, 9, 6145, 6151, 7001, 8191, 8193, 14337, 15003};
    static const amp_dtype types[] = {AMP_F16, AMP_BF16, AMP_F32};
    size_t c, k, i;
    for (c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        for (k = 0; k < 3; k++) {
            enum { AFTER = 16 };
            size_t n = counts[c], size = amp_dtype_size(types[k]);
            amp_params *p = NULL;
            amp_params_desc d = AMP_ZERO;
            amp_param_desc e = AMP_ZERO;
            amp_step_desc step = t_rate_0();
            unsigned char *g = (unsigned char *)t_host(t, (n + AFTER) * size);
            double norm = 0;
            for (i = 0; i < n + AFTER; i++)
                ampi_store_pattern(g, types[k], i, i < n ? 0 : i % 2 ? set_inf(types[k]) : set_nan(types[k]));
            amp_store(g, types[k], n - 1, 3.0f);
            d.model = types[k] == AMP_F32 ? AMP_F16 : types[k];
            d.grad = types[k];
            CHECK_OK(amp_params_create(&p, t->ctx, &d));
            e.count = n;
            e.grad = amp_arr(t_put(t, g, (n + AFTER) * size), types[k]);
            CHECK_OK(amp_params_add(p, &e));
            CHECK_OK(amp_params_commit(p));
            t_note(t, "%d elements of %s", (int)n, amp_dtype_name(types[k]));
            CHECK_OK(amp_grad_norm(p, NULL, &norm));
            CHECK_NEAR(norm, 3.0, 1e-12);
            CHECK_OK(amp_step(p, NULL, &step));
            CHECK_EQ(set_poll(t, p).outcome, AMP_STEPPED);
            amp_params_destroy(p);
            t_clear(t);
        }
    }
}

/* ---- what a step promises ---- */

/* Gradients that are sums of 4 micro-batches: the norm, and so the clipping, is that of their mean. Of 4 gradients of
   32 with a scale of 8 the norm is 2. The same of a window of 4 that was accumulated, where 4 is not said again. */
static void norm_of_micro_batches(t_run *t) {
    static const float limits[2] = {1.0f, 2.5f};
    int window, k, i;
    for (window = 0; window < 2; window++)
        for (k = 0; k < 2; k++) {
            size_t n = 4;
            amp_params_desc pd = AMP_ZERO;
            amp_param_desc e = AMP_ZERO;
            amp_scaler_desc sd = AMP_ZERO;
            amp_step_desc d = AMP_ZERO;
            amp_params *p = NULL;
            amp_scaler *s = NULL;
            amp_step_record r;
            float w[4] = {0, 0, 0, 0}, factor;
            pd.model = AMP_F32;
            pd.accumulate = (uint32_t)window;
            e.count = n;
            sd.scale = 8.0f;
            CHECK_OK(amp_params_create(&p, t->ctx, &pd));
            CHECK_OK(amp_params_add(p, &e));
            CHECK_OK(amp_params_commit(p));
            CHECK_OK(amp_scaler_create(&s, t->ctx, &sd));
            set_grad(t, p, 0, n, window ? 8.0f : 32.0f);
            for (i = 0; i < 4 && window; i++)
                CHECK_OK(amp_accumulate(p, s, 0));
            d.optimizer = AMP_SGD;
            d.lr = 1.0f;
            d.micro_batches = window ? 0 : 4;
            d.clip_norm = limits[k];
            CHECK_OK(amp_step(p, s, &d));
            r = set_poll(t, p);
            t_note(t, "window %d, clip_norm %g", window, (double)limits[k]);
            CHECK_F64(r.norm, 2.0);
            factor = k ? 1.0f : (float)(1.0 / (2.0 + 1e-6));
            CHECK_NEAR(r.clip, factor, 1e-7);
            CHECK_OK(amp_param_read(p, 0, w));
            CHECK_F32(w[3], -r.clip);
            amp_params_destroy(p);
            amp_scaler_destroy(s);
        }
}

/* Parameters of groups that n_groups does not reach are as group 0 in every hyper-parameter. */
static amp_params *grouped(t_run *t, const uint32_t *groups, size_t n) {
    amp_params *p = NULL;
    amp_params_desc pd = AMP_ZERO;
    size_t i;
    pd.model = AMP_F32;
    CHECK_OK(amp_params_create(&p, t->ctx, &pd));
    for (i = 0; i < n; i++) {
        amp_param_desc e = AMP_ZERO;
        float init[20];
        int k;
        for (k = 0; k < 20; k++)
            init[k] = (float)(k + 1) * 0.37f;
        e.count = 20;
        e.init = init;
        e.group = groups[i];
        CHECK_OK(amp_params_add(p, &e));
    }
    CHECK_OK(amp_params_commit(p));
    for (i = 0; i < n; i++)
        set_grad(t, p, i, 20, 0.3f);
    return p;
}
static void groups_beyond(t_run *t) {
    static const uint32_t groups[4] = {0, 1, 2, AMP_GROUPS - 1};
    float rate = 0.02f;
    int o, step;
    for (o = 0; o < 4; o++) {
        amp_step_desc d = AMP_ZERO;
        amp_group one = AMP_ZERO;
        amp_params *p = grouped(t, groups, 4);
        float w[4][20];
        size_t i;
        t_note(t, "case %d", o);
        d.optimizer = o & 1 ? AMP_SGD : AMP_ADAM;
        if (o == 3) d.lr_ptr = (const float *)t_put(t, &rate, sizeof rate);
        d.lr = 0.05f;
        d.beta1 = amp_opt(0.5f);
        d.beta2 = amp_opt(0.75f);
        d.eps = amp_opt(0.125f);
        d.weight_decay = 0.1f;
        if (o & 1) d.momentum = 0.5f;
        if (o & 1) d.dampening = 0.25f;
        one.lr = 0.005f;
        d.groups = &one;
        d.n_groups = 1;
        for (step = 0; step < 3; step++)
            CHECK_OK(amp_step(p, NULL, &d));
        for (i = 0; i < 4; i++)
            CHECK_OK(amp_param_read(p, i, w[i]));
        CHECK(memcmp(w[0], w[1], sizeof w[0]) != 0);
        CHECK_BITS(w[2], w[0], 20, 4);
        CHECK_BITS(w[3], w[0], 20, 4);
        amp_params_destroy(p);
    }
}

/* A number of elements that is one more than a multiple of 65,536, the unit of work: the last one is done, too. */
static void one_element_more(t_run *t) {
    static const amp_dtype types[] = {AMP_F16, AMP_F8E4M3, AMP_F64, AMP_F32};
    size_t n, k, most = t_slow(t) ? 65537 : 131073;
    for (n = 65537; n <= most; n += 65536) {
        size_t last = n - 1;
        float *x = (float *)t_host(t, 4 * n), got = 0;
        double wide = 0;
        amp_array a, b, widened;
        amp_dropout_desc drop = AMP_ZERO;
        amp_cast_desc how = AMP_ZERO;
        amp_step_desc d = t_rate_0();
        amp_params *p = set_new(t, AMP_F16, AMP_F32, &n, 1);
        x[last] = 1.5f;
        a = amp_arr(t_put(t, x, 4 * n), AMP_F32);
        how.rounding = AMP_STOCHASTIC;
        for (k = 0; k < 4; k++) {
            int drawn;
            for (drawn = 0; drawn < 2; drawn++) {
                if (drawn && types[k] == AMP_F32) continue; /* bits are copied */
                b = amp_arr(t_alloc(t, n * amp_dtype_size(types[k])), types[k]);
                t_note(t, "%d elements to %s, drawn %d", (int)n, amp_dtype_name(types[k]), drawn);
                if (types[k] == AMP_F64 && drawn) continue;
                CHECK_OK(amp_cast(t->ctx, b, a, n, drawn ? &how : NULL));
                widened = amp_arr(t_alloc(t, 4 * n), AMP_F32);
                CHECK_OK(amp_cast(t->ctx, widened, b, n, NULL));
                t_get(t, &got, (float *)widened.data + last, sizeof got);
                CHECK_F32(got, 1.5f);
            }
        }
        b = amp_arr(t_alloc(t, 8 * n), AMP_F64);
        CHECK_OK(amp_cast(t->ctx, b, a, n, NULL));
        t_get(t, &wide, (double *)b.data + last, sizeof wide);
        CHECK_F64(wide, 1.5);
        drop.count = n;
        drop.x = a;
        drop.y = amp_arr(t_alloc(t, 4 * n), AMP_F32);
        CHECK_OK(amp_dropout(t->ctx, &drop));
        t_get(t, &got, (float *)drop.y.data + last, sizeof got);
        CHECK_F32(got, 1.5f);
        CHECK_OK(amp_param_read(p, 0, x));
        wide = (double)x[last];
        CHECK_OK(amp_inspect(p, NULL, &d));
        CHECK_OK(amp_apply(p, 0, a, 0));
        CHECK_OK(amp_param_read(p, 0, x));
        CHECK_F32(x[last], (float)(wide - 1.5));
        amp_params_destroy(p);
        t_clear(t);
    }
}

/* "dead", and how many overflows led there, are in the file. */
static void dead_after_a_load(t_run *t) {
    const char *path = t_file("promises-dead");
    int before;
    for (before = 2; before < 4; before++) {
        amp_scaler_desc d = AMP_ZERO;
        amp_state_desc st = AMP_ZERO;
        amp_scaler *s[2] = {NULL, NULL};
        amp_params *p = set_one(t, 2, AMP_F32);
        int i;
        d.mode = AMP_SCALER_STATIC;
        d.dead_after = 3;
        for (i = 0; i < 2; i++)
            CHECK_OK(amp_scaler_create(&s[i], t->ctx, &d));
        for (i = 0; i < before; i++)
            one_step(t, p, s[0], 1);
        st.n_scalers = 1;
        st.scalers = &s[0];
        CHECK_OK(amp_state_save(t->ctx, path, &st));
        st.scalers = &s[1];
        CHECK_OK(amp_state_load(t->ctx, path, &st));
        t_note(t, "%d overflows before", before);
        CHECK_EQ(set_info(t, s[1]).dead, before == 3);
        one_step(t, p, s[1], 1);
        CHECK_EQ(set_info(t, s[1]).dead, 1);
        amp_params_destroy(p);
        for (i = 0; i < 2; i++)
            amp_scaler_destroy(s[i]);
    }
}

/* KAHAN's -0 stays -0: read, written, and through a step that changes nothing. */
static void minus_zero_of_kahan(t_run *t) {
    enum { N = 20 };
    amp_params_desc pd = AMP_ZERO;
    amp_param_desc e = AMP_ZERO;
    amp_step_desc d = t_rate_0();
    amp_params *p = NULL;
    float w[N], got[N];
    int i, round;
    for (i = 0; i < N; i++)
        w[i] = i % 3 ? -0.0f : i % 2 ? 0.0f : 1.0009765625f;
    pd.model = AMP_BF16;
    pd.master = AMP_MASTER_KAHAN;
    e.count = N;
    e.init = w;
    CHECK_OK(amp_params_create(&p, t->ctx, &pd));
    CHECK_OK(amp_params_add(p, &e));
    CHECK_OK(amp_params_commit(p));
    d.optimizer = AMP_SGD;
    for (round = 0; round < 3; round++) {
        t_note(t, "round %d", round);
        if (round == 1) CHECK_OK(amp_param_write(p, 0, w));
        if (round == 2) CHECK_OK(amp_step(p, NULL, &d));
        CHECK_OK(amp_param_read(p, 0, got));
        CHECK_BITS(got, w, N, 4);
    }
    amp_params_destroy(p);
}

/* dbias is the column sum of what the products read: here of dy, FP32, cast to FP16. It is added to what is there. */
static void dbias_of_a_cast(t_run *t) {
    enum { ROWS = 3, IN = 8, OUT = 8 };
    int act;
    for (act = 0; act < 2; act++) {
        float x[ROWS * IN], w[OUT * IN], dy[ROWS * OUT], dbias[OUT];
        amp_precision record = AMP_ZERO;
        amp_linear_desc l = AMP_ZERO;
        int i;
        for (i = 0; i < ROWS * IN; i++)
            x[i] = 1.0f;
        for (i = 0; i < OUT * IN; i++)
            w[i] = 1.0f;
        for (i = 0; i < ROWS * OUT; i++)
            dy[i] = 1.000244140625f; /* 1 + 2^-12, in FP16 1 */
        for (i = 0; i < OUT; i++)
            dbias[i] = 10.0f + (float)i;
        l.rows = ROWS;
        l.in = IN;
        l.out = OUT;
        l.act = act ? AMP_RELU : AMP_ACT_NONE;
        l.x = amp_arr(t_put(t, x, sizeof x), AMP_F32);
        l.w = amp_arr(t_put(t, w, sizeof w), AMP_F32);
        l.y = amp_arr(t_alloc(t, sizeof dy), AMP_F32);
        l.dy = amp_arr(t_put(t, dy, sizeof dy), AMP_F32);
        l.dx = amp_arr(t_alloc(t, sizeof x), AMP_F32);
        l.dbias = amp_arr(t_put(t, dbias, sizeof dbias), AMP_F32);
        l.accumulate = 1;
        l.record = &record;
        CHECK_OK(amp_autocast_begin(t->ctx, NULL));
        CHECK_OK(amp_linear_forward(t->ctx, &l));
        CHECK_EQ(record.used, AMP_F16);
        CHECK_OK(amp_linear_backward(t->ctx, &l));
        CHECK_OK(amp_autocast_end(t->ctx));
        CHECK_OK(amp_autocast_release(t->ctx));
        t_get(t, dbias, l.dbias.data, sizeof dbias);
        t_note(t, "act %d", act);
        for (i = 0; i < OUT; i++)
            CHECK_F32(dbias[i], 13.0f + (float)i);
        t_clear(t);
    }
}

/* Sums of more columns than are taken at a time, added to what is there: each column is its own. */
static void bands_of_columns(t_run *t) {
    static const amp_dtype types[] = {AMP_F32, AMP_F16};
    enum { ROWS = 40, COLS = 1100 };
    int k;
    for (k = 0; k < 2; k++) {
        float *x = (float *)t_host(t, 4 * ROWS * COLS), *got = (float *)t_host(t, 4 * COLS);
        amp_array src, sums, f32;
        size_t r, c;
        for (r = 0; r < ROWS; r++)
            for (c = 0; c < COLS; c++)
                x[r * COLS + c] = r == c % ROWS ? (float)c : 0.0f;
        for (c = 0; c < COLS; c++)
            got[c] = (float)c * 2.0f;
        f32 = amp_arr(t_put(t, x, 4 * ROWS * COLS), AMP_F32);
        src = amp_arr(t_alloc(t, ROWS * COLS * amp_dtype_size(types[k])), types[k]);
        sums = amp_arr(t_put(t, got, 4 * COLS), AMP_F32);
        CHECK_OK(amp_cast(t->ctx, src, f32, ROWS * COLS, NULL));
        CHECK_OK(amp_column_sums(t->ctx, sums, src, ROWS, COLS, 0, 1));
        t_get(t, got, sums.data, 4 * COLS);
        t_note(t, "%s", amp_dtype_name(types[k]));
        for (c = 0; c < COLS; c++)
            CHECK_F32(got[c], (float)c * 3.0f);
        t_clear(t);
    }
}

/* Lost updates of adopted arrays that begin beside every alignment but that of an element: the counts, and the weights,
   are those of arrays of the set's own. */
static void lost_at_odd_addresses(t_run *t) {
    static const amp_master masters[] = {
        AMP_MASTER_F32, AMP_MASTER_NONE, AMP_MASTER_SPLIT, AMP_MASTER_KAHAN, AMP_MASTER_SPLIT8};
    size_t n = 1100, offset, i;
    int m;
    for (m = 0; m < 5; m++)
        for (offset = 0; offset < 3; offset++) {
            amp_params_desc pd = AMP_ZERO;
            amp_step_desc d = AMP_ZERO;
            amp_report_row rows[2][2];
            float *w[2];
            int k;
            t_note(t, "layout %d, element %d", m, (int)offset);
            pd.model = AMP_BF16;
            pd.grad = AMP_F32;
            pd.master = masters[m];
            d.optimizer = AMP_ADAM;
            d.lr = 0.0078125f;
            d.count_lost = 1;
            for (k = 0; k < 2; k++) { /* owned, adopted */
                amp_params *p = NULL;
                amp_param_desc e = AMP_ZERO;
                float *g = (float *)t_host(t, 4 * n);
                w[k] = (float *)t_host(t, 4 * n);
                for (i = 0; i < n; i++) {
                    w[k][i] = (float)(1 + i % 37) * (i % 5 ? 0.0625f : 1024.0f);
                    g[i] = i % 11 ? (float)(i % 13) - 5.5f : 0.0f;
                }
                CHECK_OK(amp_params_create(&p, t->ctx, &pd));
                e.count = n;
                e.init = w[k];
                if (k) {
                    e.model = amp_arr(t_alloc_at(t, 2 * n, 2 * offset), AMP_BF16);
                    e.grad = amp_arr(t_put_at(t, g, 4 * n, 4 * offset), AMP_F32);
                    if (masters[m] == AMP_MASTER_F32) e.master = (float *)t_alloc_at(t, 4 * n, 4 * offset);
                }
                CHECK_OK(amp_params_add(p, &e));
                CHECK_OK(amp_params_commit(p));
                if (!k) t_set(t, amp_param_grad(p, 0).data, g, 4 * n);
                CHECK_OK(amp_step(p, NULL, &d));
                CHECK_OK(amp_report(p, NULL, rows[k], 2, NULL, NULL, 0));
                CHECK_OK(amp_param_read(p, 0, w[k]));
                amp_params_destroy(p);
            }
            CHECK_EQ(rows[0][1].updates, n - n / 11);
            CHECK_EQ(rows[1][1].updates, rows[0][1].updates);
            CHECK_EQ(rows[1][1].lost, rows[0][1].lost);
            CHECK_F32(rows[1][1].ratio, rows[0][1].ratio);
            CHECK(rows[0][1].lost > 0 || masters[m] != AMP_MASTER_NONE);
            CHECK_BITS(w[1], w[0], n, 4);
            t_clear(t);
        }
}

/* Adam's quotients m / (sqrt(v) / sqrt(bc2) + eps) that are subnormal are rounded as such: a rate of 2^40 shows it. */
static void subnormal_quotients(t_run *t) {
    enum { N = 67 };
    size_t n = N, i;
    amp_params *p = set_new(t, AMP_F32, AMP_F32, &n, 1);
    amp_step_desc d = AMP_ZERO;
    float w[N], g[N];
    memset(w, 0, sizeof w);
    for (i = 0; i < N; i++)
        g[i] = (float)ldexp((i % 2 ? 1.0 : -1.0) * (1.0 + (double)i / 64.0), -118 - (int)(i % 20));
    CHECK_OK(amp_param_write(p, 0, w));
    t_set(t, amp_param_grad(p, 0).data, g, sizeof g);
    d.optimizer = AMP_ADAM;
    d.lr = 1099511627776.0f;
    d.beta1 = amp_opt(0.0f); /* m is the gradient */
    d.eps = amp_opt(3.0f);   /* v is 0 */
    CHECK_OK(amp_step(p, NULL, &d));
    CHECK_OK(amp_param_read(p, 0, w));
    for (i = 0; i < N; i++) {
        double q = rint(ldexp((double)g[i] / 3.0, 149)); /* units of 2^-149 */
        if (fabs(q) >= 8388608.0) q = ldexp((double)(float)((double)g[i] / 3.0), 149);
        t_note(t, "%g", (double)g[i]);
        CHECK_F32(w[i], (float)-ldexp(q, 40 - 149));
    }
    amp_params_destroy(p);
}

/* ---- arrays ---- */

/* The first bad element of many arrays, whatever the order in which threads and launches come to them. */
static void first_of_many(t_run *t) {
    enum { ARRAYS = 230, COUNT = 40000 };
    amp_array a[ARRAYS];
    uint16_t *good = (uint16_t *)t_host(t, COUNT * 2), bad = 0x7c00;
    unsigned char *memory = (unsigned char *)t_put(t, good, COUNT * 2), *other;
    size_t i, first;
    int rounds = t_slow(t) ? 1 : 20, r;
    other = (unsigned char *)t_put(t, good, COUNT * 2);
    t_set(t, other + 2 * (COUNT - 3), &bad, 2); /* late in its array, so that a later array may be done before it */
    for (first = 31; first < ARRAYS; first += 61) {
        for (i = 0; i < ARRAYS; i++) {
            a[i] = amp_arrn(i < first ? memory : other, AMP_F16, i < first && i % 2 ? 100 : COUNT);
            if (t_slow(t) && i != first) a[i].count = 50;
        }
        for (r = 0; r < rounds; r++) {
            amp_finite_report report;
            memset(&report, 0x5a, sizeof report);
            CHECK_OK(amp_all_finite(t->ctx, &report, a, ARRAYS));
            t_note(t, "array %d, round %d", (int)first, r);
            CHECK_EQ(report.first_array, first);
            CHECK_EQ(report.first_index, COUNT - 3);
            CHECK_EQ(report.inf, t_slow(t) ? 1 : ARRAYS - first);
        }
    }
}

/* A product in FP8 saturates: Inf becomes the largest number of its sign, and NaN stays NaN. */
static void products_saturate(t_run *t) {
    static const amp_dtype types[2] = {AMP_F8E5M2, AMP_F8E4M3};
    int k;
    for (k = 0; k < 2; k++) {
        amp_gemm_desc g = AMP_ZERO;
        uint16_t a[256], b[256];
        unsigned char d[256];
        int i;
        for (i = 0; i < 256; i++) {
            a[i] = amp_f16_from_f32(i % 17 ? 0.0f : 1.0f).bits; /* the identity, but for: */
            b[i] = amp_f16_from_f32(i % 17 ? 0.0f : 2.0f).bits;
        }
        a[0] = 0x7c00;
        a[17] = 0xfc00;
        a[34] = 0x7e00;
        g.m = g.n = g.k = 16;
        g.a = amp_arr(t_put(t, a, sizeof a), AMP_F16);
        g.b = amp_arr(t_put(t, b, sizeof b), AMP_F16);
        g.d = amp_arr(t_alloc(t, sizeof d), types[k]);
        g.flags = AMP_GEMM_EMULATE;
        if (!CHECK_OK(amp_gemm(t->ctx, &g))) return;
        t_get(t, d, g.d.data, sizeof d);
        CHECK_EQ(d[0], ref_format_of(types[k]).max);
        CHECK_EQ(d[17], ref_format_of(types[k]).max | 0x80u);
        CHECK(amp_is_nan(amp_load(d, types[k], 34))); /* its payload is a GPU's own */
        CHECK_EQ(d[51], ref_encode(2.0, types[k], 0));
    }
}

/* ---- memory ---- */

/* On a CPU an amp_array may begin at any byte: each verb gives what it gives at an aligned one. */
typedef struct odd_place {
    t_run *t;
    size_t byte; /* where arrays begin */
} odd_place;
static amp_array odd_array(const odd_place *o, amp_dtype type, size_t n, int seed) {
    size_t i, size = amp_dtype_size(type);
    unsigned char *host = (unsigned char *)t_host(o->t, n * size);
    for (i = 0; i < n; i++) {
        float x = (float)((int)((i * 37 + (size_t)seed) % 61) - 30) / 16.0f;
        double wide = (double)x;
        if (type == AMP_F64)
            memcpy(host + i * size, &wide, size);
        else
            amp_store(host, type, i, x);
    }
    return amp_arrn(t_put_at(o->t, host, n * size, o->byte), type, n);
}
static void odd_casts(const odd_place *o, t_blob *b, amp_dtype type) {
    enum { N = 777 };
    t_run *t = o->t;
    amp_array x = odd_array(o, AMP_F32, N, 1), y = odd_array(o, type, N, 2), list[2];
    amp_cast_desc how = AMP_ZERO;
    amp_finite_report found;
    amp_histogram bins;
    how.rounding = AMP_STOCHASTIC;
    CHECK_OK(amp_cast(t->ctx, y, x, N, NULL));
    set_blob_array(t, b, y, N, 0);
    CHECK_OK(amp_cast(t->ctx, x, y, N, NULL));
    set_blob_array(t, b, x, N, 0);
    if (type != AMP_F64) CHECK_OK(amp_cast(t->ctx, y, x, N, &how));
    if (type == AMP_F64) return;
    set_blob_array(t, b, y, N, 0);
    list[0] = x;
    list[1] = y;
    CHECK_OK(amp_all_finite(t->ctx, &found, list, 2));
    CHECK_EQ(found.nan + found.inf, 0);
    CHECK_OK(amp_histogram_count(t->ctx, &bins, list, 2));
    t_blob_add(b, &bins, sizeof bins);
    CHECK_OK(amp_column_sums(t->ctx, odd_array(o, AMP_F32, 21, 3), y, 37, 21, 0, 1));
}
static void odd_layer(const odd_place *o, t_blob *b, amp_dtype type) {
    enum { ROWS = 9, IN = 33, OUT = 17 };
    t_run *t = o->t;
    amp_linear_desc l = AMP_ZERO;
    amp_xent_desc e = AMP_ZERO;
    amp_dropout_desc d = AMP_ZERO;
    amp_activation_desc a = AMP_ZERO;
    float *rows = (float *)t_alloc(t, 4 * ROWS), *loss = (float *)t_alloc(t, 4);
    uint8_t labels[ROWS] = {0, 1, 2, 3, 4, 5, 6, 7, 16};
    l.rows = ROWS;
    l.in = IN;
    l.out = OUT;
    l.act = AMP_GELU;
    l.x = odd_array(o, type, ROWS * IN, 4);
    l.w = odd_array(o, type, OUT * IN, 5);
    l.bias = odd_array(o, AMP_F32, OUT, 6);
    l.y = odd_array(o, type, ROWS * OUT, 7);
    l.aux = odd_array(o, type, ROWS * OUT, 8);
    l.dy = odd_array(o, type, ROWS * OUT, 9);
    l.dx = odd_array(o, type, ROWS * IN, 10);
    l.dw = odd_array(o, AMP_F32, OUT * IN, 11);
    l.dbias = odd_array(o, AMP_F32, OUT, 12);
    l.accumulate = 1;
    CHECK_OK(amp_linear_forward(t->ctx, &l));
    e.rows = ROWS;
    e.classes = OUT;
    e.logits = l.y;
    e.dlogits = l.dy;
    e.labels8 = (const uint8_t *)t_put_at(t, labels, sizeof labels, o->byte);
    e.row_loss = rows;
    e.loss = loss;
    CHECK_OK(amp_softmax_cross_entropy(t->ctx, &e));
    t_blob_dev(t, b, loss, 4);
    CHECK_OK(amp_linear_backward(t->ctx, &l));
    d.p = 0.25f;
    d.count = ROWS * IN;
    d.x = l.x;
    d.y = odd_array(o, type, ROWS * IN, 13);
    CHECK_OK(amp_dropout(t->ctx, &d));
    a.act = AMP_SILU;
    a.count = ROWS * IN;
    a.x = d.y;
    a.y = odd_array(o, AMP_F32, ROWS * IN, 14);
    CHECK_OK(amp_activation(t->ctx, &a));
    set_blob_array(t, b, l.y, ROWS * OUT, 0);
    set_blob_array(t, b, l.dx, ROWS * IN, 0);
    set_blob_array(t, b, l.dw, OUT * IN, 0);
    set_blob_array(t, b, l.dbias, OUT, 0);
    set_blob_array(t, b, a.y, ROWS * IN, 0);
}
static void odd_set(const odd_place *o, t_blob *b, amp_dtype type) {
    enum { N = 1100 };
    t_run *t = o->t;
    amp_params *p = NULL;
    amp_params_desc pd = AMP_ZERO;
    amp_param_desc e = AMP_ZERO;
    amp_step_desc d = AMP_ZERO;
    amp_array dst = odd_array(o, AMP_F16, N, 1);
    float w[N];
    double norm = 0;
    pd.model = type;
    pd.grad = type;
    pd.accumulate = 1;
    e.count = N;
    if (type != AMP_F32) e.model = odd_array(o, type, N, 15);
    e.grad = odd_array(o, type, N, 16);
    CHECK_OK(amp_params_create(&p, t->ctx, &pd));
    CHECK_OK(amp_params_add(p, &e));
    CHECK_OK(amp_params_commit(p));
    d.lr = 0.01f;
    d.clip_norm = 1.0f;
    CHECK_OK(amp_grad_norm(p, NULL, &norm));
    CHECK_OK(amp_clip(p, NULL, 0.0f, 1.5f));
    CHECK_OK(amp_params_grads_to(p, &dst, 1));
    CHECK_OK(amp_step(p, NULL, &d));
    CHECK_OK(amp_accumulate(p, NULL, 0));
    CHECK_OK(amp_step(p, NULL, &d));
    CHECK_OK(amp_param_read(p, 0, w));
    t_blob_add(b, w, sizeof w);
    t_blob_add(b, &norm, sizeof norm);
    set_blob_array(t, b, dst, N, 0);
    if (type != AMP_F32) set_blob_array(t, b, e.model, N, 0);
    amp_params_destroy(p);
}
static void any_address(t_run *t) {
    static const amp_dtype types[] = {AMP_F32, AMP_F16, AMP_BF16, AMP_F8E4M3, AMP_F8E5M2, AMP_F64};
    size_t k, byte;
    for (k = 0; k < 6; k++) {
        t_blob want;
        memset(&want, 0, sizeof want);
        for (byte = 0; byte < 8; byte += byte ? 2 : 1) {
            odd_place o;
            t_blob got;
            o.t = t;
            o.byte = byte;
            memset(&got, 0, sizeof got);
            t_note(t, "%s at byte %d", amp_dtype_name(types[k]), (int)byte);
            odd_casts(&o, &got, types[k]);
            if (k < 3) odd_layer(&o, &got, types[k]);
            if (k < 3) odd_set(&o, &got, types[k]);
            if (byte && CHECK_EQ(got.bytes, want.bytes)) CHECK_BITS(got.data, want.data, want.bytes, 1);
            t_clear(t);
            if (byte)
                free(got.data);
            else
                want = got;
        }
        free(want.data);
    }
}

/* Host memory: at most 2 MiB for reading and writing weights without FP32 masters and for a save, the file's bytes for
   a load; nothing of it stays. */
typedef struct live_bytes { size_t now, most; } live_bytes;
static void *live_alloc(size_t bytes, void *user) {
    live_bytes *b = (live_bytes *)user;
    b->now += bytes;
    if (b->now > b->most) b->most = b->now;
    return malloc(bytes ? bytes : 1);
}
static void live_free(void *p, size_t bytes, void *user) {
    live_bytes *b = (live_bytes *)user;
    b->now -= bytes;
    free(p);
}
static size_t live_took(live_bytes *b, size_t before) {
    size_t took = b->most - before;
    b->most = b->now;
    return b->now == before ? took : (size_t)-1;
}
static void host_memory(t_run *t) {
    enum { N = 900000 };
    const size_t most = (size_t)2 << 20;
    live_bytes live = {0, 0};
    amp_allocator a = AMP_ZERO;
    amp_params *p = NULL;
    amp_params_desc pd = AMP_ZERO;
    amp_param_desc e = AMP_ZERO;
    amp_state_desc st = AMP_ZERO;
    amp_ctx *ctx = NULL, *kept = t->ctx;
    const char *path = t_file("promises-host");
    float *w = (float *)t_host(t, 4 * (size_t)N);
    size_t before;
    FILE *f;
    long size;
    a.alloc_fn = live_alloc;
    a.free_fn = live_free;
    a.user = &live;
    if (!CHECK_OK(t_create(t->place, &ctx, &a, NULL))) return;
    t->ctx = ctx;
    pd.model = AMP_BF16;
    pd.master = AMP_MASTER_SPLIT;
    pd.moments = AMP_NONE;
    e.count = N;
    CHECK_OK(amp_params_create(&p, ctx, &pd));
    CHECK_OK(amp_params_add(p, &e));
    CHECK_OK(amp_params_commit(p));
    st.params = &p;
    st.n_params = 1;
    before = live.most = live.now;
    CHECK_OK(amp_param_read(p, 0, w));
    CHECK(live_took(&live, before) <= most);
    CHECK_OK(amp_param_write(p, 0, w));
    CHECK(live_took(&live, before) <= most);
    CHECK_OK(amp_state_save(ctx, path, &st));
    CHECK(live_took(&live, before) <= most);
    f = fopen(path, "rb");
    if (CHECK(f != NULL)) {
        CHECK_EQ(fseek(f, 0, SEEK_END), 0);
        size = ftell(f);
        CHECK_EQ(fclose(f), 0);
        CHECK_OK(amp_state_load(ctx, path, &st));
        CHECK(live_took(&live, before) <= (size_t)size + 4096);
    }
    amp_params_destroy(p);
    amp_ctx_destroy(ctx);
    CHECK_EQ(live.now, 0);
    t->ctx = kept;
}

/* chunk 0: as many rows as have 64 MiB of logits in FP32, a multiple of 256, at least 256. */
static void rows_of_a_piece(t_run *t) {
    static const size_t want[][2] = {{50257, 256}, {8192, 2048}, {8191, 2048}, {30000, 512}, {1000000, 256}};
    size_t i;
    for (i = 0; i < sizeof want / sizeof want[0]; i++) {
        static const size_t around[3] = {0, 1, (size_t)-1};
        amp_linear_xent_desc d = AMP_ZERO;
        size_t bytes[4], k;
        float *x = (float *)t_alloc(t, 4);
        d.linear.rows = want[i][1] + 2u; /* where size_t has 32 bits, no more */
        d.linear.in = 8;
        d.linear.out = want[i][0];
        d.linear.x = amp_arr(x, AMP_F16);
        d.linear.w = amp_arr(x, AMP_F16);
        d.linear.y.dtype = AMP_F32;
        d.xent.labels = (const int32_t *)(const void *)x;
        CHECK_OK(amp_linear_cross_entropy_bytes(t->ctx, &bytes[3], &d));
        for (k = 0; k < 3; k++) {
            d.chunk = want[i][1] + around[k];
            CHECK_OK(amp_linear_cross_entropy_bytes(t->ctx, &bytes[k], &d));
        }
        t_note(t, "%d classes", (int)want[i][0]);
        CHECK_EQ(bytes[3], bytes[0]);
        CHECK(bytes[2] < bytes[0] && bytes[0] < bytes[1]);
        t_clear(t);
    }
}

/* Of many kept casts, those of what a verb writes are made again, wherever they are in the list; the others are not. */
static void one_of_many_casts(t_run *t) {
    enum { CASTS = 70, COUNT = 16 };
    static const size_t written[][2] = {{0, 1}, {31, 1}, {32, 1}, {33, 2}, {63, 2}, {69, 1}, {0, 70}};
    amp_array w[CASTS];
    float *memory = (float *)t_alloc(t, 4 * CASTS * COUNT), host[CASTS * COUNT];
    amp_autocast_desc d = AMP_ZERO;
    size_t i, round;
    for (i = 0; i < CASTS * COUNT; i++)
        host[i] = 1.0f;
    t_set(t, memory, host, sizeof host);
    d.entries = CASTS;
    CHECK_OK(amp_autocast_begin(t->ctx, &d));
    for (round = 0; round <= sizeof written / sizeof written[0]; round++) {
        size_t from = round ? written[round - 1][0] : 0, n = round ? written[round - 1][1] : CASTS;
        amp_autocast_info before, after;
        if (round) CHECK_OK(amp_zero(t->ctx, memory + from * COUNT, 4 * COUNT * n));
        before = amp_autocast_get(t->ctx);
        for (i = 0; i < CASTS; i++) {
            size_t k = (i * 3) % CASTS; /* neighbours in the list are none in memory */
            uint16_t first = 0;
            w[k] = amp_arrn(memory + k * COUNT, AMP_F32, COUNT);
            w[k].flags = AMP_CACHE;
            CHECK_OK(amp_autocast_input(t->ctx, &w[k], AMP_OP_LINEAR, &w[k], 1));
            t_get(t, &first, w[k].data, 2);
            t_note(t, "round %d, cast %d", (int)round, (int)k);
            if (round && k >= from && k < from + n) CHECK_EQ(first, 0);
        }
        after = amp_autocast_get(t->ctx);
        t_note(t, "round %d", (int)round);
        CHECK_EQ(after.casts - before.casts, n);
    }
    CHECK_OK(amp_autocast_end(t->ctx));
    CHECK_OK(amp_autocast_release(t->ctx));
}

/* ---- lists and plans ---- */

/* Our own column of the operations, where PyTorch's CUDA list, which it follows, has nothing. */
static const struct {
    amp_op_class c;
    const char *names;
} ours[] = {
    {AMP_CLASS_LOWER,
        "conv2d_backward_input ger _addmm_activation _native_multi_head_attention lstm gru rnn_tanh rnn_relu "
        "mkldnn_rnn_layer"},
    {AMP_CLASS_F32_OUT, "cross_entropy cross_entropy_loss mean"},
    {AMP_CLASS_WIDEST,
        "sub add mul div eq equal ge gt le lt ne bias_add add_n cat stack index_copy grid_sampler_2d grid_sampler_3d "
        "_grid_sampler_2d_cpu_fallback grid_sample"},
    {AMP_CLASS_F32,
        "softmin batch_norm local_response_norm normalize std var ctc_loss multilabel_margin_loss_forward "
        "multilabel_soft_margin_loss interpolate polar quantile nanquantile stft trace cholesky cholesky_inverse "
        "cholesky_solve inverse lu_solve orgqr ormqr pinverse geqrf _lu_with_info qr svd triangular_solve fft_fft "
        "fft_ifft fft_fft2 fft_ifft2 fft_fftn fft_ifftn fft_rfft fft_irfft fft_rfft2 fft_irfft2 fft_rfftn fft_irfftn "
        "fft_hfft fft_ihfft linalg_cond linalg_matrix_rank linalg_solve linalg_cholesky linalg_cholesky_ex linalg_svd "
        "linalg_svdvals linalg_eig linalg_eigh linalg_eigvals linalg_eigvalsh linalg_inv linalg_inv_ex "
        "linalg_householder_product linalg_tensorinv linalg_tensorsolve linalg_qr linalg_lstsq"},
    {AMP_CLASS_NONE,
        "relu gelu dropout cpu avg_pool3d max_pool3d max_unpool2d max_unpool3d adaptive_avg_pool3d adaptive_max_pool3d "
        "fractional_max_pool2d fractional_max_pool3d reflection_pad1d reflection_pad2d replication_pad1d "
        "replication_pad2d replication_pad3d view_as_complex fake_quantize_per_tensor_affine"},
};

static void our_column(t_run *t) {
    size_t i, listed = 0, without = 0;
    uint32_t op;
    for (i = 0; i < sizeof ours / sizeof ours[0]; i++) {
        const char *at = ours[i].names;
        while (*at) {
            char name[64];
            size_t n = strcspn(at, " ");
            memcpy(name, at, n);
            name[n] = 0;
            at += n + (at[n] == ' ');
            listed++;
            for (op = 1; op < AMP_OP_COUNT && strcmp(amp_op_name((amp_op)op), name) != 0; op++) {
            }
            t_note(t, "%s", name);
            if (!CHECK(op < AMP_OP_COUNT)) continue;
            CHECK(amp_op_listed((amp_op)op, AMP_SYSTEM_PYTORCH_CUDA, 0) == NULL);
            CHECK_EQ(amp_op_class_of((amp_op)op, AMP_SYSTEM_AMP), ours[i].c);
        }
    }
    for (op = 1; op < AMP_OP_COUNT; op++)
        without += amp_op_listed((amp_op)op, AMP_SYSTEM_PYTORCH_CUDA, 0) == NULL;
    CHECK_EQ(listed, without); /* a new operation is to be entered above */
}

/* The simple recompute rule counts from the end: the last layer is kept, and each fourth before it. */
static void sqrt_from_the_end(t_run *t) {
    static const unsigned char want[10] = {0, 1, 0, 0, 0, 1, 0, 0, 0, 1};
    recompute_layer layers[10];
    recompute_plan plan;
    uint8_t keep[10];
    int i;
    memset(layers, 0, sizeof layers);
    for (i = 0; i < 10; i++)
        layers[i].bytes = layers[i].cost = 1;
    CHECK_EQ(recompute_sqrt(&plan, keep, layers, 10), RECOMPUTE_OK);
    CHECK_BITS(keep, want, 10, 1);
    CHECK_EQ(
        recompute_optimal(&plan, keep, layers, 10, 10), RECOMPUTE_OK); /* with room for all of them, all are kept */
    CHECK_EQ(plan.kept, 10);
}

const t_test t_suite_promises[] = {{"promises.pointers_follow", pointers_follow, T_ALL},
    {"promises.a_lower_scale_revives", a_lower_scale_revives, T_ALL}, {"promises.off_is_not_on", off_is_not_on, T_ALL},
    {"promises.clip_of_inf", clip_of_inf, T_ALL}, {"promises.low_parts_are_forgotten", low_parts_are_forgotten, T_ALL},
    {"promises.nothing_behind_a_gradient", nothing_behind_a_gradient, T_ALL},
    {"promises.first_of_many", first_of_many, T_ALL}, {"promises.products_saturate", products_saturate, T_ALL},
    {"promises.norm_of_micro_batches", norm_of_micro_batches, T_ALL}, {"promises.groups_beyond", groups_beyond, T_ALL},
    {"promises.one_element_more", one_element_more, T_ALL}, {"promises.dead_after_a_load", dead_after_a_load, T_ALL},
    {"promises.minus_zero_of_kahan", minus_zero_of_kahan, T_ALL}, {"promises.dbias_of_a_cast", dbias_of_a_cast, T_ALL},
    {"promises.bands_of_columns", bands_of_columns, T_ALL},
    {"promises.lost_at_odd_addresses", lost_at_odd_addresses, T_ALL},
    {"promises.subnormal_quotients", subnormal_quotients, T_ALL}, {"promises.any_address", any_address, T_CPU},
    {"promises.host_memory", host_memory, T_ALL}, {"promises.rows_of_a_piece", rows_of_a_piece, T_ALL},
    {"promises.one_of_many_casts", one_of_many_casts, T_ALL}, {"promises.our_column", our_column, T_HOST},
    {"promises.sqrt_from_the_end", sqrt_from_the_end, T_HOST}, {NULL, NULL, 0}};
