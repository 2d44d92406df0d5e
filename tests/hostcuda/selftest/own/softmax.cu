/* softmax.cu - rows of a product through softmax, with the mistakes that people make. -DMISTAKE=n plants number n; its
 * line ends with "MISTAKE n". Without one: prints "softmax: the rows add up to 1".
 *   1 a barrier is missing          2 a shared array is one too short     3 reads past the end of a device buffer
 *   4 reads what nobody wrote       5 a buffer and a handle are left      6 a host pointer goes to a kernel
 *   7 a barrier in a branch         8 no __syncwarp between lanes         9 the result is copied before it is there */
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#ifndef MISTAKE
#  define MISTAKE 0
#endif
namespace cg = cooperative_groups;

#define CHECK(call) \
    do { \
        int error = (int)(call); \
        if (error) { \
            fprintf(stderr, "softmax.cu:%d: error %d\n", __LINE__, error); \
            exit(1); \
        } \
    } while (0)

enum { ROWS = 6, COLS = 96, DEPTH = 8, THREADS = 64, WARPS = THREADS / 32 };

struct Larger {
    __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Sum {
    __device__ float operator()(float a, float b) const { return a + b; }
};
template <class F> __device__ float over_block(float *part, float v, F combine) {
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
    for (int offset = 16; offset > 0; offset /= 2)
        v = combine(v, __shfl_xor_sync(0xffffffffu, v, offset));
    if (warp.thread_rank() == 0) part[warp.meta_group_rank()] = v; /* MISTAKE 1 2 */
#if MISTAKE == 7
    if (threadIdx.x < 32) __syncthreads(); /* MISTAKE 7 */
#endif
    __syncthreads();
    v = part[0];
    for (int i = 1; i < WARPS; i++)
        v = combine(v, part[i]);
#if MISTAKE != 1
    __syncthreads(); /* the next call writes part[] */
#endif
    return v;
}

__global__ void softmax(const float *x, float *y, int cols, int count) {
    extern __shared__ float row[];
    __shared__ float part[MISTAKE == 2 ? WARPS - 1 : WARPS];
    const float *mine = x + blockIdx.x * cols;
    float most = -INFINITY, sum = 0;
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        row[i] = mine[i]; /* MISTAKE 3 */
        most = fmaxf(most, row[i]);
    }
    most = over_block(part, most, Larger());
    for (int i = threadIdx.x; i < cols; i += blockDim.x) {
        row[i] = expf(row[i] - most);
        sum += row[i];
    }
    sum = over_block(part, sum, Sum());
    for (int i = threadIdx.x; i < cols; i += blockDim.x)
        y[blockIdx.x * cols + i] = row[i] / sum;
}

/* One warp per row; lanes of a tile exchange through shared memory. */
__global__ void total(const float *y, float *out, int cols) {
    __shared__ float lanes[32];
    auto tile = cg::tiled_partition<32>(cg::this_thread_block());
    float v = 0;
    for (unsigned i = tile.thread_rank(); i < (unsigned)cols; i += tile.size())
        v += y[blockIdx.x * cols + i];
    lanes[threadIdx.x ^ 1] = v; /* MISTAKE 8 */
#if MISTAKE != 8
    __syncwarp();
#endif
    v = lanes[threadIdx.x];
    v = cg::reduce(tile, v, cg::plus<float>());
    if (threadIdx.x == 0 && v > 0.5f) out[blockIdx.x] = v; /* MISTAKE 4 9 */
}

int main() {
    float a[ROWS * DEPTH], b[DEPTH * COLS], sums[ROWS];
    float *da, *db, *dx, *dy, *out;
    const float one = 1, zero = 0;
    cublasHandle_t blas;
    cudaStream_t stream;
    for (int i = 0; i < ROWS * DEPTH; i++)
        a[i] = sinf((float)i);
    for (int i = 0; i < DEPTH * COLS; i++)
        b[i] = cosf((float)i);
    CHECK(cublasCreate(&blas));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&da, sizeof a));
    CHECK(cudaMalloc(&db, sizeof b));
    CHECK(cudaMalloc(&dx, ROWS * COLS * sizeof(float))); /* MISTAKE 5 */
    CHECK(cudaMalloc(&dy, ROWS * COLS * sizeof(float)));
    CHECK(cudaMalloc(&out, sizeof sums));
#if MISTAKE != 4
    CHECK(cudaMemcpy(da, a, sizeof a, cudaMemcpyHostToDevice));
#endif
    CHECK(cudaMemcpy(db, b, sizeof b, cudaMemcpyHostToDevice));
    CHECK(cublasSetStream(blas, stream));
    CHECK(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, COLS, ROWS, DEPTH, &one, db, COLS, da, DEPTH, &zero, dx, COLS));
    const int count = MISTAKE == 3 ? COLS + 1 : COLS;
#if MISTAKE == 6
    softmax<<<ROWS, THREADS, (COLS + 1) * sizeof(float), stream>>>(a, dy, COLS, count); /* MISTAKE 6 */
#else
    softmax<<<ROWS, THREADS, (COLS + 1) * sizeof(float), stream>>>(dx, dy, COLS, count);
#endif
    total<<<ROWS, 32, 0, stream>>>(dy, out, COLS);
    CHECK(cudaGetLastError());
#if MISTAKE != 9
    CHECK(cudaStreamSynchronize(stream));
#endif
    CHECK(cudaMemcpy(sums, out, sizeof sums, cudaMemcpyDeviceToHost));
    CHECK(cudaStreamSynchronize(stream));
    for (int i = 0; i < ROWS; i++)
        if (!(fabsf(sums[i] - 1) < 1e-5f)) {
            printf("softmax: row %d adds up to %g\n", i, sums[i]);
            return 1;
        }
    printf("softmax: the rows add up to 1\n");
    CHECK(cudaFree(da));
    CHECK(cudaFree(db));
#if MISTAKE != 5
    CHECK(cudaFree(dx));
    CHECK(cudaStreamDestroy(stream));
#endif
    CHECK(cudaFree(dy));
    CHECK(cudaFree(out));
    CHECK(cublasDestroy(blas));
    return 0;
}
