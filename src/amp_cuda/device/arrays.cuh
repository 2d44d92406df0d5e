/* ==== >>device-arrays ============================================================================================
   Kernels over arrays: casts, finite checks and unscaling, histograms.
   tests: tests/test_arrays.c, tests/test_formats.c */

#define AMPI_CU_FEW 32u /* arrays per launch of the list verbs */

/* What the kernels of a verb leave for the host, or for a later kernel of the same verb: one member per verb, which
   clears it, fills it and reads it. One block per context; the verbs on its stream use it in turn. */
typedef struct ampi_k_finite_sums { /* amp_all_finite */
    uint64_t nan, inf, overflow;
    uint64_t first; /* ~(chunk number << 16 | offset) of the first bad element; 0 if there is none */
} ampi_k_finite_sums;
typedef struct ampi_k_histogram_bins { /* amp_histogram_count */
    uint64_t bins[4 + 256];            /* total, zero, inf, nan, pow2[] */
    uint32_t amax;                     /* bits of the largest magnitude */
    uint32_t _pad;
} ampi_k_histogram_bins;
typedef struct ampi_k_cast_args {
    void *dst;
    const void *src;
    amp_dtype dst_type, src_type;
    uint64_t n, head, groups; /* elements before the vector body; groups of 8 in it */
    uint64_t seed, stream, offset;
    ampi_k_keys keys;
    amp_rounding how;
    int saturate;
} ampi_k_cast_args;

AMPI_K void ampi_k_cast8(const ampi_k_cast_args *a, uint64_t i, uint32_t m, int wide) {
    uint32_t x[8], r[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    ampi_k_load8(x, a->src, a->src_type, i, m, wide);
    if (a->how == AMP_STOCHASTIC) ampi_k_random8(r, &a->keys, a->stream, a->offset + i);
    ampi_k_pattern8(x, a->dst_type, a->how, r, a->saturate);
    ampi_k_store8(x, a->dst, a->dst_type, i, m, wide);
}
static __global__ void __launch_bounds__(AMP_BLOCK) ampi_k_cast(const AMP_GRID_CONSTANT ampi_k_cast_args a) {
    uint64_t me = (uint64_t)blockIdx.x * AMP_BLOCK + threadIdx.x, step = (uint64_t)gridDim.x * AMP_BLOCK, i;
    for (i = me; i < a.groups; i += step)
        ampi_k_cast8(&a, a.head + 8u * i, 8, 1);
    for (i = me; i < a.n - 8u * a.groups; i += step) { /* head and tail, one by one */
        uint64_t at = i < a.head ? i : i + 8u * a.groups;
        uint32_t r = a.how == AMP_STOCHASTIC ? amp_random(a.seed, a.stream, a.offset + at) : 0u;
        ampi_store_pattern(a.dst, a.dst_type, at,
            ampi_encode_any(ampi_load_bits(a.src, a.src_type, at), a.dst_type, a.how, r, a.saturate));
    }
}

/* From doubles or to doubles. */
static __global__ void __launch_bounds__(AMP_BLOCK) ampi_k_cast_f64(const AMP_GRID_CONSTANT ampi_k_cast_args a) {
    uint64_t i = (uint64_t)blockIdx.x * AMP_BLOCK + threadIdx.x, step = (uint64_t)gridDim.x * AMP_BLOCK;
    for (; i < a.n; i += step) {
        uint32_t r = a.how == AMP_STOCHASTIC ? amp_random(a.seed, a.stream, a.offset + i) : 0u;
        if (a.dst_type == AMP_F64)
            ((uint64_t *)a.dst)[i] = ampi_f64_of(ampi_load_bits(a.src, a.src_type, i));
        else
            ampi_store_pattern(
                a.dst, a.dst_type, i, ampi_encode_f64(((const double *)a.src)[i], a.dst_type, a.how, r, a.saturate));
    }
}

/* A few arrays, cut into chunks that are numbered through: a block takes a chunk at a time. */
typedef struct ampi_k_list {
    void *data[AMPI_CU_FEW], *dst[AMPI_CU_FEW];
    uint64_t count[AMPI_CU_FEW];
    amp_dtype type[AMPI_CU_FEW], dst_type[AMPI_CU_FEW];
    uint64_t chunks;      /* of these arrays */
    uint64_t first_chunk; /* number of the first of them in the caller's whole list */
    uint32_t n, _pad;
} ampi_k_list;

typedef struct ampi_k_part { /* one chunk: elements [base, base + n) of an array */
    void *data, *dst;
    amp_dtype type, dst_type;
    uint32_t n;
    uint64_t base;
    ampi_k_ends ends;
} ampi_k_part;

AMPI_K ampi_k_part ampi_k_find(const ampi_k_list *l, uint64_t chunk) {
    ampi_k_part p;
    uint32_t a = 0;
    uint64_t left;
    for (;; a++) {
        uint64_t chunks = l->count[a] / AMP_CHUNK + (l->count[a] % AMP_CHUNK != 0);
        if (chunk < chunks) break;
        chunk -= chunks;
    }
    p.data = l->data[a];
    p.type = l->type[a];
    p.dst = l->dst[a];
    p.dst_type = l->dst_type[a];
    p.base = chunk * AMP_CHUNK;
    left = l->count[a] - p.base;
    p.n = (uint32_t)(left < AMP_CHUNK ? left : AMP_CHUNK);
    p.ends = ampi_k_no_ends();
    ampi_k_meet(&p.ends, p.data, p.type, p.base);
    ampi_k_meet(&p.ends, p.dst, p.dst_type, p.base);
    return p;
}

/* Eight gradients and their products u, as float bits: faults among the first m are counted. */
AMPI_K void ampi_k_check8(const uint32_t g[8], const uint32_t u[8], uint32_t m, uint32_t at, amp_faults *f) {
    uint32_t k;
    if (ampi_k_largest8(u) < 0x7f800000u) return; /* nearly always: a product is finite only if its gradient is */
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        if (k < m) amp_count_fault(f, ampi_float(g[k]), ampi_float(u[k]), at + k);
}
/* Eight gradients g, as float bits, are checked, unless that was done, and written as g * inv in dtype t. They were of
   dtype `from`. */
AMPI_K void ampi_k_unscale8(const uint32_t g[8], void *p, amp_dtype t, amp_dtype from, size_t i, uint32_t m, int wide,
    uint32_t at, float inv, int checked, amp_faults *f) {
    uint32_t k, u[8], x[8];
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        x[k] = u[k] = ampi_bits(amp_mul(ampi_float(g[k]), inv));
    if (!checked) ampi_k_check8(g, u, m, at, f);
    ampi_k_nearest8(x, t);
    ampi_k_store8(x, p, t, i, m, wide);
    if (!amp_may_lose(inv, from, t)) return;
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        if (k < m) amp_count_lost(f, ampi_float(u[k]), ampi_float(ampi_decode_any(x[k], t)), at + k);
}

AMPI_K void ampi_k_add64(uint64_t *sum, uint64_t x) {
    if (x) atomicAdd((unsigned long long *)sum, (unsigned long long)x);
}
AMPI_K void ampi_k_finite8(
    const ampi_k_part *p, uint32_t at, uint32_t m, int wide, int unscale, float inv, amp_faults *f) {
    uint32_t x[8];
    ampi_k_raw raw;
    if (wide && !unscale) { /* as they lie in memory */
        ampi_k_fetch8(&raw, p->data, p->type, p->base + at, 1);
        if (!ampi_k_odd_any8(&raw, p->type)) return;
    }
    ampi_k_load8(x, p->data, p->type, p->base + at, m, wide);
    if (unscale)
        ampi_k_unscale8(x, p->dst, p->dst_type, p->type, p->base + at, m, wide, at, inv, 0, f);
    else
        ampi_k_check8(x, x, m, at, f);
}
AMPI_K void ampi_k_note(ampi_k_finite_sums *out, uint64_t chunk, const amp_faults *f) {
    ampi_k_add64(&out->nan, f->nan);
    ampi_k_add64(&out->inf, f->inf);
    ampi_k_add64(&out->overflow, f->overflow);
    atomicMax((unsigned long long *)&out->first, ~((unsigned long long)chunk << 16 | f->first));
}
static __global__ void __launch_bounds__(AMP_BLOCK)
    ampi_k_finite(ampi_k_list list, amp_scaler_state *unscale, ampi_k_finite_sums *out) {
    float inv = unscale ? amp_inverse_scale(unscale->scale) : 1.0f;
    uint64_t chunk;
    for (chunk = blockIdx.x; chunk < list.chunks; chunk += gridDim.x) {
        ampi_k_part p = ampi_k_find(&list, chunk);
        amp_faults f = amp_no_faults();
        uint32_t groups = ampi_k_groups(&p.ends, p.n), i;
        if (p.type == AMP_F64) {
            for (i = threadIdx.x; i < p.n; i += AMP_BLOCK)
                amp_count_f64(&f, ((const uint64_t *)p.data)[p.base + i], i);
            p.n = groups = 0;
        }
        for (i = threadIdx.x; i < groups; i += AMP_BLOCK)
            ampi_k_finite8(&p, p.ends.head + 8u * i, 8, 1, unscale != NULL, inv, &f);
        for (i = threadIdx.x; i < p.n - 8u * groups; i += AMP_BLOCK)
            ampi_k_finite8(&p, ampi_k_outside(&p.ends, groups, i), 1, 0, unscale != NULL, inv, &f);
        if (f.first == AMP_CHUNK) continue;
        if (out) ampi_k_note(out, list.first_chunk + chunk, &f);
        if (unscale && !unscale->no_check) atomicOr((unsigned *)&unscale->found, amp_found(f.nan, f.inf, f.overflow));
    }
}

AMPI_K uint32_t ampi_k_bin(uint32_t magnitude) { /* its place in ampi_k_histogram_bins */
    if (magnitude == 0) return 1u;
    if (magnitude == 0x7f800000u) return 2u;
    return magnitude > 0x7f800000u ? 3u : 4u + (magnitude >> 23);
}
/* Counted in shared memory, and added to the scratch block once per chunk. */
static __global__ void __launch_bounds__(AMP_BLOCK) ampi_k_histogram(ampi_k_list list, ampi_k_histogram_bins *out) {
    AMP_SHARED(uint32_t, bins, 4 + 256);
    uint64_t chunk;
    uint32_t amax = 0, groups, i, k, x[8];
    for (chunk = blockIdx.x; chunk < list.chunks; chunk += gridDim.x) {
        ampi_k_part p = ampi_k_find(&list, chunk);
        for (i = threadIdx.x; i < 4u + 256u; i += AMP_BLOCK)
            bins[i] = 0;
        __syncthreads();
        groups = ampi_k_groups(&p.ends, p.n);
        for (i = threadIdx.x; i < p.n - 7u * groups; i += AMP_BLOCK) { /* groups, then what is outside */
            uint32_t m = i < groups ? 8u : 1u;
            uint32_t at = m > 1u ? p.ends.head + 8u * i : ampi_k_outside(&p.ends, groups, i - groups);
            ampi_k_load8(x, p.data, p.type, p.base + at, m, 1);
            AMP_UNROLL
            for (k = 0; k < 8u; k++) {
                uint32_t a = x[k] & 0x7fffffffu;
                if (k >= m) continue;
                atomicAdd(&bins[ampi_k_bin(a)], 1u);
                if (a < 0x7f800000u && a > amax) amax = a;
            }
        }
        __syncthreads();
        for (i = threadIdx.x; i < 4u + 256u; i += AMP_BLOCK)
            ampi_k_add64(&out->bins[i], i == 0 ? p.n : bins[i]);
        __syncthreads();
    }
    if (amax) atomicMax((unsigned *)&out->amax, amax);
}

#define AMPI_K_ARRAYS(X) X(ampi_k_cast) X(ampi_k_cast_f64) X(ampi_k_finite) X(ampi_k_histogram)
