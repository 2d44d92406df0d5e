/* convnet_net.h - the network of convnet.c, from parameters to gradients, out of amp's verbs and the layers of conv.h.
 * Stages and modes are what convnet.c says they are.
 */
#ifndef CONVNET_NET_H
#define CONVNET_NET_H

#include "conv.h"        /* convolution, batch norm, max pooling */
#include "digits_load.h" /* the images */

typedef struct stage { /* y = pool(relu(norm(conv(x)))); gradients take the way back */
    conv c;
    batch_norm n;
    pool_job pool; /* height 0: there is none */
    size_t weight; /* the parameter's index; gain and bias follow it */
    amp_array y, dy;
} stage;

typedef struct network {
    amp_ctx *ctx;
    amp_dtype t;
    size_t batch, height, width;
    amp_params *params;
    amp_scaler *scaler; /* NULL: off */
    stage s[STAGES];
    amp_linear_desc last;
    amp_xent_desc loss;
    amp_array images; /* all of them, in the network's dtype: those to learn from, then those of the test */
    int32_t *all_labels, *order, *labels;
    size_t n_train, n_test, pixels;
    void *memory[16 * STAGES + 16];
    int n_memory;
} network;

static void *get(network *net, size_t bytes, const char *label) {
    void *p;
    must(net->ctx, amp_alloc(net->ctx, &p, bytes, label));
    must(net->ctx, amp_zero(net->ctx, p, bytes));
    net->memory[net->n_memory++] = p;
    return p;
}
static amp_array tensor(network *net, size_t n, const char *label) {
    return amp_arrn(get(net, n * amp_dtype_size(net->t), label), net->t, n);
}
static float *floats(network *net, size_t n, float value) {
    float *host = (float *)allocate(n, sizeof *host), *p = (float *)get(net, n * sizeof *host, "norm");
    size_t i;
    for (i = 0; i < n; i++)
        host[i] = value;
    must(net->ctx, amp_copy(net->ctx, p, host, n * sizeof *host));
    free(host);
    return p;
}

/* A weight, uniform for layers with ReLU (He); or, with bound 0, a constant that stays FP32. Returns its index. */
static size_t add_param(network *net, size_t n, double bound, float constant, uint64_t seed) {
    amp_param_desc d = AMP_ZERO;
    size_t index = amp_params_count(net->params), i;
    float *init = (float *)allocate(n, sizeof *init);
    for (i = 0; i < n; i++)
        init[i] = bound > 0 ? (float)(bound * (2 * uniform(seed, 1000 + index, i) - 1)) : constant;
    d.count = n;
    d.init = init;
    d.keep_f32 = d.no_decay = !(bound > 0);
    must(net->ctx, amp_params_add(net->params, &d));
    free(init);
    return index;
}
static void size_stages(network *net, uint64_t seed) { /* sizes and parameters */
    size_t height = net->height, width = net->width, in = 1, i;
    for (i = 0; i < STAGES; i++) {
        stage *s = &net->s[i];
        s->c.batch = net->batch;
        s->c.in = in;
        s->c.out = in = shapes[i].channels;
        s->c.size[1] = height;
        s->c.size[2] = width;
        s->c.taps[1] = s->c.taps[2] = 3;
        s->c.pad[1] = s->c.pad[2] = 1;
        conv_sizes(&s->c);
        s->weight = add_param(net, conv_weights(&s->c), sqrt(6.0 / (double)s->c.k), 0, seed);
        add_param(net, in, 0, 1, seed);
        add_param(net, in, 0, 0, seed);
        if (!shapes[i].pool) continue;
        height /= 2;
        width /= 2;
    }
    net->last.in = height * width * in;
    net->last.out = CLASSES;
    add_param(net, net->last.in * CLASSES, sqrt(3.0 / (double)net->last.in), 0, seed);
    add_param(net, CLASSES, 0, 0, seed);
}
static void connect_stage(network *net, stage *s, amp_array x, amp_array dx, amp_array patches, float *part) {
    size_t n = s->c.rows * s->c.out;
    conv *c = &s->c;
    batch_norm *b = &s->n;
    c->x = x;
    c->dx = dx;
    c->w = amp_param_model(net->params, s->weight);
    c->dw = amp_param_grad(net->params, s->weight);
    c->y = b->x = tensor(net, n, "activations");
    b->y = s->y = tensor(net, n, "activations");
    c->dy = b->dx = b->dy = s->dy = tensor(net, n, "gradients"); /* batch norm's backward works in place */
    c->patches = patches;
    b->rows = c->rows;
    b->channels = c->out;
    b->gain = (const float *)amp_param_model(net->params, s->weight + 1).data;
    b->bias = (const float *)amp_param_model(net->params, s->weight + 2).data;
    b->dgain = (float *)amp_param_grad(net->params, s->weight + 1).data;
    b->dbias = (float *)amp_param_grad(net->params, s->weight + 2).data;
    b->mean = floats(net, c->out, 0);
    b->rstd = floats(net, c->out, 1);
    b->running_mean = floats(net, c->out, 0);
    b->running_variance = floats(net, c->out, 1);
    b->part = part;
    if (!shapes[s - net->s].pool) return;
    s->pool.t = net->t;
    s->pool.height = c->y_size[1] / 2;
    s->pool.width = c->y_size[2] / 2;
    s->pool.channels = c->out;
    s->pool.x = b->y.data;
    s->pool.dx = b->dy.data;
    s->y = tensor(net, n / 4, "activations");
    s->dy = tensor(net, n / 4, "gradients");
    s->pool.y = s->y.data;
    s->pool.dy = s->dy.data;
}
static void connect_last(network *net) {
    amp_linear_desc *l = &net->last;
    size_t index = amp_params_count(net->params) - 2;
    l->rows = net->loss.rows = net->batch;
    l->x = net->s[STAGES - 1].y;
    l->dx = net->s[STAGES - 1].dy;
    l->w = amp_param_model(net->params, index);
    l->dw = amp_param_grad(net->params, index);
    l->bias = amp_param_model(net->params, index + 1);
    l->dbias = amp_param_grad(net->params, index + 1);
    l->y = l->dy = tensor(net, net->batch * CLASSES, "activations"); /* gradients take the logits' place */
    net->loss.classes = CLASSES;
    net->loss.logits = l->y;
    net->loss.scaler = net->scaler;
    net->loss.labels = net->labels = (int32_t *)get(net, net->batch * sizeof(int32_t), "batch");
    net->loss.row_loss = (float *)get(net, net->batch * sizeof(float), "batch");
    net->loss.loss = (float *)get(net, sizeof(float), "batch");
}
static void network_create(
    network *net, amp_ctx *ctx, const struct mode *m, const images *data, size_t batch, uint64_t seed) {
    amp_params_desc pd = AMP_ZERO;
    amp_scaler_desc sd = AMP_ZERO;
    size_t patches = 0, part = 0, i;
    amp_array scratch, x, dx = AMP_ZERO;
    float *parts;
    memset(net, 0, sizeof *net);
    net->ctx = ctx;
    net->t = m->t;
    net->batch = batch;
    net->height = data->rows;
    net->width = data->cols;
    pd.model = m->t;
    pd.moment = m->moment;
    must(ctx, amp_params_create(&net->params, ctx, &pd));
    size_stages(net, seed);
    must(ctx, amp_params_commit(net->params));
    sd.scale = FIRST_SCALE;
    sd.growth_interval = GROWTH;
    if (m->scaling != AMP_SCALER_OFF) must(ctx, amp_scaler_create(&net->scaler, ctx, &sd));
    for (i = 0; i < STAGES; i++) {
        size_t n = conv_patches(&net->s[i].c), k = (net->s[i].c.rows / NORM_ROWS + 1) * 2 * net->s[i].c.out;
        patches = n > patches ? n : patches;
        part = k > part ? k : part;
    }
    scratch = tensor(net, patches, "patches");
    parts = (float *)get(net, part * sizeof(float), "norm");
    x = tensor(net, batch * data->pixels, "activations");
    for (i = 0; i < STAGES; i++, x = net->s[i - 1].y, dx = net->s[i - 1].dy)
        connect_stage(net, &net->s[i], x, dx, scratch, parts);
    connect_last(net);
}
static void network_destroy(network *net) {
    amp_scaler_destroy(net->scaler);
    amp_params_destroy(net->params);
    while (net->n_memory)
        must(net->ctx, amp_free(net->ctx, net->memory[--net->n_memory]));
}
static void upload(network *net, const images *train, const images *test) {
    size_t n = train->count + test->count, i;
    float *staging;
    net->n_train = train->count;
    net->n_test = test->count;
    net->pixels = train->pixels;
    staging = (float *)get(net, n * net->pixels * sizeof *staging, "images");
    net->images = tensor(net, n * net->pixels, "images");
    net->all_labels = (int32_t *)get(net, n * sizeof(int32_t), "images");
    net->order = (int32_t *)get(net, n * sizeof(int32_t), "images");
    for (i = 0; i < 2; i++) {
        const images *m = i ? test : train;
        size_t at = i ? train->count : 0;
        must(net->ctx, amp_copy(net->ctx, staging + at * m->pixels, m->x, m->count * m->pixels * sizeof *staging));
        must(net->ctx, amp_copy(net->ctx, net->all_labels + at, m->label, m->count * sizeof(int32_t)));
    }
    must(net->ctx, amp_cast(net->ctx, net->images, amp_arr(staging, AMP_F32), n * net->pixels, NULL));
}

/* x[row] = image order[row], with its label */
typedef struct pick_job {
    amp_dtype t;
    size_t pixels;
    const int32_t *order, *all_labels;
    const void *images;
    void *x;
    int32_t *labels;
} pick_job;
ROW void pick(const pick_job *j, size_t row, amp_dtype t, team w) {
    size_t from = (size_t)j->order[row], i;
    for (i = w.lane; i < j->pixels; i += w.lanes)
        amp_store(j->x, t, row * j->pixels + i, amp_load(j->images, t, from * j->pixels + i));
    if (w.lane == 0) j->labels[row] = j->all_labels[from];
}
ROWS(pick)

static void network_input(network *net, size_t at) { /* the images order[at] and so on */
    pick_job j = AMP_ZERO;
    j.t = net->t;
    j.pixels = net->pixels;
    j.order = net->order + at;
    j.all_labels = net->all_labels;
    j.images = net->images.data;
    j.x = net->s[0].c.x.data;
    j.labels = net->labels;
    pick_rows(net->ctx, &j, net->batch);
}
static void network_set_batch(network *net, size_t batch) { /* at most that of network_create */
    size_t i;
    net->batch = net->last.rows = net->loss.rows = batch;
    for (i = 0; i < STAGES; i++) {
        net->s[i].c.batch = batch;
        conv_sizes(&net->s[i].c);
        net->s[i].n.rows = net->s[i].c.rows;
    }
}
static void network_forward(network *net, int train) { /* to the logits */
    size_t i;
    for (i = 0; i < STAGES; i++) {
        stage *s = &net->s[i];
        conv_forward(net->ctx, &s->c);
        norm_forward(net->ctx, &s->n, train);
        if (s->pool.height) pool_rows(net->ctx, &s->pool, net->batch * s->pool.height * s->pool.width);
    }
    must(net->ctx, amp_linear_forward(net->ctx, &net->last));
}
static void network_backward(network *net) { /* from the logits' gradient */
    size_t i;
    must(net->ctx, amp_linear_backward(net->ctx, &net->last));
    for (i = STAGES; i-- > 0;) {
        stage *s = &net->s[i];
        if (s->pool.height) pool_back_rows(net->ctx, &s->pool, net->batch * s->pool.height * s->pool.width);
        norm_backward(net->ctx, &s->n);
        conv_backward(net->ctx, &s->c);
    }
}
static double network_accuracy(network *net) { /* share of the test images that get the right label */
    size_t batch = net->batch, size = amp_dtype_size(net->t), at, r, c, right = 0;
    int32_t *labels = (int32_t *)allocate(batch, sizeof *labels);
    int32_t *order = (int32_t *)allocate(net->n_test, sizeof *order);
    void *logits = allocate(batch * CLASSES, size);
    for (at = 0; at < net->n_test; at++)
        order[at] = (int32_t)(net->n_train + at);
    must(net->ctx, amp_copy(net->ctx, net->order, order, net->n_test * sizeof *order));
    for (at = 0; at < net->n_test; at += net->batch) {
        network_set_batch(net, net->n_test - at < batch ? net->n_test - at : batch);
        network_input(net, at);
        network_forward(net, 0);
        must(net->ctx, amp_copy(net->ctx, logits, net->last.y.data, net->batch * CLASSES * size));
        must(net->ctx, amp_copy(net->ctx, labels, net->labels, net->batch * sizeof *labels));
        for (r = 0; r < net->batch; r++) {
            size_t best = 0;
            for (c = 1; c < CLASSES; c++)
                if (amp_load(logits, net->t, r * CLASSES + c) > amp_load(logits, net->t, r * CLASSES + best)) best = c;
            right += best == (size_t)labels[r] && amp_is_finite(amp_load(logits, net->t, r * CLASSES + best));
        }
    }
    network_set_batch(net, batch);
    free(labels);
    free(order);
    free(logits);
    return (double)right / (double)net->n_test;
}

#endif
