/* ---- plans: how a product is made, by cuBLASLt or by the plain kernel.
   tests: tests/cuda_verbs.cpp, tests/test_products.c, tests/test_product_table.c ---- */

static int ampi_cu_f8(amp_dtype t) { return amp_dtype_size(t) == 1u; }
/* C is D, or not read. */
static int ampi_cu_in_place(const amp_gemm_job *p) { return p->c.data == p->d.data || !p->c.data; }
static cudaDataType ampi_cu_type(amp_dtype t) {
    switch (t) {
    case AMP_F32: return CUDA_R_32F;
    case AMP_F16: return CUDA_R_16F;
    case AMP_BF16: return CUDA_R_16BF;
    case AMP_F8E4M3: return CUDA_R_8F_E4M3;
    default: return CUDA_R_8F_E5M2;
    }
}
/* The dtype that cuBLASLt wants a bias in, and (with an FP8 d) a C that is not read. */
static amp_dtype ampi_cu_bias_type(const amp_gemm_job *p) {
    if (!ampi_cu_f8(p->a.dtype)) return p->d.dtype;
    if (ampi_cu_f8(p->d.dtype) && p->aux.data && p->aux.dtype == AMP_F16) return AMP_F16; /* as its aux */
    return p->d.dtype == AMP_F16 ? AMP_F16 : AMP_BF16;
}

/* A key is the product without what its choice does not depend on: of an address its alignment stays (bytes, at most
   256, of every matrix of a batch; 0: there is no operand), of a pointer to a number that it is there. What
   amp_gemm_desc may get is in the key by itself. With sum_batches 1 and batch 1 the product is one of several that add
   up (ampi_cu_planned), and all of them but the first have one key: alignment is that of all their factors. */
static void ampi_cu_key_of(ampi_cu_key *key, const amp_gemm_job *p) {
    const size_t outputs = p->batch > 1u,
                 factors = outputs || p->sum_batches; /* 1: there are several, a stride apart */
    const struct {
        amp_array *x;
        size_t stride;
    } operands[7] = {
        {&key->a, factors * p->stride_a},
        {&key->b, factors * p->stride_b},
        {&key->c, outputs * p->stride_c},
        {&key->d, outputs * p->stride_d},
        {&key->bias, 0},
        {&key->aux, outputs * p->stride_d},
        {&key->dbias, 0},
    };
    const float **const numbers[4] = {&key->alpha_ptr, &key->scale_a, &key->scale_b, &key->scale_d};
    const amp_optional any = AMP_ZERO;
    uint32_t i;
    *key = *p;
    for (i = 0; i < 7u; i++) {
        amp_array *x = operands[i].x;
        const size_t apart = operands[i].stride * amp_dtype_size(x->dtype);
        const uintptr_t bits = (uintptr_t)x->data | apart | 256u;
        if (!x->data) x->dtype = AMP_AUTO;
        if (x->data) x->data = (void *)(bits & (0u - bits));
        x->flags = 0;
        x->count = 0;
    }
    if (ampi_cu_in_place(p)) key->c.flags = 1;
    if (!(p->flags & AMP_GEMM_F16_SUM)) key->alpha = key->beta = any; /* with it they must be halves */
    key->alpha.given = key->beta.given = 0;
    if (p->beta_ptr) key->alpha_ptr = p->beta_ptr; /* one of them is as both */
    key->beta_ptr = NULL;
    for (i = 0; i < 4u; i++)
        *numbers[i] = (const float *)(uintptr_t)(*numbers[i] != NULL);
    key->amax_d = (float *)(uintptr_t)(p->amax_d != NULL);
}
static uint32_t ampi_cu_align(const amp_array *x) { return (uint32_t)(uintptr_t)x->data; } /* of a key's operand */

typedef struct ampi_cu_lt { /* cuBLASLt's descriptors, on the stack */
    cublasLtMatmulDescOpaque_t desc;
    cublasLtMatrixLayoutOpaque_t a, b, c, d;
    const char *call;      /* that failed, */
    cublasStatus_t status; /* and how */
} ampi_cu_lt;

static void ampi_cu_lt_try(ampi_cu_lt *lt, const char *call, cublasStatus_t status) {
    if (lt->status != CUBLAS_STATUS_SUCCESS) return; /* the first failure counts */
    lt->status = status;
    lt->call = call;
}
static void ampi_cu_lt_set(ampi_cu_lt *lt, cublasLtMatmulDescAttributes_t what, const void *value, size_t bytes) {
    ampi_cu_lt_try(lt, "cublasLtMatmulDescSetAttribute", cublasLtMatmulDescSetAttribute(&lt->desc, what, value, bytes));
}
static void ampi_cu_lt_layout(ampi_cu_lt *lt, cublasLtMatrixLayoutOpaque_t *l, amp_dtype t, size_t rows, size_t cols,
    size_t ld, size_t stride, size_t batch) {
    int32_t count = (int32_t)batch;
    int64_t offset = (int64_t)stride;
    ampi_cu_lt_try(
        lt, "cublasLtMatrixLayoutInit", cublasLtMatrixLayoutInit(l, ampi_cu_type(t), rows, cols, (int64_t)ld));
    if (batch <= 1u) return;
    ampi_cu_lt_try(lt, "cublasLtMatrixLayoutSetAttribute",
        cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count));
    ampi_cu_lt_try(lt, "cublasLtMatrixLayoutSetAttribute",
        cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &offset, sizeof offset));
}

#define AMPI_CU_HAS(epilogue, what) (((uint32_t)(epilogue) & (uint32_t)(what)) == (uint32_t)(what))

static void ampi_cu_lt_epilogue(ampi_cu_lt *lt, const ampi_cuda *c, const amp_gemm_job *p, const ampi_cu_plan *plan) {
    cublasLtEpilogue_t epilogue = (cublasLtEpilogue_t)plan->epilogue;
    int sums = epilogue == CUBLASLT_EPILOGUE_DGELU_BGRAD;
    const void *bias = plan->convert ? c->bias : p->bias.data;
    cudaDataType aux_type = ampi_cu_type(p->aux.dtype);
    int64_t ld = (int64_t)p->ldd;
    if (epilogue == CUBLASLT_EPILOGUE_DEFAULT) return;
    if (sums) bias = p->dbias.data;
    ampi_cu_lt_set(lt, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    if (sums || AMPI_CU_HAS(epilogue, CUBLASLT_EPILOGUE_BIAS)) {
        cudaDataType type = ampi_cu_type(ampi_cu_bias_type(p));
        ampi_cu_lt_set(lt, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
        if (ampi_cu_f8(p->a.dtype)) ampi_cu_lt_set(lt, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type, sizeof type);
    }
    if (AMPI_CU_HAS(epilogue, CUBLASLT_EPILOGUE_GELU_AUX) || AMPI_CU_HAS(epilogue, CUBLASLT_EPILOGUE_DGELU)) {
        ampi_cu_lt_set(lt, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &p->aux.data, sizeof p->aux.data);
        ampi_cu_lt_set(lt, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &ld, sizeof ld);
        if (p->aux.dtype != p->d.dtype || ampi_cu_f8(p->d.dtype)) /* beside an FP8 d it would be taken for 16 bits */
            ampi_cu_lt_set(lt, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, &aux_type, sizeof aux_type);
    }
}
static void ampi_cu_lt_f8(ampi_cu_lt *lt, const amp_gemm_job *p) {
    int8_t fast = p->flags & AMP_GEMM_FAST_FP8 ? 1 : 0;
    ampi_cu_lt_set(lt, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast);
    if (p->scale_b) ampi_cu_lt_set(lt, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &p->scale_b, sizeof p->scale_b);
    if (p->scale_a) ampi_cu_lt_set(lt, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &p->scale_a, sizeof p->scale_a);
    if (p->scale_d) ampi_cu_lt_set(lt, CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, &p->scale_d, sizeof p->scale_d);
    if (p->amax_d) ampi_cu_lt_set(lt, CUBLASLT_MATMUL_DESC_AMAX_D_POINTER, &p->amax_d, sizeof p->amax_d);
}
/* A row-major matrix is the transpose of a column-major one, and D = A B is D^T = B^T A^T: cuBLASLt's first operand is
   our B, its second our A, its m our n. Each keeps its own transposition. The bias then runs along cuBLASLt's rows, as
   it wants. */
static void ampi_cu_lt_describe(ampi_cu_lt *lt, const ampi_cuda *c, const amp_gemm_job *p, const ampi_cu_plan *plan) {
    cublasOperation_t op_a = p->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t op_b = p->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    size_t a_rows = p->trans_b ? p->k : p->n, a_cols = p->k + p->n - a_rows;
    size_t b_rows = p->trans_a ? p->m : p->k, b_cols = p->m + p->k - b_rows;
    cudaDataType scalars = plan->compute == CUBLAS_COMPUTE_16F ? CUDA_R_16F : CUDA_R_32F;
    amp_dtype type_c = ampi_cu_f8(p->d.dtype) ? ampi_cu_bias_type(p) : p->d.dtype;
    lt->status = CUBLAS_STATUS_SUCCESS;
    lt->call = "";
    ampi_cu_lt_try(
        lt, "cublasLtMatmulDescInit", cublasLtMatmulDescInit(&lt->desc, (cublasComputeType_t)plan->compute, scalars));
    if (p->alpha_ptr || p->beta_ptr) {
        cublasLtPointerMode_t mode = CUBLASLT_POINTER_MODE_DEVICE;
        ampi_cu_lt_set(lt, CUBLASLT_MATMUL_DESC_POINTER_MODE, &mode, sizeof mode);
    }
    ampi_cu_lt_set(lt, CUBLASLT_MATMUL_DESC_TRANSA, &op_a, sizeof op_a);
    ampi_cu_lt_set(lt, CUBLASLT_MATMUL_DESC_TRANSB, &op_b, sizeof op_b);
    ampi_cu_lt_epilogue(lt, c, p, plan);
    if (ampi_cu_f8(p->a.dtype)) ampi_cu_lt_f8(lt, p);
    ampi_cu_lt_layout(lt, &lt->a, p->b.dtype, a_rows, a_cols, p->ldb, p->stride_b, p->batch);
    ampi_cu_lt_layout(lt, &lt->b, p->a.dtype, b_rows, b_cols, p->lda, p->stride_a, p->batch);
    ampi_cu_lt_layout(lt, &lt->c, type_c, p->n, p->m, p->ldc, p->stride_c, p->batch);
    ampi_cu_lt_layout(lt, &lt->d, p->d.dtype, p->n, p->m, p->ldd, p->stride_d, p->batch);
}

/* The workspace limit and the alignment must be said (their defaults are 0 and 256 bytes), and partial sums of a split
   k must not be rounded to the output's dtype unless that was allowed. */
static void ampi_cu_lt_prefer(
    const ampi_cuda *c, ampi_cu_lt *lt, const ampi_cu_key *key, cublasLtMatmulPreferenceOpaque_t *prefer) {
    uint64_t workspace = c->workspace_bytes;
    uint32_t reduction = key->flags & AMP_GEMM_REDUCED ? (uint32_t)CUBLASLT_REDUCTION_SCHEME_MASK
                                                       : (uint32_t)CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    uint32_t first = ampi_cu_align(&key->b), second = ampi_cu_align(&key->a);
    uint32_t third = ampi_cu_align(key->c.data ? &key->c : &key->d), fourth = ampi_cu_align(&key->d), i;
    const struct {
        cublasLtMatmulPreferenceAttributes_t what;
        const void *value;
        size_t bytes;
    } wishes[] = {{CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace},
        {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reduction, sizeof reduction},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &first, sizeof first},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &second, sizeof second},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &third, sizeof third},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &fourth, sizeof fourth}};
    ampi_cu_lt_try(lt, "cublasLtMatmulPreferenceInit", cublasLtMatmulPreferenceInit(prefer));
    for (i = 0; i < sizeof wishes / sizeof wishes[0] && lt->status == CUBLAS_STATUS_SUCCESS; i++)
        ampi_cu_lt_try(lt, "cublasLtMatmulPreferenceSetAttribute",
            cublasLtMatmulPreferenceSetAttribute(prefer, wishes[i].what, wishes[i].value, wishes[i].bytes));
}
/* It does not take this product: not a failure of another kind. */
static int ampi_cu_lt_refuses(cublasStatus_t e) {
    return e == CUBLAS_STATUS_NOT_SUPPORTED || e == CUBLAS_STATUS_INVALID_VALUE || e == CUBLAS_STATUS_ARCH_MISMATCH;
}
/* Asks for `most` algorithms of one way, which plan has with the key; the best first. *found 0: cuBLASLt does not take
   this product. */
static amp_status ampi_cu_lt_search(ampi_cuda *c, const amp_gemm_job *p, const ampi_cu_plan *plan,
    cublasLtMatmulHeuristicResult_t *results, int most, int *found) {
    cublasLtMatmulPreferenceOpaque_t prefer;
    ampi_cu_lt lt;
    int offered = 0, n;
    *found = 0;
    ampi_cu_lt_describe(&lt, c, p, plan);
    if (lt.status == CUBLAS_STATUS_SUCCESS) ampi_cu_lt_prefer(c, &lt, &plan->key, &prefer);
    if (lt.status == CUBLAS_STATUS_SUCCESS) {
        lt.call = "cublasLtMatmulAlgoGetHeuristic";
        lt.status = cublasLtMatmulAlgoGetHeuristic(
            c->cublas, &lt.desc, &lt.a, &lt.b, &lt.c, &lt.d, &prefer, most, results, &offered);
        if (ampi_cu_lt_refuses(lt.status)) return AMP_OK;
    }
    if (lt.status != CUBLAS_STATUS_SUCCESS) return ampi_cu_fail_cublas(c, lt.call, lt.status);
    for (n = 0; n < offered; n++)
        if (results[n].state == CUBLAS_STATUS_SUCCESS) results[(*found)++] = results[n];
    return AMP_OK;
}

/* FP8: what need not be asked, and what may be the reason where cuBLASLt offers nothing. */
static const char *ampi_cu_f8_refusal(const ampi_cuda *c, const amp_gemm_job *p, const ampi_cu_key *key) {
    const size_t apart = p->batch > 1u || p->sum_batches ? p->stride_a | p->stride_b : 0u;
    if (c->arch < 89) return "the device is older than sm_89";
    if (apart % 16u) return "desc.stride_a and stride_b are not both multiples of 16";
    if (ampi_cu_align(&key->a) < 16u || ampi_cu_align(&key->b) < 16u || ampi_cu_align(&key->d) < 16u)
        return "a, b and d are not all aligned to 16 bytes";
    if (ampi_cu_f8(p->d.dtype) && p->c.data) return "beta is not 0 and d is FP8";
    return NULL;
}
static const char *ampi_cu_f8_reason(const amp_gemm_job *p) {
    const size_t sixteens[5] = {p->n, p->k, p->lda, p->ldb, p->ldd};
    int i;
    for (i = 0; i < 5; i++)
        if (sixteens[i] % 16u) return "n, k and the leading dimensions are not all multiples of 16";
    if (p->a.dtype == AMP_F8E5M2 && p->b.dtype == AMP_F8E5M2) return "a and b are both f8e5m2";
    if (p->d.dtype == AMP_F8E5M2 && p->a.dtype == AMP_F8E4M3 && p->b.dtype == AMP_F8E4M3)
        return "d is f8e5m2, a and b are both f8e4m3";
    if (p->trans_a)
        return "cuBLASLt offers none for the layout trans_a = 1; x w^T (trans_a 0, trans_b 1) is everywhere";
    if (!p->trans_b)
        return "cuBLASLt offers none for the layout trans_b = 0; x w^T (trans_a 0, trans_b 1) is everywhere";
    return "cuBLASLt offers no algorithm";
}
/* Why a product is none of cuBLASLt's, whatever its epilogue, or NULL. */
static const char *ampi_cu_refusal(const ampi_cuda *c, const amp_gemm_job *p, const ampi_cu_key *key) {
    if (p->flags & AMP_GEMM_ORDERED) return "the order is defined (AMP_GEMM_ORDERED)";
    if (p->k == 0) return "k is 0";
    if (p->sum_batches && p->batch > 1u) return "batches are added up into a d that is not f32";
    if (p->a.dtype == AMP_BF16 && c->arch < 80) return "the device is older than sm_80";
    if (p->batch > 0x7fffffffu) return "cuBLASLt does not have this batch";
    if (p->batch > 1u && !ampi_cu_in_place(p) && p->stride_c == 0) return "cuBLASLt does not have this batch";
    if (ampi_cu_f8(p->a.dtype)) return ampi_cu_f8_refusal(c, p, key);
    if (p->a.dtype != p->b.dtype) return "cuBLASLt does not have these dtypes";
    if (p->d.dtype != p->a.dtype && p->d.dtype != AMP_F32) return "cuBLASLt does not have these dtypes";
    return NULL;
}

/* The two ways of an epilogue fill in epilogue, convert and after of a plan, and return NULL, or say why the product
   has no such way. ReLU is in no epilogue of cuBLASLt's: it commutes with rounding, and whether cuBLASLt's keeps NaN is
   not documented. */

/* Beside an FP8 d there is one of 16 bits. */
static int ampi_cu_aux_fits(const amp_gemm_job *p) {
    const int short_one = ampi_cu_f8(p->d.dtype) && amp_dtype_size(p->aux.dtype) == 2u;
    if (!p->aux.data || (p->aux.dtype != p->d.dtype && !short_one)) return 0;
    return p->ldd % 8u == 0 && p->batch == 1u;
}
/* An epilogue after the product makes such an aux of what is in d, once rounded. */
static int ampi_cu_aux_alike(const amp_gemm_job *p) {
    return p->aux.dtype == p->d.dtype || p->aux.dtype == AMP_MASK || ampi_cu_f8(p->aux.dtype);
}
static const char *ampi_cu_fuse_backward(const amp_gemm_job *p, ampi_cu_plan *plan) {
    int fits = p->act == AMP_GELU && p->d.dtype != AMP_F32 && ampi_cu_aux_fits(p), sums;
    if (!fits || ampi_cu_f8(p->a.dtype) || p->k == 1u) return "cuBLASLt has no such way back";
    sums = p->dbias.data && p->dbias.dtype == p->d.dtype && !p->bias_per_row; /* of columns: it has no others */
    plan->epilogue = sums ? CUBLASLT_EPILOGUE_DGELU_BGRAD : CUBLASLT_EPILOGUE_DGELU;
    return NULL;
}
static const char *ampi_cu_fuse_gelu(const amp_gemm_job *p, ampi_cu_plan *plan) {
    if (p->aux.data && !ampi_cu_aux_fits(p))
        return "aux is not as cuBLASLt wants it: d's dtype (of an FP8 d, or 16 bits), a leading dimension that is a "
               "multiple of 8, no batch";
    plan->epilogue = p->bias.data ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    if (p->aux.data) plan->epilogue = p->bias.data ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    return NULL;
}
static int ampi_cu_has_gelu(const amp_gemm_job *p) {
    return p->d.dtype != AMP_F32 && p->act == AMP_GELU && !p->bias_per_row;
}
/* As much as possible inside the product; `leave`: but for GELU. */
static const char *ampi_cu_fuse_epilogue(const ampi_cuda *c, const amp_gemm_job *p, int leave, ampi_cu_plan *plan) {
    int narrow = p->d.dtype != AMP_F32, bias = p->bias.data != NULL, aux = p->aux.data != NULL;
    int along = bias && !p->bias_per_row; /* the one that cuBLASLt has */
    int fits = along && p->bias.dtype == ampi_cu_bias_type(p);
    plan->after = 0;
    plan->convert = along && !fits && narrow; /* an F32 d gets such a bias from ampi_k_epilogue, unrounded */
    if (plan->convert && p->n > c->bias_room) return "the bias is in a different dtype than d";
    if (p->backward) return ampi_cu_fuse_backward(p, plan);
    if (ampi_cu_has_gelu(p) && !leave) return ampi_cu_fuse_gelu(p, plan);
    plan->epilogue = fits || plan->convert ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    plan->after = p->act != AMP_ACT_NONE || aux || (bias && plan->epilogue == CUBLASLT_EPILOGUE_DEFAULT);
    if (narrow && aux && !ampi_cu_aux_alike(p)) return "aux is in a different dtype than d";
    return plan->after && ampi_cu_f8(p->d.dtype) ? "cuBLASLt has no such epilogue for an FP8 d" : NULL;
}
/* bias and act left to ampi_k_epilogue, for which d must not have been rounded too early: it is F32, or what remains is
   a backward or an act, whose bounds allow it. GELU of a 16-bit d is this way what it is in cuBLASLt where that has no
   such product but a kernel of its own: two launches, and two roundings. */
static const char *ampi_cu_split_epilogue(const ampi_cuda *c, const amp_gemm_job *p, ampi_cu_plan *plan) {
    int gelu = ampi_cu_has_gelu(p) && !p->backward;
    if (gelu && !ampi_cu_f8(p->a.dtype)) return ampi_cu_fuse_epilogue(c, p, 1, plan);
    plan->epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    plan->convert = 0;
    plan->after = 1;
    if (p->d.dtype != AMP_F32 && !p->backward) {
        if (!ampi_cu_f8(p->a.dtype) || p->act == AMP_ACT_NONE) return "there is nothing to leave";
        if (p->bias_per_row) return "the bias goes with rows";
        if (p->bias.data && p->bias.dtype == ampi_cu_bias_type(p)) plan->epilogue = CUBLASLT_EPILOGUE_BIAS;
    }
    if (!p->bias.data && !p->aux.data && p->act == AMP_ACT_NONE) return "there is nothing to leave";
    if (ampi_cu_f8(p->d.dtype)) return "cuBLASLt has no such epilogue for an FP8 d";
    return NULL;
}

static int ampi_cu_is_half(float x) { return amp_f32_from_f16(amp_f16_from_f32(x)) == x; }
/* Sums in F16 need their factors in F16, on the host. */
static int ampi_cu_f16_sums(const amp_gemm_job *p) {
    if (!(p->flags & AMP_GEMM_F16_SUM) || p->alpha_ptr || p->beta_ptr) return 0;
    return p->a.dtype == AMP_F16 && p->d.dtype == AMP_F16 && ampi_cu_is_half(p->alpha.value) &&
        ampi_cu_is_half(p->beta.value);
}
static uint32_t ampi_cu_f32_sums(const ampi_cuda *c, const amp_gemm_job *p) {
    int tf32 = (p->flags & AMP_GEMM_TF32) && p->a.dtype == AMP_F32 && c->arch >= 80;
    return tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

/* The bias, too, of an FP8 product whose d has 16 bits: the GPUs of sm_89 have few that add one. */
static const char *ampi_cu_leave_bias(const amp_gemm_job *p, ampi_cu_plan *plan) {
    int left = p->bias.data && !p->bias_per_row && p->d.dtype != AMP_F32 && !ampi_cu_f8(p->d.dtype);
    if (!left) return "there is nothing to leave";
    plan->epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    plan->convert = 0;
    plan->after = 1;
    return NULL;
}

/* The column sums after a product that could make them, too: where that is two kernels, ours may be faster. */
static const char *ampi_cu_leave_sums(const ampi_cuda *c, const amp_gemm_job *p, ampi_cu_plan *plan) {
    const char *why = ampi_cu_fuse_epilogue(c, p, 0, plan);
    if (why || plan->epilogue != CUBLASLT_EPILOGUE_DGELU_BGRAD) return "there is nothing to leave";
    plan->epilogue = CUBLASLT_EPILOGUE_DGELU;
    return NULL;
}

/* The ways of a product through cuBLASLt, best first: with the sums that are allowed, then with those of FP32; each
   with the epilogue in the product, without its column sums, and after it (of FP8, last, the bias, too). */
#define AMPI_CU_WAYS 4u
static const char *ampi_cu_way(const ampi_cuda *c, const amp_gemm_job *p, uint32_t way, ampi_cu_plan *plan) {
    switch (way) {
    case 0: return ampi_cu_fuse_epilogue(c, p, 0, plan);
    case 1: return ampi_cu_leave_sums(c, p, plan);
    case 2: return ampi_cu_split_epilogue(c, p, plan);
    default: return ampi_cu_f8(p->a.dtype) ? ampi_cu_leave_bias(p, plan) : "there is nothing to leave";
    }
}
typedef struct ampi_cu_ways {
    const ampi_cuda *c;
    const amp_gemm_job *p;
    uint32_t next;
    const char *why; /* why the first way that was refused is none */
} ampi_cu_ways;

/* The next way of the product of plan's key; 0: none is left. */
static int ampi_cu_next_candidate(ampi_cu_ways *it, ampi_cu_plan *plan) {
    const char *why = ampi_cu_refusal(it->c, it->p, &plan->key);
    const uint32_t f16 = ampi_cu_f16_sums(it->p) ? AMPI_CU_WAYS : 0u, ways = AMPI_CU_WAYS + f16;
    if (why) it->next = ways;
    while (it->next < ways) {
        uint32_t way = it->next++;
        plan->compute = way < f16 ? (uint32_t)CUBLAS_COMPUTE_16F : ampi_cu_f32_sums(it->c, it->p);
        why = ampi_cu_way(it->c, it->p, way % AMPI_CU_WAYS, plan);
        if (!why) return 1;
        if (!it->why) it->why = why;
    }
    if (!it->why) it->why = why;
    return 0;
}

static const char *ampi_cu_sums_name(const ampi_cu_plan *plan) {
    if (plan->compute == CUBLAS_COMPUTE_16F) return ", sums in F16";
    return plan->compute == CUBLAS_COMPUTE_32F_FAST_TF32 ? ", TF32" : "";
}
static const char *ampi_cu_epilogue_name(const ampi_cu_plan *plan) {
    switch (plan->epilogue) {
    case CUBLASLT_EPILOGUE_DEFAULT: return "";
    case CUBLASLT_EPILOGUE_BIAS: return " with the bias";
    case CUBLASLT_EPILOGUE_DGELU: return " with GELU's derivative";
    case CUBLASLT_EPILOGUE_DGELU_BGRAD: return " with GELU's derivative and bias gradient";
    default: return " with GELU";
    }
}
/* What would make cuBLASLt faster: rows of 8- and 16-bit operands that begin at multiples of 16 bytes. "": they do. */
static void ampi_cu_tell_alignment(const amp_gemm_job *p, char *text, size_t bytes) {
    size_t rows_a = p->trans_a ? p->k : p->m, i;
    size_t rows_b = p->trans_b ? p->n : p->k;
    const struct {
        const char *name;
        const amp_array *x;
        size_t rows, ld;
    } matrices[3] = {
        {"a", &p->a, rows_a, p->lda},
        {"b", &p->b, rows_b, p->ldb},
        {"d", &p->d, p->m, p->ldd},
    };
    text[0] = 0;
    for (i = 0; i < 3u && !text[0] && p->a.dtype != AMP_F32; i++) {
        const char *name = matrices[i].name;
        size_t ld = matrices[i].ld, size = amp_dtype_size(matrices[i].x->dtype);
        if (matrices[i].rows > 1u && ld * size % 16u)
            snprintf(text, bytes, "; faster if rows began at multiples of 16 bytes: ld%s is %llu, %llu would do", name,
                AMPI_ULL(ld), AMPI_ULL(64u * ampi_cu_parts(ld, 64u)));
        else if ((uintptr_t)matrices[i].x->data % 16u)
            snprintf(text, bytes, "; faster if %s began at a multiple of 16 bytes", name);
    }
}
/* One sentence about a plan. */
static void ampi_cu_tell(const amp_gemm_job *p, const ampi_cu_plan *plan, char *text, size_t bytes) {
    char how[200], faster[128] = "";
    int32_t id = -1, split = 1;
    size_t got = 0;
    int sums = p->dbias.data && plan->epilogue != CUBLASLT_EPILOGUE_DGELU_BGRAD;
    if (plan->lt) {
        (void)cublasLtMatmulAlgoConfigGetAttribute(&plan->algo, CUBLASLT_ALGO_CONFIG_ID, &id, sizeof id, &got);
        (void)cublasLtMatmulAlgoConfigGetAttribute(
            &plan->algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &split, sizeof split, &got);
        const char *convert = plan->convert ? ", the bias rounded to its dtype" : "";
        const char *after = plan->after ? ", then the epilogue kernel" : "";
        snprintf(how, sizeof how, "cuBLASLt (algorithm %d, k split in %d%s)%s%s%s%s", (int)id, (int)split,
            ampi_cu_sums_name(plan), ampi_cu_epilogue_name(plan), convert, after,
            sums ? ", then the bias gradient kernel" : "");
        ampi_cu_tell_alignment(p, faster, sizeof faster);
    } else {
        snprintf(how, sizeof how, "plain kernel: %s", plan->why);
    }
    snprintf(text, bytes, "amp_gemm: [%llu,%llu] x [%llu,%llu], %s -> %s, batch %llu: %s%s", AMPI_ULL(p->m),
        AMPI_ULL(p->k), AMPI_ULL(p->k), AMPI_ULL(p->n), amp_dtype_name(p->a.dtype), amp_dtype_name(p->d.dtype),
        AMPI_ULL(p->batch), how, faster);
}

/* How a product is made, decided once per key. */
static amp_status ampi_cu_plan_make(ampi_cuda *c, const amp_gemm_job *p, ampi_cu_plan *plan) {
    cublasLtMatmulHeuristicResult_t result;
    ampi_cu_ways it = {c, p, 0, NULL};
    int f8 = ampi_cu_f8(p->a.dtype);
    int plain = !p->k || (p->flags & AMP_GEMM_ORDERED) || (f8 && (p->flags & AMP_GEMM_EMULATE)); /* as was asked */
    char text[448];
    plan->lt = plan->unchecked = 0;
    while (!plan->lt && ampi_cu_next_candidate(&it, plan)) {
        int found;
        AMPI_TRY(ampi_cu_lt_search(c, p, plan, &result, 1, &found));
        plan->lt = found != 0;
        if (plan->lt)
            plan->algo = result.algo;
        else if (!it.why)
            it.why = ampi_cu_f8(p->a.dtype) ? ampi_cu_f8_reason(p) : "cuBLASLt offers no algorithm";
    }
    plan->why = it.why;
    if (!plan->lt) plan->after = plan->convert = 0;
    if (!plan->lt && f8 && !plain) {
        /* a dead device offers nothing either */
        AMPI_TRY(ampi_cu_did(c, "cublasLtMatmulAlgoGetHeuristic", ampi_cu_beneath(c)));
        return amp_fail(c->ctx, AMP_ERR_UNSUPPORTED,
            "not among the FP8 products of this device: %s. AMP_GEMM_EMULATE runs it on a plain kernel", plan->why);
    }
    ampi_cu_tell(p, plan, text, sizeof text);
    amp_log_event(c->ctx, plan->lt || plain ? AMP_LOG_INFO : AMP_LOG_WARNING, "%s", text + sizeof "amp_gemm: " - 1);
    return AMP_OK;
}

static amp_status ampi_cu_plain_gemm(ampi_cuda *c, const amp_gemm_job *p) {
    uint64_t tiles = ampi_cu_parts(p->m, AMPI_K_M) * ampi_cu_parts(p->n, AMPI_K_N) * amp_gemm_outputs(p);
    const size_t step = p->ldd | (p->batch > 1u ? p->stride_d : 0u);
    ampi_k_wides wide;
    wide.d = ampi_cu_wide(&p->d, step) && (amp_gemm_masked(p) || ampi_cu_wide(&p->aux, step));
    wide.c = ampi_cu_wide(&p->c, p->ldc | (p->batch > 1u ? p->stride_c : 0u));
    wide.bias = ampi_cu_wide(&p->bias, 0);
    return ampi_cu_launch_of(c, AMPI_K_THREADS, ampi_cu_grid(c, tiles), ampi_k_gemm, *p, wide);
}

/* alpha and beta as a plan's product reads them: halves, floats on the host, or floats on the device. */
typedef struct ampi_cu_scalars {
    amp_f16 half[2];
    const void *alpha, *beta;
} ampi_cu_scalars;

static amp_status ampi_cu_scalars_of(
    ampi_cuda *c, const amp_gemm_job *p, const ampi_cu_plan *plan, ampi_cu_scalars *out) {
    float *scalar = c->scratch->scalar; /* constants 0 and 1, and room for two more */
    float alpha = p->alpha.value, beta = p->beta.value;
    out->alpha = &p->alpha.value;
    out->beta = &p->beta.value;
    if (plan->compute == CUBLAS_COMPUTE_16F) {
        out->half[0] = amp_f16_from_f32(alpha);
        out->half[1] = amp_f16_from_f32(beta);
        out->alpha = &out->half[0];
        out->beta = &out->half[1];
    }
    if (!p->alpha_ptr && !p->beta_ptr) return AMP_OK;
    if (alpha != 1.0f || (p->c.data && beta != 1.0f)) {
        out->alpha = &scalar[2];
        out->beta = &scalar[3];
        return ampi_cu_launch(c, 1, ampi_k_scalars, scalar + 2, alpha, p->alpha_ptr, beta, p->beta_ptr);
    }
    out->alpha = p->alpha_ptr ? p->alpha_ptr : &scalar[1];
    out->beta = p->beta_ptr ? p->beta_ptr : &scalar[p->c.data != NULL];
    return AMP_OK;
}
/* cuBLASLt takes the factors of FP8 at multiples of 16 bytes only: copies of those that lie elsewhere. */
static amp_status ampi_cu_f8_factors(ampi_cuda *c, amp_gemm_job *p) {
    const float **const factors[3] = {&p->scale_a, &p->scale_b, &p->scale_d}; /* or NULL */
    uint32_t i;
    for (i = 0; i < 3u; i++) {
        if ((uintptr_t)*factors[i] % 16u == 0) continue;
        AMPI_TRY(ampi_cu_copy_async(c->ctx, c->scratch->factor[i], *factors[i], sizeof(float)));
        *factors[i] = c->scratch->factor[i];
    }
    return AMP_OK;
}
/* The product of a plan that uses cuBLASLt, with what comes before and after it. *refused: promised, and not kept. */
static amp_status ampi_cu_run_lt(ampi_cuda *c, const amp_gemm_job *p, const ampi_cu_plan *plan, int *refused) {
    ampi_cu_scalars factors;
    const void *read = p->c.data ? p->c.data : p->d.data;
    const amp_array bias = amp_arr(c->bias, ampi_cu_bias_type(p));
    const amp_cast_desc nearest = AMP_ZERO;
    amp_gemm_job fit = *p;
    ampi_cu_lt lt;
    cublasStatus_t e;
    AMPI_TRY(ampi_cu_f8_factors(c, &fit));
    ampi_cu_lt_describe(&lt, c, &fit, plan);
    if (lt.status != CUBLAS_STATUS_SUCCESS) return ampi_cu_fail_cublas(c, lt.call, lt.status);
    AMPI_TRY(ampi_cu_scalars_of(c, p, plan, &factors));
    if (plan->convert) AMPI_TRY(ampi_cu_cast(c->ctx, bias, p->bias, p->n, &nearest));
    if (ampi_cu_f8(p->d.dtype)) read = c->workspace; /* a C of a different dtype cannot be D; it is not read */
    e = cublasLtMatmul(c->cublas, &lt.desc, factors.alpha, p->b.data, &lt.a, p->a.data, &lt.b, factors.beta, read,
        &lt.c, p->d.data, &lt.d, &plan->algo, c->workspace, c->workspace_bytes, c->stream);
    *refused = ampi_cu_lt_refuses(e);
    if (*refused) return AMP_OK;
    if (e != CUBLAS_STATUS_SUCCESS) return ampi_cu_fail_cublas(c, "cublasLtMatmul", e);
    AMPI_TRY(ampi_cu_launched(c, "cublasLtMatmul"));
    if (!plan->after) return AMP_OK;
    return ampi_cu_epilogue(c, p, p->bias.data != NULL && plan->epilogue == CUBLASLT_EPILOGUE_DEFAULT);
}

static amp_status ampi_cu_run(ampi_cuda *c, const amp_gemm_job *p, ampi_cu_plan *plan) {
    int refused = 0;
    if (p->amax_d) AMPI_TRY(ampi_cu_zero(c->ctx, p->amax_d, sizeof *p->amax_d));
    if (plan->lt) AMPI_TRY(ampi_cu_run_lt(c, p, plan, &refused));
    if (refused) { /* not again */
        plan->lt = plan->after = plan->convert = 0;
        plan->why = "cublasLtMatmul refused what the heuristic had offered";
        amp_log_event(c->ctx, AMP_LOG_WARNING, "%s; the plain kernel takes over", plan->why);
    }
    if (!plan->lt) AMPI_TRY(ampi_cu_plain_gemm(c, p));
    return ampi_cu_column_sums(c, p, plan);
}

/* A plan from a file is checked before its first use: it must still be a way of this product, and cuBLASLt must still
   take its algorithm, within our workspace. */
static int ampi_cu_plan_valid(ampi_cuda *c, const amp_gemm_job *p, const ampi_cu_plan *plan) {
    cublasLtMatmulHeuristicResult_t result;
    ampi_cu_ways it = {c, p, 0, NULL};
    ampi_cu_plan now;
    ampi_cu_lt lt;
    cublasStatus_t e;
    int same = 0;
    if (!plan->lt) return 0; /* made again: that costs nothing */
    memset(&now, 0, sizeof now);
    now.key = plan->key;
    while (!same && ampi_cu_next_candidate(&it, &now))
        same = now.epilogue == plan->epilogue && now.after == plan->after && now.convert == plan->convert &&
            now.compute == plan->compute;
    if (!same) return 0;
    ampi_cu_lt_describe(&lt, c, p, plan);
    if (lt.status != CUBLAS_STATUS_SUCCESS) return 0;
    memset(&result, 0, sizeof result);
    e = cublasLtMatmulAlgoCheck(c->cublas, &lt.desc, &lt.a, &lt.b, &lt.c, &lt.d, &plan->algo, &result);
    if (e != CUBLAS_STATUS_SUCCESS || result.state != CUBLAS_STATUS_SUCCESS) return 0;
    return result.workspaceSize <= c->workspace_bytes;
}

/* ---- plans that are remembered: buckets of lists by a hash of the key; the least recently used one makes room ---- */

static uint32_t *ampi_cu_bucket(const ampi_cuda *c, const ampi_cu_key *key) {
    uint64_t word, h = 0;
    size_t i;
    for (i = 0; i + sizeof word <= sizeof *key; i += sizeof word) {
        memcpy(&word, (const char *)key + i, sizeof word);
        h = (h ^ word) * 0x9e3779b97f4a7c15u;
        h ^= h >> 32;
    }
    return &c->buckets[h % c->n_plans];
}
static ampi_cu_plan *ampi_cu_plan_find(ampi_cuda *c, const ampi_cu_key *key) { /* NULL: not remembered */
    uint32_t at = *ampi_cu_bucket(c, key);
    while (at && memcmp(&c->plans[at - 1u].key, key, sizeof *key) != 0)
        at = c->plans[at - 1u].next;
    if (!at) return NULL;
    c->plans[at - 1u].used = ++c->uses;
    return &c->plans[at - 1u];
}
static void ampi_cu_plan_forget(ampi_cuda *c, ampi_cu_plan *plan) {
    uint32_t *at = ampi_cu_bucket(c, &plan->key);
    while (&c->plans[*at - 1u] != plan)
        at = &c->plans[*at - 1u].next;
    *at = plan->next;
    plan->used = 0;
}
/* A place for a new plan, which ampi_cu_plan_keep then makes one that is found. */
static ampi_cu_plan *ampi_cu_plan_room(ampi_cuda *c) {
    ampi_cu_plan *oldest = c->plans;
    uint32_t i;
    if (c->n_begun < c->n_plans) return &c->plans[c->n_begun++];
    for (i = 1; i < c->n_plans; i++)
        if (c->plans[i].used < oldest->used) oldest = &c->plans[i];
    if (oldest->used) ampi_cu_plan_forget(c, oldest);
    return oldest;
}
static void ampi_cu_plan_keep(ampi_cuda *c, ampi_cu_plan *plan) {
    uint32_t *bucket = ampi_cu_bucket(c, &plan->key);
    plan->next = *bucket;
    plan->used = ++c->uses;
    *bucket = (uint32_t)(plan - c->plans) + 1u;
}

/* A model that has made its tenth step has shown its products. */
static void ampi_cu_count_search(ampi_cuda *c) {
    c->searches++;
    if (c->stepped <= AMPI_CU_SETTLED || c->late_step == c->stepped) return;
    c->late_step = c->stepped;
    if (++c->late != 2u) return; /* one alone may be an evaluation of other shapes */
    amp_log_event(c->ctx, AMP_LOG_WARNING,
        "algorithms for products are still looked for after step %u, which takes host time: more than the %u products "
        "of desc.plans, or new shapes (amp_cuda_plans_get counts)",
        AMPI_CU_SETTLED, (unsigned)c->n_plans);
}
static amp_status ampi_cu_plan_for(ampi_cuda *c, const amp_gemm_job *p, ampi_cu_plan **out) {
    ampi_cu_key key;
    ampi_cu_plan *plan;
    AMPI_TRY(ampi_cu_here(c));
    ampi_cu_key_of(&key, p);
    *out = plan = ampi_cu_plan_find(c, &key);
    if (plan && !plan->unchecked) return AMP_OK;
    ampi_cu_relax(c); /* also for the product itself, whose kernels may be loaded now */
    if (plan) {
        plan->unchecked = 0;
        if (ampi_cu_plan_valid(c, p, plan)) return AMP_OK;
        amp_log_event(c->ctx, AMP_LOG_WARNING, "a plan from a file is not valid here; made anew");
        ampi_cu_plan_forget(c, plan);
    } else {
        *out = plan = ampi_cu_plan_room(c);
    }
    plan->key = key;
    ampi_cu_count_search(c);
    AMPI_TRY(ampi_cu_plan_make(c, p, plan));
    ampi_cu_plan_keep(c, plan);
    return AMP_OK;
}
