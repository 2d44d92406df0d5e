/* lab 9: lab.cu:17: a data race: written here, read at lab.cu:21, and nothing orders the two (a barrier, an
   atomic, the end of a kernel) */
#include "lab.h"

enum { CHUNK = 256 };

static __device__ float over_warp(float sum) {
    for (int offset = 16; offset > 0; offset /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, offset);
    return sum;
}

static __global__ void chunks(const float *x, size_t n, float *part) {
    __shared__ float square[CHUNK];
    for (size_t c = blockIdx.x; c * CHUNK < n; c += gridDim.x) {
        for (size_t i = threadIdx.x; i < CHUNK; i += blockDim.x)
            square[i] = c * CHUNK + i < n ? x[c * CHUNK + i] * x[c * CHUNK + i] : 0;
        for (unsigned half = CHUNK / 2; half > 0; half /= 2) {
            __syncthreads();
            for (unsigned i = threadIdx.x; i < half; i += blockDim.x)
                square[i] += square[i + half];
        }
        if (threadIdx.x == 0) part[c] = square[0];
    }
}

static __global__ void total(const float *part, size_t count, float *out) {
    float sum = 0;
    for (size_t c = threadIdx.x; c < count; c += 32)
        sum += part[c];
    sum = over_warp(sum);
    if (threadIdx.x == 0) *out = sqrtf(sum);
}

void lab_norm(const float *x, size_t n, float *part, float *out, unsigned grid, unsigned block) {
    chunks<<<grid, block>>>(x, n, part);
    total<<<1, 32>>>(part, (n + CHUNK - 1) / CHUNK, out);
}
