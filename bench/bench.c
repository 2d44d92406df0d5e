/* bench.c - how fast the CPU backend is, beside the machine's own limits and its peers. One thread, one process.

       bench [--out DIR] [--quick]   conversions, checks, unscale, histogram, rounding, losses, activations, one
                                     optimizer step
             [--part casts|checks|functions|steps|calls|elements]   one part of them
             [--cpu-time]            times are the thread's own: for a machine with other work (memory is shared all
                                     the same)
       bench --step [--out DIR]      the optimizer step at 32 M parameters, beside a pass over the same arrays
       bench --gemm [--out DIR]      products, beside OpenBLAS (one thread) if libopenblas.so.0 or libblas.so.3 can be
                                     opened
       bench --curve [--out DIR]     bandwidth over size: a CSV and an SVG chart
       bench --draw FILE.csv         the chart of such a CSV again: FILE.svg

   Contestants of a row take turns inside each round; a row's ratio is the median over rounds of (their time / our
   time). "bests" is the ratio of each one's best round, steadier on a shared machine. Bandwidth counts each byte that
   must be read or written once. The copy anchor is the better of memcpy and of our own copy that writes around the
   caches, on the same total bytes. Everything goes through public verbs, so calls and argument checks are in the
   figures. Outputs are checked before they are timed; a row that is wrong says so and the exit status is 1. Speed never
   changes the exit status. */
#define _GNU_SOURCE
#define AMP_IMPLEMENTATION
#include "../amp.h"
#include "common.h"
#if defined(__unix__)
#  include <dlfcn.h>
#  include <sys/mman.h>
#endif

#define MAX_RUNS 16

typedef struct bench_run { /* one contestant of a row */
    const char *name;
    void (*fn)(const struct bench_run *);
    amp_ctx *ctx;
    void *dst;
    const void *src;
    size_t n, bytes; /* elements; bytes read + written */
    amp_dtype to, from;
    const amp_cast_desc *desc;
    void *extra;
    double t[ROUNDS]; /* seconds per call */
} bench_run;

static FILE *csv;
static int quick, wrong;
static volatile uint64_t sink;

/* All contestants, `rounds` times in turn; each timing repeats a call until about `slice` seconds have passed. */
static void compete(bench_run *r, int n, int rounds, double slice) {
    int i, k, reps[MAX_RUNS], j;
    for (i = 0; i < n; i++) {
        double t, d;
        r[i].fn(&r[i]);
        for (reps[i] = 1;; reps[i] *= 2) {
            t = now();
            for (j = 0; j < reps[i]; j++)
                r[i].fn(&r[i]);
            d = now() - t;
            if (d > slice / 2 || reps[i] > 1 << 20) break;
        }
    }
    for (k = 0; k < rounds; k++)
        for (i = 0; i < n; i++) {
            double t = now();
            for (j = 0; j < reps[i]; j++)
                r[i].fn(&r[i]);
            r[i].t[k] = (now() - t) / reps[i];
        }
}

/* ---- memory ---- */

static void *pages(size_t bytes) { /* page-aligned, touched */
    void *p;
#if defined(__unix__)
    p = mmap(NULL, bytes + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) p = NULL;
#else
    p = malloc(bytes + 4096);
#endif
    if (!p) {
        puts("bench: no memory");
        exit(1);
    }
    memset(p, 1, bytes);
    return p;
}
static void unpages(void *p, size_t bytes) {
#if defined(__unix__)
    (void)munmap(p, bytes + 4096);
#else
    (void)bytes;
    free(p);
#endif
}
static void fill(float *x, size_t n) { /* normal-like: sum of 4 uniform numbers */
    size_t i;
    for (i = 0; i < n; i += 2) {
        uint32_t w[4];
        amp_philox(w, 2026, 7, i);
        x[i] = (float)((double)w[0] + (double)w[1] - 4294967296.0) * 4e-10f;
        if (i + 1 < n) x[i + 1] = (float)((double)w[2] + (double)w[3] - 4294967296.0) * 4e-10f;
    }
}

/* ---- anchors ---- */

static void run_memcpy(const bench_run *r) {
    memcpy(r->dst, r->src, r->bytes / 2);
    __asm__ volatile("" : : "r"(r->dst) : "memory");
}
#if defined(AMPI_X86)
#  define NT_COPY(name, target_, LINE) \
    __attribute__((target(target_))) static void name(const bench_run *r) { \
        size_t n = r->bytes / 2, b, i, s, pages = r->extra ? 4 : 1; \
        char *d = (char *)r->dst; \
        const char *p = (const char *)r->src; \
        for (b = 0; b + pages * 4096 <= n; b += pages * 4096) \
            for (i = 0; i < 4096; i += 64) \
                for (s = 0; s < pages; s++) { \
                    char *q = d + b + s * 4096 + i; \
                    const char *f = p + b + s * 4096 + i; \
                    if (pages > 1) _mm_prefetch(f + 16384, _MM_HINT_T0); \
                    LINE; \
                } \
        _mm_sfence(); \
        memcpy(d + b, p + b, n - b); \
    }
NT_COPY(nt_512, "avx512f", _mm512_stream_si512((__m512i *)(void *)q, _mm512_loadu_si512(f)))
NT_COPY(nt_256, "avx2", _mm256_stream_si256((__m256i *)(void *)q, _mm256_loadu_si256((const __m256i *)(const void *)f));
    _mm256_stream_si256((__m256i *)(void *)(q + 32), _mm256_loadu_si256((const __m256i *)(const void *)(f + 32))))
__attribute__((target("avx512f"))) static void read_512(const bench_run *r) {
    const char *a = (const char *)r->src;
    size_t i;
    __m512i x0 = _mm512_setzero_si512(), x1 = x0, x2 = x0, x3 = x0;
    for (i = 0; i + 256 <= r->bytes; i += 256) {
        x0 = _mm512_or_si512(x0, _mm512_loadu_si512(a + i));
        x1 = _mm512_or_si512(x1, _mm512_loadu_si512(a + i + 64));
        x2 = _mm512_or_si512(x2, _mm512_loadu_si512(a + i + 128));
        x3 = _mm512_or_si512(x3, _mm512_loadu_si512(a + i + 192));
    }
    sink = (uint64_t)_mm512_reduce_or_epi64(_mm512_or_si512(_mm512_or_si512(x0, x1), _mm512_or_si512(x2, x3)));
}
#endif
static amp_simd best; /* of this machine: asked once, CPUID is slow in a virtual machine */

static void run_nt(const bench_run *r) { /* r->extra: pages whose lines take turns */
#if defined(AMPI_X86)
    if (best == AMP_SIMD_AVX512) {
        nt_512(r);
        return;
    }
    if (best == AMP_SIMD_AVX2) {
        nt_256(r);
        return;
    }
#endif
    run_memcpy(r);
}
static void run_read(const bench_run *r) {
    const uint64_t *p = (const uint64_t *)r->src;
    uint64_t a = 0, b = 0, c = 0, d = 0;
    size_t i;
#if defined(AMPI_X86)
    if (best == AMP_SIMD_AVX512) {
        read_512(r);
        return;
    }
#endif
    for (i = 0; i + 4 <= r->bytes / 8; i += 4) {
        a |= p[i];
        b |= p[i + 1];
        c |= p[i + 2];
        d |= p[i + 3];
    }
    sink = a | b | c | d;
}

/* ---- the usual bit-trick converters, written from their published ideas ----
   Multiplication: scaling by 2^112 and 2^-110 makes the FPU round at the right bit, normal or not (as in the FP16
   library of XNNPACK). Branches: infinity, subnormals by one addition of 0.5, normals by an integer addition (Giesen's
   float_to_half_fast3_rtne). */
static uint16_t half_by_multiplication(uint32_t w) {
    float base = ampi_float(w & 0x7fffffffu) * 0x1.0p+112f * 0x1.0p-110f;
    uint32_t twice = w + w, sign = w & 0x80000000u, bias = twice & 0xff000000u, bits;
    if (bias < 0x71000000u) bias = 0x71000000u;
    bits = ampi_bits(ampi_float((bias >> 1) + 0x07800000u) + base);
    bits = ((bits >> 13) & 0x7c00u) + (bits & 0xfffu);
    return (uint16_t)(sign >> 16 | (twice > 0xff000000u ? 0x7e00u : bits));
}
static uint16_t half_by_branches(uint32_t w) {
    uint32_t a = w & 0x7fffffffu, h;
    if (a >= 0x47800000u)
        h = a > 0x7f800000u ? 0x7e00u : 0x7c00u;
    else if (a < 0x38800000u)
        h = ampi_bits(ampi_float(a) + 0.5f) - 0x3f000000u;
    else
        h = (a + 0xc8000fffu + ((a >> 13) & 1u)) >> 13;
    return (uint16_t)(h | (w >> 31) << 15);
}
static uint32_t float_by_multiplication(uint16_t h) {
    uint32_t w = (uint32_t)h << 16, sign = w & 0x80000000u, twice = w + w;
    float normal = ampi_float((twice >> 4) + 0x70000000u) * 0x1.0p-112f,
          sub = ampi_float((twice >> 17) | 0x3f000000u) - 0.5f;
    return sign | (twice < 0x08000000u ? ampi_bits(sub) : ampi_bits(normal));
}
static uint32_t float_by_branches(uint16_t h) {
    uint32_t a = (uint32_t)(h & 0x7fffu) << 13, e = a & 0x0f800000u, r = a + 0x38000000u;
    if (e == 0x0f800000u)
        r += 0x38000000u;
    else if (e == 0)
        r = ampi_bits(ampi_float(r + 0x00800000u) - ampi_float(0x38800000u));
    return r | (uint32_t)(h & 0x8000u) << 16;
}
#define PEER(name, in, out, fn) \
    static void name(const bench_run *r) { \
        const in *s = (const in *)r->src; \
        out *d = (out *)r->dst; \
        size_t i; \
        for (i = 0; i < r->n; i++) \
            d[i] = fn(s[i]); \
        __asm__ volatile("" : : "r"(d) : "memory"); \
    }
PEER(peer_narrow_mul, uint32_t, uint16_t, half_by_multiplication)
PEER(peer_narrow_branch, uint32_t, uint16_t, half_by_branches)
PEER(peer_widen_mul, uint16_t, uint32_t, float_by_multiplication)
PEER(peer_widen_branch, uint16_t, uint32_t, float_by_branches)

/* ---- verbs ---- */

static void run_cast(const bench_run *r) {
    if (amp_cast(r->ctx, amp_arr(r->dst, r->to), amp_arr(r->src, r->from), r->n, r->desc) != AMP_OK) wrong = 1;
}
static void run_finite(const bench_run *r) {
    amp_array a = amp_arrn(r->src, r->from, r->n);
    amp_finite_report f;
    if (amp_all_finite(r->ctx, &f, &a, 1) != AMP_OK || f.nan + f.inf) wrong = 1;
}
static void run_unscale(const bench_run *r) {
    amp_array a = amp_arrn(r->dst, r->to, r->n);
    if (amp_unscale((amp_scaler *)r->extra, NULL, NULL, &a, 1) != AMP_OK) wrong = 1;
}
static void run_histogram(const bench_run *r) {
    amp_array a = amp_arrn(r->src, r->from, r->n);
    amp_histogram h;
    if (amp_histogram_count(r->ctx, &h, &a, 1) != AMP_OK || h.total != r->n) wrong = 1;
}

/* ---- rows ---- */

#define PATHS 6 /* amp_simd */
static const char *const path_name[PATHS] = {"auto", "scalar", "sse2", "avx2", "avx512", "neon"};
static amp_ctx *on[PATHS];     /* one thread each; NULL: not here */
static char *src, *dst, *copy; /* 256 MiB of floats, and twice as much room */
#define BIG ((size_t)64 << 20)

static void head(const char *title) {
    printf("\n%s\n  %-34s %-8s %10s %10s %8s %7s %7s %7s  %-8s %s\n", title, "work", "path", "size", "GB/s", "anchor",
        "ratio", "bests", "target", "", "spread of the ratio, anchor");
}
static double median(const bench_run *r, int rounds) { return quantile(r->t, rounds, 0.5); }
static double shortest(const bench_run *r, int rounds) { return quantile(r->t, rounds, 0); }
static double gb_s(const bench_run *r, double seconds) { return (double)r->bytes * 1e-9 / seconds; }

/* A line: contestant r against the best of the anchors a[0..n). */
static void line(const char *work, const char *path, size_t size, const bench_run *r, const bench_run *a, int n,
    int rounds, double target) {
    const bench_run *top = a, *quickest = a; /* anchors by median and by their best round */
    double ratio[ROUNDS], m, p10, p90, bests, ours, theirs;
    char text[24];
    int k, i;
    for (i = 1; i < n; i++) {
        if (median(&a[i], rounds) < median(top, rounds)) top = &a[i];
        if (shortest(&a[i], rounds) < shortest(quickest, rounds)) quickest = &a[i];
    }
    for (k = 0; k < rounds; k++)
        ratio[k] = gb_s(r, r->t[k]) / gb_s(top, top->t[k]);
    m = quantile(ratio, rounds, 0.5);
    p10 = quantile(ratio, rounds, 0.1);
    p90 = quantile(ratio, rounds, 0.9);
    bests = gb_s(r, shortest(r, rounds)) / gb_s(quickest, shortest(quickest, rounds));
    ours = gb_s(r, median(r, rounds));
    theirs = gb_s(top, median(top, rounds));
    printf("  %-34s %-8s %10s %10.2f %8.1f %7.3f %7.3f ", work, path, size_text(size, text), ours, theirs, m, bests);
    if (target > 0)
        printf("%7.2f  %s", target, m >= target ? "met    " : "MISSED ");
    else
        printf("%7s  %7s", "-", "");
    printf(" %.3f..%.3f  %s\n", p10, p90, top->name);
    if (csv)
        fprintf(csv, "%s,%s,%lu,%.3f,%s,%.3f,%.4f,%.2f,%.4f,%.4f\n", work, path, (unsigned long)size, ours, top->name,
            theirs, m, target, p10, p90);
    fflush(stdout);
}

static bench_run contestant(const char *name, void (*fn)(const bench_run *), amp_ctx *ctx, void *d, const void *s,
    size_t n, size_t bytes, amp_dtype to, amp_dtype from) {
    bench_run r;
    memset(&r, 0, sizeof r);
    r.name = name;
    r.fn = fn;
    r.ctx = ctx;
    r.dst = d;
    r.src = s;
    r.n = n;
    r.bytes = bytes;
    r.to = to;
    r.from = from;
    return r;
}
static int four;
static int anchors(bench_run *r, void *d, const void *s, size_t bytes) { /* copies of bytes / 2 */
    int k = 0;
    r[k++] = contestant("memcpy", run_memcpy, NULL, d, s, 0, bytes, AMP_F32, AMP_F32);
    if (bytes <= (size_t)1 << 21) return k;
    r[k++] = contestant("own nt copy", run_nt, NULL, d, s, 0, bytes, AMP_F32, AMP_F32);
    r[k++] = contestant("own nt copy x4", run_nt, NULL, d, s, 0, bytes, AMP_F32, AMP_F32);
    r[k - 1].extra = &four;
    return k;
}
static int rounds_for(size_t bytes) {
    if (quick) return 5;
    return bytes > (size_t)64 << 20 ? 9 : 31;
}
static double slice_for(size_t bytes) { return bytes > (size_t)1 << 24 ? 0 : 3e-4; } /* seconds */

/* Prepares src as n elements of `type`. */
static void make_source(amp_dtype type, size_t n) {
    static amp_dtype made = AMP_F32;
    static size_t made_n = BIG;
    if (made == type && made_n >= n) return;
    if (type == AMP_F32)
        fill((float *)(void *)src, n);
    else { /* blockwise through dst */
        fill((float *)(void *)dst, n);
        if (amp_cast(on[AMP_SIMD_AUTO], amp_arr(src, type), amp_arr(dst, AMP_F32), n, NULL) != AMP_OK) wrong = 1;
    }
    made = type;
    made_n = n;
}
static uint32_t pattern_of(const void *data, amp_dtype type, size_t i) {
    if (amp_dtype_size(type) == 1) return ((const uint8_t *)data)[i];
    if (amp_dtype_size(type) == 2) return ((const uint16_t *)data)[i];
    return ((const uint32_t *)data)[i];
}
static uint32_t right_pattern(const bench_run *r, size_t i) {
    if (r->from == AMP_F64) return ampi_nearest_f64(((const double *)r->src)[i], r->to);
    static const amp_cast_desc plain = AMP_ZERO;
    const amp_cast_desc *d = r->desc ? r->desc : &plain;
    uint32_t x = ampi_bits(amp_load(r->src, r->from, i));
    if (r->to == AMP_F32) return x;
    return ampi_encode(x, r->to, d->rounding, amp_random(d->seed, d->stream, d->offset + i), d->saturate ? 1 : 0);
}
static void check_cast(const bench_run *r) { /* against the scalar reference, a sample of the elements */
    size_t i, step = r->n > 1u << 20 ? 997 : 1;
    r->fn(r);
    for (i = 0; i < r->n; i += step) {
        if (pattern_of(r->dst, r->to, i) == right_pattern(r, i)) continue;
        printf("WRONG: %s %s -> %s, element %lu\n", r->name, amp_dtype_name(r->from), amp_dtype_name(r->to),
            (unsigned long)i);
        wrong = 1;
        return;
    }
}

/* One conversion at one size: anchors, every path, peers. target: of the best path. */
static void cast_row(
    amp_dtype to, amp_dtype from, size_t n, double target, const amp_cast_desc *desc, const char *note) {
    bench_run r[MAX_RUNS];
    char work[64];
    size_t bytes = n * (amp_dtype_size(to) + amp_dtype_size(from)), size = n * 4;
    int k, i, p, rounds = rounds_for(bytes), top = 0;
    make_source(from, n);
    i = k = anchors(r, dst, src, bytes);
    for (p = AMP_SIMD_SCALAR; p < PATHS; p++)
        if (on[p] && (p != AMP_SIMD_SCALAR || bytes < (size_t)1 << 24)) {
            r[k] = contestant(path_name[p], run_cast, on[p], dst, src, n, bytes, to, from);
            r[k].desc = desc;
            check_cast(&r[k++]);
            top = p;
        }
    compete(r, k, rounds, slice_for(bytes));
    snprintf(work, sizeof work, "%s->%s%s", amp_dtype_name(from), amp_dtype_name(to), note);
    for (p = i; p < k; p++)
        line(work, r[p].name, size, &r[p], r, i, rounds, strcmp(r[p].name, path_name[top]) ? 0 : target);
}
/* Portable C against the usual converters, same compiler and flags. The first is the one in common use; the second
   needs inputs of one kind for its speed. */
static void scalar_row(amp_dtype to, amp_dtype from, double target) {
    bench_run r[4];
    size_t n = 4096, bytes = n * 6;
    int rounds = rounds_for(bytes), narrow = to == AMP_F16, p, k = 0;
    const char *work = narrow ? "f32->f16 beside bit tricks" : "f16->f32 beside bit tricks";
    void (*multiplies)(const bench_run *) = narrow ? peer_narrow_mul : peer_widen_mul;
    void (*branches)(const bench_run *) = narrow ? peer_narrow_branch : peer_widen_branch;
    make_source(from, n);
    r[k++] = contestant("by multiplication", multiplies, NULL, dst, src, n, bytes, to, from);
    r[k++] = contestant("by branches", branches, NULL, dst, src, n, bytes, to, from);
    check_cast(&r[0]);
    check_cast(&r[1]);
    for (p = AMP_SIMD_SCALAR; p <= AMP_SIMD_SSE2; p++)
        if (on[p]) r[k++] = contestant(path_name[p], run_cast, on[p], dst, src, n, bytes, to, from);
    compete(r, k, rounds, 3e-4);
    for (p = 2; p < k; p++) {
        line(work, r[p].name, n * 4, &r[p], &r[0], 1, rounds, target);
        line(work, r[p].name, n * 4, &r[p], &r[1], 1, rounds, 0);
    }
}

/* A cast with a scale per tensor beside the plain one: current scaling reads the tensor twice, delayed once. */
static struct {
    amp_fp8 *f;
    int turned;
} quantizer;
static void run_quantize(const bench_run *r) {
    const size_t rows = 64, cols = r->n / rows;
    amp_array dst_t = AMP_ZERO, dst_ = amp_arr(r->dst, r->to);
    if (quantizer.turned) dst_t = amp_arr((char *)r->dst + r->n, r->to);
    if (amp_quantize(quantizer.f, 0, dst_, dst_t, amp_arr(r->src, r->from), rows, cols, 0) != AMP_OK) wrong = 1;
}
static void quantize_row(amp_dtype from, size_t n, uint32_t history, int turned, const char *what) {
    bench_run r[3];
    char work[64];
    size_t bytes = n * (1 + amp_dtype_size(from)), best = 0, p;
    int rounds = rounds_for(bytes);
    amp_fp8_desc d = AMP_ZERO;
    for (p = AMP_SIMD_SCALAR; p < PATHS; p++)
        if (on[p]) best = p;
    d.history = history;
    if (amp_fp8_create(&quantizer.f, on[best], &d) != AMP_OK) {
        wrong = 1;
        return;
    }
    quantizer.turned = turned;
    make_source(from, n);
    r[0] = contestant("amp_cast", run_cast, on[best], dst, src, n, bytes, AMP_F8E4M3, from);
    r[1] = contestant(path_name[best], run_quantize, on[best], dst, src, n, bytes, AMP_F8E4M3, from);
    if (turned) bytes += n;
    r[2] = contestant("memcpy", run_memcpy, NULL, dst, src, n, bytes, AMP_F32, AMP_F32);
    compete(r, 3, rounds, slice_for(bytes));
    snprintf(work, sizeof work, "%s->f8e4m3, %s", amp_dtype_name(from), what);
    line(work, r[1].name, n * 4, &r[1], r, 1, rounds, 0);
    r[1].bytes = bytes;
    line(work, r[1].name, n * 4, &r[1], &r[2], 1, rounds, 0);
    amp_fp8_destroy(quantizer.f);
}

static void conversions(void) {
    static const size_t sizes[3] = {4096, 131072, BIG};
    static const struct {
        amp_dtype to, from;
        double target[3];
    } rows[] = {
        {AMP_F16, AMP_F32, {0.75, 0, 0.82}},
        {AMP_F32, AMP_F16, {0.75, 0, 1.05}},
        {AMP_BF16, AMP_F32, {0.29, 0, 0.80}},
        {AMP_F32, AMP_BF16, {0, 0, 0}},
        {AMP_F8E4M3, AMP_F32, {0.12, 0, 0}},
        {AMP_F32, AMP_F8E4M3, {0.22, 0, 0}},
        {AMP_F8E5M2, AMP_F32, {0.12, 0, 0}},
        {AMP_F32, AMP_F8E5M2, {0.22, 0, 0}},
    };
    amp_cast_desc sr = AMP_ZERO, sat = AMP_ZERO;
    size_t i, s;
    head("Conversions (size: of the floats; anchor: a copy of the same total bytes)");
    for (i = 0; i < sizeof rows / sizeof *rows; i++)
        for (s = 0; s < 3; s++)
            cast_row(rows[i].to, rows[i].from, sizes[s], rows[i].target[s], NULL, "");
    cast_row(AMP_F16, AMP_F32, 1024, 0, NULL, " (1024 elements)");
    cast_row(AMP_F32, AMP_F16, 1024, 0, NULL, " (1024 elements)");
    sr.rounding = AMP_STOCHASTIC;
    sr.seed = 1;
    sat.saturate = 1;
    cast_row(AMP_F16, AMP_F64, 65536, 0, NULL, "");
    cast_row(AMP_BF16, AMP_F32, 4096, 0, &sr, " stochastic");
    cast_row(AMP_F16, AMP_F32, 4096, 0, &sr, " stochastic");
    cast_row(AMP_F8E4M3, AMP_F32, 4096, 0, &sat, " saturating");
    head(
        "amp_quantize (size: of the floats; anchors: amp_cast to the same format, the same path; a copy of the bytes)");
    for (i = 0; i < 2; i++)
        for (s = 0; s < 2; s++) {
            quantize_row(i ? AMP_BF16 : AMP_F32, sizes[s], 16, 0, "delayed scaling");
            quantize_row(i ? AMP_BF16 : AMP_F32, sizes[s], 0, 0, "current scaling");
            quantize_row(i ? AMP_BF16 : AMP_F32, sizes[s], 16, 1, "delayed, and transposed");
        }
    head("Portable C and SSE2 beside the usual bit-trick converters, same compiler and flags (anchor: one of them)");
    scalar_row(AMP_F16, AMP_F32, 2.0);
    scalar_row(AMP_F32, AMP_F16, 2.0);
}

/* A check that only reads, beside a plain read. target: of the best path. */
static void read_row(const char *name, void (*fn)(const bench_run *), amp_dtype type, size_t n, double target) {
    bench_run r[MAX_RUNS];
    char work[32];
    size_t bytes = n * amp_dtype_size(type);
    int k = 0, p, rounds = rounds_for(bytes);
    make_source(type, n);
    r[k++] = contestant("plain read", run_read, NULL, dst, src, n, bytes, type, type);
    for (p = AMP_SIMD_SCALAR; p < PATHS; p++)
        if (on[p]) r[k++] = contestant(path_name[p], fn, on[p], dst, src, n, bytes, type, type);
    compete(r, k, rounds, slice_for(bytes));
    snprintf(work, sizeof work, "%s %s", name, amp_dtype_name(type));
    for (p = 1; p < k; p++)
        line(work, r[p].name, bytes, &r[p], r, 1, rounds, p == k - 1 ? target : 0);
}

/* Unscaling in place, by 1, so that repetitions do not change the numbers. target: of the best path. */
static void unscale_row(amp_dtype type, size_t n, double target) {
    bench_run r[MAX_RUNS];
    amp_scaler *scaler[PATHS];
    amp_scaler_desc d = AMP_ZERO;
    char work[32];
    size_t bytes = n * amp_dtype_size(type) * 2;
    int a, k, p, rounds = rounds_for(bytes);
    d.scale = 1.0f;
    make_source(type, n);
    memcpy(dst, src, bytes / 2);
    a = k = anchors(r, copy, src, bytes);
    for (p = AMP_SIMD_SCALAR; p < PATHS; p++) {
        scaler[p] = NULL;
        if (!on[p]) continue;
        if (amp_scaler_create(&scaler[p], on[p], &d) != AMP_OK) {
            wrong = 1;
            continue;
        }
        r[k] = contestant(path_name[p], run_unscale, on[p], dst, src, n, bytes, type, type);
        r[k++].extra = scaler[p];
    }
    compete(r, k, rounds, slice_for(bytes));
    snprintf(work, sizeof work, "unscale %s", amp_dtype_name(type));
    for (p = a; p < k; p++)
        line(work, r[p].name, bytes / 2, &r[p], r, a, rounds, p == k - 1 ? target : 0);
    if (memcmp(dst, src, bytes / 2)) {
        puts("WRONG: unscale by 1 changed something");
        wrong = 1;
    }
    for (p = AMP_SIMD_SCALAR; p < PATHS; p++)
        amp_scaler_destroy(scaler[p]);
}

static void checks(void) {
    head("Finite check (anchor: a plain read, 4 accumulators)");
    read_row("finite", run_finite, AMP_F32, 4096, 0);
    read_row("finite", run_finite, AMP_F32, 131072, 0);
    read_row("finite", run_finite, AMP_F32, BIG, 0.90);
    read_row("finite", run_finite, AMP_F16, 8192, 0);
    read_row("finite", run_finite, AMP_F16, 262144, 0);
    read_row("finite", run_finite, AMP_F16, BIG, 0.90);
    head("Unscale + check, in place (anchor: a copy of the same total bytes)");
    unscale_row(AMP_F32, 4096, 0);
    unscale_row(AMP_F32, 131072, 0);
    unscale_row(AMP_F32, BIG, 1.0);
    unscale_row(AMP_F16, 4096, 0);
    unscale_row(AMP_F16, 131072, 0);
    unscale_row(AMP_F16, BIG, 1.0);
    head("Histogram (anchor: a plain read)");
    read_row("histogram", run_histogram, AMP_F32, 131072, 0);
    read_row("histogram", run_histogram, AMP_F16, 131072, 0);
}

/* ---- losses, activations, dropout, sums: each path beside a copy of the same bytes, and beside portable C ---- */

static void run_xent(const bench_run *r) {
    if (amp_softmax_cross_entropy(r->ctx, (const amp_xent_desc *)r->extra) != AMP_OK) wrong = 1;
}
static void run_backward(const bench_run *r) {
    if (amp_linear_backward(r->ctx, (const amp_linear_desc *)r->extra) != AMP_OK) wrong = 1;
}
static void run_dropout(const bench_run *r) {
    if (amp_dropout(r->ctx, (const amp_dropout_desc *)r->extra) != AMP_OK) wrong = 1;
}
static void run_gelu(const bench_run *r) { /* the inner loop alone: forward, it is part of a product */
    size_t i;
    for (i = 0; i < r->n; i += AMPI_BLOCK) {
        memcpy((float *)r->dst + i, (const float *)r->src + i, AMPI_BLOCK * sizeof(float));
        ampi_cpu_of(r->ctx)->k->act((float *)r->dst + i, (float *)r->dst + i, AMPI_BLOCK, AMP_GELU);
    }
}
static void verb_row(const char *work, void (*fn)(const bench_run *), void *desc, size_t n, size_t bytes, size_t size,
    const void *result, size_t result_bytes) {
    bench_run r[MAX_RUNS];
    int a, k, p, scalar, rounds = rounds_for(bytes);
    char *want = (char *)pages(result_bytes);
    a = k = scalar = anchors(r, copy, src, bytes);
    for (p = AMP_SIMD_SCALAR; p < PATHS; p++)
        if (on[p]) {
            r[k] = contestant(path_name[p], fn, on[p], dst, src, n, bytes, AMP_F32, AMP_F32);
            r[k].extra = desc;
            memcpy(dst, src, result_bytes); /* for those that work in place */
            fn(&r[k]);
            if (k == scalar)
                memcpy(want, result, result_bytes);
            else if (memcmp(want, result, result_bytes)) {
                printf("WRONG: %s on %s is not what portable C gives\n", work, path_name[p]);
                wrong = 1;
            }
            k++;
        }
    compete(r, k, rounds, slice_for(bytes));
    for (p = a; p < k; p++)
        line(work, r[p].name, size, &r[p], r, a, rounds, 0);
    for (p = scalar + 1; p < k; p++)
        line(work, r[p].name, size, &r[p], &r[scalar], 1, rounds, 0);
    unpages(want, result_bytes);
}

static void xent_row(size_t rows, size_t classes, int each) { /* each: a target per class, which are the logits */
    static int32_t labels[512];
    amp_xent_desc e = AMP_ZERO;
    char work[64];
    size_t count = rows * classes, i;
    make_source(AMP_F16, count);
    for (i = 0; i < rows; i++)
        labels[i] = (int32_t)(amp_random(1, 1, i) % classes);
    e.rows = rows;
    e.classes = classes;
    e.logits = amp_arr(src, AMP_F16);
    e.dlogits = amp_arr(dst, AMP_F16);
    if (!each) e.labels = labels;
    if (each) e.targets = e.logits;
    e.row_loss = (float *)(void *)(copy + BIG * 2);
    e.loss = e.row_loss + rows;
    snprintf(
        work, sizeof work, "cross-entropy f16 %u x %u%s", (unsigned)rows, (unsigned)classes, each ? ", targets" : "");
    verb_row(work, run_xent, &e, count, count * 4, count * 2, dst, count * 2);
}
static void run_vocabulary(const bench_run *r) {
    if (amp_linear_cross_entropy(r->ctx, (const amp_linear_xent_desc *)r->extra) != AMP_OK) wrong = 1;
}
static void vocabulary_row(void) { /* the loss alone, in pieces of 64 rows: its bytes are x and w */
    static int32_t labels[256];
    amp_linear_xent_desc d = AMP_ZERO;
    size_t rows = 256, in = 64, out = 4096, n = (rows + out) * in;
    make_source(AMP_F16, n);
    d.linear.rows = rows;
    d.linear.in = in;
    d.linear.out = out;
    d.linear.flags = AMP_GEMM_ORDERED; /* the same bits on all paths */
    d.linear.x = amp_arr(src, AMP_F16);
    d.linear.w = amp_arr((char *)src + rows * in * 2, AMP_F16);
    d.linear.y.dtype = AMP_F32;
    d.xent.labels = labels;
    d.xent.row_loss = (float *)(void *)dst;
    d.chunk = 64;
    d.scratch = copy;
    d.scratch_bytes = 64 * out * 4;
    verb_row("layer and cross-entropy f16 256 x 64 x 4096", run_vocabulary, &d, n, n * 2, n * 2, dst, rows * 4);
}
static void backward_row(const char *work, amp_act act, int masked, size_t n) { /* of the activation alone */
    const size_t read = masked ? n * 4 + n / 8 : n * 6;
    amp_linear_desc l = AMP_ZERO;
    make_source(AMP_F16, n);
    l.rows = 1;
    l.in = 1;
    l.out = n;
    l.act = act;
    l.aux = l.y = amp_arr(src, AMP_F16);
    if (masked) l.aux.dtype = AMP_MASK; /* any bits will do */
    l.dy = amp_arr(dst, AMP_F16);
    verb_row(work, run_backward, &l, n, read, n * 2, dst, n * 2);
}
static void run_activation(const bench_run *r) {
    if (amp_activation(r->ctx, (const amp_activation_desc *)r->extra) != AMP_OK) wrong = 1;
}
static void activation_rows(size_t n) {
    static const char *const names[AMP_ACT_COUNT] = {"", "relu", "gelu", "gelu_erf", "silu", "tanh", "sigmoid"};
    int act, back;
    for (act = AMP_GELU_ERF; act < AMP_ACT_COUNT; act++)
        for (back = 0; back < 2; back++) {
            amp_activation_desc d = AMP_ZERO;
            char work[64];
            make_source(AMP_F16, n);
            d.act = (amp_act)act;
            d.count = n;
            d.x = amp_arr(src, AMP_F16);
            d.y = amp_arr(back ? src : dst, AMP_F16);
            if (back) d.dy = d.dx = amp_arr(dst, AMP_F16);
            snprintf(work, sizeof work, "%s%s f16, apart", names[act], back ? " backward" : "");
            verb_row(work, run_activation, &d, n, n * (back ? 6 : 4), n * 2, dst, n * 2);
        }
}
static void dropout_row(size_t n) {
    amp_dropout_desc d = AMP_ZERO;
    make_source(AMP_F16, n);
    d.count = n;
    d.p = 0.1f;
    d.x = amp_arr(src, AMP_F16);
    d.y = amp_arr(dst, AMP_F16);
    verb_row("dropout f16", run_dropout, &d, n, n * 4, n * 2, dst, n * 2);
}
static void sums_row(void) {
    amp_linear_desc l = AMP_ZERO;
    size_t n = 128 * 1024;
    make_source(AMP_F16, n);
    l.rows = 128;
    l.in = 1;
    l.out = 1024;
    l.dy = amp_arr(src, AMP_F16);
    l.dbias = amp_arr(dst, AMP_F32);
    verb_row("column sums f16 128 x 1024", run_backward, &l, n, n * 2, n * 2, dst, 4096);
}
static void functions(void) {
    size_t n = 131072;
    head("Losses, activations, dropout, sums (anchor: a copy of the bytes that must be read or written, "
         "then portable C)");
    xent_row(512, 10, 0);
    xent_row(64, 1000, 0);
    xent_row(64, 1000, 1);
    xent_row(16, 50257, 0);
    vocabulary_row();
    backward_row("gelu backward f16", AMP_GELU, 0, n);
    backward_row("relu backward f16", AMP_RELU, 0, n);
    backward_row("relu backward f16, by a mask", AMP_RELU, 1, n);
    make_source(AMP_F32, n);
    verb_row("gelu f32 (inner loop)", run_gelu, NULL, n, n * 8, n * 4, dst, n * 4);
    activation_rows(n);
    dropout_row(n);
    sums_row();
}

/* ---- one optimizer step: AdamW on FP32 masters with a half copy and half gradients; 28 bytes per parameter at least,
   and the gradients are read once more for the check ---- */
typedef struct step_state {
    amp_params *p;
    amp_scaler *s;
    uint32_t count; /* of amp_step_desc.count_lost */
    amp_optimizer optimizer;
} step_state;
static void run_step(const bench_run *r) {
    amp_step_desc d = AMP_ZERO;
    const step_state *t = (const step_state *)r->extra;
    d.optimizer = t->optimizer;
    d.lr = 1e-3f;
    d.weight_decay = 0.01f;
    d.count_lost = t->count;
    if (amp_step(t->p, t->s, &d) != AMP_OK) wrong = 1;
}
/* A set of n parameters, with gradients out of src. */
static step_state make_state(
    amp_ctx *ctx, size_t n, amp_dtype model, amp_dtype grad, amp_master master, amp_dtype moment) {
    step_state s = {NULL, NULL, 0, AMP_ADAMW};
    amp_params_desc pd = AMP_ZERO;
    amp_param_desc d = AMP_ZERO;
    size_t i, part = (size_t)1 << 20;
    d.count = n;
    pd.model = model;
    pd.grad = grad;
    pd.master = master;
    pd.moment = moment;
    if (amp_params_create(&s.p, ctx, &pd) != AMP_OK || amp_params_add(s.p, &d) != AMP_OK ||
        amp_params_commit(s.p) != AMP_OK || amp_scaler_create(&s.s, ctx, NULL) != AMP_OK) {
        puts("bench: no memory");
        exit(1);
    }
    for (i = 0; i < n; i += part) {
        char *g = (char *)amp_param_grad(s.p, 0).data + i * amp_dtype_size(grad);
        size_t count = n - i < part ? n - i : part;
        if (amp_cast(ctx, amp_arr(g, grad), amp_arr(src, AMP_F32), count, NULL) != AMP_OK) wrong = 1;
    }
    return s;
}
static void end_state(step_state *s) {
    amp_params_destroy(s->p);
    amp_scaler_destroy(s->s);
}
/* Steps that count lost updates, in 1 of 32 or 8 blocks and in all, beside one that does not. */
static const struct counted_layout {
    const char *name;
    amp_dtype dtype;
    amp_master master;
    amp_optimizer optimizer;
} counted_layouts[] = {
    {"adamw f16, masters, lost counted", AMP_F16, AMP_MASTER_F32, AMP_ADAMW},
    {"sgd f16, masters, lost counted", AMP_F16, AMP_MASTER_F32, AMP_SGD},
    {"lion f16, masters, lost counted", AMP_F16, AMP_MASTER_F32, AMP_LION},
    {"adamw bf16, split, lost counted", AMP_BF16, AMP_MASTER_SPLIT, AMP_ADAMW},
    {"adamw bf16, split8, lost counted", AMP_BF16, AMP_MASTER_SPLIT8, AMP_ADAMW},
    {"adamw bf16, none, lost counted", AMP_BF16, AMP_MASTER_NONE, AMP_ADAMW},
    {"sgd bf16, none, lost counted", AMP_BF16, AMP_MASTER_NONE, AMP_SGD},
};
#define COUNTED (sizeof counted_layouts / sizeof *counted_layouts)
static void counted_step(const struct counted_layout *l, size_t n, int rounds, double slice) {
    static const char *const name[4] = {"not counted", "1 of 32 blocks", "1 of 8 blocks", "every weight"};
    static const uint32_t count[4] = {0, 32, 8, 1};
    step_state state = make_state(on[0], n, l->dtype, l->dtype, l->master, AMP_F32), as[4];
    bench_run r[4];
    int k;
    state.optimizer = l->optimizer;
    for (k = 0; k < 4; k++) {
        as[k] = state;
        as[k].count = count[k];
        r[k] = contestant(name[k], run_step, on[0], dst, src, n, n * 30, AMP_F32, AMP_F32);
        r[k].extra = &as[k];
    }
    compete(r, 4, rounds, slice);
    for (k = 1; k < 4; k++)
        line(l->name, r[k].name, n * 4, &r[k], r, 1, rounds, 0);
    end_state(&state);
}
/* Weights in 16 + 16 and 16 + 8 bits, beside FP32 masters. */
enum { MASTERS = 3 };
static const amp_master master_of[MASTERS] = {AMP_MASTER_F32, AMP_MASTER_SPLIT, AMP_MASTER_SPLIT8};
static void master_rows(const char *work, amp_dtype dtype, size_t n, int rounds, double slice) {
    static const char *const name[MASTERS] = {"masters", "split", "split8"};
    step_state state[MASTERS];
    bench_run r[MASTERS];
    int k;
    for (k = 0; k < MASTERS; k++) {
        state[k] = make_state(on[0], n, dtype, dtype, master_of[k], AMP_F32);
        r[k] = contestant(name[k], run_step, on[0], dst, src, n, n * 30, AMP_F32, AMP_F32);
        r[k].extra = &state[k];
    }
    compete(r, MASTERS, rounds, slice);
    for (k = 1; k < MASTERS; k++)
        line(work, r[k].name, n * 4, &r[k], r, 1, rounds, 0);
    for (k = 0; k < MASTERS; k++)
        end_state(&state[k]);
}
/* Moments in FP32, BF16 and 8 bits, beside those in BF16. */
static void moment_rows(size_t n, int rounds, double slice) {
    static const char *const work[MASTERS] = {"adamw bf16, masters", "adamw bf16, split", "adamw bf16, split8"};
    static const char *const name[3] = {"bf16 moments", "fp32 moments", "8-bit moments"};
    static const amp_dtype moment[3] = {AMP_BF16, AMP_F32, AMP_MOMENT_8BIT};
    int m, k;
    for (m = 0; m < MASTERS; m++) {
        step_state state[3];
        bench_run r[3];
        for (k = 0; k < 3; k++) {
            state[k] = make_state(on[0], n, AMP_BF16, AMP_BF16, master_of[m], moment[k]);
            r[k] = contestant(name[k], run_step, on[0], dst, src, n, n * 30, AMP_F32, AMP_F32);
            r[k].extra = &state[k];
        }
        compete(r, 3, rounds, slice);
        for (k = 1; k < 3; k++)
            line(work[m], r[k].name, n * 4, &r[k], r, 1, rounds, 0);
        for (k = 0; k < 3; k++)
            end_state(&state[k]);
    }
}
static void steps(void) {
    static const size_t sizes[2] = {1u << 14, 1u << 24};
    size_t s, l;
    head("amp_step, AdamW, FP16 model and gradients (GB/s: 30 bytes a parameter; anchor: a copy of them)");
    for (s = 0; s < 2; s++) {
        bench_run r[MAX_RUNS];
        step_state state[PATHS];
        size_t n = sizes[s];
        int k, a, p, rounds = rounds_for(n * 30);
        a = k = anchors(r, dst, src, n * 30);
        make_source(AMP_F32, n);
        for (p = AMP_SIMD_SCALAR; p < PATHS; p++) {
            if (!on[p]) continue;
            state[p] = make_state(on[p], n, AMP_F16, AMP_F16, AMP_MASTER_F32, AMP_F32);
            r[k] = contestant(path_name[p], run_step, on[p], dst, src, n, n * 30, AMP_F32, AMP_F32);
            r[k++].extra = &state[p];
        }
        compete(r, k, rounds, s ? 0 : 3e-4);
        for (p = a; p < k; p++)
            line("adamw step", r[p].name, n * 4, &r[p], r, a, rounds, 0);
        for (p = AMP_SIMD_SCALAR; p < PATHS; p++)
            if (on[p]) end_state(&state[p]);
        for (l = 0; l < COUNTED; l++)
            counted_step(&counted_layouts[l], n, rounds, s ? 0 : 3e-4);
        master_rows("adamw f16, beside masters", AMP_F16, n, rounds, s ? 0 : 3e-4);
        master_rows("adamw bf16, beside masters", AMP_BF16, n, rounds, s ? 0 : 3e-4);
        moment_rows(n, rounds, s ? 0 : 3e-4);
    }
}

/* The whole optimizer tail at 32 M parameters: amp_step beside a pass over the same arrays without arithmetic, and
   beside a fused step on FP32 weights followed by a pass that makes the half copy. */
typedef struct tail {
    float *w, *m, *v;
    void *g;
    uint16_t *h;
    size_t gsize;
} tail;
#if defined(AMPI_X86) || defined(AMPI_NEON)
#define PASS(P, TARGET) /* adding 0 keeps the stores */ \
    TARGET static void P##_pass(const tail *t, size_t n) { \
        const size_t width = sizeof(P##_floats) / sizeof(float); \
        P##_floats zero = P##_set(0.0f); \
        size_t i; \
        for (i = 0; i < n; i += width) { \
            P##_floats w = P##_add(P##_load(t->w + i), zero), m = P##_add(P##_load(t->m + i), zero); \
            P##_floats v = P##_add(P##_load(t->v + i), zero); \
            AMPI_PREFETCH((const char *)t->g + t->gsize * i + 2048); \
            memcpy(t->h + i, (const char *)t->g + t->gsize * i, 2u * width); \
            P##_store(t->w + i, w); \
            P##_store(t->m + i, m); \
            P##_store(t->v + i, v); \
        } \
    }
#endif
#if defined(AMPI_X86)
PASS(ampi_sse2, )
PASS(ampi_avx2, AMPI_AVX2)
PASS(ampi_avx512, AMPI_AVX512)
#elif defined(AMPI_NEON)
PASS(ampi_neon, )
#endif
static void run_pass(const bench_run *r) {
    const tail *t = (const tail *)r->extra;
#if defined(AMPI_X86)
    if (best == AMP_SIMD_AVX512)
        ampi_avx512_pass(t, r->n);
    else if (best == AMP_SIMD_AVX2)
        ampi_avx2_pass(t, r->n);
    else
        ampi_sse2_pass(t, r->n);
#elif defined(AMPI_NEON)
    ampi_neon_pass(t, r->n);
#else
    size_t i;
    for (i = 0; i < r->n; i++) {
        t->w[i] += 0.0f;
        t->m[i] += 0.0f;
        t->v[i] += 0.0f;
        memcpy(t->h + i, (const char *)t->g + t->gsize * i, 2);
    }
#endif
}
static void run_two(const bench_run *r) { /* a step whose weights have no half copy, then the copy */
    const step_state *t = (const step_state *)r->extra;
    run_step(r);
    if (amp_cast(r->ctx, amp_arr(r->dst, AMP_F16), amp_param_get(t->p, 0).master, r->n, NULL) != AMP_OK) wrong = 1;
}

/* A line of the tail: r beside `than`. less: its time is to be at most 1.15 of theirs; more: at least; 0: no target. */
typedef enum tail_target { NO_TARGET, AT_MOST, AT_LEAST } tail_target;
static void tail_line(
    const char *grad, const bench_run *r, const bench_run *than, const char *to, int rounds, tail_target target) {
    double ratio[ROUNDS], x, ns = median(r, rounds) / (double)r->n * 1e9, gb = gb_s(r, median(r, rounds));
    int q, met;
    for (q = 0; q < rounds; q++)
        ratio[q] = r->t[q] / than->t[q];
    x = quantile(ratio, rounds, 0.5);
    met = target == AT_MOST ? x <= 1.15 : x >= 1.15;
    printf("  %-10s %-38s %10.3f %8.1f %7.3f %-4s ", grad, r->name, ns, gb, x, to);
    if (target == NO_TARGET)
        printf("-             ");
    else
        printf("%s %.2f %s", target == AT_MOST ? "<=" : ">=", 1.15, met ? "met   " : "MISSED");
    printf("  %.3f..%.3f, bests %.3f\n", quantile(ratio, rounds, 0.1), quantile(ratio, rounds, 0.9),
        shortest(r, rounds) / shortest(than, rounds));
    if (csv) fprintf(csv, "%s,%s,%.4f,%.2f,%.4f,%s\n", grad, r->name, ns, gb, x, to);
    fflush(stdout);
}

static void tail_rows(size_t n, amp_dtype grad) {
    const char *name = amp_dtype_name(grad);
    size_t bytes = n * (grad == AMP_F32 ? 30 : 28), i;
    int rounds = quick ? 5 : 11;
    bench_run r[3];
    tail t;
    step_state fused = make_state(on[0], n, AMP_F16, grad, AMP_MASTER_F32, AMP_F32);
    step_state plain = make_state(on[0], n, AMP_F32, grad, AMP_MASTER_F32, AMP_F32);
    t.gsize = amp_dtype_size(grad);
    t.w = (float *)pages(n * 4);
    t.m = (float *)pages(n * 4);
    t.v = (float *)pages(n * 4);
    t.g = pages(n * t.gsize);
    t.h = (uint16_t *)pages(n * 2);
    for (i = 0; i < n; i++)
        t.w[i] = t.m[i] = t.v[i] = 1.0f;
    r[0] = contestant("pass over the same bytes", run_pass, NULL, NULL, NULL, n, bytes, AMP_F32, AMP_F32);
    r[0].extra = &t;
    r[1] = contestant("amp_step", run_step, on[0], NULL, NULL, n, bytes, AMP_F32, AMP_F32);
    r[1].extra = &fused;
    r[2] = contestant("amp_step without copy, then amp_cast", run_two, on[0], t.h, NULL, n, bytes, AMP_F32, AMP_F32);
    r[2].extra = &plain;
    compete(r, 3, rounds, 0);
    tail_line(name, &r[0], &r[0], "pass", rounds, NO_TARGET);
    tail_line(name, &r[1], &r[0], "pass", rounds, AT_MOST);
    tail_line(name, &r[2], &r[1], "step", rounds, AT_LEAST);
    end_state(&fused);
    end_state(&plain);
    unpages(t.w, n * 4);
    unpages(t.m, n * 4);
    unpages(t.v, n * 4);
    unpages(t.g, n * t.gsize);
    unpages(t.h, n * 2);
}

static void tails(void) {
    size_t n = (size_t)(quick ? 8 : 32) << 20;
    make_source(AMP_F32, BIG);
    printf(
        "\nAdamW, %u M parameters, FP32 masters, FP16 model copy, one thread: ns per parameter\n", (unsigned)(n >> 20));
    printf("  %-10s %-38s %10s %8s %12s %8s\n", "gradient", "", "ns/param", "GB/s", "time/pass", "target");
    tail_rows(n, AMP_F16);
    tail_rows(n, AMP_F32);
}

/* ---- bandwidth over size, as CSV and as an SVG chart ---- */

#define CURVES 7
#define POINTS 9 /* 4 KiB of floats, times 4 each, to 256 MiB */
static const struct curve_kind {
    const char *name, *colour;
    amp_dtype to, from;
} curve_kinds[CURVES] = {
    {"memcpy", "#B8B8B8", AMP_F32, AMP_F32},
    {"f32 to f16", "#D55E00", AMP_F16, AMP_F32},
    {"f16 to f32", "#0072B2", AMP_F32, AMP_F16},
    {"f32 to bf16", "#E69F00", AMP_BF16, AMP_F32},
    {"bf16 to f32", "#00B285", AMP_F32, AMP_BF16},
    {"f32 to f8e4m3", "#CC79A7", AMP_F8E4M3, AMP_F32},
    {"f8e4m3 to f32", "#56467D", AMP_F32, AMP_F8E4M3},
};

static void curve_chart(const char *path, double gb[CURVES][POINTS]) {
    chart_words w = {"amp_cast and memcpy, one thread", NULL, "size of the floats", "GB/s, read + written"};
    char labels[POINTS][24], finding[128];
    chart_line lines[CURVES];
    double least = gb[1][POINTS - 1], most = least;
    size_t n;
    int i, k;
    for (i = 0; i < CURVES; i++) {
        lines[i].name = curve_kinds[i].name;
        lines[i].colour = curve_kinds[i].colour;
        lines[i].y = gb[i];
        if (i && gb[i][POINTS - 1] < least) least = gb[i][POINTS - 1];
        if (i && gb[i][POINTS - 1] > most) most = gb[i][POINTS - 1];
    }
    for (k = 0, n = 1024; k < POINTS; k++, n *= 4)
        (void)size_text(n * 4, labels[k]);
    snprintf(finding, sizeof finding, "At %s, in memory: memcpy %.0f GB/s, casts %.0f to %.0f.", labels[POINTS - 1],
        gb[0][POINTS - 1], least, most);
    w.finding = finding;
    if (chart(path, &w, lines, CURVES, labels, POINTS)) puts("bench: the chart could not be written");
}

/* The chart of an older run: FILE.csv gives FILE.svg. */
static int curve_draw(const char *csv) {
    double gb[CURVES][POINTS], value;
    char line[128], path[512];
    const char *dot = strrchr(csv, '.');
    int i, k, rows = 0;
    FILE *f = fopen(csv, "r");
    if (!f || !dot) {
        fprintf(stderr, "bench: %s: cannot be read\n", csv);
        return 1;
    }
    while (fgets(line, sizeof line, f)) {
        i = rows / POINTS;
        k = rows % POINTS;
        if (rows >= CURVES * POINTS || strncmp(line, curve_kinds[i].name, strcspn(line, ","))) break;
        if (sscanf(strchr(line, ',') ? strchr(line, ',') : "", ",%*d,%lf", &value) != 1) break;
        gb[i][k] = value;
        rows++;
    }
    fclose(f);
    if (rows != CURVES * POINTS) {
        fprintf(stderr, "bench: %s: line %d is not one of --curve\n", csv, rows + 1);
        return 1;
    }
    snprintf(path, sizeof path, "%.*s.svg", (int)(dot - csv), csv);
    curve_chart(path, gb);
    return 0;
}

static void curve(const char *out) {
    const struct curve_kind *c = curve_kinds;
    double gb[CURVES][POINTS];
    char path[512], text[24];
    FILE *f;
    size_t n;
    int i, k;
    printf("\nGB/s over size (of the floats), path %s\n  %-14s", path_name[best], "");
    for (k = 0, n = 1024; k < POINTS; k++, n *= 4)
        printf("%9s", size_text(n * 4, text));
    for (i = 0; i < CURVES; i++) {
        printf("\n  %-14s", c[i].name);
        for (k = 0, n = 1024; k < POINTS; k++, n *= 4) {
            size_t bytes = n * (i ? amp_dtype_size(c[i].to) + amp_dtype_size(c[i].from) : 6);
            bench_run r =
                contestant(c[i].name, i ? run_cast : run_memcpy, on[0], dst, src, n, bytes, c[i].to, c[i].from);
            make_source(i ? c[i].from : AMP_F32, n);
            compete(&r, 1, quick ? 3 : 11, n > (size_t)1 << 22 ? 0 : 2e-4);
            gb[i][k] = (double)bytes * 1e-9 / quantile(r.t, quick ? 3 : 11, 0.5);
            printf("%9.1f", gb[i][k]);
            fflush(stdout);
        }
    }
    printf("\n");
    if (!out) return;
    snprintf(path, sizeof path, "%s/curve.csv", out);
    f = fopen(path, "w");
    if (f) {
        for (i = 0; i < CURVES; i++)
            for (k = 0, n = 1024; k < POINTS; k++, n *= 4)
                fprintf(f, "%s,%lu,%.2f\n", c[i].name, (unsigned long)(n * 4), gb[i][k]);
        fclose(f);
    }
    snprintf(path, sizeof path, "%s/curve.svg", out);
    curve_chart(path, gb);
}

/* ---- products ---- */

typedef void (*sgemm_fn)(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda,
    const float *b, int ldb, float beta, float *c, int ldc);
typedef void (*sgemv_fn)(int order, int trans, int m, int n, float alpha, const float *a, int lda, const float *x,
    int incx, float beta, float *y, int incy);
static sgemv_fn sgemv;
static sgemm_fn find_sgemm(char *name, size_t room) { /* cblas_sgemm of an OpenBLAS with one thread, or NULL */
    sgemm_fn fn = NULL;
#if defined(__unix__)
    static const char *const files[] = {"libopenblas.so.0", "libblas.so.3"};
    size_t i;
    /* its best kernels, whatever the environment says and also on CPUs newer than itself */
    if (best == AMP_SIMD_AVX512)
        (void)setenv("OPENBLAS_CORETYPE", "SkylakeX", 1);
    else
        (void)unsetenv("OPENBLAS_CORETYPE");
    (void)unsetenv("OPENBLAS_L2_SIZE");
    for (i = 0; i < 2 && !fn; i++) {
        void *h = dlopen(files[i], RTLD_NOW | RTLD_LOCAL), *f, *g;
        char *(*config)(void), *(*core)(void);
        void (*threads)(int);
        if (!h) continue;
        f = dlsym(h, "openblas_set_num_threads");
        if (f) {
            memcpy(&threads, &f, sizeof f);
            threads(1);
        }
        g = dlsym(h, "cblas_sgemv");
        if (g) memcpy(&sgemv, &g, sizeof g);
        g = dlsym(h, "cblas_sgemm");
        if (g) memcpy(&fn, &g, sizeof g);
        snprintf(name, room, "%s", files[i]);
        f = dlsym(h, "openblas_get_config");
        g = dlsym(h, "openblas_get_corename");
        if (f && g) {
            memcpy(&config, &f, sizeof f);
            memcpy(&core, &g, sizeof g);
            snprintf(name, room, "%.60s, kernels for %.30s", config(), core());
        }
    }
#endif
    return fn;
}
typedef struct gemm_case {
    amp_gemm_desc d;
    sgemm_fn sgemm;
    const float *fa, *fb;
    float *fc;
} gemm_case;
static void run_gemm(const bench_run *r) {
    const gemm_case *g = (const gemm_case *)r->extra;
    if (amp_gemm(r->ctx, &g->d) != AMP_OK) wrong = 1;
}
static void run_sgemm(const bench_run *r) {
    const gemm_case *g = (const gemm_case *)r->extra;
    int m = (int)g->d.m, n = (int)g->d.n, k = (int)g->d.k;
    g->sgemm(101, 111, g->d.trans_b ? 112 : 111, m, n, k, 1.0f, g->fa, k, g->fb, g->d.trans_b ? k : n, 0.0f, g->fc, n);
}
#if defined(AMPI_X86)
#  define PEAK(name, target_, V, SET, FMA, C) /* r->n multiply-adds in 10 chains */ \
    __attribute__((target(target_))) static void name(const bench_run *r) { \
        V x = SET(0.5f), y = SET(0.25f), a0 = x, a1 = x, a2 = x, a3 = x, a4 = x, a5 = x, a6 = x, a7 = x, a8 = x, \
          a9 = x; \
        size_t i; \
        for (i = 0; i < r->n; i += 10 * sizeof(V) / 4) { \
            a0 = FMA(x, y, a0); \
            a1 = FMA(x, y, a1); \
            a2 = FMA(x, y, a2); \
            a3 = FMA(x, y, a3); \
            a4 = FMA(x, y, a4); \
            a5 = FMA(x, y, a5); \
            a6 = FMA(x, y, a6); \
            a7 = FMA(x, y, a7); \
            a8 = FMA(x, y, a8); \
            a9 = FMA(x, y, a9); \
            __asm__ volatile("" \
                : "+" C(a0), "+" C(a1), "+" C(a2), "+" C(a3), "+" C(a4), "+" C(a5), "+" C(a6), "+" C(a7), "+" C(a8), \
                "+" C(a9)); \
        } \
    }
PEAK(peak_256, "avx2,fma", __m256, _mm256_set1_ps, _mm256_fmadd_ps, "x")
PEAK(peak_512, "avx512f", __m512, _mm512_set1_ps, _mm512_fmadd_ps, "v")
#endif

/* |d - exact| / |exact|, 2-norms over a sample of elements, operands as stored */
static double gemm_error(const gemm_case *g) {
    const amp_gemm_desc *d = &g->d;
    double e2 = 0, x2 = 0;
    size_t s, k;
    for (s = 0; s < 400; s++) {
        size_t i = amp_random(3, 1, s) % d->m, j = amp_random(3, 2, s) % d->n;
        double exact = 0, got = (double)amp_load(d->d.data, d->d.dtype, i * d->n + j);
        for (k = 0; k < d->k; k++) {
            float a = amp_load(d->a.data, d->a.dtype, i * d->k + k);
            float b = amp_load(d->b.data, d->b.dtype, d->trans_b ? j * d->k + k : k * d->n + j);
            exact += (double)a * (double)b;
        }
        e2 += (got - exact) * (got - exact);
        x2 += exact * exact;
    }
    return sqrt(e2 / x2);
}

static void gemm_name(char work[64], const amp_gemm_desc *d) {
    snprintf(work, 64, "%s %lu x %lu x %lu%s", amp_dtype_name(d->a.dtype), (unsigned long)d->m, (unsigned long)d->n,
        (unsigned long)d->k, d->trans_b ? " w^T" : "");
}

/* d = a b with a of m x k and b of k x n or, transposed, n x k. Float operands lie in src, those of dtype t in dst, d
   in copy with BLAS's result after it. */
static void gemm_operands(gemm_case *g, size_t m, size_t n, size_t k, amp_dtype t, uint32_t trans_b) {
    size_t big = m * k > k * n ? m * k : k * n;
    float *fa = (float *)(void *)src, *fb = fa + big;
    memset(g, 0, sizeof *g);
    fill(fa, 2 * big);
    g->d.m = m;
    g->d.n = n;
    g->d.k = k;
    g->d.trans_b = trans_b;
    g->d.a = amp_arr(dst, t);
    g->d.b = amp_arr(dst + big * 4, t);
    g->d.d = amp_arr(copy, AMP_F32);
    g->fa = fa;
    g->fb = fb;
    g->fc = (float *)(void *)(copy + m * n * 4);
    if (amp_cast(on[0], g->d.a, amp_arr(fa, AMP_F32), m * k, NULL) != AMP_OK) wrong = 1;
    if (amp_cast(on[0], g->d.b, amp_arr(fb, AMP_F32), k * n, NULL) != AMP_OK) wrong = 1;
}

static double ratio_of(const bench_run *r, const bench_run *than, int rounds) { /* 0 without one to compare with */
    double ratio[ROUNDS];
    int q;
    if (!than) return 0;
    for (q = 0; q < rounds; q++)
        ratio[q] = than->t[q] / r->t[q];
    return quantile(ratio, rounds, 0.5);
}

/* A line: r beside sgemm and beside the peak of its path, each NULL where it is missing. */
static void gemm_line(
    const gemm_case *g, const bench_run *r, const bench_run *blas, const bench_run *peak, int rounds, double target) {
    double flop = 2.0 * (double)g->d.m * (double)g->d.n * (double)g->d.k, gf = flop * 1e-9 / median(r, rounds);
    double of_peak = ratio_of(r, peak, rounds), x = ratio_of(r, blas, rounds), error, bests;
    double blas_gf = blas ? flop * 1e-9 / median(blas, rounds) : 0;
    const char *anchor = "sgemm";
    const bench_run *to = blas;
    char work[64];
    r->fn(r);
    error = gemm_error(g);
    if (error > 1e-6) wrong = 1;
    if (!strcmp(r->name, "avx2") && g->d.m >= 512) { /* compared with what AVX2 can do, whatever BLAS uses */
        anchor = "peak";
        to = peak;
        x = of_peak;
        target = 0.65;
    }
    bests = to ? shortest(to, rounds) / shortest(r, rounds) : 0;
    gemm_name(work, &g->d);
    printf("  %-30s %-8s %8.1f %9.1f %6.2f %8.3f %-6s %6.3f ", work, r->name, gf, blas_gf, of_peak, x, anchor, bests);
    if (target > 0)
        printf("%6.2f %s", target, x >= target ? "met   " : "MISSED");
    else
        printf("%6s %6s", "-", "");
    printf("  %.1e%s\n", error, error > 1e-6 ? " WRONG" : "");
    if (csv)
        fprintf(csv, "%s,%s,%.2f,%.2f,%.3f,%s,%.4f,%.2f,%.2e\n", work, r->name, gf, blas_gf, of_peak, anchor, x, target,
            error);
    fflush(stdout);
}

static void gemm_row(size_t m, size_t n, size_t k, amp_dtype t, uint32_t trans_b, double target, sgemm_fn sgemm) {
    static gemm_case g;
    bench_run r[MAX_RUNS], *blas = NULL, *peak[PATHS] = {NULL, NULL, NULL, NULL, NULL, NULL}, *ours[PATHS];
    double flop = 2.0 * (double)m * (double)n * (double)k;
    int c = 0, p, rounds = flop > 4e9 ? 9 : 15;
    if (quick) rounds = 5;
    gemm_operands(&g, m, n, k, t, trans_b);
    if (sgemm) {
        g.sgemm = sgemm;
        blas = &r[c++];
        *blas = contestant("sgemm", run_sgemm, NULL, NULL, NULL, 0, 0, AMP_F32, AMP_F32);
        blas->extra = &g;
    }
#if defined(AMPI_X86)
    if (on[AMP_SIMD_AVX2]) {
        peak[AMP_SIMD_AVX2] = &r[c++];
        *peak[AMP_SIMD_AVX2] = contestant("peak", peak_256, NULL, NULL, NULL, (size_t)(flop / 2), 0, AMP_F32, AMP_F32);
    }
    if (on[AMP_SIMD_AVX512]) {
        peak[AMP_SIMD_AVX512] = &r[c++];
        *peak[AMP_SIMD_AVX512] =
            contestant("peak", peak_512, NULL, NULL, NULL, (size_t)(flop / 2), 0, AMP_F32, AMP_F32);
    }
#endif
    for (p = AMP_SIMD_SCALAR; p < PATHS; p++) {
        int too_slow = flop > 3e8 && p <= AMP_SIMD_SSE2;
        ours[p] = NULL;
        if (!on[p] || too_slow) continue;
        ours[p] = &r[c++];
        *ours[p] = contestant(path_name[p], run_gemm, on[p], NULL, NULL, 0, 0, AMP_F32, t);
        ours[p]->extra = &g;
    }
    compete(r, c, rounds, flop > 1e9 ? 0 : 2e-3);
    for (p = AMP_SIMD_SCALAR; p < PATHS; p++)
        if (ours[p]) gemm_line(&g, ours[p], blas, peak[p], rounds, p == (int)best ? target : 0);
}

/* Matrix times vector: bound by reading the matrix once. Anchors: a plain read of its bytes, and OpenBLAS's sgemv of as
   many floats. */
static void run_sgemv(const bench_run *r) {
    const gemm_case *g = (const gemm_case *)r->extra;
    int n = (int)g->d.n, k = (int)g->d.k; /* y[n] = w[n][k] x, or b[k][n]^T x */
    if (g->d.trans_b)
        sgemv(101, 111, n, k, 1.0f, g->fb, k, g->fa, 1, 0.0f, g->fc, 1);
    else
        sgemv(101, 112, k, n, 1.0f, g->fb, n, g->fa, 1, 0.0f, g->fc, 1);
}
static void gemv_row(size_t n, size_t k, amp_dtype t, uint32_t trans_b) {
    static gemm_case g;
    bench_run r[MAX_RUNS];
    size_t bytes = n * k * amp_dtype_size(t);
    int c = 0, p, first, rounds = quick ? 5 : 15;
    char work[64];
    gemm_operands(&g, 1, n, k, t, trans_b);
    gemm_name(work, &g.d);
    r[c++] = contestant("plain read", run_read, NULL, NULL, g.d.b.data, 0, bytes, AMP_F32, AMP_F32);
    if (sgemv) {
        r[c] = contestant("sgemv", run_sgemv, NULL, NULL, NULL, 0, bytes, AMP_F32, AMP_F32);
        r[c++].extra = &g;
    }
    first = c;
    for (p = AMP_SIMD_SCALAR; p < PATHS; p++) {
        if (!on[p]) continue;
        r[c] = contestant(path_name[p], run_gemm, on[p], NULL, NULL, 0, bytes, AMP_F32, t);
        r[c].extra = &g;
        r[c].fn(&r[c]);
        if (gemm_error(&g) > 1e-6) {
            printf("WRONG: %s\n", path_name[p]);
            wrong = 1;
        }
        c++;
    }
    compete(r, c, rounds, slice_for(bytes));
    for (p = first; p < c; p++)
        line(work, r[p].name, bytes, &r[p], &r[0], 1, rounds, 0);
    for (p = first; p < c && sgemv; p++)
        line(work, r[p].name, bytes, &r[p], &r[1], 1, rounds, 0);
}
/* AMP_GEMM_ORDERED beside the same product without it, on every path. */
static void run_ordered(const bench_run *r) {
    amp_gemm_desc d = ((const gemm_case *)r->extra)->d;
    d.flags = AMP_GEMM_ORDERED;
    if (amp_gemm(r->ctx, &d) != AMP_OK) wrong = 1;
}
static void ordered_row(size_t m, size_t n, size_t k, amp_dtype t, uint32_t trans_b) {
    static gemm_case g;
    bench_run r[MAX_RUNS];
    double flop = 2.0 * (double)m * (double)n * (double)k;
    int c = 0, p, i, rounds = quick ? 5 : 15;
    char work[64];
    gemm_operands(&g, m, n, k, t, trans_b);
    gemm_name(work, &g.d);
    for (p = AMP_SIMD_SCALAR; p < PATHS; p++) {
        if (!on[p]) continue;
        r[c] = contestant(path_name[p], run_gemm, on[p], NULL, NULL, 0, 0, AMP_F32, t);
        r[c++].extra = &g;
        r[c] = contestant(path_name[p], run_ordered, on[p], NULL, NULL, 0, 0, AMP_F32, t);
        r[c].extra = &g;
        r[c].fn(&r[c]);
        if (gemm_error(&g) > 1e-6) {
            printf("WRONG: %s in the defined order\n", path_name[p]);
            wrong = 1;
        }
        c++;
    }
    compete(r, c, rounds, 2e-3);
    for (i = 0; i < c; i += 2) {
        double x = ratio_of(&r[i], &r[i + 1], rounds);
        printf("  %-30s %-8s %8.1f %9.1f %8.2f\n", work, r[i].name, flop * 1e-9 / median(&r[i], rounds),
            flop * 1e-9 / median(&r[i + 1], rounds), x);
        if (csv) fprintf(csv, "%s,%s,,,,ordered takes,%.3f,,\n", work, r[i].name, x);
    }
    fflush(stdout);
}
static void ordered_products(void) {
    printf("\nThe defined order (AMP_GEMM_ORDERED) beside the usual one\n");
    printf("  %-30s %-8s %8s %9s %8s\n", "m x n x k", "path", "GFLOP/s", "ordered", "times");
    ordered_row(256, 256, 256, AMP_F16, 1);
    ordered_row(256, 256, 256, AMP_BF16, 1);
    ordered_row(64, 512, 784, AMP_F16, 1);
    ordered_row(64, 128, 256, AMP_F32, 1);
    ordered_row(4, 1024, 1024, AMP_F16, 1);
    ordered_row(1, 1024, 1024, AMP_F16, 1);
    ordered_row(1, 1024, 1024, AMP_F16, 0);
    ordered_row(1, 1024, 1024, AMP_F32, 1);
    ordered_row(1, 1024, 1024, AMP_F32, 0);
}
static void products(void) {
    char name[128] = "none: install libopenblas0-pthread to compare";
    sgemm_fn sgemm = find_sgemm(name, sizeof name);
    printf("\nProducts, D in FP32, packing included, one thread. "
           "/peak: of multiply-adds alone at this path's width. BLAS: %s\n",
        name);
    printf("  %-30s %-8s %8s %9s %6s %8s %-6s %6s %6s %6s  %s\n", "m x n x k", "path", "GFLOP/s", "sgemm", "/peak",
        "ratio", "to", "bests", "target", "", "error");
    gemm_row(512, 512, 512, AMP_F16, 0, 1.0, sgemm);
    gemm_row(1024, 1024, 1024, AMP_F16, 0, 1.0, sgemm);
    gemm_row(2048, 2048, 2048, AMP_F16, 0, 0.88, sgemm);
    gemm_row(1024, 1024, 1024, AMP_F32, 0, 1.0, sgemm);
    gemm_row(1024, 1024, 1024, AMP_BF16, 0, 1.0, sgemm);
    gemm_row(1024, 1024, 1024, AMP_F8E4M3, 1, 1.0, sgemm);
    gemm_row(1024, 2304, 768, AMP_F16, 1, 1.0, sgemm); /* GPT-2: qkv, up, down */
    gemm_row(1024, 3072, 768, AMP_F16, 1, 1.0, sgemm);
    gemm_row(1024, 768, 3072, AMP_F16, 1, 1.0, sgemm);
    gemm_row(128, 128, 128, AMP_F16, 0, 0, sgemm);
    gemm_row(64, 512, 784, AMP_F16, 1, 0, sgemm);
    gemm_row(8, 768, 768, AMP_F16, 1, 0, sgemm);
    head("One row times a matrix (GB/s of the matrix; anchors: a plain read of its bytes, "
         "then sgemv of as many floats, by time)");
    gemv_row(768, 768, AMP_F16, 1);
    gemv_row(4096, 4096, AMP_F16, 1);
    gemv_row(4096, 4096, AMP_F16, 0);
    gemv_row(4096, 4096, AMP_F32, 1);
    gemv_row(4096, 4096, AMP_F32, 0);
    gemv_row(4096, 4096, AMP_F8E4M3, 1);
    ordered_products();
}

/* ---- what one call costs: nanoseconds ---- */

typedef struct ns_row { /* fn(n) does a thing n times */
    const char *work;
    void (*fn)(size_t n);
    double most; /* the target; 0: none */
    double t[ROUNDS];
} ns_row;

/* All rows in turn, many rounds; medians. */
static void ns_rows(const char *title, ns_row *rows, size_t n_rows, size_t n) {
    int rounds = quick ? 5 : 31, k;
    size_t i;
    for (k = -1; k < rounds; k++) /* one round to warm up */
        for (i = 0; i < n_rows; i++) {
            double begin = now();
            rows[i].fn(n);
            if (k >= 0) rows[i].t[k] = (now() - begin) / (double)n * 1e9;
        }
    printf("\n%s\n", title);
    for (i = 0; i < n_rows; i++) {
        double m = quantile(rows[i].t, rounds, 0.5);
        printf("  %-64s %8.2f ns", rows[i].work, m);
        if (rows[i].most > 0) printf("   at most %.1f: %s", rows[i].most, m <= rows[i].most ? "met" : "MISSED");
        printf("\n");
        if (csv) fprintf(csv, "%s,ns,%lu,%.3f,,,,,,\n", rows[i].work, (unsigned long)n, m);
    }
}

static void take_and_leave(size_t n) {
    size_t i;
    for (i = 0; i < n; i++) {
        if (amp_verb_begin(on[0], "bench") != AMP_OK) wrong = 1;
        if (amp_verb_end(on[0], AMP_OK) != AMP_OK) wrong = 1;
    }
}
static void two_atomics(size_t n) {
    static uint32_t word;
    size_t i;
    for (i = 0; i < n; i++) {
        uint32_t none = 0;
        if (!__atomic_compare_exchange_n(&word, &none, 1u, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) wrong = 1;
        if (__atomic_exchange_n(&word, 0u, __ATOMIC_RELEASE) != 1u) wrong = 1;
    }
}
static void empty_cast(size_t n) {
    size_t i;
    for (i = 0; i < n; i++)
        if (amp_cast(on[0], amp_arr(dst, AMP_F16), amp_arr(src, AMP_F32), 0, NULL) != AMP_OK) wrong = 1;
}
static void calls(void) {
    ns_row rows[] = {{"a verb's share: take the context, give it back", take_and_leave, 8.0, {0}},
        {"two uncontended atomic operations", two_atomics, 0, {0}},
        {"amp_cast of no elements, all of it", empty_cast, 0, {0}}};
    ns_rows("One thread at a time: what the check costs each verb", rows, sizeof rows / sizeof rows[0], 1000000);
}

/* ---- one element at a time: half = half * 0.5 + 0.25, n elements ---- */

static uint16_t halves[1 << 14];
static amp_dtype half_type = AMP_F16;
static void seen(void *p) { __asm__ volatile("" : : "r"(p) : "memory"); } /* the loops may not go */
static void each_element(size_t n) {
    size_t i, m = sizeof halves / sizeof halves[0];
    for (; n >= m; n -= m) {
        for (i = 0; i < m; i++)
            amp_store(halves, half_type, i, amp_load(halves, half_type, i) * 0.5f + 0.25f);
        seen(halves);
    }
}
static void each_f16(size_t n) {
    amp_f16 *h = (amp_f16 *)(void *)halves;
    size_t i, m = sizeof halves / sizeof halves[0];
    for (; n >= m; n -= m) {
        for (i = 0; i < m; i++)
            h[i] = amp_f16_from_f32(amp_f32_from_f16(h[i]) * 0.5f + 0.25f);
        seen(halves);
    }
}
static void each_by_definition(size_t n) { /* what amp_load and amp_store were: every number takes the long way */
    size_t i, m = sizeof halves / sizeof halves[0];
    for (; n >= m; n -= m) {
        for (i = 0; i < m; i++) {
            float x = ampi_float(ampi_decode_any(halves[i], half_type)) * 0.5f + 0.25f;
            halves[i] = (uint16_t)ampi_encode_any(ampi_bits(x), half_type, AMP_NEAREST, 0, 0);
        }
        seen(halves);
    }
}
static void rows_by_cast(size_t n) { /* rows of 1,024 to float scratch and back */
    static float row[1024];
    size_t i, k, m = sizeof halves / sizeof halves[0];
    for (; n >= m; n -= m) {
        for (k = 0; k < m; k += 1024) {
            amp_array h = amp_arr(halves + k, half_type), x = amp_arr(row, AMP_F32);
            if (amp_cast(on[0], x, h, 1024, NULL) != AMP_OK) wrong = 1;
            for (i = 0; i < 1024; i++)
                row[i] = row[i] * 0.5f + 0.25f;
            if (amp_cast(on[0], h, x, 1024, NULL) != AMP_OK) wrong = 1;
        }
        seen(halves);
    }
}
static void elements(void) {
    static const amp_dtype types[] = {AMP_F16, AMP_BF16};
    size_t d, i;
    for (d = 0; d < 2; d++) {
        ns_row rows[] = {{"the definitions, element by element", each_by_definition, 0, {0}},
            {"amp_load and amp_store", each_element, 0, {0}}, {"a row by amp_cast, and back", rows_by_cast, 0, {0}},
            {"amp_f32_from_f16 and amp_f16_from_f32", each_f16, 0, {0}}};
        half_type = types[d];
        for (i = 0; i < sizeof halves / sizeof halves[0]; i++)
            amp_store(halves, half_type, i, (float)(i % 1000) / 700.0f - 0.6f);
        ns_rows(d ? "A loop of one's own over BF16: x = x * 0.5 + 0.25, per element"
                  : "A loop of one's own over F16: x = x * 0.5 + 0.25, per element",
            rows, d ? 3 : 4, (size_t)1 << 18);
    }
}

static void open_paths(void) {
    int p;
    for (p = 0; p < PATHS; p++) {
        amp_cpu_desc d = AMP_ZERO;
        d.threads = 1;
        d.simd = (amp_simd)p;
        if (amp_cpu_create(&on[p], &d) != AMP_OK) on[p] = NULL;
    }
    best = ampi_cpu_of(on[AMP_SIMD_AUTO])->k->simd;
    for (p = 1; p < PATHS; p++)
        if (!on[p]) printf("no %s here: its rows are skipped\n", path_name[p]);
}

static const char *compiler(void) {
    static char text[32];
#if defined(__clang__)
    snprintf(text, sizeof text, "clang %d.%d", __clang_major__, __clang_minor__);
#elif defined(__GNUC__)
    snprintf(text, sizeof text, "gcc %d.%d", __GNUC__, __GNUC_MINOR__);
#else
    snprintf(text, sizeof text, "an unknown compiler");
#endif
    return text;
}

int main(int argc, char **argv) {
    const char *out = NULL, *file = "bench.csv", *part = NULL;
    double t;
    int i, gemm = 0, curves = 0, tail_only = 0;
    for (i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--out") && i + 1 < argc)
            out = argv[++i];
        else if (!strcmp(argv[i], "--part") && i + 1 < argc)
            part = argv[++i];
        else if (!strcmp(argv[i], "--quick"))
            quick = 1;
        else if (!strcmp(argv[i], "--gemm"))
            gemm = 1;
        else if (!strcmp(argv[i], "--curve"))
            curves = 1;
        else if (!strcmp(argv[i], "--draw") && i + 1 < argc)
            return curve_draw(argv[i + 1]);
        else if (!strcmp(argv[i], "--step"))
            tail_only = 1;
        else if (!strcmp(argv[i], "--cpu-time"))
            clock_used = CLOCK_THREAD_CPUTIME_ID;
        else {
            fprintf(stderr,
                "usage: bench [--gemm | --curve | --step | --part casts|checks|functions|steps|calls|elements] "
                "[--quick] [--cpu-time] [--out DIR] [--draw FILE.csv]\n");
            return 2;
        }
    }
    t = now();
    if (gemm) file = "gemm.csv";
    if (tail_only) file = "step.csv";
    if (out && !curves) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", out, file);
        csv = fopen(path, "w");
    }
    if (csv && gemm)
        fprintf(csv, "work,path,GFLOP/s,sgemm,share of peak,anchor,ratio,target,error\n");
    else if (csv && tail_only)
        fprintf(csv, "gradient,work,ns per parameter,GB/s,ratio,to\n");
    else if (csv)
        fprintf(csv, "work,path,bytes,GB/s,anchor,anchor GB/s,ratio,target,ratio p10,ratio p90\n");

    open_paths();
    src = (char *)pages(BIG * 4);
    dst = (char *)pages(BIG * 4);
    copy = (char *)pages(BIG * 4);
    fill((float *)(void *)src, BIG);
    printf("amp %d.%d.%d, %s; compiled by %s\n", AMP_VERSION_MAJOR, AMP_VERSION_MINOR, AMP_VERSION_PATCH,
        amp_ctx_name(on[0]), compiler());
    if (gemm)
        products();
    else if (curves)
        curve(out);
    else if (tail_only)
        tails();
    else {
        if (!part || !strcmp(part, "casts")) conversions();
        if (!part || !strcmp(part, "checks")) checks();
        if (!part || !strcmp(part, "functions")) functions();
        if (!part || !strcmp(part, "steps")) steps();
        if (!part || !strcmp(part, "calls")) calls();
        if (!part || !strcmp(part, "elements")) elements();
    }
    if (csv) fclose(csv);
    printf("\n%.0f seconds\n", now() - t);
    return wrong;
}
