#include "act.h"
__constant__ float scale = 2.0f;
static __device__ float act(float x) { return scale * x / (1.0f + __expf(-x)); }
__global__ void silu_kernel(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = act(x[i]);
}
void silu(float *x, int n) { silu_kernel<<<(n + 63) / 64, 64>>>(x, n); }
