/* Trains a small GPT on the characters of a text: own kernels for everything but the products, which are cuBLAS
 * (before.cu, FP32) or amp (after.cu, mixed precision; README.md has the diff).
 *
 *     nvcc -O2 -arch=native before.cu -lcublas -o before && ./before TEXT 1
 *     nvcc -O2 -arch=native -I../.. after.cu -lcublasLt -o after && ./after TEXT 1
 *
 * Pre-norm blocks, causal attention, GELU, a head tied to the embedding, AdamW. TEXT is a file of ASCII, the number the
 * seed. Prints the mean loss of every tenth of the steps, and the loss of the text's last tenth, which it does not see.
 */
#define AMP_IMPLEMENTATION
#define AMP_CUDA_IMPLEMENTATION
#include "amp_cuda.cuh"
#include <cuda_fp16.h>
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

#ifndef STEPS
#  define STEPS 200
#endif
enum { LAYERS = 2, HEADS = 2, WIDTH = 32, CONTEXT = 16, BATCH = 4, VOCAB = 128 };
enum { ROWS = BATCH * CONTEXT, SIZE = WIDTH / HEADS };
static const float LR = 1e-3f, BETA2 = 0.99f, DECAY = 0.01f;

typedef half real; /* activations, gradients and the weights that products read */
enum { WTE, WPE, LN1W, LN1B, QKVW, QKVB, PROJW, PROJB, LN2W, LN2B, UPW, UPB, DOWNW, DOWNB, LNFW, LNFB, PARAMS };
static const int count[PARAMS] = {VOCAB * WIDTH, CONTEXT * WIDTH, LAYERS * WIDTH, LAYERS * WIDTH,
    LAYERS * 3 * WIDTH * WIDTH, LAYERS * 3 * WIDTH, LAYERS * WIDTH * WIDTH, LAYERS * WIDTH, LAYERS * WIDTH,
    LAYERS * WIDTH, LAYERS * 4 * WIDTH * WIDTH, LAYERS * 4 * WIDTH, LAYERS * 4 * WIDTH * WIDTH, LAYERS * WIDTH, WIDTH,
    WIDTH};
static real *param[PARAMS], *grad[PARAMS]; /* on the device, as everything here; those of all layers together */

typedef struct Block { /* what backward needs of a layer */
    real *x1, *ln1, *heads, *p, *att, *x2, *ln2, *up, *gelu;
    float *mean1, *rstd1, *mean2, *rstd2;
} Block;
static Block block[LAYERS];
static real *x_last, *ln_last, *logits;           /* gradients take the logits' place */
static real *dx, *dn, *dwide, *qkv, *dheads, *dp; /* gradients and scratch that layers share */

static float *mean_last, *rstd_last, *losses; /* of each row */
static int *tokens, *targets;
static amp_ctx *ctx;
static amp_params *params;
static amp_scaler *scaler;

/* ---- kernels: one thread per element, or per row or column where there is a sum ---------------------------------- */

static __global__ void embed(real *x, const int *tokens, const real *wte, const real *wpe) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, row = i / WIDTH, c = i % WIDTH;
    if (row >= ROWS) return;
    float a = wte[tokens[row] * WIDTH + c], b = wpe[row % CONTEXT * WIDTH + c];
    x[i] = a + b;
}

/* dwte already has the gradient of the head */
static __global__ void embed_grad(real *dwte, real *dwpe, const real *dx, const int *tokens) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, word = i / WIDTH, c = i % WIDTH;
    if (word >= VOCAB) return;
    float sum = dwte[i], place = 0;
    for (int row = 0; row < ROWS; row++) {
        float d = dx[row * WIDTH + c];
        if (tokens[row] == word) sum += d;
        if (row % CONTEXT == word) place += d;
    }
    dwte[i] = sum;
    if (word < CONTEXT) dwpe[i] = place;
}

static __global__ void layernorm(real *y, float *mean, float *rstd, const real *x, const real *w, const real *b) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float m = 0, var = 0;
    if (row >= ROWS) return;
    x += row * WIDTH;
    y += row * WIDTH;
    for (int c = 0; c < WIDTH; c++) {
        float v = x[c];
        m += v / WIDTH;
    }
    for (int c = 0; c < WIDTH; c++) {
        float v = x[c];
        var += (v - m) * (v - m) / WIDTH;
    }
    float r = 1 / sqrtf(var + 1e-5f);
    for (int c = 0; c < WIDTH; c++) {
        float v = x[c], gain = w[c], bias = b[c];
        y[c] = (v - m) * r * gain + bias;
    }
    mean[row] = m;
    rstd[row] = r;
}

/* dx += the gradient of x, or = if first */
static __global__ void layernorm_grad(
    real *dx, const real *dy, const real *x, const real *w, const float *mean, const float *rstd, int first) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0, dot = 0;
    if (row >= ROWS) return;
    x += row * WIDTH;
    dy += row * WIDTH;
    dx += row * WIDTH;
    for (int c = 0; c < WIDTH; c++) {
        float v = x[c], d = dy[c], gain = w[c];
        sum += d * gain / WIDTH;
        dot += d * gain * (v - mean[row]) * rstd[row] / WIDTH;
    }
    for (int c = 0; c < WIDTH; c++) {
        float v = x[c], d = dy[c], gain = w[c], old = dx[c];
        dx[c] = (first ? 0 : old) + (d * gain - sum - (v - mean[row]) * rstd[row] * dot) * rstd[row];
    }
}

static __global__ void layernorm_param_grad(
    real *dw, real *db, const real *dy, const real *x, const float *mean, const float *rstd) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    float gain = 0, bias = 0;
    if (c >= WIDTH) return;
    for (int row = 0; row < ROWS; row++) {
        float v = x[row * WIDTH + c], d = dy[row * WIDTH + c];
        gain += d * (v - mean[row]) * rstd[row];
        bias += d;
    }
    dw[c] = gain;
    db[c] = bias;
}

static __global__ void add_bias(real *y, const real *b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= ROWS * n) return;
    float v = y[i], bias = b[i % n];
    y[i] = v + bias;
}

static __global__ void bias_grad(real *db, const real *dy, int n) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    if (c >= n) return;
    for (int row = 0; row < ROWS; row++) {
        float d = dy[row * n + c];
        sum += d;
    }
    db[c] = sum;
}

static __global__ void add(real *y, const real *a, const real *b) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= ROWS * WIDTH) return;
    float u = a[i], v = b[i];
    y[i] = u + v;
}

/* Between rows, [BATCH * CONTEXT][parts][WIDTH], and heads, [parts][BATCH][HEADS][CONTEXT][SIZE] */
static __global__ void swap_heads(real *to, const real *from, int parts, int join) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, row = i / (parts * WIDTH), part = i / WIDTH % parts, c = i % WIDTH;
    if (row >= ROWS) return;
    int head = (part * BATCH + row / CONTEXT) * HEADS + c / SIZE;
    int apart = (head * CONTEXT + row % CONTEXT) * SIZE + c % SIZE;
    if (join)
        to[i] = from[apart];
    else
        to[apart] = from[i];
}

/* Causal: row i of a sequence sees places 0 .. i. */
static __global__ void softmax(real *p) {
    int row = blockIdx.x * blockDim.x + threadIdx.x, seen = row % CONTEXT + 1;
    float top = -1e30f, sum = 0;
    if (row >= ROWS * HEADS) return;
    p += row * CONTEXT;
    for (int c = 0; c < seen; c++) {
        float v = p[c];
        top = v > top ? v : top;
    }
    for (int c = 0; c < seen; c++) {
        float v = p[c];
        sum += expf(v - top);
    }
    for (int c = 0; c < CONTEXT; c++) {
        float v = p[c];
        p[c] = c < seen ? expf(v - top) / sum : 0;
    }
}

static __global__ void softmax_grad(real *dp, const real *p) {
    int row = blockIdx.x * blockDim.x + threadIdx.x, seen = row % CONTEXT + 1;
    float dot = 0;
    if (row >= ROWS * HEADS) return;
    p += row * CONTEXT;
    dp += row * CONTEXT;
    for (int c = 0; c < seen; c++) {
        float v = p[c], d = dp[c];
        dot += v * d;
    }
    for (int c = 0; c < CONTEXT; c++) {
        float v = p[c], d = dp[c];
        dp[c] = c < seen ? v * (d - dot) : 0;
    }
}

static __global__ void gelu(real *y, const real *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i];
    y[i] = 0.5f * v * (1 + tanhf(0.7978845608f * (v + 0.044715f * v * v * v)));
}

static __global__ void gelu_grad(real *dx, const real *x, int n) { /* in place of dy */
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i], d = dx[i], t = tanhf(0.7978845608f * (v + 0.044715f * v * v * v));
    dx[i] = d * (0.5f * (1 + t) + 0.5f * v * (1 - t * t) * 0.7978845608f * (1 + 0.134145f * v * v));
}

/* Softmax and cross-entropy: the loss of each row, and the gradient of their mean in place of the logits. */
static __global__ void softmax_loss(real *logits, float *losses, const int *targets, const float *loss_scale) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float top = -1e30f, sum = 0;
    if (row >= ROWS) return;
    logits += row * VOCAB;
    float target = logits[targets[row]];
    for (int c = 0; c < VOCAB; c++) {
        float v = logits[c];
        top = v > top ? v : top;
    }
    for (int c = 0; c < VOCAB; c++) {
        float v = logits[c];
        sum += expf(v - top);
    }
    losses[row] = logf(sum) + top - target;
    for (int c = 0; c < VOCAB; c++) {
        float v = logits[c], p = expf(v - top) / sum;
        logits[c] = (p - (c == targets[row])) / ROWS * *loss_scale;
    }
}

/* ---- the network ------------------------------------------------------------------------------------------------- */

/* d[m,n] = alpha op(a)[m,k] op(b)[k,n], all row-major, for each of a batch of matrices that follow each other */
static void matmul(real *d, const real *a, int ta, const real *b, int tb, int m, int n, int k, float alpha, int batch) {
    amp_gemm_desc g = AMP_ZERO;
    g.trans_a = ta, g.trans_b = tb, g.m = m, g.n = n, g.k = k, g.batch = batch, g.alpha = amp_opt(alpha);
    g.a = amp_arr(a, AMP_F16), g.b = amp_arr(b, AMP_F16), g.d = amp_arr(d, AMP_F16);
    CHECK(amp_gemm(ctx, g));
}
static void linear(real *y, const real *x, const real *w, const real *b, int in, int out) { /* y = x w^T + b */
    matmul(y, x, 0, w, 1, ROWS, out, in, 1, 1);
    if (b) LAUNCH(add_bias, ROWS * out)(y, b, out);
}
static void linear_grad(real *dx, real *dw, real *db, const real *dy, const real *x, const real *w, int in, int out) {
    if (db) LAUNCH(bias_grad, out)(db, dy, out);
    matmul(dw, dy, 1, x, 0, out, in, ROWS, 1, 1);
    matmul(dx, dy, 0, w, 0, ROWS, in, out, 1, 1);
}

static void forward(void) {
    const int n = ROWS * WIDTH;
    const float scale = 1 / sqrtf((float)SIZE);
    LAUNCH(embed, n)(block[0].x1, tokens, param[WTE], param[WPE]);
    for (int l = 0; l < LAYERS; l++) {
        Block *b = &block[l];
        real *next = l + 1 < LAYERS ? block[l + 1].x1 : x_last;
        LAUNCH(layernorm, ROWS)(b->ln1, b->mean1, b->rstd1, b->x1, param[LN1W] + l * WIDTH, param[LN1B] + l * WIDTH);
        linear(qkv, b->ln1, param[QKVW] + l * 3 * WIDTH * WIDTH, param[QKVB] + l * 3 * WIDTH, WIDTH, 3 * WIDTH);
        LAUNCH(swap_heads, 3 * n)(b->heads, qkv, 3, 0);
        matmul(b->p, b->heads, 0, b->heads + n, 1, CONTEXT, CONTEXT, SIZE, scale, BATCH * HEADS);
        LAUNCH(softmax, ROWS * HEADS)(b->p);
        matmul(dheads, b->p, 0, b->heads + 2 * n, 0, CONTEXT, SIZE, CONTEXT, 1, BATCH * HEADS);
        LAUNCH(swap_heads, n)(b->att, dheads, 1, 1);
        linear(dn, b->att, param[PROJW] + l * WIDTH * WIDTH, param[PROJB] + l * WIDTH, WIDTH, WIDTH);
        LAUNCH(add, n)(b->x2, b->x1, dn);
        LAUNCH(layernorm, ROWS)(b->ln2, b->mean2, b->rstd2, b->x2, param[LN2W] + l * WIDTH, param[LN2B] + l * WIDTH);
        linear(b->up, b->ln2, param[UPW] + l * 4 * WIDTH * WIDTH, param[UPB] + l * 4 * WIDTH, WIDTH, 4 * WIDTH);
        LAUNCH(gelu, 4 * n)(b->gelu, b->up, 4 * n);
        linear(dn, b->gelu, param[DOWNW] + l * 4 * WIDTH * WIDTH, param[DOWNB] + l * WIDTH, 4 * WIDTH, WIDTH);
        LAUNCH(add, n)(next, b->x2, dn);
    }
    LAUNCH(layernorm, ROWS)(ln_last, mean_last, rstd_last, x_last, param[LNFW], param[LNFB]);
    linear(logits, ln_last, param[WTE], NULL, WIDTH, VOCAB);
    LAUNCH(softmax_loss, ROWS)(logits, losses, targets, amp_scaler_scale_ptr(scaler));
}

static void backward(void) { /* dx is the gradient of the sum that goes through all layers */
    const int n = ROWS * WIDTH;
    const float scale = 1 / sqrtf((float)SIZE);
    linear_grad(dn, grad[WTE], NULL, logits, ln_last, param[WTE], WIDTH, VOCAB);
    LAUNCH(layernorm_param_grad, WIDTH)(grad[LNFW], grad[LNFB], dn, x_last, mean_last, rstd_last);
    LAUNCH(layernorm_grad, ROWS)(dx, dn, x_last, param[LNFW], mean_last, rstd_last, 1);
    for (int l = LAYERS - 1; l >= 0; l--) {
        Block *b = &block[l];
        int w = l * WIDTH, ww = l * WIDTH * WIDTH;
        linear_grad(dwide, grad[DOWNW] + 4 * ww, grad[DOWNB] + w, dx, b->gelu, param[DOWNW] + 4 * ww, 4 * WIDTH, WIDTH);
        LAUNCH(gelu_grad, 4 * n)(dwide, b->up, 4 * n);
        linear_grad(dn, grad[UPW] + 4 * ww, grad[UPB] + 4 * w, dwide, b->ln2, param[UPW] + 4 * ww, WIDTH, 4 * WIDTH);
        LAUNCH(layernorm_param_grad, WIDTH)(grad[LN2W] + w, grad[LN2B] + w, dn, b->x2, b->mean2, b->rstd2);
        LAUNCH(layernorm_grad, ROWS)(dx, dn, b->x2, param[LN2W] + w, b->mean2, b->rstd2, 0);
        linear_grad(dn, grad[PROJW] + ww, grad[PROJB] + w, dx, b->att, param[PROJW] + ww, WIDTH, WIDTH);
        LAUNCH(swap_heads, n)(qkv, dn, 1, 0);
        matmul(dheads + 2 * n, b->p, 1, qkv, 0, CONTEXT, SIZE, CONTEXT, 1, BATCH * HEADS);
        matmul(dp, qkv, 0, b->heads + 2 * n, 1, CONTEXT, CONTEXT, SIZE, 1, BATCH * HEADS);
        LAUNCH(softmax_grad, ROWS * HEADS)(dp, b->p);
        matmul(dheads, dp, 0, b->heads + n, 0, CONTEXT, SIZE, CONTEXT, scale, BATCH * HEADS);
        matmul(dheads + n, dp, 1, b->heads, 0, CONTEXT, SIZE, CONTEXT, scale, BATCH * HEADS);
        LAUNCH(swap_heads, 3 * n)(qkv, dheads, 3, 1);
        linear_grad(dn, grad[QKVW] + 3 * ww, grad[QKVB] + 3 * w, qkv, b->ln1, param[QKVW] + 3 * ww, WIDTH, 3 * WIDTH);
        LAUNCH(layernorm_param_grad, WIDTH)(grad[LN1W] + w, grad[LN1B] + w, dn, b->x1, b->mean1, b->rstd1);
        LAUNCH(layernorm_grad, ROWS)(dx, dn, b->x1, param[LN1W] + w, b->mean1, b->rstd1, 0);
    }
    LAUNCH(embed_grad, VOCAB * WIDTH)(grad[WTE], grad[WPE], dx, tokens);
}

/* ---- host -------------------------------------------------------------------------------------------------------- */

static void *memory[64]; /* all that was allocated */
static int n_memory;
template <class T> static void alloc(T **p, int n) { /* zeroed */
    CHECK(cudaMalloc(p, n * sizeof **p));
    CHECK(cudaMemset(*p, 0, n * sizeof **p));
    memory[n_memory++] = *p;
}

static void alloc_activations(void) {
    const int n = ROWS * WIDTH, scores = ROWS * HEADS * CONTEXT;
    for (Block *b = block; b < block + LAYERS; b++) {
        float **stats[4] = {&b->mean1, &b->rstd1, &b->mean2, &b->rstd2};
        real **rows[8] = {&b->x1, &b->ln1, &b->att, &b->x2, &b->ln2, &b->heads, &b->up, &b->gelu};
        const int wide[8] = {1, 1, 1, 1, 1, 3, 4, 4};
        for (int i = 0; i < 4; i++)
            alloc(stats[i], ROWS);
        for (int i = 0; i < 8; i++)
            alloc(rows[i], wide[i] * n);
        alloc(&b->p, scores);
    }
    alloc(&mean_last, ROWS);
    alloc(&rstd_last, ROWS);
    alloc(&losses, ROWS);
    alloc(&x_last, n);
    alloc(&ln_last, n);
    alloc(&logits, ROWS * VOCAB);
    alloc(&dx, n);
    alloc(&dn, n);
    alloc(&dwide, 4 * n);
    alloc(&qkv, 3 * n);
    alloc(&dheads, 3 * n);
    alloc(&dp, scores);
    alloc(&tokens, ROWS);
    alloc(&targets, ROWS);
}

static unsigned seed;
static float uniform(void) { /* [0, 1) */
    seed = seed * 1664525u + 1013904223u;
    return (float)(seed >> 8) / 16777216.0f;
}
static char text[1 << 20];
static int length;

static void load(int row, int at) { /* the window of the text that begins there */
    int window[CONTEXT + 1];
    for (int i = 0; i <= CONTEXT; i++)
        window[i] = text[at + i] & 127;
    CHECK(cudaMemcpy(tokens + row * CONTEXT, window, CONTEXT * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(targets + row * CONTEXT, window + 1, CONTEXT * sizeof(int), cudaMemcpyHostToDevice));
}
static double take_loss(void) {
    float host[ROWS];
    double sum = 0;
    CHECK(cudaMemcpy(host, losses, sizeof host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < ROWS; i++)
        sum += host[i];
    return sum / ROWS;
}

/* Weights are normal, of deviation 0.02, or 0.02 / sqrt(2 LAYERS) where a layer adds to the sum; gains 1. */
static void init_params(float *w) {
    for (int k = 0; k < PARAMS; k++)
        for (int i = 0; i < count[k]; i++) {
            float spread = k == PROJW || k == DOWNW ? 0.02f / sqrtf(2.0f * LAYERS) : 0.02f;
            float normal = sqrtf(-2 * logf(1 - uniform())) * cosf(6.2831853f * uniform());
            int gain = k == LN1W || k == LN2W || k == LNFW;
            int matrix = k == WTE || k == WPE || k == QKVW || k == PROJW || k == UPW || k == DOWNW;
            *w++ = matrix ? spread * normal : (float)gain;
        }
}
static void place(real *w, real *g) { /* all parameters lie in one array, their gradients in another */
    for (int k = 0; k < PARAMS; k++) {
        param[k] = w;
        grad[k] = g;
        w += count[k];
        g += count[k];
    }
}

int main(int argc, char **argv) {
    FILE *f = argc > 2 ? fopen(argv[1], "rb") : NULL;
    int n = 0, train, batches = 0;
    float *w;
    double sum = 0;
    if (!f) {
        fprintf(stderr, "usage: %s TEXT SEED\n", argv[0]);
        return 1;
    }
    length = (int)fread(text, 1, sizeof text, f);
    fclose(f);
    train = length / 10 * 9;
    if (length - train <= BATCH * CONTEXT) {
        fprintf(stderr, "%s is too short\n", argv[1]);
        return 1;
    }
    seed = (unsigned)atoi(argv[2]) * 2654435761u;

    amp_cuda_desc d = AMP_ZERO;
    d.stream = AMP_CUDA_STREAM_LEGACY;
    CHECK(amp_cuda_create(&ctx, d));
    CHECK(amp_scaler_create(&scaler, ctx, NULL));
    for (int k = 0; k < PARAMS; k++)
        n += count[k];
    float *init = (float *)calloc(n, sizeof *init);
    init_params(init);
    alloc(&w, n);
    CHECK(cudaMemcpy(w, init, n * sizeof *w, cudaMemcpyHostToDevice));
    free(init);
    CHECK(amp_params_create(&params, ctx, NULL));
    amp_param_desc all = AMP_ZERO;
    all.count = n, all.master = w;
    CHECK(amp_params_add(params, all));
    CHECK(amp_params_commit(params));
    place((real *)amp_param_model(params, 0).data, (real *)amp_param_grad(params, 0).data);
    alloc_activations();
    for (int i = 0; i < BATCH; i++)
        load(i, i);
    double norm;
    amp_scaler_info now;
    do { /* the first loss scale: smaller until backward is finite, and then room for larger gradients */
        forward();
        backward();
        CHECK(amp_grad_norm(params, scaler, &norm));
        CHECK(amp_scaler_get(scaler, &now));
        CHECK(amp_scaler_set_scale(scaler, now.scale / (amp_is_finite((float)norm) ? 16 : 2)));
    } while (!amp_is_finite((float)norm) && now.scale > 16);

    for (int step = 1; step <= STEPS; step++) {
        for (int i = 0; i < BATCH; i++)
            load(i, (int)(uniform() * (float)(train - CONTEXT)));
        forward();
        backward();
        amp_step_desc adamw = AMP_ZERO;
        adamw.lr = LR, adamw.beta2 = amp_opt(BETA2), adamw.weight_decay = DECAY;
        CHECK(amp_step(params, scaler, adamw));
        CHECK(cudaGetLastError());
        sum += take_loss() / (STEPS / 10);
        if (step % (STEPS / 10)) continue;
        printf("step %d loss %.5f\n", step, sum);
        sum = 0;
    }
    for (int at = train; at + BATCH * CONTEXT < length && batches < 20; at += BATCH * CONTEXT, batches++) {
        for (int i = 0; i < BATCH; i++)
            load(i, at + i * CONTEXT);
        forward();
        sum += take_loss();
    }
    printf("validation loss %.5f\n", sum / batches);
    amp_step_record last;
    CHECK(amp_step_poll(params, &last));
    printf("%d skipped, scale %g\n", (int)last.skipped, last.scale);

    while (n_memory)
        CHECK(cudaFree(memory[--n_memory]));
    amp_params_destroy(params);
    amp_scaler_destroy(scaler);
    amp_ctx_destroy(ctx);
    return 0;
}
