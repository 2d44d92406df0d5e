/* cuda_graph.cu - a whole training step as one CUDA graph: captured once, replayed with other data, bit for bit the
 * eager steps.
 *
 *     nvcc -O2 -arch=native -I. examples/cuda_graph.cu -lcublasLt -o cuda_graph && ./cuda_graph
 *
 * The step: FP32 batch -> FP16, two layers forward, loss, backward, amp_step. What changes from step to step lies in
 * device memory: the batch, the learning rate (lr_ptr), and, kept by amp itself, loss scale, step count, "skip this
 * one". So a replay needs nothing from the host, and the host asks late whether a step was skipped. Three batches hold
 * an Inf. Output:
 *   > eager:    60 steps, 3 skipped, last overflow: skipped: nan, loss scale 2^15, loss of the last step 0.07
 *   > replayed: 60 steps, 3 skipped, last overflow: skipped: nan, loss scale 2^15, loss of the last step 0.07
 *   > equal bit for bit: weights, FP16 copies, moments, losses, loss scale, counters
 */
#define AMP_IMPLEMENTATION
#define AMP_CUDA_IMPLEMENTATION
#include "amp_cuda.cuh"

#include <cuda_runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CUDA(call) \
    do { \
        cudaError_t e_ = (call); \
        if (e_ != cudaSuccess) { \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(e_)); \
            exit(1); \
        } \
    } while (0)
#define AMP(call) \
    do { \
        amp_status s_ = (call); \
        const char *why_ = amp_last_error(ctx); /* "" without a context */ \
        if (s_ != AMP_OK) { \
            fprintf(stderr, "%s: %s\n", #call, *why_ ? why_ : amp_strerror(s_)); \
            exit(1); \
        } \
    } while (0)

enum { STEPS = 60, ROWS = 32, IN = 64, HIDDEN = 128, CLASSES = 16, PARAMS = 4 };
static const size_t count[PARAMS] = {HIDDEN * IN, HIDDEN, CLASSES * HIDDEN, CLASSES}; /* w1, b1, w2, b2 */
enum { WEIGHTS = HIDDEN * IN + HIDDEN + CLASSES * HIDDEN + CLASSES };

static int bad_batch(int step) { return step == 7 || step == 8 || step == 30; }

typedef struct data {
    float *x, *lr;
    int32_t *label;
} data; /* of all steps, on the device */

typedef struct trainer { /* all in device memory */
    amp_params *params;
    amp_scaler *scaler;
    float *x32, *lr, *loss, *row_loss, *losses;
    int32_t *label;
    amp_f16 *x16;
    amp_linear_desc layer[2];
    amp_xent_desc xent;
    amp_step_desc step;
} trainer;

typedef struct result { /* everything that a run leaves behind, on the host */
    float master[WEIGHTS], moment[2][WEIGHTS], losses[STEPS];
    uint16_t model[WEIGHTS];
    uint64_t steps, skipped;
    amp_scaler_info info;
} result;

/* ---- the step ---------------------------------------------------------------------------------------------------- */

/* What each step needs anew goes to where the step reads it: copies on the device, in stream order. Not part of the
   graph. */
static void feed(amp_ctx *ctx, trainer *t, const data *d, int step) {
    cudaStream_t stream = amp_cuda_stream(ctx);
    CUDA(cudaMemcpyAsync(
        t->x32, d->x + (size_t)step * ROWS * IN, ROWS * IN * sizeof(float), cudaMemcpyDeviceToDevice, stream));
    CUDA(cudaMemcpyAsync(t->label, d->label + step * ROWS, ROWS * sizeof(int32_t), cudaMemcpyDeviceToDevice, stream));
    CUDA(cudaMemcpyAsync(t->lr, d->lr + step, sizeof(float), cudaMemcpyDeviceToDevice, stream));
}
static void take_loss(amp_ctx *ctx, trainer *t, int step) {
    CUDA(cudaMemcpyAsync(t->losses + step, t->loss, sizeof(float), cudaMemcpyDeviceToDevice, amp_cuda_stream(ctx)));
}

static void train_step(amp_ctx *ctx, trainer *t) { /* every verb here is of the class "enqueue" */
    AMP(amp_cast(ctx, amp_arr(t->x16, AMP_F16), amp_arr(t->x32, AMP_F32), ROWS * IN, NULL));
    AMP(amp_linear_forward(ctx, &t->layer[0]));
    AMP(amp_linear_forward(ctx, &t->layer[1]));
    AMP(amp_softmax_cross_entropy(ctx, &t->xent));
    AMP(amp_linear_backward(ctx, &t->layer[1]));
    AMP(amp_linear_backward(ctx, &t->layer[0]));
    AMP(amp_step(t->params, t->scaler, &t->step));
}

static cudaGraphExec_t capture_step(amp_ctx *ctx, trainer *t) { /* records the step without running it */
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CUDA(cudaStreamBeginCapture(amp_cuda_stream(ctx), cudaStreamCaptureModeThreadLocal));
    train_step(ctx, t);
    CUDA(cudaStreamEndCapture(amp_cuda_stream(ctx), &graph));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CUDA(cudaGraphDestroy(graph));
    return exec;
}

/* ---- setting up -------------------------------------------------------------------------------------------------- */

static void *device(amp_ctx *ctx, size_t bytes) {
    void *p;
    AMP(amp_alloc(ctx, &p, bytes, NULL));
    return p;
}
static amp_array halves(amp_ctx *ctx, size_t n) { return amp_arrn(device(ctx, 2 * n), AMP_F16, n); }

static amp_linear_desc make_layer(
    amp_ctx *ctx, const amp_params *p, size_t first, size_t in, size_t out, amp_array x, amp_array dx) {
    amp_linear_desc l = AMP_ZERO;
    l.rows = ROWS;
    l.in = in;
    l.out = out;
    l.x = x;
    l.w = amp_param_model(p, first);
    l.bias = amp_param_model(p, first + 1);
    l.y = halves(ctx, ROWS * out);
    l.dy = halves(ctx, ROWS * out);
    l.dx = dx;
    l.dw = amp_param_grad(p, first);
    l.dbias = amp_param_grad(p, first + 1);
    return l;
}

static void trainer_create(amp_ctx *ctx, trainer *t) {
    static float init[WEIGHTS];
    amp_scaler_desc scaling = AMP_ZERO;
    memset(t, 0, sizeof *t);
    AMP(amp_params_create(&t->params, ctx, NULL)); /* FP32 masters, FP16 copies and gradients, two moments */
    for (size_t i = 0, at = 0; i < PARAMS; at += count[i++]) {
        amp_param_desc d = AMP_ZERO;
        float range = i == 0 ? sqrtf(6.0f / IN) : i == 2 ? sqrtf(6.0f / HIDDEN) : 0.0f;
        for (size_t k = 0; k < count[i]; k++)
            init[at + k] = range * ((float)amp_random(1, i, k) / 2147483648.0f - 1);
        d.count = count[i];
        d.init = init + at;
        AMP(amp_params_add(t->params, &d));
    }
    AMP(amp_params_commit(t->params));
    scaling.growth_interval = 16; /* 2000 by default: too long to be seen here */
    AMP(amp_scaler_create(&t->scaler, ctx, &scaling));

    t->x32 = (float *)device(ctx, ROWS * IN * sizeof(float));
    t->label = (int32_t *)device(ctx, ROWS * sizeof(int32_t));
    t->lr = (float *)device(ctx, sizeof(float));
    t->loss = (float *)device(ctx, sizeof(float));
    t->row_loss = (float *)device(ctx, ROWS * sizeof(float));
    t->losses = (float *)device(ctx, STEPS * sizeof(float));
    t->x16 = (amp_f16 *)device(ctx, ROWS * IN * sizeof(amp_f16));

    amp_array none = AMP_ZERO;
    t->layer[0] = make_layer(ctx, t->params, 0, IN, HIDDEN, amp_arr(t->x16, AMP_F16), none);
    t->layer[0].act = AMP_RELU;
    t->layer[1] = make_layer(ctx, t->params, 2, HIDDEN, CLASSES, t->layer[0].y, t->layer[0].dy);
    t->xent.rows = ROWS;
    t->xent.classes = CLASSES;
    t->xent.labels = t->label;
    t->xent.logits = t->layer[1].y;
    t->xent.dlogits = t->layer[1].dy;
    t->xent.loss = t->loss;
    t->xent.row_loss = t->row_loss;
    t->xent.scaler = t->scaler;
    t->step.optimizer = AMP_ADAMW;
    t->step.lr_ptr = t->lr; /* lr itself would be frozen in the graph */
    t->step.weight_decay = 0.01f;
    t->step.clip_norm = 1.0f;
}

static void trainer_destroy(amp_ctx *ctx, trainer *t) {
    void *mine[] = {t->x32, t->label, t->lr, t->loss, t->row_loss, t->losses, t->x16, t->layer[0].y.data,
        t->layer[0].dy.data, t->layer[1].y.data, t->layer[1].dy.data};
    for (void *p : mine)
        AMP(amp_free(ctx, p));
    amp_scaler_destroy(t->scaler);
    amp_params_destroy(t->params);
}

static void collect(amp_ctx *ctx, const trainer *t, result *r) {
    for (size_t i = 0, at = 0; i < PARAMS; at += count[i++]) {
        AMP(amp_copy(ctx, r->master + at, amp_param_get(t->params, i).master.data, count[i] * sizeof(float)));
        AMP(amp_copy(ctx, r->model + at, amp_param_model(t->params, i).data, count[i] * sizeof(uint16_t)));
        AMP(amp_copy(ctx, r->moment[0] + at, amp_param_get(t->params, i).moment[0].data, count[i] * sizeof(float)));
        AMP(amp_copy(ctx, r->moment[1] + at, amp_param_get(t->params, i).moment[1].data, count[i] * sizeof(float)));
    }
    AMP(amp_copy(ctx, r->losses, t->losses, sizeof r->losses));
    AMP(amp_scaler_get(t->scaler, &r->info));
}

/* ---- N steps, one way or the other ------------------------------------------------------------------------------- */

static void run(amp_ctx *ctx, const data *d, int replay, result *r) {
    cudaGraphExec_t exec = NULL;
    amp_step_record late;
    amp_outcome overflow = AMP_NO_STEP;
    trainer t;
    memset(r, 0, sizeof *r);
    trainer_create(ctx, &t);
    for (int step = 0; step < STEPS; step++) {
        feed(ctx, &t, d, step);
        if (!replay || step == 0)
            train_step(ctx, &t); /* the first one is eager: it loads kernels and finds the product plans */
        else {
            if (!exec) exec = capture_step(ctx, &t);
            CUDA(cudaGraphLaunch(exec, amp_cuda_stream(ctx)));
        }
        take_loss(ctx, &t, step);
        if (step == 30) { /* look now and then, not after each step: what the last finished step found */
            AMP(amp_sync(ctx));
            AMP(amp_step_poll(t.params, &late));
            overflow = (amp_outcome)late.outcome;
        }
    }
    AMP(amp_sync(ctx));
    AMP(amp_step_poll(t.params, &late));
    r->steps = late.steps;
    r->skipped = late.skipped;
    collect(ctx, &t, r);
    if (exec) CUDA(cudaGraphExecDestroy(exec));
    trainer_destroy(ctx, &t);
    printf("%s %d steps, %d skipped, last overflow: %s, loss scale 2^%g, loss of the last step %.2f\n",
        replay ? "replayed:" : "eager:   ", STEPS, (int)r->skipped, amp_outcome_name(overflow),
        log2((double)r->info.scale), (double)r->losses[STEPS - 1]);
}

int main(void) {
    static float x[STEPS * ROWS * IN], lr[STEPS];
    static int32_t label[STEPS * ROWS];
    static result eager, replayed;
    amp_ctx *ctx = NULL;
    data d;
    if (!amp_cuda_available()) {
        puts("skipped: no CUDA device");
        return 77;
    }
    AMP(amp_cuda_create(&ctx, NULL)); /* a stream of its own: the legacy stream cannot be captured */

    for (int i = 0; i < STEPS * ROWS; i++) { /* noise, and where the label is, something more */
        label[i] = (int32_t)(amp_random(2, 0, (uint64_t)i) % CLASSES);
        for (int k = 0; k < IN; k++) {
            x[i * IN + k] = (float)amp_random(2, 1, (uint64_t)i * IN + (uint64_t)k) / 4294967296.0f;
            if (k / 4 == label[i]) x[i * IN + k] += 1.0f;
        }
    }
    for (int step = 0; step < STEPS; step++) {
        lr[step] = 0.01f * (1.0f - (float)step / STEPS);
        if (bad_batch(step)) x[step * ROWS * IN + 5] = INFINITY;
    }
    d.x = (float *)device(ctx, sizeof x);
    d.lr = (float *)device(ctx, sizeof lr);
    d.label = (int32_t *)device(ctx, sizeof label);
    AMP(amp_copy(ctx, d.x, x, sizeof x));
    AMP(amp_copy(ctx, d.lr, lr, sizeof lr));
    AMP(amp_copy(ctx, d.label, label, sizeof label));

    run(ctx, &d, 0, &eager);
    run(ctx, &d, 1, &replayed);
    int equal = memcmp(&eager, &replayed, sizeof eager) == 0; /* both zeroed first, padding too */
    puts(equal ? "equal bit for bit: weights, FP16 copies, moments, losses, loss scale, counters" : "NOT EQUAL");

    AMP(amp_free(ctx, d.x));
    AMP(amp_free(ctx, d.lr));
    AMP(amp_free(ctx, d.label));
    amp_ctx_destroy(ctx);
    return equal ? 0 : 1;
}
