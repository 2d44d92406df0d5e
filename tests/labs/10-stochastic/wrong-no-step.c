/* lab 10: with n 1000, first 0, seed 3, step 1, y[25] is 1 and must be 1.00781: each step takes the same words
   again, so an element errs to the same side for ever */
#include "amp.h"
#include "lab.h"

static uint32_t bits_of(float x) {
    uint32_t u;
    memcpy(&u, &x, 4);
    return u;
}

uint16_t bf16_stochastic(float x, uint32_t word) {
    uint32_t bits = bits_of(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(bits >> 16 | 0x40u); /* NaN */
    return (uint16_t)((bits + (word & 0xffffu)) >> 16);
}

void round_piece(uint16_t *y, const float *x, size_t n, size_t first, uint64_t seed, uint64_t step) {
    size_t i;
    (void)step;
    for (i = 0; i < n; i++)
        y[i] = bf16_stochastic(x[i], amp_random(seed, 0, first + i));
}
