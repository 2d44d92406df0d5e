/* saxpy.cu - the first program of every course: managed memory, one kernel. */
#include <cuda_runtime.h>
#include <device_launch_parameters.h>
#include <stdio.h>

__global__ void saxpy(int n, float a, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

int main(void) {
    const int n = 10000;
    float *x, *y, worst = 0;
    cudaMallocManaged(&x, n * sizeof(float));
    cudaMallocManaged(&y, n * sizeof(float));
    for (int i = 0; i < n; i++) {
        x[i] = i * 0.5f;
        y[i] = 1.0f;
    }
    saxpy<<<(n + 255) / 256, 256>>>(n, 2.0f, x, y);
    cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess) printf("launch: %s\n", cudaGetErrorString(error));
    cudaDeviceSynchronize();
    for (int i = 0; i < n; i++)
        worst = fmaxf(worst, fabsf(y[i] - (i + 1.0f)));
    printf("saxpy: %s, worst error %g\n", worst < 1e-6f ? "ok" : "WRONG", worst);
    cudaFree(x);
    cudaFree(y);
    cudaDeviceReset();
    return worst < 1e-6f ? 0 : 1;
}
