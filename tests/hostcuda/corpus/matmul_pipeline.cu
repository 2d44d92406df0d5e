/* matmul_pipeline.cu - a tiled product that loads the next tiles by cuda::pipeline while it works on these. */
#include <cooperative_groups.h>
#include <cuda/pipeline>
#include <cuda_runtime.h>
#include <cstdio>
#include <vector>
#define TILE 8

__global__ void product(const float *a, const float *b, float *c, int n) {
    __shared__ float as[2][TILE][TILE], bs[2][TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * TILE + y, col = blockIdx.x * TILE + x, tiles = n / TILE;
    auto pipe = cuda::make_pipeline();
    auto load = [&](int t) {
        pipe.producer_acquire();
        cuda::memcpy_async(&as[t % 2][y][x], &a[row * n + t * TILE + x], sizeof(float), pipe);
        cuda::memcpy_async(&bs[t % 2][y][x], &b[(t * TILE + y) * n + col], sizeof(float), pipe);
        pipe.producer_commit();
    };
    float sum = 0;
    load(0);
    for (int t = 0; t < tiles; t++) {
        if (t + 1 < tiles) load(t + 1);
        if (t + 1 < tiles)
            cuda::pipeline_consumer_wait_prior<1>(pipe);
        else
            cuda::pipeline_consumer_wait_prior<0>(pipe);
        __syncthreads();
        for (int k = 0; k < TILE; k++)
            sum += as[t % 2][y][k] * bs[t % 2][k][x];
        __syncthreads();
        pipe.consumer_release();
    }
    c[row * n + col] = sum;
}
int main() {
    const int n = 32;
    std::vector<float> a(n * n), b(n * n), c(n * n);
    for (int i = 0; i < n * n; i++) {
        a[i] = (i % 13) - 6;
        b[i] = (i % 7) * 0.5f;
    }
    float *da, *db, *dc;
    size_t bytes = n * n * sizeof(float);
    cudaMalloc(&da, bytes);
    cudaMalloc(&db, bytes);
    cudaMalloc(&dc, bytes);
    cudaMemcpy(da, a.data(), bytes, cudaMemcpyHostToDevice);
    cudaMemcpy(db, b.data(), bytes, cudaMemcpyHostToDevice);
    product<<<dim3(n / TILE, n / TILE), dim3(TILE, TILE)>>>(da, db, dc, n);
    cudaMemcpy(c.data(), dc, bytes, cudaMemcpyDeviceToHost);
    int wrong = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            float sum = 0;
            for (int k = 0; k < n; k++)
                sum += a[i * n + k] * b[k * n + j];
            wrong += sum != c[i * n + j];
        }
    printf("matmul_pipeline: %s\n", wrong ? "WRONG" : "ok");
    cudaFree(da);
    cudaFree(db);
    cudaFree(dc);
    return wrong != 0;
}
