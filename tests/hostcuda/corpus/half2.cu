/* half2.cu - pairs of half and bfloat16 through the intrinsics: fused products, an exponential, a packed sum
 * of bytes. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <math.h>
#include <stdio.h>
#define N 128
__global__ void halves(const half2 *x, half2 *y, half2 a) {
    int i = threadIdx.x;
    half2 v = __hfma2(a, x[i], __float2half2_rn(0.5f));
    y[i] = __hmul2(h2exp(v), __halves2half2(hsqrt(__low2half(v)), __high2half(v)));
}
__global__ void brains(const __nv_bfloat162 *x, float *y) {
    int i = threadIdx.x;
    __nv_bfloat162 s = __hadd2(x[i], x[i]);
    y[i] = __bfloat162float(__hfma(__low2bfloat16(s), __high2bfloat16(s), __float2bfloat16(1.0f)));
}
__global__ void bytes(const int *a, const int *b, int *out) {
    out[threadIdx.x] = __dp4a(a[threadIdx.x], b[threadIdx.x], 100) + __popc(a[threadIdx.x]) + __mul24(3, 7);
}
int main() {
    half2 h[N], g[N], *dx, *dy;
    __nv_bfloat162 b[N], *db;
    float f[N], *df;
    int p[N], q[N], r[N], *dp, *dq, *dr, wrong = 0;
    for (int i = 0; i < N; i++) {
        h[i] = __floats2half2_rn(i / 64.0f, 1 - i / 256.0f);
        b[i] = __floats2bfloat162_rn(i / 32.0f, 2 - i / 64.0f);
        p[i] = (int)(i * 0x01030507u);
        q[i] = 0x7f80ff01 + i;
    }
    cudaMalloc((void **)&dx, sizeof h);
    cudaMalloc((void **)&dy, sizeof g);
    cudaMalloc((void **)&db, sizeof b);
    cudaMalloc((void **)&df, sizeof f);
    cudaMalloc((void **)&dp, sizeof p);
    cudaMalloc((void **)&dq, sizeof q);
    cudaMalloc((void **)&dr, sizeof r);
    cudaMemcpy(dx, h, sizeof h, cudaMemcpyHostToDevice);
    cudaMemcpy(db, b, sizeof b, cudaMemcpyHostToDevice);
    cudaMemcpy(dp, p, sizeof p, cudaMemcpyHostToDevice);
    cudaMemcpy(dq, q, sizeof q, cudaMemcpyHostToDevice);
    halves<<<1, N>>>(dx, dy, __float2half2_rn(0.75f));
    brains<<<1, N>>>(db, df);
    bytes<<<1, N>>>(dp, dq, dr);
    cudaMemcpy(g, dy, sizeof g, cudaMemcpyDeviceToHost);
    cudaMemcpy(f, df, sizeof f, cudaMemcpyDeviceToHost);
    cudaMemcpy(r, dr, sizeof r, cudaMemcpyDeviceToHost);
    for (int i = 0; i < N; i++) {
        float lo = 0.75f * __low2float(h[i]) + 0.5f, hi = 0.75f * __high2float(h[i]) + 0.5f;
        wrong += fabsf(__low2float(g[i]) - expf(lo) * sqrtf(lo)) > 0.01f * expf(lo);
        wrong += fabsf(__high2float(g[i]) - expf(hi) * hi) > 0.01f * expf(hi);
        float v = 4 * __low2float(b[i]) * __high2float(b[i]) + 1;
        wrong += fabsf(f[i] - v) > 0.01f * (1 + fabsf(v));
        int sum = 100 + __builtin_popcount(p[i]) + 21;
        for (int k = 0; k < 4; k++)
            sum += (signed char)((unsigned)p[i] >> 8 * k) * (signed char)((unsigned)q[i] >> 8 * k);
        wrong += sum != r[i];
    }
    printf("half2: %s\n", wrong ? "WRONG" : "ok");
    cudaFree(dx);
    cudaFree(dy);
    cudaFree(db);
    cudaFree(df);
    cudaFree(dp);
    cudaFree(dq);
    cudaFree(dr);
    return wrong != 0;
}
