/* ---- a linear layer and its cross-entropy together, in pieces of rows.   tests: tests/test_products.c ---- */

#define AMPI_VOCABULARY_BYTES ((size_t)64 << 20) /* of a piece's logits as floats, where 256 rows have less */

/* What amp_linear_cross_entropy works with: a layer as forward and as backward see it, of one piece, and the loss. */
typedef struct ampi_vocabulary {
    ampi_layer forward, backward;
    amp_xent_job loss;
    amp_precision made;
    amp_linear_desc l; /* all rows, dtypes known; x and w as products read them, dw and dbias as they are added up */
    amp_array logits, dlogits;
    size_t chunk, piece, bytes; /* rows at a time, of which products of backward take `piece`; of scratch */
    char *scratch;              /* NULL: only the bytes are wanted */
    int32_t gradients, fp8;
} ampi_vocabulary;

/* Memory for n elements, from the scratch. */
static amp_array ampi_vocabulary_room(ampi_vocabulary *v, amp_dtype dtype, size_t n) {
    amp_array a = amp_arrn(v->scratch ? v->scratch + v->bytes : NULL, dtype, n);
    v->bytes += (size_t)ampi_round256(n * amp_dtype_size(dtype));
    return a;
}
static amp_status ampi_check_vocabulary(amp_ctx *ctx, const amp_linear_xent_desc *d) {
    const amp_linear_desc *l = &d->linear;
    const amp_xent_desc *x = &d->xent;
    AMPI_CHECK(l->act == AMP_ACT_NONE && !l->before && !l->after, "desc.linear has an act, before or after");
    AMPI_CHECK(!l->y.data && !l->aux.data && !l->dy.data && !x->logits.data && !x->dlogits.data,
        "desc.linear.y, aux, dy, desc.xent.logits and dlogits have no data here: only dtypes");
    AMPI_CHECK(!x->rows || x->rows == l->rows, "desc.xent.rows is %llu, but desc.linear.rows is %llu",
        AMPI_ULL(x->rows), AMPI_ULL(l->rows));
    AMPI_CHECK(!x->classes || x->classes == l->out, "desc.xent.classes is %llu, but desc.linear.out is %llu",
        AMPI_ULL(x->classes), AMPI_ULL(l->out));
    AMPI_CHECK(!x->ld || x->ld == l->out, "desc.xent.ld is %llu; it must be 0 or desc.linear.out", AMPI_ULL(x->ld));
    AMPI_CHECK(!x->softmax && !x->from, "desc.xent.softmax or from is given");
    return AMP_OK;
}
/* The rows of a piece. In ordered mode dw takes 256 at a time, as one product of all rows adds them up. */
static void ampi_vocabulary_rows(const amp_ctx *ctx, ampi_vocabulary *v, size_t chunk) {
    size_t fit = AMPI_VOCABULARY_BYTES / 4u / v->l.out / 256u * 256u;
    int ordered = ((v->l.flags | ctx->b->gemm_flags) & AMP_GEMM_ORDERED) != 0;
    if (!chunk) chunk = fit > 256u ? fit : 256u;
    v->chunk = chunk < v->l.rows ? chunk : v->l.rows;
    v->piece = ordered && v->chunk > 256u ? 256u : v->chunk;
}
/* The dtypes of logits and their gradient, as amp_linear_forward would choose them. */
static amp_status ampi_vocabulary_dtypes(amp_ctx *ctx, ampi_vocabulary *v, amp_dtype gradient) {
    ampi_layer layer;
    amp_linear_desc l = v->l;
    l.fp8 = NULL;
    l.record = &v->made;
    l.y.data = v; /* it would be there */
    AMPI_TRY(ampi_check_linear(ctx, &l, &ampi_goal_run, &layer));
    AMPI_TRY(ampi_forward_dtypes(ctx, &layer, &v->made));
    v->l.x = layer.l.x;
    if (v->l.dx.dtype == AMP_AUTO) v->l.dx.dtype = v->made.x;
    v->l.y.dtype = v->made.y;
    v->l.dy.dtype = gradient != AMP_AUTO ? gradient : v->made.used;
    if (v->l.fp8 && gradient == AMP_AUTO) v->l.dy.dtype = v->made.y;
    AMPI_CHECK(ampi_is_dtype(v->l.y.dtype), "desc.linear.y.dtype is %d", (int)v->l.y.dtype);
    AMPI_CHECK(ampi_is_dtype(v->l.dy.dtype), "desc.xent.dlogits.dtype is %d", (int)v->l.dy.dtype);
    return AMP_OK;
}
/* Where things lie in the scratch. */
static void ampi_vocabulary_rooms(ampi_vocabulary *v) {
    amp_linear_desc *l = &v->l;
    size_t n = v->chunk * l->out;
    v->bytes = 0;
    v->logits = ampi_vocabulary_room(v, l->y.dtype, n);
    v->dlogits = v->logits;
    if (v->gradients && l->dy.dtype != l->y.dtype) v->dlogits = ampi_vocabulary_room(v, l->dy.dtype, n);
    if (!v->gradients) v->dlogits.data = NULL;
    if (v->piece < l->rows) {
        if (l->dw.data && l->dw.dtype != AMP_F32) l->dw = ampi_vocabulary_room(v, AMP_F32, l->in * l->out);
        if (l->dbias.data && l->dbias.dtype != AMP_F32) l->dbias = ampi_vocabulary_room(v, AMP_F32, l->out);
    }
    if (!l->fp8) return;
    l->scratch = v->scratch ? v->scratch + v->bytes : NULL;
    l->scratch_bytes = (size_t)(ampi_round256(v->chunk * l->in) + ampi_round256(l->in * l->out));
    l->scratch_bytes += 2u * (size_t)ampi_round256(n);
    v->bytes += l->scratch_bytes + (size_t)ampi_round256(l->in * l->out); /* w twice */
}
/* The loss of all rows; in its sentences the desc is amp_softmax_cross_entropy's. */
static amp_status ampi_vocabulary_loss(amp_ctx *ctx, ampi_vocabulary *v, const amp_xent_desc *given) {
    amp_xent_desc x = *given;
    amp_status st;
    x.rows = v->l.rows;
    x.classes = v->l.out;
    ctx->inside = "amp_softmax_cross_entropy: ";
    st = ampi_xent_job_of(ctx, &x, &v->loss);
    ctx->inside = NULL;
    return st;
}
static amp_status ampi_vocabulary_of(amp_ctx *ctx, ampi_vocabulary *v, const amp_linear_xent_desc *d) {
    memset(v, 0, sizeof *v);
    AMPI_CHECK_DESC(d);
    AMPI_CHECK_DESC(&d->linear);
    AMPI_TRY(ampi_check_vocabulary(ctx, d));
    v->l = d->linear;
    AMPI_CHECK(v->l.in && v->l.out, "desc.linear.%s is 0", v->l.in ? "out" : "in");
    AMPI_TRY(ampi_vocabulary_loss(ctx, v, &d->xent));
    v->gradients = v->l.dx.data || v->l.dw.data || v->l.dbias.data;
    AMPI_TRY(ampi_vocabulary_dtypes(ctx, v, d->xent.dlogits.dtype));
    ampi_vocabulary_rows(ctx, v, d->chunk);
    v->scratch = (char *)d->scratch;
    ampi_vocabulary_rooms(v);
    return AMP_OK;
}

static amp_status ampi_vocabulary_arrays(amp_ctx *ctx, const ampi_vocabulary *v, const amp_linear_xent_desc *d) {
    const amp_linear_desc *l = &d->linear;
    const amp_xent_job *j = &v->loss;
    size_t nx = l->rows * l->in, nw = l->in * l->out, ny = l->rows * l->out;
    const ampi_extent r[12] = {
        ampi_extent_of("desc.scratch", amp_arr(d->scratch, AMP_F8E4M3), d->scratch_bytes, 0, 1),
        ampi_extent_of("desc.linear.x", v->l.x, nx, 1, 0),
        ampi_extent_of("desc.linear.w", l->w, nw, 1, 0),
        ampi_extent_of("desc.linear.bias", l->bias, l->out, 1, 0),
        ampi_extent_of("desc.linear.dx", v->l.dx, nx, 0, 1),
        ampi_extent_of("desc.linear.dw", l->dw, nw, 0, 1),
        ampi_extent_of("desc.linear.dbias", l->dbias, l->out, 0, 1),
        ampi_extent_of("desc.xent.labels", amp_arr(j->labels, AMP_F8E4M3), j->all * j->label_bytes, 1, 0),
        ampi_extent_of("desc.xent.targets", j->targets, ny, 1, 0),
        ampi_extent_of("desc.xent.weights", j->weights, l->out, 1, 0),
        ampi_extent_of("desc.xent.row_loss", amp_arr(j->row_loss, AMP_F32), j->all, 0, 1),
        ampi_extent_of("desc.xent.loss", amp_arr(j->loss, AMP_F32), 1, 0, 1),
    };
    AMPI_TRY(ampi_check_array(ctx, "desc.linear.x", v->l.x, nx, 1));
    AMPI_TRY(ampi_check_array(ctx, "desc.linear.w", l->w, nw, 1));
    AMPI_TRY(ampi_check_array(ctx, "desc.linear.bias", l->bias, l->out, 0));
    AMPI_TRY(ampi_check_array(ctx, "desc.linear.dx", v->l.dx, nx, 0));
    AMPI_TRY(ampi_check_array(ctx, "desc.linear.dw", l->dw, nw, 0));
    AMPI_TRY(ampi_check_array(ctx, "desc.linear.dbias", l->dbias, l->out, 0));
    AMPI_TRY(ampi_check_array(ctx, "desc.xent.targets", j->targets, ny, 0));
    AMPI_TRY(ampi_check_array(ctx, "desc.xent.weights", j->weights, l->out, 0));
    AMPI_TRY(ampi_check_pointer(ctx, "desc.xent.labels", j->labels, j->label_bytes));
    AMPI_TRY(ampi_check_pointer(ctx, "desc.xent.row_loss", j->row_loss, 4u));
    AMPI_TRY(ampi_check_pointer(ctx, "desc.xent.loss", j->loss, 4u));
    AMPI_CHECK(!v->bytes || (d->scratch && d->scratch_bytes >= v->bytes),
        "desc.scratch has %llu bytes, but %llu are needed", AMPI_ULL(d->scratch ? d->scratch_bytes : 0),
        AMPI_ULL(v->bytes));
    AMPI_CHECK(((uintptr_t)d->scratch & 255u) == 0, "desc.scratch is not aligned to 256 bytes");
    return ampi_check_extents(ctx, r, 12);
}

/* Rows at .. at + n of a matrix with `cols` columns; no data: none. */
static amp_array ampi_rows_of(amp_array a, size_t at, size_t n, size_t cols) {
    if (a.data) a.data = (char *)a.data + at * cols * amp_dtype_size(a.dtype);
    a.count = n * cols;
    return a;
}
/* The layer for n rows of x from `at` on. */
static void ampi_vocabulary_cut(const ampi_vocabulary *v, ampi_layer *layer, size_t at, size_t n) {
    layer->l.rows = n;
    layer->nx = n * v->l.in;
    layer->ny = n * v->l.out;
    layer->l.x = ampi_rows_of(v->l.x, at, n, v->l.in);
}
/* The two layers, for a whole piece. */
static amp_status ampi_vocabulary_layers(amp_ctx *ctx, ampi_vocabulary *v) {
    amp_precision made = v->made;
    amp_linear_desc *l = &v->l;
    ampi_layer *f = &v->forward, *b = &v->backward;
    l->record = &v->made;
    l->y = v->logits;
    AMPI_TRY(ampi_check_linear(ctx, l, &ampi_goal_run, f));
    ampi_vocabulary_cut(v, f, 0, v->chunk);
    AMPI_TRY(ampi_forward_dtypes(ctx, f, &made));
    v->made = made;
    v->fp8 = f->fp8;
    if (f->fp8 && v->gradients) AMPI_TRY(ampi_check_source(ctx, "desc.xent.dlogits", v->dlogits));
    if (!f->fp8) {
        AMPI_TRY(ampi_operand(ctx, l->x, l->rows * l->in, f->want, AMPI_FORWARD, &l->x));
        AMPI_TRY(ampi_operand(ctx, l->w, f->nw, f->want, l->dx.data ? AMPI_BOTH : AMPI_FORWARD, &l->w));
        f->l.x = ampi_rows_of(l->x, 0, v->chunk, l->in);
        f->l.w = l->w;
    }
    *b = *f;
    b->l.dy = v->dlogits;
    b->l.dw = l->dw;
    b->l.dbias = l->dbias;
    if (f->fp8 && v->gradients) AMPI_TRY(ampi_fp8_factors(ctx, b, 1));
    if (f->fp8) b->w.array.data = (char *)l->scratch + l->scratch_bytes;
    return AMP_OK;
}
/* FP8: w is quantised once, to both copies. */
static amp_status ampi_vocabulary_w(amp_ctx *ctx, const ampi_vocabulary *v) {
    const amp_linear_desc *l = &v->l;
    amp_quantize_job w, back;
    if (!v->fp8 || !l->rows) return AMP_OK;
    w = ampi_fp8_cast_w(&v->forward);
    back = ampi_fp8_cast_w(&v->backward);
    w.keep = l->fp8_keep != 0;
    if (l->dx.data && back.dst.data) w.dst = back.dst;
    if (l->dx.data && back.dst_t.data) w.dst_t = back.dst_t;
    return (ctx->b->quantize)(ctx, &w);
}
static amp_status ampi_vocabulary_forward(amp_ctx *ctx, ampi_vocabulary *v, size_t at, size_t n) {
    ampi_layer *f = &v->forward;
    amp_quantize_job x;
    ampi_vocabulary_cut(v, f, at, n);
    AMPI_TRY(ampi_forward_factors(ctx, f));
    if (v->fp8 && n) {
        x = ampi_fp8_cast(&f->l, 0, f->l.x, n, v->l.in);
        x.dst = f->x.array;
        x.keep = f->l.fp8_keep != 0;
        AMPI_TRY((ctx->b->quantize)(ctx, &x));
    }
    return ampi_forward_product(ctx, f, &ampi_goal_run);
}
/* For rows at .. at + n, whose gradient is that of the piece's from row `from` on. */
static amp_status ampi_vocabulary_backward(amp_ctx *ctx, ampi_vocabulary *v, size_t at, size_t from, size_t n) {
    ampi_layer *b = &v->backward;
    amp_quantize_job x, dy;
    ampi_vocabulary_cut(v, b, at, n);
    b->l.dx = ampi_rows_of(v->l.dx, at, n, v->l.in);
    b->l.dy = ampi_rows_of(v->dlogits, from, n, v->l.out);
    AMPI_TRY(ampi_backward_factors(ctx, b));
    AMPI_TRY(ampi_gradient_before_act(ctx, b));
    if (v->fp8 && n) {
        x = ampi_fp8_cast(&b->l, 0, b->l.x, n, v->l.in);
        x.dst_t = b->x.array;
        x.keep = 1;
        dy = ampi_fp8_cast(&b->l, 2, b->l.dy, n, v->l.out);
        if (b->l.dx.data) dy.dst = b->dy.array;
        if (b->l.dw.data) dy.dst_t = b->dy_by_rows.array;
        if (b->l.dw.data) AMPI_TRY((ctx->b->quantize)(ctx, &x));
        if (dy.dst.data || dy.dst_t.data) AMPI_TRY((ctx->b->quantize)(ctx, &dy));
    }
    AMPI_TRY(ampi_backward_products(ctx, b, &ampi_goal_run));
    b->l.accumulate = 1;
    return AMP_OK;
}
/* Would products of n rows be refused? Of the whole layer's rows those of a piece, and the fewer of the last one. */
static amp_status ampi_vocabulary_can_forward(amp_ctx *ctx, ampi_vocabulary *v, size_t n) {
    ampi_vocabulary_cut(v, &v->forward, 0, n);
    AMPI_TRY(ampi_forward_factors(ctx, &v->forward));
    return ampi_forward_product(ctx, &v->forward, &ampi_goal_check);
}
static amp_status ampi_vocabulary_can_backward(amp_ctx *ctx, ampi_vocabulary *v, size_t n) {
    ampi_mark mark = ampi_scope_mark(ctx); /* of a cast of dy */
    amp_status st;
    ampi_vocabulary_cut(v, &v->backward, 0, n);
    st = ampi_backward_factors(ctx, &v->backward);
    if (st == AMP_OK) st = ampi_backward_products(ctx, &v->backward, &ampi_goal_check);
    ampi_scope_pop(ctx, mark);
    return st;
}
static amp_status ampi_vocabulary_can(amp_ctx *ctx, ampi_vocabulary *v) {
    const size_t last = v->chunk ? v->l.rows % v->chunk : 0; /* 0: as many as the others */
    size_t chunk_end = 0, last_end = 0;                      /* the same of the pieces in them */
    if (v->piece) {
        chunk_end = v->chunk % v->piece;
        last_end = last % v->piece;
    }
    AMPI_TRY(ampi_vocabulary_can_forward(ctx, v, v->chunk));
    if (last) AMPI_TRY(ampi_vocabulary_can_forward(ctx, v, last));
    if (!v->gradients) return AMP_OK;
    AMPI_TRY(ampi_vocabulary_can_backward(ctx, v, v->piece));
    if (chunk_end) AMPI_TRY(ampi_vocabulary_can_backward(ctx, v, chunk_end));
    return last_end ? ampi_vocabulary_can_backward(ctx, v, last_end) : AMP_OK;
}
static amp_status ampi_vocabulary_piece(amp_ctx *ctx, ampi_vocabulary *v, size_t at, size_t n) {
    amp_xent_job j = v->loss;
    size_t from, m;
    AMPI_TRY(ampi_vocabulary_forward(ctx, v, at, n));
    j.first = at;
    j.rows = n;
    j.logits = v->logits;
    j.dlogits = v->dlogits;
    j.targets = ampi_rows_of(j.targets, at, n, v->l.out);
    ampi_wrote(ctx, j.loss, sizeof *j.loss);
    ampi_wrote(ctx, j.row_loss, j.all * sizeof *j.row_loss);
    if (n) AMPI_TRY((ctx->b->xent)(ctx, &j));
    if (!v->gradients) return AMP_OK;
    for (from = 0; from == 0 || from < n; from += m) {
        ampi_mark mark = ampi_scope_mark(ctx);
        amp_status st;
        m = n - from < v->piece ? n - from : v->piece;
        st = ampi_vocabulary_backward(ctx, v, at + from, from, m);
        ampi_scope_pop(ctx, mark);
        if (st != AMP_OK || !n) return st;
    }
    return AMP_OK;
}
/* A gradient of 16 bits or 8: into the FP32 scratch before it is added to, and back. */
static amp_status ampi_vocabulary_cast(amp_ctx *ctx, amp_array to, amp_array from, size_t n) {
    static const amp_cast_desc nearest = AMP_ZERO;
    if (!to.data || to.data == from.data) return AMP_OK;
    ampi_wrote_array(ctx, to, n);
    return (ctx->b->cast)(ctx, to, from, n, &nearest);
}
static amp_status ampi_vocabulary_run(amp_ctx *ctx, ampi_vocabulary *v, const amp_linear_desc *given) {
    size_t nw = v->l.in * v->l.out, at, n;
    AMPI_TRY(ampi_vocabulary_layers(ctx, v));
    AMPI_TRY(ampi_vocabulary_can(ctx, v));
    AMPI_TRY(ampi_vocabulary_w(ctx, v));
    if (v->l.accumulate) AMPI_TRY(ampi_vocabulary_cast(ctx, v->l.dw, given->dw, nw));
    if (v->l.accumulate) AMPI_TRY(ampi_vocabulary_cast(ctx, v->l.dbias, given->dbias, v->l.out));
    for (at = 0; at == 0 || at < v->l.rows; at += n) {
        n = v->l.rows - at < v->chunk ? v->l.rows - at : v->chunk;
        AMPI_TRY(ampi_vocabulary_piece(ctx, v, at, n));
        if (!n) break;
    }
    AMPI_TRY(ampi_vocabulary_cast(ctx, given->dw, v->l.dw, nw));
    AMPI_TRY(ampi_vocabulary_cast(ctx, given->dbias, v->l.dbias, v->l.out));
    if (given->record) *given->record = v->made;
    return v->l.rows || !v->loss.loss ? AMP_OK : (ctx->b->zero)(ctx, v->loss.loss, sizeof *v->loss.loss);
}
static amp_status ampi_do_linear_cross_entropy(amp_ctx *ctx, const amp_linear_xent_desc *desc) {
    ampi_vocabulary v;
    ampi_mark mark;
    amp_status st;
    AMPI_TRY(ampi_vocabulary_of(ctx, &v, desc));
    AMPI_TRY(ampi_vocabulary_arrays(ctx, &v, desc));
    AMPI_HAS(gemm);
    AMPI_HAS(xent);
    mark = ampi_scope_mark(ctx);
    st = ampi_vocabulary_run(ctx, &v, &desc->linear);
    ampi_scope_pop(ctx, mark);
    return st;
}
AMP_API amp_status amp_linear_cross_entropy(amp_ctx *ctx, const amp_linear_xent_desc *desc) {
    AMPI_VERB(ctx, linear_cross_entropy, (ctx, desc));
}
static amp_status ampi_do_linear_cross_entropy_bytes(amp_ctx *ctx, size_t *bytes, const amp_linear_xent_desc *desc) {
    ampi_vocabulary v;
    AMPI_CHECK(bytes, "bytes is NULL");
    AMPI_TRY(ampi_vocabulary_of(ctx, &v, desc));
    *bytes = v.bytes;
    return AMP_OK;
}
AMP_API amp_status amp_linear_cross_entropy_bytes(amp_ctx *ctx, size_t *bytes, const amp_linear_xent_desc *desc) {
    AMPI_VERB(ctx, linear_cross_entropy_bytes, (ctx, bytes, desc));
}

