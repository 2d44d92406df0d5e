/* A float that the integer type cannot hold: a GPU gives the nearest, 0 for NaN. FOUND asan: outside the range */
#include <cstdio>
__global__ void quantize(unsigned char *to, const float *from) {
    to[threadIdx.x] = static_cast<unsigned char>(from[threadIdx.x] * 300.0f); /* HERE */
}
int main() {
    float ones[32];
    for (float &x : ones)
        x = 1;
    float *from;
    unsigned char *to, got;
    cudaMalloc(&from, sizeof ones);
    cudaMalloc(&to, 32);
    cudaMemcpy(from, ones, sizeof ones, cudaMemcpyHostToDevice);
    quantize<<<1, 32>>>(to, from);
    cudaMemcpy(&got, to, 1, cudaMemcpyDeviceToHost);
    printf("%d\n", got);
    cudaFree(from);
    cudaFree(to);
}
