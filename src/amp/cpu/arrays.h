/* ==== >>cpu-arrays ===============================================================================================
   Sums by the rule (>>sums), memory, arrays.  tests: tests/test_arrays.c, tests/test_step.c, tests/test_fp8.c */

/* Halves n doubles; what lies beyond counts as 0 and is not touched. */
static double ampi_halve(double *x, size_t n) {
    size_t h = 1, i;
    if (n == 0) return 0.0;
    while (h < n)
        h *= 2;
    for (h /= 2; h > 0; h /= 2) {
        for (i = 0; i < h && i + h < n; i++)
            x[i] = amp_dadd(x[i], x[i + h]);
        n = n < h ? n : h;
    }
    return x[0];
}
/* A sum that is fed the sums of chunks in order; those of parts, when there is one array, in order too. */
typedef struct ampi_sum {
    double *part, *lane;
    size_t parts, chunks;
} ampi_sum;
static ampi_sum ampi_sum_begin(ampi_workspace *w) {
    ampi_sum s = {w->part, w->lane, 0, 0};
    return s;
}
static void ampi_sum_chunk(ampi_sum *s, double chunk) {
    double *lane = &s->lane[s->chunks % AMP_LANES];
    *lane = s->chunks < AMP_LANES ? chunk : amp_dadd(*lane, chunk);
    s->chunks++;
}
static void ampi_sum_part(ampi_sum *s, float part) {
    s->part[s->parts++] = amp_widen(part);
    if (s->parts < AMP_PARTS) return;
    ampi_sum_chunk(s, ampi_halve(s->part, AMP_PARTS));
    s->parts = 0;
}
static double ampi_sum_end_of(ampi_sum *s) {
    if (s->parts) ampi_sum_chunk(s, ampi_halve(s->part, s->parts));
    return ampi_halve(s->lane, s->chunks < AMP_LANES ? s->chunks : AMP_LANES);
}

/* ---- memory ---- */
/* 256-byte aligned inside what the allocator gives; its own pointer is kept in front of the block. Large blocks begin
   at different places of a page: an update goes over four of them at once, and elements whose addresses are alike
   drive each other out of the first cache. */
static size_t ampi_cpu_room(size_t bytes) { return bytes + (bytes < 65536u ? 512u : 512u + 4096u); }
static amp_status ampi_cpu_take(amp_ctx *ctx, void **out, size_t bytes, void *(*from)(const amp_allocator *, size_t)) {
    ampi_cpu *c = ampi_cpu_of(ctx);
    const size_t room = ampi_cpu_room(bytes);
    char *raw, *p;
    AMPI_REQUIRE(!(room < bytes), AMP_ERR_NO_MEMORY, "%llu bytes", AMPI_ULL(bytes));
    raw = (char *)(from)(&c->mem, room);
    ampi_host_large_pages(&c->mem, raw, room);
    AMPI_REQUIRE(raw, AMP_ERR_NO_MEMORY, "the allocator has no %llu bytes", AMPI_ULL(bytes));
    p = raw + 256 + (256 - ((uintptr_t)raw & 255u)) % 256u;
    if (room > bytes + 512u) p += 256u * (5u * c->taken++ % 16u);
    memcpy(p - sizeof raw, &raw, sizeof raw);
    *out = p;
    return AMP_OK;
}
static amp_status ampi_cpu_alloc(amp_ctx *ctx, void **out, size_t bytes) {
    return ampi_cpu_take(ctx, out, bytes, ampi_host_take);
}
static amp_status ampi_cpu_alloc_zeros(amp_ctx *ctx, void **out, size_t bytes) {
    return ampi_cpu_take(ctx, out, bytes, ampi_host_alloc);
}
static void ampi_cpu_release(amp_ctx *ctx, void *ptr, size_t bytes) {
    ampi_cpu *c = ampi_cpu_of(ctx);
    char *raw;
    memcpy(&raw, (char *)ptr - sizeof raw, sizeof raw);
    ampi_host_free(&c->mem, raw, ampi_cpu_room(bytes));
}
static amp_status ampi_cpu_copy(amp_ctx *ctx, void *dst, const void *src, size_t bytes) {
    (void)ctx;
    memmove(dst, src, bytes);
    return AMP_OK;
}
static amp_status ampi_cpu_zero(amp_ctx *ctx, void *dst, size_t bytes) {
    (void)ctx;
    memset(dst, 0, bytes);
    return AMP_OK;
}
static amp_status ampi_cpu_sync(amp_ctx *ctx) {
    (void)ctx;
    return AMP_OK;
}

/* ---- arrays ---- */
static char *ampi_at(amp_array a, size_t i) { return (char *)a.data + i * amp_dtype_size(a.dtype); }
static size_t ampi_least(size_t a, size_t b) { return a < b ? a : b; }
/* Where element i lies, if it is a float that can be read there; NULL if not. */
static const float *ampi_in_place(amp_array a, size_t i) {
    const char *p = ampi_at(a, i);
    return a.dtype == AMP_F32 && (uintptr_t)p % sizeof(float) == 0 ? (const float *)(const void *)p : NULL;
}
/* Elements i .. i + n to be read as floats: where they are, if they are floats, else widened to buf. */
static const float *ampi_floats(const ampi_kernels *k, amp_array a, size_t i, size_t n, float *buf) {
    const char *p = ampi_at(a, i);
    if (ampi_in_place(a, i)) return (const float *)(const void *)p;
    k->widen[a.dtype](buf, p, n);
    return buf;
}
static void ampi_prefetch(const char *p, size_t bytes) {
    const char *end = p + bytes;
    for (; p < end; p += 64)
        AMPI_PREFETCH(p);
}
/* How many of n random words from number `at` on have increasing numbers: they are counted modulo 2^64. */
static size_t ampi_random_run(uint64_t at, size_t n) {
    uint64_t before_zero = (uint64_t)0 - at;
    return at && n > before_zero ? (size_t)before_zero : n;
}
/* n <= AMPI_BLOCK floats to t, stochastically: element i with word at + i. */
static void ampi_round_block(const ampi_kernels *k, void *dst, amp_dtype t, const void *f32, size_t n, uint64_t seed,
    uint64_t stream, uint64_t at, int saturate) {
    uint32_t buf[AMPI_BLOCK + 64];
    size_t i, m;
    for (i = 0; i < n; i += m) {
        m = ampi_random_run(at + i, n - i);
        (k->round)((char *)dst + i * amp_dtype_size(t), t, (const char *)f32 + 4 * i, m,
            (k->random)(buf, m, seed, stream, at + i), saturate);
    }
}
typedef struct ampi_cast_job {
    const ampi_kernels *k;
    amp_array dst, src;
    size_t n, head;
    const amp_cast_desc *d;
    int32_t stream, _pad;
} ampi_cast_job;
/* Elements i .. i + count, written to `to`. */
static void ampi_cast_some(const ampi_cast_job *j, char *to, size_t i, size_t count) {
    const ampi_kernels *k = j->k;
    amp_dtype from = j->src.dtype, t = j->dst.dtype;
    int stochastic = j->d->rounding == AMP_STOCHASTIC, nearest = !stochastic && !j->d->saturate;
    float block[AMPI_BLOCK];
    size_t n;
    if (t == AMP_F32) {
        k->widen[from](to, ampi_at(j->src, i), count);
        return;
    }
    if (from == AMP_F32 && nearest) {
        k->narrow[t](to, ampi_at(j->src, i), count);
        return;
    }
    for (; count; count -= n, i += n, to += n * amp_dtype_size(t)) {
        const void *f = ampi_at(j->src, i);
        n = ampi_least(AMPI_BLOCK, count);
        if (from != AMP_F32) {
            k->widen[from](block, f, n);
            f = block;
        }
        if (nearest)
            k->narrow[t](to, f, n);
        else if (stochastic)
            ampi_round_block(k, to, t, f, n, j->d->seed, j->d->stream, j->d->offset + i, (int)j->d->saturate);
        else
            (k->round)(to, t, f, n, NULL, (int)j->d->saturate);
    }
}
/* Around the caches: a buffer is filled and then written line by line, while the source of the next buffer is
   prefetched; plain stores would read every line of the output first. The buffer is one piece of the output, or pieces
   of 4 pages whose lines take turns: whichever the machine likes (see ampi_pick_kernels). Returns where it stopped. */
static size_t ampi_cast_stream(const ampi_cast_job *j, size_t i, size_t end) {
    size_t to = amp_dtype_size(j->dst.dtype), from = amp_dtype_size(j->src.dtype);
    size_t pages = j->k->pages, per_page = 4096 / to, piece = per_page / pages, round = pages * per_page, page, at,
           next;
    size_t per_line = 64 * from / to; /* bytes of the source for a line of the output */
    char raw[4096 + 64], *buf = raw + (64 - ((uintptr_t)raw & 63u)) % 64u;
    for (; end - i >= round; i += round) {
        for (at = 0; at < per_page; at += piece) {
            next = i;
            if (at + piece < per_page)
                next = i + at + piece;
            else if (end - i >= 2 * round)
                next = i + round;
            for (page = 0; page < pages; page++)
                ampi_cast_some(j, buf + page * piece * to, i + page * per_page + at, piece);
            (j->k->stream)(ampi_at(j->dst, i + at), buf, pages, ampi_at(j->src, next), per_line);
        }
    }
    (j->k->fence)();
    return i;
}
static void ampi_cast_task(void *arg, size_t task, ampi_workspace *w) {
    const ampi_cast_job *j = (const ampi_cast_job *)arg;
    size_t i = task ? j->head + task * AMP_CHUNK : 0, end = ampi_least(j->n, j->head + (task + 1) * AMP_CHUNK);
    (void)w;
    if (i >= end) return;
    if (j->dst.dtype == j->src.dtype) {
        memmove(ampi_at(j->dst, i), ampi_at(j->src, i), (end - i) * amp_dtype_size(j->dst.dtype));
        return;
    }
    if (j->stream) {
        if (i == 0) {
            ampi_cast_some(j, ampi_at(j->dst, 0), 0, j->head);
            i = j->head;
        }
        i = ampi_cast_stream(j, i, end);
    }
    if (i < end) ampi_cast_some(j, ampi_at(j->dst, i), i, end - i);
}
/* From doubles or to doubles. */
static void ampi_cast_f64_task(void *arg, size_t task, ampi_workspace *w) {
    const ampi_cast_job *j = (const ampi_cast_job *)arg;
    const amp_cast_desc *d = j->d;
    size_t i = task * AMP_CHUNK, end = ampi_least(j->n, i + AMP_CHUNK);
    (void)w;
    for (; i < end; i++) {
        uint32_t r = d->rounding == AMP_STOCHASTIC ? amp_random(d->seed, d->stream, d->offset + i) : 0u;
        uint64_t wide;
        double x;
        if (j->dst.dtype == AMP_F64) {
            wide = ampi_f64_of(ampi_load_bits(j->src.data, j->src.dtype, i));
            memcpy(ampi_at(j->dst, i), &wide, sizeof wide);
        } else {
            memcpy(&x, ampi_at(j->src, i), sizeof x);
            ampi_store_pattern(
                j->dst.data, j->dst.dtype, i, ampi_encode_f64(x, j->dst.dtype, d->rounding, r, (int)d->saturate));
        }
    }
}
/* A few elements: a task and its vectors would cost more than they. */
static int ampi_cast_few(const amp_array *dst, const amp_array *src, size_t n, const amp_cast_desc *d) {
    const int doubles = dst->dtype == AMP_F64 || src->dtype == AMP_F64;
    size_t i;
    if (n > 3 || doubles || dst->dtype == src->dtype || d->rounding != AMP_NEAREST || d->saturate) return 0;
    for (i = 0; i < n; i++) {
        const uint32_t x = ampi_load_bits(src->data, src->dtype, i);
        ampi_store_pattern(dst->data, dst->dtype, i, ampi_round_any(x, dst->dtype));
    }
    return 1;
}
static amp_status ampi_cpu_cast(amp_ctx *ctx, amp_array dst, amp_array src, size_t n, const amp_cast_desc *d) {
    ampi_cpu *c = ampi_cpu_of(ctx);
    size_t size = amp_dtype_size(dst.dtype), off = (64 - ((uintptr_t)dst.data & 63u)) & 63u;
    ampi_cast_job j;
    if (ampi_cast_few(&dst, &src, n, d)) return AMP_OK;
    j.k = c->k;
    j.dst = dst;
    j.src = src;
    j.n = n;
    j.head = 0;
    j.d = d;
    if (dst.dtype != src.dtype && (dst.dtype == AMP_F64 || src.dtype == AMP_F64))
        return ampi_run(c, ampi_chunks(n), (double)n, ampi_cast_f64_task, &j);
    /* bytes are at most a third of the traffic, and lines of 64 of them take too long to fill */
    j.stream = c->k->stream && size > 1 && n * size >= AMP_STREAM_BYTES && n > AMP_CHUNK && (off & (size - 1)) == 0 &&
        dst.dtype != src.dtype && dst.data != src.data;
    if (j.stream) j.head = off / size; /* tasks begin where lines begin */
    ampi_parallel(c, ampi_chunks(n - j.head), n, ampi_cast_task, &j);
    return AMP_OK;
}

/* What is wrong with a chunk's elements from .. from + n of a gradient g whose products are u. */
static void ampi_count_faults(amp_faults *f, amp_array g, size_t from, const float *u, size_t n) {
    size_t e;
    for (e = 0; e < n; e++)
        amp_count_fault(f, amp_load(g.data, g.dtype, from + e), u[e], (uint32_t)(from + e));
}
/* Products that are finite as floats but not as stored in `out`. */
static void ampi_count_lost(amp_faults *f, amp_array out, size_t from, const float *u, size_t n) {
    size_t e;
    for (e = 0; e < n; e++)
        amp_count_lost(f, u[e], amp_load(out.data, out.dtype, from + e), (uint32_t)(from + e));
}
static amp_array ampi_part(amp_array a, size_t i) {
    a.data = ampi_at(a, i);
    return a;
}
typedef struct ampi_finite_job {
    ampi_cpu *c;
    amp_array a, dst;
    size_t index;
    amp_scaler_state *s;
    float inv;
    uint32_t found;
    amp_finite_report r;
} ampi_finite_job;
/* The chunk's faults are added to the job's. Sums and minima: the order of chunks does not matter. */
static void ampi_finite_add(ampi_finite_job *j, const amp_faults *f, size_t start) {
    amp_finite_report *r = &j->r;
    size_t first = start + f->first;
    int earlier;
    ampi_lock(j->c);
    earlier = r->first_array > j->index || (r->first_array == j->index && r->first_index > first);
    if (r->nan + r->inf == 0 || earlier) {
        r->first_array = j->index;
        r->first_index = first;
    }
    r->nan += f->nan;
    r->inf += f->inf + f->overflow;
    j->found |= amp_found(f->nan, f->inf, f->overflow);
    ampi_unlock(j->c);
}
static void ampi_finite_check(ampi_finite_job *j, amp_faults *f, amp_array a) {
    const ampi_kernels *k = j->c->k;
    float own[AMPI_BLOCK];
    size_t size = amp_dtype_size(a.dtype), i, n;
    if (!(k->is_bad)(a.data, a.count * size, a.dtype)) return; /* nearly always */
    for (i = 0; i < a.count; i += n) {
        n = ampi_least(AMPI_BLOCK, a.count - i);
        if (!(k->is_bad)(ampi_at(a, i), n * size, a.dtype)) continue;
        ampi_count_faults(f, a, i, ampi_floats(k, a, i, n, own), n);
    }
}
static void ampi_finite_f64(amp_faults *f, amp_array a) {
    size_t i;
    uint64_t x;
    for (i = 0; i < a.count; i++) {
        memcpy(&x, ampi_at(a, i), sizeof x);
        amp_count_f64(f, x, (uint32_t)i);
    }
}
/* Whether gradients go from 16 bits to the same 16 bits in one loop. inv <= 1: a product is bad only if its gradient
   is, so what was written tells it. */
static int ampi_rescales(const ampi_kernels *k, amp_dtype from, amp_dtype to, float inv) {
    return k->rescale && from == to && (from == AMP_F16 || from == AMP_BF16) && inv <= 1.0f;
}
static void ampi_finite_unscale(ampi_finite_job *j, amp_faults *f, amp_array a, amp_array dst) {
    const ampi_kernels *k = j->c->k;
    float own[AMPI_BLOCK], *u = own;
    const int may_lose = amp_may_lose(j->inv, a.dtype, dst.dtype);
    const int at_once = ampi_rescales(k, a.dtype, dst.dtype, j->inv);
    const int floats = dst.dtype == AMP_F32 && ampi_in_place(a, 0);
    const int in_place = floats && a.data == dst.data && j->inv <= 1.0f;
    const float *from;
    size_t i, n;
    for (i = 0; i < a.count; i += n) {
        n = ampi_least(AMPI_BLOCK, a.count - i);
        if (at_once) {
            const int bad = (k->rescale)(ampi_at(dst, i), ampi_at(a, i), a.dtype, n, j->inv);
            if (bad) ampi_count_faults(f, dst, i, ampi_floats(k, dst, i, n, own), n);
            continue;
        }
        if (in_place) u = (float *)a.data + i;
        from = ampi_floats(k, a, i, n, own);
        if ((k->scale)(u, from, n, j->inv)) ampi_count_faults(f, a, i, u, n);
        if (in_place) continue;
        k->narrow[dst.dtype](ampi_at(dst, i), u, n);
        if (may_lose) ampi_count_lost(f, dst, i, u, n);
    }
}
static void ampi_finite_task(void *arg, size_t task, ampi_workspace *w) {
    ampi_finite_job *j = (ampi_finite_job *)arg;
    size_t start = task * AMP_CHUNK;
    amp_array a = ampi_part(j->a, start);
    amp_faults f = amp_no_faults();
    (void)w;
    a.count = ampi_least(j->a.count - start, AMP_CHUNK);
    if (j->s)
        ampi_finite_unscale(j, &f, a, ampi_part(j->dst, start));
    else if (a.dtype == AMP_F64)
        ampi_finite_f64(&f, a);
    else
        ampi_finite_check(j, &f, a);
    if (f.first != AMP_CHUNK) ampi_finite_add(j, &f, start);
}
static amp_status ampi_cpu_finite(amp_ctx *ctx, const amp_array *dst, const amp_array *arrays, size_t n,
    amp_scaler_state *s, amp_finite_report *out) {
    ampi_finite_job j = AMP_ZERO;
    j.c = ampi_cpu_of(ctx);
    j.s = s;
    j.inv = s ? amp_inverse_scale(s->scale) : 1.0f;
    for (j.index = 0; j.index < n; j.index++)
        if (arrays[j.index].count) {
            j.a = arrays[j.index];
            j.dst = dst ? dst[j.index] : j.a;
            ampi_parallel(j.c, ampi_chunks(j.a.count), j.a.count, ampi_finite_task, &j);
        }
    if (s && !s->no_check) s->found |= j.found;
    if (out) *out = j.r;
    return AMP_OK;
}

typedef struct ampi_histogram_job {
    ampi_cpu *c;
    amp_array a;
    amp_histogram *h;
} ampi_histogram_job;
static void ampi_histogram_task(void *arg, size_t task, ampi_workspace *w) {
    ampi_histogram_job *j = (ampi_histogram_job *)arg;
    amp_histogram h;
    float u[AMPI_BLOCK];
    uint8_t exponent[AMPI_BLOCK];
    uint32_t found[3] = {0, 0, 0}, bins[8][256]; /* in turn: neighbours often share a bin */
    size_t i = task * AMP_CHUNK, end = ampi_least(j->a.count, i + AMP_CHUNK), n, e, b, pad = 0;
    (void)w;
    memset(&h, 0, sizeof h);
    memset(bins, 0, sizeof bins);
    h.total = end - i;
    for (; i < end; i += n) {
        n = ampi_least(AMPI_BLOCK, end - i);
        pad = (64 - n % 64) % 64; /* zeros, taken off again */
        j->c->k->widen[j->a.dtype](u, ampi_at(j->a, i), n);
        memset(u + n, 0, pad * sizeof *u);
        (j->c->k->count)(exponent, u, n + pad, found);
        for (e = 0; e < n + pad; e += 8)
            for (b = 0; b < 8; b++)
                bins[b][exponent[e + b]]++;
    }
    for (b = 0; b < 8; b++) {
        for (e = 0; e < 255; e++)
            h.pow2[e] += bins[b][e];
        h.inf += bins[b][255];
    }
    h.zero = found[1] - pad;
    h.nan = found[2];
    h.inf -= h.nan;
    h.pow2[0] -= found[1];
    h.amax = ampi_float(found[0]);
    ampi_lock(j->c);
    amp_histogram_add(j->h, &h);
    ampi_unlock(j->c);
}
static amp_status ampi_cpu_histogram(amp_ctx *ctx, const amp_array *arrays, size_t n, amp_histogram *out) {
    ampi_histogram_job j;
    size_t i;
    j.c = ampi_cpu_of(ctx);
    j.h = out;
    for (i = 0; i < n; i++)
        if (arrays[i].count) {
            j.a = arrays[i];
            (void)ampi_run(j.c, ampi_chunks(j.a.count), (double)j.a.count, ampi_histogram_task, &j);
        }
    return AMP_OK;
}

/* ---- FP8 with a scale: the matrix in tiles, of rows where a transposed copy is wanted, else as one long row ---- */
#define AMPI_TILE_ROWS 64u
#define AMPI_TILE_COLS AMPI_BLOCK
typedef struct ampi_quantize_run {
    ampi_cpu *c;
    const amp_quantize_job *j;
    size_t rows, cols, tile_rows, tile_cols, across; /* across: tiles side by side */
    float by;
    uint32_t limit, amax; /* float bits */
    int32_t write, _pad;  /* write 0: only the amax */
} ampi_quantize_run;
#if defined(AMPI_X86) || defined(AMPI_NEON)
#  ifdef AMPI_X86
typedef __m128i ampi_bytes;
static ampi_bytes ampi_bytes_load(const uint8_t *p) { return _mm_loadu_si128((const __m128i *)(const void *)p); }
static void ampi_bytes_store(uint8_t *p, ampi_bytes x) { _mm_storeu_si128((__m128i *)(void *)p, x); }
static ampi_bytes ampi_bytes_low(ampi_bytes a, ampi_bytes b) { return _mm_unpacklo_epi8(a, b); }
static ampi_bytes ampi_bytes_high(ampi_bytes a, ampi_bytes b) { return _mm_unpackhi_epi8(a, b); }
#  else
typedef uint8x16_t ampi_bytes;
static ampi_bytes ampi_bytes_load(const uint8_t *p) { return vld1q_u8(p); }
static void ampi_bytes_store(uint8_t *p, ampi_bytes x) { vst1q_u8(p, x); }
static ampi_bytes ampi_bytes_low(ampi_bytes a, ampi_bytes b) { return vzip1q_u8(a, b); }
static ampi_bytes ampi_bytes_high(ampi_bytes a, ampi_bytes b) { return vzip2q_u8(a, b); }
#  endif
AMPI_ALWAYS void ampi_bytes_pair(ampi_bytes *y, const ampi_bytes *x, size_t i) {
    y[2 * i] = ampi_bytes_low(x[i], x[i + 8]);
    y[2 * i + 1] = ampi_bytes_high(x[i], x[i + 8]);
}
/* 16 x 16 bytes: four times the bytes of rows i and i + 8 take turns, in rows 2 i and 2 i + 1. Written out, because gcc
   -O2 would keep a loop, and the rows in memory. */
AMPI_ALWAYS void ampi_bytes_turn(ampi_bytes *y, const ampi_bytes *x) {
    ampi_bytes_pair(y, x, 0);
    ampi_bytes_pair(y, x, 1);
    ampi_bytes_pair(y, x, 2);
    ampi_bytes_pair(y, x, 3);
    ampi_bytes_pair(y, x, 4);
    ampi_bytes_pair(y, x, 5);
    ampi_bytes_pair(y, x, 6);
    ampi_bytes_pair(y, x, 7);
}
static void ampi_transpose16(uint8_t *to, size_t ld_to, const uint8_t *from, size_t ld_from) {
    ampi_bytes x[16];
    ampi_bytes y[16];
    size_t i;
    for (i = 0; i < 16; i++)
        x[i] = ampi_bytes_load(from + i * ld_from);
    ampi_bytes_turn(y, x);
    ampi_bytes_turn(x, y);
    ampi_bytes_turn(y, x);
    ampi_bytes_turn(x, y);
    for (i = 0; i < 16; i++)
        ampi_bytes_store(to + i * ld_to, x[i]);
}
#else
static void ampi_transpose16(uint8_t *to, size_t ld_to, const uint8_t *from, size_t ld_from) {
    size_t i;
    size_t k;
    for (i = 0; i < 16; i++)
        for (k = 0; k < 16; k++)
            to[k * ld_to + i] = from[i * ld_from + k];
}
#endif
/* to[c * ld + r] = tile[r * AMPI_TILE_COLS + c], 16 columns at a time, whose rows leave in one piece: with a large ld
   they lie in one set of the cache. What is in the tile after its rows and columns is turned, too, but not written. */
static void ampi_transpose_tile(uint8_t *to, size_t ld, const uint8_t *tile, size_t rows, size_t cols) {
    uint8_t strip[16 * AMPI_TILE_ROWS];
    size_t c;
    size_t i;
    for (c = 0; c < cols; c += 16) {
        for (i = 0; i < rows; i += 16)
            ampi_transpose16(strip + i, AMPI_TILE_ROWS, tile + i * AMPI_TILE_COLS + c, AMPI_TILE_COLS);
        for (i = c; i < cols && i < c + 16; i++)
            memcpy(to + i * ld, strip + (i - c) * AMPI_TILE_ROWS, rows);
    }
}
/* n elements from the i-th on, to `to`, or only their amax. */
static uint32_t ampi_quantize_row(const ampi_quantize_run *q, uint8_t *to, size_t i, size_t n, uint32_t amax) {
    const ampi_kernels *k = q->c->k;
    const amp_quantize_job *j = q->j;
    amp_dtype t = j->dst.data ? j->dst.dtype : j->dst_t.dtype;
    float own[AMPI_BLOCK];
    float fitted[AMPI_BLOCK];
    size_t m;
    for (; n; n -= m, i += m) {
        const float *u;
        m = ampi_least(AMPI_BLOCK, n);
        u = ampi_floats(k, j->src, i, m, own);
        if (!q->write) {
            amax = (k->amax)(u, m, amax);
            continue;
        }
        amax = (k->fit_to)(fitted, u, m, q->by, q->limit, amax);
        k->narrow[t](to, fitted, m);
        to += m;
    }
    return amax;
}
static void ampi_quantize_task(void *arg, size_t task, ampi_workspace *w) {
    ampi_quantize_run *q = (ampi_quantize_run *)arg;
    const amp_quantize_job *j = q->j;
    size_t r0 = task / q->across * q->tile_rows;
    size_t c0 = task % q->across * q->tile_cols;
    size_t rows = ampi_least(q->rows - r0, q->tile_rows);
    size_t cols = ampi_least(q->cols - c0, q->tile_cols);
    size_t r;
    uint8_t *tile = (uint8_t *)w->c;
    uint8_t *to = tile;
    uint8_t *plain = (uint8_t *)j->dst.data;
    int turned = q->write && j->dst_t.data != NULL;
    uint32_t amax = 0;
    for (r = 0; r < rows; r++) {
        size_t i = (r0 + r) * q->cols + c0;
        if (turned) to = tile + r * AMPI_TILE_COLS;
        if (q->write && !turned) to = plain + i;
        amax = ampi_quantize_row(q, to, i, cols, amax);
        if (turned && plain) memcpy(plain + i, to, cols);
    }
    if (turned) ampi_transpose_tile((uint8_t *)j->dst_t.data + c0 * q->rows + r0, q->rows, tile, rows, cols);
    ampi_lock(q->c);
    if (q->amax < amax) q->amax = amax;
    ampi_unlock(q->c);
}
static void ampi_quantize_pass(ampi_quantize_run *q, int write) {
    int tiles = write && q->j->dst_t.data != NULL;
    size_t n = q->j->rows * q->j->cols;
    size_t down;
    q->write = write;
    q->rows = tiles ? q->j->rows : 1;
    q->cols = tiles ? q->j->cols : n;
    q->tile_rows = tiles ? AMPI_TILE_ROWS : 1;
    q->tile_cols = tiles ? AMPI_TILE_COLS : AMP_CHUNK;
    q->across = (q->cols - 1) / q->tile_cols + 1;
    down = (q->rows - 1) / q->tile_rows + 1;
    ampi_parallel(q->c, down * q->across, n, ampi_quantize_task, q);
}
static void ampi_quantize_end(const ampi_quantize_run *q) {
    amp_fp8_state *s = q->j->state;
    uint32_t i;
    if (!amp_fp8_end(q->j, ampi_float(q->amax))) return;
    s->window = 0.0f;
    for (i = 0; i < q->j->n_history; i++) {
        float amax = q->j->history[i];
        if (s->window < amax) s->window = amax;
    }
}
static amp_status ampi_cpu_quantize(amp_ctx *ctx, const amp_quantize_job *j) {
    ampi_quantize_run q = AMP_ZERO;
    q.c = ampi_cpu_of(ctx);
    q.j = j;
    q.limit = amp_fp8_most(j->dst.data ? j->dst.dtype : j->dst_t.dtype);
    if (!j->history && !j->keep) {
        ampi_quantize_pass(&q, 0);
        ampi_quantize_end(&q);
    }
    q.by = amp_fp8_begin(j);
    ampi_quantize_pass(&q, 1);
    if (j->history && !j->keep) ampi_quantize_end(&q);
    return AMP_OK;
}

