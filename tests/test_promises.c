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

/* Weights that come from the model copies are exactly those: the low parts of SPLIT and KAHAN are forgotten. */
static void low_parts_are_forgotten(t_run *t) {
    static const amp_master masters[2] = {AMP_MASTER_SPLIT, AMP_MASTER_KAHAN};
    enum { N = 300 };
    int k, i;
    for (k = 0; k < 2; k++) {
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
    {"promises.our_column", our_column, T_HOST}, {"promises.sqrt_from_the_end", sqrt_from_the_end, T_HOST},
    {NULL, NULL, 0}};
