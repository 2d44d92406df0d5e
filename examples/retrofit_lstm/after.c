/* Trains an LSTM on the characters of a text, online: one sequence at a time, one character after the other, with
 * loops and an Adam of its own (before.c), or FP16 products by amp (after.c; README.md has the diff).
 *
 *     cc -std=c99 -O2 before.c -lm -o before && ./before TEXT 1
 *     cc -std=c99 -O2 -I../.. after.c -lm -pthread -o after && ./after TEXT 1
 *
 * Two layers, a softmax over characters, the state kept from window to window. TEXT is a file of ASCII, the number the
 * seed. Prints the mean loss of every tenth of the steps.
 */
#define AMP_IMPLEMENTATION
#include "amp.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef STEPS
#  define STEPS 500
#endif
enum { VOCAB = 128, HIDDEN = 64, GATES = 4 * HIDDEN, WINDOW = 16 };
static const float LR = 2e-3;

typedef struct Weights { /* nothing but numbers, so Adam takes it for one long array */
    float w1[GATES][VOCAB + HIDDEN], b1[GATES];
    float w2[GATES][HIDDEN + HIDDEN], b2[GATES];
    float wy[VOCAB][HIDDEN], by[VOCAB];
} Weights;
enum { COUNT = sizeof(Weights) / sizeof(float) };
static Weights w, g;
static amp_ctx *ctx;
static amp_params *params;
static amp_scaler *scaler;

typedef struct Cell { /* a layer at one place of the window: its input and the state before it, then what it made */
    float in[VOCAB + HIDDEN], gate[GATES], c[HIDDEN], h[HIDDEN];
} Cell;
static Cell cell1[WINDOW + 1], cell2[WINDOW + 1]; /* [0]: the end of the window before */
static float p[WINDOW][VOCAB];

static void check(amp_status s) {
    if (s == AMP_OK) return;
    fprintf(stderr, "%s\n", amp_last_error(ctx));
    exit(1);
}

/* ---- products of a matrix [rows][cols] and a vector -------------------------------------------------------------- */

static void product(float *d, const float *a, int ta, const float *b, int tb, int m, int n, int k, float beta) {
    amp_gemm_desc desc = {.m = m, .n = n, .k = k, .trans_a = ta, .trans_b = tb, .beta = amp_opt(beta)};
    desc.a = amp_arr(a, AMP_F32), desc.b = amp_arr(b, AMP_F32), desc.d = amp_arr(d, AMP_F32);
    check(amp_gemm(ctx, &desc));
}
static void forward_product(float *y, const float *a, const float *x, int rows, int cols) { /* y += a x */
    product(y, x, 0, a, 1, 1, rows, cols, 1);
}
static void backward_product(float *dx, const float *a, const float *dy, int rows, int cols) { /* dx = a^T dy */
    product(dx, dy, 0, a, 0, 1, cols, rows, 0);
}
static void outer_product(float *da, const float *dy, const float *x, int rows, int cols) { /* da += dy x^T */
    product(da, dy, 0, x, 0, rows, cols, 1, 1);
}

/* ---- the network ------------------------------------------------------------------------------------------------- */

static float sigmoid(float x) { return 1 / (1 + exp(-x)); }

/* Gates: input, forget, output, candidate. to->in[0 .. n - 1] is there already; the state before follows it. */
static void cell_forward(Cell *to, const Cell *was, const float *a, const float *b, int n) {
    memcpy(to->in + n, was->h, sizeof was->h);
    memcpy(to->gate, b, sizeof to->gate);
    forward_product(to->gate, a, to->in, GATES, n + HIDDEN);
    for (int i = 0; i < 3 * HIDDEN; i++)
        to->gate[i] = sigmoid(to->gate[i]);
    for (int i = 3 * HIDDEN; i < GATES; i++)
        to->gate[i] = tanh(to->gate[i]);
    for (int i = 0; i < HIDDEN; i++) {
        to->c[i] = to->gate[HIDDEN + i] * was->c[i] + to->gate[i] * to->gate[3 * HIDDEN + i];
        to->h[i] = to->gate[2 * HIDDEN + i] * tanh(to->c[i]);
    }
}

/* dh and dc: gradients of this state, replaced by those of the one before. dx: gradient of the input, and of h. */
static void cell_backward(
    const Cell *at, const float *a, float *da, float *db, float *dh, float *dc, float *dx, int n) {
    float d[GATES];
    for (int i = 0; i < HIDDEN; i++) {
        float in = at->gate[i], forget = at->gate[HIDDEN + i], out = at->gate[2 * HIDDEN + i];
        float candidate = at->gate[3 * HIDDEN + i], t = tanh(at->c[i]);
        float back = dc[i] + dh[i] * out * (1 - t * t);
        d[i] = back * candidate * in * (1 - in);
        d[HIDDEN + i] = back * at[-1].c[i] * forget * (1 - forget);
        d[2 * HIDDEN + i] = dh[i] * t * out * (1 - out);
        d[3 * HIDDEN + i] = back * in * (1 - candidate * candidate);
        dc[i] = back * forget;
    }
    for (int i = 0; i < GATES; i++)
        db[i] += d[i];
    outer_product(da, d, at->in, GATES, n + HIDDEN);
    backward_product(dx, a, d, GATES, n + HIDDEN);
    memcpy(dh, dx + n, HIDDEN * sizeof *dh);
}

static float forward(const char *text) { /* the mean loss of a window */
    float loss = 0;
    for (int t = 0; t < WINDOW; t++) {
        Cell *a = &cell1[t + 1], *b = &cell2[t + 1];
        float top = -1e30, sum = 0;
        memset(a->in, 0, sizeof a->in);
        a->in[text[t] & 127] = 1;
        cell_forward(a, a - 1, w.w1[0], w.b1, VOCAB);
        memcpy(b->in, a->h, sizeof a->h);
        cell_forward(b, b - 1, w.w2[0], w.b2, HIDDEN);
        memcpy(p[t], w.by, sizeof w.by);
        forward_product(p[t], w.wy[0], b->h, VOCAB, HIDDEN);
        for (int i = 0; i < VOCAB; i++)
            top = p[t][i] > top ? p[t][i] : top;
        for (int i = 0; i < VOCAB; i++)
            sum += p[t][i] = exp(p[t][i] - top);
        for (int i = 0; i < VOCAB; i++)
            p[t][i] /= sum;
        loss -= log(p[t][text[t + 1] & 127]) / WINDOW;
    }
    return loss;
}

static void backward(const char *text) {
    float dh1[HIDDEN] = {0}, dc1[HIDDEN] = {0}, dh2[HIDDEN] = {0}, dc2[HIDDEN] = {0};
    float dz[VOCAB], dh[HIDDEN], dx[VOCAB + HIDDEN];
    memset(&g, 0, sizeof g);
    for (int t = WINDOW - 1; t >= 0; t--) {
        const Cell *a = &cell1[t + 1], *b = &cell2[t + 1];
        for (int i = 0; i < VOCAB; i++) {
            dz[i] = (p[t][i] - (i == (text[t + 1] & 127))) / WINDOW * *amp_scaler_scale_ptr(scaler);
            g.by[i] += dz[i];
        }
        outer_product(g.wy[0], dz, b->h, VOCAB, HIDDEN);
        backward_product(dh, w.wy[0], dz, VOCAB, HIDDEN);
        for (int i = 0; i < HIDDEN; i++)
            dh2[i] += dh[i];
        cell_backward(b, w.w2[0], g.w2[0], g.b2, dh2, dc2, dx, HIDDEN);
        for (int i = 0; i < HIDDEN; i++)
            dh1[i] += dx[i];
        cell_backward(a, w.w1[0], g.w1[0], g.b1, dh1, dc1, dx, VOCAB);
    }
}

/* ---- main -------------------------------------------------------------------------------------------------------- */

static unsigned seed;
static float uniform(void) { /* [-1, 1) */
    seed = seed * 1664525u + 1013904223u;
    return (float)(seed >> 8) / 8388608 - 1;
}
static void init(float *a, int rows, int cols) {
    for (int i = 0; i < rows * cols; i++)
        a[i] = uniform() / sqrt((float)cols);
}

int main(int argc, char **argv) {
    static char text[1 << 20];
    FILE *f = argc > 2 ? fopen(argv[1], "rb") : NULL;
    float sum = 0;
    if (!f) {
        fprintf(stderr, "usage: %s TEXT SEED\n", argv[0]);
        return 1;
    }
    size_t length = fread(text, 1, sizeof text, f), at = 0;
    fclose(f);
    if (length <= WINDOW) {
        fprintf(stderr, "%s is too short\n", argv[1]);
        return 1;
    }
    seed = (unsigned)atoi(argv[2]) * 2654435761u;
    init(w.w1[0], GATES, VOCAB + HIDDEN);
    init(w.w2[0], GATES, HIDDEN + HIDDEN);
    init(w.wy[0], VOCAB, HIDDEN);
    amp_param_desc all = {.count = COUNT, .master = (float *)&w, .grad = amp_arr(&g, AMP_F32)};
    amp_step_desc adam = {.optimizer = AMP_ADAM, .lr = LR};
    amp_step_record last;
    amp_scaler_info now;
    double norm;
    check(amp_cpu_create(&ctx, NULL));
    check(amp_scaler_create(&scaler, ctx, NULL));
    check(amp_params_create(&params, ctx, NULL));
    check(amp_params_add(params, &all));
    check(amp_params_commit(params));
    check(amp_autocast_begin(ctx, NULL)); /* FP16 */
    forward(text);
    do { /* the first loss scale: smaller until backward is finite, and then room for larger gradients */
        backward(text);
        check(amp_grad_norm(params, scaler, &norm));
        check(amp_scaler_get(scaler, &now));
        check(amp_scaler_set_scale(scaler, now.scale / (amp_is_finite((float)norm) ? 16 : 2)));
    } while (!amp_is_finite((float)norm) && now.scale > 16);

    for (int step = 1; step <= STEPS; step++) {
        sum += forward(text + at) / (STEPS / 10);
        backward(text + at);
        check(amp_step(params, scaler, &adam));
        cell1[0] = cell1[WINDOW];
        cell2[0] = cell2[WINDOW];
        at = at + 2 * WINDOW < length ? at + WINDOW : 0;
        if (step % (STEPS / 10)) continue;
        printf("step %d loss %.4f\n", step, sum);
        sum = 0;
    }
    check(amp_autocast_end(ctx));
    check(amp_step_poll(params, &last));
    printf("%d skipped, scale %g\n", (int)last.skipped, last.scale);
    amp_params_destroy(params);
    amp_scaler_destroy(scaler);
    amp_ctx_destroy(ctx);
    return 0;
}
