/* Trains a convolutional network on handwritten digits: classes with virtual functions, images as [channel][y][x],
 * dense weights as [in][out], an Adagrad of its own; loops (before.cpp), or FP16 products by amp (after.cpp; README.md
 * has the diff).
 *
 *     c++ -std=c++14 -O2 before.cpp -o before && ./before 1
 *     c++ -std=c++14 -O2 -I../.. after.cpp -pthread -o after && ./after 1
 *
 * The number is the seed. Prints the loss of each epoch and the accuracy on 360 digits that were not trained on.
 */
#include "../digits_data.h"
#define AMP_IMPLEMENTATION
#include "amp.h"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#ifndef EPOCHS
#  define EPOCHS 6
#endif
enum { SIDE = DIGITS_SIDE, PIXELS = SIDE * SIDE, CLASSES = 10, TRAIN = 1437, BATCH = 24 };
typedef std::vector<float> Vec;

static amp_ctx *ctx;
static amp_scaler *scaler;
static void check(amp_status s) {
    if (s == AMP_OK) return;
    std::fprintf(stderr, "%s\n", amp_last_error(ctx));
    std::exit(1);
}
static amp_array f32(const Vec &v, uint32_t flags = 0) {
    amp_array a = amp_arrn(v.data(), AMP_F32, v.size());
    a.flags = flags;
    return a;
}

static unsigned seed;
static float uniform() { /* [0, 1) */
    seed = seed * 1664525u + 1013904223u;
    return (float)(seed >> 8) / 16777216.0f;
}

struct Param {
    Vec w, dw, squares;
    Param(size_t n, size_t in) : w(n), dw(n), squares(n, 0.1f) { /* as TensorFlow's Adagrad begins */
        if (in == 0) return;                                     /* a bias */
        for (float &x : w)
            x = (2 * uniform() - 1) * std::sqrt(6.0f / (float)in);
    }
};

class Adagrad {
    float rate;

  public:
    explicit Adagrad(float rate_) : rate(rate_) {}
    void update(Param &p) const {
        for (size_t i = 0; i < p.w.size(); i++) {
            p.squares[i] += p.dw[i] * p.dw[i];
            p.w[i] -= rate * p.dw[i] / (std::sqrt(p.squares[i]) + 1e-8f);
        }
    }
};

/* ---- layers: batches in and out ---------------------------------------------------------------------------------- */

class Layer {
  public:
    Vec y, dx;
    virtual ~Layer() {}
    virtual void forward(const Vec &x, int images) = 0;
    virtual void backward(
        const Vec &x, const Vec &dy, int images) = 0; /* sets dx, and the gradients of its parameters */
    virtual std::vector<Param *> params() { return {}; }
};

class Relu : public Layer {
  public:
    void forward(const Vec &x, int) override {
        y.resize(x.size());
        for (size_t i = 0; i < x.size(); i++)
            y[i] = x[i] > 0 ? x[i] : 0;
    }
    void backward(const Vec &x, const Vec &dy, int) override {
        dx.resize(x.size());
        for (size_t i = 0; i < x.size(); i++)
            dx[i] = x[i] > 0 ? dy[i] : 0;
    }
};

class Pool : public Layer { /* the largest of each 2 x 2 */
    int channels, side;
    std::vector<int> from;

  public:
    Pool(int channels_, int side_) : channels(channels_), side(side_) {}
    void forward(const Vec &x, int images) override {
        int half = side / 2;
        y.resize((size_t)images * channels * half * half);
        from.resize(y.size());
        for (int i = 0; i < (int)y.size(); i++) {
            int best = (i / (half * half) * side + i / half % half * 2) * side + i % half * 2;
            for (int k : {best + 1, best + side, best + side + 1})
                if (x[k] > x[best]) best = k;
            y[i] = x[best];
            from[i] = best;
        }
    }
    void backward(const Vec &x, const Vec &dy, int) override {
        dx.assign(x.size(), 0.0f);
        for (size_t i = 0; i < dy.size(); i++)
            dx[from[i]] += dy[i];
    }
};

class Conv : public Layer { /* 3 x 3, as many pixels out as in */
    int in, out, side;
    Param w, b; /* w: [out][in * 9] */
    Vec columns, dcolumns;

    int source(int k, int pixel) const { /* which number of an image stands at columns[k][pixel]; -1: none */
        int row = pixel / side + k / 3 % 3 - 1, col = pixel % side + k % 3 - 1;
        return row < 0 || row >= side || col < 0 || col >= side ? -1 : (k / 9 * side + row) * side + col;
    }

  public:
    Conv(int in_, int out_, int side_)
        : in(in_), out(out_), side(side_), w((size_t)in * 9 * out, (size_t)in * 9), b(out, 0) {}
    std::vector<Param *> params() override { return {&w, &b}; }
    void forward(const Vec &x, int images) override {
        int n = side * side, depth = in * 9;
        y.resize((size_t)images * out * n);
        columns.resize((size_t)images * depth * n);
        for (int i = 0; i < images; i++)
            for (int k = 0; k < depth; k++)
                for (int p = 0; p < n; p++) {
                    int s = source(k, p);
                    columns[(i * depth + k) * n + p] = s < 0 ? 0 : x[i * in * n + s];
                }
        amp_gemm_desc g = AMP_ZERO; /* y = w columns + b, for each image */
        g.m = out, g.n = n, g.k = depth, g.batch = images, g.stride_a = AMP_BROADCAST, g.bias_per_row = 1;
        g.a = f32(w.w, AMP_CACHE), g.b = f32(columns), g.bias = f32(b.w), g.d = f32(y);
        check(amp_gemm(ctx, g));
    }
    void backward(const Vec &x, const Vec &dy, int images) override {
        int n = side * side, depth = in * 9;
        dx.assign(x.size(), 0.0f);
        dcolumns.resize(columns.size());
        b.dw.assign(b.w.size(), 0.0f);
        for (int i = 0; i < images; i++)
            for (int o = 0; o < out; o++) {
                const float *d = &dy[(i * out + o) * n];
                for (int p = 0; p < n; p++)
                    b.dw[o] += d[p];
            }
        amp_gemm_desc g = AMP_ZERO; /* dw = the sum over the images of dy columns^T */
        g.m = out, g.n = depth, g.k = n, g.batch = images, g.trans_b = 1, g.sum_batches = 1;
        g.a = f32(dy), g.b = f32(columns), g.d = f32(w.dw);
        check(amp_gemm(ctx, g));
        amp_gemm_desc h = AMP_ZERO; /* dcolumns = w^T dy, for each image */
        h.m = depth, h.n = n, h.k = out, h.batch = images, h.trans_a = 1, h.stride_a = AMP_BROADCAST;
        h.a = f32(w.w, AMP_CACHE), h.b = f32(dy), h.d = f32(dcolumns);
        check(amp_gemm(ctx, h));
        for (int i = 0; i < images; i++)
            for (int k = 0; k < depth; k++)
                for (int p = 0; p < n; p++) {
                    int s = source(k, p);
                    if (s >= 0) dx[i * in * n + s] += dcolumns[(i * depth + k) * n + p];
                }
    }
};

class Dense : public Layer {
    int in, out;
    Param w, b; /* w: [in][out] */
    amp_linear_desc l;
    amp_precision record;

  public:
    Dense(int in_, int out_) : in(in_), out(out_), w((size_t)in * out, in), b(out, 0), l() {
        l.in = in, l.out = out, l.w_in_out = 1, l.record = &record;
        l.w = f32(w.w, AMP_CACHE), l.bias = f32(b.w), l.dw = f32(w.dw), l.dbias = f32(b.dw);
    }
    std::vector<Param *> params() override { return {&w, &b}; }
    void forward(const Vec &x, int images) override {
        y.resize((size_t)images * out);
        l.rows = images, l.x = amp_arr(x.data(), AMP_F32), l.y = f32(y);
        check(amp_linear_forward(ctx, l));
    }
    void backward(const Vec &x, const Vec &dy, int images) override {
        dx.assign(x.size(), 0.0f);
        l.rows = images, l.dy = f32(dy), l.dx = f32(dx);
        check(amp_linear_backward(ctx, l));
    }
};

/* ---- the network ------------------------------------------------------------------------------------------------- */

class Net {
    std::vector<std::unique_ptr<Layer>> layers;

  public:
    void add(Layer *l) { layers.emplace_back(l); }
    const Vec &forward(const Vec &x, int images) {
        const Vec *at = &x;
        for (auto &l : layers) {
            l->forward(*at, images);
            at = &l->y;
        }
        return *at;
    }
    void backward(const Vec &x, const Vec &dy, int images) {
        const Vec *d = &dy;
        for (size_t i = layers.size(); i-- > 0;) {
            layers[i]->backward(i > 0 ? layers[i - 1]->y : x, *d, images);
            d = &layers[i]->dx;
        }
    }
    std::vector<Param *> params() {
        std::vector<Param *> all;
        for (auto &l : layers)
            for (Param *p : l->params())
                all.push_back(p);
        return all;
    }
};

/* Softmax and cross-entropy: their sum over the batch; dz is the gradient of the mean. */
static float loss_of(const Vec &z, const std::vector<int> &label, Vec &dz) {
    float loss = 0;
    dz.resize(z.size());
    for (size_t r = 0; r < label.size(); r++) {
        const float *row = &z[r * CLASSES], top = *std::max_element(row, row + CLASSES);
        float sum = 0;
        for (int c = 0; c < CLASSES; c++)
            sum += std::exp(row[c] - top);
        for (int c = 0; c < CLASSES; c++)
            dz[r * CLASSES + c] =
                (std::exp(row[c] - top) / sum - (c == label[r])) / (float)label.size() * *amp_scaler_scale_ptr(scaler);
        loss += std::log(sum) + top - row[label[r]];
    }
    return loss;
}

static void load(Vec &x, std::vector<int> &label, const std::vector<int> &index, int at, int images) {
    x.resize((size_t)images * PIXELS);
    label.resize(images);
    for (int i = 0; i < images; i++) {
        const char *digit = digits_data[index[at + i]];
        label[i] = digit[0] - '0';
        for (int k = 0; k < PIXELS; k++)
            x[i * PIXELS + k] = (float)(std::strchr(DIGITS_INK, digit[2 + k]) - DIGITS_INK) / 16.0f;
    }
}

static void shuffle(std::vector<int> &a, int n) {
    for (int i = n - 1; i > 0; i--)
        std::swap(a[i], a[(int)(uniform() * (float)(i + 1))]);
}

int main(int argc, char **argv) {
    std::vector<int> index(DIGITS_COUNT), label;
    Vec x, dz;
    Adagrad adagrad(0.02f);
    Net net;
    int right = 0;
    for (int i = 0; i < DIGITS_COUNT; i++)
        index[i] = i;
    shuffle(index, DIGITS_COUNT); /* always the same split, then the seed of this run */
    seed = argc > 1 ? (unsigned)std::atoi(argv[1]) * 2654435761u : 1u;
    net.add(new Conv(1, 16, SIDE));
    net.add(new Relu);
    net.add(new Pool(16, SIDE));
    net.add(new Conv(16, 32, SIDE / 2));
    net.add(new Relu);
    net.add(new Pool(32, SIDE / 2));
    net.add(new Dense(32 * PIXELS / 16, 64));
    net.add(new Relu);
    net.add(new Dense(64, CLASSES));
    std::vector<Param *> params = net.params();
    std::vector<amp_array> grads;
    amp_finite_report bad;
    amp_scaler_info now;
    for (Param *p : params)
        grads.push_back(f32(p->dw));
    check(amp_cpu_create(&ctx, nullptr));
    check(amp_scaler_create(&scaler, ctx, nullptr));
    check(amp_autocast_begin(ctx, nullptr)); /* FP16 */
    load(x, label, index, 0, BATCH);
    do { /* the first loss scale: smaller until backward is finite, and then room for larger gradients */
        loss_of(net.forward(x, BATCH), label, dz);
        net.backward(x, dz, BATCH);
        check(amp_unscale(scaler, nullptr, &bad, grads.data(), grads.size()));
        check(amp_scaler_get(scaler, &now));
        check(amp_scaler_set_scale(scaler, now.scale / (bad.nan + bad.inf > 0 ? 2 : 16)));
    } while (bad.nan + bad.inf > 0 && now.scale > 16);

    for (int epoch = 1; epoch <= EPOCHS; epoch++) {
        float loss = 0;
        shuffle(index, TRAIN);
        for (int at = 0; at + BATCH <= TRAIN; at += BATCH) {
            load(x, label, index, at, BATCH);
            loss += loss_of(net.forward(x, BATCH), label, dz);
            net.backward(x, dz, BATCH);
            check(amp_unscale(scaler, nullptr, &bad, grads.data(), grads.size()));
            check(amp_scaler_update(scaler));
            for (Param *p : params)
                if (bad.nan + bad.inf == 0) adagrad.update(*p);
        }
        std::printf("epoch %d loss %.4f\n", epoch, loss / (TRAIN / BATCH * BATCH));
    }
    load(x, label, index, TRAIN, DIGITS_COUNT - TRAIN);
    const Vec &z = net.forward(x, DIGITS_COUNT - TRAIN);
    for (int r = 0; r < DIGITS_COUNT - TRAIN; r++)
        right += std::max_element(&z[r * CLASSES], &z[r * CLASSES] + CLASSES) - &z[r * CLASSES] == label[r];
    std::printf("right: %d of %d\n", right, DIGITS_COUNT - TRAIN);
    check(amp_autocast_end(ctx));
    check(amp_scaler_get(scaler, &now));
    std::printf("%d skipped, scale %g\n", (int)now.bad, now.scale);
    amp_scaler_destroy(scaler);
    amp_ctx_destroy(ctx);
    return 0;
}
