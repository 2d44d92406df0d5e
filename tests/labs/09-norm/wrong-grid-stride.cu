/* lab 9: with n 1024 the norm is 0x1.a95c06p+6 for grid 2 and block 64, and 0x1.a95c08p+6 for grid 1 and block 32:
   which numbers are added to which must depend on n alone */
#include "lab.h"

enum { CHUNK = 256 };

static __device__ float over_warp(float sum) {
    for (int offset = 16; offset > 0; offset /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, offset);
    return sum;
}

/* A part for each warp of the grid, of what its threads meet on their way. */
static __global__ void chunks(const float *x, size_t n, float *part) {
    size_t count = (n + CHUNK - 1) / CHUNK, thread = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (size_t i = thread; i < n; i += (size_t)gridDim.x * blockDim.x)
        sum += x[i] * x[i];
    sum = over_warp(sum);
    if (threadIdx.x % 32 == 0 && thread / 32 < count) part[thread / 32] = sum;
}

static __global__ void total(const float *part, size_t count, float *out) {
    float sum = 0;
    for (size_t c = threadIdx.x; c < count; c += 32)
        sum += part[c];
    sum = over_warp(sum);
    if (threadIdx.x == 0) *out = sqrtf(sum);
}

void lab_norm(const float *x, size_t n, float *part, float *out, unsigned grid, unsigned block) {
    size_t count = (n + CHUNK - 1) / CHUNK, warps = (size_t)grid * block / 32;
    if (warps > count) {
        grid = (unsigned)count;
        block = 32;
    }
    chunks<<<grid ? grid : 1, block>>>(x, n, part);
    total<<<1, 32>>>(part, warps < count ? warps : count, out);
}
