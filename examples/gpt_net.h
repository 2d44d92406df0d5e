/* gpt_net.h - the network of gpt.c: GPT-2's, from the parameters of gpt_params.h to their gradients, out of amp's verbs
 * and the layers of gpt_rows.h.
 *
 * FP32 islands, in every mode: inside layer norm, softmax and loss (--norm and --softmax make FP16 of the first two,
 * to see what happens); gains and biases of layer norms, with their gradients; sums inside products, with bias and
 * residual added before the one rounding. All else has the mode's dtype: weights that products read, activations,
 * gradients.
 */
#ifndef GPT_NET_H
#define GPT_NET_H

#include "gpt_params.h"

/* ---- arrays ---- */

static void connect_norm(gpt *g, layer_norm *n, size_t gain, amp_array x) {
    n->gain = gain;
    n->x = x;
    n->y = tensor(g, g->s.width, "activations");
    n->mean = (float *)get(g, g->rows * sizeof(float), "activations");
    n->rstd = (float *)get(g, g->rows * sizeof(float), "activations");
}
static void connect_linear(gpt *g, amp_linear_desc *l, size_t index, amp_array x, size_t in, size_t out, amp_array y) {
    l->rows = g->rows;
    l->in = in;
    l->out = out;
    l->x = x;
    l->y = y;
    l->w = weight(g, index);
    l->bias = weight(g, index + 1);
    l->dw = grad(g, index);
    l->dbias = grad(g, index + 1);
}
PROGRAM_FN size_t mask_bytes(size_t columns) { return (columns + 7) / 8; } /* of a row of an AMP_MASK */
static void connect_block(gpt *g, block *b, size_t first, amp_array x) {
    size_t c = g->s.width;
    connect_norm(g, &b->n1, first + N1, x);
    connect_linear(g, &b->qkv, first + QKV, b->n1.y, c, 3 * c, g->joined);
    b->heads = tensor(g, 3 * c, "activations");
    b->p = tensor(g, g->s.heads * g->s.context, "activations");
    connect_linear(g, &b->proj, first + PROJ, tensor(g, c, "activations"), c, c, tensor(g, c, "activations"));
    connect_norm(g, &b->n2, first + N2, b->proj.y);
    connect_linear(g, &b->up, first + UP, b->n2.y, c, 4 * c, tensor(g, 4 * c, "activations"));
    b->up.act = g->s.act;
    if (g->s.act == AMP_RELU) /* a bit per element; GELU's backward needs what is before it, in 8 bits if need be */
        b->up.aux = amp_arr(get(g, g->rows * mask_bytes(4 * c), "activations"), AMP_MASK);
    else if (g->s.aux != AMP_AUTO)
        b->up.aux = amp_arr(get(g, g->rows * 4 * c, "activations"), g->s.aux);
    else
        b->up.aux = tensor(g, 4 * c, "activations");
    connect_linear(g, &b->down, first + DOWN, b->up.y, 4 * c, c, tensor(g, c, "activations"));
    b->down.dy = b->proj.dy = g->dx; /* the gradient of the sum is that of both terms */
    b->down.dx = b->up.dy = g->dh;
    b->up.dx = b->proj.dx = b->qkv.dx = g->dn;
    b->qkv.dy = g->joined;
    b->down.before = &b->up; /* down's backward goes through GELU in the product that makes dh */
    b->up.after = &b->down;
}
/* Rows whose logits are made at a time. chunks 0: as amp does it, rows for 64 MB of them in FP32, but 256 at least. */
PROGRAM_FN size_t rows_at_once(const gpt_shape *s, size_t chunks) {
    size_t rows = s->batch * s->context, fit = ((size_t)64 << 20) / 4 / s->vocab / 256 * 256;
    if (chunks) return rows / chunks;
    if (fit < 256) fit = 256;
    return rows < fit ? rows : fit;
}
/* Head and loss as one verb, which never has all the logits. With `train` the gradients are made at once: of the head's
   weights, and of x in g->dn. */
static amp_linear_xent_desc head_with_loss(gpt *g, int train) {
    const amp_array none = AMP_ZERO;
    amp_linear_xent_desc d = AMP_ZERO;
    d.linear = g->head;
    d.linear.rows = g->rows;
    d.linear.x = g->last.y;
    d.linear.dx = train ? g->dn : none;
    d.linear.dw = train ? g->head.dw : none;
    d.linear.y.data = d.linear.dy.data = NULL;
    d.xent = g->loss;
    d.xent.labels = g->labels;
    d.chunk = g->head.rows;
    d.scratch = g->head.y.data;
    d.scratch_bytes = g->head_bytes;
    return d;
}
static void connect_head(gpt *g) {
    size_t index = WTE;
    amp_linear_desc *l = &g->head;
    amp_linear_xent_desc d;
    if (!g->tied) index = BLOCKS + g->s.layers * PER_BLOCK + 2;
    l->rows = rows_at_once(&g->s, g->chunks);
    l->in = g->s.width;
    l->out = g->s.vocab;
    l->w = weight(g, index);
    l->dw = grad(g, index);
    l->y = l->dy = amp_arr(NULL, g->t);
    g->loss.scaler = g->scaler;
    g->loss.row_loss = (float *)get(g, g->rows * sizeof(float), "batch");
    g->loss.loss = g->mean_loss = (float *)get(g, sizeof(float), "batch");
    d = head_with_loss(g, 1);
    must(g->ctx, amp_linear_cross_entropy_bytes(g->ctx, &g->head_bytes, &d));
    l->y.data = l->dy.data = get(g, g->head_bytes, "logits"); /* gradients take the logits' place */
}
static void connect_batch(gpt *g) {
    size_t n = 3 * g->rows + g->s.vocab + 1, i;
    g->host = (int32_t *)allocate(n + g->rows + g->s.context + 1, sizeof *g->host);
    for (i = 0; i < g->rows; i++) /* place after place: the rows that read a row of wpe */
        g->host[i] = (int32_t)(i % g->s.batch * g->s.context + i / g->s.batch);
    for (i = 0; i <= g->s.context; i++)
        g->host[g->rows + i] = (int32_t)(i * g->s.batch);
    g->place_order = (int32_t *)get(g, (g->rows + g->s.context + 1) * sizeof(int32_t), "batch");
    must(g->ctx, amp_copy(g->ctx, g->place_order, g->host, (g->rows + g->s.context + 1) * sizeof(int32_t)));
    g->place_first = g->place_order + g->rows;
    g->tokens = (int32_t *)get(g, n * sizeof(int32_t), "batch");
    g->labels = g->tokens + g->rows;
    g->order = g->labels + g->rows;
    g->first = g->order + g->rows;
}
/* The layers of the blocks share the scratch memory; the head, whose loss is most sensitive, stays as it is. */
static void use_fp8(gpt *g, uint32_t history) {
    amp_fp8_desc d = AMP_ZERO;
    size_t c = g->s.width, bytes = 9 * g->rows * c + 4 * c * c + 1024, i, k; /* up's, which needs most */
    void *scratch = get(g, bytes, "fp8 scratch");
    d.tensors = (uint32_t)(3 * 4 * g->s.layers);
    d.history = history;
    must(g->ctx, amp_fp8_create(&g->fp8, g->ctx, &d));
    for (i = 0; i < g->s.layers; i++) {
        amp_linear_desc *l[4];
        l[0] = &g->b[i].qkv;
        l[1] = &g->b[i].proj;
        l[2] = &g->b[i].up;
        l[3] = &g->b[i].down;
        for (k = 0; k < 4; k++) {
            l[k]->fp8 = g->fp8;
            l[k]->fp8_first = 3 * (4 * i + k);
            l[k]->scratch = scratch;
            l[k]->scratch_bytes = bytes;
            l[k]->flags = AMP_GEMM_EMULATE; /* on a GPU without FP8: slowly */
        }
    }
}
/* Parameters in a layout of the caller's; gpt_connect makes all else, and takes the scaler over: NULL, no scaling. */
static void gpt_begin(
    gpt *g, amp_ctx *ctx, const gpt_shape *s, const amp_params_desc *layout, int tied, uint64_t seed) {
    memset(g, 0, sizeof *g);
    g->ctx = ctx;
    g->s = *s;
    g->t = layout->model;
    g->tied = tied;
    g->batch = s->batch;
    g->rows = s->batch * s->context;
    must(ctx, amp_params_create(&g->params, ctx, layout));
    add_params(g, seed);
    must(ctx, amp_params_commit(g->params));
}
static void gpt_connect(gpt *g, amp_scaler *scaler, size_t chunks) {
    const gpt_shape *s = &g->s;
    size_t c = s->width, i;
    g->scaler = scaler;
    g->chunks = chunks;
    g->dx = tensor(g, c, "gradients");
    g->dn = tensor(g, c, "gradients");
    g->dh = tensor(g, 4 * c, "gradients");
    g->dp = tensor(g, s->heads * s->context, "gradients");
    g->joined = tensor(g, 3 * c, "gradients");
    g->apart = tensor(g, 4 * c, "gradients"); /* dq, dk, dv; forward's result, and its gradient */
    g->part = (float *)get(g, (g->rows / GROUP + 1) * 2 * c * sizeof(float), "gradients");
    g->x = tensor(g, c, "activations");
    for (i = 0; i < s->layers; i++)
        connect_block(g, &g->b[i], BLOCKS + i * PER_BLOCK, i ? g->b[i - 1].down.y : g->x);
    connect_norm(g, &g->last, BLOCKS + s->layers * PER_BLOCK, g->b[s->layers - 1].down.y);
    connect_batch(g);
    connect_head(g);
}
PROGRAM_FN void gpt_create(
    gpt *g, amp_ctx *ctx, const gpt_shape *s, const gpt_mode *m, int tied, size_t chunks, uint64_t seed) {
    amp_params_desc layout = AMP_ZERO;
    amp_scaler_desc scaling = AMP_ZERO;
    amp_scaler *scaler = NULL;
    layout.model = m->t;
    layout.master = m->master;
    layout.moment = s->moment;
    gpt_begin(g, ctx, s, &layout, tied, seed);
    scaling.mode = m->scaling;
    scaling.scale = m->scale;
    scaling.growth_interval = m->growth;
    if (m->scaling != AMP_SCALER_OFF) must(ctx, amp_scaler_create(&scaler, ctx, &scaling));
    gpt_connect(g, scaler, chunks);
    if (m->fp8) use_fp8(g, m->fp8);
}
static void gpt_destroy(gpt *g) {
    amp_scaler_destroy(g->scaler);
    amp_fp8_destroy(g->fp8);
    amp_params_destroy(g->params);
    while (g->n_memory)
        must(g->ctx, amp_free(g->ctx, g->memory[--g->n_memory]));
    free(g->host);
}
static void gpt_set_batch(gpt *g, size_t batch) { /* sequences per call from now on, at most those of the shape */
    size_t i;
    g->batch = batch;
    g->rows = batch * g->s.context;
    for (i = 0; i < g->s.layers; i++)
        g->b[i].qkv.rows = g->b[i].proj.rows = g->b[i].up.rows = g->b[i].down.rows = g->rows;
}

/* Tokens, and labels if there are any; order and first: the rows sorted by token, for the gradient of wte. */
static void gpt_input(gpt *g, const int32_t *tokens, const int32_t *labels) {
    size_t all = g->s.batch * g->s.context, i;
    int32_t *order = g->host + 2 * all, *first = g->host + 3 * all;
    memcpy(g->host, tokens, g->rows * sizeof *tokens);
    if (labels) memcpy(g->host + all, labels, g->rows * sizeof *labels);
    memset(first, 0, (g->s.vocab + 1) * sizeof *first);
    for (i = 0; i < g->rows; i++)
        first[tokens[i] + 1]++;
    for (i = 0; i < g->s.vocab; i++)
        first[i + 1] += first[i];
    for (i = 0; i < g->rows; i++)
        order[first[tokens[i]]++] = (int32_t)i;
    memmove(first + 1, first, g->s.vocab * sizeof *first); /* each has moved on to the next one's place */
    first[0] = 0;
    must(g->ctx, amp_copy(g->ctx, g->tokens, g->host, (3 * all + g->s.vocab + 1) * sizeof(int32_t)));
}

/* ---- products, with a count of operations, and of elements read and written once ---- */

static void count(gpt *g, double flops, double elements) {
    g->flops += flops;
    g->bytes += elements * (double)amp_dtype_size(g->t);
}
static void product(gpt *g, const amp_gemm_desc *d) {
    double m = (double)d->m, n = (double)d->n, k = (double)d->k, batch = d->batch ? (double)d->batch : 1;
    count(g, 2 * batch * m * n * k, batch * (m * k + k * n + m * n * (d->c.data ? 2 : 1)));
    must(g->ctx, amp_gemm(g->ctx, d));
}
static void linear(gpt *g, const amp_linear_desc *l) {
    double r = (double)l->rows, in = (double)l->in, out = (double)l->out;
    count(g, 2 * r * in * out, r * in + in * out + r * out * (l->aux.data ? 2 : 1));
    must(g->ctx, amp_linear_forward(g->ctx, l));
}
static void linear_back(gpt *g, const amp_linear_desc *l) {
    double r = (double)l->rows, in = (double)l->in, out = (double)l->out;
    count(g, 4 * r * in * out, 2 * (r * in + in * out + r * out));
    must(g->ctx, amp_linear_backward(g->ctx, l));
}
/* x and w of a product that is not amp_linear_forward's, in FP8. */
static void quantize(gpt *g, const amp_linear_desc *l, amp_gemm_desc *d) {
    const amp_array none = AMP_ZERO;
    size_t x = l->fp8_first, w = x + 1, after = (l->rows * l->in + 255) / 256 * 256;
    d->a = amp_arr(l->scratch, AMP_F8E4M3);
    d->b = amp_arr((char *)l->scratch + after, AMP_F8E4M3);
    must(g->ctx, amp_quantize(g->fp8, x, d->a, none, l->x, l->rows, l->in, l->fp8_keep));
    must(g->ctx, amp_quantize(g->fp8, w, d->b, none, l->w, l->out, l->in, l->fp8_keep));
    d->scale_a = amp_fp8_inverse_ptr(g->fp8, x);
    d->scale_b = amp_fp8_inverse_ptr(g->fp8, w);
    d->flags = l->flags;
}
static void linear_residual(gpt *g, const amp_linear_desc *l, amp_array x) { /* y = x + linear: one rounding */
    amp_gemm_desc d = AMP_ZERO;
    d.m = l->rows;
    d.n = l->out;
    d.k = l->in;
    d.a = l->x;
    d.b = l->w;
    d.trans_b = 1;
    d.bias = l->bias;
    d.c = x;
    d.beta = amp_opt(1.0f);
    d.d = l->y;
    if (l->fp8) quantize(g, l, &d);
    product(g, &d);
}
static void look(gpt *g, size_t row, amp_array a, size_t n) { /* at a gradient, if someone wants to */
    amp_histogram h;
    if (!g->seen) return;
    a.count = n;
    must(g->ctx, amp_histogram_count(g->ctx, &h, &a, 1));
    amp_histogram_add(&g->seen[row], &h);
}

/* ---- layers: a job each, and what it reads and writes ---- */

static void norm_forward(gpt *g, const layer_norm *n) {
    norm_job j = AMP_ZERO;
    j.t = g->t;
    j.width = g->s.width;
    j.x = n->x.data;
    j.y = n->y.data;
    j.gain = (const float *)weight(g, n->gain).data;
    j.bias = (const float *)weight(g, n->gain + 1).data;
    j.mean = n->mean;
    j.rstd = n->rstd;
    (g->s.norm_f16 ? norm_f16_rows : norm_rows)(g->ctx, &j, g->rows);
    count(g, 0, 2.0 * (double)(g->rows * j.width));
}
static void norm_backward(gpt *g, const layer_norm *n, int add) { /* g->dn is the gradient of y, g->dx gets that of x */
    norm_back_job j = AMP_ZERO;
    norm_part_job part = AMP_ZERO;
    norm_total_job total = AMP_ZERO;
    size_t groups = (g->rows + GROUP - 1) / GROUP;
    j.t = part.t = total.t = g->t;
    j.width = part.width = total.width = g->s.width;
    j.x = part.x = n->x.data;
    j.dy = part.dy = g->dn.data;
    j.mean = part.mean = n->mean;
    j.rstd = part.rstd = n->rstd;
    j.gain = (const float *)weight(g, n->gain).data;
    j.dx = g->dx.data;
    j.add = add;
    part.rows = g->rows;
    total.part = part.part = g->part;
    total.groups = groups;
    total.gain = (float *)grad(g, n->gain).data;
    total.bias = (float *)grad(g, n->gain + 1).data;
    norm_part_rows(g->ctx, &part, groups);
    norm_total_rows(g->ctx, &total, (g->s.biases ? 2 : 1) * g->s.width);
    norm_back_rows(g->ctx, &j, g->rows);
    count(g, 0, (add ? 4.0 : 3.0) * (double)(g->rows * j.width));
}
static void swap_heads(gpt *g, amp_array joined, amp_array apart, size_t parts, int join) {
    swap_job j = AMP_ZERO;
    j.t = g->t;
    j.width = g->s.width;
    j.heads = g->s.heads;
    j.context = g->s.context;
    j.rows = g->rows;
    j.parts = parts;
    j.joined = joined.data;
    j.apart = apart.data;
    j.join = join;
    swap_rows(g->ctx, &j, g->rows);
    count(g, 0, 2.0 * (double)(g->rows * parts * j.width));
}
/* d[m, n] = alpha op(a) op(b), for every head of every sequence */
static void by_heads(gpt *g, amp_array d, amp_array a, uint32_t trans_a, amp_array b, uint32_t trans_b, size_t n,
    size_t k, float alpha) {
    amp_gemm_desc q = AMP_ZERO;
    q.m = g->s.context;
    q.n = n;
    q.k = k;
    q.a = a;
    q.b = b;
    q.d = d;
    q.trans_a = trans_a;
    q.trans_b = trans_b;
    q.batch = g->batch * g->s.heads;
    q.alpha = amp_opt(alpha);
    product(g, &q);
}
static void attention_forward(gpt *g, const block *b) {
    size_t c = g->s.width, n = g->rows * c, size = c / g->s.heads, t = g->s.context;
    amp_array q = b->heads, k = from(q, n), v = from(q, 2 * n), y = from(g->apart, 3 * n);
    softmax_job j = AMP_ZERO;
    swap_heads(g, g->joined, q, 3, 0);
    by_heads(g, b->p, q, 0, k, 1, t, size, 1.0f / sqrtf((float)size));
    j.t = g->t;
    j.context = t;
    j.p = b->p.data;
    (g->s.softmax_f16 ? softmax_f16_rows : softmax_rows)(g->ctx, &j, g->rows * g->s.heads);
    count(g, 0, 2.0 * (double)(g->rows * g->s.heads * t));
    by_heads(g, y, b->p, 0, v, 0, size, t, 1.0f);
    swap_heads(g, b->proj.x, y, 1, 1);
}
static void attention_backward(gpt *g, const block *b, size_t tensor_row) { /* g->dn to g->joined */
    size_t c = g->s.width, n = g->rows * c, size = c / g->s.heads, t = g->s.context, scores = g->rows * g->s.heads * t;
    amp_array q = b->heads, k = from(q, n), v = from(q, 2 * n), dq = g->apart, dk = from(dq, n), dv = from(dq, 2 * n);
    amp_array dy = from(dq, 3 * n);
    float alpha = 1.0f / sqrtf((float)size);
    softmax_back_job j = AMP_ZERO;
    swap_heads(g, g->dn, dy, 1, 0);
    by_heads(g, dv, b->p, 1, dy, 0, size, t, 1.0f);
    by_heads(g, g->dp, dy, 0, v, 1, t, size, 1.0f);
    j.t = g->t;
    j.context = t;
    j.p = b->p.data;
    j.dp = g->dp.data;
    softmax_back_rows(g->ctx, &j, g->rows * g->s.heads);
    count(g, 0, 3.0 * (double)scores);
    look(g, tensor_row, g->dp, scores);
    by_heads(g, dq, g->dp, 0, k, 0, size, t, alpha);
    by_heads(g, dk, g->dp, 1, q, 0, size, t, alpha);
    swap_heads(g, g->joined, dq, 3, 1);
}
static void gather_sum(gpt *g, size_t index, const int32_t *order, const int32_t *first, size_t rows, int add) {
    gather_job j = AMP_ZERO;
    j.t = g->t;
    j.width = g->s.width;
    j.order = order;
    j.first = first;
    j.dx = g->dx.data;
    j.to = grad(g, index);
    j.add = add;
    gather_rows(g->ctx, &j, rows);
    count(g, 0, (double)((rows + g->rows) * j.width));
}

/* ---- the network forward and backward ---- */

enum { SEEN_LOGITS, SEEN_LAST, SEEN_BLOCKS, SEEN_PER_BLOCK = 5, SEEN_PARAMS = 7, SEEN = 2 + 5 * MAX_LAYERS + 7 };

static void head_and_loss(gpt *g, int train) {
    const amp_linear_xent_desc d = head_with_loss(g, train);
    double r = (double)g->rows, in = (double)g->head.in, out = (double)g->head.out;
    size_t last = g->rows % g->head.rows ? g->rows % g->head.rows : g->head.rows; /* rows of the last chunk */
    if (last > g->rows) last = g->rows;
    count(g, 2 * r * in * out, r * in + in * out + r * out);
    count(g, 0, (train ? 2.0 : 1.0) * r * out);
    if (train) count(g, 4 * r * in * out, 2 * (r * in + in * out + r * out));
    must(g->ctx, amp_linear_cross_entropy(g->ctx, &d));
    if (train) look(g, SEEN_LOGITS, g->head.dy, last * g->head.out);
}
static void gpt_forward(gpt *g, int train) { /* with the loss; train: and the gradients of the head */
    embed_job j = AMP_ZERO;
    size_t i;
    j.t = g->t;
    j.width = g->s.width;
    j.context = g->s.context;
    j.token = g->tokens;
    j.wte = weight(g, WTE).data;
    j.wpe = weight(g, WPE).data;
    j.x = g->x.data;
    embed_rows(g->ctx, &j, g->rows);
    count(g, 0, 3.0 * (double)(g->rows * j.width));
    for (i = 0; i < g->s.layers; i++) {
        block *b = &g->b[i];
        b->qkv.fp8_keep = b->proj.fp8_keep = b->up.fp8_keep = b->down.fp8_keep = !train;
        norm_forward(g, &b->n1);
        linear(g, &b->qkv);
        attention_forward(g, b);
        linear_residual(g, &b->proj, b->n1.x);
        norm_forward(g, &b->n2);
        linear(g, &b->up);
        linear_residual(g, &b->down, b->n2.x);
    }
    norm_forward(g, &g->last);
    head_and_loss(g, train);
}
static void gpt_backward(gpt *g) { /* g->dx is the gradient of the sum that goes through all blocks */
    size_t n = g->rows * g->s.width, i;
    look(g, SEEN_LAST, g->dn, n);
    norm_backward(g, &g->last, 0);
    for (i = g->s.layers; i-- > 0;) {
        const block *b = &g->b[i];
        size_t row = SEEN_BLOCKS + i * SEEN_PER_BLOCK;
        look(g, row + 4, g->dx, n);
        linear_back(g, &b->down);
        look(g, row + 3, g->dh, 4 * n);
        linear_back(g, &b->up);
        norm_backward(g, &b->n2, 1);
        linear_back(g, &b->proj);
        look(g, row + 2, g->dn, n);
        attention_backward(g, b, row + 1);
        look(g, row, g->joined, 3 * n);
        linear_back(g, &b->qkv);
        norm_backward(g, &b->n1, 1);
    }
    gather_sum(g, WTE, g->order, g->first, g->s.vocab, g->tied);
    gather_sum(g, WPE, g->place_order, g->place_first, g->s.context, 0);
}
static double gpt_loss(gpt *g) { /* of the last forward, the mean over its rows */
    float loss;
    must(g->ctx, amp_copy(g->ctx, &loss, g->mean_loss, sizeof loss));
    return (double)loss;
}

#endif
