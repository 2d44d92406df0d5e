/* release.c - gradient release: a layer steps as soon as backward has made its gradient, and the next layer's gradient
 * takes that one's memory. 2 bytes per weight less of a 16-bit model, 4 of an FP32 one, and the losses of the ordinary
 * loop to the last bit.
 *
 *     cc -std=c99 -O2 examples/release.c -I. -lm -pthread -o release && ./release     (--device cpu|cuda, --steps N)
 *     nvcc -O2 -arch=native -x cu -I. examples/release.c -lcublasLt -o release_cuda   (the same file, for a GPU)
 *
 * It takes nothing new: a set per layer, whose gradient is adopted memory, the same for all of them, as large as the
 * largest; in backward, behind a layer, amp_update of its set; after the last one, amp_scaler_update. What it forbids:
 *
 *   - clipping by norm: the norm is known when all gradients are, and by then most are gone. clip_value is fine.
 *   - a dynamic loss scale: an overflow is found when later layers have stepped. The scale is static, which leaves out
 *     the layers that overflow, or there is none, as for BF16.
 *   - accumulation over micro-batches in gradients, and sums over ranks, but for those of one layer behind its
 *     backward (reduce_grads_fn).
 *
 * The random numbers of short moments and of stochastic rounding count the parameters of a set. With those the ordinary
 * loop has a set per layer, too, so that both draw the same ones; each set has a seed of its own.
 */
#if !defined(_WIN32) && !defined(_POSIX_C_SOURCE)
#  define _POSIX_C_SOURCE 200809L /* clock_gettime, isatty */
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

#define PROGRAM "release"
#include "digits_net.h" /* the network, its data, bytes_of, hash_more */

#define STATIC_SCALE 1024.0f

typedef struct precision {
    const char *name;
    amp_dtype model;
    amp_master master;
    amp_dtype moment;
    uint32_t stochastic;
} precision;
static const precision precisions[] = {
    {"fp32", AMP_F32, AMP_MASTER_F32, AMP_F32, 0},
    {"fp16, masters", AMP_F16, AMP_MASTER_F32, AMP_F32, 0}, /* with the static scale */
    {"bf16, split", AMP_BF16, AMP_MASTER_SPLIT, AMP_F32, 0},
    {"bf16, split, 8-bit moments", AMP_BF16, AMP_MASTER_SPLIT, AMP_MOMENT_8BIT, 0},
    {"bf16, split8, 8-bit moments", AMP_BF16, AMP_MASTER_SPLIT8, AMP_MOMENT_8BIT, 0},
    {"bf16, stochastic, 8-bit moments", AMP_BF16, AMP_MASTER_NONE, AMP_MOMENT_8BIT, 1},
};
enum { PRECISIONS = sizeof precisions / sizeof *precisions };

typedef struct result {
    double model, grad, master, moments, tables; /* bytes per weight, by the ledger */
    double accuracy;
    float loss;
    uint64_t losses, weights; /* hashes: of the loss of every step, of all weights at the end */
} result;

typedef struct run {
    amp_ctx *ctx;
    const precision *p;
    shape s;
    int release;
    size_t sets;
    amp_params *set[NET_LAYERS];
    void *gradient; /* release: of one layer at a time */
    amp_scaler *scaler;
    net n;
} run;

/* ---- setting up ---- */

static amp_params *set_of(const run *r, size_t layer) { return r->set[r->sets == 1 ? 0 : layer]; }
static size_t index_of(const run *r, size_t layer) { return r->sets == 1 ? layer : 0; }

static size_t largest_layer(const shape *s) {
    size_t most = 0, i;
    for (i = 0; i < s->layers; i++)
        if (layer_count(s, i) > most) most = layer_count(s, i);
    return most;
}
static void add_layer(run *r, size_t i) {
    amp_param_desc d = AMP_ZERO;
    float *init = (float *)allocate(layer_count(&r->s, i), sizeof *init);
    layer_init(init, &r->s, i, 1);
    d.count = layer_count(&r->s, i);
    d.init = init;
    if (r->release) d.grad = amp_arr(r->gradient, r->p->model); /* adopted: the same memory in every set */
    must(r->ctx, amp_params_add(set_of(r, i), &d));             /* copies init */
    free(init);
}
static void create(run *r, amp_ctx *ctx, const shape *s, const precision *p, int release) {
    const int draws = p->stochastic || p->moment != AMP_F32;
    amp_params_desc desc = AMP_ZERO;
    amp_scaler_desc scaling = AMP_ZERO;
    amp_array model[NET_LAYERS], grad[NET_LAYERS];
    size_t i;
    memset(r, 0, sizeof *r);
    r->ctx = ctx;
    r->p = p;
    r->s = *s;
    r->release = release;
    r->sets = release || draws ? s->layers : 1;
    desc.model = p->model;
    desc.master = p->master;
    desc.moment = p->moment;
    for (i = 0; i < r->sets; i++)
        must(ctx, amp_params_create(&r->set[i], ctx, &desc));
    if (release) must(ctx, amp_alloc(ctx, &r->gradient, largest_layer(s) * amp_dtype_size(p->model), "gradient"));
    for (i = 0; i < s->layers; i++)
        add_layer(r, i);
    for (i = 0; i < r->sets; i++)
        must(ctx, amp_params_commit(r->set[i]));
    for (i = 0; i < s->layers; i++) {
        model[i] = amp_param_model(set_of(r, i), index_of(r, i));
        grad[i] = amp_param_grad(set_of(r, i), index_of(r, i));
    }
    scaling.mode = AMP_SCALER_STATIC;
    scaling.scale = STATIC_SCALE;
    if (p->model == AMP_F16) must(ctx, amp_scaler_create(&r->scaler, ctx, &scaling));
    net_create(&r->n, ctx, s, model, grad, r->scaler);
}
static void destroy(run *r) {
    size_t i;
    net_destroy(&r->n);
    for (i = 0; i < r->sets; i++)
        amp_params_destroy(r->set[i]);
    amp_scaler_destroy(r->scaler);
    must(r->ctx, amp_free(r->ctx, r->gradient)); /* NULL is fine */
}

/* ---- training ---- */

static void update_set(run *r, size_t i) {
    amp_step_desc d = AMP_ZERO;
    d.lr = 1e-3f;
    d.weight_decay = 0.1f;
    d.stochastic = r->p->stochastic;
    d.seed = 3 * i; /* a step draws with its seed and the two that follow */
    must(r->ctx, amp_update(r->set[i], r->scaler, &d));
}
static void step(run *r) {
    size_t i;
    for (i = 0; i < r->s.layers; i++)
        net_forward_layer(&r->n, i);
    net_loss(&r->n);
    for (i = r->s.layers; i-- > 0;) {
        net_backward_layer(&r->n, i);
        if (r->release) update_set(r, i); /* its gradient is used: the next layer's may have the memory */
    }
    for (i = 0; i < r->sets && !r->release; i++)
        update_set(r, i);
    must(r->ctx, amp_scaler_update(r->scaler));
}
static void measure(const run *r, result *out) {
    const double weights = (double)all_weights(&r->s);
    out->model = bytes_of(r->ctx, "params.model") / weights;
    out->grad = (bytes_of(r->ctx, "params.grad") + bytes_of(r->ctx, "gradient")) / weights;
    out->master = bytes_of(r->ctx, "params.master") / weights;
    out->moments = bytes_of(r->ctx, "params.moments") / weights;
    out->tables = bytes_of(r->ctx, "params.tables") / weights;
}
static uint64_t hash_weights(const run *r) {
    uint64_t h = HASH_START;
    size_t i;
    for (i = 0; i < r->s.layers; i++) {
        const size_t count = layer_count(&r->s, i);
        float *w = (float *)allocate(count, sizeof *w);
        must(r->ctx, amp_param_read(set_of(r, i), index_of(r, i), w));
        h = hash_more(h, w, count * sizeof *w);
        free(w);
    }
    return h;
}
static result train(
    amp_ctx *ctx, const shape *s, const precision *p, int release, size_t steps, images *training, images *test) {
    static run r;
    result out = AMP_ZERO;
    digits data, unseen;
    size_t k;
    create(&r, ctx, s, p, release);
    measure(&r, &out);
    data = digits_to(ctx, training, p->model);
    unseen = digits_to(ctx, test, p->model);
    out.losses = HASH_START;
    for (k = 0; k < steps; k++) {
        net_input(&r.n, &data, k % (data.count / s->rows) * s->rows);
        step(&r);
        out.loss = net_read_loss(&r.n); /* waits */
        out.losses = hash_more(out.losses, &out.loss, sizeof out.loss);
    }
    out.accuracy = net_accuracy(&r.n, &unseen, test->label);
    out.weights = hash_weights(&r);
    digits_free(ctx, &data);
    digits_free(ctx, &unseen);
    destroy(&r);
    return out;
}

/* ---- the table ---- */

static void print_row(const precision *p, const char *loop, const result *r) {
    printf("%-32s %-8s %5.2f %5.2f %6.2f %7.2f %6.2f %6.2f  %6.4f  %5.1f %%  %016llx\n", p->name, loop, r->model,
        r->grad, r->master, r->moments, r->tables, r->model + r->grad + r->master + r->moments + r->tables,
        (double)r->loss, 100 * r->accuracy, (unsigned long long)r->weights);
}
static int compare(const shape *s, const precision *p, const result *loop, const result *release) {
    const double one = (double)amp_dtype_size(p->model), weights = (double)all_weights(s);
    const double largest = (double)largest_layer(s) / weights;
    int wrong = 0;
    wrong += claim(loop->losses == release->losses && loop->weights == release->weights,
        "%s: the same losses and weights, bit for bit", p->name);
    wrong += claim(release->grad <= one * largest + 256 / weights && loop->grad >= one,
        "%s: gradients have the memory of one layer, %.2f bytes per weight instead of %.2f", p->name, release->grad,
        loop->grad);
    return wrong;
}

int main(int argc, char **argv) {
    const char *device = NULL;
    amp_cpu_desc cpu = AMP_ZERO;
    shape s = AMP_ZERO;
    size_t steps = 100, i;
    images training, test;
    amp_ctx *ctx;
    result loop[PRECISIONS], release[PRECISIONS];
    int wrong = 0;
    const option options[] = {
        {"--device", OPTION_TEXT, &device, "cpu or cuda"},
        {"--steps", OPTION_COUNT, &steps, "steps of each run (100)"},
        {"--layers", OPTION_COUNT, &s.layers, "layers (8)"},
        {"--width", OPTION_COUNT, &s.width, "width of the hidden layers (128)"},
        {"--rows", OPTION_COUNT, &s.rows, "images of a step (64)"},
    };
    s.layers = NET_LAYERS;
    s.width = 128;
    s.rows = 64;
    if (!parse_options(argc, argv, options, sizeof options / sizeof *options, "release: options")) return 0;
    if (device) device = option_device("--device", device);
    load_data(NULL, &s, 1, &training, &test);
    ctx = open_context(device, &cpu);
    printf("%s; %lu weights in %lu layers. Bytes per weight:\n", amp_ctx_name(ctx), (unsigned long)all_weights(&s),
        (unsigned long)s.layers);
    printf("%-32s %-8s %5s %5s %6s %7s %6s %6s  %6s  %7s  %s\n", "", "steps", "model", "grad", "master", "moments",
        "tables", "all", "loss", "right", "weights");
    for (i = 0; i < PRECISIONS; i++) {
        loop[i] = train(ctx, &s, &precisions[i], 0, steps, &training, &test);
        release[i] = train(ctx, &s, &precisions[i], 1, steps, &training, &test);
        print_row(&precisions[i], "after", &loop[i]);
        print_row(&precisions[i], "inside", &release[i]);
    }
    for (i = 0; i < PRECISIONS; i++)
        wrong += compare(&s, &precisions[i], &loop[i], &release[i]);
    images_free(&training);
    images_free(&test);
    amp_ctx_destroy(ctx);
    return wrong != 0;
}
