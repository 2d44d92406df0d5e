/* rows.h - layers of your own, each written once for the CPU and for a GPU (gpt_rows.h, conv.h): how they are run.
 *
 * A layer is a function for one row of it, ROW void layer(const layer_job *job, size_t row, amp_dtype t, team w), with
 * sums in FP32. A team does it: the 32 lanes of a warp, or one thread of the CPU, which is all of its team. Each lane
 * takes every lanes-th element; sums go through team_sum, or through TEAM_SUM, whose order is the same everywhere.
 * ROWS(layer) makes layer_rows(ctx, &job, rows) of it: a loop on the CPU, a kernel on a GPU. The dtype, which the job
 * has too, is a parameter of its own because it is a constant wherever the function is called: conversions are folded
 * into the loops.
 */
#ifndef ROWS_H
#define ROWS_H

#include "program.h"
#ifdef WITH_CUDA
#  include "amp_cuda.cuh"
#  include <cuda_runtime.h>
#endif

#if defined(__GNUC__) && !defined(__CUDACC__)
#  define ROW AMP_HD static inline __attribute__((always_inline))
#else
#  define ROW AMP_HD static inline
#endif

typedef struct team { unsigned lane, lanes; } team;

/* What is left of x in the dtype that a sum is made in: all of it in F32; F16 is there to see what it would cost. */
ROW float kept(float x, amp_dtype in) { return in == AMP_F16 ? amp_f32_from_f16(amp_f16_from_f32(x)) : x; }

ROW float team_sum(team w, float x, amp_dtype in) {
#if defined(AMP_DEVICE) || defined(AMP_HOSTCUDA)
    int far;
    if (w.lanes == 32)
        for (far = 16; far > 0; far /= 2)
            x = kept(x + __shfl_xor_sync(0xffffffffu, x, far), in);
#endif
    (void)w;
    (void)in;
    return x;
}
/* sum = the terms of i = 0 .. n - 1: term i goes to lane i % 32, and the lanes are joined as team_sum does it. One
   thread does so for all of them: the same bits on the CPU, if the term has no product next to a sum (amp_mul, which no
   compiler joins with an addition, keeps them apart). TEAM_SUM_IN rounds after each addition. */
#define TEAM_SUM(sum, w, i, n, term) TEAM_SUM_IN(AMP_F32, sum, w, i, n, term)
#if defined(AMP_DEVICE)
#  define TEAM_SUM_IN(in, sum, w, i, n, term) \
    do { \
        float own_ = 0; \
        size_t i; \
        for (i = (w).lane; i < (n); i += 32) \
            own_ = kept(own_ + term, in); \
        sum = team_sum(w, own_, in); \
    } while (0)
#else
#  define TEAM_SUM_IN(in, sum, w, i, n, term) \
    do { \
        float lane_[32] = {0}; \
        size_t i; \
        for (i = (w).lane; i < (n); i += (w).lanes) \
            lane_[i % 32] = kept(lane_[i % 32] + term, in); \
        sum = (w).lanes == 1 ? join_lanes(lane_, in) : team_sum(w, lane_[(w).lane], in); \
    } while (0)
ROW float join_lanes(float lane[32], amp_dtype in) {
    int far, i;
    for (far = 16; far > 0; far /= 2)
        for (i = 0; i < far; i++)
            lane[i] = kept(lane[i] + lane[i + far], in);
    return lane[0];
}
#endif
ROW float team_max(team w, float x) {
#if defined(AMP_DEVICE) || defined(AMP_HOSTCUDA)
    int far;
    if (w.lanes == 32)
        for (far = 16; far > 0; far /= 2) {
            float other = __shfl_xor_sync(0xffffffffu, x, far);
            x = x < other ? other : x;
        }
#endif
    (void)w;
    return x;
}

/* ROWS(layer): layer_rows(ctx, &job, rows) does all rows of layer(&job, row, dtype, team); ROWS_OF names the job's type
   where layers share one. */
#define ROW_OF(layer, j, row, w) \
    do { \
        if ((j)->t == AMP_F32) \
            layer(j, row, AMP_F32, w); \
        else if ((j)->t == AMP_F16) \
            layer(j, row, AMP_F16, w); \
        else \
            layer(j, row, AMP_BF16, w); \
    } while (0)
#ifdef WITH_CUDA
#  ifndef AMP_BLOCK
#    define AMP_BLOCK 256
#  endif
#  define ROW_KERNEL(layer, job_type) \
    static __global__ void layer##_kernel(job_type j, size_t rows) { \
        size_t row = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) / 32; \
        team w = {threadIdx.x % 32, 32}; \
        if (row < rows) ROW_OF(layer, &j, row, w); \
    }
#  define ROW_LAUNCH(layer, ctx, j, rows) launch(ctx, layer##_kernel, j, rows)
template <class J> static int launch(amp_ctx *ctx, void (*kernel)(J, size_t), const J *j, size_t rows) {
    cudaLaunchConfig_t config = {};
    if (strncmp(amp_ctx_name(ctx), "cuda", 4) != 0) return 0;
    config.gridDim = dim3((unsigned)((rows * 32 + AMP_BLOCK - 1) / AMP_BLOCK));
    config.blockDim = dim3(AMP_BLOCK);
    config.stream = amp_cuda_stream(ctx);
    if (cudaLaunchKernelEx(&config, kernel, *j, rows) != cudaSuccess) fail("a kernel could not be launched");
    return 1;
}
#else
#  define ROW_KERNEL(layer, job_type)
#  define ROW_LAUNCH(layer, ctx, j, rows) ((void)(ctx), 0)
#endif
#define ROWS(layer) ROWS_OF(layer, layer##_job)
#define ROWS_OF(layer, job_type) \
    ROW_KERNEL(layer, job_type) \
    static void layer##_rows(amp_ctx *ctx, const job_type *job, size_t rows) { \
        const job_type j = *job; \
        const team alone = {0, 1}; \
        size_t row; \
        if (ROW_LAUNCH(layer, ctx, job, rows)) return; \
        for (row = 0; row < rows; row++) \
            ROW_OF(layer, &j, row, alone); \
    }

#endif
