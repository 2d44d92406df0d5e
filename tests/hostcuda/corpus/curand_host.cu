/* curand_host.cu - random numbers made by the host interface of cuRAND: uniform, normal, and a seed set again gives the
 * same. */
#include <curand.h>
#include <cuda_runtime.h>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <vector>
#define CUDA_CALL(x) \
    do { \
        if ((x) != cudaSuccess) { \
            printf("Error at %s:%d\n", __FILE__, __LINE__); \
            return EXIT_FAILURE; \
        } \
    } while (0)
#define CURAND_CALL(x) \
    do { \
        if ((x) != CURAND_STATUS_SUCCESS) { \
            printf("Error at %s:%d\n", __FILE__, __LINE__); \
            return EXIT_FAILURE; \
        } \
    } while (0)
__global__ void inside(const float2 *p, int n, unsigned *hits) {
    unsigned mine = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        mine += p[i].x * p[i].x + p[i].y * p[i].y <= 1.0f;
    mine = __reduce_add_sync(0xffffffffu, mine);
    if ((threadIdx.x & 31) == 0) atomicAdd(hits, mine);
}
int main() {
    const int n = 20000;
    float *points, *noise;
    unsigned *hits, h = 0;
    CUDA_CALL(cudaMalloc((void **)&points, 2 * n * sizeof(float)));
    CUDA_CALL(cudaMalloc((void **)&noise, n * sizeof(float)));
    CUDA_CALL(cudaMallocManaged(&hits, sizeof *hits));
    *hits = 0;
    curandGenerator_t gen;
    CURAND_CALL(curandCreateGenerator(&gen, CURAND_RNG_PSEUDO_DEFAULT));
    CURAND_CALL(curandSetPseudoRandomGeneratorSeed(gen, 1234ULL));
    CURAND_CALL(curandGenerateUniform(gen, points, 2 * n));
    inside<<<8, 64>>>(reinterpret_cast<float2 *>(points), n, hits);
    CUDA_CALL(cudaGetLastError());
    CUDA_CALL(cudaDeviceSynchronize());
    h = *hits;
    CURAND_CALL(curandGenerateNormal(gen, noise, n, 2.0f, 0.5f));
    std::vector<float> x(n), y(n);
    CUDA_CALL(cudaMemcpy(x.data(), noise, n * sizeof(float), cudaMemcpyDeviceToHost));
    CURAND_CALL(curandSetPseudoRandomGeneratorSeed(gen, 1234ULL));
    CURAND_CALL(curandSetGeneratorOffset(gen, 0));
    CURAND_CALL(curandGenerateUniform(gen, noise, n));
    CUDA_CALL(cudaMemcpy(y.data(), noise, n * sizeof(float), cudaMemcpyDeviceToHost));
    std::vector<float> again(n);
    CUDA_CALL(cudaMemcpy(again.data(), points, n * sizeof(float), cudaMemcpyDeviceToHost));
    double mean = 0, var = 0;
    for (float v : x)
        mean += v / n;
    for (float v : x)
        var += (v - mean) * (v - mean) / n;
    bool ok = std::fabs(4.0 * h / n - M_PI) < 0.05 && std::fabs(mean - 2) < 0.02 &&
        std::fabs(std::sqrt(var) - 0.5) < 0.02 && again == y;
    std::cout << "curand_host: " << (ok ? "ok" : "WRONG") << ", pi " << 4.0 * h / n << ", mean " << mean << std::endl;
    CURAND_CALL(curandDestroyGenerator(gen));
    cudaFree(points);
    cudaFree(noise);
    cudaFree(hits);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
