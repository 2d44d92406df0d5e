/* ---- everything of a context that can fail, in order; what was made is in *c.
   tests: tests/cuda_verbs.cpp, tests/test_context.c ---- */

static amp_status ampi_cu_check(const ampi_cuda *c, const amp_cuda_desc *d, const char *call, cudaError_t e) {
    if (e == cudaSuccess) return AMP_OK;
    return ampi_cu_refuse(d, ampi_cu_kind(e, c->stream), call, cudaGetErrorName(e));
}
/* Loads a kernel, so that its first launch, which may be inside a capture, does not; and asks how many of its blocks an
   SM holds. */
static amp_status ampi_cu_ask_resident(ampi_cuda *c, const amp_cuda_desc *d, const void *kernel) {
    struct cudaFuncAttributes its;
    int threads, blocks = 0;
    AMPI_TRY(ampi_cu_check(c, d, "cudaFuncGetAttributes", cudaFuncGetAttributes(&its, kernel)));
    if (its.ptxVersion < 90) c->dependent = 0; /* a driver has translated it: it does not wait */
    threads = its.maxThreadsPerBlock < AMP_BLOCK ? its.maxThreadsPerBlock : AMP_BLOCK;
    AMPI_TRY(ampi_cu_check(c, d, "cudaOccupancyMaxActiveBlocksPerMultiprocessor",
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, 0)));
    c->resident[c->n_resident].kernel = kernel;
    c->resident[c->n_resident++].blocks = blocks > 0 ? blocks : 1;
    return AMP_OK;
}
static amp_status ampi_cu_make_resident(ampi_cuda *c, const amp_cuda_desc *d) {
    amp_status s = AMP_OK;
#define AMPI_CU_ASK(kernel) \
    if (s == AMP_OK) s = ampi_cu_ask_resident(c, d, (const void *)kernel);
#define AMP_X(kind, rule, moments) AMPI_CU_UPDATES(AMPI_CU_ASK, kind)
    AMPI_CU_KERNELS(AMPI_CU_ASK)
    AMP_UPDATE_LIST(AMP_X)
#undef AMP_X
#undef AMPI_CU_ASK
    return s;
}
/* Are the edges of a programmatic launch kept in a capture? */
static int ampi_cu_captures_edges(void) {
    int driver = 0;
    return CUDART_VERSION >= 12030 && cudaDriverGetVersion(&driver) == cudaSuccess && driver >= 12030;
}
static amp_status ampi_cu_make_device(ampi_cuda *c, const amp_cuda_desc *d) {
    struct cudaDeviceProp properties;
    int blocks;
    AMPI_TRY(ampi_cu_check(c, d, "cudaSetDevice", cudaSetDevice(c->device)));
    AMPI_TRY(ampi_cu_check(c, d, "cudaGetDeviceProperties", cudaGetDeviceProperties(&properties, c->device)));
    blocks = properties.maxThreadsPerMultiProcessor / AMP_BLOCK;
    c->blocks_per_sm = blocks > 0 ? blocks : 1;
    c->sms = properties.multiProcessorCount;
    c->arch = 10 * properties.major + properties.minor;
    c->dependent = (d->flags & AMP_CUDA_DEPENDENT_LAUNCH) && c->arch >= 90 && ampi_cu_captures_edges() &&
        d->stream != AMP_CUDA_STREAM_LEGACY;
    AMPI_TRY(ampi_cu_make_resident(c, d));
    c->l2 = (uint64_t)(properties.l2CacheSize > 0 ? properties.l2CacheSize : 0);
    c->primary = ampi_cu_current(&c->driver);
    snprintf(c->name, sizeof c->name, AMPI_CU_KIND "%.*s", (int)sizeof properties.name, properties.name);
    return AMP_OK;
}
static amp_status ampi_cu_make_stream(ampi_cuda *c, const amp_cuda_desc *d) {
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    cudaStream_t made = NULL;
    cudaError_t e;
    if (c->own_stream) {
        AMPI_TRY(
            ampi_cu_check(c, d, "cudaStreamCreateWithFlags", cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking)));
        c->stream = made;
    }
    e = cudaStreamIsCapturing(c->stream, &capture);
    if (e == cudaErrorStreamCaptureImplicit || (e == cudaSuccess && capture != cudaStreamCaptureStatusNone)) {
        (void)cudaGetLastError();
        return ampi_cu_refuse(d, AMP_ERR_CAPTURE, "desc.stream is being captured");
    }
    return ampi_cu_check(c, d, "cudaStreamIsCapturing", e);
}
static amp_status ampi_cu_make_cublas(ampi_cuda *c, const amp_cuda_desc *d) {
    cublasStatus_t b;
    if (!c->own_cublas) return AMP_OK;
    b = cublasLtCreate(&c->cublas);
    if (b == CUBLAS_STATUS_SUCCESS) return AMP_OK;
    c->cublas = NULL;
    return ampi_cu_refuse(d, ampi_cu_cublas_kind(c, b), "cublasLtCreate", ampi_cu_cublas_name(b));
}
static amp_status ampi_cu_take_first(ampi_cuda *c, const amp_cuda_desc *d, void **out, size_t bytes) {
    const char *call = "";
    cudaError_t e = ampi_cu_take(c, out, bytes, &call);
    if (e == cudaSuccess || !c->allocator.alloc_fn) return ampi_cu_check(c, d, call, e);
    return ampi_cu_refuse(d, AMP_ERR_NO_MEMORY, call, cudaGetErrorName(e)); /* CUDA has no note of it */
}
static amp_status ampi_cu_make_workspace(ampi_cuda *c, const amp_cuda_desc *d) {
    size_t bytes = d->workspace_bytes;
    if (c->own_workspace) {
        if (!bytes) bytes = (size_t)(c->arch >= 90 ? 32 : 4) << 20;
        if (bytes > (size_t)-1 / 2) bytes = (size_t)-1 / 2; /* more than there is, too, but adding to it is safe */
        AMPI_TRY(ampi_cu_take_first(c, d, &c->workspace, ampi_cu_with_bias(bytes)));
        c->workspace_bytes = bytes;
    } else if (c->workspace_bytes > 4u * AMPI_CU_BIAS) { /* the end of the caller's */
        c->workspace_bytes = (c->workspace_bytes - AMPI_CU_BIAS) & ~(size_t)255;
    } else {
        c->bias_room = 0;
    }
    c->bias = (char *)c->workspace + ampi_cu_with_bias(c->workspace_bytes) - AMPI_CU_BIAS;
    return AMP_OK;
}
static amp_status ampi_cu_make_scratch(ampi_cuda *c, const amp_cuda_desc *d) {
    const size_t bytes = sizeof(ampi_cu_scratch);
    void *p = NULL;
    AMPI_TRY(ampi_cu_take_first(c, d, &p, bytes));
    c->scratch = (ampi_cu_scratch *)p;
    AMPI_TRY(ampi_cu_check(c, d, "cudaMallocHost", cudaMallocHost(&p, bytes)));
    c->mirror = (ampi_cu_scratch *)p;
    memset(c->mirror, 0, bytes); /* the ticket starts at 0 */
    c->mirror->scalar[1] = 1.0f;
    AMPI_TRY(ampi_cu_check(
        c, d, "cudaMemcpyAsync", cudaMemcpyAsync(c->scratch, c->mirror, bytes, cudaMemcpyHostToDevice, c->stream)));
    return ampi_cu_check(c, d, "cudaStreamSynchronize", cudaStreamSynchronize(c->stream));
}
static amp_status ampi_cu_make_context(amp_ctx **out, ampi_cuda *c, const amp_cuda_desc *d) {
    amp_backend table = ampi_cu_table(c);
    amp_status s;
    table.gemm_flags = d->gemm_flags;
    s = amp_ctx_create_backend(out, &table, c, &d->host, &d->logger);
    c->ctx = *out;
    return s == AMP_OK ? s : ampi_cu_refuse(d, s, "no host memory");
}
/* The handle last: to destroy one breaks each capture that is under way, which a creation that fails must not. */
static amp_status ampi_cu_make_all(amp_ctx **out, ampi_cuda *c, const amp_cuda_desc *d) {
    AMPI_TRY(ampi_cu_make_device(c, d));
    AMPI_TRY(ampi_cu_make_stream(c, d));
    AMPI_TRY(ampi_cu_make_workspace(c, d));
    AMPI_TRY(ampi_cu_make_scratch(c, d));
    AMPI_TRY(ampi_cu_make_context(out, c, d));
    return ampi_cu_make_cublas(c, d);
}
/* Or nothing. */
static amp_status ampi_cu_make(amp_ctx **out, ampi_cuda *c, const amp_cuda_desc *d) {
    amp_status s;
    ampi_cu_relax(c);
    s = ampi_cu_make_all(out, c, d);
    ampi_cu_unrelax(c);
    if (s == AMP_OK) return s;
    if (*out)
        amp_ctx_destroy(*out);
    else
        ampi_cu_drop(c);
    *out = NULL;
    return s;
}

/* ---- amp_cuda_create: what is wrong with desc, then the parts that cannot fail, then those that can ---- */

static amp_status ampi_cu_check_desc(const amp_cuda_desc *d) {
    const char *wrong = NULL;
    if (d->flags & ~(AMP_CUDA_POOL | AMP_CUDA_DEBUG | AMP_CUDA_DEPENDENT_LAUNCH))
        wrong = "desc.flags has an unknown bit";
    else if (d->gemm_flags & ~AMPI_GEMM_FLAGS)
        wrong = "desc.gemm_flags has an unknown bit";
    else if (!d->allocator.alloc_fn != !d->allocator.free_fn)
        wrong = "desc.allocator needs both functions or neither";
    else if (!d->host.alloc_fn != !d->host.free_fn)
        wrong = "desc.host needs both functions or neither";
    else if (d->allocator.alloc_fn && (d->flags & AMP_CUDA_POOL))
        wrong = "desc.allocator and AMP_CUDA_POOL exclude each other";
    else if (d->workspace && d->workspace_bytes < 512u)
        wrong = "desc.workspace_bytes is less than 512";
    else if (d->plans > AMPI_CU_MOST)
        wrong = "desc.plans is more than 65536";
    return wrong ? ampi_cu_refuse(d, AMP_ERR_INVALID_ARG, wrong) : AMP_OK;
}
/* Is it that there is nothing to run on? Else something is there and does not work, which is not passed over. */
static int ampi_cu_no_cuda(cudaError_t e) {
    int driver = 0;
    if (e == cudaErrorInsufficientDriver) { /* too old, or none at all */
        if (cudaDriverGetVersion(&driver) != cudaSuccess) driver = 0;
        return driver == 0;
    }
    return e == cudaSuccess || e == cudaErrorNoDevice || e == cudaErrorStubLibrary;
}
static amp_status ampi_cu_no_start(const amp_cuda_desc *d, const char *call, cudaError_t e) {
    char why[200] = "no device";
    amp_status s = ampi_cu_no_cuda(e) ? AMP_ERR_NO_CUDA : AMP_ERR_CUDA;
    if (ampi_cu_sticky(e)) s = AMP_ERR_DEAD;
    if (e != cudaSuccess) snprintf(why, sizeof why, "%s (%s)", cudaGetErrorName(e), cudaGetErrorString(e));
    ampi_cu_forget(e);
    return ampi_cu_refuse(d, s, call, why);
}
/* Which device desc means; *now: the one that the thread uses. */
static amp_status ampi_cu_pick_device(amp_cuda_desc *d, int *now) {
    int count = 0;
    cudaError_t e = cudaGetDeviceCount(&count);
    if (e != cudaSuccess || count < 1) return ampi_cu_no_start(d, "cudaGetDeviceCount", e);
    e = cudaGetDevice(now);
    if (e != cudaSuccess) return ampi_cu_no_start(d, "cudaGetDevice", e);
    if (d->device == AMP_NONE) d->device = *now;
    if (d->device < 0 || d->device >= count)
        return ampi_cu_refuse(d, AMP_ERR_INVALID_ARG, "desc.device: this machine has no such device");
    return AMP_OK;
}
static ampi_cuda *ampi_cu_new(const amp_cuda_desc *d) {
    ampi_cuda *c = (ampi_cuda *)ampi_cu_host_new(&d->host, sizeof *c);
    if (!c) return NULL;
    c->n_plans = d->plans ? d->plans : AMPI_CU_PLANS;
    c->plans = (ampi_cu_plan *)ampi_cu_host_new(&d->host, ampi_cu_plans_bytes(c->n_plans));
    if (!c->plans) {
        ampi_cu_host_drop(&d->host, c, sizeof *c);
        return NULL;
    }
    c->buckets = (uint32_t *)(c->plans + c->n_plans);
    c->device = d->device;
    c->flags = d->flags;
    c->stream = d->stream;
    c->own_stream = d->stream == NULL;
    c->cublas = (cublasLtHandle_t)d->cublas;
    c->own_cublas = d->cublas == NULL;
    c->allocator = d->allocator;
    c->host = d->host;
    c->error.call = "";
    c->own_workspace = d->workspace == NULL;
    c->bias_room = AMPI_CU_BIAS / 2u;
    if (d->workspace) { /* aligned as cuBLASLt wants it */
        size_t skip = (size_t)(-(uintptr_t)d->workspace & 255u);
        c->workspace = (char *)d->workspace + skip;
        c->workspace_bytes = d->workspace_bytes - skip;
    }
    return c;
}
/* The thread is where it was; if that fails, the context goes, too. */
static amp_status ampi_cu_restore_device(
    amp_ctx **out, const amp_cuda_desc *d, const ampi_cu_driver *driver, const ampi_cu_place *was, amp_status s) {
    const int moved = was->device != d->device || was->context;
    cudaError_t e = moved ? ampi_cu_go_back(driver, was) : cudaSuccess;
    if (e == cudaSuccess) return s;
    if (s == AMP_OK) {
        const ampi_cuda *c = (const ampi_cuda *)amp_ctx_self(*out);
        s = ampi_cu_check(c, d, "cudaSetDevice", e);
        amp_ctx_destroy(*out);
        *out = NULL;
    }
    (void)cudaSetDevice(was->device);
    (void)cudaGetLastError();
    return s;
}

/* As amp.h holds a thread that is in a verb (ampi_hold): one that were cancelled here would lose what is half made. */
#if !defined(AMP_NO_THREADS) && defined(PTHREAD_CANCEL_DISABLE)
static int ampi_cu_hold(void) {
    int before = 0;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}
static void ampi_cu_unhold(int before) { (void)pthread_setcancelstate(before, NULL); }
#else
static int ampi_cu_hold(void) { return 0; }
static void ampi_cu_unhold(int) {}
#endif

static amp_status ampi_cu_create(amp_ctx **out, int version, size_t size, const amp_cuda_desc *desc) {
    amp_cuda_desc d = AMP_ZERO;
    ampi_cu_place was = {0, 0, NULL};
    ampi_cu_driver driver;
    ampi_cuda *c;
    amp_status s;
    int error = errno;
    if (out) *out = NULL;
    if (version != AMP_VERSION || size != sizeof d) return AMP_ERR_VERSION;
    if (desc) {
        if (desc->_begin || desc->_end) return AMP_ERR_UNINIT; /* its logger cannot be trusted either */
        d = *desc;
    }
    if (!out) return ampi_cu_refuse(&d, AMP_ERR_INVALID_ARG, "out is NULL");
    AMPI_TRY(ampi_cu_check_desc(&d));
    AMPI_TRY(ampi_cu_pick_device(&d, &was.device));
    c = ampi_cu_new(&d);
    if (!c) return ampi_cu_refuse(&d, AMP_ERR_NO_MEMORY, "no host memory");
    c->driver = driver = ampi_cu_find_driver();
    if (was.device == d.device) was.context = ampi_cu_current(&driver); /* the primary one, or not */
    s = ampi_cu_make(out, c, &d);
    s = ampi_cu_restore_device(out, &d, &driver, &was, s);
    if (s == AMP_OK) errno = error;
    return s;
}

extern "C" amp_status amp_cuda_create_checked(amp_ctx **out, int version, size_t size, const amp_cuda_desc *desc) {
    const int before = ampi_cu_hold();
    const amp_status s = ampi_cu_create(out, version, size, desc);
    ampi_cu_unhold(before);
    return s;
}

extern "C" int amp_cuda_available(void) {
    const int before = ampi_cu_hold();
    int count = 0;
    cudaError_t e = cudaGetDeviceCount(&count);
    ampi_cu_forget(e);
    ampi_cu_unhold(before);
    return e == cudaSuccess && count > 0;
}

extern "C" amp_stream amp_cuda_stream(const amp_ctx *ctx) {
    const ampi_cuda *c = ampi_cu_of(ctx);
    return c ? ampi_cu_same_type(c->stream) : NULL;
}

extern "C" amp_status amp_cuda_last_error(const amp_ctx *ctx, amp_cuda_error *out) {
    const amp_cuda_error none = {0, AMP_CUDA_NO_LIBRARY, ""};
    const ampi_cuda *c = ampi_cu_of(ctx);
    if (!out) return AMP_ERR_INVALID_ARG;
    *out = c ? c->error : none;
    return c ? AMP_OK : AMP_ERR_INVALID_ARG;
}
} /* extern "C++" */
#pragma pack(pop)

#endif /* AMP_CUDA_IMPLEMENTATION */
