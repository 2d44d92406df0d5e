/* bench_gpu.cu - how fast the CUDA context is, beside the GPU's own limits and its peers. One process, one stream;
   nothing but nvcc and a GPU.

       bench_gpu [--part casts|checks|act|step|gemm|train] [--out DIR] [--peer COMMAND] [--tiny]

   Everything goes through public verbs. Time is that of the GPU, between two events, unless a row says "call and wait"
   (host, one call and its synchronisation at a time) or "host cost" (host, calls alone). Bandwidth counts each byte
   that must be read or written once. Byte floors are timed in the same rounds: cudaMemcpyAsync of as many bytes (read +
   written), or a kernel that only reads. Inputs are random. Outputs are poisoned first and checked against the CPU
   context, bit for bit, or against a stated bound; one that is wrong says so, and the exit status is 1. Speed never
   changes it. --peer: a command that times PyTorch in the same rounds, see peers_gpu.py. --tiny: sizes that a test can
   afford, also where this source is executed without a GPU; its figures mean nothing. */
#include "../amp_cuda.cuh"
#include <cublasLt.h>
#include <cuda_runtime.h>
#include "train.h"

#define CUDA(call) \
    do { \
        cudaError_t e_ = (call); \
        if (e_ != cudaSuccess) { \
            printf("WRONG: %s: %s\n", #call, cudaGetErrorString(e_)); \
            exit(1); \
        } \
    } while (0)
#define LT(call) \
    do { \
        cublasStatus_t e_ = (call); \
        if (e_ != CUBLAS_STATUS_SUCCESS) { \
            printf("WRONG: %s: cuBLAS status %d\n", #call, (int)e_); \
            exit(1); \
        } \
    } while (0)
enum { BLOCK = 256 };

static amp_ctx *gpu, *cpu;
static cudaStream_t stream;
static cudaEvent_t before, after;
static int sms;
static char *src, *dst; /* on the device, as large as the part needs */
static size_t room;     /* bytes of each */

/* ---- kernels of the bench itself ---- */

static __global__ void k_empty() {}

/* n elements around 0 with standard deviation 1 * factor */
static __global__ void k_fill(void *to, amp_dtype type, uint64_t n, uint64_t seed, float factor) {
    uint64_t step = (uint64_t)gridDim.x * BLOCK, q, i;
    for (q = (uint64_t)blockIdx.x * BLOCK + threadIdx.x; 2 * q < n; q += step) {
        uint32_t w[4];
        amp_philox(w, seed, 7, q);
        for (i = 2 * q; i < n && i < 2 * q + 2; i++)
            amp_store(to, type, i,
                (float)((double)w[2 * (i & 1u)] + (double)w[2 * (i & 1u) + 1] - 4294967296.0) *
                    (5.7031188e-10f * factor)); /* sqrt(6) / 2^32 */
    }
}

/* Reads n * 16 bytes, LOADS of 16 in flight per thread; writes only if all bits of everything are set, which random
   data are not. */
template <int LOADS> static __global__ void __launch_bounds__(BLOCK) k_read(const uint4 *p, uint64_t n, uint32_t *out) {
    uint64_t step = (uint64_t)gridDim.x * BLOCK, i = (uint64_t)blockIdx.x * BLOCK + threadIdx.x;
    uint32_t all = 0xffffffffu;
    int k;
    for (; i + (LOADS - 1) * step < n; i += LOADS * step) {
        uint4 v[LOADS];
#if defined(__CUDACC__)
#  pragma unroll
#endif
        for (k = 0; k < LOADS; k++)
            v[k] = __ldcs(p + i + (uint64_t)k * step);
#if defined(__CUDACC__)
#  pragma unroll
#endif
        for (k = 0; k < LOADS; k++)
            all &= v[k].x & v[k].y & v[k].z & v[k].w;
    }
    for (; i < n; i += step) {
        uint4 v = __ldcs(p + i);
        all &= v.x & v.y & v.z & v.w;
    }
    if (all == 0xffffffffu) *out = all;
}

template <class... P, class... A> static void launch(unsigned grid, void (*kernel)(P...), A... args) {
    cudaLaunchConfig_t config = AMP_ZERO;
    config.gridDim = dim3(grid);
    config.blockDim = dim3(BLOCK);
    config.stream = stream;
    CUDA(cudaLaunchKernelEx(&config, kernel, args...));
}
static unsigned grid_of(uint64_t threads, int per_sm) {
    uint64_t blocks = (threads + BLOCK - 1) / BLOCK, most = (uint64_t)sms * (uint64_t)per_sm;
    return (unsigned)(blocks < 1 ? 1 : blocks < most ? blocks : most);
}
static void randomize(void *to, amp_dtype type, size_t n, uint64_t seed, float factor) {
    launch(grid_of(n / 2 + 1, 16), k_fill, to, type, (uint64_t)n, seed, factor);
}

/* ---- clocks ---- */

static double event_clock(const contest *r, int calls) {
    cudaStream_t s = r->ctx ? amp_cuda_stream(r->ctx) : stream;
    float ms = 0;
    int i;
    CUDA(cudaEventRecord(before, s));
    for (i = 0; i < calls; i++)
        r->fn(r);
    CUDA(cudaEventRecord(after, s));
    CUDA(cudaEventSynchronize(after));
    CUDA(cudaEventElapsedTime(&ms, before, after));
    return (double)ms * 1e-3;
}
static double waiting_clock(const contest *r, int calls) { /* call and wait */
    double t = now();
    int i;
    for (i = 0; i < calls; i++) {
        r->fn(r);
        CUDA(cudaStreamSynchronize(stream));
    }
    return now() - t;
}
static double calling_clock(const contest *r, int calls) { /* host cost: the stream works on meanwhile */
    double t = now();
    int i;
    for (i = 0; i < calls; i++)
        r->fn(r);
    t = now() - t;
    CUDA(cudaStreamSynchronize(stream));
    return t;
}
static contest entry(const char *name, void (*fn)(const contest *), double work) {
    contest r;
    memset(&r, 0, sizeof r);
    r.name = name;
    r.fn = fn;
    r.clock = event_clock;
    r.ctx = gpu;
    r.work = work;
    return r;
}

/* ---- anchors ---- */

static void run_empty(const contest *) { launch(1, k_empty); }
static void run_copy(const contest *r) {
    CUDA(cudaMemcpyAsync(r->dst, r->src, r->bytes / 2, cudaMemcpyDeviceToDevice, stream));
}
static void run_read4(const contest *r) {
    launch(grid_of(r->bytes / 64, 8), k_read<4>, (const uint4 *)r->src, (uint64_t)(r->bytes / 16), (uint32_t *)r->dst);
}
static void run_read8(const contest *r) {
    launch(grid_of(r->bytes / 128, 8), k_read<8>, (const uint4 *)r->src, (uint64_t)(r->bytes / 16), (uint32_t *)r->dst);
}
static contest copy_of(size_t bytes) { /* read + written */
    contest r = entry("device copy", run_copy, (double)bytes);
    r.dst = dst;
    r.src = src;
    r.bytes = bytes;
    return r;
}
static int reads_of(
    contest *r, const void *from, size_t bytes, double (*clock)(const contest *, int)) { /* the better one counts */
    int k;
    r[0] = entry("plain read", run_read4, (double)bytes);
    r[1] = entry("plain read x8", run_read8, (double)bytes);
    for (k = 0; k < 2; k++) {
        r[k].src = from;
        r[k].dst = dst;
        r[k].bytes = bytes;
        r[k].clock = clock;
    }
    return 2;
}

/* ---- memory ---- */

static int make_room(size_t bytes, const char *work) { /* src and dst of at least that size; 0: the GPU has no room */
    bytes = (bytes + 511) & ~(size_t)511;
    if (bytes <= room) return 1;
    CUDA(cudaStreamSynchronize(stream));
    (void)amp_free(gpu, src);
    (void)amp_free(gpu, dst);
    src = dst = NULL;
    room = 0;
    if (amp_alloc(gpu, (void **)&src, bytes, "bench") != AMP_OK ||
        amp_alloc(gpu, (void **)&dst, bytes, "bench") != AMP_OK) {
        skip(work, amp_last_error(gpu));
        (void)amp_free(gpu, src);
        src = dst = NULL;
        return 0;
    }
    room = bytes;
    return 1;
}
static void *host_copy(const void *device, size_t bytes) {
    void *p = malloc(bytes ? bytes : 1);
    if (!p) {
        puts("WRONG: no host memory");
        exit(1);
    }
    fine(gpu, amp_copy(gpu, p, device, bytes), "amp_copy");
    return p;
}
static void poison(void *device, size_t bytes) { CUDA(cudaMemsetAsync(device, 0xA5, bytes, stream)); }
static int rounds_for(size_t bytes) { return rounds_of(bytes > (size_t)256 << 20 ? 11 : 21); }

/* ---- casts ---- */

static void run_cast(const contest *r) {
    if (amp_cast(r->ctx, amp_arr(r->dst, r->to), amp_arr(r->src, r->from), r->n, (const amp_cast_desc *)r->x) != AMP_OK)
        fine(r->ctx, AMP_ERR_CUDA, "amp_cast");
}
/* The whole output, or its beginning, middle and end, against the CPU context. */
static void check_cast(const contest *r, const char *what) {
    size_t window = (size_t)1 << 20, at[3], k, windows = r->n > 4 * window ? 3 : 1, m = windows == 3 ? window : r->n;
    size_t sd = amp_dtype_size(r->to), ss = amp_dtype_size(r->from);
    at[0] = 0;
    at[1] = r->n / 2;
    at[2] = r->n - m;
    poison(r->dst, r->n * sd);
    r->fn(r);
    for (k = 0; k < windows; k++) {
        amp_cast_desc d = AMP_ZERO;
        char *x = (char *)host_copy((const char *)r->src + at[k] * ss, m * ss), *z = (char *)malloc(m * sd + 1);
        char *y = (char *)host_copy((const char *)r->dst + at[k] * sd, m * sd);
        if (r->x) d = *(const amp_cast_desc *)r->x;
        d.offset += at[k];
        fine(cpu, amp_cast(cpu, amp_arr(z, r->to), amp_arr(x, r->from), m, &d), "amp_cast");
        right(memcmp(y, z, m * sd) == 0, what);
        free(x);
        free(y);
        free(z);
    }
}

#define CURVES 7
#define POINTS 10 /* 4 KiB of floats, times 4 each, to 1 GiB */
static void part_casts() {
    static const struct {
        const char *name, *colour;
        amp_dtype to, from;
    } c[CURVES] = {{"device copy", "#888", AMP_F32, AMP_F32}, {"f32 to f16", "#c33", AMP_F16, AMP_F32},
        {"f16 to f32", "#36c", AMP_F32, AMP_F16}, {"f32 to bf16", "#e90", AMP_BF16, AMP_F32},
        {"bf16 to f32", "#0a8", AMP_F32, AMP_BF16}, {"f32 to f8e4m3", "#93c", AMP_F8E4M3, AMP_F32},
        {"f8e4m3 to f32", "#563", AMP_F32, AMP_F8E4M3}};
    static double gb[CURVES][POINTS];
    static char labels[POINTS][24];
    amp_cast_desc sr = AMP_ZERO;
    chart_line lines[CURVES];
    char work[64], path[512];
    size_t n, top = bench.tiny ? (size_t)1 << 16 : (size_t)1 << 28; /* floats */
    int i, k, points = 0;
    for (n = 1024; n <= top; n *= 4)
        (void)size_text(n * 4, labels[points++]);
    if (!make_room(top * 4, "casts")) return;
    head("Casts (size: of the floats; anchor: a device copy of the same total bytes)");
    for (i = 1; i < CURVES; i++) {
        randomize(src, c[i].from, top, 1, 1.0f);
        for (k = 0, n = 1024; k < points; k++, n *= 4) {
            size_t bytes = n * (amp_dtype_size(c[i].to) + amp_dtype_size(c[i].from));
            contest r[2];
            int rounds = rounds_for(bytes);
            r[0] = copy_of(bytes);
            r[1] = entry(c[i].name, run_cast, (double)bytes);
            r[1].dst = dst;
            r[1].src = src;
            r[1].n = n;
            r[1].to = c[i].to;
            r[1].from = c[i].from;
            snprintf(work, sizeof work, "cast %s", c[i].name);
            check_cast(&r[1], work);
            compete(r, 2, rounds, 3e-3);
            (void)row(work, labels[k], GB_S, &r[1], r, 1, rounds, n == top ? 0.95 : 0);
            gb[i][k] = in_unit(GB_S, median(&r[1], rounds), (double)bytes);
            if (i == 1) gb[0][k] = in_unit(GB_S, median(r, rounds), (double)bytes);
        }
    }
    sr.rounding = AMP_STOCHASTIC;
    sr.seed = 3;
    for (i = 1; i < 4; i += 2) {
        contest r[2];
        int rounds = rounds_for(6 * top);
        randomize(src, AMP_F32, top, 2, 1.0f);
        r[0] = copy_of(6 * top);
        r[1] = entry("stochastic", run_cast, 6.0 * (double)top);
        r[1].dst = dst;
        r[1].src = src;
        r[1].n = top;
        r[1].to = c[i].to;
        r[1].from = AMP_F32;
        r[1].x = &sr;
        snprintf(work, sizeof work, "cast %s, stochastic", c[i].name);
        check_cast(&r[1], work);
        compete(r, 2, rounds, 3e-3);
        (void)row(work, labels[points - 1], GB_S, &r[1], r, 1, rounds, 0);
    }
    head("One small cast, in microseconds (anchor: an empty launch; ratio: microseconds more than it)");
    for (i = 0; i < 2; i++) {
        contest r[2];
        int rounds = rounds_of(31);
        r[0] = entry("empty launch", run_empty, 1);
        r[1] = entry("cast", run_cast, 1);
        r[1].dst = dst;
        r[1].src = src;
        r[1].n = 1024;
        r[1].to = AMP_F16;
        r[1].from = AMP_F32;
        r[0].most = r[1].most = 1000;
        r[0].clock = r[1].clock = i ? waiting_clock : event_clock;
        compete(r, 2, rounds, 2e-3);
        (void)row(i ? "cast f32 to f16, call and wait" : "cast f32 to f16, in a row", "4 KiB", MICROSECONDS, &r[1], r,
            1, rounds, -2);
    }
    if (!bench.out) return;
    for (i = 0; i < CURVES; i++) {
        lines[i].name = c[i].name;
        lines[i].colour = c[i].colour;
        lines[i].y = gb[i];
    }
    snprintf(path, sizeof path, "%s/gpu-casts.svg", bench.out);
    chart_words words = {"amp_cast on a GPU", "", "size of the floats", "GB/s, read + written"};
    if (chart(path, &words, lines, CURVES, labels, points)) {
        bench.wrong++;
        puts("WRONG: no chart");
    }
}

/* ---- checks ---- */

static void run_finite(const contest *r) {
    amp_array a = amp_arrn(r->src, r->from, r->n);
    amp_finite_report f;
    if (amp_all_finite(r->ctx, &f, &a, 1) != AMP_OK || f.nan + f.inf) right(0, "finite: a clean array");
}
static void run_histogram(const contest *r) {
    amp_array a = amp_arrn(r->src, r->from, r->n);
    amp_histogram h;
    if (amp_histogram_count(r->ctx, &h, &a, 1) != AMP_OK || h.total != r->n) right(0, "histogram: the total");
}
static void run_unscale(const contest *r) {
    amp_array to = amp_arrn(r->dst, r->to, r->n), from = amp_arrn(r->src, r->from, r->n);
    if (amp_unscale((amp_scaler *)r->x, &to, NULL, &from, 1) != AMP_OK) fine(r->ctx, AMP_ERR_CUDA, "amp_unscale");
}
typedef struct optimizer {
    amp_params *p;
    amp_scaler *s;
    amp_step_desc d;
} optimizer;
static void run_inspect(const contest *r) {
    optimizer *o = (optimizer *)r->x;
    if (amp_inspect(o->p, o->s, &o->d) != AMP_OK || amp_scaler_update(o->s) != AMP_OK)
        fine(r->ctx, AMP_ERR_CUDA, "amp_inspect");
}

static void put(void *device, amp_dtype type, size_t i, float x) { /* one element */
    float v = 0;
    amp_store(&v, type, 0, x);
    fine(gpu, amp_copy(gpu, (char *)device + i * amp_dtype_size(type), &v, amp_dtype_size(type)), "amp_copy");
}
static void check_counting(
    amp_dtype type, size_t n) { /* finite and histogram against the CPU, with an Inf and a NaN planted; n is changed */
    amp_finite_report f, g;
    amp_histogram h, e;
    size_t m = n > (size_t)16 << 20 ? (size_t)16 << 20 : n;
    amp_array a = amp_arrn(src, type, m), b;
    void *x;
    put(src, type, m - 1, ampi_float(0x7f800000u));
    put(src, type, m / 2, ampi_float(0x7fc00000u));
    x = host_copy(src, m * amp_dtype_size(type));
    b = amp_arrn(x, type, m);
    memset(&f, 1, sizeof f);
    memset(&g, 2, sizeof g);
    memset(&h, 1, sizeof h);
    memset(&e, 2, sizeof e);
    fine(gpu, amp_all_finite(gpu, &f, &a, 1), "amp_all_finite");
    fine(cpu, amp_all_finite(cpu, &g, &b, 1), "amp_all_finite");
    right(f.nan == 1 && f.inf == 1 && f.first_index == m / 2 && g.nan == f.nan && g.inf == f.inf &&
            g.first_index == f.first_index && f.first_array == 0,
        "finite: what was planted");
    fine(gpu, amp_histogram_count(gpu, &h, &a, 1), "amp_histogram_count");
    fine(cpu, amp_histogram_count(cpu, &e, &b, 1), "amp_histogram_count");
    right(h.total == e.total && h.zero == e.zero && h.inf == e.inf && h.nan == e.nan && h.amax == e.amax &&
            memcmp(h.pow2, e.pow2, sizeof h.pow2) == 0,
        "histogram: as on the CPU");
    free(x);
    randomize(src, type, n, 4, 1.0f);
}
static void check_unscale(const contest *r, float scale) {
    size_t m = r->n > (size_t)1 << 22 ? (size_t)1 << 22 : r->n, at = r->n - m, sd = amp_dtype_size(r->to),
           ss = amp_dtype_size(r->from);
    amp_scaler_desc d = AMP_ZERO;
    amp_scaler *s;
    char *x, *y, *z = (char *)malloc(m * sd);
    amp_array to = amp_arrn(z, r->to, m), from;
    d.scale = scale;
    fine(cpu, amp_scaler_create(&s, cpu, &d), "amp_scaler_create");
    x = (char *)host_copy((const char *)r->src + at * ss, m * ss);
    r->fn(r);
    y = (char *)host_copy((const char *)r->dst + at * sd, m * sd);
    from = amp_arrn(x, r->from, m);
    fine(cpu, amp_unscale(s, &to, NULL, &from, 1), "amp_unscale");
    right(memcmp(y, z, m * sd) == 0, "unscale: as on the CPU");
    amp_scaler_destroy(s);
    free(x);
    free(y);
    free(z);
}

/* inspect over sets of FP16 gradients: one long array (in src), or a list of tensors */
static void inspect_row(const char *work, const size_t *count, size_t n_tensors, double target) {
    size_t n = sum_of(count, n_tensors), i, at = 0, bytes = n * 2;
    amp_params_desc pd = AMP_ZERO;
    amp_step_record got, want;
    contest r[3];
    optimizer o;
    char size[24];
    int k, rounds = rounds_for(bytes);
    memset(&o, 0, sizeof o);
    pd.master = AMP_MASTER_NONE;
    pd.moments = AMP_NONE; /* the least memory; inspect looks at gradients alone */
    o.d.optimizer = AMP_SGD;
    o.d.lr = 1e-3f;
    randomize(src, AMP_F16, n, 6, 1.0f);
    if (!fine(gpu, amp_params_create(&o.p, gpu, &pd), "amp_params_create")) return;
    for (i = 0; i < n_tensors; i++) {
        amp_param_desc d = AMP_ZERO;
        d.count = count[i];
        d.grad = amp_arr(src + 2 * at, AMP_F16);
        at += count[i];
        fine(gpu, amp_params_add(o.p, &d), "amp_params_add");
    }
    if (amp_params_commit(o.p) != AMP_OK) {
        skip(work, amp_last_error(gpu));
        amp_params_destroy(o.p);
        return;
    }
    fine(gpu, amp_scaler_create(&o.s, gpu, NULL), "amp_scaler_create");
    k = reads_of(r, src, bytes & ~(size_t)15, event_clock);
    r[k] = entry("inspect", run_inspect, (double)bytes);
    r[k].x = &o;
    compete(r, k + 1, rounds, 3e-3);
    (void)row(work, size_text(bytes, size), GB_S, &r[k], r, k, rounds, target);
    fine(gpu, amp_sync(gpu), "amp_sync");
    fine(gpu, amp_step_poll(o.p, &got), "amp_step_poll");
    right(got.outcome == AMP_STEPPED && got.nan + got.inf + got.overflow == 0, "inspect: clean gradients");
    if (bytes <= (size_t)300 << 20) { /* the norm, bit for bit: the same set on the CPU */
        char *x = (char *)host_copy(src, bytes);
        amp_params *p;
        amp_scaler *s;
        amp_scaler_desc sd = AMP_ZERO;
        fine(cpu, amp_params_create(&p, cpu, &pd), "amp_params_create");
        for (i = at = 0; i < n_tensors; at += count[i++]) {
            amp_param_desc d = AMP_ZERO;
            d.count = count[i];
            d.grad = amp_arr(x + 2 * at, AMP_F16);
            fine(cpu, amp_params_add(p, &d), "amp_params_add");
        }
        fine(cpu, amp_params_commit(p), "amp_params_commit");
        sd.scale = got.scale;
        fine(cpu, amp_scaler_create(&s, cpu, &sd), "amp_scaler_create");
        fine(cpu, amp_inspect(p, s, &o.d), "amp_inspect");
        fine(cpu, amp_step_poll(p, &want), "amp_step_poll");
        right(got.norm == want.norm && got.norm > 0, "inspect: the norm, as on the CPU");
        amp_scaler_destroy(s);
        amp_params_destroy(p);
        free(x);
    }
    put(src, AMP_F16, n - 1, ampi_float(0x7fc00000u));
    run_inspect(&r[k]);
    fine(gpu, amp_sync(gpu), "amp_sync");
    fine(gpu, amp_step_poll(o.p, &got), "amp_step_poll");
    right(got.outcome == AMP_SKIPPED_NAN && got.nan == 1 && got.first_param == n_tensors - 1 &&
            got.first_index == count[n_tensors - 1] - 1,
        "inspect: a NaN in the last place");
    amp_scaler_destroy(o.s);
    amp_params_destroy(o.p);
}

static void part_checks() {
    static const amp_dtype types[2] = {AMP_F32, AMP_F16};
    static const char *const finite[2] = {"all_finite f32", "all_finite f16"},
                             *const counted[2] = {"histogram f32", "histogram f16"};
    static double gb[3][POINTS];
    static char labels[POINTS][24];
    static const chart_line lines[3] = {
        {"plain read", "#888", gb[0]}, {"all_finite f32", "#c33", gb[1]}, {"all_finite f16", "#36c", gb[2]}};
    size_t bytes, top = bench.tiny ? (size_t)1 << 18 : (size_t)1 << 30, list[TRAIN_TENSORS], lists;
    char path[512];
    int i, k, points = 0, rounds;
    for (bytes = 4096; bytes <= top; bytes *= 4)
        (void)size_text(bytes, labels[points++]);
    if (!make_room(top, "checks")) return;

    head("Inspect: finite test, norm and decision over FP16 gradients, with the scale's update (anchor: a plain read)");
    list[0] = top / 2;
    inspect_row("inspect, one array", list, 1, 0.95);
    lists = bench.tiny ? gpt2_tensors(16, 1, 97, 8, list) : gpt2_tensors(768, 12, 50257, 1024, list);
    inspect_row("inspect, GPT-2's tensors", list, lists, 0.95);

    head("Finite check with its report on the host, call and wait (anchor: a plain read, waited for)");
    for (i = 0; i < 2; i++) {
        randomize(src, types[i], top / amp_dtype_size(types[i]), 4, 1.0f);
        for (k = 0, bytes = 4096; k < points; k++, bytes *= 4) {
            contest r[3];
            size_t n = bytes / amp_dtype_size(types[i]);
            int a;
            rounds = rounds_for(bytes);
            check_counting(types[i], n);
            a = reads_of(r, src, bytes, waiting_clock);
            r[a] = entry(finite[i], run_finite, (double)bytes);
            r[a].src = src;
            r[a].n = n;
            r[a].from = types[i];
            r[a].clock = waiting_clock;
            compete(r, a + 1, rounds, 3e-3);
            (void)row(finite[i], labels[k], GB_S, &r[a], r, a, rounds, 0);
            gb[1 + i][k] = in_unit(GB_S, median(&r[a], rounds), (double)bytes);
            gb[0][k] = in_unit(GB_S, median(&r[0], rounds), (double)bytes);
        }
    }
    head("Histogram of exponents, call and wait (anchor: a plain read, waited for)");
    for (i = 0; i < 2; i++) {
        contest r[3];
        int a;
        bytes = bench.tiny ? top : (size_t)256 << 20;
        rounds = rounds_for(bytes);
        randomize(src, types[i], bytes / amp_dtype_size(types[i]), 4, 1.0f);
        a = reads_of(r, src, bytes, waiting_clock);
        r[a] = entry(counted[i], run_histogram, (double)bytes);
        r[a].src = src;
        r[a].n = bytes / amp_dtype_size(types[i]);
        r[a].from = types[i];
        r[a].clock = waiting_clock;
        compete(r, a + 1, rounds, 3e-3);
        (void)row(counted[i], labels[bench.tiny ? points - 1 : points - 2], GB_S, &r[a], r, a, rounds, 0);
    }
    head("Unscale and check (size: of the gradients; anchor: a device copy of the same total bytes)");
    for (i = 0; i < 3; i++) {
        static const char *const name[3] = {"unscale f16, in place", "unscale f32, in place", "unscale f16 to f32"};
        static const amp_dtype from[3] = {AMP_F16, AMP_F32, AMP_F16}, to[3] = {AMP_F16, AMP_F32, AMP_F32};
        size_t n = top / 4, total = n * (amp_dtype_size(from[i]) + amp_dtype_size(to[i]));
        amp_scaler_desc d = AMP_ZERO;
        amp_scaler *s;
        contest r[2];
        char size[24];
        d.scale = i == 2 ? 1024.0f : 1.0f; /* in place: so that repetitions do not change the numbers */
        rounds = rounds_for(total);
        if (!fine(gpu, amp_scaler_create(&s, gpu, &d), "amp_scaler_create")) continue;
        randomize(src, from[i], n, 8, 100.0f);
        r[0] = copy_of(total);
        r[1] = entry(name[i], run_unscale, (double)total);
        r[1].src = src;
        r[1].dst = i == 2 ? dst : src;
        r[1].n = n;
        r[1].from = from[i];
        r[1].to = to[i];
        r[1].x = s;
        check_unscale(&r[1], d.scale);
        compete(r, 2, rounds, 3e-3);
        (void)row(name[i], size_text(n * amp_dtype_size(from[i]), size), GB_S, &r[1], r, 1, rounds, 0);
        amp_scaler_destroy(s);
    }
    if (!bench.out) return;
    snprintf(path, sizeof path, "%s/gpu-checks.svg", bench.out);
    chart_words words = {"Checks on a GPU, call and wait", "", "size of the array", "GB/s, read"};
    if (chart(path, &words, lines, 3, labels, points)) {
        bench.wrong++;
        puts("WRONG: no chart");
    }
}

/* ---- activations and loss ---- */

static void run_xent(const contest *r) {
    if (amp_softmax_cross_entropy(r->ctx, (const amp_xent_desc *)r->x) != AMP_OK)
        fine(r->ctx, AMP_ERR_CUDA, "amp_softmax_cross_entropy");
}
static void run_backward(const contest *r) {
    if (amp_linear_backward(r->ctx, (const amp_linear_desc *)r->x) != AMP_OK)
        fine(r->ctx, AMP_ERR_CUDA, "amp_linear_backward");
}
static void run_dropout(const contest *r) {
    if (amp_dropout(r->ctx, (const amp_dropout_desc *)r->x) != AMP_OK) fine(r->ctx, AMP_ERR_CUDA, "amp_dropout");
}

static void xent_row(amp_dtype type, size_t rows, size_t classes, size_t ld) {
    size_t e = amp_dtype_size(type), span = rows * ld, bytes = 2 * rows * classes * e, i, few = bench.tiny ? rows : 8;
    char work[64], size[64];
    amp_xent_desc d = AMP_ZERO, c;
    int32_t *label = (int32_t *)malloc(rows * sizeof *label);
    float *row_loss, *want;
    char *x, *y, *z;
    void *labels;
    contest r[2];
    int rounds = rounds_for(bytes);
    snprintf(work, sizeof work, "softmax cross-entropy %s", amp_dtype_name(type));
    snprintf(
        size, sizeof size, "%lux%lu%s", (unsigned long)rows, (unsigned long)classes, ld > classes ? ", padded" : "");
    if (!make_room(span * e, work) || !fine(gpu, amp_alloc(gpu, &labels, rows * 8 + 16, "bench"), "amp_alloc")) {
        free(label);
        return;
    }
    for (i = 0; i < rows; i++)
        label[i] = (int32_t)(amp_random(9, 0, i) % classes);
    fine(gpu, amp_copy(gpu, labels, label, rows * sizeof *label), "amp_copy");
    randomize(src, type, span, 10, 2.0f);
    d.rows = rows;
    d.classes = classes;
    d.ld = ld;
    d.labels = (const int32_t *)labels;
    d.row_loss = (float *)labels + rows;
    d.loss = d.row_loss + rows;
    d.logits = amp_arr(src, type);
    d.dlogits = amp_arr(dst, type);
    d.sum = 1; /* then a row's result does not depend on how many there are: some rows on the CPU are enough */
    poison(dst, span * e);
    fine(gpu, amp_softmax_cross_entropy(gpu, &d), "amp_softmax_cross_entropy");
    x = (char *)host_copy(src, few * ld * e);
    y = (char *)host_copy(dst, few * ld * e);
    row_loss = (float *)host_copy(d.row_loss, rows * sizeof(float));
    z = (char *)malloc(few * ld * e);
    want = (float *)malloc((few + 1) * sizeof *want);
    memset(z, 0xA5, few * ld * e);
    c = d;
    c.rows = few;
    c.labels = label;
    c.logits = amp_arr(x, type);
    c.dlogits = amp_arr(z, type);
    c.row_loss = want;
    c.loss = want + few;
    fine(cpu, amp_softmax_cross_entropy(cpu, &c), "amp_softmax_cross_entropy");
    right(memcmp(y, z, few * ld * e) == 0, "cross-entropy: gradients, as on the CPU");
    right(memcmp(row_loss, want, few * sizeof *want) == 0, "cross-entropy: losses, as on the CPU");
    free(x);
    free(y);
    free(z);
    free(row_loss);
    free(want);
    d.sum = 0;
    r[0] = copy_of(bytes);
    r[1] = entry("ours", run_xent, (double)bytes);
    r[1].x = &d;
    compete(r, 2, rounds, 5e-3);
    (void)row(work, size, GB_S, &r[1], r, 1, rounds, 0.90);
    (void)amp_free(gpu, labels);
    free(label);
}

static void restore_dy(const contest *r) {
    CUDA(cudaMemcpyAsync(r->dst, r->src, r->bytes, cudaMemcpyDeviceToDevice, stream));
} /* backward overwrites it */

/* Activation gradients, column sums: the parts of amp_linear_backward that are not products. */
static void gradient_rows(amp_dtype type, size_t rows, size_t cols) {
    static const struct {
        const char *name;
        amp_act act;
        int sums;
    } kind[4] = {{"ReLU gradient", AMP_RELU, 0}, {"GELU gradient", AMP_GELU, 0}, {"column sums", AMP_ACT_NONE, 1},
        {"GELU gradient + column sums", AMP_GELU, 1}};
    size_t n = rows * cols, e = amp_dtype_size(type), bytes = n * e, total;
    char work[64], size[64], *x, *y, *z;
    void *sums, *fresh;
    int k, a, rounds = rounds_for(3 * bytes);
    snprintf(size, sizeof size, "%lux%lu", (unsigned long)rows, (unsigned long)cols);
    if (!make_room(2 * bytes, "gradients")) return;
    if (!fine(gpu, amp_alloc(gpu, &sums, cols * 4, "bench"), "amp_alloc")) return;
    if (!fine(gpu, amp_alloc(gpu, &fresh, bytes, "bench"), "amp_alloc")) {
        (void)amp_free(gpu, sums);
        return;
    }
    randomize(src, type, n, 12, 1.0f);
    randomize(fresh, type, n, 13, 1.0f);
    for (k = 0; k < 4; k++) {
        amp_linear_desc l = AMP_ZERO, c;
        float *got, *want = (float *)malloc(cols * sizeof *want);
        contest r[3];
        l.rows = rows;
        l.out = cols;
        l.in = 8;
        l.act = kind[k].act;
        l.y = l.aux = amp_arr(src, type);  /* what forward kept */
        l.dy = amp_arr(dst + bytes, type); /* after the copy's output */
        if (kind[k].sums) l.dbias = amp_arr(sums, AMP_F32);
        snprintf(work, sizeof work, "%s %s", kind[k].name, amp_dtype_name(type));
        total = kind[k].act == AMP_ACT_NONE ? bytes : 3 * bytes;
        r[0] = copy_of(total);
        a = kind[k].act == AMP_ACT_NONE ? reads_of(r, fresh, bytes & ~(size_t)15, event_clock) : 1;
        r[a] = entry("ours", run_backward, (double)total);
        r[a].x = &l;
        r[a].before = restore_dy;
        r[a].src = fresh;
        r[a].dst = l.dy.data;
        r[a].bytes = bytes;
        r[a].most = 16;
        restore_dy(&r[a]);
        poison(sums, cols * 4);
        run_backward(&r[a]);
        x = (char *)host_copy(src, bytes);
        y = (char *)host_copy(fresh, bytes);
        z = (char *)host_copy(l.dy.data, bytes);
        got = (float *)host_copy(sums, cols * 4);
        c = l;
        c.y = c.aux = amp_arr(x, type);
        c.dy = amp_arr(y, type);
        if (kind[k].sums) c.dbias = amp_arr(want, AMP_F32);
        fine(cpu, amp_linear_backward(cpu, &c), "amp_linear_backward");
        right((!kind[k].sums || memcmp(got, want, cols * 4) == 0) && memcmp(y, z, bytes) == 0, work);
        free(x);
        free(y);
        free(z);
        free(got);
        free(want);
        compete(r, a + 1, rounds, 3e-3);
        (void)row(work, size, GB_S, &r[a], r, a, rounds, 0.90);
    }
    (void)amp_free(gpu, sums);
    (void)amp_free(gpu, fresh);
}
static void dropout_row(amp_dtype type, size_t n) {
    amp_dropout_desc d = AMP_ZERO, c;
    size_t e = amp_dtype_size(type), m = n > (size_t)1 << 22 ? (size_t)1 << 22 : n;
    char work[64], size[24], *x, *y, *z;
    contest r[2];
    int rounds = rounds_for(2 * n * e);
    snprintf(work, sizeof work, "dropout %s", amp_dtype_name(type));
    if (!make_room(n * e, work)) return;
    randomize(src, type, n, 14, 1.0f);
    d.p = 0.1f;
    d.count = n;
    d.x = amp_arr(src, type);
    d.y = amp_arr(dst, type);
    d.rng.seed = 15;
    poison(dst, n * e);
    fine(gpu, amp_dropout(gpu, &d), "amp_dropout");
    x = (char *)host_copy(src + (n - m) * e, m * e);
    y = (char *)host_copy(dst + (n - m) * e, m * e);
    z = (char *)malloc(m * e);
    c = d;
    c.count = m;
    c.x = amp_arr(x, type);
    c.y = amp_arr(z, type);
    c.rng.offset = n - m;
    fine(cpu, amp_dropout(cpu, &c), "amp_dropout");
    right(memcmp(y, z, m * e) == 0, "dropout: as on the CPU");
    free(x);
    free(y);
    free(z);
    r[0] = copy_of(2 * n * e);
    r[1] = entry("ours", run_dropout, 2.0 * (double)(n * e));
    r[1].x = &d;
    compete(r, 2, rounds, 3e-3);
    (void)row(work, size_text(n * e, size), GB_S, &r[1], r, 1, rounds, 0.90);
}
static void part_act() {
    size_t rows = bench.tiny ? 12 : 4096, classes = bench.tiny ? 997 : 50257, padded = bench.tiny ? 1024 : 50304;
    size_t tall = bench.tiny ? 24 : 16384, wide = bench.tiny ? 136 : 4096;
    head("Loss and activations (anchor: a device copy of the bytes that must move, or a plain read)");
    xent_row(AMP_F16, rows, classes, classes);
    xent_row(AMP_F16, rows, classes, padded);
    xent_row(AMP_BF16, rows, classes, classes);
    xent_row(AMP_BF16, rows, classes, padded);
    xent_row(AMP_F32, rows, classes, classes);
    gradient_rows(AMP_F16, tall, wide);
    gradient_rows(AMP_BF16, tall, wide);
    dropout_row(AMP_F16, tall * wide);
    dropout_row(AMP_F32, tall * wide);
}

/* ---- the optimizer ---- */

typedef struct layout {
    const char *name;
    amp_optimizer optimizer;
    amp_dtype model;
    amp_master master;
    int32_t moments;
    amp_dtype moment;
    uint32_t stochastic;
    int bytes; /* read and written per parameter, see below */
} layout;
/* bytes: read and written per parameter. Gradients are read twice (check, update); a 16-bit gradient 4, FP32 8. FP32
   master 8, its copy 2; 16+8 bits 6. 8-bit m, v: 4; their scales, 0.06, are not counted */
static const layout layouts[] = {
    {"AdamW, FP32 master + f16", AMP_ADAMW, AMP_F16, AMP_MASTER_F32, 2, AMP_F32, 0, 4 + 8 + 2 + 16},
    {"AdamW, FP32 master + bf16", AMP_ADAMW, AMP_BF16, AMP_MASTER_F32, 2, AMP_F32, 0, 4 + 8 + 2 + 16},
    {"AdamW, f16 16+16", AMP_ADAMW, AMP_F16, AMP_MASTER_SPLIT, 2, AMP_F32, 0, 4 + 8 + 16},
    {"AdamW, bf16 16+16", AMP_ADAMW, AMP_BF16, AMP_MASTER_SPLIT, 2, AMP_F32, 0, 4 + 8 + 16},
    {"AdamW, f16 16+8", AMP_ADAMW, AMP_F16, AMP_MASTER_SPLIT8, 2, AMP_F32, 0, 4 + 6 + 16},
    {"AdamW, bf16 16+8", AMP_ADAMW, AMP_BF16, AMP_MASTER_SPLIT8, 2, AMP_F32, 0, 4 + 6 + 16},
    {"AdamW, bf16 16+8, 8-bit m, v", AMP_ADAMW, AMP_BF16, AMP_MASTER_SPLIT8, 2, AMP_MOMENT_8BIT, 0, 4 + 6 + 4},
    {"AdamW, bf16 stochastic", AMP_ADAMW, AMP_BF16, AMP_MASTER_NONE, 2, AMP_F32, 1, 4 + 4 + 16},
    {"AdamW, bf16 stochastic, bf16 m, v", AMP_ADAMW, AMP_BF16, AMP_MASTER_NONE, 2, AMP_BF16, 1, 4 + 4 + 8},
    {"AdamW, bf16 Kahan, bf16 m, v", AMP_ADAMW, AMP_BF16, AMP_MASTER_KAHAN, 2, AMP_BF16, 0, 4 + 8 + 8},
    {"AdamW, FP32", AMP_ADAMW, AMP_F32, AMP_MASTER_F32, 2, AMP_F32, 0, 8 + 8 + 16},
    {"SGD momentum, FP32 master + f16", AMP_SGD, AMP_F16, AMP_MASTER_F32, 1, AMP_F32, 0, 4 + 8 + 2 + 8},
    {"Lion, FP32 master + f16", AMP_LION, AMP_F16, AMP_MASTER_F32, 1, AMP_F32, 0, 4 + 8 + 2 + 8},
};
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

static void run_step(const contest *r) {
    optimizer *o = (optimizer *)r->x;
    if (amp_step(o->p, o->s, &o->d) != AMP_OK) fine(r->ctx, AMP_ERR_CUDA, "amp_step");
}
static void run_graph(const contest *r) { CUDA(cudaGraphLaunch((cudaGraphExec_t)r->x, amp_cuda_stream(r->ctx))); }
static cudaGraphExec_t capture_end(cudaStream_t s, amp_status status) {
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    CUDA(cudaStreamEndCapture(s, &graph));
    if (status == AMP_OK) CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CUDA(cudaGraphDestroy(graph));
    return exec;
}

/* A set on a context with random weights; 0 and a line if there is no memory. unit: random numbers, as many as the
   longest tensor has. */
static int optimizer_create(
    amp_ctx *ctx, optimizer *o, const layout *y, const size_t *count, size_t n, const float *unit) {
    amp_params_desc pd = AMP_ZERO;
    size_t i;
    memset(o, 0, sizeof *o);
    pd.model = pd.grad = y->model;
    pd.master = y->master;
    pd.moments = y->moments;
    pd.moment = y->moment;
    if (!fine(ctx, amp_params_create(&o->p, ctx, &pd), "amp_params_create")) return 0;
    for (i = 0; i < n; i++) {
        amp_param_desc d = AMP_ZERO;
        d.count = count[i];
        d.init = unit;
        fine(ctx, amp_params_add(o->p, &d), "amp_params_add");
    }
    if (amp_params_commit(o->p) != AMP_OK || amp_scaler_create(&o->s, ctx, NULL) != AMP_OK) {
        skip(y->name, amp_last_error(ctx));
        amp_params_destroy(o->p);
        return 0;
    }
    o->d.optimizer = y->optimizer;
    o->d.lr = 1e-4f;
    o->d.weight_decay = 0.01f;
    o->d.stochastic = y->stochastic;
    o->d.seed = 17;
    if (y->optimizer == AMP_SGD) {
        o->d.momentum = 0.9f;
        o->d.lr = 1.0f;
    } /* else unscaled gradients are too small to move a weight */
    return 1;
}
static void optimizer_destroy(optimizer *o) {
    amp_scaler_destroy(o->s);
    amp_params_destroy(o->p);
}
static void fill_gradients(optimizer *o, float factor) {
    size_t i, n = amp_params_count(o->p);
    for (i = 0; i < n; i++) {
        amp_array g = amp_param_grad(o->p, i);
        randomize(g.data, g.dtype, g.count, 100 + i, factor);
    }
}
/* Five steps, one of them with an overflow, on both contexts: every weight, bit for bit. Tensors 0 .. check - 1 of the
   set. */
static void check_steps(const layout *y, const size_t *count, size_t n, size_t check, const float *unit) {
    optimizer a, b;
    size_t i, longest = 0;
    float *x, *z;
    int k, same = 1;
    char what[96];
    amp_scaler_info scale_a = AMP_ZERO, scale_b = AMP_ZERO;
    if (!optimizer_create(gpu, &a, y, count, n, unit)) return;
    if (!optimizer_create(cpu, &b, y, count, check, unit)) {
        optimizer_destroy(&a);
        return;
    }
    a.d.clip_norm = b.d.clip_norm = check == n ? 1.0f : 0.0f; /* the norm is over the whole set */
    fill_gradients(&a, 0.1f);
    for (i = 0; i < check; i++) {
        amp_array g = amp_param_grad(a.p, i);
        if (count[i] > longest) longest = count[i];
        fine(gpu, amp_copy(gpu, amp_param_grad(b.p, i).data, g.data, count[i] * amp_dtype_size(g.dtype)), "amp_copy");
    }
    for (k = 0; k < 5; k++) {
        amp_array g = amp_param_grad(a.p, 0), h = amp_param_grad(b.p, 0);
        float keep = amp_load(h.data, h.dtype, 0);
        if (k == 2) {
            put(g.data, g.dtype, 0, ampi_float(0x7f800000u));
            amp_store(h.data, h.dtype, 0, ampi_float(0x7f800000u));
        }
        fine(gpu, amp_step(a.p, a.s, &a.d), "amp_step");
        fine(cpu, amp_step(b.p, b.s, &b.d), "amp_step");
        if (k == 2) {
            put(g.data, g.dtype, 0, keep);
            amp_store(h.data, h.dtype, 0, keep);
        }
    }
    x = (float *)malloc(longest * sizeof *x);
    z = (float *)malloc(longest * sizeof *z);
    for (i = 0; i < check; i++) {
        fine(gpu, amp_param_read(a.p, i, x), "amp_param_read");
        fine(cpu, amp_param_read(b.p, i, z), "amp_param_read");
        same &= memcmp(x, z, count[i] * sizeof *x) == 0;
        same &= memcmp(x, unit, count[i] * sizeof *x) != 0; /* and it has moved */
    }
    snprintf(what, sizeof what, "%s: five steps, as on the CPU", y->name);
    fine(gpu, amp_scaler_get(a.s, &scale_a), "amp_scaler_get");
    fine(cpu, amp_scaler_get(b.s, &scale_b), "amp_scaler_get");
    right(same && scale_a.scale == scale_b.scale && scale_a.scale == 32768.0f, what);
    free(x);
    free(z);
    optimizer_destroy(&a);
    optimizer_destroy(&b);
}

static void part_step() {
    static size_t gpt2[TRAIN_TENSORS], small[60];
    size_t i, n_gpt2, n_small = bench.tiny ? 8 : 60, n, longest = 0;
    char size[64], key[120];
    float *unit;
    int k;
    n_gpt2 = bench.tiny ? gpt2_tensors(16, 1, 97, 8, gpt2) : gpt2_tensors(768, 12, 50257, 1024, gpt2);
    for (i = 0; i < n_small; i++)
        small[i] = i % 2 ? 184 : bench.tiny ? 300 : 180 * 184; /* 1.0 million */
    for (i = 0; i < n_gpt2; i++)
        if (gpt2[i] > longest) longest = gpt2[i];
    if (longest < 180 * 184) longest = 180 * 184;
    unit = (float *)malloc(longest * sizeof *unit);
    if (!unit) {
        puts("WRONG: no host memory");
        bench.wrong++;
        return;
    }
    fill_random(unit, longest, 16, 0.02f);

    n = sum_of(gpt2, n_gpt2);
    snprintf(size, sizeof size, "%.1f M in %lu", (double)n * 1e-6, (unsigned long)n_gpt2);
    head("amp_step over GPT-2's parameters (anchor: a device copy of the bytes that must move)");
    for (k = 0; k < LAYOUTS; k++) {
        const layout *y = &layouts[k];
        amp_step_record last;
        optimizer o;
        contest r[4];
        int rounds = rounds_for(n * (size_t)y->bytes);
        check_steps(y, gpt2, n_gpt2, 1, unit); /* at full size: the first tensor; below all tensors of a small set */
        if (!make_room(n * (size_t)y->bytes / 2, y->name) || !optimizer_create(gpu, &o, y, gpt2, n_gpt2, unit))
            continue;
        fill_gradients(&o, 0.1f);
        randomize(src, AMP_F32, room / 4, 18, 1.0f);
        r[0] = copy_of(n * (size_t)y->bytes);
        r[1] = entry(y->name, run_step, (double)(n * (size_t)y->bytes));
        r[1].x = &o;
        snprintf(key, sizeof key, "step gpt2 %lu %lu %lu %lu eager", bench.tiny ? 16ul : 768ul, bench.tiny ? 1ul : 12ul,
            bench.tiny ? 97ul : 50257ul, bench.tiny ? 8ul : 1024ul);
        r[2] = peer_contest("torch GradScaler + fused AdamW + casts", key, r[1].work);
        compete(r, k == 0 ? 3 : 2, rounds, 5e-3);
        (void)row(y->name, size, GB_S, &r[1], r, 1, rounds, 0.92);
        if (k == 0) (void)row(y->name, size, GB_S, &r[1], r + 2, 1, rounds, 1.8);
        fine(gpu, amp_sync(gpu), "amp_sync");
        fine(gpu, amp_step_poll(o.p, &last), "amp_step_poll");
        right(last.outcome == AMP_STEPPED && last.skipped == 0, "every timed step was taken");
        optimizer_destroy(&o);
    }
    peer_forget();

    n = sum_of(small, n_small);
    snprintf(size, sizeof size, "%.2f M in %lu", (double)n * 1e-6, (unsigned long)n_small);
    head("amp_step over a small set, in microseconds from the host (anchor: PyTorch's tail, or ours eager)");
    for (k = 0; k < LAYOUTS; k++) {
        const layout *y = &layouts[k];
        cudaGraphExec_t exec;
        optimizer o;
        contest r[6];
        char work[64];
        int rounds = rounds_of(21), m;
        check_steps(y, small, n_small, n_small, unit);
        if (!optimizer_create(gpu, &o, y, small, n_small, unit)) continue;
        fill_gradients(&o, 0.1f);
        r[0] = entry("ours, eager", run_step, 1);
        r[0].x = &o;
        run_step(&r[0]); /* loads the kernels */
        CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        exec = capture_end(stream, amp_step(o.p, o.s, &o.d));
        if (!right(exec != NULL, "amp_step can be captured")) {
            optimizer_destroy(&o);
            continue;
        }
        r[1] = entry("ours, graph", run_graph, 1);
        r[1].x = exec;
        for (m = 0; m < 2; m++) {
            r[m].clock = NULL;
            r[m].most = 500;
        } /* the host's clock, until the stream is idle */
        snprintf(key, sizeof key, "step small %lu %lu %lu eager", (unsigned long)n_small, (unsigned long)small[0],
            (unsigned long)small[1]);
        r[2] = peer_contest("torch eager", key, 1);
        snprintf(key, sizeof key, "step small %lu %lu %lu graph", (unsigned long)n_small, (unsigned long)small[0],
            (unsigned long)small[1]);
        r[3] = peer_contest("torch graph", key, 1);
        r[4] = entry("empty launch", run_empty, 1);
        r[4].clock = NULL;
        r[4].most = 500;
        snprintf(key, sizeof key, "step small %lu %lu %lu foreach", (unsigned long)n_small, (unsigned long)small[0],
            (unsigned long)small[1]);
        r[5] = peer_contest("torch eager, casts by foreach", key, 1);
        compete(r, k == 0 ? 6 : 2, rounds, 5e-3);
        snprintf(work, sizeof work, "%s: eager", y->name);
        if (k == 0) (void)row(work, size, MICROSECONDS, &r[0], r + 4, 1, rounds, 0);
        if (k == 0) (void)row(work, size, MICROSECONDS, &r[0], r + 2, 1, rounds, 5);
        if (k == 0) (void)row(work, size, MICROSECONDS, &r[0], r + 5, 1, rounds, 0);
        snprintf(work, sizeof work, "%s: graph", y->name);
        (void)row(work, size, MICROSECONDS, &r[1], r, 1, rounds, 0);
        if (k == 0) (void)row(work, size, MICROSECONDS, &r[1], r + 2, 1, rounds, 10);
        if (k == 0) (void)row(work, size, MICROSECONDS, &r[1], r + 3, 1, rounds, 0);
        CUDA(cudaGraphExecDestroy(exec));
        optimizer_destroy(&o);
    }
    peer_forget();
    free(unit);
}

/* ---- products ---- */

typedef struct lt_call { /* a product as a careful user of cuBLASLt writes it: descriptors and algorithm made once */
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, d;
    cublasLtMatmulAlgo_t algo;
    const void *x, *y;
    void *z;
} lt_call;
static amp_ctx *tuned; /* a second context on the same stream, whose products are tuned */
static cublasLtHandle_t lt_handle;
static void *lt_workspace;
static size_t lt_bytes;
enum { CANDIDATES = 16 };

static void run_lt(const contest *r) {
    static const float one = 1.0f, zero = 0.0f;
    const lt_call *c = (const lt_call *)r->x;
    LT(cublasLtMatmul(lt_handle, c->desc, &one, c->x, c->a, c->y, c->b, &zero, c->z, c->d, c->z, c->d, &c->algo,
        lt_workspace, lt_bytes, stream));
}
static cudaDataType lt_type(amp_dtype t) {
    return t == AMP_F32 ? CUDA_R_32F : t == AMP_F16 ? CUDA_R_16F : t == AMP_BF16 ? CUDA_R_16BF : CUDA_R_8F_E4M3;
}
static void lt_layout(cublasLtMatrixLayout_t *l, amp_dtype t, size_t rows,
    size_t cols) { /* as stored, row-major: to cuBLASLt its transpose */
    LT(cublasLtMatrixLayoutCreate(l, lt_type(t), cols, rows, (int64_t)cols));
}
/* Row-major D = A B as D^T = B^T A^T. Returns how many candidates the heuristic gives, the first being its choice; 0:
   cuBLASLt does not take it. */
static int lt_create(lt_call *c, const amp_gemm_desc *g, cublasLtMatmulHeuristicResult_t *result) {
    cublasOperation_t op_a = g->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N, op_b = g->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasLtMatmulPreference_t prefer;
    uint64_t most = lt_bytes;
    int found = 0;
    memset(c, 0, sizeof *c);
    LT(cublasLtMatmulDescCreate(
        &c->desc, g->flags & AMP_GEMM_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F));
    LT(cublasLtMatmulDescSetAttribute(c->desc, CUBLASLT_MATMUL_DESC_TRANSA, &op_b, sizeof op_b));
    LT(cublasLtMatmulDescSetAttribute(c->desc, CUBLASLT_MATMUL_DESC_TRANSB, &op_a, sizeof op_a));
    lt_layout(&c->a, g->b.dtype, g->trans_b ? g->n : g->k, g->trans_b ? g->k : g->n);
    lt_layout(&c->b, g->a.dtype, g->trans_a ? g->k : g->m, g->trans_a ? g->m : g->k);
    lt_layout(&c->d, g->d.dtype, g->m, g->n);
    c->x = g->b.data;
    c->y = g->a.data;
    c->z = g->d.data;
    LT(cublasLtMatmulPreferenceCreate(&prefer));
    LT(cublasLtMatmulPreferenceSetAttribute(prefer, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most));
    if (cublasLtMatmulAlgoGetHeuristic(
            lt_handle, c->desc, c->a, c->b, c->d, c->d, prefer, CANDIDATES, result, &found) != CUBLAS_STATUS_SUCCESS)
        found = 0;
    LT(cublasLtMatmulPreferenceDestroy(prefer));
    if (found) c->algo = result[0].algo;
    return found;
}
static void lt_destroy(lt_call *c) {
    if (c->desc) LT(cublasLtMatmulDescDestroy(c->desc));
    if (c->a) LT(cublasLtMatrixLayoutDestroy(c->a));
    if (c->b) LT(cublasLtMatrixLayoutDestroy(c->b));
    if (c->d) LT(cublasLtMatrixLayoutDestroy(c->d));
    memset(c, 0, sizeof *c);
}

static void run_gemm(const contest *r) {
    if (amp_gemm(r->ctx, (const amp_gemm_desc *)r->x) != AMP_OK) fine(r->ctx, AMP_ERR_CUDA, "amp_gemm");
}

/* A sample of d's elements against the exact value, within the bound that amp.h states. */
static void check_gemm(const amp_gemm_desc *g, const char *what) {
    size_t e = amp_dtype_size(g->a.dtype), s, k;
    char *a = (char *)host_copy(g->a.data, g->m * g->k * e), *b = (char *)host_copy(g->b.data, g->k * g->n * e);
    void *d = host_copy(g->d.data, g->m * g->n * amp_dtype_size(g->d.dtype));
    double unit = g->d.dtype == AMP_F16 ? 0x1p-11
        : g->d.dtype == AMP_BF16        ? 0x1p-8
                                        : 0x1p-24; /* relative error of d, */
    /* and of the sum; Tensor Cores may add up FP8 products in fewer bits between promotions */
    double sum = (double)(g->k + 4) * 0x1p-24 + (g->flags & AMP_GEMM_TF32 ? 0x1p-10 + 0x1p-22 : e == 1 ? 0x1p-13 : 0);
    int good = 1;
    for (s = 0; s < 256; s++) {
        size_t i = s == 0 ? g->m - 1 : amp_random(20, 1, s) % g->m, j = s == 0 ? g->n - 1 : amp_random(20, 2, s) % g->n;
        double exact = 0, magnitude = 0, got = (double)amp_load(d, g->d.dtype, i * g->n + j);
        for (k = 0; k < g->k; k++) {
            double x = (double)amp_load(a, g->a.dtype, g->trans_a ? k * g->m + i : i * g->k + k);
            double y = (double)amp_load(b, g->b.dtype, g->trans_b ? j * g->k + k : k * g->n + j);
            exact += x * y;
            magnitude += fabs(x * y);
        }
        if (!(fabs(got - exact) <= sum * magnitude + unit * (fabs(exact) + sum * magnitude) + 0x1p-25)) good = 0;
    }
    right(good, what);
    free(a);
    free(b);
    free(d);
}

typedef struct product {
    size_t m, n, k;
    uint32_t trans_a, trans_b;
    const char *what;
} product;
typedef struct mean {
    double logs, worst;
    int n;
} mean; /* geometric */
static void mean_add(mean *m, double x) {
    if (x > 0) {
        m->logs += log(x);
        if (!m->n || x < m->worst) m->worst = x;
        m->n++;
    }
}

typedef struct kind {
    const char *name, *peer;
    amp_dtype in, out;
    uint32_t flags;
    int torch_counts;
} kind; /* torch_counts: its rows have targets */

static double gemm_rows(const kind *t, const product *p, mean *to_torch, mean *to_choice, mean *to_best) {
    static const char *const layout_name[4] = {"nn", "nt", "tn", "tt"};
    cublasLtMatmulHeuristicResult_t result[CANDIDATES];
    amp_dtype type = t->in;
    size_t e = amp_dtype_size(type),
           b = (p->m * p->k * e + 255) & ~(size_t)255; /* where B begins, aligned as cuBLASLt's heuristic expects */
    size_t ab = b + p->k * p->n * e, i;
    double flop = 2.0 * (double)p->m * (double)p->n * (double)p->k, best_time = 0, torch;
    const char *form = layout_name[2 * p->trans_a + p->trans_b];
    amp_gemm_desc g = AMP_ZERO;
    contest r[5];
    lt_call call[2];
    char work[64], size[64], key[120], path[256];
    int found, k, best = 0, rounds = rounds_of(15);
    g.m = p->m;
    g.n = p->n;
    g.k = p->k;
    g.trans_a = p->trans_a;
    g.trans_b = p->trans_b;
    g.flags = t->flags;
    snprintf(work, sizeof work, "gemm %s, %s", t->name, p->what);
    snprintf(size, sizeof size, "%lux%lux%lu %s", (unsigned long)p->m, (unsigned long)p->n, (unsigned long)p->k, form);
    i = p->m * p->n * amp_dtype_size(t->out);
    if (!make_room(ab > i ? ab : i, work)) return 0;
    randomize(src, type, p->m * p->k, 21, 1.0f);
    randomize(src + b, type, p->k * p->n, 22, 1.0f / sqrtf((float)p->k));
    g.a = amp_arr(src, type);
    g.b = amp_arr(src + b, type);
    g.d = amp_arr(dst, t->out);
    poison(dst, i);
    switch (amp_gemm(gpu, &g)) {
    case AMP_OK: break;
    case AMP_ERR_UNSUPPORTED: skip(work, amp_last_error(gpu)); return 0; /* FP8 on an older GPU */
    default: fine(gpu, AMP_ERR_CUDA, "amp_gemm"); return 0;
    }
    check_gemm(&g, work);
    found = lt_create(&call[0], &g, result);
    call[1] = call[0];
    for (k = 0; k < found; k++) { /* a few calls of each candidate: the quickest is "best" */
        contest one = entry("", run_lt, flop);
        lt_call c = call[0];
        double t;
        if (result[k].state != CUBLAS_STATUS_SUCCESS) continue;
        c.algo = result[k].algo;
        one.x = &c;
        compete(&one, 1, rounds_of(3), 1e-3);
        t = median(&one, rounds_of(3));
        if (best_time == 0 || t < best_time) {
            best_time = t;
            best = k;
        }
    }
    if (found) call[1].algo = result[best].algo;
    r[0] = entry("ours", run_gemm, flop);
    r[0].x = &g;
    r[1] = entry("cublasLt, heuristic's first", run_lt, flop);
    r[1].x = &call[0];
    r[2] = entry("cublasLt, best candidate", run_lt, flop);
    r[2].x = &call[1];
    r[1].failed = r[2].failed = !found;
    r[4] = r[0];
    r[4].name = "ours, tuned";
    r[4].ctx = tuned;
    r[4].failed = !found;
    if (found) {
        fine(tuned, amp_gemm_tune(tuned, &g), "tuning");
        poison(dst, i);
        if (fine(tuned, amp_gemm(tuned, &g), "a tuned product")) check_gemm(&g, "a tuned product");
    }
    snprintf(key, sizeof key, "matmul %s %lu %lu %lu %s", t->peer, (unsigned long)p->m, (unsigned long)p->n,
        (unsigned long)p->k, form);
    r[3] = peer_contest("torch.matmul", key, flop);
    compete(r, 5, rounds, 3e-3);
    mean_add(to_choice, row(work, size, TFLOP_S, &r[0], r + 1, 1, rounds, 0));
    torch = row(work, size, TFLOP_S, &r[0], r + 3, 1, rounds, t->torch_counts ? 0.98 : 0);
    if (t->torch_counts) mean_add(to_torch, torch);
    snprintf(work, sizeof work, "gemm %s, %s, tuned", t->name, p->what);
    mean_add(to_best, row(work, size, TFLOP_S, &r[4], r + 2, 1, rounds, 0));
    (void)row(work, size, TFLOP_S, &r[4], r + 3, 1, rounds, 0);
    if (amp_gemm_explain(gpu, path, sizeof path, &g) == AMP_OK) printf("    %.200s\n", path);
    lt_destroy(&call[0]);
    return in_unit(TFLOP_S, median(&r[0], rounds), flop);
}

/* ---- linear layers ---- */

typedef struct layers {
    amp_linear_desc l[2];
    int n;
} layers;
static void run_layers(const contest *r) { /* forward and backward */
    const layers *x = (const layers *)r->x;
    int k;
    for (k = 0; k < x->n; k++)
        if (amp_linear_forward(r->ctx, &x->l[k]) != AMP_OK) fine(r->ctx, AMP_ERR_CUDA, "amp_linear_forward");
    for (k = x->n - 1; k >= 0; k--)
        if (amp_linear_backward(r->ctx, &x->l[k]) != AMP_OK) fine(r->ctx, AMP_ERR_CUDA, "amp_linear_backward");
}
static amp_array moved(amp_array a, const char *from, char *to) {
    if (a.data) a.data = to + ((char *)a.data - from);
    return a;
}
/* Two results of products, both within the bound of the exact ones, close in the 2-norm, by a few roundings. */
static int near_each_other(const void *a, const void *b, amp_dtype type, size_t n, double unit) {
    double error = 0, norm = 0;
    size_t i, step = n > (size_t)1 << 20 ? 13 : 1;
    for (i = 0; i < n; i += step) {
        double p = (double)amp_load(a, type, i), q = (double)amp_load(b, type, i);
        error += (p - q) * (p - q);
        norm += p * p;
    }
    return error <= 9 * unit * unit * norm && norm > 0;
}

/* One layer with GELU, or (block) that layer and one back to `in`: bias, GELU, its gradient, bias gradient, in the
   products where cuBLASLt can. */
static void linear_rows(amp_dtype type, size_t rows, size_t in, size_t out, int block) {
    enum { X, W, B, Y, AUX, DY, DX, DW, DB, W2, B2, Y2, DY2, DW2, DB2, ARRAYS };
    size_t e = amp_dtype_size(type), at[ARRAYS], i, total = 0, nx = rows * in, nw = in * out, ny = rows * out, fresh,
           n_fresh = block ? nx : ny;
    const size_t count[ARRAYS] = {nx, nw, out, ny, ny, ny, nx, nw, out, nw, in, nx, nx, nw, in};
    double flop = (block ? 12.0 : 6.0) * (double)rows * (double)in * (double)out,
           unit = type == AMP_F16 ? 0x1p-11 : 0x1p-8;
    const char *name = block ? "linear, GELU, linear" : "linear + GELU";
    layers x, y;
    amp_linear_desc *l = x.l;
    contest r[3];
    char work[64], size[64], key[120], *twin, *got;
    int k, n = rounds_of(15);
    amp_array a[ARRAYS];
    snprintf(work, sizeof work, "%s %s, both ways", name, amp_dtype_name(type));
    snprintf(size, sizeof size, "%lux%lu to %lu", (unsigned long)rows, (unsigned long)in, (unsigned long)out);
    for (k = 0; k < ARRAYS; k++) {
        at[k] = total;
        if (k < W2 || block) total += (count[k] * e + 255) & ~(size_t)255;
    }
    if (!make_room(total, work)) return;
    for (k = 0; k < ARRAYS; k++)
        a[k] = amp_arr(src + at[k], type);
    poison(src, total);
    randomize(a[X].data, type, nx, 23, 1.0f);
    randomize(a[W].data, type, nw, 24, 1.0f / sqrtf((float)in));
    randomize(a[B].data, type, out, 25, 1.0f);
    memset(&x, 0, sizeof x);
    x.n = 1 + block;
    l[0].rows = rows;
    l[0].in = in;
    l[0].out = out;
    l[0].act = AMP_GELU;
    l[0].x = a[X];
    l[0].w = a[W];
    l[0].bias = a[B];
    l[0].y = a[Y];
    l[0].aux = a[AUX];
    l[0].dy = a[DY];
    l[0].dx = a[DX];
    l[0].dw = a[DW];
    l[0].dbias = a[DB];
    if (block) {
        randomize(a[W2].data, type, nw, 27, 1.0f / sqrtf((float)out));
        randomize(a[B2].data, type, in, 28, 1.0f);
        l[1].rows = rows;
        l[1].in = out;
        l[1].out = in;
        l[1].x = a[Y];
        l[1].w = a[W2];
        l[1].bias = a[B2];
        l[1].y = a[Y2];
        l[1].dy = a[DY2];
        l[1].dx = a[DY];
        l[1].dw = a[DW2];
        l[1].dbias = a[DB2];
        l[0].after = &l[1];
        l[1].before = &l[0];
    }
    fresh = at[block ? DY2 : DY];
    randomize(dst, type, n_fresh, 26, 1.0f); /* a fresh dy: backward overwrites it where an activation follows */
    r[0] = entry("ours", run_layers, flop);
    r[0].x = &x;
    r[0].before = block ? NULL : restore_dy;
    r[0].src = dst;
    r[0].dst = src + fresh;
    r[0].bytes = n_fresh * e;
    r[0].most = block ? 0 : 8;
    restore_dy(&r[0]);
    twin = (char *)host_copy(src, total); /* the same arrays for the CPU context */
    run_layers(&r[0]);
    got = (char *)host_copy(src, total);
    y = x;
    for (k = 0; k < x.n; k++) {
        amp_linear_desc *c = &y.l[k];
        c->x = moved(c->x, src, twin);
        c->w = moved(c->w, src, twin);
        c->bias = moved(c->bias, src, twin);
        c->y = moved(c->y, src, twin);
        c->aux = moved(c->aux, src, twin);
        c->dy = moved(c->dy, src, twin);
        c->dx = moved(c->dx, src, twin);
        c->dw = moved(c->dw, src, twin);
        c->dbias = moved(c->dbias, src, twin);
    }
    if (block) {
        y.l[0].after = &y.l[1];
        y.l[1].before = &y.l[0];
    }
    r[1] = r[0];
    r[1].ctx = cpu;
    r[1].x = &y;
    run_layers(&r[1]);
    for (k = Y, i = 1; k < (block ? (int)ARRAYS : (int)W2); k++)
        if (k != W2 && k != B2 && k != DY2)
            i &= (size_t)near_each_other(twin + at[k], got + at[k], type, count[k], unit);
    right((int)i, work);
    free(twin);
    free(got);
    snprintf(key, sizeof key, "%s %s %lu %lu %lu eager", block ? "block" : "linear", amp_dtype_name(type),
        (unsigned long)rows, (unsigned long)in, (unsigned long)out);
    r[1] = peer_contest("torch eager", key, flop);
    snprintf(key, sizeof key, "%s %s %lu %lu %lu compiled", block ? "block" : "linear", amp_dtype_name(type),
        (unsigned long)rows, (unsigned long)in, (unsigned long)out);
    r[2] = peer_contest("torch compiled", key, flop);
    compete(r, 3, n, 3e-3);
    (void)row(work, size, TFLOP_S, &r[0], r, 1, n, 0);
    (void)row(work, size, TFLOP_S, &r[0], r + 1, 1, n, 1.3);
    (void)row(work, size, TFLOP_S, &r[0], r + 2, 1, n, 0);
}

#define SQUARES 5
static void part_gemm() {
    static const product large[] = {{512, 512, 512, 0, 0, "square"}, {1024, 1024, 1024, 0, 0, "square"},
        {2048, 2048, 2048, 0, 0, "square"}, {4096, 4096, 4096, 0, 0, "square"}, {8192, 8192, 8192, 0, 0, "square"},
        {8192, 2304, 768, 0, 1, "GPT-2 qkv"}, {8192, 768, 768, 0, 1, "GPT-2 projection"},
        {8192, 3072, 768, 0, 1, "GPT-2 up"}, {8192, 768, 3072, 0, 1, "GPT-2 down"},
        {8192, 50304, 768, 0, 1, "GPT-2 vocabulary"}, {8192, 768, 3072, 0, 0, "GPT-2 up, dx"},
        {3072, 768, 8192, 1, 0, "GPT-2 up, dw"}, {1, 4096, 4096, 0, 1, "skinny"}, {8, 4096, 4096, 0, 1, "skinny"},
        {64, 4096, 4096, 0, 1, "skinny"}, {4096, 64, 4096, 0, 0, "skinny"}, {256, 256, 65536, 0, 0, "deep"}};
    enum { KINDS = 5 };
    static const amp_dtype types[2] = {AMP_F16, AMP_BF16};
    static const kind kinds[KINDS] = {{"f16", "f16", AMP_F16, AMP_F16, 0, 1},
        {"bf16", "bf16", AMP_BF16, AMP_BF16, 0, 1}, {"f32", "f32", AMP_F32, AMP_F32, 0, 0},
        {"f32 with TF32", "tf32", AMP_F32, AMP_F32, AMP_GEMM_TF32, 0},
        {"f8e4m3 to bf16", "f8e4m3", AMP_F8E4M3, AMP_BF16, 0, 0}};
    static double rate[KINDS][SQUARES];
    static char labels[SQUARES][24];
    static const chart_line lines[KINDS] = {{"f16", "#c33", rate[0]}, {"bf16", "#e90", rate[1]},
        {"f32", "#36c", rate[2]}, {"f32 with TF32", "#0a8", rate[3]}, {"f8e4m3", "#93c", rate[4]}};
    mean to_torch = {0, 0, 0}, to_choice = {0, 0, 0}, to_best = {0, 0, 0};
    amp_cuda_desc same = AMP_ZERO;
    char path[512];
    size_t i;
    int t, k;
    lt_bytes = (size_t)32 << 20;
    LT(cublasLtCreate(&lt_handle));
    if (!fine(gpu, amp_alloc(gpu, &lt_workspace, lt_bytes, "bench"), "amp_alloc")) return;
    same.stream = stream; /* its plans are its own, the stream is not */
    if (!fine(NULL, amp_cuda_create(&tuned, &same), "a second context")) return;
    head("Products (anchors: a hand-written cublasLtMatmul with the heuristic's first algorithm, and with the best of "
         "16 by time; torch.matmul)");
    for (t = 0; t < KINDS; t++)
        for (i = 0; i < sizeof large / sizeof *large; i++) {
            product p = large[i];
            double tf;
            if (kinds[t].in == AMP_F32 && (double)p.m * (double)p.n * (double)p.k > 1e11)
                continue;                    /* long, and nothing new */
            if (kinds[t].in == AMP_F8E4M3) { /* x w^T in multiples of 16 is all there is */
                if (p.m < 16 || p.m % 16 || p.trans_a) continue;
                p.trans_b = 1;
            }
            if (bench.tiny) { /* multiples of 16, but for one row */
                p.m = p.m > 512 ? p.m / 128 : p.m > 1 ? 8 : 1;
                p.n = p.n > 512 ? p.n / 128 : 8;
                p.k = p.k > 512 ? p.k / 128 : 8;
                if (p.m > 1) p.m += (0 - p.m) % 16;
                p.n += (0 - p.n) % 16;
                p.k += (0 - p.k) % 16;
            }
            tf = gemm_rows(&kinds[t], &p, &to_torch, &to_choice, &to_best);
            if (i < SQUARES) {
                rate[t][i] = tf;
                snprintf(labels[i], sizeof labels[i], "%lu", (unsigned long)p.m);
            }
        }
    if (to_choice.n)
        row_of("gemm, geometric mean", "all shapes", "x", 1, exp(to_choice.logs / to_choice.n),
            "cublasLt, heuristic's first", 0);
    if (to_best.n)
        row_of("gemm, geometric mean, tuned", "all shapes", "x", 1, exp(to_best.logs / to_best.n),
            "cublasLt, best candidate", 0);
    if (to_torch.n)
        row_of("gemm, geometric mean", "f16 and bf16", "x", 1, exp(to_torch.logs / to_torch.n), "torch.matmul", 1.03);
    if (to_torch.n) row_of("gemm, worst shape", "f16 and bf16", "x", 1, to_torch.worst, "torch.matmul", 0.98);

    head("Host cost of one product, in microseconds (64x64x64 f16)");
    {
        cublasLtMatmulHeuristicResult_t result[CANDIDATES];
        amp_gemm_desc g = AMP_ZERO;
        lt_call call;
        contest r[3];
        int found, rounds = rounds_of(31);
        g.m = g.n = g.k = 64;
        randomize(src, AMP_F16, 2 * 64 * 64, 28, 1.0f);
        g.a = amp_arr(src, AMP_F16);
        g.b = amp_arr(src + 64 * 64 * 2, AMP_F16);
        g.d = amp_arr(dst, AMP_F16);
        found = lt_create(&call, &g, result);
        r[0] = entry("ours", run_gemm, 1);
        r[0].x = &g;
        r[1] = entry("cublasLt, all made before", run_lt, 1);
        r[1].x = &call;
        r[1].failed = !found;
        r[2] = peer_contest("torch.matmul", "matmul-host f16 64 64 64 nn", 1);
        for (k = 0; k < 2; k++) {
            r[k].clock = calling_clock;
            r[k].most = 200;
        } /* fewer than the queue holds: nobody waits */
        compete(r, 3, rounds, 1e-3);
        (void)row("gemm, host cost", "64x64x64", MICROSECONDS, &r[0], r + 1, 1, rounds, 0);
        (void)row("gemm, host cost", "64x64x64", MICROSECONDS, &r[0], r + 2, 1, rounds, 0);
        lt_destroy(&call);
    }
    head("Linear layers, forward and backward (anchor: PyTorch's linear, GELU and autograd)");
    for (t = 0; t < 2; t++) {
        for (k = 0; k < 2; k++) {
            if (bench.tiny) {
                linear_rows(types[t], 16, 24, 32, k);
                continue;
            }
            linear_rows(types[t], 8192, 768, 3072, k);
            linear_rows(types[t], 4096, 4096, 4096, k);
        }
    }
    peer_forget();
    (void)amp_free(gpu, lt_workspace);
    amp_ctx_destroy(tuned);
    LT(cublasLtDestroy(lt_handle));
    if (!bench.out) return;
    snprintf(path, sizeof path, "%s/gpu-gemm.svg", bench.out);
    chart_words words = {"amp_gemm on a GPU, square products", "", "n", "TFLOP/s"};
    if (chart(path, &words, lines, KINDS, labels, SQUARES)) {
        bench.wrong++;
        puts("WRONG: no chart");
    }
}

/* ---- whole steps ---- */

static amp_status open_gpu(amp_ctx **ctx) { return amp_cuda_create(ctx, NULL); }
static int capture_step(train_graph *g) {
    cudaStream_t s = amp_cuda_stream(g->net->ctx);
    CUDA(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    g->exec = capture_end(s, train_step(g->net));
    return right(g->exec != NULL, "a whole step can be captured");
}
static amp_status replay_step(const train_graph *g) {
    CUDA(cudaGraphLaunch((cudaGraphExec_t)g->exec, amp_cuda_stream(g->net->ctx)));
    return AMP_OK;
}
static void forget_step(train_graph *g) { CUDA(cudaGraphExecDestroy((cudaGraphExec_t)g->exec)); }

static void part_train() {
    static const train_device device = {"GPU", open_gpu, capture_step, replay_step, forget_step, 5, 1.3, 1.05};
    static const train_shape large[2] = {{"mlp", 4096, 4096, 4, 0, 0}, {"gpt2", 4096, 768, 12, 50304, 1024}};
    static const train_shape small[2] = {{"mlp", 8, 16, 4, 0, 0}, {"gpt2", 8, 16, 1, 40, 8}};
    int i;
    head("Whole training steps (ratio: how much faster, or less memory, than the anchor)");
    for (i = 0; i < 2; i++)
        train_rows(&device, bench.tiny ? &small[i] : &large[i], bench.tiny ? 6 : 20, rounds_of(11));
}

/* ---- main ---- */

static void warm() { /* clocks up: half a second of copies */
    contest r;
    double t = now();
    if (!make_room(bench.tiny ? 1 << 16 : (size_t)256 << 20, "warming up")) return;
    randomize(src, AMP_F32, room / 4, 30, 1.0f);
    r = copy_of(room);
    do
        (void)event_clock(&r, bench.tiny ? 1 : 50);
    while (!bench.tiny && now() - t < 0.5);
}
static void about() {
    cudaDeviceProp p;
    int driver = 0, runtime = 0, clock = 0, width = 0;
    CUDA(cudaGetDeviceProperties(&p, 0));
    (void)cudaDriverGetVersion(&driver);
    (void)cudaRuntimeGetVersion(&runtime);
    if (cudaDeviceGetAttribute(&clock, cudaDevAttrMemoryClockRate, 0) != cudaSuccess) clock = 0;
    if (cudaDeviceGetAttribute(&width, cudaDevAttrGlobalMemoryBusWidth, 0) != cudaSuccess) width = 0;
    (void)cudaGetLastError();
    printf("%s, sm_%d%d, %d multiprocessors, %.1f GiB, L2 %d MiB", p.name, p.major, p.minor, p.multiProcessorCount,
        (double)p.totalGlobalMem / 1073741824.0, p.l2CacheSize >> 20);
    if (clock && width) printf(", memory %.0f GB/s by its clock", 2.0 * clock * (width / 8) * 1e-6);
    printf("\namp %d.%d.%d; CUDA driver %d.%d, runtime %d.%d, cuBLASLt %lu; ", AMP_VERSION_MAJOR, AMP_VERSION_MINOR,
        AMP_VERSION_PATCH, driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10,
        (unsigned long)cublasLtGetVersion());
#if defined(__CUDACC__)
    printf("nvcc %d.%d.%d; ", __CUDACC_VER_MAJOR__, __CUDACC_VER_MINOR__, __CUDACC_VER_BUILD__);
#else
    printf("executed on the host: its figures mean nothing; ");
#endif
#if defined(BENCH_FLAGS)
    printf("flags: %s; ", BENCH_FLAGS);
#endif
    printf("CPU context: %s%s%s\n", amp_ctx_name(cpu), *bench.peer ? "; peer: " : "", bench.peer);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)();
    } parts[] = {{"casts", part_casts}, {"checks", part_checks}, {"act", part_act}, {"step", part_step},
        {"gemm", part_gemm}, {"train", part_train}};
    const char *part = NULL, *peer = NULL;
    double t = now();
    size_t i;
    int a, bad = 0, known = 0;
    for (a = 1; a < argc; a++) {
        if (!strcmp(argv[a], "--part") && a + 1 < argc)
            part = argv[++a];
        else if (!strcmp(argv[a], "--out") && a + 1 < argc)
            bench.out = argv[++a];
        else if (!strcmp(argv[a], "--peer") && a + 1 < argc)
            peer = argv[++a];
        else if (!strcmp(argv[a], "--tiny"))
            bench.tiny = 1;
        else {
            fprintf(stderr,
                "usage: bench_gpu [--part casts|checks|act|step|gemm|train] [--out DIR] [--peer COMMAND] [--tiny]\n");
            return 2;
        }
    }
    for (i = 0; i < sizeof parts / sizeof *parts; i++)
        known |= part && !strcmp(part, parts[i].name);
    if (part && !known) {
        fprintf(stderr, "bench_gpu: no part %s\n", part);
        return 2;
    }
    peer_open(peer); /* its process starts before CUDA does */
    if (!amp_cuda_available()) {
        puts("bench_gpu needs a CUDA device");
        return 1;
    }
    if (!fine(NULL, amp_cpu_create(&cpu, NULL), "a CPU context") ||
        !fine(NULL, amp_cuda_create(&gpu, NULL), "a CUDA context"))
        return 1;
    stream = amp_cuda_stream(gpu);
    CUDA(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    CUDA(cudaEventCreate(&before));
    CUDA(cudaEventCreate(&after));
    about();
    for (i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (part && strcmp(part, parts[i].name)) continue;
        warm();
        table_begin(parts[i].name, "gpu-");
        parts[i].run();
        fine(gpu, amp_sync(gpu), "the end of a part");
        bad |= table_end();
        bench.rows = bench.met = bench.missed = bench.checked = bench.skipped = bench.wrong = 0;
    }
    peer_close();
    (void)amp_free(gpu, src);
    (void)amp_free(gpu, dst);
    CUDA(cudaEventDestroy(before));
    CUDA(cudaEventDestroy(after));
    amp_ctx_destroy(gpu);
    amp_ctx_destroy(cpu);
    printf("%.0f seconds\n", now() - t);
    return bad;
}
