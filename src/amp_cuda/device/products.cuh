/* ==== >>device-products ==========================================================================================
   The plain product, epilogues, column sums.
   tests: tests/test_products.c, tests/test_product_table.c, tests/test_ordered.c */

/* The plain product, for AMP_GEMM_ORDERED and for what cuBLASLt does not take: any dtypes, layouts, alignment, k = 0.
   Its sums are those of >>numerics. A block makes tiles of AMPI_K_M x AMPI_K_N elements from slices of AMPI_K_SLICE
   along k, widened into shared memory; of a tile, a thread has 8 rows by 8 columns in registers: the sums of the
   present 256 k, and the total of those before. It takes 64 terms from 16 numbers that it reads. While it multiplies a
   slice, it fetches the next, which goes to the other one of two places: one barrier for each. */
#define AMPI_K_THREADS      (AMP_BLOCK < 128 ? AMP_BLOCK : 128) /* few, so that small products fill the GPU */
#define AMPI_K_N            64u
#define AMPI_K_LINE         (AMPI_K_N / 8u) /* threads side by side */
#define AMPI_K_M            (AMPI_K_THREADS / AMPI_K_LINE * 8u)
#define AMPI_K_SLICE        16u
#define AMPI_K_BLOCK        256u                   /* what >>numerics adds up in one chain */
#define AMPI_K_PAD          4u                     /* between rows in shared memory */
#define AMPI_K_AT_ONCE      (256 / AMPI_K_THREADS) /* blocks on a multiprocessor: their registers fit */
#define AMPI_K_EIGHTS(rows) ((rows) * AMPI_K_SLICE / 8u / AMPI_K_THREADS) /* of a slice, for a thread */
#define AMPI_K_FOURS_A      ((AMPI_K_M + AMPI_K_PAD) * AMPI_K_SLICE / 4u) /* of floats: a slice */
#define AMPI_K_SLICE_FOURS  ((AMPI_K_M + AMPI_K_N + 2u * AMPI_K_PAD) * AMPI_K_SLICE / 4u)
#define AMPI_K_TILE_FOURS   (AMPI_K_M * AMPI_K_N / 4u) /* the tile of sums, in their place */
static_assert(AMPI_K_M * AMPI_K_SLICE / 8u % AMPI_K_THREADS == 0 && AMPI_K_N * AMPI_K_SLICE / 8u % AMPI_K_THREADS == 0,
    "every thread has as much of a slice");
#define AMPI_K_ROOM (2u * AMPI_K_SLICE_FOURS > AMPI_K_TILE_FOURS ? 2u * AMPI_K_SLICE_FOURS : AMPI_K_TILE_FOURS)

/* One operand at a tile; a row is what the other operand meets: of A a row, of B a column. */
typedef struct ampi_k_side {
    const void *data;
    amp_dtype type;
    uint32_t width;    /* rows of a tile */
    size_t first, ld;  /* the tile's element 0 */
    size_t rows;       /* from there on */
    int along_k, wide; /* neighbours in memory follow each other along k; eight at a time */
} ampi_k_side;
/* Eight neighbours of a slice, from row r and element q of the slice on, as they travel to shared memory. */
typedef struct ampi_k_eight {
    ampi_k_raw raw;
    size_t at;
    uint32_t r, q;
    uint32_t most, count; /* how many of them there are: as far as rows tell, and in this slice */
} ampi_k_eight;

AMPI_K ampi_k_side ampi_k_side_of(
    const amp_array &x, uint32_t width, size_t ld, size_t stride, size_t batch, size_t z) {
    ampi_k_side s;
    s.data = x.data;
    s.type = x.dtype;
    s.width = width;
    s.ld = ld;
    s.first = z * stride;
    s.wide = ampi_k_aligned(x.data, x.dtype) && ld % 8u == 0 && (batch == 1u || stride % 8u == 0);
    return s;
}
AMPI_K uint32_t ampi_k_slice_of(size_t k, size_t k0) { /* how much of a slice is there at k0 */
    if (k0 >= k) return 0;
    return k - k0 < AMPI_K_SLICE ? (uint32_t)(k - k0) : AMPI_K_SLICE;
}
AMPI_K void ampi_k_fetch(ampi_k_eight *e, const ampi_k_side &s, uint32_t slice) {
    e->count = 0;
    if (e->q < slice) e->count = s.along_k && slice - e->q < e->most ? slice - e->q : e->most;
    if (s.wide && e->count == 8u) ampi_k_fetch8(&e->raw, s.data, s.type, e->at, 1);
}
/* A thread's share of the first slice of an operand, and of the next. */
template <uint32_t n> AMPI_K void ampi_k_fetch_first(ampi_k_eight (&e)[n], const ampi_k_side &s, uint32_t slice) {
    const uint32_t deep = AMPI_K_SLICE / 8u, wide = s.width / 8u;
    uint32_t i, g = threadIdx.x;
    AMP_UNROLL
    for (i = 0; i < n; i++, g += AMPI_K_THREADS) {
        e[i].r = s.along_k ? g / deep : g % wide * 8u;
        e[i].q = s.along_k ? g % deep * 8u : g / wide;
        e[i].at = s.first + (s.along_k ? e[i].r * s.ld + e[i].q : e[i].q * s.ld + e[i].r);
        e[i].most = ampi_k_group(e[i].r, s.rows);
        if (s.along_k && e[i].most) e[i].most = 8;
        ampi_k_fetch(&e[i], s, slice);
    }
}
template <uint32_t n> AMPI_K void ampi_k_fetch_next(ampi_k_eight (&e)[n], const ampi_k_side &s, uint32_t slice) {
    uint32_t i;
    AMP_UNROLL
    for (i = 0; i < n; i++) {
        e[i].at += s.along_k ? AMPI_K_SLICE : AMPI_K_SLICE * s.ld;
        ampi_k_fetch(&e[i], s, slice);
    }
}
/* To [q][r] in shared memory. What is not there becomes `zero`: fma(-0, 0, sum) is the sum, whatever its sign. */
AMPI_K void ampi_k_put(float *slice, const ampi_k_eight &e, const ampi_k_side &s, float zero) {
    const uint32_t pitch = s.width + AMPI_K_PAD, step = s.along_k ? pitch : 1u;
    float *to = slice + e.q * pitch + e.r;
    uint32_t x[8], i;
    if (!s.wide || e.count < 8u) {
        AMP_NO_UNROLL
        for (i = 0; i < 8u; i++)
            to[i * step] = i < e.count ? amp_load(s.data, s.type, e.at + i) : zero;
        return;
    }
    ampi_k_about8(x, &e.raw, s.type);
    if (s.along_k) {
        AMP_UNROLL
        for (i = 0; i < 8u; i++)
            to[i * pitch] = ampi_float(x[i]);
        return;
    }
    ((ampi_k_u4 *)to)[0] = ampi_k_four(x);
    ((ampi_k_u4 *)to)[1] = ampi_k_four(x + 4);
}
template <uint32_t n>
AMPI_K void ampi_k_put_all(float4 *slice, const ampi_k_eight (&e)[n], const ampi_k_side &s, float zero) {
    uint32_t i;
    AMP_UNROLL
    for (i = 0; i < n; i++)
        ampi_k_put((float *)slice, e[i], s, zero);
}

/* ---- what follows the sums ---- */

/* Activation and derivative of eight at a time, on float bits. always: act is one of them; else AMP_ACT_NONE may come,
   which leaves x, and costs a copy of it. */
#define AMPI_K_EACH8(value) \
    AMP_UNROLL \
    for (k = 0; k < 8u; k++) \
        x[k] = ampi_bits(value);
AMPI_K void ampi_k_act8(uint32_t x[8], amp_act act, int always) {
    uint32_t k;
#define AMP_X(name, rule, aux) \
    if (act == name) { \
        AMPI_K_EACH8(ampi_act(name, ampi_float(x[k]))) \
        return; \
    }
    AMPI_ACT_LIST(AMP_X)
#undef AMP_X
    if (always) AMP_NEVER_HERE();
}
AMPI_K void ampi_k_act_grad8(uint32_t x[8], amp_act act, const uint32_t saved[8], int always) {
    uint32_t k;
#define AMP_X(name, rule, aux) \
    if (act == name) { \
        AMPI_K_EACH8(ampi_act_grad(name, ampi_float(x[k]), ampi_float(saved[k]))) \
        return; \
    }
    AMPI_ACT_LIST(AMP_X)
#undef AMP_X
    if (always) AMP_NEVER_HERE();
}
/* Eight of what a mask stands for, as float bits. */
AMPI_K void ampi_k_unmask8(uint32_t x[8], uint32_t bits) {
    uint32_t k;
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        x[k] = 0x3f800000u * (bits >> k & 1u);
}
/* The mask of eight of ReLU's y, of which m are there, by their patterns. */
AMPI_K uint32_t ampi_k_mask8(const uint32_t x[8], amp_dtype t, uint32_t m) {
    const uint32_t signs = 33u - 8u * (uint32_t)amp_dtype_size(t);
    uint32_t bits = 0, k;
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        bits |= (uint32_t)(k < m && x[k] << signs != 0) << k;
    return bits;
}
AMPI_K void ampi_k_fill8(uint32_t x[8], uint32_t one) {
    uint32_t k;
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        x[k] = one;
}
/* The end of an epilogue, for m of eight neighbours: from values before the act to d, aux or its mask. amax: NULL where
   d is not FP8. */
AMPI_K void ampi_k_finish8(const amp_gemm_job &p, int masked, amp_act act, uint32_t x[8], uint64_t at, uint64_t byte,
    uint32_t m, int wide, uint32_t *amax) {
    uint8_t *mask = (uint8_t *)p.aux.data;
    uint32_t y[8], k;
    if (p.backward) {
        if (masked)
            ampi_k_unmask8(y, mask[byte]);
        else
            ampi_k_load8(y, p.aux.data, p.aux.dtype, at, m, wide);
        ampi_k_act_grad8(x, act, y, 0);
    } else {
        if (p.aux.data && !masked) {
            for (k = 0; k < 8u; k++)
                y[k] = ampi_bits(amp_epilogue_aux(&p, ampi_float(x[k])));
            ampi_k_nearest8(y, p.aux.dtype);
            ampi_k_store8(y, p.aux.data, p.aux.dtype, at, m, wide);
        }
        ampi_k_act8(x, act, 0);
    }
    if (amax && amp_dtype_size(p.d.dtype) == 1u) {
        AMP_UNROLL
        for (k = 0; k < 8u; k++)
            if (k < m) x[k] = ampi_bits(amp_epilogue_f8(ampi_float(x[k]), p.d.dtype, p.scale_d, amax));
    }
    ampi_k_nearest8(x, p.d.dtype);
    ampi_k_store8(x, p.d.data, p.d.dtype, at, m, wide);
    if (masked && !p.backward) mask[byte] = (uint8_t)ampi_k_mask8(x, p.d.dtype, m);
}
AMPI_K void ampi_k_bias8(uint32_t y[8], const amp_gemm_job &p, uint64_t row, uint64_t column, uint32_t m, int wide) {
    if (p.bias_per_row)
        ampi_k_fill8(y, ampi_load_bits(p.bias.data, p.bias.dtype, row));
    else
        ampi_k_load8(y, p.bias.data, p.bias.dtype, column, m, wide);
}

/* ---- the plain product ---- */

/* Sums over a slice, for the thread's rows at a and columns at b: four, and four half a tile away. */
AMPI_K void ampi_k_multiply(float sum[8][8], const float4 *a, const float4 *b) {
    uint32_t q, i, j;
    AMP_UNROLL
    for (q = 0; q < AMPI_K_SLICE; q++) {
        float4 upper = a[0], lower = a[1], left = b[0], right = b[AMPI_K_N / 8u];
        float x[8] = {upper.x, upper.y, upper.z, upper.w, lower.x, lower.y, lower.z, lower.w};
        float y[8] = {left.x, left.y, left.z, left.w, right.x, right.y, right.z, right.w};
        AMP_UNROLL
        for (i = 0; i < 8u; i++) {
            AMP_UNROLL
            for (j = 0; j < 8u; j++)
                sum[i][j] = AMP_FMA(x[i], y[j], sum[i][j]);
        }
        a += (AMPI_K_M + AMPI_K_PAD) / 4u;
        b += (AMPI_K_N + AMPI_K_PAD) / 4u;
    }
}
/* The sums of a block of k are complete. */
AMPI_K void ampi_k_add_up(float total[8][8], float sum[8][8]) {
    uint32_t i, j;
    AMP_UNROLL
    for (i = 0; i < 8u; i++) {
        AMP_UNROLL
        for (j = 0; j < 8u; j++) {
            total[i][j] = amp_add(total[i][j], sum[i][j]);
            sum[i][j] = 0.0f;
        }
    }
}
/* The sums of one tile over so many batches, into room[AMPI_K_M][AMPI_K_N]. */
AMPI_K void ampi_k_tile_sums(const amp_gemm_job &p, ampi_k_side a, ampi_k_side b, size_t batches, float4 *room) {
    const float zero = 0.0f, negative_zero = ampi_float(0x80000000u);
    const uint32_t me = threadIdx.x, column = me % AMPI_K_LINE, row = me / AMPI_K_LINE;
    const int busy = row * 8u < a.rows && column * 4u < b.rows;
    float4 *slice = room, *other = room + AMPI_K_SLICE_FOURS, *free;
    float sum[8][8], total[8][8];
    ampi_k_eight mine_a[AMPI_K_EIGHTS(AMPI_K_M)], mine_b[AMPI_K_EIGHTS(AMPI_K_N)];
    uint32_t i, j;
    AMP_UNROLL
    for (i = 0; i < 8u; i++) {
        AMP_UNROLL
        for (j = 0; j < 8u; j++) {
            sum[i][j] = 0.0f;
            total[i][j] = negative_zero; /* the first block's sum plus this is that sum */
        }
    }
    AMP_NO_UNROLL
    for (; batches; batches--) {
        size_t k0 = 0;
        uint32_t left = ampi_k_slice_of(p.k, 0);
        ampi_k_fetch_first(mine_a, a, left);
        ampi_k_fetch_first(mine_b, b, left);
        do {
            ampi_k_put_all(slice, mine_a, a, negative_zero);
            ampi_k_put_all(slice + AMPI_K_FOURS_A, mine_b, b, zero);
            __syncthreads();
            k0 += AMPI_K_SLICE;
            left = ampi_k_slice_of(p.k, k0);
            ampi_k_fetch_next(mine_a, a, left);
            ampi_k_fetch_next(mine_b, b, left);
            if (busy) ampi_k_multiply(sum, slice + row * 2u, slice + AMPI_K_FOURS_A + column);
            if (k0 % AMPI_K_BLOCK == 0 || left == 0) ampi_k_add_up(total, sum);
            free = other; /* all have left it: they have passed the barrier */
            other = slice;
            slice = free;
        } while (left);
        a.first += p.stride_a; /* the next batch */
        b.first += p.stride_b;
    }
    __syncthreads();
    AMP_UNROLL
    for (i = 0; i < 8u; i++) {
        float4 *to = room + (row * 8u + i) * (AMPI_K_N / 4u) + column;
        to[0] = make_float4(total[i][0], total[i][1], total[i][2], total[i][3]);
        to[AMPI_K_LINE] = make_float4(total[i][4], total[i][5], total[i][6], total[i][7]);
    }
    __syncthreads();
}

/* From the sums of eight neighbours in row i, from column j on, to d and aux. */
typedef struct ampi_k_wides { /* eight at a time can be read and written: of d and aux, of c, of the bias */
    int d, c, bias;
} ampi_k_wides;
AMPI_K void ampi_k_store_sums(const amp_gemm_job &p, const ampi_k_wides &wide, size_t z, size_t i, size_t j,
    const float *sum, float alpha, float beta, uint32_t *amax) {
    const uint64_t at = z * p.stride_d + i * p.ldd + j, byte = (z * p.m + i) * ampi_mask_pitch(p.n) + j / 8u;
    const uint32_t m = ampi_k_group(j, p.n);
    const int masked = amp_gemm_masked(&p);
    uint32_t c[8] = {0}, bias[8] = {0}, x[8], k;
    if (p.c.data) ampi_k_load8(c, p.c.data, p.c.dtype, z * p.stride_c + i * p.ldc + j, m, wide.c);
    if (p.bias.data) ampi_k_bias8(bias, p, i, j, m, wide.bias);
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        x[k] = ampi_bits(amp_epilogue_before(&p, sum[k], alpha, beta, ampi_float(c[k]), ampi_float(bias[k])));
    ampi_k_finish8(p, masked, p.act, x, at, byte, m, wide.d, amax);
}

static __global__ void __launch_bounds__(AMPI_K_THREADS, AMPI_K_AT_ONCE)
    ampi_k_gemm(const AMP_GRID_CONSTANT amp_gemm_job p, ampi_k_wides wide) {
    AMP_SHARED(float4, room, AMPI_K_ROOM);
    size_t across = p.n / AMPI_K_N + (p.n % AMPI_K_N != 0), down = p.m / AMPI_K_M + (p.m % AMPI_K_M != 0), tile;
    uint32_t amax = 0, e;
    float alpha = amp_gemm_alpha(&p), beta = amp_gemm_beta(&p);
    for (tile = blockIdx.x; tile < across * down * amp_gemm_outputs(&p); tile += gridDim.x) {
        size_t z = tile / (across * down), i0 = tile / across % down * AMPI_K_M, j0 = tile % across * AMPI_K_N;
        ampi_k_side a = ampi_k_side_of(p.a, AMPI_K_M, p.lda, p.stride_a, p.batch, z);
        ampi_k_side b = ampi_k_side_of(p.b, AMPI_K_N, p.ldb, p.stride_b, p.batch, z);
        a.along_k = !p.trans_a;
        b.along_k = (int)p.trans_b;
        a.first += a.along_k ? i0 * a.ld : i0;
        b.first += b.along_k ? j0 * b.ld : j0;
        a.rows = p.m - i0;
        b.rows = p.n - j0;
        ampi_k_tile_sums(p, a, b, p.sum_batches ? p.batch : 1u, room);
        AMP_NO_UNROLL
        for (e = 8u * threadIdx.x; e < AMPI_K_M * AMPI_K_N; e += 8u * AMPI_K_THREADS) {
            size_t i = i0 + e / AMPI_K_N, j = j0 + e % AMPI_K_N;
            if (i < p.m && j < p.n) ampi_k_store_sums(p, wide, z, i, j, (const float *)room + e, alpha, beta, &amax);
        }
        __syncthreads();
    }
    if (p.amax_d && amax) atomicMax((unsigned *)p.amax_d, amax);
}

/* The same of 16 bits, as they lie in memory: x becomes y, or dy the gradient. Only where an Inf or a NaN comes out is
   looked for the payload that ReLU lets through. */
AMPI_K void ampi_k_act_exact(uint32_t w[4], uint32_t x[8], amp_dtype t) {
    const uint32_t none[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    ampi_k_exact_words(w, x, t, AMP_NEAREST, none, 0);
}
AMPI_K void ampi_k_act_raw(ampi_k_raw *r, amp_act act, amp_dtype t) {
    uint32_t x[8], w[4];
    ampi_k_quick8(x, r, t);
    ampi_k_act8(x, act, 1);
    if (!ampi_k_quick_words(w, x, t)) {
        if (act == AMP_RELU) {
            ampi_k_exact8(x, r, t);
            ampi_k_act8(x, AMP_RELU, 1);
        }
        ampi_k_act_exact(w, x, t);
    }
    r->a = ampi_k_four(w);
}
AMPI_K void ampi_k_act_grad_raw(ampi_k_raw *dy, amp_act act, const ampi_k_raw *saved, amp_dtype t) {
    uint32_t x[8], y[8], w[4];
    ampi_k_quick8(x, dy, t);
    ampi_k_quick8(y, saved, t);
    ampi_k_act_grad8(x, act, y, 1);
    if (!ampi_k_quick_words(w, x, t)) {
        if (act == AMP_RELU) {
            ampi_k_exact8(x, dy, t);
            ampi_k_act_grad8(x, AMP_RELU, y, 1);
        }
        ampi_k_act_exact(w, x, t);
    }
    dy->a = ampi_k_four(w);
}
AMPI_K ampi_k_u4 *ampi_k_words_at(const amp_array &a, uint64_t i) { /* of 16 bits */
    return (ampi_k_u4 *)((char *)a.data + 2u * i);
}

/* What cuBLASLt left to do: d, which is not FP8, holds the product; the rest of its epilogue, in groups of 8 along
   a row. */
typedef struct ampi_k_place { uint64_t batch, row, group; } ampi_k_place; /* of a group */
AMPI_K ampi_k_place ampi_k_place_of(uint64_t g, uint64_t across, uint64_t rows) {
    ampi_k_place p = {g / across / rows, g / across % rows, g % across};
    return p;
}
/* Divisions of 64 bits are slow: one for each thread, then additions. */
AMPI_K void ampi_k_move(ampi_k_place *p, const ampi_k_place *step, uint64_t across, uint64_t rows) {
    p->group += step->group;
    p->row += step->row;
    p->batch += step->batch;
    if (p->group >= across) {
        p->group -= across;
        p->row++;
    }
    if (p->row >= rows) {
        p->row -= rows;
        p->batch++;
    }
}
/* The first m of eight of 16 bits, aligned or not; those that are not there are 0. */
AMPI_K void ampi_k_fetch_short(ampi_k_raw *r, const amp_array &a, uint64_t i, uint32_t m, int wide) {
    if (wide)
        r->a = *ampi_k_words_at(a, i);
    else if (m == 8u)
        ampi_k_fetch_words(r, a.data, i);
    else
        ampi_k_gather8(r, a.data, AMP_F16, i, 0, m);
}
AMPI_K void ampi_k_store_short(const ampi_k_raw *r, const amp_array &a, uint64_t i, uint32_t m, int wide) {
    uint32_t x[8];
    if (wide) {
        *ampi_k_words_at(a, i) = r->a;
    } else {
        ampi_k_patterns8(x, r, AMP_F16);
        ampi_k_store8(x, a.data, AMP_F16, i, m, 0);
    }
}
/* Eight of 16 bits, as they lie in memory, where a mask has a 1, else 0; a NaN becomes quiet, as in conversions. */
AMPI_K void ampi_k_mask_raw(ampi_k_raw *dy, uint32_t bits, amp_dtype t) {
    uint32_t w[4], x[8], k;
    ampi_k_words(w, dy->a);
    AMP_UNROLL
    for (k = 0; k < 4u; k++)
        w[k] &= (bits >> 2u * k & 1u) * 0xffffu | (bits >> 2u * k & 2u) * 0x7fff8000u;
    dy->a = ampi_k_four(w);
    if (!ampi_k_odd8(dy, t)) return;
    ampi_k_exact8(x, dy, t);
    ampi_k_nearest8(x, t);
    AMP_UNROLL
    for (k = 0; k < 4u; k++)
        w[k] = x[2u * k] | x[2u * k + 1u] << 16;
    dy->a = ampi_k_four(w);
}
template <int masked> AMPI_K void ampi_k_act_grad_at(const amp_gemm_job &p, uint64_t at, uint64_t byte, int wide) {
    ampi_k_raw dy, saved;
    ampi_k_fetch_short(&dy, p.d, at, 8, wide);
    if (!masked) ampi_k_fetch_short(&saved, p.aux, at, 8, wide);
    if (masked)
        ampi_k_mask_raw(&dy, ((const uint8_t *)p.aux.data)[byte], p.d.dtype);
    else if (p.d.dtype == AMP_F16)
        ampi_k_act_grad_raw(&dy, p.act, &saved, AMP_F16);
    else
        ampi_k_act_grad_raw(&dy, p.act, &saved, AMP_BF16);
    ampi_k_store_short(&dy, p.d, at, 8, wide);
}
AMPI_K int ampi_k_is_alike(const amp_gemm_job &p, int masked) {
    return p.backward && (masked || p.d.dtype == p.aux.dtype) && amp_dtype_size(p.d.dtype) == 2u;
}
/* The whole groups of a gradient of 16 bits, in a loop of their own: one loop for all costs the others registers. */
template <int masked>
AMPI_K void ampi_k_act_grads(
    const amp_gemm_job &p, int wide, ampi_k_place here, const ampi_k_place &step, uint64_t all) {
    uint64_t across = p.n / 8u + (p.n % 8u != 0), g = (uint64_t)blockIdx.x * AMP_BLOCK + threadIdx.x;
    for (; g < all; g += (uint64_t)gridDim.x * AMP_BLOCK, ampi_k_move(&here, &step, across, p.m)) {
        uint64_t j = 8u * here.group, byte = (here.batch * p.m + here.row) * across + here.group;
        if (ampi_k_group(j, p.n) == 8u)
            ampi_k_act_grad_at<masked>(p, here.batch * p.stride_d + here.row * p.ldd + j, byte, wide);
    }
}
/* masked: aux is AMP_MASK, a byte for each group, and the act ReLU; in a kernel of its own, which is short. */
template <int masked>
static __global__ void __launch_bounds__(AMP_BLOCK, 2)
    ampi_k_epilogue(amp_gemm_job p, int add_bias, int wide, int wide_bias) {
    uint64_t across = p.n / 8u + (p.n % 8u != 0), all = p.batch * p.m * across, step = (uint64_t)gridDim.x * AMP_BLOCK;
    uint64_t g = (uint64_t)blockIdx.x * AMP_BLOCK + threadIdx.x;
    ampi_k_place here = ampi_k_place_of(g, across, p.m), next = ampi_k_place_of(step, across, p.m);
    const amp_act act = masked ? AMP_RELU : p.act;
    int alike = !add_bias && ampi_k_is_alike(p, masked);
    if (alike) ampi_k_act_grads<masked>(p, wide, here, next, all);
    if (alike && p.n % 8u == 0) return;
    for (; g < all; g += step, ampi_k_move(&here, &next, across, p.m)) {
        uint64_t j = 8u * here.group, at = here.batch * p.stride_d + here.row * p.ldd + j;
        uint64_t byte = (here.batch * p.m + here.row) * across + here.group;
        uint32_t m = ampi_k_group(j, p.n), x[8], y[8], k;
        if (alike && m == 8u) continue;
        ampi_k_load8(x, p.d.data, p.d.dtype, at, m, wide);
        if (add_bias) {
            ampi_k_bias8(y, p, here.row, j, m, wide_bias);
            for (k = 0; k < 8u; k++)
                x[k] = ampi_bits(amp_add(ampi_float(x[k]), ampi_float(y[k])));
        }
        ampi_k_finish8(p, masked, act, x, at, byte, m, wide, NULL);
    }
}

/* Activations apart from products, of any dtypes. */
static __global__ void __launch_bounds__(AMP_BLOCK, 2)
    ampi_k_activation(const AMP_GRID_CONSTANT amp_activation_job a, int wide) {
    uint64_t i = 8u * ((uint64_t)blockIdx.x * AMP_BLOCK + threadIdx.x), step = 8u * ((uint64_t)gridDim.x * AMP_BLOCK);
    for (; i < a.count; i += step) {
        uint32_t m = ampi_k_group(i, a.count), x[8], saved[8];
        ampi_k_load8(x, a.in.data, a.in.dtype, i, m, wide);
        if (a.saved.data) {
            ampi_k_load8(saved, a.saved.data, a.saved.dtype, i, m, wide);
            ampi_k_act_grad8(x, a.act, saved, 1);
        } else {
            ampi_k_act8(x, a.act, 1);
        }
        ampi_k_nearest8(x, a.out.dtype);
        ampi_k_store8(x, a.out.data, a.out.dtype, i, m, wide);
    }
}

/* All of one format of 16 bits. */
template <amp_dtype t>
static __global__ void __launch_bounds__(AMP_BLOCK, 2)
    ampi_k_activation_alike(const AMP_GRID_CONSTANT amp_activation_job a, int wide) {
    uint64_t i = 8u * ((uint64_t)blockIdx.x * AMP_BLOCK + threadIdx.x), step = 8u * ((uint64_t)gridDim.x * AMP_BLOCK);
    for (; i < a.count; i += step) {
        const uint64_t left = a.count - i;
        const uint32_t m = left < 8u ? (uint32_t)left : 8u;
        const int whole = wide & (m == 8u);
        ampi_k_raw x, saved;
        ampi_k_fetch_short(&x, a.in, i, m, whole);
        if (a.saved.data) {
            ampi_k_fetch_short(&saved, a.saved, i, m, whole);
            ampi_k_act_grad_raw(&x, a.act, &saved, t);
        } else {
            ampi_k_act_raw(&x, a.act, t);
        }
        ampi_k_store_short(&x, a.out, i, m, whole);
    }
}

#define AMPI_K_PRODUCTS(X) \
    X(ampi_k_gemm) \
    X(ampi_k_epilogue<0>) \
    X(ampi_k_epilogue<1>) \
    X(ampi_k_activation) X(ampi_k_activation_alike<AMP_F16>) X(ampi_k_activation_alike<AMP_BF16>)
