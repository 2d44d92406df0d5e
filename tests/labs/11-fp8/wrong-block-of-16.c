/* lab 11: quantize_block of numbers near 1 with one of -300: the largest |x| is 300, so the scale must be 2^6, and
   yours is 2^-3 */
#include "amp.h"
#include "lab.h"

enum { BLOCK = 32 };

void quantize_tensor(float *scale, amp_f8e4m3 *code, const float *x, size_t n) {
    float amax = 0;
    size_t i;
    for (i = 0; i < n; i++)
        amax = fmaxf(amax, fabsf(x[i]));
    *scale = amax > 0 ? 448 / amax : 1;
    for (i = 0; i < n; i++)
        code[i] = amp_f8e4m3_from_f32_sat(x[i] * *scale);
}

static const float values[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};

float float_from_e2m1(unsigned code) { return code & 8 ? -values[code & 7] : values[code]; }

unsigned e2m1_from_float(float x) {
    unsigned k = 0, sign = signbit(x) ? 8 : 0;
    x = fabsf(x);
    while (k < 7) {
        float middle = 0.5f * (values[k] + values[k + 1]);
        if (x < middle || (x == middle && k % 2 == 0)) break;
        k++;
    }
    return sign | k;
}

uint8_t e8m0_for(float amax) {
    int e;
    if (amax == 0) return 0;
    frexpf(amax, &e);
    e += -1 - 2 + 127;
    return (uint8_t)(e < 0 ? 0 : e);
}

void quantize_block(uint8_t *scale, uint8_t code[BLOCK], const float x[BLOCK]) {
    float amax = 0;
    int i;
    for (i = 0; i < BLOCK / 2; i++)
        amax = fmaxf(amax, fabsf(x[i]));
    *scale = e8m0_for(amax);
    for (i = 0; i < BLOCK; i++)
        code[i] = (uint8_t)e2m1_from_float(ldexpf(x[i], 127 - *scale));
}

void dequantize_block(float x[BLOCK], uint8_t scale, const uint8_t code[BLOCK]) {
    int i;
    for (i = 0; i < BLOCK; i++)
        x[i] = ldexpf(float_from_e2m1(code[i]), scale - 127);
}
