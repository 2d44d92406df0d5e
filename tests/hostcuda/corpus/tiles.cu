/* tiles.cu - cooperative groups: tiles of 4, 8 and 16, coalesced threads, a copy by the block, votes; cuda::barrier. */
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cuda/barrier>
#include <cuda_runtime.h>
#include <cstdio>
#include <cstdlib>
using namespace cooperative_groups;
namespace cg = cooperative_groups;
template <int TILE> __device__ int tile_sum(const thread_block_tile<TILE> &g, int v) {
    for (int i = g.size() / 2; i > 0; i /= 2)
        v += g.shfl_down(v, i);
    return v;
}
template <int TILE> __global__ void sums(const int *x, int *out) {
    thread_block block = this_thread_block();
    auto tile = tiled_partition<TILE>(block);
    int v = x[block.group_index().x * block.size() + block.thread_rank()];
    int a = tile_sum<TILE>(tile, v), b = cg::reduce(tile, v, cg::plus<int>());
    if (tile.thread_rank() == 0) out[blockIdx.x * (blockDim.x / TILE) + tile.meta_group_rank()] = a == b ? a : -1;
}
__device__ int atomic_aggregated(int *counter) {
    coalesced_group active = coalesced_threads();
    int first = 0;
    if (active.thread_rank() == 0) first = atomicAdd(counter, active.size());
    return active.shfl(first, 0) + active.thread_rank();
}
__global__ void keep_odd(const int *x, int n, int *out, int *count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] % 2) out[atomic_aggregated(count)] = x[i];
}
__global__ void ballots(const int *x, unsigned *out) {
    auto tile = tiled_partition<16>(this_thread_block());
    unsigned m = tile.ballot(x[threadIdx.x] > 4);
    bool any = tile.any(x[threadIdx.x] == 3), all = tile.all(x[threadIdx.x] < 10);
    tile.sync();
    if (tile.thread_rank() == 0) out[tile.meta_group_rank()] = m | any << 16 | all << 17;
}
__global__ void turned(const int *x, int *out) {
    __shared__ int part[64];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ cuda::barrier<cuda::thread_scope_block> arrived;
    thread_block block = this_thread_block();
    if (block.thread_rank() == 0) init(&arrived, block.size());
    block.sync();
    cg::memcpy_async(block, part, x, sizeof(int) * block.size());
    cg::wait(block);
    int v = part[block.size() - 1 - threadIdx.x];
    arrived.arrive_and_wait();
    part[threadIdx.x] = v;
    arrived.wait(arrived.arrive());
    out[threadIdx.x] = part[threadIdx.x ^ 1];
}
int main() {
    const int n = 256;
    int *x, *out, *count, h[n], bad = 0;
    unsigned *bits;
    cudaMallocManaged(&x, n * sizeof(int));
    cudaMallocManaged(&out, n * sizeof(int));
    cudaMallocManaged(&count, sizeof(int));
    cudaMallocManaged(&bits, 4 * sizeof(unsigned));
    for (int i = 0; i < n; i++)
        h[i] = x[i] = i * 13 % 10;
    sums<4><<<4, 64>>>(x, out);
    cudaDeviceSynchronize();
    for (int t = 0; t < n / 4; t++) {
        int s = 0;
        for (int i = 0; i < 4; i++)
            s += h[4 * t + i];
        bad += s != out[t];
    }
    sums<8><<<4, 64>>>(x, out);
    cudaDeviceSynchronize();
    for (int t = 0; t < n / 8; t++) {
        int s = 0;
        for (int i = 0; i < 8; i++)
            s += h[8 * t + i];
        bad += s != out[t];
    }
    *count = 0;
    keep_odd<<<4, 64>>>(x, n, out, count);
    cudaDeviceSynchronize();
    int odd = 0, sum = 0, got = 0;
    for (int i = 0; i < n; i++) {
        odd += h[i] % 2;
        sum += h[i] % 2 * h[i];
    }
    for (int i = 0; i < *count; i++)
        got += out[i];
    bad += odd != *count || sum != got;
    ballots<<<1, 64>>>(x, bits);
    cudaDeviceSynchronize();
    for (int t = 0; t < 4; t++) {
        unsigned m = 0, any = 0;
        for (int i = 0; i < 16; i++) {
            m |= (unsigned)(h[16 * t + i] > 4) << i;
            any |= h[16 * t + i] == 3;
        }
        bad += bits[t] != (m | any << 16 | 1u << 17);
    }
    turned<<<1, 64>>>(x, out);
    cudaDeviceSynchronize();
    for (int i = 0; i < 64; i++)
        bad += out[i] != h[63 - (i ^ 1)];
    printf("tiles: %s\n", bad ? "WRONG" : "ok");
    cudaFree(x);
    cudaFree(out);
    cudaFree(count);
    cudaFree(bits);
    return bad ? EXIT_FAILURE : EXIT_SUCCESS;
}
