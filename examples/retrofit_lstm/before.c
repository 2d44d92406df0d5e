/* Trains an LSTM on the characters of a text, online: one sequence at a time, one character after the other, with
 * loops and an Adam of its own (before.c), or FP16 products by amp (after.c; README.md has the diff).
 *
 *     cc -std=c99 -O2 before.c -lm -o before && ./before TEXT 1
 *     cc -std=c99 -O2 -I../.. after.c -lm -pthread -o after && ./after TEXT 1
 *
 * Two layers, a softmax over characters, the state kept from window to window. TEXT is a file of ASCII, the number the
 * seed. Prints the mean loss of every tenth of the steps.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef STEPS
#  define STEPS 500
#endif
enum { VOCAB = 128, HIDDEN = 64, GATES = 4 * HIDDEN, WINDOW = 16 };
static const double LR = 2e-3, BETA1 = 0.9, BETA2 = 0.999, EPS = 1e-8;

typedef struct Weights { /* nothing but numbers, so Adam takes it for one long array */
    double w1[GATES][VOCAB + HIDDEN], b1[GATES];
    double w2[GATES][HIDDEN + HIDDEN], b2[GATES];
    double wy[VOCAB][HIDDEN], by[VOCAB];
} Weights;
enum { COUNT = sizeof(Weights) / sizeof(double) };
static Weights w, g, m, v;

typedef struct Cell { /* a layer at one place of the window: its input and the state before it, then what it made */
    double in[VOCAB + HIDDEN], gate[GATES], c[HIDDEN], h[HIDDEN];
} Cell;
static Cell cell1[WINDOW + 1], cell2[WINDOW + 1]; /* [0]: the end of the window before */
static double p[WINDOW][VOCAB];

/* ---- products of a matrix [rows][cols] and a vector -------------------------------------------------------------- */

static void forward_product(double *y, const double *a, const double *x, int rows, int cols) { /* y += a x */
    for (int r = 0; r < rows; r++) {
        double sum = 0;
        for (int c = 0; c < cols; c++)
            sum += a[r * cols + c] * x[c];
        y[r] += sum;
    }
}
static void backward_product(double *dx, const double *a, const double *dy, int rows, int cols) { /* dx = a^T dy */
    memset(dx, 0, cols * sizeof *dx);
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < cols; c++)
            dx[c] += a[r * cols + c] * dy[r];
}
static void outer_product(double *da, const double *dy, const double *x, int rows, int cols) { /* da += dy x^T */
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < cols; c++)
            da[r * cols + c] += dy[r] * x[c];
}

/* ---- the network ------------------------------------------------------------------------------------------------- */

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

/* Gates: input, forget, output, candidate. to->in[0 .. n - 1] is there already; the state before follows it. */
static void cell_forward(Cell *to, const Cell *was, const double *a, const double *b, int n) {
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
    const Cell *at, const double *a, double *da, double *db, double *dh, double *dc, double *dx, int n) {
    double d[GATES];
    for (int i = 0; i < HIDDEN; i++) {
        double in = at->gate[i], forget = at->gate[HIDDEN + i], out = at->gate[2 * HIDDEN + i];
        double candidate = at->gate[3 * HIDDEN + i], t = tanh(at->c[i]);
        double back = dc[i] + dh[i] * out * (1 - t * t);
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

static double forward(const char *text) { /* the mean loss of a window */
    double loss = 0;
    for (int t = 0; t < WINDOW; t++) {
        Cell *a = &cell1[t + 1], *b = &cell2[t + 1];
        double top = -1e30, sum = 0;
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
    double dh1[HIDDEN] = {0}, dc1[HIDDEN] = {0}, dh2[HIDDEN] = {0}, dc2[HIDDEN] = {0};
    double dz[VOCAB], dh[HIDDEN], dx[VOCAB + HIDDEN];
    memset(&g, 0, sizeof g);
    for (int t = WINDOW - 1; t >= 0; t--) {
        const Cell *a = &cell1[t + 1], *b = &cell2[t + 1];
        for (int i = 0; i < VOCAB; i++) {
            dz[i] = (p[t][i] - (i == (text[t + 1] & 127))) / WINDOW;
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

static void adam(int step) {
    double *x = (double *)&w, *dx = (double *)&g, *mean = (double *)&m, *square = (double *)&v;
    double c1 = 1 - pow(BETA1, step), c2 = 1 - pow(BETA2, step);
    for (int i = 0; i < COUNT; i++) {
        mean[i] = BETA1 * mean[i] + (1 - BETA1) * dx[i];
        square[i] = BETA2 * square[i] + (1 - BETA2) * dx[i] * dx[i];
        x[i] -= LR * (mean[i] / c1) / (sqrt(square[i] / c2) + EPS);
    }
}

/* ---- main -------------------------------------------------------------------------------------------------------- */

static unsigned seed;
static double uniform(void) { /* [-1, 1) */
    seed = seed * 1664525u + 1013904223u;
    return (double)(seed >> 8) / 8388608 - 1;
}
static void init(double *a, int rows, int cols) {
    for (int i = 0; i < rows * cols; i++)
        a[i] = uniform() / sqrt((double)cols);
}

int main(int argc, char **argv) {
    static char text[1 << 20];
    FILE *f = argc > 2 ? fopen(argv[1], "rb") : NULL;
    double sum = 0;
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

    for (int step = 1; step <= STEPS; step++) {
        sum += forward(text + at) / (STEPS / 10);
        backward(text + at);
        adam(step);
        cell1[0] = cell1[WINDOW];
        cell2[0] = cell2[WINDOW];
        at = at + 2 * WINDOW < length ? at + WINDOW : 0;
        if (step % (STEPS / 10)) continue;
        printf("step %d loss %.4f\n", step, sum);
        sum = 0;
    }
    return 0;
}
