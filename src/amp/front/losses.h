/* ---- cross-entropy and dropout: their checks.   tests: tests/test_products.c, tests/test_paths.c ---- */

/* What can be checked without arrays. */
static amp_status ampi_check_xent(amp_ctx *ctx, const amp_xent_desc *d) {
    int right = (d->labels != NULL) + (d->labels64 != NULL) + (d->labels8 != NULL) + (d->targets.data != NULL);
    AMPI_CHECK(d->classes, "desc.classes is 0");
    AMPI_CHECK(d->classes <= 0x7fffffffu, "desc.classes is too large");
    AMPI_CHECK(!d->ld || d->ld >= d->classes, "desc.ld is %llu, less than classes %llu", AMPI_ULL(d->ld),
        AMPI_ULL(d->classes));
    AMPI_CHECK(amp_is_finite(d->smoothing) && d->smoothing >= 0.0f && d->smoothing <= 1.0f,
        "desc.smoothing is %g; it must be in [0, 1]", (double)d->smoothing);
    AMPI_CHECK(!d->rows || right || d->softmax, "desc.labels is NULL, and so are labels64, labels8 and targets");
    AMPI_CHECK(right < 2, "%d of desc.labels, labels64, labels8 and targets are given; one is needed", right);
    AMPI_CHECK(!d->softmax || !(right || d->loss || d->row_loss || d->scaler || ampi_nonzero(d->smoothing)),
        "desc.softmax is 1, so labels, targets, loss, row_loss, scaler and smoothing must be 0");
    AMPI_CHECK(!d->softmax || !d->weights.data, "desc.softmax is 1, so weights must be NULL");
    AMPI_CHECK(!d->rows || !d->loss || d->row_loss, "desc.row_loss is NULL, but desc.loss is made from it");
    return d->scaler ? ampi_check_scaler(ctx, d->scaler) : AMP_OK;
}

/* The job's arrays: dlogits may be logits, and overlap them in no other way. */
static amp_status ampi_check_logits(amp_ctx *ctx, const amp_xent_job *j) {
    const size_t span = ampi_span(1, 0, j->rows, j->ld, j->classes);
    const size_t written = j->rows ? span + j->padding : 0; /* the last row's padding, too */
    size_t logits, gradients;
    int same = j->logits.data == j->dlogits.data && j->logits.dtype == j->dlogits.dtype;
    const ampi_extent r[7] = {
        ampi_extent_of("desc.logits", j->logits, span, 1, 0),
        ampi_extent_of("desc.labels", amp_arr(j->labels, AMP_F8E4M3), j->all * j->label_bytes, 2, 0),
        ampi_extent_of("desc.targets", j->targets, span, 2, 0),
        ampi_extent_of("desc.weights", j->weights, j->classes, 2, 0),
        ampi_extent_of("desc.row_loss", amp_arr(j->row_loss, AMP_F32), j->all, 0, 1),
        ampi_extent_of("desc.loss", amp_arr(j->loss, AMP_F32), 1, 0, 1),
        ampi_extent_of("desc.dlogits", j->dlogits, written, 0, same ? 2 : 1), /* 2: not compared with logits */
    };
    AMPI_CHECK(span != (size_t)-1, "desc.rows is too large");
    AMPI_TRY(ampi_check_array(ctx, "desc.logits", j->logits, span, 1));
    AMPI_TRY(ampi_check_array(ctx, "desc.dlogits", j->dlogits, span, 0));
    AMPI_TRY(ampi_check_array(ctx, "desc.targets", j->targets, span, 0));
    AMPI_TRY(ampi_check_array(ctx, "desc.weights", j->weights, j->classes, 0));
    logits = span * amp_dtype_size(j->logits.dtype);
    gradients = j->dlogits.data ? written * amp_dtype_size(j->dlogits.dtype) : 0;
    AMPI_CHECK(same || !ampi_overlap(j->logits.data, logits, j->dlogits.data, gradients),
        "desc.dlogits overlaps desc.logits (the same array of the same dtype is allowed)");
    AMPI_TRY(ampi_check_pointer(ctx, "desc.labels", j->labels, j->label_bytes));
    AMPI_TRY(ampi_check_pointer(ctx, "desc.row_loss", j->row_loss, 4u));
    AMPI_TRY(ampi_check_pointer(ctx, "desc.loss", j->loss, 4u));
    return ampi_check_extents(ctx, r, 7);
}

/* Which of the four says what is right. */
static void ampi_xent_right(amp_xent_job *j, const amp_xent_desc *d) {
    j->targets = d->targets;
    if (d->labels) {
        j->labels = d->labels;
        j->label_bytes = 4u;
    } else if (d->labels64) {
        j->labels = d->labels64;
        j->label_bytes = 8u;
    } else if (d->labels8) {
        j->labels = d->labels8;
        j->label_bytes = 1u;
    }
    j->each = d->targets.data || (d->weights.data && ampi_nonzero(d->smoothing));
}
/* Everything but logits and dlogits. */
static amp_status ampi_xent_job_of(amp_ctx *ctx, const amp_xent_desc *desc, amp_xent_job *j) {
    AMPI_CHECK_DESC(desc);
    AMPI_TRY(ampi_check_xent(ctx, desc));
    AMPI_TRY(ampi_optional(ctx, "desc", "factor", &j->factor, desc->factor, 1.0f));
    AMPI_CHECK(amp_is_finite(j->factor), "desc.factor is not finite");
    j->all = j->rows = desc->rows;
    j->classes = desc->classes;
    j->ld = desc->ld ? desc->ld : desc->classes;
    j->weights = desc->weights;
    ampi_xent_right(j, desc);
    j->loss = desc->loss;
    j->row_loss = desc->row_loss;
    if (desc->scaler && !desc->scaler->off) j->scaler = desc->scaler->state;
    j->smoothing = desc->smoothing;
    j->softmax = desc->softmax != 0;
    j->sum = desc->sum || desc->softmax;
    return AMP_OK;
}
static amp_status ampi_do_softmax_cross_entropy(amp_ctx *ctx, const amp_xent_desc *desc) {
    amp_xent_job j = AMP_ZERO;
    size_t whole;
    AMPI_TRY(ampi_xent_job_of(ctx, desc, &j));
    j.logits = desc->logits;
    j.dlogits = desc->dlogits;
    AMPI_TRY(ampi_from(ctx, "desc.logits", &j.logits, desc->from));
    if (j.dlogits.dtype == AMP_AUTO) j.dlogits.dtype = j.logits.dtype;
    if (j.dlogits.data && ampi_product(&whole, j.rows, j.ld) && j.dlogits.count >= whole) {
        j.padding = j.ld - j.classes;
    }
    AMPI_TRY(ampi_check_logits(ctx, &j));
    ampi_wrote(ctx, j.loss, sizeof *j.loss);
    ampi_wrote(ctx, j.row_loss, j.all * sizeof *j.row_loss);
    ampi_wrote_array(ctx, j.dlogits, j.rows * j.ld);
    if (j.rows == 0) return j.loss ? (ctx->b->zero)(ctx, j.loss, sizeof *j.loss) : AMP_OK;
    AMPI_HAS(xent);
    return (ctx->b->xent)(ctx, &j);
}
AMP_API amp_status amp_softmax_cross_entropy(amp_ctx *ctx, const amp_xent_desc *desc) {
    AMPI_VERB(ctx, softmax_cross_entropy, (ctx, desc));
}

