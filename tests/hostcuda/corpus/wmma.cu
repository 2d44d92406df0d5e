/* wmma.cu - a product of halves on the tensor cores, one warp per tile of 16 by 16. */
#include <cuda_fp16.h>
#include <mma.h>
#include <cmath>
#include <cstdio>
#include <vector>
using namespace nvcuda;
const int M = 32, N = 48, K = 64;
__global__ void product(const half *a, const half *b, float *c) {
    int row = blockIdx.y * 16, col = blockIdx.x * 16;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc;
    wmma::fill_fragment(acc, 0.0f);
    for (int k = 0; k < K; k += 16) {
        wmma::load_matrix_sync(fa, a + row * K + k, K);
        wmma::load_matrix_sync(fb, b + col * K + k, K);
        wmma::mma_sync(acc, fa, fb, acc);
    }
    wmma::store_matrix_sync(c + row * N + col, acc, N, wmma::mem_row_major);
}
__global__ void to_half(half *out, const float *in, int n) {
    for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += blockDim.x * gridDim.x)
        out[i] = __float2half(in[i]);
}
int main() {
    std::vector<float> a(M * K), b(K * N), c(M * N);
    for (int i = 0; i < M * K; i++)
        a[i] = ((i * 5) % 17 - 8) / 8.0f;
    for (int i = 0; i < K * N; i++)
        b[i] = ((i * 3) % 11 - 5) / 4.0f;
    float *f, *dc;
    half *da, *db;
    cudaMalloc(&f, K * N * sizeof(float));
    cudaMalloc(&da, M * K * sizeof(half));
    cudaMalloc(&db, K * N * sizeof(half));
    cudaMalloc(&dc, M * N * sizeof(float));
    cudaMemcpy(f, a.data(), M * K * sizeof(float), cudaMemcpyHostToDevice);
    to_half<<<4, 64>>>(da, f, M * K);
    cudaMemcpy(f, b.data(), K * N * sizeof(float), cudaMemcpyHostToDevice);
    to_half<<<4, 64>>>(db, f, K * N);
    product<<<dim3(N / 16, M / 16), 32>>>(da, db, dc);
    cudaMemcpy(c.data(), dc, M * N * sizeof(float), cudaMemcpyDeviceToHost);
    double worst = 0;
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            double sum = 0;
            for (int k = 0; k < K; k++)
                sum += (double)a[i * K + k] * b[j * K + k];
            worst = fmax(worst, fabs(sum - c[i * N + j]));
        }
    printf("wmma: %s\n", worst < 1e-3 ? "ok" : "WRONG");
    cudaFree(f);
    cudaFree(da);
    cudaFree(db);
    cudaFree(dc);
    return worst >= 1e-3;
}
