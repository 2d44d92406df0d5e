/* lab 12: after 3 steps the master is 0.9997 and its copy 1.0000: products read the copy */
#include "amp.h"
#include "lab.h"

typedef struct weights {
    size_t count;
    float *master;
    amp_f16 *model;
    amp_array grad;
    float *m1, *m2;
} weights;

typedef struct trainer {
    float scale;
    int good;
    int steps;
} trainer;

static float adam(weights *w, size_t i, float u, float lr, int step) {
    w->m1[i] = 0.9f * w->m1[i] + 0.1f * u;
    w->m2[i] = 0.99f * w->m2[i] + 0.01f * u * u;
    return lr * (w->m1[i] / (1 - powf(0.9f, (float)step))) / (sqrtf(w->m2[i] / (1 - powf(0.99f, (float)step))) + 1e-8f);
}

int runs_in_f32(const char *operation) {
    return strcmp(operation, "layer_norm") == 0 || strcmp(operation, "softmax") == 0 ||
        strcmp(operation, "cross_entropy") == 0;
}

float loss_and_gradient(
    amp_f16 *dlogits, const amp_f16 *logits, const int32_t *labels, size_t rows, size_t classes, float scale) {
    float loss = 0;
    size_t r, c;
    for (r = 0; r < rows; r++) {
        const amp_f16 *x = logits + r * classes;
        size_t label = (size_t)labels[r];
        float largest = amp_f32_from_f16(x[0]), sum = 0, target = amp_f32_from_f16(x[label]);
        for (c = 1; c < classes; c++)
            largest = fmaxf(largest, amp_f32_from_f16(x[c]));
        for (c = 0; c < classes; c++)
            sum += expf(amp_f32_from_f16(x[c]) - largest);
        loss += logf(sum) - (target - largest);
        for (c = 0; c < classes; c++) {
            float p = expf(amp_f32_from_f16(x[c]) - largest) / sum;
            float d = (p - (float)(c == label)) / (float)rows;
            dlogits[r * classes + c] = amp_f16_from_f32(d * scale);
        }
    }
    return loss / (float)rows;
}

static int my_all_finite(const weights *w) {
    size_t i;
    for (i = 0; i < w->count; i++)
        if (!amp_is_finite(amp_load(w->grad.data, w->grad.dtype, i))) return 0;
    return 1;
}

int step(trainer *t, weights *w, size_t n, float lr) {
    size_t k, i;
    for (k = 0; k < n; k++) {
        if (my_all_finite(&w[k])) continue;
        t->scale *= 0.5f;
        t->good = 0;
        return 0;
    }
    t->steps++;
    for (k = 0; k < n; k++)
        for (i = 0; i < w[k].count; i++) {
            float u = amp_load(w[k].grad.data, w[k].grad.dtype, i) / t->scale;
            w[k].master[i] -= adam(&w[k], i, u, lr, t->steps);
        }
    if (++t->good == 100) {
        t->scale *= 2;
        t->good = 0;
    }
    return 1;
}
