/* hcu_blas.cpp - the part of cuBLASLt that a mixed-precision trainer calls, and GemmEx of cuBLAS.
 *
 * Argument rules and refusals follow NVIDIA's documentation for Turing to Blackwell; arithmetic is FP32 accumulation in
 * an order the test may choose, with the documented epilogues.  A product runs as stream work on device memory, so
 * overruns, missing synchronisation, capture and injected faults behave as for any kernel. */
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include "hcu_blas.h"
#include "hcu_blas_product.h"
using namespace hcu;
using namespace hcu::blas;

namespace {

/* ---- what lies behind the opaque descriptors --------------------------------------------------------------------- */

constexpr uint32_t kDesc = 0x48435544, kLayout = 0x4843554c, kPref = 0x48435550, kAlgo = 0x48435541;
struct Pref {
    uint32_t magic, search_mode, reductions, impl_mask;
    uint64_t workspace;
    uint32_t align[4];
    float max_waves;
};
struct Algo {
    uint32_t magic, id;
    uint64_t workspace, problem; /* problem: types, transposes, epilogue ... it was chosen for */
    uint16_t align[4], bias_align, aux_align;
    uint32_t split_k;
};
static_assert(sizeof(Desc) <= sizeof(cublasLtMatmulDescOpaque_t) &&
        sizeof(Layout) <= sizeof(cublasLtMatrixLayoutOpaque_t) &&
        sizeof(Pref) <= sizeof(cublasLtMatmulPreferenceOpaque_t) && sizeof(Algo) <= sizeof(cublasLtMatmulAlgo_t),
    "our state fits into NVIDIA's opaque structs");

template <class T, class Opaque> T *open(Opaque *o, uint32_t magic) { /* nullptr: never initialised */
    T *t = reinterpret_cast<T *>(o);
    return o && t->magic == magic ? t : nullptr;
}
template <class Opaque> const Layout *layout(Opaque *o) { return open<const Layout>(o, kLayout); }

struct Field {
    int attribute;
    size_t offset, size;
};
#define F(attribute, type, member) {attribute, offsetof(type, member), sizeof(type::member)}
const Field kDescFields[] = {
    F(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, Desc, compute),
    F(CUBLASLT_MATMUL_DESC_SCALE_TYPE, Desc, scale),
    F(CUBLASLT_MATMUL_DESC_POINTER_MODE, Desc, pointer_mode),
    F(CUBLASLT_MATMUL_DESC_TRANSA, Desc, trans_a),
    F(CUBLASLT_MATMUL_DESC_TRANSB, Desc, trans_b),
    F(CUBLASLT_MATMUL_DESC_EPILOGUE, Desc, epilogue),
    F(CUBLASLT_MATMUL_DESC_BIAS_POINTER, Desc, bias),
    F(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, Desc, bias_stride),
    F(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, Desc, bias_type),
    F(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, Desc, aux),
    F(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, Desc, aux_ld),
    F(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, Desc, aux_stride),
    F(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, Desc, aux_type),
    F(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_POINTER, Desc, aux_scale),
    F(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_AMAX_POINTER, Desc, aux_amax),
    F(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, Desc, scale_a),
    F(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, Desc, scale_b),
    F(CUBLASLT_MATMUL_DESC_C_SCALE_POINTER, Desc, scale_c),
    F(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, Desc, scale_d),
    F(CUBLASLT_MATMUL_DESC_AMAX_D_POINTER, Desc, amax_d),
    F(CUBLASLT_MATMUL_DESC_FAST_ACCUM, Desc, fast_accumulation),
    F(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, Desc, sm_count),
#if CUBLAS_VERSION >= 120800
    F(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, Desc, mode_a),
    F(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, Desc, mode_b),
    F(CUBLASLT_MATMUL_DESC_C_SCALE_MODE, Desc, mode_c),
    F(CUBLASLT_MATMUL_DESC_D_SCALE_MODE, Desc, mode_d),
#endif
};
const Field kLayoutFields[] = {
    F(CUBLASLT_MATRIX_LAYOUT_TYPE, Layout, type),
    F(CUBLASLT_MATRIX_LAYOUT_ORDER, Layout, order),
    F(CUBLASLT_MATRIX_LAYOUT_ROWS, Layout, rows),
    F(CUBLASLT_MATRIX_LAYOUT_COLS, Layout, cols),
    F(CUBLASLT_MATRIX_LAYOUT_LD, Layout, ld),
    F(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, Layout, batch),
    F(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, Layout, stride),
};
const Field kPrefFields[] = {
    F(CUBLASLT_MATMUL_PREF_SEARCH_MODE, Pref, search_mode),
    F(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, Pref, workspace),
    F(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, Pref, reductions),
    F(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, Pref, align[0]),
    F(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, Pref, align[1]),
    F(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, Pref, align[2]),
    F(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, Pref, align[3]),
    F(CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT, Pref, max_waves),
};
const Field kAlgoFields[] = {F(CUBLASLT_ALGO_CONFIG_ID, Algo, id), F(CUBLASLT_ALGO_CONFIG_SPLITK_NUM, Algo, split_k)};
#undef F
template <size_t N> const Field *field(const Field (&fields)[N], int attribute) {
    for (const Field &f : fields)
        if (f.attribute == attribute) return &f;
    return nullptr;
}
cublasStatus_t set_field(void *object, const Field *f, const void *value, size_t bytes) {
    if (!object || !f || !value || bytes != f->size) return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(static_cast<char *>(object) + f->offset, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t get_field(const void *object, const Field *f, void *value, size_t bytes, size_t *written) {
    if (!object || !f || (bytes == 0 && !written) || (bytes && (!value || bytes != f->size)))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (bytes) memcpy(value, static_cast<const char *>(object) + f->offset, bytes);
    if (written) *written = f->size;
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

const unsigned kEpilogues[] = {
    CUBLASLT_EPILOGUE_DEFAULT,
    CUBLASLT_EPILOGUE_RELU,
    CUBLASLT_EPILOGUE_RELU_AUX,
    CUBLASLT_EPILOGUE_BIAS,
    CUBLASLT_EPILOGUE_RELU_BIAS,
    CUBLASLT_EPILOGUE_RELU_AUX_BIAS,
    CUBLASLT_EPILOGUE_DRELU,
    CUBLASLT_EPILOGUE_DRELU_BGRAD,
    CUBLASLT_EPILOGUE_GELU,
    CUBLASLT_EPILOGUE_GELU_AUX,
    CUBLASLT_EPILOGUE_GELU_BIAS,
    CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
    CUBLASLT_EPILOGUE_DGELU,
    CUBLASLT_EPILOGUE_DGELU_BGRAD,
    CUBLASLT_EPILOGUE_BGRADA,
    CUBLASLT_EPILOGUE_BGRADB,
};
bool h100_has_epilogue_of_fp8(unsigned e, int d) {
    if (e & (EPI_BGRADA | EPI_BGRADB)) return false;
    if (is_fp8(d)) return !(e & (EPI_DRELU | EPI_DGELU));
    return d != CUDA_R_32F || (!(e & EPI_BGRAD) && e != CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
}
bool has_epilogue_of_fp8(const Desc &d, const Layout &a, const Layout &b, const Layout &o, int arch) {
    if (as_h100(arch)) return h100_has_epilogue_of_fp8(d.epilogue, o.type);
    if (d.epilogue & (EPI_DRELU | EPI_DGELU | EPI_WRITES_BIAS)) return false;
    if (!by_names()) return true;
    bool gelu = d.epilogue == EPI_GELU, e4m3 = a.type == CUDA_R_8F_E4M3 && b.type == CUDA_R_8F_E4M3;
    if (d.epilogue == (EPI_GELU | EPI_AUX)) return e4m3 && o.type == CUDA_R_8F_E4M3 && d.aux_type == CUDA_R_16BF;
    if (d.epilogue == (EPI_GELU | EPI_AUX | EPI_BIAS))
        return e4m3 && o.type == CUDA_R_8F_E4M3 && d.aux_type == CUDA_R_16F;
    if (o.type == CUDA_R_8F_E4M3) return e4m3;
    if (arch >= 100 && arch < 120) return d.epilogue == EPI_BIAS || (gelu && e4m3 && o.type != CUDA_R_32F);
    return d.epilogue == EPI_BIAS && o.type == CUDA_R_16F;
}
bool rows_of_fp8(
    uint64_t m, const Layout &o, int arch) { /* an H100 counts a line of D in bytes, and takes lines of 1 */
    return as_h100(arch) ? m == 1 || m * bytes_of(o.type) % 16 == 0 : m % 16 == 0;
}
cublasStatus_t check_fp8(
    const Desc &d, const Layout &a, const Layout &b, const Layout &c, const Layout &o, const Shape &s, int arch) {
    if (arch < 89 || !is_fp8(a.type) || !is_fp8(b.type)) return CUBLAS_STATUS_NOT_SUPPORTED;
    if (a.type == CUDA_R_8F_E5M2 && b.type == CUDA_R_8F_E5M2) return CUBLAS_STATUS_NOT_SUPPORTED;
    bool any_transpose = arch >= 100 && arch < 120;
    if (!any_transpose && (d.trans_a == CUBLAS_OP_N || d.trans_b != CUBLAS_OP_N)) return CUBLAS_STATUS_NOT_SUPPORTED;
    if (d.compute != CUBLAS_COMPUTE_32F || !rows_of_fp8(s.m, o, arch) || s.k % 16 || a.ld % 16 || b.ld % 16)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    bool half_c = c.type == CUDA_R_16F || c.type == CUDA_R_16BF;
    bool out = is_fp8(o.type) ? half_c && (o.type == CUDA_R_8F_E4M3 || a.type != b.type)
                              : o.type == c.type && (half_c || c.type == CUDA_R_32F);
    return out ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}
/* Beside an FP8 D: the dtype that C and the bias have; on an H100 E4M3 where all but an F16 C are. */
cublasStatus_t check_aux_of_fp8(
    const Desc &d, const Layout &a, const Layout &b, const Layout &c, const Layout &o, int arch) {
    bool as_c = aux_type(d, c, o) == c.type;
    bool all_e4m3 = a.type == CUDA_R_8F_E4M3 && b.type == CUDA_R_8F_E4M3 && o.type == CUDA_R_8F_E4M3;
    if (as_h100(arch))
        return as_c || bit_mask_aux(d) || (all_e4m3 && d.aux_type == CUDA_R_8F_E4M3 && c.type == CUDA_R_16F)
            ? CUBLAS_STATUS_SUCCESS
            : CUBLAS_STATUS_INVALID_VALUE;
    return as_c && d.aux_type != -1 && !bit_mask_aux(d) && o.type == CUDA_R_8F_E4M3 ? CUBLAS_STATUS_SUCCESS
                                                                                    : CUBLAS_STATUS_NOT_SUPPORTED;
}
cublasStatus_t check_aux(const Desc &d, const Layout &a, const Layout &b, const Layout &c, const Layout &o, int arch) {
    int64_t unit = bit_mask_aux(d) ? 128 : as_h100(arch) ? 1 : 8; /* 8 is what is documented */
    if (d.aux_ld < int64_t(o.rows) || d.aux_ld % unit || d.aux_stride % unit) return CUBLAS_STATUS_INVALID_VALUE;
    if (is_fp8(o.type)) return check_aux_of_fp8(d, a, b, c, o, arch);
    return aux_type(d, c, o) == o.type || bit_mask_aux(d) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}
bool has_epilogue(const Desc &d, const Layout &a, const Layout &b, const Layout &o, int arch) {
    if (is_fp8(a.type)) return has_epilogue_of_fp8(d, a, b, o, arch);
    /* sums over k of an operand as it lies: lines of A, or of B, are along m, or n */
    if (d.epilogue == EPI_BGRADA) return d.trans_a == CUBLAS_OP_N;
    if (d.epilogue == EPI_BGRADB) return d.trans_b != CUBLAS_OP_N;
    bool many = o.batch > 65535; /* of a kernel of its own, which sums F32 */
    return !(as_h100(arch) && many && a.type == CUDA_R_32F && (d.epilogue & EPI_BGRAD));
}
cublasStatus_t check_epilogue(
    const Desc &d, const Layout &a, const Layout &b, const Layout &c, const Layout &o, int arch) {
    bool known = false;
    for (unsigned e : kEpilogues)
        known = known || e == d.epilogue;
    if (!known) return CUBLAS_STATUS_NOT_SUPPORTED;
    if (d.epilogue == CUBLASLT_EPILOGUE_DEFAULT) return CUBLAS_STATUS_SUCCESS;
    if (row_order(o)) return CUBLAS_STATUS_NOT_SUPPORTED;
    cublasStatus_t e = d.epilogue & EPI_AUX ? check_aux(d, a, b, c, o, arch) : CUBLAS_STATUS_SUCCESS;
    if (e) return e;
    if (!has_epilogue(d, a, b, o, arch)) return CUBLAS_STATUS_NOT_SUPPORTED;
    /* Not told, it is that of D: cublasLt.h does not say that its exceptions, of FP8, hold without being told; they do
     * on an H100. */
    const int allowed = bias_type(a, c, o), untold = as_h100(arch) ? allowed : o.type;
    const int told = d.bias_type == -1 ? untold : d.bias_type;
    if ((d.epilogue & (EPI_BIAS | EPI_WRITES_BIAS)) && told != allowed)
        return is_fp8(a.type) ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_INVALID_VALUE;
    return CUBLAS_STATUS_SUCCESS;
}
/* Sums: of 16-bit inputs an H100 takes the fast kinds of F32, too, which change nothing. */
bool has_compute(const Desc &d, const Layout &a, int arch) {
    switch (d.compute) {
    case CUBLAS_COMPUTE_32F:
    case CUBLAS_COMPUTE_32F_PEDANTIC:
    case CUBLAS_COMPUTE_16F: return true;
    case CUBLAS_COMPUTE_32F_FAST_TF32:
    case CUBLAS_COMPUTE_32F_FAST_16F:
    case CUBLAS_COMPUTE_32F_FAST_16BF: return a.type == CUDA_R_32F || as_h100(arch);
    default: return false;
    }
}
cublasStatus_t check_shapes(const Desc &d, const Layout &a, const Layout &b, const Layout &c, const Layout &o) {
    for (const Layout *l : {&a, &b, &c, &o}) {
        if (!bytes_of(l->type) || (l->order != CUBLASLT_ORDER_COL && !row_order(*l)))
            return CUBLAS_STATUS_NOT_SUPPORTED;
        if (!l->rows || !l->cols || l->ld < int64_t(row_order(*l) ? l->cols : l->rows) || l->batch < 1 || l->stride < 0)
            return CUBLAS_STATUS_INVALID_VALUE;
        if (l->rows > INT32_MAX || l->cols > INT32_MAX) return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    Shape s = shape(d, a, b);
    if (s.k != s.k_b || o.rows != s.m || o.cols != s.n || c.rows != s.m || c.cols != s.n)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (a.batch != b.batch || a.batch != o.batch || c.batch != o.batch) return CUBLAS_STATUS_INVALID_VALUE;
    size_t line = row_order(o) ? o.cols : o.rows;
    bool beside = size_t(o.stride) >= line &&
        size_t(o.batch - 1) * size_t(o.stride) + line <= size_t(o.ld); /* batches side by side in each line */
    if (o.batch > 1 && !beside && size_t(o.stride) < at(o, o.rows - 1, o.cols - 1) + 1)
        return CUBLAS_STATUS_INVALID_VALUE; /* batches of D overlap */
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t check(const Desc &d, const Layout &a, const Layout &b, const Layout &c, const Layout &o, int arch) {
    if (cublasStatus_t e = check_shapes(d, a, b, c, o)) return e;
    bool half_sums = d.compute == CUBLAS_COMPUTE_16F; /* alpha and beta are halves, too */
    if (half_sums && (d.scale != CUDA_R_16F || a.type != CUDA_R_16F || b.type != CUDA_R_16F || o.type != CUDA_R_16F))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if ((d.scale != CUDA_R_32F && !half_sums) || d.mode_a || d.mode_b || d.mode_c || d.mode_d)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (d.pointer_mode != CUBLASLT_POINTER_MODE_HOST && d.pointer_mode != CUBLASLT_POINTER_MODE_DEVICE)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (is_fp8(a.type) || is_fp8(b.type)) {
        if (cublasStatus_t e = check_fp8(d, a, b, c, o, shape(d, a, b), arch)) return e;
    } else {
        if (a.type != b.type || (o.type != a.type && o.type != CUDA_R_32F) || c.type != o.type)
            return CUBLAS_STATUS_NOT_SUPPORTED;
        if (a.type == CUDA_R_16BF && arch < 80) return CUBLAS_STATUS_NOT_SUPPORTED;
        if (!has_compute(d, a, arch)) return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    if ((d.scale_a && !is_fp8(a.type)) || (d.scale_b && !is_fp8(b.type)) || (d.scale_c && !is_fp8(c.type)) ||
        ((d.scale_d || d.amax_d) && !is_fp8(o.type)) || d.aux_scale || d.aux_amax)
        /* scale factors belong to fp8 matrices; aux ones to fp8 aux, which is refused */
        return CUBLAS_STATUS_INVALID_VALUE;
    return check_epilogue(d, a, b, c, o, arch);
}

/* ---- algorithms -------------------------------------------------------------------------------------------------- */

uint64_t problem_of(const Desc &d, const Layout &a, const Layout &b, const Layout &c, const Layout &o) {
    const int64_t parts[] = {d.compute, d.scale, d.trans_a, d.trans_b, int64_t(d.epilogue), a.type, b.type, c.type,
        o.type, a.order, b.order, c.order, o.order};
    uint64_t h = 1469598103934665603ull;
    for (int64_t p : parts)
        h = (h ^ uint64_t(p)) * 1099511628211ull;
    return h;
}
uint16_t alignment_of(const void *p) { /* a NULL pointer promises nothing is wrong */
    uint16_t a = 16;
    while (a > 1 && uintptr_t(p) % a)
        a = uint16_t(a / 2);
    return a;
}
constexpr uint64_t kWanted = uint64_t(4) << 20; /* workspace the split-K algorithm would like to have */
constexpr int kAlgoCount = 3;
/* Algorithm 0 splits k and needs the workspace; 1 and 2 need none and differ in their order of summation. */
uint32_t g_reductions;
/* What a matrix must be aligned to, in bytes. An H100 asks no more of an F32 D than of its 16-bit inputs. */
uint32_t least_alignment(const Layout &l, const Layout &a, int arch) {
    if (is_fp8(a.type)) return 16;
    return uint32_t(as_h100(arch) ? std::min(bytes_of(l.type), bytes_of(a.type)) : bytes_of(l.type));
}
/* Where an H100 splits k: where it is long, and in 16-bit products with lines of odd length. */
bool long_or_odd(const Shape &s, const Layout &a, const Layout &b, const Layout &o, const Pref &p) {
    if (s.k >= 16 * std::max(s.m, s.n)) return true;
    const bool odd = ((a.ld | b.ld | o.ld) & 1) || std::min({p.align[0], p.align[1], p.align[3]}) < 4;
    return bytes_of(a.type) == 2 && s.n > 8 && odd;
}
int search(
    const Desc &d, const Layout *const l[4], const Pref &p, int arch, Algo out[kAlgoCount], cublasStatus_t *status) {
    g_reductions = p.reductions;
    *status = check(d, *l[0], *l[1], *l[2], *l[3], arch);
    if (*status) return 0;
    for (int i = 0; i < 4; i++) {
        if (p.align[i] < least_alignment(*l[i], *l[0], arch) || (p.align[i] & (p.align[i] - 1))) {
            *status = CUBLAS_STATUS_NOT_SUPPORTED;
            return 0;
        }
    }
    int n = 0;
    for (uint32_t id = 0; id < uint32_t(kAlgoCount); id++) {
        bool splits = id == 0;
        if (splits &&
            (p.workspace == 0 ||
                (p.reductions & (CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE)) == 0))
            continue;
        Algo g{kAlgo, id, splits ? std::min(p.workspace, kWanted) : 0, problem_of(d, *l[0], *l[1], *l[2], *l[3]), {},
            alignment_of(d.bias), alignment_of(d.aux),
            splits && long_or_odd(shape(d, *l[0], *l[1]), *l[0], *l[1], *l[3], p) ? 4u : 1u};
        for (int i = 0; i < 4; i++)
            g.align[i] = uint16_t(std::min(p.align[i], 256u));
        out[n++] = g;
    }
    return n;
}

/* ---- a call --------------------------------------------------------------------------------------------------- */

int g_order = -1;
unsigned g_order_seed = 1;

/* Kernels after the product's own, on an H100: that sums the parts of k, that applies GELU to F32, that sums the bias's
 * gradient. BF16's gradient of GELU is one more. */
int later_kernels(const Product &p) {
    if (!as_h100(p.arch) || p.d.epilogue == CUBLASLT_EPILOGUE_DEFAULT) return as_h100(p.arch) && p.split_k > 1;
    bool gelu = (p.d.epilogue & (EPI_GELU | EPI_DGELU)) != 0, sums = (p.d.epilogue & EPI_BGRAD) != 0;
    bool own_gelu = gelu && (p.a.type == CUDA_R_32F || (p.a.type == CUDA_R_16BF && sums));
    return int(p.split_k > 1) + int(own_gelu) + int(sums);
}
/* Everything that a call can get wrong about its pointers; then the product becomes stream work. */
bool overlap(const void *a, size_t na, const void *b, size_t nb) {
    return uintptr_t(a) < uintptr_t(b) + nb && uintptr_t(b) < uintptr_t(a) + na;
}
cublasStatus_t submit(Product p, cudaStream_t stream, const char *api) {
    const Desc &d = p.d;
    int device = stream_device(stream);
    if (device < 0) return CUBLAS_STATUS_INVALID_VALUE;
    if (cublasStatus_t e = check(d, p.a, p.b, p.c, p.o, device_arch(device))) return e;
    if (!p.A || !p.B || !p.C || !p.D) return CUBLAS_STATUS_INVALID_VALUE;
    if (p.C == p.D && (p.c.ld != p.o.ld || p.c.order != p.o.order || p.c.stride != p.o.stride || p.c.type != p.o.type))
        return CUBLAS_STATUS_INVALID_VALUE; /* in place only with equal layouts */
    const struct {
        const char *name;
        const void *p;
        size_t bytes;
    } operands[] = {{"A", p.A, extent(p.a)}, {"B", p.B, extent(p.b)},
        {"C", p.C, p.beta != 0 || p.beta_device ? extent(p.c) : 1}, {"D", p.D, extent(p.o)}};
    for (auto &x : operands)
        if (!need_device(api, x.name, x.p, x.bytes, device)) return CUBLAS_STATUS_INVALID_VALUE;
    if (overlap(p.A, extent(p.a), p.D, extent(p.o)) || overlap(p.B, extent(p.b), p.D, extent(p.o))) {
        bug("%s: D overlaps an input", api);
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    const void *const pointers[4] = {p.A, p.B, p.C, p.D};
    for (int i = 0; i < 4; i++) {
        size_t needed = is_fp8(p.a.type) ? 16 : bytes_of((i == 0 ? p.a : i == 1 ? p.b : i == 2 ? p.c : p.o).type);
        if (uintptr_t(pointers[i]) % needed) return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    int bt = bias_type(p.a, p.c, p.o);
    if (d.epilogue & (EPI_BIAS | EPI_WRITES_BIAS)) {
        if (!d.bias) return CUBLAS_STATUS_INVALID_VALUE;
        bool writes = !(d.epilogue & EPI_BIAS);
        if (writes && p.o.batch > 1 && size_t(d.bias_stride) < bias_count(d, p.o)) {
            bug("%s: the batches' bias gradients overlap", api);
            return CUBLAS_STATUS_INVALID_VALUE;
        }
        if (!need_device(api, "bias", d.bias, bias_extent(d, p.o, bt), device)) return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (d.epilogue & EPI_AUX) {
        if (!d.aux) return CUBLAS_STATUS_INVALID_VALUE;
        if (!need_device(api, "aux", d.aux, aux_extent(d, p.c, p.o), device)) return CUBLAS_STATUS_INVALID_VALUE;
    }
    const struct {
        const char *name;
        const void *p;
    } scalars[] = {{"alpha", p.alpha_device}, {"beta", p.beta_device}, {"A scale", d.scale_a}, {"B scale", d.scale_b},
        {"C scale", d.scale_c}, {"D scale", d.scale_d}, {"D amax", d.amax_d}};
    for (auto &x : scalars)
        if (x.p && !need_device(api, x.name, x.p, sizeof(float), device)) return CUBLAS_STATUS_INVALID_VALUE;
    for (const float *scale : {d.scale_a, d.scale_b, d.scale_c, d.scale_d}) /* no search says so: seen on an H100 */
        if (uintptr_t(scale) % 16) return CUBLAS_STATUS_INVALID_VALUE;
    if (g_order >= 0) {
        p.order = g_order;
        p.seed = g_order_seed;
    }
    p.arch = device_arch(device);
    cudaError_t e = enqueue(stream, Work{api, HCU_MATMUL, [p] { run_product(p); }});
    for (int i = later_kernels(p); i > 0 && !e; i--) /* they have nothing left to do */
        e = enqueue(stream, Work{api, kNoGroup, [] {}});
    return e ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t give_handle(Handle *h, const char *kind) {
    *h = Handle{kHandle, current_device(), nullptr, CUBLAS_POINTER_MODE_HOST, CUBLAS_DEFAULT_MATH};
    live_object(kind, h, true);
    return CUBLAS_STATUS_SUCCESS;
}
} // namespace

/* ==== the API ===================================================================================================== */

extern "C" {

static int g_dead_search;
void hcu_dead_search(int status) { g_dead_search = status; }
unsigned hcu_reductions(void) { return g_reductions; }

void hcu_gemm_order(int how, unsigned seed) {
    g_order = how;
    g_order_seed = seed ? seed : 1;
}

/* clang-format off */
#define HCU_STATUSES(X) \
    X(CUBLAS_STATUS_SUCCESS) X(CUBLAS_STATUS_NOT_INITIALIZED) X(CUBLAS_STATUS_ALLOC_FAILED) \
    X(CUBLAS_STATUS_INVALID_VALUE) X(CUBLAS_STATUS_ARCH_MISMATCH) X(CUBLAS_STATUS_MAPPING_ERROR) \
    X(CUBLAS_STATUS_EXECUTION_FAILED) X(CUBLAS_STATUS_INTERNAL_ERROR) X(CUBLAS_STATUS_NOT_SUPPORTED) \
    X(CUBLAS_STATUS_LICENSE_ERROR)
/* clang-format on */
const char *cublasLtGetStatusName(cublasStatus_t s) {
    switch (s) {
#define X(code) \
    case code: return #code;
        HCU_STATUSES(X)
#undef X
    }
    return "unrecognized status";
}
const char *cublasLtGetStatusString(cublasStatus_t s) { return cublasLtGetStatusName(s); }
const char *cublasGetStatusName(cublasStatus_t s) { return cublasLtGetStatusName(s); }
const char *cublasGetStatusString(cublasStatus_t s) { return cublasLtGetStatusName(s); }
size_t cublasLtGetVersion(void) { return CUBLAS_VERSION; }
size_t cublasLtGetCudartVersion(void) { return CUDART_VERSION; }

/* ---- handles ---- */

cublasStatus_t cublasLtCreate(cublasLtHandle_t *out) {
    ENTER_CREATE("cublasLtCreate");
    *out = new cublasLtContext;
    return give_handle(&(*out)->h, "cublasLt handle");
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t h) {
    ENTER("cublasLtDestroy", HCU_OBJECT, kNeverFails);
    if (!handle(h)) return h ? CUBLAS_STATUS_NOT_INITIALIZED : CUBLAS_STATUS_INVALID_VALUE;
    live_object("", h, false);
    (void)wait_for_device(); /* and says nothing of a capture that this ends */
    h->h.magic = 0;
    delete h;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasCreate(cublasHandle_t *out) {
    ENTER_CREATE("cublasCreate");
    if (forbidden_in_capture()) return CUBLAS_STATUS_NOT_INITIALIZED;
    *out = new cublasContext;
    return give_handle(&(*out)->h, "cublas handle");
}
cublasStatus_t cublasDestroy(cublasHandle_t h) {
    ENTER("cublasDestroy", HCU_OBJECT, kNeverFails);
    if (!handle(h)) return CUBLAS_STATUS_NOT_INITIALIZED;
    live_object("", h, false);
    (void)wait_for_device(); /* and says nothing of a capture that this ends */
    h->h.magic = 0;
    delete h;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetVersion(cublasHandle_t h, int *v) {
    *v = CUBLAS_VERSION;
    return handle(h) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}
cublasStatus_t cublasSetStream(cublasHandle_t h, cudaStream_t s) {
    ENTER("cublasSetStream", kNoGroup, CUBLAS_STATUS_INTERNAL_ERROR);
    if (!handle(h)) return CUBLAS_STATUS_NOT_INITIALIZED;
    h->h.stream = s;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetStream(cublasHandle_t h, cudaStream_t *s) {
    ENTER("cublasGetStream", kNoGroup, CUBLAS_STATUS_INTERNAL_ERROR);
    if (!handle(h)) return CUBLAS_STATUS_NOT_INITIALIZED;
    *s = h->h.stream;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t h, cublasMath_t mode) {
    if (!handle(h)) return CUBLAS_STATUS_NOT_INITIALIZED;
    const unsigned kind = unsigned(mode) & ~unsigned(CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
    if (kind > 4 && kind != 8) return CUBLAS_STATUS_INVALID_VALUE; /* CUBLAS_FP64_EMULATED_FIXEDPOINT_MATH is 8 */
    h->h.math_mode = mode;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetMathMode(cublasHandle_t h, cublasMath_t *mode) {
    if (!handle(h)) return CUBLAS_STATUS_NOT_INITIALIZED;
    *mode = cublasMath_t(h->h.math_mode);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetPointerMode(cublasHandle_t h, cublasPointerMode_t mode) {
    if (!handle(h)) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (mode != CUBLAS_POINTER_MODE_HOST && mode != CUBLAS_POINTER_MODE_DEVICE) return CUBLAS_STATUS_INVALID_VALUE;
    h->h.pointer_mode = mode;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetPointerMode(cublasHandle_t h, cublasPointerMode_t *mode) {
    if (!handle(h)) return CUBLAS_STATUS_NOT_INITIALIZED;
    *mode = cublasPointerMode_t(h->h.pointer_mode);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace(cublasHandle_t h, void *, size_t) {
    return handle(h) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED; /* also of one that is not aligned */
}

/* ---- descriptors ---- */

cublasStatus_t cublasLtMatmulDescInit_internal(
    cublasLtMatmulDesc_t m, size_t bytes, cublasComputeType_t compute, cudaDataType_t scale) {
    if (bytes < sizeof *m) return CUBLAS_STATUS_ALLOC_FAILED;
    memset(m, 0, sizeof *m);
    Desc d{};
    d.magic = kDesc;
    d.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    d.compute = compute;
    d.scale = scale;
    d.bias_type = d.aux_type = -1;
    memcpy(m, &d, sizeof d);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *m, cublasComputeType_t compute, cudaDataType_t scale) {
    ENTER("cublasLtMatmulDescCreate", HCU_OBJECT, CUBLAS_STATUS_ALLOC_FAILED);
    *m = new cublasLtMatmulDescOpaque_t;
    live_object("matmul descriptor", *m, true);
    return cublasLtMatmulDescInit_internal(*m, sizeof **m, compute, scale);
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t m) {
    ENTER("cublasLtMatmulDescDestroy", HCU_OBJECT, kNeverFails);
    live_object("", m, false);
    delete m;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(
    cublasLtMatmulDesc_t m, cublasLtMatmulDescAttributes_t a, const void *v, size_t n) {
    ENTER("cublasLtMatmulDescSetAttribute", kNoGroup, CUBLAS_STATUS_INVALID_VALUE);
    return set_field(open<Desc>(m, kDesc), field(kDescFields, a), v, n);
}
cublasStatus_t cublasLtMatmulDescGetAttribute(
    cublasLtMatmulDesc_t m, cublasLtMatmulDescAttributes_t a, void *v, size_t n, size_t *written) {
    ENTER("cublasLtMatmulDescGetAttribute", kNoGroup, CUBLAS_STATUS_INVALID_VALUE);
    return get_field(open<Desc>(m, kDesc), field(kDescFields, a), v, n, written);
}
cublasStatus_t cublasLtMatrixLayoutInit_internal(
    cublasLtMatrixLayout_t l, size_t bytes, cudaDataType type, uint64_t rows, uint64_t cols, int64_t ld) {
    if (bytes < sizeof *l) return CUBLAS_STATUS_ALLOC_FAILED;
    memset(l, 0, sizeof *l);
    Layout x{kLayout, type, CUBLASLT_ORDER_COL, 1, rows, cols, ld, 0};
    memcpy(l, &x, sizeof x);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(
    cublasLtMatrixLayout_t *l, cudaDataType type, uint64_t rows, uint64_t cols, int64_t ld) {
    ENTER("cublasLtMatrixLayoutCreate", HCU_OBJECT, CUBLAS_STATUS_ALLOC_FAILED);
    *l = new cublasLtMatrixLayoutOpaque_t;
    live_object("matrix layout", *l, true);
    return cublasLtMatrixLayoutInit_internal(*l, sizeof **l, type, rows, cols, ld);
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l) {
    ENTER("cublasLtMatrixLayoutDestroy", HCU_OBJECT, kNeverFails);
    live_object("", l, false);
    delete l;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(
    cublasLtMatrixLayout_t l, cublasLtMatrixLayoutAttribute_t a, const void *v, size_t n) {
    ENTER("cublasLtMatrixLayoutSetAttribute", kNoGroup, CUBLAS_STATUS_INVALID_VALUE);
    return set_field(open<Layout>(l, kLayout), field(kLayoutFields, a), v, n);
}
cublasStatus_t cublasLtMatrixLayoutGetAttribute(
    cublasLtMatrixLayout_t l, cublasLtMatrixLayoutAttribute_t a, void *v, size_t n, size_t *written) {
    ENTER("cublasLtMatrixLayoutGetAttribute", kNoGroup, CUBLAS_STATUS_INVALID_VALUE);
    return get_field(open<Layout>(l, kLayout), field(kLayoutFields, a), v, n, written);
}
cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t p, size_t bytes) {
    if (bytes < sizeof *p) return CUBLAS_STATUS_ALLOC_FAILED;
    memset(p, 0, sizeof *p);
    Pref x{};
    x.magic = kPref;
    x.reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
    for (uint32_t &align : x.align)
        align = 256;
    memcpy(p, &x, sizeof x);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *p) {
    ENTER("cublasLtMatmulPreferenceCreate", HCU_OBJECT, CUBLAS_STATUS_ALLOC_FAILED);
    *p = new cublasLtMatmulPreferenceOpaque_t;
    live_object("matmul preference", *p, true);
    return cublasLtMatmulPreferenceInit_internal(*p, sizeof **p);
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p) {
    ENTER("cublasLtMatmulPreferenceDestroy", HCU_OBJECT, kNeverFails);
    live_object("", p, false);
    delete p;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t p, cublasLtMatmulPreferenceAttributes_t a, const void *v, size_t n) {
    ENTER("cublasLtMatmulPreferenceSetAttribute", kNoGroup, CUBLAS_STATUS_INVALID_VALUE);
    return set_field(open<Pref>(p, kPref), field(kPrefFields, a), v, n);
}
cublasStatus_t cublasLtMatmulPreferenceGetAttribute(
    cublasLtMatmulPreference_t p, cublasLtMatmulPreferenceAttributes_t a, void *v, size_t n, size_t *written) {
    ENTER("cublasLtMatmulPreferenceGetAttribute", kNoGroup, CUBLAS_STATUS_INVALID_VALUE);
    return get_field(open<Pref>(p, kPref), field(kPrefFields, a), v, n, written);
}
cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(
    const cublasLtMatmulAlgo_t *g, cublasLtMatmulAlgoConfigAttributes_t a, void *v, size_t n, size_t *written) {
    ENTER("cublasLtMatmulAlgoConfigGetAttribute", kNoGroup, CUBLAS_STATUS_INVALID_VALUE);
    return get_field(g, field(kAlgoFields, a), v, n, written); /* of anything, as the library does */
}

/* ---- algorithms and products ---- */

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t h, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t o, cublasLtMatmulPreference_t pref,
    int wanted, cublasLtMatmulHeuristicResult_t *results, int *found) {
    Call call("cublasLtMatmulAlgoGetHeuristic", HCU_HEURISTIC, CUBLAS_STATUS_NOT_SUPPORTED);
    if (call.dead && g_dead_search) return cublasStatus_t(g_dead_search);
    if (call.error && !call.dead)
        return cublasStatus_t(call.error); /* leaves *found as it was; a dead device is not asked */
    if (!handle(h)) return CUBLAS_STATUS_NOT_INITIALIZED;
    const Desc *d = open<Desc>(desc, kDesc);
    const Pref *p = open<Pref>(pref, kPref);
    const Layout *const l[4] = {layout(a), layout(b), layout(c), layout(o)};
    if (!d || !p || !l[0] || !l[1] || !l[2] || !l[3] || wanted < 1 || !results) return CUBLAS_STATUS_INVALID_VALUE;
    Algo algos[kAlgoCount];
    cublasStatus_t status;
    int n = search(*d, l, *p, device_arch(handle(h)->device), algos, &status);
    if (status) return status;
    *found = 0;
    for (int i = 0; i < std::min(n, wanted); i++) {
        memset(&results[i], 0, sizeof results[i]);
        memcpy(&results[i].algo, &algos[i], sizeof algos[i]);
        results[i].workspaceSize = algos[i].workspace;
        results[i].state = CUBLAS_STATUS_SUCCESS;
        results[i].wavesCount = 1.0f;
        *found = i + 1;
    }
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t h, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t o, const cublasLtMatmulAlgo_t *algo,
    cublasLtMatmulHeuristicResult_t *result) {
    ENTER("cublasLtMatmulAlgoCheck", kNoGroup, CUBLAS_STATUS_NOT_SUPPORTED);
    if (!handle(h)) return CUBLAS_STATUS_NOT_INITIALIZED;
    const Desc *d = open<Desc>(desc, kDesc);
    const Algo *g = open<const Algo>(algo, kAlgo);
    const Layout *la = layout(a), *lb = layout(b), *lc = layout(c), *lo = layout(o);
    if (!d || !g || !la || !lb || !lc || !lo || !result) return CUBLAS_STATUS_INVALID_VALUE;
    if (cublasStatus_t e = check(*d, *la, *lb, *lc, *lo, device_arch(handle(h)->device))) return e;
    if (g->problem != problem_of(*d, *la, *lb, *lc, *lo)) return CUBLAS_STATUS_INVALID_VALUE;
    memset(result, 0, sizeof *result);
    result->workspaceSize = g->workspace;
    result->state = CUBLAS_STATUS_SUCCESS;
    result->wavesCount = 1.0f;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t h, cublasLtMatmulDesc_t desc, const void *alpha, const void *A,
    cublasLtMatrixLayout_t a, const void *B, cublasLtMatrixLayout_t b, const void *beta, const void *C,
    cublasLtMatrixLayout_t c, void *D, cublasLtMatrixLayout_t o, const cublasLtMatmulAlgo_t *algo, void *workspace,
    size_t workspace_bytes, cudaStream_t stream) {
    ENTER("cublasLtMatmul", HCU_MATMUL, CUBLAS_STATUS_EXECUTION_FAILED);
    if (!handle(h)) return CUBLAS_STATUS_NOT_INITIALIZED;
    const Desc *d = open<Desc>(desc, kDesc);
    const Layout *const l[4] = {layout(a), layout(b), layout(c), layout(o)};
    if (!d || !l[0] || !l[1] || !l[2] || !l[3] || !alpha || !beta) return CUBLAS_STATUS_INVALID_VALUE;
    if (stream_device(stream) != handle(h)->device)
        return CUBLAS_STATUS_INVALID_VALUE; /* the handle belongs to one device */
    if (uintptr_t(workspace) % 256 || (workspace_bytes && !workspace)) return CUBLAS_STATUS_INVALID_VALUE;
    if (workspace_bytes && !need_device("cublasLtMatmul", "workspace", workspace, workspace_bytes, handle(h)->device))
        return CUBLAS_STATUS_INVALID_VALUE;

    Algo chosen;
    if (algo) {
        const Algo *g = open<const Algo>(algo, kAlgo);
        if (!g) {
            bug("cublasLtMatmul: the algo did not come from the heuristic");
            return CUBLAS_STATUS_INVALID_VALUE;
        }
        chosen = *g;
        if (workspace_bytes < chosen.workspace || chosen.problem != problem_of(*d, *l[0], *l[1], *l[2], *l[3]))
            return CUBLAS_STATUS_INVALID_VALUE;
        const void *const operand[4] = {A, B, C, D};
        for (int i = 0; i < 4; i++)
            if (uintptr_t(operand[i]) % chosen.align[i]) {
                bug("cublasLtMatmul: operand %c (%p) is not aligned to the %u bytes promised to the heuristic",
                    "ABCD"[i], operand[i], chosen.align[i]);
                return CUBLAS_STATUS_NOT_SUPPORTED;
            }
        if (alignment_of(d->bias) < chosen.bias_align || alignment_of(d->aux) < chosen.aux_align) {
            bug("cublasLtMatmul: bias or aux pointer is less aligned than the one the heuristic was shown");
            return CUBLAS_STATUS_NOT_SUPPORTED;
        }
    } else { /* a search hidden in the call */
        count_extra(HCU_HEURISTIC);
        Pref p{};
        p.workspace = workspace_bytes;
        p.reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
        for (uint32_t &align : p.align)
            align = 16;
        Algo algos[kAlgoCount];
        cublasStatus_t status;
        if (search(*d, l, p, device_arch(handle(h)->device), algos, &status) == 0) return status;
        chosen = algos[0];
    }
    bool host = d->pointer_mode == CUBLASLT_POINTER_MODE_HOST;
    float halves[2];
    if (d->scale == CUDA_R_16F) {
        if (!host) return CUBLAS_STATUS_NOT_SUPPORTED;
        halves[0] = __half2float(*static_cast<const __half *>(alpha));
        halves[1] = __half2float(*static_cast<const __half *>(beta));
        alpha = &halves[0];
        beta = &halves[1];
    }
    const float *pa = static_cast<const float *>(alpha), *pb = static_cast<const float *>(beta);
    Product p{*d, *l[0], *l[1], *l[2], *l[3], A, B, C, D, workspace, size_t(chosen.workspace), host ? *pa : 0,
        host ? *pb : 0, host ? nullptr : pa, host ? nullptr : pb,
        chosen.id == 0       ? 2
            : chosen.id == 1 ? 0
                             : 1,
        chosen.split_k, 4, 0};
    return submit(p, stream, "cublasLtMatmul");
}

static cublasStatus_t scaled_only(cublasHandle_t h, const Layout &c, void *C, const float *beta, const char *api) {
    const int device = stream_device(h->h.stream);
    const bool host = h->h.pointer_mode == CUBLAS_POINTER_MODE_HOST;
    const float now = host ? *beta : 0;
    if (device < 0 || !need_device(api, "C", C, extent(c), device)) return CUBLAS_STATUS_INVALID_VALUE;
    if (!host && !need_device(api, "beta", beta, sizeof *beta, device)) return CUBLAS_STATUS_INVALID_VALUE;
    auto work = [=] { scale_matrix(c, C, host ? now : *beta); };
    cudaError_t e = enqueue(h->h.stream, Work{api, HCU_MATMUL, work});
    return e ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}
static cublasStatus_t gemm(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
    const void *alpha, const void *A, cudaDataType at, int lda, long long sa, const void *B, cudaDataType bt, int ldb,
    long long sb, const void *beta, void *C, cudaDataType ct, int ldc, long long sc, int batch,
    cublasComputeType_t compute, const char *api) {
    if (!handle(h)) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!good_gemm_sizes(ta, tb, m, n, k, lda, ldb, ldc, batch) || !alpha || !beta) return CUBLAS_STATUS_INVALID_VALUE;
    if (m == 0 || n == 0 || batch == 0) return CUBLAS_STATUS_SUCCESS;
    if (at == CUDA_R_64F && bt == at && ct == at && compute == CUBLAS_COMPUTE_64F)
        return gemm_double(h, ta, tb, m, n, k, static_cast<const double *>(alpha), static_cast<const double *>(A), lda,
            sa, static_cast<const double *>(B), ldb, sb, static_cast<const double *>(beta), static_cast<double *>(C),
            ldc, sc, batch, api);
    if (!bytes_of(at) || !bytes_of(bt) || !bytes_of(ct))
        return cublasStatus_t(refused("cublas: a product of this data type"));
    Desc d{};
    d.magic = kDesc;
    d.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    d.compute = compute;
    d.scale = CUDA_R_32F;
    d.trans_a = ta;
    d.trans_b = tb;
    d.bias_type = d.aux_type = -1;
    if (at == CUDA_R_32F && compute == CUBLAS_COMPUTE_32F && h->h.math_mode == CUBLAS_TF32_TENSOR_OP_MATH)
        d.compute = CUBLAS_COMPUTE_32F_FAST_TF32;
    auto make = [batch](int type, int rows, int cols, int ld, long long stride) {
        return Layout{kLayout, type, CUBLASLT_ORDER_COL, batch, uint64_t(rows), uint64_t(cols), ld, stride};
    };
    bool host = h->h.pointer_mode == CUBLAS_POINTER_MODE_HOST;
    float halves[2];
    if (compute == CUBLAS_COMPUTE_16F) { /* alpha and beta are halves, too */
        if (!host) return cublasStatus_t(refused("cublas: half sums with alpha on the device"));
        d.scale = CUDA_R_16F;
        halves[0] = __half2float(*static_cast<const __half *>(alpha));
        halves[1] = __half2float(*static_cast<const __half *>(beta));
        alpha = &halves[0];
        beta = &halves[1];
    }
    d.pointer_mode = host ? CUBLASLT_POINTER_MODE_HOST : CUBLASLT_POINTER_MODE_DEVICE;
    const float *pa = static_cast<const float *>(alpha), *pb = static_cast<const float *>(beta);
    Layout a = ta ? make(at, k, m, lda, sa) : make(at, m, k, lda, sa),
           b = tb ? make(bt, n, k, ldb, sb) : make(bt, k, n, ldb, sb);
    Layout c = make(ct, m, n, ldc, sc);
    const int device = stream_device(h->h.stream);
    if (k && device >= 0)
        if (cublasStatus_t e = check(d, a, b, c, c, device_arch(device))) return e;
    if (k == 0 || (host && *pa == 0)) return scaled_only(h, c, C, pb, api); /* A and B are not read */
    Product p{d, a, b, c, c, A, B, C, C, nullptr, 0, host ? *pa : 0, host ? *pb : 0, host ? nullptr : pa,
        host ? nullptr : pb, 0, 1, 1, 0};
    return submit(p, h->h.stream, api);
}
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n,
    int k, const void *alpha, const void *A, cudaDataType at, int lda, long long sa, const void *B, cudaDataType bt,
    int ldb, long long sb, const void *beta, void *C, cudaDataType ct, int ldc, long long sc, int batch,
    cublasComputeType_t compute, cublasGemmAlgo_t) {
    ENTER_CUBLAS("cublasGemmStridedBatchedEx", HCU_MATMUL, CUBLAS_STATUS_EXECUTION_FAILED);
    return gemm(h, ta, tb, m, n, k, alpha, A, at, lda, sa, B, bt, ldb, sb, beta, C, ct, ldc, sc, batch, compute,
        "cublasGemmStridedBatchedEx");
}
cublasStatus_t cublasGemmEx(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
    const void *alpha, const void *A, cudaDataType at, int lda, const void *B, cudaDataType bt, int ldb,
    const void *beta, void *C, cudaDataType ct, int ldc, cublasComputeType_t compute, cublasGemmAlgo_t) {
    ENTER_CUBLAS("cublasGemmEx", HCU_MATMUL, CUBLAS_STATUS_EXECUTION_FAILED);
    return gemm(
        h, ta, tb, m, n, k, alpha, A, at, lda, 0, B, bt, ldb, 0, beta, C, ct, ldc, 0, 1, compute, "cublasGemmEx");
}
cublasStatus_t cublasSgemm(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
    const float *alpha, const float *A, int lda, const float *B, int ldb, const float *beta, float *C, int ldc) {
    ENTER_CUBLAS("cublasSgemm", HCU_MATMUL, CUBLAS_STATUS_EXECUTION_FAILED);
    return gemm(h, ta, tb, m, n, k, alpha, A, CUDA_R_32F, lda, 0, B, CUDA_R_32F, ldb, 0, beta, C, CUDA_R_32F, ldc, 0, 1,
        CUBLAS_COMPUTE_32F, "cublasSgemm");
}
cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n,
    int k, const float *alpha, const float *A, int lda, long long sa, const float *B, int ldb, long long sb,
    const float *beta, float *C, int ldc, long long sc, int batch) {
    ENTER_CUBLAS("cublasSgemmStridedBatched", HCU_MATMUL, CUBLAS_STATUS_EXECUTION_FAILED);
    return gemm(h, ta, tb, m, n, k, alpha, A, CUDA_R_32F, lda, sa, B, CUDA_R_32F, ldb, sb, beta, C, CUDA_R_32F, ldc, sc,
        batch, CUBLAS_COMPUTE_32F, "cublasSgemmStridedBatched");
}
} // extern "C"
