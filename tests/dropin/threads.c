/* threads.c - a program with threads of its own, with amp dropped in: workers make the gradients of their part of a
 * batch, each with a context, and one thread makes the step; then the mistake of sharing one context, which must be
 * told and must damage nothing. cc -I. tests/dropin/threads.c -lm -pthread; prints "threads: passed". */
#define AMP_IMPLEMENTATION
#include <amp.h>
#include <pthread.h>
#include <stdio.h>

enum { WORKERS = 4, ROWS = 8, IN = 16, OUT = 4, STEPS = 20 };

typedef struct worker {
    pthread_t thread;
    amp_ctx *ctx;
    amp_array w;
    const float *x;
    float y[ROWS * OUT], dy[ROWS * OUT], dw[OUT * IN];
    int refused, failed;
} worker;

static void *gradients(void *argument) { /* of sum(y^2) / 2, y = x w^T */
    worker *k = (worker *)argument;
    amp_linear_desc l = AMP_ZERO;
    amp_status forward, backward;
    l.rows = ROWS;
    l.in = IN;
    l.out = OUT;
    l.x = amp_arr(k->x, AMP_F32);
    l.w = k->w;
    l.y = amp_arr(k->y, AMP_F32);
    l.dy = amp_arr(k->dy, AMP_F32);
    l.dw = amp_arr(k->dw, AMP_F32);
    forward = amp_linear_forward(k->ctx, &l);
    memcpy(k->dy, k->y, sizeof k->y);
    backward = amp_linear_backward(k->ctx, &l);
    k->refused += (forward == AMP_ERR_BUSY) + (backward == AMP_ERR_BUSY);
    k->failed += (forward != AMP_OK && forward != AMP_ERR_BUSY) + (backward != AMP_OK && backward != AMP_ERR_BUSY);
    return NULL;
}
static void all_together(worker *workers) {
    int k;
    for (k = 0; k < WORKERS; k++)
        if (pthread_create(&workers[k].thread, NULL, gradients, &workers[k])) workers[k].failed++;
    for (k = 0; k < WORKERS; k++)
        pthread_join(workers[k].thread, NULL);
}

int main(void) {
    static float x[WORKERS][ROWS * IN], w[OUT * IN];
    static worker workers[WORKERS];
    amp_cpu_desc one = AMP_ZERO;
    amp_params_desc pd = AMP_ZERO;
    amp_param_desc all = AMP_ZERO;
    amp_step_desc step = AMP_ZERO;
    amp_ctx *ctx;
    amp_params *set;
    float first = 0.0f, loss = 0.0f, *g;
    int i, k, s, failed = 0, refused = 0;
    one.threads = 1; /* the program's threads are the parallelism */
    for (i = 0; i < OUT * IN; i++)
        w[i] = (float)(i % 7 - 3) / 8.0f;
    for (i = 0; i < WORKERS * ROWS * IN; i++)
        x[i / (ROWS * IN)][i % (ROWS * IN)] = (float)(i % 11 - 5) / 8.0f;
    if (amp_cpu_create(&ctx, &one) != AMP_OK) return 2;
    pd.model = AMP_F32;
    pd.grad = AMP_F32;
    all.count = OUT * IN;
    all.init = w;
    failed += amp_params_create(&set, ctx, &pd) != AMP_OK || amp_params_add(set, &all) != AMP_OK;
    failed += amp_params_commit(set) != AMP_OK;
    for (k = 0; k < WORKERS; k++) {
        failed += amp_cpu_create(&workers[k].ctx, &one) != AMP_OK;
        workers[k].x = x[k];
        workers[k].w = amp_param_model(set, 0);
    }
    step.optimizer = AMP_SGD;
    step.lr = 0.01f;
    g = (float *)amp_param_grad(set, 0).data;
    for (s = 0; s < STEPS; s++) {
        all_together(workers);
        memset(g, 0, sizeof w);
        loss = 0.0f;
        for (k = 0; k < WORKERS; k++) {
            for (i = 0; i < OUT * IN; i++)
                g[i] += workers[k].dw[i];
            for (i = 0; i < ROWS * OUT; i++)
                loss += workers[k].y[i] * workers[k].y[i] / 2;
        }
        if (s == 0) first = loss;
        failed += amp_step(set, NULL, &step) != AMP_OK;
    }
    for (k = 0; k < WORKERS; k++)
        refused += workers[k].refused;
    if (refused) failed++; /* a context for each thread: nobody meets anybody */

    /* One context for all: a call that meets a different thread is refused; none does anything else that is wrong. */
    for (k = 1; k < WORKERS; k++) {
        amp_ctx_destroy(workers[k].ctx);
        workers[k].ctx = workers[0].ctx;
    }
    for (s = 0; s < STEPS; s++)
        all_together(workers);
    for (k = 0; k < WORKERS; k++)
        failed += workers[k].failed;
    gradients(&workers[0]); /* and it goes on working */
    failed += workers[0].failed;

    amp_params_destroy(set);
    amp_ctx_destroy(ctx);
    amp_ctx_destroy(workers[0].ctx);
    if (failed || !(loss < 0.5f * first)) {
        printf("threads: %d failed, loss %g -> %g\n", failed, first, loss);
        return 1;
    }
    printf("threads: passed\n");
    return 0;
}
