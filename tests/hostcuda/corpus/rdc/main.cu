/* A wave on a ring, in three files with -rdc=true. */
#include "wave.h"
#include <cstdio>
#include <utility>
int main() {
    const int n = 100, steps = 20;
    float h[3][n], *d[3], c = 0.25f;
    int zero = 0, count = 0, wrong = 0;
    for (int i = 0; i < n; i++)
        h[0][i] = h[1][i] = i < 10 ? i / 10.0f : 0;
    for (int k = 0; k < 3; k++) {
        cudaMalloc(&d[k], sizeof h[k]);
        if (k < 2) cudaMemcpy(d[k], h[k], sizeof h[k], cudaMemcpyHostToDevice);
    }
    cudaMemcpyToSymbol(speed, &c, sizeof c);
    cudaMemcpyToSymbol(updates, &zero, sizeof zero);
    for (int s = 0; s < steps; s++) {
        step(d[s % 3], d[(s + 1) % 3], d[(s + 2) % 3], n);
        const float *b = h[s % 3], *u = h[(s + 1) % 3];
        for (int i = 0; i < n; i++)
            h[(s + 2) % 3][i] = 2.0f * u[i] - b[i] + c * (u[(i + n - 1) % n] - 2.0f * u[i] + u[(i + 1) % n]);
    }
    float got[n];
    cudaMemcpy(got, d[(steps + 1) % 3], sizeof got, cudaMemcpyDeviceToHost);
    cudaMemcpyFromSymbol(&count, updates, sizeof count);
    for (int i = 0; i < n; i++) {
        float e = got[i] - h[(steps + 1) % 3][i];
        wrong += e > 1e-4f || e < -1e-4f;
    }
    bool ok = !wrong && count == n * steps;
    std::printf("rdc: %s, %d updates\n", ok ? "ok" : "WRONG", count);
    for (float *p : d)
        cudaFree(p);
    return !ok;
}
