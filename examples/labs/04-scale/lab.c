/* lab.c - lab 4: exponents and the loss scale. The page is README.md; check it with  make lab N=4 */
#include "amp.h"
#include "lab.h"

typedef enum fate { FATE_ZERO, FATE_LOST, FATE_SUBNORMAL, FATE_NORMAL, FATE_OVERFLOW, FATES } fate;

/* The e with 2^e <= |x| < 2^(e + 1), for every finite x but 0, subnormal floats included. Exactly: not by logf. */
int exponent_of(float x) {
    (void)x;
    LAB_TODO("exponent_of");
    return 0;
}

/* What becomes of a gradient g when g * scale (scale is a power of two) is rounded to the nearest half:
 *   FATE_ZERO       it was 0 before
 *   FATE_LOST       it was not 0 and becomes 0
 *   FATE_SUBNORMAL  it is below 2^-14 as a half, and not 0: it has lost bits, or may have
 *   FATE_OVERFLOW   it becomes Inf
 *   FATE_NORMAL     everything else */
fate fate_of(float g, float scale) {
    (void)g;
    (void)scale;
    LAB_TODO("fate_of");
    return FATE_NORMAL;
}

/* How many of the n gradients have each fate: counts[FATE_LOST] and so on. */
void count_fates(size_t counts[FATES], const float *g, size_t n, float scale) {
    (void)counts;
    (void)g;
    (void)n;
    (void)scale;
    LAB_TODO("count_fates");
}

/* The largest power of two s with |g| * s <= 65504 / 2 for every finite g: one binary digit of room before Inf.
 * Inf and NaN do not count. At most 2^100 and at least 2^-14; if no finite g is other than 0: 65536. */
float suggest_scale(const float *g, size_t n) {
    (void)g;
    (void)n;
    LAB_TODO("suggest_scale");
    return 1;
}
