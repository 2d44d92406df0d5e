/* gpt.c - a GPT-2-shaped transformer on the characters of Shakespeare, trained in six precisions, on a CPU or a GPU.
 *
 *     make build/gpt build/shakespeare.txt && build/gpt                          (--help lists the options)
 *     nvcc -O2 -arch=native -x cu -I. examples/gpt.c -lcublasLt -o gpt_cuda      (the same file, for a GPU)
 *
 * Products, losses and optimizer steps are amp's verbs. What else a transformer needs stands in gpt_rows.h, each layer
 * written once, for a loop of the CPU and a kernel of the GPU. gpt_params.h and gpt_net.h make the network of both:
 * read them first. gpt_text.h: what goes in and comes out. Here is what is tried and measured: runs, table, pictures.
 * gpt_check.h: is it right?
 *
 * Text: plays by William Shakespeare, in the selection "tiny shakespeare" of A. Karpathy (char-rnn, 2015).
 */
#if !defined(_WIN32) && !defined(_POSIX_C_SOURCE)
#  define _POSIX_C_SOURCE 200809L /* clock_gettime, isatty, mkdir */
#endif
#if defined(__CUDACC__) || defined(AMP_HOSTCUDA) /* nvcc, or the tests' runtime that executes CUDA on a CPU */
#  define WITH_CUDA
#endif
#ifndef AMP_LINKED /* with it, amp's code comes from other objects */
#  define AMP_IMPLEMENTATION
#  ifdef WITH_CUDA
#    define AMP_CUDA_IMPLEMENTATION
#  endif
#endif
#ifdef WITH_CUDA
#  include "amp_cuda.cuh"
#endif
#include "amp.h"

#define PROGRAM "gpt"
#include "program.h" /* fail, must, allocate, claim */

#include "gpt_net.h"     /* the network: parameters, forward, backward */
#include "gpt_text.h"    /* what it reads and writes */
#include "plot_beside.h" /* the pictures */
#include "plot_gradients.h"

#include <errno.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ==== the experiment ============================================================================================== */

enum { MAX_SEEDS = 16 };
#define FIRST_SCALE  65536.0f /* of the dynamic scale */
#define STATIC_SCALE 4096.0f
#define GROWTH       200  /* good steps before the dynamic scale doubles; amp.h's 2000 is for longer runs */
#define CLIP         1.0f /* of the gradients' norm */
#define BETA1        0.9f

/* shakespeare: the sizes and the schedule of nanoGPT's configuration for a CPU, which is published with a loss of 1.88;
   there the head is tied and layers have no biases (--tied --biases 0). gpt2-124m: for a GPU; the vocabulary of 50,257
   is rounded up, as products like it. */
enum { SHAKESPEARE, GPT2_124M, SHAPES };
static const gpt_shape shapes[SHAPES] = {
    {"shakespeare", 4, 4, 128, 64, 12, 0, 1, 0, 2000, 100, 1e-3, 1e-4, 0.99, 0.1, 0.02, 0, 0, 0, AMP_F32, AMP_GELU,
        AMP_AUTO},
    {"gpt2-124m", 12, 12, 768, 1024, 4, 50304, 1, 1, 20, 10, 6e-4, 6e-5, 0.95, 0.1, 0.02, 0, 0, 0, AMP_F32, AMP_GELU,
        AMP_AUTO},
};

enum { FP32, BF16, FP16_DYNAMIC, FP16_STATIC, SPLIT, FP16, IN_ALL, FP8 = IN_ALL, SPLIT8, SPLIT8_STOCHASTIC, MODES };
typedef char every_mode_has_a_style[(int)MODES <= PLOT_MAX ? 1 : -1];
static const gpt_mode modes[MODES] = {
    {"fp32", AMP_F32, AMP_MASTER_F32, AMP_SCALER_OFF, 0, 0, 0, 0},
    {"bf16", AMP_BF16, AMP_MASTER_F32, AMP_SCALER_OFF, 0, 0, 0, 0},
    {"fp16-dynamic", AMP_F16, AMP_MASTER_F32, AMP_SCALER_DYNAMIC, FIRST_SCALE, GROWTH, 0, 0},
    {"fp16-static", AMP_F16, AMP_MASTER_F32, AMP_SCALER_STATIC, STATIC_SCALE, GROWTH, 0, 0},
    {"split", AMP_F16, AMP_MASTER_SPLIT, AMP_SCALER_DYNAMIC, FIRST_SCALE, GROWTH, 0,
        0},                                                        /* 16 + 16 bits, no FP32 masters */
    {"fp16", AMP_F16, AMP_MASTER_F32, AMP_SCALER_OFF, 0, 0, 0, 0}, /* without loss scaling: what happens then? */
    {"fp8", AMP_BF16, AMP_MASTER_F32, AMP_SCALER_OFF, 0, 0, 16,
        0}, /* BF16; the blocks' products read FP8: docs/fp8.md */
    {"split8", AMP_BF16, AMP_MASTER_SPLIT8, AMP_SCALER_OFF, 0, 0, 0, 0}, /* 16 + 8 bits, to nearest */
    {"split8-stochastic", AMP_BF16, AMP_MASTER_SPLIT8, AMP_SCALER_OFF, 0, 0, 0, 1},
};

#ifndef CLOCK_PROCESS_CPUTIME_ID /* WebAssembly has none */
#  define CLOCK_PROCESS_CPUTIME_ID CLOCK_MONOTONIC
#endif
static int cpu_time; /* --cpu-time: of the process, all threads, for machines that do something else besides */
static double seconds(void) {
    struct timespec t;
    clock_gettime(cpu_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static uint64_t ledger_bytes(const amp_ctx *ctx, const char *label) { /* 0 if the label was never used */
    amp_ledger_row row = AMP_ZERO;
    (void)amp_ledger(ctx, &row, 1, label);
    return row.bytes;
}

/* ==== one run ===================================================================================================== */

typedef struct options {
    gpt_shape s;
    int run[MODES], tied, check, ordered;
    size_t chunks, seeds, threads, sample, seed;
    const char *data, *out, *device, *draw;
} options;

typedef struct result {
    double validation, training, seconds, peak_flops, peak_bytes, step_flops,
        step_bytes; /* training: mean loss of the last 100 steps */
    float scale;
    double squares;         /* the largest sum of squares in the first layer norm */
    uint64_t skipped, hash; /* hash: of the bits of all weights, if --ordered */
    float *losses, *scales;
    unsigned char *skips;
    char *sample;
    size_t steps, timed, parameters;
    amp_plan plan, held; /* bytes: planned, and found in the ledger */
    uint64_t model;      /* of these: masters, model copies, gradients, moments */
    int as_planned;
    amp_histogram seen[SEEN];
} result;

/* What the machine can do, by this context: products of one dtype, n x n x n, and bytes copied. The best of some tries;
   n grows until a product takes 2 ms. */
static double best_product(amp_ctx *ctx, amp_dtype t, size_t n, void *in, void *out) {
    amp_gemm_desc d = AMP_ZERO;
    double best = 1e30, start;
    int i;
    d.m = d.n = d.k = n;
    d.trans_b = 1;
    d.a = d.b = amp_arr(in, t);
    d.d = amp_arr(out, t);
    for (i = 0; i < 5; i++) {
        start = seconds();
        must(ctx, amp_gemm(ctx, &d));
        must(ctx, amp_sync(ctx));
        if (seconds() - start < best) best = seconds() - start;
    }
    return best;
}
static double best_copy(amp_ctx *ctx, size_t bytes, const void *in, void *out) {
    double best = 1e30, start;
    int i;
    for (i = 0; i < 5; i++) {
        start = seconds();
        must(ctx, amp_copy_async(ctx, out, in, bytes));
        must(ctx, amp_sync(ctx));
        if (seconds() - start < best) best = seconds() - start;
    }
    return best;
}
static void measure_peaks(amp_ctx *ctx, amp_dtype t, double *flops, double *bytes) {
    double took = 0;
    size_t n, copied;
    void *in, *out;
    for (n = 128; n < 8192 && took < 2e-3;) {
        n *= 2;
        copied = n * 131072; /* 32 MiB and more: beyond the caches */
        must(ctx, amp_alloc(ctx, &in, copied, "peaks"));
        must(ctx, amp_alloc(ctx, &out, copied, "peaks"));
        must(ctx, amp_zero(ctx, in, copied));
        took = best_product(ctx, t, n, in, out);
        *flops = 2.0 * (double)n * (double)n * (double)n / took;
        *bytes = 2.0 * (double)copied / best_copy(ctx, copied, in, out);
        must(ctx, amp_free(ctx, in));
        must(ctx, amp_free(ctx, out));
    }
}

/* What gpt_create will ask for, before it does: the set, and what backward needs. */
static amp_plan plan_memory(amp_ctx *ctx, const gpt_shape *s, const gpt_mode *m, int tied, size_t chunks) {
    enum { PARTS = 8 };
    size_t c = s->width, rows = s->batch * s->context, i, n = 0;
    amp_plan_layer *l = (amp_plan_layer *)allocate(s->layers * PARTS + 4, sizeof *l);
    amp_params_desc layout = AMP_ZERO;
    amp_policy_desc twin = AMP_ZERO;
    amp_policy policy;
    amp_plan plan;
    layout.model = m->t;
    layout.master = m->master;
    layout.moment = s->moment;
    twin.low = m->t == AMP_BF16 ? AMP_BF16 : AMP_F16;
    must(ctx, amp_policy_init(ctx, &policy, m->t == AMP_F32 ? AMP_O0 : AMP_O3, &twin)); /* all in one dtype */
    l[n].weight = s->vocab * c;
    l[n].bias = s->context * c;
    l[n++].saved = rows * c;
    for (i = 0; i < s->layers * 2 + 1; i++, n += 2) { /* norms: gain and bias stay FP32; mean and rstd are saved */
        l[n].bias = c;
        l[n + 1].bias = s->biases * c;
        l[n].keep_bias = l[n + 1].keep_bias = m->t != AMP_F32;
        l[n].saved = rows * c;
        l[n].saved_f32 = 2 * rows;
    }
    for (i = 0; i < s->layers; i++, n += 4) {
        l[n].weight = 3 * c * c;
        l[n].bias = s->biases * 3 * c;
        l[n].saved = rows * (3 * c + s->heads * s->context + c); /* heads, probabilities, what proj reads */
        l[n + 1].weight = c * c;
        l[n + 1].bias = s->biases * c;
        l[n + 1].saved = rows * c;
        l[n + 2].weight = 4 * c * c;
        l[n + 2].bias = s->biases * 4 * c;
        l[n + 2].saved = (s->act == AMP_GELU && s->aux == AMP_AUTO ? 2 : 1) * rows * 4 * c; /* after, and before GELU */
        if (s->act == AMP_RELU) l[n + 2].saved_bits = 8 * rows * mask_bytes(4 * c);
        if (s->act == AMP_GELU && s->aux != AMP_AUTO) l[n + 2].saved_bits = 8 * rows * 4 * c;
        l[n + 3].weight = 4 * c * c;
        l[n + 3].bias = s->biases * c;
        l[n + 3].saved = rows * c;
    }
    if (!tied) l[n].weight = s->vocab * c;
    l[n].saved = rows_at_once(s, chunks) * s->vocab;
    if (m->t != AMP_F32 && rows_at_once(s, chunks) < rows) l[n].saved_f32 = s->vocab * c; /* where dw is added up */
    n++;
    for (i = 0; i < n; i++)
        l[i].op = AMP_OP_LINEAR;
    must(ctx, amp_plan_memory(&plan, &policy, &layout, l, n, m->t));
    free(l);
    return plan;
}
static void compare_plan(const gpt *g, result *r) {
    amp_plan *h = &r->held;
    const amp_plan *p = &r->plan;
    h->master = ledger_bytes(g->ctx, "params.master");
    h->model = ledger_bytes(g->ctx, "params.model");
    h->grad = ledger_bytes(g->ctx, "params.grad");
    h->moments = ledger_bytes(g->ctx, "params.moments");
    h->saved = ledger_bytes(g->ctx, "activations") + ledger_bytes(g->ctx, "logits");
    r->model = h->master + h->model + h->grad + h->moments;
    r->as_planned = h->master == p->master && h->model == p->model && h->grad == p->grad && h->moments == p->moments &&
        h->saved >= p->saved && h->saved - p->saved < 512; /* what the head needs is a multiple of 256 */
}

static double learning_rate(const gpt_shape *s, size_t step) { /* up in a line, then down along a cosine */
    double way = (double)(step - s->warmup) / (double)(s->steps > s->warmup ? s->steps - s->warmup : 1);
    if (step < s->warmup) return s->lr * (double)(step + 1) / (double)(s->warmup + 1);
    return s->min_lr + 0.5 * (1 + cos(0.5 * TWO_PI * way)) * (s->lr - s->min_lr);
}
static void look_at_params(gpt *g) { /* gradients of weights by kind, over all blocks */
    static const int kinds[5] = {N1, QKV, PROJ, UP, DOWN};
    size_t row = SEEN_BLOCKS + g->s.layers * SEEN_PER_BLOCK, i, k;
    look(g, row, grad(g, WTE), grad(g, WTE).count);
    look(g, row + 1, grad(g, WPE), grad(g, WPE).count);
    for (k = 0; k < 5; k++)
        for (i = 0; i < g->s.layers; i++) {
            amp_array a = grad(g, BLOCKS + i * PER_BLOCK + (size_t)kinds[k]);
            look(g, row + 2 + k, a, a.count);
        }
}

static struct progress {
    size_t done, total;
    double start, shown;
} progress;
/* On stderr, so that the table stays whole. */
static void show_progress(const char *mode, uint64_t seed, size_t step, size_t steps, double loss, float scale) {
    double now = seconds(), left = (now - progress.start) / (double)progress.done;
    int last = step == steps, terminal = isatty(2) != 0, due = step % (steps / 4 + 1) == 0;
    left *= (double)(progress.total - progress.done);
    if (terminal) due = now - progress.shown >= 0.2; /* in place, so often */
    if (!due && !last) return;
    progress.shown = now;
    fprintf(stderr, "%s%-12s seed %lu  %5lu/%lu  loss %-7.4f scale 2^%-3.0f %5.0f s left%s", terminal ? "\r" : "", mode,
        (unsigned long)seed, (unsigned long)step, (unsigned long)steps, loss, log2((double)scale), left,
        terminal ? "  \r" : "\n");
}

static double largest_squares(gpt *g) { /* of the rows that the first layer norm has read */
    size_t c = g->s.width, row, i;
    const layer_norm *n = &g->b[0].n1;
    void *x = allocate(g->rows * c, amp_dtype_size(g->t));
    double most = 0;
    must(g->ctx, amp_copy(g->ctx, x, n->x.data, g->rows * c * amp_dtype_size(g->t)));
    for (row = 0; row < g->rows; row++) {
        double mean = 0, sum = 0;
        for (i = 0; i < c; i++)
            mean += (double)amp_load(x, g->t, row * c + i) / (double)c;
        for (i = 0; i < c; i++)
            sum += pow((double)amp_load(x, g->t, row * c + i) - mean, 2.0);
        if (sum > most) most = sum;
    }
    free(x);
    return most;
}
static void train(gpt *g, const text *t, const gpt_mode *m, uint64_t seed, result *r) {
    amp_step_desc d = AMP_ZERO;
    amp_step_record record = AMP_ZERO;
    size_t steps = g->s.steps, every = steps / 20 + 2, step;
    double step_bytes = (double)r->plan.grad + (double)r->plan.model + 2 * (double)(r->plan.master + r->plan.moments);
    d.beta1 = amp_opt(BETA1);
    d.beta2 = amp_opt((float)g->s.beta2);
    d.weight_decay = (float)g->s.decay;
    d.clip_norm = CLIP;
    d.stochastic = m->stochastic;
    for (step = 0; step < steps; step++) {
        int looking = m->scaling == AMP_SCALER_OFF && m->t != AMP_F16 && t->n && step % every == every / 2;
        double start = seconds();
        g->flops = g->bytes = 0;
        if (looking) g->seen = r->seen;
        draw_batch(g, t, seed, step);
        gpt_forward(g, 1);
        gpt_backward(g);
        if (looking) look_at_params(g);
        d.lr = (float)learning_rate(&g->s, step);
        must(g->ctx, amp_step(g->params, g->scaler, &d));
        count(g, 0, step_bytes / (double)amp_dtype_size(g->t));
        /* what happened: these wait for the device; a loop in a hurry asks for them less often */
        r->losses[step] = (float)gpt_loss(g);
        must(g->ctx, amp_step_poll(g->params, &record));
        r->seconds += looking ? 0 : seconds() - start;
        r->timed += !looking;
        g->seen = NULL;
        r->scales[step] = record.scale;
        r->skips[step] = record.outcome != AMP_STEPPED;
        progress.done++;
        show_progress(m->name, seed, step + 1, steps, (double)r->losses[step], record.scale);
    }
    r->skipped = record.skipped;
    r->scale = record.scale;
}
static void result_free(result *r) {
    free(r->losses);
    free(r->scales);
    free(r->skips);
    free(r->sample);
    memset(r, 0, sizeof *r);
}
static void run(amp_ctx *ctx, const options *o, const text *t, const gpt_mode *m, uint64_t seed, result *r) {
    static gpt g;
    size_t steps = o->s.steps, i, last;
    memset(r, 0, sizeof *r);
    r->steps = steps;
    r->losses = (float *)allocate(steps, sizeof *r->losses);
    r->scales = (float *)allocate(steps, sizeof *r->scales);
    r->skips = (unsigned char *)allocate(steps, 1);
    r->plan = plan_memory(ctx, &o->s, m, o->tied, o->chunks);
    gpt_create(&g, ctx, &o->s, m, o->tied, o->chunks, seed);
    for (i = 0; i < amp_params_count(g.params); i++)
        r->parameters += amp_param_get(g.params, i).count;
    compare_plan(&g, r);
    measure_peaks(ctx, m->t, &r->peak_flops, &r->peak_bytes);
    train(&g, t, m, seed, r);
    r->squares = largest_squares(&g);
    if (o->ordered) r->hash = weights_hash(g.ctx, g.params);
    r->step_flops = g.flops;
    r->step_bytes = g.bytes;
    last = steps < 100 ? steps : 100;
    r->training = plot_mean(r->losses, steps - last, steps);
    if (t->n) r->validation = validate(&g, t);
    if (t->n && o->sample) r->sample = write_sample(&g, t, o->sample, seed);
    gpt_destroy(&g);
}

/* ==== what came out =============================================================================================== */

static void print_head(const options *o, const result *r) {
    printf(
        "A GPT of %d layers, %d heads, %d wide, context %d, batch %d: %lu parameters, %s head. %.2f GFLOP in a step.\n"
        "FLOP, bytes: a step's operations, and bytes read and written once, at the peaks that this run measured (the\n"
        "first mode's: %.1f GFLOP/s, %.1f GB/s), as a share of its time.\n\n",
        (int)o->s.layers, (int)o->s.heads, (int)o->s.width, (int)o->s.context, (int)o->s.batch,
        (unsigned long)r->parameters, o->tied ? "tied" : "own", r->step_flops / 1e9, r->peak_flops / 1e9,
        r->peak_bytes / 1e9);
    printf("%-13s %4s %10s %9s %7s %6s %9s %8s %6s %6s %9s %9s  %s\n", "mode", "seed", "validation", "training",
        "skipped", "scale", "tokens/s", "ms/step", "FLOP", "bytes", "model MiB", "saved MiB", "memory");
}
static void print_run(const options *o, const gpt_mode *m, uint64_t seed, const result *r) {
    double step = r->seconds / (double)r->timed, tokens = (double)(o->s.batch * o->s.context), mib = 1048576;
    char scale[16] = "-", validation[16] = "";
    if (m->scaling != AMP_SCALER_OFF) sprintf(scale, "2^%.0f", log2((double)r->scale));
    if (r->validation > 0 || r->validation < 0) snprintf(validation, sizeof validation, "%.4f", r->validation);
    printf("%-13s %4lu %10s %9.4f %7lu %6s %9.0f %8.1f %5.0f%% %5.0f%% %9.1f %9.1f  %s\n", m->name, (unsigned long)seed,
        validation, r->training, (unsigned long)r->skipped, scale, tokens / step, 1000 * step,
        100 * r->step_flops / r->peak_flops / step, 100 * r->step_bytes / r->peak_bytes / step, (double)r->model / mib,
        (double)r->held.saved / mib, r->as_planned ? "as planned" : "NOT as planned");
    if (o->ordered)
        printf("%-13s %4lu weights after the last step, on every machine: %08lx%08lx\n", m->name, (unsigned long)seed,
            (unsigned long)(r->hash >> 32), (unsigned long)(r->hash & 0xffffffffu));
    if (o->s.norm_f16 || o->s.softmax_f16 || o->s.embed)
        printf(
            "%-13s %4lu inside layer norm %s, softmax %s; squares in the first norm: up to %.4g, FP16 ends at 65504\n",
            m->name, (unsigned long)seed, o->s.norm_f16 ? "FP16" : "FP32", o->s.softmax_f16 ? "FP16" : "FP32",
            r->squares);
    fflush(stdout);
}
static void print_memory(const options *o, const result *all) { /* the first seed's */
    const double mib = 1048576;
    int m;
    printf("\nMemory in MiB: planned before anything was allocated, and what the ledger says\n"
           "%-13s %17s %17s %17s %17s %17s\n",
        "", "masters", "model copies", "gradients", "moments", "for backward");
    for (m = 0; m < MODES; m++) {
        const amp_plan *p = &all[m * MAX_SEEDS].plan, *h = &all[m * MAX_SEEDS].held;
        if (!o->run[m]) continue;
        printf("%-13s %8.2f %8.2f %8.2f %8.2f %8.2f %8.2f %8.2f %8.2f %8.2f %8.2f\n", modes[m].name,
            (double)p->master / mib, (double)h->master / mib, (double)p->model / mib, (double)h->model / mib,
            (double)p->grad / mib, (double)h->grad / mib, (double)p->moments / mib, (double)h->moments / mib,
            (double)p->saved / mib, (double)h->saved / mib);
    }
    printf("FP32 in every mode: inside %s%sloss; gains and biases of norms; sums inside products.\n",
        o->s.norm_f16 ? "" : "layer norm, ", o->s.softmax_f16 ? "" : "softmax and ");
}
/* Means over the seeds, and whether they are where they should be. */
static void print_means(const options *o, const result *all) {
    double mean[MODES];
    int m, i, j, seeds = (int)o->seeds;
    printf("\nMeans over %d seeds\n", seeds);
    for (m = 0; m < MODES; m++) {
        const result *r = &all[m * MAX_SEEDS];
        double speed = 0;
        if (!o->run[m]) continue;
        for (i = 0, mean[m] = 0; i < seeds; i++) {
            mean[m] += r[i].validation / seeds;
            speed += 1000 * r[i].seconds / (double)r[i].timed / seeds;
        }
        printf("%-13s validation %.4f (", modes[m].name, mean[m]);
        for (j = 0; j < seeds; j++)
            printf("%s%.4f", j ? ", " : "", r[j].validation);
        printf(")");
        if (m != FP32 && o->run[FP32]) printf(", %+.4f from fp32", mean[m] - mean[FP32]);
        printf("; %.1f ms per step\n", speed);
    }
}
static amp_histogram seen_in_all(const result *r) {
    amp_histogram all = AMP_ZERO;
    size_t i;
    for (i = 0; i < SEEN; i++)
        amp_histogram_add(&all, &r->seen[i]);
    return all;
}
static void print_gradients(const result *r) {
    amp_histogram all = seen_in_all(r);
    amp_fates plain = amp_histogram_fates(&all, AMP_F16, 1), scaled = amp_histogram_fates(&all, AMP_F16, FIRST_SCALE);
    if (!all.total) return;
    printf(
        "\nGradients at 20 moments of this run: FP16 would make %.1f%% of them zero, %.1f%% subnormal; times 65536,\n"
        "%.1f%% and %.1f%%, and %.3f%% overflow. Nothing was done to make them small. Runs as small as this one\n"
        "forgive it, as the mode fp16 shows, which has no loss scaling.\n",
        100 * plain.lost, 100 * plain.subnormal, 100 * scaled.lost, 100 * scaled.subnormal, 100 * scaled.overflow);
}

static void picture(const options *o, const char *name, char path[512]) {
    if (snprintf(path, 512, "%s/gpt_%s.svg", o->out, name) >= 512) fail("--out: the path is too long");
}
static void picture_done(const char *path, int status) {
    if (status) fail("%s: could not be written: %s", path, strerror(errno));
    printf("wrote %s\n", path);
}
static const char loss_title[] = "A small GPT on Shakespeare: losses beside FP32's";

/* The losses themselves lie on each other: each mode beside FP32. Kept as a text, too: --draw. */
static void draw_beside(const options *o, const result *all, const char *line1) {
    plot_besides *b = (plot_besides *)allocate(1, sizeof *b);
    const result *reference = &all[FP32 * MAX_SEEDS];
    char path[512];
    int m, i;
    b->steps = reference->steps;
    b->points = b->steps < PLOT_POINTS ? (int)b->steps : PLOT_POINTS;
    b->seeds = (int)o->seeds;
    for (m = 0; m < MODES; m++) {
        const result *r = &all[m * MAX_SEEDS];
        plot_beside *row = &b->row[b->n];
        if (!o->run[m]) continue;
        strcpy(row->name, modes[m].name);
        for (i = 0; i < b->seeds; i++)
            row->validation[i] = r[i].validation;
        for (i = 0; i < b->points; i++) {
            size_t from = b->steps * (size_t)i / (size_t)b->points, to = b->steps * (size_t)(i + 1) / (size_t)b->points;
            row->training[i] = 100 * (plot_mean(r->losses, from, to) / plot_mean(reference->losses, from, to) - 1);
        }
        b->n++;
    }
    picture(o, "loss", path);
    picture_done(path, plot_beside_draw(path, loss_title, line1, b));
    strcpy(path + strlen(path) - 3, "txt");
    picture_done(path, plot_besides_keep(path, line1, b));
    free(b);
}
static void draw_again(const options *o) { /* --draw */
    plot_besides *b = (plot_besides *)allocate(1, sizeof *b);
    char path[512], line1[256];
    if (plot_besides_read(o->draw, line1, b)) fail("--draw: %s is not a gpt_loss.txt", o->draw);
    picture(o, "loss", path);
    picture_done(path, plot_beside_draw(path, loss_title, line1, b));
    free(b);
}

static void draw_losses(const options *o, const result *all) {
    plot_curve curves[MODES];
    plot_words words = {"A small GPT on Shakespeare, in several precisions", NULL,
        "Same seed and same batches for every mode. Beside each name: loss over the whole validation text.", ""};
    char note[MODES][64], path[512], line1[256];
    int m, n = 0;
    sprintf(line1, "%d layers, %d heads, %d wide, context %d, batch %d; mean cross-entropy per character.",
        (int)o->s.layers, (int)o->s.heads, (int)o->s.width, (int)o->s.context, (int)o->s.batch);
    words.line1 = line1;
    for (m = 0; m < MODES; m++) {
        const result *r = &all[m * MAX_SEEDS];
        if (!o->run[m]) continue;
        sprintf(note[n], "%.4f", r->validation);
        curves[n].name = modes[m].name;
        curves[n].note = note[n];
        curves[n].style = &plot_styles[m];
        curves[n].y = r->losses;
        curves[n++].steps = r->steps;
    }
    if (n > 1 && o->run[FP32]) {
        draw_beside(o, all, line1);
        return;
    }
    picture(o, "loss", path);
    picture_done(path, plot_losses(path, &words, curves, n));
}
static void draw_scale(const options *o, const result *r) {
    char path[512], line2[160];
    sprintf(line2,
        "It starts at 65536. A step whose gradients overflow is skipped and halves it; %d good steps double it.",
        GROWTH);
    picture(o, "scale", path);
    picture_done(path,
        plot_scale(path, "The loss scale of fp16-dynamic: a small GPT on Shakespeare",
            "The loss is multiplied by the scale, so that small gradients stay inside FP16's range.", line2, r->scales,
            r->skips, r->steps));
}
static void draw_gradients(const options *o, const result *r) {
    static const char *const parts[SEEN_PER_BLOCK] = {"q, k, v", "scores", "attention", "before GELU", "sum"};
    static const char *const kinds[SEEN_PARAMS] = {
        "wte weights", "wpe weights", "gains of n1", "qkv weights", "proj weights", "up weights", "down weights"};
    size_t blocks = o->s.layers * SEEN_PER_BLOCK, n = SEEN_BLOCKS + blocks + SEEN_PARAMS, i;
    plot_tensor *rows = (plot_tensor *)allocate(n, sizeof *rows);
    char path[512];
    for (i = 0; i < n; i++) {
        const amp_histogram *h = &r->seen[i];
        double nonzero = (double)(h->total - h->zero);
        int e;
        if (i < SEEN_BLOCKS)
            strcpy(rows[i].name, i ? "last norm" : "logits");
        else if (i < SEEN_BLOCKS + blocks)
            sprintf(rows[i].name, "block %d: %s", (int)((i - SEEN_BLOCKS) / SEEN_PER_BLOCK + 1),
                parts[(i - SEEN_BLOCKS) % SEEN_PER_BLOCK]);
        else
            strcpy(rows[i].name, kinds[i - SEEN_BLOCKS - blocks]);
        for (e = 0; e < 255; e++)
            rows[i].share[e] = nonzero > 0 ? (double)h->pow2[e] / nonzero : 0;
    }
    picture(o, "gradients", path);
    picture_done(path,
        plot_tensors(path, "Gradients by tensor and the range of FP16: a small GPT on Shakespeare",
            "Nonzero gradients by power of two, computed without FP16 at 20 moments of a run.",
            "FP16 rounds to zero what is in the red part, and keeps fewer bits in the yellow one.", rows, n,
            (int)log2((double)FIRST_SCALE)));
    free(rows);
}
static void draw(const options *o, const result *all) { /* the first seed's runs */
    int probe = o->run[FP32] ? FP32 : BF16;
    draw_losses(o, all);
    if (o->run[FP16_DYNAMIC]) draw_scale(o, &all[FP16_DYNAMIC * MAX_SEEDS]);
    if (o->run[probe]) draw_gradients(o, &all[probe * MAX_SEEDS]);
}

static amp_ctx *create_context(const options *o) {
    amp_cpu_desc cpu = AMP_ZERO;
    cpu.threads = (int32_t)o->threads;
    cpu.gemm_flags = o->ordered ? AMP_GEMM_ORDERED : 0;
    return open_context(o->device, &cpu);
}

#include "gpt_check.h" /* --check */

/* ==== options and main ============================================================================================ */

static const char help[] =
    "gpt: trains a small GPT on text in several precisions and shows what each costs.\n"
    "\n"
    "  --mode LIST          all six (default), or some of fp32,bf16,fp16-dynamic,fp16-static,split,fp16, and fp8,\n"
    "                       split8, split8-stochastic: BF16 weights with 8 more bits (AMP_MASTER_SPLIT8).\n"
    "                       split: FP16 with 16 + 16 bits instead of FP32 masters; fp16: FP16 without loss scaling;\n"
    "                       fp8: BF16 whose blocks' products read FP8, with delayed scaling\n"
    "  --seeds N, --seed N  how many runs of each mode (1), and the first one's seed (1)\n"
    "  --data FILE          the text (build/shakespeare.txt): nine tenths to learn, the rest to validate\n"
    "  --shape NAME         shakespeare (default) or gpt2-124m: GPT-2's sizes with random tokens, for a GPU\n"
    "  --layers N --heads N --width N --context N --batch N --vocab N --steps N    instead of the shape's own\n"
    "                       (--vocab: random tokens instead of a text)\n"
    "  --biases 0|1         of layers and norms (1)\n"
    "  --norm fp16, --softmax fp16     each number inside layer norm, or attention's softmax, rounded to FP16 in the\n"
    "                       forward pass, to see what class F32 of these operations is for (fp32)\n"
    "  --moments fp32|bf16|8bit        how the optimizer's moments are kept (fp32)\n"
    "  --act gelu|gelu-fp8|relu   of the blocks (gelu). What is before GELU kept in FP8; ReLU: a bit per element\n"
    "  --embed N            standard deviation of the first token embeddings, instead of 0.02. nn.Embedding's 1\n"
    "                       times the root of the width, as in the paper of 2017: --width 320 --embed 18\n"
    "  --ordered            products in a defined order: the same weights, to the bit, on every machine\n"
    "  --tied, --untied     a head with the embedding's weights (gpt2-124m) or its own (shakespeare)\n"
    "  --chunks N           head and loss in N chunks of the rows: 1/N of the logits' memory. 0: as amp does it\n"
    "  --sample N           characters of text that the network writes at the end (400)\n"
    "  --out DIR            folder for the pictures (out)\n"
    "  --draw FILE          trains nothing: draws the losses again, from a gpt_loss.txt that an earlier run wrote\n"
    "  --device cpu|cuda    where (cuda if built with it and found)\n"
    "  --threads N          CPU threads (all)\n"
    "  --cpu-time           seconds of the processor instead of the clock\n"
    "  --check              small runs that test what this program says; exit status 1 if something is wrong\n"
    "  --check-gradients    the part of it that does not train\n"
    "  --help\n";

static void parse_modes(options *o, const char *list) {
    int m;
    memset(o->run, 0, sizeof o->run);
    for (;;) {
        size_t n = strcspn(list, ",");
        int known = 0;
        for (m = 0; m < MODES; m++)
            if ((n == 3 && !strncmp(list, "all", n) && m < IN_ALL) ||
                (n == strlen(modes[m].name) && !strncmp(list, modes[m].name, n)))
                known = o->run[m] = 1;
        if (!known) option_refuse("--mode: '%.*s' is not a mode, see --help", (int)n, list);
        if (!list[n]) return;
        list += n + 1;
    }
}
static void parse_shape(options *o, const char *name) {
    const char *names[SHAPES];
    int i;
    for (i = 0; i < SHAPES; i++)
        names[i] = shapes[i].name;
    o->s = shapes[option_choice("--shape", name, names, SHAPES)];
}
static int parse_number(options *o, const char *a, const char *v) { /* 0: not an option with a number */
    const struct number {
        const char *name;
        size_t *to;
        double low, high;
    } numbers[] = {{"--seeds", &o->seeds, 1, MAX_SEEDS}, {"--seed", &o->seed, 0, 4294967295.0},
        {"--layers", &o->s.layers, 1, MAX_LAYERS}, {"--heads", &o->s.heads, 1, 1024},
        {"--width", &o->s.width, 1, 65536}, {"--context", &o->s.context, 1, 65536}, {"--batch", &o->s.batch, 1, 65536},
        {"--vocab", &o->s.vocab, 2, 1e7}, {"--steps", &o->s.steps, 1, 1e7}, {"--chunks", &o->chunks, 0, MAX_CHUNKS},
        {"--sample", &o->sample, 0, 1e6}, {"--threads", &o->threads, 1, 256}, {"--biases", &o->s.biases, 0, 1},
        {"--embed", &o->s.embed, 0, 1000}};
    size_t i;
    for (i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!strcmp(a, numbers[i].name)) {
            *numbers[i].to = (size_t)option_number(a, v, numbers[i].low, numbers[i].high, 1);
            return 1;
        }
    return 0;
}
static size_t is_f16(const char *option, const char *text) { /* the dtype inside of an operation */
    static const char *const names[] = {"fp32", "fp16"};
    return (size_t)option_choice(option, text, names, 2);
}
static void parse_act(gpt_shape *s, const char *a, const char *v) {
    static const char *const acts[] = {"gelu", "gelu-fp8", "relu"};
    int act = option_choice(a, v, acts, 3);
    s->act = act == 2 ? AMP_RELU : AMP_GELU;
    s->aux = act == 1 ? AMP_F8E4M3 : AMP_AUTO;
}
static options parse(int argc, char **argv) {
    options o;
    int i;
    memset(&o, 0, sizeof o);
    o.s = shapes[SHAKESPEARE];
    o.tied = -1;
    o.seeds = o.seed = 1;
    o.sample = 400;
    o.data = "build/shakespeare.txt";
    o.out = "out";
    parse_modes(&o, "all");
    for (i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--shape")) parse_shape(&o, argv[i + 1]);
    for (i = 1; i < argc; i++) {
        const char *a = argv[i], *v = argv[i + 1];
        option_help(a, help);
        if (!strcmp(a, "--check-gradients"))
            o.check = 1;
        else if (!strcmp(a, "--check"))
            o.check = 2;
        else if (!strcmp(a, "--ordered"))
            o.ordered = 1;
        else if (!strcmp(a, "--untied") || !strcmp(a, "--tied"))
            o.tied = a[2] == 't';
        else if (!strcmp(a, "--cpu-time"))
            cpu_time = 1;
        else {
            if (!strcmp(a, "--mode"))
                parse_modes(&o, option_text(a, v));
            else if (!strcmp(a, "--data"))
                o.data = option_text(a, v);
            else if (!strcmp(a, "--out"))
                o.out = option_text(a, v);
            else if (!strcmp(a, "--draw"))
                o.draw = option_text(a, v);
            else if (!strcmp(a, "--norm"))
                o.s.norm_f16 = is_f16(a, v);
            else if (!strcmp(a, "--softmax"))
                o.s.softmax_f16 = is_f16(a, v);
            else if (!strcmp(a, "--moments"))
                o.s.moment = moment_format(option_text(a, v));
            else if (!strcmp(a, "--act"))
                parse_act(&o.s, a, v);
            else if (!strcmp(a, "--device"))
                o.device = option_device(a, v);
            else if (strcmp(a, "--shape") && !parse_number(&o, a, v))
                option_unknown(a);
            i++;
        }
    }
    if (o.tied < 0) o.tied = o.s.tied;
    if (o.s.width % o.s.heads) option_refuse("--heads: %d do not divide a width of %d", (int)o.s.heads, (int)o.s.width);
    if (o.chunks && o.s.batch % o.chunks)
        option_refuse("--chunks: %d do not divide a batch of %d", (int)o.chunks, (int)o.s.batch);
    if (o.s.warmup > o.s.steps / 2) o.s.warmup = o.s.steps / 2;
    return o;
}
static void train_all(amp_ctx *ctx, const options *o, const text *t) {
    result *all = (result *)allocate(MODES * MAX_SEEDS, sizeof *all), *first = NULL;
    size_t i, total = 0;
    int m;
    for (m = 0; m < MODES; m++)
        total += o->run[m] ? o->seeds * o->s.steps : 0;
    progress.total = total;
    progress.start = seconds();
    for (i = 0; i < o->seeds; i++)
        for (m = 0; m < MODES; m++) {
            result *r = &all[(size_t)m * MAX_SEEDS + i];
            if (!o->run[m]) continue;
            run(ctx, o, t, &modes[m], o->seed + i, r);
            if (!first) print_head(o, r);
            if (!first || (m == FP16_DYNAMIC && i == 0)) first = r;
            print_run(o, &modes[m], o->seed + i, r);
        }
    if (o->seeds > 1) print_means(o, all);
    print_memory(o, all);
    if (first->sample)
        printf("\nWhat %s has learnt to write:\n\n%s\n", modes[(first - all) / MAX_SEEDS].name, first->sample);
    if (t->n) {
        print_gradients(&all[(o->run[FP32] ? FP32 : BF16) * MAX_SEEDS]);
        draw(o, all);
    }
    for (i = 0; i < MODES * MAX_SEEDS; i++)
        result_free(&all[i]);
    free(all);
}
int main(int argc, char **argv) {
    options o = parse(argc, argv);
    text t = AMP_ZERO;
    amp_ctx *ctx;
    int wrong = 0;
    if (o.draw) {
        if (make_dir(o.out) && errno != EEXIST) fail("--out: %s: %s", o.out, strerror(errno));
        draw_again(&o);
        return 0;
    }
    if (!o.check && !o.s.vocab) {
        t = read_text(o.data);
        if (t.n / 10 < o.s.context + 2) fail("--data: %s is too short for a context of %d", o.data, (int)o.s.context);
        if (make_dir(o.out) && errno != EEXIST) fail("--out: %s: %s", o.out, strerror(errno));
        o.s.vocab = t.vocab;
    } else
        t.vocab = o.s.vocab;
    ctx = create_context(&o);
    if (o.check)
        wrong = check(ctx, &o);
    else
        train_all(ctx, &o, &t);
    amp_ctx_destroy(ctx);
    free(t.token);
    return wrong != 0;
}
