/* language.cu - CUDA as people write it, for tests/hostcuda/translate.cpp: each form that is translated, and each that
 * only looks like one. Prints "language: N passed, 0 failed".  nvcc -arch=native language.cu -lcublas, or
 * make hostcuda-run FILE=tests/hostcuda/selftest/own/language.cu */
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include "language.cuh"
namespace cg = cooperative_groups;

static int passed, failed;
static void check(bool good, int line) {
    good ? passed++ : failed++;
    if (!good) printf("FAIL language.cu:%d\n", line);
}
#define CHECK(good) check(good, __LINE__)
#define OK(call)    CHECK((call) == cudaSuccess)

#ifndef __CUDACC__
#  error "this part is for nvcc, and for whoever stands in for it"
#endif
/* A comment with kernel<<<1, 1>>>(x) and __shared__ float x[3]; in it. */
static const char *const quoted = "kernel<<<1, 1>>>() __shared__ int x;";
static const char *const raw = R"x(kernel<<<"1, 1>>>(); __shared__ int y[2];)x";

/* ---- launches ---- */

#define LAUNCH(kernel, n)            kernel<<<((n) + BLOCK - 1) / BLOCK, BLOCK>>>
#define LAUNCH_ON(stream, kernel, n) kernel<<<((n) + BLOCK - 1) / BLOCK, BLOCK, 0, stream>>>

__global__ void add(float *x, float v, size_t n) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) x[i] += v;
}
namespace deep {
template <class A, class B> struct Two {
    A first;
    B second;
};
namespace deeper {
template <class T> __global__ void scale(T *x, T v, int n, const float *more) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= v + (more ? T(more[i]) : T(0));
}
__global__ void twice(int *x) { x[threadIdx.x] *= 2; }
__global__ void twice(double *x) { x[threadIdx.x] *= 2; }
} // namespace deeper
} // namespace deep
template <int K> __global__ __launch_bounds__(BLOCK) void fill(int *x) { x[threadIdx.x] = K; }
struct Pair { int a, b; };
__global__ void fill_pair(Pair p, int *x) { x[threadIdx.x] = threadIdx.x & 1 ? p.b : p.a; }

template <class T> static T first_of(const T *device) {
    T v;
    OK(cudaMemcpy(&v, device, sizeof v, cudaMemcpyDeviceToHost));
    return v;
}
struct Trainer {
    float *x;
    void (*kernel)(float *, float, size_t);
    void run() {
        kernel<<<1, BLOCK>>>(x, 2, BLOCK);
        this->kernel<<<1, BLOCK>>>(x, 2, BLOCK);
    }
};
static void launches() {
    float *x;
    int *n;
    double *d;
    cudaStream_t stream;
    OK(cudaMalloc(&x, 100 * sizeof(float)));
    OK(cudaMalloc((void **)&n, BLOCK * sizeof(int)));
    OK(cudaMalloc(&d, sizeof(double)));
    OK(cudaMemset(x, 0, 100 * sizeof(float)));
    OK(cudaMemset(n, 0, BLOCK * sizeof(int)));
    OK(cudaMemset(d, 0, sizeof(double)));
    OK(cudaStreamCreate(&stream));
    add<<<2, BLOCK>>>(x, 1, 100);
    add<<<dim3(2, 1, 1), {BLOCK, 1}, 0, 0>>>(x, 1, 100);
    LAUNCH(add, 100)(x, 1, 100);
    OK(cudaStreamSynchronize(0));
    LAUNCH_ON(stream, add, 100)(x, 1, 100);
    OK(cudaStreamSynchronize(stream));
    CHECK(first_of(x) == 4);
    deep::deeper::scale<float><<<2, BLOCK>>>(x, 2, 100, NULL);         /* converted as in a call */
    deep::deeper::scale<<<2, BLOCK>>>(x, 2.0f, 100, (const float *)x); /* the arguments choose */
    CHECK(first_of(x) == 8 * 10);
    fill<3><<<1, BLOCK>>>(n);
    fill<(4 > 3 ? 5 : 6)><<<1 << 0, BLOCK>>>(n);
    CHECK(first_of(n) == 5);
    deep::deeper::twice<<<1, 1>>>(n);
    deep::deeper::twice<<<1, 1>>>(d);
    fill_pair<<<1, BLOCK>>>({7, 8}, n);
    CHECK(first_of(n) == 7);
    auto pick = add;
    pick<<<1, BLOCK>>>(x, 1, BLOCK);
    void (*table[])(float *, float, size_t) = {add};
    (table[0])<<<1, BLOCK>>>(x, 1, BLOCK);
    table[0]<<<1, BLOCK>>>(x, 1, BLOCK);
    CHECK(first_of(x) == 83);
    Trainer t = {x, add};
    t.run();
    t.kernel<<<1, BLOCK>>>(x, 1, BLOCK);
    CHECK(first_of(x) == 88);
    [&](int times) {
        for (int i = 0; i < times; i++)
            add<<<1, BLOCK>>>(x, 1, BLOCK);
    }(2);
    CHECK(first_of(x) == 90);
    add<<<1, 2048>>>(x, 1, 1);
    CHECK(cudaGetLastError() == cudaErrorInvalidValue);
    CHECK(quoted[6] == '<' && raw[6] == '<' && (1 << 3 >> 1) == 4);
    OK(cudaStreamDestroy(stream));
    OK(cudaFree(x));
    OK(cudaFree(n));
    OK(cudaFree(d));
}

/* ---- shared memory ---- */

extern __shared__ float whole[]; /* outside of the kernel */
__global__ void transpose(const float *in, float *out) {
    __shared__ float tile[8][8 + 1], scale, *from;
    static __shared__ __align__(16) float4 four;
    __shared__ struct {
        int count;
        float part[2];
    } inner;
    volatile __shared__ int flag;
    __shared__ deep::Two<int, float> both[2];
    if (threadIdx.x == 0 && threadIdx.y == 0) {
        scale = 2;
        from = tile[0];
        four = make_float4(1, 2, 3, 4);
        inner.count = 1;
        flag = 1;
        both[1].second = 1;
    }
    tile[threadIdx.y][threadIdx.x] = in[threadIdx.y * 8 + threadIdx.x];
    __syncthreads();
    whole[threadIdx.y * 8 + threadIdx.x] = from[threadIdx.x * 9 + threadIdx.y] * scale;
    __syncthreads();
    out[threadIdx.y * 8 + threadIdx.x] =
        whole[threadIdx.y * 8 + threadIdx.x] + four.x - float(inner.count) + float(flag) - both[1].second;
}
__global__ void dynamic(int *out) {
    extern __shared__ __align__(16) unsigned char bytes[];
    int *words = (int *)bytes;
    words[threadIdx.x] = (int)threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = words[blockDim.x - 1 - threadIdx.x];
}
static void shared_memory() {
    float in[64], out[64], *x, *y;
    int n[BLOCK], *z;
    for (int i = 0; i < 64; i++)
        in[i] = (float)i;
    OK(cudaMalloc(&x, sizeof in));
    OK(cudaMalloc(&y, sizeof out));
    OK(cudaMalloc(&z, sizeof n));
    OK(cudaMemcpy(x, in, sizeof in, cudaMemcpyHostToDevice));
    transpose<<<1, dim3(8, 8), sizeof in>>>(x, y);
    OK(cudaMemcpy(out, y, sizeof out, cudaMemcpyDeviceToHost));
    CHECK(out[1] == 16 && out[8] == 2 && out[63] == 126);
    dynamic<<<1, BLOCK, BLOCK * sizeof(int)>>>(z);
    OK(cudaMemcpy(n, z, sizeof n, cudaMemcpyDeviceToHost));
    CHECK(n[0] == BLOCK - 1 && n[BLOCK - 1] == 0);
    reverse_in_block<float, 8><<<8, 8>>>(x); /* from the header */
    OK(cudaMemcpy(out, x, sizeof out, cudaMemcpyDeviceToHost));
    CHECK(out[0] == 7 && out[63] == 56);
    OK(cudaFree(x));
    OK(cudaFree(y));
    OK(cudaFree(z));
}

/* ---- variables, warps, groups ---- */

__constant__ float weights[4];
__device__ int counter;
__global__ void variables(float *out) {
    atomicAdd(&counter, 1);
    out[threadIdx.x] = weights[threadIdx.x & 3];
}
static void device_variables() {
    const float w[4] = {1, 2, 3, 4};
    int zero = 0, n = -1, *address;
    float *managed;
    OK(cudaMallocManaged(&managed, 32 * sizeof(float)));
    OK(cudaMemcpyToSymbol(weights, w, sizeof w));
    OK(cudaMemcpyToSymbol(counter, &zero, sizeof zero));
    variables<<<2, 32>>>(managed);
    OK(cudaDeviceSynchronize());
    CHECK(managed[2] == 3 && managed[31] == 4);
    OK(cudaMemcpyFromSymbol(&n, counter, sizeof n));
    CHECK(n == 64);
    OK(cudaGetSymbolAddress((void **)&address, counter));
    fill<9><<<1, 1>>>(address);
    OK(cudaMemcpyFromSymbol(&n, counter, sizeof n));
    CHECK(n == 9);
    OK(cudaFree(managed));
}

__global__ void warps(int *out) {
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
    auto tile = cg::tiled_partition<8>(block);
    int v = (int)block.thread_rank(), sum = v;
    for (int offset = 16; offset > 0; offset /= 2)
        sum += __shfl_xor_sync(0xffffffff, sum, offset);
    int tree = v;
    for (int offset = warp.size() / 2; offset > 0; offset /= 2)
        tree += warp.shfl_down(tree, offset);
    int most = cg::reduce(tile, v, cg::greater<int>()), before = cg::exclusive_scan(tile, 1, cg::plus<int>());
    bool good = sum == cg::reduce(warp, v, cg::plus<int>()) && (warp.thread_rank() != 0 || tree == sum) &&
        most == (v | 7) && before == (int)tile.thread_rank() && tile.meta_group_rank() == v / 8 &&
        tile.meta_group_size() == block.size() / 8 && tile.ballot(v & 1) == 0xaa && tile.shfl(v, 3) == (v & ~7) + 3 &&
        tile.any(v == 3) == (v < 8) && tile.shfl_up(v, 1) == ((v & 7) ? v - 1 : v) &&
        __ballot_sync(0xffffffff, 1) == 0xffffffff;
    tile.sync();
    __syncwarp();
    cg::sync(block);
    out[v] = good;
}
__global__ void together(int *x) {
    cg::grid_group grid = cg::this_grid();
    x[grid.thread_rank()] = 1;
    grid.sync();
    if (grid.thread_rank() == 0)
        for (unsigned long long i = 1; i < grid.size(); i++)
            x[0] += x[i];
}
static void groups() {
    int out[BLOCK], all = 0, *x;
    OK(cudaMalloc(&x, sizeof out));
    warps<<<1, BLOCK>>>(x);
    OK(cudaMemcpy(out, x, sizeof out, cudaMemcpyDeviceToHost));
    for (int i = 0; i < BLOCK; i++)
        all += out[i];
    CHECK(all == BLOCK);
    void *args[] = {&x};
    OK(cudaLaunchCooperativeKernel((void *)together, 2, BLOCK / 2, args, 0, 0));
    CHECK(first_of(x) == BLOCK);
    OK(cudaFree(x));
}

/* ---- pointers to functions of the device ---- */

typedef float (*Operation)(float, float);
struct Operations {
    float *x;
    Operation f, g;
};
__device__ float plus(float a, float b) { return a + b; }
__device__ float times(float a, float b) { return a * b; }
__device__ Operation device_plus = plus, device_times = times;
__global__ void apply(Operation f, float *x) { x[threadIdx.x] = f(x[threadIdx.x], 3); }
__global__ void apply_both(Operations o) { o.x[threadIdx.x] = o.g(o.f(o.x[threadIdx.x], 1), 2); }
static void function_pointers() {
    Operations o;
    OK(cudaMemcpyFromSymbol(&o.f, device_plus, sizeof o.f));
    OK(cudaMemcpyFromSymbol(&o.g, device_times, sizeof o.g));
    OK(cudaMallocManaged(&o.x, sizeof(float)));
    *o.x = 5;
    apply<<<1, 1>>>(o.f, o.x);
    apply_both<<<1, 1>>>(o);
    OK(cudaDeviceSynchronize());
    CHECK(*o.x == (5 + 3 + 1) * 2);
    OK(cudaFree(o.x));
}

/* ---- products ---- */

static void products() {
    enum { N = 3, BATCH = 2, SIZE = N * N * BATCH };
    float a[SIZE], c[SIZE], *da, *dc;
    const float one = 1, zero = 0;
    cublasHandle_t blas;
    for (int i = 0; i < SIZE; i++)
        a[i] = (float)i;
    OK(cudaMalloc(&da, sizeof a));
    OK(cudaMalloc(&dc, sizeof c));
    OK(cudaMemcpy(da, a, sizeof a, cudaMemcpyHostToDevice));
    CHECK(cublasCreate(&blas) == CUBLAS_STATUS_SUCCESS);
    CHECK(cublasSgemmStridedBatched(blas, CUBLAS_OP_N, CUBLAS_OP_T, N, N, N, &one, da, N, N * N, da, N, N * N, &zero,
              dc, N, N * N, BATCH) == CUBLAS_STATUS_SUCCESS);
    OK(cudaMemcpy(c, dc, sizeof c, cudaMemcpyDeviceToHost));
    bool good = true;
    for (int b = 0; b < BATCH; b++)
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) {
                float sum = 0;
                for (int k = 0; k < N; k++)
                    sum += a[b * N * N + k * N + i] * a[b * N * N + k * N + j];
                good = good && c[b * N * N + j * N + i] == sum;
            }
    CHECK(good);
    CHECK(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, N, N, N, &one, da, N, da, N, &zero, dc, N) ==
        CUBLAS_STATUS_SUCCESS);
    CHECK(first_of(dc) == 0 * 0 + 3 * 1 + 6 * 2);
    CHECK(cublasDestroy(blas) == CUBLAS_STATUS_SUCCESS);
    OK(cudaFree(da));
    OK(cudaFree(dc));
}

int main() {
    launches();
    shared_memory();
    device_variables();
    groups();
    function_pointers();
    products();
    printf("language: %d passed, %d failed\n", passed, failed);
    return failed != 0;
}
