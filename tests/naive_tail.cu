/* naive_tail.cu - the tail of a training step as a first version writes it: unscale with found-inf and norm, clip, Adam
   with its step count on the device and the next loss scale: three kernels, one thread per element. It does what
   amp_step does with clip_norm and a dynamic scale. For tests/sass.c, which counts how long its chain of dependent
   instructions is. */
#include "naive_tail.h"
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#ifndef AMP_SHARED
#  define AMP_SHARED(T, name, n) __shared__ T name[n]
#endif
enum { BLOCK = 256 };

static __global__ void naive_unscale(const __half *g, float *u, size_t n, naive_state *s) {
    AMP_SHARED(float, sum, BLOCK / 32);
    size_t i = (size_t)blockIdx.x * BLOCK + threadIdx.x;
    float x = i < n ? __half2float(g[i]) * (1.0f / s->scale) : 0.0f, total = x * x;
    int k;
    if (i < n) u[i] = x;
    if (!isfinite(x)) s->found = 1;
    for (k = 16; k > 0; k /= 2)
        total += __shfl_down_sync(0xffffffffu, total, k);
    if (threadIdx.x % 32 == 0) sum[threadIdx.x / 32] = total;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (total = 0, k = 0; k < BLOCK / 32; k++)
            total += sum[k];
        atomicAdd(&s->squares, total);
    }
}
static __global__ void naive_clip(float *u, size_t n, float most, const naive_state *s) {
    size_t i = (size_t)blockIdx.x * BLOCK + threadIdx.x;
    float factor = most / (sqrtf(s->squares) + 1e-6f);
    if (i < n && factor < 1.0f) u[i] *= factor;
}
static __global__ void naive_adam(naive_arrays a, size_t n, float lr, const naive_state *s, naive_state *next) {
    size_t i = (size_t)blockIdx.x * BLOCK + threadIdx.x;
    float t = (float)(s->steps + 1), bc1 = 1.0f - powf(0.9f, t), bc2 = 1.0f - powf(0.999f, t);
    if (i == 0) {
        naive_state r = *s;
        r.steps += !s->found;
        r.good = s->found ? 0 : s->good + 1;
        if (s->found) r.scale *= 0.5f;
        if (r.good == 2000) {
            r.scale *= 2.0f;
            r.good = 0;
        }
        r.found = 0;
        r.squares = 0;
        *next = r;
    }
    if (i < n && !s->found) {
        float u = a.u[i], w = a.w[i] * (1.0f - lr * 0.01f), m = 0.9f * a.m[i] + 0.1f * u;
        float v = 0.999f * a.v[i] + 0.001f * u * u;
        w -= lr / bc1 * m / (sqrtf(v / bc2) + 1e-8f);
        a.m[i] = m;
        a.v[i] = v;
        a.w[i] = w;
        ((__half *)a.copy)[i] = __float2half_rn(w);
    }
}

template <class... P, class... A> static int launch(size_t n, void (*kernel)(P...), A... args) {
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)((n + BLOCK - 1) / BLOCK));
    config.blockDim = dim3(BLOCK);
    return cudaLaunchKernelEx(&config, kernel, args...) == cudaSuccess;
}
extern "C" int naive_step(
    const naive_arrays *a, size_t n, float lr, float max_norm, naive_state *s, naive_state *next) {
    return launch(n, naive_unscale, (const __half *)a->g, a->u, n, s) &&
        launch(n, naive_clip, a->u, n, max_norm, (const naive_state *)s) &&
        launch(n, naive_adam, *a, n, lr, (const naive_state *)s, next) && cudaDeviceSynchronize() == cudaSuccess;
}
