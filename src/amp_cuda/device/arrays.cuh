/* ==== >>device-arrays ============================================================================================
   Kernels over arrays: casts, finite checks and unscaling, histograms.
   tests: tests/test_arrays.c, tests/test_formats.c */

#define AMPI_CU_FEW 100u /* arrays per launch of the list verbs, as many as its arguments have room for */

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
/* Elements outside of the groups, one by one. */
AMPI_K void ampi_k_cast_ends(const ampi_k_cast_args *a, uint64_t me, uint64_t step) {
    for (uint64_t i = me; i < a->n - 8u * a->groups; i += step) {
        uint64_t at = i < a->head ? i : i + 8u * a->groups;
        uint32_t r = a->how == AMP_STOCHASTIC ? amp_random(a->seed, a->stream, a->offset + at) : 0u;
        ampi_store_pattern(a->dst, a->dst_type, at,
            ampi_encode_any(ampi_load_bits(a->src, a->src_type, at), a->dst_type, a->how, r, a->saturate));
    }
}
/* To floats: a thread has two groups of four, a block's width apart, so that each store of a warp fills whole lines. */
static __global__ void __launch_bounds__(AMP_BLOCK) ampi_k_cast_wide(const AMP_GRID_CONSTANT ampi_k_cast_args a) {
    const uint64_t fours = 2u * a.groups, step = (uint64_t)gridDim.x * (2u * AMP_BLOCK);
    uint64_t me = (uint64_t)blockIdx.x * AMP_BLOCK + threadIdx.x, i;
    for (i = (uint64_t)blockIdx.x * (2u * AMP_BLOCK) + threadIdx.x; i < fours; i += step) {
        const uint64_t other = i + AMP_BLOCK < fours ? i + AMP_BLOCK : i;
        uint32_t x[8];
        ampi_k_raw r;
        ampi_k_fetch_fours(&r, a.src, a.src_type, a.head + 4u * i, a.head + 4u * other);
        ampi_k_widen8(x, &r, a.src_type);
        ampi_k_put4((float *)a.dst + a.head + 4u * i, x, 1);
        ampi_k_put4((float *)a.dst + a.head + 4u * other, x + 4, 1);
    }
    ampi_k_cast_ends(&a, me, (uint64_t)gridDim.x * AMP_BLOCK);
}
static __global__ void __launch_bounds__(AMP_BLOCK) ampi_k_cast(const AMP_GRID_CONSTANT ampi_k_cast_args a) {
    uint64_t me = (uint64_t)blockIdx.x * AMP_BLOCK + threadIdx.x, step = (uint64_t)gridDim.x * AMP_BLOCK, i;
    for (i = me; i < a.groups; i += step)
        ampi_k_cast8(&a, a.head + 8u * i, 8, 1);
    ampi_k_cast_ends(&a, me, step);
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

/* A few arrays, cut into chunks that are numbered through, and each chunk into pieces: a block takes a piece at a time.
   As many pieces as fill the GPU, if there are so many elements. */
typedef struct ampi_k_list {
    void *data[AMPI_CU_FEW], *dst[AMPI_CU_FEW];
    uint64_t count[AMPI_CU_FEW];
    uint32_t end[AMPI_CU_FEW]; /* chunks of these arrays up to this one, with it */
    uint8_t type[AMPI_CU_FEW], dst_type[AMPI_CU_FEW];
    uint64_t chunks;      /* of these arrays */
    uint64_t first_chunk; /* number of the first of them in the caller's whole list */
    uint32_t n, bits;     /* 2^bits pieces of a chunk */
} ampi_k_list;
static_assert(sizeof(ampi_k_list) <= 3072, "a kernel has 4 KB of arguments");

typedef struct ampi_k_part { /* one piece: elements [base, base + n) of an array, from `at` on in their chunk */
    void *data, *dst;
    amp_dtype type, dst_type;
    uint32_t n, at;
    uint64_t base, chunk;
    ampi_k_ends ends;
} ampi_k_part;

AMPI_K ampi_k_part ampi_k_find(const ampi_k_list *l, uint64_t piece) {
    ampi_k_part p;
    uint32_t a = 0, most = l->n - 1u, size = AMP_CHUNK >> l->bits, chunk = (uint32_t)(piece >> l->bits);
    while (a < most) { /* the first that ends behind the chunk */
        uint32_t middle = (a + most) / 2u;
        if (chunk < l->end[middle])
            most = middle;
        else
            a = middle + 1u;
    }
    p.data = l->data[a];
    p.type = (amp_dtype)l->type[a];
    p.dst = l->dst[a];
    p.dst_type = (amp_dtype)l->dst_type[a];
    p.chunk = l->first_chunk + chunk;
    p.at = ((uint32_t)piece & ((1u << l->bits) - 1u)) * size;
    p.base = (uint64_t)(chunk - (a ? l->end[a - 1u] : 0u)) * AMP_CHUNK + p.at;
    p.n = p.base >= l->count[a] ? 0u : size;
    if (p.n && l->count[a] - p.base < size) p.n = (uint32_t)(l->count[a] - p.base);
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
    ampi_k_decode8(x, t);
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        if (k < m) amp_count_lost(f, ampi_float(u[k]), ampi_float(x[k]), at + k);
}

AMPI_K void ampi_k_add64(uint64_t *sum, uint64_t x) {
    if (x) atomicAdd((unsigned long long *)sum, (unsigned long long)x);
}
AMPI_K void ampi_k_note(ampi_k_finite_sums *out, uint64_t chunk, const amp_faults *f) {
    ampi_k_add64(&out->nan, f->nan);
    ampi_k_add64(&out->inf, f->inf);
    ampi_k_add64(&out->overflow, f->overflow);
    atomicMax((unsigned long long *)&out->first, ~((unsigned long long)chunk << 16 | f->first));
}
/* The first m of eight elements of a piece, which seldom are all finite, or not aligned. */
AMPI_K void ampi_k_finite8(const ampi_k_part *p, uint32_t i, uint32_t m, int wide, amp_faults *f) {
    uint32_t x[8];
    ampi_k_load8(x, p->data, p->type, p->base + i, m, wide);
    ampi_k_check8(x, x, m, p->at + i, f);
}
/* The groups of eight of a piece, as they lie in memory: a thread fetches some before it looks at any, the last one
   again where there are no more. */
AMPI_K void ampi_k_finite_groups(const ampi_k_part *p, amp_dtype t, uint32_t groups, amp_faults *f) {
    const uint32_t ahead = t == AMP_F32 ? 2u : 4u;
    ampi_k_raw raw[4];
    uint32_t i, q;
    for (i = threadIdx.x; i < groups; i += ahead * AMP_BLOCK) {
        uint32_t odd = 0;
        AMP_UNROLL
        for (q = 0; q < ahead; q++) {
            uint32_t g = i + q * AMP_BLOCK < groups ? i + q * AMP_BLOCK : groups - 1u;
            ampi_k_fetch8(&raw[q], p->data, t, p->base + p->ends.head + 8u * g, 1);
        }
        AMP_UNROLL
        for (q = 0; q < ahead; q++)
            odd |= ampi_k_odd8(&raw[q], t);
        if (!odd) continue;
        AMP_NO_UNROLL
        for (q = i; q < groups && q < i + ahead * AMP_BLOCK; q += AMP_BLOCK)
            ampi_k_finite8(p, p->ends.head + 8u * q, 8, 1, f);
    }
}
#define AMPI_FORMAT_FINITE(T, ...) \
    if (p->type == AMP_##T) ampi_k_finite_groups(p, AMP_##T, groups, f);
AMPI_K void ampi_k_finite_piece(const ampi_k_part *p, amp_faults *f) {
    uint32_t groups = ampi_k_groups(&p->ends, p->n), i;
    if (p->type == AMP_F64) {
        for (i = threadIdx.x; i < p->n; i += AMP_BLOCK)
            amp_count_f64(f, ((const uint64_t *)p->data)[p->base + i], p->at + i);
        return;
    }
    AMPI_FORMATS(AMPI_FORMAT_FINITE)
    if (p->type == AMP_F32) ampi_k_finite_groups(p, AMP_F32, groups, f);
    for (i = threadIdx.x; i < p->n - 8u * groups; i += AMP_BLOCK)
        ampi_k_finite8(p, ampi_k_outside(&p->ends, groups, i), 1, 0, f);
}
static __global__ void __launch_bounds__(AMP_BLOCK, AMPI_K_BLOCKS(4))
    ampi_k_finite(const AMP_GRID_CONSTANT ampi_k_list list, ampi_k_finite_sums *out) {
    uint64_t piece;
    for (piece = blockIdx.x; piece < list.chunks << list.bits; piece += gridDim.x) {
        ampi_k_part p = ampi_k_find(&list, piece);
        amp_faults f = amp_no_faults();
        ampi_k_finite_piece(&p, &f);
        if (f.first != AMP_CHUNK) ampi_k_note(out, p.chunk, &f);
    }
}

/* The groups of eight of a piece, unscaled, two at a time. */
AMPI_K void ampi_k_unscale_groups(const ampi_k_part *p, amp_dtype t, uint32_t groups, float inv, amp_faults *f) {
    ampi_k_raw one, two;
    uint32_t x[8], i;
    for (i = threadIdx.x; i < groups; i += 2u * AMP_BLOCK) {
        const int both = i + AMP_BLOCK < groups;
        uint32_t at = p->ends.head + 8u * i, next = at + 8u * AMP_BLOCK;
        ampi_k_fetch8(&one, p->data, t, p->base + at, 1);
        if (both) ampi_k_fetch8(&two, p->data, t, p->base + next, 1);
        ampi_k_widen8(x, &one, t);
        ampi_k_unscale8(x, p->dst, p->dst_type, t, p->base + at, 8, 1, p->at + at, inv, 0, f);
        if (!both) continue;
        ampi_k_widen8(x, &two, t);
        ampi_k_unscale8(x, p->dst, p->dst_type, t, p->base + next, 8, 1, p->at + next, inv, 0, f);
    }
}
#define AMPI_FORMAT_UNSCALE(T, ...) \
    if (p->type == AMP_##T) ampi_k_unscale_groups(p, AMP_##T, groups, inv, f);
AMPI_K void ampi_k_unscale_piece(const ampi_k_part *p, float inv, amp_faults *f) {
    uint32_t groups = ampi_k_groups(&p->ends, p->n), i, x[8];
    AMPI_FORMATS(AMPI_FORMAT_UNSCALE)
    if (p->type == AMP_F32) ampi_k_unscale_groups(p, AMP_F32, groups, inv, f);
    for (i = threadIdx.x; i < p->n - 8u * groups; i += AMP_BLOCK) {
        uint32_t at = ampi_k_outside(&p->ends, groups, i);
        ampi_k_load8(x, p->data, p->type, p->base + at, 1, 0);
        ampi_k_unscale8(x, p->dst, p->dst_type, p->type, p->base + at, 1, 0, p->at + at, inv, 0, f);
    }
}
/* out NULL: nobody wants the counts. Before sm_90 the registers of four blocks are too few, and memory needs less. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#  define AMPI_K_UNSCALERS 3
#else
#  define AMPI_K_UNSCALERS 4
#endif
static __global__ void __launch_bounds__(AMP_BLOCK, AMPI_K_BLOCKS(AMPI_K_UNSCALERS))
    ampi_k_unscale(const AMP_GRID_CONSTANT ampi_k_list list, amp_scaler_state *s, ampi_k_finite_sums *out) {
    float inv = amp_inverse_scale(s->scale);
    uint64_t piece;
    for (piece = blockIdx.x; piece < list.chunks << list.bits; piece += gridDim.x) {
        ampi_k_part p = ampi_k_find(&list, piece);
        amp_faults f = amp_no_faults();
        ampi_k_unscale_piece(&p, inv, &f);
        if (f.first == AMP_CHUNK) continue;
        if (out) ampi_k_note(out, p.chunk, &f);
        if (!s->no_check) atomicOr((unsigned *)&s->found, amp_found(f.nan, f.inf, f.overflow));
    }
}

AMPI_K uint32_t ampi_k_bin(uint32_t magnitude) { /* its place in ampi_k_histogram_bins */
    if (magnitude == 0) return 1u;
    if (magnitude == 0x7f800000u) return 2u;
    return magnitude > 0x7f800000u ? 3u : 4u + (magnitude >> 23);
}
AMPI_K uint32_t ampi_k_count8(uint32_t *bins, const uint32_t x[8], uint32_t m, uint32_t amax) {
    uint32_t k;
    AMP_UNROLL
    for (k = 0; k < 8u; k++) {
        uint32_t a = x[k] & 0x7fffffffu;
        if (k >= m) continue;
        atomicAdd(&bins[ampi_k_bin(a)], 1u);
        if (a < 0x7f800000u && a > amax) amax = a;
    }
    return amax;
}
AMPI_K uint32_t ampi_k_histogram_piece(const ampi_k_part *p, uint32_t *bins, uint32_t amax) {
    uint32_t groups = ampi_k_groups(&p->ends, p->n), i, x[8];
    ampi_k_raw one, two;
    for (i = threadIdx.x; i < groups; i += 2u * AMP_BLOCK) {
        const int both = i + AMP_BLOCK < groups;
        uint64_t at = p->base + p->ends.head + 8u * i;
        ampi_k_fetch8(&one, p->data, p->type, at, 1);
        if (both) ampi_k_fetch8(&two, p->data, p->type, at + 8u * AMP_BLOCK, 1);
        ampi_k_widen8(x, &one, p->type);
        amax = ampi_k_count8(bins, x, 8, amax);
        if (both) ampi_k_widen8(x, &two, p->type);
        if (both) amax = ampi_k_count8(bins, x, 8, amax);
    }
    for (i = threadIdx.x; i < p->n - 8u * groups; i += AMP_BLOCK) {
        ampi_k_load8(x, p->data, p->type, p->base + ampi_k_outside(&p->ends, groups, i), 1, 0);
        amax = ampi_k_count8(bins, x, 1, amax);
    }
    return amax;
}
/* Counted in shared memory, whose 32 bits are enough for what a block sees, and added up at the end. */
static __global__ void __launch_bounds__(AMP_BLOCK, AMPI_K_BLOCKS(4))
    ampi_k_histogram(const AMP_GRID_CONSTANT ampi_k_list list, ampi_k_histogram_bins *out) {
    AMP_SHARED(uint32_t, bins, 4 + 256);
    uint64_t piece, total = 0;
    uint32_t amax = 0, i;
    for (i = threadIdx.x; i < 4u + 256u; i += AMP_BLOCK)
        bins[i] = 0;
    __syncthreads();
    for (piece = blockIdx.x; piece < list.chunks << list.bits; piece += gridDim.x) {
        ampi_k_part p = ampi_k_find(&list, piece);
        amax = ampi_k_histogram_piece(&p, bins, amax);
        total += p.n;
    }
    __syncthreads();
    for (i = threadIdx.x; i < 4u + 256u; i += AMP_BLOCK)
        ampi_k_add64(&out->bins[i], i == 0 ? total : bins[i]);
    if (amax) atomicMax((unsigned *)&out->amax, amax);
}

#define AMPI_K_ARRAYS(X) \
    X(ampi_k_cast) X(ampi_k_cast_wide) X(ampi_k_cast_f64) X(ampi_k_finite) X(ampi_k_unscale) X(ampi_k_histogram)
