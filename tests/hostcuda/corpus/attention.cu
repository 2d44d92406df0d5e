/* attention.cu - scaled dot-product attention of several heads: two batched products of cuBLAS, column-major, and a
 * softmax by warps in between; the CPU computes it again row by row. */
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define gpuErrchk(ans) \
    { \
        gpuAssert((ans), __FILE__, __LINE__); \
    }
inline void gpuAssert(cudaError_t code, const char *file, int line, bool abort = true) {
    if (code != cudaSuccess) {
        fprintf(stderr, "GPUassert: %s %s %d\n", cudaGetErrorString(code), file, line);
        if (abort) exit(code);
    }
}
#define CUBLAS_CHECK(x) \
    do { \
        cublasStatus_t s = (x); \
        if (s != CUBLAS_STATUS_SUCCESS) { \
            printf("cublas %d at %d\n", s, __LINE__); \
            exit(1); \
        } \
    } while (0)

const int HEADS = 3, T = 20, D = 8;

__global__ void softmax_rows(float *s, int rows, int n, float scale) { /* one warp per row */
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / warpSize, lane = threadIdx.x % warpSize;
    if (row >= rows) return;
    float *r = s + (size_t)row * n, most = -INFINITY, sum = 0.f;
    for (int i = lane; i < n; i += warpSize)
        most = fmaxf(most, r[i] * scale);
    for (int o = 16; o > 0; o >>= 1)
        most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, o));
    for (int i = lane; i < n; i += warpSize)
        sum += r[i] = __expf(r[i] * scale - most);
    for (int o = 16; o; o /= 2)
        sum += __shfl_xor_sync(0xffffffff, sum, o);
    for (int i = lane; i < n; i += warpSize)
        r[i] /= sum;
}

int main() {
    const int N = HEADS * T * D;
    float *q, *k, *v, *o, *dq, *dk, *dv, *ds, *dout;
    gpuErrchk(cudaMallocHost((void **)&q, N * sizeof(float)));
    gpuErrchk(cudaMallocHost((void **)&k, N * sizeof(float)));
    gpuErrchk(cudaMallocHost((void **)&v, N * sizeof(float)));
    gpuErrchk(cudaHostAlloc((void **)&o, N * sizeof(float), cudaHostAllocDefault));
    srand(7);
    for (int i = 0; i < N; i++) {
        q[i] = rand() / (float)RAND_MAX - .5f;
        k[i] = rand() / (float)RAND_MAX - .5f;
        v[i] = rand() / (float)RAND_MAX - .5f;
    }
    gpuErrchk(cudaMalloc(&dq, N * sizeof(float)));
    gpuErrchk(cudaMalloc(&dk, N * sizeof(float)));
    gpuErrchk(cudaMalloc(&dv, N * sizeof(float)));
    gpuErrchk(cudaMalloc(&dout, N * sizeof(float)));
    gpuErrchk(cudaMalloc(&ds, HEADS * T * T * sizeof(float)));
    cudaStream_t stream;
    gpuErrchk(cudaStreamCreate(&stream));
    cublasHandle_t handle;
    CUBLAS_CHECK(cublasCreate(&handle));
    CUBLAS_CHECK(cublasSetStream(handle, stream));
    gpuErrchk(cudaMemcpyAsync(dq, q, N * sizeof(float), cudaMemcpyHostToDevice, stream));
    gpuErrchk(cudaMemcpyAsync(dk, k, N * sizeof(float), cudaMemcpyHostToDevice, stream));
    gpuErrchk(cudaMemcpyAsync(dv, v, N * sizeof(float), cudaMemcpyHostToDevice, stream));
    const float one = 1.f, zero = 0.f;
    /* row-major S = Q K^T is column-major S^T = K Q^T */
    CUBLAS_CHECK(cublasSgemmStridedBatched(handle, CUBLAS_OP_T, CUBLAS_OP_N, T, T, D, &one, dk, D, (long long)T * D, dq,
        D, (long long)T * D, &zero, ds, T, (long long)T * T, HEADS));
    softmax_rows<<<(HEADS * T * 32 + 127) / 128, 128, 0, stream>>>(ds, HEADS * T, T, 1.f / sqrtf((float)D));
    gpuErrchk(cudaPeekAtLastError());
    CUBLAS_CHECK(cublasSgemmStridedBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, D, T, T, &one, dv, D, (long long)T * D, ds,
        T, (long long)T * T, &zero, dout, D, (long long)T * D, HEADS));
    gpuErrchk(cudaMemcpyAsync(o, dout, N * sizeof(float), cudaMemcpyDeviceToHost, stream));
    gpuErrchk(cudaStreamSynchronize(stream));
    double worst = 0;
    for (int h = 0; h < HEADS; h++)
        for (int i = 0; i < T; i++) {
            double p[T], sum = 0;
            for (int j = 0; j < T; j++) {
                double s = 0;
                for (int d = 0; d < D; d++)
                    s += (double)q[(h * T + i) * D + d] * k[(h * T + j) * D + d];
                sum += p[j] = exp(s / sqrt((double)D));
            }
            for (int d = 0; d < D; d++) {
                double y = 0;
                for (int j = 0; j < T; j++)
                    y += p[j] / sum * v[(h * T + j) * D + d];
                worst = fmax(worst, fabs(y - o[(h * T + i) * D + d]));
            }
        }
    printf("attention: %s, worst difference %.1e\n", worst < 1e-5 ? "ok" : "WRONG", worst);
    CUBLAS_CHECK(cublasDestroy(handle));
    cudaStreamDestroy(stream);
    cudaFree(dq);
    cudaFree(dk);
    cudaFree(dv);
    cudaFree(ds);
    cudaFree(dout);
    cudaFreeHost(q);
    cudaFreeHost(k);
    cudaFreeHost(v);
    cudaFreeHost(o);
    return worst < 1e-5 ? EXIT_SUCCESS : EXIT_FAILURE;
}
