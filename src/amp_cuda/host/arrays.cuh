/* ==== >>cuda-arrays ==================================================================================================
   tests: tests/test_arrays.c, tests/test_formats.c */

/* Elements from the i-th on are aligned for 8 at a time. */
static int ampi_cu_aligned(const void *p, amp_dtype t, size_t i) {
    size_t size = amp_dtype_size(t), unit = size == 1u ? 8u : 16u;
    return ((uintptr_t)p + i * size) % unit == 0;
}
/* The vector body that two arrays have in common: elements [head, head + 8 * groups), aligned in both. */
static void ampi_cu_body(
    const void *a, amp_dtype ta, const void *b, amp_dtype tb, uint64_t n, uint64_t *head, uint64_t *groups) {
    size_t h;
    *head = *groups = 0;
    for (h = 0; h < 16u && h < n; h++) {
        if (!ampi_cu_aligned(a, ta, h) || !ampi_cu_aligned(b, tb, h)) continue;
        *head = h;
        *groups = (n - h) / 8u;
        return;
    }
}

static amp_status ampi_cu_cast(amp_ctx *ctx, amp_array dst, amp_array src, size_t n, const amp_cast_desc *desc) {
    ampi_cuda *c = ampi_cu_self(ctx);
    ampi_k_cast_args a = AMP_ZERO;
    uint64_t work;
    AMPI_TRY(ampi_cu_here(c));
    if (dst.dtype == src.dtype && dst.data == src.data) return AMP_OK;
    if (dst.dtype == src.dtype) return ampi_cu_copy_async(ctx, dst.data, src.data, n * amp_dtype_size(dst.dtype));
    a.dst = dst.data;
    a.src = src.data;
    a.dst_type = dst.dtype;
    a.src_type = src.dtype;
    a.n = n;
    a.how = desc->rounding;
    a.saturate = desc->saturate != 0;
    a.seed = desc->seed;
    a.stream = desc->stream;
    a.offset = desc->offset;
    a.keys = ampi_k_keys_of(a.seed);
    if (dst.dtype == AMP_F64 || src.dtype == AMP_F64)
        return ampi_cu_stream(c, ampi_cu_parts(n, AMP_BLOCK), ampi_k_cast_f64, a);
    ampi_cu_body(dst.data, dst.dtype, src.data, src.dtype, n, &a.head, &a.groups);
    work = ampi_cu_parts(a.groups ? a.groups : n, AMP_BLOCK);
    if (dst.dtype == AMP_F32) return ampi_cu_stream(c, work, ampi_k_cast_wide, a);
    return ampi_cu_stream(c, work, ampi_k_cast, a);
}

/* Pieces of a list: parts of a chunk or, of many elements, longer ones, of which each block takes four or more. */
static uint64_t ampi_cu_pieces(const ampi_cuda *c, ampi_k_list *l) {
    const uint64_t enough = 4u * (uint64_t)c->sms * (uint64_t)c->blocks_per_sm;
    for (l->bits = 5u; l->bits && l->chunks << (l->bits - 1u) >= enough;)
        l->bits--;
    return l->chunks << l->bits;
}
/* The next launch of a list: up to AMPI_CU_FEW arrays from *next on. 0 when nothing is left. */
static int ampi_cu_list(ampi_k_list *l, const amp_array *dst, const amp_array *arrays, size_t n, size_t *next) {
    uint64_t before = l->first_chunk + l->chunks;
    memset(l, 0, sizeof *l);
    l->first_chunk = before;
    for (; *next < n && l->n < AMPI_CU_FEW; ++*next) {
        if (arrays[*next].count == 0) continue;
        l->data[l->n] = arrays[*next].data;
        l->count[l->n] = arrays[*next].count;
        l->type[l->n] = (uint8_t)arrays[*next].dtype;
        l->dst[l->n] = (dst ? dst : arrays)[*next].data;
        l->dst_type[l->n] = (uint8_t)(dst ? dst : arrays)[*next].dtype;
        l->chunks += ampi_cu_parts(arrays[*next].count, AMP_CHUNK);
        l->end[l->n++] = (uint32_t)l->chunks;
    }
    return l->n != 0;
}

static void ampi_cu_finite_report(const ampi_k_finite_sums *sums, const amp_array *arrays, amp_finite_report *out) {
    uint64_t key = ~sums->first, chunk = key >> 16;
    size_t a = 0;
    memset(out, 0, sizeof *out);
    out->nan = sums->nan;
    out->inf = sums->inf + sums->overflow;
    if (out->nan + out->inf == 0) return;
    for (; chunk >= ampi_cu_parts(arrays[a].count, AMP_CHUNK); a++)
        chunk -= ampi_cu_parts(arrays[a].count, AMP_CHUNK);
    out->first_array = a;
    out->first_index = (size_t)(chunk * AMP_CHUNK + (key & 0xffffu));
}

static amp_status ampi_cu_finite(amp_ctx *ctx, const amp_array *dst, const amp_array *arrays, size_t n,
    amp_scaler_state *unscale, amp_finite_report *host) {
    ampi_cuda *c = ampi_cu_self(ctx);
    ampi_k_list list = AMP_ZERO;
    size_t next = 0;
    ampi_k_finite_sums *sums = host ? &c->scratch->finite : NULL;
    AMPI_TRY(ampi_cu_here(c));
    if (host) AMPI_TRY(ampi_cu_zero(ctx, sums, sizeof *sums));
    while (ampi_cu_list(&list, dst, arrays, n, &next)) {
        const uint64_t pieces = ampi_cu_pieces(c, &list);
        if (unscale)
            AMPI_TRY(ampi_cu_stream(c, pieces, ampi_k_unscale, list, unscale, sums));
        else
            AMPI_TRY(ampi_cu_stream(c, pieces, ampi_k_finite, list, sums));
    }
    if (!host) return AMP_OK;
    AMPI_TRY(ampi_cu_copy(ctx, &c->mirror->finite, sums, sizeof *sums));
    ampi_cu_finite_report(&c->mirror->finite, arrays, host);
    return AMP_OK;
}

static amp_status ampi_cu_histogram(amp_ctx *ctx, const amp_array *arrays, size_t n, amp_histogram *host) {
    ampi_cuda *c = ampi_cu_self(ctx);
    ampi_k_list list = AMP_ZERO;
    size_t next = 0;
    ampi_k_histogram_bins *m = &c->mirror->histogram, *counted = &c->scratch->histogram;
    AMPI_TRY(ampi_cu_zero(ctx, counted, sizeof *counted));
    while (ampi_cu_list(&list, NULL, arrays, n, &next)) {
        const uint64_t pieces = ampi_cu_pieces(c, &list);
        AMPI_TRY(ampi_cu_share(c, pieces, ampi_k_histogram, list, counted));
    }
    AMPI_TRY(ampi_cu_copy(ctx, m, counted, sizeof *counted));
    memset(host, 0, sizeof *host);
    host->total = m->bins[0];
    host->zero = m->bins[1];
    host->inf = m->bins[2];
    host->nan = m->bins[3];
    memcpy(host->pow2, m->bins + 4, sizeof host->pow2);
    host->amax = ampi_float(m->amax);
    return AMP_OK;
}

/* Is every multiple of `step` elements aligned for 8 at a time? */
static int ampi_cu_wide(const amp_array *x, size_t step) {
    return !x->data || (step % 8u == 0 && ampi_cu_aligned(x->data, x->dtype, 0));
}
static amp_status ampi_cu_quantize_pass(ampi_cuda *c, const amp_quantize_job *j, uint32_t write, uint32_t see) {
    const int turn = write && j->dst_t.data != NULL;
    ampi_k_quantize_args a = AMP_ZERO;
    const size_t cols = turn ? j->cols : 8u; /* else one row */
    uint64_t tiles;
    a.job = *j;
    a.write = write;
    a.see = see;
    a.wide = ampi_cu_wide(&j->src, cols) && ampi_cu_wide(&j->dst, cols);
    a.wide_t = ampi_cu_wide(&j->dst_t, j->rows);
    if (turn) {
        tiles = ampi_cu_parts(j->rows, AMPI_K_DEEP) * ampi_cu_parts(j->cols, AMPI_K_TILE);
        return ampi_cu_share(c, tiles, ampi_k_quantize_turn, a);
    }
    tiles = ampi_cu_parts((uint64_t)j->rows * j->cols, 8u * AMP_BLOCK);
    return ampi_cu_share(c, tiles, ampi_k_quantize, a);
}
/* Current scaling reads the tensor twice, in two launches. */
static amp_status ampi_cu_quantize(amp_ctx *ctx, const amp_quantize_job *j) {
    ampi_cuda *c = ampi_cu_self(ctx);
    const int first = !j->history && !j->keep;
    if (first) AMPI_TRY(ampi_cu_quantize_pass(c, j, 0, 1));
    return ampi_cu_quantize_pass(c, j, 1, !first && !j->keep);
}

