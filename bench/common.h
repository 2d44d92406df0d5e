/* common.h - what all benches share: the clock, medians, names of sizes, random numbers, the chart. C99 and C++; after
   amp.h. */
#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROUNDS 64 /* timings of one contestant, at most */

/* --cpu-time of a bench makes it that of this thread, for a machine with other work. */
static clockid_t clock_used = CLOCK_MONOTONIC;

AMP_UNUSED
static double now(void) {
    struct timespec t;
    clock_gettime(clock_used, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
static int by_value(const void *a, const void *b) {
    double x, y;
    memcpy(&x, a, 8);
    memcpy(&y, b, 8);
    return (x > y) - (x < y);
}
AMP_UNUSED
static double quantile(const double *t, int n, double q) {
    double s[ROUNDS];
    memcpy(s, t, (size_t)n * sizeof *s);
    qsort(s, (size_t)n, sizeof *s, by_value);
    return s[(int)(q * (n - 1) + 0.5)];
}
AMP_UNUSED
static const char *size_text(size_t bytes, char *to) { /* to: 24 characters */
    if (bytes >= (size_t)1 << 30)
        snprintf(to, 24, "%u GiB", (unsigned)(bytes >> 30));
    else if (bytes >= (size_t)1 << 20)
        snprintf(to, 24, "%u MiB", (unsigned)(bytes >> 20));
    else
        snprintf(to, 24, "%u KiB", (unsigned)(bytes >> 10));
    return to;
}

/* n numbers around 0 with that standard deviation, in a triangle: the sum of two uniform ones */
AMP_UNUSED
static void fill_random(float *x, size_t n, uint64_t seed, float deviation) {
    size_t i;
    float unit = deviation * 2.4494897f / 4294967296.0f; /* sqrt(6) / 2^32 */
    for (i = 0; i < n; i += 2) {
        uint32_t w[4];
        amp_philox(w, seed, 7, i);
        x[i] = (float)((double)w[0] + (double)w[1] - 4294967296.0) * unit;
        if (i + 1 < n) x[i + 1] = (float)((double)w[2] + (double)w[3] - 4294967296.0) * unit;
    }
}

/* Curves over sizes, both axes by powers of two: an SVG file. Each curve has its name at its right end. */
typedef struct chart_line {
    const char *name, *colour;
    const double *y;
} chart_line;
typedef struct chart_words { const char *title, *finding, *x, *y; /* the last two: what the axes have */ } chart_words;
typedef struct chart_area {
    double bottom, marks; /* powers of two: the lowest, and how many above it */
    int points;
} chart_area;

static double chart_x(const chart_area *a, int k) { return 70 + 570.0 * k / (a->points > 1 ? a->points - 1 : 1); }
static double chart_y(const chart_area *a, double value) { return 400 - 310 * (log2(value) - a->bottom) / a->marks; }

static chart_area chart_fit(const chart_line *l, int n, int points) {
    double low = 1e30, high = 0;
    chart_area a;
    int i, k;
    for (i = 0; i < n; i++)
        for (k = 0; k < points; k++) {
            if (l[i].y[k] > 0 && l[i].y[k] < low) low = l[i].y[k];
            if (l[i].y[k] > high) high = l[i].y[k];
        }
    if (!(high > 0)) low = high = 1;
    a.points = points;
    a.bottom = floor(log2(low));
    a.marks = ceil(log2(high)) - a.bottom;
    if (a.marks < 1) a.marks = 1;
    return a;
}

static void chart_axes(FILE *f, const chart_area *a, const chart_words *w, char (*labels)[24]) {
    int k;
    fprintf(f, "<text x='20' y='28' font-size='17' font-weight='bold'>%s</text>\n", w->title);
    fprintf(f, "<text x='20' y='52' font-weight='bold'>%s</text>\n", w->finding);
    for (k = 0; k <= (int)a->marks; k++) {
        double value = ldexp(1.0, (int)a->bottom + k), y = chart_y(a, value);
        fprintf(f, "<path d='M70 %.0fH640' stroke='#ddd'/><text x='62' y='%.0f' text-anchor='end'>%g</text>\n", y,
            y + 4, value);
    }
    for (k = 0; k < a->points; k++)
        fprintf(f, "<text x='%.0f' y='420' text-anchor='middle' font-size='12'>%s</text>\n", chart_x(a, k), labels[k]);
    fprintf(f, "<text x='355' y='446' text-anchor='middle'>%s</text>\n", w->x);
    fprintf(f, "<text transform='translate(22 245) rotate(-90)' text-anchor='middle'>%s</text>\n", w->y);
}

/* The names, in the order in which the curves end, and so far apart that they can be read. */
static void chart_names(FILE *f, const chart_area *a, const chart_line *l, int n) {
    double end[16], place = 0;
    int taken[16], i, k, next;
    for (i = 0; i < n; i++) {
        end[i] = 400;
        taken[i] = 0;
        for (k = 0; k < a->points; k++)
            if (l[i].y[k] > 0) end[i] = chart_y(a, l[i].y[k]);
    }
    for (k = 0; k < n; k++) {
        for (next = -1, i = 0; i < n; i++)
            if (!taken[i] && (next < 0 || end[i] < end[next])) next = i;
        taken[next] = 1;
        place = end[next] > place + 18 || k == 0 ? end[next] : place + 18;
        if (place > 400 - 18 * (n - 1 - k)) place = 400 - 18 * (n - 1 - k);
        fprintf(f, "<path d='M641 %.1fL668 %.1f' stroke='%s' stroke-width='1.5'/><text x='673' y='%.1f'>%s</text>\n",
            end[next], place, l[next].colour, place + 4, l[next].name);
    }
}

/* labels: one per point. At most 16 curves. Returns 0, or -1 if it could not be written. */
AMP_UNUSED
static int chart(const char *path, const chart_words *w, const chart_line *l, int n, char (*labels)[24], int points) {
    static const char *const dash[4] = {"none", "9 4", "3 3", "12 3 3 3"};
    chart_area a = chart_fit(l, n, points);
    FILE *f = fopen(path, "w");
    int i, k, bad;
    if (!f) return -1;
    fprintf(f, "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 800 460' role='img' %s>\n",
        "font-family='DejaVu Sans, Verdana, sans-serif' font-size='13' fill='#222222'");
    fprintf(f, "<title>%s</title>\n<rect width='800' height='460' fill='white'/>\n", w->title);
    chart_axes(f, &a, w, labels);
    for (i = 0; i < n; i++) {
        fprintf(f, "<polyline fill='none' stroke='%s' stroke-width='%s' stroke-dasharray='%s' points='", l[i].colour,
            i ? "2.4" : "6", dash[i % 4]);
        for (k = 0; k < points; k++)
            if (l[i].y[k] > 0) fprintf(f, "%.0f,%.1f ", chart_x(&a, k), chart_y(&a, l[i].y[k]));
        fprintf(f, "'/>\n");
    }
    chart_names(f, &a, l, n);
    fprintf(f, "</svg>\n");
    bad = ferror(f);
    return fclose(f) || bad ? -1 : 0;
}
#endif
