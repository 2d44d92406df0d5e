/* gpt_params.h - a GPT-2-shaped network before it computes: its sizes, its precision, and its parameters.
 */
#ifndef GPT_PARAMS_H
#define GPT_PARAMS_H

#include "gpt_rows.h"

typedef struct gpt_shape {
    const char *name;
    size_t layers, heads, width, context, batch;
    size_t vocab;  /* 0: the characters of the text; else tokens are random */
    size_t biases; /* 0: neither layers nor norms have any */
    int tied;      /* 1: the head has the embedding's weights */
    size_t steps, warmup;
    double lr, min_lr, beta2, decay, spread; /* spread: standard deviation of the first weights */
    size_t norm_f16, softmax_f16, embed;     /* experiments: --norm, --softmax and --embed in the help */
    amp_dtype moment;                        /* of the optimizer's moments: --moments */
    amp_act act;                             /* of the blocks: --act */
    amp_dtype aux;                           /* what GELU keeps for its backward; AMP_AUTO: the mode's dtype */
} gpt_shape;

typedef struct gpt_mode {
    const char *name;
    amp_dtype t; /* weights that products read, activations, gradients */
    amp_master master;
    amp_scaler_mode scaling;
    float scale;         /* the first one */
    uint32_t growth;     /* good steps before a dynamic one doubles */
    uint32_t fp8;        /* casts whose largest amax gives the scale of the next one; 0: no FP8 */
    uint32_t stochastic; /* 1: weights are rounded so: amp_step_desc.stochastic */
} gpt_mode;

enum { MAX_LAYERS = 48, MAX_CHUNKS = 64 };
/* Slots of parameters, in GPT-2's order: wte, wpe; per block two of n1, qkv, proj, n2, up, down; last norm; head */
enum { WTE, WPE, BLOCKS, N1 = 0, QKV = 2, PROJ = 4, N2 = 6, UP = 8, DOWN = 10, PER_BLOCK = 12 };

typedef struct layer_norm {
    size_t gain; /* slot of its gain; its bias is in the next one */
    amp_array x, y;
    float *mean, *rstd;
} layer_norm;

/* x1 = x + proj(attention(qkv(n1(x)))), then x2 = x1 + down(gelu(up(n2(x1)))) */
typedef struct block {
    layer_norm n1, n2;
    amp_linear_desc qkv, proj, up, down; /* filled once, used forward and backward */
    amp_array heads, p;                  /* q, k, v apart by heads; the probabilities */
} block;

typedef struct gpt {
    amp_ctx *ctx;
    gpt_shape s;
    amp_dtype t;
    int tied;
    size_t batch, rows, chunks; /* rows = batch * context, now; they may be fewer than there is memory for */
    amp_params *params;
    size_t index[PER_BLOCK * MAX_LAYERS + 5]; /* of the parameter in each slot; past the end: there is none */
    amp_scaler *scaler;                       /* NULL: off */
    amp_fp8 *fp8;                             /* NULL, or the scales of x, w and dy of each layer of the blocks */
    block b[MAX_LAYERS];
    layer_norm last;
    amp_linear_desc head; /* of one chunk of rows: y is where their logits are */
    size_t head_bytes;    /* of that memory */
    amp_xent_desc loss;
    amp_array x;                             /* what the first block reads */
    amp_array dx, dn, dh, joined, apart, dp; /* gradients and scratch, shared by the blocks */
    int32_t *tokens, *labels, *order, *first, *place_order, *place_first;
    float *part, *mean_loss;
    int32_t *host; /* staging: tokens, labels, order, first */
    void *memory[16 * MAX_LAYERS + 64];
    int n_memory;
    double flops, bytes; /* counted: what a step must do at least */
    amp_histogram *seen; /* NULL, or where gradients are counted, by tensor */
} gpt;

static void *get(gpt *g, size_t bytes, const char *label) {
    void *p;
    must(g->ctx, amp_alloc(g->ctx, &p, bytes, label));
    must(g->ctx, amp_zero(g->ctx, p, bytes));
    g->memory[g->n_memory++] = p;
    return p;
}
static amp_array tensor(gpt *g, size_t per_row, const char *label) { /* for all rows */
    size_t n = g->rows * per_row;
    return amp_arrn(get(g, n * amp_dtype_size(g->t), label), g->t, n);
}
static amp_array from(amp_array a, size_t element) { /* the rest of a, from an element on */
    a.data = (char *)a.data + element * amp_dtype_size(a.dtype);
    a.count -= element;
    return a;
}
static amp_array weight(const gpt *g, size_t slot) { return amp_param_model(g->params, g->index[slot]); }
static amp_array grad(const gpt *g, size_t slot) { return amp_param_grad(g->params, g->index[slot]); }

/* ---- parameters ---- */

static const char *const part_names[PER_BLOCK] = {"n1.gain", "n1.bias", "qkv.weight", "qkv.bias", "proj.weight",
    "proj.bias", "n2.gain", "n2.bias", "up.weight", "up.bias", "down.weight", "down.bias"};

static void add_param(gpt *g, size_t slot, const char *name, size_t rows, size_t cols, double spread, uint64_t seed) {
    amp_param_desc d = AMP_ZERO;
    float *init = (float *)allocate(rows * cols, sizeof *init);
    size_t i, stream = amp_params_count(g->params);
    int is_gain = strstr(name, "gain") != NULL;
    int is_norm = is_gain || strstr(name, "n1.bias") || strstr(name, "n2.bias") || !strcmp(name, "n.bias");
    for (i = 0; i < rows * cols; i++)
        init[i] = spread > 0 ? (float)(spread * normal(seed, stream, i)) : (float)is_gain;
    g->index[slot] = stream;
    d.name = name;
    d.rows = rows;
    d.cols = cols;
    d.init = init;
    d.keep_f32 = is_norm && g->t != AMP_F32; /* an island */
    d.no_decay = rows == 1;
    must(g->ctx, amp_params_add(g->params, &d)); /* copies name and init */
    free(init);
}
static void add_params(gpt *g, uint64_t seed) {
    size_t c = g->s.width, last = BLOCKS + g->s.layers * PER_BLOCK, i, k;
    const size_t out[PER_BLOCK] = {1, 1, 3 * c, 1, c, 1, 1, 1, 4 * c, 1, c, 1};
    const size_t in[PER_BLOCK] = {c, c, c, 3 * c, c, c, c, c, c, 4 * c, 4 * c, c};
    double spread = g->s.spread, residual = spread / sqrt(2.0 * (double)g->s.layers);
    memset(g->index, -1, sizeof g->index);
    add_param(g, WTE, "wte", g->s.vocab, c, g->s.embed ? (double)g->s.embed : spread, seed);
    add_param(g, WPE, "wpe", g->s.context, c, spread, seed);
    for (i = 0; i < g->s.layers; i++)
        for (k = 0; k < PER_BLOCK; k++) {
            double sd = k == PROJ || k == DOWN ? residual : spread;
            char name[32];
            sprintf(name, "%d.%s", (int)i, part_names[k]);
            if (k % 2 && !g->s.biases) continue;
            add_param(g, BLOCKS + i * PER_BLOCK + k, name, out[k], in[k], out[k] > 1 ? sd : 0, seed);
        }
    add_param(g, last, "n.gain", 1, c, 0, seed);
    if (g->s.biases) add_param(g, last + 1, "n.bias", 1, c, 0, seed);
    if (!g->tied) add_param(g, last + 2, "head", g->s.vocab, c, spread, seed);
}

#endif
