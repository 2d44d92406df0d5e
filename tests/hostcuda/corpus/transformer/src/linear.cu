#include "layers.h"
template <int TILE> __global__ void linear_kernel(const float *x, const float *w, float *y, int rows, int in, int out) {
    __shared__ float xs[TILE][TILE + 1], ws[TILE][TILE + 1];
    int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
    float sum = 0.f;
    for (int k = 0; k < in; k += TILE) {
        xs[threadIdx.y][threadIdx.x] = row < rows && k + threadIdx.x < in ? x[row * in + k + threadIdx.x] : 0.f;
        ws[threadIdx.y][threadIdx.x] = col < out && k + threadIdx.y < in ? w[(k + threadIdx.y) * out + col] : 0.f;
        __syncthreads();
        for (int i = 0; i < TILE; ++i)
            sum += xs[threadIdx.y][i] * ws[i][threadIdx.x];
        __syncthreads();
    }
    if (row < rows && col < out) y[row * out + col] = sum;
}
void linear(const Tensor &x, const Tensor &w, Tensor &y, int rows, int in, int out) {
    constexpr int T = 8;
    linear_kernel<T>
        <<<dim3((out + T - 1) / T, (rows + T - 1) / T), dim3(T, T)>>>(x.data, w.data, y.data, rows, in, out);
    CUDA_CHECK(cudaGetLastError());
}
