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

/* An array of a product. ld and stride are the job's: the user's before ampi_check_matrix, complete afterwards. */
typedef struct ampi_matrix {
    const char *name; /* desc.NAME, also of desc.ldNAME, desc.stride_NAME */
    amp_array *array; /* the job's */
    size_t batch;
    size_t rows, cols; /* as stored */
    size_t *ld, *stride;
    int required, output;
    const amp_act *act; /* it is kept for the backward of this act, so it may be a mask; NULL: neither */
    size_t span;        /* elements from the first to the last of all batches */
} ampi_matrix;
/* c after d, whose it may be; aux after d, whose layout it has */
enum {
    AMPI_MATRIX_A,
    AMPI_MATRIX_B,
    AMPI_MATRIX_D,
    AMPI_MATRIX_C,
    AMPI_MATRIX_BIAS,
    AMPI_MATRIX_DBIAS,
    AMPI_MATRIX_AUX,
    AMPI_MATRICES
};

/* Batches of an output follow each other, or lie side by side in the rows. */
static int ampi_batches_overlap(const ampi_matrix *x) {
    if (x->batch <= 1 || *x->stride >= ampi_span(1, 0, x->rows, *x->ld, x->cols)) return 0;
    return *x->stride < x->cols || ampi_span(1, 0, x->batch, *x->stride, x->cols) > *x->ld;
}

static amp_status ampi_check_matrix(amp_ctx *ctx, ampi_matrix *x) {
    const char *letter = x->name + sizeof "desc." - 1;
    size_t packed;
    if (!x->required && !x->array->data) return AMP_OK;
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
    AMPI_CHECK(!x->output || !ampi_batches_overlap(x), "desc.stride_%s is %llu: batches would overwrite each other",
        letter, AMPI_ULL(*x->stride));
    x->span = ampi_span(x->batch, *x->stride, x->rows, *x->ld, x->cols);
    AMPI_CHECK(x->span != (size_t)-1, "%s is too large", x->name);
    if (!x->act) return ampi_check_array(ctx, x->name, *x->array, x->span, x->required);
    return ampi_check_saved(ctx, x->name, *x->array, *x->act, x->span, x->batch * x->rows, x->cols, x->required);
}

/* A desc becomes a job in place, in three steps: numbers, dtypes, arrays. First the numbers: defaults, and what can be
   checked without dtypes. */
static amp_status ampi_gemm_numbers(amp_ctx *ctx, amp_gemm_job *j) {
    AMPI_HAS(gemm);
    AMPI_CHECK(AMPI_BELOW(j->act, AMP_ACT_COUNT), "desc.act is %d", (int)j->act);
    AMPI_CHECK(!j->backward || !j->bias.data, "desc.bias is not supported with desc.backward");
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

/* The dtypes, by pin and the region: *want, in which a and b are read (AMP_AUTO: as they are); of an automatic d, which
   is c's where that is read; of an automatic aux, which is d's. */
static amp_status ampi_gemm_dtypes(amp_ctx *ctx, amp_gemm_job *j, amp_dtype *want) {
    const amp_op op = j->batch > 1 ? AMP_OP_BMM : AMP_OP_MATMUL;
    const int reads_c = ampi_nonzero(j->beta.value);
    amp_op_class c;
    AMPI_TRY(ampi_wanted(ctx, op, j->pin, j->a, j->b, &c, want));
    if (j->d.data && j->d.dtype == AMP_AUTO) {
        AMPI_CHECK(j->d_dtype, "desc.d.dtype is auto, but desc.d_dtype is NULL: the choice must be returned");
        AMPI_CHECK(
            !reads_c || j->c.data, "desc.d.dtype is auto, but with beta its contents are read: their dtype is needed");
        if (reads_c)
            j->d.dtype = j->c.dtype;
        else if (*want == AMP_AUTO || ampi_is_f8(j->a.dtype))
            j->d.dtype = c == AMP_CLASS_F32_OUT ? AMP_F32 : j->a.dtype;
        else
            j->d.dtype = j->pin != AMP_AUTO ? *want : amp_autocast_output(ctx, op, *want);
    }
    if (j->aux.data && j->aux.dtype == AMP_AUTO) j->aux.dtype = j->d.dtype;
    return AMP_OK;
}

/* Numbers in memory: aligned, and those of FP8 only where there is FP8. */
static amp_status ampi_check_scalars(amp_ctx *ctx, const amp_gemm_job *j) {
    const struct {
        const char *name;
        const float *p;
        const amp_array *of; /* it is for FP8 elements of this array; NULL: for any */
    } scalar[6] = {
        {"desc.alpha_ptr", j->alpha_ptr, NULL},
        {"desc.beta_ptr", j->beta_ptr, NULL},
        {"desc.scale_a", j->scale_a, &j->a},
        {"desc.scale_b", j->scale_b, &j->b},
        {"desc.scale_d", j->scale_d, &j->d},
        {"desc.amax_d", j->amax_d, &j->d},
    };
    size_t i;
    if (!j->alpha_ptr && !j->beta_ptr && !j->scale_a && !j->scale_b && !j->scale_d && !j->amax_d) return AMP_OK;
    for (i = 0; i < 6; i++) {
        const int fits = !scalar[i].p || !scalar[i].of || ampi_is_f8(scalar[i].of->dtype);
        AMPI_CHECK(fits, "%s is for FP8 only", scalar[i].name);
        AMPI_TRY(ampi_check_words(ctx, scalar[i].name, scalar[i].p));
        AMPI_CHECK(i == 5 || !j->amax_d || scalar[i].p != j->amax_d, "desc.amax_d is %s", scalar[i].name);
    }
    return AMP_OK;
}

/* The arrays, x, get their leading dimensions and strides; a c that is not given is d. All are checked, and what is not
   read is not there afterwards. */
static amp_status ampi_gemm_arrays(amp_ctx *ctx, amp_gemm_job *j, ampi_matrix x[AMPI_MATRICES]) {
    size_t i;
    if (!j->c.data) {
        j->c = j->d;
        if (!j->ldc) j->ldc = j->ldd;
        if (!j->stride_c) j->stride_c = j->stride_d;
    }
    for (i = 0; i < AMPI_MATRICES; i++)
        AMPI_TRY(ampi_check_matrix(ctx, &x[i]));
    AMPI_CHECK(!j->dbias.data || (x[AMPI_MATRIX_D].batch == 1 && j->ldd == j->n),
        "desc.dbias needs desc.batch 1 and a packed desc.d");
    if (j->act == AMP_ACT_NONE && j->backward) {
        j->backward = 0;
        j->aux.data = NULL;
    }
    if (!ampi_nonzero(j->beta.value)) {
        j->c.data = NULL;
        j->ldc = j->ldd;
        j->stride_c = j->stride_d;
        j->beta_ptr = NULL;
    }
    j->d_dtype = NULL;
    j->pin = AMP_AUTO;
    return AMP_OK;
}

/* Outputs may overlap nothing, but c may be d. */
static amp_status ampi_gemm_overlaps(
    amp_ctx *ctx, const amp_gemm_job *j, const ampi_matrix x[AMPI_MATRICES], ampi_extent r[AMPI_MATRICES + 1]) {
    const int one = x[AMPI_MATRIX_D].batch == 1 || j->stride_c == j->stride_d;
    size_t i;
    for (i = 0; i < AMPI_MATRICES; i++)
        r[i] = ampi_saved_extent(
            x[i].name, *x[i].array, x[i].span, x[i].batch * x[i].rows, x[i].cols, !x[i].output, x[i].output);
    r[AMPI_MATRIX_C].name = "desc.c (only the same matrix is allowed)";
    if (j->c.data == j->d.data && j->ldc == j->ldd && one) r[AMPI_MATRIX_C].bytes = 0;
    r[AMPI_MATRICES] = ampi_extent_of("desc.amax_d", amp_arr(j->amax_d, AMP_F32), 1, 0, 1);
    return ampi_check_extents(ctx, r, AMPI_MATRICES + 1);
}

/* A product without elements: its column sums are 0. */
static amp_status ampi_gemm_empty(amp_ctx *ctx, const amp_gemm_job *j, const ampi_goal *goal) {
    const size_t bytes = j->dbias.data ? amp_gemm_biases(j) * amp_dtype_size(j->dbias.dtype) : 0;
    if (goal->kind == AMPI_EXPLAIN) snprintf(goal->text, goal->bytes, "nothing to do");
    if (goal->kind != AMPI_RUN || !bytes) return AMP_OK;
    ampi_wrote(ctx, j->dbias.data, bytes);
    return (ctx->b->zero)(ctx, j->dbias.data, bytes);
}

/* A product whose numbers and dtypes are known; a and b are read as `want`. */
static amp_status ampi_gemm(amp_ctx *ctx, amp_gemm_job *j, amp_dtype want, const ampi_goal *goal) {
    const ampi_reader reader = goal->kind == AMPI_EXPLAIN ? AMPI_PLAN : AMPI_FORWARD;
    const size_t rows_a = j->trans_a ? j->k : j->m; /* as stored; the other extent is its columns */
    const size_t rows_b = j->trans_b ? j->n : j->k;
    const size_t outputs = amp_gemm_outputs(j), biases = amp_gemm_biases(j);
    const int reads_aux = j->backward && j->act != AMP_ACT_NONE;
    size_t line = 0, lines = 0; /* of a bias: one packed row */
    ampi_matrix x[AMPI_MATRICES] = {
        {"desc.a", &j->a, j->batch, rows_a, j->m + j->k - rows_a, &j->lda, &j->stride_a, 1, 0, NULL, 0},
        {"desc.b", &j->b, j->batch, rows_b, j->n + j->k - rows_b, &j->ldb, &j->stride_b, 1, 0, NULL, 0},
        {"desc.d", &j->d, outputs, j->m, j->n, &j->ldd, &j->stride_d, 1, 1, NULL, 0},
        {"desc.c", &j->c, outputs, j->m, j->n, &j->ldc, &j->stride_c, 1, 0, NULL, 0},
        {"desc.bias", &j->bias, 1, 1, biases, &line, &lines, 0, 0, NULL, 0},
        {"desc.dbias", &j->dbias, 1, 1, biases, &line, &lines, 0, 1, NULL, 0},
        {"desc.aux", &j->aux, outputs, j->m, j->n, &j->ldd, &j->stride_d, reads_aux, !j->backward, &j->act, 0},
    };
    ampi_extent r[AMPI_MATRICES + 1];
    size_t i;
    AMPI_TRY(ampi_check_scalars(ctx, j));
    AMPI_TRY(ampi_gemm_arrays(ctx, j, x));
    for (i = AMPI_MATRIX_A; i <= AMPI_MATRIX_B; i++)
        AMPI_TRY(ampi_operand(ctx, *x[i].array, x[i].span, want, reader, x[i].array));
    if (j->m == 0 || j->n == 0) return ampi_gemm_empty(ctx, j, goal);
    if (j->k) AMPI_TRY(ampi_same_factors(ctx, "desc.a", j->a, "desc.b", j->b));
    if (j->c.data) AMPI_TRY(ampi_same_dtype(ctx, "desc.c", j->c, "desc.d", j->d));
    AMPI_TRY(ampi_gemm_overlaps(ctx, j, x, r));
    if (!ampi_nonzero(j->alpha.value)) { /* a and b are not read, whatever they and the other factors are */
        j->k = 0;
        j->alpha_ptr = j->scale_a = j->scale_b = NULL;
    }
    for (i = 0; i <= AMPI_MATRICES && goal->kind == AMPI_RUN; i++)
        if (r[i].write) ampi_wrote(ctx, r[i].data, r[i].bytes);
    switch (goal->kind) {
    case AMPI_RUN: return (ctx->b->gemm)(ctx, j);
    case AMPI_TUNE: return ctx->b->gemm_tune ? (ctx->b->gemm_tune)(ctx, j) : AMP_OK;
    case AMPI_EXPLAIN:
    case AMPI_CHECK: return (ctx->b->gemm_explain)(ctx, goal->text, goal->bytes, j);
    }
    return AMP_OK;
}

/* A product of a layer, whose dtypes are given: in its sentences the desc is amp_gemm's. */
static amp_status ampi_gemm_inside(amp_ctx *ctx, amp_gemm_desc *d, const ampi_goal *goal) {
    amp_status st;
    ctx->inside = "amp_gemm: ";
    st = ampi_gemm_numbers(ctx, d);
    if (st == AMP_OK) st = ampi_gemm(ctx, d, AMP_AUTO, goal);
    ctx->inside = NULL;
    return st;
}

/* amp_gemm and its relatives: in a scope, or with automatic dtypes */
static amp_status ampi_gemm_scoped(amp_ctx *ctx, const amp_gemm_desc *desc, const ampi_goal *goal) {
    amp_gemm_job j;
    amp_dtype want;
    ampi_mark mark;
    amp_status st;
    AMPI_CHECK_DESC(desc);
    AMPI_CHECK(!(desc->flags & ~AMPI_GEMM_FLAGS), "desc.flags has an unknown bit");
    j = *desc;
    AMPI_TRY(ampi_gemm_numbers(ctx, &j));
    AMPI_TRY(ampi_gemm_dtypes(ctx, &j, &want));
    mark = ampi_scope_mark(ctx);
    st = ampi_gemm(ctx, &j, want, goal);
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

