/* Out of bounds: the grid is rounded up, and nothing stops the threads behind the end.
 * FOUND asan: address: use-after-poison */
#include <cstdio>
__global__ void twice(float *x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] *= 2; /* HERE: if (i < n) */
}
int main() {
    const int n = 100;
    float *d;
    cudaMalloc(&d, n * sizeof(float));
    cudaMemset(d, 0, n * sizeof(float));
    twice<<<(n + 63) / 64, 64>>>(d);
    cudaDeviceSynchronize();
    printf("done\n");
    cudaFree(d);
}
