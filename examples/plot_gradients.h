/* plot_gradients.h - pictures of gradients by size, beside what FP16 can hold: digits.c, gpt.c, debug.c. */
#ifndef PLOT_GRADIENTS_H
#define PLOT_GRADIENTS_H

#include "plot.h"

/* ---- gradient exponents ---------------------------------------------------------------------------------------- */

#define PLOT_LOST   (-25) /* |x| < 2^-25 rounds to zero in FP16 */
#define PLOT_NORMAL (-14) /* from 2^-14 on, FP16 has all its 11 bits */
#define PLOT_OVER   16    /* 2^16 and more is beyond FP16's 65504 */

/* What FP16 makes of a gradient, by its power of two: at least 2^from and below 2^to. */
enum { PLOT_REGIONS = 4, PLOT_FAR = 400 };
static const struct plot_region {
    const char *name, *what, *colour, *bar;
    int from, to;
} plot_regions[PLOT_REGIONS] = {
    {"LOST", "rounds to 0", "#FBE3D6", PLOT_BAD, -PLOT_FAR, PLOT_LOST},
    {"SUBNORMAL", "fewer bits", "#FFF6D6", "#E69F00", PLOT_LOST, PLOT_NORMAL},
    {"NORMAL", "full precision", "#DCEBF7", "#0072B2", PLOT_NORMAL, PLOT_OVER},
    {"OVERFLOW", "Inf", "#E2E2E2", "#333333", PLOT_OVER, PLOT_FAR},
};

/* share[i]: share (0..1) of the nonzero gradients with 2^(i-127) <= |x| < 2^(i-126). */
static double plot_share_in(const double *share, const struct plot_region *r) {
    double sum = 0;
    int e;
    for (e = -127; e <= 127; e++)
        if (e >= r->from && e < r->to) sum += share[e + 127];
    return sum;
}

typedef struct plot_exponent_area {
    double left, right, top, bottom, most; /* most: the share at the height of the area */
    int low, high;                         /* powers of two */
    int phone;                             /* what becomes of the gradients stands below, not in the regions */
} plot_exponent_area;

static double plot_exponent_width(const plot_exponent_area *a) { /* of one power of two */
    return (a->right - a->left) / (a->high - a->low);
}
static double plot_exponent_x(const plot_exponent_area *a, int e) {
    return a->left + (e - a->low) * plot_exponent_width(a);
}
static double plot_exponent_height(const plot_exponent_area *a, double share) {
    return share / a->most * (a->bottom - a->top - 8);
}

static void plot_exponent_region(
    FILE *f, const plot_exponent_area *a, const struct plot_region *r, const double *share) {
    int from = r->from < a->low ? a->low : r->from, to = r->to > a->high ? a->high : r->to, e;
    double sum = plot_share_in(share, r), x0, x1, middle;
    char text[96];
    if (from >= to) return;
    x0 = plot_exponent_x(a, from);
    x1 = plot_exponent_x(a, to);
    middle = (x0 + x1) / 2;
    sprintf(text, "fill=\"%s\"", r->colour);
    plot_rect(f, x0, a->top, x1 - x0, a->bottom - a->top, text);
    if (!a->phone) {
        plot_text(f, middle, a->top - 22, "middle", "font-size=\"11\"", r->name);
        if (sum > 0 && sum < 0.0005)
            sprintf(text, "%s, &lt;0.1%%", r->what);
        else
            sprintf(text, "%s, %.1f%%", r->what, 100.0 * sum);
        plot_text(f, middle, a->top - 7, "middle", "font-size=\"11\" font-weight=\"bold\"", text);
    }
    sprintf(text, "fill=\"%s\"", r->bar);
    for (e = from; e < to; e++) {
        double height = plot_exponent_height(a, share[e + 127]);
        plot_rect(f, plot_exponent_x(a, e) + 1, a->bottom - height, plot_exponent_width(a) - 2, height, text);
    }
    if (to < a->high)
        plot_line(f, x1, a->top - (a->phone ? 0 : 34), x1, a->bottom, "stroke=\"#999999\" stroke-dasharray=\"3 3\"");
}

/* Of a phone's form: what becomes of the gradients, in two columns. */
static void plot_exponent_key(FILE *f, const double *share, double y) {
    static const char *const names[PLOT_REGIONS] = {"lost, 0", "subnormal", "normal", "overflow, Inf"};
    char text[96];
    int r;
    for (r = 0; r < PLOT_REGIONS; r++) {
        double x = r < 2 ? PLOT_EDGE : 174, sum = plot_share_in(share, &plot_regions[r]);
        sprintf(text, "fill=\"%s\"", plot_regions[r].bar);
        plot_rect(f, x, y + 20 * (r % 2) - 10, 12, 12, text);
        if (sum > 0 && sum < 0.0005)
            sprintf(text, "%s: <tspan font-weight=\"bold\">&lt;0.1%%</tspan>", names[r]);
        else
            sprintf(text, "%s: <tspan font-weight=\"bold\">%.1f%%</tspan>", names[r], 100 * sum);
        plot_text(f, x + 18, y + 20 * (r % 2), "start", "font-size=\"12\"", text);
    }
}

static void plot_exponent_panel(FILE *f, const plot_exponent_area *a, const double *share, const char *heading) {
    double mark;
    char text[96];
    int r, e;
    if (a->phone)
        plot_text(f, PLOT_EDGE, a->top - 12, "start", "font-weight=\"bold\"", heading);
    else
        plot_text(f, a->left, a->top - 46, "start", "font-weight=\"bold\"", heading);
    for (r = 0; r < PLOT_REGIONS; r++)
        plot_exponent_region(f, a, &plot_regions[r], share);
    plot_line(f, a->left, a->bottom, a->right, a->bottom, "stroke=\"#222222\"");
    for (e = a->low; e <= a->high; e++) {
        double x = plot_exponent_x(a, e);
        if (e % (a->phone ? 16 : 4) != 0) continue;
        plot_line(f, x, a->bottom, x, a->bottom + 5, "stroke=\"#222222\"");
        plot_power(f, x, a->bottom + 21, "middle", e);
    }
    for (mark = 0; mark <= a->most; mark += plot_tick(a->most)) {
        double y = a->bottom - plot_exponent_height(a, mark);
        sprintf(text, "%g%%", 100.0 * mark);
        plot_text(f, a->left - 8, y + 4, "end", a->phone ? "font-size=\"12\"" : "font-size=\"11\"", text);
        plot_line(f, a->left - 5, y, a->left, y, "stroke=\"#222222\"");
    }
    if (a->phone)
        plot_exponent_key(f, share, a->bottom + 48);
    else
        fprintf(f,
            "<text transform=\"translate(16 %.0f) rotate(-90)\" text-anchor=\"middle\" font-size=\"11\">%s</text>\n",
            (a->top + a->bottom) / 2, "share of gradients");
}

/* What FP16 loses of the gradients before and after scaling. */
static void plot_exponents_finding(char text[200], const double *before, const double *after) {
    sprintf(text,
        "FP16 would make %.1f%% of them zero and %.1f%% subnormal; times the loss scale, "
        "%.1f%% and "
        "%.1f%%.",
        100 * plot_share_in(before, &plot_regions[0]), 100 * plot_share_in(before, &plot_regions[1]),
        100 * plot_share_in(after, &plot_regions[0]), 100 * plot_share_in(after, &plot_regions[1]));
}

static int plot_exponents_form(const char *path, int width, const plot_words *words, const double *before,
    const double *after, const char *heading_before, const char *heading_after) {
    static const plot_exponent_area wide = {70, 910, 168, 348, 0, PLOT_LOST - 9, PLOT_OVER + 6, 0};
    static const plot_exponent_area phone = {44, 326, 54, 194, 0, PLOT_LOST - 9, PLOT_OVER + 6, 1};
    plot_exponent_area a = width == PLOT_PHONE ? phone : wide;
    FILE *f = plot_open(path, width, a.phone ? 548 : 680, words);
    int e;
    if (!f) return -1;
    for (e = -127; e <= 127; e++) {
        double m = before[e + 127] > after[e + 127] ? before[e + 127] : after[e + 127];
        if (m > a.most) a.most = m;
        if (m > 0.002 && e < a.low) a.low = e;
        if (m > 0.002 && e >= a.high) a.high = e + 1;
    }
    if (a.most <= 0) a.most = 1;
    if (a.phone) plot_text(f, PLOT_EDGE, 20, "start", "font-size=\"12\"", "Share of gradients, by size |g|");
    plot_exponent_panel(f, &a, before, heading_before);
    a.top += a.phone ? 262 : 280;
    a.bottom += a.phone ? 262 : 280;
    plot_exponent_panel(f, &a, after, heading_after);
    if (!a.phone) plot_text(f, 490, 668, "middle", "", "size of a gradient, |g|");
    return plot_close(f);
}

static inline int plot_exponents(const char *path, const char *title, const char *line1, const char *line2,
    const double *before, const double *after, const char *heading_before, const char *heading_after) {
    plot_words words = {title, line1, line2, NULL};
    char text[200];
    plot_exponents_finding(text, before, after);
    words.finding = text;
    if (plot_exponents_form(path, 940, &words, before, after, heading_before, heading_after)) return -1;
    return plot_exponents_form(path, PLOT_PHONE, &words, before, after, heading_before, heading_after);
}

/* ---- gradients by tensor --------------------------------------------------------------------------------------- */

typedef struct plot_tensor {
    char name[48];
    double share[255]; /* as for plot_exponents */
} plot_tensor;
typedef struct plot_tensor_area {
    double left, right, top, step, bottom;
    int phone;            /* names stand above their rows, and "zero" and "subnormal" are one number */
    int low, high, scale; /* powers of two; scale: the loss scale that is drawn beside FP16's range */
} plot_tensor_area;

static double plot_tensor_x(const plot_tensor_area *a, double e) {
    double x = a->left + (a->right - a->left) * (e - a->low) / (a->high - a->low);
    if (x < a->left) return a->left;
    return x > a->right ? a->right : x;
}
/* What FP16 holds of gradients that are multiplied by 2^shift, as a bar. */
static void plot_tensor_range(FILE *f, const plot_tensor_area *a, int shift, double y, const char *name) {
    char text[64];
    int r;
    if (a->phone)
        plot_text(f, a->right + 8, y + 10, "start", "font-size=\"12\"", name);
    else
        plot_text(f, a->left - 8, y + 9, "end", "font-size=\"12\"", name);
    for (r = 1; r <= 2; r++) {
        double x0 = plot_tensor_x(a, plot_regions[r].from - shift), x1 = plot_tensor_x(a, plot_regions[r].to - shift);
        sprintf(text, "fill=\"%s\"", plot_regions[r].bar);
        plot_rect(f, x0, y, x1 - x0, 11, text);
    }
}
/* What FP16 makes zero and subnormal, without and with the scale, in percent. */
static void plot_tensor_numbers(FILE *f, const plot_tensor_area *a, const plot_tensor *t, double y) {
    double sum[4];
    char text[64];
    int r, e;
    memset(sum, 0, sizeof sum);
    for (e = -127; e <= 127; e++) {
        double s = t->share[e + 127];
        if (e < PLOT_LOST) sum[0] += s;
        if (e >= PLOT_LOST && e < PLOT_NORMAL) sum[1] += s;
        if (e + a->scale < PLOT_LOST) sum[2] += s;
        if (e + a->scale >= PLOT_LOST && e + a->scale < PLOT_NORMAL) sum[3] += s;
    }
    if (a->phone) {
        sprintf(text, "%.1f", 100 * (sum[0] + sum[1]));
        plot_text(f, a->right + 46, y - 3, "end", "font-size=\"12\"", text);
        sprintf(text, "%.1f", 100 * (sum[2] + sum[3]));
        plot_text(f, a->right + 94, y - 3, "end", "font-size=\"12\"", text);
        return;
    }
    for (r = 0; r < 4; r++) {
        sprintf(text, "%.1f", 100 * sum[r]);
        plot_text(f, a->right + 52 + 56 * r, y - 3, "end",
            sum[r] >= 0.05 && r % 2 == 0 ? "font-size=\"12\" fill=\"" PLOT_WARN "\"" : "font-size=\"12\"", text);
    }
}
static void plot_tensor_row(FILE *f, const plot_tensor_area *a, const plot_tensor *t, double y) {
    double width = (a->right - a->left) / (a->high - a->low), most = 1e-12;
    double high = a->phone ? 20 : a->step - 4;
    char text[64];
    int r, e;
    if (a->phone)
        plot_text(f, a->left, y - 24, "start", "font-size=\"12\"", t->name);
    else
        plot_text(f, a->left - 8, y - 3, "end", "font-size=\"12\"", t->name);
    for (e = a->low; e < a->high; e++)
        if (t->share[e + 127] > most) most = t->share[e + 127];
    for (r = 0; r < PLOT_REGIONS; r++)
        for (e = a->low; e < a->high; e++) {
            double height = t->share[e + 127] / most * high;
            if (e < plot_regions[r].from || e >= plot_regions[r].to || height < 0.05) continue;
            sprintf(text, "fill=\"%s\"", plot_regions[r].bar);
            plot_rect(f, plot_tensor_x(a, e) + 0.5, y - height, width - 1, height, text);
        }
    plot_line(f, a->left, y, a->right, y, "stroke=\"#D0D0D0\"");
    plot_tensor_numbers(f, a, t, y);
}

/* The tensor that FP16 would cost most: zero or subnormal. */
static void plot_tensors_finding(char text[200], const plot_tensor *rows, size_t n, int scale) {
    size_t i, worst = 0;
    double most = -1, with;
    int e;
    for (i = 0; i < n; i++) {
        double small = plot_share_in(rows[i].share, &plot_regions[0]) + plot_share_in(rows[i].share, &plot_regions[1]);
        if (small > most) {
            most = small;
            worst = i;
        }
    }
    for (with = 0, e = -127; e + scale < PLOT_NORMAL; e++)
        with += n ? rows[worst].share[e + 127] : 0;
    sprintf(text, "Worst, %.40s: FP16 would make %.1f%% zero or subnormal; times %.0f, %.1f%%.",
        n ? rows[worst].name : "", 100 * most, ldexp(1.0, scale), 100 * with);
}

static void plot_tensors_heads(FILE *f, const plot_tensor_area *a) {
    static const char *const heads[4] = {"zero", "subnormal", "zero", "subnormal"};
    char text[64];
    int e;
    sprintf(text, "times %.0f", ldexp(1.0, a->scale));
    if (a->phone) {
        plot_tensor_range(f, a, 0, 12, "range of FP16");
        plot_tensor_range(f, a, a->scale, 30, text);
        plot_text(f, PLOT_PHONE - PLOT_EDGE, 64, "end", "font-size=\"12\" font-weight=\"bold\"",
            "% in FP16 that are zero or subnormal:");
        plot_text(f, PLOT_PHONE - PLOT_EDGE, 81, "end", "font-size=\"12\"", "as they are, and times the scale");
        return;
    }
    plot_tensor_range(f, a, 0, 112, "range of FP16");
    plot_tensor_range(f, a, a->scale, 130, text);
    plot_text(f, a->right + 80, 121, "middle", "font-size=\"12\" font-weight=\"bold\"", "% in FP16");
    plot_text(f, a->right + 192, 121, "middle", "font-size=\"12\" font-weight=\"bold\"", text);
    for (e = 0; e < 4; e++)
        plot_text(f, a->right + 52 + 56 * e, 145, "end", "font-size=\"10\"", heads[e]);
}

static int plot_tensors_form(
    const char *path, int width, const plot_words *words, const plot_tensor *rows, size_t n, int scale) {
    static const plot_tensor_area wide = {190, 690, 190, 21, 0, 0, PLOT_LOST - 9, 4, 0};
    static const plot_tensor_area phone = {PLOT_EDGE, 228, 128, 42, 0, 1, PLOT_LOST - 9, 4, 0};
    plot_tensor_area a = width == PLOT_PHONE ? phone : wide;
    char text[64];
    size_t i;
    int e;
    FILE *f;
    a.scale = scale;
    a.bottom = a.top + a.step * (double)n;
    for (i = 0; i < n; i++)
        for (e = -127; e <= 127; e++) {
            if (rows[i].share[e + 127] > 0.003 && e < a.low) a.low = e;
            if (rows[i].share[e + 127] > 0.003 && e >= a.high) a.high = e + 1;
        }
    f = plot_open(path, width, (int)a.bottom + (a.phone ? 20 : 60), words);
    if (!f) return -1;
    plot_tensors_heads(f, &a);
    for (i = 0; i < PLOT_REGIONS; i++) {
        double x0 = plot_tensor_x(&a, plot_regions[i].from), x1 = plot_tensor_x(&a, plot_regions[i].to);
        sprintf(text, "fill=\"%s\"", plot_regions[i].colour);
        plot_rect(f, x0, a.top - a.step + 4, x1 - x0, a.bottom - a.top, text);
    }
    for (i = 0; i < n; i++)
        plot_tensor_row(f, &a, &rows[i], a.top + a.step * (double)i);
    for (e = a.low; e <= a.high; e++)
        if (e % (a.phone ? 16 : 8) == 0)
            plot_power(f, plot_tensor_x(&a, e), a.bottom + 2 - (a.phone ? 20 : 0), "middle", e);
    plot_text(f, (a.left + a.right) / 2, a.bottom + (a.phone ? 2 : 26), "middle", "", "size of a gradient, |g|");
    return plot_close(f);
}

/* A row per tensor: its gradients by power of two, and what FP16 makes of them without and with a loss scale. */
static inline int plot_tensors(const char *path, const char *title, const char *line1, const char *line2,
    const plot_tensor *rows, size_t n, int scale) {
    plot_words words = {title, line1, line2, NULL};
    char text[200];
    plot_tensors_finding(text, rows, n, scale);
    words.finding = text;
    if (plot_tensors_form(path, 950, &words, rows, n, scale)) return -1;
    return plot_tensors_form(path, PLOT_PHONE, &words, rows, n, scale);
}

/* The histogram on a terminal: one column per power of two. */
static inline void plot_sketch(const char *heading, const double *share) {
    enum { LOW = -44, HIGH = 20 };
    const int height = 6;
    double most = 1e-12;
    int e, row;
    for (e = LOW; e < HIGH; e++)
        if (share[e + 127] > most) most = share[e + 127];
    printf("\n  %s\n", heading);
    for (row = height; row > 0; row--) {
        fputs("  ", stdout);
        for (e = LOW; e < HIGH; e++) {
            int full = share[e + 127] * height > most * (row - 0.5), some = row == 1 && share[e + 127] > 0;
            if (e == PLOT_LOST || e == PLOT_NORMAL || e == PLOT_OVER) putchar('|');
            if (full)
                putchar('#');
            else
                putchar(some ? '.' : ' ');
        }
        putchar('\n');
    }
    printf("  -------------------+-----------+------------------------------+----  |g|\n"
           "                   2^-25       2^-14                          2^16\n"
           "     lost %5.1f%%       subnormal %4.1f%%      normal %5.1f%%        overflow %.1f%%\n",
        100 * plot_share_in(share, &plot_regions[0]), 100 * plot_share_in(share, &plot_regions[1]),
        100 * plot_share_in(share, &plot_regions[2]), 100 * plot_share_in(share, &plot_regions[3]));
}

/* ---- what is the matter with each parameter: debug.c ---------------------------------------------------------- */

typedef struct plot_doctor_row { /* shares, 0 .. 1 */
    const char *name, *advice;   /* advice "": none */
    double zero, subnormal, bad; /* of the gradient in FP16 */
    double lost;                 /* of the updates */
} plot_doctor_row;

static inline int plot_doctor(const char *path, const char *title, const plot_doctor_row *rows, size_t n) {
    const double left = 150, wide = 230, right = 420, top = 110, step = 26;
    size_t i, worst = 0;
    plot_words words = {title,
        "Left: what becomes of each gradient in FP16: pale: 0, grey: subnormal, blue: normal, red: too large.",
        "Right: the share of updates that change no weight.", NULL};
    FILE *f;
    char text[160];
    for (i = 0; i < n; i++)
        if (rows[i].lost > rows[worst].lost) worst = i;
    snprintf(text, sizeof text, "Most updates are lost in %.40s: %.1f%% of them change no weight.", rows[worst].name,
        100 * rows[worst].lost);
    words.finding = text;
    f = plot_open(path, 1300, (int)(top + step * (double)n) + 20, &words);
    if (!f) return -1;
    for (i = 0; i < n; i++) {
        const plot_doctor_row *r = &rows[i];
        double y = top + step * (double)i, small = wide * (r->zero + r->subnormal);
        plot_text(f, left - 10, y + 14, "end", "", r->name);
        plot_rect(f, left, y, wide, 18, "fill=\"#0072B2\"");
        plot_rect(f, left, y, small, 18, "fill=\"" PLOT_GREY "\"");
        plot_rect(f, left, y, wide * r->zero, 18, "fill=\"#E0E0E0\"");
        plot_rect(f, left + wide * (1 - r->bad), y, wide * r->bad, 18, "fill=\"" PLOT_BAD "\"");
        plot_rect(f, right, y, wide, 18, "fill=\"#F0F0F0\"");
        plot_rect(f, right, y, wide * r->lost, 18, "fill=\"" PLOT_BAD "\"");
        snprintf(text, sizeof text, "%.1f %%", 100 * r->lost);
        plot_text(f, right + wide + 8, y + 14, "start", "", text);
        plot_text(f, right + wide + 70, y + 14, "start", "font-size=\"11\"", r->advice);
    }
    return plot_close(f);
}

#endif
