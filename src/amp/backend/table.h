/* ---- the table ----
   A backend fills an amp_backend, makes its own state and calls amp_ctx_create_backend, which copies the table. Every
   function gets checked arguments with defaults filled in and returns a status made with amp_fail, so that the message
   says which vendor call failed in which verb. Pointers in jobs are context memory unless said otherwise.
   tests: tests/test_context.c (a backend of the test's own), tests/test_state.c (the checksum)

   The rule of sums, for floats x[0..n). What is not there is 0; to halve y[0..2h) is y[j] += y[j+h] for all j < h, then
   the same with h/2, ..., 1.
       part    2048 of them, in FP32:  lane[j] = (((0 + x[j]) + x[j+256]) + ...) + x[j+1792], j < 256;  halve the lanes
       chunk   32 parts, in double from here on:  halve the sums of its parts
       array   lane[j] = (((0 + c[j]) + c[j+256]) + ...), j < 256, for the sums c of its chunks;  halve the lanes
   A set of parameters: its chunks as amp_param_table numbers them. A column of a matrix: parts of 32 rows in order, in
   FP32; part p is added, in order, to lane p % 8, in double; halve the lanes.
   Squares: x = u * u rounded to FP32. A part whose sum is not finite or below 2^-100 is added up again with u * 2^-96
   or u * 2^96 in place of u, and its sum taken by 2^192 or 2^-192 in double: the sum is finite if every u is.
   Error: a term goes through at most 16 roundings of 2^-24 (its square, 7 additions, 8 halvings), those of a column
   through 31, and for 2^31 terms through 141 of 2^-53: together below 2^-19 of the sum of magnitudes, where that of
   each part is below 2^127 or they are squares. (tests: step.norm_error, step.norm_ranges) */

typedef struct amp_backend {
    uint32_t version, size; /* AMP_VERSION, sizeof(amp_backend) */
    const char *name;       /* "kind: what it runs on", see amp_ctx_name; valid until destroy */
    uint32_t gemm_flags;    /* AMP_GEMM_* that every product gets besides its own */
    uint32_t aligned;       /* 1: an array that does not begin at a multiple of its element size is refused */
    void (*destroy)(amp_ctx *);
    /* at the end of every verb, and before a function of the caller's runs inside one: what entries changed for the
       calling thread (CUDA: its device) is as it was. Gives the status back, or a failure of its own if that is AMP_OK.
       NULL: they change nothing */
    amp_status (*leave)(amp_ctx *, amp_status);
    /* memory: all needed, and cast */
    amp_status (*alloc)(amp_ctx *, void **out, size_t bytes);
    void (*release)(amp_ctx *, void *ptr, size_t bytes);
    amp_status (*copy)(amp_ctx *, void *dst, const void *src, size_t bytes); /* any direction, complete on return */
    amp_status (*copy_async)(amp_ctx *, void *dst, const void *src, size_t bytes);
    amp_status (*zero)(amp_ctx *, void *dst, size_t bytes);
    amp_status (*sync)(amp_ctx *);
    amp_status (*may_wait)(amp_ctx *); /* AMP_OK, or AMP_ERR_CAPTURE / AMP_ERR_DEAD: asked before every query */
    /* arrays. From here on a verb whose entry is NULL returns UNSUPPORTED */
    amp_status (*cast)(amp_ctx *, amp_array dst, amp_array src, size_t n, const amp_cast_desc *);
    /* counts; with `unscale` also dst[i] = arrays[i] / scale (dst NULL: in place), and what was found into the state;
       host may be NULL */
    amp_status (*finite)(amp_ctx *, const amp_array *dst, const amp_array *arrays, size_t n, amp_scaler_state *unscale,
        amp_finite_report *host);
    amp_status (*histogram)(amp_ctx *, const amp_array *arrays, size_t n, amp_histogram *host);
    /* step: all, or NULL: then there are no parameter sets; without next_scale and finite no scalers */
    amp_status (*sum_gradients)(amp_ctx *, const amp_sum_job *); /* into table.totals */
    amp_status (*conclude)(amp_ctx *, const amp_inspect_job *);  /* amp_conclude from table.totals */
    amp_status (*inspect)(amp_ctx *, const amp_inspect_job *);   /* summed is 1: both, in as few launches as can be */
    amp_status (*update)(amp_ctx *, const amp_update_job *);
    amp_status (*apply)(amp_ctx *, const amp_apply_job *);
    amp_status (*add)(amp_ctx *, const amp_add_job *);
    amp_status (*mirror_create)(amp_ctx *, amp_step_mirror **out); /* *out may stay NULL */
    void (*mirror_destroy)(amp_ctx *, amp_step_mirror *);
    amp_status (*poll)(amp_ctx *, const amp_step_record *record, const amp_step_mirror *mirror,
        amp_step_record *out); /* does not wait */
    /* the record becomes *host, also for poll; complete on return */
    amp_status (*set_record)(amp_ctx *, amp_step_record *record, amp_step_mirror *mirror, const amp_step_record *host);
    amp_status (*clip)(amp_ctx *, const amp_clip_job *);
    amp_status (*next_scale)(amp_ctx *, amp_scaler_state *);
    /* products and losses; bias_grad and gemm_explain come with gemm */
    amp_status (*gemm)(amp_ctx *, const amp_gemm_job *);
    /* how gemm would run it, or why it cannot; text NULL: only the status */
    amp_status (*gemm_explain)(amp_ctx *, char *text, size_t bytes, const amp_gemm_job *);
    amp_status (*gemm_tune)(amp_ctx *, const amp_gemm_job *); /* NULL: there is nothing to choose */
    amp_status (*bias_grad)(amp_ctx *, const amp_bias_grad_job *);
    amp_status (*xent)(amp_ctx *, const amp_xent_job *);
    /* policy */
    uint64_t (*capture_id)(amp_ctx *); /* of the capture in progress, 0: none. NULL: always 0 */
    amp_status (*dropout)(amp_ctx *, const amp_dropout_job *);
    amp_status (*quantize)(amp_ctx *, const amp_quantize_job *);
} amp_backend;

/* Makes a context of a backend. `self` is the backend's own state, given back by amp_ctx_self; destroy frees it. If
   creation fails, `self` stays yours. host: allocator of host objects, {0} => malloc / free. */
AMP_API amp_status amp_ctx_create_backend(
    amp_ctx **out, const amp_backend *backend, void *self, const amp_allocator *host, const amp_logger *logger);
AMP_API void *amp_ctx_self(const amp_ctx *ctx);
/* Records and logs a failure, and returns its status: return amp_fail(ctx, AMP_ERR_CUDA, "%s failed", call). The name
   of the verb that runs goes in front, here and in the log. */
#if defined(__GNUC__) || defined(__clang__)
__attribute__((format(printf, 3, 4)))
#endif
AMP_API amp_status amp_fail(amp_ctx *ctx, amp_status status, const char *format, ...);
/* A log line that does not report a failure. */
#if defined(__GNUC__) || defined(__clang__)
__attribute__((format(printf, 3, 4)))
#endif
AMP_API void amp_log_event(const amp_ctx *ctx, amp_log_level level, const char *format, ...);
/* The body of a verb, and of a public function of a backend's own that works on a context: `call` has the context for
   itself, runs in the default floating-point environment, and its sentences begin with the name, a literal. */
#define AMPI_BUSY \
    ": a different thread is inside a verb of this context. A context serves one thread at a time: make one for each " \
    "thread (on the CPU with amp_cpu_desc.threads = 1), or one call after the other"
#define AMP_VERB(ctx, name, call) \
    do { \
        amp_ctx *in_ = (ctx); \
        amp_status st_ = amp_verb_begin(in_, name AMPI_BUSY); \
        return st_ == AMP_OK ? amp_verb_end(in_, call) : st_; \
    } while (0)
AMP_API amp_status amp_verb_begin(amp_ctx *ctx, const char *verb); /* the name, a colon, what a second thread is told */
AMP_API amp_status amp_verb_end(amp_ctx *ctx, amp_status status);

#define AMPI_TRY(call) \
    do { \
        amp_status try_ = (call); \
        if (try_ != AMP_OK) return try_; \
    } while (0)

AMP_INLINE uint64_t ampi_get(const uint8_t *b, int bytes) {
    uint64_t x = 0;
    int i;
    for (i = 0; i < bytes; i++)
        x |= (uint64_t)b[i] << (8 * i);
    return x;
}
/* The checksum of state and plan files: XXH64 with seed 0, made from its specification (doc/xxhash_spec.md of
   github.com/Cyan4973/xxHash). Bytes may come in pieces of any size. */
#define AMPI_XXH_1 0x9e3779b185ebca87u
#define AMPI_XXH_2 0xc2b2ae3d27d4eb4fu
#define AMPI_XXH_3 0x165667b19e3779f9u
#define AMPI_XXH_4 0x85ebca77c2b2ae63u
#define AMPI_XXH_5 0x27d4eb2f165667c5u
typedef struct ampi_xxh {
    uint64_t lane[4], bytes;
    uint8_t rest[32]; /* bytes % 32 of them wait for a full stripe */
} ampi_xxh;
AMP_INLINE uint64_t ampi_word(const uint8_t *b) { /* little-endian; compilers make one load of it */
    uint64_t low = b[0] | (uint64_t)b[1] << 8 | (uint64_t)b[2] << 16 | (uint64_t)b[3] << 24;
    return low | (uint64_t)b[4] << 32 | (uint64_t)b[5] << 40 | (uint64_t)b[6] << 48 | (uint64_t)b[7] << 56;
}
AMP_INLINE uint64_t ampi_rotate(uint64_t x, int by) { return x << by | x >> (64 - by); }
AMP_INLINE uint64_t ampi_xxh_round(uint64_t lane, uint64_t word) {
    return ampi_rotate(lane + word * AMPI_XXH_2, 31) * AMPI_XXH_1;
}
AMP_INLINE void ampi_xxh_stripe(ampi_xxh *h, const uint8_t *b) {
    int i;
    for (i = 0; i < 4; i++)
        h->lane[i] = ampi_xxh_round(h->lane[i], ampi_word(b + 8 * i));
}
AMP_INLINE ampi_xxh ampi_xxh_begin(void) {
    ampi_xxh h = AMP_ZERO;
    h.lane[0] = AMPI_XXH_1 + AMPI_XXH_2;
    h.lane[1] = AMPI_XXH_2;
    h.lane[3] = 0u - AMPI_XXH_1;
    return h;
}
AMP_INLINE void ampi_xxh_add(ampi_xxh *h, const void *data, size_t n) {
    const uint8_t *b = (const uint8_t *)data;
    size_t held = (size_t)(h->bytes % 32u), i = 0;
    h->bytes += n;
    if (held) {
        i = n < 32 - held ? n : 32 - held;
        memcpy(h->rest + held, b, i);
        if (held + i < 32) return;
        ampi_xxh_stripe(h, h->rest);
    }
    for (; n - i >= 32; i += 32)
        ampi_xxh_stripe(h, b + i);
    if (n > i) memcpy(h->rest, b + i, n - i);
}
AMP_INLINE uint64_t ampi_xxh_of_lanes(const ampi_xxh *h) {
    uint64_t x = ampi_rotate(h->lane[0], 1) + ampi_rotate(h->lane[1], 7);
    int i;
    x += ampi_rotate(h->lane[2], 12) + ampi_rotate(h->lane[3], 18);
    for (i = 0; i < 4; i++)
        x = (x ^ ampi_xxh_round(0, h->lane[i])) * AMPI_XXH_1 + AMPI_XXH_4;
    return x;
}
AMP_INLINE uint64_t ampi_xxh_end(const ampi_xxh *h) {
    size_t n = (size_t)(h->bytes % 32u), i = 0;
    uint64_t x = (h->bytes < 32 ? AMPI_XXH_5 : ampi_xxh_of_lanes(h)) + h->bytes;
    for (; n - i >= 8; i += 8)
        x = ampi_rotate(x ^ ampi_xxh_round(0, ampi_word(h->rest + i)), 27) * AMPI_XXH_1 + AMPI_XXH_4;
    for (; n - i >= 4; i += 4)
        x = ampi_rotate(x ^ ampi_get(h->rest + i, 4) * AMPI_XXH_1, 23) * AMPI_XXH_2 + AMPI_XXH_3;
    for (; i < n; i++)
        x = ampi_rotate(x ^ h->rest[i] * AMPI_XXH_5, 11) * AMPI_XXH_1;
    x = (x ^ x >> 33) * AMPI_XXH_2;
    x = (x ^ x >> 29) * AMPI_XXH_3;
    return x ^ x >> 32;
}
/* Writes a file that takes the place of `path` whole, durably and at once, or not at all: see >>state. */
AMP_API amp_status amp_write_file(amp_ctx *ctx, const char *path, const void *data, size_t bytes);

/* Sizes in messages: "%llu", AMPI_ULL(n). (unsigned long has 32 bits on Win64.) */
#define AMPI_ULL(x) ((unsigned long long)(x))

