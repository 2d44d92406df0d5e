/* first_half.c - what a 16-bit number can and cannot hold: the scalar conversions of amp.h, which need no set-up.
 *
 *     cc -std=c99 -O2 examples/first_half.c -I. -lm -pthread -o first_half && ./first_half
 *
 * Output:
 *   > float          f16 bits  f16 value      bf16 bits  bf16 value
 *   > 1              3c00      1              3f80       1
 *   > 0.1            2e66      0.0999755859   3dcd       0.100097656
 *   > 2049           6800      2048           4500       2048
 *   > 2051           6802      2052           4500       2048
 *   > 65519          7bff      65504          4780       65536
 *   > 65520          7c00      inf            4780       65536
 *   > 1e-05          00a8      1.00135803e-05 3728       1.00135803e-05
 *   > 2e-08          0000      0              32ac       2.00234354e-08
 *   >
 *   > 0.25 + 0.0001 in FP16, 1000 times:     0.25
 *   > the same sum in FP32, rounded at last: 0.350098
 *   > 2e-08 times 1024 in FP16, then / 1024: 2.00234e-08
 */
#define AMP_IMPLEMENTATION
#include "amp.h"
#include <stdio.h>

int main(void) {
    static const float x[] = {1.0f, 0.1f, 2049.0f, 2051.0f, 65519.0f, 65520.0f, 1e-5f, 2e-8f};
    size_t i;
    amp_f16 sum = amp_f16_from_f32(0.25f);
    float sum32 = 0.25f;

    printf("float          f16 bits  f16 value      bf16 bits  bf16 value\n");
    for (i = 0; i < sizeof x / sizeof *x; i++) {
        amp_f16 h = amp_f16_from_f32(x[i]);   /* 5 exponent bits, 11 significant: precise, but 65504 is the end */
        amp_bf16 b = amp_bf16_from_f32(x[i]); /* 8 exponent bits, 8 significant: the range of float, coarse */
        printf("%-14g %04x      %-14.9g %04x       %.9g\n", (double)x[i], (unsigned)h.bits, (double)amp_f32_from_f16(h),
            (unsigned)b.bits, (double)amp_f32_from_bf16(b));
    }

    /* Why master weights: next to 0.25 the FP16 numbers are 0.000244 apart, so adding 0.0001 rounds back to 0.25,
       every time. */
    for (i = 0; i < 1000; i++) {
        sum = amp_f16_from_f32(amp_f32_from_f16(sum) + 0.0001f);
        sum32 += 0.0001f;
    }
    printf("\n0.25 + 0.0001 in FP16, 1000 times:     %g\n", (double)amp_f32_from_f16(sum));
    printf("the same sum in FP32, rounded at last: %g\n", (double)amp_f32_from_f16(amp_f16_from_f32(sum32)));

    /* Why loss scaling: 2e-8 is below the smallest FP16 number; 1024 times as large, it survives. */
    printf("2e-08 times 1024 in FP16, then / 1024: %g\n",
        (double)(amp_f32_from_f16(amp_f16_from_f32(2e-8f * 1024.0f)) / 1024.0f));
    return 0;
}
