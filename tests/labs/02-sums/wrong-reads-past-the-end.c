/* lab 2: sum_in_order of no number must be 0, and yours is 1000: x[n] is not one of the n numbers */
#include "amp.h"
#include "lab.h"

static float r(float x) { return amp_f32_from_f16(amp_f16_from_f32(x)); }

float sum_in_order(const float *x, size_t n) {
    float s = 0;
    for (size_t i = 0; i <= n; i++)
        s = r(s + x[i]);
    return s;
}

float stands_still_at(float x) {
    float s = 0;
    while (r(s + x) != s)
        s = r(s + x);
    return s;
}

float sum_pairwise(const float *x, size_t n) {
    if (n == 0) return 0;
    if (n == 1) return x[0];
    return r(sum_pairwise(x, n / 2) + sum_pairwise(x + n / 2, n - n / 2));
}

float sum_compensated(const float *x, size_t n) {
    float s = 0, c = 0;
    for (size_t i = 0; i < n; i++) {
        float y = r(x[i] - c);
        float t = r(s + y);
        c = r(r(t - s) - y);
        s = t;
    }
    return s;
}
