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
        for (int i = 0; i < images; i++)
            for (int o = 0; o < out; o++) {
                float *to = &y[(i * out + o) * n];
                for (int p = 0; p < n; p++)
                    to[p] = b.w[o];
                for (int k = 0; k < depth; k++)
                    for (int p = 0; p < n; p++)
                        to[p] += w.w[o * depth + k] * columns[(i * depth + k) * n + p];
            }
    }
    void backward(const Vec &x, const Vec &dy, int images) override {
        int n = side * side, depth = in * 9;
        dx.assign(x.size(), 0.0f);
        dcolumns.assign(columns.size(), 0.0f);
        w.dw.assign(w.w.size(), 0.0f);
        b.dw.assign(b.w.size(), 0.0f);
        for (int i = 0; i < images; i++)
            for (int o = 0; o < out; o++) {
                const float *d = &dy[(i * out + o) * n];
                for (int p = 0; p < n; p++)
                    b.dw[o] += d[p];
                for (int k = 0; k < depth; k++) {
                    const float *c = &columns[(i * depth + k) * n];
                    float *dc = &dcolumns[(i * depth + k) * n], sum = 0;
                    for (int p = 0; p < n; p++) {
                        sum += d[p] * c[p];
                        dc[p] += w.w[o * depth + k] * d[p];
                    }
                    w.dw[o * depth + k] += sum;
                }
            }
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

  public:
    Dense(int in_, int out_) : in(in_), out(out_), w((size_t)in * out, in), b(out, 0) {}
    std::vector<Param *> params() override { return {&w, &b}; }
    void forward(const Vec &x, int images) override {
        y.resize((size_t)images * out);
        for (int r = 0; r < images; r++) {
            for (int o = 0; o < out; o++)
                y[r * out + o] = b.w[o];
            for (int i = 0; i < in; i++)
                for (int o = 0; o < out; o++)
                    y[r * out + o] += x[r * in + i] * w.w[i * out + o];
        }
    }
    void backward(const Vec &x, const Vec &dy, int images) override {
        dx.assign(x.size(), 0.0f);
        w.dw.assign(w.w.size(), 0.0f);
        b.dw.assign(b.w.size(), 0.0f);
        for (int r = 0; r < images; r++) {
            for (int o = 0; o < out; o++)
                b.dw[o] += dy[r * out + o];
            for (int i = 0; i < in; i++)
                for (int o = 0; o < out; o++) {
                    w.dw[i * out + o] += x[r * in + i] * dy[r * out + o];
                    dx[r * in + i] += w.w[i * out + o] * dy[r * out + o];
                }
        }
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
            dz[r * CLASSES + c] = (std::exp(row[c] - top) / sum - (c == label[r])) / (float)label.size();
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

    for (int epoch = 1; epoch <= EPOCHS; epoch++) {
        float loss = 0;
        shuffle(index, TRAIN);
        for (int at = 0; at + BATCH <= TRAIN; at += BATCH) {
            load(x, label, index, at, BATCH);
            loss += loss_of(net.forward(x, BATCH), label, dz);
            net.backward(x, dz, BATCH);
            for (Param *p : params)
                adagrad.update(*p);
        }
        std::printf("epoch %d loss %.4f\n", epoch, loss / (TRAIN / BATCH * BATCH));
    }
    load(x, label, index, TRAIN, DIGITS_COUNT - TRAIN);
    const Vec &z = net.forward(x, DIGITS_COUNT - TRAIN);
    for (int r = 0; r < DIGITS_COUNT - TRAIN; r++)
        right += std::max_element(&z[r * CLASSES], &z[r * CLASSES] + CLASSES) - &z[r * CLASSES] == label[r];
    std::printf("right: %d of %d\n", right, DIGITS_COUNT - TRAIN);
    return 0;
}
