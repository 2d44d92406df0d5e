/* forms.cu - forms of CUDA that programs of others have, and that were once refused or misread here; language.cu has
 * the usual ones. Prints "forms: N passed, 0 failed".  nvcc -arch=native forms.cu, or
 * make hostcuda-run FILE=tests/hostcuda/selftest/own/forms.cu */
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda/barrier>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>
#include <math.h>
#include <stdio.h>
#include <cmath>
#include <vector>
#include "forms.cuh"
namespace cg = cooperative_groups;

static int passed, failed;
static void check(bool good, int line) {
    good ? passed++ : failed++;
    if (!good) printf("FAIL forms.cu:%d\n", line);
}
#define CHECK(good) check(good, __LINE__)
#define OK(call)    CHECK((call) == cudaSuccess)

enum { N = 64 };
static int *g_x;             /* of all kernels, and of both sides */
static bool all(int value) { /* since the last time */
    OK(cudaDeviceSynchronize());
    bool good = true;
    for (int i = 0; i < N; i++) {
        good = good && g_x[i] == value;
        g_x[i] = 0;
    }
    return good;
}

/* ---- what may stand before <<< ---- */

#define DEFINE(name, expression) \
    __global__ void name##_kernel(int *x) { x[threadIdx.x] = expression; } \
    static void name##_all(int *x) { name##_kernel<<<1, N>>>(x); }
DEFINE(three, 3)
DEFINE(header, add_one(int((make_float2(1, 2) + make_float2(3, 4)).y)))
#define PASTED(a, b)    a##_##b<<<1, N>>>(g_x)
#define KERNEL_OF(name) name##_kernel

template <class T> struct Box { typedef T type; };
template <class T> __global__ void boxed(int *x) { x[threadIdx.x] = int(sizeof(T)); }
typedef void (*Kernel)(int *);
static Kernel kernel_of(int i) { return i == 3 ? three_kernel : header_kernel; }
struct Table {
    std::vector<Kernel> kernels{three_kernel};
    Kernel first = three_kernel;
    Table *self() { return this; }
    template <class T> static void run() { boxed<Box<Box<T>>><<<1, N>>>(g_x); }
};
static void pasted() {
    three_all(g_x);
    CHECK(all(3));
    PASTED(three, kernel);
    CHECK(all(3));
    KERNEL_OF(header)<<<1, N>>>(g_x);
    CHECK(all(7));
}
static void expressions() {
    Table t, *p = &t;
    kernel_of(3)<<<1, N>>>(g_x);
    CHECK(all(3));
    if (p) (kernel_of(4))<<<1, N>>>(g_x);
    CHECK(all(7));
    t.kernels.at(0)<<<1, N>>>(g_x);
    CHECK(all(3));
    p->self()->kernels[0]<<<1, N>>>(g_x);
    CHECK(all(3));
    (*p).first<<<1, N>>>(g_x);
    CHECK(all(3));
    if (p) ::three_kernel<<<1, N>>>(g_x);
    CHECK(all(3));
    boxed<Box<Box<int>>><<<1, N>>>(g_x);
    CHECK(all(1));
    boxed<Box<Box<Box<int>::type>>::type><<<1, N>>>(g_x);
    CHECK(all(1));
    Table::run<int>();
    CHECK(all(1));
}

/* ---- words of nvcc that a host compiler has not ---- */

__device__ __noinline__ int not_inlined(int x) { return x; }
__noinline__ __device__ __nv_pure__ int not_either(int x) { return x; }
__attribute__((__noinline__)) static int of_the_host(int x) { return x; }
static __forceinline__ __device__ int inlined(const int *__restrict__ x) { return *x; }
struct __align__(16) Aligned { int x; };
__global__ __launch_bounds__(N) void bounds_of_one(int *x) { x[threadIdx.x] = not_inlined(1) + not_either(2); }
__global__ void __launch_bounds__(N, 2) bounds_of_two(int *__restrict__ x) {
    x[threadIdx.x] = inlined(x + threadIdx.x);
}
template <int Max>
__global__ void __launch_bounds__(Max, 2, 1) bounds_of_three(const __grid_constant__ Aligned a, int *x) {
    __builtin_assume(x != nullptr);
    __builtin_assume(std::is_same<Aligned, Aligned>::value);
    int *y = static_cast<int *>(__builtin_assume_aligned(x, 16));
    y[threadIdx.x] = __builtin_expect(a.x, 5);
}
__managed__ int shared_by_both, and_more[N];
__global__ void managed() { and_more[threadIdx.x] = shared_by_both; }
static void words() {
    bounds_of_one<<<1, N>>>(g_x);
    bounds_of_two<<<1, N>>>(g_x);
    CHECK(all(3) && of_the_host(3) == 3);
    bounds_of_three<N><<<1, N>>>({5}, g_x);
    CHECK(all(5));
    OK(cudaDeviceSynchronize());
    shared_by_both = 9;
    managed<<<1, N>>>();
    OK(cudaDeviceSynchronize());
    CHECK(and_more[N - 1] == 9);
}

/* ---- arguments of kernels ---- */

struct Pair {
    int *x;
    int n;
};
__global__ void by_default(int *x, int first = 5, float more = 2) { x[threadIdx.x] = first + int(more); }
template <class T> __global__ void of_template(T *x, T v, int n = N) {
    if (int(threadIdx.x) < n) x[threadIdx.x] = v;
}
__global__ void of_pair(Pair p) {
    if (p.x) p.x[threadIdx.x] = p.n;
}
__global__ void only_default(int v = 3) { and_more[threadIdx.x] = v; }
static void arguments() {
    by_default<<<1, N>>>(g_x);
    CHECK(all(7));
    by_default<<<1, N>>>(g_x, 2.5);
    CHECK(all(4));
    by_default<<<1, N>>>(g_x, 1, 1);
    CHECK(all(2));
    of_template<int><<<1, N>>>(g_x, 7.5f);
    CHECK(all(7));
    of_template<<<1, N>>>(g_x, 8);
    CHECK(all(8));
    of_pair<<<1, N>>>({});
    CHECK(all(0));
    of_pair<<<1, N>>>({g_x, 6});
    CHECK(all(6));
    only_default<<<1, N>>>();
    OK(cudaDeviceSynchronize());
    CHECK(and_more[N - 1] == 3);
}

/* ---- shared memory ---- */

template <class T> __global__ void pointers(T *x) {
    __shared__ T(*row)[4], many[2][4];
    __shared__ int (*function)(int), count;
    if (!threadIdx.x) {
        row = many;
        many[1][3] = 2;
        function = not_inlined;
        count = 1;
    }
    __syncthreads();
    x[threadIdx.x] = row[1][3] + function(count);
}
static void shared_memory() {
    pointers<<<1, N>>>(g_x);
    CHECK(all(3));
}

/* ---- calls of the API that take a kernel by its name ---- */

static void calls() {
    cudaFuncAttributes a;
    int n = 0, block = 0;
    size_t bytes = 0;
    void *args[] = {&g_x};
    OK(cudaFuncSetCacheConfig(three_kernel, cudaFuncCachePreferL1));
    OK(cudaFuncSetCacheConfig(of_template<int>, cudaFuncCachePreferShared));
    OK(cudaFuncSetCacheConfig((const void *)three_kernel, cudaFuncCachePreferNone));
    OK(cudaFuncSetAttribute(three_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10));
    OK(cudaFuncGetAttributes(&a, three_kernel));
    OK(cudaFuncGetAttributes(&a, (void *)of_template<int>));
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, three_kernel, N, bytes));
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&n, three_kernel, N, bytes, 0));
    OK(cudaOccupancyMaxPotentialBlockSize(&n, &block, three_kernel));
    OK(cudaOccupancyMaxPotentialBlockSize(&n, &block, three_kernel, bytes, N));
    OK(cudaOccupancyMaxPotentialBlockSizeWithFlags(&n, &block, three_kernel, bytes, N, 0));
    OK(cudaOccupancyMaxPotentialBlockSizeVariableSMem(&n, &block, three_kernel, [](int) { return size_t(0); }));
    CHECK(n > 0 && block > 0);
    OK(cudaLaunchKernel(three_kernel, dim3(1), dim3(N), args, bytes, cudaStream_t(0)));
    CHECK(all(3));
    OK(cudaLaunchCooperativeKernel(three_kernel, dim3(1), dim3(N), args));
    CHECK(all(3));
    cudaLaunchConfig_t c = {};
    c.gridDim = 1;
    c.blockDim = N;
    OK(cudaLaunchKernelEx(&c, three_kernel, g_x));
    CHECK(all(3));
    OK(cudaLaunchKernelExC(&c, (void *)three_kernel, args));
    CHECK(all(3));
#if CUDART_VERSION < 14000 /* deprecated: for GPUs of another time */
    cudaSharedMemConfig config;
    OK(cudaFuncSetSharedMemConfig(three_kernel, cudaSharedMemBankSizeFourByte));
    OK(cudaDeviceSetSharedMemConfig(cudaSharedMemBankSizeEightByte));
    OK(cudaDeviceGetSharedMemConfig(&config));
#endif
}

/* ---- cooperative groups ---- */

__device__ int sum_of(const cg::thread_group &g, int *room, int v) { /* any of them */
    room[g.thread_rank()] = v;
    g.sync();
    int sum = 0;
    for (unsigned i = 0; i < g.size(); i++)
        sum += room[i];
    g.sync();
    return sum;
}
__device__ unsigned size_of(cg::thread_group g) { return unsigned(cg::group_size(g)); }
__global__ void any_group(int *x) {
    __shared__ int room[N];
    cg::thread_block block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    cg::thread_group four = cg::tiled_partition(block, 4), two = cg::tiled_partition(four, 2);
    int t = int(threadIdx.x), *own = room + (t & ~31);
    int of_block = sum_of(block, room, 1), of_warp = sum_of(warp, own, 2), of_four = sum_of(four, room + (t & ~3), 3);
    x[t] = of_block + of_warp + of_four + int(size_of(two) + size_of(cg::this_grid())) + (cg::thread_rank(block) != t);
}
__global__ void partitions(int *x) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    unsigned t = warp.thread_rank();
    cg::coalesced_group third = cg::binary_partition(warp, t % 3 == 0), ten = cg::labeled_partition(warp, t / 10);
    bool good = third.size() == (t % 3 ? 21 : 11) && third.meta_group_size() == 2;
    good = good && third.meta_group_rank() == (t % 3 == 0) && cg::binary_partition(ten, true).size() == ten.size();
    good = good && ten.thread_rank() == t % 10 && ten.meta_group_rank() == t / 10 && ten.meta_group_size() == 4;
    cg::coalesced_group five = cg::tiled_partition(third, 4);
    good = good && five.size() == (third.thread_rank() / 4 == third.size() / 4 ? third.size() % 4 : 4);
    auto eight = cg::tiled_partition<8>(warp);
    good = good && eight.meta_group_size() == 4 && eight.meta_group_rank() == t / 8;
    int alike = 0;
    good = good && eight.match_all(t / 8, alike) == 0xff && alike == 1;
    good = good && eight.match_all(t, alike) == 0 && alike == 0;
    x[threadIdx.x] = good;
}
__global__ void one_for_all(int *x) {
    __shared__ int chosen;
    cg::thread_block block = cg::this_thread_block();
    cg::invoke_one(block, [&](int v) { chosen = v; }, 4);
    auto token = block.barrier_arrive();
    block.barrier_wait(std::move(token));
    int most = cg::invoke_one_broadcast(cg::tiled_partition<16>(block), [&] { return 2 * chosen; });
    x[threadIdx.x] = chosen + most;
}
static void groups() {
    any_group<<<1, N>>>(g_x);
    CHECK(all(N + 2 * 32 + 3 * 4 + 2 + N));
    partitions<<<1, N>>>(g_x);
    CHECK(all(1));
    one_for_all<<<1, N>>>(g_x);
    CHECK(all(12));
}

/* ---- asynchronous copies ---- */

__device__ int in_the_device;
__global__ void spaces(int *x) {
    __shared__ int room;
    int own = 0;
    bool good = __isShared(&room) && !__isGlobal(&room) && !__isLocal(&room);
    good = good && __isGlobal(x) && __isGlobal(&in_the_device) && !__isShared(x) && !__isLocal(x);
    x[threadIdx.x] = good && __isLocal(&own) && !__isGlobal(&own) && !__isShared(&own);
}
__global__ void primitives(int *x) {
    __shared__ alignas(16) int room[N];
    unsigned t = threadIdx.x;
    if (t % 4 == 0) __pipeline_memcpy_async(room + t, x + t, 16);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    x[t] = room[N - 1 - t];
}
__global__ void with_barrier(int *x) {
    __shared__ cuda::barrier<cuda::thread_scope_block> ready;
    __shared__ alignas(16) int room[N], other[N];
    auto block = cg::this_thread_block();
    if (block.thread_rank() == 0) init(&ready, block.size());
    block.sync();
    cuda::memcpy_async(block, room, x, sizeof room, ready);
    ready.arrive_and_wait();
    int mirrored = room[N - 1 - threadIdx.x];
    block.sync();
    cuda::memcpy_async(block, room, x, cuda::aligned_size_t<16>(sizeof room), ready);
    cuda::memcpy_async(other + threadIdx.x, &mirrored, sizeof mirrored, ready);
    ready.arrive_and_wait();
    x[threadIdx.x] = room[0] == 0 ? other[threadIdx.x] : -1;
}
static bool mirrored() { /* 0, 1, 2, ... the other way round */
    OK(cudaDeviceSynchronize());
    bool good = true;
    for (int i = 0; i < N; i++) {
        good = good && g_x[i] == N - 1 - i;
        g_x[i] = i;
    }
    return good;
}
static void copies() {
    spaces<<<1, N>>>(g_x);
    CHECK(all(1));
    CHECK(!mirrored());
    primitives<<<1, N>>>(g_x);
    CHECK(mirrored());
    with_barrier<<<1, N>>>(g_x);
    CHECK(mirrored());
}

/* ---- numbers ---- */

__device__ float2 two;
__device__ float4 four;
__global__ void vectors(int *x) {
    float2 before = atomicAdd(&two, make_float2(1, 2));
    if (threadIdx.x & 1)
        atomicAdd(&four, make_float4(1, 2, 3, 4));
    else
        atomicAdd_block(&four, make_float4(1, 2, 3, 4));
    x[threadIdx.x] = before.y == 2 * before.x;
}
__global__ void gammas(int *x) { /* which of libm writes a variable of all threads */
    float f = lgammaf(float(threadIdx.x % 4 + 1)), g = std::lgamma(float(threadIdx.x % 4 + 1));
    double d = lgamma(double(threadIdx.x % 4 + 1));
    const float expected[] = {0, 0, 2, 6};
    x[threadIdx.x] =
        f == g && fabs(f - d) < 1e-6 && (threadIdx.x % 4 < 2 || fabs(exp(d) - expected[threadIdx.x % 4]) < 1e-6);
}
static void numbers() {
    float4 v;
    float2 w;
    vectors<<<1, N>>>(g_x);
    CHECK(all(1));
    OK(cudaMemcpyFromSymbol(&v, four, sizeof v));
    OK(cudaMemcpyFromSymbol(&w, two, sizeof w));
    CHECK(v.x == N && v.w == 4 * N && w.x == N && w.y == 2 * N);
    gammas<<<1, N>>>(g_x);
    CHECK(all(1));
}

int main() {
    OK(cudaMallocManaged(&g_x, N * sizeof(int)));
    all(0);
    pasted();
    expressions();
    words();
    arguments();
    shared_memory();
    calls();
    groups();
    copies();
    numbers();
    OK(cudaFree(g_x));
    printf("forms: %d passed, %d failed\n", passed, failed);
    return failed != 0;
}
