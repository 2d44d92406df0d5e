/* ==== >>cpu-table ================================================================================================
   The table of functions; create, destroy.   tests: tests/test_context.c */

static void ampi_cpu_free(ampi_cpu *c) {
    amp_allocator mem = c->mem;
    ampi_host_free(&mem, c->work, (size_t)c->rooms * sizeof *c->work);
    ampi_host_free(&mem, c, sizeof *c);
}
static void ampi_cpu_destroy(amp_ctx *ctx) {
    ampi_cpu *c = ampi_cpu_of(ctx);
    ampi_pool_stop(c);
    ampi_cpu_free(c);
}

static amp_backend ampi_cpu_table(void) {
    amp_backend b = AMP_ZERO;
    b.version = (uint32_t)AMP_VERSION;
    b.size = sizeof b;
    b.holds = 1; /* ampi_parallel, ampi_pool_stop; ampi_host_take and _free do */
#define AMP_X(entry) b.entry = ampi_cpu_##entry;
    AMPI_ENTRIES(AMP_X)
#undef AMP_X
    b.alloc_zeros = ampi_cpu_alloc_zeros;
    b.copy_async = ampi_cpu_copy; /* complete on return, too */
    b.may_wait = ampi_cpu_sync;
    return b;
}

#if !defined(AMP_NO_THREADS) && defined(__linux__)
#  if !defined(CPU_SETSIZE) /* the headers hide it, as C99 demands */
extern int sched_getaffinity(pid_t, size_t, void *);
#    define AMPI_CPU_SET void
#  else
#    define AMPI_CPU_SET cpu_set_t
#  endif
static int ampi_allowed(void) { /* processors that this process may use; 0: not known */
    unsigned char mask[1024];
    int n = 0;
    size_t i;
    memset(mask, 0, sizeof mask);
    if (sched_getaffinity(0, sizeof mask, (AMPI_CPU_SET *)(void *)mask) != 0) return 0;
    for (i = 0; i < 8 * sizeof mask; i++)
        n += mask[i / 8] >> i % 8 & 1;
    return n;
}
#else
AMP_UNUSED
static int ampi_allowed(void) { return 0; }
#endif
#if !defined(AMP_NO_THREADS) && defined(_SC_NPROCESSORS_ONLN)
#  define AMPI_PROCESSORS _SC_NPROCESSORS_ONLN
#elif !defined(AMP_NO_THREADS) && defined(__APPLE__)
#  define AMPI_PROCESSORS 58 /* hidden like flock */
#endif
static int ampi_usable(void) {
#if defined(AMPI_PROCESSORS)
    long n = sysconf(AMPI_PROCESSORS);
    if (ampi_allowed() && ampi_allowed() < n) n = ampi_allowed();
    if (n < 1) return 1;
    return n > 256 ? 256 : (int)n;
#else
    return 1;
#endif
}
/* Before a context exists, a failure can only go to the logger. */
static amp_status ampi_cpu_refuse(const amp_cpu_desc *d, amp_status st, const char *text, long value) {
    char full[160];
    snprintf(full, sizeof full, "amp_cpu_create: %s (it is %ld)", text, value);
    ampi_tell(&d->logger, AMP_LOG_ERROR, st, full);
    return st;
}

static amp_status ampi_cpu_check(const amp_cpu_desc *d, ampi_kernels *kernels) {
    if (!d->allocator.alloc_fn != !d->allocator.free_fn)
        return ampi_cpu_refuse(
            d, AMP_ERR_INVALID_ARG, "desc.allocator has one function, and needs both or neither; functions", 1);
    if (d->gemm_flags & ~AMPI_GEMM_FLAGS)
        return ampi_cpu_refuse(d, AMP_ERR_INVALID_ARG, "desc.gemm_flags has an unknown bit", (long)d->gemm_flags);
    if (d->threads < 0 || d->threads > 256)
        return ampi_cpu_refuse(d, AMP_ERR_INVALID_ARG, "desc.threads must be in 0 .. 256", (long)d->threads);
    if ((uint32_t)d->simd > (uint32_t)AMP_SIMD_NEON)
        return ampi_cpu_refuse(d, AMP_ERR_INVALID_ARG, "desc.simd is not an amp_simd value", (long)d->simd);
    if (!ampi_pick_kernels(kernels, d->simd))
        return ampi_cpu_refuse(
            d, AMP_ERR_UNSUPPORTED, "desc.simd asks for a path that this machine or build lacks", (long)d->simd);
    return AMP_OK;
}
/* Workspaces and workers: as many as desc.threads asks for; without a number as many as there are to have. */
static amp_status ampi_cpu_threads(ampi_cpu *c, const amp_cpu_desc *d) {
    for (c->rooms = d->threads ? d->threads : ampi_usable();; c->rooms = (c->rooms + 1) / 2) {
        c->work = (ampi_workspace *)ampi_host_take(&c->mem, (size_t)c->rooms * sizeof *c->work);
        if (c->work || d->threads || c->rooms == 1) break;
    }
    if (!c->work) return AMP_ERR_NO_MEMORY;
    c->threads = 1;
    ampi_pool_start(c);
    snprintf(
        c->name, sizeof c->name, AMPI_CPU_KIND "%s, %d thread%s", c->k->name, c->threads, c->threads == 1 ? "" : "s");
    return AMP_OK;
}

AMP_API amp_status amp_cpu_create_checked(amp_ctx **out, int version, size_t size, const amp_cpu_desc *desc) {
    amp_cpu_desc d = AMP_ZERO;
    ampi_kernels kernels;
    amp_backend table = ampi_cpu_table();
    const char *refused = NULL;
    const int error = errno;
    ampi_cpu *c;
    amp_status st;
    if (out) *out = NULL;
    if (version != AMP_VERSION || size != sizeof d) return AMP_ERR_VERSION;
    if (desc) {
        if (desc->_begin || desc->_end) return AMP_ERR_UNINIT; /* its logger cannot be trusted either */
        d = *desc;
    }
    if (!out) return ampi_cpu_refuse(&d, AMP_ERR_INVALID_ARG, "out must not be NULL", 0);
    AMPI_TRY(ampi_cpu_check(&d, &kernels));
#ifdef AMP_NO_THREADS
    d.threads = 1;
#endif
    c = (ampi_cpu *)ampi_host_alloc(&d.allocator, sizeof *c);
    if (!c) return ampi_cpu_refuse(&d, AMP_ERR_NO_MEMORY, "no host memory; desc.threads", (long)d.threads);
    c->kernels = kernels;
    c->k = &c->kernels;
    c->mem = d.allocator;
    st = ampi_cpu_threads(c, &d);
    if (st == AMP_OK && c->threads < d.threads) refused = "the system refuses to start desc.threads threads";
    if (refused) st = AMP_ERR_NO_MEMORY;
    table.name = c->name;
    table.gemm_flags = d.gemm_flags;
    if (st == AMP_OK) st = amp_ctx_create_backend(out, &table, c, &d.allocator, &d.logger);
    if (st != AMP_OK) {
        ampi_pool_stop(c);
        ampi_cpu_free(c);
        return ampi_cpu_refuse(&d, st, refused ? refused : "no memory for desc.threads workspaces", (long)d.threads);
    }
    if (!d.threads && c->threads < ampi_usable())
        amp_log_event(
            *out, AMP_LOG_WARNING, "amp_cpu_create: the system gives %d threads of %d", (int)c->threads, ampi_usable());
    errno = error;
    return AMP_OK;
}

#ifdef __cplusplus
} /* extern "C" */
#endif
#if defined(__GNUC__)
#  pragma GCC diagnostic pop
#endif
#pragma pack(pop)
#endif /* AMP_IMPLEMENTATION_ONCE */
#endif /* AMP_IMPLEMENTATION */

