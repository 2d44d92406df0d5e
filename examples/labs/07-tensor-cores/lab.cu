/* Lab 7: y = x w^T on Tensor Cores. The page is README.md, beside this file; `make lab N=7` builds, runs and checks.
 *
 * x is [m, k], w is [n, k] and y is [m, n], row by row without gaps; m, n and k are any numbers from 1 on. x and w are
 * FP16, y and all sums are FP32. */
#include <cuda_fp16.h>
#include <mma.h>
#include "lab.h"
using namespace nvcuda;

enum { TILE = 16, WARPS = 4, THREADS = 32 * WARPS }; /* a block makes 64 x 16 elements of y: each warp one tile */
enum { ROWS = WARPS * TILE };
struct __align__(32) line { __half h[TILE]; }; /* one row of a tile: WMMA wants tiles at a multiple of 32 bytes */

static __global__ void product(const __half *x, const __half *w, float *y, int m, int n, int k) {
    __shared__ line xs[ROWS], ws[TILE]; /* a slice of x and of w, 16 values of k wide */
    __shared__ float ys[WARPS][TILE * TILE];
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    int row0 = (int)blockIdx.y * ROWS, col0 = (int)blockIdx.x * TILE; /* of this block, in y */

    /* YOUR PART. 1. Fill an accumulator fragment with 0.
     *            2. For each slice of 16 values of k: all threads copy 64 x 16 values of x into xs, 16 x 16 of w into
     *               ws, and 0 for what lies outside of the matrix; each warp loads its two fragments and multiplies.
     *               w is stored [n, k], and the product wants it [k, n].
     *            3. Store the tile in ys[warp], and copy what lies inside of y.
     * Where must the threads wait for each other? */
    (void)x, (void)w, (void)y, (void)m, (void)n, (void)k;
    (void)xs, (void)ws, (void)ys, (void)warp, (void)lane, (void)row0, (void)col0;
}

/* The checker calls this. */
void lab_product(const __half *x, const __half *w, float *y, int m, int n, int k) {
    LAB_TODO("the body of product"); /* remove this line then */
    dim3 grid((unsigned)((n + TILE - 1) / TILE), (unsigned)((m + ROWS - 1) / ROWS));
    product<<<grid, THREADS>>>(x, w, y, m, n, k);
}
