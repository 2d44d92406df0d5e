#include "layers.h"
#include "warp.cuh"
__global__ void layer_norm_kernel(
    const float *__restrict__ x, const float *__restrict__ gain, float *__restrict__ y, int cols) {
    const float *row = x + blockIdx.x * cols;
    float sum = 0, squares = 0;
    for (int i = threadIdx.x; i < cols; i += 32)
        sum += row[i];
    float mean = warp_reduce(sum, Sum()) / cols;
    for (int i = threadIdx.x; i < cols; i += 32)
        squares += (row[i] - mean) * (row[i] - mean);
    float scale = rsqrtf(warp_reduce(squares, Sum()) / cols + 1e-5f);
    for (int i = threadIdx.x; i < cols; i += 32)
        y[blockIdx.x * cols + i] = (row[i] - mean) * scale * __ldg(&gain[i]);
}
void layer_norm(const Tensor &x, const Tensor &gain, Tensor &y, int rows, int cols) {
    layer_norm_kernel<<<rows, 32>>>(x.data, gain.data, y.data, cols);
    CUDA_CHECK(cudaGetLastError());
}
