/* digits.c - real handwritten digits, trained in six precisions: why mixed precision needs FP32 master weights and loss
 * scaling.
 *
 *     cc -std=c99 -O2 examples/digits.c -I. -lm -pthread -o digits && ./digits          (--help lists the options)
 *
 * The program is an ordinary training loop, written with the public API of amp.h and nothing else. Per step (train()):
 *
 *     forward    amp_linear_forward per layer         weights and activations in the mode's format: F32, F16 or BF16
 *     loss       amp_softmax_cross_entropy            the gradient of the logits comes out multiplied by the loss scale
 *     backward   amp_linear_backward per layer        so every gradient after it carries the scale, too
 *     update     amp_step                             checks for overflow, unscales, updates, adapts the scale
 *
 * The six modes differ in three words only: see modes[] in digits_train.h. The two networks, and what makes the
 * gradients of the second one small, are in settings[] there. digits_model.h is the network, digits_show.h what is
 * printed and drawn, digits_page.h the page that explains a run (--report), digits_options.h the command line. play.c
 * trains the same in a page of a browser.
 *
 * Host memory and context memory (host memory on a CPU, device memory on a GPU) are kept apart: everything a verb
 * reads comes from amp_alloc and is filled by amp_copy, so the same program runs on both. With -DWITH_CUDA, amp.h and
 * its CUDA backend are linked from elsewhere; without it this file contains amp.h's implementation and runs on the CPU.
 */
#if !defined(_WIN32) && !defined(_POSIX_C_SOURCE)
#  define _POSIX_C_SOURCE 200809L /* mkdir, isatty, clock_gettime */
#endif
#ifdef WITH_CUDA
#  include "amp_cuda.cuh"
#elif !defined(AMP_LINKED) /* with it, amp's code comes from other objects */
#  define AMP_IMPLEMENTATION
#endif
#include "amp.h"

#define PROGRAM "digits"
#include "program.h" /* fail, must, allocate, claim */

#include "digits_train.h" /* modes, settings, the network, batches of images; the pictures */

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* ==== one run =================================================================================================== */

static double seconds(void) {
#ifdef _WIN32
    return (double)clock() / CLOCKS_PER_SEC;
#else
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
#endif
}

static struct progress {
    size_t done, total;
    double start, shown;
    int terminal;
} progress;

static void show_progress(
    const char *mode, uint64_t seed, size_t step, size_t steps, double loss, float scale, uint64_t skipped) {
    double now = seconds(), per_step = (now - progress.start) / (double)progress.done;
    double left = per_step * (double)(progress.total - progress.done);
    int last = step == steps, due = step % (steps / 4 + 1) == 0;
    if (progress.terminal) due = now - progress.shown >= 0.1; /* in place, so often */
    if (!due && !last) return;
    progress.shown = now;
    printf("%s%-12s seed %lu  %5lu/%lu  loss %-8.4g scale 2^%-3.0f skipped %-3lu %4.0f s left%s",
        progress.terminal ? "\r" : "", mode, (unsigned long)seed, (unsigned long)step, (unsigned long)steps, loss,
        log2((double)scale), (unsigned long)skipped, left, progress.terminal && !last ? "  " : "\n");
    fflush(stdout);
}

static void result_create(result *r, size_t steps) {
    memset(r, 0, sizeof *r);
    r->steps = steps;
    r->losses = (float *)allocate(steps, sizeof *r->losses);
    r->scales = (float *)allocate(steps, sizeof *r->scales);
    r->skips = (unsigned char *)allocate(steps, 1);
}

static void result_free(result *r) {
    free(r->losses);
    free(r->scales);
    free(r->skips);
    memset(r, 0, sizeof *r);
}

/* The gradients' counts as shares of all that were counted. */
static void result_normalise(result *r, double counted) {
    int e;
    if (!(counted > 0)) return;
    r->lost /= counted;
    r->lost8 /= counted;
    for (e = 0; e < 255; e++) {
        r->before[e] /= counted;
        r->after[e] /= counted;
    }
}

static void train(amp_ctx *ctx, const struct setting *s, const options *o, const struct mode *mode, const images *data,
    const images *test, size_t classes, uint64_t seed, FILE *csv, result *r) {
    const size_t per_epoch = data->count / o->batch, steps = o->epochs * per_epoch, look_every = steps / 20 + 1;
    double start = seconds(), looking = 0, counted = 0;
    amp_scaler *scaler = create_scaler(ctx, s, mode->scaling);
    amp_step_desc update = AMP_ZERO;
    amp_step_record record;
    amp_scaler_info scaling;
    batches b;
    network net, probe;
    size_t step;

    result_create(r, steps);
    batches_create(&b, data, o->batch, seed);
    network_create(&net, ctx, s, o, mode, data->pixels, classes, seed, 0);
    network_create(&probe, ctx, s, o, mode, data->pixels, classes, seed, 1);
    net.loss.scaler = scaler;
    update.optimizer = AMP_ADAM;
    update.lr = (float)o->lr;
    r->frozen = frozen_weights(&net, o->lr);
    r->stuck = stuck_weight(&net, o->lr);

    for (step = 0; step < steps; step++) {
        batches_next(&b, step);
        if (step % look_every == look_every / 2) {
            double now = seconds();
            must(ctx, amp_scaler_get(scaler, &scaling)); /* also without one: 1 */
            r->underflow.step[r->underflow.looks] = step;
            count_gradients(&probe, &net, b.x, b.labels, scaling.scale, r, &counted);
            looking += seconds() - now;
        }

        /* the training step */
        network_input(&net, b.x, b.labels, o->batch);
        network_forward(&net);
        network_backward(&net);
        must(ctx, amp_step(net.params, scaler, &update));

        /* what happened: these two lines wait for the device; a loop in a hurry asks for them less often */
        must(ctx, amp_copy(ctx, &r->losses[step], net.loss.loss, sizeof(float)));
        must(ctx, amp_step_poll(net.params, &record));
        r->scales[step] = record.scale;
        r->skips[step] = record.outcome != AMP_STEPPED;
        progress.done++;
        show_progress(mode->name, seed, step + 1, steps, (double)r->losses[step], record.scale, record.skipped);
        if (csv)
            fprintf(csv, "%s,%s,%lu,%lu,%lu,%.7g,%.9g,%s,%lu\n", s->name, mode->name, (unsigned long)seed,
                (unsigned long)(step / per_epoch + 1), (unsigned long)(step + 1), (double)r->losses[step],
                (double)record.scale, amp_outcome_name((amp_outcome)record.outcome), (unsigned long)record.skipped);
    }

    r->skipped = record.skipped;
    must(ctx, amp_scaler_get(scaler, &scaling));
    r->scale = scaling.scale;
    r->hash = weights_hash(net.ctx, net.params);
    r->accuracy = network_accuracy(&net, test);
    r->loss = plot_mean(r->losses, steps - per_epoch, steps); /* of the last epoch */
    result_bytes(r, ctx);
    result_normalise(r, counted);
    r->seconds = seconds() - start - looking;

    amp_scaler_destroy(scaler);
    network_destroy(&probe);
    network_destroy(&net);
    batches_free(&b);
}

#include "digits_show.h"    /* table, findings, pictures, claims */
#include "digits_options.h" /* the command line */
#include "digits_page.h"    /* the page of --report */

/* ==== main ======================================================================================================== */

static amp_ctx *create_context(const options *o) {
    amp_cpu_desc cpu = AMP_ZERO;
    cpu.threads = (int32_t)o->threads;
    cpu.simd = o->simd;
    cpu.gemm_flags = o->ordered ? AMP_GEMM_ORDERED : 0;
    return open_context(o->device, &cpu);
}

/* Files are opened before the training, so that a bad path is noticed at once. */
static void open_folder(const options *o, int *made) {
    struct stat info;
    *made = 0;
    if (stat(o->out, &info) == 0) {
        if (!S_ISDIR(info.st_mode)) fail("--out: %s is not a folder", o->out);
        if (!may_write(o->out)) fail("--out: %s: %s", o->out, strerror(errno));
    } else if (make_dir(o->out) == 0)
        *made = 1;
    else
        fail("--out: cannot create the folder %s: %s", o->out, strerror(errno));
}

static FILE *open_file(const options *o, const char *option, const char *name, int made) {
    FILE *f = name ? fopen(name, "w") : NULL;
    int why = errno;
    if (!name || f) return f;
    if (made) remove_dir(o->out);
    fail("%s: %s: %s", option, name, strerror(why));
    return NULL;
}

static void close_file(FILE *f, const char *option, const char *name) {
    if (f && (ferror(f) | fclose(f))) fail("%s: %s: could not be written", option, name);
}

static void print_network(const struct setting *s, const options *o, size_t pixels, size_t classes) {
    int i;
    printf("\n%s network: %s\nlayers of %lu-", s->name, s->what, (unsigned long)pixels);
    for (i = 1; i < s->layers; i++)
        printf("%lu-", (unsigned long)o->hidden);
    printf("%lu, batch %lu, %lu epochs, Adam with lr %g", (unsigned long)classes, (unsigned long)o->batch,
        (unsigned long)o->epochs, o->lr);
    printf(", loss: mean over the images of a batch");
    if (o->places > 1)
        printf("\nand over %ld places of a page per image: that makes the gradients small, on purpose (--places)",
            o->places);
    printf("\n\n");
}

/* Runs the chosen modes of one network with all seeds. Returns the number of claims that do not hold (--check). */
static int run_net(amp_ctx *ctx, const options *o, int net, const images *train_set, const images *test_set,
    size_t classes, FILE *csv, runs *all) {
    const struct setting *s = &settings[net];
    int m, i;
    memset(all, 0, sizeof *all);
    print_network(s, o, train_set->pixels, classes);
    progress.done = progress.total = 0;
    progress.start = seconds();
    for (m = 0; m < MODES; m++)
        if (o->run[m]) progress.total += (size_t)o->seeds * o->epochs * (train_set->count / o->batch);
    for (m = 0; m < MODES; m++) {
        if (!o->run[m]) continue;
        all->of[m] = (result *)allocate((size_t)o->seeds, sizeof(result));
        for (i = 0; i < o->seeds; i++)
            train(ctx, s, o, &modes[m], train_set, test_set, classes, o->seed + (uint64_t)i, csv, &all->of[m][i]);
    }
    summarise_runs(all, o);
    print_table(all, o);
    if (o->check) {
        printf("\n");
        return net == PLAIN ? check_plain(all, o) : check_deep(all, o);
    }
    print_findings(all, s, o);
    printf("\n");
    draw(all, s, o);
    return 0;
}

static void free_runs(runs *all, const options *o) {
    int m, i;
    for (m = 0; m < MODES; m++) {
        for (i = 0; i < o->seeds && all->of[m]; i++)
            result_free(&all->of[m][i]);
        free(all->of[m]);
    }
}

/* Returns the number of classes. */
static size_t load_images(const options *o, images *train_set, images *test_set) {
    size_t classes = 10, i;
    if (!o->data) {
        load_builtin(train_set, test_set);
        return classes;
    }
    *train_set = load_idx(o->data, "train-images-idx3-ubyte", "train-labels-idx1-ubyte");
    *test_set = load_idx(o->data, "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte");
    if (test_set->rows != train_set->rows || test_set->cols != train_set->cols)
        fail("%s/t10k-images-idx3-ubyte: images of %lu x %lu pixels, but those for training have %lu x %lu", o->data,
            (unsigned long)test_set->rows, (unsigned long)test_set->cols, (unsigned long)train_set->rows,
            (unsigned long)train_set->cols);
    for (i = 0; i < train_set->count; i++)
        if ((size_t)train_set->label[i] >= classes) classes = (size_t)train_set->label[i] + 1;
    for (i = 0; i < test_set->count; i++)
        if ((size_t)test_set->label[i] >= classes) classes = (size_t)test_set->label[i] + 1;
    return classes;
}

int main(int argc, char **argv) {
    options o = parse(argc, argv), of[NETS]; /* of a network: what was not given is its own */
    runs all[NETS];
    images train_set, test_set;
    size_t classes = load_images(&o, &train_set, &test_set);
    int net, made, wrong = 0;
    FILE *csv = NULL, *page = NULL;
    amp_ctx *ctx;

    for (net = 0; net < NETS; net++) { /* every option is checked before anything is written */
        of[net] = o;
        if (o.check)
            parse_modes(&of[net],
                net == DEEP ? "fp32,fp16-masters,amp-dynamic,bf16,fp8-delayed" : "all,fp8-current,fp8-delayed");
        if (o.nets[net]) complete(&of[net], &settings[net], train_set.count);
    }
    ctx = create_context(&o);
    if (!o.check) {
        open_folder(&o, &made);
        csv = open_file(&o, "--csv", o.csv, made);
        page = open_file(&o, "--report", o.report, made);
        if (csv) fprintf(csv, "net,mode,seed,epoch,step,loss,scale,outcome,skipped\n");
    }

    progress.terminal = on_terminal() != 0;
    printf("%s: %lu training images, %lu test images. Device: %s.\n", o.data ? o.data : "Built-in digits",
        (unsigned long)train_set.count, (unsigned long)test_set.count, amp_ctx_name(ctx));
    for (net = 0; net < NETS; net++)
        if (o.nets[net]) wrong += run_net(ctx, &of[net], net, &train_set, &test_set, classes, csv, &all[net]);
    close_file(csv, "--csv", o.csv);
    if (page) {
        draw_formats(&o);
        write_page(page, all, of, amp_ctx_name(ctx));
        close_file(page, "--report", o.report);
        printf("\nwrote %s: the tables, the pictures and what they mean. Open it in a browser.\n", o.report);
    }
    if (o.check) printf("\n%s\n", wrong ? "Some claims do not hold." : "All claims hold.");
    for (net = 0; net < NETS; net++)
        if (o.nets[net]) free_runs(&all[net], &o);
    amp_ctx_destroy(ctx);
    images_free(&train_set);
    images_free(&test_set);
    return wrong != 0;
}
