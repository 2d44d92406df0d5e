/* lab.c - lab 12: mixed precision in a GPT. The page is README.md; check it with  make lab N=12
 *
 * The network is that of gpt.c in a clone of amp, only smaller: FP16 activations, gradients and weights. What makes it
 * mixed precision is here. Begin the names of your own functions with my_. */
#include "amp.h"
#include "lab.h"

typedef struct weights { /* one parameter of the network */
    size_t count;
    float *master;  /* FP32 */
    amp_f16 *model; /* the copy that products read; NULL: an FP32 island (gain, bias of a norm), which reads master */
    amp_array grad; /* element i: amp_load(grad.data, grad.dtype, i). It carries the loss scale */
    float *m1, *m2; /* moments of Adam */
} weights;

typedef struct trainer {
    float scale; /* of the loss */
    int good;    /* steps in a row without Inf and NaN since the scale last changed */
    int steps;   /* taken */
} trainer;

/* Given: Adam for one weight. u is the unscaled gradient, step is 1 in the first step; subtract what it returns. */
static float adam(weights *w, size_t i, float u, float lr, int step) {
    w->m1[i] = 0.9f * w->m1[i] + 0.1f * u;
    w->m2[i] = 0.99f * w->m2[i] + 0.01f * u * u;
    return lr * (w->m1[i] / (1 - powf(0.9f, (float)step))) / (sqrtf(w->m2[i] / (1 - powf(0.99f, (float)step))) + 1e-8f);
}

/* 1: this operation computes in FP32, whatever its operands are. Asked for "linear", "attention_product", "layer_norm",
 * "softmax", "cross_entropy". */
int runs_in_f32(const char *operation) {
    (void)adam;
    (void)operation;
    LAB_TODO("runs_in_f32");
    return 0;
}

/* Softmax cross-entropy in FP32: returns the mean over the rows of -log(p[label]), and writes the gradient of that
 * times the loss scale, rounded to halves. logits and dlogits are [rows, classes], and may be the same array. */
float loss_and_gradient(
    amp_f16 *dlogits, const amp_f16 *logits, const int32_t *labels, size_t rows, size_t classes, float scale) {
    (void)dlogits;
    (void)logits;
    (void)labels;
    (void)rows;
    (void)classes;
    (void)scale;
    LAB_TODO("loss_and_gradient");
    return 0;
}

/* One step for all n parameters. If any gradient of any of them is Inf or NaN, nothing changes but the scale, which is
 * halved. Else: unscale, adam, masters, copies; after 100 good steps in a row the scale is doubled. 1: it was taken. */
int step(trainer *t, weights *w, size_t n, float lr) {
    (void)t;
    (void)w;
    (void)n;
    (void)lr;
    LAB_TODO("step");
    return 0;
}
