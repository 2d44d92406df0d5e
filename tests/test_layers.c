/* test_layers.c - layers whose weights are stored [in, out]; sums of columns; activations apart from products; a bias
   per row and batches that add up.  Guards: >>products. */
#include "ref.h"

static amp_array filled(t_run *t, amp_dtype type, size_t n, float size) {
    void *host = t_host(t, n * amp_dtype_size(type));
    t_fill_real(t, host, type, n, size);
    return amp_arr(t_put(t, host, n * amp_dtype_size(type)), type);
}
static amp_array empty(t_run *t, amp_dtype type, size_t n) {
    return amp_arr(t_alloc(t, n * amp_dtype_size(type)), type);
}
static void *contents(t_run *t, amp_array a, size_t n) {
    void *host = t_host(t, n * amp_dtype_size(a.dtype));
    t_get(t, host, a.data, n * amp_dtype_size(a.dtype));
    return host;
}
static amp_array copy_of(t_run *t, amp_array a, size_t n) {
    return a.data ? amp_arr(t_put(t, contents(t, a, n), n * amp_dtype_size(a.dtype)), a.dtype) : a;
}
static amp_array turned(t_run *t, amp_array a, size_t rows, size_t cols) { /* the transpose of a[rows, cols] */
    const size_t size = amp_dtype_size(a.dtype);
    const char *from = (const char *)contents(t, a, rows * cols);
    char *to = (char *)t_host(t, rows * cols * size);
    amp_array b = a;
    size_t i, j;
    for (i = 0; i < rows; i++)
        for (j = 0; j < cols; j++)
            memcpy(to + (j * rows + i) * size, from + (i * cols + j) * size, size);
    b.data = t_put(t, to, rows * cols * size);
    return b;
}
static void same_array(t_run *t, const char *what, amp_array got, amp_array want, size_t n) {
    if (!want.data) return;
    t_check_bits(t, contents(t, got, n), contents(t, want, n), n, amp_dtype_size(want.dtype), what, __FILE__, __LINE__);
}

/* ---- weights stored [in, out]: what [out, in] gives, in every way of a layer ---- */

typedef struct way {
    amp_dtype x, w, dw;
    amp_act act;
    uint32_t scope; /* 1: in an autocast scope, with a record; 2: and the weight's cast is kept */
    uint32_t fp8, accumulate, chain, few;
} way;
static const way ways[] = {
    {AMP_F32, AMP_F32, AMP_F32, AMP_ACT_NONE, 0, 0, 0, 0, 0},
    {AMP_F32, AMP_F32, AMP_F32, AMP_GELU, 0, 0, 1, 0, 1},
    {AMP_F16, AMP_F16, AMP_F16, AMP_RELU, 0, 0, 1, 1, 0},
    {AMP_BF16, AMP_BF16, AMP_F32, AMP_GELU, 0, 0, 0, 1, 0},
    {AMP_F32, AMP_F32, AMP_F32, AMP_RELU, 1, 0, 0, 0, 0},
    {AMP_F32, AMP_F32, AMP_F32, AMP_GELU, 2, 0, 1, 1, 1},
    {AMP_F16, AMP_F16, AMP_F32, AMP_GELU, 0, 1, 0, 0, 0},
    {AMP_F32, AMP_F32, AMP_F32, AMP_RELU, 0, 1, 1, 1, 0},
};
typedef struct stored { /* a layer whose weights are in one of the two orders */
    amp_linear_desc l;
    amp_linear_desc before; /* the one before it, of which backward is asked too */
    amp_precision made;
    amp_fp8 *f;
} stored;

static void stored_make(t_run *t, stored *s, const way *y) {
    amp_linear_desc *l = &s->l;
    memset(s, 0, sizeof *s);
    l->rows = y->few ? 3 : y->fp8 ? 32 : 21;
    l->in = y->fp8 ? 48 : 35;
    l->out = y->fp8 ? 16 : 19;
    l->act = y->act;
    l->accumulate = y->accumulate;
    l->x = filled(t, y->x, l->rows * l->in, 1.0f);
    l->w = filled(t, y->w, l->in * l->out, 0.2f);
    l->bias = filled(t, AMP_F32, l->out, 0.2f);
    l->dy = filled(t, y->x, l->rows * l->out, 1.0f);
    l->dw = filled(t, y->dw, l->in * l->out, 1.0f);
    l->dbias = filled(t, AMP_F32, l->out, 1.0f);
    s->before.rows = l->rows;
    s->before.in = 1;
    s->before.out = l->in;
    s->before.act = AMP_RELU;
    s->before.y = l->x;
    s->before.dbias = filled(t, AMP_F32, l->in, 1.0f);
}
/* The same with arrays of its own, and weights in the other order. */
static void stored_turn(t_run *t, stored *s, const stored *from) {
    const amp_linear_desc *a = &from->l;
    *s = *from;
    s->l.w_in_out = 1;
    s->l.w = turned(t, a->w, a->out, a->in);
    s->l.dw = turned(t, a->dw, a->out, a->in);
    s->l.dy = copy_of(t, a->dy, a->rows * a->out);
    s->l.dbias = copy_of(t, a->dbias, a->out);
    s->before.dbias = copy_of(t, from->before.dbias, a->in);
}
static void stored_run(t_run *t, stored *s, const way *y, uint32_t flags) {
    amp_linear_desc *l = &s->l;
    l->flags = flags;
    l->y = empty(t, y->x, l->rows * l->out);
    l->aux = empty(t, y->x, l->rows * l->out);
    l->dx = empty(t, y->x, l->rows * l->in);
    if (y->scope) l->record = &s->made;
    if (y->scope == 2) l->w.flags = AMP_CACHE;
    if (y->chain) {
        l->before = &s->before;
        s->before.after = l;
    }
    if (y->fp8) {
        amp_fp8_desc d = AMP_ZERO;
        d.tensors = 3;
        CHECK_OK(amp_fp8_create(&s->f, t->ctx, &d));
        l->fp8 = s->f;
        l->scratch_bytes = l->rows * l->in + l->out * l->in + 2 * l->rows * l->out + 1024;
        l->scratch = t_alloc(t, l->scratch_bytes);
    }
    if (y->scope) CHECK_OK(amp_autocast_begin(t->ctx, NULL));
    CHECK_OK(amp_linear_tune(t->ctx, l));
    CHECK_OK(amp_linear_forward(t->ctx, l));
    CHECK_OK(amp_linear_backward(t->ctx, l));
    if (y->scope) CHECK_OK(amp_autocast_end(t->ctx));
    if (y->scope) CHECK_OK(amp_autocast_release(t->ctx));
    amp_fp8_destroy(s->f);
}
static void stored_in_out(t_run *t) {
    size_t i;
    for (i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        const way *y = &ways[i];
        const amp_linear_desc *a, *b;
        stored out_in, in_out;
        t_note(t, "way %d", (int)i);
        stored_make(t, &out_in, y);
        stored_turn(t, &in_out, &out_in);
        stored_run(t, &out_in, y, AMP_GEMM_ORDERED);
        stored_run(t, &in_out, y, AMP_GEMM_ORDERED);
        a = &out_in.l;
        b = &in_out.l;
        same_array(t, "y", b->y, a->y, a->rows * a->out);
        same_array(t, "aux", b->aux, a->aux, a->rows * a->out);
        same_array(t, "dy", b->dy, a->dy, a->rows * a->out);
        same_array(t, "dx", b->dx, a->dx, a->rows * a->in);
        same_array(t, "dw", b->dw, turned(t, a->dw, a->out, a->in), a->in * a->out);
        same_array(t, "dbias", b->dbias, a->dbias, a->out);
        same_array(t, "before->dbias", in_out.before.dbias, out_in.before.dbias, a->in);
        if (y->scope) CHECK_EQ(in_out.made.used, AMP_F16);
        t_clear(t);
    }
}
/* FP8 on the hardware's own path: x w^T is the one order that every device has, so the copies are turned to it. */
static void stored_fp8_by_cublas(t_run *t) {
    stored out_in, in_out;
    stored_make(t, &out_in, &ways[6]);
    stored_turn(t, &in_out, &out_in);
    stored_run(t, &in_out, &ways[6], 0);
    t_clear(t);
}

/* A scope would cast, backward could not know: refused, unless a record tells it, or nothing depends on it. */
static void no_record(t_run *t) {
    amp_precision made = AMP_ZERO;
    stored s;
    amp_linear_desc *l = &s.l;
    stored_make(t, &s, &ways[4]);
    l->y = empty(t, AMP_F32, l->rows * l->out);
    l->dx = empty(t, AMP_F32, l->rows * l->in);
    CHECK_OK(amp_linear_forward(t->ctx, l)); /* no scope */
    CHECK_OK(amp_autocast_begin(t->ctx, NULL));
    CHECK_STATUS(amp_linear_forward(t->ctx, l), AMP_ERR_INVALID_ARG, "f16 record .record");
    l->dx.data = NULL;
    CHECK_STATUS(amp_linear_forward(t->ctx, l), AMP_ERR_INVALID_ARG, "record dw");
    CHECK_STATUS(amp_linear_tune(t->ctx, l), AMP_ERR_INVALID_ARG, "record dw");
    l->pin = AMP_BF16; /* which backward has, too */
    CHECK_OK(amp_linear_forward(t->ctx, l));
    l->pin = AMP_AUTO;
    l->record = &made;
    CHECK_OK(amp_linear_forward(t->ctx, l));
    l->record = NULL;
    l->dw.data = NULL;
    CHECK_OK(amp_linear_forward(t->ctx, l)); /* evaluation */
    l->dw = filled(t, AMP_F32, l->in * l->out, 1.0f);
    l->x = filled(t, AMP_F16, l->rows * l->in, 1.0f);
    CHECK_STATUS(amp_linear_forward(t->ctx, l), AMP_ERR_INVALID_ARG, "record"); /* of w */
    l->w = filled(t, AMP_F16, l->in * l->out, 1.0f);
    l->dy = filled(t, AMP_F16, l->rows * l->out, 1.0f);
    CHECK_OK(amp_linear_forward(t->ctx, l)); /* nothing is cast */
    CHECK_OK(amp_linear_backward(t->ctx, l));
    CHECK_OK(amp_autocast_end(t->ctx));
    CHECK_OK(amp_autocast_release(t->ctx));
    t_clear(t);
}

const t_test t_suite_layers[] = {{"layers.in_out", stored_in_out, T_ALL},
    {"layers.in_out_fp8", stored_fp8_by_cublas, T_ALL}, {"layers.no_record", no_record, T_ALL}, {NULL, NULL, 0}};
