/* torch_steps.c - 1,000 steps of amp_step for each rule, written to standard output for tests/torch_steps.py, which
   takes the same steps with PyTorch's optimizers. For each rule: a line of text with the name, n, the number of steps
   and the hyper-parameters, then floats: n weights before, steps * n gradients (unscaled), n weights after. */
#define AMP_IMPLEMENTATION
#include "../amp.h"

#include <stdio.h>
#include <stdlib.h>

#define N     200
#define STEPS 1000
#define SCALE 4096.0f /* a power of two: dividing by it is exact */

static const struct {
    const char *name;
    amp_optimizer optimizer;
    float lr, weight_decay, momentum, dampening;
    uint32_t nesterov;
} rules[] = {
    {"SGD", AMP_SGD, 0.05f, 0, 0, 0, 0},
    {"SGD decay", AMP_SGD, 0.05f, 0.013f, 0, 0, 0},
    {"SGD momentum", AMP_SGD, 0.05f, 0, 0.9f, 0, 0},
    {"SGD momentum dampening", AMP_SGD, 0.05f, 0, 0.9f, 0.3f, 0},
    {"SGD Nesterov decay", AMP_SGD, 0.05f, 0.013f, 0.9f, 0, 1},
    {"Adam", AMP_ADAM, 0.003f, 0, 0, 0, 0},
    {"Adam decay", AMP_ADAM, 0.003f, 0.013f, 0, 0, 0},
    {"AdamW", AMP_ADAMW, 0.003f, 0, 0, 0, 0},
    {"AdamW decay", AMP_ADAMW, 0.003f, 0.013f, 0, 0, 0},
    {"Lion", AMP_LION, 0.003f, 0, 0, 0, 0},
    {"Lion decay", AMP_LION, 0.003f, 0.013f, 0, 0, 0},
};
#define N_RULES (sizeof rules / sizeof rules[0])

static float w[N], g[STEPS * N]; /* weights; the gradients of all steps */

static void ok(amp_status s, const amp_ctx *ctx) {
    if (s == AMP_OK) return;
    fprintf(stderr, "torch_steps: %s\n", ctx ? amp_last_error(ctx) : amp_strerror(s));
    exit(1);
}

static float noise(uint64_t i) { /* about normal(0, 1) */
    uint32_t r[4];
    amp_philox(r, 5, 0, i);
    return (float)(((double)r[0] + r[1] + r[2] + r[3]) / 4294967296.0 - 2.0) * 1.7320508f;
}

static void take_step(amp_ctx *ctx, amp_params *p, amp_scaler *scaler, const float *gradient, const amp_step_desc *d) {
    float scaled[N];
    size_t i;
    for (i = 0; i < N; i++)
        scaled[i] = gradient[i] * SCALE;
    ok(amp_copy(ctx, amp_param_grad(p, 0).data, scaled, sizeof scaled), ctx);
    ok(amp_step(p, scaler, d), ctx);
}

static void run_rule(amp_ctx *ctx, size_t k) {
    amp_params_desc pd = AMP_ZERO;
    amp_param_desc e = AMP_ZERO;
    amp_scaler_desc sd = AMP_ZERO;
    amp_step_desc d = AMP_ZERO;
    amp_params *p = NULL;
    amp_scaler *scaler = NULL;
    size_t i;

    for (i = 0; i < N; i++)
        w[i] = noise(i);
    for (i = 0; i < STEPS * N; i++)
        g[i] = 0.1f * noise(N + i) + (i % 2 ? 0.02f : -0.01f);

    pd.grad = AMP_F32;
    e.count = N;
    e.init = w;
    ok(amp_params_create(&p, ctx, &pd), ctx);
    ok(amp_params_add(p, &e), ctx);
    ok(amp_params_commit(p), ctx);
    sd.scale = SCALE;
    sd.growth_interval = AMP_NONE;
    ok(amp_scaler_create(&scaler, ctx, &sd), ctx);

    d.optimizer = rules[k].optimizer;
    d.lr = rules[k].lr;
    d.weight_decay = rules[k].weight_decay;
    d.momentum = rules[k].momentum;
    d.dampening = rules[k].dampening;
    d.nesterov = rules[k].nesterov;
    printf("%s,%d,%d,%.9g,%.9g,%.9g,%.9g,%u\n", rules[k].name, N, STEPS, (double)d.lr, (double)d.weight_decay,
        (double)d.momentum, (double)d.dampening, (unsigned)d.nesterov);
    fwrite(w, sizeof w, 1, stdout);
    fwrite(g, sizeof g, 1, stdout);
    for (i = 0; i < STEPS; i++)
        take_step(ctx, p, scaler, g + i * N, &d);
    ok(amp_param_read(p, 0, w), ctx);
    fwrite(w, sizeof w, 1, stdout);
    amp_scaler_destroy(scaler);
    amp_params_destroy(p);
}

int main(void) {
    amp_ctx *ctx = NULL;
    size_t k;
    ok(amp_cpu_create(&ctx, NULL), NULL);
    for (k = 0; k < N_RULES; k++)
        run_rule(ctx, k);
    amp_ctx_destroy(ctx);
    return fflush(stdout) != 0;
}
