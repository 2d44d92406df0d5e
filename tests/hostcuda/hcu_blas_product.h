/* hcu_blas_product.h - internal: one product as hcu_blas.cpp has checked it and hcu_blas_product.cpp computes it, and
 * what both ask of its matrices. */
#ifndef HCU_BLAS_PRODUCT_H
#define HCU_BLAS_PRODUCT_H
#include <cublasLt.h>
#include "hcu_core.h"

namespace hcu {
namespace blas {

struct Desc {
    uint32_t magic, epilogue;
    int32_t compute, scale, pointer_mode, trans_a, trans_b, bias_type, aux_type, sm_count;
    int32_t mode_a, mode_b, mode_c, mode_d;
    int8_t fast_accumulation;
    const void *bias;
    void *aux;
    int64_t bias_stride, aux_ld, aux_stride;
    const float *scale_a, *scale_b, *scale_c, *scale_d, *aux_scale;
    float *amax_d, *aux_amax;
};
struct Layout {
    uint32_t magic;
    int32_t type, order, batch;
    uint64_t rows, cols;
    int64_t ld, stride;
};
struct Product {
    Desc d;
    Layout a, b, c, o;
    const void *A, *B, *C;
    void *D, *workspace;
    size_t workspace_bytes;
    float alpha, beta;
    const float *alpha_device, *beta_device; /* device pointer mode */
    int order;
    unsigned split_k, seed;
    int arch;
};
void run_product(const Product &p);
void scale_matrix(const Layout &c, void *C, float beta); /* beta 0: C is not read */
bool by_names();
inline bool as_h100(int arch) { return arch == 90; } /* what lt_probe found on one, with cuBLASLt 13.1: docs/gpus.md */

inline bool is_fp8(int t) { return t == CUDA_R_8F_E4M3 || t == CUDA_R_8F_E5M2; }
inline size_t bytes_of(int t) {
    return t == CUDA_R_32F ? 4 : t == CUDA_R_16F || t == CUDA_R_16BF ? 2 : is_fp8(t) ? 1 : 0; /* 0: not one of ours */
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

enum : unsigned {
    EPI_RELU = 2,
    EPI_BIAS = 4,
    EPI_DRELU = 8,
    EPI_BGRAD = 16,
    EPI_GELU = 32,
    EPI_DGELU = 64,
    EPI_AUX = 128,
    EPI_BGRADA = 256,
    EPI_BGRADB = 512,
    EPI_WRITES_BIAS = EPI_BGRAD | EPI_BGRADA | EPI_BGRADB
};
inline bool row_order(const Layout &l) { return l.order == CUBLASLT_ORDER_ROW; }
inline size_t at(const Layout &l, size_t r, size_t c) {
    return row_order(l) ? r * size_t(l.ld) + c : c * size_t(l.ld) + r;
}
inline size_t extent(const Layout &l) { /* bytes from the first element to behind the last one of the last batch */
    return (size_t(l.batch - 1) * size_t(l.stride) + at(l, l.rows - 1, l.cols - 1) + 1) * bytes_of(l.type);
}
struct Shape { uint64_t m, n, k, k_b; };
inline Shape shape(const Desc &d, const Layout &a, const Layout &b) {
    bool ta = d.trans_a != CUBLAS_OP_N, tb = d.trans_b != CUBLAS_OP_N;
    return {ta ? a.cols : a.rows, tb ? b.rows : b.cols, ta ? a.rows : a.cols, tb ? b.cols : b.rows};
}
inline int bias_type(const Layout &a, const Layout &c, const Layout &o) { /* the one type that is allowed */
    if (!is_fp8(a.type)) return o.type;
    return c.type == CUDA_R_16F ? CUDA_R_16F : CUDA_R_16BF;
}
inline size_t bias_count(const Desc &d, const Layout &o) { return d.epilogue == EPI_BGRADB ? o.cols : o.rows; }
inline size_t bias_extent(const Desc &d, const Layout &o, int type) {
    return (size_t(o.batch - 1) * size_t(d.bias_stride) + bias_count(d, o)) * bytes_of(type);
}
inline bool bit_mask_aux(const Desc &d) { return (d.epilogue & (EPI_RELU | EPI_DRELU)) != 0; }
inline int aux_type(const Desc &d, const Layout &c, const Layout &o) {
    if (d.aux_type != -1) return d.aux_type;
    return is_fp8(o.type) ? c.type : o.type;
}
inline size_t aux_extent(const Desc &d, const Layout &c, const Layout &o) {
    size_t elements = size_t(o.batch - 1) * size_t(d.aux_stride) + size_t(d.aux_ld) * (o.cols - 1) + o.rows;
    return bit_mask_aux(d) ? (elements + 7) / 8 : elements * bytes_of(aux_type(d, c, o));
}

} // namespace blas
} // namespace hcu
#endif
