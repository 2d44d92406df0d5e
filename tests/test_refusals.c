/* test_refusals.c - a verb that is refused changes nothing.  Guards: the checks of every >>front-... section.
   The walk takes a good call of each verb, spoils its arguments one word at a time, and compares all bytes. */
#include "set.h"

#include <stddef.h>

/* ---- the walk ---- */

#define PIECE    512u /* bytes of an array of the pool: 128 floats */
#define N_PIECES 14u
#define BESIDE   0x100000u /* bytes before and after the arrays, for numbers that happen to be taken */

typedef struct world {   /* all that a verb could write */
    unsigned char *pool; /* context memory */
    amp_params *p;
    amp_scaler *s;
    amp_fp8 *fp8;
    size_t n[2];
} world;

typedef struct verb {
    const char *name;
    size_t bytes; /* of the arguments */
    void (*fill)(const world *w, void *args);
    amp_status (*call)(t_run *t, const world *w, const void *args);
    unsigned fixed[12]; /* offsets of pointers that stay NULL, ended by 0 */
} verb;

static void *piece(const world *w, unsigned i) { return w->pool + i * PIECE; }
static amp_array operand(const world *w, unsigned i, amp_dtype t, size_t count) {
    return amp_arrn(piece(w, i), t, count);
}

static void gemm_fill(const world *w, void *args) {
    amp_gemm_desc *g = (amp_gemm_desc *)args;
    g->m = 5;
    g->n = 7;
    g->k = 6;
    g->a = operand(w, 0, AMP_F32, 30);
    g->b = operand(w, 1, AMP_F32, 42);
    g->c = operand(w, 2, AMP_F32, 35);
    g->d = operand(w, 3, AMP_F32, 35);
    g->bias = operand(w, 4, AMP_F32, 7);
    g->aux = operand(w, 5, AMP_F32, 35);
    g->dbias = operand(w, 6, AMP_F32, 7);
    g->act = AMP_RELU;
    g->beta = amp_opt(1.0f);
}
static amp_status gemm_call(t_run *t, const world *w, const void *args) {
    (void)w;
    return amp_gemm(t->ctx, (const amp_gemm_desc *)args);
}
static void linear_fill(const world *w, void *args) {
    amp_linear_desc *l = (amp_linear_desc *)args;
    l->rows = 5;
    l->in = 6;
    l->out = 7;
    l->act = AMP_GELU;
    l->x = operand(w, 0, AMP_F32, 30);
    l->w = operand(w, 1, AMP_F32, 42);
    l->bias = operand(w, 2, AMP_F32, 7);
    l->y = operand(w, 3, AMP_F32, 35);
    l->aux = operand(w, 4, AMP_F32, 35);
    l->dy = operand(w, 5, AMP_F32, 35);
    l->dx = operand(w, 6, AMP_F32, 30);
    l->dw = operand(w, 7, AMP_F32, 42);
    l->dbias = operand(w, 8, AMP_F32, 7);
    l->accumulate = 1;
}
static amp_status forward_call(t_run *t, const world *w, const void *args) {
    (void)w;
    return amp_linear_forward(t->ctx, (const amp_linear_desc *)args);
}
static amp_status backward_call(t_run *t, const world *w, const void *args) {
    (void)w;
    return amp_linear_backward(t->ctx, (const amp_linear_desc *)args);
}
static void xent_fill(const world *w, void *args) {
    amp_xent_desc *x = (amp_xent_desc *)args;
    x->rows = 5;
    x->classes = 7;
    x->logits = operand(w, 0, AMP_F32, 35);
    x->dlogits = operand(w, 1, AMP_F32, 35);
    x->labels = (const int32_t *)piece(w, 13);
    x->row_loss = (float *)piece(w, 3);
    x->loss = (float *)piece(w, 4);
}
static amp_status xent_call(t_run *t, const world *w, const void *args) {
    (void)w;
    return amp_softmax_cross_entropy(t->ctx, (const amp_xent_desc *)args);
}
static void dropout_fill(const world *w, void *args) {
    amp_dropout_desc *d = (amp_dropout_desc *)args;
    d->p = 0.5f;
    d->count = 50;
    d->x = operand(w, 0, AMP_F32, 50);
    d->y = operand(w, 1, AMP_F16, 50);
}
static amp_status dropout_call(t_run *t, const world *w, const void *args) {
    (void)w;
    return amp_dropout(t->ctx, (const amp_dropout_desc *)args);
}
typedef struct cast_args {
    amp_array dst, src;
    size_t count;
    amp_cast_desc d;
} cast_args;
static void cast_fill(const world *w, void *args) {
    cast_args *c = (cast_args *)args;
    c->dst = operand(w, 0, AMP_F16, 60);
    c->src = operand(w, 1, AMP_F32, 60);
    c->count = 60;
}
static amp_status cast_call(t_run *t, const world *w, const void *args) {
    const cast_args *c = (const cast_args *)args;
    (void)w;
    return amp_cast(t->ctx, c->dst, c->src, c->count, &c->d);
}
typedef struct lists { amp_array dst[3], src[3]; } lists;
static void lists_fill(const world *w, void *args) {
    lists *l = (lists *)args;
    unsigned i;
    for (i = 0; i < 3; i++) {
        l->dst[i] = operand(w, i, AMP_F32, 20);
        l->src[i] = operand(w, 3 + i, i == 1 ? AMP_F16 : AMP_F32, 20);
    }
}
static amp_status unscale_call(t_run *t, const world *w, const void *args) {
    const lists *l = (const lists *)args;
    (void)t;
    return amp_unscale(w->s, l->dst, NULL, l->src, 3);
}
static amp_status finite_call(t_run *t, const world *w, const void *args) {
    amp_finite_report r;
    (void)w;
    return amp_all_finite(t->ctx, &r, ((const lists *)args)->src, 3);
}
static amp_status histogram_call(t_run *t, const world *w, const void *args) {
    amp_histogram h;
    (void)w;
    return amp_histogram_count(t->ctx, &h, ((const lists *)args)->src, 3);
}
static amp_status grads_to_call(t_run *t, const world *w, const void *args) {
    (void)t;
    return amp_params_grads_to(w->p, ((const lists *)args)->dst, 2);
}
static void step_fill(const world *w, void *args) {
    amp_step_desc *d = (amp_step_desc *)args;
    (void)w;
    d->lr = 0.01f;
    d->weight_decay = 0.1f;
    d->momentum = 0.9f;
    d->clip_norm = 1.0f;
}
static amp_status step_call(t_run *t, const world *w, const void *args) {
    (void)t;
    return amp_step(w->p, NULL, (const amp_step_desc *)args);
}
static amp_status inspect_call(t_run *t, const world *w, const void *args) {
    (void)t;
    return amp_inspect(w->p, NULL, (const amp_step_desc *)args);
}
typedef struct clip_args { float norm, value; } clip_args;
static void clip_fill(const world *w, void *args) {
    (void)w;
    ((clip_args *)args)->norm = 0.5f;
}
static amp_status clip_call(t_run *t, const world *w, const void *args) {
    const clip_args *c = (const clip_args *)args;
    (void)t;
    return amp_clip(w->p, NULL, c->norm, c->value);
}
typedef struct quantize_args {
    amp_array dst, dst_t, src;
    size_t i, rows, cols;
    uint32_t keep, pad;
} quantize_args;
static void quantize_fill(const world *w, void *args) {
    quantize_args *q = (quantize_args *)args;
    q->dst = operand(w, 0, AMP_F8E4M3, 30);
    q->dst_t = operand(w, 1, AMP_F8E4M3, 30);
    q->src = operand(w, 2, AMP_F32, 30);
    q->i = 1;
    q->rows = 5;
    q->cols = 6;
}
static amp_status quantize_call(t_run *t, const world *w, const void *args) {
    const quantize_args *q = (const quantize_args *)args;
    (void)t;
    return amp_quantize(w->fp8, q->i, q->dst, q->dst_t, q->src, q->rows, q->cols, q->keep);
}
typedef struct sums_args {
    amp_array dst, src;
    size_t rows, cols, ld;
    uint32_t accumulate, pad;
} sums_args;
static void sums_fill(const world *w, void *args) {
    sums_args *s = (sums_args *)args;
    s->dst = operand(w, 0, AMP_F32, 6);
    s->src = operand(w, 1, AMP_F16, 34);
    s->rows = 5;
    s->cols = 6;
    s->ld = 7;
}
static amp_status sums_call(t_run *t, const world *w, const void *args) {
    const sums_args *s = (const sums_args *)args;
    (void)w;
    return amp_column_sums(t->ctx, s->dst, s->src, s->rows, s->cols, s->ld, s->accumulate);
}
static void activation_fill(const world *w, void *args) {
    amp_activation_desc *d = (amp_activation_desc *)args;
    d->act = AMP_TANH;
    d->count = 30;
    d->y = operand(w, 0, AMP_F16, 30);
    d->dy = operand(w, 1, AMP_F32, 30);
    d->dx = operand(w, 2, AMP_F32, 30);
}
static amp_status activation_call(t_run *t, const world *w, const void *args) {
    (void)w;
    return amp_activation(t->ctx, (const amp_activation_desc *)args);
}
static void configure_fill(const world *w, void *args) {
    (void)w;
    ((amp_scaler_desc *)args)->growth_interval = 5;
}
static amp_status configure_call(t_run *t, const world *w, const void *args) {
    (void)t;
    return amp_scaler_configure(w->s, (const amp_scaler_desc *)args);
}

#define AT(type, field) (unsigned)offsetof(type, field)
/* the counts of lists are believed: see counts_too_large */
#define COUNT(i)        ((unsigned)sizeof(amp_array) * i + AT(amp_array, count))
#define COUNTS          {COUNT(0), COUNT(1), COUNT(2), COUNT(3), COUNT(4), COUNT(5)}
static const verb verbs[] = {
    {"amp_gemm", sizeof(amp_gemm_desc), gemm_fill, gemm_call,
        {AT(amp_gemm_desc, alpha_ptr), AT(amp_gemm_desc, beta_ptr), AT(amp_gemm_desc, scale_a),
            AT(amp_gemm_desc, scale_b), AT(amp_gemm_desc, scale_d), AT(amp_gemm_desc, amax_d),
            AT(amp_gemm_desc, d_dtype)}},
    {"amp_linear_forward", sizeof(amp_linear_desc), linear_fill, forward_call,
        {AT(amp_linear_desc, record), AT(amp_linear_desc, from), AT(amp_linear_desc, before),
            AT(amp_linear_desc, after), AT(amp_linear_desc, fp8), AT(amp_linear_desc, scratch)}},
    {"amp_linear_backward", sizeof(amp_linear_desc), linear_fill, backward_call,
        {AT(amp_linear_desc, record), AT(amp_linear_desc, from), AT(amp_linear_desc, before),
            AT(amp_linear_desc, after), AT(amp_linear_desc, fp8), AT(amp_linear_desc, scratch)}},
    {"amp_softmax_cross_entropy", sizeof(amp_xent_desc), xent_fill, xent_call,
        {AT(amp_xent_desc, scaler), AT(amp_xent_desc, from)}},
    {"amp_dropout", sizeof(amp_dropout_desc), dropout_fill, dropout_call, {0}},
    {"amp_cast", sizeof(cast_args), cast_fill, cast_call, {0}},
    {"amp_unscale", sizeof(lists), lists_fill, unscale_call, COUNTS},
    {"amp_all_finite", sizeof(lists), lists_fill, finite_call, COUNTS},
    {"amp_histogram_count", sizeof(lists), lists_fill, histogram_call, COUNTS},
    {"amp_params_grads_to", sizeof(lists), lists_fill, grads_to_call, COUNTS},
    {"amp_step", sizeof(amp_step_desc), step_fill, step_call,
        {AT(amp_step_desc, lr_ptr), AT(amp_step_desc, groups), AT(amp_step_desc, reduce_grads_fn),
            AT(amp_step_desc, reduce_totals_fn), AT(amp_step_desc, user)}},
    {"amp_inspect", sizeof(amp_step_desc), step_fill, inspect_call,
        {AT(amp_step_desc, lr_ptr), AT(amp_step_desc, groups), AT(amp_step_desc, reduce_grads_fn),
            AT(amp_step_desc, reduce_totals_fn), AT(amp_step_desc, user)}},
    {"amp_clip", sizeof(clip_args), clip_fill, clip_call, {0}},
    {"amp_quantize", sizeof(quantize_args), quantize_fill, quantize_call, {0}},
    {"amp_column_sums", sizeof(sums_args), sums_fill, sums_call, {0}},
    {"amp_activation", sizeof(amp_activation_desc), activation_fill, activation_call, {0}},
    {"amp_scaler_configure", sizeof(amp_scaler_desc), configure_fill, configure_call, {0}},
};

/* Two parameters, weights, model copies and gradients in the pool. */
static void world_new(t_run *t, world *w) {
    unsigned char *bytes = (unsigned char *)t_host(t, N_PIECES * PIECE + 2 * BESIDE);
    int32_t labels[PIECE / 4];
    amp_scaler_desc d = AMP_ZERO;
    amp_fp8_desc delayed = AMP_ZERO;
    size_t i;
    memset(w, 0, sizeof *w);
    memset(bytes, 0, N_PIECES * PIECE + 2 * BESIDE);
    for (i = 0; i < N_PIECES * PIECE / 4; i++)
        amp_store(bytes + BESIDE, AMP_F32, i, t_real(t));
    for (i = 0; i < PIECE / 4; i++)
        labels[i] = (int32_t)(i % 7);
    memcpy(bytes + BESIDE + 13 * PIECE, labels, sizeof labels);
    w->pool = (unsigned char *)t_put(t, bytes, N_PIECES * PIECE + 2 * BESIDE) + BESIDE;
    w->n[0] = 20;
    w->n[1] = 20;
    w->p = set_new(t, AMP_F16, AMP_F32, w->n, 2);
    set_grad(t, w->p, 0, 20, 0.5f);
    set_grad(t, w->p, 1, 20, 0.25f);
    d.scale = 8.0f;
    CHECK_OK(amp_scaler_create(&w->s, t->ctx, &d));
    delayed.history = 4;
    CHECK_OK(amp_fp8_create(&w->fp8, t->ctx, &delayed));
}
static void world_end(const world *w) {
    amp_fp8_destroy(w->fp8);
    amp_params_destroy(w->p);
    amp_scaler_destroy(w->s);
}
static t_blob world_bytes(t_run *t, const world *w) {
    amp_step_record r = set_poll(t, w->p);
    amp_scaler_info info = set_info(t, w->s);
    t_blob b = AMP_ZERO;
    size_t i;
    for (i = 0; i < 3; i++) {
        amp_fp8_info tensor;
        CHECK_OK(amp_fp8_get(w->fp8, i, &tensor));
        t_blob_add(&b, &tensor, sizeof tensor);
    }
    t_blob_dev(t, &b, w->pool - PIECE, (N_PIECES + 2) * PIECE);
    set_blob(t, &b, w->p, w->n, 2);
    t_blob_add(&b, &r, sizeof r);
    t_blob_add(&b, &info, sizeof info);
    return b;
}

typedef struct walk {
    t_run *t;
    const world *w;
    const verb *v;
    t_blob before;
    unsigned refused, taken;
} walk;
static void try_args(walk *k, const void *args) {
    t_run *t = k->t;
    amp_status st = k->v->call(t, k->w, args);
    t_blob now = world_bytes(t, k->w);
    if (st == AMP_OK) {
        free(k->before.data);
        k->before = now;
        k->taken++;
        return;
    }
    k->refused++;
    CHECK(now.bytes == k->before.bytes && memcmp(now.data, k->before.data, now.bytes) == 0);
    CHECK(amp_last_error(t->ctx)[0]);
    free(now.data);
}
static int is_fixed(const verb *v, size_t at) {
    size_t i;
    for (i = 0; i < sizeof v->fixed / sizeof v->fixed[0] && v->fixed[i]; i++)
        if (at / 8 * 8 == v->fixed[i]) return 1;
    return 0;
}
static int is_pointer(const world *w, const unsigned char *args, size_t at, size_t bytes) {
    uint64_t x = 0;
    at = at / 8 * 8;
    if (at + 8 > bytes) return 0;
    memcpy(&x, args + at, 8);
    return x >= (uintptr_t)w->pool && x < (uintptr_t)w->pool + N_PIECES * PIECE;
}
static void walk_pointer(walk *k, unsigned char *args, size_t at) { /* NULL, and on top of each other array */
    unsigned char good[8];
    unsigned i;
    memcpy(good, args + at, 8);
    for (i = 0; i < 2 * N_PIECES + 1; i++) {
        const void *bad = i == 2 * N_PIECES ? NULL : (unsigned char *)piece(k->w, i / 2) + i % 2 * 4;
        memcpy(args + at, &bad, sizeof bad);
        t_note(k->t, "%s, the pointer at %d: piece %d + %d", k->v->name, (int)at, (int)i / 2, (int)(i % 2 * 4));
        try_args(k, args);
    }
    memcpy(args + at, good, 8);
}
static void walk_word(walk *k, unsigned char *args, size_t at) {
    static const uint32_t bad[] = {0, 1, 2, 3, 9, 1000, 0x40000000, 0x7fffffff, 0x80000000, 0xffffffff, 0x7fc00000,
        0x7f800000, 0xff800000, 0xbf800000};
    unsigned char good[4];
    size_t i;
    memcpy(good, args + at, 4);
    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        memcpy(args + at, &bad[i], 4);
        t_note(k->t, "%s, the word at %d: 0x%x", k->v->name, (int)at, (unsigned)bad[i]);
        try_args(k, args);
    }
    memcpy(args + at, good, 4);
}
static void every_argument(t_run *t) {
    size_t i, at, step = t_slow(t) ? 12 : 4;
    for (i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        union {
            unsigned char bytes[1024];
            amp_gemm_desc gemm;
            amp_linear_desc linear;
        } args;
        world w;
        walk k;
        if (sizeof(void *) != 8) {
            t_skip(t, "the walk knows pointers of 8 bytes");
            return;
        }
        world_new(t, &w);
        memset(&args, 0, sizeof args);
        memset(&k, 0, sizeof k);
        k.t = t;
        k.w = &w;
        k.v = &verbs[i];
        k.before = world_bytes(t, &w);
        verbs[i].fill(&w, &args);
        t_note(t, "%s as it should be", verbs[i].name);
        CHECK_OK(verbs[i].call(t, &w, &args));
        free(k.before.data);
        k.before = world_bytes(t, &w);
        for (at = 0; at < verbs[i].bytes; at += step) {
            if (is_fixed(&verbs[i], at)) continue;
            if (!is_pointer(&w, args.bytes, at, verbs[i].bytes))
                walk_word(&k, args.bytes, at);
            else if (at % 8 == 0)
                walk_pointer(&k, args.bytes, at);
        }
        t_note(t, "%s: %u refused, %u taken", verbs[i].name, k.refused, k.taken);
        CHECK(k.refused > 0 && k.taken > 0);
        free(k.before.data);
        world_end(&w);
        t_clear(t);
    }
}

/* ---- what reproducers found ---- */

static amp_linear_desc layer(t_run *t, float *x, float *w, float *y, float *dy, float *dx, float *dw, float *db) {
    amp_linear_desc l = AMP_ZERO;
    l.rows = 2;
    l.in = 3;
    l.out = 2;
    l.act = AMP_RELU;
    l.accumulate = 1;
    l.x = amp_arr(t_put(t, x, 24), AMP_F32);
    l.w = amp_arr(t_put(t, w, 24), AMP_F32);
    l.y = amp_arr(t_put(t, y, 16), AMP_F32);
    l.dy = amp_arr(t_put(t, dy, 16), AMP_F32);
    l.dx = amp_arr(t_put(t, dx, 24), AMP_F32);
    l.dw = amp_arr(t_put(t, dw, 24), AMP_F32);
    l.dbias = amp_arr(t_put(t, db, 8), AMP_F32);
    return l;
}
/* A backward that is refused leaves dy, dbias and dw, so that the corrected call is right. */
static void backward_again(t_run *t) {
    float x[6] = {1, 2, 3, 4, 5, 6}, w[6] = {1, 1, 1, 1, 1, 1}, y[4] = {1, 1, 0, 1}, dy[4] = {1, 2, 3, 4};
    float dx[6] = {0}, dw[6] = {0}, db[2] = {0}, *got;
    static const float right[4] = {1, 2, 0, 4};
    amp_linear_desc l = layer(t, x, w, y, dy, dx, dw, db);
    amp_array good;
    int which;
    good = l.y; /* forward's sentence: the layer's own operands, and how far apart they are */
    l.y = amp_arr((char *)l.x.data + 8, l.x.dtype);
    CHECK_STATUS(amp_linear_forward(t->ctx, &l), AMP_ERR_INVALID_ARG, "y overlaps x which begins 8 bytes before it");
    l.y = good;
    l.aux = amp_arr(l.w.data, l.y.dtype);
    CHECK_STATUS(amp_linear_forward(t->ctx, &l), AMP_ERR_INVALID_ARG, "amp_linear_forward");
    CHECK(strstr(amp_last_error(t->ctx), ": aux overlaps w") != NULL);
    l.aux = amp_arr(NULL, AMP_AUTO);
    for (which = 0; which < 4; which++) {
        amp_array *spoilt = which == 0 ? &l.dw : which == 3 ? &l.dbias : &l.dx;
        good = *spoilt;
        *spoilt = which == 0 ? l.x : which == 1 ? l.w : which == 2 ? l.dy : l.dw;
        t_note(t, "overlap %d", which);
        CHECK_STATUS(amp_linear_backward(t->ctx, &l), AMP_ERR_INVALID_ARG, "amp_linear_backward overlaps");
        *spoilt = good;
        CHECK_BITS(set_bits(t, l.dy, 4), dy, 4, 4);
        CHECK_BITS(set_bits(t, l.dbias, 2), db, 2, 4);
        CHECK_BITS(set_bits(t, l.dw, 6), dw, 6, 4);
    }
    CHECK_OK(amp_linear_backward(t->ctx, &l));
    CHECK_BITS(set_bits(t, l.dy, 4), right, 4, 4);
    got = (float *)set_bits(t, l.dbias, 2);
    CHECK_F32(got[0], 1.0f);
    CHECK_F32(got[1], 6.0f);
}
/* FP8 products that the device refuses without a flag: the refusal comes first, and the second call is right. */
static void backward_f8(t_run *t) {
    enum { SIDE = 32 };
    amp_f8e4m3 half[SIDE * SIDE];
    amp_f8e5m2 one[SIDE * SIDE];
    float zero[SIDE * SIDE] = {0}, *db;
    amp_linear_desc l = AMP_ZERO;
    amp_status st;
    int i;
    for (i = 0; i < SIDE * SIDE; i++) {
        half[i] = amp_f8e4m3_from_f32(0.5f);
        one[i] = amp_f8e5m2_from_f32(1.0f);
    }
    l.rows = l.in = l.out = SIDE;
    l.act = AMP_GELU;
    l.accumulate = 1;
    l.x = amp_arr(t_put(t, half, sizeof half), AMP_F8E4M3);
    l.w = amp_arr(t_put(t, half, sizeof half), AMP_F8E4M3);
    l.y = amp_arr(t_put(t, half, sizeof half), AMP_F8E4M3);
    l.aux = amp_arr(t_put(t, half, sizeof half), AMP_F8E4M3);
    l.dy = amp_arr(t_put(t, one, sizeof one), AMP_F8E5M2);
    l.dw = amp_arr(t_put(t, zero, sizeof zero), AMP_F32);
    l.dbias = amp_arr(t_put(t, zero, SIDE * sizeof(float)), AMP_F32);
    st = amp_linear_backward(t->ctx, &l);
    if (st != AMP_OK) {
        CHECK_EQ(st, AMP_ERR_UNSUPPORTED);
        CHECK_BITS(set_bits(t, l.dy, SIDE * SIDE), one, SIDE * SIDE, 1);
        CHECK_BITS(set_bits(t, l.dbias, SIDE), zero, SIDE, 4);
        l.flags = AMP_GEMM_EMULATE;
        CHECK_OK(amp_linear_backward(t->ctx, &l));
    }
    db = (float *)set_bits(t, l.dbias, SIDE);
    CHECK_F32(db[0], 28.0f); /* 32 times GELU's derivative at 0.5, 0.867, rounded to E5M2: 0.875 */
}

/* Outputs of one list that overlap each other: on a GPU blocks would write one place in any order. */
static void outputs_apart(t_run *t) {
    world w;
    lists l;
    t_blob before, after;
    world_new(t, &w);
    lists_fill(&w, &l);
    before = world_bytes(t, &w);
    l.dst[2].data = (char *)l.dst[0].data + 4 * 19;
    CHECK_STATUS(amp_unscale(w.s, l.dst, NULL, l.src, 3), AMP_ERR_INVALID_ARG, "dst[2] overlaps dst[0]");
    lists_fill(&w, &l);
    l.dst[2].data = (char *)l.src[2].data + 4; /* in place would be right, beside it is not */
    CHECK_STATUS(amp_unscale(w.s, l.dst, NULL, l.src, 3), AMP_ERR_INVALID_ARG, "dst[2] overlaps grads[2]");
    lists_fill(&w, &l);
    l.src[2].data = (char *)l.src[0].data + amp_dtype_size(l.src[0].dtype); /* in place, in either order */
    CHECK_STATUS(amp_unscale(w.s, NULL, NULL, l.src, 3), AMP_ERR_INVALID_ARG, "grads[2] overlaps grads[0]");
    l.src[1] = l.src[0];
    l.src[0] = l.src[2];
    CHECK_STATUS(amp_unscale(w.s, NULL, NULL, l.src, 2), AMP_ERR_INVALID_ARG, "grads[1] overlaps grads[0]");
    lists_fill(&w, &l);
    l.dst[1].data = (char *)l.dst[0].data - 4 * 19;
    CHECK_STATUS(amp_params_grads_to(w.p, l.dst, 2), AMP_ERR_INVALID_ARG, "dst[1] overlaps dst[0]");
    l.dst[1].data = (char *)l.dst[0].data + 4 * 20;
    l.dst[0].data = amp_param_grad(w.p, 1).data; /* read after it */
    CHECK_STATUS(
        amp_params_grads_to(w.p, l.dst, 2), AMP_ERR_INVALID_ARG, "dst[0] overlaps the gradient of parameter 1");
    after = world_bytes(t, &w);
    CHECK_BITS(after.data, before.data, before.bytes, 1);
    free(before.data);
    free(after.data);
    lists_fill(&w, &l);
    l.dst[1].data = (char *)l.dst[0].data + 4 * 20;
    CHECK_OK(amp_params_grads_to(w.p, l.dst, 2));
    world_end(&w);
}

static void counts_too_large(t_run *t) { /* whose bytes do not fit into size_t */
    size_t n = ((size_t)-1 >> 2) + 2;
    float x[64] = {0};
    void *mem = t_put(t, x, sizeof x);
    amp_array l = amp_arrn(mem, AMP_F32, n);
    amp_finite_report r;
    amp_histogram h;
    amp_scaler *s = NULL;
    amp_linear_desc b = AMP_ZERO;
    CHECK_STATUS(amp_all_finite(t->ctx, &r, &l, 1), AMP_ERR_INVALID_ARG, "amp_all_finite too");
    CHECK_STATUS(amp_histogram_count(t->ctx, &h, &l, 1), AMP_ERR_INVALID_ARG, "amp_histogram_count too");
    CHECK_OK(amp_scaler_create(&s, t->ctx, NULL));
    CHECK_STATUS(amp_unscale(s, NULL, NULL, &l, 1), AMP_ERR_INVALID_ARG, "amp_unscale too");
    amp_scaler_destroy(s);
    b.rows = n;
    b.in = b.out = 1;
    b.act = AMP_RELU;
    b.x = b.w = b.y = amp_arr(mem, AMP_F32);
    b.dy = amp_arr((char *)mem + 128, AMP_F32);
    b.dw = amp_arr((char *)mem + 240, AMP_F32);
    CHECK_STATUS(amp_linear_backward(t->ctx, &b), AMP_ERR_INVALID_ARG, "amp_linear_backward too");
    b.y = b.dy;
    CHECK_STATUS(amp_linear_forward(t->ctx, &b), AMP_ERR_INVALID_ARG, "amp_linear_forward too");
}

static void rates_and_eps(t_run *t) {
    static const uint32_t bad[3] = {0x7fc00000u, 0x7f800000u, 0xff800000u};
    size_t n = 20;
    amp_params *p = set_one(t, n, AMP_F32);
    amp_step_desc d = AMP_ZERO;
    amp_group group = AMP_ZERO;
    amp_step_record r;
    t_blob before = AMP_ZERO, after = AMP_ZERO;
    float rate = 0.1f;
    float *lr = (float *)t_put(t, &rate, 4);
    void *w;
    int i;
    set_grad(t, p, 0, n, 0.0f);
    w = set_bits(t, amp_param_get(p, 0).master, n);
    t_note(t, "eps 0 and a gradient of 0: the weight stays");
    d.lr_ptr = lr;
    d.eps = amp_opt(0.0f);
    CHECK_OK(amp_step(p, NULL, &d));
    CHECK_BITS(set_bits(t, amp_param_get(p, 0).master, n), w, n, 4);
    set_grad(t, p, 0, n, 0.5f);
    group.lr_ptr = lr;
    for (i = 0; i < 6; i++) {
        t_note(t, "rate %d", i);
        t_set(t, lr, &bad[i % 3], 4);
        if (i >= 3) { /* that of a group nobody is in */
            d.lr_ptr = NULL;
            d.lr = 0.1f;
            d.groups = &group;
            d.n_groups = 1;
        }
        set_blob(t, &before, p, &n, 1);
        CHECK_OK(amp_step(p, NULL, &d));
        r = set_poll(t, p);
        CHECK_EQ(r.outcome, AMP_SKIPPED_RATE);
        CHECK_EQ(r.steps, 1);
        CHECK_EQ(r.skipped, i + 1);
        set_blob(t, &after, p, &n, 1);
        CHECK_BITS(after.data, before.data, before.bytes, 1);
    }
    CHECK(strstr(amp_outcome_name(AMP_SKIPPED_RATE), "rate") != NULL);
    t_set(t, lr, &rate, 4);
    CHECK_OK(amp_step(p, NULL, &d));
    CHECK_EQ(set_poll(t, p).outcome, AMP_STEPPED);
    free(before.data);
    free(after.data);
    amp_params_destroy(p);
}

static void numbers_in_words(
    t_run *t) { /* as strtod reads them in the C locale, but without Inf, NaN and hexadecimal */
    static const struct {
        const char *text;
        float value; /* 0: refused */
    } cases[] = {{"128.0", 128}, {"128.5", 128.5f}, {"1e3", 1000}, {" +2.5e+2 ", 250}, {".5", 0.5f}, {"4.", 4},
        {"65536", 65536}, {"1E-2", 0.01f}, {"0.1", 0.1f}, {"16777216", 16777216}, {"3.0e38", 3.0e38f}, {"nan", 0},
        {"inf", 0}, {"", 0}, {".", 0}, {"e5", 0}, {"1e", 0}, {"1e+", 0}, {"1,5", 0}, {"1.5x", 0}, {"0x10", 0},
        {"--1", 0}, {"-1", 0}, {"0", 0}, {"1e300", 0}, {"1e-300", 0}, {"1e99999999999", 0}, {"1e-41", 0}, {"1 1", 0}};
    amp_policy_desc o = AMP_ZERO;
    amp_policy p;
    char digits[310];
    size_t i;
    memset(digits, '9', 300); /* with this exponent it is 0.1; what is read of either must not be taken for all of it */
    strcpy(digits + 300, "e-301");
    o.loss_scale = digits;
    CHECK_STATUS(amp_policy_init(t->ctx, &p, AMP_O2, &o), AMP_ERR_INVALID_ARG, "loss_scale");
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        t_note(t, "\"%s\"", cases[i].text);
        o.loss_scale = cases[i].text;
        if (cases[i].value > 0) {
            CHECK_OK(amp_policy_init(t->ctx, &p, AMP_O2, &o));
            CHECK_F32(p.loss_scale, cases[i].value);
        } else {
            CHECK_STATUS(amp_policy_init(t->ctx, &p, AMP_O2, &o), AMP_ERR_INVALID_ARG, "loss_scale");
        }
    }
    t_note(t, "limits that a scaler would refuse are refused here");
    o.loss_scale = NULL;
    CHECK_OK(amp_policy_init(t->ctx, &p, AMP_O2, &o));
    CHECK_STATUS(amp_policy_set(t->ctx, &p, "min_loss_scale", "1e-41"), AMP_ERR_INVALID_ARG, "min_loss_scale");
    CHECK_STATUS(amp_policy_set(t->ctx, &p, "max_loss_scale", "1e-41"), AMP_ERR_INVALID_ARG, "max_loss_scale");
    CHECK_OK(amp_policy_set(t->ctx, &p, "min_loss_scale", "0.5"));
    o.min_scale = 1e-41f;
    CHECK_STATUS(amp_policy_init(t->ctx, &p, AMP_O2, &o), AMP_ERR_INVALID_ARG, "min");
}

/* A committed set without parameters takes and gives back the same sizes. */
typedef struct sizes {
    size_t bytes[64];
    void *ptr[64];
    int n, wrong;
} sizes;
static void *sized_alloc(size_t bytes, void *user) {
    sizes *s = (sizes *)user;
    void *p = malloc(bytes + 1);
    s->bytes[s->n] = bytes;
    s->ptr[s->n++] = p;
    return p;
}
static void sized_free(void *p, size_t bytes, void *user) {
    sizes *s = (sizes *)user;
    int i;
    for (i = 0; i < s->n && s->ptr[i] != p; i++) {
    }
    s->wrong += i == s->n || s->bytes[i] != bytes;
    if (i < s->n) s->ptr[i] = NULL;
    free(p);
}
static void empty_set(t_run *t) {
    amp_allocator a;
    amp_ctx *c = NULL;
    amp_params *p = NULL;
    sizes s;
    memset(&s, 0, sizeof s);
    a.alloc_fn = sized_alloc;
    a.free_fn = sized_free;
    a.user = &s;
    CHECK_EQ(t_create(t->place, &c, &a, NULL), AMP_OK);
    CHECK_EQ(amp_params_create(&p, c, NULL), AMP_OK);
    CHECK_EQ(amp_params_commit(p), AMP_OK);
    amp_params_destroy(p);
    amp_ctx_destroy(c);
    CHECK(s.n > 3);
    CHECK_EQ(s.wrong, 0);
}

/* The copy of first weights goes at commit, not at the set's end. */
static void first_weights_are_given_back(t_run *t) {
    static const float init[1001] = {1, 2, 3};
    amp_param_desc e = AMP_ZERO;
    amp_cpu_desc d = AMP_ZERO;
    amp_allocator a;
    amp_ctx *c = NULL;
    amp_params *p = NULL;
    sizes s;
    int i, before = 0, after = 0;
    memset(&s, 0, sizeof s);
    a.alloc_fn = sized_alloc;
    a.free_fn = sized_free;
    a.user = &s;
    d.allocator = a;
    d.threads = 1;
    CHECK_EQ(amp_cpu_create(&c, &d), AMP_OK);
    CHECK_EQ(amp_params_create(&p, c, NULL), AMP_OK);
    e.count = 1001;
    e.init = init;
    CHECK_EQ(amp_params_add(p, &e), AMP_OK);
    for (i = 0; i < s.n; i++)
        before += s.ptr[i] && s.bytes[i] == sizeof init;
    CHECK_EQ(before, 1);
    CHECK_EQ(amp_params_commit(p), AMP_OK);
    for (i = 0; i < s.n; i++)
        after += s.ptr[i] && s.bytes[i] == sizeof init;
    CHECK_EQ(after, 0);
    amp_params_destroy(p);
    amp_ctx_destroy(c);
    CHECK_EQ(s.wrong, 0);
}

/* Host memory that a refused call would have written: found by tests/fuzz_api.c. */
static void host_outputs(t_run *t) {
    amp_gemm_desc g = AMP_ZERO;
    amp_linear_desc l = AMP_ZERO;
    amp_precision record = AMP_ZERO;
    amp_snapshot snapshot;
    amp_scaler *foreign = NULL;
    amp_ctx *other = NULL;
    char text[100] = "as it was";
    g.m = g.n = g.k = 4;
    g.a = g.b = g.d = amp_arr(t_alloc(t, 64), AMP_F32);
    CHECK_STATUS(amp_gemm_explain(t->ctx, text, sizeof text, &g), AMP_ERR_INVALID_ARG, "amp_gemm_explain overlaps");
    CHECK(strcmp(text, "as it was") == 0);
    l.rows = l.in = l.out = 4;
    l.x = amp_arr(t_alloc(t, 64), AMP_F32);
    l.w = amp_arr(t_alloc(t, 64), AMP_F32);
    l.y = amp_arr(t_alloc(t, 64), AMP_F32);
    l.dy = amp_arr(t_alloc(t, 64), AMP_F32);
    l.dw = amp_arrn(t_alloc(t, 64), AMP_F32, 3);
    l.record = &record;
    CHECK_STATUS(amp_linear_tune(t->ctx, &l), AMP_ERR_INVALID_ARG, "amp_linear_tune dw|desc.d");
    CHECK_EQ(record.made, 0);
    CHECK_EQ(record.x, 0);
    CHECK_STATUS(amp_snapshot_take(t->ctx, NULL, NULL, NULL), AMP_ERR_INVALID_ARG, "amp_snapshot_take out");
    CHECK_OK(t_create(t->place, &other, NULL, NULL));
    CHECK_OK(amp_scaler_create(&foreign, other, NULL));
    memset(&snapshot, 0x5a, sizeof snapshot);
    CHECK_STATUS(amp_snapshot_take(t->ctx, &snapshot, NULL, foreign), AMP_ERR_INVALID_ARG, "amp_snapshot_take s");
    CHECK_EQ(snapshot.iteration, 0x5a5a5a5a5a5a5a5a);
    amp_scaler_destroy(foreign);
    amp_ctx_destroy(other);
}

/* A commit that gets no memory has not written what was adopted, whichever request fails. */
static int requests_left;
static void *counted_alloc(size_t bytes, void *user) {
    (void)user;
    return requests_left-- > 0 ? malloc(bytes) : NULL;
}
static void counted_free(void *p, size_t bytes, void *user) {
    (void)bytes;
    (void)user;
    free(p);
}
static void commit_without_memory(t_run *t) {
    static const float init[4] = {1, 2, 3, 4};
    const amp_allocator a = {counted_alloc, counted_free, NULL};
    int n, failures = 0;
    for (n = 0; n < 50; n++) {
        float adopted[4] = {9, 9, 9, 9};
        amp_param_desc first = AMP_ZERO, second = AMP_ZERO;
        amp_params_desc d = AMP_ZERO;
        amp_params *p = NULL;
        amp_ctx *c = NULL;
        amp_status st;
        requests_left = 1000;
        CHECK_OK(t_create(t->place, &c, &a, NULL));
        d.master = AMP_MASTER_SPLIT;
        CHECK_OK(amp_params_create(&p, c, &d));
        first.count = second.count = 4;
        first.init = second.init = init;
        first.keep_f32 = 1;
        first.master = adopted;
        CHECK_OK(amp_params_add(p, &first));
        CHECK_OK(amp_params_add(p, &second));
        requests_left = n;
        st = amp_params_commit(p);
        requests_left = 1000;
        failures += st != AMP_OK;
        t_note(t, "request %d", n);
        CHECK(adopted[0] > 8.0f ? st == AMP_ERR_NO_MEMORY : st == AMP_OK);
        amp_params_destroy(p);
        amp_ctx_destroy(c);
        if (st == AMP_OK) break;
    }
    CHECK(failures > 5 && n < 50);
}

const t_test t_suite_refusals[] = {{"refusals.every_argument", every_argument, T_ALL},
    {"refusals.backward_again", backward_again, T_ALL}, {"refusals.backward_f8", backward_f8, T_ALL},
    {"refusals.outputs_apart", outputs_apart, T_ALL}, {"refusals.counts_too_large", counts_too_large, T_ALL},
    {"refusals.rates_and_eps", rates_and_eps, T_ALL}, {"refusals.numbers_in_words", numbers_in_words, T_ALL},
    {"refusals.empty_set", empty_set, T_CPU}, {"refusals.first_weights", first_weights_are_given_back, T_HOST},
    {"refusals.host_outputs", host_outputs, T_ALL}, {"refusals.commit_without_memory", commit_without_memory, T_CPU},
    {NULL, NULL, 0}};
