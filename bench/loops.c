/* loops.c - the loops that amp replaces, as their writers compile them: -O3 -ffast-math with -march=native, or
   for AVX2. bench.mk compiles it twice; LOOP(name) puts the set's name before a function's. */
#include "loops.h"
#include <math.h>
#include <string.h>

void LOOP(forward)(const float *w, const float *x, float *y, size_t rows, size_t cols) {
    for (size_t i = 0; i < rows; i++) {
        float s = 0;
        for (size_t j = 0; j < cols; j++)
            s += w[i * cols + j] * x[j];
        y[i] = s;
    }
}
void LOOP(outer)(const float *a, const float *b, float *d, size_t rows, size_t cols) {
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            d[i * cols + j] = a[i] * b[j];
}
/* Mean loss and its gradient: a row's largest logit, its exponentials, their sum, then shares. */
float LOOP(cross_entropy)(const float *x, const uint8_t *label, float *d, size_t rows, size_t classes) {
    float loss = 0;
    for (size_t i = 0; i < rows; i++, x += classes, d += classes) {
        float top = x[0], sum = 0;
        for (size_t j = 1; j < classes; j++)
            top = x[j] > top ? x[j] : top;
        for (size_t j = 0; j < classes; j++)
            sum += d[j] = expf(x[j] - top);
        for (size_t j = 0; j < classes; j++)
            d[j] *= 1 / (sum * (float)rows);
        d[label[i]] -= 1 / (float)rows;
        loss += logf(sum) + top - x[label[i]];
    }
    return loss / (float)rows;
}
static float of_bf16(uint16_t h) {
    uint32_t u = (uint32_t)h << 16;
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}
/* Halves times floats: converted in the loop, as ggml does. */
void LOOP(forward_bf16)(const uint16_t *w, const float *x, float *y, size_t rows, size_t cols) {
    for (size_t i = 0; i < rows; i++) {
        float s = 0;
        for (size_t j = 0; j < cols; j++)
            s += of_bf16(w[i * cols + j]) * x[j];
        y[i] = s;
    }
}
#ifdef __F16C__
#  include <immintrin.h>
void LOOP(forward_f16)(const uint16_t *w, const float *x, float *y, size_t rows, size_t cols) {
    for (size_t i = 0; i < rows; i++) {
        __m256 s[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps()};
        float lane[8], sum = 0;
        size_t j, v;
        for (j = 0; j + 32 <= cols; j += 32)
            for (v = 0; v < 4; v++) {
                __m128i h = _mm_loadu_si128((const __m128i *)(const void *)(w + i * cols + j + 8 * v));
                s[v] = _mm256_fmadd_ps(_mm256_cvtph_ps(h), _mm256_loadu_ps(x + j + 8 * v), s[v]);
            }
        _mm256_storeu_ps(lane, _mm256_add_ps(_mm256_add_ps(s[0], s[1]), _mm256_add_ps(s[2], s[3])));
        for (v = 0; v < 8; v++)
            sum += lane[v];
        for (; j < cols; j++)
            sum += _cvtsh_ss(w[i * cols + j]) * x[j];
        y[i] = sum;
    }
}
void LOOP(widen_f16)(const uint16_t *from, float *to, size_t n) {
    for (size_t i = 0; i + 8 <= n; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from + i))));
}
#endif
void LOOP(widen_bf16)(const uint16_t *from, float *to, size_t n) {
    for (size_t i = 0; i < n; i++)
        to[i] = of_bf16(from[i]);
}
