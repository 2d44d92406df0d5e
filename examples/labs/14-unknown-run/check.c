/* check.c - the checker of lab 14. It trains the six runs, prints what amp_report says of each without the advice, and
 * compares the answers with what it has done to them. Ordered products: the tables are the same on every machine. */
#include "amp.h"
#include "lab.h"
#include <ctype.h>

enum { CHECK_RUNS = 6, CHECK_LAYERS = 3, CHECK_BATCH = 64, CHECK_WIDE = 16, CHECK_STEPS = 600, CHECK_LINES = 7 };

typedef enum check_cause {
    CHECK_NO_MASTERS,
    CHECK_SMALL,
    CHECK_DEAD,
    CHECK_BAD,
    CHECK_HEALTHY,
    CHECK_CAUSES
} check_cause;
static const char *const check_names[CHECK_CAUSES] = {
    "no-masters", "small-gradients", "dead-scale", "bad-layer", "healthy"};

typedef struct check_run {
    check_cause cause;
    amp_dtype format; /* of weights and gradients */
    amp_master master;
    float scale;   /* 0: no scaler */
    int may_fall;  /* the scale */
    float smaller; /* the loss is divided by this */
    int bad_layer; /* 1 .. : its weights get a NaN before the third step from the end */
} check_run;

static const check_run check_cases[CHECK_RUNS] = {
    {CHECK_NO_MASTERS, AMP_BF16, AMP_MASTER_NONE, 0, 0, 1, 0},
    {CHECK_HEALTHY, AMP_F16, AMP_MASTER_F32, 65536, 1, 64, 0},
    {CHECK_SMALL, AMP_F16, AMP_MASTER_F32, 0, 0, 262144, 0},
    {CHECK_BAD, AMP_F16, AMP_MASTER_F32, 1024, 1, 1, 1 + (LAB14_ORDER + 1) % CHECK_LAYERS},
    {CHECK_HEALTHY, AMP_BF16, AMP_MASTER_F32, 0, 0, 4194304, 0},
    {CHECK_DEAD, AMP_F16, AMP_MASTER_F32, 0x1p40f, 0, 1, 0},
};
/* The case of run 0, 1, ...: a class's variant has another order. */
static const check_run *check_of(int run) {
    int step = LAB14_ORDER % 2 ? 5 : 1; /* forwards or backwards */
    return &check_cases[(run * step + LAB14_ORDER) % CHECK_RUNS];
}

/* ---- a run ---- */

typedef struct check_net {
    amp_ctx *ctx;
    amp_params *params;
    amp_scaler *scaler;
    amp_linear_desc layer[CHECK_LAYERS];
    amp_xent_desc loss;
    float mean, row_loss[CHECK_BATCH];
    uint16_t x[CHECK_LAYERS + 1][CHECK_BATCH * CHECK_WIDE], dx[CHECK_LAYERS + 1][CHECK_BATCH * CHECK_WIDE];
    int32_t labels[CHECK_BATCH];
} check_net;

static size_t check_width(int layer) { return layer == CHECK_LAYERS ? 4 : CHECK_WIDE; } /* of its input */
static float check_uniform(uint64_t stream, size_t i) {
    return (float)(amp_random(14, stream, i) >> 8) / 8388608.0f - 1.0f;
}
static void check_ok(amp_ctx *ctx, amp_status status) {
    if (status != AMP_OK) lab_wrong("the checker itself fails: %s", amp_last_error(ctx));
}

static void check_inputs(check_net *n, amp_dtype t) { /* the class is that of the largest of four sums */
    for (size_t r = 0; r < CHECK_BATCH; r++) {
        float sum[4] = {0};
        for (size_t c = 0; c < CHECK_WIDE; c++) {
            float x = check_uniform(1, r * CHECK_WIDE + c);
            amp_store(n->x[0], t, r * CHECK_WIDE + c, x);
            sum[c % 4] += x;
        }
        for (int k = 1; k < 4; k++)
            if (sum[k] > sum[n->labels[r]]) n->labels[r] = k;
    }
}
static void check_create(check_net *n, const check_run *r) {
    amp_cpu_desc cpu = AMP_ZERO;
    amp_params_desc set = AMP_ZERO;
    amp_scaler_desc scaler = AMP_ZERO;
    static float init[CHECK_WIDE * CHECK_WIDE];
    memset(n, 0, sizeof *n);
    cpu.threads = 1;
    cpu.gemm_flags = AMP_GEMM_ORDERED;
    check_ok(NULL, amp_cpu_create(&n->ctx, &cpu));
    set.model = r->format;
    set.master = r->master;
    check_ok(n->ctx, amp_params_create(&n->params, n->ctx, &set));
    scaler.scale = r->scale;
    scaler.min_scale = r->may_fall ? 0 : r->scale;
    if (r->scale > 0) check_ok(n->ctx, amp_scaler_create(&n->scaler, n->ctx, &scaler));
    check_inputs(n, r->format);
    for (int l = 0; l < CHECK_LAYERS; l++) {
        static const char *const names[] = {"layer1", "layer2", "layer3"};
        amp_param_desc p = AMP_ZERO;
        for (size_t i = 0; i < CHECK_WIDE * CHECK_WIDE; i++)
            init[i] = 0.5f * check_uniform(2 + (uint64_t)l, i);
        p.name = names[l];
        p.rows = check_width(l + 1);
        p.cols = check_width(l);
        p.init = init;
        check_ok(n->ctx, amp_params_add(n->params, &p));
    }
    check_ok(n->ctx, amp_params_commit(n->params));
    for (int l = 0; l < CHECK_LAYERS; l++) {
        amp_linear_desc *d = &n->layer[l];
        d->act = l + 1 < CHECK_LAYERS ? AMP_RELU : AMP_ACT_NONE;
        d->rows = CHECK_BATCH;
        d->in = check_width(l);
        d->out = check_width(l + 1);
        d->x = amp_arrn(n->x[l], r->format, CHECK_BATCH * d->in);
        d->y = amp_arrn(n->x[l + 1], r->format, CHECK_BATCH * d->out);
        d->dy = amp_arrn(n->dx[l + 1], r->format, CHECK_BATCH * d->out);
        if (l > 0) d->dx = amp_arrn(n->dx[l], r->format, CHECK_BATCH * d->in);
        d->w = amp_param_model(n->params, (size_t)l);
        d->dw = amp_param_grad(n->params, (size_t)l);
    }
    n->loss.rows = CHECK_BATCH;
    n->loss.classes = 4;
    n->loss.logits = n->layer[CHECK_LAYERS - 1].y;
    n->loss.dlogits = n->layer[CHECK_LAYERS - 1].dy;
    n->loss.labels = n->labels;
    n->loss.loss = &n->mean;
    n->loss.row_loss = n->row_loss;
    n->loss.scaler = n->scaler;
    n->loss.factor = amp_opt(1 / r->smaller);
}
static void check_destroy(check_net *n) {
    amp_scaler_destroy(n->scaler);
    amp_params_destroy(n->params);
    amp_ctx_destroy(n->ctx);
}
static void check_step(check_net *n) {
    amp_step_desc step = AMP_ZERO;
    for (int l = 0; l < CHECK_LAYERS; l++)
        check_ok(n->ctx, amp_linear_forward(n->ctx, &n->layer[l]));
    check_ok(n->ctx, amp_softmax_cross_entropy(n->ctx, &n->loss));
    for (int l = CHECK_LAYERS - 1; l >= 0; l--)
        check_ok(n->ctx, amp_linear_backward(n->ctx, &n->layer[l]));
    step.optimizer = AMP_ADAM;
    step.lr = 0.0003f;
    step.eps = amp_opt(1e-16f); /* the smallest gradients here are 2^-40 */
    step.count_lost = 1;
    check_ok(n->ctx, amp_step(n->params, n->scaler, &step));
}
static void check_spoil(check_net *n, int layer) {
    static float w[CHECK_WIDE * CHECK_WIDE];
    check_ok(n->ctx, amp_param_read(n->params, (size_t)layer, w));
    w[3] = NAN;
    check_ok(n->ctx, amp_param_write(n->params, (size_t)layer, w));
}

/* The table without the advice: its lines have a "|". */
static void check_print(check_net *n, int run, const check_run *r, float first) {
    static amp_report_row rows[CHECK_LINES];
    static const char *const names[] = {"layer1.y", "layer2.y", "layer3.y"};
    static char text[4000];
    amp_array y[CHECK_LAYERS];
    amp_scaler_info now;
    amp_step_record last;
    for (int l = 0; l < CHECK_LAYERS; l++)
        y[l] = n->layer[l].y;
    check_ok(n->ctx, amp_report(n->params, n->scaler, rows, CHECK_LINES, y, names, CHECK_LAYERS));
    check_ok(n->ctx, amp_scaler_get(n->scaler, &now));
    check_ok(n->ctx, amp_step_poll(n->params, &last));
    (void)amp_report_text(text, sizeof text, rows, CHECK_LINES);
    printf("run %c: gradients in %s, loss scale 2^%d; %d steps taken, %d skipped; loss %.2f at first, %.2f at last\n",
        'A' + run, amp_dtype_name(r->format), (int)log2f(now.scale), (int)last.steps, (int)last.skipped, (double)first,
        (double)n->mean);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        if (strchr(line, '|')) printf("  %s\n", line);
}
/* Returns the scale that the gradients of the last step suggest. */
static float check_train(int run) {
    static check_net n;
    amp_histogram h;
    amp_array grads[CHECK_LAYERS];
    const check_run *r = check_of(run);
    float first = 0;
    check_create(&n, r);
    for (int k = 0; k < CHECK_STEPS; k++) {
        if (r->bad_layer && k == CHECK_STEPS - 3) check_spoil(&n, r->bad_layer - 1);
        check_step(&n);
        if (k == 0) first = n.mean;
    }
    check_print(&n, run, r, first);
    for (int l = 0; l < CHECK_LAYERS; l++)
        grads[l] = amp_arrn(n.layer[l].dw.data, r->format, n.layer[l].in * n.layer[l].out);
    check_ok(n.ctx, amp_histogram_count(n.ctx, &h, grads, CHECK_LAYERS));
    check_destroy(&n);
    return amp_histogram_suggest_scale(&h);
}

/* ---- answers ---- */

typedef struct check_answers { char run[CHECK_RUNS][40], first_bad[40], scale[40], why[400]; } check_answers;

static char *check_place(check_answers *a, const char *key, size_t *room) {
    *room = sizeof a->run[0];
    if (key[0] >= 'A' && key[0] < 'A' + CHECK_RUNS && key[1] == 0) return a->run[key[0] - 'A'];
    if (strcmp(key, "first-bad") == 0) return a->first_bad;
    if (strcmp(key, "scale") == 0) return a->scale;
    *room = sizeof a->why;
    return strcmp(key, "why") == 0 ? a->why : NULL;
}
static void check_read(check_answers *a) {
    char line[500], *colon, *place, *value;
    size_t room, at = 0;
    FILE *f = fopen(LAB_ANSWERS, "r");
    if (!f) lab_wrong("there is no answers.txt");
    while (fgets(line, sizeof line, f)) {
        at++;
        line[strcspn(line, "\r\n")] = 0;
        if (line[0] == '#' || strspn(line, " \t") == strlen(line)) continue;
        colon = strchr(line, ':');
        if (colon) *colon = 0;
        place = colon ? check_place(a, line, &room) : NULL;
        if (!place)
            lab_wrong(
                "answers.txt:%d: \"%.40s\" is no answer; write a key of this file, a colon, a word", (int)at, line);
        for (value = colon + 1; *value; value++)
            *value = (char)tolower((unsigned char)*value);
        value = colon + 1 + strspn(colon + 1, " \t");
        if (strcmp(value, "?") == 0)
            lab_wrong("answers.txt:%d: the answer to %s is still to be written", (int)at, line);
        if (place[0]) lab_wrong("answers.txt:%d: a second answer to %s", (int)at, line);
        snprintf(place, room, "%s", value);
    }
    fclose(f);
}

/* What a wrong cause should make one look at; it does not say the right one. */
static const char *check_hint(int cause) {
    static const char *const hints[CHECK_CAUSES] = {
        "look at the column lost: an update that is lost changes no bit of its weight",
        "which format do its gradients have, and what does the table say that this format makes of them?",
        "does the heading say that every step was skipped, and are the activations finite?",
        "is there an activation with bad values, or only a gradient?",
        "did the loss fall, and did it take its steps?",
    };
    return hints[cause];
}
static void check_causes(const check_answers *a) {
    for (int run = 0; run < CHECK_RUNS; run++) {
        int cause = 0;
        if (!a->run[run][0]) lab_wrong("there is no answer to run %c", 'A' + run);
        while (cause < CHECK_CAUSES && strcmp(a->run[run], check_names[cause]) != 0)
            cause++;
        if (cause == CHECK_CAUSES)
            lab_wrong("run %c: \"%s\" is no cause; the page has the five words", 'A' + run, a->run[run]);
        if (cause != (int)check_of(run)->cause)
            lab_wrong("run %c: not %s: %s", 'A' + run, check_names[cause], check_hint(cause));
    }
}
static void check_numbers(const check_answers *a, int bad_layer, float scale) {
    char want[40], *end;
    long power = strtol(a->scale, &end, 10);
    snprintf(want, sizeof want, "layer%d.y", bad_layer);
    if (strcmp(a->first_bad, want) != 0)
        lab_wrong("first-bad: not %s: the layers before the bad one are finite, and it is not", a->first_bad);
    if (*end || !a->scale[0]) lab_wrong("scale: \"%s\" is no power of two: write 20 for 2^20", a->scale);
    if (labs(power - (long)log2f(scale)) > 1)
        lab_wrong("scale: 2^%ld %s", power,
            power > (long)log2f(scale) ? "leaves no room: the largest gradient times the scale must stay below 2^15"
                                       : "leaves small gradients zero that a larger scale would save");
}
static int check_says(const char *text, const char *const *words) {
    for (; *words; words++)
        if (strstr(text, *words)) return 1;
    return 0;
}
static void check_sentence(const char *why) {
    static const char *const update[] = {"update", "step", "change", "learning rate", "lr", "subtract", NULL};
    static const char *const lost[] = {
        "round", "spacing", "half", "apart", "too small", "neighbo", "precis", "swamp", NULL};
    int words = 0;
    for (const char *p = why; *p; p += strspn(p, " \t")) {
        p += strcspn(p, " \t");
        words++;
    }
    if (words < 8) lab_wrong("why: a sentence has at least eight words");
    if (!check_says(why, update)) lab_wrong("why: the sentence does not say what a step does to a weight");
    if (!check_says(why, lost)) lab_wrong("why: the sentence does not say what becomes of it in 16 bits");
}

int main(void) {
    static check_answers a;
    float scale = 1;
    int bad_layer = 0;
    lab_begin();
    for (int run = 0; run < CHECK_RUNS; run++) {
        float suggested = check_train(run);
        if (check_of(run)->cause == CHECK_SMALL) scale = suggested;
        if (check_of(run)->bad_layer) bad_layer = check_of(run)->bad_layer;
    }
    check_read(&a);
    check_causes(&a);
    check_numbers(&a, bad_layer, scale);
    check_sentence(a.why);
    lab_passed("six causes, the first bad array and a loss scale; the sentence is for a person to read");
    return 0;
}
