/* A race: all threads add to one element, and updates are lost. FOUND tsan: data race */
#include <cstdio>
__global__ void count(int *n) { *n += 1; } /* HERE: atomicAdd(n, 1) */
int main() {
    int h = 0, *d;
    cudaMalloc(&d, sizeof h);
    cudaMemcpy(d, &h, sizeof h, cudaMemcpyHostToDevice);
    count<<<2, 32>>>(d);
    cudaMemcpy(&h, d, sizeof h, cudaMemcpyDeviceToHost);
    printf("%d\n", h);
    cudaFree(d);
}
