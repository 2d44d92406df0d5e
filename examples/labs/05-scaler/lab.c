/* lab.c - lab 5: a dynamic scaler of your own. The page is README.md; check it with  make lab N=5 */
#include "amp.h"
#include "lab.h"

typedef struct scaler {
    float scale;
    float growth_factor, backoff_factor; /* 2 and 0.5, or others */
    int growth_interval;                 /* the scale grows after this many good updates in a row */
    int hysteresis;                      /* it backs off after this many bad updates in a row */
    float min_scale, max_scale;          /* it never goes below, nor above; max_scale may be INFINITY */
    int growth_tracker;                  /* good updates in a row since the scale last changed, or was to change */
    int hysteresis_tracker;              /* bad updates left until it backs off: begins at hysteresis */
} scaler;

typedef struct optimizer {
    float lr;
    float clip_norm; /* 0: off */
    int steps;       /* taken so far */
} optimizer;

/* The next scale; bad is 1 if a gradient was Inf or NaN. The rule stands on the page. */
void scaler_update(scaler *s, int bad) {
    (void)s;
    (void)bad;
    LAB_TODO("scaler_update");
}

/* One step of SGD with FP16 gradients that carry the loss scale: unscale them into floats, look for Inf and NaN, clip
 * by the norm of the unscaled ones, then w = w - lr * u, and finally scaler_update. A bad step changes no weight and is
 * not counted. Returns 1 if the step was taken. n is at most 64. */
int scaled_step(scaler *s, optimizer *o, float *w, const amp_f16 *grad, size_t n) {
    (void)s;
    (void)o;
    (void)w;
    (void)grad;
    (void)n;
    LAB_TODO("scaled_step");
    return 0;
}
