/* test_blas.cpp - contract tests of the cuBLASLt part: products against fp64, epilogues, refusals.
 *
 * As in test_lang.cpp, what is outside #ifdef AMP_HOSTCUDA is meant for a real GPU, too. */
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include "selftest.h"

static unsigned g_seed = 1;
static float next_float() { /* -1 .. 1 */
    g_seed = g_seed * 1664525u + 1013904223u;
    return float(int(g_seed >> 8) - (1 << 23)) / float(1 << 23);
}
static bool is_fp8(cudaDataType t) { return t == CUDA_R_8F_E4M3 || t == CUDA_R_8F_E5M2; }
static size_t bytes_of(cudaDataType t) { return t == CUDA_R_32F ? 4 : is_fp8(t) ? 1 : 2; }
static double unit_of(cudaDataType t) { /* relative error of one rounding, with some room */
    return t == CUDA_R_32F    ? 1e-6
        : t == CUDA_R_16F     ? 1.0 / 1024
        : t == CUDA_R_16BF    ? 1.0 / 128
        : t == CUDA_R_8F_E4M3 ? 0.07
                              : 0.13;
}
static __nv_fp8_interpretation_t kind_of(cudaDataType t) { return t == CUDA_R_8F_E4M3 ? __NV_E4M3 : __NV_E5M2; }
static double decode(cudaDataType t, const void *p, size_t i) {
    const unsigned char *b = static_cast<const unsigned char *>(p) + i * bytes_of(t);
    float f;
    __half h;
    __nv_bfloat16 bf;
    switch (t) {
    case CUDA_R_32F: memcpy(&f, b, 4); return double(f);
    case CUDA_R_16F: memcpy(&h, b, 2); return double(__half2float(h));
    case CUDA_R_16BF: memcpy(&bf, b, 2); return double(__bfloat162float(bf));
    default: return double(__half2float(__half(__nv_cvt_fp8_to_halfraw(*b, kind_of(t)))));
    }
}
static void encode(cudaDataType t, void *p, size_t i, float v) {
    unsigned char *b = static_cast<unsigned char *>(p) + i * bytes_of(t);
    __half h = __float2half_rn(v);
    __nv_bfloat16 bf = __float2bfloat16_rn(v);
    switch (t) {
    case CUDA_R_32F: memcpy(b, &v, 4); break;
    case CUDA_R_16F: memcpy(b, &h, 2); break;
    case CUDA_R_16BF: memcpy(b, &bf, 2); break;
    default: *b = __nv_cvt_float_to_fp8(v, __NV_SATFINITE, kind_of(t));
    }
}

/* A matrix with padding behind each column (or row), its layout, its copy on the device. */
struct Matrix {
    cudaDataType type;
    int rows, cols, ld, batch;
    bool by_rows;
    size_t stride;
    std::vector<unsigned char> host;
    void *device = nullptr;
    cublasLtMatrixLayoutOpaque_t layout;

    Matrix(cudaDataType t, int r, int c, bool row_order, int count, bool stride0 = false, int pad = 8)
        : type(t), rows(r), cols(c), batch(count), by_rows(row_order) {
        ld = (row_order ? c : r) + (is_fp8(t) ? 16 : pad);
        stride = stride0 ? 0 : size_t(ld) * size_t(row_order ? r : c) + 64;
        host.resize((stride * size_t(count - 1) + size_t(ld) * size_t(row_order ? r : c)) * bytes_of(t));
        for (size_t i = 0; i < host.size() / bytes_of(t); i++)
            encode(t, host.data(), i, next_float());
        void *p = nullptr;
        CU(cudaMalloc(&p, host.size()));
        device = p;
        upload();
        CHECK(cublasLtMatrixLayoutInit(&layout, t, uint64_t(r), uint64_t(c), ld) == CUBLAS_STATUS_SUCCESS);
        int32_t order = row_order ? CUBLASLT_ORDER_ROW : CUBLASLT_ORDER_COL;
        int64_t s = int64_t(stride);
        set(CUBLASLT_MATRIX_LAYOUT_ORDER, order);
        set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, int32_t(count));
        set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, s);
    }
    Matrix(const Matrix &) = delete;
    ~Matrix() { CU(cudaFree(device)); }
    template <class T> void set(cublasLtMatrixLayoutAttribute_t a, T v) {
        CHECK(cublasLtMatrixLayoutSetAttribute(&layout, a, &v, sizeof v) == CUBLAS_STATUS_SUCCESS);
    }
    size_t at(int z, int i, int j) const {
        return size_t(z) * stride + (by_rows ? size_t(i) * size_t(ld) + size_t(j) : size_t(j) * size_t(ld) + size_t(i));
    }
    double get(int z, int i, int j) const { return decode(type, host.data(), at(z, i, j)); }
    void upload() { CU(cudaMemcpy(device, host.data(), host.size(), cudaMemcpyHostToDevice)); }
    void download() { CU(cudaMemcpy(host.data(), device, host.size(), cudaMemcpyDeviceToHost)); }
};

struct Case {
    cudaDataType ta = CUDA_R_16F, tb = CUDA_R_16F, tc = CUDA_R_16F, td = CUDA_R_16F;
    bool trans_a = false, trans_b = false, by_rows = false;
    int batch = 1, m = 24, n = 16, k = 40;
    bool broadcast_a = false; /* stride 0 */
    float alpha = 0.75f, beta = 0;
    cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    bool device_scalars = false, in_place = false, with_scales = false;
    cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
    int aux_pad = 0; /* added to the leading dimension of aux */
    bool other_bias = false;
    int scale_off = 0; /* elements that the scales of A and B lie off a multiple of 16 bytes */
    uint32_t align = 16;
    size_t workspace = 1 << 20;
};
static int g_products;
static const float kScaleA = 0.5f, kScaleB = 2.0f, kScaleD = 4.0f;
static double gelu(double x) { return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); }
static double gelu_slope(double x) { /* by differences: another way than the library's formula */
    double h = 1e-5;
    return (gelu(x + h) - gelu(x - h)) / (2 * h);
}

/* Runs one product; returns the heuristic's refusal, or the call's status after comparing everything with fp64. */
static cublasStatus_t product(cublasLtHandle_t lt, cudaStream_t stream, const Case &c) {
    const unsigned e = unsigned(c.epilogue);
    const bool relu_mask = e == CUBLASLT_EPILOGUE_RELU_AUX || e == CUBLASLT_EPILOGUE_RELU_AUX_BIAS ||
        e == CUBLASLT_EPILOGUE_DRELU || e == CUBLASLT_EPILOGUE_DRELU_BGRAD;
    const bool d_relu = e == CUBLASLT_EPILOGUE_DRELU || e == CUBLASLT_EPILOGUE_DRELU_BGRAD,
               d_gelu = e == CUBLASLT_EPILOGUE_DGELU || e == CUBLASLT_EPILOGUE_DGELU_BGRAD;
    const bool aux = (e & 128) != 0, bias = (e & 4) != 0, bgrad = (e & 16) != 0, relu = (e & 2) != 0,
               gelu_ = (e & 32) != 0;
    const bool bgrad_a = e == CUBLASLT_EPILOGUE_BGRADA, bgrad_b = e == CUBLASLT_EPILOGUE_BGRADB,
               any_bias = bias || bgrad || bgrad_a || bgrad_b;

    Matrix A(c.ta, c.trans_a ? c.k : c.m, c.trans_a ? c.m : c.k, c.by_rows, c.batch, c.broadcast_a),
        B(c.tb, c.trans_b ? c.n : c.k, c.trans_b ? c.k : c.n, c.by_rows, c.batch);
    Matrix C(c.tc, c.m, c.n, c.by_rows, c.batch), D(c.td, c.m, c.n, c.by_rows, c.batch);
    const cudaDataType bias_type = is_fp8(c.ta) ? (c.tc == CUDA_R_16F ? CUDA_R_16F : CUDA_R_16BF) : c.td;
    Matrix bias_vector(bias_type, bgrad_b ? c.n : c.m, 1, false, c.batch, false, 0),
        aux_values(is_fp8(c.td) ? c.tc : c.td, c.m, c.n, false, c.batch, false, 8 + c.aux_pad);
    const size_t mask_ld = size_t(c.m + 127) / 128 * 128;
    Matrix mask(CUDA_R_32F, int(mask_ld / 32), c.n, false, c.batch, false, 0); /* words of 32 bits */
    float scalars[20] = {c.alpha, c.beta};
    const int scale_a = 4 + c.scale_off, scale_b = 8 + c.scale_off, scale_d = 12,
              amax_d = 17; /* scales: every 16 bytes */
    scalars[scale_a] = kScaleA;
    scalars[scale_b] = kScaleB;
    scalars[scale_d] = kScaleD;
    scalars[amax_d] = -1.0f;
    float *ds = upload(std::vector<float>(scalars, scalars + 20));
    void *workspace = c.workspace ? device_array<char>(c.workspace) : nullptr;

    cublasLtMatmulDescOpaque_t d;
    cublasLtMatmulPreferenceOpaque_t p;
    CHECK(cublasLtMatmulDescInit(&d, c.compute, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS);
    CHECK(cublasLtMatmulPreferenceInit(&p) == CUBLAS_STATUS_SUCCESS);
    auto set = [&d](cublasLtMatmulDescAttributes_t a, auto v) {
        CHECK(cublasLtMatmulDescSetAttribute(&d, a, &v, sizeof v) == CUBLAS_STATUS_SUCCESS);
    };
    set(CUBLASLT_MATMUL_DESC_TRANSA, int32_t(c.trans_a ? CUBLAS_OP_T : CUBLAS_OP_N));
    set(CUBLASLT_MATMUL_DESC_TRANSB, int32_t(c.trans_b ? CUBLAS_OP_T : CUBLAS_OP_N));
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, uint32_t(c.epilogue));
    if (c.device_scalars) set(CUBLASLT_MATMUL_DESC_POINTER_MODE, int32_t(CUBLASLT_POINTER_MODE_DEVICE));
    if (any_bias) {
        set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, (const void *)bias_vector.device);
        set(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, int64_t(bias_vector.stride));
        set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, int32_t(c.other_bias ? CUDA_R_32F : bias_type));
    }
    if (aux) {
        set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, relu_mask ? mask.device : aux_values.device);
        set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, relu_mask ? int64_t(mask_ld) + c.aux_pad : int64_t(aux_values.ld));
        set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, int64_t(relu_mask ? mask.stride * 32 : aux_values.stride));
        if (is_fp8(c.td) && !relu_mask) set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, int32_t(c.tc));
    }
    if (c.with_scales) {
        set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, (const void *)(ds + scale_a));
        set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, (const void *)(ds + scale_b));
        if (is_fp8(c.td)) {
            set(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, (const void *)(ds + scale_d));
            set(CUBLASLT_MATMUL_DESC_AMAX_D_POINTER, (void *)(ds + amax_d));
        }
    }
    uint64_t limit = c.workspace;
    CHECK(cublasLtMatmulPreferenceSetAttribute(&p, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &limit, sizeof limit) ==
        CUBLAS_STATUS_SUCCESS);
    for (cublasLtMatmulPreferenceAttributes_t a :
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
            CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
        CHECK(cublasLtMatmulPreferenceSetAttribute(&p, a, &c.align, sizeof c.align) == CUBLAS_STATUS_SUCCESS);

    cublasLtMatmulHeuristicResult_t result;
    int found = 0;
    Matrix &out = c.in_place ? C : D;
    const std::vector<unsigned char> c_before = C.host;
    cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(lt, &d, &A.layout, &B.layout, &C.layout, &out.layout, &p, 1, &result, &found);
    if (status == CUBLAS_STATUS_SUCCESS && found == 0) status = CUBLAS_STATUS_NOT_SUPPORTED;
    if (status == CUBLAS_STATUS_SUCCESS) {
        cublasLtMatmulHeuristicResult_t again;
        CHECK(cublasLtMatmulAlgoCheck(lt, &d, &A.layout, &B.layout, &C.layout, &out.layout, &result.algo, &again) ==
                CUBLAS_STATUS_SUCCESS &&
            again.workspaceSize == result.workspaceSize);
        CHECK(result.workspaceSize <= c.workspace);
        status = cublasLtMatmul(lt, &d, c.device_scalars ? ds : scalars, A.device, &A.layout, B.device, &B.layout,
            c.device_scalars ? ds + 1 : scalars + 1, C.device, &C.layout, out.device, &out.layout, &result.algo,
            workspace, c.workspace, stream);
    }
    CU(cudaStreamSynchronize(stream));
    if (status == CUBLAS_STATUS_SUCCESS) {
        std::vector<unsigned char> aux_before = aux_values.host, mask_before = mask.host;
        out.download();
        aux_values.download();
        mask.download();
        bias_vector.download();
        std::vector<float> scalars_after = download(ds, 20);
        const double scale = double(c.alpha) * (c.with_scales ? double(kScaleA) * double(kScaleB) : 1.0),
                     out_scale = c.with_scales && is_fp8(c.td) ? double(kScaleD) : 1.0;
        const double input_unit = c.compute == CUBLAS_COMPUTE_32F_FAST_TF32 ? 2.0 / 1024 : 0;
        double amax = 0;
        int bad = 0;
        auto near_enough = [&bad](
                               double got, double want, double tolerance) { bad += !(fabs(got - want) <= tolerance); };
        for (int z = 0; z < c.batch; z++) {
            std::vector<double> grad(size_t(c.m)), grad_tolerance(size_t(c.m));
            for (int i = 0; i < c.m; i++)
                for (int j = 0; j < c.n; j++) {
                    double t = 0, sum = 0;
                    for (int q = 0; q < c.k; q++) {
                        double x = A.get(z, c.trans_a ? q : i, c.trans_a ? i : q) *
                            B.get(z, c.trans_b ? j : q, c.trans_b ? q : j);
                        t += x;
                        sum += fabs(x);
                    }
                    t *= scale;
                    double tolerance = fabs(scale) * sum * (c.k * 1.2e-7 + input_unit) + 1e-5;
                    t += double(c.beta) * decode(C.type, c_before.data(), C.at(z, i, j));
                    if (bias) t += decode(bias_type, bias_vector.host.data(), bias_vector.at(z, i, 0));
                    if (relu_mask) { /* bit i of column j */
                        size_t word = mask.at(z, 0, j) * 32 + size_t(i);
                        const std::vector<unsigned char> &bytes = d_relu ? mask_before : mask.host;
                        bool bit = bytes[word / 8] >> (word % 8) & 1;
                        if (d_relu)
                            t = bit ? t : 0;
                        else if (fabs(t) > tolerance)
                            bad += bit != (t > 0);
                    } else if (aux && !d_gelu) {
                        near_enough(aux_values.get(z, i, j), t, tolerance + fabs(t) * unit_of(aux_values.type));
                    }
                    if (d_gelu) {
                        double slope = gelu_slope(decode(aux_values.type, aux_before.data(), aux_values.at(z, i, j)));
                        if (bgrad) tolerance += fabs(t) * unit_of(c.td); /* BF16's product is in memory first */
                        t *= slope;
                        tolerance = tolerance * (fabs(slope) + 0.1) + fabs(t) * 1e-4;
                    }
                    if (relu) t = t > 0 ? t : 0;
                    if (gelu_) t = gelu(t), tolerance *= 1.2;
                    grad[size_t(i)] += t;
                    grad_tolerance[size_t(i)] += tolerance + fabs(t) * 1e-6;
                    amax = fmax(amax, fabs(t));
                    near_enough(out.get(z, i, j), t * out_scale,
                        (tolerance + fabs(t) * unit_of(c.td)) * out_scale + (is_fp8(c.td) ? 0.01 : 0));
                }
            for (int i = 0; bgrad && i < c.m; i++)
                near_enough(bias_vector.get(z, i, 0), grad[size_t(i)],
                    grad_tolerance[size_t(i)] + fabs(grad[size_t(i)]) * unit_of(bias_type));
            for (int i = 0; (bgrad_a || bgrad_b) && i < bias_vector.rows; i++) {
                double s = 0;
                for (int q = 0; q < c.k; q++)
                    s += bgrad_a ? A.get(z, c.trans_a ? q : i, c.trans_a ? i : q)
                                 : B.get(z, c.trans_b ? i : q, c.trans_b ? q : i);
                near_enough(bias_vector.get(z, i, 0), s, 1e-4 + fabs(s) * unit_of(bias_type));
            }
        }
        if (c.with_scales && is_fp8(c.td)) near_enough(double(scalars_after[size_t(amax_d)]), amax, 1e-3 * amax);
        if (bad)
            printf("  %d wrong: types %d %d %d %d transposes %d %d rows %d batch %d epilogue %u beta %g\n", bad, c.ta,
                c.tb, c.tc, c.td, c.trans_a, c.trans_b, c.by_rows, c.batch, e, double(c.beta));
        CHECK(bad == 0);
        g_products++;
    }
    CU(cudaFree(workspace));
    CU(cudaFree(ds));
    return status;
}
#define PRODUCT(c)         CHECK(product(lt, stream, c) == CUBLAS_STATUS_SUCCESS)
#define REFUSED(c, status) CHECK(product(lt, stream, c) == (status))

static void test_products(cublasLtHandle_t lt, cudaStream_t stream, int arch) {
    for (cudaDataType t : {CUDA_R_32F, CUDA_R_16F, CUDA_R_16BF}) {
        if (t == CUDA_R_16BF && arch < 80) continue;
        for (int f = 0; f < 32; f++) {
            Case c;
            c.ta = c.tb = t;
            c.tc = c.td = f & 8 ? CUDA_R_32F : t;
            c.trans_a = f & 1;
            c.trans_b = f & 2;
            c.by_rows = f & 4;
            c.batch = f & 8 ? 3 : 1;
            c.beta = f & 16 ? 0.5f : 0.0f;
            c.device_scalars = f & 1;
            c.in_place = f & 2;
            c.broadcast_a = f & 4;
            c.workspace = f & 2 ? 0 : 1 << 20;
            PRODUCT(c);
        }
    }
    Case c;
    c.ta = c.tb = c.tc = c.td = CUDA_R_32F;
    c.compute = CUBLAS_COMPUTE_32F_FAST_TF32;
    PRODUCT(c);
}
static void test_epilogues(cublasLtHandle_t lt, cudaStream_t stream, int arch) {
    const cublasLtEpilogue_t all[] = {CUBLASLT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_RELU_AUX, CUBLASLT_EPILOGUE_BIAS,
        CUBLASLT_EPILOGUE_RELU_BIAS, CUBLASLT_EPILOGUE_RELU_AUX_BIAS, CUBLASLT_EPILOGUE_DRELU,
        CUBLASLT_EPILOGUE_DRELU_BGRAD, CUBLASLT_EPILOGUE_GELU, CUBLASLT_EPILOGUE_GELU_AUX, CUBLASLT_EPILOGUE_GELU_BIAS,
        CUBLASLT_EPILOGUE_GELU_AUX_BIAS, CUBLASLT_EPILOGUE_DGELU, CUBLASLT_EPILOGUE_DGELU_BGRAD,
        CUBLASLT_EPILOGUE_BGRADA, CUBLASLT_EPILOGUE_BGRADB};
    for (cublasLtEpilogue_t e : all)
        for (cudaDataType t : {CUDA_R_16F, CUDA_R_16BF}) {
            if (t == CUDA_R_16BF && arch < 80) continue;
            for (int f = 0; f < 4; f++) {
                Case c;
                c.ta = c.tb = c.tc = c.td = t;
                c.trans_a = f & 1;
                c.trans_b = f & 2;
                c.m = 32;
                c.n = 24;
                c.k = 48;
                c.epilogue = e;
                if (e == CUBLASLT_EPILOGUE_BGRADA ? c.trans_a : e == CUBLASLT_EPILOGUE_BGRADB && !c.trans_b)
                    REFUSED(c, CUBLAS_STATUS_NOT_SUPPORTED); /* sums of operands as they lie */
                else
                    PRODUCT(c);
            }
        }
    Case c; /* one of each kind in batches, with beta, with float output */
    c.batch = 2;
    c.beta = 0.5f;
    c.m = 32;
    for (cublasLtEpilogue_t e : {CUBLASLT_EPILOGUE_GELU_AUX_BIAS, CUBLASLT_EPILOGUE_DRELU_BGRAD}) {
        c.epilogue = e;
        PRODUCT(c);
    }
}
/* The epilogues of FP8 products that an H100 has, by D: of 16 bits, of F32, of FP8; of other GPUs two. */
static const struct {
    cublasLtEpilogue_t e;
    bool d16, d32, d8;
} kFp8Epilogues[] = {
    {CUBLASLT_EPILOGUE_DEFAULT, true, true, true},
    {CUBLASLT_EPILOGUE_BIAS, true, true, true},
    {CUBLASLT_EPILOGUE_RELU, true, true, true},
    {CUBLASLT_EPILOGUE_RELU_AUX, true, true, true},
    {CUBLASLT_EPILOGUE_RELU_BIAS, true, true, true},
    {CUBLASLT_EPILOGUE_RELU_AUX_BIAS, true, true, true},
    {CUBLASLT_EPILOGUE_GELU, true, true, true},
    {CUBLASLT_EPILOGUE_GELU_AUX, true, true, true},
    {CUBLASLT_EPILOGUE_GELU_BIAS, true, true, true},
    {CUBLASLT_EPILOGUE_GELU_AUX_BIAS, true, false, true},
    {CUBLASLT_EPILOGUE_DRELU, true, true, false},
    {CUBLASLT_EPILOGUE_DGELU, true, true, false},
    {CUBLASLT_EPILOGUE_DRELU_BGRAD, true, false, false},
    {CUBLASLT_EPILOGUE_DGELU_BGRAD, true, false, false},
    {CUBLASLT_EPILOGUE_BGRADA, false, false, false},
    {CUBLASLT_EPILOGUE_BGRADB, false, false, false},
};
static void test_fp8(cublasLtHandle_t lt, cudaStream_t stream, int arch) {
    const cudaDataType e4 = CUDA_R_8F_E4M3, e5 = CUDA_R_8F_E5M2, h = CUDA_R_16F, b = CUDA_R_16BF, f = CUDA_R_32F;
    const struct {
        cudaDataType a, b, c, d;
    } ok[] = {{e4, e4, b, b}, {e4, e4, h, h}, {e4, e4, f, f}, {e4, e4, b, e4}, {e4, e4, h, e4}, {e4, e5, b, b},
        {e5, e4, h, h}, {e4, e5, f, f}, {e5, e4, b, e5}, {e4, e5, b, e4}};
    for (auto &x : ok)
        for (auto &y : kFp8Epilogues) {
            Case c;
            if (arch != 90 && y.e != CUBLASLT_EPILOGUE_DEFAULT && y.e != CUBLASLT_EPILOGUE_BIAS) continue;
            c.ta = x.a;
            c.tb = x.b;
            c.tc = x.c;
            c.td = x.d;
            c.trans_a = c.with_scales = true;
            c.m = 32;
            c.k = 64;
            c.alpha = 1.0f / 16;
            c.epilogue = y.e;
            if (is_fp8(x.d) ? y.d8 : x.d == f ? y.d32 : y.d16)
                PRODUCT(c);
            else
                REFUSED(c, CUBLAS_STATUS_NOT_SUPPORTED);
        }
}
static void test_refusals(cublasLtHandle_t lt, cudaStream_t stream, int arch) {
    Case c;
    c.tb = CUDA_R_16BF; /* mixed inputs */
    REFUSED(c, CUBLAS_STATUS_NOT_SUPPORTED);
    c = Case();
    c.ta = c.tb = CUDA_R_32F; /* narrower output than inputs */
    REFUSED(c, CUBLAS_STATUS_NOT_SUPPORTED);
    c = Case();
    c.compute = CUBLAS_COMPUTE_64F;
    REFUSED(c, CUBLAS_STATUS_NOT_SUPPORTED);
    c = Case();
    c.align = 1; /* a promise below the element size */
    REFUSED(c, CUBLAS_STATUS_NOT_SUPPORTED);
    c = Case();
    c.by_rows = true;
    c.epilogue = CUBLASLT_EPILOGUE_BIAS; /* epilogues want column order */
    REFUSED(c, CUBLAS_STATUS_NOT_SUPPORTED);
    c = Case();
    c.epilogue = CUBLASLT_EPILOGUE_GELU_AUX;
    c.aux_pad = 4; /* not a multiple of 8, as the documentation asks: an H100 takes it */
    REFUSED(c, arch == 90 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE);
    c.aux_pad = -12; /* less than the rows */
    REFUSED(c, CUBLAS_STATUS_INVALID_VALUE);
    c = Case();
    c.epilogue = CUBLASLT_EPILOGUE_RELU_AUX;
    c.aux_pad = 8; /* bits: not a multiple of 128 */
    REFUSED(c, CUBLAS_STATUS_INVALID_VALUE);
    c = Case();
    c.epilogue = CUBLASLT_EPILOGUE_BIAS;
    c.other_bias = true; /* of another dtype than D */
    REFUSED(c, CUBLAS_STATUS_INVALID_VALUE);
    for (cublasComputeType_t compute : {CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_COMPUTE_32F_FAST_16BF}) {
        c = Case();
        c.compute = compute; /* kinds of F32: an H100 takes them of halves, too */
        REFUSED(c, arch == 90 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED);
    }
    c = Case();
    c.tc = c.td = CUDA_R_32F;
    c.align = 2; /* promised of all four: less than an F32 D has */
    REFUSED(c, arch == 90 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED);
    c = Case();
    c.with_scales = true; /* scale factors without fp8 */
    REFUSED(c, CUBLAS_STATUS_INVALID_VALUE);
    if (arch < 89) return;
    Case f8;
    f8.ta = f8.tb = CUDA_R_8F_E4M3;
    f8.tc = f8.td = CUDA_R_16BF;
    f8.trans_a = true;
    f8.m = 32;
    f8.k = 64;
    PRODUCT(f8);
    if (arch < 100) {
        c = f8;
        c.trans_a = false; /* Ada and Hopper: transposed, plain */
        REFUSED(c, CUBLAS_STATUS_NOT_SUPPORTED);
    }
    for (int m : {8, 17, 24}) { /* multiples of 16; on an H100 of 16 bytes of D */
        c = f8;
        c.m = m;
        REFUSED(c, arch == 90 && m != 17 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED);
        c.td = CUDA_R_8F_E4M3;
        REFUSED(c, CUBLAS_STATUS_NOT_SUPPORTED);
    }
    c = f8;
    c.n = 24;
    PRODUCT(c);
    c = f8;
    c.with_scales = true;
    PRODUCT(c);
    c.scale_off = 1; /* there is an algorithm, and the call refuses */
    REFUSED(c, CUBLAS_STATUS_INVALID_VALUE);
    c = f8;
    c.ta = c.tb = CUDA_R_8F_E5M2;
    REFUSED(c, CUBLAS_STATUS_NOT_SUPPORTED);
    c = f8;
    c.align = 8;
    REFUSED(c, CUBLAS_STATUS_NOT_SUPPORTED);
    c = f8;
    c.epilogue = CUBLASLT_EPILOGUE_BGRADB;
    REFUSED(c, CUBLAS_STATUS_NOT_SUPPORTED);
}

/* Descriptors, workspace, algorithms: what cublasLtMatmul itself refuses. */
static void test_call_rules(cublasLtHandle_t lt, cudaStream_t stream) {
    const float one = 1, zero = 0;
    const uint64_t limit = 1 << 16;
    Matrix A(CUDA_R_16F, 32, 16, false, 1), B(CUDA_R_16F, 16, 24, false, 1), D(CUDA_R_16F, 32, 24, false, 1),
        narrow(CUDA_R_16F, 24, 16, false, 1);
    char *workspace = device_array<char>(limit + 256);
    cublasLtMatmulDescOpaque_t d;
    cublasLtMatmulPreference_t p = nullptr;
    cublasLtMatmulHeuristicResult_t r[4];
    int found = 0;
    size_t written = 0;
    CHECK(cublasLtMatmulDescInit(&d, CUBLAS_COMPUTE_32F, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS);
    CHECK(cublasLtMatmulPreferenceCreate(&p) == CUBLAS_STATUS_SUCCESS);
    uint32_t epilogue = CUBLASLT_EPILOGUE_RELU, read_back = 0, align = 16;
    CHECK(
        cublasLtMatmulDescSetAttribute(&d, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, 2) == CUBLAS_STATUS_INVALID_VALUE);
    CHECK(cublasLtMatmulDescSetAttribute(&d, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue) ==
        CUBLAS_STATUS_SUCCESS);
    CHECK(cublasLtMatmulDescGetAttribute(&d, CUBLASLT_MATMUL_DESC_EPILOGUE, &read_back, sizeof read_back, &written) ==
        CUBLAS_STATUS_SUCCESS);
    CHECK(read_back == epilogue && written == 4);
    CHECK(cublasLtMatmulDescGetAttribute(&d, CUBLASLT_MATMUL_DESC_EPILOGUE, nullptr, 0, &written) ==
            CUBLAS_STATUS_SUCCESS &&
        written == 4);
    CHECK(cublasLtMatmulPreferenceSetAttribute(p, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &limit, sizeof limit) ==
        CUBLAS_STATUS_SUCCESS);
    for (cublasLtMatmulPreferenceAttributes_t a :
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
            CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
        CHECK(cublasLtMatmulPreferenceSetAttribute(p, a, &align, sizeof align) == CUBLAS_STATUS_SUCCESS);
    auto search = [&](cublasLtMatmulDesc_t desc, int wanted) {
        return cublasLtMatmulAlgoGetHeuristic(
            lt, desc, &A.layout, &B.layout, &D.layout, &D.layout, p, wanted, r, &found);
    };
    CHECK(search(&d, 0) == CUBLAS_STATUS_INVALID_VALUE && found == 0);
    CHECK(search(&d, 4) == CUBLAS_STATUS_SUCCESS && found >= 1);
    for (int i = 0; i < found; i++)
        CHECK(r[i].state == CUBLAS_STATUS_SUCCESS && r[i].workspaceSize <= limit);
    auto run = [&](const cublasLtMatmulAlgo_t *algo, void *w, size_t bytes) {
        return cublasLtMatmul(lt, &d, &one, A.device, &A.layout, B.device, &B.layout, &zero, D.device, &D.layout,
            D.device, &D.layout, algo, w, bytes, stream);
    };
    for (int i = 0; i < found; i++)
        CHECK(run(&r[i].algo, workspace, limit) == CUBLAS_STATUS_SUCCESS);
    CHECK(run(nullptr, nullptr, 0) == CUBLAS_STATUS_SUCCESS); /* searches by itself */
    CHECK(cublasLtMatmul(lt, &d, &one, A.device, &A.layout, B.device, &B.layout, &zero, D.device, &D.layout, D.device,
              &narrow.layout, &r[0].algo, workspace, limit, stream) == CUBLAS_STATUS_INVALID_VALUE);
#ifdef AMP_HOSTCUDA
    CHECK(found == 3 && r[0].workspaceSize == limit &&
        run(&r[0].algo, workspace, limit - 256) == CUBLAS_STATUS_INVALID_VALUE);  /* too small */
    CHECK(run(&r[0].algo, workspace + 16, limit) == CUBLAS_STATUS_INVALID_VALUE); /* not aligned to 256 */
    cublasLtMatmulDescOpaque_t other = d, blank;
    epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    CHECK(cublasLtMatmulDescSetAttribute(&other, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue) ==
        CUBLAS_STATUS_SUCCESS);
    std::swap(d, other);
    CHECK(run(&r[0].algo, workspace, limit) == CUBLAS_STATUS_INVALID_VALUE); /* an algo of another problem */
    memset(&blank, 0, sizeof blank);
    CHECK(search(&blank, 1) == CUBLAS_STATUS_INVALID_VALUE); /* a descriptor nobody initialised */
    CHECK(cublasLtMatmulAlgoGetHeuristic(nullptr, &d, &A.layout, &B.layout, &D.layout, &D.layout, p, 1, r, &found) ==
        CUBLAS_STATUS_NOT_INITIALIZED);
    cudaStream_t foreign;
    CU(cudaSetDevice(1));
    CU(cudaStreamCreateWithFlags(&foreign, cudaStreamNonBlocking));
    CU(cudaSetDevice(0));
    CHECK(cublasLtMatmul(lt, &d, &one, A.device, &A.layout, B.device, &B.layout, &zero, D.device, &D.layout, D.device,
              &D.layout, nullptr, nullptr, 0, foreign) == CUBLAS_STATUS_INVALID_VALUE);
    CU(cudaStreamDestroy(foreign));
    CU(cudaStreamSynchronize(stream));
    /* work happens when the stream runs, inside a capture only at replay; a hidden search is counted */
    hcu_reset_counts();
    cudaGraph_t g;
    cudaGraphExec_t x;
    CU(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    CHECK(run(nullptr, nullptr, 0) == CUBLAS_STATUS_SUCCESS);
    CU(cudaStreamEndCapture(stream, &g));
    CU(cudaGraphInstantiate(&x, g, 0));
    CU(cudaStreamSynchronize(stream));
    CHECK(hcu_executed(HCU_MATMUL) == 0 && hcu_group_calls(HCU_MATMUL) == 1 && hcu_group_calls(HCU_HEURISTIC) == 1);
    CU(cudaGraphLaunch(x, stream));
    CU(cudaStreamSynchronize(stream));
    CHECK(hcu_executed(HCU_MATMUL) == 1);
    CU(cudaGraphExecDestroy(x));
    CU(cudaGraphDestroy(g));
    hcu_fail_call("cublasLtMatmul", 1, 0, 0);
    CHECK(run(nullptr, nullptr, 0) == CUBLAS_STATUS_EXECUTION_FAILED &&
        run(nullptr, nullptr, 0) == CUBLAS_STATUS_SUCCESS);
    hcu_fail_call("cublasLtMatmulAlgoGetHeuristic", 1, CUBLAS_STATUS_INTERNAL_ERROR, 0);
    found = 77; /* a failure leaves it alone, as the library does */
    CHECK(search(&d, 1) == CUBLAS_STATUS_INTERNAL_ERROR && found == 77);
#endif
    CHECK(cublasLtMatmulPreferenceDestroy(p) == CUBLAS_STATUS_SUCCESS);
    CU(cudaStreamSynchronize(stream));
    CU(cudaFree(workspace));
}
/* What an H100 does where nothing is documented: ReLU's bit of 0 is 1, A and B of F32 are not read where alpha, on the
 * host, is 0. */
static void test_of_an_h100(cublasLtHandle_t lt, cudaStream_t stream) {
    const float one = 1, zero = 0;
    for (cudaDataType t : {CUDA_R_32F, CUDA_R_16F}) {
        Matrix A(t, 32, 16, false, 1), B(t, 16, 24, false, 1), D(t, 32, 24, false, 1);
        unsigned char *mask = device_array<unsigned char>(128 / 8 * 24);
        auto run = [&](uint32_t epilogue, const float *alpha) {
            cublasLtMatmulDescOpaque_t d;
            const void *aux = mask;
            const int64_t ld = 128;
            CHECK(cublasLtMatmulDescInit(&d, CUBLAS_COMPUTE_32F, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS);
            (void)cublasLtMatmulDescSetAttribute(&d, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
            (void)cublasLtMatmulDescSetAttribute(&d, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &aux, sizeof aux);
            (void)cublasLtMatmulDescSetAttribute(&d, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &ld, sizeof ld);
            CHECK(cublasLtMatmul(lt, &d, alpha, A.device, &A.layout, B.device, &B.layout, &zero, D.device, &D.layout,
                      D.device, &D.layout, nullptr, nullptr, 0, stream) == CUBLAS_STATUS_SUCCESS);
            CU(cudaStreamSynchronize(stream));
        };
        for (size_t i = 0; i < A.host.size() / bytes_of(t); i++)
            encode(t, A.host.data(), i, 0);
        A.upload();
        run(CUBLASLT_EPILOGUE_RELU_AUX, &one);
        CHECK(download(mask, 4) == std::vector<unsigned char>(4, 0xff));
        encode(t, A.host.data(), 0, NAN);
        A.upload();
        run(CUBLASLT_EPILOGUE_DEFAULT, &zero);
        D.download();
        CHECK(std::isnan(D.get(0, 0, 0)) == (t == CUDA_R_16F));
        CU(cudaFree(mask));
    }
}
static void test_cublas(cudaStream_t stream) { /* and a cublas handle lent as a cublasLt handle */
    cublasHandle_t h;
    const float one = 1, zero = 0;
    const int m = 24, n = 16, k = 40;
    CHECK(cublasCreate(&h) == CUBLAS_STATUS_SUCCESS);
    CHECK(cublasSetStream(h, stream) == CUBLAS_STATUS_SUCCESS);
    {
        Matrix A(CUDA_R_16F, k, m, false, 2), B(CUDA_R_16F, k, n, false, 2), C(CUDA_R_32F, m, n, false, 2),
            S(CUDA_R_32F, m, k, false, 1), T(CUDA_R_32F, k, n, false, 1);
        CHECK(cublasGemmStridedBatchedEx(h, CUBLAS_OP_T, CUBLAS_OP_N, m, n, k, &one, A.device, A.type, A.ld,
                  (long long)A.stride, B.device, B.type, B.ld, (long long)B.stride, &zero, C.device, C.type, C.ld,
                  (long long)C.stride, 2, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS);
        CU(cudaStreamSynchronize(stream));
        C.download();
        bool ok = true;
        for (int z = 0; z < 2; z++)
            for (int i = 0; i < m; i++)
                for (int j = 0; j < n; j++) {
                    double t = 0;
                    for (int q = 0; q < k; q++)
                        t += A.get(z, q, i) * B.get(z, q, j);
                    ok = ok && fabs(C.get(z, i, j) - t) < 1e-4;
                }
        CHECK(ok);
        CHECK(cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &one, (float *)S.device, S.ld, (float *)T.device, T.ld,
                  &zero, (float *)C.device, C.ld) == CUBLAS_STATUS_SUCCESS);
        CU(cudaStreamSynchronize(stream));
        C.download();
        for (int i = 0; i < m; i++)
            for (int j = 0; j < n; j++) {
                double t = 0;
                for (int q = 0; q < k; q++)
                    t += S.get(0, i, q) * T.get(0, q, j);
                ok = ok && fabs(C.get(0, i, j) - t) < 1e-4;
            }
        CHECK(ok);
    }
    Case c;
    CHECK(product((cublasLtHandle_t)h, stream, c) == CUBLAS_STATUS_SUCCESS);
    CHECK(cublasDestroy(h) == CUBLAS_STATUS_SUCCESS);
}

int main(int argc, char **argv) {
    setvbuf(stdout, nullptr, _IOLBF, 0);
    bool quick = argc > 1 && !strcmp(argv[1], "quick");
    int count = 0, arch = 0, minor = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
        printf("test_blas: skipped, no GPU\n");
        return 77;
    }
    CU(cudaDeviceGetAttribute(&arch, cudaDevAttrComputeCapabilityMajor, 0));
    CU(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0));
    arch = arch * 10 + minor;
    cublasLtHandle_t lt;
    cudaStream_t stream;
    CHECK(cublasLtCreate(&lt) == CUBLAS_STATUS_SUCCESS);
    CU(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cublasLtGetVersion() == CUBLAS_VERSION);
#ifdef AMP_HOSTCUDA
    for (int order = 0; order < (quick ? 1 : 5);
        order++) { /* whatever the order of summation: the tolerance must hold */
        hcu_gemm_order(order - 1, 7);
        hcu_set_mode(order % 2 ? HCU_RANDOM : HCU_LAZY, 3);
#endif
        test_products(lt, stream, arch);
        test_epilogues(lt, stream, arch);
        if (arch >= 89) test_fp8(lt, stream, arch);
#ifdef AMP_HOSTCUDA
    }
    hcu_gemm_order(-1, 1);
    hcu_set_mode(HCU_LAZY, 1);
#endif
    (void)quick;
    test_refusals(lt, stream, arch);
    test_call_rules(lt, stream);
    if (arch == 90) test_of_an_h100(lt, stream);
    test_cublas(stream);
#ifdef AMP_HOSTCUDA
    hcu_set_arch(0, 7, 5); /* Turing has neither bf16 nor fp8 */
    Case c;
    PRODUCT(c);
    c.ta = c.tb = c.tc = c.td = CUDA_R_16BF;
    REFUSED(c, CUBLAS_STATUS_NOT_SUPPORTED);
    c.ta = c.tb = CUDA_R_8F_E4M3;
    c.trans_a = true;
    c.m = 32;
    c.k = 64;
    REFUSED(c, CUBLAS_STATUS_NOT_SUPPORTED);
    hcu_set_arch(0, 10, 0); /* Blackwell takes fp8 in any transposition */
    c.trans_a = false;
    PRODUCT(c);
    hcu_set_arch(0, 9, 0);
    REFUSED(c, CUBLAS_STATUS_NOT_SUPPORTED);
#endif
    CU(cudaStreamDestroy(stream));
    CHECK(cublasLtDestroy(lt) == CUBLAS_STATUS_SUCCESS);
#ifdef AMP_HOSTCUDA
    CHECK(hcu_leaks(1) == 0 && hcu_bugs() == 0);
#endif
    printf("test_blas: %d products\n", g_products);
    return report("test_blas");
}
