/* ptx_cases.cu - kernels for the test of ptx_check.sh: ptx_good.txt must accept the good_* ones, and each bad_* one
 * must be refused (ptx_bad.txt). */
#if !defined(BAD)
extern "C" __global__ void good_vector(const float4 *in, float4 *out) {
    float4 v = in[threadIdx.x];
    v.x = __fadd_rn(__fmul_rn(v.x, 2.0f), v.y);
    out[threadIdx.x] = v;
}
extern "C" __global__ void good_fused(const double *x, double *y) { y[threadIdx.x] = __fma_rn(x[0], x[1], x[2]); }
extern "C" __global__ void good_past(const double *x, double *y) { y[threadIdx.x] = __ldcg(&x[threadIdx.x]); }
#else
struct alignas(8) Two { unsigned a, b; };
extern "C" __global__ void bad_width(const float *in, float *out) { out[threadIdx.x] = in[threadIdx.x]; }
extern "C" __global__ void bad_contraction(const float *x, float *y) { *y = x[0] * x[1] + x[2]; }
extern "C" __global__ void bad_loose(const float *x, float *y) { *y = x[0] + x[1]; }
extern "C" __global__ void bad_approx(const float *x, float *y) { *y = __expf(x[0]); }
extern "C" __global__ void bad_local(const int *x, int *y) {
    int table[16];
    for (int i = 0; i < 16; i++)
        table[x[i] & 15] = x[i + 16];
    *y = table[x[40] & 15] + table[x[41] & 15];
}
extern "C" __global__ void bad_registers(const float4 *x, float4 *y) { y[threadIdx.x] = x[threadIdx.x]; }
extern "C" __global__ void bad_past(const double *x, double *y) { y[threadIdx.x] = x[threadIdx.x]; }
extern "C" __global__ void bad_unlisted(int *y) { *y = 1; }
#endif
