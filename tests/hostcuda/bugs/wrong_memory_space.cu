/* The wrong memory: a kernel gets a pointer of the host. FOUND asan: a host pointer */
#include <cstdio>
__global__ void add(int *x, const int *y) { x[threadIdx.x] += y[threadIdx.x]; }
int main() {
    int h[32] = {1, 2, 3}, *d;
    cudaMalloc(&d, sizeof h);
    cudaMemcpy(d, h, sizeof h, cudaMemcpyHostToDevice);
    add<<<1, 32>>>(d, h); /* HERE: h must be copied, too */
    cudaDeviceSynchronize();
    printf("done\n");
    cudaFree(d);
}
