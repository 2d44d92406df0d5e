/* ---- tuning: every way with every algorithm that the heuristic offers, on outputs of its own.
   tests: tests/cuda_verbs.cpp ---- */

typedef struct ampi_cu_tuning {
    amp_gemm_job p; /* the product, with outputs in `own` */
    void *own[4];   /* d, aux, dbias, amax_d; memory that begins at a multiple of 256 bytes, and where in it they do: */
    size_t bytes[4], skip[4];
    void *cold; /* as much again as the cache holds, written before each run; NULL: there is no memory for it */
    size_t cold_bytes;
    cudaEvent_t event[2];
    ampi_cu_plan best;
    float least, first; /* ms of the best plan and of the first */
    uint32_t tried;
} ampi_cu_tuning;

/* In a step a product finds other things in the cache than its own operands, which a second run would. */
static amp_status ampi_cu_tune_cold(ampi_cuda *c, ampi_cu_tuning *t) {
    const char *call = "";
    cudaError_t e;
    t->cold_bytes = (size_t)(2u * c->l2);
    e = t->cold_bytes ? ampi_cu_take(c, &t->cold, t->cold_bytes, &call) : cudaSuccess;
    if (e == cudaSuccess) return AMP_OK;
    t->cold = NULL;
    if (e != cudaErrorMemoryAllocation) return ampi_cu_fail(c, call, e);
    if (!c->allocator.alloc_fn) (void)cudaGetLastError(); /* then without */
    return AMP_OK;
}
/* Each as aligned as the product's own: what cuBLASLt offers depends on that, also of those whose alignment is in no
   preference. */
static amp_status ampi_cu_tune_outputs(ampi_cuda *c, const amp_gemm_job *p, ampi_cu_tuning *t) {
    const void *theirs[4] = {p->d.data, p->aux.data, p->dbias.data, p->amax_d};
    size_t span = (p->batch - 1u) * p->stride_d + (p->m - 1u) * p->ldd + p->n;
    const char *call = "";
    cudaError_t e;
    uint32_t i;
    t->bytes[0] = span * amp_dtype_size(p->d.dtype);
    if (p->aux.data && !p->backward)
        t->bytes[1] = amp_gemm_masked(p) ? amp_gemm_mask_bytes(p) : span * amp_dtype_size(p->aux.dtype);
    if (p->dbias.data) t->bytes[2] = amp_gemm_biases(p) * amp_dtype_size(p->dbias.dtype);
    if (p->amax_d) t->bytes[3] = sizeof *p->amax_d;
    for (i = 0; i < 4u; i++) {
        if (!t->bytes[i]) continue;
        t->skip[i] = (uintptr_t)theirs[i] & 255u;
        t->bytes[i] += t->skip[i];
        e = ampi_cu_take(c, &t->own[i], t->bytes[i], &call);
        if (e == cudaSuccess) continue;
        if (!c->allocator.alloc_fn) return ampi_cu_fail(c, call, e);
        return amp_fail(
            c->ctx, AMP_ERR_NO_MEMORY, "the allocator has no %llu bytes for an output", AMPI_ULL(t->bytes[i]));
    }
    return AMP_OK;
}
static amp_status ampi_cu_tune_begin(ampi_cuda *c, const amp_gemm_job *p, ampi_cu_tuning *t) {
    uint32_t i;
    AMPI_TRY(ampi_cu_tune_outputs(c, p, t));
    for (i = 0; i < 2u; i++)
        AMPI_TRY(ampi_cu_did(c, "cudaEventCreate", cudaEventCreate(&t->event[i])));
    AMPI_TRY(ampi_cu_tune_cold(c, t));
    t->p = *p;
    t->p.d.data = (char *)t->own[0] + t->skip[0];
    if (t->own[1]) t->p.aux.data = (char *)t->own[1] + t->skip[1];
    if (t->own[2]) t->p.dbias.data = (char *)t->own[2] + t->skip[2];
    if (t->own[3]) t->p.amax_d = (float *)((char *)t->own[3] + t->skip[3]);
    if (!p->c.data || !ampi_cu_in_place(p)) return AMP_OK;
    t->p.c.data = t->p.d.data; /* C goes with D, as it will */
    return ampi_cu_zero(c->ctx, t->own[0], t->bytes[0]);
}
static void ampi_cu_tune_end(ampi_cuda *c, const ampi_cu_tuning *t) {
    uint32_t i;
    for (i = 0; i < 2u; i++)
        if (t->event[i]) ampi_cu_forget(cudaEventDestroy(t->event[i]));
    for (i = 0; i < 4u; i++)
        ampi_cu_give(c, t->own[i], t->bytes[i]);
    ampi_cu_give(c, t->cold, t->cold_bytes);
}

static float ampi_cu_median(float t[AMPI_CU_ROUNDS]) { /* sorts them */
    uint32_t i, j;
    for (i = 0; i < AMPI_CU_ROUNDS; i++)
        for (j = i + 1u; j < AMPI_CU_ROUNDS; j++)
            if (t[j] < t[i]) {
                float x = t[i];
                t[i] = t[j];
                t[j] = x;
            }
    return t[AMPI_CU_ROUNDS / 2u];
}
/* The median time of a plan, in ms; < 0 if it does not run. */
static amp_status ampi_cu_time(ampi_cuda *c, const ampi_cu_tuning *tuning, const ampi_cu_plan *plan, float *ms) {
    const cudaEvent_t begin = tuning->event[0], end = tuning->event[1];
    float t[AMPI_CU_ROUNDS];
    uint32_t i;
    *ms = -1.0f;
    for (i = 0; i <= AMPI_CU_ROUNDS; i++) { /* the first one warms up */
        int refused = 0;
        amp_status s;
        if (tuning->cold && i) AMPI_TRY(ampi_cu_zero(c->ctx, tuning->cold, tuning->cold_bytes));
        AMPI_TRY(ampi_cu_did(c, "cudaEventRecord", cudaEventRecord(begin, c->stream)));
        s = ampi_cu_run_lt(c, &tuning->p, plan, &refused);
        if (s == AMP_OK && !refused) s = ampi_cu_column_sums(c, &tuning->p, plan);
        if (s != AMP_OK || refused) return s;
        AMPI_TRY(ampi_cu_did(c, "cudaEventRecord", cudaEventRecord(end, c->stream)));
        AMPI_TRY(ampi_cu_did(c, "cudaEventSynchronize", cudaEventSynchronize(end)));
        if (i) AMPI_TRY(ampi_cu_did(c, "cudaEventElapsedTime", cudaEventElapsedTime(&t[i - 1u], begin, end)));
    }
    *ms = ampi_cu_median(t);
    return AMP_OK;
}
/* Every algorithm of one way; `now` comes with the key and the way. */
static amp_status ampi_cu_tune_way(ampi_cuda *c, ampi_cu_tuning *t, ampi_cu_plan *now) {
    cublasLtMatmulHeuristicResult_t results[AMPI_CU_TRIES];
    float ms;
    int n, i;
    AMPI_TRY(ampi_cu_lt_search(c, &t->p, now, results, AMPI_CU_TRIES, &n));
    for (i = 0; i < n; i++) {
        now->algo = results[i].algo;
        AMPI_TRY(ampi_cu_time(c, t, now, &ms));
        if (ms < 0.0f) continue;
        if (t->tried == 0) t->first = ms;
        if (t->tried++ == 0 || ms < t->least) {
            t->least = ms;
            t->best = *now;
        }
    }
    return AMP_OK;
}
static amp_status ampi_cu_tune(ampi_cuda *c, const amp_gemm_job *p, ampi_cu_plan *plan) {
    ampi_cu_tuning t;
    ampi_cu_plan now = *plan;
    ampi_cu_ways it = {c, &t.p, 0, NULL};
    int capturing = 0;
    amp_status s;
    if (!plan->lt) return AMP_OK; /* there is one plain kernel */
    AMPI_TRY(ampi_cu_capture(c, &capturing));
    if (capturing) return amp_fail(c->ctx, AMP_ERR_CAPTURE, "the context's stream is being captured");
    memset(&t, 0, sizeof t);
    s = ampi_cu_tune_begin(c, p, &t);
    while (s == AMP_OK && ampi_cu_next_candidate(&it, &now))
        s = ampi_cu_tune_way(c, &t, &now);
    if (s == AMP_OK) s = ampi_cu_wait(c);
    ampi_cu_tune_end(c, &t);
    if (s != AMP_OK || !t.tried) return s;
    *plan = t.best;
    amp_log_event(c->ctx, AMP_LOG_INFO, "%.4f ms, the first of %u candidates %.4f ms%s", (double)t.least,
        (unsigned)t.tried, (double)t.first, t.cold ? "" : ", operands in the cache");
    return AMP_OK;
}

/* ---- batches that add up in an F32 d: products one after the other, then what follows the sum ---- */

static int ampi_cu_adds_up(const amp_gemm_job *p) {
    return p->sum_batches && p->k && p->d.dtype == AMP_F32 && !(p->flags & AMP_GEMM_ORDERED);
}
/* What plans are made for: the product, or batch z alone, where the first one reads C as it is given, the others add to
   D. */
static amp_gemm_job ampi_cu_planned(const amp_gemm_job *p, size_t z) {
    amp_gemm_job q = *p;
    if (!ampi_cu_adds_up(p)) return q;
    q.batch = 1; /* and sum_batches stays */
    q.bias_per_row = q.backward = 0;
    q.act = AMP_ACT_NONE;
    q.bias.data = q.aux.data = q.dbias.data = NULL;
    q.a.data = (char *)p->a.data + z * p->stride_a * amp_dtype_size(p->a.dtype);
    q.b.data = (char *)p->b.data + z * p->stride_b * amp_dtype_size(p->b.dtype);
    if (z == 0) return q;
    q.c = p->d;
    q.ldc = p->ldd;
    q.stride_c = p->stride_d;
    q.beta.value = 1.0f;
    q.beta_ptr = NULL;
    return q;
}
/* The plan of what begins the product, and those of the rest, if it has several. All are made before anything is
   written: an FP8 product may be refused. */
static amp_status ampi_cu_plan_all(ampi_cuda *c, const amp_gemm_job *p, ampi_cu_plan **out) {
    const amp_gemm_job first = ampi_cu_planned(p, 0), others = ampi_cu_planned(p, 1);
    if (ampi_cu_adds_up(p)) AMPI_TRY(ampi_cu_plan_for(c, &others, out));
    return ampi_cu_plan_for(c, &first, out);
}
static amp_status ampi_cu_add_up(ampi_cuda *c, const amp_gemm_job *p) {
    amp_gemm_job last = *p;
    ampi_cu_plan *plan = NULL;
    size_t z;
    AMPI_TRY(ampi_cu_plan_all(c, p, &plan));
    for (z = 0; z < p->batch; z++) {
        const amp_gemm_job q = ampi_cu_planned(p, z);
        AMPI_TRY(ampi_cu_plan_for(c, &q, &plan));
        AMPI_TRY(ampi_cu_run(c, &q, plan));
    }
    last.batch = 1;
    if (p->bias.data || p->aux.data || p->act != AMP_ACT_NONE)
        AMPI_TRY(ampi_cu_epilogue(c, &last, p->bias.data != NULL));
    return ampi_cu_column_sums(c, &last, plan);
}

static amp_status ampi_cu_gemm(amp_ctx *ctx, const amp_gemm_job *job) {
    ampi_cu_plan *plan = NULL;
    if (ampi_cu_adds_up(job)) return ampi_cu_add_up(ampi_cu_self(ctx), job);
    AMPI_TRY(ampi_cu_plan_for(ampi_cu_self(ctx), job, &plan));
    return ampi_cu_run(ampi_cu_self(ctx), job, plan);
}
static amp_status ampi_cu_gemm_tune(amp_ctx *ctx, const amp_gemm_job *job) {
    const size_t plans = ampi_cu_adds_up(job) ? 2u : 1u; /* of the first batch, and of all others */
    ampi_cu_plan *plan = NULL;
    size_t z;
    AMPI_TRY(ampi_cu_plan_all(ampi_cu_self(ctx), job, &plan));
    for (z = 0; z < plans; z++) {
        const amp_gemm_job p = ampi_cu_planned(job, z);
        AMPI_TRY(ampi_cu_plan_for(ampi_cu_self(ctx), &p, &plan));
        AMPI_TRY(ampi_cu_tune(ampi_cu_self(ctx), &p, plan));
    }
    return AMP_OK;
}
static amp_status ampi_cu_gemm_explain(amp_ctx *ctx, char *text, size_t bytes, const amp_gemm_job *job) {
    const amp_gemm_job p = ampi_cu_planned(job, 0);
    ampi_cu_plan *plan = NULL;
    size_t n;
    AMPI_TRY(ampi_cu_plan_all(ampi_cu_self(ctx), job, &plan));
    if (!text) return AMP_OK;
    ampi_cu_tell(&p, plan, text, bytes);
    n = strlen(text);
    if (ampi_cu_adds_up(job))
        snprintf(text + n, bytes - n, "; for each of %llu batches, which add up", AMPI_ULL(job->batch));
    return AMP_OK;
}
