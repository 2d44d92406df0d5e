/* ==== >>cuda-step ====================================================================================================
   tests: tests/test_step.c, tests/test_layouts.c, tests/test_scaler.c */

/* Small sets are cut further, so that every SM has work. */
static uint32_t ampi_cu_inspect_cuts(const ampi_cuda *c, const amp_param_table *t) {
    uint64_t few = (uint64_t)c->sms * 2u;
    return (uint64_t)t->n_chunks * AMPI_CUTS < few && t->n_chunks <= AMP_LANES ? AMP_PARTS : AMPI_CUTS;
}
static amp_status ampi_cu_sum_gradients(amp_ctx *ctx, const amp_sum_job *job) {
    ampi_cu_call k;
    amp_status s = ampi_cu_enter(&k, ctx, "amp_step (sums)");
    uint32_t cuts = ampi_cu_inspect_cuts(k.c, &job->table);
    unsigned grid = ampi_cu_grid_of(k.c, ampi_k_sum_gradients, (uint64_t)job->table.n_chunks * cuts);
    if (s == AMP_OK) s = ampi_cu_launch(&k, grid, ampi_k_sum_gradients, *job, cuts, &k.c->scratch->inspect);
    return ampi_cu_leave(&k, s);
}
static amp_status ampi_cu_conclude(amp_ctx *ctx, const amp_inspect_job *job) {
    ampi_cu_call k;
    amp_status s = ampi_cu_enter(&k, ctx, "amp_step (record)");
    if (s == AMP_OK) s = ampi_cu_launch(&k, 1, ampi_k_conclude, *job, &k.c->scratch->inspect);
    return ampi_cu_leave(&k, s);
}
static amp_status ampi_cu_inspect(amp_ctx *ctx, const amp_inspect_job *job) {
    ampi_cu_call k;
    amp_status s = ampi_cu_enter(&k, ctx, "amp_step (inspect)");
    uint32_t cuts = ampi_cu_inspect_cuts(k.c, &job->sum.table);
    unsigned grid = ampi_cu_grid_of(k.c, ampi_k_inspect, (uint64_t)job->sum.table.n_chunks * cuts);
    if (s == AMP_OK) s = ampi_cu_launch(&k, grid, ampi_k_inspect, *job, cuts, &k.c->scratch->inspect);
    return ampi_cu_leave(&k, s);
}

static amp_status ampi_cu_mirror_create(amp_ctx *ctx, amp_step_mirror **out) {
    ampi_cu_call k;
    void *p = NULL;
    cudaError_t e;
    amp_status s = ampi_cu_enter(&k, ctx, "amp_params_commit");
    *out = NULL;
    if (s == AMP_OK) {
        e = cudaHostAlloc(&p, sizeof(amp_step_mirror), cudaHostAllocMapped | cudaHostAllocPortable);
        if (e != cudaSuccess)
            s = ampi_cu_fail(&k, "cudaHostAlloc", e);
        else {
            memset(p, 0, sizeof(amp_step_mirror));
            *out = (amp_step_mirror *)p;
        }
    }
    s = ampi_cu_leave(&k, s);
    if (s != AMP_OK && *out) {
        (void)cudaFreeHost(*out);
        *out = NULL;
    }
    return s;
}
static void ampi_cu_mirror_destroy(amp_ctx *ctx, amp_step_mirror *m) {
    ampi_cu_call k;
    amp_status s;
    if (!m) return;
    s = ampi_cu_enter(&k, ctx, "amp_params_destroy");
    (void)cudaStreamSynchronize(k.c->stream); /* queued steps write to it */
    (void)cudaFreeHost(m);
    (void)ampi_cu_leave(&k, s);
}
/* 1: it was whole. */
static int ampi_cu_mirror_read(const amp_step_mirror *mirror, amp_step_record *out) {
    uint32_t serial = 0, other = 0, i;
    for (i = 0; i < sizeof *out / 4u; i++) {
        const uint64_t word = *(const volatile uint64_t *)&mirror->word[i];
        const uint32_t value = (uint32_t)word, own = (uint32_t)(word >> 32);
        memcpy((char *)out + 4u * i, &value, 4u);
        if (i == 0) serial = own;
        other |= own ^ serial;
    }
    return other == 0;
}
static amp_status ampi_cu_poll(
    amp_ctx *ctx, const amp_step_record *record, const amp_step_mirror *mirror, amp_step_record *out) {
    int tries;
    (void)record;
    for (tries = 0; tries < 1000000; tries++) /* the device writes it in about a microsecond */
        if (ampi_cu_mirror_read(mirror, out)) return AMP_OK;
    return amp_fail(ctx, AMP_ERR_CUDA, "amp_step_poll: the device does not finish writing the record");
}

static amp_status ampi_cu_set_record(
    amp_ctx *ctx, amp_step_record *record, amp_step_mirror *mirror, const amp_step_record *host) {
    amp_status s = ampi_cu_copy(ctx, record, host, sizeof *record);
    uint32_t i;
    if (s != AMP_OK || !mirror) return s;
    for (i = 0; i < sizeof *host / 4u; i++) { /* the copy has waited: nobody else writes it now */
        uint32_t value;
        memcpy(&value, (const char *)host + 4u * i, 4u);
        mirror->word[i] = mirror->word[i] >> 32 << 32 | value;
    }
    return AMP_OK;
}
/* Into how many pieces, as a power of 2: as many as an average chunk is long; of small sets more, down to eight
   elements a thread, so that every SM has work. */
static uint32_t ampi_cu_cuts(const ampi_cuda *c, const amp_param_table *t) {
    uint64_t average = t->n_elements / (t->n_chunks ? t->n_chunks : 1u), few = 2u * (uint64_t)c->sms;
    uint32_t cuts = average > AMPI_PIECE ? 1u : 0u;
    if (average > 2u * AMPI_PIECE) cuts = 2u;
    while (t->n_elements << cuts < few * AMP_CHUNK && (uint32_t)AMP_BLOCK << cuts < AMP_CHUNK / 8u)
        cuts++;
    return cuts;
}

static amp_status ampi_cu_update(amp_ctx *ctx, const amp_update_job *job) {
    ampi_cu_call k;
    amp_status s = ampi_cu_enter(&k, ctx, "amp_step (update)");
    uint32_t cuts = ampi_cu_cuts(k.c, &job->table);
    uint64_t pieces = (uint64_t)job->table.n_chunks << cuts;
    if (s != AMP_OK) return ampi_cu_leave(&k, s);
#define AMP_X(kind_, rule, moments) \
    if (job->kind == kind_ && !job->count) \
        s = ampi_cu_launch(&k, ampi_cu_grid_of(k.c, ampi_k_update<kind_>, pieces), ampi_k_update<kind_>, *job, cuts); \
    if (job->kind == kind_ && job->count) \
        s = ampi_cu_launch( \
            &k, ampi_cu_grid_of(k.c, ampi_k_count_update<kind_>, pieces), ampi_k_count_update<kind_>, *job, cuts);
    AMP_UPDATE_LIST(AMP_X)
#undef AMP_X
    return ampi_cu_leave(&k, s);
}
static amp_status ampi_cu_apply(amp_ctx *ctx, const amp_apply_job *job) {
    ampi_cu_call k;
    uint64_t pieces = job->table.n_elements / AMPI_PIECE + 1u; /* at least those of the parameter */
    amp_status s = ampi_cu_enter(&k, ctx, "amp_apply");
    if (s == AMP_OK && !job->count)
        s = ampi_cu_launch(&k, ampi_cu_grid_of(k.c, ampi_k_apply, pieces), ampi_k_apply, *job);
    if (s == AMP_OK && job->count)
        s = ampi_cu_launch(&k, ampi_cu_grid_of(k.c, ampi_k_count_apply, pieces), ampi_k_count_apply, *job);
    return ampi_cu_leave(&k, s);
}
static amp_status ampi_cu_add(amp_ctx *ctx, const amp_add_job *job) {
    ampi_cu_call k;
    amp_status s = ampi_cu_enter(&k, ctx, "amp_accumulate");
    uint32_t cuts = ampi_cu_cuts(k.c, &job->table);
    if (s == AMP_OK)
        s = ampi_cu_launch(
            &k, ampi_cu_grid_of(k.c, ampi_k_add, (uint64_t)job->table.n_chunks << cuts), ampi_k_add, *job, cuts);
    return ampi_cu_leave(&k, s);
}
static amp_status ampi_cu_clip(amp_ctx *ctx, const amp_clip_job *job) {
    ampi_cu_call k;
    amp_status s = ampi_cu_enter(&k, ctx, "amp_clip");
    uint32_t cuts = ampi_cu_cuts(k.c, &job->table);
    if (s == AMP_OK)
        s = ampi_cu_launch(
            &k, ampi_cu_grid_of(k.c, ampi_k_clip, (uint64_t)job->table.n_chunks << cuts), ampi_k_clip, *job, cuts);
    return ampi_cu_leave(&k, s);
}
static amp_status ampi_cu_next_scale(amp_ctx *ctx, amp_scaler_state *state) {
    ampi_cu_call k;
    amp_status s = ampi_cu_enter(&k, ctx, "amp_scaler_update");
    if (s == AMP_OK) s = ampi_cu_launch(&k, 1, ampi_k_next_scale, state);
    return ampi_cu_leave(&k, s);
}

