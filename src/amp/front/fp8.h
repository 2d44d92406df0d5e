/* ==== >>front-fp8 ================================================================================================
   Scales of FP8 tensors, quantisation.   tests: tests/test_fp8.c */

struct amp_fp8 {
    amp_ctx *ctx;
    amp_fp8_state *states; /* context memory: desc.tensors of them, then the histories */
    float *history;        /* of tensor 0; NULL: current scaling */
    size_t words;          /* of 4 bytes, of that memory */
    amp_fp8 *next;         /* in the context's list */
    amp_fp8_desc desc;     /* with its defaults filled in */
};

static amp_status ampi_fp8_format(amp_ctx *ctx, const char *name, amp_dtype *t, amp_dtype usual) {
    if (*t == AMP_AUTO) *t = usual;
    AMPI_CHECK(ampi_is_f8(*t), "desc.%s is %s; an FP8 format is needed", name, amp_dtype_name(*t));
    return AMP_OK;
}
/* Defaults, and what may not be. */
static amp_status ampi_fp8_rule(amp_ctx *ctx, amp_fp8_desc *d) {
    if (!d->tensors) d->tensors = 3;
    AMPI_CHECK(d->tensors <= 65536u, "desc.tensors is %lu, more than 65536", (unsigned long)d->tensors);
    AMPI_CHECK(d->history <= 65536u, "desc.history is %lu, more than 65536", (unsigned long)d->history);
    AMPI_CHECK(d->margin <= 6u, "desc.margin is %lu; it must be in 0 .. 6", (unsigned long)d->margin);
    AMPI_CHECK(!d->flags, "desc.flags is not 0");
    AMPI_TRY(ampi_fp8_format(ctx, "forward", &d->forward, AMP_F8E4M3));
    AMPI_TRY(ampi_fp8_format(ctx, "backward", &d->backward, AMP_F8E5M2));
    AMPI_REQUIRE(d->forward != AMP_F8E5M2 || d->backward != AMP_F8E5M2, AMP_ERR_UNSUPPORTED,
        "desc.forward and desc.backward are both f8e5m2: no hardware multiplies two of them");
    return AMP_OK;
}
/* Scales of 1, empty histories. */
static amp_status ampi_fp8_fill(amp_fp8 *f) {
    amp_ctx *ctx = f->ctx;
    size_t bytes = f->desc.tensors * sizeof *f->states, i;
    amp_fp8_state *s = (amp_fp8_state *)ampi_host_new(ctx, bytes);
    amp_status st;
    AMPI_MEMORY(s);
    for (i = 0; i < f->desc.tensors; i++)
        s[i].scale = s[i].inverse = 1.0f;
    st = (ctx->b->zero)(ctx, f->states, f->words * 4);
    if (st == AMP_OK) st = (ctx->b->copy)(ctx, f->states, s, bytes);
    ampi_host_drop(ctx, s, bytes);
    return ampi_settle(ctx, st);
}
static amp_status ampi_fp8_allocate(amp_fp8 *f) {
    size_t states = f->desc.tensors * (sizeof *f->states / 4);
    size_t each;
    void *mem = NULL;
    amp_ctx *ctx = f->ctx;
    amp_status st;
    AMPI_REQUIRE(ampi_product(&each, f->desc.tensors, f->desc.history) && each <= (size_t)-1 / 8 - states,
        AMP_ERR_NO_MEMORY, "desc.tensors histories of desc.history numbers are too much");
    f->words = states + each;
    AMPI_TRY(ampi_alloc_block(ctx, &mem, f->words * 4, "fp8", 0));
    f->states = (amp_fp8_state *)mem;
    if (f->desc.history) f->history = (float *)mem + states;
    st = ampi_fp8_fill(f);
    if (st != AMP_OK) ampi_free_block(ctx, mem);
    return st;
}
static amp_status ampi_do_fp8_create(amp_fp8 **out, amp_ctx *ctx, int version, size_t size, const amp_fp8_desc *desc) {
    amp_fp8_desc d = AMP_ZERO;
    amp_fp8 *f;
    amp_status st;
    AMPI_CHECK_CREATE(out, version, size, &d, desc);
    AMPI_TRY(ampi_fp8_rule(ctx, &d));
    AMPI_HAS(quantize);
    AMPI_TRY((ctx->b->may_wait)(ctx));
    f = (amp_fp8 *)ampi_host_new(ctx, sizeof *f);
    AMPI_MEMORY(f);
    f->ctx = ctx;
    f->desc = d;
    st = ampi_fp8_allocate(f);
    if (st != AMP_OK) {
        ampi_host_drop(ctx, f, sizeof *f);
        return st;
    }
    f->next = ctx->fp8s;
    ctx->fp8s = f;
    *out = f;
    return AMP_OK;
}
AMP_API amp_status amp_fp8_create_checked(
    amp_fp8 **out, amp_ctx *ctx, int version, size_t size, const amp_fp8_desc *desc) {
    if (out) *out = NULL;
    AMPI_VERB(ctx, fp8_create, (out, ctx, version, size, desc));
}

static void ampi_do_fp8_destroy(amp_fp8 *f) {
    amp_ctx *ctx = f->ctx;
    AMPI_UNLINK(amp_fp8, ctx->fp8s, f, next);
    ampi_free_block(ctx, f->states);
    ampi_host_drop(ctx, f, sizeof *f);
}
AMP_API void amp_fp8_destroy(amp_fp8 *f) { AMPI_DESTROY(AMPI_CTX(f), fp8_destroy, (f)); }

static amp_status ampi_check_tensor(const amp_fp8 *f, size_t i) {
    amp_ctx *ctx = f->ctx;
    AMPI_CHECK(
        i < f->desc.tensors, "i is %llu, but there are %lu tensors", AMPI_ULL(i), (unsigned long)f->desc.tensors);
    return AMP_OK;
}
static amp_status ampi_do_fp8_get(amp_fp8 *f, size_t i, amp_fp8_info *out) {
    amp_ctx *ctx = f->ctx;
    amp_fp8_state s;
    AMPI_TRY(ampi_check_tensor(f, i));
    AMPI_CHECK(out, "out is NULL");
    AMPI_TRY(ampi_do_copy(ctx, &s, f->states + i, sizeof s));
    out->scale = s.scale;
    out->amax = s.amax;
    out->largest = s.window;
    return AMP_OK;
}
AMP_API amp_status amp_fp8_get(amp_fp8 *f, size_t i, amp_fp8_info *out) { AMPI_VERB_OF(f, fp8_get, (f, i, out)); }
AMP_API const float *amp_fp8_inverse_ptr(const amp_fp8 *f, size_t i) {
    return f && i < f->desc.tensors ? &f->states[i].inverse : NULL;
}

/* Casts of tensor i to format t: what is missing are the matrices, their sizes, and keep. */
static amp_quantize_job ampi_fp8_job(const amp_fp8 *f, size_t i, amp_dtype t) {
    amp_quantize_job j = AMP_ZERO;
    j.state = f->states + i;
    if (f->history) j.history = f->history + i * f->desc.history;
    j.n_history = f->desc.history;
    j.power_of_two = f->desc.power_of_two != 0;
    j.most = ampi_float(amp_fp8_most(t) - (f->desc.margin << 23)); /* exact: divided by a power of two */
    return j;
}

static amp_status ampi_check_quantized(amp_ctx *ctx, const char *name, amp_array a, size_t n) {
    AMPI_TRY(ampi_check_array(ctx, name, a, n, 0));
    AMPI_CHECK(!a.data || ampi_is_f8(a.dtype), "%s is %s; an FP8 format is needed", name, amp_dtype_name(a.dtype));
    return AMP_OK;
}
static amp_status ampi_check_source(amp_ctx *ctx, const char *name, amp_array a) {
    AMPI_CHECK(!ampi_is_f8(a.dtype), "%s is %s already; f32, f16 or bf16 is needed", name, amp_dtype_name(a.dtype));
    return AMP_OK;
}
/* Memory apart from each other: what is read, and one or two outputs. */
static amp_status ampi_quantize_extents(amp_ctx *ctx, const amp_quantize_job *j) {
    const size_t n = j->rows * j->cols;
    const ampi_extent r[3] = {
        ampi_extent_of("dst", j->dst, n, 0, 1),
        ampi_extent_of("dst_t", j->dst_t, n, 0, 1),
        ampi_extent_of("src", j->src, n, 1, 0),
    };
    return ampi_check_extents(ctx, r, 3);
}
static amp_status ampi_check_quantize(amp_ctx *ctx, const amp_quantize_job *j, size_t *n) {
    AMPI_CHECK(ampi_product(n, j->rows, j->cols) && *n <= (size_t)-1 / 8, "rows %llu by cols %llu is too large",
        AMPI_ULL(j->rows), AMPI_ULL(j->cols));
    AMPI_TRY(ampi_check_array(ctx, "src", j->src, *n, 1));
    AMPI_TRY(ampi_check_source(ctx, "src", j->src));
    AMPI_TRY(ampi_check_quantized(ctx, "dst", j->dst, *n));
    AMPI_TRY(ampi_check_quantized(ctx, "dst_t", j->dst_t, *n));
    AMPI_CHECK(!*n || j->dst.data || j->dst_t.data, "dst and dst_t are NULL");
    AMPI_CHECK(!j->dst.data || !j->dst_t.data || j->dst.dtype == j->dst_t.dtype,
        "dst is %s and dst_t is %s; they must have one format", amp_dtype_name(j->dst.dtype),
        amp_dtype_name(j->dst_t.dtype));
    return ampi_quantize_extents(ctx, j);
}
static amp_status ampi_do_quantize(
    amp_fp8 *f, size_t i, amp_array dst, amp_array dst_t, amp_array src, size_t rows, size_t cols, uint32_t keep) {
    amp_ctx *ctx = f->ctx;
    amp_quantize_job j;
    size_t n = 0;
    AMPI_TRY(ampi_check_tensor(f, i));
    j = ampi_fp8_job(f, i, dst.data ? dst.dtype : dst_t.dtype);
    j.src = src;
    j.dst = dst;
    j.dst_t = dst_t;
    j.rows = rows;
    j.cols = cols;
    j.keep = keep != 0;
    AMPI_TRY(ampi_check_quantize(ctx, &j, &n));
    ampi_wrote_array(ctx, j.dst, n);
    ampi_wrote_array(ctx, j.dst_t, n);
    return n ? (ctx->b->quantize)(ctx, &j) : AMP_OK;
}
AMP_API amp_status amp_quantize(
    amp_fp8 *f, size_t i, amp_array dst, amp_array dst_t, amp_array src, size_t rows, size_t cols, uint32_t keep) {
    AMPI_VERB_OF(f, quantize, (f, i, dst, dst_t, src, rows, cols, keep));
}

