/* lab 6: spacing(5.96046448e-08) must be 5.96046e-08, and yours is 2.98023e-08: subnormal halves are 2^-24 apart */
#include "amp.h"
#include "lab.h"

float spacing(amp_f16 h) {
    unsigned exponent = h.bits >> 10 & 31u;
    return ldexpf(1, (int)exponent - 25);
}

size_t pure_step(amp_f16 *w, const amp_f16 *g, size_t n, float scale, float lr) {
    size_t i, lost = 0;
    for (i = 0; i < n; i++) {
        float u = lr * (amp_f32_from_f16(g[i]) / scale);
        amp_f16 next = amp_f16_from_f32(amp_f32_from_f16(w[i]) - u);
        lost += u != 0 && next.bits == w[i].bits;
        w[i] = next;
    }
    return lost;
}

void masters_begin(float *master, amp_f16 *model, const float *init, size_t n) {
    size_t i;
    for (i = 0; i < n; i++) {
        master[i] = init[i];
        model[i] = amp_f16_from_f32(master[i]);
    }
}

void masters_step(float *master, amp_f16 *model, const amp_f16 *g, size_t n, float scale, float lr) {
    size_t i;
    for (i = 0; i < n; i++) {
        master[i] -= lr * (amp_f32_from_f16(g[i]) / scale);
        model[i] = amp_f16_from_f32(master[i]);
    }
}
