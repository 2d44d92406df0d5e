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

/* Curves over sizes, both axes by powers of two: an SVG file. */
typedef struct chart_line {
    const char *name, *colour;
    const double *y;
} chart_line;

static double chart_x(int k, int points) { return 60 + 560.0 * k / (points > 1 ? points - 1 : 1); }

/* labels: one per point. Returns 0, or -1 if it could not be written. */
AMP_UNUSED
static int chart(const char *path, const char *title, const chart_line *l, int n, char (*labels)[24], int points) {
    double low = 1e30, high = 0, bottom, marks, y;
    FILE *f = fopen(path, "w");
    int i, k, bad;
    if (!f) return -1;
    for (i = 0; i < n; i++)
        for (k = 0; k < points; k++) {
            if (l[i].y[k] > 0 && l[i].y[k] < low) low = l[i].y[k];
            if (l[i].y[k] > high) high = l[i].y[k];
        }
    if (!(high > 0)) low = high = 1;
    bottom = floor(log2(low));
    marks = ceil(log2(high)) - bottom;
    if (marks < 1) marks = 1;
    fprintf(f, "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 800 400' %s>\n",
        "font-family='sans-serif' font-size='12'");
    fprintf(f, "<rect width='800' height='400' fill='#fff'/>\n<text x='60' y='20'>%s</text>\n", title);
    for (k = 0; k <= (int)marks; k++) {
        y = 370 - 320 * k / marks;
        fprintf(f, "<path d='M60 %.0fH620' stroke='#ddd'/><text x='54' y='%.0f' text-anchor='end'>%g</text>\n", y,
            y + 4, ldexp(1.0, (int)bottom + k));
    }
    for (k = 0; k < points; k++)
        fprintf(f, "<text x='%.0f' y='388' text-anchor='middle'>%s</text>\n", chart_x(k, points), labels[k]);
    for (i = 0; i < n; i++) {
        fprintf(f, "<polyline fill='none' stroke='%s' stroke-width='2' points='", l[i].colour);
        for (k = 0; k < points; k++) {
            if (!(l[i].y[k] > 0)) continue;
            y = 370 - 320 * (log2(l[i].y[k]) - bottom) / marks;
            fprintf(f, "%.0f,%.1f ", chart_x(k, points), y);
        }
        fprintf(f, "'/><text x='640' y='%d' fill='%s'>%s</text>\n", 60 + 20 * i, l[i].colour, l[i].name);
    }
    fprintf(f, "</svg>\n");
    bad = ferror(f);
    return fclose(f) || bad ? -1 : 0;
}
#endif
