/* test_lang.cpp - contract tests of the device language and of the runtime API.
 *
 * What is outside #ifdef AMP_HOSTCUDA states what CUDA does and runs on a real GPU as well: run it there first and
 * correct the host runtime where the two differ. */
#include <cooperative_groups.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <thread>
#include "selftest.h"
namespace cg = cooperative_groups;

/* ==== device language ============================================================================================= */

template <int N> static __global__ void k_static(int *out) {
    AMP_SHARED(int, ints, N);
    AMP_SHARED(double, doubles, 3);
    ints[threadIdx.x] = int(threadIdx.x) + int(blockIdx.x) * 1000;
    if (threadIdx.x < 3) doubles[threadIdx.x] = 1;
    __syncthreads();
    out[blockIdx.x * N + threadIdx.x] = ints[N - 1 - threadIdx.x] + int(doubles[threadIdx.x % 3]);
}
static __global__ void k_reverse(const int *in, int *out, int n) {
    AMP_DYN_SHARED(int, buffer);
    int t = int(threadIdx.x);
    if (t < n) buffer[t] = in[t];
    __syncthreads();
    if (t < n) out[t] = buffer[n - 1 - t];
}
static void test_shared() {
    const int blocks = 4, n = 48;
    int *out = device_array<int>(blocks * n);
    CU(launch(nullptr, blocks, n, 0, k_static<n>, out));
    std::vector<int> r = download(out, blocks * n);
    bool ok = true;
    for (int b = 0; b < blocks; b++)
        for (int t = 0; t < n; t++)
            ok = ok && r[size_t(b * n + t)] == n - 1 - t + b * 1000 + 1;
    CHECK(ok);
    CU(cudaFree(out));

    const int m = AMP_BLOCK * 3 / 4;
    std::vector<int> h;
    for (int i = 0; i < m; i++)
        h.push_back(i * i);
    int *in = upload(h), *back = device_array<int>(size_t(m));
    CU(launch(nullptr, 1, AMP_BLOCK, size_t(m) * sizeof(int), k_reverse, (const int *)in, back, m));
    r = download(back, size_t(m));
    ok = true;
    for (int i = 0; i < m; i++)
        ok = ok && r[size_t(i)] == h[size_t(m - 1 - i)];
    CHECK(ok);
    CU(cudaFree(in));
    CU(cudaFree(back));
}

static __global__ void k_grid_sync(int *a, int *b) {
    cg::grid_group grid = cg::this_grid();
    AMP_SHARED(int, s, 1);
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
    if (threadIdx.x == 0) s[0] = int(blockIdx.x);
    a[i] = int(i) * 3;
    grid.sync();
    b[i] = a[(i + 77) % n] + s[0];
    grid.sync();
    a[i] = b[(i + 5) % n];
}
static void test_grid_sync() {
    const int blocks = 6, n = blocks * 64;
    int *a = device_array<int>(n), *b = device_array<int>(n);
    cudaLaunchAttribute attribute[1];
    cudaLaunchConfig_t c = {};
    attribute[0].id = cudaLaunchAttributeCooperative;
    attribute[0].val.cooperative = 1;
    c.gridDim = dim3(blocks);
    c.blockDim = dim3(64);
    c.attrs = attribute;
    c.numAttrs = 1;
    CU(cudaLaunchKernelEx(&c, k_grid_sync, a, b));
    std::vector<int> r = download(b, n);
    bool ok = true;
    for (int i = 0; i < n; i++)
        ok = ok && r[size_t(i)] == (i + 77) % n * 3 + i / 64;
    CHECK(ok);
    CU(cudaFree(a));
    CU(cudaFree(b));
}

/* Programmatic dependent launch: the second kernel may begin early on a GPU, and waits for what the first writes. */
static __global__ void k_first(int *a) {
    cudaTriggerProgrammaticLaunchCompletion();
    a[threadIdx.x] = int(threadIdx.x) + 1;
}
static __global__ void k_second(const int *a, int *b) {
    cudaGridDependencySynchronize();
    b[threadIdx.x] = 2 * a[63u - threadIdx.x];
}
static void test_dependent_launch() {
    int *a = device_array<int>(64), *b = device_array<int>(64);
    cudaLaunchAttribute attribute[1];
    cudaLaunchConfig_t c = {};
    c.gridDim = dim3(1);
    c.blockDim = dim3(64);
    CU(cudaLaunchKernelEx(&c, k_first, a));
    attribute[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute[0].val.programmaticStreamSerializationAllowed = 1;
    c.attrs = attribute;
    c.numAttrs = 1;
    CU(cudaLaunchKernelEx(&c, k_second, a, b));
    std::vector<int> r = download(b, 64);
    CHECK(r[0] == 128 && r[63] == 2);
    CU(cudaFree(a));
    CU(cudaFree(b));
}

/* The last block to finish reduces: a fence on both sides of the atomic. */
static __global__ void k_last_block(const float *x, float *partial, unsigned *count, float *out, int n) {
    AMP_SHARED(int, last, 1);
    float s = 0;
    for (int i = int(blockIdx.x * blockDim.x + threadIdx.x); i < n; i += int(gridDim.x * blockDim.x))
        s += x[i];
    for (unsigned o = 16; o; o >>= 1)
        s += __shfl_down_sync(0xffffffffu, s, o);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = s;
        __threadfence();
        last[0] = atomicInc(count, gridDim.x - 1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (last[0] && threadIdx.x == 0) {
        float t = 0;
        for (unsigned i = 0; i < gridDim.x; i++)
            t += partial[i];
        *out = t;
    }
}
static void test_last_block() {
    float *x = upload(std::vector<float>(1000, 1.0f)), *partial = device_array<float>(8), *out = device_array<float>(1);
    unsigned *count = device_zeros<unsigned>(1);
    for (int i = 0; i < 2; i++) {
        CU(launch(nullptr, 8, 32, 0, k_last_block, (const float *)x, partial, count, out, 1000));
        CHECK(download(out, 1)[0] == 1000.0f);
    }
    for (void *p : {(void *)x, (void *)partial, (void *)out, (void *)count})
        CU(cudaFree(p));
}

static __global__ void k_warp(unsigned long long *out) {
    const unsigned t = threadIdx.x, l = t % 32, all = 0xffffffffu;
    unsigned long long r = 0;
    int bit = 0;
    auto expect = [&](bool ok) { r |= (unsigned long long)ok << bit++; };
    unsigned first = t < 32 ? 0 : 32, ballot = 0;
    for (unsigned i = 0; i < 32; i++)
        ballot |= unsigned((first + i) % 3 == 0) << i;
    expect(__ballot_sync(all, t % 3 == 0) == ballot);
    expect(__any_sync(all, t == 40) == (t >= 32));
    expect(__all_sync(all, t != 40) == (t < 32));
    expect(__shfl_up_sync(all, int(t), 1) == int(l ? t - 1 : t));
    expect(__shfl_up_sync(all, int(t), 3, 8) == int(l % 8 >= 3 ? t - 3 : t));
    expect(__shfl_down_sync(all, int(t), 3, 8) == int(l % 8 < 5 ? t + 3 : t));
    expect(__shfl_sync(all, int(t) * 2, 5, 8) == int((t / 8 * 8 + 5) * 2));
    expect(__shfl_xor_sync(all, t, 9) == (t ^ 9));
    expect(__shfl_xor_sync(all, 0.1 * double(t), 16) == 0.1 * double(t ^ 16));
    expect(__shfl_sync(all, 0x100000000ull + t, 7) == 0x100000000ull + first + 7);
    expect(__shfl_down_sync(all, 1.5f * float(l), 2u) == 1.5f * float(l < 30 ? l + 2 : l));
    if (l < 16)
        expect(__shfl_xor_sync(0x0000ffffu, int(t), 1) == int(t ^ 1)); /* half warps on their own */
    else {
        __syncwarp(0xffff0000u);
        expect(true);
    }
    unsigned same = 0;
    for (unsigned i = 0; i < 32; i++)
        same |= unsigned((first + i) % 5 == t % 5) << i;
    expect(__popc(__activemask()) == 32);
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 700
    expect(__match_any_sync(all, t % 5) == same);
#endif
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    expect(__reduce_add_sync(all, l) == 496 && __reduce_max_sync(all, -int(l)) == 0 &&
        __reduce_or_sync(all, 1u << l) == all);
#else
    expect(true);
#endif
    out[t] = r;
}
static __global__ void k_votes(int *out) {
    int t = int(threadIdx.x), n = int(blockDim.x);
    int count = __syncthreads_count(t % 2 == 0), any = __syncthreads_or(t == n - 1), all = __syncthreads_and(t != 3);
    out[t] = count == (n + 1) / 2 && any != 0 && all == 0;
}
static void test_warp() {
    unsigned long long *out = device_array<unsigned long long>(64);
    CU(launch(nullptr, 1, 64, 0, k_warp, out));
    std::vector<unsigned long long> r = download(out, 64);
    bool ok = true;
    for (auto v : r)
        ok = ok && v == (1ull << 15) - 1;
    if (!ok) printf("  lanes 0 and 33: 0x%llx 0x%llx\n", r[0], r[33]);
    CHECK(ok);
    int *v = device_array<int>(AMP_BLOCK);
    CU(launch(nullptr, 1, AMP_BLOCK - 7, 0, k_votes, v));
    ok = true;
    for (int x : download(v, AMP_BLOCK - 7))
        ok = ok && x == 1;
    CHECK(ok);
    CU(cudaFree(out));
    CU(cudaFree(v));
}

static __global__ void k_atomics(int *i, float *f, double *d, unsigned *u, unsigned long long *l) {
    unsigned t = threadIdx.x;
    atomicAdd(i, 1);
    atomicSub(i + 1, 2);
    atomicMin(i + 2, -int(t));
    atomicAdd(f, 0.5f);
    atomicAdd(d, 0.25);
    atomicMax(u, t);
    atomicOr(u + 1, 1u << (t % 32));
    atomicCAS(u + 2, 0u, t + 1);
    atomicExch(u + 3, 9u);
    atomicXor(u + 4, 1u << (t % 32));
    atomicDec(u + 5, 1000u);
    atomicDec(u + 7, 10u);
    atomicInc(u + 8, 10u);
    atomicAnd(u + 6, ~(1u << (t % 32)));
    atomicAdd(l, 1ull << 32);
    atomicMax(l + 1, 0x100000000ull + t);
    atomicCAS(l + 2, 0ull, 0x500000000ull);
}
static void test_atomics() {
    int *i = device_zeros<int>(3);
    float *f = device_zeros<float>(1);
    double *d = device_zeros<double>(1);
    unsigned *u = upload(std::vector<unsigned>{0, 0, 0, 0, 0, 500, ~0u, 2000, 0});
    unsigned long long *l = device_zeros<unsigned long long>(3);
    CU(launch(nullptr, 3, 64, 0, k_atomics, i, f, d, u, l));
    std::vector<int> hi = download(i, 3);
    std::vector<unsigned> hu = download(u, 9);
    std::vector<unsigned long long> hl = download(l, 3);
    CHECK(hi[0] == 192 && hi[1] == -384 && hi[2] == -63);
    CHECK(download(f, 1)[0] == 96.0f && download(d, 1)[0] == 48.0);
    CHECK(hu[0] == 63 && hu[1] == ~0u && hu[2] >= 1 && hu[2] <= 64 && hu[3] == 9 && hu[4] == 0 && hu[5] == 500 - 192 &&
        hu[6] == 0);
    CHECK(hu[7] == 10 - (192 - 1) % 11 && hu[8] == 192 % 11); /* wrap around at the limit */
    CHECK(hl[0] == 192ull << 32 && hl[1] == 0x10000003full && hl[2] == 0x500000000ull);
    for (void *p : {(void *)i, (void *)f, (void *)d, (void *)u, (void *)l})
        CU(cudaFree(p));
}

static __global__ void k_half(const __half2 *a, __half2 *o, __half *h) {
    o[threadIdx.x] = __hadd2(a[threadIdx.x], __hmul2(a[threadIdx.x], __float2half2_rn(2.0f)));
    h[threadIdx.x] = __hmax(__low2half(a[threadIdx.x]), __float2half(0.5f));
}
static void test_half() {
    __half2 *a = upload(std::vector<__half2>(32, __float2half2_rn(0.25f))), *o = device_array<__half2>(32);
    __half *h = device_array<__half>(32);
    CU(launch(nullptr, 1, 32, 0, k_half, (const __half2 *)a, o, h));
    CHECK(__low2float(download(o, 32)[3]) == 0.75f && __half2float(download(h, 32)[3]) == 0.5f);
    for (void *p : {(void *)a, (void *)o, (void *)h})
        CU(cudaFree(p));
}

/* One result of each intrinsic, as bits. */
enum { kIntrinsics = 54 };
static __global__ void k_intrinsics(
    const float *f, const double *d, const unsigned long long *u, unsigned long long *out) {
    float a = f[0], b = f[1], c = f[2];
    double x = d[0], y = d[1], z = d[2];
    unsigned long long p = u[0], q = u[1];
    unsigned i = unsigned(p), j = unsigned(q);
    int n = 0;
    auto f32 = [&](float v) { out[n++] = __float_as_uint(v); };
    auto f64 = [&](double v) { out[n++] = (unsigned long long)__double_as_longlong(v); };
    auto u64 = [&](unsigned long long v) { out[n++] = v; };
    f32(__fadd_rn(a, b));
    f32(__fsub_rn(a, b));
    f32(__fmul_rn(a, b));
    f32(__fdiv_rn(a, b));
    f32(__fsqrt_rn(a));
    f32(__frcp_rn(a));
    f32(__fmaf_rn(a, b, c));
    f64(__dadd_rn(x, y));
    f64(__dsub_rn(x, y));
    f64(__dmul_rn(x, y));
    f64(__ddiv_rn(x, y));
    f64(__dsqrt_rn(x));
    f64(__fma_rn(x, y, z));
    f32(__double2float_rn(x));
    f64(__longlong_as_double((long long)p));
    u64((unsigned)__double2hiint(x));
    u64((unsigned)__double2loint(x));
    f64(__hiloint2double(int(i), int(j)));
    u64(__umulhi(i, j));
    u64(__umul64hi(p, q));
    u64((unsigned)__mulhi(int(i), int(j)));
    u64((unsigned long long)__mul64hi((long long)p, (long long)q));
    u64((unsigned)__clzll((long long)(p >> 20)));
    u64((unsigned)__clzll(0));
    u64((unsigned)__clz(int(i >> 3)));
    u64((unsigned)__popc(i));
    u64((unsigned)__popcll(p));
    u64((unsigned)__ffs(int(i & ~15u)));
    u64((unsigned)__ffsll((long long)(p << 40)));
    u64(__brev(i));
    u64(__brevll(p));
    u64(__byte_perm(i, j, 0x5140));
    u64(__funnelshift_l(i, j, 9));
    u64(__funnelshift_r(i, j, 9));
    u64((unsigned)__float2int_rn(a * 2.5f));
    u64((unsigned)__float2int_rz(-a * 2.5f));
    u64((unsigned)__float2int_rn(c * 1e30f));
    u64(__float2uint_rn(-a));
    u64((unsigned long long)__float2ll_rn(a * 1e12f));
    u64((unsigned long long)__double2ll_rn(-x * 1e12));
    u64(__double2ull_rz(x * 1e19));
    u64((unsigned)__double2int_rn(x * 1e19));
    f32(__int2float_rn(int(i)));
    f32(__uint2float_rn(i));
    f32(__ull2float_rn(p));
    f32(__ll2float_rn((long long)p));
    f64(__ull2double_rn(p));
    f64(__ll2double_rn((long long)p));
    f64(__uint2double_rn(j));
    f32(fminf(a, NAN));
    f32(fmaxf(-0.0f, 0.0f));
    f64(fmin(x, y));
    f32(__saturatef(b));
    u64((unsigned long long)max(int(i), int(j)) & 0xffffffffu);
}
static uint64_t bits(float v) {
    uint32_t u;
    memcpy(&u, &v, 4);
    return u;
}
static uint64_t bits(double v) {
    uint64_t u;
    memcpy(&u, &v, 8);
    return u;
}
static void test_intrinsics() {
    /* the references are computed here, by other means where there are any: double for float, 128-bit integers */
    volatile float va = 1.1f, vb = 0.3f, vc = -0.33f; /* a * b + c cancels: one rounding or two shows */
    volatile double vx = 1.1, vy = 0.3, vz = -0.33;
    const float a = va, b = vb, c = vc;
    const double x = vx, y = vy, z = vz;
    const unsigned long long p = 0xfedcba9876543210ull, q = 0x0123456789abcdefull;
    const unsigned i = unsigned(p), j = unsigned(q);
    __extension__ typedef unsigned __int128 u128;
    __extension__ typedef __int128 i128;
    double dp, dij;
    uint64_t ij = uint64_t(i) << 32 | j;
    memcpy(&dp, &p, 8);
    memcpy(&dij, &ij, 8);
    auto brev = [](uint64_t v, int w) {
        uint64_t r = 0;
        for (int k = 0; k < w; k++)
            r |= (v >> k & 1) << (w - 1 - k);
        return r;
    };
    const uint64_t expected[kIntrinsics] = {bits(float(double(a) + double(b))), bits(float(double(a) - double(b))),
        bits(float(double(a) * double(b))), bits(float(double(a) / double(b))), bits(float(sqrt(double(a)))),
        bits(float(1.0 / double(a))), bits(float(double(a) * double(b) + double(c))), bits(x + y), bits(x - y),
        bits(x * y), bits(x / y), bits(sqrt(x)), bits(fma(x, y, z)), bits(float(x)), bits(dp), bits(x) >> 32,
        bits(x) & 0xffffffffu, bits(dij), uint64_t(i) * j >> 32, uint64_t(u128(p) * q >> 64),
        uint32_t(int64_t(int(i)) * int(j) >> 32), uint64_t(i128((long long)p) * (long long)q >> 64), 20, 64, 4, 12, 32,
        5, 45, brev(i, 32), brev(p, 64),
        /* __byte_perm(76543210, 89abcdef, 5140): bytes 0, 4, 1, 5 */ 0xcd32ef10u, uint32_t(j << 9 | i >> 23),
        uint32_t(i >> 9 | j << 23), 3, uint32_t(-2), 0x80000000u, 0, uint64_t(int64_t(double(float(a * 1e12f)))),
        uint64_t(int64_t(nearbyint(-x * 1e12))), uint64_t(x * 1e19), 0x7fffffffu, bits(float(int(i))), bits(float(i)),
        bits(float(p)), bits(float((long long)p)), bits(double(p)), bits(double((long long)p)), bits(double(j)),
        bits(a), bits(0.0f), bits(y), bits(b), uint64_t(i > 0x7fffffffu || int(i) < int(j) ? int(j) : int(i))};
    float *df = upload(std::vector<float>{a, b, c});
    double *dd = upload(std::vector<double>{x, y, z});
    unsigned long long *du = upload(std::vector<unsigned long long>{p, q}),
                       *out = device_array<unsigned long long>(kIntrinsics);
    CU(launch(
        nullptr, 1, 1, 0, k_intrinsics, (const float *)df, (const double *)dd, (const unsigned long long *)du, out));
    std::vector<unsigned long long> r = download(out, kIntrinsics);
    for (size_t k = 0; k < kIntrinsics; k++) {
        bool ok = r[k] == expected[k] || (k == 50 && r[k] == 0x80000000u); /* the sign of max(-0, +0) is free */
        if (!ok) printf("  intrinsic %zu: %llx, expected %llx\n", k, r[k], (unsigned long long)expected[k]);
        CHECK(ok);
    }
    for (void *m : {(void *)df, (void *)dd, (void *)du, (void *)out})
        CU(cudaFree(m));
}

static __global__ void k_vectors(
    const float4 *__restrict__ f, const uint2 *__restrict__ u, float4 *__restrict__ fo, uint4 *__restrict__ uo, int n) {
    for (int i = int(blockIdx.x * blockDim.x + threadIdx.x); i < n; i += int(gridDim.x * blockDim.x)) {
        float4 v = __ldcs(f + i);
        uint2 w = __ldg(u + i);
        v.x += 1.0f;
        __stcs(fo + i, v);
        uo[i] = make_uint4(w.x, w.y, w.x ^ w.y, unsigned(i));
    }
}
static void test_vectors() {
    const int n = 1000;
    std::vector<float4> f;
    std::vector<uint2> u;
    for (int i = 0; i < n; i++) {
        f.push_back(make_float4(float(i), float(-i), 0.5f, 2.0f));
        u.push_back(make_uint2(unsigned(i) * 7u, unsigned(i) * 13u));
    }
    float4 *df = upload(f), *fo = device_array<float4>(n);
    uint2 *du = upload(u);
    uint4 *uo = device_array<uint4>(n);
    CU(launch(nullptr, 2, AMP_BLOCK, 0, k_vectors, (const float4 *)df, (const uint2 *)du, fo, uo, n));
    std::vector<float4> rf = download(fo, n);
    std::vector<uint4> ru = download(uo, n);
    bool ok = true;
    for (int i = 0; i < n; i++) {
        size_t k = size_t(i);
        ok = ok && rf[k].x == float(i) + 1 && rf[k].y == float(-i) && rf[k].z == 0.5f && rf[k].w == 2.0f;
        ok = ok && ru[k].x == u[k].x && ru[k].y == u[k].y && ru[k].z == (u[k].x ^ u[k].y) && ru[k].w == unsigned(i);
    }
    CHECK(ok);
    for (void *m : {(void *)df, (void *)fo, (void *)du, (void *)uo})
        CU(cudaFree(m));
}

/* Integer code of the kind that formats are made of: switches, 64-bit shifts, carries, byte stores. */
static __global__ void k_integers(const unsigned long long *in, unsigned char *bytes, unsigned long long *out, int n) {
    int i = int(threadIdx.x);
    if (i >= n) return;
    unsigned long long v = in[i], r;
    switch (v % 7) {
    case 0: r = v >> 3; break;
    case 1: r = v << 5 | v >> 59; break;
    case 2: r = (unsigned long long)((long long)v >> 7); break;
    case 3: r = v * 0x9e3779b97f4a7c15ull + 1; break;
    case 4: r = v / 1000003u; break;
    case 5: r = (unsigned long long)((long long)v % -977); break;
    default: r = v ^ v >> 31;
    }
    bytes[i] = (unsigned char)(r >> 13);
    out[i] = r;
}
static void test_integers() {
    const int n = AMP_BLOCK;
    std::vector<unsigned long long> h;
    unsigned long long v = 88172645463325252ull;
    for (int i = 0; i < n; i++) {
        v ^= v << 13;
        v ^= v >> 7;
        v ^= v << 17;
        h.push_back(v);
    }
    unsigned long long *in = upload(h), *out = device_array<unsigned long long>(n);
    unsigned char *bytes = device_array<unsigned char>(n);
    CU(launch(nullptr, 1, AMP_BLOCK, 0, k_integers, (const unsigned long long *)in, bytes, out, n));
    std::vector<unsigned long long> r = download(out, n);
    std::vector<unsigned char> rb = download(bytes, n);
    bool ok = true;
    for (size_t i = 0; i < size_t(n); i++) {
        unsigned long long w = h[i], e;
        switch (w % 7) {
        case 0: e = w >> 3; break;
        case 1: e = w << 5 | w >> 59; break;
        case 2: e = (unsigned long long)((long long)w >> 7); break;
        case 3: e = w * 0x9e3779b97f4a7c15ull + 1; break;
        case 4: e = w / 1000003u; break;
        case 5: e = (unsigned long long)((long long)w % -977); break;
        default: e = w ^ w >> 31;
        }
        ok = ok && r[i] == e && rb[i] == (unsigned char)(e >> 13);
    }
    CHECK(ok);
    for (void *m : {(void *)in, (void *)out, (void *)bytes})
        CU(cudaFree(m));
}

/* ==== runtime API ================================================================================================= */

static __global__ void k_add(int *p, int v) { p[threadIdx.x] += v; }
static __global__ void k_digit(int *p, int v) {
    p[threadIdx.x] = p[threadIdx.x] * 10 + v;
} /* shows the order of launches */
static __global__ void k_add_from(int *p, const int *v) { p[threadIdx.x] += *v; }
struct Pair {
    int *p;
    int value;
};
static __global__ void k_add_pair(Pair a) { a.p[threadIdx.x] += a.value; }
struct Numbers {
    unsigned low, high;
    int *p;
};
static __global__ void k_numbers(Numbers a) { a.p[threadIdx.x] = int(a.low + a.high); }

static void test_streams() {
    cudaStream_t a, b;
    cudaEvent_t e, f;
    unsigned flags = 9;
    int *p = device_zeros<int>(32);
    CU(cudaStreamCreate(&a));
    CU(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CU(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
    CU(cudaEventCreate(&f));
    CU(cudaStreamGetFlags(b, &flags));
    CHECK(flags == cudaStreamNonBlocking);
    CHECK(cudaStreamCreateWithFlags(&a, 77) == cudaErrorInvalidValue && cudaGetLastError() == cudaErrorInvalidValue);
    CU(launch(a, 1, 32, 0, k_digit, p, 1)); /* the legacy stream is ordered with a, an event orders b */
    CU(launch(nullptr, 1, 32, 0, k_digit, p, 2));
    CU(launch(a, 1, 32, 0, k_digit, p, 3));
    CU(cudaEventRecord(e, a));
    CU(cudaStreamWaitEvent(b, e, 0));
    CU(launch(b, 1, 32, 0, k_digit, p, 4));
    CU(launch(b, 1, 32, 0, k_add_pair, Pair{p, 1000}));
    CU(cudaEventRecord(f, b));
    CU(cudaEventSynchronize(f));
    CU(cudaStreamSynchronize(b));
    CHECK(download(p, 32)[7] == 2234);
    CU(launch(a, 1, 32, 0, k_digit, p, 5)); /* the host waits for the legacy stream alone, and a comes with it */
    CU(launch(nullptr, 1, 32, 0, k_digit, p, 6));
    CU(cudaStreamSynchronize(nullptr));
    CHECK(download(p, 32)[7] == 223456);
    CHECK(cudaEventQuery(e) == cudaSuccess && cudaStreamQuery(a) == cudaSuccess);
    float ms = -1;
    CHECK(cudaEventElapsedTime(&ms, e, f) == cudaErrorInvalidResourceHandle); /* e does not time */
    CHECK(cudaGetLastError() == cudaErrorInvalidResourceHandle);
    CU(cudaEventElapsedTime(&ms, f, f));
    CHECK(ms == 0.0f);
    int polls = 0;
    CU(launch(b, 1, 32, 0, k_add, p, 1));
    for (cudaError_t q; (q = cudaStreamQuery(b)) != cudaSuccess && polls < 1000000; polls++)
        CHECK(q == cudaErrorNotReady);
    (void)cudaGetLastError(); /* not-ready is remembered as the last error */
    CHECK(polls < 1000000 && download(p, 32)[0] == 223457);
    int flag = 0;
    CU(cudaLaunchHostFunc(b, [](void *u) { *static_cast<int *>(u) = 7; }, &flag));
    CU(cudaStreamSynchronize(b));
    CHECK(flag == 7);
    CU(cudaEventDestroy(e));
    CU(cudaEventDestroy(f));
    CU(cudaStreamDestroy(a));
    CU(cudaStreamDestroy(b));
    CU(cudaFree(p));
}

static void
test_numbers() { /* two small numbers are no pointer, although a sanitizer's own tables may lie at such addresses */
    int *p = device_array<int>(32);
    for (unsigned high = 1; high < 20000; high += 1 + high / 8)
        CU(launch(nullptr, 1, 32, 0, k_numbers, Numbers{0x12345678u, high, p}));
    CU(launch(nullptr, 1, 32, 0, k_numbers, Numbers{8, 3076, p}));
    CHECK(download(p, 32)[31] == 3084);
    CU(cudaFree(p));
}

static void test_capture() {
    cudaStream_t a, b;
    cudaEvent_t e, f;
    cudaGraph_t g;
    cudaGraphExec_t x;
    cudaStreamCaptureStatus status;
    unsigned long long id = 0;
    size_t nodes = 0;
    int *p = device_zeros<int>(32), *q = device_zeros<int>(32), *v = upload(std::vector<int>{1});
    CU(cudaDeviceSynchronize());
    CU(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CU(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CU(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
    CU(cudaEventCreateWithFlags(&f, cudaEventDisableTiming));

    /* fork and join; nothing runs before the replay; a scalar is frozen, device memory is not */
    CU(cudaStreamBeginCapture(b, cudaStreamCaptureModeThreadLocal));
    CU(launch(b, 1, 32, 0, k_add, p, 1));
    CU(cudaEventRecord(e, b));
    CU(cudaStreamWaitEvent(a, e, 0));
    CU(launch(a, 1, 32, 0, k_add, q, 5));
    CU(cudaStreamIsCapturing(a, &status));
    CHECK(status == cudaStreamCaptureStatusActive);
#if CUDART_VERSION >= 13000
    CU(cudaStreamGetCaptureInfo(a, &status, &id, nullptr, nullptr, nullptr, &nodes));
#else
    CU(cudaStreamGetCaptureInfo(a, &status, &id, nullptr, nullptr, &nodes));
#endif
    CHECK(status == cudaStreamCaptureStatusActive && id != 0 && nodes == 1);
    CU(cudaEventRecord(f, a));
    CU(launch(b, 1, 32, 0, k_add_from, p, (const int *)v));
    CU(cudaStreamWaitEvent(b, f, 0));
    CU(launch(b, 1, 32, 0, k_add, q, 7));
    CU(cudaStreamEndCapture(b, &g));
    CU(cudaStreamIsCapturing(a, &status));
    CHECK(status == cudaStreamCaptureStatusNone);
    CU(cudaGraphGetNodes(g, nullptr, &nodes));
    CHECK(nodes == 4);
    CU(cudaGraphInstantiate(&x, g, 0));
    CU(cudaGraphDestroy(g));
    CHECK(download(p, 32)[0] == 0 && download(q, 32)[0] == 0);
    for (int i = 1; i <= 3; i++) {
        CU(cudaMemcpyAsync(v, &i, sizeof i, cudaMemcpyHostToDevice, b));
        CU(cudaGraphLaunch(x, b));
    }
    CU(cudaStreamSynchronize(b));
    CHECK(download(p, 32)[0] == 3 + 1 + 2 + 3 && download(q, 32)[0] == 36);
    CU(cudaGraphExecDestroy(x));

    /* an unjoined branch */
    CU(cudaStreamBeginCapture(b, cudaStreamCaptureModeThreadLocal));
    CU(cudaEventRecord(e, b));
    CU(cudaStreamWaitEvent(a, e, 0));
    CU(launch(a, 1, 32, 0, k_add, q, 5));
    CHECK(cudaStreamEndCapture(b, &g) == cudaErrorStreamCaptureUnjoined && g == nullptr);

    /* calls that a capture does not survive */
    CU(cudaStreamBeginCapture(b, cudaStreamCaptureModeThreadLocal));
    CHECK(cudaStreamSynchronize(b) == cudaErrorStreamCaptureUnsupported);
    CHECK(launch(b, 1, 32, 0, k_add, q, 5) == cudaErrorStreamCaptureInvalidated);
    CHECK(cudaStreamEndCapture(b, &g) == cudaErrorStreamCaptureInvalidated && g == nullptr);
    void *m = nullptr;
    CU(cudaStreamBeginCapture(b, cudaStreamCaptureModeThreadLocal));
    CHECK(cudaMalloc(&m, 64) == cudaErrorStreamCaptureUnsupported);
    CHECK(cudaStreamEndCapture(b, &g) == cudaErrorStreamCaptureInvalidated);
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed; /* a thread may lift that */
    CU(cudaStreamBeginCapture(b, cudaStreamCaptureModeThreadLocal));
    CU(cudaThreadExchangeStreamCaptureMode(&mode));
    CU(cudaMalloc(&m, 64));
    CU(cudaThreadExchangeStreamCaptureMode(&mode));
    CHECK(mode == cudaStreamCaptureModeRelaxed);
    CU(cudaStreamEndCapture(b, &g));
    CU(cudaGraphDestroy(g));
    CU(cudaFree(m));
    CU(cudaStreamBeginCapture(b, cudaStreamCaptureModeThreadLocal)); /* another thread is not concerned */
    std::thread([] {
        void *other = nullptr;
        CU(cudaMalloc(&other, 64));
        CU(cudaFree(other));
    }).join();
    CU(cudaStreamEndCapture(b, &g));
    CU(cudaGraphDestroy(g));
    CU(cudaEventRecord(e, a)); /* work outside the capture cannot be waited for inside */
    CU(cudaStreamBeginCapture(b, cudaStreamCaptureModeRelaxed));
    CHECK(cudaStreamWaitEvent(b, e, 0) == cudaErrorStreamCaptureIsolation);
    CHECK(cudaStreamEndCapture(b, &g) == cudaErrorStreamCaptureInvalidated);
    CHECK(cudaStreamEndCapture(b, &g) == cudaErrorIllegalState);
    CHECK(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeRelaxed) == cudaErrorStreamCaptureUnsupported);
    (void)cudaGetLastError();
    CU(cudaStreamSynchronize(b));
    CU(cudaEventDestroy(e));
    CU(cudaEventDestroy(f));
    CU(cudaStreamDestroy(a));
    CU(cudaStreamDestroy(b));
    for (void *d : {(void *)p, (void *)q, (void *)v})
        CU(cudaFree(d));
}

static void test_memory() {
    cudaStream_t s;
    cudaPointerAttributes attributes;
    void *pinned = nullptr, *t = nullptr;
    int host[32] = {0}, *d = device_array<int>(32);
    CU(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CU(cudaMallocHost(&pinned, 128));
    memset(pinned, 0, 128);
    for (int i = 0; i < 32; i++)
        host[i] = i;
    CU(cudaMemcpyAsync(d, host, 128, cudaMemcpyDefault, s)); /* pageable: staged before the call returns */
    memset(host, 0, sizeof host);
    CU(cudaMemcpyAsync(pinned, d, 128, cudaMemcpyDefault, s));
    CU(cudaStreamSynchronize(s));
    CHECK(static_cast<int *>(pinned)[31] == 31);
    CU(cudaMemcpy(d, pinned, 128, cudaMemcpyDeviceToHost)); /* wrong, and taken: an address says what it is */
    CHECK(cudaMemcpy(d, host, 128, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue); /* but pageable memory's */
    CHECK(cudaGetLastError() == cudaErrorInvalidValue && cudaGetLastError() == cudaSuccess);
    CU(cudaPointerGetAttributes(&attributes, d));
    CHECK(attributes.type == cudaMemoryTypeDevice && attributes.device == 0 && attributes.devicePointer == d);
    CU(cudaPointerGetAttributes(&attributes, pinned));
    CHECK(attributes.type == cudaMemoryTypeHost && attributes.hostPointer == pinned);
    CU(cudaPointerGetAttributes(&attributes, host));
    CHECK(attributes.type == cudaMemoryTypeUnregistered);
    CU(cudaMallocAsync(&t, 128, s));
    CU(cudaMemsetAsync(t, 0, 128, s));
    CU(launch(s, 1, 32, 0, k_add, static_cast<int *>(t), 3));
    CU(cudaMemcpyAsync(host, t, 128, cudaMemcpyDeviceToHost, s));
    CU(cudaFreeAsync(t, s));
    CU(cudaStreamSynchronize(s));
    CHECK(host[31] == 3);
    size_t free_bytes = 0, total = 0;
    CU(cudaMemGetInfo(&free_bytes, &total));
    CHECK(free_bytes <= total && total > 0);
    CU(cudaMalloc(&t, 0));
    CU(cudaFree(nullptr));
    CU(cudaFreeHost(pinned));
    CU(cudaFree(d));
    CU(cudaStreamDestroy(s));
}

/* One pinned buffer in many pieces of work, whose order is the stream's; the host waits for some of them. */
static void test_one_buffer() {
    cudaStream_t s;
    cudaEvent_t e;
    int *h = nullptr, *d = device_zeros<int>(32);
    CU(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CU(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
    CU(cudaMallocHost((void **)&h, 128));
    auto fill = [](void *p) {
        for (int i = 0; i < 32; i++)
            static_cast<int *>(p)[i] = i;
    };
    auto add_ten = [](void *p) {
        for (int i = 0; i < 32; i++)
            static_cast<int *>(p)[i] += 10;
    };
    CU(cudaLaunchHostFunc(s, fill, h));
    CU(cudaMemcpyAsync(d, h, 128, cudaMemcpyHostToDevice, s)); /* what the host function has made: i */
    CU(launch(s, 1, 32, 0, k_add, d, 100));
    CU(cudaMemcpyAsync(h, d, 128, cudaMemcpyDeviceToHost, s)); /* i + 100 */
    CU(cudaLaunchHostFunc(s, add_ten, h));
    CU(cudaEventRecord(e, s));
    CU(launch(s, 1, 32, 0, k_add, h, 1));                     /* a kernel takes it as it is */
    CU(cudaMemcpyAsync(d, h, 64, cudaMemcpyHostToDevice, s)); /* i + 111, i + 100 in the second half */
    CU(launch(s, 1, 32, 0, k_add, d, 1000));
    CU(cudaMemcpyAsync(h, d, 128, cudaMemcpyDeviceToHost, s));
    CU(launch(s, 1, 32, 0, k_add, d, 1));
    CU(cudaMemcpyAsync(h + 2, d + 2, 8, cudaMemcpyDeviceToHost, s)); /* the same destination: i + 1112 */
    CU(cudaEventSynchronize(e));
    CU(cudaStreamSynchronize(s));
    CHECK(h[1] == 1112 && h[2] == 1114 && h[3] == 1115 && h[4] == 1115 && h[15] == 1126 && h[16] == 1116);
    CU(cudaFreeHost(h));
    CU(cudaFree(d));
    CU(cudaEventDestroy(e));
    CU(cudaStreamDestroy(s));
}

/* A destroyed stream finishes its work, and who waits for the device waits for that. */
static void test_destroyed_stream() {
    cudaStream_t s;
    int *d = device_zeros<int>(32), *h = static_cast<int *>(malloc(128));
    CU(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CU(cudaHostRegister(h, 128, 0));
    CU(launch(s, 1, 32, 0, k_add, d, 5));
    CU(cudaMemcpyAsync(h, d, 128, cudaMemcpyDeviceToHost, s));
    CU(cudaStreamDestroy(s));
    CU(cudaDeviceSynchronize());
    CHECK(h[3] == 5);
    CU(cudaHostUnregister(h));
    free(h);
    CU(cudaFree(d));
}

static void test_errors_and_queries() {
    int n = -1, device = -1, blocks = 0, value = 0;
    cudaDeviceProp prop;
    cudaFuncAttributes attributes;
    CU(cudaGetDeviceCount(&n));
    CU(cudaGetDevice(&device));
    CHECK(n >= 1 && device == 0);
    CHECK(cudaSetDevice(n) == cudaErrorInvalidDevice && cudaGetLastError() == cudaErrorInvalidDevice);
    CU(cudaGetDeviceProperties(&prop, 0));
    CU(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
    CHECK(prop.name[0] && prop.multiProcessorCount == value && prop.totalGlobalMem > 0 && prop.warpSize == 32);
    CU(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 0));
    CHECK(prop.major == value);
    CU(cudaDriverGetVersion(&value));
    CHECK(value >= 11080);
    CU(cudaRuntimeGetVersion(&value));
    CHECK(value == CUDART_VERSION);
    CU(cudaFuncGetAttributes(&attributes, k_add));
    CHECK(attributes.maxThreadsPerBlock >= AMP_BLOCK && attributes.numRegs > 0);
    CU(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, k_add, AMP_BLOCK, 0));
    CHECK(blocks >= 1);

    CHECK(launch(nullptr, 0, 32, 0, k_add, (int *)nullptr, 1) == cudaErrorInvalidValue);
    CHECK(cudaPeekAtLastError() == cudaErrorInvalidValue && cudaGetLastError() == cudaErrorInvalidValue);
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    CHECK(launch(nullptr, 1, 2048, 0, k_add, (int *)nullptr, 1) != cudaSuccess);
    (void)cudaGetLastError();
    CHECK(launch(nullptr, 1, 32, 100 << 10, k_reverse, (const int *)nullptr, (int *)nullptr, 0) ==
        cudaErrorInvalidValue); /* above 48 KiB: opt in first */
    (void)cudaGetLastError();
    CU(cudaFuncSetAttribute(k_reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10));
    CU(launch(nullptr, 1, 32, 100 << 10, k_reverse, (const int *)nullptr, (int *)nullptr, 0));
    CU(cudaFuncSetAttribute(k_reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, 48 << 10));
    CU(cudaDeviceSynchronize());
    CHECK(!strcmp(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation"));
    CHECK(!strcmp(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory"));
}

static void test_devices() { /* needs two; the host runtime has them by default */
    int count = 0, *a = device_zeros<int>(32), *b = nullptr;
    CU(cudaGetDeviceCount(&count));
    if (count >= 2) {
        cudaStream_t s0, s1;
        cudaEvent_t e1;
        cudaPointerAttributes attributes;
        CU(cudaStreamCreateWithFlags(&s0, cudaStreamNonBlocking));
        CU(cudaSetDevice(1));
        CU(cudaStreamCreateWithFlags(&s1, cudaStreamNonBlocking));
        CU(cudaEventCreateWithFlags(&e1, cudaEventDisableTiming));
        b = device_zeros<int>(32);
        CU(cudaPointerGetAttributes(&attributes, b));
        CHECK(attributes.device == 1);
        CU(launch(s1, 1, 32, 0, k_add, b, 5));
        CHECK(launch(s0, 1, 32, 0, k_add, b, 5) == cudaErrorInvalidResourceHandle); /* a stream of the other device */
        CHECK(cudaEventRecord(e1, s0) == cudaErrorInvalidResourceHandle);
        (void)cudaGetLastError();
        CU(cudaEventRecord(e1, s1));
        CU(cudaSetDevice(0));
        CU(cudaStreamWaitEvent(s0, e1, 0)); /* waiting across devices is allowed, and so are copies */
        CU(cudaMemcpyAsync(a, b, 128, cudaMemcpyDefault, s0));
        CU(launch(s0, 1, 32, 0, k_add, a, 2));
        CU(cudaStreamSynchronize(s0));
        CHECK(download(a, 32)[9] == 7);
        CU(cudaMemsetAsync(a, 0, 128, s0)); /* a copy by this name waits for both devices, and they for it */
        CU(cudaStreamSynchronize(s0));
        CU(launch(s0, 1, 32, 0, k_add, a, 8));
        CU(cudaSetDevice(1));
        CU(cudaMemcpyPeer(b, 1, a, 0, 128));
        CU(launch(s1, 1, 32, 0, k_add, b, 1));
        CU(cudaSetDevice(0));
        CU(launch(s0, 1, 32, 0, k_add, a, 100));
        CU(cudaStreamSynchronize(s0));
        CHECK(download(a, 32)[9] == 108);
        CU(cudaSetDevice(1));
        CU(cudaStreamSynchronize(s1));
        CHECK(download(b, 32)[9] == 9);
        CU(cudaSetDevice(0));
        CU(cudaStreamDestroy(s0));
        CU(cudaStreamDestroy(s1));
        CU(cudaEventDestroy(e1));
        CU(cudaFree(b));
    }
    CU(cudaFree(a));
}

static void test_threads() {
    std::vector<std::thread> threads;
    std::vector<int> result(3);
    for (int t = 0; t < 3; t++)
        threads.emplace_back([&result, t] {
            cudaStream_t s;
            int *p = nullptr, host[32];
            bool ok = cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking) == cudaSuccess &&
                cudaMalloc((void **)&p, 128) == cudaSuccess;
            ok = ok && cudaMemsetAsync(p, 0, 128, s) == cudaSuccess;
            for (int k = 0; k < 20; k++)
                ok = ok && launch(s, 1, 32, 0, k_add, p, 1) == cudaSuccess;
            ok = ok && cudaMemcpyAsync(host, p, 128, cudaMemcpyDeviceToHost, s) == cudaSuccess &&
                cudaStreamSynchronize(s) == cudaSuccess;
            result[size_t(t)] =
                ok && host[3] == 20 && cudaFree(p) == cudaSuccess && cudaStreamDestroy(s) == cudaSuccess;
        });
    for (auto &t : threads)
        t.join();
    for (int r : result)
        CHECK(r == 1);
}

static void contract() {
    test_shared();
    test_grid_sync();
    test_dependent_launch();
    test_last_block();
    test_warp();
    test_atomics();
    test_half();
    test_intrinsics();
    test_vectors();
    test_integers();
    test_streams();
    test_numbers();
    test_capture();
    test_memory();
    test_one_buffer();
    test_destroyed_stream();
    test_errors_and_queries();
    test_devices();
}

/* ==== the host runtime's own promises ============================================================================= */

#ifdef AMP_HOSTCUDA
static void test_lazy_work() { /* enqueued work has not run; peeking changes nothing */
    hcu_set_mode(HCU_LAZY, 1);
    cudaStream_t s, t;
    int *p = device_array<int>(32), seen[32];
    CU(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CU(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));
    CHECK(hcu_peek(seen, p, 128));
#  if !defined(HCU_VALGRIND) && !defined(__clang__)
    CHECK(seen[0] == -1 && seen[31] == -1); /* poison */
#  endif
    hcu_reset_counts();
    CU(cudaMemsetAsync(p, 0, 128, s));
    CU(launch(s, 1, 32, 0, k_add, p, 4));
    CHECK(hcu_pending() == 2 && hcu_executed(HCU_LAUNCH) == 0 && hcu_executed(HCU_FILL) == 0);
    CU(cudaStreamSynchronize(t)); /* not the stream that has the work */
    CHECK(hcu_pending() == 2);
    CU(cudaStreamSynchronize(s));
    CHECK(hcu_pending() == 0 && hcu_executed(HCU_LAUNCH) == 1 && hcu_executed(HCU_FILL) == 1);
    CHECK(hcu_peek(seen, p, 128) && seen[5] == 4);
    int nine = 9;
    CHECK(hcu_poke(p, &nine, sizeof nine) && download(p, 1)[0] == 9);
    CHECK(!hcu_peek(seen, &nine, 4));
    CU(cudaStreamDestroy(s));
    CU(cudaStreamDestroy(t));
    CU(cudaFree(p));
}
static void test_counters() {
    cudaStream_t s;
    cudaGraph_t g;
    cudaGraphExec_t x;
    int *p = device_zeros<int>(32), host[32];
    CU(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    hcu_reset_counts();
    CU(launch(s, 1, 32, 0, k_add, p, 1));
    CU(launch(s, 1, 32, 0, k_add, p, 1));
    CHECK(hcu_group_calls(HCU_LAUNCH) == 2 && hcu_group_calls(HCU_SYNC) == 0 && hcu_group_calls(HCU_ALLOC) == 0 &&
        hcu_group_calls(HCU_COPY) == 0);
    CHECK(hcu_calls("cudaLaunchKernelEx") == 2 && hcu_calls("cudaMalloc") == 0 && hcu_calls(nullptr) == 2);
    CU(cudaMemcpyAsync(host, p, 128, cudaMemcpyDeviceToHost, s)); /* pageable: a hidden synchronisation */
    CHECK(hcu_group_calls(HCU_COPY) == 1 && hcu_group_calls(HCU_SYNC) == 1);
    CU(cudaStreamSynchronize(s));
    CHECK(hcu_group_calls(HCU_SYNC) == 2 && host[0] == 2);
    hcu_reset_counts();
    CU(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    CU(launch(s, 1, 32, 0, k_add, p, 1));
    CU(cudaStreamEndCapture(s, &g));
    CU(cudaGraphInstantiate(&x, g, 0));
    CHECK(hcu_group_calls(HCU_LAUNCH) == 1 && hcu_executed(HCU_LAUNCH) == 0 && hcu_pending() == 0);
    for (int i = 0; i < 3; i++)
        CU(cudaGraphLaunch(x, s));
    CU(cudaStreamSynchronize(s));
    CHECK(hcu_executed(HCU_LAUNCH) == 3 && hcu_executed(HCU_GRAPH) == 3 && hcu_group_calls(HCU_GRAPH) == 3);
    CU(cudaGraphExecDestroy(x));
    CU(cudaGraphDestroy(g));
    CU(cudaStreamDestroy(s));
    CU(cudaFree(p));
}

/* A verb of the kind under test: acquires, works, checks every status, cleans up on every path. */
struct Verb {
    cudaStream_t s = nullptr;
    cudaEvent_t e = nullptr;
    int *p = nullptr, *pinned = nullptr;
    cudaGraph_t g = nullptr;
    cudaGraphExec_t x = nullptr;
    cudaError_t run(bool leaky = false) {
        cudaError_t r = body();
        if (x) cudaGraphExecDestroy(x);
        if (g) cudaGraphDestroy(g);
        if (!leaky) cudaFree(p);
        cudaFreeHost(pinned);
        if (e) cudaEventDestroy(e);
        if (s) cudaStreamDestroy(s);
        return r;
    }
    cudaError_t body() {
        cudaError_t r;
        if ((r = cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking))) return r;
        if ((r = cudaEventCreateWithFlags(&e, cudaEventDisableTiming))) return r;
        if ((r = cudaMalloc((void **)&p, 128))) return r;
        if ((r = cudaHostAlloc((void **)&pinned, 128, 0))) return r;
        if ((r = cudaMemsetAsync(p, 0, 128, s))) return r;
        if ((r = cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal))) return r;
        cudaError_t inside = launch(s, 1, 32, 0, k_add, p, 3);
        r = cudaStreamEndCapture(s, &g); /* always */
        if (inside || r) return inside ? inside : r;
        if ((r = cudaGraphInstantiate(&x, g, 0))) return r;
        if ((r = cudaGraphLaunch(x, s))) return r;
        if ((r = cudaMemcpyAsync(pinned, p, 128, cudaMemcpyDeviceToHost, s))) return r;
        if ((r = cudaEventRecord(e, s))) return r;
        if ((r = cudaEventSynchronize(e))) return r;
        return pinned[31] == 3 ? cudaSuccess : cudaErrorUnknown;
    }
};
static void test_fault_injection() {
    for (int sticky = 0; sticky < 2; sticky++) {
        long k = 1, reported = 0;
        for (;; k++) {
            hcu_reset();
            hcu_fail_call(nullptr, k, 0, sticky);
            cudaError_t r = Verb().run();
            bool hit = hcu_injected() != 0;
            CHECK(hit == (r != cudaSuccess) && hcu_leaks(0) == 0);
            if (sticky && hit) {
                int n;
                CHECK(cudaDeviceSynchronize() == r && cudaGetLastError() == r); /* dead until reset */
                CHECK(cudaGetLastError() == cudaSuccess && cudaGetDeviceCount(&n) == cudaSuccess);
            }
            reported += hit;
            if (!hit) break;
        }
        hcu_reset();
        CHECK(k > 12 && reported == k - 1 && Verb().run() == cudaSuccess);
    }
    hcu_reset();
    hcu_fail_call("cudaMalloc", 1, cudaErrorLaunchTimeout, 0); /* by name, with a status of choice */
    CHECK(Verb().run() == cudaErrorLaunchTimeout && !strcmp(hcu_last_injected(), "cudaMalloc"));
    hcu_reset();
    CHECK(Verb().run(true) == cudaSuccess && hcu_leaks(0) == 1); /* the loop above would see a leak */
    for (long k = 1; k <= 4; k++) { /* faults inside stream work: memset, graph, kernel in it, copy */
        hcu_reset();
        hcu_fail_exec(k, 0);
        cudaError_t r = Verb().run();
        CHECK(r == cudaErrorIllegalAddress && hcu_injected() == 1);
        CHECK(cudaPeekAtLastError() == cudaErrorIllegalAddress && cudaDeviceSynchronize() == cudaErrorIllegalAddress);
    }
    hcu_reset();
    CHECK(Verb().run() == cudaSuccess && cudaPeekAtLastError() == cudaSuccess);
}
static void test_limits() {
    void *a = nullptr, *b = nullptr;
    size_t base = hcu_device_bytes(0);
    hcu_set_memory_limit(0, base + 1000);
    CU(cudaMalloc(&a, 600));
    CHECK(hcu_device_bytes(0) == base + 600);
    CHECK(cudaMalloc(&b, 600) == cudaErrorMemoryAllocation && cudaGetLastError() == cudaErrorMemoryAllocation);
    CU(cudaFree(a));
    CU(cudaMalloc(&b, 600));
    CU(cudaFree(b));
    hcu_set_memory_limit(0, size_t(4) << 30);
    hcu_set_devices(0);
    int n = 5;
    CHECK(cudaGetDeviceCount(&n) == cudaErrorNoDevice && n == 5);
    CHECK(cudaFree(nullptr) == cudaErrorNoDevice && cudaPeekAtLastError() == cudaErrorNoDevice);
    hcu_set_devices(2);
    (void)cudaGetLastError();
}
#endif

int main(int argc, char **argv) {
    setvbuf(stdout, nullptr, _IOLBF, 0);
#ifdef AMP_HOSTCUDA
    bool quick = argc > 1 && !strcmp(argv[1], "quick");
    long interpreted = 0;
    for (int mode : {HCU_EAGER, HCU_LAZY, HCU_RANDOM})
        for (int order : {HCU_FORWARD, HCU_REVERSE, HCU_SHUFFLE}) {
            if (quick && mode != order) continue;
            hcu_set_mode(mode, 11);
            hcu_set_order(order, 17);
            contract();
            CHECK(hcu_leaks(1) == 0);
            interpreted += hcu_ptx_launches();
        }
    hcu_set_mode(HCU_RANDOM, 5);
    test_threads();
    if (getenv("HCU_PTX")) CHECK(interpreted > 0 && hcu_ptx_load(getenv("HCU_PTX")) == 17); /* all but k_grid_sync */
    hcu_set_mode(HCU_LAZY, 1);
    hcu_set_order(HCU_FORWARD, 1);
    test_lazy_work();
    test_counters();
    test_fault_injection();
    test_limits();
    CHECK(hcu_leaks(0) == 1 && hcu_bugs() == 0); /* the one that test_fault_injection leaked on purpose */
#else
    (void)argc, (void)argv;
    int n = 0;
    if (cudaGetDeviceCount(&n) != cudaSuccess || n == 0) {
        printf("test_lang: skipped, no GPU\n");
        return 77;
    }
    contract();
    test_threads();
#endif
    return report("test_lang");
}
