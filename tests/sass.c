/* sass.c - what the machine code of the CUDA kernels does, without a GPU: nvcc's SASS, executed and counted by
   tests/hostcuda.

       sass --code build/sass/sm_90 [--archs LIST] [--row TEXT] [--data KIND] [--quick] [--table FILE] [--record]
            [--profile N] [--listing] [--thin] | --chain | --reads [--row TEXT]
       sass --bounds FILE [--main]

   Each row runs one verb of amp.h on the CUDA context, whose launches run the machine code, and the same on the CPU
   context. It says whether the results have the same bits; how many instructions a warp issues per element, by pipe;
   and which share of a GPU's nominal memory bandwidth that allows at most, if nothing ever waits. These figures are
   counted, not timed. Instructions per element: issued by a warp, times 32, over the elements; counted between two
   sizes, so that what a launch costs by itself is left out. The last line is "N passed, N failed, N skipped".

   --bounds: a table of bounds in Markdown from the counts in FILE, without running anything; --main: of fewer rows.
   --table: a row fails whose count is more than 3 % above the one in FILE, or that is not in it. --record prints such
   lines instead: architecture, row, data, instructions per element, and those by pipe. --quick: normal
   and half subnormal data alone. --row, --data: rows that contain TEXT, or one of TEXT|TEXT; one kind of data. --thin:
   code has some of the kernels; others run as C++, and rows that run none of it fail. --profile: the most frequent
   opcodes; --listing: the machine code that ran; both per element. Under a row whose bound is below its goal is a line
   with the goal and the instructions that stand in the way; a row without such a line fails. --chain: how long a small
   step takes at least, beside that of naive_tail.cu, and its longest chain of dependent instructions. --reads: a table
   in Markdown: how many bytes an SM has asked memory for at a time, at most, and how many SMs have work on a million
   elements. */
#include "../amp_cuda.cuh"
#include "hostcuda_ctl.h"
#include "naive_tail.h"
#include "sass_bound.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct options {
    const char *code, *archs, *row, *data, *table, *bounds;
    int profile, listing, quick, record, chain, main, thin, reads;
} opt;

static const char *const pipe_names[HCU_PIPES] = {
    "alu", "fma", "imad", "fp64", "cvt64", "xu", "lsu", "branch", "uniform", "other"};
typedef char same_pipes[(int)SASS_ALU == (int)HCU_PIPE_ALU && (int)SASS_IMAD == (int)HCU_PIPE_IMAD &&
            (int)SASS_LSU == (int)HCU_PIPE_LSU && (int)SASS_PIPES == (int)HCU_PIPES
        ? 1
        : -1];

/* Is the loaded code what this GPU runs? --archs lists all that this run has; where a GPU's own is not among them, 8.6
   stands for those with few FP64 units, and 9.0 for the others. */
static int has_code_of(const gpu *g) {
    char own[8];
    snprintf(own, sizeof own, "%d", g->arch);
    if (!opt.archs || strstr(opt.archs, own)) return !opt.archs || g->arch == hcu_sass_arch();
    return hcu_sass_arch() == (g->fp64_shared ? 86 : 90);
}
/* ---- what a row works on ---- */

typedef enum data_kind { NORMAL, SUBNORMAL, ZERO, INF, SHIFTED, DATA_KINDS } data_kind;
static const char *const data_names[DATA_KINDS] = {"normal", "half subnormal", "zero", "with Inf", "not aligned"};

struct row;
typedef struct work {
    amp_ctx *ctx;
    const struct row *row;
    size_t n;
    data_kind data;
    size_t shift;       /* elements before every array */
    amp_array lent[16]; /* context memory, freed at the end */
    size_t lent_count[16];
    int n_lent;
    unsigned char *out; /* what the verb wrote, all arrays of it */
    size_t out_bytes;
    hcu_sass_count count;
    int failed;
} work;
typedef struct row {
    const char *name;
    void (*run)(work *);
    amp_dtype from, to;
    int arg, arg2;
    double bytes;        /* per element, read and written */
    size_t small, large; /* the two sizes */
    const char *kernel;  /* counted; NULL: all that the verb launches */
} row;

static void fine(work *w, amp_status s, const char *what) {
    if (s == AMP_OK) return;
    printf("FAIL %s: %s: %s\n", w->row->name, what, w->ctx ? amp_last_error(w->ctx) : "");
    exit(1);
}

/* Random numbers of the kind that is wanted, in dtype t; subnormal: in `as`. */
static float tiny(amp_dtype as) {
    return as == AMP_F16 ? 1.5e-5f : as == AMP_F8E4M3 ? 4e-3f : as == AMP_F8E5M2 ? 1.5e-5f : 3e-39f;
}
static void *make(const work *w, amp_dtype t, amp_dtype as, size_t n, float scale, uint64_t seed) {
    char *x = (char *)malloc(n * amp_dtype_size(t) + 1);
    size_t i;
    for (i = 0; i < n; i++) {
        uint32_t r[4];
        double u;
        float v;
        amp_philox(r, seed, 3, i);
        u = ((double)r[0] + (double)r[1] + (double)r[2] - 1.5 * 4294967296.0) * (2.0 / 4294967296.0); /* deviation 1 */
        v = (float)u * scale;
        if (w->data == ZERO) v = 0;
        if (w->data == SUBNORMAL && (r[3] & 1)) v = (float)(u * (double)tiny(as));
        if (w->data == INF && r[3] % 4096 == 7) v = INFINITY;
        amp_store(x, t, i, v);
    }
    return x;
}
/* Context memory with these elements, or filled with 0xA5. */
static amp_array lend(work *w, amp_dtype t, size_t n, const void *from) {
    size_t e = amp_dtype_size(t), k = (size_t)w->n_lent++;
    char *p;
    fine(w, amp_alloc(w->ctx, &w->lent[k].data, (n + 2 * w->shift) * e + 16, "sass"), "amp_alloc");
    p = (char *)w->lent[k].data + w->shift * e;
    if (from) {
        fine(w, amp_copy(w->ctx, p, from, n * e), "amp_copy");
    } else {
        void *junk = malloc(n * e + 1);
        memset(junk, 0xA5, n * e);
        fine(w, amp_copy(w->ctx, p, junk, n * e), "amp_copy");
        free(junk);
    }
    return amp_arrn(p, t, n);
}
static amp_array random_array(work *w, amp_dtype t, amp_dtype as, size_t n, float scale, uint64_t seed) {
    void *x = make(w, t, as, n, scale, seed);
    amp_array a = lend(w, t, n, x);
    free(x);
    return a;
}
static amp_array plain_array(
    work *w, amp_dtype t, size_t n, float scale, uint64_t seed) { /* normal numbers whatever the data */
    data_kind data = w->data;
    amp_array a;
    w->data = NORMAL;
    a = random_array(w, t, t, n, scale, seed);
    w->data = data;
    return a;
}
static void keep(work *w, const void *p, size_t bytes) {
    w->out = (unsigned char *)realloc(w->out, w->out_bytes + bytes + 1);
    memcpy(w->out + w->out_bytes, p, bytes);
    w->out_bytes += bytes;
}
static void keep_array(work *w, amp_array a) {
    size_t bytes = a.count * amp_dtype_size(a.dtype), i;
    void *x = malloc(bytes + 1);
    fine(w, amp_copy(w->ctx, x, a.data, bytes), "amp_copy");
    for (i = 0; i < a.count; i++) /* any NaN is a NaN: the payload of one that arithmetic makes is not specified */
        if (amp_is_nan(amp_load(x, a.dtype, i))) amp_store(x, a.dtype, i, NAN);
    keep(w, x, bytes);
    free(x);
}
/* Around the verb: what it launches is counted. */
static void begin(work *w) {
    fine(w, amp_sync(w->ctx), "amp_sync");
    hcu_sass_reset();
}
static void end(work *w) {
    fine(w, amp_sync(w->ctx), "amp_sync");
    w->count = hcu_sass_counts(w->row->kernel);
}

/* ---- the verbs ---- */

static void run_cast(work *w) { /* arg: 1 stochastic; arg2: saturates */
    amp_dtype narrow = amp_dtype_size(w->row->to) < amp_dtype_size(w->row->from) ? w->row->to : w->row->from;
    amp_array src = random_array(w, w->row->from, narrow, w->n, 1.0f, 1), dst = lend(w, w->row->to, w->n, NULL);
    amp_cast_desc d = AMP_ZERO;
    d.rounding = w->row->arg ? AMP_STOCHASTIC : AMP_NEAREST;
    d.saturate = (uint32_t)w->row->arg2;
    d.seed = 5;
    begin(w);
    fine(w, amp_cast(w->ctx, dst, src, w->n, &d), "amp_cast");
    end(w);
    keep_array(w, dst);
}
static void run_finite(work *w) {
    amp_array a = random_array(w, w->row->from, w->row->from, w->n, 1.0f, 2);
    amp_finite_report f;
    memset(&f, 0, sizeof f);
    begin(w);
    fine(w, amp_all_finite(w->ctx, &f, &a, 1), "amp_all_finite");
    end(w);
    keep(w, &f, sizeof f);
}
static void run_histogram(work *w) {
    amp_array a = random_array(w, w->row->from, w->row->from, w->n, 1.0f, 2);
    amp_histogram h;
    memset(&h, 0, sizeof h);
    begin(w);
    fine(w, amp_histogram_count(w->ctx, &h, &a, 1), "amp_histogram_count");
    end(w);
    keep(w, &h, sizeof h);
}
static amp_scaler *scaler(work *w) {
    amp_scaler_desc d = AMP_ZERO;
    amp_scaler *s;
    d.scale = 1024;
    fine(w, amp_scaler_create(&s, w->ctx, &d), "amp_scaler_create");
    return s;
}
static void run_unscale(work *w) {
    amp_array g = random_array(w, w->row->from, w->row->from, w->n, 1000.0f, 3);
    amp_array to = w->row->to == w->row->from ? g : lend(w, w->row->to, w->n, NULL);
    amp_scaler *s = scaler(w);
    begin(w);
    fine(w, amp_unscale(s, &to, NULL, &g, 1), "amp_unscale");
    end(w);
    keep_array(w, to);
    amp_scaler_destroy(s);
}

/* A set of one parameter of n elements with an adopted gradient. */
typedef struct layout {
    amp_master master;
    amp_dtype model, moment;
    amp_optimizer optimizer;
    float momentum;
    uint32_t stochastic, count; /* count: of lost updates, see amp_step_desc.count_lost */
} layout;
enum {
    L_ADAMW,
    L_ADAMW_BF16,
    L_ADAMW_F32,
    L_LION,
    L_SGD_MOMENTUM,
    L_SGD,
    L_SGD_STOCHASTIC,
    L_SPLIT,
    L_KAHAN,
    L_STOCHASTIC,
    L_BF16_MOMENTS,
    L_8BIT_MOMENTS,
    L_8BIT_OF_SPLIT8,
    L_SPLIT8,
    L_SPLIT8_DRAWN,
    L_COUNT_32,
    L_COUNT_ALL
};
static const layout layouts[] = {
    {AMP_MASTER_F32, AMP_F16, AMP_F32, AMP_ADAMW, 0, 0, 0},
    {AMP_MASTER_F32, AMP_BF16, AMP_F32, AMP_ADAMW, 0, 0, 0},
    {AMP_MASTER_F32, AMP_F32, AMP_F32, AMP_ADAMW, 0, 0, 0},
    {AMP_MASTER_F32, AMP_F16, AMP_F32, AMP_LION, 0, 0, 0},
    {AMP_MASTER_F32, AMP_F16, AMP_F32, AMP_SGD, 0.9f, 0, 0},
    {AMP_MASTER_F32, AMP_F16, AMP_F32, AMP_SGD, 0, 0, 0},
    {AMP_MASTER_NONE, AMP_BF16, AMP_F32, AMP_SGD, 0, 1, 0},
    {AMP_MASTER_SPLIT, AMP_F16, AMP_F32, AMP_ADAMW, 0, 0, 0},
    {AMP_MASTER_KAHAN, AMP_BF16, AMP_F32, AMP_ADAMW, 0, 0, 0},
    {AMP_MASTER_NONE, AMP_BF16, AMP_F32, AMP_ADAMW, 0, 1, 0},
    {AMP_MASTER_NONE, AMP_BF16, AMP_BF16, AMP_ADAMW, 0, 1, 0},
    {AMP_MASTER_SPLIT, AMP_BF16, AMP_MOMENT_8BIT, AMP_ADAMW, 0, 0, 0},
    {AMP_MASTER_SPLIT8, AMP_BF16, AMP_MOMENT_8BIT, AMP_ADAMW, 0, 0, 0},
    {AMP_MASTER_SPLIT8, AMP_BF16, AMP_F32, AMP_ADAMW, 0, 0, 0},
    {AMP_MASTER_SPLIT8, AMP_BF16, AMP_F32, AMP_ADAMW, 0, 1, 0},
    {AMP_MASTER_F32, AMP_F16, AMP_F32, AMP_ADAMW, 0, 0, 32},
    {AMP_MASTER_F32, AMP_F16, AMP_F32, AMP_ADAMW, 0, 0, 1},
};
static amp_params *set_of(work *w, const layout *l, amp_dtype grad, amp_step_desc *step, amp_array *g) {
    amp_params_desc d = AMP_ZERO;
    amp_param_desc p = AMP_ZERO;
    amp_params *set;
    data_kind data = w->data;
    float *init;
    *g = random_array(w, grad, grad, w->n, 100.0f, 4);
    w->data = NORMAL;
    init = (float *)make(w, AMP_F32, AMP_F32, w->n, 0.05f, 9);
    w->data = data;
    d.model = l->model;
    d.grad = grad;
    d.master = l->master;
    d.moment = l->moment;
    d.moments = l->optimizer == AMP_SGD ? (l->momentum > 0 ? 1 : AMP_NONE) : l->optimizer == AMP_LION ? 1 : 2;
    fine(w, amp_params_create(&set, w->ctx, &d), "amp_params_create");
    p.count = w->n;
    p.init = init;
    p.grad = *g;
    fine(w, amp_params_add(set, &p), "amp_params_add");
    fine(w, amp_params_commit(set), "amp_params_commit");
    free(init);
    memset(step, 0, sizeof *step);
    step->optimizer = l->optimizer;
    step->lr = 1e-3f;
    step->weight_decay = 0.01f;
    step->momentum = l->momentum;
    step->stochastic = l->stochastic;
    step->count_lost = l->count;
    step->seed = 11;
    return set;
}
static void run_inspect(work *w) {
    amp_step_desc step;
    amp_array g;
    amp_params *p = set_of(w, &layouts[L_SGD], w->row->from, &step, &g);
    amp_scaler *s = scaler(w);
    amp_step_record r;
    step.clip_norm = 1;
    begin(w);
    fine(w, amp_inspect(p, s, &step), "amp_inspect");
    end(w);
    memset(&r, 0, sizeof r);
    fine(w, amp_step_poll(p, &r), "amp_step_poll");
    keep(w, &r, sizeof r);
    amp_scaler_destroy(s);
    amp_params_destroy(p);
}
static void run_update(work *w) { /* arg: layout; two steps, the second is counted */
    amp_step_desc step;
    amp_array g;
    amp_params *p = set_of(w, &layouts[w->row->arg], w->row->from, &step, &g);
    amp_scaler *s = scaler(w);
    amp_param at;
    fine(w, amp_step(p, s, &step), "amp_step");
    begin(w);
    fine(w, amp_step(p, s, &step), "amp_step");
    end(w);
    at = amp_param_get(p, 0);
    keep_array(w, at.model);
    if (at.master.data) keep_array(w, at.master);
    if (at.low.data) keep_array(w, at.low);
    if (at.moment[0].data) keep_array(w, at.moment[0]);
    if (at.moment[1].data) keep_array(w, at.moment[1]);
    amp_scaler_destroy(s);
    amp_params_destroy(p);
}
static void run_clip(work *w) {
    amp_step_desc step;
    amp_array g;
    amp_params *p = set_of(w, &layouts[L_SGD], w->row->from, &step, &g);
    amp_scaler *s = scaler(w);
    begin(w);
    fine(w, amp_clip(p, s, 1.0f, 0.0f), "amp_clip");
    end(w);
    keep_array(w, g);
    amp_scaler_destroy(s);
    amp_params_destroy(p);
}
static void run_xent(work *w) { /* arg: classes; rows as many as fit in n */
    size_t classes = (size_t)w->row->arg, rows = w->n / classes;
    amp_array x = random_array(w, w->row->from, w->row->from, rows * classes, 2.0f, 6);
    amp_array dx = lend(w, w->row->from, rows * classes, NULL), labels, loss = lend(w, AMP_F32, rows + 1, NULL);
    int32_t *label = (int32_t *)malloc(rows * sizeof *label);
    amp_xent_desc d = AMP_ZERO;
    size_t i, shift = w->shift;
    for (i = 0; i < rows; i++)
        label[i] = (int32_t)(amp_random(9, 0, i) % classes);
    w->shift = 0;
    labels = lend(w, AMP_F32, rows, label);
    w->shift = shift;
    free(label);
    d.rows = rows;
    d.classes = classes;
    d.logits = x;
    d.dlogits = dx;
    d.labels = (const int32_t *)labels.data;
    d.loss = (float *)loss.data;
    d.row_loss = (float *)loss.data + 1;
    begin(w);
    fine(w, amp_softmax_cross_entropy(w->ctx, &d), "amp_softmax_cross_entropy");
    end(w);
    keep_array(w, dx);
    keep_array(w, loss);
}
static void run_backward(
    work *w) { /* what amp_linear_backward does beside products; arg: act; arg2: columns, 0 without sums */
    size_t cols = w->row->arg2 ? (size_t)w->row->arg2 : 512, rows = w->n / cols;
    amp_array saved = random_array(w, w->row->from, w->row->from, rows * cols, 1.0f, 7);
    amp_array dy = random_array(w, w->row->from, w->row->from, rows * cols, 1.0f, 8),
              sums = lend(w, AMP_F32, cols, NULL);
    amp_linear_desc l = AMP_ZERO;
    l.rows = rows;
    l.out = cols;
    l.in = 8;
    l.act = (amp_act)w->row->arg;
    l.y = l.aux = saved;
    if (w->row->to == AMP_MASK) l.aux.dtype = AMP_MASK; /* its first bits */
    l.dy = dy;
    if (w->row->arg2) l.dbias = sums;
    begin(w);
    fine(w, amp_linear_backward(w->ctx, &l), "amp_linear_backward");
    end(w);
    keep_array(w, dy);
    if (w->row->arg2) keep_array(w, sums);
}
static void run_forward(
    work *w) { /* d = act(a b + bias) with k = 1, so that the product is exact; the epilogue is counted */
    size_t cols = 512, rows = w->n / cols;
    amp_array a = random_array(w, AMP_F32, AMP_F32, rows, 1.0f, 7), b = plain_array(w, AMP_F32, cols, 1.0f, 8);
    amp_array bias = plain_array(w, AMP_F32, cols, 1.0f, 9), d = lend(w, AMP_F32, rows * cols, NULL);
    amp_array bytes = lend(w, AMP_F8E4M3, rows * cols / 8, NULL), mask = amp_arr(bytes.data, AMP_MASK);
    amp_gemm_desc g = AMP_ZERO;
    g.m = rows;
    g.n = cols;
    g.k = 1;
    g.a = a;
    g.b = b;
    g.d = d;
    g.bias = bias;
    g.act = (amp_act)w->row->arg;
    if (w->row->to == AMP_MASK) g.aux = mask;
    begin(w);
    fine(w, amp_gemm(w->ctx, &g), "amp_gemm");
    end(w);
    keep_array(w, d);
    if (w->row->to == AMP_MASK) keep_array(w, bytes);
}
/* d = x w^T in the defined order, 64 columns, k = arg: of what is issued per element, k are multiply-adds. */
static void run_ordered(work *w) {
    size_t cols = 64, k = (size_t)w->row->arg, rows = w->n / cols;
    amp_array a = random_array(w, w->row->from, w->row->from, rows * k, 1.0f, 16);
    amp_array b = random_array(w, w->row->from, w->row->from, cols * k, 1.0f, 17);
    amp_array d = lend(w, w->row->to, rows * cols, NULL);
    amp_gemm_desc g = AMP_ZERO;
    g.m = rows;
    g.n = cols;
    g.k = k;
    g.trans_b = 1;
    g.a = a;
    g.b = b;
    g.d = d;
    g.flags = AMP_GEMM_ORDERED;
    begin(w);
    fine(w, amp_gemm(w->ctx, &g), "amp_gemm");
    end(w);
    keep_array(w, d);
}
static void run_activation(work *w) { /* arg: the activation; arg2: 1: its gradient */
    amp_array x = random_array(w, w->row->from, w->row->from, w->n, 1.0f, 19), out = lend(w, w->row->to, w->n, NULL);
    amp_activation_desc d = AMP_ZERO;
    d.act = (amp_act)w->row->arg;
    d.count = w->n;
    d.x = x;
    d.y = out;
    if (w->row->arg2) {
        d.y = x; /* what backward of some reads */
        d.dy = random_array(w, w->row->from, w->row->from, w->n, 1.0f, 20);
        d.dx = out;
    }
    begin(w);
    fine(w, amp_activation(w->ctx, &d), "amp_activation");
    end(w);
    keep_array(w, out);
}
static void run_dropout(work *w) {
    amp_array x = random_array(w, w->row->from, w->row->from, w->n, 1.0f, 14), y = lend(w, w->row->from, w->n, NULL);
    amp_dropout_desc d = AMP_ZERO;
    d.p = 0.1f;
    d.count = w->n;
    d.x = x;
    d.y = y;
    d.rng.seed = 15;
    begin(w);
    fine(w, amp_dropout(w->ctx, &d), "amp_dropout");
    end(w);
    keep_array(w, y);
}
/* arg: the history; arg2: 1: a transposed copy, too. The second of two casts is counted. */
static void run_quantize(work *w) {
    size_t cols = 512, rows = w->n / cols;
    amp_array src = random_array(w, w->row->from, w->row->from, rows * cols, 1.0f, 18);
    amp_array dst = lend(w, w->row->to, rows * cols, NULL), dst_t = AMP_ZERO;
    amp_fp8_desc d = AMP_ZERO;
    amp_fp8_info info;
    amp_fp8 *f;
    if (w->row->arg2) dst_t = lend(w, w->row->to, rows * cols, NULL);
    d.history = (uint32_t)w->row->arg;
    fine(w, amp_fp8_create(&f, w->ctx, &d), "amp_fp8_create");
    fine(w, amp_quantize(f, 0, dst, dst_t, src, rows, cols, 0), "amp_quantize");
    begin(w);
    fine(w, amp_quantize(f, 0, dst, dst_t, src, rows, cols, 0), "amp_quantize");
    end(w);
    keep_array(w, dst);
    if (w->row->arg2) keep_array(w, dst_t);
    fine(w, amp_fp8_get(f, 0, &info), "amp_fp8_get");
    keep(w, &info, sizeof info);
    amp_fp8_destroy(f);
}

#define K 1024u
static const row rows[] = {
    /* name                              verb          from        to         arg  arg2 bytes small   large  kernel */
    {"cast f32->f16", run_cast, AMP_F32, AMP_F16, 0, 0, 6, 16 * K, 64 * K, NULL},
    {"cast f32->bf16", run_cast, AMP_F32, AMP_BF16, 0, 0, 6, 16 * K, 64 * K, NULL},
    {"cast f16->f32", run_cast, AMP_F16, AMP_F32, 0, 0, 6, 16 * K, 64 * K, NULL},
    {"cast bf16->f32", run_cast, AMP_BF16, AMP_F32, 0, 0, 6, 16 * K, 64 * K, NULL},
    {"cast f16->bf16", run_cast, AMP_F16, AMP_BF16, 0, 0, 4, 16 * K, 64 * K, NULL},
    {"cast bf16->f16", run_cast, AMP_BF16, AMP_F16, 0, 0, 4, 16 * K, 64 * K, NULL},
    {"cast f32->e4m3", run_cast, AMP_F32, AMP_F8E4M3, 0, 0, 5, 16 * K, 64 * K, NULL},
    {"cast f32->e4m3 saturating", run_cast, AMP_F32, AMP_F8E4M3, 0, 1, 5, 16 * K, 64 * K, NULL},
    {"cast f32->e5m2", run_cast, AMP_F32, AMP_F8E5M2, 0, 0, 5, 16 * K, 64 * K, NULL},
    {"cast f32->e5m2 saturating", run_cast, AMP_F32, AMP_F8E5M2, 0, 1, 5, 16 * K, 64 * K, NULL},
    {"cast e4m3->f32", run_cast, AMP_F8E4M3, AMP_F32, 0, 0, 5, 16 * K, 64 * K, NULL},
    {"cast e5m2->f32", run_cast, AMP_F8E5M2, AMP_F32, 0, 0, 5, 16 * K, 64 * K, NULL},
    {"cast f16->e4m3", run_cast, AMP_F16, AMP_F8E4M3, 0, 0, 3, 16 * K, 64 * K, NULL},
    {"cast e4m3->f16", run_cast, AMP_F8E4M3, AMP_F16, 0, 0, 3, 16 * K, 64 * K, NULL},
    {"cast bf16->e4m3", run_cast, AMP_BF16, AMP_F8E4M3, 0, 0, 3, 16 * K, 64 * K, NULL},
    {"cast e4m3->bf16", run_cast, AMP_F8E4M3, AMP_BF16, 0, 0, 3, 16 * K, 64 * K, NULL},
    {"cast e4m3->e5m2", run_cast, AMP_F8E4M3, AMP_F8E5M2, 0, 0, 2, 16 * K, 64 * K, NULL},
    {"cast f32->bf16 stochastic", run_cast, AMP_F32, AMP_BF16, 1, 0, 6, 16 * K, 64 * K, NULL},
    {"cast f32->f16 stochastic", run_cast, AMP_F32, AMP_F16, 1, 0, 6, 16 * K, 64 * K, NULL},
    {"inspect f16", run_inspect, AMP_F16, AMP_F16, 0, 0, 2, 64 * K, 192 * K, NULL},
    {"inspect bf16", run_inspect, AMP_BF16, AMP_F16, 0, 0, 2, 64 * K, 192 * K, NULL},
    {"inspect f32", run_inspect, AMP_F32, AMP_F16, 0, 0, 4, 64 * K, 192 * K, NULL},
    {"all_finite f16", run_finite, AMP_F16, AMP_F16, 0, 0, 2, 256 * K, 768 * K, NULL},
    {"all_finite bf16", run_finite, AMP_BF16, AMP_F16, 0, 0, 2, 256 * K, 768 * K, NULL},
    {"all_finite f32", run_finite, AMP_F32, AMP_F16, 0, 0, 4, 256 * K, 768 * K, NULL},
    {"histogram f16", run_histogram, AMP_F16, AMP_F16, 0, 0, 2, 256 * K, 768 * K, NULL},
    {"unscale f16", run_unscale, AMP_F16, AMP_F16, 0, 0, 4, 256 * K, 768 * K, NULL},
    {"unscale f16->f32", run_unscale, AMP_F16, AMP_F32, 0, 0, 6, 256 * K, 768 * K, NULL},
    {"unscale f32", run_unscale, AMP_F32, AMP_F32, 0, 0, 8, 256 * K, 768 * K, NULL},
    {"clip f16", run_clip, AMP_F16, AMP_F16, 0, 0, 4, 64 * K, 192 * K, "ampi_k_clip"},
    {"clip f32", run_clip, AMP_F32, AMP_F32, 0, 0, 8, 64 * K, 192 * K, "ampi_k_clip"},
    {"AdamW f16", run_update, AMP_F16, AMP_F16, L_ADAMW, 0, 28, 64 * K, 128 * K, "ampi_k_update"},
    {"AdamW f16 counted 1 in 32", run_update, AMP_F16, AMP_F16, L_COUNT_32, 0, 28, 64 * K, 128 * K,
        "ampi_k_count_update"},
    {"AdamW f16 counted", run_update, AMP_F16, AMP_F16, L_COUNT_ALL, 0, 28, 64 * K, 128 * K, "ampi_k_count_update"},
    {"AdamW bf16", run_update, AMP_BF16, AMP_F16, L_ADAMW_BF16, 0, 28, 64 * K, 128 * K, "ampi_k_update"},
    {"AdamW f32", run_update, AMP_F32, AMP_F16, L_ADAMW_F32, 0, 28, 64 * K, 128 * K, "ampi_k_update"},
    {"Lion f16", run_update, AMP_F16, AMP_F16, L_LION, 0, 20, 64 * K, 128 * K, "ampi_k_update"},
    {"SGD with momentum f16", run_update, AMP_F16, AMP_F16, L_SGD_MOMENTUM, 0, 20, 64 * K, 128 * K, "ampi_k_update"},
    {"SGD f16", run_update, AMP_F16, AMP_F16, L_SGD, 0, 12, 64 * K, 128 * K, "ampi_k_update"},
    {"SGD bf16 stochastic", run_update, AMP_BF16, AMP_F16, L_SGD_STOCHASTIC, 0, 6, 64 * K, 128 * K, "ampi_k_update"},
    {"AdamW f16 split", run_update, AMP_F16, AMP_F16, L_SPLIT, 0, 26, 64 * K, 128 * K, "ampi_k_update_pairs"},
    {"AdamW bf16 Kahan", run_update, AMP_BF16, AMP_F16, L_KAHAN, 0, 26, 64 * K, 128 * K, "ampi_k_update_pairs"},
    {"AdamW bf16 stochastic", run_update, AMP_BF16, AMP_F16, L_STOCHASTIC, 0, 22, 64 * K, 128 * K, "ampi_k_update"},
    {"AdamW bf16 moments", run_update, AMP_BF16, AMP_F16, L_BF16_MOMENTS, 0, 14, 64 * K, 128 * K, "ampi_k_update"},
    {"AdamW bf16 8-bit moments", run_update, AMP_BF16, AMP_F16, L_8BIT_MOMENTS, 0, 14.03, 64 * K, 128 * K,
        "ampi_k_update_codes"},
    {"AdamW bf16 split8, 8-bit moments", run_update, AMP_BF16, AMP_F16, L_8BIT_OF_SPLIT8, 0, 12.03, 64 * K, 128 * K,
        "ampi_k_update_codes"},
    {"AdamW bf16 split8", run_update, AMP_BF16, AMP_F16, L_SPLIT8, 0, 24, 64 * K, 128 * K, "ampi_k_update_pairs"},
    {"AdamW bf16 split8 stochastic", run_update, AMP_BF16, AMP_F16, L_SPLIT8_DRAWN, 0, 24, 64 * K, 128 * K,
        "ampi_k_update_pairs"},
    {"cross-entropy f16", run_xent, AMP_F16, AMP_F16, 50257, 0, 4, 50257, 2 * 50257, NULL},
    {"cross-entropy bf16", run_xent, AMP_BF16, AMP_F16, 50257, 0, 4, 50257, 2 * 50257, NULL},
    {"cross-entropy f32", run_xent, AMP_F32, AMP_F16, 50257, 0, 8, 50257, 2 * 50257, NULL},
    {"cross-entropy f16, 10 classes", run_xent, AMP_F16, AMP_F16, 10, 0, 4.8, 40 * K, 120 * K, NULL},
    {"cross-entropy f32, 10 classes", run_xent, AMP_F32, AMP_F16, 10, 0, 8.8, 40 * K, 120 * K, NULL},
    {"cross-entropy f16, 1,000 classes", run_xent, AMP_F16, AMP_F16, 1000, 0, 4, 64000, 192000, NULL},
    {"cross-entropy f32, 1,000 classes", run_xent, AMP_F32, AMP_F16, 1000, 0, 8, 64000, 192000, NULL},
    {"GELU f32 (with bias)", run_forward, AMP_F32, AMP_F32, AMP_GELU, 0, 8, 32 * K, 96 * K, NULL},
    {"ReLU f32 and its mask (with bias)", run_forward, AMP_F32, AMP_MASK, AMP_RELU, 0, 8.125, 32 * K, 96 * K, NULL},
    {"GELU gradient f16", run_backward, AMP_F16, AMP_F16, AMP_GELU, 0, 6, 32 * K, 96 * K, NULL},
    {"GELU gradient bf16", run_backward, AMP_BF16, AMP_F16, AMP_GELU, 0, 6, 32 * K, 96 * K, NULL},
    {"GELU gradient and sums f16", run_backward, AMP_F16, AMP_F16, AMP_GELU, 512, 6, 64 * K, 192 * K, NULL},
    {"ReLU gradient f16", run_backward, AMP_F16, AMP_F16, AMP_RELU, 0, 6, 32 * K, 96 * K, NULL},
    {"ReLU gradient and sums f16", run_backward, AMP_F16, AMP_F16, AMP_RELU, 512, 6, 64 * K, 192 * K, NULL},
    {"ReLU gradient f16, by a mask", run_backward, AMP_F16, AMP_MASK, AMP_RELU, 0, 4.125, 32 * K, 96 * K, NULL},
    {"ReLU gradient and sums f16, by a mask", run_backward, AMP_F16, AMP_MASK, AMP_RELU, 512, 4.125, 64 * K, 192 * K,
        NULL},
    {"column sums f16", run_backward, AMP_F16, AMP_F16, AMP_ACT_NONE, 512, 2, 64 * K, 192 * K, NULL},
    {"column sums bf16", run_backward, AMP_BF16, AMP_F16, AMP_ACT_NONE, 512, 2, 64 * K, 192 * K, NULL},
    {"ordered product f16, k 1024", run_ordered, AMP_F16, AMP_F16, 1024, 0, 50, 8 * K, 24 * K, "ampi_k_gemm"},
    {"ordered product bf16, k 1024", run_ordered, AMP_BF16, AMP_BF16, 1024, 0, 50, 8 * K, 24 * K, "ampi_k_gemm"},
    {"ordered product f32, k 1024", run_ordered, AMP_F32, AMP_F32, 1024, 0, 100, 8 * K, 24 * K, "ampi_k_gemm"},
    {"quantize f32, delayed", run_quantize, AMP_F32, AMP_F8E4M3, 16, 0, 5, 64 * K, 192 * K, NULL},
    {"quantize bf16, delayed", run_quantize, AMP_BF16, AMP_F8E4M3, 16, 0, 3, 64 * K, 192 * K, NULL},
    {"quantize bf16, current", run_quantize, AMP_BF16, AMP_F8E4M3, 0, 0, 5, 64 * K, 192 * K, NULL},
    {"quantize bf16, transposed", run_quantize, AMP_BF16, AMP_F8E5M2, 16, 1, 4, 64 * K, 192 * K, NULL},
    {"act. ReLU f16", run_activation, AMP_F16, AMP_F16, AMP_RELU, 0, 4, 16 * K, 64 * K, NULL},
    {"act. ReLU gradient f16", run_activation, AMP_F16, AMP_F16, AMP_RELU, 1, 6, 16 * K, 64 * K, NULL},
    {"act. GELU f16", run_activation, AMP_F16, AMP_F16, AMP_GELU, 0, 4, 16 * K, 64 * K, NULL},
    {"act. GELU gradient f16", run_activation, AMP_F16, AMP_F16, AMP_GELU, 1, 6, 16 * K, 64 * K, NULL},
    {"act. GELU erf f16", run_activation, AMP_F16, AMP_F16, AMP_GELU_ERF, 0, 4, 16 * K, 64 * K, NULL},
    {"act. GELU erf gradient f16", run_activation, AMP_F16, AMP_F16, AMP_GELU_ERF, 1, 6, 16 * K, 64 * K, NULL},
    {"act. SiLU f16", run_activation, AMP_F16, AMP_F16, AMP_SILU, 0, 4, 16 * K, 64 * K, NULL},
    {"act. SiLU gradient f16", run_activation, AMP_F16, AMP_F16, AMP_SILU, 1, 6, 16 * K, 64 * K, NULL},
    {"act. tanh f16", run_activation, AMP_F16, AMP_F16, AMP_TANH, 0, 4, 16 * K, 64 * K, NULL},
    {"act. tanh gradient f16", run_activation, AMP_F16, AMP_F16, AMP_TANH, 1, 6, 16 * K, 64 * K, NULL},
    {"act. sigmoid f16", run_activation, AMP_F16, AMP_F16, AMP_SIGMOID, 0, 4, 16 * K, 64 * K, NULL},
    {"act. sigmoid gradient f16", run_activation, AMP_F16, AMP_F16, AMP_SIGMOID, 1, 6, 16 * K, 64 * K, NULL},
    {"dropout f16", run_dropout, AMP_F16, AMP_F16, 0, 0, 4, 16 * K, 64 * K, NULL},
    {"dropout bf16", run_dropout, AMP_BF16, AMP_F16, 0, 0, 4, 16 * K, 64 * K, NULL},
    {"dropout f32", run_dropout, AMP_F32, AMP_F16, 0, 0, 8, 16 * K, 64 * K, NULL},
};
#define ROWS (sizeof rows / sizeof *rows)

/* ---- running a row ---- */

static int passed, failed;

/* ---- goals ----
   The least bound that is wanted on eight GPUs, for normal and half subnormal data, aligned or not; 0: none. `stands`:
   the instructions that keep a row below; bench/NOTES.md, "Not met", tells what was tried. The first fits whose text a
   row begins with. */
#define GOAL_GPUS 8
typedef struct goal {
    const char *rows;
    double at[GOAL_GPUS];
    const char *stands;
} goal;
static const char *const goal_gpus[GOAL_GPUS] = {"T4", "A100", "H100", "3060", "4090", "5090", "H200", "B200"};
static const goal goals[] = {
    {"cast f32->bf16 stochastic", {0.9, 0.85, 0.85, 0.9, 1.15, 1.15, 0.95, 0.75}, NULL},
    {"cast f32->f16 stochastic", {0.9, 0.85, 0.85, 0.9, 1.15, 1.15, 0.7, 0.5}, NULL},
    {"cast e4m3->e5m2", {0, 0, 0.7, 0, 0.7, 0.7, 0.6, 0.5}, NULL}, /* FP8 from sm_89 on */
    {"cast f32->e", {0, 0, 1.15, 0, 1.15, 1.15, 1.15, 1.15}, NULL},
    {"cast f16->e", {0, 0, 1.15, 0, 1.15, 1.15, 0.95, 0.8}, NULL},
    {"cast bf16->e", {0, 0, 1.15, 0, 1.15, 1.15, 0.9, 0.75}, NULL},
    {"cast e", {0, 0, 1.15, 0, 1.15, 1.15, 1.0, 0.9}, NULL},
    {"cast ", {1.15, 1.15, 1.15, 1.15, 1.15, 1.15, 1.15, 1.1}, NULL},
    {"inspect ", {1.15, 1.15, 1.15, 1.15, 1.15, 1.15, 1.15, 0.9}, NULL},
    {"all_finite ", {1.15, 1.15, 1.15, 1.15, 1.15, 1.15, 1.15, 1.15}, NULL},
    {"unscale ", {1.15, 1.15, 1.15, 1.15, 1.15, 1.15, 1.15, 0.9}, NULL},
    {"clip ", {1.15, 1.15, 1.15, 1.15, 1.15, 1.15, 1.15, 0.6}, NULL},
    {"column sums ", {1.15, 1.15, 1.15, 1.15, 1.15, 1.15, 1.15, 1.0}, NULL},
    {"ReLU gradient and sums ", {1.15, 1.15, 1.15, 1.15, 1.15, 1.15, 1.15, 1.0}, NULL},
    {"GELU gradient and sums ", {1.15, 0.9, 1.0, 1.15, 1.15, 1.15, 0.8, 0.55}, NULL},
    {"ReLU gradient ", {1.15, 1.15, 1.15, 1.15, 1.15, 1.15, 1.15, 0.9}, NULL},
    {"AdamW f16 counted", {0, 0, 0, 0, 0, 0, 0, 0}, NULL},
    {"AdamW f16 split", {1.15, 1.15, 1.15, 1.15, 1.15, 1.15, 1.1, 0.75}, NULL},
    {"AdamW bf16 Kahan", {1.15, 1.15, 1.15, 1.15, 1.15, 1.15, 1.15, 0.8}, NULL},
    {"AdamW bf16 split8, 8-bit", {0.9, 0.85, 0.85, 1.15, 1.15, 1.15, 0, 0},
        "FMUL, FADD and FFMA of Adam and two codes, Philox, and addresses"},
    {"AdamW bf16 split8", {1.15, 1.15, 1.15, 1.15, 1.15, 1.15, 1.15, 0.8}, NULL},
    {"AdamW bf16 stochastic", {1.15, 1.15, 1.15, 1.15, 1.15, 1.15, 1.15, 0.8}, NULL},
    {"AdamW bf16 moments", {0.9, 0.85, 0.85, 0.9, 1.15, 1.15, 0.65, 0.45}, NULL},
    {"AdamW bf16 8-bit moments", {0.9, 0.85, 0.85, 1.15, 1.15, 1.15, 0, 0},
        "FMUL, FADD and FFMA of Adam and two codes, Philox, and addresses"},
    {"AdamW ", {1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5}, NULL},
    {"Lion ", {1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5}, NULL},
    {"SGD with momentum ", {1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5}, NULL},
    {"SGD bf16 stochastic", {1.15, 0.85, 0.85, 1.15, 1.15, 1.15, 0.6, 0.45}, NULL},
    {"SGD ", {1.15, 1.15, 1.15, 1.15, 1.15, 1.15, 1.15, 1.15}, NULL},
    {"cross-entropy f16, 10 classes", {1.0, 0.5, 0.5, 1.0, 1.15, 1.15, 0.35, 0.25}, NULL},
    {"cross-entropy f32, 10 classes", {1.15, 0.9, 0.9, 1.15, 1.15, 1.15, 0.65, 0.5}, NULL},
    {"cross-entropy f16, 1,000 classes", {1.15, 0.75, 0.75, 1.15, 1.15, 1.15, 0.55, 0.4}, NULL},
    {"cross-entropy f32", {1.15, 1.15, 1.15, 1.15, 1.15, 1.15, 0.95, 0.75}, "a row that is not aligned, on sm_100"},
    {"cross-entropy ", {1.0, 0.55, 0.75, 1.0, 1.15, 1.15, 0.55, 0.4}, NULL},
    {"GELU ", {1.15, 0.9, 1.0, 1.15, 1.15, 1.15, 0.8, 0.55}, NULL},
    {"act. ReLU ", {1.15, 1.15, 1.15, 1.15, 1.15, 1.15, 0, 0}, NULL},
    {"act. tanh gradient ", {1.15, 1.15, 1.15, 1.15, 1.15, 1.15, 0, 0}, NULL},
    {"act. sigmoid gradient ", {1.15, 1.15, 1.15, 1.15, 1.15, 1.15, 0, 0}, NULL},
    {"act. GELU erf f16", {1.15, 0.9, 1.0, 1.15, 1.15, 1.15, 0, 0}, "FFMA, FADD and FMUL of erf"},
    {"act. tanh f16", {1.15, 0.9, 1.0, 1.15, 1.15, 1.15, 0, 0}, "FFMA, FADD and FMUL: an exponential, a polynomial"},
    {"act. ", {1.15, 0.9, 1.0, 1.15, 1.15, 1.15, 0, 0}, NULL},
    {"dropout ", {0.9, 0.85, 0.85, 0.9, 1.15, 1.15, 0.7, 0.5}, NULL},
    {"ordered product f16", {0, 0, 0.35, 0, 0, 0, 0, 0},
        "FFMA, 76 % of all; reads of shared memory; what there is of a slice"},
    {"quantize ", {0, 0, 1.3, 0, 1.15, 1.15, 0.9, 0.6}, NULL}, /* FP8 products from sm_89 on */
};
static const goal *goal_of(const row *r) {
    size_t i;
    for (i = 0; i < sizeof goals / sizeof *goals; i++)
        if (!strncmp(goals[i].rows, r->name, strlen(goals[i].rows))) return &goals[i];
    return NULL;
}
static double wanted_on(const goal *want, const gpu *g) { /* 0: nothing */
    int i;
    for (i = 0; want && i < GOAL_GPUS; i++)
        if (!strcmp(goal_gpus[i], g->name)) return want->at[i];
    return 0;
}
/* 0: on a GPU with this code the bound is below its goal, and nothing says why. */
static int goals_of(const row *r, data_kind data, const double *pipe, double all) {
    const goal *want = goal_of(r);
    int fine_or_said = 1;
    size_t g;
    for (g = 0; g < GPUS && data != ZERO && data != INF; g++) {
        const char *limit = "";
        double share = sass_bound(&gpus[g], pipe, all, r->bytes, &limit), least = wanted_on(want, &gpus[g]);
        if (gpus[g].arch != hcu_sass_arch() || share >= least - 0.005) continue;
        if (want->stands)
            printf("    below its goal on %s: %.2f of %.2f, %s: %s; bench/NOTES.md, \"Not met\"\n", gpus[g].name, share,
                least, limit, want->stands);
        else
            printf("FAIL %s, %s: below its goal on %s, %.2f of %.2f, %s, and nothing says why\n", r->name,
                data_names[data], gpus[g].name, share, least, limit);
        fine_or_said &= want->stands != NULL;
    }
    return fine_or_said;
}

/* ---- the committed counts ---- */

static double recorded(const char *path, int arch, const row *r, data_kind data, double *pipe) {
    return sass_recorded(path, arch, r->name, data_names[data], pipe);
}
static int as_expected(const row *r, data_kind data, double all) {
    double pipe[HCU_PIPES], want = opt.table ? recorded(opt.table, hcu_sass_arch(), r, data, pipe) : all;
    if (want > 0 && all <= 1.03 * want + 0.02) return 1;
    if (want > 0)
        printf("FAIL %s, %s: %.2f instructions per element, %s says %.2f\n", r->name, data_names[data], all, opt.table,
            want);
    else
        printf("FAIL %s, %s: not in %s\n", r->name, data_names[data], opt.table);
    return 0;
}

static work run_on(amp_ctx *ctx, const row *r, data_kind data, size_t n) {
    work w;
    int i;
    memset(&w, 0, sizeof w);
    w.ctx = ctx;
    w.row = r;
    w.n = n;
    w.data = data;
    w.shift = data == SHIFTED;
    r->run(&w);
    for (i = 0; i < w.n_lent; i++)
        (void)amp_free(ctx, w.lent[i].data);
    return w;
}
static void tell(const row *r, data_kind data, int same, const double *pipe, double all) {
    size_t g;
    int p;
    printf("%-27s %-14s %-9s %6.2f ", r->name, data_names[data], same ? "same bits" : "DIFFERENT", all);
    for (p = 0; p < HCU_PIPES; p++)
        if (pipe[p] > 0.005) printf(" %s %.2f", pipe_names[p], pipe[p]);
    printf("\n   ");
    for (g = 0; g < GPUS; g++) {
        const char *limit = "";
        double share = sass_bound(&gpus[g], pipe, all, r->bytes, &limit);
        if (has_code_of(&gpus[g])) printf(" %s %.2f %s;", gpus[g].name, share, limit);
    }
    puts("");
}
static void row_of(amp_ctx *gpu_ctx, amp_ctx *cpu, const row *r, data_kind data) {
    work big = run_on(gpu_ctx, r, data, r->large), want, little;
    double n = (double)(r->large - r->small), pipe[HCU_PIPES], all;
    int p, same, explained = 1;
    if (opt.profile) hcu_sass_profile(r->kernel, (double)r->large / 32, opt.profile);
    if (opt.listing) hcu_sass_listing(r->kernel ? r->kernel : "", (double)r->large / 32);
    want = run_on(cpu, r, data, r->large);
    little = run_on(gpu_ctx, r, data, r->small);
    same = big.out_bytes == want.out_bytes && memcmp(big.out, want.out, big.out_bytes) == 0;
    all = 32.0 * (double)(big.count.issued - little.count.issued) / n;
    for (p = 0; p < HCU_PIPES; p++)
        pipe[p] = 32.0 * ((double)big.count.pipe[p] - (double)little.count.pipe[p]) / n;
    if (!same) printf("FAIL %s, %s: not the bits of the CPU context\n", r->name, data_names[data]);
    if (opt.record) {
        printf("%d\t%s\t%s\t%.2f", hcu_sass_arch(), r->name, data_names[data], all);
        for (p = 0; p < HCU_PIPE_OTHER; p++)
            printf("\t%.2f", pipe[p]);
        puts("");
    } else {
        tell(r, data, same, pipe, all);
        explained = goals_of(r, data, pipe, all);
    }
    if (same && big.count.launches && as_expected(r, data, all) && explained)
        passed++;
    else
        failed++;
    free(big.out);
    free(want.out);
    free(little.out);
}

/* ---- bounds from the committed counts ---- */

/* On this GPU, for the worse of the two kinds of data. Code of 8.6 or 9.0 stands for what is not recorded. */
static double recorded_bound(const gpu *g, const row *r, const char **limit) {
    double worst = INFINITY;
    int d;
    for (d = 0; d < ZERO; d++) {
        double pipe[HCU_PIPES], all = recorded(opt.bounds, g->arch, r, (data_kind)d, pipe), share;
        const char *what = "";
        if (all <= 0) all = recorded(opt.bounds, g->fp64_shared ? 86 : 90, r, (data_kind)d, pipe);
        share = all > 0 ? sass_bound(g, pipe, all, r->bytes, &what) : 0;
        if (share >= worst) continue;
        worst = share;
        *limit = what;
    }
    return worst;
}
static int is_main(const row *r) {
    static const char *const names[] = {"cast f32->f16", "cast f16->f32", "cast f32->bf16", "cast f32->e4m3",
        "inspect f16", "inspect bf16", "all_finite f16", "unscale f16", "AdamW f16", "AdamW bf16 stochastic",
        "AdamW bf16 moments", "SGD f16", "cross-entropy f16", "cross-entropy bf16", "GELU gradient f16",
        "ReLU gradient f16", "column sums f16", "dropout f16"};
    size_t i;
    for (i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i], r->name)) return 1;
    return 0;
}
/* What GPUs reached, beside what their code allows: "H100 0.89". */
static void tell_measured(const row *r) {
    char line[300], device[128], name[64];
    const char *between = "";
    double share;
    FILE *f = fopen("tests/expected/measured.txt", "r");
    while (f && fgets(line, sizeof line, f)) {
        const char *model = device;
        if (sscanf(line, "%127[^#\t]\t%63[^\t]\t%lf", device, name, &share) != 3) continue;
        if (strcmp(name, r->name) != 0) continue;
        if (!strncmp(model, "NVIDIA ", 7)) model += 7;
        printf("%s %.*s %.2f", between, (int)strcspn(model, " "), model, share);
        between = ",";
    }
    if (f) fclose(f);
}
static int bounds(void) {
    size_t i, g;
    printf("| kernel (bytes per element) |");
    for (g = 0; g < GPUS; g++)
        printf(" %s |", gpus[g].name);
    printf(" measured |\n|---|");
    for (g = 0; g <= GPUS; g++)
        printf("---|");
    puts("");
    for (i = 0; i < ROWS; i++) {
        if (opt.main && !is_main(&rows[i])) continue;
        printf("| %s (%g) |", rows[i].name, rows[i].bytes);
        for (g = 0; g < GPUS; g++) {
            const char *limit = "";
            double share = recorded_bound(&gpus[g], &rows[i], &limit);
            if (share <= 0) return fprintf(stderr, "sass: %s: not in %s\n", rows[i].name, opt.bounds), 1;
            if (share >= 2)
                printf(" > 2 |");
            else
                printf(" %.2f%s%s |", share, share < 1.15 ? " " : "", share < 1.15 ? limit : "");
        }
        tell_measured(&rows[i]);
        puts(" |");
    }
    return 0;
}

/* ---- small steps ----
   A step of few parameters takes as long as its longest chain of dependent instructions, from the launch of its first
   kernel to the end of its last, whatever the bandwidth. Each launch counts LAUNCH cycles more. */

enum { LAUNCH = 2000 };

static unsigned long long with_launches(hcu_sass_count c) { return c.cycles + LAUNCH * (unsigned long long)c.launches; }

/* A file with the state of a set of n parameters that has made so many steps, on the CPU. */
static const char *state_file = "amp-test-sass.state";
static void make_state(amp_ctx *cpu, size_t n, long steps) {
    static const row r = {"a state", NULL, AMP_F16, AMP_F16, L_ADAMW, 0, 0, 0, 0, NULL};
    amp_state_desc d = AMP_ZERO;
    amp_step_desc step;
    amp_array g;
    amp_params *p;
    amp_scaler *s;
    work w;
    memset(&w, 0, sizeof w);
    w.ctx = cpu;
    w.row = &r;
    w.n = n;
    p = set_of(&w, &layouts[L_ADAMW], AMP_F16, &step, &g);
    s = scaler(&w);
    while (steps--)
        fine(&w, amp_step(p, s, &step), "amp_step");
    d.params = &p;
    d.n_params = 1;
    fine(&w, amp_state_save(cpu, state_file, &d), "amp_state_save");
    amp_scaler_destroy(s);
    amp_params_destroy(p);
    (void)amp_free(cpu, w.lent[0].data);
}
/* amp_step with clip_norm and a dynamic scale, on FP16 gradients; the second one is counted, or, with a state, the
   first one after it. */
static hcu_sass_count our_step(amp_ctx *ctx, size_t n, int from_state) {
    static const row r = {"a small step", NULL, AMP_F16, AMP_F16, L_ADAMW, 0, 0, 0, 0, NULL};
    amp_state_desc d = AMP_ZERO;
    amp_step_desc step;
    amp_array g;
    amp_params *p;
    amp_scaler *s;
    work w;
    memset(&w, 0, sizeof w);
    w.ctx = ctx;
    w.row = &r;
    w.n = n;
    p = set_of(&w, &layouts[L_ADAMW], AMP_F16, &step, &g);
    s = scaler(&w);
    step.clip_norm = 1;
    d.params = &p;
    d.n_params = 1;
    if (from_state)
        fine(&w, amp_state_load(ctx, state_file, &d), "amp_state_load");
    else
        fine(&w, amp_step(p, s, &step), "amp_step");
    begin(&w);
    fine(&w, amp_step(p, s, &step), "amp_step");
    end(&w);
    amp_scaler_destroy(s);
    amp_params_destroy(p);
    (void)amp_free(ctx, w.lent[0].data);
    return w.count;
}
static hcu_sass_count naive(amp_ctx *ctx, size_t n) {
    static const row r = {"the naive tail", NULL, AMP_F16, AMP_F16, 0, 0, 0, 0, 0, NULL};
    naive_state first = {1024, 0, 1, 1, 0};
    naive_arrays a;
    amp_array state[2];
    work w;
    int i;
    memset(&w, 0, sizeof w);
    w.ctx = ctx;
    w.row = &r;
    w.n = n;
    a.g = random_array(&w, AMP_F16, AMP_F16, n, 100.0f, 4).data;
    a.w = (float *)random_array(&w, AMP_F32, AMP_F32, n, 0.05f, 9).data;
    a.m = (float *)random_array(&w, AMP_F32, AMP_F32, n, 0.0f, 9).data;
    a.v = (float *)random_array(&w, AMP_F32, AMP_F32, n, 0.0f, 9).data;
    a.u = (float *)lend(&w, AMP_F32, n, NULL).data;
    a.copy = lend(&w, AMP_F16, n, NULL).data;
    for (i = 0; i < 2; i++)
        state[i] = lend(&w, AMP_F32, sizeof first / sizeof(float), &first);
    begin(&w);
    if (!naive_step(&a, n, 1e-3f, 1.0f, (naive_state *)state[0].data, (naive_state *)state[1].data)) failed++;
    end(&w);
    for (i = 0; i < w.n_lent; i++)
        (void)amp_free(ctx, w.lent[i].data);
    return w.count;
}
/* The first of the GPUs with this code that is in the table stands for them. */
static void chain(void) {
    static const size_t size[] = {8, 262144, 1048576};
    const gpu *g = gpus;
    static const long steps[] = {10, 1000, 100000};
    amp_ctx *ctx, *cpu;
    size_t i;
    while (g->arch != hcu_sass_arch())
        g++;
    hcu_set_sms(0, g->sms);
    if (amp_cuda_create(&ctx, NULL) != AMP_OK || amp_cpu_create(&cpu, NULL) != AMP_OK) exit(1);
    hcu_sass_model(g->sms);
    printf("sm_%d, %s: cycles of a step at least: the longest chain of dependent instructions, and %d for each launch "
           "(counted, not timed)\n",
        g->arch, g->name, LAUNCH);
    for (i = 0; i < sizeof size / sizeof *size; i++) {
        hcu_sass_count ours = our_step(ctx, size[i], 0), other = naive(ctx, size[i]);
        printf("%8lu parameters: amp_step %6llu (%ld launches), naive %6llu (%ld launches), ratio %.2f\n",
            (unsigned long)size[i], with_launches(ours), ours.launches, with_launches(other), other.launches,
            (double)with_launches(ours) / (double)with_launches(other));
        if (size[i] >= 262144 && with_launches(ours) > with_launches(other))
            puts("    above its goal, 1.0: bench/NOTES.md, \"A small step\"");
        if (!ours.launches || !other.launches) failed++;
        passed++;
    }
    for (i = 0; i < sizeof steps / sizeof *steps; i++) {
        hcu_sass_count whole, tail;
        make_state(cpu, 8, steps[i] - 1);
        whole = our_step(ctx, 8, 1);
        tail = hcu_sass_counts("ampi_k_inspect");
        printf(
            "step %6ld of 8 parameters: %llu cycles; in the inspection %llu instructions that depend on one another, "
            "%llu of them FP64; a warp issues at most %llu, %llu\n",
            steps[i], with_launches(whole), tail.chain, tail.chain_fp64, tail.longest, tail.longest_fp64);
        if (tail.chain > 400 || tail.chain_fp64 > 80)
            puts("    above its goal, 400 and 80: bench/NOTES.md, \"A small step\"");
    }
    (void)remove(state_file);
    amp_ctx_destroy(ctx);
    amp_ctx_destroy(cpu);
}

static int row_is_asked_for(const char *name) { /* it contains a piece of opt.row, which | divides */
    const char *piece = opt.row;
    char text[64];
    while (piece) {
        size_t n = strcspn(piece, "|");
        snprintf(text, sizeof text, "%.*s", (int)n, piece);
        if (strstr(name, text)) return 1;
        piece = piece[n] ? piece + n + 1 : NULL;
    }
    return !opt.row;
}

/* ---- reads under way ----
   A GPU hides the time that memory takes by having much asked for at once: bandwidth times latency, 16 KB for an SM of
   an H100 at 3.35 TB/s and 600 ns. A warp's share is counted from the machine code: bytes of loads for which no
   instruction has waited yet, as scoreboards do; the most of them at a time, for as many warps as an SM holds. */
enum { READS_KB = 32, MILLION = 1 << 20 };
static int reads_are_wanted(const char *row) { /* so many: small lists of arrays that are only looked at */
    static const char *const of[] = {"all_finite ", "unscale ", "histogram "};
    size_t i;
    for (i = 0; i < sizeof of / sizeof *of; i++)
        if (!strncmp(row, of[i], strlen(of[i]))) return 1;
    return 0;
}
static hcu_sass_count count_of(const row *r, size_t n, int sms, int grids) {
    amp_ctx *ctx;
    work w;
    hcu_set_sms(0, sms);
    hcu_sass_grids(grids);
    if (amp_cuda_create(&ctx, NULL) != AMP_OK) exit(1);
    w = run_on(ctx, r, NORMAL, n);
    free(w.out);
    amp_ctx_destroy(ctx);
    return w.count;
}
static int reads(void) {
    const gpu *g = gpus;
    size_t i;
    while (g->arch != hcu_sass_arch())
        g++;
    hcu_set_occupancy(1);
    printf("| kernel, sm_%d | KB under way on an SM | SMs of %d with work at 1 M elements |\n|---|---|---|\n", g->arch,
        g->sms);
    for (i = 0; i < ROWS; i++) {
        const row *r = &rows[i];
        double kb;
        size_t busy;
        if (!row_is_asked_for(r->name)) continue;
        kb = (double)count_of(r, r->large, 1, 0).under_way / 1024;
        busy = count_of(r, MILLION, g->sms, 1).grid;
        if (busy > (size_t)g->sms) busy = (size_t)g->sms;
        printf("| %s | %.0f | %lu |\n", r->name, kb, (unsigned long)busy);
        if (!reads_are_wanted(r->name) || (kb >= READS_KB && busy == (size_t)g->sms)) continue;
        fprintf(stderr, "FAIL %s: %.0f KB under way, %d are wanted, and %lu of %d SMs\n", r->name, kb, READS_KB,
            (unsigned long)busy, g->sms);
        failed++;
    }
    return failed != 0;
}

int main(int argc, char **argv) {
    amp_ctx *gpu_ctx, *cpu;
    size_t i;
    int k, d, arch;
    for (k = 1; k < argc; k++) {
        const char *value = k + 1 < argc ? argv[k + 1] : "";
        if (!strcmp(argv[k], "--code"))
            opt.code = value, k++;
        else if (!strcmp(argv[k], "--archs"))
            opt.archs = value, k++;
        else if (!strcmp(argv[k], "--row"))
            opt.row = value, k++;
        else if (!strcmp(argv[k], "--data"))
            opt.data = value, k++;
        else if (!strcmp(argv[k], "--profile"))
            opt.profile = atoi(value), k++;
        else if (!strcmp(argv[k], "--table"))
            opt.table = value, k++;
        else if (!strcmp(argv[k], "--listing"))
            opt.listing = 1;
        else if (!strcmp(argv[k], "--bounds"))
            opt.bounds = value, k++;
        else if (!strcmp(argv[k], "--main"))
            opt.main = 1;
        else if (!strcmp(argv[k], "--thin"))
            opt.thin = 1;
        else if (!strcmp(argv[k], "--chain"))
            opt.chain = 1;
        else if (!strcmp(argv[k], "--reads"))
            opt.reads = 1;
        else if (!strcmp(argv[k], "--quick"))
            opt.quick = 1;
        else if (!strcmp(argv[k], "--record"))
            opt.record = 1;
        else
            return fprintf(stderr, "sass: what is %s?\n", argv[k]), 2;
    }
    if (opt.bounds) return bounds();
    if (!opt.code || hcu_sass_load(opt.code) < 1)
        return fprintf(stderr, "sass: --code NAME of NAME.cubin and NAME.sass\n"), 2;
    arch = hcu_sass_arch();
    hcu_sass_partial(opt.thin);
    hcu_set_protect(0);
    hcu_set_arch(0, arch / 10, arch % 10);
    if (opt.chain) {
        chain();
        printf("%d passed, %d failed, 0 skipped\n", passed, failed);
        return failed != 0;
    }
    if (opt.reads) return reads();
    hcu_set_sms(0, 1);
    hcu_set_occupancy(1); /* then a block has some 6,000 elements, as one of 64 M has on an H100 */
    if (amp_cuda_create(&gpu_ctx, NULL) != AMP_OK || amp_cpu_create(&cpu, NULL) != AMP_OK) return 1;
    if (!opt.record)
        printf(
            "sm_%d: instructions per element by pipe; at most this share of nominal bandwidth (counted, not timed)\n",
            arch);
    for (i = 0; i < ROWS; i++)
        for (d = 0; d < (opt.quick ? ZERO : DATA_KINDS); d++)
            if (row_is_asked_for(rows[i].name) && (!opt.data || !strcmp(data_names[d], opt.data)))
                row_of(gpu_ctx, cpu, &rows[i], (data_kind)d);
    amp_ctx_destroy(gpu_ctx);
    amp_ctx_destroy(cpu);
    if (passed + failed == 0) return fprintf(stderr, "sass: no such row\n"), 1;
    if (!opt.record) printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed != 0;
}
