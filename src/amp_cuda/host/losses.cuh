/* ==== >>cuda-losses ==================================================================================================
   tests: tests/test_products.c */

/* A row is read twice: as many at a time as the second-level cache holds twice, but two blocks per SM. */
static unsigned ampi_cu_xent_grid(const ampi_cuda *c, const amp_xent_job *d) {
    uint64_t fit = c->l2 / (2u * d->classes * amp_dtype_size(d->logits.dtype)), least = 2u * (uint64_t)c->sms;
    uint64_t grid = ampi_cu_grid(c, d->rows);
    if (fit < least) fit = least;
    return (unsigned)(grid < fit ? grid : fit);
}
#define AMPI_FORMAT_XENT(T, ...) \
    if (d->logits.dtype == AMP_##T) return ampi_cu_launch(c, grid, ampi_k_xent<AMP_##T>, *d, counts, lanes);
static amp_status ampi_cu_xent_launch(ampi_cuda *c, const amp_xent_job *d, const double *counts, uint32_t lanes) {
    unsigned grid = ampi_cu_xent_grid(c, d);
    AMPI_FORMATS(AMPI_FORMAT_XENT)
    return ampi_cu_launch(c, grid, ampi_k_xent<AMP_F32>, *d, counts, lanes);
}
static amp_status ampi_cu_xent(amp_ctx *ctx, const amp_xent_job *d) {
    ampi_cuda *c = ampi_cu_self(ctx);
    double *counts = c->scratch->counts, *losses = c->scratch->losses;
    uint64_t chunks = ampi_cu_parts(d->all, AMP_CHUNK);
    uint32_t lanes = (uint32_t)(chunks < AMP_LANES ? chunks : AMP_LANES);
    int last = d->first + d->rows == d->all;
    if (!d->sum) AMPI_TRY(ampi_cu_launch(c, lanes, ampi_k_xent_counts, *d, counts));
    AMPI_TRY(ampi_cu_xent_launch(c, d, counts, lanes));
    if (!d->loss || !last) return AMP_OK;
    AMPI_TRY(ampi_cu_launch(c, lanes, ampi_k_xent_lanes, *d, losses));
    return ampi_cu_launch(c, 1, ampi_k_xent_loss, *d, (const double *)counts, (const double *)losses, lanes);
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
    unsigned grid = ampi_cu_grid(c, ampi_cu_parts(groups ? groups : d->count, AMP_BLOCK));
    return ampi_cu_launch(c, grid, ampi_k_dropout, *d, ampi_k_keys_of(d->rng.seed), amp_dropout_threshold(d->p),
        amp_dropout_factor(d->p), head, groups, wide);
}

