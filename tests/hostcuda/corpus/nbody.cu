/* nbody.cu - all pairs through tiles of shared memory, float4 positions, as in the samples. */
#include <cuda_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <cmath>
const int N = 192, TILE = 64;

__device__ float3 attract(float3 a, float4 me, float4 other) {
    float3 r = make_float3(other.x - me.x, other.y - me.y, other.z - me.z);
    float d = rsqrtf(r.x * r.x + r.y * r.y + r.z * r.z + 0.01f);
    float s = other.w * d * d * d;
    return make_float3(a.x + r.x * s, a.y + r.y * s, a.z + r.z * s);
}
__global__ void forces(const float4 *position, float3 *force) {
    extern __shared__ float4 tile[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 me = position[i];
    float3 sum = {0, 0, 0};
    for (int t = 0; t < gridDim.x; t++) {
        tile[threadIdx.x] = position[t * blockDim.x + threadIdx.x];
        __syncthreads();
#pragma unroll 8
        for (int k = 0; k < TILE; k++)
            sum = attract(sum, me, tile[k]);
        __syncthreads();
    }
    force[i] = sum;
}
int main() {
    float4 *h, *d;
    float3 *f, *df, worst = {0, 0, 0};
    cudaMallocHost(&h, N * sizeof(float4));
    f = (float3 *)malloc(N * sizeof(float3));
    for (int i = 0; i < N; i++)
        h[i] = make_float4(rand() % 100 / 50.0f, rand() % 100 / 50.0f, rand() % 100 / 50.0f, 1.0f + i % 3);
    cudaMalloc(&d, N * sizeof(float4));
    cudaMalloc(&df, N * sizeof(float3));
    cudaEvent_t start, stop;
    cudaEventCreate(&start);
    cudaEventCreate(&stop);
    cudaMemcpy(d, h, N * sizeof(float4), cudaMemcpyHostToDevice);
    cudaEventRecord(start);
    forces<<<N / TILE, TILE, TILE * sizeof(float4)>>>(d, df);
    cudaEventRecord(stop);
    cudaEventSynchronize(stop);
    float ms = -1;
    cudaEventElapsedTime(&ms, start, stop);
    cudaMemcpy(f, df, N * sizeof(float3), cudaMemcpyDeviceToHost);
    for (int i = 0; i < N; i++) {
        double s[3] = {0, 0, 0};
        for (int k = 0; k < N; k++) {
            double r[3] = {h[k].x - h[i].x, h[k].y - h[i].y, h[k].z - h[i].z};
            double d2 = r[0] * r[0] + r[1] * r[1] + r[2] * r[2] + 0.01;
            for (int c = 0; c < 3; c++)
                s[c] += h[k].w * r[c] / (d2 * sqrt(d2));
        }
        worst.x = fmaxf(worst.x, fabs(f[i].x - s[0]) / (1 + fabs(s[0])));
        worst.y = fmaxf(worst.y, fabs(f[i].y - s[1]) / (1 + fabs(s[1])));
        worst.z = fmaxf(worst.z, fabs(f[i].z - s[2]) / (1 + fabs(s[2])));
    }
    bool ok = worst.x < 1e-4f && worst.y < 1e-4f && worst.z < 1e-4f && ms >= 0;
    printf("nbody: %s\n", ok ? "ok" : "WRONG");
    cudaEventDestroy(start);
    cudaEventDestroy(stop);
    cudaFree(d);
    cudaFree(df);
    cudaFreeHost(h);
    free(f);
    return !ok;
}
