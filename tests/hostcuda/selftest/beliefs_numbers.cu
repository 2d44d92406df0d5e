/* beliefs_numbers.cu - what our host runtime believes of CUDA's numbers, as questions (beliefs.h): conversions, half
 * arithmetic, functions, cuBLAS, cuRAND. Lines that begin with "exact" must be the same on a GPU; "bits" need not,
 * where CUDA promises ULPs only: they have the worst error beside them.
 * beliefs_numbers [exact | math | warp | blas | curand | risky 0 .. 12] */
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <curand.h>
#include <curand_kernel.h>
#include "beliefs.h"

static const int kMany = 1 << 16;
static unsigned long long hash_of(const void *p, size_t bytes) {
    unsigned long long h = 14695981039346656037ull;
    for (size_t i = 0; i < bytes; i++)
        h = (h ^ ((const unsigned char *)p)[i]) * 1099511628211ull;
    return h;
}
/* All kinds of floats: every exponent, both signs, zeros, infinities, NaNs. */
static __device__ unsigned pattern(unsigned i) {
    const unsigned special[8] = {0, 0x80000000u, 0x7f800000u, 0xff800000u, 0x7fc00000u, 0x7f800001u, 1u, 0x477fefffu};
    return i < 8 ? special[i] : i * 2654435761u;
}

/* ---- exact ----------------------------------------------------------------------------------------------------- */

static __device__ unsigned conversion(int what, unsigned i) {
    float f = __uint_as_float(pattern(i));
    double d = (double)f * 1.0000000123;
    __half h = __ushort_as_half((unsigned short)i);
    __nv_bfloat16 b = __ushort_as_bfloat16((unsigned short)i);
    switch (what) {
    case 0: return __half_as_ushort(__float2half(f));
    case 1: return __half_as_ushort(__float2half_rz(f));
    case 2: return __half_as_ushort(__float2half_ru(f));
    case 3: return __half_as_ushort(__float2half_rd(f));
    case 4: return __half_as_ushort(__double2half(d));
    case 5: return __float_as_uint(__half2float(h));
    case 6: return __bfloat16_as_ushort(__float2bfloat16(f));
    case 7: return __bfloat16_as_ushort(__float2bfloat16_rz(f));
    case 8: return __bfloat16_as_ushort(__double2bfloat16(d));
    case 9: return __float_as_uint(__bfloat162float(b));
    case 10: return __nv_cvt_float_to_fp8(f, __NV_SATFINITE, __NV_E4M3);
    case 11: return __nv_cvt_float_to_fp8(f, __NV_SATFINITE, __NV_E5M2);
    case 12: return __nv_cvt_float_to_fp8(f, __NV_NOSAT, __NV_E4M3);
    case 13: return __nv_cvt_float_to_fp8(f, __NV_NOSAT, __NV_E5M2);
    case 14: return __half_as_ushort(__half(__nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)i, __NV_E4M3)));
    case 15: return __half_as_ushort(__half(__nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)i, __NV_E5M2)));
    case 16: return (unsigned)__float2int_rn(f);
    case 17: return (unsigned)__float2int_rz(f);
    case 18: return __float2uint_rn(f);
    case 19: return (unsigned)__float2ll_rn(f);
    case 20: return (unsigned)(__float2ull_rz(f) >> 32);
    case 21: return (unsigned)__double2int_rn(d);
    case 22: return (unsigned)__half2int_rn(h);
    case 23: return (unsigned)__half2int_rz(h);
    case 24: return __half2uint_rn(h);
    case 25: return __half_as_ushort(__int2half_rn((int)(i * 2654435761u) >> (i & 15)));
    case 26: return __float_as_uint(__double2float_rn(d));
    case 27: return __float_as_uint(__double2float_rz(d));
    case 28: return __half_as_ushort(__hmul(h, __ushort_as_half((unsigned short)(i * 40503u))));
    case 29: return __half_as_ushort(__hadd(h, __ushort_as_half((unsigned short)(i * 40503u))));
    case 30: return __half_as_ushort(__hfma(h, __ushort_as_half((unsigned short)(i * 40503u)), __float2half(0.37f)));
    case 31: return __half_as_ushort(__hdiv(h, __ushort_as_half((unsigned short)(i * 40503u))));
    case 32: return __half_as_ushort(__hmax(h, __ushort_as_half((unsigned short)(i * 40503u))));
    case 33: return __half_as_ushort(__hmin_nan(h, __ushort_as_half((unsigned short)(i * 40503u))));
    case 34: return __bfloat16_as_ushort(__hmul(b, __ushort_as_bfloat16((unsigned short)(i * 40503u))));
    case 35: return __bfloat16_as_ushort(__hadd(b, __ushort_as_bfloat16((unsigned short)(i * 40503u))));
    case 36: return __bfloat16_as_ushort(__hfma(b, __ushort_as_bfloat16((unsigned short)(i * 40503u)), b));
    case 37: return __half_as_ushort(hsqrt(h));
    case 38: return __half_as_ushort(__hadd_sat(h, __ushort_as_half((unsigned short)(i * 40503u))));
    case 39: return __half_as_ushort(__hfma_relu(h, h, __ushort_as_half((unsigned short)(i * 40503u))));
    case 40: return __half_as_ushort(hrint(h));
    case 41: return (unsigned)__heq(h, __ushort_as_half((unsigned short)(i * 40503u))) + 2 * (unsigned)__hltu(h, h);
    case 42: return __float_as_uint(__fsqrt_rn(f));
    case 43: return __float_as_uint(__fdiv_rn(1.0f, f));
    case 44: return __float_as_uint(__fmaf_rn(f, f, -f));
    case 45: return __float_as_uint(fminf(f, __uint_as_float(pattern(i * 7 + 1))));
    case 46: return __float_as_uint(rintf(f));
    case 47: return __float_as_uint(roundf(f));
    case 48: return __float_as_uint(ldexpf(f, (int)(i % 300) - 150));
    case 49: return __float_as_uint(fmodf(f, 1.7f));
    case 50: return __float_as_uint(nextafterf(f, 1.0f));
    case 51: return (unsigned)ilogbf(f);
    default: return __float_as_uint(__fsqrt_rz(f));
    }
}
static const char *const conversions[] = {"__float2half", "__float2half_rz", "__float2half_ru", "__float2half_rd",
    "__double2half", "__half2float", "__float2bfloat16", "__float2bfloat16_rz", "__double2bfloat16", "__bfloat162float",
    "float to E4M3, saturated", "float to E5M2, saturated", "float to E4M3", "float to E5M2", "E4M3 to half",
    "E5M2 to half", "__float2int_rn", "__float2int_rz", "__float2uint_rn", "__float2ll_rn", "__float2ull_rz",
    "__double2int_rn", "__half2int_rn", "__half2int_rz", "__half2uint_rn", "__int2half_rn", "__double2float_rn",
    "__double2float_rz", "__hmul", "__hadd", "__hfma", "__hdiv", "__hmax", "__hmin_nan", "__hmul, bfloat16",
    "__hadd, bfloat16", "__hfma, bfloat16", "hsqrt", "__hadd_sat", "__hfma_relu", "hrint", "comparisons of half",
    "__fsqrt_rn", "__fdiv_rn", "__fmaf_rn", "fminf", "rintf", "roundf", "ldexpf", "fmodf", "nextafterf", "ilogbf",
    "__fsqrt_rz"};
static __device__ bool result_is_nan(int what, unsigned r) { /* which NaN it is, is a question of its own */
    const bool single = what == 5 || what == 9 || what == 26 || what == 27 || what == 44 || (what >= 42 && what != 51);
    if (single) return (r & 0x7fffffffu) > 0x7f800000u;
    const bool bfloat = (what >= 6 && what <= 8) || (what >= 34 && what <= 36);
    const bool half = what <= 4 || (what >= 28 && what <= 40) || what == 14 || what == 15;
    return bfloat ? (r & 0x7fffu) > 0x7f80u : half && (r & 0x7fffu) > 0x7c00u;
}
static __global__ void k_conversion(int what, unsigned *out, unsigned *nan) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, r = conversion(what, i);
    out[i] = result_is_nan(what, r) ? 0x7fffffffu : r;
    if (result_is_nan(what, r)) atomicCAS(nan, 0u, r);
}
static void exact() {
    unsigned *out = device_array<unsigned>(kMany), *nan = device_array<unsigned>(1);
    for (int what = 0; what < int(sizeof conversions / sizeof *conversions); what++) {
        char name[80];
        CU(cudaMemset(nan, 0, 4));
        CU(launch(nullptr, kMany / 64, 64, 0, k_conversion, what, out, nan));
        std::vector<unsigned> h = download(out, kMany);
        snprintf(name, sizeof name, "exact %s", conversions[what]);
        say(name, "%016llx", hash_of(h.data(), h.size() * 4));
        snprintf(name, sizeof name, "a NaN of %s", conversions[what]);
        say(name, "%08x", download(nan, 1)[0]);
    }
    CU(cudaFree(out));
    CU(cudaFree(nan));
}

/* Single answers. */
static __global__ void k_corners(const float *x, const int *n, unsigned *out) {
    int k = 0;
    auto f = [&](float v) { out[k++] = __float_as_uint(v); };
    auto u = [&](unsigned v) { out[k++] = v; };
    f(x[0] * x[1] + x[2]); /* fused or not */
    f(x[3] * 0.5f);        /* a denormal */
    f(x[3] + x[3]);
    f(sqrtf(x[3]));
    f(1.0f / x[3]);
    u((unsigned)(int)x[4]); /* NaN */
    u((unsigned)(int)x[5]); /* Inf */
    u((unsigned)x[6]);      /* -1.5 */
    u((unsigned)(long long)x[5]);
    u((unsigned char)x[7]);         /* 300 */
    u((unsigned short)(short)x[8]); /* 70000 */
    f(fmaxf(x[9], x[10]));          /* -0, +0 */
    f(fminf(x[10], x[9]));
    f(fmaxf(x[4], x[0]));
    f(x[4] * 1.0f);
    f(x[5] - x[5]);
    f(copysignf(x[0], x[4]));
    u(1u << (n[0] & 31));
    u((unsigned)__shfl_sync(1u, 7, 0));
    u((unsigned)abs(n[1])); /* INT_MIN */
    u((unsigned)__clz(0));
    u((unsigned)__ffs(0));
    u(__funnelshift_l(1u, 2u, 33));
    u(__funnelshift_lc(1u, 2u, 33));
    u(__byte_perm(0x80402010u, 0x12345678u, 0xb9a8));
    f(powf(x[11], 0.0f));
    f(powf(-2.0f, 3.0f));
    f(__powf(2.0f, 3.0f));
    f(__fdividef(1.0f, x[12])); /* 2^127: documented as 0 */
    f(__saturatef(x[4]));
    f(rsqrtf(0.0f));
    f(rsqrtf(-1.0f));
}
static const char *const corners[] = {"bits a * b + c", "half of the least denormal", "twice the least denormal",
    "root of the least denormal", "reciprocal of the least denormal", "NaN to int", "Inf to int", "-1.5 to unsigned",
    "Inf to long long, low half", "300 to unsigned char", "70000 to short", "fmaxf(-0, 0)", "fminf(0, -0)",
    "fmaxf(NaN, 1.1)", "NaN times 1", "Inf - Inf", "copysignf(1.1, NaN)", "1 << (33 & 31)", "__shfl_sync of one lane",
    "abs(INT_MIN)", "__clz(0)", "__ffs(0)", "__funnelshift_l by 33", "__funnelshift_lc by 33",
    "__byte_perm that copies signs", "powf(NaN, 0)", "powf(-2, 3)", "bits __powf(2, 3)", "__fdividef(1, 2^127)",
    "__saturatef(NaN)", "rsqrtf(0)", "rsqrtf(-1)"};
static __global__ void k_denormal_atomics(float *global, float *out) {
    AMP_SHARED(float, shared, 1);
    shared[0] = __uint_as_float(1);
    atomicAdd(global, __uint_as_float(1));
    atomicAdd(shared, __uint_as_float(1));
    out[0] = shared[0];
}
static void single_answers() {
    float least = 0;
    unsigned one = 1;
    memcpy(&least, &one, 4);
    float *x = upload(std::vector<float>{
        1.1f, 0.3f, -0.33f, least, NAN, INFINITY, -1.5f, 300, 70000, -0.0f, 0.0f, NAN, ldexpf(1, 127)});
    int *n = upload(std::vector<int>{33, (int)0x80000000u});
    unsigned *out = device_zeros<unsigned>(64);
    CU(launch(nullptr, 1, 1, 0, k_corners, (const float *)x, (const int *)n, out));
    std::vector<unsigned> r = download(out, 64);
    for (size_t i = 0; i < sizeof corners / sizeof *corners; i++)
        say(corners[i], "%08x", r[i]);
    float *global = upload(std::vector<float>{least}), *back = device_zeros<float>(1);
    CU(launch(nullptr, 1, 1, 0, k_denormal_atomics, global, back));
    float g = download(global, 1)[0], s = download(back, 1)[0];
    memcpy(&one, &g, 4);
    say("atomicAdd of denormals, global memory", "%08x", one);
    memcpy(&one, &s, 4);
    say("atomicAdd of denormals, shared memory", "%08x", one);
}

/* ---- functions with an error ----------------------------------------------------------------------------------- */

static __device__ float function(int what, float x) {
    switch (what) {
    case 0: return expf(x);
    case 1: return exp2f(x);
    case 2: return logf(fabsf(x));
    case 3: return log2f(fabsf(x));
    case 4: return sinf(x);
    case 5: return cosf(x);
    case 6: return tanhf(x);
    case 7: return erff(x);
    case 8: return rsqrtf(fabsf(x));
    case 9: return cbrtf(x);
    case 10: return log1pf(fabsf(x));
    case 11: return expm1f(x);
    case 12: return powf(fabsf(x), 1.7f);
    case 13: return atanf(x);
    case 14: return erfcf(x);
    case 15: return tanf(x);
    case 16: return asinhf(x);
    case 17: return normcdff(x);
    case 18: return __expf(x);
    case 19: return __logf(fabsf(x));
    case 20: return __sinf(x);
    case 21: return (float)exp((double)x);
    case 22: return (float)tanh((double)x);
    case 23: return (float)log((double)fabsf(x));
    case 24: return __half2float(hexp(__float2half(x)));
    case 25: return __half2float(hlog(__float2half(fabsf(x))));
    case 26: return __half2float(hrsqrt(__float2half(fabsf(x))));
    case 27: return __half2float(hrcp(__float2half(x)));
    default: return __half2float(hsin(__float2half(x)));
    }
}
static const char *const functions[] = {"expf", "exp2f", "logf", "log2f", "sinf", "cosf", "tanhf", "erff", "rsqrtf",
    "cbrtf", "log1pf", "expm1f", "powf(x, 1.7)", "atanf", "erfcf", "tanf", "asinhf", "normcdff", "__expf", "__logf",
    "__sinf", "exp", "tanh", "log", "hexp", "hlog", "hrsqrt", "hrcp", "hsin"};
static double reference(int what, double x) {
    switch (what) {
    case 0:
    case 18:
    case 21: return exp(x);
    case 1: return exp2(x);
    case 2:
    case 19:
    case 23: return log(fabs(x));
    case 3: return log2(fabs(x));
    case 4:
    case 20: return sin(x);
    case 5: return cos(x);
    case 6:
    case 22: return tanh(x);
    case 7: return erf(x);
    case 8: return 1 / sqrt(fabs(x));
    case 9: return cbrt(x);
    case 10: return log1p(fabs(x));
    case 11: return expm1(x);
    case 12: return pow(fabs(x), (double)1.7f);
    case 13: return atan(x);
    case 14: return erfc(x);
    case 15: return tan(x);
    case 16: return asinh(x);
    case 17: return erfc(-x / sqrt(2.0)) / 2;
    default: return 0; /* of halves: no reference, all must be the same bits */
    }
}
static __global__ void k_function(int what, float *out) {
    int i = int(blockIdx.x * blockDim.x + threadIdx.x);
    out[i] = function(what, float(i - kMany / 2 + 0.37f) * 0.0003f);
}
static void math() {
    float *out = device_array<float>(kMany);
    for (int what = 0; what < int(sizeof functions / sizeof *functions); what++) {
        char name[80];
        double worst = 0;
        CU(launch(nullptr, kMany / 64, 64, 0, k_function, what, out));
        std::vector<float> h = download(out, kMany);
        for (int i = 0; what < 24 && i < kMany; i++) {
            float x = float(i - kMany / 2 + 0.37f) * 0.0003f;
            double r = reference(what, (double)x);
            int e = 0;
            frexp(r, &e);
            double ulps = fabs((double)h[size_t(i)] - r) / ldexp(1, e - 24);
            if (ulps > worst && fabs(r) > 1e-37) worst = ulps;
        }
        snprintf(name, sizeof name, "bits %s", functions[what]);
        say(name, "%016llx, %.2f ulp", hash_of(h.data(), h.size() * 4), worst);
    }
    CU(cudaFree(out));
}

/* ---- warps ----------------------------------------------------------------------------------------------------- */

static __global__ void k_lanes(unsigned *out) {
    const unsigned t = threadIdx.x, all = 0xffffffffu;
    unsigned *o = out + t * 12;
    o[0] = __shfl_sync(all, t, 40); /* behind the warp */
    o[1] = __shfl_down_sync(all, t, 40);
    o[2] = __shfl_up_sync(all, t, 40);
    o[3] = __shfl_xor_sync(all, t, 16, 8); /* beyond the width */
    o[4] = __shfl_sync(all, t, 9, 8);
    o[5] = __match_any_sync(all, __float_as_uint(t % 2 ? -0.0f : 0.0f));
    int same = 7;
    o[6] = __match_all_sync(all, t / 32, &same);
    o[7] = (unsigned)same;
    o[8] = __reduce_min_sync(all, t + 5);
    o[9] = __reduce_xor_sync(all, t);
    o[10] = (unsigned)__reduce_max_sync(all, (int)t - 50);
    o[11] = 0;
}
static __global__ void k_left(int *out) { /* half of the block has returned */
    if (threadIdx.x >= 32) return;
    __syncthreads();
    out[threadIdx.x] = __syncthreads_count(1);
}
static void warps() {
    static const char *const names[] = {"__shfl_sync from lane 40", "__shfl_down_sync by 40", "__shfl_up_sync by 40",
        "__shfl_xor_sync by 16 in 8", "__shfl_sync from 9 in 8", "__match_any_sync of -0 and 0", "__match_all_sync",
        "__match_all_sync, the flag", "__reduce_min_sync", "__reduce_xor_sync", "__reduce_max_sync, negative"};
    unsigned *out = device_zeros<unsigned>(64 * 12);
    CU(launch(nullptr, 1, 64, 0, k_lanes, out));
    std::vector<unsigned> r = download(out, 64 * 12);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        say(names[i], "%x %x %x", r[i], r[13 * 12 + i], r[45 * 12 + i]);
    int *left = device_zeros<int>(32);
    CU(launch(nullptr, 1, 64, 0, k_left, left));
    say("__syncthreads_count after half of the block has returned", "%d", download(left, 32)[3]);
}

/* ---- cuBLAS ---------------------------------------------------------------------------------------------------- */

static void status_is(const char *name, cublasStatus_t s) { say(name, "%s", cublasGetStatusName(s)); }
static void level1(cublasHandle_t h) {
    float *x = upload(std::vector<float>{1, -7, 7, NAN, 3e38f, -3e38f, 1e-30f, 2}), r = -1, one = 2;
    float *y = upload(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8});
    int i = -1;
    status_is("cublasIsamax, n 3: status", cublasIsamax(h, 3, x, 1, &i));
    say("cublasIsamax of 1 -7 7", "%d", i);
    cublasIsamax(h, 4, x, 1, &i);
    say("cublasIsamax with a NaN", "%d", i);
    cublasIsamin(h, 4, x, 1, &i);
    say("cublasIsamin with a NaN", "%d", i);
    status_is("cublasIsamax, n 0: status", cublasIsamax(h, 0, x, 1, &i));
    say("cublasIsamax of none", "%d", i);
    status_is("cublasIsamax, n -1: status", cublasIsamax(h, -1, x, 1, &i));
    i = -1;
    status_is("cublasIsamax, incx 0: status", cublasIsamax(h, 3, x, 0, &i));
    say("cublasIsamax, incx 0", "%d", i);
    cublasSnrm2(h, 2, x + 4, 1, &r);
    say("cublasSnrm2 that would overflow", "%g", (double)r);
    cublasSnrm2(h, 1, x + 6, 1, &r);
    say("cublasSnrm2 that would underflow", "%g", (double)r);
    status_is("cublasSnrm2, n 0: status", cublasSnrm2(h, 0, x, 1, &r));
    say("cublasSnrm2 of none", "%g", (double)r);
    cublasSdot(h, 2, y, 1, y, -1, &r);
    say("cublasSdot, one backwards", "%g", (double)r);
    cublasSasum(h, 3, x, -1, &r);
    say("cublasSasum, backwards", "%g", (double)r);
    r = 77;
    status_is("cublasSdot, n 0: status", cublasSdot(h, 0, y, 1, y, 1, &r));
    say("cublasSdot of none", "%g", (double)r);
    float zero = 0;
    status_is("cublasSscal by 0, of NaN: status", cublasSscal(h, 4, &zero, x, 1));
    say("cublasSscal by 0, of NaN", "%g", (double)download(x, 4)[3]);
    status_is("cublasSscal, incx -1: status", cublasSscal(h, 3, &one, y, -1));
    say("cublasSscal, incx -1", "%g", (double)download(y, 8)[0]);
    status_is("cublasSaxpy, incy 0: status", cublasSaxpy(h, 3, &one, y, 1, y, 0));
    status_is("cublasScopy, NULL", cublasScopy(h, 0, nullptr, 1, nullptr, 1));
    float a = 0, b = 0, c = 7, s = 7;
    cublasSrotg(h, &a, &b, &c, &s);
    say("cublasSrotg(0, 0)", "%g %g %g %g", (double)a, (double)b, (double)c, (double)s);
    a = -3, b = -4;
    cublasSrotg(h, &a, &b, &c, &s);
    say("cublasSrotg(-3, -4)", "%g %g %g %g", (double)a, (double)b, (double)c, (double)s);
}
static void level3(cublasHandle_t h) {
    const float one = 1, zero = 0;
    float *nan = upload(std::vector<float>(64, NAN)), *ones = upload(std::vector<float>(64, 1.0f)),
          *c = upload(std::vector<float>(64, NAN));
    const cublasOperation_t N = CUBLAS_OP_N;
    status_is(
        "cublasSgemm, beta 0, C of NaN: status", cublasSgemm(h, N, N, 8, 8, 8, &one, ones, 8, ones, 8, &zero, c, 8));
    say("cublasSgemm, beta 0, C of NaN", "%g", (double)download(c, 64)[9]);
    cublasSgemm(h, N, N, 8, 8, 8, &zero, nan, 8, ones, 8, &one, c, 8);
    say("cublasSgemm, alpha 0, A of NaN", "%g", (double)download(c, 64)[9]);
    cublasSgemm(h, N, N, 8, 8, 0, &one, nan, 8, nan, 8, &zero, c, 8);
    say("cublasSgemm, k 0, beta 0", "%g", (double)download(c, 64)[9]);
    status_is("cublasSgemm, m 0", cublasSgemm(h, N, N, 0, 8, 8, &one, ones, 8, ones, 8, &zero, c, 8));
    status_is("cublasSgemm, m -1", cublasSgemm(h, N, N, -1, 8, 8, &one, ones, 8, ones, 8, &zero, c, 8));
    status_is("cublasSgemm, lda 7", cublasSgemm(h, N, N, 8, 8, 8, &one, ones, 7, ones, 8, &zero, c, 8));
    status_is("cublasSgemm, ldc 7", cublasSgemm(h, N, N, 8, 8, 8, &one, ones, 8, ones, 8, &zero, c, 7));
    status_is("cublasSgemm, m 0, lda 0", cublasSgemm(h, N, N, 0, 8, 8, &one, ones, 0, ones, 8, &zero, c, 0));
    status_is("cublasSgemm, operation 77",
        cublasSgemm(h, (cublasOperation_t)77, N, 8, 8, 8, &one, ones, 8, ones, 8, &zero, c, 8));
    status_is("cublasSgemm, no handle", cublasSgemm(nullptr, N, N, 8, 8, 8, &one, ones, 8, ones, 8, &zero, c, 8));
    auto ex = [&](cudaDataType a, cudaDataType b, cudaDataType d, cublasComputeType_t t) {
        return cublasGemmEx(h, N, N, 8, 8, 8, &one, ones, a, 8, ones, b, 8, &zero, c, d, 8, t, CUBLAS_GEMM_DEFAULT);
    };
    status_is("cublasGemmEx, half and float", ex(CUDA_R_16F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F));
    status_is("cublasGemmEx, halves into float", ex(CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F));
    status_is("cublasGemmEx, floats into half", ex(CUDA_R_32F, CUDA_R_32F, CUDA_R_16F, CUBLAS_COMPUTE_32F));
    status_is("cublasGemmEx, floats by compute 16F", ex(CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_16F));
    status_is("cublasSetWorkspace, not aligned", cublasSetWorkspace(h, (char *)c + 16, 64));
    status_is("cublasSetMathMode(77)", cublasSetMathMode(h, (cublasMath_t)77));
    status_is("cublasSetPointerMode(77)", cublasSetPointerMode(h, (cublasPointerMode_t)77));
    cublasSetPointerMode(h, CUBLAS_POINTER_MODE_HOST);
    status_is("cublasDestroy(NULL)", cublasDestroy(nullptr));
    status_is("cublasLtDestroy(NULL)", cublasLtDestroy(nullptr));
    status_is("cublasLtMatmulDescDestroy(NULL)", cublasLtMatmulDescDestroy(nullptr));
    status_is("cublasLtMatrixLayoutDestroy(NULL)", cublasLtMatrixLayoutDestroy(nullptr));
    status_is("cublasLtMatmulPreferenceDestroy(NULL)", cublasLtMatmulPreferenceDestroy(nullptr));
    say("cublasGetStatusName(99)", "%s", cublasGetStatusName((cublasStatus_t)99));
}
/* What cublasLtMatmul and its search say of a product of halves, 32 x 32 x 32, that differs in one thing. */
static void matmul_rules(cublasLtHandle_t lt) {
    const float one = 1, zero = 0;
    __half *m = upload(std::vector<__half>(4096, __float2half(1))), *o = device_zeros<__half>(4096);
    cublasLtMatmulDesc_t d;
    cublasLtMatrixLayout_t l, narrow, more;
    cublasLtMatmulPreference_t p;
    cublasLtMatmulHeuristicResult_t r[4];
    int found = 77;
    cublasLtMatmulDescCreate(&d, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    cublasLtMatrixLayoutCreate(&l, CUDA_R_16F, 32, 32, 32);
    cublasLtMatmulPreferenceCreate(&p);
    status_is("layout, ld less than rows", cublasLtMatrixLayoutCreate(&narrow, CUDA_R_16F, 32, 32, 16));
    cublasLtMatrixLayoutCreate(&more, CUDA_R_16F, 48, 32, 48);
    auto ask = [&](const char *name, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t c,
                   cublasLtMatmulPreference_t pref, int wanted) {
        found = 77;
        cublasStatus_t s = cublasLtMatmulAlgoGetHeuristic(lt, desc, a, l, c, l, pref, wanted, r, &found);
        say(name, "%s, found %d", cublasGetStatusName(s), found > 1 && found < 77 ? 1 : found);
    };
    ask("search, plain", d, l, l, p, 1);
    ask("search, none wanted", d, l, l, p, 0);
    ask("search, -1 wanted", d, l, l, p, -1);
    ask("search, no preference", d, l, l, nullptr, 1);
    ask("search, ld less than rows", d, narrow, l, p, 1);
    ask("search, other sizes", d, more, l, p, 1);
    ask("search, plain, again", d, l, l, p, 1);
    auto run = [&](const char *name, const void *alpha, const void *A, const void *C, void *D) {
        status_is(name, cublasLtMatmul(lt, d, alpha, A, l, m, l, &zero, C, l, D, l, nullptr, nullptr, 0, nullptr));
    };
    run("matmul, plain", &one, m, o, o);
    run("matmul, no A", &one, nullptr, o, o);
    run("matmul, no C, beta 0", &one, m, nullptr, o);
    run("matmul, no D", &one, m, o, nullptr);
    run("matmul, A at 2 bytes", &one, m + 1, o, o);
    uint32_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    status_is("attribute of 2 bytes", cublasLtMatmulDescSetAttribute(d, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, 2));
    status_is("attribute of 8 bytes", cublasLtMatmulDescSetAttribute(d, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, 8));
    status_is("attribute 999",
        cublasLtMatmulDescSetAttribute(d, (cublasLtMatmulDescAttributes_t)999, &epilogue, sizeof epilogue));
    status_is("epilogue of bias", cublasLtMatmulDescSetAttribute(d, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, 4));
    ask("search, a bias that is not set", d, l, l, p, 1);
    epilogue = 12345;
    status_is("epilogue 12345", cublasLtMatmulDescSetAttribute(d, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, 4));
    ask("search, epilogue 12345", d, l, l, p, 1);
    cublasLtMatmulDesc_t odd = nullptr;
    status_is("descriptor, compute 77", cublasLtMatmulDescCreate(&odd, (cublasComputeType_t)77, CUDA_R_32F));
    status_is("descriptor, compute 32F, scale half", cublasLtMatmulDescCreate(&odd, CUBLAS_COMPUTE_32F, CUDA_R_16F));
    if (odd) ask("search, compute 32F, scale half", odd, l, l, p, 1);
    error_is("after all of it, the device", cudaDeviceSynchronize());
}
/* What may kill the process or the device: one question of a process. */
static void risky(int question) {
    const float one = 1, zero = 0;
    cublasHandle_t h;
    cublasLtHandle_t lt;
    cublasLtMatmulDesc_t d;
    cublasLtMatrixLayout_t l;
    cublasLtMatmulPreference_t p;
    cublasLtMatmulHeuristicResult_t r;
    uint32_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    int found = 77;
    __half *m = upload(std::vector<__half>(4096, __float2half(1))), *o = device_zeros<__half>(4096);
    char *room = device_array<char>(1 << 20);
    float *ones = upload(std::vector<float>(64, 1.0f));
    const cublasOperation_t N = CUBLAS_OP_N;
    cublasCreate(&h);
    cublasLtCreate(&lt);
    cublasLtMatmulDescCreate(&d, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    cublasLtMatrixLayoutCreate(&l, CUDA_R_16F, 32, 32, 32);
    cublasLtMatmulPreferenceCreate(&p);
    cublasLtMatmulAlgoGetHeuristic(lt, d, l, l, l, l, p, 1, &r, &found);
    auto run = [&](const char *name, void *A, void *w, size_t bytes, const cublasLtMatmulAlgo_t *algo) {
        status_is(name, cublasLtMatmul(lt, d, &one, A, l, m, l, &zero, o, l, o, l, algo, w, bytes, nullptr));
    };
    auto sgemm = [&](const char *name, const float *a, const float *b) {
        status_is(name, cublasSgemm(h, N, N, 8, 8, 8, a, ones, 8, ones, 8, b, ones, 8));
    };
    switch (question) {
    case 0: run("risky: matmul, A at 2 bytes, an algorithm for 256", m + 1, nullptr, 0, &r.algo); break;
    case 1: run("risky: matmul, A at 1 byte", (char *)m + 1, nullptr, 0, nullptr); break;
    case 2: run("risky: matmul, workspace at 16 bytes", m, room + 16, 1 << 16, nullptr); break;
    case 3: run("risky: matmul, workspace NULL of 64 KiB", m, nullptr, 1 << 16, nullptr); break;
    case 4:
        cublasLtMatmulDescSetAttribute(d, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
        run("risky: matmul, a bias that is not set", m, nullptr, 0, nullptr);
        break;
    case 5: sgemm("risky: cublasSgemm, no alpha", nullptr, &zero); break;
    case 6: sgemm("risky: cublasSgemm, no beta", &one, nullptr); break;
    case 7: status_is("risky: cublasSdot, no result", cublasSdot(h, 2, ones, 1, ones, 1, nullptr)); break;
    /* no descriptor, or no place for the count: the library ends by a segmentation fault */
    case 8:
        status_is("risky: search, no A", cublasLtMatmulAlgoGetHeuristic(lt, d, nullptr, l, l, l, p, 1, &r, &found));
        break;
    case 9:
        status_is("risky: search, no C", cublasLtMatmulAlgoGetHeuristic(lt, d, l, l, nullptr, l, p, 1, &r, &found));
        break;
    case 10:
        status_is("risky: search, no handle", cublasLtMatmulAlgoGetHeuristic(nullptr, d, l, l, l, l, p, 1, &r, &found));
        break;
    case 11:
        status_is("risky: matmul, no alpha",
            cublasLtMatmul(lt, d, nullptr, m, l, m, l, &zero, o, l, o, l, nullptr, nullptr, 0, nullptr));
        break;
    default:
        status_is("risky: attribute from NULL",
            cublasLtMatmulDescSetAttribute(d, CUBLASLT_MATMUL_DESC_EPILOGUE, nullptr, sizeof epilogue));
    }
    char then[40];
    snprintf(then, sizeof then, "risky %d: then the device", question);
    error_is(then, cudaDeviceSynchronize());
}
static void blas() {
    cublasHandle_t h;
    cublasLtHandle_t lt;
    cublasCreate(&h);
    cublasLtCreate(&lt);
    level1(h);
    level3(h);
    matmul_rules(lt);
}

/* ---- cuRAND ---------------------------------------------------------------------------------------------------- */

template <class S> static __global__ void k_states(unsigned *out) {
    S s;
    curand_init(1234, threadIdx.x, 5, &s);
    unsigned *o = out + threadIdx.x * 8;
    o[0] = curand(&s);
    o[1] = __float_as_uint(curand_uniform(&s));
    o[2] = __float_as_uint(curand_normal(&s));
    o[3] = __float_as_uint(curand_normal(&s));
    o[4] = curand_poisson(&s, 3.0);
    o[5] = (unsigned)__double2loint(curand_uniform_double(&s));
    o[6] = curand(&s);
    o[7] = 0;
}
template <class S> static void device_numbers(const char *name) {
    static const char *const kinds[] = {"exact", "exact", "bits", "bits", "exact", "exact", "exact"};
    static const char *const what[] = {
        "integer", "uniform", "normal", "second normal", "poisson", "double", "integer after"};
    unsigned *out = device_zeros<unsigned>(32 * 8);
    CU(launch(nullptr, 1, 32, 0, k_states<S>, out));
    std::vector<unsigned> r = download(out, 32 * 8);
    for (size_t i = 0; i < 7; i++) {
        char text[100];
        snprintf(text, sizeof text, "%s curand %s, %s", kinds[i], name, what[i]);
        say(text, "%08x %08x", r[i], r[31 * 8 + i]);
    }
}
static void host_numbers(curandRngType_t type, const char *name) {
    curandGenerator_t g;
    char text[100];
    unsigned *out = device_zeros<unsigned>(10000);
    int e = curandCreateGenerator(&g, type);
    snprintf(text, sizeof text, "generator %s", name);
    say(text, "%d", e);
    if (e) return;
    curandSetPseudoRandomGeneratorSeed(g, 1234);
    e = curandGenerate(g, out, 10000);
    std::vector<unsigned> r = download(out, 10000);
    snprintf(text, sizeof text, "exact generator %s, integers", name);
    say(text, "%d %08x %08x %016llx", e, r[0], r[9999], hash_of(r.data(), 40000));
    e = curandGenerateUniform(g, (float *)out, 1000);
    r = download(out, 10000);
    snprintf(text, sizeof text, "exact generator %s, uniform", name);
    say(text, "%d %08x %08x", e, r[0], r[999]);
    e = curandGenerateNormal(g, (float *)out, 1000, 0.0f, 1.0f);
    r = download(out, 10000);
    snprintf(text, sizeof text, "bits generator %s, normal", name);
    say(text, "%d %08x %08x", e, r[0], r[999]);
    snprintf(text, sizeof text, "generator %s, 3 normal numbers", name);
    say(text, "%d", (int)curandGenerateNormal(g, (float *)out, 3, 0.0f, 1.0f));
    snprintf(text, sizeof text, "generator %s, no numbers", name);
    say(text, "%d", (int)curandGenerate(g, out, 0));
    snprintf(text, sizeof text, "generator %s, poisson", name);
    say(text, "%d", (int)curandGeneratePoisson(g, out, 100, 3.0));
    snprintf(text, sizeof text, "generator %s, long long", name);
    say(text, "%d", (int)curandGenerateLongLong(g, (unsigned long long *)out, 100));
    curandSetGeneratorOffset(g, 3);
    curandGenerate(g, out, 100);
    snprintf(text, sizeof text, "exact generator %s, offset 3", name);
    say(text, "%08x", download(out, 1)[0]);
    unsigned *far = device_zeros<unsigned>(400001); /* beyond all subsequences: how many are there? */
    curandSetGeneratorOffset(g, 0);
    e = curandGenerate(g, far, 400001);
    snprintf(text, sizeof text, "exact generator %s, number 400000", name);
    say(text, "%d %08x", e, download(far, 400001)[400000]);
    curandDestroyGenerator(g);
    CU(cudaFree(far));
    CU(cudaFree(out));
}
static void curand_numbers() {
    device_numbers<curandStateXORWOW_t>("XORWOW");
    device_numbers<curandStatePhilox4_32_10_t>("Philox");
    device_numbers<curandStateMRG32k3a_t>("MRG32k3a");
    host_numbers(CURAND_RNG_PSEUDO_DEFAULT, "default");
    host_numbers(CURAND_RNG_PSEUDO_XORWOW, "XORWOW");
    host_numbers(CURAND_RNG_PSEUDO_PHILOX4_32_10, "Philox");
    host_numbers(CURAND_RNG_PSEUDO_MRG32K3A, "MRG32k3a");
    host_numbers((curandRngType_t)77, "77");
}
int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "all";
    bool all = !strcmp(what, "all");
    int n = 0;
    if (cudaGetDeviceCount(&n) != cudaSuccess || n == 0) {
        printf("beliefs_numbers: skipped, no GPU\n");
        return 77;
    }
    if (all || !strcmp(what, "exact")) {
        exact();
        single_answers();
    }
    if (all || !strcmp(what, "math")) math();
    if (all || !strcmp(what, "warp")) warps();
    if (all || !strcmp(what, "blas")) blas();
    if (argc > 2 && !strcmp(what, "risky")) risky(atoi(argv[2]));
    if (all || !strcmp(what, "curand")) curand_numbers();
    return g_failed != 0;
}
