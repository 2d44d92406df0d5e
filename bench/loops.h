/* loops.h - what bench/loops.c has, for the set of -march=native (native_) and that for AVX2 (haswell_). */
#ifndef BENCH_LOOPS_H
#define BENCH_LOOPS_H
#include <stddef.h>
#include <stdint.h>
#define LOOPS(X) \
    X(void, forward, (const float *w, const float *x, float *y, size_t rows, size_t cols)) \
    X(void, outer, (const float *a, const float *b, float *d, size_t rows, size_t cols)) \
    X(void, forward_f16, (const uint16_t *w, const float *x, float *y, size_t rows, size_t cols)) \
    X(void, forward_bf16, (const uint16_t *w, const float *x, float *y, size_t rows, size_t cols)) \
    X(float, cross_entropy, (const float *x, const uint8_t *label, float *d, size_t rows, size_t classes)) \
    X(void, widen_f16, (const uint16_t *from, float *to, size_t n)) \
    X(void, widen_bf16, (const uint16_t *from, float *to, size_t n))
#define X(type, name, arguments) \
    type native_##name arguments; \
    type haswell_##name arguments;
LOOPS(X)
#undef X
#endif
