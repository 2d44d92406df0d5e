/* play.c - digits.c's training, step by step, with every choice free: for a page in a browser, and for a terminal.
 *
 *     make play          build/play.html: this file and amp.h as WebAssembly in one page (needs a compiler for it)
 *     make build/play && build/play plain f16 none off 0 0.00005 1     the same run here; prints the same hash
 *
 * Without words it trains as these say. Expected output, on every machine:
 *   > weights 646ceb7491d9ab8d, test accuracy 85.0 %, last loss 0.7116, 0 steps skipped
 *
 * The page calls play_start() once, play_step() until it returns 0, play_hash() and play_end(). What
 * they find out is in play_now, which the page reads from memory: numbers in FP64, in the order of the enumeration
 * below. Products are ordered, so the weights end with the same bits on every machine.
 */
#if !defined(_WIN32) && !defined(_POSIX_C_SOURCE)
#  define _POSIX_C_SOURCE 200809L
#endif
#ifndef AMP_LINKED /* with it, amp's code comes from other objects */
#  define AMP_IMPLEMENTATION
#endif
#include "amp.h"

#define PROGRAM "play"
#include "digits_train.h" /* modes, settings, the network, batches of images */

#ifdef PLAY_PAGE
#  define PLAY_CALL(name) __attribute__((export_name(#name), used)) /* JavaScript calls it by its name */
#else
#  define PLAY_CALL(name) static
#endif

/* What the page reads. The last 255 are the shares of gradients in [2^(i-127), 2^(i-126)), before scaling. */
enum {
    NOW_STEP, /* taken and skipped so far */
    NOW_STEPS,
    NOW_LOSS,    /* of this step's batch */
    NOW_SCALE,   /* of this step */
    NOW_SKIPPED, /* steps so far */
    NOW_UPDATES, /* in this step, of weights; and those of them that changed no bit. Set while looking */
    NOW_UPDATES_LOST,
    NOW_GRADIENTS_LOST, /* share of the gradients that FP16 makes 0, with this step's scale; and without one */
    NOW_GRADIENTS_LOST_UNSCALED,
    NOW_ACCURACY,     /* on the test images. Set by play_hash(), as the next one */
    NOW_WEIGHT_BYTES, /* masters and copies for the products */
    NOW_GRADIENTS,
    NOW_COUNT = NOW_GRADIENTS + 255
};

static struct play {
    amp_ctx *ctx;
    amp_scaler *scaler;
    amp_step_desc update;
    options o;
    images train, test;
    batches b;
    network net, probe;
    result found;
    size_t step;
    double now[NOW_COUNT];
    char text[4096];
} play;

PLAY_CALL(play_now) double *play_now(void) { return play.now; }

/* The choices as digits.c has them, as JSON. */
#ifdef PLAY_PAGE
PLAY_CALL(play_choices) const char *play_choices(void) {
    char *to = play.text;
    int i;
    to += sprintf(to, "{\"nets\":[");
    for (i = 0; i < NETS; i++) {
        const struct setting *s = &settings[i];
        to += sprintf(to, "%s{\"name\":\"%s\",\"what\":\"%s\",\"lr\":%g,\"staticScale\":%g,\"firstScale\":%g}",
            i ? "," : "", s->name, s->what, s->lr, log2((double)s->static_scale), log2((double)s->first_scale));
    }
    to += sprintf(to, "],\"modes\":[");
    for (i = 0; i < MODES; i++) {
        const struct mode *m = &modes[i];
        to += sprintf(to, "%s{\"name\":\"%s\",\"format\":%d,\"masters\":%d,\"scaling\":%d}", i ? "," : "", m->name,
            m->fp8 ? (m->history ? 4 : 3) : (int)(m->model == AMP_F16) + 2 * (int)(m->model == AMP_BF16),
            m->master == AMP_MASTER_F32, (int)m->scaling);
    }
    sprintf(to, "]}");
    return play.text;
}
#endif

/* format: 0 FP32, 1 FP16, 2 BF16, 3 and 4 BF16 whose products read FP8, with present and with earlier amaxes. masters:
   1 for FP32 masters. scaling: an amp_scaler_mode. scale: its first power of two. Returns the number of steps. */
PLAY_CALL(play_start)
int play_start(int net, int format, int masters, int scaling, double scale, double lr, unsigned seed) {
    static const amp_dtype models[] = {AMP_F32, AMP_F16, AMP_BF16, AMP_BF16, AMP_BF16};
    struct setting s = settings[net];
    struct mode mode = AMP_ZERO;
    amp_cpu_desc cpu = AMP_ZERO;
    memset(&play, 0, sizeof play);
    mode.model = models[format];
    mode.master = masters ? AMP_MASTER_F32 : AMP_MASTER_NONE;
    mode.scaling = (amp_scaler_mode)scaling;
    mode.fp8 = format >= 3;
    mode.history = format == 4 ? modes[FP8_DELAYED].history : 0;
    s.static_scale = s.first_scale = (float)ldexp(1.0, (int)scale);
    play.o.lr = lr;
    cpu.threads = 1;
    cpu.gemm_flags = AMP_GEMM_ORDERED;
    must(NULL, amp_cpu_create(&play.ctx, &cpu));

    load_builtin(&play.train, &play.test);
    complete(&play.o, &s, play.train.count);
    batches_create(&play.b, &play.train, play.o.batch, seed);
    network_create(&play.net, play.ctx, &s, &play.o, &mode, play.train.pixels, 10, seed, 0);
    network_create(&play.probe, play.ctx, &s, &play.o, &mode, play.train.pixels, 10, seed, 1);
    play.scaler = create_scaler(play.ctx, &s, mode.scaling);
    play.net.loss.scaler = play.scaler;
    play.update.optimizer = AMP_ADAM;
    play.update.lr = (float)lr;
    play.now[NOW_STEPS] = (double)(play.o.epochs * play.b.per_epoch);
    return (int)play.now[NOW_STEPS];
}

/* The gradients of the next step by size, as FP32 has them, and what FP16 loses of them. */
static void look_at_gradients(float scale) {
    result *r = &play.found;
    double counted = 0;
    int i;
    memset(r, 0, sizeof *r);
    count_gradients(&play.probe, &play.net, play.b.x, play.b.labels, scale, r, &counted);
    if (!(counted > 0)) counted = 1;
    play.now[NOW_GRADIENTS_LOST] = r->lost / counted;
    play.now[NOW_GRADIENTS_LOST_UNSCALED] = 0;
    for (i = 0; i < 255; i++) {
        play.now[NOW_GRADIENTS + i] = r->before[i] / counted;
        if (i - 127 < PLOT_LOST) play.now[NOW_GRADIENTS_LOST_UNSCALED] += r->before[i] / counted;
    }
}

/* One training step, as in digits.c; looking: with a look at gradients before it and updates in it. Returns 0 after the
   last one. */
PLAY_CALL(play_step) int play_step(int looking) {
    amp_report_row rows[1 + 2 * MAX_LAYERS];
    amp_scaler_info scaling;
    amp_step_record record;
    float loss;
    if (play.step >= (size_t)play.now[NOW_STEPS]) return 0;
    batches_next(&play.b, play.step);
    if (looking) {
        must(play.ctx, amp_scaler_get(play.scaler, &scaling)); /* also without one: 1 */
        look_at_gradients(scaling.scale);
    }
    network_input(&play.net, play.b.x, play.b.labels, play.o.batch);
    network_forward(&play.net);
    network_backward(&play.net);
    play.update.count_lost = looking != 0;
    must(play.ctx, amp_step(play.net.params, play.scaler, &play.update));

    must(play.ctx, amp_copy(play.ctx, &loss, play.net.loss.loss, sizeof loss));
    must(play.ctx, amp_step_poll(play.net.params, &record));
    if (looking) {
        must(play.ctx, amp_report(play.net.params, play.scaler, rows, 1 + 2 * MAX_LAYERS, NULL, NULL, 0));
        play.now[NOW_UPDATES] = (double)rows[0].updates;
        play.now[NOW_UPDATES_LOST] = (double)rows[0].lost;
    }
    play.step++;
    play.now[NOW_STEP] = (double)play.step;
    play.now[NOW_LOSS] = (double)loss;
    play.now[NOW_SCALE] = (double)record.scale;
    play.now[NOW_SKIPPED] = (double)record.skipped;
    return play.step < (size_t)play.now[NOW_STEPS];
}

/* The hash of all weights, as digits.c prints it; the accuracy is in play_now. At any time. */
PLAY_CALL(play_hash) const char *play_hash(void) {
    uint64_t hash = weights_hash(play.ctx, play.net.params);
    sprintf(play.text, "%08lx%08lx", (unsigned long)(hash >> 32), (unsigned long)(hash & 0xffffffffu));
    result_bytes(&play.found, play.ctx);
    play.now[NOW_ACCURACY] = network_accuracy(&play.net, &play.test);
    play.now[NOW_WEIGHT_BYTES] = (double)play.found.weights;
    return play.text;
}

PLAY_CALL(play_end) void play_end(void) {
    amp_scaler_destroy(play.scaler);
    network_destroy(&play.probe);
    network_destroy(&play.net);
    batches_free(&play.b);
    images_free(&play.train);
    images_free(&play.test);
    amp_ctx_destroy(play.ctx);
}

#ifndef PLAY_PAGE
static int choice(const char *what, const char *text, const char *const *names, int n) {
    int i;
    for (i = 0; i < n; i++)
        if (!strcmp(text, names[i])) return i;
    fail("%s: '%s' is not known, see the head of play.c", what, text);
    return 0;
}

/* What the page does, with the words that it shows. */
int main(int argc, char **argv) {
    static const char *const nets[] = {"plain", "deep"}, *const masters[] = {"none", "f32"};
    static const char *const formats[] = {"f32", "f16", "bf16", "fp8-current", "fp8-delayed"};
    static const char *const scalings[] = {"dynamic", "static", "off"};
    static const char *const standard[] = {"plain", "f16", "none", "off", "0", "0.00005", "1"};
    const char *const *word = argc > 1 ? (const char *const *)(argv + 1) : standard;
    if (argc > 1 && argc != 8) fail("7 words: NET FORMAT MASTERS SCALING LOG2-SCALE LR SEED; see the head of play.c");
    play_start(choice("NET", word[0], nets, 2), choice("FORMAT", word[1], formats, 5),
        choice("MASTERS", word[2], masters, 2), choice("SCALING", word[3], scalings, 3),
        number("LOG2-SCALE", word[4], 0, 100, 1), number("LR", word[5], 1e-30, 1e30, 0),
        (unsigned)number("SEED", word[6], 0, 4294967295.0, 1));
    while (play_step(0))
        continue;
    printf("weights %s", play_hash());
    printf(", test accuracy %.1f %%, last loss %.4g, %.0f steps skipped\n", 100 * play_now()[NOW_ACCURACY],
        play_now()[NOW_LOSS], play_now()[NOW_SKIPPED]);
    play_end();
    return 0;
}
#endif
