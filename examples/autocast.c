/* autocast.c - one FP32 program under every precision policy: what each gives in accuracy, time and memory.
 *
 *     cc -std=c99 -O2 examples/autocast.c -I. -lm -pthread -o autocast && ./autocast
 *
 * All levels; --level O2-bf16 for one. train() is written as if everything were FP32. Three things make it mixed
 * precision, and none of them is a dtype in the loop:
 *   - the policy says what the parameters and the scaler are (amp_policy_params_desc, amp_policy_scaler_desc),
 *   - amp_autocast_begin / _end around the forward pass let the verbs choose,
 *   - a record per layer tells backward what forward chose.
 */
#define AMP_IMPLEMENTATION
#include "amp.h"
#include "digits_data.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    PIXELS = DIGITS_SIDE * DIGITS_SIDE,
    HIDDEN = 192,
    CLASSES = 10,
    LAYERS = 4,
    BATCH = 128,
    EPOCHS = 8,
    TRAIN = DIGITS_COUNT * 4 / 5,
    TEST = DIGITS_COUNT - TRAIN
};

static float images[DIGITS_COUNT][PIXELS];
static int32_t labels[DIGITS_COUNT];

static void must(amp_ctx *ctx, amp_status st) {
    if (st == AMP_OK) return;
    fprintf(stderr, "autocast: %s\n", *amp_last_error(ctx) ? amp_last_error(ctx) : amp_strerror(st));
    exit(1);
}
static amp_ledger_row ledger_row(const amp_ctx *ctx, const char *label) { /* all zero if the label was never used */
    amp_ledger_row row = AMP_ZERO;
    (void)amp_ledger(ctx, &row, 1, label);
    return row;
}
static double seconds(void) {
    return (double)clock() / CLOCKS_PER_SEC;
} /* of this processor: one thread, undisturbed by others */

static void load(void) { /* shuffled once: the first TRAIN images are for training */
    uint32_t order[DIGITS_COUNT], i, j, k;
    for (i = 0; i < DIGITS_COUNT; i++)
        order[i] = i;
    for (i = DIGITS_COUNT; i > 1; i--) {
        uint32_t swap = order[i - 1];
        j = amp_random(1998, 0, i) % i;
        order[i - 1] = order[j];
        order[j] = swap;
    }
    for (i = 0; i < DIGITS_COUNT; i++) {
        const char *text = digits_data[order[i]];
        labels[i] = text[0] - '0';
        for (k = 0; k < PIXELS; k++)
            images[i][k] = (float)(strchr(DIGITS_INK, text[2 + k]) - DIGITS_INK) / 16.0f;
    }
}

typedef struct net {
    amp_params *params;
    amp_scaler *scaler;
    amp_linear_desc layer[LAYERS];
    amp_precision record[LAYERS];
    amp_xent_desc loss;
    float *x;
    int32_t *labels;
} net;

static void *get(amp_ctx *ctx, size_t bytes, const char *label) {
    void *p;
    must(ctx, amp_alloc(ctx, &p, bytes, label));
    return p;
}

/* What amp_plan_memory is asked: the layers, and what each keeps for backward. */
static void describe(amp_plan_layer plan[LAYERS]) {
    int i;
    memset(plan, 0, LAYERS * sizeof *plan);
    for (i = 0; i < LAYERS; i++) {
        size_t in = i ? HIDDEN : PIXELS, out = i + 1 < LAYERS ? HIDDEN : CLASSES;
        plan[i].op = AMP_OP_LINEAR;
        plan[i].weight = in * out;
        plan[i].bias = out;
        plan[i].saved = BATCH * out * (i + 1 < LAYERS ? 2u : 1u); /* y, and for GELU the value before it */
    }
}

static void add_layer(amp_ctx *ctx, net *n, const amp_policy *policy, int i) { /* sizes, parameters 2 i and 2 i + 1 */
    amp_linear_desc *l = &n->layer[i];
    amp_param_desc w = AMP_ZERO, b = AMP_ZERO;
    int half_model = amp_policy_params_desc(policy).model != AMP_F32;
    double bound;
    float *init;
    size_t k;
    l->rows = BATCH;
    l->in = i ? HIDDEN : PIXELS;
    l->out = i + 1 < LAYERS ? HIDDEN : CLASSES;
    l->act = i + 1 < LAYERS ? AMP_GELU : AMP_ACT_NONE;
    bound = sqrt(6.0 / (double)l->in);
    w.count = l->in * l->out;
    b.count = l->out;
    init = (float *)malloc(w.count * sizeof(float));
    if (!init) exit(1);
    for (k = 0; k < w.count; k++)
        init[k] = (float)(bound * (2.0 * amp_random(7, (uint64_t)i, k) / 4294967296.0 - 1.0));
    w.init = init;
    w.keep_f32 = b.keep_f32 = half_model && amp_policy_keep_f32(policy, AMP_OP_LINEAR);
    must(ctx, amp_params_add(n->params, &w)); /* copies init */
    must(ctx, amp_params_add(n->params, &b));
    free(init);
}

static void connect_layer(amp_ctx *ctx, net *n, const amp_policy *policy, int i) {
    amp_linear_desc *l = &n->layer[i];
    size_t k = 2 * (size_t)i, m = l->rows * l->out;
    size_t y_size = amp_dtype_size(amp_policy_output(policy, AMP_OP_LINEAR, AMP_F32)); /* 4 would always do */
    l->x = i ? n->layer[i - 1].y : amp_arr(n->x, AMP_F32);
    l->w = amp_param_model(n->params, k);
    l->bias = amp_param_model(n->params, k + 1);
    l->y = amp_arr(get(ctx, m * y_size, "activations"), AMP_AUTO);
    l->dy = amp_arr(get(ctx, m * y_size, "gradients"), AMP_AUTO);
    if (l->act == AMP_GELU) l->aux = amp_arr(get(ctx, m * y_size, "activations"), AMP_AUTO);
    if (i) l->dx = n->layer[i - 1].dy;
    l->dw = amp_param_grad(n->params, k);
    l->dbias = amp_param_grad(n->params, k + 1);
    l->record = &n->record[i];
    if (i) l->from = &n->record[i - 1];
}

static void build(amp_ctx *ctx, net *n, const amp_policy *policy) {
    amp_params_desc pd = amp_policy_params_desc(policy);
    amp_scaler_desc sd = amp_policy_scaler_desc(policy);
    int i;
    memset(n, 0, sizeof *n);
    must(ctx, amp_params_create(&n->params, ctx, &pd));
    if (sd.mode == AMP_SCALER_DYNAMIC) sd.growth_interval = 50; /* the runs are short */
    must(ctx, amp_scaler_create(&n->scaler, ctx, &sd));
    for (i = 0; i < LAYERS; i++)
        add_layer(ctx, n, policy, i);
    must(ctx, amp_params_commit(n->params));
    n->x = (float *)get(ctx, BATCH * PIXELS * sizeof(float), "batch");
    n->labels = (int32_t *)get(ctx, BATCH * sizeof(int32_t), "batch");
    for (i = 0; i < LAYERS; i++)
        connect_layer(ctx, n, policy, i);
    n->loss.rows = BATCH;
    n->loss.classes = CLASSES;
    n->loss.from = &n->record[LAYERS - 1];
    n->loss.logits = n->layer[LAYERS - 1].y;
    n->loss.dlogits = n->layer[LAYERS - 1].dy;
    n->loss.labels = n->labels;
    n->loss.loss = (float *)get(ctx, sizeof(float), "batch");
    n->loss.row_loss = (float *)get(ctx, BATCH * sizeof(float), "batch");
    n->loss.scaler = n->scaler;
}

static void tear_down(amp_ctx *ctx, net *n) {
    int i;
    for (i = 0; i < LAYERS; i++) {
        must(ctx, amp_free(ctx, n->layer[i].y.data));
        must(ctx, amp_free(ctx, n->layer[i].dy.data));
        must(ctx, amp_free(ctx, n->layer[i].aux.data));
    }
    must(ctx, amp_free(ctx, n->x));
    must(ctx, amp_free(ctx, n->labels));
    must(ctx, amp_free(ctx, n->loss.loss));
    must(ctx, amp_free(ctx, n->loss.row_loss));
    amp_scaler_destroy(n->scaler);
    amp_params_destroy(n->params);
    must(ctx, amp_autocast_release(ctx));
}

static double accuracy(amp_ctx *ctx, net *n, const amp_autocast_desc *scope) {
    size_t at, r, c, right = 0;
    float out[BATCH * CLASSES]; /* large enough for any dtype */
    for (at = 0; at < TEST; at += BATCH) {
        size_t rows = TEST - at < BATCH ? TEST - at : BATCH;
        amp_dtype y;
        int i;
        must(ctx, amp_copy(ctx, n->x, images[TRAIN + at], rows * PIXELS * sizeof(float)));
        must(ctx, amp_autocast_begin(ctx, scope));
        for (i = 0; i < LAYERS; i++) {
            n->layer[i].rows = rows;
            must(ctx, amp_linear_forward(ctx, &n->layer[i]));
            n->layer[i].rows = BATCH;
        }
        must(ctx, amp_autocast_end(ctx));
        y = n->record[LAYERS - 1].y;
        must(ctx, amp_copy(ctx, out, n->loss.logits.data, rows * CLASSES * amp_dtype_size(y)));
        for (r = 0; r < rows; r++) {
            size_t best = 0;
            for (c = 1; c < CLASSES; c++)
                if (amp_load(out, y, r * CLASSES + c) > amp_load(out, y, r * CLASSES + best)) best = c;
            right += amp_is_finite(amp_load(out, y, r * CLASSES + best)) && (int32_t)best == labels[TRAIN + at + r];
        }
    }
    return 100.0 * (double)right / TEST;
}

/* Returns 0 when the ledger is not what was planned, or when a policy with FP32 weights has not learnt. */
static int train(amp_ctx *ctx, const char *level, const amp_policy *policy) {
    net n;
    amp_plan_layer layers[LAYERS];
    amp_plan plan;
    amp_autocast_desc scope = AMP_ZERO;
    amp_step_desc step = AMP_ZERO;
    amp_autocast_info info;
    amp_step_record record;
    double start, spent, right;
    float loss = 0;
    size_t epoch, at, i;
    int same, f32;
    uint64_t state, acts, casts = 0;

    describe(layers);
    if (amp_plan_memory(&plan, policy, NULL, layers, LAYERS, AMP_F32) != AMP_OK) return 0;
    build(ctx, &n, policy);
    scope.policy = policy;
    step.lr = 1e-3f;
    start = seconds();
    for (epoch = 0; epoch < EPOCHS; epoch++)
        for (at = 0; at + BATCH <= TRAIN; at += BATCH) {
            must(ctx, amp_copy(ctx, n.x, images[at], BATCH * PIXELS * sizeof(float)));
            must(ctx, amp_copy(ctx, n.labels, &labels[at], BATCH * sizeof(int32_t)));

            must(ctx, amp_autocast_begin(ctx, &scope));
            for (i = 0; i < LAYERS; i++)
                must(ctx, amp_linear_forward(ctx, &n.layer[i]));
            must(ctx, amp_softmax_cross_entropy(ctx, &n.loss));
            must(ctx, amp_autocast_end(ctx));
            for (i = LAYERS; i-- > 0;)
                must(ctx, amp_linear_backward(ctx, &n.layer[i]));
            must(ctx, amp_step(n.params, n.scaler, &step));
        }
    must(ctx, amp_sync(ctx));
    spent = seconds() - start;
    must(ctx, amp_step_poll(n.params, &record));
    must(ctx, amp_copy(ctx, &loss, n.loss.loss, sizeof loss));
    info = amp_autocast_get(ctx);
    right = accuracy(ctx, &n, &scope);

    state = ledger_row(ctx, "params.master").bytes + ledger_row(ctx, "params.model").bytes +
        ledger_row(ctx, "params.grad").bytes + ledger_row(ctx, "params.moments").bytes;
    acts = ledger_row(ctx, "activations").bytes;
    if (info.arena) casts = info.arena - AMP_AUTOCAST_SPARE;
    f32 = amp_policy_output(policy, AMP_OP_LINEAR, AMP_F32) == AMP_F32;
    same = state == plan.master + plan.model + plan.grad + plan.moments && acts == plan.saved && casts == plan.casts;
    printf("%-14s %-7s %6.1f%% %9.4f %8.2f %8lu %10.1f %10.1f %12.1f   %s\n", level,
        f32 ? "f32" : amp_dtype_name(policy->low), right, (double)loss,
        1000.0 * spent / (double)(EPOCHS * (TRAIN / BATCH)), (unsigned long)record.skipped, (double)state / 1024.0,
        (double)casts / 1024.0, (double)acts / 1024.0, same ? "as planned" : "NOT as planned");
    fflush(stdout);
    tear_down(ctx, &n);
    return same && (right > 90.0 || policy->preset == AMP_O3); /* O3 has no FP32 weights: it may fail */
}

int main(int argc, char **argv) {
    static const char all[][20] = {"O0", "O1", "O2", "O3", "O1-bf16", "O2-bf16", "O3-bf16", "pytorch-cpu",
        "mindspore-O1", "mindspore-O2", "mindspore-auto"};
    static const char usage[] =
        "usage: autocast [--level O0|O1|O2|O3|pytorch-cuda|pytorch-cpu|mindspore-O0..O3|mindspore-auto|amp, with "
        "the suffix -bf16 for BF16]\n";
    const char *levels[sizeof all / sizeof all[0]];
    amp_cpu_desc one = AMP_ZERO;
    amp_policy policy;
    amp_ctx *ctx;
    size_t n = sizeof all / sizeof all[0], i;
    int ok = 1;
    for (i = 0; i < n; i++)
        levels[i] = all[i];
    if (argc == 3 && strcmp(argv[1], "--level") == 0) {
        levels[0] = argv[2];
        n = 1;
    } else if (argc != 1) {
        fputs(usage, stderr);
        return 2;
    }
    load();
    one.threads = 1; /* small matrices; and times that can be compared */
    must(NULL, amp_cpu_create(&ctx, &one));
    for (i = 0; i < n; i++) {
        amp_preset preset;
        amp_policy_desc twin = AMP_ZERO;
        if (amp_preset_find(&preset, &twin.low, levels[i]) != AMP_OK) {
            fprintf(stderr, "autocast: --level %s: no such level\n%s", levels[i], usage);
            amp_ctx_destroy(ctx);
            return 2;
        }
        must(ctx, amp_policy_init(ctx, &policy, preset, &twin));
        if (i == 0)
            printf("One FP32 program, %lu level%s. %d pixels, %d hidden layers of %d, %d classes; GELU; batch %d, %d "
                   "epochs of %d digits; on %s\n\n"
                   "%-14s %-7s %7s %9s %8s %8s %10s %10s %12s   %s\n%-14s %-7s %7s %9s %8s %8s %10s %10s %12s\n",
                (unsigned long)n, n > 1 ? "s" : "", (int)PIXELS, LAYERS - 1, HIDDEN, CLASSES, BATCH, EPOCHS, TRAIN,
                amp_ctx_name(ctx), "level", "layers", "right", "loss at", "ms per", "steps", "model", "casts",
                "activations", "memory", "", "return", "(test)", "the end", "step", "skipped", "KiB", "KiB", "KiB");
        ok &= train(ctx, levels[i], &policy);
    }
    printf(
        "\nmodel: masters, model copies, gradients, Adam's moments. Mixed precision does not make it smaller; O3 "
        "does, as it keeps no FP32 weights\n"
        "       (enough here; digits.c shows where it is not).\n"
        "casts: copies of FP32 weights for the products, made by the scope. activations: what backward needs; this is "
        "what halves.\n"
        "time:  a CPU widens half numbers to FP32, so its products are no faster for them; a GPU's Tensor Cores are.\n"
        "steps skipped: while a dynamic loss scale that began too high came down.\n");
    amp_ctx_destroy(ctx);
    if (!ok) {
        fprintf(stderr, "autocast: a level did not do what it should\n");
        return 1;
    }
    return 0;
}
