/* test_moments.c - moments in 8 bits. Guards: AMP_MOMENT_8BIT, amp_moment_load, amp_param.moment_scale. */
#include "set.h"

static float value_of(uint32_t code, float scale, int which) {
    return which ? ampi_scalar_moment_value(code, scale, 1) : ampi_scalar_moment_value(code, scale, 0);
}
static uint32_t code_of(float x, float scale, uint32_t r, int which) {
    const float inverse = ampi_moment_inverse(scale);
    return which ? ampi_scalar_moment_code(x, inverse, r, 1) : ampi_scalar_moment_code(x, inverse, r, 0);
}

/* What a code stands for, by its formula in double. */
static void values(t_run *t) {
    uint32_t k;
    for (k = 0; k < 256; k++) {
        const double r = pow((k & 127) / 127.0, 2), v = pow(k / 255.0, 4) * 3.5;
        const double m = r * (r + 0.5) / 1.5 * 3.5 * (k & 128 ? -1 : 1);
        t_note(t, "code %u", (unsigned)k);
        CHECK_NEAR((double)value_of(k, 3.5f, 0), m, 1e-6 * fabs(m));
        CHECK_NEAR((double)value_of(k, 3.5f, 1), v, 1e-6 * v);
    }
    CHECK_F32(value_of(127, 3.4028234e38f, 0), 3.4028234e38f);
    CHECK_F32(value_of(255, 3.4028234e38f, 1), 3.4028234e38f);
    CHECK_F32(ampi_moment_scale(0), 0.0f);
    CHECK_F32(ampi_moment_scale(1), 1.17549435e-38f);         /* the smallest subnormal */
    CHECK_F32(ampi_moment_scale(0x7f800000u), 3.4028234e38f); /* Inf */
    CHECK_F32(ampi_moment_scale(0x40600000u), 3.5f);
    CHECK_F32(value_of(code_of(5.0f, 0.0f, 7, 0), 0.0f, 0), 0.0f); /* a block of zeros */
}

/* Over all 2^16 random halves: two neighbours, and x on the mean. */
static void rounding_is_fair(t_run *t) {
    int which, i;
    for (which = 0; which < 2; which++)
        for (i = 0; i < 40; i++) {
            const float scale = 3.5f,
                        x = (which || i % 2 ? 1.0f : -1.0f) * (float)(0.001 + 0.999 * pow(t_unit(t), 4)) * scale;
            double mean = 0, low = 1e30, high = 0;
            uint32_t r, least = 255, most = 0;
            for (r = 0; r < 65536; r++) {
                const uint32_t code = code_of(x, scale, which ? r << 16 : 0xabcd0000u | r, which);
                const double v = fabs((double)value_of(code, scale, which));
                mean += (double)value_of(code, scale, which) / 65536;
                if (v < low) low = v;
                if (v > high) high = v;
                if ((code & (which ? 255u : 127u)) < least) least = code & (which ? 255u : 127u);
                if ((code & (which ? 255u : 127u)) > most) most = code & (which ? 255u : 127u);
            }
            t_note(t, "moment %d, x %g: codes %u and %u", which, (double)x, (unsigned)least, (unsigned)most);
            CHECK(most - least <= 1);
            CHECK(low <= fabs((double)x) * 1.000001 && high >= fabs((double)x) * 0.999999);
            CHECK_NEAR(mean, (double)x, (high - low) / 65536 + 1e-6 * fabs((double)x));
        }
}

/* The ends: a second moment falls to 0 only if it is 0; Inf and NaN give the largest, and no code is beyond it. */
static void ends(t_run *t) {
    uint32_t r;
    for (r = 0; r < 65536; r += 5) {
        CHECK_EQ(code_of(1e-45f, 1.0f, r << 16, 1), 1);
        CHECK_EQ(code_of(1e-12f, 1e4f, r << 16, 1), 1);
        CHECK_EQ(code_of(0.0f, 1.0f, r << 16, 1), 0);
        CHECK_EQ(code_of(0.0f, 1.0f, r, 0), 0);
        CHECK_EQ(code_of(-1e-30f, 1.0f, r, 0), 0x80);
        CHECK_EQ(code_of(ref_f32(0x7f800000u), 3.4028234e38f, r << 16, 1), 255);
        CHECK_EQ(code_of(ref_f32(0x7fc00000u), 2.0f, r << 16, 1), 255);
        CHECK_EQ(code_of(ref_f32(0xffc00000u), 2.0f, r, 0), 255);
        CHECK_EQ(code_of(-2.0f, 2.0f, r, 0), 255);
        CHECK_EQ(code_of(3e38f, 3e38f, r, 0), 127);
        if (!CHECK_EQ(code_of(1e-40f, 1.17549435e-38f, r, 0) & 0x80, 0)) return;
    }
}

/* ---- sets ---- */

static const size_t counts[] = {1, 255, 256, 257, 700, 2311};
enum { N = sizeof counts / sizeof *counts };
typedef struct scene {
    amp_optimizer optimizer;
    amp_dtype model;
    amp_master master;
    uint32_t stochastic, lost, shifted; /* shifted: gradients and model copies are adopted where nothing is aligned */
} scene;
static amp_params *scene_set(t_run *t, const scene *s, amp_dtype moment) {
    amp_params *p = NULL;
    amp_params_desc d = AMP_ZERO;
    size_t i, k;
    d.model = s->model;
    d.master = s->master;
    d.moment = moment;
    d.label = "moments";
    CHECK_OK(amp_params_create(&p, t->ctx, &d));
    for (i = 0; i < N; i++) {
        amp_param_desc e = AMP_ZERO;
        float *w = (float *)t_host(t, 4 * counts[i]);
        for (k = 0; k < counts[i]; k++)
            w[k] = t_real(t);
        e.count = counts[i];
        e.init = w;
        if (s->shifted && i % 2) e.grad = amp_arr(t_alloc_at(t, 2 * counts[i], 2), AMP_AUTO);
        if (s->shifted && i % 3) e.model = amp_arr(t_alloc_at(t, 2 * counts[i], 2), AMP_AUTO);
        CHECK_OK(amp_params_add(p, &e));
    }
    CHECK_OK(amp_params_commit(p));
    return p;
}
static void scene_grads(t_run *t, amp_params *p) { /* elements of a block are up to 2^18 apart */
    size_t i, k;
    for (i = 0; i < N; i++) {
        amp_array g = amp_param_grad(p, i);
        void *host = t_host(t, counts[i] * amp_dtype_size(g.dtype));
        for (k = 0; k < counts[i]; k++)
            amp_store(host, g.dtype, k, k % 9 == 4 ? 0.0f : t_range(t, -13, 5));
        t_set(t, g.data, host, counts[i] * amp_dtype_size(g.dtype));
    }
}
static amp_step_desc scene_step(const scene *s) {
    amp_step_desc d = AMP_ZERO;
    d.optimizer = s->optimizer;
    d.lr = 0.01f;
    d.weight_decay = 0.01f;
    d.momentum = s->optimizer == AMP_SGD ? 0.9f : 0.0f;
    d.clip_norm = 50.0f;
    d.seed = 12345;
    d.stochastic = s->stochastic;
    d.count_lost = s->lost;
    return d;
}
static void scene_blob(t_run *t, t_blob *b, amp_params *p) {
    size_t i;
    set_blob(t, b, p, counts, N);
    for (i = 0; i < N; i++)
        set_blob_codes(t, b, p, i);
}

static void same_run(t_run *t, t_blob *b, const void *arg) {
    const scene *s = (const scene *)arg;
    amp_step_desc d = scene_step(s);
    amp_params *p = scene_set(t, s, AMP_MOMENT_8BIT);
    amp_report_row rows[1 + N];
    amp_state_desc st = AMP_ZERO;
    char *file;
    FILE *f;
    size_t i, bytes;
    for (i = 0; i < 3; i++) {
        scene_grads(t, p);
        CHECK_OK(amp_step(p, NULL, &d));
    }
    scene_blob(t, b, p);
    CHECK_OK(amp_report(p, NULL, rows, 1 + N, NULL, NULL, 0));
    for (i = 0; i <= N; i++) {
        t_blob_add(b, &rows[i].updates, sizeof rows[i].updates);
        t_blob_add(b, &rows[i].lost, sizeof rows[i].lost);
    }
    st.params = &p; /* files are alike, so each context loads what the other has saved */
    st.n_params = 1;
    CHECK_OK(amp_state_save(t->ctx, t_file("moments"), &st));
    file = (char *)t_host(t, 1 << 17);
    f = fopen(t_file("moments"), "rb");
    bytes = f ? fread(file, 1, 1 << 17, f) : 0;
    if (f) fclose(f);
    CHECK(bytes > 3 * 2311 && bytes < 1 << 17);
    t_blob_add(b, file, bytes);
    amp_params_destroy(p);
}
static void same(t_run *t) {
    static const scene scenes[] = {{AMP_ADAMW, AMP_F16, AMP_MASTER_F32, 0, 1, 0},
        {AMP_ADAMW, AMP_BF16, AMP_MASTER_SPLIT, 0, 0, 1}, {AMP_ADAM, AMP_BF16, AMP_MASTER_NONE, 1, 0, 1},
        {AMP_LION, AMP_F16, AMP_MASTER_SPLIT, 0, 3, 0}, {AMP_SGD, AMP_BF16, AMP_MASTER_KAHAN, 0, 0, 0},
        {AMP_SGD, AMP_F32, AMP_MASTER_F32, 0, 1, 0}, {AMP_ADAMW, AMP_BF16, AMP_MASTER_NONE, 1, 0, 0},
        {AMP_ADAMW, AMP_BF16, AMP_MASTER_SPLIT8, 0, 0, 1}, {AMP_ADAM, AMP_F16, AMP_MASTER_SPLIT8, 1, 3, 0}};
    size_t i;
    for (i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        t_note(t, "scene %d", (int)i);
        t_same_everywhere(t, same_run, &scenes[i]);
        t_clear(t);
    }
}

/* Moment `which` of parameter i, as floats. */
static float *moment_of(t_run *t, amp_params *p, size_t i, uint32_t which) {
    const size_t n = counts[i], bytes = (n + 255) / 256 * (256 + 4);
    amp_param_entry e = amp_param_entry_get(p, i);
    float *x = (float *)t_host(t, 4 * n);
    size_t k;
    void *host = t_host(t, e.moment_dtype == AMP_F32 ? 4 * n : bytes);
    t_get(t, host, e.moment[which], e.moment_dtype == AMP_F32 ? 4 * n : bytes);
    e.moment[which] = host;
    for (k = 0; k < n; k++)
        x[k] = amp_moment_load(&e, which, k);
    return x;
}
/* Forty steps beside FP32 moments: moments stay near them, updates within what Adam's can be. */
static void follows_f32(t_run *t) {
    const scene s = {AMP_ADAMW, AMP_F32, AMP_MASTER_F32, 0, 0, 0};
    amp_step_desc d = scene_step(&s);
    const uint64_t rng = t->rng;
    amp_params *p = scene_set(t, &s, AMP_MOMENT_8BIT), *q;
    float *before, *after;
    size_t i, k, step;
    uint32_t which;
    t->rng = rng;
    q = scene_set(t, &s, AMP_F32);
    d.weight_decay = 0;
    for (step = 0; step < (t_slow(t) ? 3u : 40u); step++) {
        before = (float *)t_host(t, 4 * counts[N - 1]);
        after = (float *)t_host(t, 4 * counts[N - 1]);
        scene_grads(t, p);
        for (i = 0; i < N; i++) {
            amp_array g = amp_param_grad(p, i);
            t_set(t, amp_param_grad(q, i).data, set_bits(t, g, g.count), 4 * g.count);
        }
        CHECK_OK(amp_param_read(p, N - 1, before));
        CHECK_OK(amp_step(p, NULL, &d));
        CHECK_OK(amp_step(q, NULL, &d));
        CHECK_OK(amp_param_read(p, N - 1, after));
        for (k = 0; k < counts[N - 1];
            k++) /* m / sqrt(v) <= (1 - b1) / sqrt(1 - b2) = 3.2; codes of v are up to 16 apart */
            if (!CHECK(fabs((double)after[k] - (double)before[k]) < 4 * 3.2 * 0.01)) return;
    }
    for (i = 0; i < N; i++)
        for (which = 0; which < 2; which++) {
            const float *x = moment_of(t, p, i, which), *y = moment_of(t, q, i, which);
            double error = 0, of = 0;
            for (k = 0; k < counts[i]; k++) {
                error += pow((double)x[k] - (double)y[k], 2);
                of += pow((double)y[k], 2);
                if (which && !CHECK((x[k] > 0) == (y[k] > 0))) return;
            }
            t_note(t, "parameter %d, moment %d", (int)i, (int)which);
            CHECK(sqrt(error) <= 0.08 * sqrt(of)); /* a code near the top is 0.026 from the next */
        }
    amp_params_destroy(p);
    amp_params_destroy(q);
}

/* Constant gradients: v goes to g^2, though a step moves it by a tenth of the distance of two codes. */
static void small_changes_arrive(t_run *t) {
    const scene s = {AMP_ADAMW, AMP_F32, AMP_MASTER_F32, 0, 0, 0};
    amp_params *p = scene_set(t, &s, AMP_MOMENT_8BIT);
    amp_step_desc d = scene_step(&s);
    const size_t n = counts[N - 1];
    double mean = 0;
    float *v;
    size_t i, k, step;
    d.clip_norm = 0;
    for (i = 0; i < N; i++) {
        float *g = (float *)t_host(t, 4 * counts[i]);
        for (k = 0; k < counts[i]; k++)
            g[k] = k % 256 == 0 ? 4.0f : 0.5f;
        t_set(t, amp_param_grad(p, i).data, g, 4 * counts[i]);
    }
    for (step = 0; step < 1500; step++)
        CHECK_OK(amp_step(p, NULL, &d));
    v = moment_of(t, p, N - 1, 1);
    for (k = 0; k < n; k++)
        mean += k % 256 ? (double)v[k] / (double)(n - n / 256 - 1) : 0;
    CHECK_NEAR(mean, 0.25 * (1.0 - pow(0.999, 1500.0)), 0.01 * 0.25);
    amp_params_destroy(p);
}

/* A skipped step changes nothing; a set that was saved goes on as one that was not, also SGD's with its first step. */
static void skip_and_resume(t_run *t) {
    static const amp_optimizer optimizers[] = {AMP_ADAMW, AMP_SGD};
    size_t o, i, step;
    for (o = 0; o < 2; o++) {
        scene s = {AMP_ADAMW, AMP_F16, AMP_MASTER_SPLIT, 0, 0, 0};
        amp_step_desc d;
        amp_params *p, *q;
        amp_scaler *scaler = NULL;
        amp_state_desc st = AMP_ZERO;
        t_blob before = AMP_ZERO, after = AMP_ZERO, other = AMP_ZERO;
        s.optimizer = optimizers[o];
        d = scene_step(&s);
        p = scene_set(t, &s, AMP_MOMENT_8BIT);
        q = scene_set(t, &s, AMP_MOMENT_8BIT);
        CHECK_OK(amp_scaler_create(&scaler, t->ctx, NULL));
        scene_grads(t, p);
        CHECK_OK(amp_step(p, scaler, &d));
        set_grad_bits(t, p, 5, 300, set_inf(AMP_F16));
        scene_blob(t, &before, p);
        CHECK_OK(amp_step(p, scaler, &d));
        scene_blob(t, &after, p);
        t_note(t, "optimizer %d", (int)s.optimizer);
        CHECK(before.bytes == after.bytes && memcmp(before.data, after.data, before.bytes) == 0);
        st.n_params = 1;
        st.params = &p;
        CHECK_OK(amp_state_save(t->ctx, t_file("resume8"), &st));
        st.params = &q;
        CHECK_OK(amp_state_load(t->ctx, t_file("resume8"), &st));
        free(after.data);
        memset(&after, 0, sizeof after);
        for (step = 0; step < 2; step++) {
            scene_grads(t, p);
            for (i = 0; i < N; i++) {
                amp_array g = amp_param_grad(p, i);
                t_set(t, amp_param_grad(q, i).data, set_bits(t, g, g.count), 2 * g.count);
            }
            CHECK_OK(amp_step(p, NULL, &d));
            CHECK_OK(amp_step(q, NULL, &d));
        }
        scene_blob(t, &after, p);
        scene_blob(t, &other, q);
        CHECK(other.bytes == after.bytes && memcmp(other.data, after.data, after.bytes) == 0);
        free(before.data);
        free(after.data);
        free(other.data);
        amp_scaler_destroy(scaler);
        amp_params_destroy(p);
        amp_params_destroy(q);
    }
}

/* Bytes: what the ledger has is what codes and scales take; where they are; and verbs refuse codes as operands. */
static void bytes_and_refusals(t_run *t) {
    const scene s = {AMP_ADAMW, AMP_BF16, AMP_MASTER_SPLIT, 0, 0, 0};
    amp_params *p = scene_set(t, &s, AMP_MOMENT_8BIT);
    amp_params_desc d = AMP_ZERO;
    amp_param view = amp_param_get(p, 4);
    uint64_t bytes = 0;
    size_t i;
    for (i = 0; i < N; i++)
        bytes += 2 * ((counts[i] + 255) / 256 * 256 + ((counts[i] + 255) / 256 * 4 + 255) / 256 * 256);
    CHECK_EQ(t_ledger(t->ctx, "moments.moments").bytes, bytes);
    d.moment = AMP_MOMENT_8BIT;
    d.master = AMP_MASTER_SPLIT;
    CHECK_EQ(amp_layout_bytes(&d).moments, 2);
    CHECK_EQ(amp_layout_bytes(&d).total, 8);
    CHECK(view.moment[1].data && view.moment[1].dtype == AMP_MOMENT_8BIT && view.moment[1].count == 700);
    CHECK(view.moment_scale[1].data && view.moment_scale[1].dtype == AMP_F32 && view.moment_scale[1].count == 3);
    CHECK((char *)view.moment_scale[1].data == (char *)view.moment[1].data + 768);
    CHECK(strcmp(amp_dtype_name(AMP_MOMENT_8BIT), "8bit") == 0);
    CHECK_STATUS(amp_cast(t->ctx, amp_arr(view.moment[0].data, AMP_MOMENT_8BIT), view.model, 8, NULL),
        AMP_ERR_INVALID_ARG, "dst 8bit");
    amp_params_destroy(p);
    d.grad = AMP_MOMENT_8BIT;
    CHECK_STATUS(amp_params_create(&p, t->ctx, &d), AMP_ERR_INVALID_ARG, "grad 8bit");
    d.grad = AMP_AUTO;
    d.moment = AMP_F16;
    CHECK_STATUS(amp_params_create(&p, t->ctx, &d), AMP_ERR_INVALID_ARG, "moment f16 AMP_MOMENT_8BIT");
}

/* ---- in company: on a host beside the card, and divided among ranks ---- */

/* The state on a CPU, gradients there and weights back: the bits of a step on the card. */
static void offload_scene(t_run *t, const scene *s) {
    amp_step_desc d = scene_step(s);
    const uint64_t rng = t->rng;
    amp_ctx *device = t->ctx, *host = NULL;
    amp_params *whole = scene_set(t, s, AMP_MOMENT_8BIT), *state;
    amp_scaler *on_card = NULL, *on_host = NULL;
    t_blob want = AMP_ZERO, got = AMP_ZERO;
    size_t i, step;
    CHECK_OK(t_create_cpu(&host, AMP_SIMD_AUTO, 1));
    t->ctx = host;
    t->rng = rng;
    state = scene_set(t, s, AMP_MOMENT_8BIT);
    CHECK_OK(amp_scaler_create(&on_host, host, NULL));
    t->ctx = device;
    CHECK_OK(amp_scaler_create(&on_card, device, NULL));
    for (step = 0; step < 4; step++) {
        scene_grads(t, whole);
        if (step == 2) set_grad_bits(t, whole, 4, 600, set_inf(s->model));
        for (i = 0; i < N; i++) { /* down */
            const amp_array g = amp_param_grad(whole, i);
            memcpy(amp_param_grad(state, i).data, set_bits(t, g, g.count), 2 * g.count);
        }
        CHECK_OK(amp_step(whole, on_card, &d));
        CHECK_OK(amp_step(state, on_host, &d));
        for (i = 0; i < N; i++) { /* up: what the card would read */
            const amp_array w = amp_param_model(whole, i);
            CHECK_BITS(amp_param_model(state, i).data, set_bits(t, w, w.count), w.count, 2);
        }
    }
    scene_blob(t, &want, whole);
    t->ctx = host;
    scene_blob(t, &got, state);
    t->ctx = device;
    CHECK(got.bytes == want.bytes && memcmp(got.data, want.data, got.bytes) == 0);
    free(want.data);
    free(got.data);
    amp_scaler_destroy(on_card);
    amp_scaler_destroy(on_host);
    amp_params_destroy(whole);
    amp_params_destroy(state);
    amp_ctx_destroy(host);
}
static void offloaded(t_run *t) {
    static const scene scenes[] = {{AMP_ADAMW, AMP_BF16, AMP_MASTER_SPLIT, 0, 0, 0},
        {AMP_ADAMW, AMP_BF16, AMP_MASTER_SPLIT8, 0, 0, 0}, {AMP_ADAMW, AMP_F16, AMP_MASTER_SPLIT8, 1, 0, 0}};
    size_t i;
    for (i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        t_note(t, "scene %d", (int)i);
        offload_scene(t, &scenes[i]);
    }
}
/* Pieces of a parameter on two ranks, blocks of their own: the step of a set that has the pieces as parameters. The
   hook gives a rank what both have found, and keeps it where there is one. */
typedef struct piece_hook {
    int keep;
    amp_totals both;
} piece_hook;
static amp_status on_piece_totals(amp_ctx *ctx, amp_totals *totals, void *user) {
    piece_hook *h = (piece_hook *)user;
    return h->keep ? amp_copy(ctx, &h->both, totals, sizeof h->both) : amp_copy(ctx, totals, &h->both, sizeof h->both);
}
static amp_params *piece_set(t_run *t, const scene *s, const size_t *sizes, size_t n) {
    amp_params *p = NULL;
    amp_params_desc d = AMP_ZERO;
    size_t i;
    d.model = s->model;
    d.master = s->master;
    d.moment = AMP_MOMENT_8BIT;
    CHECK_OK(amp_params_create(&p, t->ctx, &d));
    for (i = 0; i < n; i++) {
        amp_param_desc e = AMP_ZERO;
        e.count = sizes[i];
        CHECK_OK(amp_params_add(p, &e));
    }
    CHECK_OK(amp_params_commit(p));
    return p;
}
static void same_piece(t_run *t, amp_params *p, amp_params *whole, size_t i) { /* parameter i of both */
    const amp_param a = amp_param_get(p, i), b = amp_param_get(whole, i);
    float *v = (float *)t_host(t, 4 * a.count), *w = (float *)t_host(t, 4 * b.count);
    size_t k;
    CHECK_OK(amp_param_read(p, i, v)); /* all bits of a weight, in each layout */
    CHECK_OK(amp_param_read(whole, i, w));
    CHECK_BITS(v, w, a.count, 4);
    for (k = 0; k < 2; k++) {
        const size_t blocks = b.moment_scale[k].count;
        uint8_t *x = (uint8_t *)t_host(t, a.count), *y = (uint8_t *)t_host(t, a.count);
        t_get(t, x, a.moment[k].data, a.count);
        t_get(t, y, b.moment[k].data, b.count);
        CHECK_BITS(x, y, a.count, 1);
        CHECK_BITS(set_bits(t, a.moment_scale[k], blocks), set_bits(t, b.moment_scale[k], blocks), blocks, 4);
    }
}
static void divide_scene(t_run *t, const scene *s) {
    static const size_t sizes[2] = {700, 300}, second[2] = {1, 300}; /* its piece has the number that it has in whole */
    amp_step_desc d = scene_step(s);
    amp_params *whole = piece_set(t, s, sizes, 2), *of[2];
    amp_scaler *scaler[3];
    amp_step_record r, one;
    piece_hook hook = AMP_ZERO;
    size_t i, k, step;
    of[0] = piece_set(t, s, sizes, 1);
    of[1] = piece_set(t, s, second, 2);
    for (i = 0; i < 3; i++)
        CHECK_OK(amp_scaler_create(&scaler[i], t->ctx, NULL));
    d.reduce_totals_fn = on_piece_totals;
    d.user = &hook;
    for (step = 0; step < 4; step++) {
        for (i = 0; i < 2; i++) {
            const amp_array g = amp_param_grad(whole, i);
            uint16_t *x = (uint16_t *)t_host(t, 2 * sizes[i]);
            for (k = 0; k < sizes[i]; k++)
                amp_store(x, s->model, k, t_range(t, -10, 10));
            if (step == 1 && i == 1)
                x[299] = (uint16_t)set_inf(s->model); /* on the second rank, and the first skips, too */
            t_set(t, g.data, x, 2 * sizes[i]);
            t_set(t, amp_param_grad(of[i], i).data, x, 2 * sizes[i]);
        }
        hook.keep = 1;
        CHECK_OK(amp_step(whole, scaler[2], &d));
        hook.keep = 0;
        for (i = 0; i < 2; i++)
            CHECK_OK(amp_step(of[i], scaler[i], &d));
        CHECK_OK(amp_sync(t->ctx));
        CHECK_OK(amp_step_poll(whole, &one));
        for (i = 0; i < 2; i++) {
            t_note(t, "layout %d, step %d, rank %d", (int)s->master, (int)step, (int)i);
            CHECK_OK(amp_step_poll(of[i], &r));
            CHECK(r.outcome == one.outcome && r.clip >= one.clip && r.clip <= one.clip);
            same_piece(t, of[i], whole, i);
        }
        CHECK_EQ(one.outcome, step == 1 ? AMP_SKIPPED_INF : AMP_STEPPED);
    }
    for (i = 0; i < 3; i++)
        amp_scaler_destroy(scaler[i]);
    for (i = 0; i < 2; i++)
        amp_params_destroy(of[i]);
    amp_params_destroy(whole);
}
static void divided_among_ranks(t_run *t) {
    static const scene scenes[] = {{AMP_ADAMW, AMP_F16, AMP_MASTER_F32, 0, 0, 0},
        {AMP_ADAMW, AMP_BF16, AMP_MASTER_SPLIT8, 0, 0, 0}, {AMP_ADAMW, AMP_F16, AMP_MASTER_SPLIT8, 1, 0, 0}};
    size_t i;
    for (i = 0; i < sizeof scenes / sizeof *scenes; i++)
        divide_scene(t, &scenes[i]);
}

/* Where half of the first moments are 0 and their gradients are not, the report says so. */
static void fallen_are_told(t_run *t) {
    const scene s = {AMP_ADAMW, AMP_F32, AMP_MASTER_F32, 0, 0, 0};
    int apart;
    for (apart = 0; apart < 2; apart++) {
        amp_params *p = scene_set(t, &s, AMP_MOMENT_8BIT);
        amp_report_row rows[1 + N];
        amp_step_desc d = scene_step(&s);
        size_t i, k;
        for (i = 0; i < N; i++) {
            float *g = (float *)t_host(t, 4 * counts[i]);
            for (k = 0; k < counts[i]; k++)
                g[k] = apart && k % 256 == 3 ? 1e4f : 1e-5f;
            t_set(t, amp_param_grad(p, i).data, g, 4 * counts[i]);
        }
        CHECK_OK(amp_step(p, NULL, &d));
        CHECK_OK(amp_report(p, NULL, rows, 1 + N, NULL, NULL, 0));
        CHECK_EQ(strstr(rows[N].advice, "8-bit first moments fell to 0") != NULL, apart);
        CHECK_EQ(strstr(rows[1].advice, "fell to 0") != NULL, 0); /* of one element: its block's largest */
        amp_params_destroy(p);
    }
}

const t_test t_suite_moments[] = {{"moments.values", values, T_HOST},
    {"moments.rounding_is_fair", rounding_is_fair, T_HOST}, {"moments.ends", ends, T_HOST},
    {"moments.same", same, T_ALL}, {"moments.follows_f32", follows_f32, T_ALL},
    {"moments.small_changes_arrive", small_changes_arrive, T_CPU}, {"moments.skip_and_resume", skip_and_resume, T_ALL},
    {"moments.offloaded", offloaded, T_ALL}, {"moments.divided_among_ranks", divided_among_ranks, T_ALL},
    {"moments.fallen_are_told", fallen_are_told, T_ALL}, {"moments.bytes_and_refusals", bytes_and_refusals, T_ALL},
    {NULL, NULL, 0}};
