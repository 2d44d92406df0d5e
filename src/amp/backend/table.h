/* ---- the table ----
   A backend fills an amp_backend, makes its own state and calls amp_ctx_create_backend, which copies the table. Every
   function gets checked arguments with defaults filled in and returns a status made with amp_fail, so that the message
   says which vendor call failed in which verb. Pointers in jobs are context memory unless said otherwise.
   tests: tests/test_context.c (a backend of the test's own), tests/test_state.c (the checksum) */

typedef struct amp_backend {
    uint32_t version, size; /* AMP_VERSION, sizeof(amp_backend) */
    const char *name;       /* "kind: what it runs on", see amp_ctx_name; valid until destroy */
    uint32_t gemm_flags;    /* AMP_GEMM_* that every product gets besides its own */
    uint32_t aligned;       /* 1: an array that does not begin at a multiple of its element size is refused */
    uint32_t holds; /* 1: an entry that waits does it under pthread_setcancelstate; 0: each verb is, as a whole */
    uint32_t _pad;
    void (*destroy)(amp_ctx *);
    /* at the end of every verb, and before a function of the caller's runs inside one: what entries changed for the
       calling thread (CUDA: its device) is as it was. Gives the status back, or a failure of its own if that is AMP_OK.
       NULL: they change nothing */
    amp_status (*leave)(amp_ctx *, amp_status);
    /* memory: all needed, and cast, but for alloc_zeros (NULL: alloc, then zero) */
    amp_status (*alloc)(amp_ctx *, void **out, size_t bytes);
    amp_status (*alloc_zeros)(amp_ctx *, void **out, size_t bytes); /* the same, of zeros */
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
    /* mirrors of records, all four, or NULL: a record is copied */
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
    amp_status (*activation)(amp_ctx *, const amp_activation_job *);
    amp_status (*xent)(amp_ctx *, const amp_xent_job *);
    /* policy */
    uint64_t (*capture_id)(amp_ctx *); /* of the capture in progress, 0: none. NULL: always 0 */
    amp_status (*dropout)(amp_ctx *, const amp_dropout_job *);
    amp_status (*quantize)(amp_ctx *, const amp_quantize_job *);
} amp_backend;
/* What both of ours fill, with functions that are named after the entries. */
/* clang-format off */
#define AMPI_ENTRIES(X) \
    X(destroy) X(alloc) X(release) X(copy) X(zero) X(sync) X(cast) X(finite) X(histogram) X(sum_gradients) \
    X(conclude) X(inspect) X(update) X(apply) X(add) \
    X(clip) X(next_scale) X(gemm) X(gemm_explain) X(bias_grad) X(activation) X(xent) X(dropout) X(quantize)
/* clang-format on */

/* Makes a context of a backend. `self` is the backend's own state, given back by amp_ctx_self; destroy frees it. If
   creation fails, `self` stays yours. host: allocator of host objects, {0} => malloc / free. */
AMP_API amp_status amp_ctx_create_backend(
    amp_ctx **out, const amp_backend *backend, void *self, const amp_allocator *host, const amp_logger *logger);
AMP_API void *amp_ctx_self(const amp_ctx *ctx);

