/* user_impl.cu - the one translation unit with kernels; ordinary CUDA C++ for nvcc and for the shim. */
#include <cuda_runtime.h>

static __global__ void k_double(const float *in, float *out, int n) {
    int i = int(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n) out[i] = in[i] * 2.0f;
}
extern "C" int user_double(const float *in, float *out, int n) {
    float *d = nullptr;
    cudaLaunchConfig_t c = {};
    size_t bytes = size_t(n) * sizeof(float);
    cudaError_t e = cudaMalloc(&d, 2 * bytes);
    c.gridDim = dim3(unsigned(n + 63) / 64);
    c.blockDim = dim3(64);
    if (!e) e = cudaMemcpy(d, in, bytes, cudaMemcpyHostToDevice);
    if (!e) e = cudaLaunchKernelEx(&c, k_double, (const float *)d, d + n, n);
    if (!e) e = cudaMemcpy(out, d + n, bytes, cudaMemcpyDeviceToHost);
    cudaFree(d);
    return int(e);
}
