/* digits_page.h - the page of digits.c's --report: what the tables and pictures of this run mean, in the order that a
   reader needs it. The numbers are facts of the run, see page.h; where a run shows something else than the story, with
   other options, the sentences say so. Included by digits.c alone. */
#ifndef DIGITS_PAGE_H
#define DIGITS_PAGE_H

#include "page.h"
#include "page_text.h"

/* ==== facts ======================================================================================================= */

enum { PAGE_MODES = BF16 + 1 }; /* the six of the story */

static const char *fact_id(char id[PAGE_WORD], int net, int m, const char *what) {
    snprintf(id, PAGE_WORD, "%s-%s-%s", settings[net].name, modes[m].name, what);
    return id;
}

/* What the terminal's table says, with the same digits. */
static void facts_of_run(page *p, int net, int m, const result *r) {
    const struct {
        const char *name;
        uint64_t bytes;
    } kinds[4] = {{"weights", r->weights}, {"gradients", r->gradients}, {"optimizer", r->optimizer},
        {"activations", r->activations}};
    char id[PAGE_WORD], scale[64];
    int k;
    page_fact(p, fact_id(id, net, m, "accuracy"), NULL, "%.1f%%", 100 * r->accuracy);
    page_fact(p, fact_id(id, net, m, "loss"), NULL, "%.4f", r->loss);
    page_fact(p, fact_id(id, net, m, "skipped"), NULL, "%lu", (unsigned long)r->skipped);
    if (modes[m].scaling == AMP_SCALER_OFF)
        strcpy(scale, "none");
    else
        plot_two_to(scale, (int)floor(log2((double)r->scale) + 0.5));
    page_fact(p, fact_id(id, net, m, "scale"), NULL, "%s", scale);
    for (k = 0; k < 4; k++)
        page_fact(p, fact_id(id, net, m, kinds[k].name), NULL, "%.1f", (double)kinds[k].bytes / 1024);
    page_fact(p, fact_id(id, net, m, "zero"), NULL, "%.2f%%", 100 * r->lost);
}

/* The largest power of two that takes no gradient that was seen beyond FP16: amp_histogram_suggest_scale's rule. */
static int suggested_scale(const result *r) {
    amp_histogram h = AMP_ZERO;
    int e;
    for (e = 254; e > 1 && !(r->before[e] > 0); e--) {
    }
    h.amax = (float)ldexp(1.0, e - 127);
    return (int)log2((double)amp_histogram_suggest_scale(&h));
}

static void facts_of_formats(page *p) {
    plot_format list[PLOT_FORMATS];
    char power[64];
    plot_all_formats(list);
    page_fact(p, "fp16-largest", "largest number of FP16", "%.0f", list[1].largest);
    page_fact(p, "fp16-smallest", "smallest number of FP16 above zero", "%s",
        plot_two_to(power, (int)log2(list[1].smallest)));
    page_fact(p, "fp16-zero", "smaller than this becomes zero in FP16", "%s", plot_two_to(power, PLOT_LOST));
    page_fact(
        p, "fp16-normal", "from here on FP16 has all its bits", "%s", plot_two_to(power, (int)log2(list[1].normal)));
    page_fact(p, "fp16-step", "distance from 1 to the next number of FP16", "%s", plot_decimal(power, list[1].step, 3));
    page_fact(p, "bf16-largest", "largest number of BF16", "%s", plot_decimal(power, list[2].largest, 2));
    page_fact(p, "bf16-step", "distance from 1 to the next number of BF16", "%s", plot_decimal(power, list[2].step, 3));
}

static void facts_of_plain(page *p, const runs *all, const options *o) {
    const result *pure = all->of[FP16_PURE], *full = all->of[FP32];
    char text[64];
    plot_updates u = plot_update_weight(pure->stuck > 0 ? pure->stuck : 0.25, o->lr);
    page_fact(p, "plain-lr", "plain network: learning rate, about the size of Adam's updates", "%s",
        plot_decimal(text, o->lr, 3));
    page_fact(p, "plain-distance", "plain network: distance of FP16 numbers near the drawn weight", "%s",
        plot_decimal(text, u.gap, 3));
    page_fact(p, "plain-frozen", "plain network: weights that an update of this size does not move in FP16", "%.0f%%",
        100 * pure->frozen);
    page_fact(p, "plain-short", "plain network: fp16-pure is below fp32 by, in points", "%.1f",
        100 * (full->accuracy - pure->accuracy));
    page_fact(p, "plain-gap", "plain network: one update, as a fraction of the gap between neighbouring FP16 numbers",
        "%.2f", u.move / u.gap);
    page_fact(p, "plain-moves", "plain network: the update at which the copy of an FP32 master moves", "%d", u.first);
    page_fact(p, "plain-zero", "plain network: gradients that become zero in FP16 without a scale", "%.*f%%",
        percent_digits(all->of[FP16_MASTERS]->lost), 100 * all->of[FP16_MASTERS]->lost);
}

static void facts_of_deep(page *p, const runs *all, const options *o) {
    const result *r = all->of[AMP_DYNAMIC_SCALE], *bad = all->of[FP16_MASTERS], *full = all->of[FP32];
    double divisor = (double)o->batch * (double)o->places;
    char power[64];
    page_fact(p, "deep-places", "deep network: places that the loss is a mean over, for each image", "%ld", o->places);
    page_fact(p, "before-zero", "deep network: gradients that become zero in FP16 as they are", "%.1f%%",
        100 * plot_share_in(r->before, &plot_regions[0]));
    page_fact(p, "before-sub", "deep network: gradients that become subnormal in FP16 as they are", "%.1f%%",
        100 * plot_share_in(r->before, &plot_regions[1]));
    page_fact(p, "after-zero", "deep network: become zero times the loss scale of the step", "%.1f%%",
        100 * plot_share_in(r->after, &plot_regions[0]));
    page_fact(p, "after-sub", "deep network: become subnormal times the loss scale of the step", "%.1f%%",
        100 * plot_share_in(r->after, &plot_regions[1]));
    page_fact(p, "deep-first-loss", "deep network: loss of the first step", "%.1f", (double)bad->losses[0]);
    page_fact(
        p, "deep-right", "deep network: 0.9 of p - y after the mean", "2<sup>&#8722;%.1f</sup>", -log2(0.9 / divisor));
    page_fact(
        p, "deep-wrong", "deep network: 0.1 of p - y after the mean", "2<sup>&#8722;%.1f</sup>", -log2(0.1 / divisor));
    page_fact(p, "deep-start", "deep network: first scale of amp-dynamic", "%s",
        plot_two_to(power, (int)log2((double)settings[DEEP].first_scale)));
    page_fact(p, "deep-interval", "deep network: good steps until the scale is doubled", "%d",
        (int)settings[DEEP].growth_interval);
    page_fact(p, "deep-steps", "deep network: steps of a run", "%lu", (unsigned long)r->steps);
    page_fact(p, "deep-suggested", "deep network: largest scale that takes no seen gradient beyond FP16", "%s",
        plot_two_to(power, suggested_scale(r)));
    page_fact(p, "ratio-weights", "deep network: weights of amp-dynamic beside fp32, times", "%.2f",
        (double)r->weights / (double)full->weights);
    page_fact(p, "ratio-gradients", "deep network: gradients of amp-dynamic beside fp32, times", "%.2f",
        (double)r->gradients / (double)full->gradients);
    page_fact(p, "ratio-activations", "deep network: activations of amp-dynamic beside fp32, times", "%.2f",
        (double)r->activations / (double)full->activations);
}

static void all_facts(page *p, const runs *all, const options *of) {
    plot_memory_row ladder[6];
    int net, m;
    for (net = 0; net < NETS; net++)
        for (m = 0; m < PAGE_MODES; m++)
            facts_of_run(p, net, m, all[net].of[m]);
    facts_of_formats(p);
    facts_of_plain(p, &all[PLAIN], &of[PLAIN]);
    facts_of_deep(p, &all[DEEP], &of[DEEP]);
    layouts(ladder);
    page_fact(p, "layout-masters", "bytes per parameter: FP32 masters and a 16-bit copy, with Adam", "%.0f",
        plot_memory_sum(&ladder[1]));
    page_fact(p, "layout-least", "bytes per parameter: BF16 weights and moments, stochastic rounding", "%.0f",
        plot_memory_sum(&ladder[5]));
}

/* ==== parts that move, and the tables that say the same without them ============================================== */

static void bits_of(char text[24], unsigned code, int exponent) { /* 0 01111 0000000000 */
    char *out = text;
    int i;
    for (i = 15; i >= 0; i--) {
        *out++ = code >> i & 1 ? '1' : '0';
        if (i == 15 || i == 15 - exponent) *out++ = ' ';
    }
    *out = 0;
}

static void page_bits_table(const page *p) {
    static const char *const heads[5] = {"a number", "bits in FP16", "is", "bits in BF16", "is"};
    static const struct {
        const char *name;
        float x;
    } rows[] = {{"1", 1.0f}, {"0.1", 0.1f}, {"1/3", 1.0f / 3}, {"2049", 2049.0f}, {"65504", 65504.0f},
        {"70000", 70000.0f}, {"0.00006", 6e-5f}, {"0.0000001", 1e-7f}, {"0.00000001", 1e-8f}};
    char bits[2][24];
    size_t i;
    page_begin_table(p, "Numbers, and what FP16 and BF16 make of them: sign, exponent, fraction", heads, 5);
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        amp_f16 h = amp_f16_from_f32(rows[i].x);
        amp_bf16 b = amp_bf16_from_f32(rows[i].x);
        bits_of(bits[0], h.bits, 5);
        bits_of(bits[1], b.bits, 8);
        fprintf(p->f,
            "<tr class=\"both\"><th scope=\"row\">%s</th><td><code>%s</code></td><td>%.9g</td><td><code>%s</code></td>"
            "<td>%.9g</td></tr>\n",
            rows[i].name, bits[0], (double)amp_f32_from_f16(h), bits[1], (double)amp_f32_from_bf16(b));
    }
    page_end_table(p);
}

static void page_bits(const page *p) {
    page_say(p,
        "<div class=\"live\" id=\"bits\" hidden><h3>Try it: the bits of a number</h3>\n"
        "<fieldset><legend>Format</legend>"
        "<label><input type=\"radio\" name=\"bits-format\" value=\"fp16\" checked> FP16</label>"
        "<label><input type=\"radio\" name=\"bits-format\" value=\"bf16\"> BF16</label></fieldset>\n"
        "<div class=\"row\"><label>The nearest to <input type=\"text\" id=\"bits-in\" value=\"0.1\" "
        "inputmode=\"decimal\" "
        "autocomplete=\"off\" spellcheck=\"false\"></label>"
        "<button type=\"button\" id=\"bits-down\">number before</button>"
        "<button type=\"button\" id=\"bits-up\">number after</button></div>\n"
        "<div class=\"bits\" id=\"bits-row\" role=\"group\" aria-label=\"The 16 bits: press one to switch "
        "it\"></div>\n"
        "<output class=\"big\" id=\"bits-value\" for=\"bits-in\"></output>\n"
        "<p class=\"small\" id=\"bits-about\" aria-live=\"polite\"></p></div>\n");
}

static void page_scale_table(const page *p, const result *r) {
    static const char *const heads[5] = {"loss scale", "zero", "subnormal", "normal", "infinite"};
    char power[64];
    int k, e, region;
    page_begin_table(p, "What FP16 makes of the deep network's gradients, by loss scale", heads, 5);
    for (k = 0; k <= 48; k += 4) {
        double sum[PLOT_REGIONS] = {0, 0, 0, 0};
        for (region = 0; region < PLOT_REGIONS; region++)
            for (e = -127; e <= 127; e++)
                if (e + k >= plot_regions[region].from && e + k < plot_regions[region].to)
                    sum[region] += r->before[e + 127];
        fprintf(p->f, "<tr data-power=\"%d\"><th scope=\"row\">%s</th>", k, plot_two_to(power, k));
        for (region = 0; region < PLOT_REGIONS; region++)
            fprintf(p->f, "<td>%.1f%%</td>", 100 * sum[region]);
        fputs("</tr>\n", p->f);
    }
    page_end_table(p);
}

static void page_shares(const page *p, const char *name, const result *r, const char *after) {
    const char *comma = "";
    int e;
    fprintf(p->f, "\"%s\":[", name);
    for (e = 0; e < 255; e++) {
        if (!(r->before[e] > 0)) continue;
        fprintf(p->f, "%s[%d,%.7g]", comma, e - 127, r->before[e]);
        comma = ",";
    }
    fprintf(p->f, "]%s", after);
}

static void page_scale(const page *p, const runs *all) {
    const result *r = all[DEEP].of[AMP_DYNAMIC_SCALE];
    int first = 16, found = (int)floor(log2((double)r->scale) + 0.5), suggested = suggested_scale(r);
    fputs("<script type=\"application/json\" id=\"gradients-data\">{", p->f);
    page_shares(p, "deep", r, ",");
    page_shares(p, "plain", all[PLAIN].of[AMP_DYNAMIC_SCALE], "}</script>\n");
    page_say(p,
        "<div class=\"live\" id=\"scale\" hidden><h3>Try it: drag the loss scale</h3>\n"
        "<fieldset><legend>Gradients of the</legend>"
        "<label><input type=\"radio\" name=\"scale-net\" value=\"deep\" checked> deep network</label>"
        "<label><input type=\"radio\" name=\"scale-net\" value=\"plain\"> plain network</label></fieldset>\n"
        "<label for=\"scale-in\">Loss scale: <b id=\"scale-at\"></b></label>\n"
        "<input type=\"range\" id=\"scale-in\" min=\"0\" max=\"48\" step=\"1\" value=\"0\">\n<div class=\"row\">");
    fprintf(p->f,
        "<button type=\"button\" data-scale=\"0\">no scale</button>"
        "<button type=\"button\" data-scale=\"%d\">amp's default</button>"
        "<button type=\"button\" data-scale=\"%d\">where this run ended</button>"
        "<button type=\"button\" data-scale=\"%d\">suggested</button></div>\n",
        first, found, suggested);
    page_say(p,
        "<div class=\"hist\" id=\"scale-hist\" role=\"img\"></div>\n"
        "<div class=\"axis\" id=\"scale-axis\" aria-hidden=\"true\"></div>\n"
        "<p class=\"small\">Size of a gradient times the scale, in powers of two. The colours are what FP16 makes "
        "of it.</p>\n"
        "<ul class=\"fates\" aria-live=\"polite\"><li class=\"lost\">lost, become zero <b id=\"scale-lost\"></b></li>"
        "<li class=\"sub\">subnormal, fewer bits <b id=\"scale-sub\"></b></li>"
        "<li class=\"good\">normal <b id=\"scale-good\"></b></li>"
        "<li class=\"over\">infinite: step skipped <b id=\"scale-over\"></b></li></ul></div>\n");
}

static void page_numbers(const page *p, const runs *all) {
    static const char *const heads[10] = {"mode", "test accuracy", "final loss", "steps skipped", "final scale",
        "KiB of weights", "gradients", "optimizer", "activations", "FP16 loses"};
    static const char *const what[9] = {
        "accuracy", "loss", "skipped", "scale", "weights", "gradients", "optimizer", "activations", "zero"};
    char id[PAGE_WORD], caption[128];
    int net, m, k;
    for (net = 0; net < NETS; net++) {
        snprintf(caption, sizeof caption, "%s network: %s", settings[net].name, settings[net].what);
        page_begin_table(p, caption, heads, 10);
        for (m = 0; m < PAGE_MODES; m++) {
            fprintf(p->f, "<tr><th scope=\"row\">%s</th>", modes[m].name);
            for (k = 0; k < 9; k++)
                page_cell(p, fact_id(id, net, m, what[k]));
            fputs("</tr>\n", p->f);
        }
        page_end_table(p);
    }
    page_say(p,
        "<p class=\"small\">Weights: masters and copies together. Activations: with their gradients. FP16 loses: "
        "gradients that become zero at the run's scale; of fp32 and bf16, that FP16 would lose. Each row counts the "
        "gradients of its own run. In the deep network they differ: {deep-fp32-zero} of fp32's, "
        "{deep-fp16-masters-zero} "
        "of those of fp16-masters, whose weights went another way, and {before-zero} of amp-dynamic's before "
        "scaling, "
        "which the picture and the slider show.</p>\n");
    page_scale_table(p, all[DEEP].of[AMP_DYNAMIC_SCALE]);
    page_say(p, "<details><summary>Other numbers of the text</summary>\n");
    page_begin_table(p, "Where the text takes its other numbers from", (const char *const[2]){"<what", "number"}, 2);
    for (k = 0; k < p->n; k++)
        if (p->fact[k].what) {
            fprintf(p->f, "<tr class=\"text\"><td>%s</td>", p->fact[k].what);
            page_cell(p, p->fact[k].id);
            fputs("</tr>\n", p->f);
        }
    page_end_table(p);
    page_say(p, "</details>\n");
}

#include "digits_story.h" /* the sections, in their order */

#endif
