/* ==== >>arrays =================================================================================================== */

typedef struct amp_cast_desc {
    uint32_t _begin;
    amp_rounding rounding; /* AMP_NEAREST; AMP_STOCHASTIC draws amp_random(seed, stream, offset + i) for element i */
    uint64_t seed, stream, offset;
    uint32_t saturate; /* 1: see amp_rounding */
    uint32_t flags;    /* 0 */
    uint64_t _end;
} amp_cast_desc;

/* dst[i] = src[i] for count elements (0 is fine), rounded once; equal dtypes: bits copied. desc NULL: to nearest even.
   AMP_F64 to AMP_F32: AMP_NEAREST only; to other formats both.
   dst == src is allowed if both have the same element size; any other overlap returns INVALID_ARG. Class: enqueue.
   Numerics: bit contract in any rounding mode. */
AMP_API amp_status amp_cast(amp_ctx *ctx, amp_array dst, amp_array src, size_t count, const amp_cast_desc *desc);

typedef struct amp_finite_report {
    uint64_t nan, inf;  /* how many elements */
    size_t first_array; /* where the first of them is; only meaningful when nan + inf > 0 */
    size_t first_index;
} amp_finite_report;

/* Counts Inf and NaN in n_arrays arrays, doubles included. Give each its count; 0, or {NULL}, is an empty array.
   Returns AMP_OK whether or not it finds any. Class: query. Numerics: exact, same bits in any mode. */
AMP_API amp_status amp_all_finite(amp_ctx *ctx, amp_finite_report *report, const amp_array *arrays, size_t n_arrays);

typedef struct amp_histogram {
    uint64_t total, zero, inf, nan;
    uint64_t pow2[256]; /* [e]: finite |x| in [2^(e-127), 2^(e-126)); [0]: nonzero |x| < 2^-126; [255]: unused */
    float amax;         /* largest finite |x|, 0 if none */
    uint32_t _pad;
} amp_histogram;

/* Exponent histogram over n_arrays arrays together. Class: query. Numerics: exact, same bits in any mode. */
AMP_API amp_status amp_histogram_count(amp_ctx *ctx, amp_histogram *out, const amp_array *arrays, size_t n_arrays);
/* Adds the counts of `more`, e.g. over many steps; amax becomes the larger one. Class: host. */
AMP_API void amp_histogram_add(amp_histogram *sum, const amp_histogram *more);
/* What happens to nonzero finite numbers that are scaled and rounded to nearest in a dtype: shares, 0 .. 1. */
typedef struct amp_fates {
    double lost, subnormal; /* become 0; become subnormal and so lose bits */
    double overflow;        /* Inf, or the largest number; a bin that straddles the limit counts as not overflowing */
} amp_fates;
/* The fates of a histogram's numbers, scale > 0. Counted per bin: exact for power-of-two scales, but for FP32's
   subnormals, one bin; half the smallest subnormal counts as kept. All 0 if there is nothing to count. Class: host. */
AMP_API amp_fates amp_histogram_fates(const amp_histogram *h, amp_dtype dtype, float scale);
/* The largest power of two in [2^-14, 2^100] that keeps amax * scale <= 65504 / 2; 65536 if amax is 0. Class: host. */
AMP_API float amp_histogram_suggest_scale(const amp_histogram *h);

