/* masters.c - what does a weight lose that is kept in fewer bits than FP32? Measured on the steps of a program.
 *
 *     make bench-masters        (a small GPT of gpt.c, 1,000 steps)
 *
 * It is an example, compiled with amp_step in between: at each step the example's update of each weight, what it is
 * before minus what it is after, is also subtracted from weights kept in each layout, from the same beginning. The
 * second half of the table has updates of 1/256 of that size, as at the end of a long schedule.
 *
 *   path   of the way that FP32 weights went: root of the sum of squares of the differences, over that of the way
 *   lost   share of the updates that left the bits of the weight as they were
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

enum { EVERY = 7, SIZES = 2 };
static const double step_sizes[SIZES] = {1, 1.0 / 256};

static const struct {
    const char *name;
    amp_master layout;
    amp_dtype model;
    amp_rounding rounding;
} rows[] = {
    {"FP32", AMP_MASTER_F32, AMP_F32, AMP_NEAREST},
    {"BF16 SPLIT", AMP_MASTER_SPLIT, AMP_BF16, AMP_NEAREST},
    {"BF16 SPLIT8", AMP_MASTER_SPLIT8, AMP_BF16, AMP_NEAREST},
    {"BF16 SPLIT8, stochastic", AMP_MASTER_SPLIT8, AMP_BF16, AMP_STOCHASTIC},
    {"FP16 SPLIT8", AMP_MASTER_SPLIT8, AMP_F16, AMP_NEAREST},
    {"FP16 SPLIT8, stochastic", AMP_MASTER_SPLIT8, AMP_F16, AMP_STOCHASTIC},
    {"BF16 KAHAN", AMP_MASTER_KAHAN, AMP_BF16, AMP_NEAREST},
    {"BF16", AMP_MASTER_NONE, AMP_BF16, AMP_NEAREST},
    {"BF16, stochastic", AMP_MASTER_NONE, AMP_BF16, AMP_STOCHASTIC},
};
enum { ROWS = sizeof rows / sizeof *rows };

static struct {
    float *w;
    uint64_t updates, lost;
} shadow[SIZES][ROWS];
static double *exact[SIZES];
static float *w0, *w1;
static size_t n_weights, steps_seen;

/* w as row k keeps it; element `at` of this step */
static float as_kept(size_t k, float w, size_t at) {
    const uint32_t r = amp_random(1, steps_seen, at);
    const amp_dtype t = rows[k].model;
    if (rows[k].layout == AMP_MASTER_F32) return w;
    if (rows[k].layout != AMP_MASTER_NONE)
        return amp_pair_unpack(amp_pair_pack(w, rows[k].layout, t, rows[k].rounding, r), rows[k].layout, t);
    return rows[k].rounding == AMP_NEAREST ? amp_f32_from_bf16(amp_bf16_from_f32(w))
                                           : amp_f32_from_bf16(amp_bf16_from_f32_sr(w, r));
}
static float *zeros(size_t bytes) {
    float *p = (float *)calloc(1, bytes);
    if (!p) exit(1);
    return p;
}
/* Each of the n_weights weights of p, which are FP32, to `to`. */
static size_t masters_of(const amp_params *p, float *to) {
    size_t i, j, at = 0;
    for (i = 0; i < amp_params_count(p); i++) {
        const amp_array w = amp_param_model(p, i);
        for (j = i % EVERY; j < w.count; j += EVERY, at++)
            if (to) to[at] = ((const float *)w.data)[j];
    }
    return at;
}
static void masters_begin(const amp_params *p) {
    size_t s, k, i;
    n_weights = masters_of(p, NULL);
    w0 = zeros(n_weights * sizeof *w0);
    w1 = zeros(n_weights * sizeof *w1);
    (void)masters_of(p, w0);
    for (s = 0; s < SIZES; s++) {
        exact[s] = (double *)(void *)zeros(n_weights * sizeof **exact);
        for (k = 0; k < ROWS; k++)
            shadow[s][k].w = zeros(n_weights * sizeof(float));
        for (i = 0; i < n_weights; i++) {
            exact[s][i] = (double)w0[i];
            for (k = 0; k < ROWS; k++)
                shadow[s][k].w[i] = as_kept(k, w0[i], i);
        }
    }
}
static void masters_update(size_t s, size_t i, double u) {
    size_t k;
    exact[s][i] -= u;
    for (k = 0; k < ROWS; k++) {
        float *w = &shadow[s][k].w[i];
        const float was = *w;
        *w = as_kept(k, (float)((double)was - u), i);
        shadow[s][k].updates++;
        shadow[s][k].lost += memcmp(&was, w, sizeof was) == 0;
    }
}
static amp_status masters_step(amp_params *p, amp_scaler *scaler, const amp_step_desc *d) {
    amp_status status;
    float *after;
    size_t s, i;
    if (!steps_seen++) masters_begin(p);
    after = zeros(n_weights * sizeof *after);
    (void)masters_of(p, w1);
    status = amp_step(p, scaler, d);
    (void)masters_of(p, after);
    for (i = 0; i < n_weights; i++)
        for (s = 0; s < SIZES && w1[i] != after[i]; s++)
            masters_update(s, i, ((double)w1[i] - (double)after[i]) * step_sizes[s]);
    free(after);
    return status;
}
static void print_masters(void) {
    size_t s, k, i;
    printf("\n%lu steps, %lu weights\n%-26s", (unsigned long)steps_seen, (unsigned long)n_weights, "weights");
    for (s = 0; s < SIZES; s++)
        printf("  updates * %-8g path    lost", step_sizes[s]);
    for (k = 0; k < ROWS; k++) {
        printf("\n%-26s", rows[k].name);
        for (s = 0; s < SIZES; s++) {
            double differ = 0, way = 0;
            for (i = 0; i < n_weights; i++) {
                differ += pow((double)shadow[s][k].w[i] - exact[s][i], 2);
                way += pow(exact[s][i] - (double)w0[i], 2);
            }
            printf("           %12.6f %7.4f", sqrt(differ / way),
                (double)shadow[s][k].lost / (double)shadow[s][k].updates);
        }
    }
    printf("\n");
}

/* clang-format off */
#define amp_step(p, s, d) masters_step(p, s, d)
#define main example_main
/* clang-format on */
#define AMP_LINKED
#include "../examples/gpt.c"
#undef main
int main(int argc, char **argv) {
    const int status = example_main(argc, argv);
    print_masters();
    return status;
}
