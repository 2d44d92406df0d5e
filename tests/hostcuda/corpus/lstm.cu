/* lstm.cu - one LSTM cell over a sequence, its gates in one kernel, products by another; a CPU cell is the
 * reference. */
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>
#define HIDDEN 24
#define INPUT  10
#define STEPS  12
#define BATCH  4

__device__ __forceinline__ float sigmoid(float x) { return 1.0f / (1.0f + __expf(-x)); }

/* gates[b][4 * HIDDEN] = bias + x W + h U */
__global__ void gates(const float *x, const float *h, const float *w, const float *u, const float *bias, float *out) {
    int g = threadIdx.x, b = blockIdx.x;
    float sum = bias[g];
    for (int k = 0; k < INPUT; k++)
        sum += x[b * INPUT + k] * w[k * 4 * HIDDEN + g];
    for (int k = 0; k < HIDDEN; k++)
        sum += h[b * HIDDEN + k] * u[k * 4 * HIDDEN + g];
    out[b * 4 * HIDDEN + g] = sum;
}
__global__ void cell(const float *gate, float *c, float *h) {
    int j = threadIdx.x, b = blockIdx.x;
    const float *g = gate + b * 4 * HIDDEN;
    float i = sigmoid(g[j]), f = sigmoid(g[HIDDEN + j]), o = sigmoid(g[2 * HIDDEN + j]), n = tanhf(g[3 * HIDDEN + j]);
    float state = f * c[b * HIDDEN + j] + i * n;
    c[b * HIDDEN + j] = state;
    h[b * HIDDEN + j] = o * tanhf(state);
}
static std::vector<float> random_vector(size_t n, float scale) {
    std::vector<float> v(n);
    for (auto &x : v)
        x = scale * (2.0f * rand() / RAND_MAX - 1.0f);
    return v;
}
static float *upload(const std::vector<float> &v) {
    float *d = nullptr;
    cudaMalloc((void **)&d, v.size() * sizeof(float));
    cudaMemcpy(d, v.data(), v.size() * sizeof(float), cudaMemcpyHostToDevice);
    return d;
}
int main() {
    srand(time(NULL)); /* nvcc includes time.h by itself */
    srand(3);
    auto w = random_vector(INPUT * 4 * HIDDEN, 0.4f), u = random_vector(HIDDEN * 4 * HIDDEN, 0.4f),
         b = random_vector(4 * HIDDEN, 0.1f);
    auto x = random_vector(STEPS * BATCH * INPUT, 1.0f);
    std::vector<float> zero(BATCH * HIDDEN), result(BATCH * HIDDEN);
    float *dw = upload(w), *du = upload(u), *db = upload(b), *dx = upload(x), *c = upload(zero), *h = upload(zero), *g;
    cudaMalloc((void **)&g, BATCH * 4 * HIDDEN * sizeof(float));
    for (int t = 0; t < STEPS; t++) {
        gates<<<BATCH, 4 * HIDDEN>>>(dx + t * BATCH * INPUT, h, dw, du, db, g);
        cell<<<BATCH, HIDDEN>>>(g, c, h);
    }
    if (cudaGetLastError() != cudaSuccess) printf("a launch failed\n");
    cudaMemcpy(result.data(), h, result.size() * sizeof(float), cudaMemcpyDeviceToHost);
    double worst = 0;
    for (int r = 0; r < BATCH; r++) {
        std::vector<double> hc(HIDDEN), cc(HIDDEN);
        for (int t = 0; t < STEPS; t++) {
            std::vector<double> a(b.begin(), b.end());
            for (int q = 0; q < 4 * HIDDEN; q++) {
                for (int k = 0; k < INPUT; k++)
                    a[q] += x[(t * BATCH + r) * INPUT + k] * w[k * 4 * HIDDEN + q];
                for (int k = 0; k < HIDDEN; k++)
                    a[q] += hc[k] * u[k * 4 * HIDDEN + q];
            }
            auto s = [](double v) { return 1 / (1 + std::exp(-v)); };
            for (int j = 0; j < HIDDEN; j++) {
                cc[j] = s(a[HIDDEN + j]) * cc[j] + s(a[j]) * std::tanh(a[3 * HIDDEN + j]);
                hc[j] = s(a[2 * HIDDEN + j]) * std::tanh(cc[j]);
            }
        }
        for (int j = 0; j < HIDDEN; j++)
            worst = std::fmax(worst, std::fabs(hc[j] - result[r * HIDDEN + j]));
    }
    printf("lstm: %s, worst difference %.1e\n", worst < 1e-5 ? "ok" : "WRONG", worst);
    for (float *p : {dw, du, db, dx, c, h, g})
        cudaFree(p);
    return worst < 1e-5 ? 0 : 1;
}
