#include "lstm.cuh"
__device__ unsigned long long g_calls = 0;
__constant__ float g_clip = 1.0f;
__device__ float sigmoid(float x) {
    if (threadIdx.x == 0) atomicAdd(&g_calls, 1ULL);
    return 1.0f / (1.0f + expf(-x));
}
__device__ float d_sigmoid(float y) { return y * (1.0f - y); }
__global__ void update(float *w, float *dw, int n, float rate) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float g = fminf(fmaxf(dw[i], -g_clip), g_clip);
        w[i] -= rate * g;
        dw[i] = 0.0f;
    }
}
