/* ==== >>cpu-products =============================================================================================
   tests: tests/test_products.c, tests/test_paths.c
   A task is a block of at most AMPI_MC x AMPI_NC of one batch's D, over all of k in steps of AMPI_KC: operands are
   widened to float while they are packed, tiles are accumulated in w->c. How D is cut into blocks changes no bit: an
   element of D depends on k only. (Another kind of tile, of half-precision operands say, would come with a pack of its
   own.) Which loop runs, the first row that fits:
       n = 1, a D without gaps           that column is the only row of the transposed product: the next row
       m <= AMPI_FEW, not ordered, and   ampi_gemm_few: B is read where it lies, by dots where it is transposed, else
       B transposed, or not small        by sums of its rows
       small: a block reads at most      ampi_small_product: nothing is packed but a transposed B and what is no float
       AMPI_SMALL numbers of A and B
       all others (n = 3 of a large A)   tiles of kn->mr x kn->nr; what is missing of the last ones is zeros */

typedef struct ampi_gemm_blocks { /* a product, cut for the pool */
    ampi_cpu *c;
    const amp_gemm_job *d;
    size_t blocks_m, blocks_n;
    size_t rows, cols; /* of a block */
} ampi_gemm_blocks;

/* The smallest tile for this many rows, or the largest. */
static size_t ampi_tile_for(const ampi_kernels *kn, size_t rows) {
    size_t t = 0;
    while (t < 3 && kn->mr[t + 1] >= rows && kn->mr[t + 1])
        t++;
    return t;
}

/* Part of a matrix to be packed: op(X)[r0 .. r0+rows, k0 .. k0+depth]. */
typedef struct ampi_panel {
    amp_array x;
    size_t first, ld;
    int across; /* rows of the strips are contiguous in memory (X is stored [k][row]), else k is */
    size_t r0, rows, k0, depth;
} ampi_panel;

static void ampi_copy_strip(float *to, const float *from, size_t width, size_t rows) { /* zeros after the rows */
    size_t e;
    if (rows < width) {
        memset(to, 0, width * sizeof *to);
        memcpy(to, from, rows * sizeof *to);
    } else if (width % 8) {
        memcpy(to, from, width * sizeof *to);
    } else {
        for (e = 0; e < width; e += 8)
            memcpy(to + e, from + e, 8 * sizeof *to);
    }
}
static void ampi_fetch_line(const ampi_panel *p, size_t at, size_t n) {
    size_t e, line = 64 / amp_dtype_size(p->x.dtype);
    for (e = 0; e < n; e += line)
        AMPI_PREFETCH(ampi_at(p->x, at + e));
}
static void ampi_pack_across(const ampi_kernels *kn, float *to, const ampi_panel *p, size_t width, float *row) {
    size_t k, s;
    for (k = 0; k < p->depth; k++) {
        size_t at = p->first + (p->k0 + k) * p->ld + p->r0;
        if (k + 1 < p->depth) ampi_fetch_line(p, at + p->ld, p->rows);
        kn->widen[p->x.dtype](row, ampi_at(p->x, at), p->rows);
        for (s = 0; s < p->rows; s += width)
            ampi_copy_strip(to + s * p->depth + k * width, row + s, width, p->rows - s);
    }
}
static void ampi_pack_along(const ampi_kernels *kn, float *to, const ampi_panel *p, size_t width, float *row) {
    size_t s, r, k, e, done, depth = p->depth, first = p->first + p->r0 * p->ld + p->k0;
    const size_t n = ampi_least(4, width);
    for (s = 0; s < p->rows; s += width)
        for (done = 0; done < width; done += n) { /* n rows at a time, the last ones of 6 for the second time */
            const float *from = NULL;
            float *t;
            size_t ld = depth;
            r = ampi_least(done, width - n);
            t = to + s * depth + r;
            if (n == 4 && s + r + 4 <= p->rows) from = ampi_in_place(p->x, first + (s + r) * p->ld);
            if (from) ld = p->ld;
            for (e = 0; e < 4; e++) {
                size_t i = s + r + e, at = first + i * p->ld;
                if (i + 4 < p->rows) ampi_fetch_line(p, at + 4 * p->ld, depth);
                if (from) continue;
                if (i < p->rows && e < n)
                    kn->widen[p->x.dtype](row + e * depth, ampi_at(p->x, at), depth);
                else
                    memset(row + e * depth, 0, depth * sizeof *row);
            }
            if (n == 4) {
                (kn->pack4)(t, width, from ? from : row, ld, depth);
                continue;
            }
            for (k = 0; k < depth; k++)
                for (e = 0; e < n; e++)
                    t[k * width + e] = row[e * depth + k];
        }
}
/* Packs a panel into strips of `width` rows, [strip][k][width], with zeros after the last row. */
static void ampi_pack_strips(const ampi_kernels *kn, float *to, const ampi_panel *p, size_t width, float *row) {
    if (p->across)
        ampi_pack_across(kn, to, p, width, row);
    else
        ampi_pack_along(kn, to, p, width, row);
}
/* The same for the rows of A: as many strips of the largest tile as there are, and a narrower one for the rest. */
static void ampi_pack_rows(const ampi_kernels *kn, float *to, const ampi_panel *p, float *row) {
    size_t full = p->rows / kn->mr[0] * kn->mr[0];
    ampi_panel part = *p;
    part.rows = full;
    if (full) ampi_pack_strips(kn, to, &part, kn->mr[0], row);
    part.r0 += full;
    part.rows = p->rows - full;
    if (part.rows) ampi_pack_strips(kn, to + full * p->depth, &part, kn->mr[ampi_tile_for(kn, part.rows)], row);
}

/* How many rows that makes, with those of zeros. */
static size_t ampi_packed_rows(const ampi_kernels *kn, size_t rows) {
    size_t full = rows / kn->mr[0] * kn->mr[0];
    return rows == full ? rows : full + kn->mr[ampi_tile_for(kn, rows - full)];
}

/* What is added to n elements of a row of D. */
static const float *ampi_bias_of(
    const ampi_kernels *kn, const amp_gemm_job *d, size_t row, size_t col, size_t n, float *buf) {
    float same;
    size_t i;
    if (!d->bias_per_row) return ampi_floats(kn, d->bias, col, n, buf);
    same = amp_load(d->bias.data, d->bias.dtype, row);
    for (i = 0; i < n; i++)
        buf[i] = same;
    return buf;
}
/* n elements of a row of D from their sums: the epilogue, in vectors. First without bias. */
static void ampi_epilogue_begin(const ampi_kernels *kn, const amp_gemm_job *d, float *acc, size_t batch, size_t row,
    size_t col, size_t n, float *other) {
    float alpha = amp_gemm_alpha(d), beta = d->c.data ? amp_gemm_beta(d) : 0.0f;
    if (ampi_bits(alpha) != 0x3f800000u) (void)(kn->scale)(acc, acc, n, alpha);
    if (ampi_nonzero(beta)) {
        const float *c = ampi_floats(kn, d->c, batch * d->stride_c + row * d->ldc + col, n, other);
        (kn->axpy)(acc, c, n, beta);
    }
}
static void ampi_epilogue_bias(
    const ampi_kernels *kn, const amp_gemm_job *d, float *acc, size_t row, size_t col, size_t n, float *other) {
    if (d->bias.data) (kn->axpy)(acc, ampi_bias_of(kn, d, row, col, n, other), n, 1.0f);
}
static void ampi_epilogue_keep(
    const ampi_kernels *kn, const amp_gemm_job *d, const float *acc, size_t at, size_t n, float *other) {
    size_t i;
    if (!ampi_is_f8(d->aux.dtype)) {
        kn->narrow[d->aux.dtype](ampi_at(d->aux, at), acc, n);
        return;
    }
    for (i = 0; i < n; i++)
        other[i] = amp_epilogue_aux(d, acc[i]);
    kn->narrow[d->aux.dtype](ampi_at(d->aux, at), other, n);
}
static void ampi_epilogue_end(const ampi_kernels *kn, const amp_gemm_job *d, float *acc, size_t batch, size_t row,
    size_t col, size_t n, float *other, uint32_t *amax) {
    size_t at = batch * d->stride_d + row * d->ldd + col, i;
    uint8_t *mask = NULL;
    if (amp_gemm_masked(d)) mask = ampi_mask_at(d->aux.data, batch * d->m + row, d->n, col);
    if (d->backward && mask) {
        (kn->mask_grad)(acc, mask, n);
    } else if (d->backward) {
        (kn->act_grad)(acc, acc, ampi_floats(kn, d->aux, at, n, other), n, d->act);
    } else {
        if (d->aux.data && !mask) ampi_epilogue_keep(kn, d, acc, at, n, other);
        if (d->act != AMP_ACT_NONE) (kn->act)(acc, acc, n, d->act);
    }
    if (ampi_is_f8(d->d.dtype))
        for (i = 0; i < n; i++)
            acc[i] = amp_epilogue_f8(acc[i], d->d.dtype, d->scale_d, amax);
    kn->narrow[d->d.dtype](ampi_at(d->d, at), acc, n);
    if (mask && !d->backward) (kn->mask_of)(mask, ampi_floats(kn, d->d, at, n, other), n); /* of y as it is stored */
}
static void ampi_epilogue(const ampi_kernels *kn, const amp_gemm_job *d, float *acc, size_t batch, size_t row,
    size_t col, size_t n, float *other, uint32_t *amax) {
    ampi_epilogue_begin(kn, d, acc, batch, row, col, n, other);
    ampi_epilogue_bias(kn, d, acc, row, col, n, other);
    ampi_epilogue_end(kn, d, acc, batch, row, col, n, other, amax);
}

/* ---- the ordered mode: tiles do what >>numerics says if a multiply-add rounds once, or if products are exact ---- */

/* Exponents, as they lie in a float, of what is finite and not 0. */
typedef struct ampi_exponent_range { uint32_t least, most; } ampi_exponent_range;
static ampi_exponent_range ampi_exponents_in(const float *x, size_t n) {
    ampi_exponent_range r = {254, 0};
    size_t i;
    for (i = 0; i < n; i++) {
        uint32_t e = ampi_bits(x[i]) >> 23 & 255u;
        if (!ampi_nonzero(x[i]) || e == 255u) continue;
        if (e == 0) e = 1; /* subnormal */
        if (e < r.least) r.least = e;
        if (e > r.most) r.most = e;
    }
    return r;
}
/* Are all products of these packed numbers exact in FP32? Those of FP16 and FP8 are: 22 bits, from 2^-48 to 2^32. BF16
   has 8 bits: exponents e and f give a product with no bit below 2^(e + f - 268) and below 2^(e + f - 252). */
static int ampi_exact_products(amp_dtype t, const float *a, size_t na, const float *b, size_t nb) {
    ampi_exponent_range x, y;
    if (t == AMP_F32) return 0;
    if (t != AMP_BF16) return 1;
    x = ampi_exponents_in(a, na);
    y = ampi_exponents_in(b, nb);
    return x.least + y.least >= 268u - 149u && x.most + y.most <= 252u + 128u;
}

static void ampi_join_amax(const ampi_gemm_blocks *j, uint32_t amax) {
    if (!j->d->amax_d) return;
    ampi_lock(j->c);
    if (amax > ampi_bits(*j->d->amax_d)) *j->d->amax_d = ampi_float(amax);
    ampi_unlock(j->c);
}

/* w->c = or += the packed panels' product, tile by tile. */
static void ampi_multiply_panels(
    const ampi_kernels *kn, const amp_gemm_job *d, ampi_workspace *w, size_t rows, size_t cols, size_t kc, int first) {
    int ordered = (d->flags & AMP_GEMM_ORDERED) != 0;
    size_t na = ampi_packed_rows(kn, rows) * kc, nb = (cols + kn->nr - 1) / kn->nr * kn->nr * kc;
    int fused = ordered && kn->fused && !ampi_exact_products(d->a.dtype, w->a, na, w->b, nb);
    size_t r, c;
    for (c = 0; c < cols; c += kn->nr)
        for (r = 0; r < rows; r += kn->mr[0]) {
            size_t t = ampi_tile_for(kn, rows - r);
            const float *a = w->a + r * kc, *b = w->b + c * kc;
            float *to = w->c + r * AMPI_LDC + c;
            if (fused)
                (kn->fused)(ampi_least(kn->mr[t], rows - r), kn->mr[t], kc, a, b, to, first);
            else
                kn->tile[t](kc, a, b, to, first);
        }
}

/* ---- small products: nothing is packed but a B whose rows lie along k, and what is no float ---- */

static int ampi_is_small(const ampi_kernels *kn, const amp_gemm_job *d, size_t rows, size_t cols) {
    const int here = kn->direct && d->k && d->k <= AMPI_KC && !d->sum_batches;
    return here && (rows + cols) * d->k <= AMPI_SMALL;
}
/* D is what the tiles compute, as floats. */
static int ampi_is_plain(const amp_gemm_job *d) {
    const int alone = !d->c.data && !d->bias.data && !d->aux.data && d->act == AMP_ACT_NONE;
    return alone && ampi_in_place(d->d, 0) && ampi_bits(amp_gemm_alpha(d)) == 0x3f800000u;
}
/* rows x cols of a matrix as floats, and their leading dimension. */
static const float *ampi_small_floats(
    const ampi_kernels *kn, amp_array x, size_t at, size_t rows, size_t cols, size_t *ld, float *to) {
    const float *there = ampi_in_place(x, at);
    size_t r;
    if (there) return there;
    for (r = 0; r < rows; r++)
        kn->widen[x.dtype](to + r * cols, ampi_at(x, at + r * *ld), cols);
    *ld = cols;
    return to;
}
/* The rows of D, which lie one after the other in w->c. */
static void ampi_small_end(const ampi_gemm_blocks *j, ampi_workspace *w, size_t batch, size_t r0, const ampi_panel *b,
    size_t rows, uint32_t *amax) {
    const amp_gemm_job *d = j->d;
    const ampi_kernels *kn = j->c->k;
    const int packed = b->rows == d->n && d->ldd == d->n && (!d->c.data || d->ldc == d->n);
    const int whole = packed && !amp_gemm_masked(d); /* whose rows begin with a byte */
    const size_t cols = b->rows, each = whole ? AMPI_BLOCK / cols * cols : cols;
    size_t i, k, n;
    for (i = 0; i < rows * cols; i += n) {
        const size_t row = r0 + i / cols;
        n = ampi_least(each, rows * cols - i);
        ampi_epilogue_begin(kn, d, w->c + i, batch, row, b->r0, n, w->row);
        for (k = 0; k < n; k += cols)
            ampi_epilogue_bias(kn, d, w->c + i + k, row + k / cols, b->r0, cols, w->row);
        ampi_epilogue_end(kn, d, w->c + i, batch, row, b->r0, n, w->row, amax);
    }
}
static void ampi_small_product(const ampi_gemm_blocks *j, ampi_workspace *w, size_t batch, const ampi_panel *a,
    const ampi_panel *b, uint32_t *amax) {
    const amp_gemm_job *d = j->d;
    const ampi_kernels *kn = j->c->k;
    const int plain = ampi_is_plain(d), twice = d->m <= AMPI_FEW && !(d->flags & AMP_GEMM_ORDERED);
    const size_t strip = kn->lanes, depth = d->k;
    size_t lda = a->ld, ldb = b->ld, at = a->first + a->r0 * (a->across ? 1 : lda);
    const float *from_b = w->b;
    ampi_direct t; /* each field is set below: zeroing takes longer than a small product */
    t.rows = a->rows;
    t.depth = depth;
    if (a->across) {
        t.a = ampi_small_floats(kn, d->a, at, depth, t.rows, &lda, w->a);
        t.a_row = 1;
        t.a_k = lda;
    } else {
        t.a = ampi_small_floats(kn, d->a, at, t.rows, depth, &lda, w->a);
        t.a_row = lda;
        t.a_k = 1;
    }
    if (b->across)
        from_b = ampi_small_floats(kn, d->b, b->first + b->r0, depth, b->rows, &ldb, w->b);
    else
        ampi_pack_strips(kn, w->b, b, strip, w->row);
    t.b = from_b;
    t.b_k = b->across ? ldb : strip;
    if (depth == 1) t.a_k = t.b_k = 0; /* a leading dimension that leads nowhere may be any number */
    t.b_strip = b->across ? strip : strip * depth;
    t.cols = b->rows;
    t.c = plain ? (float *)d->d.data + batch * d->stride_d + a->r0 * d->ldd + b->r0 : w->c;
    t.c_row = plain ? d->ldd : b->rows;
    (kn->direct)(&t, twice);
    if (!plain) ampi_small_end(j, w, batch, a->r0, b, a->rows, amax);
}
static void ampi_gemm_task(void *arg, size_t task, ampi_workspace *w) {
    const ampi_gemm_blocks *j = (const ampi_gemm_blocks *)arg;
    const amp_gemm_job *d = j->d;
    const ampi_kernels *kn = j->c->k;
    size_t bn = task % j->blocks_n, bm = task / j->blocks_n % j->blocks_m, batch = task / j->blocks_n / j->blocks_m;
    size_t r0 = bm * j->rows, c0 = bn * j->cols, k0, kc, r, last = d->sum_batches ? d->batch - 1 : batch;
    int first = 1;
    ampi_panel a = {d->a, batch * d->stride_a, d->lda, d->trans_a != 0, r0, ampi_least(j->rows, d->m - r0), 0, 0};
    ampi_panel b = {d->b, batch * d->stride_b, d->ldb, d->trans_b == 0, c0, ampi_least(j->cols, d->n - c0), 0, 0};
    uint32_t amax = 0;
    if (r0 >= d->m || c0 >= d->n) return;
    a.depth = b.depth = d->k;
    if (ampi_is_small(kn, d, a.rows, b.rows)) {
        ampi_small_product(j, w, batch, &a, &b, &amax);
        ampi_join_amax(j, amax);
        return;
    }
    if (d->k == 0) memset(w->c, 0, sizeof w->c);
    for (; batch <= last; batch++, a.first += d->stride_a, b.first += d->stride_b)
        for (k0 = 0; k0 < d->k; k0 += kc) {
            kc = ampi_least(AMPI_KC, d->k - k0);
            a.k0 = b.k0 = k0;
            a.depth = b.depth = kc;
            ampi_pack_rows(kn, w->a, &a, w->row);
            ampi_pack_strips(kn, w->b, &b, kn->nr, w->row);
            ampi_multiply_panels(kn, d, w, a.rows, b.rows, kc, first);
            first = 0;
        }
    batch = d->sum_batches ? 0 : last;
    for (r = 0; r < a.rows; r++)
        ampi_epilogue(kn, d, w->c + r * AMPI_LDC, batch, r0 + r, c0, b.rows, w->row, &amax);
    ampi_join_amax(j, amax);
}

static size_t ampi_equal_parts(size_t n, size_t parts, size_t multiple) { /* the size of each, a multiple */
    size_t each = (n - 1) / parts + 1;
    return (each + multiple - 1) / multiple * multiple;
}
/* As ampi_floats, and fetches the n that follow. */
static const float *ampi_floats_fetching(const ampi_kernels *kn, amp_array x, size_t at, size_t n, float *buf) {
    if (x.dtype != AMP_F32) ampi_prefetch(ampi_at(x, at + n), n * amp_dtype_size(x.dtype));
    return ampi_floats(kn, x, at, n, buf);
}

/* ---- a few rows of D: packing would cost more than the product, so B is read once, straight from where it is. Rows of
   B are added up where they lie along D, else their products with rows of A are. An element of D is a chain over k
   again, whatever the threads do ---- */

/* A[0 .. rows, k0 .. k0+kc] as floats, [row][k]. */
static void ampi_few_rows(const ampi_gemm_blocks *j, size_t a0, size_t k0, size_t kc, float *to) {
    const amp_gemm_job *d = j->d;
    size_t r, k;
    for (r = 0; r < j->rows; r++) {
        if (!d->trans_a) {
            j->c->k->widen[d->a.dtype](to + r * kc, ampi_at(d->a, a0 + r * d->lda + k0), kc);
            continue;
        }
        for (k = 0; k < kc; k++)
            to[r * kc + k] = amp_load(d->a.data, d->a.dtype, a0 + (k0 + k) * d->lda + r);
    }
}
/* w->c += A * B^T for columns c0 .. c0+cols: rows of B lie along k. One row of A takes all of them where they lie, more
   take 4 in turn, as what is no float is widened once. */
static void ampi_few_dots(
    const ampi_gemm_blocks *j, ampi_workspace *w, size_t b0, size_t c0, size_t cols, size_t k0, size_t kc) {
    const amp_gemm_job *d = j->d;
    const ampi_kernels *kn = j->c->k;
    const size_t first = b0 + c0 * d->ldb + k0;
    const int halves = d->b.dtype == AMP_F16 || d->b.dtype == AMP_BF16, one = j->rows == 1;
    const int there = ampi_in_place(d->b, first) || (halves && kn->direct && one);
    const amp_dtype t = there ? d->b.dtype : AMP_F32;
    size_t c, k, r, n, each, i;
    for (c = 0; c < cols; c += each)
        for (each = there && one ? cols : ampi_least(4, cols - c), k = 0; k < kc; k += n) {
            const size_t at = first + c * d->ldb + k;
            const char *b = there ? ampi_at(d->b, at) : (const char *)w->b;
            n = there && one ? kc : ampi_least(AMPI_DOT, kc - k);
            for (i = 0; i < each && !there; i++)
                (void)ampi_floats_fetching(kn, d->b, at + i * d->ldb, n, w->b + i * n);
            for (r = 0; r < j->rows; r++)
                (kn->dots)(w->c + r * j->cols + c, each, w->a + r * kc + k, b, there ? d->ldb : n, t, n);
        }
}
/* w->c += A * B for columns c0 .. c0+cols: rows of B lie along D. */
static void ampi_few_sums(
    const ampi_gemm_blocks *j, ampi_workspace *w, size_t b0, size_t c0, size_t cols, size_t k0, size_t kc) {
    const amp_gemm_job *d = j->d;
    const ampi_kernels *kn = j->c->k;
    float *sum = w->b + 2 * AMPI_BLOCK;
    size_t c, k, r, n;
    memset(sum, 0, j->rows * j->cols * sizeof *sum);
    for (k = 0; k < kc; k++)
        for (c = 0; c < cols; c += n) {
            const float *b;
            n = ampi_least(AMPI_BLOCK, cols - c);
            b = ampi_floats_fetching(kn, d->b, b0 + (k0 + k) * d->ldb + c0 + c, n, w->b);
            for (r = 0; r < j->rows; r++)
                (kn->axpy)(sum + r * j->cols + c, b, n, w->a[r * kc + k]);
        }
    (kn->axpy)(w->c, sum, j->rows * j->cols, 1.0f);
}
static void ampi_gemv_task(void *arg, size_t task, ampi_workspace *w) {
    const ampi_gemm_blocks *j = (const ampi_gemm_blocks *)arg;
    const amp_gemm_job *d = j->d;
    size_t batch = task / j->blocks_n, c0 = task % j->blocks_n * j->cols, cols, k0, kc, r, c, n;
    size_t a0 = batch * d->stride_a, b0 = batch * d->stride_b;
    uint32_t amax = 0;
    if (c0 >= d->n) return;
    cols = ampi_least(j->cols, d->n - c0);
    memset(w->c, 0, j->rows * j->cols * sizeof *w->c);
    for (k0 = 0; k0 < d->k; k0 += kc) {
        kc = ampi_least(d->trans_b ? AMPI_MC / AMPI_FEW * AMPI_KC : AMPI_KC, d->k - k0);
        ampi_few_rows(j, a0, k0, kc, w->a);
        if (d->trans_b)
            ampi_few_dots(j, w, b0, c0, cols, k0, kc);
        else
            ampi_few_sums(j, w, b0, c0, cols, k0, kc);
    }
    for (r = 0; r < j->rows; r++)
        for (c = 0; c < cols; c += n) {
            n = ampi_least(AMPI_NC, cols - c);
            ampi_epilogue(j->c->k, d, w->c + r * j->cols + c, batch, r, c0 + c, n, w->row, &amax);
        }
    ampi_join_amax(j, amax);
}

static void ampi_gemm_few(ampi_gemm_blocks *j) {
    const amp_gemm_job *d = j->d;
    size_t most = (AMPI_KC * AMPI_NC - 2 * AMPI_BLOCK) / d->m / 16 * 16; /* floats of a row in ampi_few_sums */
    size_t threads = (size_t)j->c->threads;
    j->rows = d->m;
    j->blocks_n = (d->n - 1) / most + 1;
    if (d->batch < threads && d->n / j->blocks_n > 64 * threads) j->blocks_n *= threads;
    j->cols = ampi_equal_parts(d->n, j->blocks_n, 16);
    (void)ampi_run(
        j->c, j->blocks_n * d->batch, (double)d->n * (double)(d->k + 1) * (double)d->batch, ampi_gemv_task, j);
}
static void ampi_gemm_packed(ampi_gemm_blocks *j) {
    const amp_gemm_job *d = j->d;
    size_t mr = j->c->k->mr[0], threads = (size_t)j->c->threads;
    double multiplications = (double)d->m * (double)d->n * (double)(d->k + 32) * (double)d->batch;
    j->blocks_m = (d->m - 1) / AMPI_MC + 1;
    j->blocks_n = (d->n - 1) / AMPI_NC + 1;
    while (j->blocks_m * j->blocks_n * amp_gemm_outputs(d) < threads && d->m / j->blocks_m >= 4 * mr)
        j->blocks_m++; /* work for every thread */
    j->rows = ampi_equal_parts(d->m, j->blocks_m, mr);
    j->cols = ampi_equal_parts(d->n, j->blocks_n, j->c->k->nr);
    /* 32 multiplications cost about one element elsewhere */
    (void)ampi_run(j->c, j->blocks_m * j->blocks_n * amp_gemm_outputs(d), multiplications / 32.0, ampi_gemm_task, j);
}

/* Small ones have the same chains, but for dots of whole vectors. */
static int ampi_is_few(const ampi_kernels *kn, const amp_gemm_job *d) {
    if (d->m > AMPI_FEW || (d->flags & AMP_GEMM_ORDERED) || d->sum_batches) return 0;
    return (d->trans_b && d->k >= 4 * kn->lanes) || !ampi_is_small(kn, d, d->m, d->n);
}
/* A contiguous column is a row of the transposed product. */
static int ampi_is_column(const amp_gemm_job *d) {
    if (d->n != 1 || d->m == 1 || d->bias.data || d->sum_batches || amp_gemm_masked(d)) return 0;
    return d->ldd == 1 && (!d->c.data || d->ldc == 1);
}
static amp_gemm_job ampi_as_row(const amp_gemm_job *d) {
    amp_gemm_job t = *d;
    t.m = 1;
    t.n = d->m;
    t.a = d->b;
    t.trans_a = !d->trans_b;
    t.lda = d->ldb;
    t.stride_a = d->stride_b;
    t.b = d->a;
    t.trans_b = !d->trans_a;
    t.ldb = d->lda;
    t.stride_b = d->stride_a;
    return t;
}

static amp_status ampi_cpu_bias_grad(amp_ctx *ctx, const amp_bias_grad_job *job);
static amp_status ampi_cpu_gemm(amp_ctx *ctx, const amp_gemm_job *job) {
    amp_gemm_job row;
    amp_bias_grad_job sums;
    ampi_gemm_blocks j = AMP_ZERO;
    j.c = ampi_cpu_of(ctx);
    j.d = job;
    if (ampi_is_column(job)) {
        row = ampi_as_row(job);
        j.d = &row;
    }
    if (job->amax_d) *job->amax_d = 0.0f;
    if (ampi_is_few(j.c->k, j.d))
        ampi_gemm_few(&j);
    else
        ampi_gemm_packed(&j);
    if (!job->dbias.data) return AMP_OK;
    sums = amp_gemm_sums(job);
    return ampi_cpu_bias_grad(ctx, &sums);
}
static amp_status ampi_cpu_gemm_explain(amp_ctx *ctx, char *text, size_t bytes, const amp_gemm_job *d) {
    const ampi_cpu *c = ampi_cpu_of(ctx);
    const char *order = d->flags & AMP_GEMM_ORDERED ? ", in the defined order (AMP_GEMM_ORDERED)" : "";
    const char *fma = order[0] && c->k->fused && d->a.dtype == AMP_F32 ? ", fused multiply-add emulated" : "";
    if (!text) return AMP_OK;
    snprintf(text, bytes, "amp_gemm: [%llu,%llu] x [%llu,%llu], %s -> %s: CPU kernels, %s%s%s", AMPI_ULL(d->m),
        AMPI_ULL(d->k), AMPI_ULL(d->k), AMPI_ULL(d->n), amp_dtype_name(d->a.dtype), amp_dtype_name(d->d.dtype),
        c->name + sizeof AMPI_CPU_KIND - 1, order, fma);
    return AMP_OK;
}

/* ---- activations and their gradients, and column sums ---- */

typedef struct ampi_act_work {
    const ampi_kernels *k;
    const amp_activation_job *job;
} ampi_act_work;
static int ampi_is_relu16(const ampi_kernels *k, const amp_activation_job *d) {
    const amp_dtype t = d->in.dtype;
    const int alike = d->out.dtype == t && (!d->saved.data || d->saved.dtype == t);
    return k->relu16 && d->act == AMP_RELU && alike && (t == AMP_F16 || t == AMP_BF16);
}
static void ampi_act_task(void *arg, size_t task, ampi_workspace *w) {
    const ampi_act_work *j = (const ampi_act_work *)arg;
    const amp_activation_job *d = j->job;
    float x[AMPI_BLOCK], other[AMPI_BLOCK];
    size_t i = task * AMP_CHUNK, end = ampi_least(d->count, i + AMP_CHUNK), n;
    (void)w;
    if (ampi_is_relu16(j->k, d)) {
        const char *saved = d->saved.data ? ampi_at(d->saved, i) : NULL;
        (j->k->relu16)(ampi_at(d->out, i), ampi_at(d->in, i), saved, d->in.dtype, end - i);
        return;
    }
    for (; i < end; i += n) {
        float *to = ampi_in_place(d->out, i) ? (float *)d->out.data + i : x;
        const float *from;
        n = ampi_least(AMPI_BLOCK, end - i);
        from = ampi_floats(j->k, d->in, i, n, x);
        if (d->saved.data)
            (j->k->act_grad)(to, from, ampi_floats(j->k, d->saved, i, n, other), n, d->act);
        else
            (j->k->act)(to, from, n, d->act);
        if (to == x) j->k->narrow[d->out.dtype](ampi_at(d->out, i), x, n);
    }
}
static amp_status ampi_cpu_activation(amp_ctx *ctx, const amp_activation_job *d) {
    ampi_act_work j = {ampi_cpu_of(ctx)->k, d};
    return ampi_run(ampi_cpu_of(ctx), ampi_chunks(d->count), (double)d->count, ampi_act_task, &j);
}

/* ReLU's gradient by its mask, in pieces of so many columns: rows, or parts of all of them where they have no bits
   between them. */
typedef struct ampi_mask_work {
    const ampi_kernels *k;
    const amp_bias_grad_job *job;
    size_t cols, pieces, count; /* of a piece; pieces; all elements */
} ampi_mask_work;
static void ampi_mask_piece(const ampi_mask_work *j, size_t piece) {
    const amp_bias_grad_job *d = j->job;
    float x[AMPI_BLOCK];
    size_t first = piece * j->cols, end = ampi_least(j->count - first, j->cols), c, n;
    for (c = 0; c < end; c += n) {
        n = ampi_least(AMPI_BLOCK, end - c);
        j->k->widen[d->dy.dtype](x, ampi_at(d->dy, first + c), n);
        (j->k->mask_grad)(x, ampi_mask_at(d->saved.data, piece, j->cols, c), n);
        j->k->narrow[d->dy.dtype](ampi_at(d->dy, first + c), x, n);
    }
}
static size_t ampi_mask_each(const ampi_mask_work *j) { return AMP_CHUNK / j->cols + 1; } /* of a task */
static void ampi_mask_task(void *arg, size_t task, ampi_workspace *w) {
    const ampi_mask_work *j = (const ampi_mask_work *)arg;
    size_t each = ampi_mask_each(j), piece = task * each, end = ampi_least(j->pieces, piece + each);
    (void)w;
    for (; piece < end; piece++)
        ampi_mask_piece(j, piece);
}
static amp_status ampi_cpu_mask_grad(ampi_cpu *c, const amp_bias_grad_job *d) {
    ampi_mask_work j = {c->k, d, d->cols % 8u ? d->cols : AMP_CHUNK, 0, d->rows * d->cols};
    j.pieces = (j.count - 1) / j.cols + 1;
    return ampi_run(c, (j.pieces - 1) / ampi_mask_each(&j) + 1, (double)j.count, ampi_mask_task, &j);
}

typedef struct ampi_col_work {
    const ampi_kernels *k;
    const amp_bias_grad_job *job;
} ampi_col_work;
/* to[c] += column c0 + c of the rows, one row after the other; rows without a gap are widened together. */
static void ampi_col_rows(const ampi_col_work *j, size_t c0, size_t cols, size_t row, size_t end, float *to) {
    const amp_bias_grad_job *d = j->job;
    const size_t most = d->step == 1 && d->ld == cols ? AMPI_NC / cols : 1;
    float x[AMPI_NC];
    size_t c, r, n;
    for (; row < end; row += n) {
        const size_t at = row * d->ld;
        const float *from = x;
        n = ampi_least(most, end - row);
        if (d->step == 1)
            from = ampi_floats(j->k, d->dy, at + c0, n * cols, x);
        else
            for (c = 0; c < cols; c++)
                x[c] = amp_load(d->dy.data, d->dy.dtype, at + (c0 + c) * d->step);
        for (r = 0; r < n; r++)
            (j->k->axpy)(to, from + r * cols, cols, 1.0f);
    }
}
/* The same from 0 on; neighbours, if they fill a vector, go by four rows. */
static void ampi_col_part(const ampi_col_work *j, size_t c0, size_t cols, size_t row, size_t end, float *sum) {
    const amp_bias_grad_job *d = j->job;
    const size_t size = amp_dtype_size(d->dy.dtype);
    const int taken = d->dy.dtype == AMP_F32 || (size == 2 && j->k->direct); /* by add_four */
    const int by_four = taken && d->step == 1 && cols >= j->k->lanes;
    memset(sum, 0, cols * sizeof *sum);
    for (; by_four && row + 4 <= end; row += 4)
        (j->k->add_four)(sum, ampi_at(d->dy, row * d->ld + c0), d->ld * size, d->dy.dtype, cols);
    ampi_col_rows(j, c0, cols, row, end, sum);
}
static void ampi_col_task(void *arg, size_t task, ampi_workspace *w) { /* AMPI_NC columns, by the rule of sums */
    const ampi_col_work *j = (const ampi_col_work *)arg;
    const amp_bias_grad_job *d = j->job;
    size_t c0 = task * AMPI_NC, cols = ampi_least(AMPI_NC, d->cols - c0), lanes = 1, r, c, h;
    float part[AMPI_NC];
    while (lanes < AMP_COLUMN_LANES && lanes * AMP_ROWS < d->rows) /* the others would stay 0 */
        lanes *= 2u;
    memset(w->column, 0, lanes * AMPI_NC * sizeof *w->column);
    for (r = 0; r < d->rows; r += AMP_ROWS) {
        ampi_col_part(j, c0, cols, r, ampi_least(d->rows, r + AMP_ROWS), part);
        ampi_add_floats(w->column + r / AMP_ROWS % lanes * AMPI_NC, part, cols);
    }
    for (h = lanes / 2u; h > 0; h /= 2)
        for (c = 0; c < h; c++)
            ampi_add_doubles(w->column + c * AMPI_NC, w->column + (c + h) * AMPI_NC, cols);
    for (c = 0; c < cols; c++) {
        double s = w->column[c];
        if (d->accumulate) s = amp_dadd(amp_widen(amp_load(d->dbias.data, d->dbias.dtype, c0 + c)), s);
        amp_store(d->dbias.data, d->dbias.dtype, c0 + c, amp_narrow(s));
    }
}
static amp_status ampi_cpu_bias_grad(amp_ctx *ctx, const amp_bias_grad_job *job) {
    ampi_cpu *c = ampi_cpu_of(ctx);
    size_t n = job->rows * job->cols;
    ampi_col_work j = {c->k, job};
    amp_activation_job act = AMP_ZERO;
    act.act = job->act;
    act.count = n;
    act.saved = job->saved;
    act.in = act.out = job->dy;
    if (job->act != AMP_ACT_NONE && job->saved.dtype == AMP_MASK)
        AMPI_TRY(ampi_cpu_mask_grad(c, job));
    else if (job->act != AMP_ACT_NONE)
        AMPI_TRY(ampi_cpu_activation(ctx, &act));
    if (job->dbias.data) (void)ampi_run(c, (job->cols - 1) / AMPI_NC + 1, (double)n, ampi_col_task, &j);
    return AMP_OK;
}

