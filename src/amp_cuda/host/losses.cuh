/* ==== >>cuda-losses ==================================================================================================
   tests: tests/test_products.c */

/* A row is read twice: as many at a time as the second-level cache holds twice, but two blocks per SM. */
static unsigned ampi_cu_xent_grid(const ampi_cuda *c, const amp_xent_job *d) {
    uint64_t fit = c->l2 / (2u * d->classes * amp_dtype_size(d->logits.dtype)), least = 2u * (uint64_t)c->sms;
    uint64_t grid = ampi_cu_grid(c, d->rows);
    if (fit < least) fit = least;
    return (unsigned)(grid < fit ? grid : fit);
}
/* A kernel of cross-entropy; the ticket goes to the one that ends the loss. */
typedef void (*ampi_cu_xent_kernel)(amp_xent_job, const double *, uint32_t, uint32_t *);
static ampi_cu_xent_kernel ampi_cu_xent_any(const amp_xent_job *d) {
    if (d->each) return ampi_k_xent<AMP_AUTO>;
    if (d->logits.dtype == AMP_F16) return ampi_k_xent<AMP_F16>;
    if (d->logits.dtype == AMP_BF16) return ampi_k_xent<AMP_BF16>;
    return d->logits.dtype == AMP_F32 ? ampi_k_xent<AMP_F32> : ampi_k_xent<AMP_AUTO>;
}
static ampi_cu_xent_kernel ampi_cu_xent_few(const amp_xent_job *d) { /* NULL: not for this one */
    if (d->classes > AMP_PART || d->each) return NULL;
    if (d->logits.dtype == AMP_F16) return ampi_k_xent_few<AMP_F16>;
    if (d->logits.dtype == AMP_BF16) return ampi_k_xent_few<AMP_BF16>;
    return d->logits.dtype == AMP_F32 ? ampi_k_xent_few<AMP_F32> : NULL;
}
static amp_status ampi_cu_xent_rows(
    ampi_cuda *c, const amp_xent_job *d, const double *counts, uint32_t lanes, uint32_t *ticket) {
    ampi_cu_xent_kernel few = ampi_cu_xent_few(d);
    const uint64_t rows = d->classes <= AMPI_K_SHORT ? AMP_BLOCK : AMPI_TEAMS; /* at a time */
    if (few) return ampi_cu_share(c, ampi_cu_parts(d->rows, rows), few, *d, counts, lanes, ticket);
    return ampi_cu_launch(c, ampi_cu_xent_grid(c, d), ampi_cu_xent_any(d), *d, counts, lanes, ticket);
}
static amp_status ampi_cu_xent(amp_ctx *ctx, const amp_xent_job *d) {
    ampi_cuda *c = ampi_cu_self(ctx);
    double *counts = c->scratch->counts, *losses = c->scratch->losses;
    uint32_t *ticket = &c->scratch->xent_ticket;
    uint64_t chunks = ampi_cu_parts(d->all, AMP_CHUNK);
    uint32_t lanes = (uint32_t)(chunks < AMP_LANES ? chunks : AMP_LANES);
    const int ends = d->loss && d->first + d->rows == d->all;
    if (!d->sum) AMPI_TRY(ampi_cu_launch(c, lanes, ampi_k_xent_counts, *d, counts));
    AMPI_TRY(ampi_cu_xent_rows(c, d, counts, lanes, ends && chunks == 1u ? ticket : NULL));
    if (!ends || chunks == 1u) return AMP_OK;
    return ampi_cu_launch(c, lanes, ampi_k_xent_losses, *d, (const double *)counts, losses, ticket);
}
/* Elements before the groups of eight, which begin where the random words' groups of four do: at the first such place
   that is aligned in both arrays (*wide is 1) or, if none is, at the first. */
static uint64_t ampi_cu_dropout_head(const amp_dropout_job *d, int *wide) {
    uint64_t first = (0u - d->rng.offset) & 3u, head = first, h;
    *wide = 0;
    for (h = first; h < 8u && !*wide; h += 4u) {
        *wide = ampi_cu_aligned(d->x.data, d->x.dtype, h) && ampi_cu_aligned(d->y.data, d->y.dtype, h);
        if (*wide) head = h;
    }
    return head < d->count ? head : d->count;
}
static amp_status ampi_cu_dropout(amp_ctx *ctx, const amp_dropout_job *d) {
    ampi_cuda *c = ampi_cu_self(ctx);
    int wide = 0;
    uint64_t head = ampi_cu_dropout_head(d, &wide), groups = (d->count - head) / 8u;
    return ampi_cu_stream(c, ampi_cu_parts(groups ? groups : d->count, AMP_BLOCK), ampi_k_dropout, *d,
        ampi_k_keys_of(d->rng.seed), amp_dropout_threshold(d->p), amp_dropout_factor(d->p), head, groups, wide);
}

