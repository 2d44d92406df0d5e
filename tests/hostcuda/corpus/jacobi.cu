/* jacobi.cu - relaxation on a pitched plane, all steps in one cooperative launch, the residual by a managed
 * variable. */
#include <cooperative_groups.h>
#include <cuda_runtime.h>
#include <assert.h>
#include <math.h>
#include <stdio.h>
#define W     40
#define H     24
#define STEPS 10
namespace cg = cooperative_groups;
__managed__ double change;
__global__ void relax(double *a, double *b, size_t pitch, int steps) {
    cg::grid_group grid = cg::this_grid();
    assert(pitch % sizeof(double) == 0);
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y,
        p = pitch / sizeof(double);
    for (int s = 0; s < steps; s++) {
        if (x > 0 && x < W - 1 && y > 0 && y < H - 1) {
            b[y * p + x] = 0.25 * (a[y * p + x - 1] + a[y * p + x + 1] + a[(y - 1) * p + x] + a[(y + 1) * p + x]);
            if (s == steps - 1) atomicAdd(&change, fabs(b[y * p + x] - a[y * p + x]));
        }
        double *t = a;
        a = b;
        b = t;
        grid.sync();
    }
    if (x == 0 && y == 0) printf("jacobi: %d steps by %llu threads\n", steps, (unsigned long long)grid.size());
}
int main() {
    static double h[H][W], g[H][W], got[H][W];
    double *a, *b, moved = 0, worst = 0;
    size_t pitch, pitch_b;
    int steps = STEPS;
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            h[y][x] = g[y][x] = y == 0 ? 1 : x == 0 ? 0.5 : 0;
    cudaMallocPitch((void **)&a, &pitch, W * sizeof(double), H);
    cudaMallocPitch((void **)&b, &pitch_b, W * sizeof(double), H);
    cudaMemcpy2D(a, pitch, h, sizeof h[0], W * sizeof(double), H, cudaMemcpyHostToDevice);
    cudaMemcpy2D(b, pitch_b, h, sizeof h[0], W * sizeof(double), H, cudaMemcpyHostToDevice);
    change = 0;
    void *args[] = {&a, &b, &pitch, &steps};
    dim3 block(8, 8), grid((W + 7) / 8, (H + 7) / 8);
    if (cudaLaunchCooperativeKernel((void *)relax, grid, block, args) != cudaSuccess) printf("launch\n");
    cudaDeviceSynchronize();
    cudaMemcpy2D(got, sizeof got[0], STEPS % 2 ? b : a, pitch, W * sizeof(double), H, cudaMemcpyDeviceToHost);
    for (int s = 0; s < STEPS; s++) {
        moved = 0;
        for (int y = 1; y < H - 1; y++)
            for (int x = 1; x < W - 1; x++) {
                g[y][x] = 0.25 * (h[y][x - 1] + h[y][x + 1] + h[y - 1][x] + h[y + 1][x]);
                moved += fabs(g[y][x] - h[y][x]);
            }
        for (int y = 0; y < H; y++)
            for (int x = 0; x < W; x++)
                h[y][x] = g[y][x];
    }
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            worst = fmax(worst, fabs(got[y][x] - h[y][x]));
    int ok = worst == 0 && fabs(change - moved) < 1e-12;
    printf("jacobi: %s\n", ok ? "ok" : "WRONG");
    cudaFree(a);
    cudaFree(b);
    return !ok;
}
