/* lab 9: with n 257, grid 1 and block 32 the norm must be 54.04498 and is 76.43037: compare which numbers each
   lane adds */
#include "lab.h"

enum { CHUNK = 256 };

static __device__ float over_warp(float sum) {
    for (int offset = 16; offset > 0; offset /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, offset);
    return sum;
}

/* The warps share the chunks of a block, and thread 0 collects. */
static __global__ void chunks(const float *x, size_t n, float *part) {
    __shared__ float square[CHUNK];
    for (size_t c = blockIdx.x; c * CHUNK < n; c += gridDim.x) {
        for (size_t i = threadIdx.x; i < CHUNK && c * CHUNK + i < n; i += blockDim.x)
            square[i] = x[c * CHUNK + i] * x[c * CHUNK + i];
        __syncthreads();
        if (threadIdx.x < 32) {
            float sum = 0;
            for (unsigned i = threadIdx.x; i < CHUNK; i += 32)
                if (square[i] > 0) sum += square[i];
            sum = over_warp(sum);
            if (threadIdx.x == 0) part[c] = sum;
        }
        __syncthreads();
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
