/* ==== >>front-status =============================================================================================
   Names of statuses and dtypes, the log, host memory.   tests: tests/test_context.c */

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

typedef struct ampi_block {
    void *ptr;
    size_t bytes, row;
} ampi_block;
typedef struct ampi_scope ampi_scope;

struct amp_ctx {
    const amp_backend *b; /* &table */
    amp_backend table;
    void *self;
    amp_allocator host;
    amp_logger log;
    ampi_block *blocks; /* context memory given out */
    size_t n_blocks, cap_blocks;
    amp_ledger_row *rows; /* row 0: total */
    size_t n_rows, cap_rows;
    uint64_t serial;  /* numbers the iterations of all scalers of this context */
    uint64_t weights; /* counts changes of weights */
    amp_params *sets; /* committed ones */
    amp_scaler *scalers;
    amp_fp8 *fp8s;
    ampi_scope *scope;   /* autocast: NULL before the first begin */
    uint32_t in_use;     /* atomic, as the next two: 1: a verb is running */
    const char *refused; /* sentence for a thread that came meanwhile, until the next failure; NULL: none */
    const char *knocked; /* the same, until the log has it */
    char error[320];
};

/* ---- one thread at a time: a verb takes the context and gives it back; whoever comes meanwhile is refused and touches
   nothing but the two words that say so. Where the compiler has no atomics nobody is refused. ---- */
#if defined(__GCC_ATOMIC_INT_LOCK_FREE) && __GCC_ATOMIC_INT_LOCK_FREE == 2
static int ampi_enter(amp_ctx *ctx) { /* 0: a different thread is inside */
    uint32_t unused = 0;
    return __atomic_compare_exchange_n(&ctx->in_use, &unused, 1u, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}
static amp_status ampi_refuse(amp_ctx *ctx, const char *sentence) {
    __atomic_store_n(&ctx->refused, sentence, __ATOMIC_RELEASE);
    __atomic_store_n(&ctx->knocked, sentence, __ATOMIC_RELEASE);
    return AMP_ERR_BUSY;
}
static const char *ampi_refusal(const amp_ctx *ctx) { return __atomic_load_n(&ctx->refused, __ATOMIC_ACQUIRE); }
static void ampi_forget_refusal(amp_ctx *ctx) { __atomic_store_n(&ctx->refused, (const char *)NULL, __ATOMIC_RELAXED); }
static void ampi_leave(amp_ctx *ctx) {
    const char *knocked = __atomic_load_n(&ctx->knocked, __ATOMIC_ACQUIRE);
    if (knocked) { /* the log is written by the thread that has the context */
        __atomic_store_n(&ctx->knocked, (const char *)NULL, __ATOMIC_RELAXED);
        if (ctx->log.fn) ctx->log.fn(AMP_LOG_ERROR, AMP_ERR_BUSY, knocked, ctx->log.user);
    }
    __atomic_store_n(&ctx->in_use, 0u, __ATOMIC_RELEASE);
}
#else
static int ampi_enter(amp_ctx *ctx) { return ctx != NULL; }
static amp_status ampi_refuse(amp_ctx *ctx, const char *sentence) {
    ctx->refused = sentence;
    return AMP_ERR_BUSY;
}
static const char *ampi_refusal(const amp_ctx *ctx) { return ctx->refused; }
static void ampi_forget_refusal(amp_ctx *ctx) { ctx->refused = NULL; }
static void ampi_leave(amp_ctx *ctx) { (void)ctx; }
#endif
#define AMPI_BUSY \
    ": a different thread is inside a verb of this context. A context serves one thread at a time: make one for each " \
    "thread (on the CPU with amp_cpu_desc.threads = 1), or one call after the other"
/* The body of a public verb: `call` does the work, and has the context for itself. */
#define AMPI_VERB(context, name, call) \
    do { \
        amp_ctx *taken_ = (context); \
        amp_status st_; \
        if (taken_ && !ampi_enter(taken_)) return ampi_refuse(taken_, name AMPI_BUSY); \
        st_ = (call); \
        if (taken_) ampi_leave(taken_); \
        return st_; \
    } while (0)
/* The same for what returns nothing: it does nothing when it is refused. */
#define AMPI_VOID_VERB(context, name, call) \
    do { \
        amp_ctx *taken_ = (context); \
        if (!taken_) return; \
        if (!ampi_enter(taken_)) { \
            (void)ampi_refuse(taken_, name AMPI_BUSY); \
            return; \
        } \
        call; \
        ampi_leave(taken_); \
    } while (0)

#if defined(__GNUC__) || defined(__clang__)
__attribute__((format(printf, 3, 0)))
#endif
static void ampi_message(char *to, size_t n, const char *format, va_list va) {
    if (vsnprintf(to, n, format, va) < 0) to[0] = 0;
}

AMP_API amp_status amp_fail(amp_ctx *ctx, amp_status status, const char *format, ...) {
    va_list va;
    va_start(va, format);
    ampi_message(ctx->error, sizeof ctx->error, format, va);
    va_end(va);
    if (ampi_refusal(ctx)) ampi_forget_refusal(ctx);
    if (ctx->log.fn) ctx->log.fn(AMP_LOG_ERROR, status, ctx->error, ctx->log.user);
    return status;
}

/* A verb failed inside a verb that it uses: the sentence starts with the one that was called. */
static amp_status ampi_failed_in(amp_ctx *ctx, const char *where, amp_status status) {
    size_t n = strlen(where), old = strlen(ctx->error);
    if (status == AMP_OK || strncmp(ctx->error, where, n) == 0) return status;
    if (old + n + 3 > sizeof ctx->error) old = sizeof ctx->error - n - 3;
    memmove(ctx->error + n + 2, ctx->error, old);
    memcpy(ctx->error, where, n);
    memcpy(ctx->error + n, ": ", 2);
    ctx->error[n + 2 + old] = 0;
    return status;
}

AMP_API void amp_log_event(const amp_ctx *ctx, amp_log_level level, const char *format, ...) {
    char text[320];
    va_list va;
    if (!ctx->log.fn) return;
    va_start(va, format);
    ampi_message(text, sizeof text, format, va);
    va_end(va);
    ctx->log.fn(level, AMP_OK, text, ctx->log.user);
}

#define AMPI_TRY(call) \
    do { \
        amp_status try_ = (call); \
        if (try_ != AMP_OK) return try_; \
    } while (0)
#define AMPI_INVALID(ctx, ...) amp_fail((ctx), AMP_ERR_INVALID_ARG, __VA_ARGS__)
/* A check of arguments: leaves the function with this status and sentence unless the condition holds. */
#define AMPI_REQUIRE(condition, ctx, status, ...) \
    do { \
        if (!(condition)) return amp_fail((ctx), (status), __VA_ARGS__); \
    } while (0)
/* what a backend may leave out of its table */
#define AMPI_HAS(ctx, where, entry) \
    AMPI_REQUIRE((ctx)->b->entry, ctx, AMP_ERR_UNSUPPORTED, "%s: backend %s has no %s", where, (ctx)->b->name, #entry)
/* first lines of a verb with a desc */
#define AMPI_CHECK_DESC(ctx, where, d) \
    do { \
        if (!(d)) return AMPI_INVALID(ctx, "%s: desc is NULL", where); \
        if ((d)->_begin || (d)->_end) \
            return amp_fail( \
                (ctx), AMP_ERR_UNINIT, "%s: desc is not zero-initialised (_begin or _end is not 0)", where); \
    } while (0)

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
static int ampi_product(size_t *out, size_t a, size_t b) {              /* 0 when it overflows */
    if ((a | b) >> (sizeof a * 4) && b && a > (size_t)-1 / b) return 0; /* a division only for large numbers */
    *out = a * b;
    return 1;
}
/* room for one more element of `size` bytes in an array that doubles */
static int ampi_grow(const amp_allocator *a, void **array, size_t n, size_t *cap, size_t size) {
    size_t to = *cap ? *cap * 2 : 8, bytes;
    void *p;
    if (n < *cap) return 1;
    if (!ampi_product(&bytes, to, size) || !(p = ampi_host_alloc(a, bytes))) return 0;
    if (n) memcpy(p, *array, n * size);
    ampi_host_free(a, *array, *cap * size);
    *array = p;
    *cap = to;
    return 1;
}

