/* An LSTM over T steps with its backward pass, of plain kernels in three files; its gradient is compared with
 * differences. */
#include "lstm.cuh"
#include <math.h>
#include <vector>
static std::vector<float *> areas;
static float *device(size_t n, const float *from = nullptr) {
    float *p;
    CHECK(cudaMalloc((void **)&p, n * sizeof(float)));
    areas.push_back(p);
    if (from) {
        CHECK(cudaMemcpy(p, from, n * sizeof(float), cudaMemcpyHostToDevice));
    } else
        CHECK(cudaMemset(p, 0, n * sizeof(float)));
    return p;
}
static const int NX = X * 4 * H, NH = H * 4 * H, NB = 4 * H, S = B * H;
struct Net {
    float *wx, *wh, *b, *dwx, *dwh, *db, *x[T], *h[T + 1], *c[T + 1], *z, *act[T], *dh, *dc, *dz, *target, *loss;
};
static float forward(Net &n) {
    float loss;
    for (int t = 0; t < T; t++) {
        gates<<<dim3((4 * H + 31) / 32, B), 32>>>(n.x[t], n.h[t], n.wx, n.wh, n.b, n.z);
        cell<<<(S + 31) / 32, 32>>>(n.z, n.c[t], n.c[t + 1], n.h[t + 1], n.act[t]);
    }
    CHECK(cudaMemset(n.loss, 0, sizeof(float)));
    mse<<<(S + 31) / 32, 32>>>(n.h[T], n.target, n.dh, n.loss);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(&loss, n.loss, sizeof loss, cudaMemcpyDeviceToHost));
    return loss;
}
static void backward(Net &n) {
    CHECK(cudaMemset(n.dc, 0, S * sizeof(float)));
    for (int t = T - 1; t >= 0; t--) {
        cell_back<<<(S + 31) / 32, 32>>>(n.act[t], n.c[t], n.c[t + 1], n.dh, n.dc, n.dz);
        accumulate<<<(NX + 63) / 64, 64>>>(n.dz, n.x[t], X, n.dwx);
        accumulate<<<(NH + 63) / 64, 64>>>(n.dz, n.h[t], H, n.dwh);
        bias_gradient<<<4 * H, B>>>(n.dz, n.db);
        back_to_h<<<(S + 31) / 32, 32>>>(n.dz, n.wh, n.dh);
    }
    CHECK(cudaGetLastError());
}
int main() {
    std::vector<float> r(NX + NH + NB + T * B * X + S);
    srand(3);
    for (float &v : r)
        v = (rand() / (float)RAND_MAX - 0.5f);
    Net n;
    const float *p = r.data();
    n.wx = device(NX, p);
    n.wh = device(NH, p + NX);
    n.b = device(NB, p + NX + NH);
    for (int t = 0; t < T; t++) {
        n.x[t] = device(B * X, p + NX + NH + NB + t * B * X);
        n.act[t] = device(4 * S);
    }
    for (int t = 0; t <= T; t++) {
        n.h[t] = device(S);
        n.c[t] = device(S);
    }
    n.target = device(S, p + NX + NH + NB + T * B * X);
    n.dwx = device(NX);
    n.dwh = device(NH);
    n.db = device(NB);
    n.z = device(4 * S);
    n.dz = device(4 * S);
    n.dh = device(S);
    n.dc = device(S);
    n.loss = device(1);
    float first = forward(n), loss = 0;
    backward(n);
    double worst = 0;
    std::vector<float> g(NH);
    CHECK(cudaMemcpy(g.data(), n.dwh, NH * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < NH; i += 97) {
        const float e = 0.02f;
        float w = r[NX + i], up = w + e, down = w - e, a, b;
        CHECK(cudaMemcpy(n.wh + i, &up, sizeof w, cudaMemcpyHostToDevice));
        a = forward(n);
        CHECK(cudaMemcpy(n.wh + i, &down, sizeof w, cudaMemcpyHostToDevice));
        b = forward(n);
        CHECK(cudaMemcpy(n.wh + i, &w, sizeof w, cudaMemcpyHostToDevice));
        worst = fmax(worst, fabs((a - b) / (2 * e) - g[i]));
    }
    for (int step = 0; step < 5; step++) {
        update<<<2, 64>>>(n.wx, n.dwx, NX, 0.5f);
        update<<<2, 64>>>(n.wh, n.dwh, NH, 0.5f);
        update<<<1, 64>>>(n.b, n.db, NB, 0.5f);
        loss = forward(n);
        backward(n);
    }
    unsigned long long calls = 0;
    CHECK(cudaMemcpyFromSymbol(&calls, g_calls, sizeof calls));
    bool ok = worst < 2e-4 && loss < first && calls > 0;
    printf(
        "dlink: %s, loss %.4f to %.4f, worst difference of a gradient %.1e\n", ok ? "ok" : "WRONG", first, loss, worst);
    for (float *q : areas)
        CHECK(cudaFree(q));
    CHECK(cudaDeviceReset());
    return ok ? 0 : 1;
}
