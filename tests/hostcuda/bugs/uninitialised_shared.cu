/* Shared memory that nobody has written: it is not zero. FOUND msan: uninitialised */
#include <cstdio>
__global__ void most(const int *x, int *out) {
    __shared__ int best;              /* if (threadIdx.x == 0) best = 0; __syncthreads(); */
    atomicMax(&best, x[threadIdx.x]); /* HERE */
    __syncthreads();
    if (threadIdx.x == 0) *out = best > 0 ? best : 0; /* HERE */
}
int main() {
    int h[33] = {3, 1, 4}, *d;
    cudaMalloc(&d, sizeof h);
    cudaMemcpy(d, h, sizeof h, cudaMemcpyHostToDevice);
    most<<<1, 32>>>(d, d + 32);
    cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
    printf("done\n");
    cudaFree(d);
}
