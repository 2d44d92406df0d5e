/* tensor_core.cu - one matrix product, four ways: where the speed of Tensor Cores comes from. Read it from the top.
 *
 *     nvcc -O2 -arch=native -I. examples/tensor_core.cu -lcublasLt -o tensor_core && ./tensor_core
 *
 *   step 0   one thread per element, FP32, no Tensor Cores
 *   step 1   Tensor Cores: one warp, one tile; then one warp for each tile
 *   step 2   the same with shared memory, so that a number is fetched once for many products
 *   step 3   amp_gemm: what you would call
 *
 * It checks each step against a sum in double, times it, and prints a table. Options: --size N (m = n = k, 4096 if not
 * given), --seed N, and --check: no times. Built with -DBF16 the inputs are BF16 (sm_80 or newer).
 * `./tensor_core --check` prints
 *   > step 0   FP32, one thread per element    right for 6 shapes, refuses 0
 *   > step 1a  WMMA, one warp, one tile        right for 1 shapes, refuses 5
 *   > step 1b  WMMA, one warp per tile         right for 3 shapes, refuses 3
 *   > step 2   WMMA, shared memory             right for 5 shapes, refuses 1
 *   > step 3   amp_gemm                        right for 6 shapes, refuses 0
 *   > passed
 */
#define AMP_IMPLEMENTATION
#define AMP_CUDA_IMPLEMENTATION
#include "amp_cuda.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <math.h>
#include <mma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CUDA(call) \
    do { \
        cudaError_t e_ = (call); \
        if (e_ != cudaSuccess) { \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(e_)); \
            exit(1); \
        } \
    } while (0)
#define AMP(call) \
    do { \
        amp_status s_ = (call); \
        const char *why_ = amp_last_error(ctx); /* "" without a context */ \
        if (s_ != AMP_OK) { \
            fprintf(stderr, "%s: %s\n", #call, *why_ ? why_ : amp_strerror(s_)); \
            exit(1); \
        } \
    } while (0)

/* The type of A and B, to CUDA and to amp. It has 2 bytes: half the traffic of FP32, and Tensor Cores take it. */
#ifdef BF16
typedef __nv_bfloat16 number;
#  define DTYPE AMP_BF16
#else
typedef __half number;
#  define DTYPE AMP_F16
#endif

typedef struct product { /* D[m,n] = A[m,k] B[k,n], row-major, packed, in device memory */
    int m, n, k;
    const float *a32, *b32; /* the same numbers in FP32, for step 0 */
    const number *a, *b;
    float *d; /* FP32 everywhere */
} product;

static cudaLaunchConfig_t launch_shape(amp_ctx *ctx, dim3 grid, dim3 block) {
    cudaLaunchConfig_t c = {};
    c.gridDim = grid;
    c.blockDim = block;
    c.stream = amp_cuda_stream(ctx);
    return c;
}
static unsigned blocks(int count, int each) { return (unsigned)((count + each - 1) / each); }

/* Each step is a function that queues its work and returns NULL, or says which sizes it does not take. */

/* ==== step 0: one thread per element =================================================================================
   Each thread fetches a row of A and a column of B: for every multiply-add (2 operations) 8 bytes. That ratio,
   operations per byte, is the arithmetic intensity; here it is 0.25. A GPU has time for 100 to 300 Tensor Core
   operations while one byte comes from its memory. Caches soften that, but first of all it is what decides the speed of
   a product; watch it grow from step to step. */

static __global__ void plain(const float *a, const float *b, float *d, int m, int n, int k) {
    int row = (int)(blockIdx.y * blockDim.y + threadIdx.y), col = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (row >= m || col >= n) return;
    float sum = 0;
    for (int i = 0; i < k; i++)
        sum += a[(size_t)row * k + i] * b[(size_t)i * n + col]; /* x is the column: neighbours read neighbours */
    d[(size_t)row * n + col] = sum;
}
static const char *step_0(amp_ctx *ctx, const product *p) {
    cudaLaunchConfig_t c = launch_shape(ctx, dim3(blocks(p->n, 16), blocks(p->m, 16)), dim3(16, 16));
    CUDA(cudaLaunchKernelEx(&c, plain, p->a32, p->b32, p->d, p->m, p->n, p->k));
    return NULL;
}

/* ==== step 1: a tile on the Tensor Cores =============================================================================
   A Tensor Core multiplies small matrices, not numbers. From CUDA C++ it is reached through WMMA, "warp matrix
   multiply-accumulate": the 32 threads of a warp together hold one 16 x 16 tile of A, of B and of the sum, in
   registers, and multiply by one call. Such a part of a matrix is a fragment. Which element lies in which thread is not
   documented and differs between GPUs: a fragment is filled, loaded, stored, multiplied, and changed element by element
   in the same way everywhere (f.x[i], i < f.num_elements), no more.

   All 32 threads make each call, with the same arguments: no call inside an `if` that only some threads of the warp
   enter.

   ldm, the leading dimension, is the distance between rows in memory, in elements: the tile is a window into a larger
   matrix. It must be a multiple of 16 bytes, and the window's first element at a multiple of 32.

   Why the sum is FP32: FP16 has 11 significant bits, so 2048 + 1 is 2048 again, and above 65504 it overflows; BF16 has
   8, 256 + 1 is 256. The products of two FP16 or BF16 numbers fit into FP32 exactly; only the additions round. */

using namespace nvcuda;
enum { TILE = 16 };
typedef wmma::fragment<wmma::matrix_a, TILE, TILE, TILE, number, wmma::row_major> a_tile;
typedef wmma::fragment<wmma::matrix_b, TILE, TILE, TILE, number, wmma::row_major>
    b_tile; /* col_major would read B transposed */
typedef wmma::fragment<wmma::accumulator, TILE, TILE, TILE, float> sum_tile;

static __global__ void one_tile(const number *a, const number *b, float *d) { /* 32 threads: one warp */
    a_tile fa;
    b_tile fb;
    sum_tile sum;
    wmma::fill_fragment(sum, 0.0f);
    wmma::load_matrix_sync(fa, a, TILE);
    wmma::load_matrix_sync(fb, b, TILE);
    wmma::mma_sync(
        sum, fa, fb, sum); /* 16 * 16 * 16 multiply-adds: 8192 operations for the 1024 bytes loaded, 8 per byte */
    wmma::store_matrix_sync(d, sum, TILE, wmma::mem_row_major);
}
static const char *step_1a(amp_ctx *ctx, const product *p) {
    if (p->m != TILE || p->n != TILE || p->k != TILE) return "m, n and k must be 16";
    cudaLaunchConfig_t c = launch_shape(ctx, dim3(1), dim3(32));
    CUDA(cudaLaunchKernelEx(&c, one_tile, p->a, p->b, p->d));
    return NULL;
}

/* A larger matrix: one warp for each tile of D. It goes along k and keeps the sum in its registers. */
enum { WARPS = 4 }; /* in a block, one above the other */

static __global__ void tile_per_warp(const number *a, const number *b, float *d, int m, int n, int k) {
    int row = (int)(blockIdx.y * WARPS + threadIdx.y) * TILE, col = (int)blockIdx.x * TILE;
    if (row >= m) return; /* the whole warp leaves or stays: threadIdx.y is its number */
    a_tile fa;
    b_tile fb;
    sum_tile sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int i = 0; i < k; i += TILE) {
        wmma::load_matrix_sync(fa, a + (size_t)row * k + i, k);
        wmma::load_matrix_sync(fb, b + (size_t)i * n + col, n);
        wmma::mma_sync(sum, fa, fb, sum);
    }
    wmma::store_matrix_sync(d + (size_t)row * n + col, sum, n, wmma::mem_row_major);
}
static const char *step_1b(amp_ctx *ctx, const product *p) {
    if (p->m % TILE || p->n % TILE || p->k % TILE) return "m, n and k must be multiples of 16";
    cudaLaunchConfig_t c =
        launch_shape(ctx, dim3((unsigned)(p->n / TILE), blocks(p->m, WARPS * TILE)), dim3(32, WARPS));
    CUDA(cudaLaunchKernelEx(&c, tile_per_warp, p->a, p->b, p->d, p->m, p->n, p->k));
    return NULL;
}

/* ==== step 2: shared memory ==========================================================================================
   In step 1b all warps of one row of tiles fetch the same part of A. Here a block of 8 warps makes 128 x 128 elements
   of D. It fetches 128 x 32 of A and 32 x 128 of B once into shared memory, and all its warps multiply from there:
   2 * 128 * 128 operations per step of k, for 2 * (128 + 128) bytes. That is 64 per byte instead of 8. Four more things
   make it fast:

   - Each warp makes 32 x 64 elements: 2 fragments of A and 4 of B, once loaded from shared memory, give 8 products.
   - Global memory is read 16 bytes at a time per thread, the widest load there is: fewest instructions, full cache
     lines.
   - Double buffering: while the warps multiply one slice of k, the loads of the next one are already under way, into
     registers; they are put into the other half of shared memory, so one barrier per slice is enough.
   - Padding: shared memory has 32 banks of 4 bytes, and threads of a warp that want different words of one bank wait
     for each other. Rows of 64 or 256 bytes would start in the same banks again and again; 16 more bytes per row shift
     each row by 4 banks. (8 numbers, not 1: ldm must stay a multiple of 16 bytes.) */

#ifndef AMP_SHARED /* the tests also run this file on a CPU, where shared memory is something else */
#  define AMP_SHARED(T, name, n) __shared__ T name[n]
#endif

enum { BM = 128, BN = 128, BK = 32 }; /* of a block: rows, columns, slice of k */
enum { WM = 32, WN = 64 };            /* of a warp */
enum { THREADS = 32 * (BM / WM) * (BN / WN) };
enum { PAD = 8, LDA = BK + PAD, LDB = BN + PAD, LDD = TILE + 4 };
enum { A_LOADS = BM * BK / 8 / THREADS, B_LOADS = BK * BN / 8 / THREADS }; /* per thread and slice, of 8 numbers */
struct __align__(32) line { number x[16]; }; /* shared memory in units of 32 bytes, for that alignment */

/* 8 numbers at once. Outside of the matrix zeros, which add nothing to a sum: so m, n and k need not be multiples of
   the block. */
static __device__ uint4 load_8(const number *p, int rows, int cols, int row, int col) {
    if (row >= rows || col >= cols) return make_uint4(0, 0, 0, 0);
    return *(const uint4 *)(p + (size_t)row * cols + col);
}

static __global__ void __launch_bounds__(THREADS)
    blocked(const number *a, const number *b, float *d, int m, int n, int k) {
    AMP_SHARED(line, a_lines, 2 * BM * LDA / 16);
    AMP_SHARED(line, b_lines, 2 * BK * LDB / 16);
    number *as = (number *)a_lines, *bs = (number *)b_lines; /* two buffers each */
    int thread = (int)threadIdx.x, warp = thread / 32, lane = thread % 32;
    int row0 = (int)blockIdx.y * BM, col0 = (int)blockIdx.x * BN;
    int wrow = warp / (BN / WN) * WM, wcol = warp % (BN / WN) * WN; /* of this warp, in the block */
    uint4 next_a[A_LOADS], next_b[B_LOADS];
    sum_tile sum[WM / TILE][WN / TILE];
    for (int i = 0; i < WM / TILE; i++)
        for (int j = 0; j < WN / TILE; j++)
            wmma::fill_fragment(sum[i][j], 0.0f);

    for (int slice = -1; slice * BK < k; slice++) { /* slice -1 only fetches the first one */
        bool more = (slice + 1) * BK < k;
        if (more) { /* start the loads of the next slice: nothing waits for them yet */
            int k0 = (slice + 1) * BK;
            for (int i = 0; i < A_LOADS; i++) {
                int at = (thread + i * THREADS) * 8;
                next_a[i] = load_8(a, m, k, row0 + at / BK, k0 + at % BK);
            }
            for (int i = 0; i < B_LOADS; i++) {
                int at = (thread + i * THREADS) * 8;
                next_b[i] = load_8(b, k, n, k0 + at / BN, col0 + at % BN);
            }
        }
        if (slice >= 0) { /* multiply this one */
            const number *a_now = as + slice % 2 * BM * LDA + wrow * LDA, *b_now = bs + slice % 2 * BK * LDB + wcol;
            for (int kk = 0; kk < BK; kk += TILE) {
                a_tile fa[WM / TILE];
                b_tile fb[WN / TILE];
                for (int i = 0; i < WM / TILE; i++)
                    wmma::load_matrix_sync(fa[i], a_now + i * TILE * LDA + kk, LDA);
                for (int j = 0; j < WN / TILE; j++)
                    wmma::load_matrix_sync(fb[j], b_now + kk * LDB + j * TILE, LDB);
                for (int i = 0; i < WM / TILE; i++)
                    for (int j = 0; j < WN / TILE; j++)
                        wmma::mma_sync(sum[i][j], fa[i], fb[j], sum[i][j]);
            }
        }
        if (more) { /* the other buffer: its readers passed the last barrier */
            number *a_next = as + (slice + 1) % 2 * BM * LDA, *b_next = bs + (slice + 1) % 2 * BK * LDB;
            for (int i = 0; i < A_LOADS; i++) {
                int at = (thread + i * THREADS) * 8;
                *(uint4 *)(a_next + at / BK * LDA + at % BK) = next_a[i];
            }
            for (int i = 0; i < B_LOADS; i++) {
                int at = (thread + i * THREADS) * 8;
                *(uint4 *)(b_next + at / BN * LDB + at % BN) = next_b[i];
            }
        }
        __syncthreads();
    }

    /* A fragment can only be stored whole, and at the edges of D a part of it lies outside. So each warp puts its tiles
       one by one into shared memory, which is free now, and copies what lies inside: 8 numbers per thread. */
    float *patch = (float *)a_lines + warp * TILE * LDD;
    for (int i = 0; i < WM / TILE; i++)
        for (int j = 0; j < WN / TILE; j++) {
            int r = lane / 2, c = lane % 2 * 8, row = row0 + wrow + i * TILE + r, col = col0 + wcol + j * TILE + c;
            wmma::store_matrix_sync(patch, sum[i][j], LDD, wmma::mem_row_major);
            __syncwarp(); /* written by all lanes, read by all: only this orders it */
            if (row < m && col < n) {
                const float4 *from = (const float4 *)(patch + r * LDD + c);
                float4 *to = (float4 *)(d + (size_t)row * n + col);
                to[0] = from[0];
                to[1] = from[1];
            }
            __syncwarp();
        }
}
static const char *step_2(amp_ctx *ctx, const product *p) {
    if (p->n % 8 || p->k % 8) return "n and k must be multiples of 8: each row must begin at a multiple of 16 bytes";
    cudaLaunchConfig_t c = launch_shape(ctx, dim3(blocks(p->n, BN), blocks(p->m, BM)), dim3(THREADS));
    CUDA(cudaLaunchKernelEx(&c, blocked, p->a, p->b, p->d, p->m, p->n, p->k));
    return NULL;
}

/* ==== step 3: the wrapper ============================================================================================
   amp_gemm takes any sizes, leading dimensions, transposes and batches, adds beta * C and a bias, and applies an
   activation. On a GPU it asks cuBLASLt, which has many kernels like `blocked`, written for each kind of GPU, and
   chooses one for these sizes. Its sums are FP32, too. What separates step 2 from it are copies that bypass the
   registers, wider instructions of newer GPUs (wgmma), better layouts than padding, and the choice of block sizes. */

static const char *step_3(amp_ctx *ctx, const product *p) {
    amp_gemm_desc g = AMP_ZERO;
    g.m = (size_t)p->m;
    g.n = (size_t)p->n;
    g.k = (size_t)p->k;
    g.a = amp_arr((void *)p->a, DTYPE);
    g.b = amp_arr((void *)p->b, DTYPE);
    g.d = amp_arr(p->d, AMP_F32);
    AMP(amp_gemm(ctx, &g));
    return NULL;
}

/* ==== checks and times ============================================================================================ */

typedef const char *step_fn(amp_ctx *ctx, const product *p);
static const struct step {
    const char *name;
    step_fn *run;
    double intensity; /* operations per byte that its threads fetch from global memory; 0: not ours to know */
    int size, right;  /* timed with (0: --size); of the shapes below, how many it takes */
} steps[] = {
    {"step 0   FP32, one thread per element", step_0, 0.25, 0, 6},
    {"step 1a  WMMA, one warp, one tile", step_1a, 8, TILE, 1},
    {"step 1b  WMMA, one warp per tile", step_1b, 8, 0, 3},
    {"step 2   WMMA, shared memory", step_2, 2.0 * BM * BN / (sizeof(number) * (BM + BN)), 0, 5},
    {"step 3   amp_gemm", step_3, 0, 0, 6},
};
enum { STEPS = sizeof steps / sizeof steps[0], SHAPES = 6, GUARD = 64, RUNS = 11 };
static const int shapes[SHAPES][3] = {
    {16, 16, 16}, {48, 32, 64}, {128, 128, 96}, {160, 136, 80}, {33, 40, 24}, {17, 19, 23}};

typedef struct data { /* on the host; the product has it on the device */
    float *a, *b, *d;
    product p;
} data;

static void *upload(amp_ctx *ctx, const void *host, size_t bytes) {
    void *p;
    AMP(amp_alloc(ctx, &p, bytes, NULL));
    AMP(amp_copy(ctx, p, host, bytes));
    return p;
}
static float *random_matrix(
    amp_ctx *ctx, size_t count, uint64_t seed, uint64_t which, const float **in_32, const number **in_16) {
    float *x = (float *)malloc(count * sizeof *x);
    number *rounded = (number *)malloc(count * sizeof *rounded);
    if (!x || !rounded) {
        fputs("out of memory\n", stderr);
        exit(1);
    }
    for (size_t i = 0; i < count; i++) {
        amp_store(rounded, DTYPE, i, (float)amp_random(seed, which, i) / 2147483648.0f - 1); /* -1 .. 1 */
        x[i] = amp_load(rounded, DTYPE, i);
    }
    *in_32 = (const float *)upload(ctx, x, count * sizeof *x);
    *in_16 = (const number *)upload(ctx, rounded, count * sizeof *rounded);
    free(rounded);
    return x;
}
static void poison(
    amp_ctx *ctx, data *t) { /* D: NaN, so that an element that nobody writes is seen; after it, a guard */
    size_t bytes = ((size_t)t->p.m * t->p.n + GUARD) * sizeof(float);
    memset(t->d, 0xff, bytes);
    AMP(amp_copy(ctx, t->p.d, t->d, bytes));
}
static void data_create(amp_ctx *ctx, data *t, int m, int n, int k, uint64_t seed) {
    t->p.m = m;
    t->p.n = n;
    t->p.k = k;
    t->a = random_matrix(ctx, (size_t)m * k, seed, 0, &t->p.a32, &t->p.a);
    t->b = random_matrix(ctx, (size_t)k * n, seed, 1, &t->p.b32, &t->p.b);
    t->d = (float *)malloc(((size_t)m * n + GUARD) * sizeof(float));
    if (!t->d) {
        fputs("out of memory\n", stderr);
        exit(1);
    }
    memset(t->d, 0xff, ((size_t)m * n + GUARD) * sizeof(float));
    t->p.d = (float *)upload(ctx, t->d, ((size_t)m * n + GUARD) * sizeof(float));
}
static void data_destroy(amp_ctx *ctx, data *t) {
    void *device[] = {(void *)t->p.a32, (void *)t->p.b32, (void *)t->p.a, (void *)t->p.b, t->p.d};
    for (void *p : device)
        AMP(amp_free(ctx, p));
    free(t->a);
    free(t->b);
    free(t->d);
}

/* The largest error of D, as a share of the bound (k + 4) * 2^-23 * sum |a||b| against the sum in double; > 1 or NaN:
   wrong. An FP32 addition rounds by at most 2^-24 of its result; Tensor Cores cut off instead, which is twice that:
   the bound that amp.h gives, too.
   Every element is looked at, or 4096 random ones of a large matrix. */
static double worst_error(amp_ctx *ctx, data *t, uint64_t seed) {
    size_t m = (size_t)t->p.m, n = (size_t)t->p.n, k = (size_t)t->p.k, all = m * n,
           some = all * k <= 4194304 ? all : 4096;
    double worst = 0;
    AMP(amp_copy(ctx, t->d, t->p.d, (all + GUARD) * sizeof(float)));
    for (size_t s = 0; s < some; s++) {
        size_t e =
            some == all ? s : ((uint64_t)amp_random(seed, 2, 2 * s) << 32 | amp_random(seed, 2, 2 * s + 1)) % all;
        double sum = 0, size = 0, error;
        for (size_t i = 0; i < k; i++) {
            double x = (double)t->a[e / n * k + i] * (double)t->b[i * n + e % n];
            sum += x;
            size += fabs(x);
        }
        error = fabs((double)t->d[e] - sum) / ((double)(k + 4) * ldexp(size, -23));
        if (!(error <= worst)) worst = error; /* NaN, too */
    }
    for (size_t i = all; i < all + GUARD; i++) {
        uint32_t bits;
        memcpy(&bits, t->d + i, sizeof bits);
        if (bits != 0xffffffffu) return INFINITY; /* written past the end */
    }
    return worst;
}

static int check(amp_ctx *ctx, const step *s, uint64_t seed) { /* 1: right where it should be, and says so where not */
    int right = 0, refused = 0, wrong = 0;
    for (int i = 0; i < SHAPES; i++) {
        int m = shapes[i][0], n = shapes[i][1], k = shapes[i][2];
        data t;
        data_create(ctx, &t, m, n, k, seed + (uint64_t)i);
        if (s->run(ctx, &t.p))
            refused++;
        else {
            double worst = worst_error(ctx, &t, seed);
            if (worst <= 1)
                right++;
            else {
                wrong++;
                fprintf(stderr, "%s: wrong for %d x %d x %d, seed %llu: error %g of the bound\n", s->name, m, n, k,
                    (unsigned long long)seed, worst);
            }
        }
        data_destroy(ctx, &t);
    }
    printf("%-40s right for %d shapes, refuses %d\n", s->name, right, refused);
    return !wrong && right == s->right && refused == SHAPES - s->right;
}

static int by_size(const void *x, const void *y) {
    return (*(const float *)x > *(const float *)y) - (*(const float *)x < *(const float *)y);
}
static float median_ms(
    amp_ctx *ctx, const step *s, const product *p) { /* by the GPU's own clock; the first run does not count */
    float ms[RUNS];
    cudaEvent_t from, to;
    CUDA(cudaEventCreate(&from));
    CUDA(cudaEventCreate(&to));
    s->run(ctx, p);
    for (int i = 0; i < RUNS; i++) {
        CUDA(cudaEventRecord(from, amp_cuda_stream(ctx)));
        s->run(ctx, p);
        CUDA(cudaEventRecord(to, amp_cuda_stream(ctx)));
        CUDA(cudaEventSynchronize(to));
        CUDA(cudaEventElapsedTime(&ms[i], from, to));
    }
    CUDA(cudaEventDestroy(from));
    CUDA(cudaEventDestroy(to));
    qsort(ms, RUNS, sizeof ms[0], by_size);
    return ms[RUNS / 2];
}
static int time_all(amp_ctx *ctx, int size, uint64_t seed) { /* 1: all right */
    double tflops[STEPS], worst[STEPS];
    float ms[STEPS];
    const char *no[STEPS];
    int ok = 1;
    for (int pass = 0; pass < 2; pass++) { /* one set of matrices in memory at a time */
        data t;
        int side = pass ? TILE : size;
        data_create(ctx, &t, side, side, side, seed);
        for (int i = 0; i < STEPS; i++) {
            if ((steps[i].size != 0) != (pass != 0)) continue;
            poison(ctx, &t);
            no[i] = steps[i].run(ctx, &t.p);
            if (no[i]) continue;
            ms[i] = median_ms(ctx, &steps[i], &t.p);
            tflops[i] = 2.0 * side * side * side / ms[i] * 1e-9;
            worst[i] = worst_error(ctx, &t, seed);
            if (!(worst[i] <= 1)) ok = 0;
        }
        data_destroy(ctx, &t);
    }
    printf("\nm = n = k = %d (step 1a: 16), %s in, FP32 sums; median of %d runs on %s\n\n", size, amp_dtype_name(DTYPE),
        RUNS, amp_ctx_name(ctx));
    printf("%-40s %10s %9s %10s %13s %12s\n", "", "ms", "TFLOP/s", "of step 3", "FLOP per byte", "error/bound");
    for (int i = 0; i < STEPS; i++) {
        char intensity[16] = "-";
        if (steps[i].intensity > 0) snprintf(intensity, sizeof intensity, "%g", steps[i].intensity);
        if (no[i])
            printf("%-40s refused: %s\n", steps[i].name, no[i]);
        else
            printf("%-40s %10.4f %9.3g %8.1f %% %13s %12.3f\n", steps[i].name, (double)ms[i], tflops[i],
                100 * tflops[i] / tflops[STEPS - 1], intensity, worst[i]);
    }
    return ok;
}

static int whole(const char *text) { /* 0 if it is no whole number of the range */
    char *end;
    long n = strtol(text, &end, 10);
    return end != text && !*end && n > 0 && n <= 32768 ? (int)n : 0;
}

int main(int argc, char **argv) {
    amp_ctx *ctx = NULL;
    int only_check = 0, size = 4096, ok = 1;
    uint64_t seed = 1;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--check") == 0)
            only_check = 1;
        else if (strcmp(argv[i], "--size") == 0 && i + 1 < argc)
            size = whole(argv[++i]);
        else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            seed = strtoull(argv[++i], NULL, 10);
        else
            size = 0;
    }
    if (!size) {
        fprintf(stderr, "usage: %s [--check] [--size 1..32768] [--seed N]\n", argv[0]);
        return 2;
    }
    if (!amp_cuda_available()) {
        puts("skipped: no CUDA device");
        return 77;
    }
    AMP(amp_cuda_create(&ctx, NULL));
    for (int i = 0; i < STEPS; i++)
        ok &= check(ctx, &steps[i], seed);
    if (!only_check) ok &= time_all(ctx, size, seed);
    amp_ctx_destroy(ctx);
    puts(ok ? "passed" : "FAILED");
    return ok ? 0 : 1;
}
