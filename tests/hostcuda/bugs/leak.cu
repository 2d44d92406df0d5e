/* A leak: a buffer per call, and no cudaFree. FOUND asan: leak: device buffer */
#include <cstdio>
__global__ void fill(float *x, float v) { x[threadIdx.x] = v; }
static float first(float v) {
    float *d, h;
    cudaMalloc(&d, 32 * sizeof(float)); /* HERE */
    fill<<<1, 32>>>(d, v);
    cudaMemcpy(&h, d, sizeof h, cudaMemcpyDeviceToHost);
    return h; /* cudaFree(d) before it */
}
int main() { printf("%g\n", first(1) + first(2)); }
