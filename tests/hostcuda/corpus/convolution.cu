/* convolution.cu - a separable filter in constant memory, tiles with a halo in shared memory; a matrix product of tiles
 * whose size is known at the launch (extern __shared__); a stencil in three dimensions; as courses have them. */
#include <assert.h>
#include <cuda_runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RADIUS               3
#define WIDTH                (2 * RADIUS + 1)
#define TILE_X               16
#define TILE_Y               8
#define checkCudaErrors(val) check((val), #val, __FILE__, __LINE__)
template <typename T> void check(T result, char const *const func, const char *const file, int const line) {
    if (result) {
        fprintf(stderr, "CUDA error at %s:%d code=%d(%s) \"%s\" \n", file, line, static_cast<unsigned int>(result),
            cudaGetErrorName((cudaError_t)result), func);
        cudaDeviceReset();
        exit(EXIT_FAILURE);
    }
}
#define getLastCudaError(msg) __getLastCudaError(msg, __FILE__, __LINE__)
inline void __getLastCudaError(const char *errorMessage, const char *file, const int line) {
    cudaError_t err = cudaGetLastError();
    if (cudaSuccess != err) {
        fprintf(stderr, "%s(%i) : %s : (%d) %s.\n", file, line, errorMessage, (int)err, cudaGetErrorString(err));
        exit(EXIT_FAILURE);
    }
}
__constant__ float c_kernel[WIDTH];

__global__ void rows(float *dst, const float *src, int w, int h) {
    __shared__ float tile[TILE_Y][TILE_X + 2 * RADIUS];
    int x = blockIdx.x * TILE_X + threadIdx.x, y = blockIdx.y * TILE_Y + threadIdx.y;
    for (int i = threadIdx.x; i < TILE_X + 2 * RADIUS; i += TILE_X) {
        int sx = blockIdx.x * TILE_X + i - RADIUS;
        tile[threadIdx.y][i] = sx >= 0 && sx < w && y < h ? src[y * w + sx] : 0.f;
    }
    __syncthreads();
    if (x >= w || y >= h) return;
    float sum = 0;
#pragma unroll
    for (int j = -RADIUS; j <= RADIUS; j++)
        sum += c_kernel[RADIUS - j] * tile[threadIdx.y][threadIdx.x + j + RADIUS];
    dst[y * w + x] = sum;
}
__global__ void matmul(const float *a, const float *b, float *c, int n, int tile) {
    extern __shared__ float buffer[];
    float *as = buffer, *bs = &buffer[tile * tile];
    int row = blockIdx.y * tile + threadIdx.y, col = blockIdx.x * tile + threadIdx.x;
    float sum = 0.0f;
    for (int t = 0; t < (n + tile - 1) / tile; ++t) {
        int k = t * tile;
        as[threadIdx.y * tile + threadIdx.x] = row < n && k + threadIdx.x < n ? a[row * n + k + threadIdx.x] : 0;
        bs[threadIdx.y * tile + threadIdx.x] = col < n && k + threadIdx.y < n ? b[(k + threadIdx.y) * n + col] : 0;
        __syncthreads();
        for (int i = 0; i < tile; ++i)
            sum += as[threadIdx.y * tile + i] * bs[i * tile + threadIdx.x];
        __syncthreads();
    }
    if (row < n && col < n) c[row * n + col] = sum;
}
struct Grid3 {
    int nx, ny, nz;
    __host__ __device__ int at(int x, int y, int z) const { return (z * ny + y) * nx + x; }
};
__global__ void heat(const double *in, double *out, Grid3 g, double k) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y,
              z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x >= g.nx || y >= g.ny || z >= g.nz) return;
    assert(g.at(x, y, z) < g.nx * g.ny * g.nz);
    double v = in[g.at(x, y, z)];
    if (x == 0 || y == 0 || z == 0 || x == g.nx - 1 || y == g.ny - 1 || z == g.nz - 1) {
        out[g.at(x, y, z)] = v;
        return;
    }
    out[g.at(x, y, z)] = v +
        k *
            (in[g.at(x - 1, y, z)] + in[g.at(x + 1, y, z)] + in[g.at(x, y - 1, z)] + in[g.at(x, y + 1, z)] +
                in[g.at(x, y, z - 1)] + in[g.at(x, y, z + 1)] - 6 * v);
}
int main(int argc, char **argv) {
    const int w = 37, h = 21, n = 27, tile = 8;
    float kernel[WIDTH], *src, *dst, *d_src, *d_dst;
    for (int i = 0; i < WIDTH; i++)
        kernel[i] = (float)(i + 1) / 28;
    src = (float *)malloc(w * h * sizeof(float));
    dst = (float *)malloc(w * h * sizeof(float));
    for (int i = 0; i < w * h; i++)
        src[i] = (float)(i % 17);
    checkCudaErrors(cudaMalloc((void **)&d_src, w * h * sizeof(float)));
    checkCudaErrors(cudaMalloc((void **)&d_dst, w * h * sizeof(float)));
    checkCudaErrors(cudaMemcpyToSymbol(c_kernel, kernel, sizeof(kernel)));
    checkCudaErrors(cudaMemcpy(d_src, src, w * h * sizeof(float), cudaMemcpyHostToDevice));
    rows<<<dim3((w + TILE_X - 1) / TILE_X, (h + TILE_Y - 1) / TILE_Y), dim3(TILE_X, TILE_Y)>>>(d_dst, d_src, w, h);
    getLastCudaError("rows() execution failed\n");
    checkCudaErrors(cudaMemcpy(dst, d_dst, w * h * sizeof(float), cudaMemcpyDeviceToHost));
    double worst = 0;
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++) {
            double s = 0;
            for (int j = -RADIUS; j <= RADIUS; j++)
                if (x + j >= 0 && x + j < w) s += (double)kernel[RADIUS - j] * src[y * w + x + j];
            worst = fmax(worst, fabs(s - dst[y * w + x]));
        }
    float *a, *b, *c;
    checkCudaErrors(cudaMallocManaged(&a, 3 * n * n * sizeof(float)));
    b = a + n * n;
    c = b + n * n;
    for (int i = 0; i < 2 * n * n; i++)
        a[i] = (float)(i % 11 - 5);
    matmul<<<dim3((n + tile - 1) / tile, (n + tile - 1) / tile), dim3(tile, tile), 2 * tile * tile * sizeof(float)>>>(
        a, b, c, n, tile);
    checkCudaErrors(cudaDeviceSynchronize());
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double s = 0;
            for (int k = 0; k < n; k++)
                s += (double)a[i * n + k] * b[k * n + j];
            worst = fmax(worst, fabs(s - c[i * n + j]));
        }
    const Grid3 g = {11, 9, 7};
    const size_t cells = g.nx * g.ny * g.nz, bytes = cells * sizeof(double);
    double *in = (double *)calloc(cells, sizeof(double)), *ref = (double *)malloc(bytes),
           *out = (double *)malloc(bytes), *d_in, *d_out;
    in[g.at(5, 4, 3)] = 100;
    checkCudaErrors(cudaMalloc(&d_in, bytes));
    checkCudaErrors(cudaMalloc(&d_out, bytes));
    checkCudaErrors(cudaMemcpy(d_in, in, bytes, cudaMemcpyHostToDevice));
    for (int step = 0; step < 4; step++) {
        heat<<<dim3(3, 3, 2), dim3(4, 4, 4)>>>(d_in, d_out, g, 0.1);
        double *t = d_in;
        d_in = d_out;
        d_out = t;
        memcpy(ref, in, bytes);
        for (int z = 1; z < g.nz - 1; z++)
            for (int y = 1; y < g.ny - 1; y++)
                for (int x = 1; x < g.nx - 1; x++)
                    ref[g.at(x, y, z)] = in[g.at(x, y, z)] +
                        0.1 *
                            (in[g.at(x - 1, y, z)] + in[g.at(x + 1, y, z)] + in[g.at(x, y - 1, z)] +
                                in[g.at(x, y + 1, z)] + in[g.at(x, y, z - 1)] + in[g.at(x, y, z + 1)] -
                                6 * in[g.at(x, y, z)]);
        memcpy(in, ref, bytes);
    }
    checkCudaErrors(cudaMemcpy(out, d_in, bytes, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < cells; i++)
        worst = fmax(worst, fabs(out[i] - in[i]));
    printf("convolution: %s, worst difference %.1e\n", worst < 1e-4 ? "ok" : "WRONG", worst);
    free(src);
    free(dst);
    free(in);
    free(ref);
    free(out);
    checkCudaErrors(cudaFree(d_src));
    checkCudaErrors(cudaFree(d_dst));
    checkCudaErrors(cudaFree(a));
    checkCudaErrors(cudaFree(d_in));
    checkCudaErrors(cudaFree(d_out));
    return worst < 1e-4 ? 0 : 1;
}
