/* test_resume.c - going on with a run that began elsewhere, parameters without a gradient, and what conformance with
   PyTorch, Apex and MindSpore asks of the scaler.  Guards: >>front-params, >>front-scaler, >>front-step. */
#include "set.h"

static const size_t counts[2] = {7, 70000};

static amp_params *two(t_run *t, int accumulate) {
    amp_params *p = NULL;
    amp_params_desc d = AMP_ZERO;
    size_t i, k;
    d.accumulate = (uint32_t)accumulate;
    d.grad = AMP_F32;
    CHECK_OK(amp_params_create(&p, t->ctx, &d));
    for (i = 0; i < 2; i++) {
        amp_param_desc e = AMP_ZERO;
        float *w = (float *)t_host(t, 4 * counts[i]);
        for (k = 0; k < counts[i]; k++)
            w[k] = (float)(k % 13) - 6.0f;
        e.count = counts[i];
        e.init = w;
        CHECK_OK(amp_params_add(p, &e));
    }
    CHECK_OK(amp_params_commit(p));
    return p;
}
static void grads(t_run *t, amp_params *p, float x) {
    set_grad(t, p, 0, counts[0], x);
    set_grad(t, p, 1, counts[1], 2 * x);
}
static void copy_moments(t_run *t, amp_params *to, amp_params *from) {
    size_t i;
    int j;
    for (i = 0; i < 2; i++) {
        amp_param a = amp_param_get(from, i), b = amp_param_get(to, i);
        t_set(t, b.master.data, set_bits(t, a.master, a.count), 4 * a.count);
        for (j = 0; j < 2; j++)
            t_set(t, b.moment[j].data, set_bits(t, a.moment[j], a.count), 4 * a.count);
    }
    CHECK_OK(amp_params_master_to_model(to));
}
static void same_sets(t_run *t, amp_params *a, amp_params *b) {
    t_blob x = AMP_ZERO, y = AMP_ZERO;
    set_blob(t, &x, a, counts, 2);
    set_blob(t, &y, b, counts, 2);
    CHECK_BITS(y.data, x.data, x.bytes, 1);
    free(x.data);
    free(y.data);
}

static void set_steps(t_run *t) { /* weights, moments and the count of steps are all that a step depends on */
    static const amp_optimizer optimizers[3] = {AMP_ADAMW, AMP_ADAM, AMP_SGD};
    int i, step;
    for (i = 0; i < 3; i++) {
        amp_params *a = two(t, 0), *b = two(t, 0);
        amp_step_desc d = AMP_ZERO;
        amp_step_record r;
        d.lr = 0.01f;
        d.optimizer = optimizers[i];
        d.momentum = 0.9f;
        d.dampening = 0.5f; /* with it SGD's first step differs from the others */
        for (step = 0; step < 5; step++) {
            grads(t, a, 0.5f + (float)step);
            CHECK_OK(amp_step(a, NULL, &d));
        }
        copy_moments(t, b, a);
        CHECK_OK(amp_params_set_steps(b, 5));
        CHECK_EQ(set_poll(t, b).steps, 5);
        grads(t, a, 0.25f);
        grads(t, b, 0.25f);
        CHECK_OK(amp_step(a, NULL, &d));
        CHECK_OK(amp_step(b, NULL, &d));
        t_note(t, "optimizer %d", i);
        same_sets(t, a, b);
        r = set_poll(t, b);
        CHECK_EQ(r.steps, 6);
        CHECK_EQ(r.outcome, AMP_STEPPED);
        t_note(t, "optimizer %d, as if it were the first step", i);
        CHECK_OK(amp_params_set_steps(b, 0));
        CHECK_OK(amp_step(a, NULL, &d));
        CHECK_OK(amp_step(b, NULL, &d));
        CHECK(memcmp(set_bits(t, amp_param_get(a, 0).master, 7), set_bits(t, amp_param_get(b, 0).master, 7), 28) != 0);
        amp_params_destroy(a);
        amp_params_destroy(b);
        t_clear(t);
    }
    CHECK_EQ(amp_params_set_steps(NULL, 1), AMP_ERR_INVALID_ARG);
}

static void scaler_set(t_run *t) { /* get and set bring a scaler to the state of a different one, tracker included */
    amp_scaler *a = NULL, *b = NULL;
    amp_scaler_desc d = AMP_ZERO;
    amp_scaler_info i, k;
    amp_params *p = two(t, 0);
    amp_step_desc sd = t_rate_0();
    int step;
    d.scale = 64.0f;
    d.growth_interval = 4;
    d.hysteresis = 2;
    CHECK_OK(amp_scaler_create(&a, t->ctx, &d));
    d.scale = 8.0f;
    CHECK_OK(amp_scaler_create(&b, t->ctx, &d));
    for (step = 0; step < 6; step++) {
        grads(t, p, 1.0f);
        if (step == 1) set_grad_bits(t, p, 0, 3, 0x7f800000u);
        CHECK_OK(amp_step(p, a, &sd));
    }
    i = set_info(t, a);
    CHECK_OK(amp_scaler_set(b, &i));
    k = set_info(t, b);
    CHECK_BITS(&k, &i, sizeof i, 1);
    CHECK(i.growth_tracker > 0 || i.bad > 0);
    i.hysteresis_tracker = 1;
    CHECK_OK(amp_scaler_set(b, &i));
    CHECK_EQ(set_info(t, b).hysteresis_tracker, 1);
    t_note(t, "a tracker alone: one more good step lets the scale grow");
    grads(t, p, 1.0f);
    i.growth_tracker = 3;
    i.scale = 16.0f;
    CHECK_OK(amp_scaler_set(b, &i));
    CHECK_OK(amp_step(p, b, &sd));
    CHECK_F32(set_info(t, b).scale, 32.0f);
    t_note(t, "refusals change nothing");
    k = set_info(t, b);
    i = k;
    i.scale = 0.0f;
    CHECK_STATUS(amp_scaler_set(b, &i), AMP_ERR_INVALID_ARG, "amp_scaler_set scale");
    i = k;
    i.growth_tracker = -1;
    CHECK_STATUS(amp_scaler_set(b, &i), AMP_ERR_INVALID_ARG, "amp_scaler_set growth_tracker");
    i = k;
    i.hysteresis_tracker = 3;
    CHECK_STATUS(amp_scaler_set(b, &i), AMP_ERR_INVALID_ARG, "amp_scaler_set hysteresis_tracker");
    CHECK_STATUS(amp_scaler_set(b, NULL), AMP_ERR_INVALID_ARG, "amp_scaler_set info");
    CHECK_EQ(amp_scaler_set(NULL, NULL), AMP_ERR_INVALID_ARG);
    CHECK_OK(amp_scaler_set(NULL, &i)); /* as every other verb: a scaler that is off */
    i = set_info(t, b);
    CHECK_BITS(&i, &k, sizeof i, 1);
    t_note(t, "dead");
    i.dead = 1;
    CHECK_OK(amp_scaler_set(b, &i));
    CHECK_EQ(set_info(t, b).dead, 1);
    i.dead = 0;
    CHECK_OK(amp_scaler_set(b, &i));
    CHECK_EQ(set_info(t, b).dead, 0);
    amp_params_destroy(p);
    amp_scaler_destroy(a);
    amp_scaler_destroy(b);
}

static void without_gradients(t_run *t) { /* PyTorch's None: nothing of the parameter moves, and it counts nowhere */
    static const uint8_t first[2] = {1, 0}, second[2] = {0, 1}, none[2] = {0, 0};
    int i;
    for (i = 0; i < 2; i++) {
        amp_params *p = two(t, 0), *alone;
        amp_scaler *s = NULL;
        amp_step_desc d = AMP_ZERO;
        double norm, norm_alone;
        size_t left = 1 - (size_t)i, used = (size_t)i;
        void *w, *m;
        alone = set_new(t, AMP_F16, AMP_F32, &counts[used], 1);
        t_set(t, amp_param_get(alone, 0).master.data, set_bits(t, amp_param_get(p, used).master, counts[used]),
            4 * counts[used]);
        CHECK_OK(amp_scaler_create(&s, t->ctx, NULL));
        grads(t, p, 3.0f);
        set_grad(t, alone, 0, counts[used], i ? 6.0f : 3.0f);
        set_grad_bits(t, p, left, 5, 0x7fc00000u); /* what is left out may hold anything */
        CHECK_OK(amp_params_use(p, i ? second : first));
        d.lr = 0.01f;
        d.weight_decay = 0.1f;
        d.clip_norm = 1.0f;
        w = set_bits(t, amp_param_get(p, left).master, counts[left]);
        m = set_bits(t, amp_param_get(p, left).moment[0], counts[left]);
        CHECK_OK(amp_grad_norm(p, s, &norm));
        CHECK_OK(amp_grad_norm(alone, s, &norm_alone));
        CHECK_F64(norm, norm_alone);
        CHECK_OK(amp_update(p, s, &d));
        CHECK_OK(amp_update(alone, s, &d));
        CHECK_OK(amp_scaler_update(s));
        CHECK_EQ(set_poll(t, p).outcome, AMP_STEPPED);
        CHECK_BITS(set_bits(t, amp_param_get(p, left).master, counts[left]), w, counts[left], 4);
        CHECK_BITS(set_bits(t, amp_param_get(p, left).moment[0], counts[left]), m, counts[left], 4);
        CHECK_BITS(set_bits(t, amp_param_get(p, used).master, counts[used]),
            set_bits(t, amp_param_get(alone, 0).master, counts[used]), counts[used], 4);
        t_note(t, "clipping and unscaling leave it alone, too");
        w = set_bits(t, amp_param_grad(p, left), counts[left]);
        CHECK_OK(amp_clip(p, s, 0.5f, 0.0f));
        CHECK_OK(amp_scaler_unscale(s, p));
        CHECK_BITS(set_bits(t, amp_param_grad(p, left), counts[left]), w, counts[left], 4);
        CHECK_STATUS(amp_params_use(p, NULL), AMP_ERR_STAGE, "amp_params_use");
        CHECK_OK(amp_update(p, s, &d));
        CHECK_OK(amp_params_use(p, NULL)); /* after a step, before the scaler's update: fine */
        CHECK_OK(amp_scaler_update(s));
        t_note(t, "all of them again: the NaN is seen");
        CHECK_OK(amp_step(p, s, &d));
        CHECK_EQ(set_poll(t, p).outcome, AMP_SKIPPED_NAN);
        CHECK_STATUS(amp_params_use(p, none), AMP_ERR_INVALID_ARG, "amp_params_use used");
        CHECK_EQ(amp_params_use(NULL, none), AMP_ERR_INVALID_ARG);
        amp_params_destroy(p);
        amp_params_destroy(alone);
        amp_scaler_destroy(s);
        t_clear(t);
    }
    {
        amp_params *p = two(t, 1);
        amp_step_desc d = t_rate_0();
        amp_array u;
        float *zeros = (float *)t_host(t, 4 * counts[1]);
        memset(zeros, 0, 4 * counts[1]);
        u = amp_arrn(t_put(t, zeros, 4 * counts[1]), AMP_F32, counts[1]);
        t_note(t, "not inside a window of accumulators, nor with an update of its own");
        CHECK_OK(amp_accumulate(p, NULL, 0));
        CHECK_STATUS(amp_params_use(p, first), AMP_ERR_STAGE, "amp_params_use");
        CHECK_STATUS(amp_params_set_steps(p, 3), AMP_ERR_STAGE, "amp_params_set_steps");
        CHECK_OK(amp_step(p, NULL, &d));
        CHECK_OK(amp_params_use(p, first));
        CHECK_OK(amp_inspect(p, NULL, &d));
        CHECK_OK(amp_apply(p, 0, u, 0));
        CHECK_STATUS(amp_apply(p, 1, u, 0), AMP_ERR_STAGE, "amp_apply amp_params_use");
        amp_params_destroy(p);
    }
}

static void off_is_one(t_run *t) { /* 7 a: a kernel that reads the scale in context memory sees what the host is told */
    amp_scaler *s = NULL;
    amp_scaler_desc d = AMP_ZERO;
    float x[2];
    CHECK_OK(amp_scaler_create(&s, t->ctx, NULL));
    d.mode = AMP_SCALER_OFF;
    CHECK_OK(amp_scaler_configure(s, &d));
    t_get(t, &x[0], amp_scaler_scale_ptr(s), 4);
    t_get(t, &x[1], amp_scaler_inverse_ptr(s), 4);
    CHECK_F32(x[0], 1.0f);
    CHECK_F32(x[1], 1.0f);
    CHECK_F32(set_info(t, s).scale, 1.0f);
    CHECK_OK(amp_scaler_configure(s, &d)); /* twice is once */
    t_get(t, &x[0], amp_scaler_scale_ptr(s), 4);
    CHECK_F32(x[0], 1.0f);
    CHECK_F32(set_info(t, s).scale, 1.0f);
    d.mode = AMP_SCALER_DYNAMIC;
    d.min_scale = 2.0f;
    CHECK_OK(amp_scaler_configure(s, &d)); /* and the scale from before is back */
    t_get(t, &x[0], amp_scaler_scale_ptr(s), 4);
    t_get(t, &x[1], amp_scaler_inverse_ptr(s), 4);
    CHECK_F32(x[0], 65536.0f);
    CHECK_F32(x[1], 1.0f / 65536.0f);
    amp_scaler_destroy(s);
    d.mode = AMP_SCALER_OFF;
    d.min_scale = 0;
    CHECK_OK(amp_scaler_create(&s, t->ctx, &d)); /* one that begins off wakes with the scale that create would give */
    d.mode = AMP_SCALER_STATIC;
    CHECK_OK(amp_scaler_configure(s, &d));
    CHECK_F32(set_info(t, s).scale, 65536.0f);
    d.mode = AMP_SCALER_OFF;
    CHECK_OK(amp_scaler_configure(s, &d));
    CHECK_OK(amp_scaler_set_scale(s, 1024.0f)); /* for the next mode */
    CHECK_F32(set_info(t, s).scale, 1.0f);
    d.mode = AMP_SCALER_DYNAMIC;
    CHECK_OK(amp_scaler_configure(s, &d));
    CHECK_F32(set_info(t, s).scale, 1024.0f);
    amp_scaler_destroy(s);
}

static void one_step_per_update(t_run *t) { /* 7 c: also after amp_accumulate */
    amp_params *p = two(t, 1);
    amp_scaler *s = NULL;
    amp_step_desc d = t_rate_0();
    int unscaled;
    CHECK_OK(amp_scaler_create(&s, t->ctx, NULL));
    for (unscaled = 0; unscaled < 2; unscaled++) {
        grads(t, p, 1.0f);
        CHECK_OK(amp_accumulate(p, s, 0));
        if (unscaled) CHECK_OK(amp_scaler_unscale(s, p));
        CHECK_OK(amp_update(p, s, &d));
        CHECK_STATUS(amp_update(p, s, &d), AMP_ERR_STAGE, "amp_update stepped");
        CHECK_STATUS(amp_step(p, s, &d), AMP_ERR_STAGE, "amp_step stepped");
        CHECK_STATUS(amp_inspect(p, s, &d), AMP_ERR_STAGE, "amp_inspect stepped");
        CHECK_STATUS(amp_accumulate(p, s, 0), AMP_ERR_STAGE, "amp_accumulate stepped");
        CHECK_OK(amp_scaler_update(s));
        grads(t, p, 1.0f);
        CHECK_OK(amp_accumulate(p, s, 0));
        CHECK_OK(amp_inspect(p, s, &d));
        CHECK_STATUS(amp_update(p, s, &d), AMP_ERR_STAGE, "amp_update stepped");
        CHECK_OK(amp_scaler_update(s));
    }
    t_note(t, "a scaler that moves on between micro-batches has nothing left to update after the step");
    CHECK_OK(amp_accumulate(p, s, 0));
    CHECK_OK(amp_scaler_update(s));
    CHECK_OK(amp_update(p, s, &d));
    CHECK_OK(amp_accumulate(p, s, 0));
    CHECK_OK(amp_scaler_update(s));
    CHECK_OK(amp_step(p, s, &d));
    CHECK_OK(amp_accumulate(p, s, 0));
    CHECK_OK(amp_step(p, s, &d));
    CHECK_EQ(set_poll(t, p).steps, 7);
    amp_params_destroy(p);
    amp_scaler_destroy(s);
}

static void clipping_without_a_scaler(t_run *t) { /* 7 d: a finite weight gets no unclipped update */
    static const uint32_t bad[2] = {0x7f800000u, 0x7fc00000u};
    int i;
    for (i = 0; i < 4; i++) {
        amp_params *p = two(t, 0);
        amp_scaler *s = NULL;
        amp_scaler_desc sd = AMP_ZERO;
        amp_step_desc d = AMP_ZERO;
        float *w, *now;
        size_t k;
        sd.mode = AMP_SCALER_STATIC;
        sd.scale = 4.0f;
        sd.no_check = 1;
        if (i >= 2) CHECK_OK(amp_scaler_create(&s, t->ctx, &sd));
        d.optimizer = AMP_SGD;
        d.lr = 1.0f;
        d.clip_norm = 1.0f;
        grads(t, p, 1000.0f);
        set_grad_bits(t, p, 0, 2, bad[i % 2]);
        w = (float *)set_bits(t, amp_param_get(p, 0).master, 7);
        CHECK_OK(amp_step(p, s, &d));
        now = (float *)set_bits(t, amp_param_get(p, 0).master, 7);
        t_note(t, "case %d", i);
        CHECK_F32(set_poll(t, p).clip, 0.0f);
        for (k = 0; k < 7; k++)
            if (k == 2)
                CHECK(!amp_is_finite(now[k]));
            else
                CHECK_F32(now[k], w[k]);
        amp_params_destroy(p);
        amp_scaler_destroy(s);
    }
}

const t_test t_suite_resume[] = {{"resume.set_steps", set_steps, T_ALL}, {"resume.scaler_set", scaler_set, T_ALL},
    {"resume.without_gradients", without_gradients, T_ALL}, {"resume.off_is_one", off_is_one, T_ALL},
    {"resume.one_step_per_update", one_step_per_update, T_ALL},
    {"resume.clipping_without_a_scaler", clipping_without_a_scaler, T_ALL}, {NULL, NULL, 0}};
