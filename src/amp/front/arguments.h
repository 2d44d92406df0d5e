/* ---- arrays as arguments: alignment, number of elements, and which of a verb's may overlap.
   tests: tests/test_refusals.c, tests/test_arrays.c ---- */

/* Elements of size bytes lie at p. A device loads and stores whole aligned elements only. */
static int ampi_is_aligned(const amp_ctx *ctx, const void *p, size_t size) {
    return !ctx->b->aligned || (uintptr_t)p % size == 0;
}
/* A pointer to numbers of a C type, which must lie as that type does, on the CPU, too; NULL is fine. Some ABIs have 8
   bytes at multiples of 4. */
static amp_status ampi_check_pointer(amp_ctx *ctx, const char *name, const void *p, size_t size) {
    struct eight {
        char c;
        int64_t x;
    };
    const size_t step = size == 8u && !ctx->b->aligned ? offsetof(struct eight, x) : size;
    if (!p || (uintptr_t)p % step == 0) return AMP_OK;
    return AMPI_INVALID("%s is not aligned to %llu bytes", name, AMPI_ULL(step));
}
static amp_status ampi_check_words(amp_ctx *ctx, const char *name, const void *p) {
    return ampi_check_pointer(ctx, name, p, 4u);
}

/* What ampi_check_storage is about to say nothing of: nearly every array. */
static int ampi_is_stored(const amp_ctx *ctx, const amp_array *a, size_t need) {
    const size_t size = amp_dtype_size(a->dtype);
    const int long_enough = !a->count || a->count >= need;
    return a->data && size && long_enough && !(a->flags & ~AMP_CACHE) && ampi_is_aligned(ctx, a->data, size);
}
/* an operand of `need` elements, doubles too; required: NULL is refused when need > 0 */
static amp_status ampi_check_storage(amp_ctx *ctx, const char *name, amp_array a, size_t need, int required) {
    if (ampi_is_stored(ctx, &a, need)) return AMP_OK;
    if (!a.data) return required && need ? AMPI_INVALID("%s.data is NULL", name) : AMP_OK;
    AMPI_CHECK(amp_dtype_size(a.dtype) != 0, "%s.dtype is %d (%s); a storage dtype is needed", name, (int)a.dtype,
        amp_dtype_name(a.dtype));
    AMPI_CHECK(ampi_is_aligned(ctx, a.data, amp_dtype_size(a.dtype)),
        "%s.data is not aligned to the %d bytes of its elements", name, (int)amp_dtype_size(a.dtype));
    AMPI_CHECK(!(a.flags & ~AMP_CACHE), "%s.flags has unknown bits", name);
    AMPI_CHECK(!a.count || a.count >= need, "%s.count is %llu, but %llu elements are needed", name, AMPI_ULL(a.count),
        AMPI_ULL(need));
    return AMP_OK;
}

/* what nearly every verb takes */
static int ampi_is_dtype(amp_dtype t) { return amp_dtype_size(t) != 0 && t != AMP_F64; }
static amp_status ampi_check_array(amp_ctx *ctx, const char *name, amp_array a, size_t need, int required) {
    AMPI_CHECK(!a.data || a.dtype != AMP_F64,
        "%s is f64: only amp_cast, amp_all_finite and amp_watch_array take doubles. amp_cast it to f32 first", name);
    return ampi_check_storage(ctx, name, a, need, required);
}

/* A mask as the bytes that it is, to be checked and marked; other arrays as they are. Then of how many elements. */
static amp_array ampi_unmasked(amp_array a) {
    if (a.dtype != AMP_MASK) return a;
    a.dtype = AMP_F8E4M3;
    a.count = 0;
    return a;
}
static size_t ampi_unmasked_count(amp_array a, size_t elements, size_t rows, size_t cols) {
    return a.dtype == AMP_MASK ? rows * ampi_mask_pitch(cols) : elements;
}
/* What an act keeps for its backward: `elements`, or a mask of rows x cols. */
static amp_status ampi_check_saved(
    amp_ctx *ctx, const char *name, amp_array a, amp_act act, size_t elements, size_t rows, size_t cols, int required) {
    const size_t need = ampi_unmasked_count(a, elements, rows, cols);
    if (a.data && a.dtype == AMP_MASK) {
        AMPI_CHECK(act == AMP_RELU, "%s.dtype is mask, which AMP_RELU alone has, but act is %d", name, (int)act);
        AMPI_CHECK(!a.count || a.count / 8u >= need,
            "%s.count is %llu, but %llu bits are needed: rows begin with a byte", name, AMPI_ULL(a.count),
            AMPI_ULL(8u * need));
    }
    return ampi_check_array(ctx, name, ampi_unmasked(a), need, required);
}

static int ampi_overlap(const void *a, size_t na, const void *b, size_t nb) {
    uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
    return na && nb && x < y + nb && y < x + na;
}

/* Memory that a verb uses in several stages: it may not write what a later stage, or the same one, reads, nor what it
   writes elsewhere. */
typedef struct ampi_extent {
    const char *name;
    const void *data;
    size_t bytes;
    int read, write; /* the last stage that reads it, the one that writes it, counted from 1; 0: none */
} ampi_extent;
static ampi_extent ampi_extent_of(const char *name, amp_array a, size_t count, int read, int write) {
    ampi_extent r = {name, a.data, a.data ? count * amp_dtype_size(a.dtype) : 0, read, write};
    return r;
}
static ampi_extent ampi_saved_extent(
    const char *name, amp_array a, size_t elements, size_t rows, size_t cols, int read, int write) {
    return ampi_extent_of(name, ampi_unmasked(a), ampi_unmasked_count(a, elements, rows, cols), read, write);
}
static amp_status ampi_refuse_overlap(amp_ctx *ctx, const ampi_extent *r, const ampi_extent *with) {
    const uintptr_t x = (uintptr_t)r->data, y = (uintptr_t)with->data;
    const char *side = y < x ? "before" : "after";
    const uintptr_t distance = y < x ? x - y : y - x;
    return AMPI_INVALID("%s overlaps %s, which begins %llu bytes %s it", r->name, with->name, AMPI_ULL(distance), side);
}
static amp_status ampi_check_extents(amp_ctx *ctx, const ampi_extent *r, size_t n) {
    size_t i, k;
    for (i = 0; i < n; i++)
        for (k = 0; r[i].write && r[i].bytes && k < n; k++) {
            int used = r[k].read >= r[i].write || r[k].write;
            if (k == i) continue;
            if (!used) continue;
            if (ampi_overlap(r[i].data, r[i].bytes, r[k].data, r[k].bytes))
                return ampi_refuse_overlap(ctx, &r[i], &r[k]);
        }
    return AMP_OK;
}

/* Arrays of many owners, of which no two may overlap: sorted, two that do are neighbours. */
typedef struct ampi_range {
    uintptr_t first;
    size_t bytes, owner;
    const char *what;
} ampi_range;
static int ampi_range_order(const void *a, const void *b) {
    const ampi_range *x = (const ampi_range *)a, *y = (const ampi_range *)b;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    return x->owner < y->owner ? -1 : x->owner > y->owner;
}
static const ampi_range *ampi_ranges_meet(ampi_range *r, size_t n) { /* the second of two that do, or NULL */
    size_t i;
    if (n) qsort(r, n, sizeof *r, ampi_range_order);
    for (i = 1; i < n; i++)
        if (r[i].first - r[i - 1].first < r[i - 1].bytes) return &r[i];
    return NULL;
}

