#pragma once
#include <cuda_runtime.h>
extern __constant__ float speed;
extern __device__ int updates;
__device__ float laplacian(const float *u, int i, int n);
void step(const float *before, const float *now, float *next, int n);
