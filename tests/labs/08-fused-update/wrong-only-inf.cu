/* lab 8: with n 128, after step 5, m[0] must be -0.002117188 and is nan: only Inf is looked for, and a NaN is an
   overflow, too */
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
        if (isinf(__half2float(w.gradient[i]))) atomicExch(&r->overflow, 1);
}

static __global__ void decide(record *r) {
    r->skip = r->overflow;
    r->overflow = 0;
    if (!r->skip) r->steps++;
}

static __global__ void update(weights w, const record *r, adam a, float inverse_scale) {
    if (r->skip) return;
    float correct1 = 1 / (1 - powf(a.beta1, (float)r->steps));
    float correct2 = 1 / (1 - powf(a.beta2, (float)r->steps));
    size_t stride = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < w.n; i += stride) {
        float g = __half2float(w.gradient[i]) * inverse_scale;
        float m = a.beta1 * w.m[i] + (1 - a.beta1) * g;
        float v = a.beta2 * w.v[i] + (1 - a.beta2) * g * g;
        float master = w.master[i] - a.lr * (m * correct1) / (sqrtf(v * correct2) + a.eps);
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
