/* test_wmma.cpp - contract tests of mma.h: 16 x 16 x 16 warp matrices, half and bfloat16, every layout.
 *
 * What is outside #ifdef AMP_HOSTCUDA states what CUDA does and runs on a real GPU as well (sm_80 or newer, for
 * bfloat16). */
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>
#include "selftest.h"
using namespace nvcuda;

/* D = 2 * (3 A B + C), A of 16 x 32, one product per warp. Small integers: exact in every format and in any order. */
template <class T, class LA, class LB>
static __global__ void k_product(const T *a, const T *b, const float *c, float *d, unsigned lda, unsigned ldb,
    unsigned ldc, int c_rows, int d_rows) {
    const unsigned warp = threadIdx.x / 32;
    const bool a_rows = std::is_same<LA, wmma::row_major>::value, b_rows = std::is_same<LB, wmma::row_major>::value;
    a += warp * 32 * 64;
    b += warp * 32 * 64;
    c += warp * 16 * 64;
    d += warp * 16 * 64;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, T, LA> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, T, LB> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc, three;
    wmma::load_matrix_sync(acc, c, ldc, c_rows ? wmma::mem_row_major : wmma::mem_col_major);
    for (unsigned k = 0; k < 32; k += 16) {
        wmma::load_matrix_sync(fa, a + (a_rows ? k : k * lda), lda);
        wmma::load_matrix_sync(fb, b + (b_rows ? k * ldb : k), ldb);
        for (int i = 0; i < int(fa.num_elements); i++)
            fa.x[i] = T(3.0f * float(fa.x[i])); /* element by element: allowed anywhere */
        wmma::mma_sync(acc, fa, fb, acc);
    }
    wmma::fill_fragment(three, 2.0f);
    for (int i = 0; i < int(acc.num_elements); i++)
        acc.x[i] *= three.x[i];
    wmma::store_matrix_sync(d, acc, ldc, d_rows ? wmma::mem_row_major : wmma::mem_col_major);
}
template <class T, class LA, class LB> static void test_product(int c_rows, int d_rows) {
    const bool a_rows = std::is_same<LA, wmma::row_major>::value, b_rows = std::is_same<LB, wmma::row_major>::value;
    const unsigned warps = 2, lda = a_rows ? 40 : 24, ldb = b_rows ? 16 : 48, ldc = 20;
    static unsigned long long random = 88172645463325252ull;
    auto integer = [&]() {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        return int(random >> 40) % 5;
    };
    std::vector<T> a(warps * 32 * 64, T(0.0f)), b(warps * 32 * 64, T(0.0f));
    std::vector<float> c(warps * 16 * 64), d(c.size(), -1.0f), want(d);
    for (T &x : a)
        x = T(float(integer()));
    for (T &x : b)
        x = T(float(integer()));
    for (float &x : c)
        x = float(integer());
    for (unsigned w = 0; w < warps; w++)
        for (unsigned i = 0; i < 16; i++)
            for (unsigned j = 0; j < 16; j++) {
                float s = c[w * 16 * 64 + (c_rows ? i * ldc + j : j * ldc + i)];
                for (unsigned k = 0; k < 32; k++)
                    s += 3 * float(a[w * 32 * 64 + (a_rows ? i * lda + k : k * lda + i)]) *
                        float(b[w * 32 * 64 + (b_rows ? k * ldb + j : j * ldb + k)]);
                want[w * 16 * 64 + (d_rows ? i * ldc + j : j * ldc + i)] = 2 * s;
            }
    T *da = upload(a), *db = upload(b);
    float *dc = upload(c), *dd = upload(d);
    CU(launch(nullptr, 1, 32 * warps, 0, k_product<T, LA, LB>, (const T *)da, (const T *)db, (const float *)dc, dd, lda,
        ldb, ldc, c_rows, d_rows));
    CHECK(download(dd, d.size()) == want); /* and nothing beside it was written */
    for (void *p : {(void *)da, (void *)db, (void *)dc, (void *)dd})
        CU(cudaFree(p));
}
template <class T> static void test_layouts() {
    for (int c_rows = 0; c_rows < 2; c_rows++)
        for (int d_rows = 0; d_rows < 2; d_rows++) {
            test_product<T, wmma::row_major, wmma::row_major>(c_rows, d_rows);
            test_product<T, wmma::row_major, wmma::col_major>(c_rows, d_rows);
            test_product<T, wmma::col_major, wmma::row_major>(c_rows, d_rows);
            test_product<T, wmma::col_major, wmma::col_major>(c_rows, d_rows);
        }
}

/* Products are not rounded to 16 bits, and sums are FP32: 2^12 + 15 * (1 + 2^-10)^2. Subnormals, NaN and Inf count. */
static __global__ void k_one(const __half *a, const __half *b, float *d) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc;
    wmma::fill_fragment(acc, 0.0f);
    wmma::load_matrix_sync(fa, a, 16);
    wmma::load_matrix_sync(fb, b, 16);
    wmma::mma_sync(acc, fa, fb, acc);
    wmma::store_matrix_sync(d, acc, 16, wmma::mem_row_major);
}
static void test_numbers() {
    std::vector<__half> a(256, __float2half(0.0f)), b(256, __float2half(0.0f));
    for (size_t k = 0; k < 16; k++) {
        a[k] = __float2half(k ? 1.0009765625f : 64.0f);
        b[16 * k] = __float2half(k ? 1.0009765625f : 64.0f);
        b[16 * k + 1] = __float2half(1.0f);
        a[16 * 2 + k] = __float2half(k == 3 ? 5.9604644775390625e-8f : 0.0f);
    }
    a[16 * 3] = __float2half(INFINITY);
    a[16 * 4] = __float2half(NAN);
    __half *da = upload(a), *db = upload(b);
    float *dd = device_array<float>(256);
    CU(launch(nullptr, 1, 32, 0, k_one, (const __half *)da, (const __half *)db, dd));
    std::vector<float> d = download(dd, 256);
    CHECK(fabsf(d[0] - 4111.02931f) < 0.004f && d[1] == 79.0146484375f);
    CHECK(d[16 * 2 + 1] == 5.9604644775390625e-8f && d[16] == 0.0f);
    CHECK(d[16 * 3 + 1] == INFINITY && d[16 * 4 + 1] != d[16 * 4 + 1]);
    for (void *p : {(void *)da, (void *)db, (void *)dd})
        CU(cudaFree(p));
}

/* Half sums: 2048 + 1 is 2048 again, 1024 + 1 is not. The tile begins at 8: a leading dimension of its own. */
static __global__ void k_half_sum(const __half *a, const __half *b, __half *d) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, __half> acc;
    wmma::load_matrix_sync(fa, a, 16);
    wmma::load_matrix_sync(fb, b, 16);
    wmma::load_matrix_sync(acc, d, 24, wmma::mem_col_major);
    wmma::mma_sync(acc, fa, fb, acc);
    wmma::store_matrix_sync(d, acc, 24, wmma::mem_col_major);
}
static void test_half_sum() {
    std::vector<__half> a(256, __float2half(0.0f)), b(256, __float2half(0.0f)), d(16 * 24, __float2half(7.0f));
    for (size_t i = 0; i < 16; i++) {
        a[16 * i] = __float2half(1.0f);
        b[16 * i] = __float2half(float(i)); /* adds its column's number */
        d[24 * i] = __float2half(2048.0f);
        d[24 * i + 1] = __float2half(1024.0f);
    }
    __half *da = upload(a), *db = upload(b), *dd = upload(d);
    CU(launch(nullptr, 1, 32, 0, k_half_sum, (const __half *)da, (const __half *)db, dd));
    d = download(dd, d.size());
    CHECK(__half2float(d[24]) == 2048.0f && __half2float(d[48]) == 2050.0f && __half2float(d[25]) == 1025.0f);
    CHECK(__half2float(d[24 * 15 + 15]) == 22.0f && __half2float(d[24 * 15 + 16]) == 7.0f);
    for (__half *p : {da, db, dd})
        CU(cudaFree(p));
}

#ifdef AMP_HOSTCUDA
static void test_count() {
    const long before = hcu_warp_products();
    test_half_sum();
    CHECK(hcu_warp_products() == before + 1);
}

/* ==== what the host runtime must notice =========================================================================== */

enum Mistake { NONE, ADDRESS, LEADING, POINTERS, LEADINGS, LANES, PART, EMPTY };
static __global__ void k_mistake(const __half *a, const __half *b, float *d, int mistake) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc;
    if (mistake != EMPTY) wmma::fill_fragment(acc, 0.0f);
    if (mistake == LANES && threadIdx.x >= 16) return;
    unsigned offset = mistake == ADDRESS ? 8 : mistake == POINTERS && threadIdx.x == 9 ? 16 : 0;
    unsigned ldm = mistake == LEADING ? 20 : mistake == LEADINGS && threadIdx.x == 31 ? 24 : 16;
    wmma::load_matrix_sync(fa, a + offset, ldm);
    wmma::load_matrix_sync(fb, b, 16);
    for (int i = 0; i < (mistake == PART ? 8 : 16); i++)
        fa.x[i] = __float2half(2.0f);
    wmma::mma_sync(acc, fa, fb, acc);
    wmma::store_matrix_sync(d, acc, 16, wmma::mem_row_major);
}
static void test_mistakes() {
    __half *a = upload(std::vector<__half>(512, __float2half(1.0f)));
    float *d = device_array<float>(256);
    hcu_set_abort(0);
    fputs("test_wmma: the diagnoses from here on are wanted\n", stderr);
    for (int m = NONE; m <= EMPTY; m++) {
        int before = hcu_bugs();
        CU(launch(nullptr, 1, 32, 0, k_mistake, (const __half *)a, (const __half *)a, d, m));
        CU(cudaDeviceSynchronize());
        CHECK((hcu_bugs() > before) == (m != NONE && m != EMPTY));
        if (m == NONE) CHECK(download(d, 256) == std::vector<float>(256, 32.0f));
        if (m == EMPTY) CHECK(download(d, 1)[0] != download(d, 1)[0]); /* NaN, where a GPU has anything */
    }
    hcu_set_abort(1);
    CU(cudaFree(a));
    CU(cudaFree(d));
}
#endif

static void contract() {
    test_layouts<__half>();
    test_layouts<__nv_bfloat16>();
    test_numbers();
    test_half_sum();
}
int main() {
    setvbuf(stdout, nullptr, _IOLBF, 0);
#ifdef AMP_HOSTCUDA
    for (int order : {HCU_FORWARD, HCU_REVERSE, HCU_SHUFFLE}) {
        hcu_set_order(order, 17);
        contract();
    }
    test_count();
    CHECK(hcu_bugs() == 0);
    test_mistakes();
    CHECK(hcu_leaks(1) == 0);
#else
    int n = 0;
    if (cudaGetDeviceCount(&n) != cudaSuccess || n == 0) {
        printf("test_wmma: skipped, no GPU\n");
        return 77;
    }
    contract();
#endif
    return report("test_wmma");
}
