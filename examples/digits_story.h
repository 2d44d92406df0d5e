/* digits_story.h - the sections of digits_page.h's page, in the order that a reader needs them. {id} is a fact. */
#ifndef DIGITS_STORY_H
#define DIGITS_STORY_H

static void story_picture(const page *p, const options *o, int net, const char *name) {
    char *path = picture_path(o, &settings[net], name), id[64];
    snprintf(id, sizeof id, "%s-%.*s", settings[net].name, (int)strcspn(name, "."), name);
    page_picture(p, id, path);
    free(path);
}

static void story_begin(const page *p, const char *device, const options *o) {
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<title>Sixteen bits: what they lose, and two ways to keep it</title>\n<style>\n",
        p->f);
    fputs(page_style_text_1, p->f);
    fputs(page_style_text_2, p->f);
    fputs(page_style_live, p->f);
    fputs(page_style_modes, p->f);
    fputs("@media screen and (prefers-color-scheme: dark) {\n", p->f);
    plot_dark_rules(p->f, ".picture ");
    fputs("}\n", p->f);
    fputs("</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#picture\">To the text</a>\n<header>\n", p->f);
    page_say(p,
        "<h1>Sixteen bits: what they lose, and two ways to keep it</h1>\n<p class=\"lead\">Half the bits are half "
        "the bytes, and GPUs multiply them many times faster. But a network trained naively in FP16 may learn "
        "less, or not at all. This page shows why, with two small networks. Each was just trained on this "
        "machine, on handwritten digits, in six precisions.</p>\n<p class=\"small\">Made by <code>make "
        "run</code> on ");
    page_escaped(p, device);
    fprintf(p->f, ", seed %lu. A number with dots under it is a link to the table cell that it comes from.</p>\n",
        (unsigned long)o->seed);
    page_say(p,
        "<ul class=\"cards\"><li>FP32, deep network<b>{deep-fp32-accuracy}</b>of the test images are right</li>"
        "<li class=\"poor\">FP16 without a loss scale<b>{deep-fp16-masters-accuracy}</b>guessing gets 10%</li>"
        "<li>FP16 with a loss scale<b>{deep-amp-dynamic-accuracy}</b>half the bytes of activations</li></ul>\n"
        "<nav aria-label=\"Contents\"><ol><li><a href=\"#picture\">The subject in one picture</a></li>"
        "<li><a href=\"#formats\">What a number can hold</a></li>"
        "<li><a href=\"#masters\">Small updates vanish: master weights</a></li>"
        "<li><a href=\"#scaling\">Small gradients vanish: a loss scale</a></li>"
        "<li><a href=\"#dynamic\">Nobody has to know the scale</a></li>"
        "<li><a href=\"#bfloat\">BF16: range instead of a scale</a></li>"
        "<li><a href=\"#memory\">Memory</a></li><li><a href=\"#numbers\">All numbers</a></li>"
        "<li><a href=\"#next\">What to try next</a></li></ol></nav>\n</header>\n<main>\n");
}

static void story_modes(const page *p) {
    static const char *const heads[] = {"mode", "plain", "deep", "<weights", "<activations, gradients", "<loss scale"};
    static const struct {
        const char *weights, *rest, *scale;
    } says[PAGE_MODES] = {
        {"FP32", "FP32", "none"},
        {"FP16", "FP16", "none"},
        {"FP32 masters, FP16 copies", "FP16", "none"},
        {"FP32 masters, FP16 copies", "FP16", "one number for the whole run"},
        {"FP32 masters, FP16 copies", "FP16", "found by the run"},
        {"FP32 masters, BF16 copies", "BF16", "none"},
    };
    char accuracy[160];
    int m;
    page_begin_table(p, "The six modes, and their test accuracy", heads, 6);
    for (m = 0; m < PAGE_MODES; m++) {
        fprintf(p->f, "<tr class=\"text\"><th scope=\"row\">%s</th>", modes[m].name);
        snprintf(accuracy, sizeof accuracy,
            "<td class=\"n\">{plain-%s-accuracy}</td><td class=\"n\">{deep-%s-accuracy}</td>", modes[m].name,
            modes[m].name);
        page_say(p, accuracy);
        fprintf(p->f, "<td>%s</td><td>%s</td><td>%s</td></tr>\n", says[m].weights, says[m].rest, says[m].scale);
    }
    page_end_table(p);
}

static void story_one_picture(const page *p, const runs *all, const options *of) {
    const runs *deep = &all[DEEP];
    char why[512];
    int fails = deep->of[FP16_MASTERS]->accuracy < deep->of[FP32]->accuracy - 0.05;
    page_begin_section(p, "picture", "The subject in one picture");
    page_say(p,
        "<p>A network sees the same images in the same order in every mode; only the way in which numbers "
        "are stored differs.</p>\n");
    story_modes(p);
    page_say_if(p, fails,
        "<p>In the deep network two of the six modes learn nothing: FP16 by itself ({deep-fp16-pure-accuracy}) "
        "and FP16 "
        "with FP32 "
        "master weights ({deep-fp16-masters-accuracy}). FP16 with a loss scale, fixed ({deep-amp-static-accuracy}) "
        "or dynamic "
        "({deep-amp-dynamic-accuracy}), and BF16 ({deep-bf16-accuracy}) do what FP32 does "
        "({deep-fp32-accuracy}).</p>\n",
        "<p>In this run of the deep network FP16 without a loss scale reached {deep-fp16-masters-accuracy}, FP32 "
        "{deep-fp32-accuracy}: with these options there is little to see. <code>make run</code> has the options for "
        "which "
        "scaling decides.</p>\n");
    story_picture(p, &of[DEEP], DEEP, "loss.svg");
    why_it_rises(why, deep, &of[DEEP]);
    if (*why)
        page_say(p,
            "<h3>Why does the loss rise, instead of staying where it was?</h3>\n<p>It begins at "
            "{deep-first-loss} and ends at "
            "{deep-fp16-masters-loss}. The gradient of the logits is <i>p</i> &#8722; <i>y</i>, at first about "
            "&#8722;0.9 for the "
            "right class and 0.1 for each wrong one, divided by all that the loss is a mean over. That is "
            "{deep-right} and {deep-wrong}. Everything below {fp16-zero} becomes zero in FP16: the 0.9 "
            "survives, and the nine 0.1 do not. So every step raises logits and none lowers any, and Adam, "
            "which divides by the size of the "
            "gradients, makes "
            "these steps as long as good ones.</p>\n");
    page_end_section(p);
}

static void story_formats(const page *p, const options *o) {
    char *path = (char *)allocate(strlen(o->out) + 16, 1);
    page_begin_section(p, "formats", "What a number can hold");
    page_say(p,
        "<p>A floating-point number is a sign, an exponent and a fraction. Exponent bits buy range: how small and "
        "how large. "
        "Fraction bits buy precision: how close two neighbours are. FP16's largest number is {fp16-largest}. "
        "Below {fp16-normal} it loses precision; below {fp16-zero} everything becomes 0. The next number after "
        "1 is 1 + {fp16-step}. BF16 reaches {bf16-largest}, as FP32 does, and its next number after 1 is 1 + "
        "{bf16-step}.</p>\n"
        "<p>Both limits matter in training. <b>Precision</b> is too low when a small update is added to a large "
        "weight. <b>Range</b> is too small when a gradient is tiny.</p>\n");
    sprintf(path, "%s/formats.svg", o->out);
    page_picture(p, "formats-picture", path);
    free(path);
    page_bits(p);
    page_bits_table(p);
    page_end_section(p);
}

static void story_masters(const page *p, const runs *all, const options *of) {
    const runs *plain = &all[PLAIN];
    int worse = plain->of[FP32]->accuracy - plain->of[FP16_PURE]->accuracy > 0.01;
    page_begin_section(p, "masters", "Small updates vanish: keep master weights in FP32");
    page_say(p,
        "<p>The plain network is trained with a small learning rate, {plain-lr}, and Adam moves a weight by "
        "about that much in a step. Near the "
        "weight that is drawn here FP16 numbers are {plain-distance} apart, and a sum is rounded to the nearest "
        "of them. An "
        "update of less than half a "
        "distance leaves the weight where it was, in this step and in every later one.</p>\n");
    if (plain->of[FP16_PURE]->stuck > 0) {
        story_picture(p, &of[PLAIN], PLAIN, "weight.svg");
        page_say(p,
            "<p>Here the update is {plain-gap} of the distance. An FP32 copy of the weight, the <i>master</i>, "
            "keeps what FP16 rounds away. By update {plain-moves} enough has added up, and the FP16 copy "
            "moves.</p>\n");
    }
    page_say_if(p, worse,
        "<p>At the start this is true of {plain-frozen} of all weights. The run without masters ends {plain-short} "
        "points below "
        "FP32: {plain-fp16-pure-accuracy} instead of {plain-fp32-accuracy}. With masters it is "
        "{plain-fp16-masters-accuracy}.</p>\n",
        "<p>At the start this is true of {plain-frozen} of all weights. In this run that cost {plain-short} points: "
        "{plain-fp16-pure-accuracy} instead of {plain-fp32-accuracy}.</p>\n");
    story_picture(p, &of[PLAIN], PLAIN, "loss.svg");
    page_say(p, "<p>Its gradients are not the reason: only {plain-zero} of them are too small for FP16.</p>\n");
    page_end_section(p);
}

static void story_scaling(const page *p, const runs *all, const options *of) {
    page_begin_section(p, "scaling", "Small gradients vanish: multiply the loss");
    page_say(p,
        "<p>The deep network has small gradients, for two ordinary reasons. Near zero the slope of GELU is one "
        "half, so each "
        "layer halves what goes back through it. And the loss is a mean over {deep-places} places for each image, "
        "as in "
        "detection or segmentation. FP16 would make {before-zero} of these gradients zero and {before-sub} "
        "subnormal.</p>\n"
        "<p>The cure is one multiplication. Gradients are linear in the loss: multiply the loss by <i>S</i>, "
        "and every gradient in every layer is <i>S</i> times larger. Then they fit into FP16. They are divided "
        "by <i>S</i> in FP32 before they are used. With the scale of this run {after-zero} become zero and "
        "{after-sub} subnormal.</p>\n");
    story_picture(p, &of[DEEP], DEEP, "gradients.svg");
    page_scale(p, all);
    page_say(p,
        "<p>There is room: many powers of two lie between &#8220;too small&#8221; and &#8220;too large&#8221;. "
        "The largest "
        "scale that takes none of the gradients seen here beyond FP16 is {deep-suggested} "
        "(<code>amp_histogram_suggest_scale</code>). Without JavaScript: the same as a <a "
        "href=\"#numbers\">table</a>.</p>\n");
    story_picture(p, &of[DEEP], DEEP, "layers.svg");
    page_end_section(p);
}

static void story_dynamic(const page *p, const options *of) {
    page_begin_section(p, "dynamic", "Nobody has to know the scale");
    page_say(p,
        "<p>The dynamic scale is found by trial. If a scaled gradient overflows, the step is skipped: no weight "
        "changes, and the scale is halved. After enough good steps in a row it is doubled. Here it starts "
        "far too high on purpose, at {deep-start}, and doubles after {deep-interval} good steps, so that a short run "
        "shows something; amp's defaults are 65536 and 2000. It "
        "skipped {deep-amp-dynamic-skipped} of {deep-steps} steps and ended at {deep-amp-dynamic-scale}.</p>\n");
    story_picture(p, &of[DEEP], DEEP, "scale.svg");
    page_say(p,
        "<p>So it is no error if the loss jumps at the start or the first step is skipped. If steps keep being "
        "skipped, something is wrong: "
        "then <code>amp_scaler_get</code> sets <code>dead</code>, and <code>amp_step_poll</code> names the "
        "parameter.</p>\n");
    page_end_section(p);
}

static void story_rest(const page *p, const options *of) {
    page_begin_section(p, "bfloat", "BF16: range instead of a scale");
    page_say(p,
        "<p>BF16 has the exponent of FP32: nothing underflows, no scaler, no skipped steps. It reached "
        "{deep-bf16-accuracy} where FP16 needs a scale. The price is precision: a step of {bf16-step} near 1 "
        "instead of {fp16-step}. So it needs the masters even more.</p>\n");
    page_end_section(p);
    page_begin_section(p, "memory", "What it costs, and what it saves");
    page_say(p,
        "<p>Activations and gradients shrink to {ratio-activations} and {ratio-gradients} of FP32's. Weights grow, "
        "times "
        "{ratio-weights}, for there are two copies of them now. With Adam a parameter takes {layout-masters} "
        "bytes either way; "
        "layouts without FP32 masters go down to {layout-least}.</p>\n");
    story_picture(p, &of[DEEP], DEEP, "memory.svg");
    page_say(p,
        "<p>Time is not on this page: a CPU computes in FP32 and converts, so half precision saves bytes there, not "
        "seconds. The speed is on a GPU with Tensor Cores.</p>\n");
    page_end_section(p);
}

static void story_next(const page *p) {
    static const struct {
        const char *command, *text;
    } list[] = {
        {"build/digits --net plain --lr 0.001",
            "Updates twenty times larger. Predict first: what becomes of fp16-pure?"},
        {"build/digits --net deep --places 8192",
            "Gradients eight times larger. Does FP16 learn without a "
            "scale now?"},
        {"build/digits --net deep --places 1", "Ordinary gradients: the loss is a mean over the images alone."},
        {"build/digits --net both --mode bf16,fp8-current,fp8-delayed", "Eight bits, with a scale for each tensor."},
        {"build/digits --net deep --seeds 5", "Is it luck? Five seeds, mean and spread."},
        {"build/digits --check", "The claims of this page, with five seeds; it fails if one does not hold."},
        {"make build/first_scaler && build/first_scaler", "The dynamic scale in 30 lines of C: read it."},
        {"make build/debug && build/debug",
            "&#8220;My run does not learn&#8221;: three patients and what cures "
            "them."},
        {"make gpt",
            "A transformer on Shakespeare. Nothing is planted there, and FP16 needs the scale (15 "
            "minutes)."},
    };
    size_t i;
    page_begin_section(p, "next", "What to try next");
    page_say(p, "<p>In the folder of amp, each in seconds if nothing else is said:</p>\n<ol>\n");
    for (i = 0; i < sizeof list / sizeof list[0]; i++) {
        fprintf(p->f, "<li>%s<pre><code>", list[i].text);
        page_escaped(p, list[i].command);
        fputs("</code></pre></li>\n", p->f);
    }
    page_say(p,
        "</ol>\n<p>Slower and deeper: <code>docs/lesson.md</code>, nine stations of ten minutes to predict, run, "
        "look and explain, and <code>examples/labs</code>, with a checker for each. Neither needs a GPU. Words such as "
        "logits, moments or subnormal are explained in the <a href=\"../docs/glossary.md\">glossary</a>, "
        "<code>docs/glossary.md</code>.</p>\n");
    page_end_section(p);
}

/* all, of: for each network. The pictures have been drawn. */
static void write_page(FILE *f, const runs *all, const options *of, const char *device) {
    page *p = (page *)allocate(1, sizeof *p);
    p->f = f;
    all_facts(p, all, of);
    story_begin(p, device, &of[PLAIN]);
    story_one_picture(p, all, of);
    story_formats(p, &of[PLAIN]);
    story_masters(p, all, of);
    story_scaling(p, all, of);
    story_dynamic(p, of);
    story_rest(p, of);
    page_begin_section(p, "numbers", "All numbers");
    page_numbers(p, all);
    page_end_section(p);
    story_next(p);
    fprintf(f,
        "</main>\n<footer><p>amp %d.%d.%d: mixed precision for C and CUDA in two headers. Data: Optical "
        "Recognition of "
        "Handwritten Digits, E. Alpaydin and C. Kaynak, 1998, UCI Machine Learning Repository, CC BY "
        "4.0.</p></footer>\n"
        "<script>\n",
        AMP_VERSION_MAJOR, AMP_VERSION_MINOR, AMP_VERSION_PATCH);
    fputs(page_script_common, f);
    fputs(page_script_bits, f);
    fputs(page_script_scale, f);
    fputs("</script>\n</body>\n</html>\n", f);
    free(p);
}

#endif
