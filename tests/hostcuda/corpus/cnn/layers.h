#pragma once
// Images of one channel, rows by columns; filters of K x K.
const int K = 3;
void convolution(const float *image, const float *filters, float *out, int rows, int cols, int count);
void max_pool(const float *in, float *out, int rows, int cols, int count);
