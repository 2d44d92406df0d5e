/* orders.cu - threads that are ordered by something else than a barrier of the block, and one read that is not: a race
 * with the write behind them. In one launch of few threads, so that nothing can be learned from an earlier one. Whoever
 * leaves out a read because two others stand for it must know that these two are ordered and that one is not.
 *   1 release and acquire of libcu++   2 fences and atomics   3 a barrier that threads with reads do not reach
 *   4 __syncwarp of a half of the warp */
#include <cstdio>
#include <cuda/atomic>
#ifndef MISTAKE
#define MISTAKE 0
#endif
constexpr int kReaders = MISTAKE ? 8 : 2;

__device__ void arrive(int *flag) {
#if MISTAKE == 2
    __threadfence();
    atomicAdd(flag, 1);
#else
    cuda::atomic_ref<int, cuda::thread_scope_device>(*flag).fetch_add(1, cuda::memory_order_release);
#endif
}
__device__ void wait_for_two(int *flag) {
#if MISTAKE == 2
    while (atomicAdd(flag, 0) < 2) {
    }
    __threadfence();
#else
    while (cuda::atomic_ref<int, cuda::thread_scope_device>(*flag).load(cuda::memory_order_acquire) < 2) {
    }
#endif
}
__global__ void by_flag(int *x, int *flag, int *out) {
    int t = threadIdx.x;
    if (t < kReaders) out[t] = x[0];
    __shfl_sync(~0u, t, 0); /* all have read; that orders no memory */
    if (t < 2) arrive(flag);
    if (t == 30) {
        wait_for_two(flag);
        x[0] = 1; /* behind the reads of threads 0 and 1 */
    }
}
__global__ void by_barrier(int *x, int *out) {
    int t = threadIdx.x;
    out[t] = x[0];
    if (t >= 32) return;
    __syncthreads();
    if (t == 0) x[0] = 1; /* behind the reads of threads 0 to 31 */
}
__global__ void by_warp(int *x, int *out) {
    int t = threadIdx.x;
    if (t < 8) out[t] = x[0];
    __shfl_sync(~0u, t, 0);
    if (t < 4) __syncwarp(0xf);
    if (t == 0) x[0] = 1; /* behind the reads of threads 0 to 3 */
}
int main() {
    int *d;
    cudaMalloc(&d, 300 * sizeof(int));
    cudaMemset(d, 0, 300 * sizeof(int));
#if MISTAKE == 3
    by_barrier<<<1, 64>>>(d, d + 8);
#elif MISTAKE == 4
    by_warp<<<1, 32>>>(d, d + 8);
#else
    by_flag<<<1, 32>>>(d, d + 2, d + 8);
#endif
    int x;
    cudaMemcpy(&x, d, sizeof x, cudaMemcpyDeviceToHost);
    printf("orders: %d\n", x);
    cudaFree(d);
    return x != 1;
}
