/* digits_show.h - what digits.c prints and draws, and its claims (--check). Included by digits.c alone. */
#ifndef DIGITS_SHOW_H
#define DIGITS_SHOW_H

/* ==== what came out ============================================================================================= */

typedef struct summary { /* over seeds */
    double mean, sd;
} summary;

static summary summarise(const double *v, int n) {
    summary s = {0, 0};
    int i;
    for (i = 0; i < n; i++)
        s.mean += v[i] / n;
    for (i = 0; i < n; i++)
        s.sd += (v[i] - s.mean) * (v[i] - s.mean);
    s.sd = n > 1 ? sqrt(s.sd / (n - 1)) : 0;
    return s;
}

typedef struct runs {
    result *of[MODES]; /* of[mode][seed] */
    summary accuracy[MODES], loss[MODES];
} runs;

static void summarise_runs(runs *all, const options *o) {
    double v[MAX_SEEDS];
    int m, i;
    for (m = 0; m < MODES; m++) {
        if (!o->run[m]) continue;
        for (i = 0; i < o->seeds; i++)
            v[i] = all->of[m][i].accuracy;
        all->accuracy[m] = summarise(v, o->seeds);
        for (i = 0; i < o->seeds; i++)
            v[i] = all->of[m][i].loss;
        all->loss[m] = summarise(v, o->seeds);
    }
}

static void print_table(const runs *all, const options *o) {
    int m, i, wide = o->seeds > 1, a = wide ? 13 : 9, l = wide ? 16 : 9; /* columns of accuracy and loss */
    printf("\n%-13s %-*s %-*s %-7s %-5s %-36s %-7s %s\n", "", a, "test", l, "final", "steps", "final", "KiB of", "",
        "gradients");
    printf("%-13s %-*s %-*s %-7s %-5s %-7s %-9s %-9s %-8s %-7s %s\n", "mode", a, "accuracy", l, "loss", "skipped",
        "scale", "weights", "gradients", "optimizer", "activ.", "seconds", "FP16 loses");
    for (m = 0; m < MODES; m++) {
        const result *r = all->of[m];
        char accuracy[64], loss[64], scale[32];
        double skipped = 0, lost = 0, time = 0;
        if (!o->run[m]) continue;
        for (i = 0; i < o->seeds; i++) {
            skipped += (double)r[i].skipped / o->seeds;
            lost += r[i].lost / o->seeds;
            time += r[i].seconds / o->seeds;
        }
        snprintf(accuracy, sizeof accuracy, wide ? "%.1f%% +-%.1f" : "%.1f%%", 100 * all->accuracy[m].mean,
            100 * all->accuracy[m].sd);
        snprintf(loss, sizeof loss, wide ? "%.4f +-%.4f" : "%.4f", all->loss[m].mean, all->loss[m].sd);
        if (modes[m].scaling == AMP_SCALER_OFF)
            strcpy(scale, "-");
        else
            sprintf(scale, "2^%g", log2((double)r->scale));
        printf("%-13s %-*s %-*s %-7.4g %-5s %-7.1f %-9.1f %-9.1f %-8.1f %-7.2f %.2f%%%s\n", modes[m].name, a, accuracy,
            l, loss, skipped, scale, (double)r->weights / 1024, (double)r->gradients / 1024,
            (double)r->optimizer / 1024, (double)r->activations / 1024, time, 100 * lost,
            modes[m].model == AMP_F16 ? "" : " *");
    }
    if (wide) printf("Mean and standard deviation over %d seeds; scale and bytes of the first.\n", o->seeds);
    printf("Weights: masters and model copies together. Activations: with their gradients.");
    printf(o->run[FP32] || o->run[BF16] ? " * FP16 would lose them.\n" : "\n");
    for (m = FP8_CURRENT; m <= FP8_DELAYED; m++)
        if (o->run[m])
            printf("%s: without a scale E5M2 would round %.1f%% of the gradients to zero.\n", modes[m].name,
                100 * all->of[m]->lost8);
    if (!o->ordered) return;
    printf("Bits of the weights after the last step, on every machine (--ordered):\n");
    for (m = 0; m < MODES; m++)
        for (i = 0; i < o->seeds && o->run[m]; i++)
            printf("    %-13s seed %lu: %08lx%08lx\n", modes[m].name, (unsigned long)(o->seed + (uint64_t)i),
                (unsigned long)(all->of[m][i].hash >> 32), (unsigned long)(all->of[m][i].hash & 0xffffffffu));
}

static int percent_digits(double share) { /* after the point: two that count, and none from 10 % on */
    if (share >= 0.1 || !(share > 1e-6)) return 0;
    return 1 - (int)floor(log10(100 * share));
}

/* One sentence for the table and for the picture of the losses, if the numbers support one. */
static void finding(char text[256], const runs *all, const options *o, int m) {
    const summary *acc = all->accuracy;
    const result *r = all->of[m];
    int reference = o->run[FP32] ? FP32 : AMP_DYNAMIC_SCALE;
    double short_of;
    *text = 0;
    if (!o->run[m] || !o->run[reference]) return;
    short_of = acc[reference].mean - acc[m].mean;
    if (m == FP16_MASTERS && short_of > 0.01 && r->lost > 0.01)
        sprintf(text,
            "Without loss scaling FP16 rounds %.0f%% of the gradients to zero; "
            "test accuracy %.1f%% instead of %.1f%%.",
            100 * r->lost, 100 * acc[m].mean, 100 * acc[reference].mean);
    else if (m == FP16_MASTERS && short_of <= 0.01 && acc[reference].mean > 0.5)
        sprintf(text, "Without loss scaling FP16 rounds %.*f%% of the gradients to zero: here that costs nothing.",
            percent_digits(r->lost), 100 * r->lost);
    if (m == FP16_PURE && short_of > 0.01 && r->frozen > 0.01)
        sprintf(text,
            "Without FP32 masters accuracy is %.1f points lower: "
            "FP16 rounds a step of lr = %g to nothing in %.0f%% of the weights.",
            100 * short_of, o->lr, 100 * r->frozen);
}

static void why_small(char text[256], const struct setting *s, const options *o) { /* nothing is planted silently */
    *text = 0;
    if (o->places > 1)
        sprintf(text, "Small gradients: the loss is a mean over %lu images x %ld places%s.", (unsigned long)o->batch,
            o->places, s->act == AMP_GELU ? ", and each GELU layer halves them again" : "");
}

/* Why the loss does not just stay: what FP16 keeps of the gradient of the logits, p - y over all places. */
static void why_it_rises(char text[512], const runs *all, const options *o) {
    const result *r = all->of[FP16_MASTERS];
    double divisor = (double)o->batch * (double)o->places, right = log2(0.9 / divisor), wrong = log2(0.1 / divisor);
    *text = 0;
    if (!o->run[FP16_MASTERS] || !(r->loss > 1.5 * (double)r->losses[0])) return;
    if (right < PLOT_LOST || wrong >= PLOT_LOST) return;
    snprintf(text, 512,
        "Why the loss rises, from %.1f to %.0f: of the gradient of the logits, p - y, the 0.9 of the right class is "
        "2^%.1f after the mean and survives,\nthe 0.1 of each wrong class is 2^%.1f, below 2^%d, and becomes zero. So "
        "every step raises all logits and none lowers any,\nand Adam, which divides by the size of the gradients, "
        "makes "
        "these steps as long as good ones.",
        (double)r->losses[0], r->loss, right, wrong, PLOT_LOST);
}

static void print_findings(const runs *all, const struct setting *s, const options *o) {
    char text[512];
    printf("\n");
    finding(text, all, o, FP16_PURE);
    if (*text) printf("%s\n", text);
    finding(text, all, o, FP16_MASTERS);
    if (*text) printf("%s\n", text);
    why_it_rises(text, all, o);
    if (*text) printf("%s\n", text);
    why_small(text, s, o);
    if (*text) printf("%s\n", text);
}

static char *picture_path(const options *o, const struct setting *s, const char *name) {
    char *path = (char *)allocate(strlen(o->out) + strlen(s->name) + strlen(name) + 3, 1);
    sprintf(path, "%s/%s_%s", o->out, s->name, name);
    return path;
}

static void picture_done(char *path, int status) {
    if (status) fail("%s: could not be written: %s", path, strerror(errno));
    printf("wrote %s\n", path);
    free(path);
}

/* What can be said of any losses. */
static void finding_of_losses(char text[256], const plot_curve *curves, int n) {
    int k, least = 0, most = 0;
    for (k = 1; k < n; k++) {
        double end = (double)curves[k].y[curves[k].steps - 1];
        if (end < (double)curves[least].y[curves[least].steps - 1]) least = k;
        if (end > (double)curves[most].y[curves[most].steps - 1]) most = k;
    }
    sprintf(text, "Loss of the last step: %s %.3g, the least; %s %.3g, the most.", curves[least].name,
        (double)curves[least].y[curves[least].steps - 1], curves[most].name,
        (double)curves[most].y[curves[most].steps - 1]);
}

static void draw_losses(const runs *all, const struct setting *s, const options *o) {
    plot_curve curves[MODES];
    char note[MODES][64], title[96], line1[256], line2[256], text[256];
    char *path = picture_path(o, s, "loss.svg");
    plot_words words;
    int m, n = 0;
    size_t window;
    for (m = 0; m < MODES; m++) {
        const result *r = all->of[m];
        if (!o->run[m]) continue;
        sprintf(note[n], "loss %.3g, test %.1f%%", r->loss, 100 * r->accuracy);
        curves[n].name = modes[m].name;
        curves[n].note = note[n];
        curves[n].style = &plot_styles[m];
        curves[n].y = r->losses;
        curves[n].steps = r->steps;
        n++;
    }
    window = curves[0].steps / PLOT_POINTS;
    sprintf(title, "Handwritten digits in %d precision mode%s: %s network", n, n > 1 ? "s" : "", s->name);
    sprintf(line1, "%s. The loss is a mean over %lu images", s->what, (unsigned long)o->batch);
    if (o->places > 1) sprintf(line1 + strlen(line1), " x %ld places of a page: small gradients", o->places);
    strcat(line1, ".");
    sprintf(line2,
        "Same seed and same order of images for every mode. A point is the mean of %lu steps; "
        "beside each name: loss of the last epoch, test accuracy.",
        (unsigned long)(window ? window : 1));
    finding(text, all, o, o->places > 1 ? FP16_MASTERS : FP16_PURE);
    if (!*text) finding(text, all, o, o->places > 1 ? FP16_PURE : FP16_MASTERS);
    if (!*text) finding_of_losses(text, curves, n);
    words.title = title;
    words.line1 = line1;
    words.line2 = line2;
    words.finding = text;
    picture_done(path, plot_losses(path, &words, curves, n));
}

static void draw_scale(const result *r, const struct mode *mode, const struct setting *s, const options *o) {
    char title[96], line2[256], first[64], *path = picture_path(o, s, "scale.svg");
    const char *line1 = "The loss is multiplied by the scale, so that small gradients stay inside FP16's range; "
                        "gradients are divided by it before use.";
    sprintf(title, "The loss scale of %s: %s network", mode->name, s->name);
    if (mode->scaling == AMP_SCALER_DYNAMIC)
        sprintf(line2,
            "It starts too high on purpose, at %s. An overflow skips the step and halves it; %d good steps double it "
            "(amp.h's defaults: 65536 and 2000).",
            plot_two_to(first, (int)log2((double)s->first_scale)), (int)s->growth_interval);
    else
        sprintf(line2, "It is constant. A step whose gradients overflow is skipped.");
    picture_done(path, plot_scale(path, title, line1, line2, r->scales, r->skips, r->steps));
}

static void draw_gradients(const result *r, const struct mode *mode, const struct setting *s, const options *o) {
    char title[96], line1[256], line2[256], *path = picture_path(o, s, "gradients.svg");
    sprintf(title, "Gradients and the range of FP16: %s network", s->name);
    sprintf(line1,
        "Nonzero gradients of activations and parameters by size, computed in FP32 at %d moments of the run of %s.",
        r->underflow.looks, mode->name);
    why_small(line2, s, o);
    if (!*line2)
        strcpy(line2,
            "FP16 keeps 11 bits (10 are stored, a leading 1 is implied) from 2&#8315;&#185;&#8308; to 65504, "
            "fewer below, none below 2&#8315;&#178;&#8309;.");
    picture_done(path,
        plot_exponents(
            path, title, line1, line2, r->before, r->after, "Before scaling", "Times the loss scale of the step"));
    plot_sketch("Gradients by size, before scaling", r->before);
    plot_sketch("after scaling", r->after);
}

static void draw_layers(const result *r, const struct mode *mode, const struct setting *s, const options *o) {
    char title[96], line1[256], *path = picture_path(o, s, "layers.svg");
    sprintf(title, "Gradients that FP16 makes zero, by layer over time: %s network", s->name);
    sprintf(line1, "Of a layer's outputs, weights and biases, computed in FP32 at %d moments of the run of %s.",
        r->underflow.looks, mode->name);
    picture_done(path,
        plot_layers(path, title, line1, "Layer 1 reads the image; backward begins at the last layer.", &r->underflow));
}

static void draw_weight(const result *r, const struct setting *s, const options *o) {
    char title[96], *path;
    plot_updates u;
    if (!(r->stuck > 0)) return; /* every update is large enough */
    path = picture_path(o, s, "weight.svg");
    u = plot_update_weight(r->stuck, o->lr);
    sprintf(title, "A weight whose updates are too small for FP16: %s network", s->name);
    picture_done(path,
        plot_weight(path, title,
            "A weight of the first layer, and updates of the size of the learning rate, as Adam's are.",
            "FP16 has no numbers between those marked: what lies between is rounded to the nearest.", &u));
}

/* The layouts of the table in docs/numbers.md: bytes per parameter with Adam and 16-bit gradients. */
static int layouts(plot_memory_row rows[6]) {
    static const struct {
        const char *name;
        amp_dtype model, moment;
        amp_master master;
    } list[6] = {
        {"FP32", AMP_F32, AMP_F32, AMP_MASTER_F32},
        {"FP32 masters + 16-bit copy", AMP_F16, AMP_F32, AMP_MASTER_F32},
        {"16 + 16 split", AMP_BF16, AMP_F32, AMP_MASTER_SPLIT},
        {"BF16, stochastic", AMP_BF16, AMP_F32, AMP_MASTER_NONE},
        {"BF16 + Kahan, BF16 moments", AMP_BF16, AMP_BF16, AMP_MASTER_KAHAN},
        {"the same, stochastic", AMP_BF16, AMP_BF16, AMP_MASTER_NONE},
    };
    int i;
    for (i = 0; i < 6; i++) {
        amp_params_desc d = AMP_ZERO;
        amp_layout l;
        d.model = list[i].model;
        d.master = list[i].master;
        d.moment = list[i].moment;
        d.moments = 2;
        l = amp_layout_bytes(&d);
        rows[i].name = list[i].name;
        rows[i].bytes[0] = l.master;
        rows[i].bytes[1] = l.model;
        rows[i].bytes[2] = l.grad;
        rows[i].bytes[3] = l.moments;
        rows[i].bytes[4] = 0;
    }
    return 6;
}

static void draw_memory(const runs *all, const struct setting *s, const options *o) {
    plot_memory_row rows[MODES], ladder[6];
    char title[96], text[256] = "", *path = picture_path(o, s, "memory.svg");
    plot_words words;
    int m, n = 0;
    for (m = 0; m < MODES; m++) {
        const result *r = all->of[m];
        if (!o->run[m]) continue;
        rows[n].name = modes[m].name;
        rows[n].bytes[0] = (double)r->masters;
        rows[n].bytes[1] = (double)r->model;
        rows[n].bytes[2] = (double)r->gradients;
        rows[n].bytes[3] = (double)r->optimizer;
        rows[n].bytes[4] = (double)r->activations;
        n++;
    }
    sprintf(text, "%s takes %.0f KiB.", rows[0].name, plot_memory_sum(&rows[0]) / 1024);
    if (o->run[FP32] && o->run[AMP_DYNAMIC_SCALE]) {
        const result *a = all->of[FP32], *b = all->of[AMP_DYNAMIC_SCALE];
        sprintf(text,
            "Beside FP32: weights with their masters times %.2f, gradients times %.2f, optimizer times %.2f, "
            "activations "
            "times %.2f.",
            (double)b->weights / (double)a->weights, (double)b->gradients / (double)a->gradients,
            (double)b->optimizer / (double)a->optimizer, (double)b->activations / (double)a->activations);
    }
    sprintf(title, "Memory by class: %s network", s->name);
    words.title = title;
    words.line1 =
        "Bytes of amp's ledger; activations with their gradients, for a batch. In a large network activations are "
        "most of it.";
    words.line2 = "Percent: of the first row.";
    words.finding = text;
    picture_done(path, plot_memory(path, &words, rows, n, ladder, layouts(ladder)));
}

static void draw_formats(const options *o) {
    char *path = (char *)allocate(strlen(o->out) + 16, 1);
    sprintf(path, "%s/formats.svg", o->out);
    picture_done(path, plot_formats(path));
}

static void draw(const runs *all, const struct setting *s, const options *o) { /* the first seed's runs */
    int m = o->run[AMP_DYNAMIC_SCALE] ? AMP_DYNAMIC_SCALE : AMP_STATIC_SCALE;
    draw_losses(all, s, o);
    draw_memory(all, s, o);
    if (o->run[FP16_PURE]) draw_weight(all->of[FP16_PURE], s, o);
    if (!o->run[m]) {
        printf("no pictures of scale and gradients: neither amp-dynamic nor amp-static was run\n");
        return;
    }
    draw_scale(all->of[m], &modes[m], s, o);
    draw_layers(all->of[m], &modes[m], s, o);
    draw_gradients(all->of[m], &modes[m], s, o);
}

/* ==== --check: do the claims hold? ============================================================================== */

/* Two-sided: neither worse nor better than the reference by more than twice the standard error of the difference; at
   least one point, which is 3.6 of the 360 test images. */
static int claim_equal(const runs *all, const options *o, const char *net, int m, int reference) {
    const summary *a = &all->accuracy[m], *b = &all->accuracy[reference];
    double noise = 2 * sqrt((a->sd * a->sd + b->sd * b->sd) / o->seeds), difference = a->mean - b->mean;
    if (noise < 0.01) noise = 0.01;
    return claim(fabs(difference) <= noise, "%s: %s is %+.2f points from %s, noise is %.2f", net, modes[m].name,
        100 * difference, modes[reference].name, 100 * noise);
}

/* Both recipes of FP8 beside BF16, whose network they are but for the copies that products read. */
static int check_fp8(const runs *all, const char *net) {
    const summary *acc = all->accuracy;
    int wrong = 0, m;
    for (m = FP8_CURRENT; m <= FP8_DELAYED; m++) {
        double difference = 100 * (acc[m].mean - acc[BF16].mean);
        if (!all->of[m]) continue;
        wrong += claim(fabs(difference) <= 0.3,
            "%s: %s is %+.2f points from bf16; without a scale E5M2 would lose %.1f%% of the gradients", net,
            modes[m].name, difference, 100 * all->of[m]->lost8);
    }
    return wrong;
}

static int check_plain(const runs *all, const options *o) {
    static const int same[4] = {FP16_MASTERS, AMP_STATIC_SCALE, AMP_DYNAMIC_SCALE, BF16};
    const summary *acc = all->accuracy, *loss = all->loss;
    unsigned long skipped = (unsigned long)all->of[AMP_DYNAMIC_SCALE]->skipped;
    double ratio;
    int wrong = 0, i;
    wrong += claim(acc[FP32].mean > 0.9, "plain: fp32 learns: %.1f%%", 100 * acc[FP32].mean);
    for (i = 0; i < 4; i++) {
        wrong += claim_equal(all, o, "plain", same[i], FP32);
        ratio = loss[same[i]].mean / loss[FP32].mean;
        wrong +=
            claim(fabs(ratio - 1) < 0.02, "plain: the final loss of %s is %.4f of fp32's", modes[same[i]].name, ratio);
    }
    wrong += claim(
        acc[FP16_PURE].mean < acc[FP32].mean - 0.02, "plain: fp16-pure is worse: %.1f%%", 100 * acc[FP16_PURE].mean);
    ratio = loss[FP16_PURE].mean / loss[FP32].mean;
    wrong += claim(ratio > 1.5, "plain: its final loss is %.1f times fp32's", ratio);
    wrong += claim(skipped > 0, "plain: amp-dynamic skipped %lu steps on its way down", skipped);
    return wrong + check_fp8(all, "plain");
}

static int check_deep(const runs *all, const options *o) {
    const summary *acc = all->accuracy;
    double lost = all->of[FP16_MASTERS]->lost, lost_scaled = all->of[AMP_DYNAMIC_SCALE]->lost;
    int wrong = 0;
    wrong += claim(acc[FP32].mean > 0.9, "deep: fp32 learns: %.1f%%", 100 * acc[FP32].mean);
    wrong += claim_equal(all, o, "deep", AMP_DYNAMIC_SCALE, FP32);
    wrong +=
        claim(acc[FP16_MASTERS].mean < 0.3, "deep: fp16-masters does not learn: %.1f%%", 100 * acc[FP16_MASTERS].mean);
    wrong += claim(lost > 0.5 && lost_scaled < 0.05,
        "deep: FP16 loses %.1f%% of its gradients, and %.1f%% with scaling", 100 * lost, 100 * lost_scaled);
    return wrong + check_fp8(all, "deep");
}

#endif
