/* language.cuh - a header of language.cu with kernels in it. */
#ifndef LANGUAGE_CUH
#define LANGUAGE_CUH
#include "plain.h"

template <class T, int N> __global__ void reverse_in_block(T *x) {
    __shared__ T mirror[N], spare[2][N];
    mirror[threadIdx.x] = x[blockIdx.x * N + threadIdx.x];
    spare[threadIdx.x & 1][threadIdx.x] = T(0);
    __syncthreads();
    x[blockIdx.x * N + threadIdx.x] = mirror[N - 1 - threadIdx.x] + spare[threadIdx.x & 1][threadIdx.x];
}
#endif
