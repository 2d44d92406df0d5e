/* figures.c - the arithmetic of six figures, one for each of labs 1 to 6: for a page in a browser, and for a terminal.
 *
 *     make figures       build/figures.html: this file and amp.h as WebAssembly in one page (needs a compiler for it)
 *     make build/figures && build/figures 1 f16 2049     one figure with these choices: what the page says of it, and a
 *                                                        hash of all numbers in the picture
 *
 * Words (see --help) that are left out are those that the page begins with. Without words it says all six, everywhere:
 *   > 1 2049 lies in the middle between 2048 and 2050. The one whose last bit is 0 is 2048.
 *   > 2 In order: 2048, where it stands still after 2048 of 4096 numbers. In pairs: 4096. Compensated:
 *   >   4096. In FP32, rounded at the end: 4096. Exactly: 4096.
 *   > 3 The input is f32; layer_norm gives f32, linear gives f16, gelu gives f16, linear gives f16, add
 *   >   gives f32.
 *   > 4 Of 4096 gradients times 2^0, FP16 makes 2571 zero and 1525 subnormal; 0 keep all bits, 0 overflow.
 *   >   The largest is 5.63e-06: amp suggests the scale 2^32.
 *   > 5 15 of 200 steps are skipped, and the scale ends at 2^16. Step 1: 0.0668567 times 2^24 is Inf in
 *   >   FP16. The step is skipped; the next scale is 2^23.
 *   > 6 Without a master 1000 of 1000 updates are lost: the weight ends at 0.600097656. With one it ends
 *   >   at 0.400041342, and its FP16 copy at 0.400146484.
 *
 * The page writes its choices to figures_words(), calls figures_draw(N), which returns the sentence, and reads the
 * numbers at figures_now(), in the order of the enumerations below. All numbers are FP64.
 */
#ifndef AMP_LINKED /* with it, amp's code comes from other objects */
#  define AMP_IMPLEMENTATION
#endif
#include "amp.h"

#define PROGRAM "figures"
#include "program.h" /* must, options */

#include <math.h>
#include <stdio.h>

#ifdef PLAY_PAGE
#  define PAGE_CALL(name) __attribute__((export_name(#name), used)) /* JavaScript calls it by its name */
#else
#  define PAGE_CALL(name) static
#endif

enum { FIGURES = 6, WORDS = 8, NUMBERS = 2048 };

static struct figures {
    amp_ctx *ctx;
    double word[WORDS];  /* the choices */
    double now[NUMBERS]; /* the numbers of the picture */
    char text[2048];     /* the sentence */
    char hash[17];       /* of the numbers */
} figures;

/* ---- formats ---- */

static const struct format {
    const char *name;
    amp_dtype type;
    uint32_t largest; /* the bits of the largest finite number */
    const char *smallest, *beyond;
} formats[] = {
    {"FP16", AMP_F16, 0x7bff, "2^-24", "Inf"},
    {"BF16", AMP_BF16, 0x7f7f, "2^-133", "Inf"},
    {"FP8 E4M3", AMP_F8E4M3, 0x7e, "2^-9", "NaN, for E4M3 has no Inf"},
    {"FP8 E5M2", AMP_F8E5M2, 0x7b, "2^-16", "Inf"},
};

static uint32_t bits_of(const struct format *f, float x) {
    if (f->type == AMP_F16) return amp_f16_from_f32(x).bits;
    if (f->type == AMP_BF16) return amp_bf16_from_f32(x).bits;
    return f->type == AMP_F8E4M3 ? amp_f8e4m3_from_f32(x).bits : amp_f8e5m2_from_f32(x).bits;
}

static float value_of(const struct format *f, uint32_t bits) {
    amp_f16 half;
    amp_bf16 bfloat;
    amp_f8e4m3 e4m3;
    amp_f8e5m2 e5m2;
    half.bits = bfloat.bits = (uint16_t)bits;
    e4m3.bits = e5m2.bits = (uint8_t)bits;
    if (f->type == AMP_F16) return amp_f32_from_f16(half);
    if (f->type == AMP_BF16) return amp_f32_from_bf16(bfloat);
    return f->type == AMP_F8E4M3 ? amp_f32_from_f8e4m3(e4m3) : amp_f32_from_f8e5m2(e5m2);
}

static float rounded(const struct format *f, float x) { return value_of(f, bits_of(f, x)); }

/* The numbers of a format by their bits, and what would come after the largest one: rounding asks for it. */
static double counted(const struct format *f, uint32_t bits) {
    double last = (double)value_of(f, f->largest), step = last - (double)value_of(f, f->largest - 1);
    if (bits <= f->largest) return (double)value_of(f, bits);
    return last + step * (double)(bits - f->largest);
}

/* The bits of the largest number that is not above x, which is not negative. */
static uint32_t bits_below(const struct format *f, double x) {
    uint32_t bits = bits_of(f, (float)x);
    if (bits > f->largest) return f->largest;
    return counted(f, bits) > x ? bits - 1 : bits;
}

static const char *number_text(double x) { /* until the next call */
    static char text[32];
    if (amp_is_nan((float)x)) return "NaN";
    if (!amp_is_finite((float)x)) return x < 0 ? "-Inf" : "Inf";
    sprintf(text, "%.9g", x);
    return text;
}

/* ---- 1: a number is rounded. Words: format; number; a number near it, whose neighbours the picture shows ---- */

enum {
    ROUND_X,
    ROUND_RESULT, /* NaN is given as Inf */
    ROUND_X_BITS,
    ROUND_BITS,
    ROUND_KIND,
    ROUND_FIRST,               /* bits of the first of three neighbours */
    ROUND_LINE,                /* the three, and the middles between them, in order */
    ROUND_UP = ROUND_LINE + 5, /* of each middle: is it rounded up? */
    ROUND_COUNT = ROUND_UP + 2
};
enum { KIND_EXACT, KIND_NEAR, KIND_TIE, KIND_ZERO, KIND_BEYOND };

static int round_kind(const struct format *f, double size) {
    uint32_t bits = bits_of(f, (float)size), low = bits_below(f, size);
    double middle = (counted(f, low) + counted(f, low + 1)) / 2;
    if (bits > f->largest) return KIND_BEYOND;
    if (!(counted(f, low) < size)) return KIND_EXACT;
    if (bits == 0) return KIND_ZERO;
    return size < middle || size > middle ? KIND_NEAR : KIND_TIE;
}

static void round_say(const struct format *f, float x, int kind) {
    double size = fabs((double)x), low = counted(f, bits_below(f, size)), high = counted(f, bits_below(f, size) + 1);
    double result = (double)rounded(f, (float)size);
    const char *minus = x < 0 ? "-" : "", *where = kind == KIND_TIE ? "in the middle between" : "between";
    char *to = figures.text;
    if (kind == KIND_EXACT) sprintf(to, "%.9g is a number of %s: nothing is rounded.", (double)x, f->name);
    if (kind == KIND_ZERO)
        sprintf(to, "%.9g is at most half of the smallest number of %s, %s: it becomes %s0.", (double)x, f->name,
            f->smallest, minus);
    if (kind == KIND_BEYOND)
        sprintf(to,
            "%s's largest number is %.9g, and %.9g would be the next. %.9g is not below the middle between them: "
            "it becomes %s%s.",
            f->name, counted(f, f->largest), counted(f, f->largest + 1), (double)x, minus, f->beyond);
    if (kind != KIND_NEAR && kind != KIND_TIE) return;
    to += sprintf(to, "%.9g lies %s %s%.9g and %s%.9g. ", (double)x, where, minus, low, minus, high);
    if (kind == KIND_NEAR) sprintf(to, "The nearer one is %s%.9g.", minus, result);
    if (kind == KIND_TIE) sprintf(to, "The one whose last bit is 0 is %s%.9g.", minus, result);
}

static int figure_round(void) {
    const struct format *f = &formats[(int)figures.word[0]];
    double *now = figures.now, *line = now + ROUND_LINE;
    float x = (float)figures.word[1];
    uint32_t first = bits_below(f, fabs(figures.word[2])), bits = bits_of(f, x), u, i;
    if (first >= f->largest) first = f->largest - 1;
    memcpy(&u, &x, sizeof u);
    now[ROUND_X] = (double)x;
    now[ROUND_X_BITS] = u;
    now[ROUND_BITS] = bits;
    now[ROUND_RESULT] =
        amp_is_finite(value_of(f, bits)) ? (double)value_of(f, bits) : (double)(x < 0 ? -INFINITY : INFINITY);
    now[ROUND_KIND] = round_kind(f, fabs((double)x));
    now[ROUND_FIRST] = first;
    for (i = 0; i < 3; i++)
        line[2 * i] = counted(f, first + i);
    for (i = 0; i < 2; i++) {
        line[2 * i + 1] = (line[2 * i] + line[2 * i + 2]) / 2;
        now[ROUND_UP + i] = bits_of(f, (float)line[2 * i + 1]) != first + i;
    }
    round_say(f, x, (int)now[ROUND_KIND]);
    return ROUND_COUNT;
}

/* ---- 2: a sum. Words: format; numbers; x; how many; the addition that is looked at ---- */

enum { SUM_MOST = 8192, SUM_POINTS = 257 };
enum {
    SUM_EXACT, /* in FP64 */
    SUM_IN_ORDER,
    SUM_IN_PAIRS,
    SUM_COMPENSATED,
    SUM_IN_F32, /* and rounded at the end */
    SUM_MOVED,  /* the last number that changed the sum in order, counted from 1 */
    SUM_BEFORE, /* the addition that is looked at: sum before, number, their exact sum, its two neighbours, result */
    SUM_NUMBER,
    SUM_BETWEEN,
    SUM_BELOW,
    SUM_ABOVE,
    SUM_AFTER,
    SUM_CURVES, /* SUM_POINTS times the first five, for more and more numbers */
    SUM_COUNT = SUM_CURVES + 5 * SUM_POINTS
};

static float sum_number(int kind, double x, int n, int i) {
    if (kind == 1) return (float)(x / (1 + i)); /* falling */
    if (kind == 2) return (float)(x / (n - i)); /* the same, rising */
    if (kind == 3) return (float)(2 * x * ((double)amp_random(1, 2, (uint64_t)i) / 4294967296.0));
    return (float)x;
}

static float sum_pairs(const struct format *f, const float *v, int n) {
    if (n < 2) return n ? v[0] : 0;
    return rounded(f, sum_pairs(f, v, n / 2) + sum_pairs(f, v + n / 2, n - n / 2));
}

static void sum_look(const struct format *f, float before, float number, float after) {
    double *now = figures.now, between = (double)before + (double)number;
    uint32_t low = bits_below(f, between);
    now[SUM_BEFORE] = (double)before;
    now[SUM_NUMBER] = (double)number;
    now[SUM_BETWEEN] = between;
    now[SUM_BELOW] = counted(f, low);
    now[SUM_ABOVE] = counted(f, low + 1);
    now[SUM_AFTER] = (double)after;
}

static void sum_curves(const struct format *f, const float *v, int n) {
    float s = 0, wide = 0, kahan = 0, c = 0;
    double exact = 0, *now = figures.now;
    int i, point = 0;
    now[SUM_MOVED] = 0;
    for (i = 0; i <= n; i++) {
        float before = s, y, t;
        if (i * (SUM_POINTS - 1) / n == point) { /* n is at least SUM_POINTS - 1 */
            double *to = now + SUM_CURVES + 5 * point++;
            to[SUM_EXACT] = exact;
            to[SUM_IN_ORDER] = (double)s;
            to[SUM_IN_PAIRS] = (double)sum_pairs(f, v, i);
            to[SUM_COMPENSATED] = (double)kahan;
            to[SUM_IN_F32] = (double)rounded(f, wide);
            if (i == n) memcpy(now, to, 5 * sizeof *to);
        }
        if (i == n) break;
        s = rounded(f, s + v[i]);
        if (s < before || s > before) now[SUM_MOVED] = i + 1;
        if (i + 1 == (int)figures.word[4]) sum_look(f, before, v[i], s);
        y = rounded(f, v[i] - c); /* as in lab 2 */
        t = rounded(f, kahan + y);
        c = rounded(f, rounded(f, t - kahan) - y);
        kahan = t;
        wide += v[i];
        exact += (double)v[i];
    }
}

static int figure_sum(void) {
    static float v[SUM_MOST];
    const struct format *f = &formats[(int)figures.word[0]];
    const double *now = figures.now;
    int i, n = (int)figures.word[3];
    char *to = figures.text;
    if (figures.word[4] > n) figures.word[4] = n;
    for (i = 0; i < n; i++)
        v[i] = rounded(f, sum_number((int)figures.word[1], figures.word[2], n, i));
    sum_curves(f, v, n);
    to += sprintf(to, "In order: %s", number_text(now[SUM_IN_ORDER]));
    if (8 * now[SUM_MOVED] < 7 * n)
        to += sprintf(to, ", where it stands still after %.0f of %d numbers", now[SUM_MOVED], n);
    to += sprintf(to, ". In pairs: %s.", number_text(now[SUM_IN_PAIRS]));
    to += sprintf(to, " Compensated: %s.", number_text(now[SUM_COMPENSATED]));
    to += sprintf(to, " In FP32, rounded at the end: %s.", number_text(now[SUM_IN_F32]));
    sprintf(to, " Exactly: %s.", number_text(now[SUM_EXACT]));
    return SUM_COUNT;
}

/* ---- 3: dtypes under autocast. Words: format of the region; format of the input; five operations ---- */

enum { CAST_OPERATIONS = 5 };
enum {
    CAST_CLASS,  /* an amp_op_class */
    CAST_READ,   /* an amp_dtype: what the operation reads of the result before it */
    CAST_SECOND, /* and of its other operand; 0: it has none */
    CAST_RESULT, /* 0: it is refused, or was not reached */
    CAST_EACH
};
enum { CAST_COUNT = CAST_OPERATIONS * CAST_EACH };

static const char *const cast_names[] = {"linear", "conv2d", "matmul", "relu", "gelu", "dropout", "add", "mul", "exp",
    "pow", "sum", "softmax", "layer_norm", "mse_loss", "cross_entropy", NULL};
enum { CAST_WEIGHTED = 2, CAST_ADD = 6, CAST_MUL = 7 }; /* the first two have stored FP32 weights */

/* Operation i of that list, of an input of dtype `in`; add and mul: and of the first input of all. */
static amp_status cast_operation(int i, amp_dtype in, amp_dtype first, double *to) {
    static float memory[2][4];
    int weighted = i < CAST_WEIGHTED, two = weighted || i == CAST_ADD || i == CAST_MUL;
    amp_array operand[2], read[2];
    amp_policy policy;
    amp_op op;
    amp_status status;
    must(NULL, amp_op_find(&op, cast_names[i]));
    must(figures.ctx, amp_policy_init(figures.ctx, &policy, AMP_PRESET_AMP, NULL));
    to[CAST_CLASS] = figures.word[0] > 0 ? (double)amp_policy_class(&policy, op) : (double)AMP_CLASS_NONE;
    operand[0] = amp_arrn(memory[0], in, 4);
    operand[1] = amp_arrn(memory[1], weighted ? AMP_F32 : first, 4);
    status = amp_autocast_input(figures.ctx, read, op, operand, two ? 2 : 1);
    if (status != AMP_OK) return status;
    to[CAST_READ] = read[0].dtype;
    to[CAST_SECOND] = two ? read[1].dtype : 0;
    to[CAST_RESULT] = amp_autocast_output(figures.ctx, op, read[0].dtype);
    return AMP_OK;
}

static int figure_autocast(void) {
    static const amp_dtype lows[] = {AMP_AUTO, AMP_F16, AMP_BF16}, inputs[] = {AMP_F32, AMP_F16, AMP_BF16};
    amp_dtype first = inputs[(int)figures.word[1]], at = first;
    amp_autocast_desc region = AMP_ZERO;
    char *to = figures.text;
    int i;
    region.low = lows[(int)figures.word[0]];
    region.disabled = region.low == AMP_AUTO;
    must(figures.ctx, amp_autocast_begin(figures.ctx, &region));
    to += sprintf(to, "The input is %s", amp_dtype_name(first));
    for (i = 0; i < CAST_OPERATIONS; i++) {
        double *each = figures.now + i * CAST_EACH;
        int operation = (int)figures.word[2 + i];
        if (cast_operation(operation, at, first, each) != AMP_OK) {
            sprintf(to, ". Refused: %s.", amp_last_error(figures.ctx));
            break;
        }
        at = (amp_dtype)each[CAST_RESULT];
        to += sprintf(to, "%s %s gives %s", i ? "," : ";", cast_names[operation], amp_dtype_name(at));
        if (i == CAST_OPERATIONS - 1) sprintf(to, ".");
    }
    must(figures.ctx, amp_autocast_end(figures.ctx));
    return CAST_COUNT;
}

/* ---- 4: gradients and a scale. Words: format; middle; spread; one large gradient; scale (powers of two) ---- */

enum { SCALE_GRADIENTS = 4096 };
enum {
    SCALE_LOST, /* how many gradients, times the scale, become 0; subnormal; normal; Inf */
    SCALE_SUBNORMAL,
    SCALE_NORMAL,
    SCALE_OVERFLOW,
    SCALE_AMAX,      /* before scaling */
    SCALE_SUGGESTED, /* by amp_histogram_suggest_scale */
    SCALE_SIZES,     /* how many are in [2^(i-127), 2^(i-126)), before scaling */
    SCALE_COUNT = SCALE_SIZES + 255
};

/* A number like 2^middle, sometimes up to 2 * spread powers of two away: made by exact operations only. */
static float scale_gradient(double middle, double spread, int i) {
    double away = -2, power, whole;
    int k;
    for (k = 0; k < 4; k++)
        away += (double)amp_random(4, (uint64_t)k, (uint64_t)i) / 4294967296.0;
    power = spread * away;
    power += middle;
    whole = floor(power);
    return (float)ldexp(1 + (power - whole), (int)whole);
}

static double *scale_fate(const struct format *f, float scaled) {
    double normal = f->type == AMP_F16 ? 0x1p-14 : 0x1p-126, size = fabs((double)rounded(f, scaled));
    if (!amp_is_finite(rounded(f, scaled))) return figures.now + SCALE_OVERFLOW;
    if (!(size > 0)) return figures.now + SCALE_LOST;
    return figures.now + (size < normal ? SCALE_SUBNORMAL : SCALE_NORMAL);
}

static int figure_scale(void) {
    static float g[SCALE_GRADIENTS];
    const struct format *f = &formats[(int)figures.word[0]];
    double *now = figures.now;
    amp_array gradients = amp_arrn(g, AMP_F32, SCALE_GRADIENTS);
    amp_histogram h;
    int i;
    for (i = 0; i < SCALE_GRADIENTS; i++)
        g[i] = scale_gradient(figures.word[1], figures.word[2], i);
    if (figures.word[3] > 0) g[0] = (float)ldexp(1.5, (int)(figures.word[1] + 2 * figures.word[2]) + 6);
    for (i = 0; i < SCALE_GRADIENTS; i++)
        ++*scale_fate(f, (float)ldexp((double)g[i], (int)figures.word[4]));
    must(figures.ctx, amp_histogram_count(figures.ctx, &h, &gradients, 1));
    now[SCALE_AMAX] = (double)h.amax;
    now[SCALE_SUGGESTED] = (double)amp_histogram_suggest_scale(&h);
    for (i = 0; i < 255; i++)
        now[SCALE_SIZES + i] = (double)h.pow2[i];
    sprintf(figures.text,
        "Of %d gradients times 2^%.0f, %s makes %.0f zero and %.0f subnormal; %.0f keep all bits, "
        "%.0f overflow. The largest is %.3g: amp suggests the scale 2^%.0f.",
        SCALE_GRADIENTS, figures.word[4], f->name, now[SCALE_LOST], now[SCALE_SUBNORMAL], now[SCALE_NORMAL],
        now[SCALE_OVERFLOW], now[SCALE_AMAX], log2(now[SCALE_SUGGESTED]));
    return SCALE_COUNT;
}

/* ---- 5: a dynamic scale. Words: first scale; largest gradient; spike (powers of two); interval; hysteresis; the step
   that is looked at ---- */

enum { SCALER_STEPS = 200, SCALER_SPIKE = 120, SCALER_SPIKE_STEPS = 6 };
enum { STEP_SCALE, STEP_LIMIT, STEP_SKIPPED, STEP_EACH }; /* limit: from this scale on the gradient overflows */
enum {
    SCALER_SKIPPED,
    SCALER_LAST,     /* the scale after the last step */
    SCALER_GRADIENT, /* of the step that is looked at, and times the scale, in FP16 (0 for Inf: skipped) */
    SCALER_HALF,
    SCALER_BITS,
    SCALER_GROWTH, /* the trackers after it */
    SCALER_HYSTERESIS,
    SCALER_NEXT, /* and the scale */
    SCALER_EACH, /* STEP_EACH for each step */
    SCALER_COUNT = SCALER_EACH + STEP_EACH * SCALER_STEPS
};

/* The gradient of a step: as large as it gets, or up to 8 times smaller. */
static float scaler_gradient(int step) {
    double power = figures.word[1], u = (double)amp_random(5, 0, (uint64_t)step) / 4294967296.0;
    int less = (int)(amp_random(5, 1, (uint64_t)step) % 4u);
    if (step > SCALER_SPIKE && step <= SCALER_SPIKE + SCALER_SPIKE_STEPS) power += figures.word[2];
    return (float)ldexp(1 + u, (int)power - 1 - less);
}

static void scaler_step(amp_params *p, amp_scaler *s, int step) {
    double *now = figures.now, *each = now + SCALER_EACH + STEP_EACH * (step - 1);
    amp_step_desc update = AMP_ZERO;
    amp_scaler_info before, after;
    amp_step_record record;
    float g = scaler_gradient(step);
    amp_f16 scaled;
    must(figures.ctx, amp_scaler_get(s, &before));
    scaled = amp_f16_from_f32(g * before.scale); /* as backward leaves it */
    memcpy(amp_param_grad(p, 0).data, &scaled, sizeof scaled);
    update.optimizer = AMP_SGD;
    update.lr = 0x1p-20f;
    must(figures.ctx, amp_step(p, s, &update));
    must(figures.ctx, amp_step_poll(p, &record));
    must(figures.ctx, amp_scaler_get(s, &after));
    each[STEP_SCALE] = (double)before.scale;
    each[STEP_LIMIT] = 65520 / (double)g;
    each[STEP_SKIPPED] = record.outcome != AMP_STEPPED;
    now[SCALER_SKIPPED] = (double)record.skipped;
    now[SCALER_LAST] = (double)after.scale;
    if (step != (int)figures.word[5]) return;
    now[SCALER_GRADIENT] = (double)g;
    now[SCALER_BITS] = scaled.bits;
    now[SCALER_HALF] = amp_is_finite(amp_f32_from_f16(scaled)) ? (double)amp_f32_from_f16(scaled) : 0;
    now[SCALER_GROWTH] = after.growth_tracker;
    now[SCALER_HYSTERESIS] = after.hysteresis_tracker;
    now[SCALER_NEXT] = (double)after.scale;
}

static void scaler_say(int interval) {
    const double *now = figures.now, *each = now + SCALER_EACH + STEP_EACH * ((int)figures.word[5] - 1);
    char *to = figures.text;
    to += sprintf(to, "%.0f of %d steps are skipped, and the scale ends at 2^%.0f. Step %.0f: %.6g times 2^%.0f is ",
        now[SCALER_SKIPPED], SCALER_STEPS, log2(now[SCALER_LAST]), figures.word[5], now[SCALER_GRADIENT],
        log2(each[STEP_SCALE]));
    if (each[STEP_SKIPPED] > 0)
        sprintf(to, "Inf in FP16. The step is skipped; the next scale is 2^%.0f.", log2(now[SCALER_NEXT]));
    else
        sprintf(to, "%.6g in FP16. The step is taken; good steps in a row since the last change: %.0f of %d.",
            now[SCALER_HALF], now[SCALER_GROWTH], interval);
}

static int figure_scaler(void) {
    amp_scaler_desc rule = AMP_ZERO;
    amp_param_desc weight = AMP_ZERO;
    amp_scaler *s;
    amp_params *p;
    int step;
    rule.scale = (float)ldexp(1, (int)figures.word[0]);
    rule.growth_interval = (int32_t)figures.word[3];
    rule.hysteresis = (int32_t)figures.word[4];
    weight.count = 1;
    must(figures.ctx, amp_scaler_create(&s, figures.ctx, &rule));
    must(figures.ctx, amp_params_create(&p, figures.ctx, NULL));
    must(figures.ctx, amp_params_add(p, &weight));
    must(figures.ctx, amp_params_commit(p));
    for (step = 1; step <= SCALER_STEPS; step++)
        scaler_step(p, s, step);
    amp_params_destroy(p);
    amp_scaler_destroy(s);
    scaler_say(rule.growth_interval);
    return SCALER_COUNT;
}

/* ---- 6: master weights. Words: format; first weight; learning rate; gradient; steps ---- */

enum { MASTER_POINTS = 65 };
enum {
    MASTER_UPDATE, /* rate times gradient */
    MASTER_BELOW,  /* the neighbours of the first weight */
    MASTER_FIRST,
    MASTER_ABOVE,
    MASTER_EXACT, /* the first update, not rounded; without a master, it becomes: */
    MASTER_ROUNDED,
    MASTER_LOST, /* updates without a master that changed nothing; steps in which the copy of the master moved */
    MASTER_MOVED,
    MASTER_ALONE, /* after the last step: the weight without a master, the master, its copy */
    MASTER_MASTER,
    MASTER_COPY,
    MASTER_CURVES, /* MASTER_POINTS times the last three */
    MASTER_COUNT = MASTER_CURVES + 3 * MASTER_POINTS
};

/* A weight with a constant gradient. */
static amp_params *master_set(const struct format *f, amp_master master) {
    amp_params_desc layout = AMP_ZERO;
    amp_param_desc weight = AMP_ZERO;
    float init = (float)figures.word[1];
    amp_params *p;
    layout.model = f->type;
    layout.master = master;
    weight.count = 1;
    weight.init = &init;
    must(figures.ctx, amp_params_create(&p, figures.ctx, &layout));
    must(figures.ctx, amp_params_add(p, &weight));
    must(figures.ctx, amp_params_commit(p));
    amp_store(amp_param_grad(p, 0).data, f->type, 0, (float)figures.word[3]);
    return p;
}

static float master_copy(const amp_params *p) { /* what products read */
    amp_array model = amp_param_model(p, 0);
    return amp_load(model.data, model.dtype, 0);
}

/* One step of both; which of the two weights moved. */
static void master_step(amp_params *alone, amp_params *with) {
    float was = master_copy(alone), copy = master_copy(with);
    amp_step_desc update = AMP_ZERO;
    update.optimizer = AMP_SGD;
    update.lr = (float)figures.word[2];
    must(figures.ctx, amp_step(alone, NULL, &update));
    must(figures.ctx, amp_step(with, NULL, &update));
    if (master_copy(alone) >= was && master_copy(alone) <= was) figures.now[MASTER_LOST]++;
    if (master_copy(with) < copy || master_copy(with) > copy) figures.now[MASTER_MOVED]++;
}

static void master_first(const struct format *f, float w) {
    double *now = figures.now, size = fabs((double)w);
    uint32_t bits = bits_below(f, size);
    now[MASTER_UPDATE] = (double)((float)figures.word[2] * rounded(f, (float)figures.word[3]));
    now[MASTER_FIRST] = (double)w;
    now[MASTER_BELOW] = bits ? counted(f, bits - 1) : -counted(f, 1);
    now[MASTER_ABOVE] = counted(f, bits + 1);
    now[MASTER_EXACT] = (double)w - now[MASTER_UPDATE];
}

static int figure_masters(void) {
    const struct format *f = &formats[(int)figures.word[0]];
    amp_params *alone = master_set(f, AMP_MASTER_NONE), *with = master_set(f, AMP_MASTER_F32);
    double *now = figures.now;
    char *to = figures.text;
    int steps = (int)figures.word[4], step, point = 0;
    master_first(f, master_copy(alone));
    for (step = 0; step <= steps; step++) {
        float master;
        if (step) master_step(alone, with);
        if (step == 1) now[MASTER_ROUNDED] = (double)master_copy(alone);
        must(figures.ctx, amp_param_read(with, 0, &master));
        now[MASTER_ALONE] = (double)master_copy(alone);
        now[MASTER_MASTER] = (double)master;
        now[MASTER_COPY] = (double)master_copy(with);
        for (; point < MASTER_POINTS && point * steps / (MASTER_POINTS - 1) == step; point++)
            memcpy(now + MASTER_CURVES + 3 * point, now + MASTER_ALONE, 3 * sizeof *now);
    }
    amp_params_destroy(alone);
    amp_params_destroy(with);
    to += sprintf(to, "Without a master %.0f of %d updates are lost: ", now[MASTER_LOST], steps);
    to += sprintf(to, "the weight ends at %s.", number_text(now[MASTER_ALONE]));
    to += sprintf(to, " With one it ends at %s,", number_text(now[MASTER_MASTER]));
    sprintf(to, " and its %s copy at %s.", f->name, number_text(now[MASTER_COPY]));
    return MASTER_COUNT;
}

/* ---- all of them ---- */

typedef struct word {
    const char *name;
    const char *const *choices; /* NULL: a number */
    double low, high, first;
    int whole;
} word;

static const char *const four_formats[] = {"f16", "bf16", "e4m3", "e5m2", NULL},
                         *const two_formats[] = {"f16", "bf16", NULL};
static const char *const regions[] = {"off", "f16", "bf16", NULL}, *const inputs[] = {"f32", "f16", "bf16", NULL};
static const char *const sums[] = {"same", "falling", "rising", "random", NULL},
                         *const outliers[] = {"even", "outlier", NULL};

static const struct figure {
    int (*draw)(void); /* makes numbers and sentence; returns how many numbers there are */
    word words[WORDS];
} all[FIGURES] = {
    {figure_round,
        {{"FORMAT", four_formats, 0, 0, 0, 0}, {"X", NULL, -3.4e38, 3.4e38, 2049, 0},
            {"NEAR", NULL, -3.4e38, 3.4e38, 2049, 0}}},
    {figure_sum,
        {{"FORMAT", two_formats, 0, 0, 0, 0}, {"NUMBERS", sums, 0, 0, 0, 0}, {"X", NULL, 1e-6, 1000, 1, 0},
            {"COUNT", NULL, SUM_POINTS - 1, SUM_MOST, 4096, 1}, {"AT", NULL, 1, SUM_MOST, 2049, 1}}},
    {figure_autocast,
        {{"REGION", regions, 0, 0, 1, 0}, {"INPUT", inputs, 0, 0, 0, 0}, {"OP", cast_names, 0, 0, 12, 0},
            {"OP", cast_names, 0, 0, 0, 0}, {"OP", cast_names, 0, 0, 4, 0}, {"OP", cast_names, 0, 0, 0, 0},
            {"OP", cast_names, 0, 0, 6, 0}}},
    {figure_scale,
        {{"FORMAT", two_formats, 0, 0, 0, 0}, {"MIDDLE", NULL, -40, 0, -26, 1}, {"SPREAD", NULL, 1, 12, 5, 1},
            {"LARGEST", outliers, 0, 0, 0, 0}, {"SCALE", NULL, 0, 40, 0, 1}}},
    {figure_scaler,
        {{"FIRST", NULL, 0, 40, 24, 1}, {"LARGEST", NULL, -24, 8, 0, 1}, {"SPIKE", NULL, 0, 12, 3, 1},
            {"INTERVAL", NULL, 2, 60, 20, 1}, {"HYSTERESIS", NULL, 1, 4, 1, 1}, {"AT", NULL, 1, SCALER_STEPS, 1, 1}}},
    {figure_masters,
        {{"FORMAT", two_formats, 0, 0, 0, 0}, {"WEIGHT", NULL, 0.001, 1000, 0.6, 0}, {"RATE", NULL, 1e-6, 1, 0.001, 0},
            {"GRADIENT", NULL, -1000, 1000, 0.2, 0}, {"STEPS", NULL, MASTER_POINTS - 1, 2000, 1000, 1}}},
};

/* FNV-1a of the bits of n numbers. */
static void hash_numbers(int n) {
    uint64_t hash = 14695981039346656037u, u;
    int i, byte;
    for (i = 0; i < n; i++) {
        memcpy(&u, &figures.now[i], sizeof u);
        if (amp_is_nan((float)figures.now[i])) u = 0; /* which of the NaNs is the machine's choice */
        for (byte = 0; byte < 8; byte++)
            hash = (hash ^ (u >> 8 * byte & 255u)) * 1099511628211u;
    }
    sprintf(figures.hash, "%08lx%08lx", (unsigned long)(hash >> 32), (unsigned long)(hash & 0xffffffffu));
}

/* Figure n, 1 to 6, of figures_words(). */
PAGE_CALL(figures_draw) const char *figures_draw(int n) {
    amp_cpu_desc cpu = AMP_ZERO;
    cpu.threads = 1;
    if (!figures.ctx) must(NULL, amp_cpu_create(&figures.ctx, &cpu));
    memset(figures.now, 0, sizeof figures.now);
    hash_numbers(all[n - 1].draw());
    return figures.text;
}

#ifdef PLAY_PAGE
PAGE_CALL(figures_words) double *figures_words(void) { return figures.word; }
PAGE_CALL(figures_now) double *figures_now(void) { return figures.now; }
PAGE_CALL(figures_hash) const char *figures_hash(void) { return figures.hash; }
PAGE_CALL(figures_operations) const char *figures_operations(void) { /* those of figure 3, with a space between them */
    int i;
    *figures.text = 0;
    for (i = 0; cast_names[i]; i++)
        strcat(strcat(figures.text, i ? " " : ""), cast_names[i]);
    return figures.text;
}
#else
static void take(int n, int i, const char *text) {
    const word *w = &all[n - 1].words[i];
    int choices = 0;
    figures.word[i] = w->first;
    if (!text) {
        if (n == 1 && i == 2) figures.word[2] = figures.word[1];
        return;
    }
    if (!w->name) option_refuse("figure %d takes fewer words: '%s' is too many", n, text);
    if (!w->choices) {
        figures.word[i] = option_number(w->name, text, w->low, w->high, w->whole);
        return;
    }
    while (w->choices[choices])
        choices++;
    figures.word[i] = option_choice(w->name, text, w->choices, choices);
}

/* The sentence, in lines of at most 100 characters. */
static void print_lines(int n, const char *text) {
    int at = printf("%d", n), length;
    for (; *text; text += length + (text[length] == ' ')) {
        length = (int)strcspn(text, " ");
        if (at + 1 + length > 100) at = printf("\n ") - 1;
        at += printf(" %.*s", length, text);
    }
    printf("\n");
}

static void help(void) {
    int n, i, k;
    for (n = 1; n <= FIGURES; n++) {
        printf("figures %d", n);
        for (i = 0; i < WORDS && all[n - 1].words[i].name; i++) {
            const word *w = &all[n - 1].words[i];
            int again = i && w->choices == w[-1].choices; /* the same choices are said once */
            printf(" %s", w->choices && !again ? w->choices[0] : w->name);
            for (k = 1; w->choices && !again && w->choices[k]; k++)
                printf("|%s", w->choices[k]);
        }
        printf("\n");
    }
}

int main(int argc, char **argv) {
    int one, n, i;
    if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
        help();
        return 0;
    }
    one = argc > 1 ? (int)option_number("N", argv[1], 1, FIGURES, 1) : 0;
    for (n = one ? one : 1; n <= (one ? one : FIGURES); n++) {
        for (i = 0; i < WORDS; i++)
            take(n, i, i + 2 < argc ? argv[i + 2] : NULL);
        print_lines(n, figures_draw(n));
        if (one) printf("%s\n", figures.hash);
    }
    amp_ctx_destroy(figures.ctx);
    return 0;
}
#endif
