/* ==== >>device-losses ============================================================================================
   Cross-entropy, a block, a team or a thread per row of logits; dropout.
   tests: tests/test_products.c, tests/test_memory.c */

struct ampi_k_logits { /* of one row */
    const void *x;
    amp_dtype t;
    size_t row;
    int wide;
    AMPI_K_AT void at8(float v[8], uint64_t i, uint32_t m) const {
        uint32_t y[8], k;
        ampi_k_load8(y, x, t, row + i, m, wide);
        for (k = 0; k < 8u; k++)
            v[k] = ampi_float(y[k]);
    }
};
struct ampi_k_floats {
    const float *x;
    AMPI_K_AT void at8(float v[8], uint64_t i, uint32_t m) const {
        uint32_t k;
        for (k = 0; k < 8u; k++)
            if (k < m) v[k] = AMP_LOAD_L2(&x[i + k]); /* of other blocks of the same launch */
    }
};

struct ampi_k_counts { /* what rows count in the mean */
    const amp_xent_job &d;
    AMPI_K_AT void at8(float v[8], uint64_t i, uint32_t m) const {
        uint32_t k;
        for (k = 0; k < 8u; k++)
            v[k] = k < m ? amp_xent_row_weight(&d, amp_xent_label(&d, i + k)) : 0.0f;
    }
};
/* Where each class has a target of its own: those of one row, q, and what they add to its loss. */
struct ampi_k_targets {
    const amp_xent_job &d;
    size_t at, label; /* the row's place in the matrix */
    float keep, share, max;
    uint32_t wide;   /* bits: targets, weights, logits are aligned */
    uint32_t misses; /* 0: at8 gives targets; 1: what they add */
    /* v: m targets times their weights; with 3 arrays, not 2, x: their logits, too. One load for all arrays, in a
       loop, to be compiled once. */
    AMPI_K_AT void of8(float v[8], float x[8], uint64_t i, uint32_t m, uint32_t arrays) const {
        uint32_t a, k, y[8];
        for (k = 0; k < 8u; k++)
            v[k] = i + k == label ? 1.0f : 0.0f;
        AMP_NO_UNROLL
        for (a = 0; a < arrays; a++) {
            const amp_array &shared = a == 1u ? d.weights : d.logits;
            const void *data = a == 0 ? d.targets.data : shared.data;
            const amp_dtype t = a == 0 ? d.targets.dtype : shared.dtype;
            if (data) ampi_k_load8(y, data, t, a == 1u ? i : at + i, m, (int)(wide >> a & 1u));
            for (k = 0; k < 8u; k++) {
                if (a == 0) v[k] = amp_xent_target(keep, share, data ? ampi_float(y[k]) : v[k]);
                if (a == 1u && data) v[k] = amp_mul(v[k], ampi_float(y[k]));
                if (a == 2u) x[k] = ampi_float(y[k]);
            }
        }
    }
    AMPI_K_AT void at8(float v[8], uint64_t i, uint32_t m) const {
        float x[8];
        uint32_t k;
        of8(v, x, i, m, 2u + misses);
        for (k = 0; misses && k < 8u; k++)
            v[k] = amp_xent_miss(v[k], max, x[k]);
    }
};

/* What follows is done by `all` threads that share a row, of which this is number `me`. First its padding, and all of a
   row that is left out, or whose label is wrong, an error made visible: then 1. */
AMPI_K int ampi_k_xent_ends(const amp_xent_job &d, size_t row, int64_t label, uint32_t me, uint32_t all) {
    const float value = label < 0 ? 0.0f : ampi_float(0x7fc00000u);
    size_t i;
    for (i = me; i < d.padding; i += all)
        amp_store(d.dlogits.data, d.dlogits.dtype, row * d.ld + d.classes + i, 0.0f);
    if (!amp_xent_is_wrong(&d, label)) return 0;
    if (d.row_loss && me == 0) d.row_loss[d.first + row] = value;
    for (i = me; d.dlogits.data && i < d.classes; i += all)
        amp_store(d.dlogits.data, d.dlogits.dtype, row * d.ld + i, value);
    return 1;
}
/* From max, sum and target to the row's loss and what its gradients need; by: their factor. */
AMPI_K void ampi_k_xent_loss_of(
    const amp_xent_job &d, size_t row, int64_t label, float mean, float by, amp_xent_row *r, uint32_t me) {
    float loss, weight = 1.0f;
    if (d.weights.data) weight = amp_xent_row_weight(&d, label);
    if (d.weights.data) by = amp_mul(by, weight);
    amp_xent_row_end(r, &d, by, 1.0f);
    if (!d.row_loss || me) return;
    loss = amp_xent_loss_one(d.smoothing, r->max, ampi_nonzero(weight) ? r->target : r->max, mean, r->sum);
    if (d.weights.data) loss = amp_mul(loss, weight);
    d.row_loss[d.first + row] = loss;
}
AMPI_K int ampi_k_xent_no_nan(const amp_xent_row *r) { /* else the sum is one */
    return amp_is_finite(r->sum) && amp_is_finite(r->by) && amp_is_finite(r->less);
}
/* A thread's eight lanes of a part, n logits from element `at` on, all fetched before any is looked at. A logit that is
   missing is -Inf: its term is 0, and it is not the largest. NaN may become any NaN. Not for FP8. Vectors are aligned:
   where a row begins `shift` elements after a vector does, a thread has the lanes from 8 t - shift on, which are joined
   as those from 8 t on are. The first thread's lanes before 0 are the last ones, a row of lanes earlier. */
#define AMPI_LANE_ROWS (AMP_PART / AMP_LANES)
typedef struct ampi_k_lane_rows { uint32_t of[AMPI_LANE_ROWS][8]; } ampi_k_lane_rows;
AMPI_K void ampi_k_xent_vectors(
    ampi_k_raw r[AMPI_LANE_ROWS + 1u], const void *p, amp_dtype t, size_t at, uint32_t n, uint32_t shift) {
    const uint32_t slot = threadIdx.x % AMPI_TEAM * 8u, end = n + shift, last = end & ~7u;
    ampi_k_raw first = {{0, 0, 0, 0}, {0, 0, 0, 0}}, rest = first;
    uint32_t q, i;
    at -= shift; /* from here on, elements from `shift` to `end` */
    if (slot < shift) ampi_k_gather8(&first, p, t, at, shift, end);
    if (end % 8u && last >= shift && last % AMP_LANES == slot) ampi_k_gather8(&rest, p, t, at + last, 0, end - last);
    AMP_UNROLL
    for (q = 0, i = slot; q < AMPI_LANE_ROWS; q++, i += AMP_LANES) {
        if (i < shift)
            r[q] = first;
        else if (i < last)
            ampi_k_fetch8(&r[q], p, t, at + i, 1);
        else
            r[q] = rest;
    }
    r[q] = rest;
}
/* The first thread's elements before the part, from the next row of lanes. */
AMPI_K void ampi_k_xent_turn(ampi_k_raw r[AMPI_LANE_ROWS + 1u], amp_dtype t, uint32_t shift) {
    const uint32_t bits = threadIdx.x % AMPI_TEAM ? 0u : shift * 8u * (uint32_t)amp_dtype_size(t);
    uint32_t mask[4], w[4], next[4], q, k;
    AMP_UNROLL
    for (k = 0; k < 4u; k++) {
        const uint32_t own = bits > 32u * k ? bits - 32u * k : 0u; /* of this word, and more */
        mask[k] = own < 32u ? (1u << own) - 1u : ~0u;
    }
    AMP_UNROLL
    for (q = 0; q < AMPI_LANE_ROWS; q++) {
        ampi_k_words(w, r[q].a);
        ampi_k_words(next, r[q + 1u].a);
        AMP_UNROLL
        for (k = 0; k < 4u; k++)
            w[k] = (w[k] & ~mask[k]) | (next[k] & mask[k]);
        r[q].a = ampi_k_four(w);
    }
}
AMPI_K void ampi_k_xent_fetch(ampi_k_lane_rows *x, const void *p, amp_dtype t, size_t at, uint32_t n) {
    const uint32_t size = (uint32_t)amp_dtype_size(t), slot = threadIdx.x % AMPI_TEAM * 8u;
    const uint32_t shift = (uint32_t)((uintptr_t)p / size + at) % (16u / size);
    ampi_k_raw r[AMPI_LANE_ROWS + 1u];
    uint32_t q, k, i;
    ampi_k_xent_vectors(r, p, t, at, n, shift);
    if (shift) ampi_k_xent_turn(r, t, shift);
    AMP_UNROLL
    for (q = 0; q < AMPI_LANE_ROWS; q++) {
        if (t == AMP_F32)
            ampi_k_patterns8(x->of[q], &r[q], t);
        else
            ampi_k_quick8(x->of[q], &r[q], t);
    }
    if (n == AMP_PART) return;
    AMP_UNROLL
    for (k = 0; k < 8u; k++) {
        i = (slot + k - shift) % AMP_LANES;
        AMP_UNROLL
        for (q = 0; q < AMPI_LANE_ROWS; q++)
            if (i + q * AMP_LANES >= n) x->of[q][k] = 0xff800000u;
    }
}
AMPI_K float ampi_k_team_largest(float top) { /* to each of its threads */
    uint32_t k;
    AMP_UNROLL
    for (k = AMPI_TEAM / 2u; k; k /= 2u)
        top = ampi_larger(top, AMP_SHUFFLE(top, k));
    return top;
}
/* The sum of a part's terms, to every thread of the team that asks, and its largest logit to *largest. Read once. */
AMPI_K float ampi_k_xent_part(const void *p, amp_dtype t, size_t at, uint32_t n, float *largest) {
    float top = AMP_XENT_LEAST, lane[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    ampi_k_lane_rows x;
    uint32_t q;
    ampi_k_xent_fetch(&x, p, t, at, n);
    AMP_UNROLL
    for (q = 0; q < 8u * AMPI_LANE_ROWS; q++)
        top = ampi_larger(top, ampi_float(x.of[q / 8u][q % 8u]));
    *largest = top = ampi_k_team_largest(top);
    AMP_UNROLL
    for (q = 0; q < 8u * AMPI_LANE_ROWS; q++)
        lane[q % 8u] = amp_add(lane[q % 8u], amp_xent_term(ampi_float(x.of[q / 8u][q % 8u]), top));
    return ampi_k_join_slots(lane);
}
/* The same of any dtype, read twice. */
AMPI_K float ampi_k_xent_part_twice(const void *p, amp_dtype t, size_t at, uint32_t n, int wide, float *largest) {
    const ampi_k_logits part = {p, t, at, wide};
    const uint32_t slot = threadIdx.x % AMPI_TEAM * 8u;
    float top = AMP_XENT_LEAST, lane[8] = {0, 0, 0, 0, 0, 0, 0, 0}, v[8];
    uint32_t i, k;
    AMP_NO_UNROLL
    for (i = slot; i < n; i += AMP_LANES) {
        part.at8(v, i, ampi_k_group(i, n));
        for (k = 0; k < 8u; k++)
            if (i + k < n) top = ampi_larger(top, v[k]);
    }
    *largest = top = ampi_k_team_largest(top);
    AMP_NO_UNROLL
    for (i = slot; i < n; i += AMP_LANES) {
        part.at8(v, i, ampi_k_group(i, n));
        for (k = 0; k < 8u; k++)
            if (i + k < n) lane[k] = amp_add(lane[k], amp_xent_term(v[k], top));
    }
    return ampi_k_join_slots(lane);
}
/* A chunk's parts, a team each until there are none left: their sums to room->part, their largest logits to top[].
   type: AMP_AUTO, or t, known as the kernel is compiled. */
template <int type>
AMPI_K void ampi_k_xent_parts(
    const void *p, amp_dtype t, size_t at, uint32_t n, int wide, ampi_k_room *room, float *top) {
    uint32_t part = threadIdx.x / AMPI_TEAM, from, m;
    float sum, most;
    for (from = part * AMP_PART; from < n; from += AMPI_TEAMS * AMP_PART, part += AMPI_TEAMS) {
        m = n - from < AMP_PART ? n - from : AMP_PART;
        if (type != AMP_AUTO)
            sum = ampi_k_xent_part(p, (amp_dtype)type, at + from, m, &most);
        else
            sum = ampi_k_xent_part_twice(p, t, at + from, m, wide, &most);
        if (threadIdx.x % AMPI_TEAM) continue;
        room->part[part] = amp_widen(sum);
        top[part] = most;
    }
    __syncthreads();
}
/* The sum of a row's terms and *max, in every thread; see amp_xent_row. A thread of a team has a part of a chunk. */
static_assert(AMP_PARTS == AMPI_TEAM, "a thread for each part");
template <int type>
AMPI_K float ampi_k_xent_sum(
    const amp_xent_job &d, amp_dtype t, size_t at, int wide, ampi_k_room *room, float *top, float *max) {
    const uint64_t chunks = d.classes / AMP_CHUNK + (d.classes % AMP_CHUNK != 0);
    const uint32_t me = threadIdx.x % AMPI_TEAM;
    double *total = &room->part[AMP_PARTS], sum = 0.0;
    float before, now = AMP_XENT_LEAST;
    uint64_t c;
    uint32_t i;
    for (i = threadIdx.x; chunks > 1u && i < AMP_LANES; i += AMP_BLOCK)
        room->chunk[i] = 0.0;
    for (c = 0; c < chunks; c++) {
        const uint64_t left = d.classes - c * AMP_CHUNK;
        const uint32_t n = (uint32_t)(left < AMP_CHUNK ? left : AMP_CHUNK);
        const int is = me * AMP_PART < n;
        ampi_k_xent_parts<type>(d.logits.data, t, at + c * AMP_CHUNK, n, wide, room, top);
        before = now;
        now = ampi_larger(before, ampi_k_team_largest(is ? top[me] : AMP_XENT_LEAST));
        if (threadIdx.x < AMPI_TEAM) {
            sum = is ? amp_xent_rescaled(room->part[me], top[me], now) : 0.0;
            sum = ampi_k_join_pairs(sum);
            if (me == 0) *total = sum;
        }
        __syncthreads();
        sum = *total;
        for (i = threadIdx.x; chunks > 1u && i < AMP_LANES; i += AMP_BLOCK) { /* a lane is one thread's */
            if (amp_less(before, now) && c) room->chunk[i] = amp_xent_rescaled(room->chunk[i], before, now);
            if (i == c % AMP_LANES) room->chunk[i] = amp_dadd(room->chunk[i], sum);
        }
    }
    if (chunks > 1u) sum = ampi_k_halve(room->chunk, AMP_LANES);
    *max = now;
    return amp_narrow(sum);
}
/* Gradients but for the label's, which comes last. */
AMPI_K void ampi_k_xent_any(const amp_xent_job &d, amp_dtype t, size_t at, int wide, const amp_xent_row *row) {
    const char *out = (const char *)d.dlogits.data + at * amp_dtype_size(d.dlogits.dtype);
    int wide_out = ampi_k_aligned(out, d.dlogits.dtype) ? AMPI_K_STREAM : 0;
    uint32_t k, y[8];
    size_t i;
    for (i = 8u * threadIdx.x; i < d.classes; i += 8u * AMP_BLOCK) {
        uint32_t m = ampi_k_group(i, d.classes);
        ampi_k_load8(y, d.logits.data, t, at + i, m, wide);
        for (k = 0; k < 8u; k++)
            y[k] = ampi_bits(amp_xent_grad_one(row, ampi_float(y[k])));
        ampi_k_nearest8(y, d.dlogits.dtype);
        ampi_k_store8(y, d.dlogits.data, d.dlogits.dtype, at + i, m, wide_out);
    }
}
/* The same for arrays of one dtype of 16 bits, aligned alike, and without a NaN: two groups at a time. Gradients need
   not stay in the second-level cache, where logits wait for their second reading. */
AMPI_K void ampi_k_xent_eight(
    const amp_xent_job &d, amp_dtype t, size_t first, const ampi_k_raw *r, const amp_xent_row *row) {
    uint32_t y[8], w[4], k;
    ampi_k_quick8(y, r, t);
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        y[k] = ampi_bits(amp_xent_grad_one(row, ampi_float(y[k])));
    (void)ampi_k_quick_words(w, y, t);
    ampi_k_put4((char *)d.dlogits.data + 2u * first, w, AMPI_K_STREAM);
}
AMPI_K void ampi_k_xent_alike(
    const amp_xent_job &d, amp_dtype t, size_t at, const ampi_k_ends *ends, const amp_xent_row *row) {
    uint32_t classes = (uint32_t)d.classes, groups = ampi_k_groups(ends, classes), i;
    for (i = threadIdx.x; i < groups; i += 2u * AMP_BLOCK) {
        size_t first = at + ends->head + 8u * i;
        const int both = i + AMP_BLOCK < groups;
        ampi_k_raw one, two;
        ampi_k_fetch8(&one, d.logits.data, t, first, 1);
        if (both) ampi_k_fetch8(&two, d.logits.data, t, first + 8u * AMP_BLOCK, 1);
        ampi_k_xent_eight(d, t, first, &one, row);
        if (both) ampi_k_xent_eight(d, t, first + 8u * AMP_BLOCK, &two, row);
    }
    for (i = threadIdx.x; i < classes - 8u * groups; i += AMP_BLOCK) {
        size_t one = at + ampi_k_outside(ends, groups, i);
        amp_store(d.dlogits.data, t, one, amp_xent_grad_one(row, amp_load(d.logits.data, t, one)));
    }
}
template <int type>
AMPI_K void ampi_k_xent_gradients(const amp_xent_job &d, amp_dtype t, size_t at, int wide, const amp_xent_row *row) {
    ampi_k_ends ends = ampi_k_no_ends();
    ampi_k_meet(&ends, d.logits.data, t, at);
    ampi_k_meet(&ends, d.dlogits.data, d.dlogits.dtype, at);
    if (amp_dtype_size((amp_dtype)type) == 2u && t == d.dlogits.dtype && ampi_k_xent_no_nan(row) && !ends.never)
        ampi_k_xent_alike(d, (amp_dtype)type, at, &ends, row);
    else
        ampi_k_xent_any(d, t, at, wide, row);
}

/* A row with a target for each class, whose maximum and sum are known. One loop for both sums, to be compiled once. */
AMPI_K void ampi_k_xent_each(
    const amp_xent_job &d, size_t row, ampi_k_targets q, amp_xent_row *r, float factor, ampi_k_room *room) {
    const char *out = (const char *)d.dlogits.data + q.at * amp_dtype_size(d.dlogits.dtype);
    const int wide = ampi_k_aligned(out, d.dlogits.dtype) ? AMPI_K_STREAM : 0;
    float all = 0.0f, sum = 0.0f, x[8], v[8];
    uint32_t k, y[8];
    size_t i;
    AMP_NO_UNROLL
    for (q.misses = 0; q.misses < 2; q.misses++) {
        all = sum;
        sum = amp_narrow(ampi_k_sum(q, d.classes, room));
    }
    amp_xent_row_end(r, &d, factor, all);
    if (d.row_loss && threadIdx.x == 0) d.row_loss[d.first + row] = amp_xent_loss_each(sum, all, r->sum);
    for (i = 8u * threadIdx.x; d.dlogits.data && i < d.classes; i += 8u * AMP_BLOCK) {
        const uint32_t m = ampi_k_group(i, d.classes);
        q.of8(v, x, i, m, 3);
        for (k = 0; k < 8u; k++)
            y[k] = ampi_bits(amp_xent_grad_each(r, x[k], v[k]));
        ampi_k_nearest8(y, d.dlogits.dtype);
        ampi_k_store8(y, d.dlogits.data, d.dlogits.dtype, q.at + i, m, wide);
    }
}
AMPI_K ampi_k_targets ampi_k_targets_of(const amp_xent_job &d, size_t at, size_t label, int wide, float max) {
    const char *row = (const char *)d.targets.data + at * amp_dtype_size(d.targets.dtype);
    const float keep = amp_sub(1.0f, d.smoothing), share = amp_div(d.smoothing, (float)d.classes);
    const uint32_t targets = ampi_k_aligned(row, d.targets.dtype) != 0;
    const uint32_t weights = ampi_k_aligned(d.weights.data, d.weights.dtype) != 0;
    const uint32_t wides = targets | weights << 1 | (uint32_t)(wide != 0) << 2;
    ampi_k_targets q = {d, at, label, keep, share, max, wides, 0};
    return q;
}
/* A block per row. */
template <int type>
AMPI_K void ampi_k_xent_row(
    const amp_xent_job &d, amp_dtype t, size_t row, const float *factor, ampi_k_room *room, float *top) {
    size_t at = row * d.ld;
    int64_t label = amp_xent_label(&d, d.first + row);
    float mean = 0.0f;
    amp_xent_row r;
    ampi_k_logits logits = {d.logits.data, t, at, 0};
    if (ampi_k_xent_ends(d, row, label, threadIdx.x, AMP_BLOCK)) return;
    logits.wide = ampi_k_aligned((const char *)d.logits.data + at * amp_dtype_size(t), t);
    r.target = amp_load(logits.x, t, at + (size_t)label); /* before dlogits, which may be logits */
    r.sum = ampi_k_xent_sum<type>(d, t, at, logits.wide, room, top, &r.max);
    if (type == AMP_AUTO && d.each) {
        ampi_k_xent_each(d, row, ampi_k_targets_of(d, at, (size_t)label, logits.wide, r.max), &r, *factor, room);
        return;
    }
    if (ampi_nonzero(d.smoothing)) mean = amp_narrow(amp_ddiv(ampi_k_sum(logits, d.classes, room), (double)d.classes));
    ampi_k_xent_loss_of(d, row, label, mean, *factor, &r, threadIdx.x);
    if (!d.dlogits.data) return;
    ampi_k_xent_gradients<type>(d, t, at, logits.wide, &r);
    __syncthreads();
    if (threadIdx.x == 0 && !d.softmax)
        amp_store(d.dlogits.data, d.dlogits.dtype, at + (size_t)label, amp_xent_grad_label(&r));
}
/* What all rows count, in every thread. */
AMPI_K double ampi_k_xent_counted(const amp_xent_job &d, const double *counts, uint32_t lanes) {
    if (d.sum) return 0.0;
    return lanes == 1u ? counts[0] : ampi_k_join(counts, lanes);
}
/* 1 in the block that is the last to come here; the ticket wraps to 0. */
AMPI_K int ampi_k_xent_last(uint32_t *ticket) {
    AMP_SHARED(uint32_t, last, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        AMP_FENCE();
        last[0] = atomicInc((unsigned *)ticket, gridDim.x - 1u) == gridDim.x - 1u;
        AMP_FENCE();
    }
    __syncthreads();
    return (int)last[0];
}
/* Where one block is enough for the losses of all rows, up to AMP_CHUNK, the last one adds them up. A function of its
   own, so that the rows before it have all registers. */
AMPI_K_APART void ampi_k_xent_end(float *loss, const float *row_loss, uint32_t n, double weight, uint32_t *ticket) {
    AMP_SHARED(double, part, AMP_PARTS);
    const uint32_t me = threadIdx.x % AMPI_TEAM;
    uint32_t p, i, k;
    double sum;
    if (!ampi_k_xent_last(ticket)) return;
    for (p = threadIdx.x / AMPI_TEAM; p < AMP_PARTS; p += AMPI_TEAMS) {
        float lane[8] = {0, 0, 0, 0, 0, 0, 0, 0};
        for (i = p * AMP_PART + me; i < n && i < (p + 1u) * AMP_PART; i += AMP_LANES) {
            AMP_UNROLL
            for (k = 0; k < 8u; k++)
                if (i + AMPI_TEAM * k < n) lane[k] = amp_add(lane[k], AMP_LOAD_L2(&row_loss[i + AMPI_TEAM * k]));
        }
        lane[0] = ampi_k_join_team(lane);
        if (me == 0) part[p] = amp_widen(lane[0]);
    }
    sum = ampi_k_halve(part, ampi_k_power_of_two(n / AMP_PART + (n % AMP_PART != 0), AMP_PARTS));
    if (threadIdx.x == 0) *loss = amp_narrow(amp_dmul(sum, weight));
}
AMPI_K double ampi_k_xent_weight(const amp_xent_job &d, const double *counts, uint32_t lanes) {
    return amp_xent_weight(&d, ampi_k_xent_counted(d, counts, lanes));
}
/* This block's row of a round, in each round a different block's: rows of one alignment, which take longer than others,
   may be as many apart as there are blocks. */
AMPI_K size_t ampi_k_xent_turned(size_t first) {
    return first + (blockIdx.x + (uint32_t)(first / gridDim.x)) % gridDim.x;
}
/* type: of the logits. AMP_AUTO: any, and rows with a target for each class; one kernel for all of these, because each
   takes nvcc a while. */
template <int type>
static __global__ void __launch_bounds__(AMP_BLOCK, 2)
    ampi_k_xent(const AMP_GRID_CONSTANT amp_xent_job d, const double *counts, uint32_t lanes, uint32_t *ticket) {
    AMP_SHARED(ampi_k_room, room, 1);
    AMP_SHARED(float, top, AMP_PARTS);
    AMP_SHARED(float, factor, 1); /* not in a register: the terms need all of them */
    const amp_dtype t = type == AMP_AUTO ? d.logits.dtype : (amp_dtype)type;
    double counted = ampi_k_xent_counted(d, counts, lanes);
    size_t first, row;
    if (threadIdx.x == 0) factor[0] = amp_xent_factor(&d, counted);
    __syncthreads();
    for (first = 0; first < d.rows; first += gridDim.x) {
        row = ampi_k_xent_turned(first);
        if (row < d.rows) ampi_k_xent_row<type>(d, t, row, factor, room, top);
    }
    if (ticket) ampi_k_xent_end(d.loss, d.row_loss, (uint32_t)d.all, ampi_k_xent_weight(d, counts, lanes), ticket);
}

/* ---- rows of up to AMP_PART classes: one part of the rule of sums, so a team takes a row or, of AMPI_K_SHORT classes
   at most, a thread. A logit is read once: its term stays in a register for its gradient. A class that is not there is
   -Inf: its term is 0, and it is not the largest. ---- */
#define AMPI_K_SHORT 16u
#define AMPI_K_EACH  (AMP_PART / AMPI_TEAM) /* classes of a team's thread: every 32nd */

/* Gradients of any dtype, or with a NaN. */
AMPI_K void ampi_k_xent_one_by_one(
    const amp_xent_job &d, amp_dtype t, size_t at, const amp_xent_row *r, uint32_t me, uint32_t all) {
    size_t i;
    AMP_NO_UNROLL
    for (i = me; i < d.classes; i += all)
        amp_store(d.dlogits.data, d.dlogits.dtype, at + i, amp_xent_grad_one(r, amp_load(d.logits.data, t, at + i)));
}
AMPI_K int ampi_k_xent_is_plain(const amp_xent_job &d, amp_dtype t, const amp_xent_row *r) {
    return d.dlogits.dtype == t && ampi_k_xent_no_nan(r);
}
/* Two gradients to patterns, the quick way. */
AMPI_K uint32_t ampi_k_xent_pair(uint32_t low, uint32_t high, amp_dtype t) {
    return t == AMP_F16 ? AMP_TO_HALVES(low, high) : AMP_TO_BF16S(low, high);
}
AMPI_K float ampi_k_short_sum(const float term[AMPI_K_SHORT]) { /* the rest of its lanes are 0 */
    float x[AMPI_K_SHORT];
    uint32_t half, k;
    AMP_UNROLL
    for (k = 0; k < AMPI_K_SHORT; k++)
        x[k] = amp_add(0.0f, term[k]);
    AMP_UNROLL
    for (half = AMPI_K_SHORT / 2u; half; half /= 2u) {
        AMP_UNROLL
        for (k = 0; k < AMPI_K_SHORT / 2u; k++)
            if (k < half) x[k] = amp_add(x[k], x[k + half]);
    }
    return x[0];
}
AMPI_K void ampi_k_short_load(float x[AMPI_K_SHORT], const amp_xent_job &d, amp_dtype t, size_t at) {
    uint32_t h, k, y[8];
    AMP_UNROLL
    for (h = 0; h < AMPI_K_SHORT; h += 8u) {
        uint32_t m = ampi_k_group(h, d.classes);
        ampi_k_raw raw;
        ampi_k_take8(&raw, d.logits.data, t, at + h, m, 0);
        if (t == AMP_F32)
            ampi_k_patterns8(y, &raw, AMP_F32);
        else
            ampi_k_quick8(y, &raw, t);
        AMP_UNROLL
        for (k = 0; k < 8u; k++)
            x[h + k] = ampi_float(k < m ? y[k] : 0xff800000u);
    }
}
AMPI_K void ampi_k_short_store(
    const float term[AMPI_K_SHORT], const amp_xent_job &d, amp_dtype t, size_t at, const amp_xent_row *r) {
    uint32_t h, k, y[8], w;
    AMP_UNROLL
    for (h = 0; h < AMPI_K_SHORT; h += 8u) {
        uint32_t m = ampi_k_group(h, d.classes);
        AMP_UNROLL
        for (k = 0; k < 8u; k++)
            y[k] = ampi_bits(amp_fma(term[h + k], r->by, amp_negative(r->less)));
        AMP_UNROLL
        for (k = 0; t != AMP_F32 && k < 8u; k += 2u) {
            w = ampi_k_xent_pair(y[k], y[k + 1u], t);
            y[k] = w & 0xffffu;
            y[k + 1u] = w >> 16;
        }
        ampi_k_store8(y, d.dlogits.data, t, at + h, m, 0);
    }
}
AMPI_K void ampi_k_xent_thread(const amp_xent_job &d, amp_dtype t, size_t row, float by) {
    size_t at = row * d.ld;
    int64_t label = amp_xent_label(&d, d.first + row);
    float x[AMPI_K_SHORT], mean = 0.0f;
    amp_xent_row r;
    uint32_t k;
    if (ampi_k_xent_ends(d, row, label, 0, 1)) return;
    r.target = amp_load(d.logits.data, t, at + (size_t)label);
    ampi_k_short_load(x, d, t, at);
    r.max = AMP_XENT_LEAST;
    AMP_UNROLL
    for (k = 0; k < AMPI_K_SHORT; k++)
        r.max = ampi_larger(r.max, x[k]);
    if (ampi_nonzero(d.smoothing)) {
        float y[AMPI_K_SHORT];
        AMP_UNROLL
        for (k = 0; k < AMPI_K_SHORT; k++)
            y[k] = k < d.classes ? x[k] : 0.0f;
        mean = amp_narrow(amp_ddiv(amp_widen(ampi_k_short_sum(y)), (double)d.classes));
    }
    AMP_UNROLL
    for (k = 0; k < AMPI_K_SHORT; k++)
        x[k] = amp_xent_term(x[k], r.max);
    r.sum = ampi_k_short_sum(x);
    ampi_k_xent_loss_of(d, row, label, mean, by, &r, 0);
    if (!d.dlogits.data) return;
    if (ampi_k_xent_is_plain(d, t, &r))
        ampi_k_short_store(x, d, t, at, &r);
    else
        ampi_k_xent_one_by_one(d, t, at, &r, 0, 1);
    if (!d.softmax) amp_store(d.dlogits.data, d.dlogits.dtype, at + (size_t)label, amp_xent_grad_label(&r));
}

/* The sum of a part of which this thread has every 32nd element, in each thread of the team. */
AMPI_K float ampi_k_team_sum(const float x[AMPI_K_EACH], uint32_t n) {
    float lane[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    uint32_t q, k;
    AMP_UNROLL
    for (q = 0; q < AMPI_K_EACH; q += 8u) {
        if (q * AMPI_TEAM >= n) continue;
        AMP_UNROLL
        for (k = 0; k < 8u; k++)
            lane[k] = amp_add(lane[k], x[q + k]);
    }
    return ampi_k_join_team(lane);
}
AMPI_K float ampi_k_team_load(float x[AMPI_K_EACH], const amp_xent_job &d, amp_dtype t, size_t at, uint32_t n) {
    const uint32_t me = threadIdx.x % AMPI_TEAM, size = (uint32_t)amp_dtype_size(t);
    const char *from = (const char *)d.logits.data + (at + me) * size;
    float top = AMP_XENT_LEAST;
    uint32_t q, k;
    AMP_UNROLL
    for (q = 0; q < AMPI_K_EACH; q += 8u) {
        if (q * AMPI_TEAM >= n) continue;
        AMP_UNROLL
        for (k = q; k < q + 8u; k++) {
            x[k] = ampi_float(0xff800000u);
            if (me + AMPI_TEAM * k < n) x[k] = ampi_float(ampi_k_quick(ampi_load_pattern(from, t, AMPI_TEAM * k), t));
        }
    }
    AMP_UNROLL
    for (q = 0; q < AMPI_K_EACH; q += 8u) {
        if (q * AMPI_TEAM >= n) continue;
        AMP_UNROLL
        for (k = q; k < q + 8u; k++)
            top = ampi_larger(top, x[k]);
    }
    return ampi_k_team_largest(top);
}
AMPI_K float ampi_k_team_mean(const float x[AMPI_K_EACH], uint32_t n) {
    const uint32_t me = threadIdx.x % AMPI_TEAM;
    float y[AMPI_K_EACH];
    uint32_t k;
    AMP_UNROLL
    for (k = 0; k < AMPI_K_EACH; k++)
        y[k] = me + AMPI_TEAM * k < n ? x[k] : 0.0f;
    return amp_narrow(amp_ddiv(amp_widen(ampi_k_team_sum(y, n)), (double)n));
}
AMPI_K void ampi_k_team_store(
    const float term[AMPI_K_EACH], const amp_xent_job &d, amp_dtype t, size_t at, uint32_t n, const amp_xent_row *r) {
    const uint32_t me = threadIdx.x % AMPI_TEAM, size = (uint32_t)amp_dtype_size(t);
    char *to = (char *)d.dlogits.data + (at + me) * size;
    uint32_t q, k;
    AMP_UNROLL
    for (q = 0; q < AMPI_K_EACH; q += 8u) {
        if (q * AMPI_TEAM >= n) continue;
        AMP_UNROLL
        for (k = q; k < q + 8u; k += 2u) {
            uint32_t low = ampi_bits(amp_fma(term[k], r->by, amp_negative(r->less)));
            uint32_t high = ampi_bits(amp_fma(term[k + 1u], r->by, amp_negative(r->less)));
            if (t != AMP_F32) low = ampi_k_xent_pair(low, high, t);
            if (t != AMP_F32) high = low >> 16;
            if (me + AMPI_TEAM * k < n) ampi_store_pattern(to, t, AMPI_TEAM * k, low);
            if (me + AMPI_TEAM * (k + 1u) < n) ampi_store_pattern(to, t, AMPI_TEAM * (k + 1u), high);
        }
    }
}
AMPI_K void ampi_k_xent_team(const amp_xent_job &d, amp_dtype t, size_t row, float by) {
    const uint32_t me = threadIdx.x % AMPI_TEAM, n = (uint32_t)d.classes;
    size_t at = row * d.ld;
    int64_t label = amp_xent_label(&d, d.first + row);
    float x[AMPI_K_EACH], mean = 0.0f;
    amp_xent_row r;
    uint32_t q, k;
    if (ampi_k_xent_ends(d, row, label, me, AMPI_TEAM)) return;
    r.target = amp_load(d.logits.data, t, at + (size_t)label);
    r.max = ampi_k_team_load(x, d, t, at, n);
    if (ampi_nonzero(d.smoothing)) mean = ampi_k_team_mean(x, n);
    AMP_UNROLL
    for (q = 0; q < AMPI_K_EACH; q += 8u) {
        if (q * AMPI_TEAM >= n) continue;
        AMP_UNROLL
        for (k = q; k < q + 8u; k++)
            x[k] = amp_xent_term(x[k], r.max);
    }
    r.sum = ampi_k_team_sum(x, n);
    ampi_k_xent_loss_of(d, row, label, mean, by, &r, me);
    if (!d.dlogits.data) return;
    AMP_SYNC_TEAM(); /* dlogits may be logits: the target was read by all */
    if (ampi_k_xent_is_plain(d, t, &r))
        ampi_k_team_store(x, d, t, at, n, &r);
    else
        ampi_k_xent_one_by_one(d, t, at, &r, me, AMPI_TEAM);
    AMP_SYNC_TEAM();
    if (me == 0 && !d.softmax) amp_store(d.dlogits.data, d.dlogits.dtype, at + (size_t)label, amp_xent_grad_label(&r));
}
template <int type>
static __global__ void __launch_bounds__(AMP_BLOCK, 2)
    ampi_k_xent_few(const AMP_GRID_CONSTANT amp_xent_job d, const double *counts, uint32_t lanes, uint32_t *ticket) {
    const float by = amp_xent_factor(&d, ampi_k_xent_counted(d, counts, lanes));
    const uint32_t side = d.classes <= AMPI_K_SHORT ? AMP_BLOCK : AMPI_TEAMS; /* rows at a time */
    size_t row = (size_t)blockIdx.x * side + threadIdx.x / (AMP_BLOCK / side);
    for (; row < d.rows; row += (size_t)gridDim.x * side) {
        if (side == AMP_BLOCK)
            ampi_k_xent_thread(d, (amp_dtype)type, row, by);
        else
            ampi_k_xent_team(d, (amp_dtype)type, row, by);
    }
    if (ticket) ampi_k_xent_end(d.loss, d.row_loss, (uint32_t)d.all, ampi_k_xent_weight(d, counts, lanes), ticket);
}

/* Sums over all rows, of what they count and, where there are many, of row_loss, where rows left out hold 0: a block
   per lane of the rule's last level; whoever needs the sum adds up the lanes. */
template <class X> AMPI_K void ampi_k_xent_lane(const X &x, uint64_t rows, double *lanes, ampi_k_room *room) {
    uint64_t chunks = rows / AMP_CHUNK + (rows % AMP_CHUNK != 0), c;
    double sum = 0.0;
    for (c = blockIdx.x; c < chunks; c += AMP_LANES) {
        uint64_t left = rows - c * AMP_CHUNK;
        uint32_t n = (uint32_t)(left < AMP_CHUNK ? left : AMP_CHUNK);
        sum = amp_dadd(sum, ampi_k_sum_chunk(x, c * AMP_CHUNK, n, room));
    }
    if (threadIdx.x == 0) lanes[blockIdx.x] = sum;
}
/* The same of rows that count 1 or 0: their sums are exact in every order. */
AMPI_K void ampi_k_xent_rows(const amp_xent_job &d, double *lanes, ampi_k_room *room) {
    const uint64_t step = (uint64_t)AMP_LANES * AMP_CHUNK;
    uint64_t from, i, n = 0;
    for (from = (uint64_t)blockIdx.x * AMP_CHUNK; from < d.all; from += step) {
        const uint64_t end = d.all - from < AMP_CHUNK ? d.all : from + AMP_CHUNK;
        for (i = from + threadIdx.x; i < end; i += AMP_BLOCK)
            n += ampi_nonzero(amp_xent_row_weight(&d, amp_xent_label(&d, i))) != 0;
    }
    room->chunk[threadIdx.x] = (double)n;
    __syncthreads();
    if (threadIdx.x >= AMPI_TEAM) return;
    n = 0;
    for (i = threadIdx.x; i < AMP_BLOCK; i += AMPI_TEAM)
        n += (uint64_t)room->chunk[i];
    for (i = AMPI_TEAM / 2u; i; i /= 2u)
        n += AMP_SHUFFLE(n, (int)i);
    if (threadIdx.x == 0) lanes[blockIdx.x] = (double)n;
}
static __global__ void __launch_bounds__(AMP_BLOCK)
    ampi_k_xent_counts(const AMP_GRID_CONSTANT amp_xent_job d, double *lanes) {
    AMP_SHARED(ampi_k_room, room, 1);
    ampi_k_counts counts = {d};
    if (d.weights.data)
        ampi_k_xent_lane(counts, d.all, lanes, room);
    else
        ampi_k_xent_rows(d, lanes, room);
}
static __global__ void __launch_bounds__(AMP_BLOCK)
    ampi_k_xent_losses(const AMP_GRID_CONSTANT amp_xent_job d, const double *counts, double *lanes, uint32_t *ticket) {
    AMP_SHARED(ampi_k_room, room, 1);
    ampi_k_floats losses = {d.row_loss};
    double sum, weight;
    ampi_k_xent_lane(losses, d.all, lanes, room);
    if (!ampi_k_xent_last(ticket)) return;
    sum = ampi_k_join(lanes, gridDim.x);
    weight = ampi_k_xent_weight(d, counts, gridDim.x);
    if (threadIdx.x == 0) *d.loss = amp_narrow(amp_dmul(sum, weight));
}

/* ---- dropout ---- */

/* Groups of eight, which begin where groups of four random words do. */
AMPI_K void ampi_k_dropout_groups(const amp_dropout_job &d, const ampi_k_keys &keys, uint64_t threshold, float factor,
    uint64_t head, uint64_t groups, int wide) {
    uint64_t i = (uint64_t)blockIdx.x * AMP_BLOCK + threadIdx.x, step = (uint64_t)gridDim.x * AMP_BLOCK;
    uint32_t x[8], r[8], k, last = (uint32_t)(threshold - 1u); /* words up to it drop, in 32 bits */
    int some = threshold != 0;
    for (; i < groups; i += step) {
        uint64_t at = head + 8u * i, word = d.rng.offset + at;
        ampi_k_load8(x, d.x.data, d.x.dtype, at, 8, wide);
        ampi_k_philox(r, &keys, d.rng.stream, word >> 2);
        ampi_k_philox(r + 4, &keys, d.rng.stream, (word + 4u) >> 2);
        for (k = 0; k < 8u; k++)
            x[k] = r[k] <= last && some ? 0u : ampi_bits(amp_mul(ampi_float(x[k]), factor)); /* amp_dropout_one */
        ampi_k_nearest8(x, d.y.dtype);
        ampi_k_store8(x, d.y.data, d.y.dtype, at, 8, wide);
    }
}
static __global__ void __launch_bounds__(AMP_BLOCK, 2)
    ampi_k_dropout(const AMP_GRID_CONSTANT amp_dropout_job d, const AMP_GRID_CONSTANT ampi_k_keys keys,
        uint64_t threshold, float factor, uint64_t head, uint64_t groups, int wide) {
    uint64_t i = (uint64_t)blockIdx.x * AMP_BLOCK + threadIdx.x, step = (uint64_t)gridDim.x * AMP_BLOCK;
    if (wide)
        ampi_k_dropout_groups(d, keys, threshold, factor, head, groups, 1);
    else
        ampi_k_dropout_groups(d, keys, threshold, factor, head, groups, 0);
    for (; i < d.count - 8u * groups; i += step) {
        uint64_t at = i < head ? i : i + 8u * groups;
        uint32_t word = amp_random(d.rng.seed, d.rng.stream, d.rng.offset + at);
        float v = amp_dropout_one(amp_load(d.x.data, d.x.dtype, at), word, threshold, factor);
        amp_store(d.y.data, d.y.dtype, at, v);
    }
}

#define AMPI_K_LOSSES(X) \
    X(ampi_k_xent<AMP_F32>) \
    X(ampi_k_xent<AMP_F16>) \
    X(ampi_k_xent<AMP_BF16>) \
    X(ampi_k_xent<AMP_AUTO>) \
    X(ampi_k_xent_few<AMP_F32>) \
    X(ampi_k_xent_few<AMP_F16>) \
    X(ampi_k_xent_few<AMP_BF16>) X(ampi_k_xent_counts) X(ampi_k_xent_losses) X(ampi_k_dropout)
