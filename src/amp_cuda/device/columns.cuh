/* ---- dy through the activation, in place, and its column sums by the rule of amp.h, reading it once. A team takes a
   part, 32 rows of a stripe of 256 columns; a second kernel adds up the parts. Neighbouring threads have neighbouring
   groups of eight columns or, where rows are not aligned and not of 16 bits, neighbouring columns, eight of them 32
   apart.   tests: tests/test_products.c ---- */
#define AMPI_K_STRIPE 256u
typedef struct ampi_k_bias_args {
    amp_bias_grad_job job;
    float *partial;                      /* [parts][columns], or NULL: one part, straight to dbias */
    uint64_t from, columns, parts, work; /* these columns; parts of all rows; parts times stripes */
    int wide, alike;                     /* rows are aligned; dy and saved, if it is read, have the same 16 bits */
    uint32_t teams;                      /* of a block that have work: as many as keep all SMs busy */
} ampi_k_bias_args;

AMPI_K void ampi_k_bias_out(const amp_bias_grad_job &j, uint64_t column, double sum) {
    if (j.accumulate) sum = amp_dadd(amp_widen(amp_load(j.dbias.data, j.dbias.dtype, column)), sum);
    amp_store(j.dbias.data, j.dbias.dtype, column, amp_narrow(sum));
}
/* Eight of a row, those of this thread; `left` of the row from the first on. */
AMPI_K void ampi_k_bias_load(uint32_t x[8], const amp_array &a, uint64_t at, uint64_t left, int wide) {
    uint32_t k;
    if (wide) {
        ampi_k_load8(x, a.data, a.dtype, at, ampi_k_group(0, left), 1);
        return;
    }
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        x[k] = AMPI_TEAM * k < left ? ampi_load_pattern(a.data, a.dtype, at + AMPI_TEAM * k) : 0u;
    ampi_k_decode8(x, a.dtype);
}
/* A mask of them, in row `row` from `column` on, as what stands in y's place. */
AMPI_K void ampi_k_bias_unmask(
    uint32_t y[8], const amp_bias_grad_job &j, uint64_t row, uint64_t column, uint64_t left, int wide) {
    const uint8_t *mask = ampi_mask_at(j.saved.data, row, j.cols, 0);
    uint32_t k;
    if (wide) {
        ampi_k_unmask8(y, mask[column / 8u]);
        return;
    }
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        y[k] = AMPI_TEAM * k < left ? ampi_bits(ampi_mask_y(mask, column + AMPI_TEAM * k)) : 0u;
}
AMPI_K void ampi_k_bias_store(const uint32_t x[8], const amp_array &a, uint64_t at, uint64_t left, int wide) {
    uint32_t k;
    if (wide) {
        ampi_k_store8(x, a.data, a.dtype, at, ampi_k_group(0, left), 1);
        return;
    }
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        if (AMPI_TEAM * k < left) ampi_store_pattern(a.data, a.dtype, at + AMPI_TEAM * k, x[k]);
}
/* Eight of dy, whose `saved` are y, become the gradient before act: stored, and in x as stored, because that is what is
   summed. */
AMPI_K void ampi_k_bias_act8(
    const amp_bias_grad_job &j, amp_act act, uint32_t x[8], const uint32_t y[8], uint64_t at, uint64_t left, int wide) {
    if (act == AMP_ACT_NONE) return;
    ampi_k_act_grad8(x, act, y, 0);
    ampi_k_nearest8(x, j.dy.dtype);
    ampi_k_bias_store(x, j.dy, at, left, wide);
    ampi_k_decode8(x, j.dy.dtype);
}
/* This thread's columns of a part, into sum[8]: some rows at a time, for loads in flight. */
#define AMPI_K_AHEAD 2u
template <int masked>
AMPI_K void ampi_k_bias_rows(
    const ampi_k_bias_args &a, uint64_t column, uint64_t left, uint64_t row, uint64_t end, float sum[8]) {
    const amp_bias_grad_job &j = a.job;
    const amp_act act = masked ? AMP_RELU : j.act;
    uint32_t x[AMPI_K_AHEAD][8], y[AMPI_K_AHEAD][8], k, u;
    for (; row < end; row += AMPI_K_AHEAD) {
        uint64_t at = row * j.ld + column;
        AMP_UNROLL
        for (u = 0; u < AMPI_K_AHEAD; u++) {
            if (row + u >= end) continue;
            ampi_k_bias_load(x[u], j.dy, at + u * j.ld, left, a.wide);
            if (masked)
                ampi_k_bias_unmask(y[u], j, row + u, column, left, a.wide);
            else if (act != AMP_ACT_NONE)
                ampi_k_bias_load(y[u], j.saved, at + u * j.ld, left, a.wide);
        }
        AMP_UNROLL
        for (u = 0; u < AMPI_K_AHEAD; u++) {
            if (row + u >= end) continue;
            ampi_k_bias_act8(j, act, x[u], y[u], at + u * j.ld, left, a.wide);
            AMP_UNROLL
            for (k = 0; k < 8u; k++)
                sum[k] = amp_add(sum[k], ampi_float(x[u][k]));
        }
    }
}
/* One more row of 16 bits. */
AMPI_K void ampi_k_bias_add8(float sum[8], const ampi_k_raw *dy, amp_dtype t) {
    uint32_t v[8], k;
    ampi_k_quick8(v, dy, t);
    AMP_UNROLL
    for (k = 0; k < 8u; k++)
        sum[k] = amp_add(sum[k], ampi_float(v[k]));
}
/* The same for 16 bits, dy and saved alike: columns side by side, m of them; `byte`: where they are in a mask. */
template <int masked>
AMPI_K void ampi_k_bias_alike(const amp_bias_grad_job &j, amp_dtype t, uint64_t at, uint64_t byte, uint32_t rows,
    uint32_t m, int wide, float sum[8]) {
    const uint64_t pitch = ampi_mask_pitch(j.cols);
    uint32_t u, bits[AMPI_K_AHEAD];
    for (; rows; rows -= rows < AMPI_K_AHEAD ? rows : AMPI_K_AHEAD) {
        ampi_k_raw dy[AMPI_K_AHEAD], saved[AMPI_K_AHEAD];
        AMP_UNROLL
        for (u = 0; u < AMPI_K_AHEAD; u++) {
            uint64_t one = u < rows ? at + u * j.ld : at; /* the last row twice, and once used */
            ampi_k_fetch_short(&dy[u], j.dy, one, m, wide);
            if (masked)
                bits[u] = ((const uint8_t *)j.saved.data)[u < rows ? byte + u * pitch : byte];
            else if (j.act != AMP_ACT_NONE)
                ampi_k_fetch_short(&saved[u], j.saved, one, m, wide);
        }
        byte += AMPI_K_AHEAD * pitch;
        AMP_UNROLL
        for (u = 0; u < AMPI_K_AHEAD; u++) {
            if (u >= rows) break;
            if (masked)
                ampi_k_mask_raw(&dy[u], bits[u], t);
            else if (j.act != AMP_ACT_NONE)
                ampi_k_act_grad_raw(&dy[u], j.act, &saved[u], t);
            if (masked || j.act != AMP_ACT_NONE) ampi_k_store_short(&dy[u], j.dy, at, m, wide);
            at += j.ld;
            ampi_k_bias_add8(sum, &dy[u], t);
        }
    }
}
/* Sums alone, of 16 bits, aligned: nothing but loads, so there are more of them under way. */
#define AMPI_K_SUMS_AHEAD 8u
AMPI_K void ampi_k_bias_sums(const amp_bias_grad_job &j, amp_dtype t, uint64_t at, uint32_t rows, float sum[8]) {
    ampi_k_raw dy[AMPI_K_SUMS_AHEAD];
    uint32_t u;
    for (; rows >= AMPI_K_SUMS_AHEAD; rows -= AMPI_K_SUMS_AHEAD, at += AMPI_K_SUMS_AHEAD * j.ld) {
        AMP_UNROLL
        for (u = 0; u < AMPI_K_SUMS_AHEAD; u++)
            dy[u].a = *ampi_k_words_at(j.dy, at + u * j.ld);
        AMP_UNROLL
        for (u = 0; u < AMPI_K_SUMS_AHEAD; u++)
            ampi_k_bias_add8(sum, &dy[u], t);
    }
    AMP_NO_UNROLL
    for (; rows; rows--, at += j.ld) {
        dy[0].a = *ampi_k_words_at(j.dy, at);
        ampi_k_bias_add8(sum, &dy[0], t);
    }
}
/* A part, in a kernel of its own for each way, because one for all needs too many registers: bit 0, words, not aligned;
   bit 1, ReLU by a mask. */
#define AMPI_K_WORDS(way)  ((way) & 1)
#define AMPI_K_MASKED(way) ((way) >> 1)
template <int way>
AMPI_K void ampi_k_bias_part(
    const ampi_k_bias_args &a, uint64_t column, uint64_t left, uint64_t row, uint64_t end, float sum[8]) {
    uint64_t at = row * a.job.ld + column, byte = row * ampi_mask_pitch(a.job.cols) + column / 8u;
    const int words = AMPI_K_WORDS(way);
    uint32_t rows = (uint32_t)(end - row), m = words ? ampi_k_group(0, left) : 8u;
    if (!words && !(a.wide && a.alike))
        ampi_k_bias_rows<AMPI_K_MASKED(way)>(a, column, left, row, end, sum);
    else if (way == 0 && a.job.act == AMP_ACT_NONE && a.job.dy.dtype == AMP_F16)
        ampi_k_bias_sums(a.job, AMP_F16, at, rows, sum);
    else if (way == 0 && a.job.act == AMP_ACT_NONE)
        ampi_k_bias_sums(a.job, AMP_BF16, at, rows, sum);
    else if (a.job.dy.dtype == AMP_F16)
        ampi_k_bias_alike<AMPI_K_MASKED(way)>(a.job, AMP_F16, at, byte, rows, m, !words, sum);
    else
        ampi_k_bias_alike<AMPI_K_MASKED(way)>(a.job, AMP_BF16, at, byte, rows, m, !words, sum);
}
/* The sums of a part, from column c on and `apart`, to where a second kernel finds them, or straight to dbias. Side by
   side: by 128 bits, for stores of 32 touch each line eight times. */
AMPI_K void ampi_k_bias_keep(const ampi_k_bias_args &a, uint64_t part, uint64_t c, uint32_t apart, const float sum[8]) {
    float *to = a.partial ? a.partial + part * a.columns + c : NULL;
    uint32_t k, x[8];
    if (to && apart == 1u && a.columns % 8u == 0) {
        AMP_UNROLL
        for (k = 0; k < 8u; k++)
            x[k] = ampi_bits(sum[k]);
        ampi_k_put4(to, x, 1);
        ampi_k_put4(to + 4, x + 4, 1);
        return;
    }
    AMP_UNROLL
    for (k = 0; k < 8u; k++) {
        if (c + apart * k >= a.columns) continue;
        if (to)
            to[apart * k] = sum[k];
        else
            ampi_k_bias_out(a.job, a.from + c + apart * k, amp_widen(sum[k]));
    }
}
template <int way>
static __global__ void __launch_bounds__(AMP_BLOCK, 2) ampi_k_bias_grad(const AMP_GRID_CONSTANT ampi_k_bias_args a) {
    uint64_t stripes = (a.columns + AMPI_K_STRIPE - 1u) / AMPI_K_STRIPE, unit;
    uint32_t t = threadIdx.x % AMPI_TEAM, apart = AMPI_K_WORDS(way) || a.wide ? 1u : AMPI_TEAM;
    if (threadIdx.x >= AMPI_TEAM * a.teams) return;
    for (unit = (uint64_t)blockIdx.x * a.teams + threadIdx.x / AMPI_TEAM; unit < a.work;
        unit += (uint64_t)gridDim.x * a.teams) {
        uint64_t part = unit / stripes, c = unit % stripes * AMPI_K_STRIPE + (apart == 1u ? 8u * t : t);
        uint64_t end = (part + 1u) * AMP_ROWS;
        float sum[8] = {0, 0, 0, 0, 0, 0, 0, 0};
        if (c >= a.columns) continue;
        if (end > a.job.rows) end = a.job.rows;
        ampi_k_bias_part<way>(a, a.from + c, a.columns - c, part * AMP_ROWS, end, sum);
        ampi_k_bias_keep(a, part, c, apart, sum);
    }
}
/* Every AMP_COLUMN_LANES-th part of a column, from part p on: many are under way before the first is added. */
#define AMPI_K_PARTS_AHEAD 16u
AMPI_K double ampi_k_columns_lane(const ampi_k_bias_args &a, uint64_t p, uint64_t c) {
    const uint64_t step = AMP_COLUMN_LANES * a.columns;
    const float *from = a.partial + p * a.columns + c;
    double sum = 0.0;
    float x[AMPI_K_PARTS_AHEAD];
    uint32_t k;
    for (; p + AMP_COLUMN_LANES * (AMPI_K_PARTS_AHEAD - 1u) < a.parts; p += AMP_COLUMN_LANES * AMPI_K_PARTS_AHEAD) {
        AMP_UNROLL
        for (k = 0; k < AMPI_K_PARTS_AHEAD; k++, from += step)
            x[k] = *from;
        AMP_UNROLL
        for (k = 0; k < AMPI_K_PARTS_AHEAD; k++)
            sum = amp_dadd(sum, amp_widen(x[k]));
    }
    for (; p < a.parts; p += AMP_COLUMN_LANES, from += step)
        sum = amp_dadd(sum, amp_widen(*from));
    return sum;
}
/* The parts of each column: a block has 32 columns, and for each the lanes of the rule. */
static __global__ void __launch_bounds__(AMP_BLOCK, AMPI_K_BLOCKS(2))
    ampi_k_columns(const AMP_GRID_CONSTANT ampi_k_bias_args a) {
    AMP_SHARED(double, lanes, AMP_COLUMN_LANES *AMPI_TEAM);
    uint32_t t = threadIdx.x % AMPI_TEAM, l, k;
    uint64_t c = (uint64_t)blockIdx.x * AMPI_TEAM + t;
    for (l = threadIdx.x / AMPI_TEAM; l < AMP_COLUMN_LANES; l += AMPI_TEAMS)
        lanes[l * AMPI_TEAM + t] = c < a.columns ? ampi_k_columns_lane(a, l, c) : 0.0;
    __syncthreads();
    if (threadIdx.x < AMPI_TEAM && c < a.columns) {
        double x[AMP_COLUMN_LANES];
        AMP_UNROLL
        for (k = 0; k < AMP_COLUMN_LANES; k++)
            x[k] = lanes[k * AMPI_TEAM + t];
        ampi_k_bias_out(a.job, a.from + c, ampi_k_halve8(x));
    }
}
/* Without room for the sums of parts: a thread per column. */
static __global__ void __launch_bounds__(AMP_BLOCK) ampi_k_columns_alone(const AMP_GRID_CONSTANT amp_bias_grad_job j) {
    uint64_t c = (uint64_t)blockIdx.x * AMP_BLOCK + threadIdx.x, row, r;
    double lane[AMP_COLUMN_LANES] = {0, 0, 0, 0, 0, 0, 0, 0};
    uint32_t l;
    for (; c < j.cols; c += (uint64_t)gridDim.x * AMP_BLOCK) {
        AMP_UNROLL
        for (l = 0; l < AMP_COLUMN_LANES; l++)
            lane[l] = 0.0;
        for (row = 0; row < j.rows; row += AMP_ROWS * AMP_COLUMN_LANES) {
            AMP_UNROLL
            for (l = 0; l < AMP_COLUMN_LANES; l++) {
                float sum = 0.0f;
                AMP_NO_UNROLL
                for (r = row + l * AMP_ROWS; r < row + (l + 1u) * AMP_ROWS && r < j.rows; r++)
                    sum = amp_add(sum, amp_load(j.dy.data, j.dy.dtype, r * j.ld + c * j.step));
                lane[l] = amp_dadd(lane[l], amp_widen(sum));
            }
        }
        ampi_k_bias_out(j, c, ampi_k_halve8(lane));
    }
}

/* alpha and beta as cuBLASLt can read them on the device, when they have a factor there and one on the host. */
static __global__ void __launch_bounds__(AMP_BLOCK)
    ampi_k_scalars(float *out, float alpha, const float *alpha_ptr, float beta, const float *beta_ptr) {
    if (blockIdx.x || threadIdx.x) return;
    out[0] = alpha_ptr ? amp_mul(alpha, *alpha_ptr) : alpha;
    out[1] = beta_ptr ? amp_mul(beta, *beta_ptr) : beta;
}

#define AMPI_K_COLUMNS(X) \
    X(ampi_k_bias_grad<0>) \
    X(ampi_k_bias_grad<1>) \
    X(ampi_k_bias_grad<2>) X(ampi_k_bias_grad<3>) X(ampi_k_columns) X(ampi_k_columns_alone) X(ampi_k_scalars)
