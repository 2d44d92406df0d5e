/* Lab 13, solved. */
#include <cuda_fp16.h>
#include "lab.h"

/* The same by many threads at a time, all arrays and lost in device memory. */
static __global__ void scale(__half *to, const float *from, size_t n, float factor, unsigned *lost) {
    size_t step = (size_t)gridDim.x * blockDim.x;
    unsigned mine = 0;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        to[i] = __float2half(from[i] * factor);
        if (from[i] != 0 && __half2float(to[i]) == 0) mine++;
    }
    if (mine) atomicAdd(lost, mine);
}

/* The checker calls this. There are 256 threads, and n may be smaller or larger than that. */
void lab_scale(__half *to, const float *from, size_t n, float factor, unsigned *lost) {
    scale<<<4, 64>>>(to, from, n, factor, lost);
}
