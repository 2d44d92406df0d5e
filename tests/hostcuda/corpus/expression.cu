/* expression.cu - expression templates in a header: a sum of products becomes one kernel, its type is the formula. */
#include "expression.hpp"
#include <cmath>
#include <cstdio>
struct largest {
    template <class T> __host__ __device__ T operator()(T a, T b) const { return a < b ? b : a; }
};
int main() try {
    const std::size_t n = 1000;
    std::vector<float> a(n), b(n);
    for (std::size_t i = 0; i < n; i++) {
        a[i] = std::sin(0.1f * i);
        b[i] = 0.001f * i;
    }
    expr::array<float> x(a), y(b), z(n);
    z = expr::tanh(2.0f * x() + x() * y()) - 0.5f;
    float most = expr::reduce(z() * z(), n, largest{}, 0.0f),
          sum = expr::reduce(x() + y(), n, [] __host__ __device__(float p, float q) { return p + q; }, 0.0f);
    double worst = 0, m = 0, s = 0;
    std::vector<float> h = z.host();
    for (std::size_t i = 0; i < n; i++) {
        double v = std::tanh(2.0 * a[i] + (double)a[i] * b[i]) - 0.5;
        worst = std::fmax(worst, std::fabs(v - h[i]));
        m = std::fmax(m, v * v);
        s += (double)a[i] + b[i];
    }
    bool good = worst < 1e-6 && std::fabs(m - most) < 1e-5 && std::fabs(s - sum) < 1e-2;
    std::printf("expression: %s, worst difference %.1e\n", good ? "ok" : "WRONG", worst);
    return !good;
} catch (const std::exception &e) {
    std::printf("expression: %s\n", e.what());
    return 1;
}
