/* ==== >>device-products ==========================================================================================
   The plain product, epilogues, column sums.
   tests: tests/test_products.c, tests/test_product_table.c, tests/test_ordered.c */

/* The plain product, for AMP_GEMM_ORDERED and for what cuBLASLt does not take: any dtypes, layouts, alignment, k = 0.
   Its sums are those of >>numerics. A block makes tiles of AMPI_K_M x AMPI_K_N elements from slices of AMPI_K_SLICE
   along k, widened into shared memory; of a tile, a thread has AMPI_K_DOWN rows by AMPI_K_ACROSS columns in registers:
   the sums of the present 256 k, and the total of those before. While it multiplies a slice, it fetches the next. */
#define AMPI_K_DOWN    8u
#define AMPI_K_ACROSS  4u
#define AMPI_K_N       64u
#define AMPI_K_LINE    (AMPI_K_N / AMPI_K_ACROSS) /* threads side by side */
#define AMPI_K_M       (AMP_BLOCK / AMPI_K_LINE * AMPI_K_DOWN)
#define AMPI_K_SLICE   16u
#define AMPI_K_BLOCK   256u /* what >>numerics adds up in one chain */
#define AMPI_K_MINE    (AMPI_K_DOWN * AMPI_K_ACROSS)
#define AMPI_K_PAD     4u                                          /* between rows in shared memory */
#define AMPI_K_AT_ONCE ((AMP_BLOCK < 128 ? 256 : 512) / AMP_BLOCK) /* blocks on a multiprocessor: their registers fit */
#define AMPI_K_EIGHTS  ((AMPI_K_N * AMPI_K_SLICE / 8u + AMP_BLOCK - 1u) / AMP_BLOCK) /* of B, for a thread; of A 1 */
#define AMPI_K_SLICE_FOURS ((AMPI_K_M + AMPI_K_N + 2u * AMPI_K_PAD) * AMPI_K_SLICE / 4u) /* of floats: both slices */
#define AMPI_K_TILE_FOURS  (AMPI_K_M * AMPI_K_N / 4u) /* the tile of sums, in their place */
#define AMPI_K_ROOM        (AMPI_K_SLICE_FOURS > AMPI_K_TILE_FOURS ? AMPI_K_SLICE_FOURS : AMPI_K_TILE_FOURS)

/* One operand at a tile; a row is what the other operand meets: of A a row, of B a column. */
typedef struct ampi_k_side {
    const void *data;
    amp_dtype type;
    uint32_t width;    /* rows of a tile */
    size_t first, ld;  /* the tile's element 0 */
    size_t rows, k;    /* from there on */
    int along_k, wide; /* neighbours in memory follow each other along k; eight at a time */
} ampi_k_side;
/* Eight neighbours of a slice, from row r and element q of the slice on, as they travel to shared memory. */
typedef struct ampi_k_eight {
    ampi_k_raw raw;
    size_t at;
    uint32_t r, q, count; /* how many of them there are */
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
AMPI_K void ampi_k_fetch(ampi_k_eight *e, const ampi_k_side &s, size_t k0) {
    if (e->q >= AMPI_K_SLICE || e->r >= s.width) return;
    if (s.along_k)
        e->count = e->r < s.rows ? ampi_k_group(k0 + e->q, s.k) : 0u;
    else
        e->count = k0 + e->q < s.k ? ampi_k_group(e->r, s.rows) : 0u;
    if (s.wide && e->count == 8u) ampi_k_fetch8(&e->raw, s.data, s.type, e->at, 1);
}
AMPI_K void ampi_k_fetch_first(ampi_k_eight *e, const ampi_k_side &s, uint32_t g) { /* the g-th eight of a slice */
    e->r = s.along_k ? g / (AMPI_K_SLICE / 8u) : g % (s.width / 8u) * 8u;
    e->q = s.along_k ? g % (AMPI_K_SLICE / 8u) * 8u : g / (s.width / 8u);
    e->at = s.first + (s.along_k ? e->r * s.ld + e->q : e->q * s.ld + e->r);
    ampi_k_fetch(e, s, 0);
}
AMPI_K void ampi_k_fetch_next(ampi_k_eight *e, const ampi_k_side &s, size_t k0) {
    e->at += s.along_k ? AMPI_K_SLICE : AMPI_K_SLICE * s.ld;
    ampi_k_fetch(e, s, k0);
}
/* To [q][r] in shared memory. What is not there becomes `zero`: fma(-0, 0, sum) is the sum, whatever its sign. */
AMPI_K void ampi_k_put(float *to, const ampi_k_eight &e, const ampi_k_side &s, float zero) {
    uint32_t x[8], pitch = s.width + AMPI_K_PAD, step = s.along_k ? pitch : 1u, i;
    if (e.q >= AMPI_K_SLICE || e.r >= s.width) return; /* more threads than eights */
    to += e.q * pitch + e.r;
    if (s.wide && e.count == 8u) {
        ampi_k_widen8(x, &e.raw, s.type);
        AMP_UNROLL
        for (i = 0; i < 8u; i++)
            to[i * step] = ampi_float(x[i]);
    } else {
        AMP_NO_UNROLL
        for (i = 0; i < 8u; i++)
            to[i * step] = i < e.count ? amp_load(s.data, s.type, e.at + i) : zero;
    }
}
/* What a backward reads of element [i, j] of batch z. */
AMPI_K float ampi_k_saved(const amp_gemm_job &p, size_t z, size_t i, size_t j, size_t at) {
    if (p.aux.dtype != AMP_MASK) return amp_load(p.aux.data, p.aux.dtype, at);
    return ampi_mask_y(ampi_mask_at(p.aux.data, z * p.m + i, p.n, 0), j);
}
/* From the sum of element [i, j] of batch z to d and aux. */
AMPI_K void ampi_k_gemm_store(
    const amp_gemm_job &p, size_t z, size_t i, size_t j, float sum, float alpha, float beta, uint32_t *amax) {
    size_t at = z * p.stride_d + i * p.ldd + j;
    float c = 0.0f, bias = 0.0f, saved = 0.0f, before, v;
    if (p.c.data) c = amp_load(p.c.data, p.c.dtype, z * p.stride_c + i * p.ldc + j);
    if (p.bias.data) bias = amp_load(p.bias.data, p.bias.dtype, p.bias_per_row ? i : j);
    if (p.backward) saved = ampi_k_saved(p, z, i, j, at);
    v = amp_epilogue_one(&p, sum, alpha, beta, c, bias, saved, &before, amax);
    if (p.aux.data && !p.backward && p.aux.dtype != AMP_MASK) amp_store(p.aux.data, p.aux.dtype, at, before);
    amp_store(p.d.data, p.d.dtype, at, v);
}

/* Sums over a slice, for the thread's rows at a and columns at b. */
AMPI_K void ampi_k_multiply(float sum[AMPI_K_MINE], const float4 *a, const float4 *b) {
    uint32_t q, i, j;
    AMP_UNROLL
    for (q = 0; q < AMPI_K_SLICE; q++) {
        float4 lower = a[0], upper = a[1], right = b[0];
        float x[AMPI_K_DOWN] = {lower.x, lower.y, lower.z, lower.w, upper.x, upper.y, upper.z, upper.w};
        float y[AMPI_K_ACROSS] = {right.x, right.y, right.z, right.w};
        AMP_UNROLL
        for (i = 0; i < AMPI_K_DOWN; i++) {
            AMP_UNROLL
            for (j = 0; j < AMPI_K_ACROSS; j++) {
                float *s = &sum[i * AMPI_K_ACROSS + j];
                *s = AMP_FMA(x[i], y[j], *s);
            }
        }
        a += (AMPI_K_M + AMPI_K_PAD) / 4u;
        b += (AMPI_K_N + AMPI_K_PAD) / 4u;
    }
}
/* The sums of one tile over so many batches, into room[AMPI_K_M][AMPI_K_N]. */
AMPI_K void ampi_k_tile_sums(const amp_gemm_job &p, ampi_k_side a, ampi_k_side b, size_t batches, float4 *room) {
    const float zero = 0.0f, negative_zero = ampi_float(0x80000000u);
    float4 *bs = room + (AMPI_K_M + AMPI_K_PAD) * AMPI_K_SLICE / 4u;
    uint32_t me = threadIdx.x, column = me % AMPI_K_LINE, row = me / AMPI_K_LINE, i;
    int busy = row * AMPI_K_DOWN < a.rows && column * AMPI_K_ACROSS < b.rows;
    float sum[AMPI_K_MINE], total[AMPI_K_MINE];
    ampi_k_eight mine_a, mine_b[AMPI_K_EIGHTS];
    AMP_UNROLL
    for (i = 0; i < AMPI_K_MINE; i++) {
        sum[i] = 0.0f;
        total[i] = negative_zero; /* the first block's sum plus this is that sum */
    }
    AMP_NO_UNROLL
    for (; batches; batches--) {
        size_t k0 = 0;
        ampi_k_fetch_first(&mine_a, a, me);
        AMP_UNROLL
        for (i = 0; i < AMPI_K_EIGHTS; i++)
            ampi_k_fetch_first(&mine_b[i], b, me + i * AMP_BLOCK);
        do {
            ampi_k_put((float *)room, mine_a, a, negative_zero);
            AMP_UNROLL
            for (i = 0; i < AMPI_K_EIGHTS; i++)
                ampi_k_put((float *)bs, mine_b[i], b, zero);
            __syncthreads();
            k0 += AMPI_K_SLICE;
            ampi_k_fetch_next(&mine_a, a, k0);
            AMP_UNROLL
            for (i = 0; i < AMPI_K_EIGHTS; i++)
                ampi_k_fetch_next(&mine_b[i], b, k0);
            if (busy) ampi_k_multiply(sum, room + row * AMPI_K_DOWN / 4u, bs + column * AMPI_K_ACROSS / 4u);
            if (k0 % AMPI_K_BLOCK == 0 || k0 >= a.k) {
                AMP_UNROLL
                for (i = 0; i < AMPI_K_MINE; i++) {
                    total[i] = amp_add(total[i], sum[i]);
                    sum[i] = 0.0f;
                }
            }
            __syncthreads();
        } while (k0 < a.k);
        a.first += p.stride_a; /* the next batch */
        b.first += p.stride_b;
    }
    AMP_UNROLL
    for (i = 0; i < AMPI_K_DOWN; i++)
        room[(row * AMPI_K_DOWN + i) * AMPI_K_LINE + column] = make_float4(total[i * AMPI_K_ACROSS],
            total[i * AMPI_K_ACROSS + 1u], total[i * AMPI_K_ACROSS + 2u], total[i * AMPI_K_ACROSS + 3u]);
    __syncthreads();
}

static __global__ void __launch_bounds__(AMP_BLOCK, AMPI_K_AT_ONCE)
    ampi_k_gemm(const AMP_GRID_CONSTANT amp_gemm_job p) {
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
        a.k = b.k = p.k;
        ampi_k_tile_sums(p, a, b, p.sum_batches ? p.batch : 1u, room);
        AMP_NO_UNROLL
        for (e = threadIdx.x; e < AMPI_K_M * AMPI_K_N; e += AMP_BLOCK) {
            size_t i = i0 + e / AMPI_K_N, j = j0 + e % AMPI_K_N;
            if (i < p.m && j < p.n) ampi_k_gemm_store(p, z, i, j, ((const float *)room)[e], alpha, beta, &amax);
        }
        __syncthreads();
    }
    if (p.amax_d && amax) atomicMax((unsigned *)p.amax_d, amax);
}

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

/* What cuBLASLt left to do: d, which is not FP8, holds the product; the rest of amp_epilogue_one, in groups of 8 along
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
AMPI_K void ampi_k_fill8(uint32_t x[8], uint32_t one) {
    uint32_t k;
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        x[k] = one;
}
/* masked: aux is AMP_MASK, a byte for each group, and the act ReLU; in a kernel of its own, which is short. */
template <int masked>
static __global__ void __launch_bounds__(AMP_BLOCK, 2)
    ampi_k_epilogue(amp_gemm_job p, int add_bias, int wide, int wide_bias) {
    uint64_t across = p.n / 8u + (p.n % 8u != 0), all = p.batch * p.m * across, step = (uint64_t)gridDim.x * AMP_BLOCK;
    uint64_t g = (uint64_t)blockIdx.x * AMP_BLOCK + threadIdx.x;
    ampi_k_place here = ampi_k_place_of(g, across, p.m), next = ampi_k_place_of(step, across, p.m);
    const amp_act act = masked ? AMP_RELU : p.act;
    uint8_t *mask = (uint8_t *)p.aux.data;
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
            if (p.bias_per_row)
                ampi_k_fill8(y, ampi_load_bits(p.bias.data, p.bias.dtype, here.row));
            else
                ampi_k_load8(y, p.bias.data, p.bias.dtype, j, m, wide_bias);
            for (k = 0; k < 8u; k++)
                x[k] = ampi_bits(amp_add(ampi_float(x[k]), ampi_float(y[k])));
        }
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
        ampi_k_nearest8(x, p.d.dtype);
        ampi_k_store8(x, p.d.data, p.d.dtype, at, m, wide);
        if (masked && !p.backward) mask[byte] = (uint8_t)ampi_k_mask8(x, p.d.dtype, m);
    }
}
/* The masks of products that the plain kernel has made: groups as above. */
static __global__ void __launch_bounds__(AMP_BLOCK) ampi_k_mask(amp_gemm_job p, int wide) {
    uint64_t across = ampi_mask_pitch(p.n), all = amp_gemm_outputs(&p) * p.m * across,
             step = (uint64_t)gridDim.x * AMP_BLOCK;
    uint64_t g = (uint64_t)blockIdx.x * AMP_BLOCK + threadIdx.x;
    for (; g < all; g += step) {
        uint64_t row = g / across, j = 8u * (g % across);
        uint64_t at = row / p.m * p.stride_d + row % p.m * p.ldd + j;
        uint32_t x[8], m = ampi_k_group(j, p.n);
        ampi_k_load8(x, p.d.data, p.d.dtype, at, m, wide);
        ((uint8_t *)p.aux.data)[g] = (uint8_t)ampi_k_mask8(x, AMP_F32, m);
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
    X(ampi_k_mask) X(ampi_k_activation) X(ampi_k_activation_alike<AMP_F16>) X(ampi_k_activation_alike<AMP_BF16>)
