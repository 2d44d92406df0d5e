/* lab 9: with n 257 the norm is 0x1.b05c2p+5 for grid 2 and block 64, and 0x1.b05c1ep+5 for grid 1 and block 32:
   which numbers are added to which must depend on n alone */
#include "lab.h"

enum { CHUNK = 256 };

static __device__ float over_warp(float sum) {
    for (int offset = 16; offset > 0; offset /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, offset);
    return sum;
}

/* A block adds up a chunk: each thread every blockDim.x-th number. */
static __global__ void chunks(const float *x, size_t n, float *part) {
    __shared__ float of_warp[4];
    for (size_t c = blockIdx.x; c * CHUNK < n; c += gridDim.x) {
        float sum = 0;
        for (size_t i = c * CHUNK + threadIdx.x; i < (c + 1) * CHUNK && i < n; i += blockDim.x)
            sum += x[i] * x[i];
        sum = over_warp(sum);
        if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
        __syncthreads();
        if (threadIdx.x == 0) {
            for (unsigned w = 1; w < blockDim.x / 32; w++)
                sum += of_warp[w];
            part[c] = sum;
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
