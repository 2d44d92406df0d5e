/* peers_cpu.c - products, rows and casts beside OpenBLAS and beside the loops that they replace, in one process and one
   thread, and a loss in two threads beside one; make bench-peers. The contestants of a row take turns in each round; a
   ratio is the median over rounds of (theirs / ours): above 1 amp is faster, then its 10 and 90 % quantiles.
   usage: peers_cpu avx2|avx512 [ROWS] with OPENBLAS=path of its library (none: its rows are skipped); ROWS: only rows
   whose name has this in it. */
#define _POSIX_C_SOURCE 200809L
#define AMP_IMPLEMENTATION
#include "../amp.h"
#include "common.h"
#include "loops.h"
#include <dlfcn.h>

enum { MOST = 4096, TURNS = 15 };
typedef void (*sgemm_fn)(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda,
    const float *b, int ldb, float beta, float *c, int ldc);
typedef void (*sgemv_fn)(int order, int trans, int m, int n, float alpha, const float *a, int lda, const float *x,
    int incx, float beta, float *y, int incy);
static sgemm_fn sgemm;
static sgemv_fn sgemv;
static amp_ctx *ctx, *two_threads;
static float *x, *y, *z; /* MOST * MOST floats each */
static uint16_t *h;      /* x in a format of 16 bits */
static int is_native, wrong;
static const char *only = "";

typedef struct work {
    amp_gemm_desc d;
    size_t n;
    amp_dtype t;
} work;
typedef void (*run)(const work *w);

/* ---- contestants ---- */
static void amp_product(const work *w) { wrong |= amp_gemm(ctx, &w->d) != AMP_OK; }
static void amp_widening(const work *w) {
    wrong |= amp_cast(ctx, amp_arr(y, AMP_F32), amp_arr(h, w->t), w->n, NULL) != AMP_OK;
}
static void amp_narrowing(const work *w) {
    wrong |= amp_cast(ctx, amp_arr(h, w->t), amp_arr(x, AMP_F32), w->n, NULL) != AMP_OK;
}
static void amp_loss(amp_ctx *on, size_t rows, size_t classes) { /* h: labels, all 0 .. 9 */
    amp_xent_desc d = AMP_ZERO;
    d.rows = rows;
    d.classes = classes;
    d.logits = amp_arr(x, AMP_F32);
    d.dlogits = amp_arr(y, AMP_F32);
    d.labels8 = (const uint8_t *)h;
    d.row_loss = z;
    d.loss = z + d.rows;
    wrong |= amp_softmax_cross_entropy(on, &d) != AMP_OK;
}
static void loss_of_two(const work *w) {
    (void)w;
    amp_loss(two_threads, 512, 1000);
}
static void loss_of_one(const work *w) {
    (void)w;
    amp_loss(ctx, 512, 1000);
}
static void loss_of_ten(const work *w) {
    (void)w;
    amp_loss(ctx, 4096, 10);
}
static void blas_product(const work *w) {
    const int m = (int)w->d.m, n = (int)w->d.n, k = (int)w->d.k;
    sgemm(101, w->d.trans_a ? 112 : 111, w->d.trans_b ? 112 : 111, m, n, k, 1.0f, x, w->d.trans_a ? m : k, y,
        w->d.trans_b ? k : n, 0.0f, z, n);
}
static void blas_row(const work *w) {
    sgemv(101, 111, (int)w->d.n, (int)w->d.k, 1.0f, y, (int)w->d.k, x, 1, 0.0f, z, 1);
}
#define LOOP_OF(name, ...) \
    do { \
        if (is_native) \
            native_##name(__VA_ARGS__); \
        else \
            haswell_##name(__VA_ARGS__); \
    } while (0)
static void loop_row(const work *w) {
    if (w->t == AMP_F32) LOOP_OF(forward, y, x, z, w->d.n, w->d.k);
    if (w->t == AMP_F16) LOOP_OF(forward_f16, h, x, z, w->d.n, w->d.k);
    if (w->t == AMP_BF16) LOOP_OF(forward_bf16, h, x, z, w->d.n, w->d.k);
}
static void loop_outer(const work *w) { LOOP_OF(outer, x, y, z, w->d.m, w->d.n); }
static void loop_of_ten(const work *w) {
    (void)w;
    LOOP_OF(cross_entropy, x, (const uint8_t *)h, y, 4096, 10);
}
static void loop_widening(const work *w) {
    if (w->t == AMP_F16) LOOP_OF(widen_f16, h, y, w->n);
    if (w->t == AMP_BF16) LOOP_OF(widen_bf16, h, y, w->n);
}

static double seconds(run fn, const work *w, long calls) {
    double t = now();
    while (calls-- > 0)
        fn(w);
    return now() - t;
}
static void row(const char *name, const char *peer, run ours, run theirs, const work *w) {
    double us[TURNS], other[TURNS], ratio[TURNS], once;
    long calls;
    int i;
    if (!strstr(name, only)) return;
    ours(w);
    once = seconds(ours, w, 3) / 3;
    calls = once > 2e-3 ? 1 : (long)(2e-3 / once) + 1;
    if (theirs) theirs(w);
    for (i = 0; i < TURNS; i++) {
        us[i] = seconds(ours, w, calls) / (double)calls;
        other[i] = theirs ? seconds(theirs, w, calls) / (double)calls : 0;
        ratio[i] = other[i] / us[i];
    }
    printf("%-34s %10.3f us", name, quantile(us, TURNS, 0.5) * 1e6);
    if (theirs)
        printf("  %-9s %10.3f us %6.2f [%.2f, %.2f]", peer, quantile(other, TURNS, 0.5) * 1e6,
            quantile(ratio, TURNS, 0.5), quantile(ratio, TURNS, 0.1), quantile(ratio, TURNS, 0.9));
    printf("\n");
    fflush(stdout);
}

static void product(size_t m, size_t n, size_t k, amp_dtype t, uint32_t trans_b) {
    work w;
    char name[64];
    const char *of = amp_dtype_name(t);
    const int one_row = m == 1 && trans_b;
    memset(&w, 0, sizeof w);
    w.t = t;
    w.d.m = m;
    w.d.n = n;
    w.d.k = k;
    w.d.trans_b = trans_b;
    w.d.a = amp_arr(t == AMP_F32 ? (void *)x : (void *)(h + MOST * MOST), t);
    w.d.b = amp_arr(t == AMP_F32 ? (void *)y : (void *)h, t);
    w.d.d = amp_arr(z, AMP_F32);
    snprintf(name, sizeof name, "%s %lu x %lu x %lu%s", of, (unsigned long)m, (unsigned long)n, (unsigned long)k,
        trans_b ? " w^T" : "");
    if (t != AMP_F32) wrong |= amp_cast(ctx, w.d.b, amp_arr(y, AMP_F32), n * k, NULL) != AMP_OK;
    if (t != AMP_F32) wrong |= amp_cast(ctx, w.d.a, amp_arr(x, AMP_F32), m * k, NULL) != AMP_OK;
    if (sgemm && !one_row) row(name, "OpenBLAS", amp_product, blas_product, &w);
    if (sgemv && one_row && t == AMP_F32) row(name, "OpenBLAS", amp_product, blas_row, &w);
    if (one_row) row(name, "loop", amp_product, loop_row, &w);
    if (k == 1) row(name, "loop", amp_product, loop_outer, &w);
}
static void casts(size_t n) {
    static const amp_dtype of[2] = {AMP_F16, AMP_BF16};
    char name[64];
    work w;
    int i;
    memset(&w, 0, sizeof w);
    w.n = n;
    for (i = 0; i < 2; i++) {
        w.t = of[i];
        wrong |= amp_cast(ctx, amp_arr(h, w.t), amp_arr(x, AMP_F32), n, NULL) != AMP_OK;
        snprintf(name, sizeof name, "cast %s->f32, %lu", amp_dtype_name(w.t), (unsigned long)n);
        row(name, "loop", amp_widening, n >= 8 ? loop_widening : NULL, &w);
        snprintf(name, sizeof name, "cast f32->%s, %lu", amp_dtype_name(w.t), (unsigned long)n);
        row(name, "", amp_narrowing, NULL, &w);
    }
}

static void find_blas(void) {
    const char *file = getenv("OPENBLAS");
    void *lib, *f;
    void (*threads)(int);
    (void)setenv("OPENBLAS_CORETYPE", is_native ? "SkylakeX" : "Haswell", 1);
    lib = file ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!lib) {
        printf("OpenBLAS: skipped (OPENBLAS=its library)\n");
        return;
    }
    f = dlsym(lib, "scipy_openblas_set_num_threads");
    if (!f) f = dlsym(lib, "openblas_set_num_threads");
    if (f) memcpy(&threads, &f, sizeof f), threads(1);
    f = dlsym(lib, "scipy_cblas_sgemm");
    if (!f) f = dlsym(lib, "cblas_sgemm");
    if (f) memcpy(&sgemm, &f, sizeof f);
    f = dlsym(lib, "scipy_cblas_sgemv");
    if (!f) f = dlsym(lib, "cblas_sgemv");
    if (f) memcpy(&sgemv, &f, sizeof f);
}

/* By the clock on the wall. */
static void losses(amp_simd simd) {
    amp_cpu_desc two = AMP_ZERO;
    size_t i;
    work w;
    memset(&w, 0, sizeof w);
    two.threads = 2;
    two.simd = simd;
    wrong |= amp_cpu_create(&two_threads, &two) != AMP_OK;
    clock_used = CLOCK_MONOTONIC;
    for (i = 0; i < 4096; i++)
        ((uint8_t *)h)[i] = (uint8_t)(i % 10);
    row("loss 512 x 1000, two threads", "one", loss_of_two, loss_of_one, &w);
    clock_used = CLOCK_THREAD_CPUTIME_ID;
    row("loss 4096 x 10", "loop", loss_of_ten, loop_of_ten, &w);
    amp_ctx_destroy(two_threads);
}
int main(int argc, char **argv) {
    static const size_t cubes[] = {4, 8, 16, 32, 64, 128, 512, 1024, 2048};
    static const size_t few[][2] = {{68, 136}, {128, 256}, {512, 512}};
    static const size_t large[] = {768, 4096};
    static const amp_dtype of[3] = {AMP_F32, AMP_F16, AMP_BF16};
    amp_cpu_desc one = AMP_ZERO;
    size_t i, t;
    is_native = argc > 1 && !strcmp(argv[1], "avx512");
    if (argc > 2) only = argv[2];
    clock_used = CLOCK_THREAD_CPUTIME_ID;
    one.threads = 1;
    one.simd = is_native ? AMP_SIMD_AVX512 : AMP_SIMD_AVX2;
    if (amp_cpu_create(&ctx, &one) != AMP_OK) {
        printf("this machine has no %s: skipped\n", is_native ? "avx512" : "avx2");
        return 0;
    }
    x = (float *)malloc(MOST * MOST * 4);
    y = (float *)malloc(MOST * MOST * 4);
    z = (float *)malloc(MOST * MOST * 4);
    h = (uint16_t *)malloc(MOST * MOST * 4);
    if (!x || !y || !z || !h) return 2;
    fill_random(x, MOST * MOST, 1, 1.0f);
    fill_random(y, MOST * MOST, 2, 1.0f);
    find_blas();
    printf("%s; one thread, thread CPU time; ratio above 1: amp is faster\n", amp_ctx_name(ctx));
    for (i = 0; i < 5; i++) {
        product(cubes[i], cubes[i], cubes[i], AMP_F32, 0);
        product(cubes[i], cubes[i], cubes[i], AMP_F32, 1);
    }
    for (i = 0; i < 3; i++) {
        product(1, few[i][0], few[i][1], AMP_F32, 1);
        product(few[i][0], few[i][1], 1, AMP_F32, 0);
    }
    for (i = 0; i < 2; i++)
        for (t = 0; t < 3; t++)
            product(1, large[i], large[i], of[t], 1);
    losses(one.simd);
    casts(1);
    casts(4096);
    casts(1 << 17);
    casts(1 << 23);
    for (t = 0; t < 3; t++)
        for (i = 5; i < 9; i++)
            product(cubes[i], cubes[i], cubes[i], of[t], 1);
    if (wrong) printf("WRONG: a call failed\n");
    amp_ctx_destroy(ctx);
    return wrong;
}
