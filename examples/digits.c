/* digits.c - real handwritten digits, trained in six precisions: why mixed precision needs FP32 master weights and loss
 * scaling.
 *
 *     cc -std=c99 -O2 examples/digits.c -I. -lm -pthread -o digits && ./digits          (--help lists the options)
 *
 * The program is an ordinary training loop, written with the public API of amp.h and nothing else. Per step (train()):
 *
 *     forward    amp_linear_forward per layer         weights and activations in the mode's format: F32, F16 or BF16
 *     loss       amp_softmax_cross_entropy            the gradient of the logits comes out multiplied by the loss scale
 *     backward   amp_linear_backward per layer        so every gradient after it carries the scale, too
 *     update     amp_step                             checks for overflow, unscales, updates, adapts the scale
 *
 * The six modes differ in three words only: see modes[]. The two networks, and what makes the gradients of the second
 * one small, are in settings[].
 *
 * Host memory and context memory (host memory on a CPU, device memory on a GPU) are kept apart: everything a verb
 * reads comes from amp_alloc and is filled by amp_copy, so the same program runs on both. With -DWITH_CUDA, amp.h and
 * its CUDA backend are linked from elsewhere; without it this file contains amp.h's implementation and runs on the CPU.
 */
#if !defined(_WIN32) && !defined(_POSIX_C_SOURCE)
#  define _POSIX_C_SOURCE 200809L /* mkdir, isatty, clock_gettime */
#endif
#ifdef WITH_CUDA
#  include "amp_cuda.cuh"
#else
#  define AMP_IMPLEMENTATION
#endif
#include "amp.h"

#define PROGRAM "digits"
#include "program.h" /* fail, must, allocate, claim */

#include "digits_load.h" /* images; shuffle */
#include "plot.h"        /* the pictures */

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#ifdef _WIN32
#  include <direct.h>
#  include <io.h>
#  define make_dir(path)   _mkdir(path)
#  define remove_dir(path) _rmdir(path)
#  define on_terminal()    _isatty(1)
#  define may_write(path)  (_access(path, 2) == 0)
#  ifndef S_ISDIR
#    define S_ISDIR(mode) (((mode) & S_IFMT) == S_IFDIR)
#  endif
#else
#  include <unistd.h>
#  define make_dir(path)   mkdir(path, 0777)
#  define remove_dir(path) rmdir(path)
#  define on_terminal()    isatty(1)
#  define may_write(path)  (access(path, W_OK) == 0)
#endif

/* ==== the experiment ============================================================================================ */

enum { FP32, FP16_PURE, FP16_MASTERS, AMP_STATIC_SCALE, AMP_DYNAMIC_SCALE, BF16, FP8_CURRENT, FP8_DELAYED, MODES };
enum { PLAIN, DEEP, NETS };
enum { MAX_LAYERS = 8, MAX_SEEDS = 100 };

static const struct mode {
    const char *name;
    amp_dtype model;   /* weights the products read, activations, gradients */
    amp_master master; /* are there FP32 master weights besides? */
    amp_scaler_mode scaling;
    int fp8;          /* 1: products of all layers but the last read FP8 copies, each tensor with its own scale, */
    uint32_t history; /* from the largest of so many amaxes before; 0: from its own (docs/fp8.md) */
} modes[MODES] = {
    {"fp32", AMP_F32, AMP_MASTER_F32, AMP_SCALER_OFF, 0, 0},
    {"fp16-pure", AMP_F16, AMP_MASTER_NONE, AMP_SCALER_OFF, 0, 0},
    {"fp16-masters", AMP_F16, AMP_MASTER_F32, AMP_SCALER_OFF, 0, 0},
    {"amp-static", AMP_F16, AMP_MASTER_F32, AMP_SCALER_STATIC, 0, 0},
    {"amp-dynamic", AMP_F16, AMP_MASTER_F32, AMP_SCALER_DYNAMIC, 0, 0},
    {"bf16", AMP_BF16, AMP_MASTER_F32, AMP_SCALER_OFF, 0, 0},
    {"fp8-current", AMP_BF16, AMP_MASTER_F32, AMP_SCALER_OFF, 1, 0},
    {"fp8-delayed", AMP_BF16, AMP_MASTER_F32, AMP_SCALER_OFF, 1, 16},
};

/* plain: a small ReLU network that is trained gently for a long time. Adam moves a weight by about lr = 5e-5 per step.
   FP16 numbers between 1/8 and 1/4 are 2^-13 apart, so a move of less than 2^-14 = 6.1e-5 rounds back to where it was:
   without masters, weights of that size and above stand still from the first step on. (With a large learning rate,
   --lr 0.001, the moves are large enough, and the cost is gone: try it.) Its gradients are well inside FP16's range.

   deep: gradients that FP16 cannot hold, for two ordinary reasons. (1) Seven hidden GELU layers, initialised like
   Keras' Dense layers (Glorot uniform): near zero GELU's slope is 1/2, so each layer halves what goes back through it.
   (2) The loss is a mean over all places of a page of 256 x 256, as in detection and segmentation, or wherever masked
   places are counted in the mean; one place per page carries a digit, and only those are computed. So every gradient
   is divided by 65,536 (--places changes it). FP32 does not mind: Adam divides by the size of the gradients. FP16
   rounds four fifths of them to zero, and what is left points the wrong way: of the gradient of the logits, p - y, the
   0.9 of the right class survives and the 0.1 of the nine others do not. (Less is not enough: with --places 8192 FP16
   loses three fifths of the gradients and still learns. Try it, and --places 1.)

   The first dynamic scale is far too high on purpose: the picture shows how it finds its level by itself. amp.h's
   default of 2000 good steps before the scale grows is too long for runs this short. */
static const struct setting {
    const char *name, *what;
    int layers; /* weight matrices */
    amp_act act;
    double init_in, init_out; /* weights are uniform in +-sqrt(6 / (init_in * inputs + init_out * outputs)) */
    size_t hidden, batch, steps;
    double lr;
    long places;
    float static_scale, first_scale;
    int32_t growth_interval;
} settings[NETS] = {
    {"plain", "2 hidden ReLU layers, He initialisation", 3, AMP_RELU, 1, 0, 64, 32, 5000, 5e-5, 1, /* He: 1, 0 */
        1024.0f, 16777216.0f, 500},
    {"deep", "7 hidden GELU layers, Glorot initialisation", 8, AMP_GELU, 1, 1, 64, 128, 400, 1e-3, 65536, 16777216.0f,
        1099511627776.0f, 100},
};

typedef struct options {
    int net, run[MODES], seeds, check, threads, ordered;
    const char *device, *out, *csv, *data;
    amp_simd simd;
    uint64_t seed;
    size_t hidden, batch, epochs;
    double lr;
    long places;
} options;

/* ==== small things ============================================================================================== */

static amp_ledger_row ledger_row(const amp_ctx *ctx, const char *label) { /* all zero if the label was never used */
    amp_ledger_row row = AMP_ZERO;
    (void)amp_ledger(ctx, &row, 1, label);
    return row;
}

static double seconds(void) {
#ifdef _WIN32
    return (double)clock() / CLOCKS_PER_SEC;
#else
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
#endif
}

/* ==== the network =============================================================================================== */

typedef struct network {
    amp_ctx *ctx;
    amp_params *params;                /* parameter 2i: weights of layer i; 2i + 1: its bias */
    amp_linear_desc layer[MAX_LAYERS]; /* filled once, used forward and backward */
    amp_xent_desc loss;
    int layers;
    amp_fp8 *fp8;                     /* NULL, or the scales of x, w and dy of each layer */
    float *staging;                   /* context memory: a batch in FP32, on its way to the network's format */
    int32_t *labels;                  /* context memory */
    void *memory[4 * MAX_LAYERS + 8]; /* everything from amp_alloc */
    int n_memory;
} network;

static void *network_alloc(network *net, size_t bytes, const char *label) {
    void *p;
    must(net->ctx, amp_alloc(net->ctx, &p, bytes, label));
    net->memory[net->n_memory++] = p;
    return p;
}

static amp_array network_matrix(network *net, amp_dtype type, size_t rows, size_t cols, const char *label) {
    return amp_arrn(network_alloc(net, rows * cols * amp_dtype_size(type), label), type, rows * cols);
}

/* Layer i's weights, random, and its bias, zero. */
static void network_add_layer(network *net, const struct setting *s, int i, uint64_t seed) {
    const amp_linear_desc *l = &net->layer[i];
    amp_param_desc weights = AMP_ZERO, bias = AMP_ZERO;
    double bound = sqrt(6.0 / (s->init_in * (double)l->in + s->init_out * (double)l->out));
    float *init = (float *)allocate(l->in * l->out, sizeof(float));
    char name[32];
    size_t k;
    for (k = 0; k < l->in * l->out; k++)
        init[k] = (float)(bound * (2.0 * uniform(seed, 1000 + (uint64_t)i, k) - 1.0));
    sprintf(name, "layer%d.weight", i + 1);
    weights.name = name;
    weights.count = l->in * l->out;
    weights.init = init;
    must(net->ctx, amp_params_add(net->params, &weights)); /* copies name and init */
    free(init);
    sprintf(name, "layer%d.bias", i + 1);
    bias.name = name;
    bias.count = l->out;
    must(net->ctx, amp_params_add(net->params, &bias));
}

/* Layer i's activations and their gradients. Its dx is the dy of the layer before it. */
static void network_connect_layer(network *net, int i, amp_dtype type, const char *label) {
    amp_linear_desc *l = &net->layer[i];
    size_t weights = 2 * (size_t)i, bias = weights + 1;
    l->x = i ? net->layer[i - 1].y : network_matrix(net, type, l->rows, l->in, label);
    l->y = network_matrix(net, type, l->rows, l->out, label);
    l->dy = network_matrix(net, type, l->rows, l->out, label);
    if (l->act == AMP_GELU) l->aux = network_matrix(net, type, l->rows, l->out, label);
    if (i) l->dx = net->layer[i - 1].dy;
    l->w = amp_param_model(net->params, weights);
    l->dw = amp_param_grad(net->params, weights);
    l->bias = amp_param_model(net->params, bias);
    l->dbias = amp_param_grad(net->params, bias);
}

/* All layers but the last, whose 10 outputs FP8 hardware does not multiply (16 it would), share the scratch memory. */
static void network_use_fp8(network *net, const struct mode *mode) {
    amp_fp8_desc desc = AMP_ZERO;
    size_t bytes = 0, need, i, layers = (size_t)net->layers - 1;
    void *scratch;
    desc.tensors = (uint32_t)(3 * layers);
    desc.history = mode->history;
    must(net->ctx, amp_fp8_create(&net->fp8, net->ctx, &desc));
    for (i = 0; i < layers; i++) {
        const amp_linear_desc *l = &net->layer[i];
        need = l->rows * l->in + l->out * l->in + 2 * l->rows * l->out + 1024;
        if (bytes < need) bytes = need;
    }
    scratch = network_alloc(net, bytes, "activations");
    for (i = 0; i < layers; i++) {
        net->layer[i].fp8 = net->fp8;
        net->layer[i].fp8_first = 3 * i;
        net->layer[i].scratch = scratch;
        net->layer[i].scratch_bytes = bytes;
        net->layer[i].flags = AMP_GEMM_EMULATE; /* on a GPU without FP8: slowly */
    }
}

/* probe: an FP32 network without an optimizer, to look at gradients as they are before any rounding. */
static void network_create(network *net, amp_ctx *ctx, const struct setting *s, const options *o,
    const struct mode *mode, size_t inputs, size_t classes, uint64_t seed, int probe) {
    amp_params_desc desc = AMP_ZERO;
    int i, last = s->layers - 1;
    memset(net, 0, sizeof *net);
    net->ctx = ctx;
    net->layers = s->layers;
    for (i = 0; i < s->layers; i++) {
        net->layer[i].rows = o->batch;
        net->layer[i].in = i == 0 ? inputs : o->hidden;
        net->layer[i].out = i == last ? classes : o->hidden;
        net->layer[i].act = i == last ? AMP_ACT_NONE : s->act;
    }

    /* Parameters: masters, copies for the products, gradients and Adam's moments; amp.h owns them. */
    desc.model = probe ? AMP_F32 : mode->model;
    desc.master = probe ? AMP_MASTER_F32 : mode->master;
    desc.moments = probe ? AMP_NONE : 2;
    desc.label = probe ? "probe" : "params";
    must(ctx, amp_params_create(&net->params, ctx, &desc));
    for (i = 0; i < s->layers; i++)
        network_add_layer(net, s, i, seed);
    must(ctx, amp_params_commit(net->params));

    net->staging = (float *)network_alloc(net, o->batch * inputs * sizeof(float), "staging");
    for (i = 0; i < s->layers; i++)
        network_connect_layer(net, i, desc.model, probe ? "probe" : "activations");
    if (mode->fp8 && !probe) network_use_fp8(net, mode);

    net->loss.rows = o->batch;
    net->loss.classes = classes;
    net->loss.logits = net->layer[last].y;
    net->loss.dlogits = net->layer[last].dy;
    net->loss.labels = net->labels = (int32_t *)network_alloc(net, o->batch * sizeof(int32_t), "staging");
    net->loss.row_loss = (float *)network_alloc(net, o->batch * sizeof(float), "staging");
    net->loss.loss = (float *)network_alloc(net, sizeof(float), "staging");
    net->loss.factor = amp_opt((float)(1.0 / (double)o->places));
}

static void network_destroy(network *net) {
    amp_params_destroy(net->params);
    amp_fp8_destroy(net->fp8);
    while (net->n_memory)
        must(net->ctx, amp_free(net->ctx, net->memory[--net->n_memory]));
}

/* Images and labels from the host, the images in the network's format. */
static void network_input(network *net, const float *x, const int32_t *labels, size_t rows) {
    size_t n = rows * net->layer[0].in;
    must(net->ctx, amp_copy(net->ctx, net->staging, x, n * sizeof(float)));
    must(net->ctx, amp_cast(net->ctx, net->layer[0].x, amp_arr(net->staging, AMP_F32), n, NULL));
    if (labels) must(net->ctx, amp_copy(net->ctx, net->labels, labels, rows * sizeof(int32_t)));
}

static void network_forward(network *net) {
    int i;
    for (i = 0; i < net->layers; i++)
        must(net->ctx, amp_linear_forward(net->ctx, &net->layer[i]));
}

static void network_backward(network *net) {
    int i;
    must(net->ctx, amp_softmax_cross_entropy(net->ctx, &net->loss));
    for (i = net->layers - 1; i >= 0; i--)
        must(net->ctx, amp_linear_backward(net->ctx, &net->layer[i]));
}

static void network_set_rows(network *net, size_t rows, int training) {
    int i;
    for (i = 0; i < net->layers; i++) {
        net->layer[i].rows = rows;
        net->layer[i].fp8_keep = !training; /* evaluation moves no scale */
    }
}

/* Is the label's logit the first of the largest ones, and finite? */
static int is_right(const void *logits, amp_dtype type, size_t row, size_t classes, size_t label) {
    size_t best = 0, c;
    float most = amp_load(logits, type, row * classes);
    for (c = 1; c < classes; c++) {
        float z = amp_load(logits, type, row * classes + c);
        if (!(z > most)) continue;
        best = c;
        most = z;
    }
    return best == label && amp_is_finite(most);
}

/* Share of the test images that get the right label, in the network's own format. */
static double network_accuracy(network *net, const images *test) {
    amp_array logits = net->loss.logits;
    size_t batch = net->layer[0].rows, classes = net->loss.classes, size = amp_dtype_size(logits.dtype);
    size_t at, rows, r, right = 0;
    void *host = allocate(batch * classes, size);
    for (at = 0; at < test->count; at += rows) {
        rows = test->count - at < batch ? test->count - at : batch;
        network_set_rows(net, rows, 0);
        network_input(net, test->x + at * test->pixels, NULL, rows);
        network_forward(net);
        must(net->ctx, amp_copy(net->ctx, host, logits.data, rows * classes * size));
        for (r = 0; r < rows; r++)
            right += (size_t)is_right(host, logits.dtype, r, classes, (size_t)test->label[at + r]);
    }
    network_set_rows(net, batch, 1);
    free(host);
    return (double)right / (double)test->count;
}

/* ==== one run =================================================================================================== */

typedef struct result {
    double accuracy, loss, seconds, lost; /* lost: share of gradients that FP16 rounds to zero at this run's scale */
    double lost8;                         /* and what FP8 E5M2 would without a scale */
    float scale;
    uint64_t skipped, hash;                              /* hash: of the bits of all weights */
    uint64_t weights, gradients, optimizer, activations; /* bytes, from the ledger */
    double before[255], after[255]; /* gradients by power of two: as they are, and times the loss scale */
    double frozen;                  /* share of weights that a step of size lr does not move in FP16 */
    float *losses, *scales;         /* per step */
    unsigned char *skips;
    size_t steps;
} result;

static struct progress {
    size_t done, total;
    double start, shown;
    int terminal;
} progress;

static void show_progress(
    const char *mode, uint64_t seed, size_t step, size_t steps, double loss, float scale, uint64_t skipped) {
    double now = seconds(), per_step = (now - progress.start) / (double)progress.done;
    double left = per_step * (double)(progress.total - progress.done);
    int last = step == steps, due = step % (steps / 4 + 1) == 0;
    if (progress.terminal) due = now - progress.shown >= 0.1; /* in place, so often */
    if (!due && !last) return;
    progress.shown = now;
    printf("%s%-12s seed %lu  %5lu/%lu  loss %-8.4g scale 2^%-3.0f skipped %-3lu %4.0f s left%s",
        progress.terminal ? "\r" : "", mode, (unsigned long)seed, (unsigned long)step, (unsigned long)steps, loss,
        log2((double)scale), (unsigned long)skipped, left, progress.terminal && !last ? "  " : "\n");
    fflush(stdout);
}

/* Repeats a step in FP32 with the run's present weights, and counts the sizes of all gradients: of the loss with
   respect to the outputs of all layers, and to all parameters. (The run's own FP16 gradients would not do: the lost
   ones are zeros.) Adds to *counted how many were not zero. */
static void count_gradients(network *probe, const network *net, const float *x, const int32_t *labels, float scale,
    result *r, double *counted) {
    amp_array list[3 * MAX_LAYERS];
    amp_histogram h;
    size_t i, n = 0, count = amp_params_count(net->params);
    int e, shift = (int)floor(log2((double)scale) + 0.5);
    double nonzero;
    for (i = 0; i < count; i++) {
        amp_array from = amp_param_get(net->params, i).master, to = amp_param_model(probe->params, i);
        if (!from.data) from = amp_param_model(net->params, i);
        must(net->ctx, amp_cast(net->ctx, to, from, to.count, NULL));
        list[n++] = amp_param_grad(probe->params, i);
    }
    for (e = 0; e < probe->layers; e++)
        list[n++] = probe->layer[e].dy;
    network_input(probe, x, labels, probe->layer[0].rows);
    network_forward(probe);
    network_backward(probe);
    must(net->ctx, amp_histogram_count(net->ctx, &h, list, n));
    nonzero = (double)(h.total - h.zero - h.inf - h.nan);
    r->lost += amp_histogram_fates(&h, AMP_F16, scale).lost * nonzero;
    r->lost8 += amp_histogram_fates(&h, AMP_F8E5M2, 1.0f).lost * nonzero;
    *counted += nonzero;
    for (e = 1; e < 255; e++) {
        r->before[e] += (double)h.pow2[e];
        if (e + shift >= 1 && e + shift < 255) r->after[e + shift] += (double)h.pow2[e];
    }
}

/* A weight in [2^e, 2^(e+1)) has FP16 neighbours at a distance of 2^(e-10); a move below half of that is rounded
   away. */
static double frozen_weights(network *net, double lr) {
    amp_array list[2 * MAX_LAYERS];
    amp_histogram h;
    size_t n = amp_params_count(net->params), i;
    uint64_t frozen = 0;
    for (i = 0; i < n; i += 2)
        list[i / 2] = amp_param_model(net->params, i);
    must(net->ctx, amp_histogram_count(net->ctx, &h, list, n / 2));
    for (i = 1; i < 255; i++)
        if (lr < ldexp(1.0, (int)i - 127 - 11)) frozen += h.pow2[i];
    return (double)frozen / (double)h.total;
}

static void result_create(result *r, size_t steps) {
    memset(r, 0, sizeof *r);
    r->steps = steps;
    r->losses = (float *)allocate(steps, sizeof *r->losses);
    r->scales = (float *)allocate(steps, sizeof *r->scales);
    r->skips = (unsigned char *)allocate(steps, 1);
}

static void result_free(result *r) {
    free(r->losses);
    free(r->scales);
    free(r->skips);
    memset(r, 0, sizeof *r);
}

/* The gradients' counts as shares of all that were counted. */
static void result_normalise(result *r, double counted) {
    int e;
    if (!(counted > 0)) return;
    r->lost /= counted;
    r->lost8 /= counted;
    for (e = 0; e < 255; e++) {
        r->before[e] /= counted;
        r->after[e] /= counted;
    }
}

static amp_scaler *create_scaler(amp_ctx *ctx, const struct setting *s, amp_scaler_mode mode) { /* NULL: OFF */
    amp_scaler *scaler = NULL;
    amp_scaler_desc desc = AMP_ZERO;
    if (mode == AMP_SCALER_OFF) return NULL;
    desc.mode = mode;
    desc.scale = mode == AMP_SCALER_STATIC ? s->static_scale : s->first_scale;
    desc.growth_interval = s->growth_interval;
    must(ctx, amp_scaler_create(&scaler, ctx, &desc));
    return scaler;
}

typedef struct batches { /* the training images in a random order, anew every epoch */
    const images *data;
    uint64_t seed;
    size_t batch, per_epoch;
    uint32_t *order;
    float *x; /* the present batch */
    int32_t *labels;
} batches;

static void batches_create(batches *b, const images *data, size_t batch, uint64_t seed) {
    size_t i;
    b->data = data;
    b->seed = seed;
    b->batch = batch;
    b->per_epoch = data->count / batch; /* what is left over waits for the next epoch's shuffle */
    b->order = (uint32_t *)allocate(data->count, sizeof *b->order);
    b->x = (float *)allocate(batch * data->pixels, sizeof *b->x);
    b->labels = (int32_t *)allocate(batch, sizeof *b->labels);
    for (i = 0; i < data->count; i++)
        b->order[i] = (uint32_t)i;
}

static void batches_next(batches *b, size_t step) {
    const images *m = b->data;
    size_t at = step % b->per_epoch * b->batch, i;
    if (at == 0) shuffle(b->order, m->count, b->seed, step / b->per_epoch);
    for (i = 0; i < b->batch; i++) {
        size_t from = b->order[at + i];
        memcpy(b->x + i * m->pixels, m->x + from * m->pixels, m->pixels * sizeof *b->x);
        b->labels[i] = m->label[from];
    }
}

static void batches_free(batches *b) {
    free(b->order);
    free(b->x);
    free(b->labels);
}

static void train(amp_ctx *ctx, const struct setting *s, const options *o, const struct mode *mode, const images *data,
    const images *test, size_t classes, uint64_t seed, FILE *csv, result *r) {
    const size_t per_epoch = data->count / o->batch, steps = o->epochs * per_epoch, look_every = steps / 20 + 1;
    double start = seconds(), looking = 0, counted = 0;
    amp_scaler *scaler = create_scaler(ctx, s, mode->scaling);
    amp_step_desc update = AMP_ZERO;
    amp_step_record record;
    amp_scaler_info scaling;
    batches b;
    network net, probe;
    size_t step;

    result_create(r, steps);
    batches_create(&b, data, o->batch, seed);
    network_create(&net, ctx, s, o, mode, data->pixels, classes, seed, 0);
    network_create(&probe, ctx, s, o, mode, data->pixels, classes, seed, 1);
    net.loss.scaler = scaler;
    update.optimizer = AMP_ADAM;
    update.lr = (float)o->lr;
    r->frozen = frozen_weights(&net, o->lr);

    for (step = 0; step < steps; step++) {
        batches_next(&b, step);
        if (step % look_every == look_every / 2) {
            double now = seconds();
            must(ctx, amp_scaler_get(scaler, &scaling)); /* also without one: 1 */
            count_gradients(&probe, &net, b.x, b.labels, scaling.scale, r, &counted);
            looking += seconds() - now;
        }

        /* the training step */
        network_input(&net, b.x, b.labels, o->batch);
        network_forward(&net);
        network_backward(&net);
        must(ctx, amp_step(net.params, scaler, &update));

        /* what happened: these two lines wait for the device; a loop in a hurry asks for them less often */
        must(ctx, amp_copy(ctx, &r->losses[step], net.loss.loss, sizeof(float)));
        must(ctx, amp_step_poll(net.params, &record));
        r->scales[step] = record.scale;
        r->skips[step] = record.outcome != AMP_STEPPED;
        progress.done++;
        show_progress(mode->name, seed, step + 1, steps, (double)r->losses[step], record.scale, record.skipped);
        if (csv)
            fprintf(csv, "%s,%s,%lu,%lu,%lu,%.7g,%.9g,%s,%lu\n", s->name, mode->name, (unsigned long)seed,
                (unsigned long)(step / per_epoch + 1), (unsigned long)(step + 1), (double)r->losses[step],
                (double)record.scale, amp_outcome_name((amp_outcome)record.outcome), (unsigned long)record.skipped);
    }

    r->skipped = record.skipped;
    must(ctx, amp_scaler_get(scaler, &scaling));
    r->scale = scaling.scale;
    r->hash = weights_hash(net.ctx, net.params);
    r->accuracy = network_accuracy(&net, test);
    r->loss = plot_mean(r->losses, steps - per_epoch, steps); /* of the last epoch */
    r->weights = ledger_row(ctx, "params.master").bytes + ledger_row(ctx, "params.model").bytes;
    r->gradients = ledger_row(ctx, "params.grad").bytes;
    r->optimizer = ledger_row(ctx, "params.moments").bytes;
    r->activations = ledger_row(ctx, "activations").bytes;
    result_normalise(r, counted);
    r->seconds = seconds() - start - looking;

    amp_scaler_destroy(scaler);
    network_destroy(&probe);
    network_destroy(&net);
    batches_free(&b);
}

/* ==== what came out ============================================================================================= */

typedef struct summary { /* over seeds */
    double mean, sd;
} summary;

static summary summarise(const double *v, int n) {
    summary s = {0, 0};
    int i;
    for (i = 0; i < n; i++)
        s.mean += v[i] / n;
    for (i = 0; i < n; i++)
        s.sd += (v[i] - s.mean) * (v[i] - s.mean);
    s.sd = n > 1 ? sqrt(s.sd / (n - 1)) : 0;
    return s;
}

typedef struct runs {
    result *of[MODES]; /* of[mode][seed] */
    summary accuracy[MODES], loss[MODES];
} runs;

static void summarise_runs(runs *all, const options *o) {
    double v[MAX_SEEDS];
    int m, i;
    for (m = 0; m < MODES; m++) {
        if (!o->run[m]) continue;
        for (i = 0; i < o->seeds; i++)
            v[i] = all->of[m][i].accuracy;
        all->accuracy[m] = summarise(v, o->seeds);
        for (i = 0; i < o->seeds; i++)
            v[i] = all->of[m][i].loss;
        all->loss[m] = summarise(v, o->seeds);
    }
}

static void print_table(const runs *all, const options *o) {
    int m, i, wide = o->seeds > 1, a = wide ? 13 : 9, l = wide ? 16 : 9; /* columns of accuracy and loss */
    printf("\n%-13s %-*s %-*s %-7s %-5s %-36s %-7s %s\n", "", a, "test", l, "final", "steps", "final", "KiB of", "",
        "gradients");
    printf("%-13s %-*s %-*s %-7s %-5s %-7s %-9s %-9s %-8s %-7s %s\n", "mode", a, "accuracy", l, "loss", "skipped",
        "scale", "weights", "gradients", "optimizer", "activ.", "seconds", "FP16 loses");
    for (m = 0; m < MODES; m++) {
        const result *r = all->of[m];
        char accuracy[64], loss[64], scale[32];
        double skipped = 0, lost = 0, time = 0;
        if (!o->run[m]) continue;
        for (i = 0; i < o->seeds; i++) {
            skipped += (double)r[i].skipped / o->seeds;
            lost += r[i].lost / o->seeds;
            time += r[i].seconds / o->seeds;
        }
        sprintf(accuracy, wide ? "%.1f%% +-%.1f" : "%.1f%%", 100 * all->accuracy[m].mean, 100 * all->accuracy[m].sd);
        sprintf(loss, wide ? "%.4f +-%.4f" : "%.4f", all->loss[m].mean, all->loss[m].sd);
        if (modes[m].scaling == AMP_SCALER_OFF)
            strcpy(scale, "-");
        else
            sprintf(scale, "2^%g", log2((double)r->scale));
        printf("%-13s %-*s %-*s %-7.4g %-5s %-7.1f %-9.1f %-9.1f %-8.1f %-7.2f %.2f%%%s\n", modes[m].name, a, accuracy,
            l, loss, skipped, scale, (double)r->weights / 1024, (double)r->gradients / 1024,
            (double)r->optimizer / 1024, (double)r->activations / 1024, time, 100 * lost,
            modes[m].model == AMP_F16 ? "" : " *");
    }
    if (wide) printf("Mean and standard deviation over %d seeds; scale and bytes of the first.\n", o->seeds);
    printf("Weights: masters and model copies together. Activations: with their gradients.");
    printf(o->run[FP32] || o->run[BF16] ? " * FP16 would lose them.\n" : "\n");
    for (m = FP8_CURRENT; m <= FP8_DELAYED; m++)
        if (o->run[m])
            printf("%s: without a scale E5M2 would round %.1f%% of the gradients to zero.\n", modes[m].name,
                100 * all->of[m]->lost8);
    if (!o->ordered) return;
    printf("Bits of the weights after the last step, on every machine (--ordered):\n");
    for (m = 0; m < MODES; m++)
        for (i = 0; i < o->seeds && o->run[m]; i++)
            printf("    %-13s seed %lu: %08lx%08lx\n", modes[m].name, (unsigned long)(o->seed + (uint64_t)i),
                (unsigned long)(all->of[m][i].hash >> 32), (unsigned long)(all->of[m][i].hash & 0xffffffffu));
}

/* One sentence for the table and for the picture of the losses, if the numbers support one. */
static void finding(char text[256], const runs *all, const options *o, int m) {
    const summary *acc = all->accuracy;
    const result *r = all->of[m];
    int reference = o->run[FP32] ? FP32 : AMP_DYNAMIC_SCALE;
    double short_of;
    *text = 0;
    if (!o->run[m] || !o->run[reference]) return;
    short_of = acc[reference].mean - acc[m].mean;
    if (m == FP16_MASTERS && short_of > 0.01 && r->lost > 0.01)
        sprintf(text,
            "Without loss scaling FP16 rounds %.0f%% of the gradients to zero; "
            "test accuracy %.1f%% instead of %.1f%%.",
            100 * r->lost, 100 * acc[m].mean, 100 * acc[reference].mean);
    else if (m == FP16_MASTERS && short_of <= 0.01)
        sprintf(text, "Without loss scaling FP16 rounds %.2g%% of the gradients to zero: here that costs nothing.",
            100 * r->lost);
    if (m == FP16_PURE && short_of > 0.01 && r->frozen > 0.01)
        sprintf(text,
            "Without FP32 masters accuracy is %.1f points lower: "
            "FP16 rounds a step of lr = %g to nothing in %.0f%% of the weights.",
            100 * short_of, o->lr, 100 * r->frozen);
}

static void why_small(char text[256], const struct setting *s, const options *o) { /* nothing is planted silently */
    *text = 0;
    if (o->places > 1)
        sprintf(text, "Small gradients: the loss is a mean over %lu images x %ld places%s.", (unsigned long)o->batch,
            o->places, s->act == AMP_GELU ? ", and each GELU layer halves them again" : "");
}

static void print_findings(const runs *all, const struct setting *s, const options *o) {
    char text[256];
    printf("\n");
    finding(text, all, o, FP16_PURE);
    if (*text) printf("%s\n", text);
    finding(text, all, o, FP16_MASTERS);
    if (*text) printf("%s\n", text);
    why_small(text, s, o);
    if (*text) printf("%s\n", text);
}

static char *picture_path(const options *o, const struct setting *s, const char *name) {
    char *path = (char *)allocate(strlen(o->out) + strlen(s->name) + strlen(name) + 3, 1);
    sprintf(path, "%s/%s_%s", o->out, s->name, name);
    return path;
}

static void picture_done(char *path, int status) {
    if (status) fail("%s: could not be written: %s", path, strerror(errno));
    printf("wrote %s\n", path);
    free(path);
}

static void draw_losses(const runs *all, const struct setting *s, const options *o) {
    plot_curve curves[MODES];
    char note[MODES][64], title[96], line1[256], line2[256], text[256];
    char *path = picture_path(o, s, "loss.svg");
    int m, n = 0;
    size_t window;
    for (m = 0; m < MODES; m++) {
        const result *r = all->of[m];
        if (!o->run[m]) continue;
        sprintf(note[n], "loss %.3g, test %.1f%%", r->loss, 100 * r->accuracy);
        curves[n].name = modes[m].name;
        curves[n].note = note[n];
        curves[n].style = &plot_styles[m];
        curves[n].y = r->losses;
        curves[n].steps = r->steps;
        n++;
    }
    window = curves[0].steps / PLOT_POINTS;
    sprintf(title, "Handwritten digits in %d precision mode%s: %s network", n, n > 1 ? "s" : "", s->name);
    sprintf(line1, "%s. The loss is a mean over %lu images", s->what, (unsigned long)o->batch);
    if (o->places > 1) sprintf(line1 + strlen(line1), " x %ld places of a page: small gradients", o->places);
    strcat(line1, ".");
    sprintf(line2,
        "Same seed and same order of images for every mode. A point is the mean of %lu steps; "
        "at the right: loss of the last epoch, test accuracy.",
        (unsigned long)(window ? window : 1));
    finding(text, all, o, FP16_PURE);
    if (!*text) finding(text, all, o, FP16_MASTERS);
    picture_done(path, plot_losses(path, title, line1, line2, text, curves, n));
}

static void draw_scale(const result *r, const struct mode *mode, const struct setting *s, const options *o) {
    char title[96], line2[256], *path = picture_path(o, s, "scale.svg");
    const char *line1 = "The loss is multiplied by the scale, so that small gradients stay inside FP16's range; "
                        "gradients are divided by it before use.";
    sprintf(title, "The loss scale of %s: %s network", mode->name, s->name);
    if (mode->scaling == AMP_SCALER_DYNAMIC)
        sprintf(line2,
            "It starts too high on purpose. A step whose gradients overflow is skipped and halves it; "
            "%d good steps in a row double it.",
            (int)s->growth_interval);
    else
        sprintf(line2, "It is constant. A step whose gradients overflow is skipped.");
    picture_done(path, plot_scale(path, title, line1, line2, r->scales, r->skips, r->steps));
}

static void draw_gradients(const result *r, const struct mode *mode, const struct setting *s, const options *o) {
    char title[96], line1[256], text[256], *path = picture_path(o, s, "gradients.svg");
    const char *line2 = "FP16 keeps 11 bits from 2&#8315;&#185;&#8308; to 65504, fewer below, "
                        "and nothing below 2&#8315;&#178;&#8309;.";
    sprintf(title, "Gradients and the range of FP16: %s network", s->name);
    sprintf(line1,
        "Nonzero gradients of activations and parameters by size, computed in FP32 at 20 moments of the run of %s.",
        mode->name);
    why_small(text, s, o);
    picture_done(path,
        plot_exponents(path, title, line1, line2, text, r->before, r->after, "Before scaling",
            "After scaling: times the loss scale of the step"));
    plot_sketch("Gradients by size, before scaling", r->before);
    plot_sketch("after scaling", r->after);
}

static void draw(const runs *all, const struct setting *s, const options *o) { /* the first seed's runs */
    int m = o->run[AMP_DYNAMIC_SCALE] ? AMP_DYNAMIC_SCALE : AMP_STATIC_SCALE;
    draw_losses(all, s, o);
    if (!o->run[m]) {
        printf("no pictures of scale and gradients: neither amp-dynamic nor amp-static was run\n");
        return;
    }
    draw_scale(all->of[m], &modes[m], s, o);
    draw_gradients(all->of[m], &modes[m], s, o);
}

/* ==== --check: do the claims hold? ============================================================================== */

/* Two-sided: neither worse nor better than the reference by more than twice the standard error of the difference; at
   least one point, which is 3.6 of the 360 test images. */
static int claim_equal(const runs *all, const options *o, const char *net, int m, int reference) {
    const summary *a = &all->accuracy[m], *b = &all->accuracy[reference];
    double noise = 2 * sqrt((a->sd * a->sd + b->sd * b->sd) / o->seeds), difference = a->mean - b->mean;
    if (noise < 0.01) noise = 0.01;
    return claim(fabs(difference) <= noise, "%s: %s is %+.2f points from %s, noise is %.2f", net, modes[m].name,
        100 * difference, modes[reference].name, 100 * noise);
}

/* Both recipes of FP8 beside BF16, whose network they are but for the copies that products read. */
static int check_fp8(const runs *all, const char *net) {
    const summary *acc = all->accuracy;
    int wrong = 0, m;
    for (m = FP8_CURRENT; m <= FP8_DELAYED; m++) {
        double difference = 100 * (acc[m].mean - acc[BF16].mean);
        if (!all->of[m]) continue;
        wrong += claim(fabs(difference) <= 0.3,
            "%s: %s is %+.2f points from bf16; without a scale E5M2 would lose %.1f%% of the gradients", net,
            modes[m].name, difference, 100 * all->of[m]->lost8);
    }
    return wrong;
}

static int check_plain(const runs *all, const options *o) {
    static const int same[4] = {FP16_MASTERS, AMP_STATIC_SCALE, AMP_DYNAMIC_SCALE, BF16};
    const summary *acc = all->accuracy, *loss = all->loss;
    unsigned long skipped = (unsigned long)all->of[AMP_DYNAMIC_SCALE]->skipped;
    double ratio;
    int wrong = 0, i;
    wrong += claim(acc[FP32].mean > 0.9, "plain: fp32 learns: %.1f%%", 100 * acc[FP32].mean);
    for (i = 0; i < 4; i++) {
        wrong += claim_equal(all, o, "plain", same[i], FP32);
        ratio = loss[same[i]].mean / loss[FP32].mean;
        wrong +=
            claim(fabs(ratio - 1) < 0.02, "plain: the final loss of %s is %.4f of fp32's", modes[same[i]].name, ratio);
    }
    wrong += claim(
        acc[FP16_PURE].mean < acc[FP32].mean - 0.02, "plain: fp16-pure is worse: %.1f%%", 100 * acc[FP16_PURE].mean);
    ratio = loss[FP16_PURE].mean / loss[FP32].mean;
    wrong += claim(ratio > 1.5, "plain: its final loss is %.1f times fp32's", ratio);
    wrong += claim(skipped > 0, "plain: amp-dynamic skipped %lu steps on its way down", skipped);
    return wrong + check_fp8(all, "plain");
}

static int check_deep(const runs *all, const options *o) {
    const summary *acc = all->accuracy;
    double lost = all->of[FP16_MASTERS]->lost, lost_scaled = all->of[AMP_DYNAMIC_SCALE]->lost;
    int wrong = 0;
    wrong += claim(acc[FP32].mean > 0.9, "deep: fp32 learns: %.1f%%", 100 * acc[FP32].mean);
    wrong += claim_equal(all, o, "deep", AMP_DYNAMIC_SCALE, FP32);
    wrong +=
        claim(acc[FP16_MASTERS].mean < 0.3, "deep: fp16-masters does not learn: %.1f%%", 100 * acc[FP16_MASTERS].mean);
    wrong += claim(lost > 0.5 && lost_scaled < 0.05,
        "deep: FP16 loses %.1f%% of its gradients, and %.1f%% with scaling", 100 * lost, 100 * lost_scaled);
    return wrong + check_fp8(all, "deep");
}

/* ==== options and main ========================================================================================== */

static const char help[] =
    "digits: trains a network on handwritten digits in several precisions and shows what each costs.\n"
    "\n"
    "  --net plain|deep     the network (plain). deep: 8 layers and a loss of small gradients, where scaling decides\n"
    "  --mode LIST          all six (default), or some of fp32,fp16-pure,fp16-masters,amp-static,amp-dynamic,bf16,\n"
    "                       and fp8-current, fp8-delayed: BF16 whose products read FP8 with a scale per tensor\n"
    "  --seed N             random numbers of weights and order (1)\n"
    "  --seeds N            repeat with N seeds: mean and spread (1)\n"
    "  --epochs N --batch N --hidden N --lr X     instead of the network's own\n"
    "  --places N           the loss is a mean over N places per image: gradients N times smaller (plain 1,\n"
    "                       deep 65536)\n"
    "  --data DIR           IDX files instead of the built-in digits: train-images-idx3-ubyte,\n"
    "                       train-labels-idx1-ubyte, t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte (MNIST and its\n"
    "                       kin, any image size)\n"
    "  --out DIR            folder for the three pictures (out)\n"
    "  --csv FILE           write every step to FILE\n"
    "  --device cpu|cuda    where (cuda if built with it and found)\n"
    "  --threads N          CPU threads (all)\n"
    "  --simd auto|scalar|sse2|avx2|avx512|neon   CPU code path (auto)\n"
    "  --ordered            products in a defined order: the same weights, to the bit, on every machine\n"
    "  --check              test the claims with 5 seeds on both networks; writes no files; exit status 1 if one\n"
    "                       fails\n"
    "  --help\n"
    "\n"
    "Built-in data: Optical Recognition of Handwritten Digits, E. Alpaydin and C. Kaynak, 1998, UCI Machine Learning\n"
    "Repository, CC BY 4.0.\n";

static double number(const char *option, const char *text, double low, double high, int whole) {
    char *end;
    double v = strtod(text, &end);
    if (end == text || *end || !(v >= low && v <= high) || (whole && floor(v) < v))
        fail("%s: '%s' is not a%s number from %g to %g", option, text, whole ? " whole" : "", low, high);
    return v;
}

static int is_word(const char *text, size_t length, const char *word) {
    return length == strlen(word) && !strncmp(text, word, length);
}

static void parse_modes(options *o, const char *list) {
    int m;
    memset(o->run, 0, sizeof o->run);
    for (;;) {
        size_t length = strcspn(list, ",");
        int known = 0;
        for (m = 0; m < MODES; m++)
            if ((is_word(list, length, "all") && !modes[m].fp8) || is_word(list, length, modes[m].name))
                known = o->run[m] = 1;
        if (!known)
            fail("--mode: '%.*s' is not a mode: all, fp32, fp16-pure, fp16-masters, amp-static, amp-dynamic, bf16, "
                 "fp8-current or fp8-delayed",
                (int)length, list);
        if (!list[length]) return;
        list += length + 1;
    }
}

static int choice(const char *option, const char *text, const char *const *names, int n) {
    char list[128] = "";
    int i;
    for (i = 0; i < n; i++) {
        if (!strcmp(text, names[i])) return i;
        if (i) strcat(list, i + 1 == n ? " or " : ", ");
        strcat(list, names[i]);
    }
    fail("%s: '%s' is not %s", option, text, list);
    return 0;
}

static const char *path(const char *option, const char *text) {
    if (!*text) fail("%s needs a path, see --help", option);
    return text;
}

/* The options with a value. Those that name a network or modes set net_given. */
static void parse_option(options *o, const char *a, const char *v, int *net_given) {
    static const char *const nets[] = {"plain", "deep"}, *const devices[] = {"cpu", "cuda"};
    static const char *const simds[] = {"auto", "scalar", "sse2", "avx2", "avx512", "neon"};
    static const amp_simd simd[] = {
        AMP_SIMD_AUTO, AMP_SIMD_SCALAR, AMP_SIMD_SSE2, AMP_SIMD_AVX2, AMP_SIMD_AVX512, AMP_SIMD_NEON};
    if (!strcmp(a, "--net")) {
        o->net = choice(a, v, nets, 2);
        *net_given = 1;
    } else if (!strcmp(a, "--mode")) {
        parse_modes(o, v);
        *net_given = 1;
    } else if (!strcmp(a, "--seed"))
        o->seed = (uint64_t)number(a, v, 0, 4294967295.0, 1);
    else if (!strcmp(a, "--seeds"))
        o->seeds = (int)number(a, v, 1, MAX_SEEDS, 1);
    else if (!strcmp(a, "--epochs"))
        o->epochs = (size_t)number(a, v, 1, 1e6, 1);
    else if (!strcmp(a, "--batch"))
        o->batch = (size_t)number(a, v, 1, 65536, 1);
    else if (!strcmp(a, "--hidden"))
        o->hidden = (size_t)number(a, v, 1, 16384, 1);
    else if (!strcmp(a, "--lr"))
        o->lr = number(a, v, 1e-12, 1e6, 0);
    else if (!strcmp(a, "--places"))
        o->places = (long)number(a, v, 1, 1e9, 1);
    else if (!strcmp(a, "--data"))
        o->data = path(a, v);
    else if (!strcmp(a, "--out"))
        o->out = path(a, v);
    else if (!strcmp(a, "--csv"))
        o->csv = path(a, v);
    else if (!strcmp(a, "--device"))
        o->device = devices[choice(a, v, devices, 2)];
    else if (!strcmp(a, "--threads"))
        o->threads = (int)number(a, v, 1, 256, 1);
    else if (!strcmp(a, "--simd"))
        o->simd = simd[choice(a, v, simds, 6)];
    else
        fail("unknown option '%s', see --help", a);
}

static options parse(int argc, char **argv) {
    options o;
    int i, net_given = 0;
    memset(&o, 0, sizeof o);
    o.seed = 1;
    o.out = "out";
    parse_modes(&o, "all");
    for (i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            fputs(help, stdout);
            exit(0);
        }
        if (!strcmp(argv[i], "--check"))
            o.check = 1;
        else if (!strcmp(argv[i], "--ordered"))
            o.ordered = 1;
        else {
            parse_option(&o, argv[i], argv[i + 1] ? argv[i + 1] : "", &net_given);
            i++;
        }
    }
    if (o.check && (net_given || o.csv))
        fail("--check runs its own nets and modes and writes no files: leave out --net, --mode and --csv");
    if (!o.seeds) o.seeds = o.check ? 5 : 1;
    return o;
}

/* What was not given comes from the setting. */
static void complete(options *o, const struct setting *s, size_t images_in_train) {
    if (!o->hidden) o->hidden = s->hidden;
    if (!o->batch) o->batch = s->batch;
    if (!(o->lr > 0)) o->lr = s->lr;
    if (!o->places) o->places = s->places;
    if (o->batch > images_in_train)
        fail("--batch: %lu is more than the %lu training images", (unsigned long)o->batch,
            (unsigned long)images_in_train);
    if (!o->epochs) {
        size_t per_epoch = images_in_train / o->batch;
        o->epochs = (s->steps + per_epoch - 1) / per_epoch;
    }
}

static amp_ctx *create_context(const options *o) {
    amp_cpu_desc cpu = AMP_ZERO;
    cpu.threads = (int32_t)o->threads;
    cpu.simd = o->simd;
    cpu.gemm_flags = o->ordered ? AMP_GEMM_ORDERED : 0;
    return open_context(o->device, &cpu);
}

static FILE *open_outputs(const options *o) { /* before the training, so that a bad path is noticed at once */
    struct stat info;
    int made = 0;
    FILE *csv = NULL;
    if (stat(o->out, &info) == 0) {
        if (!S_ISDIR(info.st_mode)) fail("--out: %s is not a folder", o->out);
        if (!may_write(o->out)) fail("--out: %s: %s", o->out, strerror(errno));
    } else if (make_dir(o->out) == 0)
        made = 1;
    else
        fail("--out: cannot create the folder %s: %s", o->out, strerror(errno));
    if (o->csv) {
        csv = fopen(o->csv, "w");
        if (!csv) {
            int why = errno;
            if (made) remove_dir(o->out);
            fail("--csv: %s: %s", o->csv, strerror(why));
        }
        fprintf(csv, "net,mode,seed,epoch,step,loss,scale,outcome,skipped\n");
    }
    return csv;
}

/* Runs the chosen modes of one network with all seeds. Returns the number of claims that do not hold (--check). */
static int run_net(amp_ctx *ctx, const options *o, int net, const images *train_set, const images *test_set,
    size_t classes, FILE *csv) {
    const struct setting *s = &settings[net];
    runs all;
    int m, i, wrong = 0;
    memset(&all, 0, sizeof all);
    printf("\n%s network: %s\nlayers of %lu-", s->name, s->what, (unsigned long)train_set->pixels);
    for (i = 1; i < s->layers; i++)
        printf("%lu-", (unsigned long)o->hidden);
    printf("%lu, batch %lu, %lu epochs, Adam with lr %g", (unsigned long)classes, (unsigned long)o->batch,
        (unsigned long)o->epochs, o->lr);
    printf(", loss: mean over the images of a batch");
    if (o->places > 1)
        printf("\nand over %ld places of a page per image: that makes the gradients small, on purpose (--places)",
            o->places);
    printf("\n\n");
    progress.done = progress.total = 0;
    progress.start = seconds();
    for (m = 0; m < MODES; m++)
        if (o->run[m]) progress.total += (size_t)o->seeds * o->epochs * (train_set->count / o->batch);
    for (m = 0; m < MODES; m++) {
        if (!o->run[m]) continue;
        all.of[m] = (result *)allocate((size_t)o->seeds, sizeof(result));
        for (i = 0; i < o->seeds; i++)
            train(ctx, s, o, &modes[m], train_set, test_set, classes, o->seed + (uint64_t)i, csv, &all.of[m][i]);
    }
    summarise_runs(&all, o);
    print_table(&all, o);
    if (o->check) {
        printf("\n");
        wrong = net == PLAIN ? check_plain(&all, o) : check_deep(&all, o);
    } else {
        print_findings(&all, s, o);
        printf("\n");
        draw(&all, s, o);
    }
    for (m = 0; m < MODES; m++)
        if (all.of[m]) {
            for (i = 0; i < o->seeds; i++)
                result_free(&all.of[m][i]);
            free(all.of[m]);
        }
    return wrong;
}

int main(int argc, char **argv) {
    options o = parse(argc, argv), per_net;
    images train_set, test_set;
    size_t classes = 10, i;
    int net, wrong = 0;
    FILE *csv = NULL;
    amp_ctx *ctx;

    if (o.data) {
        train_set = load_idx(o.data, "train-images-idx3-ubyte", "train-labels-idx1-ubyte");
        test_set = load_idx(o.data, "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte");
        if (test_set.rows != train_set.rows || test_set.cols != train_set.cols)
            fail("%s/t10k-images-idx3-ubyte: images of %lu x %lu pixels, but those for training have %lu x %lu", o.data,
                (unsigned long)test_set.rows, (unsigned long)test_set.cols, (unsigned long)train_set.rows,
                (unsigned long)train_set.cols);
        for (i = 0; i < train_set.count; i++)
            if ((size_t)train_set.label[i] >= classes) classes = (size_t)train_set.label[i] + 1;
        for (i = 0; i < test_set.count; i++)
            if ((size_t)test_set.label[i] >= classes) classes = (size_t)test_set.label[i] + 1;
    } else
        load_builtin(&train_set, &test_set);
    for (net = 0; net < NETS; net++) { /* every option is checked before anything is written */
        per_net = o;
        if (o.check || net == o.net) complete(&per_net, &settings[net], train_set.count);
    }
    ctx = create_context(&o);
    if (!o.check) csv = open_outputs(&o);

    progress.terminal = on_terminal() != 0;
    printf("%s: %lu training images, %lu test images. Device: %s.\n", o.data ? o.data : "Built-in digits",
        (unsigned long)train_set.count, (unsigned long)test_set.count, amp_ctx_name(ctx));
    for (net = 0; net < NETS; net++) {
        if (!o.check && net != o.net) continue;
        per_net = o;
        if (o.check)
            parse_modes(&per_net,
                net == DEEP ? "fp32,fp16-masters,amp-dynamic,bf16,fp8-delayed" : "all,fp8-current,fp8-delayed");
        complete(&per_net, &settings[net], train_set.count);
        wrong += run_net(ctx, &per_net, net, &train_set, &test_set, classes, csv);
    }
    if (csv && (ferror(csv) | fclose(csv))) fail("--csv: %s: could not be written", o.csv);
    if (o.check) printf("\n%s\n", wrong ? "Some claims do not hold." : "All claims hold.");
    amp_ctx_destroy(ctx);
    images_free(&train_set);
    images_free(&test_set);
    return wrong != 0;
}
