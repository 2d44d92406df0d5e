/* texture.cu - a blur through a texture object: refused by name. */
#include <cuda_runtime.h>
#include <cstdio>
__global__ void blur(cudaTextureObject_t image, float *out, int w) {
    int x = threadIdx.x;
    out[x] = (tex1Dfetch<float>(image, x) + tex1Dfetch<float>(image, x + 1)) / 2;
}
int main() {
    float *d, *out;
    cudaMalloc(&d, 33 * sizeof(float));
    cudaMalloc(&out, 32 * sizeof(float));
    cudaMemset(d, 0, 33 * sizeof(float));
    cudaResourceDesc r = {};
    r.resType = cudaResourceTypeLinear;
    r.res.linear.devPtr = d;
    r.res.linear.desc = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
    r.res.linear.sizeInBytes = 33 * sizeof(float);
    cudaTextureDesc t = {};
    cudaTextureObject_t image = 0;
    cudaCreateTextureObject(&image, &r, &t, NULL);
    blur<<<1, 32>>>(image, out, 32);
    cudaDeviceSynchronize();
    printf("texture: ok\n");
}
