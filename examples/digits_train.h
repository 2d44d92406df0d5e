/* digits_train.h - what digits.c and play.c train alike: the precisions, the two networks, and the order of the images.
   Include it after amp.h, with PROGRAM defined. */
#ifndef DIGITS_TRAIN_H
#define DIGITS_TRAIN_H

#include "digits_load.h"    /* images; shuffle */
#include "plot_gradients.h" /* before plot_numbers.h, which has the looks that a run keeps */
#include "plot_numbers.h"
#include "program.h" /* fail, must, allocate */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ==== the experiment ============================================================================================ */

enum { FP32, FP16_PURE, FP16_MASTERS, AMP_STATIC_SCALE, AMP_DYNAMIC_SCALE, BF16, FP8_CURRENT, FP8_DELAYED, MODES };
enum { PLAIN, DEEP, NETS };
enum { MAX_LAYERS = 8, MAX_SEEDS = 100 };

static const struct mode {
    const char *name;
    amp_dtype model;   /* weights the products read, activations, gradients */
    amp_master master; /* are there FP32 master weights besides? */
    amp_scaler_mode scaling;
    int fp8;          /* 1: products of all layers but the last read FP8 copies, each tensor with its own scale, */
    uint32_t history; /* from the largest of this many amaxes before; 0: from its own (docs/fp8.md) */
} modes[MODES] = {
    {"fp32", AMP_F32, AMP_MASTER_F32, AMP_SCALER_OFF, 0, 0},
    {"fp16-pure", AMP_F16, AMP_MASTER_NONE, AMP_SCALER_OFF, 0, 0},
    {"fp16-masters", AMP_F16, AMP_MASTER_F32, AMP_SCALER_OFF, 0, 0},
    {"amp-static", AMP_F16, AMP_MASTER_F32, AMP_SCALER_STATIC, 0, 0},
    {"amp-dynamic", AMP_F16, AMP_MASTER_F32, AMP_SCALER_DYNAMIC, 0, 0},
    {"bf16", AMP_BF16, AMP_MASTER_F32, AMP_SCALER_OFF, 0, 0},
    {"fp8-current", AMP_BF16, AMP_MASTER_F32, AMP_SCALER_OFF, 1, 0},
    {"fp8-delayed", AMP_BF16, AMP_MASTER_F32, AMP_SCALER_OFF, 1, 16},
};

/* plain: a small ReLU network that is trained gently for a long time. Adam moves a weight by about lr = 5e-5 per step.
   FP16 numbers between 1/8 and 1/4 are 2^-13 apart, so a move of less than 2^-14 = 6.1e-5 rounds back to where it was:
   without masters, weights of that size and above stand still from the first step on. (With a large learning rate,
   --lr 0.001, the moves are large enough, and the cost is gone: try it.) Its gradients are well inside FP16's range.

   deep: gradients that FP16 cannot hold, for two ordinary reasons. (1) Seven hidden GELU layers, initialised like
   Keras' Dense layers (Glorot uniform): near zero GELU's slope is 1/2, so each layer halves what goes back through it.
   (2) The loss is a mean over all places of a page of 256 x 256, as in detection and segmentation, or wherever masked
   places are counted in the mean; one place per page carries a digit, and only those are computed. So every gradient
   is divided by 65,536 (--places changes it). FP32 does not mind: Adam divides by the size of the gradients. FP16
   rounds four fifths of them to zero, and what is left points the wrong way: of the gradient of the logits, p - y, the
   0.9 of the right class survives and the 0.1 of the nine others do not. (Less is not enough: with --places 8192 FP16
   loses three fifths of the gradients and still learns. Try it, and --places 1.)

   The first dynamic scale is far too high on purpose: the picture shows how it finds its level by itself. amp.h's
   default of 2000 good steps before the scale grows is too long for runs this short. */
static const struct setting {
    const char *name, *what;
    int layers; /* weight matrices */
    amp_act act;
    double init_in, init_out; /* weights are uniform in +-sqrt(6 / (init_in * inputs + init_out * outputs)) */
    size_t hidden, batch, steps;
    double lr;
    long places;
    float static_scale, first_scale;
    int32_t growth_interval;
} settings[NETS] = {
    {"plain", "2 hidden ReLU layers, He initialisation", 3, AMP_RELU, 1, 0, 64, 32, 5000, 5e-5, 1, /* He: 1, 0 */
        1024.0f, 16777216.0f, 500},
    {"deep", "7 hidden GELU layers, Glorot initialisation", 8, AMP_GELU, 1, 1, 64, 128, 400, 1e-3, 65536, 16777216.0f,
        1099511627776.0f, 100},
};

typedef struct options {
    int nets[NETS], run[MODES], seeds, check, threads, ordered;
    const char *device, *out, *csv, *data, *report;
    amp_simd simd;
    amp_dtype moment; /* of Adam's moments */
    uint64_t seed;
    size_t hidden, batch, epochs;
    double lr;
    long places;
} options;

/* A number that an option has as text. */
PROGRAM_FN double number(const char *option, const char *text, double low, double high, int whole) {
    char *end;
    double v = strtod(text, &end);
    if (end == text || *end || !(v >= low && v <= high) || (whole && floor(v) < v))
        fail("%s: '%s' is not a%s number from %g to %g", option, text, whole ? " whole" : "", low, high);
    return v;
}

/* What was not given comes from the setting. */
static void complete(options *o, const struct setting *s, size_t images_in_train) {
    if (!o->hidden) o->hidden = s->hidden;
    if (!o->batch) o->batch = s->batch;
    if (!(o->lr > 0)) o->lr = s->lr;
    if (!o->places) o->places = s->places;
    if (o->batch > images_in_train)
        fail("--batch: %lu is more than the %lu training images", (unsigned long)o->batch,
            (unsigned long)images_in_train);
    if (!o->epochs) {
        size_t per_epoch = images_in_train / o->batch;
        o->epochs = (s->steps + per_epoch - 1) / per_epoch;
    }
}

#include "digits_model.h" /* the network, forward and backward; looks at its gradients */

/* ==== the parts of a loop ========================================================================================= */

static amp_scaler *create_scaler(amp_ctx *ctx, const struct setting *s, amp_scaler_mode mode) { /* NULL: OFF */
    amp_scaler *scaler = NULL;
    amp_scaler_desc desc = AMP_ZERO;
    if (mode == AMP_SCALER_OFF) return NULL;
    desc.mode = mode;
    desc.scale = mode == AMP_SCALER_STATIC ? s->static_scale : s->first_scale;
    desc.growth_interval = s->growth_interval;
    must(ctx, amp_scaler_create(&scaler, ctx, &desc));
    return scaler;
}

typedef struct batches { /* the training images in a random order, anew every epoch */
    const images *data;
    uint64_t seed;
    size_t batch, per_epoch;
    uint32_t *order;
    float *x; /* the present batch */
    int32_t *labels;
} batches;

static void batches_create(batches *b, const images *data, size_t batch, uint64_t seed) {
    size_t i;
    b->data = data;
    b->seed = seed;
    b->batch = batch;
    b->per_epoch = data->count / batch; /* what is left over waits for the next epoch's shuffle */
    b->order = (uint32_t *)allocate(data->count, sizeof *b->order);
    b->x = (float *)allocate(batch * data->pixels, sizeof *b->x);
    b->labels = (int32_t *)allocate(batch, sizeof *b->labels);
    for (i = 0; i < data->count; i++)
        b->order[i] = (uint32_t)i;
}

static void batches_next(batches *b, size_t step) {
    const images *m = b->data;
    size_t at = step % b->per_epoch * b->batch, i;
    if (at == 0) shuffle(b->order, m->count, b->seed, step / b->per_epoch);
    for (i = 0; i < b->batch; i++) {
        size_t from = b->order[at + i];
        memcpy(b->x + i * m->pixels, m->x + from * m->pixels, m->pixels * sizeof *b->x);
        b->labels[i] = m->label[from];
    }
}

static void batches_free(batches *b) {
    free(b->order);
    free(b->x);
    free(b->labels);
}

#endif
