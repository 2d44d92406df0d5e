/* ==== >>front-products ===========================================================================================
   Products, layers, losses.   tests: tests/test_products.c, tests/test_paths.c, tests/test_context.c */

/* What is done with a product once its job is complete. */
typedef enum ampi_goal_kind { AMPI_RUN, AMPI_TUNE, AMPI_EXPLAIN, AMPI_CHECK } ampi_goal_kind; /* CHECK: could it run? */
typedef struct ampi_goal {
    ampi_goal_kind kind;
    char *text; /* AMPI_EXPLAIN: where the sentence goes */
    size_t bytes;
} ampi_goal;
static const ampi_goal ampi_goal_run = {AMPI_RUN, NULL, 0}, ampi_goal_tune = {AMPI_TUNE, NULL, 0},
                       ampi_goal_check = {AMPI_CHECK, NULL, 0};

/* Elements that a batch of matrices spans: (batch - 1) * stride + (rows - 1) * ld + cols; 0 when empty, (size_t)-1 when
   too many. */
static size_t ampi_span(size_t batch, size_t stride, size_t rows, size_t ld, size_t cols) {
    const size_t most = (size_t)-1 / 8;
    size_t a, b;
    if (!batch || !rows || !cols) return 0;
    if (!ampi_product(&a, batch - 1, stride) || !ampi_product(&b, rows - 1, ld)) return (size_t)-1;
    if (a > most || b > most || cols > most || a + b + cols > most) return (size_t)-1;
    return a + b + cols;
}

static amp_status ampi_same_dtype(amp_ctx *ctx, const char *name_a, amp_array a, const char *name_b, amp_array b) {
    AMPI_REQUIRE(a.dtype == b.dtype, AMP_ERR_UNSUPPORTED, "%s is %s and %s is %s; they must have one dtype", name_a,
        amp_dtype_name(a.dtype), name_b, amp_dtype_name(b.dtype));
    return AMP_OK;
}
/* The two factors of a product: FP8 formats may mix. */
static amp_status ampi_same_factors(amp_ctx *ctx, const char *name_a, amp_array a, const char *name_b, amp_array b) {
    if (ampi_is_f8(a.dtype) && ampi_is_f8(b.dtype)) return AMP_OK;
    return ampi_same_dtype(ctx, name_a, a, name_b, b);
}

static amp_status ampi_check_pin(amp_ctx *ctx, amp_dtype pin) {
    AMPI_CHECK(pin == AMP_AUTO || pin == AMP_F32 || ampi_is_half(pin), "pin is %s; f32, f16 or bf16 is needed",
        amp_dtype_name(pin));
    return AMP_OK;
}

/* ---- one product ---- */

/* One matrix of a product; ld and stride are the desc's before ampi_check_matrix, and complete afterwards. */
typedef struct ampi_matrix {
    const char *name; /* of desc.NAME, desc.ldNAME, desc.stride_NAME */
    amp_array array;
    size_t rows, cols; /* as stored */
    size_t ld, stride, span;
    int output;
} ampi_matrix;

/* Batches of an output follow each other, or lie side by side in the rows. */
static int ampi_batches_overlap(const ampi_matrix *x, size_t batch) {
    if (batch <= 1 || x->stride >= ampi_span(1, 0, x->rows, x->ld, x->cols)) return 0;
    return x->stride < x->cols || ampi_span(1, 0, batch, x->stride, x->cols) > x->ld;
}

static amp_status ampi_check_matrix(amp_ctx *ctx, ampi_matrix *x, size_t batch) {
    char full[16];
    size_t packed;
    if (x->ld == 0) x->ld = x->cols;
    AMPI_CHECK(x->ld >= x->cols, "desc.ld%s is %llu, less than the %llu columns of a row", x->name, AMPI_ULL(x->ld),
        AMPI_ULL(x->cols));
    AMPI_CHECK(ampi_product(&packed, x->rows, x->ld), "desc.%s is too large", x->name);
    AMPI_CHECK(!x->output || x->stride != AMP_BROADCAST,
        "desc.stride_%s may not be AMP_BROADCAST: batches would overwrite each other", x->name);
    if (x->stride == 0)
        x->stride = packed;
    else if (x->stride == AMP_BROADCAST)
        x->stride = 0;
    AMPI_CHECK(!x->output || !ampi_batches_overlap(x, batch),
        "desc.stride_%s is %llu: batches would overwrite each other", x->name, AMPI_ULL(x->stride));
    x->span = ampi_span(batch, x->stride, x->rows, x->ld, x->cols);
    AMPI_CHECK(x->span != (size_t)-1, "desc.%s is too large", x->name);
    snprintf(full, sizeof full, "desc.%s", x->name);
    return ampi_check_array(ctx, full, x->array, x->span, 1);
}

/* The scale that was given for an operand that is not FP8, or NULL. */
static const char *ampi_misplaced_scale(const amp_gemm_desc *d) {
    if (d->scale_a && !ampi_is_f8(d->a.dtype)) return "scale_a";
    if (d->scale_b && !ampi_is_f8(d->b.dtype)) return "scale_b";
    if (ampi_is_f8(d->d.dtype)) return NULL;
    if (d->scale_d) return "scale_d";
    return d->amax_d ? "amax_d" : NULL;
}

/* The job's numbers: defaults, and what can be checked without shapes. */
static amp_status ampi_gemm_numbers(amp_ctx *ctx, const amp_gemm_desc *d, amp_gemm_job *j) {
    const char *misplaced = ampi_misplaced_scale(d);
    memset(j, 0, sizeof *j);
    AMPI_CHECK((uint32_t)d->act <= (uint32_t)AMP_GELU, "desc.act is %d", (int)d->act);
    AMPI_CHECK(!d->backward || !d->bias.data, "desc.bias is not supported with desc.backward");
    AMPI_CHECK(!misplaced, "desc.%s is for FP8 only", misplaced);
    AMPI_TRY(ampi_check_words(ctx, "desc.alpha_ptr", d->alpha_ptr));
    AMPI_TRY(ampi_check_words(ctx, "desc.beta_ptr", d->beta_ptr));
    AMPI_TRY(ampi_check_words(ctx, "desc.scale_a", d->scale_a));
    AMPI_TRY(ampi_check_words(ctx, "desc.scale_b", d->scale_b));
    AMPI_TRY(ampi_check_words(ctx, "desc.scale_d", d->scale_d));
    AMPI_TRY(ampi_check_words(ctx, "desc.amax_d", d->amax_d));
    AMPI_TRY(ampi_optional(ctx, "desc", "alpha", &j->alpha, d->alpha, 1.0f));
    AMPI_TRY(ampi_optional(ctx, "desc", "beta", &j->beta, d->beta, d->beta_ptr ? 1.0f : 0.0f));
    j->m = d->m;
    j->n = d->n;
    j->k = d->k;
    j->batch = d->batch ? d->batch : 1;
    j->reads_c = ampi_nonzero(j->beta) ? 1u : 0u;
    j->alpha_ptr = d->alpha_ptr;
    if (j->reads_c) j->beta_ptr = d->beta_ptr;
    j->scale_a = d->scale_a;
    j->scale_b = d->scale_b;
    j->scale_d = d->scale_d;
    j->amax_d = d->amax_d;
    j->act = d->act;
    j->trans_a = d->trans_a != 0;
    j->trans_b = d->trans_b != 0;
    j->flags = d->flags | ctx->b->gemm_flags;
    if (j->flags & AMP_GEMM_ORDERED) j->flags &= ~AMPI_GEMM_PERMISSIONS;
    j->backward = d->backward && d->act != AMP_ACT_NONE;
    return AMP_OK;
}

/* The shapes of a and b in memory. */
typedef struct ampi_stored { size_t rows, cols; } ampi_stored;
static ampi_stored ampi_stored_as(size_t rows, size_t cols, uint32_t transposed) {
    ampi_stored s;
    s.rows = transposed ? cols : rows;
    s.cols = transposed ? rows : cols;
    return s;
}
static ampi_stored ampi_stored_a(const amp_gemm_desc *d) { return ampi_stored_as(d->m, d->k, d->trans_a); }
static ampi_stored ampi_stored_b(const amp_gemm_desc *d) { return ampi_stored_as(d->k, d->n, d->trans_b); }

/* The job's matrices, with leading dimensions and strides; spans[4] of a, b, c and d. */
static amp_status ampi_gemm_shapes(amp_ctx *ctx, const amp_gemm_desc *d, amp_gemm_job *j, size_t spans[4]) {
    const ampi_stored a = ampi_stored_a(d), b = ampi_stored_b(d);
    size_t ldd = d->ldd ? d->ldd : d->n, i;
    ampi_matrix x[4] = {
        {"a", d->a, a.rows, a.cols, d->lda, d->stride_a, 0, 0},
        {"b", d->b, b.rows, b.cols, d->ldb, d->stride_b, 0, 0},
        {"d", d->d, d->m, d->n, d->ldd, d->stride_d, 0, 1},
        {"c", d->c, d->m, d->n, d->ldc, d->stride_c, 0, 0},
    };
    if (!d->c.data) { /* d's own contents */
        x[3].array = d->d;
        if (!d->ldc) x[3].ld = ldd;
        if (!d->stride_c) x[3].stride = d->stride_d;
    }
    AMPI_CHECK(!d->dbias.data || (j->batch == 1 && ldd == d->n), "desc.dbias needs desc.batch 1 and a packed desc.d");
    for (i = 0; i < 4; i++)
        AMPI_TRY(ampi_check_matrix(ctx, &x[i], j->batch));
    AMPI_TRY(ampi_check_array(ctx, "desc.bias", d->bias, d->n, 0));
    AMPI_TRY(ampi_check_array(ctx, "desc.aux", d->aux, x[2].span, j->backward != 0));
    AMPI_TRY(ampi_check_array(ctx, "desc.dbias", d->dbias, d->n, 0));
    j->a = x[0].array;
    j->b = x[1].array;
    j->d = x[2].array;
    j->c = x[3].array;
    j->bias = d->bias;
    j->dbias = d->dbias;
    if (j->backward || !d->backward) j->aux = d->aux; /* the identity's derivative needs none */
    j->lda = x[0].ld;
    j->ldb = x[1].ld;
    j->ldd = x[2].ld;
    j->ldc = x[3].ld;
    j->stride_a = x[0].stride;
    j->stride_b = x[1].stride;
    j->stride_d = x[2].stride;
    j->stride_c = x[3].stride;
    spans[0] = x[0].span;
    spans[1] = x[1].span;
    spans[2] = x[3].span;
    spans[3] = x[2].span;
    return AMP_OK;
}

static int ampi_c_is_d(const amp_gemm_job *j) {
    return j->c.data == j->d.data && j->ldc == j->ldd && (j->batch == 1 || j->stride_c == j->stride_d);
}

/* Outputs may overlap nothing, but c may be d. */
static amp_status ampi_gemm_overlaps(amp_ctx *ctx, const amp_gemm_job *j, const size_t spans[4]) {
    ampi_extent r[7];
    r[0] = ampi_extent_of("desc.d", j->d, spans[3], 0, 1);
    r[1] = ampi_extent_of("desc.a", j->a, j->k ? spans[0] : 0, 1, 0);
    r[2] = ampi_extent_of("desc.b", j->b, j->k ? spans[1] : 0, 1, 0);
    r[3] = ampi_extent_of(
        "desc.c (only the same matrix is allowed)", j->c, j->reads_c && !ampi_c_is_d(j) ? spans[2] : 0, 1, 0);
    r[4] = ampi_extent_of("desc.bias", j->bias, j->n, 1, 0);
    r[5] = ampi_extent_of("desc.aux", j->aux, spans[3], j->backward ? 1 : 0, !j->backward);
    r[6] = ampi_extent_of("desc.dbias", j->dbias, j->n, 0, 1);
    return ampi_check_extents(ctx, r, 7);
}

/* alpha is 0: a and b are not read, whatever they and the other factors are. */
static void ampi_without_product(amp_gemm_job *j) {
    j->k = 0;
    j->alpha_ptr = j->scale_a = j->scale_b = NULL;
}

/* A product without elements: its column sums are 0. */
static amp_status ampi_gemm_empty(amp_ctx *ctx, const amp_gemm_job *j, const ampi_goal *goal) {
    if (goal->kind == AMPI_EXPLAIN) snprintf(goal->text, goal->bytes, "nothing to do");
    if (goal->kind != AMPI_RUN || !j->dbias.data || !j->n) return AMP_OK;
    return ctx->b->zero(ctx, j->dbias.data, j->n * amp_dtype_size(j->dbias.dtype));
}

/* A product whose operands and dtypes are all given. */
static amp_status ampi_gemm(amp_ctx *ctx, const amp_gemm_desc *desc, const ampi_goal *goal) {
    amp_gemm_job j;
    size_t spans[4] = {0, 0, 0, 0};
    AMPI_HAS(gemm);
    AMPI_TRY(ampi_gemm_numbers(ctx, desc, &j));
    AMPI_TRY(ampi_gemm_shapes(ctx, desc, &j, spans));
    if (j.m == 0 || j.n == 0) return ampi_gemm_empty(ctx, &j, goal);
    if (j.k) AMPI_TRY(ampi_same_factors(ctx, "desc.a", j.a, "desc.b", j.b));
    if (j.reads_c) AMPI_TRY(ampi_same_dtype(ctx, "desc.c", j.c, "desc.d", j.d));
    AMPI_TRY(ampi_gemm_overlaps(ctx, &j, spans));
    if (!ampi_nonzero(j.alpha)) ampi_without_product(&j);
    switch (goal->kind) {
    case AMPI_RUN: return ctx->b->gemm(ctx, &j);
    case AMPI_TUNE: return ctx->b->gemm_tune ? ctx->b->gemm_tune(ctx, &j) : AMP_OK;
    case AMPI_EXPLAIN:
    case AMPI_CHECK: return ctx->b->gemm_explain(ctx, goal->text, goal->bytes, &j);
    }
    return AMP_OK;
}

/* The same for a verb that is made of products: in its sentences the desc is amp_gemm's. */
static amp_status ampi_gemm_inside(amp_ctx *ctx, const amp_gemm_desc *desc, const ampi_goal *goal) {
    amp_status st;
    ctx->inside = "amp_gemm: ";
    st = ampi_gemm(ctx, desc, goal);
    ctx->inside = NULL;
    return st;
}

/* ---- a product in a scope ---- */

/* The dtype that a product's inputs are read in: pin, or what the region wants; AMP_AUTO: as they are. Also the class
   of op. */
static amp_status ampi_wanted(
    amp_ctx *ctx, amp_op op, amp_dtype pin, amp_array a, amp_array b, amp_op_class *c, amp_dtype *want) {
    AMPI_TRY(ampi_check_pin(ctx, pin));
    *c = ampi_region_class(ctx, op, want);
    if (pin != AMP_AUTO) {
        *want = pin;
        return AMP_OK;
    }
    AMPI_REQUIRE(
        *c != AMP_CLASS_BANNED, AMP_ERR_UNSUPPORTED, "%s is banned by the policy of this region", amp_op_name(op));
    if (*want == AMP_AUTO && *c == AMP_CLASS_WIDEST && (a.dtype == AMP_F32 || b.dtype == AMP_F32)) *want = AMP_F32;
    return AMP_OK;
}

/* The dtype of an automatic d: c's where that is read, else as pin and the region say. */
static amp_dtype ampi_gemm_output(
    const amp_ctx *ctx, const amp_gemm_desc *d, int reads_c, amp_op op, amp_op_class c, amp_dtype want) {
    if (reads_c) return d->c.dtype;
    if (want == AMP_AUTO || ampi_is_f8(d->a.dtype)) return c == AMP_CLASS_F32_OUT ? AMP_F32 : d->a.dtype;
    if (d->pin != AMP_AUTO) return want;
    return amp_autocast_output(ctx, op, want);
}

/* As ampi_operand for an explanation: the same dtype and alignment, but no cast runs. */
static amp_status ampi_operand_planned(amp_ctx *ctx, amp_array a, size_t n, amp_dtype want, amp_array *out) {
    const amp_params *set = NULL;
    const amp_param_entry *e;
    size_t at = 0;
    char *room = NULL;
    *out = a;
    if (want == AMP_AUTO || !a.data || n == 0 || a.dtype == want || ampi_is_f8(a.dtype)) return AMP_OK;
    if (amp_dtype_size(a.dtype) == 0 || (a.count && a.count < n)) return AMP_OK; /* the verb will say so */
    e = a.dtype == AMP_F32 ? ampi_find_weight(ctx, a.data, &set, &at) : NULL;
    out->dtype = want;
    if (e && e->model && e->model_dtype == want) {
        out->data = (char *)e->model + at * amp_dtype_size(want);
        return AMP_OK;
    }
    AMPI_TRY(ampi_scope_room(ctx, n * amp_dtype_size(want), 0, &room));
    out->data = room;
    return AMP_OK;
}

/* The elements that a matrix of amp_gemm spans, before defaults are filled in. */
static size_t ampi_matrix_span(size_t batch, size_t stride, size_t rows, size_t ld, size_t cols) {
    if (!ld) ld = cols;
    if (!stride) stride = rows * ld;
    if (!batch) batch = 1;
    return ampi_span(batch, stride == AMP_BROADCAST ? 0 : stride, rows, ld, cols);
}

/* d->a and d->b in the dtype that is wanted. */
static amp_status ampi_gemm_operands(amp_ctx *ctx, amp_gemm_desc *d, amp_dtype want, const ampi_goal *goal) {
    const ampi_stored a = ampi_stored_a(d), b = ampi_stored_b(d);
    size_t na = ampi_matrix_span(d->batch, d->stride_a, a.rows, d->lda, a.cols);
    size_t nb = ampi_matrix_span(d->batch, d->stride_b, b.rows, d->ldb, b.cols);
    if (want == AMP_AUTO || na == (size_t)-1 || nb == (size_t)-1) return AMP_OK; /* ampi_gemm refuses such sizes */
    if (goal->kind == AMPI_EXPLAIN) {
        AMPI_TRY(ampi_operand_planned(ctx, d->a, na, want, &d->a));
        return ampi_operand_planned(ctx, d->b, nb, want, &d->b);
    }
    AMPI_TRY(ampi_operand(ctx, d->a, na, want, &d->a));
    return ampi_operand(ctx, d->b, nb, want, &d->b);
}

/* amp_gemm and its relatives: in a scope, or with automatic dtypes */
static amp_status ampi_gemm_scoped(amp_ctx *ctx, const amp_gemm_desc *desc, const ampi_goal *goal) {
    amp_gemm_desc d;
    amp_op op;
    amp_op_class c;
    amp_dtype want;
    float beta = 0;
    ampi_mark mark;
    amp_status st;
    AMPI_CHECK_DESC(desc);
    AMPI_CHECK(!(desc->flags & ~AMPI_GEMM_FLAGS), "desc.flags has an unknown bit");
    AMPI_TRY(ampi_optional(ctx, "desc", "beta", &beta, desc->beta, desc->beta_ptr ? 1.0f : 0.0f));
    op = desc->batch > 1 ? AMP_OP_BMM : AMP_OP_MATMUL;
    AMPI_TRY(ampi_wanted(ctx, op, desc->pin, desc->a, desc->b, &c, &want));
    d = *desc;
    if (d.d.data && d.d.dtype == AMP_AUTO) {
        AMPI_CHECK(desc->d_dtype, "desc.d.dtype is auto, but desc.d_dtype is NULL: the choice must be returned");
        AMPI_CHECK(!ampi_nonzero(beta) || d.c.data,
            "desc.d.dtype is auto, but with beta its contents are read: their dtype is needed");
        d.d.dtype = ampi_gemm_output(ctx, desc, ampi_nonzero(beta), op, c, want);
    }
    if (d.aux.data && d.aux.dtype == AMP_AUTO) d.aux.dtype = d.d.dtype;
    mark = ampi_scope_mark(ctx);
    st = ampi_gemm_operands(ctx, &d, want, goal);
    if (st == AMP_OK) st = ampi_gemm(ctx, &d, goal);
    if (st == AMP_OK && desc->d_dtype) *desc->d_dtype = d.d.dtype;
    ampi_scope_pop(ctx, mark);
    return st;
}

static amp_status ampi_do_gemm(amp_ctx *ctx, const amp_gemm_desc *desc) {
    return ampi_gemm_scoped(ctx, desc, &ampi_goal_run);
}
AMP_API amp_status amp_gemm(amp_ctx *ctx, const amp_gemm_desc *desc) {
    AMP_VERB(ctx, "amp_gemm", ampi_do_gemm(ctx, desc));
}
static amp_status ampi_do_gemm_tune(amp_ctx *ctx, const amp_gemm_desc *desc) {
    return ampi_gemm_scoped(ctx, desc, &ampi_goal_tune);
}
AMP_API amp_status amp_gemm_tune(amp_ctx *ctx, const amp_gemm_desc *desc) {
    AMP_VERB(ctx, "amp_gemm_tune", ampi_do_gemm_tune(ctx, desc));
}
static amp_status ampi_do_gemm_explain(amp_ctx *ctx, char *text, size_t bytes, const amp_gemm_desc *desc) {
    ampi_goal goal;
    amp_status st;
    char first;
    AMPI_CHECK(text && bytes, "text is NULL, or bytes is 0");
    goal.kind = AMPI_EXPLAIN;
    goal.text = text;
    goal.bytes = bytes;
    first = text[0];
    text[0] = 0;
    st = ampi_gemm_scoped(ctx, desc, &goal);
    if (st != AMP_OK) text[0] = first;
    return st;
}
AMP_API amp_status amp_gemm_explain(amp_ctx *ctx, char *text, size_t bytes, const amp_gemm_desc *desc) {
    AMP_VERB(ctx, "amp_gemm_explain", ampi_do_gemm_explain(ctx, text, bytes, desc));
}

