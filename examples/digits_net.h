/* digits_net.h - what ranks_mpi.c, ranks_nccl.cu and offload.cu train: a chain of linear layers with ReLU between them,
 * on the digits of digits_data.h. Each layer is one parameter, its weights and then its bias, so that one call copies,
 * adds up or divides among ranks what belongs to a layer. The caller makes the parameter set: where gradients, masters
 * and moments are is what these programs are about.
 */
#ifndef DIGITS_NET_H
#define DIGITS_NET_H

#include "digits_load.h"

#include <math.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { NET_LAYERS = 8, CLASSES = 10 };

typedef struct shape {
    size_t layers; /* at most NET_LAYERS */
    size_t pixels; /* of an image */
    size_t width;  /* of the hidden layers */
    size_t rows;   /* images per call */
} shape;

static size_t layer_in(const shape *s, size_t i) { return i == 0 ? s->pixels : s->width; }
static size_t layer_out(const shape *s, size_t i) { return i == s->layers - 1 ? (size_t)CLASSES : s->width; }
static size_t layer_count(const shape *s, size_t i) { return (layer_in(s, i) + 1) * layer_out(s, i); }

PROGRAM_FN size_t all_weights(const shape *s) {
    size_t n = 0, i;
    for (i = 0; i < s->layers; i++)
        n += layer_count(s, i);
    return n;
}
/* Layer i's first weights: uniform in +-sqrt(6 / inputs), biases 0. For as many elements as the caller asks, from the
 * first. */
static void layer_init(float *w, const shape *s, size_t i, uint64_t seed) {
    size_t n = layer_in(s, i) * layer_out(s, i), k;
    double bound = sqrt(6.0 / (double)layer_in(s, i));
    memset(w, 0, layer_count(s, i) * sizeof *w);
    for (k = 0; k < n; k++)
        w[k] = (float)(bound * (2.0 * uniform(seed, i, k) - 1.0));
}

/* The built-in digits, or MNIST and the like from a folder of IDX files; a batch has `parts` times s->rows images. */
static void check_labels(const images *m) {
    size_t i;
    for (i = 0; i < m->count; i++)
        if (m->label[i] < 0 || m->label[i] >= CLASSES)
            fail("label %d of image %lu: 0 to %d are known here", (int)m->label[i], (unsigned long)i, CLASSES - 1);
}
static void load_data(const char *folder, shape *s, size_t parts, images *train, images *test) {
    if (folder) {
        *train = load_idx(folder, "train-images-idx3-ubyte", "train-labels-idx1-ubyte");
        *test = load_idx(folder, "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte");
    } else {
        load_builtin(train, test);
    }
    s->pixels = train->pixels;
    if (test->pixels != train->pixels)
        fail("the images have %lu pixels to train on, and %lu to test with", (unsigned long)train->pixels,
            (unsigned long)test->pixels);
    check_labels(train);
    check_labels(test);
    if (s->layers > NET_LAYERS) fail("--layers %lu: at most %d", (unsigned long)s->layers, NET_LAYERS);
    if (s->rows > train->count / parts || s->rows > test->count)
        fail("--rows %lu: a batch would have more images than there are", (unsigned long)s->rows);
}

/* ---- data: all images in context memory, in the network's format; a batch is a place among them ---- */

typedef struct digits {
    size_t count;
    amp_array x; /* [count, pixels] */
    int32_t *label;
} digits;

static digits digits_to(amp_ctx *ctx, const images *m, amp_dtype type) {
    digits d;
    void *staging;
    size_t n = m->count * m->pixels;
    d.count = m->count;
    must(ctx, amp_alloc(ctx, &staging, n * sizeof(float), "staging"));
    must(ctx, amp_alloc(ctx, &d.x.data, n * amp_dtype_size(type), "data"));
    must(ctx, amp_alloc(ctx, (void **)&d.label, m->count * sizeof(int32_t), "data"));
    d.x = amp_arrn(d.x.data, type, n);
    must(ctx, amp_copy(ctx, staging, m->x, n * sizeof(float)));
    must(ctx, amp_cast(ctx, d.x, amp_arr(staging, AMP_F32), n, NULL));
    must(ctx, amp_copy(ctx, d.label, m->label, m->count * sizeof(int32_t)));
    must(ctx, amp_free(ctx, staging));
    return d;
}
static void digits_free(amp_ctx *ctx, digits *d) {
    must(ctx, amp_free(ctx, d->x.data));
    must(ctx, amp_free(ctx, d->label));
}

/* ---- the network ---- */

typedef struct net {
    amp_ctx *ctx;
    shape s;
    amp_linear_desc layer[NET_LAYERS]; /* filled once, used forward and backward */
    amp_xent_desc xent;
    void *memory[16 * NET_LAYERS]; /* from amp_alloc */
    int n_memory;
} net;

static void *net_alloc(net *n, size_t bytes, const char *label) { /* freed with the network */
    void *p;
    must(n->ctx, amp_alloc(n->ctx, &p, bytes, label));
    n->memory[n->n_memory++] = p;
    return p;
}
static amp_array net_rows(net *n, amp_dtype type, size_t cols) {
    return amp_arrn(net_alloc(n, n->s.rows * cols * amp_dtype_size(type), "activations"), type, n->s.rows * cols);
}
static amp_array from_element(amp_array a, size_t element) { /* the rest of a */
    a.data = (char *)a.data + element * amp_dtype_size(a.dtype);
    a.count -= element;
    return a;
}

/* model[i] and grad[i]: of layer i, layer_count elements. scaler: of this context, or NULL. */
static void net_create(
    net *n, amp_ctx *ctx, const shape *s, const amp_array *model, const amp_array *grad, amp_scaler *scaler) {
    size_t i, last = s->layers - 1;
    memset(n, 0, sizeof *n);
    n->ctx = ctx;
    n->s = *s;
    for (i = 0; i <= last; i++) {
        amp_linear_desc *l = &n->layer[i];
        size_t weights = layer_in(s, i) * layer_out(s, i);
        l->rows = s->rows;
        l->in = layer_in(s, i);
        l->out = layer_out(s, i);
        l->act = i == last ? AMP_ACT_NONE : AMP_RELU;
        l->y = net_rows(n, model[i].dtype, l->out);
        l->dy = net_rows(n, model[i].dtype, l->out);
        if (i) l->x = n->layer[i - 1].y;
        if (i) l->dx = n->layer[i - 1].dy;
        l->w = model[i];
        l->w.count = weights;
        l->dw = grad[i];
        l->dw.count = weights;
        l->bias = from_element(model[i], weights);
        l->dbias = from_element(grad[i], weights);
    }
    n->xent.rows = s->rows;
    n->xent.classes = CLASSES;
    n->xent.logits = n->layer[last].y;
    n->xent.dlogits = n->layer[last].dy;
    n->xent.row_loss = (float *)net_alloc(n, s->rows * sizeof(float), "activations");
    n->xent.loss = (float *)net_alloc(n, sizeof(float), "activations");
    n->xent.scaler = scaler;
}
static void net_destroy(net *n) {
    while (n->n_memory)
        must(n->ctx, amp_free(n->ctx, n->memory[--n->n_memory]));
}

static void net_input(
    net *n, const digits *d, size_t first_row) { /* no copy: the first layer reads them where they are */
    n->layer[0].x = from_element(d->x, first_row * n->s.pixels);
    n->xent.labels = d->label + first_row;
}
static void net_forward_layer(net *n, size_t i) { must(n->ctx, amp_linear_forward(n->ctx, &n->layer[i])); }
static void net_backward_layer(net *n, size_t i) { must(n->ctx, amp_linear_backward(n->ctx, &n->layer[i])); }
static void net_loss(net *n) { must(n->ctx, amp_softmax_cross_entropy(n->ctx, &n->xent)); }
static float net_read_loss(net *n) { /* of the last batch; waits */
    float loss;
    must(n->ctx, amp_copy(n->ctx, &loss, n->xent.loss, sizeof loss));
    return loss;
}
static int right_label(const void *logits, amp_dtype type, size_t row, int32_t label) {
    int32_t best = 0, c;
    for (c = 1; c < CLASSES; c++)
        if (amp_load(logits, type, row * CLASSES + (size_t)c) > amp_load(logits, type, row * CLASSES + (size_t)best))
            best = c;
    return best == label;
}
/* Share of images that get their label; the last ones are left out if they do not fill a batch. */
static double net_accuracy(net *n, const digits *d, const int32_t *labels) {
    amp_array y = n->xent.logits;
    void *logits = allocate(y.count, amp_dtype_size(y.dtype));
    size_t at, r, i, right = 0, seen = 0;
    for (at = 0; at + n->s.rows <= d->count; at += n->s.rows) {
        net_input(n, d, at);
        for (i = 0; i < n->s.layers; i++)
            net_forward_layer(n, i);
        must(n->ctx, amp_copy(n->ctx, logits, y.data, y.count * amp_dtype_size(y.dtype)));
        for (r = 0; r < n->s.rows; r++)
            right += (size_t)right_label(logits, y.dtype, r, labels[at + r]);
        seen += n->s.rows;
    }
    free(logits);
    return (double)right / (double)seen;
}

/* ---- equal bits ---- */

#define HASH_START 0xcbf29ce484222325u /* FNV-1a, by words of 8 bytes */
PROGRAM_FN uint64_t hash_more(uint64_t h, const void *data, size_t bytes) {
    const char *at = (const char *)data;
    uint64_t word;
    for (; bytes; bytes -= bytes < 8 ? bytes : 8, at += 8) {
        word = 0;
        memcpy(&word, at, bytes < 8 ? bytes : 8);
        h = (h ^ word) * 0x100000001b3u;
    }
    return h;
}
PROGRAM_FN uint64_t file_hash(const char *path) {
    uint64_t h = HASH_START;
    char part[4096];
    size_t n;
    FILE *f = fopen(path, "rb");
    if (!f) fail("%s: %s", path, strerror(errno));
    while ((n = fread(part, 1, sizeof part, f)) > 0)
        h = hash_more(h, part, n);
    if (ferror(f) | fclose(f)) fail("%s: could not be read", path);
    return h;
}

/* ---- options ---- */

typedef enum option_kind { OPTION_FLAG, OPTION_COUNT, OPTION_REAL, OPTION_TEXT } option_kind;
typedef struct option {
    const char *name;
    option_kind kind;
    void *to; /* int, size_t, float > 0, const char *: what is there is the default */
    const char *help;
} option;

static void option_value(const option *o, const char *text) {
    if (o->kind == OPTION_TEXT)
        *(const char **)o->to = option_text(o->name, text);
    else if (o->kind == OPTION_REAL)
        *(float *)o->to = (float)option_number(o->name, text, 1e-30, 1e9, 0);
    else
        *(size_t *)o->to = (size_t)option_number(o->name, text, 1, 1e9, 1);
}
static int parse_options(int argc, char **argv, const option *options, size_t n, const char *usage) {
    static const char *const values[] = {"", " N", " X", " NAME"};
    size_t k;
    int i;
    for (i = 1; i < argc; i++) {
        for (k = 0; k < n && strcmp(argv[i], options[k].name) != 0; k++)
            ;
        if (!strcmp(argv[i], "--help")) {
            puts(usage);
            for (k = 0; k < n; k++)
                printf("  %s%-*s %s\n", options[k].name, (int)(14 - strlen(options[k].name)), values[options[k].kind],
                    options[k].help);
            return 0;
        }
        if (k == n) option_unknown(argv[i]);
        if (options[k].kind == OPTION_FLAG)
            *(int *)options[k].to = 1;
        else {
            option_value(&options[k], argv[i + 1]);
            i++;
        }
    }
    return 1;
}

PROGRAM_FN void one_of(const char *option, const char *text, const char *a, const char *b) { /* or NULL: not given */
    if (text && strcmp(text, a) && strcmp(text, b)) fail("%s %s: %s or %s is needed", option, text, a, b);
}

/* ---- time, memory, progress ---- */

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static double bytes_of(const amp_ctx *ctx, const char *label) { /* a row of the ledger; 0 if there is none */
    amp_ledger_row row = AMP_ZERO;
    (void)amp_ledger(ctx, &row, 1, label);
    return (double)row.bytes;
}
/* On stderr, so that tables stay whole; in place on a terminal. */
PROGRAM_FN void show_progress(const char *what, double start, size_t step, size_t steps, float loss, float scale) {
    static double shown;
    double now = seconds(), left = (now - start) / (double)step * (double)(steps - step);
    int terminal = isatty(2) != 0, due = step % (steps / 4 + 1) == 0;
    if (terminal) due = now - shown >= 0.2;
    if (!due && step != steps) return;
    shown = now;
    fprintf(stderr, "%s%-10s step %5lu/%lu  loss %-7.4f scale 2^%-3.0f %5.0f s left%s", terminal ? "\r" : "", what,
        (unsigned long)step, (unsigned long)steps, (double)loss, log2((double)scale), left,
        terminal && step != steps ? "  " : "\n");
}

#endif
