/* A missing __syncthreads(): a thread reads what another may not have written yet. FOUND tsan: data race */
#include <cstdio>
__global__ void reverse(int *x) {
    __shared__ int copy[64];
    copy[threadIdx.x] = x[threadIdx.x];      /* HERE: __syncthreads() behind this */
    x[threadIdx.x] = copy[63 - threadIdx.x]; /* HERE */
}
int main() {
    int h[64], *d;
    for (int i = 0; i < 64; i++)
        h[i] = i;
    cudaMalloc(&d, sizeof h);
    cudaMemcpy(d, h, sizeof h, cudaMemcpyHostToDevice);
    reverse<<<1, 64>>>(d);
    cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
    printf("%d\n", h[0]);
    cudaFree(d);
}
