/* fuzz_programs.c - a random program gives the same bits everywhere: what fuzz.h says.
   The bytes are a program of verbs. It runs with each SIMD path of this machine on 1 to 8 threads and, with FUZZ_CUDA,
   on a CUDA context. What verbs leave (of NaN only that it is one) must be the same to the bit, ordered products too;
   products that are not ordered the same for every number of threads of one path. Guards: >>numerics, >>backend. */
#include "fuzz.h"

/* ---- a run of the program ---- */

#ifdef FUZZ_CUDA
#  define N_MAX 70000u
#else
#  define N_MAX 140000u
#endif
#define N_PARAMS  3u
#define MAX_TRACE 40u

typedef struct place {
    amp_simd simd;
    int32_t threads; /* 0: the CUDA context */
} place;

typedef struct trace { /* after each verb */
    const char *verb[MAX_TRACE];
    uint64_t exact[MAX_TRACE], product[MAX_TRACE];
    unsigned n;
} trace;

static struct {
    amp_ctx *ctx;
    amp_params *p;
    amp_scaler *s;
    amp_params_desc layout;
    amp_optimizer optimizer;
    unsigned char *a, *b, *c; /* context memory, each for N_MAX + 8 floats */
    uint64_t exact, product;
} r;
static unsigned char host[4 * (N_MAX + 8)];

static void must(amp_status st, const char *what) {
    if (st != AMP_OK) fuzz_fail("%s: %s", what, amp_last_error(r.ctx));
}

static const char *place_name(const place *p) {
    static const char *const paths[] = {"auto", "scalar", "sse2", "avx2", "avx512", "neon"};
    static char text[2][40];
    static int next;
    char *to = text[next = !next];
    if (p->threads)
        snprintf(to, sizeof text[0], "%s, %d threads", paths[p->simd], (int)p->threads);
    else
        snprintf(to, sizeof text[0], "cuda");
    return to;
}

/* ---- numbers in, bits out ---- */

static float number(uint32_t kind, uint64_t x) {
    uint32_t low = (uint32_t)x, high = (uint32_t)(x >> 32);
    switch (kind) {
    case 0: return ampi_float(low);
    case 1: return (float)((int)(low % 20001) - 10000) / 8192.0f;
    case 2: return ampi_float((97 + high % 60) << 23 | (low & 0x807fffffu));
    default: break;
    }
    if (high % 20000 == 7) return ampi_float(0x7f800000u | (low & 0x80000000u));
    return (float)((int)(low % 2001) - 1000) / 64.0f;
}
static void fill(void *memory, amp_dtype t, size_t n, uint32_t kind) {
    size_t i;
    fuzz_random_from(fuzz_u32());
    for (i = 0; i < n; i++)
        amp_store(host, t, i, number(kind, fuzz_random()));
    must(amp_copy(r.ctx, memory, host, n * amp_dtype_size(t)), "copy");
}
static void see_u64(uint64_t x) { r.exact = fuzz_hash_u64(r.exact, x); }
static void see_f32(float x) { see_u64(amp_is_nan(x) ? 7 : ampi_bits(x)); }
static void see_f64(double x) {
    uint64_t u;
    memcpy(&u, &x, 8);
    see_u64((u & 0x7fffffffffffffffu) > 0x7ff0000000000000u ? 7 : u);
}
static uint64_t hash_numbers(uint64_t h, const void *memory, amp_dtype t, size_t n) {
    size_t i;
    must(amp_copy(r.ctx, host, memory, n * amp_dtype_size(t)), "copy");
    for (i = 0; i < n; i++) {
        float x = amp_load(host, t, i);
        h = (h ^ (amp_is_nan(x) ? 0x7fc00000u : ampi_bits(x))) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    return h;
}
static void see(const void *memory, amp_dtype t, size_t n) {
    if (memory) r.exact = hash_numbers(r.exact, memory, t, n);
}
static void see_bytes(const void *memory, size_t bytes) {
    if (!memory) return;
    must(amp_copy(r.ctx, host, memory, bytes), "copy");
    r.exact = fuzz_hash(r.exact, host, bytes);
}
static void see_moment(amp_array a) {
    if (a.dtype == AMP_MOMENT_8BIT)
        see_bytes(a.data, a.count); /* codes */
    else
        see(a.data, a.dtype, a.count);
}
static void see_report(const amp_finite_report *q) {
    see_u64(q->nan);
    see_u64(q->inf);
    if (q->nan + q->inf == 0) return;
    see_u64(q->first_array);
    see_u64(q->first_index);
}

static amp_dtype some_dtype(void) { return (amp_dtype)(1 + fuzz_below(5)); }
static size_t some_count(void) {
    static const size_t usual[] = {1, 7, 255, 257, 1000, 2047, 2049, 4097}, large[] = {65535, 65536, 65537, N_MAX};
    if (fuzz_percent(12)) return large[fuzz_below(4)];
    return fuzz_percent(50) ? usual[fuzz_below(8)] : 1 + fuzz_below(6000);
}

/* ---- verbs ---- */

static void do_cast(void) {
    amp_cast_desc d = AMP_ZERO;
    amp_dtype from = some_dtype(), to = some_dtype();
    size_t n = some_count();
    unsigned char *x = r.a + fuzz_below(4) * amp_dtype_size(from), *y = r.b + fuzz_below(4) * amp_dtype_size(to);
    d.rounding = (amp_rounding)fuzz_below(2);
    d.seed = fuzz_byte();
    d.offset = fuzz_byte();
    d.saturate = fuzz_below(2);
    fill(x, from, n, fuzz_below(4));
    must(amp_cast(r.ctx, amp_arr(y, to), amp_arr(x, from), n, &d), "cast");
    see(y, to, n);
}
static void do_inspect_arrays(void) {
    amp_finite_report report;
    amp_histogram h;
    amp_array list[2];
    amp_dtype t = some_dtype();
    size_t n = some_count();
    unsigned char *x = r.a + fuzz_below(4) * amp_dtype_size(t);
    int i;
    fill(x, t, n, fuzz_below(4));
    list[0] = amp_arrn(x, t, n);
    list[1] = amp_arrn(x, t, n / 2 + 1);
    must(amp_all_finite(r.ctx, &report, list, 2), "finite");
    see_report(&report);
    must(amp_histogram_count(r.ctx, &h, list, 2), "histogram");
    see_u64(h.total);
    see_u64(h.zero);
    see_u64(h.inf);
    see_u64(h.nan);
    see_f32(h.amax);
    for (i = 0; i < 256; i++)
        see_u64(h.pow2[i]);
}
static void do_dropout(void) {
    amp_dropout_desc d = AMP_ZERO;
    amp_dtype from = some_dtype(), to = some_dtype();
    d.p = (float)fuzz_below(101) / 100.0f;
    d.count = some_count();
    d.x = amp_arr(r.a + fuzz_below(4) * amp_dtype_size(from), from);
    d.y = amp_arr(r.b, to);
    d.rng.seed = fuzz_byte();
    d.rng.offset = fuzz_byte();
    fill(d.x.data, from, d.count, fuzz_below(4));
    must(amp_dropout(r.ctx, &d), "dropout");
    see(r.b, to, d.count);
}
static void do_xent(void) {
    amp_xent_desc d = AMP_ZERO;
    int32_t labels[64];
    size_t i;
    d.rows = 1 + fuzz_below(64);
    d.classes = 1 + fuzz_below(300);
    d.logits = amp_arr(r.a, some_dtype());
    d.dlogits = amp_arr(r.b, some_dtype());
    d.labels = (const int32_t *)(const void *)r.c;
    d.row_loss = (float *)(void *)(r.c + 256);
    d.loss = (float *)(void *)(r.c + 512);
    d.scaler = r.s;
    d.sum = fuzz_below(2);
    if (fuzz_percent(50)) d.smoothing = 0.1f;
    for (i = 0; i < 64; i++)
        labels[i] = (int32_t)fuzz_below((uint32_t)d.classes + 1) - 1;
    must(amp_copy(r.ctx, r.c, labels, sizeof labels), "copy");
    fill(r.a, d.logits.dtype, d.rows * d.classes, 3);
    must(amp_softmax_cross_entropy(r.ctx, &d), "loss");
    see(r.b, d.dlogits.dtype, d.rows * d.classes);
    see(d.row_loss, AMP_F32, d.rows);
    see(d.loss, AMP_F32, 1);
}

static void see_set(void) {
    amp_step_record q;
    size_t i;
    must(amp_sync(r.ctx), "sync");
    must(amp_step_poll(r.p, &q), "poll");
    see_f32(q.inv_scale);
    see_f32(q.clip);
    see_u64((uint64_t)q.skip << 32 | (uint32_t)q.outcome);
    see_u64(q.nan);
    see_u64(q.inf);
    see_u64(q.overflow);
    if (q.skip) see_u64(q.first_index << 8 | q.first_param);
    see_f32(q.scale);
    see_f64(q.norm);
    see_u64(q.steps);
    see_u64(q.skipped);
    see_u64((uint64_t)q.weight_overflow << 32 | q.window_good << 16 | q.window_bad << 1 | q.window_lost);
    for (i = 0; i < AMP_GROUPS; i++) {
        see_f32(q.rate[i].lr);
        see_f32(q.rate[i].step_size);
        see_f32(q.rate[i].decay);
        see_f32(q.rate[i].rsqrt_bc2);
    }
    for (i = 0; i < N_PARAMS; i++) {
        amp_param e = amp_param_get(r.p, i);
        see(e.master.data, AMP_F32, e.count);
        see(e.model.data, e.model.dtype, e.count);
        see(e.grad.data, e.grad.dtype, e.count);
        see(e.accum.data, AMP_F32, e.count);
        see_moment(e.moment[0]);
        see_moment(e.moment[1]);
        see(e.moment_scale[0].data, AMP_F32, e.moment_scale[0].count);
        see(e.moment_scale[1].data, AMP_F32, e.moment_scale[1].count);
        see_bytes(e.low.data, e.low.count * amp_dtype_size(e.low.dtype));
    }
}
static void new_gradients(void) {
    size_t i, bad = fuzz_percent(25) ? fuzz_below(N_PARAMS) : N_PARAMS;
    for (i = 0; i < N_PARAMS; i++) {
        amp_array g = amp_param_grad(r.p, i);
        fill(g.data, g.dtype, g.count, i == bad ? 3 : 1);
    }
}
static void before_step(void) { /* one of the ways to come to a step */
    uint32_t way = fuzz_below(5);
    if (way == 0) must(amp_clip(r.p, r.s, 0.5f, 0), "clip");
    if (way == 1) must(amp_clip(r.p, r.s, 0, 0.25f), "clip");
    if (way == 2) must(amp_scaler_unscale(r.s, r.p), "unscale");
    if (way != 3 || !r.layout.accumulate) return;
    must(amp_accumulate(r.p, r.s, 1), "accumulate");
    must(amp_scaler_update(r.s), "update");
    new_gradients();
    must(amp_accumulate(r.p, r.s, fuzz_below(2)), "accumulate");
}
static void do_step(void) {
    amp_group groups[2];
    amp_step_desc d = AMP_ZERO;
    double norm;
    memset(groups, 0, sizeof groups);
    groups[0].lr = 0.001f;
    groups[0].momentum = 0.5f;
    groups[1].lr = 0.0001f;
    d.groups = groups;
    d.n_groups = fuzz_below(3);
    d.optimizer = r.optimizer;
    d.lr = 0.01f;
    d.weight_decay = 0.01f;
    d.momentum = 0.9f;
    if (fuzz_percent(50)) d.clip_norm = 1.0f;
    if (fuzz_percent(30)) d.clip_value = 0.01f;
    d.stochastic = r.layout.master <= AMP_MASTER_NONE ? fuzz_below(2) : 0;
    if (r.layout.master == AMP_MASTER_SPLIT8) d.stochastic = d.n_groups % 2u;
    d.seed = 5;
    new_gradients();
    must(amp_grad_norm(r.p, r.s, &norm), "norm");
    see_f64(norm);
    before_step();
    must(amp_step(r.p, r.s, &d), "step");
    see_set();
}
static void do_lists(void) {
    amp_finite_report report;
    amp_scaler_info info;
    amp_array list[N_PARAMS];
    unsigned char *at = r.a;
    size_t i;
    for (i = 0; i < N_PARAMS; i++) {
        list[i] = amp_param_grad(r.p, i);
        list[i].count = list[i].count < N_MAX / N_PARAMS ? list[i].count : N_MAX / N_PARAMS;
        list[i].dtype = AMP_F32;
        list[i].data = at;
        at += 4 * list[i].count;
        must(amp_cast(r.ctx, list[i], amp_param_grad(r.p, i), list[i].count, NULL), "cast");
    }
    must(amp_unscale(r.s, NULL, &report, list, N_PARAMS), "unscale");
    see_report(&report);
    must(amp_scaler_update(r.s), "update");
    for (i = 0; i < N_PARAMS; i++)
        see(list[i].data, AMP_F32, list[i].count);
    must(amp_scaler_get(r.s, &info), "info");
    see_f32(info.scale);
    see_u64((uint64_t)(int64_t)info.growth_tracker);
    see_u64(info.good << 32 | info.bad);
}
static void do_moves(void) {
    if (fuzz_percent(50))
        must(amp_params_master_to_model(r.p), "move");
    else
        must(amp_params_model_to_master(r.p), "move");
    if (fuzz_percent(50)) must(amp_params_zero_grad(r.p), "zero");
    see_set();
}

static uint32_t side(void) { return fuzz_percent(30) ? 1 + fuzz_below(5) : 1 + fuzz_below(90); }
static void product(uint32_t flags) {
    amp_gemm_desc g = AMP_ZERO;
    amp_dtype t = some_dtype(), to = some_dtype();
    uint32_t batch = fuzz_percent(70) ? 1 : 1 + fuzz_below(3);
    g.m = side();
    g.n = side();
    g.k = fuzz_percent(20) ? 250 + fuzz_below(270) : side();
    if (g.k > 90) batch = 1;
    g.batch = batch;
    g.flags = flags;
    g.trans_a = fuzz_below(2);
    g.trans_b = fuzz_below(2);
    g.act = (amp_act)fuzz_below(AMP_ACT_COUNT);
    g.a = amp_arr(r.a, t);
    g.b = amp_arr(r.a + 4 * batch * g.m * g.k, t);
    g.d = amp_arr(r.b, to);
    if (fuzz_percent(30)) g.alpha = amp_opt(0.5f);
    if (fuzz_percent(30)) g.beta = amp_opt(-0.25f);
    if (fuzz_percent(40)) g.bias = amp_arr(r.c, AMP_F32);
    fill(r.a, t, batch * g.m * g.k, 1);
    fill(g.b.data, t, batch * g.k * g.n, 1);
    fill(r.b, to, batch * g.m * g.n, 1);
    fill(r.c, AMP_F32, g.n, 1);
    must(amp_gemm(r.ctx, &g), "product");
    if (flags & AMP_GEMM_ORDERED)
        see(r.b, to, batch * g.m * g.n);
    else
        r.product = hash_numbers(r.product, r.b, to, batch * g.m * g.n);
}
static void do_ordered(void) { product(AMP_GEMM_ORDERED); }
#ifndef FUZZ_CUDA
static void do_product(void) { product(0); }
#endif
static void do_layer(void) {
    amp_linear_desc l = AMP_ZERO;
    amp_dtype t = (amp_dtype)(1 + fuzz_below(3));
    unsigned char *at = r.a;
    size_t size = amp_dtype_size(t), area = 4 * 90 * 90;
    l.rows = side();
    l.in = side();
    l.out = side();
    l.flags = AMP_GEMM_ORDERED;
    l.act = (amp_act)fuzz_below(AMP_ACT_COUNT);
    l.accumulate = fuzz_below(2);
    l.x = amp_arr(at, t);
    l.w = amp_arr(at += area, t);
    l.dy = amp_arr(at += area, t);
    l.bias = amp_arr(at + area, AMP_F32);
    at = r.b;
    l.y = amp_arr(at, t);
    l.aux = amp_arr(at += area, t);
    l.dx = amp_arr(at += area, t);
    l.dw = amp_arr(at + area, fuzz_percent(50) ? t : AMP_F32);
    l.dbias = amp_arr(r.c, AMP_F32);
    fill(l.x.data, t, l.rows * l.in, 1);
    fill(l.w.data, t, l.out * l.in, 1);
    fill(l.dy.data, t, l.rows * l.out, 1);
    fill(l.bias.data, AMP_F32, l.out, 1);
    fill(l.dw.data, l.dw.dtype, l.out * l.in, 1);
    fill(l.dbias.data, AMP_F32, l.out, 1);
    (void)size;
    must(amp_linear_forward(r.ctx, &l), "forward");
    must(amp_linear_backward(r.ctx, &l), "backward");
    see(l.y.data, t, l.rows * l.out);
    see(l.dy.data, t, l.rows * l.out);
    see(l.dx.data, t, l.rows * l.in);
    see(l.dw.data, l.dw.dtype, l.out * l.in);
    see(l.dbias.data, AMP_F32, l.out);
}

static void do_column_sums(void) {
    amp_dtype from = some_dtype(), to = some_dtype();
    size_t rows = side(), cols = side(), ld = cols + fuzz_below(5);
    uint32_t add = fuzz_below(2);
    fill(r.a, from, rows * ld, fuzz_below(4));
    fill(r.b, to, cols, 1);
    must(amp_column_sums(r.ctx, amp_arr(r.b, to), amp_arr(r.a, from), rows, cols, ld, add), "column sums");
    see(r.b, to, cols);
}
static void do_activation(void) {
    amp_activation_desc d = AMP_ZERO;
    amp_dtype to = some_dtype();
    d.act = (amp_act)(1 + fuzz_below(AMP_ACT_COUNT - 1));
    d.count = some_count();
    d.x = amp_arr(r.a, some_dtype());
    d.y = amp_arr(r.b, to);
    fill(r.a, d.x.dtype, d.count, fuzz_below(4));
    must(amp_activation(r.ctx, &d), "activation");
    see(r.b, to, d.count);
    d.dy = amp_arr(r.c, some_dtype());
    d.dx = amp_arr(r.c, AMP_AUTO);
    fill(r.c, d.dy.dtype, d.count, fuzz_below(4));
    must(amp_activation(r.ctx, &d), "activation, backward");
    see(r.c, d.dy.dtype, d.count);
}
static void do_quantize(void) {
    amp_fp8_desc d = AMP_ZERO;
    amp_fp8_info info;
    amp_fp8 *f = NULL;
    amp_dtype from = (amp_dtype)(1 + fuzz_below(3)), to = (amp_dtype)(AMP_F8E4M3 + fuzz_below(2));
    size_t rows = side(), cols = side();
    uint32_t i, times = 1 + fuzz_below(3);
    d.history = fuzz_below(4);
    d.margin = fuzz_below(3);
    d.power_of_two = fuzz_below(2);
    must(amp_fp8_create(&f, r.ctx, &d), "scales");
    for (i = 0; i < times; i++) {
        fill(r.a, from, rows * cols, 1 + fuzz_below(3));
        must(
            amp_quantize(f, 1, amp_arr(r.b, to), amp_arr(r.c, to), amp_arr(r.a, from), rows, cols, i == 2), "quantize");
        see(r.b, to, rows * cols);
        see(r.c, to, rows * cols);
        must(amp_fp8_get(f, 1, &info), "info");
        see_f32(info.scale);
        see_f32(info.amax);
        see_f32(info.largest);
    }
    amp_fp8_destroy(f);
}

/* ---- the program ---- */

static const struct {
    const char *name;
    void (*fn)(void);
} verbs[] = {{"cast", do_cast}, {"finite and histogram", do_inspect_arrays}, {"dropout", do_dropout},
    {"cross-entropy", do_xent}, {"step", do_step}, {"step", do_step}, {"step", do_step}, {"lists", do_lists},
    {"moves", do_moves}, {"quantize", do_quantize}, {"column sums", do_column_sums}, {"activation", do_activation},
    {"ordered product", do_ordered}, {"layer", do_layer},
#ifndef FUZZ_CUDA
    {"product", do_product}
#endif
};
#define N_VERBS (sizeof verbs / sizeof verbs[0])

static void new_set(void) {
    static const size_t counts[] = {1, 7, 1000, 2049, 65535, 65536, 65537, 300, 5000, 64, 33, 4096};
    static float init[65537];
    size_t i, k;
    r.layout.model = (amp_dtype)(1 + fuzz_below(3));
    r.layout.grad = some_dtype();
    r.layout.master = (amp_master)fuzz_below(4);
    if (r.layout.master == AMP_MASTER_KAHAN) r.layout.model = AMP_BF16;
    if (r.layout.master == AMP_MASTER_SPLIT && r.layout.model == AMP_F32) r.layout.model = AMP_F16;
    if (r.layout.master == AMP_MASTER_SPLIT && r.layout.grad != AMP_F16) r.layout.master = AMP_MASTER_SPLIT8;
    r.layout.moment = fuzz_percent(50) ? AMP_F32 : fuzz_percent(50) ? AMP_BF16 : AMP_MOMENT_8BIT;
    r.layout.accumulate = fuzz_below(2);
    must(amp_params_create(&r.p, r.ctx, &r.layout), "create");
    for (i = 0; i < N_PARAMS; i++) {
        amp_param_desc d = AMP_ZERO;
        d.count = counts[fuzz_below(12)];
        d.keep_f32 = (uint32_t)fuzz_percent(25);
        d.group = fuzz_below(3);
        d.no_decay = fuzz_below(2);
        d.init = init;
        fuzz_random_from(fuzz_u32());
        for (k = 0; k < d.count; k++)
            init[k] = number(1, fuzz_random());
        must(amp_params_add(r.p, &d), "add");
    }
    must(amp_params_commit(r.p), "commit");
}
static amp_status new_context(const place *p) {
    amp_cpu_desc d = AMP_ZERO;
#ifdef FUZZ_CUDA
    if (!p->threads) return amp_cuda_create(&r.ctx, NULL);
#endif
    d.threads = p->threads;
    d.simd = p->simd;
    return amp_cpu_create(&r.ctx, &d);
}
static unsigned char *new_memory(void) {
    void *p = NULL;
    must(amp_alloc(r.ctx, &p, sizeof host, NULL), "alloc");
    must(amp_zero(r.ctx, p, sizeof host), "zero");
    return (unsigned char *)p;
}
static void end_run(void) {
    amp_ledger_row row = AMP_ZERO;
    amp_scaler_destroy(r.s);
    amp_params_destroy(r.p);
    must(amp_free(r.ctx, r.a), "free");
    must(amp_free(r.ctx, r.b), "free");
    must(amp_free(r.ctx, r.c), "free");
    if (amp_ledger(r.ctx, &row, 1, "total") && row.bytes) fuzz_fail("the ledger has bytes left");
    amp_ctx_destroy(r.ctx);
}
/* Runs the program from its first byte; 0: this machine has no such place. */
static int run_on(const place *p, trace *t) {
    amp_scaler_desc s = AMP_ZERO;
    amp_status st;
    fuzz.at = 0;
    memset(&r, 0, sizeof r);
    t->n = 0;
    st = new_context(p);
    if (st == AMP_ERR_UNSUPPORTED) return 0;
    if (st != AMP_OK) fuzz_fail("no context: %s", amp_strerror(st));
    fuzz_where("on %s, begin", place_name(p));
    r.a = new_memory();
    r.b = new_memory();
    r.c = new_memory();
    new_set();
    s.scale = 256.0f;
    s.growth_interval = 3;
    must(amp_scaler_create(&r.s, r.ctx, &s), "scaler");
    r.optimizer = (amp_optimizer)fuzz_below(AMP_OPTIMIZER_COUNT);
    while (fuzz_left() && t->n < MAX_TRACE) {
        size_t k = fuzz_below(N_VERBS);
        fuzz_where("on %s, verb %u, %s", place_name(p), t->n, verbs[k].name);
        verbs[k].fn();
        t->verb[t->n] = verbs[k].name;
        t->exact[t->n] = r.exact;
        t->product[t->n++] = r.product;
    }
    end_run();
    return 1;
}
static void compare(const place *a, const trace *ta, const place *b, const trace *tb, int products) {
    unsigned i;
    if (ta->n != tb->n) fuzz_fail("the program is not the same");
    for (i = 0; i < ta->n; i++) {
        if (ta->exact[i] == tb->exact[i] && (!products || ta->product[i] == tb->product[i])) continue;
        fuzz_where("verb %u, %s", i, ta->verb[i]);
        fuzz_fail("different bits on %s and on %s", place_name(a), place_name(b));
    }
}

static unsigned long runs;
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static const int32_t threads[] = {2, 3, 5, 8, 4, 7, 1, 6};
    static trace first, other, of_path;
    place at = {AMP_SIMD_SCALAR, 1}, p, q;
    uint64_t draw;
    int i;
    fuzz_begin(data, n);
    draw = fuzz_hash(1, data, n);
    if (!run_on(&at, &first)) fuzz_fail("no portable path");
    runs++;
#ifdef FUZZ_CUDA
    p.simd = AMP_SIMD_AUTO;
    p.threads = 0;
    (void)run_on(&p, &other);
    compare(&at, &first, &p, &other, 0);
    runs++;
    (void)i;
    (void)q;
    (void)draw;
    (void)threads;
    (void)of_path;
#else
    for (i = AMP_SIMD_SSE2; i <= AMP_SIMD_NEON; i++) {
        p.simd = (amp_simd)i;
        p.threads = threads[(draw >> 8 * i) % 8];
        if (!run_on(&p, &of_path)) continue;
        runs++;
        compare(&at, &first, &p, &of_path, 0);
        if (draw >> (40 + i) & 1) continue;
        q = p;
        q.threads = threads[(draw >> 8 * i) / 8 % 8];
        (void)run_on(&q, &other);
        runs++;
        compare(&p, &of_path, &q, &other, 1);
    }
    if (draw % 4) return 0;
    p.simd = AMP_SIMD_SCALAR;
    p.threads = 3;
    (void)run_on(&p, &other);
    runs++;
    compare(&at, &first, &p, &other, 1);
#endif
    return 0;
}

#ifndef FUZZ_LIBFUZZER
static void print_counts(void) { fprintf(stderr, "the programs ran %lu times\n", runs); }
int main(int argc, char **argv) {
    if (atexit(print_counts) != 0) return 2;
    return fuzz_main(argc, argv, 1000);
}
#endif
