/* A launch that failed, and nobody asked: the result is what was there before.
 * FOUND asan: the launch of twice failed */
#include <cstdio>
__global__ void twice(float *x) { x[threadIdx.x] *= 2; }
int main() {
    float *d, h[2048] = {1};
    cudaMalloc(&d, sizeof h);
    cudaMemcpy(d, h, sizeof h, cudaMemcpyHostToDevice);
    twice<<<1, 2048>>>(d); /* HERE: a block has at most 1024 threads */
    cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
    printf("%g\n", h[0]);
    cudaFree(d);
}
