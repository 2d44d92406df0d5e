/* test_arrays.c - casts, finite checks, histograms of arrays.  Guards: >>arrays.

   The scalar functions are the reference here (test_formats.c compares them with a second implementation). */
#include "ref.h"

static const size_t sizes[] = {
    0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 257, 1000, 2049};
#define N_SIZES (sizeof sizes / sizeof sizes[0])
#define LARGEST 2049u

/* Interesting patterns of any dtype. */
static void fill(t_run *t, void *host, amp_dtype type, size_t n) {
    size_t i;
    for (i = 0; i < n; i++) {
        float x = t_pattern(t);
        uint32_t u = ref_f32_bits(x);
        if (type == AMP_F32)
            memcpy((char *)host + 4 * i, &u, 4);
        else
            ampi_store_pattern(
                host, type, i, t_below(t, 2) ? ref_encode(ref_f32_as_f64(x), type, 0) : u >> t_below(t, 16));
    }
}

/* What amp_cast should write. */
static void cast_scalar(void *dst, amp_dtype to, const void *src, amp_dtype from, size_t n, const amp_cast_desc *d) {
    size_t i, size = amp_dtype_size(to);
    if (to == from) {
        if (n) memcpy(dst, src, n * size);
        return;
    }
    for (i = 0; i < n; i++) {
        uint32_t x = ref_f32_bits(amp_load(src, from, i));
        if (to == AMP_F32)
            ampi_store_pattern(dst, to, i, x);
        else if (d && d->rounding == AMP_STOCHASTIC)
            ampi_store_pattern(dst, to, i,
                ampi_encode(x, to, AMP_STOCHASTIC, amp_random(d->seed, d->stream, d->offset + i), (int)d->saturate));
        else
            ampi_store_pattern(dst, to, i, ampi_encode(x, to, AMP_NEAREST, 0, d ? (int)d->saturate : 0));
    }
}

/* The helper above goes through float values: no NaN may be changed on the way. */
static void scalar_load_keeps_bits(t_run *t) {
    uint32_t nan = 0x7f800001u, back;
    float x = amp_load(&nan, AMP_F32, 0);
    memcpy(&back, &x, 4);
    CHECK_EQ(back, nan);
    CHECK_EQ(ref_f32_bits(x), nan);
}

/* Every pair of dtypes, sizes around each vector width, pointers off by one element and (on the CPU) by odd bytes. */
static void cast_pairs(t_run *t) {
    size_t a, b, k, m;
    unsigned char *src = (unsigned char *)t_host(t, 4 * LARGEST), *want = (unsigned char *)t_host(t, 4 * LARGEST + 32);
    unsigned char *got = (unsigned char *)t_host(t, 4 * LARGEST + 32);
    unsigned char *dsrc = (unsigned char *)t_alloc(t, 4 * LARGEST + 32),
                  *ddst = (unsigned char *)t_alloc(t, 4 * LARGEST + 32);
    for (a = 0; a < 5; a++) {
        for (b = 0; b < 5; b++) {
            amp_dtype from = ref_dtypes[a], to = ref_dtypes[b];
            size_t sf = amp_dtype_size(from), st = amp_dtype_size(to);
            for (k = 0; k < N_SIZES; k += t_slow(t) ? 3u : 1u) {
                size_t n = sizes[k];
                for (m = 0; m < (t->place->kind == T_KIND_CUDA ? 2u : 4u); m++) {
                    const size_t os_of[4] = {0, sf, 1, 3}, od_of[4] = {0, st * (k % 3), 3, 1};
                    size_t os = os_of[m], od = od_of[m]; /* where the arrays begin: aligned, by element, anywhere */
                    amp_cast_desc d = AMP_ZERO;
                    d.saturate = (uint32_t)(k + m) & 1u;
                    t_note(t, "%s from %s, n = %d, src + %d, dst + %d bytes, saturate %d", amp_dtype_name(to),
                        amp_dtype_name(from), (int)n, (int)os, (int)od, (int)d.saturate);
                    fill(t, src, from, n);
                    memset(want, 0x5a, 4 * LARGEST + 32);
                    t_set(t, ddst, want, n * st + od + 16);
                    t_set(t, dsrc + os, src, n * sf);
                    CHECK_OK(
                        amp_cast(t->ctx, amp_arr(ddst + od, to), amp_arr(dsrc + os, from), n, d.saturate ? &d : NULL));
                    cast_scalar(want + od, to, src, from, n, &d);
                    t_get(t, got, ddst, n * st + od + 16); /* with what lies before and behind */
                    CHECK_BITS(got + od, want + od, n, st);
                    CHECK_BITS(got, want, n * st + od + 16, 1);
                    t_get(t, got, dsrc + os, n * sf);
                    CHECK_BITS(got, src, n * sf, 1); /* the source is only read */
                }
            }
        }
    }
}

static void cast_large(t_run *t) { /* more than one chunk per thread */
    size_t a, b, n = t_slow(t) ? 70001 : 300007;
    for (a = 0; a < 5; a++) {
        for (b = 0; b < 5; b++) {
            amp_dtype from = ref_dtypes[a], to = ref_dtypes[b];
            size_t sf = amp_dtype_size(from), st = amp_dtype_size(to);
            void *src = t_host(t, n * sf), *want = t_host(t, n * st), *got = t_host(t, n * st), *dsrc, *ddst;
            if ((t_slow(t) || t_twin(t)) && (a + b) % 3) {
                t_clear(t);
                continue;
            }
            fill(t, src, from, n);
            dsrc = t_put(t, src, n * sf);
            ddst = t_alloc(t, n * st);
            t_note(t, "%s from %s, n = %d", amp_dtype_name(to), amp_dtype_name(from), (int)n);
            CHECK_OK(amp_cast(t->ctx, amp_arrn(ddst, to, n), amp_arrn(dsrc, from, n), n, NULL));
            cast_scalar(want, to, src, from, n, NULL);
            t_get(t, got, ddst, n * st);
            CHECK_BITS(got, want, n, st);
            t_clear(t);
        }
    }
}

/* Casts that go around the caches (AMP_STREAM_BYTES and more), to where no line begins: the same as in pieces. */
static void cast_streamed(t_run *t) {
    static const amp_dtype pairs[][2] = {
        {AMP_F8E4M3, AMP_F16}, {AMP_F8E5M2, AMP_F32}, {AMP_F16, AMP_F32}, {AMP_BF16, AMP_F8E5M2}, {AMP_F32, AMP_BF16}};
    size_t k, i, n_pairs = t_twin(t) ? 1 : sizeof pairs / sizeof pairs[0];
    for (k = 0; k < n_pairs; k++, t_clear(t)) {
        amp_dtype to = pairs[k][0], from = pairs[k][1];
        size_t st = amp_dtype_size(to), sf = amp_dtype_size(from), n = (t_slow(t) ? 70000 : (8u << 20) / st) + 12345;
        void *src = t_host(t, n * sf), *want = t_host(t, n * st), *got = t_host(t, n * st);
        char *d, *s, *pieces = (char *)t_alloc(t, n * st);
        fill(t, src, from, n < 100000 ? n : 100000);
        for (i = 100000; i < n; i += 100000)
            memcpy((char *)src + i * sf, src, (n - i < 100000 ? n - i : 100000) * sf);
        s = (char *)t_put(t, src, n * sf);
        d = (char *)t_alloc_at(t, n * st, 16);
        t_note(t, "%s from %s, n = %d", amp_dtype_name(to), amp_dtype_name(from), (int)n);
        CHECK_OK(amp_cast(t->ctx, amp_arrn(d, to, n), amp_arrn(s, from, n), n, NULL));
        for (i = 0; i < n; i += 100003) {
            size_t m = n - i < 100003 ? n - i : 100003;
            CHECK_OK(amp_cast(t->ctx, amp_arrn(pieces + i * st, to, m), amp_arrn(s + i * sf, from, m), m, NULL));
        }
        t_get(t, got, d, n * st);
        t_get(t, want, pieces, n * st);
        CHECK_BITS(got, want, n, st);
    }
}

static void cast_stochastic(t_run *t) {
    size_t a, b, k;
    static const size_t counts[] = {1, 2, 3, 5, 8, 17, 64, 129, 1003, 70001};
    for (a = 0; a < 5; a++) {
        for (b = 1; b < 5; b++) {
            for (k = 0; k < sizeof counts / sizeof counts[0]; k++) {
                amp_dtype from = ref_dtypes[a], to = ref_dtypes[b];
                size_t n = counts[k], sf = amp_dtype_size(from), st = amp_dtype_size(to),
                       cut = t_below(t, (uint32_t)n + 1u);
                void *src, *want, *got, *dsrc, *ddst;
                amp_cast_desc d = AMP_ZERO;
                if (n > 2000 && (a + b) % (t_slow(t) ? 8u : 4u)) continue;
                src = t_host(t, n * sf);
                want = t_host(t, n * st);
                got = t_host(t, n * st);
                d.rounding = AMP_STOCHASTIC;
                d.seed = t_u64(t);
                d.stream = t_u64(t);
                d.saturate = (uint32_t)k & 1u;
                if (k % 3)
                    d.offset = t_u64(t) >> t_below(t, 64);
                else /* the counter may wrap */
                    d.offset = 0xffffffffffffffffu - (k % 2 ? 3u : 0u);
                t_note(t, "%s from %s, n = %d, offset %llx", amp_dtype_name(to), amp_dtype_name(from), (int)n,
                    (unsigned long long)d.offset);
                fill(t, src, from, n);
                dsrc = t_put(t, src, n * sf);
                ddst = t_alloc(t, n * st);
                CHECK_OK(amp_cast(t->ctx, amp_arr(ddst, to), amp_arr(dsrc, from), n, &d));
                cast_scalar(want, to, src, from, n, &d);
                t_get(t, got, ddst, n * st);
                CHECK_BITS(got, want, n, st);
                /* in two parts with the offset moved on: the same numbers */
                t_set(t, ddst, src, st < sf ? st * n : sf * n);
                CHECK_OK(amp_cast(t->ctx, amp_arr(ddst, to), amp_arr(dsrc, from), cut, &d));
                d.offset += cut;
                CHECK_OK(amp_cast(
                    t->ctx, amp_arr((char *)ddst + cut * st, to), amp_arr((char *)dsrc + cut * sf, from), n - cut, &d));
                t_get(t, got, ddst, n * st);
                CHECK_BITS(got, want, n, st);
                t_clear(t);
            }
        }
    }
}

/* Beside numbers of the other sign that take from each other, those near and beyond a format's largest. */
static void cast_stochastic_limits(t_run *t) {
    static const float near_f16[6] = {65503.0f, 65510.0f, 65519.5f, 65520.0f, 32768.0f, 16384.0f};
    static const uint32_t near_bf16[6] = {0x7f7f0000u, 0x7f7f4000u, 0x7f7fa000u, 0x7f7fffffu, 0x7effffffu, 0x7e7ffff0u};
    enum { LIMITS = 4096 };
    float *src = (float *)t_host(t, 4 * LIMITS);
    uint16_t *want = (uint16_t *)t_host(t, 2 * LIMITS), *got = (uint16_t *)t_host(t, 2 * LIMITS);
    void *from = t_alloc(t, 4 * LIMITS), *to = t_alloc(t, 2 * LIMITS);
    amp_cast_desc d = AMP_ZERO;
    int f16;
    size_t i;
    d.rounding = AMP_STOCHASTIC;
    for (f16 = 0; f16 < 2; f16++)
        for (d.saturate = 0; d.saturate < 2; d.saturate++) {
            const amp_dtype type = f16 ? AMP_F16 : AMP_BF16;
            d.seed = t_u64(t);
            for (i = 0; i < LIMITS; i++) {
                const uint32_t k = t_below(t, 12);
                const float x = f16 ? near_f16[k % 6] : ref_f32(near_bf16[k % 6]);
                const float one = k < 6 && t_below(t, 3) ? t_range(t, -3, 3) : x;
                src[i] = t_below(t, 2) ? one : -one;
            }
            t_note(t, "%s, saturate %d", amp_dtype_name(type), (int)d.saturate);
            t_set(t, from, src, 4 * LIMITS);
            CHECK_OK(amp_cast(t->ctx, amp_arr(to, type), amp_arr(from, AMP_F32), LIMITS, &d));
            cast_scalar(want, type, src, AMP_F32, LIMITS, &d);
            t_get(t, got, to, 2 * LIMITS);
            CHECK_BITS(got, want, LIMITS, 2);
        }
}

static void cast_in_place(t_run *t) { /* past the first chunk, too: no element twice */
    size_t a, b;
    for (a = 0; a < 5; a++) {
        for (b = 0; b < 5; b++) {
            amp_dtype from = ref_dtypes[a], to = ref_dtypes[b];
            size_t sf = amp_dtype_size(from), st = amp_dtype_size(to), n = sf == st ? AMP_CHUNK + 5003u : 5003u;
            void *src, *want, *got, *dev;
            src = t_host(t, n * sf);
            want = t_host(t, n * 4);
            got = t_host(t, n * 4);
            fill(t, src, from, n);
            dev = t_put(t, src, n * sf);
            t_note(t, "%s from %s in place", amp_dtype_name(to), amp_dtype_name(from));
            if (sf == st) {
                CHECK_OK(amp_cast(t->ctx, amp_arr(dev, to), amp_arr(dev, from), n, NULL));
                cast_scalar(want, to, src, from, n, NULL);
                t_get(t, got, dev, n * st);
                CHECK_BITS(got, want, n, st);
            } else {
                size_t m = st > sf ? n * sf / st : n; /* both arrays inside the area */
                CHECK_STATUS(amp_cast(t->ctx, amp_arr(dev, to), amp_arr(dev, from), m, NULL), AMP_ERR_INVALID_ARG,
                    "amp_cast overlap");
                t_get(t, got, dev, n * sf);
                CHECK_BITS(got, src, n * sf, 1);
            }
            t_clear(t);
        }
    }
}

static void cast_overlap(t_run *t) { /* every way to touch, and to just not touch */
    const size_t n = 64;
    unsigned char *src = (unsigned char *)t_host(t, 1024), *got = (unsigned char *)t_host(t, 1024), *dev;
    size_t at;
    fill(t, src, AMP_F16, 512);
    dev = (unsigned char *)t_put(t, src, 1024);
    for (at = 0; at <= 512; at += 2) { /* F16 to BF16: source [256, 384), target [at, at + 128) */
        int touch = at + 2 * n > 256 && at < 256 + 2 * n, same = at == 256;
        t_note(t, "source at 256, target at %d", (int)at);
        t_set(t, dev, src, 1024);
        if (touch && !same)
            CHECK_STATUS(amp_cast(t->ctx, amp_arr(dev + at, AMP_BF16), amp_arr(dev + 256, AMP_F16), n, NULL),
                AMP_ERR_INVALID_ARG, "overlap");
        else
            CHECK_OK(amp_cast(t->ctx, amp_arr(dev + at, AMP_BF16), amp_arr(dev + 256, AMP_F16), n, NULL));
        if (touch && !same) {
            t_get(t, got, dev, 1024);
            CHECK_BITS(got, src, 1024, 1);
        }
    }
    t_note(t, "sizes differ"); /* F32 [256, 512) to F16 [at, at + 128) */
    t_set(t, dev, src, 1024);
    CHECK_OK(amp_cast(t->ctx, amp_arr(dev + 128, AMP_F16), amp_arr(dev + 256, AMP_F32), n, NULL));
    CHECK_OK(amp_cast(t->ctx, amp_arr(dev + 512, AMP_F16), amp_arr(dev + 256, AMP_F32), n, NULL));
    CHECK_STATUS(amp_cast(t->ctx, amp_arr(dev + 130, AMP_F16), amp_arr(dev + 256, AMP_F32), n, NULL),
        AMP_ERR_INVALID_ARG, "overlap");
    CHECK_STATUS(amp_cast(t->ctx, amp_arr(dev + 510, AMP_F16), amp_arr(dev + 256, AMP_F32), n, NULL),
        AMP_ERR_INVALID_ARG, "overlap");
    CHECK_STATUS(amp_cast(t->ctx, amp_arr(dev + 300, AMP_F16), amp_arr(dev + 256, AMP_F32), n, NULL),
        AMP_ERR_INVALID_ARG, "overlap");
    t_note(t, "same dtype"); /* also a plain copy may not overlap */
    CHECK_STATUS(amp_cast(t->ctx, amp_arr(dev + 258, AMP_F16), amp_arr(dev + 256, AMP_F16), n, NULL),
        AMP_ERR_INVALID_ARG, "overlap");
    CHECK_OK(amp_cast(t->ctx, amp_arr(dev + 256, AMP_F16), amp_arr(dev + 256, AMP_F16), n, NULL));
}

static void cast_errors(t_run *t) {
    float host[8] = {1, 2, 3, 4, 5, 6, 7, 8}, back[8];
    void *src = t_put(t, host, sizeof host), *dst = t_put(t, host, sizeof host);
    amp_array s = amp_arr(src, AMP_F32), d = amp_arr(dst, AMP_F16), wrong;
    amp_cast_desc o = AMP_ZERO;
    CHECK_OK(amp_cast(t->ctx, amp_arr(NULL, AMP_F16), amp_arr(NULL, AMP_F32), 0, NULL));
    CHECK_OK(amp_cast(t->ctx, d, s, 0, NULL));
    CHECK_OK(amp_cast(t->ctx, d, s, 0, &o));
    CHECK_EQ(amp_cast(NULL, d, s, 8, NULL), AMP_ERR_INVALID_ARG);
    CHECK_STATUS(amp_cast(t->ctx, amp_arr(NULL, AMP_F16), s, 8, NULL), AMP_ERR_INVALID_ARG, "amp_cast dst");
    CHECK_STATUS(amp_cast(t->ctx, d, amp_arr(NULL, AMP_F32), 8, NULL), AMP_ERR_INVALID_ARG, "amp_cast src");
    CHECK_STATUS(amp_cast(t->ctx, amp_arr(dst, AMP_AUTO), s, 8, NULL), AMP_ERR_INVALID_ARG, "amp_cast dst");
    CHECK_STATUS(amp_cast(t->ctx, d, amp_arr(src, AMP_AUTO), 8, NULL), AMP_ERR_INVALID_ARG, "amp_cast src");
    CHECK_STATUS(amp_cast(t->ctx, d, amp_arr(src, AMP_DTYPE_COUNT), 8, NULL), AMP_ERR_INVALID_ARG, "amp_cast src");
    CHECK_STATUS(amp_cast(t->ctx, amp_arr(dst, (amp_dtype)7), s, 8, NULL), AMP_ERR_INVALID_ARG, "amp_cast dst");
    CHECK_STATUS(amp_cast(t->ctx, amp_arrn(dst, AMP_F16, 7), s, 8, NULL), AMP_ERR_INVALID_ARG, "amp_cast dst count 7");
    CHECK_STATUS(amp_cast(t->ctx, d, amp_arrn(src, AMP_F32, 7), 8, NULL), AMP_ERR_INVALID_ARG, "amp_cast src count 7");
    CHECK_STATUS(amp_cast(t->ctx, d, s, (size_t)-1 / 2, NULL), AMP_ERR_INVALID_ARG, "amp_cast count|overlap");
    CHECK_OK(amp_cast(t->ctx, amp_arrn(dst, AMP_F16, 9), amp_arrn(src, AMP_F32, 8), 8, NULL));
    wrong = d;
    wrong.flags = 1;
    CHECK_STATUS(amp_cast(t->ctx, wrong, s, 8, NULL), AMP_ERR_INVALID_ARG, "amp_cast dst flags");
    o._begin = 1;
    CHECK_STATUS(amp_cast(t->ctx, d, s, 8, &o), AMP_ERR_UNINIT, "amp_cast _begin|opt|desc");
    o._begin = 0;
    o._end = 1;
    CHECK_STATUS(amp_cast(t->ctx, d, s, 8, &o), AMP_ERR_UNINIT, "amp_cast _end|opt|desc");
    o._end = 0;
    o.flags = 4;
    CHECK_STATUS(amp_cast(t->ctx, d, s, 8, &o), AMP_ERR_INVALID_ARG, "amp_cast flags");
    o.flags = 0;
#ifndef __cplusplus /* such an enum value would be undefined in C++ */
    o.rounding = (amp_rounding)2;
    CHECK_STATUS(amp_cast(t->ctx, d, s, 8, &o), AMP_ERR_INVALID_ARG, "amp_cast rounding");
#endif
    t_get(t, back, src, sizeof back);
    CHECK_BITS(back, host, 8, 4);
}

/* ---- finite check ---- */

typedef struct list {
    amp_array arrays[12];
    void *host[12];
    size_t n;
} list;

static void naive_finite(const list *l, amp_finite_report *r) {
    size_t a, i;
    memset(r, 0, sizeof *r);
    for (a = 0; a < l->n; a++)
        for (i = 0; i < l->arrays[a].count; i++) {
            float x = amp_load(l->host[a], l->arrays[a].dtype, i);
            if (amp_is_finite(x)) continue;
            if (r->nan + r->inf == 0) {
                r->first_array = a;
                r->first_index = i;
            }
            if (x != x)
                r->nan++;
            else
                r->inf++;
        }
}

/* A pattern of the dtype: Inf (kind 0), NaN (1), or the largest finite number (2). E4M3, which has no Inf: 2 for 0. */
static uint32_t odd_pattern(amp_dtype type, int kind, t_run *t) {
    static const struct {
        uint32_t sign, inf, nans;
    } of[AMP_DTYPE_COUNT] = {
        {0, 0, 0},
        {31, 0x7f800000u, 0x7fffff}, /* as ref_dtypes */
        {15, 0x7c00u, 0x3ff},
        {15, 0x7f80u, 0x7f},
        {7, 0x7fu, 1},
        {7, 0x7cu, 3},
    };
    uint32_t sign = t_below(t, 2) << of[type].sign, inf = of[type].inf;
    if (type == AMP_F8E4M3) return sign | (kind == 1 ? inf : inf - 1);
    if (kind == 1) return sign | (inf + 1 + t_below(t, of[type].nans));
    return sign | (kind == 0 ? inf : inf - 1);
}

static void finite_lists(t_run *t) {
    int round, rounds = t_slow(t) ? 30 : 150;
    for (round = 0; round < rounds; round++) {
        list l = AMP_ZERO;
        amp_finite_report got, want;
        size_t a, i, plant;
        l.n = 1 + t_below(t, 12);
        for (a = 0; a < l.n; a++) {
            amp_dtype type = ref_dtypes[t_below(t, 5)];
            size_t n = t_below(t, 4) == 0 ? 0 : sizes[t_below(t, N_SIZES)], size = amp_dtype_size(type),
                   offset = size * t_below(t, 4);
            if (round % 25 == 24 && a == 0) n = (t_slow(t) ? 66000 : 140000) + t_below(t, 5000);
            l.host[a] = t_host(t, n * size);
            t_fill_real(t, l.host[a], type, n, 2.0f);
            plant = round % 3 && n ? t_below(t, 4) : 0;
            for (i = 0; i < plant; i++) {
                size_t where = t_below(t, (uint32_t)n);
                if (i == 0 && t_below(t, 3) == 0) where = n - 1;
                if (i == 1 && t_below(t, 3) == 0) where = 0;
                ampi_store_pattern(l.host[a], type, where, odd_pattern(type, (int)t_below(t, 3), t));
            }
            l.arrays[a] = amp_arrn(n ? t_put_at(t, l.host[a], n * size, offset) : NULL, type, n);
        }
        naive_finite(&l, &want);
        memset(&got, 0x77, sizeof got);
        CHECK_OK(amp_all_finite(t->ctx, &got, l.arrays, l.n));
        t_note(t, "round %d: %d arrays", round, (int)l.n);
        CHECK_EQ(got.nan, want.nan);
        CHECK_EQ(got.inf, want.inf);
        if (want.nan + want.inf) {
            CHECK_EQ(got.first_array, want.first_array);
            CHECK_EQ(got.first_index, want.first_index);
        }
        t_clear(t);
    }
}

static void finite_every_pattern(t_run *t) { /* each pattern of the small formats is judged right */
    size_t d, p;
    for (d = 1; d < 5; d++) {
        amp_dtype type = ref_dtypes[d];
        size_t n = (size_t)1 << (8 * amp_dtype_size(type));
        list l = AMP_ZERO;
        amp_finite_report got, want;
        l.n = 1;
        l.host[0] = t_host(t, n * amp_dtype_size(type));
        for (p = 0; p < n; p++)
            ampi_store_pattern(l.host[0], type, p, (uint32_t)p);
        l.arrays[0] = amp_arrn(t_put(t, l.host[0], n * amp_dtype_size(type)), type, n);
        naive_finite(&l, &want);
        t_note(t, "%s", amp_dtype_name(type));
        CHECK_EQ(want.nan, type == AMP_F16 ? 2 * 1023 : type == AMP_BF16 ? 2 * 127 : type == AMP_F8E4M3 ? 2 : 6);
        CHECK_EQ(want.inf, type == AMP_F8E4M3 ? 0 : 2);
        CHECK_OK(amp_all_finite(t->ctx, &got, l.arrays, 1));
        CHECK_EQ(got.nan, want.nan);
        CHECK_EQ(got.inf, want.inf);
        CHECK_EQ(got.first_index, want.first_index);
        t_clear(t);
    }
}

static void finite_errors(t_run *t) {
    float host[4] = {1, 2, 3, 4};
    amp_array a = amp_arrn(t_put(t, host, sizeof host), AMP_F32, 4), bad;
    amp_finite_report r;
    memset(&r, 0x55, sizeof r);
    CHECK_OK(amp_all_finite(t->ctx, &r, NULL, 0));
    CHECK(r.nan == 0 && r.inf == 0);
    CHECK_EQ(amp_all_finite(NULL, &r, &a, 1), AMP_ERR_INVALID_ARG);
    CHECK_STATUS(amp_all_finite(t->ctx, NULL, &a, 1), AMP_ERR_INVALID_ARG, "amp_all_finite report");
    CHECK_STATUS(amp_all_finite(t->ctx, &r, NULL, 1), AMP_ERR_INVALID_ARG, "amp_all_finite arrays");
    bad = a;
    bad.dtype = AMP_AUTO;
    memset(&r, 0x55, sizeof r);
    CHECK_STATUS(amp_all_finite(t->ctx, &r, &bad, 1), AMP_ERR_INVALID_ARG, "amp_all_finite arrays[0] dtype");
    CHECK_EQ(r.nan, 0x5555555555555555); /* outputs untouched on failure */
    bad = a;
    bad.data = NULL;
    CHECK_STATUS(amp_all_finite(t->ctx, &r, &bad, 1), AMP_ERR_INVALID_ARG, "amp_all_finite arrays[0]");
}

/* A list may hold empty arrays, as the last rank's shards are: with data and without elements, or {NULL}. */
static void empty_entries(t_run *t) {
    const float host[4] = {1, (float)INFINITY, 3, 4}, zeros[8] = {0};
    amp_array list[4], to[4];
    amp_finite_report r;
    amp_histogram h;
    amp_scaler *s = NULL;
    float got[8];
    size_t i;
    for (i = 0; i < 4; i++) {
        list[i] = amp_arrn(t_put(t, host, sizeof host), AMP_F32, i == 2 ? 4 : 0);
        to[i] = amp_arrn(t_put(t, zeros, sizeof host), AMP_F32, 0);
    }
    list[3] = to[3] = amp_arr(NULL, AMP_F32);
    CHECK_OK(amp_all_finite(t->ctx, &r, list, 4));
    CHECK(r.inf == 1 && r.nan == 0 && r.first_array == 2 && r.first_index == 1);
    CHECK_OK(amp_histogram_count(t->ctx, &h, list, 4));
    CHECK(h.total == 4 && h.inf == 1);
    CHECK_OK(amp_all_finite(t->ctx, &r, list, 2));
    CHECK_EQ(r.inf, 0);
    CHECK_OK(amp_scaler_create(&s, t->ctx, NULL));
    CHECK_OK(amp_unscale(s, to, &r, list, 4));
    CHECK(r.inf == 1 && r.first_array == 2);
    t_get(t, got, to[1].data, 16);
    CHECK_BITS(got, zeros, 4, 4);
    t_get(t, got, to[2].data, 16);
    CHECK_F32(got[0], 1.0f / 65536.0f);
    amp_scaler_destroy(s);
}

/* ---- histogram ---- */

static void naive_histogram(const list *l, amp_histogram *h) {
    size_t a, i;
    memset(h, 0, sizeof *h);
    for (a = 0; a < l->n; a++)
        for (i = 0; i < l->arrays[a].count; i++) {
            double x = fabs((double)amp_load(l->host[a], l->arrays[a].dtype, i));
            int e;
            h->total++;
            if (x != x)
                h->nan++;
            else if (x > 3.5e38)
                h->inf++;
            else {
                if (x == 0.0)
                    h->zero++;
                else {
                    (void)frexp(x, &e); /* x in [2^(e-1), 2^e) */
                    h->pow2[e - 1 + 127 > 0 ? e - 1 + 127 : 0]++;
                }
                if (x > (double)h->amax) h->amax = (float)x;
            }
        }
}

static void check_histogram(t_run *t, const list *l) {
    amp_histogram got, want;
    naive_histogram(l, &want);
    memset(&got, 0x33, sizeof got);
    CHECK_OK(amp_histogram_count(t->ctx, &got, l->arrays, l->n));
    CHECK_EQ(got.total, want.total);
    CHECK_EQ(got.zero, want.zero);
    CHECK_EQ(got.inf, want.inf);
    CHECK_EQ(got.nan, want.nan);
    CHECK_BITS(got.pow2, want.pow2, 256, 8);
    CHECK_F32(got.amax, want.amax);
}

static void histogram_lists(t_run *t) {
    int round, rounds = t_slow(t) ? 15 : 60;
    for (round = 0; round < rounds; round++) {
        list l = AMP_ZERO;
        size_t a;
        l.n = t_below(t, 8);
        for (a = 0; a < l.n; a++) {
            amp_dtype type = ref_dtypes[t_below(t, 5)];
            size_t n = t_below(t, 4) == 0 ? 0 : sizes[t_below(t, N_SIZES)], size = amp_dtype_size(type),
                   offset = size * t_below(t, 4);
            if (round % 20 == 19 && a == 0) n = (t_slow(t) ? 66000 : 140000) + t_below(t, 5000);
            l.host[a] = t_host(t, n * size);
            if (t_below(t, 4)) fill(t, l.host[a], type, n); /* else zeros */
            l.arrays[a] = amp_arrn(n ? t_put_at(t, l.host[a], n * size, offset) : NULL, type, n);
        }
        t_note(t, "round %d: %d arrays", round, (int)l.n);
        check_histogram(t, &l);
        t_clear(t);
    }
}

static void histogram_every_pattern(t_run *t) {
    size_t d, p;
    for (d = 1; d < 5; d++) {
        amp_dtype type = ref_dtypes[d];
        size_t n = (size_t)1 << (8 * amp_dtype_size(type));
        list l = AMP_ZERO;
        l.n = 1;
        l.host[0] = t_host(t, n * amp_dtype_size(type));
        for (p = 0; p < n; p++)
            ampi_store_pattern(l.host[0], type, p, (uint32_t)p);
        l.arrays[0] = amp_arrn(t_put(t, l.host[0], n * amp_dtype_size(type)), type, n);
        t_note(t, "%s", amp_dtype_name(type));
        check_histogram(t, &l);
        t_clear(t);
    }
}

static void histogram_errors(t_run *t) {
    float host[4] = {1, 2, 3, 4};
    amp_array a = amp_arrn(t_put(t, host, sizeof host), AMP_F32, 4), bad;
    amp_histogram h;
    CHECK_EQ(amp_histogram_count(NULL, &h, &a, 1), AMP_ERR_INVALID_ARG);
    CHECK_STATUS(amp_histogram_count(t->ctx, NULL, &a, 1), AMP_ERR_INVALID_ARG, "amp_histogram_count out");
    CHECK_STATUS(amp_histogram_count(t->ctx, &h, NULL, 1), AMP_ERR_INVALID_ARG, "amp_histogram_count arrays");
    bad = a;
    bad.dtype = AMP_DTYPE_COUNT;
    CHECK_STATUS(amp_histogram_count(t->ctx, &h, &bad, 1), AMP_ERR_INVALID_ARG, "amp_histogram_count arrays[0] dtype");
    CHECK_OK(amp_histogram_count(t->ctx, &h, NULL, 0));
    CHECK_EQ(h.total, 0);
    CHECK_F32(h.amax, 0.0f);
}

/* Shares against counting: exact for powers of two, except for numbers at exactly half the smallest subnormal, which do
   not occur here. */
static void histogram_shares(t_run *t) {
    static const amp_dtype types[3] = {AMP_F16, AMP_F8E4M3, AMP_F8E5M2};
    list l = AMP_ZERO;
    amp_histogram h;
    float *x = (float *)t_host(t, 4 * 4000);
    size_t i, d;
    int s;
    l.n = 1;
    l.host[0] = x;
    l.arrays[0] = amp_arrn(x, AMP_F32, 4000);
    for (i = 0; i < 4000; i++) {
        x[i] = t_range(t, -60, 30);
        if ((ref_f32_bits(x[i]) & 0x7fffffu) == 0) x[i] = 3.0f; /* no exact powers of two */
    }
    x[0] = 0.0f;
    x[1] = -0.0f;
    x[2] = ref_f32(0x7f800000);
    x[3] = ref_f32(0x7fc00000); /* not counted in the shares */
    naive_histogram(&l, &h);
    for (d = 0; d < 3; d++) {
        ref_format f = ref_format_of(types[d]);
        double above =
            ldexp(1.0, (int)ceil(log2(ref_value(&f, f.max)))); /* the bin that straddles the limit ends here */
        for (s = -20; s <= 24; s++) {
            double lost = 0, small = 0, over = 0, scale = ldexp(1.0, s), n = 3996;
            amp_fates fates = amp_histogram_fates(&h, types[d], (float)scale);
            for (i = 4; i < 4000; i++) {
                double size = fabs((double)x[i]) * scale;
                int zero = (ref_encode((double)x[i] * scale, types[d], 0) & ((1u << (f.bits - 1)) - 1u)) == 0;
                lost += zero;
                small += !zero && size < ldexp(1.0, 1 - f.bias);
                over += size >= above;
            }
            t_note(t, "%s, scale 2^%d", amp_dtype_name(types[d]), s);
            CHECK_NEAR(fates.lost, lost / n, 1e-12);
            CHECK_NEAR(fates.subnormal, small / n, 1e-12);
            CHECK_NEAR(fates.overflow, over / n, 1e-12);
        }
    }
    t_note(t, "nothing to count");
    memset(&h, 0, sizeof h);
    CHECK_NEAR(amp_histogram_fates(&h, AMP_F16, 1.0f).lost, 0.0, 0.0);
    CHECK_NEAR(amp_histogram_fates(&h, AMP_F16, 1.0f).overflow, 0.0, 0.0);
    h.total = h.zero = 7;
    CHECK_NEAR(amp_histogram_fates(&h, AMP_F16, 1.0f).lost, 0.0, 0.0);
    t_note(t, "one number of 2^-25 counts as kept, one just below it is lost");
    h.pow2[127 - 25] = 1;
    CHECK_NEAR(amp_histogram_fates(&h, AMP_F16, 1.0f).lost, 0.0, 0.0);
    h.pow2[127 - 25] = 0;
    h.pow2[127 - 26] = 1;
    CHECK_NEAR(amp_histogram_fates(&h, AMP_F16, 1.0f).lost, 1.0, 0.0);
    CHECK_NEAR(amp_histogram_fates(&h, AMP_F16, 2.0f).lost, 0.0, 0.0);
    CHECK_NEAR(amp_histogram_fates(&h, AMP_F32, 1.0f).lost, 0.0, 0.0);
    CHECK_NEAR(amp_histogram_fates(&h, AMP_F32, 1.0f).subnormal, 0.0, 0.0);
    CHECK_NEAR(amp_histogram_fates(&h, AMP_F32, ldexpf(1.0f, -101)).subnormal, 1.0, 0.0);
    t_note(t, "1.5 * 2^-150 becomes FP32's smallest number");
    h.pow2[127 - 26] = 0;
    h.pow2[127 - 126] = 1;
    CHECK_NEAR(amp_histogram_fates(&h, AMP_F32, ldexpf(1.0f, -24)).lost, 0.0, 0.0);
    CHECK_NEAR(amp_histogram_fates(&h, AMP_F32, ldexpf(1.0f, -25)).lost, 1.0, 0.0);
    h.pow2[127 - 126] = 0;
    h.pow2[127 - 26] = 1;
    t_note(t, "nothing to answer");
    CHECK_NEAR(amp_histogram_fates(&h, AMP_AUTO, 1.0f).lost, 0.0, 0.0);
    CHECK_NEAR(amp_histogram_fates(&h, AMP_F16, 0.0f).lost, 0.0, 0.0);
    CHECK_NEAR(amp_histogram_fates(&h, AMP_F16, ref_f32(0x7fc00000)).lost, 0.0, 0.0);
    CHECK_NEAR(amp_histogram_fates(NULL, AMP_F16, 1.0f).lost, 0.0, 0.0);
    CHECK_NEAR(amp_histogram_fates(&h, AMP_BF16, 1.0f).lost, 0.0, 0.0);
}

static void histogram_add(t_run *t) { /* two lists, one after the other, are the list of both */
    list first = AMP_ZERO, second = AMP_ZERO, both = AMP_ZERO;
    amp_histogram a, b, want;
    float *x = (float *)t_host(t, 4 * 900);
    size_t i;
    for (i = 0; i < 900; i++)
        x[i] = t_pattern(t);
    x[700] = 3e38f; /* the largest is in the second */
    first.n = second.n = both.n = 1;
    first.host[0] = both.host[0] = x;
    second.host[0] = x + 400;
    first.arrays[0] = amp_arrn(x, AMP_F32, 400);
    second.arrays[0] = amp_arrn(x + 400, AMP_F32, 500);
    both.arrays[0] = amp_arrn(x, AMP_F32, 900);
    naive_histogram(&first, &a);
    naive_histogram(&second, &b);
    naive_histogram(&both, &want);
    amp_histogram_add(&a, &b);
    CHECK_BITS((unsigned char *)&a, (unsigned char *)&want, sizeof a, 1);
    t_note(t, "the largest stays, whatever the order");
    naive_histogram(&first, &a);
    amp_histogram_add(&b, &a);
    CHECK_BITS((unsigned char *)&b, (unsigned char *)&want, sizeof b, 1);
    amp_histogram_add(NULL, &a);
    amp_histogram_add(&b, NULL);
    CHECK_BITS((unsigned char *)&b, (unsigned char *)&want, sizeof b, 1);
}

static void suggest_scale(t_run *t) {
    amp_histogram h;
    int i;
    memset(&h, 0, sizeof h);
    CHECK_F32(amp_histogram_suggest_scale(&h), 65536.0f); /* nothing to go by */
    h.total = h.inf = 3;
    CHECK_F32(amp_histogram_suggest_scale(&h), 65536.0f);
    for (i = 0; i < 2000; i++) {
        static const float chosen[6] = {32752.0f, 32752.002f, 1.0f, 0.5f, 3.4e38f, 1e-45f};
        float amax = i < 6 ? chosen[i] : fabsf(t_range(t, -60, 60));
        double want = ldexp(1.0, 100);
        memset(&h, 0, sizeof h);
        h.total = 1;
        h.amax = amax;
        h.pow2[ref_f32_bits(amax) >> 23] = 1;
        while (want * (double)amax > 32752.0 && want > ldexp(1.0, -14))
            want *= 0.5;
        t_note(t, "amax %a", (double)amax);
        CHECK_F32(amp_histogram_suggest_scale(&h), (float)want);
    }
}

/* ---- double: amp_cast and amp_all_finite ---- */

/* Numbers on both sides of what formats can hold, halves of their last places, and any pattern. */
static double some_double(t_run *t, size_t i) {
    static const uint64_t bits[] = {0, (uint64_t)1 << 63, 1, 0x7ff0000000000000u, 0xfff0000000000000u,
        0x7ff8000000000000u, 0x7ff0000000000001u, 0xfff4000020000000u, 0x47efffffe0000000u, 0x47efffffefffffffu,
        0x47effffff0000000u, 0xffefffffffffffffu, 0x36a0000000000000u, 0x3690000000000000u, 0x3690000000000001u,
        0x380fffffffffffffu, 0x3ff0020000001000u, 0x3ff0000010000000u, 0x3ff0000030000000u, 0x40effe0000000000u,
        0x40effdffffffffffu};
    uint64_t some;
    if (i < sizeof bits / sizeof bits[0]) return ref_f64(bits[i]);
    if (i % 4 == 0) return ref_f64(t_u64(t));
    some = ref_f64_bits(ldexp((double)t_real(t), (int)t_below(t, 60) - 40)) & ~(uint64_t)0 << t_below(t, 52);
    return ref_f64(i % 4 == 1 ? some + 1 : some);
}
static void cast_doubles(t_run *t) {
    size_t n = t_slow(t) ? 3000 : AMP_CHUNK + 777, i, type;
    double *x = (double *)t_host(t, 8 * n), *back = (double *)t_host(t, 8 * n);
    void *from = t_host(t, 8 * n), *got = t_host(t, 8 * n), *src, *dst;
    for (i = 0; i < n; i++)
        x[i] = some_double(t, i);
    for (type = 0; type < 5; type++) {
        amp_dtype to = ref_dtypes[type];
        size_t size = amp_dtype_size(to), wrong = 0;
        amp_cast_desc o = AMP_ZERO;
        src = t_put(t, x, 8 * n);
        dst = t_alloc(t, 8 * n);
        for (o.saturate = 0; o.saturate < 2; o.saturate++) {
            CHECK_OK(amp_cast(t->ctx, amp_arr(dst, to), amp_arr(src, AMP_F64), n, &o));
            t_get(t, got, dst, size * n);
            for (i = 0; i < n; i++) {
                uint32_t is = ampi_load_pattern(got, to, i), want;
                if (to != AMP_F32) {
                    want = ref_encode(x[i], to, (int)o.saturate);
                } else if (ref_is_nan(x[i])) {
                    uint64_t u = ref_f64_bits(x[i]);
                    want = (uint32_t)(u >> 32 & 0x80000000u) | 0x7fc00000u | (uint32_t)(u >> 29 & 0x3fffffu);
                } else {
                    want = ref_f32_bits((float)x[i]);
                    if (o.saturate && (want & 0x7fffffffu) == 0x7f800000u) want--;
                }
                if (is == want) continue;
                if (wrong++ == 0)
                    t_check(t, 0, __FILE__, __LINE__, "%a to %s is %08x, should be %08x", x[i], amp_dtype_name(to),
                        (unsigned)is, (unsigned)want);
            }
        }
        t_note(t, "%s to f64", amp_dtype_name(to));
        for (i = 0; i < n; i++)
            ampi_store_pattern(from, to, i, ref_f32_bits(t_pattern(t)));
        CHECK_OK(amp_cast(t->ctx, amp_arr(dst, AMP_F64), amp_arr(t_put(t, from, size * n), to), n, NULL));
        t_get(t, back, dst, 8 * n);
        for (i = 0, wrong = 0; i < n; i++) {
            uint32_t bits = ref_decode(ampi_load_pattern(from, to, i), to);
            if (to == AMP_F32) bits = ampi_load_pattern(from, to, i);
            wrong += ref_f64_bits(back[i]) != ref_f64_bits(ref_f32_as_f64(ref_f32(bits)));
        }
        CHECK_EQ(wrong, 0);
    }
    t_note(t, "copies");
    src = t_put(t, x, 8 * n);
    dst = t_alloc(t, 8 * n);
    CHECK_OK(amp_cast(t->ctx, amp_arr(dst, AMP_F64), amp_arr(src, AMP_F64), n, NULL));
    t_get(t, back, dst, 8 * n);
    CHECK(memcmp(back, x, 8 * n) == 0);
    CHECK_OK(amp_cast(t->ctx, amp_arr(dst, AMP_F64), amp_arr(dst, AMP_F64), n, NULL));
    CHECK_STATUS(amp_cast(t->ctx, amp_arr(dst, AMP_F32), amp_arr(dst, AMP_F64), n, NULL), AMP_ERR_INVALID_ARG,
        "dst and src overlap");
}
/* Stochastic: one of the two neighbours, as often as it is near; the random words are those of amp_random. */
static void cast_doubles_stochastic(t_run *t) {
    size_t n = 4000, i, up = 0;
    double *x = (double *)t_host(t, 8 * n);
    uint16_t *h = (uint16_t *)t_host(t, 2 * n);
    void *src, *dst = t_alloc(t, 4 * n);
    amp_cast_desc o = AMP_ZERO;
    o.rounding = AMP_STOCHASTIC;
    o.seed = 5;
    o.offset = 3;
    for (i = 0; i < n; i++)
        x[i] = 1.0 + ldexp(0.25, -10);
    src = t_put(t, x, 8 * n);
    CHECK_OK(amp_cast(t->ctx, amp_arr(dst, AMP_F16), amp_arr(src, AMP_F64), n, &o));
    t_get(t, h, dst, 2 * n);
    for (i = 0; i < n; i++) {
        CHECK_EQ(h[i], amp_f16_from_f32_sr((float)x[i], amp_random(5, 0, 3 + i)).bits);
        up += h[i] == 0x3c01;
    }
    CHECK(up > n / 5 && up < n * 3 / 10);
    CHECK_STATUS(amp_cast(t->ctx, amp_arr(dst, AMP_F32), amp_arr(src, AMP_F64), n, &o), AMP_ERR_INVALID_ARG,
        "desc.rounding stochastic f64 f32");
}
static void finite_doubles(t_run *t) {
    size_t n = AMP_CHUNK + 100, i;
    double *x = (double *)t_host(t, 8 * n);
    float some[4] = {1, 2, ref_f32(0x7f800000u), 3};
    amp_array list[3];
    amp_finite_report r;
    for (i = 0; i < n; i++)
        x[i] = ref_f64(t_u64(t) & ~((uint64_t)1 << 62)); /* finite, and beyond the floats */
    x[17] = 1.7976931348623157e308;
    memset(list, 0, sizeof list);
    list[1] = amp_arrn(t_put(t, x, 8 * n), AMP_F64, n);
    CHECK_OK(amp_all_finite(t->ctx, &r, list, 2));
    CHECK_EQ(r.nan + r.inf, 0);
    x[AMP_CHUNK + 5] = ref_f64((uint64_t)0x7ff << 52);
    x[AMP_CHUNK + 9] = ref_f64(((uint64_t)0xfff << 52) + 1);
    x[AMP_CHUNK + 8] = ref_f64((uint64_t)0xfff << 52);
    t_set(t, list[1].data, x, 8 * n);
    list[2] = amp_arrn(t_put(t, some, sizeof some), AMP_F32, 4);
    CHECK_OK(amp_all_finite(t->ctx, &r, list, 3));
    CHECK_EQ(r.nan, 1);
    CHECK_EQ(r.inf, 3);
    CHECK_EQ(r.first_array, 1);
    CHECK_EQ(r.first_index, AMP_CHUNK + 5);
}
/* Everywhere else a sentence says what to do. */
static void doubles_refused(t_run *t) {
    char *mem = (char *)t_alloc(t, 4096);
    amp_array d = amp_arrn(mem, AMP_F64, 16), f = amp_arrn(mem + 1024, AMP_F32, 16), out = AMP_ZERO;
    amp_gemm_desc g = AMP_ZERO;
    amp_linear_desc l = AMP_ZERO;
    amp_xent_desc x = AMP_ZERO;
    amp_dropout_desc drop = AMP_ZERO;
    amp_params_desc pd = AMP_ZERO;
    amp_params *p = NULL;
    amp_scaler *s = NULL;
    amp_fp8 *f8 = NULL;
    amp_histogram h;
    CHECK_OK(amp_zero(t->ctx, mem, 4096));
    CHECK_OK(amp_scaler_create(&s, t->ctx, NULL));
    CHECK_OK(amp_fp8_create(&f8, t->ctx, NULL));
    g.m = g.n = g.k = l.rows = l.in = l.out = x.rows = x.classes = 4;
    g.a = g.b = d;
    g.d = f;
    CHECK_STATUS(amp_gemm(t->ctx, &g), AMP_ERR_INVALID_ARG, "desc.a is f64 amp_cast it to f32 first");
    g.a = g.b = f;
    g.d = d;
    CHECK_STATUS(amp_gemm(t->ctx, &g), AMP_ERR_INVALID_ARG, "desc.d is f64");
    l.x = l.w = d;
    l.y = f;
    CHECK_STATUS(amp_linear_forward(t->ctx, &l), AMP_ERR_INVALID_ARG, "x is f64");
    l.dy = d;
    CHECK_STATUS(amp_linear_backward(t->ctx, &l), AMP_ERR_INVALID_ARG, "dy is f64");
    x.logits = d;
    x.labels = (const int32_t *)(void *)(mem + 2048);
    CHECK_STATUS(amp_softmax_cross_entropy(t->ctx, &x), AMP_ERR_INVALID_ARG, "desc.logits is f64");
    drop.x = drop.y = d;
    drop.count = 16;
    CHECK_STATUS(amp_dropout(t->ctx, &drop), AMP_ERR_INVALID_ARG, "desc.y is f64");
    CHECK_STATUS(amp_unscale(s, &f, NULL, &d, 1), AMP_ERR_INVALID_ARG, "grads[0] is f64");
    CHECK_STATUS(amp_unscale(s, &d, NULL, &f, 1), AMP_ERR_INVALID_ARG, "dst[0] is f64");
    CHECK_STATUS(amp_histogram_count(t->ctx, &h, &d, 1), AMP_ERR_INVALID_ARG, "arrays[0] is f64");
    CHECK_STATUS(amp_quantize(f8, 0, amp_arr(mem + 1024, AMP_F8E4M3), out, d, 4, 4, 0), AMP_ERR_INVALID_ARG, "src f64");
    CHECK_OK(amp_autocast_begin(t->ctx, NULL));
    CHECK_STATUS(amp_autocast_input(t->ctx, &out, AMP_OP_MATMUL, &d, 1), AMP_ERR_INVALID_ARG, "f64");
    CHECK_OK(amp_autocast_end(t->ctx));
    CHECK_OK(amp_autocast_release(t->ctx));
    pd.grad = AMP_F64;
    CHECK_STATUS(amp_params_create(&p, t->ctx, &pd), AMP_ERR_INVALID_ARG, "desc.grad f64");
    pd.grad = AMP_AUTO;
    pd.model = AMP_F64;
    CHECK_STATUS(amp_params_create(&p, t->ctx, &pd), AMP_ERR_INVALID_ARG, "desc.model f64");
    CHECK_EQ(amp_dtype_size(AMP_F64), 8);
    CHECK(strcmp(amp_dtype_name(AMP_F64), "f64") == 0);
    amp_fp8_destroy(f8);
    amp_scaler_destroy(s);
}

const t_test t_suite_arrays[] = {{"cast.scalar_load_keeps_bits", scalar_load_keeps_bits, T_HOST},
    {"cast.pairs", cast_pairs, T_ALL}, {"cast.large", cast_large, T_ALL}, {"cast.streamed", cast_streamed, T_ALL},
    {"cast.stochastic", cast_stochastic, T_ALL}, {"cast.stochastic_limits", cast_stochastic_limits, T_ALL},
    {"cast.in_place", cast_in_place, T_ALL}, {"cast.overlap", cast_overlap, T_ALL}, {"cast.errors", cast_errors, T_ALL},
    {"finite.lists", finite_lists, T_ALL}, {"finite.every_pattern", finite_every_pattern, T_ALL},
    {"finite.errors", finite_errors, T_ALL}, {"cast.doubles", cast_doubles, T_ALL},
    {"cast.doubles_stochastic", cast_doubles_stochastic, T_ALL}, {"finite.doubles", finite_doubles, T_ALL},
    {"cast.doubles_refused", doubles_refused, T_ALL}, {"histogram.lists", histogram_lists, T_ALL},
    {"histogram.every_pattern", histogram_every_pattern, T_ALL}, {"finite.empty_entries", empty_entries, T_ALL},
    {"histogram.errors", histogram_errors, T_ALL}, {"histogram.shares", histogram_shares, T_HOST},
    {"histogram.add", histogram_add, T_HOST}, {"histogram.suggest_scale", suggest_scale, T_HOST}, {NULL, NULL, 0}};
