/* softmax.cu - rows of logits, one block per row, online in one pass; temperature by a template, double and float. */
#include <cfloat>
#include <cmath>
#include <cstdio>
#include <cuda_runtime.h>
template <typename T> struct Running { T most, sum; };
template <typename T> __device__ Running<T> join(Running<T> a, Running<T> b) {
    T most = a.most > b.most ? a.most : b.most;
    return {most, a.sum * (T)exp((double)(a.most - most)) + b.sum * (T)exp((double)(b.most - most))};
}
template <typename T, int THREADS> __global__ void softmax(const T *in, T *out, int cols, T temperature) {
    __shared__ Running<T> part[THREADS];
    const T *row = in + (size_t)blockIdx.x * cols;
    Running<T> mine = {(T)-FLT_MAX, 0};
    for (int i = threadIdx.x; i < cols; i += THREADS)
        mine = join(mine, Running<T>{row[i] / temperature, (T)1});
    part[threadIdx.x] = mine;
    __syncthreads();
    for (int step = THREADS / 2; step; step /= 2) {
        if (threadIdx.x < step) part[threadIdx.x] = join(part[threadIdx.x], part[threadIdx.x + step]);
        __syncthreads();
    }
    for (int i = threadIdx.x; i < cols; i += THREADS)
        out[(size_t)blockIdx.x * cols + i] = (T)exp((double)(row[i] / temperature - part[0].most)) / part[0].sum;
}
template <typename T> static double worst_of(T temperature) {
    const int rows = 5, cols = 150;
    T h[rows * cols], got[rows * cols], *in, *out;
    for (int i = 0; i < rows * cols; i++)
        h[i] = (T)((i * 37 % 101) / 10.0 - 5);
    cudaMalloc(&in, sizeof h);
    cudaMalloc(&out, sizeof h);
    cudaMemcpy(in, h, sizeof h, cudaMemcpyHostToDevice);
    softmax<T, 64><<<rows, 64>>>(in, out, cols, temperature);
    cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost);
    cudaFree(in);
    cudaFree(out);
    double worst = 0;
    for (int r = 0; r < rows; r++) {
        double all = 0;
        for (int i = 0; i < cols; i++)
            all += std::exp((double)h[r * cols + i] / temperature);
        for (int i = 0; i < cols; i++)
            worst =
                std::fmax(worst, std::fabs(std::exp((double)h[r * cols + i] / temperature) / all - got[r * cols + i]));
    }
    return worst;
}
int main() {
    double f = worst_of<float>(2), d = worst_of<double>(2);
    bool ok = f < 1e-6 && d < 1e-14;
    printf("softmax: %s, float %.1e, double %.1e\n", ok ? "ok" : "WRONG", f, d);
    return !ok;
}
