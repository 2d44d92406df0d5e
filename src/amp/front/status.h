/* ==== >>front-status =============================================================================================
   Names of statuses and dtypes, host memory.   tests: tests/test_context.c, tests/test_formats.c */

AMP_API const char *amp_strerror(amp_status status) {
    switch (status) {
        /* clang-format off */
#define AMP_X(name, value, text) case name: return text;
    AMP_STATUS_LIST(AMP_X)
#undef AMP_X
        /* clang-format on */
    case AMP_STATUS_FORCE_INT: break;
    }
    return "unknown status";
}

AMP_API int amp_version(void) { return AMP_VERSION; }

#define AMPI_FORMAT_NAME(T, name, ...) \
case AMP_##T: return #name;
AMP_API const char *amp_dtype_name(amp_dtype t) {
    switch (t) {
        AMPI_FORMATS(AMPI_FORMAT_NAME)
    case AMP_AUTO: return "auto";
    case AMP_F32: return "f32";
    case AMP_F64: return "f64";
    case AMP_MOMENT_8BIT: return "8bit";
    case AMP_DTYPE_COUNT: break;
    }
    return "unknown dtype";
}

AMP_API const char *amp_outcome_name(amp_outcome o) {
    switch (o) {
    case AMP_NO_STEP: return "no step";
    case AMP_STEPPED: return "stepped";
    case AMP_SKIPPED_INF: return "skipped: inf";
    case AMP_SKIPPED_NAN: return "skipped: nan";
    case AMP_SKIPPED_OVERFLOW: return "skipped: overflow after unscaling";
    case AMP_SKIPPED_WINDOW: return "skipped: lost or empty window";
    case AMP_SKIPPED_RATE: return "skipped: learning rate not finite";
    }
    return "unknown outcome";
}

static void *ampi_host_take(const amp_allocator *a, size_t bytes) { /* as it comes */
    return a->alloc_fn ? a->alloc_fn(bytes, a->user) : AMP_MALLOC(bytes);
}
static void *ampi_host_alloc(const amp_allocator *a, size_t bytes) { /* zeroed */
    void *p = ampi_host_take(a, bytes);
    if (p) memset(p, 0, bytes);
    return p;
}
static void ampi_host_free(const amp_allocator *a, void *p, size_t bytes) {
    if (!p) return;
    if (a->free_fn)
        a->free_fn(p, bytes, a->user);
    else
        AMP_FREE(p);
}
/* x leaves a list of its kind. */
#define AMPI_UNLINK(type, list, x, next) \
    do { \
        type **at_ = &(list); \
        while (*at_ != (x)) \
            at_ = &(*at_)->next; \
        *at_ = (x)->next; \
    } while (0)
static int ampi_product(size_t *out, size_t a, size_t b) {              /* 0 when it overflows */
    if ((a | b) >> (sizeof a * 4) && b && a > (size_t)-1 / b) return 0; /* a division only for large numbers */
    *out = a * b;
    return 1;
}
/* The array, which doubles, with room for one more element of `size` bytes; NULL: no memory, and it is as it was. */
static void *ampi_grow(const amp_allocator *a, void *array, size_t n, size_t *cap, size_t size) {
    size_t to = *cap ? *cap * 2 : 8, bytes;
    void *p;
    if (n < *cap) return array;
    if (!ampi_product(&bytes, to, size) || !(p = ampi_host_alloc(a, bytes))) return NULL;
    if (n) memcpy(p, array, n * size);
    ampi_host_free(a, array, *cap * size);
    *cap = to;
    return p;
}

