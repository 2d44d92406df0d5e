/* histogram.cu - bins in shared memory by atomics, edges in constant memory, a counter as a device variable. */
#include <cuda_runtime.h>
#include <cstdio>
#include <cstring>
constexpr int BINS = 16, N = 4096;
__constant__ float edges[BINS + 1];
__device__ unsigned int outside;

__global__ void histogram(const float *x, int n, unsigned int *bins) {
    __shared__ unsigned int mine[BINS];
    if (threadIdx.x < BINS) mine[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
        int b = 0;
        while (b < BINS && x[i] >= edges[b + 1])
            b++;
        if (x[i] < edges[0] || b == BINS)
            atomicInc(&outside, 0xffffffffu);
        else
            atomicAdd(&mine[b], 1u);
    }
    __syncthreads();
    if (threadIdx.x < BINS) atomicAdd(bins + threadIdx.x, mine[threadIdx.x]);
}
int main() {
    static float x[N], h[BINS + 1];
    unsigned int want[BINS] = {0}, got[BINS], lost = 0, none = 0, *d;
    float *dx;
    for (int i = 0; i <= BINS; i++)
        h[i] = i * i * 0.25f;
    for (int i = 0; i < N; i++) {
        x[i] = (i * 37 % 1000) * 0.07f;
        int b = 0;
        while (b < BINS && x[i] >= h[b + 1])
            b++;
        b == BINS ? lost++ : want[b]++;
    }
    cudaMalloc(&dx, sizeof x);
    cudaMalloc(&d, sizeof want);
    cudaMemcpy(dx, x, sizeof x, cudaMemcpyHostToDevice);
    cudaMemset(d, 0, sizeof want);
    cudaMemcpyToSymbol(edges, h, sizeof h);
    cudaMemcpyToSymbol(outside, &none, sizeof none);
    histogram<<<8, 64>>>(dx, N, d);
    cudaMemcpy(got, d, sizeof got, cudaMemcpyDeviceToHost);
    cudaMemcpyFromSymbol(&none, outside, sizeof none);
    bool ok = !memcmp(want, got, sizeof got) && none == lost && lost > 0;
    printf("histogram: %s, %u outside\n", ok ? "ok" : "WRONG", none);
    cudaFree(dx);
    cudaFree(d);
    return !ok;
}
