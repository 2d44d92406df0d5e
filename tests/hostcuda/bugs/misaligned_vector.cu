/* A misaligned vector: float4 from an address that 16 does not divide. FOUND asan: misaligned address */
#include <cstdio>
__global__ void copy(float4 *to, const float *from) {
    const float4 *four = reinterpret_cast<const float4 *>(from + 1);
    to[threadIdx.x] = four[threadIdx.x]; /* HERE */
}
int main() {
    float *d;
    cudaMalloc(&d, 300 * sizeof(float));
    cudaMemset(d, 0, 300 * sizeof(float));
    copy<<<1, 32>>>(reinterpret_cast<float4 *>(d + 160), d);
    cudaDeviceSynchronize();
    printf("done\n");
    cudaFree(d);
}
