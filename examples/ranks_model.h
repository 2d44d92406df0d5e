/* ranks_model.h - what ranks_mpi.c trains: the dense network of digits_net.h on digits, or the transformer of gpt_net.h
 * on the characters of a text. To the ranks both are a set of parameters, 16-bit weights (gains and biases of norms:
 * FP32) with FP32 gradients, and a function that makes the gradients of one part of a batch.
 */
#ifndef RANKS_MODEL_H
#define RANKS_MODEL_H

#include "digits_net.h"
#include "gpt_text.h"

typedef struct task { /* the same on all ranks */
    int is_gpt;
    size_t parts, rows, width, layers; /* parts of a batch; images or sequences of a part; 0: the model's own */
    const char *data;
    shape dense;
    images train_set, test;
    gpt_shape transformer;
    text words;
} task;

static size_t or_else(size_t x, size_t usual) { return x ? x : usual; }

static void gpt_task(task *t, int check) {
    static const gpt_shape s = {
        "", 0, 4, 0, 32, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0.05, 0, 0, 0, AMP_F32, AMP_GELU, AMP_AUTO};
    const char *file = t->data ? t->data : "build/shakespeare.txt";
    t->transformer = s;
    t->transformer.layers = or_else(t->layers, check ? 1 : 2);
    t->transformer.width = or_else(t->width, check ? 32 : 64);
    t->transformer.batch = or_else(t->rows, check ? 2 : 4);
    t->words = check && !t->data ? number_text((const unsigned char *)lines, sizeof lines - 1) : read_text(file);
    t->transformer.vocab = t->words.vocab;
    if (t->words.n / 10 < s.context + 2) fail("--data: %s is too short", file);
    if (t->transformer.layers > MAX_LAYERS) fail("--layers: at most %d", MAX_LAYERS);
    if (t->transformer.width % s.heads) fail("--width: a multiple of %d is needed", (int)s.heads);
}
static void task_load(task *t, int check) {
    if (t->is_gpt) {
        gpt_task(t, check);
        return;
    }
    t->dense.layers = or_else(t->layers, 3);
    t->dense.width = or_else(t->width, 128);
    t->dense.rows = or_else(t->rows, 8);
    load_data(t->data, &t->dense, t->parts, &t->train_set, &t->test);
}
static void task_free(task *t) {
    if (t->is_gpt) {
        free(t->words.token);
        return;
    }
    images_free(&t->train_set);
    images_free(&t->test);
}

typedef struct model { /* of a rank */
    const task *task;
    amp_ctx *ctx;
    amp_params *params;
    amp_scaler *scaler;
    gpt transformer;
    net dense;
    digits train;
} model;

static amp_params *dense_params(const model *m, const amp_params_desc *layout) {
    const shape *s = &m->task->dense;
    amp_params *p;
    size_t i;
    must(m->ctx, amp_params_create(&p, m->ctx, layout));
    for (i = 0; i < s->layers; i++) {
        amp_param_desc d = AMP_ZERO;
        float *init = (float *)allocate(layer_count(s, i), sizeof *init);
        layer_init(init, s, i, 1);
        d.count = layer_count(s, i);
        d.init = init;
        must(m->ctx, amp_params_add(p, &d)); /* copies init */
        free(init);
    }
    must(m->ctx, amp_params_commit(p));
    return p;
}
static void model_create(model *m, const task *t, amp_ctx *ctx, const amp_scaler_desc *scaling) {
    amp_params_desc layout = AMP_ZERO;
    amp_array w[NET_LAYERS], g[NET_LAYERS];
    size_t i;
    layout.label = "copies";
    layout.model = AMP_F16;
    layout.grad = AMP_F32;
    layout.master = AMP_MASTER_NONE;
    layout.moments = AMP_NONE;
    m->task = t;
    m->ctx = ctx;
    must(ctx, amp_scaler_create(&m->scaler, ctx, scaling));
    if (t->is_gpt) {
        gpt_begin(&m->transformer, ctx, &t->transformer, &layout, t->transformer.tied, 1);
        gpt_connect(&m->transformer, m->scaler, 1);
        m->params = m->transformer.params;
        return;
    }
    m->params = dense_params(m, &layout);
    for (i = 0; i < t->dense.layers; i++) {
        w[i] = amp_param_model(m->params, i);
        g[i] = amp_param_grad(m->params, i);
    }
    net_create(&m->dense, ctx, &t->dense, w, g, m->scaler);
    m->train = digits_to(ctx, &t->train_set, AMP_F16);
}
static void model_destroy(model *m) {
    if (m->task->is_gpt) {
        gpt_destroy(&m->transformer);
        return;
    }
    digits_free(m->ctx, &m->train);
    net_destroy(&m->dense);
    amp_scaler_destroy(m->scaler);
    amp_params_destroy(m->params);
}

/* Part `part` of the batch of a step: its gradients, with the loss scale; returns its loss. */
static float model_gradients(model *m, size_t step, size_t part) {
    const task *t = m->task;
    size_t batch = t->parts * t->dense.rows, i;
    if (t->is_gpt) {
        draw_batch(&m->transformer, &t->words, 1, step * t->parts + part);
        gpt_forward(&m->transformer, 1);
        gpt_backward(&m->transformer);
        return (float)gpt_loss(&m->transformer);
    }
    net_input(&m->dense, &m->train, step % (m->train.count / batch) * batch + part * t->dense.rows);
    for (i = 0; i < t->dense.layers; i++)
        net_forward_layer(&m->dense, i);
    net_loss(&m->dense);
    for (i = t->dense.layers; i-- > 0;)
        net_backward_layer(&m->dense, i);
    return net_read_loss(&m->dense);
}
/* On data that nobody has learnt from: percent of right labels; the loss per character. */
static double model_score(model *m) {
    const task *t = m->task;
    digits d;
    double right;
    if (t->is_gpt) return validate(&m->transformer, &t->words);
    d = digits_to(m->ctx, &t->test, AMP_F16);
    right = net_accuracy(&m->dense, &d, t->test.label);
    digits_free(m->ctx, &d);
    return 100 * right;
}

#endif
