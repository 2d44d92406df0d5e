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

static void plot_format_bits(FILE *f, const plot_format *p, double y) {
    char text[64];
    int i;
    for (i = 0; i < p->bits; i++) {
        const char *fill = i == 0 ? "fill=\"#999999\"" : i <= p->exponent ? "fill=\"#E69F00\"" : "fill=\"#0072B2\"";
        plot_rect(f, 110 + 17 * i, y, 15, 18, fill);
    }
    plot_text(f, 98, y + 14, "end", "font-weight=\"bold\"", p->name);
    sprintf(text, "1 + %d + %d bits", p->exponent, p->fraction);
    plot_text(f, 118 + 17 * p->bits, y + 14, "start", "", text);
}

enum { PLOT_RULER_LOW = -152, PLOT_RULER_HIGH = 132 };
static double plot_ruler_x(double exponent) {
    return 110 + 600 * (exponent - PLOT_RULER_LOW) / (PLOT_RULER_HIGH - PLOT_RULER_LOW);
}
static void plot_format_range(FILE *f, const plot_format *p, double y) {
    double from = plot_ruler_x(log2(p->smallest)), full = plot_ruler_x(log2(p->normal));
    char text[140], low[64], high[64];
    plot_rect(f, from, y, full - from, 16, "fill=\"#E69F00\"");
    plot_rect(f, full, y, plot_ruler_x(log2(p->largest)) - full, 16, "fill=\"#0072B2\"");
    plot_text(f, 98, y + 13, "end", "font-weight=\"bold\"", p->name);
    sprintf(text, "%s to %s", plot_decimal(low, p->smallest, 2), plot_decimal(high, p->largest, 5));
    plot_text(f, 726, y + 13, "start", "", text);
}

static void plot_format_spacing(FILE *f, const plot_format *p, double y) { /* the numbers from 1 to 1.5 */
    char text[96], power[64];
    int i, n = (int)(0.5 / p->step + 0.5);
    plot_line(f, 110, y + 8, 710, y + 8, "stroke=\"#999999\"");
    if (n > 400) plot_rect(f, 110, y, 600, 16, "fill=\"#0072B2\""); /* closer than a line is wide */
    for (i = 0; i <= n && n <= 400; i++)
        plot_rect(f, 110 + 600.0 * i / n - 0.75, y, 1.5, 16, "fill=\"#0072B2\"");
    plot_text(f, 98, y + 13, "end", "font-weight=\"bold\"", p->name);
    sprintf(text, "1 + %s = %.10g", plot_two_to(power, -p->fraction), 1 + p->step);
    plot_text(f, 726, y + 13, "start", "", text);
}

static void plot_formats_key(FILE *f, double y, const char *blue, const char *yellow) {
    plot_rect(f, 490, y - 11, 12, 12, "fill=\"#E69F00\"");
    plot_text(f, 508, y, "start", "font-size=\"12\"", yellow);
    plot_rect(f, 690, y - 11, 12, 12, "fill=\"#0072B2\"");
    plot_text(f, 708, y, "start", "font-size=\"12\"", blue);
}

static inline int plot_formats(const char *path) {
    plot_format list[PLOT_FORMATS];
    char finding[320], fine[64], coarse[64], far[64], near[64];
    const char *title = "What a number of each format is made of, what it reaches, and how fine it is";
    int i, e;
    FILE *f = plot_open(path, 940, 660, title);
    if (!f) return -1;
    plot_all_formats(list);
    sprintf(finding, "With the same 16 bits FP16 is finer: 1 + %s comes after 1, not 1 + %s; BF16 reaches %s, not %s.",
        plot_two_to(fine, -list[1].fraction), plot_two_to(coarse, -list[2].fraction),
        plot_decimal(far, list[2].largest, 2), plot_decimal(near, list[1].largest, 5));
    plot_title(f, title,
        "A number is sign &#215; fraction &#215; 2 to the exponent: exponent bits buy range, fraction bits precision.",
        "FP8 is for the operands of products on new GPUs, with a scale for each tensor.", finding);
    plot_text(f, 20, 124, "start", "font-weight=\"bold\"", "Bits");
    plot_formats_key(f, 124, "fraction", "exponent");
    for (i = 0; i < PLOT_FORMATS; i++)
        plot_format_bits(f, &list[i], 134 + 25 * i);
    plot_text(f, 20, 288, "start", "font-weight=\"bold\"", "Range, in powers of two");
    plot_formats_key(f, 288, "full precision", "subnormal: fewer bits");
    for (e = -140; e <= 120; e += 20) {
        plot_line(f, plot_ruler_x(e), 298, plot_ruler_x(e), 428, "stroke=\"#E4E4E4\"");
        plot_power(f, plot_ruler_x(e), 446, "middle", e);
    }
    for (i = 0; i < PLOT_FORMATS; i++)
        plot_format_range(f, &list[i], 302 + 25 * i);
    plot_text(f, 726, 446, "start", "font-size=\"12\" fill=\"" PLOT_GREY "\"", "smallest above 0, largest");
    plot_text(f, 20, 486, "start", "font-weight=\"bold\"", "Spacing: every number from 1 to 1.5");
    for (i = 0; i < PLOT_FORMATS; i++)
        plot_format_spacing(f, &list[i], 498 + 25 * i);
    for (i = 0; i <= 4; i++) {
        char text[32];
        sprintf(text, "%g", 1 + i / 8.0);
        plot_text(f, 110 + 150 * i, 640, "middle", "", text);
    }
    plot_text(f, 726, 640, "start", "font-size=\"12\" fill=\"" PLOT_GREY "\"", "the number after 1");
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

static double plot_update_x(const plot_updates *u, double value) {
    return 150 + 520 * (value - u->weight + 0.7 * u->gap) / (3.4 * u->gap);
}
static double plot_update_y(const plot_updates *u, double value) { return 545 - 58 * (value - u->weight) / u->gap; }

static void plot_update_line(FILE *f, const plot_updates *u) { /* the numbers that FP16 has, and one update */
    double w = u->weight, x0 = plot_update_x(u, w), x1 = plot_update_x(u, w + u->move), y = 210;
    char text[128];
    int i;
    plot_rect(f, plot_update_x(u, w - u->gap / 2), y - 40,
        plot_update_x(u, w + u->gap / 2) - plot_update_x(u, w - u->gap / 2), 80, "fill=\"#FBE3D6\"");
    plot_text(f, x0, y + 58, "middle", "font-size=\"12\"", "all of this rounds to the weight");
    plot_line(f, 150, y, 690, y, "stroke=\"#222222\"");
    for (i = 0; i <= 2; i++) {
        double x = plot_update_x(u, w + i * u->gap);
        plot_line(f, x, y - 14, x, y + 14, "stroke=\"#0072B2\" stroke-width=\"3\"");
        sprintf(text, "%.9g", w + i * u->gap);
        plot_text(f, x, y + 32, "middle", "font-size=\"12\"", text);
    }
    plot_line(f, x0, y - 24, x1, y - 24, "stroke=\"" PLOT_BAD "\" stroke-width=\"3\"");
    fprintf(f, "<path d=\"M%.1f %.1f l-7 -6 v12 z\" fill=\"" PLOT_BAD "\"/>\n", x1 + 3, y - 24);
    sprintf(text, "one update: %g", u->move);
    plot_text(f, x0, y - 48, "start", "", text);
    plot_text(f, 706, y + 5, "start", "font-size=\"12\"", "numbers of FP16");
    plot_text(f, 20, 124, "start", "font-weight=\"bold\"", "One update");
}

static void plot_update_stairs(FILE *f, const plot_updates *u, const double *y, const plot_style *style) {
    int i;
    plot_begin_curve(f, style);
    for (i = 0; i <= u->n; i++) {
        double x = 150 + 540.0 * i / u->n;
        if (i) fprintf(f, "%.1f,%.1f ", x, plot_update_y(u, y[i - 1]));
        fprintf(f, "%.1f,%.1f ", x, plot_update_y(u, y[i]));
    }
    plot_end_curve(f);
}

static inline int plot_weight(
    const char *path, const char *title, const char *line1, const char *line2, const plot_updates *u) {
    static const plot_style master = {"#B8B8B8", "", 9}, copy = {"#0072B2", "", 3}, alone = {"#D55E00", "", 3};
    char finding[256], text[64];
    int i;
    FILE *f = plot_open(path, 940, 620, title);
    if (!f) return -1;
    sprintf(finding, "An update of %.2f FP16 steps is rounded away", u->move / u->gap);
    if (u->first)
        sprintf(finding + strlen(finding), "; with an FP32 master the FP16 copy moves at update %d.", u->first);
    else
        strcat(finding, ".");
    plot_title(f, title, line1, line2, finding);
    plot_update_line(f, u);
    plot_text(f, 20, 336, "start", "font-weight=\"bold\"", "The same update, again and again");
    for (i = 0; i <= 3; i++) {
        double y = plot_update_y(u, u->weight + i * u->gap);
        plot_line(f, 150, y, 690, y, "stroke=\"#E4E4E4\"");
        sprintf(text, "%.9g", u->weight + i * u->gap);
        plot_text(f, 142, y + 4, "end", "font-size=\"12\"", text);
    }
    plot_update_stairs(f, u, u->master, &master);
    plot_update_stairs(f, u, u->copy, &copy);
    plot_update_stairs(f, u, u->alone, &alone);
    plot_text(f, 702, plot_update_y(u, u->master[u->n]) - 5, "start", "", "FP32 master weight");
    plot_text(f, 702, plot_update_y(u, u->master[u->n]) + 13, "start", "", "its FP16 copy");
    plot_text(f, 702, plot_update_y(u, u->alone[u->n]) + 4, "start", "", "FP16 without a master");
    plot_step_axis(f, 150, 690, 565, 0, u->n);
    plot_text(f, 420, 606, "middle", "", "updates");
    fprintf(f, "<text transform=\"translate(40 %d) rotate(-90)\" text-anchor=\"middle\">the weight</text>\n", 460);
    return plot_close(f);
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

/* A bar of `wide` pixels per byte; what is wide enough has its number inside, divided by unit. */
static void plot_memory_bar(FILE *f, const plot_memory_row *r, double y, double wide, double unit, const char *total) {
    double x = 240;
    char text[64];
    int c;
    plot_text(f, 228, y + 15, "end", "class=\"result\"", r->name);
    for (c = 0; c < PLOT_CLASSES; c++) {
        double w = r->bytes[c] * wide;
        if (!(w > 0)) continue;
        plot_rect(f, x, y, w - 1, 21, plot_classes[c].fill);
        sprintf(text, "%.4g", r->bytes[c] / unit);
        if (w > 34) {
            char extra[64];
            sprintf(extra, "font-size=\"11\" class=\"inside\" %s", plot_classes[c].ink);
            plot_text(f, x + w / 2, y + 15, "middle", extra, text);
        }
        x += w;
    }
    plot_text(f, x + 8, y + 15, "start", "class=\"result-more\"", total);
}

/* rows: of a run, in bytes; layouts: bytes per parameter with Adam. */
static inline int plot_memory(const char *path, const char *title, const char *line1, const char *line2,
    const char *finding, const plot_memory_row *rows, int n, const plot_memory_row *layouts, int n_layouts) {
    double most = 0, x = 240, y = 144;
    char text[64];
    int i;
    FILE *f = plot_open(path, 940, 200 + 28 * (n + n_layouts), title);
    if (!f) return -1;
    plot_title(f, title, line1, line2, finding);
    for (i = 0; i < n; i++)
        if (plot_memory_sum(&rows[i]) > most) most = plot_memory_sum(&rows[i]);
    plot_text(f, 20, 124, "start", "font-weight=\"bold\"", "This run, KiB");
    for (i = 0; i < PLOT_CLASSES; i++) {
        plot_rect(f, x, 113, 12, 12, plot_classes[i].fill);
        plot_text(f, x + 18, 124, "start", "font-size=\"12\"", plot_classes[i].name);
        x += 36 + 7.6 * (double)strlen(plot_classes[i].name);
    }
    for (i = 0; i < n; i++, y += 28) {
        double sum = plot_memory_sum(&rows[i]);
        sprintf(text, "%.0f: %.0f%%", sum / 1024, 100 * sum / plot_memory_sum(&rows[0]));
        plot_memory_bar(f, &rows[i], y, 570 / most, 1024, text);
    }
    y += 32;
    plot_text(f, 20, y, "start", "font-weight=\"bold\"",
        "Layouts of amp, bytes per parameter with Adam and 16-bit gradients");
    y += 14;
    for (i = 0; i < n_layouts; i++, y += 28) {
        sprintf(text, "%.0f", plot_memory_sum(&layouts[i]));
        plot_memory_bar(f, &layouts[i], y, 570 / 16.0, 1, text);
    }
    return plot_close(f);
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

static void plot_underflow_panel(
    FILE *f, const plot_underflow *u, const double share[PLOT_LOOKS][PLOT_LAYERS], double x0, const char *heading) {
    const double wide = 330.0 / u->looks, high = 25, top = 176;
    char text[128];
    int i, k, every = u->looks / 4 + 1;
    plot_text(f, x0, top - 26, "start", "font-weight=\"bold\"", heading);
    plot_rect(f, x0, top, 330, high * u->layers, "fill=\"#F4F4F4\"");
    for (k = 0; k < u->layers; k++) {
        for (i = 0; i < u->looks; i++) {
            if (share[i][k] < 0.002) continue;
            fprintf(f,
                "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"" PLOT_BAD
                "\" fill-opacity=\"%.2f\"/>\n",
                x0 + wide * i, top + high * k, wide - 1, high - 1, share[i][k]);
        }
        sprintf(text, "%.1f%%", 100 * plot_underflow_mean(u->looks, share, k));
        plot_text(f, x0 + 392, top + high * k + 17, "end", "font-size=\"12\"", text);
    }
    plot_text(f, x0 + 392, top - 8, "end", "font-size=\"11\" fill=\"" PLOT_GREY "\"", "mean");
    for (i = 0; i < u->looks; i += every) {
        double x = x0 + wide * (i + 0.5), y = top + high * u->layers;
        plot_line(f, x, y, x, y + 5, "stroke=\"#222222\"");
        sprintf(text, "%lu", (unsigned long)u->step[i]);
        plot_text(f, x, y + 19, "middle", "font-size=\"12\"", text);
    }
    plot_text(f, x0 + 165, top + high * u->layers + 40, "middle", "", "training step");
}

static inline int plot_layers(
    const char *path, const char *title, const char *line1, const char *line2, const plot_underflow *u) {
    double least = 2, most = -1, most_after = 0;
    char finding[256], text[64];
    int k, first = 0, last = 0;
    FILE *f = plot_open(path, 940, 236 + 25 * u->layers, title);
    if (!f) return -1;
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
    plot_title(f, title, line1, line2, finding);
    plot_underflow_panel(f, u, u->before, 90, "As they are");
    plot_underflow_panel(f, u, u->after, 530, "Times the loss scale of the step");
    for (k = 0; k < u->layers; k++) {
        sprintf(text, "layer %d", k + 1);
        plot_text(f, 82, 176 + 25 * k + 17, "end", "font-size=\"12\"", text);
    }
    for (k = 0; k <= 4; k++) {
        fprintf(f,
            "<rect x=\"%d\" y=\"112\" width=\"16\" height=\"12\" fill=\"" PLOT_BAD
            "\" fill-opacity=\"%.2f\" stroke=\"#999999\" stroke-width=\"0.5\"/>\n",
            640 + 56 * k, k / 4.0);
        sprintf(text, "%d%%", 25 * k);
        plot_text(f, 660 + 56 * k, 123, "start", "font-size=\"12\"", text);
    }
    plot_text(f, 632, 123, "end", "font-size=\"12\"", "share that becomes zero:");
    return plot_close(f);
}

#endif
