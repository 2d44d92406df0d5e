/* check_gpu.cu - what a GPU is asked first: a part of the page of `make check-gpu`, which a user sends in.

       check_gpu [--table FILE] [--facts FILE] [--peer COMMAND] [--once] [--tiny]

   The device and its clocks; the time of nine kernels beside the bound that was counted in their machine code
   (--table: tests/expected/sass.txt); how many products fell to the plain kernel; what only a GPU can answer; a
   training step, beside PyTorch's (--peer: a command that times it, see peers_gpu.py). Results are checked, times are
   reported, and --facts writes both for check-gpu.json. Exit status 1 if a result is wrong. --tiny: sizes that a test
   can afford; on the host runtime of the tests no time is told. --once: everything once, for a profiler. */
#include "../amp_cuda.cuh"
#include "../tests/facts.h"
#include "../tests/sass_bound.h"
#include "train.h"
#include <cublasLt.h>
#include <cuda_runtime.h>

#if defined(AMP_HOSTCUDA)
enum { CLOCKS = 0 };
#else
enum { CLOCKS = 1 };
#endif
enum { BLOCK = 256, TIMES = 9 };

static amp_ctx *ctx;
static cudaStream_t stream;
static cudaEvent_t before, after;
static gpu here;          /* this device */
static const char *as_of; /* whose rates it has */
static const char *table = "tests/expected/sass.txt";
static int tiny, once;
static int plain;           /* warnings or lines about the plain kernel */
static char last_plan[512]; /* how the last new product is made */
static char last_tune[512]; /* what tuning said last */

static void need(int ok, const char *what) {
    if (ok) return;
    printf("WRONG: %s: %s\n", what, ctx ? amp_last_error(ctx) : "");
    exit(1);
}
static void note(amp_log_level level, amp_status status, const char *text, void *user) {
    (void)level;
    (void)status;
    (void)user;
    if (strstr(text, " candidates ")) snprintf(last_tune, sizeof last_tune, "%s", text);
    if (!strstr(text, "amp_gemm: ")) return;
    snprintf(last_plan, sizeof last_plan, "%s", text);
    plain += strstr(text, "plain kernel") != NULL;
}
static int attribute(cudaDeviceAttr a) {
    int v = 0;
    return cudaDeviceGetAttribute(&v, a, 0) == cudaSuccess ? v : 0;
}

/* ---- time ---- */

typedef struct work { /* what is timed; fields as its function wants them */
    amp_status (*run)(const struct work *);
    amp_array x, y;
    amp_params *p;
    amp_scaler *s;
    const void *desc;
    size_t n;
} work;
static double seconds(const work *w) { /* of one call: the median of rounds; 0 where there is no clock */
    double t[TIMES];
    float ms = 0;
    int i, k, calls = 1, rounds = tiny || once ? 1 : TIMES;
    need(w->run(w) == AMP_OK, "a first call");
    for (i = 0; i < rounds; i++) {
        need(cudaEventRecord(before, stream) == cudaSuccess, "an event");
        for (k = 0; k < calls; k++)
            need(w->run(w) == AMP_OK, "a call");
        need(cudaEventRecord(after, stream) == cudaSuccess, "an event");
        need(cudaEventSynchronize(after) == cudaSuccess, "the device");
        need(cudaEventElapsedTime(&ms, before, after) == cudaSuccess, "an event");
        t[i] = (double)ms * 1e-3 / calls;
        if (i == 0 && CLOCKS && rounds > 1)
            while (calls < 4096 && t[0] * calls < 2e-3)
                calls *= 2;
        for (k = i; k > 0 && t[k] < t[k - 1]; k--) {
            double other = t[k];
            t[k] = t[k - 1];
            t[k - 1] = other;
        }
    }
    return CLOCKS ? t[rounds / 2] : 0.0;
}
/* A share or a time, or that there is no clock. */
static const char *told(char text[24], const char *format, double x) {
    if (x > 0 && x < 1e9)
        snprintf(text, 24, format, x);
    else
        snprintf(text, 24, "-");
    return text;
}

/* ---- arrays ---- */

/* n numbers of deviation 1; tiny ones, as many as not, where half is 1. */
static __global__ void k_fill(void *to, amp_dtype type, uint64_t n, float factor, int half) {
    uint64_t step = (uint64_t)gridDim.x * BLOCK, i;
    float small = type == AMP_F16 ? 1.5e-5f : 3e-39f;
    for (i = (uint64_t)blockIdx.x * BLOCK + threadIdx.x; i < n; i += step) {
        uint32_t w[4];
        float u;
        amp_philox(w, 5, 7, i);
        u = (float)(((double)w[0] + (double)w[1] - 4294967296.0) * 5.7031188e-10); /* sqrt(6) / 2^32 */
        amp_store(to, type, i, u * (half && (w[3] & 1u) ? small : factor));
    }
}
static void fill(amp_array a, float factor, int half) {
    cudaLaunchConfig_t config = AMP_ZERO;
    config.gridDim = dim3(tiny ? 2 : 2048);
    config.blockDim = dim3(BLOCK);
    config.stream = stream;
    need(
        cudaLaunchKernelEx(&config, k_fill, a.data, a.dtype, (uint64_t)a.count, factor, half) == cudaSuccess, "k_fill");
}
static amp_array make(amp_dtype t, size_t n) {
    void *p = NULL;
    need(amp_alloc(ctx, &p, n * amp_dtype_size(t) + 16, "check") == AMP_OK, "memory");
    return amp_arrn(p, t, n);
}
static amp_array filled(amp_dtype t, size_t n, float factor) {
    amp_array a = make(t, n);
    fill(a, factor, 0);
    return a;
}
static void drop(amp_array a) { need(amp_free(ctx, a.data) == AMP_OK, "amp_free"); }

/* ---- the device ---- */

static void about(void) {
    cudaDeviceProp p;
    int driver = 0, runtime = 0, bits, khz;
    char text[300];
    size_t i;
    need(cudaGetDeviceProperties(&p, 0) == cudaSuccess, "the device");
    (void)cudaDriverGetVersion(&driver);
    (void)cudaRuntimeGetVersion(&runtime);
    memset(&here, 0, sizeof here);
    for (i = 0; i < GPUS && !as_of; i++) {
        if (gpus[i].arch != 10 * p.major + p.minor) continue;
        here = gpus[i];
        as_of = gpus[i].name;
    }
    if (!as_of) {
        here = gpus[p.major == 8 || p.major == 12 ? 5 : 2]; /* few FP64 units, or many */
        as_of = here.name;
    }
    here.arch = 10 * p.major + p.minor;
    here.sms = p.multiProcessorCount;
    khz = attribute(cudaDevAttrMemoryClockRate);
    bits = attribute(cudaDevAttrGlobalMemoryBusWidth);
    if (attribute(cudaDevAttrClockRate)) here.ghz = attribute(cudaDevAttrClockRate) * 1e-6;
    if (khz && bits) here.gb_per_s = 2e-6 * khz * bits / 8;
    printf("device     %s, sm_%d, %d SMs, %.1f GiB; driver %d.%d, runtime %d.%d, cuBLASLt %lu, built with nvcc %d.%d\n",
        p.name, here.arch, here.sms, (double)p.totalGlobalMem / 1073741824.0, driver / 1000, driver % 1000 / 10,
        runtime / 1000, runtime % 1000 / 10, (unsigned long)cublasLtGetVersion(), CUDART_VERSION / 1000,
        CUDART_VERSION % 1000 / 10);
    fact("runs_on", CLOCKS ? "\"GPU\"" : "\"host runtime\"");
    fact("device", "{\"name\": %s, \"arch\": %d, \"sms\": %d, \"bytes\": %.0f, \"sm_ghz\": %.3f, \"gb_per_s\": %.0f}",
        fact_text(text, sizeof text, p.name), here.arch, here.sms, (double)p.totalGlobalMem, here.ghz, here.gb_per_s);
    fact("versions", "{\"amp\": \"%d.%d.%d\", \"driver\": %d, \"runtime\": %d, \"cublaslt\": %lu, \"headers\": %d}",
        AMP_VERSION_MAJOR, AMP_VERSION_MINOR, AMP_VERSION_PATCH, driver, runtime, (unsigned long)cublasLtGetVersion(),
        CUDART_VERSION);
    printf("clocks     SM %.3f GHz at most; memory %d MHz, %d bits: %.0f GB/s nominal; rates per SM as on %s\n",
        here.ghz, khz / 1000, bits, here.gb_per_s, as_of);
}

/* ---- nine kernels ---- */

static amp_status run_cast(const work *w) { return amp_cast(ctx, w->y, w->x, w->n, NULL); }
static amp_status run_unscale(const work *w) { return amp_unscale(w->s, &w->y, NULL, &w->x, 1); }
static amp_status run_inspect(const work *w) {
    amp_status s = amp_inspect(w->p, w->s, (const amp_step_desc *)w->desc);
    return s == AMP_OK ? amp_scaler_update(w->s) : s;
}
static amp_status run_step(const work *w) { return amp_step(w->p, w->s, (const amp_step_desc *)w->desc); }
static amp_status run_xent(const work *w) { return amp_softmax_cross_entropy(ctx, (const amp_xent_desc *)w->desc); }
static amp_status run_backward(const work *w) { return amp_linear_backward(ctx, (const amp_linear_desc *)w->desc); }
static amp_status run_dropout(const work *w) {
    amp_dropout_desc d = AMP_ZERO;
    d.p = 0.1f;
    d.count = w->n;
    d.x = w->x;
    d.y = w->y;
    d.rng.seed = 3;
    return amp_dropout(ctx, d);
}
static amp_status run_copy(const work *w) {
    return cudaMemcpyAsync(w->y.data, w->x.data, w->n, cudaMemcpyDeviceToDevice, stream) == cudaSuccess ? AMP_OK
                                                                                                        : AMP_ERR_CUDA;
}

/* One line: counted, and the times with normal and with half subnormal data, which x has. */
static void kernel_line(const char *name, work *w, double bytes, double extra) {
    double pipe[SASS_PIPES], all = sass_recorded(table, here.arch, name, "normal", pipe), bound, t[2];
    int own = all > 0, half;
    const char *limit = "";
    char a[24], b[24], c[24], d[24], n[3][32];
    if (!own) all = sass_recorded(table, here.fp64_shared ? 86 : 90, name, "normal", pipe);
    right(all > 0, "a row of tests/expected/sass.txt");
    bound = all > 0 ? sass_bound(&here, pipe, all, bytes, &limit) : 0;
    for (half = 0; half < 2; half++) {
        fill(w->x, 1.0f, half);
        t[half] = seconds(w);
        if (t[half] > extra) t[half] -= extra;
    }
    bytes *= (double)w->n;
    printf("  %-22s %5.0f MB  %5s %-5s%s  %9s  %6s  %6s\n", name, bytes * 1e-6, told(a, "%.2f", bound), limit,
        own ? " " : "*", told(b, "%.0f", bytes * 1e-9 / t[0]), told(c, "%.2f", bytes * 1e-9 / t[0] / here.gb_per_s),
        told(d, "%.2f", t[0] / t[1]));
    fact("kernels[]",
        "{\"name\": \"%s\", \"bound\": %.3f, \"limit\": \"%s\", \"own_code\": %s, \"gb_per_s\": %s, \"share\": %s, "
        "\"half_subnormal\": %s}",
        name, bound, limit, own ? "true" : "false", fact_number(n[0], bytes * 1e-9 / t[0]),
        fact_number(n[1], bytes * 1e-9 / t[0] / here.gb_per_s), fact_number(n[2], t[0] / t[1]));
}
/* amp_step on n parameters: the whole step, then its update alone: what is left without the inspection. */
typedef struct trained {
    amp_params *p;
    amp_scaler *s;
    amp_step_desc d;
    amp_array g;
} trained;
static trained train(size_t n, amp_dtype t, amp_master master, amp_dtype moment) {
    amp_params_desc pd = AMP_ZERO;
    amp_param_desc d = AMP_ZERO;
    trained o;
    memset(&o, 0, sizeof o);
    o.g = filled(t, n, 1.0f);
    pd.model = pd.grad = t;
    pd.master = master;
    pd.moment = moment;
    need(amp_params_create(&o.p, ctx, &pd) == AMP_OK, "amp_params_create");
    d.count = n;
    d.grad = o.g;
    need(amp_params_add(o.p, &d) == AMP_OK && amp_params_commit(o.p) == AMP_OK, "amp_params_commit");
    need(amp_scaler_create(&o.s, ctx, NULL) == AMP_OK, "amp_scaler_create");
    o.d.lr = 1e-3f;
    o.d.clip_norm = 1.0f;
    o.d.stochastic = master == AMP_MASTER_NONE;
    return o;
}
static void train_end(trained *o) {
    amp_step_record r;
    need(amp_sync(ctx) == AMP_OK && amp_step_poll(o->p, &r) == AMP_OK, "amp_step_poll");
    right(r.nan + r.inf == 0 && r.norm > 0, "a step over clean gradients");
    amp_scaler_destroy(o->s);
    amp_params_destroy(o->p);
    drop(o->g);
}
static void step_line(const char *name, size_t n, amp_dtype t, amp_master master, amp_dtype moment, double bytes) {
    trained o = train(n, t, master, moment);
    work w;
    double inspect;
    memset(&w, 0, sizeof w);
    w.x = o.g;
    w.p = o.p;
    w.s = o.s;
    w.desc = &o.d;
    w.n = n;
    w.run = run_inspect;
    if (bytes < 3) {
        kernel_line(name, &w, bytes, 0);
    } else {
        inspect = seconds(&w);
        w.run = run_step;
        kernel_line(name, &w, bytes, inspect);
    }
    train_end(&o);
}
static void xent_line(size_t rows, size_t classes) {
    amp_xent_desc d = AMP_ZERO;
    amp_array labels = make(AMP_F32, rows), loss = make(AMP_F32, rows + 1);
    float host = -1;
    work w;
    memset(&w, 0, sizeof w);
    need(cudaMemsetAsync(labels.data, 0, rows * 4, stream) == cudaSuccess, "labels");
    w.x = make(AMP_F16, rows * classes);
    w.y = make(AMP_F16, rows * classes);
    w.n = rows * classes;
    w.desc = &d;
    w.run = run_xent;
    d.rows = rows;
    d.classes = classes;
    d.logits = w.x;
    d.dlogits = w.y;
    d.labels = (const int32_t *)labels.data;
    d.loss = (float *)loss.data;
    d.row_loss = (float *)loss.data + 1;
    kernel_line("cross-entropy f16", &w, 4, 0);
    need(amp_copy(ctx, &host, loss.data, 4) == AMP_OK, "the loss");
    right(host > 0 && host < 100, "the loss is a number");
    drop(labels);
    drop(loss);
    drop(w.x);
    drop(w.y);
}
static void gelu_line(size_t rows, size_t cols) {
    amp_linear_desc l = AMP_ZERO;
    work w;
    memset(&w, 0, sizeof w);
    w.x = make(AMP_F16, rows * cols);
    w.y = filled(AMP_F16, rows * cols, 1.0f);
    w.n = rows * cols;
    w.desc = &l;
    w.run = run_backward;
    l.rows = rows;
    l.out = cols;
    l.in = 8;
    l.act = AMP_GELU;
    l.y = l.aux = w.x;
    l.dy = w.y;
    kernel_line("GELU gradient f16", &w, 6, 0);
    drop(w.x);
    drop(w.y);
}
static void kernels(void) {
    size_t n = tiny ? 4096 : (size_t)64 << 20;
    amp_scaler *s;
    work w;
    double t;
    char a[24], b[24], number[32];
    memset(&w, 0, sizeof w);
    w.x = make(AMP_F32, n);
    w.y = make(AMP_F32, n);
    w.n = 4 * n;
    w.run = run_copy;
    fill(w.x, 1.0f, 0);
    t = seconds(&w);
    printf("copy       %s GB/s, %s of nominal\n", told(a, "%.0f", 8e-9 * (double)n / t),
        told(b, "%.2f", 8e-9 * (double)n / t / here.gb_per_s));
    fact("copy_gb_per_s", "%s", fact_number(number, 8e-9 * (double)n / t));
    puts("kernels    bound: share of nominal bandwidth that the machine code allows at most, counted, and by what");
    puts("           (* code of a different GPU); then GB/s, their share, and the speed on half subnormal data");
    printf("  %-22s %8s  %11s   %9s  %6s  %6s\n", "", "", "bound", "measured", "share", "half");
    w.n = n;
    w.y.dtype = AMP_F16;
    w.run = run_cast;
    kernel_line("cast f32->f16", &w, 6, 0);
    w.x.dtype = AMP_F16;
    w.y.dtype = AMP_F32;
    kernel_line("cast f16->f32", &w, 6, 0);
    w.y.dtype = AMP_F16;
    need(amp_scaler_create(&s, ctx, NULL) == AMP_OK, "amp_scaler_create");
    w.s = s;
    w.run = run_unscale;
    kernel_line("unscale f16", &w, 4, 0);
    amp_scaler_destroy(s);
    w.run = run_dropout;
    kernel_line("dropout f16", &w, 4, 0);
    drop(w.x);
    drop(w.y);
    step_line("inspect f16", n, AMP_F16, AMP_MASTER_F32, AMP_F32, 2);
    step_line("AdamW f16", n, AMP_F16, AMP_MASTER_F32, AMP_F32, 28);
    step_line("AdamW bf16 moments", n, AMP_BF16, AMP_MASTER_NONE, AMP_BF16, 14);
    xent_line(tiny ? 3 : 2048, tiny ? 997 : 50257);
    gelu_line(tiny ? 24 : 16384, tiny ? 136 : 4096);
}

/* ---- products ---- */

static amp_gemm_desc product(amp_dtype t, amp_dtype to, size_t m, size_t n, size_t k, int layout) {
    amp_gemm_desc g = AMP_ZERO;
    g.m = m;
    g.n = n;
    g.k = k;
    g.trans_a = layout == 2;
    g.trans_b = layout == 1;
    g.a = filled(t, m * k, 1.0f);
    g.b = filled(t, n * k, 1.0f);
    g.d = make(to, m * n);
    return g;
}
static void product_end(amp_gemm_desc *g) {
    drop(g->a);
    drop(g->b);
    drop(g->d);
}
static void products(void) {
    static const amp_dtype types[] = {AMP_F32, AMP_F16, AMP_BF16};
    size_t e = tiny ? 16 : 512;
    int i, k, all = 0;
    plain = 0;
    for (i = 0; i < 3; i++)
        for (k = 0; k < 7; k++) { /* x w, x w^T, x^T w; then with odd sizes; then one row */
            int fell = plain;
            amp_gemm_desc g = product(types[i], types[i], k == 6 ? 1 : e + (k > 2), e + (k > 2), e + (k > 2), k % 3);
            right(amp_gemm(ctx, &g) == AMP_OK, "a product");
            if (plain > fell) printf("           plain: %s\n", last_plan);
            all++;
            product_end(&g);
        }
    printf("products   %d of %d (f32, f16, bf16; three layouts; even, odd sizes, one row) fell to the plain kernel\n",
        plain, all);
    fact("products", "{\"asked\": %d, \"plain\": %d}", all, plain);
}

/* ---- questions ---- */

static void ask(int number, const char *question, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void ask(int number, const char *question, const char *format, ...) {
    char reply[700], a[200], b[900];
    va_list list;
    va_start(list, format);
    vsnprintf(reply, sizeof reply, format, list);
    va_end(list);
    printf("  %d %s: %s\n", number, question, reply);
    fact("questions[]", "{\"number\": %d, \"question\": %s, \"answer\": %s}", number, fact_text(a, sizeof a, question),
        fact_text(b, sizeof b, reply));
}

/* what 0: chains of additions in double; 1: conversions to double; 2: both. */
template <int what> static __global__ void k_pipes(double *out, uint32_t x, int n) {
    double a = 1.0, b = (double)threadIdx.x, wide;
    uint32_t sum = 0;
    uint64_t bits;
    int i;
    for (i = 0; i < n; i++) {
        if (what != 1) {
            a = amp_dadd(a, b);
            b = amp_dadd(b, a);
        }
        if (what == 0) continue;
        wide = amp_widen(ampi_float(x + (uint32_t)i));
        memcpy(&bits, &wide, 8);
        sum ^= (uint32_t)(bits >> 29);
    }
    out[threadIdx.x] = a + b + (double)sum;
}
template <int what> static amp_status run_pipes(const work *w) {
    cudaLaunchConfig_t config = AMP_ZERO;
    config.gridDim = dim3(tiny ? 1 : (unsigned)here.sms * 4u);
    config.blockDim = dim3(BLOCK);
    config.stream = stream;
    return cudaLaunchKernelEx(&config, k_pipes<what>, (double *)w->y.data, ampi_bits(1.0f), tiny ? 2 : 4096) ==
            cudaSuccess
        ? AMP_OK
        : AMP_ERR_CUDA;
}
static const char *shared_or_not(const double t[3]) {
    double longest = t[0] > t[1] ? t[0] : t[1];
    if (!CLOCKS) return "no clock";
    if (t[2] > 0.85 * (t[0] + t[1])) return "yes";
    return t[2] < 1.25 * longest ? "no" : "partly";
}
static void ask_pipes(void) {
    work w;
    double t[3];
    char text[3][24];
    memset(&w, 0, sizeof w);
    w.y = make(AMP_F32, 4 * BLOCK);
    w.run = run_pipes<0>;
    t[0] = seconds(&w);
    w.run = run_pipes<1>;
    t[1] = seconds(&w);
    w.run = run_pipes<2>;
    t[2] = seconds(&w);
    ask(1, "do conversions to double use the units of FP64", "adds %s us, conversions %s us, both %s us: %s",
        told(text[0], "%.1f", 1e6 * t[0]), told(text[1], "%.1f", 1e6 * t[1]), told(text[2], "%.1f", 1e6 * t[2]),
        shared_or_not(t));
    drop(w.y);
}
static void ask_small_step(void) {
    trained o = train(tiny ? 4096 : 1u << 20, AMP_F16, AMP_MASTER_F32, AMP_F32);
    work w;
    double step, inspect;
    char a[24], b[24], c[24];
    memset(&w, 0, sizeof w);
    w.p = o.p;
    w.s = o.s;
    w.desc = &o.d;
    w.run = run_step;
    step = seconds(&w);
    w.run = run_inspect;
    inspect = seconds(&w);
    ask(2, "a step of 1 M parameters, in a row", "%s us, of which inspection and next scale %s us, update %s us",
        told(a, "%.1f", 1e6 * step), told(b, "%.1f", 1e6 * inspect), told(c, "%.1f", 1e6 * (step - inspect)));
    train_end(&o);
}
/* The product of ones is k: exact in every order of sums. */
static int all_are(amp_array d, float want) {
    size_t size = d.count * amp_dtype_size(d.dtype), i;
    void *host = malloc(size);
    int same = 1;
    need(host && amp_copy(ctx, host, d.data, size) == AMP_OK, "amp_copy");
    for (i = 0; i < d.count; i++)
        same &= amp_load(host, d.dtype, i) == want;
    free(host);
    return same;
}
static void set_all(amp_array a, float x) {
    size_t size = a.count * amp_dtype_size(a.dtype), i;
    void *host = malloc(size);
    need(host != NULL, "memory");
    for (i = 0; i < a.count; i++)
        amp_store(host, a.dtype, i, x);
    need(amp_copy(ctx, a.data, host, size) == AMP_OK, "amp_copy");
    free(host);
}
static void ask_nan(void) {
    size_t e = tiny ? 16 : 64, k = tiny ? 64 : 65536;
    amp_gemm_desc g = product(AMP_F16, AMP_F32, e, e, k, 1);
    amp_array beta = make(AMP_F32, 1);
    const char *how;
    set_all(g.a, 1.0f);
    set_all(g.b, 1.0f);
    set_all(g.d, ampi_float(0x7fc00000u));
    set_all(beta, 0.0f);
    g.beta_ptr = (const float *)beta.data;
    last_plan[0] = 0;
    need(amp_gemm(ctx, &g) == AMP_OK, "amp_gemm");
    how = strstr(last_plan, "batch 1: ");
    ask(3, "d full of NaN, beta 0 read on the device: does a NaN come through", "%s; %s",
        right(all_are(g.d, (float)k), "beta 0 lets a NaN through, or the sum is wrong") ? "no" : "YES",
        how ? how + 9 : "no plan");
    drop(beta);
    product_end(&g);
}
/* x w^T of FP8 ones with m rows; what it says. */
static const char *f8(size_t m, amp_dtype to, char text[512]) {
    size_t e = tiny ? 32 : 256;
    amp_gemm_desc g = product(AMP_F8E4M3, to, m, e, e, 1);
    amp_status s;
    set_all(g.a, 1.0f);
    set_all(g.b, 1.0f);
    s = amp_gemm(ctx, &g);
    if (s == AMP_OK)
        snprintf(text, 512, "%s", right(all_are(g.d, (float)e), "an FP8 product") ? "taken, right" : "taken, WRONG");
    else
        snprintf(text, 512, "%s: %s", amp_strerror(s), amp_last_error(ctx));
    right(s == AMP_OK || s == AMP_ERR_UNSUPPORTED, "an FP8 product is taken or refused");
    product_end(&g);
    return text;
}
static void ask_f8(void) {
    char text[512];
    ask(4, "FP8, x w^T, 24 rows, to bf16", "%s", f8(24, AMP_BF16, text));
    ask(5, "FP8, x w^T, 17 rows, to bf16", "%s", f8(17, AMP_BF16, text));
    ask(6, "FP8, x w^T, 32 rows, to FP8, C not read", "%s", f8(32, AMP_F8E4M3, text));
}
static amp_status run_product(const work *w) { return amp_gemm(ctx, (const amp_gemm_desc *)w->desc); }
/* Before sm_80 BF16 is the plain kernel's: is that worse than cuBLASLt's, which lt_probe times? */
static void ask_bf16(void) {
    static const amp_dtype types[] = {AMP_F16, AMP_BF16};
    size_t e = tiny ? 16 : 1024;
    char text[2][24];
    int i;
    last_plan[0] = 0;
    for (i = 0; i < 2; i++) {
        amp_gemm_desc g = product(types[i], types[i], e, e, e, 1);
        work w;
        memset(&w, 0, sizeof w);
        w.desc = &g;
        w.run = run_product;
        told(text[i], "%.1f", 1e6 * seconds(&w));
        product_end(&g);
    }
    ask(7, "x w^T of f16 and bf16", "%lu^3: f16 %s us, bf16 %s us, %s", (unsigned long)e, text[0], text[1],
        strstr(last_plan, "plain kernel") ? "by the plain kernel" : "by cuBLASLt");
}
/* GELU's derivative and the bias gradient: in the product, after it, or one each? */
static void ask_gradient(void) {
    size_t e = tiny ? 16 : 1024;
    char how[512];
    const char *at;
    amp_gemm_desc g = product(AMP_F16, AMP_F16, e, e, e, 0);
    amp_array aux = filled(AMP_F16, e * e, 1.0f), dbias = make(AMP_F16, e);
    g.act = AMP_GELU;
    g.backward = 1;
    g.aux = aux;
    g.dbias = dbias;
    last_tune[0] = 0;
    need(amp_gemm_tune(ctx, &g) == AMP_OK && amp_gemm_explain(ctx, how, sizeof how, &g) == AMP_OK, "tuning");
    at = strstr(how, "batch 1: ");
    ask(8, "GELU's derivative and the bias gradient, tuned", "%lu^3: %s%s%s", (unsigned long)e, at ? at + 9 : how,
        CLOCKS ? "; " : "", CLOCKS ? last_tune : "");
    drop(aux);
    drop(dbias);
    product_end(&g);
}

/* Steps of one context whose updates follow their inspections, and of one where they wait to be launched: which is
   faster, and do all weights agree? A wait that comes too late is a race that only a GPU shows. */
static double followed(uint32_t flags, size_t n, float *weights) {
    amp_cuda_desc d = AMP_ZERO;
    amp_ctx *const outer = ctx;
    double t;
    work w;
    trained o;
    int k;
    d.stream = stream;
    d.flags = flags;
    need(amp_cuda_create(&ctx, d) == AMP_OK, "a second context");
    o = train(n, AMP_F16, AMP_MASTER_F32, AMP_F32);
    memset(&w, 0, sizeof w);
    w.p = o.p;
    w.s = o.s;
    w.desc = &o.d;
    w.run = run_step;
    for (k = 0; k < (tiny ? 5 : 2000); k++)
        need(w.run(&w) == AMP_OK, "a step");
    need(amp_param_read(o.p, 0, weights) == AMP_OK, "amp_param_read");
    t = seconds(&w);
    train_end(&o);
    amp_ctx_destroy(ctx);
    ctx = outer;
    return t;
}
static void ask_dependent(void) {
    const size_t n = tiny ? 4096 : 1u << 20;
    float *a = (float *)malloc(n * sizeof *a), *b = (float *)malloc(n * sizeof *b);
    double plainly, dependent;
    char text[2][24];
    need(a && b, "memory");
    plainly = followed(0, n, a);
    dependent = followed(AMP_CUDA_DEPENDENT_LAUNCH, n, b);
    right(a[0] != 0 && memcmp(a, b, n * sizeof *a) == 0, "steps whose updates follow their inspections");
    ask(9, "a step of 1 M parameters whose update follows its inspection", "%s us, launched one after the other %s us",
        told(text[0], "%.1f", 1e6 * dependent), told(text[1], "%.1f", 1e6 * plainly));
    free(a);
    free(b);
}

/* ---- a training step ---- */

static void train_result(
    const train_shape *s, const contest *ours, const contest *theirs, int rounds, float first, float last) {
    const int both = CLOCKS && !theirs->failed;
    const double ms = CLOCKS ? 1e3 * median(ours, rounds) : 0, torch = both ? 1e3 * median(theirs, rounds) : 0;
    char name[300], n[3][32], text[2][24];
    printf("training   GPT-2's layers, %lu rows, f16: loss %.3f -> %.3f; a step %s ms", (unsigned long)s->rows,
        (double)first, (double)last, told(text[0], "%.1f", ms));
    if (*bench.peer)
        printf("; %s: AMP %s ms, ratio %s\n", bench.peer, told(text[1], "%.1f", torch),
            both ? told(name, "%.2f", torch / ms) : "-");
    else
        puts("; no PyTorch");
    fact("training",
        "{\"model\": \"%s\", \"rows\": %lu, \"loss\": [%.4f, %.4f], \"ms\": %s, \"torch\": %s, \"torch_ms\": %s, "
        "\"ratio\": %s}",
        s->name, (unsigned long)s->rows, (double)first, (double)last, fact_number(n[0], ms),
        *bench.peer ? fact_text(name, sizeof name, bench.peer) : "null", fact_number(n[1], torch),
        fact_number(n[2], both ? torch / ms : 0));
}
static void training(void) {
    static const train_shape large = {"gpt2", 4096, 768, 12, 50304, 1024}, small = {"gpt2", 8, 16, 1, 40, 8};
    static train_net net;
    const train_shape *s = tiny ? &small : &large;
    const train_mode *mode = &train_modes[1];
    const int rounds = rounds_of(5);
    amp_step_record before, record;
    contest r[2];
    char peer[120];
    float first, last;
    int k;
    if (train_create(&net, ctx, s, mode) != AMP_OK) { /* too little memory, most likely */
        printf("training   skipped: %s\n", amp_last_error(ctx));
        fact("training", "null");
        train_destroy(&net);
        return;
    }
    need(train_step(&net) == AMP_OK, "a training step");
    first = last = train_loss(&net);
    for (k = 1; k < (tiny ? 6 : 20); k++) {
        need(train_step(&net) == AMP_OK, "a training step");
        last = train_loss(&net);
    }
    right(amp_is_finite(last) && last < first, "the loss of a GPT-2 falls");
    net.step.lr = AMP_NONE; /* the numbers in every product stay as they are */
    net.step.weight_decay = 0;
    need(amp_sync(ctx) == AMP_OK && amp_step_poll(net.params, &before) == AMP_OK, "amp_step_poll");
    memset(r, 0, sizeof r);
    r[0].name = "amp";
    r[0].fn = run_train;
    r[0].ctx = ctx;
    r[0].x = &net;
    r[0].work = 1;
    snprintf(peer, sizeof peer, "train %s %lu %lu %lu %lu %lu amp", s->name, (unsigned long)s->rows,
        (unsigned long)s->width, (unsigned long)s->layers, (unsigned long)s->vocab, (unsigned long)s->context);
    r[1] = peer_contest("torch AMP fp16", peer, 1);
    compete(r, 2, rounds, 0.05);
    need(amp_sync(ctx) == AMP_OK && amp_step_poll(net.params, &record) == AMP_OK, "amp_step_poll");
    right(net.failed == AMP_OK && record.skipped == before.skipped, "every timed step was taken");
    train_result(s, &r[0], &r[1], rounds, first, last);
    train_destroy(&net);
    peer_forget();
}

int main(int argc, char **argv) {
    amp_cuda_desc d = AMP_ZERO;
    const char *peer = NULL;
    int i;
    for (i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--tiny"))
            tiny = bench.tiny = 1;
        else if (!strcmp(argv[i], "--once"))
            once = bench.tiny = 1;
        else if (!strcmp(argv[i], "--facts") && i + 1 < argc)
            facts = fopen(argv[++i], "w");
        else if (!strcmp(argv[i], "--peer") && i + 1 < argc)
            peer = argv[++i];
        else if (!strcmp(argv[i], "--table") && i + 1 < argc)
            table = argv[++i];
        else
            return fprintf(stderr,
                       "usage: check_gpu [--table FILE] [--facts FILE] [--peer COMMAND] [--once] "
                       "[--tiny]\n"),
                   2;
    }
    peer_open(peer); /* its process starts before CUDA does */
    if (!amp_cuda_available()) return puts("check_gpu needs a CUDA device"), 1;
    d.logger.fn = note;
    need(amp_cuda_create(&ctx, d) == AMP_OK, "a CUDA context");
    stream = amp_cuda_stream(ctx);
    need(cudaEventCreate(&before) == cudaSuccess && cudaEventCreate(&after) == cudaSuccess, "events");
    about();
    kernels();
    products();
    puts("questions");
    ask_pipes();
    ask_small_step();
    ask_nan();
    ask_f8();
    ask_bf16();
    ask_gradient();
    ask_dependent();
    training();
    peer_close();
    (void)cudaEventDestroy(before);
    (void)cudaEventDestroy(after);
    amp_ctx_destroy(ctx);
    printf("results    %d checked, %d wrong\n", bench.checked, bench.wrong);
    fact("results", "{\"checked\": %d, \"wrong\": %d}", bench.checked, bench.wrong);
    return bench.wrong != 0;
}
