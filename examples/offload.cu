/* offload.cu - forward and backward on a GPU; masters, moments and the step on the CPU (ZeRO-Offload, Ren et al., arXiv
 * 2101.06840): 4 bytes per weight on the card instead of 16, and the same bits as the step on the card.
 *
 *     nvcc -O2 -arch=native -I. examples/offload.cu -lcublasLt -o offload && ./offload                      (--help)
 *
 * Two contexts, two sets. The GPU's has 16-bit weights and gradients, no more. The CPU's has masters, moments, sums of
 * micro-batches, and the 16-bit weights that the step makes. Its memory is page-locked, for asynchronous copies:
 *
 *     main    forward 1 2 3   loss   backward 3 2 1 | forward 1 2 3 ...     the GPU, micro-batch after micro-batch
 *     down                            gradients 3 2 1 |                     each layer's, as soon as it is there
 *     CPU                                   adds up the micro-batch before | ... then the step
 *     up                                                                     weights 1 2 3: forward waits for its own
 *
 * Two buffers take the gradients in turn, so one micro-batch comes down while the CPU adds up the one before it. The
 * loss scale is the CPU's: the host knows it, and gives it to the loss as a factor. Clipping by norm, accumulation and
 * the dynamic scale, with its skipped steps, are those of amp_accumulate and amp_step, on whichever context.
 */
#define AMP_IMPLEMENTATION
#define AMP_CUDA_IMPLEMENTATION
#include "amp_cuda.cuh"

#define PROGRAM "offload"
#include "digits_net.h"

#include <cuda_runtime.h>

#define CUDA(call) \
    do { \
        cudaError_t e_ = (call); \
        if (e_ != cudaSuccess) fail("%s: %s", #call, cudaGetErrorString(e_)); \
    } while (0)

enum { GROWTH = 20, MODEL = 0, GRAD, MASTER, MOMENTS, ACCUM, ARRIVED, BYTES };
#define FIRST_SCALE 16777216.0f /* far too high: the first steps overflow by themselves, until it fits */

typedef struct options {
    shape s;
    size_t micro, steps; /* micro-batches of a step, s.rows images each */
    size_t bad_step;     /* of an image that is Inf, in the last micro-batch; 0: none */
    float lr, clip;
    int check;
    const char *data;
} options;

typedef struct result {
    double card[BYTES], host[BYTES];  /* bytes per weight */
    double seconds, waited, accuracy; /* per step, waited: for gradients to come down */
    size_t skipped;
    amp_outcome planted; /* what became of bad_step */
    float loss;
    amp_scaler_info info;
    float *state;    /* masters and moments, one after the other */
    uint16_t *model; /* 16-bit weights, as they are on the card */
} result;

typedef struct run {
    const options *o;
    int offload;
    amp_ctx *gpu, *cpu;
    amp_params *card, *state; /* state: the set that steps, which is the card's without offload */
    amp_scaler *scaler;       /* of the context of state */
    net n;
    digits train;
    cudaStream_t down, up;
    cudaEvent_t made[NET_LAYERS], taken[NET_LAYERS], sent[NET_LAYERS], came[2];
    void *arrived[2][NET_LAYERS]; /* page-locked: the gradients of every other micro-batch */
    result end;
} run;

/* ---- memory that the GPU copies to and from while the CPU does something else ---- */

static void *pinned_alloc(size_t bytes, void *user) {
    void *p = NULL;
    (void)user;
    return cudaHostAlloc(&p, bytes, cudaHostAllocDefault) == cudaSuccess ? p : NULL;
}
static void pinned_free(void *p, size_t bytes, void *user) {
    (void)bytes, (void)user;
    CUDA(cudaFreeHost(p));
}

/* ---- setting up ---- */

static amp_params *make_params(amp_ctx *ctx, const options *o, const amp_params_desc *desc) {
    amp_params *p;
    must(ctx, amp_params_create(&p, ctx, desc));
    for (size_t i = 0; i < o->s.layers; i++) {
        amp_param_desc d = AMP_ZERO;
        float *init = (float *)allocate(layer_count(&o->s, i), sizeof *init);
        layer_init(init, &o->s, i, 1);
        d.count = layer_count(&o->s, i);
        d.init = init;
        must(ctx, amp_params_add(p, &d)); /* copies init */
        free(init);
    }
    must(ctx, amp_params_commit(p));
    return p;
}
static void create_host(run *r) { /* what offload needs on the other side */
    amp_cpu_desc cpu = AMP_ZERO;
    amp_params_desc desc = AMP_ZERO;
    cpu.allocator.alloc_fn = pinned_alloc;
    cpu.allocator.free_fn = pinned_free;
    must(NULL, amp_cpu_create(&r->cpu, &cpu));
    desc.label = "host";
    desc.accumulate = r->o->micro > 1;
    r->state = make_params(r->cpu, r->o, &desc);
    CUDA(cudaStreamCreateWithFlags(&r->down, cudaStreamNonBlocking));
    CUDA(cudaStreamCreateWithFlags(&r->up, cudaStreamNonBlocking));
    for (int k = 0; k < 2; k++) {
        CUDA(cudaEventCreateWithFlags(&r->came[k], cudaEventDisableTiming));
        for (size_t i = 0; i < r->o->s.layers; i++)
            must(r->cpu, amp_alloc(r->cpu, &r->arrived[k][i], amp_param_grad(r->card, i).count * 2, "arrived"));
    }
    for (size_t i = 0; i < r->o->s.layers; i++)
        for (cudaEvent_t *e : {&r->made[i], &r->taken[i], &r->sent[i]})
            CUDA(cudaEventCreateWithFlags(e, cudaEventDisableTiming));
}
static void run_create(run *r, const options *o, const images *train, int offload) {
    amp_params_desc desc = AMP_ZERO;
    amp_scaler_desc scaling = AMP_ZERO;
    amp_array model[NET_LAYERS], grad[NET_LAYERS];
    memset(r, 0, sizeof *r);
    r->o = o;
    r->offload = offload;
    must(NULL, amp_cuda_create(&r->gpu, NULL));
    desc.label = "card";
    desc.master = offload ? AMP_MASTER_NONE : AMP_MASTER_F32;
    desc.moments = offload ? AMP_NONE : 2;
    desc.accumulate = !offload && o->micro > 1;
    r->card = make_params(r->gpu, o, &desc);
    for (size_t i = 0; i < o->s.layers; i++) {
        model[i] = amp_param_model(r->card, i);
        grad[i] = amp_param_grad(r->card, i);
    }
    if (offload)
        create_host(r);
    else
        r->state = r->card;
    scaling.scale = FIRST_SCALE;
    scaling.growth_interval = GROWTH;
    must(r->gpu, amp_scaler_create(&r->scaler, offload ? r->cpu : r->gpu, &scaling));
    net_create(&r->n, r->gpu, &o->s, model, grad, offload ? NULL : r->scaler);
    r->train = digits_to(r->gpu, train, AMP_F16);
}
static void run_destroy(run *r) {
    must(r->gpu, amp_sync(r->gpu));
    digits_free(r->gpu, &r->train);
    net_destroy(&r->n);
    amp_scaler_destroy(r->scaler);
    amp_params_destroy(r->card);
    if (r->offload) {
        CUDA(cudaStreamDestroy(r->down));
        CUDA(cudaStreamDestroy(r->up));
        for (size_t i = 0; i < r->o->s.layers; i++)
            for (cudaEvent_t e : {r->made[i], r->taken[i], r->sent[i]})
                CUDA(cudaEventDestroy(e));
        for (int k = 0; k < 2; k++) {
            CUDA(cudaEventDestroy(r->came[k]));
            for (size_t i = 0; i < r->o->s.layers; i++)
                must(r->cpu, amp_free(r->cpu, r->arrived[k][i]));
        }
        amp_params_destroy(r->state);
    }
    amp_ctx_destroy(r->cpu); /* NULL is fine */
    amp_ctx_destroy(r->gpu);
}

/* ---- a step ---- */

/* Queues forward, backward and, with offload, the gradients' way down. The host does not wait. */
static void queue_micro_batch(run *r, size_t first_row, int buffer) {
    cudaStream_t main_stream = amp_cuda_stream(r->gpu);
    net_input(&r->n, &r->train, first_row);
    for (size_t i = 0; i < r->o->s.layers; i++) {
        if (r->offload) CUDA(cudaStreamWaitEvent(main_stream, r->sent[i], 0)); /* this layer's weights, no others */
        net_forward_layer(&r->n, i);
    }
    net_loss(&r->n);
    for (size_t i = r->o->s.layers; i-- > 0;) {
        amp_array g = amp_param_grad(r->card, i);
        if (r->offload) CUDA(cudaStreamWaitEvent(main_stream, r->taken[i], 0)); /* the last micro-batch's are down */
        net_backward_layer(&r->n, i);
        if (!r->offload) continue;
        CUDA(cudaEventRecord(r->made[i], main_stream));
        CUDA(cudaStreamWaitEvent(r->down, r->made[i], 0));
        CUDA(cudaMemcpyAsync(r->arrived[buffer][i], g.data, g.count * 2, cudaMemcpyDeviceToHost, r->down));
        CUDA(cudaEventRecord(r->taken[i], r->down));
    }
    if (r->offload) CUDA(cudaEventRecord(r->came[buffer], r->down));
}
/* The gradients of a micro-batch are used: on the CPU after they have come down, else on the card. */
static void use_micro_batch(run *r, int buffer) {
    double start = seconds();
    if (r->offload) {
        CUDA(cudaEventSynchronize(r->came[buffer]));
        r->end.waited += seconds() - start;
        for (size_t i = 0; i < r->o->s.layers; i++) {
            amp_array g = amp_param_grad(r->state, i);
            must(r->cpu, amp_copy(r->cpu, g.data, r->arrived[buffer][i], g.count * 2));
        }
    }
    if (r->o->micro > 1) must(r->offload ? r->cpu : r->gpu, amp_accumulate(r->state, r->scaler, 0));
}
static void send_weights(run *r) { /* what the CPU's step has made, in the order in which forward needs it */
    for (size_t i = 0; i < r->o->s.layers; i++) {
        amp_array to = amp_param_model(r->card, i), from = amp_param_model(r->state, i);
        CUDA(cudaMemcpyAsync(to.data, from.data, to.count * 2, cudaMemcpyHostToDevice, r->up));
        CUDA(cudaEventRecord(r->sent[i], r->up));
    }
}
static void set_pixel(run *r, size_t row, float x) {
    amp_f16 half = amp_f16_from_f32(x);
    must(r->gpu, amp_copy(r->gpu, (amp_f16 *)r->train.x.data + row * r->o->s.pixels, &half, sizeof half));
}
static void train(run *r) {
    const options *o = r->o;
    amp_ctx *ctx = r->offload ? r->cpu : r->gpu;
    amp_step_desc d = AMP_ZERO;
    amp_step_record record;
    double start = seconds();
    size_t batch = o->micro * o->s.rows;
    d.lr = o->lr;
    d.clip_norm = o->clip;
    for (size_t step = 0; step < o->steps; step++) {
        size_t at = step % (r->train.count / batch) * batch, last = at + batch - o->s.rows, m;
        int bad = step + 1 == o->bad_step;
        if (bad) set_pixel(r, last, INFINITY);
        must(ctx, amp_scaler_get(r->scaler, &r->end.info)); /* on the CPU this costs nothing */
        if (r->offload) r->n.xent.factor = amp_opt(r->end.info.scale);
        for (m = 0; m < o->micro; m++) {
            queue_micro_batch(r, at + m * o->s.rows, (int)(m & 1));
            if (!r->offload) use_micro_batch(r, 0);
            if (r->offload && m > 0) use_micro_batch(r, (int)(~m & 1)); /* the one before, while this one runs */
        }
        if (r->offload) use_micro_batch(r, (int)(~m & 1));
        must(ctx, amp_step(r->state, r->scaler, &d));
        if (r->offload) send_weights(r);
        if (bad) {
            set_pixel(r, last, 0.0f); /* as it was; waits */
            must(ctx, amp_step_poll(r->state, &record));
            r->end.planted = record.outcome;
        }
        if (o->check || (step % 10 && step + 1 < o->steps)) continue;
        r->end.loss = net_read_loss(&r->n); /* waits */
        show_progress(r->offload ? "offload" : "on card", start, step + 1, o->steps, r->end.loss, r->end.info.scale);
    }
    must(r->gpu, amp_sync(r->gpu));
    if (r->offload) CUDA(cudaStreamSynchronize(r->up));
    r->end.seconds = (seconds() - start) / (double)o->steps;
    r->end.waited /= (double)o->steps;
    must(ctx, amp_sync(ctx));
    must(ctx, amp_step_poll(r->state, &record));
    must(ctx, amp_scaler_get(r->scaler, &r->end.info));
    r->end.skipped = (size_t)record.skipped;
}

/* ---- a run, and what it leaves behind ---- */

static void collect(run *r) {
    amp_ctx *ctx = r->offload ? r->cpu : r->gpu;
    size_t all = all_weights(&r->o->s), at = 0;
    r->end.state = (float *)allocate(3 * all, sizeof(float));
    r->end.model = (uint16_t *)allocate(all, sizeof(uint16_t));
    for (size_t i = 0; i < r->o->s.layers; i++) {
        amp_param p = amp_param_get(r->state, i);
        size_t n = p.count * sizeof(float);
        must(ctx, amp_copy(ctx, r->end.state + at, p.master.data, n));
        must(ctx, amp_copy(ctx, r->end.state + all + at, p.moment[0].data, n));
        must(ctx, amp_copy(ctx, r->end.state + 2 * all + at, p.moment[1].data, n));
        must(r->gpu, amp_copy(r->gpu, r->end.model + at, amp_param_model(r->card, i).data, n / 2));
        at += p.count;
    }
}
static void count_bytes(double *bytes, const amp_ctx *ctx, const char *label, size_t weights) {
    static const char *const rows[BYTES] = {".model", ".grad", ".master", ".moments", ".accum", "arrived"};
    char name[32];
    for (int k = 0; ctx && k < BYTES; k++) {
        sprintf(name, "%s%s", k == ARRIVED ? "" : label, rows[k]);
        bytes[k] = bytes_of(ctx, name) / (double)weights;
    }
}
static result run_with(const options *o, const images *train_set, const images *test, int offload) {
    static run r;
    run_create(&r, o, train_set, offload);
    count_bytes(r.end.card, r.gpu, "card", all_weights(&o->s));
    count_bytes(r.end.host, r.cpu, "host", all_weights(&o->s));
    train(&r);
    digits d = digits_to(r.gpu, test, AMP_F16);
    r.end.accuracy = net_accuracy(&r.n, &d, test->label);
    digits_free(r.gpu, &d);
    collect(&r);
    run_destroy(&r);
    return r.end;
}
static void result_free(result *r) {
    free(r->state);
    free(r->model);
}
static double sum(const double *bytes) {
    double s = 0;
    for (int k = 0; k < BYTES; k++)
        s += bytes[k];
    return s;
}
static int same(const options *o, const result *a, const result *b) {
    size_t n = all_weights(&o->s);
    return !memcmp(a->state, b->state, 3 * n * sizeof *a->state) && !memcmp(a->model, b->model, n * sizeof *a->model) &&
        !memcmp(&a->info, &b->info, sizeof a->info) && a->skipped == b->skipped;
}

static int check(options o, const images *train_set, const images *test) {
    int wrong = 0;
    o.s.rows = 8;
    o.s.width = 24;
    o.steps = 24;
    o.bad_step = 20;
    for (o.micro = 1; o.micro <= 3; o.micro += 2) {
        o.clip = o.micro == 3 ? 0.5f : 0;
        result a = run_with(&o, train_set, test, 1), b = run_with(&o, train_set, test, 0);
        wrong += claim(same(&o, &a, &b),
            "%lu micro-batch(es)%s: masters, moments, weights, scale and counts of the step on the card, bit for bit",
            (unsigned long)o.micro, o.clip > 0 ? ", clipped by norm" : "");
        wrong += claim(a.planted != AMP_STEPPED && a.planted == b.planted && a.skipped > 1,
            "%lu steps skipped, one of them for a planted Inf (%s)", (unsigned long)a.skipped,
            amp_outcome_name(a.planted));
        wrong += claim(sum(a.card) < 5 && sum(b.card) > (o.micro > 1 ? 20 : 16),
            "%.2f bytes per weight on the card instead of %.2f; arrays are padded to 256 bytes", sum(a.card),
            sum(b.card));
        result_free(&a);
        result_free(&b);
    }
    return wrong;
}
static void print_run(const char *name, const options *o, const result *r) {
    printf("%-8s %6.4f %6.1f %% %5lu 2^%-3.0f", name, (double)r->loss, 100 * r->accuracy, (unsigned long)r->skipped,
        log2((double)r->info.scale));
    for (int k = MODEL; k < ARRIVED; k++)
        printf(" %5.2f", r->card[k]);
    printf(" %5.2f   %6.2f %8.3f %6.3f  %016llx\n", sum(r->card), sum(r->host), 1e3 * r->seconds, 1e3 * r->waited,
        (unsigned long long)hash_more(HASH_START, r->state, 3 * all_weights(&o->s) * sizeof *r->state));
}

int main(int argc, char **argv) {
    options o = AMP_ZERO;
    const option list[] = {
        {"--steps", OPTION_COUNT, &o.steps, "(600)"},
        {"--micro", OPTION_COUNT, &o.micro, "micro-batches of a step (2)"},
        {"--rows", OPTION_COUNT, &o.s.rows, "images of a micro-batch (32)"},
        {"--width", OPTION_COUNT, &o.s.width, "of the hidden layers (1024)"},
        {"--layers", OPTION_COUNT, &o.s.layers, "(4)"},
        {"--lr", OPTION_REAL, &o.lr, "learning rate (0.001)"},
        {"--clip", OPTION_REAL, &o.clip, "clips gradients by that norm (1)"},
        {"--data", OPTION_TEXT, &o.data, "folder of IDX files (MNIST ...) instead of the built-in digits"},
        {"--check", OPTION_FLAG, &o.check, "is all as the comment says? In seconds"},
    };
    images train_set, test;
    int wrong = 0;
    o.s.layers = 4;
    o.s.width = 1024;
    o.s.rows = 32;
    o.micro = 2;
    o.steps = 600;
    o.lr = 1e-3f;
    o.clip = 1.0f;
    if (!parse_options(argc, argv, list, sizeof list / sizeof *list, "usage: offload [options]")) return 0;
    if (!amp_cuda_available()) {
        puts("skipped: no CUDA device");
        return 77;
    }
    load_data(o.data, &o.s, o.micro, &train_set, &test);
    if (o.check) {
        wrong = check(o, &train_set, &test);
    } else {
        result a = run_with(&o, &train_set, &test, 1), b = run_with(&o, &train_set, &test, 0);
        puts("bytes per weight on the card: model grad master moments sums, all; on the host; ms per step; of waiting");
        puts("step       loss accuracy skip scale model  grad mastr momts  sums   all     host  ms/step   wait  state");
        print_run("on host", &o, &a);
        print_run("on card", &o, &b);
        wrong = claim(same(&o, &a, &b), "the same masters, moments, weights, scale and counts, bit for bit");
        result_free(&a);
        result_free(&b);
    }
    images_free(&train_set);
    images_free(&test);
    return wrong != 0;
}
