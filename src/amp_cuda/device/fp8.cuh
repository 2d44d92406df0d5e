/* ---- FP8 with a scale per tensor: the rules are amp_fp8_begin and amp_fp8_end ----
   tests: tests/test_fp8.c */

/* Blocks that have seen a tensor: the last one to finish ends the cast. The ticket wraps to 0. */
AMPI_K void ampi_k_quantize_end(const amp_quantize_job *j, uint32_t amax) {
    AMP_SHARED(uint32_t, most, 3); /* amax, whether this block is the last, whether the history is looked through */
    amp_fp8_state *s = j->state;
    uint32_t i, k;
    AMP_UNROLL
    for (k = AMPI_TEAM / 2u; k; k /= 2u) {
        uint32_t other = AMP_SHUFFLE(amax, k);
        amax = other > amax ? other : amax;
    }
    if (threadIdx.x < 2u) most[threadIdx.x] = 0;
    __syncthreads();
    if (threadIdx.x % AMPI_TEAM == 0) atomicMax(&most[0], amax);
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicMax((unsigned *)&s->found, most[0]);
        AMP_FENCE();
        most[1] = atomicInc((unsigned *)&s->ticket, gridDim.x - 1u) == gridDim.x - 1u;
        AMP_FENCE();
    }
    __syncthreads();
    if (!most[1]) return;
    if (threadIdx.x == 0) {
        most[0] = 0;
        most[2] = (uint32_t)amp_fp8_end(j, ampi_float(AMP_LOAD_L2(&s->found)));
        s->found = 0;
    }
    __syncthreads();
    for (i = threadIdx.x, amax = 0; most[2] && i < j->n_history; i += AMP_BLOCK)
        amax = ampi_bits(j->history[i]) > amax ? ampi_bits(j->history[i]) : amax;
    if (amax) atomicMax(&most[0], amax);
    __syncthreads();
    if (most[2] && threadIdx.x == 0) s->window = ampi_float(most[0]);
}
AMPI_K uint32_t ampi_k_amax8(const uint32_t x[8], uint32_t amax) { /* NaN does not count */
    uint32_t k;
    AMP_UNROLL
    for (k = 0; k < 8u; k++) {
        uint32_t a = x[k] & 0x7fffffffu;
        if (a <= 0x7f800000u && a > amax) amax = a;
    }
    return amax;
}
typedef struct ampi_k_quantize_args {
    amp_quantize_job job;
    uint32_t write, see; /* 1: outputs; amax, and the end of the cast */
    int wide, wide_t;    /* rows of src and dst, of dst_t, may be taken by 8 elements */
} ampi_k_quantize_args;
/* What numbers are multiplied with, and from which magnitude on, as bits, they go the long way: Inf and NaN or, where
   that factor is not a positive number, all. */
typedef struct ampi_k_scale {
    float by;
    uint32_t odd;
} ampi_k_scale;
AMPI_K ampi_k_scale ampi_k_scale_of(const ampi_k_quantize_args *a) {
    ampi_k_scale s = {1.0f, 0x7f800000u};
    if (a->write) s.by = amp_fp8_begin(&a->job);
    if (ampi_bits(s.by) - 1u >= 0x7f7fffffu) s.odd = 0;
    return s;
}
/* Eight finite floats to patterns, as they will lie in memory. NVIDIA's conversion limits what it converts. */
AMPI_K void ampi_k_fit8(uint32_t w[2], uint32_t x[8], float by, amp_dtype t) {
    uint32_t k;
    AMP_UNROLL
    for (k = 0; k < 8u; k++) {
#if defined(AMPI_F8_HARDWARE)
        x[k] = ampi_bits(amp_mul(ampi_float(x[k]), by));
#else
        x[k] = ampi_bits(ampi_scalar_fit_one(ampi_float(x[k]), by, amp_fp8_most(t)));
#endif
    }
    w[0] = AMP_TO_F8(x, t);
    w[1] = AMP_TO_F8(x + 4, t);
}
/* The same with Inf and NaN among them. */
AMPI_K void ampi_k_fit_odd8(uint32_t w[4], uint32_t x[8], float by, amp_dtype t) {
    const uint32_t none[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    uint32_t k;
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        x[k] = ampi_bits(ampi_scalar_fit_one(ampi_float(x[k]), by, amp_fp8_most(t)));
    ampi_k_exact_words(w, x, t, AMP_NEAREST, none, 0);
}
/* The larger of amax and that of eight elements of src; `write`: and these as patterns of type t. */
AMPI_K uint32_t ampi_k_quantize8(uint32_t w[4], const ampi_k_raw *r, amp_dtype from, const ampi_k_scale &s,
    uint32_t write, amp_dtype t, uint32_t amax) {
    uint32_t x[8], size;
    if (from == AMP_F32)
        ampi_k_patterns8(x, r, AMP_F32);
    else if (from == AMP_BF16)
        ampi_k_quick8(x, r, AMP_BF16);
    else
        ampi_k_quick8(x, r, AMP_F16);
    size = ampi_k_largest8(x);
    if (size >= s.odd) {
        ampi_k_widen8(x, r, from);
        amax = ampi_k_amax8(x, amax);
        if (!write) return amax;
        if (t == AMP_F8E4M3)
            ampi_k_fit_odd8(w, x, s.by, AMP_F8E4M3);
        else
            ampi_k_fit_odd8(w, x, s.by, AMP_F8E5M2);
        return amax;
    }
    if (!write) return size > amax ? size : amax;
    if (t == AMP_F8E4M3)
        ampi_k_fit8(w, x, s.by, AMP_F8E4M3);
    else
        ampi_k_fit8(w, x, s.by, AMP_F8E5M2);
    return size > amax ? size : amax;
}
AMPI_K void ampi_k_store_f8(const uint32_t w[2], const amp_array &a, size_t i, uint32_t m, int wide) {
    uint32_t k;
    ampi_k_u2 v = {w[0], w[1]};
    char *to = (char *)a.data + i;
    if (wide && m == 8u) {
        *(ampi_k_u2 *)to = v;
        return;
    }
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        if (k < m) to[k] = (char)(w[k / 4u] >> (8u * (k % 4u)));
}
/* In the order of memory: the amax, dst. */
static __global__ void __launch_bounds__(AMP_BLOCK) ampi_k_quantize(const AMP_GRID_CONSTANT ampi_k_quantize_args a) {
    const amp_quantize_job *j = &a.job;
    const ampi_k_scale s = ampi_k_scale_of(&a);
    uint64_t n = (uint64_t)j->rows * j->cols, step = (uint64_t)gridDim.x * AMP_BLOCK * 8u, i;
    uint32_t amax = 0, w[4];
    ampi_k_raw r;
    for (i = ((uint64_t)blockIdx.x * AMP_BLOCK + threadIdx.x) * 8u; i < n; i += step) {
        uint32_t m = ampi_k_group(i, n);
        ampi_k_take8(&r, j->src.data, j->src.dtype, i, m, a.wide);
        amax = ampi_k_quantize8(w, &r, j->src.dtype, s, a.write, j->dst.dtype, amax);
        if (a.write) ampi_k_store_f8(w, j->dst, i, m, a.wide);
    }
    if (a.see) ampi_k_quantize_end(j, amax);
}

/* In tiles of AMPI_K_DEEP rows by AMPI_K_TILE columns, through shared memory: dst, if there is one, and dst_t. A thread
   takes four rows of eight and turns each four by four bytes; columns begin in the shared memory where no two threads
   of a warp meet in a bank. */
#define AMPI_K_TILE      64u
#define AMPI_K_ACROSS8   (AMPI_K_TILE / 8u)
#define AMPI_K_DEEP      (4u * AMP_BLOCK / AMPI_K_ACROSS8)
#define AMPI_K_COLUMN(c) ((c) * (AMPI_K_DEEP / 4u) + (c) / 8u * 4u) /* words */
AMPI_K uint32_t ampi_k_turn_in(
    const ampi_k_quantize_args &a, uint64_t r0, uint64_t c0, const ampi_k_scale &s, uint32_t *tile, uint32_t amax) {
    const amp_quantize_job *j = &a.job;
    const uint32_t c = threadIdx.x % AMPI_K_ACROSS8 * 8u, four = threadIdx.x / AMPI_K_ACROSS8;
    const uint32_t m = ampi_k_group(c0 + c, j->cols),
                   rows = (uint32_t)(j->rows - r0 < AMPI_K_DEEP ? j->rows - r0 : AMPI_K_DEEP);
    uint64_t first = (r0 + 4u * four) * j->cols + c0 + c;
    uint32_t w[4][4], q, k;
    ampi_k_raw raw[4];
    AMP_UNROLL
    for (q = 0; q < 4u; q++) {
        uint32_t count = 4u * four + q < rows ? m : 0u;
        ampi_k_take8(&raw[q], j->src.data, j->src.dtype, first + q * j->cols, count, a.wide);
    }
    AMP_UNROLL
    for (q = 0; q < 4u; q++) {
        uint32_t count = 4u * four + q < rows ? m : 0u;
        amax = ampi_k_quantize8(w[q], &raw[q], j->src.dtype, s, 1, j->dst_t.dtype, amax);
        if (j->dst.data) ampi_k_store_f8(w[q], j->dst, first + q * j->cols, count, a.wide);
    }
    AMP_UNROLL
    for (k = 0; k < 2u; k++) {
        uint32_t *to = &tile[AMPI_K_COLUMN(c) + 4u * k * AMPI_K_COLUMN(1u) + four];
        uint32_t a0 = __byte_perm(w[0][k], w[1][k], 0x5140), a1 = __byte_perm(w[0][k], w[1][k], 0x7362);
        uint32_t b0 = __byte_perm(w[2][k], w[3][k], 0x5140), b1 = __byte_perm(w[2][k], w[3][k], 0x7362);
        to[0] = __byte_perm(a0, b0, 0x5410);
        to[AMPI_K_COLUMN(1u)] = __byte_perm(a0, b0, 0x7632);
        to[AMPI_K_COLUMN(2u)] = __byte_perm(a1, b1, 0x5410);
        to[AMPI_K_COLUMN(3u)] = __byte_perm(a1, b1, 0x7632);
    }
    return amax;
}
AMPI_K void ampi_k_turn_out(const ampi_k_quantize_args &a, uint64_t r0, uint64_t c0, const uint32_t *tile) {
    const amp_quantize_job *j = &a.job;
    uint32_t slot;
    for (slot = threadIdx.x; slot < AMPI_K_TILE * AMPI_K_DEEP / 8u; slot += AMP_BLOCK) {
        uint32_t c = slot / (AMPI_K_DEEP / 8u), r = slot % (AMPI_K_DEEP / 8u) * 8u;
        const ampi_k_u2 v = *(const ampi_k_u2 *)&tile[AMPI_K_COLUMN(c) + r / 4u];
        const uint32_t w[2] = {v.x, v.y};
        if (r0 + r >= j->rows || c0 + c >= j->cols) continue;
        ampi_k_store_f8(w, j->dst_t, (c0 + c) * j->rows + r0 + r, ampi_k_group(r0 + r, j->rows), a.wide_t);
    }
}
static __global__ void __launch_bounds__(AMP_BLOCK)
    ampi_k_quantize_turn(const AMP_GRID_CONSTANT ampi_k_quantize_args a) {
    AMP_SHARED(ampi_k_u2, tile, (AMPI_K_COLUMN(AMPI_K_TILE - 8u) + 8u * AMPI_K_DEEP / 4u) / 2u);
    const ampi_k_scale s = ampi_k_scale_of(&a);
    uint64_t across = (a.job.cols - 1u) / AMPI_K_TILE + 1u, tiles = ((a.job.rows - 1u) / AMPI_K_DEEP + 1u) * across, i;
    uint32_t amax = 0;
    for (i = blockIdx.x; i < tiles; i += gridDim.x) {
        uint64_t r0 = i / across * AMPI_K_DEEP, c0 = i % across * AMPI_K_TILE;
        amax = ampi_k_turn_in(a, r0, c0, s, (uint32_t *)tile, amax);
        __syncthreads();
        ampi_k_turn_out(a, r0, c0, (const uint32_t *)tile);
        __syncthreads();
    }
    if (a.see) ampi_k_quantize_end(&a.job, amax);
}

#define AMPI_K_QUANTIZE(X) X(ampi_k_quantize) X(ampi_k_quantize_turn)
