/* ==== >>cuda-table ===================================================================================================
   Create, destroy, the table of functions.   tests: tests/cuda_verbs.cpp, tests/test_context.c */

/* The whole block: a workspace of our own, then biases. */
static size_t ampi_cu_with_bias(size_t workspace) { return ampi_round256(workspace) + AMPI_CU_BIAS; }

static size_t ampi_cu_plans_bytes(uint32_t plans) { return plans * (sizeof(ampi_cu_plan) + sizeof(uint32_t)); }

/* Frees what there is, also after a creation that failed half way. */
static void ampi_cu_drop(ampi_cuda *c) {
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    amp_allocator host = c->host;
    const cudaError_t theirs = cudaPeekAtLastError();
    ampi_cu_place now = {0, 0, NULL};
    /* If even this fails, then without switching: pointers and streams know their device. */
    const int away = cudaGetDevice(&now.device) == cudaSuccess && ampi_cu_elsewhere(c, &now);
    int capturing;
    if (away) (void)cudaSetDevice(c->device);
    ampi_cu_relax(c);
    capturing = cudaStreamIsCapturing(c->stream, &capture) == cudaSuccess && capture != cudaStreamCaptureStatusNone;
    if (c->scratch && !capturing) (void)cudaStreamSynchronize(c->stream);
    if (c->own_cublas && c->cublas) (void)cublasLtDestroy(c->cublas);
    ampi_cu_free_deferred(c);
    if (c->own_workspace) ampi_cu_give(c, c->workspace, ampi_cu_with_bias(c->workspace_bytes));
    ampi_cu_give(c, c->scratch, sizeof(ampi_cu_scratch));
    if (c->mirror) (void)cudaFreeHost(c->mirror);
    /* What is queued on it, frees of a pool, still runs. */
    if (c->own_stream && c->stream) (void)cudaStreamDestroy(c->stream);
    ampi_cu_unrelax(c);
    if (away && ampi_cu_go_back(&c->driver, &now) != cudaSuccess) (void)cudaSetDevice(now.device);
    if (cudaPeekAtLastError() != theirs) (void)cudaGetLastError(); /* one of ours; what the caller left stays */
    ampi_cu_host_drop(&host, c->plans, ampi_cu_plans_bytes(c->n_plans));
    ampi_cu_host_drop(&host, c, sizeof *c);
}
static void ampi_cu_destroy(amp_ctx *ctx) { ampi_cu_drop((ampi_cuda *)amp_ctx_self(ctx)); }

static amp_backend ampi_cu_table(const ampi_cuda *c) {
    amp_backend b = AMP_ZERO;
    b.version = (uint32_t)AMP_VERSION;
    b.size = sizeof b;
    b.aligned = 1;
    b.name = c->name;
#define AMP_X(entry) b.entry = ampi_cu_##entry;
    AMPI_ENTRIES(AMP_X)
#undef AMP_X
    b.leave = ampi_cu_leave;
    b.copy_async = ampi_cu_copy_async;
    b.may_wait = ampi_cu_may_wait;
    b.mirror_create = ampi_cu_mirror_create;
    b.mirror_destroy = ampi_cu_mirror_destroy;
    b.set_record = ampi_cu_set_record;
    b.poll = ampi_cu_poll;
    b.gemm_tune = ampi_cu_gemm_tune;
    b.capture_id = ampi_cu_capture_id;
    return b;
}

/* Before a context exists, a failure can only go to the logger. */
static amp_status ampi_cu_refuse(const amp_cuda_desc *d, amp_status s, const char *what, const char *why = "") {
    char text[320];
    snprintf(text, sizeof text, "amp_cuda_create: %s%s%s", what, why[0] ? ": " : "", why);
    if (d->logger.fn) (d->logger.fn)(AMP_LOG_ERROR, s, text, d->logger.user);
    return s;
}

