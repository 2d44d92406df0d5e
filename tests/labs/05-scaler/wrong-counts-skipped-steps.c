/* lab 5: step with gradients Inf and 1: the step counter must be 5, and yours is 6: only steps that are taken
   count */
#include "amp.h"
#include "lab.h"

typedef struct scaler {
    float scale;
    float growth_factor, backoff_factor;
    int growth_interval;
    int hysteresis;
    float min_scale, max_scale;
    int growth_tracker;
    int hysteresis_tracker;
} scaler;

typedef struct optimizer {
    float lr;
    float clip_norm;
    int steps;
} optimizer;

void scaler_update(scaler *s, int bad) {
    if (bad) {
        s->growth_tracker = 0;
        s->hysteresis_tracker--;
        if (s->hysteresis_tracker <= 0) {
            s->scale *= s->backoff_factor;
            if (s->scale < s->min_scale) s->scale = s->min_scale;
        }
        return;
    }
    s->hysteresis_tracker = s->hysteresis;
    s->growth_tracker++;
    if (s->growth_tracker >= s->growth_interval) {
        float grown = s->scale * s->growth_factor;
        s->growth_tracker = 0;
        if (amp_is_finite(grown)) s->scale = grown;
        if (s->scale > s->max_scale) s->scale = s->max_scale;
    }
}

int scaled_step(scaler *s, optimizer *o, float *w, const amp_f16 *grad, size_t n) {
    float u[64], clip = 1;
    double sum = 0;
    int bad = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        u[i] = amp_f32_from_f16(grad[i]) / s->scale;
        if (!amp_is_finite(u[i])) bad = 1;
        sum += (double)u[i] * (double)u[i];
    }
    if (o->clip_norm > 0 && sqrt(sum) > (double)o->clip_norm) clip = o->clip_norm / (float)sqrt(sum);
    o->steps++;
    if (!bad) {
        for (i = 0; i < n; i++)
            w[i] -= o->lr * (u[i] * clip);
    }
    scaler_update(s, bad);
    return !bad;
}
