/* ==== >>front-arrays =============================================================================================
   Arrays: casts, finite checks, histograms.   tests: tests/test_arrays.c */

static void ampi_wrote_array(amp_ctx *ctx, amp_array a, size_t n) {
    ampi_wrote(ctx, a.data, n * amp_dtype_size(a.dtype));
}
/* Element i of y is made from element i of x: both are long enough, and are the same bytes or apart. */
static int ampi_is_map(const amp_ctx *ctx, const amp_array *y, const amp_array *x, size_t count) {
    const size_t ny = count * amp_dtype_size(y->dtype), nx = count * amp_dtype_size(x->dtype);
    if (count > (size_t)-1 / 8 || !ampi_is_stored(ctx, y, count) || !ampi_is_stored(ctx, x, count)) return 0;
    return y->data == x->data ? ny == nx : !ampi_overlap(y->data, ny, x->data, nx);
}
static amp_status ampi_check_stored_map(
    amp_ctx *ctx, const char *name_y, amp_array y, const char *name_x, amp_array x, size_t count) {
    size_t ny = 0, nx = 0;
    if (ampi_is_map(ctx, &y, &x, count)) return AMP_OK;
    AMPI_TRY(ampi_check_storage(ctx, name_y, y, count, 1));
    AMPI_TRY(ampi_check_storage(ctx, name_x, x, count, 1));
    AMPI_CHECK(ampi_product(&ny, count, amp_dtype_size(y.dtype)) && ampi_product(&nx, count, amp_dtype_size(x.dtype)),
        "a count of %llu is too large", AMPI_ULL(count));
    AMPI_CHECK((y.data == x.data && ny == nx) || !ampi_overlap(y.data, ny, x.data, nx),
        "%s and %s overlap (the same array with one element size is allowed)", name_y, name_x);
    return AMP_OK;
}

static amp_status ampi_check_map(
    amp_ctx *ctx, const char *name_y, amp_array y, const char *name_x, amp_array x, size_t count) {
    AMPI_TRY(ampi_check_array(ctx, name_y, y, count, 1));
    AMPI_TRY(ampi_check_array(ctx, name_x, x, count, 1));
    return ampi_check_stored_map(ctx, name_y, y, name_x, x, count);
}

static amp_status ampi_do_cast(amp_ctx *ctx, amp_array dst, amp_array src, size_t count, const amp_cast_desc *opt) {
    static const amp_cast_desc none = AMP_ZERO;
    if (!opt) opt = &none;
    AMPI_CHECK_DESC(opt);
    AMPI_CHECK(
        opt->rounding == AMP_NEAREST || opt->rounding == AMP_STOCHASTIC, "desc.rounding is %d", (int)opt->rounding);
    AMPI_CHECK(!opt->flags, "desc.flags is not 0");
    AMPI_CHECK(opt->rounding == AMP_NEAREST || src.dtype != AMP_F64 || dst.dtype != AMP_F32,
        "desc.rounding is stochastic; from f64 to f32 there is only AMP_NEAREST");
    AMPI_TRY(ampi_check_stored_map(ctx, "dst", dst, "src", src, count));
    if (count == 0) return AMP_OK;
    ampi_wrote_array(ctx, dst, count);
    return (ctx->b->cast)(ctx, dst, src, count, opt);
}
AMP_API amp_status amp_cast(amp_ctx *ctx, amp_array dst, amp_array src, size_t count, const amp_cast_desc *opt) {
    AMPI_VERB(ctx, cast, (ctx, dst, src, count, opt));
}

/* A good entry of a list: an array, of no elements, too, or {NULL}. */
static int ampi_is_listed(const amp_ctx *ctx, amp_array a, int doubles) {
    const size_t size = doubles || a.dtype != AMP_F64 ? amp_dtype_size(a.dtype) : 0;
    size_t bytes;
    if (!a.data) return a.count == 0;
    if (!size || (a.flags & ~AMP_CACHE)) return 0;
    return ampi_is_aligned(ctx, a.data, size) && ampi_product(&bytes, a.count, size);
}
static amp_status ampi_check_list(amp_ctx *ctx, const char *list, const amp_array *a, size_t n, int doubles) {
    char name[40];
    size_t i;
    AMPI_CHECK(!n || a, "%s is NULL", list);
    for (i = 0; i < n && ampi_is_listed(ctx, a[i], doubles);)
        i++;
    if (i == n) return AMP_OK;
    snprintf(name, sizeof name, "%s[%llu]", list, AMPI_ULL(i));
    if (!doubles) AMPI_TRY(ampi_check_array(ctx, name, a[i], a[i].count, 1));
    AMPI_TRY(ampi_check_storage(ctx, name, a[i], a[i].count, 1));
    return AMPI_INVALID("%s.count is %llu, which is too large", name, AMPI_ULL(a[i].count));
}

static amp_status ampi_do_all_finite(
    amp_ctx *ctx, amp_finite_report *report, const amp_array *arrays, size_t n_arrays) {
    amp_finite_report r = AMP_ZERO;
    AMPI_CHECK(report, "report is NULL");
    AMPI_TRY(ampi_check_list(ctx, "arrays", arrays, n_arrays, 1));
    AMPI_HAS(finite);
    AMPI_TRY((ctx->b->may_wait)(ctx));
    AMPI_TRY((ctx->b->finite)(ctx, NULL, arrays, n_arrays, NULL, &r));
    *report = r;
    return AMP_OK;
}
AMP_API amp_status amp_all_finite(amp_ctx *ctx, amp_finite_report *report, const amp_array *arrays, size_t n_arrays) {
    AMPI_VERB(ctx, all_finite, (ctx, report, arrays, n_arrays));
}

static amp_status ampi_do_histogram_count(amp_ctx *ctx, amp_histogram *out, const amp_array *arrays, size_t n_arrays) {
    amp_histogram h = AMP_ZERO;
    AMPI_CHECK(out, "out is NULL");
    AMPI_TRY(ampi_check_list(ctx, "arrays", arrays, n_arrays, 0));
    AMPI_HAS(histogram);
    AMPI_TRY((ctx->b->may_wait)(ctx));
    AMPI_TRY((ctx->b->histogram)(ctx, arrays, n_arrays, &h));
    *out = h;
    return AMP_OK;
}
AMP_API amp_status amp_histogram_count(amp_ctx *ctx, amp_histogram *out, const amp_array *arrays, size_t n_arrays) {
    AMPI_VERB(ctx, histogram_count, (ctx, out, arrays, n_arrays));
}

static int ampi_is_positive(float x) { /* also where the caller's processor takes subnormal numbers for 0 */
    return ampi_bits(x) - 1u < 0x7f800000u;
}
static int ampi_log2_floor(float x) { /* of a positive float: floor(log2 x) */
    uint32_t u = ampi_bits(x);
    int e = (int)(u >> 23) - 127;
    if (e == -127)
        for (e = -127 + 1; !(u & 0x800000u); e--)
            u <<= 1;
    return e;
}
typedef struct ampi_limits { /* of a dtype, as exponents of 2 */
    int lost;                /* x < 2^lost becomes 0: half of the smallest subnormal */
    int subnormal;           /* x < 2^subnormal becomes 0 or subnormal */
    int overflow;            /* x >= 2^overflow overflows, and some x below it may */
} ampi_limits;
static ampi_limits ampi_limits_of(amp_dtype dtype) {
    ampi_format f = ampi_format_of(dtype);
    ampi_limits l = {-150, -126, 128}; /* a float holds everything that a float holds */
    if (dtype == AMP_F32) return l;
    l.subnormal = (int)f.emin - 127;
    l.lost = l.subnormal - (int)f.mant - 1;
    l.overflow = ampi_log2_floor(ampi_float(f.limit)) + 1;
    return l;
}
AMP_API amp_fates amp_histogram_fates(const amp_histogram *h, amp_dtype dtype, float scale) {
    amp_fates f = AMP_ZERO;
    ampi_limits l;
    uint64_t all = 0, lost = 0, subnormal = 0, over = 0;
    int e, shift;
    if (!h || !ampi_is_dtype(dtype) || !ampi_is_positive(scale)) return f;
    l = ampi_limits_of(dtype);
    shift = ampi_log2_floor(scale);
    for (e = 0; e < 255; e++) {
        int from = (e ? e - 127 : -149) + shift, to = e - 126 + shift; /* |x| * scale is in [2^from, 2^to) */
        all += h->pow2[e];
        if (to <= l.lost) lost += h->pow2[e];
        if (to <= l.subnormal) subnormal += h->pow2[e];
        if (from >= l.overflow) over += h->pow2[e];
    }
    if (all == 0) return f;
    f.lost = (double)lost / (double)all;
    f.subnormal = (double)subnormal / (double)all - f.lost;
    f.overflow = (double)over / (double)all;
    return f;
}
AMP_API void amp_histogram_add(amp_histogram *sum, const amp_histogram *more) {
    size_t e;
    if (!sum || !more) return;
    sum->total += more->total;
    sum->zero += more->zero;
    sum->inf += more->inf;
    sum->nan += more->nan;
    for (e = 0; e < 256; e++)
        sum->pow2[e] += more->pow2[e];
    if (ampi_bits(sum->amax) < ampi_bits(more->amax)) sum->amax = more->amax;
}
AMP_API float amp_histogram_suggest_scale(const amp_histogram *h) {
    int k;
    if (!h || !ampi_is_positive(h->amax) || !amp_is_finite(h->amax)) return 65536.0f;
    k = 14 - ampi_log2_floor(h->amax);                     /* amax < 2^(e+1), so amax * 2^k < 2^15 */
    if ((ampi_bits(h->amax) & 0x7fffffu) > 0x7fe000u) k--; /* 65504 / 2 is just below 2^15 */
    if (k > 100) k = 100;
    if (k < -14) k = -14;
    return ampi_float((uint32_t)(127 + k) << 23);
}

static float ampi_inverse(float scale) { /* volatile: computed inside the verb, in its floating-point environment */
    volatile float x = scale;
    return amp_inverse_scale(x);
}

/* What follows, up to >>cpu, goes over no elements: -O2 instead of -O1 would only take time, a fifth of what compiling
   the whole implementation takes. */
#if defined(__OPTIMIZE__) && !defined(__OPTIMIZE_SIZE__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__CUDACC__)
#  define AMPI_FRONT_O1
#  pragma GCC push_options
#  pragma GCC optimize("O1")
#endif

