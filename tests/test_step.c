/* test_step.c - updates, norms, clipping, skipping.  Guards: >>step, the arithmetic part of >>numerics.

   A twin is a copy of a set on the host that is updated by ref.h's own version of the formulas; after every step all
   weights, model copies and moments must have the same bits. Since every context is compared with the same twin, all
   contexts have the same bits. */
#include "set.h"

typedef struct twin_param {
    size_t count;
    amp_dtype model_dtype, grad_dtype;
    float *w, *m, *v;
    uint16_t *model;
    void *grad;
    int no_decay, has_master;
} twin_param;

typedef struct twin {
    twin_param p[2000];
    size_t n;
    uint64_t steps;
    double norm; /* of the last step */
    float clip;
} twin;

/* ---- making a set and its twin ---- */

typedef struct setup {
    amp_dtype model, grad;
    amp_master master;
    const size_t *counts;
    size_t n;
    int adopt;    /* arrays of the test, off by one element, in turn with owned ones */
    int no_decay; /* every third parameter */
} setup;

static amp_params *make(t_run *t, const setup *u, twin *tw) {
    amp_params_desc d = AMP_ZERO;
    amp_params *p = NULL;
    size_t i, k;
    memset(tw, 0, sizeof *tw);
    d.model = u->model;
    d.grad = u->grad;
    d.master = u->master;
    CHECK_OK(amp_params_create(&p, t->ctx, &d));
    tw->n = u->n;
    for (i = 0; i < u->n; i++) {
        amp_param_desc e = AMP_ZERO;
        twin_param *q = &tw->p[i];
        q->count = u->counts[i];
        q->model_dtype = u->model;
        q->grad_dtype = u->grad;
        q->has_master = u->master == AMP_MASTER_F32 || u->model == AMP_F32;
        q->no_decay = u->no_decay && i % 3 == 1;
        q->w = (float *)t_host(t, 4 * q->count);
        q->m = (float *)t_host(t, 4 * q->count);
        q->v = (float *)t_host(t, 4 * q->count);
        q->model = (uint16_t *)t_host(t, 2 * q->count);
        q->grad = t_host(t, 4 * q->count);
        e.count = q->count;
        e.init = q->w;
        e.no_decay = (uint32_t)q->no_decay;
        for (k = 0; k < q->count; k++)
            q->w[k] = t_real(t);
        if (u->adopt && i % 4 != 3) {
            if (q->has_master && i % 4 != 2) e.master = (float *)t_alloc_at(t, 4 * q->count, 4);
            if (u->model != AMP_F32 && i % 4 != 1) e.model = amp_arr(t_alloc_at(t, 2 * q->count, 2), AMP_AUTO);
            e.grad = amp_arr(t_alloc_at(t, amp_dtype_size(u->grad) * q->count, amp_dtype_size(u->grad)), u->grad);
        }
        if (u->model != AMP_F32)
            for (k = 0; k < q->count; k++) {
                q->model[k] = (uint16_t)ref_encode((double)q->w[k], u->model, 0);
                if (!q->has_master) q->w[k] = ref_f32(ref_decode(q->model[k], u->model));
            }
        CHECK_OK(amp_params_add(p, &e));
    }
    CHECK_OK(amp_params_commit(p));
    return p;
}

/* New gradients, the same in the set and the twin. */
static void feed(t_run *t, amp_params *p, twin *tw, float size) {
    size_t i;
    for (i = 0; i < tw->n; i++) {
        twin_param *q = &tw->p[i];
        t_fill_real(t, q->grad, q->grad_dtype, q->count, size);
        t_set(t, amp_param_grad(p, i).data, q->grad, q->count * amp_dtype_size(q->grad_dtype));
    }
}

/* Norm of all gradients times inv, by the rule of sums within chunks, then over the chunks of all. */
static double twin_norm(t_run *t, const twin *tw, float inv) {
    float *u = (float *)t_host(t, 4 * 65536);
    double *sums;
    size_t i, k, at, n_sums = 0, cap = 0;
    for (i = 0; i < tw->n; i++)
        cap += (tw->p[i].count + 65535) / 65536;
    sums = (double *)t_host(t, 8 * cap);
    for (i = 0; i < tw->n; i++)
        for (at = 0; at < tw->p[i].count; at += 65536) {
            size_t n = tw->p[i].count - at < 65536 ? tw->p[i].count - at : 65536;
            for (k = 0; k < n; k++)
                u[k] = ref_mul(amp_load(tw->p[i].grad, tw->p[i].grad_dtype, at + k), inv);
            sums[n_sums++] = ref_squares_chunk(u, n);
        }
    return sqrt(ref_sum_chunks(sums, n_sums));
}

/* What ref_update and ref_update_f64 know of each optimizer; `every_optimizer` shows that none is missing. */
typedef struct oracle {
    const char *name; /* first word of its rules below */
    amp_optimizer optimizer;
    int moments; /* SGD: with momentum */
    float beta2;
} oracle;
static const oracle oracles[] = {
    {"adamw", AMP_ADAMW, 2, 0.999f},
    {"adam", AMP_ADAM, 2, 0.999f},
    {"sgd", AMP_SGD, 1, 0.999f},
    {"lion", AMP_LION, 1, 0.99f},
};
#define N_ORACLES (sizeof oracles / sizeof oracles[0])

static const oracle *oracle_of(amp_optimizer optimizer) {
    size_t i;
    for (i = 0; i < N_ORACLES; i++)
        if (oracles[i].optimizer == optimizer) return &oracles[i];
    return NULL;
}
static size_t moments_of(const amp_step_desc *d, amp_optimizer optimizer) {
    if (optimizer == AMP_SGD) return d->momentum != 0.0f;
    return (size_t)oracle_of(optimizer)->moments;
}

static ref_rule rule_of(const amp_step_desc *d, amp_optimizer optimizer) {
    ref_rule r;
    memset(&r, 0, sizeof r);
    r.optimizer = optimizer;
    r.lr = d->lr == (float)AMP_NONE ? 0.0f : d->lr;
    r.beta1 = d->beta1.given ? d->beta1.value : 0.9f;
    r.beta2 = d->beta2.given ? d->beta2.value : oracle_of(optimizer)->beta2;
    r.eps = d->eps.given ? d->eps.value : 1e-8f;
    if (!(r.eps > 0.0f)) r.eps = ldexpf(1.0f, -100); /* as the header says: a weight without gradients stays */
    r.weight_decay = d->weight_decay;
    r.momentum = d->momentum;
    r.dampening = d->dampening;
    r.clip_value = d->clip_value;
    r.nesterov = (int)d->nesterov;
    return r;
}

static void twin_step(t_run *t, twin *tw, const amp_step_desc *d, amp_optimizer optimizer, float inv) {
    ref_rule r = rule_of(d, optimizer);
    ref_consts c;
    size_t i, k;
    tw->steps++;
    c = ref_consts_of(&r, tw->steps);
    tw->norm = twin_norm(t, tw, inv);
    tw->clip = 1.0f;
    if (d->clip_norm > 0.0f) {
        volatile double coef = (double)d->clip_norm / (tw->norm + 1e-6);
        if (coef < 1.0) tw->clip = (float)coef;
    }
    for (i = 0; i < tw->n; i++) {
        twin_param *q = &tw->p[i];
        r.no_decay = q->no_decay;
        for (k = 0; k < q->count; k++) {
            float u = ref_mul(ref_mul(amp_load(q->grad, q->grad_dtype, k), inv), tw->clip);
            ref_update(&r, &c, tw->steps, u, &q->w[k], &q->m[k], &q->v[k]);
            if (q->model_dtype == AMP_F32) continue;
            if (d->stochastic) {
                uint32_t rnd = amp_random(d->seed, (tw->steps << 24) + i, k);
                q->model[k] = (uint16_t)ampi_encode(ref_f32_bits(q->w[k]), q->model_dtype, AMP_STOCHASTIC, rnd, 0);
            } else
                q->model[k] = (uint16_t)ampi_encode(ref_f32_bits(q->w[k]), q->model_dtype, AMP_NEAREST, 0, 0);
            if (!q->has_master) q->w[k] = ref_f32(ampi_decode(q->model[k], q->model_dtype));
        }
    }
}

static void compare(t_run *t, amp_params *p, const twin *tw, size_t moments) {
    size_t i;
    for (i = 0; i < tw->n; i++) {
        const twin_param *q = &tw->p[i];
        char where[sizeof t->note];
        memcpy(where, t->note, sizeof where);
        t_note(t, "%.150s; parameter %d of %d elements", where, (int)i, (int)q->count);
        if (q->has_master) {
            float *w = (float *)set_bits(t, amp_param_get(p, i).master, q->count);
            CHECK_BITS(w, q->w, q->count, 4);
        }
        if (q->model_dtype != AMP_F32) {
            uint16_t *model = (uint16_t *)set_bits(t, amp_param_model(p, i), q->count);
            CHECK_BITS(model, q->model, q->count, 2);
        }
        if (moments > 0) {
            float *m = (float *)set_bits(t, amp_param_get(p, i).moment[0], q->count);
            CHECK_BITS(m, q->m, q->count, 4);
        }
        if (moments > 1) {
            float *v = (float *)set_bits(t, amp_param_get(p, i).moment[1], q->count);
            CHECK_BITS(v, q->v, q->count, 4);
        }
        { /* only read */
            void *grad = set_bits(t, amp_param_grad(p, i), q->count);
            CHECK_BITS(grad, q->grad, q->count, amp_dtype_size(q->grad_dtype));
        }
        memcpy(t->note, where, sizeof where);
    }
}

/* ---- the grid ---- */

static const char *const rule_names[] = {"sgd", "sgd momentum", "sgd momentum dampening", "sgd nesterov decay",
    "sgd decay", "adam", "adam decay", "adamw", "adamw decay", "adamw decay clip_norm", "adam clip_value",
    "sgd clip_norm clip_value", "adamw betas 0", "adamw lr 0", "adam eps 0", "sgd momentum clip_norm", "lion",
    "lion decay clip_norm"};
#define N_RULES (sizeof rule_names / sizeof rule_names[0])

/* The oracle whose name is the rule's first word. */
static const oracle *oracle_of_rule(size_t k) {
    size_t i, n = strcspn(rule_names[k], " ");
    for (i = 0; i < N_ORACLES; i++)
        if (strlen(oracles[i].name) == n && memcmp(oracles[i].name, rule_names[k], n) == 0) return &oracles[i];
    return NULL;
}

static amp_optimizer rule(size_t k, amp_step_desc *d) {
    amp_step_desc zero = AMP_ZERO;
    const char *name = rule_names[k];
    *d = zero;
    d->lr = name[0] == 's' ? 0.05f : 0.003f;
    if (strstr(name, "lr 0")) d->lr = AMP_NONE;
    if (strstr(name, "momentum") || strstr(name, "nesterov")) d->momentum = 0.9f;
    if (strstr(name, "dampening")) d->dampening = 0.3f;
    if (strstr(name, "nesterov")) d->nesterov = 1;
    if (strstr(name, "decay")) d->weight_decay = 0.013f;
    if (strstr(name, "clip_norm")) d->clip_norm = 1.7f;
    if (strstr(name, "clip_value")) d->clip_value = 0.6f;
    if (strstr(name, "betas 0")) {
        d->beta1 = amp_opt(0.0f);
        d->beta2 = amp_opt(0.0f);
        d->eps = amp_opt(1e-3f);
    }
    if (strstr(name, "eps 0")) d->eps = amp_opt(0.0f);
    d->optimizer = oracle_of_rule(k)->optimizer;
    return d->optimizer;
}

/* AMP_OPTIMIZER_LIST has a row for each optimizer, in the order of amp_optimizer; each has an oracle, and rules in the
   grid, one of them with weight decay. */
static void every_optimizer(t_run *t) {
    static const struct {
        amp_optimizer optimizer;
        amp_update_kind kind;
        const char *name;
    } rows[] = {
#define AMP_X(name, kind, decoupled, beta2) {name, kind, #name},
        AMP_OPTIMIZER_LIST(AMP_X)
#undef AMP_X
    };
    size_t i, k;
    CHECK_EQ(sizeof rows / sizeof rows[0], AMP_OPTIMIZER_COUNT);
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const oracle *known = oracle_of(rows[i].optimizer);
        int rules = 0, decays = 0;
        t_note(t, "%s", rows[i].name);
        CHECK_EQ(rows[i].optimizer, i);
        CHECK(known != NULL);
        for (k = 0; k < N_RULES; k++) {
            if (oracle_of_rule(k) != known) continue;
            rules++;
            decays += strstr(rule_names[k], "decay") != NULL;
        }
        CHECK(rules > 0);
        CHECK(decays > 0);
        CHECK(known && amp_moments_of(rows[i].kind, 0.9f) == known->moments);
    }
}

/* `steps` steps of one rule on one kind of set: fused and separate verbs in turn, scale changing by itself, without a
   scaler at the end. */
static void walk(t_run *t, const setup *u, size_t k, int steps) {
    static twin tw;
    amp_step_desc d;
    amp_optimizer o = rule(k, &d);
    amp_scaler_desc sd = AMP_ZERO;
    amp_scaler *s = NULL;
    amp_params *p = make(t, u, &tw);
    int step;
    sd.scale = u->grad == AMP_F8E4M3 ? 24.0f : 1000.0f; /* no power of two: g * (1 / scale) is rounded */
    sd.growth_interval = 2;
    CHECK_OK(amp_scaler_create(&s, t->ctx, &sd));
    for (step = 0; step < steps && p && s; step++) {
        int with = step != 2;
        float scale = with ? t_scale(s) : 1.0f;
        amp_step_record r;
        feed(t, p, &tw, scale);
        t_note(t, "%s, model %s%s, gradients %s, step %d", rule_names[k], amp_dtype_name(u->model),
            u->master == AMP_MASTER_NONE ? " alone" : "", amp_dtype_name(u->grad), step + 1);
        if (step % 2 == 0)
            CHECK_OK(amp_step(p, with ? s : NULL, &d));
        else {
            CHECK_OK(t_update(p, with ? s : NULL, &d, o));
            if (with) CHECK_OK(amp_scaler_update(s));
        }
        twin_step(t, &tw, &d, o, (float)(1.0 / (double)scale));
        compare(t, p, &tw, moments_of(&d, o));
        r = set_poll(t, p);
        CHECK_EQ(r.steps, tw.steps);
        CHECK_EQ(r.outcome, AMP_STEPPED);
        CHECK(r.skip == 0 && r.skipped == 0 && r.nan == 0 && r.inf == 0 && r.overflow == 0);
        CHECK(u->model != AMP_F32 || r.weight_overflow == 0); /* there is no copy that could */
        CHECK_F32(r.scale, scale);
        CHECK_F32(r.inv_scale, (float)(1.0 / (double)scale));
        CHECK_F32(r.clip, tw.clip);
        CHECK_F64(r.norm, with || d.clip_norm > 0.0f ? tw.norm : -1.0);
        CHECK_F32(r.rate[0].lr, d.lr == (float)AMP_NONE ? 0.0f : d.lr);
        if (o != AMP_SGD) {
            ref_rule rr = rule_of(&d, o);
            ref_consts c = ref_consts_of(&rr, tw.steps);
            CHECK_F32(r.rate[0].step_size, c.step);
            CHECK_F32(r.rate[0].rsqrt_bc2, c.rsqrt);
            CHECK_F32(r.rate[0].decay, c.decay);
        }
    }
    amp_scaler_destroy(s);
    amp_params_destroy(p);
    t_clear(t);
}

static void bits_small(t_run *t) { /* every rule x gradient dtype x model dtype, with and without masters */
    static const size_t counts[] = {1, 2, 3, 7, 8, 9, 15, 17, 64, 255, 2047, 2048, 2049}, few[] = {1, 9, 300};
    static const amp_dtype models[3] = {AMP_F16, AMP_BF16, AMP_F32};
    size_t k, g, m;
    for (k = 0; k < N_RULES; k++)
        for (g = 0; g < 5; g++)
            for (m = 0; m < 5; m++) {
                setup u = AMP_ZERO;
                if (!t_full() && (k + g + m) % (t_slow(t) ? 7u : t_twin(t) ? 6u : 2u)) continue;
                u.model = models[m % 3];
                u.grad = ref_dtypes[g];
                u.master = m >= 3 ? AMP_MASTER_NONE : AMP_MASTER_F32;
                u.counts = t_slow(t) ? few : counts;
                u.n = t_slow(t) ? 3 : sizeof counts / sizeof counts[0];
                u.adopt = (int)((k + m) % 2);
                u.no_decay = 1;
                walk(t, &u, k, t_slow(t) ? 3 : 4);
            }
}

static void bits_large(t_run *t) { /* around a chunk of 65,536 elements, and more than one */
    static const size_t counts[] = {65535, 65536, 65537, 5, 140001};
    static const size_t rules[] = {3, 9, 6, 11};
    size_t i;
    for (i = 0; i < 4; i++) {
        setup u = AMP_ZERO;
        if (t_slow(t) && i != 1) continue;
        u.model = i % 2 ? AMP_BF16 : AMP_F16;
        u.grad = i == 2 ? AMP_F32 : AMP_AUTO;
        if (u.grad == AMP_AUTO) u.grad = u.model;
        u.counts = counts;
        u.n = t_slow(t) ? 3 : 5;
        u.adopt = 1;
        u.no_decay = 1;
        walk(t, &u, rules[i], t_slow(t) ? 1 : 2);
    }
}

static void bits_past_the_caches(t_run *t) { /* more than 1 M elements: the CPU updates them in shorter blocks */
    static const size_t counts[] = {1u << 20, 301};
    setup u = AMP_ZERO;
    if (t_slow(t)) {
        t_skip(t, "a million elements, with --full");
        return;
    }
    u.model = AMP_F16;
    u.grad = AMP_F16;
    u.counts = counts;
    u.n = 2;
    u.adopt = 1;
    walk(t, &u, 9, 1);
}

static void bits_many_tensors(t_run *t) {
    static const size_t many[] = {1, 2, 13, 100, 200, 2000};
    static size_t counts[2000];
    size_t i, k;
    for (k = 0; k < 6; k++) {
        setup u = AMP_ZERO;
        for (i = 0; i < many[k]; i++)
            counts[i] = 1 + t_below(t, k == 5 ? 9 : k % 2 ? 50 : 400);
        if (t_slow(t) && (k == 3 || k == 4)) continue;
        u.n = t_slow(t) && k == 5 ? 500 : many[k]; /* --full: all, also on a device */
        u.model = AMP_F16;
        u.grad = AMP_F16;
        u.counts = counts;
        u.adopt = 1;
        u.no_decay = 1;
        walk(t, &u, k == 5 ? 8 : 9, k == 5 ? 1 : 3);
    }
}

/* ---- against an optimizer without rounding ---- */

/* 1,000 steps on FP32 gradients, against the definitions in double (ref_update_f64; tests/torch_steps.py shows that
   they are PyTorch's).
   With e = 2^-24, the error of one rounding, W the largest weight and U the largest update, one step adds at most:
       3 e W                          the weight times its decay, the decay as a float, the subtraction
       4 e U                          the learning rate or step size as a float, the division or product, the square
                                      root, the correction of bias
       3 e U / (1 - b)                the first moment or momentum b: three roundings a step, each remembered for
                                      1 / (1 - b) steps
       2 e U min(n, 1 / (1 - beta2))  Adam's second moment: four roundings a step, remembered likewise, under a root,
                                      hence half
   and n steps add n times that if all errors have one sign. Lion's update is +-lr and has no error, except where its
   sign turns: the gradients here keep away from that. Errors of both signs grow with the root of n instead, hence the
   second, tighter limit n e (W + 8 U), which an error of any rule would break, too. */
static void accuracy(t_run *t) {
    size_t k, i, n = 40;
    int step, steps = t_slow(t) ? 40 : 1000;
    for (k = 0; k < N_RULES; k++) {
        amp_step_desc d;
        amp_optimizer o = rule(k, &d);
        ref_rule r;
        amp_params *p = set_new(t, AMP_F16, AMP_F32, &n, 1);
        float *w = (float *)set_bits(t, amp_param_get(p, 0).master, n), g[40];
        double e[40], m[40] = {0}, v[40] = {0}, largest = 0, weight = 1, worst = 0, strict, tight, memory;
        d.clip_norm = 0.0f;
        r = rule_of(&d, o);
        for (i = 0; i < n; i++)
            e[i] = (double)w[i];
        for (step = 1; step <= steps; step++) {
            for (i = 0; i < n; i++) {
                double before = e[i];
                do
                    g[i] = t_real(t) * 0.1f + (i % 2 ? 0.02f : -0.01f);
                while (o == AMP_LION && fabs((double)r.beta1 * m[i] + (1.0 - (double)r.beta1) * (double)g[i]) < 1e-6);
                ref_update_f64(&r, (uint64_t)step, (double)g[i], &e[i], &m[i], &v[i]);
                largest = fmax(largest, fabs(e[i] - before));
                weight = fmax(weight, fabs(e[i]));
            }
            t_set(t, amp_param_grad(p, 0).data, g, sizeof g);
            if (amp_step(p, NULL, &d) != AMP_OK) CHECK(0);
        }
        memory = 4.0;
        if (o == AMP_SGD) memory += 3.0 / (1.0 - (double)r.momentum);
        if (o == AMP_ADAM || o == AMP_ADAMW)
            memory += 3.0 / (1.0 - (double)r.beta1) + 2.0 * fmin(steps, 1.0 / (1.0 - (double)r.beta2));
        strict = steps * 5.960464477539063e-8 * (3.0 * weight + memory * largest);
        tight = steps * 5.960464477539063e-8 * (weight + 8.0 * largest);
        w = (float *)set_bits(t, amp_param_get(p, 0).master, n);
        for (i = 0; i < n; i++) { /* not fmax: it passes over NaN, and gcc 12 for aarch64 fails on it */
            double off = fabs((double)w[i] - e[i]);
            if (!(off <= worst)) worst = off;
        }
        t_note(t, "%s: error %.3g, bound %.3g, limit %.3g", rule_names[k], worst, strict, tight);
        CHECK(worst <= strict);
        CHECK(worst <= tight);
        amp_params_destroy(p);
        t_clear(t);
    }
}

/* ---- skipping ---- */

/* A bad element anywhere, of each kind, in each dtype: weights, model copies, moments and step count keep their bits,
   the scale follows the rule, and the next good step is exactly the one that would have come. */
static void skip_changes_nothing(t_run *t) {
    static const size_t counts[] = {3, 70000, 130};
    static const struct {
        size_t param, index;
    } places[] = {{0, 0}, {0, 2}, {1, 0}, {1, 65535}, {1, 65536}, {1, 69999}, {2, 129}, {2, 7}};
    static twin tw;
    size_t g, i;
    for (g = 0; g < 5; g++) {
        setup u = AMP_ZERO;
        amp_params *p;
        amp_scaler *s = NULL;
        amp_scaler_desc sd = AMP_ZERO;
        amp_step_desc d;
        uint64_t skipped = 0;
        amp_optimizer o = rule(g % 2 ? 9 : 2, &d);
        if (t_slow(t) && g % 2 == 0) continue;
        u.model = g % 2 ? AMP_F16 : AMP_BF16;
        u.grad = ref_dtypes[g];
        u.counts = counts;
        u.n = 3;
        u.adopt = 1;
        p = make(t, &u, &tw);
        sd.scale = 64.0f;
        sd.min_scale = 0.01f;
        CHECK_OK(amp_scaler_create(&s, t->ctx, &sd));
        feed(t, p, &tw, 1.0f);
        CHECK_OK(amp_step(p, s, &d)); /* one good step first: moments are not zero */
        twin_step(t, &tw, &d, o, 1.0f / 64.0f);
        for (i = 0; i < sizeof places / sizeof places[0]; i++) {
            t_blob before = AMP_ZERO, after = AMP_ZERO;
            int kind = (int)(i + g) % 3; /* Inf, NaN, both */
            amp_step_record r;
            amp_scaler_info info;
            float scale = t_scale(s);
            feed(t, p, &tw, 1.0f);
            if (u.grad == AMP_F8E4M3) kind = 1;                                        /* has no Inf */
            if (kind == 2 && places[i].param == 2 && places[i].index == 129) kind = 0; /* one place cannot hold both */
            set_grad_bits(t, p, places[i].param, places[i].index,
                kind == 0 ? set_inf(u.grad) : set_nan(u.grad) | (u.grad == AMP_F32 ? 0x80000000u : 0u));
            if (kind == 2) set_grad_bits(t, p, 2, 129, set_inf(u.grad)); /* the last element of all, Inf */
            set_blob(t, &before, p, counts, 3);
            if (i % 2)
                CHECK_OK(amp_step(p, s, &d));
            else {
                CHECK_OK(t_update(p, s, &d, o));
                CHECK_OK(amp_scaler_update(s));
            }
            skipped++;
            set_blob(t, &after, p, counts, 3);
            t_note(t, "gradients %s, element %d of parameter %d, kind %d", amp_dtype_name(u.grad), (int)places[i].index,
                (int)places[i].param, kind);
            CHECK_EQ(before.bytes, after.bytes);
            CHECK_BITS(after.data, before.data, before.bytes, 1);
            free(before.data);
            free(after.data);
            r = set_poll(t, p);
            info = set_info(t, s);
            CHECK_F32(info.scale, scale * 0.5f);
            CHECK_EQ(r.outcome, kind == 0 ? AMP_SKIPPED_INF : AMP_SKIPPED_NAN);
            CHECK_EQ(r.skip, 1);
            CHECK_EQ(r.skipped, skipped);
            CHECK_EQ(r.steps, tw.steps);
            CHECK_EQ(r.first_param, places[i].param);
            CHECK_EQ(r.first_index, places[i].index);
            CHECK_EQ(r.nan, kind != 0);
            CHECK_EQ(r.inf, kind != 1);
            CHECK_EQ(r.overflow, 0);
            CHECK(!(r.norm <= 1.7976931348623157e308)); /* Inf or NaN */
            if (i % 3 == 2) { /* a good step: bias correction as if the skipped ones had never been */
                scale = t_scale(s);
                feed(t, p, &tw, scale < 1.0f ? 0.1f : 1.0f);
                CHECK_OK(amp_step(p, s, &d));
                twin_step(t, &tw, &d, o, (float)(1.0 / (double)scale));
                compare(t, p, &tw, moments_of(&d, o));
                CHECK_EQ(set_poll(t, p).outcome, AMP_STEPPED);
                CHECK_EQ(set_poll(t, p).steps, tw.steps);
            }
        }
        amp_scaler_destroy(s);
        amp_params_destroy(p);
        t_clear(t);
    }
}

static void first_step_skipped(t_run *t) { /* momentum's first step is the first taken one */
    size_t n = 5;
    static twin tw;
    setup u = AMP_ZERO;
    amp_step_desc d;
    amp_scaler *s = NULL;
    amp_params *p;
    amp_optimizer o = rule(2, &d);
    u.model = u.grad = AMP_F16;
    u.counts = &n;
    u.n = 1;
    p = make(t, &u, &tw);
    CHECK_OK(amp_scaler_create(&s, t->ctx, NULL));
    feed(t, p, &tw, 1.0f);
    set_grad_bits(t, p, 0, 4, 0x7c00);
    CHECK_OK(amp_step(p, s, &d));
    feed(t, p, &tw, 100.0f);
    CHECK_OK(amp_step(p, s, &d));
    twin_step(t, &tw, &d, o, 1.0f / 32768.0f);
    t_note(t, "after the second call");
    compare(t, p, &tw, 1);
    amp_scaler_destroy(s);
    amp_params_destroy(p);
}

/* ---- fused against separate ---- */

/* FP32 gradients: unscale, clip, update, scaler update give the bits of amp_step. With smaller gradients the separate
   verbs round the gradient on the way, so there only the verbs without unscale and clip are equal. */
static void fused_equals_separate(t_run *t) {
    static const size_t counts[] = {1, 300, 2050, 66000};
    size_t n = t_slow(t) ? 3 : 4, k;
    for (k = 0; k < 4; k++) {
        static const size_t rules[] = {9, 15, 8, 11};
        uint64_t rng = t->rng;
        amp_params *a, *b;
        amp_scaler *s = NULL, *z = NULL;
        amp_scaler_desc sd = AMP_ZERO;
        amp_step_desc d, plain;
        amp_optimizer o = rule(rules[k], &d);
        static twin ta, tb;
        setup u = AMP_ZERO;
        int step;
        t_blob x = AMP_ZERO, y = AMP_ZERO;
        u.model = AMP_F16;
        u.grad = AMP_F32;
        u.counts = counts;
        u.n = n;
        a = make(t, &u, &ta);
        t->rng = rng;
        b = make(t, &u, &tb);
        sd.scale = k % 2 ? 65536.0f : 999.0f;
        sd.growth_interval = 2;
        CHECK_OK(amp_scaler_create(&s, t->ctx, &sd));
        CHECK_OK(amp_scaler_create(&z, t->ctx, &sd));
        plain = d;
        plain.clip_norm = 0;
        for (step = 0; step < 5; step++) {
            double norm = -1;
            rng = t->rng;
            feed(t, a, &ta, 1000.0f);
            t->rng = rng;
            feed(t, b, &tb, 1000.0f);
            if (step == 2) {
                set_grad_bits(t, a, 1, 77, 0x7f800000u);
                set_grad_bits(t, b, 1, 77, 0x7f800000u);
            }
            CHECK_OK(amp_step(a, s, &d));
            CHECK_OK(amp_scaler_unscale(z, b));
            CHECK_OK(amp_grad_norm(b, z, &norm));
            if (d.clip_norm > 0.0f) CHECK_OK(amp_clip(b, z, d.clip_norm, 0.0f));
            CHECK_OK(t_update(b, z, &plain, o));
            CHECK_OK(amp_scaler_update(z));
            t_note(t, "%s, step %d", rule_names[rules[k]], step + 1);
            if (step != 2) CHECK_F64(norm, set_poll(t, a).norm);
            CHECK_EQ(set_poll(t, a).outcome, set_poll(t, b).outcome);
            CHECK_F32(t_scale(s), t_scale(z));
        }
        { /* all but the gradients */
            size_t i;
            for (i = 0; i < n; i++) {
                t_blob_dev(t, &x, amp_param_get(a, i).master.data, 4 * counts[i]);
                t_blob_dev(t, &y, amp_param_get(b, i).master.data, 4 * counts[i]);
                t_blob_dev(t, &x, amp_param_model(a, i).data, 2 * counts[i]);
                t_blob_dev(t, &y, amp_param_model(b, i).data, 2 * counts[i]);
                t_blob_dev(t, &x, amp_param_get(a, i).moment[0].data, 4 * counts[i]);
                t_blob_dev(t, &y, amp_param_get(b, i).moment[0].data, 4 * counts[i]);
            }
        }
        CHECK_BITS(x.data, y.data, x.bytes / 2, 2);
        free(x.data);
        free(y.data);
        amp_scaler_destroy(s);
        amp_scaler_destroy(z);
        amp_params_destroy(a);
        amp_params_destroy(b);
        t_clear(t);
    }
}

/* ---- norm and clipping ---- */

static void norm_rule(t_run *t) {
    static const size_t a[] = {1}, b[] = {2048, 2049}, c[] = {65536, 1, 65537}, d[] = {200000, 8, 131072},
                        e[] = {5, 6, 7, 100, 2047};
    static const struct {
        const size_t *counts;
        size_t n;
    } sets[] = {{a, 1}, {b, 2}, {c, 3}, {d, 3}, {e, 5}};
    static twin tw;
    size_t i, g;
    for (i = 0; i < 5; i++)
        for (g = 0; g < 5; g++) {
            setup u = AMP_ZERO;
            amp_params *p;
            amp_scaler *s = NULL;
            double norm = -7;
            if ((t_slow(t) && (i == 3 || (i + g) % 3)) || (i == 3 && g > 1 && !t_full())) continue;
            u.model = AMP_BF16;
            u.grad = ref_dtypes[g];
            u.counts = sets[i].counts;
            u.n = sets[i].n;
            u.adopt = 1;
            p = make(t, &u, &tw);
            CHECK_OK(amp_scaler_create(&s, t->ctx, NULL));
            feed(t, p, &tw, 40.0f);
            t_note(t, "set %d, %s", (int)i, amp_dtype_name(u.grad));
            CHECK_OK(amp_grad_norm(p, NULL, &norm));
            CHECK_F64(norm, twin_norm(t, &tw, 1.0f));
            CHECK_OK(amp_grad_norm(p, s, &norm));
            CHECK_F64(norm, twin_norm(t, &tw, 1.0f / 65536.0f));
            amp_scaler_destroy(s);
            amp_params_destroy(p);
            t_clear(t);
        }
}

static void norm_stages(t_run *t) { /* in unscaled terms whatever the stage */
    size_t n = 100;
    amp_scaler *s = NULL;
    amp_params *p = set_new(t, AMP_F16, AMP_F32, &n, 1);
    amp_step_desc d = t_rate_0();
    double norm = 0;
    CHECK_OK(amp_scaler_create(&s, t->ctx, NULL));
    set_grad(t, p, 0, n, 65536.0f);
    CHECK_OK(amp_grad_norm(p, s, &norm));
    CHECK_F64(norm, 10.0);
    CHECK_OK(amp_grad_norm(p, NULL, &norm));
    CHECK_F64(norm, 655360.0);
    CHECK_OK(amp_scaler_unscale(s, p));
    CHECK_OK(amp_grad_norm(p, s, &norm));
    CHECK_F64(norm, 10.0);
    CHECK_OK(t_update(p, s, &d, AMP_SGD));
    CHECK_F64(set_poll(t, p).norm, 10.0);
    CHECK_OK(amp_scaler_update(s));
    CHECK_STATUS(amp_grad_norm(p, s, NULL), AMP_ERR_INVALID_ARG, "amp_grad_norm norm");
    CHECK_EQ(amp_grad_norm(NULL, s, &norm), AMP_ERR_INVALID_ARG);
    amp_scaler_destroy(s);
    amp_params_destroy(p);
}

static void norm_extremes(t_run *t) {
    size_t n = 3000;
    amp_params *p = set_new(t, AMP_F16, AMP_F32, &n, 1);
    double norm = 0;
    set_grad(t, p, 0, n, 3.402823466e38f);
    CHECK_OK(amp_grad_norm(p, NULL, &norm));
    CHECK(norm > 1.8e40 && norm < 1.9e40); /* finite: a float sum of squares would be Inf */
    set_grad(t, p, 0, n, 1.401298464e-45f);
    CHECK_OK(amp_grad_norm(p, NULL, &norm));
    CHECK_NEAR(norm, sqrt(3000.0) * ldexp(1.0, -149), 1e-55);
    set_grad(t, p, 0, n, 0.0f);
    set_grad_bits(t, p, 0, 0, 1); /* the smallest of all floats, alone among zeros */
    CHECK_OK(amp_grad_norm(p, NULL, &norm));
    CHECK_F64(norm, ldexp(1.0, -149));
    set_grad(t, p, 0, n, -0.0f);
    CHECK_OK(amp_grad_norm(p, NULL, &norm));
    CHECK_F64(norm, 0.0);
    set_grad_bits(t, p, 0, 2999, 0xff800000u);
    CHECK_OK(amp_grad_norm(p, NULL, &norm));
    CHECK(norm > 1.7976931348623157e308);
    set_grad_bits(t, p, 0, 1, 0x7fc00000u);
    CHECK_OK(amp_grad_norm(p, NULL, &norm));
    CHECK(norm != norm);
    amp_params_destroy(p);
}

/* Each part keeps its own range: of floats around these powers of two, of which some are 0. */
static void norm_ranges(t_run *t) {
    static const int around[] = {0, -62, -49, -51, -75, -126, 62, 64, 100, 120, 126, -1000};
    size_t n = 2048 * 12 - 700, i, k, rounds = 3;
    float *g = (float *)t_host(t, 4 * n);
    amp_params *p = set_new(t, AMP_F16, AMP_F32, &n, 1);
    double norm = 0;
    for (k = 0; k < rounds; k++) {
        for (i = 0; i < n; i++) {
            int e = around[(i / 2048 + 5 * k) % 12];
            g[i] = t_below(t, 3) ? (float)ldexp((double)t_real(t), e + (k ? (int)t_below(t, 3) : 0)) : 0.0f;
            if (amp_is_finite(g[i]) == 0) g[i] = 3e38f;
        }
        if (k == 2) memset(g + 2048, 0, 4 * 2048);
        t_set(t, amp_param_grad(p, 0).data, g, 4 * n);
        CHECK_OK(amp_grad_norm(p, NULL, &norm));
        CHECK_F64(norm, sqrt(ref_squares_chunk(g, n)));
    }
    amp_params_destroy(p);
}

/* What >>backend proves of sums: the error of a sum of squares is below 2^-19 of it. Numbers of one size, which round
   the same way again and again, are the worst; random ones are far better. */
static void norm_error(t_run *t) {
    size_t n = t_slow(t) ? 70000 : 300000, i, k;
    float *g = (float *)t_host(t, 4 * n);
    amp_params *p = set_new(t, AMP_F16, AMP_F32, &n, 1);
    double norm = 0, error, typical = 0;
    for (k = 0; k < 12; k++) {
        long double sum = 0;
        float same = (float)ldexp(1.0 + (double)t_below(t, 1u << 23) / (1u << 23), (int)(7 * k) - 42);
        for (i = 0; i < n; i++) {
            g[i] = k % 2 ? same : t_real(t);
            sum += (long double)g[i] * (long double)g[i];
        }
        t_set(t, amp_param_grad(p, 0).data, g, 4 * n);
        CHECK_OK(amp_grad_norm(p, NULL, &norm));
        error = fabs((double)(((long double)norm * (long double)norm - sum) / sum));
        CHECK(error < ldexp(1.0, -19));
        if (k % 2 == 0 && error > typical) typical = error;
    }
    CHECK(typical < ldexp(1.0, -23));
    amp_params_destroy(p);
}

static void clip_verbs(t_run *t) {
    static const size_t counts[] = {7, 2050, 70000};
    static twin tw;
    size_t g, i, k, n = t_slow(t) ? 2 : 3;
    for (g = 0; g < 5; g++) {
        int mode;
        for (mode = 0; mode < 3; mode++) { /* no scaler; ready; unscaled */
            setup u = AMP_ZERO;
            amp_params *p;
            amp_scaler *s = NULL;
            amp_scaler_desc sd = AMP_ZERO;
            float inv = mode ? 1.0f / 24.0f : 1.0f, coef = 1.0f, limit;
            volatile double c;
            double norm;
            if (t_slow(t) && (g + (size_t)mode) % 2) continue;
            u.model = AMP_F16;
            u.grad = ref_dtypes[g];
            u.counts = counts;
            u.n = n;
            p = make(t, &u, &tw);
            sd.scale = 24.0f;
            CHECK_OK(amp_scaler_create(&s, t->ctx, &sd));
            feed(t, p, &tw, 30.0f);
            if (mode == 2) {
                CHECK_OK(amp_scaler_unscale(s, p));
                for (i = 0; i < n; i++) {
                    for (k = 0; k < counts[i]; k++)
                        amp_store(tw.p[i].grad, u.grad, k, ref_mul(amp_load(tw.p[i].grad, u.grad, k), inv));
                }
                inv = 1.0f;
            }
            norm = twin_norm(t, &tw, inv);
            t_note(t, "gradients %s, mode %d, norm %g", amp_dtype_name(u.grad), mode, norm);
            CHECK_OK(amp_clip(p, mode ? s : NULL, (float)(norm * 2.0), 0.0f)); /* large enough: nothing happens */
            for (i = 0; i < n; i++) {
                void *got = set_bits(t, amp_param_grad(p, i), counts[i]);
                CHECK_BITS(got, tw.p[i].grad, counts[i], amp_dtype_size(u.grad));
            }
            limit = (float)(norm * 0.37);
            c = (double)limit / (norm + 1e-6);
            coef = (float)c;
            CHECK_OK(amp_clip(p, mode ? s : NULL, limit, 0.0f));
            for (i = 0; i < n; i++) {
                void *got = set_bits(t, amp_param_grad(p, i), counts[i]);
                for (k = 0; k < counts[i]; k++)
                    amp_store(tw.p[i].grad, u.grad, k, ref_mul(amp_load(tw.p[i].grad, u.grad, k), coef));
                CHECK_BITS(got, tw.p[i].grad, counts[i], amp_dtype_size(u.grad));
            }
            limit = 0.3f;
            CHECK_OK(amp_clip(p, mode ? s : NULL, 0.0f, limit));
            if (mode == 1) limit = ref_mul(limit, 24.0f);
            for (i = 0; i < n; i++) {
                void *got = set_bits(t, amp_param_grad(p, i), counts[i]);
                for (k = 0; k < counts[i]; k++)
                    amp_store(tw.p[i].grad, u.grad, k, ref_clamp(amp_load(tw.p[i].grad, u.grad, k), limit));
                CHECK_BITS(got, tw.p[i].grad, counts[i], amp_dtype_size(u.grad));
            }
            amp_scaler_destroy(s);
            amp_params_destroy(p);
            t_clear(t);
        }
    }
}

static void clip_nonfinite(t_run *t) {
    size_t n = 10;
    amp_params *p = set_new(t, AMP_F16, AMP_F32, &n, 1);
    float g[10] = {1, 2, 3, 4, 5, -6, 7, 8, -9, 10}, *got;
    g[3] = ref_f32(0x7fc00000);
    t_set(t, amp_param_grad(p, 0).data, g, sizeof g);
    CHECK_OK(amp_clip(p, NULL, 0.1f, 0.0f)); /* norm is NaN: left alone */
    got = (float *)set_bits(t, amp_param_grad(p, 0), n);
    CHECK_BITS(got, g, n, 4);
    g[2] = ref_f32(0xff800000);
    t_set(t, amp_param_grad(p, 0).data, g, sizeof g);
    CHECK_OK(amp_clip(p, NULL, 0.1f, 0.0f));
    got = (float *)set_bits(t, amp_param_grad(p, 0), n);
    CHECK_BITS(got, g, n, 4);
    CHECK_OK(amp_clip(p, NULL, 0.0f, 5.0f)); /* NaN stays NaN, Inf is clamped */
    got = (float *)set_bits(t, amp_param_grad(p, 0), n);
    CHECK(amp_is_nan(got[3]));
    CHECK(got[0] == 1 && got[2] == -5 && got[4] == 5 && got[5] == -5 && got[9] == 5);
    CHECK_STATUS(amp_clip(p, NULL, 0.0f, 0.0f), AMP_ERR_INVALID_ARG, "amp_clip max_norm max_value");
    CHECK_STATUS(amp_clip(p, NULL, -1.0f, 1.0f), AMP_ERR_INVALID_ARG, "amp_clip max_norm");
    CHECK_STATUS(amp_clip(p, NULL, ref_f32(0x7fc00000), 0.0f), AMP_ERR_INVALID_ARG, "amp_clip max_norm");
    CHECK_STATUS(amp_clip(p, NULL, 1.0f, ref_f32(0x7f800000)), AMP_ERR_INVALID_ARG, "amp_clip max_value");
    CHECK_STATUS(amp_clip(p, NULL, 0.0f, -2.0f), AMP_ERR_INVALID_ARG, "amp_clip max_value");
    CHECK_EQ(amp_clip(NULL, NULL, 1.0f, 0.0f), AMP_ERR_INVALID_ARG);
    amp_params_destroy(p);
}

static void clip_both(t_run *t) { /* first by norm, then by value, with one rounding */
    size_t n = 3;
    amp_params *p = set_new(t, AMP_F16, AMP_F32, &n, 1);
    amp_scaler *s = NULL;
    float g[3] = {-6.0f, 4.0f, 1.0f}, want[3], *got, coef;
    volatile double c;
    size_t k;
    CHECK_OK(amp_scaler_create(&s, t->ctx, NULL)); /* scale 65536: the limit is scaled too */
    for (k = 0; k < n; k++)
        g[k] *= 65536.0f;
    t_set(t, amp_param_grad(p, 0).data, g, sizeof g);
    c = 2.0 / (sqrt(53.0) + 1e-6);
    coef = (float)c;
    for (k = 0; k < n; k++)
        want[k] = ref_clamp(ref_mul(g[k], coef), 1.5f * 65536.0f);
    CHECK(want[0] == -1.5f * 65536.0f && want[1] < 1.5f * 65536.0f);
    CHECK_OK(amp_clip(p, s, 2.0f, 1.5f));
    got = (float *)set_bits(t, amp_param_grad(p, 0), n);
    CHECK_BITS(got, want, n, 4);
    g[0] = g[1] = 0.0f; /* the norm is small enough: the limit still holds */
    g[2] = 2.0f * 65536.0f;
    t_set(t, amp_param_grad(p, 0).data, g, sizeof g);
    CHECK_OK(amp_clip(p, s, 100.0f, 1.5f));
    got = (float *)set_bits(t, amp_param_grad(p, 0), n);
    CHECK_F32(got[2], 1.5f * 65536.0f);
    amp_scaler_destroy(s);
    amp_params_destroy(p);
}

/* ---- the rest of the desc ---- */

static void lr_from_memory(t_run *t) {
    size_t n = 6;
    static twin tw;
    setup u = AMP_ZERO;
    amp_step_desc d;
    amp_params *p;
    amp_optimizer o = rule(8, &d);
    float lr = 0.25f;
    void *dev = t_put_at(t, &lr, 4, 4);
    int i;
    u.model = AMP_BF16;
    u.grad = AMP_BF16;
    u.counts = &n;
    u.n = 1;
    p = make(t, &u, &tw);
    for (i = 0; i < 4; i++) {
        amp_step_desc e = d;
        feed(t, p, &tw, 1.0f);
        lr *= 0.5f;
        t_set(t, dev, &lr, 4);
        e.lr = 123.0f; /* not looked at */
        e.lr_ptr = (const float *)dev;
        CHECK_OK(amp_step(p, NULL, &e));
        d.lr = lr;
        twin_step(t, &tw, &d, o, 1.0f);
        t_note(t, "lr %g", (double)lr);
        compare(t, p, &tw, 2);
        CHECK_F32(set_poll(t, p).rate[0].lr, lr);
    }
    amp_params_destroy(p);
}

/* The random numbers are amp_random(seed, (step << 24) + parameter, element), replayed by the twin. */
static void stochastic_models(t_run *t) {
    static const size_t counts[] = {5, 1000, 66000};
    static const struct {
        amp_dtype model;
        amp_master master;
    } c[] = {
        {AMP_F16, AMP_MASTER_F32}, {AMP_BF16, AMP_MASTER_F32}, {AMP_F16, AMP_MASTER_NONE}, {AMP_BF16, AMP_MASTER_NONE}};
    static twin tw;
    size_t k;
    for (k = 0; k < 4; k++) {
        setup u = AMP_ZERO;
        amp_step_desc d;
        amp_params *p;
        amp_optimizer o = rule(k % 2 ? 8 : 1, &d);
        int i;
        u.model = c[k].model;
        u.grad = AMP_F32;
        u.master = c[k].master;
        u.counts = counts;
        u.n = t_slow(t) ? 2 : 3;
        u.adopt = 1;
        p = make(t, &u, &tw);
        d.stochastic = 1;
        d.seed = t_u64(t);
        for (i = 0; i < 3; i++) {
            feed(t, p, &tw, 1.0f);
            CHECK_OK(amp_step(p, NULL, &d));
            twin_step(t, &tw, &d, o, 1.0f);
            t_note(t, "model %s, master %d, step %d", amp_dtype_name(u.model), (int)u.master, i);
            compare(t, p, &tw, moments_of(&d, o));
        }
        amp_params_destroy(p);
        t_clear(t);
    }
}

/* What it is for: BF16 weights alone, updates far below their spacing. */
static void stochastic_keeps_small_updates(t_run *t) {
    size_t n = 4000, i;
    amp_params_desc pd = AMP_ZERO;
    amp_param_desc e = AMP_ZERO;
    int mode;
    for (mode = 0; mode < 2; mode++) {
        amp_params *p = NULL;
        amp_step_desc d = AMP_ZERO;
        float *init = (float *)t_host(t, 4 * n);
        void *bits;
        double mean = 0;
        int step, steps = t_slow(t) ? 20 : 100;
        for (i = 0; i < n; i++)
            init[i] = 1.0f;
        pd.model = AMP_BF16;
        pd.grad = AMP_F32;
        pd.master = AMP_MASTER_NONE;
        pd.moments = AMP_NONE;
        CHECK_OK(amp_params_create(&p, t->ctx, &pd));
        e.count = n;
        e.init = init;
        CHECK_OK(amp_params_add(p, &e));
        CHECK_OK(amp_params_commit(p));
        set_grad(t, p, 0, n, -1.0f);
        d.optimizer = AMP_SGD;
        d.lr = 1e-4f;
        d.stochastic = (uint32_t)mode;
        d.seed = t_u64(t);
        for (step = 0; step < steps; step++)
            CHECK_OK(amp_step(p, NULL, &d));
        bits = set_bits(t, amp_param_model(p, 0), n);
        for (i = 0; i < n; i++)
            mean += (double)amp_load(bits, AMP_BF16, i) / (double)n;
        t_note(t, "stochastic %d: mean %.6f", mode, mean);
        if (mode)
            CHECK_NEAR(mean, 1.0 + 1e-4 * steps, 0.0012); /* sigma of the mean is about 1.4e-4 */
        else
            CHECK_NEAR(mean, 1.0, 1e-9); /* every update was lost */
        amp_params_destroy(p);
        t_clear(t);
    }
}

static void inspect_for_your_own_optimizer(t_run *t) {
    size_t n = 1000;
    static twin tw;
    setup u = AMP_ZERO;
    amp_params *p;
    amp_scaler *s = NULL;
    amp_scaler_desc sd = AMP_ZERO;
    amp_step_desc d;
    amp_step_record r, direct;
    t_blob before = AMP_ZERO, after = AMP_ZERO;
    ref_rule rr;
    ref_consts c;
    int step;
    amp_optimizer o = rule(9, &d);
    u.model = AMP_F16;
    u.grad = AMP_F16;
    u.counts = &n;
    u.n = 1;
    p = make(t, &u, &tw);
    sd.scale = 128;
    CHECK_OK(amp_scaler_create(&s, t->ctx, &sd));
    r = set_poll(t, p);
    CHECK(r.outcome == AMP_NO_STEP && r.steps == 0 && r.skipped == 0 && r.skip == 0);
    rr = rule_of(&d, o);
    set_blob(t, &before, p, &n, 1);
    free(before.data);
    memset(&before, 0, sizeof before);
    for (step = 1; step <= 3; step++) {
        double norm;
        volatile double coef;
        feed(t, p, &tw, 128.0f);
        set_blob(t, &before, p, &n, 1);
        CHECK_OK(amp_inspect(p, s, &d));
        set_blob(t, &after, p, &n, 1);
        CHECK_BITS(after.data, before.data, before.bytes, 1); /* inspecting changes no array */
        free(before.data);
        free(after.data);
        memset(&before, 0, sizeof before);
        memset(&after, 0, sizeof after);
        r = set_poll(t, p);
        t_get(t, &direct, amp_step_record_ptr(p), sizeof direct);
        CHECK_BITS(&direct, &r, sizeof r, 1);
        norm = twin_norm(t, &tw, 1.0f / 128.0f);
        coef = (double)d.clip_norm / (norm + 1e-6);
        c = ref_consts_of(&rr, (uint64_t)step);
        t_note(t, "step %d", step);
        CHECK_EQ(r.steps, step);
        CHECK_EQ(r.outcome, AMP_STEPPED);
        CHECK_F64(r.norm, norm);
        CHECK_F32(r.clip, coef < 1.0 ? (float)coef : 1.0f);
        CHECK_F32(r.inv_scale, 1.0f / 128.0f);
        CHECK_F32(r.scale, 128.0f);
        CHECK_F32(r.rate[0].step_size, c.step);
        CHECK_F32(r.rate[0].rsqrt_bc2, c.rsqrt);
        CHECK_F32(r.rate[0].decay, c.decay);
        CHECK_F32(r.rate[0].lr, d.lr == (float)AMP_NONE ? 0.0f : d.lr);
        CHECK_OK(amp_scaler_update(s));
    }
    set_grad_bits(t, p, 0, 999, 0x7e00);
    CHECK_OK(amp_inspect(p, s, &d));
    r = set_poll(t, p);
    CHECK(r.skip == 1 && r.outcome == AMP_SKIPPED_NAN && r.steps == 3 && r.skipped == 1 && r.first_index == 999);
    CHECK_OK(amp_scaler_update(s));
    CHECK_F32(t_scale(s), 64.0f);
    CHECK_STATUS(amp_step_poll(p, NULL), AMP_ERR_INVALID_ARG, "amp_step_poll out");
    CHECK_STATUS(amp_step_poll(NULL, &r), AMP_ERR_INVALID_ARG, "amp_step_poll");
    amp_scaler_destroy(s);
    amp_params_destroy(p);
}

static void desc_errors(t_run *t) {
    size_t n = 4, i;
    amp_params *p = set_new(t, AMP_F16, AMP_F16, &n, 1), *q = NULL;
    amp_params_desc pd = AMP_ZERO;
    amp_param_desc e = AMP_ZERO;
    amp_step_desc d = AMP_ZERO, zero = AMP_ZERO;
    amp_group group = AMP_ZERO;
    t_blob before = AMP_ZERO, after = AMP_ZERO;
    const float nan = ref_f32(0x7fc00000), inf = ref_f32(0x7f800000);
    struct {
        float *field;
        uint32_t *given;
        const char *name;
        float bad[4];
    } f[10];
    memset(f, 0, sizeof f);
    zero.lr = 0.01f;
    d = zero;
    set_grad(t, p, 0, n, 1.0f);
    set_blob(t, &before, p, &n, 1);
    f[0].field = &d.lr;
    f[0].name = "lr";
    f[0].bad[0] = -1e-9f;
    f[0].bad[1] = inf;
    f[1].field = &d.beta1.value;
    f[1].given = &d.beta1.given;
    f[1].name = "beta1";
    f[1].bad[0] = 1.0f;
    f[1].bad[1] = -0.5f;
    f[2].field = &d.beta2.value;
    f[2].given = &d.beta2.given;
    f[2].name = "beta2";
    f[2].bad[0] = 1.0f;
    f[2].bad[1] = -2.0f;
    f[3].field = &d.eps.value;
    f[3].given = &d.eps.given;
    f[3].name = "eps";
    f[3].bad[0] = -1e-8f;
    f[3].bad[1] = inf;
    f[4].field = &d.weight_decay;
    f[4].name = "weight_decay";
    f[4].bad[0] = -0.1f;
    f[4].bad[1] = inf;
    f[5].field = &d.momentum;
    f[5].name = "momentum";
    f[5].bad[0] = -0.1f;
    f[5].bad[1] = inf;
    f[6].field = &d.dampening;
    f[6].name = "dampening";
    f[6].bad[0] = -0.1f;
    f[6].bad[1] = inf;
    f[7].field = &d.clip_norm;
    f[7].name = "clip_norm";
    f[7].bad[0] = -1.0f;
    f[7].bad[1] = inf;
    f[8].field = &d.clip_value;
    f[8].name = "clip_value";
    f[8].bad[0] = -1.0f;
    f[8].bad[1] = inf;
    for (i = 0; i < 9; i++) {
        size_t k;
        f[i].bad[2] = nan;
        for (k = 0; k < 3; k++) {
            char words[64];
            snprintf(words, sizeof words, "amp_step %s", f[i].name);
            *f[i].field = f[i].bad[k];
            if (f[i].given) *f[i].given = 1;
            CHECK_STATUS(amp_step(p, NULL, &d), AMP_ERR_INVALID_ARG, words);
            d = zero;
        }
    }
    for (i = 1; i <= 3; i++) { /* a bare number in place of amp_opt(x) */
        char words[64];
        snprintf(words, sizeof words, "amp_step %s bare amp_opt(0.5)", f[i].name);
        *f[i].field = 0.5f;
        CHECK_STATUS(amp_step(p, NULL, &d), AMP_ERR_INVALID_ARG, words);
        d = zero;
    }
    d.lr = 0.0f; /* forgotten */
    CHECK_STATUS(amp_step(p, NULL, &d), AMP_ERR_INVALID_ARG, "amp_step desc.lr lr_ptr AMP_NONE");
    CHECK_STATUS(amp_update(p, NULL, &d), AMP_ERR_INVALID_ARG, "amp_update desc.lr");
    CHECK_STATUS(amp_inspect(p, NULL, &d), AMP_ERR_INVALID_ARG, "amp_inspect desc.lr");
    d = zero;
    d.groups = &group;
    d.n_groups = 1;
    CHECK_STATUS(amp_step(p, NULL, &d), AMP_ERR_INVALID_ARG, "amp_step desc.groups[0].lr");
    d = zero;
    CHECK_STATUS(amp_step(p, NULL, NULL), AMP_ERR_INVALID_ARG, "amp_step desc");
    CHECK_STATUS(t_update(p, NULL, NULL, AMP_SGD), AMP_ERR_INVALID_ARG, "amp_update desc");
    CHECK_EQ(amp_step(NULL, NULL, &d), AMP_ERR_INVALID_ARG);
    d._begin = 7;
    CHECK_STATUS(amp_step(p, NULL, &d), AMP_ERR_UNINIT, "amp_step");
    d = zero;
    d._end = 7;
    CHECK_STATUS(t_update(p, NULL, &d, AMP_ADAMW), AMP_ERR_UNINIT, "amp_update");
    d = zero;
    d._begin = 7;
    CHECK_STATUS(amp_inspect(p, NULL, &d), AMP_ERR_UNINIT, "amp_inspect");
    d = zero;
    d.optimizer = AMP_OPTIMIZER_COUNT;
    CHECK_STATUS(amp_step(p, NULL, &d), AMP_ERR_INVALID_ARG, "amp_step optimizer");
    d = zero;
    d.optimizer = AMP_SGD;
    d.nesterov = 1;
    CHECK_STATUS(amp_step(p, NULL, &d), AMP_ERR_INVALID_ARG, "amp_step nesterov momentum");
    d = zero;
    d.nesterov = 1;
    d.momentum = 0.9f;
    d.dampening = 0.1f;
    CHECK_STATUS(t_update(p, NULL, &d, AMP_SGD), AMP_ERR_INVALID_ARG, "amp_update nesterov dampening");
    d = zero;
    set_blob(t, &after, p, &n, 1);
    CHECK_BITS(after.data, before.data, before.bytes, 1);
    CHECK_EQ(set_poll(t, p).steps, 0);
    free(before.data);
    free(after.data);
    t_note(t, "moments that the set does not keep");
    pd.moments = 1;
    CHECK_OK(amp_params_create(&q, t->ctx, &pd));
    e.count = 2;
    CHECK_OK(amp_params_add(q, &e));
    CHECK_OK(amp_params_commit(q));
    CHECK_STATUS(t_update(q, NULL, &d, AMP_ADAM), AMP_ERR_INVALID_ARG, "amp_update moment");
    CHECK_STATUS(amp_step(q, NULL, &d), AMP_ERR_INVALID_ARG, "amp_step moment");
    d.momentum = 0.9f;
    CHECK_OK(t_update(q, NULL, &d, AMP_SGD));
    amp_params_destroy(q);
    pd.moments = AMP_NONE;
    CHECK_OK(amp_params_create(&q, t->ctx, &pd));
    CHECK_OK(amp_params_add(q, &e));
    CHECK_OK(amp_params_commit(q));
    CHECK_STATUS(t_update(q, NULL, &d, AMP_SGD), AMP_ERR_INVALID_ARG, "amp_update moment");
    d.momentum = 0;
    CHECK_OK(t_update(q, NULL, &d, AMP_SGD));
    amp_params_destroy(q);
    amp_params_destroy(p);
}

static void keep_f32_and_mixed_gradients(t_run *t) { /* one set, every kind of parameter in it */
    static twin tw;
    size_t i, k;
    amp_params_desc pd = AMP_ZERO;
    amp_params *p = NULL;
    amp_scaler *s = NULL;
    amp_scaler_desc sd = AMP_ZERO;
    amp_step_desc d;
    amp_optimizer o = rule(9, &d);
    int step;
    memset(&tw, 0, sizeof tw);
    pd.model = AMP_F16;
    pd.grad = AMP_F16;
    CHECK_OK(amp_params_create(&p, t->ctx, &pd));
    tw.n = 10;
    for (i = 0; i < tw.n; i++) {
        amp_param_desc e = AMP_ZERO;
        twin_param *q = &tw.p[i];
        q->count = 100 + i * 37;
        q->model_dtype = i < 5 ? AMP_F16 : AMP_F32;
        q->grad_dtype = ref_dtypes[i % 5];
        q->has_master = 1;
        q->no_decay = i % 2 == 0;
        q->w = (float *)t_host(t, 4 * q->count);
        q->m = (float *)t_host(t, 4 * q->count);
        q->v = (float *)t_host(t, 4 * q->count);
        q->model = (uint16_t *)t_host(t, 2 * q->count);
        q->grad = t_host(t, 4 * q->count);
        for (k = 0; k < q->count; k++)
            q->w[k] = t_real(t);
        for (k = 0; k < q->count; k++)
            q->model[k] = (uint16_t)ref_encode((double)q->w[k], AMP_F16, 0);
        e.count = q->count;
        e.init = q->w;
        e.keep_f32 = i >= 5;
        e.no_decay = (uint32_t)q->no_decay;
        e.grad.dtype = q->grad_dtype;
        CHECK_OK(amp_params_add(p, &e));
    }
    CHECK_OK(amp_params_commit(p));
    sd.scale = 16;
    CHECK_OK(amp_scaler_create(&s, t->ctx, &sd));
    for (step = 0; step < 3; step++) {
        feed(t, p, &tw, 16.0f);
        CHECK_OK(amp_step(p, s, &d));
        twin_step(t, &tw, &d, o, 1.0f / 16.0f);
        t_note(t, "step %d", step);
        compare(t, p, &tw, 2);
        CHECK_F64(set_poll(t, p).norm, tw.norm);
    }
    amp_scaler_destroy(s);
    amp_params_destroy(p);
}

/* A gradient whose square is Inf: the record says so from that step on, and the weight stays where it is. */
typedef struct moment_case {
    amp_optimizer optimizer;
    float g, eps;
    uint32_t count_lost, overflow;
    amp_dtype moment;
} moment_case;
static void moment_overflow_at(t_run *t, const moment_case *c, size_t at, size_t n) {
    amp_params_desc pd = AMP_ZERO;
    amp_param_desc e = AMP_ZERO;
    amp_step_desc d = AMP_ZERO;
    amp_params *p = NULL;
    float *w[2];
    int step;
    pd.model = AMP_BF16;
    pd.grad = AMP_F32;
    pd.moment = c->moment;
    e.count = n;
    CHECK_OK(amp_params_create(&p, t->ctx, &pd));
    CHECK_OK(amp_params_add(p, &e));
    CHECK_OK(amp_params_commit(p));
    d.optimizer = c->optimizer;
    d.lr = 1e-3f;
    d.eps = amp_opt(c->eps);
    d.count_lost = c->count_lost;
    for (step = 0; step < 3; step++) { /* the second one is the one */
        float *g = (float *)t_host(t, 4 * n);
        size_t k;
        for (k = 0; k < n; k++)
            g[k] = k == at && step == 1 ? c->g : 1.0f;
        t_set(t, amp_param_grad(p, 0).data, g, 4 * n);
        w[step & 1] = (float *)t_host(t, 4 * n);
        CHECK_OK(amp_param_read(p, 0, w[step & 1]));
        CHECK_OK(amp_step(p, NULL, &d));
        CHECK_EQ(set_poll(t, p).moment_overflow, step ? c->overflow : 0);
        CHECK_EQ(set_poll(t, p).weight_overflow, 0);
    }
    w[1] = (float *)t_host(t, 4 * n);
    CHECK_OK(amp_param_read(p, 0, w[1]));
    CHECK(n == 1 || w[0][at ? 0 : 1] != w[1][at ? 0 : 1]);
    if (c->overflow) CHECK_F32(w[1][at], w[0][at]);
    amp_params_destroy(p);
}
static void moment_overflow(t_run *t) {
    static const moment_case cases[] = {{AMP_ADAMW, 1.8e19f, 1e-8f, 0, 0, AMP_F32},
        {AMP_ADAMW, 1.9e19f, 1e-8f, 0, 1, AMP_F32}, {AMP_ADAM, -3e38f, 1e-8f, 0, 1, AMP_BF16},
        {AMP_ADAM, 1.9e19f, 0.0f, 0, 1, AMP_F32}, {AMP_ADAMW, 1.9e19f, 1e-8f, 1, 1, AMP_F32},
        {AMP_SGD, 1.9e19f, 1e-8f, 0, 0, AMP_F32}, {AMP_LION, 1.9e19f, 1e-8f, 0, 0, AMP_F32},
        {AMP_ADAMW, NAN, 1e-8f, 0, 0, AMP_F32}};
    static const size_t at[] = {0, 5, 1000, 2050};
    size_t i, k;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (k = 0; k < sizeof at / sizeof at[0]; k++) {
            t_note(t, "case %d, element %d", (int)i, (int)at[k]);
            moment_overflow_at(t, &cases[i], at[k], 2051);
        }
    moment_overflow_at(t, &cases[1], 0, 1);
    moment_overflow_at(t, &cases[1], 69000, 70001);
}

/* Adopted gradients, each one element further behind an aligned address: clipped by value. */
static void clip_anywhere(t_run *t) {
    const size_t n = 2049;
    amp_dtype type;
    size_t k, at;
    for (type = AMP_F32; type < AMP_DTYPE_COUNT; type = (amp_dtype)(type + 1))
        for (at = 0; at < 10; at++) {
            size_t size = amp_dtype_size(type);
            amp_params_desc d = AMP_ZERO;
            amp_param_desc e = AMP_ZERO;
            amp_params *p = NULL;
            void *g = t_host(t, n * size);
            t_fill_real(t, g, type, n, 1.0f);
            d.model = AMP_F16;
            e.count = n;
            e.grad = amp_arr(t_put_at(t, g, n * size, at * size), type);
            CHECK_OK(amp_params_create(&p, t->ctx, &d));
            CHECK_OK(amp_params_add(p, &e));
            CHECK_OK(amp_params_commit(p));
            CHECK_OK(amp_clip(p, NULL, 0.0f, 0.25f));
            for (k = 0; k < n; k++)
                amp_store(g, type, k, ref_clamp(amp_load(g, type, k), 0.25f));
            t_note(t, "%s, element %d of a line", amp_dtype_name(type), (int)at);
            CHECK_BITS(set_bits(t, amp_param_grad(p, 0), n), g, n, size);
            amp_params_destroy(p);
        }
}

/* Adam from moments that no run has, one in eight neighbours: first ones so large, second ones so large or so small, or
   a quotient so small, that the quick ways do not hold. */
static void odd_moments_scenario(t_run *t, t_blob *b, const void *arg) {
    static const int least[5][2] = {{-9, -20}, {20, -20}, {-9, 50}, {-9, -126}, {-126, -9}};
    static const int most[5][2] = {{9, 9}, {126, 9}, {9, 126}, {9, -100}, {-90, 60}};
    const size_t n = 8 * 600;
    size_t k, i;
    int o;
    (void)arg;
    for (o = 0; o < 2; o++) {
        amp_step_desc d = AMP_ZERO;
        amp_params *p = set_one(t, n, AMP_F32);
        amp_param e = amp_param_get(p, 0);
        float *m = (float *)t_host(t, 4 * n), *v = (float *)t_host(t, 4 * n);
        for (k = 0; k < n; k++) {
            m[k] = t_range(t, least[0][0], most[0][0]);
            v[k] = (float)fabs(t_range(t, least[0][1], most[0][1]));
        }
        for (k = 0; k < n; k += 8) {
            i = k / 8 % 5;
            m[k + t_below(t, 8)] = t_range(t, least[i][0], most[i][0]);
            v[k + t_below(t, 8)] = (float)fabs(t_range(t, least[i][1], most[i][1]));
        }
        t_set(t, e.moment[0].data, m, 4 * n);
        t_set(t, e.moment[1].data, v, 4 * n);
        set_grad(t, p, 0, n, 0.5f);
        d.optimizer = o ? AMP_ADAMW : AMP_ADAM;
        d.lr = 1e-3f;
        CHECK_OK(amp_step(p, NULL, &d));
        set_blob_any_nan(t, b, p, &n, 1);
        amp_params_destroy(p);
    }
}
static void odd_moments(t_run *t) { t_same_everywhere(t, odd_moments_scenario, NULL); }

/* A longer run with overflows, clipping, stochastic copies and every verb, compared between contexts byte by byte. */
static void long_run_scenario(t_run *t, t_blob *b, const void *arg) {
    static const size_t counts[] = {3, 2049, 400};
    amp_params *p = set_new(t, AMP_BF16, AMP_F16, counts, 3);
    amp_scaler *s = NULL;
    amp_scaler_desc sd = AMP_ZERO;
    amp_step_desc d;
    amp_step_record r;
    amp_scaler_info info;
    int step;
    (void)arg;
    sd.growth_interval = 3;
    CHECK_OK(amp_scaler_create(&s, t->ctx, &sd));
    (void)rule(9, &d);
    d.stochastic = 1;
    d.seed = 5;
    for (step = 0; step < (t_slow(t) ? 8 : 30); step++) {
        size_t i;
        for (i = 0; i < 3; i++) {
            uint16_t *g = (uint16_t *)t_host(t, 2 * counts[i]);
            t_fill_real(t, g, AMP_F16, counts[i], 9000.0f); /* now and then beyond 65504 */
            t_set(t, amp_param_grad(p, i).data, g, 2 * counts[i]);
        }
        if (step % 5 == 4) set_grad_bits(t, p, 1, t_below(t, 2049), 0x7c00);
        CHECK_OK(amp_step(p, s, &d));
        r = set_poll(t, p);
        info = set_info(t, s);
        t_blob_add(b, &r, sizeof r);
        t_blob_add(b, &info, sizeof info);
    }
    set_blob(t, b, p, counts, 3);
    amp_scaler_destroy(s);
    amp_params_destroy(p);
}
static void long_run_same_everywhere(t_run *t) { t_same_everywhere(t, long_run_scenario, NULL); }

/* SGD's first update is a parameter's own: one whose first gradient comes late gets PyTorch's, without dampening; it
   stays so in a state file; and amp_params_set_steps says that all have had theirs. */
static amp_params *late_set(t_run *t) {
    static const float ones[4] = {1, 1, 1, 1};
    amp_params *p = NULL;
    amp_params_desc d = AMP_ZERO;
    amp_param_desc a = AMP_ZERO;
    d.moments = 1;
    d.model = d.grad = AMP_F32;
    a.count = 4;
    a.init = ones;
    CHECK_OK(amp_params_create(&p, t->ctx, &d));
    CHECK_OK(amp_params_add(p, &a));
    CHECK_OK(amp_params_add(p, &a));
    CHECK_OK(amp_params_commit(p));
    return p;
}
static float late_step(t_run *t, amp_params *p, size_t i, float gradient) { /* returns weight 0 of parameter i */
    float g[4], w[4];
    amp_step_desc d = AMP_ZERO;
    size_t k;
    for (k = 0; k < 4; k++)
        g[k] = gradient;
    for (k = 0; k < 2; k++)
        t_set(t, amp_param_grad(p, k).data, g, sizeof g);
    d.optimizer = AMP_SGD;
    d.lr = 1.0f;
    d.momentum = 0.5f;
    d.dampening = 0.25f;
    CHECK_OK(amp_step(p, NULL, &d));
    CHECK_OK(amp_param_read(p, i, w));
    return w[0];
}
static void late_parameter(t_run *t) {
    static const uint8_t first_only[2] = {1, 0}, second_only[2] = {0, 1};
    amp_params *p = late_set(t), *q = late_set(t);
    amp_state_desc state = AMP_ZERO;
    CHECK_OK(amp_params_use(p, first_only));
    CHECK_F32(late_step(t, p, 0, 0.5f), 0.5f);          /* buf = u */
    CHECK_F32(late_step(t, p, 0, 0.5f), 0.5f - 0.625f); /* buf = 0.5 buf + 0.75 u */
    CHECK_F32(late_step(t, p, 1, 0.5f), 1.0f);          /* left out */
    state.params = &p;
    state.n_params = 1;
    CHECK_OK(amp_state_save(t->ctx, t_file("late"), &state));
    CHECK_OK(amp_params_use(p, NULL));
    CHECK_F32(late_step(t, p, 1, 0.5f), 0.5f);
    CHECK_F32(late_step(t, p, 1, 0.5f), 0.5f - 0.625f);
    CHECK_OK(amp_params_use(p, first_only));
    CHECK_OK(amp_params_use(p, second_only)); /* comes back with its momentum: 0.5 * 0.625 + 0.75 * 0.5 */
    CHECK_F32(late_step(t, p, 1, 0.5f), 0.5f - 0.625f - 0.6875f);
    state.params = &q;
    CHECK_OK(amp_state_load(t->ctx, t_file("late"), &state));
    CHECK_F32(late_step(t, q, 1, 0.5f), 0.5f);
    CHECK_OK(amp_params_set_steps(q, 0));
    CHECK_F32(late_step(t, q, 1, 0.25f), 0.25f); /* again a first one */
    CHECK_OK(amp_params_set_steps(q, 7));
    CHECK_F32(late_step(t, q, 1, 0.5f), 0.25f - 0.5f * 0.25f - 0.375f);
    amp_params_destroy(p);
    amp_params_destroy(q);
    t_clear(t);
}

const t_test t_suite_step[] = {{"step.bits_small", bits_small, T_ALL}, {"step.bits_large", bits_large, T_ALL},
    {"step.bits_past_the_caches", bits_past_the_caches, T_ALL}, {"step.bits_many_tensors", bits_many_tensors, T_ALL},
    {"step.every_optimizer", every_optimizer, T_HOST}, {"step.accuracy", accuracy, T_ALL},
    {"step.skip_changes_nothing", skip_changes_nothing, T_ALL}, {"step.first_step_skipped", first_step_skipped, T_ALL},
    {"step.fused_equals_separate", fused_equals_separate, T_ALL}, {"step.norm_rule", norm_rule, T_ALL},
    {"step.norm_stages", norm_stages, T_ALL}, {"step.norm_extremes", norm_extremes, T_ALL},
    {"step.norm_ranges", norm_ranges, T_ALL}, {"step.norm_error", norm_error, T_ALL},
    {"step.clip_verbs", clip_verbs, T_ALL}, {"step.clip_nonfinite", clip_nonfinite, T_ALL},
    {"step.clip_both", clip_both, T_ALL}, {"step.lr_from_memory", lr_from_memory, T_ALL},
    {"step.stochastic_models", stochastic_models, T_ALL},
    {"step.stochastic_keeps_small_updates", stochastic_keeps_small_updates, T_ALL},
    {"step.inspect_for_your_own_optimizer", inspect_for_your_own_optimizer, T_ALL},
    {"step.desc_errors", desc_errors, T_ALL}, {"step.moment_overflow", moment_overflow, T_ALL},
    {"step.odd_moments", odd_moments, T_ALL}, {"step.clip_anywhere", clip_anywhere, T_ALL},
    {"step.keep_f32_and_mixed_gradients", keep_f32_and_mixed_gradients, T_ALL},
    {"step.long_run_same_everywhere", long_run_same_everywhere, T_ALL}, {"step.late_parameter", late_parameter, T_ALL},
    {NULL, NULL, 0}};
