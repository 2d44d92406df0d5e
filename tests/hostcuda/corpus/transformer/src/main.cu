// One block of a transformer: fourteen files, a Makefile, C, C++ and CUDA.
#include "config.h"
#include "layers.h"
#include "reference.h"
#include "weights.h"
#include <cmath>
static std::vector<float> weights(int n, unsigned seed, float scale) {
    std::vector<float> w(n);
    fill_weights(w.data(), n, seed, scale);
    return w;
}
int main() {
    auto x = weights(TOKENS * WIDTH, 1, 1), gain = weights(WIDTH, 2, 1), qkv = weights(WIDTH * 3 * WIDTH, 3, 0.5f);
    auto proj = weights(WIDTH * WIDTH, 4, 0.4f), up = weights(WIDTH * INNER, 5, 0.4f),
         down = weights(INNER * WIDTH, 6, 0.3f);
    Tensor dx(x), dgain(gain), dqkv(qkv), dproj(proj), dup(up), ddown(down);
    Tensor n(TOKENS * WIDTH), t(TOKENS * 3 * WIDTH), a(TOKENS * WIDTH), p(TOKENS * WIDTH), h(TOKENS * INNER);
    layer_norm(dx, dgain, n, TOKENS, WIDTH);
    linear(n, dqkv, t, TOKENS, WIDTH, 3 * WIDTH);
    attention(t, a);
    linear(a, dproj, p, TOKENS, WIDTH, WIDTH);
    add(dx, p);
    layer_norm(dx, dgain, n, TOKENS, WIDTH);
    linear(n, dup, h, TOKENS, WIDTH, INNER);
    gelu(h);
    linear(h, ddown, p, TOKENS, INNER, WIDTH);
    add(dx, p);
    CUDA_CHECK(cudaDeviceSynchronize());
    auto got = dx.host();
    auto want = reference(x, gain, qkv, proj, up, down);
    double worst = 0;
    for (size_t i = 0; i < want.size(); i++)
        worst = fmax(worst, fabs(want[i] - got[i]));
    printf("transformer: %s, worst difference %.1e\n", worst < 1e-4 ? "ok" : "WRONG", worst);
    return worst < 1e-4 ? 0 : 1;
}
