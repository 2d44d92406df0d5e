/* ---- sums by the rule of amp.h. A team of 32 threads adds up a part; a block has AMPI_TEAMS, which take turns ----
   tests: tests/test_step.c, tests/test_products.c */
#define AMPI_TEAM  32u
#define AMPI_TEAMS (AMP_BLOCK / AMPI_TEAM)
typedef struct ampi_k_room { /* in shared memory */
    float lane[AMPI_TEAMS * AMP_LANES], sum[AMPI_TEAMS], by[AMPI_TEAMS];
    double part[AMP_PARTS + AMPI_TEAMS], chunk[AMP_LANES];
} ampi_k_room;

AMPI_K float ampi_k_halve8(const float x[8]) {
    float even = amp_add(amp_add(x[0], x[4]), amp_add(x[2], x[6]));
    return amp_add(even, amp_add(amp_add(x[1], x[5]), amp_add(x[3], x[7])));
}
AMPI_K double ampi_k_halve8(const double x[8]) {
    double even = amp_dadd(amp_dadd(x[0], x[4]), amp_dadd(x[2], x[6]));
    return amp_dadd(even, amp_dadd(amp_dadd(x[1], x[5]), amp_dadd(x[3], x[7])));
}
/* The sum of AMP_LANES lanes by one team, of which a thread has every 32nd; every thread of it has the sum, for both of
   a pair add the same two. */
AMPI_K float ampi_k_join_team(const float lane[8]) {
    float sum = ampi_k_halve8(lane);
    uint32_t k;
    AMP_UNROLL
    for (k = AMPI_TEAM / 2u; k; k /= 2u)
        sum = amp_add(sum, AMP_SHUFFLE(sum, k));
    return sum;
}
/* The same where a thread has eight lanes side by side, from any on: of the eight sums of two threads each keeps four,
   then two, then one. */
AMPI_K float ampi_k_join_slots(const float lane[8]) {
    float x[8];
    uint32_t k, half;
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        x[k] = lane[k];
    AMP_UNROLL
    for (half = 4u; half; half /= 2u) {
        const int upper = (threadIdx.x & 4u * half) != 0;
        AMP_UNROLL
        for (k = 0; k < 4u; k++) {
            if (k >= half) continue;
            const float mine = upper ? x[k + half] : x[k];
            const float given = upper ? x[k] : x[k + half];
            x[k] = amp_add(mine, AMP_SHUFFLE(given, 4u * half));
        }
    }
    x[0] = amp_add(x[0], AMP_SHUFFLE(x[0], 2u));
    x[0] = amp_add(x[0], AMP_SHUFFLE(x[0], 1u));
    AMP_UNROLL
    for (half = 4u; half; half /= 2u)
        x[0] = amp_add(x[0], AMP_SHUFFLE(x[0], 4u * half));
    return x[0];
}
/* The sum of a team's doubles, one of a thread, to each of its threads. */
AMPI_K double ampi_k_join_pairs(double x) {
    uint32_t k;
    AMP_UNROLL
    for (k = AMPI_TEAM / 2u; k; k /= 2u)
        x = amp_dadd(x, AMP_SHUFFLE(x, k));
    return x;
}
AMPI_K float ampi_k_join(const float *lane) {
    uint32_t k;
    float x[8];
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        x[k] = lane[threadIdx.x % AMPI_TEAM + AMPI_TEAM * k];
    return ampi_k_join_team(x);
}
/* The same in double, of the first n lanes; the others are 0. */
AMPI_K double ampi_k_join(const double *lane, uint32_t n) {
    uint32_t i = threadIdx.x % AMPI_TEAM, k;
    double x[8];
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        x[k] = i + AMPI_TEAM * k < n ? lane[i + AMPI_TEAM * k] : 0.0;
    return ampi_k_join_pairs(ampi_k_halve8(x));
}
/* From the lanes of all teams, complete but for a barrier, to the sum of each part: thread i has that of team i. */
AMPI_K float ampi_k_join_lanes(ampi_k_room *room) {
    uint32_t team = threadIdx.x / AMPI_TEAM;
    float sum;
    __syncthreads();
    sum = ampi_k_join(&room->lane[team * AMP_LANES]);
    if (threadIdx.x % AMPI_TEAM == 0) room->sum[team] = sum;
    __syncthreads();
    return threadIdx.x < AMPI_TEAMS ? room->sum[threadIdx.x] : 0.0f;
}
/* Halves n doubles in shared memory, a power of two; the sum is valid in every thread. */
AMPI_K double ampi_k_halve(double *x, uint32_t n) {
    uint32_t i;
    double sum;
    __syncthreads();
    for (n /= 2u; n; n /= 2u) {
        for (i = threadIdx.x; i < n; i += AMP_BLOCK)
            x[i] = amp_dadd(x[i], x[i + n]);
        __syncthreads();
    }
    sum = x[0];
    __syncthreads();
    return sum;
}
AMPI_K uint32_t ampi_k_power_of_two(uint64_t n, uint32_t most) { /* the least that is not below n */
    uint32_t p = 1;
    while (p < n && p < most)
        p *= 2u;
    return p;
}
/* One chunk: x.at(base) ... x.at(base + n - 1). x is a small struct with a function at8(v, i, m) that gives m of
   them, from the i-th on. */
template <class X> AMPI_K double ampi_k_sum_chunk(const X &x, uint64_t base, uint32_t n, ampi_k_room *room) {
    uint32_t team = threadIdx.x / AMPI_TEAM, slot = threadIdx.x % AMPI_TEAM * 8u, parts = n / AMP_PART, r, i, k;
    parts += n % AMP_PART != 0;
    for (k = threadIdx.x; k < AMP_PARTS; k += AMP_BLOCK)
        room->part[k] = 0.0;
    for (r = 0; r < parts; r += AMPI_TEAMS) {
        uint32_t from = (r + team) * AMP_PART, to = from + AMP_PART < n ? from + AMP_PART : n;
        float lane[8] = {0, 0, 0, 0, 0, 0, 0, 0}, v[8], sum;
        for (i = from + slot; i < to; i += AMP_LANES) {
            uint32_t m = to - i < 8u ? to - i : 8u;
            x.at8(v, base + i, m);
            for (k = 0; k < 8u; k++)
                if (k < m) lane[k] = amp_add(lane[k], v[k]);
        }
        AMP_UNROLL
        for (k = 0; k < 8u; k++)
            room->lane[team * AMP_LANES + slot + k] = lane[k];
        sum = ampi_k_join_lanes(room);
        if (threadIdx.x < AMPI_TEAMS && r + threadIdx.x < parts) room->part[r + threadIdx.x] = amp_widen(sum);
    }
    return ampi_k_halve(room->part, ampi_k_power_of_two(parts, AMP_PARTS));
}
/* An array of any length by one block. */
template <class X> AMPI_K double ampi_k_sum(const X &x, uint64_t n, ampi_k_room *room) {
    uint64_t chunks = n / AMP_CHUNK + (n % AMP_CHUNK != 0), c;
    uint32_t i;
    if (chunks <= 1u) return ampi_k_sum_chunk(x, 0, (uint32_t)n, room);
    for (i = threadIdx.x; i < AMP_LANES; i += AMP_BLOCK)
        room->chunk[i] = 0.0;
    for (c = 0; c < chunks; c++) {
        uint64_t left = n - c * AMP_CHUNK;
        double sum = ampi_k_sum_chunk(x, c * AMP_CHUNK, (uint32_t)(left < AMP_CHUNK ? left : AMP_CHUNK), room);
        double *lane = &room->chunk[c % AMP_LANES];
        if (threadIdx.x == 0) *lane = amp_dadd(*lane, sum); /* the barriers of ampi_k_sum_chunk are before it */
    }
    return ampi_k_halve(room->chunk, AMP_LANES);
}

