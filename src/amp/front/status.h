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
    case AMP_MASK: return "mask";
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

/* ---- pthread_cancel: a verb is never left half-way. A thread can be cancelled only where it waits or uses a file, and
   in the program's functions: there it is held, from ampi_hold to ampi_release. The two cost a third of a small verb,
   so not every verb has them.   tests: tests/test_threads.c ---- */
#if !defined(AMP_NO_THREADS) && defined(PTHREAD_CANCEL_DISABLE) && !defined(__wasi__)
static int ampi_hold(void) {
    int before = 0;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}
static void ampi_release(int before) { (void)pthread_setcancelstate(before, NULL); }
#else
static int ampi_hold(void) { return 0; }
static void ampi_release(int before) { (void)before; }
#endif

static void ampi_tell(const amp_logger *log, amp_log_level level, amp_status status, const char *text) {
    int before;
    if (!log->fn) return;
    before = ampi_hold();
    (log->fn)(level, status, text, log->user);
    ampi_release(before);
}
static void *ampi_host_take(const amp_allocator *a, size_t bytes) { /* as it comes */
    const int before = ampi_hold();
    void *p = a->alloc_fn ? a->alloc_fn(bytes, a->user) : AMP_MALLOC(bytes);
    ampi_release(before);
    return p;
}
/* For memory of many megabytes, not yet touched: pages of 2 MB where the system gives them to who asks. The first touch
   of each page costs about as much as reading its bytes from a file. */
static void ampi_host_large_pages(const amp_allocator *a, void *p, size_t bytes) {
#if defined(__linux__)
    const uintptr_t page = 65536, from = ((uintptr_t)p + page - 1) / page * page,
                    to = ((uintptr_t)p + bytes) / page * page;
    if (!p || a->alloc_fn || bytes < (size_t)8 << 20) return;
    (void)madvise((char *)p + (from - (uintptr_t)p), (size_t)(to - from), 14); /* MADV_HUGEPAGE; refused: as before */
#else
    (void)a;
    (void)p;
    (void)bytes;
#endif
}
static void *ampi_host_alloc(const amp_allocator *a, size_t bytes) { /* zeroed */
    void *p;
#ifdef AMPI_CALLOC
    if (!a->alloc_fn) { /* leaves new pages, which are zero, untouched */
        const int before = ampi_hold();
        p = AMPI_CALLOC(bytes);
        ampi_release(before);
        return p;
    }
#endif
    p = ampi_host_take(a, bytes);
    if (p) memset(p, 0, bytes);
    return p;
}
static void ampi_host_free(const amp_allocator *a, void *p, size_t bytes) {
    int before;
    if (!p) return;
    before = ampi_hold();
    if (a->free_fn)
        a->free_fn(p, bytes, a->user);
    else
        AMP_FREE(p);
    ampi_release(before);
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

