/* debug.c - "my run does not learn": five runs, what is the matter with each, and the cure.
 *
 *     cc -std=c99 -O2 examples/debug.c -I. -lm -pthread -o debug && ./debug
 *     (--check, --device cpu|cuda, --out DIR, --steps N)
 *
 *   1. BF16 weights without masters: 1,000 steps, each of them "stepped", and next to nothing moves.
 *   2. FP16 with a loss scale that cannot fall: every step is skipped, and the scale is dead.
 *   3. FP16 without a loss scale, a loss whose gradients are small: every step is taken, in a wrong direction. The
 *      histogram of each parameter's gradients shows why, and what amp_histogram_suggest_scale makes of it is the cure.
 *   4. FP16, one bad row of weights in layer 5: steps are skipped from then on. first_param says only where the bad
 *      gradients begin; the skipped step runs again with an eye on every array, here and, from a state file, on the
 *      CPU in the defined order.
 *   5. The same with one NaN among the weights of layer 5.
 * docs/doctor.md explains the tools. The pictures are DIR/debug_1.svg, debug_2.svg and debug_3.svg.
 */
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

#define PROGRAM "debug"
#include "digits_data.h"
#include "plot_gradients.h"
#include "program.h" /* fail, must, allocate, claim */

enum { PIXELS = DIGITS_SIDE * DIGITS_SIDE, WIDTH = 32, CLASSES = 10, LAYERS = 7, BATCH = 32, ROWS = LAYERS + 1 };

/* ==== a network: six hidden ReLU layers and the logits, no biases ================================================= */

typedef struct net {
    amp_ctx *ctx;
    amp_params *params;
    amp_scaler *scaler; /* NULL: none */
    amp_linear_desc layer[LAYERS];
    amp_xent_desc loss;
    void *x;
    int32_t *labels;
    void *memory[2 * LAYERS + 2]; /* the arrays of the layers */
    int n_memory;
    amp_watch watch;
} net;

static const char *const forward_name[LAYERS] = {
    "layer1.y", "layer2.y", "layer3.y", "layer4.y", "layer5.y", "layer6.y", "logits"};
static const char *const backward_name[LAYERS] = {
    "input's gradient", "layer1.dy", "layer2.dy", "layer3.dy", "layer4.dy", "layer5.dy", "layer6.dy"};

static size_t in_of(int l) { return l == 0 ? PIXELS : WIDTH; }
static size_t out_of(int l) { return l == LAYERS - 1 ? CLASSES : WIDTH; }

static amp_array new_array(net *n, amp_dtype t, size_t count) {
    void *p = NULL;
    must(n->ctx, amp_alloc(n->ctx, &p, count * amp_dtype_size(t), "layers"));
    n->memory[n->n_memory++] = p;
    return amp_arrn(p, t, count);
}

static void add_weights(net *n, int l) { /* uniform, for ReLU */
    static const char *const names[LAYERS] = {
        "layer1.weight", "layer2.weight", "layer3.weight", "layer4.weight", "layer5.weight", "layer6.weight", "head"};
    amp_param_desc d = AMP_ZERO;
    size_t count = in_of(l) * out_of(l), i;
    float *w = (float *)allocate(count, sizeof *w), size = sqrtf(6.0f / (float)in_of(l));
    for (i = 0; i < count; i++)
        w[i] = size * ((float)(amp_random(1, (uint64_t)l, i) >> 8) / 8388608.0f - 1.0f);
    d.name = names[l];
    d.rows = out_of(l);
    d.cols = in_of(l);
    d.init = w;
    must(n->ctx, amp_params_add(n->params, &d));
    free(w);
}

static void net_begin(net *n, amp_ctx *ctx, amp_dtype model, amp_master master, const amp_scaler_desc *scaler) {
    amp_params_desc pd = AMP_ZERO;
    int l;
    memset(n, 0, sizeof *n);
    n->ctx = ctx;
    pd.model = model;
    pd.master = master;
    must(ctx, amp_params_create(&n->params, ctx, &pd));
    for (l = 0; l < LAYERS; l++)
        add_weights(n, l);
    must(ctx, amp_params_commit(n->params));
    if (scaler) must(ctx, amp_scaler_create(&n->scaler, ctx, scaler));
    n->x = new_array(n, model, BATCH * PIXELS).data;
    for (l = 0; l < LAYERS; l++) {
        amp_linear_desc *d = &n->layer[l];
        d->rows = BATCH;
        d->in = in_of(l);
        d->out = out_of(l);
        d->act = l < LAYERS - 1 ? AMP_RELU : AMP_ACT_NONE;
        d->x = l ? n->layer[l - 1].y : amp_arrn(n->x, model, BATCH * PIXELS);
        d->w = amp_param_model(n->params, (size_t)l);
        d->dw = amp_param_grad(n->params, (size_t)l);
        d->y = new_array(n, model, BATCH * out_of(l));
        d->dy = new_array(n, model, BATCH * out_of(l));
        if (l) d->dx = n->layer[l - 1].dy;
    }
    n->loss.rows = BATCH;
    n->loss.classes = CLASSES;
    n->loss.logits = n->layer[LAYERS - 1].y;
    n->loss.dlogits = n->layer[LAYERS - 1].dy;
    n->loss.scaler = n->scaler;
    must(ctx, amp_alloc(ctx, (void **)&n->labels, BATCH * sizeof *n->labels, "layers"));
    must(ctx, amp_alloc(ctx, (void **)&n->loss.row_loss, BATCH * sizeof(float), "layers"));
    must(ctx, amp_alloc(ctx, (void **)&n->loss.loss, sizeof(float), "layers"));
    n->loss.labels = n->labels;
}
static void net_end(net *n) {
    while (n->n_memory)
        must(n->ctx, amp_free(n->ctx, n->memory[--n->n_memory]));
    must(n->ctx, amp_free(n->ctx, n->labels));
    must(n->ctx, amp_free(n->ctx, n->loss.row_loss));
    must(n->ctx, amp_free(n->ctx, n->loss.loss));
    amp_scaler_destroy(n->scaler);
    amp_params_destroy(n->params);
}

static void load_batch(net *n, int step) { /* a step's batch is a function of its number: so it can be had again */
    amp_f16 half[BATCH * PIXELS];
    amp_bf16 brain[BATCH * PIXELS];
    int32_t labels[BATCH];
    int bf16 = n->layer[0].x.dtype == AMP_BF16;
    size_t b, k;
    for (b = 0; b < BATCH; b++) {
        const char *digit = digits_data[amp_random(2, (uint64_t)step, b) % DIGITS_COUNT];
        labels[b] = digit[0] - '0';
        for (k = 0; k < PIXELS; k++) {
            float ink = (float)(strchr(DIGITS_INK, digit[2 + k]) - DIGITS_INK) / 16.0f;
            half[b * PIXELS + k] = amp_f16_from_f32(ink);
            brain[b * PIXELS + k] = amp_bf16_from_f32(ink);
        }
    }
    must(n->ctx, amp_copy(n->ctx, n->x, bf16 ? (const void *)brain : (const void *)half, sizeof half));
    must(n->ctx, amp_copy(n->ctx, n->labels, labels, sizeof labels));
}
/* Forward and backward of a step. amp_watch_array does nothing unless the watch is on. */
static void gradients(net *n, int step) {
    int l;
    load_batch(n, step);
    for (l = 0; l < LAYERS; l++) {
        must(n->ctx, amp_linear_forward(n->ctx, &n->layer[l]));
        must(n->ctx, amp_watch_array(n->ctx, &n->watch, forward_name[l], n->layer[l].y));
    }
    must(n->ctx, amp_softmax_cross_entropy(n->ctx, &n->loss));
    must(n->ctx, amp_watch_array(n->ctx, &n->watch, "logits' gradient", n->loss.dlogits));
    for (l = LAYERS - 1; l >= 0; l--) {
        must(n->ctx, amp_linear_backward(n->ctx, &n->layer[l]));
        if (l) must(n->ctx, amp_watch_array(n->ctx, &n->watch, backward_name[l], n->layer[l].dx));
    }
}
static float loss_of(net *n) {
    float loss = 0;
    must(n->ctx, amp_copy(n->ctx, &loss, n->loss.loss, sizeof loss));
    return loss;
}
/* Steps first .. first + count; returns the loss of the last. */
static float train(net *n, int first, int count, float lr, uint32_t stochastic) {
    amp_step_desc d = AMP_ZERO;
    int step;
    d.lr = lr;
    d.stochastic = stochastic;
    for (step = first; step < first + count; step++) {
        d.seed = 3;
        d.count_lost = step == first + count - 1; /* of the last one */
        gradients(n, step);
        must(n->ctx, amp_step(n->params, n->scaler, &d));
    }
    return loss_of(n);
}
static amp_step_record record(net *n) {
    amp_step_record r;
    must(n->ctx, amp_sync(n->ctx));
    must(n->ctx, amp_step_poll(n->params, &r));
    return r;
}

/* ==== what is the matter? ========================================================================================= */

static amp_report_row rows[ROWS];
static int quiet;        /* --check */
static int steps = 1000; /* of the first run; with fewer, what they would learn is not claimed */

static void say(const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (!quiet) vprintf(format, args);
    va_end(args);
}
static void examine(net *n, const char *picture, const char *out, const char *title) {
    plot_doctor_row plot[ROWS];
    char text[4096], path[512];
    size_t i;
    must(n->ctx, amp_report(n->params, n->scaler, rows, ROWS, NULL, NULL, 0));
    (void)amp_report_text(text, sizeof text, rows, ROWS);
    say("\n%s\n", text);
    if (!out) return;
    for (i = 0; i < ROWS; i++) {
        const amp_histogram *h = &rows[i].values;
        double all = h->total ? (double)h->total : 1.0, good = (double)(h->total - h->zero - h->inf - h->nan) / all;
        plot[i].name = rows[i].name;
        plot[i].advice = rows[i].advice;
        plot[i].zero = (double)h->zero / all + good * rows[i].fate[AMP_F16].lost;
        plot[i].subnormal = good * rows[i].fate[AMP_F16].subnormal;
        plot[i].bad = (double)(h->inf + h->nan) / all + good * rows[i].fate[AMP_F16].overflow;
        plot[i].lost = rows[i].updates ? (double)rows[i].lost / (double)rows[i].updates : 0.0;
    }
    snprintf(path, sizeof path, "%s/%s", out, picture);
    if (plot_doctor(path, title, plot, ROWS)) fail("%s: cannot be written", path);
}

/* 1. Every step says "stepped". */
static int patient_lost(amp_ctx *ctx, const char *out) {
    net n;
    float loss[3], lr = 4e-5f;
    amp_step_record r;
    double lost;
    uint64_t still;
    int wrong = 0;
    say("1. BF16 weights without masters, AdamW, learning rate %g: %d steps.\n", (double)lr, steps);
    net_begin(&n, ctx, AMP_BF16, AMP_MASTER_NONE, NULL);
    loss[0] = train(&n, 0, steps, lr, 0);
    r = record(&n);
    examine(&n, "debug_1.svg", out, "Every step says \"stepped\", and next to nothing moves");
    lost = (double)rows[0].lost / (double)(rows[0].updates ? rows[0].updates : 1);
    still = rows[0].lost;
    say("stepped %d times, skipped %d; the last step lost %d of %d updates; loss %.3f\n", (int)r.steps, (int)r.skipped,
        (int)still, (int)rows[0].updates, (double)loss[0]);
    wrong += claim(r.steps == (uint64_t)steps && r.skipped == 0, "%d steps without masters all say \"stepped\"", steps);
    wrong += claim(lost > 0.9, "%.1f %% of the last step's updates changed no weight", 100 * lost);
    wrong += claim(strstr(rows[3].advice, "keep masters, or round stochastically") != NULL, "%s: %s", rows[3].name,
        rows[3].advice);
    net_end(&n);
    net_begin(&n, ctx, AMP_BF16, AMP_MASTER_NONE, NULL);
    loss[1] = train(&n, 0, steps, lr, 1);
    net_end(&n);
    net_begin(&n, ctx, AMP_BF16, AMP_MASTER_F32, NULL);
    loss[2] = train(&n, 0, steps, lr, 0);
    must(ctx, amp_report(n.params, NULL, rows, ROWS, NULL, NULL, 0));
    wrong += claim(rows[0].lost * 10 < rows[0].updates, "with masters %d of %d updates are lost", (int)rows[0].lost,
        (int)rows[0].updates);
    wrong += claim(steps < 1000 || (loss[1] < 0.7f * loss[0] && loss[2] < 0.7f * loss[0]),
        "loss after %d steps: %.3f, rounded stochastically %.3f, with masters %.3f", steps, (double)loss[0],
        (double)loss[1], (double)loss[2]);
    net_end(&n);
    return wrong;
}

/* 2. Every step is skipped. */
static int patient_dead(amp_ctx *ctx, const char *out) {
    amp_scaler_desc d = AMP_ZERO;
    amp_scaler_info info;
    net n;
    float loss, scale;
    int wrong = 0;
    say("\n2. FP16, a loss scale of 2^24 that may not fall (min_scale): 12 steps.\n");
    d.scale = d.min_scale = 16777216.0f;
    net_begin(&n, ctx, AMP_F16, AMP_MASTER_F32, &d);
    (void)train(&n, 0, 12, 1e-3f, 0);
    examine(&n, "debug_2.svg", out, "A loss scale that is too large");
    must(ctx, amp_scaler_get(n.scaler, &info));
    wrong += claim(info.dead && info.good == 0 && strstr(rows[0].advice, "dead"), "%s", rows[0].advice);
    d = (amp_scaler_desc)AMP_ZERO; /* the cure: the defaults, which fall as far as 1 */
    must(ctx, amp_scaler_configure(n.scaler, &d));
    loss = train(&n, 12, 20 + steps / 4, 1e-3f, 0);
    must(ctx, amp_report(n.params, n.scaler, rows, ROWS, NULL, NULL, 0));
    must(ctx, amp_scaler_get(n.scaler, &info));
    scale = amp_histogram_suggest_scale(&rows[0].values) * info.scale;
    wrong += claim(!info.dead && info.good && rows[0].advice[0] == 0 && (steps < 1000 || loss < 1.0f),
        "with the default floor the scale is %g, the loss %.3f; these gradients would fit %g", (double)info.scale,
        (double)loss, (double)scale);
    net_end(&n);
    return wrong;
}

/* The step that was skipped, again: its weights are still there; its scale is in the record. */
static const char *first_bad(net *n, int step, float scale) {
    amp_scaler_info before;
    must(n->ctx, amp_scaler_get(n->scaler, &before));
    must(n->ctx, amp_scaler_set_scale(n->scaler, scale));
    memset(&n->watch, 0, sizeof n->watch);
    n->watch.on = 1;
    gradients(n, step);
    n->watch.on = 0;
    must(n->ctx, amp_scaler_set(n->scaler, &before)); /* as if nothing had been */
    return n->watch.where ? n->watch.where : "nowhere";
}

/* 3. The loss is a mean over 512 x 512 places, as in the segmentation of an image, one of which is computed here: its
   gradients are too small for FP16. */
#define PLACES (512.0f * 512.0f)
static int patient_small(amp_ctx *ctx, const char *out) {
    amp_scaler_desc d = AMP_ZERO;
    net n;
    float loss, cured;
    double gone, small;
    int wrong = 0;
    say("\n3. FP16 without loss scaling, the loss a mean over 512 x 512 places: %d steps.\n", 20 + steps / 4);
    net_begin(&n, ctx, AMP_F16, AMP_MASTER_F32, NULL);
    n.loss.factor = amp_opt(1.0f / PLACES);
    loss = train(&n, 0, 20 + steps / 4, 1e-3f, 0);
    examine(&n, "debug_3.svg", out, "Gradients that FP16 cannot hold");
    gone = (double)rows[0].values.zero / (double)rows[0].values.total;
    small = (1 - gone) * rows[0].fate[AMP_F16].subnormal;
    d.mode = AMP_SCALER_STATIC;
    d.scale = amp_histogram_suggest_scale(&rows[0].values);
    wrong += claim(gone + small > 0.8,
        "%.1f %% of the gradients are 0, %.1f %% subnormal: what the net learns from is noise", 100 * gone,
        100 * small);
    wrong += claim(strstr(rows[1].advice, "loss scale") != NULL, "%s: %s", rows[1].name, rows[1].advice);
    net_end(&n);
    net_begin(&n, ctx, AMP_F16, AMP_MASTER_F32, &d); /* the cure: the scale that the histogram suggests */
    n.loss.factor = amp_opt(1.0f / PLACES);
    cured = train(&n, 0, 20 + steps / 4, 1e-3f, 0);
    must(ctx, amp_report(n.params, n.scaler, rows, ROWS, NULL, NULL, 0));
    wrong += claim(rows[0].advice[0] == 0 && (steps < 1000 || cured < 0.5f * loss),
        "loss %.3f; with the suggested scale of 2^%g it is %.3f", (double)loss, log2((double)d.scale), (double)cured);
    net_end(&n);
    return wrong;
}

/* 4 and 5. Something bad among the weights of layer 5: steps are skipped from the 20th on. */
static void plant(net *n, int nan) {
    float w[WIDTH * WIDTH];
    int i;
    must(n->ctx, amp_param_read(n->params, 4, w));
    for (i = 0; i < WIDTH && !nan; i++)
        w[i] = 60000.0f;
    if (nan) w[WIDTH + 1] = NAN;
    must(n->ctx, amp_param_write(n->params, 4, w));
}
static int patient_bad(amp_ctx *ctx, const char *state_path, int nan) {
    amp_scaler_desc defaults = AMP_ZERO;
    amp_state_desc state = AMP_ZERO;
    amp_cpu_desc cpu = AMP_ZERO;
    amp_ctx *replay = NULL;
    amp_step_record r;
    net n, again;
    const char *where;
    struct {
        int32_t step;
        float scale;
    } failed = {0, 0};
    int wrong = 0;
    say("\n%d. FP16; before step 20 %s.\n\n", nan ? 5 : 4,
        nan ? "one of layer 5's weights becomes NaN" : "a row of layer 5's weights becomes 60000");
    net_begin(&n, ctx, AMP_F16, AMP_MASTER_F32, &defaults);
    (void)train(&n, 0, 20, 1e-3f, 0);
    plant(&n, nan);
    (void)train(&n, 20, 1, 1e-3f, 0);
    r = record(&n);
    failed.step = 20;
    failed.scale = r.scale;
    wrong += claim(r.skip, "step 20: %s; the first bad gradient is that of %s", amp_outcome_name(r.outcome),
        amp_param_get(n.params, r.first_param).name);
    where = first_bad(&n, failed.step, failed.scale);
    wrong += claim(!strcmp(where, "layer5.y"),
        "run again, the first bad array is %s: %d of its numbers, after %d good "
        "arrays",
        where, (int)(n.watch.found.inf + n.watch.found.nan), (int)n.watch.seen - 1);
    /* for a different machine: weights, moments, scaler, and which step it was */
    state.params = &n.params;
    state.n_params = 1;
    state.scalers = &n.scaler;
    state.n_scalers = 1;
    state.user = &failed;
    state.user_bytes = sizeof failed;
    must(ctx, amp_state_save(ctx, state_path, &state));
    memset(&failed, 0, sizeof failed);
    cpu.gemm_flags = AMP_GEMM_ORDERED;
    must(NULL, amp_cpu_create(&replay, &cpu));
    net_begin(&again, replay, AMP_F16, AMP_MASTER_F32, &defaults);
    state.params = &again.params;
    state.scalers = &again.scaler;
    must(replay, amp_state_load(replay, state_path, &state));
    (void)remove(state_path);
    where = first_bad(&again, failed.step, failed.scale);
    wrong += claim(!strcmp(where, "layer5.y"), "from a state file, on the CPU in the defined order: %s", where);
    net_end(&again);
    amp_ctx_destroy(replay);
    net_end(&n);
    return wrong;
}

/* In the defined order of sums: the figures that this program prints are the same on every machine. */
static amp_ctx *create_context(const char *device) {
    amp_cpu_desc cpu = AMP_ZERO;
    cpu.gemm_flags = AMP_GEMM_ORDERED;
    return open_context(device, &cpu);
}

static const char help[] =
    "debug: five runs that do not learn, and how amp finds out why.\n\n"
    "  --check              no tables, only what each run shows; exit status 1 if something is wrong\n"
    "  --device cpu|cuda    where (cuda if built with it and found)\n"
    "  --out DIR            folder for the pictures (none are drawn without it)\n"
    "  --steps N            steps of a run (1000)\n";

int main(int argc, char **argv) {
    const char *device = NULL, *out = NULL;
    char state[600];
    amp_ctx *ctx;
    int i, wrong = 0;
    for (i = 1; i < argc; i++) {
        option_help(argv[i], help);
        if (!strcmp(argv[i], "--check")) {
            quiet = 1;
            continue;
        }
        if (!strcmp(argv[i], "--device"))
            device = option_device(argv[i], argv[i + 1]);
        else if (!strcmp(argv[i], "--out"))
            out = option_text(argv[i], argv[i + 1]);
        else if (!strcmp(argv[i], "--steps"))
            steps = (int)option_number(argv[i], argv[i + 1], 1, 1e6, 1);
        else
            option_unknown(argv[i]);
        i++;
    }
    ctx = create_context(device);
    snprintf(state, sizeof state, "%s/debug.state", out ? out : ".");
    wrong += patient_lost(ctx, out);
    wrong += patient_dead(ctx, out);
    wrong += patient_small(ctx, out);
    wrong += patient_bad(ctx, state, 0);
    wrong += patient_bad(ctx, state, 1);
    amp_ctx_destroy(ctx);
    return wrong != 0;
}
