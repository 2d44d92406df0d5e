/* lab 6: masters_begin: the master of 0.00100000005 is 0.00100040436: a master is FP32 and begins without rounding */
#include "amp.h"
#include "lab.h"

float spacing(amp_f16 h) {
    unsigned exponent = h.bits >> 10 & 31u;
    if (exponent == 0) exponent = 1;
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
        model[i] = amp_f16_from_f32(init[i]);
        master[i] = amp_f32_from_f16(model[i]);
    }
}

void masters_step(float *master, amp_f16 *model, const amp_f16 *g, size_t n, float scale, float lr) {
    size_t i;
    for (i = 0; i < n; i++) {
        master[i] -= lr * (amp_f32_from_f16(g[i]) / scale);
        model[i] = amp_f16_from_f32(master[i]);
    }
}
