/* plot_numbers.h - pictures of numbers: what the formats hold, a weight whose updates are too small, memory by class,
   and underflow by layer. What they say about a format is found by decoding its bits with amp.h. */
#ifndef PLOT_NUMBERS_H
#define PLOT_NUMBERS_H

#include "amp.h"
#include "plot.h"

#include <float.h>

/* ---- formats --------------------------------------------------------------------------------------------------- */

typedef struct plot_format {
    const char *name;
    amp_dtype type;
    int bits, exponent, fraction;
    double smallest, normal, largest, step; /* above zero; the first with all bits; finite; from 1 to the next number */
} plot_format;
enum { PLOT_FORMATS = 5 };

static double plot_decode(amp_dtype type, unsigned code) {
    uint16_t wide = (uint16_t)code;
    uint8_t narrow = (uint8_t)code;
    return (double)(amp_dtype_size(type) == 1 ? amp_load(&narrow, type, 0) : amp_load(&wide, type, 0));
}

/* All positive numbers of a format of 8 or 16 bits are looked at; FP32 is the compiler's float. */
static inline plot_format plot_format_of(const char *name, amp_dtype type) {
    plot_format f = {name, AMP_F32, 32, 8, FLT_MANT_DIG - 1, 0, FLT_MIN, FLT_MAX, FLT_EPSILON};
    unsigned code, positive;
    f.smallest = ldexp(FLT_MIN, 1 - FLT_MANT_DIG);
    if (type == AMP_F32) return f;
    f.type = type;
    f.bits = 8 * (int)amp_dtype_size(type);
    f.smallest = plot_decode(type, 1);
    f.largest = 0;
    f.step = 1e9;
    positive = 1u << (f.bits - 1);
    for (code = 0; code < positive; code++) {
        double v = plot_decode(type, code);
        if (!(v < 1e300)) continue; /* Inf and NaN */
        if (v > f.largest) f.largest = v;
        if (v > 1 && v - 1 < f.step) f.step = v - 1;
    }
    f.fraction = -(int)log2(f.step);
    f.exponent = f.bits - 1 - f.fraction;
    f.normal = ldexp(f.smallest, f.fraction);
    return f;
}

static inline void plot_all_formats(plot_format list[PLOT_FORMATS]) {
    list[0] = plot_format_of("FP32", AMP_F32);
    list[1] = plot_format_of("FP16", AMP_F16);
    list[2] = plot_format_of("BF16", AMP_BF16);
    list[3] = plot_format_of("FP8 E4M3", AMP_F8E4M3);
    list[4] = plot_format_of("FP8 E5M2", AMP_F8E5M2);
}

/* Where the rows of the three parts stand. A phone has what is said of a row above it. */
typedef struct plot_formats_area {
    double left, right, row, bit; /* row: from one to the next; bit: its width, with the gap */
    int phone;
} plot_formats_area;

/* The name of a row, and what is said of it. */
static void plot_format_words(
    FILE *f, const plot_formats_area *a, const char *name, double x, double y, const char *says) {
    if (a->phone) {
        plot_text(f, a->left, y - 6, "start", "font-weight=\"bold\"", name);
        plot_text(f, a->right, y - 6, "end", "", says);
        return;
    }
    plot_text(f, 98, y + 13, "end", "font-weight=\"bold\"", name);
    plot_text(f, x, y + 13, "start", "", says);
}

static void plot_format_bits(FILE *f, const plot_formats_area *a, const plot_format *p, double y) {
    char text[64];
    int i;
    for (i = 0; i < p->bits; i++) {
        const char *fill = i == 0 ? "fill=\"#999999\"" : i <= p->exponent ? "fill=\"#E69F00\"" : "fill=\"#0072B2\"";
        plot_rect(f, a->left + a->bit * i, y, a->bit - 2, a->phone ? 16 : 18, fill);
    }
    sprintf(text, "1 + %d + %d bits", p->exponent, p->fraction);
    plot_format_words(f, a, p->name, a->left + 8 + a->bit * p->bits, y, text);
}

enum { PLOT_RULER_LOW = -152, PLOT_RULER_HIGH = 132 };
static double plot_ruler_x(const plot_formats_area *a, double exponent) {
    return a->left + (a->right - a->left) * (exponent - PLOT_RULER_LOW) / (PLOT_RULER_HIGH - PLOT_RULER_LOW);
}
static void plot_format_range(FILE *f, const plot_formats_area *a, const plot_format *p, double y) {
    double from = plot_ruler_x(a, log2(p->smallest)), full = plot_ruler_x(a, log2(p->normal));
    char text[140], low[64], high[64];
    plot_rect(f, from, y, full - from, 16, "fill=\"#E69F00\"");
    plot_rect(f, full, y, plot_ruler_x(a, log2(p->largest)) - full, 16, "fill=\"#0072B2\"");
    sprintf(text, "%s to %s", plot_decimal(low, p->smallest, 2), plot_decimal(high, p->largest, 5));
    plot_format_words(f, a, p->name, a->right + 16, y, text);
}

/* The numbers from 1 to 1.5. */
static void plot_format_spacing(FILE *f, const plot_formats_area *a, const plot_format *p, double y) {
    double wide = a->right - a->left;
    char text[96], power[64];
    int i, n = (int)(0.5 / p->step + 0.5);
    plot_line(f, a->left, y + 8, a->right, y + 8, "stroke=\"#999999\"");
    if (n > wide / 1.6) plot_rect(f, a->left, y, wide, 16, "fill=\"#0072B2\""); /* closer than a line is wide */
    for (i = 0; i <= n && n <= wide / 1.6; i++)
        plot_rect(f, a->left + wide * i / n - 0.75, y, 1.5, 16, "fill=\"#0072B2\"");
    sprintf(text, "1 + %s = %.10g", plot_two_to(power, -p->fraction), 1 + p->step);
    plot_format_words(f, a, p->name, a->right + 16, y, text);
}

static void plot_formats_key(FILE *f, double x, double x2, double y, const char *blue, const char *yellow) {
    plot_rect(f, x, y - 11, 12, 12, "fill=\"#E69F00\"");
    plot_text(f, x + 18, y, "start", "font-size=\"12\"", yellow);
    plot_rect(f, x2, y - 11, 12, 12, "fill=\"#0072B2\"");
    plot_text(f, x2 + 18, y, "start", "font-size=\"12\"", blue);
}

static void plot_formats_heading(FILE *f, const plot_formats_area *a, double y, const char *text) {
    plot_text(f, a->phone ? PLOT_EDGE : 20, y, "start", "font-weight=\"bold\"", text);
}

static void plot_formats_wide(FILE *f, const plot_format *list) {
    static const plot_formats_area a = {110, 710, 25, 17, 0};
    int i, e;
    plot_formats_heading(f, &a, 124, "Bits");
    plot_formats_key(f, 490, 690, 124, "fraction", "exponent");
    for (i = 0; i < PLOT_FORMATS; i++)
        plot_format_bits(f, &a, &list[i], 134 + a.row * i);
    plot_formats_heading(f, &a, 288, "Range, in powers of two");
    plot_formats_key(f, 490, 690, 288, "full precision", "subnormal: fewer bits");
    for (e = -140; e <= 120; e += 20) {
        plot_line(f, plot_ruler_x(&a, e), 298, plot_ruler_x(&a, e), 428, "stroke=\"#E4E4E4\"");
        plot_power(f, plot_ruler_x(&a, e), 446, "middle", e);
    }
    for (i = 0; i < PLOT_FORMATS; i++)
        plot_format_range(f, &a, &list[i], 302 + a.row * i);
    plot_text(f, 726, 446, "start", "font-size=\"12\" fill=\"" PLOT_GREY "\"", "smallest above 0, largest");
    plot_formats_heading(f, &a, 486, "Spacing: every number from 1 to 1.5");
    for (i = 0; i < PLOT_FORMATS; i++)
        plot_format_spacing(f, &a, &list[i], 498 + a.row * i);
    for (i = 0; i <= 4; i++) {
        char text[32];
        sprintf(text, "%g", 1 + i / 8.0);
        plot_text(f, 110 + 150 * i, 640, "middle", "", text);
    }
    plot_text(f, 726, 640, "start", "font-size=\"12\" fill=\"" PLOT_GREY "\"", "the number after 1");
}

static void plot_formats_phone(FILE *f, const plot_format *list) {
    static const plot_formats_area a = {PLOT_EDGE, 326, 42, 9.9, 1};
    int i, e;
    plot_formats_heading(f, &a, 22, "Bits");
    plot_formats_key(f, PLOT_EDGE, 110, 46, "fraction", "exponent");
    for (i = 0; i < PLOT_FORMATS; i++)
        plot_format_bits(f, &a, &list[i], 80 + a.row * i);
    plot_formats_heading(f, &a, 312, "Range: smallest above 0, largest");
    plot_formats_key(f, PLOT_EDGE, 180, 336, "full precision", "fewer bits");
    for (i = 0; i < PLOT_FORMATS; i++)
        plot_format_range(f, &a, &list[i], 370 + a.row * i);
    for (e = -120; e <= 120; e += 40) {
        plot_line(f, plot_ruler_x(&a, e), 562, plot_ruler_x(&a, e), 568, "stroke=\"#222222\"");
        plot_power(f, plot_ruler_x(&a, e), 584, "middle", e);
    }
    plot_line(f, a.left, 562, a.right, 562, "stroke=\"#222222\"");
    plot_formats_heading(f, &a, 624, "Spacing: the numbers from 1 to 1.5");
    for (i = 0; i < PLOT_FORMATS; i++)
        plot_format_spacing(f, &a, &list[i], 660 + a.row * i);
    plot_text(f, a.left, 866, "start", "", "1");
    plot_text(f, (a.left + a.right) / 2, 866, "middle", "", "1.25");
    plot_text(f, a.right, 866, "end", "", "1.5");
}

static inline int plot_formats(const char *path) {
    plot_format list[PLOT_FORMATS];
    char finding[320], fine[64], coarse[64], far[64], near[64];
    plot_words words = {"What a number of each format is made of, what it reaches, and how fine it is",
        "A number is sign &#215; fraction &#215; 2 to the exponent: exponent bits buy range, fraction bits precision.",
        "FP8 is for the operands of products on new GPUs, with a scale for each tensor.", NULL};
    FILE *f;
    plot_all_formats(list);
    sprintf(finding, "With the same 16 bits FP16 is finer: 1 + %s comes after 1, not 1 + %s; BF16 reaches %s, not %s.",
        plot_two_to(fine, -list[1].fraction), plot_two_to(coarse, -list[2].fraction),
        plot_decimal(far, list[2].largest, 2), plot_decimal(near, list[1].largest, 5));
    words.finding = finding;
    f = plot_open(path, 940, 660, &words);
    if (!f) return -1;
    plot_formats_wide(f, list);
    if (plot_close(f)) return -1;
    f = plot_open(path, PLOT_PHONE, 882, &words);
    if (!f) return -1;
    plot_formats_phone(f, list);
    return plot_close(f);
}

/* ---- a weight and an update below half a step ------------------------------------------------------------------ */

typedef struct plot_updates { /* FP16 alone; an FP32 master; the FP16 copy of the master */
    double alone[64], master[64], copy[64];
    double weight, move, gap; /* gap: to the next FP16 number */
    int n, first;             /* updates that are drawn; the first one that moves the copy, 0: none */
} plot_updates;

static double plot_round_f16(double x) { return (double)amp_f32_from_f16(amp_f16_from_f32((float)x)); }

/* A positive weight of FP16 and a positive update of it, applied again and again. */
static inline plot_updates plot_update_weight(double weight, double move) {
    plot_updates u;
    amp_f16 above = amp_f16_from_f32((float)weight);
    float master = (float)weight;
    int i;
    above.bits++;
    u.weight = weight;
    u.move = move;
    u.gap = (double)amp_f32_from_f16(above) - weight;
    u.first = 0;
    u.n = (int)(3.2 * u.gap / move);
    if (u.n > 63) u.n = 63;
    u.alone[0] = u.master[0] = u.copy[0] = weight;
    for (i = 1; i <= u.n; i++) {
        master += (float)move;
        u.alone[i] = plot_round_f16(u.alone[i - 1] + move);
        u.master[i] = (double)master;
        u.copy[i] = plot_round_f16((double)master);
        if (!u.first && u.copy[i] > weight) u.first = i;
    }
    return u;
}

/* Two parts: the line of FP16's numbers at y, and below it stairs that begin at the height `start`. */
typedef struct plot_updates_area {
    double line_left, line_width, line_end, y;
    double left, right, start, step, axis; /* step: the height of one FP16 step; axis: the y of the axis */
    int phone;
} plot_updates_area;

static double plot_update_x(const plot_updates_area *a, const plot_updates *u, double value) {
    return a->line_left + a->line_width * (value - u->weight + 0.7 * u->gap) / (3.4 * u->gap);
}
static double plot_update_y(const plot_updates_area *a, const plot_updates *u, double value) {
    return a->start - a->step * (value - u->weight) / u->gap;
}

/* The numbers that FP16 has, and one update. */
static void plot_update_line(FILE *f, const plot_updates_area *a, const plot_updates *u) {
    double w = u->weight, x0 = plot_update_x(a, u, w), x1 = plot_update_x(a, u, w + u->move), y = a->y;
    double from = plot_update_x(a, u, w - u->gap / 2);
    char text[128];
    int i;
    plot_rect(f, from, y - 40, plot_update_x(a, u, w + u->gap / 2) - from, 80, "fill=\"#FBE3D6\"");
    plot_text(f, a->phone ? from : x0, y + 58, a->phone ? "start" : "middle", "font-size=\"12\"",
        "all of this rounds to the weight");
    plot_line(f, a->line_left, y, a->line_end, y, "stroke=\"#222222\"");
    for (i = 0; i <= 2; i++) {
        double x = plot_update_x(a, u, w + i * u->gap);
        plot_line(f, x, y - 14, x, y + 14, "stroke=\"#0072B2\" stroke-width=\"3\"");
        sprintf(text, "%.9g", w + i * u->gap);
        plot_text(f, x, y + 32, "middle", "font-size=\"12\"", text);
    }
    plot_line(f, x0, y - 24, x1, y - 24, "stroke=\"" PLOT_BAD "\" stroke-width=\"3\"");
    fprintf(f, "<path d=\"M%.1f %.1f l-7 -6 v12 z\" fill=\"" PLOT_BAD "\"/>\n", x1 + 3, y - 24);
    sprintf(text, "one update: %g", u->move);
    plot_text(f, x0, y - 48, "start", "", text);
    if (a->phone)
        plot_text(f, a->line_end, y - 22, "end", "font-size=\"12\"", "numbers of FP16");
    else
        plot_text(f, 706, y + 5, "start", "font-size=\"12\"", "numbers of FP16");
}

static void plot_update_stairs(
    FILE *f, const plot_updates_area *a, const plot_updates *u, const double *y, const plot_style *style) {
    int i;
    plot_begin_curve(f, style);
    for (i = 0; i <= u->n; i++) {
        double x = a->left + (a->right - a->left) * i / u->n;
        if (i) fprintf(f, "%.1f,%.1f ", x, plot_update_y(a, u, y[i - 1]));
        fprintf(f, "%.1f,%.1f ", x, plot_update_y(a, u, y[i]));
    }
    plot_end_curve(f);
}

static int plot_weight_form(const char *path, int width, const plot_words *words, const plot_updates *u) {
    static const plot_style styles[3] = {{"#B8B8B8", "", 9}, {"#0072B2", "", 3}, {"#D55E00", "", 3}};
    static const char *const names[3] = {"FP32 master weight", "its FP16 copy", "FP16 without a master"};
    static const plot_updates_area wide = {150, 520, 690, 210, 150, 690, 545, 58, 565, 0};
    static const plot_updates_area phone = {10, 300, 326, 92, 104, 320, 412, 56, 430, 1};
    const plot_updates_area a = width == PLOT_PHONE ? phone : wide;
    const double *const values[3] = {u->master, u->copy, u->alone};
    double last[3];
    char text[64];
    int i;
    FILE *f = plot_open(path, width, a.phone ? 554 : 620, words);
    if (!f) return -1;
    plot_text(f, a.phone ? PLOT_EDGE : 20, a.phone ? 22 : 124, "start", "font-weight=\"bold\"", "One update");
    plot_update_line(f, &a, u);
    plot_text(f, a.phone ? PLOT_EDGE : 20, a.phone ? 196 : 336, "start", "font-weight=\"bold\"",
        "The same update, again and again");
    for (i = 0; i <= 3; i++) {
        double y = plot_update_y(&a, u, u->weight + i * u->gap);
        plot_line(f, a.left, y, a.right, y, "stroke=\"#E4E4E4\"");
        sprintf(text, "%.9g", u->weight + i * u->gap);
        plot_text(f, a.left - 8, y + 4, "end", "font-size=\"12\"", text);
    }
    for (i = 0; i < 3; i++) {
        plot_update_stairs(f, &a, u, values[i], &styles[i]);
        last[i] = plot_update_y(&a, u, values[i][u->n]);
    }
    last[1] = last[0] + 13; /* below the master's name */
    for (i = 0; i < 3 && !a.phone; i++)
        plot_text(f, 702, last[i] + (i == 0 ? -5 : i == 1 ? 0 : 4), "start", "", names[i]);
    for (i = 0; i < 3 && a.phone; i++) {
        double y = a.axis + 66 + 20 * i;
        plot_begin_curve(f, &styles[i]);
        fprintf(f, "%d,%.0f 48,%.0f", PLOT_EDGE, y, y);
        plot_end_curve(f);
        plot_text(f, 58, y + 4, "start", "font-size=\"12\"", names[i]);
    }
    plot_step_axis(f, a.left, a.right, a.axis, 0, u->n);
    plot_text(f, (a.left + a.right) / 2, a.axis + (a.phone ? 38 : 41), "middle", "", "updates");
    if (!a.phone)
        fprintf(f, "<text transform=\"translate(40 %d) rotate(-90)\" text-anchor=\"middle\">the weight</text>\n", 460);
    return plot_close(f);
}

static inline int plot_weight(
    const char *path, const char *title, const char *line1, const char *line2, const plot_updates *u) {
    plot_words words = {title, line1, line2, NULL};
    char finding[256];
    sprintf(finding, "An update of %.2f FP16 steps is rounded away", u->move / u->gap);
    if (u->first)
        sprintf(finding + strlen(finding), "; with an FP32 master the FP16 copy moves at update %d.", u->first);
    else
        strcat(finding, ".");
    words.finding = finding;
    if (plot_weight_form(path, 940, &words, u)) return -1;
    return plot_weight_form(path, PLOT_PHONE, &words, u);
}

/* ---- memory by class ------------------------------------------------------------------------------------------- */

enum { PLOT_CLASSES = 5 };
typedef struct plot_memory_row {
    const char *name;
    double bytes[PLOT_CLASSES]; /* masters, model copies, gradients, moments, activations */
} plot_memory_row;
static const struct plot_class {
    const char *name, *fill, *ink;
} plot_classes[PLOT_CLASSES] = {
    {"FP32 masters", "fill=\"#56467D\"", "fill=\"#FFFFFF\""},
    {"model weights", "fill=\"#0072B2\"", "fill=\"#FFFFFF\""},
    {"gradients", "fill=\"#E69F00\"", "fill=\"#111111\""},
    {"optimizer", "fill=\"#CFCFCF\"", "fill=\"#111111\""},
    {"activations", "fill=\"#8FD3F8\"", "fill=\"#111111\""},
};

static double plot_memory_sum(const plot_memory_row *r) {
    double sum = 0;
    int c;
    for (c = 0; c < PLOT_CLASSES; c++)
        sum += r->bytes[c];
    return sum;
}

typedef struct plot_memory_area {
    double left, width, row; /* of the longest bar; from one row to the next */
    int phone;               /* names and totals stand above their bars */
} plot_memory_area;

/* A bar of `wide` pixels per byte; what is wide enough has its number inside, divided by unit. */
static void plot_memory_bar(FILE *f, const plot_memory_area *a, const plot_memory_row *r, double y, double wide,
    double unit, const char *total) {
    double x = a->left;
    char text[64];
    int c;
    if (a->phone)
        plot_text(f, a->left, y - 4, "start", "font-size=\"12\"", r->name);
    else
        plot_text(f, a->left - 12, y + 15, "end", "", r->name);
    for (c = 0; c < PLOT_CLASSES; c++) {
        double w = r->bytes[c] * wide;
        if (!(w > 0)) continue;
        plot_rect(f, x, y, w - 1, a->phone ? 18 : 21, plot_classes[c].fill);
        sprintf(text, "%.4g", r->bytes[c] / unit);
        if (w > (a->phone ? 12 + 8 * (double)strlen(text) : 34)) {
            char extra[64];
            sprintf(extra, "font-size=\"%d\" class=\"inside\" %s", a->phone ? 12 : 11, plot_classes[c].ink);
            plot_text(f, x + w / 2, y + (a->phone ? 14 : 15), "middle", extra, text);
        }
        x += w;
    }
    if (a->phone)
        plot_text(f, PLOT_PHONE - PLOT_EDGE, y - 4, "end", "font-size=\"12\" font-weight=\"bold\"", total);
    else
        plot_text(f, x + 8, y + 15, "start", "", total);
}

static void plot_memory_key(FILE *f, const plot_memory_area *a) {
    double x = a->phone ? PLOT_EDGE : 240, y = a->phone ? 36 : 113;
    int i;
    for (i = 0; i < PLOT_CLASSES; i++) {
        double wide = a->phone ? 30 + 7.2 * (double)strlen(plot_classes[i].name)
                               : 36 + 7.6 * (double)strlen(plot_classes[i].name);
        if (a->phone && x + wide > PLOT_PHONE) {
            x = PLOT_EDGE;
            y += 20;
        }
        plot_rect(f, x, y, 12, 12, plot_classes[i].fill);
        plot_text(f, x + 18, y + 11, "start", "font-size=\"12\"", plot_classes[i].name);
        x += wide;
    }
}

static int plot_memory_form(const char *path, int width, const plot_words *words, const plot_memory_row *rows, int n,
    const plot_memory_row *layouts, int n_layouts) {
    static const plot_memory_area wide = {240, 570, 28, 0}, phone = {PLOT_EDGE, 316, 42, 1};
    const plot_memory_area a = width == PLOT_PHONE ? phone : wide;
    double most = 0, y = a.phone ? 104 : 144, x = a.phone ? PLOT_EDGE : 20;
    char text[64];
    int i;
    FILE *f = plot_open(path, width, (a.phone ? 172 : 200) + (int)a.row * (n + n_layouts), words);
    if (!f) return -1;
    for (i = 0; i < n; i++)
        if (plot_memory_sum(&rows[i]) > most) most = plot_memory_sum(&rows[i]);
    plot_text(f, x, a.phone ? 22 : 124, "start", "font-weight=\"bold\"", "This run, KiB");
    plot_memory_key(f, &a);
    for (i = 0; i < n; i++, y += a.row) {
        double sum = plot_memory_sum(&rows[i]);
        sprintf(text, "%.0f: %.0f%%", sum / 1024, 100 * sum / plot_memory_sum(&rows[0]));
        plot_memory_bar(f, &a, &rows[i], y, a.width / most, 1024, text);
    }
    y += a.phone ? 10 : 32;
    plot_text(f, x, y, "start", "font-weight=\"bold\"",
        a.phone ? "Layouts of amp, bytes per parameter"
                : "Layouts of amp, bytes per parameter with Adam and 16-bit gradients");
    if (a.phone) plot_text(f, x, y + 18, "start", "font-size=\"12\"", "with Adam and 16-bit gradients");
    y += a.phone ? 54 : 14;
    for (i = 0; i < n_layouts; i++, y += a.row) {
        sprintf(text, "%.0f", plot_memory_sum(&layouts[i]));
        plot_memory_bar(f, &a, &layouts[i], y, a.width / 16.0, 1, text);
    }
    return plot_close(f);
}
/* rows: of a run, in bytes; layouts: bytes per parameter with Adam. */
static inline int plot_memory(const char *path, const plot_words *words, const plot_memory_row *rows, int n,
    const plot_memory_row *layouts, int n_layouts) {
    if (plot_memory_form(path, 940, words, rows, n, layouts, n_layouts)) return -1;
    return plot_memory_form(path, PLOT_PHONE, words, rows, n, layouts, n_layouts);
}

/* ---- underflow by layer over time ------------------------------------------------------------------------------ */

enum { PLOT_LOOKS = 24, PLOT_LAYERS = 16 };
typedef struct plot_underflow { /* share of a layer's gradients that FP16 makes zero, at some moments of a run */
    int looks, layers;
    size_t step[PLOT_LOOKS];
    double before[PLOT_LOOKS][PLOT_LAYERS], after[PLOT_LOOKS][PLOT_LAYERS]; /* as they are; times the loss scale */
} plot_underflow;

static double plot_underflow_mean(int looks, const double share[PLOT_LOOKS][PLOT_LAYERS], int layer) {
    double sum = 0;
    int i;
    for (i = 0; i < looks; i++)
        sum += share[i][layer] / looks;
    return sum;
}

typedef struct plot_underflow_area {
    double width, high, mean; /* of the panel and of a layer's row; where the means end, from its left */
    int phone;
} plot_underflow_area;

static void plot_underflow_panel(FILE *f, const plot_underflow_area *a, const plot_underflow *u,
    const double share[PLOT_LOOKS][PLOT_LAYERS], double x0, double top, const char *heading) {
    const double wide = a->width / u->looks, high = a->high;
    char text[128];
    int i, k, every = u->looks / 4 + 1;
    plot_text(f, a->phone ? PLOT_EDGE : x0, top - (a->phone ? 10 : 26), "start", "font-weight=\"bold\"", heading);
    plot_rect(f, x0, top, a->width, high * u->layers, "fill=\"#F4F4F4\"");
    for (k = 0; k < u->layers; k++) {
        for (i = 0; i < u->looks; i++) {
            if (share[i][k] < 0.002) continue;
            fprintf(f,
                "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"" PLOT_BAD
                "\" fill-opacity=\"%.2f\"/>\n",
                x0 + wide * i, top + high * k, wide - 1, high - 1, share[i][k]);
        }
        sprintf(text, "%.1f%%", 100 * plot_underflow_mean(u->looks, share, k));
        plot_text(f, x0 + a->mean, top + high * k + 16, "end", "font-size=\"12\"", text);
        sprintf(text, "layer %d", k + 1);
        if (a->phone || x0 < 100) plot_text(f, x0 - 8, top + high * k + 16, "end", "font-size=\"12\"", text);
    }
    plot_text(f, x0 + a->mean, top - 8, "end", "font-size=\"12\" fill=\"" PLOT_GREY "\"", "mean");
    for (i = 0; i < u->looks; i += every) {
        double x = x0 + wide * (i + 0.5), y = top + high * u->layers;
        plot_line(f, x, y, x, y + 5, "stroke=\"#222222\"");
        sprintf(text, "%lu", (unsigned long)u->step[i]);
        plot_text(f, x, y + 19, "middle", "font-size=\"12\"", text);
    }
    plot_text(f, x0 + a->width / 2, top + high * u->layers + (a->phone ? 36 : 40), "middle", "", "training step");
}

static void plot_underflow_key(FILE *f, double x, double y) {
    char text[16];
    int k;
    for (k = 0; k <= 4; k++) {
        fprintf(f,
            "<rect x=\"%.0f\" y=\"%.0f\" width=\"16\" height=\"12\" fill=\"" PLOT_BAD
            "\" fill-opacity=\"%.2f\" stroke=\"#999999\" stroke-width=\"0.5\"/>\n",
            x + 62 * k, y - 11, k / 4.0);
        sprintf(text, "%d%%", 25 * k);
        plot_text(f, x + 20 + 62 * k, y, "start", "font-size=\"12\"", text);
    }
}

static int plot_layers_form(const char *path, int width, const plot_words *words, const plot_underflow *u) {
    static const plot_underflow_area wide = {330, 25, 392, 0}, phone = {200, 22, 258, 1};
    const plot_underflow_area a = width == PLOT_PHONE ? phone : wide;
    double panel = a.high * u->layers;
    FILE *f = plot_open(path, width, (int)(a.phone ? 214 + 2 * panel : 236 + panel), words);
    if (!f) return -1;
    if (a.phone) {
        plot_text(f, PLOT_EDGE, 20, "start", "font-size=\"12\"", "share that becomes zero:");
        plot_underflow_key(f, PLOT_EDGE, 42);
        plot_underflow_panel(f, &a, u, u->before, 68, 80, "As they are");
        plot_underflow_panel(f, &a, u, u->after, 68, 156 + panel, "Times the step's loss scale");
    } else {
        plot_text(f, 612, 123, "end", "font-size=\"12\"", "share that becomes zero:");
        plot_underflow_key(f, 620, 123);
        plot_underflow_panel(f, &a, u, u->before, 90, 176, "As they are");
        plot_underflow_panel(f, &a, u, u->after, 530, 176, "Times the loss scale of the step");
    }
    return plot_close(f);
}

static inline int plot_layers(
    const char *path, const char *title, const char *line1, const char *line2, const plot_underflow *u) {
    plot_words words = {title, line1, line2, NULL};
    double least = 2, most = -1, most_after = 0;
    char finding[256];
    int k, first = 0, last = 0;
    for (k = 0; k < u->layers; k++) {
        double mean = plot_underflow_mean(u->looks, u->before, k), after = plot_underflow_mean(u->looks, u->after, k);
        if (mean > most) {
            most = mean;
            first = k;
        }
        if (mean < least) {
            least = mean;
            last = k;
        }
        if (after > most_after) most_after = after;
    }
    sprintf(finding,
        "Lost without a scale: from %.1f%% in layer %d to %.1f%% in layer %d; with it at most "
        "%.1f%%.",
        100 * least, last + 1, 100 * most, first + 1, 100 * most_after);
    words.finding = finding;
    if (plot_layers_form(path, 940, &words, u)) return -1;
    return plot_layers_form(path, PLOT_PHONE, &words, u);
}

#endif
