/* lab 4: exponent_of(0x1.fffffcp-127) must be -127, and yours is -126 */
#include "amp.h"
#include "lab.h"

typedef enum fate { FATE_ZERO, FATE_LOST, FATE_SUBNORMAL, FATE_NORMAL, FATE_OVERFLOW, FATES } fate;

int exponent_of(float x) { return (int)floorf(log2f(fabsf(x))); }

fate fate_of(float g, float scale) {
    float x = fabsf(g * scale);
    if (g == 0) return FATE_ZERO;
    if (x <= 0x1p-25f) return FATE_LOST;
    if (x >= 65520.0f) return FATE_OVERFLOW;
    x = amp_f32_from_f16(amp_f16_from_f32(x));
    return x < 0x1p-14f ? FATE_SUBNORMAL : FATE_NORMAL;
}

void count_fates(size_t counts[FATES], const float *g, size_t n, float scale) {
    for (int k = 0; k < FATES; k++)
        counts[k] = 0;
    for (size_t i = 0; i < n; i++)
        counts[fate_of(g[i], scale)]++;
}

float suggest_scale(const float *g, size_t n) {
    float amax = 0, s = 0x1p100f;
    for (size_t i = 0; i < n; i++)
        if (amp_is_finite(g[i]) && fabsf(g[i]) > amax) amax = fabsf(g[i]);
    if (amax == 0) return 65536;
    while (s > 0x1p-14f && (double)amax * (double)s > 32752)
        s *= 0.5f;
    return s;
}
