/* Guards: >>front-step's table of phases, read here as it is: every phase of a set, with and without an open window,
   times every verb. This file has a copy of amp.h of its own (AMP_STATIC), so that it sees the table and a set's phase;
   contexts are the harness's. */
#define AMP_STATIC
#define AMP_NO_SIMD /* in that copy: it computes nothing, and compiles in less time */
#include "set.h"

typedef struct bench {
    amp_params *p;
    amp_scaler *s;
    void *u;
} bench;

static const size_t n_weights = 5;
static const char *const phase_names[AMPI_PHASES] = {
    "ready", "unscaled", "stepped", "inspected", "adding", "adding unscaled", "added", "summed"};

static void bench_new(t_run *t, bench *b) {
    amp_params_desc d = AMP_ZERO;
    amp_param_desc e = AMP_ZERO;
    float u[5] = {1, 2, 3, 4, 5};
    d.accumulate = 1;
    memset(b, 0, sizeof *b);
    CHECK_OK(amp_params_create(&b->p, t->ctx, &d));
    e.count = n_weights;
    CHECK_OK(amp_params_add(b->p, &e));
    CHECK_OK(amp_params_commit(b->p));
    CHECK_OK(amp_scaler_create(&b->s, t->ctx, NULL));
    b->u = t_put(t, u, sizeof u);
}
static void bench_free(bench *b) {
    amp_params_destroy(b->p);
    amp_scaler_destroy(b->s);
}

/* ---- verbs ---- */

typedef amp_status (*verb_fn)(t_run *t, bench *b);

static amp_status do_unscale(t_run *t, bench *b) {
    (void)t;
    return amp_scaler_unscale(b->s, b->p);
}
static amp_status do_update(t_run *t, bench *b) {
    amp_step_desc d = t_rate_0();
    (void)t;
    return amp_update(b->p, b->s, &d);
}
static amp_status do_step(t_run *t, bench *b) {
    amp_step_desc d = t_rate_0();
    (void)t;
    return amp_step(b->p, b->s, &d);
}
static amp_status do_inspect(t_run *t, bench *b) {
    amp_step_desc d = t_rate_0();
    (void)t;
    return amp_inspect(b->p, b->s, &d);
}
static amp_status do_apply(t_run *t, bench *b) {
    (void)t;
    return amp_apply(b->p, 0, amp_arrn(b->u, AMP_F32, n_weights), 1);
}
static amp_status do_accumulate(t_run *t, bench *b) {
    (void)t;
    return amp_accumulate(b->p, b->s, 1);
}
static amp_status do_norm(t_run *t, bench *b) {
    double norm;
    (void)t;
    return amp_grad_norm(b->p, b->s, &norm);
}
static amp_status do_clip(t_run *t, bench *b) {
    (void)t;
    return amp_clip(b->p, b->s, 1.0f, 1.0f);
}
static amp_status do_next(t_run *t, bench *b) { /* something is checked, so that the scaler may move on */
    amp_status st = amp_unscale(b->s, NULL, NULL, NULL, 0);
    (void)t;
    return st == AMP_OK ? amp_scaler_update(b->s) : st;
}
static amp_status do_set_scale(t_run *t, bench *b) {
    (void)t;
    return amp_scaler_set_scale(b->s, 8.0f);
}
static amp_state_desc file_of(bench *b) {
    amp_state_desc d = AMP_ZERO;
    d.params = &b->p;
    d.n_params = 1;
    return d;
}
static amp_status do_save(t_run *t, bench *b) {
    amp_state_desc d = file_of(b);
    return amp_state_save(t->ctx, t_file("phases"), &d);
}
static amp_status do_load(t_run *t, bench *b) {
    amp_state_desc d = file_of(b);
    return amp_state_load(t->ctx, t_file("phases loaded"), &d);
}

typedef struct verb {
    const char *name;
    ampi_verb column;
    int moves; /* 1: the scale moves, so an open window forbids it; 2: but the set's own */
    int keeps; /* 1: the phase stays, whatever the table says */
    verb_fn call;
} verb;
static const verb verbs[] = {{"amp_scaler_unscale", AMPI_DO_UNSCALE, 0, 0, do_unscale},
    {"amp_step", AMPI_DO_STEP, 0, 0, do_step}, {"amp_update", AMPI_DO_STEP, 0, 0, do_update},
    {"amp_inspect", AMPI_DO_INSPECT, 0, 0, do_inspect}, {"amp_apply", AMPI_DO_APPLY, 0, 0, do_apply},
    {"amp_accumulate", AMPI_DO_ACCUMULATE, 0, 0, do_accumulate}, {"amp_grad_norm", AMPI_DO_MEASURE, 0, 0, do_norm},
    {"amp_clip", AMPI_DO_MEASURE, 0, 0, do_clip}, {"amp_scaler_update", AMPI_DO_NEXT, 1, 0, do_next},
    {"amp_scaler_set_scale", AMPI_DO_NEXT, 1, 0, do_set_scale}, {"amp_state_save", AMPI_DO_LOAD, 0, 1, do_save},
    {"amp_state_load", AMPI_DO_LOAD, 0, 0, do_load}};
#define N_VERBS (sizeof verbs / sizeof verbs[0])

/* ---- phases, reached as a program reaches them ---- */

static void enter(t_run *t, bench *b, ampi_phase phase) {
    set_grad(t, b->p, 0, n_weights, 2.0f);
    switch (phase) {
    case AMPI_READY: break;
    case AMPI_UNSCALED: CHECK_OK(do_unscale(t, b)); break;
    case AMPI_STEPPED: CHECK_OK(do_update(t, b)); break;
    case AMPI_INSPECTED: CHECK_OK(do_inspect(t, b)); break;
    case AMPI_ADDING: CHECK_OK(do_accumulate(t, b)); break;
    case AMPI_ADDING_UNSCALED:
        CHECK_OK(do_accumulate(t, b));
        CHECK_OK(do_unscale(t, b));
        break;
    case AMPI_ADDED:
        CHECK_OK(do_accumulate(t, b));
        CHECK_OK(do_inspect(t, b));
        break;
    case AMPI_SUMMED:
        CHECK_OK(do_accumulate(t, b));
        CHECK_OK(do_update(t, b));
        break;
    case AMPI_PHASES: break;
    }
    CHECK_EQ(b->p->phase, phase);
}

/* What the table, and an open window, say of a verb in this phase. NULL: it may be called. */
static const char *refusal(const bench *b, const verb *v) {
    const ampi_rule *rule = &ampi_rules[b->p->phase][v->column];
    if (v->column == AMPI_DO_LOAD && b->p->holds) return "accumulation window";
    if (rule->takes == AMPI_REFUSED) return rule->why;
    return v->moves == 1 && b->p->holds ? "amp_window_begin holds scale" : NULL;
}

static void every_verb_in_every_phase(t_run *t) {
    int phase, window;
    size_t k;
    for (phase = 0; phase < AMPI_PHASES; phase++)
        for (window = 0; window < 2; window++)
            for (k = 0; k < N_VERBS; k++) {
                const verb *v = &verbs[k];
                const char *why;
                ampi_phase next;
                amp_status st;
                bench b;
                bench_new(t, &b);
                if (v->call == do_load) {
                    amp_state_desc d = file_of(&b);
                    CHECK_OK(amp_state_save(t->ctx, t_file("phases loaded"), &d));
                }
                enter(t, &b, (ampi_phase)phase);
                if (window) CHECK_OK(amp_window_begin(b.p, b.s));
                t_note(t, "%s, %s, window %d", phase_names[phase], v->name, window);
                why = refusal(&b, v);
                next = why || v->keeps ? b.p->phase : ampi_rules[phase][v->column].next;
                if (why) {
                    char words[160];
                    snprintf(words, sizeof words, "%s %s", v->name, why);
                    CHECK_STATUS(v->call(t, &b), AMP_ERR_STAGE, words);
                } else {
                    st = v->call(t, &b);
                    CHECK_OK(st);
                }
                if (v->call == do_step && !why) next = ampi_rules[next][AMPI_DO_NEXT].next; /* it moves the scaler on */
                CHECK_EQ(b.p->phase, next);
                /* a step ends the window, a refusal and other verbs leave it */
                CHECK_EQ(b.p->holds, window && (why || (v->column != AMPI_DO_STEP && v->column != AMPI_DO_INSPECT)));
                bench_free(&b);
                t_clear(t);
            }
}

static void another_scaler_sees_it_ready(t_run *t) { /* a phase belongs to the scaler whose iteration it is */
    int phase;
    for (phase = 0; phase < AMPI_PHASES; phase++) {
        ampi_phase seen = ampi_rules[phase][AMPI_DO_NEXT].next;
        amp_scaler *other = NULL;
        bench b;
        bench_new(t, &b);
        CHECK_OK(amp_scaler_create(&other, t->ctx, NULL));
        enter(t, &b, (ampi_phase)phase);
        t_note(t, "%s", phase_names[phase]);
        CHECK(seen == AMPI_READY || seen == AMPI_ADDING);
        CHECK_EQ(ampi_phase_for(b.p, other), seen);
        CHECK_EQ(ampi_phase_for(b.p, NULL), seen);
        CHECK_EQ(ampi_phase_for(b.p, b.s), phase);
        CHECK_OK(amp_accumulate(b.p, other, 1));
        CHECK_EQ(b.p->phase, AMPI_ADDING);
        CHECK(b.p->scaler == other && other->tied == b.p && !b.s->tied);
        amp_scaler_destroy(other);
        bench_free(&b);
        t_clear(t);
    }
}

static void windows(t_run *t) {
    amp_step_desc d = t_rate_0();
    amp_scaler *other = NULL;
    bench a, b;
    bench_new(t, &a);
    bench_new(t, &b);
    CHECK_OK(amp_scaler_create(&other, t->ctx, NULL));
    CHECK_EQ(amp_window_begin(NULL, a.s), AMP_ERR_INVALID_ARG);
    CHECK_EQ(amp_window_end(NULL), AMP_ERR_INVALID_ARG);
    CHECK_OK(amp_window_end(a.p)); /* none is open */

    CHECK_OK(amp_window_begin(a.p, a.s));
    CHECK_STATUS(amp_window_begin(a.p, a.s), AMP_ERR_STAGE, "amp_window_begin open");
    CHECK_STATUS(amp_scaler_set_scale(a.s, 4.0f), AMP_ERR_STAGE, "amp_scaler_set_scale window");
    CHECK_OK(amp_window_end(a.p));
    CHECK_OK(amp_scaler_set_scale(a.s, 4.0f));
    CHECK_OK(amp_window_begin(a.p, a.s)); /* it can be opened again */

    CHECK_OK(amp_window_begin(b.p, a.s)); /* two sets, one scaler: both hold */
    CHECK_STATUS(amp_step(a.p, a.s, &d), AMP_ERR_STAGE, "amp_step different set holds");
    CHECK_OK(amp_window_end(a.p));
    CHECK_STATUS(amp_scaler_set_scale(a.s, 8.0f), AMP_ERR_STAGE, "window");
    CHECK_STATUS(amp_step(a.p, a.s, &d), AMP_ERR_STAGE, "amp_step different set holds");
    CHECK_OK(amp_update(a.p, a.s, &d));
    CHECK_STATUS(amp_update(b.p, other, &d), AMP_ERR_STAGE, "amp_update different scaler"); /* b holds a.s */
    CHECK_OK(amp_update(b.p, a.s, &d));                                                     /* which ends its window */
    CHECK_OK(amp_scaler_update(a.s));
    amp_scaler_destroy(other);
    bench_free(&a);
    bench_free(&b);
}

/* What else a window holds: everything that moves the scale, and which parameters count. */
static void windows_hold(t_run *t) {
    amp_step_desc d = t_rate_0();
    amp_scaler_desc rule = AMP_ZERO;
    amp_state_desc file = AMP_ZERO;
    bench a, b;
    bench_new(t, &a);
    bench_new(t, &b);
    file.scalers = &a.s;
    file.n_scalers = 1;
    CHECK_OK(amp_state_save(t->ctx, t_file("scaler"), &file));
    CHECK_OK(amp_window_begin(a.p, a.s));
    rule.mode = AMP_SCALER_STATIC;
    CHECK_OK(amp_scaler_configure(a.s, &rule)); /* the scale stays */
    rule.mode = AMP_SCALER_OFF;
    CHECK_STATUS(amp_scaler_configure(a.s, &rule), AMP_ERR_STAGE, "amp_scaler_configure amp_window_begin");
    CHECK_F32(t_scale(a.s), 65536.0f);
    CHECK_STATUS(amp_state_load(t->ctx, t_file("scaler"), &file), AMP_ERR_STAGE, "amp_window_begin state.scalers[0]");
    CHECK_STATUS(amp_params_use(a.p, NULL), AMP_ERR_STAGE, "amp_params_use window");
    CHECK_STATUS(amp_params_set_steps(a.p, 5), AMP_ERR_STAGE, "amp_params_set_steps window");
    CHECK_OK(amp_window_end(a.p));
    CHECK_OK(amp_scaler_configure(a.s, &rule));
    t_note(t, "a scaler that is off holds nothing, as NULL");
    CHECK_OK(amp_window_begin(a.p, a.s));
    CHECK_OK(amp_step(b.p, a.s, &d));
    CHECK_OK(amp_window_end(a.p));
    CHECK_OK(amp_step(a.p, b.s, &d));
    CHECK_OK(amp_window_begin(a.p, NULL)); /* nor the scaler of the step before */
    CHECK_OK(amp_scaler_set_scale(b.s, 4.0f));
    bench_free(&a);
    bench_free(&b);
}

/* Two sets accumulate with one scaler, which moves on after each micro-batch: window after window. */
static void two_sets_of_windows(t_run *t) {
    amp_step_desc d = t_rate_0();
    bench a, b;
    int window, batch;
    bench_new(t, &a);
    bench_new(t, &b);
    for (window = 0; window < 3; window++) {
        t_note(t, "window %d", window);
        for (batch = 0; batch < 2; batch++) {
            set_grad(t, a.p, 0, n_weights, 2.0f);
            set_grad(t, b.p, 0, n_weights, 2.0f);
            CHECK_OK(amp_accumulate(a.p, a.s, 1));
            CHECK_OK(amp_accumulate(b.p, a.s, 1));
            CHECK_OK(amp_scaler_update(a.s));
        }
        if (window == 2) CHECK_OK(amp_unscale(a.s, NULL, NULL, NULL, 0)); /* now they are part of an iteration */
        CHECK_OK(amp_update(a.p, a.s, &d));
        CHECK_OK(amp_update(b.p, a.s, &d));
        CHECK_EQ(set_poll(t, a.p).steps, window + 1);
        CHECK_EQ(set_poll(t, b.p).steps, window + 1);
    }
    CHECK_STATUS(amp_accumulate(a.p, a.s, 1), AMP_ERR_STAGE, "stepped already");
    CHECK_OK(amp_scaler_update(a.s));
    CHECK_OK(amp_accumulate(a.p, a.s, 1));
    bench_free(&a);
    bench_free(&b);
}

/* A sum that overflows after its scaler has moved on: the step is skipped, and what is saved then can be loaded. */
static void sum_overflows_late(t_run *t) {
    amp_step_desc d = t_rate_0();
    amp_state_desc file = AMP_ZERO;
    amp_scaler_desc one = AMP_ZERO;
    amp_params_desc pd = AMP_ZERO;
    amp_param_desc e = AMP_ZERO;
    amp_params *p = NULL;
    amp_scaler *s = NULL;
    int batch;
    one.scale = 1.0f;
    pd.accumulate = 1;
    pd.grad = AMP_F32;
    e.count = n_weights;
    CHECK_OK(amp_params_create(&p, t->ctx, &pd));
    CHECK_OK(amp_params_add(p, &e));
    CHECK_OK(amp_params_commit(p));
    CHECK_OK(amp_scaler_create(&s, t->ctx, &one));
    for (batch = 0; batch < 2; batch++) {
        set_grad(t, p, 0, n_weights, 3e38f);
        CHECK_OK(amp_accumulate(p, s, 1));
        CHECK_OK(amp_scaler_update(s));
    }
    CHECK_OK(amp_step(p, s, &d));
    CHECK_EQ(set_poll(t, p).outcome, AMP_SKIPPED_INF);
    file.params = &p;
    file.n_params = 1;
    file.scalers = &s;
    file.n_scalers = 1;
    CHECK_OK(amp_state_save(t->ctx, t_file("late"), &file));
    CHECK_OK(amp_state_load(t->ctx, t_file("late"), &file));
    amp_params_destroy(p);
    amp_scaler_destroy(s);
}

static void scaler_goes_first(t_run *t) { /* destroyed in any phase of a set, with and without an open window */
    int phase, window;
    for (phase = 0; phase < AMPI_PHASES; phase++)
        for (window = 0; window < 2; window++) {
            amp_step_desc d = t_rate_0();
            bench b;
            bench_new(t, &b);
            enter(t, &b, (ampi_phase)phase);
            if (window) CHECK_OK(amp_window_begin(b.p, b.s));
            t_note(t, "%s, window %d", phase_names[phase], window);
            amp_scaler_destroy(b.s);
            b.s = NULL;
            CHECK_EQ(b.p->phase, ampi_rules[phase][AMPI_DO_NEXT].next);
            CHECK(!b.p->holds && !b.p->scaler);
            CHECK_OK(amp_step(b.p, NULL, &d));
            CHECK_OK(amp_window_end(b.p));
            CHECK_OK(amp_scaler_create(&b.s, t->ctx, NULL)); /* perhaps at the old one's address */
            CHECK_OK(amp_step(b.p, b.s, &d));
            bench_free(&b);
            t_clear(t);
        }
}
static void set_goes_first(t_run *t) {
    int phase, window;
    for (phase = 0; phase < AMPI_PHASES; phase++)
        for (window = 0; window < 2; window++) {
            amp_step_desc d = t_rate_0();
            bench b;
            amp_params *q = set_one(t, 3, AMP_F16);
            bench_new(t, &b);
            enter(t, &b, (ampi_phase)phase);
            if (window) CHECK_OK(amp_window_begin(b.p, b.s));
            t_note(t, "%s, window %d", phase_names[phase], window);
            amp_params_destroy(b.p);
            b.p = NULL;
            CHECK(!b.s->tied);
            CHECK_OK(amp_scaler_set_scale(b.s, 4.0f)); /* nobody holds it */
            CHECK_OK(amp_step(q, b.s, &d));
            CHECK_F32(t_scale(b.s), 4.0f);
            amp_params_destroy(q);
            bench_free(&b);
            t_clear(t);
        }
}

static void full_set(t_run *t) { /* an index has 24 bits of a random stream's number: filled here by hand */
    amp_params *p = NULL;
    amp_params_desc d = AMP_ZERO;
    amp_param_desc e = AMP_ZERO;
    CHECK_OK(amp_params_create(&p, t->ctx, &d));
    e.count = n_weights;
    p->n = AMPI_MAX_PARAMS;
    CHECK_STATUS(amp_params_add(p, &e), AMP_ERR_INVALID_ARG, "amp_params_add parameters more");
    p->n = 0;
    CHECK_OK(amp_params_add(p, &e));
    amp_params_destroy(p);
}

/* A window with a scaler that has checked something else begins an iteration of the set, which stepped without one. */
static void a_window_begins_anew(t_run *t) {
    amp_step_desc d = t_rate_0();
    bench b;
    bench_new(t, &b);
    CHECK_OK(amp_step(b.p, NULL, &d));
    CHECK_OK(amp_unscale(b.s, NULL, NULL, NULL, 0));
    CHECK_OK(amp_window_begin(b.p, b.s));
    CHECK_OK(amp_step(b.p, b.s, &d));
    bench_free(&b);
}

const t_test t_suite_phases[] = {{"phases.full_set", full_set, T_ALL},
    {"phases.every_verb_in_every_phase", every_verb_in_every_phase, T_ALL},
    {"phases.another_scaler_sees_it_ready", another_scaler_sees_it_ready, T_ALL}, {"phases.windows", windows, T_ALL},
    {"phases.windows_hold", windows_hold, T_ALL}, {"phases.two_sets_of_windows", two_sets_of_windows, T_ALL},
    {"phases.sum_overflows_late", sum_overflows_late, T_ALL}, {"phases.scaler_goes_first", scaler_goes_first, T_ALL},
    {"phases.set_goes_first", set_goes_first, T_ALL}, {"phases.a_window_begins_anew", a_window_begins_anew, T_ALL},
    {NULL, NULL, 0}};
