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
AMPI_K uint32_t ampi_k_amax8(const uint32_t x[8], uint32_t m, uint32_t amax) { /* NaN does not count */
    uint32_t k;
    AMP_UNROLL
    for (k = 0; k < 8u; k++) {
        uint32_t a = x[k] & 0x7fffffffu;
        if (k < m && a <= 0x7f800000u && a > amax) amax = a;
    }
    return amax;
}
AMPI_K void ampi_k_fit8(uint32_t x[8], float by, amp_dtype t) { /* to patterns */
    uint32_t k, most = amp_fp8_most(t);
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        x[k] = ampi_bits(ampi_scalar_fit_one(ampi_float(x[k]), by, most));
    ampi_k_nearest8(x, t);
}
typedef struct ampi_k_quantize_args {
    amp_quantize_job job;
    uint32_t write, see; /* 1: outputs; amax, and the end of the cast */
    int wide, wide_t;    /* rows of src and dst, of dst_t, may be taken by 8 elements */
} ampi_k_quantize_args;
/* In the order of memory: the amax, dst. */
static __global__ void __launch_bounds__(AMP_BLOCK) ampi_k_quantize(const AMP_GRID_CONSTANT ampi_k_quantize_args a) {
    const amp_quantize_job *j = &a.job;
    const float by = a.write ? amp_fp8_begin(j) : 1.0f;
    uint64_t n = (uint64_t)j->rows * j->cols, step = (uint64_t)gridDim.x * AMP_BLOCK * 8u, i;
    uint32_t amax = 0, x[8];
    for (i = ((uint64_t)blockIdx.x * AMP_BLOCK + threadIdx.x) * 8u; i < n; i += step) {
        uint32_t m = n - i < 8u ? (uint32_t)(n - i) : 8u;
        ampi_k_load8(x, j->src.data, j->src.dtype, i, m, a.wide);
        amax = ampi_k_amax8(x, m, amax);
        if (!a.write) continue;
        ampi_k_fit8(x, by, j->dst.dtype);
        ampi_k_store8(x, j->dst.data, j->dst.dtype, i, m, a.wide);
    }
    if (a.see) ampi_k_quantize_end(j, amax);
}

/* In tiles of AMPI_K_TILE x AMPI_K_TILE, through shared memory: dst, if there is one, and dst_t. The pitch puts rows
   into different banks. */
#define AMPI_K_TILE  64u
#define AMPI_K_PITCH (AMPI_K_TILE + 4u)
#define AMPI_K_SLOTS (AMPI_K_TILE * AMPI_K_TILE / 8u) /* groups of eight */
AMPI_K uint32_t ampi_k_turn_in(
    const ampi_k_quantize_args &a, uint64_t r0, uint64_t c0, float by, uint8_t *tile, uint32_t amax) {
    const amp_quantize_job *j = &a.job;
    const amp_dtype t = j->dst_t.dtype;
    uint32_t slot, k, x[8];
    for (slot = threadIdx.x; slot < AMPI_K_SLOTS; slot += AMP_BLOCK) {
        uint32_t r = slot / (AMPI_K_TILE / 8u), c = slot % (AMPI_K_TILE / 8u) * 8u, m;
        uint64_t i = (r0 + r) * j->cols + c0 + c;
        if (r0 + r >= j->rows || c0 + c >= j->cols) continue;
        m = j->cols - c0 - c < 8u ? (uint32_t)(j->cols - c0 - c) : 8u;
        ampi_k_load8(x, j->src.data, j->src.dtype, i, m, a.wide);
        amax = ampi_k_amax8(x, m, amax);
        ampi_k_fit8(x, by, t);
        if (j->dst.data) ampi_k_store8(x, j->dst.data, t, i, m, a.wide);
        AMP_UNROLL
        for (k = 0; k < 8u; k++)
            tile[(c + k) * AMPI_K_PITCH + r] = (uint8_t)x[k];
    }
    return amax;
}
AMPI_K void ampi_k_turn_out(const ampi_k_quantize_args &a, uint64_t r0, uint64_t c0, const uint8_t *tile) {
    const amp_quantize_job *j = &a.job;
    uint32_t slot, k, x[8];
    for (slot = threadIdx.x; slot < AMPI_K_SLOTS; slot += AMP_BLOCK) {
        uint32_t c = slot / (AMPI_K_TILE / 8u), r = slot % (AMPI_K_TILE / 8u) * 8u, m;
        if (r0 + r >= j->rows || c0 + c >= j->cols) continue;
        m = j->rows - r0 - r < 8u ? (uint32_t)(j->rows - r0 - r) : 8u;
        AMP_UNROLL
        for (k = 0; k < 8u; k++)
            x[k] = tile[c * AMPI_K_PITCH + r + k];
        ampi_k_store8(x, j->dst_t.data, j->dst_t.dtype, (c0 + c) * j->rows + r0 + r, m, a.wide_t);
    }
}
static __global__ void __launch_bounds__(AMP_BLOCK)
    ampi_k_quantize_turn(const AMP_GRID_CONSTANT ampi_k_quantize_args a) {
    AMP_SHARED(uint8_t, tile, AMPI_K_TILE *AMPI_K_PITCH);
    const float by = amp_fp8_begin(&a.job);
    uint64_t across = (a.job.cols - 1u) / AMPI_K_TILE + 1u, tiles = ((a.job.rows - 1u) / AMPI_K_TILE + 1u) * across, i;
    uint32_t amax = 0;
    for (i = blockIdx.x; i < tiles; i += gridDim.x) {
        uint64_t r0 = i / across * AMPI_K_TILE, c0 = i % across * AMPI_K_TILE;
        amax = ampi_k_turn_in(a, r0, c0, by, tile, amax);
        __syncthreads();
        ampi_k_turn_out(a, r0, c0, tile);
        __syncthreads();
    }
    if (a.see) ampi_k_quantize_end(&a.job, amax);
}

#define AMPI_K_QUANTIZE(X) X(ampi_k_quantize) X(ampi_k_quantize_turn)
