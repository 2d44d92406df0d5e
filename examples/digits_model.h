/* digits_model.h - the network of digits.c: parameters, layers, forward, backward, accuracy; and a look at its
   gradients and weights by size. Included by digits_train.h alone. */
#ifndef DIGITS_MODEL_H
#define DIGITS_MODEL_H

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
    desc.moment = o->moment;
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

/* ==== what a run leaves behind: its steps, its bytes, and looks at gradients and weights by size ================== */

typedef struct result {
    double accuracy, loss, seconds, lost; /* lost: share of gradients that FP16 rounds to zero at this run's scale */
    double lost8;                         /* and what FP8 E5M2 would without a scale */
    float scale;
    uint64_t skipped, hash;                                              /* hash: of the bits of all weights */
    uint64_t masters, model, weights, gradients, optimizer, activations; /* bytes, from the ledger; weights: both */
    double before[255], after[255]; /* gradients by power of two: as they are, and times the loss scale */
    plot_underflow underflow;       /* the same looks, by layer */
    double frozen;                  /* share of weights that a step of size lr does not move in FP16 */
    double stuck;                   /* the first of them that is positive, 0: none */
    float *losses, *scales;         /* per step */
    unsigned char *skips;
    size_t steps;
} result;

static amp_ledger_row ledger_row(const amp_ctx *ctx, const char *label) { /* all zero if the label was never used */
    amp_ledger_row row = AMP_ZERO;
    (void)amp_ledger(ctx, &row, 1, label);
    return row;
}

PROGRAM_FN void result_bytes(result *r, const amp_ctx *ctx) {
    r->masters = ledger_row(ctx, "params.master").bytes;
    r->model = ledger_row(ctx, "params.model").bytes;
    r->weights = r->masters + r->model;
    r->gradients = ledger_row(ctx, "params.grad").bytes;
    r->optimizer = ledger_row(ctx, "params.moments").bytes;
    r->activations = ledger_row(ctx, "activations").bytes;
}

/* The sizes of layer i's gradients: of the loss with respect to its outputs, its weights and its bias. Returns how many
   are not zero. */
static double count_layer(network *probe, int i, float scale, result *r) {
    amp_array list[3];
    amp_histogram h;
    int e, shift = (int)floor(log2((double)scale) + 0.5), look = r->underflow.looks;
    double nonzero, lost, scaled;
    list[0] = amp_param_grad(probe->params, 2 * (size_t)i);
    list[1] = amp_param_grad(probe->params, 2 * (size_t)i + 1);
    list[2] = probe->layer[i].dy;
    must(probe->ctx, amp_histogram_count(probe->ctx, &h, list, 3));
    nonzero = (double)(h.total - h.zero - h.inf - h.nan);
    lost = amp_histogram_fates(&h, AMP_F16, 1.0f).lost;
    scaled = amp_histogram_fates(&h, AMP_F16, scale).lost;
    r->underflow.before[look][i] = lost;
    r->underflow.after[look][i] = scaled;
    r->lost += scaled * nonzero;
    r->lost8 += amp_histogram_fates(&h, AMP_F8E5M2, 1.0f).lost * nonzero;
    for (e = 1; e < 255; e++) {
        r->before[e] += (double)h.pow2[e];
        if (e + shift >= 1 && e + shift < 255) r->after[e + shift] += (double)h.pow2[e];
    }
    return nonzero;
}

/* Repeats a step in FP32 with the run's present weights, and counts the sizes of all gradients. (The run's own FP16
   gradients would not do: the lost ones are zeros.) Adds to *counted how many were not zero. */
static void count_gradients(network *probe, const network *net, const float *x, const int32_t *labels, float scale,
    result *r, double *counted) {
    size_t i, count = amp_params_count(net->params);
    int layer;
    for (i = 0; i < count; i++) {
        amp_array from = amp_param_get(net->params, i).master, to = amp_param_model(probe->params, i);
        if (!from.data) from = amp_param_model(net->params, i);
        must(net->ctx, amp_cast(net->ctx, to, from, to.count, NULL));
    }
    network_input(probe, x, labels, probe->layer[0].rows);
    network_forward(probe);
    network_backward(probe);
    r->underflow.layers = probe->layers;
    for (layer = 0; layer < probe->layers; layer++)
        *counted += count_layer(probe, layer, scale, r);
    r->underflow.looks++;
}

/* A weight in [2^e, 2^(e+1)) has FP16 neighbours at a distance of 2^(e-10); a move below half of that is rounded
   away. */
PROGRAM_FN double frozen_weights(network *net, double lr) {
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

/* The first positive weight of the first layer, as FP16, that a step of size lr does not move; 0 if all move. */
PROGRAM_FN double stuck_weight(network *net, double lr) {
    size_t n = amp_param_get(net->params, 0).count, i;
    float *w = (float *)allocate(n, sizeof *w);
    double found = 0;
    must(net->ctx, amp_param_read(net->params, 0, w));
    for (i = 0; i < n && !(found > 0); i++) {
        float near = amp_f32_from_f16(amp_f16_from_f32(w[i]));
        float moved = amp_f32_from_f16(amp_f16_from_f32(near + (float)lr));
        if (near > 0 && !(moved > near)) found = (double)near;
    }
    free(w);
    return found;
}

#endif
