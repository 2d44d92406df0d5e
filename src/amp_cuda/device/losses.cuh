/* ==== >>device-losses ============================================================================================
   Cross-entropy, a block per row of logits; dropout.
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
            if (k < m) v[k] = x[i + k];
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
/* Where each class has a target of its own: those of one row, q; and what they add to its loss. */
struct ampi_k_targets {
    const amp_xent_job &d;
    size_t at, label; /* the row's place in the matrix */
    float keep, share;
    AMPI_K_AT void at8(float v[8], uint64_t i, uint32_t m) const {
        uint32_t k;
        for (k = 0; k < 8u; k++) {
            if (k >= m) continue;
            v[k] = i + k == label ? 1.0f : 0.0f;
            if (d.targets.data) v[k] = amp_load(d.targets.data, d.targets.dtype, at + i + k);
            v[k] = amp_xent_target(keep, share, v[k]);
            if (d.weights.data) v[k] = amp_mul(v[k], amp_load(d.weights.data, d.weights.dtype, i + k));
        }
    }
};
struct ampi_k_misses {
    const ampi_k_targets &q;
    float max;
    AMPI_K_AT void at8(float v[8], uint64_t i, uint32_t m) const {
        uint32_t k;
        q.at8(v, i, m);
        for (k = 0; k < 8u; k++)
            if (k < m) v[k] = amp_xent_miss(v[k], max, amp_load(q.d.logits.data, q.d.logits.dtype, q.at + i + k));
    }
};

/* A row that is left out, or whose label is wrong. */
AMPI_K void ampi_k_xent_fill(const amp_xent_job &d, size_t row, float value) {
    size_t i;
    if (d.row_loss && threadIdx.x == 0) d.row_loss[d.first + row] = value;
    if (!d.dlogits.data) return;
    for (i = threadIdx.x; i < d.classes; i += AMP_BLOCK)
        amp_store(d.dlogits.data, d.dlogits.dtype, row * d.ld + i, value);
}
AMPI_K void ampi_k_xent_pad(const amp_xent_job &d, size_t row) {
    size_t i;
    for (i = threadIdx.x; i < d.padding; i += AMP_BLOCK)
        amp_store(d.dlogits.data, d.dlogits.dtype, row * d.ld + d.classes + i, 0.0f);
}
/* A thread's eight lanes of a part that is complete, from its first element on, fetched before any is looked at. NaN
   may become any NaN. Not for FP8. */
#define AMPI_LANE_ROWS (AMP_PART / AMP_LANES)
typedef struct ampi_k_lane_rows { uint32_t of[AMPI_LANE_ROWS][8]; } ampi_k_lane_rows;
AMPI_K void ampi_k_xent_fetch(ampi_k_lane_rows *x, const void *p, amp_dtype t, size_t at, int wide) {
    ampi_k_raw r[AMPI_LANE_ROWS];
    uint32_t q;
    if (wide || t == AMP_F32) {
        AMP_UNROLL
        for (q = 0; q < AMPI_LANE_ROWS; q++)
            ampi_k_fetch8(&r[q], p, t, at + q * AMP_LANES, wide);
    } else {
        AMP_UNROLL
        for (q = 0; q < AMPI_LANE_ROWS; q++)
            ampi_k_fetch_words(&r[q], p, at + q * AMP_LANES);
    }
    AMP_UNROLL
    for (q = 0; q < AMPI_LANE_ROWS; q++) {
        if (t == AMP_F32)
            ampi_k_patterns8(x->of[q], &r[q], t);
        else
            ampi_k_quick8(x->of[q], &r[q], t);
    }
}
AMPI_K float ampi_k_team_largest(float top) { /* to each of its threads */
    uint32_t k;
    AMP_UNROLL
    for (k = AMPI_TEAM / 2u; k; k /= 2u)
        top = ampi_larger(top, AMP_SHUFFLE(top, k));
    return top;
}
/* A part of a row, n logits from element `at` on: this thread's eight lanes of its terms. Returns the part's largest
   logit to every thread of the team. A complete part is read once; what a row ends with, and FP8, twice. */
AMPI_K float ampi_k_xent_part(const void *p, amp_dtype t, size_t at, uint32_t n, int wide, float lane[8]) {
    uint32_t slot = threadIdx.x % AMPI_TEAM * 8u, q, k, i;
    int once = n == AMP_PART && amp_dtype_size(t) > 1u;
    float top = AMP_XENT_LEAST, v[8];
    ampi_k_lane_rows x;
    ampi_k_logits part = {p, t, at, wide};
    if (once) {
        ampi_k_xent_fetch(&x, p, t, at + slot, wide);
        AMP_UNROLL
        for (q = 0; q < 8u * AMPI_LANE_ROWS; q++)
            top = ampi_larger(top, ampi_float(x.of[q / 8u][q % 8u]));
    }
    AMP_NO_UNROLL
    for (i = slot; !once && i < n; i += AMP_LANES) {
        part.at8(v, i, ampi_k_group(i, n));
        for (k = 0; k < 8u; k++)
            if (i + k < n) top = ampi_larger(top, v[k]);
    }
    top = ampi_k_team_largest(top);
    for (k = 0; k < 8u; k++)
        lane[k] = 0.0f;
    if (once) {
        AMP_UNROLL
        for (q = 0; q < 8u * AMPI_LANE_ROWS; q++)
            lane[q % 8u] = amp_add(lane[q % 8u], amp_xent_term(ampi_float(x.of[q / 8u][q % 8u]), top));
    }
    AMP_NO_UNROLL
    for (i = slot; !once && i < n; i += AMP_LANES) {
        part.at8(v, i, ampi_k_group(i, n));
        for (k = 0; k < 8u; k++)
            if (i + k < n) lane[k] = amp_add(lane[k], amp_xent_term(v[k], top));
    }
    return top;
}
/* A chunk's parts, up to AMP_PARTS of them: their sums to room->part, their largest logits to top[]. */
AMPI_K void ampi_k_xent_parts(
    const void *p, amp_dtype t, size_t at, uint32_t n, int wide, ampi_k_room *room, float *top) {
    uint32_t team = threadIdx.x / AMPI_TEAM, slot = threadIdx.x % AMPI_TEAM * 8u, from, r, k;
    for (r = 0; r * AMP_PART < n; r += AMPI_TEAMS) {
        float lane[8], most, sum;
        from = (r + team) * AMP_PART;
        k = from < n ? n - from : 0u;
        most = ampi_k_xent_part(p, t, at + from, k < AMP_PART ? k : AMP_PART, wide, lane);
        if (slot == 0) top[r + team] = most;
        AMP_UNROLL
        for (k = 0; k < 8u; k++)
            room->lane[team * AMP_LANES + slot + k] = lane[k];
        sum = ampi_k_join_lanes(room);
        if (threadIdx.x < AMPI_TEAMS) room->part[r + threadIdx.x] = amp_widen(sum);
    }
    __syncthreads();
}
/* The sum of a row's terms and *max, in every thread; see amp_xent_row. */
AMPI_K float ampi_k_xent_sum(
    const amp_xent_job &d, amp_dtype t, size_t at, int wide, ampi_k_room *room, float *top, float *max) {
    uint64_t chunks = d.classes / AMP_CHUNK + (d.classes % AMP_CHUNK != 0), c;
    float before, now = AMP_XENT_LEAST;
    double sum = 0.0;
    uint32_t i, n, parts;
    for (i = threadIdx.x; i < AMP_LANES; i += AMP_BLOCK)
        room->chunk[i] = 0.0;
    for (c = 0; c < chunks; c++) {
        uint64_t left = d.classes - c * AMP_CHUNK;
        n = (uint32_t)(left < AMP_CHUNK ? left : AMP_CHUNK);
        parts = n / AMP_PART + (n % AMP_PART != 0);
        ampi_k_xent_parts(d.logits.data, t, at + c * AMP_CHUNK, n, wide, room, top);
        before = now;
        for (i = 0; i < parts; i++)
            now = ampi_larger(now, top[i]);
        for (i = threadIdx.x; i < AMP_PARTS; i += AMP_BLOCK)
            room->part[i] = i < parts ? amp_xent_rescaled(room->part[i], top[i], now) : 0.0;
        for (i = threadIdx.x; amp_less(before, now) && c && i < AMP_LANES; i += AMP_BLOCK)
            room->chunk[i] = amp_xent_rescaled(room->chunk[i], before, now);
        sum = ampi_k_halve(room->part, ampi_k_power_of_two(parts, AMP_PARTS));
        if (threadIdx.x == 0) room->chunk[c % AMP_LANES] = amp_dadd(room->chunk[c % AMP_LANES], sum);
    }
    if (chunks > 1u) sum = ampi_k_halve(room->chunk, AMP_LANES);
    __syncthreads();
    *max = now;
    return amp_narrow(sum);
}
/* Gradients but for the label's, which comes last. */
AMPI_K void ampi_k_xent_any(const amp_xent_job &d, amp_dtype t, size_t at, int wide, const amp_xent_row *row) {
    const char *out = (const char *)d.dlogits.data + at * amp_dtype_size(d.dlogits.dtype);
    int wide_out = ampi_k_aligned(out, d.dlogits.dtype);
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
/* The same for arrays of one dtype of 16 bits, aligned alike, and without a NaN. */
AMPI_K void ampi_k_xent_alike(
    const amp_xent_job &d, amp_dtype t, size_t at, const ampi_k_ends *ends, const amp_xent_row *row) {
    uint32_t classes = (uint32_t)d.classes, groups = ampi_k_groups(ends, classes), i, k;
    for (i = threadIdx.x; i < groups; i += AMP_BLOCK) {
        size_t first = at + ends->head + 8u * i;
        ampi_k_raw r;
        uint32_t y[8], w[4];
        ampi_k_fetch8(&r, d.logits.data, t, first, 1);
        ampi_k_quick8(y, &r, t);
        AMP_UNROLL
        for (k = 0; k < 8u; k++)
            y[k] = ampi_bits(amp_xent_grad_one(row, ampi_float(y[k])));
        (void)ampi_k_quick_words(w, y, t);
        ampi_k_put4((char *)d.dlogits.data + 2u * first, w, 1);
    }
    for (i = threadIdx.x; i < classes - 8u * groups; i += AMP_BLOCK) {
        size_t one = at + ampi_k_outside(ends, groups, i);
        amp_store(d.dlogits.data, t, one, amp_xent_grad_one(row, amp_load(d.logits.data, t, one)));
    }
}
AMPI_K void ampi_k_xent_gradients(const amp_xent_job &d, amp_dtype t, size_t at, int wide, const amp_xent_row *row) {
    int no_nan = amp_is_finite(row->sum) && amp_is_finite(row->by) && amp_is_finite(row->less); /* else sum is one */
    ampi_k_ends ends = ampi_k_no_ends();
    ampi_k_meet(&ends, d.logits.data, t, at);
    ampi_k_meet(&ends, d.dlogits.data, d.dlogits.dtype, at);
    if (amp_dtype_size(t) == 2u && t == d.dlogits.dtype && no_nan && !ends.never)
        ampi_k_xent_alike(d, t, at, &ends, row);
    else
        ampi_k_xent_any(d, t, at, wide, row);
}

/* A row with a target for each class, whose maximum and sum are known. */
AMPI_K void ampi_k_xent_each(const amp_xent_job &d, amp_dtype t, size_t row, const ampi_k_targets &q, amp_xent_row *r,
    float factor, ampi_k_room *room) {
    ampi_k_misses misses = {q, r->max};
    float all = amp_narrow(ampi_k_sum(q, d.classes, room)), miss = amp_narrow(ampi_k_sum(misses, d.classes, room)),
          v[8];
    size_t i;
    amp_xent_row_end(r, &d, factor, all);
    if (d.row_loss && threadIdx.x == 0) d.row_loss[d.first + row] = amp_xent_loss_each(miss, all, r->sum);
    if (!d.dlogits.data) return;
    for (i = threadIdx.x; i < d.classes; i += AMP_BLOCK) {
        q.at8(v, i, 1);
        v[0] = amp_xent_grad_each(r, amp_load(d.logits.data, t, q.at + i), v[0]);
        amp_store(d.dlogits.data, d.dlogits.dtype, q.at + i, v[0]);
    }
}
/* A block per row, of logits of one dtype. */
AMPI_K void ampi_k_xent_row(
    const amp_xent_job &d, amp_dtype t, size_t row, const float *factor, ampi_k_room *room, float *top) {
    size_t at = row * d.ld;
    int64_t label = amp_xent_label(&d, d.first + row);
    float mean = 0.0f, loss, by = *factor, weight = 1.0f;
    amp_xent_row r;
    ampi_k_logits logits = {d.logits.data, t, at, 0};
    ampi_k_xent_pad(d, row);
    if (amp_xent_is_wrong(&d, label)) { /* left out, or an error made visible */
        ampi_k_xent_fill(d, row, label < 0 ? 0.0f : ampi_float(0x7fc00000u));
        return;
    }
    logits.wide = ampi_k_aligned((const char *)d.logits.data + at * amp_dtype_size(t), t);
    r.target = amp_load(logits.x, t, at + (size_t)label); /* before dlogits, which may be logits */
    r.sum = ampi_k_xent_sum(d, t, at, logits.wide, room, top, &r.max);
    if (d.each) {
        ampi_k_targets q = {d, at, (size_t)label, amp_sub(1.0f, d.smoothing), amp_div(d.smoothing, (float)d.classes)};
        ampi_k_xent_each(d, t, row, q, &r, by, room);
        return;
    }
    if (ampi_nonzero(d.smoothing)) mean = amp_narrow(amp_ddiv(ampi_k_sum(logits, d.classes, room), (double)d.classes));
    if (d.weights.data) weight = amp_xent_row_weight(&d, label);
    if (d.weights.data) by = amp_mul(by, weight);
    amp_xent_row_end(&r, &d, by, 1.0f);
    loss = amp_xent_loss_one(d.smoothing, r.max, r.target, mean, r.sum);
    if (d.weights.data) loss = amp_mul(loss, weight);
    if (d.row_loss && threadIdx.x == 0) d.row_loss[d.first + row] = loss;
    if (!d.dlogits.data) return;
    ampi_k_xent_gradients(d, t, at, logits.wide, &r);
    __syncthreads();
    if (threadIdx.x == 0 && !d.softmax)
        amp_store(d.dlogits.data, d.dlogits.dtype, at + (size_t)label, amp_xent_grad_label(&r));
}
/* The sum of what lies in lanes of the rule's last level, n of them; in every thread. */
AMPI_K double ampi_k_xent_lanes_sum(const double *lanes, uint32_t n, double *room) {
    uint32_t i;
    for (i = threadIdx.x; i < AMP_LANES; i += AMP_BLOCK)
        room[i] = i < n ? lanes[i] : 0.0;
    return ampi_k_halve(room, AMP_LANES);
}
template <int type>
static __global__ void __launch_bounds__(AMP_BLOCK, 2)
    ampi_k_xent(const AMP_GRID_CONSTANT amp_xent_job d, const double *counts, uint32_t lanes) {
    AMP_SHARED(ampi_k_room, room, 1);
    AMP_SHARED(float, top, AMP_PARTS + AMPI_TEAMS);
    AMP_SHARED(float, factor, 1); /* not in a register: the terms need all of them */
    double counted = d.sum ? 0.0 : ampi_k_xent_lanes_sum(counts, lanes, room->chunk);
    size_t row;
    if (threadIdx.x == 0) factor[0] = amp_xent_factor(&d, counted);
    __syncthreads();
    for (row = blockIdx.x; row < d.rows; row += gridDim.x)
        ampi_k_xent_row(d, (amp_dtype)type, row, factor, room, top);
}

/* Sums over all rows, of what they count and of row_loss, where rows left out hold 0: a block per lane of the rule's
   last level; whoever needs the sum adds up the lanes. */
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
static __global__ void __launch_bounds__(AMP_BLOCK)
    ampi_k_xent_counts(const AMP_GRID_CONSTANT amp_xent_job d, double *lanes) {
    AMP_SHARED(ampi_k_room, room, 1);
    ampi_k_counts counts = {d};
    ampi_k_xent_lane(counts, d.all, lanes, room);
}
static __global__ void __launch_bounds__(AMP_BLOCK)
    ampi_k_xent_lanes(const AMP_GRID_CONSTANT amp_xent_job d, double *lanes) {
    AMP_SHARED(ampi_k_room, room, 1);
    ampi_k_floats losses;
    losses.x = d.row_loss;
    ampi_k_xent_lane(losses, d.all, lanes, room);
}
static __global__ void __launch_bounds__(AMP_BLOCK) ampi_k_xent_loss(
    const AMP_GRID_CONSTANT amp_xent_job d, const double *counts, const double *losses, uint32_t lanes) {
    AMP_SHARED(double, lane, AMP_LANES);
    double counted = d.sum ? 0.0 : ampi_k_xent_lanes_sum(counts, lanes, lane);
    double sum = ampi_k_xent_lanes_sum(losses, lanes, lane);
    if (threadIdx.x == 0) *d.loss = amp_narrow(amp_dmul(sum, amp_xent_weight(&d, counted)));
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
    X(ampi_k_xent<AMP_F32>) X(ampi_k_xent_counts) X(ampi_k_xent_lanes) X(ampi_k_xent_loss) X(ampi_k_dropout)
