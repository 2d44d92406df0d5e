/* first_scaler.c - a loss scaler around a training loop of your own: plain C arrays, FP16 gradients, your own SGD.
 *
 *     cc -std=c99 -O2 examples/first_scaler.c -I. -lm -pthread -o first_scaler && ./first_scaler
 *
 * Fits y = 3e-6 x + 2e-6. The gradients begin near 1e-6 and fall from there; FP16's smallest number is 6e-8. Output:
 *   > step   0: loss scale 2^37, skipped 1
 *   > step   1: loss scale 2^36, skipped 2
 *   > step   2: loss scale 2^35, skipped 3
 *   > step   3: loss scale 2^34, skipped 4
 *   > step  25: loss scale 2^34, skipped 4
 *   > step  50: loss scale 2^35, skipped 4
 *   > step  75: loss scale 2^36, skipped 4
 *   > w = 3.00e-06, 2.00e-06
 */
#define AMP_IMPLEMENTATION
#include "amp.h"
#include <math.h>
#include <stdio.h>

int main(void) {
    float w[2] = {0, 0}, g32[2] = {0, 0}; /* your weights */
    amp_f16 g[2] = {{0}, {0}};            /* your gradients */
    amp_array scaled = amp_arrn(g, AMP_F16, 2), unscaled = amp_arrn(g32, AMP_F32, 2);
    amp_finite_report found;
    amp_scaler_desc desc = AMP_ZERO;
    amp_scaler *scaler;
    amp_ctx *ctx;
    int step, i, overflow, skipped = 0;

    desc.scale = 137438953472.0f; /* 2^37: too high on purpose, to see it fall; the default is 65536 */
    desc.growth_interval = 20;    /* good steps before it doubles; the default is 2000 */
    if (amp_cpu_create(&ctx, NULL) != AMP_OK || amp_scaler_create(&scaler, ctx, &desc) != AMP_OK) return 1;

    for (step = 0; step < 100; step++) {
        amp_scaler_info now;
        float scale, g0 = 0, g1 = 0;
        if (amp_scaler_get(scaler, &now) != AMP_OK) return 1;
        scale = now.scale;
        for (i = -2; i <= 2; i++) { /* your backward pass, of scale * mean((w0 x + w1 - y)^2 / 2) */
            float x = (float)i, r = w[0] * x + w[1] - (3e-6f * x + 2e-6f);
            g0 += scale * r * x / 5;
            g1 += scale * r / 5;
        }
        g[0] = amp_f16_from_f32(g0);
        g[1] = amp_f16_from_f32(g1);

        /* Divides by the scale, into FP32 because numbers this small do not fit into FP16; finds Inf and NaN. */
        if (amp_unscale(scaler, &unscaled, &found, &scaled, 1) != AMP_OK) return 1;
        overflow = found.nan + found.inf > 0;
        if (overflow) skipped++;
        for (i = 0; i < 2 && !overflow; i++)
            w[i] -= 0.2f * g32[i]; /* your optimizer */

        /* The next scale: half after an overflow, double after 20 good steps. */
        if (amp_scaler_update(scaler) != AMP_OK) return 1;

        if (overflow || (step > 0 && step % 25 == 0))
            printf("step %3d: loss scale 2^%g, skipped %d\n", step, log2((double)scale), skipped);
    }
    printf("w = %.2e, %.2e\n", (double)w[0], (double)w[1]);
    amp_scaler_destroy(scaler);
    amp_ctx_destroy(ctx);
    return 0;
}
