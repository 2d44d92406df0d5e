/* hcu_blas_product.cpp - the arithmetic of a product of cuBLASLt: FP32 accumulation in an order the test may choose,
 * with the documented epilogues. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include "hcu_blas_product.h"

namespace hcu {
namespace blas {
/* HCU_EPILOGUES=names: the roundings that some of cuBLASLt's kernels have, and not only those of everyday shapes; FP8
 * sums as an H100's tensor cores make them; and of FP8 products, where no GPU was asked, the epilogues that kernels of
 * cuBLASLt 13.1 are named after. */
bool by_names() {
    static const bool names = [] {
        const char *value = getenv("HCU_EPILOGUES");
        return value && !strcmp(value, "names");
    }();
    return names;
}

namespace {

/* ---- numbers ---- */

float load(int t, const void *p, size_t i) {
    switch (t) {
    case CUDA_R_32F: return static_cast<const float *>(p)[i];
    case CUDA_R_16F: return __half2float(static_cast<const __half *>(p)[i]);
    case CUDA_R_16BF: return __bfloat162float(static_cast<const __nv_bfloat16 *>(p)[i]);
    default: {
        __nv_fp8_interpretation_t kind = t == CUDA_R_8F_E4M3 ? __NV_E4M3 : __NV_E5M2;
        return __half2float(__half(__nv_cvt_fp8_to_halfraw(static_cast<const unsigned char *>(p)[i], kind)));
    }
    }
}
void store(int t, void *p, size_t i, float v) {
    switch (t) {
    case CUDA_R_32F: static_cast<float *>(p)[i] = v; break;
    case CUDA_R_16F: static_cast<__half *>(p)[i] = __float2half_rn(v); break;
    case CUDA_R_16BF: static_cast<__nv_bfloat16 *>(p)[i] = __float2bfloat16_rn(v); break;
    default:
        static_cast<unsigned char *>(p)[i] =
            __nv_cvt_float_to_fp8(v, __NV_SATFINITE, t == CUDA_R_8F_E4M3 ? __NV_E4M3 : __NV_E5M2);
    }
}
float rounded(int t, float v) {
    store(t, &v, 0, v);
    return load(t, &v, 0);
}
float to_tf32(float v) { /* 10 bits of significand, nearest, ties away */
    uint32_t u;
    memcpy(&u, &v, 4);
    if ((u & 0x7f800000u) != 0x7f800000u) u = (u + 0x1000u) & ~0x1fffu;
    memcpy(&v, &u, 4);
    return v;
}
constexpr float kGelu = 0.7978845608028654f, kGeluCubic = 0.044715f;
float gelu(float x) { return 0.5f * x * (1.0f + tanhf(kGelu * (x + kGeluCubic * x * x * x))); }
float gelu_slope(float x) {
    float t = tanhf(kGelu * (x + kGeluCubic * x * x * x));
    return 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * kGelu * (1.0f + 3.0f * kGeluCubic * x * x);
}

/* ---- the product ------------------------------------------------------------------------------------------------- */

/* y += a * x.  In a sanitizer build this is where all the time goes, so the loop itself is not instrumented: y and x
 * are the product's own packed copies. */
__attribute__((no_sanitize("address", "undefined"))) void axpy(
    float *__restrict y, const float *__restrict x, float a, size_t n) {
    for (size_t i = 0; i < n; i++)
        y[i] += a * x[i];
}
/* A sum of FP8 products as an H100 makes it: this gives each of 54 errors that were measured there (as in `lt_probe
 * shapes`, 64 x 64, k to 16384), to the last digit. 32 products and the sum so far are cut, towards zero, 13 bits below
 * the largest of their exponents; a product's is the sum of its factors'. The new sum keeps 13 bits behind its first.
 * After 128 terms it is added to an F32 sum, but for fast accumulation. Errors of random sums were up to 2^-12.3 of the
 * sum of the terms' sizes, fast 2^-11.5. No bound: beside a large term all small ones of its 128 may be lost, fast all
 * that follow. Infinities and NaN go the usual way. */
int exponent_of(float v) { /* of normal numbers, as FP8 has them in F32 */
    uint32_t u;
    memcpy(&u, &v, 4);
    return int(u >> 23 & 255) - 127;
}
float with_13_bits(float v) {
    uint32_t u;
    memcpy(&u, &v, 4);
    u &= ~0x3ffu;
    memcpy(&v, &u, 4);
    return v;
}
float fp8_step(float sum, const float *x, size_t m, const float *y, size_t n) { /* n at most 32; x at a stride of m */
    int largest = exponent_of(sum);
    float ordinary = sum;
    for (size_t q = 0; q < n; q++) {
        ordinary += x[q * m] * y[q];
        if (x[q * m] * y[q] != 0) largest = std::max(largest, exponent_of(x[q * m]) + exponent_of(y[q]));
    }
    if (!std::isfinite(ordinary)) return ordinary;
    const float unit = ldexpf(1, largest - 13);
    int units = int(sum / unit);
    for (size_t q = 0; q < n; q++)
        units += int(x[q * m] * y[q] / unit);
    return with_13_bits(float(units) * unit);
}
float fp8_sum(const float *x, size_t m, const float *y, size_t k, bool fast) {
    constexpr size_t kStep = 32, kBlock = 128;
    float whole = 0, sum = 0;
    for (size_t q = 0; q < k; q += kStep) {
        sum = fp8_step(sum, &x[q * m], m, &y[q], std::min(kStep, k - q));
        if (fast || (q + kStep) % kBlock) continue;
        whole += sum;
        sum = 0;
    }
    return whole + sum;
}
size_t split_of(const Product &p, size_t k) {
    if (p.order != 2 || k <= 8) return k;
    return 1 + p.seed % (k / 2);
}
void sum_column(const Product &p, const std::vector<float> &pa, const std::vector<float> &pb, size_t m, size_t k,
    std::vector<float> &acc, std::vector<float> &part) {
    std::fill(acc.begin(), acc.end(), 0.0f);
    if (p.order == 3) {
        for (size_t i = 0; i < m; i++) {
            double s = 0;
            for (size_t q = 0; q < k; q++)
                s += double(pa[q * m + i]) * double(pb[q]);
            acc[i] = float(s);
        }
        return;
    }
    if (is_fp8(p.a.type) && as_h100(p.arch) && by_names()) {
        for (size_t i = 0; i < m; i++)
            acc[i] = fp8_sum(&pa[i], m, pb.data(), k, p.d.fast_accumulation != 0);
        return;
    }
    if (p.d.compute == CUBLAS_COMPUTE_16F) {
        for (size_t i = 0; i < m; i++) {
            float s = 0;
            for (size_t q = 0; q < k; q++)
                s = __half2float(__float2half_rn(s + pa[q * m + i] * pb[q]));
            acc[i] = s;
        }
        return;
    }
    size_t split = split_of(p, k);
    for (size_t q0 = 0; q0 < k; q0 += split) {
        std::fill(part.begin(), part.end(), 0.0f);
        for (size_t q = q0; q < std::min(k, q0 + split); q++) {
            size_t e = p.order == 1 ? k - 1 - q : q;
            axpy(part.data(), &pa[e * m], pb[e], m);
        }
        for (size_t i = 0; i < m; i++)
            acc[i] += part[i];
    }
}

/* ---- what is rounded to D's 16 bits on the way ------------------------------------------------------------------- */

/* An H100 takes the product from memory where GELU's derivative in BF16 sums the bias's gradient, too. By names, as
 * there in small and odd shapes (`lt_probe shapes`): GELU is a kernel of its own, which reads what the product has
 * rounded, and in BF16 rounds once more what it gives to GELU; a bias is added to a rounded sum, in BF16 where k is
 * split, and in both where beta C is in it. Its FP8 products have all that in one kernel. */
struct Roundings { bool before_bias, before_gelu, before_slope; };
Roundings roundings_of(const Product &p, unsigned epi, float beta) {
    if (bytes_of(p.o.type) != 2 || (is_fp8(p.a.type) && as_h100(p.arch))) return {false, false, false};
    const bool bf16 = p.o.type == CUDA_R_16BF, gelu = (epi & EPI_GELU) != 0, bias = (epi & EPI_BIAS) != 0;
    const bool slope_and_sums = (epi & EPI_DGELU) && (epi & EPI_BGRAD);
    Roundings r = {false, false, bf16 && slope_and_sums && (as_h100(p.arch) || by_names())};
    if (!by_names()) return r;
    r.before_bias = gelu || (bias && (beta != 0 || (bf16 && p.split_k > 1)));
    r.before_gelu = gelu && bias && bf16;
    return r;
}
/* The bit for ReLU's derivative of v: of 0 it is 1 on an H100, and so is that of NaN where the inputs are F32. */
bool relu_bit(const Product &p, float v) {
    if (!as_h100(p.arch)) return v > 0;
    return p.a.type == CUDA_R_32F ? !(v < 0) : v >= 0;
}
} // namespace

void scale_matrix(const Layout &c, void *C, float beta) {
    for (size_t z = 0; z < size_t(c.batch); z++)
        for (size_t j = 0; j < c.cols; j++)
            for (size_t i = 0; i < c.rows; i++) {
                size_t x = z * size_t(c.stride) + at(c, i, j);
                store(c.type, C, x, beta == 0 ? 0.0f : beta * load(c.type, C, x));
            }
}
void run_product(const Product &p) {
    const Desc &d = p.d;
    const unsigned epi = d.epilogue == CUBLASLT_EPILOGUE_DEFAULT ? 0 : d.epilogue;
    const bool ta = d.trans_a != CUBLAS_OP_N, tb = d.trans_b != CUBLAS_OP_N,
               tf32 = d.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
    const size_t m = p.o.rows, n = p.o.cols, k = ta ? p.a.rows : p.a.cols;
    const int bt = bias_type(p.a, p.c, p.o);
    const bool writes_bias = (epi & EPI_WRITES_BIAS) != 0, reads_aux = (epi & (EPI_DRELU | EPI_DGELU)) != 0;
    float alpha = p.alpha_device ? *p.alpha_device : p.alpha, beta = p.beta_device ? *p.beta_device : p.beta;
    if (d.scale_a) alpha *= *d.scale_a;
    if (d.scale_b) alpha *= *d.scale_b;
    /* A and B are not read: a host that knows so launches another kernel */
    const bool no_product = as_h100(p.arch) && p.a.type == CUDA_R_32F && !p.alpha_device && alpha == 0;
    const Roundings rounds = roundings_of(p, epi, beta);
    const float scale_c = d.scale_c ? *d.scale_c : 1.0f, scale_d = d.scale_d ? *d.scale_d : 1.0f;

    hb_read(p.A, extent(p.a)); /* TSan does not see this file's own accesses */
    hb_read(p.B, extent(p.b));
    if (beta != 0) hb_read(p.C, extent(p.c));
    hb_write(p.D, extent(p.o));
    if (epi & EPI_BIAS) hb_read(d.bias, bias_extent(d, p.o, bt));
    if (writes_bias) hb_write(const_cast<void *>(d.bias), bias_extent(d, p.o, bt));
    if (epi & EPI_AUX) reads_aux ? hb_read(d.aux, aux_extent(d, p.c, p.o)) : hb_write(d.aux, aux_extent(d, p.c, p.o));
    if (p.workspace_bytes) { /* whatever was there is lost, and nothing useful is left behind */
        hb_write(p.workspace, p.workspace_bytes);
        memset(p.workspace, 0xff, p.workspace_bytes);
    }

    std::vector<float> pa(k * m), pb(k), acc(m), part(m), bias_grad(m);
    float amax = 0;
    for (size_t z = 0; z < size_t(p.o.batch); z++) {
        auto batch = [z](const void *base, const Layout &l) {
            return static_cast<const char *>(base) + z * size_t(l.stride) * bytes_of(l.type);
        };
        const void *A = batch(p.A, p.a), *B = batch(p.B, p.b), *C = batch(p.C, p.c);
        void *D = const_cast<char *>(batch(p.D, p.o));
        char *bias = static_cast<char *>(const_cast<void *>(d.bias)) + z * size_t(d.bias_stride) * bytes_of(bt);
        for (size_t q = 0; q < k; q++)
            for (size_t i = 0; i < m; i++) {
                float v = load(p.a.type, A, ta ? at(p.a, q, i) : at(p.a, i, q));
                pa[q * m + i] = tf32 ? to_tf32(v) : v;
            }
        if (epi == EPI_BGRADA)
            for (size_t i = 0; i < m; i++) {
                float s = 0;
                for (size_t q = 0; q < k; q++)
                    s += pa[q * m + i];
                store(bt, bias, i, s);
            }
        std::fill(bias_grad.begin(), bias_grad.end(), 0.0f);
        for (size_t j = 0; j < n; j++) {
            float column_sum = 0;
            for (size_t q = 0; q < k; q++) {
                float v = load(p.b.type, B, tb ? at(p.b, j, q) : at(p.b, q, j));
                pb[q] = tf32 ? to_tf32(v) : v;
                column_sum += pb[q];
            }
            if (epi == EPI_BGRADB) store(bt, bias, j, column_sum);
            sum_column(p, pa, pb, m, k, acc, part);
            for (size_t i = 0; i < m; i++) {
                float v = no_product ? 0 : alpha * acc[i];
                if (beta != 0)
                    v += beta * (load(p.c.type, C, at(p.c, i, j)) * scale_c); /* C is not read when beta is 0 */
                if (rounds.before_bias || rounds.before_slope) v = rounded(p.o.type, v);
                if (epi & EPI_BIAS) v += load(bt, bias, i);
                if (rounds.before_gelu) v = rounded(p.o.type, v);
                size_t x = z * size_t(d.aux_stride) + j * size_t(d.aux_ld) + i;
                unsigned char *bits = static_cast<unsigned char *>(d.aux) + x / 8, bit = (unsigned char)(1u << x % 8);
                if (epi & EPI_DRELU)
                    v = (*bits & bit) ? v : 0.0f;
                else if (epi & EPI_DGELU)
                    v *= gelu_slope(load(aux_type(d, p.c, p.o), d.aux, x));
                else if ((epi & EPI_AUX) && (epi & EPI_RELU))
                    *bits = (unsigned char)(relu_bit(p, v) ? *bits | bit : *bits & ~bit);
                else if (epi & EPI_AUX)
                    store(aux_type(d, p.c, p.o), d.aux, x, v);
                if (epi & EPI_RELU) v = v > 0 || v != v ? v : 0.0f;
                if (epi & EPI_GELU) v = gelu(v);
                bias_grad[i] += v;
                if (fabsf(v) > amax || v != v) amax = fabsf(v);
                store(p.o.type, D, at(p.o, i, j), v * scale_d);
            }
        }
        if (epi & EPI_BGRAD)
            for (size_t i = 0; i < m; i++)
                store(bt, bias, i, bias_grad[i]);
    }
    if (d.amax_d) *d.amax_d = amax;
}

} // namespace blas
} // namespace hcu
