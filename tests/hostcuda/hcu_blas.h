/* hcu_blas.h - internal: the handle that hcu_blas.cpp (products) and hcu_blas1.cpp (vectors, double precision)
 * share. */
#ifndef HCU_BLAS_H
#define HCU_BLAS_H
#include <cublasLt.h>
#include <cublas_v2.h>
#include "hcu_core.h"

/* A cublasHandle_t may be given where a cublasLtHandle_t is asked for: one layout for both. */
struct Handle {
    uint32_t magic;
    int device;
    cudaStream_t stream;
    int pointer_mode, math_mode;
};
struct cublasLtContext { Handle h; };
struct cublasContext { Handle h; };

constexpr uint32_t kHandle = 0x48435548;
inline const Handle *handle(const void *p) { /* nullptr: never made, or destroyed */
    const Handle *h = static_cast<const Handle *>(p);
    return h && h->magic == kHandle ? h : nullptr;
}
cublasStatus_t gemm_double(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
    const double *alpha, const double *A, int lda, long long sa, const double *B, int ldb, long long sb,
    const double *beta, double *C, int ldc, long long sc, int batch, const char *api);

inline bool known_operation(cublasOperation_t t) { return unsigned(t) <= unsigned(CUBLAS_OP_CONJG); }
/* All but the data types and alpha, beta: checked before anything else, also of an empty product. */
inline bool good_gemm_sizes(
    cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, int lda, int ldb, int ldc, int batch) {
    return known_operation(ta) && known_operation(tb) && m >= 0 && n >= 0 && k >= 0 && batch >= 0 &&
        lda >= std::max(1, ta ? k : m) && ldb >= std::max(1, tb ? n : k) && ldc >= std::max(1, m);
}

/* Injected errors are cublas statuses; a dead device looks like a failed execution to cuBLASLt, to cuBLAS like an
 * internal error, and to who makes a handle like a library that cannot start. */
#define ENTER_OR(on_dead, api, group, natural) \
    Call call_(api, group, natural); \
    if (call_.error) return call_.dead ? on_dead : cublasStatus_t(call_.error)
#define ENTER(api, group, natural)        ENTER_OR(CUBLAS_STATUS_EXECUTION_FAILED, api, group, natural)
#define ENTER_CUBLAS(api, group, natural) ENTER_OR(CUBLAS_STATUS_INTERNAL_ERROR, api, group, natural)
#define ENTER_CREATE(api) ENTER_OR(CUBLAS_STATUS_NOT_INITIALIZED, api, HCU_OBJECT, CUBLAS_STATUS_NOT_INITIALIZED)
#endif
