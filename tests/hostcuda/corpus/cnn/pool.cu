#include "layers.h"
#include <cuda_runtime.h>
__global__ void pool(const float *in, float *out, int rows, int cols, int count) {
    int n = count * (rows / 2) * (cols / 2);
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
        int c = i % (cols / 2), r = i / (cols / 2) % (rows / 2), f = i / (cols / 2) / (rows / 2);
        const float *p = in + (f * rows + 2 * r) * cols + 2 * c;
        out[i] = fmaxf(fmaxf(p[0], p[1]), fmaxf(p[cols], p[cols + 1]));
    }
}
void max_pool(const float *in, float *out, int rows, int cols, int count) {
    pool<<<4, 64>>>(in, out, rows, cols, count);
}
