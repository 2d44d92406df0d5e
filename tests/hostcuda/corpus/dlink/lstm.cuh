#pragma once
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#define CHECK(call) \
    { \
        const cudaError_t error = call; \
        if (error != cudaSuccess) { \
            printf("Error: %s:%d, ", __FILE__, __LINE__); \
            printf("code: %d, reason: %s\n", error, cudaGetErrorString(error)); \
            exit(1); \
        } \
    }
constexpr int H = 12, X = 5, B = 6, T = 4;
extern __device__ unsigned long long g_calls;
extern __constant__ float g_clip;
__device__ float sigmoid(float x);
__device__ float d_sigmoid(float y);
__global__ void gates(const float *x, const float *h, const float *wx, const float *wh, const float *b, float *z);
__global__ void cell(const float *z, const float *c_before, float *c, float *h, float *act);
__global__ void cell_back(
    const float *act, const float *c_before, const float *c, const float *dh, float *dc, float *dz);
__global__ void back_to_h(const float *dz, const float *wh, float *dh);
__global__ void accumulate(const float *dz, const float *in, int n, float *dw);
__global__ void bias_gradient(const float *dz, float *db);
__global__ void update(float *w, float *dw, int n, float rate);
__global__ void mse(const float *h, const float *target, float *dh, float *loss);
