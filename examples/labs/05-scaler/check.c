/* check.c - the checker of lab 5: rows of the conformance table of docs/semantics.md (P: PyTorch, A: Apex, H: Apex's
 * hysteresis, M: MindSpore), then steps in which each mistake of a training loop shows. */
#include "amp.h"
#include "lab.h"

typedef struct check_row {
    const char *id, *rule; /* what it is about */
    float scale, growth, backoff;
    int interval, hysteresis;
    float min, max;    /* 0: out of the way */
    const char *found; /* one letter per update: 0 nothing, i a bad gradient */
    const char *want;  /* after each: scale/growth tracker, or scale/growth tracker/hysteresis tracker */
} check_row;

static const check_row check_rows[] = {
    {"P1", "it grows after growth_interval good updates in a row", 65536, 2, .5f, 4, 1, 0, 0, "0000",
        "65536/1 65536/2 65536/3 131072/0"},
    {"P5", "a bad update halves it and begins to count anew", 4, 2, .5f, 2000, 1, 0, 0, "0i0i", "4/1 2/0 2/1 1/0"},
    {"P2", "growth and backoff in turns", 65536, 2, .5f, 4, 1, 0, 0, "000i00000000i",
        "65536/1 65536/2 65536/3 32768/0 32768/1 32768/2 32768/3 65536/0 65536/1 65536/2 65536/3 131072/0 65536/0"},
    {"P3", "the factors are fields, not 2 and 0.5", 4, 2, .25f, 2, 1, 0, 0, "00i", "4/1 8/0 2/0"},
    {"P4", "with an interval of 1 every good update lets it grow", 128, 2, .5f, 1, 1, 0, 0, "00i0",
        "256/0 512/0 256/0 512/0"},
    {"P12", "the factors are fields, not 2 and 0.5", 1000, 1.5f, .8f, 2, 1, 0, 0, "00i00",
        "1000/1 1500/0 1200/0 1200/1 1800/0"},
    {"P6", "a growth to Inf is refused, and the tracker begins anew", 1e38f, 16, .5f, 1, 1, 0, 0, "0", "1e38/0"},
    {"P7", "a growth to Inf is refused, and the tracker begins anew", 1.70141183e38f, 2, .5f, 2, 1, 0, 0, "0000",
        "2^127/1 2^127/0 2^127/1 2^127/0"},
    {"P15", "it does not fall below min_scale", 16, 2, .5f, 1, 1, 1, 0, "iiiiiii", "8/0 4/0 2/0 1/0 1/0 1/0 1/0"},
    {"A3", "it does not fall below min_scale", 4, 2, .5f, 3, 1, 2, 0, "iii000i", "2/0 2/0 2/0 2/1 2/2 4/0 2/0"},
    {"floor between steps", "it is min_scale if the product is below it", 8, 2, .25f, 9, 1, 3, 0, "i0i0",
        "3/0 3/1 3/0 3/1"},
    {"A1", "Apex's ceiling is out of the way here", 65536, 2, .5f, 3, 1, 0, 16777216, "000000",
        "65536/1 65536/2 131072/0 131072/1 131072/2 262144/0"},
    {"ceiling", "it is max_scale if the product is above it", 8, 4, .5f, 1, 1, 0, 100, "0000i0",
        "32/0 100/0 100/0 100/0 50/0 100/0"},
    {"M2", "growth and backoff in turns", 65536, 2, .5f, 3, 1, 0, 0, "00000i000i",
        "65536/1 65536/2 131072/0 131072/1 131072/2 65536/0 65536/1 65536/2 131072/0 65536/0"},
    {"H2", "with a hysteresis of 1 every bad update counts", 65536, 2, .5f, 3, 1, 0, 0, "i000",
        "32768/0/0 32768/1/1 32768/2/1 65536/0/1"},
    {"H1", "with hysteresis the scale stays until so many bad updates came in a row; a good one begins anew", 65536, 2,
        .5f, 3, 2, 0, 0, "i0ii000iii",
        "65536/0/1 65536/1/2 65536/0/1 32768/0/0 32768/1/2 32768/2/2 65536/0/2 65536/0/1 32768/0/0 16384/0/-1"},
    {"hysteresis 3", "once it backs off, every further bad update in a row backs off", 64, 2, .5f, 9, 3, 0, 0,
        "iii0iiii", "64/0/2 64/0/1 32/0/0 32/1/3 32/0/2 32/0/1 16/0/0 8/0/-1"},
};

static const char *check_number(const char *s, double *x) {
    char *end;
    *x = s[0] == '2' && s[1] == '^' ? ldexp(1, (int)strtol(s + 2, &end, 10)) : strtod(s, &end);
    return end;
}

/* A class's variant changes one line of the rule; the table of others does not hold then, and this is compared. */
static void check_varied(scaler *s, int bad) {
    if (bad) {
        s->growth_tracker = LAB5_DIVISOR ? s->growth_tracker / LAB5_DIVISOR : 0;
        if (--s->hysteresis_tracker <= 0) s->scale = fmaxf(s->scale * s->backoff_factor, s->min_scale);
        return;
    }
    s->hysteresis_tracker = s->hysteresis;
    if (++s->growth_tracker < s->growth_interval) return;
    s->growth_tracker = 0;
    if (amp_is_finite(s->scale * s->growth_factor)) s->scale = fminf(s->scale * s->growth_factor, s->max_scale);
}
static const char *check_as_varied(const check_row *r, int update, const scaler *s, const scaler *want) {
    if (s->scale == want->scale && s->growth_tracker == want->growth_tracker &&
        s->hysteresis_tracker == want->hysteresis_tracker)
        return r->want;
    lab_wrong("row %s of your variant, after update %d of \"%s\": scale/trackers must be %.9g/%d/%d, and yours are "
              "%.9g/%d/%d: %s",
        r->id, update + 1, r->found, (double)want->scale, want->growth_tracker, want->hysteresis_tracker,
        (double)s->scale, s->growth_tracker, s->hysteresis_tracker, r->rule);
    return r->want;
}

/* Compares with the entry at `want`, returns what follows it. */
static const char *check_entry(const check_row *r, int update, const scaler *s, const char *want) {
    char entry[60];
    double scale, tracker, hysteresis = s->hysteresis_tracker;
    size_t length = strcspn(want, " ");
    const char *next = check_number(want, &scale);
    next = check_number(next + 1, &tracker);
    if (*next == '/') next = check_number(next + 1, &hysteresis);
    snprintf(entry, sizeof entry, "%.*s", (int)length, want);
    if (s->scale != (float)scale || s->growth_tracker != (int)tracker || s->hysteresis_tracker != (int)hysteresis)
        lab_wrong("row %s, after update %d of \"%s\": scale/trackers must be %s, and yours are %.9g/%d/%d: %s", r->id,
            update + 1, r->found, entry, (double)s->scale, s->growth_tracker, s->hysteresis_tracker, r->rule);
    while (*next == ' ')
        next++;
    return next;
}

static scaler check_scaler(float scale) {
    scaler s = {0, 2, 0.5f, 2000, 1, 1, 0, 0, 1};
    s.scale = scale;
    s.max_scale = INFINITY;
    return s;
}

static void check_table(void) {
    size_t i;
    int k;
    for (i = 0; i < sizeof check_rows / sizeof *check_rows; i++) {
        const check_row *r = &check_rows[i];
        const char *want = r->want;
        scaler s = check_scaler(r->scale), varied;
        s.growth_factor = r->growth;
        s.backoff_factor = r->backoff;
        s.growth_interval = r->interval;
        s.hysteresis = s.hysteresis_tracker = r->hysteresis;
        s.min_scale = r->min > 0 ? r->min : 1e-30f;
        if (r->max > 0) s.max_scale = r->max;
        varied = s;
        for (k = 0; r->found[k]; k++) {
            lab_doing("scaler_update in row %s", r->id);
            scaler_update(&s, r->found[k] == 'i');
            check_varied(&varied, r->found[k] == 'i');
            want = LAB5_DIVISOR ? check_as_varied(r, k, &s, &varied) : check_entry(r, k, &s, want);
        }
    }
}

/* The interval was lowered, or the tracker loaded: with == the scale would never grow again. */
static void check_lowered(void) {
    scaler s = check_scaler(8);
    s.growth_interval = 3;
    s.growth_tracker = 10;
    scaler_update(&s, 0);
    if (s.scale != 16 || s.growth_tracker != 0)
        lab_wrong("growth_tracker 10 with growth_interval 3 must let it grow at once (>=, not ==), and yours is %g/%d",
            (double)s.scale, s.growth_tracker);
}

/* ---- steps ---- */

static int check_near(float a, double b) { return fabs((double)a - b) <= 1e-6 + 1e-5 * fabs(b); }

typedef struct check_step {
    const char *what;
    float scale, lr, clip;
    float g[2];     /* scaled gradients, halves */
    double want[2]; /* weights after it; they were 1 and 2 */
    int taken;
    const char *why;
} check_step;

static const check_step check_steps[] = {
    {"gradients 4 and -8 with the scale 4", 4, 0.5f, 0, {4, -8}, {0.5, 3}, 1, "w = w - lr * g / scale"},
    {"gradients 1 and 2 with the scale 2^30", 1073741824, 268435456, 0, {1, 2}, {0.75, 1.5}, 1,
        "unscale into floats: as halves these gradients are 0 again"},
    {"gradients 12 and 16 with the scale 4, clip_norm 1", 4, 1, 1, {12, 16}, {0.4, 1.2}, 1,
        "the norm of the unscaled gradients is 5; unscale first, then clip"},
    {"gradients 3 and 4 with the scale 100, clip_norm 1", 100, 10, 1, {3, 4}, {0.7, 1.6}, 1,
        "the norm of the unscaled gradients is 0.05: nothing is clipped"},
    {"gradients Inf and 1", 4, 0.5f, 0, {INFINITY, 1}, {1, 2}, 0, "a step with an Inf changes nothing"},
    {"gradients 1 and NaN", 4, 0.5f, 0, {1, NAN}, {1, 2}, 0, "a step with a NaN changes nothing"},
    {"gradients 1 and -Inf with clip_norm 1", 4, 0.5f, 1, {1, -INFINITY}, {1, 2}, 0,
        "clipping makes 0 and NaN of an Inf; look for Inf before you clip"},
};

static const check_step check_unscaled = {"gradients 1 and 65504 with the scale 2^-120", 7.52316385e-37f, 0.5f, 0,
    {1, 65504}, {1, 2}, 0, "65504 / 2^-120 is no float: an unscaled gradient may be Inf where the half is not"};

static void check_one_step(const check_step *c, int interval) {
    scaler s = check_scaler(c->scale), want;
    optimizer o = {0, 0, 5};
    float w[2] = {1, 2};
    amp_f16 g[2];
    int i, taken;
    for (i = 0; i < 2; i++)
        g[i] = amp_f16_from_f32(c->g[i]);
    s.growth_interval = interval;
    o.lr = c->lr;
    o.clip_norm = c->clip;
    want = s;
    lab_doing("scaled_step with %s", c->what);
    taken = scaled_step(&s, &o, w, g, 2);
    for (i = 0; i < 2; i++)
        if (!check_near(w[i], c->want[i]))
            lab_wrong("step with %s: weights %g and %g must follow, and yours are %g and %g: %s", c->what, c->want[0],
                c->want[1], (double)w[0], (double)w[1],
                interval == 1 ? "these gradients carry the scale from before scaler_update" : c->why);
    if (taken != c->taken) lab_wrong("step with %s must return %d, and yours returns %d", c->what, c->taken, taken);
    if (o.steps != 5 + c->taken)
        lab_wrong("step with %s: the step counter must be %d, and yours is %d: only steps that are taken count",
            c->what, 5 + c->taken, o.steps);
    scaler_update(&want, !c->taken);
    if (s.scale != want.scale || s.growth_tracker != want.growth_tracker)
        lab_wrong("step with %s: scale/tracker must be %g/%d after it, and yours are %g/%d: one update, skipped or not",
            c->what, (double)want.scale, want.growth_tracker, (double)s.scale, s.growth_tracker);
}

/* n gradients, of which number `at` is `bad`; at n: none is. The clipping norm is that of all. */
static void check_long(size_t n, size_t at, float bad) {
    scaler s = check_scaler(8);
    optimizer o = {0.5f, 2, 5};
    float w[65], norm = 0;
    amp_f16 g[64];
    double sum = 0;
    size_t i;
    int taken;
    for (i = 0; i < n; i++) {
        float x = (float)(amp_random(5, n, i) >> 8) / 524288.0f - 16;
        g[i] = amp_f16_from_f32(i == at ? bad : x);
        sum += pow((double)amp_f32_from_f16(g[i]) / 8, 2);
        w[i] = 1 + (float)i / 64;
    }
    w[n] = 1000;
    norm = at < n ? 1 : (float)sqrt(sum);
    lab_doing("scaled_step with %d gradients", (int)n);
    taken = scaled_step(&s, &o, w, g, n);
    if (w[n] < 1000 || w[n] > 1000) lab_wrong("step with %d gradients: w[%d] was written", (int)n, (int)n);
    for (i = 0; i < n; i++) {
        double u = at < n ? 0 : (double)amp_f32_from_f16(g[i]) / 8 * (norm > 2 ? 2 / norm : 1), want;
        want = 1 + (double)i / 64 - 0.5 * u;
        if (check_near(w[i], (float)want)) continue;
        if (at < n)
            lab_wrong("step with %d gradients, of which number %d is %g: weight %d must stay %g, and yours is %g: each "
                      "gradient is looked at",
                (int)n, (int)at, (double)bad, (int)i, want, (double)w[i]);
        lab_wrong("step with %d gradients of norm %g and clip_norm 2: weight %d must become %g, and yours is %g: "
                  "all gradients count, in the norm and in the update",
            (int)n, (double)norm, (int)i, want, (double)w[i]);
    }
    if (taken != (at == n))
        lab_wrong("step with %d gradients must return %d, and yours returns %d", (int)n, at == n, taken);
}
static void check_lengths(void) {
    static const size_t lengths[] = {1, 2, 3, 17, 63, 64};
    static const float bad[] = {INFINITY, NAN, -INFINITY};
    size_t i, k, at;
    for (i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        check_long(lengths[i], lengths[i], 0);
        for (k = 0; k < 3; k++)
            for (at = 0; at < lengths[i]; at++)
                check_long(lengths[i], at, bad[k]);
    }
}

int main(void) {
    size_t i;
    lab_begin();
    check_table();
    check_lowered();
    for (i = 0; i < sizeof check_steps / sizeof *check_steps; i++)
        check_one_step(&check_steps[i], 2000);
    check_one_step(&check_steps[0], 1);
    check_one_step(&check_unscaled, 2000);
    check_lengths();
    lab_passed("your scaler conforms to %d rows of PyTorch, Apex and MindSpore, and your step to %d cases",
        (int)(sizeof check_rows / sizeof *check_rows), (int)(sizeof check_steps / sizeof *check_steps));
    return 0;
}
