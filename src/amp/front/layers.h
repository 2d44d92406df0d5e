/* ---- layers: forward and backward as products, their dtypes, FP8 copies and chains.
   tests: tests/test_products.c, tests/test_layers.c, tests/test_paths.c, tests/test_fp8.c, tests/test_product_table.c
   ---- */

/* A factor of a layer's products, as made by ampi_plain_factor or ampi_fp8_factor. */
typedef struct ampi_factor {
    amp_array array;
    const float *scale;  /* of its FP8 elements, or NULL */
    uint32_t transposed; /* 1: the array is the transpose of the layer's matrix, which is [out, in] for w */
} ampi_factor;
static ampi_factor ampi_plain_factor(amp_array array, uint32_t transposed) {
    ampi_factor f = {array, NULL, transposed};
    return f;
}

/* A layer as one of its verbs works on it. */
typedef struct ampi_layer {
    amp_linear_desc l; /* dtypes known */
    size_t nx, nw, ny; /* elements of [rows, in], [out, in], [rows, out] */
    amp_dtype want;    /* x, w and dy are read in this dtype; AMP_AUTO: as they are */
    const ampi_goal *goal;
    int fp8; /* 1: the factors are FP8 copies in l.scratch; backward's of x and w are transposed */
    ampi_factor x, w, dy, dy_by_rows; /* what the products read; the last for dw, which sums over rows */
} ampi_layer;

static int ampi_chain_fits(const amp_linear_desc *first, const amp_linear_desc *second) {
    return first->rows == second->rows && first->out == second->in;
}

/* Layers of a chain point to each other, and what one makes the next one reads. */
static amp_status ampi_check_before(amp_ctx *ctx, const amp_linear_desc *l) {
    const amp_linear_desc *b = l->before;
    if (!b) return AMP_OK;
    AMPI_REQUIRE(AMPI_CLEAN(b), AMP_ERR_UNINIT, "before is not zero-initialised");
    AMPI_CHECK(b->after == l, "before->after is not this layer: each must point to the other");
    AMPI_CHECK(ampi_chain_fits(b, l), "before makes [%llu,%llu], but this layer reads [%llu,%llu]", AMPI_ULL(b->rows),
        AMPI_ULL(b->out), AMPI_ULL(l->rows), AMPI_ULL(l->in));
    AMPI_CHECK(AMPI_BELOW(b->act, AMP_ACT_COUNT), "before->act is %d", (int)b->act);
    return AMP_OK;
}
static amp_status ampi_check_after(amp_ctx *ctx, const amp_linear_desc *l) {
    const amp_linear_desc *a = l->after;
    if (!a) return AMP_OK;
    AMPI_REQUIRE(AMPI_CLEAN(a), AMP_ERR_UNINIT, "after is not zero-initialised");
    AMPI_CHECK(a->before == l, "after->before is not this layer: each must point to the other");
    AMPI_CHECK(ampi_chain_fits(l, a), "after reads [%llu,%llu], but this layer makes [%llu,%llu]", AMPI_ULL(a->rows),
        AMPI_ULL(a->in), AMPI_ULL(l->rows), AMPI_ULL(l->out));
    return AMP_OK;
}

/* What forward, backward and tuning check alike. */
static amp_status ampi_check_linear(amp_ctx *ctx, const amp_linear_desc *l, const ampi_goal *goal, ampi_layer *out) {
    AMPI_CHECK_DESC(l);
    AMPI_CHECK(AMPI_BELOW(l->act, AMP_ACT_COUNT), "act is %d", (int)l->act);
    AMPI_CHECK(!(l->flags & ~AMPI_GEMM_FLAGS), "flags has an unknown bit");
    AMPI_TRY(ampi_check_before(ctx, l));
    AMPI_TRY(ampi_check_after(ctx, l));
    AMPI_TRY(ampi_check_pin(ctx, l->pin));
    AMPI_CHECK(l->in && l->out, "%s is 0", l->in ? "out" : "in");
    memset(out, 0, sizeof *out);
    out->l = *l;
    out->l.w_in_out = l->w_in_out != 0;
    out->goal = goal;
    out->nx = ampi_span(1, 0, l->rows, l->in, l->in);
    out->nw = ampi_span(1, 0, l->out, l->in, l->in);
    out->ny = ampi_span(1, 0, l->rows, l->out, l->out);
    AMPI_CHECK(out->nx != (size_t)-1 && out->nw != (size_t)-1 && out->ny != (size_t)-1,
        "rows %llu, in %llu or out %llu is too large", AMPI_ULL(l->rows), AMPI_ULL(l->in), AMPI_ULL(l->out));
    return AMP_OK;
}

/* an input left automatic has the dtype that the layer before gave its output */
static amp_status ampi_from(amp_ctx *ctx, const char *name, amp_array *a, const amp_precision *from) {
    if (a->dtype != AMP_AUTO || !a->data) return AMP_OK;
    AMPI_CHECK(from, "%s.dtype is auto, but from is NULL: which layer made it?", name);
    AMPI_STAGE(from->made, "%s.dtype is auto, but the layer that from points to has not run", name);
    a->dtype = from->y;
    return AMP_OK;
}

/* a bias that is an FP32 parameter with a model copy in the product's dtype: that copy */
static amp_array ampi_bias(const amp_ctx *ctx, amp_array bias, amp_dtype want) {
    const amp_params *set = NULL;
    const amp_param_entry *e = NULL;
    size_t at = 0;
    if (bias.data && bias.dtype == AMP_F32 && want != AMP_AUTO) e = ampi_find_weight(ctx, bias.data, &set, &at);
    bias.flags = 0;
    if (e && e->model && e->model_dtype == want) {
        bias.data = (char *)e->model + at * amp_dtype_size(want);
        bias.dtype = want;
    }
    return bias;
}

/* ---- a layer in FP8 ---- */

/* Does its forward quantise? c: the class of the linear operation here. */
static int ampi_wants_fp8(const amp_ctx *ctx, const amp_linear_desc *l, amp_op_class c) {
    const ampi_region *r = ampi_region_of(ctx);
    if (!l->fp8 || l->pin != AMP_AUTO) return 0;
    if (!r || r->outside) return 1;
    if (!r->enabled || r->pin != AMP_AUTO) return 0;
    return r->policy.preset == AMP_PRESET_FP8 && c == AMP_CLASS_LOWER;
}
static amp_dtype ampi_fp8_dtype(const amp_linear_desc *l, size_t which) {
    return which < 2 ? l->fp8->desc.forward : l->fp8->desc.backward;
}
static amp_status ampi_check_fp8(amp_ctx *ctx, const amp_linear_desc *l) {
    AMPI_CHECK(l->fp8->ctx == ctx, "fp8 belongs to a different context");
    AMPI_CHECK(l->fp8->desc.tensors >= 3 && l->fp8_first <= l->fp8->desc.tensors - 3,
        "fp8_first is %llu, but fp8 has %lu tensors: three from there on are needed", AMPI_ULL(l->fp8_first),
        (unsigned long)l->fp8->desc.tensors);
    AMPI_TRY(ampi_check_source(ctx, "x", l->x));
    return ampi_check_source(ctx, "w", l->w);
}
/* The FP8 copy of x, w or dy (number 0, 1 and 2 of the layer's tensors) in the scratch memory, from *at on. */
static ampi_factor ampi_fp8_factor(const amp_linear_desc *l, size_t which, uint32_t transposed, size_t n, size_t *at) {
    char *scratch = (char *)l->scratch;
    ampi_factor f;
    f.array = amp_arrn(scratch ? scratch + *at : NULL, ampi_fp8_dtype(l, which), n);
    f.scale = amp_fp8_inverse_ptr(l->fp8, l->fp8_first + which);
    f.transposed = transposed;
    *at += (size_t)ampi_round256(n);
    return f;
}
static amp_status ampi_fp8_factors(amp_ctx *ctx, ampi_layer *layer, uint32_t backward) {
    const amp_linear_desc *l = &layer->l;
    size_t at = 0;
    layer->fp8 = 1;
    layer->x = ampi_fp8_factor(l, 0, backward, layer->nx, &at);
    layer->w = ampi_fp8_factor(l, 1, backward, layer->nw, &at);
    if (backward) {
        layer->dy = ampi_fp8_factor(l, 2, 0, layer->ny, &at);
        layer->dy_by_rows = ampi_fp8_factor(l, 2, 1, layer->ny, &at);
    }
    AMPI_CHECK(l->scratch && at <= l->scratch_bytes, "scratch has %llu bytes, but the FP8 copies need %llu",
        AMPI_ULL(l->scratch ? l->scratch_bytes : 0), AMPI_ULL(at));
    AMPI_CHECK(((uintptr_t)l->scratch & 15u) == 0, "scratch is not aligned to 16 bytes");
    return AMP_OK;
}
/* Scratch is memory of its own. */
static amp_status ampi_fp8_extents(amp_ctx *ctx, const ampi_layer *layer, int backward) {
    const amp_linear_desc *l = &layer->l;
    ampi_extent r[10];
    size_t n = 5;
    r[0] = ampi_extent_of("scratch", amp_arr(l->scratch, AMP_F8E4M3), l->scratch_bytes, 0, 1);
    r[1] = ampi_extent_of("x", l->x, layer->nx, 1, 0);
    r[2] = ampi_extent_of("w", l->w, layer->nw, 1, 0);
    r[3] = ampi_extent_of("y", l->y, layer->ny, 1, 0);
    r[4] = ampi_saved_extent("aux", l->aux, layer->ny, l->rows, l->out, 1, 0);
    if (backward) {
        r[n++] = ampi_extent_of("dbias", l->dbias, l->out, 1, 0);
        r[n++] = ampi_extent_of("dy", l->dy, layer->ny, 1, 0);
        r[n++] = ampi_extent_of("dx", l->dx, layer->nx, 1, 0);
        r[n++] = ampi_extent_of("dw", l->dw, layer->nw, 1, 0);
        if (l->before) r[n++] = ampi_extent_of("before->dbias", l->before->dbias, l->in, 1, 0);
    } else {
        r[n++] = ampi_extent_of("bias", l->bias, l->out, 1, 0);
    }
    return ampi_check_extents(ctx, r, n);
}
/* The cast of x, w or dy. */
static amp_quantize_job ampi_fp8_cast(
    const amp_linear_desc *l, size_t which, amp_array from, size_t rows, size_t cols) {
    amp_quantize_job j = ampi_fp8_job(l->fp8, l->fp8_first + which, ampi_fp8_dtype(l, which));
    j.src = from;
    j.rows = rows;
    j.cols = cols;
    return j;
}
/* That of w: from the order in which it is stored to the one in which products read it. */
static amp_quantize_job ampi_fp8_cast_w(const ampi_layer *layer) {
    const amp_linear_desc *l = &layer->l;
    const size_t rows = l->w_in_out ? l->in : l->out;
    amp_quantize_job w = ampi_fp8_cast(l, 1, l->w, rows, l->in + l->out - rows);
    if (l->w_in_out == layer->w.transposed)
        w.dst = layer->w.array;
    else
        w.dst_t = layer->w.array;
    return w;
}
static amp_status ampi_fp8_forward(amp_ctx *ctx, const ampi_layer *layer) {
    const amp_linear_desc *l = &layer->l;
    amp_quantize_job x = ampi_fp8_cast(l, 0, l->x, l->rows, l->in), w = ampi_fp8_cast_w(layer);
    if (!layer->ny) return AMP_OK;
    x.dst = layer->x.array;
    x.keep = w.keep = l->fp8_keep != 0;
    AMPI_TRY((ctx->b->quantize)(ctx, &x));
    return (ctx->b->quantize)(ctx, &w);
}
/* For dw = dy^T x both transposed; for dx = dy w the weights. */
static amp_status ampi_fp8_backward(amp_ctx *ctx, const ampi_layer *layer) {
    const amp_linear_desc *l = &layer->l;
    amp_quantize_job x = ampi_fp8_cast(l, 0, l->x, l->rows, l->in), w = ampi_fp8_cast_w(layer);
    amp_quantize_job dy = ampi_fp8_cast(l, 2, l->dy, l->rows, l->out);
    if (!layer->ny || !(l->dw.data || l->dx.data)) return AMP_OK;
    x.dst_t = layer->x.array;
    x.keep = w.keep = 1;
    if (l->dx.data) dy.dst = layer->dy.array;
    if (l->dw.data) dy.dst_t = layer->dy_by_rows.array;
    if (l->dw.data) AMPI_TRY((ctx->b->quantize)(ctx, &x));
    if (l->dx.data) AMPI_TRY((ctx->b->quantize)(ctx, &w));
    return (ctx->b->quantize)(ctx, &dy);
}

/* The dtype of an automatic y, whose product reads its operands in `used`. */
static amp_dtype ampi_linear_output(const amp_ctx *ctx, const ampi_layer *layer, amp_op_class c, amp_dtype used) {
    if (layer->l.pin != AMP_AUTO) return used;
    if (layer->want != AMP_AUTO) return amp_autocast_output(ctx, AMP_OP_LINEAR, used);
    return c == AMP_CLASS_F32_OUT ? AMP_F32 : used;
}

/* Does the scope cast what backward, which may run outside of it, would read as it is? */
static int ampi_scope_casts(const ampi_layer *layer) {
    const amp_linear_desc *l = &layer->l;
    if (l->pin != AMP_AUTO) return 0;
    return ampi_needs_cast(l->x, layer->nx, layer->want) || ampi_needs_cast(l->w, layer->nw, layer->want);
}
/* Forward's dtypes, from the layer before, the scope and pin. */
static amp_status ampi_forward_dtypes(amp_ctx *ctx, ampi_layer *layer, amp_precision *made) {
    amp_linear_desc *l = &layer->l;
    amp_op_class c;
    AMPI_TRY(ampi_from(ctx, "x", &l->x, l->from));
    AMPI_TRY(ampi_wanted(ctx, AMP_OP_LINEAR, l->pin, l->x, l->w, &c, &layer->want));
    made->x = l->x.dtype;
    made->used = layer->want == AMP_AUTO || ampi_is_f8(l->x.dtype) ? l->x.dtype : layer->want;
    made->made = 1;
    if (l->y.data && l->y.dtype == AMP_AUTO) {
        AMPI_CHECK(l->record, "y.dtype is auto, but record is NULL: the choice must be returned");
        l->y.dtype = ampi_linear_output(ctx, layer, c, made->used);
    }
    if (l->aux.data && l->aux.dtype == AMP_AUTO) l->aux.dtype = l->y.dtype;
    made->y = l->y.dtype;
    if (!ampi_wants_fp8(ctx, l, c)) {
        AMPI_CHECK(l->record || !(l->dx.data || l->dw.data) || !ampi_scope_casts(layer),
            "the scope has x and w read as %s, but record is NULL, so backward, for dx or dw, would read them as they "
            "are: point .record to an amp_precision beside the layer",
            amp_dtype_name(layer->want));
        return AMP_OK;
    }
    AMPI_TRY(ampi_check_fp8(ctx, l));
    made->used = l->fp8->desc.forward;
    return ampi_fp8_factors(ctx, layer, 0);
}

/* The factors of a product: a as it is or transposed, b likewise, on top of how they lie in memory. */
static void ampi_put_factors(amp_gemm_desc *g, ampi_factor a, uint32_t trans_a, ampi_factor b, uint32_t trans_b) {
    g->a = a.array;
    g->b = b.array;
    g->scale_a = a.scale;
    g->scale_b = b.scale;
    g->trans_a = trans_a ^ a.transposed;
    g->trans_b = trans_b ^ b.transposed;
}

static amp_status ampi_forward_factors(amp_ctx *ctx, ampi_layer *layer) {
    const amp_linear_desc *l = &layer->l;
    if (layer->fp8) return AMP_OK;
    layer->x = ampi_plain_factor(l->x, 0);
    layer->w = ampi_plain_factor(l->w, l->w_in_out);
    AMPI_TRY(ampi_operand(ctx, l->x, layer->nx, layer->want, AMPI_FORWARD, &layer->x.array));
    AMPI_TRY(ampi_operand(ctx, l->w, layer->nw, layer->want, AMPI_FORWARD, &layer->w.array));
    return layer->ny ? ampi_same_factors(ctx, "x", layer->x.array, "w", layer->w.array) : AMP_OK;
}
/* Y[rows,out] = act(X[rows,in] W^T[in,out] + bias) */
static amp_status ampi_forward_product(amp_ctx *ctx, const ampi_layer *layer, const ampi_goal *goal) {
    const amp_linear_desc *l = &layer->l;
    amp_gemm_desc g = AMP_ZERO;
    ampi_put_factors(&g, layer->x, 0, layer->w, 1);
    g.act = l->act;
    g.m = l->rows;
    g.n = l->out;
    g.k = l->in;
    g.d = l->y;
    g.bias = ampi_bias(ctx, l->bias, layer->want);
    g.aux = l->aux;
    g.flags = l->flags;
    return ampi_gemm_inside(ctx, &g, goal);
}
/* FP8: what can be refused comes before the casts, which move the scales. */
static amp_status ampi_forward_run(amp_ctx *ctx, ampi_layer *layer) {
    AMPI_TRY(ampi_forward_factors(ctx, layer));
    if (layer->fp8 && layer->goal->kind == AMPI_RUN) {
        AMPI_TRY(ampi_fp8_extents(ctx, layer, 0));
        AMPI_TRY(ampi_forward_product(ctx, layer, &ampi_goal_check));
        AMPI_TRY(ampi_fp8_forward(ctx, layer));
    }
    return ampi_forward_product(ctx, layer, layer->goal);
}

/* What the product would refuse, in the layer's own names. */
static amp_status ampi_forward_extents(amp_ctx *ctx, const ampi_layer *layer) {
    const amp_linear_desc *l = &layer->l;
    const ampi_extent r[5] = {
        ampi_extent_of("y", l->y, layer->ny, 0, 1),
        ampi_extent_of("x", l->x, layer->nx, 1, 0),
        ampi_extent_of("w", l->w, layer->nw, 1, 0),
        ampi_extent_of("bias", l->bias, l->out, 1, 0),
        ampi_saved_extent("aux", l->aux, layer->ny, l->rows, l->out, 0, 1),
    };
    return ampi_check_extents(ctx, r, 5);
}
static int ampi_aux_fits(const amp_linear_desc *l) {
    return l->aux.dtype == l->y.dtype || l->aux.dtype == AMP_MASK || ampi_is_f8(l->aux.dtype);
}
static amp_status ampi_forward(amp_ctx *ctx, const amp_linear_desc *desc, const ampi_goal *goal) {
    ampi_layer layer;
    amp_precision made = AMP_ZERO;
    ampi_mark mark;
    amp_status st;
    AMPI_TRY(ampi_check_linear(ctx, desc, goal, &layer));
    AMPI_TRY(ampi_forward_dtypes(ctx, &layer, &made));
    AMPI_TRY(ampi_check_array(ctx, "x", layer.l.x, layer.nx, 1));
    AMPI_TRY(ampi_check_array(ctx, "w", layer.l.w, layer.nw, 1));
    AMPI_TRY(ampi_check_array(ctx, "bias", layer.l.bias, layer.l.out, 0));
    AMPI_TRY(ampi_check_array(ctx, "y", layer.l.y, layer.ny, 1));
    AMPI_TRY(ampi_check_saved(ctx, "aux", layer.l.aux, layer.l.act, layer.ny, layer.l.rows, layer.l.out, 0));
    AMPI_CHECK(!layer.l.aux.data || ampi_aux_fits(&layer.l), "aux is %s, but y is %s",
        amp_dtype_name(layer.l.aux.dtype), amp_dtype_name(layer.l.y.dtype));
    AMPI_TRY(ampi_forward_extents(ctx, &layer));
    mark = ampi_scope_mark(ctx);
    st = ampi_forward_run(ctx, &layer);
    if (st == AMP_OK && desc->record) *desc->record = made;
    ampi_scope_pop(ctx, mark);
    return st;
}

/* What an activation's derivative reads. */
static int ampi_saves_aux(const amp_linear_desc *l) {
    return ampi_act_reads_aux(l->act) || (l->act == AMP_RELU && l->aux.data && l->aux.dtype == AMP_MASK);
}
static amp_array ampi_saved(const amp_linear_desc *l) { return ampi_saves_aux(l) ? l->aux : l->y; }

/* Backward's dtypes: what forward used, by its record (PyTorch's custom_bwd). */
static amp_status ampi_backward_dtypes(amp_ctx *ctx, ampi_layer *layer) {
    amp_linear_desc *l = &layer->l;
    const amp_precision *r = l->record;
    layer->want = l->pin;
    if (r) {
        AMPI_STAGE(r->made, "record is empty: amp_linear_forward has not run");
        layer->want = r->used;
        if (l->x.dtype == AMP_AUTO) l->x.dtype = r->x;
        if (l->y.dtype == AMP_AUTO) l->y.dtype = r->y;
        if (l->aux.dtype == AMP_AUTO) l->aux.dtype = r->y;
        if (l->dy.dtype == AMP_AUTO) l->dy.dtype = r->y;
        if (l->dx.dtype == AMP_AUTO) l->dx.dtype = r->x;
    }
    AMPI_TRY(ampi_from(ctx, "x", &l->x, l->from));
    if (!l->fp8) return AMP_OK;
    if (r && !ampi_is_f8(r->used)) return AMP_OK;
    if (!r && l->pin != AMP_AUTO) return AMP_OK;
    AMPI_TRY(ampi_check_fp8(ctx, l));
    AMPI_TRY(ampi_check_source(ctx, "dy", l->dy));
    return ampi_fp8_factors(ctx, layer, 1);
}

/* What the layer before left for its derivative; data NULL: it has no act. */
static amp_array ampi_saved_before(const amp_linear_desc *l) {
    const amp_linear_desc *b = l->before;
    amp_array none = AMP_ZERO, saved;
    if (!b || b->act == AMP_ACT_NONE) return none;
    saved = ampi_saved(b);
    if (saved.dtype == AMP_AUTO && b->record) saved.dtype = b->record->y;
    return saved;
}
static amp_status ampi_check_backward_chain(amp_ctx *ctx, const ampi_layer *layer) {
    const amp_linear_desc *l = &layer->l, *b = l->before;
    if (!b) return AMP_OK;
    if (b->act != AMP_ACT_NONE)
        AMPI_TRY(ampi_check_saved(ctx, ampi_saves_aux(b) ? "before->aux" : "before->y", ampi_saved_before(l), b->act,
            layer->nx, l->rows, l->in, l->dx.data != NULL));
    AMPI_TRY(ampi_check_array(ctx, "before->dbias", b->dbias, l->in, 0));
    AMPI_CHECK(l->dx.data, "dx is NULL, but before waits for it");
    return AMP_OK;
}
static amp_status ampi_check_backward(amp_ctx *ctx, const ampi_layer *layer) {
    const amp_linear_desc *l = &layer->l;
    AMPI_TRY(ampi_check_backward_chain(ctx, layer));
    AMPI_TRY(ampi_check_array(ctx, "dy", l->dy, layer->ny, 1));
    AMPI_TRY(ampi_check_array(ctx, "dx", l->dx, layer->nx, 0));
    AMPI_TRY(ampi_check_array(ctx, "dw", l->dw, layer->nw, 0));
    AMPI_TRY(ampi_check_array(ctx, "dbias", l->dbias, l->out, 0));
    if (l->act != AMP_ACT_NONE && !l->after)
        AMPI_TRY(ampi_check_saved(
            ctx, ampi_saves_aux(l) ? "aux" : "y", ampi_saved(l), l->act, layer->ny, l->rows, l->out, 1));
    if (l->dx.data) AMPI_TRY(ampi_check_array(ctx, "w", l->w, layer->nw, 1));
    if (l->dw.data) AMPI_TRY(ampi_check_array(ctx, "x", l->x, layer->nx, 1));
    return AMP_OK;
}

/* Factors as forward's product read them, and room for dy in that dtype. */
static amp_status ampi_backward_factors(amp_ctx *ctx, ampi_layer *layer) {
    const amp_linear_desc *l = &layer->l;
    if (layer->fp8) return AMP_OK;
    layer->x = ampi_plain_factor(l->x, 0);
    layer->w = ampi_plain_factor(l->w, l->w_in_out);
    layer->dy = ampi_plain_factor(l->dy, 0);
    if (layer->want != AMP_AUTO) {
        if (l->dw.data) AMPI_TRY(ampi_operand(ctx, l->x, layer->nx, layer->want, AMPI_BACKWARD, &layer->x.array));
        if (l->dx.data) AMPI_TRY(ampi_operand(ctx, l->w, layer->nw, layer->want, AMPI_BACKWARD, &layer->w.array));
        if (layer->ny && l->dy.dtype != layer->want && !ampi_is_f8(l->dy.dtype)) {
            char *to = NULL;
            AMPI_TRY(ampi_scope_room(ctx, layer->ny * amp_dtype_size(layer->want), 0, &to));
            layer->dy.array = amp_arrn(to, layer->want, layer->ny);
        }
    }
    layer->dy_by_rows = layer->dy;
    if (layer->ny && l->dx.data) AMPI_TRY(ampi_same_factors(ctx, "dy", layer->dy.array, "w", layer->w.array));
    if (layer->ny && l->dw.data) AMPI_TRY(ampi_same_factors(ctx, "dy", layer->dy.array, "x", layer->x.array));
    return AMP_OK;
}
/* Do the products read a cast of dy in one of their dtypes? */
static int ampi_casts_dy(const ampi_layer *layer) { return !layer->fp8 && layer->dy.array.data != layer->l.dy.data; }

static amp_status ampi_bias_grad(amp_ctx *ctx, const amp_bias_grad_job *j) {
    if (j->act != AMP_ACT_NONE) ampi_wrote_array(ctx, j->dy, j->rows * j->cols);
    ampi_wrote_array(ctx, j->dbias, j->cols);
    return (ctx->b->bias_grad)(ctx, j);
}
/* dy through the activation, in place, to the products' dtype, and its column sums; a layer with `after` leaves act and
   dbias there. */
static amp_status ampi_gradient_before_act(amp_ctx *ctx, const ampi_layer *layer) {
    const amp_linear_desc *l = &layer->l;
    const amp_array none = AMP_ZERO, dbias = l->after ? none : l->dbias;
    amp_bias_grad_job j = AMP_ZERO;
    amp_cast_desc c = AMP_ZERO;
    int cast = ampi_casts_dy(layer);
    if (!layer->ny) {
        if (!dbias.data || l->accumulate) return AMP_OK;
        ampi_wrote_array(ctx, dbias, l->out);
        return (ctx->b->zero)(ctx, dbias.data, l->out * amp_dtype_size(dbias.dtype));
    }
    j.dy = l->dy;
    j.saved = ampi_saved(l);
    j.rows = l->rows;
    j.cols = j.ld = l->out;
    j.step = 1;
    j.act = l->after ? AMP_ACT_NONE : l->act;
    j.accumulate = l->accumulate != 0;
    if (!cast) j.dbias = dbias;
    if (j.act != AMP_ACT_NONE || j.dbias.data) AMPI_TRY(ampi_bias_grad(ctx, &j));
    if (!cast) return AMP_OK;
    AMPI_TRY((ctx->b->cast)(ctx, layer->dy.array, l->dy, layer->ny, &c));
    ctx->scope->info.casts++;
    if (!dbias.data) return AMP_OK;
    j.dy = layer->dy.array; /* what the products read is what is summed */
    j.act = AMP_ACT_NONE;
    j.dbias = dbias;
    return ampi_bias_grad(ctx, &j);
}

/* dW[out,in] = dY^T[out,rows] X[rows,in], or its transpose, X^T dY */
static amp_status ampi_weight_gradient(amp_ctx *ctx, const ampi_layer *layer, const ampi_goal *goal) {
    const amp_linear_desc *l = &layer->l;
    amp_gemm_desc g = AMP_ZERO;
    if (l->w_in_out)
        ampi_put_factors(&g, layer->x, 1, layer->dy_by_rows, 0);
    else
        ampi_put_factors(&g, layer->dy_by_rows, 1, layer->x, 0);
    g.m = l->w_in_out ? l->in : l->out;
    g.n = l->w_in_out ? l->out : l->in;
    g.k = l->rows;
    g.d = l->dw;
    g.beta = amp_opt(l->accumulate ? 1.0f : 0.0f);
    g.flags = l->flags;
    return ampi_gemm_inside(ctx, &g, goal);
}

/* dX[rows,in] = dY[rows,out] W[out,in], then through the act of the layer before */
static amp_status ampi_input_gradient(amp_ctx *ctx, const ampi_layer *layer, const ampi_goal *goal) {
    const amp_linear_desc *l = &layer->l, *b = l->before;
    amp_gemm_desc g = AMP_ZERO;
    amp_bias_grad_job j = AMP_ZERO;
    ampi_put_factors(&g, layer->dy, 0, layer->w, 0);
    g.m = l->rows;
    g.n = l->in;
    g.k = l->out;
    g.d = l->dx;
    g.flags = l->flags;
    if (b) {
        g.act = b->act;
        g.backward = 1;
        g.aux = ampi_saved_before(l);
        if (!b->accumulate) g.dbias = b->dbias;
    }
    AMPI_TRY(ampi_gemm_inside(ctx, &g, goal));
    if (!b || !b->accumulate || !b->dbias.data || !l->rows || goal->kind != AMPI_RUN) return AMP_OK;
    j.dy = l->dx;
    j.rows = l->rows;
    j.cols = j.ld = l->in;
    j.step = 1;
    j.dbias = b->dbias;
    j.accumulate = 1;
    return ampi_bias_grad(ctx, &j);
}

static amp_status ampi_backward_products(amp_ctx *ctx, const ampi_layer *layer, const ampi_goal *goal) {
    if (layer->l.dw.data) AMPI_TRY(ampi_weight_gradient(ctx, layer, goal));
    return layer->l.dx.data ? ampi_input_gradient(ctx, layer, goal) : AMP_OK;
}
/* The stages: 1 act and dbias, 2 dw, 3 dx. */
static amp_status ampi_check_backward_extents(amp_ctx *ctx, const ampi_layer *layer) {
    const amp_linear_desc *l = &layer->l, *b = l->before;
    const amp_array none = AMP_ZERO;
    int act = l->act != AMP_ACT_NONE && !l->after;
    const amp_array x = layer->fp8 ? l->x : layer->x.array;
    const amp_array w = layer->fp8 ? l->w : layer->w.array;
    int last = ampi_casts_dy(layer) ? 1 : 3; /* 1: its cast is read */
    const char *saved = ampi_saves_aux(l) ? "aux" : "y";
    const ampi_extent r[9] = {
        ampi_extent_of("dy", l->dy, layer->ny, last, act),
        ampi_saved_extent(saved, act ? ampi_saved(l) : none, layer->ny, l->rows, l->out, 1, 0),
        ampi_extent_of("dbias", l->after ? none : l->dbias, l->out, 0, 1),
        ampi_extent_of("x", l->dw.data ? x : none, layer->nx, 2, 0),
        ampi_extent_of("dw", l->dw, layer->nw, 0, 2),
        ampi_extent_of("w", l->dx.data ? w : none, layer->nw, 3, 0),
        ampi_extent_of("dx", l->dx, layer->nx, 0, 3),
        ampi_extent_of("before->dbias", b ? b->dbias : none, l->in, 0, 3),
        ampi_saved_extent("before->aux or y", ampi_saved_before(l), layer->nx, l->rows, l->in, 3, 0),
    };
    return ampi_check_extents(ctx, r, 9);
}
/* Everything that can be refused is looked at before the first write: a call that was corrected starts from the same
   gradients. */
static amp_status ampi_backward_gradients(amp_ctx *ctx, const ampi_layer *layer) {
    if (layer->goal->kind == AMPI_RUN) {
        AMPI_TRY(ampi_check_backward_extents(ctx, layer));
        if (layer->fp8) AMPI_TRY(ampi_fp8_extents(ctx, layer, 1));
        AMPI_TRY(ampi_backward_products(ctx, layer, &ampi_goal_check));
        AMPI_TRY(ampi_gradient_before_act(ctx, layer));
        if (layer->fp8) AMPI_TRY(ampi_fp8_backward(ctx, layer));
    }
    return ampi_backward_products(ctx, layer, layer->goal);
}

static amp_status ampi_backward(amp_ctx *ctx, const amp_linear_desc *desc, const ampi_goal *goal) {
    ampi_layer layer;
    ampi_mark mark;
    amp_status st;
    AMPI_TRY(ampi_check_linear(ctx, desc, goal, &layer));
    AMPI_HAS(gemm);
    AMPI_TRY(ampi_backward_dtypes(ctx, &layer));
    AMPI_TRY(ampi_check_backward(ctx, &layer));
    mark = ampi_scope_mark(ctx);
    st = ampi_backward_factors(ctx, &layer);
    if (st == AMP_OK) st = ampi_backward_gradients(ctx, &layer);
    ampi_scope_pop(ctx, mark);
    return st;
}

AMP_API amp_status amp_linear_forward(amp_ctx *ctx, const amp_linear_desc *desc) {
    AMP_VERB(ctx, "amp_linear_forward", ampi_forward(ctx, desc, &ampi_goal_run));
}
AMP_API amp_status amp_linear_backward(amp_ctx *ctx, const amp_linear_desc *desc) {
    AMP_VERB(ctx, "amp_linear_backward", ampi_backward(ctx, desc, &ampi_goal_run));
}
static amp_status ampi_do_linear_tune(amp_ctx *ctx, const amp_linear_desc *desc) {
    ampi_layer layer;
    amp_precision was = AMP_ZERO;
    amp_status st = AMP_OK;
    AMPI_TRY(ampi_check_linear(ctx, desc, &ampi_goal_tune, &layer));
    if (desc->record) was = *desc->record;
    if (desc->y.data) st = ampi_forward(ctx, desc, &ampi_goal_tune);
    if (st == AMP_OK && (desc->dx.data || desc->dw.data)) st = ampi_backward(ctx, desc, &ampi_goal_tune);
    if (st != AMP_OK && desc->record) *desc->record = was; /* forward wrote it before backward was refused */
    return st;
}
AMP_API amp_status amp_linear_tune(amp_ctx *ctx, const amp_linear_desc *desc) {
    AMPI_VERB(ctx, linear_tune, (ctx, desc));
}

/* ---- sums of columns and activations, apart from products.   tests: tests/test_layers.c ---- */

static amp_status ampi_do_column_sums(
    amp_ctx *ctx, amp_array dst, amp_array src, size_t rows, size_t cols, size_t ld, uint32_t accumulate) {
    amp_bias_grad_job j = AMP_ZERO;
    size_t span;
    if (!ld) ld = cols;
    AMPI_CHECK(ld >= cols, "ld is %llu, less than the %llu columns of a row", AMPI_ULL(ld), AMPI_ULL(cols));
    span = ampi_span(1, 0, rows ? rows : 1, ld, cols);
    AMPI_CHECK(span != (size_t)-1, "rows %llu, cols %llu or ld is too large", AMPI_ULL(rows), AMPI_ULL(cols));
    if (!rows) span = 0;
    AMPI_TRY(ampi_check_array(ctx, "dst", dst, cols, 1));
    AMPI_TRY(ampi_check_array(ctx, "src", src, span, 1));
    AMPI_CHECK(!dst.data || !src.data ||
            !ampi_overlap(dst.data, cols * amp_dtype_size(dst.dtype), src.data, span * amp_dtype_size(src.dtype)),
        "dst overlaps src");
    AMPI_HAS(bias_grad);
    if (!cols || (!rows && accumulate)) return AMP_OK;
    ampi_wrote_array(ctx, dst, cols);
    if (!rows) return (ctx->b->zero)(ctx, dst.data, cols * amp_dtype_size(dst.dtype));
    j.dy = src;
    j.dbias = dst;
    j.rows = rows;
    j.cols = cols;
    j.ld = ld;
    j.step = 1;
    j.accumulate = accumulate != 0;
    return ampi_bias_grad(ctx, &j);
}
AMP_API amp_status amp_column_sums(
    amp_ctx *ctx, amp_array dst, amp_array src, size_t rows, size_t cols, size_t ld, uint32_t accumulate) {
    AMPI_VERB(ctx, column_sums, (ctx, dst, src, rows, cols, ld, accumulate));
}

/* Forward writes y from x, backward dx from dy and what its act reads. */
static amp_status ampi_do_activation(amp_ctx *ctx, const amp_activation_desc *d) {
    amp_activation_job j = AMP_ZERO;
    const int back = d && d->dx.data, aux = d && ampi_act_reads_aux(d->act);
    AMPI_CHECK_DESC(d);
    AMPI_CHECK(d->act != AMP_ACT_NONE && AMPI_BELOW(d->act, AMP_ACT_COUNT), "desc.act is %d", (int)d->act);
    AMPI_CHECK(back || !d->dy.data, "desc.dx.data is NULL, but desc.dy is given");
    j.act = d->act;
    j.count = d->count;
    j.in = back ? d->dy : d->x;
    j.out = back ? d->dx : d->y;
    if (j.out.dtype == AMP_AUTO) j.out.dtype = j.in.dtype;
    if (back) {
        j.saved = aux ? d->x : d->y;
        if (j.saved.dtype == AMP_AUTO) j.saved.dtype = d->x.dtype;
        AMPI_TRY(ampi_check_map(ctx, "desc.dx", j.out, "desc.dy", j.in, j.count));
        AMPI_TRY(ampi_check_map(ctx, "desc.dx", j.out, aux ? "desc.x" : "desc.y", j.saved, j.count));
    } else {
        AMPI_TRY(ampi_check_map(ctx, "desc.y", j.out, "desc.x", j.in, j.count));
    }
    AMPI_HAS(activation);
    ampi_wrote_array(ctx, j.out, j.count);
    return j.count ? (ctx->b->activation)(ctx, &j) : AMP_OK;
}
AMP_API amp_status amp_activation(amp_ctx *ctx, const amp_activation_desc *desc) {
    AMPI_VERB(ctx, activation, (ctx, desc));
}
