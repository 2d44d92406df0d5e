/* ==== >>cuda-step ====================================================================================================
   tests: tests/test_step.c, tests/test_layouts.c, tests/test_scaler.c */

/* Small sets are cut further, so that every SM has work. */
static uint32_t ampi_cu_inspect_cuts(const ampi_cuda *c, const amp_param_table *t) {
    uint64_t few = (uint64_t)c->sms * 2u;
    return (uint64_t)t->n_chunks * AMPI_CUTS < few && t->n_chunks <= AMP_LANES ? AMP_PARTS : AMPI_CUTS;
}
static amp_status ampi_cu_conclude(amp_ctx *ctx, const amp_inspect_job *job) {
    ampi_cuda *c = ampi_cu_self(ctx);
    c->stepped++;
    AMPI_TRY(ampi_cu_launch(c, 1, ampi_k_conclude, *job, &c->scratch->inspect));
    c->inspected = 1;
    return AMP_OK;
}
static amp_status ampi_cu_look(ampi_cuda *c, const amp_inspect_job *job) {
    uint32_t cuts = ampi_cu_inspect_cuts(c, &job->sum.table);
    uint64_t pieces = (uint64_t)job->sum.table.n_chunks * cuts;
    AMPI_TRY(ampi_cu_share(c, pieces, ampi_k_inspect, *job, cuts, &c->scratch->inspect));
    c->inspected = 1;
    return AMP_OK;
}
static amp_status ampi_cu_sum_gradients(amp_ctx *ctx, const amp_sum_job *job) {
    amp_inspect_job totals_alone = AMP_ZERO;
    totals_alone.sum = *job;
    return ampi_cu_look(ampi_cu_self(ctx), &totals_alone);
}
static amp_status ampi_cu_inspect(amp_ctx *ctx, const amp_inspect_job *job) {
    ampi_cuda *c = ampi_cu_self(ctx);
    c->stepped++;
    return ampi_cu_look(c, job);
}

/* A mirror, and what was read from it last. */
typedef struct ampi_cu_mirror {
    amp_step_mirror written;
    amp_step_record last;
} ampi_cu_mirror;
static_assert(offsetof(ampi_cu_mirror, written) == 0, "the front knows the first member alone");
static amp_status ampi_cu_mirror_create(amp_ctx *ctx, amp_step_mirror **out) {
    ampi_cuda *c = ampi_cu_self(ctx);
    void *p = NULL;
    const unsigned how = cudaHostAllocMapped | cudaHostAllocPortable;
    *out = NULL;
    AMPI_TRY(ampi_cu_here(c));
    ampi_cu_relax(c);
    AMPI_TRY(ampi_cu_did(c, "cudaHostAlloc", cudaHostAlloc(&p, sizeof(ampi_cu_mirror), how)));
    memset(p, 0, sizeof(ampi_cu_mirror));
    *out = (amp_step_mirror *)p;
    return AMP_OK;
}
static void ampi_cu_mirror_destroy(amp_ctx *ctx, amp_step_mirror *m) {
    if (m) ampi_cu_release(ctx, m, 0);
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
/* The device writes a record in about a microsecond; but it may be stopped on the way, by a debugger or for another
   process. Then the record of the last call is as new as one that is whole can be. */
static amp_status ampi_cu_poll(
    amp_ctx *ctx, const amp_step_record *record, const amp_step_mirror *mirror, amp_step_record *out) {
    ampi_cu_mirror *own = (ampi_cu_mirror *)mirror;
    amp_step_record now;
    int tries;
    (void)ctx;
    (void)record;
    for (tries = 0; tries < AMPI_CU_LOOKS; tries++) {
        if (!ampi_cu_mirror_read(mirror, &now)) continue;
        own->last = now;
        break;
    }
    *out = own->last;
    return AMP_OK;
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
/* Into how many pieces of about so many elements a chunk is cut, as a power of 2, for an average chunk; of small sets
   into more, down to eight elements a thread, so that every SM has work. */
static uint32_t ampi_cu_cuts(const ampi_cuda *c, const amp_param_table *t, uint64_t piece) {
    uint64_t average = t->n_elements / (t->n_chunks ? t->n_chunks : 1u), few = 2u * (uint64_t)c->sms;
    uint32_t cuts = 0;
    while (average > piece << cuts && piece << cuts < AMP_CHUNK)
        cuts++;
    while (t->n_elements << cuts < few * AMP_CHUNK && (uint32_t)AMP_BLOCK << cuts < AMP_CHUNK / 8u)
        cuts++;
    return cuts;
}

static amp_status ampi_cu_update(amp_ctx *ctx, const amp_update_job *job) {
    ampi_cuda *c = ampi_cu_self(ctx);
    const int codes = job->moment == AMP_MOMENT_8BIT; /* whose blocks take longer to begin */
    uint32_t cuts = ampi_cu_cuts(c, &job->table, codes ? 2u * AMPI_PIECE : AMPI_PIECE);
    uint64_t pieces = (uint64_t)job->table.n_chunks << cuts;
    c->follows = c->dependent && c->inspected && !job->count; /* counts are zeroed between the two */
#define AMP_X(kind_, rule, moments) \
    if (job->kind == kind_ && codes) return ampi_cu_stream(c, pieces, ampi_k_update_codes<kind_>, *job, cuts); \
    if (job->kind == kind_ && job->count) return ampi_cu_stream(c, pieces, ampi_k_count_update<kind_>, *job, cuts); \
    if (job->kind == kind_ && job->pairs) return ampi_cu_stream(c, pieces, ampi_k_update_pairs<kind_>, *job, cuts); \
    if (job->kind == kind_) return ampi_cu_stream(c, pieces, ampi_k_update<kind_>, *job, cuts);
    AMP_UPDATE_LIST(AMP_X)
#undef AMP_X
    return AMP_OK;
}
static amp_status ampi_cu_apply(amp_ctx *ctx, const amp_apply_job *job) {
    ampi_cuda *c = ampi_cu_self(ctx);
    uint64_t pieces = job->table.n_elements / AMPI_PIECE + 1u; /* at least those of the parameter */
    if (job->count) return ampi_cu_share(c, pieces, ampi_k_count_apply, *job);
    return ampi_cu_share(c, pieces, ampi_k_apply, *job);
}
static amp_status ampi_cu_add(amp_ctx *ctx, const amp_add_job *job) {
    ampi_cuda *c = ampi_cu_self(ctx);
    uint32_t cuts = ampi_cu_cuts(c, &job->table, AMPI_PIECE);
    return ampi_cu_share(c, (uint64_t)job->table.n_chunks << cuts, ampi_k_add, *job, cuts);
}
static amp_status ampi_cu_clip(amp_ctx *ctx, const amp_clip_job *job) {
    ampi_cuda *c = ampi_cu_self(ctx);
    uint32_t cuts = ampi_cu_cuts(c, &job->table, AMPI_PIECE);
    return ampi_cu_share(c, (uint64_t)job->table.n_chunks << cuts, ampi_k_clip, *job, cuts);
}
static amp_status ampi_cu_next_scale(amp_ctx *ctx, amp_scaler_state *state) {
    return ampi_cu_launch(ampi_cu_self(ctx), 1, ampi_k_next_scale, state);
}

