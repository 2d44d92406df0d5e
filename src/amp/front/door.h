/* ==== >>front-door ===============================================================================================
   The door of every verb: one thread at a time, the floating-point environment, sentences that begin with the verb's
   name; and the checks that make them.   tests: tests/test_context.c, tests/test_threads.c, tests/test_modes.c; and
   tests/called.h */

/* ---- floating-point control word: the default while a verb runs, the caller's again afterwards ---- */
#if defined(AMPI_MXCSR)
typedef uint32_t ampi_fpu;
static ampi_fpu ampi_fpu_read(void) {
    uint32_t x = 0;
    __asm__ volatile("stmxcsr %0" : "=m"(x));
    return x;
}
static void ampi_fpu_write(ampi_fpu x) { __asm__ volatile("ldmxcsr %0" : : "m"(x) : "memory"); }
static ampi_fpu ampi_fpu_enter(void) {
    ampi_fpu old = ampi_fpu_read();
    if ((old & 0xffc0u) != 0x1f80u) ampi_fpu_write(0x1f80u);
    return old;
} /* writing is slow */
static void ampi_fpu_leave(ampi_fpu old) {
    if (ampi_fpu_read() != old) ampi_fpu_write(old);
}
#elif defined(AMPI_FPCR)
typedef uint64_t ampi_fpu;
static ampi_fpu ampi_fpu_enter(void) {
    uint64_t old;
    __asm__ volatile("mrs %0, fpcr" : "=r"(old));
    __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)0) : "memory");
    return old;
}
static void ampi_fpu_leave(ampi_fpu old) { __asm__ volatile("msr fpcr, %0" : : "r"(old) : "memory"); }
#else
typedef fenv_t ampi_fpu;
static ampi_fpu ampi_fpu_enter(void) {
    fenv_t old;
    (void)fegetenv(&old);
    (void)fesetenv(FE_DFL_ENV);
    return old;
}
static void ampi_fpu_leave(ampi_fpu old) { (void)fesetenv(&old); }
#endif

/* ---- what a verb changes of the thread that calls it, and gives back: that control word; errno, unless it fails;
   whether the thread can be cancelled, if all of the verb has to be held (ampi_verb_hold) ---- */
typedef struct ampi_caller {
    ampi_fpu fpu;
    int error, holds, hold;
} ampi_caller;
static ampi_caller ampi_caller_enter(void) {
    ampi_caller c;
    c.error = errno;
    c.holds = c.hold = 0;
    c.fpu = ampi_fpu_enter();
    return c;
}
static void ampi_caller_leave(ampi_caller c, amp_status status) {
    ampi_fpu_leave(c.fpu);
    if (status == AMP_OK) errno = c.error;
    if (c.holds) ampi_release(c.hold);
}
static const void *ampi_this_thread(void) { return &errno; } /* each has its own */

typedef struct ampi_block {
    void *ptr;
    size_t bytes, row;
    int given; /* by amp_alloc: amp_free may have it back */
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
    uint32_t in_use;     /* atomic, as the next three: 1: a verb is running */
    const void *thread;  /* whose, while a verb runs; NULL: none */
    const char *refused; /* sentence for a thread that came meanwhile, until the next failure; NULL: none */
    const char *knocked; /* the same, until the log has it */
    const char *verb;    /* that runs: its name up to the colon; NULL: none */
    const char *inside;  /* "amp_gemm: " while a different verb uses it, or NULL */
    ampi_caller caller;  /* while a verb runs */
    char error[320];
};

/* Host memory of a context, zeroed; given back with its size. */
static void *ampi_host_new(const amp_ctx *ctx, size_t bytes) { return ampi_host_alloc(&ctx->host, bytes); }
static void ampi_host_drop(const amp_ctx *ctx, void *p, size_t bytes) { ampi_host_free(&ctx->host, p, bytes); }

/* ---- one thread at a time: a verb takes the context and gives it back; whoever comes meanwhile is refused and touches
   nothing but the two words that say so. Where the compiler has no atomics nobody is refused. ---- */
#if defined(__GCC_ATOMIC_INT_LOCK_FREE) && __GCC_ATOMIC_INT_LOCK_FREE == 2
#  define AMPI_READ(word)     __atomic_load_n(word, __ATOMIC_ACQUIRE)
#  define AMPI_WRITE(word, x) __atomic_store_n(word, x, __ATOMIC_RELEASE)
static int ampi_take(amp_ctx *ctx) { /* 0: a different thread is inside */
    uint32_t unused = 0;
    return __atomic_compare_exchange_n(&ctx->in_use, &unused, 1u, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}
#else
#  define AMPI_READ(word)     (*(word))
#  define AMPI_WRITE(word, x) (void)(*(word) = (x))
static int ampi_take(amp_ctx *ctx) { return ctx != NULL; }
#endif
static amp_status ampi_refuse(amp_ctx *ctx, const char *sentence) {
    AMPI_WRITE(&ctx->refused, sentence);
    AMPI_WRITE(&ctx->knocked, sentence);
    return AMP_ERR_BUSY;
}
static const char *ampi_refusal(const amp_ctx *ctx) { return AMPI_READ(&ctx->refused); }
static void ampi_give(amp_ctx *ctx) {
    const char *knocked = AMPI_READ(&ctx->knocked);
    if (knocked) { /* the log is written by the thread that has the context */
        AMPI_WRITE(&ctx->knocked, (const char *)NULL);
        ampi_tell(&ctx->log, AMP_LOG_ERROR, AMP_ERR_BUSY, knocked);
    }
    AMPI_WRITE(&ctx->thread, (const void *)NULL);
    AMPI_WRITE(&ctx->in_use, 0u);
}

/* What the backend changed for the calling thread is as it was. Before the end of the verb where something is made that
   must not stay if that fails. */
static amp_status ampi_settle(amp_ctx *ctx, amp_status status) {
    return ctx->b->leave ? (ctx->b->leave)(ctx, status) : status;
}
/* A verb is a range in a profiler's picture, on the line of the thread that calls it. */
#ifdef AMP_CUDA_NVTX
static void ampi_range_begin(const char *verb) {
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(verb, ":"), verb);
    (void)nvtxRangePushA(name);
}
#  define AMPI_RANGE_BEGIN(verb) ampi_range_begin(verb)
#  define AMPI_RANGE_END()       (void)nvtxRangePop()
#else
#  define AMPI_RANGE_BEGIN(verb) (void)0
#  define AMPI_RANGE_END()       (void)0
#endif
/* Until the verb ends, this thread is not cancelled. */
static void ampi_verb_hold(amp_ctx *ctx) {
    if (ctx->caller.holds) return;
    ctx->caller.hold = ampi_hold();
    ctx->caller.holds = 1;
}
AMP_API amp_status amp_verb_begin(amp_ctx *ctx, const char *verb) {
    if (!ctx) return AMP_ERR_INVALID_ARG;
    if (!ampi_take(ctx)) return ampi_refuse(ctx, verb);
    AMPI_WRITE(&ctx->thread, ampi_this_thread());
    ctx->caller = ampi_caller_enter();
    if (!ctx->b->holds) ampi_verb_hold(ctx);
    ctx->verb = verb;
    AMPI_RANGE_BEGIN(verb);
    return AMP_OK;
}
AMP_API amp_status amp_verb_end(amp_ctx *ctx, amp_status status) {
    ampi_caller caller = ctx->caller;
    status = ampi_settle(ctx, status);
    AMPI_RANGE_END();
    ctx->verb = NULL;
    ampi_give(ctx);
    ampi_caller_leave(caller, status);
    return status;
}
/* Ends the verb in which this thread still has the context: an exception or a longjmp has left it. */
static void ampi_end_left(amp_ctx *ctx) {
    if (!ctx || AMPI_READ(&ctx->thread) != ampi_this_thread()) return;
    ctx->inside = NULL;
    amp_log_event(ctx, AMP_LOG_WARNING, "this call never returned: what it was making is lost");
    (void)amp_verb_end(ctx, AMP_OK);
}
/* The body of a verb amp_NAME whose work is ampi_do_NAME; and of one that works on an object, by that one's context. */
#define AMPI_VERB(ctx, name, arguments)       AMP_VERB(ctx, "amp_" #name, ampi_do_##name arguments)
#define AMPI_VERB_OF(object, name, arguments) AMPI_VERB(AMPI_CTX(object), name, arguments)
#define AMPI_CTX(object)                      ((object) ? (object)->ctx : NULL)
/* The same for what returns nothing: it does nothing when it is refused. */
#define AMPI_VOID_VERB(ctx, name, arguments) \
    do { \
        amp_ctx *in_ = (ctx); \
        if (amp_verb_begin(in_, "amp_" #name AMPI_BUSY) != AMP_OK) return; \
        ampi_do_##name arguments; \
        (void)amp_verb_end(in_, AMP_OK); \
    } while (0)
#define AMPI_DESTROY(ctx, name, arguments) \
    do { \
        ampi_end_left(ctx); \
        AMPI_VOID_VERB(ctx, name, arguments); \
    } while (0)

/* ---- sentences ---- */

#if defined(__GNUC__) || defined(__clang__)
__attribute__((__format__(__printf__, 3, 0)))
#endif
static void ampi_message(char *to, size_t n, const char *format, va_list va) {
    if (vsnprintf(to, n, format, va) < 0) to[0] = 0;
}
/* "VERB: ", in front of every sentence; returns its length. */
static size_t ampi_name_verb(const amp_ctx *ctx, char *to, size_t bytes) {
    to[0] = 0;
    if (ctx->verb)
        snprintf(to, bytes, "%.*s: %s", (int)strcspn(ctx->verb, ":"), ctx->verb, ctx->inside ? ctx->inside : "");
    return strlen(to);
}

AMP_API amp_status amp_fail(amp_ctx *ctx, amp_status status, const char *format, ...) {
    size_t n = ampi_name_verb(ctx, ctx->error, sizeof ctx->error);
    va_list va;
    va_start(va, format);
    ampi_message(ctx->error + n, sizeof ctx->error - n, format, va);
    va_end(va);
    if (ampi_refusal(ctx)) AMPI_WRITE(&ctx->refused, (const char *)NULL);
    ampi_tell(&ctx->log, AMP_LOG_ERROR, status, ctx->error);
    return status;
}
AMP_API void amp_log_event(const amp_ctx *ctx, amp_log_level level, const char *format, ...) {
    char text[320];
    size_t n;
    va_list va;
    if (!ctx->log.fn) return;
    n = ampi_name_verb(ctx, text, sizeof text);
    va_start(va, format);
    ampi_message(text + n, sizeof text - n, format, va);
    va_end(va);
    ampi_tell(&ctx->log, level, AMP_OK, text);
}

/* Checks: a condition, and the sentence with which the function is left unless the condition holds. They, and the
   others here, want the context in a variable `ctx`. */
#define AMPI_REQUIRE(condition, status, ...) \
    do { \
        if (!(condition)) return amp_fail(ctx, status, __VA_ARGS__); \
    } while (0)
#define AMPI_INVALID(...)          amp_fail(ctx, AMP_ERR_INVALID_ARG, __VA_ARGS__)
#define AMPI_CHECK(condition, ...) AMPI_REQUIRE(condition, AMP_ERR_INVALID_ARG, __VA_ARGS__)
#define AMPI_STAGE(condition, ...) AMPI_REQUIRE(condition, AMP_ERR_STAGE, __VA_ARGS__)
#define AMPI_BELOW(x, count)       ((uint32_t)(x) < (uint32_t)(count)) /* of an enum's value */
#define AMPI_MEMORY(pointer)       AMPI_REQUIRE(pointer, AMP_ERR_NO_MEMORY, "no host memory")
/* what a backend may leave out of its table */
#define AMPI_HAS(entry) AMPI_REQUIRE(ctx->b->entry, AMP_ERR_UNSUPPORTED, "backend %s has no %s", ctx->b->name, #entry)
/* zero-initialised, or made by who makes it */
#define AMPI_CLEAN(d)   (!(d)->_begin && !(d)->_end)
/* first lines of a verb with a desc */
#define AMPI_CHECK_DESC(d) \
    do { \
        AMPI_CHECK(d, "desc is NULL"); \
        AMPI_REQUIRE(AMPI_CLEAN(d), AMP_ERR_UNINIT, "desc is not zero-initialised (_begin or _end is not 0)"); \
    } while (0)
/* and of one whose desc may be NULL: then *d stays as it is */
#define AMPI_TAKE_DESC(d, desc) \
    do { \
        if (!(desc)) break; \
        AMPI_CHECK_DESC(desc); \
        *(d) = *(desc); \
    } while (0)
/* and of one that makes an object from it */
#define AMPI_CHECK_CREATE(out, version, size, d, desc) \
    do { \
        AMPI_CHECK(out, "out is NULL"); \
        AMPI_REQUIRE( \
            version == AMP_VERSION && size == sizeof *(d), AMP_ERR_VERSION, "header and implementation differ"); \
        AMPI_TAKE_DESC(d, desc); \
    } while (0)
