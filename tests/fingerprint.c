/* fingerprint.c - a fingerprint of every verb: one line per case, a name and a hash of all that the case gave.

   fingerprint [--context NAME] [--filter TEXT]
   NAME: cpu-scalar, cpu-sse2, cpu-avx2, cpu-avx512, cpu-2threads or cuda. Exit status 77: this machine lacks it.

   Two versions of the library that print the same lines compute the same. What goes into a hash: each output array
   whole, with the 64 bytes before and behind it; status codes; every number of a record, field by field. NaN in arrays
   made by arithmetic count as one number, because their payload is outside the contract. Lines whose names begin with
   "product" may differ between contexts; all others are the same on all. Inputs depend on the name of the case alone:
   cases can be left out, added and moved.

   What may change its form is called through fingerprint_api.h. Recording and comparing: tests/fingerprint.sh. */
#include "fingerprint_api.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define LENGTH(a) (sizeof(a) / sizeof(a)[0])

/* ==== the harness ================================================================================================= */

#define GUARD     64u
#define POISON    0xa5
#define MAX_AREAS 64u

typedef struct area {
    unsigned char *base, *data;
    size_t bytes;
} area;

static struct {
    amp_ctx *ctx;
    int cuda;      /* executed on the CPU, so slow: whole cases are left out there, by size or by their names */
    unsigned thin; /* on CUDA, of so many cases of this group one runs */
    const char *filter;
    char name[256];
    uint64_t hash, rng;
    area areas[MAX_AREAS];
    size_t n_areas;
    unsigned long cases;
} run;

static void stop(const char *what) {
    fprintf(stderr, "fingerprint: %s: %s (%s)\n", run.name, what, amp_last_error(run.ctx));
    exit(2);
}

static void *need(void *p) {
    if (!p) stop("out of memory");
    return p;
}

static uint64_t fnv(uint64_t h, const void *data, size_t bytes) {
    const unsigned char *p = (const unsigned char *)data;
    size_t i;
    for (i = 0; i < bytes; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    return h;
}

static void mix(const void *data, size_t bytes) { run.hash = fnv(run.hash, data, bytes); }

static void mix_u64(uint64_t v) {
    unsigned char b[8];
    int i;
    for (i = 0; i < 8; i++)
        b[i] = (unsigned char)(v >> (8 * i));
    mix(b, 8);
}

static void mix_f64(double x) {
    uint64_t u;
    memcpy(&u, &x, 8);
    if ((u & 0x7fffffffffffffffu) > 0x7ff0000000000000u) u = 0x7ff8000000000000u;
    mix_u64(u);
}

static uint32_t plain_nan(uint32_t u) { /* one NaN for all of them */
    return (u & 0x7fffffffu) > 0x7f800000u ? 0x7fc00000u : u;
}

static void mix_f32(float x) {
    uint32_t u;
    memcpy(&u, &x, 4);
    mix_u64(plain_nan(u));
}

static void mix_status(amp_status st) { mix_u64((uint64_t)(int64_t)st); }

/* Starts a case; 0: it is filtered out. */
static int start(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(run.name, sizeof run.name, format, args);
    va_end(args);
    if (run.filter && !strstr(run.name, run.filter)) return 0;
    run.hash = 0xcbf29ce484222325u;
    run.rng = fnv(run.hash, run.name, strlen(run.name));
    if (run.cuda && (run.rng >> 20) % run.thin != 0) return 0;
    return 1;
}

static void finish(void) {
    size_t i;
    mix_status(amp_sync(run.ctx));
    for (i = 0; i < run.n_areas; i++)
        if (amp_free(run.ctx, run.areas[i].base) != AMP_OK) stop("amp_free");
    run.n_areas = 0;
    run.cases++;
    printf("%s\t%016" PRIx64 "\n", run.name, run.hash);
}

/* ---- memory: every array has a guard on both sides, and begins where the case wants ---- */

static void copy(void *dst, const void *src, size_t bytes) {
    if (bytes && amp_copy(run.ctx, dst, src, bytes) != AMP_OK) stop("amp_copy");
}

/* Context memory `offset` bytes behind a 256-byte boundary, holding `host`, or poison where it is NULL. */
static void *put(const void *host, size_t bytes, size_t offset) {
    size_t all = GUARD + bytes + GUARD;
    unsigned char *image = (unsigned char *)need(malloc(all));
    area *a = &run.areas[run.n_areas];
    void *p = NULL;
    if (run.n_areas == MAX_AREAS) stop("too many areas");
    if (fp_alloc(run.ctx, &p, 256 + offset + bytes + GUARD, "fingerprint") != AMP_OK) stop("amp_alloc");
    memset(image, POISON, all);
    if (host && bytes) memcpy(image + GUARD, host, bytes);
    a->base = (unsigned char *)p;
    a->data = a->base + 256 + offset;
    a->bytes = bytes;
    copy(a->data - GUARD, image, all);
    free(image);
    run.n_areas++;
    return a->data;
}

static void *room(size_t bytes, size_t offset) { return put(NULL, bytes, offset); }

/* Gives back all but the first `keep` areas. */
static void drop(size_t keep) {
    if (amp_sync(run.ctx) != AMP_OK) stop("amp_sync");
    while (run.n_areas > keep)
        if (amp_free(run.ctx, run.areas[--run.n_areas].base) != AMP_OK) stop("amp_free");
}

static uint32_t load_bits(const unsigned char *p, size_t size) {
    uint32_t u = 0;
    size_t i;
    for (i = 0; i < size; i++)
        u |= (uint32_t)p[i] << (8 * i);
    return u;
}

static int is_nan_pattern(uint32_t u, amp_dtype t) {
    if (t == AMP_F32) return (u & 0x7fffffffu) > 0x7f800000u;
    if (t == AMP_F16) return (u & 0x7fffu) > 0x7c00u;
    if (t == AMP_BF16) return (u & 0x7fffu) > 0x7f80u;
    if (t == AMP_F8E4M3) return (u & 0x7fu) == 0x7fu;
    return (u & 0x7fu) > 0x7cu;
}

/* Elements on the host; NaN as one number. */
static void mix_math(const unsigned char *p, amp_dtype t, size_t n) {
    size_t i, size = amp_dtype_size(t);
    for (i = 0; i < n; i++) {
        uint32_t u = load_bits(p + i * size, size);
        unsigned char nan[4] = {0xee, 0xee, 0xee, 0xee};
        mix(is_nan_pattern(u, t) ? nan : p + i * size, size);
    }
}

/* An array of context memory that put() or room() gave, whole, with its guards. */
static void see(const void *data, amp_dtype t, int math) {
    unsigned char *host;
    size_t i;
    for (i = 0; i < run.n_areas && run.areas[i].data != data; i++)
        continue;
    if (i == run.n_areas) stop("see: unknown array");
    host = (unsigned char *)need(malloc(run.areas[i].bytes + 2 * GUARD));
    copy(host, run.areas[i].data - GUARD, run.areas[i].bytes + 2 * GUARD);
    mix(host, GUARD);
    if (math)
        mix_math(host + GUARD, t, run.areas[i].bytes / amp_dtype_size(t));
    else
        mix(host + GUARD, run.areas[i].bytes);
    mix(host + GUARD + run.areas[i].bytes, GUARD);
    free(host);
}

static void see_bits(const void *data) { see(data, AMP_F32, 0); }

static void see_math(amp_array a) { see(a.data, a.dtype, 1); }

/* An array that the library owns. */
static void see_owned(amp_array a, size_t n, int math) {
    size_t bytes = n * amp_dtype_size(a.dtype);
    unsigned char *host;
    mix_u64(a.data != NULL);
    mix_u64((uint64_t)a.dtype);
    if (!a.data) return;
    host = (unsigned char *)need(malloc(bytes));
    copy(host, a.data, bytes);
    if (math)
        mix_math(host, a.dtype, n);
    else
        mix(host, bytes);
    free(host);
}

/* ---- numbers ---- */

typedef enum kind { NORMAL, TINY, ZERO, WILD, INTEGER, KINDS } kind;
static const char *const kind_names[KINDS] = {"normal", "tiny", "zero", "wild", "integer"};

static const amp_dtype types[5] = {AMP_F32, AMP_F16, AMP_BF16, AMP_F8E4M3, AMP_F8E5M2};

static const char *type(amp_dtype t) { return amp_dtype_name(t); }

static uint64_t next_u64(void) { /* splitmix64 */
    uint64_t z = run.rng += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint32_t next_u32(void) { return (uint32_t)(next_u64() >> 32); }

static uint32_t below(uint32_t n) { return (uint32_t)(((uint64_t)next_u32() * n) >> 32); }

static float from_bits(uint32_t u) {
    float x;
    memcpy(&x, &u, 4);
    return x;
}

static float next_wild(void) {
    static const uint32_t special[] = {0, 1, 0x007fffff, 0x00800000, 0x33000000, 0x33000001, 0x33800000, 0x33c00000,
        0x387fe000, 0x38800000, 0x3f800000, 0x3f801000, 0x3f803000, 0x3f808000, 0x43e00000, 0x43e80000, 0x43e80001,
        0x47600000, 0x476fffff, 0x47700000, 0x477fe000, 0x477fefff, 0x477ff000, 0x47800000, 0x7f7f7fff, 0x7f7f8000,
        0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fa02000, 0x7fc00000, 0x7fffffff, 0x3a800000, 0x3a800001, 0x37000000,
        0x37000001, 0x37800000, 0x00008000};
    uint32_t u = next_u32(), how = below(4);
    if (how == 0) return from_bits(special[below(LENGTH(special))] | (u & 0x80000000u));
    if (how == 1) return from_bits((u & 0x807fffffu) | ((100u + below(45)) << 23)); /* where the small formats live */
    if (how == 2) return from_bits(u & 0xffffe000u);
    return from_bits(u);
}

static float next_number(kind k) {
    uint64_t u;
    int32_t sum;
    if (k == ZERO) return from_bits(next_u32() & 0x80000000u);
    if (k == INTEGER) return (float)((int32_t)below(7) - 3);
    if (k == WILD) return next_wild();
    if (k == TINY) return from_bits((next_u32() & 0x807fffffu) | ((127u - 28u + below(16)) << 23));
    u = next_u64();
    sum = (int32_t)(u & 0xffffu) + (int32_t)(u >> 16 & 0xffffu);
    sum += (int32_t)(u >> 32 & 0xffffu) + (int32_t)(u >> 48) - 131070;
    return (float)sum * (1.0f / 32768.0f); /* a sum of four, about normal */
}

static void *numbers(kind k, amp_dtype t, size_t n, float size) { /* on the host; free it */
    void *host = need(malloc(n * amp_dtype_size(t) + 1));
    size_t i;
    volatile float factor = size; /* so that every compiler multiplies by 1, too: a signalling NaN becomes quiet */
    for (i = 0; i < n; i++)
        amp_store(host, t, i, next_number(k) * factor);
    return host;
}

/* n numbers in context memory, `shift` elements behind a boundary. */
static amp_array fill(kind k, amp_dtype t, size_t n, size_t shift) {
    void *host = numbers(k, t, n, 1.0f);
    amp_array a = amp_arrn(put(host, n * amp_dtype_size(t), shift * amp_dtype_size(t)), t, n);
    free(host);
    return a;
}

static amp_array blank(amp_dtype t, size_t n, size_t shift) {
    return amp_arrn(room(n * amp_dtype_size(t), shift * amp_dtype_size(t)), t, n);
}

static float *one_float(float x) { return (float *)put(&x, 4, 0); }

/* ==== scalar functions ============================================================================================ */

static void scalar_decode(void) {
    uint32_t u;
    size_t i;
    for (i = 1; i < 5; i++) {
        uint32_t most = amp_dtype_size(types[i]) == 2 ? 0xffffu : 0xffu;
        if (!start("scalar decode %s", type(types[i]))) continue;
        for (u = 0; u <= most; u++) {
            unsigned char b[4] = {0};
            float x;
            b[0] = (unsigned char)u;
            b[1] = (unsigned char)(u >> 8);
            x = amp_load(b, types[i], 0);
            mix(&x, 4);
        }
        finish();
    }
    if (start("scalar decode by name")) {
        for (u = 0; u <= 0xffffu; u++) {
            amp_f16 h;
            amp_bf16 b;
            amp_f8e4m3 q;
            amp_f8e5m2 r;
            h.bits = b.bits = (uint16_t)u;
            q.bits = r.bits = (uint8_t)u;
            mix_u64(ampi_bits(amp_f32_from_f16(h)));
            mix_u64(ampi_bits(amp_f32_from_bf16(b)));
            mix_u64(ampi_bits(amp_f32_from_f8e4m3(q)));
            mix_u64(ampi_bits(amp_f32_from_f8e5m2(r)));
        }
        finish();
    }
}

static void scalar_encode_one(float x, uint32_t r) {
    double wide = (double)x * (1.0 + 1.0 / 1073741824.0);
    mix_u64(amp_f16_from_f32(x).bits);
    mix_u64(amp_bf16_from_f32(x).bits);
    mix_u64(amp_f8e4m3_from_f32(x).bits);
    mix_u64(amp_f8e5m2_from_f32(x).bits);
    mix_u64(amp_f8e4m3_from_f32_sat(x).bits);
    mix_u64(amp_f8e5m2_from_f32_sat(x).bits);
    mix_u64(amp_f16_from_f32_sr(x, r).bits);
    mix_u64(amp_bf16_from_f32_sr(x, r).bits);
    mix_u64(amp_f8e4m3_from_f32_sr(x, r).bits);
    mix_u64(amp_f8e5m2_from_f32_sr(x, r).bits);
    mix_u64(amp_f16_from_f64(wide).bits);
    mix_u64(amp_bf16_from_f64(wide).bits);
    mix_u64((uint64_t)amp_is_finite(x));
    mix_u64((uint64_t)amp_is_nan(x));
}

static void scalar_encode(void) {
    int k, i;
    for (k = 0; k < KINDS; k++) {
        if (!start("scalar encode %s", kind_names[k])) continue;
        for (i = 0; i < 20000; i++) {
            float x = next_number((kind)k);
            scalar_encode_one(x, next_u32());
        }
        finish();
    }
}

static void scalar_math(void) {
    int i;
    if (start("scalar exp log gelu relu")) {
        for (i = 0; i < 50000; i++) {
            float x = next_number(i & 1 ? WILD : NORMAL);
            mix_f32(amp_exp(x));
            mix_f32(amp_log(x));
            mix_f32(amp_gelu(x));
            mix_f32(amp_gelu_grad(x));
            mix_f32(amp_relu(x));
        }
        finish();
    }
    if (start("scalar split and kahan")) {
        for (i = 0; i < 50000; i++) {
            float x = next_number(i & 1 ? WILD : NORMAL);
            uint32_t f = amp_split_pack(x, AMP_F16), b = amp_split_pack(x, AMP_BF16), k = amp_kahan_pack(x);
            uint32_t any = next_u32();
            mix_u64(amp_is_nan(x) ? 0 : f);
            mix_u64(amp_is_nan(x) ? 0 : b);
            mix_u64(amp_is_nan(x) ? 0 : k);
            mix_f32(amp_split_unpack(any, AMP_F16));
            mix_f32(amp_split_unpack(any, AMP_BF16));
            mix_f32(amp_kahan_unpack(any));
        }
        finish();
    }
    if (start("scalar split8")) {
        for (i = 0; i < 50000; i++) {
            float x = next_number(i & 1 ? WILD : NORMAL);
            const amp_dtype t = i & 2 ? AMP_F16 : AMP_BF16;
            uint32_t any = next_u32();
            mix_u64(amp_is_nan(x) ? 0 : amp_split8_pack(x, t, i & 4 ? AMP_STOCHASTIC : AMP_NEAREST, any));
            mix_f32(amp_split8_unpack(any, t));
        }
        finish();
    }
}

static void scalar_random(void) {
    uint64_t i;
    int k;
    if (start("scalar random")) {
        for (i = 0; i < 5000; i++) {
            uint64_t seed = next_u64(), stream = next_u64(), at = next_u64();
            uint32_t w[4];
            amp_philox(w, seed, stream, at);
            for (k = 0; k < 4; k++)
                mix_u64(w[k]);
            mix_u64(amp_random(seed, stream, at));
            mix_u64(amp_random(7, 3, i));
        }
        finish();
    }
    if (start("scalar dropout and scales")) {
        for (k = 0; k <= 1000; k++) {
            float p = (float)k / 1000.0f, scale = from_bits((uint32_t)(k + 2) << 22);
            mix_u64(amp_dropout_threshold(p));
            mix_f32(amp_dropout_factor(p));
            mix_f32(amp_dropout_one(1.5f, next_u32(), amp_dropout_threshold(p), amp_dropout_factor(p)));
            if (amp_is_finite(scale)) mix_f32(amp_inverse_scale(scale));
        }
        finish();
    }
}

static void scalar_cases(void) {
    scalar_decode();
    scalar_encode();
    scalar_math();
    scalar_random();
}

/* ==== memory and names ============================================================================================ */

static void memory_cases(void) {
    static const size_t sizes[] = {0, 1, 3, 17, 1000, 65537};
    size_t i;
    void *p = &p;
    amp_ledger_row row;
    if (start("memory copy and zero")) {
        for (i = 0; i < LENGTH(sizes); i++) {
            amp_array a = fill(WILD, AMP_F32, sizes[i], i & 1), b = blank(AMP_F32, sizes[i], 0);
            mix_status(amp_copy(run.ctx, b.data, a.data, 4 * sizes[i]));
            see_bits(b.data);
            mix_status(amp_zero(run.ctx, a.data, 4 * sizes[i] / 2));
            see_bits(a.data);
        }
        finish();
    }
    if (start("memory alloc and ledger")) {
        mix_status(fp_alloc(run.ctx, &p, 0, "fp-rows"));
        mix_u64(p == NULL);
        mix_status(fp_alloc(run.ctx, &p, 1000, "fp-rows"));
        mix_u64((uintptr_t)p % 256);
        row = fp_ledger_find(run.ctx, "fp-rows");
        mix_u64(row.bytes);
        mix_u64(row.peak);
        mix_status(amp_free(run.ctx, p));
        row = fp_ledger_find(run.ctx, "fp-rows");
        mix_u64(row.bytes);
        mix_u64(row.peak);
        mix_status(amp_free(run.ctx, NULL));
        mix_status(amp_free(run.ctx, &row));
        finish();
    }
}

static void mix_text(const char *text) { mix(text, strlen(text) + 1); }

static void name_cases(void) {
    int i;
    if (start("names of types, outcomes, systems, classes, presets")) {
        for (i = 0; i < AMP_DTYPE_COUNT; i++)
            mix_text(amp_dtype_name((amp_dtype)i));
        for (i = 0; i <= AMP_SKIPPED_WINDOW; i++)
            mix_text(amp_outcome_name((amp_outcome)i));
        for (i = 0; i < AMP_SYSTEM_COUNT; i++)
            mix_text(amp_system_name((amp_system)i));
        for (i = 0; i <= AMP_CLASS_BANNED; i++)
            mix_text(amp_op_class_name((amp_op_class)i));
        for (i = 0; i < AMP_PRESET_COUNT; i++)
            mix_text(amp_preset_name((amp_preset)i));
        finish();
    }
}

/* ==== arrays ====================================================================================================== */

typedef struct rounding_mode {
    const char *name;
    amp_rounding how;
    uint32_t saturate;
} rounding_mode;

static const rounding_mode roundings[] = {
    {"nearest", AMP_NEAREST, 0},
    {"nearest saturated", AMP_NEAREST, 1},
    {"stochastic", AMP_STOCHASTIC, 0},
    {"stochastic saturated", AMP_STOCHASTIC, 1},
};

static void cast_one(amp_dtype from, amp_dtype to, size_t n, const amp_cast_desc *d) {
    size_t shift;
    int k;
    for (k = 0; k < INTEGER; k++) {
        if (n > 1000 && k != WILD) continue;
        for (shift = 0; shift < 2; shift++) {
            amp_array a = fill((kind)k, from, n, shift), b = blank(to, n, shift * 3);
            mix_status(fp_cast(run.ctx, b, a, n, d));
            see_bits(b.data);
            drop(0);
        }
    }
}

static void cast_pair(amp_dtype from, amp_dtype to) {
    static const size_t sizes[] = {0, 1, 3, 17, 1000, 65537, 200003};
    size_t r, i;
    for (r = 0; r < LENGTH(roundings); r++) {
        amp_cast_desc d = AMP_ZERO;
        d.rounding = roundings[r].how;
        d.saturate = roundings[r].saturate;
        d.seed = 12345;
        d.stream = 7;
        d.offset = 3;
        for (i = 0; i < LENGTH(sizes); i++) {
            if (sizes[i] == 200003 && from != AMP_F32 && to != AMP_F32) continue;
            if (sizes[i] == 200003 && r != 0) continue;
            if (run.cuda && sizes[i] > 1000 && (r == 1 || r == 3 || (from != AMP_F32 && to != AMP_F32))) continue;
            if (!start("cast %s to %s, %s, %lu", type(from), type(to), roundings[r].name, (unsigned long)sizes[i]))
                continue;
            cast_one(from, to, sizes[i], &d);
            finish();
        }
    }
}

static void cast_in_place(void) {
    size_t i, k;
    for (i = 0; i < 5; i++)
        for (k = 0; k < 5; k++) {
            amp_array a, b;
            if (!start("cast in place %s to %s", type(types[i]), type(types[k]))) continue;
            a = fill(WILD, types[i], 1000, 1);
            b = amp_arr(a.data, types[k]);
            mix_status(fp_cast(run.ctx, b, a, 1000, NULL));
            see_bits(a.data);
            finish();
        }
}

/* Doubles of which half are sums of floats, so that bits are cut off. */
static void cast_doubles(void) {
    size_t i, k, r, n = 3000;
    for (i = 0; i < 5; i++)
        for (r = 0; r < LENGTH(roundings); r++) {
            double *x = (double *)need(malloc(8 * n));
            amp_array a, b, wide;
            amp_cast_desc d = AMP_ZERO;
            amp_finite_report report = AMP_ZERO;
            d.rounding = roundings[r].how;
            d.saturate = roundings[r].saturate;
            d.seed = 7;
            if (start("cast f64 to %s and back, %s", type(types[i]), roundings[r].name)) {
                for (k = 0; k < n; k++) {
                    uint64_t bits = (uint64_t)below(0xffffffffu) << 32 | below(0xffffffffu);
                    if (k % 3) bits = (bits & ~((uint64_t)0x7fe << 52)) | (uint64_t)(1023u - k % 40u) << 52;
                    memcpy(&x[k], &bits, 8);
                }
                a = amp_arrn(put(x, 8 * n, 0), AMP_F64, n);
                b = blank(types[i], n, 0);
                wide = amp_arrn(room(8 * n, 0), AMP_F64, n);
                mix_status(fp_cast(run.ctx, b, a, n, &d));
                see_bits(b.data);
                mix_status(fp_cast(run.ctx, wide, b, n, NULL));
                see_bits(wide.data);
                mix_status(amp_all_finite(run.ctx, &report, &a, 1));
                mix_u64(report.nan);
                mix_u64(report.inf);
                mix_u64(report.first_index);
                drop(0);
                finish();
            }
            free(x);
        }
}

static void cast_cases(void) {
    size_t i, k;
    for (i = 0; i < 5; i++)
        for (k = 0; k < 5; k++)
            cast_pair(types[i], types[k]);
    cast_in_place();
    cast_doubles();
}

static const size_t some_sizes[] = {1, 3, 17, 1000, 65537};

static void mix_report(const amp_finite_report *r) {
    mix_u64(r->nan);
    mix_u64(r->inf);
    if (r->nan + r->inf == 0) return;
    mix_u64(r->first_array);
    mix_u64(r->first_index);
}

static void finite_cases(void) {
    size_t t, i, shift;
    int k;
    for (t = 0; t < 5; t++)
        for (k = 0; k < INTEGER; k++) {
            if (!start("all_finite %s, %s", type(types[t]), kind_names[k])) continue;
            for (i = 0; i < LENGTH(some_sizes); i++)
                for (shift = 0; shift < 2; shift++) {
                    amp_finite_report r = {9, 9, 9, 9};
                    amp_array a[3];
                    memset(a, 0, sizeof a);
                    a[0] = fill(NORMAL, AMP_F16, 17, 0);
                    a[2] = fill((kind)k, types[t], some_sizes[i], shift);
                    mix_status(fp_all_finite(run.ctx, a, 3, &r));
                    mix_report(&r);
                    drop(0);
                }
            finish();
        }
    if (start("all_finite of nothing")) {
        amp_finite_report r = {9, 9, 9, 9};
        mix_status(fp_all_finite(run.ctx, NULL, 0, &r));
        mix_report(&r);
        finish();
    }
}

static void mix_histogram(const amp_histogram *h) {
    static const float scales[] = {1.0f, 1024.0f, 65536.0f, 3.0f, 0.125f};
    double fate[3];
    size_t i, t, k;
    mix_u64(h->total);
    mix_u64(h->zero);
    mix_u64(h->inf);
    mix_u64(h->nan);
    for (i = 0; i < 256; i++)
        mix_u64(h->pow2[i]);
    mix_f32(h->amax);
    mix_f32(fp_histogram_suggest_scale(h));
    for (t = 0; t < 5; t++)
        for (i = 0; i < LENGTH(scales); i++) {
            fp_histogram_fates(h, types[t], scales[i], fate);
            for (k = 0; k < 3; k++)
                mix_f64(fate[k]);
        }
}

static void histogram_cases(void) {
    size_t t, i;
    int k;
    for (t = 0; t < 5; t++)
        for (k = 0; k < INTEGER; k++) {
            amp_histogram sum, h;
            if (!start("histogram %s, %s", type(types[t]), kind_names[k])) continue;
            memset(&sum, 0, sizeof sum);
            for (i = 0; i < LENGTH(some_sizes); i++) {
                amp_array a[2];
                a[0] = fill((kind)k, types[t], some_sizes[i], i & 1);
                a[1] = fill(NORMAL, AMP_BF16, 17, 1);
                mix_status(fp_histogram_count(run.ctx, a, 2, &h));
                mix_histogram(&h);
                fp_histogram_add(&sum, &h);
                drop(0);
            }
            mix_histogram(&sum);
            finish();
        }
}

/* ==== the loss scaler ============================================================================================= */

static amp_scaler_desc scaler_desc(amp_scaler_mode mode, float scale) { /* nothing left to a default */
    amp_scaler_desc d = AMP_ZERO;
    d.mode = mode;
    d.scale = scale;
    d.growth_factor = 2.0f;
    d.backoff_factor = 0.5f;
    d.growth_interval = 2;
    d.hysteresis = 1;
    d.min_scale = 1.0f;
    d.max_scale = 16777216.0f;
    d.dead_after = 10;
    return d;
}

static amp_scaler *scaler_make(const amp_scaler_desc *d) {
    amp_scaler *s = NULL;
    mix_status(fp_scaler_create(&s, run.ctx, d));
    return s;
}

static void mix_scaler(amp_scaler *s) {
    amp_scaler_info info;
    float scale = 0.0f, at[2];
    memset(&info, 0, sizeof info);
    mix_status(fp_scaler_scale(run.ctx, s, &scale));
    mix_f32(scale);
    if (!s) return;
    mix_status(fp_scaler_get(run.ctx, s, &info));
    mix_f32(info.scale);
    mix_u64((uint64_t)(int64_t)info.growth_tracker);
    mix_u64((uint64_t)(int64_t)info.hysteresis_tracker);
    mix_u64(info.dead);
    mix_u64(info.good);
    mix_u64(info.bad);
    mix_u64(info.bad_in_a_row);
    mix_u64(info.bad_nan);
    mix_u64(info.bad_inf);
    mix_u64(info.bad_overflow);
    copy(&at[0], amp_scaler_scale_ptr(s), 4);
    copy(&at[1], amp_scaler_inverse_ptr(s), 4);
    mix_f32(at[0]);
    mix_f32(at[1]);
}

/* Iterations with what the text says: g good, i Inf, n NaN, o overflow in the division (with a scale below 1). */
static void scaler_play(amp_scaler *s, const char *text) {
    for (; *text; text++) {
        amp_array a;
        float x[2] = {1.0f, 2.0f};
        if (*text == 'i') x[1] = from_bits(0xff800000u);
        if (*text == 'n') x[0] = from_bits(0x7fc00000u);
        if (*text == 'o') x[0] = 3e38f;
        a = amp_arrn(put(x, 8, 0), AMP_F32, 2);
        mix_status(fp_unscale(run.ctx, s, NULL, &a, 1, NULL));
        see_math(a);
        mix_status(fp_scaler_update(run.ctx, s));
        mix_scaler(s);
        drop(0);
    }
}

typedef struct scaler_variant {
    const char *name;
    amp_scaler_mode mode;
    float scale, growth, backoff;
    int32_t interval, hysteresis;
    float min_scale, max_scale;
    uint32_t dead_after, no_check;
} scaler_variant;

static const scaler_variant scaler_variants[] = {
    {"dynamic", AMP_SCALER_DYNAMIC, 1024.0f, 2.0f, 0.5f, 2, 1, 1.0f, 16777216.0f, 10, 0},
    {"odd factors", AMP_SCALER_DYNAMIC, 1000.0f, 1.7f, 0.3f, 3, 1, 0.01f, 1e20f, 10, 0},
    {"never grows", AMP_SCALER_DYNAMIC, 64.0f, 2.0f, 0.5f, AMP_NONE, 1, 1.0f, 1024.0f, 10, 0},
    {"hysteresis", AMP_SCALER_DYNAMIC, 1024.0f, 2.0f, 0.5f, 2, 3, 1.0f, 4096.0f, 10, 0},
    {"floor", AMP_SCALER_DYNAMIC, 4.0f, 2.0f, 0.5f, 9, 1, 2.0f, 8.0f, 3, 0},
    {"ceiling", AMP_SCALER_DYNAMIC, 1024.0f, 4.0f, 0.5f, 1, 1, 1.0f, 3000.0f, 10, 0},
    {"static", AMP_SCALER_STATIC, 128.0f, 2.0f, 0.5f, 2, 1, 1.0f, 1024.0f, 3, 0},
    {"no check", AMP_SCALER_STATIC, 128.0f, 2.0f, 0.5f, 2, 1, 1.0f, 1024.0f, 3, 1},
    {"small", AMP_SCALER_DYNAMIC, 0.125f, 2.0f, 0.5f, 2, 1, 0.0625f, 1024.0f, 10, 0},
    {"off", AMP_SCALER_OFF, 1.0f, 2.0f, 0.5f, 2, 1, 1.0f, 1024.0f, 10, 0},
};

static amp_scaler_desc variant_desc(const scaler_variant *v) {
    amp_scaler_desc d = scaler_desc(v->mode, v->scale);
    d.growth_factor = v->growth;
    d.backoff_factor = v->backoff;
    d.growth_interval = v->interval;
    d.hysteresis = v->hysteresis;
    d.min_scale = v->min_scale;
    d.max_scale = v->max_scale;
    d.dead_after = v->dead_after;
    d.no_check = v->no_check;
    return d;
}

static void scaler_defaults(void) {
    amp_scaler *s;
    if (!start("scaler defaults")) return;
    s = scaler_make(NULL);
    mix_scaler(s);
    scaler_play(s, "gin");
    amp_scaler_destroy(s);
    mix_scaler(NULL);
    finish();
}

static void scaler_cases(void) {
    static const char *const plays[] = {"ggggggg", "iiiiiiiiiiii", "gigniggoggig", "ooggnnggii"};
    size_t v, k;
    for (v = 0; v < LENGTH(scaler_variants); v++)
        for (k = 0; k < LENGTH(plays); k++) {
            amp_scaler_desc d = variant_desc(&scaler_variants[v]);
            amp_scaler *s;
            if (!start("scaler %s, %s", scaler_variants[v].name, plays[k])) continue;
            s = scaler_make(&d);
            mix_scaler(s);
            scaler_play(s, plays[k]);
            mix_status(fp_scaler_set_scale(run.ctx, s, 77.0f));
            mix_scaler(s);
            scaler_play(s, "gi");
            d = scaler_desc(AMP_SCALER_DYNAMIC, 1.0f);
            d.scale = 0.0f; /* configure keeps the scale */
            d.growth_interval = 1;
            d.hysteresis = 2;
            mix_status(fp_scaler_configure(run.ctx, s, &d));
            mix_scaler(s);
            scaler_play(s, "gii");
            amp_scaler_destroy(s);
            finish();
        }
    scaler_defaults();
}

static void unscale_one(amp_scaler *s, amp_dtype from, amp_dtype to, kind k, size_t n, size_t shift) {
    amp_finite_report r = {9, 9, 9, 9};
    amp_array a = fill(k, from, n, shift), b = blank(to, n, shift);
    mix_status(fp_unscale(run.ctx, s, &b, &a, 1, &r));
    mix_report(&r);
    see_math(b);
    if (from == to) {
        mix_status(fp_unscale(run.ctx, s, NULL, &a, 1, &r));
        mix_report(&r);
        see_math(a);
    }
    mix_status(fp_scaler_update(run.ctx, s));
    drop(0);
}

static void unscale_case(amp_dtype from, amp_dtype to, kind k, int large) {
    amp_scaler_desc d = scaler_desc(AMP_SCALER_DYNAMIC, 24.0f);
    amp_scaler *s;
    size_t i;
    if (!start("unscale %s to %s, %s, %s", type(from), type(to), kind_names[k], large ? "65537" : "small")) return;
    s = scaler_make(&d);
    for (i = 0; i < LENGTH(some_sizes); i++)
        if ((some_sizes[i] > 1000) == large) unscale_one(s, from, to, k, some_sizes[i], i & 1);
    mix_scaler(s);
    amp_scaler_destroy(s);
    finish();
}

static void unscale_cases(void) {
    size_t f, t;
    int k, large;
    for (f = 0; f < 5; f++)
        for (t = 0; t < 5; t++)
            for (k = 0; k < INTEGER; k++)
                for (large = 0; large < 2; large++) {
                    if (large && (f > 2 || t > 2)) continue;
                    if (large && run.cuda && k != WILD) continue;
                    unscale_case(types[f], types[t], (kind)k, large);
                }
}

/* ==== parameter sets ============================================================================================== */

typedef struct layout {
    const char *name;
    amp_dtype model, grad;
    amp_master master;
    amp_dtype moment;
    uint32_t stochastic;
} layout;

static const layout layouts[] = {
    {"f32", AMP_F32, AMP_F32, AMP_MASTER_F32, AMP_F32, 0},
    {"f32 m16", AMP_F32, AMP_F32, AMP_MASTER_F32, AMP_BF16, 0},
    {"f16 masters", AMP_F16, AMP_F16, AMP_MASTER_F32, AMP_F32, 0},
    {"f16 masters g32", AMP_F16, AMP_F32, AMP_MASTER_F32, AMP_F32, 0},
    {"f16 masters m16", AMP_F16, AMP_F16, AMP_MASTER_F32, AMP_BF16, 0},
    {"f16 masters stochastic", AMP_F16, AMP_F16, AMP_MASTER_F32, AMP_F32, 1},
    {"bf16 masters", AMP_BF16, AMP_BF16, AMP_MASTER_F32, AMP_F32, 0},
    {"bf16 masters g32 m16", AMP_BF16, AMP_F32, AMP_MASTER_F32, AMP_BF16, 0},
    {"f16 alone", AMP_F16, AMP_F16, AMP_MASTER_NONE, AMP_F32, 0},
    {"bf16 alone", AMP_BF16, AMP_BF16, AMP_MASTER_NONE, AMP_F32, 0},
    {"bf16 stochastic", AMP_BF16, AMP_BF16, AMP_MASTER_NONE, AMP_F32, 1},
    {"bf16 stochastic m16", AMP_BF16, AMP_BF16, AMP_MASTER_NONE, AMP_BF16, 1},
    {"f16 stochastic", AMP_F16, AMP_F16, AMP_MASTER_NONE, AMP_F32, 1},
    {"f16 split", AMP_F16, AMP_F16, AMP_MASTER_SPLIT, AMP_F32, 0},
    {"f16 split m16", AMP_F16, AMP_F16, AMP_MASTER_SPLIT, AMP_BF16, 0},
    {"bf16 split", AMP_BF16, AMP_BF16, AMP_MASTER_SPLIT, AMP_F32, 0},
    {"bf16 split m16", AMP_BF16, AMP_BF16, AMP_MASTER_SPLIT, AMP_BF16, 0},
    {"bf16 kahan", AMP_BF16, AMP_BF16, AMP_MASTER_KAHAN, AMP_F32, 0},
    {"bf16 kahan m16", AMP_BF16, AMP_BF16, AMP_MASTER_KAHAN, AMP_BF16, 0},
    {"bf16 split8", AMP_BF16, AMP_BF16, AMP_MASTER_SPLIT8, AMP_F32, 0},
    {"f16 split8 stochastic m16", AMP_F16, AMP_F16, AMP_MASTER_SPLIT8, AMP_BF16, 1},
};

static const size_t small_counts[4] = {1, 3, 17, 1000};
static const size_t chunk_counts[2] = {65537, 17};
static const size_t large_counts[1] = {200003};

typedef struct set {
    amp_params *p;
    const size_t *counts;
    size_t n;
} set;

static amp_params_desc set_desc(const layout *l, int32_t moments, uint32_t accumulate) {
    amp_params_desc d = AMP_ZERO;
    d.model = l->model;
    d.grad = l->grad;
    d.master = l->master;
    d.moments = moments;
    d.moment = l->moment;
    d.accumulate = accumulate;
    return d;
}

/* A committed set: parameter 1 stays in FP32, parameter 2 does not decay, parameter 3 is of group 1. */
static set set_make(const layout *l, int32_t moments, uint32_t accumulate, const size_t *counts, size_t n) {
    amp_params_desc d = set_desc(l, moments, accumulate);
    float *init[8];
    set s;
    size_t i;
    s.p = NULL;
    s.counts = counts;
    s.n = n;
    mix_status(fp_params_create(&s.p, run.ctx, &d));
    if (!s.p) return s;
    for (i = 0; i < n; i++) {
        amp_param_desc e = AMP_ZERO;
        init[i] = (float *)numbers(NORMAL, AMP_F32, counts[i], 1.0f);
        e.count = counts[i];
        e.init = init[i];
        e.keep_f32 = i == 1;
        e.no_decay = i == 2;
        e.group = i == 3;
        mix_status(amp_params_add(s.p, &e));
    }
    mix_status(amp_params_commit(s.p));
    for (i = 0; i < n; i++)
        free(init[i]);
    return s;
}

/* Everything that a set holds. */
static void mix_set(const set *s) {
    size_t i;
    mix_u64(amp_params_count(s->p));
    for (i = 0; i < s->n; i++) {
        see_owned(fp_param_master(s->p, i), s->counts[i], 1);
        see_owned(amp_param_model(s->p, i), s->counts[i], 1);
        see_owned(fp_param_low(s->p, i), s->counts[i], 0);
        see_owned(amp_param_grad(s->p, i), s->counts[i], 1);
        see_owned(fp_param_accum(s->p, i), s->counts[i], 1);
        see_owned(fp_param_moment(s->p, i, 0), s->counts[i], 1);
        see_owned(fp_param_moment(s->p, i, 1), s->counts[i], 1);
    }
}

static void mix_record(amp_params *p) {
    amp_step_record r;
    size_t i;
    memset(&r, 0, sizeof r);
    mix_status(amp_sync(run.ctx));
    mix_status(fp_step_poll(run.ctx, p, &r));
    mix_f32(r.inv_scale);
    mix_f32(r.clip);
    mix_u64(r.skip);
    mix_u64((uint64_t)r.outcome);
    mix_u64(r.nan);
    mix_u64(r.inf);
    mix_u64(r.overflow);
    if (r.skip) mix_u64(r.first_index);
    if (r.skip) mix_u64(r.first_param);
    mix_f32(r.scale);
    mix_f64(r.norm);
    mix_u64(r.steps);
    mix_u64(r.skipped);
    mix_u64(r.window_good);
    mix_u64(r.window_bad);
    mix_u64(r.window_lost);
    mix_u64(r.weight_overflow);
    for (i = 0; i < 2; i++) {
        mix_f32(r.rate[i].lr);
        mix_f32(r.rate[i].step_size);
        mix_f32(r.rate[i].decay);
        mix_f32(r.rate[i].rsqrt_bc2);
    }
}

/* New gradients, `size` times normal; bad: 'i' Inf, 'n' NaN, 'h' the largest finite number at one place, 0 nowhere. */
static void set_grads(const set *s, kind k, float size, char bad) {
    size_t i, at;
    for (i = 0; i < s->n; i++) {
        amp_array g = amp_param_grad(s->p, i);
        void *host = numbers(k, g.dtype, s->counts[i], size);
        at = below((uint32_t)s->counts[i]);
        if (i + 1 == s->n && bad == 'i') amp_store(host, g.dtype, at, from_bits(0x7f800000u));
        if (i + 1 == s->n && bad == 'n') amp_store(host, g.dtype, at, from_bits(0x7fc00000u));
        if (i + 1 == s->n && bad == 'h') amp_store(host, g.dtype, at, 60000.0f);
        copy(g.data, host, s->counts[i] * amp_dtype_size(g.dtype));
        free(host);
    }
}

static void mix_ledger(const char *label) {
    static const char *const parts[] = {"master", "model", "grad", "moments", "accum", "tables"};
    size_t i;
    for (i = 0; i < LENGTH(parts); i++) {
        char name[64];
        amp_ledger_row row;
        snprintf(name, sizeof name, "%s.%s", label, parts[i]);
        row = fp_ledger_find(run.ctx, name);
        mix_u64(row.bytes);
    }
}

static void params_moves(const set *s) {
    amp_array dst[4];
    size_t i;
    for (i = 0; i < s->n; i++) {
        amp_array none = AMP_ZERO;
        dst[i] = i == 2 ? none : blank(types[i], s->counts[i], i);
    }
    mix_status(fp_grads_to(run.ctx, s->p, dst, s->n));
    for (i = 0; i < s->n; i++)
        if (dst[i].data) see_math(dst[i]);
    for (i = 0; i < s->n; i++) {
        amp_array m = amp_param_model(s->p, i);
        void *host = numbers(NORMAL, m.dtype, s->counts[i], 2.0f);
        copy(m.data, host, s->counts[i] * amp_dtype_size(m.dtype));
        free(host);
    }
    mix_status(fp_model_to_master(run.ctx, s->p));
    mix_set(s);
    for (i = 0; i < s->n; i++) {
        amp_array m = fp_param_master(s->p, i);
        void *host = numbers(NORMAL, AMP_F32, s->counts[i], 3.0f);
        if (m.data) copy(m.data, host, 4 * s->counts[i]);
        free(host);
    }
    mix_status(fp_master_to_model(run.ctx, s->p));
    mix_set(s);
}

static void params_read_write(const set *s) {
    size_t i;
    for (i = 0; i < s->n; i++) {
        float *w = (float *)numbers(i == 3 ? WILD : NORMAL, AMP_F32, s->counts[i], 1.0f);
        mix_status(fp_param_write(run.ctx, s->p, i, w));
        memset(w, POISON, 4 * s->counts[i]);
        mix_status(fp_param_read(run.ctx, s->p, i, w));
        mix_math((unsigned char *)w, AMP_F32, s->counts[i]);
        free(w);
    }
    mix_set(s);
}

static void params_cases(void) {
    size_t i;
    for (i = 0; i < LENGTH(layouts); i++) {
        set s;
        if (!start("params commit, ledger, moves: %s", layouts[i].name)) continue;
        s = set_make(&layouts[i], 2, i & 1, small_counts, 4);
        mix_ledger("params");
        mix_set(&s);
        set_grads(&s, WILD, 1.0f, 0);
        params_moves(&s);
        params_read_write(&s);
        mix_status(fp_zero_grad(run.ctx, s.p));
        mix_set(&s);
        mix_u64(amp_params_find(s.p, "2"));
        mix_u64(amp_params_find(s.p, "absent"));
        mix_text(fp_param_name(s.p, 3));
        mix_text(fp_param_name(s.p, 9));
        amp_params_destroy(s.p);
        mix_ledger("params");
        finish();
    }
}

static void layout_cases(void) {
    int model, grad, master, moments, moment, accumulate;
    if (!start("params layout_bytes")) return;
    for (model = 0; model < AMP_DTYPE_COUNT; model++)
        for (grad = 0; grad < AMP_DTYPE_COUNT; grad++)
            for (master = 0; master <= AMP_MASTER_KAHAN; master++)
                for (moments = -1; moments <= 2; moments++)
                    for (moment = 0; moment < AMP_DTYPE_COUNT; moment++)
                        for (accumulate = 0; accumulate < 2; accumulate++) {
                            amp_params_desc d = AMP_ZERO;
                            amp_layout b;
                            d.model = (amp_dtype)model;
                            d.grad = (amp_dtype)grad;
                            d.master = (amp_master)master;
                            d.moments = moments;
                            d.moment = (amp_dtype)moment;
                            d.accumulate = (uint32_t)accumulate;
                            b = amp_layout_bytes(&d);
                            mix_u64(b.master + 256u * b.model + 65536u * b.grad);
                            mix_u64(b.moments + 256u * b.accum + 65536u * b.total);
                        }
    finish();
}

/* ==== the step ==================================================================================================== */

static const char *const optimizer_names[AMP_OPTIMIZER_COUNT] = {"adamw", "adam", "sgd", "lion"};

typedef struct hyper {
    amp_step_desc d;
    amp_group group;
} hyper;

static void hyper_fill(hyper *h, int optimizer, const layout *l) { /* nothing left to a default */
    memset(h, 0, sizeof *h);
    h->d.optimizer = (amp_optimizer)optimizer;
    h->d.lr = 0.01f;
    h->d.beta1 = FP_HYPER(0.9f);
    h->d.beta2 = FP_HYPER(0.98f);
    h->d.eps = FP_HYPER(1e-6f);
    h->d.weight_decay = 0.02f;
    h->d.momentum = optimizer == AMP_SGD ? 0.8f : 0.0f;
    h->d.stochastic = l->stochastic;
    h->d.micro_batches = 1;
    h->d.seed = 99;
    h->d.n_groups = 1;
    h->group.lr = 0.003f;
    h->group.beta1 = FP_HYPER(0.8f);
    h->group.beta2 = FP_HYPER(0.99f);
    h->group.eps = FP_HYPER(1e-5f);
    h->group.weight_decay = 0.1f;
    h->group.momentum = optimizer == AMP_SGD ? 0.5f : 0.0f;
    h->d.groups = &h->group;
}

static int32_t moments_of(int optimizer) { return optimizer == AMP_SGD || optimizer == AMP_LION ? 1 : 2; }

typedef struct scenario {
    const char *name;
    int scaler;      /* -1: none; else the index of a variant */
    const char *bad; /* per step: '.', or what set_grads knows */
} scenario;

static const scenario scenarios[] = {
    {"no scaler", -1, "...."},
    {"dynamic", 0, "...."},
    {"overflow", 0, ".in."},
    {"hysteresis", 3, "ii.i"},
    {"static", 6, ".i.."},
    {"no check", 7, ".i.."},
    {"small", 8, ".h.."},
    {"off", 9, "...."},
};

static amp_scaler *scenario_scaler(const scenario *c) {
    amp_scaler_desc d;
    if (c->scaler < 0) return NULL;
    d = variant_desc(&scaler_variants[c->scaler]);
    return scaler_make(&d);
}

typedef enum path { WHOLE, VERBS, WRITTEN } path;
static const char *const path_names[] = {"step", "update", "unscale, clip, update"};

static void step_once(path how, const set *s, amp_scaler *scaler, const hyper *h) {
    if (how == WHOLE) {
        mix_status(fp_step(run.ctx, s->p, scaler, &h->d));
        return;
    }
    if (how == WRITTEN) {
        double norm = -5.0;
        mix_status(fp_scaler_unscale(run.ctx, scaler, s->p));
        mix_status(fp_grad_norm(run.ctx, s->p, scaler, &norm));
        mix_f64(norm);
        mix_status(fp_clip(run.ctx, s->p, scaler, 0.7f));
        mix_status(fp_clip_value(run.ctx, s->p, scaler, 0.05f));
    }
    mix_status(fp_update(run.ctx, s->p, scaler, &h->d));
    if (scaler) mix_status(fp_scaler_update(run.ctx, scaler));
}

static void steps(path how, const set *s, amp_scaler *scaler, const hyper *h, const char *bad) {
    for (; *bad; bad++) {
        set_grads(s, NORMAL, 4.0f, *bad);
        step_once(how, s, scaler, h);
        mix_record(s->p);
        if (scaler) mix_scaler(scaler);
    }
    mix_set(s);
}

static void step_case(path how, int optimizer, const layout *l, const scenario *c) {
    amp_scaler *scaler;
    hyper h;
    set s;
    if (!start("%s %s, %s, %s", path_names[how], optimizer_names[optimizer], l->name, c->name)) return;
    hyper_fill(&h, optimizer, l);
    scaler = scenario_scaler(c);
    s = set_make(l, moments_of(optimizer), 0, small_counts, 4);
    steps(how, &s, scaler, &h, c->bad);
    amp_params_destroy(s.p);
    amp_scaler_destroy(scaler);
    finish();
}

static void step_cases(void) {
    size_t l, c;
    int o;
    for (o = 0; o < AMP_OPTIMIZER_COUNT; o++)
        for (l = 0; l < LENGTH(layouts); l++)
            for (c = 0; c < LENGTH(scenarios); c++) {
                step_case(WHOLE, o, &layouts[l], &scenarios[c]);
                if (c == 0 || c == 2) step_case(VERBS, o, &layouts[l], &scenarios[c]);
                if (c == 1 || c == 2) step_case(WRITTEN, o, &layouts[l], &scenarios[c]);
            }
}

static void step_large(void) {
    size_t l;
    int o;
    for (o = 0; o < AMP_OPTIMIZER_COUNT; o++)
        for (l = 0; l < LENGTH(layouts); l++) {
            const scenario *c = &scenarios[2];
            amp_scaler *scaler;
            hyper h;
            set s;
            if (!start("step of large parameters: %s, %s", optimizer_names[o], layouts[l].name)) continue;
            hyper_fill(&h, o, &layouts[l]);
            h.d.clip_norm = 3.0f;
            scaler = scenario_scaler(c);
            if (l % 5 == 2)
                s = set_make(&layouts[l], moments_of(o), 0, large_counts, 1);
            else
                s = set_make(&layouts[l], moments_of(o), 0, chunk_counts, 2);
            steps(WHOLE, &s, scaler, &h, ".i");
            amp_params_destroy(s.p);
            amp_scaler_destroy(scaler);
            finish();
        }
}

static const char *const extra_names[] = {
    "clip_norm",
    "clip_value",
    "both clips",
    "micro_batches 3",
    "unscaled",
    "nesterov",
    "no decay",
    "lr_ptr",
    "dampening",
    "one group",
    "tiny gradients",
    "wild gradients",
};

static void extra_fill(size_t e, hyper *h) {
    if (e == 0 || e == 2) h->d.clip_norm = 0.6f;
    if (e == 1 || e == 2) h->d.clip_value = 0.002f;
    if (e == 3) h->d.micro_batches = 3;
    if (e == 4) h->d.unscaled = 1;
    if (e == 5) h->d.nesterov = h->d.optimizer == AMP_SGD;
    if (e == 6) h->d.weight_decay = h->group.weight_decay = 0.0f;
    if (e == 7) h->d.lr_ptr = one_float(0.125f);
    if (e == 8) h->d.dampening = h->d.optimizer == AMP_SGD ? 0.25f : 0.0f;
    if (e == 9) h->d.n_groups = 0;
    if (e == 9) h->d.groups = NULL;
}

static void step_extra(size_t e, int optimizer, const layout *l) {
    amp_scaler *scaler;
    hyper h;
    set s;
    int i;
    if (!start("step with %s: %s, %s", extra_names[e], optimizer_names[optimizer], l->name)) return;
    hyper_fill(&h, optimizer, l);
    extra_fill(e, &h);
    scaler = scenario_scaler(&scenarios[e == 11 ? 0 : 1]);
    s = set_make(l, moments_of(optimizer), 0, small_counts, 4);
    if (e < 10) steps(WHOLE, &s, scaler, &h, "..h.");
    for (i = 0; i < 3 && e >= 10; i++) {
        set_grads(&s, e == 10 ? TINY : WILD, 1.0f, 0);
        step_once(WHOLE, &s, scaler, &h);
        mix_record(s.p);
        mix_set(&s);
    }
    amp_params_destroy(s.p);
    amp_scaler_destroy(scaler);
    finish();
}

static void step_extras(void) {
    size_t l, e;
    int o;
    for (o = 0; o < AMP_OPTIMIZER_COUNT; o++)
        for (l = 0; l < LENGTH(layouts); l++)
            for (e = 0; e < LENGTH(extra_names); e++)
                step_extra(e, o, &layouts[l]);
}

/* SGD without momentum keeps no moments at all. */
static void step_plain_sgd(void) {
    size_t l;
    for (l = 0; l < LENGTH(layouts); l++) {
        hyper h;
        set s;
        if (!start("step sgd without momentum, %s", layouts[l].name)) continue;
        hyper_fill(&h, AMP_SGD, &layouts[l]);
        h.d.momentum = h.group.momentum = 0.0f;
        s = set_make(&layouts[l], AMP_NONE, 0, small_counts, 4);
        steps(WHOLE, &s, NULL, &h, "...");
        amp_params_destroy(s.p);
        finish();
    }
}

/* Arrays of the caller, at odd addresses, with gradients of every dtype. */
static void step_adopted(void) {
    static const amp_dtype models[2] = {AMP_F16, AMP_BF16};
    size_t t, m, n = 1000;
    int i;
    for (m = 0; m < 2; m++)
        for (t = 0; t < 5; t++) {
            layout l = {"adopted", models[m], AMP_F32, AMP_MASTER_F32, AMP_F32, 0};
            amp_params_desc d = set_desc(&l, 2, 0);
            amp_param_desc e = AMP_ZERO;
            amp_params *p = NULL;
            amp_array master, model, grad;
            hyper h;
            if (!start("step of adopted arrays, %s, gradients %s", type(models[m]), type(types[t]))) continue;
            hyper_fill(&h, AMP_ADAMW, &l);
            master = fill(NORMAL, AMP_F32, n, 1);
            model = blank(models[m], n, 1);
            grad = blank(types[t], n, 1);
            e.count = n;
            e.master = (float *)master.data;
            e.model = model;
            e.grad = grad;
            mix_status(fp_params_create(&p, run.ctx, &d));
            mix_status(amp_params_add(p, &e));
            mix_status(amp_params_commit(p));
            for (i = 0; i < 3; i++) {
                void *host = numbers(NORMAL, types[t], n, 1.0f);
                copy(grad.data, host, n * amp_dtype_size(types[t]));
                free(host);
                mix_status(fp_step(run.ctx, p, NULL, &h.d));
                mix_record(p);
            }
            see_math(master);
            see_math(model);
            see_math(grad);
            amp_params_destroy(p);
            finish();
        }
}

/* ---- norms, clips, inspection, in the way the separate verbs use them ---- */

static void norm_one(const layout *l, kind k, int scaled, const size_t *counts, size_t n) {
    amp_scaler_desc d = scaler_desc(AMP_SCALER_DYNAMIC, 24.0f);
    amp_scaler *scaler = scaled ? scaler_make(&d) : NULL;
    set s = set_make(l, 1, 0, counts, n);
    double norm = -5.0;
    set_grads(&s, k, 1.0f, 0);
    mix_status(fp_grad_norm(run.ctx, s.p, scaler, &norm));
    mix_f64(norm);
    mix_status(fp_clip(run.ctx, s.p, scaler, 0.5f));
    mix_status(fp_grad_norm(run.ctx, s.p, scaler, &norm));
    mix_f64(norm);
    mix_set(&s);
    mix_status(fp_clip_value(run.ctx, s.p, scaler, 0.01f));
    mix_set(&s);
    if (scaler) mix_status(fp_scaler_unscale(run.ctx, scaler, s.p));
    mix_status(fp_grad_norm(run.ctx, s.p, scaler, &norm));
    mix_f64(norm);
    mix_set(&s);
    amp_params_destroy(s.p);
    amp_scaler_destroy(scaler);
}

static void norm_cases(void) {
    static const size_t which[] = {0, 2, 3, 6};
    size_t i;
    int k, scaled, size;
    for (i = 0; i < LENGTH(which); i++)
        for (k = 0; k < INTEGER; k++)
            for (scaled = 0; scaled < 2; scaled++)
                for (size = 0; size < 3; size++) {
                    static const char *const sizes[] = {"small", "chunk", "large"};
                    const size_t *counts[3] = {small_counts, chunk_counts, large_counts};
                    static const size_t n[3] = {4, 2, 1};
                    if (size == 2 && k != NORMAL) continue;
                    if (!start("norm, clip, unscale: %s, %s, %s, %s", layouts[which[i]].name, kind_names[k],
                            scaled ? "scaled" : "plain", sizes[size]))
                        continue;
                    norm_one(&layouts[which[i]], (kind)k, scaled, counts[size], n[size]);
                    finish();
                }
}

static void inspect_cases(void) {
    size_t c;
    int o;
    for (o = 0; o < AMP_OPTIMIZER_COUNT; o++)
        for (c = 0; c < LENGTH(scenarios); c++) {
            const char *bad = scenarios[c].bad;
            amp_scaler *scaler;
            hyper h;
            set s;
            if (!start("inspect %s, %s", optimizer_names[o], scenarios[c].name)) continue;
            hyper_fill(&h, o, &layouts[2]);
            h.d.clip_norm = 0.6f;
            scaler = scenario_scaler(&scenarios[c]);
            s = set_make(&layouts[2], moments_of(o), 0, small_counts, 4);
            for (; *bad; bad++) {
                set_grads(&s, NORMAL, 4.0f, *bad);
                mix_status(fp_inspect(run.ctx, s.p, scaler, &h.d));
                mix_record(s.p);
                if (scaler) mix_status(fp_scaler_update(run.ctx, scaler));
            }
            mix_set(&s);
            amp_params_destroy(s.p);
            amp_scaler_destroy(scaler);
            finish();
        }
}

/* Two sets with one scaler: one of them skips. */
static void two_sets_case(void) {
    amp_scaler_desc d = scaler_desc(AMP_SCALER_DYNAMIC, 1024.0f);
    amp_scaler *scaler;
    hyper h;
    set a, b;
    int i;
    if (!start("update of two sets with one scaler")) return;
    hyper_fill(&h, AMP_ADAM, &layouts[2]);
    scaler = scaler_make(&d);
    a = set_make(&layouts[2], 2, 0, small_counts, 4);
    b = set_make(&layouts[0], 2, 0, small_counts, 4);
    for (i = 0; i < 4; i++) {
        set_grads(&a, NORMAL, 4.0f, i == 1 ? 'i' : '.');
        set_grads(&b, NORMAL, 4.0f, i == 2 ? 'n' : '.');
        mix_status(fp_update(run.ctx, a.p, scaler, &h.d));
        mix_status(fp_update(run.ctx, a.p, scaler, &h.d)); /* refused: stepped already */
        mix_status(fp_scaler_unscale(run.ctx, scaler, b.p));
        mix_status(fp_scaler_unscale(run.ctx, scaler, b.p)); /* refused: unscaled already */
        mix_status(fp_update(run.ctx, b.p, scaler, &h.d));
        mix_status(fp_scaler_update(run.ctx, scaler));
        mix_status(fp_scaler_update(run.ctx, scaler)); /* refused: nothing checked */
        mix_record(a.p);
        mix_record(b.p);
        mix_scaler(scaler);
    }
    mix_set(&a);
    mix_set(&b);
    amp_params_destroy(a.p);
    amp_params_destroy(b.p);
    amp_scaler_destroy(scaler);
    finish();
}

/* ---- accumulation windows ---- */

static void window_one(const layout *l, int optimizer, const scenario *c, uint32_t keep_going, uint32_t micro_batches) {
    amp_scaler *scaler = scenario_scaler(c);
    set s = set_make(l, moments_of(optimizer), 1, small_counts, 4);
    const char *bad = c->bad;
    hyper h;
    int window, i;
    hyper_fill(&h, optimizer, l);
    h.d.micro_batches = micro_batches;
    for (window = 0; window < 2; window++) {
        for (i = 0; i < 3; i++) {
            set_grads(&s, NORMAL, 4.0f, bad[(window + i) % 4]);
            mix_status(fp_accumulate(run.ctx, s.p, scaler, keep_going));
            if (scaler) mix_status(fp_scaler_update(run.ctx, scaler));
            mix_record(s.p);
        }
        mix_set(&s);
        mix_status(fp_step(run.ctx, s.p, scaler, &h.d));
        mix_record(s.p);
        mix_set(&s);
        if (scaler) mix_scaler(scaler);
    }
    amp_params_destroy(s.p);
    amp_scaler_destroy(scaler);
}

static void window_cases(void) {
    static const size_t which[] = {0, 2, 6, 11, 13, 15, 17};
    static const char *const bad_names[2] = {"lost when bad", "keep going"}, *const sum_names[2] = {"average", "sum"};
    size_t i, c;
    uint32_t keep, n;
    for (i = 0; i < LENGTH(which); i++)
        for (c = 0; c < LENGTH(scenarios); c++)
            for (keep = 0; keep < 2; keep++)
                for (n = 0; n < 2; n++) { /* the average over the window; the sum */
                    if (!start("accumulate: %s, %s, %s, %s", layouts[which[i]].name, scenarios[c].name, bad_names[keep],
                            sum_names[n]))
                        continue;
                    window_one(&layouts[which[i]], (int)(i % AMP_OPTIMIZER_COUNT), &scenarios[c], keep, n);
                    finish();
                }
}

static void window_hold(void) {
    amp_scaler_desc d = scaler_desc(AMP_SCALER_DYNAMIC, 1024.0f);
    amp_scaler *scaler;
    hyper h;
    set s;
    if (!start("window holds the scale")) return;
    hyper_fill(&h, AMP_ADAMW, &layouts[2]);
    scaler = scaler_make(&d);
    s = set_make(&layouts[2], 2, 0, small_counts, 4);
    mix_status(fp_window_begin(run.ctx, s.p, scaler));
    set_grads(&s, NORMAL, 4.0f, '.');
    mix_status(fp_scaler_set_scale(run.ctx, scaler, 8.0f)); /* refused */
    mix_status(fp_scaler_update(run.ctx, scaler));          /* refused */
    mix_scaler(scaler);
    h.d.micro_batches = 4;
    mix_status(fp_step(run.ctx, s.p, scaler, &h.d));
    mix_record(s.p);
    mix_status(fp_window_begin(run.ctx, s.p, scaler));
    mix_status(fp_window_end(run.ctx, s.p));
    mix_status(fp_scaler_set_scale(run.ctx, scaler, 8.0f));
    mix_scaler(scaler);
    mix_set(&s);
    amp_params_destroy(s.p);
    amp_scaler_destroy(scaler);
    finish();
}

/* ==== policy and scope ============================================================================================ */

static void op_cases(void) {
    int op, system;
    if (start("policy operations: names and classes")) {
        for (op = 0; op <= AMP_OP_COUNT; op++) {
            amp_op found = AMP_OP_NONE;
            mix_text(amp_op_name((amp_op)op));
            mix_status(fp_op_find(amp_op_name((amp_op)op), &found));
            mix_u64((uint64_t)found);
            for (system = 0; system < AMP_SYSTEM_COUNT; system++) {
                const char *listed;
                size_t k = 0;
                mix_u64((uint64_t)amp_op_class_of((amp_op)op, (amp_system)system));
                while ((listed = amp_op_listed((amp_op)op, (amp_system)system, k++)) != NULL)
                    mix_text(listed);
            }
        }
        finish();
    }
    if (start("policy operations: other names")) {
        static const char *const names[] = {"nn.Dense", "F.linear", "torch.matmul", "aten::norm.Scalar", "Tensor.add_",
            "torch.nn.functional.gelu", "ops.MatMul", "mindspore.ops.Softmax", "__iadd__", "LSTM", "unheard_of", "",
            "aten::", "MATMUL", "relu_"};
        size_t i;
        for (i = 0; i < LENGTH(names); i++) {
            amp_op found = AMP_OP_NONE;
            mix_status(fp_op_find(names[i], &found));
            mix_text(amp_op_name(found));
        }
        finish();
    }
}

static void mix_policy(const amp_policy *p) {
    amp_params_desc d = amp_policy_params_desc(p);
    amp_scaler_desc s = amp_policy_scaler_desc(p);
    int op, t;
    mix_u64((uint64_t)p->preset);
    mix_u64((uint64_t)p->lists);
    mix_u64((uint64_t)p->low);
    mix_u64(p->enabled + 2u * p->autocast + 4u * p->keep_norms + 8u * p->master_weights + 16u * p->results_f32);
    mix_u64((uint64_t)p->cast_model);
    mix_u64((uint64_t)p->cast_outputs);
    mix_u64((uint64_t)p->scaling);
    mix_f32(p->loss_scale);
    mix_f32(p->min_scale);
    mix_f32(p->max_scale);
    mix_u64((uint64_t)(int64_t)p->growth_interval);
    mix_u64(p->num_losses);
    mix_u64((uint64_t)d.model + 16u * (uint64_t)d.grad + 256u * (uint64_t)d.master + 4096u * (uint64_t)d.moment);
    mix_u64((uint64_t)s.mode + 16u * s.no_check);
    mix_f32(s.scale);
    mix_f32(s.min_scale);
    mix_f32(s.max_scale);
    mix_u64((uint64_t)(int64_t)s.growth_interval);
    for (op = 0; op < AMP_OP_COUNT; op++) {
        mix_u64((uint64_t)amp_policy_class(p, (amp_op)op));
        mix_u64(amp_policy_keep_f32(p, (amp_op)op));
        for (t = 0; t <= AMP_BF16; t++)
            mix_u64((uint64_t)amp_policy_output(p, (amp_op)op, (amp_dtype)t));
    }
}

static void policy_overrides(amp_preset preset, size_t o) {
    fp_policy_desc d = AMP_ZERO;
    amp_policy p;
    amp_status st;
    memset(&p, 0, sizeof p);
    if (o == 1) d.low = AMP_BF16;
    if (o == 2) d.cast_model_type = AMP_F32;
    if (o == 3) d.no_cast_model_type = 1;
    if (o == 4) d.enabled = AMP_NONE;
    if (o == 5) d.patch_torch_functions = 1;
    if (o == 6) d.keep_batchnorm_fp32 = AMP_NONE;
    if (o == 7) d.master_weights = 1;
    if (o == 8) d.loss_scale = "128.0";
    if (o == 9) d.loss_scale = "dynamic";
    if (o == 10) d.min_loss_scale = 2.0f;
    if (o == 11) d.cast_model_outputs = AMP_F32;
    if (o == 12) d.num_losses = 3;
    if (o == 13) d.loss_scale = "1.0";
    if (o == 14) d.cast_model_type = AMP_BF16;
    st = fp_policy_init(run.ctx, &p, preset, o ? &d : NULL);
    mix_status(st);
    if (st == AMP_OK) mix_policy(&p);
}

static void policy_settings(amp_preset preset) {
    static const char *const pairs[][2] = {{"loss_scale", "dynamic"}, {"loss_scale", "64"},
        {"cast_model_type", "torch.float16"}, {"cast_model_type", "False"}, {"keep_batchnorm_fp32", "True"},
        {"min_loss_scale", "128"}, {"dtype", "bfloat16"}, {"unheard_of", "1"}, {"master_weights", "None"},
        {"enabled", "False"}, {"loss_scale", "-3"}};
    size_t i;
    for (i = 0; i < LENGTH(pairs); i++) {
        amp_policy p;
        mix_status(fp_policy_init(run.ctx, &p, preset, NULL));
        mix_status(fp_policy_set(run.ctx, &p, pairs[i][0], pairs[i][1]));
        mix_policy(&p);
    }
}

static void policy_lists(amp_preset preset) {
    static const amp_op ops[3] = {AMP_OP_MATMUL, AMP_OP_SOFTMAX, AMP_OP_LAYER_NORM};
    amp_op out[AMP_OP_COUNT];
    amp_policy p;
    size_t i, n;
    int c;
    mix_status(fp_policy_init(run.ctx, &p, preset, NULL));
    mix_status(fp_policy_edit(run.ctx, &p, AMP_OP_GELU, AMP_CLASS_F32));
    mix_status(fp_policy_edit(run.ctx, &p, AMP_OP_SOFTMAX, AMP_CLASS_LOWER));
    mix_status(fp_policy_edit(run.ctx, &p, AMP_OP_COUNT, AMP_CLASS_LOWER));
    mix_policy(&p);
    for (c = 0; c <= AMP_CLASS_BANNED; c++) {
        n = fp_policy_list(&p, (amp_op_class)c, out, LENGTH(out));
        mix_u64(n);
        for (i = 0; i < n; i++)
            mix_u64((uint64_t)out[i]);
    }
    mix_status(fp_policy_custom(run.ctx, &p, ops, 2, NULL, 0, AMP_F16));
    mix_policy(&p);
    mix_status(fp_policy_custom(run.ctx, &p, NULL, 0, ops, 3, AMP_BF16));
    mix_policy(&p);
    mix_status(fp_policy_custom(run.ctx, &p, ops, 2, ops, 3, AMP_F16));
    mix_status(fp_policy_custom(run.ctx, &p, NULL, 0, NULL, 0, AMP_F16));
}

static void preset_names(void) {
    static const char *const names[] = {"O1", "mindspore-O2", "O2-bf16", "amp-f16", "pytorch-cuda", "O9", "", "amp-f8"};
    size_t i;
    if (!start("policy preset names")) return;
    for (i = 0; i < LENGTH(names); i++) {
        amp_preset preset = AMP_PRESET_AMP;
        amp_dtype low = AMP_F32;
        mix_status(fp_preset_find(names[i], &preset, &low));
        mix_u64((uint64_t)preset);
        mix_u64((uint64_t)low);
    }
    finish();
}

static void policy_cases(void) {
    size_t o;
    int i;
    op_cases();
    preset_names();
    for (i = 0; i < AMP_PRESET_COUNT; i++) {
        for (o = 0; o < 15; o++) {
            if (!start("policy %s, override %lu", amp_preset_name((amp_preset)i), (unsigned long)o)) continue;
            policy_overrides((amp_preset)i, o);
            finish();
        }
        if (start("policy %s, settings by name", amp_preset_name((amp_preset)i))) {
            policy_settings((amp_preset)i);
            finish();
        }
        if (start("policy %s, lists", amp_preset_name((amp_preset)i))) {
            policy_lists((amp_preset)i);
            finish();
        }
    }
}

static void mix_scope(void) {
    amp_autocast_info i = fp_autocast_get(run.ctx);
    mix_u64(i.depth + 16u * i.enabled + 32u * i.cache);
    mix_u64((uint64_t)i.low + 16u * (uint64_t)i.pin);
    mix_u64(i.casts);
    mix_u64(i.hits);
    mix_u64(i.resolved);
    mix_u64(i.used);
    mix_u64(i.peak);
}

static const amp_op scope_ops[] = {
    AMP_OP_MATMUL, AMP_OP_SOFTMAX, AMP_OP_LAYER_NORM, AMP_OP_ADD, AMP_OP_RELU, AMP_OP_SUM};

static void scope_input(amp_op op, amp_array in, size_t n) {
    amp_array out = AMP_ZERO;
    amp_status st = fp_autocast_input(run.ctx, op, in, n, &out);
    mix_status(st);
    if (st != AMP_OK) return;
    mix_u64((uint64_t)out.dtype);
    mix_u64(out.data == in.data);
    see_owned(out, n, 1);
}

/* What is asked for in every region; made once, because where an array lies decides which cached copy it meets. */
typedef struct scope_arrays { amp_array one[3], two[2]; } scope_arrays;

static void scope_fill(scope_arrays *a) {
    size_t t;
    for (t = 0; t < 3; t++)
        a->one[t] = fill(NORMAL, types[t], 100, t);
    a->two[0] = fill(NORMAL, AMP_F32, 30, 0);
    a->two[1] = fill(NORMAL, AMP_F16, 30, 0);
}

static void scope_visit(const set *s, const scope_arrays *arrays) {
    size_t o, t, i;
    for (o = 0; o < LENGTH(scope_ops); o++) {
        amp_array out[2];
        amp_status st;
        for (t = 0; t < 3; t++) {
            amp_array a = arrays->one[t];
            scope_input(scope_ops[o], a, 100);
            a.flags = AMP_CACHE;
            scope_input(scope_ops[o], a, 100);
            scope_input(scope_ops[o], a, 100);
            mix_u64((uint64_t)fp_autocast_output(run.ctx, scope_ops[o], types[t]));
            amp_autocast_invalidate(run.ctx, a.data);
        }
        for (i = 0; i < s->n; i++)
            scope_input(scope_ops[o], fp_param_master(s->p, i), s->counts[i]);
        st = fp_autocast_inputs(run.ctx, scope_ops[o], arrays->two, 2, out);
        mix_status(st);
        for (i = 0; st == AMP_OK && i < 2; i++)
            see_owned(out[i], 30, 1);
    }
    mix_scope();
}

static void scope_one(amp_preset preset, amp_dtype low, int32_t cache, amp_dtype pin) {
    amp_autocast_desc d = AMP_ZERO, inner = AMP_ZERO;
    scope_arrays arrays;
    amp_policy policy;
    set s = set_make(&layouts[low == AMP_BF16 ? 6 : 2], 2, 0, small_counts, 4);
    scope_fill(&arrays);
    mix_status(fp_policy_init(run.ctx, &policy, preset, NULL));
    d.policy = &policy;
    d.low = low;
    d.cache = cache;
    d.pin = pin;
    mix_status(fp_autocast_begin(run.ctx, &d));
    mix_ledger("autocast");
    mix_u64(fp_ledger_find(run.ctx, "autocast").bytes);
    scope_visit(&s, &arrays);
    inner.disabled = 1;
    mix_status(fp_autocast_begin(run.ctx, &inner));
    scope_visit(&s, &arrays);
    mix_status(fp_autocast_release(run.ctx)); /* refused: open */
    mix_status(fp_autocast_end(run.ctx));
    inner.disabled = 0;
    inner.if_enabled = 1;
    inner.pin = AMP_F32;
    mix_status(fp_autocast_begin(run.ctx, &inner));
    scope_visit(&s, &arrays);
    mix_status(fp_autocast_end(run.ctx));
    mix_status(fp_autocast_end(run.ctx));
    mix_status(fp_autocast_end(run.ctx)); /* refused: none is open */
    mix_scope();
    mix_status(fp_autocast_release(run.ctx));
    amp_params_destroy(s.p);
}

static void scope_cases(void) {
    int i, low, cache;
    for (i = 0; i < AMP_PRESET_COUNT; i++)
        for (low = AMP_F16; low <= AMP_BF16; low++)
            for (cache = 0; cache < 2; cache++) {
                if (!start("autocast %s, %s, cache %s", amp_preset_name((amp_preset)i), type((amp_dtype)low),
                        cache ? "on" : "off"))
                    continue;
                scope_one((amp_preset)i, (amp_dtype)low, cache ? 1 : AMP_NONE, AMP_AUTO);
                finish();
            }
    if (start("autocast pinned to bf16")) {
        scope_one(AMP_PRESET_AMP, AMP_F16, 1, AMP_BF16);
        finish();
    }
}

/* ==== dropout and the loss ======================================================================================== */

static void dropout_case(amp_dtype from, amp_dtype to, float share, int large) {
    size_t i;
    if (!start("dropout %s to %s, p %.1f, %s", type(from), type(to), (double)share, large ? "65537" : "small")) return;
    for (i = 0; i < LENGTH(some_sizes); i++) {
        amp_dropout_desc d = AMP_ZERO;
        if ((some_sizes[i] > 1000) != large) continue;
        d.p = share;
        d.count = some_sizes[i];
        d.x = fill(i & 1 ? WILD : NORMAL, from, d.count, i & 1);
        d.y = blank(to, d.count, i & 1);
        d.rng.seed = 5;
        d.rng.stream = 6;
        d.rng.offset = 0xfffffffeu + i;
        mix_status(fp_dropout(run.ctx, &d));
        see_math(d.y);
        drop(0);
    }
    finish();
}

static void dropout_cases(void) {
    static const float shares[] = {0.0f, 0.1f, 0.5f, 1.0f};
    size_t f, t, k;
    for (f = 0; f < 5; f++)
        for (t = 0; t < 5; t++)
            for (k = 0; k < LENGTH(shares); k++) {
                dropout_case(types[f], types[t], shares[k], 0);
                if (f == t) dropout_case(types[f], types[t], shares[k], 1);
            }
}

typedef struct loss_shape { size_t rows, classes, ld; } loss_shape;

static const int32_t *loss_labels(const loss_shape *c, int how) {
    int32_t *host = (int32_t *)need(malloc(4 * c->rows + 1));
    void *dev;
    size_t i;
    for (i = 0; i < c->rows; i++) {
        host[i] = (int32_t)below((uint32_t)c->classes);
        if (how == 1 && i % 3 == 0) host[i] = -1;
        if (how == 2) host[i] = -100;
        if (how == 3 && i == 1) host[i] = (int32_t)c->classes;
    }
    dev = put(host, 4 * c->rows, 0);
    free(host);
    return (const int32_t *)dev;
}

static void loss_one(const loss_shape *c, amp_dtype in, amp_dtype out, kind k, int labels, int form) {
    amp_scaler_desc sd = scaler_desc(AMP_SCALER_DYNAMIC, 256.0f);
    amp_scaler *scaler = form & 1 ? scaler_make(&sd) : NULL;
    size_t ld = c->ld ? c->ld : c->classes;
    fp_xent_desc d = AMP_ZERO;
    d.sum = (uint32_t)(form >> 1 & 1);
    d.rows = c->rows;
    d.classes = c->classes;
    d.ld = ld;
    d.logits = fill(k, in, c->rows * ld, (size_t)(form & 1));
    d.labels = loss_labels(c, labels);
    d.loss = one_float(-7.0f);
    d.row_loss = (float *)room(4 * c->rows, 0);
    d.dlogits = blank(out, c->rows * ld, 0);
    d.scaler = scaler;
    d.factor = FP_FACTOR(form & 4 ? 0.25f : 1.0f);
    d.smoothing = form & 4 ? 0.1f : 0.0f;
    mix_status(fp_xent(run.ctx, &d));
    see(d.loss, AMP_F32, 1);
    see(d.row_loss, AMP_F32, 1);
    see_math(d.dlogits);
    if (in == out) {
        d.dlogits = d.logits;
        mix_status(fp_xent(run.ctx, &d));
        see_math(d.dlogits);
    }
    drop(0);
    amp_scaler_destroy(scaler);
}

static void loss_case(amp_dtype in, amp_dtype out, int labels, int form) {
    static const loss_shape shapes[] = {{0, 3, 0}, {1, 1, 0}, {3, 2, 5}, {17, 10, 0}, {5, 17, 20}};
    static const char *const label_names[] = {"all", "some left out", "none", "one too large"};
    static const char *const form_names[8] = {"mean", "mean, scaled", "sum", "sum, scaled", "mean, smoothed",
        "mean, scaled, smoothed", "sum, smoothed", "sum, scaled, smoothed"};
    size_t i;
    if (!start("cross-entropy %s to %s, labels: %s, %s", type(in), type(out), label_names[labels], form_names[form]))
        return;
    for (i = 0; i < LENGTH(shapes); i++)
        loss_one(&shapes[i], in, out, i == 4 ? WILD : NORMAL, labels, form);
    finish();
}

/* What is right: labels of 8 bytes, of one, targets; weights of the classes. */
static void loss_each_case(amp_dtype in, amp_dtype other, int form) {
    static const loss_shape shapes[] = {{17, 10, 0}, {5, 17, 20}, {3, 2100, 0}};
    static const char *const form_names[] = {
        "labels64", "labels8", "weights", "weights, smoothed", "targets", "targets, weights, smoothed"};
    size_t i, r;
    if (!start("cross-entropy %s, %s: %s", type(in), type(other), form_names[form])) return;
    for (i = 0; i < LENGTH(shapes); i++) {
        const loss_shape *c = &shapes[i];
        size_t ld = c->ld ? c->ld : c->classes;
        int64_t labels64[17];
        uint8_t labels8[17];
        fp_xent_desc d = AMP_ZERO;
        d.sum = (uint32_t)(i == 1);
        d.rows = c->rows;
        d.classes = c->classes;
        d.ld = ld;
        for (r = 0; r < c->rows; r++) {
            labels8[r] = (uint8_t)below(c->classes < 255 ? (uint32_t)c->classes : 255u);
            labels64[r] = r % 5 == 2 ? -1 : labels8[r];
        }
        d.logits = fill(NORMAL, in, c->rows * ld, 0);
        if (form == 1) d.labels8 = (const uint8_t *)put(labels8, c->rows, 0);
        if (form >= 4) d.targets = fill(NORMAL, other, c->rows * ld, 0);
        if (form != 1 && form < 4) d.labels64 = (const int64_t *)put(labels64, 8 * c->rows, 0);
        if (form == 2 || form == 3 || form == 5) d.weights = fill(NORMAL, other, c->classes, 0);
        d.smoothing = form == 3 || form == 5 ? 0.1f : 0.0f;
        d.loss = one_float(-7.0f);
        d.row_loss = (float *)room(4 * c->rows, 0);
        d.dlogits = blank(other, c->rows * ld, 0);
        mix_status(fp_xent(run.ctx, &d));
        see(d.loss, AMP_F32, 1);
        see(d.row_loss, AMP_F32, 1);
        see_math(d.dlogits);
        drop(0);
    }
    finish();
}

/* The last layer and its loss, in pieces; ordered, so that all contexts agree. */
static void vocabulary_case(amp_dtype type_of_w, size_t chunk) {
    amp_linear_xent_desc d = AMP_ZERO;
    int32_t *labels;
    size_t rows = 40, i;
    if (!start("vocabulary %s, chunk %lu", type(type_of_w), (unsigned long)chunk)) return;
    labels = (int32_t *)need(malloc(4 * rows));
    for (i = 0; i < rows; i++)
        labels[i] = (int32_t)below(18) - 1;
    d.linear.rows = rows;
    d.linear.in = 11;
    d.linear.out = 17;
    d.linear.flags = AMP_GEMM_ORDERED;
    d.linear.x = fill(NORMAL, type_of_w, rows * 11, 0);
    d.linear.w = fill(NORMAL, type_of_w, 17 * 11, 0);
    d.linear.bias = fill(NORMAL, AMP_F32, 17, 0);
    d.linear.y.dtype = AMP_F32;
    d.linear.dx = blank(type_of_w, rows * 11, 0);
    d.linear.dw = blank(type_of_w, 17 * 11, 0);
    d.linear.dbias = blank(AMP_F32, 17, 0);
    d.xent.labels = (const int32_t *)put(labels, 4 * rows, 0);
    d.xent.loss = one_float(-7.0f);
    d.xent.row_loss = (float *)room(4 * rows, 0);
    d.xent.smoothing = 0.1f;
    d.chunk = chunk;
    mix_status(amp_linear_cross_entropy_bytes(run.ctx, &d.scratch_bytes, &d));
    d.scratch = room(d.scratch_bytes, 0);
    mix_status(amp_linear_cross_entropy(run.ctx, &d));
    see(d.xent.loss, AMP_F32, 1);
    see(d.xent.row_loss, AMP_F32, 1);
    see_math(d.linear.dx);
    see_math(d.linear.dw);
    see_math(d.linear.dbias);
    free(labels);
    drop(0);
    finish();
}

static void loss_cases(void) {
    static const loss_shape wide[] = {{4, 1000, 0}, {2, 3000, 3001}};
    size_t f, t, i;
    int labels, form;
    for (f = 0; f < 5; f++)
        for (t = 0; t < 5; t++)
            for (labels = 0; labels < 4; labels++)
                for (form = 0; form < 8; form++)
                    if (labels < 2 || form == 1) loss_case(types[f], types[t], labels, form);
    for (f = 0; f < 5; f++)
        for (form = 0; form < 8; form++) {
            if (!start("cross-entropy %s, wide rows, form %d", type(types[f]), form)) continue;
            for (i = 0; i < LENGTH(wide); i++)
                loss_one(&wide[i], types[f], types[f], NORMAL, 1, form);
            finish();
        }
    for (f = 0; f < 5; f++)
        for (t = 0; t < 5; t++)
            for (form = 0; form < 6; form++)
                loss_each_case(types[f], types[t], form);
    for (f = 0; f < 3; f++)
        for (i = 0; i < 3; i++)
            vocabulary_case(types[f], i ? 7 * i : 0);
}

/* ==== products ==================================================================================================== */

typedef struct operands { amp_dtype a, b, d; } operands;

static const operands product_types[] = {
    {AMP_F32, AMP_F32, AMP_F32},
    {AMP_F16, AMP_F16, AMP_F16},
    {AMP_F16, AMP_F16, AMP_F32},
    {AMP_BF16, AMP_BF16, AMP_BF16},
    {AMP_BF16, AMP_BF16, AMP_F32},
    {AMP_F8E4M3, AMP_F8E4M3, AMP_F16},
    {AMP_F8E4M3, AMP_F8E5M2, AMP_F32},
    {AMP_F8E5M2, AMP_F8E4M3, AMP_BF16},
    {AMP_F8E4M3, AMP_F8E4M3, AMP_F8E4M3},
    {AMP_F8E5M2, AMP_F8E4M3, AMP_F8E5M2},
    {AMP_F32, AMP_F32, AMP_F16},
    {AMP_F16, AMP_F16, AMP_BF16},
};

typedef struct shape { size_t m, n, k; } shape;

static const shape product_shapes[] = {
    {1, 1, 1},
    {3, 5, 7},
    {17, 1, 33},
    {1, 33, 64},
    {16, 16, 16},
    {33, 17, 65},
    {64, 48, 96},
    {5, 129, 300},
    {130, 70, 31},
    {128, 96, 80},
    {4, 6, 0},
    {0, 3, 4},
};

static const char *const product_forms[] = {
    "plain",
    "alpha beta",
    "bias f32",
    "bias own",
    "relu",
    "relu aux",
    "gelu aux",
    "relu_grad",
    "gelu_grad",
    "dbias",
    "pointers",
    "scales",
    "other c",
    "bias gelu",
};

static int is_f8(amp_dtype t) { return t == AMP_F8E4M3 || t == AMP_F8E5M2; }

static size_t batches(const amp_gemm_desc *d) { return d->batch ? d->batch : 1; }

/* Operands, packed, and the output filled with numbers (beta reads them). */
static void product_fill(amp_gemm_desc *d, const operands *t, kind k, size_t shift) {
    d->alpha = FP_FACTOR(1.0f);
    d->flags = is_f8(t->a) ? AMP_GEMM_EMULATE : 0u;
    d->a = fill(k, t->a, d->m * d->k * batches(d), shift);
    d->b = fill(k, t->b, d->k * d->n * batches(d), shift);
    d->d = fill(k, t->d, d->m * d->n * batches(d), shift);
}

static void product_form(amp_gemm_desc *d, size_t form) {
    size_t all = d->m * d->n * batches(d);
    if (form == 1) d->alpha = FP_FACTOR(0.5f);
    if (form == 1) d->beta = FP_FACTOR(0.25f);
    if (form == 2) d->bias = fill(NORMAL, AMP_F32, d->n, 1);
    if (form == 3 || form == 13) d->bias = fill(NORMAL, d->d.dtype, d->n, 0);
    if (form == 4 || form == 5) d->act = AMP_RELU;
    if (form == 6 || form == 13) d->act = AMP_GELU;
    if (form == 5 || form == 6) d->aux = blank(d->d.dtype, all, 0);
    if (form == 7) fp_gemm_backward(d, AMP_RELU);
    if (form == 8) fp_gemm_backward(d, AMP_GELU);
    if (form == 7 || form == 8) d->aux = fill(NORMAL, d->d.dtype, all, 0);
    if (form == 9) d->dbias = blank(AMP_F32, d->n, 0);
    if (form == 10) d->alpha_ptr = one_float(0.75f);
    if (form == 10) d->beta = FP_FACTOR(1.0f);
    if (form == 10) d->beta_ptr = one_float(0.5f);
    if (form == 11 && is_f8(d->a.dtype)) d->scale_a = one_float(0.5f);
    if (form == 11 && is_f8(d->a.dtype)) d->scale_b = one_float(2.5f);
    if (form == 11 && is_f8(d->d.dtype)) d->scale_d = one_float(1.25f);
    if (form == 11 && is_f8(d->d.dtype)) d->amax_d = one_float(-1.0f);
    if (form == 12) d->beta = FP_FACTOR(2.0f);
    if (form == 12) d->c = fill(NORMAL, d->d.dtype, all, 0);
}

static void product_run(const amp_gemm_desc *d) {
    mix_status(fp_gemm(run.ctx, d));
    see_math(d->d);
    if (d->aux.data) see_math(d->aux);
    if (d->dbias.data) see_math(d->dbias);
    if (d->amax_d) see(d->amax_d, AMP_F32, 1);
}

static void product_case(const operands *t, int trans, size_t form) {
    size_t i;
    if (form == 11 && !is_f8(t->a)) return;
    if (!start("product %s %s %s, trans %d%d, %s", type(t->a), type(t->b), type(t->d), trans >> 1, trans & 1,
            product_forms[form]))
        return;
    for (i = 0; i < LENGTH(product_shapes); i++) {
        amp_gemm_desc d = AMP_ZERO;
        if (run.cuda && i > 4 && i != 5 && i != 10) continue;
        d.m = product_shapes[i].m;
        d.n = product_shapes[i].n;
        d.k = product_shapes[i].k;
        d.trans_a = (uint32_t)trans >> 1;
        d.trans_b = (uint32_t)trans & 1u;
        product_fill(&d, t, NORMAL, i & 1);
        product_form(&d, form);
        product_run(&d);
        drop(0);
    }
    finish();
}

/* Small integers: every order of summation gives the same sums, so these lines are the same on all contexts. */
static void product_exact(const operands *t, int trans) {
    size_t i;
    int form;
    if (!start("exact product %s %s %s, trans %d%d", type(t->a), type(t->b), type(t->d), trans >> 1, trans & 1)) return;
    for (i = 0; i < LENGTH(product_shapes); i++)
        for (form = 0; form < 4; form++) {
            amp_gemm_desc d = AMP_ZERO;
            if (product_shapes[i].k > 40 || (is_f8(t->d) && form == 1)) continue;
            d.m = product_shapes[i].m;
            d.n = product_shapes[i].n;
            d.k = product_shapes[i].k;
            d.trans_a = (uint32_t)trans >> 1;
            d.trans_b = (uint32_t)trans & 1u;
            product_fill(&d, t, INTEGER, i & 1);
            d.beta = FP_FACTOR(form == 1 ? 1.0f : 0.0f);
            if (form == 2) d.bias = fill(INTEGER, AMP_F32, d.n, 0);
            if (form == 3) d.act = AMP_RELU;
            if (form == 3) d.dbias = blank(AMP_F32, d.n, 0);
            product_run(&d);
            drop(0);
        }
    finish();
}

/* Batches, leading dimensions, broadcast: with integers, so exact too. */
static void product_batches(const operands *t, int how) {
    static const char *const names[] = {"packed batches", "broadcast b", "rows apart"};
    int trans;
    if (!start("exact product %s %s %s, %s", type(t->a), type(t->b), type(t->d), names[how])) return;
    for (trans = 0; trans < 4; trans++) {
        amp_gemm_desc d = AMP_ZERO;
        d.m = 5;
        d.n = 7;
        d.k = 9;
        d.batch = how == 2 ? 2 : 3;
        d.trans_a = (uint32_t)trans >> 1;
        d.trans_b = (uint32_t)trans & 1u;
        product_fill(&d, t, INTEGER, 0);
        if (how == 1) d.stride_b = AMP_BROADCAST;
        if (how == 2) {
            d.lda = 11;
            d.ldb = 13;
            d.ldd = 10;
            d.stride_a = 120;
            d.stride_b = 140;
            d.stride_d = 60;
            d.a = fill(INTEGER, t->a, 240, 0);
            d.b = fill(INTEGER, t->b, 280, 0);
            d.d = fill(INTEGER, t->d, 120, 0);
        }
        product_run(&d);
        drop(0);
    }
    finish();
}

static void product_flags(const operands *t) {
    static const uint32_t flags[] = {AMP_GEMM_TF32, AMP_GEMM_REDUCED, AMP_GEMM_F16_SUM, AMP_GEMM_FAST_FP8};
    amp_gemm_desc d = AMP_ZERO;
    size_t i;
    int k;
    if (!start("product %s %s %s, permissions and wild numbers", type(t->a), type(t->b), type(t->d))) return;
    d.m = 9;
    d.n = 20;
    d.k = 33;
    for (k = 0; k < INTEGER; k++)
        for (i = 0; i < LENGTH(flags); i++) {
            product_fill(&d, t, (kind)k, 0);
            d.flags |= flags[i];
            product_run(&d);
            drop(0);
        }
    finish();
}

/* What does not run: a sentence about the way, and a search for the best one. With integers, because the search goes by
   the clock and may choose any order of summation. */
static void product_questions(void) {
    size_t i;
    for (i = 0; i < LENGTH(product_types); i++) {
        const operands *t = &product_types[i];
        amp_gemm_desc d = AMP_ZERO;
        amp_dtype chosen = AMP_AUTO;
        if (!start("exact product %s %s %s, explain and tune", type(t->a), type(t->b), type(t->d))) continue;
        d.m = 16;
        d.n = 16;
        d.k = 16;
        d.trans_b = 1;
        d.d_dtype = &chosen;
        product_fill(&d, t, INTEGER, 0);
        mix_status(fp_gemm_explain(run.ctx, &d));
        mix_status(fp_gemm_tune(run.ctx, &d));
        mix_u64((uint64_t)chosen);
        see_math(d.d);
        product_run(&d);
        finish();
    }
}

static void product_cases(void) {
    size_t t, form;
    int trans, how;
    for (t = 0; t < LENGTH(product_types); t++) {
        for (trans = 0; trans < 4; trans++) {
            for (form = 0; form < LENGTH(product_forms); form++)
                product_case(&product_types[t], trans, form);
            product_exact(&product_types[t], trans);
        }
        for (how = 0; how < 3; how++)
            product_batches(&product_types[t], how);
        product_flags(&product_types[t]);
    }
    product_questions();
}

/* In the defined order products are as exact as any other verb: the same on all contexts. */
static void ordered_case(const operands *t) {
    int trans, k;
    if (!start("ordered %s %s %s", type(t->a), type(t->b), type(t->d))) return;
    for (trans = 0; trans < 4; trans++)
        for (k = 0; k <= INTEGER; k++) {
            amp_gemm_desc d = AMP_ZERO;
            d.m = trans == 3 ? 3 : 9;
            d.n = 20;
            d.k = 300;
            d.trans_a = (uint32_t)trans >> 1;
            d.trans_b = (uint32_t)trans & 1u;
            d.act = AMP_GELU;
            product_fill(&d, t, (kind)k, 0);
            d.flags = AMP_GEMM_ORDERED;
            product_run(&d);
            drop(0);
        }
    finish();
}
static void ordered_cases(void) {
    size_t t;
    for (t = 0; t < LENGTH(product_types); t++)
        ordered_case(&product_types[t]);
}

/* Casts to FP8 with scales: several in a row, so that a history goes round; both copies, and each alone. */
static void quantize_case(amp_dtype from, amp_dtype to, uint32_t history) {
    static const size_t shapes[][2] = {{1, 1}, {3, 70}, {65, 257}, {130, 8}};
    size_t i;
    amp_fp8_desc d = AMP_ZERO;
    amp_fp8_info info;
    amp_fp8 *f = NULL;
    if (!start("quantize %s to %s, history %u", type(from), type(to), (unsigned)history)) return;
    d.history = history;
    d.margin = history ? 0 : 1;
    d.power_of_two = from == AMP_F16;
    mix_status(amp_fp8_create(&f, run.ctx, &d));
    for (i = 0; i < 8; i++) {
        size_t rows = shapes[i % 4][0], cols = shapes[i % 4][1], n = rows * cols;
        amp_array src = fill(i == 5 ? WILD : NORMAL, from, n, i & 1), plain = blank(to, n, i & 1);
        amp_array turned = blank(to, n, 0), none = AMP_ZERO;
        mix_status(amp_quantize(f, 1, i == 2 ? none : plain, i == 3 ? none : turned, src, rows, cols, i == 6));
        see_math(plain);
        see_math(turned);
        mix_status(amp_fp8_get(f, 1, &info));
        mix_f32(info.scale);
        mix_f32(info.amax);
        mix_f32(info.largest);
        drop(0);
    }
    amp_fp8_destroy(f);
    finish();
}
/* Sums of columns and activations apart from products. */
static void column_sums_case(amp_dtype from, amp_dtype to) {
    static const size_t shapes[][2] = {{1, 1}, {33, 70}, {300, 257}, {64, 8}};
    size_t i;
    if (!start("column sums %s to %s", type(from), type(to))) return;
    for (i = 0; i < 8; i++) {
        size_t rows = shapes[i % 4][0], cols = shapes[i % 4][1], ld = cols + i / 4 * (i % 3);
        amp_array src = fill(i == 5 ? WILD : NORMAL, from, rows * ld, i & 1), dst = fill(NORMAL, to, cols, 0);
        mix_status(amp_column_sums(run.ctx, dst, src, rows, cols, ld, (uint32_t)(i & 1)));
        see_math(dst);
        drop(0);
    }
    finish();
}
static void activation_case(amp_act act, amp_dtype from, amp_dtype to) {
    size_t i;
    if (!start("activation %d, %s to %s", (int)act, type(from), type(to))) return;
    for (i = 0; i < 3; i++) {
        amp_activation_desc d = AMP_ZERO;
        d.act = act;
        d.count = 1500;
        d.x = fill(i == 1 ? WILD : NORMAL, from, d.count, i);
        d.y = blank(to, d.count, i);
        mix_status(amp_activation(run.ctx, &d));
        see_math(d.y);
        d.dy = fill(NORMAL, from, d.count, 1);
        d.dx = blank(to, d.count, 0);
        mix_status(amp_activation(run.ctx, &d));
        see_math(d.dx);
        drop(0);
    }
    finish();
}
static void apart_cases(void) {
    static const amp_dtype types[] = {AMP_F32, AMP_F16, AMP_BF16, AMP_F8E4M3, AMP_F8E5M2};
    size_t i, act;
    for (i = 0; i < 15; i++)
        column_sums_case(types[i % 5], types[i / 5]);
    for (act = 1; act < AMP_ACT_COUNT; act++)
        for (i = 0; i < 5; i++)
            activation_case((amp_act)act, types[i], types[(i + act) % 5]);
}
static void quantize_cases(void) {
    static const amp_dtype wide[] = {AMP_F32, AMP_F16, AMP_BF16};
    size_t i;
    for (i = 0; i < 12; i++)
        quantize_case(wide[i % 3], i / 3 % 2 ? AMP_F8E5M2 : AMP_F8E4M3, i < 6 ? 0 : 3);
}

/* ---- layers ---- */

static void linear_fill(
    fp_linear_desc *l, amp_dtype t, amp_dtype g, kind k, amp_act act, size_t rows, size_t in, size_t out) {
    memset(l, 0, sizeof *l);
    l->act = act;
    l->rows = rows;
    l->in = in;
    l->out = out;
    l->x = fill(k, t, rows * in, 0);
    l->w = fill(k, t, in * out, 0);
    l->bias = fill(k, AMP_F32, out, 0);
    l->y = blank(t, rows * out, 0);
    l->aux = blank(t, rows * out, 0);
    l->dy = fill(k, t, rows * out, 0);
    l->dx = blank(t, rows * in, 0);
    l->dw = fill(k, g, in * out, 0);
    l->dbias = fill(k, g, out, 0);
    l->flags = is_f8(t) ? AMP_GEMM_EMULATE : 0u;
}

static void linear_see(const fp_linear_desc *l) {
    see_math(l->y);
    see_math(l->aux);
    see_math(l->dy);
    see_math(l->dx);
    see_math(l->dw);
    see_math(l->dbias);
}

static void linear_one(amp_dtype t, amp_dtype g, kind k, amp_act act, uint32_t accumulate) {
    static const shape shapes[] = {{1, 1, 1}, {5, 7, 3}, {17, 33, 10}, {0, 4, 4}};
    size_t i;
    for (i = 0; i < LENGTH(shapes); i++) {
        fp_linear_desc l;
        linear_fill(&l, t, g, k, act, shapes[i].m, shapes[i].n, shapes[i].k);
        l.accumulate = accumulate;
        mix_status(fp_linear_forward(run.ctx, &l));
        mix_status(fp_linear_backward(run.ctx, &l));
        linear_see(&l);
        drop(0);
    }
}

static void linear_cases(void) {
    static const char *const act_names[] = {"no act", "relu", "gelu"};
    size_t t;
    int act, g;
    uint32_t accumulate;
    for (t = 0; t < 5; t++)
        for (act = 0; act < 3; act++)
            for (g = 0; g < 2; g++)
                for (accumulate = 0; accumulate < 2; accumulate++) {
                    amp_dtype dw = g ? AMP_F32 : types[t];
                    if (g && types[t] == AMP_F32) continue;
                    if (start("product linear %s, %s, dw %s, %s", type(types[t]), act_names[act], type(dw),
                            accumulate ? "added" : "set")) {
                        linear_one(types[t], dw, NORMAL, (amp_act)act, accumulate);
                        finish();
                    }
                    if (act < 2 &&
                        start("exact linear %s, %s, dw %s, %s", type(types[t]), act_names[act], type(dw),
                            accumulate ? "added" : "set")) {
                        linear_one(types[t], dw, INTEGER, (amp_act)act, accumulate);
                        finish();
                    }
                }
}

/* Two layers in a scope, with records; the second one fused with the first in backward, or not. */
static void linear_chain(amp_dtype low, kind k, uint32_t fused) {
    amp_autocast_desc scope = AMP_ZERO;
    amp_precision made[2];
    fp_linear_desc l[2];
    int i;
    memset(made, 0, sizeof made);
    linear_fill(&l[0], AMP_F32, AMP_F32, k, AMP_RELU, 9, 12, 16);
    linear_fill(&l[1], AMP_F32, AMP_F32, k, AMP_ACT_NONE, 9, 16, 5);
    l[0].record = &made[0];
    l[1].record = &made[1];
    l[0].y.dtype = l[0].aux.dtype = l[0].dy.dtype = AMP_AUTO;
    l[1].y.dtype = l[1].aux.dtype = l[1].dy.dtype = AMP_AUTO;
    l[1].x = l[0].y;
    l[1].dx = l[0].dy;
    l[1].from = &made[0];
    if (fused) fp_linear_fuse(&l[0], &l[1]);
    scope.low = low;
    mix_status(fp_autocast_begin(run.ctx, &scope));
    for (i = 0; i < 2; i++)
        mix_status(fp_linear_forward(run.ctx, &l[i]));
    for (i = 0; i < 2; i++) {
        mix_u64((uint64_t)made[i].x + 16u * (uint64_t)made[i].used);
        mix_u64((uint64_t)made[i].y + 16u * made[i].made);
    }
    for (i = 1; i >= 0; i--)
        mix_status(fp_linear_backward(run.ctx, &l[i]));
    mix_status(fp_autocast_end(run.ctx));
    for (i = 0; i < 2; i++) {
        see_math(amp_arr(l[i].dw.data, AMP_F32));
        see_math(amp_arr(l[i].dbias.data, AMP_F32));
        see_math(amp_arr(l[i].y.data, made[i].y));
    }
    mix_status(fp_autocast_release(run.ctx));
}

static void chain_cases(void) {
    int low;
    uint32_t fused;
    for (low = AMP_F16; low <= AMP_BF16; low++)
        for (fused = 0; fused < 2; fused++) {
            if (start("product chain in a scope, %s, %s", type((amp_dtype)low), fused ? "fused" : "separate")) {
                linear_chain((amp_dtype)low, NORMAL, fused);
                finish();
            }
        }
}

/* ==== plans, snapshots, files ===================================================================================== */

static void plan_cases(void) {
    static const amp_plan_layer layers[] = {
        {"embed", AMP_OP_NONE, 0, 50000, 0, 6000, 64, 0},
        {"fc1", AMP_OP_LINEAR, 0, 401408, 512, 32768, 0, 0},
        {"norm", AMP_OP_LAYER_NORM, 1, 512, 512, 32768, 128, 0},
        {"gelu", AMP_OP_GELU, 0, 0, 0, 32768, 0, 0},
        {"fc2", AMP_OP_LINEAR, 1, 5120, 10, 640, 0, 0},
        {"softmax", AMP_OP_SOFTMAX, 0, 0, 0, 640, 64, 0},
    };
    size_t l;
    int i, in;
    for (i = 0; i < AMP_PRESET_COUNT; i++) {
        amp_policy policy;
        if (!start("plan of memory: %s", amp_preset_name((amp_preset)i))) continue;
        mix_status(fp_policy_init(run.ctx, &policy, (amp_preset)i, NULL));
        for (l = 0; l <= LENGTH(layouts); l++)
            for (in = AMP_F32; in <= AMP_BF16; in++) {
                amp_params_desc d = set_desc(&layouts[l % LENGTH(layouts)], 2, (uint32_t)in & 1u);
                amp_plan p;
                memset(&p, 0, sizeof p);
                mix_status(fp_plan_memory(
                    run.ctx, &policy, l == LENGTH(layouts) ? NULL : &d, layers, LENGTH(layers), (amp_dtype)in, &p));
                mix_u64(p.master);
                mix_u64(p.model);
                mix_u64(p.grad);
                mix_u64(p.moments);
                mix_u64(p.accum);
                mix_u64(p.tables);
                mix_u64(p.casts);
                mix_u64(p.saved);
                mix_u64(p.total);
            }
        finish();
    }
}

static void mix_recompute(amp_status st, const fp_recompute_plan *p, const uint8_t *keep, size_t n) {
    mix_status(st);
    mix_u64(p->least);
    if (st != AMP_OK) return;
    mix_u64(p->peak);
    mix_u64(p->extra);
    mix_u64(p->base);
    mix_u64(p->kept);
    mix_u64(p->exact);
    mix(keep, n);
}

static void recompute_cases(void) {
    static const size_t lengths[] = {1, 2, 7, 16, 40};
    size_t i, n, k;
    for (i = 0; i < LENGTH(lengths); i++) {
        fp_recompute_layer layers[40];
        fp_recompute_plan p;
        uint8_t keep[40];
        uint64_t sum = 0;
        n = lengths[i];
        if (!start("recompute %lu layers", (unsigned long)n)) continue;
        for (k = 0; k < n; k++) {
            layers[k].bytes = 100 + below(1000);
            layers[k].work = below(300);
            layers[k].cost = 1 + below(50);
            sum += layers[k].bytes;
        }
        for (k = 1; k <= 6; k++) {
            memset(&p, 0, sizeof p);
            memset(keep, POISON, sizeof keep);
            mix_recompute(fp_recompute_optimal(run.ctx, layers, n, sum * k / 5, keep, &p), &p, keep, n);
        }
        memset(&p, 0, sizeof p);
        mix_recompute(fp_recompute_sqrt(run.ctx, layers, n, keep, &p), &p, keep, n);
        for (k = 0; k < n; k++)
            keep[k] = (uint8_t)below(2);
        memset(&p, 0, sizeof p);
        mix_recompute(fp_recompute_evaluate(run.ctx, layers, n, keep, &p), &p, keep, n);
        finish();
    }
}

static void snapshot_case(int change) {
    static const char *const changes[] = {"nothing between", "a step between", "a new scale between"};
    amp_autocast_desc scope = AMP_ZERO;
    amp_scaler_desc d = scaler_desc(AMP_SCALER_DYNAMIC, 1024.0f);
    amp_rng rng = {3, 4, 5};
    amp_snapshot shot;
    amp_scaler *scaler;
    amp_status st;
    hyper h;
    set s;
    if (!start("snapshot, %s", changes[change])) return;
    scaler = scaler_make(&d);
    s = set_make(&layouts[2], 2, 0, small_counts, 4);
    hyper_fill(&h, AMP_ADAMW, &layouts[2]);
    scope.low = AMP_BF16;
    mix_status(fp_autocast_begin(run.ctx, &scope));
    mix_status(fp_snapshot_take(run.ctx, &shot, &rng, scaler));
    mix_status(fp_autocast_end(run.ctx));
    set_grads(&s, NORMAL, 4.0f, '.');
    if (change == 1) mix_status(fp_step(run.ctx, s.p, scaler, &h.d));
    if (change == 2) mix_status(fp_scaler_set_scale(run.ctx, scaler, 8.0f));
    rng.offset = 1000;
    st = fp_snapshot_begin(run.ctx, &shot, &rng);
    mix_status(st);
    mix_u64(rng.seed);
    mix_u64(rng.stream);
    mix_u64(rng.offset);
    mix_scope();
    if (st == AMP_OK) mix_status(fp_autocast_end(run.ctx));
    mix_status(fp_autocast_release(run.ctx));
    amp_params_destroy(s.p);
    amp_scaler_destroy(scaler);
    finish();
}

static void snapshot_cases(void) {
    int change;
    for (change = 0; change < 3; change++)
        snapshot_case(change);
}

static size_t read_file(const char *path, unsigned char *to, size_t most) {
    FILE *f = fopen(path, "rb");
    size_t n;
    if (!f) return 0;
    n = fread(to, 1, most, f);
    fclose(f);
    return n;
}

static void write_file(const char *path, const unsigned char *from, size_t n) {
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(from, 1, n, f) != n || fclose(f) != 0) stop("a temporary file cannot be written");
}

static unsigned char file_bytes[65536];
static char state_path[512];

static void state_fill(fp_state_desc *d, amp_params *const *p, amp_scaler *const *s, unsigned char *user) {
    memset(d, 0, sizeof *d);
    d->params = p;
    d->n_params = 1;
    d->scalers = s;
    d->n_scalers = 1;
    d->user = user;
    d->user_bytes = 5;
}

/* Into another set, whole; then cut short and altered at some places: refused, and nothing changes. */
static void state_reload(const layout *l, int optimizer, const hyper *h) {
    amp_scaler_desc sd = scaler_desc(AMP_SCALER_DYNAMIC, 2.0f);
    amp_scaler *scaler = scaler_make(&sd);
    set s = set_make(l, moments_of(optimizer), 0, small_counts, 4);
    unsigned char user[5] = {0};
    size_t n = read_file(state_path, file_bytes, sizeof file_bytes), i;
    fp_state_desc d;
    state_fill(&d, &s.p, &scaler, user);
    mix_u64(n);
    mix(file_bytes, n);
    for (i = 0; i < 5; i++) {
        write_file(state_path, file_bytes, n * i / 5);
        mix_status(fp_state_load(run.ctx, state_path, &d));
        file_bytes[n * i / 5 + i] ^= 1;
        write_file(state_path, file_bytes, n);
        mix_status(fp_state_load(run.ctx, state_path, &d));
        file_bytes[n * i / 5 + i] ^= 1;
    }
    mix_set(&s);
    write_file(state_path, file_bytes, n);
    mix_status(fp_state_load(run.ctx, state_path, &d));
    mix(user, 5);
    mix_set(&s);
    mix_scaler(scaler);
    steps(WHOLE, &s, scaler, h, "..");
    amp_params_destroy(s.p);
    amp_scaler_destroy(scaler);
}

static void state_case(int optimizer, const layout *l) {
    amp_scaler_desc sd = scaler_desc(AMP_SCALER_DYNAMIC, 1024.0f);
    unsigned char user[5] = {1, 2, 3, 4, 5};
    amp_scaler *scaler;
    fp_state_desc d;
    hyper h;
    set s;
    if (!start("state %s, %s", optimizer_names[optimizer], l->name)) return;
    scaler = scaler_make(&sd);
    s = set_make(l, moments_of(optimizer), 0, small_counts, 4);
    hyper_fill(&h, optimizer, l);
    steps(WHOLE, &s, scaler, &h, ".i.");
    state_fill(&d, &s.p, &scaler, user);
    mix_status(fp_scaler_unscale(run.ctx, scaler, s.p));
    mix_status(fp_state_save(run.ctx, state_path, &d)); /* refused: unscaled */
    mix_status(fp_scaler_update(run.ctx, scaler));
    mix_status(fp_state_save(run.ctx, state_path, &d));
    amp_params_destroy(s.p);
    amp_scaler_destroy(scaler);
    state_reload(l, optimizer, &h);
    remove(state_path);
    memset(&d, 0, sizeof d);                            /* its sets are gone, too */
    mix_status(fp_state_load(run.ctx, state_path, &d)); /* not there */
    finish();
}

static void state_cases(void) {
    size_t l;
    int o;
    for (o = 0; o < AMP_OPTIMIZER_COUNT; o++)
        for (l = 0; l < LENGTH(layouts); l++)
            state_case(o, &layouts[l]);
}

/* ==== what is refused ============================================================================================= */

static void refused_arrays(void) {
    amp_finite_report r;
    amp_histogram hist;
    amp_array a, b, none = AMP_ZERO;
    amp_cast_desc c = AMP_ZERO;
    amp_dropout_desc d = AMP_ZERO;
    if (start("refused: arrays")) {
        a = fill(NORMAL, AMP_F32, 20, 0);
        b = blank(AMP_F16, 20, 0);
        mix_status(fp_cast(run.ctx, b, a, 21, NULL));
        mix_status(fp_cast(run.ctx, none, a, 20, NULL));
        mix_status(fp_cast(run.ctx, b, none, 20, NULL));
        mix_status(fp_cast(run.ctx, amp_arr(b.data, AMP_AUTO), a, 20, NULL));
        mix_status(fp_cast(run.ctx, amp_arr(b.data, (amp_dtype)77), a, 20, NULL));
        mix_status(fp_cast(run.ctx, amp_arr((char *)a.data + 4, AMP_F32), a, 10, NULL));
        c._begin = 1;
        mix_status(fp_cast(run.ctx, b, a, 20, &c));
        c._begin = 0;
        c.rounding = (amp_rounding)9;
        mix_status(fp_cast(run.ctx, b, a, 20, &c));
        mix_status(fp_all_finite(run.ctx, &a, 1, NULL));
        mix_status(fp_all_finite(run.ctx, NULL, 1, &r));
        mix_status(fp_histogram_count(run.ctx, &a, 1, NULL));
        mix_status(fp_histogram_count(run.ctx, NULL, 1, &hist));
        d.p = 1.5f;
        d.count = 20;
        d.x = a;
        d.y = b;
        mix_status(fp_dropout(run.ctx, &d));
        d.p = 0.5f;
        d.count = 21;
        mix_status(fp_dropout(run.ctx, &d));
        see_math(a);
        see_math(b);
        finish();
    }
}

static void refused_scaler_value(int field, float value) {
    amp_scaler_desc d = scaler_desc(AMP_SCALER_DYNAMIC, 1024.0f);
    amp_scaler *s;
    if (field == 0) d.scale = value;
    if (field == 1) d.growth_factor = value;
    if (field == 2) d.backoff_factor = value;
    if (field == 3) d.min_scale = value;
    if (field == 4) d.max_scale = value;
    s = scaler_make(&d);
    mix_u64(s != NULL);
    amp_scaler_destroy(s);
}

static void refused_scaler(void) {
    int field, i;
    if (!start("refused: scaler")) return;
    for (field = 0; field < 5; field++)
        for (i = 0; i < 6; i++) {
            static const float values[] = {-1.0f, 1.0f, 0.75f, 1e38f, 1e-39f, 2048.0f};
            refused_scaler_value(field, values[i]);
        }
    for (field = 0; field < 5; field++)
        refused_scaler_value(field, from_bits(0x7fc00000u));
    finish();
}

static void refused_step_field(const set *s, int optimizer, int field, float value) {
    hyper h;
    hyper_fill(&h, optimizer, &layouts[13]);
    if (field == 0) h.d.lr = value;
    if (field == 1) h.d.beta1 = FP_HYPER(value);
    if (field == 2) h.d.beta2 = FP_HYPER(value);
    if (field == 3) h.d.eps = FP_HYPER(value);
    if (field == 4) h.d.weight_decay = value;
    if (field == 5) h.d.momentum = value;
    if (field == 6) h.d.clip_norm = value;
    if (field == 7) h.d.clip_value = value;
    if (field == 8) h.d.stochastic = 1;
    if (field == 9) h.d.n_groups = 9;
    if (field == 10) h.d.optimizer = (amp_optimizer)17;
    if (field == 11) h.d.nesterov = 1;
    mix_status(fp_step(run.ctx, s->p, NULL, &h.d));
}

static void refused_step(void) {
    static const float values[] = {-2.0f, 1.5f, -0.5f};
    int o, field, i;
    set s;
    if (!start("refused: step")) return;
    s = set_make(&layouts[13], 1, 0, small_counts, 4); /* one moment: too few for Adam */
    for (o = 0; o < AMP_OPTIMIZER_COUNT; o++)
        for (field = 0; field < 12; field++)
            for (i = 0; i < 3; i++)
                refused_step_field(&s, o, field, values[i]);
    mix_status(fp_accumulate(run.ctx, s.p, NULL, 0)); /* no accumulators */
    mix_status(fp_clip(run.ctx, s.p, NULL, -1.0f));
    mix_status(fp_clip_value(run.ctx, s.p, NULL, -1.0f));
    mix_status(fp_grad_norm(run.ctx, s.p, NULL, NULL));
    mix_record(s.p);
    mix_set(&s);
    amp_params_destroy(s.p);
    finish();
}

static void refused_params(void) {
    amp_params_desc d = AMP_ZERO;
    amp_param_desc e = AMP_ZERO;
    amp_params *p = NULL;
    int i;
    if (!start("refused: params")) return;
    for (i = 0; i < 6; i++) {
        layout l = layouts[2];
        if (i == 0) l.model = AMP_F8E4M3;
        if (i == 1) l.grad = (amp_dtype)50;
        if (i == 2) l.master = AMP_MASTER_KAHAN;
        if (i == 3) l.moment = AMP_F16;
        if (i == 4) l.master = (amp_master)9;
        d = set_desc(&l, i == 5 ? 3 : 2, 0);
        mix_status(fp_params_create(&p, run.ctx, &d));
        mix_u64(p != NULL);
        amp_params_destroy(p);
    }
    d = set_desc(&layouts[2], 2, 0);
    mix_status(fp_params_create(&p, run.ctx, &d));
    mix_status(amp_params_add(p, &e)); /* count 0 */
    e.count = 4;
    e.name = "w";
    mix_status(amp_params_add(p, &e));
    mix_status(amp_params_add(p, &e)); /* twice */
    mix_status(amp_params_commit(p));
    mix_status(amp_params_commit(p));
    e.name = "late";
    mix_status(amp_params_add(p, &e));
    mix_u64(fp_param_master(p, 1).data == NULL);
    amp_params_destroy(p);
    finish();
}

static void refused_products(void) {
    int i;
    if (!start("refused: products")) return;
    for (i = 0; i < 10; i++) {
        amp_gemm_desc d = AMP_ZERO;
        d.m = 4;
        d.n = 5;
        d.k = 6;
        product_fill(&d, &product_types[1], NORMAL, 0);
        if (i == 0) d.a.count = 3;
        if (i == 1) d.a.dtype = AMP_F32;
        if (i == 2) d.lda = 2;
        if (i == 3) d.d = d.a;
        if (i == 4) d.act = (amp_act)99;
        if (i == 5) fp_gemm_backward(&d, AMP_GELU);
        if (i == 6) d.scale_a = one_float(1.0f);
        if (i == 7) d.d.dtype = AMP_AUTO;
        if (i == 8) d.flags = 1u << 30;
        if (i == 9) d._end = 1;
        mix_status(fp_gemm(run.ctx, &d));
        see(d.a.data, AMP_F16, 1);
        drop(0);
    }
    finish();
}

static void refused_losses(void) {
    int i;
    if (!start("refused: losses and layers")) return;
    for (i = 0; i < 6; i++) {
        fp_xent_desc d = AMP_ZERO;
        fp_linear_desc l;
        d.rows = 3;
        d.classes = 4;
        d.factor = FP_FACTOR(1.0f);
        d.logits = fill(NORMAL, AMP_F16, 12, 0);
        d.labels = (const int32_t *)fill(ZERO, AMP_F32, 3, 0).data;
        d.loss = one_float(1.0f);
        d.row_loss = (float *)room(12, 0);
        if (i == 0) d.classes = 0;
        if (i == 1) d.ld = 2;
        if (i == 2) d.labels = NULL;
        if (i == 3) d.row_loss = NULL;
        if (i == 4) d.smoothing = 2.0f;
        if (i == 5) d.logits.dtype = AMP_AUTO;
        mix_status(fp_xent(run.ctx, &d));
        linear_fill(&l, AMP_F16, AMP_F32, NORMAL, AMP_GELU, 3, 4, 5);
        if (i == 0) l.x.dtype = AMP_F32;
        if (i == 1) l.w.count = 2;
        if (i == 2) l.aux.data = NULL;
        if (i == 3) l.act = (amp_act)99;
        if (i == 4) l.y.data = NULL;
        if (i == 5) l.dy.dtype = AMP_F32;
        mix_status(fp_linear_forward(run.ctx, &l));
        mix_status(fp_linear_backward(run.ctx, &l));
        drop(0);
    }
    finish();
}

static void refused_cases(void) {
    refused_arrays();
    refused_scaler();
    refused_step();
    refused_params();
    refused_products();
    refused_losses();
}

/* ==== all of it =================================================================================================== */

static const struct {
    void (*cases)(void);
    unsigned thin;
} groups[] = {
    {scalar_cases, 1},
    {name_cases, 1},
    {memory_cases, 1},
    {cast_cases, 1},
    {finite_cases, 1},
    {histogram_cases, 1},
    {scaler_cases, 1},
    {unscale_cases, 3},
    {layout_cases, 1},
    {params_cases, 1},
    {step_cases, 3},
    {step_large, 5},
    {step_extras, 3},
    {step_plain_sgd, 1},
    {step_adopted, 1},
    {norm_cases, 2},
    {inspect_cases, 1},
    {two_sets_case, 1},
    {window_cases, 2},
    {window_hold, 1},
    {policy_cases, 1},
    {scope_cases, 1},
    {dropout_cases, 1},
    {loss_cases, 3},
    {product_cases, 1},
    {ordered_cases, 1},
    {quantize_cases, 1},
    {apart_cases, 1},
    {linear_cases, 1},
    {chain_cases, 1},
    {plan_cases, 1},
    {recompute_cases, 1},
    {snapshot_cases, 1},
    {state_cases, 1},
    {refused_cases, 1},
};

static void all_cases(void) {
    size_t i;
    for (i = 0; i < LENGTH(groups); i++) {
        run.thin = groups[i].thin;
        groups[i].cases();
    }
}

static amp_status context_make(const char *name) {
    run.cuda = strcmp(name, "cuda") == 0;
    if (run.cuda) return fp_cuda_create(&run.ctx);
    if (strcmp(name, "cpu-scalar") == 0) return fp_cpu_create(&run.ctx, AMP_SIMD_SCALAR, 1);
    if (strcmp(name, "cpu-sse2") == 0) return fp_cpu_create(&run.ctx, AMP_SIMD_SSE2, 1);
    if (strcmp(name, "cpu-avx2") == 0) return fp_cpu_create(&run.ctx, AMP_SIMD_AVX2, 1);
    if (strcmp(name, "cpu-avx512") == 0) return fp_cpu_create(&run.ctx, AMP_SIMD_AVX512, 1);
    if (strcmp(name, "cpu-2threads") == 0) return fp_cpu_create(&run.ctx, AMP_SIMD_AVX2, 2);
    fprintf(stderr, "fingerprint: unknown context %s\n", name);
    exit(2);
}

int main(int argc, char **argv) {
    const char *name = "cpu-scalar", *tmp = getenv("TMPDIR");
    amp_status st;
    int i;
    for (i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--context") == 0)
            name = argv[i + 1];
        else if (strcmp(argv[i], "--filter") == 0)
            run.filter = argv[i + 1];
        else
            i = argc;
    }
    if (i != argc) {
        fprintf(stderr, "usage: fingerprint [--context NAME] [--filter TEXT]\n");
        return 2;
    }
    snprintf(state_path, sizeof state_path, "%s/fingerprint-%s.state", tmp ? tmp : "/tmp", name);
    st = context_make(name);
    if (st != AMP_OK) {
        fprintf(stderr, "fingerprint: no context %s: %s\n", name, amp_strerror(st));
        return 77;
    }
    all_cases();
    amp_ctx_destroy(run.ctx);
    fprintf(stderr, "fingerprint: %s: %lu cases\n", name, run.cases);
    return 0;
}
