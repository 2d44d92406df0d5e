/* digits.cu - a classifier of ten patterns, and mistakes that leave such a one at NaN or at the accuracy of a guess.
 * -DMISTAKE=1 a block of too many threads, 2 gradients that are added to and never cleared, 3 softmax without its
 * maximum, 4 a missing barrier. docs/hostcuda.md has the table. For run_own.sh. */
#include <cmath>
#include <cstdio>
#include <cstdlib>
#ifndef MISTAKE
#define MISTAKE 0
#endif
enum { IMAGES = 40, PIXELS = 64, DIGITS = 10, WEIGHTS = PIXELS * DIGITS };

__global__ void logits(const float *x, const float *w, float *y) {
    float sum = 0;
    for (int i = 0; i < PIXELS; i++)
        sum += x[blockIdx.x * PIXELS + i] * w[i * DIGITS + threadIdx.x];
    y[blockIdx.x * DIGITS + threadIdx.x] = sum;
}
__global__ void softmax(const float *y, float *p) {
    __shared__ float e[DIGITS];
    const float *row = y + blockIdx.x * DIGITS;
    float top = row[0], sum = 0;
    for (int k = 1; k < DIGITS; k++)
        top = fmaxf(top, row[k]);
    if (MISTAKE == 3) top = 0;
    e[threadIdx.x] = expf(row[threadIdx.x] - top);
    if (MISTAKE != 4) __syncthreads();
    for (int k = 0; k < DIGITS; k++)
        sum += e[k];
    p[blockIdx.x * DIGITS + threadIdx.x] = e[threadIdx.x] / sum;
}
__global__ void gradient(const float *x, const float *p, float *g) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    if (i >= WEIGHTS) return;
    for (int n = 0; n < IMAGES; n++) {
        float target = n % DIGITS == i % DIGITS ? 1.0f : 0.0f;
        sum += x[n * PIXELS + i / DIGITS] * (p[n * DIGITS + i % DIGITS] - target);
    }
    g[i] += sum / IMAGES;
}
__global__ void descend(float *w, const float *g) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < WEIGHTS) w[i] -= 0.5f * g[i];
}
int main() {
    static float hx[IMAGES * PIXELS], hy[IMAGES * DIGITS], hw[WEIGHTS];
    float *x, *w, *y, *p, *g, scale = MISTAKE == 3 ? 300.0f : 1.0f;
    int right = 0;
    srand(2);
    for (int i = 0; i < IMAGES * PIXELS; i++)
        hx[i] = scale * ((i % PIXELS % DIGITS == i / PIXELS % DIGITS ? 1.0f : 0.0f) + 0.3f * rand() / RAND_MAX);
    for (int i = 0; i < WEIGHTS; i++)
        hw[i] = 0.1f * (rand() / (float)RAND_MAX - 0.5f);
    cudaMalloc(&x, sizeof hx);
    cudaMalloc(&w, sizeof hw);
    cudaMalloc(&y, sizeof hy);
    cudaMalloc(&p, sizeof hy);
    cudaMalloc(&g, sizeof hw);
    cudaMemcpy(x, hx, sizeof hx, cudaMemcpyHostToDevice);
    cudaMemcpy(w, hw, sizeof hw, cudaMemcpyHostToDevice);
    for (int step = 0; step < 10; step++) {
        int threads = MISTAKE == 1 ? 2048 : 256;
        logits<<<IMAGES, DIGITS>>>(x, w, y);
        softmax<<<IMAGES, DIGITS>>>(y, p);
        if (MISTAKE != 2) cudaMemset(g, 0, sizeof hw);
        gradient<<<(WEIGHTS + threads - 1) / threads, threads>>>(x, p, g);
        descend<<<3, 256>>>(w, g);
    }
    logits<<<IMAGES, DIGITS>>>(x, w, y);
    cudaMemcpy(hy, y, sizeof hy, cudaMemcpyDeviceToHost);
    for (int n = 0; n < IMAGES; n++) {
        int best = 0;
        for (int k = 1; k < DIGITS; k++)
            best = hy[n * DIGITS + k] > hy[n * DIGITS + best] ? k : best;
        right += best == n % DIGITS;
    }
    printf("%d of %d right, first logit is %s\n", right, (int)IMAGES, std::isfinite(hy[0]) ? "a number" : "NaN");
    cudaFree(x);
    cudaFree(w);
    cudaFree(y);
    cudaFree(p);
    cudaFree(g);
    return 0;
}
