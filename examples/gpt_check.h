/* gpt_check.h - gpt --check: gradients beside central differences of the same network in double, written apart from
 * gpt_net.h in the plainest form there is; the same loss in chunks; every mode learns, in the memory that was planned.
 */
#ifndef GPT_CHECK_H
#define GPT_CHECK_H

/* The same network in double, in the plainest form there is, written apart from the one above: for central differences.
   w[i] is parameter i. */
static void ref_linear(
    double *y, const double *x, const double *w, const double *b, size_t rows, size_t in, size_t out) {
    size_t r, o, i;
    for (r = 0; r < rows; r++)
        for (o = 0; o < out; o++) {
            double sum = b ? b[o] : 0;
            for (i = 0; i < in; i++)
                sum += x[r * in + i] * w[o * in + i];
            y[r * out + o] = sum;
        }
}
static void ref_norm(double *y, const double *x, const double *gain, const double *bias, size_t rows, size_t c) {
    size_t r, i;
    for (r = 0; r < rows; r++) {
        double mean = 0, var = 0;
        for (i = 0; i < c; i++)
            mean += x[r * c + i] / (double)c;
        for (i = 0; i < c; i++)
            var += (x[r * c + i] - mean) * (x[r * c + i] - mean) / (double)c;
        for (i = 0; i < c; i++)
            y[r * c + i] = (x[r * c + i] - mean) / sqrt(var + (double)NORM_EPS) * gain[i] + bias[i];
    }
}
static void ref_attention(double *y, const double *qkv, const gpt_shape *s) {
    size_t c = s->width, t = s->context, size = c / s->heads, b, h, i, k, e;
    double p[64];
    for (b = 0; b < s->batch; b++)
        for (h = 0; h < s->heads; h++)
            for (i = 0; i < t; i++) {
                const double *q = qkv + (b * t + i) * 3 * c + h * size;
                double sum = 0;
                for (k = 0; k <= i; k++) {
                    const double *key = qkv + (b * t + k) * 3 * c + c + h * size;
                    for (p[k] = 0, e = 0; e < size; e++)
                        p[k] += q[e] * key[e] / sqrt((double)size);
                    sum += p[k] = exp(p[k]);
                }
                for (e = 0; e < size; e++) {
                    double v = 0;
                    for (k = 0; k <= i; k++)
                        v += p[k] / sum * qkv[(b * t + k) * 3 * c + 2 * c + h * size + e];
                    y[(b * t + i) * c + h * size + e] = v;
                }
            }
}
static double ref_loss(const gpt_shape *s, double *const *w, int tied, const int32_t *tokens, const int32_t *labels) {
    size_t c = s->width, rows = s->batch * s->context, v = s->vocab, last = BLOCKS + s->layers * PER_BLOCK, i, r, k;
    double *x = (double *)allocate(rows * (10 * c + v), sizeof *x), *n = x + rows * c, *y = n + rows * c,
           *wide = y + rows * c;
    double *logits = wide + rows * 7 * c, loss = 0;
    for (i = 0; i < rows * c; i++)
        x[i] = w[WTE][(size_t)tokens[i / c] * c + i % c] + w[WPE][i / c % s->context * c + i % c];
    for (i = 0; i < s->layers; i++) {
        double *const *p = w + BLOCKS + i * PER_BLOCK;
        ref_norm(n, x, p[N1], p[N1 + 1], rows, c);
        ref_linear(wide, n, p[QKV], p[QKV + 1], rows, c, 3 * c);
        ref_attention(n, wide, s);
        ref_linear(y, n, p[PROJ], p[PROJ + 1], rows, c, c);
        for (k = 0; k < rows * c; k++)
            x[k] += y[k];
        ref_norm(n, x, p[N2], p[N2 + 1], rows, c);
        ref_linear(wide, n, p[UP], p[UP + 1], rows, c, 4 * c);
        for (k = 0; k < rows * 4 * c; k++)
            wide[k] = 0.5 * wide[k] * (1 + tanh(sqrt(4 / TWO_PI) * (wide[k] + 0.044715 * wide[k] * wide[k] * wide[k])));
        ref_linear(y, wide, p[DOWN], p[DOWN + 1], rows, 4 * c, c);
        for (k = 0; k < rows * c; k++)
            x[k] += y[k];
    }
    ref_norm(n, x, w[last], w[last + 1], rows, c);
    ref_linear(logits, n, tied ? w[WTE] : w[last + 2], NULL, rows, c, v);
    for (r = 0; r < rows; r++) {
        double sum = 0;
        for (k = 0; k < v; k++)
            sum += exp(logits[r * v + k]);
        loss += (log(sum) - logits[r * v + (size_t)labels[r]]) / (double)rows;
    }
    free(x);
    return loss;
}

static const gpt_shape small = {
    "small", 2, 2, 8, 6, 3, 11, 1, 0, 0, 0, 1e-3, 1e-4, 0.99, 0.1, 0.3, 0, 0, 0, AMP_F32, AMP_GELU, AMP_AUTO};

/* Central differences of the loss in double, parameter after parameter: d[i][k]. */
typedef struct differences {
    double *w[64], *d[64];
    size_t count[64], n;
} differences;
static void differences_create(differences *f, gpt *g, const int32_t *tokens, const int32_t *labels) {
    const double h = 1e-5;
    size_t i, k;
    f->n = amp_params_count(g->params);
    for (i = 0; i < f->n; i++) {
        float *w;
        f->count[i] = amp_param_get(g->params, i).count;
        f->w[i] = (double *)allocate(2 * f->count[i], sizeof(double));
        f->d[i] = f->w[i] + f->count[i];
        w = (float *)f->d[i];
        must(g->ctx, amp_param_read(g->params, i, w));
        for (k = f->count[i]; k-- > 0;)
            f->w[i][k] = (double)w[k];
    }
    for (i = 0; i < f->n; i++)
        for (k = 0; k < f->count[i]; k++) {
            double at = f->w[i][k], up, down;
            f->w[i][k] = at + h;
            up = ref_loss(&g->s, f->w, g->tied, tokens, labels);
            f->w[i][k] = at - h;
            down = ref_loss(&g->s, f->w, g->tied, tokens, labels);
            f->w[i][k] = at;
            f->d[i][k] = (up - down) / (2 * h);
        }
}
static void differences_free(differences *f) {
    while (f->n)
        free(f->w[--f->n]);
}
/* The largest error of a parameter's gradient, relative to its own length; `scale` is in the gradients. */
static double gradient_error(gpt *g, const differences *f, double scale) {
    double worst = 0;
    size_t i, k;
    for (i = 0; i < f->n; i++) {
        amp_array a = grad(g, i);
        void *host = allocate(a.count, amp_dtype_size(a.dtype));
        double error = 0, length = 1e-30;
        must(g->ctx, amp_copy(g->ctx, host, a.data, a.count * amp_dtype_size(a.dtype)));
        for (k = 0; k < a.count; k++) {
            double d = (double)amp_load(host, a.dtype, k) / scale - f->d[i][k];
            error += d * d;
            length += f->d[i][k] * f->d[i][k];
        }
        if (!(sqrt(error / length) <= worst)) worst = sqrt(error / length);
        free(host);
    }
    return worst;
}
/* Loss and gradients of a mode beside the differences of the FP32 weights. Returns the number of wrong claims. */
static int check_gradients(amp_ctx *ctx, const gpt_mode *m, int tied, size_t chunks, double bound) {
    static gpt g, exact;
    const gpt_mode *fp32 = &modes[FP32];
    text random = AMP_ZERO;
    differences f = AMP_ZERO;
    amp_scaler_info scaling;
    double loss, error, wanted;
    const int32_t *tokens, *labels;
    int wrong;
    random.vocab = small.vocab;
    gpt_create(&exact, ctx, &small, fp32, tied, 1, 7);
    draw_batch(&exact, &random, 7, 0);
    tokens = exact.host;
    labels = exact.host + exact.rows;
    differences_create(&f, &exact, tokens, labels);
    wanted = ref_loss(&small, f.w, tied, tokens, labels);
    gpt_create(&g, ctx, &small, m, tied, chunks, 7);
    draw_batch(&g, &random, 7, 0);
    gpt_forward(&g, 1);
    gpt_backward(&g);
    loss = gpt_loss(&g);
    must(ctx, amp_scaler_get(g.scaler, &scaling));
    error = gradient_error(&g, &f, (double)scaling.scale);
    wrong = claim(error < bound && fabs(loss / wanted - 1) < bound,
        "%s, %s head, %d chunk%s: loss %.6f, in double %.6f; gradients and central differences differ by %.1e "
        "(bound %.0e)",
        m->name, tied ? "tied" : "own", (int)chunks, chunks > 1 ? "s" : "", loss, wanted, error, bound);
    gpt_destroy(&g);
    gpt_destroy(&exact);
    differences_free(&f);
    return wrong;
}

static int check_training(
    amp_ctx *ctx, options o) { /* on a few lines: all modes learn, in the memory that was planned */
    static const gpt_shape sonnet = {
        "sonnet", 2, 2, 32, 16, 8, 0, 0, 0, 60, 5, 5e-3, 5e-4, 0.99, 0.1, 0.05, 0, 0, 0, AMP_F32, AMP_GELU, AMP_AUTO};
    static result r, fp32;
    text t = number_text((const unsigned char *)lines, sizeof lines - 1);
    int m, wrong = 0;
    o.s = sonnet;
    o.s.vocab = t.vocab;
    o.sample = 40;
    progress.total = MODES * o.s.steps;
    progress.start = seconds();
    for (m = 0; m < MODES; m++) {
        run(ctx, &o, &t, &modes[m], 1, m == FP32 ? &fp32 : &r);
        if (m == FP32) r = fp32;
        wrong += claim(r.training < 0.85 * (double)r.losses[0] && fabs(r.training / fp32.training - 1) < 0.03,
            "%s learns: loss %.3f -> %.3f, mean of the run %.4f of fp32's", modes[m].name, (double)r.losses[0],
            (double)r.losses[r.steps - 1], r.training / fp32.training);
        wrong += claim(r.as_planned, "%s takes the memory that was planned: %.1f KiB of state, %.1f KiB for backward",
            modes[m].name, (double)r.model / 1024, (double)r.held.saved / 1024);
        wrong += claim(
            strlen(r.sample) == o.sample, "%s writes \"%.*s\"", modes[m].name, (int)strcspn(r.sample, "\n"), r.sample);
        if (m == SPLIT)
            wrong +=
                claim(r.model < fp32.model, "split takes %.2f of fp32's state", (double)r.model / (double)fp32.model);
        if (m != FP32) result_free(&r);
    }
    result_free(&fp32);
    free(t.token);
    return wrong;
}
/* Layer norm and softmax are of class F32. With GPT-2's first weights a run forgives either of them in FP16. With
   embeddings so large that the squares of a row add up to more than 65504 (planted, see --embed) it forgives only the
   softmax: in FP16 the variance is Inf, every row leaves the norm as its bias, and nothing says so. */
static int check_classes(amp_ctx *ctx, options o) {
    static const gpt_shape sonnet = {
        "sonnet", 2, 2, 32, 16, 8, 0, 1, 0, 60, 5, 5e-3, 5e-4, 0.99, 0.1, 0.05, 0, 0, 0, AMP_F32, AMP_GELU, AMP_AUTO};
    static result r;
    text t = number_text((const unsigned char *)lines, sizeof lines - 1);
    double loss[2][3], squares[2];
    uint64_t skipped = 0;
    int i, k, wrong;
    progress.total += 6 * sonnet.steps;
    o.sample = 0;
    for (i = 0; i < 2; i++)
        for (k = 0; k < 3; k++) {
            o.s = sonnet;
            o.s.vocab = t.vocab;
            o.s.embed = i ? 60 : 0;
            o.s.norm_f16 = k == 1;
            o.s.softmax_f16 = k == 2;
            run(ctx, &o, &t, &modes[FP16_DYNAMIC], 1, &r);
            loss[i][k] = plot_mean(r.losses, r.steps - 10, r.steps);
            squares[i] = r.squares;
            if (i && k == 1) skipped = r.skipped;
            result_free(&r);
        }
    free(t.token);
    wrong = claim(fabs(loss[0][1] / loss[0][0] - 1) < 0.01 && fabs(loss[0][2] / loss[0][0] - 1) < 0.01,
        "squares up to %.1f: loss %.3f; with layer norm in FP16 %.3f, with softmax in FP16 %.3f", squares[0],
        loss[0][0], loss[0][1], loss[0][2]);
    return wrong +
        claim(loss[1][1] > 1.2 * loss[1][0] && fabs(loss[1][2] / loss[1][0] - 1) < 0.01 && skipped == 0,
            "squares up to %.0f: loss %.3f; with layer norm in FP16 %.3f, no step skipped; with softmax in FP16 %.3f",
            squares[1], loss[1][0], loss[1][1], loss[1][2]);
}
static int check_chunks(amp_ctx *ctx) { /* one forward: the same loss from a third of the logits' memory */
    static gpt g;
    text random = AMP_ZERO;
    double loss[2];
    uint64_t bytes[2];
    int i;
    random.vocab = small.vocab;
    for (i = 0; i < 2; i++) {
        gpt_create(&g, ctx, &small, &modes[FP32], 1, i ? 3 : 1, 7);
        draw_batch(&g, &random, 7, 0);
        gpt_forward(&g, 0);
        loss[i] = gpt_loss(&g);
        bytes[i] = ledger_bytes(ctx, "logits");
        gpt_destroy(&g);
    }
    return claim(fabs(loss[1] / loss[0] - 1) < 1e-6 && bytes[1] < bytes[0] / 3 + 256,
        "in 3 chunks: loss %.7f instead of %.7f, %lu bytes of logits instead of %lu", loss[1], loss[0],
        (unsigned long)bytes[1], (unsigned long)bytes[0]);
}
/* In the defined order some steps give the same weights here and on the portable path of the CPU. */
static uint64_t ordered_weights(amp_ctx *ctx, const gpt_mode *m) {
    static gpt g;
    gpt_shape s = small;
    text random = AMP_ZERO;
    amp_step_desc d = AMP_ZERO;
    uint64_t hash;
    size_t step;
    random.vocab = small.vocab;
    d.lr = 1e-2f;
    d.clip_norm = CLIP;
    s.width = 40; /* more than the lanes of a sum */
    gpt_create(&g, ctx, &s, m, 1, 1, 7);
    for (step = 0; step < 3; step++) {
        draw_batch(&g, &random, 7, step);
        gpt_forward(&g, 1);
        gpt_backward(&g);
        must(ctx, amp_step(g.params, g.scaler, &d));
    }
    hash = weights_hash(ctx, g.params);
    gpt_destroy(&g);
    return hash;
}
static int check_order(const options *o) {
    options ordered = *o;
    amp_cpu_desc cpu = AMP_ZERO;
    amp_ctx *here, *portable = NULL;
    char name[96];
    int same, i;
    ordered.ordered = 1;
    here = create_context(&ordered);
    snprintf(name, sizeof name, "%s", amp_ctx_name(here));
    cpu.threads = 1;
    cpu.simd = AMP_SIMD_SCALAR;
    cpu.gemm_flags = AMP_GEMM_ORDERED;
    must(NULL, amp_cpu_create(&portable, &cpu));
    for (i = 0, same = 1; i < 4; i++) {
        static const int which[4] = {FP32, FP16_DYNAMIC, BF16, FP8};
        const gpt_mode *m = &modes[which[i]];
        same &= ordered_weights(here, m) == ordered_weights(portable, m);
    }
    amp_ctx_destroy(here);
    amp_ctx_destroy(portable);
    return claim(same,
        "in the defined order 3 steps in FP32, FP16, BF16 and FP8 give the same weights on %s and in portable C", name);
}
static int check(amp_ctx *ctx, const options *o) {
    int wrong = check_gradients(ctx, &modes[FP32], 1, 1, 2e-5);
    wrong += check_gradients(ctx, &modes[FP32], 0, 1, 2e-5);
    wrong += check_gradients(ctx, &modes[FP32], 1, 3, 2e-5);
    wrong += check_gradients(ctx, &modes[FP16_STATIC], 1, 1, 2e-2);
    wrong += check_gradients(ctx, &modes[SPLIT], 0, 3, 2e-2);
    wrong += check_gradients(ctx, &modes[BF16], 1, 1, 1e-1);
    wrong += check_chunks(ctx);
    wrong += check_order(o);
    if (o->check > 1) wrong += check_training(ctx, *o) + check_classes(ctx, *o);
    printf("\n%s\n", wrong ? "Some claims do not hold." : "All claims hold.");
    return wrong;
}

#endif
