/* lab 8: with n 128, after step 1, master[0] must be 1.000089 and is 1.000044: the bias correction is missing: m /
   (1 - beta1^t) and v / (1 - beta2^t) */
#include <cuda_fp16.h>
#include "lab.h"

struct adam { float lr, beta1, beta2, eps; };

struct record {
    int overflow;
    int skip;
    int steps;
};

struct weights {
    size_t n;
    const __half *gradient;
    float *master, *m, *v;
    __half *model;
};

static __global__ void inspect(weights w, record *r) {
    size_t stride = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < w.n; i += stride)
        if (!isfinite(__half2float(w.gradient[i]))) atomicExch(&r->overflow, 1);
}

static __global__ void decide(record *r) {
    r->skip = r->overflow;
    r->overflow = 0;
    if (!r->skip) r->steps++;
}

static __global__ void update(weights w, const record *r, adam a, float inverse_scale) {
    if (r->skip) return;
    size_t stride = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < w.n; i += stride) {
        float g = __half2float(w.gradient[i]) * inverse_scale;
        float m = a.beta1 * w.m[i] + (1 - a.beta1) * g;
        float v = a.beta2 * w.v[i] + (1 - a.beta2) * g * g;
        float master = w.master[i] - a.lr * m / (sqrtf(v) + a.eps);
        w.m[i] = m;
        w.v[i] = v;
        w.master[i] = master;
        w.model[i] = __float2half(master);
    }
}

void lab_step(weights w, record *r, adam a, float inverse_scale) {
    inspect<<<2, 64>>>(w, r);
    decide<<<1, 1>>>(r);
    update<<<2, 64>>>(w, r, a, inverse_scale);
}
