/* lab.c - lab 1: half bits and rounding. The page is README.md; check it with  make lab N=1
 *
 * Integer arithmetic only: shifts, masks, +, -, comparisons. No amp_* conversion, no _Float16. */
#include "lab.h"

static uint32_t bits_of(float x) {
    uint32_t u;
    memcpy(&u, &x, 4);
    return u;
}

static float float_of(uint32_t u) {
    float x;
    memcpy(&x, &u, 4);
    return x;
}

/* From half to float. Every half is a float, so nothing is rounded. */
float float_from_half(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16; /* where a float has it */
    uint32_t exponent = h >> 10 & 31u;
    uint32_t mantissa = h & 0x3ffu;
    if (exponent == 31) LAB_TODO("float_from_half of Inf and NaN");
    if (exponent == 0) LAB_TODO("float_from_half of zero and of subnormal numbers");
    LAB_TODO("float_from_half of normal numbers");
    return float_of(sign | exponent | mantissa);
}

/* From float to half, rounded to the nearest half; from the middle between two to the one whose last bit is 0. */
uint16_t half_from_float(float x) {
    uint32_t sign = bits_of(x) >> 16 & 0x8000u; /* where a half has it */
    uint32_t magnitude = bits_of(x) & 0x7fffffffu;
    if (magnitude > 0x7f800000u) LAB_TODO("half_from_float of NaN");
    if (magnitude >= bits_of(65520.0f)) LAB_TODO("half_from_float of Inf and of numbers that become Inf");
    if (magnitude < bits_of(0x1p-14f)) LAB_TODO("half_from_float of zero and of numbers that become subnormal");
    LAB_TODO("half_from_float of numbers that become normal");
    return (uint16_t)sign;
}
