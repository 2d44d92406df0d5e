/* moments.c - which code of 8 bits keeps Adam's moments best? Measured on the gradients of a program that trains.
 *
 *     make bench-moments        (gpt.c and convnet.c, 1,000 steps each)
 *
 * It is an example, compiled with amp_step in between: at each step the example's gradients also go to moments in FP32
 * and, beside them, to moments shadow in each code, in 1 of EVERY blocks of 256 elements. A code has a scale per block,
 * the largest magnitude in it. What is compared is the update m / (sqrt(v) + eps), both corrected as Adam does it.
 *
 *   error      of one step's update: root of the sum of squares of the differences, over that of the updates
 *   path       of the sum of all updates, the same: what noise of mean 0 does not change
 *   largest    magnitude of an update; FP32's is in the first row
 *   fell to 0  share of second moments that are 0 and in FP32 are not: their update is m / eps
 */
#if !defined(_POSIX_C_SOURCE)
#  define _POSIX_C_SOURCE 200809L
#endif
#define AMP_IMPLEMENTATION
#include "amp.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 256, EVERY = 8, CODES = 256 };

/* ---- codes: sorted magnitudes from 0 to 1, of 7 bits beside a sign for m, of 8 for v ---- */

typedef struct code {
    const char *name;
    int n;
    float value[CODES];
} code;

typedef void fill(code *c, int n);
static void fill_linear(code *c, int n) {
    int i;
    for (i = 0; i < n; i++)
        c->value[i] = (float)i / (float)(n - 1);
}
static void fill_power(code *c, int n, double power) {
    int i;
    for (i = 0; i < n; i++)
        c->value[i] = (float)pow((double)i / (n - 1), power);
}
static void fill_square(code *c, int n) { fill_power(c, n, 2); }
static void fill_cube(code *c, int n) { fill_power(c, n, 3); }
static void fill_fourth(code *c, int n) { fill_power(c, n, 4); }
static void fill_sixth(code *c, int n) { fill_power(c, n, 6); }
static void fill_eighth(code *c, int n) { fill_power(c, n, 8); }
/* x = s (s + a) / (1 + a), s a square: between the square and the fourth power */
static void fill_between(code *c, int n, double a) {
    int i;
    for (i = 0; i < n; i++) {
        double s = pow((double)i / (n - 1), 2);
        c->value[i] = (float)(s * (s + a) / (1 + a));
    }
}
static void fill_eighths(code *c, int n) { fill_between(c, n, 0.125); }
static void fill_quarter(code *c, int n) { fill_between(c, n, 0.25); }
static void fill_half(code *c, int n) { fill_between(c, n, 0.5); }
/* z = 2 x / (1 + x) in equal steps */
static void fill_softsign(code *c, int n) {
    int i;
    for (i = 0; i < n; i++) {
        double z = (double)i / (n - 1);
        c->value[i] = (float)(z / (2 - z));
    }
}
/* floats of so few mantissa bits minus the first of them: equal steps in a binade, twice as wide in the next */
static void fill_segments(code *c, int n, int mantissa) {
    const double top = ldexp(1 + (double)((n - 1) % (1 << mantissa)) / (1 << mantissa), (n - 1) >> mantissa) - 1;
    int i;
    for (i = 0; i < n; i++)
        c->value[i] = (float)((ldexp(1 + (double)(i % (1 << mantissa)) / (1 << mantissa), i >> mantissa) - 1) / top);
}
static void fill_segments2(code *c, int n) { fill_segments(c, n, 2); }
static void fill_segments3(code *c, int n) { fill_segments(c, n, 3); }
static void fill_segments4(code *c, int n) { fill_segments(c, n, 4); }
static void fill_segments5(code *c, int n) { fill_segments(c, n, 5); }
static void fill_fp8(code *c, amp_dtype t, int n, double power) {
    const double most = (double)amp_load((const uint8_t[]){(uint8_t)(n - 1)}, t, 0);
    uint8_t i;
    for (i = 0; i < n; i++)
        c->value[i] = (float)pow((double)amp_load(&i, t, 0) / most, power);
    c->n = n;
}
static void fill_e4m3(code *c, int n) {
    (void)n;
    fill_fp8(c, AMP_F8E4M3, 127, 1);
}
static void fill_e5m2(code *c, int n) {
    (void)n;
    fill_fp8(c, AMP_F8E5M2, 124, 1);
}
static void fill_e4m3_root(code *c, int n) {
    (void)n;
    fill_fp8(c, AMP_F8E4M3, 127, 2);
}
/* decades 10^-6 ... 1, each with twice as many equal steps as the one below it (Dettmers et al., arXiv 2110.02861) */
static void fill_dynamic_by(code *c, int n, double power) {
    const int decades = 7, first = n > 128 ? 2 : 1;
    int d, i, at = 1;
    c->value[0] = 0;
    for (d = 0; d < decades; d++) {
        const int steps = first << d;
        for (i = 0; i < steps && at < n; i++)
            c->value[at++] = (float)pow(pow(10, d - decades + 1) * (0.1 + 0.9 * (i + 0.5) / steps), power);
    }
    c->value[at < n ? at++ : n - 1] = 1;
    c->n = at;
}
static void fill_dynamic(code *c, int n) { fill_dynamic_by(c, n, 1); }
static void fill_dynamic_root(code *c, int n) { fill_dynamic_by(c, n, 2); }

static const struct {
    const char *name;
    fill *m, *v; /* NULL: FP32 */
    int block, nearest, never_0;
} rows[] = {
    {"fp32", NULL, NULL, BLOCK, 0, 0},
    {"m linear", fill_linear, NULL, BLOCK, 0, 0},
    {"m square (root in equal steps)", fill_square, NULL, BLOCK, 0, 0},
    {"m cube", fill_cube, NULL, BLOCK, 0, 0},
    {"m fourth", fill_fourth, NULL, BLOCK, 0, 0},
    {"m between, 1/8", fill_eighths, NULL, BLOCK, 0, 0},
    {"m between, 1/4", fill_quarter, NULL, BLOCK, 0, 0},
    {"m between, 1/2", fill_half, NULL, BLOCK, 0, 0},
    {"m softsign", fill_softsign, NULL, BLOCK, 0, 0},
    {"m E4M3", fill_e4m3, NULL, BLOCK, 0, 0},
    {"m E5M2", fill_e5m2, NULL, BLOCK, 0, 0},
    {"m dynamic", fill_dynamic, NULL, BLOCK, 0, 0},
    {"m segments of 8", fill_segments3, NULL, BLOCK, 0, 0},
    {"m segments of 16", fill_segments4, NULL, BLOCK, 0, 0},
    {"m segments of 32", fill_segments5, NULL, BLOCK, 0, 0},
    {"v linear", NULL, fill_linear, BLOCK, 0, 0},
    {"v square", NULL, fill_square, BLOCK, 0, 0},
    {"v cube", NULL, fill_cube, BLOCK, 0, 0},
    {"v fourth", NULL, fill_fourth, BLOCK, 0, 0},
    {"v sixth", NULL, fill_sixth, BLOCK, 0, 0},
    {"v eighth", NULL, fill_eighth, BLOCK, 0, 0},
    {"v E4M3", NULL, fill_e4m3, BLOCK, 0, 0},
    {"v E5M2", NULL, fill_e5m2, BLOCK, 0, 0},
    {"v root E4M3", NULL, fill_e4m3_root, BLOCK, 0, 0},
    {"v dynamic", NULL, fill_dynamic, BLOCK, 0, 0},
    {"v root dynamic", NULL, fill_dynamic_root, BLOCK, 0, 0},
    {"v segments of 8", NULL, fill_segments3, BLOCK, 0, 0},
    {"v segments of 16", NULL, fill_segments4, BLOCK, 0, 0},
    {"v square, never to 0", NULL, fill_square, BLOCK, 0, 1},
    {"v fourth, never to 0", NULL, fill_fourth, BLOCK, 0, 1},
    {"v sixth, never to 0", NULL, fill_sixth, BLOCK, 0, 1},
    {"v eighth, never to 0", NULL, fill_eighth, BLOCK, 0, 1},
    {"v segments of 8, never to 0", NULL, fill_segments3, BLOCK, 0, 1},
    {"v segments of 16, never to 0", NULL, fill_segments4, BLOCK, 0, 1},
    {"v fourth, nearest", NULL, fill_fourth, BLOCK, 1, 0},
    {"v segments of 8, nearest", NULL, fill_segments3, BLOCK, 1, 0},
    {"m square, nearest", fill_square, NULL, BLOCK, 1, 0},
    {"m cube, nearest", fill_cube, NULL, BLOCK, 1, 0},
    {"m fourth, nearest", fill_fourth, NULL, BLOCK, 1, 0},
    {"softsign, square, nearest, 32", fill_softsign, fill_square, 32, 1, 0},
    {"softsign, square, nearest", fill_softsign, fill_square, BLOCK, 1, 0},
    {"softsign, square", fill_softsign, fill_square, BLOCK, 0, 0},
    {"E4M3, E4M3", fill_e4m3, fill_e4m3, BLOCK, 0, 0},
    {"dynamic, dynamic, nearest", fill_dynamic, fill_dynamic, BLOCK, 1, 0},
    {"square, fourth, never to 0", fill_square, fill_fourth, BLOCK, 0, 1},
    {"cube, fourth, never to 0", fill_cube, fill_fourth, BLOCK, 0, 1},
    {"fourth, fourth, never to 0", fill_fourth, fill_fourth, BLOCK, 0, 1},
    {"between 1/8, fourth, never to 0", fill_eighths, fill_fourth, BLOCK, 0, 1},
    {"between 1/4, fourth, never to 0", fill_quarter, fill_fourth, BLOCK, 0, 1},
    {"between 1/2, fourth, never to 0", fill_half, fill_fourth, BLOCK, 0, 1},
    {"square, sixth, never to 0", fill_square, fill_sixth, BLOCK, 0, 1},
    {"square, eighth, never to 0", fill_square, fill_eighth, BLOCK, 0, 1},
    {"cube, eighth, never to 0", fill_cube, fill_eighth, BLOCK, 0, 1},
    {"segments of 16, of 8, never to 0", fill_segments4, fill_segments3, BLOCK, 0, 1},
};
enum { ROWS = sizeof rows / sizeof *rows };

typedef struct shadow { /* a row's moments and sums, of all sampled elements */
    code m, v;
    float *first, *second, *path;
    double differ, largest, zeros;
} shadow;
static shadow row[ROWS];
static size_t sampled;
static double squares;
static uint64_t draws = 0x9e3779b97f4a7c15u;

static float drawn(void) { /* xorshift64*, in [0, 1) */
    draws ^= draws >> 12;
    draws ^= draws << 25;
    draws ^= draws >> 27;
    return (float)((draws * 0x2545f4914f6cdd1du) >> 40) * 5.9604645e-8f;
}
/* x in [0, 1] becomes a code's value */
static float coded(const code *c, float x, int nearest, int never_0) {
    int low = 0, high = c->n - 1;
    float p;
    while (high - low > 1) {
        const int mid = (low + high) / 2;
        if (c->value[mid] <= x)
            low = mid;
        else
            high = mid;
    }
    p = (x - c->value[low]) / (c->value[high] - c->value[low]);
    if (never_0 && low == 0 && x > 0) return c->value[1];
    return c->value[p > (nearest ? 0.5f : drawn()) ? high : low];
}
static void code_block(const code *c, float *x, size_t n, int nearest, int never_0) {
    float most = 0;
    size_t i;
    for (i = 0; i < n; i++)
        most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
    for (i = 0; i < n && most > 0; i++)
        x[i] = copysignf(coded(c, fabsf(x[i]) / most, nearest, never_0) * most, x[i]);
}

/* ---- a step: the example's, and ours ---- */

static void moments_begin(amp_params *p) {
    size_t i, k, count = 0;
    for (i = 0; i < amp_params_count(p); i++)
        for (k = 0; k < amp_param_get(p, i).count; k += BLOCK)
            count += k / BLOCK % EVERY == 0 ? BLOCK : 0; /* the last of them may be shorter */
    sampled = count;
    for (k = 0; k < ROWS; k++) {
        memset(&row[k], 0, sizeof row[k]);
        row[k].m.n = 128;
        row[k].v.n = 256;
        if (rows[k].m) rows[k].m(&row[k].m, 128);
        if (rows[k].v) rows[k].v(&row[k].v, 256);
        row[k].first = (float *)calloc(3 * sampled, sizeof(float));
        if (!row[k].first) exit(1);
        row[k].second = row[k].first + sampled;
        row[k].path = row[k].second + sampled;
    }
}
static float update_of(float m, float v, double bc1, double bc2) {
    return (float)(((double)m / bc1) / (sqrt((double)v / bc2) + 1e-8));
}
static void moments_block(size_t at, const float *u, size_t n, float b1, float b2, double bc1, double bc2) {
    float exact[BLOCK];
    size_t k, i, j;
    for (k = 0; k < ROWS; k++) {
        shadow *r = &row[k];
        float *m = r->first + at, *v = r->second + at;
        for (i = 0; i < n; i++) {
            float x;
            m[i] = b1 * m[i] + (1 - b1) * u[i];
            v[i] = b2 * v[i] + (1 - b2) * u[i] * u[i];
            x = update_of(m[i], v[i], bc1, bc2); /* before they are coded, as the weight gets it */
            if (k == 0) {
                exact[i] = x;
                squares += (double)x * x;
            }
            r->differ += pow((double)x - exact[i], 2);
            r->path[at + i] += x;
            if (fabs((double)x) > r->largest) r->largest = fabs((double)x);
        }
        for (j = 0; j < n; j += (size_t)rows[k].block) {
            size_t few = n - j < (size_t)rows[k].block ? n - j : (size_t)rows[k].block;
            if (rows[k].m) code_block(&r->m, m + j, few, rows[k].nearest, 0);
            if (rows[k].v) code_block(&r->v, v + j, few, rows[k].nearest, rows[k].never_0);
        }
        for (i = 0; i < n; i++)
            r->zeros += !(v[i] > 0) && row[0].second[at + i] > 0;
    }
}
static size_t steps_seen;
static amp_status moments_step(amp_params *p, amp_scaler *s, const amp_step_desc *d) {
    const amp_status status = amp_step(p, s, d);
    const amp_step_record *r = amp_step_record_ptr(p); /* on the CPU it can be read */
    const float b1 = d->beta1.given ? d->beta1.value : 0.9f, b2 = d->beta2.given ? d->beta2.value : 0.999f;
    double bc1, bc2;
    size_t i, k, j, at = 0;
    if (!steps_seen++) moments_begin(p);
    bc1 = 1 - pow((double)b1, (double)steps_seen);
    bc2 = 1 - pow((double)b2, (double)steps_seen);
    for (i = 0; i < amp_params_count(p); i++) {
        const amp_array g = amp_param_grad(p, i);
        for (k = 0; k < g.count; k += BLOCK * EVERY, at += BLOCK) {
            const size_t n = g.count - k < BLOCK ? g.count - k : BLOCK;
            float u[BLOCK];
            for (j = 0; j < n; j++)
                u[j] = amp_load(g.data, g.dtype, k + j) * r->inv_scale * r->clip;
            moments_block(at, u, n, b1, b2, bc1, bc2);
        }
    }
    return status;
}
static void print_moments(void) {
    size_t k, i;
    printf("\n%lu steps, %lu sampled elements of the first set\n%-34s %8s %8s %9s %10s\n", (unsigned long)steps_seen,
        (unsigned long)sampled, "moments", "error", "path", "largest", "fell to 0");
    for (k = 0; k < ROWS; k++) {
        double path = 0, of = 0;
        for (i = 0; i < sampled; i++) {
            path += pow((double)row[k].path[i] - row[0].path[i], 2);
            of += pow((double)row[0].path[i], 2);
        }
        printf("%-34s %8.4f %8.4f %9.1f %10.5f\n", rows[k].name, sqrt(row[k].differ / squares), sqrt(path / of),
            row[k].largest, row[k].zeros / (double)sampled / (double)steps_seen);
        free(row[k].first);
    }
}

/* clang-format off */
#define amp_step(p, s, d) moments_step(p, s, d)
#define main example_main
/* clang-format on */
#define AMP_LINKED
#include MOMENTS_OF
#undef main
int main(int argc, char **argv) {
    const int status = example_main(argc, argv);
    print_moments();
    return status;
}
