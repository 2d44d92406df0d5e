/* lab 10: 1.00146484 must become 1.00781 with 12288 of 65536 words and 1 with the others, and yours does with 0:
   it cuts off, rounds to nearest, or the noise has too few bits */
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
    return (uint16_t)((bits + (word & 0x7fffu)) >> 16);
}

void round_piece(uint16_t *y, const float *x, size_t n, size_t first, uint64_t seed, uint64_t step) {
    size_t i;
    for (i = 0; i < n; i++)
        y[i] = bf16_stochastic(x[i], amp_random(seed, step, first + i));
}
