/* transpose.cu - a tile with a padded row, rectangular matrices, blocks of 32 by 8; grids by a function of the
 * occupancy API. */
#include <stdio.h>
#include <stdlib.h>
#include <vector>
#define TILE_DIM   32
#define BLOCK_ROWS 8
__global__ void transpose(float *out, const float *in, int width, int height) {
    __shared__ float tile[TILE_DIM][TILE_DIM + 1];
    int x = blockIdx.x * TILE_DIM + threadIdx.x, y = blockIdx.y * TILE_DIM + threadIdx.y;
    for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS)
        if (x < width && y + j < height) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];
    __syncthreads();
    x = blockIdx.y * TILE_DIM + threadIdx.x;
    y = blockIdx.x * TILE_DIM + threadIdx.y;
    for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS)
        if (x < height && y + j < width) out[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
}
__global__ void scale(float *x, int n, float by) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        x[i] *= by;
}
int main(int argc, char **argv) {
    int w = argc > 1 ? atoi(argv[1]) : 70, h = argc > 2 ? atoi(argv[2]) : 45, n = w * h, wrong = 0, grid, block;
    cudaDeviceProp prop;
    cudaGetDeviceProperties(&prop, 0);
    if (prop.warpSize != 32 || prop.maxThreadsPerBlock < TILE_DIM * BLOCK_ROWS) return 1;
    std::vector<float> in(n), out(n);
    for (int i = 0; i < n; i++)
        in[i] = (float)i;
    float *a, *b;
    cudaMalloc(&a, n * sizeof *a);
    cudaMalloc(&b, n * sizeof *b);
    cudaMemcpy(a, &in[0], n * sizeof *a, cudaMemcpyHostToDevice);
    transpose<<<dim3((w + TILE_DIM - 1) / TILE_DIM, (h + TILE_DIM - 1) / TILE_DIM), dim3(TILE_DIM, BLOCK_ROWS)>>>(
        b, a, w, h);
    cudaOccupancyMaxPotentialBlockSize(&grid, &block, scale, 0, 128);
    const int blocks = grid < 4 ? grid : 4;
    scale<<<blocks, block>>>(b, n, 2.0f);
    cudaMemcpy(&out[0], b, n * sizeof *b, cudaMemcpyDeviceToHost);
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++)
            wrong += out[x * h + y] != 2 * in[y * w + x];
    printf("transpose: %s\n", wrong ? "WRONG" : "ok");
    cudaFree(a);
    cudaFree(b);
    return wrong != 0;
}
