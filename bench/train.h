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
    int scaled;
    uint32_t flags;
} train_mode;         /* scaled: with a dynamic loss scale */
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

/* GPT-2's parameters in order: wte (also the last layer's weight), wpe; per block ln1, qkv, projection, ln2, up, down,
   each weight then bias; the last ln. Returns how many: 4 + 12 * blocks. */
static size_t gpt2_tensors(size_t width, size_t blocks, size_t vocab, size_t context, size_t *count) {
    size_t n = 0, b;
    count[n++] = vocab * width;
    count[n++] = context * width;
    for (b = 0; b < blocks; b++) {
        count[n++] = width;
        count[n++] = width;
        count[n++] = 3 * width * width;
        count[n++] = 3 * width;
        count[n++] = width * width;
        count[n++] = width;
        count[n++] = width;
        count[n++] = width;
        count[n++] = 4 * width * width;
        count[n++] = 4 * width;
        count[n++] = 4 * width * width;
        count[n++] = width;
    }
    count[n++] = width;
    count[n++] = width;
    return n;
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

/* Weights: random, so that each layer keeps the size of its inputs. A batch of random inputs and labels, made once. */
static amp_status train_create(train_net *t, amp_ctx *ctx, const train_shape *s, const train_mode *mode) {
    static const int offset[4] = {
        4, 6, 10, 12}; /* qkv, projection, up, down within a block's tensors, from its first: 2 + 12 * block */
    size_t count[TRAIN_TENSORS], from[TRAIN_TENSORS], n = 0, i, most = 0, rows = s->rows, width = s->width,
                                                      classes = s->vocab ? s->vocab : width;
    amp_params_desc pd = AMP_ZERO;
    amp_scaler_desc scaling = AMP_ZERO;
    amp_dtype type = mode->dtype;
    amp_array x, dy[2], third = AMP_ZERO;
    float *unit = NULL, *scaled = NULL;
    int32_t *label = NULL;
    int k;
    memset(t, 0, sizeof *t);
    memset(from, 0, sizeof from); /* inputs of the weight; 0: not a product's weight */
    t->ctx = ctx;
    if (s->vocab) {
        n = gpt2_tensors(width, s->layers, s->vocab, s->context, count);
        from[0] = width;
        for (i = 0; i < s->layers; i++)
            for (k = 0; k < 4; k++)
                from[2 + 12 * i + (size_t)offset[k] - 2] = k == 3 ? 4 * width : width;
    } else
        for (i = 0; i < s->layers; i++) {
            count[n++] = width * width;
            from[2 * i] = width;
            count[n++] = width;
        }
    pd.model = pd.grad = type;
    if (!train_ok(t, amp_params_create(&t->params, ctx, &pd))) return t->failed;
    for (i = 0; i < n; i++) {
        amp_param_desc d = AMP_ZERO;
        d.count = count[i];
        d.keep_f32 = s->vocab && i > 1 &&
            (i == n - 1 || i == n - 2 || (i - 2) % 12 < 2 || ((i - 2) % 12 >= 6 && (i - 2) % 12 < 8)); /* layer norms */
        if (!train_ok(t, amp_params_add(t->params, &d))) return t->failed;
        if (count[i] > most) most = count[i];
    }
    if (rows * width > most) most = rows * width;
    if (!train_ok(t, amp_params_commit(t->params))) return t->failed;
    unit = (float *)malloc(most * sizeof *unit);
    scaled = (float *)malloc(most * sizeof *scaled);
    label = (int32_t *)malloc(rows * sizeof *label);
    if (!unit || !scaled || !label) {
        train_ok(t, AMP_ERR_NO_MEMORY);
        goto out;
    }
    fill_random(unit, most, 11, 1.0f);
    for (i = 0; i < n; i++) {
        float f = from[i] ? sqrtf((from[i] == 4 * width || (!s->vocab && i) ? 2.35f : 1.0f) / (float)from[i])
                          : 0.0f; /* after a GELU: its mean square is 0.425 */
        size_t e;
        if (from[i] == 0 || !train_ok(t, AMP_OK)) continue;
        for (e = 0; e < count[i]; e++)
            scaled[e] = f * unit[(e + 977 * i) % most];
        train_ok(t, amp_param_write(t->params, i, scaled));
    }

    x = train_array(t, rows * width, type, "data");
    if (!train_ok(t, AMP_OK)) goto out;
    for (i = 0; i < rows * width; i++)
        amp_store(scaled, type, i, unit[i]); /* in place: never ahead of what is read */
    train_ok(t, amp_copy(ctx, x.data, scaled, rows * width * amp_dtype_size(type)));
    for (i = 0; i < rows; i++)
        label[i] = (int32_t)(amp_random(5, 1, i) % classes);

    if (s->vocab) {
        for (i = 0; i < s->layers; i++) {
            size_t w = 2 + 12 * i;
            x = train_layer(t, rows, width, 3 * width, AMP_ACT_NONE, w + 2, 1, x, width, type);
            x = train_layer(t, rows, width, width, AMP_ACT_NONE, w + 4, 1, x, 3 * width, type); /* the first third */
            x = train_layer(t, rows, width, 4 * width, AMP_GELU, w + 8, 1, x, width, type);
            x = train_layer(t, rows, 4 * width, width, AMP_ACT_NONE, w + 10, 1, x, 4 * width, type);
        }
        x = train_layer(t, rows, width, s->vocab, AMP_ACT_NONE, 0, 0, x, width, type);
        third = train_array(t, rows * 3 * width, type, "gradients"); /* two thirds of it stay zero */
        if (train_ok(t, AMP_OK)) train_ok(t, amp_zero(ctx, third.data, rows * 3 * width * amp_dtype_size(type)));
    } else
        for (i = 0; i < s->layers; i++)
            x = train_layer(
                t, rows, width, width, i + 1 < s->layers ? AMP_GELU : AMP_ACT_NONE, 2 * i, 1, x, width, type);

    /* a layer's dx is the dy of the layer before it; two arrays take turns. The logits become their own gradient */
    for (k = 0; k < 2; k++)
        dy[k] = train_array(t, rows * width * (s->vocab ? 4 : 1), type, "gradients");
    t->layer[t->layers - 1].dy = x;
    for (k = 0; k < t->layers; k++) {
        t->layer[k].flags = mode->flags;
        if (k == 0 || t->ld_x[k] != t->layer[k].in || t->ld_x[k - 1] != t->layer[k - 1].in) continue;
        t->layer[k].before = &t->layer[k - 1]; /* GELU's gradient and the bias gradient in the product that makes dx */
        t->layer[k - 1].after = &t->layer[k];
    }
    for (k = t->layers - 1; k > 0; k--)
        t->layer[k].dx = t->layer[k - 1].dy =
            t->ld_x[k] != t->layer[k].in ? amp_arr(third.data, type) : amp_arr(dy[k & 1].data, type);
    t->xent.rows = rows;
    t->xent.classes = classes;
    t->xent.logits = t->xent.dlogits = amp_arr(x.data, type);
    t->xent.labels = (const int32_t *)train_take(t, rows * sizeof(int32_t), "data");
    t->xent.row_loss = (float *)train_take(t, rows * sizeof(float), "data");
    t->xent.loss = (float *)train_take(t, sizeof(float), "data");
    if (train_ok(t, AMP_OK)) {
        amp_array to = amp_arr(t->xent.labels, AMP_F32);
        train_ok(t, amp_copy(ctx, to.data, label, rows * sizeof *label));
    }
    scaling.growth_interval = AMP_NONE; /* falls until nothing overflows, and stays: no timed step is skipped */
    if (mode->scaled) train_ok(t, amp_scaler_create(&t->scaler, ctx, &scaling));
    t->xent.scaler = t->scaler;
    t->step.lr = 0.1f / (float)width; /* a step of Adam moves all weights of a neuron alike: the wider, the less */
out:
    free(unit);
    free(scaled);
    free(label);
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

/* One model in every mode, beside the peer's. */
AMP_UNUSED
static void train_rows(const train_device *device, const train_shape *s, int steps, int rounds) {
    static const char *const peer_mode[6] = {"fp32", "amp", "amp-compiled", "bf16", "bf16-compiled", "tf32"};
    static const char *const peer_name[6] = {"torch fp32", "torch AMP fp16", "torch AMP fp16 compiled",
        "torch AMP bf16", "torch AMP bf16 compiled", "torch fp32 with TF32"};
    static train_net net[TRAIN_MODES];
    static contest peer[6], r[2 * TRAIN_MODES + 6]; /* of a mode: eager, graph; then the peer's */
    train_graph graph[TRAIN_MODES], tuned[TRAIN_MODES];
    uint64_t skipped[TRAIN_MODES];
    int at[TRAIN_MODES], made[TRAIN_MODES],
        n = 0, m, k, modes = device->capture ? TRAIN_MODES : TRAIN_MODES - 1; /* at: place in r, or -1 */
    amp_ledger_row total = AMP_ZERO;
    double bytes[TRAIN_MODES], peer_bytes;
    float full = 0; /* the first loss in FP32 */
    amp_step_record record;
    amp_ctx *ctx[TRAIN_MODES];
    char size[64], what[64], key[120];
    train_on = device;
    memset(graph, 0, sizeof graph);
    memset(tuned, 0, sizeof tuned);
    memset(ctx, 0, sizeof ctx);
    snprintf(size, sizeof size, "%lux%lu, %lu rows", (unsigned long)s->layers, (unsigned long)s->width,
        (unsigned long)s->rows);
    for (m = 0; m < modes; m++) {
        float first = 0, last = 0, want, want_last;
        at[m] = -1;
        made[m] = 0;
        bytes[m] = 0;
        snprintf(what, sizeof what, "%s %s", s->name, train_modes[m].name);
        if (!fine(NULL, device->open(&ctx[m]), "a context")) continue;
        made[m] = 1;
        if (train_create(&net[m], ctx[m], s, &train_modes[m]) != AMP_OK) {
            skip(what, amp_last_error(ctx[m])); /* too little memory, most likely */
            continue;
        }
        for (k = 0; k < steps; k++) { /* it learns, and the loss scale settles */
            if (!fine(ctx[m], train_step(&net[m]), what)) break;
            last = train_loss(&net[m]);
            if (k == 0) first = last;
        }
        printf("  %-38s %-22s loss %.4f -> %.4f in %d steps\n", what, size, (double)first, (double)last, steps);
        snprintf(key, sizeof key, "%s: the loss falls", what);
        right(amp_is_finite(last) && last < first, key);
        if (m == 0) full = first;
        snprintf(key, sizeof key, "%s: the first loss is near that of FP32", what);
        right(near_loss(first, full, 0.02f), key);
        if (bench.tiny && device->capture) {
            train_on_cpu(s, &train_modes[m], steps, &want, &want_last);
            snprintf(key, sizeof key, "%s: losses near those of the CPU", what);
            right(near_loss(first, want, 0.005f) && near_loss(last, want_last, 0.03f), key);
        }
        net[m].step.lr = AMP_NONE; /* from here on the weights stay, and so do the numbers in every product */
        net[m].step.weight_decay = 0;
        train_ok(&net[m], amp_sync(ctx[m]));
        train_ok(&net[m], amp_step_poll(net[m].params, &record));
        skipped[m] = record.skipped;
        (void)amp_ledger(ctx[m], &total, 1, "total");
        bytes[m] = (double)total.peak / 1048576.0; /* now: tuning takes memory for a moment */
        at[m] = n;
        memset(&r[n], 0, 2 * sizeof *r);
        r[n].name = train_modes[m].name;
        r[n].fn = run_train;
        r[n].ctx = ctx[m];
        r[n].x = &net[m];
        r[n].work = 1;
        r[n + 1] = r[n];
        graph[m].net = tuned[m].net = &net[m];
        r[n + 1].fn = run_replay;
        r[n + 1].x = &graph[m];
        r[n + 1].failed = !device->capture || !device->capture(&graph[m]);
        n += 2;
    }
    for (k = 0; k < 6; k++) {
        snprintf(key, sizeof key, "train %s %lu %lu %lu %lu %lu %s", s->name, (unsigned long)s->rows,
            (unsigned long)s->width, (unsigned long)s->layers, (unsigned long)s->vocab, (unsigned long)s->context,
            peer_mode[k]);
        r[n + k] = peer_contest(peer_name[k], key, 1);
        if (k == 5 && !device->capture) r[n + k].failed = 1; /* only GPUs have TF32 */
    }
    compete(r, n + 6, rounds, 0.05);
    memcpy(peer, r + n, sizeof peer);
    for (m = 0; m < modes; m++) {
        const contest *fp32 = at[0] < 0 ? NULL : &r[at[0]];
        if (at[m] < 0) continue;
        snprintf(what, sizeof what, "%s %s", s->name, train_modes[m].name);
        train_row(device, what, size, &r[at[m]], m ? fp32 : NULL, m, peer, rounds, 1);
        snprintf(what, sizeof what, "%s %s, graph", s->name, train_modes[m].name);
        if (!r[at[m] + 1].failed) train_row(device, what, size, &r[at[m] + 1], fp32, m, peer, rounds, 0);
    }
    if (device
            ->capture) { /* once more with tuned products: the first graph keeps the algorithms that it was captured with */
        for (m = 0; m < modes; m++) {
            if (at[m] < 0 || r[at[m] + 1].failed) continue;
            r[at[m]] = r[at[m] + 1];
            r[at[m]].name = "the same, not tuned";
            r[at[m] + 1].x = &tuned[m];
            r[at[m] + 1].failed = !fine(ctx[m], train_tune(&net[m]), "tuning") ||
                !fine(ctx[m], train_step(&net[m]), "a tuned step") || !device->capture(&tuned[m]);
        }
        compete(r, n + 6, rounds, 0.05);
        memcpy(peer, r + n, sizeof peer);
        for (m = 0; m < modes; m++) {
            if (at[m] < 0 || r[at[m] + 1].failed) continue;
            snprintf(what, sizeof what, "%s %s, graph, tuned", s->name, train_modes[m].name);
            train_row(device, what, size, &r[at[m] + 1], &r[at[m]], m, peer, rounds, 0);
        }
    }
    for (m = 0; m < modes; m++) {
        static const int first_of[TRAIN_MODES] = {0, 1, 3, 5}, last_of[TRAIN_MODES] = {0, 2, 4, 5};
        if (at[m] < 0) continue;
        snprintf(what, sizeof what, "%s %s: peak memory", s->name, train_modes[m].name);
        if (m && m < 3 && bytes[0] > 0) row_of(what, size, "MiB", bytes[m], bytes[0], "fp32", 0);
        for (k = first_of[m]; k <= last_of[m]; k++) {
            if (peer[k].failed || !device->capture) continue; /* PyTorch counts the memory of GPUs alone */
            peer_bytes = peer_ask("memory", peer[k].key, 0);
            if (peer_bytes > 0) row_of(what, size, "MiB", bytes[m], peer_bytes / 1048576.0, peer[k].name, 0);
        }
        train_ok(&net[m], amp_sync(ctx[m]));
        train_ok(&net[m], amp_step_poll(net[m].params, &record));
        snprintf(what, sizeof what, "%s %s: every timed step was taken", s->name, train_modes[m].name);
        right(net[m].failed == AMP_OK && record.outcome == AMP_STEPPED && record.skipped == skipped[m], what);
    }
    for (m = 0; m < modes; m++) {
        if (!made[m]) continue;
        if (graph[m].exec) device->forget(&graph[m]);
        if (tuned[m].exec) device->forget(&tuned[m]);
        train_destroy(&net[m]);
        amp_ctx_destroy(ctx[m]);
    }
    peer_forget();
}
#endif
