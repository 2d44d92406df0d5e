/* ==== >>stub =========================================================================================================
   The API without CUDA.   tests: tests/cuda_stub.c, tests/test_context.c */

#if defined(AMP_CUDA_STUB_IMPLEMENTATION) && !defined(AMPI_CUDA_ONCE)
#define AMPI_CUDA_ONCE
#ifdef __cplusplus
extern "C" {
#endif
amp_status amp_cuda_create_checked(amp_ctx **out, int version, size_t size, const amp_cuda_desc *desc) {
    static const char text[] = "amp_cuda_create: built without CUDA: AMP_CUDA_STUB_IMPLEMENTATION is linked";
    if (!out) return AMP_ERR_INVALID_ARG;
    *out = NULL;
    if (version != AMP_VERSION || size != sizeof *desc) return AMP_ERR_VERSION;
    if (desc && (desc->_begin || desc->_end)) return AMP_ERR_UNINIT;
    if (desc && desc->logger.fn) (desc->logger.fn)(AMP_LOG_ERROR, AMP_ERR_NO_CUDA, text, desc->logger.user);
    return AMP_ERR_NO_CUDA;
}
int amp_cuda_available(void) { return 0; }
amp_stream amp_cuda_stream(const amp_ctx *ctx) {
    (void)ctx;
    return NULL;
}
amp_status amp_cuda_plans_save(amp_ctx *ctx, const char *path) {
    (void)ctx;
    (void)path;
    return AMP_ERR_NO_CUDA;
}
amp_status amp_cuda_plans_load(amp_ctx *ctx, const char *path) {
    (void)ctx;
    (void)path;
    return AMP_ERR_NO_CUDA;
}
amp_status amp_cuda_plans_get(const amp_ctx *ctx, amp_cuda_plans *out) {
    const amp_cuda_plans none = {0, 0};
    (void)ctx;
    if (out) *out = none;
    return AMP_ERR_INVALID_ARG;
}
amp_status amp_cuda_last_error(const amp_ctx *ctx, amp_cuda_error *out) {
    const amp_cuda_error none = {0, AMP_CUDA_NO_LIBRARY, ""};
    (void)ctx;
    if (out) *out = none;
    return AMP_ERR_INVALID_ARG;
}
#ifdef __cplusplus
}
#endif
#endif

/* ==== the implementation ========================================================================================== */

#if defined(AMP_CUDA_IMPLEMENTATION) && !defined(AMPI_CUDA_ONCE)
#define AMPI_CUDA_ONCE
#if !defined(__CUDACC__) && !defined(AMP_HOSTCUDA)
#  error "amp_cuda.cuh: AMP_CUDA_IMPLEMENTATION needs nvcc (a .cu file); without a GPU: AMP_CUDA_STUB_IMPLEMENTATION"
#endif
#pragma pack(push)
#pragma pack()

extern "C++" { /* wherever this file is included */
#include <cublasLt.h>
#include <cuda_runtime.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#if !defined(AMP_NO_THREADS) && !defined(_WIN32)
#  include <pthread.h>
#endif

/* Threads per block: one constant for all kernels. A power of two from 32 to 256; the results do not depend on it. */
#ifndef AMP_BLOCK
#  define AMP_BLOCK 256
#endif
#if AMP_BLOCK != 32 && AMP_BLOCK != 64 && AMP_BLOCK != 128 && AMP_BLOCK != 256
#  error "amp_cuda.cuh: AMP_BLOCK must be 32, 64, 128 or 256"
#endif

static_assert(sizeof(amp_f16) == 2 && sizeof(amp_bf16) == 2, "storage types");
static_assert(sizeof(amp_f8e4m3) == 1 && sizeof(amp_f8e5m2) == 1 && sizeof(float) == 4, "storage types");
/* Does not compile if CUDA changes its typedef. */
static inline amp_stream ampi_cu_same_type(cudaStream_t s) { return s; }

