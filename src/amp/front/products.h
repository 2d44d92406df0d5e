/* ==== >>front-products ===========================================================================================
   Products, layers, losses.   tests: tests/test_products.c, tests/test_paths.c, tests/test_context.c */

/* What is done with a product once its job is complete. */
typedef enum ampi_goal_kind { AMPI_RUN, AMPI_TUNE, AMPI_EXPLAIN, AMPI_CHECK } ampi_goal_kind; /* CHECK: could it run? */
typedef struct ampi_goal {
    ampi_goal_kind kind;
    char *text; /* AMPI_EXPLAIN: where the sentence goes */
    size_t bytes;
} ampi_goal;
static const ampi_goal ampi_goal_run = {AMPI_RUN, NULL, 0};
static const ampi_goal ampi_goal_tune = {AMPI_TUNE, NULL, 0};
static const ampi_goal ampi_goal_check = {AMPI_CHECK, NULL, 0};

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

/* One matrix of a product. ld and stride are the job's: the user's before ampi_check_matrix, complete afterwards. */
typedef struct ampi_matrix {
    const char *name; /* desc.NAME, also of desc.ldNAME, desc.stride_NAME */
    amp_array array;
    size_t rows, cols; /* as stored */
    size_t *ld, *stride;
    int output;
    size_t *span; /* output: elements from the first to the last of all batches */
} ampi_matrix;

/* Batches of an output follow each other, or lie side by side in the rows. */
static int ampi_batches_overlap(const ampi_matrix *x, size_t batch) {
    if (batch <= 1 || *x->stride >= ampi_span(1, 0, x->rows, *x->ld, x->cols)) return 0;
    return *x->stride < x->cols || ampi_span(1, 0, batch, *x->stride, x->cols) > *x->ld;
}

static amp_status ampi_check_matrix(amp_ctx *ctx, const ampi_matrix *x, size_t batch) {
    const char *letter = x->name + sizeof "desc." - 1;
    size_t packed;
    if (*x->ld == 0) *x->ld = x->cols;
    AMPI_CHECK(*x->ld >= x->cols, "desc.ld%s is %llu, less than the %llu columns of a row", letter, AMPI_ULL(*x->ld),
        AMPI_ULL(x->cols));
    AMPI_CHECK(ampi_product(&packed, x->rows, *x->ld), "%s is too large", x->name);
    AMPI_CHECK(!x->output || *x->stride != AMP_BROADCAST,
        "desc.stride_%s may not be AMP_BROADCAST: batches would overwrite each other", letter);
    if (*x->stride == 0)
        *x->stride = packed;
    else if (*x->stride == AMP_BROADCAST)
        *x->stride = 0;
    AMPI_CHECK(!x->output || !ampi_batches_overlap(x, batch),
        "desc.stride_%s is %llu: batches would overwrite each other", letter, AMPI_ULL(*x->stride));
    *x->span = ampi_span(batch, *x->stride, x->rows, *x->ld, x->cols);
    AMPI_CHECK(*x->span != (size_t)-1, "%s is too large", x->name);
    return ampi_check_array(ctx, x->name, x->array, *x->span, 1);
}

/* The scale that was given for an operand that is not FP8, or NULL. */
static const char *ampi_misplaced_scale(const amp_gemm_desc *d) {
    if (d->scale_a && !ampi_is_f8(d->a.dtype)) return "scale_a";
    if (d->scale_b && !ampi_is_f8(d->b.dtype)) return "scale_b";
    if (ampi_is_f8(d->d.dtype)) return NULL;
    if (d->scale_d) return "scale_d";
    return d->amax_d ? "amax_d" : NULL;
}

/* A job's numbers: defaults, and what can be checked without shapes. */
static amp_status ampi_gemm_numbers(amp_ctx *ctx, amp_gemm_job *j) {
    const char *misplaced = ampi_misplaced_scale(j);
    AMPI_CHECK(AMPI_BELOW(j->act, AMP_ACT_COUNT), "desc.act is %d", (int)j->act);
    AMPI_CHECK(!j->backward || !j->bias.data, "desc.bias is not supported with desc.backward");
    AMPI_CHECK(!misplaced, "desc.%s is for FP8 only", misplaced);
    AMPI_TRY(ampi_check_words(ctx, "desc.alpha_ptr", j->alpha_ptr));
    AMPI_TRY(ampi_check_words(ctx, "desc.beta_ptr", j->beta_ptr));
    AMPI_TRY(ampi_check_words(ctx, "desc.scale_a", j->scale_a));
    AMPI_TRY(ampi_check_words(ctx, "desc.scale_b", j->scale_b));
    AMPI_TRY(ampi_check_words(ctx, "desc.scale_d", j->scale_d));
    AMPI_TRY(ampi_check_words(ctx, "desc.amax_d", j->amax_d));
    AMPI_TRY(ampi_optional(ctx, "desc", "alpha", &j->alpha.value, j->alpha, 1.0f));
    AMPI_TRY(ampi_optional(ctx, "desc", "beta", &j->beta.value, j->beta, j->beta_ptr ? 1.0f : 0.0f));
    j->batch = j->batch ? j->batch : 1;
    j->sum_batches = j->sum_batches && j->batch > 1;
    j->bias_per_row = j->bias_per_row && (j->bias.data || j->dbias.data);
    j->trans_a = j->trans_a != 0;
    j->trans_b = j->trans_b != 0;
    j->backward = j->backward != 0;
    j->flags |= ctx->b->gemm_flags;
    if (j->flags & AMP_GEMM_ORDERED) j->flags &= ~AMPI_GEMM_PERMISSIONS;
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

/* Elements that the matrices of a product span. */
typedef struct ampi_spans { size_t a, b, c, d; } ampi_spans;

/* A job's matrices: leading dimensions and strides. */
static amp_status ampi_gemm_shapes(amp_ctx *ctx, amp_gemm_job *j, ampi_spans *span) {
    const ampi_stored a = ampi_stored_as(j->m, j->k, j->trans_a), b = ampi_stored_as(j->k, j->n, j->trans_b);
    const size_t ldd = j->ldd ? j->ldd : j->n, outputs = amp_gemm_outputs(j);
    ampi_matrix x[4] = {
        {"desc.a", j->a, a.rows, a.cols, &j->lda, &j->stride_a, 0, &span->a},
        {"desc.b", j->b, b.rows, b.cols, &j->ldb, &j->stride_b, 0, &span->b},
        {"desc.d", j->d, j->m, j->n, &j->ldd, &j->stride_d, 1, &span->d},
        {"desc.c", j->c, j->m, j->n, &j->ldc, &j->stride_c, 0, &span->c},
    };
    size_t i;
    if (!j->c.data) { /* d's own contents */
        x[3].array = j->c = j->d;
        if (!j->ldc) j->ldc = ldd;
        if (!j->stride_c) j->stride_c = j->stride_d;
    }
    AMPI_CHECK(!j->dbias.data || (outputs == 1 && ldd == j->n), "desc.dbias needs desc.batch 1 and a packed desc.d");
    for (i = 0; i < 4; i++)
        AMPI_TRY(ampi_check_matrix(ctx, &x[i], i < 2 ? j->batch : outputs));
    AMPI_TRY(ampi_check_array(ctx, "desc.bias", j->bias, amp_gemm_biases(j), 0));
    AMPI_TRY(ampi_check_saved(
        ctx, "desc.aux", j->aux, j->act, span->d, outputs * j->m, j->n, j->backward && j->act != AMP_ACT_NONE));
    return ampi_check_array(ctx, "desc.dbias", j->dbias, amp_gemm_biases(j), 0);
}

/* The job of a desc: what is there is right, and what is not read is not there. */
static amp_status ampi_gemm_resolve(amp_ctx *ctx, amp_gemm_job *j, ampi_spans *span) {
    AMPI_TRY(ampi_gemm_numbers(ctx, j));
    AMPI_TRY(ampi_gemm_shapes(ctx, j, span));
    if (j->backward && j->act == AMP_ACT_NONE) {
        j->backward = 0;
        j->aux.data = NULL;
    }
    j->d_dtype = NULL;
    j->pin = AMP_AUTO;
    if (ampi_nonzero(j->beta.value)) return AMP_OK;
    j->c.data = NULL;
    j->beta_ptr = NULL;
    return AMP_OK;
}

static int ampi_c_is_d(const amp_gemm_job *j) {
    return j->c.data == j->d.data && j->ldc == j->ldd && (amp_gemm_outputs(j) == 1 || j->stride_c == j->stride_d);
}

/* Outputs may overlap nothing, but c may be d. */
static amp_status ampi_gemm_overlaps(amp_ctx *ctx, const amp_gemm_job *j, const ampi_spans *span) {
    const ampi_extent r[7] = {
        ampi_extent_of("desc.d", j->d, span->d, 0, 1),
        ampi_extent_of("desc.a", j->a, j->k ? span->a : 0, 1, 0),
        ampi_extent_of("desc.b", j->b, j->k ? span->b : 0, 1, 0),
        ampi_extent_of("desc.c (only the same matrix is allowed)", j->c, ampi_c_is_d(j) ? 0 : span->c, 1, 0),
        ampi_extent_of("desc.bias", j->bias, amp_gemm_biases(j), 1, 0),
        ampi_saved_extent(
            "desc.aux", j->aux, span->d, amp_gemm_outputs(j) * j->m, j->n, j->backward ? 1 : 0, !j->backward),
        ampi_extent_of("desc.dbias", j->dbias, amp_gemm_biases(j), 0, 1),
    };
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
    if (goal->kind != AMPI_RUN || !j->dbias.data || !amp_gemm_biases(j)) return AMP_OK;
    ampi_wrote_array(ctx, j->dbias, amp_gemm_biases(j));
    return (ctx->b->zero)(ctx, j->dbias.data, amp_gemm_biases(j) * amp_dtype_size(j->dbias.dtype));
}

static void ampi_gemm_wrote(amp_ctx *ctx, const amp_gemm_job *j, const ampi_spans *span) {
    ampi_wrote_array(ctx, j->d, span->d);
    ampi_wrote_array(ctx, j->dbias, amp_gemm_biases(j));
    if (j->backward) return;
    ampi_wrote_array(
        ctx, ampi_unmasked(j->aux), ampi_unmasked_count(j->aux, span->d, amp_gemm_outputs(j) * j->m, j->n));
}
/* A resolved product, whose operands are in the dtype in which they are read. */
static amp_status ampi_gemm_finish(amp_ctx *ctx, amp_gemm_job *j, const ampi_spans *span, const ampi_goal *goal) {
    if (j->m == 0 || j->n == 0) return ampi_gemm_empty(ctx, j, goal);
    if (j->k) AMPI_TRY(ampi_same_factors(ctx, "desc.a", j->a, "desc.b", j->b));
    if (j->c.data) AMPI_TRY(ampi_same_dtype(ctx, "desc.c", j->c, "desc.d", j->d));
    AMPI_TRY(ampi_gemm_overlaps(ctx, j, span));
    if (!ampi_nonzero(j->alpha.value)) ampi_without_product(j);
    if (goal->kind == AMPI_RUN) ampi_gemm_wrote(ctx, j, span);
    switch (goal->kind) {
    case AMPI_RUN: return (ctx->b->gemm)(ctx, j);
    case AMPI_TUNE: return ctx->b->gemm_tune ? (ctx->b->gemm_tune)(ctx, j) : AMP_OK;
    case AMPI_EXPLAIN:
    case AMPI_CHECK: return (ctx->b->gemm_explain)(ctx, goal->text, goal->bytes, j);
    }
    return AMP_OK;
}

/* A product whose operands and dtypes are all given. */
static amp_status ampi_gemm(amp_ctx *ctx, amp_gemm_desc *d, const ampi_goal *goal) {
    ampi_spans span;
    AMPI_HAS(gemm);
    AMPI_TRY(ampi_gemm_resolve(ctx, d, &span));
    return ampi_gemm_finish(ctx, d, &span, goal);
}

/* The same for a verb that is made of products: in its sentences the desc is amp_gemm's. */
static amp_status ampi_gemm_inside(amp_ctx *ctx, amp_gemm_desc *d, const ampi_goal *goal) {
    amp_status st;
    ctx->inside = "amp_gemm: ";
    st = ampi_gemm(ctx, d, goal);
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

/* The dtype of an automatic d is chosen, of an automatic aux follows it. */
static amp_status ampi_gemm_choose(amp_ctx *ctx, amp_gemm_job *j, amp_op op, amp_op_class c, amp_dtype want) {
    float beta = 0;
    AMPI_TRY(ampi_optional(ctx, "desc", "beta", &beta, j->beta, j->beta_ptr ? 1.0f : 0.0f));
    if (j->d.data && j->d.dtype == AMP_AUTO) {
        AMPI_CHECK(j->d_dtype, "desc.d.dtype is auto, but desc.d_dtype is NULL: the choice must be returned");
        AMPI_CHECK(!ampi_nonzero(beta) || j->c.data,
            "desc.d.dtype is auto, but with beta its contents are read: their dtype is needed");
        j->d.dtype = ampi_gemm_output(ctx, j, ampi_nonzero(beta), op, c, want);
    }
    if (j->aux.data && j->aux.dtype == AMP_AUTO) j->aux.dtype = j->d.dtype;
    return AMP_OK;
}

/* amp_gemm and its relatives: in a scope, or with automatic dtypes */
static amp_status ampi_gemm_scoped(amp_ctx *ctx, const amp_gemm_desc *desc, const ampi_goal *goal) {
    const ampi_reader reader = goal->kind == AMPI_EXPLAIN ? AMPI_PLAN : AMPI_FORWARD;
    amp_gemm_job j;
    amp_op op;
    amp_op_class c;
    amp_dtype want;
    ampi_spans span;
    ampi_mark mark;
    amp_status st;
    AMPI_CHECK_DESC(desc);
    AMPI_CHECK(!(desc->flags & ~AMPI_GEMM_FLAGS), "desc.flags has an unknown bit");
    AMPI_HAS(gemm);
    j = *desc;
    op = j.batch > 1 ? AMP_OP_BMM : AMP_OP_MATMUL;
    AMPI_TRY(ampi_wanted(ctx, op, j.pin, j.a, j.b, &c, &want));
    AMPI_TRY(ampi_gemm_choose(ctx, &j, op, c, want));
    AMPI_TRY(ampi_gemm_resolve(ctx, &j, &span));
    mark = ampi_scope_mark(ctx);
    st = ampi_operand(ctx, j.a, span.a, want, reader, &j.a);
    if (st == AMP_OK) st = ampi_operand(ctx, j.b, span.b, want, reader, &j.b);
    if (st == AMP_OK) st = ampi_gemm_finish(ctx, &j, &span, goal);
    if (st == AMP_OK && desc->d_dtype) *desc->d_dtype = j.d.dtype;
    ampi_scope_pop(ctx, mark);
    return st;
}

AMP_API amp_status amp_gemm(amp_ctx *ctx, const amp_gemm_desc *desc) {
    AMP_VERB(ctx, "amp_gemm", ampi_gemm_scoped(ctx, desc, &ampi_goal_run));
}
AMP_API amp_status amp_gemm_tune(amp_ctx *ctx, const amp_gemm_desc *desc) {
    AMP_VERB(ctx, "amp_gemm_tune", ampi_gemm_scoped(ctx, desc, &ampi_goal_tune));
}
static amp_status ampi_do_gemm_explain(amp_ctx *ctx, char *text, size_t bytes, const amp_gemm_desc *desc) {
    const ampi_goal goal = {AMPI_EXPLAIN, text, bytes};
    amp_status st;
    char first;
    AMPI_CHECK(text && bytes, "text is NULL, or bytes is 0");
    first = text[0];
    text[0] = 0;
    st = ampi_gemm_scoped(ctx, desc, &goal);
    if (st != AMP_OK) text[0] = first;
    return st;
}
AMP_API amp_status amp_gemm_explain(amp_ctx *ctx, char *text, size_t bytes, const amp_gemm_desc *desc) {
    AMPI_VERB(ctx, gemm_explain, (ctx, text, bytes, desc));
}

