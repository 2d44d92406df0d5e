/* convnet.c - a small convolution network on handwritten digits, in FP32, FP16 with loss scaling, and BF16.
 *
 *     make build/convnet && build/convnet                                        (--help lists the options)
 *     nvcc -O2 -arch=native -x cu -I. examples/convnet.c -lcublasLt -o convnet   (the same file, for a GPU)
 *
 * Three times convolution of 3 x 3, batch norm, ReLU; 2 x 2 max pooling after the second and third; one linear layer.
 * Products, loss and optimizer are amp's verbs. conv.h has what else it takes, each layer written once for a loop of
 * the CPU and a kernel of the GPU: convolutions become products there, forward and backward. convnet_net.h makes the
 * network of both. Here is what is tried and measured. convnet_check.h, --check: is it right?
 *
 * FP32 in every mode: inside batch norm and loss, gains and biases of batch norms with their gradients, the running
 * means and variances, sums inside products. All else has the mode's dtype.
 */
#if !defined(_WIN32) && !defined(_POSIX_C_SOURCE)
#  define _POSIX_C_SOURCE 200809L /* clock_gettime, isatty */
#endif
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

#define PROGRAM "convnet"
#include "program.h" /* fail, must, allocate, claim */

#include <math.h>
#include <time.h>
#include <unistd.h>

/* ==== the experiment ============================================================================================== */

enum { STAGES = 3, CLASSES = 10, MAX_SEEDS = 16, FP32 = 0, MODES = 3 };
static const struct mode {
    const char *name;
    amp_dtype t; /* weights that products read, activations, gradients */
    amp_scaler_mode scaling;
    amp_dtype moment; /* of the optimizer's moments: --moments */
} modes[MODES] = {
    {"fp32", AMP_F32, AMP_SCALER_OFF, AMP_F32},
    {"fp16", AMP_F16, AMP_SCALER_DYNAMIC, AMP_F32},
    {"bf16", AMP_BF16, AMP_SCALER_OFF, AMP_F32},
};
static const struct stage_shape { size_t channels, pool; } shapes[STAGES] = {{16, 0}, {32, 1}, {64, 1}};

#define FIRST_SCALE 65536.0f
#define GROWTH      200 /* good steps before the scale doubles; amp.h's 2000 is for longer runs */
#define DECAY       0.01f

typedef struct options {
    int run[MODES], check, ordered;
    size_t seed, seeds, epochs, batch, threads;
    double lr;
    amp_dtype moment;
    const char *device, *data;
} options;

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#include "convnet_net.h" /* the network */

/* ==== one run ===================================================================================================== */

typedef struct result {
    double accuracy, loss, seconds; /* loss: mean of the last epoch */
    float scale;
    uint64_t skipped, hash, activations, patches; /* hash: of the bits of all weights; bytes */
} result;

static struct progress {
    size_t done, total;
    double start, shown;
} progress;
/* On stderr, so that the table stays whole. */
static void show_progress(const char *mode, uint64_t seed, size_t epoch, size_t epochs, double loss) {
    double now = seconds(), left = (now - progress.start) / (double)progress.done;
    int terminal = isatty(2) != 0, last = epoch == epochs;
    if (!last && (terminal ? now - progress.shown < 0.2 : epoch % (epochs / 2 + 1) != 0)) return;
    progress.shown = now;
    fprintf(stderr, "%s%-5s seed %lu  epoch %lu/%lu  loss %-7.4f %5.0f s left%s", terminal ? "\r" : "", mode,
        (unsigned long)seed, (unsigned long)epoch, (unsigned long)epochs, loss,
        left * (double)(progress.total - progress.done), terminal && !last ? "  " : "\n");
}
static uint64_t ledger_bytes(const amp_ctx *ctx, const char *label) {
    amp_ledger_row row = AMP_ZERO;
    (void)amp_ledger(ctx, &row, 1, label);
    return row.bytes;
}
static result train(
    amp_ctx *ctx, const options *o, const struct mode *m, const images *data, const images *test, uint64_t seed) {
    static network net;
    struct mode kept = *m;
    size_t per_epoch = data->count / o->batch, epoch, i;
    uint32_t *order = (uint32_t *)allocate(data->count, sizeof *order);
    amp_step_desc d = AMP_ZERO;
    amp_step_record record = AMP_ZERO;
    result r = AMP_ZERO;
    double start = seconds();
    kept.moment = o->moment;
    network_create(&net, ctx, &kept, data, o->batch, seed);
    upload(&net, data, test);
    for (i = 0; i < data->count; i++)
        order[i] = (uint32_t)i;
    d.weight_decay = DECAY;
    for (epoch = 0; epoch < o->epochs; epoch++) {
        shuffle(order, data->count, seed, epoch);
        must(ctx, amp_copy(ctx, net.order, order, data->count * sizeof *order));
        r.loss = 0;
        for (i = 0; i < per_epoch; i++) {
            double way = (double)(epoch * per_epoch + i) / (double)(o->epochs * per_epoch);
            float loss;
            d.lr = (float)(0.5 * (1 + cos(3.14159265358979 * way)) * o->lr); /* down along a cosine */
            net.loss.dlogits = net.loss.logits;
            network_input(&net, i * o->batch);
            network_forward(&net, 1);
            must(ctx, amp_softmax_cross_entropy(ctx, &net.loss));
            network_backward(&net);
            must(ctx, amp_step(net.params, net.scaler, &d));
            must(ctx, amp_copy(ctx, &loss, net.loss.loss, sizeof loss)); /* to show it: this waits for the device */
            r.loss += (double)loss / (double)per_epoch;
        }
        progress.done++;
        show_progress(m->name, seed, epoch + 1, o->epochs, r.loss);
    }
    r.seconds = seconds() - start;
    must(ctx, amp_sync(ctx));
    must(ctx, amp_step_poll(net.params, &record));
    r.skipped = record.skipped;
    r.scale = record.scale;
    r.hash = weights_hash(ctx, net.params);
    r.accuracy = network_accuracy(&net);
    r.activations = ledger_bytes(ctx, "activations") + ledger_bytes(ctx, "gradients");
    r.patches = ledger_bytes(ctx, "patches");
    network_destroy(&net);
    free(order);
    return r;
}
static void print_row(const char *name, const result *r, size_t seeds, int scaled) {
    double accuracy = 0, low = 1, high = 0, loss = 0, skipped = 0, time = 0;
    char scale[32] = "-";
    size_t i;
    for (i = 0; i < seeds; i++) {
        accuracy += r[i].accuracy / (double)seeds;
        low = r[i].accuracy < low ? r[i].accuracy : low;
        high = r[i].accuracy > high ? r[i].accuracy : high;
        loss += r[i].loss / (double)seeds;
        skipped += (double)r[i].skipped / (double)seeds;
        time += r[i].seconds / (double)seeds;
    }
    if (scaled) sprintf(scale, "2^%g", log2((double)r->scale));
    printf("%-5s %6.2f%% %6.2f%% to %6.2f%% %9.4f %8.4g %6s %12.1f %9.1f %8.2f\n", name, 100 * accuracy, 100 * low,
        100 * high, loss, skipped, scale, (double)r->activations / 1024, (double)r->patches / 1024, time);
}

static amp_ctx *create_context(const options *o) {
    amp_cpu_desc cpu = AMP_ZERO;
    cpu.threads = (int32_t)o->threads;
    cpu.gemm_flags = o->ordered ? AMP_GEMM_ORDERED : 0;
    return open_context(o->device, &cpu);
}

#include "convnet_check.h" /* --check */

/* ==== options and main ============================================================================================ */

static const char help[] =
    "convnet: trains a small convolution network on handwritten digits in several precisions.\n"
    "\n"
    "  --mode LIST          all (default), or some of fp32,fp16,bf16. fp16: with dynamic loss scaling\n"
    "  --seeds N, --seed N  how many runs of each mode (3), and the first one's seed (1)\n"
    "  --epochs N --batch N --lr X     12, 16 and 0.004\n"
    "  --moments fp32|bf16|8bit        how the optimizer's moments are kept (fp32)\n"
    "  --data DIR           IDX files (MNIST or similar) instead of the built-in digits, as for digits; images of 10\n"
    "                       classes, height and width multiples of 4\n"
    "  --device cpu|cuda    where (cuda if built with it and found)\n"
    "  --threads N          CPU threads (all)\n"
    "  --ordered            products in a defined order: the same weights, to the bit, on every machine\n"
    "  --check              the layers beside plain loops in double, and a short run of each mode; exit status 1 if\n"
    "                       something is wrong\n"
    "  --check-layers       the part of it that does not train\n"
    "  --help\n";

static void parse_modes(options *o, const char *list) {
    int m;
    memset(o->run, 0, sizeof o->run);
    for (;;) {
        size_t n = strcspn(list, ",");
        int known = 0;
        for (m = 0; m < MODES; m++)
            if ((n == 3 && !strncmp(list, "all", n)) ||
                (n == strlen(modes[m].name) && !strncmp(list, modes[m].name, n)))
                known = o->run[m] = 1;
        if (!known) option_refuse("--mode: '%.*s' is not a mode, see --help", (int)n, list);
        if (!list[n]) return;
        list += n + 1;
    }
}
static void parse_option(options *o, const char *a, const char *v) {
    if (!strcmp(a, "--mode"))
        parse_modes(o, option_text(a, v));
    else if (!strcmp(a, "--seed"))
        o->seed = (size_t)option_number(a, v, 0, 4294967295.0, 1);
    else if (!strcmp(a, "--seeds"))
        o->seeds = (size_t)option_number(a, v, 1, MAX_SEEDS, 1);
    else if (!strcmp(a, "--epochs"))
        o->epochs = (size_t)option_number(a, v, 1, 1e6, 1);
    else if (!strcmp(a, "--batch"))
        o->batch = (size_t)option_number(a, v, 2, 1024, 1);
    else if (!strcmp(a, "--lr"))
        o->lr = option_number(a, v, 1e-12, 1e6, 0);
    else if (!strcmp(a, "--threads"))
        o->threads = (size_t)option_number(a, v, 1, 256, 1);
    else if (!strcmp(a, "--data"))
        o->data = option_text(a, v);
    else if (!strcmp(a, "--moments"))
        o->moment = moment_format(option_text(a, v));
    else if (!strcmp(a, "--device"))
        o->device = option_device(a, v);
    else
        option_unknown(a);
}
static options parse(int argc, char **argv) {
    options o = AMP_ZERO;
    int i;
    o.seed = 1;
    o.seeds = 3;
    o.epochs = 12;
    o.batch = 16;
    o.lr = 4e-3;
    parse_modes(&o, "all");
    for (i = 1; i < argc; i++) {
        option_help(argv[i], help);
        if (!strcmp(argv[i], "--ordered"))
            o.ordered = 1;
        else if (!strcmp(argv[i], "--check-layers"))
            o.check = 1;
        else if (!strcmp(argv[i], "--check"))
            o.check = 2;
        else {
            parse_option(&o, argv[i], argv[i + 1]);
            i++;
        }
    }
    return o;
}
static void train_all(amp_ctx *ctx, const options *o, const images *data, const images *test) {
    result r[MODES][MAX_SEEDS];
    size_t i;
    int m;
    progress.start = seconds();
    for (m = 0; m < MODES; m++)
        progress.total += o->run[m] ? o->seeds * o->epochs : 0;
    for (m = 0; m < MODES; m++)
        for (i = 0; i < o->seeds && o->run[m]; i++)
            r[m][i] = train(ctx, o, &modes[m], data, test, o->seed + i);
    printf(
        "\n%-5s %7s %18s %9s %8s %6s %12s %9s %8s\n", "", "test", "lowest and", "final", "steps", "", "KiB of", "", "");
    printf("%-5s %7s %18s %9s %8s %6s %12s %9s %8s\n", "mode", "accur.", "highest", "loss", "skipped", "scale",
        "activations", "patches", "seconds");
    for (m = 0; m < MODES; m++)
        if (o->run[m]) print_row(modes[m].name, r[m], o->seeds, modes[m].scaling != AMP_SCALER_OFF);
    for (m = 0; m < MODES && o->ordered; m++)
        for (i = 0; i < o->seeds && o->run[m]; i++)
            printf("%-5s weights after seed %lu: %08lx%08lx, on every machine\n", modes[m].name,
                (unsigned long)(o->seed + i), (unsigned long)(r[m][i].hash >> 32),
                (unsigned long)(r[m][i].hash & 0xffffffffu));
    printf("Means over %d seeds. Activations: with their gradients. Patches: one array, shared by the convolutions.\n"
           "FP32 in every mode: inside batch norm and loss; gains, biases, running means; sums inside products.\n"
           "%s",
        (int)o->seeds,
        o->data ? "" : "The dense networks of build/digits reach 95.6% (plain) and 97.2% (deep) on the same images.\n");
}
static void load(const options *o, images *data, images *test) {
    size_t i;
    if (!o->data) {
        load_builtin(data, test);
        return;
    }
    *data = load_idx(o->data, "train-images-idx3-ubyte", "train-labels-idx1-ubyte");
    *test = load_idx(o->data, "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte");
    if (data->rows != test->rows || data->cols != test->cols || data->rows % 4 || data->cols % 4)
        fail("--data: %s: images of %d x %d and %d x %d pixels, not multiples of 4", o->data, (int)data->rows,
            (int)data->cols, (int)test->rows, (int)test->cols);
    for (i = 0; i < data->count + test->count; i++)
        if ((i < data->count ? data->label[i] : test->label[i - data->count]) >= CLASSES)
            fail("--data: %s: a label is not below %d", o->data, CLASSES);
}
int main(int argc, char **argv) {
    options o = parse(argc, argv);
    images data, test;
    amp_ctx *ctx;
    int wrong = 0;
    load(&o, &data, &test);
    if (o.batch > data.count) fail("--batch: %d is more than the %d training images", (int)o.batch, (int)data.count);
    ctx = create_context(&o);
    if (o.check)
        wrong = check(ctx, &o, &data, &test);
    else {
        printf("%s: %d training images, %d test images. Device: %s.\n", o.data ? o.data : "Built-in digits",
            (int)data.count, (int)test.count, amp_ctx_name(ctx));
        train_all(ctx, &o, &data, &test);
    }
    amp_ctx_destroy(ctx);
    images_free(&data);
    images_free(&test);
    return wrong != 0;
}
