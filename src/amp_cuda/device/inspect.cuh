/* ==== >>device-step ==============================================================================================
   Inspection: sums of gradients, and the record that the last block makes of them; then updates and clipping.
   tests: tests/test_step.c, tests/test_layouts.c, tests/test_scaler.c */

/* Where a chunk of a parameter set lies. */
AMPI_K uint32_t ampi_k_chunk_size(const amp_param_entry *e, const amp_chunk *c) {
    uint64_t left = e->count - (uint64_t)c->index * AMP_CHUNK;
    return (uint32_t)(left < AMP_CHUNK ? left : AMP_CHUNK);
}

AMPI_K void *ampi_k_gradient(const amp_param_entry *e, uint32_t accum, amp_dtype *t) {
    *t = accum ? AMP_F32 : e->grad_dtype;
    return accum ? (void *)e->accum : e->grad;
}

/* Inspection. A chunk is cut into AMPI_CUTS pieces or, for small sets (`spread`), into AMP_PARTS of them: piece q has
   the parts q, q + cuts, ..., whose sums are halved by themselves. A block takes a piece at a time. */
#define AMPI_CUTS            4u
#define AMPI_CUTS_OF(spread) ((spread) ? AMP_PARTS : AMPI_CUTS)
/* Of the blocks of a launch; the last leaves zeros in `found` and `ticket` again. */
typedef struct ampi_k_inspect_state {
    ampi_k_finite_sums found;
    uint64_t serial; /* of copies of records, ever growing */
    uint32_t ticket, _pad;
} ampi_k_inspect_state;
typedef struct ampi_k_gradients { /* of one chunk */
    void *data;
    amp_dtype type;
    uint64_t base;
    uint32_t n, chunk;
    float inv;
    int wide;
} ampi_k_gradients;

/* The lanes of squares of a part of n gradients from `at` on, by one team. A whole part: all loads first. `again`, with
   `by`: seldom. */
template <int type>
AMPI_K void ampi_k_squares(const ampi_k_gradients *g, uint32_t at, uint32_t n, int again, float by, float *lane) {
    uint32_t t = threadIdx.x % AMPI_TEAM, k, q, x[8];
    float sum[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    if (!again && g->wide && n == AMP_PART) {
        ampi_k_raw raw[AMP_PART / AMP_LANES];
        AMP_UNROLL
        for (q = 0; q < AMP_PART / AMP_LANES; q++)
            ampi_k_fetch8(&raw[q], g->data, (amp_dtype)type, g->base + at + 8u * t + AMP_LANES * q, 1);
        AMP_UNROLL
        for (q = 0; q < AMP_PART / AMP_LANES; q++) {
            ampi_k_widen8(x, &raw[q], (amp_dtype)type);
            AMP_UNROLL
            for (k = 0; k < 8u; k++) {
                float u = amp_mul(ampi_float(x[k]), g->inv);
                sum[k] = amp_add(sum[k], amp_mul(u, u));
            }
        }
        AMP_UNROLL
        for (k = 0; k < 8u; k++)
            lane[8u * t + k] = sum[k];
        return;
    }
    /* not aligned: neighbours to neighbouring threads */
    for (q = t; !again && n == AMP_PART && q < n; q += AMP_LANES) {
        AMP_UNROLL
        for (k = 0; k < 8u; k++)
            x[k] = ampi_load_pattern(g->data, (amp_dtype)type, g->base + at + q + AMPI_TEAM * k);
        AMP_UNROLL
        for (k = 0; k < 8u; k++) {
            float u = amp_mul(ampi_float(ampi_k_quick(x[k], (amp_dtype)type)), g->inv);
            sum[k] = amp_add(sum[k], amp_mul(u, u));
        }
    }
    for (q = again || n < AMP_PART ? t : n; q < n; q += AMP_LANES) {
        AMP_UNROLL
        for (k = 0; k < 8u; k++) {
            uint32_t i = q + AMPI_TEAM * k;
            float u = i < n ? amp_load(g->data, (amp_dtype)type, g->base + at + i) : 0.0f;
            u = amp_mul(amp_mul(u, g->inv), by);
            sum[k] = amp_add(sum[k], amp_mul(u, u));
        }
    }
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        lane[t + AMPI_TEAM * k] = sum[k];
}
/* The same of a part by the whole block: a lane per thread, all loads first. */
template <int type>
AMPI_K void ampi_k_squares_spread(const ampi_k_gradients *g, uint32_t at, uint32_t n, float by, float *lane) {
    uint32_t j, k, x[AMP_PART / AMP_LANES];
    for (j = threadIdx.x; j < AMP_LANES; j += AMP_BLOCK) {
        const char *from = (const char *)g->data + (g->base + at + j) * amp_dtype_size((amp_dtype)type);
        float sum = 0.0f;
        AMP_UNROLL
        for (k = 0; k < AMP_PART / AMP_LANES; k++)
            x[k] = AMP_LANES * k + j < n ? ampi_load_pattern(from, (amp_dtype)type, AMP_LANES * k) : 0u;
        AMP_UNROLL
        for (k = 0; k < AMP_PART / AMP_LANES; k++) {
            float u = amp_mul(ampi_float(ampi_k_quick(x[k], (amp_dtype)type)), g->inv);
            u = amp_mul(u, by);
            sum = amp_add(sum, amp_mul(u, u));
        }
        lane[j] = sum;
    }
}
template <int type, int spread>
AMPI_K void ampi_k_squares_any(
    const ampi_k_gradients *g, uint32_t at, uint32_t n, int again, float by, ampi_k_room *room) {
    if (spread)
        ampi_k_squares_spread<type>(g, at, n, by, room->lane);
    else
        ampi_k_squares<type>(g, at, n, again, by, room->lane + threadIdx.x / AMPI_TEAM * AMP_LANES);
}
#define AMPI_FORMAT_SQUARES(T, ...) \
    if (g->type == AMP_##T) ampi_k_squares_any<AMP_##T, spread>(g, at, n, again, by, room);
/* The sum of a part per team, times by^2, in each of its threads; spread: in those of the first team. */
template <int spread>
AMPI_K float ampi_k_part_squares(
    const ampi_k_gradients *g, uint32_t at, uint32_t n, int again, float by, ampi_k_room *room) {
    AMPI_FORMATS(AMPI_FORMAT_SQUARES)
    if (g->type == AMP_F32) ampi_k_squares_any<AMP_F32, spread>(g, at, n, again, by, room);
    __syncthreads();
    if (spread && threadIdx.x >= AMPI_TEAM) return 0.0f;
    return ampi_k_join(room->lane + threadIdx.x / AMPI_TEAM * AMP_LANES);
}
/* Which part a team has in a round: elements [at, at + n) of the chunk, n may be 0. */
template <int spread>
AMPI_K uint32_t ampi_k_part_of(const ampi_k_gradients *g, uint32_t q, uint32_t index, uint32_t *at) {
    *at = (q + AMPI_CUTS_OF(spread) * index) * AMP_PART;
    if (index >= AMP_PARTS / AMPI_CUTS_OF(spread) || *at >= g->n) return 0;
    return g->n - *at < AMP_PART ? g->n - *at : AMP_PART;
}
AMPI_K void ampi_k_part_faults(const ampi_k_gradients *g, uint32_t at, uint32_t n, ampi_k_finite_sums *found) {
    amp_faults f = amp_no_faults();
    uint32_t i;
    for (i = at + threadIdx.x % AMPI_TEAM; i < at + n; i += AMPI_TEAM) {
        float x = amp_load(g->data, g->type, g->base + i);
        amp_count_fault(&f, x, amp_mul(x, g->inv), i);
    }
    if (f.first != AMP_CHUNK) ampi_k_note(found, g->chunk, &f);
}
/* Gradients of the part, written back unscaled. */
AMPI_K void ampi_k_part_unscale(const ampi_k_gradients *g, uint32_t at, uint32_t n, ampi_k_finite_sums *found) {
    amp_faults f = amp_no_faults();
    ampi_k_ends ends = ampi_k_no_ends();
    uint32_t i, groups, x[8];
    ampi_k_meet(&ends, g->data, g->type, g->base + at);
    groups = ampi_k_groups(&ends, n);
    for (i = threadIdx.x % AMPI_TEAM; i < n - 7u * groups; i += AMPI_TEAM) { /* groups, then what is outside */
        uint32_t m = i < groups ? 8u : 1u;
        uint32_t own = at + (m > 1u ? ends.head + 8u * i : ampi_k_outside(&ends, groups, i - groups));
        ampi_k_load8(x, g->data, g->type, g->base + own, m, 1);
        ampi_k_unscale8(x, g->data, g->type, g->type, g->base + own, m, 1, own, g->inv, 1, &f);
    }
    if (f.first != AMP_CHUNK) ampi_k_note(found, g->chunk, &f);
}
/* Does a team see anything but zeros, of either sign, in its part? All its threads ask. */
AMPI_K int ampi_k_part_sees(const ampi_k_gradients *g, uint32_t at, uint32_t n) {
    uint32_t size = (uint32_t)amp_dtype_size(g->type), eights = g->wide ? n * size / 8u : 0u, any = 0, i;
    const ampi_k_u2 *bytes = (const ampi_k_u2 *)((const char *)g->data + (g->base + at) * size);
    for (i = threadIdx.x % AMPI_TEAM; i < eights; i += AMPI_TEAM)
        any |= bytes[i].x | bytes[i].y;
    for (i = eights * 8u / size + threadIdx.x % AMPI_TEAM; i < n; i += AMPI_TEAM)
        any |= ampi_load_pattern(g->data, g->type, g->base + at + i);
    AMP_UNROLL
    for (i = AMPI_TEAM / 2u; i; i /= 2u)
        any |= AMP_SHUFFLE(any, i);
    return (any & ~ampi_signs(g->type)) != 0;
}
/* A round of parts into room->part[index ...], one per team; spread: one by all of them, into *only. Seldom, those
   whose squares leave the range are added up again, unless a sum is 0 because all is, and those that are not finite
   looked through. */
template <int spread>
AMPI_K void ampi_k_inspect_round(
    const ampi_k_gradients *g, uint32_t q, uint32_t index, double *only, ampi_k_room *room, ampi_k_finite_sums *found) {
    const uint32_t team = spread ? 0 : threadIdx.x / AMPI_TEAM;
    const int own = !spread || threadIdx.x < AMPI_TEAM, first = threadIdx.x == team * AMPI_TEAM;
    double *to = spread ? only : &room->part[index + team];
    uint32_t at, n = ampi_k_part_of<spread>(g, q, index + team, &at), k, again = 0;
    float sum = ampi_k_part_squares<spread>(g, at, n, 0, 1.0f, room), by = n ? amp_squares_by(sum) : 1.0f;
    if (own && n && ampi_bits(sum) == 0 && !ampi_k_part_sees(g, at, n)) by = 1.0f;
    if (first) {
        *to = n ? amp_widen(sum) : 0.0;
        room->by[team] = by;
    }
    __syncthreads();
    for (k = 0; k < (spread ? 1u : AMPI_TEAMS); k++)
        again |= ampi_bits(room->by[k]) != 0x3f800000u;
    if (!again) return;
    by = room->by[team];
    sum = ampi_k_part_squares<spread>(g, at, n, 1, by, room);
    if (first && n) {
        *to = amp_squares_sum(sum, by);
        room->by[team] = sum;
    }
    __syncthreads();
    if (!amp_is_finite(room->by[team]) && own) ampi_k_part_faults(g, at, n, found);
    __syncthreads();
}
template <int spread>
AMPI_K void ampi_k_inspect_piece(
    const amp_sum_job *job, const ampi_k_gradients *g, uint32_t q, ampi_k_room *room, ampi_k_finite_sums *found) {
    const uint32_t parts = AMP_PARTS / AMPI_CUTS_OF(spread);
    double *sum = &job->table.partials[g->chunk].sum[q];
    uint32_t index, at, n;
    if (q * AMP_PART >= g->n) { /* all threads alike */
        if (threadIdx.x == 0) *sum = 0.0;
        return;
    }
    for (index = 0; index < parts; index += AMPI_TEAMS)
        ampi_k_inspect_round<spread>(g, q, index, sum, room, found);
    if (!spread && threadIdx.x == 0) *sum = ampi_k_halve8(room->part);
    for (index = threadIdx.x / AMPI_TEAM; job->write && index < parts; index += AMPI_TEAMS) {
        n = ampi_k_part_of<spread>(g, q, index, &at);
        if (n) ampi_k_part_unscale(g, at, n, found);
    }
}
static_assert(AMP_PARTS == 8u * AMPI_CUTS, "a piece has one part or eight");
/* Where the gradients of a chunk lie; g->inv is left. */
AMPI_K void ampi_k_gradients_of(const amp_sum_job *job, uint32_t chunk, amp_chunk c, ampi_k_gradients *g) {
    const amp_param_entry *e = &job->table.entries[c.param];
    g->chunk = chunk;
    g->data = ampi_k_gradient(e, job->accum, &g->type);
    g->base = (uint64_t)c.index * AMP_CHUNK;
    g->n = ampi_k_chunk_size(e, &c);
    g->wide = ampi_k_aligned(g->data, g->type);
}
/* A block's pieces, if there are any. c: the chunk of the first; gives amp_sum_factor. */
template <int spread>
AMPI_K float ampi_k_inspect_pieces(
    const amp_sum_job *job, amp_chunk c, float scale, uint32_t divide, ampi_k_room *room, ampi_k_finite_sums *found) {
    const uint32_t cuts = AMPI_CUTS_OF(spread);
    uint64_t piece = blockIdx.x, pieces = (uint64_t)job->table.n_chunks * cuts;
    ampi_k_gradients g;
    g.inv = amp_factor_of(scale, divide);
    while (piece < pieces) {
        ampi_k_gradients_of(job, (uint32_t)(piece / cuts), c, &g);
        ampi_k_inspect_piece<spread>(job, &g, (uint32_t)piece % cuts, room, found);
        piece += gridDim.x;
        if (piece < pieces) c = job->table.chunks[piece / cuts];
    }
    return g.inv;
}

/* The sums of chunks that were cut into AMP_PARTS: a thread has eight of them, four threads a chunk. */
AMPI_K void ampi_k_inspect_chunks(const amp_partial *p, uint32_t n, double *chunk) {
    uint32_t i = threadIdx.x, k;
    for (; i - threadIdx.x % AMPI_TEAM < AMPI_CUTS * n; i += AMP_BLOCK) { /* whole teams */
        double x[8], sum;
        AMP_UNROLL
        for (k = 0; k < 8u; k++)
            x[k] = i < AMPI_CUTS * n ? AMP_LOAD_L2(&p[i / AMPI_CUTS].sum[i % AMPI_CUTS + AMPI_CUTS * k]) : 0.0;
        sum = ampi_k_halve8(x);
        sum = amp_dadd(sum, AMP_SHUFFLE(sum, 2));
        sum = amp_dadd(sum, AMP_SHUFFLE(sum, 1));
        if (i % AMPI_CUTS == 0) chunk[i / AMPI_CUTS] = sum;
    }
}
/* All pieces to the totals, by one block; valid in the first team. */
AMPI_K double ampi_k_inspect_sum(const amp_sum_job *job, uint32_t cuts, ampi_k_room *room) {
    const amp_partial *p = job->table.partials;
    uint32_t n = job->table.n_chunks, i, k, c;
    if (cuts == AMP_PARTS) ampi_k_inspect_chunks(p, n, room->chunk);
    for (i = threadIdx.x; cuts == AMPI_CUTS && i < AMP_LANES; i += AMP_BLOCK) {
        double lane = 0.0, x[AMPI_CUTS];
        for (c = i; c < n; c += AMP_LANES) {
            AMP_UNROLL
            for (k = 0; k < AMPI_CUTS; k++)
                x[k] = AMP_LOAD_L2(&p[c].sum[k]);
            lane = amp_dadd(lane, amp_dadd(amp_dadd(x[0], x[2]), amp_dadd(x[1], x[3])));
        }
        room->chunk[i] = lane;
    }
    __syncthreads();
    return threadIdx.x < AMPI_TEAM ? ampi_k_join(room->chunk, n) : 0.0;
}
AMPI_K void ampi_k_inspect_found(const amp_sum_job *job, const ampi_k_finite_sums *found, amp_totals *totals) {
    uint64_t key = ~found->first;
    totals->nan = found->nan;
    totals->inf = found->inf;
    totals->overflow = found->overflow;
    totals->first_param = totals->_pad = 0;
    totals->first_index = 0;
    if (!found->first) return;
    totals->first_param = job->table.chunks[key >> 16].param;
    totals->first_index = (uint64_t)job->table.chunks[key >> 16].index * AMP_CHUNK + (key & 0xffffu);
}

/* What the block that ends an inspection works on, in shared memory: each word is read and written once, all at a time,
   instead of one after the other by a single thread. */
typedef struct ampi_k_ending {
    amp_step_record record;
    amp_scaler_state scaler;
    amp_rates rates[AMP_GROUPS];
    int finite[AMP_GROUPS]; /* the learning rates are */
    uint64_t serial, next;  /* next: steps, if this one is taken */
    int stepped;
} ampi_k_ending;
static_assert(offsetof(ampi_k_ending, scaler) == sizeof(amp_step_record), "copied as one piece, by words");
#define AMPI_K_RECORD (uint32_t)(sizeof(amp_step_record) / 4u) /* words, and then those of the scaler */
#define AMPI_K_ENDING (AMPI_K_RECORD + (uint32_t)(sizeof(amp_scaler_state) / 4u))
#define AMPI_K_RATES  (uint32_t)(offsetof(amp_step_record, rate) / 4u) /* the first word of the rates */
/* By every block, as long as it waits for other loads: any may be the one that ends the inspection, and until then
   nobody writes. Complete after a barrier. */
AMPI_K void ampi_k_ending_begin(const amp_inspect_job *job, ampi_k_ending *e, const ampi_k_inspect_state *state) {
    uint32_t words = job->scaler ? AMPI_K_ENDING : AMPI_K_RECORD, i;
    for (i = threadIdx.x; i < words; i += AMP_BLOCK) {
        const ampi_k_u32 *from = (const ampi_k_u32 *)job->record + i;
        if (i >= AMPI_K_RECORD) from = (const ampi_k_u32 *)job->scaler + (i - AMPI_K_RECORD);
        ((ampi_k_u32 *)e)[i] = *from;
    }
    if (threadIdx.x == AMP_BLOCK - 1u) e->serial = state->serial + 1u;
}
/* Whether the learning rates are finite, a group each by the last threads, while the first one takes its ticket. */
AMPI_K void ampi_k_ending_finite(const amp_inspect_job *job, ampi_k_ending *e) {
    uint32_t group = AMP_BLOCK - 1u - threadIdx.x;
    if (group >= AMP_GROUPS || job->purpose != AMP_FOR_STEP) return;
    e->finite[group] = ampi_rate_is_finite(&job->group[group]);
    if (group == 0) e->next = e->record.steps + 1u;
}
/* The rates of the step that may be taken, by the same threads: in the block that ends the inspection and in no other,
   for a GPU with few units for doubles is busy with them for a while. Meanwhile others join sums and decide. */
AMPI_K void ampi_k_ending_rates(const amp_inspect_job *job, ampi_k_ending *e) {
    uint32_t group = AMP_BLOCK - 1u - threadIdx.x;
    if (group >= AMP_GROUPS || job->purpose != AMP_FOR_STEP) return;
    amp_rates_of(&e->rates[group], &job->group[group], e->next);
}
/* The record and the scaler to where they came from, and the record to the host, which can read its copy without
   waiting: see amp_step_mirror. */
AMPI_K void ampi_k_ending_end(const amp_inspect_job *job, const ampi_k_ending *e, ampi_k_inspect_state *state) {
    uint32_t words = job->scaler ? AMPI_K_ENDING : AMPI_K_RECORD, i;
    for (i = threadIdx.x; i < words; i += AMP_BLOCK) {
        uint32_t word = ((const ampi_k_u32 *)e)[i];
        if (e->stepped && i - AMPI_K_RATES < AMPI_K_RECORD - AMPI_K_RATES)
            word = ((const ampi_k_u32 *)e->rates)[i - AMPI_K_RATES];
        if (i >= AMPI_K_RECORD) {
            ((ampi_k_u32 *)job->scaler)[i - AMPI_K_RECORD] = word;
            continue;
        }
        ((ampi_k_u32 *)job->record)[i] = word;
        if (job->mirror) *(volatile uint64_t *)&job->mirror->word[i] = e->serial << 32 | word;
    }
    if (threadIdx.x == 0) state->serial = e->serial;
}
/* One block ends the inspection: its first thread finds the norm, its last ones meanwhile the rates, and one of others
   the rest of the record. e: complete, but for its rates; totals: valid in the first and the last of these, totals->sum
   in the first; factor: see amp_sum_factor. */
AMPI_K void ampi_k_inspect_end(
    const amp_inspect_job *job, const amp_totals *totals, float factor, ampi_k_ending *e, ampi_k_inspect_state *state) {
    uint32_t group;
    ampi_k_ending_rates(job, e);
    if (threadIdx.x == 0) ampi_conclude_norm(job, &e->record, totals);
    if (threadIdx.x == AMP_BLOCK / 2u) {
        ampi_ending at = {&e->record, &e->scaler, factor, 1};
        for (group = 0; job->purpose == AMP_FOR_STEP && group < AMP_GROUPS; group++)
            at.finite &= e->finite[group];
        e->stepped = ampi_conclude_record(job, &at, totals);
    }
    __syncthreads();
    ampi_k_ending_end(job, e, state);
}

/* All pieces, then the last block to finish joins them: 1 in that block, whose first thread holds the sum of the
   totals, and all threads the rest. The ticket wraps to 0. *factor is amp_sum_factor; e is made beside a record. */
AMPI_K int ampi_k_sums(const amp_inspect_job *whole, uint32_t cuts, float *factor, ampi_k_inspect_state *state,
    ampi_k_ending *e, amp_totals *totals) {
    AMP_SHARED(ampi_k_room, room, 1);
    AMP_SHARED(ampi_k_finite_sums, found, 1);
    AMP_SHARED(uint32_t, last, 1);
    const amp_sum_job *job = &whole->sum;
    float scale = amp_sum_scale(job);
    amp_chunk c = {0, 0};
    if (job->table.n_chunks) c = job->table.chunks[cuts == AMP_PARTS ? blockIdx.x / AMP_PARTS : blockIdx.x / AMPI_CUTS];
    uint32_t divide = amp_sum_divide(job);
    if (whole->record) ampi_k_ending_begin(whole, e, state); /* these loads are under way side by side */
    if (cuts == AMP_PARTS)
        *factor = ampi_k_inspect_pieces<1>(job, c, scale, divide, room, &state->found);
    else
        *factor = ampi_k_inspect_pieces<0>(job, c, scale, divide, room, &state->found);
    __syncthreads();
    if (whole->record) ampi_k_ending_finite(whole, e);
    if (threadIdx.x == 0) {
        AMP_FENCE();
        last[0] = atomicInc((unsigned *)&state->ticket, gridDim.x - 1u) == gridDim.x - 1u;
        AMP_FENCE();
    }
    __syncthreads();
    if (!last[0]) return 0; /* the first thread's fence after the ticket holds for all, by the barrier */
    if (threadIdx.x >= AMP_BLOCK - 4u) {
        uint32_t i = threadIdx.x - (AMP_BLOCK - 4u);
        ((unsigned long long *)found)[i] = AMP_LOAD_L2((unsigned long long *)&state->found + i);
    }
    totals->sum = ampi_k_inspect_sum(job, cuts, room);
    ampi_k_inspect_found(job, found, totals);
    if (found->first && threadIdx.x == 0)
        state->found.nan = state->found.inf = state->found.overflow = state->found.first = 0;
    return 1;
}
/* Without a record: only the totals. */
static __global__ void __launch_bounds__(AMP_BLOCK, 2)
    ampi_k_inspect(const AMP_GRID_CONSTANT amp_inspect_job job, uint32_t cuts, ampi_k_inspect_state *state) {
    AMP_SHARED(ampi_k_ending, end, 1);
    float factor;
    amp_totals totals;
    AMP_LET_FOLLOW();
    if (!ampi_k_sums(&job, cuts, &factor, state, end, &totals)) return;
    if (job.record)
        ampi_k_inspect_end(&job, &totals, factor, end, state);
    else if (threadIdx.x == 0)
        *job.sum.table.totals = totals;
}
static __global__ void __launch_bounds__(AMP_BLOCK)
    ampi_k_conclude(const AMP_GRID_CONSTANT amp_inspect_job job, ampi_k_inspect_state *state) {
    AMP_SHARED(ampi_k_ending, end, 1); /* one block */
    AMP_LET_FOLLOW();
    ampi_k_ending_begin(&job, end, state);
    __syncthreads();
    ampi_k_ending_finite(&job, end);
    __syncthreads();
    ampi_k_inspect_end(&job, job.sum.table.totals, amp_sum_factor(&job.sum), end, state);
}

#define AMPI_K_INSPECT(X) X(ampi_k_inspect) X(ampi_k_conclude)
