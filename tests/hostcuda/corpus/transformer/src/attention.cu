#include "config.h"
#include "layers.h"
#include "warp.cuh"
// One warp for a query of a head; a lane for each key.
__global__ void attention_kernel(const float *qkv, float *y) {
    extern __shared__ float score[];
    int query = blockIdx.x, head = blockIdx.y, key = threadIdx.x;
    const float *q = qkv + query * 3 * WIDTH + head * HEAD;
    float s = -INFINITY;
    if (key <= query) {
        const float *k = qkv + key * 3 * WIDTH + WIDTH + head * HEAD;
        s = 0;
        for (int i = 0; i < HEAD; i++)
            s += q[i] * k[i];
        s *= rsqrtf((float)HEAD);
    }
    float most = warp_reduce(s, Max()), e = key <= query ? expf(s - most) : 0.f, all = warp_reduce(e, Sum());
    score[key] = e / all;
    __syncwarp();
    if (key >= HEAD) return;
    float sum = 0;
    for (int k = 0; k <= query; k++)
        sum += score[k] * qkv[k * 3 * WIDTH + 2 * WIDTH + head * HEAD + key];
    y[query * WIDTH + head * HEAD + key] = sum;
}
void attention(const Tensor &qkv, Tensor &y) {
    attention_kernel<<<dim3(TOKENS, HEADS), 32, 32 * sizeof(float)>>>(qkv.data, y.data);
    CUDA_CHECK(cudaGetLastError());
}
