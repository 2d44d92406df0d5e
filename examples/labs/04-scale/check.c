/* check.c - the checker of lab 4: exponents at both sides of every power of two, fates at both sides of every limit,
 * counts and suggestions beside amp's on gradients as a network has them. */
#include "amp.h"
#include "lab.h"

static const char *const check_fate_names[FATES] = {
    "FATE_ZERO", "FATE_LOST", "FATE_SUBNORMAL", "FATE_NORMAL", "FATE_OVERFLOW"};

static void check_exponent(float x) {
    int e, got;
    (void)frexp((double)x, &e);
    lab_doing("exponent_of(%a)", (double)x);
    got = exponent_of(x);
    if (got != e - 1) lab_wrong("exponent_of(%a) must be %d, and yours is %d", (double)x, e - 1, got);
}

static void check_exponents(void) {
    int e;
    check_exponent(1.0f);
    check_exponent(3.0f);
    check_exponent(-0.1f);
    for (e = -126; e < 128; e++) {
        float power = (float)ldexp(1, e);
        check_exponent(power);
        check_exponent(-power);
        check_exponent(nextafterf(power, 0));
        check_exponent(nextafterf(power, INFINITY));
    }
    for (e = -149; e < -126; e++)
        check_exponent((float)ldexp(1, e));
}

static fate check_right_fate(float g, float scale) {
    float h = fabsf(amp_f32_from_f16(amp_f16_from_f32(g * scale)));
    if (g == 0) return FATE_ZERO;
    if (h == 0) return FATE_LOST;
    if (!amp_is_finite(h)) return FATE_OVERFLOW;
    return h < 0x1p-14f ? FATE_SUBNORMAL : FATE_NORMAL;
}

static void check_fate(float g, float scale, const char *why) {
    fate want = check_right_fate(g, scale), got;
    lab_doing("fate_of(%a, %g)", (double)g, (double)scale);
    got = fate_of(g, scale);
    if (got == want) return;
    lab_wrong("%a * %g becomes the half %g: that is %s, and yours is %s: %s", (double)g, (double)scale,
        (double)amp_f32_from_f16(amp_f16_from_f32(g * scale)), check_fate_names[want],
        (unsigned)got < FATES ? check_fate_names[got] : "no fate", why);
}

static void check_fates(void) {
    static const struct {
        float x;
        const char *why;
    } limits[] = {
        {1.0f, "it is an ordinary number"},
        {0x1p-24f, "2^-24 is the smallest half"},
        {0x1.8p-25f, "it is nearer to 2^-24 than to 0"},
        {0x1p-25f, "in the middle between 0 and 2^-24 the even one is 0"},
        {0x1.000002p-25f, "it is just above the middle between 0 and 2^-24"},
        {0x1p-30f, "it is far below 2^-25"},
        {0x1p-14f, "2^-14 is the smallest normal half"},
        {0x1.ff8p-15f, "it is the largest subnormal half"},
        {0x1.ffep-15f, "it is rounded up to 2^-14, which is normal"},
        {65504.0f, "it is the largest half"},
        {65519.0f, "it is rounded down to 65504"},
        {65520.0f, "from 65520 on it is Inf"},
        {1e9f, "it is far above 65520"},
    };
    size_t i;
    check_fate(0.0f, 65536, "0 was 0 before");
    check_fate(-0.0f, 65536, "0 was 0 before");
    for (i = 0; i < sizeof limits / sizeof *limits; i++) {
        check_fate(limits[i].x, 1, limits[i].why);
        check_fate(-limits[i].x, 1, "the sign does not matter");
        check_fate(limits[i].x / 65536, 65536, "the scale comes first, then the limits");
        check_fate(limits[i].x * 4, 0.25f, "the scale comes first, then the limits");
    }
}

/* Gradients as histograms of networks show them: a hill some 20 powers of two wide. */
static void check_fill(float *g, size_t n, int middle) {
    size_t i;
    for (i = 0; i < n; i++) {
        uint32_t u[4];
        int e;
        amp_philox(u, 4, (uint64_t)(middle + 200), i);
        e = middle + (int)(u[0] % 11 + u[1] % 11) - 10;
        g[i] = (float)ldexp(1 + (double)(u[2] >> 9) / 8388608, e) * (u[3] & 1 ? -1.0f : 1.0f);
        if (u[3] % 13 == 0) g[i] = 0;
    }
}

static void check_counts(const float *g, size_t n, float scale, int middle) {
    size_t want[FATES] = {0}, got[FATES], i, k;
    memset(got, 0xff, sizeof got);
    for (i = 0; i < n; i++)
        want[check_right_fate(g[i], scale)]++;
    lab_doing("count_fates of %d gradients", (int)n);
    count_fates(got, g, n, scale);
    for (k = 0; k < FATES; k++)
        if (got[k] != want[k])
            lab_wrong("of %d gradients near 2^%d, with the scale %g, %d have %s, and yours says %.0f%s", (int)n, middle,
                (double)scale, (int)want[k], check_fate_names[k], (double)got[k],
                got[k] > n ? ": the counts begin at 0, and you do it" : "");
}

static const char *check_suggestion_reason(float got, float want) {
    int e;
    if (!(got > 0) || !amp_is_finite(got) || frexpf(got, &e) != 0.5f) return "that is no power of two";
    return got > want ? "that leaves no room" : "a larger one has room, too";
}

/* amp_histogram_suggest_scale has room for one binary digit; a class may want more. */
static float check_right_scale(const amp_histogram *h) {
    float s = 0x1p100f;
    if (LAB4_ROOM == 2 || h->amax == 0) return amp_histogram_suggest_scale(h);
    while (s > 0x1p-14f && (double)h->amax * (double)s > 65504.0 / LAB4_ROOM)
        s /= 2;
    return s;
}

static void check_suggestion(amp_ctx *ctx, const float *g, size_t n, const char *what) {
    amp_histogram h;
    amp_array array = amp_arr(g, AMP_F32);
    float want, got;
    array.count = n;
    if (n == 0) array.data = NULL;
    amp_histogram_count(ctx, &h, &array, 1);
    want = check_right_scale(&h);
    lab_doing("suggest_scale of %s", what);
    got = suggest_scale(g, n);
    if (got == want) return;
    lab_wrong("the largest finite gradient of %s is %g: suggest_scale must be 2^%d, and yours is 2^%.4g: %s", what,
        (double)h.amax, (int)log2f(want), log2((double)got), check_suggestion_reason(got, want));
}

int main(void) {
    static float g[10000];
    static const float ends[] = {32752, 32753, 1, 0x1p-120f, 3e38f, -5e-5f, 1e-40f};
    char what[60];
    amp_ctx *ctx;
    size_t i;
    int middle;
    lab_begin();
    check_exponents();
    check_fates();
    if (amp_cpu_create(&ctx, NULL) != AMP_OK) lab_wrong("the checker itself fails");
    for (middle = -40; middle <= 10; middle += 10) {
        check_fill(g, 10000, middle);
        check_counts(g, 10000, 1, middle);
        check_counts(g, 10000, 65536, middle);
    }
    check_counts(g, 0, 1, 0);
    for (middle = -40; middle <= 10; middle += 10) {
        check_fill(g, 10000, middle);
        snprintf(what, sizeof what, "10000 gradients near 2^%d", middle);
        check_suggestion(ctx, g, 10000, what);
    }
    for (i = 0; i < sizeof ends / sizeof *ends; i++) {
        g[0] = ends[i];
        snprintf(what, sizeof what, "the one gradient %g", (double)ends[i]);
        check_suggestion(ctx, g, 1, what);
    }
    g[0] = INFINITY;
    g[1] = NAN;
    g[2] = -0x1p-10f;
    g[3] = 0;
    check_suggestion(ctx, g, 4, "Inf, NaN, -2^-10 and 0");
    check_suggestion(ctx, g + 3, 1, "nothing but 0");
    check_suggestion(ctx, g, 0, "no gradient");
    for (i = 0; i < 7; i++) { /* each one counts */
        size_t k;
        for (k = 0; k < 7; k++)
            g[k] = k == i ? 3000 : -1;
        snprintf(what, sizeof what, "7 gradients, number %d of them 3000", (int)i);
        check_suggestion(ctx, g, 7, what);
    }
    amp_ctx_destroy(ctx);
    lab_passed("your counts and scales are those of amp_histogram_fates and amp_histogram_suggest_scale");
    return 0;
}
