/* quotients.c - prints a hash of quotients whose divisor is a constant, or does not change in a loop: fast-math
   multiplies by its reciprocal, which gives other bits. compile.sh compares builds; -U__SSE2__ takes the C of machines
   that have no division in an asm statement. */
#define AMP_NO_SIMD
#include "../../amp.h"

#include <stdio.h>

enum { N = 4096 };
static uint32_t bits[N];
static uint64_t wide[N];

static void keep(int i, double x) { memcpy(&wide[i], &x, 8); }
static void of_one_divisor(float d) {
    int i;
    for (i = 0; i < N; i++)
        bits[i] = ampi_bits(amp_div((float)(i * 7919 % 10007), d));
    for (i = 0; i < N; i++)
        keep(i, amp_ddiv((double)(i * 7919 % 10007), amp_widen(d)));
}
static void of_constants(void) {
    int i;
    for (i = 0; i < N; i++)
        bits[i] = ampi_bits(amp_div((float)(i * 7919 % 10007), 3.0f));
    for (i = 0; i < N; i++)
        keep(i, amp_ddiv((double)(i * 7919 % 10007), 3.0));
}
static uint64_t hash(uint64_t h) {
    int i;
    for (i = 0; i < N; i++)
        h = (h ^ bits[i] ^ wide[i]) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

int main(int argc, char **argv) {
    uint64_t h;
    (void)argv;
    of_one_divisor((float)argc * 2.7182818f);
    h = hash(1);
    of_constants();
    h = hash(h);
    printf("%08lx%08lx\n", (unsigned long)(h >> 32), (unsigned long)(h & 0xffffffffu));
    return 0;
}
