/* ==== >>cuda-host ====================================================================================================
   Errors, launches, memory.   tests: tests/cuda_verbs.cpp, tests/test_context.c */

#define AMPI_CU_KIND     "cuda: " /* then the GPU's name */
#define AMPI_CU_PLANS    512u     /* products whose plan is remembered, unless desc.plans says otherwise, */
#define AMPI_CU_MOST     65536u   /* and at most */
#define AMPI_CU_SETTLED  10u      /* steps after which no product should be new */
#define AMPI_CU_DEFERRED 64u      /* blocks freed inside captures */
#define AMPI_CU_TRIES    16       /* candidates that tuning times, */
#define AMPI_CU_ROUNDS   5        /* each so often */
#define AMPI_CU_LOOKS    1000     /* at a copy of the record that the device is writing */
#define AMPI_CU_BIAS     262144u  /* bytes after the workspace for a bias of a different dtype */

typedef struct ampi_cu_scratch {
    ampi_k_finite_sums finite;
    ampi_k_histogram_bins histogram;
    ampi_k_inspect_state inspect;                /* amp_step: leaves zeros itself, so it is never cleared */
    double counts[AMP_LANES], losses[AMP_LANES]; /* amp_softmax_cross_entropy */
    uint32_t xent_ticket, _pad;                  /* the same: it wraps to 0 */
    float scalar[4];                             /* amp_gemm: 0 and 1, which never change, alpha and beta */
    alignas(16) float factor[3][4];              /* the same: factors of FP8, see ampi_cu_f8_factors */
} ampi_cu_scratch;

/* Everything that the choice of a product's algorithm depends on: the product, as ampi_cu_key_of leaves it. Compared as
   bytes: amp_gemm_desc has no padding. */
typedef amp_gemm_job ampi_cu_key;

typedef struct ampi_cu_plan {
    ampi_cu_key key;
    cublasLtMatmulAlgo_t algo;
    const char *why;    /* not cuBLASLt: static text */
    uint64_t used;      /* when it was used last, by ampi_cuda.uses; 0: nothing is here */
    uint32_t next;      /* the next plan in its bucket, from 1 on; 0: none */
    uint32_t lt;        /* 1: cuBLASLt, 0: ampi_k_gemm */
    uint32_t epilogue;  /* what cuBLASLt does after the product */
    uint32_t compute;   /* a cublasComputeType_t */
    uint32_t convert;   /* 1: the bias is rounded to the dtype that cuBLASLt wants first */
    uint32_t after;     /* 1: then ampi_k_epilogue, which adds the bias, too, if the epilogue does not */
    uint32_t unchecked; /* 1: from a file, not used yet */
    uint32_t _pad;
} ampi_cu_plan;

/* All kernels: the lists of the device's parts, and those of each kind of update and each format. */
#define AMPI_CU_KERNELS(X) \
    AMPI_K_ARRAYS(X) \
    AMPI_K_QUANTIZE(X) AMPI_K_INSPECT(X) AMPI_K_UPDATE(X) AMPI_K_LOSSES(X) AMPI_K_PRODUCTS(X) AMPI_K_COLUMNS(X)
#define AMPI_CU_ONE(...) +1u
#define AMPI_CU_UPDATES(X, kind) \
    X(ampi_k_update<kind>) X(ampi_k_update_pairs<kind>) X(ampi_k_count_update<kind>) X(ampi_k_update_codes<kind>)
#define AMPI_CU_RESIDENT (0u AMPI_CU_KERNELS(AMPI_CU_ONE) + AMP_UPDATE_COUNT * (0u AMPI_CU_UPDATES(AMPI_CU_ONE, 0)))
/* What the driver is asked; each NULL: it has none. */
typedef struct ampi_cu_driver {
    int (*state)(int device, unsigned *flags, int *active); /* of a primary context: is the device in use? */
    int (*get)(void **context);                             /* which is current on the thread? */
    int (*set)(void *context);
} ampi_cu_driver;
/* Where a thread was: its device; the context that is current instead of that one's primary one, or NULL. */
typedef struct ampi_cu_place {
    int device, _pad;
    void *context;
} ampi_cu_place;
typedef struct ampi_cuda {
    amp_ctx *ctx;                         /* for messages */
    int device, sms, blocks_per_sm, arch; /* arch: 90 for sm_90 */
    int here, away; /* 1: the thread uses this device; 1: it was at `back` before this verb, and will again */
    ampi_cu_place back;
    ampi_cu_driver driver;
    void *primary;              /* the device's context, as the driver names it; NULL: it does not */
    int relaxed;                /* 1: its capture mode is relaxed, */
    cudaStreamCaptureMode mode; /* and was, and will be, this one */
    uint32_t flags, dead, own_stream, own_cublas, own_workspace;
    int dependent;          /* 1: a kernel may be launched to follow another one, */
    int inspected, follows; /* what this verb queued last is an inspection; what is launched next shall follow it */
    cudaStream_t stream;
    cublasLtHandle_t cublas;
    void *workspace, *bias;
    uint64_t l2;                       /* bytes of its cache */
    size_t workspace_bytes, bias_room; /* bias_room: elements of 16 bits */
    ampi_cu_scratch *scratch, *mirror; /* device; page-locked host, where what was found is read */
    amp_allocator allocator, host;
    amp_cuda_error error;
    struct {
        void *p;
        size_t bytes;
    } deferred[AMPI_CU_DEFERRED]; /* to be freed when no capture is under way */
    struct {
        const void *kernel;
        int blocks, _pad;
    } resident[AMPI_CU_RESIDENT]; /* blocks of a kernel that an SM holds */
    uint32_t n_deferred, n_resident;
    char name[256 + sizeof AMPI_CU_KIND]; /* what amp_ctx_name gives */
    uint32_t n_plans, n_begun;            /* places for plans, and those that have been used */
    ampi_cu_plan *plans;                  /* in one block of host memory with */
    uint32_t *buckets;                    /* as many beginnings of lists, from 1 on; 0: empty */
    uint64_t uses;                        /* of plans, so far */
    uint64_t searches, stepped;           /* plans made; inspections, of which a step has one for each set */
    uint64_t late, late_step; /* steps after AMPI_CU_SETTLED in which plans were made, and the last of them */
} ampi_cuda;

static ampi_cuda *ampi_cu_self(amp_ctx *ctx) { return (ampi_cuda *)amp_ctx_self(ctx); }
/* NULL for a context of a different backend: only ours keeps its name in its own state, at this place. */
static const ampi_cuda *ampi_cu_of(const amp_ctx *ctx) {
    const ampi_cuda *c = ctx ? (const ampi_cuda *)amp_ctx_self(ctx) : NULL;
    if (!c || strncmp(amp_ctx_name(ctx), AMPI_CU_KIND, sizeof AMPI_CU_KIND - 1) != 0) return NULL;
    return amp_ctx_name(ctx) == c->name ? c : NULL;
}

/* Host memory, zeroed. */
static void *ampi_cu_host_new(const amp_allocator *host, size_t bytes) {
    void *p = host->alloc_fn ? host->alloc_fn(bytes, host->user) : malloc(bytes);
    return p ? memset(p, 0, bytes) : NULL;
}
static void ampi_cu_host_drop(const amp_allocator *host, void *p, size_t bytes) {
    if (host->free_fn && p)
        host->free_fn(p, bytes, host->user);
    else if (p)
        free(p);
}

/* Errors after which, in CUDA's words, the process must be terminated to go on. */
static int ampi_cu_sticky(cudaError_t e) {
    switch ((int)e) { /* by number where the headers of CUDA 12 have no name */
    case 226:         /* cudaErrorContained */
    case 721:         /* cudaErrorTensorMemoryLeak */
    case 911:         /* cudaErrorExternalDevice */
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorMpsClientTerminated:
    case cudaErrorCudartUnloading: return 1;
    default: return 0;
    }
}

/* What the driver says of earlier work: this call is harmless, in a capture, too. The runtime notes an error of it,
   which is cleared. Of a device that is dead such calls tell again and again. */
static cudaError_t ampi_cu_probe(cudaStream_t stream) {
    cudaStreamCaptureStatus capture;
    cudaError_t e = cudaStreamIsCapturing(stream, &capture);
    if (e != cudaSuccess) (void)cudaGetLastError();
    return e;
}
/* A failure of a call of ours that nobody is told about: nor does the runtime's note of it stay. */
static void ampi_cu_forget(cudaError_t e) {
    if (e != cudaSuccess) (void)cudaGetLastError();
}
static int ampi_cu_is_capture_error(cudaError_t e) {
    return e >= cudaErrorStreamCaptureUnsupported && e <= cudaErrorStreamCaptureWrongThread;
}
/* A failed call of the CUDA runtime: what kind of failure, and is the device still there? The runtime's own note of it
   is cleared, because the status tells the caller. */
static amp_status ampi_cu_kind(cudaError_t e, cudaStream_t stream) {
    cudaError_t probe;
    (void)cudaGetLastError();
    if (ampi_cu_sticky(e)) return AMP_ERR_DEAD;
    probe = ampi_cu_probe(stream);
    if (ampi_cu_sticky(probe)) return AMP_ERR_DEAD;
    if (ampi_cu_is_capture_error(e)) return AMP_ERR_CAPTURE;
    if (probe == e && ampi_cu_probe(stream) == e) return AMP_ERR_DEAD; /* a fault would be told once */
    return e == cudaErrorMemoryAllocation ? AMP_ERR_NO_MEMORY : AMP_ERR_CUDA;
}

static void ampi_cu_remember(ampi_cuda *c, amp_status s, const char *call, amp_cuda_library library, int code) {
    c->error.code = code;
    c->error.library = library;
    c->error.call = call;
    if (s == AMP_ERR_DEAD) c->dead = 1;
}
static amp_status ampi_cu_fail(ampi_cuda *c, const char *call, cudaError_t e) {
    amp_status s = ampi_cu_kind(e, c->stream);
    ampi_cu_remember(c, s, call, AMP_CUDA_RUNTIME, (int)e);
    return amp_fail(c->ctx, s, "%s: %s (%s)", call, cudaGetErrorName(e), cudaGetErrorString(e));
}
/* What a call of the runtime has returned, as a status. */
static amp_status ampi_cu_did(ampi_cuda *c, const char *call, cudaError_t e) {
    return e == cudaSuccess ? AMP_OK : ampi_cu_fail(c, call, e);
}

static const char *ampi_cu_cublas_name(cublasStatus_t e) {
    switch (e) {
    case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_ARCH_MISMATCH: return "CUBLAS_STATUS_ARCH_MISMATCH";
    case CUBLAS_STATUS_MAPPING_ERROR: return "CUBLAS_STATUS_MAPPING_ERROR";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_INTERNAL_ERROR: return "CUBLAS_STATUS_INTERNAL_ERROR";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    default: return "a cuBLAS status without a name here";
    }
}

/* Has the device died meanwhile? cuBLASLt has a CUDA runtime of its own, whose last error ours does not know, so the
   driver is asked. */
static cudaError_t ampi_cu_beneath(const ampi_cuda *c) {
    const cudaError_t e = ampi_cu_probe(c->stream);
    return ampi_cu_is_capture_error(e) ? cudaSuccess : e;
}
static amp_status ampi_cu_cublas_kind(const ampi_cuda *c, cublasStatus_t e) {
    if (ampi_cu_beneath(c) != cudaSuccess) return AMP_ERR_DEAD;
    return e == CUBLAS_STATUS_ALLOC_FAILED ? AMP_ERR_NO_MEMORY : AMP_ERR_CUDA;
}
static amp_status ampi_cu_fail_cublas(ampi_cuda *c, const char *call, cublasStatus_t e) {
    amp_status s = ampi_cu_cublas_kind(c, e);
    ampi_cu_remember(c, s, call, AMP_CUDA_CUBLASLT, (int)e);
    return amp_fail(c->ctx, s, "%s: %s (%d)", call, ampi_cu_cublas_name(e), (int)e);
}

/* From here to the end of the verb the thread may allocate, free, wait and load kernels while somebody else's stream is
   being captured in global mode, which that capture would else not survive. */
static void ampi_cu_relax(ampi_cuda *c) {
    if (c->relaxed) return;
    c->mode = cudaStreamCaptureModeRelaxed;
    c->relaxed = cudaThreadExchangeStreamCaptureMode(&c->mode) == cudaSuccess;
    if (!c->relaxed) (void)cudaGetLastError(); /* whoever allocates then will say what is wrong */
}
static void ampi_cu_unrelax(ampi_cuda *c) {
    if (!c->relaxed) return;
    c->relaxed = 0;
    if (cudaThreadExchangeStreamCaptureMode(&c->mode) == cudaSuccess) return;
    (void)cudaThreadExchangeStreamCaptureMode(&c->mode); /* once more: the thread wants its mode back */
    (void)cudaGetLastError();
}

static void *ampi_cu_find(const char *name) { /* a function of the driver's */
    void *found = NULL;
    enum cudaDriverEntryPointQueryResult how;
#if CUDART_VERSION >= 12050
    cudaError_t e = cudaGetDriverEntryPointByVersion(name, &found, 12000, 0, &how);
#else
    cudaError_t e = cudaGetDriverEntryPoint(name, &found, 0, &how);
#endif
    if (e == cudaSuccess) return found;
    (void)cudaGetLastError();
    return NULL;
}
static ampi_cu_driver ampi_cu_find_driver(void) {
    ampi_cu_driver d;
    d.state = (int (*)(int, unsigned *, int *))ampi_cu_find("cuDevicePrimaryCtxGetState");
    d.get = (int (*)(void **))ampi_cu_find("cuCtxGetCurrent");
    d.set = (int (*)(void *))ampi_cu_find("cuCtxSetCurrent");
    return d;
}
static void *ampi_cu_current(const ampi_cu_driver *d) {
    void *now = NULL;
    return d->get && d->set && (d->get)(&now) == 0 ? now : NULL;
}
/* The thread's own device again, but not one that is not in use: cudaSetDevice would begin to use it. */
static cudaError_t ampi_cu_go_back(const ampi_cu_driver *d, const ampi_cu_place *to) {
    unsigned flags = 0;
    int active = 1;
    if (to->context) return (d->set)(to->context) == 0 ? cudaSuccess : cudaErrorInvalidDevice;
    if (d->state && (d->state)(to->device, &flags, &active) != 0) active = 1;
    return active ? cudaSetDevice(to->device) : cudaSuccess;
}
/* Is the thread, which is at `at`, somewhere else than the context? The device may be the same, and a context of the
   program's own (cuCtxCreate) current, which does not know our stream and memory: at->context becomes that one. */
static int ampi_cu_elsewhere(const ampi_cuda *c, ampi_cu_place *at) {
    at->context = NULL;
    if (at->device != c->device) return 1;
    if (c->primary) at->context = ampi_cu_current(&c->driver);
    if (at->context == c->primary) at->context = NULL;
    return at->context != NULL;
}

/* Before anything that works on the device: it becomes the thread's, until the verb ends. */
static amp_status ampi_cu_here(ampi_cuda *c) {
    if (c->dead)
        return amp_fail(c->ctx, AMP_ERR_DEAD, "the device is in a sticky error state since %s failed", c->error.call);
    if (c->here) return AMP_OK;
    AMPI_TRY(ampi_cu_did(c, "cudaGetDevice", cudaGetDevice(&c->back.device)));
    c->away = ampi_cu_elsewhere(c, &c->back); /* if the next call fails, ampi_cu_leave follows, too */
    if (c->away) AMPI_TRY(ampi_cu_did(c, "cudaSetDevice", cudaSetDevice(c->device)));
    c->here = 1;
    return AMP_OK;
}
static amp_status ampi_cu_leave(amp_ctx *ctx, amp_status s) {
    ampi_cuda *c = ampi_cu_self(ctx);
    cudaError_t e = c->away ? ampi_cu_go_back(&c->driver, &c->back) : cudaSuccess;
    c->here = c->away = 0;
    c->inspected = c->follows = 0;
    ampi_cu_unrelax(c);
    if (e == cudaSuccess) return s;
    if (s == AMP_OK) s = ampi_cu_fail(c, "cudaSetDevice", e);
    (void)cudaSetDevice(c->back.device); /* once more: the thread wants its device back */
    (void)cudaGetLastError();
    return s;
}

static amp_status ampi_cu_capture(ampi_cuda *c, int *capturing) {
    cudaStreamCaptureStatus st = cudaStreamCaptureStatusNone;
    cudaError_t e;
    AMPI_TRY(ampi_cu_here(c));
    e = cudaStreamIsCapturing(c->stream, &st);
    if (e == cudaErrorStreamCaptureImplicit) { /* the legacy stream, while a blocking stream is being captured */
        (void)cudaGetLastError();
        e = cudaSuccess;
        st = cudaStreamCaptureStatusActive;
    }
    *capturing = st != cudaStreamCaptureStatusNone;
    return ampi_cu_did(c, "cudaStreamIsCapturing", e);
}

static amp_status ampi_cu_wait(ampi_cuda *c) {
    AMPI_TRY(ampi_cu_here(c));
    ampi_cu_relax(c);
    return ampi_cu_did(c, "cudaStreamSynchronize", cudaStreamSynchronize(c->stream));
}

/* After a launch that was accepted: has the device died meanwhile? What the runtime remembers is the thread's, and may
   be of another device, or have been left by the caller: our device is asked, too. */
static amp_status ampi_cu_launched(ampi_cuda *c, const char *call) {
    cudaError_t e = ampi_cu_sticky(cudaPeekAtLastError()) ? ampi_cu_beneath(c) : cudaSuccess;
    int capturing = 0;
    amp_status s;
    if (e != cudaSuccess) return ampi_cu_fail(c, call, e);
    if (!(c->flags & AMP_CUDA_DEBUG)) return AMP_OK;
    s = ampi_cu_capture(c, &capturing);
    return s != AMP_OK || capturing ? s : ampi_cu_wait(c);
}

template <class... P, class... A>
static amp_status ampi_cu_launch_of(ampi_cuda *c, unsigned threads, unsigned grid, void (*kernel)(P...), A... args) {
    cudaLaunchConfig_t config = AMP_ZERO;
    cudaLaunchAttribute follow = AMP_ZERO;
    const int follows = c->follows;
    c->inspected = c->follows = 0;
    AMPI_TRY(ampi_cu_here(c));
    config.gridDim = dim3(grid);
    config.blockDim = dim3(threads);
    config.stream = c->stream;
    if (follows) {
        follow.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        follow.val.programmaticStreamSerializationAllowed = 1;
        config.attrs = &follow;
        config.numAttrs = 1;
    }
    AMPI_TRY(ampi_cu_did(c, "cudaLaunchKernelEx", cudaLaunchKernelEx(&config, kernel, args...)));
    return ampi_cu_launched(c, "cudaLaunchKernelEx");
}
template <class... P, class... A>
static amp_status ampi_cu_launch(ampi_cuda *c, unsigned grid, void (*kernel)(P...), A... args) {
    return ampi_cu_launch_of(c, AMP_BLOCK, grid, kernel, args...);
}

/* Blocks for `work` units of one block each: enough to fill the GPU once; kernels go round. */
static unsigned ampi_cu_least(const ampi_cuda *c, int per_sm, uint64_t work) {
    uint64_t most = (uint64_t)c->sms * (uint64_t)per_sm;
    if (work < 1) return 1;
    return (unsigned)(work < most ? work : most);
}
static unsigned ampi_cu_grid(const ampi_cuda *c, uint64_t work) { return ampi_cu_least(c, c->blocks_per_sm, work); }
/* How many of a kernel's blocks an SM really holds was asked when the context was made. */
static int ampi_cu_resident(const ampi_cuda *c, const void *kernel) {
    uint32_t i;
    for (i = 0; i < c->n_resident; i++)
        if (c->resident[i].kernel == kernel) return c->resident[i].blocks;
    return c->blocks_per_sm;
}
/* One of them, on so many units. */
template <class... P, class... A>
static amp_status ampi_cu_share(ampi_cuda *c, uint64_t work, void (*kernel)(P...), A... args) {
    return ampi_cu_launch(c, ampi_cu_least(c, ampi_cu_resident(c, (const void *)kernel), work), kernel, args...);
}
/* The same for one that reads and writes arrays, and whose blocks begin quickly: more blocks than the GPU holds, so
   that one begins wherever another ends. An H100 is 2 to 9 % faster so than where the same blocks go round. */
#define AMPI_CU_WAVES 16
template <class... P, class... A>
static amp_status ampi_cu_stream(ampi_cuda *c, uint64_t work, void (*kernel)(P...), A... args) {
    const int per_sm = AMPI_CU_WAVES * ampi_cu_resident(c, (const void *)kernel);
    return ampi_cu_launch(c, ampi_cu_least(c, per_sm, work), kernel, args...);
}
static uint64_t ampi_cu_parts(uint64_t n, uint64_t part) { return n / part + (n % part != 0); }

static amp_status ampi_cu_may_wait(amp_ctx *ctx) {
    ampi_cuda *c = ampi_cu_self(ctx);
    int capturing = 0;
    AMPI_TRY(ampi_cu_capture(c, &capturing));
    ampi_cu_relax(c);
    if (!capturing) return AMP_OK;
    return amp_fail(ctx, AMP_ERR_CAPTURE, "this call synchronises and the context's stream is being captured");
}

/* Never 0 in a capture. */
static uint64_t ampi_cu_capture_id(amp_ctx *ctx) {
    ampi_cuda *c = ampi_cu_self(ctx);
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    unsigned long long id = 0;
    int unnamed = c->stream == cudaStreamLegacy || c->stream == cudaStreamPerThread; /* of the thread's device, then */
    if (unnamed && ampi_cu_here(c) != AMP_OK) return 0;
    if (cudaStreamGetCaptureInfo(c->stream, &status, &id) != cudaSuccess) {
        (void)cudaGetLastError();
        return 0;
    }
    return status == cudaStreamCaptureStatusNone ? 0 : (uint64_t)id + 1;
}

/* Device memory by the context's allocator; the context's own stream is not being captured here. */
static cudaError_t ampi_cu_take(ampi_cuda *c, void **out, size_t bytes, const char **call) {
    *out = NULL;
    ampi_cu_relax(c);
    if (c->allocator.alloc_fn) {
        *call = "allocator.alloc_fn";
        *out = c->allocator.alloc_fn(bytes, c->allocator.user);
        return *out ? cudaSuccess : cudaErrorMemoryAllocation;
    }
    *call = c->flags & AMP_CUDA_POOL ? "cudaMallocAsync" : "cudaMalloc";
    return c->flags & AMP_CUDA_POOL ? cudaMallocAsync(out, bytes, c->stream) : cudaMalloc(out, bytes);
}
/* Not while the stream is being captured. bytes 0: pinned host memory, which queued work may still use. A dead device
   frees nothing. */
static void ampi_cu_give(ampi_cuda *c, void *p, size_t bytes) {
    if (!p) return;
    ampi_cu_relax(c);
    if (!bytes) {
        ampi_cu_forget(cudaStreamSynchronize(c->stream));
        ampi_cu_forget(cudaFreeHost(p));
    } else if (c->allocator.alloc_fn) { /* cudaFree waits for work that uses the memory; a caller's function may not */
        ampi_cu_forget(cudaStreamSynchronize(c->stream));
        c->allocator.free_fn(p, bytes, c->allocator.user);
    } else if (c->flags & AMP_CUDA_POOL) {
        ampi_cu_forget(cudaFreeAsync(p, c->stream));
    } else {
        ampi_cu_forget(cudaFree(p));
    }
}
/* What was to be freed inside a capture, which forbids it, is freed when the capture is over. */
static void ampi_cu_free_deferred(ampi_cuda *c) {
    while (c->n_deferred) {
        c->n_deferred--;
        ampi_cu_give(c, c->deferred[c->n_deferred].p, c->deferred[c->n_deferred].bytes);
    }
}

static amp_status ampi_cu_alloc(amp_ctx *ctx, void **out, size_t bytes) {
    ampi_cuda *c = ampi_cu_self(ctx);
    const char *call = "";
    int capturing = 0;
    cudaError_t e;
    AMPI_TRY(ampi_cu_capture(c, &capturing));
    if (capturing) return amp_fail(ctx, AMP_ERR_CAPTURE, "the context's stream is being captured");
    ampi_cu_free_deferred(c);
    e = ampi_cu_take(c, out, bytes, &call);
    if (e == cudaSuccess) return AMP_OK;
    if (!c->allocator.alloc_fn) return ampi_cu_fail(c, call, e);
    return amp_fail(ctx, AMP_ERR_NO_MEMORY, "the allocator has no %llu bytes", AMPI_ULL(bytes));
}

static void ampi_cu_release(amp_ctx *ctx, void *p, size_t bytes) {
    ampi_cuda *c = ampi_cu_self(ctx);
    int capturing = 0;
    (void)ampi_cu_capture(c, &capturing);
    if (!capturing) {
        ampi_cu_free_deferred(c);
        ampi_cu_give(c, p, bytes); /* also on a dead device: a lent allocator gets its memory back */
    } else if (c->n_deferred < AMPI_CU_DEFERRED) {
        c->deferred[c->n_deferred].p = p;
        c->deferred[c->n_deferred++].bytes = bytes;
    } else {
        amp_log_event(
            ctx, AMP_LOG_WARNING, "too much was freed inside a capture: %llu bytes are lost", AMPI_ULL(bytes));
    }
}

static amp_status ampi_cu_copy_async(amp_ctx *ctx, void *dst, const void *src, size_t bytes) {
    ampi_cuda *c = ampi_cu_self(ctx);
    AMPI_TRY(ampi_cu_here(c));
    return ampi_cu_did(c, "cudaMemcpyAsync", cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, c->stream));
}
static amp_status ampi_cu_copy(amp_ctx *ctx, void *dst, const void *src, size_t bytes) {
    AMPI_TRY(ampi_cu_copy_async(ctx, dst, src, bytes));
    return ampi_cu_wait(ampi_cu_self(ctx));
}

static amp_status ampi_cu_zero(amp_ctx *ctx, void *dst, size_t bytes) {
    ampi_cuda *c = ampi_cu_self(ctx);
    AMPI_TRY(ampi_cu_here(c));
    return ampi_cu_did(c, "cudaMemsetAsync", cudaMemsetAsync(dst, 0, bytes, c->stream));
}
static amp_status ampi_cu_sync(amp_ctx *ctx) { return ampi_cu_wait(ampi_cu_self(ctx)); }

