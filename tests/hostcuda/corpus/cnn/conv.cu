#include "layers.h"
#include <cuda_runtime.h>
#define TILE 8
__global__ void conv(const float *image, const float *filters, float *out, int rows, int cols) {
    __shared__ float tile[TILE + K - 1][TILE + K - 1];
    __shared__ float filter[K][K];
    int out_rows = rows - K + 1, out_cols = cols - K + 1, f = blockIdx.z;
    int r0 = blockIdx.y * TILE, c0 = blockIdx.x * TILE;
    for (int r = threadIdx.y; r < TILE + K - 1; r += TILE)
        for (int c = threadIdx.x; c < TILE + K - 1; c += TILE)
            tile[r][c] = r0 + r < rows && c0 + c < cols ? image[(r0 + r) * cols + c0 + c] : 0.0f;
    if (threadIdx.y < K && threadIdx.x < K)
        filter[threadIdx.y][threadIdx.x] = filters[(f * K + threadIdx.y) * K + threadIdx.x];
    __syncthreads();
    int r = r0 + threadIdx.y, c = c0 + threadIdx.x;
    if (r >= out_rows || c >= out_cols) return;
    float sum = 0;
    for (int i = 0; i < K; i++)
        for (int j = 0; j < K; j++)
            sum += tile[threadIdx.y + i][threadIdx.x + j] * filter[i][j];
    out[(f * out_rows + r) * out_cols + c] = fmaxf(sum, 0.0f);
}
void convolution(const float *image, const float *filters, float *out, int rows, int cols, int count) {
    dim3 grid((cols - K + TILE) / TILE, (rows - K + TILE) / TILE, count), block(TILE, TILE);
    conv<<<grid, block>>>(image, filters, out, rows, cols);
}
