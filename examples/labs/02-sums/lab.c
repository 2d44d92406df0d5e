/* lab.c - lab 2: swamping and the order of sums. The page is README.md; check it with  make lab N=2
 *
 * All numbers here are halves, kept in variables of type float. r() rounds to the nearest half: the result of every
 * addition and every subtraction goes through it, as if the machine had nothing but halves. */
#include "amp.h"
#include "lab.h"

static float r(float x) { return amp_f32_from_f16(amp_f16_from_f32(x)); }

/* From the first to the last: s = s + x[i]. */
float sum_in_order(const float *x, size_t n) {
    (void)r;
    (void)x;
    (void)n;
    LAB_TODO("sum_in_order");
    return 0;
}

/* 1 + 1 + 1 ... stops somewhere, because s + x is s again. For x, -x and 0: at which s? The sum begins at 0. */
float stands_still_at(float x) {
    (void)x;
    LAB_TODO("stands_still_at");
    return 0;
}

/* The sum of the first n / 2 numbers plus the sum of the others, each made in the same way. One number is its own sum,
 * and the sum of none is 0. */
float sum_pairwise(const float *x, size_t n) {
    (void)x;
    (void)n;
    LAB_TODO("sum_pairwise");
    return 0;
}

/* Kahan's sum: c is what the last addition has added too much, and it is taken off the next number. */
float sum_compensated(const float *x, size_t n) {
    (void)x;
    (void)n;
    LAB_TODO("sum_compensated");
    return 0;
}
