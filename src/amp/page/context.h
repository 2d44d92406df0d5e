/* ==== >>context ================================================================================================== */

typedef struct amp_allocator { /* {0}: malloc and free (device: cudaMalloc and cudaFree). Both functions or neither */
    void *(*alloc_fn)(size_t bytes, void *user); /* aligned for any type (device: to 256 bytes); NULL: no memory */
    void (*free_fn)(void *ptr, size_t bytes, void *user);
    void *user;
} amp_allocator;

typedef enum amp_log_level { AMP_LOG_ERROR = 0, AMP_LOG_WARNING, AMP_LOG_INFO } AMP_INT amp_log_level;

typedef struct amp_logger { /* all zero: silent. fn must not call a verb; `text` is valid during the call only. */
    void (*fn)(amp_log_level level, amp_status status, const char *text, void *user);
    void *user;
} amp_logger;

typedef struct amp_ctx amp_ctx;       /* opaque: the CPU, or one CUDA stream on one GPU */
typedef struct amp_params amp_params; /* opaque: a set of parameters */
typedef struct amp_scaler amp_scaler; /* opaque: a loss scaler */
typedef struct amp_fp8 amp_fp8;       /* opaque: scales of FP8 tensors */

typedef enum amp_simd { /* CPU code paths; all give the same bits, except products without AMP_GEMM_ORDERED */
    AMP_SIMD_AUTO = 0,  /* the best that this machine runs */
    AMP_SIMD_SCALAR,    /* portable C */
    AMP_SIMD_SSE2,      /* every x86-64 */
    AMP_SIMD_AVX2,      /* AVX2 + FMA + F16C */
    AMP_SIMD_AVX512,    /* AVX-512 F, BW, DQ, VL; its BF16 where available */
    AMP_SIMD_NEON       /* every AArch64 */
} AMP_INT amp_simd;

typedef struct amp_cpu_desc {
    uint32_t _begin;
    int32_t threads;     /* the calling thread included: 1 .. 256; 0 => one per processor of this thread's affinity;
                        fewer, with a logged warning, if the system cannot start as many */
    amp_simd simd;       /* AMP_SIMD_AUTO; a path that this machine lacks returns AMP_ERR_UNSUPPORTED */
    uint32_t gemm_flags; /* AMP_GEMM_* that every product of this context gets, e.g. AMP_GEMM_ORDERED (>>products) */
    amp_allocator allocator; /* {0} => malloc / free */
    amp_logger logger;       /* {0} => silent */
    uint64_t _end;
} amp_cpu_desc;

/* amp_status amp_cpu_create(amp_ctx **out, const amp_cpu_desc *desc)
   A context on the CPU. desc NULL => all defaults. Starts threads - 1 workers, which sleep between verbs. It allocates
   2.2 MB for each; the pages become resident when that worker first works on a product.
   Errors: INVALID_ARG, UNINIT, VERSION, NO_MEMORY, UNSUPPORTED; *out is NULL then. Class: setup. Threads: safe. */
#define amp_cpu_create(out, ...) amp_cpu_create_checked((out), AMP_VERSION, sizeof(amp_cpu_desc), __VA_ARGS__)
AMP_API amp_status amp_cpu_create_checked(amp_ctx **out, int version, size_t size, const amp_cpu_desc *desc);
/* Destroys a context; destroy its params and scalers and free its memory first (committed sets, scalers and memory that
   are left are freed, and logged as a warning: do not touch them afterwards). NULL is fine. Like each *_destroy, it
   does nothing (and the context lives on) while a different thread is inside a verb of the context. Class: setup. */
AMP_API void amp_ctx_destroy(amp_ctx *ctx);
/* The sentence of the last failure, valid until the next one; "" if there was none, or for NULL. Class: host. */
AMP_API const char *amp_last_error(const amp_ctx *ctx);
/* "cpu: avx512, 2 threads" or "cuda: NVIDIA H200": the kind of backend, then what it runs on. To test which kind:
   strncmp(amp_ctx_name(ctx), "cuda", 4) == 0. Never NULL; valid as long as the context. Class: host. */
AMP_API const char *amp_ctx_name(const amp_ctx *ctx);
/* Context memory, 256-byte aligned, contents undefined; 0 bytes: NULL. `label` (at most 31 characters; NULL => "user")
   groups it in the ledger. ptr: NULL, or from amp_alloc of this context, else INVALID_ARG. Class: setup. */
AMP_API amp_status amp_alloc(amp_ctx *ctx, void **out, size_t bytes, const char *label);
AMP_API amp_status amp_free(amp_ctx *ctx, void *ptr);
/* Copies between host and context memory in any direction; overlap: undefined. Complete on return. Class: query. */
AMP_API amp_status amp_copy(amp_ctx *ctx, void *dst, const void *src, size_t bytes);
/* The same without waiting, e.g. the next minibatch of a captured step. Both areas in context memory, or one of them in
   page-locked host memory (cudaHostAlloc) that stays as it is until the copy has run. Pageable host memory: not in a
   capture, and CUDA may wait. Class: enqueue. */
AMP_API amp_status amp_copy_async(amp_ctx *ctx, void *dst, const void *src, size_t bytes);
/* Sets context memory to zero bytes. Class: enqueue. */
AMP_API amp_status amp_zero(amp_ctx *ctx, void *dst, size_t bytes);
/* Waits for everything queued on the context; reports errors that happened meanwhile. Class: query. */
AMP_API amp_status amp_sync(amp_ctx *ctx);
typedef struct amp_ledger_row { /* bytes of context memory */
    char label[32];
    uint64_t bytes; /* now */
    uint64_t peak;  /* highest so far */
} amp_ledger_row;

/* The row of `label`, if there is one; label NULL: all rows in order of first use, row 0 is "total". Writes at most cap
   rows (out NULL: none) and returns how many there are. Class: host. */
AMP_API size_t amp_ledger(const amp_ctx *ctx, amp_ledger_row *out, size_t cap, const char *label);

