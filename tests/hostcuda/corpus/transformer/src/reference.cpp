#include "reference.h"
#include "config.h"
#include <cmath>
typedef std::vector<double> V;
static V norm(const V &x, const std::vector<float> &gain) {
    V y(x.size());
    for (int t = 0; t < TOKENS; t++) {
        double mean = 0, var = 0;
        for (int i = 0; i < WIDTH; i++)
            mean += x[t * WIDTH + i] / WIDTH;
        for (int i = 0; i < WIDTH; i++)
            var += std::pow(x[t * WIDTH + i] - mean, 2) / WIDTH;
        for (int i = 0; i < WIDTH; i++)
            y[t * WIDTH + i] = (x[t * WIDTH + i] - mean) / std::sqrt(var + 1e-5) * gain[i];
    }
    return y;
}
static V times(const V &x, const std::vector<float> &w, int in, int out) {
    V y(TOKENS * out);
    for (int t = 0; t < TOKENS; t++)
        for (int o = 0; o < out; o++)
            for (int i = 0; i < in; i++)
                y[t * out + o] += x[t * in + i] * w[i * out + o];
    return y;
}
static V attend(const V &qkv) {
    V y(TOKENS * WIDTH);
    for (int h = 0; h < HEADS; h++)
        for (int q = 0; q < TOKENS; q++) {
            V e(TOKENS);
            double all = 0;
            for (int k = 0; k <= q; k++) {
                double s = 0;
                for (int i = 0; i < HEAD; i++)
                    s += qkv[q * 3 * WIDTH + h * HEAD + i] * qkv[k * 3 * WIDTH + WIDTH + h * HEAD + i];
                all += e[k] = std::exp(s / std::sqrt((double)HEAD));
            }
            for (int k = 0; k <= q; k++)
                for (int i = 0; i < HEAD; i++)
                    y[q * WIDTH + h * HEAD + i] += e[k] / all * qkv[k * 3 * WIDTH + 2 * WIDTH + h * HEAD + i];
        }
    return y;
}
std::vector<double> reference(const std::vector<float> &x, const std::vector<float> &gain,
    const std::vector<float> &qkv, const std::vector<float> &proj, const std::vector<float> &up,
    const std::vector<float> &down) {
    V r(x.begin(), x.end()), a = times(attend(times(norm(r, gain), qkv, WIDTH, 3 * WIDTH)), proj, WIDTH, WIDTH);
    for (size_t i = 0; i < r.size(); i++)
        r[i] += a[i];
    V h = times(norm(r, gain), up, WIDTH, INNER);
    for (double &v : h)
        v = 0.5 * v * (1 + std::tanh(0.7978845608 * (v + 0.044715 * v * v * v)));
    V d = times(h, down, INNER, WIDTH);
    for (size_t i = 0; i < r.size(); i++)
        r[i] += d[i];
    return r;
}
