/* plot.h - pictures written as SVG by hand: what all of them share, losses, and the loss scale. No library: an SVG
   file is text. plot_gradients.h and plot_numbers.h have more pictures. Each function writes one file and returns 0, or
   -1 if it could not be written. Every picture says its finding in one line, computed from what is drawn. */
#ifndef PLOT_H
#define PLOT_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLOT_MAX  9
#define PLOT_GREY "#555555"
#define PLOT_BAD  "#D55E00" /* what goes wrong: lost gradients, skipped steps */
#define PLOT_WARN "#A84300" /* the same for small text, which needs more contrast */

/* Colours of Okabe and Ito (2008): they can be told apart with any kind of colour vision. The dashes help in black and
   white, and where curves lie on top of each other. */
typedef struct plot_style {
    const char *colour, *dash;
    double width;
} plot_style;
static const plot_style plot_styles[PLOT_MAX] = {
    {"#B8B8B8", "", 9.0}, /* wide curves are drawn first, the others on top of them */
    {"#D55E00", "", 2.2},
    {"#E69F00", "9 5", 2.2},
    {"#8FD3F8", "2 5", 2.2},
    {"#0072B2", "", 4.5},
    {"#00B285", "7 4 2 4", 1.8},
    {"#CC79A7", "12 4", 1.8},
    {"#56467D", "4 3", 1.8},
    {"#8C5A2B", "1 4", 1.8},
};

typedef struct plot_curve {
    const char *name, *note; /* what stands at its right end, e.g. the final loss */
    const plot_style *style;
    const float *y; /* one value per step */
    size_t steps;
} plot_curve;

/* ---- text, lines, boxes ---------------------------------------------------------------------------------------- */

static void plot_text(FILE *f, double x, double y, const char *anchor, const char *extra, const char *text) {
    fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" %s>%s</text>\n", x, y, anchor, extra, text);
}

/* The words above a picture. page.h finds them again by their classes and shows them outside of it. */
typedef struct plot_words { const char *title, *line1, *line2, *finding; } plot_words;

/* Every picture has two forms: wide, and for a phone, whose file ends in _phone.svg. In the latter the words above the
   drawing are broken into lines, and the drawing's y begins below them. */
enum { PLOT_WIDE = 960, PLOT_PHONE = 336 };
#define PLOT_EDGE 10 /* a number and no enumerator: C++ compilers warn of one beside a double */
static const struct plot_face {
    const char *extra;
    double letter, line; /* mean width of a letter, distance of lines */
} plot_faces[3] = {
    {"class=\"title\" font-size=\"15\" font-weight=\"bold\"", 10.0, 20},
    {"class=\"about\" font-size=\"12\" fill=\"" PLOT_GREY "\"", 7.1, 16},
    {"class=\"finding\" font-weight=\"bold\"", 8.7, 17},
};

/* Where a line of at most `most` letters ends: at a space, or at the end. An entity, &...;, is one letter. */
static const char *plot_line_end(const char *text, int most) {
    const char *at = text, *end = NULL;
    int letters;
    for (letters = 0; letters <= most || !end; letters++) {
        if (!*at || *at == ' ') end = at;
        if (!*at) break;
        at += *at == '&' ? strcspn(at, ";") + 1 : 1;
    }
    return end;
}
/* Returns the y of the line after the last. f NULL: nothing is written. */
static double plot_lines(FILE *f, double y, const struct plot_face *face, const char *text) {
    int most = (int)((PLOT_PHONE - 2 * PLOT_EDGE) / face->letter);
    while (*text) {
        const char *end = plot_line_end(text, most);
        if (f)
            fprintf(f, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"start\" %s>%.*s</text>\n", PLOT_EDGE, y, face->extra,
                (int)(end - text), text);
        y += face->line;
        text = end + strspn(end, " ");
    }
    return y;
}
static double plot_phone_head(FILE *f, const plot_words *w) { /* returns where the drawing begins */
    double y = plot_lines(f, 26, &plot_faces[0], w->title);
    y = plot_lines(f, y, &plot_faces[1], w->line1);
    y = plot_lines(f, y, &plot_faces[1], w->line2);
    return plot_lines(f, y + 3, &plot_faces[2], w->finding) - 8;
}

/* The colours on a dark sheet, for a picture alone and for page.h. */
static const struct plot_dark {
    const char *what, *light, *dark;
} plot_darks[] = {
    {"fill", "white", "#1B1E24"}, /* the sheet */
    {"fill", "#222222", "#E9E7E3"},
    {"stroke", "#222222", "#E9E7E3"},
    {"fill", PLOT_GREY, "#AAB0BA"},
    {"stroke", "#E4E4E4", "#363C46"},
    {"stroke", "#D0D0D0", "#363C46"},
    {"fill", "#FBE3D6", "#43291A"},
    {"fill", "#FFF6D6", "#3B3318"},
    {"fill", "#DCEBF7", "#1B3245"},
    {"fill", "#E2E2E2", "#2A2F37"},
    {"fill", "#F4F4F4", "#2A2F37"},
    {"fill", "#333333", "#B9BEC7"},
    {"fill", "#0072B2", "#3F9FDF"},
    {"stroke", "#0072B2", "#4AA8E8"},
    {"fill", PLOT_BAD, "#F07C28"},
    {"stroke", PLOT_BAD, "#F07C28"},
    {"fill", PLOT_WARN, "#FF9D5C"},
    {"stroke", "#B8B8B8", "#6D737D"},
    {"fill", "#56467D", "#8A78B8"},
    {"stroke", "#56467D", "#A794D6"},
};
static void plot_dark_rules(FILE *f, const char *within) {
    size_t i;
    for (i = 0; i < sizeof plot_darks / sizeof plot_darks[0]; i++)
        fprintf(f, "%s[%s='%s'] { %s: %s; }\n", within, plot_darks[i].what, plot_darks[i].light, plot_darks[i].what,
            plot_darks[i].dark);
    fprintf(f, "%s.inside { fill: #0D0F12; }\n", within);
}

static FILE *plot_file(const char *path, const char *insert) { /* insert stands before .svg */
    size_t stem = strlen(path) - strlen(".svg");
    char *name = (char *)malloc(strlen(path) + strlen(insert) + 1);
    FILE *f;
    if (!name) return NULL;
    sprintf(name, "%.*s%s.svg", (int)stem, path, insert);
    f = fopen(name, "w");
    free(name);
    return f;
}

/* width: PLOT_PHONE, or of the wide form. height: of the wide form's sheet, or of the phone form's drawing. */
static FILE *plot_open(const char *path, int width, int height, const plot_words *w) {
    int phone = width == PLOT_PHONE;
    double head = phone ? plot_phone_head(NULL, w) : 0;
    FILE *f = plot_file(path, phone ? "_phone" : "");
    if (!f) return NULL;
    height += (int)head;
    fprintf(f,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\"\n"
        "     font-family=\"DejaVu Sans, Verdana, Helvetica, Arial, sans-serif\" font-size=\"13\" fill=\"#222222\">\n"
        "<title>%s</title>\n<style>@media (prefers-color-scheme: dark) {\n",
        width, height, width, height, w->title);
    plot_dark_rules(f, "");
    fprintf(f, "}</style>\n<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n", width, height);
    if (phone) {
        plot_phone_head(f, w);
    } else {
        plot_text(f, 20, 30, "start", "class=\"title\" font-size=\"18\" font-weight=\"bold\"", w->title);
        plot_text(f, 20, 51, "start", "class=\"about\" fill=\"" PLOT_GREY "\"", w->line1);
        plot_text(f, 20, 69, "start", "class=\"about\" fill=\"" PLOT_GREY "\"", w->line2);
        plot_text(f, 20, 89, "start", "class=\"finding\" font-weight=\"bold\"", w->finding);
    }
    fprintf(f, "<g transform=\"translate(0 %.0f)\">\n", head);
    return f;
}

static int plot_close(FILE *f) {
    int bad;
    fprintf(f, "</g></svg>\n");
    bad = ferror(f);
    return fclose(f) || bad ? -1 : 0;
}

static void plot_power(FILE *f, double x, double y, const char *anchor, int exponent) { /* 2 with a raised exponent */
    fprintf(f,
        "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">2<tspan dy=\"-5\" font-size=\"10\">%s%d</tspan></text>\n", x, y,
        anchor, exponent < 0 ? "&#8722;" : "", abs(exponent));
}

/* The same inside a sentence, for SVG and HTML: superscript characters. */
static inline const char *plot_raised(char text[64], const char *base, int exponent) {
    static const int digit[10] = {8304, 185, 178, 179, 8308, 8309, 8310, 8311, 8312, 8313};
    char decimal[16], *out = text + sprintf(text, "%.24s%s", base, exponent < 0 ? "&#8315;" : "");
    const char *d;
    sprintf(decimal, "%d", abs(exponent));
    for (d = decimal; *d; d++)
        out += sprintf(out, "&#%d;", digit[*d - '0']);
    return text;
}
static inline const char *plot_two_to(char text[64], int exponent) { return plot_raised(text, "2", exponent); }
/* As people write it: 65504, 0.00005, 3.4 x 10 to the 38. */
static inline const char *plot_decimal(char text[64], double x, int digits) {
    int e = x > 0 ? (int)floor(log10(x) + 1e-9) : 0;
    char base[24];
    if (e > 9 || e < -6) {
        sprintf(base, "%.*g&#215;10", digits, x / pow(10.0, e));
        return plot_raised(text, base, e);
    }
    sprintf(text, "%.*f", e < digits ? digits - 1 - e : 0, x);
    while (strchr(text, '.') && strchr("0.", text[strlen(text) - 1])) {
        int point = text[strlen(text) - 1] == '.';
        text[strlen(text) - 1] = 0;
        if (point) break;
    }
    return text;
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
typedef struct plot_losses_area {
    double left, right, top, bottom;
    int phone; /* names stand in rows below, not at the right */
    size_t steps, points;
    double low, high; /* powers of ten */
} plot_losses_area;

static double plot_loss_y(const plot_losses_area *a, double loss) {
    return a->bottom - (log10(loss) - a->low) / (a->high - a->low) * (a->bottom - a->top);
}
static double plot_loss_x(const plot_losses_area *a, size_t i) {
    return a->left + (a->right - a->left) * ((double)i + 0.5) / (double)a->points;
}

/* Point i of a curve, or 0 where the loss is not a positive number: Inf and NaN are left out. */
static double plot_loss_at(const plot_losses_area *a, const plot_curve *c, size_t i) {
    double m = plot_mean(c->y, a->steps * i / a->points, a->steps * (i + 1) / a->points);
    return m > 0 && m < 1e30 ? m : 0;
}

static plot_losses_area plot_losses_fit(int width, const plot_curve *curves, int n) {
    static const plot_losses_area wide = {70, 700, 138, 520, 0, 0, 0, 0, 0}, phone = {40, 314, 34, 264, 1, 0, 0, 0, 0};
    plot_losses_area a = width == PLOT_PHONE ? phone : wide;
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
            plot_line(f, a->left, y, a->right, y, "stroke=\"#E4E4E4\"");
            sprintf(text, "%g", loss);
            plot_text(f, a->left - 8, y + 4, "end", "", text);
        }
    plot_step_axis(f, a->left, a->right, a->bottom, 0, (double)a->steps);
    plot_text(f, (a->left + a->right) / 2, a->bottom + (a->phone ? 36 : 42), "middle", "", "training step");
    if (a->phone)
        plot_text(f, PLOT_EDGE, a->top - 14, "start", "font-size=\"12\"", "training loss (logarithmic)");
    else
        fprintf(f, "<text transform=\"translate(18 %.0f) rotate(-90)\" text-anchor=\"middle\">%s</text>\n",
            (a->top + a->bottom) / 2, "training loss (logarithmic)");
}

static void plot_losses_legend(FILE *f, const plot_losses_area *a, const plot_curve *curves, int n) {
    double x = a->left;
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
    double end = a->top;
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
        fprintf(f, "%.1f,%.1f ", plot_loss_x(a, i), end);
    }
    if (!gap) plot_end_curve(f);
    return end;
}

/* The names with their notes, sorted by the heights at which the curves end. Wide: at the right, pushed apart so that
   none hides another. */
static void plot_losses_labels(FILE *f, const plot_losses_area *a, const plot_curve *curves, const double *end, int n) {
    double label[PLOT_MAX], lowest = a->bottom + 8;
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
        double x = a->right + 22, y = label[k];
        if (a->phone) {
            x = 58;
            y = a->bottom + 62 + 20 * k;
            plot_begin_curve(f, c->style);
            fprintf(f, "%d,%.0f 48,%.0f", PLOT_EDGE, y, y);
            plot_end_curve(f);
        } else {
            sprintf(text, "stroke=\"%s\" stroke-width=\"1.4\"", c->style->colour);
            plot_line(f, a->right - 1, end[order[k]], a->right + 18, y, text);
        }
        sprintf(text, "%.24s <tspan fill=\"" PLOT_GREY "\">%.48s</tspan>", c->name, c->note);
        plot_text(f, x, y + 4, "start", "font-size=\"12\"", text);
    }
}

static int plot_losses_form(const char *path, int width, const plot_words *words, const plot_curve *curves, int n) {
    plot_losses_area a = plot_losses_fit(width, curves, n);
    double end[PLOT_MAX];
    FILE *f = plot_open(path, width, a.phone ? (int)a.bottom + 60 + 20 * n : 580, words);
    int k;
    if (!f) return -1;
    plot_losses_axes(f, &a);
    if (!a.phone) plot_losses_legend(f, &a, curves, n);
    for (k = 0; k < n; k++) /* wide curves first, the others on top of them */
        if (curves[k].style->width > 3) end[k] = plot_losses_curve(f, &a, &curves[k]);
    for (k = 0; k < n; k++)
        if (curves[k].style->width <= 3) end[k] = plot_losses_curve(f, &a, &curves[k]);
    plot_losses_labels(f, &a, curves, end, n);
    return plot_close(f);
}
static inline int plot_losses(const char *path, const plot_words *words, const plot_curve *curves, int n) {
    if (plot_losses_form(path, PLOT_WIDE, words, curves, n)) return -1;
    return plot_losses_form(path, PLOT_PHONE, words, curves, n);
}

/* ---- loss scale ------------------------------------------------------------------------------------------------ */

typedef struct plot_scales {
    const float *scale; /* one per step */
    const unsigned char *skipped;
    int low, high; /* powers of two */
    double top, bottom;
} plot_scales;

static double plot_scale_y(const plot_scales *s, double scale) {
    return s->bottom - (log2(scale) - s->low) / (s->high - s->low) * (s->bottom - s->top);
}

/* The first n steps, between x0 and x1. */
static void plot_scale_panel(FILE *f, const plot_scales *s, const char *heading, size_t n, double x0, double x1) {
    static const plot_style style = {"#0072B2", "", 2.2};
    double width = (x1 - x0) / (double)n;
    int e, every = (int)((s->high - s->low) * 20 / (s->bottom - s->top)) + 1;
    size_t i;
    plot_text(f, (x0 + x1) / 2, s->top - 22, "middle", "font-weight=\"bold\"", heading);
    plot_text(f, (x0 + x1) / 2, s->bottom + 42, "middle", "", "training step");
    for (e = s->low; e <= s->high; e += every) {
        double y = plot_scale_y(s, ldexp(1.0, e));
        plot_line(f, x0, y, x1, y, "stroke=\"#E4E4E4\"");
        plot_power(f, x0 - 8, y + 5, "end", e);
    }
    plot_step_axis(f, x0, x1, s->bottom, 0, (double)n);
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

/* Where the scale ends, and what finding it cost. */
static void plot_scale_finding(char text[256], const plot_scales *s, size_t steps) {
    size_t i, skipped = 0, early = 0;
    char end[64];
    for (i = 0; i < steps; i++) {
        skipped += s->skipped[i];
        if (i < steps / 10) early += s->skipped[i];
    }
    sprintf(text, "It ends at %s; %lu of %lu steps were skipped, %lu of them in the first tenth of the run.",
        plot_two_to(end, (int)floor(log2((double)s->scale[steps - 1]) + 0.5)), (unsigned long)skipped,
        (unsigned long)steps, (unsigned long)early);
}

static void plot_scale_key(FILE *f, double x, double y, double x2, double y2) {
    plot_line(f, x, y, x + 26, y, "stroke=\"#0072B2\" stroke-width=\"2.2\"");
    plot_text(f, x + 32, y + 4, "start", "font-size=\"12\"", "loss scale");
    fprintf(f, "<path d=\"M%.0f %.0f l-5 -9 h10 z\" fill=\"" PLOT_BAD "\"/>\n", x2, y2 + 4);
    plot_text(f, x2 + 11, y2 + 4, "start", "font-size=\"12\"", "step skipped: a gradient overflowed FP16");
}

static int plot_scale_form(const char *path, int width, const plot_words *words, plot_scales s, size_t steps) {
    size_t first = steps / 2 < 24 ? steps / 2 + 1 : 24;
    int phone = width == PLOT_PHONE;
    char text[64];
    FILE *f = plot_open(path, width, phone ? 548 : 505, words);
    if (!f) return -1;
    sprintf(text, "the first %d steps", (int)first);
    s.top = phone ? 62 : 138;
    s.bottom = phone ? 214 : 440;
    if (phone) {
        plot_text(f, PLOT_EDGE, 22, "start", "font-size=\"12\"", "loss scale, upwards");
        plot_scale_panel(f, &s, text, first, 44, 314);
        s.top += 242;
        s.bottom += 242;
        plot_scale_panel(f, &s, "the whole run", steps, 44, 314);
        plot_scale_key(f, PLOT_EDGE, 512, PLOT_EDGE + 5, 532);
    } else {
        plot_scale_panel(f, &s, text, first, 70, 330);
        plot_scale_panel(f, &s, "the whole run", steps, 400, 910);
        fprintf(f, "<text transform=\"translate(20 %.0f) rotate(-90)\" text-anchor=\"middle\">loss scale</text>\n",
            (s.top + s.bottom) / 2);
        plot_scale_key(f, 400, 494, 520, 494);
    }
    return plot_close(f);
}

static inline int plot_scale(const char *path, const char *title, const char *line1, const char *line2,
    const float *scale, const unsigned char *skipped, size_t steps) {
    float low = scale[0], high = scale[0];
    plot_scales s;
    plot_words words;
    char text[256];
    size_t i;
    for (i = 0; i < steps; i++) {
        if (scale[i] < low) low = scale[i];
        if (scale[i] > high) high = scale[i];
    }
    s.scale = scale;
    s.skipped = skipped;
    s.low = (int)floor(log2((double)low)) - 1;
    s.high = (int)ceil(log2((double)high)) + 1;
    s.top = s.bottom = 0;
    plot_scale_finding(text, &s, steps);
    words.title = title;
    words.line1 = line1;
    words.line2 = line2;
    words.finding = text;
    if (plot_scale_form(path, 940, &words, s, steps)) return -1;
    return plot_scale_form(path, PLOT_PHONE, &words, s, steps);
}

#endif
