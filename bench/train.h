/* train.h - whole training steps on any context, through amp's public verbs: the same source on the CPU and on a GPU.

   Two models. "mlp": linear layers of width x width, GELU between them, softmax cross-entropy over `width` classes.
   "gpt2": the linear layers of GPT-2 in their order (qkv, projection, up with GELU, down; then the vocabulary), and its
   whole list of parameters for the optimizer. Instead of attention the projection reads the first third of qkv's
   output, in place; layer norms and embeddings have parameters, whose gradients stay zero, and no work. The peers do
   the same. */
#ifndef BENCH_TRAIN_H
#define BENCH_TRAIN_H
#include "contest.h"

typedef struct train_shape {
    const char *name;
    size_t rows, width, layers; /* gpt2: blocks of four layers */
    size_t vocab, context;      /* 0: mlp */
} train_shape;

typedef struct train_mode {
    const char *name;
    amp_dtype dtype;
    int scaled; /* with a dynamic loss scale */
    uint32_t flags;
} train_mode;
#define TRAIN_MODES 4 /* the last one on GPUs alone */
static const train_mode train_modes[TRAIN_MODES] = {
    {"fp32", AMP_F32, 0, 0}, {"fp16", AMP_F16, 1, 0}, {"bf16", AMP_BF16, 0, 0}, {"tf32", AMP_F32, 0, AMP_GEMM_TF32}};

#define TRAIN_LAYERS  64
#define TRAIN_TENSORS 160
#define TRAIN_BUFFERS 200

typedef struct train_net {
    amp_ctx *ctx;
    amp_params *params;
    amp_scaler *scaler; /* NULL without */
    amp_linear_desc layer[TRAIN_LAYERS];
    size_t ld_x[TRAIN_LAYERS]; /* elements between rows of the layer's x and dx */
    int layers;
    amp_xent_desc xent;
    amp_step_desc step;
    void *buffer[TRAIN_BUFFERS];
    int buffers;
    amp_status failed; /* the first failure while it was made or run */
} train_net;

/* GPT-2's parameters in order: wte (also the last layer's weight), wpe; per block these, each weight followed by its
   bias; the last layer norm. */
enum { GPT2_LN1 = 0, GPT2_QKV = 2, GPT2_PROJECTION = 4, GPT2_LN2 = 6, GPT2_UP = 8, GPT2_DOWN = 10, GPT2_BLOCK = 12 };
static size_t gpt2_at(size_t block, int tensor) { return 2 + GPT2_BLOCK * block + (size_t)tensor; }

static size_t gpt2_pair(size_t *count, size_t n, size_t weight, size_t bias) {
    count[n] = weight;
    count[n + 1] = bias;
    return n + 2;
}
/* Their sizes. Returns how many there are. */
static size_t gpt2_tensors(size_t width, size_t blocks, size_t vocab, size_t context, size_t *count) {
    size_t n = gpt2_pair(count, 0, vocab * width, context * width), b;
    for (b = 0; b < blocks; b++) {
        n = gpt2_pair(count, n, width, width);
        n = gpt2_pair(count, n, 3 * width * width, 3 * width);
        n = gpt2_pair(count, n, width * width, width);
        n = gpt2_pair(count, n, width, width);
        n = gpt2_pair(count, n, 4 * width * width, 4 * width);
        n = gpt2_pair(count, n, 4 * width * width, width);
    }
    return gpt2_pair(count, n, width, width);
}
static int gpt2_is_norm(size_t i, size_t n) {
    size_t tensor = (i - 2) % GPT2_BLOCK / 2 * 2;
    return i >= 2 && (i + 2 >= n || tensor == GPT2_LN1 || tensor == GPT2_LN2);
}
AMP_UNUSED
static size_t sum_of(const size_t *count, size_t n) {
    size_t i, s = 0;
    for (i = 0; i < n; i++)
        s += count[i];
    return s;
}

static int train_ok(train_net *t, amp_status s) {
    if (s != AMP_OK && t->failed == AMP_OK) t->failed = s;
    return t->failed == AMP_OK;
}
static void *train_take(train_net *t, size_t bytes, const char *label) {
    void *p = NULL;
    if (t->failed != AMP_OK) return NULL;
    if (t->buffers == TRAIN_BUFFERS) {
        t->failed = AMP_ERR_NO_MEMORY;
        return NULL;
    }
    if (train_ok(t, amp_alloc(t->ctx, &p, bytes, label))) t->buffer[t->buffers++] = p;
    return p;
}
static amp_array train_array(train_net *t, size_t n, amp_dtype type, const char *label) {
    return amp_arrn(train_take(t, n * amp_dtype_size(type), label), type, n);
}

static void train_destroy(train_net *t) {
    while (t->buffers)
        (void)amp_free(t->ctx, t->buffer[--t->buffers]);
    amp_scaler_destroy(t->scaler);
    amp_params_destroy(t->params);
    memset(t, 0, sizeof *t);
}

/* One linear layer: parameters `w` and `w` + 1 (no bias: `bias` 0), input x with rows ld_x apart. dy, dx: of gradients,
   made by the caller. */
static amp_array train_layer(train_net *t, size_t rows, size_t in, size_t out, amp_act act, size_t w, int bias,
    amp_array x, size_t ld_x, amp_dtype type) {
    amp_linear_desc *l = &t->layer[t->layers];
    t->ld_x[t->layers++] = ld_x;
    memset(l, 0, sizeof *l);
    l->rows = rows;
    l->in = in;
    l->out = out;
    l->act = act;
    l->x = amp_arr(x.data, type);
    l->w = amp_param_model(t->params, w);
    l->dw = amp_param_grad(t->params, w);
    if (bias) {
        l->bias = amp_param_model(t->params, w + 1);
        l->dbias = amp_param_grad(t->params, w + 1);
    }
    l->y = train_array(t, rows * out, type, "activations");
    if (act == AMP_GELU) l->aux = train_array(t, rows * out, type, "activations");
    return l->y;
}

/* The sizes of all parameters, and the number of inputs of those that are weights of products; 0 for the others. */
static size_t train_tensors(const train_shape *s, size_t *count, size_t *inputs) {
    size_t width = s->width, n = 0, i;
    memset(inputs, 0, TRAIN_TENSORS * sizeof *inputs);
    if (s->vocab) {
        inputs[0] = width;
        for (i = 0; i < s->layers; i++) {
            inputs[gpt2_at(i, GPT2_QKV)] = width;
            inputs[gpt2_at(i, GPT2_PROJECTION)] = width;
            inputs[gpt2_at(i, GPT2_UP)] = width;
            inputs[gpt2_at(i, GPT2_DOWN)] = 4 * width;
        }
        return gpt2_tensors(width, s->layers, s->vocab, s->context, count);
    }
    for (i = 0; i < s->layers; i++) {
        inputs[n] = width;
        n = gpt2_pair(count, n, width * width, width);
    }
    return n;
}

static void train_make_params(train_net *t, const train_shape *s, amp_dtype type, const size_t *count, size_t n) {
    amp_params_desc pd = AMP_ZERO;
    size_t i;
    pd.model = pd.grad = type;
    if (!train_ok(t, amp_params_create(&t->params, t->ctx, &pd))) return;
    for (i = 0; i < n; i++) {
        amp_param_desc d = AMP_ZERO;
        d.count = count[i];
        d.keep_f32 = s->vocab && gpt2_is_norm(i, n);
        if (!train_ok(t, amp_params_add(t->params, &d))) return;
    }
    train_ok(t, amp_params_commit(t->params));
}

/* Random weights, so that each layer keeps the size of its inputs; those after a GELU have a mean square of 0.425. */
static void train_fill_params(train_net *t, const train_shape *s, const size_t *count, const size_t *inputs, size_t n,
    const float *random, size_t n_random) {
    float *w = (float *)malloc(n_random * sizeof *w);
    size_t i, e;
    if (!w) train_ok(t, AMP_ERR_NO_MEMORY);
    for (i = 0; i < n && train_ok(t, AMP_OK); i++) {
        int after_gelu = s->vocab ? inputs[i] == 4 * s->width : i > 0;
        float f;
        if (inputs[i] == 0) continue;
        f = sqrtf((after_gelu ? 2.35f : 1.0f) / (float)inputs[i]);
        for (e = 0; e < count[i]; e++)
            w[e] = f * random[(e + 977 * i) % n_random];
        train_ok(t, amp_param_write(t->params, i, w));
    }
    free(w);
}

static amp_array train_input(train_net *t, size_t n, amp_dtype type, const float *random) {
    amp_array x = train_array(t, n, type, "data");
    void *host = malloc(n * amp_dtype_size(type));
    size_t i;
    if (!host) train_ok(t, AMP_ERR_NO_MEMORY);
    if (train_ok(t, AMP_OK)) {
        for (i = 0; i < n; i++)
            amp_store(host, type, i, random[i]);
        train_ok(t, amp_copy(t->ctx, x.data, host, n * amp_dtype_size(type)));
    }
    free(host);
    return x;
}

/* All layers, from the input x on. Returns the logits. */
static amp_array train_layers(train_net *t, const train_shape *s, amp_dtype type, amp_array x) {
    size_t rows = s->rows, width = s->width, i;
    if (!s->vocab) {
        for (i = 0; i < s->layers; i++) {
            amp_act act = i + 1 < s->layers ? AMP_GELU : AMP_ACT_NONE;
            x = train_layer(t, rows, width, width, act, 2 * i, 1, x, width, type);
        }
        return x;
    }
    for (i = 0; i < s->layers; i++) {
        size_t qkv = gpt2_at(i, GPT2_QKV), projection = gpt2_at(i, GPT2_PROJECTION);
        size_t up = gpt2_at(i, GPT2_UP), down = gpt2_at(i, GPT2_DOWN);
        x = train_layer(t, rows, width, 3 * width, AMP_ACT_NONE, qkv, 1, x, width, type);
        x = train_layer(t, rows, width, width, AMP_ACT_NONE, projection, 1, x, 3 * width, type); /* the first third */
        x = train_layer(t, rows, width, 4 * width, AMP_GELU, up, 1, x, width, type);
        x = train_layer(t, rows, 4 * width, width, AMP_ACT_NONE, down, 1, x, 4 * width, type);
    }
    return train_layer(t, rows, width, s->vocab, AMP_ACT_NONE, 0, 0, x, width, type);
}

static int train_is_packed(const train_net *t, int k) { return t->ld_x[k] == t->layer[k].in; }

/* A layer's dx is the dy of the layer before it; two arrays take turns. The logits become their own gradient. */
static void train_gradients(train_net *t, const train_shape *s, amp_dtype type, amp_array logits) {
    size_t n = s->rows * s->width;
    amp_array turn[2], third = AMP_ZERO;
    int k;
    if (s->vocab) {
        third = train_array(t, 3 * n, type, "gradients"); /* two thirds of it stay zero */
        if (train_ok(t, AMP_OK)) train_ok(t, amp_zero(t->ctx, third.data, 3 * n * amp_dtype_size(type)));
    }
    for (k = 0; k < 2; k++)
        turn[k] = train_array(t, n * (s->vocab ? 4 : 1), type, "gradients");
    t->layer[t->layers - 1].dy = logits;
    for (k = t->layers - 1; k > 0; k--) {
        amp_array dx = amp_arr(train_is_packed(t, k) ? turn[k & 1].data : third.data, type);
        t->layer[k].dx = t->layer[k - 1].dy = dx;
    }
    for (k = 1; k < t->layers; k++) {
        if (!train_is_packed(t, k) || !train_is_packed(t, k - 1)) continue;
        t->layer[k].before = &t->layer[k - 1]; /* GELU's gradient and the bias gradient in the product that makes dx */
        t->layer[k - 1].after = &t->layer[k];
    }
}

static void train_make_loss(train_net *t, size_t rows, size_t classes, amp_dtype type, amp_array logits) {
    int32_t *label = (int32_t *)malloc(rows * sizeof *label);
    void *labels = train_take(t, rows * sizeof *label, "data");
    size_t i;
    if (!label) train_ok(t, AMP_ERR_NO_MEMORY);
    t->xent.rows = rows;
    t->xent.classes = classes;
    t->xent.logits = t->xent.dlogits = amp_arr(logits.data, type);
    t->xent.labels = (const int32_t *)labels;
    t->xent.row_loss = (float *)train_take(t, rows * sizeof(float), "data");
    t->xent.loss = (float *)train_take(t, sizeof(float), "data");
    if (train_ok(t, AMP_OK)) {
        for (i = 0; i < rows; i++)
            label[i] = (int32_t)(amp_random(5, 1, i) % classes);
        train_ok(t, amp_copy(t->ctx, labels, label, rows * sizeof *label));
    }
    free(label);
}

/* A net with random weights, and a batch of random inputs and labels, made once. */
static amp_status train_create(train_net *t, amp_ctx *ctx, const train_shape *s, const train_mode *mode) {
    size_t count[TRAIN_TENSORS], inputs[TRAIN_TENSORS], most = s->rows * s->width, n, i;
    amp_scaler_desc scaling = AMP_ZERO;
    amp_array x;
    float *random;
    int k;
    memset(t, 0, sizeof *t);
    t->ctx = ctx;
    n = train_tensors(s, count, inputs);
    for (i = 0; i < n; i++)
        if (count[i] > most) most = count[i];
    random = (float *)malloc(most * sizeof *random);
    if (!random) return t->failed = AMP_ERR_NO_MEMORY;
    fill_random(random, most, 11, 1.0f);
    train_make_params(t, s, mode->dtype, count, n);
    train_fill_params(t, s, count, inputs, n, random, most);
    x = train_input(t, s->rows * s->width, mode->dtype, random);
    free(random);
    if (!train_ok(t, AMP_OK)) return t->failed;

    x = train_layers(t, s, mode->dtype, x);
    train_gradients(t, s, mode->dtype, x);
    for (k = 0; k < t->layers; k++)
        t->layer[k].flags = mode->flags;
    train_make_loss(t, s->rows, s->vocab ? s->vocab : s->width, mode->dtype, x);
    scaling.growth_interval = AMP_NONE; /* falls until nothing overflows, and stays: no timed step is skipped */
    if (mode->scaled) train_ok(t, amp_scaler_create(&t->scaler, ctx, &scaling));
    t->xent.scaler = t->scaler;
    t->step.lr = 0.1f / (float)s->width; /* a step of Adam moves all weights of a neuron alike: the wider, the less */
    return t->failed;
}

static amp_status train_product(amp_ctx *ctx, const amp_gemm_desc *g, int tune) {
    return tune ? amp_gemm_tune(ctx, g) : amp_gemm(ctx, g);
}
/* All products, forward and backward, with the loss between them; or each of them is only tuned. */
static amp_status train_products(train_net *t, int tune) {
    amp_ctx *ctx = t->ctx;
    amp_status s = AMP_OK;
    int k;
    for (k = 0; k < t->layers && s == AMP_OK; k++) {
        const amp_linear_desc *l = &t->layer[k];
        amp_gemm_desc g = AMP_ZERO;
        if (t->ld_x[k] == l->in) {
            s = tune ? amp_linear_tune(ctx, l) : amp_linear_forward(ctx, l);
            continue;
        }
        g.m = l->rows;
        g.n = l->out;
        g.k = l->in;
        g.a = l->x;
        g.lda = t->ld_x[k];
        g.b = l->w;
        g.trans_b = 1;
        g.bias = l->bias;
        g.d = l->y;
        g.flags = l->flags;
        s = train_product(ctx, &g, tune);
    }
    if (s == AMP_OK && !tune) s = amp_softmax_cross_entropy(ctx, &t->xent);
    for (k = t->layers - 1; k >= 0 && s == AMP_OK; k--) {
        const amp_linear_desc *l = &t->layer[k];
        amp_linear_desc sums;
        amp_gemm_desc g = AMP_ZERO;
        if (t->ld_x[k] == l->in) {
            if (!tune) s = amp_linear_backward(ctx, l);
            continue;
        }
        sums = *l;
        sums.dw.data = sums.dx.data = NULL;
        if (!tune) s = amp_linear_backward(ctx, &sums);
        g.m = l->out;
        g.n = l->in;
        g.k = l->rows;
        g.a = l->dy;
        g.trans_a = 1;
        g.b = l->x;
        g.ldb = t->ld_x[k];
        g.d = l->dw;
        g.flags = l->flags;
        if (s == AMP_OK) s = train_product(ctx, &g, tune);
        memset(&g, 0, sizeof g);
        g.m = l->rows;
        g.n = l->in;
        g.k = l->out;
        g.a = l->dy;
        g.b = l->w;
        g.d = l->dx;
        g.ldd = t->ld_x[k];
        g.flags = l->flags;
        if (s == AMP_OK) s = train_product(ctx, &g, tune);
    }
    return s;
}
/* A whole step, all of class enqueue, so it can be captured in a graph. */
static amp_status train_step(train_net *t) {
    amp_status s = train_products(t, 0);
    return s == AMP_OK ? amp_step(t->params, t->scaler, &t->step) : s;
}
AMP_UNUSED
static amp_status train_tune(train_net *t) { /* finds the fastest algorithm of each product; nothing is computed */
    return train_products(t, 1);
}
static float train_loss(train_net *t) { /* of the last step */
    float loss = 0;
    train_ok(t, amp_copy(t->ctx, &loss, t->xent.loss, sizeof loss));
    return loss;
}

/* ---- the part: rows of time and memory ---- */

typedef struct train_graph {
    train_net *net;
    void *exec;
} train_graph;
typedef struct train_device { /* what differs between contexts */
    const char *name;
    amp_status (*open)(amp_ctx **ctx);
    int (*capture)(train_graph *g); /* records a step of g->net; 0: it could not. NULL: this context has no graphs */
    amp_status (*replay)(const train_graph *g);
    void (*forget)(train_graph *g);
    double to_fp32, to_eager, to_compiled; /* targets; 0: none */
} train_device;
static const train_device *train_on;

static void run_train(const contest *r) {
    train_net *t = (train_net *)r->x;
    train_ok(t, train_step(t));
}
static void run_replay(const contest *r) {
    train_graph *g = (train_graph *)r->x;
    train_ok(g->net, train_on->replay(g));
}

/* Rows of one mode of ours: beside another of ours (NULL: its time alone), and beside the peer's modes that go with it.
   peers: fp32, AMP FP16, compiled, AMP BF16, compiled, TF32. */
static void train_row(const train_device *device, const char *what, const char *size, const contest *mine,
    const contest *than, int m, const contest *peers, int rounds, int eager) {
    if (!than) than = mine;
    (void)row(what, size, MILLISECONDS, mine, than, 1, rounds, eager && m > 0 && m < 3 ? device->to_fp32 : 0);
    if (m == 0)
        (void)row(what, size, MILLISECONDS, mine, peers, 1, rounds, 0);
    else if (m == 3)
        (void)row(what, size, MILLISECONDS, mine, peers + 5, 1, rounds, 0);
    else {
        (void)row(what, size, MILLISECONDS, mine, peers + 2 * m - 1, 1, rounds, device->to_eager);
        (void)row(what, size, MILLISECONDS, mine, peers + 2 * m, 1, rounds, device->to_compiled);
    }
}

/* What the CPU context makes of the same net and batch: the loss of the first step and of the last; 0 if it cannot. */
static void train_on_cpu(const train_shape *s, const train_mode *mode, int steps, float *first, float *last) {
    static train_net net;
    amp_ctx *ctx;
    int k;
    *first = *last = 0;
    if (amp_cpu_create(&ctx, NULL) != AMP_OK) return;
    if (train_create(&net, ctx, s, mode) == AMP_OK)
        for (k = 0; k < steps && train_ok(&net, train_step(&net)); k++) {
            *last = train_loss(&net);
            if (k == 0) *first = *last;
        }
    train_destroy(&net);
    amp_ctx_destroy(ctx);
}
static int near_loss(float a, float b, float share) { return amp_is_finite(a) && fabsf(a - b) <= share * b; }

typedef struct train_run { /* one mode of ours */
    train_net net;
    amp_ctx *ctx;
    train_graph graph, tuned;
    contest *eager, *replay; /* NULL: it could not be made */
    double mib;
    uint64_t skipped; /* steps while it was made */
} train_run;

static struct train_trial { /* one model in every mode, beside the peer's */
    const train_device *device;
    const train_shape *shape;
    char size[64];
    int modes, n, rounds;
    train_run run[TRAIN_MODES];
    contest r[2 * TRAIN_MODES + 6], peer[6]; /* ours, n in all, then the peer's; peer: those after a race */
} trial;

/* Some steps: it learns, and the loss scale settles. `full`: the first loss in FP32, which the first mode finds. */
static void train_warm_up(int m, int steps, float *full) {
    const train_mode *mode = &train_modes[m];
    train_run *run = &trial.run[m];
    float first = 0, last = 0, want, want_last;
    char what[64], key[120];
    int k;
    snprintf(what, sizeof what, "%s %s", trial.shape->name, mode->name);
    for (k = 0; k < steps; k++) {
        if (!fine(run->ctx, train_step(&run->net), what)) break;
        last = train_loss(&run->net);
        if (k == 0) first = last;
    }
    printf("  %-38s %-22s loss %.4f -> %.4f in %d steps\n", what, trial.size, (double)first, (double)last, steps);
    snprintf(key, sizeof key, "%s: the loss falls", what);
    right(amp_is_finite(last) && last < first, key);
    if (m == 0) *full = first;
    snprintf(key, sizeof key, "%s: the first loss is near that of FP32", what);
    right(near_loss(first, *full, 0.02f), key);
    if (bench.tiny && trial.device->capture) {
        train_on_cpu(trial.shape, mode, steps, &want, &want_last);
        snprintf(key, sizeof key, "%s: losses near those of the CPU", what);
        right(near_loss(first, want, 0.005f) && near_loss(last, want_last, 0.03f), key);
    }
}

/* Context, net and contestants of a mode; from the warm-up on the weights stay, and so do the numbers in every
   product. */
static void train_open(int m, int steps, float *full) {
    train_run *run = &trial.run[m];
    contest *eager, *replay;
    amp_step_record record = AMP_ZERO;
    amp_ledger_row total = AMP_ZERO;
    char what[64];
    snprintf(what, sizeof what, "%s %s", trial.shape->name, train_modes[m].name);
    if (!fine(NULL, trial.device->open(&run->ctx), "a context")) return;
    if (train_create(&run->net, run->ctx, trial.shape, &train_modes[m]) != AMP_OK) {
        skip(what, amp_last_error(run->ctx)); /* too little memory, most likely */
        return;
    }
    train_warm_up(m, steps, full);
    run->net.step.lr = AMP_NONE;
    run->net.step.weight_decay = 0;
    train_ok(&run->net, amp_sync(run->ctx));
    train_ok(&run->net, amp_step_poll(run->net.params, &record));
    run->skipped = record.skipped;
    (void)amp_ledger(run->ctx, &total, 1, "total");
    run->mib = (double)total.peak / 1048576.0; /* now: tuning takes memory for a moment */
    run->eager = eager = &trial.r[trial.n++];
    run->replay = replay = &trial.r[trial.n++];
    memset(eager, 0, sizeof *eager);
    eager->name = train_modes[m].name;
    eager->fn = run_train;
    eager->ctx = run->ctx;
    eager->x = &run->net;
    eager->work = 1;
    run->graph.net = run->tuned.net = &run->net;
    *replay = *eager;
    replay->fn = run_replay;
    replay->x = &run->graph;
    replay->failed = !trial.device->capture || !trial.device->capture(&run->graph);
}

static void train_invite_peers(void) {
    static const char *const mode[6] = {"fp32", "amp", "amp-compiled", "bf16", "bf16-compiled", "tf32"};
    static const char *const name[6] = {"torch fp32", "torch AMP fp16", "torch AMP fp16 compiled", "torch AMP bf16",
        "torch AMP bf16 compiled", "torch fp32 with TF32"};
    const train_shape *s = trial.shape;
    char key[120];
    int k;
    for (k = 0; k < 6; k++) {
        snprintf(key, sizeof key, "train %s %lu %lu %lu %lu %lu %s", s->name, (unsigned long)s->rows,
            (unsigned long)s->width, (unsigned long)s->layers, (unsigned long)s->vocab, (unsigned long)s->context,
            mode[k]);
        trial.r[trial.n + k] = peer_contest(name[k], key, 1);
        if (k == 5 && !trial.device->capture) trial.r[trial.n + k].failed = 1; /* only GPUs have TF32 */
    }
}

static void train_race(void) {
    compete(trial.r, trial.n + 6, trial.rounds, 0.05);
    memcpy(trial.peer, trial.r + trial.n, sizeof trial.peer);
}

static void train_times(void) {
    const contest *fp32 = trial.run[0].eager;
    char what[64];
    int m;
    for (m = 0; m < trial.modes; m++) {
        const train_run *run = &trial.run[m];
        if (!run->eager) continue;
        snprintf(what, sizeof what, "%s %s", trial.shape->name, train_modes[m].name);
        train_row(trial.device, what, trial.size, run->eager, m ? fp32 : NULL, m, trial.peer, trial.rounds, 1);
        snprintf(what, sizeof what, "%s %s, graph", trial.shape->name, train_modes[m].name);
        if (!run->replay->failed)
            train_row(trial.device, what, trial.size, run->replay, fp32, m, trial.peer, trial.rounds, 0);
    }
}

/* Once more with tuned products. The first graph keeps the algorithms that it was captured with, so it takes the place
   of the eager contestant. */
static void train_tuned_times(void) {
    char what[64];
    int m;
    for (m = 0; m < trial.modes; m++) {
        train_run *run = &trial.run[m];
        if (!run->eager || run->replay->failed) continue;
        *run->eager = *run->replay;
        run->eager->name = "the same, not tuned";
        run->replay->x = &run->tuned;
        run->replay->failed = !fine(run->ctx, train_tune(&run->net), "tuning") ||
            !fine(run->ctx, train_step(&run->net), "a tuned step") || !trial.device->capture(&run->tuned);
    }
    train_race();
    for (m = 0; m < trial.modes; m++) {
        const train_run *run = &trial.run[m];
        if (!run->eager || run->replay->failed) continue;
        snprintf(what, sizeof what, "%s %s, graph, tuned", trial.shape->name, train_modes[m].name);
        train_row(trial.device, what, trial.size, run->replay, run->eager, m, trial.peer, trial.rounds, 0);
    }
}

/* Memory, and that no timed step was skipped. */
static void train_close_rows(int m) {
    static const int first_of[TRAIN_MODES] = {0, 1, 3, 5}, last_of[TRAIN_MODES] = {0, 2, 4, 5};
    train_run *run = &trial.run[m];
    amp_step_record record = AMP_ZERO;
    double fp32 = trial.run[0].mib;
    char what[64];
    int k, taken;
    snprintf(what, sizeof what, "%s %s: peak memory", trial.shape->name, train_modes[m].name);
    if (m && m < 3 && fp32 > 0) row_of(what, trial.size, "MiB", run->mib, fp32, "fp32", 0);
    for (k = first_of[m]; k <= last_of[m]; k++) {
        double bytes;
        if (trial.peer[k].failed || !trial.device->capture) continue; /* PyTorch counts the memory of GPUs alone */
        bytes = peer_ask("memory", trial.peer[k].key, 0);
        if (bytes > 0) row_of(what, trial.size, "MiB", run->mib, bytes / 1048576.0, trial.peer[k].name, 0);
    }
    train_ok(&run->net, amp_sync(run->ctx));
    train_ok(&run->net, amp_step_poll(run->net.params, &record));
    snprintf(what, sizeof what, "%s %s: every timed step was taken", trial.shape->name, train_modes[m].name);
    taken = record.outcome == AMP_STEPPED && record.skipped == run->skipped;
    right(run->net.failed == AMP_OK && taken, what);
}

static void train_close(train_run *run) {
    if (!run->ctx) return;
    if (run->graph.exec) trial.device->forget(&run->graph);
    if (run->tuned.exec) trial.device->forget(&run->tuned);
    train_destroy(&run->net);
    amp_ctx_destroy(run->ctx);
}

AMP_UNUSED
static void train_rows(const train_device *device, const train_shape *s, int steps, int rounds) {
    float full = 0;
    int m;
    memset(&trial, 0, sizeof trial);
    train_on = device;
    trial.device = device;
    trial.shape = s;
    trial.rounds = rounds;
    trial.modes = device->capture ? TRAIN_MODES : TRAIN_MODES - 1;
    snprintf(trial.size, sizeof trial.size, "%lux%lu, %lu rows", (unsigned long)s->layers, (unsigned long)s->width,
        (unsigned long)s->rows);
    for (m = 0; m < trial.modes; m++)
        train_open(m, steps, &full);
    train_invite_peers();
    train_race();
    train_times();
    if (device->capture) train_tuned_times();
    for (m = 0; m < trial.modes; m++)
        if (trial.run[m].eager) train_close_rows(m);
    for (m = 0; m < trial.modes; m++)
        train_close(&trial.run[m]);
    peer_forget();
}
#endif
