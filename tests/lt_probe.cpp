/* lt_probe.cpp - what cuBLASLt does with the products that amp can ask for. The same program is linked with NVIDIA's
   library, on a GPU, and with tests/hostcuda, whose answers are what amp's tests believe; tests/check_gpu.sh compares.

       lt_probe ask        for which products there is an algorithm: TOPIC, product, yes or no, status and algorithm
       lt_probe run        small products whose results tell how they are computed: question, dtype, answer, detail
       lt_probe launches   product, dtype, nodes of a graph that it was captured into, microseconds or -, kernels
       lt_probe shapes     "rounded twice", dtype and epilogue, products that are, of how many, with k in parts;
                           "fp8 error", dtypes and k, log2 of the largest error of sums beside the sum of sizes

   Columns are separated by tabs; those up to the third must agree, but for what is rounded twice. Matrices are
   column-major, as cuBLASLt has them; the first operand is transposed wherever nothing else is said, which FP8 needs.
   Exit status 1: a call of the CUDA runtime failed. On the host runtime nothing is timed. */
#include <cublasLt.h>
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime_api.h>
#include <cmath>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

extern "C" void hcu_set_protect(int) __attribute__((weak)); /* the host runtime has it */

static cublasLtHandle_t lt;
static cudaStream_t stream;
static const uint64_t kRoom = uint64_t(32) << 20; /* bytes of workspace */
static void *workspace;

static void need(cudaError_t e, const char *call) {
    if (e == cudaSuccess) return;
    printf("WRONG: lt_probe: %s: %s (%s)\n", call, cudaGetErrorName(e), cudaGetErrorString(e));
    exit(1);
}
#define NEED(call) need(call, #call)

/* ---- numbers ---- */

enum { F32 = CUDA_R_32F, F16 = CUDA_R_16F, BF16 = CUDA_R_16BF, E4M3 = CUDA_R_8F_E4M3, E5M2 = CUDA_R_8F_E5M2 };
static const int kTypes[] = {F32, F16, BF16};

static const char *name_of(int type) {
    switch (type) {
    case F32: return "f32";
    case F16: return "f16";
    case BF16: return "bf16";
    case E4M3: return "e4m3";
    case E5M2: return "e5m2";
    default: return "unsaid";
    }
}
static bool is_fp8(int type) { return type == E4M3 || type == E5M2; }
static size_t bytes_of(int type) { return type == F32 ? 4 : is_fp8(type) ? 1 : 2; }
static void store(int type, void *p, size_t i, float x) {
    unsigned char *at = static_cast<unsigned char *>(p) + i * bytes_of(type);
    __half half;
    __nv_bfloat16 bf;
    switch (type) {
    case F32: memcpy(at, &x, 4); break;
    case F16:
        half = __float2half_rn(x);
        memcpy(at, &half, 2);
        break;
    case BF16:
        bf = __float2bfloat16_rn(x);
        memcpy(at, &bf, 2);
        break;
    default: *at = __nv_cvt_float_to_fp8(x, __NV_NOSAT, type == E4M3 ? __NV_E4M3 : __NV_E5M2);
    }
}
static float load(int type, const void *p, size_t i) {
    const unsigned char *at = static_cast<const unsigned char *>(p) + i * bytes_of(type);
    __half half;
    __nv_bfloat16 bf;
    float x;
    switch (type) {
    case F32: memcpy(&x, at, 4); return x;
    case F16: memcpy(&half, at, 2); return __half2float(half);
    case BF16: memcpy(&bf, at, 2); return __bfloat162float(bf);
    default: return __half2float(__half(__nv_cvt_fp8_to_halfraw(*at, type == E4M3 ? __NV_E4M3 : __NV_E5M2)));
    }
}
static float rounded(int type, float x) {
    unsigned char room[4];
    store(type, room, 0, x);
    return load(type, room, 0);
}
static uint32_t g_random = 1;
static float random_in(float low, float high) {
    g_random = g_random * 1664525u + 1013904223u;
    return low + (high - low) * float(g_random >> 8) / 16777216.0f;
}

/* ---- a product, described ---- */

typedef struct epilogue {
    const char *name;
    cublasLtEpilogue_t value;
    int bias, aux; /* aux 1: bits, 2: numbers */
} epilogue;
static const epilogue kNone = {"", CUBLASLT_EPILOGUE_DEFAULT, 0, 0}, kBias = {"bias", CUBLASLT_EPILOGUE_BIAS, 1, 0},
                      kRelu = {"relu", CUBLASLT_EPILOGUE_RELU, 0, 0},
                      kReluAux = {"relu_aux", CUBLASLT_EPILOGUE_RELU_AUX, 0, 1},
                      kGelu = {"gelu", CUBLASLT_EPILOGUE_GELU, 0, 0},
                      kGeluBias = {"gelu_bias", CUBLASLT_EPILOGUE_GELU_BIAS, 1, 0},
                      kGeluAux = {"gelu_aux", CUBLASLT_EPILOGUE_GELU_AUX, 0, 2},
                      kGeluAuxBias = {"gelu_aux_bias", CUBLASLT_EPILOGUE_GELU_AUX_BIAS, 1, 2},
                      kDrelu = {"drelu", CUBLASLT_EPILOGUE_DRELU, 0, 1},
                      kDgelu = {"dgelu", CUBLASLT_EPILOGUE_DGELU, 0, 2},
                      kDgeluBgrad = {"dgelu_bgrad", CUBLASLT_EPILOGUE_DGELU_BGRAD, 1, 2},
                      kBgradB = {"bgradb", CUBLASLT_EPILOGUE_BGRADB, 1, 0};
static const epilogue kEpilogues[] = {kNone, kBias, kRelu, {"relu_bias", CUBLASLT_EPILOGUE_RELU_BIAS, 1, 0}, kReluAux,
    {"relu_aux_bias", CUBLASLT_EPILOGUE_RELU_AUX_BIAS, 1, 1}, kGelu, kGeluBias, kGeluAux, kGeluAuxBias, kDrelu,
    {"drelu_bgrad", CUBLASLT_EPILOGUE_DRELU_BGRAD, 1, 1}, kDgelu, kDgeluBgrad,
    {"bgrada", CUBLASLT_EPILOGUE_BGRADA, 1, 0}, kBgradB};

typedef struct product {
    int a, b, c, d, bias_type, aux_type; /* the last two -1: not said */
    cublasComputeType_t compute;
    int trans_a, trans_b;
    epilogue epi;
    int64_t m, n, k;
    int64_t lda, ldd, aux_ld, batch, stride; /* lda, ldd, stride 0: packed */
    uint32_t align[4];                       /* promised of A, B, C, D */
    uint64_t room;
    uint32_t reductions;
    int scale_a, scale_b, scale_d, amax, fast, device_scalars;
} product;

static product of(int a, int b, int d) { /* c: d's dtype, or BF16 */
    return {a, b, is_fp8(d) ? int(BF16) : d, d, -1, -1, CUBLAS_COMPUTE_32F, 1, 0, kNone, 128, 96, 64, 0, 0, 128, 1, 0,
        {256, 256, 256, 256}, kRoom, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, 0, 0, 0, 0, 0, 0};
}

typedef struct pointers {
    const void *bias;
    void *aux;
    const float *scale_a, *scale_b, *scale_d;
    float *amax;
} pointers;
typedef struct described {
    cublasLtMatmulDescOpaque_t desc;
    cublasLtMatrixLayoutOpaque_t a, b, c, d;
    cublasLtMatmulPreferenceOpaque_t prefer;
    cublasStatus_t status; /* the first failure */
} described;

static void keep(described *x, cublasStatus_t e) {
    if (x->status == CUBLAS_STATUS_SUCCESS) x->status = e;
}
template <class T> static void set(described *x, cublasLtMatmulDescAttributes_t what, const T &value) {
    keep(x, cublasLtMatmulDescSetAttribute(&x->desc, what, &value, sizeof value));
}
static void layout(described *x, cublasLtMatrixLayoutOpaque_t *l, int type, int64_t rows, int64_t cols, int64_t ld,
    int64_t batch, int64_t stride) {
    int32_t count = int32_t(batch);
    keep(x, cublasLtMatrixLayoutInit(l, cudaDataType(type), uint64_t(rows), uint64_t(cols), ld));
    if (batch == 1) return;
    keep(x, cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count));
    keep(x, cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride));
}
static void describe_epilogue(described *x, const product *q, const pointers *p) {
    if (q->epi.value == CUBLASLT_EPILOGUE_DEFAULT) return;
    set(x, CUBLASLT_MATMUL_DESC_EPILOGUE, q->epi.value);
    if (q->epi.bias) set(x, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p->bias);
    if (q->epi.bias && q->bias_type >= 0) set(x, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, q->bias_type);
    if (!q->epi.aux) return;
    set(x, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, p->aux);
    set(x, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, q->aux_ld);
    if (q->aux_type >= 0) set(x, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, q->aux_type);
}
static void describe_preference(described *x, const product *q) {
    static const cublasLtMatmulPreferenceAttributes_t operand[4] = {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    keep(x, cublasLtMatmulPreferenceInit(&x->prefer));
    keep(x,
        cublasLtMatmulPreferenceSetAttribute(
            &x->prefer, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &q->room, sizeof q->room));
    keep(x,
        cublasLtMatmulPreferenceSetAttribute(
            &x->prefer, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &q->reductions, sizeof q->reductions));
    for (int i = 0; i < 4; i++)
        keep(x, cublasLtMatmulPreferenceSetAttribute(&x->prefer, operand[i], &q->align[i], sizeof q->align[i]));
}
static void describe(described *x, const product *q, const pointers *p) {
    const cublasOperation_t ta = q->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N, tb = q->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    const int64_t a_rows = q->trans_a ? q->k : q->m, a_cols = q->trans_a ? q->m : q->k;
    const int64_t b_rows = q->trans_b ? q->n : q->k, b_cols = q->trans_b ? q->k : q->n;
    const int64_t lda = q->lda ? q->lda : a_rows, ldd = q->ldd ? q->ldd : q->m;
    const int64_t stride = q->stride ? q->stride : ldd * q->n;
    x->status = CUBLAS_STATUS_SUCCESS;
    keep(x, cublasLtMatmulDescInit(&x->desc, q->compute, q->compute == CUBLAS_COMPUTE_16F ? CUDA_R_16F : CUDA_R_32F));
    set(x, CUBLASLT_MATMUL_DESC_TRANSA, ta);
    set(x, CUBLASLT_MATMUL_DESC_TRANSB, tb);
    if (q->device_scalars) set(x, CUBLASLT_MATMUL_DESC_POINTER_MODE, CUBLASLT_POINTER_MODE_DEVICE);
    describe_epilogue(x, q, p);
    if (q->scale_a) set(x, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, p->scale_a);
    if (q->scale_b) set(x, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, p->scale_b);
    if (q->scale_d) set(x, CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, p->scale_d);
    if (q->amax) set(x, CUBLASLT_MATMUL_DESC_AMAX_D_POINTER, p->amax);
    if (q->fast) set(x, CUBLASLT_MATMUL_DESC_FAST_ACCUM, int8_t(1));
    layout(x, &x->a, q->a, a_rows, a_cols, lda, q->batch, lda * a_cols);
    layout(x, &x->b, q->b, b_rows, b_cols, b_rows, q->batch, b_rows * b_cols);
    layout(x, &x->c, q->c, q->m, q->n, ldd, q->batch, stride);
    layout(x, &x->d, q->d, q->m, q->n, ldd, q->batch, stride);
    describe_preference(x, q);
}
static int search(described *x, cublasLtMatmulHeuristicResult_t *best) { /* 1: there is one */
    int found = 0;
    if (x->status != CUBLAS_STATUS_SUCCESS) return 0;
    x->status = cublasLtMatmulAlgoGetHeuristic(lt, &x->desc, &x->a, &x->b, &x->c, &x->d, &x->prefer, 1, best, &found);
    return x->status == CUBLAS_STATUS_SUCCESS && found > 0 && best->state == CUBLAS_STATUS_SUCCESS;
}
static int parts_of(const cublasLtMatmulHeuristicResult_t *best) {
    int32_t split = 1;
    size_t got;
    (void)cublasLtMatmulAlgoConfigGetAttribute(
        &best->algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &split, sizeof split, &got);
    return int(split);
}

/* ---- ask ---- */

typedef struct words { char text[240]; } words;
static void say(words *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(words *w, const char *format, ...) {
    size_t n = strlen(w->text);
    va_list list;
    va_start(list, format);
    vsnprintf(w->text + n, sizeof w->text - n, format, list);
    va_end(list);
}
/* What differs from an everyday product. */
static words tell(const product *q) {
    const product usual = of(q->a, q->b, q->d);
    words w = {""};
    say(&w, "%s x %s -> %s %c%c", name_of(q->a), name_of(q->b), name_of(q->d), "NT"[q->trans_a], "NT"[q->trans_b]);
    if (*q->epi.name) say(&w, " %s", q->epi.name);
    if (q->bias_type >= 0) say(&w, ", bias %s", name_of(q->bias_type));
    if (q->aux_type >= 0) say(&w, ", aux %s", name_of(q->aux_type));
    if (q->c != usual.c) say(&w, ", C %s", name_of(q->c));
    if (q->compute != usual.compute) say(&w, ", compute %d", int(q->compute));
    if (q->m != usual.m) say(&w, ", m %lld", (long long)q->m);
    if (q->n != usual.n) say(&w, ", n %lld", (long long)q->n);
    if (q->k != usual.k) say(&w, ", k %lld", (long long)q->k);
    if (q->lda) say(&w, ", lda %lld", (long long)q->lda);
    if (q->ldd) say(&w, ", ldd %lld", (long long)q->ldd);
    if (q->epi.aux && q->aux_ld != usual.aux_ld) say(&w, ", aux_ld %lld", (long long)q->aux_ld);
    if (q->batch != 1) say(&w, ", batch %lld", (long long)q->batch);
    if (q->stride) say(&w, ", stride %lld", (long long)q->stride);
    for (int i = 0; i < 4; i++)
        if (q->align[i] != 256) say(&w, ", %c to %u bytes", "ABCD"[i], unsigned(q->align[i]));
    if (q->room != kRoom) say(&w, ", workspace %llu", (unsigned long long)q->room);
    if (q->reductions != usual.reductions) say(&w, ", reductions %u", unsigned(q->reductions));
    if (q->scale_a || q->scale_b || q->scale_d)
        say(&w, ", scales of%s%s%s", q->scale_a ? " A" : "", q->scale_b ? " B" : "", q->scale_d ? " D" : "");
    say(&w, "%s%s%s", q->amax ? ", amax" : "", q->fast ? ", fast" : "", q->device_scalars ? ", device scalars" : "");
    return w;
}
static const char *status_name(cublasStatus_t e) {
    switch (e) {
    case CUBLAS_STATUS_SUCCESS: return "SUCCESS";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "NOT_SUPPORTED";
    case CUBLAS_STATUS_INVALID_VALUE: return "INVALID_VALUE";
    case CUBLAS_STATUS_ARCH_MISMATCH: return "ARCH_MISMATCH";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "EXECUTION_FAILED";
    case CUBLAS_STATUS_INTERNAL_ERROR: return "INTERNAL_ERROR";
    default: return "another status";
    }
}
static void ask(const char *topic, const product *q) {
    /* addresses that nobody reads */
    static const pointers p = {(void *)0x100000000, (void *)0x100100000, (float *)0x100200000, (float *)0x100200010,
        (float *)0x100200020, (float *)0x100200030};
    cublasLtMatmulHeuristicResult_t best;
    int32_t id = -1;
    size_t got;
    words w = tell(q);
    described x;
    describe(&x, q, &p);
    if (search(&x, &best)) {
        (void)cublasLtMatmulAlgoConfigGetAttribute(&best.algo, CUBLASLT_ALGO_CONFIG_ID, &id, sizeof id, &got);
        printf("%s\t%s\tyes\talgorithm %d, k in %d, workspace %llu\n", topic, w.text, int(id), parts_of(&best),
            (unsigned long long)best.workspaceSize);
    } else {
        printf("%s\t%s\tno\t%s\n", topic, w.text, status_name(x.status));
    }
}
template <class Change> static void ask_with(const char *topic, product q, Change change) {
    change(&q);
    ask(topic, &q);
}

/* 16 and 32 bits: the pairs of input and output. */
static const int kPairs[5][2] = {{F32, F32}, {F16, F16}, {BF16, BF16}, {F16, F32}, {BF16, F32}};

static void ask_epilogues(void) {
    for (auto &t : kPairs)
        for (const epilogue &e : kEpilogues)
            for (int layout = 0; layout < 4; layout++)
                ask_with("epilogue", of(t[0], t[0], t[1]), [&](product *q) {
                    q->epi = e;
                    q->trans_a = layout & 1;
                    q->trans_b = layout >> 1;
                });
    for (auto &t : kPairs)
        for (const epilogue &e : kEpilogues)
            for (int other : kTypes) {
                if (e.bias)
                    ask_with("bias dtype", of(t[0], t[0], t[1]), [&](product *q) {
                        q->epi = e;
                        q->bias_type = other;
                    });
                if (e.aux == 2)
                    ask_with("aux dtype", of(t[0], t[0], t[1]), [&](product *q) {
                        q->epi = e;
                        q->aux_type = other;
                    });
            }
    for (int t : kTypes)
        for (const epilogue &e : kEpilogues)
            for (int64_t ld : {120, 127, 128, 129, 132, 136, 256})
                if (e.aux)
                    ask_with("aux rows", of(t, t, t), [&](product *q) {
                        q->epi = e;
                        q->aux_ld = ld;
                    });
}
static void ask_sizes(void) {
    for (int t : kTypes)
        for (int64_t z : {1, 2, 3, 5, 7, 8, 12, 100, 1000, 4095, 4096})
            for (int which = 1; which < 8; which++)
                ask_with("size", of(t, t, t), [&](product *q) {
                    if (which & 1) q->m = z;
                    if (which & 2) q->n = z;
                    if (which & 4) q->k = z;
                });
    for (int t : kTypes)
        for (const epilogue &e : kEpilogues)
            for (int64_t z : {1, 7, 8})
                for (int which = 0; which < 3; which++)
                    ask_with("size, epilogue", of(t, t, t), [&](product *q) {
                        q->epi = e;
                        (which == 0 ? q->m : which == 1 ? q->n : q->k) = z;
                    });
    for (int64_t z : {int64_t(1) << 20, int64_t(1) << 24, (int64_t(1) << 31) - 1, int64_t(1) << 31, int64_t(1) << 33})
        for (int which = 0; which < 3; which++)
            ask_with("huge", of(F16, F16, F16), [&](product *q) {
                (which == 0 ? q->m : which == 1 ? q->n : q->k) = z;
            });
}
static void ask_alignment(void) {
    for (auto &t : kPairs)
        for (int operand = 0; operand < 5; operand++) /* 4: all of them */
            for (uint32_t bytes : {1u, 2u, 4u, 8u, 16u})
                ask_with("alignment", of(t[0], t[0], t[1]), [&](product *q) {
                    for (int i = 0; i < 4; i++)
                        if (operand == 4 || operand == i) q->align[i] = bytes;
                });
    for (auto &t : kPairs)
        for (int64_t ld : {65, 66, 68, 72})
            ask_with("alignment", of(t[0], t[0], t[1]), [&](product *q) {
                q->lda = ld;
                q->align[0] = uint32_t(ld % 8 == 0 ? 16 : ld % 4 == 0 ? 8 : ld % 2 == 0 ? 4 : 2);
            });
}
static void ask_batches(void) {
    for (int t : kTypes)
        for (const epilogue &e : kEpilogues)
            for (int how = 0; how < 3; how++)
                ask_with("batch", of(t, t, t), [&](product *q) {
                    q->epi = e;
                    q->batch = how == 1 ? 65536 : 3;
                    if (how != 2) return;
                    q->stride = 128; /* side by side in each line */
                    q->ldd = 3 * 128;
                });
}
static void ask_sums(void) {
    static const cublasComputeType_t computes[] = {CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_PEDANTIC,
        CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_COMPUTE_32F_FAST_16F, CUBLAS_COMPUTE_32F_FAST_16BF, CUBLAS_COMPUTE_16F};
    for (int t : kTypes)
        for (uint64_t room : {uint64_t(0), uint64_t(4) << 20, kRoom})
            for (uint32_t reductions : {0u, 1u, 2u, 4u, 7u})
                for (int64_t k : {64, 65536})
                    ask_with("split k", of(t, t, t), [&](product *q) {
                        q->room = room;
                        q->reductions = reductions;
                        q->k = k;
                    });
    for (auto compute : computes)
        for (int t : kTypes)
            for (const epilogue &e : kEpilogues)
                ask_with("sums", of(t, t, t), [&](product *q) {
                    q->compute = compute;
                    q->epi = e;
                });
    for (int t : kTypes)
        for (const epilogue &e : kEpilogues)
            ask_with("device scalars", of(t, t, t), [&](product *q) {
                q->epi = e;
                q->device_scalars = 1;
            });
}
static void ask_fp8_epilogues(const product *plain) {
    for (const epilogue &e : kEpilogues)
        for (int bias : {-1, int(BF16), int(F16), int(F32)}) {
            product q = *plain;
            if (!e.bias && bias >= 0) continue;
            q.epi = e;
            q.bias_type = bias;
            q.scale_a = q.scale_b = 1;
            q.scale_d = q.amax = is_fp8(q.d);
            ask("fp8 epilogue", &q);
            for (int aux : {int(BF16), int(F16), int(E4M3)}) {
                q.aux_type = aux;
                if (e.aux == 2 && is_fp8(q.d)) ask("fp8 aux", &q);
            }
        }
}
static void ask_fp8_sizes(const product *plain) {
    for (int64_t z : {1, 8, 15, 16, 17, 24})
        for (int which = 0; which < 4; which++)
            ask_with("fp8 size", *plain, [&](product *q) {
                if (which == 3)
                    q->lda = 64 + z;
                else
                    (which == 0 ? q->m : which == 1 ? q->n : q->k) = z;
            });
    for (uint32_t bytes : {4u, 8u, 16u})
        for (int operand = 0; operand < 4; operand++)
            ask_with("fp8 alignment", *plain, [&](product *q) { q->align[operand] = bytes; });
    ask_with("fp8", *plain, [](product *q) { q->batch = 3; });
    ask_with("fp8", *plain, [](product *q) { q->fast = 1; });
    ask_with("fp8", *plain, [](product *q) { q->amax = 1; });
    ask_with("fp8", *plain, [](product *q) { q->scale_d = 1; });
    ask_with("fp8", *plain, [](product *q) { q->device_scalars = 1; });
}
static void ask_fp8(void) {
    for (int a : {E4M3, E5M2})
        for (int b : {E4M3, E5M2})
            for (int c : {int(BF16), int(F16), int(F32)})
                for (int d : {int(BF16), int(F16), int(F32), int(E4M3), int(E5M2)}) {
                    product q = of(a, b, d);
                    if (!is_fp8(d) && d != c) continue;
                    q.c = c;
                    for (int layout = 0; layout < 4; layout++)
                        ask_with("fp8", q, [&](product *x) {
                            x->trans_a = layout & 1;
                            x->trans_b = layout >> 1;
                        });
                    ask_fp8_epilogues(&q);
                    ask_fp8_sizes(&q);
                }
}

/* ---- run ---- */

typedef std::vector<float> numbers;
class Memory { /* of the device */
  public:
    Memory(int type, const numbers &x) : bytes(x.size() * bytes_of(type) + 256) {
        std::vector<unsigned char> host(bytes);
        for (size_t i = 0; i < x.size(); i++)
            store(type, host.data(), i, x[i]);
        NEED(cudaMalloc(&p, bytes));
        NEED(cudaMemcpy(p, host.data(), bytes, cudaMemcpyHostToDevice));
    }
    ~Memory() { (void)cudaFree(p); }
    Memory(const Memory &) = delete;
    Memory &operator=(const Memory &) = delete;
    numbers read(int type, size_t n) const {
        std::vector<unsigned char> host(bytes);
        numbers x(n);
        NEED(cudaMemcpy(host.data(), p, bytes, cudaMemcpyDeviceToHost));
        for (size_t i = 0; i < n; i++)
            x[i] = load(type, host.data(), i);
        return x;
    }
    void *p = nullptr;

  private:
    size_t bytes;
};

typedef struct operands { /* a: k x m, b: k x n, the rest m x n or m */
    numbers a, b, c, bias, aux;
    float alpha, beta, scales[3];
    int off; /* bytes that the scales lie off a multiple of 16 */
} operands;
typedef struct result {
    const char *why; /* NULL: it ran */
    numbers d, aux, bias;
    float amax;
    int parts; /* of k */
} result;

static bool bits_aux(const product *q) { return q->epi.aux == 1; }
static int aux_type(const product *q) {
    if (bits_aux(q)) return E4M3; /* bytes; read as they are */
    return q->aux_type >= 0 ? q->aux_type : q->d;
}
static int bias_type(const product *q) {
    if (q->bias_type >= 0) return q->bias_type;
    return is_fp8(q->d) ? int(BF16) : q->d;
}
static result run(const product *q, const operands *in) {
    const size_t mn = size_t(q->m * q->n), aux = q->epi.aux == 2 ? size_t(q->aux_ld * q->n) : mn;
    result out = {NULL, {}, {}, {}, 0, 1};
    Memory a(q->a, in->a), b(q->b, in->b), c(q->c, in->c), d(q->d, numbers(mn)), bias(bias_type(q), in->bias);
    Memory saved(aux_type(q), in->aux.empty() ? numbers(aux) : in->aux);
    const size_t at = size_t(in->off / 4);
    numbers scalars(at + 16);
    for (int i = 0; i < 3; i++)
        scalars[at + 4 * size_t(i)] = in->scales[i];
    scalars[at + 1] = in->alpha;
    scalars[at + 2] = in->beta;
    Memory device(F32, scalars);
    float *s = static_cast<float *>(device.p) + at;
    const pointers p = {bias.p, saved.p, s, s + 4, s + 8, s + 3};
    cublasLtMatmulHeuristicResult_t best;
    cublasStatus_t e;
    described x;
    describe(&x, q, &p);
    if (!search(&x, &best)) {
        out.why = "no algorithm";
        return out;
    }
    out.parts = parts_of(&best);
    e = cublasLtMatmul(lt, &x.desc, q->device_scalars ? s + 1 : &in->alpha, a.p, &x.a, b.p, &x.b,
        q->device_scalars ? s + 2 : &in->beta, c.p, &x.c, d.p, &x.d, &best.algo, workspace, kRoom, stream);
    NEED(cudaStreamSynchronize(stream));
    if (e != CUBLAS_STATUS_SUCCESS) {
        out.why = "refused at the call";
        return out;
    }
    out.d = d.read(q->d, mn);
    if (q->epi.aux) out.aux = saved.read(aux_type(q), aux);
    if (q->epi.bias) out.bias = bias.read(bias_type(q), size_t(q->m));
    out.amax = device.read(F32, at + 4)[at + 3];
    return out;
}

enum { M = 64, N = 64 };
static product small(int a, int b, int d, const epilogue *e) {
    product q = of(a, b, d);
    q.m = M;
    q.n = N;
    q.epi = *e;
    q.aux_ld = e->aux == 1 ? 128 : M;
    return q;
}
static operands zeros(const product *q) {
    operands x = {numbers(size_t(q->k * q->m)), numbers(size_t(q->k * q->n)), numbers(size_t(q->m * q->n)),
        numbers(size_t(q->m)), {}, 1, 0, {1, 1, 1}, 0};
    return x;
}
/* One term: d(i, j) = x(i) y(j), exact in FP32; of FP8, whose products are exact in 16 bits, with a factor. */
static operands outer(const product *q) {
    operands x = zeros(q);
    if (is_fp8(q->a)) x.alpha = 1 + ldexpf(1, -11) + ldexpf(1, -13);
    for (int i = 0; i < M; i++)
        x.a[size_t(i * q->k)] = rounded(q->a, random_in(0.5f, 2.0f));
    for (int j = 0; j < N; j++)
        x.b[size_t(j * q->k)] = rounded(q->b, random_in(-1.9f, 1.9f));
    if (q->epi.bias)
        for (float &v : x.bias)
            v = rounded(bias_type(q), random_in(-0.5f, 0.5f));
    return x;
}
static float term(const product *q, const operands *x, int i, int j) {
    return x->a[size_t(i * q->k)] * x->b[size_t(j * q->k)] * x->alpha;
}

static void answer(const char *question, const char *of, const char *what, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static void answer(const char *question, const char *of, const char *what, const char *format, ...) {
    va_list list;
    printf("%s\t%s\t%s\t", question, of, what);
    va_start(list, format);
    vprintf(format, list);
    va_end(list);
    puts("");
}
static void say_type(char to[32], const product *q) {
    const bool one = q->a == q->d && !is_fp8(q->a);
    snprintf(to, 32, "%s%s%s", name_of(q->a), one ? "" : ">", one ? "" : name_of(q->d));
}
/* Of so many that tell, so many are nearer to the first. */
static const char *first_or_second(int nearer, int tell, const char *first, const char *second) {
    if (tell == 0) return "nothing tells";
    if (4 * nearer >= 3 * tell) return first;
    return 4 * nearer <= tell ? second : "unclear";
}

static double gelu_tanh(double x) { return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); }
static double gelu_erf(double x) { return 0.5 * x * (1 + erf(x * 0.7071067811865476)); }
static double slope_tanh(double x) {
    double t = tanh(0.7978845608028654 * (x + 0.044715 * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * 0.7978845608028654 * (1 + 0.134145 * x * x);
}
static double slope_erf(double x) {
    return 0.5 * (1 + erf(x * 0.7071067811865476)) + x * 0.3989422804014327 * exp(-0.5 * x * x);
}
static int nearer(float x, double first, double second) { return fabs(x - first) < fabs(x - second); }

/* Is the sum rounded to d's dtype before GELU sees it? And what is in aux? */
static void run_gelu(int a, int d, const epilogue *e) {
    product q = small(a, a, d, e);
    char of[32];
    words w = {"GELU, roundings: "};
    if (is_fp8(d) && e->aux) q.aux_type = BF16;
    if (is_fp8(d)) q.scale_d = 1;
    operands x = outer(&q);
    result r = run(&q, &x);
    int tell = 0, once = 0, whole = 0;
    say_type(of, &q);
    say(&w, "%s", e->name);
    for (int j = 0; !r.why && j < N; j++)
        for (int i = 0; i < M; i++) {
            const float z = term(&q, &x, i, j) + (e->bias ? x.bias[size_t(i)] : 0.0f);
            const float one = rounded(d, float(gelu_tanh(z))), two = rounded(d, float(gelu_tanh(rounded(d, z))));
            if (e->aux) whole += r.aux[size_t(i + j * q.aux_ld)] == rounded(aux_type(&q), z);
            if (one == two) continue;
            tell++;
            once += nearer(r.d[size_t(i + j * M)], one, two);
        }
    answer(w.text, of,
        r.why          ? r.why
            : d == F32 ? "once"
                       : first_or_second(once, tell, "once", "twice"),
        "%d of %d tell, %d once", tell, M * N, once);
    if (!e->aux) return;
    w = {"aux is what GELU got: "};
    say(&w, "%s", e->name);
    answer(w.text, of, r.why ? r.why : whole == M * N ? "yes" : "no", "%d of %d", whole, M * N);
}
/* Which formula, and how far from it. */
static void run_formula(int t) {
    product q = small(t, t, F32, &kGelu), back = small(t, t, t, &kDgelu);
    operands x = outer(&q), y = outer(&back);
    result r = run(&q, &x), s;
    double worst = 0;
    int tanh = 0, tell = 0;
    for (int i = 0; !r.why && i < M * N; i++) {
        const float z = term(&q, &x, i % M, i / M);
        const double error = fabs(r.d[size_t(i)] - gelu_tanh(z));
        tanh += nearer(r.d[size_t(i)], gelu_tanh(z), gelu_erf(z));
        worst = error > worst ? error : worst;
    }
    answer("GELU's formula, f32 d", name_of(t), r.why ? r.why : first_or_second(tanh, M * N, "tanh", "erf"),
        "at most %.1e from tanh", worst);
    y.aux = numbers(size_t(back.aux_ld * N));
    for (float &v : y.aux)
        v = rounded(t, random_in(-3, 3));
    s = run(&back, &y);
    tanh = 0;
    for (int i = 0; !s.why && i < M * N; i++) {
        const double z = term(&back, &y, i % M, i / M), at = y.aux[size_t(i)];
        const float one = rounded(t, float(z * slope_tanh(at))), two = rounded(t, float(z * slope_erf(at)));
        if (one == two) continue;
        tell++;
        tanh += nearer(s.d[size_t(i)], one, two);
    }
    answer("GELU's derivative", name_of(t), s.why ? s.why : first_or_second(tanh, tell, "tanh", "erf"),
        "%d of %d tell, %d tanh", tell, M * N, tanh);
}
/* The bias gradient: a sum of what is stored, or of what is rounded to it? */
static void run_bias_gradient(int t) {
    product q = small(t, t, t, &kDgeluBgrad);
    operands x = outer(&q);
    int tell = 0, exact = 0;
    x.aux = numbers(size_t(q.aux_ld * N));
    for (float &v : x.aux)
        v = rounded(t, random_in(-3, 3));
    result r = run(&q, &x);
    for (int i = 0; !r.why && i < M; i++) {
        double sum = 0, stored = 0;
        for (int j = 0; j < N; j++) {
            sum += term(&q, &x, i, j) * slope_tanh(x.aux[size_t(i + j * q.aux_ld)]);
            stored += r.d[size_t(i + j * M)];
        }
        if (rounded(t, float(sum)) == rounded(t, float(stored))) continue;
        tell++;
        exact += nearer(r.bias[size_t(i)], sum, stored);
    }
    answer("bias gradient: sums of", name_of(t),
        r.why          ? r.why
            : t == F32 ? "what is stored"
                       : first_or_second(exact, tell, "unrounded", "what is stored"),
        "%d of %d tell, %d unrounded", tell, M, exact);
}
static void run_bias(int t) {
    product q = small(t, t, t, &kBias);
    operands x = outer(&q);
    result r = run(&q, &x);
    int tell = 0, once = 0;
    for (int i = 0; !r.why && i < M * N; i++) {
        const float z = term(&q, &x, i % M, i / M), b = x.bias[size_t(i % M)];
        const float one = rounded(t, z + b), two = rounded(t, rounded(t, z) + b);
        if (one == two) continue;
        tell++;
        once += nearer(r.d[size_t(i)], one, two);
    }
    answer("bias, roundings", name_of(t),
        r.why          ? r.why
            : t == F32 ? "once"
                       : first_or_second(once, tell, "once", "twice"),
        "%d of %d tell, %d once", tell, M * N, once);
}

static const char *kind_of(float x) {
    static char text[4][24];
    static int next;
    if (x != x) return "NaN";
    if (std::isinf(x)) return x > 0 ? "Inf" : "-Inf";
    snprintf(text[next = (next + 1) % 4], 24, "%.9g", double(x));
    return text[next];
}
/* What the product of one pair of numbers becomes. */
static result pair(product *q, float x, float y, operands *in) {
    *in = zeros(q);
    in->a[0] = x;
    in->b[0] = y;
    in->scales[2] = q->scale_d ? 2 : 1;
    return run(q, in);
}
static void run_pair(const char *question, int a, int d, const epilogue *e, float x, float y) {
    product q = small(a, a, d, e);
    operands in;
    result r = pair(&q, x, y, &in);
    char of[32];
    say_type(of, &q);
    answer(question, of, r.why ? r.why : kind_of(r.d[0]), "%s", "");
}
/* The bit that ReLU leaves, or its derivative finds. */
static int bit_of(const result *r) { /* of the byte that E4M3 was read from */
    unsigned char byte;
    store(E4M3, &byte, 0, r->aux[0]);
    return byte & 1;
}
static void run_relu(int t) {
    product q = small(t, t, t, &kReluAux), back = small(t, t, t, &kDrelu);
    operands in;
    result r;
    run_pair("ReLU of NaN", t, t, &kRelu, NAN, 1);
    for (float x : {NAN, 0.0f, 1.0f}) {
        words w = {"ReLU's bit of "};
        say(&w, "%s", x != x ? "NaN" : kind_of(x));
        r = pair(&q, x, 1, &in);
        answer(w.text, name_of(t), r.why ? r.why : bit_of(&r) ? "1" : "0", "%s", "");
    }
    r = pair(&back, NAN, 1, &in); /* no bit is set */
    answer("ReLU's derivative, bit 0, of NaN", name_of(t), r.why ? r.why : kind_of(r.d[0]), "%s", "");
}
static void run_numbers(int t) {
    const float tiny = t == F16 ? ldexpf(1, -20) : ldexpf(1, -130), back = t == F16 ? 1.0f : 1024.0f;
    run_pair("GELU of NaN", t, t, &kGelu, NAN, 1);
    run_pair("GELU of -Inf", t, t, &kGelu, -INFINITY, 1);
    run_pair("a subnormal input", t, F32, &kNone, tiny, back);
    run_pair("a subnormal result", t, t, &kNone, t == F16 ? ldexpf(1, -10) : ldexpf(1, -70),
        t == F16 ? ldexpf(1, -10) : ldexpf(1, -62));
    if (t == F16) run_pair("90000 in an F16 d", t, t, &kNone, 300, 300);
    if (t == F32) run_pair("1 + 2^-20, no TF32", t, t, &kNone, 1 + ldexpf(1, -20), 1);
}
/* beta is 0 and C is full of NaN; alpha is 0 and A is. */
static void run_factors(int t) {
    for (int how = 0; how < 3; how++) {
        product q = small(t, t, t, &kNone);
        words w = {"beta 0, C NaN"};
        q.device_scalars = how & 1;
        if (how == 2) q.k = 16384;
        say(&w, "%s", how == 1 ? ", device scalars" : how == 2 ? ", k 16384" : "");
        if (how == 2) q.m = q.n = 16;
        operands x = zeros(&q);
        x.a[0] = x.b[0] = 1;
        for (float &v : x.c)
            v = NAN;
        result r = run(&q, &x);
        answer(w.text, name_of(t), r.why ? r.why : r.d[0] == 1 ? "not read" : kind_of(r.d[0]), "%s", "");
    }
    product q = small(t, t, t, &kNone);
    operands x = zeros(&q);
    x.a[0] = NAN;
    x.alpha = 0;
    result r = run(&q, &x);
    answer("alpha 0, A NaN", name_of(t), r.why ? r.why : kind_of(r.d[0]), "%s", "");
}
/* A large term and many small ones: how much of them is left? */
static void run_precision(int t, int64_t k, int fast) {
    product q = small(t, t, F32, &kNone);
    words w = {"2^16 and k - 1 ones, k "};
    q.k = k;
    q.m = q.n = 16;
    q.fast = fast;
    operands x = zeros(&q);
    for (int64_t i = 0; i < k; i++)
        x.a[size_t(i)] = x.b[size_t(i)] = i == k / 2 ? 256 : 1;
    result r = run(&q, &x);
    say(&w, "%lld%s", (long long)k, fast ? ", fast" : "");
    const double want = 65536 + double(k) - 1;
    answer(w.text, name_of(t),
        r.why                ? r.why
            : r.d[0] == want ? "exact"
                             : "not exact",
        "%.9g, exact is %.9g", r.why ? 0 : double(r.d[0]), want);
}
static void run_fp8(void) {
    run_pair("900 in an E4M3 d", E4M3, E4M3, &kNone, 30, 30);
    run_pair("NaN in an E4M3 d", E4M3, E4M3, &kNone, NAN, 1);
    product q = small(E4M3, E5M2, E5M2, &kNone);
    operands in;
    result r = pair(&q, 448, 1024, &in);
    answer("458752 in an E5M2 d", "e4m3>e5m2", r.why ? r.why : kind_of(r.d[0]), "%s", "");
    q = small(E4M3, E4M3, E4M3, &kNone);
    q.scale_d = q.amax = 1;
    r = pair(&q, 3, 4, &in); /* 12, scaled by 2 */
    answer("12, D's scale 2", "e4m3>e4m3", r.why ? r.why : kind_of(r.d[0]), "%s", "");
    answer("amax of it", "e4m3>e4m3", r.why ? r.why : kind_of(r.amax), "%s", "");
    for (int fast = 0; fast < 2; fast++)
        for (int64_t k : {64, 4096})
            run_precision(E4M3, k, fast);
    for (int d : {int(F16), int(BF16), int(E4M3)})
        for (const epilogue *e : {&kGelu, &kGeluBias, &kGeluAux, &kGeluAuxBias})
            run_gelu(E4M3, d, e);
    /* last, for a fault would end it all */
    q = small(E4M3, E4M3, BF16, &kNone);
    q.scale_a = q.scale_b = 1;
    in = zeros(&q);
    in.a[0] = in.b[0] = 1;
    in.scales[0] = 2;
    in.scales[1] = 4;
    in.off = 4;
    r = run(&q, &in);
    answer("scales at multiples of 4 bytes", "e4m3>bf16", r.why ? r.why : kind_of(r.d[0]), "%s", "");
}
static void run_all(void) {
    for (int t : kTypes) {
        for (const epilogue *e : {&kGelu, &kGeluBias, &kGeluAux, &kGeluAuxBias})
            run_gelu(t, t, e);
        run_formula(t);
        run_bias(t);
        run_bias_gradient(t);
        run_relu(t);
        run_numbers(t);
        run_factors(t);
        run_precision(t, 64, 0);
        run_precision(t, 4096, 0);
    }
    run_fp8();
}

/* ---- shapes ---- */

/* d is the end of alpha a b + what an epilogue adds: is the product rounded before that is added? Terms are whole
   numbers, so that the sum is exact in any order. */
typedef struct added { /* how it is added */
    const char *name;
    const epilogue *epi;
    float beta;
} added;
static void fill_shape(const product *q, operands *x) {
    x->alpha = 1 + ldexpf(1, -5) + ldexpf(1, -13);
    for (numbers *v : {&x->a, &x->b})
        for (float &y : *v)
            y = floorf(random_in(-3, 4));
    for (numbers *v : {&x->c, &x->bias})
        for (float &y : *v)
            y = rounded(q->d, random_in(-0.5f, 0.5f));
}
static float shape_sum(const product *q, const operands *x, int64_t i, int64_t j) {
    double sum = 0;
    for (int64_t l = 0; l < q->k; l++)
        sum += double(x->a[size_t(q->trans_a ? l + i * q->k : i + l * q->m)]) *
            double(x->b[size_t(q->trans_b ? j + l * q->n : l + j * q->k)]);
    return float(sum * double(x->alpha));
}
/* The result, of z rounded or not. GELU of BF16 is known to round once more on its way. */
static float shape_end(const product *q, float z, float more, int twice) {
    float v = (twice ? rounded(q->d, z) : z) + more;
    if (q->epi.value != CUBLASLT_EPILOGUE_GELU_BIAS) return rounded(q->d, v);
    return rounded(q->d, float(gelu_tanh(twice && q->d == BF16 ? rounded(q->d, v) : v)));
}
static bool rounds_twice(const product *q, const added *how, int *parts) {
    operands x = zeros(q);
    int tell = 0, twice = 0;
    fill_shape(q, &x);
    x.beta = how->beta;
    const result r = run(q, &x);
    *parts = r.parts;
    for (int64_t i = 0; !r.why && i < q->m * q->n; i++) {
        const bool bias = q->epi.bias;
        const float of_c = how->beta * x.c[size_t(i)], z = shape_sum(q, &x, i % q->m, i / q->m) + (bias ? of_c : 0.0f);
        const float more = bias ? x.bias[size_t(i % q->m)] : of_c;
        const float one = shape_end(q, z, more, 0), two = shape_end(q, z, more, 1);
        if (one == two) continue;
        tell++;
        twice += nearer(r.d[size_t(i)], two, one);
    }
    return 2 * twice > tell;
}
static void run_roundings(int t, const added *how) {
    static const int64_t sizes[] = {1, 3, 16, 64};
    int products = 0, twice = 0, in_parts = 0, parts;
    for (int layout = 0; layout < 4; layout++)
        for (int64_t m : sizes)
            for (int64_t n : sizes)
                for (int64_t k : sizes) {
                    product q = of(t, t, t);
                    q.epi = *how->epi;
                    q.m = m;
                    q.n = n;
                    q.k = k;
                    q.trans_a = layout & 1;
                    q.trans_b = layout >> 1;
                    products++;
                    if (!rounds_twice(&q, how, &parts)) continue;
                    twice++;
                    in_parts += parts > 1;
                }
    printf("rounded twice\t%s %s\t%d\t%d\t%d\n", name_of(t), how->name, twice, products, in_parts);
}
/* The largest error of an FP8 sum beside the sum of its terms' sizes. */
static void run_fp8_error(int a, int b, int64_t k, int fast) {
    product q = small(a, b, F32, &kNone);
    operands x;
    double worst = 0;
    q.m = q.n = 32;
    q.k = k;
    q.fast = fast;
    x = zeros(&q);
    for (numbers *v : {&x.a, &x.b})
        for (float &y : *v)
            y = rounded(v == &x.a ? a : b, random_in(-1, 1) * random_in(0, 4));
    const result r = run(&q, &x);
    for (int64_t i = 0; !r.why && i < q.m * q.n; i++) {
        double sum = 0, sizes = 0;
        for (int64_t l = 0; l < k; l++) {
            const double term = double(x.a[size_t(l + i % q.m * k)]) * double(x.b[size_t(l + i / q.m * k)]);
            sum += term;
            sizes += fabs(term);
        }
        worst = fmax(worst, fabs(double(r.d[size_t(i)]) - sum) / sizes);
    }
    printf("fp8 error\t%s x %s, k %lld%s\t", name_of(a), name_of(b), (long long)k, fast ? ", fast" : "");
    if (r.why || worst == 0)
        printf("%s\n", r.why ? r.why : "none");
    else
        printf("%.2f\n", log2(worst));
}
static void run_shapes(void) {
    static const added kAdded[] = {
        {"beta", &kNone, 1}, {"bias", &kBias, 0}, {"bias and beta", &kBias, 1}, {"gelu_bias", &kGeluBias, 0}};
    static const int kFp8[3][2] = {{E4M3, E4M3}, {E5M2, E4M3}, {E4M3, E5M2}};
    for (int t : {int(F16), int(BF16)})
        for (const added &how : kAdded)
            run_roundings(t, &how);
    g_random = 1;
    for (auto &types : kFp8)
        for (int fast = 0; fast < 2; fast++)
            for (int64_t k : {16, 32, 64, 128, 256, 1024, 4096})
                run_fp8_error(types[0], types[1], k, fast);
}

/* ---- launches ---- */

/* The kernels of a graph, as the driver names them; nothing where it does not: before CUDA 12.3, and on the host
   runtime. */
template <class F> static F driver(const char *name) {
    void *found = NULL;
    cudaDriverEntryPointQueryResult how;
#if CUDART_VERSION >= 12050
    cudaError_t e = cudaGetDriverEntryPointByVersion(name, &found, 12030, 0, &how);
#else
    cudaError_t e = cudaGetDriverEntryPoint(name, &found, 0, &how);
#endif
    if (e != cudaSuccess) (void)cudaGetLastError();
    return e == cudaSuccess ? reinterpret_cast<F>(found) : NULL;
}
static void name_kernels(cudaGraph_t graph, size_t count, words *w) {
#if CUDA_VERSION >= 12030
    const auto type_of = driver<CUresult (*)(CUgraphNode, CUgraphNodeType *)>("cuGraphNodeGetType");
    const auto params_of =
        driver<CUresult (*)(CUgraphNode, CUDA_KERNEL_NODE_PARAMS_v2 *)>("cuGraphKernelNodeGetParams");
    const auto function_name = driver<CUresult (*)(const char **, CUfunction)>("cuFuncGetName");
    const auto kernel_name = driver<CUresult (*)(const char **, CUkernel)>("cuKernelGetName");
    std::vector<cudaGraphNode_t> nodes(count);
    if (!type_of || !params_of || !function_name || !kernel_name) return;
    if (cudaGraphGetNodes(graph, nodes.data(), &count) != cudaSuccess) return;
    for (size_t i = 0; i < count; i++) {
        CUDA_KERNEL_NODE_PARAMS_v2 p;
        CUgraphNodeType type;
        const char *name = NULL;
        memset(&p, 0, sizeof p);
        if (type_of(nodes[i], &type) != CUDA_SUCCESS || type != CU_GRAPH_NODE_TYPE_KERNEL) continue;
        if (params_of(nodes[i], &p) != CUDA_SUCCESS) continue;
        if (p.func ? function_name(&name, p.func) : kernel_name(&name, p.kern)) continue;
        say(w, "%s%.90s", *w->text ? " + " : "", name);
    }
#else
    (void)graph;
    (void)count;
    (void)w;
#endif
}
typedef struct ready { /* a product with everything that its call needs */
    described x;
    cublasLtMatmulHeuristicResult_t best;
    void *room;
    size_t bytes;
} ready;
static cublasStatus_t call(ready *r) {
    static const float one = 1, zero = 0;
    char *p = static_cast<char *>(r->room);
    return cublasLtMatmul(lt, &r->x.desc, &one, p, &r->x.a, p + r->bytes, &r->x.b, &zero, p + 6 * r->bytes, &r->x.c,
        p + 2 * r->bytes, &r->x.d, &r->best.algo, workspace, kRoom, stream);
}
static double microseconds(ready *r) { /* of one of eight in a row, the median of seven times */
    cudaEvent_t before, after;
    float ms, t[7];
    NEED(cudaEventCreate(&before));
    NEED(cudaEventCreate(&after));
    for (int i = 0; i < 7; i++) {
        NEED(cudaEventRecord(before, stream));
        for (int k = 0; k < 8; k++)
            (void)call(r);
        NEED(cudaEventRecord(after, stream));
        NEED(cudaEventSynchronize(after));
        NEED(cudaEventElapsedTime(&ms, before, after));
        t[i] = ms;
        for (int k = i; k > 0 && t[k] < t[k - 1]; k--)
            std::swap(t[k], t[k - 1]);
    }
    (void)cudaEventDestroy(before);
    (void)cudaEventDestroy(after);
    return double(t[3]) * 1e3 / 8;
}
static void launches(const char *what, const product *given, ready *r) {
    const bool host = hcu_set_protect != NULL;
    product q = *given;
    cudaGraph_t graph = NULL;
    size_t count = 0;
    char of[32], us[24] = "-";
    words names = {""};
    char *p = static_cast<char *>(r->room);
    say_type(of, &q);
    const pointers at = {p + 3 * r->bytes, p + 4 * r->bytes, (float *)(p + 5 * r->bytes),
        (float *)(p + 5 * r->bytes + 16), (float *)(p + 5 * r->bytes + 32), (float *)(p + 5 * r->bytes + 48)};
    describe(&r->x, &q, &at);
    if (!search(&r->x, &r->best) || call(r) != CUBLAS_STATUS_SUCCESS) {
        (void)cudaStreamSynchronize(stream);
        printf("%s\t%s\tno\t-\t%s\n", what, of, status_name(r->x.status));
        return;
    }
    NEED(cudaStreamSynchronize(stream));
    NEED(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    const cublasStatus_t e = call(r);
    NEED(cudaStreamEndCapture(stream, &graph));
    if (e == CUBLAS_STATUS_SUCCESS) {
        NEED(cudaGraphGetNodes(graph, NULL, &count));
        name_kernels(graph, count, &names);
        if (!host) snprintf(us, sizeof us, "%.1f", microseconds(r));
    }
    (void)cudaGraphDestroy(graph);
    printf("%s\t%s\t%d\t%s\t%s\n", what, of, e == CUBLAS_STATUS_SUCCESS ? int(count) : -1, us, names.text);
}
static void launches_all(void) {
    const int64_t e = hcu_set_protect ? 32 : 1024;
    ready r;
    r.bytes = size_t(4096 * e); /* the largest operand: 32 x 32 e, or e x e */
    NEED(cudaMalloc(&r.room, 7 * r.bytes));
    NEED(cudaMemset(r.room, 0, 7 * r.bytes));
    for (int t : {int(F16), int(BF16), int(F32)}) {
        for (const epilogue *epi : {&kNone, &kBias, &kGelu, &kGeluAuxBias, &kDgelu, &kDgeluBgrad, &kBgradB}) {
            product q = of(t, t, t);
            q.m = q.n = q.k = q.aux_ld = e;
            q.epi = *epi;
            launches(*epi->name ? epi->name : "plain", &q, &r);
        }
        product q = of(t, t, t);
        q.m = q.n = 32;
        q.k = 32 * e;
        launches("32 x 32, long k", &q, &r);
        q = of(t, t, t);
        q.m = q.n = q.k = e - 1;
        for (uint32_t &bytes : q.align)
            bytes = uint32_t(bytes_of(t));
        launches("plain, odd", &q, &r);
    }
    for (int d : {int(BF16), int(E4M3)})
        for (const epilogue *epi : {&kNone, &kBias, &kGelu, &kGeluAux}) {
            product q = of(E4M3, E4M3, d);
            q.m = q.n = q.k = q.aux_ld = e;
            q.epi = *epi;
            if (is_fp8(d) && epi->aux) q.aux_type = BF16;
            launches(*epi->name ? epi->name : "plain", &q, &r);
        }
    (void)cudaFree(r.room);
}

int main(int argc, char **argv) {
    const char *what = argc == 2 ? argv[1] : "";
    NEED(cudaSetDevice(0));
    NEED(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    NEED(cudaMalloc(&workspace, kRoom));
    const cublasStatus_t made = cublasLtCreate(&lt);
    if (made != CUBLAS_STATUS_SUCCESS) return printf("WRONG: cublasLtCreate: %d\n", int(made)), 1;
    if (!strcmp(what, "ask")) {
        ask_epilogues();
        ask_sizes();
        ask_alignment();
        ask_batches();
        ask_sums();
        ask_fp8();
    } else if (!strcmp(what, "run")) {
        run_all();
    } else if (!strcmp(what, "launches")) {
        launches_all();
    } else if (!strcmp(what, "shapes")) {
        run_shapes();
    } else {
        return fprintf(stderr, "usage: lt_probe ask|run|launches|shapes\n"), 2;
    }
    (void)cublasLtDestroy(lt);
    (void)cudaFree(workspace);
    (void)cudaStreamDestroy(stream);
    return 0;
}
