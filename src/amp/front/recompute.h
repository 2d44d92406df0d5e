/* ==== >>front-recompute ==========================================================================================
   Snapshots and dropout.   tests: tests/test_memory.c */

static amp_status ampi_do_snapshot_take(amp_ctx *ctx, amp_snapshot *out, const amp_rng *rng, const amp_scaler *scaler) {
    ampi_region r;
    AMPI_CHECK(out, "out is NULL");
    if (scaler) AMPI_TRY(ampi_check_scaler(ctx, scaler));
    r = ampi_region_now(ctx);
    memset(out, 0, sizeof *out);
    out->policy = r.policy;
    out->low = r.low;
    out->pin = r.pin;
    out->enabled = r.enabled;
    out->cache = r.cache;
    out->outside = r.outside;
    if (rng) out->rng = *rng;
    out->iteration = scaler ? scaler->serial : 0;
    out->weights = ctx->weights;
    return AMP_OK;
}
AMP_API amp_status amp_snapshot_take(amp_ctx *ctx, amp_snapshot *out, const amp_rng *rng, const amp_scaler *scaler) {
    AMPI_VERB(ctx, snapshot_take, (ctx, out, rng, scaler));
}

/* is a scaler of the context still in this iteration? Their numbers are never used twice. */
static int ampi_iteration_lasts(const amp_ctx *ctx, uint64_t iteration) {
    const amp_scaler *s;
    for (s = ctx->scalers; s; s = s->next)
        if (s->serial == iteration) return 1;
    return 0;
}
static amp_status ampi_do_snapshot_begin(amp_ctx *ctx, amp_rng *rng, const amp_snapshot *snapshot) {
    amp_autocast_desc d = AMP_ZERO;
    ampi_region r;
    AMPI_CHECK(snapshot, "snapshot is NULL");
    AMPI_REQUIRE(AMPI_CLEAN(&snapshot->policy), AMP_ERR_UNINIT, "snapshot is not made by amp_snapshot_take");
    AMPI_STAGE(snapshot->weights == ctx->weights,
        "weights have changed since the snapshot: the recomputed forward would not be the same");
    AMPI_STAGE(!snapshot->iteration || ampi_iteration_lasts(ctx, snapshot->iteration),
        "the loss scale has been updated since the snapshot, or its scaler destroyed");
    memset(&r, 0, sizeof r);
    r.policy = snapshot->policy;
    r.low = snapshot->low;
    r.pin = snapshot->pin;
    r.enabled = snapshot->enabled;
    r.cache = snapshot->cache;
    r.outside = snapshot->outside;
    AMPI_TRY(ampi_region_open(ctx, &d, &r));
    if (rng) *rng = snapshot->rng;
    return AMP_OK;
}
AMP_API amp_status amp_snapshot_begin(amp_ctx *ctx, amp_rng *rng, const amp_snapshot *snapshot) {
    AMPI_VERB(ctx, snapshot_begin, (ctx, rng, snapshot));
}

static amp_status ampi_do_dropout(amp_ctx *ctx, const amp_dropout_desc *desc) {
    amp_dropout_job j;
    AMPI_CHECK_DESC(desc);
    AMPI_CHECK(amp_is_finite(desc->p) && desc->p >= 0.0f && desc->p <= 1.0f, "desc.p is %g; it must be in [0, 1]",
        (double)desc->p);
    j = *desc;
    if (j.y.dtype == AMP_AUTO) j.y.dtype = j.x.dtype;
    AMPI_TRY(ampi_check_map(ctx, "desc.y", j.y, "desc.x", j.x, j.count));
    if (j.count == 0) return AMP_OK;
    AMPI_HAS(dropout);
    ampi_wrote_array(ctx, j.y, j.count);
    return (ctx->b->dropout)(ctx, &j);
}
AMP_API amp_status amp_dropout(amp_ctx *ctx, const amp_dropout_desc *desc) { AMPI_VERB(ctx, dropout, (ctx, desc)); }

