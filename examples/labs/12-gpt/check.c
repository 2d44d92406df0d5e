/* check.c - the checker of lab 12: each function alone, then a small GPT trained with them beside the same GPT trained
 * by amp_softmax_cross_entropy and amp_step. The network is gpt_net.h, as gpt.c in a clone has it. */
#include "amp.h"
#include "lab.h"

#define PROGRAM "lab 12: the checker itself fails"
#include "program.h"

#include "gpt_net.h"

/* ---- operations ---- */

static void check_operation(const char *name, int want, const char *why) {
    lab_doing("runs_in_f32(\"%s\")", name);
    if (!runs_in_f32(name) != !want)
        lab_wrong("runs_in_f32(\"%s\") must be %d, and yours is %d: %s", name, want, !want, why);
}

static void check_operations(void) {
    check_operation(
        "linear", 0, "a product reads halves and adds up in FP32 inside; that is what Tensor Cores are for");
    check_operation("attention_product", 0, "a product reads halves and adds up in FP32 inside");
    check_operation("layer_norm", 1, "it adds up squares, and 256 squared is Inf in FP16");
    check_operation("softmax", 1, "exp(12) is Inf in FP16, and a sum over the context loses small terms");
    check_operation("cross_entropy", 1, "a logarithm of a small probability, which is 0 in FP16");
}

/* ---- the loss ---- */

enum { CHECK_ROWS = 8, CHECK_CLASSES = 10 };

static void check_right_loss(
    double *loss, double d[][CHECK_CLASSES], amp_f16 x[][CHECK_CLASSES], const int32_t *labels) {
    int r, c;
    *loss = 0;
    for (r = 0; r < CHECK_ROWS; r++) {
        double largest = -1e9, sum = 0;
        for (c = 0; c < CHECK_CLASSES; c++)
            largest = fmax(largest, (double)amp_f32_from_f16(x[r][c]));
        for (c = 0; c < CHECK_CLASSES; c++)
            sum += exp((double)amp_f32_from_f16(x[r][c]) - largest);
        *loss += (log(sum) + largest - (double)amp_f32_from_f16(x[r][labels[r]])) / CHECK_ROWS;
        for (c = 0; c < CHECK_CLASSES; c++)
            d[r][c] = (exp((double)amp_f32_from_f16(x[r][c]) - largest) / sum - (c == labels[r])) / CHECK_ROWS;
    }
}

static int check_near(double got, double want) { return fabs(got - want) <= 0.002 * fabs(want) + 0x1p-24; }

static const char *check_gradient_reason(double got, double want, float scale) {
    if (check_near(got * (double)scale, want)) return "the gradient carries the loss scale, and yours does not";
    if (check_near(got, want * CHECK_ROWS))
        return "the loss is the mean over the rows, and so its gradient has 1 / rows";
    if (check_near(got, -want)) return "the gradient is p - 1 at the label, and p elsewhere";
    if (fabs(want) < 0x1p-14 * (double)scale)
        return "without the scale it is no normal half; round once, after the scale";
    return "p - 1 at the label, p elsewhere; over rows; times scale; then to half";
}

static void check_loss(const char *what, float spread, float scale) {
    amp_f16 x[CHECK_ROWS][CHECK_CLASSES], got[CHECK_ROWS][CHECK_CLASSES];
    double want[CHECK_ROWS][CHECK_CLASSES], loss;
    int32_t labels[CHECK_ROWS];
    float yours;
    int r, c;
    for (r = 0; r < CHECK_ROWS; r++) {
        labels[r] = r % CHECK_CLASSES;
        for (c = 0; c < CHECK_CLASSES; c++)
            x[r][c] = amp_f16_from_f32(spread * ((float)(amp_random(12, 0, (uint64_t)(r * 100 + c)) >> 20) / 2048 - 1));
    }
    check_right_loss(&loss, want, x, labels);
    lab_doing("loss_and_gradient of %s", what);
    memcpy(got, x, sizeof x); /* in place */
    yours = loss_and_gradient(got[0], got[0], labels, CHECK_ROWS, CHECK_CLASSES, scale);
    if (!check_near((double)yours, loss))
        lab_wrong("loss_and_gradient of %s: the loss must be %.5g, and yours is %.5g: %s", what, loss, (double)yours,
            check_near((double)yours, loss * (double)scale)
                ? "the scale belongs to the gradient, not to what is printed"
                : amp_is_finite(yours) ? "it is the mean of -log(p[label])"
                                       : "exp overflows; subtract the largest logit of the row first");
    for (r = 0; r < CHECK_ROWS; r++)
        for (c = 0; c < CHECK_CLASSES; c++) {
            double is = (double)amp_f32_from_f16(got[r][c]), should = want[r][c] * (double)scale;
            if (!check_near(is, should))
                lab_wrong("loss_and_gradient of %s, row %d, class %d: the gradient must be %.4g, and yours is %.4g: %s",
                    what, r, c, should, is, check_gradient_reason(is, should, scale));
        }
}

/* ---- the step ---- */

typedef struct check_set { /* three parameters of two weights: two with copies, and an island */
    float master[3][2], m1[3][2], m2[3][2], island[2];
    amp_f16 model[3][2], grad[3][2];
    weights w[3];
} check_set;

static void check_make(check_set *s, float g) {
    int k, i;
    memset(s, 0, sizeof *s);
    for (k = 0; k < 3; k++) {
        weights *w = &s->w[k];
        w->count = 2;
        w->master = s->master[k];
        w->m1 = s->m1[k];
        w->m2 = s->m2[k];
        w->model = k < 2 ? s->model[k] : NULL;
        w->grad = k < 2 ? amp_arr(s->grad[k], AMP_F16) : amp_arr(s->island, AMP_F32);
        for (i = 0; i < 2; i++) {
            s->master[k][i] = 1;
            s->model[k][i] = amp_f16_from_f32(1);
            s->grad[k][i] = amp_f16_from_f32(g);
            s->island[i] = g;
        }
    }
}

static void check_good_steps(void) {
    check_set s;
    trainer t = {1024, 0, 0};
    int k, n;
    check_make(&s, 1);
    for (n = 1; n <= LAB12_INTERVAL; n++) {
        lab_doing("step number %d", n);
        if (!step(&t, s.w, 3, 0.0001f)) lab_wrong("step returns 0, and every gradient is finite");
        if (t.steps != n) lab_wrong("after %d steps t->steps must be %d, and yours is %d", n, n, t.steps);
        for (k = 0; k < 3; k++) { /* with equal gradients Adam's update is lr */
            float want = 1 - 0.0001f * (float)n, got = s.master[k][1];
            if (fabsf(got - want) > 1e-6f * (float)n)
                lab_wrong("after %d steps with lr 0.0001 a master of %s must be %.4f, and yours is %.4f", n,
                    k < 2 ? "1" : "an FP32 island", (double)want, (double)got);
            if (k < 2 && s.model[k][1].bits != amp_f16_from_f32(got).bits)
                lab_wrong("after %d steps the master is %.4f and its copy %.4f: products read the copy", n, (double)got,
                    (double)amp_f32_from_f16(s.model[k][1]));
        }
        if (fabsf(s.m1[0][0] * 1024 - (1 - powf(0.9f, (float)n))) > 0.01f)
            lab_wrong("Adam's first moment is %g after %d steps with gradients of 1 / 1024: unscale first",
                (double)s.m1[0][0], n);
    }
    if (t.scale != 2048)
        lab_wrong("after %d good steps the scale must go from 1024 to 2048, and yours is %g", LAB12_INTERVAL,
            (double)t.scale);
    step(&t, s.w, 3, 0.0001f);
    if (t.scale != 2048)
        lab_wrong(
            "after %d good steps it must be 2048, and yours is %g: count anew", LAB12_INTERVAL + 1, (double)t.scale);
}

static void check_bad_step(float bad, const char *name) {
    check_set s, before;
    trainer t = {1024, 60, 7};
    int taken;
    check_make(&s, 1);
    s.grad[1][1] = amp_f16_from_f32(bad);
    before = s;
    lab_doing("a step with %s in the second parameter", name);
    taken = step(&t, s.w, 3, 0.0001f);
    if (memcmp(s.master[0], before.master[0], sizeof before.master[0]) != 0)
        lab_wrong("%s is in the second parameter, and the first one has moved: look at all gradients before", name);
    if (memcmp(s.master, before.master, sizeof before.master) || memcmp(s.model, before.model, sizeof before.model))
        lab_wrong("a step with %s changes weights", name);
    if (memcmp(s.m1, before.m1, sizeof before.m1)) lab_wrong("a step with %s changes Adam's moments", name);
    if (taken || t.steps != 7)
        lab_wrong("a step with %s is not taken and not counted: t->steps stays 7, and yours is %d", name, t.steps);
    if (t.scale != 512 || t.good != 0)
        lab_wrong("after a step with %s scale and good must be 512 and 0, and yours are %g and %d", name,
            (double)t.scale, t.good);
}

/* ---- the network ---- */

static const char check_text[] =
    "Shall I compare thee to a summer's day? Thou art more lovely and more temperate: Rough winds do shake the "
    "darling buds of May, And summer's lease hath all too short a date; Sometime too hot the eye of heaven shines, "
    "And often is his gold complexion dimm'd; And every fair from fair sometime declines.";

static const gpt_shape check_shape = {
    "lab", 2, 2, 32, 16, 8, 64, 1, 0, 0, 0, 0, 0, 0, 0, 0.02, 0, 0, 0, AMP_F32, AMP_GELU, AMP_AUTO};
enum { CHECK_STEPS = 80 };
#define CHECK_LR 0.003f

static void check_batch(gpt *g, int number) {
    int32_t tokens[128], labels[128];
    size_t i;
    for (i = 0; i < g->rows; i++) {
        size_t start = amp_random(5, (uint64_t)number, i / 16) % (sizeof check_text - 18), at = start + i % 16;
        tokens[i] = check_text[at] & 63;
        labels[i] = check_text[at + 1] & 63;
    }
    gpt_input(g, tokens, labels);
}

static gpt *check_gpt(amp_ctx *ctx, const gpt_mode *m) {
    gpt *g = (gpt *)allocate(1, sizeof *g);
    gpt_shape s = check_shape;
    s.norm_f16 = (size_t)!runs_in_f32("layer_norm");
    s.softmax_f16 = (size_t)!runs_in_f32("softmax");
    gpt_create(g, ctx, &s, m, 0, 1, 1);
    gpt_set_batch(g, s.batch);
    return g;
}

/* amp's own way: the mean loss of the last ten steps. */
static double check_by_amp(amp_ctx *ctx, double *first) {
    const gpt_mode m = {"fp16-dynamic", AMP_F16, AMP_MASTER_F32, AMP_SCALER_DYNAMIC, 65536, LAB12_INTERVAL, 0, 0};
    gpt *g = check_gpt(ctx, &m);
    amp_step_desc d = AMP_ZERO;
    double sum = 0;
    int k;
    d.optimizer = AMP_ADAM;
    d.lr = CHECK_LR;
    d.beta2 = amp_opt(0.99f);
    for (k = 0; k < CHECK_STEPS; k++) {
        check_batch(g, k);
        gpt_forward(g, 1);
        gpt_backward(g);
        must(ctx, amp_step(g->params, g->scaler, &d));
        if (k == 0) *first = gpt_loss(g);
        if (k >= CHECK_STEPS - 10) sum += gpt_loss(g) / 10;
    }
    gpt_destroy(g);
    free(g);
    return sum;
}

static size_t check_weights(gpt *g, weights *w) {
    size_t n = amp_params_count(g->params), k;
    for (k = 0; k < n; k++) {
        amp_param p = amp_param_get(g->params, k);
        w[k].count = p.count;
        w[k].master = (float *)p.master.data;
        w[k].model = p.model.dtype == AMP_F16 ? (amp_f16 *)p.model.data : NULL;
        w[k].grad = p.grad;
        w[k].m1 = (float *)p.moment[0].data;
        w[k].m2 = (float *)p.moment[1].data;
    }
    return n;
}

/* The student's way. */
static double check_by_student(amp_ctx *ctx, trainer *t) {
    const gpt_mode m = {"fp16", AMP_F16, AMP_MASTER_F32, AMP_SCALER_OFF, 1, 0, 0, 0};
    gpt *g = check_gpt(ctx, &m);
    weights w[40];
    size_t n = check_weights(g, w);
    amp_linear_desc head;
    double sum = 0;
    int k;
    for (k = 0; k < CHECK_STEPS; k++) {
        float loss;
        amp_f16 *logits = (amp_f16 *)g->head.y.data;
        check_batch(g, k);
        gpt_forward(g, 0);
        lab_doing("loss_and_gradient in step %d of the network", k + 1);
        loss = loss_and_gradient(logits, logits, g->labels, g->rows, g->s.vocab, t->scale);
        head = g->head;
        head.x = g->last.y;
        head.dx = g->dn;
        must(ctx, amp_linear_backward(ctx, &head));
        gpt_backward(g);
        lab_doing("step %d of the network", k + 1);
        (void)step(t, w, n, CHECK_LR);
        if (k >= CHECK_STEPS - 10) sum += (double)loss / 10;
    }
    gpt_destroy(g);
    free(g);
    return sum;
}

int main(void) {
    amp_ctx *ctx;
    amp_cpu_desc one = AMP_ZERO;
    trainer t = {65536, 0, 0};
    double want, got, first = 0;
    lab_begin();
    check_operations();
    check_loss("small logits", 2, 1);
    check_loss("small logits with the scale 1024", 2, 1024);
    check_loss("large logits", 300, 1024);
    check_loss("logits with small probabilities", 14, 65536);
    check_good_steps();
    check_bad_step(INFINITY, "Inf");
    check_bad_step(NAN, "NaN");
    one.threads = 1;
    must(NULL, amp_cpu_create(&ctx, &one));
    want = check_by_amp(ctx, &first);
    got = check_by_student(ctx, &t);
    if (!(fabs(got - want) < 0.05 * want))
        lab_wrong("after %d steps the loss of the GPT must be near %.2f, as with amp_step, and yours is %.2f",
            CHECK_STEPS, want, got);
    amp_ctx_destroy(ctx);
    lab_passed("the GPT's loss goes from %.2f to %.2f in %d steps, %d of them taken, and to %.2f with amp_step", first,
        got, CHECK_STEPS, t.steps, want);
    return 0;
}
