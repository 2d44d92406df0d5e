/* reduction.cu - four ways to add up an array: a tree in shared memory, warp shuffles, cooperative groups,
 * atomics in double. */
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_runtime.h>
#include <iostream>
#include <numeric>
#include <vector>
namespace cg = cooperative_groups;

template <unsigned int BLOCK> __global__ void tree(const float *in, float *out, unsigned int n) {
    __shared__ float part[BLOCK];
    unsigned int i = blockIdx.x * BLOCK * 2 + threadIdx.x;
    part[threadIdx.x] = (i < n ? in[i] : 0) + (i + BLOCK < n ? in[i + BLOCK] : 0);
    __syncthreads();
    for (unsigned int s = BLOCK / 2; s > 0; s >>= 1) {
        if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(out, part[0]);
}
__inline__ __device__ float warp_sum(float v) {
    for (int offset = warpSize / 2; offset > 0; offset /= 2)
        v += __shfl_down_sync(0xffffffff, v, offset);
    return v;
}
__global__ void shuffles(const float *in, float *out, int n) {
    static __shared__ float warps[32];
    float v = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        v += in[i];
    v = warp_sum(v);
    int lane = threadIdx.x % warpSize, warp = threadIdx.x / warpSize;
    if (lane == 0) warps[warp] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / warpSize ? warps[lane] : 0;
    if (warp == 0) v = warp_sum(v);
    if (threadIdx.x == 0) atomicAdd(out, v);
}
__global__ void groups(const float *in, float *out, int n) {
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<32>(block);
    float v = 0;
    for (int i = block.group_index().x * block.size() + block.thread_rank(); i < n; i += gridDim.x * block.size())
        v += in[i];
    v = cg::reduce(tile, v, cg::plus<float>());
    if (tile.thread_rank() == 0) atomicAdd(out, v);
}
__global__ void doubles(const float *in, double *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(out, (double)in[i]);
}
int main() {
    const int n = 5000;
    std::vector<float> h(n);
    for (int i = 0; i < n; i++)
        h[i] = float((i * 7919) % 100) / 16.0f;
    double expected = std::accumulate(h.begin(), h.end(), 0.0);
    float *in, *out, sums[3];
    double *dout, sum;
    cudaMalloc(&in, n * sizeof(float));
    cudaMalloc(&out, 3 * sizeof(float));
    cudaMalloc(&dout, sizeof(double));
    cudaMemcpy(in, h.data(), n * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemset(out, 0, 3 * sizeof(float));
    cudaMemset(dout, 0, sizeof(double));
    tree<128><<<(n + 255) / 256, 128>>>(in, out, n);
    shuffles<<<4, 128>>>(in, out + 1, n);
    groups<<<4, 128>>>(in, out + 2, n);
    doubles<<<(n + 127) / 128, 128>>>(in, dout, n);
    cudaMemcpy(sums, out, sizeof sums, cudaMemcpyDeviceToHost);
    cudaMemcpy(&sum, dout, sizeof sum, cudaMemcpyDeviceToHost);
    bool ok = cudaGetLastError() == cudaSuccess && sum == expected;
    for (float s : sums)
        ok = ok && std::abs(s - expected) < 1e-5 * expected;
    std::cout << "reduction: " << (ok ? "ok" : "WRONG") << ", " << sum << std::endl;
    cudaFree(in);
    cudaFree(out);
    cudaFree(dout);
    return ok ? 0 : 1;
}
