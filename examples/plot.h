/* plot.h - the three pictures of digits.c, written as SVG by hand. No library: an SVG file is text.
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

/* Colours of Okabe and Ito (2008): they can be told apart with any kind of colour vision. The dashes help in black and white, and
   where curves lie on top of each other. */
typedef struct plot_style {
    const char *colour, *dash;
    double width;
} plot_style;
static const plot_style plot_styles[6] = {
    {"#B8B8B8", "", 9.0}, /* wide curves are drawn first, the others on top of them */
    {"#D55E00", "", 2.2},
    {"#E69F00", "9 5", 2.2},
    {"#8FD3F8", "2 5", 2.2},
    {"#0072B2", "", 4.5},
    {"#00B285", "7 4 2 4", 1.8},
};

typedef struct plot_curve {
    const char *name, *note; /* what stands at its right end, e.g. the final loss */
    const plot_style *style;
    const float *y; /* one value per step */
    size_t steps;
} plot_curve;

/* ---- text, lines, boxes -------------------------------------------------------------------------------------------------- */

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
        "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"%.1f\" stroke-linejoin=\"round\" stroke-dasharray=\"%s\" points=\"",
        s->colour, s->width, *s->dash ? s->dash : "none");
}
static void plot_end_curve(FILE *f) { fprintf(f, "\"/>\n"); }

/* A round number near span / 5, for the marks of an axis. */
static double plot_tick(double span) {
    double p = pow(10.0, floor(log10(span / 5.0))), r = span / 5.0 / p;
    return p * (r < 1.5 ? 1.0 : r < 3.5 ? 2.0 : r < 7.5 ? 5.0 : 10.0);
}

static void plot_step_axis(
    FILE *f, double x0, double x1, double y, double first, double last) { /* first .. last steps, from x0 to x1 */
    double t, tick = plot_tick(last - first), x;
    char text[32];
    plot_line(f, x0, y, x1, y, "stroke=\"#222222\"");
    for (t = tick < 1.0 ? 1.0 : tick, x = 0; t <= last; t += tick < 1.0 ? 1.0 : tick) {
        x = x0 + (x1 - x0) * (t - first) / (last - first);
        sprintf(text, "%.0f", t);
        plot_line(f, x, y, x, y + 5, "stroke=\"#222222\"");
        plot_text(f, x, y + 19, "middle", "", text);
    }
    plot_line(f, x0, y, x0, y + 5, "stroke=\"#222222\"");
    plot_text(f, x0, y + 19, "middle", "", "0");
}

/* ---- loss curves ------------------------------------------------------------------------------------------------------- */

#define PLOT_POINTS 160 /* a curve is drawn through the means of this many stretches of steps */

static double plot_mean(const float *y, size_t from, size_t to) {
    double sum = 0;
    size_t i;
    for (i = from; i < to; i++)
        sum += (double)y[i];
    return sum / (double)(to - from);
}

static int plot_losses(const char *path, const char *title, const char *line1, const char *line2, const char *finding,
    const plot_curve *curves, int n) {
    const double left = 70, right = 700, top = 138, bottom = 520;
    double legend = left, low = 1e30, high = 1e-30, label[PLOT_MAX], target[PLOT_MAX], y, m;
    size_t points = curves[0].steps < PLOT_POINTS ? curves[0].steps : PLOT_POINTS, steps = curves[0].steps, i;
    int order[PLOT_MAX], k, j, e;
    char text[128];
    FILE *f = plot_open(path, 960, 580, title);
    if (!f) return -1;
    plot_title(f, title, line1, line2, finding);

    for (k = 0; k < n; k++)
        for (i = 0; i < points; i++) {
            m = plot_mean(curves[k].y, steps * i / points, steps * (i + 1) / points);
            if (m > 0 && m < 1e30) {
                low = m < low ? m : low;
                high = m > high ? m : high;
            }
        }
    if (low > high) {
        low = 0.1;
        high = 1.0;
    } /* no finite loss at all */
    low = log10(low) - 0.05;
    high = log10(high) + 0.05;
#define PLOT_Y(v) (bottom - (log10(v) - low) / (high - low) * (bottom - top))

    for (e = (int)floor(low); e <= (int)ceil(high); e++) /* marks at 1, 2, 5 x 10^e */
        for (j = 0; j < 3; j++) {
            m = pow(10.0, e) * (j == 0 ? 1.0 : j == 1 ? 2.0 : 5.0);
            if (log10(m) < low || log10(m) > high) continue;
            plot_line(f, left, PLOT_Y(m), right, PLOT_Y(m), "stroke=\"#E4E4E4\"");
            sprintf(text, "%g", m);
            plot_text(f, left - 8, PLOT_Y(m) + 4, "end", "", text);
        }
    plot_step_axis(f, left, right, bottom, 0, (double)steps);
    plot_text(f, (left + right) / 2, bottom + 42, "middle", "", "training step");
    fprintf(f,
        "<text transform=\"translate(18 %.0f) rotate(-90)\" text-anchor=\"middle\">training loss (logarithmic)</text>\n",
        (top + bottom) / 2);

    for (k = 0; k < n; k++) { /* legend */
        plot_begin_curve(f, curves[k].style);
        fprintf(f, "%.0f,116 %.0f,116", legend, legend + 34);
        plot_end_curve(f);
        plot_text(f, legend + 40, 120, "start", "font-size=\"12\"", curves[k].name);
        legend += 62 + 7.2 * (double)strlen(curves[k].name);
    }
    for (j = 0; j < 2 * n; j++) { /* wide curves, then the others */
        int gap = 1;              /* Inf and NaN are left out: the curve stops */
        k = j % n;
        if ((curves[k].style->width > 3) != (j < n)) continue;
        target[k] = top;
        for (i = 0; i < points; i++) {
            m = plot_mean(curves[k].y, steps * i / points, steps * (i + 1) / points);
            if (!(m > 0 && m < 1e30)) {
                if (!gap) plot_end_curve(f);
                gap = 1;
                continue;
            }
            if (gap) plot_begin_curve(f, curves[k].style);
            gap = 0;
            target[k] = PLOT_Y(m);
            fprintf(f, "%.1f,%.1f ", left + (right - left) * ((double)i + 0.5) / (double)points, target[k]);
        }
        if (!gap) plot_end_curve(f);
    }

    for (k = 0; k < n; k++) { /* labels at the right: sorted by height, then pushed apart so that none hides another */
        for (j = k; j > 0 && target[order[j - 1]] > target[k]; j--)
            order[j] = order[j - 1];
        order[j] = k;
    }
    for (k = 0; k < n; k++) {
        label[k] = target[order[k]];
        if (k && label[k] < label[k - 1] + 18) label[k] = label[k - 1] + 18;
    }
    for (k = n - 1, m = bottom + 8; k >= 0; k--, m -= 18)
        if (label[k] > m) label[k] = m;
    for (k = 0; k < n; k++) {
        const plot_curve *c = &curves[order[k]];
        y = target[order[k]];
        sprintf(text, "stroke=\"%s\" stroke-width=\"1.4\"", c->style->colour);
        plot_line(f, right - 1, y, right + 18, label[k], text);
        sprintf(text, "%.24s <tspan fill=\"" PLOT_GREY "\">%.48s</tspan>", c->name, c->note);
        plot_text(f, right + 22, label[k] + 4, "start", "font-size=\"12\"", text);
    }
#undef PLOT_Y
    return plot_close(f);
}

/* ---- loss scale ---------------------------------------------------------------------------------------------------------- */

static void plot_scale_panel(FILE *f, const float *scale, const unsigned char *skipped, size_t from, size_t to,
    double x0, double x1, double top, double bottom, int low, int high) {
    static const plot_style line = {"#0072B2", "", 2.2};
    size_t i;
    int e;
#define PLOT_X(i) (x0 + (x1 - x0) * (double)((i) - from) / (double)(to - from))
#define PLOT_Y(s) (bottom - (log2((double)(s)) - low) / (high - low) * (bottom - top))
    for (e = low; e <= high; e++) {
        if ((e - low) % ((high - low) / 12 + 1)) continue;
        plot_line(f, x0, PLOT_Y(ldexp(1.0, e)), x1, PLOT_Y(ldexp(1.0, e)), "stroke=\"#E4E4E4\"");
        plot_power(f, x0 - 8, PLOT_Y(ldexp(1.0, e)) + 5, "end", e);
    }
    plot_step_axis(f, x0, x1, bottom, (double)from, (double)to);
    plot_begin_curve(f, &line);
    for (i = from; i < to; i++) /* a stair: the scale holds from step i to step i + 1 */
        if (i == from || i + 1 == to || scale[i] < scale[i - 1] || scale[i] > scale[i - 1])
            fprintf(f, "%.1f,%.1f %.1f,%.1f ", PLOT_X(i), i > from ? PLOT_Y(scale[i - 1]) : PLOT_Y(scale[i]), PLOT_X(i),
                PLOT_Y(scale[i]));
    fprintf(f, "%.1f,%.1f", PLOT_X(to), PLOT_Y(scale[to - 1]));
    plot_end_curve(f);
    for (i = from; i < to; i++)
        if (skipped[i])
            fprintf(
                f, "<path d=\"M%.1f %.1f l-5 -9 h10 z\" fill=\"" PLOT_BAD "\"/>\n", PLOT_X(i), PLOT_Y(scale[i]) - 2);
#undef PLOT_X
#undef PLOT_Y
}

static int plot_scale(const char *path, const char *title, const char *line1, const char *line2, const float *scale,
    const unsigned char *skipped, size_t steps) {
    const double top = 130, bottom = 440;
    size_t near = steps / 2 < 24 ? steps / 2 + 1 : 24, i;
    float low = scale[0], high = scale[0];
    char text[64];
    FILE *f = plot_open(path, 940, 505, title);
    if (!f) return -1;
    for (i = 0; i < steps; i++) {
        low = scale[i] < low ? scale[i] : low;
        high = scale[i] > high ? scale[i] : high;
    }
    plot_title(f, title, line1, line2, "");
    sprintf(text, "the first %d steps", (int)near);
    plot_text(f, 200, top - 22, "middle", "font-weight=\"bold\"", text);
    plot_text(f, 640, top - 22, "middle", "font-weight=\"bold\"", "the whole run");
    plot_scale_panel(f, scale, skipped, 0, near, 70, 330, top, bottom, (int)floor(log2((double)low)) - 1,
        (int)ceil(log2((double)high)) + 1);
    plot_scale_panel(f, scale, skipped, 0, steps, 400, 910, top, bottom, (int)floor(log2((double)low)) - 1,
        (int)ceil(log2((double)high)) + 1);
    plot_text(f, 200, bottom + 42, "middle", "", "training step");
    plot_text(f, 640, bottom + 42, "middle", "", "training step");
    fprintf(f, "<text transform=\"translate(20 %.0f) rotate(-90)\" text-anchor=\"middle\">loss scale</text>\n",
        (top + bottom) / 2);
    plot_line(f, 400, bottom + 54, 426, bottom + 54, "stroke=\"#0072B2\" stroke-width=\"2.2\"");
    plot_text(f, 432, bottom + 58, "start", "font-size=\"12\"", "loss scale");
    fprintf(f, "<path d=\"M520 %.0f l-5 -9 h10 z\" fill=\"" PLOT_BAD "\"/>\n", bottom + 58);
    plot_text(f, 531, bottom + 58, "start", "font-size=\"12\"", "step skipped: a gradient overflowed FP16");
    return plot_close(f);
}

/* ---- gradient exponents ---------------------------------------------------------------------------------------------------- */

#define PLOT_LOST   (-25) /* |x| < 2^-25 rounds to zero in FP16 */
#define PLOT_NORMAL (-14) /* from 2^-14 on, FP16 has all its 11 bits */
#define PLOT_OVER   16    /* 2^16 and more is beyond FP16's 65504 */

/* share[i]: share (0..1) of the nonzero gradients with 2^(i-127) <= |x| < 2^(i-126). */
static void plot_exponent_panel(
    FILE *f, const double *share, const char *heading, double top, double bottom, int low, int high, double most) {
    static const struct {
        const char *name, *what, *colour, *bar;
        int from, to;
    } region[4] = {{"LOST", "rounds to 0", "#FBE3D6", PLOT_BAD, -400, PLOT_LOST},
        {"SUBNORMAL", "fewer bits", "#FFF6D6", "#E69F00", PLOT_LOST, PLOT_NORMAL},
        {"NORMAL", "full precision", "#DCEBF7", "#0072B2", PLOT_NORMAL, PLOT_OVER},
        {"OVERFLOW", "Inf", "#E2E2E2", "#333333", PLOT_OVER, 400}};
    const double left = 70, right = 910;
    double x, w = (right - left) / (high - low);
    char text[96];
    int r, e;
    plot_text(f, left, top - 46, "start", "font-weight=\"bold\"", heading);
    for (r = 0; r < 4; r++) {
        int from = region[r].from < low ? low : region[r].from, to = region[r].to > high ? high : region[r].to;
        double sum = 0;
        for (e = -127; e <= 127; e++)
            if (e >= region[r].from && e < region[r].to) sum += share[e + 127];
        if (from >= to) continue;
        x = left + (from - low) * w;
        sprintf(text, "fill=\"%s\"", region[r].colour);
        plot_rect(f, x, top, (to - from) * w, bottom - top, text);
        plot_text(f, x + (to - from) * w / 2, top - 22, "middle", "font-size=\"11\"", region[r].name);
        sprintf(
            text, sum > 0 && sum < 0.0005 ? "%s, &lt;0.1&#8201;%%" : "%s, %.1f&#8201;%%", region[r].what, 100.0 * sum);
        plot_text(f, x + (to - from) * w / 2, top - 7, "middle", "font-size=\"11\" font-weight=\"bold\"", text);
        sprintf(text, "fill=\"%s\"", region[r].bar);
        for (e = from; e < to; e++)
            plot_rect(f, left + (e - low) * w + 1, bottom - share[e + 127] / most * (bottom - top - 8), w - 2,
                share[e + 127] / most * (bottom - top - 8), text);
        if (to < high)
            plot_line(f, left + (to - low) * w, top - 34, left + (to - low) * w, bottom,
                "stroke=\"#999999\" stroke-dasharray=\"3 3\"");
    }
    plot_line(f, left, bottom, right, bottom, "stroke=\"#222222\"");
    for (e = low; e <= high; e++)
        if (e % 4 == 0) {
            plot_line(f, left + (e - low) * w, bottom, left + (e - low) * w, bottom + 5, "stroke=\"#222222\"");
            plot_power(f, left + (e - low) * w, bottom + 21, "middle", e);
        }
    for (x = 0; x <= most; x += plot_tick(most)) {
        double y = bottom - x / most * (bottom - top - 8);
        sprintf(text, "%g%%", 100.0 * x);
        plot_text(f, left - 8, y + 4, "end", "font-size=\"11\"", text);
        plot_line(f, left - 5, y, left, y, "stroke=\"#222222\"");
    }
    fprintf(f,
        "<text transform=\"translate(16 %.0f) rotate(-90)\" text-anchor=\"middle\" font-size=\"11\">share of gradients</text>\n",
        (top + bottom) / 2);
}

static int plot_exponents(const char *path, const char *title, const char *line1, const char *line2,
    const char *finding, const double *before, const double *after, const char *heading_before,
    const char *heading_after) {
    double most = 0;
    int low = PLOT_LOST - 9, high = PLOT_OVER + 6, e;
    FILE *f = plot_open(path, 940, 680, title);
    if (!f) return -1;
    for (e = -127; e <= 127; e++) {
        double m = before[e + 127] > after[e + 127] ? before[e + 127] : after[e + 127];
        most = m > most ? m : most;
        if (m > 0.002 && e < low) low = e;
        if (m > 0.002 && e >= high) high = e + 1;
    }
    if (most <= 0) most = 1;
    plot_title(f, title, line1, line2, finding);
    plot_exponent_panel(f, before, heading_before, 168, 348, low, high, most);
    plot_exponent_panel(f, after, heading_after, 448, 628, low, high, most);
    plot_text(f, 490, 668, "middle", "", "size of a gradient, |g|");
    return plot_close(f);
}

/* The histogram on a terminal: one column per power of two. */
static void plot_sketch(const char *heading, const double *share) {
    enum { LOW = -44, HIGH = 20, HEIGHT = 6 };
    double most = 1e-12, sum[4] = {0, 0, 0, 0};
    int e, row;
    for (e = -126; e <= 127; e++) {
        sum[e < PLOT_LOST ? 0 : e < PLOT_NORMAL ? 1 : e < PLOT_OVER ? 2 : 3] += 100 * share[e + 127];
        if (e >= LOW && e < HIGH && share[e + 127] > most) most = share[e + 127];
    }
    printf("\n  %s\n", heading);
    for (row = HEIGHT; row > 0; row--) {
        fputs("  ", stdout);
        for (e = LOW; e < HIGH; e++) {
            if (e == PLOT_LOST || e == PLOT_NORMAL || e == PLOT_OVER) putchar('|');
            putchar(share[e + 127] * HEIGHT > most * (row - 0.5) ? '#' : row == 1 && share[e + 127] > 0 ? '.' : ' ');
        }
        putchar('\n');
    }
    printf("  -------------------+-----------+------------------------------+----  |g|\n"
           "                   2^-25       2^-14                          2^16\n"
           "     lost %5.1f%%       subnormal %4.1f%%      normal %5.1f%%        overflow %.1f%%\n",
        sum[0], sum[1], sum[2], sum[3]);
}

#endif
