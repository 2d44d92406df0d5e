/* plot_beside.h - how far runs are from a reference run of the same seed: a row for each, so that none hides another.
   gpt.c draws it, keeps what it draws as a text, and draws it again from that. */
#ifndef PLOT_BESIDE_H
#define PLOT_BESIDE_H

#include "plot.h"

enum { PLOT_SEEDS = 16 };
typedef struct plot_beside {
    char name[32];
    double validation[PLOT_SEEDS]; /* loss at the end, for each seed */
    double
        training[PLOT_POINTS]; /* of the first seed: mean of each stretch of steps, in percent beside the reference */
} plot_beside;

typedef struct plot_besides {
    size_t steps;
    int points, seeds, n;
    plot_beside row[PLOT_MAX]; /* row[0] is the reference */
} plot_besides;

/* ---- kept as text: two lines of what was run, then a line for each row ------------------------------------------- */

static inline int plot_besides_keep(const char *path, const char *line1, const plot_besides *b) {
    FILE *f = fopen(path, "w");
    int k, i, bad;
    if (!f) return -1;
    fprintf(f,
        "%s\n%lu steps, %d points, %d seeds, %d modes: validation losses; training loss beside %s's in percent\n",
        line1, (unsigned long)b->steps, b->points, b->seeds, b->n, b->row[0].name);
    for (k = 0; k < b->n; k++) {
        fputs(b->row[k].name, f);
        for (i = 0; i < b->seeds; i++)
            fprintf(f, " %.4f", b->row[k].validation[i]);
        for (i = 0; i < b->points; i++)
            fprintf(f, " %.3g", b->row[k].training[i]);
        putc('\n', f);
    }
    bad = ferror(f);
    return fclose(f) || bad ? -1 : 0;
}

/* 0, or -1 if the file is not one of plot_besides_keep. */
static inline int plot_besides_read(const char *path, char line1[256], plot_besides *b) {
    unsigned long steps;
    int k, i, good;
    FILE *f = fopen(path, "r");
    if (!f) return -1;
    good = fgets(line1, 256, f) != NULL &&
        fscanf(f, "%lu steps, %d points, %d seeds, %d modes%*[^\n]", &steps, &b->points, &b->seeds, &b->n) == 4 &&
        b->points > 0 && b->points <= PLOT_POINTS && b->seeds > 0 && b->seeds <= PLOT_SEEDS && b->n > 1 &&
        b->n <= PLOT_MAX && steps > 0;
    for (k = 0; good && k < b->n; k++) {
        good = fscanf(f, "%31s", b->row[k].name) == 1;
        for (i = 0; good && i < b->seeds; i++)
            good = fscanf(f, "%lf", &b->row[k].validation[i]) == 1;
        for (i = 0; good && i < b->points; i++)
            good = fscanf(f, "%lf", &b->row[k].training[i]) == 1;
    }
    fclose(f);
    if (!good) return -1;
    line1[strcspn(line1, "\n")] = 0;
    b->steps = steps;
    return 0;
}

/* ---- drawn ------------------------------------------------------------------------------------------------------ */

static double plot_beside_percent(const plot_besides *b, int k, int seed) {
    return 100 * (b->row[k].validation[seed] / b->row[0].validation[seed] - 1);
}
/* How far the reference's seeds are from their mean, in percent: the most below and the most above. */
static void plot_beside_noise(const plot_besides *b, double noise[2]) {
    double mean = 0;
    int i;
    noise[0] = noise[1] = 0;
    for (i = 0; i < b->seeds; i++)
        mean += b->row[0].validation[i] / b->seeds;
    for (i = 0; i < b->seeds; i++) {
        double x = 100 * (b->row[0].validation[i] / mean - 1);
        if (x < noise[0]) noise[0] = x;
        if (x > noise[1]) noise[1] = x;
    }
}

typedef struct plot_beside_area {
    double strip_left, strip_right, strip_top, strip_row, half; /* a strip is 2 * half high */
    double dots_left, dots_right, dots_top, dots_row;
    int phone;
} plot_beside_area;

static void plot_beside_strips(FILE *f, const plot_besides *b, const plot_beside_area *a) {
    static const plot_style style = {"#0072B2", "", 1.6};
    double most = 0.01, x0 = a->strip_left, x1 = a->strip_right, y = 0;
    char text[64];
    int k, i;
    for (k = 1; k < b->n; k++) /* the first tenth of the run does not decide how far the axis goes */
        for (i = b->points / 10; i < b->points; i++)
            if (fabs(b->row[k].training[i]) > most) most = fabs(b->row[k].training[i]);
    most = ceil(most / plot_tick(most)) * plot_tick(most);
    for (k = 1; k < b->n; k++) {
        y = a->strip_top + a->strip_row * (k - 1);
        if (a->phone)
            plot_text(f, x0, y - a->half - 6, "start", "font-weight=\"bold\"", b->row[k].name);
        else
            plot_text(f, 20, y + 4, "start", "font-weight=\"bold\"", b->row[k].name);
        plot_line(f, x0, y, x1, y, "stroke=\"#B8B8B8\"");
        for (i = -1; i <= 1; i += 2) {
            sprintf(text, "%s%.2g%%", i > 0 ? "+" : "&#8722;", most);
            plot_line(f, x0, y - i * a->half, x1, y - i * a->half, "stroke=\"#E4E4E4\"");
            plot_text(f, x0 - 6, y - i * a->half + 4, "end", "font-size=\"12\"", text);
        }
        plot_begin_curve(f, &style);
        for (i = 0; i < b->points; i++) {
            double share = b->row[k].training[i] / most;
            share = share > 1 ? 1 : share;
            share = share < -1 ? -1 : share;
            fprintf(f, "%.1f,%.1f ", x0 + (x1 - x0) * (i + 0.5) / b->points, y - share * a->half);
        }
        plot_end_curve(f);
    }
    plot_step_axis(f, x0, x1, y + a->half + 8, 0, (double)b->steps);
    plot_text(f, (x0 + x1) / 2, y + a->half + 46, "middle", "", "training step");
}

static void plot_beside_dots(FILE *f, const plot_besides *b, const plot_beside_area *a) {
    double noise[2], most = 0.01, middle = (a->dots_left + a->dots_right) / 2, half = middle - a->dots_left, y = 0;
    double edge = a->phone ? a->dots_row / 2 : 28, top = a->dots_top - edge;
    double bottom = a->dots_top + a->dots_row * (b->n - 2) + edge;
    char text[64];
    int k, i;
    plot_beside_noise(b, noise);
    for (i = 0; i < 2; i++)
        if (fabs(noise[i]) > most) most = fabs(noise[i]);
    for (k = 1; k < b->n; k++)
        for (i = 0; i < b->seeds; i++)
            if (fabs(plot_beside_percent(b, k, i)) > most) most = fabs(plot_beside_percent(b, k, i));
    most *= 1.1;
    if (b->seeds > 1)
        plot_rect(f, middle + half * noise[0] / most, top, half * (noise[1] - noise[0]) / most, bottom - top,
            "fill=\"#E2E2E2\"");
    plot_line(f, middle, top, middle, bottom, "stroke=\"#222222\"");
    for (k = 1; k < b->n; k++) {
        y = a->dots_top + a->dots_row * (k - 1);
        if (a->phone) plot_text(f, PLOT_EDGE, y + 4, "start", "font-weight=\"bold\"", b->row[k].name);
        for (i = 0; i < b->seeds; i++)
            fprintf(f,
                "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\" fill=\"#0072B2\" fill-opacity=\"0.75\" stroke=\"#FFFFFF\"/>\n",
                middle + half * plot_beside_percent(b, k, i) / most, y);
    }
    plot_line(f, a->dots_left, bottom, a->dots_right, bottom, "stroke=\"#222222\"");
    for (i = -2; i <= 2; i++) {
        double tick = plot_tick(4 * most);
        if (fabs(i * tick) > most) continue;
        sprintf(text, "%s%.2g%%", i > 0 ? "+" : "&#8722;", fabs(i * tick));
        plot_line(f, middle + half * i * tick / most, bottom, middle + half * i * tick / most, bottom + 5,
            "stroke=\"#222222\"");
        plot_text(f, middle + half * i * tick / most, bottom + 19, "middle", "font-size=\"12\"", i ? text : "0");
    }
}

static int plot_besides_form(const char *path, int width, const plot_words *words, const plot_besides *b) {
    static const plot_beside_area wide = {170, 560, 182, 72, 26, 630, 930, 182, 72, 0};
    static const plot_beside_area phone = {62, 308, 80, 82, 26, 122, 326, 0, 28, 1};
    plot_beside_area a = width == PLOT_PHONE ? phone : wide;
    double strips = a.strip_top + a.strip_row * (b->n - 2) + a.half;
    char text[96];
    FILE *f;
    if (a.phone) a.dots_top = strips + 134;
    f = plot_open(path, width, (int)(a.phone ? a.dots_top + a.dots_row * (b->n - 1) + 16 : strips + 66), words);
    if (!f) return -1;
    sprintf(text, "Training loss beside %s's", b->row[0].name);
    plot_text(f, a.phone ? PLOT_EDGE : a.strip_left, a.phone ? 20 : 124, "start", "font-weight=\"bold\"", text);
    plot_beside_strips(f, b, &a);
    sprintf(text, "Validation loss beside %s's", b->row[0].name);
    plot_text(f, a.phone ? PLOT_EDGE : a.dots_left, a.phone ? strips + 84 : 124, "start", "font-weight=\"bold\"", text);
    sprintf(text, "a dot per seed; grey: %s's own seeds", b->row[0].name);
    plot_text(f, a.phone ? PLOT_EDGE : a.dots_left, a.phone ? strips + 102 : 141, "start",
        "font-size=\"12\" fill=\"" PLOT_GREY "\"", b->seeds > 1 ? text : "one seed");
    plot_beside_dots(f, b, &a);
    return plot_close(f);
}

static inline int plot_beside_draw(const char *path, const char *title, const char *line1, const plot_besides *b) {
    double noise[2], most = 0;
    char finding[256];
    plot_words words = {
        title, line1, "Each mode beside the reference run of the same seed, with the same batches.", NULL};
    int k, i;
    plot_beside_noise(b, noise);
    for (k = 1; k < b->n; k++)
        for (i = 0; i < b->seeds; i++)
            if (fabs(plot_beside_percent(b, k, i)) > most) most = fabs(plot_beside_percent(b, k, i));
    sprintf(finding, "At the end no mode is more than %.2f%% from %s", most, b->row[0].name);
    if (b->seeds > 1)
        sprintf(finding + strlen(finding), "; its own %d seeds are up to %.2f%% apart.", b->seeds, noise[1] - noise[0]);
    else
        strcat(finding, " with the same seed.");
    words.finding = finding;
    if (plot_besides_form(path, PLOT_WIDE, &words, b)) return -1;
    return plot_besides_form(path, PLOT_PHONE, &words, b);
}

#endif
