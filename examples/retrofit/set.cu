/* Trains a small network on real handwritten digits, with kernels of its own, Adam, and cuBLAS (before.cu) or amp
 * (after.cu).
 *
 *     nvcc -O2 -arch=native before.cu -lcublas -o before && ./before 1           FP32; the argument is the seed
 *     nvcc -O2 -arch=native -I../.. after.cu -lcublasLt -o after && ./after 1    mixed precision: README.md: diff
 *
 * 64 pixels, two hidden layers of 256 with ReLU, 10 classes; softmax cross-entropy; minibatches of 64. Prints the loss
 * of each epoch and the accuracy on 360 digits that were not trained on. Output of either, the last digits aside:
 *   epoch 1 loss 1.557
 *   ...
 *   epoch 8 loss 0.055
 *   test accuracy 97.22 %
 */
#include "../digits_data.h"
#define AMP_IMPLEMENTATION
#define AMP_CUDA_IMPLEMENTATION
#include "amp_cuda.cuh"
#include <cuda_runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call) \
    do { \
        int error = (int)(call); \
        if (error) { \
            fprintf(stderr, "%s:%d: %s: error %d\n", __FILE__, __LINE__, #call, error); \
            exit(1); \
        } \
    } while (0)

#ifdef __CUDACC__
#  define LAUNCH(kernel, threads) kernel<<<((threads) + 127) / 128, 128>>>
#else /* a C++ compiler and the test's host runtime: no <<< >>> there */
#  define LAUNCH(kernel, threads) \
    [&](auto... a) { \
    cudaLaunchConfig_t c = {}; \
    c.gridDim = ((threads) + 127) / 128; \
    c.blockDim = 128; \
    CHECK(cudaLaunchKernelEx(&c, kernel, a...)); \
    }
#endif

enum { PIXELS = DIGITS_SIDE * DIGITS_SIDE, HIDDEN = 256, CLASSES = 10, LAYERS = 3 };
enum { TRAIN = 1437, TEST = DIGITS_COUNT - TRAIN, BATCH = 64, EPOCHS = 8 };
static const float LR = 1e-3f;

typedef float real; /* activations, gradients and the weights that products read */

typedef struct Layer { /* y = relu(x w^T + b); row-major: x [rows, in], w [out, in], y [rows, out] */
    int in, out;
    real *x, *w, *b, *y, *dx, *dw, *db, *dy;
} Layer;

typedef struct Stats {
    float loss;
    int correct;
} Stats;

static amp_ctx *ctx;
static amp_params *params;
static amp_scaler *scaler;
static Layer layer[LAYERS];
static float *images; /* on the device, as everything here: [DIGITS_COUNT, PIXELS] */
static int *labels, *order, *target;
static Stats *stats;

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

static __global__ void gather(
    const float *images, const int *labels, const int *order, real *x, int *target, int rows) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, r = i / PIXELS;
    if (r >= rows) return;
    x[i] = images[order[r] * PIXELS + i % PIXELS];
    if (i % PIXELS == 0) target[r] = labels[order[r]];
}

static __global__ void bias_relu(real *y, const real *b, int rows, int n, int relu) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * n) return;
    float v = y[i], bias = b[i % n];
    v += bias;
    y[i] = relu && v < 0 ? 0 : v;
}

/* The gradient through ReLU, in place, and its column sums: the gradient of the bias. One thread per column. */
static __global__ void bias_relu_grad(real *dy, const real *y, real *db, int rows, int n, int relu) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    if (j >= n) return;
    for (int i = j; i < rows * n; i += n) {
        float v = y[i], g = dy[i];
        if (relu && v <= 0) g = 0;
        dy[i] = g;
        sum += g;
    }
    db[j] = sum;
}

/* Softmax and cross-entropy, one thread per row: adds to the statistics, writes the gradient of the mean loss. */
static __global__ void softmax_loss(
    const real *logits, const int *target, real *dlogits, Stats *stats, int rows, const float *loss_scale) {
    int r = blockIdx.x * blockDim.x + threadIdx.x, best = 0;
    float z[CLASSES], sum = 0;
    if (r >= rows) return;
    for (int c = 0; c < CLASSES; c++) {
        z[c] = logits[r * CLASSES + c];
        if (z[c] > z[best]) best = c;
    }
    for (int c = 0; c < CLASSES; c++)
        sum += expf(z[c] - z[best]);
    for (int c = 0; c < CLASSES; c++) {
        float p = expf(z[c] - z[best]) / sum;
        dlogits[r * CLASSES + c] = (p - (c == target[r])) / rows * *loss_scale;
    }
    atomicAdd(&stats->loss, logf(sum) + z[best] - z[target[r]]);
    atomicAdd(&stats->correct, best == target[r]);
}

/* ---- the network ------------------------------------------------------------------------------------------------- */

/* c[m,n] = op(a)[m,k] op(b)[k,n], all row-major */
static void matmul(int ta, int tb, int m, int n, int k, const real *a, const real *b, real *c) {
    amp_gemm_desc g = AMP_ZERO;
    g.trans_a = ta, g.trans_b = tb, g.m = m, g.n = n, g.k = k;
    g.a = amp_arr(a, AMP_F32), g.b = amp_arr(b, AMP_F32), g.d = amp_arr(c, AMP_F32);
    CHECK(amp_gemm(ctx, g));
}

static void forward(int rows) {
    const Layer *last = &layer[LAYERS - 1];
    for (int l = 0; l < LAYERS; l++) {
        Layer *p = &layer[l];
        matmul(0, 1, rows, p->out, p->in, p->x, p->w, p->y);
        LAUNCH(bias_relu, rows * p->out)(p->y, p->b, rows, p->out, l < LAYERS - 1);
    }
    LAUNCH(softmax_loss, rows)(last->y, target, last->dy, stats, rows, amp_scaler_scale_ptr(scaler));
}

static void backward(int rows) {
    for (int l = LAYERS - 1; l >= 0; l--) {
        Layer *p = &layer[l];
        LAUNCH(bias_relu_grad, p->out)(p->dy, p->y, p->db, rows, p->out, l < LAYERS - 1);
        matmul(1, 0, p->out, p->in, rows, p->dy, p->x, p->dw);
        if (p->dx) matmul(0, 0, rows, p->in, p->out, p->dy, p->w, p->dx);
    }
}

/* Weights and biases of all layers lie in one array, their gradients in another. */
static void place(real *param, real *grad) {
    for (Layer *p = layer; p < layer + LAYERS; p++) {
        p->w = param;
        p->dw = grad;
        param += p->in * p->out;
        grad += p->in * p->out;
        p->b = param;
        p->db = grad;
        param += p->out;
        grad += p->out;
    }
}

/* ---- host -------------------------------------------------------------------------------------------------------- */

static unsigned seed;
static float uniform(void) { /* [0, 1) */
    seed = seed * 1664525u + 1013904223u;
    return (float)(seed >> 8) / 16777216.0f;
}
static void shuffle(int *a, int n) {
    for (int i = n - 1; i > 0; i--) {
        int j = (int)(uniform() * (float)(i + 1)), t = a[i];
        a[i] = a[j];
        a[j] = t;
    }
}

static void load_digits(void) {
    float *x = (float *)malloc(sizeof(float) * DIGITS_COUNT * PIXELS);
    int t[DIGITS_COUNT];
    for (int i = 0; i < DIGITS_COUNT; i++) {
        t[i] = digits_data[i][0] - '0';
        for (int k = 0; k < PIXELS; k++)
            x[i * PIXELS + k] = (float)(strchr(DIGITS_INK, digits_data[i][2 + k]) - DIGITS_INK) / 16.0f;
    }
    CHECK(cudaMalloc(&images, sizeof(float) * DIGITS_COUNT * PIXELS));
    CHECK(cudaMalloc(&labels, sizeof t));
    CHECK(cudaMemcpy(images, x, sizeof(float) * DIGITS_COUNT * PIXELS, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(labels, t, sizeof t, cudaMemcpyHostToDevice));
    free(x);
}

static Stats take_stats(void) { /* and start again at zero */
    Stats s;
    CHECK(cudaMemcpy(&s, stats, sizeof s, cudaMemcpyDeviceToHost));
    CHECK(cudaMemset(stats, 0, sizeof s));
    return s;
}

int main(int argc, char **argv) {
    const int size[LAYERS + 1] = {PIXELS, HIDDEN, HIDDEN, CLASSES};
    int index[DIGITS_COUNT], n = 0;
    float *param;
    float *grad;

    amp_cuda_desc d = AMP_ZERO;
    d.stream = AMP_CUDA_STREAM_LEGACY;
    CHECK(amp_cuda_create(&ctx, d));
    CHECK(amp_scaler_create(&scaler, ctx, NULL));
    load_digits();
    CHECK(cudaMalloc(&order, sizeof index));
    CHECK(cudaMalloc(&target, BATCH * sizeof *target));
    CHECK(cudaMalloc(&stats, sizeof *stats));
    CHECK(cudaMemset(stats, 0, sizeof *stats));
    for (int i = 0; i < DIGITS_COUNT; i++)
        index[i] = i;
    shuffle(index, DIGITS_COUNT); /* always the same split, then the seed of this run */
    seed = argc > 1 ? (unsigned)atoi(argv[1]) * 2654435761u : 1u;

    for (int l = 0; l < LAYERS; l++) {
        Layer *p = &layer[l];
        p->in = size[l];
        p->out = size[l + 1];
        n += p->in * p->out + p->out;
        if (l == 0) CHECK(cudaMalloc(&p->x, BATCH * PIXELS * sizeof *p->x));
        CHECK(cudaMalloc(&p->y, BATCH * p->out * sizeof *p->y));
        CHECK(cudaMalloc(&p->dy, BATCH * p->out * sizeof *p->dy));
        if (l > 0) p->x = p[-1].y;
        if (l > 0) p->dx = p[-1].dy;
    }
    float *init = (float *)calloc(n, sizeof *init), *w = init;
    for (Layer *p = layer; p < layer + LAYERS; p++) { /* He, uniform; biases stay zero */
        for (int i = 0; i < p->in * p->out; i++)
            *w++ = (2 * uniform() - 1) * sqrtf(6.0f / (float)p->in);
        w += p->out;
    }
    CHECK(cudaMalloc(&param, n * sizeof *param));
    CHECK(cudaMemcpy(param, init, n * sizeof *param, cudaMemcpyHostToDevice));
    free(init);
    CHECK(cudaMalloc(&grad, n * sizeof *grad));
    CHECK(amp_params_create(&params, ctx, NULL));
    amp_param_desc all = AMP_ZERO;
    all.count = n, all.master = param, all.grad = amp_arr(grad, AMP_F32);
    CHECK(amp_params_add(params, all));
    CHECK(amp_params_commit(params));
    place(param, grad);
    CHECK(cudaMemcpy(order, index, sizeof index, cudaMemcpyHostToDevice));
    LAUNCH(gather, BATCH * PIXELS)(images, labels, order, layer[0].x, target, BATCH);
    double norm;
    amp_scaler_info now;
    CHECK(amp_autocast_begin(ctx, NULL)); /* FP16 */
    do { /* the first loss scale: smaller until backward is finite, and then room for larger gradients */
        forward(BATCH);
        backward(BATCH);
        CHECK(amp_grad_norm(params, scaler, &norm));
        CHECK(amp_scaler_get(scaler, &now));
        CHECK(amp_scaler_set_scale(scaler, now.scale / (amp_is_finite((float)norm) ? 16 : 2)));
    } while (!amp_is_finite((float)norm) && now.scale > 16);
    take_stats();

    for (int epoch = 1; epoch <= EPOCHS; epoch++) {
        shuffle(index, TRAIN);
        CHECK(cudaMemcpy(order, index, sizeof index, cudaMemcpyHostToDevice));
        for (int at = 0; at + BATCH <= TRAIN; at += BATCH) {
            LAUNCH(gather, BATCH * PIXELS)(images, labels, order + at, layer[0].x, target, BATCH);
            forward(BATCH);
            backward(BATCH);
            amp_step_desc adam = AMP_ZERO;
            adam.optimizer = AMP_ADAM, adam.lr = LR;
            CHECK(amp_step(params, scaler, adam));
            CHECK(cudaGetLastError());
        }
        printf("epoch %d loss %.5f\n", epoch, take_stats().loss / (TRAIN / BATCH * BATCH));
    }
    CHECK(amp_autocast_end(ctx));
    for (int at = TRAIN; at < DIGITS_COUNT; at += BATCH) {
        int rows = DIGITS_COUNT - at < BATCH ? DIGITS_COUNT - at : BATCH;
        LAUNCH(gather, rows * PIXELS)(images, labels, order + at, layer[0].x, target, rows);
        forward(rows);
    }
    printf("test accuracy %.2f %%\n", 100.0 * take_stats().correct / TEST);
    amp_step_record last;
    CHECK(amp_step_poll(params, &last));
    printf("%d skipped, scale %g\n", (int)last.skipped, last.scale);

    CHECK(cudaFree(layer[0].x));
    for (Layer *p = layer; p < layer + LAYERS; p++) {
        CHECK(cudaFree(p->y));
        CHECK(cudaFree(p->dy));
    }
    CHECK(cudaFree(images));
    CHECK(cudaFree(labels));
    CHECK(cudaFree(order));
    CHECK(cudaFree(target));
    CHECK(cudaFree(stats));
    CHECK(cudaFree(param));
    CHECK(cudaFree(grad));
    amp_params_destroy(params);
    amp_scaler_destroy(scaler);
    amp_ctx_destroy(ctx);
    return 0;
}
