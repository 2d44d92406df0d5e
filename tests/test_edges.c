/* test_edges.c - the far ends of arguments: NULL, 0, one too many, just beside. Each of these was written because a
   count of branches showed that no test went there.  Guards: the checks of every >>front-... section, >>policy, the
   scaler's counters, >>fp8's layers without rows. */
#include "set.h"

#include <math.h>

/* ---- what a query says of nothing ---- */

static void of_nothing(t_run *t) {
    amp_op list[4] = {7, 7, 7, 7};
    amp_preset preset = AMP_O0;
    amp_layout layout = amp_layout_bytes(NULL);
    amp_params_desc params = amp_policy_params_desc(NULL);
    amp_autocast_info info = amp_autocast_get(NULL);
    CHECK_EQ(amp_params_find(NULL, "w"), 0);
    CHECK_EQ(amp_params_count(NULL), 0);
    CHECK(amp_step_record_ptr(NULL) == NULL && amp_scaler_scale_ptr(NULL) == NULL && !amp_scaler_inverse_ptr(NULL));
    CHECK_EQ(amp_preset_find(NULL, NULL, "O1"), AMP_ERR_INVALID_ARG);
    CHECK_EQ(amp_preset_find(&preset, NULL, NULL), AMP_ERR_INVALID_ARG);
    CHECK_EQ(preset, AMP_O0);
    CHECK(params.model == AMP_F32 && params.master == AMP_MASTER_F32);
    CHECK_EQ(amp_policy_scaler_desc(NULL).mode, AMP_SCALER_OFF);
    CHECK_EQ(amp_policy_class(NULL, AMP_OP_MATMUL), AMP_CLASS_NONE);
    CHECK_EQ(amp_policy_output(NULL, AMP_OP_MATMUL, AMP_BF16), AMP_BF16);
    CHECK_EQ(amp_policy_keep_f32(NULL, AMP_OP_MATMUL), 1);
    CHECK_EQ(amp_policy_list(list, 4, NULL, AMP_CLASS_NONE), 0);
    CHECK_EQ(list[0], 7);
    CHECK(info.arena == 0 && info.casts == 0 && info.depth == 0);
    CHECK_EQ(amp_autocast_output(NULL, AMP_OP_MATMUL, AMP_F16), AMP_F16);
    amp_autocast_invalidate(NULL, list);
    CHECK(layout.master == 4 && layout.moments == 8 && layout.total > 12);
    CHECK_EQ(amp_snapshot_begin(NULL, NULL, NULL), AMP_ERR_INVALID_ARG);
    CHECK_EQ(amp_gemm_tune(NULL, NULL), AMP_ERR_INVALID_ARG);
    CHECK_F32(amp_histogram_suggest_scale(NULL), 65536.0f);
}

static void scale_of_an_odd_histogram(t_run *t) {
    static const uint32_t amax[] = {0x00000000, 0x80000000, 0xbf800000, 0x7f800000, 0x7fc00000};
    amp_histogram h = AMP_ZERO;
    size_t i;
    for (i = 0; i < sizeof amax / sizeof amax[0]; i++) {
        h.amax = ref_f32(amax[i]);
        t_note(t, "amax %08x", (unsigned)amax[i]);
        CHECK_F32(amp_histogram_suggest_scale(&h), 65536.0f);
    }
}

/* Every name there is, and what lies after the last. */
static void names_and_notes(t_run *t) {
    static const amp_op noted[] = {AMP_OP_BINARY_CROSS_ENTROPY, AMP_OP_CROSS_ENTROPY, AMP_OP_CROSS_ENTROPY_LOSS,
        AMP_OP_BATCH_NORM, AMP_OP_GELU, AMP_OP_RELU, AMP_OP_MEAN};
    static const char *const words[] = {
        "with_logits", "half logits", "half logits", "cuDNN", "fused GELU", "exact", "accumulated"};
    static const char *const outcomes[] = {
        "no step", "stepped", "skipped: inf", "skipped: nan", "overflow", "window", "learning rate", "unknown"};
    uint32_t op;
    int i;
    for (op = 0; op < AMP_OP_COUNT; op++) {
        for (i = 6; i >= 0 && noted[i] != (amp_op)op; i--) {
        }
        t_note(t, "%s", amp_op_name((amp_op)op));
        if (i < 0)
            CHECK(amp_op_note((amp_op)op)[0] == 0);
        else
            CHECK(strstr(amp_op_note((amp_op)op), words[i]) != NULL);
    }
    for (i = 0; i < 8; i++)
        CHECK(strstr(amp_outcome_name((amp_outcome)i), outcomes[i]) != NULL);
    CHECK(strcmp(amp_op_class_name(AMP_CLASS_BANNED), "banned") == 0);
    CHECK(strcmp(amp_op_class_name((amp_op_class)(AMP_CLASS_BANNED + 1)), "unknown class") == 0);
    CHECK(strcmp(amp_system_name(AMP_SYSTEM_COUNT), "unknown system") == 0);
    CHECK_EQ(amp_op_class_of(AMP_OP_MATMUL, AMP_SYSTEM_COUNT), AMP_CLASS_NONE);
    CHECK(amp_op_name((amp_op)AMP_OP_COUNT)[0] == 0);
}

/* ---- counters that have come to their end stay there ---- */

static amp_scaler_state counted(int32_t tracker, uint32_t found) {
    amp_scaler_state s;
    memset(&s, 0, sizeof s);
    s.mode = AMP_SCALER_STATIC;
    s.scale = s.inverse = 1.0f;
    s.growth_tracker = s.hysteresis_tracker = tracker;
    s.stuck = 0xffffffffu;
    s.found = found;
    amp_scaler_next(&s);
    return s;
}
static void counters_end(t_run *t) {
    amp_scaler_state s = counted(INT32_MAX, 0);
    CHECK_EQ(s.growth_tracker, INT32_MAX);
    CHECK_EQ(counted(INT32_MAX - 1, 0).growth_tracker, INT32_MAX);
    s = counted(INT32_MIN, AMP_FOUND_INF);
    CHECK_EQ(s.hysteresis_tracker, INT32_MIN);
    CHECK_EQ(counted(INT32_MIN + 1, AMP_FOUND_INF).hysteresis_tracker, INT32_MIN);
    CHECK_EQ(s.stuck, 0xffffffffu);
}

/* ln of what is no ordinary number, and of numbers too small for their exponent. */
static void logarithms(t_run *t) {
    int i;
    CHECK_F32(amp_log(0.0f), ref_f32(0xff800000));
    CHECK_F32(amp_log(ref_f32(0x80000000)), ref_f32(0xff800000));
    CHECK_F32(amp_log(ref_f32(0x7f800000)), ref_f32(0x7f800000));
    CHECK_F32(amp_log(ref_f32(0xff800000)), ref_f32(0x7fc00000));
    CHECK_F32(amp_log(-1.0f), ref_f32(0x7fc00000));
    CHECK_F32(amp_log(ref_f32(0x7f800001)), ref_f32(0x7fc00000));
    for (i = 0; i < 23; i++) /* subnormal: 2^(i - 149) */
        CHECK_NEAR(amp_log(ref_f32(1u << i)), (i - 149) * 0.69314718055994531, 1e-5);
    CHECK_NEAR(amp_log(ref_f32(0x00400001)), log(4194305.0) - 149 * 0.69314718055994531, 1e-5);
}

/* ---- parameters ---- */

static void parameters_refused(t_run *t) {
    amp_params *p = NULL;
    amp_params_desc d = AMP_ZERO;
    amp_param_desc e = AMP_ZERO;
    float *w = (float *)t_alloc(t, 256);
    d.model = AMP_F32;
    CHECK_OK(amp_params_create(&p, t->ctx, &d));
    e.count = 8;
    e.master = w;
    e.model = amp_arr(w + 8, AMP_F32);
    CHECK_STATUS(amp_params_add(p, &e), AMP_ERR_INVALID_ARG, "amp_params_add desc.master desc.model differ");
    e.model = amp_arr(w, AMP_F32); /* the same array is fine */
    CHECK_OK(amp_params_add(p, &e));
    e.model = amp_arr(NULL, AMP_F32);
    e.master = (float *)(void *)((char *)w + 66);
    CHECK_STATUS(amp_params_add(p, &e), AMP_ERR_INVALID_ARG, "desc.master aligned to 4 bytes");
    e.master = w + 16;
    e.count = (size_t)-1 / 32 + 1;
    CHECK_STATUS(amp_params_add(p, &e), AMP_ERR_INVALID_ARG, "desc.count too large");
    e.count = 0;
    e.rows = (size_t)-1 / 2;
    e.cols = 4;
    CHECK_STATUS(amp_params_add(p, &e), AMP_ERR_INVALID_ARG, "desc.count too large");
    e.rows = (size_t)-1 / 64;
    CHECK_STATUS(amp_params_add(p, &e), AMP_ERR_INVALID_ARG, "desc.count too large");
    if (sizeof(size_t) == 8) { /* 2^59 - 1, the last that is not, and no more than a number until commit */
        amp_params *most = NULL;
        e.master = NULL;
        e.rows = 179951;
        e.cols = (size_t)-1 / 32 / 179951;
        CHECK_EQ(e.rows * e.cols, (size_t)-1 / 32);
        CHECK_OK(amp_params_create(&most, t->ctx, &d));
        CHECK_OK(amp_params_add(most, &e));
        amp_params_destroy(most);
    }
    CHECK_EQ(amp_params_count(p), 1);
    CHECK_EQ(amp_params_find(p, NULL), 1); /* none of that name */
    CHECK_EQ(amp_params_find(p, "0"), 0);
    amp_params_destroy(p);
}
/* Sizes that together are more than 64 bits can say; and a set without any. */
static void sets_of_an_odd_size(t_run *t) {
    amp_params *p = NULL;
    amp_param_desc e = AMP_ZERO;
    amp_step_desc d = t_rate_0();
    int i;
    CHECK_OK(amp_params_create(&p, t->ctx, NULL));
    e.count = (size_t)-1 / 32;
    for (i = 0; i < 17; i++) /* 17 times 2^59 FP32 masters are one more than 2^64 bytes hold twice */
        CHECK_OK(amp_params_add(p, &e));
    CHECK_STATUS(amp_params_commit(p), AMP_ERR_INVALID_ARG, "amp_params_commit set too large");
    amp_params_destroy(p);
    p = NULL;
    CHECK_OK(amp_params_create(&p, t->ctx, NULL));
    CHECK_OK(amp_params_commit(p));
    CHECK_STATUS(amp_step(p, NULL, &d), AMP_ERR_STAGE, "amp_step no parameters");
    amp_params_destroy(p);
}
/* Optimizers of one moment, in sets that have room for one and in sets that have two: the same weights. */
static void one_moment(t_run *t) {
    static const amp_optimizer optimizers[] = {AMP_SGD, AMP_LION};
    size_t n = 700;
    int i, both;
    for (i = 0; i < 4; i++, t_clear(t)) {
        void *weights[2], *moment[2];
        for (both = 0; both < 2; both++) {
            amp_params *p = NULL;
            amp_params_desc d = AMP_ZERO;
            amp_param_desc e = AMP_ZERO;
            amp_step_desc step = AMP_ZERO;
            int k;
            d.moments = 1 + both;
            d.moment = i & 1 ? AMP_BF16 : AMP_F32;
            e.count = n;
            t_note(t, "optimizer %d, %s", (int)optimizers[i / 2], amp_dtype_name(d.moment));
            CHECK_OK(amp_params_create(&p, t->ctx, &d));
            CHECK_OK(amp_params_add(p, &e));
            CHECK_OK(amp_params_commit(p));
            step.optimizer = optimizers[i / 2];
            step.lr = 0.5f;
            step.momentum = 0.75f;
            for (k = 0; k < 3; k++) {
                set_grad(t, p, 0, n, 0.3f + (float)k);
                CHECK_OK(amp_step(p, NULL, &step));
            }
            weights[both] = set_bits(t, amp_arr(amp_param_get(p, 0).master.data, AMP_F32), n);
            moment[both] = set_bits(t, amp_param_get(p, 0).moment[0], n);
            CHECK(amp_param_get(p, 0).moment[1].data == NULL || both == 1);
            amp_params_destroy(p);
        }
        CHECK_BITS(weights[0], weights[1], n, 4);
        CHECK_BITS(moment[0], moment[1], n, i & 1 ? 2 : 4);
        CHECK(((const float *)weights[0])[0] < 0.0f);
    }
}
static void update_beside_alignment(t_run *t) {
    amp_params *p = set_one(t, 16, AMP_F32);
    amp_step_desc d = t_rate_0();
    char *u = (char *)t_alloc(t, 128);
    CHECK_OK(amp_inspect(p, NULL, &d));
    CHECK_STATUS(amp_apply(p, 0, amp_arr(u + 2, AMP_F32), 0), AMP_ERR_INVALID_ARG, "u.data aligned 4 bytes");
    CHECK_STATUS(amp_apply(p, 0, amp_arr(u, AMP_F16), 0), AMP_ERR_INVALID_ARG, "u.dtype f16");
    CHECK_OK(amp_zero(t->ctx, u, 64));
    CHECK_OK(amp_apply(p, 0, amp_arr(u, AMP_F32), 0));
    amp_params_destroy(p);
}

/* count_lost 2 counts blocks 0 and 2 of 1024 weights; so does amp_apply, whose updates here change nothing in the first
   of them and everything in the last. */
static void counted_apply(t_run *t) {
    size_t n = 2500, i;
    amp_params *p = set_new(t, AMP_F32, AMP_F32, &n, 1);
    amp_step_desc d = t_rate_0();
    amp_report_row rows[2];
    float *w = (float *)t_host(t, 4 * n), *u = (float *)t_host(t, 4 * n);
    for (i = 0; i < n; i++) {
        w[i] = 1.0f;
        u[i] = i < 1024 ? ref_f32(0x2f800000) : i < 2048 ? ref_f32(0x2f800000) : 0.5f; /* 2^-32 */
    }
    CHECK_OK(amp_param_write(p, 0, w));
    d.count_lost = 2;
    CHECK_OK(amp_inspect(p, NULL, &d));
    CHECK_OK(amp_apply(p, 0, amp_arr(t_put(t, u, 4 * n), AMP_F32), 0));
    CHECK_OK(amp_report(p, NULL, rows, 2, NULL, NULL, 0));
    CHECK_EQ(rows[1].updates, 1024 + 2500 - 2048);
    CHECK_EQ(rows[1].lost, 1024);
    amp_params_destroy(p);
}

/* An update made elsewhere, of a set that has no moments. */
static void apply_without_moments(t_run *t) {
    size_t n = 2500, i;
    amp_params_desc d = AMP_ZERO;
    amp_param_desc e = AMP_ZERO;
    amp_step_desc step = t_rate_0();
    amp_params *p = NULL;
    float *w = (float *)t_host(t, 4 * n), *u = (float *)t_host(t, 4 * n);
    for (i = 0; i < n; i++) {
        w[i] = 1.0f;
        u[i] = i % 2 ? 0.25f : -2.0f;
    }
    step.optimizer = AMP_SGD;
    d.moments = AMP_NONE;
    e.count = n;
    e.init = w;
    CHECK_OK(amp_params_create(&p, t->ctx, &d));
    CHECK_OK(amp_params_add(p, &e));
    CHECK_OK(amp_params_commit(p));
    CHECK_OK(amp_inspect(p, NULL, &step));
    CHECK_OK(amp_apply(p, 0, amp_arr(t_put(t, u, 4 * n), AMP_F32), 0));
    for (i = 0; i < n; i++)
        w[i] -= u[i];
    CHECK_BITS(set_bits(t, amp_param_get(p, 0).master, n), w, n, 4);
    amp_params_destroy(p);
}

/* ---- arrays ---- */

static void unscaled_lists(t_run *t) {
    amp_scaler *s = NULL;
    float x[4] = {2, 4, 6, 8};
    int at = 0;
    char *g = (char *)t_alloc(t, 64);
    float got[4];
    amp_array dst, grads;
    CHECK_OK(amp_scaler_create(&s, t->ctx, NULL));
    CHECK_OK(amp_scaler_set_scale(s, 2.0f));
    grads = amp_arrn(g, AMP_F8E5M2, (size_t)-1 / 2);
    dst = amp_arr(g + 32, AMP_F32);
    CHECK_STATUS(amp_unscale(s, &dst, NULL, &grads, 1), AMP_ERR_INVALID_ARG, "dst[0] too large");
    grads = amp_arrn(NULL, AMP_F16, 0);
    dst = amp_arr(NULL, AMP_F32); /* a different dtype in place, but of nothing */
    CHECK_OK(amp_unscale(s, &dst, NULL, &grads, 1));
    if (t->place->kind == T_KIND_CPU) at = 1; /* where no float begins: a host takes any address */
    t_set(t, g + at, x, sizeof x);
    grads = amp_arrn(g + at, AMP_F32, 4);
    dst = amp_arr(g + 32 + at, AMP_F32);
    CHECK_OK(amp_unscale(s, &dst, NULL, &grads, 1));
    t_get(t, got, g + 32 + at, sizeof got);
    CHECK(got[0] == 1.0f && got[1] == 2.0f && got[2] == 3.0f && got[3] == 4.0f);
    amp_scaler_destroy(s);
}

/* An array that begins between two multiples of its element size: a device refuses it by name, a host computes. */
static void wants_aligned(t_run *t, const char *words, amp_status got) {
    t_note(t, "not aligned: %s", words);
    if (t->place->kind == T_KIND_CPU)
        CHECK_EQ(got, AMP_OK);
    else
        CHECK_STATUS(got, AMP_ERR_INVALID_ARG, words);
}
static void begun_beside_an_element(t_run *t) {
    static const amp_gemm_desc plain = AMP_ZERO;
    char *bytes = (char *)t_alloc(t, 2048), *odd = bytes + 1026;
    amp_array even = amp_arrn(bytes, AMP_F32, 16), half = amp_arrn(bytes + 256, AMP_F16, 16);
    amp_array dst = amp_arrn(bytes + 512, AMP_F32, 16), out = AMP_ZERO;
    amp_array f32 = amp_arrn(odd, AMP_F32, 16), f16 = amp_arrn(odd + 1, AMP_F16, 16);
    amp_finite_report report;
    amp_histogram h = AMP_ZERO;
    amp_scaler *s = NULL;
    amp_gemm_desc g = plain;
    int i;
    CHECK_OK(amp_zero(t->ctx, bytes, 2048));
    CHECK_OK(amp_scaler_create(&s, t->ctx, NULL));
    wants_aligned(t, "amp_cast dst.data 4 bytes", amp_cast(t->ctx, f32, even, 16, NULL));
    wants_aligned(t, "amp_cast src.data 4 bytes", amp_cast(t->ctx, dst, f32, 16, NULL));
    wants_aligned(t, "amp_cast src.data 2 bytes", amp_cast(t->ctx, dst, f16, 16, NULL));
    CHECK_OK(amp_cast(t->ctx, amp_arr(odd + 1, AMP_F8E4M3), even, 16, NULL)); /* an FP8 number begins at each byte */
    wants_aligned(t, "amp_all_finite arrays[0].data 4", amp_all_finite(t->ctx, &report, &f32, 1));
    wants_aligned(t, "amp_histogram_count arrays[0].data 2", amp_histogram_count(t->ctx, &h, &f16, 1));
    wants_aligned(t, "amp_unscale grads[0].data 4", amp_unscale(s, &dst, NULL, &f32, 1));
    wants_aligned(t, "amp_unscale dst[0].data 4", amp_unscale(s, &f32, NULL, &dst, 1));
    CHECK_OK(amp_autocast_begin(t->ctx, NULL));
    wants_aligned(t, "in.data 4", amp_autocast_input(t->ctx, &out, AMP_OP_MATMUL, &f32, 1));
    CHECK_OK(amp_autocast_end(t->ctx));
    CHECK_OK(amp_autocast_release(t->ctx));
    for (i = 0; i < 7; i++) {
        static const char *const words[] = {"desc.a.data 2", "desc.b.data 2", "desc.c.data 4", "desc.d.data 4",
            "desc.bias.data 4", "desc.aux.data 2", "desc.dbias.data 4"};
        g = plain;
        g.m = g.n = g.k = 4;
        g.a = g.b = half;
        g.d = dst;
        if (i == 0) g.a = f16;
        if (i == 1) g.b = f16;
        if (i == 2) g.c = f32;
        if (i == 2) g.beta = amp_opt(1.0f);
        if (i == 3) g.d = f32;
        if (i == 4) g.bias = f32;
        if (i == 5) g.act = AMP_GELU;
        if (i == 5) g.aux = f16;
        if (i == 6) g.dbias = f32;
        wants_aligned(t, words[i], amp_gemm(t->ctx, &g));
    }
    amp_scaler_destroy(s);
}
struct eight {
    char before;
    int64_t x;
};
/* Pointers of a type: C itself asks that they are aligned. */
static void words_beside_four_bytes(t_run *t) {
    static const amp_gemm_desc plain = AMP_ZERO;
    char *bytes = (char *)t_alloc(t, 512), *odd = bytes + 258;
    float *at; /* by its bytes: no cast says that it is aligned */
    int32_t *label;
    amp_gemm_desc g = plain;
    amp_xent_desc x = AMP_ZERO;
    amp_step_desc step = AMP_ZERO;
    size_t n = 16;
    amp_params *p = set_new(t, AMP_F16, AMP_F32, &n, 1);
    int i;
    memcpy(&at, &odd, sizeof at);
    memcpy(&label, &odd, sizeof label);
    CHECK_OK(amp_zero(t->ctx, bytes, 512));
    for (i = 0; i < 6; i++) {
        static const char *const words[] = {
            "desc.alpha_ptr", "desc.beta_ptr", "desc.scale_a", "desc.scale_b", "desc.scale_d", "desc.amax_d"};
        g = plain;
        g.m = g.n = g.k = 16;
        g.trans_b = 1;
        g.a = g.b = g.d = amp_arr(bytes, AMP_F8E4M3);
        if (i == 0) g.alpha_ptr = at;
        if (i == 1) g.beta_ptr = at;
        if (i == 2) g.scale_a = at;
        if (i == 3) g.scale_b = at;
        if (i == 4) g.scale_d = at;
        if (i == 5) g.amax_d = at;
        t_note(t, "not aligned: %s", words[i]);
        CHECK_STATUS(amp_gemm(t->ctx, &g), AMP_ERR_INVALID_ARG, words[i]);
        CHECK(strstr(amp_last_error(t->ctx), "not aligned to 4 bytes") != NULL);
    }
    for (i = 0; i < (offsetof(struct eight, x) == 8 ? 4 : 3); i++) { /* i386 has 64 bits at multiples of 4 */
        static const char *const words[] = {
            "desc.labels 4 bytes", "desc.row_loss 4 bytes", "desc.loss 4 bytes", "desc.labels 8 bytes"};
        memset(&x, 0, sizeof x);
        x.rows = x.classes = 3;
        x.logits = amp_arr(bytes, AMP_F32);
        x.labels = i == 0 ? label : (const int32_t *)(const void *)(bytes + 64);
        x.row_loss = i == 1 ? at : (float *)(void *)(bytes + 128);
        x.loss = i == 2 ? at : (float *)(void *)(bytes + 192);
        if (i == 3) {
            x.labels = NULL;
            x.labels64 = (const int64_t *)(const void *)(bytes + 68);
        }
        t_note(t, "not aligned: %s", words[i]);
        CHECK_STATUS(amp_softmax_cross_entropy(t->ctx, &x), AMP_ERR_INVALID_ARG, words[i]);
    }
    step.lr_ptr = at;
    CHECK_STATUS(amp_step(p, NULL, &step), AMP_ERR_INVALID_ARG, "desc.lr_ptr not aligned to 4 bytes");
    amp_params_destroy(p);
}

/* An activation's y of no dtype is x's, forward and back. */
static void activation_auto(t_run *t) {
    const float x[4] = {-1, 2, -3, 4}, dy[4] = {1, 1, 1, 1}, want[4] = {0, 1, 0, 1};
    amp_activation_desc a = AMP_ZERO;
    float got[4];
    a.count = 4;
    a.act = AMP_RELU;
    a.x = amp_arr(t_put(t, x, 16), AMP_F32);
    a.y = amp_arr(t_alloc(t, 16), AMP_AUTO);
    CHECK_OK(amp_activation(t->ctx, &a));
    a.dy = amp_arr(t_put(t, dy, 16), AMP_F32);
    a.dx = amp_arr(t_alloc(t, 16), AMP_AUTO);
    CHECK_OK(amp_activation(t->ctx, &a));
    t_get(t, got, a.dx.data, 16);
    CHECK_BITS(got, want, 4, 4);
}

/* ---- layers and losses ---- */

static void softmax_alone(t_run *t) {
    amp_xent_desc d = AMP_ZERO;
    amp_scaler *s = NULL;
    float *x = (float *)t_alloc(t, 256);
    int32_t *labels = (int32_t *)t_alloc(t, 16);
    int i;
    CHECK_OK(amp_scaler_create(&s, t->ctx, NULL));
    CHECK_OK(amp_zero(t->ctx, x, 256));
    for (i = 0; i < 8; i++) {
        memset(&d, 0, sizeof d);
        d.rows = 2;
        d.classes = 3;
        d.logits = amp_arrn(x, AMP_F32, 6);
        d.dlogits = amp_arrn(x + 8, AMP_F32, 6);
        d.softmax = 1;
        if (i == 0) d.labels = labels;
        if (i == 1) d.loss = x + 20;
        if (i == 2) d.row_loss = x + 24;
        if (i == 3) d.scaler = s;
        if (i == 4) d.smoothing = 0.5f;
        if (i == 5) d.targets = amp_arrn(x + 16, AMP_F32, 6);
        if (i == 6) d.weights = amp_arrn(x + 16, AMP_F32, 3);
        t_note(t, "beside softmax: number %d", i);
        if (i < 6)
            CHECK_STATUS(amp_softmax_cross_entropy(t->ctx, &d), AMP_ERR_INVALID_ARG, "desc.softmax labels smoothing");
        else if (i == 6)
            CHECK_STATUS(amp_softmax_cross_entropy(t->ctx, &d), AMP_ERR_INVALID_ARG, "desc.softmax weights");
        else
            CHECK_OK(amp_softmax_cross_entropy(t->ctx, &d));
    }
    amp_scaler_destroy(s);
}
static void layers_too_large(t_run *t) {
    static const size_t most = (size_t)-1 / 8;
    amp_linear_desc l = AMP_ZERO;
    amp_gemm_desc g = AMP_ZERO;
    float *x = (float *)t_alloc(t, 64);
    int i;
    for (i = 0; i < 3; i++) {
        l.rows = i == 2 ? 1 : most / 2 + 1;
        l.in = i == 0 ? 3 : i == 1 ? 1 : most / 2 + 1;
        l.out = i == 0 ? 1 : 3;
        l.x = l.w = amp_arr(x, AMP_F32);
        l.y = amp_arr(x + 8, AMP_F32);
        t_note(t, "x, y, w: number %d", i);
        CHECK_STATUS(amp_linear_forward(t->ctx, &l), AMP_ERR_INVALID_ARG, "rows in out too large");
    }
    g.m = 2;
    g.n = 1;
    g.k = 1;
    g.batch = 2;
    g.lda = most - 4; /* neither the last row nor the last matrix is too far away, but both are */
    g.stride_a = 4;
    g.a = g.b = amp_arr(x, AMP_F32);
    g.d = amp_arr(x + 8, AMP_F32);
    CHECK_STATUS(amp_gemm(t->ctx, &g), AMP_ERR_INVALID_ARG, "a large");
}
/* With an act, dy is overwritten before x and w are read: they must lie apart. Without, all three are only read. */
static void dy_beside_its_inputs(t_run *t) {
    amp_linear_desc l = AMP_ZERO;
    float *x = (float *)t_alloc(t, 512);
    int i;
    CHECK_OK(amp_zero(t->ctx, x, 512));
    l.rows = l.in = l.out = 4;
    l.x = l.w = amp_arr(x, AMP_F32);
    l.y = amp_arr(x + 32, AMP_F32);
    l.dx = amp_arr(x + 64, AMP_F32);
    l.dw = amp_arr(x + 96, AMP_F32);
    for (i = 0; i < 4; i++) {
        l.dy = amp_arr(i % 2 ? x + 8 : x, AMP_F32);
        l.act = i < 2 ? AMP_ACT_NONE : AMP_RELU;
        t_note(t, "case %d", i);
        if (i < 2)
            CHECK_OK(amp_linear_backward(t->ctx, &l));
        else
            CHECK_STATUS(amp_linear_backward(t->ctx, &l), AMP_ERR_INVALID_ARG, "dy overlap");
    }
    l.act = AMP_ACT_NONE;
    l.dy = l.dx; /* dw may read it, but dx is written then */
    CHECK_STATUS(amp_linear_backward(t->ctx, &l), AMP_ERR_INVALID_ARG, "dy dx overlap");
}
static void chain_uninitialised(t_run *t) {
    amp_linear_desc a = AMP_ZERO, b = AMP_ZERO;
    float *x = (float *)t_alloc(t, 256);
    a.rows = a.in = a.out = b.rows = b.in = b.out = 2;
    a.x = a.w = b.w = amp_arr(x, AMP_F32);
    a.y = b.x = amp_arr(x + 8, AMP_F32);
    b.y = amp_arr(x + 16, AMP_F32);
    b.dy = amp_arr(x + 24, AMP_F32);
    b.dx = a.dy = amp_arr(x + 32, AMP_F32);
    a.after = &b;
    b.before = &a;
    a._end = 1;
    CHECK_STATUS(amp_linear_backward(t->ctx, &b), AMP_ERR_UNINIT, "before zero-initialised");
    a._end = 0;
    b._end = 1;
    CHECK_STATUS(amp_linear_forward(t->ctx, &a), AMP_ERR_UNINIT, "after zero-initialised");
}

/* The largest of nothing but zeros is 0: what a maximum begins with is seen nowhere else. */
static void largest_of_zeros(t_run *t) {
    static const size_t sizes[][3] = {{1, 8, 8}, {16, 16, 16}, {40, 72, 40}, {3, 5, 200}};
    void *zeros = t_alloc(t, 20000), *d = t_alloc(t, 20000);
    amp_array list;
    amp_histogram h;
    amp_fp8 *f = NULL;
    amp_fp8_info info = AMP_ZERO;
    float old = 5.0f, amax = 0.0f;
    size_t i;
    CHECK_OK(amp_zero(t->ctx, zeros, 20000));
    for (i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        amp_gemm_desc g = AMP_ZERO;
        g.m = sizes[i][0];
        g.n = sizes[i][1];
        g.k = sizes[i][2];
        g.trans_b = 1;
        g.flags = AMP_GEMM_EMULATE;
        g.a = g.b = amp_arr(zeros, AMP_F8E4M3);
        g.d = amp_arr(d, AMP_F8E4M3);
        g.amax_d = (float *)t_put(t, &old, 4);
        t_note(t, "a product of %d rows", (int)g.m);
        CHECK_OK(amp_gemm(t->ctx, &g));
        t_get(t, &amax, g.amax_d, 4);
        CHECK_F32(amax, 0.0f);
        g.scale_d = g.amax_d; /* it would be read as 0 */
        CHECK_STATUS(amp_gemm(t->ctx, &g), AMP_ERR_INVALID_ARG, "desc.amax_d is desc.scale_d");
        g.scale_d = NULL;
        g.amax_d = (float *)d;
        CHECK_STATUS(amp_gemm(t->ctx, &g), AMP_ERR_INVALID_ARG, "desc.d overlaps desc.amax_d");
    }
    t_note(t, "a quantised tensor, and a histogram");
    CHECK_OK(amp_fp8_create(&f, t->ctx, NULL));
    CHECK_OK(amp_quantize(f, 0, amp_arr(d, AMP_F8E4M3), amp_arr(NULL, AMP_F8E4M3), amp_arr(zeros, AMP_F32), 40, 40, 0));
    CHECK_OK(amp_fp8_get(f, 0, &info));
    CHECK_F32(info.amax, 0.0f);
    CHECK_F32(info.largest, 0.0f);
    amp_fp8_destroy(f);
    list = amp_arrn(zeros, AMP_F32, 5000);
    CHECK_OK(amp_histogram_count(t->ctx, &h, &list, 1));
    CHECK_F32(h.amax, 0.0f);
}

/* ---- levels, from names and texts ---- */

static void policy_texts(t_run *t) {
    static const char digits[] = "0000000000000000000000000000000000000000000000000000000000000000000000000000";
    amp_policy p, none = AMP_ZERO;
    char text[400];
    CHECK_OK(amp_policy_init(t->ctx, &p, AMP_O2, NULL));
    CHECK_STATUS(amp_policy_set(t->ctx, NULL, "loss_scale", "1"), AMP_ERR_INVALID_ARG, "policy NULL");
    CHECK_STATUS(amp_policy_set(t->ctx, &p, NULL, "1"), AMP_ERR_INVALID_ARG, "property NULL");
    CHECK_STATUS(amp_policy_set(t->ctx, &p, "loss_scale", NULL), AMP_ERR_INVALID_ARG, "value NULL");
    none = p;
    none._end = 1;
    CHECK_STATUS(amp_policy_set(t->ctx, &none, "loss_scale", "1"), AMP_ERR_UNINIT, "amp_policy_init");
    none._end = 0;
    none._begin = 1;
    CHECK_STATUS(amp_policy_set(t->ctx, &none, "loss_scale", "1"), AMP_ERR_UNINIT, "amp_policy_init");
    snprintf(text, sizeof text, "%s%s%s%s2", digits, digits, digits, digits); /* 305 of them */
    CHECK_STATUS(amp_policy_set(t->ctx, &p, "loss_scale", text), AMP_ERR_INVALID_ARG, "amp_policy_set loss_scale");
    CHECK_OK(amp_policy_set(t->ctx, &p, "loss_scale", text + 5)); /* 300 are read */
    CHECK_F32(p.loss_scale, 2.0f);
    CHECK_STATUS(amp_policy_set(t->ctx, &p, "loss_scale", "."), AMP_ERR_INVALID_ARG, "loss_scale number");
    CHECK_OK(amp_policy_set(t->ctx, &p, "cast_model_type", "mindspore.bfloat16"));
    CHECK_EQ(p.cast_model, AMP_BF16);
    CHECK_OK(amp_policy_set(t->ctx, &p, "cast_model_type", "torch.float16"));
    CHECK_EQ(p.cast_model, AMP_F16);
}
static void policy_scales(t_run *t) {
    amp_policy p;
    CHECK_OK(amp_policy_init(t->ctx, &p, AMP_O2, NULL));
    CHECK_OK(amp_policy_set(t->ctx, &p, "loss_scale", "128"));
    CHECK_OK(amp_policy_set(t->ctx, &p, "loss_scale", "dynamic"));
    CHECK_F32(p.loss_scale, 65536.0f);
    CHECK_OK(amp_policy_set(t->ctx, &p, "min_loss_scale", "131072")); /* never below it */
    CHECK_F32(p.loss_scale, 131072.0f);
    CHECK_OK(amp_policy_init(t->ctx, &p, AMP_PRESET_MINDSPORE_O2, NULL));
    CHECK_OK(amp_policy_set(t->ctx, &p, "loss_scale", "128"));
    CHECK_F32(p.loss_scale, 128.0f);
    CHECK_OK(amp_policy_set(t->ctx, &p, "loss_scale", "dynamic")); /* MindSpore's own begin */
    CHECK_F32(p.loss_scale, 16777216.0f);
}

/* ---- products in regions ---- */

static void banned_product(t_run *t) {
    amp_policy p;
    amp_autocast_desc region = AMP_ZERO;
    amp_gemm_desc g = AMP_ZERO;
    float *x = (float *)t_alloc(t, 64);
    CHECK_OK(amp_zero(t->ctx, x, 64));
    CHECK_OK(amp_policy_init(t->ctx, &p, AMP_PRESET_AMP, NULL));
    CHECK_OK(amp_policy_edit(t->ctx, &p, AMP_OP_MATMUL, AMP_CLASS_BANNED));
    region.policy = &p;
    g.m = g.n = g.k = 2;
    g.a = g.b = amp_arr(x, AMP_F32);
    g.d = amp_arr(x + 8, AMP_F32);
    CHECK_OK(amp_autocast_begin(t->ctx, &region));
    CHECK_STATUS(amp_gemm(t->ctx, &g), AMP_ERR_UNSUPPORTED, "amp_gemm matmul banned");
    g.pin = AMP_F32; /* who says the dtype is not asked */
    CHECK_OK(amp_gemm(t->ctx, &g));
    CHECK_OK(amp_autocast_end(t->ctx));
    CHECK_OK(amp_autocast_release(t->ctx));
}
/* A pinned region decides for all operations, a disabled one for none. */
static void pinned_output(t_run *t) {
    amp_autocast_desc region = AMP_ZERO;
    region.pin = AMP_F16;
    CHECK_OK(amp_autocast_begin(t->ctx, &region));
    CHECK_EQ(amp_autocast_output(t->ctx, AMP_OP_LINEAR, AMP_F32), AMP_F16);
    CHECK_OK(amp_autocast_end(t->ctx));
    region.pin = AMP_F32;
    CHECK_OK(amp_autocast_begin(t->ctx, &region));
    CHECK_EQ(amp_autocast_output(t->ctx, AMP_OP_LINEAR, AMP_F16), AMP_F32);
    CHECK_OK(amp_autocast_end(t->ctx));
    region.disabled = 1;
    CHECK_OK(amp_autocast_begin(t->ctx, &region));
    CHECK_EQ(amp_autocast_output(t->ctx, AMP_OP_LINEAR, AMP_F16), AMP_F16);
    CHECK_OK(amp_autocast_end(t->ctx));
    CHECK_OK(amp_autocast_release(t->ctx));
}

/* FP32 weights with a model copy are found by address; a place that is none of their floats is not. (A device takes no
   such place.) */
static void beside_a_weight(t_run *t) {
    size_t n = 18, i;
    amp_params *p = set_new(t, AMP_F16, AMP_F32, &n, 1);
    char *master = (char *)amp_param_get(p, 0).master.data;
    uint16_t *twice = (uint16_t *)t_host(t, 64), got[16], want[16];
    amp_array in, out = AMP_ZERO;
    uint64_t before;
    for (i = 0; i < 18; i++)
        twice[i] = (uint16_t)(0x4040u + i); /* pairs of them are floats of about 3 at any even address */
    t_set(t, master, twice, 36);
    CHECK_OK(amp_autocast_begin(t->ctx, NULL));
    before = amp_autocast_get(t->ctx).resolved;
    in = amp_arrn(master + 2, AMP_F32, 8);
    CHECK_OK(amp_autocast_input(t->ctx, &out, AMP_OP_MATMUL, &in, 1));
    CHECK_EQ(amp_autocast_get(t->ctx).resolved, before);
    t_get(t, got, out.data, 16);
    for (i = 0; i < 8; i++) {
        float x = ref_f32((uint32_t)twice[2 * i + 1] | (uint32_t)twice[2 * i + 2] << 16);
        want[i] = amp_f16_from_f32(x).bits;
    }
    CHECK_BITS(got, want, 8, 2);
    in = amp_arrn(master + 8, AMP_F32, 8);
    CHECK_OK(amp_autocast_input(t->ctx, &out, AMP_OP_MATMUL, &in, 1));
    CHECK_EQ(amp_autocast_get(t->ctx).resolved, before + 1);
    CHECK(out.data == (char *)amp_param_model(p, 0).data + 4);
    CHECK_OK(amp_autocast_end(t->ctx));
    CHECK_OK(amp_autocast_release(t->ctx));
    amp_params_destroy(p);
}
/* The copy of a whole FP32 weight is kept in a scope; that of its beginning is a cast each time. */
static void part_of_a_weight(t_run *t) {
    size_t n = 16;
    amp_params *p = set_new(t, AMP_F32, AMP_F32, &n, 1);
    amp_array in, out = AMP_ZERO;
    amp_autocast_info a;
    int i;
    CHECK_OK(amp_autocast_begin(t->ctx, NULL));
    for (i = 0; i < 2; i++) {
        in = amp_arrn(amp_param_get(p, 0).master.data, AMP_F32, 12);
        CHECK_OK(amp_autocast_input(t->ctx, &out, AMP_OP_MATMUL, &in, 1));
    }
    a = amp_autocast_get(t->ctx);
    CHECK(a.casts == 2 && a.hits == 0);
    for (i = 0; i < 2; i++) {
        in = amp_arrn(amp_param_get(p, 0).master.data, AMP_F32, 16);
        CHECK_OK(amp_autocast_input(t->ctx, &out, AMP_OP_MATMUL, &in, 1));
    }
    a = amp_autocast_get(t->ctx);
    CHECK(a.casts == 3 && a.hits == 1);
    CHECK_OK(amp_autocast_end(t->ctx));
    CHECK_OK(amp_autocast_release(t->ctx));
    amp_params_destroy(p);
}

/* An explanation in a region: the dtypes that the product would have, no cast, and the same refusals. */
static void explained_in_a_region(t_run *t) {
    size_t n = 16, two[2] = {128, 16};
    amp_params *p = set_new(t, AMP_F16, AMP_F32, &n, 1), *q = set_new(t, AMP_F16, AMP_F32, two, 2);
    amp_gemm_desc g = AMP_ZERO;
    amp_autocast_info info;
    amp_dtype made = AMP_AUTO;
    char text[400];
    int i;
    g.m = g.n = g.k = 4;
    g.trans_b = 1;
    g.d = amp_arr(t_alloc(t, 64), AMP_AUTO);
    g.d_dtype = &made;
    CHECK_OK(amp_autocast_begin(t->ctx, NULL));
    for (i = 0; i < 2; i++) { /* without counts, and with them */
        g.a = amp_arrn(t_alloc(t, 64), AMP_F32, i ? 16 : 0);
        g.b = amp_arrn(amp_param_get(p, 0).master.data, AMP_F32, i ? 16 : 0);
        CHECK_OK(amp_gemm_explain(t->ctx, text, sizeof text, &g));
        CHECK(strstr(text, "f16 -> f16") != NULL);
        CHECK_EQ(made, AMP_F16);
    }
    g.a.count = 15;
    CHECK_STATUS(amp_gemm_explain(t->ctx, text, sizeof text, &g), AMP_ERR_INVALID_ARG, "a 15");
    g.a.count = 16;
    g.b.dtype = AMP_DTYPE_COUNT;
    CHECK_STATUS(amp_gemm_explain(t->ctx, text, sizeof text, &g), AMP_ERR_INVALID_ARG, "desc.b dtype");
    g.b = amp_arr(t_alloc(t, 64), AMP_F16); /* as it is wanted already */
    CHECK_OK(amp_gemm_explain(t->ctx, text, sizeof text, &g));
    info = amp_autocast_get(t->ctx);
    CHECK(info.casts == 0 && info.resolved == 0);
    g.pin = AMP_BF16; /* stronger than the region */
    CHECK_OK(amp_gemm_explain(t->ctx, text, sizeof text, &g));
    CHECK(strstr(text, "bf16 -> bf16") != NULL);
    memset(&g, 0, sizeof g); /* a part of a weight: its copy's part, which does not touch the weight before */
    g.m = 2;
    g.n = g.k = 4;
    g.a = amp_arr((float *)amp_param_get(q, 1).master.data + 8, AMP_F32);
    g.b = amp_arr(t_alloc(t, 64), AMP_F16);
    g.d = amp_arr((char *)amp_param_model(q, 1).data - 16, AMP_F16);
    CHECK_OK(amp_gemm_explain(t->ctx, text, sizeof text, &g));
    g.d = amp_arr((char *)amp_param_model(q, 1).data + 16, AMP_F16);
    CHECK_STATUS(amp_gemm_explain(t->ctx, text, sizeof text, &g), AMP_ERR_INVALID_ARG, "d overlaps");
    amp_params_destroy(q);
    CHECK_OK(amp_autocast_end(t->ctx));
    CHECK_OK(amp_autocast_release(t->ctx));
    amp_params_destroy(p);
}

/* An arena that the cached casts fill: the product that reads them runs, and can be explained. */
static void explained_in_a_full_arena(t_run *t) {
    amp_autocast_desc scope = AMP_ZERO;
    amp_gemm_desc g = AMP_ZERO;
    char text[400];
    g.m = 2;
    g.n = g.k = 16;
    g.trans_b = 1;
    g.a = amp_arr(t_alloc(t, 64), AMP_F16);
    g.b = amp_arr(t_alloc(t, 1024), AMP_F32);
    g.b.flags = AMP_CACHE;
    g.d = amp_arr(t_alloc(t, 128), AMP_F32);
    scope.arena = 512; /* the cast's bytes */
    CHECK_OK(amp_autocast_begin(t->ctx, &scope));
    CHECK_OK(amp_gemm(t->ctx, &g));
    CHECK_OK(amp_gemm_explain(t->ctx, text, sizeof text, &g));
    CHECK_OK(amp_gemm(t->ctx, &g));
    CHECK_EQ(amp_autocast_get(t->ctx).casts, 1);
    CHECK_EQ(amp_autocast_get(t->ctx).hits, 1);
    CHECK_OK(amp_autocast_end(t->ctx));
    CHECK_OK(amp_autocast_release(t->ctx));
}

/* ---- layers in FP8 ---- */

typedef struct layer8 {
    amp_linear_desc l;
    amp_fp8 *f;
    float *x; /* x, w, y, dy, dx, dw, dbias: 64 floats each */
} layer8;
static layer8 layer8_new(t_run *t, size_t rows) {
    layer8 n = AMP_ZERO;
    float *host = (float *)t_host(t, 7 * 256);
    int i;
    for (i = 0; i < 7 * 64; i++)
        host[i] = 0.25f * (float)((i * 37) % 29 - 14);
    n.x = (float *)t_put(t, host, 7 * 256);
    CHECK_OK(amp_fp8_create(&n.f, t->ctx, NULL));
    n.l.rows = rows;
    n.l.in = n.l.out = 4;
    n.l.x = amp_arr(n.x, AMP_F32);
    n.l.w = amp_arr(n.x + 64, AMP_F32);
    n.l.y = amp_arr(n.x + 128, AMP_F32);
    n.l.dy = amp_arr(n.x + 192, AMP_F32);
    n.l.dx = amp_arr(n.x + 256, AMP_F32);
    n.l.dw = amp_arr(n.x + 320, AMP_F32);
    n.l.dbias = amp_arr(n.x + 384, AMP_F32);
    n.l.fp8 = n.f;
    n.l.flags = AMP_GEMM_EMULATE; /* without hardware for it */
    n.l.scratch_bytes = 4096;
    n.l.scratch = t_alloc(t, n.l.scratch_bytes);
    return n;
}
static float amax8(t_run *t, amp_fp8 *f, size_t i) {
    amp_fp8_info r = AMP_ZERO;
    CHECK_OK(amp_fp8_get(f, i, &r));
    return r.amax;
}
/* Without rows nothing is quantised, and dw and dbias are what an empty sum is; without dx only what dw needs is. */
static void fp8_without(t_run *t) {
    layer8 n = layer8_new(t, 0);
    float dw[16];
    int i;
    CHECK_OK(amp_linear_forward(t->ctx, &n.l));
    CHECK_OK(amp_linear_backward(t->ctx, &n.l));
    for (i = 0; i < 3; i++)
        CHECK_F32(amax8(t, n.f, (size_t)i), 0.0f);
    t_get(t, dw, n.l.dw.data, sizeof dw);
    for (i = 0; i < 16; i++)
        CHECK_F32(dw[i], 0.0f);
    amp_fp8_destroy(n.f);
    n = layer8_new(t, 4);
    CHECK_OK(amp_linear_forward(t->ctx, &n.l));
    n.l.dx = amp_arr(NULL, AMP_F32);
    CHECK_OK(amp_linear_backward(t->ctx, &n.l));
    CHECK(amax8(t, n.f, 2) > 0.0f);
    amp_fp8_destroy(n.f);
    n = layer8_new(t, 4);
    CHECK_OK(amp_linear_forward(t->ctx, &n.l));
    n.l.dx = n.l.dw = amp_arr(NULL, AMP_F32);
    CHECK_OK(amp_linear_backward(t->ctx, &n.l)); /* dbias alone is of dy as it is */
    CHECK_F32(amax8(t, n.f, 2), 0.0f);
    amp_fp8_destroy(n.f);
}
/* A region whose level is not FP8's: the layer's amp_fp8 is not used, in either direction. */
static void fp8_elsewhere(t_run *t) {
    layer8 n = layer8_new(t, 4);
    float with[16], without[16];
    amp_precision record = AMP_ZERO;
    int i;
    for (i = 0; i < 2; i++) {
        n.l.fp8 = i ? NULL : n.f;
        n.l.record = &record;
        CHECK_OK(amp_autocast_begin(t->ctx, NULL));
        CHECK_OK(amp_linear_forward(t->ctx, &n.l));
        CHECK_OK(amp_autocast_end(t->ctx));
        t_get(t, i ? without : with, n.l.y.data, sizeof with);
    }
    CHECK_BITS(with, without, 16, 4);
    CHECK_F32(amax8(t, n.f, 0), 0.0f);
    CHECK_OK(amp_autocast_release(t->ctx));
    amp_fp8_destroy(n.f);
}
static void fp8_formats(t_run *t) {
    amp_fp8 *f = NULL;
    amp_fp8_desc d = AMP_ZERO;
    d.forward = AMP_F8E5M2;
    d.backward = AMP_F8E4M3;
    CHECK_OK(amp_fp8_create(&f, t->ctx, &d)); /* either may be the wide one, not both */
    amp_fp8_destroy(f);
    CHECK_EQ(amp_fp8_create_checked(&f, t->ctx, AMP_VERSION, sizeof d - 1, &d), AMP_ERR_VERSION);
    CHECK_EQ(amp_fp8_create_checked(&f, t->ctx, AMP_VERSION + 1, sizeof d, &d), AMP_ERR_VERSION);
    CHECK(!f);
}

/* ---- reports and plans ---- */

static void rows_without_names(t_run *t) {
    amp_report_row rows[2];
    char text[2048];
    size_t n;
    memset(rows, 0, sizeof rows);
    rows[0].low = 1;
    snprintf(rows[1].advice, sizeof rows[1].advice, "raise it");
    n = amp_report_text(text, sizeof text, rows, 2);
    CHECK_EQ(n, strlen(text));
    CHECK(strstr(text, "\n: raise it\n") != NULL);
    CHECK(strstr(text, "(null)") == NULL);
}
static void plan_of_auto(t_run *t) {
    amp_plan_layer layer = {"relu", AMP_OP_RELU, 0, 0, 0, 10, 0, 0};
    amp_plan a, b;
    amp_policy p;
    CHECK_OK(amp_policy_init(t->ctx, &p, AMP_PRESET_AMP, NULL));
    CHECK_EQ(amp_plan_memory(&a, &p, NULL, &layer, 1, AMP_AUTO), AMP_OK);
    CHECK_EQ(amp_plan_memory(&b, &p, NULL, &layer, 1, AMP_F32), AMP_OK);
    CHECK(a.saved == 40 && memcmp(&a, &b, sizeof a) == 0);
    CHECK_EQ(amp_plan_memory(&a, &p, NULL, &layer, 1, AMP_DTYPE_COUNT), AMP_ERR_INVALID_ARG);
}
static void snapshot_uninitialised(t_run *t) {
    amp_snapshot s;
    CHECK_OK(amp_snapshot_take(t->ctx, &s, NULL, NULL));
    s.policy._end = 1;
    CHECK_STATUS(amp_snapshot_begin(t->ctx, NULL, &s), AMP_ERR_UNINIT, "amp_snapshot_take");
    s.policy._end = 0;
    s.policy._begin = 1;
    CHECK_STATUS(amp_snapshot_begin(t->ctx, NULL, &s), AMP_ERR_UNINIT, "amp_snapshot_take");
}

const t_test t_suite_edges[] = {{"edges.of_nothing", of_nothing, T_HOST},
    {"edges.scale_of_an_odd_histogram", scale_of_an_odd_histogram, T_HOST},
    {"edges.names_and_notes", names_and_notes, T_HOST}, {"edges.counters_end", counters_end, T_HOST},
    {"edges.logarithms", logarithms, T_HOST}, {"edges.parameters_refused", parameters_refused, T_ALL},
    {"edges.sets_of_an_odd_size", sets_of_an_odd_size, T_ALL}, {"edges.one_moment", one_moment, T_ALL},
    {"edges.update_beside_alignment", update_beside_alignment, T_ALL}, {"edges.counted_apply", counted_apply, T_ALL},
    {"edges.apply_without_moments", apply_without_moments, T_ALL}, {"edges.unscaled_lists", unscaled_lists, T_ALL},
    {"edges.begun_beside_an_element", begun_beside_an_element, T_ALL},
    {"edges.words_beside_four_bytes", words_beside_four_bytes, T_ALL}, {"edges.softmax_alone", softmax_alone, T_ALL},
    {"edges.activation_auto", activation_auto, T_ALL}, {"edges.largest_of_zeros", largest_of_zeros, T_ALL},
    {"edges.layers_too_large", layers_too_large, T_ALL}, {"edges.dy_beside_its_inputs", dy_beside_its_inputs, T_ALL},
    {"edges.chain_uninitialised", chain_uninitialised, T_ALL}, {"edges.policy_texts", policy_texts, T_ALL},
    {"edges.policy_scales", policy_scales, T_ALL}, {"edges.banned_product", banned_product, T_ALL},
    {"edges.pinned_output", pinned_output, T_ALL}, {"edges.beside_a_weight", beside_a_weight, T_CPU},
    {"edges.part_of_a_weight", part_of_a_weight, T_ALL}, {"edges.explained_in_a_region", explained_in_a_region, T_ALL},
    {"edges.explained_in_a_full_arena", explained_in_a_full_arena, T_ALL}, {"edges.fp8_without", fp8_without, T_ALL},
    {"edges.fp8_elsewhere", fp8_elsewhere, T_ALL}, {"edges.fp8_formats", fp8_formats, T_ALL},
    {"edges.rows_without_names", rows_without_names, T_HOST}, {"edges.plan_of_auto", plan_of_auto, T_ALL},
    {"edges.snapshot_uninitialised", snapshot_uninitialised, T_ALL}, {NULL, NULL, 0}};
