/* recompute.c - a deep network whose activations do not fit the budget, trained within it, with the same losses.
 *
 *     cc -std=c99 -O2 examples/recompute.c -I. -lm -pthread -o recompute && ./recompute     (--budget KIB, --steps N)
 *
 * 20 hidden ReLU layers with dropout, in FP16 with FP32 masters (O2). Each hidden layer keeps one array for backward:
 * its output. recompute_plan.h says which to keep; what is not kept is freed in forward and computed again when
 * backward gets there, from the last kept one, in the scope that forward ran in and with the same dropout masks
 * (amp_snapshot). No mask is ever stored: dropout's random numbers are a function of (seed, stream, offset).
 */
#define AMP_IMPLEMENTATION
#include "amp.h"
#include "digits_data.h"
#include "recompute_plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PIXELS = DIGITS_SIDE * DIGITS_SIDE, HIDDEN = 128, CLASSES = 10, LAYERS = 21, BATCH = 128, MAX_STEPS = 1000 };
#define DROP 0.05f

static float images[DIGITS_COUNT][PIXELS];
static int32_t labels[DIGITS_COUNT];

static void must(amp_ctx *ctx, amp_status st) {
    if (st == AMP_OK) return;
    fprintf(stderr, "recompute: %s\n", *amp_last_error(ctx) ? amp_last_error(ctx) : amp_strerror(st));
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
static void load(void) {
    uint32_t i, k;
    for (i = 0; i < DIGITS_COUNT; i++) {
        labels[i] = digits_data[i][0] - '0';
        for (k = 0; k < PIXELS; k++)
            images[i][k] = (float)(strchr(DIGITS_INK, digits_data[i][2 + k]) - DIGITS_INK) / 16.0f;
    }
}

typedef struct net {
    amp_params *params;
    amp_scaler *scaler;
    amp_linear_desc layer[LAYERS];
    amp_precision record[LAYERS];
    amp_snapshot snapshot[LAYERS]; /* taken before each layer's forward */
    amp_rng rng[LAYERS];           /* of its dropout */
    amp_rng next;
    amp_xent_desc loss;
    float *x;
    int32_t *labels;
    void *gradient[2]; /* of a layer's output, in turn */
    const uint8_t *keep;
} net;

static size_t bytes_of(int i) { return sizeof(amp_f16) * BATCH * (size_t)(i + 1 < LAYERS ? HIDDEN : CLASSES); }

static void add_layer(amp_ctx *ctx, net *n, int i) { /* its sizes, and its parameters 2 i and 2 i + 1 */
    amp_linear_desc *l = &n->layer[i];
    amp_param_desc w = AMP_ZERO, b = AMP_ZERO;
    float *init;
    double bound;
    size_t k;
    l->rows = BATCH;
    l->in = i ? HIDDEN : PIXELS;
    l->out = i + 1 < LAYERS ? HIDDEN : CLASSES;
    l->act = i + 1 < LAYERS ? AMP_RELU : AMP_ACT_NONE;
    bound = sqrt(6.0 / (double)l->in);
    w.count = l->in * l->out;
    b.count = l->out;
    init = (float *)malloc(w.count * sizeof(float));
    if (!init) exit(1);
    for (k = 0; k < w.count; k++)
        init[k] = (float)(bound * (2.0 * amp_random(7, (uint64_t)i, k) / 4294967296.0 - 1.0));
    w.init = init;
    must(ctx, amp_params_add(n->params, &w)); /* copies init */
    must(ctx, amp_params_add(n->params, &b));
    free(init);
}

static void connect_layer(net *n, int i) { /* its arrays; y is allocated by each forward */
    amp_linear_desc *l = &n->layer[i];
    size_t k = 2 * (size_t)i;
    l->x = amp_arr(n->x, AMP_F32);
    l->w = amp_param_model(n->params, k);
    l->bias = amp_param_model(n->params, k + 1);
    l->dy = amp_arr(n->gradient[i % 2], AMP_AUTO);
    l->dw = amp_param_grad(n->params, k);
    l->dbias = amp_param_grad(n->params, k + 1);
    l->record = &n->record[i];
    if (i == 0) return;
    l->dx = amp_arr(n->gradient[(i + 1) % 2], AMP_AUTO);
    l->from = &n->record[i - 1];
}

static void *get(amp_ctx *ctx, size_t bytes, const char *label) {
    void *p;
    must(ctx, amp_alloc(ctx, &p, bytes, label));
    return p;
}

static void build(amp_ctx *ctx, net *n, const amp_policy *policy, const uint8_t *keep) {
    amp_params_desc pd = amp_policy_params_desc(policy);
    amp_scaler_desc sd = amp_policy_scaler_desc(policy);
    int i;
    memset(n, 0, sizeof *n);
    n->keep = keep;
    must(ctx, amp_params_create(&n->params, ctx, &pd));
    must(ctx, amp_scaler_create(&n->scaler, ctx, &sd));
    for (i = 0; i < LAYERS; i++)
        add_layer(ctx, n, i);
    must(ctx, amp_params_commit(n->params));
    n->x = (float *)get(ctx, BATCH * PIXELS * sizeof(float), "batch");
    n->labels = (int32_t *)get(ctx, BATCH * sizeof(int32_t), "batch");
    for (i = 0; i < 2; i++)
        n->gradient[i] = get(ctx, bytes_of(0), "gradients");
    for (i = 0; i < LAYERS; i++)
        connect_layer(n, i);
    n->loss.rows = BATCH;
    n->loss.classes = CLASSES;
    n->loss.from = &n->record[LAYERS - 1];
    n->loss.labels = n->labels;
    n->loss.scaler = n->scaler;
    n->loss.row_loss = (float *)get(ctx, BATCH * sizeof(float), "batch");
    n->loss.loss = (float *)get(ctx, sizeof(float), "batch");
}
static void tear_down(amp_ctx *ctx, net *n) {
    int i;
    for (i = 0; i < 2; i++)
        must(ctx, amp_free(ctx, n->gradient[i]));
    must(ctx, amp_free(ctx, n->x));
    must(ctx, amp_free(ctx, n->labels));
    must(ctx, amp_free(ctx, n->loss.row_loss));
    must(ctx, amp_free(ctx, n->loss.loss));
    amp_scaler_destroy(n->scaler);
    amp_params_destroy(n->params);
    must(ctx, amp_autocast_release(ctx));
}

static void drop(amp_ctx *ctx, net *n, int i) { /* the saved output of layer i */
    must(ctx, amp_free(ctx, n->layer[i].y.data));
    n->layer[i].y.data = NULL;
}

/* One layer forward: linear, ReLU, dropout. *rng moves on. */
static void layer_forward(amp_ctx *ctx, net *n, int i, amp_rng *rng) {
    amp_linear_desc *l = &n->layer[i];
    amp_dropout_desc d = AMP_ZERO;
    void *p;
    must(ctx, amp_alloc(ctx, &p, bytes_of(i), "activations")); /* on a GPU: from a pool of your own */
    l->y = amp_arr(p, AMP_AUTO);
    if (i) {
        l->x = n->layer[i - 1].y;
        l->x.dtype = AMP_AUTO;
    }
    must(ctx, amp_linear_forward(ctx, l));
    if (i + 1 == LAYERS) return;
    d.p = DROP;
    d.count = l->rows * l->out;
    d.x = d.y = amp_arr(l->y.data, n->record[i].y);
    d.rng = n->rng[i] = *rng;
    must(ctx, amp_dropout(ctx, &d));
    rng->offset += d.count;
}

static void forward(amp_ctx *ctx, net *n) {
    int i;
    for (i = 0; i < LAYERS; i++) {
        must(ctx, amp_snapshot_take(ctx, &n->snapshot[i], &n->next, n->scaler));
        layer_forward(ctx, n, i, &n->next);
        if (i && !n->keep[i - 1]) drop(ctx, n, i - 1);
    }
    n->loss.logits = n->layer[LAYERS - 1].y;
    n->loss.dlogits = n->layer[LAYERS - 1].dy;
    must(ctx, amp_softmax_cross_entropy(ctx, &n->loss));
    if (!n->keep[LAYERS - 1]) drop(ctx, n, LAYERS - 1);
}

/* The output of layer i again, with those before it back to a kept one. */
static void recompute(amp_ctx *ctx, net *n, int i) {
    int first = i, k;
    amp_rng rng;
    while (first > 0 && !n->layer[first - 1].y.data)
        first--;
    must(ctx, amp_snapshot_begin(ctx, &rng, &n->snapshot[first]));
    for (k = first; k <= i; k++)
        layer_forward(ctx, n, k, &rng);
    must(ctx, amp_autocast_end(ctx));
}

static void backward(amp_ctx *ctx, net *n) {
    int i;
    for (i = LAYERS - 1; i >= 0; i--) {
        amp_linear_desc *l = &n->layer[i];
        if (!l->y.data) recompute(ctx, n, i);
        if (i && !n->layer[i - 1].y.data) recompute(ctx, n, i - 1);
        if (i) l->x = amp_arr(n->layer[i - 1].y.data, AMP_AUTO);
        if (i + 1 < LAYERS) { /* dropout's backward: the same verb, the same numbers */
            amp_dropout_desc d = AMP_ZERO;
            d.p = DROP;
            d.count = l->rows * l->out;
            d.x = d.y = amp_arr(l->dy.data, n->record[i].y);
            d.rng = n->rng[i];
            must(ctx, amp_dropout(ctx, &d));
        }
        must(ctx, amp_linear_backward(ctx, l)); /* ReLU looks at y: 0 where it was dropped, as its gradient is */
        drop(ctx, n, i);
    }
}

typedef struct run {
    float loss[MAX_STEPS];
    amp_step_record last;
    uint64_t peak;
    double seconds;
} run;

static void train(run *r, const amp_policy *policy, const uint8_t *keep, int steps) {
    amp_ctx *ctx;
    amp_autocast_desc scope = AMP_ZERO;
    amp_step_desc step = AMP_ZERO;
    amp_cpu_desc one = AMP_ZERO;
    net n;
    int s;
    one.threads = 1;                        /* small matrices; and times that can be compared */
    must(NULL, amp_cpu_create(&ctx, &one)); /* a context of its own: its ledger has this run's peak */
    build(ctx, &n, policy, keep);
    scope.policy = policy;
    step.lr = 1e-3f;
    n.next.seed = 20; /* dropout */
    r->seconds = seconds();
    for (s = 0; s < steps; s++) {
        size_t at = (size_t)s * BATCH % (DIGITS_COUNT - BATCH);
        must(ctx, amp_copy(ctx, n.x, images[at], BATCH * PIXELS * sizeof(float)));
        must(ctx, amp_copy(ctx, n.labels, &labels[at], BATCH * sizeof(int32_t)));
        must(ctx, amp_autocast_begin(ctx, &scope));
        forward(ctx, &n);
        must(ctx, amp_autocast_end(ctx));
        backward(ctx, &n);
        must(ctx, amp_step(n.params, n.scaler, &step));
        must(ctx, amp_copy(ctx, &r->loss[s], n.loss.loss, sizeof(float)));
    }
    must(ctx, amp_sync(ctx));
    r->seconds = seconds() - r->seconds;
    must(ctx, amp_step_poll(n.params, &r->last));
    r->peak = ledger_row(ctx, "activations").peak;
    tear_down(ctx, &n);
    amp_ctx_destroy(ctx);
}

static void row(const char *name, const recompute_plan *plan, const run *r, const run *all, int steps, int *ok) {
    int same = memcmp(r->loss, all->loss, (size_t)steps * sizeof(float)) == 0;
    printf("%-22s %7lu %9.1f %12.1f %9.0f%% %9.2f %6.2fx %10.6f   %s\n", name, (unsigned long)plan->kept,
        (double)plan->peak / 1024.0, (double)r->peak / 1024.0, 100.0 * (double)plan->extra / (double)plan->base,
        1000.0 * r->seconds / steps, r->seconds / all->seconds, (double)r->loss[steps - 1],
        same ? "same losses" : "DIFFERENT LOSSES");
    *ok &= same && r->peak == plan->peak;
}

static int usage(void) {
    fprintf(stderr, "usage: recompute [--budget KIB] [--steps N]\n");
    return 0;
}
static int options(int argc, char **argv, uint64_t *budget, int *steps) { /* 0: wrong */
    int i;
    for (i = 1; i < argc; i += 2) {
        char *end = NULL;
        long v = i + 1 < argc ? strtol(argv[i + 1], &end, 10) : 0;
        if (!end || *end || v < 1) return usage();
        if (strcmp(argv[i], "--budget") == 0)
            *budget = (uint64_t)v * 1024u;
        else if (strcmp(argv[i], "--steps") == 0 && v <= MAX_STEPS)
            *steps = (int)v;
        else
            return usage();
    }
    return 1;
}

static void describe(recompute_layer layers[LAYERS]) {
    int i;
    for (i = 0; i < LAYERS; i++) {
        uint64_t in = i ? HIDDEN : PIXELS, out = i + 1 < LAYERS ? HIDDEN : CLASSES;
        layers[i].bytes = bytes_of(i);
        layers[i].work = 0;
        layers[i].cost = 2 * BATCH * in * out; /* operations of its forward */
    }
}

typedef struct choice {
    uint8_t keep[LAYERS];
    recompute_plan plan;
} choice;

static int choose(choice *all, choice *some, choice *root, uint64_t *budget) { /* 0: no choice meets the budget */
    recompute_layer layers[LAYERS];
    recompute_result result;
    describe(layers);
    memset(all->keep, 1, sizeof all->keep);
    (void)recompute_evaluate(&all->plan, layers, LAYERS, all->keep);
    (void)recompute_sqrt(&root->plan, root->keep, layers, LAYERS);
    if (!*budget) *budget = all->plan.peak * 45u / 100u;
    result = recompute_optimal(&some->plan, some->keep, layers, LAYERS, *budget);
    if (result == RECOMPUTE_OVER_BUDGET)
        fprintf(stderr, "recompute: --budget %.1f KiB, but no choice needs less than %.1f KiB\n",
            (double)*budget / 1024.0, (double)some->plan.least / 1024.0);
    else if (result != RECOMPUTE_OK)
        fprintf(stderr, "recompute: no plan\n");
    return result == RECOMPUTE_OK;
}

static void draw(const choice *c, const char *text) {
    int i;
    for (i = 0; i < LAYERS; i++)
        putchar(c->keep[i] ? '#' : '.');
    printf("  %s\n", text);
}

int main(int argc, char **argv) {
    static run all, some, root; /* 12 KiB of losses */
    choice keep_all, keep_some, keep_root;
    amp_policy policy;
    amp_ctx *ctx;
    uint64_t budget = 0;
    int steps = 100, ok = 1;
    if (!options(argc, argv, &budget, &steps)) return 2;
    if (!choose(&keep_all, &keep_some, &keep_root, &budget)) return 1;
    load();
    must(NULL, amp_cpu_create(&ctx, NULL));
    must(ctx, amp_policy_init(ctx, &policy, AMP_O2, NULL));
    amp_ctx_destroy(ctx);

    printf(
        "%d layers of %d, batch %d, O2, dropout %g, %d steps. Activations: %.1f KiB if all are kept, budget %.1f KiB, "
        "no choice needs less than %.1f KiB\n\n",
        LAYERS, HIDDEN, BATCH, (double)DROP, steps, (double)keep_all.plan.peak / 1024.0, (double)budget / 1024.0,
        (double)keep_some.plan.least / 1024.0);
    draw(&keep_some, "the plan: layers from first to last, # kept, . computed again");
    draw(&keep_root, "the square-root rule");
    printf("\n%-22s %7s %9s %12s %10s %9s %7s %10s\n", "", "kept", "plan KiB", "measured KiB", "extra work", "ms/step",
        "time", "last loss");
    train(&all, &policy, keep_all.keep, steps);
    row("everything kept", &keep_all.plan, &all, &all, steps, &ok);
    fflush(stdout);
    train(&some, &policy, keep_some.keep, steps);
    row("within the budget", &keep_some.plan, &some, &all, steps, &ok);
    fflush(stdout);
    train(&root, &policy, keep_root.keep, steps);
    row("square-root rule", &keep_root.plan, &root, &all, steps, &ok);
    printf("\nextra work: the share of forward that is computed twice. Backward costs about two forwards, so computing "
           "all of forward again adds a third to a step.\n"
           "same losses: those of every step, bit for bit.\n"
           "each run: %d skipped, scale %g\n",
        (int)all.last.skipped, (double)all.last.scale);
    if (steps >= 20 && !(all.loss[steps - 1] < all.loss[0])) {
        fprintf(stderr, "recompute: the loss did not fall\n");
        ok = 0;
    }
    if (some.peak > budget) {
        fprintf(stderr, "recompute: over the budget\n");
        ok = 0;
    }
    if (!ok) fprintf(stderr, "recompute: losses or peaks are not as promised\n");
    return !ok;
}
