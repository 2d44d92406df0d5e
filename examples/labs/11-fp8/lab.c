/* lab.c - lab 11: FP8 and block scales. The page is README.md; check it with  make lab N=11 */
#include "amp.h"
#include "lab.h"

enum { BLOCK = 32 }; /* numbers that share a scale */

/* A whole tensor in FP8 E4M3 with one scale: *scale = 448 / the largest |x| (1 if all are 0), and each x becomes
 * amp_f8e4m3_from_f32_sat(x * scale). */
void quantize_tensor(float *scale, amp_f8e4m3 *code, const float *x, size_t n) {
    (void)scale;
    (void)code;
    (void)x;
    (void)n;
    LAB_TODO("quantize_tensor");
}

/* E2M1, a number of 4 bits: its values are 0, 0.5, 1, 1.5, 2, 3, 4, 6 (codes 0 to 7), and bit 3 is the sign. */
float float_from_e2m1(unsigned code) {
    (void)code;
    LAB_TODO("float_from_e2m1");
    return 0;
}

/* The nearest of them; from the middle between two to the one with the even code; beyond 6 it is 6. The sign of x, also
 * of -0, is kept. x is finite. */
unsigned e2m1_from_float(float x) {
    (void)x;
    LAB_TODO("e2m1_from_float");
    return 0;
}

/* E8M0, the scale of a block, is an exponent of 8 bits: code e is 2^(e - 127). For a block with the largest |x| amax it
 * is 2^(floor(log2(amax)) - 2), as 2 is the exponent of 4, E2M1's largest power of two. amax 0, and what would be
 * below code 0: code 0. amax is finite. */
uint8_t e8m0_for(float amax) {
    (void)amax;
    LAB_TODO("e8m0_for");
    return 0;
}

/* A block: its scale, and each x / scale as E2M1. */
void quantize_block(uint8_t *scale, uint8_t code[BLOCK], const float x[BLOCK]) {
    (void)scale;
    (void)code;
    (void)x;
    LAB_TODO("quantize_block");
}

/* And back. */
void dequantize_block(float x[BLOCK], uint8_t scale, const uint8_t code[BLOCK]) {
    (void)x;
    (void)scale;
    (void)code;
    LAB_TODO("dequantize_block");
}
