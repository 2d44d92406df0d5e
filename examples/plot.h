/* plot.h - the pictures of digits.c and gpt.c, written as SVG by hand. No library: an SVG file is text.
   Each function writes one file and returns 0, or -1 if it could not be written. */
#ifndef PLOT_H
#define PLOT_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLOT_MAX  8
#define PLOT_GREY "#555555"
#define PLOT_BAD  "#D55E00" /* what goes wrong: lost gradients, skipped steps */

/* Colours of Okabe and Ito (2008): they can be told apart with any kind of colour vision. The dashes help in black and
   white, and where curves lie on top of each other. */
typedef struct plot_style {
    const char *colour, *dash;
    double width;
} plot_style;
static const plot_style plot_styles[8] = {
    {"#B8B8B8", "", 9.0}, /* wide curves are drawn first, the others on top of them */
    {"#D55E00", "", 2.2},
    {"#E69F00", "9 5", 2.2},
    {"#8FD3F8", "2 5", 2.2},
    {"#0072B2", "", 4.5},
    {"#00B285", "7 4 2 4", 1.8},
    {"#CC79A7", "12 4", 1.8},
    {"#56467D", "4 3", 1.8},
};

typedef struct plot_curve {
    const char *name, *note; /* what stands at its right end, e.g. the final loss */
    const plot_style *style;
    const float *y; /* one value per step */
    size_t steps;
} plot_curve;

/* ---- text, lines, boxes ---------------------------------------------------------------------------------------- */

static FILE *plot_open(const char *path, int width, int height, const char *title) {
    FILE *f = fopen(path, "w");
    if (!f) return NULL;
    fprintf(f,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\"\n"
        "     font-family=\"DejaVu Sans, Verdana, Helvetica, Arial, sans-serif\" font-size=\"13\" fill=\"#222222\">\n"
        "<title>%s</title>\n<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n",
        width, height, width, height, title, width, height);
    return f;
}

static int plot_close(FILE *f) {
    int bad;
    fprintf(f, "</svg>\n");
    bad = ferror(f);
    return fclose(f) || bad ? -1 : 0;
}

static void plot_text(FILE *f, double x, double y, const char *anchor, const char *extra, const char *text) {
    fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" %s>%s</text>\n", x, y, anchor, extra, text);
}

static void plot_title(FILE *f, const char *title, const char *line1, const char *line2, const char *finding) {
    plot_text(f, 20, 30, "start", "font-size=\"18\" font-weight=\"bold\"", title);
    plot_text(f, 20, 51, "start", "fill=\"" PLOT_GREY "\"", line1);
    plot_text(f, 20, 69, "start", "fill=\"" PLOT_GREY "\"", line2);
    plot_text(f, 20, 89, "start", "font-weight=\"bold\"", finding);
}

static void plot_power(FILE *f, double x, double y, const char *anchor, int exponent) { /* 2 with a raised exponent */
    fprintf(f,
        "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">2<tspan dy=\"-5\" font-size=\"10\">%s%d</tspan></text>\n", x, y,
        anchor, exponent < 0 ? "&#8722;" : "", abs(exponent));
}

static void plot_line(FILE *f, double x0, double y0, double x1, double y1, const char *extra) {
    fprintf(f, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x0, y0, x1, y1, extra);
}

static void plot_rect(FILE *f, double x, double y, double w, double h, const char *extra) {
    fprintf(f, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" %s/>\n", x, y, w, h > 0 ? h : 0, extra);
}

static void plot_begin_curve(FILE *f, const plot_style *s) {
    fprintf(f,
        "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"%.1f\" stroke-linejoin=\"round\" "
        "stroke-dasharray=\"%s\" points=\"",
        s->colour, s->width, *s->dash ? s->dash : "none");
}
static void plot_end_curve(FILE *f) { fprintf(f, "\"/>\n"); }

/* A round number near span / 5, for the marks of an axis. */
static double plot_tick(double span) {
    double p = pow(10.0, floor(log10(span / 5.0))), r = span / 5.0 / p;
    if (r < 1.5) return p;
    if (r < 3.5) return p * 2.0;
    return r < 7.5 ? p * 5.0 : p * 10.0;
}

/* The axis of the steps first .. last, from x0 to x1. */
static void plot_step_axis(FILE *f, double x0, double x1, double y, double first, double last) {
    double t, tick = plot_tick(last - first), x;
    char text[32];
    if (tick < 1.0) tick = 1.0;
    plot_line(f, x0, y, x1, y, "stroke=\"#222222\"");
    for (t = tick; t <= last; t += tick) {
        x = x0 + (x1 - x0) * (t - first) / (last - first);
        sprintf(text, "%.0f", t);
        plot_line(f, x, y, x, y + 5, "stroke=\"#222222\"");
        plot_text(f, x, y + 19, "middle", "", text);
    }
    plot_line(f, x0, y, x0, y + 5, "stroke=\"#222222\"");
    plot_text(f, x0, y + 19, "middle", "", "0");
}

/* ---- loss curves ----------------------------------------------------------------------------------------------- */

#define PLOT_POINTS 160 /* a curve is drawn through the means of this many stretches of steps */

static double plot_mean(const float *y, size_t from, size_t to) {
    double sum = 0;
    size_t i;
    for (i = from; i < to; i++)
        sum += (double)y[i];
    return sum / (double)(to - from);
}

/* The area of the losses: x over steps from left to right, y over the logarithm of the loss from low to high. */
static const double plot_loss_left = 70, plot_loss_right = 700, plot_loss_top = 138, plot_loss_bottom = 520;
typedef struct plot_losses_area {
    size_t steps, points;
    double low, high; /* powers of ten */
} plot_losses_area;

static double plot_loss_y(const plot_losses_area *a, double loss) {
    return plot_loss_bottom - (log10(loss) - a->low) / (a->high - a->low) * (plot_loss_bottom - plot_loss_top);
}

/* Point i of a curve, or 0 where the loss is not a positive number: Inf and NaN are left out. */
static double plot_loss_at(const plot_losses_area *a, const plot_curve *c, size_t i) {
    double m = plot_mean(c->y, a->steps * i / a->points, a->steps * (i + 1) / a->points);
    return m > 0 && m < 1e30 ? m : 0;
}

static plot_losses_area plot_losses_fit(const plot_curve *curves, int n) {
    plot_losses_area a;
    double low = 1e30, high = 0;
    size_t i;
    int k;
    a.steps = curves[0].steps;
    a.points = a.steps < PLOT_POINTS ? a.steps : PLOT_POINTS;
    for (k = 0; k < n; k++)
        for (i = 0; i < a.points; i++) {
            double m = plot_loss_at(&a, &curves[k], i);
            if (m > 0 && m < low) low = m;
            if (m > high) high = m;
        }
    if (low > high) { /* no finite loss at all */
        low = 0.1;
        high = 1.0;
    }
    a.low = log10(low) - 0.05;
    a.high = log10(high) + 0.05;
    return a;
}

static void plot_losses_axes(FILE *f, const plot_losses_area *a) {
    static const double mark[3] = {1.0, 2.0, 5.0};
    char text[128];
    int e, j;
    for (e = (int)floor(a->low); e <= (int)ceil(a->high); e++)
        for (j = 0; j < 3; j++) {
            double loss = pow(10.0, e) * mark[j], y = plot_loss_y(a, loss);
            if (log10(loss) < a->low || log10(loss) > a->high) continue;
            plot_line(f, plot_loss_left, y, plot_loss_right, y, "stroke=\"#E4E4E4\"");
            sprintf(text, "%g", loss);
            plot_text(f, plot_loss_left - 8, y + 4, "end", "", text);
        }
    plot_step_axis(f, plot_loss_left, plot_loss_right, plot_loss_bottom, 0, (double)a->steps);
    plot_text(f, (plot_loss_left + plot_loss_right) / 2, plot_loss_bottom + 42, "middle", "", "training step");
    fprintf(f, "<text transform=\"translate(18 %.0f) rotate(-90)\" text-anchor=\"middle\">%s</text>\n",
        (plot_loss_top + plot_loss_bottom) / 2, "training loss (logarithmic)");
}

static void plot_losses_legend(FILE *f, const plot_curve *curves, int n) {
    double x = plot_loss_left;
    int k;
    for (k = 0; k < n; k++) {
        plot_begin_curve(f, curves[k].style);
        fprintf(f, "%.0f,116 %.0f,116", x, x + 34);
        plot_end_curve(f);
        plot_text(f, x + 40, 120, "start", "font-size=\"12\"", curves[k].name);
        x += 62 + 7.2 * (double)strlen(curves[k].name);
    }
}

/* One curve, with a gap where points are left out. Returns the height at which it ends. */
static double plot_losses_curve(FILE *f, const plot_losses_area *a, const plot_curve *c) {
    double end = plot_loss_top;
    int gap = 1;
    size_t i;
    for (i = 0; i < a->points; i++) {
        double loss = plot_loss_at(a, c, i);
        if (!(loss > 0)) {
            if (!gap) plot_end_curve(f);
            gap = 1;
            continue;
        }
        if (gap) plot_begin_curve(f, c->style);
        gap = 0;
        end = plot_loss_y(a, loss);
        fprintf(f, "%.1f,%.1f ",
            plot_loss_left + (plot_loss_right - plot_loss_left) * ((double)i + 0.5) / (double)a->points, end);
    }
    if (!gap) plot_end_curve(f);
    return end;
}

/* Labels at the right, sorted by the heights at which the curves end, then pushed apart so that none hides another. */
static void plot_losses_labels(FILE *f, const plot_curve *curves, const double *end, int n) {
    double label[PLOT_MAX], lowest = plot_loss_bottom + 8;
    int order[PLOT_MAX], k, j;
    char text[128];
    for (k = 0; k < n; k++) {
        for (j = k; j > 0 && end[order[j - 1]] > end[k]; j--)
            order[j] = order[j - 1];
        order[j] = k;
    }
    for (k = 0; k < n; k++) {
        label[k] = end[order[k]];
        if (k && label[k] < label[k - 1] + 18) label[k] = label[k - 1] + 18;
    }
    for (k = n - 1; k >= 0; k--, lowest -= 18)
        if (label[k] > lowest) label[k] = lowest;
    for (k = 0; k < n; k++) {
        const plot_curve *c = &curves[order[k]];
        sprintf(text, "stroke=\"%s\" stroke-width=\"1.4\"", c->style->colour);
        plot_line(f, plot_loss_right - 1, end[order[k]], plot_loss_right + 18, label[k], text);
        sprintf(text, "%.24s <tspan fill=\"" PLOT_GREY "\">%.48s</tspan>", c->name, c->note);
        plot_text(f, plot_loss_right + 22, label[k] + 4, "start", "font-size=\"12\"", text);
    }
}

static inline int plot_losses(const char *path, const char *title, const char *line1, const char *line2,
    const char *finding, const plot_curve *curves, int n) {
    plot_losses_area a = plot_losses_fit(curves, n);
    double end[PLOT_MAX];
    FILE *f = plot_open(path, 960, 580, title);
    int k;
    if (!f) return -1;
    plot_title(f, title, line1, line2, finding);
    plot_losses_axes(f, &a);
    plot_losses_legend(f, curves, n);
    for (k = 0; k < n; k++) /* wide curves first, the others on top of them */
        if (curves[k].style->width > 3) end[k] = plot_losses_curve(f, &a, &curves[k]);
    for (k = 0; k < n; k++)
        if (curves[k].style->width <= 3) end[k] = plot_losses_curve(f, &a, &curves[k]);
    plot_losses_labels(f, curves, end, n);
    return plot_close(f);
}

/* ---- loss scale ------------------------------------------------------------------------------------------------ */

static const double plot_scale_top = 130, plot_scale_bottom = 440;

typedef struct plot_scales {
    const float *scale; /* one per step */
    const unsigned char *skipped;
    int low, high; /* powers of two */
} plot_scales;

static double plot_scale_y(const plot_scales *s, double scale) {
    return plot_scale_bottom - (log2(scale) - s->low) / (s->high - s->low) * (plot_scale_bottom - plot_scale_top);
}

/* The first n steps, between x0 and x1. */
static void plot_scale_panel(FILE *f, const plot_scales *s, size_t n, double x0, double x1) {
    static const plot_style style = {"#0072B2", "", 2.2};
    double width = (x1 - x0) / (double)n;
    int e, every = (s->high - s->low) / 12 + 1;
    size_t i;
    for (e = s->low; e <= s->high; e += every) {
        double y = plot_scale_y(s, ldexp(1.0, e));
        plot_line(f, x0, y, x1, y, "stroke=\"#E4E4E4\"");
        plot_power(f, x0 - 8, y + 5, "end", e);
    }
    plot_step_axis(f, x0, x1, plot_scale_bottom, 0, (double)n);
    plot_begin_curve(f, &style);
    for (i = 0; i < n; i++) { /* a stair: the scale holds from step i to step i + 1 */
        float is = s->scale[i], was = i > 0 ? s->scale[i - 1] : is;
        double x = x0 + width * (double)i;
        if (i > 0 && i + 1 < n && !(is < was) && !(is > was)) continue;
        fprintf(f, "%.1f,%.1f %.1f,%.1f ", x, plot_scale_y(s, (double)was), x, plot_scale_y(s, (double)is));
    }
    fprintf(f, "%.1f,%.1f", x1, plot_scale_y(s, (double)s->scale[n - 1]));
    plot_end_curve(f);
    for (i = 0; i < n; i++) {
        if (!s->skipped[i]) continue;
        fprintf(f, "<path d=\"M%.1f %.1f l-5 -9 h10 z\" fill=\"" PLOT_BAD "\"/>\n", x0 + width * (double)i,
            plot_scale_y(s, (double)s->scale[i]) - 2);
    }
}

static inline int plot_scale(const char *path, const char *title, const char *line1, const char *line2,
    const float *scale, const unsigned char *skipped, size_t steps) {
    size_t first = steps / 2 < 24 ? steps / 2 + 1 : 24, i;
    float low = scale[0], high = scale[0];
    plot_scales s;
    char text[64];
    FILE *f = plot_open(path, 940, 505, title);
    if (!f) return -1;
    for (i = 0; i < steps; i++) {
        if (scale[i] < low) low = scale[i];
        if (scale[i] > high) high = scale[i];
    }
    s.scale = scale;
    s.skipped = skipped;
    s.low = (int)floor(log2((double)low)) - 1;
    s.high = (int)ceil(log2((double)high)) + 1;
    plot_title(f, title, line1, line2, "");
    sprintf(text, "the first %d steps", (int)first);
    plot_text(f, 200, plot_scale_top - 22, "middle", "font-weight=\"bold\"", text);
    plot_text(f, 640, plot_scale_top - 22, "middle", "font-weight=\"bold\"", "the whole run");
    plot_scale_panel(f, &s, first, 70, 330);
    plot_scale_panel(f, &s, steps, 400, 910);
    plot_text(f, 200, plot_scale_bottom + 42, "middle", "", "training step");
    plot_text(f, 640, plot_scale_bottom + 42, "middle", "", "training step");
    fprintf(f, "<text transform=\"translate(20 %.0f) rotate(-90)\" text-anchor=\"middle\">loss scale</text>\n",
        (plot_scale_top + plot_scale_bottom) / 2);
    plot_line(f, 400, plot_scale_bottom + 54, 426, plot_scale_bottom + 54, "stroke=\"#0072B2\" stroke-width=\"2.2\"");
    plot_text(f, 432, plot_scale_bottom + 58, "start", "font-size=\"12\"", "loss scale");
    fprintf(f, "<path d=\"M520 %.0f l-5 -9 h10 z\" fill=\"" PLOT_BAD "\"/>\n", plot_scale_bottom + 58);
    plot_text(f, 531, plot_scale_bottom + 58, "start", "font-size=\"12\"", "step skipped: a gradient overflowed FP16");
    return plot_close(f);
}

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
    double top, bottom, most; /* most: the share at the height of the area */
    int low, high;            /* powers of two */
} plot_exponent_area;
static const double plot_exponent_left = 70, plot_exponent_right = 910;

static double plot_exponent_width(const plot_exponent_area *a) { /* of one power of two */
    return (plot_exponent_right - plot_exponent_left) / (a->high - a->low);
}
static double plot_exponent_x(const plot_exponent_area *a, int e) {
    return plot_exponent_left + (e - a->low) * plot_exponent_width(a);
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
    plot_text(f, middle, a->top - 22, "middle", "font-size=\"11\"", r->name);
    if (sum > 0 && sum < 0.0005)
        sprintf(text, "%s, &lt;0.1&#8201;%%", r->what);
    else
        sprintf(text, "%s, %.1f&#8201;%%", r->what, 100.0 * sum);
    plot_text(f, middle, a->top - 7, "middle", "font-size=\"11\" font-weight=\"bold\"", text);
    sprintf(text, "fill=\"%s\"", r->bar);
    for (e = from; e < to; e++) {
        double height = plot_exponent_height(a, share[e + 127]);
        plot_rect(f, plot_exponent_x(a, e) + 1, a->bottom - height, plot_exponent_width(a) - 2, height, text);
    }
    if (to < a->high) plot_line(f, x1, a->top - 34, x1, a->bottom, "stroke=\"#999999\" stroke-dasharray=\"3 3\"");
}

static void plot_exponent_panel(FILE *f, const plot_exponent_area *a, const double *share, const char *heading) {
    double mark;
    char text[96];
    int r, e;
    plot_text(f, plot_exponent_left, a->top - 46, "start", "font-weight=\"bold\"", heading);
    for (r = 0; r < PLOT_REGIONS; r++)
        plot_exponent_region(f, a, &plot_regions[r], share);
    plot_line(f, plot_exponent_left, a->bottom, plot_exponent_right, a->bottom, "stroke=\"#222222\"");
    for (e = a->low; e <= a->high; e++) {
        double x = plot_exponent_x(a, e);
        if (e % 4 != 0) continue;
        plot_line(f, x, a->bottom, x, a->bottom + 5, "stroke=\"#222222\"");
        plot_power(f, x, a->bottom + 21, "middle", e);
    }
    for (mark = 0; mark <= a->most; mark += plot_tick(a->most)) {
        double y = a->bottom - plot_exponent_height(a, mark);
        sprintf(text, "%g%%", 100.0 * mark);
        plot_text(f, plot_exponent_left - 8, y + 4, "end", "font-size=\"11\"", text);
        plot_line(f, plot_exponent_left - 5, y, plot_exponent_left, y, "stroke=\"#222222\"");
    }
    fprintf(f, "<text transform=\"translate(16 %.0f) rotate(-90)\" text-anchor=\"middle\" font-size=\"11\">%s</text>\n",
        (a->top + a->bottom) / 2, "share of gradients");
}

static inline int plot_exponents(const char *path, const char *title, const char *line1, const char *line2,
    const char *finding, const double *before, const double *after, const char *heading_before,
    const char *heading_after) {
    plot_exponent_area a = {168, 348, 0, PLOT_LOST - 9, PLOT_OVER + 6};
    FILE *f = plot_open(path, 940, 680, title);
    int e;
    if (!f) return -1;
    for (e = -127; e <= 127; e++) {
        double m = before[e + 127] > after[e + 127] ? before[e + 127] : after[e + 127];
        if (m > a.most) a.most = m;
        if (m > 0.002 && e < a.low) a.low = e;
        if (m > 0.002 && e >= a.high) a.high = e + 1;
    }
    if (a.most <= 0) a.most = 1;
    plot_title(f, title, line1, line2, finding);
    plot_exponent_panel(f, &a, before, heading_before);
    a.top = 448;
    a.bottom = 628;
    plot_exponent_panel(f, &a, after, heading_after);
    plot_text(f, 490, 668, "middle", "", "size of a gradient, |g|");
    return plot_close(f);
}

/* ---- gradients by tensor --------------------------------------------------------------------------------------- */

typedef struct plot_tensor {
    char name[48];
    double share[255]; /* as for plot_exponents */
} plot_tensor;
static const double plot_tensor_left = 190, plot_tensor_right = 690, plot_tensor_top = 190, plot_tensor_step = 21;

typedef struct plot_tensor_area {
    int low, high, scale; /* powers of two; scale: the loss scale that is drawn beside FP16's range */
    double bottom;
} plot_tensor_area;

static double plot_tensor_x(const plot_tensor_area *a, double e) {
    double x = plot_tensor_left + (plot_tensor_right - plot_tensor_left) * (e - a->low) / (a->high - a->low);
    if (x < plot_tensor_left) return plot_tensor_left;
    return x > plot_tensor_right ? plot_tensor_right : x;
}
/* What FP16 holds of gradients that are multiplied by 2^shift, as a bar. */
static void plot_tensor_range(FILE *f, const plot_tensor_area *a, int shift, double y, const char *name) {
    char text[64];
    int r;
    plot_text(f, plot_tensor_left - 8, y + 9, "end", "font-size=\"12\"", name);
    for (r = 1; r <= 2; r++) {
        double x0 = plot_tensor_x(a, plot_regions[r].from - shift), x1 = plot_tensor_x(a, plot_regions[r].to - shift);
        sprintf(text, "fill=\"%s\"", plot_regions[r].bar);
        plot_rect(f, x0, y, x1 - x0, 11, text);
    }
}
static void plot_tensor_row(FILE *f, const plot_tensor_area *a, const plot_tensor *t, double y) {
    double width = (plot_tensor_right - plot_tensor_left) / (a->high - a->low), most = 1e-12, sum[4];
    char text[64];
    int r, e;
    plot_text(f, plot_tensor_left - 8, y - 3, "end", "font-size=\"12\"", t->name);
    for (e = a->low; e < a->high; e++)
        if (t->share[e + 127] > most) most = t->share[e + 127];
    for (r = 0; r < PLOT_REGIONS; r++)
        for (e = a->low; e < a->high; e++) {
            double height = t->share[e + 127] / most * (plot_tensor_step - 4);
            if (e < plot_regions[r].from || e >= plot_regions[r].to || height < 0.05) continue;
            sprintf(text, "fill=\"%s\"", plot_regions[r].bar);
            plot_rect(f, plot_tensor_x(a, e) + 0.5, y - height, width - 1, height, text);
        }
    plot_line(f, plot_tensor_left, y, plot_tensor_right, y, "stroke=\"#D0D0D0\"");
    memset(sum, 0, sizeof sum);
    for (e = -127; e <= 127; e++) {
        double s = t->share[e + 127];
        if (e < PLOT_LOST) sum[0] += s;
        if (e >= PLOT_LOST && e < PLOT_NORMAL) sum[1] += s;
        if (e + a->scale < PLOT_LOST) sum[2] += s;
        if (e + a->scale >= PLOT_LOST && e + a->scale < PLOT_NORMAL) sum[3] += s;
    }
    for (r = 0; r < 4; r++) {
        sprintf(text, "%.1f", 100 * sum[r]);
        plot_text(f, plot_tensor_right + 52 + 56 * r, y - 3, "end",
            sum[r] >= 0.05 && r % 2 == 0 ? "font-size=\"12\" fill=\"" PLOT_BAD "\"" : "font-size=\"12\"", text);
    }
}

/* A row per tensor: its gradients by power of two, and what FP16 makes of them without and with a loss scale. */
static inline int plot_tensors(const char *path, const char *title, const char *line1, const char *line2,
    const plot_tensor *rows, size_t n, int scale) {
    static const char *const heads[4] = {"zero", "subnormal", "zero", "subnormal"};
    plot_tensor_area a = {PLOT_LOST - 9, 4, 0, 0};
    char text[64];
    size_t i;
    int e;
    FILE *f;
    a.scale = scale;
    a.bottom = plot_tensor_top + plot_tensor_step * (double)n;
    for (i = 0; i < n; i++)
        for (e = -127; e <= 127; e++) {
            if (rows[i].share[e + 127] > 0.003 && e < a.low) a.low = e;
            if (rows[i].share[e + 127] > 0.003 && e >= a.high) a.high = e + 1;
        }
    f = plot_open(path, 950, (int)a.bottom + 60, title);
    if (!f) return -1;
    plot_title(f, title, line1, line2, "");
    plot_tensor_range(f, &a, 0, 112, "range of FP16");
    sprintf(text, "times %.0f", ldexp(1.0, scale));
    plot_tensor_range(f, &a, scale, 130, text);
    for (i = 0; i < PLOT_REGIONS; i++) {
        double x0 = plot_tensor_x(&a, plot_regions[i].from), x1 = plot_tensor_x(&a, plot_regions[i].to);
        sprintf(text, "fill=\"%s\"", plot_regions[i].colour);
        plot_rect(f, x0, plot_tensor_top - plot_tensor_step + 4, x1 - x0, a.bottom - plot_tensor_top, text);
    }
    plot_text(f, plot_tensor_right + 80, 121, "middle", "font-size=\"12\" font-weight=\"bold\"", "% in FP16");
    sprintf(text, "times %.0f", ldexp(1.0, scale));
    plot_text(f, plot_tensor_right + 192, 121, "middle", "font-size=\"12\" font-weight=\"bold\"", text);
    for (e = 0; e < 4; e++)
        plot_text(f, plot_tensor_right + 52 + 56 * e, 145, "end", "font-size=\"10\"", heads[e]);
    for (i = 0; i < n; i++)
        plot_tensor_row(f, &a, &rows[i], plot_tensor_top + plot_tensor_step * (double)i);
    for (e = a.low; e <= a.high; e++)
        if (e % 8 == 0) plot_power(f, plot_tensor_x(&a, e), a.bottom + 2, "middle", e);
    plot_text(f, (plot_tensor_left + plot_tensor_right) / 2, a.bottom + 26, "middle", "", "size of a gradient, |g|");
    return plot_close(f);
}

/* ---- what is the matter with each parameter: debug.c ---------------------------------------------------------- */

typedef struct plot_doctor_row { /* shares, 0 .. 1 */
    const char *name, *advice;   /* advice "": none */
    double zero, subnormal, bad; /* of the gradient in FP16 */
    double lost;                 /* of the updates */
} plot_doctor_row;

static inline int plot_doctor(const char *path, const char *title, const plot_doctor_row *rows, size_t n) {
    const double left = 150, wide = 230, right = 420, top = 110, step = 26;
    size_t i;
    FILE *f = plot_open(path, 1300, (int)(top + step * (double)n) + 20, title);
    char text[64];
    if (!f) return -1;
    plot_title(f, title,
        "Left: what becomes of each gradient in FP16: pale: 0, grey: subnormal, blue: normal, red: too large.",
        "Right: the share of updates that change no weight.", "");
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

#endif
