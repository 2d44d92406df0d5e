/* lab.c - lab 10: stochastic rounding to BF16. The page is README.md; check it with  make lab N=10
 *
 * Integer arithmetic only. amp.h gives the random words: amp_random(seed, stream, i) is a function of its three
 * arguments and of nothing else. No amp_store and no other conversion of amp.h. */
#include "amp.h"
#include "lab.h"

static uint32_t bits_of(float x) {
    uint32_t u;
    memcpy(&u, &x, 4);
    return u;
}

/* x, rounded to one of the two BF16 numbers beside it, by 16 of the word's bits; a number that BF16 has stays. */
uint16_t bf16_stochastic(float x, uint32_t word) {
    uint32_t bits = bits_of(x);
    LAB_TODO("bf16_stochastic");
    return (uint16_t)((bits + word * 0) >> 16);
}

/* y[0 .. n-1] = x[0 .. n-1], rounded. They are the elements first, first + 1, ... of a parameter that may be rounded in
 * several pieces: element e takes the word amp_random(seed, step, e). */
void round_piece(uint16_t *y, const float *x, size_t n, size_t first, uint64_t seed, uint64_t step) {
    LAB_TODO("round_piece");
    (void)y, (void)x, (void)n, (void)first, (void)seed, (void)step;
}
