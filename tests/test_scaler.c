/* test_scaler.c - the loss scaler: rule, counters, stages, several sets and scalers.
   Guards: >>scaler, docs/semantics.md.

   Rows are named as in the survey of PyTorch (P, U, S), Apex (A, H, L) and MindSpore (M). */
#include "set.h"

/* ---- the rule as a table ---- */

typedef struct row {
    const char *id;
    amp_scaler_mode mode;
    float scale, growth, backoff;
    int32_t interval, hysteresis;
    float min, max;
    uint32_t no_check;
    const char *found; /* one letter per update: 0 nothing, i Inf, n NaN */
    const char *want;  /* after each: scale, or scale/growth tracker, or scale/growth tracker/hysteresis tracker */
} row;

#define D    AMP_SCALER_DYNAMIC
#define TINY 1e-30f /* a floor that is out of the way */
static const row rows[] = {
    {"P1", D, 65536, 2, .5f, 4, 0, 0, 0, 0, "0000", "65536/1 65536/2 65536/3 131072/0"},
    {"P2", D, 65536, 2, .5f, 4, 0, 0, 0, 0, "000i00000000i",
        "65536/1 65536/2 65536/3 32768/0 32768/1 32768/2 32768/3 65536/0 65536/1 65536/2 65536/3 131072/0 65536/0"},
    {"P3", D, 4, 2, .25f, 2, 0, 0, 0, 0, "00n", "4/1 8/0 2/0"},
    {"P4", D, 128, 2, .5f, 1, 0, 0, 0, 0, "00i0", "256/0 512/0 256/0 512/0"},
    {"P5", D, 4, 2, .5f, 2000, 0, 0, 0, 0, "0i0n", "4/1 2/0 2/1 1/0"},
    {"P6", D, 1e38f, 16, .5f, 1, 0, 0, 0, 0, "0", "1e38/0"},
    {"P7", D, 1.70141183e38f, 2, .5f, 2, 0, 0, 0, 0, "0000", "2^127/1 2^127/0 2^127/1 2^127/0"},
    {"P12", D, 1000, 1.5f, .8f, 2, 0, 0, 0, 0, "00i00", "1000/1 1500/0 1200/0 1200/1 1800/0"},
    {"P15, floor out of the way", D, 65536, 2, .5f, 1, 0, TINY, 0, 0, "iiiiiiiiiiiiiiiiiii",
        "32768/0 16384/0 8192/0 4096/0 2048/0 1024/0 512/0 256/0 128/0 64/0 32/0 16/0 8/0 4/0 2/0 1/0 .5/0 .25/0 "
        ".125/0"},
    {"P15, our floor", D, 16, 2, .5f, 1, 0, 0, 0, 0, "iiiiiii", "8/0 4/0 2/0 1/0 1/0 1/0 1/0"},
    {"A1", D, 65536, 2, .5f, 3, 0, 0, 16777216, 0, "000000", "65536/1 65536/2 131072/0 131072/1 131072/2 262144/0"},
    {"A3", D, 4, 2, .5f, 3, 0, 2, 0, 0, "iii000i", "2/0 2/0 2/0 2/1 2/2 4/0 2/0"},
    {"A4", AMP_SCALER_STATIC, 128, 0, 0, 3, 0, 0, 0, 1, "0i0n0i", "128/1 128/2 128/3 128/4 128/5 128/6"},
    {"static, checked", AMP_SCALER_STATIC, 128, 0, 0, 3, 0, 0, 0, 0, "0i0n0i", "128/1 128/0 128/1 128/0 128/1 128/0"},
    {"H1", D, 65536, 2, .5f, 3, 2, 0, 0, 0, "i0ii000iii",
        "65536/0/1 65536/1/2 65536/0/1 32768/0/0 32768/1/2 32768/2/2 65536/0/2 65536/0/1 32768/0/0 16384/0/-1"},
    {"H2", D, 65536, 2, .5f, 3, 1, 0, 0, 0, "i000", "32768/0/0 32768/1/1 32768/2/1 65536/0/1"},
    {"hysteresis 3", D, 64, 2, .5f, 9, 3, 0, 0, 0, "iii0iiii",
        "64/0/2 64/0/1 32/0/0 32/1/3 32/0/2 32/0/1 16/0/0 8/0/-1"},
    {"L1", D, 4294967296.0f, 2, .5f, 3, 0, 0, 0, 0, "ii0000000", "2^31 2^30 2^30 2^30 2^31 2^31 2^31 2^32 2^32"},
    {"M1", D, 1024, 2, .5f, 1, 0, 0, 0, 0, "i0", "512/0 1024/0"},
    {"M2", D, 65536, 2, .5f, 3, 0, 0, 0, 0, "00000i000i",
        "65536/1 65536/2 131072/0 131072/1 131072/2 65536/0 65536/1 65536/2 131072/0 65536/0"},
    {"M6, M7", D, 1024, 2, .5f, 3, 0, 0, 0, 0, "0000i00000", "1024 1024 2048 2048 1024 1024 1024 2048 2048 2048"},
    {"ceiling", D, 8, 4, .5f, 1, 0, 0, 100, 0, "0000i0", "32/0 100/0 100/0 100/0 50/0 100/0"},
    {"floor between steps", D, 8, 2, .25f, 9, 0, 3, 0, 0, "i0i0", "3/0 3/1 3/0 3/1"},
    {"small initial scale is its own floor", D, .25f, 2, .5f, 1, 0, 0, 0, 0, "ii0i0", ".25/0 .25/0 .5/0 .25/0 .5/0"},
    {"never grows", D, 8, 2, .5f, AMP_NONE, 0, 0, 0, 0, "0000i00", "8/1 8/2 8/3 8/4 4/0 4/1 4/2"},
    {"interval 1, growth to the largest float", D, 1e38f, 3, .5f, 1, 0, 0, 0, 0, "00", "3e38/0 3e38/0"},
    {"overflow at once", D, 65536, 2, .5f, 2000, 0, 0, 0, 0, "n", "32768/0/0"},
};
#undef D
#define N_ROWS (sizeof rows / sizeof rows[0])

static const char *read_number(const char *s, double *x) {
    char *end;
    if (s[0] == '2' && s[1] == '^') {
        *x = ldexp(1.0, (int)strtol(s + 2, &end, 10));
        return end;
    }
    *x = strtod(s, &end);
    return end;
}

/* Compares with the k-th entry of a row's text; returns what follows. */
static const char *check_entry(t_run *t, const char *want, float scale, int32_t growth, int32_t hysteresis) {
    double x;
    want = read_number(want, &x);
    CHECK_F32(scale, (float)x);
    if (*want == '/') {
        want = read_number(want + 1, &x);
        CHECK_EQ(growth, x);
    }
    if (*want == '/') {
        want = read_number(want + 1, &x);
        CHECK_EQ(hysteresis, x);
    }
    while (*want == ' ')
        want++;
    return want;
}

static amp_scaler_desc desc_of(const row *r) {
    amp_scaler_desc d = AMP_ZERO;
    d.mode = r->mode;
    d.scale = r->scale;
    d.growth_factor = r->growth;
    d.backoff_factor = r->backoff;
    d.growth_interval = r->interval;
    d.hysteresis = r->hysteresis;
    d.min_scale = r->min;
    d.max_scale = r->max;
    d.no_check = r->no_check;
    return d;
}

static float floor_of(float scale, float min) { /* the lowest scale: 1, or where it begins if that is lower */
    if (min > 0.0f) return min;
    return scale < 1.0f ? scale : 1.0f;
}

static void rule_rows(t_run *t) { /* the function that every backend runs */
    size_t i, k;
    for (i = 0; i < N_ROWS; i++) {
        const row *r = &rows[i];
        const char *want = r->want;
        amp_scaler_state s;
        memset(&s, 0, sizeof s);
        s.scale = r->scale;
        s.growth_factor = r->growth;
        s.backoff_factor = r->backoff;
        s.min_scale = floor_of(r->scale, r->min);
        s.max_scale = r->max != 0.0f ? r->max : ref_f32(0x7f800000);
        s.growth_interval = r->interval;
        s.hysteresis = s.hysteresis_tracker = r->hysteresis ? r->hysteresis : 1;
        s.mode = (uint32_t)r->mode;
        s.dead_after = 10;
        for (k = 0; r->found[k]; k++) {
            s.found = 0;
            if (!r->no_check && r->found[k] == 'i') s.found = AMP_FOUND_INF;
            if (!r->no_check && r->found[k] == 'n') s.found = AMP_FOUND_NAN;
            amp_scaler_next(&s);
            t_note(t, "%s, update %d", r->id, (int)k);
            want = check_entry(t, want, s.scale, s.growth_tracker, s.hysteresis_tracker);
            CHECK_EQ(s.found, 0);
        }
        CHECK_EQ(*want, 0);
    }
    { /* P9: a scale of 0 cannot be made here, and it stays 0 */
        amp_scaler_state s;
        memset(&s, 0, sizeof s);
        s.growth_factor = 2;
        s.backoff_factor = .5f;
        s.growth_interval = 1;
        s.max_scale = 1e38f;
        amp_scaler_next(&s);
        CHECK_F32(s.scale, 0.0f);
        amp_scaler_next(&s);
        CHECK_F32(s.scale, 0.0f);
    }
    { /* trackers stop at the ends of their type */
        amp_scaler_state s;
        memset(&s, 0, sizeof s);
        s.scale = 8;
        s.backoff_factor = .5f;
        s.growth_factor = 2;
        s.max_scale = 1e38f;
        s.growth_tracker = INT32_MAX;
        s.hysteresis = 1;
        amp_scaler_next(&s);
        CHECK_EQ(s.growth_tracker, INT32_MAX);
        s.hysteresis_tracker = INT32_MIN;
        s.found = AMP_FOUND_INF;
        s.stuck = UINT32_MAX;
        s.min_scale = 8;
        amp_scaler_next(&s);
        CHECK_EQ(s.hysteresis_tracker, INT32_MIN);
        CHECK_EQ(s.stuck, UINT32_MAX);
    }
}

/* The gradients of one step: all 1, or one of them bad. */
static void feed(t_run *t, amp_params *p, size_t n, char found) {
    amp_dtype g = amp_param_grad(p, 0).dtype;
    set_grad(t, p, 0, n, 1.0f);
    if (found == 'i') set_grad_bits(t, p, 0, t_below(t, (uint32_t)n), set_inf(g));
    if (found == 'n') set_grad_bits(t, p, 0, t_below(t, (uint32_t)n), set_nan(g));
}

static void rule_verbs(t_run *t) { /* the same rows through the real verbs */
    size_t i, k, n = 5;
    for (i = 0; i < N_ROWS; i++) {
        const row *r = &rows[i];
        const char *want = r->want;
        amp_scaler_desc d = desc_of(r);
        amp_scaler *s = NULL;
        amp_params *p = set_one(t, n, i % 2 ? AMP_F32 : AMP_BF16);
        amp_step_desc sd = t_rate_0();
        uint64_t bad = 0;
        t_note(t, "%s", r->id);
        CHECK_OK(amp_scaler_create(&s, t->ctx, &d));
        if (!s || !p) continue;
        for (k = 0; r->found[k]; k++) {
            amp_scaler_info info;
            amp_step_record rec;
            feed(t, p, n, r->found[k]);
            if ((i + k) % 3 == 0) { /* fused */
                sd.optimizer = AMP_SGD;
                CHECK_OK(amp_step(p, s, &sd));
            } else { /* separate, with or without an unscale of its own */
                if ((i + k) % 3 == 1) CHECK_OK(amp_scaler_unscale(s, p));
                CHECK_OK(t_update(p, s, &sd, AMP_SGD));
                CHECK_OK(amp_scaler_update(s));
            }
            info = set_info(t, s);
            rec = set_poll(t, p);
            if (r->no_check)
                bad = 0;
            else
                bad += r->found[k] != '0';
            t_note(t, "%s, update %d", r->id, (int)k);
            want = check_entry(t, want, info.scale, info.growth_tracker, info.hysteresis_tracker);
            CHECK_F32(t_scale(s), info.scale);
            CHECK_EQ(info.bad, bad);
            CHECK_EQ(info.good, k + 1 - bad);
            if (r->found[k] == '0' || r->no_check)
                CHECK_EQ(rec.outcome, AMP_STEPPED);
            else
                CHECK_EQ(rec.outcome, r->found[k] == 'i' ? AMP_SKIPPED_INF : AMP_SKIPPED_NAN);
            CHECK_EQ(rec.steps, k + 1 - bad);
            CHECK_EQ(rec.skipped, bad);
        }
        CHECK_EQ(*want, 0);
        amp_scaler_destroy(s);
        amp_params_destroy(p);
        t_clear(t);
    }
}

/* Random rules and random overflows against the rule written once more, in double. */
static void random_walk(t_run *t) {
    int round, step, rounds = t_slow(t) ? 3 : 12;
    for (round = 0; round < rounds; round++) {
        amp_scaler_desc d = AMP_ZERO;
        amp_scaler *s = NULL;
        amp_params *p = set_one(t, 3, AMP_F16);
        amp_step_desc sd = t_rate_0();
        float scale, lo, hi;
        int tracker = 0, hyst;
        uint64_t good = 0, bad = 0, bad_nan = 0, bad_inf = 0, row_of_bad = 0;
        d.scale = (float)ldexp(1.0, (int)t_below(t, 20)) * (t_below(t, 2) ? 1.0f : 1.3f);
        d.growth_factor = t_below(t, 2) ? 0.0f : 1.0f + (float)t_unit(t) * 3.0f + 0.01f;
        d.backoff_factor = t_below(t, 2) ? 0.0f : 0.05f + 0.9f * (float)t_unit(t);
        d.growth_interval = (int32_t)t_below(t, 5) + 1;
        d.hysteresis = (int32_t)t_below(t, 4);
        d.min_scale = t_below(t, 2) ? 0.0f : d.scale * 0.25f;
        d.max_scale = t_below(t, 2) ? 0.0f : d.scale * 8.0f;
        CHECK_OK(amp_scaler_create(&s, t->ctx, &d));
        if (!s || !p) continue;
        scale = d.scale;
        lo = floor_of(scale, d.min_scale);
        hi = d.max_scale > 0.0f ? d.max_scale : 3.4028235e38f;
        hyst = d.hysteresis ? d.hysteresis : 1;
        for (step = 0; step < (t_slow(t) ? 40 : 150); step++) {
            static const char kinds[] = "00000inn";
            char kind = kinds[t_below(t, 8)];
            amp_scaler_info info;
            feed(t, p, 3, kind);
            CHECK_OK(t_update(p, s, &sd, AMP_SGD));
            CHECK_OK(amp_scaler_update(s));
            if (kind == '0') {
                double next;
                good++;
                row_of_bad = 0;
                hyst = d.hysteresis ? d.hysteresis : 1;
                if (++tracker >= d.growth_interval) {
                    tracker = 0;
                    next = (double)scale * (double)(d.growth_factor > 0.0f ? d.growth_factor : 2.0f);
                    if (next < 3.4028235e38) scale = (float)next < hi ? (float)next : hi;
                }
            } else {
                bad++;
                row_of_bad++;
                bad_nan += kind == 'n';
                bad_inf += kind == 'i';
                tracker = 0;
                if (--hyst <= 0) {
                    scale = (float)((double)scale * (double)(d.backoff_factor > 0.0f ? d.backoff_factor : 0.5f));
                    if (scale < lo) scale = lo;
                }
            }
            info = set_info(t, s);
            t_note(t, "round %d, step %d (%c)", round, step, kind);
            CHECK_F32(info.scale, scale);
            CHECK_EQ(info.growth_tracker, tracker);
            CHECK_EQ(info.hysteresis_tracker, hyst);
            CHECK_EQ(info.good, good);
            CHECK_EQ(info.bad, bad);
            CHECK_EQ(info.bad_in_a_row, row_of_bad);
            CHECK_EQ(info.bad_nan, bad_nan);
            CHECK_EQ(info.bad_inf, bad_inf);
            CHECK_EQ(info.bad_overflow, 0);
        }
        amp_scaler_destroy(s);
        amp_params_destroy(p);
        t_clear(t);
    }
}

/* ---- creation and settings ---- */

static void defaults(t_run *t) {
    amp_scaler *s = NULL;
    amp_scaler_info i, off;
    float scale = 0;
    amp_scaler_desc d = AMP_ZERO;
    int k;
    for (k = 0; k < 2; k++) {
        CHECK_OK(amp_scaler_create(&s, t->ctx, k ? &d : NULL));
        i = set_info(t, s);
        CHECK_F32(i.scale, 65536.0f);
        CHECK(i.growth_tracker == 0 && i.hysteresis_tracker == 1 && i.dead == 0 && i.good == 0 && i.bad == 0 &&
            i.bad_in_a_row == 0);
        CHECK(i.bad_nan == 0 && i.bad_inf == 0 && i.bad_overflow == 0);
        CHECK_F32(t_scale(s), 65536.0f);
        CHECK(amp_scaler_scale_ptr(s) != NULL);
        t_get(t, &scale, amp_scaler_scale_ptr(s), 4);
        CHECK_F32(scale, 65536.0f);
        amp_scaler_destroy(s);
    }
    /* no scaler tells what one that is off tells */
    memset(&i, 0, sizeof i);
    memset(&off, 0, sizeof off);
    d.mode = AMP_SCALER_OFF;
    CHECK_OK(amp_scaler_create(&s, t->ctx, &d));
    CHECK_OK(amp_scaler_get(s, &off));
    CHECK_OK(amp_scaler_get(NULL, &i));
    CHECK_F32(i.scale, 1.0f);
    CHECK_BITS(&i, &off, sizeof i, 1);
    amp_scaler_destroy(s);
    amp_scaler_destroy(NULL);
}

/* Twice the scale after 2000 good updates in a row, half of it at once, on the host's copy of the rule. */
static void defaults_of_the_rule(t_run *t) {
    amp_scaler *s = NULL;
    amp_params *p = set_one(t, 1, AMP_F32);
    amp_step_desc sd = t_rate_0();
    int i, n = t_slow(t) ? 0 : 2000;
    CHECK_OK(amp_scaler_create(&s, t->ctx, NULL));
    set_grad(t, p, 0, 1, 1.0f);
    for (i = 0; i < n; i++) {
        CHECK_F32(t_scale(s), 65536.0f);
        if (t_update(p, s, &sd, AMP_SGD) != AMP_OK || amp_scaler_update(s) != AMP_OK) CHECK(0);
    }
    if (n) CHECK_F32(t_scale(s), 131072.0f);
    set_grad_bits(t, p, 0, 0, set_inf(AMP_F32));
    CHECK_OK(t_update(p, s, &sd, AMP_SGD));
    CHECK_OK(amp_scaler_update(s));
    CHECK_F32(t_scale(s), n ? 65536.0f : 32768.0f);
    amp_scaler_destroy(s);
    amp_params_destroy(p);
}

static amp_scaler *const junk = (amp_scaler *)(uintptr_t)8;

static void refuse(t_run *t, const amp_scaler_desc *d, amp_status status, const char *words) {
    amp_scaler *s = junk;
    CHECK_STATUS(amp_scaler_create(&s, t->ctx, d), status, words);
    CHECK(s == NULL);
}

static void create_errors(t_run *t) {
    static const float bad_scales[] = {-1.0f, -0.5f, 2.938735877e-39f /* 2^-128 */, 1e-45f, 1e-40f};
    static const struct {
        float growth, backoff;
        const char *words;
    } bad_factors[] = {{1.0f, 0, "growth_factor"}, {0.5f, 0, "growth_factor"}, {-2.0f, 0, "growth_factor"},
        {0, 1.0f, "backoff_factor"}, {0, 1.5f, "backoff_factor"}, {0, -0.5f, "backoff_factor"}};
    const float inf = ref_f32(0x7f800000), nan = ref_f32(0x7fc00000);
    amp_scaler_desc d = AMP_ZERO, zero = AMP_ZERO;
    amp_scaler *s = junk;
    size_t i;
    CHECK_EQ(amp_scaler_create(NULL, t->ctx, &d), AMP_ERR_INVALID_ARG);
    CHECK_EQ(amp_scaler_create(&s, NULL, &d), AMP_ERR_INVALID_ARG);
    CHECK(s == NULL);
    s = junk;
    CHECK_EQ(amp_scaler_create_checked(&s, t->ctx, AMP_VERSION + 1, sizeof d, &d), AMP_ERR_VERSION);
    CHECK(s == NULL);
    s = junk;
    CHECK_EQ(amp_scaler_create_checked(&s, t->ctx, AMP_VERSION, sizeof d + 1, &d), AMP_ERR_VERSION);
    CHECK(s == NULL);
    d._begin = 1;
    refuse(t, &d, AMP_ERR_UNINIT, "amp_scaler_create");
    d = zero;
    d._end = 1;
    refuse(t, &d, AMP_ERR_UNINIT, "amp_scaler_create");
    d = zero;
    d.flags = 1;
    refuse(t, &d, AMP_ERR_INVALID_ARG, "amp_scaler_create flags");
    d = zero;
    d.mode = (amp_scaler_mode)3;
    refuse(t, &d, AMP_ERR_INVALID_ARG, "amp_scaler_create mode");
    d = zero;
    for (i = 0; i < sizeof bad_scales / sizeof bad_scales[0]; i++) {
        t_note(t, "scale %a", (double)bad_scales[i]);
        d.scale = bad_scales[i];
        refuse(t, &d, AMP_ERR_INVALID_ARG, "amp_scaler_create scale");
        d = zero;
    }
    t_note(t, " ");
    d.scale = inf;
    refuse(t, &d, AMP_ERR_INVALID_ARG, "amp_scaler_create scale");
    d = zero;
    d.scale = nan;
    refuse(t, &d, AMP_ERR_INVALID_ARG, "amp_scaler_create scale");
    d = zero;
    for (i = 0; i < sizeof bad_factors / sizeof bad_factors[0]; i++) {
        d.growth_factor = bad_factors[i].growth;
        d.backoff_factor = bad_factors[i].backoff;
        refuse(t, &d, AMP_ERR_INVALID_ARG, bad_factors[i].words);
        d = zero;
    }
    d.growth_factor = d.backoff_factor = -0.0f; /* a zero asks for the default, whatever its sign */
    d.min_scale = d.max_scale = d.scale = -0.0f;
    CHECK_OK(amp_scaler_create(&s, t->ctx, &d));
    amp_scaler_destroy(s);
    d = zero;
    d.growth_factor = nan;
    refuse(t, &d, AMP_ERR_INVALID_ARG, "growth_factor");
    d = zero;
    d.growth_factor = inf;
    refuse(t, &d, AMP_ERR_INVALID_ARG, "growth_factor");
    d = zero;
    d.backoff_factor = nan;
    refuse(t, &d, AMP_ERR_INVALID_ARG, "backoff_factor");
    d = zero;
    d.growth_interval = -2;
    refuse(t, &d, AMP_ERR_INVALID_ARG, "growth_interval");
    d = zero;
    d.hysteresis = -1;
    refuse(t, &d, AMP_ERR_INVALID_ARG, "hysteresis");
    d = zero;
    d.min_scale = -1;
    refuse(t, &d, AMP_ERR_INVALID_ARG, "min_scale");
    d = zero;
    d.min_scale = nan;
    refuse(t, &d, AMP_ERR_INVALID_ARG, "min_scale");
    d = zero;
    d.min_scale = 65537;
    refuse(t, &d, AMP_ERR_INVALID_ARG, "min_scale");
    d = zero;
    d.max_scale = 65535;
    refuse(t, &d, AMP_ERR_INVALID_ARG, "max_scale");
    d = zero;
    d.max_scale = -1;
    refuse(t, &d, AMP_ERR_INVALID_ARG, "max_scale");
    d = zero;
    d.max_scale = nan;
    refuse(t, &d, AMP_ERR_INVALID_ARG, "max_scale");
    d = zero;
    d.min_scale = d.max_scale = 65536;
    CHECK_OK(amp_scaler_create(&s, t->ctx, &d));
    amp_scaler_destroy(s);
    d = zero;
    d.scale = ref_f32(0x00200001); /* just above 2^-128: its reciprocal is finite */
    CHECK_OK(amp_scaler_create(&s, t->ctx, &d));
    CHECK_F32(t_scale(s), d.scale);
    amp_scaler_destroy(s);
    CHECK_EQ(amp_scaler_get(NULL, NULL), AMP_ERR_INVALID_ARG);
}

static void set_scale(t_run *t) {
    amp_scaler_desc d = AMP_ZERO;
    amp_scaler *s = NULL;
    amp_params *p = set_one(t, 2, AMP_F32);
    amp_step_desc sd = t_rate_0();
    amp_scaler_info i;
    static const float bad[] = {0.0f, -1.0f, 2.938735877e-39f, 1e-42f};
    size_t k;
    d.scale = 8;
    d.growth_interval = 5;
    d.max_scale = 32;
    CHECK_OK(amp_scaler_create(&s, t->ctx, &d));
    set_grad(t, p, 0, 2, 1.0f);
    for (k = 0; k < 2; k++) {
        CHECK_OK(t_update(p, s, &sd, AMP_SGD));
        CHECK_OK(amp_scaler_update(s));
    }
    CHECK_OK(amp_scaler_set_scale(s, 5.0f)); /* P19 */
    i = set_info(t, s);
    CHECK_F32(i.scale, 5.0f);
    CHECK_EQ(i.growth_tracker, 2);
    for (k = 0; k < 4; k++)
        CHECK_STATUS(amp_scaler_set_scale(s, bad[k]), AMP_ERR_INVALID_ARG, "amp_scaler_set_scale scale");
    CHECK_STATUS(amp_scaler_set_scale(s, ref_f32(0x7f800000)), AMP_ERR_INVALID_ARG, "amp_scaler_set_scale scale");
    CHECK_STATUS(amp_scaler_set_scale(s, ref_f32(0x7fc00000)), AMP_ERR_INVALID_ARG, "amp_scaler_set_scale scale");
    CHECK_F32(t_scale(s), 5.0f);
    t_note(t, "the floor goes down with it");
    CHECK_OK(amp_scaler_set_scale(s, 0.25f));
    set_grad_bits(t, p, 0, 0, set_inf(AMP_F32));
    CHECK_OK(t_update(p, s, &sd, AMP_SGD));
    CHECK_OK(amp_scaler_update(s));
    CHECK_F32(t_scale(s), 0.25f);
    t_note(t, "the ceiling goes up with it");
    CHECK_OK(amp_scaler_set_scale(s, 100.0f));
    set_grad(t, p, 0, 2, 1.0f);
    for (k = 0; k < 5; k++) {
        CHECK_OK(t_update(p, s, &sd, AMP_SGD));
        CHECK_OK(amp_scaler_update(s));
    }
    CHECK_F32(t_scale(s), 100.0f);
    t_note(t, "it clears stages and what was found");
    set_grad_bits(t, p, 0, 0, set_inf(AMP_F32));
    CHECK_OK(t_update(p, s, &sd, AMP_SGD));
    CHECK_OK(amp_scaler_set_scale(s, 10.0f));
    CHECK_STATUS(amp_scaler_update(s), AMP_ERR_STAGE, "amp_scaler_update");
    set_grad(t, p, 0, 2, 1.0f);
    CHECK_OK(t_update(p, s, &sd, AMP_SGD));
    CHECK_OK(amp_scaler_update(s));
    CHECK_F32(t_scale(s), 10.0f); /* the Inf of before is forgotten */
    amp_scaler_destroy(s);
    amp_params_destroy(p);
}

/* A smaller hysteresis: fewer overflows are left than before, so the first one backs off. */
static void configure_hysteresis(t_run *t) {
    amp_scaler_desc d = AMP_ZERO, e = AMP_ZERO;
    amp_scaler *s = NULL;
    amp_params *p = set_one(t, 2, AMP_F16);
    amp_step_desc sd = t_rate_0();
    d.scale = 64;
    d.hysteresis = 3;
    CHECK_OK(amp_scaler_create(&s, t->ctx, &d));
    CHECK_EQ(set_info(t, s).hysteresis_tracker, 3);
    CHECK_OK(amp_scaler_configure(s, &e)); /* hysteresis 0 is 1 */
    CHECK_EQ(set_info(t, s).hysteresis_tracker, 1);
    set_grad_bits(t, p, 0, 1, set_nan(AMP_F16));
    CHECK_OK(t_update(p, s, &sd, AMP_SGD));
    CHECK_OK(amp_scaler_update(s));
    CHECK_F32(t_scale(s), 32.0f);
    amp_scaler_destroy(s);
    amp_params_destroy(p);
}

static void configure(t_run *t) {
    amp_scaler_desc d = AMP_ZERO, e = AMP_ZERO;
    amp_scaler *s = NULL;
    amp_params *p = set_one(t, 2, AMP_F16);
    amp_step_desc sd = t_rate_0();
    amp_scaler_info i;
    int k;
    d.scale = 64;
    d.growth_interval = 100;
    CHECK_OK(amp_scaler_create(&s, t->ctx, &d));
    set_grad(t, p, 0, 2, 1.0f);
    for (k = 0; k < 7; k++) {
        CHECK_OK(t_update(p, s, &sd, AMP_SGD));
        CHECK_OK(amp_scaler_update(s));
    }
    e.growth_interval = 3;
    e.growth_factor = 4.0f;
    e.backoff_factor = 0.25f;
    CHECK_OK(amp_scaler_configure(s, &e));
    i = set_info(t, s);
    CHECK_F32(i.scale, 64.0f);
    CHECK_EQ(i.growth_tracker, 7);
    CHECK_EQ(i.good, 7);
    t_note(t, "the tracker is beyond the new interval: it grows at the next good update (>=, where PyTorch tests ==)");
    CHECK_OK(t_update(p, s, &sd, AMP_SGD));
    CHECK_OK(amp_scaler_update(s));
    i = set_info(t, s);
    CHECK_F32(i.scale, 256.0f);
    CHECK_EQ(i.growth_tracker, 0);
    set_grad_bits(t, p, 0, 1, set_nan(AMP_F16));
    CHECK_OK(t_update(p, s, &sd, AMP_SGD));
    CHECK_OK(amp_scaler_update(s));
    CHECK_F32(t_scale(s), 64.0f);
    t_note(t, "to static");
    memset(&e, 0, sizeof e);
    e.mode = AMP_SCALER_STATIC;
    CHECK_OK(amp_scaler_configure(s, &e));
    CHECK_OK(t_update(p, s, &sd, AMP_SGD));
    CHECK_OK(amp_scaler_update(s));
    CHECK_F32(t_scale(s), 64.0f);
    CHECK_EQ(set_info(t, s).bad, 2);
    t_note(t, "errors");
    e.scale = 8;
    CHECK_STATUS(amp_scaler_configure(s, &e), AMP_ERR_INVALID_ARG, "amp_scaler_configure scale");
    e.scale = 0;
    e.growth_factor = 0.5f;
    CHECK_STATUS(amp_scaler_configure(s, &e), AMP_ERR_INVALID_ARG, "amp_scaler_configure growth_factor");
    e.growth_factor = 0;
    e._end = 3;
    CHECK_STATUS(amp_scaler_configure(s, &e), AMP_ERR_UNINIT, "amp_scaler_configure");
    CHECK_EQ(amp_scaler_configure(NULL, &d), AMP_ERR_INVALID_ARG);
    CHECK_STATUS(amp_scaler_configure(s, NULL), AMP_ERR_INVALID_ARG, "amp_scaler_configure desc");
    CHECK_F32(t_scale(s), 64.0f);
    amp_scaler_destroy(s);
    amp_params_destroy(p);
}

static void dead(t_run *t) { /* overflows that cannot lower the scale any more */
    static const struct {
        amp_scaler_mode mode;
        uint32_t after, want;
    } c[] = {
        {AMP_SCALER_DYNAMIC, 0, 10}, {AMP_SCALER_DYNAMIC, 3, 3}, {AMP_SCALER_STATIC, 0, 10}, {AMP_SCALER_STATIC, 1, 1}};
    size_t k;
    for (k = 0; k < 4; k++) {
        amp_scaler_desc d = AMP_ZERO;
        amp_scaler *s = NULL;
        amp_params *p = set_one(t, 2, AMP_F32);
        amp_step_desc sd = t_rate_0();
        uint32_t i;
        d.mode = c[k].mode;
        d.scale = 2;
        d.dead_after = c[k].after;
        CHECK_OK(amp_scaler_create(&s, t->ctx, &d));
        set_grad_bits(t, p, 0, 1, set_inf(AMP_F32));
        if (c[k].mode == AMP_SCALER_DYNAMIC) { /* the first one does lower it: 2 to 1 */
            CHECK_OK(t_update(p, s, &sd, AMP_SGD));
            CHECK_OK(amp_scaler_update(s));
            CHECK_F32(t_scale(s), 1.0f);
        }
        for (i = 1; i <= c[k].want + 2; i++) {
            CHECK_OK(t_update(p, s, &sd, AMP_SGD));
            CHECK_OK(amp_scaler_update(s));
            t_note(t, "row %d, overflow %d", (int)k, (int)i);
            CHECK_EQ(set_info(t, s).dead, i >= c[k].want);
        }
        set_grad(t, p, 0, 2, 1.0f); /* and it comes back to life */
        CHECK_OK(t_update(p, s, &sd, AMP_SGD));
        CHECK_OK(amp_scaler_update(s));
        CHECK_EQ(set_info(t, s).dead, 0);
        if (c[k].mode == AMP_SCALER_DYNAMIC) { /* an overflow that does lower the scale starts the count again */
            amp_scaler_desc e = AMP_ZERO;
            amp_scaler_info revived;
            set_grad_bits(t, p, 0, 1, set_inf(AMP_F32));
            for (i = 1; i < c[k].want; i++) {
                CHECK_OK(t_update(p, s, &sd, AMP_SGD));
                CHECK_OK(amp_scaler_update(s));
            }
            CHECK_EQ(set_info(t, s).dead, 0);
            e.min_scale = 0.5f;
            e.dead_after = c[k].after; /* one step further down */
            CHECK_OK(amp_scaler_configure(s, &e));
            for (i = 0; i <= c[k].want; i++) {
                CHECK_OK(t_update(p, s, &sd, AMP_SGD));
                CHECK_OK(amp_scaler_update(s));
                t_note(t, "row %d, below the old floor, overflow %d", (int)k, (int)i);
                CHECK_F32(t_scale(s), 0.5f);
                CHECK_EQ(set_info(t, s).dead, i == c[k].want);
            }
            revived = set_info(t, s); /* by hand: the count starts again, too */
            revived.dead = 0;
            CHECK_OK(amp_scaler_set(s, &revived));
            for (i = 1; i <= c[k].want; i++) {
                CHECK_OK(t_update(p, s, &sd, AMP_SGD));
                CHECK_OK(amp_scaler_update(s));
                CHECK_EQ(set_info(t, s).dead, i == c[k].want);
            }
        }
        amp_scaler_destroy(s);
        amp_params_destroy(p);
        t_clear(t);
    }
}

static void off_and_null(t_run *t) { /* S12: the same loop, any order, scale 1, every step taken */
    amp_scaler_desc d = AMP_ZERO;
    amp_scaler *s = NULL;
    size_t n = 5;
    amp_params *p = set_new(t, AMP_F16, AMP_F32, &n, 1), *q;
    uint64_t rng;
    amp_step_desc sd = AMP_ZERO;
    void *a, *b;
    float scale = 0;
    amp_params_destroy(p);
    d.mode = AMP_SCALER_OFF;
    d.scale = 1024;
    sd.lr = 0.1f;
    CHECK_OK(amp_scaler_create(&s, t->ctx, &d));
    CHECK_F32(t_scale(s), 1.0f);
    t_get(t, &scale, amp_scaler_scale_ptr(s), 4);
    CHECK_F32(scale, 1.0f);
    rng = t->rng;
    p = set_new(t, AMP_F16, AMP_F32, &n, 1);
    t->rng = rng;
    q = set_new(t, AMP_F16, AMP_F32, &n, 1);
    set_grad(t, p, 0, n, 0.5f);
    set_grad(t, q, 0, n, 0.5f);
    CHECK_OK(amp_scaler_update(s)); /* nothing checked: fine when off */
    CHECK_OK(amp_scaler_unscale(s, p));
    CHECK_OK(amp_scaler_unscale(s, p));
    CHECK_OK(t_update(p, s, &sd, AMP_SGD));
    CHECK_OK(t_update(p, s, &sd, AMP_SGD));
    CHECK_OK(amp_scaler_unscale(s, p));
    CHECK_OK(amp_step(p, s, &sd));
    CHECK_OK(amp_scaler_update(s));
    CHECK_OK(t_update(q, NULL, &sd, AMP_SGD));
    CHECK_OK(t_update(q, NULL, &sd, AMP_SGD));
    CHECK_OK(amp_step(q, NULL, &sd));
    a = set_bits(t, amp_param_get(p, 0).master, n);
    b = set_bits(t, amp_param_get(q, 0).master, n);
    CHECK_BITS(a, b, n, 4);
    CHECK_EQ(set_poll(t, p).steps, 3);
    CHECK_EQ(set_poll(t, q).steps, 3);
    t_note(t, "Inf is stepped on: nothing is tested");
    set_grad_bits(t, p, 0, 2, set_inf(AMP_F32));
    set_grad_bits(t, q, 0, 2, set_inf(AMP_F32));
    CHECK_OK(t_update(p, s, &sd, AMP_SGD));
    CHECK_OK(t_update(q, NULL, &sd, AMP_SGD));
    CHECK_EQ(set_poll(t, p).outcome, AMP_STEPPED);
    CHECK_EQ(set_poll(t, q).outcome, AMP_STEPPED);
    a = set_bits(t, amp_param_get(p, 0).master, n);
    CHECK(!amp_is_finite(((float *)a)[2]) && amp_is_finite(((float *)a)[1]));
    CHECK_F32(t_scale(s), 1.0f);
    amp_scaler_destroy(s);
    amp_params_destroy(p);
    amp_params_destroy(q);
}

static void no_check(t_run *t) { /* Apex's static scale: divided by it, never tested */
    amp_scaler_desc d = AMP_ZERO;
    amp_scaler *s = NULL;
    amp_params *p = set_one(t, 3, AMP_F32);
    amp_step_desc sd = AMP_ZERO;
    float *before = (float *)set_bits(t, amp_param_get(p, 0).master, 3), *after;
    d.mode = AMP_SCALER_STATIC;
    d.scale = 4;
    d.no_check = 1;
    sd.lr = 1;
    CHECK_OK(amp_scaler_create(&s, t->ctx, &d));
    set_grad(t, p, 0, 3, 2.0f);
    set_grad_bits(t, p, 0, 1, set_inf(AMP_F32));
    CHECK_OK(t_update(p, s, &sd, AMP_SGD));
    CHECK_OK(amp_scaler_update(s));
    after = (float *)set_bits(t, amp_param_get(p, 0).master, 3);
    CHECK_F32(after[0], before[0] - 0.5f);
    CHECK(!amp_is_finite(after[1]));
    CHECK_EQ(set_poll(t, p).outcome, AMP_STEPPED);
    CHECK_EQ(set_info(t, s).bad, 0);
    { /* lists too: the report tells, the scaler does not mind */
        amp_array g = amp_arrn(amp_param_grad(p, 0).data, AMP_F32, 3);
        amp_finite_report r;
        CHECK_OK(amp_unscale(s, NULL, &r, &g, 1));
        CHECK(r.inf == 1 && r.first_index == 1);
        CHECK_OK(amp_scaler_update(s));
        CHECK_EQ(set_info(t, s).bad, 0);
        CHECK_EQ(set_info(t, s).good, 2);
    }
    amp_scaler_destroy(s);
    amp_params_destroy(p);
}

/* ---- stages ---- */

static void stages(t_run *t) {
    amp_scaler *s = NULL, *other = NULL;
    amp_params *p = set_one(t, 4, AMP_F16), *q = set_one(t, 4, AMP_F32), *empty = NULL, *raw = NULL;
    amp_step_desc sd = t_rate_0();
    amp_param_desc pd = AMP_ZERO;
    double norm;
    CHECK_OK(amp_scaler_create(&s, t->ctx, NULL));
    CHECK_OK(amp_scaler_create(&other, t->ctx, NULL));
    set_grad(t, p, 0, 4, 1.0f);
    set_grad(t, q, 0, 4, 1.0f);
    t_note(t, "S5: update with nothing checked");
    CHECK_STATUS(amp_scaler_update(s), AMP_ERR_STAGE, "amp_scaler_update");
    t_note(t, "S2: unscale twice");
    CHECK_OK(amp_scaler_unscale(s, p));
    CHECK_STATUS(amp_scaler_unscale(s, p), AMP_ERR_STAGE, "amp_scaler_unscale");
    t_note(t, "S3: unscale after a step");
    CHECK_OK(t_update(p, s, &sd, AMP_SGD));
    CHECK_STATUS(amp_scaler_unscale(s, p), AMP_ERR_STAGE, "amp_scaler_unscale");
    t_note(t, "S4: step twice");
    CHECK_STATUS(t_update(p, s, &sd, AMP_SGD), AMP_ERR_STAGE, "amp_update");
    CHECK_STATUS(t_update(p, s, &sd, AMP_ADAM), AMP_ERR_STAGE, "amp_update");
    CHECK_STATUS(t_update(p, s, &sd, AMP_ADAMW), AMP_ERR_STAGE, "amp_update");
    CHECK_STATUS(amp_step(p, s, &sd), AMP_ERR_STAGE, "amp_step");
    CHECK_STATUS(amp_inspect(p, s, &sd), AMP_ERR_STAGE, "amp_inspect");
    t_note(t, "another set of the scaler steps before the update");
    CHECK_OK(t_update(q, s, &sd, AMP_SGD));
    CHECK_OK(amp_scaler_update(s));
    CHECK_STATUS(amp_scaler_update(s), AMP_ERR_STAGE, "amp_scaler_update");
    t_note(t, "all sets are ready again");
    CHECK_OK(amp_step(p, s, &sd));
    CHECK_OK(amp_step(q, s, &sd));
    CHECK_OK(amp_step(p, s, &sd));
    CHECK_STATUS(amp_scaler_update(s), AMP_ERR_STAGE, "amp_scaler_update"); /* amp_step did it */
    t_note(t, "unscale, then the fused step; unscale, then update without a step");
    CHECK_OK(amp_scaler_unscale(s, p));
    CHECK_OK(amp_step(p, s, &sd));
    CHECK_OK(amp_scaler_unscale(s, p));
    CHECK_OK(amp_scaler_update(s));
    CHECK_OK(amp_scaler_unscale(s, p));
    CHECK_OK(amp_scaler_update(s));
    t_note(t, "a query moves no stage");
    CHECK_OK(amp_grad_norm(p, s, &norm));
    CHECK_STATUS(amp_scaler_update(s), AMP_ERR_STAGE, "amp_scaler_update");
    t_note(t, "another scaler knows nothing of it");
    CHECK_STATUS(amp_scaler_update(other), AMP_ERR_STAGE, "amp_scaler_update");
    t_note(t, "inspect is a step without the update");
    CHECK_OK(amp_inspect(p, s, &sd));
    CHECK_STATUS(amp_inspect(p, s, &sd), AMP_ERR_STAGE, "amp_inspect");
    CHECK_STATUS(t_update(p, s, &sd, AMP_SGD), AMP_ERR_STAGE, "amp_update");
    CHECK_OK(amp_scaler_update(s));
    t_note(t, "S6: no parameters, and not committed");
    CHECK_OK(amp_params_create(&empty, t->ctx, NULL));
    CHECK_OK(amp_params_commit(empty));
    CHECK_STATUS(amp_step(empty, s, &sd), AMP_ERR_STAGE, "amp_step");
    CHECK_STATUS(t_update(empty, s, &sd, AMP_SGD), AMP_ERR_STAGE, "amp_update");
    CHECK_OK(amp_params_create(&raw, t->ctx, NULL));
    pd.count = 4;
    CHECK_OK(amp_params_add(raw, &pd));
    CHECK_STATUS(amp_step(raw, s, &sd), AMP_ERR_STAGE, "amp_step commit");
    CHECK_STATUS(amp_scaler_unscale(s, raw), AMP_ERR_STAGE, "amp_scaler_unscale commit");
    t_note(t, "after all these refusals the loop goes on");
    CHECK_OK(amp_step(p, s, &sd));
    t_note(t, "a set that goes away in the middle of an iteration");
    CHECK_OK(t_update(q, s, &sd, AMP_SGD));
    amp_params_destroy(q);
    CHECK_OK(amp_scaler_update(s));
    CHECK_OK(amp_step(p, s, &sd));
    t_note(t, "a scaler that goes away in the middle of an iteration");
    CHECK_OK(t_update(p, other, &sd, AMP_SGD));
    amp_scaler_destroy(other);
    CHECK_OK(amp_step(p, s, &sd));
    amp_scaler_destroy(s);
    amp_params_destroy(p);
    amp_params_destroy(empty);
    amp_params_destroy(raw);
}

/* One loop with every verb that takes a scaler: what it computed, and each status. */
static void whole_loop(t_run *t, t_blob *b, amp_scaler *s) {
    size_t n = 5, i;
    amp_params *p = set_new(t, AMP_BF16, AMP_BF16, &n, 1);
    amp_params_desc pd = AMP_ZERO;
    amp_param_desc e = AMP_ZERO;
    amp_params *sums = NULL;
    amp_step_desc d = AMP_ZERO;
    amp_xent_desc x = AMP_ZERO;
    amp_state_desc file = AMP_ZERO;
    amp_finite_report report = {7, 7, 7, 7};
    amp_scaler_info info = AMP_ZERO;
    amp_step_record r;
    int32_t labels[2] = {0, 1};
    float logits[4] = {1.0f, 2.0f, 0.5f, -1.0f};
    amp_array g = amp_arrn(amp_param_grad(p, 0).data, AMP_BF16, n);
    double norm = 0;
    d.lr = 0.5f;
    d.clip_norm = 1.0f;
    for (i = 0; i < 3; i++) {
        set_grad(t, p, 0, n, 0.25f + (float)i);
        if (i == 2) set_grad_bits(t, p, 0, 1, set_inf(AMP_BF16)); /* without a scaler nobody looks */
        CHECK_OK(amp_window_begin(p, s));
        CHECK_STATUS(amp_window_begin(p, s), AMP_ERR_STAGE, "amp_window_begin open");
        CHECK_OK(amp_window_end(p));
        CHECK_OK(amp_scaler_unscale(s, p));
        CHECK_OK(amp_scaler_unscale(s, p)); /* no phase: nothing is done */
        CHECK_OK(amp_unscale(s, NULL, &report, &g, 1));
        t_blob_add(b, &report, sizeof report);
        CHECK_OK(amp_grad_norm(p, s, &norm));
        t_blob_add(b, &norm, sizeof norm);
        CHECK_OK(amp_clip(p, s, 0.0f, 0.5f));
        CHECK_OK(i == 0 ? amp_step(p, s, &d) : amp_update(p, s, &d));
        CHECK_OK(amp_scaler_update(s));
        CHECK_OK(amp_scaler_update(s));
        r = set_poll(t, p);
        t_blob_add(b, &r.skip, sizeof r.skip);
        t_blob_add(b, &r.steps, sizeof r.steps);
        set_blob(t, b, p, &n, 1);
    }
    CHECK_OK(amp_inspect(p, s, &d));
    CHECK_OK(amp_scaler_set_scale(s, 8.0f));
    CHECK_OK(amp_scaler_get(s, &info));
    CHECK_F32(info.scale, 1.0f);
    t_blob_add(b, &info, sizeof info);
    pd.accumulate = 1;
    e.count = n;
    CHECK_OK(amp_params_create(&sums, t->ctx, &pd));
    CHECK_OK(amp_params_add(sums, &e));
    CHECK_OK(amp_params_commit(sums));
    set_grad(t, sums, 0, n, 2.0f);
    CHECK_OK(amp_accumulate(sums, s, 0));
    CHECK_OK(amp_accumulate(sums, s, 1));
    CHECK_OK(amp_scaler_update(s));
    CHECK_OK(amp_step(sums, s, &d));
    set_blob(t, b, sums, &n, 1);
    x.rows = x.classes = 2;
    x.logits = amp_arr(t_put(t, logits, sizeof logits), AMP_F32);
    x.labels = (const int32_t *)t_put(t, labels, sizeof labels);
    x.dlogits = x.logits;
    x.scaler = s;
    CHECK_OK(amp_softmax_cross_entropy(t->ctx, &x));
    t_blob_dev(t, b, x.dlogits.data, sizeof logits);
    file.params = &p;
    file.n_params = 1;
    file.scalers = &s;
    file.n_scalers = 1;
    CHECK_OK(amp_state_save(t->ctx, t_file("off"), &file));
    CHECK_OK(amp_state_load(t->ctx, t_file("off"), &file));
    amp_params_destroy(sums);
    amp_params_destroy(p);
}
static void null_is_off(t_run *t) {
    amp_scaler *s = NULL, *other = NULL;
    amp_scaler_desc d = AMP_ZERO;
    amp_state_desc file = AMP_ZERO;
    t_blob off = AMP_ZERO, null = AMP_ZERO;
    uint64_t rng = t->rng;
    d.mode = AMP_SCALER_OFF;
    CHECK_OK(amp_scaler_create(&s, t->ctx, &d));
    whole_loop(t, &off, s);
    t->rng = rng;
    whole_loop(t, &null, NULL);
    CHECK_EQ(off.bytes, null.bytes);
    if (off.bytes == null.bytes) CHECK_BITS(null.data, off.data, off.bytes, 1);
    CHECK(!amp_scaler_scale_ptr(NULL) && !amp_scaler_inverse_ptr(NULL));
    CHECK(amp_scaler_scale_ptr(s) && amp_scaler_inverse_ptr(s));
    /* in a file they are the same, too; a scaler that is on does not take it */
    file.scalers = &s;
    file.n_scalers = 1;
    CHECK_STATUS(amp_state_load(t->ctx, t_file("off"), &file), AMP_ERR_FORMAT, NULL); /* its parameters are missing */
    CHECK_OK(amp_scaler_create(&other, t->ctx, NULL));
    CHECK_OK(amp_state_save(t->ctx, t_file("off"), &file));
    file.scalers = &other;
    CHECK_STATUS(amp_state_load(t->ctx, t_file("off"), &file), AMP_ERR_FORMAT, "scaler off");
    amp_scaler_destroy(s);
    s = NULL;
    file.scalers = &s;
    CHECK_OK(amp_state_load(t->ctx, t_file("off"), &file));
    amp_scaler_destroy(other);
    free(off.data);
    free(null.data);
}

static void null_arguments(t_run *t) {
    amp_scaler *s = NULL;
    amp_params *p = set_one(t, 2, AMP_F32);
    amp_array g = amp_arrn(amp_param_grad(p, 0).data, AMP_F32, 2);
    CHECK_OK(amp_scaler_create(&s, t->ctx, NULL));
    CHECK_STATUS(amp_scaler_unscale(s, NULL), AMP_ERR_INVALID_ARG, "amp_scaler_unscale");
    CHECK_EQ(amp_unscale(NULL, &g, NULL, &g, 1), AMP_ERR_INVALID_ARG); /* a dst, and no way to its context */
    CHECK_EQ(amp_unscale(NULL, NULL, NULL, NULL, 1), AMP_ERR_INVALID_ARG);
    CHECK_EQ(amp_scaler_unscale(NULL, NULL), AMP_ERR_INVALID_ARG);
    CHECK_STATUS(amp_unscale(s, NULL, NULL, NULL, 1), AMP_ERR_INVALID_ARG, "amp_unscale");
    g.dtype = AMP_AUTO;
    CHECK_STATUS(amp_unscale(s, NULL, NULL, &g, 1), AMP_ERR_INVALID_ARG, "amp_unscale dtype");
    CHECK_STATUS(amp_scaler_get(s, NULL), AMP_ERR_INVALID_ARG, "amp_scaler_get out");
    amp_scaler_destroy(s);
    amp_params_destroy(p);
}

/* ---- several sets, several scalers ---- */

static void several_sets(t_run *t) { /* S8: each set skips on its own, the scale backs off once */
    size_t counts[2] = {5, 3};
    amp_scaler *s = NULL;
    amp_params *p[3];
    amp_step_desc sd = AMP_ZERO;
    amp_scaler_info info;
    int i, mask;
    CHECK_OK(amp_scaler_create(&s, t->ctx, NULL));
    for (i = 0; i < 3; i++)
        p[i] = set_new(t, i == 1 ? AMP_BF16 : AMP_F16, i == 2 ? AMP_F32 : AMP_AUTO, counts, 2);
    sd.lr = 0.01f;
    for (mask = 0; mask < 8; mask++) {
        float scale = t_scale(s);
        uint64_t steps[3];
        for (i = 0; i < 3; i++) {
            static const amp_optimizer rules[3] = {AMP_SGD, AMP_ADAM, AMP_ADAMW};
            t_blob before = AMP_ZERO, after = AMP_ZERO;
            int bad = mask >> i & 1;
            set_grad(t, p[i], 0, 5, 1.0f);
            set_grad(t, p[i], 1, 3, 1.0f);
            if (bad) set_grad_bits(t, p[i], 1, 2, i == 1 ? set_nan(AMP_BF16) : set_inf(amp_param_grad(p[i], 1).dtype));
            steps[i] = set_poll(t, p[i]).steps;
            set_blob(t, &before, p[i], counts, 2);
            CHECK_OK(t_update(p[i], s, &sd, rules[i]));
            set_blob(t, &after, p[i], counts, 2);
            t_note(t, "mask %d, set %d", mask, i);
            CHECK_EQ(memcmp(before.data, after.data, before.bytes) == 0, bad);
            CHECK_EQ(set_poll(t, p[i]).steps, steps[i] + !bad);
            if (bad) {
                CHECK_EQ(set_poll(t, p[i]).outcome, i == 1 ? AMP_SKIPPED_NAN : AMP_SKIPPED_INF);
                CHECK_EQ(set_poll(t, p[i]).first_param, 1);
                CHECK_EQ(set_poll(t, p[i]).first_index, 2);
            } else
                CHECK_EQ(set_poll(t, p[i]).outcome, AMP_STEPPED);
            free(before.data);
            free(after.data);
        }
        CHECK_OK(amp_scaler_update(s));
        CHECK_F32(t_scale(s), mask ? scale * 0.5f : scale);
    }
    info = set_info(t, s);
    CHECK_EQ(info.good, 1);
    CHECK_EQ(info.bad, 7);
    CHECK_EQ(info.bad_nan, 4);
    CHECK_EQ(info.bad_inf, 6);
    CHECK_EQ(info.bad_overflow, 0);
    for (i = 0; i < 3; i++)
        amp_params_destroy(p[i]);
    amp_scaler_destroy(s);
}

static void several_scalers(t_run *t) {
    amp_scaler *a = NULL, *b = NULL;
    amp_params *p = set_one(t, 4, AMP_F16), *q = set_one(t, 4, AMP_F16);
    amp_step_desc sd = t_rate_0();
    amp_scaler_desc d = AMP_ZERO;
    d.scale = 1024;
    CHECK_OK(amp_scaler_create(&a, t->ctx, NULL));
    CHECK_OK(amp_scaler_create(&b, t->ctx, &d));
    set_grad(t, p, 0, 4, 1.0f);
    set_grad(t, q, 0, 4, 1.0f);
    set_grad_bits(t, p, 0, 3, set_inf(AMP_F16));
    CHECK_OK(amp_step(p, a, &sd));
    CHECK_OK(amp_step(q, b, &sd));
    CHECK_F32(t_scale(a), 32768.0f);
    CHECK_F32(t_scale(b), 1024.0f);
    CHECK_EQ(set_info(t, b).good, 1);
    set_grad(t, p, 0, 4, 1.0f);
    CHECK_OK(amp_step(p, b, &sd)); /* and a set may change its scaler between iterations */
    CHECK_EQ(set_poll(t, p).outcome, AMP_STEPPED);
    CHECK_F32(set_poll(t, p).scale, 1024.0f);
    amp_scaler_destroy(a);
    amp_scaler_destroy(b);
    amp_params_destroy(p);
    amp_params_destroy(q);
}

/* ---- unscale ---- */

static void unscale_values(t_run *t) { /* U1, U2, U3, U5, U8 and more: every dtype, every position of the bad element */
    static const float scales[] = {4.0f, 65536.0f, 1.0f, 3.0f, 1000.0f, 0.5f};
    size_t d, k, n = 37, i;
    for (d = 0; d < 5; d++) {
        for (k = 0; k < sizeof scales / sizeof scales[0]; k += t_slow(t) ? 2u : 1u) {
            amp_scaler_desc sc = AMP_ZERO;
            amp_scaler *s = NULL;
            amp_dtype type = ref_dtypes[d];
            amp_params *p = set_one(t, n, type);
            size_t size = amp_dtype_size(type);
            void *g = t_host(t, n * size), *got;
            float inv = (float)(1.0 / (double)scales[k]);
            sc.scale = scales[k];
            CHECK_OK(amp_scaler_create(&s, t->ctx, &sc));
            for (i = 0; i < n; i++)
                amp_store(g, type, i, i == 0 ? 4.0f : t_range(t, -6, 6)); /* no overflow of any dtype, halved or not */
            t_set(t, amp_param_grad(p, 0).data, g, n * size);
            CHECK_OK(amp_scaler_unscale(s, p));
            got = set_bits(t, amp_param_grad(p, 0), n);
            for (i = 0; i < n; i++)
                amp_store(g, type, i, ref_mul(amp_load(g, type, i), inv));
            t_note(t, "%s, scale %g", amp_dtype_name(type), (double)scales[k]);
            CHECK_BITS(got, g, n, size);
            CHECK_OK(amp_scaler_update(s));
            CHECK_EQ(set_info(t, s).good, 1);
            if (k < 2) { /* each position of one bad element */
                amp_step_desc sd = t_rate_0();
                for (i = 0; i < n; i += t_slow(t) ? 12u : i < 18 || t_full() ? 1u : 5u) {
                    int nan = i % 2 || type == AMP_F8E4M3;
                    set_grad(t, p, 0, n, 1.0f);
                    set_grad_bits(t, p, 0, i, nan ? set_nan(type) : set_inf(type));
                    CHECK_OK(amp_scaler_unscale(s, p));
                    CHECK_OK(t_update(p, s, &sd, AMP_SGD));
                    t_note(t, "%s, element %d", amp_dtype_name(type), (int)i);
                    CHECK_EQ(set_poll(t, p).outcome, nan ? AMP_SKIPPED_NAN : AMP_SKIPPED_INF);
                    CHECK_EQ(set_poll(t, p).first_index, i);
                    CHECK_EQ(set_poll(t, p).nan + set_poll(t, p).inf, 1);
                    CHECK_OK(amp_scaler_set_scale(s, scales[k]));
                }
            }
            amp_scaler_destroy(s);
            amp_params_destroy(p);
            t_clear(t);
        }
    }
}

static void unscale_overflow(t_run *t) { /* finite gradients whose product is not: only with a scale below 1 */
    static const amp_dtype types[2] = {AMP_F32, AMP_BF16};
    int fused;
    size_t d;
    for (d = 0; d < 2; d++) {
        for (fused = 0; fused < 2; fused++) {
            amp_scaler_desc sc = AMP_ZERO;
            amp_scaler *s = NULL;
            amp_params *p = set_one(t, 9, types[d]);
            amp_step_desc sd = t_rate_0();
            amp_scaler_info info;
            amp_step_record r;
            sc.scale = 0.25f;
            sc.min_scale = 0.001f;
            CHECK_OK(amp_scaler_create(&s, t->ctx, &sc));
            set_grad(t, p, 0, 9, 1.0f);
            set_grad_bits(t, p, 0, 6, types[d] == AMP_F32 ? 0x7f000000u : 0x7f00u); /* 2^127, times 4 */
            if (fused) {
                sd.optimizer = AMP_SGD;
                CHECK_OK(amp_step(p, s, &sd));
            } else {
                CHECK_OK(amp_scaler_unscale(s, p));
                CHECK_OK(t_update(p, s, &sd, AMP_SGD));
                CHECK_OK(amp_scaler_update(s));
            }
            info = set_info(t, s);
            r = set_poll(t, p);
            t_note(t, "%s, %s", amp_dtype_name(types[d]), fused ? "fused" : "separate");
            CHECK_EQ(r.outcome, AMP_SKIPPED_OVERFLOW);
            CHECK(r.overflow == 1 && r.nan == 0 && r.inf == 0 && r.first_index == 6 && r.steps == 0 && r.skipped == 1);
            CHECK(info.bad == 1 && info.bad_overflow == 1 && info.bad_inf == 0 && info.bad_nan == 0);
            CHECK_F32(info.scale, 0.125f);
            amp_scaler_destroy(s);
            amp_params_destroy(p);
            t_clear(t);
        }
    }
}

/* A scale below 1 can also push a number out of the gradient's own dtype when unscale writes it back. Inf must not
   reach the weights unnoticed: either the step is skipped, or the weights are finite. */
static void unscale_overflows_dtype(t_run *t) {
    static const amp_dtype types[3] = {AMP_F16, AMP_F8E5M2, AMP_F8E4M3};
    size_t d;
    for (d = 0; d < 3; d++) {
        amp_scaler_desc sc = AMP_ZERO;
        amp_scaler *s = NULL;
        amp_params *p = set_one(t, 9, types[d]);
        amp_step_desc sd = AMP_ZERO;
        float *w;
        sc.scale = 0.25f;
        sd.lr = 0.001f;
        CHECK_OK(amp_scaler_create(&s, t->ctx, &sc));
        set_grad(t, p, 0, 9, 1.0f);
        set_grad_bits(t, p, 0, 6, ref_format_of(types[d]).max);
        CHECK_OK(amp_scaler_unscale(s, p));
        CHECK_OK(t_update(p, s, &sd, AMP_SGD));
        w = (float *)set_bits(t, amp_param_get(p, 0).master, 9);
        t_note(t, "%s", amp_dtype_name(types[d]));
        CHECK(amp_is_finite(w[6]));
        CHECK_OK(amp_scaler_update(s));
        amp_scaler_destroy(s);
        amp_params_destroy(p);
        t_clear(t);
    }
}

static void poison_after_unscale(t_run *t) { /* S13: what changes after unscale is yours; it is not looked at again */
    amp_scaler *s = NULL;
    amp_params *p = set_one(t, 4, AMP_F32);
    amp_step_desc sd = AMP_ZERO;
    float *w;
    sd.lr = 1;
    CHECK_OK(amp_scaler_create(&s, t->ctx, NULL));
    set_grad(t, p, 0, 4, 1.0f);
    CHECK_OK(amp_scaler_unscale(s, p));
    set_grad_bits(t, p, 0, 1, set_nan(AMP_F32));
    CHECK_OK(t_update(p, s, &sd, AMP_SGD));
    CHECK_OK(amp_scaler_update(s));
    w = (float *)set_bits(t, amp_param_get(p, 0).master, 4);
    CHECK(amp_is_nan(w[1]) && amp_is_finite(w[0]));
    CHECK_EQ(set_poll(t, p).outcome, AMP_STEPPED);
    CHECK_EQ(set_info(t, s).good, 1);
    amp_scaler_destroy(s);
    amp_params_destroy(p);
}

/* A float that F16 does not hold, at each place of an array whose other products it does. */
static void unscale_overflow_anywhere(t_run *t) {
    const size_t n = 24;
    amp_scaler_desc d = AMP_ZERO;
    amp_scaler *s = NULL;
    float *host = (float *)t_host(t, 4 * n);
    amp_array from = amp_arrn(t_alloc(t, 4 * n), AMP_F32, n), to = amp_arrn(t_alloc(t, 2 * n), AMP_F16, n);
    size_t i, k;
    d.scale = 2;
    CHECK_OK(amp_scaler_create(&s, t->ctx, &d));
    for (i = 0; i < n; i++) {
        amp_finite_report r;
        t_note(t, "element %d", (int)i);
        for (k = 0; k < n; k++)
            host[k] = k == i ? 131072.0f : 130000.0f;
        t_set(t, from.data, host, 4 * n);
        CHECK_OK(amp_unscale(s, &to, &r, &from, 1));
        CHECK(r.nan == 0 && r.inf == 1 && r.first_array == 0 && r.first_index == i);
    }
    amp_scaler_destroy(s);
}

static void unscale_lists(t_run *t) { /* arrays outside a set, for an optimizer of your own */
    amp_scaler_desc sc = AMP_ZERO;
    amp_scaler *s = NULL;
    float host[6] = {8, 16, -24, 32, 40, 48}, back[6];
    amp_array g[3];
    amp_finite_report r;
    uint16_t half[3] = {0x4800, 0xc800, 0x4400}, half_back[3];
    sc.scale = 8;
    CHECK_OK(amp_scaler_create(&s, t->ctx, &sc));
    g[0] = amp_arrn(t_put(t, host, sizeof host), AMP_F32, 6);
    g[1] = amp_arrn(NULL, AMP_F32, 0);
    g[2] = amp_arrn(t_put_at(t, half, sizeof half, 2), AMP_F16, 3);
    CHECK_OK(amp_unscale(s, NULL, &r, g, 3));
    CHECK(r.nan == 0 && r.inf == 0);
    t_get(t, back, g[0].data, sizeof back);
    t_get(t, half_back, g[2].data, sizeof half_back);
    CHECK(back[0] == 1 && back[2] == -3 && back[5] == 6 && half_back[0] == 0x3c00 && half_back[1] == 0xbc00 &&
        half_back[2] == 0x3800);
    CHECK_OK(amp_unscale(s, NULL, NULL, g, 1)); /* a second list before the update */
    CHECK_OK(amp_scaler_update(s));
    CHECK_EQ(set_info(t, s).good, 1);
    CHECK_STATUS(amp_scaler_update(s), AMP_ERR_STAGE, "amp_scaler_update");
    t_note(t, "one bad list among good ones");
    t_set(t, g[0].data, host, sizeof host);
    CHECK_OK(amp_unscale(s, NULL, NULL, g, 1));
    half[1] = 0xfc00;
    half[2] = 0x7e01;
    t_set(t, g[2].data, half, sizeof half);
    memset(&r, 0x55, sizeof r);
    CHECK_OK(amp_unscale(s, NULL, &r, g, 3));
    CHECK(r.nan == 1 && r.inf == 1 && r.first_array == 2 && r.first_index == 1);
    CHECK_OK(amp_unscale(s, NULL, NULL, g, 1));
    CHECK_OK(amp_scaler_update(s));
    CHECK_F32(t_scale(s), 4.0f);
    CHECK_EQ(set_info(t, s).bad_nan, 1);
    CHECK_EQ(set_info(t, s).bad_inf, 1);
    t_note(t, "overflow in the multiplication counts as inf in the report");
    CHECK_OK(amp_scaler_set_scale(s, 0.25f));
    host[3] = 3e38f;
    t_set(t, g[0].data, host, sizeof host);
    CHECK_OK(amp_unscale(s, NULL, &r, g, 1));
    CHECK(r.nan == 0 && r.inf == 1 && r.first_array == 0 && r.first_index == 3);
    CHECK_OK(amp_scaler_update(s));
    CHECK_EQ(set_info(t, s).bad_overflow, 1);
    amp_scaler_destroy(s);
    t_note(t, "off: nothing happens");
    sc.mode = AMP_SCALER_OFF;
    sc.scale = 0;
    CHECK_OK(amp_scaler_create(&s, t->ctx, &sc));
    t_set(t, g[0].data, host, sizeof host);
    CHECK_OK(amp_unscale(s, NULL, &r, g, 1));
    t_get(t, back, g[0].data, sizeof back);
    CHECK_BITS(back, host, 6, 4);
    amp_scaler_destroy(s);
}

static void scale_in_context_memory(t_run *t) {
    amp_scaler *s = NULL;
    amp_params *p = set_one(t, 4, AMP_F16);
    amp_step_desc sd = t_rate_0();
    float scale = 0;
    const float *where;
    CHECK_OK(amp_scaler_create(&s, t->ctx, NULL));
    where = amp_scaler_scale_ptr(s);
    set_grad(t, p, 0, 4, 1.0f);
    set_grad_bits(t, p, 0, 0, 0xfc00);
    CHECK_OK(amp_step(p, s, &sd));
    t_get(t, &scale, where, 4);
    CHECK_F32(scale, 32768.0f);
    CHECK_OK(amp_scaler_set_scale(s, 77.0f));
    t_get(t, &scale, where, 4);
    CHECK_F32(scale, 77.0f);
    CHECK(amp_scaler_scale_ptr(s) == where);
    amp_scaler_destroy(s);
    amp_params_destroy(p);
}

const t_test t_suite_scaler[] = {{"scaler.rule_rows", rule_rows, T_HOST}, {"scaler.rule_verbs", rule_verbs, T_ALL},
    {"scaler.random_walk", random_walk, T_ALL}, {"scaler.defaults", defaults, T_ALL},
    {"scaler.defaults_of_the_rule", defaults_of_the_rule, T_ALL}, {"scaler.create_errors", create_errors, T_ALL},
    {"scaler.set_scale", set_scale, T_ALL}, {"scaler.configure", configure, T_ALL},
    {"scaler.configure_hysteresis", configure_hysteresis, T_ALL}, {"scaler.dead", dead, T_ALL},
    {"scaler.off_and_null", off_and_null, T_ALL}, {"scaler.no_check", no_check, T_ALL},
    {"scaler.stages", stages, T_ALL}, {"scaler.null_arguments", null_arguments, T_ALL},
    {"scaler.null_is_off", null_is_off, T_ALL}, {"scaler.several_sets", several_sets, T_ALL},
    {"scaler.several_scalers", several_scalers, T_ALL}, {"scaler.unscale_values", unscale_values, T_ALL},
    {"scaler.unscale_overflow", unscale_overflow, T_ALL},
    {"scaler.unscale_overflow_anywhere", unscale_overflow_anywhere, T_ALL},
    {"scaler.unscale_overflows_dtype", unscale_overflows_dtype, T_ALL},
    {"scaler.poison_after_unscale", poison_after_unscale, T_ALL}, {"scaler.unscale_lists", unscale_lists, T_ALL},
    {"scaler.scale_in_context_memory", scale_in_context_memory, T_ALL}, {NULL, NULL, 0}};
